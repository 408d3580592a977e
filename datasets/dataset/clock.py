"""Timestamps as int64 nanoseconds, and the regular targets of episodes."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from tmaops import Error, _recording
from tmaops.dataset.errors import Refused

NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
UNITS = (*NANOSECONDS, None)  # all else is an example of text, which tells its form
SAID = "time_unit"  # under this name a data set that was made here says the unit of its times
PICKED = ("previous", "next", "nearest")  # modes that take a row as it is


def unit_of(time: dict[str, Any], kind: pa.DataType) -> tuple[str | None, str]:
    """The unit of times, or of fractions beside seconds, and how it was found, by what the library says of them. None: the
    type has a unit. Of dates and times of day in text it is an example, which tells their form.
    """
    if time["form"] == "iso8601":
        return time["example"], f"{kind}; a day is added where a time of day passes midnight"
    if _has_unit(kind):
        return None, f"of the type {kind}"
    said = {"name": "by its name", "dates": "since they are then dates between 1990 and 2100", "option": "asked for"}
    said |= {"step": "by the size of its steps", "only fit": "no larger one fits", "usual": "assumed"}
    said |= {"format": "which are added"}
    return time.get("second_unit", time["unit"]), said.get(time["unit_by"], time["unit_by"])


def spoken(unit: str | None, second: str | None) -> str:
    form = "its own unit" if unit is None else f"the form of {unit}" if unit not in UNITS else unit
    return form if not second else f"{form} with '{second}'" if unit not in UNITS else f"s and '{second}' in {unit}"


def units_said(attributes: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The units of columns by what the attributes of each say."""
    said = {name: own.get(SAID) for name, own in attributes.items()}
    return {name: unit for name, unit in said.items() if isinstance(unit, str) and unit in NANOSECONDS}


def _has_unit(kind: pa.DataType) -> bool:
    return pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_time(kind)


def whole(column: pa.ChunkedArray) -> np.ndarray:
    """Timestamps and durations as int64 of their unit."""
    return column.cast(pa.int64()).to_numpy()


def is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def plain(column: pa.ChunkedArray, beside: bool = False) -> pa.ChunkedArray:
    """A column of times without a dictionary; times of day as text. beside: dates, too, which may be timestamps."""
    column = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    if beside and pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp(column.type.unit)).cast(pa.date32())
    kind = column.type
    return column.cast(pa.string()) if pa.types.is_time(kind) or beside and pa.types.is_date(kind) else column


def nanoseconds(column: pa.ChunkedArray | np.ndarray, unit: str | None, where: str) -> np.ndarray:
    """The timestamps of a column as int64 nanoseconds (S). Refused: nulls, NaN, infinities, times beyond 64 bits."""
    if isinstance(column, np.ndarray):
        return _read(column, unit, where)
    if column.null_count:
        raise Refused(where, f"{column.null_count} nulls", "a timestamp in every row")
    column = plain(column)
    kind = column.type
    if _has_unit(kind):
        values, unit = whole(column), kind.unit
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
        values = column.to_numpy()
    elif is_text(kind) or pa.types.is_decimal(kind):
        values = np.array([str(value) for value in column.to_pylist()], str)
    else:
        raise Refused(where, f"{kind}", "numbers, Arrow timestamps or ISO 8601 text")
    return _read(values, unit, where)


def _read(values: np.ndarray, unit: str | None, where: str) -> np.ndarray:
    if not values.size:
        return np.zeros(0, np.int64)
    values = values.astype(np.float64) if values.dtype.kind == "f" else values
    head = int(unit not in UNITS)  # an example in front, which decides the order of days and months
    values, unit = (np.append(unit, values), None) if head else (values, unit)
    try:  # targets come out in the form of the times of their recording
        given = [_recording.column("time", np.zeros(1, np.int64))]
        targets = {"times": _recording.column("times", values), "times_unit": unit, "outside": "hold"}
        return _recording.resample(given, time_unit="ns", **targets).arrays[0].values[head:]
    except Error as error:
        row = error.where.rpartition(": row ")[2]
        place = f"{where}: row {int(row) - head}" if row.isdigit() else where
        raise Refused(place, error.got, error.needed) from error


