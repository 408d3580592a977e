"""A small LeRobot v3 data set with known motion, to try the commands on and to test with."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tmaops.dataset.errors import Refused
from tmaops.dataset.lerobot import statistics
from tmaops.dataset.new_set import data_table, episode_row, info_of, write_meta

NAMES = ["x", "y", "z", "qx", "qy", "qz", "qw", "gripper"]
FAULTS = ("jitter", "gap", "drop", "sign flip")
TASK = "push"


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
    root: Path, lengths: list[int], fps: int = 50, files: int = 2, noise: float = 0.0, faults: bool = False
) -> None:
    """Writes a data set of episodes with these numbers of frames over so many data files.

    noise: standard deviation of what is added to every number, so that files shrink as little as those of sensors do.
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
            rows.append(_episode(values, episode, index, number))
            index += frames
        if tables:
            pq.write_table(pa.concat_tables(tables), data / f"file-{number:03d}.parquet", compression="snappy")
    info = info_of(len(lengths), index, fps, "example")
    info["features"] |= {
        "observation.state": {"dtype": "float32", "shape": [len(NAMES)], "names": NAMES},
        "action": {"dtype": "float32", "shape": [2], "names": {"motors": ["a", "b"]}},
        "done": {"dtype": "bool", "shape": [1], "names": None},
    }
    zeros = {key: [0.0] * len(NAMES) for key in ("min", "max", "mean", "std")}
    write_meta(root, rows, TASK, info, {"observation.state": zeros | {"count": [index]}})


def _table(values: np.ndarray, seconds: np.ndarray, episode: int, index: int) -> pa.Table:
    table = data_table({"observation.state": values}, seconds, episode, index)
    action = pa.array((values[:, :2] * 2).tolist(), pa.list_(pa.float32()))
    last = pa.array(np.arange(len(values)) == len(values) - 1)
    return table.add_column(1, "action", action).add_column(2, "done", last)


def _episode(values: np.ndarray, episode: int, index: int, number: int) -> dict:
    frames = np.array([len(values)])
    found = statistics(values.T, frames, {}) | {"count": frames[:, None]}
    stats = {f"stats/observation.state/{key}": own[0].tolist() for key, own in found.items()}
    return episode_row(episode, len(values), index, number, TASK) | stats
