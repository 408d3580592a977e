"""Timestamps as int64 nanoseconds, and the regular targets of episodes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from tmaops.dataset.errors import Refused

NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
SAID = "time_unit"  # under this name a data set that was made here says the unit of its times
UNIT = "the unit of the times (--time-unit)"
MANY_TARGETS, MOST_PER_SAMPLE = 10**8, 100  # more than both at once is a wrong unit of time
FURTHEST = 2**63 - 1
ZONE = re.compile(r"(?<=\d)(Z|[+-]\d\d(?::?\d\d)?)$")


def unit_of(time: dict[str, Any], kind: pa.DataType) -> tuple[str | None, str]:
    """The unit of times and how it was found, by what the library says of them. None: the type has a unit, or is ISO text."""
    if _has_unit(kind) or time["form"] == "iso8601":
        return None, f"of the type {kind}" if _has_unit(kind) else "ISO 8601 text"
    how = time["unit_by"]
    said = {"name": "by its name", "dates": "since they are then dates between 1990 and 2100", "option": "asked for"}
    said |= {"step": "by the size of its steps", "only fit": "no larger one fits", "usual": "assumed"}
    return time["unit"], said.get(how, how)


def units_said(attributes: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The units of columns by what the attributes of each say."""
    said = {name: own.get(SAID) for name, own in attributes.items()}
    return {name: unit for name, unit in said.items() if isinstance(unit, str) and unit in NANOSECONDS}


def _has_unit(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) or pa.types.is_duration(kind)


