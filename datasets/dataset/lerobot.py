"""LeRobot v3 and v2: Parquet data with metadata about episodes, statistics and the rate, all rewritten for the new rate.

The layouts are those of LeRobot's own code. v3.0: data/chunk-*/file-*.parquet, meta/info.json, meta/stats.json,
meta/tasks.parquet, meta/episodes/chunk-*/file-*.parquet, videos/. v2.0 and v2.1: a data file and a video file for each episode,
meta/episodes.jsonl, meta/episodes_stats.jsonl (2.0: meta/stats.json), meta/tasks.jsonl. The result has the version of the
source. Videos are not decoded: they keep their frames, and an episode keeps its span of a video file.
"""

import json
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tmaops.dataset import clock, tables
from tmaops.dataset.clock import Episodes
from tmaops.dataset.columns import like
from tmaops.dataset.errors import Refused
from tmaops.dataset.formats import Plan, Unit, readable
from tmaops.dataset.options import Options
from tmaops.dataset.parquet import Layout, ParquetTables, Resampler
from tmaops.dataset.places import copy, opened, whole, write_whole
from tmaops.dataset.rules import Decided, Part, Rule, Rules, decide
from tmaops.dataset.tables import Runs, packed, parquet, unpacked, write_table

#: Columns that LeRobot itself counts; everything else is data.
COUNTED = ("timestamp", "frame_index", "episode_index", "index")
LINES = ("episodes.jsonl", "episodes_stats.jsonl")  # of v2: a line for each episode
QUANTILES = re.compile(r"q\d\d")

#: What is known of the episodes of the result, by the names that LeRobot gives it, (N) or (N, channels) each: "episode_index",
#: "length", "dataset_from_index", "dataset_to_index", "stats/observation.state/mean"; "was", their numbers in the source.
Described = dict[str, np.ndarray]


