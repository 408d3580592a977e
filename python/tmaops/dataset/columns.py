"""Resampling the columns of one episode, from Arrow to Arrow."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

import tmaops
from tmaops.dataset import clock
from tmaops.dataset.errors import Refused
from tmaops.dataset.rules import Rule, brackets, rows_of


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


def _like(numbers: np.ndarray, kind: pa.DataType, missing: np.ndarray | None) -> pa.Array:
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


def compute(values: np.ndarray, times: np.ndarray, targets: np.ndarray, mode: str, device: str, where: str) -> np.ndarray:
    """tmaops.resample of (S, channels) at times (S) to targets (T), on the host or through torch on a GPU ("cuda")."""
    arrays = [values[None], times[None], targets[None]]
    try:
        if device == "cpu":
            return tmaops.resample(*arrays, interpolation=mode)[0]
        import torch

        return tmaops.resample(*(torch.from_numpy(array).to(device) for array in arrays), interpolation=mode)[0].cpu().numpy()
    except tmaops.InvalidValue as error:
        raise Refused(where, error.got, error.needed) from error


def compute_parts(
    numbers: np.ndarray, rule: Rule, times: np.ndarray, targets: np.ndarray, device: str, where: str
) -> np.ndarray:
    """The channels (S, channels) of a column, each part of them by its mode: (T, channels)."""
    if len(rule.parts) == 1:
        return compute(np.ascontiguousarray(numbers), times, targets, rule.parts[0].mode, device, where)
    result = np.empty((targets.size, numbers.shape[1]), numbers.dtype)
    for part in rule.parts:
        channels = slice(part.first, part.first + part.count)
        result[:, channels] = compute(np.ascontiguousarray(numbers[:, channels]), times, targets, part.mode, device, where)
    return result


def _resample_struct(
    column: pa.ChunkedArray, times: np.ndarray, targets: np.ndarray, empty: np.ndarray | None, resample_field: Callable
) -> pa.StructArray:
    """A struct whose fields are resampled each by its own rule; a struct that is null is taken as `previous`."""
    fields = list(column.type)
    parts = [_one(resample_field(child, field)) for child, field in zip(column.flatten(), fields, strict=True)]
    missing = column.is_null().to_numpy()[rows_of("previous", times, targets)]
    missing = missing if empty is None else missing | empty
    return pa.StructArray.from_arrays(parts, fields=fields, mask=pa.array(missing))


def _one(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column


def resample_column(
    column: pa.ChunkedArray,
    rule: Rule,
    times: np.ndarray,
    targets: np.ndarray,
    empty: np.ndarray | None = None,
    where: str = "column",
    device: str = "cpu",
) -> pa.ChunkedArray | pa.Array:
    """One column of an episode at its targets, in the type that it has.

    times (S) and targets (T): int64 nanoseconds that increase. empty (T): targets without data, which become null.
    A null row of real numbers has no value: a target strictly between it and a neighbour is null.
    """
    if rule.taken:
        rows = pa.array(rows_of(rule.taken, times, targets), mask=empty)
        return column.take(rows)
    missing = empty
    if column.null_count:
        null = column.is_null().to_numpy()
        before, after = brackets(times, targets)
        gone = (null[before] & (targets != times[after])) | (null[after] & (targets != times[before]))
        missing = gone if missing is None else missing | gone
        present = np.flatnonzero(~null)
        if present.size == 0:
            return pa.nulls(targets.size, column.type)
        column, times = column.take(pa.array(present)), times[present]
    result = compute_parts(real_numbers(column, where), rule, times, targets, device, where)
    return _like(result, column.type, missing)


@dataclass(frozen=True)
class Episode:
    """times (S) and targets (T): int64 nanoseconds that increase, the targets within the times. where: its name in messages."""

    times: np.ndarray
    targets: np.ndarray
    where: str


def resample_episodes(
    table: pa.Table,
    episodes: list[Episode],
    rule_of: Callable[[str, pa.DataType], Rule],
    max_gap: int | None = None,
    device: str = "cpu",
) -> pa.Table:
    """Episodes whose rows follow one another, each at its targets: same columns, order, types and metadata.

    max_gap: nanoseconds; targets strictly between two rows further apart have no data, which is null. The fields of a struct
    are columns with names of their own ("observation.state").
    """
    try:
        return _together(table, episodes, rule_of, max_gap, device)
    except Refused:
        if len(episodes) == 1:
            raise
    parts, first = [], 0  # one by one, so that the message names the episode
    for episode in episodes:
        parts.append(_together(table.slice(first, episode.times.size), [episode], rule_of, max_gap, device))
        first += episode.times.size
    return pa.concat_tables(parts)


def _together(
    table: pa.Table, episodes: list[Episode], rule_of: Callable, max_gap: int | None, device: str
) -> pa.Table:
    times, targets = _one_clock(episodes)
    empty = in_gaps(times, targets, max_gap)

    def resampled(column: pa.ChunkedArray, field: pa.Field, above: str) -> pa.ChunkedArray | pa.Array:
        name = above + field.name
        if pa.types.is_struct(field.type):
            return _resample_struct(column, times, targets, empty, lambda child, inner: resampled(child, inner, f"{name}."))
        rule, where = rule_of(name, field.type), f"{episodes[0].where}: column '{name}'"
        if len(episodes) == 1 or not (column.null_count or rule.sees_the_ends):
            return resample_column(column, rule, times, targets, empty, where, device)
        chunks, row, target = [], 0, 0
        for episode in episodes:
            own, gaps = column.slice(row, episode.times.size), None if empty is None else empty[target : target + episode.targets.size]
            made = resample_column(own, rule, episode.times, episode.targets, gaps, where, device)
            chunks += made.chunks if isinstance(made, pa.ChunkedArray) else [made]
            row, target = row + episode.times.size, target + episode.targets.size
        return pa.chunked_array(chunks, field.type)

    columns = [resampled(column, field, "") for column, field in zip(table.columns, table.schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=table.schema)


def _one_clock(episodes: list[Episode]) -> tuple[np.ndarray, np.ndarray]:
    """Times and targets of episodes one after the other, moved so that all increase: a target keeps the samples around it."""
    if len(episodes) == 1:
        return episodes[0].times, episodes[0].targets
    times, targets, begin = [], [], 0
    for episode in episodes:
        times.append(episode.times + (begin - episode.times[0]))
        targets.append(episode.targets + (begin - episode.times[0]))
        begin = times[-1][-1] + 1
    return np.concatenate(times), np.concatenate(targets)


def in_gaps(times: np.ndarray, targets: np.ndarray, max_gap: int | None) -> np.ndarray | None:
    """Which targets lie strictly between two samples further apart than max_gap (nanoseconds); None where none does."""
    if max_gap is None:
        return None
    before, after = brackets(times, targets)
    empty = times[after] - times[before] > max_gap
    return empty if empty.any() else None


def check_gaps(schema: pa.Schema, times: np.ndarray, hz: Fraction, max_gap: int | None, where: str) -> None:
    """Refuses an episode with a gap beside a column that cannot be null."""
    stiff = next((field.name for field in schema if not field.nullable), None)
    if stiff is None or max_gap is None:
        return
    if in_gaps(times, clock.grid(int(times[0]), int(times[-1]), hz), max_gap) is not None:
        raise Refused(
            f"{where}: column '{stiff}'", "a gap, and a column without nulls", "a larger --max-gap, or a column that can be null"
        )
