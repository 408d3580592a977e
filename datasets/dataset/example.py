"""A small LeRobot v3 data set with known motion, to try the commands on and to test with."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tmaops.dataset.errors import Refused

NAMES = ["x", "y", "z", "qx", "qy", "qz", "qw", "gripper"]
CAMERA = "observation.images.top"
FAULTS = ("jitter", "gap", "drop", "sign flip")
PLACE = "chunk-{chunk_index:03d}/file-{file_index:03d}"


def state(seconds: np.ndarray, episode: int) -> np.ndarray:
    """A pose and a gripper (S, 8) at times in seconds."""
    half = 0.3 * seconds + 0.1 * episode
    still = np.zeros_like(half)
    position = [np.sin(seconds), 0.5 * seconds, np.cos(2 * seconds)]
    return np.stack([*position, still, still, np.sin(half), np.cos(half), seconds % 1], axis=1)


def clock(frames: int, fps: int, fault: str) -> np.ndarray:
    """Times in seconds of the frames of an episode (S,), with one of FAULTS where it is one of the clock."""
    seconds = np.arange(frames) / fps
    if fault == "jitter":
        seconds[1:-1] += np.random.default_rng(2).uniform(-0.2, 0.2, max(frames - 2, 0)) / fps
    elif fault in ("gap", "drop"):
        seconds[frames // 2 :] += 0.5 if fault == "gap" else 1 / fps
    return seconds


def write(
    root: Path,
    lengths: list[int],
    fps: int = 50,
    files: int = 2,
    video: bool = False,
    noise: float = 0.0,
    faults: bool = False,
) -> None:
    """Writes a data set of episodes with these numbers of frames over so many data files.

    noise: standard deviation of what is added to every number, so that files shrink as little as those of sensors do.
    video: a camera is listed whose file holds no video: nothing here decodes one.
    faults: the episodes have FAULTS by turns, which `tmaops dataset inspect` finds.
    """
    if root.exists():
        raise Refused(str(root), "a path that exists", "a new path")
    data, meta = root / "data" / "chunk-000", root / "meta"
    data.mkdir(parents=True)
    (meta / "episodes" / "chunk-000").mkdir(parents=True)
    rows, index = [], 0
    rng = np.random.default_rng(1)
    for number, group in enumerate(np.array_split(np.arange(len(lengths)), files)):
        tables = []
        for episode in map(int, group):
            frames = lengths[episode]
            fault = FAULTS[episode % len(FAULTS)] if faults else ""
            seconds = clock(frames, fps, fault)
            values = state(seconds, episode)
            if fault == "sign flip":
                values[frames // 2 :, 3:7] *= -1
            values = (values + rng.normal(size=values.shape) * noise).astype(np.float32)
            tables.append(_table(values, seconds, episode, index))
            rows.append(_episode(values, episode, index, number, fps, video))
            index += frames
        if tables:
            pq.write_table(pa.concat_tables(tables), data / f"file-{number:03d}.parquet", compression="snappy")
    pq.write_table(pa.Table.from_pylist(rows), meta / "episodes" / "chunk-000" / "file-000.parquet")
    pq.write_table(pa.table({"task_index": [0], "__index_level_0__": ["push"]}), meta / "tasks.parquet")
    (meta / "info.json").write_text(json.dumps(_info(len(lengths), index, fps, video), indent=4))
    zeros = {key: [0.0] * len(NAMES) for key in ("min", "max", "mean", "std")}
    (meta / "stats.json").write_text(json.dumps({"observation.state": zeros | {"count": [index]}}))
    if video:
        path = root / "videos" / CAMERA / "chunk-000" / "file-000.mp4"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"not a video")


def _table(values: np.ndarray, seconds: np.ndarray, episode: int, index: int) -> pa.Table:
    frames = np.arange(len(values))
    columns = {
        "observation.state": pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), len(NAMES)),
        "action": pa.array((values[:, :2] * 2).tolist(), pa.list_(pa.float32())),
        "done": frames == len(values) - 1,
        "timestamp": seconds.astype(np.float32),
        "frame_index": frames,
        "episode_index": np.full(len(values), episode),
        "index": index + frames,
        "task_index": np.zeros(len(values), np.int64),
    }
    return pa.table(columns).replace_schema_metadata({"huggingface": "{}"})


def _episode(values: np.ndarray, episode: int, index: int, number: int, fps: int, video: bool) -> dict:
    end = index + len(values)
    row = {"episode_index": episode, "tasks": ["push"], "length": len(values), "data/chunk_index": 0}
    row |= {"data/file_index": number, "dataset_from_index": index, "dataset_to_index": end}
    stats = {"min": values.min(0), "max": values.max(0), "mean": values.mean(0), "std": values.std(0)}
    row |= {f"stats/observation.state/{key}": value.astype(float).tolist() for key, value in stats.items()}
    row["stats/observation.state/count"] = [len(values)]
    row |= {"meta/episodes/chunk_index": 0, "meta/episodes/file_index": 0}
    if video:
        place = {"chunk_index": 0, "file_index": 0, "from_timestamp": index / fps, "to_timestamp": end / fps}
        row |= {f"videos/{CAMERA}/{key}": value for key, value in place.items()}
    return row


def _info(episodes: int, frames: int, fps: int, video: bool) -> dict:
    kinds = dict.fromkeys(("frame_index", "episode_index", "index", "task_index"), "int64")
    kinds |= {"timestamp": "float32", "done": "bool"}
    features = {name: {"dtype": kind, "shape": [1], "names": None} for name, kind in kinds.items()}
    features["observation.state"] = {"dtype": "float32", "shape": [len(NAMES)], "names": NAMES}
    features["action"] = {"dtype": "float32", "shape": [2], "names": {"motors": ["a", "b"]}}
    if video:
        features[CAMERA] = {"dtype": "video", "shape": [96, 96, 3], "names": ["height", "width", "channels"]}
    totals = {"total_episodes": episodes, "total_frames": frames, "total_tasks": 1}
    sizes = {"chunks_size": 1000, "data_files_size_in_mb": 100, "video_files_size_in_mb": 200}
    paths = {"data_path": f"data/{PLACE}.parquet", "video_path": f"videos/{{video_key}}/{PLACE}.mp4" if video else None}
    info = {"codebase_version": "v3.0", "robot_type": "example", "fps": fps, "splits": {"train": f"0:{episodes}"}}
    return info | totals | sizes | paths | {"features": features}
