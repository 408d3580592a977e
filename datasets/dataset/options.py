"""What a caller may ask for, from arguments, from a YAML file and from the command line."""

import os
from dataclasses import MISSING, asdict, dataclass, field, fields
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import numpy as np
from tmaops import Error, _recording
from tmaops.dataset import clock
from tmaops.dataset.errors import Refused
from tmaops.dataset.places import place, write_whole

if TYPE_CHECKING:
    from tmaops.dataset.formats import Plan

#: Options that do not go into a file of rules: the rate, and what is no property of the data set.
NOT_SAVED = ("hz", "strict", "copy")

#: Options that are names with values, and how a value is read.
PAIRS = {"modes": str, "max_gap": float, "latency": float}

#: Words for the command line that are longer than a line.
MODES = "linear, cubic, slerp, previous, next, nearest or final; COLUMN may be a pattern (observation.*), "
MODES += "a type (type:int*) or have channels (state[3:7])"
GAPS = "targets strictly between two samples further apart are null; STREAM may be a pattern"
LATE = "how late the timestamps of a stream are; STREAM may be a pattern"
TOPICS = "of recordings: those to take (patterns); with a leading - those to leave out (--topics=-/tf,-/camera/*)"


def _option(usual: Any, words: str, metavar: str | None = None, **argument: Any) -> Any:
    """An option with its words for the command line, and what else argparse is told of it."""
    metadata = {"help": words} | ({"metavar": metavar} if metavar else {}) | argument
    if isinstance(usual, (dict, list)):
        return field(default_factory=type(usual), metadata=metadata)
    return field(default=usual, metadata=metadata)


def _flag(words: str) -> Any:
    return _option(False, words, action="store_true", default=None)


