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
from tmaops.dataset import clock, tables
from tmaops.dataset.clock import Episodes
from tmaops.dataset.columns import list_array, resample_episodes
from tmaops.dataset.errors import Refused
from tmaops.dataset.formats import Failed, Format, Plan, Stream, Unit
from tmaops.dataset.options import Options
from tmaops.dataset.places import name_in
from tmaops.dataset.rules import Decided, Known, Rules, decide
from tmaops.dataset.tables import Runs, channels_in, flat, is_list, known_of, parquet, runs_of

EPISODE_NAMES = ("episode_index", "episode_id", "episode", "episodes", "trajectory_id", "traj_id")


@dataclass
class Layout:
    """How a table holds its episodes and their times. Names of columns; None where there is none."""

    time: str | None = None  # None: counted at input_hz
    unit: str | None = None
    episode: str | None = None
    nanos: str | None = None  # of times in whole seconds: the column with fractions of them, of this unit
    first_flags: str | None = None  # without an episode column: true in the first row of each
    lists: tuple[str, ...] = ()  # a row per episode: the columns that hold its steps
    input_hz: str | None = None
    fps: str | None = None  # of times that are frame / fps
    counted: tuple[str, ...] = ()  # columns that are not resampled, beside those above

    def data(self, names: list[str]) -> list[str]:
        """The columns that are resampled."""
        return [name for name in names if name not in (self.time, self.nanos, self.episode, *self.counted)]

    def steps(self, rows: pa.Table, runs: Runs) -> tuple[pa.Table, np.ndarray]:
        """The steps of some episodes as the rows of a table, and how many each has: rows, or the lists of one row."""
        if not self.lists:
            return rows, runs.rows
        names = [name for name in self.lists if name in rows.column_names]
        columns = [rows.column(name).combine_chunks() for name in names]
        lengths = {column.value_lengths()[0].as_py() for column in columns}
        if len(lengths) > 1 or None in lengths:
            raise Refused(runs.labels[0], "lists of several lengths, or nulls", "as many steps in every list")
        columns = [column.flatten() for column in columns]
        return pa.table(columns, names=names), np.array([len(columns[0])])

    def stored(self, steps: pa.Table, rows: np.ndarray, where: str) -> np.ndarray:
        """The times (S, nanoseconds) that episodes of so many rows have."""
        if self.time is None:
            return clock.frames(np.zeros(rows.size, np.int64), rows, clock.rate(self.input_hz))
        return clock.stored([tables.leaf(steps, name) for name in (self.time, self.nanos) if name], self.unit, where)

    def in_order(
        self, steps: pa.Table, rows: np.ndarray, labels: list[str], options: Options
    ) -> tuple[np.ndarray, np.ndarray | None, int]:
        """The times (S) of episodes when they were taken, in order; the rows that have them; and of how many episodes they
        are not frame / fps.
        """
        times, order = options.in_order(self.stored(steps, rows, labels[0]), rows, unit=self.unit)
        if self.fps is None:
            return times, order, 0
        late = options.latency_ns(".")
        exact, which = clock.frame_times(times + late, rows, clock.rate(self.fps), steps.schema.field(self.time).type)
        return exact - late, order, int((~which).sum())

    def counting_columns(self, file: pq.ParquetFile) -> list[str]:
        """The columns that say how many steps an episode has and when: the times, else the smallest one."""
        names, times = self.lists or file.schema_arrow.names, [name for name in (self.time, self.nanos) if name]
        if times:
            return ([name for name in times if name in names] or [names[0]]) if self.lists else times
        chunks = [c for c in tables.columns_of(file.metadata) if c.path_in_schema.split(".")[0] in names]
        return [min(chunks, key=lambda c: c.total_compressed_size).path_in_schema if chunks else names[0]]

    def with_steps(self, row: pa.Table, steps: pa.Table) -> pa.Table:
        """The row of an episode with other steps."""
        for name in self.lists:
            at = row.schema.get_field_index(name)
            field = row.schema.field(at)
            made = list_array(steps.column(name).combine_chunks(), np.array([0, steps.num_rows]), field.type)
            row = row.set_column(at, field, made)
        return row if self.lists else steps


