"""tmaops.resample_columns: recordings of named columns in memory, by the rules of tmaops._recording.

Here columns of dictionaries and frames become arrays that the library takes, and what comes back becomes the caller's kind again.
"""

from __future__ import annotations

import datetime
import decimal
import functools
import logging
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tmaops import _errors, _recording
from tmaops._types import R, Recording

_log = logging.getLogger("tmaops")

_TIMES = ("DatetimeIndex", "TimedeltaIndex", "PeriodIndex")  # of pandas


@dataclass(frozen=True)
class Report:
    """What was found out and decided.

    Attributes:
        modes: interpolation of every column, or of a part of one, in order: [("quat", "slerp"), ...].
        time: {"name", "unit", "chosen_by", "unit_by", "first_ns", "last_ns", "median_step_ns"}.
        quaternions: the columns of each quaternion that was recognised, and the order of its components.
        warnings: what looks wrong.
        notes: what else was assumed.
        json: all of it, as `tmaops resample --json` prints it; notes and warnings have ids there that stay.
    """

    modes: list[tuple[str, str]]
    time: dict[str, object]
    quaternions: list[dict[str, str]]
    warnings: list[str]
    notes: list[str]
    json: dict[str, object] = field(repr=False)


def is_recording(value: Any) -> bool:
    """True for a dictionary of arrays, a pandas and a polars frame."""
    return isinstance(value, Mapping) or _frame_library(value) is not None


def _frame_library(value: Any) -> str | None:
    module = type(value).__module__.partition(".")[0]
    return module if module in ("pandas", "polars") and type(value).__name__ == "DataFrame" else None


def _as_it_is(values: Any) -> Any:
    return values


