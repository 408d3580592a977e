"""What a caller may ask for, from arguments and from a YAML file."""

import os
from dataclasses import asdict, dataclass, field, fields
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from tmaops.dataset import clock
from tmaops.dataset.errors import Refused
from tmaops.dataset.places import place, write_whole

if TYPE_CHECKING:
    from tmaops.dataset.formats import Plan

#: Options that do not go into a file of rules: the rate, and what is no property of the data set.
NOT_SAVED = ("hz", "device", "strict", "copy")


@dataclass
class Options:
    """What was asked for; the same options and input give the same bytes."""

    hz: str
    modes: dict[str, str] = field(default_factory=dict)  # column or pattern -> mode
    max_gap: Any = None  # seconds, or stream (or pattern) -> seconds; then a dictionary
    latency: dict[str, float] = field(default_factory=dict)  # stream or pattern -> seconds its timestamps are late
    episode_column: str | None = None  # Parquet tables
    time_column: str | None = None
    time_unit: str | None = None
    input_hz: str | None = None  # of samples without timestamps (HDF5, Parquet, Zarr)
    topics: list[str] = field(default_factory=list)  # of recordings; patterns, with a leading "-" those to leave out
    times: str = "header"  # of recordings: header, or record, the time of recording
    offset: float = 0.0  # seconds that are added to all timestamps
    sort: bool = False  # samples into the order of their times
    duplicates: str = "error"  # of equal timestamps: "error", or "last"
    snap: float = 0.0  # seconds; a target at most this far from a sample takes that sample
    start: str | None = None  # seconds of the recording's clock, or an ISO 8601 time
    end: str | None = None
    align: bool = False  # targets at multiples of the period
    strict: bool = False  # a warning is an error
    copy: bool = False  # videos are copied, not linked
    device: str = "cpu"

    def __post_init__(self) -> None:
        self.hz = str(clock.rate(self.hz))
        self.input_hz = str(clock.rate(self.input_hz)) if self.input_hz else None
        self.max_gap = (
            {} if self.max_gap is None else self.max_gap if isinstance(self.max_gap, dict) else {"*": self.max_gap}
        )
        seconds = {"offset": self.offset, "snap": self.snap}
        for name, value in [*self.max_gap.items(), *self.latency.items(), *seconds.items()]:
            if not isinstance(value, (int, float)) or not abs(value) < 1e9:
                raise Refused(f"seconds of {name}", repr(value), "a number")
        if any(not gap > 0 for gap in self.max_gap.values()):
            raise Refused("max_gap", repr(self.max_gap), "seconds above 0")
        if self.snap < 0:
            raise Refused("snap", repr(self.snap), "seconds from 0")
        for what, known in (
            ("time_unit", (None, *clock.NANOSECONDS)),
            ("duplicates", ("error", "last")),
            ("times", ("header", "record")),
        ):
            if getattr(self, what) not in known:
                raise Refused(what, repr(getattr(self, what)), "one of " + ", ".join(filter(None, known)))
        if isinstance(self.topics, str):
            self.topics = [topic.strip() for topic in self.topics.split(",") if topic.strip()]
        self.start, self.end = (None if end is None else str(end) for end in (self.start, self.end))
        self.grid()
        self.device = _device(self.device)

    def grid(self) -> clock.Grid:
        """Where the targets lie, in nanoseconds."""
        start, end = (clock.moment(getattr(self, name), name) for name in ("start", "end"))
        if start is not None and end is not None and start > end:
            raise Refused("start", f"{self.start}, after the end {self.end}", "a start before the end")
        return clock.Grid(clock.rate(self.hz), start, end, self.align, round(self.snap * 1e9))

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

    def check_streams(self, names: list[str]) -> None:
        """Refuses a latency or gap of a stream that the data set has not."""
        needed = (
            "one of " + ", ".join(names) if names else "a data set whose episodes have streams with clocks of their own"
        )
        for what, asked in (("max_gap", self.max_gap), ("latency", self.latency)):
            for pattern in asked:
                if not any(fnmatchcase(name, pattern) for name in names) and (what, pattern) != ("max_gap", "*"):
                    raise Refused(f"{what} of {pattern}", "no such stream", needed)


def _device(asked: str) -> str:
    """ "cpu" or "cuda"; "auto" is "cuda" where torch finds a GPU."""
    if asked == "cpu":
        return asked
    if asked not in ("auto", "cuda"):
        raise Refused("device", repr(asked), "cpu, cuda or auto")
    try:
        import torch

        found = torch.cuda.is_available()
    except ImportError:
        found = False
    if asked == "cuda" and not found:
        raise Refused("device", "cuda, and no GPU that torch finds", "torch with CUDA and a GPU, or the device cpu")
    return "cuda" if found else "cpu"


def options_of(hz: str | int | float, rules: str | os.PathLike | None = None, **given: Any) -> Options:
    """Options from a YAML file and from what is given beside it, which goes before it."""
    found = read_rules(rules) if rules is not None else {}
    for key, value in given.items():
        if isinstance(value, dict) and isinstance(found.get(key, {}), dict):
            found[key] = found.get(key, {}) | value
        elif value is not None:
            found[key] = value
    try:
        return Options(str(hz), **found)
    except TypeError as error:  # a value of a kind that its option does not have
        raise Refused("options", str(error), "the options of tmaops.dataset.resample") from error


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
