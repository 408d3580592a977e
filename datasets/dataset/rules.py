"""What happens to the columns of a data set. The library decides it (tmaops._recording) once, by the schema and the values of
the first episodes; what a data set alone has, numbers of video frames and lists of events, is decided here.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from tmaops import Error, _recording
from tmaops.dataset.errors import Refused

#: Modes that take a row as it is. "final" is previous, and the last target takes the last row. With "each" the elements of every
#: row's list go to the nearest target, once.
TAKEN = ("previous", "next", "nearest", "final", "each")
EVENTS = ("event", "events")

#: A column and the unit of its angles, as the library says them.
ANGLE = re.compile(r"(?:angle: (.*?)|'(.*)' jumps by a turn.*?) in (rad|deg)\b")

#: Modes over the interval of a target.
INTERVAL = ("mean", "sum", "min", "max", "any", "count", "lowpass")

#: Numbers of video frames, beside names that end with _frame.
FRAMES = ("frame_index", "image_index", "video_index")


class Part(NamedTuple):
    """Channels first to first + count - 1 of a column and their mode."""

    first: int
    count: int
    mode: str


@dataclass
class Rule:
    """How one column is resampled: a mode for all rows taken as they are, or parts that cover its channels in order."""

    parts: tuple[Part, ...]
    why: str

    @property
    def taken(self) -> str | None:
        """The mode, where every row is taken as it is; None where numbers are computed."""
        return self.parts[0].mode if self.parts[0].mode in TAKEN and len(self.parts) == 1 else None

    def text(self) -> str:
        if len(self.parts) == 1:
            return self.parts[0].mode
        return ", ".join(f"[{p.first}:{p.first + p.count}] {p.mode}" for p in self.parts)

    def modes(self, column: str) -> dict[str, str]:
        """The rule as what a caller would ask for: {"state[0:3]": "linear", "state[3:7]": "slerp"}."""
        if len(self.parts) == 1:
            return {column: self.parts[0].mode}
        return {f"{column}[{p.first}:{p.first + p.count}]": p.mode for p in self.parts}


class Known(NamedTuple):
    """What is known of a column: its type in words, its channels (None: it holds no real numbers), and the values of its
    first rows (S) or (S, channels), NaN where there is none; None of those that are not looked at.
    """

    name: str
    kind: str
    channels: int | None
    values: np.ndarray | None = None
    channel_names: list[str] | None = None


@dataclass
class Rules:
    """The rules of a data set's columns. quaternions: the four channels of each, as (column, channel)."""

    columns: dict[str, Rule] = field(default_factory=dict)
    quaternions: list[list[tuple[str, int]]] = field(default_factory=list)

    def __getitem__(self, column: str) -> Rule:
        return self.columns[column]

    def quaternions_in(self, column: str) -> list[int]:
        """Where quaternions begin in a column that has all of their channels."""
        return [four[0][1] for four in self.quaternions if all(name == column for name, _ in four)]

    def json(self) -> dict[str, Any]:
        columns = {name: [[list(part) for part in rule.parts], rule.why] for name, rule in self.columns.items()}
        return {"columns": columns, "quaternions": self.quaternions}

    @staticmethod
    def of_json(found: dict[str, Any]) -> "Rules":
        columns = {name: Rule(tuple(Part(*p) for p in parts), why) for name, (parts, why) in found["columns"].items()}
        return Rules(columns, [[(name, channel) for name, channel in four] for four in found["quaternions"]])

    @cached_property
    def partners(self) -> dict[str, list[str]]:
        """Column -> the columns that are resampled with it, as the four of a quaternion; itself among them."""
        found: dict[str, list[str]] = {}
        for four in self.quaternions:
            names = list(dict.fromkeys(name for name, _ in four))
            found |= dict.fromkeys(names, names)
        return found

    def modes(self, place: dict[str, str], width: dict[str, int]) -> list[str]:
        """The modes of computed columns as the library takes them; place: what it calls each, width: its channels."""

        def channel(name: str, at: int) -> str:
            return place[name] if width[name] == 1 else f"{place[name]}[{at}]"

        said = [
            f"{place[name]}[{p.first}:{p.first + p.count}]={p.mode}"
            if len(self[name].parts) > 1
            else f"{place[name]}={p.mode}"
            for name in place
            for p in self[name].parts
            if p.mode != "slerp"
        ]
        for four in self.quaternions:
            if four[0][0] in place:
                said.append(",".join(channel(name, at) for name, at in four) + "=slerp")
        return said


