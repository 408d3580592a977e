"""Parquet files whose rows are the samples of episodes, one episode after the other: read, resampled, written."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tmaops.dataset.errors import Refused
from tmaops.dataset.rules import channels_of

ROW_GROUP_BYTES = 32 << 20  # of Arrow data that are written together


@dataclass(frozen=True)
class Run:
    """The rows of one episode in one file."""

    episode: object  # the value of the episode column; 0 where there is none
    first: int
    rows: int


def parquet(path: Path) -> pq.ParquetFile:
    """Opens a file for streaming; refuses by name what is no Parquet file."""
    try:
        return pq.ParquetFile(path, memory_map=False)
    except (pa.ArrowInvalid, OSError) as error:
        raise Refused(str(path), str(error).split("\n")[0], "a readable Parquet file") from error


def read_columns(path: Path, names: list[str]) -> pa.Table:
    """Some columns of a whole file; refuses by name what cannot be read."""
    try:
        return pq.read_table(path, columns=names, use_threads=False)
    except (pa.ArrowException, OSError) as error:
        raise Refused(str(path), str(error).split("\n")[0], "a readable Parquet file") from error


def runs_of(column: pa.ChunkedArray, where: str) -> list[Run]:
    """The episodes of a file by its episode column, in the order of the rows."""
    if column.null_count:
        raise Refused(where, f"{column.null_count} nulls", "an episode for every row")
    if len(column) == 0:
        return []
    values = column.combine_chunks()
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks)
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    changes = pc.not_equal(values[1:], values[:-1]).to_numpy(zero_copy_only=False)
    starts = np.concatenate([[0], np.flatnonzero(changes) + 1])
    ends = np.append(starts[1:], len(values))
    runs = [Run(values[int(a)].as_py(), int(a), int(b - a)) for a, b in zip(starts, ends, strict=True)]
    seen = set()
    for run in runs:
        if run.episode in seen:
            raise Refused(where, f"episode {run.episode!r} in two places", "the rows of an episode one after the other")
        seen.add(run.episode)
    return runs


def read_runs(file: pq.ParquetFile, runs: list[Run]) -> Iterator[tuple[Run, pa.Table]]:
    """The rows of each run in turn, reading the file once and holding little more than one run."""
    held: list[pa.RecordBatch] = []
    held_first = held_rows = 0  # the first row that is held, and how many are
    batches = file.iter_batches(batch_size=65536, use_threads=False)
    for run in runs:
        while held_first + held_rows < run.first + run.rows:
            batch = next(batches, None)
            if batch is None:
                raise Refused(file.reader.metadata.created_by or "file", "fewer rows than its footer says", "a whole file")
            held.append(batch)
            held_rows += batch.num_rows
        table = pa.Table.from_batches(held, schema=file.schema_arrow)
        yield run, table.slice(run.first - held_first, run.rows)
        done = run.first + run.rows - held_first
        while held and held[0].num_rows <= done:
            done -= held[0].num_rows
            held_first += held[0].num_rows
            held_rows -= held[0].num_rows
            held.pop(0)


class Writer:
    """Writes the tables of episodes to one Parquet file, in row groups of a size that does not depend on the machine."""

    def __init__(self, path: Path, schema: pa.Schema, like: pq.FileMetaData | None):
        codec = "ZSTD" if like is None else "NONE" if like.num_row_groups == 0 else like.row_group(0).column(0).compression
        self._path = path
        self._writer = pq.ParquetWriter(path, schema, compression=codec if codec != "UNCOMPRESSED" else "NONE")
        self._tables: list[pa.Table] = []
        self._bytes = 0

    def add(self, table: pa.Table) -> None:
        self._tables.append(table)
        self._bytes += table.nbytes
        if self._bytes >= ROW_GROUP_BYTES:
            self._flush()

    def close(self) -> None:
        """Ends the file and waits until the disk has it."""
        self._flush()
        self._writer.close()
        with open(self._path, "rb") as file:
            os.fsync(file.fileno())

    def _flush(self) -> None:
        if self._tables:
            table = pa.concat_tables(self._tables)
            self._writer.write_table(table, row_group_size=max(table.num_rows, 1))
        self._tables, self._bytes = [], 0


def write_table(table: pa.Table, path: Path) -> None:
    """A table as a new file."""
    writer = Writer(path, table.schema, None)
    writer.add(table)
    writer.close()


def list_width(file: pq.ParquetFile, name: str) -> int | None:
    """Channels of a column (see channels_of); for lists of any length that of the first one, None where there is none."""
    kind = file.schema_arrow.field(name).type
    channels = channels_of(kind)
    if channels != 0:
        return channels
    for batch in file.iter_batches(batch_size=1024, columns=[name], use_threads=False):
        if (width := list_width_of(batch.column(0))) is not None:
            return width
    return None


def list_width_of(column: pa.Array | pa.ChunkedArray) -> int | None:
    """The length of the first list that is not null."""
    return next((len(value) for value in column if value.is_valid), None)


def channels_by_column(file: pq.ParquetFile) -> dict[str, int | None]:
    """The channels of every column of real numbers; None for the others."""
    return {name: list_width(file, name) for name in file.schema_arrow.names}


def map_runs(
    source: Path,
    target: Path,
    runs: list[Run],
    work: Callable[[Run, pa.Table], pa.Table],
    schema: pa.Schema | None = None,
) -> tuple[int, int]:
    """Writes work(run, rows) of every run to `target`. Returns the rows read and written."""
    file = parquet(source)
    writer = Writer(target, schema or file.schema_arrow, file.metadata)
    read = written = 0
    try:
        for run, table in read_runs(file, runs):
            made = work(run, table)
            writer.add(made)
            read, written = read + table.num_rows, written + made.num_rows
    except (pa.ArrowException, OSError) as error:
        raise Refused(str(source), str(error).split("\n")[0], "a readable Parquet file") from error
    finally:
        writer.close()
    return read, written