class Columns:
    """Columns as the library takes them, and for each how the caller's kind of array is made of what comes back.

    What the library has no type for, and what may lack values, is given as rows. Rows have the rule of everything that is no real
    number: a sample is taken as it is.
    """

    def __init__(self, time: str | None = None, group: str | None = None) -> None:
        self.time, self.group = time, group
        self.given: list[_recording.Given] = []
        self.restore: list[Callable[[Any], Any]] = []
        self.new: Callable[[Any], Any] = _as_it_is  # of columns that the library adds
        self.structures: dict[str, tuple[list[str], Any]] = {}  # whose fields are columns: "imu.x"

    def reads(self, name: str) -> bool:
        return name in (self.time, self.group) or _recording.reads_text(name)

    def add_rows(self, name: str, take: Callable[[Any], Any], values: Any, missing: int, texts: Any = ()) -> None:
        """texts: of the rows, each of which is then given as the first row that has its text."""
        first: dict[Any, int] = {}
        labels = [first.setdefault(text, row) for row, text in enumerate(texts)]
        self.given.append(_recording.rows(name, len(values), missing=missing, labels=labels))
        self.restore.append(take)

    def add_fields(self, name: str, fields: dict[str, Any], add: Any, join: Any, missing: Any = None) -> None:
        """add: takes a field. join: makes structures of fields, and of numbers of those that stay, or -1. missing: rows without."""
        self.structures[name] = list(fields), join
        for inner, values in fields.items():
            add(f"{name}.{inner}", values)
        if missing is not None and missing.any():
            self.add_rows(f"{name} is null", lambda rows: (rows < 0) | missing[rows], missing, 0)

    def add_array(
        self, name: str, values: Any, back: Callable[[Any], Any] = _as_it_is, kind: bytes | None = None
    ) -> None:
        self.given.append(_recording.column(name, values, kind=kind))
        self.restore.append(back)

    def add_flags(self, name: str, objects: Callable[[], Any], back: Callable[[Any], Any] = _as_it_is) -> bool:
        """Flags by their name, None among them, as numbers that are NaN there: `any` says what is known."""
        import numpy

        values = objects() if _recording.mode_of(name) in ("any", "next") else None
        kinds = set() if values is None else {type(value).__name__ for value in values}
        if values is None or not kinds <= {"bool", "bool_", "int", "float", "NoneType"}:
            return False
        numbers, kind = values.astype("f4"), int if "int" in kinds else bool

        def flags(made: Any) -> Any:
            if (made % 1 > 0).any():
                needed = "previous, next, nearest, any, min or max"
                raise _errors.invalid_value(f"column '{name}'", "a mode by which flags become other numbers", needed)
            return back(numpy.where(numpy.isnan(made), None, numpy.nan_to_num(made).astype(kind)))

        if found := bool(numpy.isin(numbers[~numpy.isnan(numbers)], (0, 1)).all()):
            self.add_array(name, numbers, flags)
        return found

    def add(self, name: str, values: Any) -> None:
        import numpy

        if type(values) is numpy.ndarray and values.dtype.kind in "fiub" and _recording.type_of(values.dtype):
            return self.add_array(name, values)
        back: Callable[[Any], Any] = _as_it_is
        given, torch = values, sys.modules.get("torch")
        if torch is not None and isinstance(values, torch.Tensor):
            dtype, device, values = values.dtype, values.device, values.detach().cpu()
            bf16 = dtype is torch.bfloat16  # NumPy has no such type
            values = (values.contiguous().view(torch.int16) if bf16 else values).numpy()

            def back(array: Any) -> Any:
                if bf16:
                    return torch.from_numpy(array).view(dtype).to(device)
                return torch.from_numpy(array).to(device, dtype if array.dtype.kind != "b" else torch.bool)

            if bf16:
                return self.add_array(name, values, back, b"bf16")
            self.new = lambda array: torch.from_numpy(array).to(device)
        elif not isinstance(values, numpy.ndarray):
            module = type(values).__module__.partition(".")[0]
            try:
                values = numpy.asarray(values.get() if module == "cupy" else values)
            except ValueError:  # rows of several shapes; with the None each is an object
                values = numpy.array([*values, None], dtype=object)[:-1]
            if module in ("jax", "jaxlib"):
                back = sys.modules["jax"].numpy.asarray
        kind = values.dtype.kind
        if not values.ndim:  # one value beside the columns
            if isinstance(given, Mapping):
                raise _errors.invalid_type(f"column '{name}'", "a dictionary", "arrays (ResampleStep takes both)")
            self.given.append(_recording.rows(name, 0)._replace(shape=()))
            return self.restore.append(lambda _: given)
        if kind == "O":
            rows = _stacked(values)
            if rows is not None and rows.dtype.kind in "mM":
                return self.add(name, rows)
            if rows is not None:
                places = _places(values)
                return self.add_array(name, rows, list if rows.ndim > 1 else lambda array: _objects(array, places))
            text = all(isinstance(value, (str, datetime.date, datetime.time)) for value in values)
            if text and self.reads(name):
                kind = type(next(iter(values), ""))  # a pandas.Timestamp reads text; a datetime has no nanoseconds
                read = _OF_TEXT.get(kind, kind)
                return self.add_array(name, values.astype(str), lambda array: numpy.array([*map(read, array)], object))
            if self.add_flags(name, lambda: values):
                return None
            missing = sum(value is None for value in values)
            texts = values if text else ()
            return self.add_rows(name, lambda rows: numpy.where(rows < 0, None, values[rows]), values, missing, texts)
        if values.dtype.names and values.ndim == 1:
            return self.add_fields(name, {inner: values[inner] for inner in values.dtype.names}, self.add, _structure)
        if values.dtype.byteorder == ">":
            values = values.astype(values.dtype.newbyteorder("<"))
        if kind == "m":  # as dates, of which the library writes those of targets in ns
            values, kind = values.view(values.dtype.str.replace("m8", "M8")), "M"

            def back(array: Any) -> Any:
                return array.view(array.dtype.str.replace("M8", "m8"))

        if _recording.type_of(values.dtype) is not None:
            return self.add_array(name, values, back)
        dtype = values.dtype
        if kind == "M":
            return self.add_array(name, values.astype("M8[ns]"), back)
        if dtype == numpy.longdouble:
            return self.add_array(name, values.astype("f8"), lambda array: array.astype(dtype))
        with_none = numpy.concatenate([values, numpy.zeros_like(values[:1])])  # row -1
        return self.add_rows(name, lambda rows: with_none[rows], values, 0)

    def add_of_pandas(self, name: str, values: Any) -> None:
        import numpy

        pandas = sys.modules["pandas"]
        dtype = values.dtype
        kind, inner = getattr(dtype, "kind", "O"), getattr(dtype, "pyarrow_dtype", dtype)
        objects = functools.partial(values.to_numpy, object, na_value=None)
        if type(inner).__name__ == "StructType" and inner.num_fields:
            arrow, extension = sys.modules["pyarrow"], pandas.arrays.ArrowExtensionArray

            def join(fields: dict[str, Any], at: Any) -> Any:
                made = arrow.table({key: arrow.array(each) for key, each in fields.items()}).to_struct_array()
                return extension(made) if at is None else extension(made).take(at, allow_fill=True)

            found = zip(inner, arrow.table({"": arrow.array(values)}).flatten().columns, strict=True)
            parts = {each.name: pandas.Series(extension(part)) for each, part in found}
            return self.add_fields(name, parts, self.add_of_pandas, join, values.isna().to_numpy())
        rows = objects() if isinstance(dtype, numpy.dtype) and kind == "O" else ()
        known = [row for row in rows if row is not None]
        if all(isinstance(row, dict) for row in known) and (keys := dict.fromkeys(key for row in known for key in row)):

            def whole(fields: dict[str, Any], at: Any) -> Any:
                columns = [pandas.Series(each).to_numpy(object, na_value=None) for each in fields.values()]
                made = [dict(zip(fields, row, strict=True)) for row in zip(*columns, strict=True)]
                return numpy.array(made if at is None else [None if row < 0 else made[row] for row in at], object)

            given = {key: pandas.Series([(row or {}).get(key) for row in rows], dtype=object) for key in keys}
            parts = {key: pandas.Series(pandas.array(part.to_numpy())) for key, part in given.items()}  # finds types
            return self.add_fields(name, parts, self.add_of_pandas, whole, numpy.array([row is None for row in rows]))
        if isinstance(dtype, numpy.dtype):
            array = values.to_numpy()
            if kind != "O" or _stacked(array) is not None or self.reads(name) and type(array[:1].item()) in _OF_TEXT:
                return self.add(name, array)
        elif kind == "O" and inner is not dtype and _stacked(values.dropna()[:1].to_numpy(object)) is not None:  # Arrow
            self.add(name, objects())
            made = self.restore.pop()
            return self.restore.append(lambda column: pandas.array(made(column), dtype=dtype))
        elif kind == "M" and hasattr(inner, "unit"):

            def back(column: Any) -> Any:
                made = pandas.Series(pandas.DatetimeIndex(column).tz_localize("UTC" if inner.tz else None))
                unit = numpy.datetime_data(column.dtype)[0]
                return made.astype(str(dtype).replace(f"[{inner.unit}", f"[{unit}")).array

            return self.add_array(name, values.to_numpy(dtype=f"datetime64[{inner.unit}]"), back)
        elif self.reads(name) and kind == "m":
            return self.add(name, values.to_numpy(dtype="timedelta64[ns]"))
        elif self.reads(name) and hasattr(dtype, "categories") and dtype.categories.dtype.kind in "iuf":

            def back(column: Any) -> Any:  # times between categories are none of them
                return pandas.array(column, dtype if numpy.isin(column, dtype.categories).all() else column.dtype)

            return self.add_array(name, values.to_numpy(), back)
        elif self.reads(name) and type(dtype).__name__ == "PeriodDtype":
            return self.add_of_pandas(name, pandas.Series(values.array.to_timestamp()))
        elif kind == "f":
            real = values.to_numpy(dtype="f4" if getattr(dtype, "itemsize", 8) == 4 else "f8", na_value=float("nan"))
            return self.add_array(name, real, lambda column: pandas.array(column, dtype=dtype))
        missing = int(values.isna().sum())
        if self.add_flags(name, objects, lambda made: pandas.array(made, dtype=dtype)):
            return None
        if not missing and (self.reads(name) or kind in "iu" and _recording.mode_of(name) == "sum"):
            whole = objects().astype({"i": "i8", "u": "u8", "b": "?"}.get(kind, "U"))
            return self.add_array(name, whole, lambda column: pandas.array(column.tolist(), dtype=dtype))
        source, text = values.array, pandas.api.types.is_string_dtype(values) or hasattr(dtype, "categories")
        texts = values.tolist() if text else ()
        self.add_rows(name, lambda at: source.take(at, allow_fill=bool((at < 0).any())), source, missing, texts)

    def add_of_polars(self, name: str, values: Any) -> None:
        polars = sys.modules["polars"]
        dtype, missing = values.dtype, values.null_count()
        nulls = bool(missing)
        if isinstance(dtype, polars.Struct) and dtype.fields:

            def join(fields: dict[str, Any], at: Any) -> Any:
                made = polars.DataFrame([polars.Series(inner, each) for inner, each in fields.items()]).to_struct()
                return made if at is None else made.gather(polars.Series(at).replace(-1, None))

            fields = values.struct.unnest().to_dict()
            return self.add_fields(name, fields, self.add_of_polars, join, values.is_null().to_numpy())
        rows = _stacked(values.to_numpy()) if isinstance(dtype, (polars.List, polars.Array)) and not nulls else None
        if getattr(dtype, "scale", 0):  # a decimal with digits behind the point
            rows = values.cast(polars.Float64).to_numpy()
        whole = dtype.is_integer() or dtype == polars.Boolean
        if not nulls and (dtype.is_float() or whole):
            self.add_array(name, values.to_numpy())
        elif whole and self.add_flags(
            name,
            lambda: values.to_numpy().astype(object),
            lambda made: polars.Series(made.tolist(), dtype=dtype, strict=False),
        ):
            pass
        elif dtype.is_float() or rows is not None:
            array = values.to_numpy() if rows is None else rows
            self.add_array(name, array, lambda column: _polars_series(polars, column, dtype, nulls))
        elif isinstance(dtype, (polars.Datetime, polars.Duration)) and not nulls:
            self.add(name, values.to_numpy())
            if zone := getattr(dtype, "time_zone", None):
                self.restore[-1] = lambda it: polars.Series(it).dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
        elif dtype in (polars.String, polars.Date, polars.Time) and self.reads(name) and not nulls:
            texts = (values if dtype == polars.String else values.dt.to_string("iso")).to_numpy().astype(str)
            self.add_array(name, texts, lambda column: _polars_series(polars, column, dtype, False))
        else:
            texts = values.to_list() if dtype in (polars.String, polars.Categorical, polars.Enum) else ()
            self.add_rows(name, lambda at: values.gather(polars.Series(at).replace(-1, None)), values, missing, texts)


