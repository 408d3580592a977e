"""Resampling the columns of one episode, from Arrow to Arrow."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import tmaops
from tmaops.dataset.errors import Refused
from tmaops.dataset.rules import Rule, brackets, rows_of

if TYPE_CHECKING:
    import torch


def real_numbers(column: pa.ChunkedArray | pa.Array, where: str) -> np.ndarray:
    """A column of real numbers as (S, channels); nulls must have been filled. Shares memory where it can."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if pa.types.is_floating(column.type):
        return column.to_numpy(zero_copy_only=False).reshape(-1, 1)
    flat = column.flatten()
    if flat.null_count:
        raise Refused(where, "nulls inside lists", "whole lists that are null, or none")
    numbers = flat.to_numpy(zero_copy_only=False)
    if not pa.types.is_fixed_size_list(column.type):
        lengths = np.diff(column.offsets.to_numpy())
        if (lengths != lengths[:1]).any():
            raise Refused(where, f"lists of {lengths.min()} to {lengths.max()} numbers", "lists of one length")
    return numbers.reshape(len(column), -1)


def like(numbers: np.ndarray, kind: pa.DataType, missing: np.ndarray | None) -> pa.Array:
    """Numbers (T, channels) as an Arrow array of the type that the column has; null where `missing`."""
    if pa.types.is_floating(kind):
        return pa.array(numbers[:, 0], type=kind, mask=missing)
    mask = None if missing is None else pa.array(missing)
    flat = pa.array(numbers.reshape(-1), type=kind.value_type)
    if pa.types.is_fixed_size_list(kind):
        return pa.FixedSizeListArray.from_arrays(flat, type=kind, mask=mask)
    ends = np.arange(numbers.shape[0] + 1, dtype=np.int64) * numbers.shape[1]
    made = pa.LargeListArray if pa.types.is_large_list(kind) else pa.ListArray
    offsets = pa.array(ends, type=pa.int64() if made is pa.LargeListArray else pa.int32())
    return made.from_arrays(offsets, flat, type=kind, mask=mask)


def compute(
    values: np.ndarray, times: np.ndarray, targets: np.ndarray, mode: str, device: str, where: str, duplicates: str
) -> np.ndarray:
    """tmaops.resample of (S, channels) at times (S) to targets (T), on the host or through torch on a GPU ("cuda")."""
    arrays = [values[None], times[None], targets[None]]
    try:
        if device == "cpu":
            return tmaops.resample(*arrays, interpolation=mode, duplicates=duplicates)[0]
        there = [_on_gpu(array, device) for array in arrays]
        return tmaops.resample(*there, interpolation=mode, duplicates=duplicates)[0].cpu().numpy()
    except tmaops.InvalidValue as error:
        raise Refused(where, error.got, error.needed) from error


def _on_gpu(array: np.ndarray, device: str) -> "torch.Tensor":
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of memory of Arrow, which is read-only and only read here
        return torch.from_numpy(array).to(device)


def compute_parts(
    numbers: np.ndarray,
    rule: Rule,
    times: np.ndarray,
    targets: np.ndarray,
    device: str,
    where: str,
    duplicates: str = "error",
) -> np.ndarray:
    """The channels (S, channels) of a column, each part of them by its mode: (T, channels)."""
    if len(rule.parts) == 1:
        return compute(np.ascontiguousarray(numbers), times, targets, rule.parts[0].mode, device, where, duplicates)
    result = np.empty((targets.size, numbers.shape[1]), numbers.dtype)
    for part in rule.parts:
        channels = slice(part.first, part.first + part.count)
        result[:, channels] = compute(
            np.ascontiguousarray(numbers[:, channels]), times, targets, part.mode, device, where, duplicates
        )
    return result


@dataclass(frozen=True)
class Episodes:
    """N episodes whose rows follow one another.

    times (S): int64 nanoseconds that do not fall in an episode. targets (T): those at which it is wanted, within its times.
    rows and counts (N): how many samples and targets each has. names: in messages.
    """

    times: np.ndarray
    targets: np.ndarray
    rows: np.ndarray
    counts: np.ndarray
    names: list[str]

    def each(self) -> "list[Episodes]":
        """One by one."""
        times, targets = (
            np.split(self.times, np.cumsum(self.rows)[:-1]),
            np.split(self.targets, np.cumsum(self.counts)[:-1]),
        )
        return [one_episode(*parts) for parts in zip(times, targets, self.names, strict=True)]

    @cached_property
    def begins(self) -> np.ndarray:
        """The first row of each (N)."""
        return np.cumsum(self.rows) - self.rows


def one_episode(times: np.ndarray, targets: np.ndarray, name: str) -> Episodes:
    return Episodes(times, targets, np.array([times.size]), np.array([targets.size]), [name])