class Decided(NamedTuple):
    """The rules and the times of columns: {"name", "unit", "form", "unit_by", ...}, and what is to be said."""

    rules: Rules
    time: dict[str, Any]
    notes: list[str]
    warnings: list[str]


def decide(
    known: list[Known],
    asked: dict[str, str],
    *,
    time: str | None = None,
    unit: str | None = None,
    offsets: Iterable[int] | None = None,
    rows: int | None = None,
) -> Decided:
    """The rules of columns that begin with the rows of some episodes, which begin at `offsets`.

    asked: name, pattern, "name[a:b]", "a,b,c,d" or "type:pattern" -> mode; the last that fits wins. time: the name of the times;
    without it the library finds them among the columns. rows: their number, where no column is the time and samples are
    counted.
    """
    places = [place for each in known for place in _spread(each)]
    count = rows or next((len(each.values) for each in known if each.values is not None), 0)
    columns = [
        _recording.rows(place.name, count) if place.values is None else _recording.column(place.name, place.values)
        for place in places
    ]
    if rows is not None:
        time, unit = "counted" + "_" * max((len(each.name) for each in known), default=0), "ns"
        columns.append(_recording.column(time, np.arange(rows, dtype=np.int64)))
    modes: dict[str, str] = {}  # as the library takes them -> as they were asked for
    whole: dict[str, str] = {}
    for pattern, mode in asked.items():
        for said in _asked(pattern, mode, known, places, whole):
            modes.pop(said, None)
            modes[said] = pattern
    options = {"time": time, "time_unit": unit, "offsets": offsets, "sort": True, "duplicates": "last"}
    options["where"] = "the first rows"
    try:
        found = _that_fits(columns, mode=list(modes), **options)
    except Error as error:
        pattern = modes.get(error.where.removeprefix("--mode "))
        where = f"mode of {pattern}" if pattern else error.where
        refused = Refused(where, error.got, error.needed)
        refused.reason = error.name
        raise refused from error
    notes = [note.text for note in found.notes if not note.text.startswith("time:")]  # a format says it
    warnings = [f"{note.text} [{note.id}]".replace("--times-array", "--time") for note in found.warnings]
    return Decided(_rules(known, places, found, whole), found.time, notes, warnings)


def _that_fits(columns: list[_recording.Given], time_unit: str | None, **options: Any) -> _recording.Rules:
    """The rules, with times in the largest unit in which they are within 64 bits of nanoseconds."""
    for unit in (None, "ms", "us", "ns") if time_unit is None else ():
        try:
            found = _recording.Rules(columns, time_unit=unit, **options)
            found.time["unit_by"] = "usual" if unit else found.time["unit_by"]
            return found
        except Error as error:
            if error.name != "time_overflow":
                raise
    return _recording.Rules(columns, time_unit=time_unit, **options)


def find_time(arrays: dict[str, np.ndarray], name: str | None, unit: str | None) -> dict[str, Any] | None:
    """The time among arrays of one dimension: of this name, or of a usual one; None where there is none. As Decided has it."""
    if name is not None and name not in arrays:
        raise Refused("time", repr(name), "one of " + ", ".join(arrays))
    known = [
        Known(each, str(values.dtype), 1 if values.dtype.kind == "f" else None, values)
        for each, values in arrays.items()
    ]
    try:
        return decide(known, {}, time=name, unit=unit).time if known else None
    except Refused as error:
        if error.reason != "array_missing":
            raise
        return None


class _Place(NamedTuple):
    """A column as the library sees it: a column of the data set, or one channel of one whose channels have names."""

    name: str
    column: str
    channel: int
    values: np.ndarray | None


def _spread(known: Known) -> Iterator[_Place]:
    names, values = known.channel_names, known.values
    if names and values is not None and values.ndim == 2 and len(set(names)) == len(names) == values.shape[1]:
        for channel, name in enumerate(names):
            yield _Place(f"{known.name}.{name}", known.name, channel, np.ascontiguousarray(values[:, channel]))
    else:
        yield _Place(known.name, known.name, 0, values)


