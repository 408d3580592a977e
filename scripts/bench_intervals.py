#!/usr/bin/env python3
"""Times resample's modes over an interval beside linear, down in rate, on one core in CPU time, so that a busy machine will do.

  bench_intervals.py [--seconds S] [-o results/cpu/intervals.json]       with tmaops installed

f32 values, f64 times with jitter, through tmaops.resample. The calls are interleaved; the file has the median and the least of each,
in microseconds of processor time (user and system). sum and mean are checked against linear's integral on slow motion. It has the
rows that update_tables.py reads.
"""

import argparse
import os
import statistics
import time

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

import numpy as np
import result_file
import tmaops

MODES = ("mean", "sum", "min", "max", "any", "count", "lowpass")
CASES = ((256, 500, 250, 14), (8, 10_000, 300, 14), (1, 100_000, 3_000, 7), (64, 4_096, 1_024, 32))


def case(batch: int, samples: int, targets: int, channels: int, seconds: float) -> list[dict]:
    random = np.random.default_rng(1)
    times = np.tile(np.arange(samples) / samples, (batch, 1)) + random.uniform(0, 0.3 / samples, (batch, samples))
    values = np.sin(times[..., None] * random.uniform(1, 3, channels)).astype(np.float32)
    wanted = np.tile((np.arange(targets) + 0.5) / targets * 0.99, (batch, 1))

    def call(mode: str) -> np.ndarray:
        return tmaops.resample(values, times, wanted, interpolation=mode)

    np.testing.assert_allclose(call("mean")[:, 5:-5], call("linear")[:, 5:-5], atol=2 / targets + 2 / samples)
    found: dict[str, list[float]] = {mode: [] for mode in ("linear", *MODES)}
    end = time.process_time() + seconds
    while time.process_time() < end or len(found["linear"]) < 20:
        for mode, took in found.items():
            start = time.process_time()
            call(mode)
            took.append(1e6 * (time.process_time() - start))
    of_all = {
        "operator": "interval",
        "case": f"{batch},{samples}->{targets},{channels}",
        "dtype": "f32",
        "device": "cpu",
    }
    rows = []
    for mode, took in found.items():
        us = {"median": round(statistics.median(took), 1), "min": round(min(took), 1), "runs": len(took)}
        row = of_all | {"temperature": "memory", "implementation": "tmaops" if mode == "linear" else mode, "us": us}
        rows.append(row | ({"selected": "linear"} if mode == "linear" else {}))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=3, help="of CPU time per case")
    parser.add_argument("-o", "--output", help="the result file")
    options = parser.parse_args()
    rows = [row for each in CASES for row in case(*each, options.seconds)]
    head = {
        "revision": tmaops.revision(),
        "command": f"scripts/bench_intervals.py --seconds {options.seconds:g} -o results/cpu/intervals.json",
        "clock": "processor",
    }
    result_file.write(head, rows, {"threads": 1, "numpy": np.__version__}, options.output)


if __name__ == "__main__":
    main()
