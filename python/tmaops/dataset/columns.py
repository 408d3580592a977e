"""Resampling the columns of one episode, from Arrow to Arrow."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

import tmaops
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
        lengths = np.unique(np.diff(column.offsets.to_numpy()))
        if lengths.size > 1:
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


def resample_column(
    column: pa.ChunkedArray,
    rule: Rule,
    times: np.ndarray,
    targets: np.ndarray,
    empty: np.ndarray | None = None,
    where: str = "column",
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
    numbers = real_numbers(column, where)
    result = np.empty((targets.size, numbers.shape[1]), numbers.dtype)
    for part in rule.parts:
        channels = slice(part.first, part.first + part.count)
        whole = part.count == numbers.shape[1]
        source = numbers if whole else np.ascontiguousarray(numbers[:, channels])
        made = tmaops.resample(source[None], times[None], targets[None], interpolation=part.mode)[0]
        result[:, channels] = made
    return _like(result, column.type, missing)


def resample_episode(
    table: pa.Table,
    times: np.ndarray,
    targets: np.ndarray,
    rule_of: Callable[[str], Rule],
    max_gap: int | None = None,
    where: str = "",
) -> pa.Table:
    """An episode's table at its targets: same columns, order, types and metadata; nulls where max_gap leaves no data.

    times and targets: int64 nanoseconds that increase. max_gap: nanoseconds; targets strictly between two rows further
    apart have no data.
    """
    empty = None
    if max_gap is not None:
        before, after = brackets(times, targets)
        empty = times[after] - times[before] > max_gap
        empty = empty if empty.any() else None
    columns = []
    for column, field in zip(table.columns, table.schema, strict=True):
        name = f"{where}column '{field.name}'"
        if empty is not None and not field.nullable:
            raise Refused(name, "a gap, and a column without nulls", "a larger --max-gap, or a column that can be null")
        columns.append(resample_column(column, rule_of(field.name), times, targets, empty, name))
    return pa.Table.from_arrays(columns, schema=table.schema)
