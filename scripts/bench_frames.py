#!/usr/bin/env python3
"""Times tmaops.resample of frames and batches beside pandas, polars and the array call, and checks that all agree.

  bench_frames.py [--seconds S] [-o results/cpu/frames.json]       with tmaops, pandas, polars and torch installed

Samples at 100 Hz with jitter, targets at 30 Hz, f64, linear. pandas: reindex to the union of both times, interpolate by index,
take the targets. polars: concat, sort, interpolate_by, take the targets. A batch: 16 episodes of 200 x 14 through
tmaops.data.Resample; beside it the array call on the same packed rows. Times are medians, the calls interleaved.
"""

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
import polars as pl
import tmaops
from tmaops import data

SIZES = ((100, 7), (1_000, 14), (10_000, 14), (100_000, 14))
HZ = 30


def recording(rows: int, channels: int, seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    times = np.arange(rows) * 0.01 + random.uniform(0, 0.004, rows)
    return {"timestamp": times} | {f"c{i}": random.standard_normal(rows) for i in range(channels)}


def by_pandas(frame: pd.DataFrame, targets: np.ndarray) -> pd.DataFrame:
    indexed = frame.set_index("timestamp")
    union = indexed.index.union(targets)
    return indexed.reindex(union).interpolate("index").reindex(targets)


def by_polars(frame: pl.DataFrame, targets: pl.DataFrame) -> pl.DataFrame:
    both = pl.concat([frame, targets.join(frame, on="timestamp", how="anti")], how="diagonal").sort("timestamp")
    names = [name for name in frame.columns if name != "timestamp"]
    return both.with_columns(pl.col(names).interpolate_by("timestamp")).join(targets, on="timestamp", how="semi")


def medians(calls: dict[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """Microseconds of each, called in turn."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(next(iter(found.values()))) < 5:
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            found[name].append(1e6 * (time.perf_counter() - start))
    return {name: round(statistics.median(values), 1) for name, values in found.items()}


def frames(rows: int, channels: int, seconds: float) -> dict:
    arrays = recording(rows, channels, rows)
    pandas_frame, polars_frame = pd.DataFrame(arrays), pl.DataFrame(arrays)
    made = tmaops.resample(pandas_frame, hz=HZ)
    targets = made["timestamp"].to_numpy()
    target_frame = pl.DataFrame({"timestamp": targets})
    values = np.stack([arrays[f"c{i}"] for i in range(channels)], 1)[None]
    calls = {
        "tmaops_pandas": lambda: tmaops.resample(pandas_frame, hz=HZ),
        "tmaops_polars": lambda: tmaops.resample(polars_frame, hz=HZ),
        "tmaops_arrays": lambda: tmaops.resample(values, arrays["timestamp"], targets),
        "pandas": lambda: by_pandas(pandas_frame, targets),
        "polars": lambda: by_polars(polars_frame, target_frame),
    }
    wanted = by_pandas(pandas_frame, targets).to_numpy()
    for name, got in (
        ("tmaops_pandas", made.drop(columns=["timestamp", "valid"]).to_numpy()),
        ("tmaops_polars", calls["tmaops_polars"]().drop("timestamp", "valid").to_numpy()),
        ("tmaops_arrays", calls["tmaops_arrays"]()[0]),
        ("polars", calls["polars"]().drop("timestamp").to_numpy()),
    ):
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-6, err_msg=name)
    return {"case": "frame", "rows": rows, "channels": channels, "us": medians(calls, seconds)}


def batch(seconds: float, episodes: int = 16, rows: int = 200, channels: int = 14) -> dict:
    items = [recording(rows, channels, seed) for seed in range(episodes)]
    collate = data.Resample(hz=HZ)
    offsets = np.arange(episodes + 1) * rows
    times = np.concatenate([item["timestamp"] for item in items])
    values = np.concatenate([np.stack([item[f"c{i}"] for i in range(channels)], 1) for item in items])
    targets = [np.arange(item["timestamp"][0], item["timestamp"][-1], 1 / HZ) for item in items]
    bounds = np.cumsum([0] + [len(each) for each in targets])
    packed = np.concatenate(targets)
    calls = {
        "tmaops_batch": lambda: collate(items),
        "tmaops_arrays": lambda: tmaops.resample(values, times, packed, source_offsets=offsets, target_offsets=bounds),
    }
    return {"case": "batch", "episodes": episodes, "rows": rows, "channels": channels, "us": medians(calls, seconds)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=3, help="per row")
    parser.add_argument("-o", "--output", help="the result file")
    options = parser.parse_args()
    rows = [frames(*size, options.seconds) for size in SIZES] + [batch(options.seconds)]
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        cpu = next(
            (line.partition(":")[2].strip() for line in info if line.startswith("model name")), platform.machine()
        )
    head = {
        "schema": 1,
        "cpu": cpu,
        "processors": len(os.sched_getaffinity(0)),
        "tmaops": tmaops.__version__,
        "pandas": pd.__version__,
        "polars": pl.__version__,
        "numpy": np.__version__,
    }
    text = json.dumps(head)[:-1] + ', "rows": [\n' + ",\n".join(json.dumps(row) for row in rows) + "\n]}\n"
    print(text, end="")
    if options.output:
        with open(options.output, "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