_OF_OBJECTS = {float: "f8", decimal.Decimal: "f8", datetime.datetime: "M8[us]", datetime.timedelta: "m8[us]"}
_OF_TEXT: dict[type, Callable[[str], Any]] = {
    datetime.datetime: str,
    datetime.date: datetime.date.fromisoformat,
    datetime.time: lambda text: datetime.time.fromisoformat(text if len(text) < 10 else f"{text:0<15.15}"),
}


def _places(values: Any) -> int:
    """The digits behind the point of decimals; 0 of other objects."""
    return max((-int(v.as_tuple().exponent) for v in values if type(v) is decimal.Decimal and v.is_finite()), default=0)


def _objects(array: Any, places: int) -> Any:
    """Numbers as objects: floats, or decimals with so many digits behind the point."""
    made = [round(decimal.Decimal(each), places) for each in array] if places else array
    return sys.modules["numpy"].array(made, object)


def _structure(fields: dict[str, Any], _: Any) -> Any:
    kinds = [(inner, values.dtype, values.shape[1:]) for inner, values in fields.items()]
    made = sys.modules["numpy"].empty(len(next(iter(fields.values()))), kinds)
    for inner, values in fields.items():
        made[inner] = values
    return made


def _stacked(values: Any) -> Any:
    """Real numbers, dates without a zone, durations, or rows of numbers of one shape, as one array; None for everything else."""
    import numpy

    if values.dtype.kind != "O":
        return values if values.ndim > 1 else None
    kinds = {type(value) for value in values} - {type(None)}
    if len(kinds) == 1 and (kind := _OF_OBJECTS.get(next(iter(kinds)))):
        if decimal.Decimal in kinds and _places(values) <= 0:
            return None
        return None if any(getattr(value, "tzinfo", None) for value in values) else values.astype(kind)
    if not len(values) or not all(isinstance(row, (numpy.ndarray, list, tuple)) for row in values):
        return None
    rows = [numpy.asarray(row) for row in values]
    rows = [_stacked(row) for row in rows] if rows[0].dtype.kind == "O" else rows  # lists in lists
    alike = rows[0] is not None and len({getattr(row, "shape", None) for row in rows}) == 1
    return numpy.stack(rows) if alike and rows[0].dtype.kind in "biuf" else None


