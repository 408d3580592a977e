#!/usr/bin/env python3
"""Times `tmaops.dataset.resample` on a LeRobot set beside reading and writing its files, pandas, polars and NumPy.

    scripts/bench_dataset.py [--episodes 400] [--frames 3000] [-o results/cpu/dataset.json]

Every method makes the same numbers, which are compared before anything is timed. Medians of several runs, in turn.
"""

import argparse
import json
import platform
import shutil
import statistics
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tmaops
import tmaops.dataset
from tmaops.dataset import example

FPS, HZ = 50, 30


def files_of(root: Path) -> list[Path]:
    return sorted((root / "data").rglob("*.parquet"))


def copy_file(pair: tuple[Path, Path]) -> None:
    pa.set_cpu_count(1)
    table = pq.read_table(pair[0], use_threads=False)
    rows = table.num_rows * HZ // FPS  # as many as resampling writes
    pq.write_table(table.slice(0, rows), pair[1], compression="snappy")


def read_and_write(source: Path, out: Path, workers: int) -> None:
    """What cannot be avoided: the files read and as many rows written, by pyarrow alone."""
    out.mkdir()
    with ProcessPoolExecutor(workers) as pool:
        list(pool.map(copy_file, [(path, out / path.name) for path in files_of(source)]))


def state_of(table: pa.Table) -> np.ndarray:
    return table.column("observation.state").combine_chunks().flatten().to_numpy().reshape(table.num_rows, -1)


def episodes_of(source: Path) -> list[tuple[np.ndarray, np.ndarray]]:
    """Times (s) and states of every episode, in memory: the peers below do not pay for files."""
    found = []
    for path in files_of(source):
        table = pq.read_table(path, columns=["observation.state", "episode_index"])
        state, episode = state_of(table), table.column("episode_index").to_numpy()
        for part in np.split(state, np.flatnonzero(np.diff(episode)) + 1):
            found.append((np.arange(len(part)) / FPS, part))
    return found


def targets_of(times: np.ndarray) -> np.ndarray:
    return np.arange(int(round(times[-1] * HZ * 1e6)) // 10**6 + 1) / HZ


def by_numpy(episodes: list) -> list[np.ndarray]:
    return [np.stack([np.interp(targets_of(t), t, c) for c in x.T], axis=1).astype(np.float32) for t, x in episodes]


def by_tmaops(episodes: list) -> list[np.ndarray]:
    made = []
    for t, x in episodes:
        made.append(tmaops.resample(x[None], t[None], targets_of(t)[None], interpolation="linear")[0])
    return made


def by_pandas(episodes: list) -> list[np.ndarray]:
    import pandas as pd

    made = []
    for t, x in episodes:
        frame = pd.DataFrame(x.astype(np.float64), index=t)
        targets = pd.Index(targets_of(t))
        both = frame.reindex(frame.index.union(targets)).interpolate(method="index")
        made.append(both.loc[targets].to_numpy(np.float32))
    return made


def by_polars(episodes: list) -> list[np.ndarray]:
    import polars as pl

    made = []
    for t, x in episodes:
        frame = pl.DataFrame({"t": t, **{f"c{i}": c for i, c in enumerate(x.T)}, "row": np.arange(len(t))})
        targets = pl.DataFrame({"t": targets_of(t)})
        joined = targets.join_asof(frame, on="t", strategy="backward", coalesce=True)
        before = joined["row"].to_numpy()
        after = np.minimum(before + 1, len(t) - 1)
        w = ((targets["t"].to_numpy() - t[before]) * FPS)[:, None]
        lower = joined.select(pl.exclude("t", "row")).to_numpy()
        made.append((lower + w * (x[after] - lower)).astype(np.float32))
    return made


def median(action, runs: int) -> float:
    spent = []
    for _ in range(runs):
        begin = time.perf_counter()
        action()
        spent.append(time.perf_counter() - begin)
    return statistics.median(spent)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=400)
    parser.add_argument("--frames", type=int, default=3000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    try:
        source = folder / "in"
        example.write(source, [options.frames] * options.episodes, FPS, files=max(options.workers * 4, 1), noise=0.01)
        size = sum(path.stat().st_size for path in files_of(source))
        modes = {"observation.state": "linear"}
        tmaops.dataset.resample(source, folder / "check", hz=HZ, modes=modes, workers=options.workers)
        episodes = episodes_of(source)
        made = np.concatenate([state_of(pq.read_table(path, columns=["observation.state"])) for path in files_of(folder / "check")])
        rows = {}
        for name, method in (("numpy", by_numpy), ("pandas", by_pandas), ("polars", by_polars), ("tmaops", by_tmaops)):
            error = float(np.abs(np.concatenate(method(episodes)) - made).max())
            assert error < 2e-6, f"{name} differs by {error}"
            rows[name] = {"seconds": median(lambda m=method: m(episodes), options.runs), "largest_difference": error}
        jobs: dict[str, list[float]] = {"read_and_write": [], "resample": []}
        for run in range(options.runs):
            begin = time.perf_counter()
            read_and_write(source, folder / f"copy{run}", options.workers)
            middle = time.perf_counter()
            tmaops.dataset.resample(source, folder / f"out{run}", hz=HZ, modes=modes, workers=options.workers)
            jobs["read_and_write"].append(middle - begin)
            jobs["resample"].append(time.perf_counter() - middle)
        report = {
            "machine": {"cpu": platform.processor() or platform.machine(), "workers": options.workers, "numpy": np.__version__, "pyarrow": pa.__version__},
            "set": {"episodes": options.episodes, "frames": options.frames, "bytes": size, "fps": FPS, "hz": HZ},
            "job_seconds": {name: statistics.median(spent) for name, spent in jobs.items()},
            "operator": rows,
        }
        report["job_of_copy"] = report["job_seconds"]["read_and_write"] / report["job_seconds"]["resample"]
        text = json.dumps(report, indent=1)
        if options.output:
            options.output.write_text(text + "\n")
        print(text)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