def look(file: pq.ParquetFile, options: Options) -> tuple[Layout, Decided]:
    """The layout of a table and the rules of its columns, by its first rows; the notes say what was inferred."""
    kinds = {field.name: field.type for field in file.schema_arrow}
    layout, steps = Layout(input_hz=options.input_hz), kinds.get("steps", pa.null())
    if is_list(steps) and pa.types.is_struct(steps.value_type):
        layout.lists = ("steps",)
    elif is_list(kinds.get("is_first", pa.null())):
        layout.lists = tuple(name for name, kind in kinds.items() if is_list(kind))
    elif options.episode_column is not None and options.episode_column not in kinds:
        raise Refused("episode column", repr(options.episode_column), "one of " + ", ".join(kinds))
    else:
        usual = (name for name in EPISODE_NAMES if name in kinds)
        layout.episode = options.episode_column or next(usual, None)
        if layout.episode is None and pa.types.is_boolean(kinds.get("is_first", pa.null())):
            layout.first_flags = "is_first"
    begins = np.array([0])
    if layout.lists:
        row = next(file.iter_batches(batch_size=1, columns=list(layout.lists), use_threads=False), None)
        if row is None:
            raise Refused("episodes", "none", "at least one")
        named = Runs(pa.array(["0"]), np.array([0]), np.array([1]))
        first, _ = layout.steps(pa.Table.from_batches([row]), named)
        known, note = known_of(first), f"episodes: a row each, whose steps are in {', '.join(layout.lists)}"
    else:
        first = tables.first_rows(file)
        known, note = known_of(first, file.metadata), "episodes: each file is one"
    if layout.episode:
        if pa.types.is_nested(kinds[layout.episode]):
            what = f"'{layout.episode}', a column of {kinds[layout.episode]}"
            raise Refused("episode column", what, "one of numbers or text")
        known, note = [each for each in known if each.name != layout.episode], f"episodes: column '{layout.episode}'"
        begins = runs_of(first.column(layout.episode), f"column '{layout.episode}'").first
    elif layout.first_flags:
        note = f"episodes: begin where '{layout.first_flags}' is true"
    decided, said = decide_of_table(first, known, np.append(begins, first.num_rows), layout, options, file.schema_arrow)
    alone = not (layout.lists or layout.episode or layout.first_flags)
    if layout.time and alone and not options.sort and options.duplicates == "error":
        _check_one_episode(first, layout)
    return layout, decided._replace(notes=[said, note, *decided.notes])


def _check_one_episode(first: pa.Table, layout: Layout) -> None:
    """Refuses rows whose times do not increase, but do so among the rows of each value of a column: it names the episodes."""
    times = layout.stored(first, np.array([first.num_rows]), "timestamps")
    found = np.flatnonzero(times[1:] <= times[:-1]) + 1
    for name in layout.data(first.column_names) if found.size else []:
        column = tables.one(first.column(name))
        if column.null_count or not (pa.types.is_integer(column.type) or clock.is_text(column.type)):
            continue
        values = column.dictionary_encode()
        order = np.argsort(values.indices.to_numpy(), kind="stable")
        same = np.diff(values.indices.to_numpy()[order]) == 0
        if 1 < len(values.dictionary) <= len(column) // 2 and (np.diff(times[order])[same] > 0).all():
            got = f"row {found[0]} has no time after that of row {found[0] - 1}, but every '{name}' has times that increase"
            mends = f"--episode-column '{name}', if its values are the episodes; else --sort, or --duplicates last"
            raise Refused("timestamps", got, mends)


def decide_of_table(
    first: pa.Table, known: list[Known], offsets: np.ndarray, layout: Layout, options: Options, schema: pa.Schema
) -> tuple[Decided, str]:
    """The rules of columns by these rows. Sets what the layout says of times, and returns a note about them."""
    names = [each.name for each in known]
    if options.time_column is not None and options.time_column not in names:
        raise Refused("time column", repr(options.time_column), "one of " + ", ".join(names))
    try:
        asked = {"time": options.time_column, "unit": options.time_unit, "units": tables.units_said(schema)}
        decided = decide(known, options.modes, offsets=offsets, **asked)
    except Refused as error:
        if error.reason != "array_missing":
            raise
        if options.input_hz is None:
            got = "none of the usual names among " + ", ".join(names)
            raise Refused("time column", got, "--time NAME, or --input-hz, the rate of its rows") from error
        decided = decide(known, options.modes, offsets=offsets, rows=first.num_rows)
        return decided, f"time: counted at {options.input_hz} per second (asked for)"
    layout.time, layout.nanos, layout.input_hz = decided.time["name"], decided.time.get("second_name"), None
    column = clock.plain(flat(first).column(layout.time).drop_null())
    layout.unit, how = clock.unit_of(decided.time, column.type)
    return decided, f"time: column '{layout.time}' in {clock.spoken(layout.unit, layout.nanos)} ({how})"


def episodes_of(file: pq.ParquetFile, path: Path, name: str, layout: Layout) -> Runs:
    """The rows of each episode of a file."""
    rows = file.metadata.num_rows
    if layout.lists:
        names = pa.array([f"{name}:{row}" for row in range(rows)], pa.string())
        return Runs(names, np.arange(rows), np.ones(rows, np.int64))
    if layout.episode:
        return runs_of(tables.read_column(path, layout.episode), f"{path}: column '{layout.episode}'")
    if layout.first_flags:
        return tables.starts_of(tables.read_column(path, layout.first_flags), name)
    names = pa.array([name][: min(rows, 1)], pa.string())
    return Runs(names, np.zeros(len(names), np.int64), np.full(len(names), rows))


