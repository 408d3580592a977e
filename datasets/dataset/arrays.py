"""Episodes in arrays whose first extent is the samples, as HDF5 and Zarr hold them: timed, resampled and written a part at a time."""

import contextlib
import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from tmaops._recording import reads_text
from tmaops.dataset import clock, formats
from tmaops.dataset.clock import Episodes, one_episode
from tmaops.dataset.columns import compute_columns
from tmaops.dataset.errors import Refused
from tmaops.dataset.formats import RATES, Plan, rate_in
from tmaops.dataset.options import Options
from tmaops.dataset.rules import MASK, MOST_CHANNELS, MOST_LETTERS, Decided, Known, Rules, decide, find_time
from tmaops.dataset.tables import FIRST_ROWS

SLAB_BYTES = 32 << 20  # of an array that are in memory at a time
TEXT = "OSUT"  # kinds of NumPy's types
AROUND = 2  # rows beside a bracket that its slopes (cubic) depend on


def native(values: np.ndarray) -> np.ndarray:
    """As the library takes them."""
    long = values.dtype.kind == "f" and values.dtype.itemsize > 8
    return np.ascontiguousarray(values, np.float64 if long else values.dtype.newbyteorder("="))


def row_bytes(array: Any) -> int:
    return max(1, array.dtype.itemsize * math.prod(array.shape[1:]))


def channels_of(array: Any) -> int | None:
    """The real numbers in a row of an array; None where it holds none."""
    return array.dtype.kind == "f" and math.prod(array.shape[1:]) or None


def known_of(path: str, array: Any, rows: int) -> Known:
    """What the first rows of an array say of it."""
    width = channels_of(array)
    looked_at = width <= MOST_CHANNELS if width else array.dtype.kind in "iubSU" and len(array.shape) == 1
    values = native(array[:rows]) if looked_at else None
    if len(array.shape) == 1 and (array.dtype.metadata or {}).get("vlen") is str:  # of h5py
        values = np.array([text[:MOST_LETTERS] for text in array.asstr()[:rows]], dtype=str)
    return Known(path, str(array.dtype), width, values)


def check_mask(path: str, decided: Decided) -> None:
    """Refuses an array that is a mask of rows, as the library knows it by name and values: arrays have no nulls."""
    own = [each._replace(name=MASK) for each in decided.known if each.name == path and each.values is not None]
    if own and MASK in decide(own, {}, rows=len(own[0].values)).rules.columns:
        needed = "a format that can leave rows out (Parquet), or another name, as of a column of values"
        raise Refused(f"array '{path}'", "a mask of rows that are no samples", needed)