def is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of times without a dictionary."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def nanoseconds(column: pa.ChunkedArray, unit: str | None, where: str) -> np.ndarray:
    """The timestamps of a column as int64 nanoseconds (S). Refused: nulls, NaN, infinities, times beyond 64 bits."""
    if column.null_count:
        raise Refused(where, f"{column.null_count} nulls", "a timestamp in every row")
    column = plain(column)
    kind = column.type
    if is_text(kind):
        return _of_text(column, where) if unit is None else _of_decimals(column, NANOSECONDS[unit], where)
    if pa.types.is_floating(kind):
        # f64 holds the product of a float32 exactly. Of a float64 it cannot hold every nanosecond since 1970: longdouble can.
        exact, scale = np.longdouble if pa.types.is_float64(kind) else np.float64, 1
        ticks = column.to_numpy().astype(exact) * NANOSECONDS[unit or "s"]
        if not np.isfinite(ticks).all():
            raise Refused(where, "a timestamp that is not finite", "finite timestamps")
        ticks = np.rint(ticks)
    elif _has_unit(kind) or pa.types.is_integer(kind):
        scale = NANOSECONDS[kind.unit if _has_unit(kind) else unit or "ns"]
        ticks = (column.cast(pa.int64()) if _has_unit(kind) else column).to_numpy()
    else:
        raise Refused(where, f"{kind}", "numbers, Arrow timestamps or ISO 8601 text")
    if ticks.size and (ticks.max() > FURTHEST // scale or ticks.min() < -(FURTHEST // scale)):
        raise Refused(where, "times beyond 64 bits of nanoseconds", UNIT)
    return ticks.astype(np.int64) * scale


def _of_text(column: pa.ChunkedArray, where: str) -> np.ndarray:
    for kind in (pa.timestamp("ns"), pa.timestamp("ns", "UTC")):
        try:
            return column.cast(kind).cast(pa.int64()).to_numpy()
        except pa.ArrowInvalid as error:
            said = str(error).split("\n")[0]
    raise Refused(where, said, "ISO 8601 times, all with a zone or all without")


def _of_decimals(column: pa.ChunkedArray, scale: int, where: str) -> np.ndarray:
    """Times that are decimal numbers as text, each rounded once."""
    ticks = []
    for row, text in enumerate(column.to_pylist()):
        try:
            ticks.append(round(Decimal(text) * scale))
        except (ArithmeticError, ValueError):
            raise Refused(f"{where}: row {row}", repr(text), "a number, as the first rows have") from None
        if abs(ticks[-1]) > FURTHEST:
            raise Refused(where, "times beyond 64 bits of nanoseconds", UNIT)
    return np.array(ticks, np.int64)


def text_style(text: str) -> str:
    """How times are written as text: of ISO 8601 what stands between date and time, and the zone; of numbers "." or ""."""
    if not re.match(r"\d{4}-\d", text):
        return "." if re.search("[.eE]", text) else ""
    zone = ZONE.search(text[10:])
    return (text[10:11] or "T") + (zone[1] if zone else "")


def times_like(targets: np.ndarray, kind: pa.DataType, unit: str | None, style: str = "T") -> pa.Array:
    """Targets (T, nanoseconds) as a column of the type and unit of the input's times, rounded once."""
    if pa.types.is_dictionary(kind):
        return times_like(targets, kind.value_type, unit, style).dictionary_encode().cast(kind)
    if is_text(kind) and unit is not None:
        if not style:
            return times_like(targets, pa.int64(), unit).cast(kind)
        exact = (Decimal(target) / NANOSECONDS[unit] for target in targets.tolist())
        return pa.array([re.sub(r"(\.\d+?)0*$", r"\1", f"{value:.9f}") for value in exact], type=kind)
    if is_text(kind):
        zone = re.fullmatch(r"([+-])(\d\d):?(\d\d)?", style[1:])
        shift = (1 if zone[1] == "+" else -1) * (int(zone[2]) * 60 + int(zone[3] or 0)) * 60 * 10**9 if zone else 0
        text = np.datetime_as_string((targets + shift).astype("M8[ns]"), "ns").tolist()
        return pa.array([f"{at[:10]}{style[0]}{at[11:]}{style[1:]}" for at in text], type=kind)
    if pa.types.is_floating(kind):
        seconds = targets.astype(np.longdouble) / NANOSECONDS[unit or "s"]
        return pa.array(seconds.astype(kind.to_pandas_dtype()), type=kind)
    scale = NANOSECONDS[kind.unit if _has_unit(kind) else unit or "ns"]
    return pa.array((targets + scale // 2) // scale, type=pa.int64()).cast(kind)


def moment(text: str | None, name: str) -> int | None:
    """A time that a caller names, in seconds of the recording's clock or as ISO 8601 text, in nanoseconds."""
    if text is None:
        return None
    try:
        if re.match(r"\d{4}-\d", text):
            return int(_of_text(pa.chunked_array([[text]]), name)[0])
        found = round(Fraction(text) * 10**9)
        if abs(found) <= FURTHEST:
            return found
    except (ValueError, ZeroDivisionError):
        pass
    raise Refused(name, repr(text), "seconds of the recording's clock, or an ISO 8601 time")


def in_order(
    times: np.ndarray, rows: np.ndarray, names: list[str], sort: bool, duplicates: str
) -> tuple[np.ndarray, np.ndarray | None]:
    """The times (S) of N episodes of so many rows in order, and the rows (S) that have them; None where they stay as they are.

    Refuses by name and row what is out of order.
    """
    if not rows.all():
        raise Refused(names[int(np.argmin(rows))], "no rows", "at least one row")
    ends = np.cumsum(rows)

    def wrong(times: np.ndarray) -> np.ndarray:
        found = times[1:] < times[:-1] if duplicates == "last" else times[1:] <= times[:-1]
        found[ends[:-1] - 1] = False  # to the next episode
        return found

    order = None
    if sort and wrong(times).any():
        order = np.lexsort((times, np.repeat(np.arange(rows.size), rows)))
        times = times[order]
    found = wrong(times)
    if found.any():
        at = int(np.argmax(found)) + 1
        episode = int(np.searchsorted(ends, at, "right"))
        row = at - int(ends[episode] - rows[episode])
        same = times[at] == times[at - 1]
        said = f"row {row} has {'the same time as' if same else 'a time before that of'} row {row - 1}"
        mend = (
            "--duplicates last, where the later sample wins"
            if same
            else "--sort, which sorts the samples of an episode"
        )
        raise Refused(names[episode], said, f"timestamps that increase, or {mend}")
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


@dataclass
class Episodes:
    """N episodes whose rows follow one another.

    times (S): int64 nanoseconds that do not fall in an episode. targets (T): the times at which it is evaluated. rows and
    counts (N): how many samples and targets each has. names: in messages. written (T): the targets as they are written.
    """

    times: np.ndarray
    targets: np.ndarray
    rows: np.ndarray
    counts: np.ndarray
    names: list[str]
    written: np.ndarray | None = None
    _taken: dict[str, np.ndarray] = field(default_factory=dict, repr=False)

    def each(self) -> "list[Episodes]":
        """One by one."""
        times = np.split(self.times, np.cumsum(self.rows)[:-1])
        targets = np.split(self.targets, np.cumsum(self.counts)[:-1])
        return [one_episode(*parts) for parts in zip(times, targets, self.names, strict=True)]

    @cached_property
    def begins(self) -> np.ndarray:
        """The first row of each (N)."""
        return np.cumsum(self.rows) - self.rows

    @cached_property
    def rising(self) -> tuple[np.ndarray, np.ndarray]:
        """Times and targets moved so that all increase, from each episode to the next."""
        if len(self.names) == 1:
            return self.times, self.targets
        first = self.times[self.begins]
        spans = self.times[self.begins + self.rows - 1] - first + 1
        moved = np.cumsum(spans) - spans - first
        return self.times + np.repeat(moved, self.rows), self.targets + np.repeat(moved, self.counts)

    @cached_property
    def around(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows at or before and at or after each target; both clamped."""
        times, targets = self.rising
        found = np.searchsorted(times, targets, side="right") - 1
        before = np.maximum(found, 0)
        return before, np.minimum(found + (times[before] != targets), times.size - 1)

    def empty(self, max_gap: int | None) -> np.ndarray | None:
        """Which targets lie strictly between two samples further apart than max_gap (nanoseconds); None where none does."""
        if max_gap is None:
            return None
        before, after = self.around
        found = self.rising[0][after] - self.rising[0][before] > max_gap
        return found if found.any() else None

    def taken(self, mode: str) -> np.ndarray:
        """The row that each target takes: previous, next, the nearest (of two equally near the earlier), or final, where the
        last target takes the last row.
        """
        if mode not in self._taken:
            (times, targets), (before, after) = self.rising, self.around
            rows = {"previous": before, "final": before, "next": after}.get(mode)
            if rows is None:
                rows = np.where(times[after] - targets < targets - times[before], after, before)
            if mode == "final":
                rows, has = rows.copy(), self.counts > 0
                rows[np.cumsum(self.counts)[has] - 1] = (self.begins + self.rows - 1)[has]
            self._taken[mode] = rows
        return self._taken[mode]


def one_episode(times: np.ndarray, targets: np.ndarray, name: str) -> Episodes:
    return Episodes(times, targets, np.array([times.size]), np.array([targets.size]), [name])


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

    def episodes(self, times: np.ndarray, rows: np.ndarray, names: list[str]) -> Episodes:
        """N episodes of so many rows whose times (S) are in order, at their targets."""
        ends = np.cumsum(rows)
        targets, counts = self.of(times[ends - rows], times[ends - 1], rows)
        return Episodes(times, self.evaluated(times, rows, targets, counts), rows, counts, names, targets)

    def of(self, first: np.ndarray, last: np.ndarray, samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The targets of N episodes from their first to their last sample, one after the other, and their counts (N)."""
        origin, index, counts = self.points(first, last, samples)
        return np.repeat(origin, counts) + _offsets(index, counts, self.hz), counts

    def points(
        self, first: np.ndarray, last: np.ndarray, samples: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of each episode (N) the origin of its targets, the index of the first one, and their count."""
        low, high = first, last + self.snap if self.end is None else np.minimum(last + self.snap, self.end)
        origin = first
        if self.align or self.start is not None:
            origin = np.full_like(first, 0 if self.align else self.start)
            low = first - self.snap if self.start is None else np.maximum(first - self.snap, self.start)
        index = _reached(low - origin, self.hz)
        counts = np.maximum(_reached(high - origin + 1, self.hz) - index, 0)
        if counts.sum() > MANY_TARGETS and (counts > MOST_PER_SAMPLE * samples).any():
            worst = int(np.argmax(counts / samples))
            what = f"{counts[worst]} targets for {samples[worst]} samples"
            raise Refused("hz", what, f"at most {MOST_PER_SAMPLE} targets for each sample: {UNIT}, or another rate")
        return origin, index, counts

    def evaluated(self, times: np.ndarray, rows: np.ndarray, targets: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """The times at which targets take their values: those within `snap` of a sample take its time, of two that are equally
        near the earlier one's.
        """
        if not self.snap or not targets.size:
            return targets
        all_times, all_targets = Episodes(times, targets, rows, counts, ["" for _ in rows]).rising
        first, last = (np.repeat(ends, counts) for ends in (np.cumsum(rows) - rows, np.cumsum(rows) - 1))
        after = np.searchsorted(all_times, all_targets)
        before, after = times[np.clip(after - 1, first, last)], times[np.clip(after, first, last)]
        nearest = np.where(np.abs(targets - before) <= np.abs(after - targets), before, after)
        return np.where(np.abs(nearest - targets) <= self.snap, nearest, targets)


def frames(first: np.ndarray, rows: np.ndarray, fps: Fraction) -> np.ndarray:
    """first + i / fps for i = 0, 1, ... (nanoseconds) in each of N episodes of so many rows, one after the other."""
    return np.repeat(first, rows) + _offsets(np.zeros_like(rows), rows, fps)


def places(counts: np.ndarray) -> np.ndarray:
    """0, 1, ... in each of N episodes of so many rows, one after the other."""
    begins = np.cumsum(counts) - counts
    return np.arange(int(counts.sum())) - np.repeat(begins, counts)


def _offsets(index: np.ndarray, counts: np.ndarray, hz: Fraction) -> np.ndarray:
    """(index + i) / hz for i = 0, 1, ... (nanoseconds), rounded, of N episodes of so many rows."""
    place = places(counts)
    if (index == index[:1]).all():  # one table for all, since divisions take their time
        return _rounded(index[:1] + np.arange(counts.max(initial=0)), hz)[place] if index.size else place
    return _rounded(np.repeat(index, counts) + place, hz)


def _rounded(index: np.ndarray, hz: Fraction) -> np.ndarray:
    """index / hz (nanoseconds), rounded."""
    period = 10**9 / hz
    whole, rest = _divided(index, period.denominator, period)
    part = (2 * period.numerator * rest + period.denominator) // (2 * period.denominator)
    return (whole * period.numerator + part).astype(np.int64)


def _reached(times: np.ndarray, hz: Fraction) -> np.ndarray:
    """The index of the first of index / hz, rounded, that is not before each time (nanoseconds)."""
    period = 10**9 / hz
    whole, rest = _divided(times, period.numerator, period)
    part = -((1 - 2 * rest) * period.denominator // (2 * period.numerator))
    return (whole * period.denominator + part).astype(np.int64)


def _divided(values: np.ndarray, by: int, period: Fraction) -> tuple[np.ndarray, np.ndarray]:
    """Quotients and remainders; as Python's integers where products of the remainders are beyond 64 bits."""
    fits = 2 * period.numerator * period.denominator < 2**62
    whole = (values if fits else values.astype(object)) // by
    return whole, values - whole * by


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