class LeRobot(ParquetTables):
    """One unit per data file. Where an episode begins in the whole set follows from the times alone."""

    #: Besides what Arrow raises: what comes of metadata in JSON that are not as LeRobot writes them.
    broken = (pa.ArrowException, ValueError, LookupError, TypeError, AttributeError, OverflowError, MemoryError)
    one_schema = False

    def files(self, source: Path) -> list[Path]:
        return sorted((source / "data").glob("*/*.parquet"))

    def look(self, source: Path, file: pq.ParquetFile, path: Path, options: Options) -> tuple[Layout, Decided]:
        """The rules of the columns by the first rows, and by the names of channels in info.json."""
        info = read_info(source)
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
        first = tables.first_rows(file)
        runs = tables.runs_of(first.column("episode_index"), f"{path}: column 'episode_index'")
        known = [each for each in tables.known_of(first, file.metadata, names) if each.name not in COUNTED]
        offsets = np.append(runs.first, first.num_rows)
        decided = decide(known, options.modes, offsets=offsets, rows=first.num_rows)
        cameras = tuple(f"{key}." for key, feature in info["features"].items() if feature["dtype"] == "image")
        for name, rule in decided.rules.columns.items():
            if f"{name}.".startswith(cameras) and rule.why != "asked for":
                decided.rules.columns[name] = Rule((Part(0, 1, "nearest"),), "an image, as frames of videos are taken")
        layout = Layout("timestamp", "s", "episode_index", fps=str(clock.rate(info["fps"])), counted=COUNTED)
        return layout, decided

    def plan(self, source: Path, options: Options, keep_going: bool, left_out: set[str]) -> Plan:
        info = read_info(source)
        if not self.files(source):
            raise Refused(str(source / "data"), "no Parquet files", "data/chunk-*/*.parquet")
        plan = super().plan(source, options, keep_going, left_out)
        plan.found = {}
        plan.notes.insert(0, f"rate: {info['fps']} -> {options.rate} frames per second")
        wanted, episode, index = features_with_stats(source), 0, 0
        for unit in plan.units:
            unit.task |= {"stats": wanted, "episode": episode, "index": index}
            if is_v2(info):
                unit.path = v2_path(info["data_path"], info, episode)
            counts = unpacked(unit.task["runs"])["targets"]
            episode, index = episode + counts.size, index + int(counts.sum())
        self._warn(info, options, plan)
        return plan

    def _warn(self, info: dict[str, Any], options: Options, plan: Plan) -> None:
        """What is to be known of times and videos."""
        fps, (samples, targets) = clock.rate(info["fps"]), plan.counts.get("", (0, 0))
        if plan.inexact:
            what = f"column 'timestamp' of {plan.inexact} of {plan.episodes} episodes is not frame / fps"
            steps = options.rate * (samples - plan.episodes) / max(targets - plan.episodes, 1)
            cut = options.start is not None or options.end is not None
            said = f"its steps are those of about {steps:.3g} frames per second, and info.json says {info['fps']}"
            coarse = cut or abs(steps - fps) < 0.1 * fps
            plan.warnings.append(f"{what}; {'float32 seconds get coarser with time' if coarse else said}")
        else:
            plan.notes.append(
                "time: column 'timestamp' in s, taken as frame / fps exactly, which it is to its own precision"
            )
        videos = ", ".join(key for key, feature in info["features"].items() if feature["dtype"] == "video")
        if not videos:
            return
        linked = "linked: they share their bytes with the source (--copy copies them)"
        plan.notes.append(f"{videos}: videos are {'copied as they are' if options.copy else linked}")
        if options.start is not None or options.end is not None or options.align or options.offset:
            what = "videos begin with the first frame of their episodes, and timestamps no longer do"
            plan.warnings.append(f"{videos}: {what}: leave out --start, --align and --offset")
        if fps % clock.rate(options.hz):
            what = f"videos keep {info['fps']} frames per second, and new timestamps lie between their frames"
            tolerance = f"tolerance_s={float(Fraction(1, 2) / fps):.4g}"
            plan.warnings.append(f"{videos}: {what}: load the result with {tolerance} or more")
        elif not plan.inexact:
            plan.notes.append(f"{videos}: every new timestamp is one of their frames")

    def resampler(self, source: Path, options: Options, unit: Unit) -> Resampler:
        return FrameResampler(unit, options, parquet(source / unit.task["file"]).schema_arrow)

    def finish(self, source: Path, options: Options, plan: Plan, results: list[dict[str, Any]], out: Path) -> None:
        """Writes meta/: the rate, episodes with their new places and statistics, the statistics of all; links videos."""
        described, info = described_of(results), read_info(source)
        count = described["was"].size
        info |= {"fps": options.rate, "total_episodes": count, "total_frames": int(described["length"].sum())}
        if len(info.get("splits", {})) == 1 and count != plan.episodes + len(plan.failed):
            info["splits"] = {name: f"0:{count}" for name in info["splits"]}
        for feature in info["features"].values():
            if feature["dtype"] != "video" and "fps" in feature:
                feature["fps"] = info["fps"]
        made = dict.fromkeys(["info.json"])  # files of meta/ that are made anew -> their text, where there is one
        stats = source / "meta" / "stats.json"
        if stats.is_file():
            made["stats.json"] = json.dumps(new_stats(stats, described), indent=4) + "\n"
        if is_v2(info):
            videos = count * sum(feature["dtype"] == "video" for feature in info["features"].values())
            totals = {"total_videos": videos, "total_chunks": -(-count // info.get("chunks_size", 1000))}
            info |= {key: number for key, number in totals.items() if key in info}
            made |= {name: new_lines(source / "meta" / name, described) for name in LINES}
        else:
            new_episodes(source, out, described)
        for folder in ("videos", "images"):
            for path, name in media(source, folder, info, described):
                copy(path, out / name, link=not options.copy)
        for folder in (source / "meta", source):
            for path in sorted(folder.iterdir()):
                if path.is_file() and not (folder != source and path.name in made):
                    copy(path, out / str(path.relative_to(source)))
        made["info.json"] = json.dumps(info, indent=4, ensure_ascii=False) + "\n"
        for name in reversed(made):  # info.json last
            if made[name] is not None:
                write_whole(out / "meta" / name, made[name])


class FrameResampler(Resampler):
    """Episodes of a file with LeRobot's own columns, and what is to be known of them."""

    def __init__(self, unit: Unit, options: Options, schema: pa.Schema):
        super().__init__(Layout(**unit.task["layout"]), options, Rules.of_json(unit.task["rules"]), schema)
        self._wanted = {name: keys for name, keys in unit.task["stats"].items() if name in schema.names}
        self._episode, self._index = unit.task["episode"], unit.task["index"]  # the next ones
        self.columns = [*self.layout.data(schema.names), "timestamp"]
        self._described: list[Described] = []

    def __call__(self, runs: Runs, rows: pa.Table) -> pa.Table:
        made = super().__call__(runs, rows)
        counts = self._described[-1]["length"]
        for feature, numbers in stats_of(made, self._wanted, counts).items():
            self._described[-1] |= {f"stats/{feature}/{key}": values for key, values in numbers.items()}
        return made

    def counted(self, runs: Runs, steps: pa.Table, episodes: Episodes) -> dict[str, pa.Array | pa.ChunkedArray]:
        counts, first = episodes.counts, np.cumsum(episodes.counts) - episodes.counts
        frame, begins = clock.places(counts), episodes.targets[first]
        own = {"was": runs.names.to_numpy(), "length": counts, "dataset_from_index": self._index + first}
        own["episode_index"] = self._episode + np.arange(counts.size)
        own["dataset_to_index"] = own["dataset_from_index"] + counts
        self._described.append(own)
        self._episode, self._index = self._episode + counts.size, self._index + int(counts.sum())
        numbers = {
            "timestamp": np.repeat(begins / 1e9, counts) + frame / float(clock.rate(self.options.hz)),
            "frame_index": frame,
            "episode_index": np.repeat(own["episode_index"], counts),
            "index": frame + np.repeat(own["dataset_from_index"], counts),
        }
        kinds = {name: self.schema.field(name).type for name in numbers}
        return {n: pa.array(values.astype(kinds[n].to_pandas_dtype()), kinds[n]) for n, values in numbers.items()}

    def facts(self) -> dict[str, Any]:
        return {"described": packed(together(self._described))}


def together(parts: list[Described]) -> Described:
    """One after the other; of statistics those that all parts have."""
    names = [name for name in parts[0] if all(name in part for part in parts)]
    return {name: np.concatenate([part[name] for part in parts]) for name in names}


def described_of(results: list[dict[str, Any]]) -> Described:
    """The episodes of all units, in the order of the source."""
    found = together([unpacked(result["described"]) for result in results])
    order = np.argsort(found["was"], kind="stable")
    return {name: values[order] for name, values in found.items()}


def read_info(source: Path) -> dict[str, Any]:
    """meta/info.json with what this needs checked."""
    path = source / "meta" / "info.json"
    try:
        info = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Refused(str(path), str(error), "a readable JSON file") from error
    features = info.get("features") if isinstance(info, dict) else None
    described = isinstance(features, dict) and all(isinstance(f, dict) and "dtype" in f for f in features.values())
    if not described or "fps" not in info:
        got = "no 'fps'" if described else "no 'features' with a dtype each"
        raise Refused(str(path), got, "the keys of LeRobot v3 or v2")
    chunks = info.get("chunks_size", 1000)
    if not isinstance(chunks, int) or chunks < 1:
        raise Refused(f"{path}: chunks_size", repr(chunks), "the episodes of a folder, a whole number above 0")
    version = str(info.get("codebase_version"))
    if not version.startswith(("v3.", "v2.")):
        mend = "v3.0 or v2: python -m lerobot.common.datasets.v2.convert_dataset_v1_to_v2 converts v1"
        raise Refused(str(path), f"codebase_version {version}", mend)
    clock.rate(info["fps"])
    with readable(f"{path}: data_path", (LookupError, ValueError, AttributeError)):
        _ = is_v2(info) and v2_path(info["data_path"], info, 0)
    return info


def is_v2(info: dict[str, Any]) -> bool:
    return info["codebase_version"].startswith("v2.")


def v2_path(pattern: str, info: dict[str, Any], episode: int) -> str:
    """The place of an episode's file by the pattern that info.json has."""
    return pattern.format(episode_chunk=episode // info.get("chunks_size", 1000), episode_index=episode)


def media(source: Path, folder: str, info: dict[str, Any], described: Described) -> Iterator[tuple[Path, str]]:
    """The files of a folder, and their places in the result: in v2 those with an episode's number in their path have its new
    one.
    """
    new = dict(zip(described["was"].tolist(), described["episode_index"].tolist(), strict=True))
    for path in sorted((source / folder).rglob("*")) if (source / folder).is_dir() else ():
        name = str(path.relative_to(source))
        number = re.search(r"episode_(\d+)", name) if is_v2(info) else None
        if not path.is_file() or number and int(number[1]) not in new:
            continue
        if number:
            episode = new[int(number[1])]
            name = re.sub(r"episode_\d+", f"episode_{episode:06d}", name)
            name = re.sub(r"chunk-\d+", f"chunk-{episode // info.get('chunks_size', 1000):03d}", name)
        yield path, name


def new_lines(path: Path, described: Described) -> str | None:
    """The lines of v2 for the kept episodes: their new numbers, lengths and statistics; all else as it was."""
    if not path.is_file():
        return None
    place, made = {was: at for at, was in enumerate(described["was"].tolist())}, []
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line) if line.strip() else {}
        at = place.get(row.get("episode_index"))
        if at is None:
            continue
        row |= {key: int(described[key][at]) for key in ("episode_index", "length") if key in row}
        for feature, numbers in row.get("stats", {}).items():
            own = {key: described.get(f"stats/{feature}/{key}") for key in numbers}
            numbers |= {key: _as_was(values[at], numbers[key]) for key, values in own.items() if values is not None}
        made.append(row)
    made.sort(key=lambda row: row["episode_index"])
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in made)


def _as_was(values: np.ndarray, old: Any) -> list:
    """Numbers (channels) as JSON, whole or true where the old ones are."""
    kind = type(np.ravel(old)[0].item()) if np.size(old) else float
    return [kind(round(value)) if kind in (bool, int) else value for value in values.tolist()]


def stats_of(table: pa.Table, wanted: dict[str, list[str]], rows: np.ndarray) -> dict[str, dict[str, np.ndarray]]:
    """min, max, mean, std, count and the wanted quantiles of columns, as LeRobot has them: name -> key -> (N, channels), of N
    episodes of so many rows.

    NaN is no value. Columns that hold no numbers have no statistics.
    """
    found = {}
    for name, keys in wanted.items():
        numbers = tables.numbers_of(table.column(name))
        if numbers is not None:
            quantiles = {key: int(key[1:]) / 100 for key in keys if QUANTILES.fullmatch(key)}
            found[name] = statistics(np.ascontiguousarray(numbers.T), rows, quantiles) | {"count": rows[:, None]}
    return found


def statistics(columns: np.ndarray, rows: np.ndarray, quantiles: dict[str, float]) -> dict[str, np.ndarray]:
    """Of (channels, S) numbers of N episodes of so many rows, at least one each: key -> (N, channels)."""
    begins = np.cumsum(rows) - rows
    mean, std = np.empty((2, len(columns), rows.size))
    for own, channel in enumerate(columns):  # one by one, so that its copies stay in a cache
        wide = channel.astype(np.float64)
        missing = np.isnan(wide)
        some = missing.any()
        count = rows - np.add.reduceat(missing, begins, dtype=np.int64) if some else rows
        with np.errstate(invalid="ignore"):  # of an episode without a value the mean is NaN
            mean[own] = np.add.reduceat(np.where(missing, 0, wide) if some else wide, begins) / count
            wide -= np.repeat(mean[own], rows)
            np.square(wide, out=wide)
            std[own] = np.sqrt(np.add.reduceat(np.where(missing, 0, wide) if some else wide, begins) / count)
    least, most = (bound.reduceat(columns, begins, axis=1) for bound in (np.fmin, np.fmax))
    values = {"min": least, "max": most, "mean": mean, "std": std}
    values |= {key: np.empty_like(mean) for key in quantiles}
    for episode, part in enumerate(np.split(columns, begins[1:], axis=1) if quantiles else ()):
        ordered = np.sort(part, axis=1).astype(np.float64)
        last = np.maximum(np.count_nonzero(~np.isnan(ordered), axis=1) - 1, 0)  # NaN stands at the end
        for key, share in quantiles.items():
            below = (share * last).astype(int)
            lower, upper = (ordered[np.arange(len(ordered)), at] for at in (below, np.minimum(below + 1, last)))
            values[key][:, episode] = lower + (share * last - below) * (upper - lower)
    return {key: value.T.astype(np.float64) for key, value in values.items()}


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
        for name in parquet(path).schema_arrow.names:
            if name.startswith("stats/"):
                feature, _, key = name.removeprefix("stats/").rpartition("/")
                found.setdefault(feature, set()).add(key)
    return {name: sorted(found[name]) for name in sorted(found)}


def new_stats(path: Path, described: Described) -> dict[str, Any]:
    """meta/stats.json for the new data, with the keys that the old one has; of images and videos the old numbers."""
    new = {}
    for name, numbers in json.loads(path.read_text(encoding="utf-8")).items():
        prefix = f"stats/{name}/"
        own = {key.removeprefix(prefix): values for key, values in described.items() if key.startswith(prefix)}
        made = pooled(own) if "count" in own else numbers
        new[name] = {key: made[key] for key in numbers if key in made}
    return new


def pooled(stats: dict[str, np.ndarray]) -> dict[str, list]:
    """Statistics of N episodes as one: pooled mean and deviation, quantiles weighted by their counts."""
    total = int(stats["count"].sum())
    weight = (stats["count"] / total).reshape(-1, *[1] * (stats["mean"].ndim - 1))
    mean = (stats["mean"] * weight).sum(axis=0)
    std = np.sqrt(((stats["std"] ** 2 + (stats["mean"] - mean) ** 2) * weight).sum(axis=0))
    result = {"min": stats["min"].min(axis=0), "max": stats["max"].max(axis=0), "mean": mean, "std": std}
    result |= {key: (values * weight).sum(axis=0) for key, values in stats.items() if QUANTILES.fullmatch(key)}
    return {key: value.tolist() for key, value in result.items()} | {"count": [total]}


def new_episodes(source: Path, out: Path, described: Described) -> None:
    """meta/episodes: the rows of kept episodes with their new numbers, places and statistics; all else as it was."""
    for path in sorted((source / "meta" / "episodes").glob("*/*.parquet")):
        file = pq.ParquetFile(opened(path))
        table = file.read()
        was = table.column("episode_index").to_numpy()
        at = np.minimum(np.searchsorted(described["was"], was), described["was"].size - 1)
        kept = described["was"][at] == was
        table, at = table.filter(pa.array(kept)), at[kept]
        for place, field in enumerate(table.schema):
            if field.name in described:
                values = described[field.name][at]
                table = table.set_column(
                    place, field, like(values.reshape(len(values), -1), field.type, None, values.shape[1:])
                )
        with whole(out / str(path.relative_to(source))) as target:
            write_table(table, target, file.metadata)
