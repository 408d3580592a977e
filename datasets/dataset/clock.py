"""Timestamps as int64 nanoseconds, and the regular targets of an episode."""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from tmaops.dataset.errors import Refused

NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
UNIT = "the unit of the times (--time-unit)"
MANY_TARGETS, MOST_PER_SAMPLE = 10**8, 100  # more than both at once is a wrong unit of time
YEAR_1990, YEAR_2100 = 631_152_000, 4_102_444_800  # seconds since 1970


def unit_of(time: dict[str, Any], column: pa.ChunkedArray, asked: str | None) -> tuple[str | None, str]:
    """The unit of a time column and how it was found, by what the library says of it. None: the type has a unit, or is text."""
    kind, how = column.type, time["unit_by"]
    if _has_unit(kind) or _is_text(kind):
        return None, f"of the type {kind}" if _has_unit(kind) else "ISO 8601 text"
    if asked:
        return asked, "asked for"
    if how == "usual":
        values = some_numbers(column)
        for unit, scale in NANOSECONDS.items():
            ticks = 10**9 // scale
            if values.size and YEAR_1990 * ticks <= values.min() and values.max() <= YEAR_2100 * ticks:
                return unit, "since they are then dates between 1990 and 2100"
        return time["unit"], f"assumed, since it holds {'integers' if pa.types.is_integer(kind) else 'real numbers'}"
    return time["unit"], {"name": "by its name", "dates": "since they are then dates between 1990 and 2100"}.get(
        how, how
    )


def _has_unit(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) or pa.types.is_duration(kind)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of times without a dictionary."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def some_numbers(column: pa.ChunkedArray) -> np.ndarray:
    """The first numbers of a column, for unit_of()."""
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        return np.empty(0)
    values = column.slice(0, 4096).drop_null().to_numpy()
    return values[np.isfinite(values)] if values.dtype.kind == "f" else values


