"""Parquet tables: a file, or a folder of files, whose rows are samples with a time and perhaps an episode column.

Tables of RLDS are taken as they are exported: a row per step, where `is_first` begins an episode, or a row per episode,
whose steps are a list of structs (`steps`) or lists beside each other.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tmaops.dataset import clock
from tmaops.dataset.columns import Episodes, check_gaps, real_numbers, resample_episodes
from tmaops.dataset.errors import Refused
from tmaops.dataset.formats import Failed, Plan, Stream, Unit
from tmaops.dataset.options import Options
from tmaops.dataset.places import fingerprint, size_of
from tmaops.dataset.rules import Rule, Rules
from tmaops.dataset.tables import (
    BATCH_ROWS,
    Runs,
    a_repeated,
    channels_by_column,
    channels_of_table,
    columns_of,
    joined,
    leaves_of,
    map_runs,
    packed,
    parquet,
    read_columns,
    read_runs,
    runs_of,
    starts_of,
    unpacked,
)

TIME_NAMES = ("timestamp", "timestamps", "time", "times", "t", "stamp", "stamps")
EPISODE_NAMES = ("episode_index", "episode_id", "episode", "episodes", "trajectory_id", "traj_id")


def known_times() -> tuple[str, ...]:
    """Names of times, also with a unit behind them."""
    return TIME_NAMES + tuple(f"{name}_{unit}" for name in TIME_NAMES for unit in clock.NANOSECONDS)


def _named(given: str | None, known: tuple[str, ...], names: list[str], what: str) -> str | None:
    if given is not None:
        if given not in names:
            raise Refused(f"{what} column", repr(given), "one of " + ", ".join(names))
        return given
    return next((name for name in known if name in names), None)


@dataclass
class Layout:
    """How a table holds its episodes and their times. Names of columns; None where there is none."""

    time: str | None  # None: counted at input_hz
    unit: str | None
    episode: str | None
    first_flags: str | None = None  # without an episode column: true in the first row of each
    lists: tuple[str, ...] = ()  # a row per episode: the columns that hold its steps
    input_hz: str | None = None
    style: str = "T"  # of times that are text

    def counted(self) -> tuple[str | None, ...]:
        """Columns that are not resampled."""
        return (self.time, self.episode)

    def times(self, steps: pa.Table, where: str, rows: np.ndarray | None = None) -> np.ndarray:
        """The times (S, nanoseconds) of the steps of an episode, or of several with so many rows each."""
        if self.time is None:
            rows = np.array([steps.num_rows]) if rows is None else rows
            return clock.frames(np.zeros(rows.size, np.int64), rows, clock.rate(self.input_hz))
        return clock.nanoseconds(steps.column(self.time), self.unit, where)

    def in_order(
        self, labels: list[str], rows: np.ndarray, steps: pa.Table, options: Options
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """The times (S) of episodes of so many rows in order, and the rows that have them."""
        times = self.times(steps, labels[0], rows) - options.latency_ns(".")
        return clock.in_order(times, rows, labels, options.sort, options.duplicates)

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
        if self.lists:
            names = self.lists if self.time is None else (self.time if self.time in self.lists else self.lists[0],)
        else:
            names = (self.time,) if self.time is not None else tuple(file.schema_arrow.names)
        if len(names) == 1:
            return names[0]
        chunks = [c for c in columns_of(file.metadata) if c.path_in_schema.split(".")[0] in names]
        return min(chunks, key=lambda c: c.total_compressed_size).path_in_schema if chunks else names[0]

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
    lists: tuple[str, ...] = ()
    kinds = {field.name: field.type for field in schema}
    steps = kinds.get("steps")
    if steps is not None and _is_list(steps) and pa.types.is_struct(steps.value_type):
        lists = ("steps",)
    elif _is_list(kinds.get("is_first", pa.null())):
        lists = tuple(name for name, kind in kinds.items() if _is_list(kind))
    if lists:
        kinds = {name: kinds[name].value_type for name in lists}
    time = _named(options.time_column, known_times(), list(kinds), "time")
    if time is None and options.input_hz is None:
        raise Refused(
            "time column",
            "none of the usual names among " + ", ".join(kinds),
            "--time NAME, or --input-hz, the rate of its rows",
        )
    unit, style, notes = None, "T", [f"time: counted at {options.input_hz} per second (asked for)"]
    if time is not None:
        values = _first_times(file, time, bool(lists))
        kind = values.type
        unit, how = clock.unit_of(time, kind, clock.some_numbers(values), options.time_unit)
        style = clock.text_style(values[0].as_py()) if pa.types.is_string(kind) and len(values) else "T"
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
    return Layout(time, unit, episode, flags, lists, options.input_hz if time is None else None, style), notes


def _first_times(file: pq.ParquetFile, name: str, in_lists: bool) -> pa.ChunkedArray:
    """Some of the first times of a file that are not null."""
    batch = next(file.iter_batches(1 if in_lists else 4096, columns=[name], use_threads=False), None)
    column = file.schema_arrow.empty_table().column(name) if batch is None else pa.chunked_array([batch.column(0)])
    if in_lists:
        column = pa.chunked_array([column.combine_chunks().flatten()])
    return clock.plain(column.drop_null())


def episodes_of(file: pq.ParquetFile, path: Path, name: str, layout: Layout) -> Runs:
    """The rows of each episode of a file."""
    rows = file.metadata.num_rows
    if layout.lists:
        names = pa.array([f"{name}:{row}" for row in range(rows)], pa.string())
        return Runs(names, np.arange(rows), np.ones(rows, np.int64))
    if layout.episode:
        return runs_of(read_columns(path, [layout.episode]).column(0), f"{path}: column '{layout.episode}'")
    if layout.first_flags:
        return starts_of(read_columns(path, [layout.first_flags]).column(0), name)
    names = pa.array([name][: min(rows, 1)], pa.string())
    return Runs(names, np.zeros(len(names), np.int64), np.full(len(names), rows))


class ParquetTables:
    """One unit per file. An episode lies in one file."""

    broken = (pa.ArrowException, UnicodeDecodeError, MemoryError)

    def files(self, source: Path) -> list[Path]:
        return [source] if source.is_file() else sorted(source.rglob("*.parquet"))

    def plan(self, source: Path, options: Options, keep_going: bool, left_out: set[str]) -> Plan:
        plan = Plan([], 0, {}, failed=Failed(keep_going, self.broken))
        found: list[tuple[str, Path, Runs]] = []
        schema = None
        options.check_streams([])
        for path in self.files(source):
            name = _name(path, source)
            with plan.failed.named(name):
                file = parquet(path)
                if schema is None:
                    layout = self._begin(file, options, plan)
                    schema = file.schema_arrow
                elif not file.schema_arrow.equals(schema):
                    raise Refused(str(path), "another schema than that of the first file", "files of one schema")
                runs = episodes_of(file, path, name, layout).without(left_out)
                parts = []
                most = 0 if layout.lists else BATCH_ROWS
                for group, table in read_runs(file, name, runs, most, [layout.counting_column(file)]):
                    parts += self._accepted(group, table, layout, schema, options, plan)
                if parts:
                    found.append((name, path, joined(parts)))
        if layout.episode:
            self._check_once(found, plan)
        task = {"layout": asdict(layout)}
        for name, path, runs in found:
            own = task | {"file": name, "first": packed(runs.first), "rows": packed(runs.rows)}
            plan.units.append(Unit(name, own | {"input": fingerprint(path)}, size_of(path), runs.names))
        plan.episodes = sum(len(runs) for _, _, runs in found)
        return plan

    def _begin(self, file: pq.ParquetFile, options: Options, plan: Plan) -> Layout:
        """What the first file says of all."""
        layout, notes = layout_of(file, options)
        plan.notes += notes
        found = {
            "time_column": layout.time,
            "time_unit": layout.unit,
            "episode_column": layout.episode,
            "input_hz": layout.input_hz,
        }
        plan.found = {key: value for key, value in found.items() if value}
        kinds, widths = self._columns(file, layout)
        rules = Rules(dict(options.modes))
        rules.check_used(kinds)
        plan.columns = {leaf: rules.of(leaf, kind, widths[leaf]) for leaf, kind in kinds.items()}
        kind = file.schema_arrow.field(layout.time).type if layout.time else None
        if kind in (pa.float16(), pa.float32(), pa.list_(pa.float32())):
            plan.warnings.append(
                f"column '{layout.time}' holds {kind} seconds: their resolution gets coarser with time"
            )
        if (
            kind is not None
            and pa.types.is_string(clock.plain(pa.chunked_array([], kind)).type)
            and len(layout.style) < 2
        ):
            plan.warnings.append(f"column '{layout.time}' holds times without a zone: they are taken as UTC")
        return layout

    def _accepted(
        self, runs: Runs, rows: pa.Table, layout: Layout, schema: pa.Schema, options: Options, plan: Plan
    ) -> Iterator[Runs]:
        """Runs that follow one another and can be resampled, and have targets."""
        try:
            steps = layout.steps(rows, runs.labels[0])
            counts = np.array([steps.num_rows]) if layout.lists else runs.rows
            times, _ = layout.in_order(runs.labels, counts, steps, options)
            ends = np.cumsum(counts)
            targets = options.grid().counts(times[ends - counts], times[ends - 1], counts)
            if options.max_gap:
                stiff = pa.schema([field for field in schema if field.name not in layout.counted()])
                check_gaps(stiff, _episodes(runs, times, counts, options)[0], options.max_gap_ns())
        except Refused as error:
            if len(runs) > 1:
                for run in runs.each():
                    own = rows.slice(int(run.first[0] - runs.first[0]), int(run.rows[0]))
                    yield from self._accepted(run, own, layout, schema, options, plan)
                return
            with plan.failed.named(str(runs.names[0])):
                raise error
            return
        plan.count("", int(counts.sum()), int(targets.sum()))
        if targets.any():
            yield runs[np.flatnonzero(targets)]

    def _check_once(self, found: list[tuple[str, Path, Runs]], plan: Plan) -> None:
        """Refuses, or leaves out of all but the first, an episode in several files."""
        names = [pa.concat_arrays([runs.names for _, _, runs in found])] if len(found) > 1 else []
        if not names or (twice := a_repeated(names[0])) is None:
            return
        seen: dict[object, str] = {}
        for place, (name, path, runs) in enumerate(found):
            kept = []
            for i, episode in enumerate(runs.names.to_pylist()):
                with plan.failed.named(str(episode)):
                    if (first := seen.setdefault(episode, name)) != name:
                        raise Refused(f"episode {twice}", f"rows in {first} and {name}", "an episode in one file")
                    kept.append(i)
            found[place] = (name, path, runs[np.array(kept, int)])

    def run_unit(self, source: Path, options: Options, unit: Unit, target: Path) -> dict[str, Any]:
        path = source if source.is_file() else source / unit.task["file"]
        file = parquet(path)
        layout = Layout(**unit.task["layout"])
        _, widths = self._columns(file, layout)
        resampler = Resampler(layout, options, widths)
        first, rows = unpacked(unit.task["first"]), unpacked(unit.task["rows"])
        runs = Runs(pa.nulls(first.size) if unit.episodes is None else unit.episodes, first, rows)
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


def _episodes(runs: Runs, times: np.ndarray, rows: np.ndarray, options: Options) -> tuple[Episodes, np.ndarray]:
    """Episodes of so many rows and their times as they are resampled, and the targets (T) as they are written."""
    grid, ends = options.grid(), np.cumsum(rows)
    targets, counts = grid.of(times[ends - rows], times[ends - 1], rows)
    return Episodes(times, grid.evaluated(times, rows, targets, counts), rows, counts, runs.labels), targets


class Resampler:
    """Episodes of one layout at the targets of `options`. widths: the channels of everything with a rule."""

    def __init__(self, layout: Layout, options: Options, widths: dict[str, int | None]):
        self._layout, self._options, self._widths = layout, options, widths
        self._rules = Rules(dict(options.modes))
        self.read = self.written = 0  # steps so far

    def episodes(self, runs: Runs, rows: pa.Table) -> pa.Table:
        """The rows of some episodes, resampled: same columns, order, types and metadata."""
        if self._layout.lists:
            return pa.concat_tables(self._episodes(run, rows.slice(i, 1)) for i, run in enumerate(runs.each()))
        return self._episodes(runs, rows)

    def _episodes(self, runs: Runs, rows: pa.Table) -> pa.Table:
        layout = self._layout
        steps = layout.steps(rows, runs.labels[0])
        counts = np.array([steps.num_rows]) if layout.lists else runs.rows
        times, order = layout.in_order(runs.labels, counts, steps, self._options)
        steps = steps if order is None else steps.take(pa.array(order))
        episodes, targets = _episodes(runs, times, counts, self._options)
        kept = [name for name in steps.column_names if name not in layout.counted()]
        made = resample_episodes(
            steps.select(kept), episodes, self._rule, self._options.max_gap_ns(), self._options.device
        )
        columns = {name: made.column(name) for name in kept}
        if layout.time:
            kind = steps.schema.field(layout.time).type
            columns[layout.time] = clock.times_like(targets, kind, layout.unit, layout.style)
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
    runs: Runs | None,
    rules: Rules,
    counted: tuple[str | None, ...],
    unreadable: dict[str, str],
) -> Iterator[list[Stream]]:
    """The episodes of a file with their real numbers, one stream each; what cannot be read goes into `unreadable`."""
    try:
        file = parquet(path)
        all_runs = episodes_of(file, path, path.name, layout) if runs is None else runs
        for run, table in read_runs(file, str(path), all_runs, 0):
            label = str(run.names[0])
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
