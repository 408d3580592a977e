"""The rules for recordings of named columns, of libtmaops.so: what a column is, which one is the time, how each is resampled.

Every door of the package asks this module, and none knows names, units or modes itself (docs/resample_command.md has the rules).

    columns = [column("t_ms", stamps), column("observation.state", state, channel_names=names), rows("task", len(stamps))]
    result = resample(columns, hz=30)                      # one recording: decides and runs
    result.arrays                                          # [Made(name, values, source), ...], times first
    result.report["warnings"], result.report["time"]

A data set decides once, from its schema and the values of its first episodes, and runs many times:

    rules = Rules(columns, offsets=[0, 200, 410], mode=["gripper=previous"])
    rules.time                                             # {"name": "t_ms", "index": 0, "unit": "ms", "form": "number", ...}
    rules.columns                                          # [{"name", "mode", "reason", "index", "first", "count"}, ...]
    rules.warnings, rules.notes                            # [Note(id, text), ...]
    result = rules.resample(more_columns, offsets=[0, 190, 400], hz=30)     # packed episodes, a call for all of them
    result.offsets                                         # the rows of each episode

Columns are given in the same order, with the same names, each time. `rows` stands for a column of a type that the library does
not know (nested lists, text that is no time, numbers with missing ones): its result has the row to take, -1 for none. Text is
given as it is where `reads_text(name)` says that it may be a time or a mask.
"""

from __future__ import annotations

import ctypes
import functools
import json
from collections.abc import Iterable, Sequence
from ctypes import POINTER, byref, c_char_p, c_int64, c_void_p
from typing import Any, NamedTuple

from tmaops._errors import invalid_type, invalid_value
from tmaops._library import OPTIONS, STRUCTS, RecordingColumn, check, declare, library

_Column, _Options = RecordingColumn, STRUCTS["recording"]

declare("recording_decide", [POINTER(_Column), c_int64, POINTER(_Options), POINTER(c_void_p)])
declare("recording_resample", [c_void_p, POINTER(_Column), c_int64, POINTER(_Options), POINTER(c_void_p)])
for _name in ("rules", "result"):
    declare(f"recording_{_name}_report", [c_void_p], c_char_p)
    declare(f"recording_{_name}_destroy", [c_void_p], None)
declare("recording_result_columns", [c_void_p, POINTER(c_int64)], POINTER(_Column))
declare("recording_result_offsets", [c_void_p, POINTER(c_int64)], POINTER(c_int64))
declare("recording_reads_text", [c_char_p])

# NumPy's type strings that the library takes beside text; ml_dtypes' bfloat16 is named apart.
_TYPES = frozenset(
    "<f2 <f4 <f8 |i1 <i2 <i4 <i8 |u1 <u2 <u4 <u8 |b1 <M8[s] <M8[ms] <M8[us] <M8[ns]".split()  # noqa: SIM905
)


class Note(NamedTuple):
    """What was assumed or looks wrong: a name that stays, and a sentence."""

    id: str
    text: str


class Given(NamedTuple):
    """A column as the library takes it: made by `column` and `rows`."""

    name: str
    type: bytes
    values: Any  # a contiguous NumPy array; None for rows
    shape: tuple[int, ...]
    channel_names: Sequence[str] | None
    missing: int


class Made(NamedTuple):
    """A column of a result. `source` is the index of the given one that it comes from, -1 for offsets and "valid"."""

    name: str
    values: Any
    source: int
    kind: str  # the library's type: "rows" where the values are numbers of rows


@functools.lru_cache(256)
def type_of(dtype: Any) -> bytes | None:
    """The library's name of a NumPy type; None where it has none, so that the column is given as rows."""
    if dtype.str in _TYPES or dtype.str[1] in "US":
        return dtype.str.encode()
    return b"bf16" if dtype.name == "bfloat16" else None


def column(
    name: str, values: Any, *, channel_names: Sequence[str] | None = None, missing: int = 0, kind: bytes | None = None
) -> Given:
    """A column of an array whose first extent is the rows. `channel_names`: a name for each number of a row.

    `kind` is b"bf16" where the array has the bits of such numbers under another type.
    """
    if hasattr(values, "mask"):
        raise invalid_value(f"column '{name}'", "a masked array", "one without a mask: filled(nan) has missing numbers")
    if not values.flags.c_contiguous:
        values = values.copy()
    kind = kind or type_of(values.dtype)
    if kind is None:
        raise invalid_type(f"column '{name}'", str(values.dtype), "numbers, booleans, text or datetime64")
    return Given(name, kind, values, values.shape, channel_names, missing)