@dataclass
class Options:
    """What was asked for; the same options and input give the same bytes."""

    hz: str = _option(MISSING, "targets per second: 30, 29.97, 30000/1001", required=True)
    modes: dict[str, str] = _option({}, MODES, "COLUMN=MODE", action="append")
    max_gap: Any = _option(None, GAPS, "[STREAM=]SECONDS", action="append")  # seconds, or stream -> seconds
    latency: dict[str, float] = _option({}, LATE, "STREAM=SECONDS", action="append")
    episode_column: str | None = _option(None, "of tables; of HDF5 a pattern of the groups that are episodes", "NAME")
    time_column: str | None = _option(None, "as --time, also of a column that is called header or record", "NAME")
    time_unit: str | None = _option(None, "of the times", choices=list(clock.NANOSECONDS))
    input_hz: str | None = _option(None, "samples per second of episodes without timestamps")
    topics: list[str] = _option([], TOPICS, "A,B")
    times: str = _option("header", "of recordings: stamps, or the time of recording", choices=["header", "record"])
    offset: float = _option(0.0, "added to all timestamps", "SECONDS", type=float)
    sort: bool = _flag("samples of an episode into the order of their times")
    duplicates: str = _option("error", "of equal timestamps: refuse, or the last one wins", choices=["error", "last"])
    snap: float = _option(0.0, "a target at most this far from a sample takes that sample", "SECONDS", type=float)
    start: str | None = _option(None, "seconds of the recording's clock, or an ISO 8601 time", "TIME")
    end: str | None = _option(None, "seconds of the recording's clock, or an ISO 8601 time", "TIME")
    align: bool = _flag("targets at multiples of the period")
    strict: bool = _flag("a warning is an error")
    copy: bool = _flag("copy videos, which are otherwise linked to the source's")

    def __post_init__(self) -> None:
        self.hz = str(clock.rate(self.hz))
        self.input_hz = str(clock.rate(self.input_hz)) if self.input_hz else None
        if not isinstance(self.max_gap, dict):
            self.max_gap = {} if self.max_gap is None else {"*": self.max_gap}
        seconds = {"offset": self.offset, "snap": self.snap}
        for name, value in [*self.max_gap.items(), *self.latency.items(), *seconds.items()]:
            if not isinstance(value, (int, float)) or not abs(value) < 1e9:
                raise Refused(f"seconds of {name}", repr(value), "a number")
        if any(not gap > 0 for gap in self.max_gap.values()):
            raise Refused("max_gap", repr(self.max_gap), "seconds above 0")
        if self.snap < 0:
            raise Refused("snap", repr(self.snap), "seconds from 0")
        for option in fields(self):
            value, known = getattr(self, option.name), option.metadata.get("choices")
            known = (True, False) if "action" in option.metadata and option.default is False else known
            if known and value is not None and value not in known:
                raise Refused(option.name, repr(value), "one of " + ", ".join(map(str, known)))
        if isinstance(self.topics, str):
            self.topics = [topic.strip() for topic in self.topics.split(",") if topic.strip()]
        self.start, self.end = (None if end is None else str(end) for end in (self.start, self.end))

    def episodes(self, times: np.ndarray, rows: np.ndarray, names: list[str], stream: str = ".") -> clock.Episodes:
        """N episodes of so many rows whose times (S) are in order, at their targets. Refuses what is out of order by row."""
        if not rows.all():
            raise Refused(names[int(np.argmin(rows))], "no rows", "at least one row")
        asked = {name: getattr(self, name) for name in ("start", "end", "align", "snap", "duplicates")}
        asked |= {"hz": float(clock.rate(self.hz)), "time_unit": "ns", "outside": "hold"}
        asked |= {"offsets": np.append(0, np.cumsum(rows)), "where": None if names[1:] else names[0]}
        try:
            made = _recording.resample([_recording.column("time", times)], **asked)
        except Error as error:
            if error.got != "no target":
                raise Refused(error.where.lstrip("-"), error.got, f"{error.needed} ({error.mend})") from error
            return clock.Episodes(times, times[:0], rows, np.zeros_like(rows), names)
        own = made.arrays[0].values, rows, np.diff(made.offsets), names, self.snap, self.max_gap_ns(stream)
        return clock.Episodes(times, *own)

    @property
    def rate(self) -> int | float:
        """The new rate, as files have it."""
        hz = clock.rate(self.hz)
        return int(hz) if hz.denominator == 1 else float(hz)

    def in_order(
        self, times: np.ndarray, rows: np.ndarray, stream: str = ".", unit: str | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Times (S) when samples of N episodes were taken, sorted on demand, and the rows that have them, or None. Refuses a
        clock that begins again; unit: in which it counts.
        """
        order = np.lexsort((times, np.repeat(np.arange(rows.size), rows))) if self.sort else None
        if order is not None and (order[1:] > order[:-1]).all():
            order = None
        if order is not None:
            asked = {"time_unit": unit or "ns", "sort": True, "duplicates": "last", "where": stream}
            counted = times // clock.NANOSECONDS[asked["time_unit"]]
            try:
                _recording.Rules([_recording.column("time", counted)], offsets=np.append(0, np.cumsum(rows)), **asked)
            except Error as error:
                raise Refused(error.where, error.got, f"{error.needed} ({error.mend})") from error
        return (times if order is None else times[order]) - self.latency_ns(stream), order

    def max_gap_ns(self, stream: str = ".") -> int | None:
        """The longest gap of a stream that is bridged, in nanoseconds; the last pattern that fits wins."""
        return self._nanoseconds(self.max_gap, stream)

    def latency_ns(self, stream: str) -> int:
        """What is taken from the timestamps of a stream, in nanoseconds: how late they are, less the offset of all."""
        return (self._nanoseconds(self.latency, stream) or 0) - round(self.offset * 1e9)

    @staticmethod
    def _nanoseconds(seconds: dict[str, float], stream: str) -> int | None:
        fits = [value for pattern, value in seconds.items() if fnmatchcase(stream, pattern)]
        return round(fits[-1] * 1e9) if fits else None

    def check_known(self, without: str, kind: str) -> None:
        """Refuses options that mean nothing for a kind of data."""
        for option in without.split():
            if (value := getattr(self, option)) not in (None, [], "header", False):
                raise Refused(option, f"{value!r} for {kind}", "an option that its format has")

    def check_streams(self, names: list[str]) -> None:
        """Refuses a latency or gap of a stream that the data set has not."""
        without = "a data set whose episodes have streams with clocks of their own"
        for what, asked in (("max_gap", self.max_gap), ("latency", self.latency)):
            for pattern in asked:
                if not any(fnmatchcase(name, pattern) for name in names) and (what, pattern) != ("max_gap", "*"):
                    needed = "one of " + ", ".join(names) if names else without
                    raise Refused(f"{what} of {pattern}", "no such stream", needed)


def described(indent: int) -> str:
    """The options and their words, a line each."""
    named = [(f"{f.name} ({f.metadata.get('metavar', '')})", f.metadata["help"]) for f in fields(Options)]
    return "\n".join(f"{' ' * indent}{name.removesuffix(' ()')}: {words}" for name, words in named[1:])


def options_of(hz: str | int | float, rules: str | os.PathLike | None = None, **given: Any) -> Options:
    """Options from a YAML file and from what is given beside it, which goes before it; also named as for one recording."""
    found = read_rules(rules) if rules is not None else {}
    if (time := given.pop("time", None)) is not None:
        given["times" if time in ("header", "record") else "time_column"] = time
    for key, value in given.items():
        key = {"mode": "modes", "group": "episode_column"}.get(key, key)
        if key in PAIRS and isinstance(value, (list, str)):
            value = dict(_pair(key, text) for text in ([value] if isinstance(value, str) else value))
        if isinstance(value, dict) and isinstance(found.get(key, {}), dict):
            found[key] = found.get(key, {}) | value
        elif value is not None:
            found[key] = value
    try:
        return Options(str(hz), **found)
    except TypeError as error:  # an option that is not there, or a value of a kind that it does not have
        said, known = str(error).removeprefix("Options.__init__() got "), ", ".join(f.name for f in fields(Options))
        raise Refused("options", said, f"the options of tmaops.dataset.resample: {known}") from error


def _pair(option: str, text: str) -> tuple[str, Any]:
    """NAME=VALUE of the command line."""
    name, _, value = text.rpartition("=")
    try:
        if name or option != "latency":
            return name or ("" if option == "modes" else "*"), PAIRS[option](value)
    except ValueError:
        pass
    known = Options.__dataclass_fields__[option].metadata["metavar"]
    raise Refused("--" + option.replace("modes", "mode").replace("_", "-"), repr(text), known)


def read_rules(path: str | os.PathLike) -> dict[str, Any]:
    """Options of a YAML file: modes, max_gap, latency, and what the format asks for (time_column, ...)."""
    yaml = _yaml()
    try:
        found = yaml.safe_load(place(path).read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise Refused(str(path), str(error).split("\n")[0], "a readable YAML file") from error
    known = [f.name for f in fields(Options) if f.name not in NOT_SAVED]
    for key in found if isinstance(found, dict) else ["no mapping"]:
        if key not in known:
            raise Refused(str(path), f"'{key}'", "the keys " + ", ".join(known))
    for key in ("modes", "latency"):
        if not isinstance(found.get(key, {}), dict):
            raise Refused(f"{path}: {key}", repr(found[key]), "names with values")
    return found


def save_rules(path: str | os.PathLike, options: Options, plan: "Plan") -> None:
    """Everything that was asked for or inferred as a YAML file for read_rules()."""
    asked, usual = asdict(options), asdict(Options("1"))
    found = {key: value for key, value in asked.items() if key not in NOT_SAVED and value != usual[key]}
    found |= plan.found
    found["modes"] = {}
    for column, rule in plan.columns.items():
        found["modes"] |= rule.modes(column)
    text = "".join(f"# {note}\n" for note in plan.notes)
    write_whole(place(path), text + _yaml().safe_dump(found, sort_keys=False))


def _yaml() -> Any:
    try:
        import yaml
    except ImportError:
        raise Refused("rules", "no PyYAML", "pip install pyyaml") from None
    return yaml