def _polars_series(polars: Any, column: Any, dtype: Any, nulls: bool) -> Any:
    series = polars.Series(column.tolist() if column.dtype.kind == "U" else column)
    if dtype in (polars.Date, polars.Time):
        return series.str.to_date() if dtype == polars.Date else series.str.to_time()
    return (series.fill_nan(None) if nulls else series).cast(dtype)


def read(recording: Any, time: str | None = None, group: str | None = None) -> Columns:
    """The columns of a dictionary or a frame."""
    import numpy

    columns, library = Columns(time, group), _frame_library(recording)
    if library == "pandas":
        if recording.index.nlevels > 1:
            needed = "columns: recording.reset_index() makes them, and group= names that of the episodes"
            raise _errors.invalid_value("resample_columns: recording", "an index of several levels", needed)
        if _has_times(recording.index):
            columns.time = columns.time or str(recording.index.name or "timestamp")
            columns.add_of_pandas(str(recording.index.name or "timestamp"), recording.index)
        dtypes = set(recording.dtypes.to_numpy())
        if len(dtypes) == 1 and isinstance(dtype := dtypes.pop(), numpy.dtype) and dtype.kind == "f":
            for name, row in zip(recording.columns, numpy.ascontiguousarray(recording.to_numpy().T), strict=True):
                columns.add(str(name), row)
        else:
            for name, values in recording.items():
                columns.add_of_pandas(str(name), values)
    elif library == "polars":
        for series in recording.get_columns():
            columns.add_of_polars(series.name, series)
    elif isinstance(recording, Mapping):
        for name, values in recording.items():
            columns.add(str(name), values)
    else:
        needed = "a dictionary of arrays, a pandas or a polars frame"
        raise _errors.invalid_type("resample_columns: recording", type(recording).__name__, needed)
    return columns


