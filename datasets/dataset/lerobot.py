"""LeRobot v3 and v2: Parquet data with metadata about episodes, statistics and the rate, all rewritten for the new rate.

The layouts are those of LeRobot's own code. v3.0: data/chunk-*/file-*.parquet, meta/info.json, meta/stats.json,
meta/tasks.parquet, meta/episodes/chunk-*/file-*.parquet, videos/. v2.0 and v2.1: a data file and a video file for each episode,
meta/episodes.jsonl, meta/episodes_stats.jsonl (2.0: meta/stats.json), meta/tasks.jsonl. The result has the version of the
source. Videos are not decoded: they keep their frames, and an episode keeps its span of a video file.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tmaops.dataset import clock
from tmaops.dataset.columns import Episodes, check_gaps, like, resample_episodes
from tmaops.dataset.errors import Refused
from tmaops.dataset.formats import Failed, Plan, Stream, Unit
from tmaops.dataset.options import Options
from tmaops.dataset.parquet import Layout, streams_of
from tmaops.dataset.places import copy, copy_tree, fingerprint, opened, size_of, whole, write_whole
from tmaops.dataset.rules import Decided, Rules, decide
from tmaops.dataset.tables import (
    BATCH_ROWS,
    Runs,
    Writer,
    channels_by_column,
    first_rows,
    grouped,
    known_of,
    map_runs,
    packed,
    parquet,
    read_columns,
    runs_of,
    unpacked,
)

#: Columns that LeRobot itself counts; everything else is data.
COUNTED = ("timestamp", "frame_index", "episode_index", "index")
LAYOUT = Layout("timestamp", "s", "episode_index")


class LeRobot:
    """One unit per data file. Where an episode begins in the whole set follows from the times alone."""

    #: Besides what Arrow raises: what comes of metadata in JSON that are not as LeRobot writes them.
    broken = (pa.ArrowException, ValueError, LookupError, TypeError, AttributeError, OverflowError, MemoryError)

    def files(self, source: Path) -> list[Path]:
        return sorted((source / "data").glob("*/*.parquet"))

    def plan(self, source: Path, options: Options, keep_going: bool, left_out: set[str]) -> Plan:
        info = read_info(source)
        hz, fps = clock.rate(options.hz), clock.rate(info["fps"])
        plan = Plan([], 0, {}, failed=Failed(keep_going, self.broken))
        plan.notes.append(f"rate: {info['fps']} -> {clock.number(hz)} frames per second")
        files = self.files(source)
        if not files:
            raise Refused(str(source / "data"), "no Parquet files", "data/chunk-*/*.parquet")
        options.check_streams([])
        schema = parquet(files[0]).schema_arrow
        decided = self._decided(files[0], info, options)
        plan.columns, rules = decided.rules.columns, decided.rules.json()
        plan.notes, plan.warnings = plan.notes + decided.notes, list(decided.warnings)
        gaps = pa.schema([field for field in schema if field.name not in COUNTED])
        wanted = features_with_stats(source)
        index = exact = 0
        for path in files:
            name, parts = str(path.relative_to(source)), []
            with plan.failed.named(name):
                table = read_columns(path, ["timestamp", "episode_index"])
                runs = runs_of(table.column("episode_index"), f"{name}: column 'episode_index'").without(left_out)
                for group in grouped(runs, BATCH_ROWS):
                    stamps = table.column("timestamp").slice(int(group.first[0]), int(group.rows.sum()))
                    parts += self._frames(group, stamps, fps, gaps, options, plan)
            if parts:
                was, first, rows, counts, begins, kept_exact = map(np.concatenate, zip(*parts, strict=True))
                facts = {"was": was, "episode": plan.episodes + np.arange(was.size), "first": first, "rows": rows}
                facts |= {"index": index + np.cumsum(counts) - counts, "counts": counts}
                if kept_exact.all() and not options.sort:  # times follow from the first ones
                    facts["begins"] = begins
                task = {"file": name, "episodes": {key: packed(values) for key, values in facts.items()}}
                task |= {"stats": wanted, "rules": rules, "input": fingerprint(path)}
                made = data_path(info, plan.episodes, name)
                plan.units.append(Unit(made, task, size_of(path), pa.array(was)))
                index, plan.episodes = index + int(counts.sum()), plan.episodes + was.size
                exact += int(kept_exact.sum())
        self._say(info, options, plan, exact)
        return plan

    def _say(self, info: dict[str, Any], options: Options, plan: Plan, exact: int) -> None:
        """What is to be known of times and videos."""
        hz, fps = clock.rate(options.hz), clock.rate(info["fps"])
        if exact == plan.episodes:
            plan.notes.append(
                "time: column 'timestamp' in s, taken as frame / fps exactly, which it is to its own precision"
            )
        else:
            plan.warnings.append(
                f"column 'timestamp' of {plan.episodes - exact} of {plan.episodes} episodes is not frame / fps; it holds float32 "
                "seconds, whose resolution gets coarser with time"
            )
        videos = [key for key, feature in info["features"].items() if feature["dtype"] == "video"]
        if not videos:
            return
        plan.notes.append(
            f"{', '.join(videos)}: videos are copied as they are"
            if options.copy
            else f"{', '.join(videos)}: videos are linked: they share their bytes with the source (--copy copies them)"
        )
        moved = options.start is not None or options.end is not None or options.align or options.offset
        if moved:
            plan.warnings.append(
                f"{', '.join(videos)}: videos begin with the first frame of their episodes, and timestamps no longer do: "
                "leave out --start, --align and --offset"
            )
        if fps % hz:
            plan.warnings.append(
                f"{', '.join(videos)}: videos keep {info['fps']} frames per second, and new timestamps lie between their "
                f"frames: load the result with tolerance_s={float(Fraction(1, 2) / fps):.4g} or more"
            )
        else:
            plan.notes.append(f"{', '.join(videos)}: every new timestamp is one of their frames")

    def _frames(
        self, runs: Runs, stamps: pa.ChunkedArray, fps: Fraction, gaps: pa.Schema, options: Options, plan: Plan
    ) -> Iterator[tuple[np.ndarray, ...]]:
        """Facts of runs that follow one another and have targets, each an array of N: episode, first row, rows, number of
        targets, first time, and whether all times are this + frame / fps.
        """
        try:
            times, exact, _ = times_of(runs, stamps, fps, options)
            ends = np.cumsum(runs.rows)
            begins = times[ends - runs.rows]
            counts = options.grid().counts(begins, times[ends - 1], runs.rows)
            if options.max_gap:
                check_gaps(gaps, episodes_of(runs, times, options)[0], options.max_gap_ns())
        except Refused as error:
            if len(runs) > 1:
                for run in runs.each():
                    own = stamps.slice(int(run.first[0] - runs.first[0]), int(run.rows[0]))
                    yield from self._frames(run, own, fps, gaps, options, plan)
                return
            with plan.failed.named(str(runs.names[0])):
                raise error
            return
        plan.count("", int(runs.rows.sum()), int(counts.sum()))
        if (kept := np.flatnonzero(counts)).size:
            yield tuple(
                values[kept] for values in (runs.names.to_numpy(), runs.first, runs.rows, counts, begins, exact)
            )

    def run_unit(self, source: Path, options: Options, unit: Unit, target: Path) -> dict[str, Any]:
        info = read_info(source)
        hz, fps = clock.rate(options.hz), clock.rate(info["fps"])
        path = source / unit.task["file"]
        file = parquet(path)
        schema = file.schema_arrow
        rules = Rules.of_json(unit.task["rules"])
        wanted = {name: keys for name, keys in unit.task["stats"].items() if name in schema.names}
        stats: list[dict[str, dict[str, np.ndarray]]] = []

        data = [name for name in schema.names if name not in COUNTED]
        facts = {key: unpacked(text) for key, text in unit.task["episodes"].items()}
        stored = "begins" not in facts  # else the times follow from the first ones
        runs = Runs(pa.array(np.arange(facts["rows"].size)), facts["first"], facts["rows"])

        def work(group: Runs, table: pa.Table) -> pa.Table:
            at = slice(group.names[0].as_py(), group.names[-1].as_py() + 1)
            own = {key: values[at] for key, values in facts.items()}
            group = Runs(pa.array(own["was"]), group.first, group.rows)
            if stored:
                times, _, order = times_of(group, table.column("timestamp"), fps, options)
                table = table if order is None else table.take(pa.array(order))
            else:
                times = clock.frames(own["begins"], group.rows, fps)
            episodes, targets = episodes_of(group, times, options)
            made = resample_episodes(table.select(data), episodes, rules, options.max_gap_ns(), options.device)
            columns = {name: made.column(name) for name in data}
            frames = clock.places(episodes.counts)
            begins = targets[np.cumsum(episodes.counts) - episodes.counts]
            seconds = np.repeat(begins / 1e9, episodes.counts) + frames / float(hz)
            counted = (
                seconds,
                frames,
                np.repeat(own["episode"], episodes.counts),
                frames + np.repeat(own["index"], episodes.counts),
            )
            for name, numbers in zip(COUNTED, counted, strict=True):
                kind = schema.field(name).type
                columns[name] = pa.array(numbers.astype(kind.to_pandas_dtype()), type=kind)
            out = pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)
            stats.append(stats_of(out, wanted, episodes.counts))
            return out

        read, written = map_runs(path, target, runs, work, [*data, "timestamp"] if stored else data)
        described = {key: unit.task["episodes"][key] for key in ("was", "episode", "index", "counts")}
        described |= {"stats": packed_stats(stats), "file": unit.path}
        return {"episodes": len(runs), "rows_read": read, "rows_written": written, "described": described}

    def finish(self, source: Path, options: Options, plan: Plan, results: list[dict[str, Any]], out: Path) -> None:
        """Writes meta/: the rate, episodes with their new places and statistics, the statistics of all; links videos."""
        described = Described.of([result["described"] for result in results])
        info = read_info(source)
        new = clock.number(clock.rate(options.hz))
        info["fps"] = new
        count = described.was.size
        info["total_episodes"] = count
        info["total_frames"] = int(described.rows.sum())
        if len(info.get("splits", {})) == 1 and count != plan.episodes + len(plan.failed):
            info["splits"] = {name: f"0:{count}" for name in info["splits"]}
        for feature in info["features"].values():
            if feature["dtype"] != "video" and "fps" in feature:
                feature["fps"] = new
        second = is_v2(info)
        if second:
            info |= {key: number for key, number in v2_totals(info, described).items() if key in info}
            new_lines(source, out, described)
        else:
            new_episodes(source, out, described)
        stats = source / "meta" / "stats.json"
        if stats.is_file():
            write_whole(out / "meta" / "stats.json", json.dumps(new_stats(stats, described), indent=4) + "\n")
        written = ("info.json", "stats.json", *(LINES if second else ()))
        for path in sorted((source / "meta").iterdir()):
            if path.is_file() and path.name not in written:
                copy(path, out / "meta" / path.name)
        for folder in ("videos", "images"):
            if second:
                for path, made in v2_media(source, folder, info, described):
                    copy(path, out / made, link=not options.copy)
            elif (source / folder).is_dir():
                copy_tree(source / folder, out / folder, link=not options.copy)
        for path in sorted(source.iterdir()):
            if path.is_file():
                copy(path, out / path.name)
        write_whole(out / "meta" / "info.json", json.dumps(info, indent=4, ensure_ascii=False) + "\n")

    def episodes(self, source: Path, options: Options, unreadable: dict[str, str]) -> Iterator[list[Stream]]:
        """Every episode as one stream, for inspect()."""
        info, files = read_info(source), self.files(source)
        rules = self._decided(files[0], info, options).rules if files else Rules()
        for path in files:
            yield from streams_of(path, LAYOUT, None, rules, unreadable)

    def _decided(self, path: Path, info: dict[str, Any], options: Options) -> Decided:
        """The rules of the columns by the first rows of the first file, and by the names of channels in info.json."""
        file = parquet(path)
        for name in COUNTED:
            if name not in file.schema_arrow.names:
                raise Refused(str(path), f"no column '{name}'", "the columns of LeRobot")
        names = {}
        for key, feature in info["features"].items():
            listed = feature.get("names")
            if isinstance(listed, dict):
                listed = next((v for v in listed.values() if isinstance(v, list)), None)
            if isinstance(listed, list):
                names[key] = [str(name) for name in listed]
        first = first_rows(file)
        runs = runs_of(first.column("episode_index"), f"{path}: column 'episode_index'")
        known = known_of(first, channels_by_column(file, first), names)
        known = [each for each in known if each.name not in COUNTED]
        return decide(known, options.modes, offsets=np.append(runs.first, first.num_rows), rows=first.num_rows)


def read_info(source: Path) -> dict[str, Any]:
    """meta/info.json with what this needs checked."""
    path = source / "meta" / "info.json"
    try:
        info = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Refused(str(path), str(error), "a readable JSON file") from error
    features = info.get("features") if isinstance(info, dict) else None
    if not isinstance(features, dict) or not all(isinstance(f, dict) and "dtype" in f for f in features.values()):
        raise Refused(str(path), "no 'features' with a dtype each", "the keys of LeRobot v3 or v2")
    if "fps" not in info:
        raise Refused(str(path), "no 'fps'", "the keys of LeRobot v3 or v2")
    if not str(info.get("codebase_version", "")).startswith(("v3.", "v2.")):
        raise Refused(
            str(path),
            f"codebase_version {info.get('codebase_version')}",
            "v3.0 or v2: python -m lerobot.common.datasets.v2.convert_dataset_v1_to_v2 converts v1",
        )
    clock.rate(info["fps"])
    return info


def times_of(
    runs: Runs, stamps: pa.ChunkedArray, fps: Fraction, options: Options
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """The times (S, nanoseconds) of N episodes by their stored timestamps; which (N) are stored as frame / fps: their times are
    taken so, exactly; the rows (S) that have the times, where the samples are sorted.
    """
    stored = clock.nanoseconds(stamps, "s", runs.labels[0])
    stored, order = clock.in_order(stored, runs.rows, runs.labels, options.sort, options.duplicates)
    times, exact = clock.frame_times(stored, runs.rows, fps, stamps.type)
    return times - options.latency_ns("."), exact, order


def episodes_of(runs: Runs, times: np.ndarray, options: Options) -> tuple[Episodes, np.ndarray]:
    """Episodes and their times as they are resampled, and the targets (T) as they are written."""
    grid, ends = options.grid(), np.cumsum(runs.rows)
    targets, counts = grid.of(times[ends - runs.rows], times[ends - 1], runs.rows)
    return Episodes(times, grid.evaluated(times, runs.rows, targets, counts), runs.rows, counts, runs.labels), targets


LINES = ("episodes.jsonl", "episodes_stats.jsonl")  # of v2: a line for each episode


def is_v2(info: dict[str, Any]) -> bool:
    return info["codebase_version"].startswith("v2.")


def v2_path(pattern: str, info: dict[str, Any], episode: int, **more: str) -> str:
    """The place of an episode's file by the pattern that info.json has."""
    return pattern.format(episode_chunk=episode // info.get("chunks_size", 1000), episode_index=episode, **more)


def data_path(info: dict[str, Any], episode: int, name: str) -> str:
    """Where the data of an episode go: in v3 where they are, in v2 to the place of its new number."""
    return v2_path(info["data_path"], info, episode) if is_v2(info) else name


def v2_totals(info: dict[str, Any], described: "Described") -> dict[str, int]:
    """What info.json counts beside episodes and frames."""
    videos = sum(feature["dtype"] == "video" for feature in info["features"].values())
    chunks = -(-described.was.size // info.get("chunks_size", 1000))
    return {"total_videos": videos * described.was.size, "total_chunks": chunks}


def v2_media(source: Path, folder: str, info: dict[str, Any], described: "Described") -> Iterator[tuple[Path, str]]:
    """The files of a folder, and their places in the result: those with an episode's number in their path have its new one."""
    new = {was: episode for was, episode in zip(described.was.tolist(), described.episode.tolist(), strict=True)}
    for path in sorted((source / folder).rglob("*")):
        name = str(path.relative_to(source))
        number = re.search(r"episode_(\d+)", name)
        if not path.is_file() or number and int(number[1]) not in new:
            continue
        if number:
            size = info.get("chunks_size", 1000)
            episode = new[int(number[1])]
            name = re.sub(r"episode_\d+", f"episode_{episode:06d}", name)
            name = re.sub(r"chunk-\d+", f"chunk-{episode // size:03d}", name)
        yield path, name


def new_lines(source: Path, out: Path, described: "Described") -> None:
    """The lines of v2 for the kept episodes: their new numbers, lengths and statistics; all else as it was."""
    place = {was: at for at, was in enumerate(described.was.tolist())}
    for name in LINES:
        path, made = source / "meta" / name, []
        if not path.is_file():
            continue
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line) if line.strip() else {}
            at = place.get(row.get("episode_index"))
            if at is None:
                continue
            row["episode_index"] = int(described.episode[at])
            if "length" in row:
                row["length"] = int(described.rows[at])
            for feature, numbers in row.get("stats", {}).items():
                own = described.stats.get(feature, {})
                numbers |= {key: _as_was(own[key][at], old) for key, old in numbers.items() if key in own}
            made.append(row)
        made.sort(key=lambda row: row["episode_index"])
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in made)
        write_whole(out / "meta" / name, text)