class Resampler:
    """Episodes of one layout at the targets of `options`. schema: of the result, where it is not that of the rows.

    columns: those that it looks at; None for all.
    """

    columns: list[str] | None = None

    def __init__(self, layout: Layout, options: Options, rules: Rules, schema: pa.Schema | None = None):
        self.layout, self.options, self.rules, self.schema = layout, options, rules, schema
        self.read = self.written = 0  # steps so far

    def __call__(self, runs: Runs, rows: pa.Table) -> pa.Table:
        """The rows of some episodes, resampled: same columns, order, types and metadata."""
        if self.layout.lists:
            return pa.concat_tables(self._together(run, rows.slice(i, 1)) for i, run in enumerate(runs.each()))
        return self._together(runs, rows)

    def _together(self, runs: Runs, rows: pa.Table) -> pa.Table:
        steps, counts = self.layout.steps(rows, runs)
        times, order, _ = self.layout.in_order(steps, counts, runs.labels, self.options)
        steps = steps if order is None else steps.take(pa.array(order))
        episodes = self.options.episodes(times, counts, runs.labels)
        counted = self.counted(runs, steps, episodes)
        made = resample_episodes(steps, episodes, self.rules, counted, self.schema)
        self.read, self.written = self.read + steps.num_rows, self.written + made.num_rows
        return self.layout.with_steps(rows, made)

    def facts(self) -> dict[str, Any]:
        """What the end of the run has to know, as JSON."""
        return {}

    def counted(self, runs: Runs, steps: pa.Table, episodes: Episodes) -> dict[str, pa.Array | pa.ChunkedArray]:
        """The columns of the times and the episodes."""
        layout, columns, targets = self.layout, {}, episodes.targets
        kinds = {name: tables.leaf(steps, name).type for name in (layout.time, layout.nanos) if name}
        if layout.nanos:
            columns |= zip(kinds, clock.parts_like(targets, [*kinds.values()], layout.unit), strict=True)
        elif layout.time:
            columns[layout.time] = clock.times_like(targets, kinds[layout.time], layout.unit)
        if layout.episode:
            same = np.repeat(episodes.begins, episodes.counts)
            columns[layout.episode] = steps.column(layout.episode).take(pa.array(same))
        return columns


