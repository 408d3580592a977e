"""A LeRobot v3 data set of Parquet tables on a regular clock, each table an episode: what `resample` writes of recordings."""

import io
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tmaops.dataset import clock
from tmaops.dataset.errors import Refused
from tmaops.dataset.lerobot import pooled, statistics, stats_of
from tmaops.dataset.places import check_name, is_local, move, place
from tmaops.dataset.tables import numbers_of, one

FILE_BYTES = 100 << 20  # of data from which the next file begins
STATISTICS = ["min", "max", "mean", "std"]
MAGIC = (b"\x89PNG", b"\xff\xd8\xff", b"RIFF", b"BM", b"II*\0", b"MM\0*")  # what encoded images begin with
MOST_IMAGES, PIXELS = 100, 150  # of an episode, and of each side of an image, by which statistics are made
PLACE = "chunk-{chunk_index:03d}/file-{file_index:03d}"


@dataclass
class Made:
    """What was made. `features`: the names of the channels of each. `fps`: as the timestamps have it."""

    episodes: int = 0
    frames: int = 0
    fps: float = 0
    features: dict[str, list[str]] = field(default_factory=dict)
    images: dict[str, list[int]] = field(default_factory=dict)  # their shapes
    notes: list[str] = field(default_factory=list)


def new_set(
    source: Any, out: Any, *, features: Mapping[str, Sequence[str]] | None = None, task: str = "", robot: str = ""
) -> Made:
    """Writes Parquet tables as a LeRobot v3 data set, as `tmaops dataset resample` leaves them for recordings.

    source: a table, or a folder of them; each is an episode, in the order of their names, with a column `timestamp` of
    equal steps and columns of numbers, booleans or lists of one length. out: a path that does not exist; it appears complete or
    not at all. features: "observation.state", "action", ... -> columns, or patterns, that stand side by side as float32; without
    it all columns are observation.state. A column of encoded images (bytes, or structs of bytes and path) is a feature by itself,
    without `features` observation.images.NAME. task: what the robot was told to do. robot: LeRobot's robot_type.

    Raises Refused: no table, an unequal clock, tables that differ, a pattern without a column, values that are missing.
    """
    source, out = place(source), place(out)
    check_name(out)
    if out.exists() or out.is_symlink():
        raise Refused(str(out), "a path that exists", "a new path for the output")
    files = [source] if source.is_file() else sorted(source.rglob("*.parquet"))
    if (source / "meta" / "info.json").is_file():
        needed = "its tables, or tmaops dataset resample IN OUT --hz F, which takes its images and videos along"
        raise Refused(str(source), "a LeRobot data set", needed)
    if not files:
        raise Refused(str(source), "no Parquet table", "a table, or a folder of them, an episode each")
    if not is_local(out):
        raise Refused(str(out), "a place in an object store", "a path of this machine")
    made = Made()
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=out.name + ".", dir=out.parent) as trial:
        root = Path(trial) / "set"
        _write(root, files, features or {}, task, robot, made)
        move(root, out)
    return made


def _write(
    root: Path, files: list[Path], features: Mapping[str, Sequence[str]], task: str, robot: str, made: Made
) -> None:
    (root / "data" / "chunk-000").mkdir(parents=True)
    (root / "meta" / "episodes" / "chunk-000").mkdir(parents=True)
    rows: list[dict[str, Any]] = []
    found: list[dict[str, dict[str, np.ndarray]]] = []
    number, held = 0, list[pa.Table]()
    for episode, path in enumerate(files):
        values, fps = _episode(path, features, made)
        if episode and fps != made.fps:
            raise Refused(str(path), f"{fps:g} rows per second", f"{made.fps:g}, as in {files[0].name}")
        made.fps = fps
        frames = len(next(iter(values.values())))
        table = data_table(values, np.arange(frames) / fps, episode, made.frames)
        found.append(stats_of(table, dict.fromkeys(values, STATISTICS), np.array([frames])))
        images = {name: own for name, own in values.items() if isinstance(own, pa.Array)}
        found[-1] |= {name: _stats_of_images(own, f"{path}: {name}", made, name) for name, own in images.items()}
        rows.append(episode_row(episode, frames, made.frames, number, task))
        rows[-1] |= {f"stats/{name}/{key}": v[0].tolist() for name, own in found[-1].items() for key, v in own.items()}
        held.append(table)
        made.frames += frames
        if sum(each.nbytes for each in held) >= FILE_BYTES or episode + 1 == len(files):
            path = root / "data" / "chunk-000" / f"file-{number:03d}.parquet"
            pq.write_table(pa.concat_tables(held), path, compression="snappy")
            number, held = number + 1, []
    made.episodes = len(files)
    described = {name: {"dtype": "float32", "shape": [len(own)], "names": own} for name, own in made.features.items()}
    about = {"dtype": "image", "names": ["height", "width", "channels"]}
    described |= {name: about | {"shape": shape} for name, shape in made.images.items()}
    info = info_of(made.episodes, made.frames, int(made.fps) if made.fps == int(made.fps) else made.fps, robot)
    info["features"] |= described
    stats = {
        name: pooled({key: np.concatenate([each[name][key] for each in found]) for key in (*STATISTICS, "count")})
        for name in made.features
    }
    write_meta(root, rows, task, info, stats)