def _as_was(values: np.ndarray, old: Any) -> list:
    """Numbers (channels) as JSON, whole or true where the old ones are."""
    first = np.ravel(old)[0] if np.size(old) else 0.0
    if isinstance(first, (bool, np.bool_)):
        return [bool(round(value)) for value in values.tolist()]
    return [round(value) if isinstance(first, (int, np.integer)) else value for value in values.tolist()]


QUANTILES = re.compile(r"q\d\d")


def stats_of(table: pa.Table, wanted: dict[str, list[str]], rows: np.ndarray) -> dict[str, dict[str, np.ndarray]]:
    """min, max, mean, std, count and the wanted quantiles of columns, as LeRobot has them: name -> key -> (N, channels), of N
    episodes of so many rows.

    NaN is no value. Columns that hold no numbers have no statistics.
    """
    found = {}
    for name, keys in wanted.items():
        numbers = _numbers(table.column(name))
        if numbers is not None:
            quantiles = {key: int(key[1:]) / 100 for key in keys if QUANTILES.fullmatch(key)}
            found[name] = _statistics(np.ascontiguousarray(numbers.T), rows, quantiles) | {"count": rows[:, None]}
    return found


def _statistics(columns: np.ndarray, rows: np.ndarray, quantiles: dict[str, float]) -> dict[str, np.ndarray]:
    """Of (channels, S) numbers of N episodes of so many rows, at least one each: key -> (N, channels)."""
    begins = np.cumsum(rows) - rows
    mean, std = np.empty((2, len(columns), rows.size))
    for own, channel in enumerate(columns):  # one by one, so that its copies stay in a cache
        wide = channel.astype(np.float64)
        mean[own] = np.add.reduceat(wide, begins) / rows
        wide -= np.repeat(mean[own], rows)
        np.square(wide, out=wide)
        std[own] = np.sqrt(np.add.reduceat(wide, begins) / rows)
    values = {
        "min": np.minimum.reduceat(columns, begins, axis=1),
        "max": np.maximum.reduceat(columns, begins, axis=1),
        "mean": mean,
        "std": std,
    }
    values |= {key: np.empty_like(mean) for key in quantiles}
    for episode, (first, count) in enumerate(zip(begins.tolist(), rows.tolist(), strict=True) if quantiles else ()):
        ordered = np.sort(columns[:, first : first + count], axis=1)
        for key, share in quantiles.items():
            values[key][:, episode] = _quantile(ordered, share)
    for channel, episode in zip(*np.nonzero(np.isnan(mean)), strict=True):
        numbers = columns[channel, begins[episode] : begins[episode] + rows[episode]]
        numbers = numbers[~np.isnan(numbers)]
        alone = (
            _statistics(numbers[None], np.array([numbers.size]), quantiles) if 0 < numbers.size < rows[episode] else {}
        )
        for key, value in values.items():
            if alone or not numbers.size:
                value[channel, episode] = alone[key][0, 0] if alone else np.nan
    return {key: value.T.astype(np.float64) for key, value in values.items()}


