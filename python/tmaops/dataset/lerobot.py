"""LeRobot v3: Parquet data with metadata about episodes, statistics and the rate, all rewritten for the new rate.

The layout is that of LeRobot's own code (codebase_version v3.0): data/chunk-*/file-*.parquet, meta/info.json,
meta/stats.json, meta/tasks.parquet, meta/episodes/chunk-*/file-*.parquet, videos/. Videos are not decoded: they keep
their frames, and an episode keeps its span of a video file.
"""

import json
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tmaops.dataset import clock
from tmaops.dataset.columns import Episode, check_gaps, resample_episodes
from tmaops.dataset.errors import Refused
from tmaops.dataset.inspect import Stream
from tmaops.dataset.job import Options, Plan, Unit
from tmaops.dataset.parquet import Layout, streams_of
from tmaops.dataset.places import copy, copy_tree, fingerprint, opened, size_of, whole, write_whole
from tmaops.dataset.rules import Rule, Rules
from tmaops.dataset.tables import Run, channels_by_column, leaves_of, map_runs, parquet, read_columns, runs_of

#: Columns that LeRobot itself counts; everything else is data.
COUNTED = ("timestamp", "frame_index", "episode_index", "index")
LAYOUT = Layout("timestamp", "s", "episode_index", None, [], None)


