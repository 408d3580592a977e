#!/usr/bin/env python3
"""Times `tmaops dataset resample` beside reading and writing the same files with pyarrow alone, and the numbers of its
episodes beside pandas, polars and NumPy.

    scripts/bench_dataset.py -o results/cpu/dataset.json

Every method makes the same numbers, which are compared before anything is timed. The runs of all methods take turns;
a time is the median of its runs. The result has the rows that update_tables.py reads.
"""

import argparse
import importlib.util
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import result_file
import tmaops
import tmaops.dataset
from tmaops.dataset import columns, example
from tmaops.dataset.clock import one_episode
from tmaops.dataset.rules import Part, Rule, Rules

FPS, HZ = 50, 30
IMAGE_BYTES = 20_000


def files_of(root: Path) -> list[Path]:
    return sorted(root.rglob("data/**/*.parquet"))


def write_images(root: Path, episodes: int, frames: int, files: int) -> None:
    """Episodes whose rows are an encoded image, which does not shrink, beside a state."""
    rng = np.random.default_rng(2)
    (root / "data").mkdir(parents=True)
    for number, group in enumerate(np.array_split(np.arange(episodes), files)):
        schema = pa.schema(
            [
                ("episode", pa.int64()),
                ("timestamp", pa.float64()),
                ("state", pa.list_(pa.float32(), 8)),
                ("image", pa.binary()),
            ]
        )
        with pq.ParquetWriter(
            root / "data" / f"{number:03d}.parquet", schema, compression="snappy", use_dictionary=False
        ) as writer:
            for episode in group:
                state = pa.FixedSizeListArray.from_arrays(pa.array(rng.standard_normal(frames * 8, np.float32)), 8)
                image = pa.array([rng.bytes(IMAGE_BYTES) for _ in range(frames)])
                writer.write_table(
                    pa.table([np.full(frames, episode), np.arange(frames) / FPS, state, image], schema=schema)
                )