def stored(columns: Sequence[pa.ChunkedArray | np.ndarray], unit: str | None, where: str) -> np.ndarray:
    """The timestamps of a column, or of two: whole seconds and fractions of this unit, or times of day and their dates."""
    if unit not in UNITS and columns[1:]:
        arrays = (pa.chunked_array([each]) if isinstance(each, np.ndarray) else each for each in columns)
        time, date = (plain(each, beside=True) for each in arrays)
        return nanoseconds(pc.binary_join_element_wise(date, time, " "), unit, where)
    times = nanoseconds(columns[0], "s" if columns[1:] else unit, where)
    for column in columns[1:]:
        beside = nanoseconds(column, unit, where)
        if beside.size and not 0 <= beside.min() <= beside.max() < NANOSECONDS["s"]:
            raise Refused(where, f"{beside.min()} to {beside.max()} ns beside seconds", "from 0 to 999,999,999 ns")
        times = times + beside
    return times


def parts_like(targets: np.ndarray, kinds: Sequence[pa.DataType], unit: str) -> list[pa.Array]:
    """Targets (T, nanoseconds) as whole seconds and fractions of this unit, rounded once; or as times of day and dates."""
    if unit not in UNITS:
        parts = pc.split_pattern(times_like(targets, pa.string(), unit), " ")
        times, dates = (pc.list_element(parts, 1 - i) for i in range(2))
        own = dates if is_text(kinds[1]) else dates.cast(pa.timestamp("s")).cast(kinds[1])
        return [times_like(targets, kinds[0], unit) if pa.types.is_time(kinds[0]) else times.cast(kinds[0]), own]
    seconds, beside = np.divmod((targets + NANOSECONDS[unit] // 2) // NANOSECONDS[unit] * NANOSECONDS[unit], 10**9)
    return [
        times_like(part, kind, "ns") for part, kind in zip((seconds, beside // NANOSECONDS[unit]), kinds, strict=True)
    ]


def times_like(targets: np.ndarray, kind: pa.DataType, unit: str | None) -> pa.Array:
    """Targets (T, nanoseconds) as a column of the type and unit of the input's times, rounded once."""
    if pa.types.is_dictionary(kind):
        return times_like(targets, kind.value_type, unit).dictionary_encode().cast(kind)
    if is_text(kind) and unit not in UNITS:  # written by the library; the last one makes nine digits in every table
        given = [_recording.column("time", np.array([unit]))]
        new = _recording.column("times", np.append(targets, 1))
        made = _recording.resample(given, times=new, times_unit="ns", outside="hold").arrays[0].values[:-1]
        return pa.array(made.tolist(), type=kind)
    if is_text(kind):
        exact = (Decimal(target) / NANOSECONDS[unit] for target in targets.tolist())
        return pa.array([re.sub(r"\.?0+$", "", f"{value:.9f}") for value in exact], type=kind)
    if pa.types.is_floating(kind):
        seconds = targets.astype(np.longdouble) / NANOSECONDS[unit or "s"]
        return pa.array(seconds.astype(kind.to_pandas_dtype()), type=kind)
    if pa.types.is_decimal(kind):
        return pa.array([round(Decimal(target) / NANOSECONDS[unit], kind.scale) for target in targets.tolist()], kind)
    scale = NANOSECONDS[kind.unit if _has_unit(kind) else unit or "ns"]
    targets = targets % (86_400 * NANOSECONDS["s"]) if pa.types.is_time(kind) else targets
    made = pa.array(ticks := (targets + scale // 2) // scale, type=pa.int64())
    if ((np.diff(ticks) == 0) & (np.diff(targets) > 0)).any():
        raise Refused(
            "times", f"new ones that are the same whole numbers of {scale} ns", "a lower --hz, or finer times"
        )
    return (made.cast(pa.int32()) if pa.types.is_time32(kind) else made).cast(kind)


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
    counts (N): how many samples and targets each has. names: in messages. snap (seconds): a target at most this far from a
    sample takes that one. max_gap (nanoseconds): samples further apart have nothing between them.
    """

    times: np.ndarray
    targets: np.ndarray
    rows: np.ndarray
    counts: np.ndarray
    names: list[str]
    snap: float = 0.0
    max_gap: int | None = None
    _taken: dict[str, np.ndarray] = field(default_factory=dict, repr=False)

    def each(self) -> "list[Episodes]":
        """One by one."""
        times = np.split(self.times, np.cumsum(self.rows)[:-1])
        targets = np.split(self.targets, np.cumsum(self.counts)[:-1])
        parts = zip(times, targets, self.names, strict=True)
        return [one_episode(*each, self.snap, self.max_gap) for each in parts]

    @cached_property
    def begins(self) -> np.ndarray:
        """The first row of each (N)."""
        return np.cumsum(self.rows) - self.rows

    def of_rows(self, kept: np.ndarray) -> "Episodes":
        """Those with these rows (S) alone."""
        rows = np.add.reduceat(kept, self.begins, dtype=np.int64)
        if not rows.all():
            where = self.names[int(np.argmin(rows))]
            raise Refused(where, "no row whose 'valid' is 1", "at least one sample with data")
        return replace(self, times=self.times[kept], rows=rows, _taken={})

    @property
    def asked(self) -> dict[str, Any]:
        """The targets as the library takes them."""
        own = {"offsets": np.append(0, np.cumsum(self.rows)), "target_offsets": np.append(0, np.cumsum(self.counts))}
        targets = {"times": _recording.column("time", self.targets), "times_unit": "ns", "snap": self.snap}
        return own | targets | {"outside": "hold"}

    @property
    def around(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows at or before and at or after each target; both clamped."""
        return self.taken("previous"), self.taken("next")

    def beside(self, lost: np.ndarray) -> np.ndarray:
        """Which targets lie at a lost row (S), or strictly between one and a neighbour."""
        before, after = self.around
        return lost[before] | lost[after] & (self.targets != self.times[before])

    @property
    def empty(self) -> np.ndarray | None:
        """Which targets lie strictly between two samples further apart than max_gap; None where none does."""
        if self.max_gap is None:
            return None
        before, after = self.around
        found = self.times[after] - self.times[before] > self.max_gap
        return found if found.any() else None

    @property
    def without_events(self) -> np.ndarray:
        """Which targets have no sample since the target before. The first one has all before it, the last one all after it."""
        counts, found = self.counts[self.counts > 0], np.diff(self.taken("previous"), prepend=-1) == 0
        found[np.cumsum(counts) - counts] = found[np.cumsum(counts) - 1] = False
        return found

    def taken(self, mode: str) -> np.ndarray:
        """The row that each target takes: previous, next, the nearest (of two equally near the earlier), or final, where the
        last target takes the last row.
        """
        if mode == "final":
            rows, has = self.taken("previous").copy(), self.counts > 0
            rows[np.cumsum(self.counts)[has] - 1] = (self.begins + self.rows - 1)[has]
            return rows
        if not self._taken and self.targets.size:
            rows = [_recording.rows(each, self.times.size) for each in PICKED]
            given = [_recording.column("time", self.times), *rows]
            own = dict(mode=[f"{each}={each}" for each in PICKED], duplicates="last", time="time", time_unit="ns")
            made = _recording.resample(given, **own, **self.asked)
            self._taken |= {each.name: each.values for each in made.arrays}
        return self._taken[mode] if self.targets.size else self.targets


def shared(clocks: list[np.ndarray]) -> np.ndarray | None:
    """Times from the latest first one to the earliest last one of some clocks, those of the longest among them; None where they
    do not overlap.
    """
    first, last = max(times[0] for times in clocks), min(times[-1] for times in clocks)
    most = max(clocks, key=len)
    return np.unique(np.append(most[(most > first) & (most < last)], [first, last])) if first <= last else None


def one_episode(
    times: np.ndarray, targets: np.ndarray, name: str, snap: float = 0.0, max_gap: int | None = None
) -> Episodes:
    return Episodes(times, targets, np.array([times.size]), np.array([targets.size]), [name], snap, max_gap)


def frames(first: np.ndarray, rows: np.ndarray, fps: Fraction) -> np.ndarray:
    """first + i / fps for i = 0, 1, ... (nanoseconds) in each of N episodes of so many rows, one after the other."""
    exact = np.arange(rows.max(initial=0)).astype(np.longdouble) * (10**9 * fps.denominator) / fps.numerator
    return np.repeat(first, rows) + np.floor(exact + np.longdouble(0.5)).astype(np.int64)[places(rows)]


def places(counts: np.ndarray) -> np.ndarray:
    """0, 1, ... in each of N episodes of so many rows, one after the other."""
    begins = np.cumsum(counts) - counts
    return np.arange(int(counts.sum())) - np.repeat(begins, counts)


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
