"""What happens to the columns of a data set. The library decides it (tmaops._recording) once, by the schema and the values of
the first episodes; what a data set alone has, numbers of video frames and lists of events, is decided here.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np
from tmaops import Error, _recording
from tmaops.dataset.clock import PICKED, Episodes
from tmaops.dataset.errors import Refused

#: The mode of a column of 0 and 1 with this name: its rows of 0 are no samples.
MASK = "valid"

#: Modes that the library does not have. "final" is previous, and the last target takes the last row. With "each" the elements of
#: every row's list go to the nearest target, once.
OWN = ("final", "each")
TAKEN = (*PICKED, *OWN, MASK)  # modes that take a row as it is
EVENTS = ("event", "events")
MOST_CHANNELS = 4096  # as the library has it: longer rows are images and scans
MOST_LETTERS = 64  # of a text that is no time

#: A column and the unit of its angles, as the library says them.
ANGLE = re.compile(r"(?:angle: (.*?)|'(.*)' jumps by a turn.*?) in (rad|deg)\b")

#: Modes over the interval of a target.
BACK = ("sum", "min", "max", "any", "count")  # which look back to the target before
INTERVAL = (*BACK, "mean", "lowpass")

#: Why the library takes rows as they are.
WHOLE = {"integers", "booleans", "elements of another type", "text", "times"}

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

    @property
    def over_intervals(self) -> bool:
        return any(part.mode in INTERVAL for part in self.parts)

    def text(self) -> str:
        return ", ".join(f"{channels} {mode}".strip() for channels, mode in self.modes("").items())

    def modes(self, column: str) -> dict[str, str]:
        """The rule as what a caller would ask for: {"state[0:3]": "linear", "state[3:7]": "slerp"}."""
        if len(self.parts) == 1:
            return {column: self.parts[0].mode}
        return {f"{column}[{p.first}:{p.first + p.count}]": p.mode for p in self.parts}


class Known(NamedTuple):
    """What is known of a column: its type in words, its channels (None: it holds no real numbers), and the values of its
    first rows (S) or (S, channels), NaN where there is none; None of those that are not looked at, images and scans among them.
    """

    name: str
    kind: str
    channels: int | None
    values: np.ndarray | None = None
    channel_names: list[str] | None = None
    nulls: int = 0  # among the values


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
        columns = {name: [rule.parts, rule.why] for name, rule in self.columns.items()}
        return {"columns": columns, "quaternions": self.quaternions}

    @staticmethod
    def of_json(found: dict[str, Any]) -> "Rules":
        columns = {name: Rule(tuple(Part(*p) for p in parts), why) for name, (parts, why) in found["columns"].items()}
        return Rules(columns, [[(name, channel) for name, channel in four] for four in found["quaternions"]])

    def partners(self, column: str) -> tuple[str, ...]:
        """The columns that are resampled with it, as the four of a quaternion; itself among them."""
        fours = (tuple(dict.fromkeys(name for name, _ in four)) for four in self.quaternions)
        return next((names for names in fours if column in names), (column,))

    def together(self, columns: Iterable[str]) -> list[tuple[str, ...]]:
        """These columns in the groups that are resampled together."""
        return list(dict.fromkeys(self.partners(name) for name in columns))

    def spoken(self, place: dict[str, str], width: dict[str, int]) -> list[str]:
        """The modes of computed columns as the library takes them; place: what it calls each, width: its channels."""
        said = [
            f"{channels}={mode}"
            for name in place
            for channels, mode in self[name].modes(place[name]).items()
            if mode != "slerp" and (mode != "linear" or "asked for" in self[name].why)
        ]
        for four in self.quaternions:
            if four[0][0] in place:
                names = [place[name] + (f"[{at}]" if width[name] > 1 else "") for name, at in four]
                said.append(",".join(names) + "=slerp")
        return said


class Decided(NamedTuple):
    """The rules and the times of columns: {"name", "unit", "form", "unit_by", ...}, and what is to be said."""

    rules: Rules
    time: dict[str, Any]
    notes: list[str]
    warnings: list[str]
    known: list[Known]
    offsets: Iterable[int] | None

    def too_fast(self, shares: dict[str, float], hz: float) -> list[str]:
        """Warnings of what fewer targets than samples cannot hold. shares: targets per sample of each column; hz: per second."""
        said, names = [], (self.time["name"], self.time.get("second_name"))
        times = [_given(each, 0) for each in self.known if each.name in names]
        for share in sorted({share for share in shares.values() if share > 0}):
            real = [each for each in self.known if each.channels and shares.get(each.name) == share]
            real = [each for each in real if each.values is not None and each.name not in names]
            real = [each for each in real if self.rules[each.name].taken in (None, *PICKED)]
            if not real:
                continue
            place = {each.name: f"column {i}" for i, each in enumerate(real)}
            columns = [_recording.column(place[each.name], each.values) for each in real]
            counted = [_recording.column("time", np.arange(len(real[0].values), dtype=np.float64))]
            asked = {"hz": hz, "time_unit": self.time["unit"]} if times else {"hz": share}
            asked |= {"time": names[0] if times else "time", "offsets": self.offsets}
            asked |= {"sort": True, "duplicates": "last"}
            modes = self.rules.spoken(place, {each.name: each.channels for each in real})
            found = _recording.Rules([*columns, *(times or counted)], mode=modes, **asked)
            for note in found.warnings:
                if note.id == "faster_than_targets":
                    text = re.sub(r"\bcolumn (\d+)(?=[\[ =,])", lambda match: real[int(match[1])].name, note.text)
                    said.append(f"{text} [{note.id}]")
        return said


def decide(
    known: list[Known],
    asked: dict[str, str],
    *,
    time: str | None = None,
    unit: str | None = None,
    units: Mapping[str, str] | None = None,
    offsets: Iterable[int] | None = None,
    rows: int | None = None,
) -> Decided:
    """The rules of columns that begin with the rows of some episodes, which begin at `offsets`.

    asked: name, pattern, "name[a:b]", "a,b,c,d" or "type:pattern" -> mode; the last that fits wins. time: the name of the times;
    without it the library finds them among the columns. unit: of the times, as asked for; units: what the data set says of the
    units of its columns. rows: their number, where no column is the time and samples are counted.
    """
    count = rows or next((len(each.values) for each in known if each.values is not None), 0)
    columns = [_given(each, count) for each in known]
    if rows is not None:
        time, unit = "counted" + "_" * max((len(each.name) for each in known), default=0), "ns"
        columns.append(_recording.column(time, np.arange(rows, dtype=np.int64)))
    modes: dict[str, str] = {}  # as the library takes them -> as they were asked for
    whole: dict[str, str] = {}  # of columns whose mode the library does not have
    options = {"time": time, "offsets": offsets, "sort": True, "duplicates": "last", "where": "the first rows"}
    try:
        found = _recording.Rules(columns, time_unit=unit, **options)
        others = [each for each in known if each.name not in (found.time["name"], found.time.get("second_name"))]
        for pattern, mode in asked.items():
            for said in _asked(pattern, mode, others, whole):
                modes.pop(said, None)
                modes[said] = pattern
        if modes:
            found = _recording.Rules(columns, time_unit=unit, mode=list(modes), **options)
        said = None if unit else (units or {}).get(found.time["name"])
        if said is not None:
            found = _recording.Rules(columns, time_unit=said, mode=list(modes), **options)
            found.time["unit_by"] = "as the data set says"
    except Error as error:
        pattern = modes.get(error.where.removeprefix("--mode "))
        needed = f"{error.needed} ({error.mend})" if error.name == "times_not_sorted" else error.needed
        refused = Refused(f"mode of {pattern}" if pattern else error.where, error.got, needed)
        refused.reason = error.name
        raise refused from error
    notes = [note.text for note in found.notes if not note.text.startswith("time:")]  # a format says it
    warnings = [f"{note.text} [{note.id}]".replace("--times-array", "--time") for note in found.warnings]
    rules = _rules(known, found, whole)
    for name, kind, *_ in known:
        if name == found.time["name"] and kind in ("float16", "float32"):
            warnings.append(f"'{name}' holds {kind} seconds: their resolution gets coarser with time [time_coarse]")
        elif kind.startswith("[(") and rules[name].why != "asked for":
            warnings.append(f"'{name}' has fields and is not interpolated: an array of each field is [fields_as_rows]")
    return Decided(rules, found.time, notes, warnings, known, offsets)


def decide_of_streams(known: list[Known], asked: dict[str, str]) -> Decided:
    """The rules of columns of several streams: those with fewer rows go on with their last one."""
    rows = np.arange(max((len(each.values) for each in known if each.values is not None), default=1))
    longer = [
        each if each.values is None else each._replace(values=each.values[np.minimum(rows, len(each.values) - 1)])
        for each in known
    ]
    return decide(longer, asked, rows=rows.size)


def find_time(
    arrays: dict[str, np.ndarray], name: str | None, unit: str | None, units: Mapping[str, str]
) -> dict[str, Any] | None:
    """The time among arrays of one dimension, as Decided has it: of this or of a usual name; None where there is none."""
    if name is not None and name not in arrays:
        raise Refused("time", repr(name), "one of " + ", ".join(arrays))
    known = [Known(each, str(v.dtype), 1 if v.dtype.kind == "f" else None, v) for each, v in arrays.items()]
    try:
        found = decide(known, {}, time=name, unit=unit, units=units) if known else None
        ids = ("[unit_ambiguous]", "[unit_unused]", "[zone_assumed]", "[other_time_name]", "[time_coarse]")
        ids += ("[date_order]", "[past_midnight]")
        return found and found.time | {"warnings": [said for said in found.warnings if said.endswith(ids)]}
    except Refused as error:
        if error.reason != "array_missing":
            raise
        return None


def warnings_of_length(name: str, rows: int, samples: int) -> list[str]:
    """What the library says of an array of so many rows beside so many samples."""
    given = [_recording.column("time", np.arange(samples)), _recording.rows(name, rows)]
    found = _recording.Rules(given, time="time", time_unit="ns").warnings
    return [f"{note.text.partition(': ')[2]} [{note.id}]" for note in found if note.id == "other_length"]


def _given(known: Known, rows: int) -> _recording.Given:
    """A column as the library takes it."""
    names, values = known.channel_names, known.values
    if values is None:
        return _recording.rows(known.name, rows, missing=known.nulls)
    width = 1 if values.ndim == 1 else values.shape[1]
    return _recording.column(known.name, values, channel_names=names if names and len(names) == width else None)


def _asked(pattern: str, mode: str, known: list[Known], whole: dict[str, str]) -> Iterator[str]:
    """A wish as the library takes it; into `whole` goes what the library does not have. Without a pattern: of real numbers."""
    if not pattern and mode not in OWN:
        yield mode
        return
    pattern = pattern or "*"
    where, chosen, names = f"mode of {pattern}", [], {each.name for each in known}
    several = [pattern] if pattern.startswith("type:") or pattern in names else pattern.split(",")
    for one in several:
        name = one if one in names else re.sub(r"\[\d*:?\d*\]$", "", one)
        of_type, like = name.startswith("type:"), name.removeprefix("type:")
        fits = [each for each in known if each.name == name or fnmatchcase(each.kind if of_type else each.name, like)]
        if not fits:
            raise Refused(where, "no such column", "one of " + ", ".join(each.name for each in known))
        for each in fits:
            if each.name != name and not _takes(each, mode):  # it means those that can have the mode
                continue
            unseen = each.channels is None and (each.values is None or each.nulls)
            if unseen and mode not in TAKEN and not _takes(each, mode):
                raise Refused(where, f"{mode} for {each.kind}", "previous, next or nearest")
            whole.pop(each.name, None)
            if mode not in OWN and (not each.channels or each.values is not None or mode in PICKED):
                chosen.append(each.name + one[len(name) :])
                continue
            if one != name:
                raise Refused(where, mode, "a whole column: rows are taken as they are")
            if mode == "each" and not _takes(each, mode):
                raise Refused(where, f"{mode} for {each.kind}", "a column of lists")
            whole[each.name] = mode
            yield f"{each.name}=previous"
    if pattern == "*" and mode not in OWN:  # which the library has, too
        chosen = ["*"]
    yield from (f"{one}={mode}" for one in ([",".join(chosen)] if len(several) > 1 else chosen))


def _takes(known: Known, mode: str) -> bool:
    """Whether a column can have a mode."""
    if mode in (*PICKED, "final"):
        return True
    if mode == "each":
        return known.kind.startswith(("list", "large_list"))
    whole = ("min", "max", "any") if known.kind.startswith("bool") else ("sum", "count", "min", "max", "any")
    is_whole = known.kind.startswith(("bool", "int", "uint"))
    return known.values is not None and (known.channels is not None or is_whole and mode in whole)


def _rules(known: list[Known], found: _recording.Rules, whole: dict[str, str]) -> Rules:
    """What the library decided, by columns of the data set."""
    said = [ANGLE.match(note.text) for note in [*found.notes, *found.warnings] if note.id.startswith("angle")]
    units = {match[1] or match[2]: match[3] for match in said if match}
    channels: dict[str, list[tuple[int, int, str, str]]] = {}
    for each in found.columns:
        mode = each["mode"]
        if mode == "angle" and each["name"] in units:
            mode += ":" + units[each["name"]]
        part = (each["first"], each["count"], mode, each["reason"])
        channels.setdefault(known[each["index"]].name, []).append(part)
    fours = [[(known[index].name, channel) for index, channel in four] for four in found.report["slerp"]]
    rules = Rules()
    for each in known:
        if each.name in channels:
            rules.columns[each.name] = _rule(each, sorted(channels[each.name]), whole.get(each.name))
        elif each.name == MASK and found.time["name"] != MASK:
            rules.columns[MASK] = Rule((Part(0, 1, MASK),), "rows of 0 are no samples")
    rules.quaternions = [four for four in fours if all(rules[name].taken is None for name, _ in four)]
    return rules


def _rule(known: Known, parts: list[tuple[int, int, str, str]], whole: str | None) -> Rule:
    if whole is not None:
        return Rule((Part(0, known.channels or 1, whole),), "asked for")
    if known.channels and known.values is None:
        mode, why = parts[0][2:]
        return Rule((Part(0, known.channels, mode),), "asked for" if why == "--mode" else "an image or a scan")
    last = known.name.lower().replace("/", ".").split(".")[-1]
    reasons = dict.fromkeys(reason for *_, reason in parts)
    if known.channels is None and reasons.keys() <= WHOLE:
        if "int" in known.kind and last.split("_")[-1] in ("frame", "frames") or last in FRAMES:
            return Rule((Part(0, 1, "nearest"),), "the number of a video frame by its name")
        if last.split("_")[-1] in EVENTS and known.kind.startswith(("list", "large_list")):
            return Rule((Part(0, 1, "each"),), "lists of events by their name")
        return Rule((Part(0, 1, "previous"),), f"{known.kind} is not interpolated")
    made: list[Part] = []
    for first, count, mode, _ in parts:
        if made and made[-1].mode == mode:
            first, count = made[-1].first, made.pop().count + count
        made.append(Part(first, count, mode))
    said = ", ".join(reason for reason in reasons if reason != "real numbers").replace("--mode", "asked for")
    return Rule(tuple(made), said or "real numbers")


_decided: dict[tuple, _recording.Rules] = {}

#: What is linear by the first rows of a data set and jumps by a turn later -> a warning.
jumps: dict[str, str] = {}


def compute(numbers: dict[str, np.ndarray], rules: Rules, episodes: Episodes) -> dict[str, np.ndarray]:
    """Columns (S, channels) at the targets of episodes by the library: (T, channels). Raises tmaops.Error."""
    place = {name: f"c{i}" for i, name in enumerate(numbers)}
    modes = rules.spoken(place, {name: values.shape[1] for name, values in numbers.items()})
    columns = [_recording.column("time", episodes.times)]
    for name, values in numbers.items():
        columns.append(_recording.column(place[name], values if values.shape[1] > 1 else values[:, 0]))
    key = (tuple(modes), tuple((column.type, column.shape[1:]) for column in columns))
    if key not in _decided:  # the modes say all, so that one row is enough
        one = [column._replace(values=column.values[:1], shape=(1, *column.shape[1:])) for column in columns]
        _decided[key] = _recording.Rules(one, mode=modes, time="time", time_unit="ns", duplicates="last")
    max_gap = None if episodes.max_gap is None else episodes.max_gap / 1e9
    result = _decided[key].resample(columns, max_gap=max_gap, **episodes.asked)
    for note in result.report["warnings"] if result.warns else ():
        if note["id"] == "angle_later":
            text = re.sub(r"'c(\d+)", lambda match: "'" + [*numbers][int(match[1])], note["text"])
            said = text.replace(" and is", f" in {episodes.names[0]} and is", 1)
            jumps.setdefault(text, f"{said} [angle_later]")
    found = {each.source: each.values for each in result.arrays}
    return {name: found[i].reshape(episodes.targets.size, -1) for i, name in enumerate(numbers, 1)}