def copy_file(pair: tuple[Path, Path]) -> None:
    pa.set_cpu_count(1)
    file = pq.ParquetFile(pair[0], memory_map=False)
    with pq.ParquetWriter(pair[1], file.schema_arrow, compression="snappy") as writer:
        for group in range(file.num_row_groups):
            table = file.read_row_group(group, use_threads=False)
            writer.write_table(table.slice(0, table.num_rows * HZ // FPS))  # as many rows as resampling writes
    with open(pair[1], "rb") as written:
        os.fsync(written.fileno())  # a job ends when its files are on the disk


def read_and_write(source: Path, out: Path, workers: int) -> None:
    """What cannot be avoided: the files read and as many rows written, by pyarrow alone, with processes begun as ours."""
    out.mkdir()
    with ProcessPoolExecutor(workers) as pool:
        list(pool.map(copy_file, [(path, out / path.name) for path in files_of(source)]))


def state_of(table: pa.Table) -> np.ndarray:
    return table.column("observation.state").combine_chunks().flatten().to_numpy().reshape(table.num_rows, -1)


def episodes_of(source: Path) -> list[tuple[np.ndarray, np.ndarray]]:
    """Times (s) and states of every episode, in memory: the methods below do not pay for files."""
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


def nanoseconds(times: np.ndarray) -> np.ndarray:
    return np.rint(times * 1e9).astype(np.int64)


def by_tmaops(episodes: list) -> list[np.ndarray]:
    rules, made = Rules({"x": Rule((Part(0, len(example.NAMES), "linear"),), "")}), []
    for t, x in episodes:
        episode = one_episode(nanoseconds(t), nanoseconds(targets_of(t)), "")
        made.append(columns.compute_columns({"x": x}, rules, episode)["x"])
    return made


def by_pandas_interpolate(episodes: list) -> list[np.ndarray]:
    """An index of samples and targets, and interpolation by time: DataFrame.resample has no grid of 1/30 s."""
    import pandas as pd

    made = []
    for t, x in episodes:
        frame = pd.DataFrame(x.astype(np.float64), index=pd.to_timedelta(np.rint(t * 1e9).astype(np.int64)))
        targets = pd.to_timedelta(np.rint(targets_of(t) * 1e9).astype(np.int64))
        both = frame.reindex(frame.index.union(targets)).interpolate(method="time")
        made.append(both.loc[targets].to_numpy(np.float32))
    return made


def by_pandas_merge(episodes: list) -> list[np.ndarray]:
    """merge_asof to the samples around each target, and the line between them."""
    import pandas as pd

    made = []
    for t, x in episodes:
        frame = pd.DataFrame(x).assign(t=t, row=np.arange(len(t)))
        joined = pd.merge_asof(pd.DataFrame({"t": targets_of(t)}), frame, on="t")
        made.append(
            _between(joined["row"].to_numpy(), joined["t"].to_numpy(), joined[list(range(x.shape[1]))].to_numpy(), t, x)
        )
    return made


def by_polars(episodes: list) -> list[np.ndarray]:
    """join_asof to the samples around each target, and the line between them."""
    import polars as pl

    made = []
    for t, x in episodes:
        frame = pl.DataFrame({"t": t, **{f"c{i}": c for i, c in enumerate(x.T)}, "row": np.arange(len(t))})
        joined = pl.DataFrame({"t": targets_of(t)}).join_asof(frame, on="t", strategy="backward", coalesce=True)
        made.append(
            _between(
                joined["row"].to_numpy(), joined["t"].to_numpy(), joined.select(pl.exclude("t", "row")).to_numpy(), t, x
            )
        )
    return made


def _between(before: np.ndarray, targets: np.ndarray, lower: np.ndarray, t: np.ndarray, x: np.ndarray) -> np.ndarray:
    after = np.minimum(before + 1, len(t) - 1)
    w = ((targets - t[before]) * FPS)[:, None]
    return (lower + w * (x[after] - lower)).astype(np.float32)


def cpu_seconds() -> float:
    """Of this process and of all that it started and waited for."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def in_turn(methods: dict, runs: int, clock: Callable[[], float], out: Path | None = None) -> dict[str, list[float]]:
    """Seconds of every run of every method; what it wrote to `out` is removed after each."""
    spent = {name: [] for name in methods}
    for _ in range(runs):
        for name, method in methods.items():
            begin = clock()
            method()
            spent[name].append(clock() - begin)
            if out:
                shutil.rmtree(out)
    return spent


def job_of_one_worker(
    resample: Callable[[], object], runs: int, clock: Callable[[], float], out: Path
) -> dict[str, list[float]]:
    """Seconds of a job in this process alone, and those of its calls of the operator, with the copies to a GPU and back."""
    spent: dict[str, list[float]] = {"tmaops": [], "its resampling": []}
    compute, computing = columns.compute, [0.0]

    def timed(*given: object) -> np.ndarray:
        begin = clock()
        made = compute(*given)
        computing[0] += clock() - begin
        return made

    columns.compute = timed
    try:
        for run in range(runs + 1):
            computing[0], begin = 0.0, clock()
            resample()
            if run > 0:  # the first makes the context of a GPU
                spent["tmaops"].append(clock() - begin)
                spent["its resampling"].append(computing[0])
            shutil.rmtree(out)
    finally:
        columns.compute = compute
    return spent


def revision() -> str:
    found = subprocess.run(
        ["git", "rev-parse", "--short=12", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True
    )
    return found.stdout.strip() or tmaops.revision()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=1000)
    parser.add_argument("--frames", type=int, default=3000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--clock",
        choices=["wall", "cpu"],
        default="wall",
        help="cpu: CPU time of all processes, for a machine that is shared",
    )
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    rows = []
    clock = cpu_seconds if options.clock == "cpu" else time.perf_counter

    def job(case: str, source: Path, episodes: int, modes: dict[str, str]) -> None:
        given = {"hz": HZ, "modes": modes, "workers": options.workers}
        spent = in_turn(
            {
                "tmaops": lambda: tmaops.dataset.resample(source, folder / "out", **given),
                "read and write alone": lambda: read_and_write(source, folder / "out", options.workers),
            },
            options.runs,
            clock,
            folder / "out",
        )
        size = sum(path.stat().st_size for path in files_of(source))
        for name, times in spent.items():
            rows.append(
                row(case, name, times)
                | {
                    "bytes": size,
                    "episodes": episodes,
                    "mb_per_second": round(size / statistics.median(times) / 1e6, 1),
                }
            )

    def row(case: str, name: str, times: list[float]) -> dict:
        us = {"median": statistics.median(times) * 1e6, "min": min(times) * 1e6, "max": max(times) * 1e6}
        made = {
            "operator": "dataset",
            "case": case,
            "dtype": "f32",
            "device": "cpu",
            "temperature": "files",
            "implementation": name,
            "us": us,
        }
        return made | ({"selected": "cpu"} if name == "tmaops" else {})

    def resampled(source: Path, modes: dict[str, str]) -> np.ndarray:
        """The states of the job's result."""
        tmaops.dataset.resample(source, folder / "check", hz=HZ, modes=modes, workers=options.workers)
        made = np.concatenate(
            [state_of(pq.read_table(path, columns=["observation.state"])) for path in files_of(folder / "check")]
        )
        shutil.rmtree(folder / "check")
        return made

    try:
        source, short = folder / "in", folder / "short"
        example.write(source, [options.frames] * options.episodes, FPS, files=options.workers * 4, noise=0.01)
        modes = {"observation.state": "linear"}
        made, episodes = resampled(source, modes), episodes_of(source)
        methods = {
            "tmaops": by_tmaops,
            "NumPy": by_numpy,
            "pandas interpolate": by_pandas_interpolate,
            "pandas merge_asof": by_pandas_merge,
            "polars join_asof": by_polars,
        }
        methods = {
            name: method for name, method in methods.items() if importlib.util.find_spec(name.split()[0].lower())
        }  # what is installed
        for name, method in methods.items():
            error = float(np.abs(np.concatenate(method(episodes)) - made).max())
            assert error < 2e-6, f"{name} differs by {error}"
        job(f"LeRobot, {options.episodes} episodes, job", source, options.episodes, modes)
        alone = {"hz": HZ, "modes": modes, "workers": 1}
        spent = job_of_one_worker(
            lambda: tmaops.dataset.resample(source, folder / "out", **alone), options.runs, clock, folder / "out"
        )
        rows += [
            row(f"LeRobot, {options.episodes} episodes, job of one worker", name, times)
            for name, times in spent.items()
        ]
        tmaops.set_num_threads(1)
        spent = in_turn({name: (lambda m=method: m(episodes)) for name, method in methods.items()}, options.runs, clock)
        tmaops.set_num_threads(0)
        rows += [
            row(f"LeRobot, {options.episodes} episodes, states in memory", name, times) for name, times in spent.items()
        ]
        shutil.rmtree(source)
        number, frames = 5 * options.episodes, max(options.frames // 20, 2)
        example.write(short, [frames] * number, FPS, files=options.workers * 4, noise=0.01)
        error = float(np.abs(np.concatenate(by_numpy(episodes_of(short))) - resampled(short, modes)).max())
        assert error < 2e-6, f"short episodes differ by {error}"
        job(f"LeRobot, {number} episodes of {frames} frames, job", short, number, modes)
        shutil.rmtree(short)
        count = max(options.episodes // 6, 1)
        write_images(folder / "images", count, 500, options.workers * 4)
        job(f"Parquet with images, {count} episodes, job", folder / "images", count, {})
        report = {
            "schema": 1,
            "status": "complete",
            "machine": {
                "cpu": result_file.cpu_name(),
                "threads": options.workers,
                "os": platform.system(),
                "numpy": np.__version__,
                "pyarrow": pa.__version__,
            },
            "revision": revision(),
            "command": "scripts/bench_dataset.py " + " ".join(sys.argv[1:]),
            "clock": options.clock,
            "load": os.getloadavg()[0],
            "set": {"episodes": options.episodes, "frames": options.frames, "fps": FPS, "hz": HZ, "runs": options.runs},
            "rows": rows,
        }
        text = json.dumps(report, indent=1)
        if options.output:
            options.output.write_text(text + "\n")
        print(text)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