class Clock:
    """What the columns of some episodes share: their times (S) and targets (T), moved so that all increase, and the rows around
    each target. empty (T): targets without data, which become null; None where there are none.
    """

    def __init__(self, episodes: Episodes, max_gap: int | None = None):
        self.episodes, self._max_gap = episodes, max_gap
        self.times, self.targets = episodes.times, episodes.targets
        if len(episodes.names) > 1:
            first, last = self.times[episodes.begins], self.times[episodes.begins + episodes.rows - 1]
            spans = last - first + 1
            moved = np.cumsum(spans) - spans - first
            self.times, self.targets = (
                self.times + np.repeat(moved, episodes.rows),
                self.targets + np.repeat(moved, episodes.counts),
            )
        self.empty = None
        if max_gap is not None:
            before, after = self.around
            empty = self.times[after] - self.times[before] > max_gap
            self.empty = empty if empty.any() else None
        self._rows: dict[str, np.ndarray] = {}

    @cached_property
    def around(self) -> tuple[np.ndarray, np.ndarray]:
        return brackets(self.times, self.targets)

    @cached_property
    def duplicates(self) -> str:
        """What the operator is to do about equal times: refuse them, as there are none, or let the last one win."""
        return "last" if (self.times[1:] == self.times[:-1]).any() else "error"

    @cached_property
    def each(self) -> "list[Clock]":
        """The clocks of the episodes one by one."""
        return [Clock(episode, self._max_gap) for episode in self.episodes.each()]

    def rows(self, mode: str) -> np.ndarray:
        """The row that each target takes."""
        if mode not in self._rows:
            rows = rows_of("previous" if mode == "final" else mode, self.times, self.targets, self.around)
            if mode == "final":
                rows = rows.copy()
                has = self.episodes.counts > 0
                rows[np.cumsum(self.episodes.counts)[has] - 1] = (self.episodes.begins + self.episodes.rows - 1)[has]
            self._rows[mode] = rows
        return self._rows[mode]


def _resample_struct(column: pa.ChunkedArray, clock: Clock, resample_field: Callable) -> pa.StructArray:
    """A struct whose fields are resampled each by its own rule; a struct that is null is taken as `previous`."""
    fields = list(column.type)
    parts = [_one(resample_field(child, field)) for child, field in zip(column.flatten(), fields, strict=True)]
    missing = column.is_null().to_numpy()[clock.rows("previous")]
    missing = missing if clock.empty is None else missing | clock.empty
    return pa.StructArray.from_arrays(parts, fields=fields, mask=pa.array(missing))


def _one(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column


def resample_column(
    column: pa.ChunkedArray, rule: Rule, clock: Clock, where: str = "column", device: str = "cpu"
) -> pa.ChunkedArray | pa.Array:
    """One column at the targets of a clock, in the type that it has.

    A null row of real numbers has no value: a target strictly between it and a neighbour is null.
    """
    if rule.taken:
        return column.take(pa.array(clock.rows(rule.taken), mask=clock.empty))
    if len(clock.episodes.names) > 1 and (column.null_count or rule.sees_the_ends):
        chunks, row = [], 0
        for own in clock.each:
            made = resample_column(column.slice(row, own.times.size), rule, own, where, device)
            chunks += made.chunks if isinstance(made, pa.ChunkedArray) else [made]
            row += own.times.size
        return pa.chunked_array(chunks, column.type)
    missing, times, targets = clock.empty, clock.times, clock.targets
    if column.null_count:
        null = column.is_null().to_numpy()
        before, after = clock.around
        at = targets == times[before]
        gone = np.where(at, null[before], null[before] | null[after])
        missing = gone if missing is None else missing | gone
        present = np.flatnonzero(~null)
        if present.size == 0:
            return pa.nulls(targets.size, column.type)
        column, times = column.take(pa.array(present)), times[present]
    result = compute_parts(real_numbers(column, where), rule, times, targets, device, where, clock.duplicates)
    return like(result, column.type, missing)


def resample_episodes(
    table: pa.Table,
    episodes: Episodes,
    rule_of: Callable[[str, pa.DataType], Rule],
    max_gap: int | None = None,
    device: str = "cpu",
) -> pa.Table:
    """The rows of episodes at their targets: same columns, order, types and metadata.

    max_gap: nanoseconds; targets strictly between two rows further apart have no data, which is null. The fields of a struct
    are columns with names of their own ("observation.state").
    """
    try:
        return _together(table, episodes, rule_of, max_gap, device)
    except Refused:
        if len(episodes.names) == 1:
            raise
    parts, first = [], 0  # one by one, so that the message names the episode
    for episode in episodes.each():
        parts.append(_together(table.slice(first, episode.times.size), episode, rule_of, max_gap, device))
        first += episode.times.size
    return pa.concat_tables(parts)


def _together(table: pa.Table, episodes: Episodes, rule_of: Callable, max_gap: int | None, device: str) -> pa.Table:
    clock = Clock(episodes, max_gap)

    def resampled(column: pa.ChunkedArray, field: pa.Field, above: str) -> pa.ChunkedArray | pa.Array:
        name = above + field.name
        if pa.types.is_struct(field.type):
            return _resample_struct(column, clock, lambda child, inner: resampled(child, inner, f"{name}."))
        return resample_column(
            column, rule_of(name, field.type), clock, f"{episodes.names[0]}: column '{name}'", device
        )

    columns = [resampled(column, field, "") for column, field in zip(table.columns, table.schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=table.schema)


def in_gaps(times: np.ndarray, targets: np.ndarray, max_gap: int | None) -> np.ndarray | None:
    """Which targets lie strictly between two samples further apart than max_gap (nanoseconds); None where none does."""
    if max_gap is None:
        return None
    return Clock(one_episode(times, targets, ""), max_gap).empty


def check_gaps(schema: pa.Schema, episodes: Episodes, max_gap: int | None) -> None:
    """Refuses an episode with a gap beside a column that cannot be null."""
    stiff = next((field.name for field in schema if not field.nullable), None)
    if stiff is not None and max_gap is not None and Clock(episodes, max_gap).empty is not None:
        raise Refused(
            f"{episodes.names[0]}: column '{stiff}'",
            "a gap, and a column without nulls",
            "a larger --max-gap, or a column that can be null",
        )