def rows(name: str, count: int, *, missing: int = 0, labels: Sequence[int] = ()) -> Given:
    """A column of elements that the library does not look at. labels: a number for each, equal where the elements are."""
    import numpy

    return Given(name, b"rows", numpy.array(labels, "i8") if labels else None, (count,), None, missing)


def packed(columns: Sequence[Given]) -> Given:
    """Columns of the same kind behind one another, for packed episodes."""
    import numpy

    first = columns[0]
    if first.type == b"rows":
        return rows(first.name, sum(each.shape[0] for each in columns), missing=sum(each.missing for each in columns))
    values = numpy.concatenate([each.values for each in columns])
    return first._replace(values=values, shape=values.shape, missing=sum(each.missing for each in columns))


def reads_text(name: str) -> bool:
    """Whether the library looks at the text of a column of this name: it may be a time, or a mask of rows with data."""
    return bool(library.tmaops_recording_reads_text(name.encode()))


@functools.lru_cache(256)
def mode_of(name: str) -> str | None:
    """The mode that the library has for numbers of 0 under this name: "any" of flags, "sum" of rewards."""
    import numpy

    given = [column("timestamp", numpy.zeros(1)), column(f"x.{name}", numpy.zeros(1))]
    return next((each["mode"] for each in Rules(given, time="timestamp").columns), None)


def _given(columns: Iterable[Given], keep: list[Any]) -> ctypes.Array:
    columns = list(columns)
    array = (_Column * len(columns))()
    shapes: dict[tuple[int, ...], Any] = {}
    for to, given in zip(array, columns, strict=True):
        shape = shapes.get(given.shape)
        if shape is None:
            shape = shapes[given.shape] = (c_int64 * len(given.shape))(*given.shape)
        to.name, to.type, to.shape, to.dimensions = given.name.encode(), given.type, shape, len(given.shape)
        to.missing = given.missing
        if given.values is not None:
            to.data = given.values.__array_interface__["data"][0]
            keep.append(given.values)
        if given.channel_names is not None:
            names = (c_char_p * len(given.channel_names))(*(name.encode() for name in given.channel_names))
            to.channel_names = names
            keep.append(names)
    keep.append(shapes)
    return array


def _offsets(values: Any, keep: list[Any]) -> tuple[Any, int]:
    import numpy

    array = numpy.ascontiguousarray(values, dtype="int64")
    keep.append(array)
    return array.ctypes.data_as(POINTER(c_int64)), len(array)


_TEXTS = frozenset("columns outside duplicates time time_unit times_unit like_time where group start end".split())
_NUMBERS = frozenset(option.name for option in OPTIONS["recording"] if option.kind in ("f64", "flag")) - {"like"}
_FIELDS = {"like_time": "targets_name", "times_unit": "targets_unit"}


def _options(keep: list[Any], **asked: Any) -> Any:
    """The options as the library takes them. `offsets` is the name of a column, or the offsets of packed episodes."""
    made = _Options(size=ctypes.sizeof(_Options))
    for name, value in asked.items():
        if value is None:
            continue
        if name in _TEXTS:
            setattr(made, _FIELDS.get(name, name), str(value).encode())
        elif name in _NUMBERS:
            if name in ("hz", "max_gap") and value == 0:  # which is "not given" there
                raise invalid_value(f"option {name}", "0", "more than 0")
            try:
                setattr(made, name, value or 0)
            except TypeError:
                raise invalid_type(f"option {name}", type(value).__name__, "a number, or True or False") from None
        elif name == "mode":
            texts = [value] if isinstance(value, str) else value
            texts = [f"{columns}={how}" for columns, how in texts.items()] if isinstance(texts, dict) else list(texts)
            keep.append((c_char_p * len(texts))(*(text.encode() for text in texts)))
            made.modes, made.mode_count = keep[-1], len(texts)
        elif name in ("times", "like"):
            targets = _given([value] if name == "times" else value, keep)
            keep.append(targets)
            made.targets, made.target_columns, made.like = targets, len(targets), name == "like"
        elif name == "target_offsets":
            made.target_offsets, made.target_offset_count = _offsets(value, keep)
        elif name == "offsets" and isinstance(value, str):
            made.offsets_array = value.encode()
        elif name == "offsets":
            made.offsets, made.offset_count = _offsets(value, keep)
        else:
            raise TypeError(f"resample_columns() got an unexpected keyword argument '{name}'")
    return made