class LeRobot:
    """One unit per data file. Where an episode begins in the whole set follows from the times alone."""

    def files(self, source: Path) -> list[Path]:
        return sorted((source / "data").glob("*/*.parquet"))

    def plan(self, source: Path, options: Options, keep_going: bool, left_out: set[str]) -> Plan:
        info = read_info(source)
        hz, fps = clock.rate(options.hz), clock.rate(info["fps"])
        notes = [f"rate: {info['fps']} -> {_number(hz)} frames per second"]
        warnings: list[str] = []
        if info.get("codebase_version", "")[:3] != "v3.":
            raise Refused(str(source), f"codebase_version {info.get('codebase_version')}", "v3.0: convert it with LeRobot")
        files = self.files(source)
        if not files:
            raise Refused(str(source / "data"), "no Parquet files", "data/chunk-*/file-*.parquet")
        options.check_streams([])
        schema = parquet(files[0]).schema_arrow
        rules = self._rules(options, info, schema)
        columns = self._columns(rules, files[0])
        gaps = pa.schema([field for field in schema if field.name not in COUNTED])
        units, failed, exact = [], {}, 0
        wanted = features_with_stats(source)
        index = number = episodes = 0
        for path in files:
            name = str(path.relative_to(source))
            try:
                table = read_columns(path, ["timestamp", "episode_index"])
                runs = runs_of(table.column("episode_index"), f"{name}: column 'episode_index'")
            except Refused as error:
                if not keep_going:
                    raise
                failed[name] = str(error)
                continue
            kept = []
            for run in runs:
                where = f"episode {run.episode}"
                if str(run.episode) in left_out:
                    continue
                try:
                    column = table.column("timestamp").slice(run.first, run.rows)
                    times, was_exact = episode_times(column, fps, where)
                    check_gaps(gaps, times, hz, options.max_gap_ns(), where)
                    exact += was_exact
                except Refused as error:
                    if not keep_going:
                        raise
                    failed[str(run.episode)] = str(error)
                    continue
                count = clock.targets_in(int(times[0]), int(times[-1]), hz)
                kept.append([run.episode, number, run.first, run.rows, index, count])
                index, number, episodes = index + count, number + 1, episodes + 1
            if kept:
                task = {"file": name, "episodes": kept, "stats": wanted, "input": fingerprint(path)}
                units.append(Unit(name, task, size_of(path), [str(facts[0]) for facts in kept]))
        if exact == episodes and episodes:
            notes.append("time: column 'timestamp' in s, taken as frame / fps exactly, which it is to its own precision")
        elif exact < episodes:
            warnings.append(
                f"column 'timestamp' of {episodes - exact} of {episodes} episodes is not frame / fps; it holds float32 "
                "seconds, whose resolution gets coarser with time"
            )
        videos = [key for key, feature in info["features"].items() if feature["dtype"] == "video"]
        if videos and fps % hz:
            warnings.append(
                f"{', '.join(videos)}: videos keep {info['fps']} frames per second, and new timestamps lie between their "
                f"frames: load the result with tolerance_s={float(Fraction(1, 2) / fps):.4g} or more"
            )
        elif videos:
            notes.append(f"{', '.join(videos)}: videos are left as they are; every new timestamp is one of their frames")
        return Plan(units, episodes, columns, notes, warnings, failed)

    def run_unit(self, source: Path, options: Options, unit: Unit, target: Path) -> dict[str, Any]:
        info = read_info(source)
        hz, fps = clock.rate(options.hz), clock.rate(info["fps"])
        path = source / unit.task["file"]
        file = parquet(path)
        schema = file.schema_arrow
        rules = self._rules(options, info, schema)
        widths = channels_by_column(file)
        facts = {number: (episode, index, rows) for episode, number, _, _, index, rows in unit.task["episodes"]}
        described: list[dict[str, Any]] = []
        wanted = [name for name in schema.names if name in unit.task["stats"]]

        @cache
        def rule_of(name: str, kind: pa.DataType) -> Rule:
            return rules.of(name, kind, widths[name])

        data = [name for name in schema.names if name not in COUNTED]

        def work(runs: list[Run], table: pa.Table) -> pa.Table:
            episodes, counted, notes, first = [], [], [], 0
            for run in runs:
                was, index, rows = facts[run.episode]
                times, _ = episode_times(table.column("timestamp").slice(first, run.rows), fps, f"episode {was}")
                targets = clock.grid(int(times[0]), int(times[-1]), hz)
                episodes.append(Episode(times, targets, f"episode {was}"))
                frames = np.arange(rows)
                counted.append((times[0] / 1e9 + frames / float(hz), frames, np.full(rows, run.episode), frames + index))
                notes.append({"was": was, "episode": run.episode, "index": index, "rows": rows})
                first += run.rows
            made = resample_episodes(table.select(data), episodes, rule_of, options.max_gap_ns(), options.device)
            columns = {name: made.column(name) for name in data}
            for name, parts in zip(COUNTED, zip(*counted, strict=True), strict=True):
                kind = schema.field(name).type
                columns[name] = pa.array(np.concatenate(parts).astype(kind.to_pandas_dtype()), type=kind)
            out = pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)
            ends = np.cumsum([note["rows"] for note in notes])
            described.extend(note | {"stats": stats} for note, stats in zip(notes, stats_of(out, wanted, ends), strict=True))
            return out

        runs = [Run(number, first, rows) for _, number, first, rows, _, _ in unit.task["episodes"]]
        read, written = map_runs(path, target, runs, work)
        return {"episodes": len(runs), "rows_read": read, "rows_written": written, "described": described}

    def finish(self, source: Path, options: Options, plan: Plan, results: list[dict[str, Any]], out: Path) -> None:
        """Writes meta/: the rate, episodes with their new places and statistics, the statistics of all; links videos."""
        described = {d["was"]: d for result in results for d in result["described"]}
        described = dict(sorted(described.items()))
        info = read_info(source)
        hz = clock.rate(options.hz)
        info["fps"] = _number(hz)
        info["total_episodes"] = len(described)
        info["total_frames"] = sum(d["rows"] for d in described.values())
        if len(info.get("splits", {})) == 1 and len(described) != plan.episodes + len(plan.failed):
            info["splits"] = {name: f"0:{len(described)}" for name in info["splits"]}
        for feature in info["features"].values():
            if feature["dtype"] != "video" and "fps" in feature:
                feature["fps"] = _number(hz)
        new_episodes(source, out, described)
        stats = source / "meta" / "stats.json"
        if stats.is_file():
            write_whole(out / "meta" / "stats.json", json.dumps(new_stats(stats, described), indent=4) + "\n")
        for path in sorted((source / "meta").iterdir()):
            if path.is_file() and path.name not in ("info.json", "stats.json"):
                copy(path, out / "meta" / path.name)
        for folder in ("videos", "images"):
            if (source / folder).is_dir():
                copy_tree(source / folder, out / folder)
        for path in sorted(source.iterdir()):
            if path.is_file():
                copy(path, out / path.name)
        write_whole(out / "meta" / "info.json", json.dumps(info, indent=4, ensure_ascii=False) + "\n")

    def episodes(self, source: Path, options: Options, unreadable: dict[str, str]) -> Iterator[list[Stream]]:
        """Every episode as one stream, for inspect()."""
        rules = self._rules(Options("1"), read_info(source), None)
        for path in self.files(source):
            yield from streams_of(path, LAYOUT, None, rules, COUNTED, unreadable)

    def _rules(self, options: Options, info: dict[str, Any], schema: pa.Schema | None) -> Rules:
        names = {}
        for key, feature in info["features"].items():
            listed = feature.get("names")
            if isinstance(listed, dict):
                listed = next((v for v in listed.values() if isinstance(v, list)), None)
            if isinstance(listed, list):
                names[key] = [str(name) for name in listed]
        rules = Rules(dict(options.modes), names)
        if schema is not None:
            rules.check_used(leaves_of(schema, COUNTED))
        return rules

    def _columns(self, rules: Rules, path: Path) -> dict[str, Rule]:
        file = parquet(path)
        for name in COUNTED:
            if name not in file.schema_arrow.names:
                raise Refused(str(path), f"no column '{name}'", "the columns of LeRobot v3")
        widths = channels_by_column(file)
        return {name: rules.of(name, kind, widths[name]) for name, kind in leaves_of(file.schema_arrow, COUNTED).items()}