def _has_times(index: Any) -> bool:
    """Whether an index of pandas holds times, by its type or its name."""
    return type(index).__name__ in _TIMES or index.name is not None and _recording.reads_text(str(index.name))


def targets_of(times: Any, like: Any) -> dict[str, Any]:
    """The options of targets that are times, or those of another recording."""
    if times is not None and like is not None:
        raise _errors.invalid_value("resample_columns: targets", "times and like", "one of hz, times and like")
    if times is not None:
        return {"times": read({"times": times}).given[0]}
    other = None if like is None else read(like)
    return {} if other is None else {"like": other.given, "like_time": other.time}


def _pandas_frame(pandas: Any, columns: dict[str, Any], index: Any, known: Any) -> Any:
    """A frame of columns. Those of one type are one block, and its names are made once: both make it several times cheaper."""
    import numpy

    data = {name: values for name, values in columns.items() if name != "valid"}
    plain = (
        type(values) is numpy.ndarray and values.ndim == 1 and values.dtype.kind in "fiub" for values in data.values()
    )
    if not all(plain) or len({values.dtype for values in data.values()}) != 1:
        rows = {name: pandas.Series(v, index=index) if isinstance(v, list) else v for name, v in columns.items()}
        return pandas.DataFrame(rows, index=index, copy=False)
    frame = pandas.DataFrame(numpy.array(list(data.values())).T, index=index, copy=False)
    if "valid" in columns:
        frame.insert(len(data), len(data), columns["valid"])
    labels = _labels((*data, *(name for name in columns if name == "valid")))
    frame.columns = labels if known.name is None else labels.rename(known.name)
    return frame


@functools.lru_cache(64)
def _labels(names: tuple[str, ...]) -> Any:
    return sys.modules["pandas"].Index(list(names))


def write(recording: Any, columns: Columns, result: _recording.Result) -> Any:
    """What came back, as the caller's kind of recording."""
    restored = {
        made.name: columns.new(made.values) if made.source < 0 else columns.restore[made.source](made.values)
        for made in result.arrays
    }
    for whole, (fields, join) in reversed(columns.structures.items()):  # those inside others first
        own = {f"{whole}.{inner}": inner for inner in fields if f"{whole}.{inner}" in restored}
        empty = restored.pop(f"{whole} is null", None)
        at = None if empty is None else sys.modules["numpy"].where(empty, -1, range(len(empty)))
        if own:
            made = join({inner: restored[key] for key, inner in own.items()}, at)
            restored = {whole if key in own else key: made if key in own else it for key, it in restored.items()}
    library = _frame_library(recording)
    if library == "pandas":
        pandas = sys.modules["pandas"]
        index = None
        if _has_times(recording.index):
            name = next((made.name for made in result.arrays if made.source == 0), None)
            if name is not None:
                index = pandas.Index(restored.pop(name), name=recording.index.name)
        return _pandas_frame(pandas, restored, index, recording.columns)
    if library == "polars":
        polars = sys.modules["polars"]
        return polars.DataFrame([polars.Series(name, values) for name, values in restored.items()])
    return restored


