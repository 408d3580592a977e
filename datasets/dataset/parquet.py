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
from tmaops.dataset.rules import Decided, Rules, channels_of, decide
from tmaops.dataset.tables import (
    BATCH_ROWS,
    Runs,
    a_repeated,
    channels_by_column,
    channels_of_table,
    columns_of,
    first_rows,
    joined,
    known_of,
    leaves_in,
    map_runs,
    packed,
    parquet,
    read_columns,
    read_runs,
    runs_of,
    starts_of,
    unpacked,
)

EPISODE_NAMES = ("episode_index", "episode_id", "episode", "episodes", "trajectory_id", "traj_id")


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
    nanos: str | None = None  # of times in whole seconds: the column with their nanoseconds
    first_flags: str | None = None  # without an episode column: true in the first row of each
    lists: tuple[str, ...] = ()  # a row per episode: the columns that hold its steps
    input_hz: str | None = None
    style: str = "T"  # of times that are text

    def counted(self) -> tuple[str | None, ...]:
        """Columns that are not resampled."""
        return (self.time, self.nanos, self.episode)

    def times(self, steps: pa.Table, where: str, rows: np.ndarray | None = None) -> np.ndarray:
        """The times (S, nanoseconds) of the steps of an episode, or of several with so many rows each."""
        if self.time is None:
            rows = np.array([steps.num_rows]) if rows is None else rows
            return clock.frames(np.zeros(rows.size, np.int64), rows, clock.rate(self.input_hz))
        times = clock.nanoseconds(steps.column(self.time), self.unit, where)
        return times if self.nanos is None else times + clock.nanoseconds(steps.column(self.nanos), "ns", where)

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


def look(file: pq.ParquetFile, options: Options) -> tuple[Layout, Decided]:
    """The layout of a table and the rules of its columns, by its first rows; the notes say what was inferred."""
    first = first_rows(file)
    kinds = {field.name: field.type for field in file.schema_arrow}
    lists: tuple[str, ...] = ()
    steps = kinds.get("steps")
    if steps is not None and _is_list(steps) and pa.types.is_struct(steps.value_type):
        lists = ("steps",)
    elif _is_list(kinds.get("is_first", pa.null())):
        lists = tuple(name for name, kind in kinds.items() if _is_list(kind))
    if lists:
        row = next(file.iter_batches(batch_size=1, columns=list(lists), use_threads=False), None)
        if row is None:
            raise Refused("episodes", "none", "at least one")
        first = Layout(None, None, None, lists=lists).steps(pa.Table.from_batches([row]), "the first episode")
        channels = channels_of_table(first)
    else:
        channels = channels_by_column(file, first)
    episode = None if lists else _named(options.episode_column, EPISODE_NAMES, list(kinds), "episode")
    flags = None
    if not lists and episode is None and pa.types.is_boolean(kinds.get("is_first", pa.null())):
        flags = "is_first"
    layout = Layout(None, None, episode, None, flags, lists, options.input_hz)
    decided, notes = _decide(first, channels, layout, options)
    if lists:
        notes.append(f"episodes: a row each, whose steps are in {', '.join(lists)}")
    elif flags:
        notes.append(f"episodes: begin where '{flags}' is true")
    else:
        notes.append(f"episodes: column '{episode}'" if episode else "episodes: each file is one")
    return layout, decided._replace(notes=notes + decided.notes)