def read_info(source: Path) -> dict[str, Any]:
    """meta/info.json with what this needs checked."""
    path = source / "meta" / "info.json"
    try:
        info = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Refused(str(path), str(error), "a readable JSON file") from error
    for key in ("fps", "features"):
        if not isinstance(info, dict) or key not in info:
            raise Refused(str(path), f"no '{key}'", "the keys of LeRobot v3")
    clock.rate(info["fps"])
    return info


def episode_times(column: pa.ChunkedArray, fps: Fraction, where: str) -> tuple[np.ndarray, bool]:
    """The times (S, nanoseconds) of an episode, and whether they are frame / fps: then they are taken so, exactly."""
    stored = clock.nanoseconds(column, "s", where)
    clock.check_increasing(stored, where)
    exact = clock.frame_times(stored, fps, column.type)
    return (stored, False) if exact is None else (exact, True)


QUANTILES = {"q01": 0.01, "q10": 0.1, "q50": 0.5, "q90": 0.9, "q99": 0.99}


def stats_of(table: pa.Table, wanted: list[str], ends: np.ndarray) -> list[dict[str, dict[str, list]]]:
    """min, max, mean, std, count and quantiles of columns over the rows of each episode, as LeRobot has them.

    ends: of the rows of each episode. NaN is no value. Columns that hold no numbers have no statistics.
    """
    found: list[dict[str, dict[str, list]]] = [{} for _ in ends]
    for name in wanted:
        values = _numbers(table.column(name))
        if values is None:
            continue
        for stats, numbers in zip(found, np.split(values, ends[:-1]), strict=True):
            if np.isnan(numbers.sum(dtype=np.float64)):
                parts = [_statistics(column[~np.isnan(column)].reshape(-1, 1)) for column in numbers.T]
                stats[name] = {key: [part[key][0] for part in parts] for key in parts[0]}
            else:
                stats[name] = _statistics(numbers)
            stats[name]["count"] = [len(numbers)]
    return found


def _statistics(numbers: np.ndarray) -> dict[str, list]:
    """Of the columns of (S, channels); NaN where there is no row."""
    rows = len(numbers)
    if rows == 0:
        return {key: [float("nan")] * numbers.shape[1] for key in ("min", "max", "mean", "std", *QUANTILES)}
    columns = np.ascontiguousarray(numbers.T)
    ordered = np.sort(columns, axis=1)
    wide = columns.astype(np.float64)
    mean = wide.mean(axis=1)
    wide -= mean[:, None]
    std = np.sqrt(np.einsum("ij,ij->i", wide, wide) / rows)
    values = {"min": ordered[:, 0], "max": ordered[:, -1], "mean": mean, "std": std}
    for key, share in QUANTILES.items():
        at = share * (rows - 1)
        below = int(at)
        above = min(below + 1, rows - 1)
        lower = ordered[:, below].astype(np.float64)
        values[key] = lower + (at - below) * (ordered[:, above] - lower)
    return {key: value.astype(np.float64).tolist() for key, value in values.items()}


def _numbers(column: pa.ChunkedArray) -> np.ndarray | None:
    """A column of numbers, booleans or lists of one length as (rows, channels); None for anything else."""
    values = column.combine_chunks()
    if isinstance(values, pa.ChunkedArray):
        values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
    kind, rows = values.type, len(values)
    while pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind) or pa.types.is_large_list(kind):
        values, kind = values.flatten(), kind.value_type
    if not (pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind)) or rows == 0:
        return None
    flat = values.to_numpy(zero_copy_only=False)
    if not pa.types.is_floating(kind):
        flat = flat.astype(np.float64)
    return flat.reshape(rows, -1) if flat.size % rows == 0 else None