class ParquetTables(Format):
    """One unit per file. An episode lies in one file."""

    broken = (pa.ArrowException, UnicodeDecodeError, MemoryError)
    endings = (".parquet",)
    one_schema = True  # of all files

    def look(self, source: Path, file: pq.ParquetFile, path: Path, options: Options) -> tuple[Layout, Decided]:
        """What the first file says of all."""
        return look(file, options)

    def plan(self, source: Path, options: Options, keep_going: bool, left_out: set[str]) -> Plan:
        plan = Plan(failed=Failed(keep_going, self.broken))
        found: list[tuple[str, Path, Runs]] = []
        schema = None
        options.check_streams([])
        for path in self.files(source):
            name = name_in(source, path)
            with plan.failed.named(name):
                file = parquet(path)
                if not file.metadata.num_rows:
                    plan.notes.append(f"{name}: no rows, left out")
                    continue
                if schema is None:
                    layout, decided = self.look(source, file, path, options)
                    schema = file.schema_arrow
                    names = dict(time_column="time", time_unit="unit", episode_column="episode", input_hz="input_hz")
                    plan.found = {key: said for key, name in names.items() if (said := getattr(layout, name))}
                    plan.add(decided)
                elif (other := self.unlike(file.schema_arrow, schema)) is not None:
                    had = schema.field(other.name).type if other.name in schema.names else "no such column"
                    needed = f"{had}, as in the first file (table.cast(schema) of pyarrow makes it so)"
                    raise Refused(f"{path}: column '{other.name}'", str(other.type), needed)
                runs, parts = episodes_of(file, path, name, layout).without(left_out), []
                most = 0 if layout.lists else tables.BATCH_ROWS
                for group, rows in tables.read_runs(file, name, runs, most, layout.counting_columns(file)):
                    parts += self._accepted(group, rows, layout, schema, options, plan)
                if parts:
                    found.append((name, path, tables.joined(parts)))
        if len(found) > 1 and layout.episode:
            self._check_once(found, plan)
        for name, path, runs in found:
            task = {"layout": asdict(layout), "rules": decided.rules.json()}
            task["runs"] = tables.packed({"first": runs.first, "rows": runs.rows, "targets": runs.targets})
            plan.units.append(self.unit_of(path, name, runs.names, **task))
        plan.episodes = sum(len(runs) for _, _, runs in found)
        return plan

    def unlike(self, schema: pa.Schema, first: pa.Schema) -> pa.Field | None:
        """A column of a file that the rules of the first file do not fit."""
        for name, kind in zip(first.names, first.types, strict=True):
            own = schema.field(name).type if name in schema.names else pa.null()
            real = [channels_in(each) is not None for each in (own, kind)]
            if own != kind and (self.one_schema or real[0] != real[1]):
                return pa.field(name, own)
        return next((field for field in schema if self.one_schema and field.name not in first.names), None)

    def _accepted(
        self, runs: Runs, rows: pa.Table, layout: Layout, schema: pa.Schema, options: Options, plan: Plan
    ) -> Iterator[Runs]:
        """Runs that follow one another and can be resampled, and have targets."""
        try:
            steps, counts = layout.steps(rows, runs)
            times, _, odd = layout.in_order(steps, counts, runs.labels, options)
            episodes = options.episodes(times, counts, runs.labels)
            stiff = next((name for name in layout.data(schema.names) if not schema.field(name).nullable), None)
            if stiff is not None and episodes.empty is not None:
                needed = "a larger --max-gap, or a column that can be null"
                raise Refused(f"{episodes.names[0]}: column '{stiff}'", "a gap, and a column without nulls", needed)
        except Refused as error:
            for run in runs.each() if len(runs) > 1 else ():
                own = rows.slice(int(run.first[0] - runs.first[0]), int(run.rows[0]))
                yield from self._accepted(run, own, layout, schema, options, plan)
            if len(runs) == 1:
                with plan.failed.named(str(runs.names[0])):
                    raise error
            return
        plan.count("", int(counts.sum()), int(episodes.counts.sum()))
        plan.inexact += odd
        if episodes.counts.any():
            yield Runs(runs.names, runs.first, runs.rows, episodes.counts)[np.flatnonzero(episodes.counts)]

    def _check_once(self, found: list[tuple[str, Path, Runs]], plan: Plan) -> None:
        """Refuses, or leaves out of all but the first, an episode in several files."""
        if tables.a_repeated(pa.concat_arrays([runs.names for _, _, runs in found])) is None:
            return
        seen: dict[object, str] = {}
        for place, (name, path, runs) in enumerate(found):
            kept = []
            for i, episode in enumerate(runs.names.to_pylist()):
                with plan.failed.named(str(episode)):
                    if (first := seen.setdefault(episode, name)) != name:
                        raise Refused(f"episode {episode}", f"rows in {first} and {name}", "an episode in one file")
                    kept.append(i)
            found[place] = (name, path, runs[np.array(kept, int)])

    def resampler(self, source: Path, options: Options, unit: Unit) -> Resampler:
        return Resampler(Layout(**unit.task["layout"]), options, Rules.of_json(unit.task["rules"]))

    def run_unit(self, source: Path, options: Options, unit: Unit, target: Path) -> dict[str, Any]:
        path = source if source.is_file() else source / unit.task["file"]
        resampler = self.resampler(source, options, unit)
        runs = Runs(unit.episodes, **tables.unpacked(unit.task["runs"]))
        layout = resampler.layout
        stated = layout.unit in clock.NANOSECONDS and not layout.fps and not layout.nanos
        says = {f"{clock.SAID} {layout.time}".encode(): layout.unit} if stated else {}
        tables.map_runs(path, target, runs, resampler, resampler.columns, says)
        facts = {"episodes": len(runs), "rows_read": resampler.read, "rows_written": resampler.written}
        return facts | resampler.facts()

    def episodes(self, source: Path, options: Options, unreadable: dict[str, str]) -> Iterator[list[Stream]]:
        """Every episode as one stream, for inspect()."""
        failed = Failed(True, self.broken)
        for path in self.files(source):
            with failed.named(str(path)):
                file = parquet(path)
                layout, decided = self.look(source, file, path, options)
                runs = episodes_of(file, path, name_in(source, path), layout)
                for run, rows in tables.read_runs(file, str(path), runs, 0):
                    with failed.named(label := str(run.names[0])):
                        yield [_stream(label, *layout.steps(rows, run), layout, decided.rules)]
        unreadable |= failed


def _stream(label: str, steps: pa.Table, rows: np.ndarray, layout: Layout, rules: Rules) -> Stream:
    """An episode with its real numbers."""
    stream = Stream(label, "", layout.stored(steps, rows, f"episode {label}"))
    steps = flat(steps)
    for name, column in zip(steps.column_names, steps.columns, strict=True):
        if name in rules.columns and tables.channels_of(column) is not None and rules[name].taken is None:
            stream.columns[name] = tables.real_numbers(column.drop_null() if column.null_count else column, name)
            stream.quaternions[name] = rules.quaternions_in(name)
    return stream
