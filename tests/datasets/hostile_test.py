"""Damaged files of every format give a result or a refusal: no traceback, no crash, nothing left behind."""

import ast
import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import hostile
import lerobot_v2_test
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tmaops.dataset import example

COUNT = {"parquet": 500, "lerobot": 500, "lerobot_v2": 250, "hdf5": 100, "zarr": 100}  # 500 each with --slow
COUNT |= {"mcap": 100, "db3": 200, "bag": 100}


def write_parquet(root):
    columns = {"timestamp": np.tile(np.arange(6) / 10, 2), "episode": np.repeat(["a", "b"], 6), "x": np.arange(12.0)}
    columns["state"] = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(48.0)), 4)
    columns["label"] = [f"s{i}" for i in range(12)]
    columns["bytes"] = [b"image"] * 12
    pq.write_table(pa.table(columns), root.with_suffix(".parquet"))
    return root.with_suffix(".parquet")


def write_hdf5(root):
    h5py = pytest.importorskip("h5py")
    with h5py.File(root.with_suffix(".hdf5"), "w") as file:
        data = file.create_group("data")
        data.attrs["env_args"] = json.dumps({"env_kwargs": {"control_freq": 10}})
        for name in ("demo_0", "demo_1"):
            demo = data.create_group(name)
            demo.attrs["num_samples"] = 8
            demo["actions"] = np.arange(16.0).reshape(8, 2)
            demo["dones"] = np.arange(8) == 7
            demo.create_dataset("obs/image", data=np.zeros((8, 3, 3), np.uint8), chunks=(2, 3, 3), compression="gzip")
            demo["obs/timestamp"] = np.arange(8) / 10
    return root.with_suffix(".hdf5")


def write_lerobot(root):
    example.write(root, [7, 5], files=1)
    return root


def write_lerobot_v2(root):
    lerobot_v2_test.write(root, [7, 5])
    return root


def write_zarr(root):
    zarr = pytest.importorskip("zarr")
    store = zarr.open_group(str(root), mode="w", zarr_format=2)
    for name, values, chunks in (
        ("data/x", np.arange(24.0).reshape(12, 2), (5, 2)),
        ("data/img", np.zeros((12, 2, 2), np.uint8), (1, 2, 2)),
        ("data/timestamp", np.tile(np.arange(6) / 10, 2), (12,)),
        ("meta/episode_ends", np.array([6, 12]), (2,)),
    ):
        store.create_array(name, shape=values.shape, chunks=chunks, dtype=values.dtype)[...] = values + 1 * (
            name == "data/img"
        )
    for path in (root / "data/img").glob("[2-9]*"):
        path.unlink()  # chunks that are not there hold the fill value
    return root


def write_recording(root, kind):
    for needed in ("rosbags", "mcap", "mcap_protobuf"):
        pytest.importorskip(needed)
    import recorded
    from recorded import BASE, about, imu, joints, transform, transforms

    times, store = [BASE + i * 20_000_000 for i in range(30)], recorded.ROS1 if kind == "bag" else recorded.ROS2
    rows = [("/imu", at, imu(at, about([i * 0.01])[0], store=store)) for i, at in enumerate(times)]
    if kind == "bag":
        return recorded.write_bag(root.with_suffix(".bag"), rows)
    for i, at in enumerate(times):
        rows.append(("/joint_states", at, joints(at, ["a", "b"], [i, -i])))
        rows.append(("/tf", at, transforms(transform(at, "map", "base", (i, 0, 0), about([i * 0.01])[0]))))
    if kind == "db3":
        return recorded.write_rosbag2(root, rows) / f"{root.name}.db3"
    rows += [("/json", at, recorded.as_json({"x": i, "q": dict.fromkeys("xyzw", 0.5)})) for i, at in enumerate(times)]
    return recorded.write_mcap(root.with_suffix(".mcap"), rows)


@pytest.mark.parametrize("kind", list(COUNT))
def test_damaged_files_are_read_or_refused(tmp_path, kind, request):
    count = 500 if request.config.getoption("--slow") else COUNT[kind]
    recordings = kind in ("mcap", "db3", "bag")
    source = write_recording(tmp_path / "good", kind) if recordings else globals()[f"write_{kind}"](tmp_path / "good")
    (tmp_path / "scratch").mkdir()
    program = [sys.executable, Path(__file__).with_name("hostile.py"), source, tmp_path / "scratch", str(count)]
    first, failed, found = 0, [], Counter()
    while first < count:
        environment = os.environ | {"FIRST": str(first)}
        done = subprocess.run(list(map(str, program)), capture_output=True, text=True, timeout=900, env=environment)
        said = [line for line in done.stderr.splitlines() if line.startswith("seed ")][-1]
        _, seed, outcomes = said.split(" ", 2)
        assert done.returncode == 0, f"ended by {done.returncode} at {said}\n{done.stderr[-2000:]}"
        failed += done.stdout.strip().splitlines()
        found += Counter(ast.literal_eval(outcomes))
        first = int(seed) + 1
        shutil.rmtree(tmp_path / "scratch")
        (tmp_path / "scratch").mkdir()
    assert not failed, "\n".join(failed[:60])
    assert found["refused"] > count // 10 and found.total() == count, found


def test_a_file_that_libhdf5_reads_for_ever_is_refused_by_name(tmp_path):
    source = write_hdf5(tmp_path / "good")
    (tmp_path / "bad.hdf5").write_bytes(hostile.damaged(source.read_bytes(), random.Random(253)))
    program = "import sys, tmaops.dataset; tmaops.dataset.resample(sys.argv[1], sys.argv[2], hz=20, workers=1)"
    command = [sys.executable, "-c", program, str(tmp_path / "bad.hdf5"), str(tmp_path / "out.hdf5")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert "bad.hdf5: got no end after 20 s in libhdf5" in done.stderr
