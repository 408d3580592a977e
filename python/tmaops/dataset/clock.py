"""Timestamps as int64 nanoseconds, and the regular targets of an episode."""

from fractions import Fraction

import numpy as np
import pyarrow as pa

from tmaops.dataset.errors import Refused

NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def nanoseconds(column: pa.ChunkedArray, unit: str | None, where: str) -> np.ndarray:
    """The timestamps of a column as int64 nanoseconds (S).

    Floating-point columns hold seconds and integers nanoseconds unless `unit` ("s", "ms", "us", "ns") says otherwise.
    Arrow timestamps and durations have their own unit. Refused: nulls, NaN, infinities, and times beyond 64 bits.
    """
    if column.null_count:
        raise Refused(where, f"{column.null_count} nulls", "a timestamp in every row")
    if pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type):
        return column.cast(pa.int64()).to_numpy() * NANOSECONDS[column.type.unit]
    if pa.types.is_integer(column.type):
        ticks = column.cast(pa.int64()).to_numpy()
        scale = NANOSECONDS[unit or "ns"]
        if ticks.size and np.abs(ticks).max() > (2**63 - 1) // scale:
            raise Refused(where, "times beyond 64 bits of nanoseconds", "the unit of the times (--time-unit)")
        return ticks * scale
    if not pa.types.is_floating(column.type):
        raise Refused(where, f"{column.type}", "numbers or Arrow timestamps")
    # f64 holds the product of a float32 exactly. Of a float64 it cannot hold every nanosecond since 1970: longdouble can.
    exact = np.longdouble if pa.types.is_float64(column.type) else np.float64
    seconds = column.to_numpy().astype(exact) * NANOSECONDS[unit or "s"]
    if not np.isfinite(seconds).all():
        raise Refused(where, "a timestamp that is not finite", "finite timestamps")
    if seconds.size and np.abs(seconds).max() >= 2**63:
        raise Refused(where, "times beyond 64 bits of nanoseconds", "the unit of the times (--time-unit)")
    return np.rint(seconds).astype(np.int64)


def all_increase(times: np.ndarray, rows: np.ndarray) -> bool:
    """Whether the timestamps (S) increase in each of N episodes of so many rows, and each has a row."""
    rises = times[1:] > times[:-1]
    rises[np.cumsum(rows)[:-1] - 1] = True  # to the next episode
    return bool(rows.all() and rises.all())


def check_increasing(times: np.ndarray, where: str) -> None:
    """Refuses an episode without rows and timestamps (S, nanoseconds) that do not increase."""
    if times.size == 0:
        raise Refused(where, "no rows", "at least one row")
    steps = np.diff(times)
    if steps.size and steps.min() <= 0:
        row = int(np.argmax(steps <= 0)) + 1
        what = "the same time as" if steps[row - 1] == 0 else "a time before that of"
        raise Refused(where, f"row {row} has {what} row {row - 1}", "timestamps that increase")


def rate(text: str | int | float | Fraction) -> Fraction:
    """Targets per second as an exact number: 30, "29.97", "30000/1001"."""
    try:
        hz = Fraction(str(text))
    except (ValueError, ZeroDivisionError):
        hz = Fraction(0)
    if not 0 < hz <= 10**9:
        raise Refused("hz", repr(text), "a rate above 0 and at most 1e9 per second")
    return hz


def targets_in(first: int, last: int, hz: Fraction) -> int:
    """How many of first + i / hz (i = 0, 1, ...), rounded, are at most `last` (nanoseconds)."""
    period = 10**9 / hz
    return max(0, -((2 * (first - last) - 1) * period.denominator // (2 * period.numerator)))


def targets_in_each(first: np.ndarray, last: np.ndarray, hz: Fraction) -> np.ndarray:
    """targets_in() of each of N episodes."""
    period = 10**9 / hz
    fits = 2 * (int((last - first).max(initial=0)) + 1) * period.denominator < 2**62
    twice = 2 * (last - first).astype(np.int64 if fits else object) + 1
    return (-(-twice * period.denominator // (2 * period.numerator))).astype(np.int64)


def grid(first: int, last: int, hz: Fraction, most: int | None = None) -> np.ndarray:
    """first + i / hz for i = 0, 1, ..., up to last (nanoseconds), or `most` of them. Each is rounded by itself, so
    nothing drifts, and a sample that was rounded the same way lies on its target exactly.
    """
    return first + _offsets(hz, targets_in(first, last, hz) if most is None else most)


def grids(first: np.ndarray, last: np.ndarray, hz: Fraction) -> tuple[np.ndarray, np.ndarray]:
    """The grid() of each of N episodes, one after the other, and how many targets each has (N)."""
    counts = targets_in_each(first, last, hz)
    return frames(first, counts, hz), counts


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
    period = 10**9 / hz
    fits = 2 * count * period.numerator < 2**62
    index = np.arange(count, dtype=np.int64 if fits else object)
    offsets = ((2 * index * period.numerator + period.denominator) // (2 * period.denominator)).astype(np.int64)
    if count <= _KEPT:
        offsets.setflags(write=False)
        _known[hz] = offsets
    return offsets


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