def nanoseconds(column: pa.ChunkedArray, unit: str | None, where: str) -> np.ndarray:
    """The timestamps of a column as int64 nanoseconds (S).

    Floating-point columns hold seconds and integers nanoseconds unless `unit` ("s", "ms", "us", "ns") says otherwise.
    Arrow timestamps and durations have their own unit; text is ISO 8601, without a zone UTC. Refused: nulls, NaN,
    infinities, and times beyond 64 bits.
    """
    if column.null_count:
        raise Refused(where, f"{column.null_count} nulls", "a timestamp in every row")
    column = plain(column)
    if _is_text(column.type):
        return _of_text(column, where)
    scale = NANOSECONDS[column.type.unit if _has_unit(column.type) else unit or "ns"]
    if _has_unit(column.type) or pa.types.is_integer(column.type):
        try:
            ticks = column.cast(pa.int64()).to_numpy()
        except pa.ArrowInvalid:
            ticks = np.array([2**63 - 1, -(2**63)])  # beyond in any unit
            scale = 2
        if ticks.size and (ticks.max() > (2**63 - 1) // scale or ticks.min() < -((2**63 - 1) // scale)):
            raise Refused(where, "times beyond 64 bits of nanoseconds", UNIT)
        return ticks * scale
    if not pa.types.is_floating(column.type):
        raise Refused(where, f"{column.type}", "numbers, Arrow timestamps or ISO 8601 text")
    # f64 holds the product of a float32 exactly. Of a float64 it cannot hold every nanosecond since 1970: longdouble can.
    exact = np.longdouble if pa.types.is_float64(column.type) else np.float64
    seconds = column.to_numpy().astype(exact) * NANOSECONDS[unit or "s"]
    if not np.isfinite(seconds).all():
        raise Refused(where, "a timestamp that is not finite", "finite timestamps")
    if seconds.size and np.abs(seconds).max() >= 2**63:
        raise Refused(where, "times beyond 64 bits of nanoseconds", UNIT)
    return np.rint(seconds).astype(np.int64)


def _of_text(column: pa.ChunkedArray, where: str) -> np.ndarray:
    for kind in (pa.timestamp("ns"), pa.timestamp("ns", "UTC")):
        try:
            return column.cast(kind).cast(pa.int64()).to_numpy()
        except pa.ArrowInvalid as error:
            said = str(error).split("\n")[0]
    raise Refused(where, said, "ISO 8601 times, all with a zone or all without")


ZONE = re.compile(r"(?<=\d)(Z|[+-]\d\d(?::?\d\d)?)$")


def text_style(text: str) -> str:
    """How ISO 8601 text is written: what stands between date and time, and the zone."""
    zone = ZONE.search(text[10:])
    return (text[10:11] or "T") + (zone[1] if zone else "")


def times_like(targets: np.ndarray, kind: pa.DataType, unit: str | None, style: str = "T") -> pa.Array:
    """Targets (T, nanoseconds) as a column of the type and unit of the input's times, rounded once."""
    if pa.types.is_dictionary(kind):
        return times_like(targets, kind.value_type, unit, style).dictionary_encode().cast(kind)
    if _is_text(kind):
        zone = re.fullmatch(r"([+-])(\d\d):?(\d\d)?", style[1:])
        shift = (1 if zone[1] == "+" else -1) * (int(zone[2]) * 60 + int(zone[3] or 0)) * 60 * 10**9 if zone else 0
        text = np.datetime_as_string((targets + shift).astype("M8[ns]"), "ns").tolist()
        return pa.array([f"{at[:10]}{style[0]}{at[11:]}{style[1:]}" for at in text], type=kind)
    if _has_unit(kind):
        scale = NANOSECONDS[kind.unit]
        return pa.array((targets + scale // 2) // scale, type=pa.int64()).cast(kind)
    scale = NANOSECONDS[unit or ("ns" if pa.types.is_integer(kind) else "s")]
    if pa.types.is_integer(kind):
        return pa.array((targets + scale // 2) // scale, type=pa.int64()).cast(kind)
    return pa.array((targets.astype(np.longdouble) / scale).astype(kind.to_pandas_dtype()), type=kind)


def moment(text: str | None, name: str) -> int | None:
    """A time that a caller names, in seconds of the recording's clock or as ISO 8601 text, in nanoseconds."""
    if text is None:
        return None
    try:
        if re.match(r"\d{4}-\d", text):
            return int(_of_text(pa.chunked_array([[text]]), name)[0])
        found = round(Fraction(text) * 10**9)
        if abs(found) < 2**63:
            return found
    except (ValueError, ZeroDivisionError):
        pass
    raise Refused(name, repr(text), "seconds of the recording's clock, or an ISO 8601 time")


def all_increase(times: np.ndarray, rows: np.ndarray, equal: bool = False) -> bool:
    """Whether the timestamps (S) increase in each of N episodes of so many rows, and each has a row. equal: or stay."""
    rises = times[1:] >= times[:-1] if equal else times[1:] > times[:-1]
    rises[np.cumsum(rows)[:-1] - 1] = True  # to the next episode
    return bool(rows.all() and rises.all())


def check_increasing(times: np.ndarray, where: str, equal: bool = False) -> None:
    """Refuses an episode without rows and timestamps (S, nanoseconds) that do not increase. equal: they may stay."""
    if times.size == 0:
        raise Refused(where, "no rows", "at least one row")
    steps = np.diff(times)
    if steps.size and steps.min() <= -equal:
        row = int(np.argmax(steps <= -equal)) + 1
        if steps[row - 1] == 0:
            raise Refused(
                where,
                f"row {row} has the same time as row {row - 1}",
                "timestamps that increase, or --duplicates last, where the later sample wins",
            )
        raise Refused(
            where,
            f"row {row} has a time before that of row {row - 1}",
            "timestamps that increase, or --sort, which sorts the samples of an episode",
        )


def in_order(
    times: np.ndarray, rows: np.ndarray, names: list[str], sort: bool, duplicates: str
) -> tuple[np.ndarray, np.ndarray | None]:
    """The times (S) of N episodes of so many rows in order, and the rows (S) that have them; None where they stay as they are.

    Refuses by name and row what is out of order.
    """
    equal = duplicates == "last"
    if all_increase(times, rows, equal):
        return times, None
    order = None
    if sort:
        order = np.lexsort((times, np.repeat(np.arange(rows.size), rows)))
        times = times[order]
    for name, own in zip(names, np.split(times, np.cumsum(rows)[:-1]), strict=True):
        check_increasing(own, name, equal)
    return times, order


def rate(text: str | int | float | Fraction) -> Fraction:
    """Targets per second as an exact number: 30, "29.97", "30000/1001"."""
    try:
        hz = Fraction(str(text))
    except (ValueError, ZeroDivisionError):
        hz = Fraction(0)
    if not 0 < hz <= 10**9:
        raise Refused("hz", repr(text), "a rate above 0 and at most 1e9 per second")
    return hz


def number(value: Fraction) -> int | float:
    """A rate as JSON has it."""
    return int(value) if value.denominator == 1 else float(value)


@dataclass(frozen=True)
class Grid:
    """Targets origin + i / hz, each rounded by itself, so that nothing drifts, and a sample that was rounded the same way
    lies on its target exactly. The origin is the first sample, `start`, or with `align` time 0. Times in nanoseconds.
    """

    hz: Fraction
    start: int | None = None
    end: int | None = None
    align: bool = False
    snap: int = 0

    def of(self, first: np.ndarray, last: np.ndarray, samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The targets of N episodes from their first to their last sample, one after the other, and their counts (N)."""
        counts = self.counts(first, last, samples)
        if self._plain:
            return frames(first, counts, self.hz), counts
        own = [self._span(*ends) for ends in zip(first.tolist(), last.tolist(), strict=True)]
        parts = [origin + _offsets_from(self.hz, low, high - low) for origin, low, high in own]
        return np.concatenate(parts) if parts else np.empty(0, np.int64), counts

    def counts(self, first: np.ndarray, last: np.ndarray, samples: np.ndarray) -> np.ndarray:
        """How many targets each of N episodes has."""
        if self._plain:
            counts = targets_in_each(first, last + self.snap, self.hz)
        else:
            spans = [self._span(*ends) for ends in zip(first.tolist(), last.tolist(), strict=True)]
            counts = np.array([high - low for _, low, high in spans], np.int64)
        if counts.sum() > MANY_TARGETS and (counts > MOST_PER_SAMPLE * samples).any():
            worst = int(np.argmax(counts / samples))
            what = f"{counts[worst]} targets for {samples[worst]} samples"
            raise Refused("hz", what, f"at most {MOST_PER_SAMPLE} targets for each sample: {UNIT}, or another rate")
        return counts

    @property
    def _plain(self) -> bool:
        return self.start is None and self.end is None and not self.align

    def _span(self, first: int, last: int) -> tuple[int, int, int]:
        """The origin of an episode's targets, the index of the first, and that behind the last."""
        origin = 0 if self.align else first if self.start is None else self.start
        early = first - self.snap if self.align or self.start is not None else first
        low = early if self.start is None else max(early, self.start)
        high = last + self.snap if self.end is None else min(last + self.snap, self.end)
        period = 10**9 / self.hz
        index = [
            -(-(2 * (at - origin) + end) * period.denominator // (2 * period.numerator))
            for at, end in ((low, -1), (high, 1))
        ]
        return origin, index[0], max(index)

    def evaluated(self, times: np.ndarray, rows: np.ndarray, targets: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """The times at which targets take their values: those within `snap` of a sample take its time, of two that are equally
        near the earlier one's.
        """
        if not self.snap or not targets.size:
            return targets
        episode = np.repeat(np.arange(rows.size), counts)
        ends = np.cumsum(rows)
        after = np.empty(targets.size, np.int64)
        bounds = np.cumsum(counts) - counts
        for e in np.flatnonzero(counts):
            mine = slice(bounds[e], bounds[e] + counts[e])
            after[mine] = ends[e] - rows[e] + np.searchsorted(times[ends[e] - rows[e] : ends[e]], targets[mine])
        before = times[np.maximum(after - 1, (ends - rows)[episode])]
        behind = times[np.minimum(after, ends[episode] - 1)]
        nearest = np.where(np.abs(targets - before) <= np.abs(behind - targets), before, behind)
        return np.where(np.abs(nearest - targets) <= self.snap, nearest, targets)


def targets_in_each(first: np.ndarray, last: np.ndarray, hz: Fraction) -> np.ndarray:
    """How many of first + i / hz (i = 0, 1, ...), rounded, are at most `last` (nanoseconds) in each of N episodes."""
    period = 10**9 / hz
    fits = 2 * (int((last - first).max(initial=0)) + 1) * period.denominator < 2**62
    twice = 2 * (last - first).astype(np.int64 if fits else object) + 1
    return (-(-twice * period.denominator // (2 * period.numerator))).astype(np.int64)


def frames(first: np.ndarray, rows: np.ndarray, fps: Fraction) -> np.ndarray:
    """first + i / fps for i = 0, 1, ... (nanoseconds) in each of N episodes of so many rows, one after the other."""
    return np.repeat(first, rows) + _offsets(fps, int(rows.max(initial=0)))[places(rows)]


def places(counts: np.ndarray) -> np.ndarray:
    """0, 1, ... in each of N episodes of so many rows, one after the other."""
    begins = np.cumsum(counts) - counts
    return np.arange(int(counts.sum())) - np.repeat(begins, counts)


_KEPT = 1 << 20  # offsets of a rate that are kept
_known: dict[Fraction, np.ndarray] = {}


def _offsets(hz: Fraction, count: int) -> np.ndarray:
    """i / hz for i = 0, 1, ..., count - 1 (nanoseconds), rounded."""
    known = _known.get(hz)
    if known is not None and known.size >= count:
        return known[:count]
    offsets = _offsets_from(hz, 0, count)
    if count <= _KEPT:
        offsets.setflags(write=False)
        _known[hz] = offsets
    return offsets


def _offsets_from(hz: Fraction, index: int, count: int) -> np.ndarray:
    """i / hz for so many i from `index` on (nanoseconds), rounded."""
    period = 10**9 / hz
    whole, rest = divmod(2 * index * period.numerator + period.denominator, 2 * period.denominator)
    fits = 2 * count * period.numerator + rest < 2**62
    more = np.arange(count, dtype=np.int64 if fits else object)
    return (whole + (2 * more * period.numerator + rest) // (2 * period.denominator)).astype(np.int64)


def frame_times(
    times: np.ndarray, rows: np.ndarray, fps: Fraction, column: pa.DataType
) -> tuple[np.ndarray, np.ndarray]:
    """The times (S, nanoseconds) of N episodes of so many rows, and which are (N) first + i / fps, rounded by the type of
    their column: the times of those are taken so exactly.
    """
    begins = np.cumsum(rows) - rows
    exact = frames(times[begins], rows, fps)
    digits = {pa.float16(): 11, pa.float32(): 24}.get(column, 53)
    resolution = np.maximum(np.abs(exact) * 2.0 ** (1 - digits), 1.0)
    close = np.abs(times - exact) <= resolution
    if close.all():
        return exact, np.ones(rows.size, bool)
    which = np.logical_and.reduceat(close, begins)
    return np.where(np.repeat(which, rows), exact, times), which