def _asked(pattern: str, mode: str, known: list[Known], places: list[_Place], whole: dict[str, str]) -> Iterator[str]:
    """A wish as the library takes it. whole: takes the modes of columns whose rows are taken."""
    several = pattern.split(",") if not pattern.startswith("type:") else [pattern]
    chosen = []
    for name, span in (_span(one) for one in several):
        fits = [each for each in known if _fits(name, each)]
        if not fits:
            raise Refused(f"mode of {pattern}", "no such column", "one of " + ", ".join(each.name for each in known))
        for each in fits:
            if mode in TAKEN:
                if span is not None:
                    raise Refused(f"mode of {pattern}", mode, "a whole column: rows are taken as they are")
                if mode == "each" and not each.kind.startswith(("list", "large_list")):
                    raise Refused(f"mode of {pattern}", f"{mode} for {each.kind}", "a column of lists")
                whole[each.name] = mode
                continue
            if mode in INTERVAL and each.channels is not None:
                if span is not None:
                    raise Refused(f"mode of {pattern}", mode, "a whole column")
                whole[each.name] = mode
                continue
            whole.pop(each.name, None)
            if each.channels is None and each.name != name:
                whole[each.name] = "previous" if each.values is None else whole.get(each.name, "previous")
                continue  # a pattern means those that can have the mode
            if each.channels is None and each.values is None:
                raise Refused(f"mode of {pattern}", f"{mode} for {each.kind}", "previous, next or nearest")
            chosen.append(_selector(each, span, places, pattern))
    if chosen and len(several) > 1:
        yield ",".join(chosen) + f"={mode}"
    else:
        yield from (f"{one}={mode}" for one in chosen)


def _selector(known: Known, span: range | None, places: list[_Place], pattern: str) -> str:
    names = [place.name for place in places if place.column == known.name]
    channels = known.channels or 1
    if span is not None and not (0 <= span.start < span.stop <= channels):
        text = f"[{span.start}:{span.stop}] of {channels} channels"
        raise Refused(f"mode of {pattern}", text, "channels of the column")
    if len(names) > 1:
        return ",".join(names[channel] for channel in span or range(channels))
    return known.name if span is None or channels == 1 else f"{known.name}[{span.start}:{span.stop}]"


def _span(pattern: str) -> tuple[str, range | None]:
    """ "state[3:7]" is ("state", range(3, 7)); without brackets all channels, None."""
    if not pattern.endswith("]") or "[" not in pattern or pattern.startswith("type:"):
        return pattern, None
    name, text = pattern[:-1].rsplit("[", 1)
    try:
        ends = [int(part) for part in text.split(":")]
        return name, range(ends[0], ends[1] if len(ends) == 2 else ends[0] + 1)
    except ValueError:
        raise Refused(f"mode of {pattern}", f"[{text}]", "channels as [a:b] or [a]") from None


def _fits(pattern: str, known: Known) -> bool:
    if pattern.startswith("type:"):
        return fnmatchcase(known.kind, pattern.removeprefix("type:"))
    return known.name == pattern or fnmatchcase(known.name, pattern)


def _rules(known: list[Known], places: list[_Place], found: _recording.Rules, whole: dict[str, str]) -> Rules:
    """What the library decided, by columns of the data set."""
    by_name = {place.name: place for place in places}
    said = [ANGLE.match(note.text) for note in [*found.notes, *found.warnings] if note.id.startswith("angle")]
    units = {match[1] or match[2]: match[3] for match in said if match}
    channels: dict[str, list[tuple[int, int, str, str]]] = {}
    single: list[_Place] = []  # columns of one channel that are a part of a quaternion
    fours: list[list[tuple[str, int]]] = []
    for each in found.columns:
        place = places[each["index"]]
        mode = each["mode"]
        if mode == "angle":
            mode += ":" + units[each["name"]] if each["name"] in units else ""
        channels.setdefault(place.column, []).append(
            (place.channel + each["first"], each["count"], mode, each["reason"])
        )
        if mode == "slerp" and each["count"] == 1:
            single.append(place)
        elif mode == "slerp":
            begin = place.channel + each["first"]
            fours += [[(place.column, k + i) for i in range(4)] for k in range(begin, begin + each["count"], 4)]
    for each in found.quaternions:
        four = [by_name[name] for name in each["columns"].split(" ") if name in by_name]
        if len(four) == 4 and all(place in single for place in four):
            fours.append([(place.column, place.channel) for place in four])
            single = [place for place in single if place not in four]
    fours += [[(p.column, p.channel) for p in single[k : k + 4]] for k in range(0, len(single), 4)]
    rules = Rules()
    for each in known:
        if each.name in channels:
            rules.columns[each.name] = _rule(each, sorted(channels[each.name]), whole.get(each.name))
    rules.quaternions = [four for four in fours if all(rules[name].taken is None for name, _ in four)]
    return rules