class _Memory:
    """Memory of a result as NumPy takes it, which keeps the result."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, owner: Any, address: int, shape: tuple[int, ...], typestr: str) -> None:
        self.owner = owner
        self.__array_interface__ = {"data": (address, False), "shape": shape, "typestr": typestr, "version": 3}


class _Handle:
    def __init__(self, handle: c_void_p, destroy: Any) -> None:
        self.handle, self._destroy = handle, destroy

    def __del__(self) -> None:
        if self.handle:
            self._destroy(self.handle)


_TYPES_OF_ARRAYS = {b"rows": "<i8", b"bf16": "<u2"}
_NO_WARNINGS = b'"warnings": []}'


class Result:
    """Columns at other times.

    Attributes:
        arrays: the times in their own form, the columns, the offsets where a column had them, arrays without a row for each
            time (as None: the given ones), and "valid" where targets can have no data.
        offsets: of the episodes' rows, B + 1.
    """

    def __init__(self, handle: c_void_p, given: Sequence[Given]) -> None:
        import numpy

        self._owner = _Handle(handle, library.tmaops_recording_result_destroy)
        count = c_int64()
        found = library.tmaops_recording_result_columns(handle, byref(count))
        self.arrays: list[Made] = []
        self._report: dict[str, Any] | None = None
        for i in range(count.value):
            each = found[i]
            kind, shape = each.type, tuple(each.shape[: each.dimensions])
            name, source = each.name.decode(), each.source
            if kind == b"utf8":
                bounds = each.text_offsets[: shape[0] + 1]
                text = ctypes.string_at(each.data, bounds[-1])
                values = numpy.array(
                    [text[a:b].decode("utf-8", "replace") for a, b in zip(bounds, bounds[1:], strict=False)], dtype=str
                )
            else:
                dtype = _TYPES_OF_ARRAYS.get(kind) or kind.decode()
                if each.data and 0 not in shape:
                    values = numpy.asarray(_Memory((self._owner, given), each.data, shape, dtype))
                else:
                    values = numpy.empty(shape, dtype)
                if kind == b"bf16":
                    values = values.view(given[source].values.dtype)
            self.arrays.append(Made(name, values, source, kind.decode()))
        bounds = library.tmaops_recording_result_offsets(handle, byref(count))
        self.offsets: list[int] = bounds[: count.value]

    @property
    def warns(self) -> bool:
        """Whether something looks wrong, without a reading of the report."""
        read = self._report is not None and bool(self._report["warnings"])
        return read or not library.tmaops_recording_result_report(self._owner.handle).endswith(_NO_WARNINGS)

    @property
    def report(self) -> dict[str, Any]:
        """What was found out and decided, as `tmaops resample --json` has it."""
        if self._report is None:
            self._report = json.loads(library.tmaops_recording_result_report(self._owner.handle))
        return self._report


class Rules:
    """What columns are, decided once for recordings of the same columns.

    Args:
        given: the columns, times among them, with the values of one or more episodes.
        options: as for `tmaops.resample_columns`, without targets; `offsets` may be the offsets of packed episodes.

    Attributes:
        time: {"name", "index", "form", "unit", "chosen_by", "unit_by", "first_ns", "last_ns", "median_step_ns"}.
        columns: [{"name", "mode", "reason", "index", "first", "count"}]: a column or some of its channels each.
        quaternions: [{"columns", "order"}].
        notes, warnings: [Note(id, text)].
    """

    def __init__(self, given: Sequence[Given], **options: Any) -> None:
        handle = c_void_p()
        keep: list[Any] = []
        self._options = {name: value for name, value in options.items() if name != "offsets" or isinstance(value, str)}
        columns = _given(given, keep)
        check(library.tmaops_recording_decide(columns, len(columns), byref(_options(keep, **options)), byref(handle)))
        self._owner = _Handle(handle, library.tmaops_recording_rules_destroy)
        self.report: dict[str, Any] = json.loads(library.tmaops_recording_rules_report(handle))
        self.time: dict[str, Any] = self.report["time"]
        self.columns: list[dict[str, Any]] = self.report["columns"]
        self.quaternions: list[dict[str, str]] = self.report["quaternions"]
        self.notes, self.warnings = ([Note(**each) for each in self.report[key]] for key in ("notes", "warnings"))

    def resample(self, given: Sequence[Given], **options: Any) -> Result:
        """The columns at other times: `hz`, `times` (a Given) with `target_offsets`, or `like`; `offsets` of packed episodes."""
        return resample(given, self._owner.handle, **{**self._options, **options})


def resample(given: Sequence[Given], rules: c_void_p | None = None, **options: Any) -> Result:
    """Resamples columns by the rules, or decides those first."""
    handle, keep = c_void_p(), list[Any]()
    columns = _given(given, keep)
    asked = _options(keep, **options)
    check(library.tmaops_recording_resample(rules, columns, len(columns), byref(asked), byref(handle)))
    return Result(handle, given)
