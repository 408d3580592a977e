"""Resampling the columns of episodes, from Arrow to Arrow."""

import re

import numpy as np
import pyarrow as pa
import tmaops
from tmaops.dataset.clock import Episodes
from tmaops.dataset.errors import Refused
from tmaops.dataset.rules import BACK, INTERVAL, MASK, Rule, Rules, compute
from tmaops.dataset.tables import flat, one, real_numbers, shape_of


def list_array(values: pa.Array, offsets: np.ndarray, kind: pa.DataType, missing: np.ndarray | None = None) -> pa.Array:
    """Lists of a type: of row i, values[offsets[i]:offsets[i + 1]]."""
    large = pa.types.is_large_list(kind)
    made = pa.LargeListArray if large else pa.ListArray
    mask = None if missing is None else pa.array(missing)
    return made.from_arrays(pa.array(offsets, pa.int64() if large else pa.int32()), values, type=kind, mask=mask)


def like(
    numbers: np.ndarray, kind: pa.DataType, missing: np.ndarray | None, shape: tuple[int, ...] | None = None
) -> pa.Array:
    """Numbers (T, channels) as an Arrow array of the type that the column has; null where `missing`. shape: of a row's lists."""
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, like(numbers, kind.storage_type, missing, shape))
    if not pa.types.is_nested(kind):
        if pa.types.is_decimal(kind):
            return pa.array(np.round(numbers[:, 0], kind.scale), mask=missing, from_pandas=True).cast(kind)
        if numbers.dtype.kind == "f" and not pa.types.is_floating(kind):  # of whole numbers and flags with nulls
            numbers = np.rint(np.nan_to_num(numbers)).astype(kind.to_pandas_dtype())
        return pa.array(numbers[:, 0], type=kind, mask=missing)
    size, *rest = shape or numbers.shape[1:]
    values = like(numbers.reshape(len(numbers) * size, -1), kind.value_type, None, tuple(rest))
    if pa.types.is_fixed_size_list(kind):
        return pa.FixedSizeListArray.from_arrays(values, type=kind, mask=None if missing is None else pa.array(missing))
    return list_array(values, np.arange(len(numbers) + 1) * size, kind, missing)


def compute_columns(numbers: dict[str, np.ndarray], rules: Rules, episodes: Episodes) -> dict[str, np.ndarray]:
    """Columns (S, channels) of episodes at their targets: (T, channels)."""
    if not numbers or not episodes.targets.size:
        return {name: values[:0] for name, values in numbers.items()}
    try:
        return compute(numbers, rules, episodes)
    except tmaops.Error as error:
        column = re.search(r"\bc(\d+)\b", error.where)
        name = [*numbers][int(column[1]) if column else 0]
        raise Refused(f"{episodes.names[0]}: column '{name}'", error.got, error.needed) from error


def _numbers(column: pa.ChunkedArray, rule: Rule, null: np.ndarray, where: str) -> np.ndarray:
    """A column of numbers as (S, channels); where there are none NaN, and of a quaternion what has a norm."""
    made = real_numbers(column, where)
    if null.any():
        if pa.types.is_integer(column.type) and any(part.mode == "sum" for part in rule.parts):
            raise Refused(where, "nulls in whole numbers that are summed up", "a number in every row, or real numbers")
        made = made.copy()
        made[null] = 1 if any(part.mode == "slerp" for part in rule.parts) else np.nan
    return made


def _computed(
    columns: dict[str, pa.ChunkedArray], rules: Rules, episodes: Episodes, empty: np.ndarray | None
) -> dict[str, pa.Array]:
    """Columns whose numbers are computed, at the targets of episodes, in the types that they have.

    A null row has no value: a target strictly between it and a neighbour is null, and so is what needs it otherwise.
    """
    numbers, missing = {}, {}
    for names in rules.together(columns):
        own = [columns[name] for name in names]
        some = any(column.null_count for column in own)
        null = np.logical_or.reduce([column.is_null().to_numpy() for column in own]) if some else np.zeros(0, bool)
        if some and null.all():
            numbers |= dict.fromkeys(names)
            continue
        numbers |= {n: _numbers(columns[n], rules[n], null, f"{episodes.names[0]}: column '{n}'") for n in names}
        if some:
            over = all(part.mode in INTERVAL for name in names for part in rules[name].parts)  # NaN reaches what it may
            missing |= dict.fromkeys(names, np.zeros(episodes.targets.size, bool) if over else episodes.beside(null))
    nothing = pa.nulls(episodes.targets.size)
    made = {name: nothing.cast(columns[name].type) for name, values in numbers.items() if values is None}
    gaps = episodes.empty
    whole = {name: values for name, values in numbers.items() if values is not None}
    for name, values in compute_columns(whole, rules, episodes).items():
        gone = empty
        if empty is not None and all(part.mode in BACK for part in rules[name].parts):  # what was before stays
            gone = None if gaps is None else gaps & episodes.without_events
        if name in missing:
            lost = missing[name] | np.isnan(values).any(axis=1)
            gone = lost if gone is None else lost | gone
        made[name] = like(values, columns[name].type, gone, shape_of(columns[name]))
    return made


