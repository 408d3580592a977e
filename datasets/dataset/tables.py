"""Parquet files whose rows are the samples of episodes, one episode after the other: read, resampled, written."""

import base64
import contextlib
import functools
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from tmaops._recording import mode_of, reads_text
from tmaops.dataset import clock
from tmaops.dataset.errors import Refused
from tmaops.dataset.formats import readable
from tmaops.dataset.places import opened
from tmaops.dataset.rules import MOST_CHANNELS, MOST_LETTERS, Known

ROW_GROUP_BYTES = 32 << 20  # of Arrow data that are written together
READ_BYTES = 1 << 20  # of a column that are read from the disk together
BATCH_BYTES = 4 << 20  # of Arrow data that are decoded together
FIRST_ROWS = 8192  # by which the rules of a data set are decided
BROKEN = (pa.ArrowException,)  # what Arrow raises at a file that cannot be read, beside OSError
BATCH_ROWS = 65536  # at most: a dictionary can make the file far smaller than its data


@dataclass(frozen=True)
class Runs:
    """The episodes of one file: their names, where the rows of each begin, how many there are, and how many targets (N)."""

    names: pa.Array
    first: np.ndarray
    rows: np.ndarray
    targets: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, which: slice | np.ndarray) -> "Runs":
        names = self.names[which] if isinstance(which, slice) else self.names.take(pa.array(which))
        targets = None if self.targets is None else self.targets[which]
        return Runs(names, self.first[which], self.rows[which], targets)

    def each(self) -> "Iterator[Runs]":
        return (self[i : i + 1] for i in range(len(self)))

    @property
    def labels(self) -> list[str]:
        """What messages call them."""
        return [f"episode {name}" for name in self.names.to_pylist()]

    def without(self, left_out: set[str]) -> "Runs":
        if not left_out:
            return self
        lost = pc.is_in(self.names.cast(pa.string()), value_set=pa.array(sorted(left_out), pa.string()))
        return self[np.flatnonzero(~lost.to_numpy(zero_copy_only=False))]


def joined(parts: list[Runs]) -> Runs:
    """Runs of one file with their targets, one after the other."""
    numbers = (np.concatenate([getattr(part, name) for part in parts]) for name in ("first", "rows", "targets"))
    return Runs(pa.concat_arrays([part.names for part in parts]), *numbers)


def parquet(path: Path) -> pq.ParquetFile:
    """Opens a file for streaming; refuses by name what is no Parquet file, two columns of one name, and types without kernels."""
    with readable(str(path), BROKEN):
        file = pq.ParquetFile(opened(path), memory_map=False, buffer_size=READ_BYTES, pre_buffer=False)
    schema = flat_schema(file.schema_arrow)
    for name, kind in zip(schema.names, schema.types, strict=True):
        if "_view" in str(kind):
            raise Refused(f"{path}: column '{name}'", str(kind), "another type: table.cast(schema) of pyarrow")
        if len(schema.get_all_field_indices(name)) > 1:
            raise Refused(str(path), f"two columns of the name '{name}'", "a name for each column and field")
    return file


def read_column(path: Path, name: str) -> pa.ChunkedArray:
    """A column of a whole file; refuses by name what cannot be read."""
    with readable(str(path), BROKEN):
        return pq.ParquetFile(opened(path)).read(columns=[name], use_threads=False).column(0)


def runs_of(column: pa.ChunkedArray, where: str) -> Runs:
    """The runs of equal values in an episode column."""
    if column.null_count:
        raise Refused(where, f"{column.null_count} nulls", "an episode for every row")
    if len(column) == 0:
        return Runs(pa.array([], pa.string()), np.empty(0, np.int64), np.empty(0, np.int64))
    values = one(column)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    changes = pc.not_equal(values[1:], values[:-1]).to_numpy(zero_copy_only=False)
    starts = np.concatenate([[0], np.flatnonzero(changes) + 1])
    runs = Runs(values.take(pa.array(starts)), starts, np.diff(starts, append=len(values)))
    if (twice := a_repeated(runs.names)) is not None:
        mend = "the rows of an episode one after the other (sort_values(EPISODE, kind='stable') of pandas puts them so)"
        raise Refused(where, f"episode {twice!r} in two places", mend)
    return runs


