"""Parquet tables: a file, or a folder of files, whose rows are samples with a time and perhaps an episode column."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tmaops.dataset import clock
from tmaops.dataset.columns import real_numbers, resample_episode
from tmaops.dataset.errors import Refused
from tmaops.dataset.inspect import Stream
from tmaops.dataset.job import Options, Plan, Unit
from tmaops.dataset.rules import Rules
from tmaops.dataset.tables import Run, channels_by_column, map_runs, parquet, read_columns, read_runs, runs_of

TIME_NAMES = ("timestamp", "timestamps", "time", "times", "t", "stamp", "stamps")
EPISODE_NAMES = ("episode_index", "episode_id", "episode", "episodes", "trajectory_id", "traj_id")


def _named(given: str | None, known: tuple[str, ...], names: list[str], what: str) -> str | None:
    if given is not None:
        if given not in names:
            raise Refused(f"{what} column", repr(given), "one of " + ", ".join(names))
        return given
    return next((name for name in known if name in names), None)


def _time_unit(kind: pa.DataType, name: str, options: Options, first: int | float | None) -> tuple[str | None, str]:
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


class ParquetTables:
    """One unit per file. An episode lies in one file; without an episode column a file is an episode."""

    def plan(self, source: Path, options: Options, keep_going: bool, left_out: set[str]) -> Plan:
        files = [source] if source.is_file() else sorted(source.rglob("*.parquet"))
        units, explained, warnings = [], {}, []
        failed: dict[str, str] = {}
        episodes = 0
        schema = None
        seen: dict[object, str] = {}
        notes: list[str] = []
        for path in files:
            name = path.name if source.is_file() else str(path.relative_to(source))
            try:
                file = parquet(path)
            except Refused as error:
                if not keep_going:
                    raise
                failed[name] = str(error)
                continue
            if schema is None:
                schema = file.schema_arrow
                time = self._time_column(file, options)
                unit, how = _time_unit(schema.field(time).type, time, options, None)
                notes.append(f"time: column '{time}' in {unit or 'its own unit'} ({how})")
                column = _named(options.episode_column, EPISODE_NAMES, schema.names, "episode")
                notes.append(f"episodes: column '{column}'" if column else "episodes: each file is one")
                rules = self._rules(options, schema, time, column)
                explained = self._explain(rules, file, time, column)
                if pa.types.is_float32(schema.field(time).type) or pa.types.is_float16(schema.field(time).type):
                    warnings.append(
                        f"column '{time}' holds {schema.field(time).type} seconds: their resolution gets coarser with time"
                    )
            elif not file.schema_arrow.equals(schema):
                raise Refused(str(path), "another schema than that of the first file", "files of one schema")
            kept, labels = [], []
            try:
                runs = self._runs(file, path, column)
                table = read_columns(path, [time])
            except Refused as error:
                if not keep_going:
                    raise
                failed[name] = str(error)
                continue
            for run in runs:
                where = f"episode {run.episode}"
                if str(run.episode) in left_out:
                    continue
                try:
                    if run.episode in seen and column:
                        raise Refused(where, f"rows in {seen[run.episode]} and {name}", "an episode in one file")
                    times = clock.nanoseconds(table.column(0).slice(run.first, run.rows), unit, where)
                    clock.check_increasing(times, where)
                except Refused as error:
                    if not keep_going:
                        raise
                    failed[str(run.episode)] = str(error)
                    continue
                seen[run.episode] = name
                kept.append([run.first, run.rows])
                labels.append(str(run.episode))
            episodes += len(kept)
            size = path.stat()
            task = {
                "file": name,
                "runs": kept,
                "time": time,
                "unit": unit,
                "episode": column,
                "input": [size.st_size, size.st_mtime_ns],
            }
            units.append(Unit(name, task, size.st_size, labels))
        if not files:
            raise Refused(str(source), "no Parquet files", "at least one")
        return Plan(units, episodes, explained, notes, warnings, failed)

    def run_unit(self, source: Path, options: Options, unit: Unit, target: Path) -> dict[str, Any]:
        task = unit.task
        path = source if source.is_file() else source / task["file"]
        file = parquet(path)
        schema = file.schema_arrow
        rules = self._rules(options, schema, task["time"], task["episode"])
        widths = channels_by_column(file)
        hz = clock.rate(options.hz)

        def rule_of(name: str):
            return rules.of(name, schema.field(name).type, widths[name])

        def work(run: Run, table: pa.Table) -> pa.Table:
            episode = table.column(task["episode"])[0].as_py() if task["episode"] else path.name
            where = f"episode {episode}"
            times = clock.nanoseconds(table.column(task["time"]), task["unit"], where)
            targets = clock.grid(int(times[0]), int(times[-1]), hz)
            kept = [name for name in schema.names if name not in (task["time"], task["episode"])]
            made = resample_episode(table.select(kept), times, targets, rule_of, options.max_gap_ns, f"{where}: ")
            columns = {name: made.column(name) for name in kept}
            columns[task["time"]] = times_like(targets, schema.field(task["time"]).type, task["unit"])
            if task["episode"]:
                columns[task["episode"]] = table.column(task["episode"]).take(pa.array(np.zeros(targets.size, np.int64)))
            return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)

        runs = [Run(i, first, rows) for i, (first, rows) in enumerate(task["runs"])]
        read, written = map_runs(path, target, runs, work)
        return {"episodes": len(runs), "rows_read": read, "rows_written": written}

    def finish(self, source: Path, options: Options, plan: Plan, results: list[dict[str, Any]], out: Path) -> None:
        """Nothing: the files are the data set."""

    def episodes(self, source: Path, options: Options, unreadable: dict[str, str]) -> Iterator[list[Stream]]:
        """Every episode as one stream, for inspect()."""
        for path in [source] if source.is_file() else sorted(source.rglob("*.parquet")):
            try:
                file = parquet(path)
                time = self._time_column(file, options)
            except Refused as error:
                unreadable[str(path)] = str(error)
                continue
            unit, _ = _time_unit(file.schema_arrow.field(time).type, time, options, None)
            column = _named(options.episode_column, EPISODE_NAMES, file.schema_arrow.names, "episode")
            yield from streams_of(path, time, unit, column, Rules(), (time, column), unreadable)

    def _time_column(self, file: pq.ParquetFile, options: Options) -> str:
        names = file.schema_arrow.names
        known = TIME_NAMES + tuple(f"{name}_{unit}" for name in TIME_NAMES for unit in clock.NANOSECONDS)
        time = _named(options.time_column, known, names, "time")
        if time is None:
            raise Refused("time column", "none of the usual names among " + ", ".join(names), "--time-column NAME")
        return time

    def _runs(self, file: pq.ParquetFile, path: Path, column: str | None) -> list[Run]:
        if column is None:
            return [Run(path.name, 0, file.metadata.num_rows)] if file.metadata.num_rows else []
        return runs_of(read_columns(path, [column]).column(0), f"{path}: column '{column}'")

    def _rules(self, options: Options, schema: pa.Schema, time: str, episode: str | None) -> Rules:
        rules = Rules(dict(options.modes))
        rules.check_used([name for name in schema.names if name not in (time, episode)])
        return rules

    def _explain(self, rules: Rules, file: pq.ParquetFile, time: str, episode: str | None) -> dict[str, str]:
        widths = channels_by_column(file)
        explained = {}
        for field in file.schema_arrow:
            if field.name in (time, episode):
                continue
            rule = rules.of(field.name, field.type, widths[field.name])
            explained[field.name] = f"{rule.text()} ({rule.why})"
        return explained


def streams_of(
    path: Path,
    time: str,
    unit: str | None,
    episode: str | None,
    rules: Rules,
    counted: tuple[str | None, ...],
    unreadable: dict[str, str],
) -> Iterator[list[Stream]]:
    """The episodes of a file with their real numbers, one stream each; what cannot be read goes into `unreadable`."""
    try:
        file = parquet(path)
        rows = file.metadata.num_rows
        whole = [Run(path.name, 0, rows)] if rows else []
        runs = runs_of(read_columns(path, [episode]).column(0), f"{path}: column '{episode}'") if episode else whole
        widths = {name: n for name, n in channels_by_column(file).items() if n and name not in counted}
        for run, table in read_runs(file, runs):
            label = str(run.episode)
            try:
                times = clock.nanoseconds(table.column(time), unit, f"episode {label}")
                columns, quaternions = {}, {}
                for name in widths:
                    column = table.column(name)
                    columns[name] = real_numbers(column.drop_null() if column.null_count else column, name)
                    rule = rules.of(name, table.schema.field(name).type, widths[name])
                    quaternions[name] = [
                        first for p in rule.parts if p.mode == "slerp" for first in range(p.first, p.first + p.count, 4)
                    ]
            except Refused as error:
                unreadable[label] = str(error)
                continue
            yield [Stream(label, "", times, columns, quaternions)]
    except Refused as error:
        unreadable[str(path)] = str(error)


def times_like(targets: np.ndarray, kind: pa.DataType, unit: str | None) -> pa.Array:
    """Targets (T, nanoseconds) as a column of the type and unit of the input's times, rounded once."""
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        scale = clock.NANOSECONDS[kind.unit]
        return pa.array((targets + scale // 2) // scale, type=pa.int64()).cast(kind)
    scale = clock.NANOSECONDS[unit or ("ns" if pa.types.is_integer(kind) else "s")]
    if pa.types.is_integer(kind):
        return pa.array((targets + scale // 2) // scale, type=pa.int64()).cast(kind)
    return pa.array((targets.astype(np.longdouble) / scale).astype(kind.to_pandas_dtype()), type=kind)


def source_stat(path: Path) -> list[int]:
    """Size and change time of a file: what tells a resumed run that its input is the same."""
    found = os.stat(path)
    return [found.st_size, found.st_mtime_ns]