def _episode(
    path: Path, features: Mapping[str, Sequence[str]], made: Made
) -> tuple[dict[str, np.ndarray | pa.Array], float]:
    """The features of a table, numbers (S, channels) or encoded images, and its rows per second."""
    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise Refused(str(path), f"no Parquet table ({error})", "one") from error
    fps = _fps(table, path)
    columns: dict[str, np.ndarray | pa.Array] = {}
    for name in table.column_names:
        own = _images(one(table[name]), name, path)
        own = numbers_of(table[name]) if own is None else own
        if own is not None and name != "timestamp":
            columns[name] = own
    names, values, chosen = {}, {}, _chosen(columns, features, path)
    for name, own in chosen.items():
        parts = [columns[column] for column in own]
        if isinstance(parts[0], pa.Array):
            names[name], values[name] = own, parts[0]
            continue
        widths = {column: part.shape[1] for column, part in zip(own, parts, strict=True)}
        names[name] = [c if n == 1 else f"{c}[{i}]" for c, n in widths.items() for i in range(n)]
        values[name] = np.concatenate(parts, axis=1).astype(np.float32)
        for row, channel in np.argwhere(~np.isfinite(values[name]))[:1]:
            where = f"{path}: {names[name][channel]}, row {row}"
            raise Refused(where, "no value", f"a finite number (or a --feature {name}=... without it)")
    used = {"timestamp"}.union(*chosen.values())
    left = [name for name in table.column_names if name not in used]
    if left and not made.features:
        made.notes.append("in no feature: " + ", ".join(left))
    if made.features and names != made.features:
        raise Refused(str(path), "other columns than the tables before", "the same columns in every table")
    made.features = names
    return values, fps


def _fps(table: pa.Table, path: Path) -> float:
    if "timestamp" not in table.column_names or table.num_rows < 2:
        needed = "a table as `tmaops dataset resample` writes it"
        raise Refused(str(path), "no column timestamp of two rows or more", needed)
    steps = np.diff(clock.nanoseconds(table["timestamp"], "s", f"{path}: timestamp")) / 1e9
    step = steps.mean()
    if not step > 0 or np.abs(steps - step).max() > 1e-3 * step:
        raise Refused(f"{path}: timestamp", "steps that differ", "a regular clock: `tmaops dataset resample` makes it")
    return float(f"{1 / step:.6g}")


def _images(column: pa.Array, name: str, path: Path) -> pa.Array | None:
    """A column of encoded images as LeRobot has it, structs of bytes and path; None where it holds none.

    What has a path alone is read, where the file lies in the folder of the table or below it.
    """
    kind = column.type
    if pa.types.is_struct(kind) and {"bytes", "path"} <= {each.name for each in kind}:
        found, paths = column.field("bytes").to_pylist(), column.field("path").to_pylist()
    else:
        found, paths = column[:1].to_pylist(), [None] * len(column)
        if not isinstance(found[0], bytes) or not found[0].startswith(MAGIC):
            return None
        found = column.to_pylist()
    folder = path.parent.resolve()
    for row, (data, file) in enumerate(zip(found, paths, strict=True)):
        if not data:
            beside = (folder / (file or "")).resolve()
            if not beside.is_file() or not beside.is_relative_to(folder):
                got = f"no image, and no file {file} beside the table" if file else "no image"
                raise Refused(f"{path}: {name}, row {row}", got, "the bytes of an image, or the path of a file")
            found[row] = beside.read_bytes()
    return pa.StructArray.from_arrays([pa.array(found, pa.binary()), pa.array(paths, pa.string())], ["bytes", "path"])


