"""A small LeRobot v3 data set, written as LeRobot's own code lays it out, with known motion."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

NAMES = ["x", "y", "z", "qx", "qy", "qz", "qw", "gripper"]


def state(seconds: np.ndarray, episode: int) -> np.ndarray:
    """A pose and a gripper (S, 8) at times in seconds."""
    half = 0.3 * seconds + 0.1 * episode
    columns = [np.sin(seconds), seconds * 0.5, np.cos(2 * seconds), 0 * half, 0 * half, np.sin(half), np.cos(half), seconds % 1]
    return np.stack(columns, axis=1)


def write(root: Path, lengths: list[int], fps: int = 50, files: int = 2, video: bool = False) -> None:
    """Writes a data set of episodes with these lengths over so many data files."""
    features = {
        "observation.state": {"dtype": "float32", "shape": [8], "names": NAMES},
        "action": {"dtype": "float32", "shape": [2], "names": {"motors": ["a", "b"]}},
        "done": {"dtype": "bool", "shape": [1], "names": None},
        **{n: {"dtype": "int64", "shape": [1], "names": None} for n in ("frame_index", "episode_index", "index", "task_index")},
        "timestamp": {"dtype": "float32", "shape": [1], "names": None},
    }
    if video:
        features["observation.images.top"] = {"dtype": "video", "shape": [96, 96, 3], "names": ["h", "w", "c"]}
    rows = []
    groups = [list(g) for g in np.array_split(np.arange(len(lengths)), files)]
    index = 0
    for number, group in enumerate(groups):
        tables = []
        for episode in group:
            n = lengths[episode]
            seconds = np.arange(n) / fps
            values = state(seconds, episode).astype(np.float32)
            stats = {"min": values.min(0), "max": values.max(0), "mean": values.mean(0), "std": values.std(0)}
            row = {"episode_index": int(episode), "tasks": ["push"], "length": n, "data/chunk_index": 0, "data/file_index": number}
            row |= {"dataset_from_index": index, "dataset_to_index": index + n}
            row |= {f"stats/observation.state/{k}": v.astype(float).tolist() for k, v in stats.items()}
            row |= {"stats/observation.state/count": [n], "meta/episodes/chunk_index": 0, "meta/episodes/file_index": 0}
            if video:
                row |= {f"videos/observation.images.top/{k}": 0 for k in ("chunk_index", "file_index")}
                row |= {"videos/observation.images.top/from_timestamp": index / fps, "videos/observation.images.top/to_timestamp": (index + n) / fps}
            rows.append(row)
            tables.append(
                pa.table(
                    {
                        "observation.state": pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), 8),
                        "action": pa.array((values[:, :2] * 2).tolist(), pa.list_(pa.float32())),
                        "done": pa.array(np.arange(n) == n - 1),
                        "timestamp": pa.array(seconds.astype(np.float32)),
                        "frame_index": pa.array(np.arange(n)),
                        "episode_index": pa.array(np.full(n, episode)),
                        "index": pa.array(np.arange(index, index + n)),
                        "task_index": pa.array(np.zeros(n, np.int64)),
                    }
                ).replace_schema_metadata({"huggingface": "{}"})
            )
            index += n
        path = root / "data" / "chunk-000" / f"file-{number:03d}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.concat_tables(tables), path, compression="snappy")
    info = {
        "codebase_version": "v3.0", "robot_type": "test", "total_episodes": len(lengths), "total_frames": index, "total_tasks": 1,
        "chunks_size": 1000, "data_files_size_in_mb": 100, "video_files_size_in_mb": 200, "fps": fps,
        "splits": {"train": f"0:{len(lengths)}"}, "data_path": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "video_path": "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4", "features": features,
    }
    (root / "meta" / "episodes" / "chunk-000").mkdir(parents=True)
    (root / "meta" / "info.json").write_text(json.dumps(info))
    stats = {"observation.state": {"min": [0.0] * 8, "max": [0.0] * 8, "mean": [0.0] * 8, "std": [0.0] * 8, "count": [index]}}
    (root / "meta" / "stats.json").write_text(json.dumps(stats))
    pq.write_table(pa.Table.from_pylist(rows), root / "meta" / "episodes" / "chunk-000" / "file-000.parquet")
    pq.write_table(pa.table({"task_index": [0], "__index_level_0__": ["push"]}), root / "meta" / "tasks.parquet")
    if video:
        path = root / "videos" / "observation.images.top" / "chunk-000" / "file-000.mp4"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"not decoded here")