def resample_columns(
    recording: R,
    *,
    hz: float | None = None,
    times: object = None,
    like: Recording | None = None,
    mode: None | str | list[str] | dict[str, str] = None,
    columns: str | None = None,
    time: str | None = None,
    time_unit: str | None = None,
    times_unit: str | None = None,
    offsets: str | None = None,
    start: None | float | str = None,
    end: None | float | str = None,
    align: bool = False,
    snap: float | None = None,
    max_gap: float | None = None,
    outside: str | None = None,
    duplicates: str | None = None,
    offset: float = 0.0,
    group: str | None = None,
    sort: bool = False,
    strict: bool = False,
    report: bool = False,
) -> R:
    """A recording of named columns at other times, every column by the rule for its name and type.

    The rules are those of ``tmaops resample`` (docs/resample_command.md): real numbers are linear, quaternions slerp,
    whole numbers, booleans and text keep the previous sample. The computation is in f64 with times in nanoseconds.

    Args:
        recording: a dictionary of arrays (NumPy, torch, JAX, CuPy, lists), a pandas or a polars frame. Arrays have one row
            for each timestamp and any further dimensions; others are passed on unchanged. The times are a pandas index of dates
            or with a usual name ("timestamp", "time", "t", "header.stamp", ...), else the array with such a name, else the only
            column of datetimes. Fields of structs, and of dictionaries in pandas, have rules of their own, as "imu.x".
        hz: targets at this rate, from the first timestamp to the last; or
        times: the targets: an array of times, or of datetimes; or
        like: the targets are the timestamps of this recording.
        mode: {"gripper": "previous", "state[3:7]": "slerp"}, or one mode for all real numbers.
        columns: only these, in this order, renamed: "x,y,z", "tx=p_x,*".
        time: name of the times. time_unit, times_unit: "s", "ms", "us" or "ns" of the recording's times and of `times`.
        offsets: name of the array of episode offsets; "offsets" and "episode_offsets" are found.
        start, end: only targets from and to this time, in seconds or ISO 8601. align: targets at multiples of the period.
        snap: a target this near to a sample, in seconds, takes that sample's values.
        max_gap: samples further apart than this, in seconds, have nothing between them.
        outside: targets outside the recording: "hold", "nan" (default), "extrapolate", "error", "drop".
        duplicates: samples at one time are an "error" (default), or the "last" wins.
        offset: seconds that are added to the recording's times, for a clock that is behind.
        group: name of a column of text or whole numbers. The rows of each value are an episode, which nothing is interpolated
            out of. In the result they stand together.
        sort: sort rows by time. strict: a warning is an error.
        report: return the pair (recording, Report).

    Returns:
        A recording of the same kind. Columns of frames keep their types: nullable ones, categories, time zones, lists and all
        others; a missing value stays missing. With targets that can have no data it has a column "valid". What looks wrong
        is a Python warning; what was assumed is logged to the logger "tmaops" as information.

    Raises:
        tmaops.Error: as E030 unsorted times, E032 equal times, E037 a mode that a column cannot have, E049
            no times (ValueErrors), E080 (a MemoryError).
    """
    options: dict[str, Any] = dict(locals())
    del options["recording"], options["report"]
    source = read(recording, time, group)
    options |= {"time": source.time, **targets_of(times, like)}
    result = _recording.resample(source.given, **options)
    made = write(recording, source, result)
    said = say(result, stacklevel=3) if report or result.warns or _log.isEnabledFor(logging.INFO) else None
    return (made, said) if report else made  # type: ignore[return-value]


def say(result: _recording.Result, stacklevel: int) -> Report:
    """The report of a result. What looks wrong becomes a Python warning, what was assumed is logged."""
    said = result.report
    looks_wrong, assumed = ([note["text"] for note in said[key]] for key in ("warnings", "notes"))
    for text in looks_wrong:
        warnings.warn(f"tmaops.resample_columns: {text}", stacklevel=stacklevel)
    for text in assumed:
        _log.info("resample_columns: %s", text)
    modes = [(column["name"], column["mode"]) for column in said["columns"]]
    return Report(modes, said["time"], said["quaternions"], looks_wrong, assumed, said)
