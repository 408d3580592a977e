"""Resampling the columns of one episode, from Arrow to Arrow."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import tmaops
from tmaops.dataset.errors import Refused
from tmaops.dataset.rules import Rules, brackets, compute, rows_of
from tmaops.dataset.tables import leaves_in


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
    if not pa.types.is_nested(kind):
        return pa.array(numbers[:, 0], type=kind, mask=missing)
    mask = None if missing is None else pa.array(missing)
    flat = pa.array(numbers.reshape(-1), type=kind.value_type)
    if pa.types.is_fixed_size_list(kind):
        return pa.FixedSizeListArray.from_arrays(flat, type=kind, mask=mask)
    ends = np.arange(numbers.shape[0] + 1, dtype=np.int64) * numbers.shape[1]
    made = pa.LargeListArray if pa.types.is_large_list(kind) else pa.ListArray
    offsets = pa.array(ends, type=pa.int64() if made is pa.LargeListArray else pa.int32())
    return made.from_arrays(offsets, flat, type=kind, mask=mask)


def _on_gpu(
    numbers: dict[str, np.ndarray],
    rules: Rules,
    times: np.ndarray,
    offsets: np.ndarray,
    targets: np.ndarray,
    target_offsets: np.ndarray,
) -> dict[str, np.ndarray]:
    """compute() through torch, for modes that the operator has."""
    import torch

    made = {}
    for names in {tuple(name for name in rules.partners.get(name, [name]) if name in numbers) for name in numbers}:
        values = np.concatenate([numbers[name] for name in names], axis=1)
        groups = rules[names[0]].parts if len(names) == 1 else ((0, values.shape[1], "slerp"),)
        there = [torch.from_numpy(np.array(array)).to("cuda") for array in (values, times, targets)]
        result = tmaops.resample(
            *there,
            groups=[tuple(group) for group in groups],
            source_offsets=offsets,
            target_offsets=target_offsets,
            duplicates="last",
        )
        parts = np.split(result.cpu().numpy(), np.cumsum([numbers[name].shape[1] for name in names])[:-1], axis=1)
        made |= dict(zip(names, parts, strict=True))
    return made


def compute_columns(
    numbers: dict[str, np.ndarray], rules: Rules, episodes: "Episodes", device: str = "cpu"
) -> dict[str, np.ndarray]:
    """Columns (S, channels) of episodes at their targets, on the host or through torch on a GPU ("cuda"): (T, channels)."""
    if not numbers or not episodes.targets.size:
        return {
            name: np.empty((episodes.targets.size, values.shape[1]), values.dtype) for name, values in numbers.items()
        }
    offsets, target_offsets = (np.append(0, np.cumsum(counts)) for counts in (episodes.rows, episodes.counts))
    place = (episodes.times, offsets, episodes.targets, target_offsets)
    plain = ("linear", "cubic", "slerp")  # modes that a GPU has
    there = {
        name: values
        for name, values in numbers.items()
        if device != "cpu" and all(part.mode in plain for part in rules[name].parts)
    }
    here = {name: values for name, values in numbers.items() if name not in there}
    try:
        return (compute(here, rules, *place) if here else {}) | (_on_gpu(there, rules, *place) if there else {})
    except tmaops.Error as error:
        if len(numbers) == 1 or len(episodes.names) > 1:
            raise Refused(f"{episodes.names[0]}: column '{next(iter(numbers))}'", error.got, error.needed) from error
    for names in {tuple(rules.partners.get(name, [name])) for name in numbers}:  # one by one, to name the column
        try:
            compute({name: numbers[name] for name in names}, rules, *place)
        except tmaops.Error as error:
            raise Refused(f"{episodes.names[0]}: column '{names[0]}'", error.got, error.needed) from error
    raise Refused(episodes.names[0], "columns that cannot be resampled together", "another --mode")


@dataclass
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
    taken: np.ndarray | None = None  # of arrays that hold more: their rows that have these times (S)

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


def _one(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(column, pa.Array):
        return column
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _numbers(column: pa.ChunkedArray | pa.Array, where: str) -> np.ndarray:
    if pa.types.is_integer(column.type) or pa.types.is_boolean(column.type):
        return _one(column).to_numpy(zero_copy_only=False).reshape(-1, 1)
    return np.ascontiguousarray(real_numbers(column, where))


def _computed(
    columns: dict[str, pa.ChunkedArray], rules: Rules, clock: Clock, device: str
) -> dict[str, pa.ChunkedArray | pa.Array]:
    """Columns whose numbers are computed, at the targets of a clock, in the types that they have.

    A null row has no value: a target strictly between it and a neighbour is null.
    """
    where = clock.episodes.names[0]
    together = {name: rules.partners.get(name, [name]) for name in columns}
    holes = {name for name in columns if any(columns[other].null_count for other in together[name])}
    whole = {
        name: _numbers(column, f"{where}: column '{name}'") for name, column in columns.items() if name not in holes
    }
    made: dict[str, pa.ChunkedArray | pa.Array] = {
        name: like(numbers, columns[name].type, clock.empty)
        for name, numbers in compute_columns(whole, rules, clock.episodes, device).items()
    }
    for names in {tuple(together[name]) for name in columns if name in holes}:
        parts: dict[str, list[pa.Array]] = {name: [] for name in names}
        row = 0
        for own in clock.each:
            slices = {name: columns[name].slice(row, own.times.size) for name in names}
            for name, part in _with_holes(slices, rules, own, device).items():
                parts[name].append(part)
            row += own.times.size
        made |= {name: pa.chunked_array(found, columns[name].type) for name, found in parts.items()}
    return made


def _with_holes(columns: dict[str, pa.ChunkedArray], rules: Rules, clock: Clock, device: str) -> dict[str, pa.Array]:
    """Columns of one episode that are resampled together, from the rows where none of them is null."""
    null = np.logical_or.reduce([column.is_null().to_numpy() for column in columns.values()])
    before, after = clock.around
    missing = np.where(clock.targets == clock.times[before], null[before], null[before] | null[after])
    missing = missing if clock.empty is None else missing | clock.empty
    present = np.flatnonzero(~null)
    if present.size == 0:
        return {name: pa.nulls(clock.targets.size, column.type) for name, column in columns.items()}
    where = clock.episodes.names[0]
    episode = one_episode(clock.times[present], clock.targets, where)
    numbers = {
        name: _numbers(column.take(pa.array(present)), f"{where}: column '{name}'") for name, column in columns.items()
    }
    made = compute_columns(numbers, rules, episode, device)
    return {name: like(values, columns[name].type, missing) for name, values in made.items()}


def _each_once(column: pa.ChunkedArray | pa.Array, clock: Clock) -> pa.Array:
    """Lists whose elements go to the target nearest to their row, of two that are equally near to the earlier one."""
    lists = _one(column)
    ends = np.cumsum(clock.episodes.counts)
    first = np.repeat(ends - clock.episodes.counts, clock.episodes.rows)
    last = np.repeat(ends - 1, clock.episodes.rows)
    found = np.searchsorted(clock.targets, clock.times)
    before, after = np.clip(found - 1, first, last), np.clip(found, first, last)
    near = np.where(clock.times - clock.targets[before] <= clock.targets[after] - clock.times, before, after)
    null = lists.is_null().to_numpy(zero_copy_only=False)
    lengths = np.where(null, 0, lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False))
    counts = np.bincount(near, lengths, clock.targets.size).astype(np.int64)
    offsets = np.append(0, np.cumsum(counts))
    empty = np.bincount(near[~null], minlength=clock.targets.size) == 0 if null.any() else None
    large = pa.types.is_large_list(lists.type)
    return (pa.LargeListArray if large else pa.ListArray).from_arrays(
        pa.array(offsets, pa.int64() if large else pa.int32()),
        lists.flatten(),
        type=lists.type,
        mask=None if empty is None else pa.array(empty),
    )


def resample_columns(
    columns: dict[str, pa.ChunkedArray], rules: Rules, clock: Clock, device: str = "cpu"
) -> dict[str, pa.ChunkedArray | pa.Array]:
    """Columns by name at the targets of a clock, in the types that they have."""
    taken = {name: rules[name].taken for name in columns}
    made = _computed({name: column for name, column in columns.items() if taken[name] is None}, rules, clock, device)
    for name, column in columns.items():
        if taken[name] == "each":
            made[name] = _each_once(column, clock) if clock.targets.size else column.slice(0, 0)
        elif taken[name] is not None:
            made[name] = column.take(pa.array(clock.rows(taken[name]), mask=clock.empty))
    return made


def resample_episodes(
    table: pa.Table, episodes: Episodes, rules: Rules, max_gap: int | None = None, device: str = "cpu"
) -> pa.Table:
    """The rows of episodes at their targets: same columns, order, types and metadata.

    max_gap: nanoseconds; targets strictly between two rows further apart have no data, which is null. The fields of a struct
    are columns with names of their own ("observation.state"); a struct that is null is taken as `previous`.
    """
    try:
        return _together(table, episodes, rules, max_gap, device)
    except Refused:
        if len(episodes.names) == 1:
            raise
    parts, first = [], 0  # one by one, so that the message names the episode
    for episode in episodes.each():
        parts.append(_together(table.slice(first, episode.times.size), episode, rules, max_gap, device))
        first += episode.times.size
    return pa.concat_tables(parts)


def _together(table: pa.Table, episodes: Episodes, rules: Rules, max_gap: int | None, device: str) -> pa.Table:
    clock = Clock(episodes, max_gap)
    names = table.column_names
    leaves = dict(leaf for name, column in zip(names, table.columns, strict=True) for leaf in leaves_in(column, name))
    made = resample_columns(leaves, rules, clock, device)

    def rebuilt(column: pa.ChunkedArray | pa.Array, name: str) -> pa.ChunkedArray | pa.Array:
        if not pa.types.is_struct(column.type):
            return made[name]
        fields = list(column.type)
        parts = [
            _one(rebuilt(child, f"{name}.{field.name}")) for child, field in zip(column.flatten(), fields, strict=True)
        ]
        missing = column.is_null().to_numpy()[clock.rows("previous")]
        missing = missing if clock.empty is None else missing | clock.empty
        return pa.StructArray.from_arrays(parts, fields=fields, mask=pa.array(missing))

    columns = [rebuilt(column, name) for name, column in zip(names, table.columns, strict=True)]
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