def _quantile(ordered: np.ndarray, share: float) -> np.ndarray:
    """Of the rows of (channels, S), which are in order: linear between the two numbers around it."""
    at = share * (ordered.shape[1] - 1)
    below = int(at)
    lower = ordered[:, below].astype(np.float64)
    return lower + (at - below) * (ordered[:, min(below + 1, ordered.shape[1] - 1)] - lower)


def packed_stats(parts: list[dict[str, dict[str, np.ndarray]]]) -> dict[str, dict[str, str]]:
    """Statistics of the episodes of a file as text: the bytes of float64 in base64. Of features that all parts have."""
    names = [name for name in parts[0] if all(name in part for part in parts)]
    joined = {
        name: {key: np.concatenate([part[name][key] for part in parts]) for key in parts[0][name]} for name in names
    }
    return {
        name: {key: packed(values.astype(float)) for key, values in found.items()} for name, found in joined.items()
    }


@dataclass
class Described:
    """The episodes of the result, in the order of the source: their old and new numbers, their first frames, how many frames they
    have, and the statistics of features by key (N, channels).
    """

    was: np.ndarray
    episode: np.ndarray
    index: np.ndarray
    rows: np.ndarray
    stats: dict[str, dict[str, np.ndarray]]

    @staticmethod
    def of(parts: list[dict[str, Any]]) -> "Described":
        """From what the units say."""
        facts = [
            np.concatenate([unpacked(part[key]) for part in parts]) for key in ("was", "episode", "index", "counts")
        ]
        order = np.argsort(facts[0], kind="stable")
        stats: dict[str, dict[str, np.ndarray]] = {}
        for name in [name for name in parts[0]["stats"] if all(name in part["stats"] for part in parts)]:
            stats[name] = {}
            for key in parts[0]["stats"][name]:
                numbers = np.concatenate([unpacked(part["stats"][name][key], "<f8") for part in parts])
                stats[name][key] = numbers.reshape(order.size, -1)[order]
        return Described(*(fact[order] for fact in facts), stats)


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