def features_with_stats(source: Path) -> list[str]:
    """The features whose statistics stand in meta/, of all or of each episode."""
    names = set()
    stats = source / "meta" / "stats.json"
    if stats.is_file():
        names.update(json.loads(stats.read_text(encoding="utf-8")))
    for path in sorted((source / "meta" / "episodes").glob("*/*.parquet"))[:1]:
        parts = [name.split("/") for name in parquet(path).schema_arrow.names]
        names.update("/".join(part[1:-1]) for part in parts if part[0] == "stats")
    return sorted(names)


def pooled(parts: list[dict[str, Any]]) -> dict[str, list]:
    """Statistics of several episodes as one: pooled mean and deviation, quantiles weighted by their counts."""
    arrays = [{key: np.asarray(value, np.float64) for key, value in part.items()} for part in parts]
    counts = np.stack([a["count"] for a in arrays])
    total = counts.sum(axis=0)
    weight = counts.reshape(counts.shape[:1] + (1,) * arrays[0]["mean"].ndim) / total
    mean = (np.stack([a["mean"] for a in arrays]) * weight).sum(axis=0)
    spread = np.stack([a["std"] ** 2 + (a["mean"] - mean) ** 2 for a in arrays])
    result = {
        "min": np.min([a["min"] for a in arrays], axis=0),
        "max": np.max([a["max"] for a in arrays], axis=0),
        "mean": mean,
        "std": np.sqrt((spread * weight).sum(axis=0)),
    }
    for key in arrays[0]:
        if key[:1] == "q" and key[1:].isdigit() and all(key in a for a in arrays):
            result[key] = (np.stack([a[key] for a in arrays]) * weight).sum(axis=0)
    return {key: value.tolist() for key, value in result.items()} | {"count": [int(total[0])]}


def new_stats(path: Path, described: dict[int, dict[str, Any]]) -> dict[str, Any]:
    """meta/stats.json for the new data, with the keys that the old one has; of images and videos the old numbers."""
    old = json.loads(path.read_text(encoding="utf-8"))
    new = {}
    for name, numbers in old.items():
        parts = [d["stats"][name] for d in described.values() if name in d["stats"]]
        if not parts:
            new[name] = numbers
            continue
        made = pooled(parts)
        new[name] = {key: made[key] for key in numbers if key in made}
    return new


def new_episodes(source: Path, out: Path, described: dict[int, dict[str, Any]]) -> None:
    """meta/episodes: the rows of kept episodes with their new numbers, places and statistics; all else as it was."""
    for path in sorted((source / "meta" / "episodes").glob("*/*.parquet")):
        table = pq.ParquetFile(opened(path)).read(use_threads=False)
        was = table.column("episode_index").to_pylist()
        table = table.filter(pa.array([episode in described for episode in was]))
        facts = [described[episode] for episode in was if episode in described]
        replaced: dict[str, list] = {
            "episode_index": [f["episode"] for f in facts],
            "length": [f["rows"] for f in facts],
            "dataset_from_index": [f["index"] for f in facts],
            "dataset_to_index": [f["index"] + f["rows"] for f in facts],
        }
        for name in table.column_names:
            parts = name.split("/")
            if parts[0] == "stats" and len(parts) >= 3:
                feature, key = "/".join(parts[1:-1]), parts[-1]
                if all(feature in f["stats"] and key in f["stats"][feature] for f in facts):
                    replaced[name] = [f["stats"][feature][key] for f in facts]
        for name, values in replaced.items():
            at = table.schema.get_field_index(name)
            if at >= 0:
                field = table.schema.field(at)
                table = table.set_column(at, field, pa.array(_whole_if(values, field.type), type=field.type))
        with whole(out / str(path.relative_to(source))) as target:
            pq.write_table(table, target, compression="snappy")


def _whole_if(values: list, kind: pa.DataType) -> list:
    """Statistics of integers and booleans are stored as such by LeRobot: round what goes into an integer column."""
    value_type = kind
    while pa.types.is_list(value_type) or pa.types.is_fixed_size_list(value_type):
        value_type = value_type.value_type
    if pa.types.is_integer(value_type):
        return [[round(v) for v in value] if isinstance(value, list) else round(value) for value in values]
    if pa.types.is_boolean(value_type):
        return [[bool(v) for v in value] if isinstance(value, list) else bool(value) for value in values]
    return values


def _number(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)