def _rule(known: Known, parts: list[tuple[int, int, str, str]], whole: str | None) -> Rule:
    if whole is not None:
        return Rule((Part(0, known.channels or 1, whole),), "asked for")
    last = known.name.lower().replace("/", ".").split(".")[-1]
    reasons = {reason for *_, reason in parts}
    if known.channels is None and reasons <= {"integers", "booleans", "elements of another type", "text", "times"}:
        if "int" in known.kind and last.split("_")[-1] in ("frame", "frames") or last in FRAMES:
            return Rule((Part(0, 1, "nearest"),), "the number of a video frame by its name")
        if last.split("_")[-1] in EVENTS and known.kind.startswith(("list", "large_list")):
            return Rule((Part(0, 1, "each"),), "lists of events by their name")
        return Rule((Part(0, 1, "previous"),), f"{known.kind} is not interpolated")
    made: list[Part] = []
    for first, count, mode, _ in parts:
        if made and made[-1].mode == mode:
            made[-1] = Part(made[-1].first, made[-1].count + count, mode)
        else:
            made.append(Part(first, count, mode))
    said = [reason for reason in dict.fromkeys(reason for *_, reason in parts) if reason != "real numbers"]
    return Rule(tuple(made), ", ".join(said).replace("--mode", "asked for") or "real numbers")


def type_name(kind: pa.DataType | str) -> str:
    """The name of a type for people: float64 where Arrow says double."""
    return {"halffloat": "float16", "float": "float32", "double": "float64"}.get(str(kind), str(kind))


def channels_of(kind: pa.DataType) -> int | None:
    """Channels of a column of real numbers: 1 for a scalar, n for a list of n. 0: a list of any length. None: not real."""
    if pa.types.is_floating(kind):
        return 1
    if pa.types.is_fixed_size_list(kind) and pa.types.is_floating(kind.value_type):
        return kind.list_size
    if (pa.types.is_list(kind) or pa.types.is_large_list(kind)) and pa.types.is_floating(kind.value_type):
        return 0
    return None


def brackets(times: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows at or before and at or after each target; both clamped to the episode. times (S) and targets (T) increase."""
    found = np.searchsorted(times, targets, side="right") - 1
    before = np.maximum(found, 0)
    return before, np.minimum(found + (times[before] != targets), times.size - 1)


def rows_of(
    mode: str, times: np.ndarray, targets: np.ndarray, around: tuple[np.ndarray, np.ndarray] | None = None
) -> np.ndarray:
    """The row that each target takes: previous, next, the nearest (of two equally near the earlier), or final, where the last
    target takes the last row. around: their brackets(), where they are known.
    """
    before, after = brackets(times, targets) if around is None else around
    if mode == "previous":
        return before
    if mode == "next":
        return after
    if mode == "final":
        return np.append(before[:-1], times.size - 1)[: targets.size]
    return np.where(times[after] - targets < targets - times[before], after, before)


_decided: dict[tuple, _recording.Rules] = {}


def compute(
    numbers: dict[str, np.ndarray],
    rules: Rules,
    times: np.ndarray,
    offsets: np.ndarray,
    targets: np.ndarray,
    target_offsets: np.ndarray,
) -> dict[str, np.ndarray]:
    """Columns (S, channels) of packed episodes at times (S) to targets (T), int64 nanoseconds, by the library: (T, channels).

    offsets, target_offsets: N + 1 rows and targets where episodes begin. Raises tmaops.Error.
    """
    place = {name: f"c{i}" for i, name in enumerate(numbers)}
    modes = rules.modes(place, {name: values.shape[1] for name, values in numbers.items()})
    columns = [_recording.column("time", times)]
    for name, values in numbers.items():
        columns.append(_recording.column(place[name], values if values.shape[1] > 1 else values[:, 0]))
    key = (tuple(modes), tuple((column.type, column.shape[1:]) for column in columns))
    options = {"time": "time", "time_unit": "ns", "offsets": offsets, "duplicates": "last"}
    if key not in _decided:  # the modes say all, so that one row is enough
        one = [column._replace(values=column.values[:1], shape=(1, *column.shape[1:])) for column in columns]
        _decided[key] = _recording.Rules(one, mode=modes, time="time", time_unit="ns", duplicates="last")
    result = _decided[key].resample(
        columns,
        **options,
        times=_recording.column("time", targets),
        times_unit="ns",
        target_offsets=target_offsets,
        outside="hold",
    )
    found = {each.source: each.values for each in result.arrays}
    return {name: found[i].reshape(targets.size, -1) for i, name in enumerate(numbers, 1)}
