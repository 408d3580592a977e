#!/usr/bin/env python3
"""Times tmaops.resample of frames and batches beside pandas, polars and the array call, and checks that all agree.

  taskset -c 1 bench_frames.py [--seconds S] [-o results/cpu/frames.json]       with tmaops, pandas, polars and torch installed

Samples at 100 Hz with jitter, targets at 30 Hz, f64, linear, columns of slow motion. pandas: reindex to the union of both times,
interpolate by index, take the targets. polars: concat, sort, interpolate_by, take the targets. A batch: 16 episodes of 200 x 14
through tmaops.data.Resample; beside it the array call on the same packed rows. The calls are interleaved; the file has the median
and the least of each. It has the rows that update_tables.py reads.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
import polars as pl
import result_file
import tmaops
from tmaops import data

SIZES = ((100, 7), (1_000, 14), (10_000, 14), (100_000, 14))
HZ = 30


def recording(rows: int, channels: int, seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    times = np.arange(rows) * 0.01 + random.uniform(0, 0.004, rows)
    waves = random.uniform(0.3, 3, (channels, 2))
    return {"timestamp": times} | {
        f"c{i}": np.sin(a * times) + 0.3 * np.cos(b * times) for i, (a, b) in enumerate(waves)
    }


def by_pandas(frame: pd.DataFrame, targets: np.ndarray) -> pd.DataFrame:
    indexed = frame.set_index("timestamp")
    union = indexed.index.union(targets)
    return indexed.reindex(union).interpolate("index").reindex(targets)


def by_polars(frame: pl.DataFrame, targets: pl.DataFrame) -> pl.DataFrame:
    both = pl.concat([frame, targets.join(frame, on="timestamp", how="anti")], how="diagonal").sort("timestamp")
    names = [name for name in frame.columns if name != "timestamp"]
    return both.with_columns(pl.col(names).interpolate_by("timestamp")).join(targets, on="timestamp", how="semi")


def timed(case: str, calls: dict[str, Callable[[], object]], seconds: float) -> list[dict]:
    """A row for each call, in microseconds; they are called in turn."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(next(iter(found.values()))) < 20:
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            found[name].append(1e6 * (time.perf_counter() - start))
    of_all = {"operator": "recording", "case": case, "dtype": "f64", "device": "cpu", "temperature": "memory"}
    rows = []
    for name, values in found.items():
        us = {"median": round(statistics.median(values), 1), "min": round(min(values), 1), "runs": len(values)}
        rows.append(of_all | {"implementation": name, "us": us} | ({"selected": "frame"} if name == "tmaops" else {}))
    return rows


def frames(rows: int, channels: int, seconds: float) -> list[dict]:
    arrays = recording(rows, channels, rows)
    pandas_frame, polars_frame = pd.DataFrame(arrays), pl.DataFrame(arrays)
    made = tmaops.resample(pandas_frame, hz=HZ)
    targets = made["timestamp"].to_numpy()
    target_frame = pl.DataFrame({"timestamp": targets})
    values = np.stack([arrays[f"c{i}"] for i in range(channels)], 1)[None]
    calls = {
        "tmaops": lambda: tmaops.resample(pandas_frame, hz=HZ),
        "tmaops, a polars frame": lambda: tmaops.resample(polars_frame, hz=HZ),
        "the array call": lambda: tmaops.resample(values, arrays["timestamp"], targets),
        "pandas": lambda: by_pandas(pandas_frame, targets),
        "polars": lambda: by_polars(polars_frame, target_frame),
    }
    wanted = by_pandas(pandas_frame, targets).to_numpy()
    for name, got in (
        ("pandas frame", made.drop(columns=["timestamp", "valid"]).to_numpy()),
        ("polars frame", calls["tmaops, a polars frame"]().drop("timestamp", "valid").to_numpy()),
        ("arrays", calls["the array call"]()[0]),
        ("polars", calls["polars"]().drop("timestamp").to_numpy()),
    ):
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6, err_msg=name)
    return timed(f"frame of {rows:,} x {channels}", calls, seconds)


def batch(seconds: float, episodes: int = 16, rows: int = 200, channels: int = 14) -> list[dict]:
    items = [recording(rows, channels, seed) for seed in range(episodes)]
    collate = data.Resample(hz=HZ)
    offsets = np.arange(episodes + 1) * rows
    times = np.concatenate([item["timestamp"] for item in items])
    values = np.concatenate([np.stack([item[f"c{i}"] for i in range(channels)], 1) for item in items])
    targets = [np.arange(item["timestamp"][0], item["timestamp"][-1], 1 / HZ) for item in items]
    bounds = np.cumsum([0] + [len(each) for each in targets])
    packed = np.concatenate(targets)
    calls = {
        "tmaops": lambda: collate(items),
        "the array call": lambda: tmaops.resample(values, times, packed, source_offsets=offsets, target_offsets=bounds),
    }
    return timed(f"batch of {episodes} x {rows} x {channels}", calls, seconds)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=3, help="per row")
    parser.add_argument("-o", "--output", help="the result file")
    options = parser.parse_args()
    rows = [row for size in SIZES for row in frames(*size, options.seconds)] + batch(options.seconds)
    versions = {"pandas": pd.__version__, "polars": pl.__version__, "numpy": np.__version__}
    head = {
        "revision": tmaops.revision(),
        "command": "taskset -c 1 scripts/bench_frames.py --seconds 20 -o results/cpu/frames.json",
        "clock": "wall",
    }
    result_file.write(head, rows, {"threads": len(os.sched_getaffinity(0)), **versions}, options.output)


if __name__ == "__main__":
    main()