def _each_once(column: pa.ChunkedArray | pa.Array, episodes: Episodes) -> pa.Array:
    """Lists whose elements go to the target nearest to their row, of two that are equally near to the earlier one."""
    lists, swapped = one(column), (episodes.targets, episodes.times, episodes.counts, episodes.rows, episodes.names)
    near = Episodes(*swapped).taken("nearest")
    null = lists.is_null().to_numpy(zero_copy_only=False)
    lengths = np.where(null, 0, lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False))
    offsets = np.append(0, np.cumsum(np.bincount(near, lengths, episodes.targets.size).astype(np.int64)))
    empty = np.bincount(near[~null], minlength=episodes.targets.size) == 0 if null.any() else None
    return list_array(lists.flatten(), offsets, lists.type, empty)


def resample_columns(
    columns: dict[str, pa.ChunkedArray], rules: Rules, episodes: Episodes
) -> dict[str, pa.ChunkedArray | pa.Array]:
    """Columns by name at the targets of episodes, in the types that they have."""
    taken, empty = {name: rules[name].taken for name in columns}, episodes.empty
    if taken.get(MASK) == MASK:
        kept = np.asarray(one(columns[MASK]).cast(pa.bool_()).fill_null(False))
        beside = episodes.beside(~kept)
        episodes, columns = episodes.of_rows(kept), {name: c.filter(pa.array(kept)) for name, c in columns.items()}
        empty = beside if (gaps := episodes.empty) is None else gaps | beside
    made = _computed({name: c for name, c in columns.items() if taken[name] is None}, rules, episodes, empty)
    for name, column in columns.items():
        if taken[name] == MASK:
            made[name] = pa.array(~empty).cast(column.type)
        elif taken[name] == "each":
            made[name] = _each_once(column, episodes) if episodes.targets.size else column.slice(0, 0)
        elif taken[name] is not None:
            made[name] = column.take(pa.array(episodes.taken(taken[name]), mask=empty))
    return made


def resample_episodes(
    table: pa.Table,
    episodes: Episodes,
    rules: Rules,
    made: dict[str, pa.Array | pa.ChunkedArray] | None = None,
    schema: pa.Schema | None = None,
) -> pa.Table:
    """The rows of episodes at their targets: same columns, order, types and metadata, or those of `schema`.

    Targets strictly between two rows further apart than episodes.max_gap have no data, which is null. The fields of a struct
    are columns with names of their own ("observation.state"); a struct that is null is taken as `previous`. made: columns and
    fields that are not resampled, at the targets: those of times and episodes.
    """
    leaves, schema = flat(table), schema or table.schema
    columns = {name: leaves.column(name) for name in leaves.column_names if name not in (made or {})}
    try:
        found = resample_columns(columns, rules, episodes) | (made or {})
    except Refused:
        for first, own in zip(episodes.begins.tolist(), episodes.each(), strict=True) if episodes.names[1:] else ():
            part = {name: column.slice(first, own.times.size) for name, column in columns.items()}
            resample_columns(part, rules, own)  # one by one, so that the message names the episode
        raise
    empty = episodes.empty

    def rebuilt(name: str, kind: pa.DataType, column: pa.ChunkedArray | None) -> pa.ChunkedArray | pa.Array:
        if name in found:
            return found[name]
        children = zip(column.flatten(), list(kind), strict=True)
        parts = [one(rebuilt(f"{name}.{field.name}", field.type, child)) for child, field in children]
        missing = column.is_null().to_numpy()[episodes.taken("previous")]
        missing = missing if empty is None else missing | empty
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=pa.array(missing))

    given = dict(zip(table.column_names, table.columns, strict=True))
    return pa.Table.from_arrays([rebuilt(f.name, f.type, given.get(f.name)) for f in schema], schema=schema)
