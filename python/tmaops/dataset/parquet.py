"""Parquet tables: a file, or a folder of files, whose rows are samples with a time and perhaps an episode column.

Tables of RLDS are taken as they are exported: a row per step, where `is_first` begins an episode, or a row per episode,
whose steps are a list of structs (`steps`) or lists beside each other.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tmaops.dataset import clock
from tmaops.dataset.columns import Episodes, check_gaps, real_numbers, resample_episodes
from tmaops.dataset.errors import Refused
from tmaops.dataset.inspect import Stream
from tmaops.dataset.job import Options, Plan, Unit
from tmaops.dataset.places import fingerprint, size_of
from tmaops.dataset.rules import Rule, Rules
from tmaops.dataset.tables import (
    BATCH_ROWS,
    Run,
    channels_by_column,
    channels_of_table,
    columns_of,
    grouped,
    leaves_of,
    map_runs,
    parquet,
    read_columns,
    read_runs,
    runs_of,
    starts_of,
)

TIME_NAMES = ("timestamp", "timestamps", "time", "times", "t", "stamp", "stamps")
EPISODE_NAMES = ("episode_index", "episode_id", "episode", "episodes", "trajectory_id", "traj_id")


def _named(given: str | None, known: tuple[str, ...], names: list[str], what: str) -> str | None:
    if given is not None:
        if given not in names:
            raise Refused(f"{what} column", repr(given), "one of " + ", ".join(names))
        return given
    return next((name for name in known if name in names), None)


def _time_unit(kind: pa.DataType, name: str, options: Options) -> tuple[str | None, str]:
    """Unit of a time column and how it was found: asked for, Arrow's own, the name's ending, or by its type."""
    if options.time_unit:
        return options.time_unit, "asked for"
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return None, f"of the type {kind}"
    for unit in clock.NANOSECONDS:
        if name.endswith("_" + unit):
            return unit, "by the column's name"
    if pa.types.is_integer(kind):
        return "ns", "assumed, since it holds integers"
    return "s", "assumed, since it holds real numbers"


@dataclass
class Layout:
    """How a table holds its episodes and their times. Names of columns; None where there is none."""

    time: str | None  # None: counted at input_hz
    unit: str | None
    episode: str | None
    first_flags: str | None  # without an episode column: true in the first row of each
    lists: list[str]  # a row per episode: the columns that hold its steps
    input_hz: str | None

    def counted(self) -> tuple[str | None, ...]:
        """Columns that are not resampled."""
        return (self.time, self.episode)

    def times(self, steps: pa.Table, where: str, rows: np.ndarray | None = None) -> np.ndarray:
        """The times (S, nanoseconds) of the steps of an episode, or of several with so many rows each."""
        if self.time is None:
            times = clock.grid(0, 2**62, clock.rate(self.input_hz), steps.num_rows)
            return times if rows is None else times[clock.places(rows)]
        return clock.nanoseconds(steps.column(self.time), self.unit, where)

    def episodes(self, runs: list[Run], steps: pa.Table, hz: Fraction) -> Episodes:
        """The steps of runs that follow one another as episodes at their targets; of lists that of one run."""
        names = [f"episode {run.episode}" for run in runs]
        rows = np.array([run.rows for run in runs] if not self.lists else [steps.num_rows])
        times = self.times(steps, names[0], rows)
        if not clock.all_increase(times, rows):
            for name, own in zip(names, np.split(times, np.cumsum(rows)[:-1]), strict=True):
                clock.check_increasing(own, name)
        ends = np.cumsum(rows)
        targets, counts = clock.grids(times[ends - rows], times[ends - 1], hz)
        return Episodes(times, targets, rows, counts, names)

    def steps(self, row: pa.Table, where: str) -> pa.Table:
        """The steps of an episode as the rows of a table: its own rows, or the lists of its only row."""
        if not self.lists:
            return row
        names = [name for name in self.lists if name in row.column_names]
        columns = [row.column(name).combine_chunks() for name in names]
        lengths = {column.value_lengths()[0].as_py() for column in columns}
        if len(lengths) > 1 or None in lengths:
            raise Refused(where, "lists of several lengths, or nulls", "as many steps in every list")
        return pa.table({name: column.flatten() for name, column in zip(names, columns, strict=True)})

    def counting_column(self, file: pq.ParquetFile) -> str:
        """The column that says how many steps an episode has and when: the times, else the smallest one."""
        if self.time is not None:
            return self.time
        chunks = [
            c for c in columns_of(file.metadata) if not self.lists or c.path_in_schema.split(".")[0] in self.lists
        ]
        return (
            min(chunks, key=lambda c: c.total_compressed_size).path_in_schema if chunks else file.schema_arrow.names[0]
        )

    def with_steps(self, row: pa.Table, steps: pa.Table) -> pa.Table:
        """The row of an episode with other steps."""
        if not self.lists:
            return steps
        for name in self.lists:
            at = row.schema.get_field_index(name)
            kind = row.schema.field(at).type
            made = pa.LargeListArray if pa.types.is_large_list(kind) else pa.ListArray
            offsets = pa.array([0, steps.num_rows], pa.int64() if made is pa.LargeListArray else pa.int32())
            values = steps.column(name).combine_chunks()
            row = row.set_column(at, row.schema.field(at), made.from_arrays(offsets, values, type=kind))
        return row


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind)


def layout_of(file: pq.ParquetFile, options: Options) -> tuple[Layout, list[str]]:
    """The layout of a table, and what was inferred, in words."""
    schema = file.schema_arrow
    known = TIME_NAMES + tuple(f"{name}_{unit}" for name in TIME_NAMES for unit in clock.NANOSECONDS)
    lists: list[str] = []
    kinds = {field.name: field.type for field in schema}
    steps = kinds.get("steps")
    if steps is not None and _is_list(steps) and pa.types.is_struct(steps.value_type):
        lists = ["steps"]
    elif _is_list(kinds.get("is_first", pa.null())):
        lists = [name for name, kind in kinds.items() if _is_list(kind)]
    if lists:
        kinds = {name: kinds[name].value_type for name in lists}
    time = _named(options.time_column, known, list(kinds), "time")
    if time is None and options.input_hz is None:
        raise Refused(
            "time column",
            "none of the usual names among " + ", ".join(kinds),
            "--time-column NAME, or --input-hz, the rate of its rows",
        )
    unit, notes = None, [f"time: counted at {options.input_hz} per second (asked for)"]
    if time is not None:
        unit, how = _time_unit(kinds[time], time, options)
        notes = [f"time: column '{time}' in {unit or 'its own unit'} ({how})"]
    episode = None if lists else _named(options.episode_column, EPISODE_NAMES, schema.names, "episode")
    flags = (
        "is_first" if not lists and episode is None and pa.types.is_boolean(kinds.get("is_first", pa.null())) else None
    )
    if lists:
        notes.append(f"episodes: a row each, whose steps are in {', '.join(lists)}")
    elif flags:
        notes.append(f"episodes: begin where '{flags}' is true")
    else:
        notes.append(f"episodes: column '{episode}'" if episode else "episodes: each file is one")
    return Layout(time, unit, episode, flags, lists, options.input_hz if time is None else None), notes


def episodes_of(file: pq.ParquetFile, path: Path, name: str, layout: Layout) -> list[Run]:
    """The rows of each episode of a file."""
    rows = file.metadata.num_rows
    if layout.lists:
        return [Run(f"{name}:{row}", row, 1) for row in range(rows)]
    if layout.episode:
        return runs_of(read_columns(path, [layout.episode]).column(0), f"{path}: column '{layout.episode}'")
    if layout.first_flags:
        return starts_of(read_columns(path, [layout.first_flags]).column(0), name)
    return [Run(name, 0, rows)] if rows else []


class ParquetTables:
    """One unit per file. An episode lies in one file."""

    def files(self, source: Path) -> list[Path]:
        return [source] if source.is_file() else sorted(source.rglob("*.parquet"))

    def plan(self, source: Path, options: Options, keep_going: bool, left_out: set[str]) -> Plan:
        files = self.files(source)
        units: list[Unit] = []
        columns: dict[str, Rule] = {}
        failed: dict[str, str] = {}
        notes: list[str] = []
        warnings: list[str] = []
        found: dict[str, Any] = {}
        episodes = 0
        schema = None
        seen: dict[object, str] = {}
        hz = clock.rate(options.hz)
        options.check_streams([])
        for path in files:
            name = _name(path, source)
            try:
                file = parquet(path)
            except Refused as error:
                if not keep_going:
                    raise
                failed[name] = str(error)
                continue
            if schema is None:
                schema = file.schema_arrow
                layout, notes = layout_of(file, options)
                found = {
                    "time_column": layout.time,
                    "time_unit": layout.unit,
                    "episode_column": layout.episode,
                    "input_hz": layout.input_hz,
                }
                kinds, widths = self._columns(file, layout)
                rules = Rules(dict(options.modes))
                rules.check_used(kinds)
                columns = {leaf: rules.of(leaf, kind, widths[leaf]) for leaf, kind in kinds.items()}
                kind = schema.field(layout.time).type if layout.time else None
                if kind in (pa.float16(), pa.float32(), pa.list_(pa.float32())):
                    warnings.append(
                        f"column '{layout.time}' holds {kind} seconds: their resolution gets coarser with time"
                    )
                stiff = pa.schema([field for field in schema if field.name not in layout.counted()])
            elif not file.schema_arrow.equals(schema):
                raise Refused(str(path), "another schema than that of the first file", "files of one schema")
            kept, labels = [], []
            try:
                runs = episodes_of(file, path, name, layout)
                if left_out:
                    runs = [run for run in runs if str(run.episode) not in left_out]
                groups = grouped(runs, 0 if layout.lists else BATCH_ROWS)
                for group, table in read_runs(file, name, groups, [layout.counting_column(file)]):
                    for run in self._accepted(
                        group.episode, table, layout, hz, stiff, options, seen, name, failed if keep_going else None
                    ):
                        kept.append(
                            [run.episode if isinstance(run.episode, str) else str(run.episode), run.first, run.rows]
                        )
                        labels.append(kept[-1][0])
            except Refused as error:
                if not keep_going:
                    raise
                failed[name] = str(error)
                continue
            episodes += len(kept)
            if kept:
                units.append(
                    Unit(name, {"file": name, "runs": kept, "input": fingerprint(path)}, size_of(path), labels)
                )
        if not files:
            raise Refused(str(source), "no Parquet files", "at least one")
        return Plan(
            units, episodes, columns, notes, warnings, failed, {key: value for key, value in found.items() if value}
        )

    def _accepted(
        self,
        runs: list[Run],
        rows: pa.Table,
        layout: Layout,
        hz: Fraction,
        stiff: pa.Schema,
        options: Options,
        seen: dict[object, str],
        name: str,
        failed: dict[str, str] | None,
    ) -> Iterator[Run]:
        """Runs that follow one another and can be resampled. seen: takes their episodes with the file's name.

        failed: takes what is refused, run by run; None: a refusal is raised.
        """
        try:
            twice = next((run.episode for run in runs if run.episode in seen), None) if layout.episode else None
            if twice is not None:
                raise Refused(f"episode {twice}", f"rows in {seen[twice]} and {name}", "an episode in one file")
            check_gaps(
                stiff, layout.episodes(runs, layout.steps(rows, f"episode {runs[0].episode}"), hz), options.max_gap_ns()
            )
        except Refused as error:
            if len(runs) > 1:
                first = runs[0].first
                for run in runs:
                    own = rows.slice(run.first - first, run.rows)
                    yield from self._accepted([run], own, layout, hz, stiff, options, seen, name, failed)
            elif failed is None:
                raise
            else:
                failed[str(runs[0].episode)] = str(error)
            return
        seen.update((run.episode, name) for run in runs)
        yield from runs

    def run_unit(self, source: Path, options: Options, unit: Unit, target: Path) -> dict[str, Any]:
        path = source if source.is_file() else source / unit.task["file"]
        file = parquet(path)
        layout, _ = layout_of(file, options)
        _, widths = self._columns(file, layout)
        resampler = Resampler(layout, options, widths)
        runs = [Run(episode, first, rows) for episode, first, rows in unit.task["runs"]]
        read, written = map_runs(path, target, runs, resampler.episodes)
        if layout.lists:  # rows are episodes
            read, written = resampler.read, resampler.written
        return {"episodes": len(runs), "rows_read": read, "rows_written": written}

    def finish(self, source: Path, options: Options, plan: Plan, results: list[dict[str, Any]], out: Path) -> None:
        """Nothing: the files are the data set."""

    def episodes(self, source: Path, options: Options, unreadable: dict[str, str]) -> Iterator[list[Stream]]:
        """Every episode as one stream, for inspect()."""
        for path in self.files(source):
            try:
                file = parquet(path)
                layout, _ = layout_of(file, options)
                runs = episodes_of(file, path, _name(path, source), layout)
            except Refused as error:
                unreadable[str(path)] = str(error)
                continue
            yield from streams_of(path, layout, runs, Rules(), layout.counted(), unreadable)

    def _columns(self, file: pq.ParquetFile, layout: Layout) -> tuple[dict[str, pa.DataType], dict[str, int | None]]:
        """Type and channels of everything that has a rule."""
        if not layout.lists:
            return leaves_of(file.schema_arrow, layout.counted()), channels_by_column(file)
        row = next(file.iter_batches(batch_size=1, use_threads=False), None)
        if row is None:
            raise Refused("episodes", "none", "at least one")
        steps = layout.steps(pa.Table.from_batches([row]), "the first episode")
        return leaves_of(steps.schema, layout.counted()), channels_of_table(steps)


class Resampler:
    """Episodes of one layout at the targets of `options`. widths: the channels of everything with a rule."""

    def __init__(self, layout: Layout, options: Options, widths: dict[str, int | None]):
        self._layout, self._options, self._widths = layout, options, widths
        self._rules, self._hz = Rules(dict(options.modes)), clock.rate(options.hz)
        self.read = self.written = 0  # steps so far

    def episodes(self, runs: list[Run], rows: pa.Table) -> pa.Table:
        """The rows of some episodes, resampled: same columns, order, types and metadata."""
        if self._layout.lists:
            return pa.concat_tables(self._episodes([run], rows.slice(i, 1)) for i, run in enumerate(runs))
        return self._episodes(runs, rows)

    def _episodes(self, runs: list[Run], rows: pa.Table) -> pa.Table:
        layout = self._layout
        steps = layout.steps(rows, f"episode {runs[0].episode}")
        episodes = layout.episodes(runs, steps, self._hz)
        kept = [name for name in steps.column_names if name not in layout.counted()]
        made = resample_episodes(
            steps.select(kept), episodes, self._rule, self._options.max_gap_ns(), self._options.device
        )
        columns = {name: made.column(name) for name in kept}
        if layout.time:
            kind = steps.schema.field(layout.time).type
            columns[layout.time] = times_like(episodes.targets, kind, layout.unit)
        if layout.episode:
            same = np.repeat(episodes.begins, episodes.counts)
            columns[layout.episode] = steps.column(layout.episode).take(pa.array(same))
        self.read, self.written = self.read + steps.num_rows, self.written + made.num_rows
        return layout.with_steps(
            rows, pa.Table.from_arrays([columns[name] for name in steps.column_names], schema=steps.schema)
        )

    def _rule(self, name: str, kind: pa.DataType) -> Rule:
        return self._rules.of(name, kind, self._widths[name])


def _name(path: Path, source: Path) -> str:
    return path.name if path == source else str(path.relative_to(source))


def streams_of(
    path: Path,
    layout: Layout,
    runs: list[Run] | None,
    rules: Rules,
    counted: tuple[str | None, ...],
    unreadable: dict[str, str],
) -> Iterator[list[Stream]]:
    """The episodes of a file with their real numbers, one stream each; what cannot be read goes into `unreadable`."""
    try:
        file = parquet(path)
        for run, table in read_runs(
            file, str(path), episodes_of(file, path, path.name, layout) if runs is None else runs
        ):
            label = str(run.episode)
            try:
                steps = layout.steps(table, f"episode {label}")
                stream = Stream(label, "", layout.times(steps, f"episode {label}"))
                _add_numbers(stream, steps, rules, counted)
            except Refused as error:
                unreadable[label] = str(error)
                continue
            yield [stream]
    except Refused as error:
        unreadable[str(path)] = str(error)


def _add_numbers(stream: Stream, steps: pa.Table, rules: Rules, counted: tuple[str | None, ...]) -> None:
    while any(pa.types.is_struct(field.type) for field in steps.schema):
        steps = steps.flatten()
    for name, width in channels_of_table(steps).items():
        if not width or name in counted:
            continue
        column = steps.column(name)
        stream.columns[name] = real_numbers(column.drop_null() if column.null_count else column, name)
        parts = [p for p in rules.of(name, column.type, width).parts if p.mode == "slerp"]
        stream.quaternions[name] = [first for p in parts for first in range(p.first, p.first + p.count, 4)]


def times_like(targets: np.ndarray, kind: pa.DataType, unit: str | None) -> pa.Array:
    """Targets (T, nanoseconds) as a column of the type and unit of the input's times, rounded once."""
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        scale = clock.NANOSECONDS[kind.unit]
        return pa.array((targets + scale // 2) // scale, type=pa.int64()).cast(kind)
    scale = clock.NANOSECONDS[unit or ("ns" if pa.types.is_integer(kind) else "s")]
    if pa.types.is_integer(kind):
        return pa.array((targets + scale // 2) // scale, type=pa.int64()).cast(kind)
    return pa.array((targets.astype(np.longdouble) / scale).astype(kind.to_pandas_dtype()), type=kind)