def features_with_stats(source: Path) -> dict[str, list[str]]:
    """The features whose statistics stand in meta/, of all or of each episode, with the keys of these."""
    found: dict[str, set[str]] = {}
    stats = source / "meta" / "stats.json"
    if stats.is_file():
        found = {name: set(keys) for name, keys in json.loads(stats.read_text(encoding="utf-8")).items()}
    lines = source / "meta" / "episodes_stats.jsonl"
    if lines.is_file():
        with lines.open(encoding="utf-8") as file:
            first = json.loads(next((line for line in file if line.strip()), "{}"))
        found |= {name: set(keys) for name, keys in first.get("stats", {}).items()}
    for path in sorted((source / "meta" / "episodes").glob("*/*.parquet"))[:1]:
        for parts in (name.split("/") for name in parquet(path).schema_arrow.names):
            if parts[0] == "stats":
                found.setdefault("/".join(parts[1:-1]), set()).add(parts[-1])
    return {name: sorted(found[name]) for name in sorted(found)}


def pooled(stats: dict[str, np.ndarray]) -> dict[str, list]:
    """Statistics of N episodes as one: pooled mean and deviation, quantiles weighted by their counts."""
    counts = stats["count"]
    total = counts.sum()
    weight = counts / total
    mean = (stats["mean"] * weight).sum(axis=0)
    result = {
        "min": stats["min"].min(axis=0),
        "max": stats["max"].max(axis=0),
        "mean": mean,
        "std": np.sqrt(((stats["std"] ** 2 + (stats["mean"] - mean) ** 2) * weight).sum(axis=0)),
    }
    result |= {key: (values * weight).sum(axis=0) for key, values in stats.items() if QUANTILES.fullmatch(key)}
    return {key: value.tolist() for key, value in result.items()} | {"count": [int(total)]}