def a_repeated(names: pa.Array) -> object:
    """A name that is there twice; None without one."""
    if pc.count_distinct(names, mode="all").as_py() == len(names):
        return None
    counts = pc.value_counts(names)
    return counts.filter(pc.greater(counts.field("counts"), 1))[0]["values"].as_py()


def starts_of(flags: pa.ChunkedArray, name: str) -> Runs:
    """The episodes of a file by a column that is true in the first row of each."""
    if flags.null_count:
        raise Refused(name, f"{flags.null_count} nulls in the flags of first steps", "true or false for every row")
    starts = np.flatnonzero(flags.to_numpy())
    if len(flags) and (starts.size == 0 or starts[0] != 0):
        raise Refused(f"{name}: row 0", "no first step", "a file that begins with an episode")
    names = pa.array([f"{name}:{i}" for i in range(starts.size)], pa.string())
    return Runs(names, starts, np.diff(starts, append=len(flags)))


def batches_of(file: pq.ParquetFile, name: str, columns: list[str] | None) -> Iterator[pa.RecordBatch]:
    """A file in batches: whole row groups where these are small. Refuses by name what cannot be read."""
    with readable(name, BROKEN):
        for number in range(file.num_row_groups):
            group = file.metadata.row_group(number)
            if group.total_byte_size <= ROW_GROUP_BYTES and group.num_rows <= BATCH_ROWS:
                yield from file.read_row_group(number, columns=columns, use_threads=False).to_batches()
            else:
                rows = min(BATCH_ROWS, BATCH_BYTES * group.num_rows // group.total_byte_size)
                yield from file.iter_batches(max(rows, 1), row_groups=[number], columns=columns, use_threads=False)


def read_runs(
    file: pq.ParquetFile, name: str, runs: Runs, most: int, columns: list[str] | None = None
) -> Iterator[tuple[Runs, pa.Table]]:
    """Runs that follow one another with their rows, of these or all columns: at most so many rows, or one run. Reads the file
    once, and holds little more than that.
    """
    held: list[pa.RecordBatch] = []
    held_first = held_rows = 0  # the first row that is held, and how many are
    batches = batches_of(file, name, columns)
    for group in grouped(runs, most):
        first, end = int(group.first[0]), int(group.first[-1] + group.rows[-1])
        while held_first + held_rows < end:
            batch = next(batches, None)
            if batch is None:
                raise Refused(name, "fewer rows than its footer says", "a whole file")
            held.append(batch)
            held_rows += batch.num_rows
        table = pa.Table.from_batches(held) if held else pa.Table.from_batches([], file.schema_arrow)
        yield group, table.slice(first - held_first, end - first)
        done = end - held_first
        while held and held[0].num_rows <= done:
            rows = held.pop(0).num_rows
            done, held_first, held_rows = done - rows, held_first + rows, held_rows - rows


def grouped(runs: Runs, most: int) -> Iterator[Runs]:
    """Runs that follow one another, of at most so many rows together, or one run."""
    firsts, ends = runs.first, runs.first + runs.rows
    breaks = np.append(np.flatnonzero(firsts[1:] != ends[:-1]) + 1, len(runs))  # runs that do not follow the one before
    begin = 0
    while begin < len(runs):
        end = max(int(np.searchsorted(ends, firsts[begin] + most, "right")), begin + 1)
        end = min(end, int(breaks[np.searchsorted(breaks, begin, "right")]))
        yield runs[begin:end]
        begin = end


def columns_of(metadata: pq.FileMetaData | None) -> list[pq.ColumnChunkMetaData]:
    """The columns of the first row group of a file; none where there is no file or no row."""
    group = metadata.row_group(0) if metadata is not None and metadata.num_row_groups else None
    return [group.column(i) for i in range(group.num_columns)] if group else []


def _has_dictionary(column: pq.ColumnChunkMetaData) -> bool:
    """Whether to write a column with a dictionary: where its source has one that makes it smaller. One of numbers that hardly
    repeat takes most of the time of writing, and makes the file larger.
    """
    width = {"INT32": 4, "INT64": 8, "FLOAT": 4, "DOUBLE": 8}.get(column.physical_type, 0)
    plain = column.num_values * width or column.total_uncompressed_size + 1  # of texts and bytes it is not known
    has_one = any(encoding.endswith("DICTIONARY") for encoding in column.encodings)
    return has_one and column.total_uncompressed_size < plain


def _codec(column: pq.ColumnChunkMetaData) -> str:
    """The codec of a column of the source, and none where it does not make much text or bytes smaller: encoded images."""
    large = column.physical_type == "BYTE_ARRAY" and column.total_uncompressed_size >= 1 << 16
    in_vain = large and column.total_compressed_size > 0.98 * column.total_uncompressed_size
    return "NONE" if in_vain or column.compression == "UNCOMPRESSED" else column.compression


def _paths(column: pq.ColumnChunkMetaData) -> set[str]:
    """The path of a column in its source, and as Arrow writes it: older files call the elements of a list otherwise."""
    return {column.path_in_schema, re.sub(r"\.list\.[^.]+", ".list.element", column.path_in_schema)}


@contextlib.contextmanager
def writer(path: Path, schema: pa.Schema, like: pq.FileMetaData | None) -> Iterator[Callable[[pa.Table], None]]:
    """Writes the tables that it is called with to one Parquet file, in row groups of a size that does not depend on the machine."""
    columns = columns_of(like)
    codecs = {name: _codec(c) for c in columns for name in _paths(c)} or ("ZSTD" if like is None else "NONE")
    dictionaries = [name for c in columns if _has_dictionary(c) for name in _paths(c)] if columns else True
    held: list[pa.Table] = []
    with pq.ParquetWriter(path, schema, compression=codecs, use_dictionary=dictionaries) as file:

        def write(table: pa.Table | None) -> None:
            held.extend([] if table is None else [table])
            if held and (table is None or sum(each.nbytes for each in held) >= ROW_GROUP_BYTES):
                whole = pa.concat_tables(held)
                held.clear()
                file.write_table(whole, row_group_size=max(whole.num_rows, 1))

        yield write
        write(None)


def write_table(table: pa.Table, path: Path, like: pq.FileMetaData | None = None) -> None:
    """A table as a new file."""
    with writer(path, table.schema, like) as write:
        write(table)


def map_runs(
    source: Path,
    target: Path,
    runs: Runs,
    work: Callable[[Runs, pa.Table], pa.Table],
    columns: list[str] | None = None,
    says: dict[bytes, str] | None = None,
) -> None:
    """Writes work(some runs, their rows) of all runs to `target`: several small runs that follow one another at a time.
    columns: those that work() looks at; all without it. says: metadata of the result, beside the source's.
    """
    file = parquet(source)
    schema = file.schema_arrow
    schema = schema.with_metadata((schema.metadata or {}) | says) if says else schema
    size = sum(file.metadata.row_group(i).total_byte_size for i in range(file.num_row_groups))
    most = min(BATCH_ROWS, BATCH_BYTES * file.metadata.num_rows // max(size, 1))
    with writer(target, schema, file.metadata) as write:
        for group, table in read_runs(file, str(source), runs, most, columns):
            write(work(group, table))


def one(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A column in one piece."""
    if isinstance(column, pa.Array):
        return column
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def flat(table: pa.Table) -> pa.Table:
    """Everything in a table that has a rule of its own: the fields of structs are columns, "observation.state"."""
    while any(pa.types.is_struct(kind) for kind in table.schema.types):
        table = table.flatten()
    return table


def flat_schema(schema: pa.Schema) -> pa.Schema:
    return flat(pa.Table.from_batches([], schema)).schema


def leaf(table: pa.Table, name: str) -> pa.ChunkedArray:
    """A column, or a field of a struct, by its name."""
    return (table if name in table.column_names else flat(table)).column(name)


def is_list(kind: pa.DataType) -> bool:
    """A list of any length."""
    return pa.types.is_list(kind) or pa.types.is_large_list(kind)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """What an extension type, such as a tensor, is stored as."""
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind


def channels_in(kind: pa.DataType) -> int | None:
    """Numbers in a row of a column of real numbers: 1 for a scalar, n for a list of n, also of lists. 0: lists of any length.
    None: not real.
    """
    kind, count = plain_type(kind), 1
    while is_list(kind) or pa.types.is_fixed_size_list(kind):
        kind, count = kind.value_type, count * getattr(kind, "list_size", 0)
    return count if pa.types.is_floating(kind) or pa.types.is_decimal(kind) and kind.scale > 0 else None


def shape_of(column: pa.ChunkedArray | pa.Array) -> tuple[int, ...]:
    """The extents of a row of lists by the first one; () of everything else."""
    first = next((value for value in column if value.is_valid), None) if channels_in(column.type) is not None else None
    value, shape = None if first is None else first.as_py(), []
    while isinstance(value, list):
        shape.append(len(value))
        value = value[0] if value else None
    return tuple(shape)


def channels_of(column: pa.ChunkedArray) -> int | None:
    """Channels of a column by its first list; None where it holds no real numbers."""
    channels = channels_in(column.type)
    if channels != 0:
        return channels
    return math.prod(shape_of(column)) if column.null_count < len(column) else None


def _leaves(values: pa.Array, where: str) -> pa.Array:
    """The elements of lists, and of lists in them, one after the other; refuses those of several lengths, and nulls inside."""
    values = (values.storage if isinstance(values.type, pa.BaseExtensionType) else values).drop_null()
    while is_list(values.type) or pa.types.is_fixed_size_list(values.type):
        lengths = pc.list_value_length(values)
        least, most = pc.min_max(lengths).values()
        if least != most:
            raise Refused(where, f"lists of {least} to {most} numbers", "lists of one length")
        values = values.flatten()
        if values.null_count:
            raise Refused(where, "nulls inside lists", "whole lists that are null, or none")
    return values.cast(pa.float64()) if pa.types.is_decimal(values.type) else values


def _rows(numbers: np.ndarray, column: pa.Array) -> np.ndarray:
    """The numbers of a column as (S, channels), NaN where a row is null."""
    rows = len(column) - column.null_count
    if not column.null_count or not rows:
        return numbers.reshape(len(column), -1)
    made = np.full((len(column), numbers.size // rows), np.nan, np.result_type(numbers, np.float16))
    made[column.is_valid().to_numpy(zero_copy_only=False)] = numbers.reshape(rows, -1)
    return made


def real_numbers(column: pa.ChunkedArray | pa.Array, where: str) -> np.ndarray:
    """A column of real numbers as (S, channels), NaN where a row is null. Shares memory where it can."""
    column = one(column)
    return _rows(_leaves(column, where).to_numpy(zero_copy_only=False), column)


def numbers_of(column: pa.ChunkedArray) -> np.ndarray | None:
    """A column of numbers, booleans or lists of one length as (rows, channels), NaN where a row is null; None for anything else."""
    column = one(column)
    try:
        values = _leaves(column, "")
    except Refused:
        return None
    kind = values.type
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)) or not len(values):
        return None
    numbers = values.to_numpy(zero_copy_only=False)
    return _rows(numbers if kind in (pa.float32(), pa.float64()) else numbers.astype(np.float64), column)


def units_said(schema: pa.Schema) -> dict[str, str]:
    """The units of columns of times, as map_runs() was told to say them."""
    begin, text = f"{clock.SAID} ", functools.partial(bytes.decode, errors="replace")
    said = {text(key): text(unit) for key, unit in (schema.metadata or {}).items()}
    return clock.units_said({key.removeprefix(begin): {clock.SAID: said[key]} for key in said if key.startswith(begin)})


def first_rows(file: pq.ParquetFile) -> pa.Table:
    """The first rows of a file, flat. Of bytes, and of lists of other things than real numbers, only the types."""
    schema, columns = flat_schema(file.schema_arrow), columns_of(file.metadata)
    rows = file.metadata.row_group(0).num_rows if columns else 0
    wide = {c.path_in_schema.split(".list.")[0] for c in columns if c.num_values > MOST_CHANNELS * rows}
    light = [field.name for field in schema if not _is_heavy(field.type) and field.name not in wide]
    batch = next(file.iter_batches(FIRST_ROWS, columns=light, use_threads=False), None) if light else None
    rows = batch.num_rows if batch is not None else min(file.metadata.num_rows, FIRST_ROWS)
    read = flat(pa.Table.from_batches([batch])) if batch is not None else pa.table({})
    made = {field.name: pa.nulls(rows, field.type) for field in schema}
    made |= dict(zip(read.column_names, read.columns, strict=True))
    return pa.table(made)


def _is_heavy(kind: pa.DataType) -> bool:
    is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
    channels = channels_in(kind)
    return is_bytes or pa.types.is_nested(kind) and (channels is None or channels > MOST_CHANNELS)


def known_of(
    table: pa.Table, metadata: pq.FileMetaData | None = None, names: dict[str, list[str]] | None = None
) -> list[Known]:
    """What the columns of a table, and the fields of its structs, say of themselves, by its rows. metadata: of the file that
    begins with them: lists that are not all of one length there are no real numbers. names: of channels.
    """
    known, table = [], flat(table)
    for name, column in zip(table.column_names, table.columns, strict=True):
        width = channels_of(column)
        if metadata is not None and is_list(column.type) and width and not _one_length(metadata, name, width):
            width = None
        values = _values(column, name, width)
        width = None if values is None and width and width <= MOST_CHANNELS else width
        kind = {"halffloat": "float16", "float": "float32", "double": "float64"}.get(str(column.type), str(column.type))
        nulls = 0 if _is_heavy(column.type) else column.null_count
        known.append(Known(name, kind, width, values, (names or {}).get(name), nulls))
    return known


def _values(column: pa.ChunkedArray, name: str, width: int | None) -> np.ndarray | None:
    """The values of a column as the rules look at them; None where they do not."""
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if width:
        made = numbers_of(column) if width <= MOST_CHANNELS else None
        return made if made is None else made.reshape(len(made), *shape_of(column))
    if column.null_count and mode_of(name) in ("any", "next"):  # flags, of which `any` says what is known
        made = numbers_of(column)
        return made[:, 0] if made is not None and np.isin(made[~np.isnan(made)], (0, 1)).all() else None
    if column.null_count or width == 0:
        return None
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return column.to_numpy()
    if pa.types.is_timestamp(kind):
        return column.cast(pa.timestamp(kind.unit)).to_numpy()
    if pa.types.is_duration(kind) and reads_text(name):
        return clock.whole(column).view(f"M8[{kind.unit}]")
    if (pa.types.is_time(kind) or pa.types.is_date(kind)) and reads_text(name):
        column, kind = column.cast(pa.string()), pa.string()
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return np.array([text[: None if reads_text(name) else MOST_LETTERS] for text in column.to_pylist()], dtype=str)
    return None


def _one_length(metadata: pq.FileMetaData, name: str, length: int) -> bool:
    """Whether the lists of a column have one length and no nulls inside, as far as the file's statistics tell."""
    paths = [column.path_in_schema for column in columns_of(metadata)]
    at = next((i for i, path in enumerate(paths) if path.startswith(f"{name}.list.")), None)
    for number in range(metadata.num_row_groups if at is not None else 0):
        rows, chunk = metadata.row_group(number).num_rows, metadata.row_group(number).column(at)
        nulls = chunk.statistics.null_count if chunk.statistics is not None else 0
        if chunk.num_values != length * (rows - nulls) + nulls:
            return False
    return True


def packed(columns: dict[str, np.ndarray]) -> dict[str, list]:
    """Arrays by name as JSON: their bytes as text, since lists of numbers take several times as long."""
    text = {name: base64.b64encode(np.ascontiguousarray(values)).decode() for name, values in columns.items()}
    return {name: [values.dtype.str, values.shape, text[name]] for name, values in columns.items()}


def unpacked(found: dict[str, list]) -> dict[str, np.ndarray]:
    return {
        name: np.frombuffer(base64.b64decode(text), kind).reshape(shape) for name, (kind, shape, text) in found.items()
    }