def _decide(
    first: pa.Table, channels: dict[str, int | None], layout: Layout, options: Options
) -> tuple[Decided, list[str]]:
    """The rules of columns by these rows. Sets what the layout says of times, and returns a note about them."""
    if options.time_column is not None and options.time_column not in channels:
        raise Refused("time column", repr(options.time_column), "one of " + ", ".join(channels))
    begins = [0, first.num_rows]
    if layout.episode and first.num_rows:
        runs = runs_of(first.column(layout.episode), f"column '{layout.episode}'")
        begins = np.append(runs.first, first.num_rows)
    known = [each for each in known_of(first, channels) if each.name != layout.episode]
    try:
        decided = decide(known, options.modes, time=options.time_column, unit=options.time_unit, offsets=begins)
    except Refused as error:
        if error.reason != "array_missing":
            raise
        if options.input_hz is not None:
            decided = decide(known, options.modes, offsets=begins, rows=first.num_rows)
            return decided, [f"time: counted at {options.input_hz} per second (asked for)"]
        names = "none of the usual names among " + ", ".join(channels)
        raise Refused("time column", names, "--time NAME, or --input-hz, the rate of its rows") from error
    time = decided.time
    layout.time, layout.nanos, layout.input_hz = time["name"], time.get("second_name"), None
    column = clock.plain(first.column(layout.time).drop_null())
    layout.unit, how = clock.unit_of(time, column, options.time_unit)
    layout.style = clock.text_style(column[0].as_py()) if pa.types.is_string(column.type) and len(column) else "T"
    return decided, [f"time: column '{layout.time}' in {layout.unit or 'its own unit'} ({how})"]


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
                if not file.metadata.num_rows:
                    plan.notes.append(f"{name}: no rows, left out")
                    continue
                if schema is None:
                    layout, rules = self._begin(file, options, plan)
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
        if found and layout.episode:
            self._check_once(found, plan)
        task = {"layout": asdict(layout), "rules": rules.json()} if found else {}
        for name, path, runs in found:
            own = task | {"file": name, "first": packed(runs.first), "rows": packed(runs.rows)}
            plan.units.append(Unit(name, own | {"input": fingerprint(path)}, size_of(path), runs.names))
        plan.episodes = sum(len(runs) for _, _, runs in found)
        return plan

    def _begin(self, file: pq.ParquetFile, options: Options, plan: Plan) -> tuple[Layout, Rules]:
        """What the first file says of all."""
        layout, decided = look(file, options)
        found = {
            "time_column": layout.time,
            "time_unit": layout.unit,
            "episode_column": layout.episode,
            "input_hz": layout.input_hz,
        }
        plan.found = {key: value for key, value in found.items() if value}
        plan.notes, plan.warnings, plan.columns = plan.notes + decided.notes, decided.warnings, decided.rules.columns
        kind = file.schema_arrow.field(layout.time).type if layout.time else None
        if kind in (pa.float16(), pa.float32(), pa.list_(pa.float32())):
            plan.warnings.append(
                f"column '{layout.time}' holds {kind} seconds: their resolution gets coarser with time"
            )
        return layout, decided.rules

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
        layout = Layout(**unit.task["layout"])
        resampler = Resampler(layout, options, Rules.of_json(unit.task["rules"]))
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
                layout, decided = look(file, options)
                runs = episodes_of(file, path, _name(path, source), layout)
            except Refused as error:
                unreadable[str(path)] = str(error)
                continue
            yield from streams_of(path, layout, runs, decided.rules, unreadable)


def _episodes(runs: Runs, times: np.ndarray, rows: np.ndarray, options: Options) -> tuple[Episodes, np.ndarray]:
    """Episodes of so many rows and their times as they are resampled, and the targets (T) as they are written."""
    grid, ends = options.grid(), np.cumsum(rows)
    targets, counts = grid.of(times[ends - rows], times[ends - 1], rows)
    return Episodes(times, grid.evaluated(times, rows, targets, counts), rows, counts, runs.labels), targets


class Resampler:
    """Episodes of one layout at the targets of `options`."""

    def __init__(self, layout: Layout, options: Options, rules: Rules):
        self._layout, self._options, self._rules = layout, options, rules
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
            steps.select(kept), episodes, self._rules, self._options.max_gap_ns(), self._options.device
        )
        columns = {name: made.column(name) for name in kept}
        if layout.time:
            kind = steps.schema.field(layout.time).type
            if layout.nanos:
                own = steps.schema.field(layout.nanos).type
                columns[layout.nanos] = clock.times_like(targets % clock.NANOSECONDS["s"], own, "ns")
                columns[layout.time] = clock.times_like(targets // clock.NANOSECONDS["s"], kind, "ns")
            else:
                columns[layout.time] = clock.times_like(targets, kind, layout.unit, layout.style)
        if layout.episode:
            same = np.repeat(episodes.begins, episodes.counts)
            columns[layout.episode] = steps.column(layout.episode).take(pa.array(same))
        self.read, self.written = self.read + steps.num_rows, self.written + made.num_rows
        return layout.with_steps(
            rows, pa.Table.from_arrays([columns[name] for name in steps.column_names], schema=steps.schema)
        )


def _name(path: Path, source: Path) -> str:
    return path.name if path == source else str(path.relative_to(source))


def streams_of(
    path: Path, layout: Layout, runs: Runs | None, rules: Rules, unreadable: dict[str, str]
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
                _add_numbers(stream, steps, rules)
            except Refused as error:
                unreadable[label] = str(error)
                continue
            yield [stream]
    except Refused as error:
        unreadable[str(path)] = str(error)


def _add_numbers(stream: Stream, steps: pa.Table, rules: Rules) -> None:
    for name in steps.column_names:
        for leaf, column in leaves_in(steps.column(name), name):
            if leaf in rules.columns and channels_of(column.type) is not None and rules[leaf].taken is None:
                stream.columns[leaf] = real_numbers(column.drop_null() if column.null_count else column, leaf)
                stream.quaternions[leaf] = rules.quaternions_in(leaf)