def _stats_of_images(images: pa.Array, where: str, made: Made, name: str) -> dict[str, np.ndarray]:
    """Statistics of the channels of an episode's images, between 0 and 1, by some of their pixels, as LeRobot takes them."""
    try:
        from PIL import Image
    except ImportError:
        raise Refused(where, "images, and no Pillow", "pip install pillow") from None
    pixels = []
    rows = np.unique(np.linspace(0, len(images) - 1, MOST_IMAGES).round().astype(int)).tolist()
    for row in rows:
        try:
            image = np.asarray(Image.open(io.BytesIO(images[row]["bytes"].as_py())).convert("RGB"))
        except (OSError, ValueError) as error:
            raise Refused(f"{where}, row {row}", str(error), "an encoded image, such as PNG or JPEG") from error
        shape = made.images.setdefault(name, list(image.shape))
        if shape != list(image.shape):
            raise Refused(f"{where}, row {row}", f"the shape {list(image.shape)}", f"{shape}, as the first one has")
        step = max(1, max(shape) // PIXELS)
        pixels.append(image[::step, ::step].reshape(-1, 3) / np.float32(255))
    found = statistics(np.concatenate(pixels).T.copy(), np.array([sum(map(len, pixels))]), {})
    return {key: own[..., None, None] for key, own in found.items()} | {"count": np.array([[len(rows)]])}


def _chosen(columns: Mapping[str, Any], features: Mapping[str, Sequence[str]], path: Path) -> dict[str, list[str]]:
    """The columns of each feature, a pattern's in the order of the table."""
    images = [name for name, own in columns.items() if isinstance(own, pa.Array)]
    if not columns:
        raise Refused(str(path), "no column of numbers or images", "one at least")
    if not features:
        cameras = {n if n.startswith("observation.image") else f"observation.images.{n}": [n] for n in images}
        numbers = [name for name in columns if name not in images]
        return ({"observation.state": numbers} if numbers else {}) | cameras
    chosen: dict[str, list[str]] = {}
    for name, patterns in features.items():
        own: list[str] = []
        for pattern in patterns:
            fits = [column for column in columns if column == pattern or fnmatchcase(column, pattern)]
            if not fits:
                raise Refused(f"{path}: --feature {name}", f"no column {pattern}", "one of " + ", ".join(columns))
            own += [column for column in fits if column not in own]
        if len(own) > 1 and not set(own).isdisjoint(images):
            raise Refused(f"{path}: --feature {name}", "an image beside other columns", "a feature for each image")
        chosen[name] = own
    return chosen


def data_table(values: Mapping[str, np.ndarray], seconds: np.ndarray, episode: int, first: int) -> pa.Table:
    """The rows of an episode: features (S, channels) and LeRobot's own columns. first: rows of the episodes before."""
    columns: dict[str, Any] = {}
    for name, own in values.items():
        if isinstance(own, np.ndarray):
            flat = pa.array(np.ascontiguousarray(own).reshape(-1))
            own = flat if own.shape[1] == 1 else pa.FixedSizeListArray.from_arrays(flat, own.shape[1])
        columns[name] = own
    frames = np.arange(len(seconds))
    columns |= {"timestamp": seconds.astype(np.float32), "frame_index": frames}
    columns |= {"episode_index": np.full(frames.size, episode), "index": first + frames}
    columns["task_index"] = np.zeros(frames.size, np.int64)
    return pa.table(columns).replace_schema_metadata({"huggingface": "{}"})


def episode_row(episode: int, frames: int, first: int, file: int, task: str) -> dict[str, Any]:
    """A row of meta/episodes, without statistics."""
    row: dict[str, Any] = {"episode_index": episode, "tasks": [task], "length": frames}
    row |= {"data/chunk_index": 0, "data/file_index": file}
    row |= {"dataset_from_index": first, "dataset_to_index": first + frames}
    return row | {"meta/episodes/chunk_index": 0, "meta/episodes/file_index": 0}


def info_of(episodes: int, frames: int, fps: float, robot: str) -> dict[str, Any]:
    """meta/info.json with the features that LeRobot itself counts."""
    kinds = dict.fromkeys(("frame_index", "episode_index", "index", "task_index"), "int64") | {"timestamp": "float32"}
    features = {name: {"dtype": kind, "shape": [1], "names": None} for name, kind in kinds.items()}
    info = {"codebase_version": "v3.0", "robot_type": robot, "fps": fps, "splits": {"train": f"0:{episodes}"}}
    info |= {"total_episodes": episodes, "total_frames": frames, "total_tasks": 1}
    info |= {"chunks_size": 1000, "data_files_size_in_mb": FILE_BYTES >> 20, "video_files_size_in_mb": 200}
    return info | {"data_path": f"data/{PLACE}.parquet", "video_path": None, "features": features}


def write_meta(
    root: Path, rows: list[dict[str, Any]], task: str, info: dict[str, Any], stats: Mapping[str, Mapping[str, list]]
) -> None:
    """The files of meta/."""
    meta = root / "meta"
    pq.write_table(pa.Table.from_pylist(rows), meta / "episodes" / "chunk-000" / "file-000.parquet")
    index = {"name": None, "field_name": "__index_level_0__", "pandas_type": "unicode", "numpy_type": "object"}
    pandas = {"index_columns": [index["field_name"]], "column_indexes": [], "columns": [index | {"metadata": None}]}
    tasks = pa.table({"task_index": [0], "__index_level_0__": [task]})  # LeRobot looks a task up in pandas' index
    pq.write_table(tasks.replace_schema_metadata({"pandas": json.dumps(pandas)}), meta / "tasks.parquet")
    (meta / "info.json").write_text(json.dumps(info, indent=4), encoding="utf-8")
    (meta / "stats.json").write_text(json.dumps(stats, indent=4), encoding="utf-8")