def slab_rows(array: Any, targets: int) -> int:
    """So many targets of an array are made at a time, which need SLAB_BYTES of it or of the result."""
    return max(1, SLAB_BYTES // row_bytes(array) * targets // max(array.shape[0], targets, 1))


def copy_rows(old: Any, new: Any, rows: np.ndarray) -> None:
    """Rows of an array into a new one, whole chunks at a time."""
    step = (old.chunks or (1,))[0]
    size = max(1, slab_rows(old, rows.size) // step) * step
    for begin in range(0, rows.size, size):
        own = rows[begin : begin + size]
        low = int(own.min())
        values = old[low : int(own.max()) + 1][own - low]
        if values.size and isinstance(values.flat[0], np.ndarray):  # h5py takes equal ones for a further extent
            for (row, *rest), value in np.ndenumerate(values):
                new[(begin + row, *rest)] = value
        else:
            new[begin : begin + size] = values


def as_times(values: np.ndarray) -> np.ndarray:
    """Numbers or text of an array as the library takes times."""
    if values.dtype.kind not in TEXT:  # durations as dates, as the library takes them
        return (made := native(values.reshape(-1))).view(made.dtype.str.replace("m8", "M8"))
    flat = values.reshape(-1).tolist()
    return np.array([each.decode("utf-8", "replace") if isinstance(each, bytes) else each for each in flat], str)


#: The names of an array of times, or of two (seconds and nanoseconds), their unit, how that was found, and warnings.
Times = tuple[list[str], str | None, str, list[str]]


def read_times(arrays: list[Any], unit: str | None, where: str) -> np.ndarray:
    """The times (S, nanoseconds) of such arrays."""
    return clock.stored([as_times(array[()]) for array in arrays], unit, where)


def times_among(arrays: dict[str, Any], asked: str | None, unit: str | None) -> Times | None:
    """The array that holds the times, (S) or (S, 1): `asked`, or what the library finds by name; None where there is none."""
    known = {}
    for name, array in arrays.items():
        if array.shape[1:] not in ((), (1,)) or array.shape[:1] in ((), (0,)) or array.dtype.kind not in TEXT + "iufMm":
            continue
        if array.dtype.kind not in TEXT or name == asked or reads_text(name):
            known[name] = as_times(array[:FIRST_ROWS])
    said = clock.units_said({name: arrays[name].attrs for name in known})
    if (time := find_time(known, asked, unit, said)) is None:
        return None
    name, array = time["name"], arrays[time["name"]]
    names = [name, time["second_name"]] if "second_name" in time else [name]
    kind = pa.string() if array.dtype.kind in TEXT else pa.from_numpy_dtype(native(array[:0]).dtype)
    return names, *clock.unit_of(time, kind), time["warnings"]


@dataclass
class Clock:
    """Samples with one clock, of N episodes one after the other, in arrays of so many rows (extent).

    path: the group that holds the arrays; "" where it is the episode itself. times (S): int64 nanoseconds in order. counts
    (N): samples of each episode. rows (S): of the arrays, those that have the times. names: the paths of the arrays of times, none
    where they are counted. said, warnings: how the times were found.
    """

    path: str
    times: np.ndarray
    counts: np.ndarray
    rows: np.ndarray
    extent: int
    names: list[str] = field(default_factory=list)
    unit: str | None = None
    said: str = ""
    warnings: list[str] = field(default_factory=list)
    episodes: Episodes | None = None  # its samples at the targets

    @property
    def name(self) -> str:
        return self.path or "."

    def read(self, array: Any, low: int, high: int) -> np.ndarray:
        """Samples low to high - 1 of an array, (S, channels)."""
        own = self.rows[low:high]
        first = int(own.min())
        return native(array[first : int(own.max()) + 1][own - first]).reshape(high - low, -1)


class Part:
    """Episodes: their arrays by path, their clocks, its own first, and their targets. labels: what messages call them."""

    def __init__(self, arrays: dict[str, Any], clocks: list[Clock], labels: list[str], options: Options):
        self.arrays, self.clocks, self.labels, self.options = arrays, clocks, labels, options
        self.times = {name for clock in clocks for name in clock.names}

    def clock_of(self, path: str) -> Clock | None:
        """The clock of an array: that of the nearest group around it."""
        around = [each for each in self.clocks if not each.path or path.startswith(each.path + "/")]
        return max(around, key=lambda each: len(each.path), default=None)

    @cached_property
    def sampled(self) -> dict[str, Clock]:
        """The clocks of the arrays that have a row for each sample, without those of times."""
        found = {path: self.clock_of(path) for path in self.arrays if path not in self.times}
        return {path: own for path, own in found.items() if own and self.arrays[path].shape[:1] == (own.extent,)}

    @cached_property
    def targets(self) -> np.ndarray:
        """From the latest first sample to the earliest last one of each episode; gives each clock its samples at them."""
        options, own = self.options, self.clocks[0]
        if len(self.clocks) == 1:
            own.episodes = options.episodes(own.times, own.counts, self.labels, own.name)
        else:
            for each in self.clocks:
                options.episodes(each.times, each.counts, [f"{self.labels[0]}: {each.name}"])  # in order
            times = clock.shared([each.times for each in self.clocks])
            if times is None:
                needed = "streams of one clock (--latency moves one; without --input-hz no rows are counted from 0)"
                raise Refused(self.labels[0], "streams that do not overlap in time", needed)
            targets = options.episodes(times, np.array([times.size]), self.labels).targets
            for each in self.clocks:
                max_gap = options.max_gap_ns(each.name)
                each.episodes = one_episode(each.times, targets, self.labels[0], options.snap, max_gap)
        for each in self.clocks:
            if each.episodes.empty is not None:
                where = self.labels[0] + (f": stream {each.path}" if each.path else "")
                needed = "a larger --max-gap, or a format that can leave values out (Parquet)"
                raise Refused(where, "a gap longer than --max-gap", needed)
        return own.episodes.targets

    def planned(self, plan: Plan, also_sampled: Iterable[str] = ()) -> bool:
        """Whether there are targets; then the plan has what is to be said. also_sampled: arrays that follow in another way."""
        if not self.targets.size:
            return False
        if not plan.notes:
            plan.notes += [each.said for each in self.clocks]
            plan.warnings += [warning for each in self.clocks for warning in each.warnings]
        for path, array in self.arrays.items():
            own = self.clock_of(path)
            if path in self.sampled:
                plan.shares.setdefault(path, self.targets.size / own.times.size)
            elif own and array.shape and path not in self.times and path not in also_sampled:
                plan.beside_samples(path, array.shape[0], own.extent)
        for each in self.clocks:
            plan.count(each.name, each.times.size, self.targets.size)
        return True

    def check_like(self, first: Known) -> None:
        """Refuses an array that the rule of the first episode does not fit."""
        array, mend = self.arrays[first.name], "as in the first episode (--keep-going leaves this one out)"
        if channels_of(array) != first.channels:
            has, had = (f"{count or 'no'} real numbers in a row" for count in (channels_of(array), first.channels))
            raise Refused(f"{self.labels[0]}: '{first.name}'", f"{array.dtype}, {has}", f"{first.kind}, {had}, {mend}")

    def seen(self, label: str, rules: Rules) -> list[formats.Stream]:
        """The streams of one episode, for inspect()."""
        found = {each.path: formats.Stream(label, each.path, each.times) for each in self.clocks}
        for path, own in self.sampled.items():
            if self.arrays[path].dtype.kind == "f" and not rules[path].taken:
                found[own.path].columns[path] = own.read(self.arrays[path], 0, own.times.size)
                found[own.path].quaternions[path] = rules.quaternions_in(path)
        return list(found.values())

    def new_times(self, path: str) -> np.ndarray:
        """The targets in the type and unit of an array of times."""
        array, own, kind = self.arrays[path], self.clock_of(path), self.arrays[path].dtype
        types = [self.arrays[name].dtype for name in own.names]
        told = [pa.string() if t.kind in TEXT else pa.from_numpy_dtype(native(np.empty(0, t)).dtype) for t in types]
        parts = clock.parts_like if told[1:] else lambda targets, kinds, unit: [clock.times_like(targets, *kinds, unit)]
        made = parts(self.targets, told, own.unit)[own.names.index(path)]
        longest = kind.kind if kind.kind in "SU" else kind  # texts may become longer
        made = made.to_numpy(zero_copy_only=False).astype(longest)
        return made.reshape(-1, *array.shape[1:])

    def said_of_times(self, path: str) -> dict[str, str]:
        """The attributes of a new array of times."""
        own = self.clock_of(path)
        return {clock.SAID: own.unit} if own.unit in clock.NANOSECONDS and len(own.names) == 1 else {}

    def write(self, path: str, new: Any, rules: Rules) -> None:
        """Fills a new array with an array at the targets: as many at a time as fit SLAB_BYTES, from the rows that they need."""
        array, own = self.arrays[path], self.clock_of(path)
        targets, rule = own.episodes.targets, rules[path]
        if rule.taken:
            copy_rows(array, new, own.rows[own.episodes.taken(rule.taken)])
            return
        # Over intervals each sample counts, also behind the last target. Several episodes are few and small arrays of Zarr.
        whole = rule.over_intervals or len(self.labels) > 1
        size = max(targets.size, 1) if whole else slab_rows(array, targets.size)
        for first in range(0, targets.size, size):
            low, high, episodes = 0, own.times.size, own.episodes
            if not whole:
                before, after = (rows[first : first + size] for rows in episodes.around)
                low, high = max(int(before[0]) - AROUND, 0), min(int(after[-1]) + AROUND + 1, high)
                parts = own.times[low:high], targets[first : first + size], self.labels[0]
                episodes = one_episode(*parts, own.episodes.snap, own.episodes.max_gap)
            numbers = {name: own.read(self.arrays[name], low, high) for name in rules.partners(path)}
            made = compute_columns(numbers, rules, episodes)[path]
            new[first : first + size] = made.reshape(-1, *array.shape[1:])


def new_rate(attributes: dict[str, Any], options: Options, old: float | None = None) -> dict[str, Any]:
    """Attributes that say the rate, with the new one. old: samples per second; what says another rate stays."""
    made = {}
    for name, value in attributes.items():
        rate = rate_in(value) if name in RATES else None
        if rate is not None and (old is None or abs(rate - old) <= 0.02 * old):
            made[name] = options.rate
        elif name == "env_args":
            with contextlib.suppress(ValueError, KeyError, TypeError):
                found = json.loads(value)
                if "control_freq" in found["env_kwargs"]:
                    found["env_kwargs"]["control_freq"] = options.rate
                    made[name] = json.dumps(found, indent=4 if "\n" in str(value) else None)
    return made