def new_stats(path: Path, described: Described) -> dict[str, Any]:
    """meta/stats.json for the new data, with the keys that the old one has; of images and videos the old numbers."""
    old = json.loads(path.read_text(encoding="utf-8"))
    new = {}
    for name, numbers in old.items():
        made = pooled(described.stats[name]) if name in described.stats else numbers
        new[name] = {key: made[key] for key in numbers if key in made}
    return new


def new_episodes(source: Path, out: Path, described: Described) -> None:
    """meta/episodes: the rows of kept episodes with their new numbers, places and statistics; all else as it was."""
    for path in sorted((source / "meta" / "episodes").glob("*/*.parquet")):
        file = pq.ParquetFile(opened(path))
        table = file.read()
        was = table.column("episode_index").to_numpy()
        at = np.minimum(np.searchsorted(described.was, was), described.was.size - 1)
        kept = described.was[at] == was
        if not kept.all():
            table, at = table.filter(pa.array(kept)), at[kept]
        replaced = {
            "episode_index": described.episode[at],
            "length": described.rows[at],
            "dataset_from_index": described.index[at],
            "dataset_to_index": described.index[at] + described.rows[at],
        }
        for name in table.column_names:
            parts = name.split("/")
            found = described.stats.get("/".join(parts[1:-1]), {}) if parts[0] == "stats" else {}
            if parts[-1] in found:
                replaced[name] = found[parts[-1]][at]
        for name, values in replaced.items():
            place = table.schema.get_field_index(name)
            if place >= 0:
                field = table.schema.field(place)
                table = table.set_column(place, field, _column(values, field.type))
        with whole(out / str(path.relative_to(source))) as target:
            writer = Writer(target, table.schema, file.metadata)
            writer.add(table)
            writer.close()


def _column(values: np.ndarray, kind: pa.DataType) -> pa.Array:
    """Numbers (N) or (N, channels) as a column. Statistics of integers and booleans are stored as such by LeRobot."""
    inner = kind
    while pa.types.is_list(inner) or pa.types.is_fixed_size_list(inner) or pa.types.is_large_list(inner):
        inner = inner.value_type
    if pa.types.is_integer(inner) or pa.types.is_boolean(inner):
        values = np.rint(values).astype(inner.to_pandas_dtype())
    if inner == kind:
        return pa.array(values.reshape(-1), type=kind)
    if kind.value_type == inner and values.ndim == 2:
        return like(values, kind, None)
    return pa.array(values.tolist(), type=kind)
