"""LeRobot v3 data sets, against numbers computed in float64 by other code."""

import hashlib
import json
from pathlib import Path

import known
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tmaops.dataset
import with_camera
from tmaops.dataset import Refused, example

LENGTHS = [100, 51, 7, 200, 1]


def digests(root: Path) -> dict[str, str]:
    files = sorted(p for p in root.rglob("*") if p.is_file())
    return {str(p.relative_to(root)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def data_of(root: Path) -> pa.Table:
    return pa.concat_tables([pq.read_table(p) for p in sorted((root / "data").rglob("*.parquet"))])


def episodes_of(root: Path) -> list[dict]:
    return pq.read_table(root / "meta" / "episodes" / "chunk-000" / "file-000.parquet").to_pylist()


@pytest.fixture
def source(tmp_path):
    example.write(tmp_path / "in", LENGTHS)
    return tmp_path / "in"


@pytest.mark.parametrize("hz", [30, 50, 25, 12.5, 133])
def test_every_number_is_that_of_float64(source, tmp_path, hz):
    tmaops.dataset.resample(source, tmp_path / "out", hz=hz, workers=1)
    rows = data_of(tmp_path / "out").to_pandas()
    for episode, length in enumerate(LENGTHS):
        times = np.arange(length) / 50
        found = rows[rows.episode_index == episode]
        targets = np.arange(len(found)) / hz
        assert targets[-1] <= times[-1] + 1e-9 < targets[-1] + 1 / hz
        if length == 1:
            continue
        values = example.state(times, episode).astype(np.float32)
        state = np.stack(found["observation.state"])
        wanted = known.linear(values, times, targets)
        wanted[:, 3:7] = known.slerp(values[:, 3:7], times, targets)
        np.testing.assert_allclose(state, wanted, rtol=0, atol=3e-7)
        np.testing.assert_allclose(
            np.stack(found["action"]), known.linear(values[:, :2] * 2, times, targets), atol=3e-7
        )
        assert found["done"].tolist() == [False] * (len(found) - 1) + [True], (
            "the last row keeps the flag of the last step"
        )


def test_metadata_are_those_of_the_new_rows(source, tmp_path):
    tmaops.dataset.resample(source, tmp_path / "out", hz=30, workers=1)
    rows = data_of(tmp_path / "out").to_pandas()
    info = json.loads((tmp_path / "out" / "meta" / "info.json").read_text())
    assert info["fps"] == 30 and info["total_frames"] == len(rows) and info["total_episodes"] == len(LENGTHS)
    assert rows["index"].tolist() == list(range(len(rows)))
    for row in episodes_of(tmp_path / "out"):
        mine = rows[rows.episode_index == row["episode_index"]]
        assert row["length"] == len(mine)
        assert row["dataset_from_index"] == mine["index"].iloc[0]
        assert row["dataset_to_index"] == mine["index"].iloc[-1] + 1
        assert mine["frame_index"].tolist() == list(range(len(mine)))
        np.testing.assert_array_equal(mine["timestamp"], (np.arange(len(mine)) / 30).astype(np.float32))
        state = np.stack(mine["observation.state"]).astype(np.float64)
        np.testing.assert_allclose(row["stats/observation.state/mean"], state.mean(0), atol=1e-9)
        np.testing.assert_allclose(row["stats/observation.state/std"], state.std(0), atol=1e-9)
    stats = json.loads((tmp_path / "out" / "meta" / "stats.json").read_text())["observation.state"]
    state = np.stack(rows["observation.state"]).astype(np.float64)
    for key, wanted in (("mean", state.mean(0)), ("std", state.std(0)), ("min", state.min(0)), ("max", state.max(0))):
        np.testing.assert_allclose(stats[key], wanted, atol=1e-9)
    assert stats["count"] == [len(rows)]


def test_schema_metadata_and_column_order_survive(source, tmp_path):
    tmaops.dataset.resample(source, tmp_path / "out", hz=30, workers=1)
    was = pq.read_schema(source / "data" / "chunk-000" / "file-000.parquet")
    now = pq.read_schema(tmp_path / "out" / "data" / "chunk-000" / "file-000.parquet")
    assert now.equals(was, check_metadata=True)


def test_the_own_rate_changes_nothing(source, tmp_path):
    tmaops.dataset.resample(source, tmp_path / "out", hz=50, workers=1, modes={"observation.state": "previous"})
    assert data_of(tmp_path / "out").drop(["action"]).equals(data_of(source).drop(["action"]))


def test_bytes_are_the_same_for_any_number_of_workers_and_shards(source, tmp_path):
    tmaops.dataset.resample(source, tmp_path / "one", hz=30, workers=1)
    tmaops.dataset.resample(source, tmp_path / "two", hz=30, workers=2)
    assert not tmaops.dataset.resample(source, tmp_path / "shards", hz=30, workers=1, shard=(1, 2)).done
    assert not (tmp_path / "shards").exists()
    assert tmaops.dataset.resample(source, tmp_path / "shards", hz=30, workers=1, shard=(0, 2)).done
    assert digests(tmp_path / "one") == digests(tmp_path / "two") == digests(tmp_path / "shards")


def test_videos_keep_their_spans_and_the_tolerance_is_said(tmp_path):
    with_camera.write(tmp_path / "in", [20, 30])
    report = tmaops.dataset.resample(tmp_path / "in", tmp_path / "out", hz=30, workers=1)
    assert any("tolerance_s=0.01" in warning for warning in report.warnings)
    for old, new in zip(episodes_of(tmp_path / "in"), episodes_of(tmp_path / "out"), strict=True):
        assert {k: v for k, v in old.items() if k.startswith("videos/")} == {
            k: v for k, v in new.items() if k.startswith("videos/")
        }
    assert not tmaops.dataset.resample(tmp_path / "in", tmp_path / "half", hz=25, workers=1).warnings


def test_an_episode_out_of_order_is_refused_by_number_or_left_out(source, tmp_path):
    path = source / "data" / "chunk-000" / "file-000.parquet"
    table = pq.read_table(path)
    stamps = table.column("timestamp").to_numpy().copy()
    stamps[110] = stamps[111]  # of episode 1
    at = table.schema.get_field_index("timestamp")
    pq.write_table(table.set_column(at, table.schema.field(at), pa.array(stamps)), path)
    with pytest.raises(Refused, match="episode 1: row 11: got twice"):
        tmaops.dataset.resample(source, tmp_path / "out", hz=30, workers=1)
    report = tmaops.dataset.resample(source, tmp_path / "rest", hz=30, workers=1, keep_going=True)
    assert list(report.failed) == ["1"]
    kept = episodes_of(tmp_path / "rest")
    assert [row["episode_index"] for row in kept] == [0, 1, 2, 3]
    rows = data_of(tmp_path / "rest").to_pandas()
    assert rows["index"].tolist() == list(range(len(rows)))
    assert json.loads((tmp_path / "rest" / "meta" / "info.json").read_text())["total_episodes"] == 4
    assert json.loads((tmp_path / "rest" / "tmaops_manifest.json").read_text())["failed"].keys() == {"1"}


def test_wrong_requests_are_refused_before_anything_is_written(source, tmp_path):
    for options in (
        {"hz": 0},
        {"hz": 30, "modes": {"nothing": "linear"}},
        {"hz": 30, "modes": {"done": "linear"}},
        {"hz": 30, "modes": {"observation.state[2:5]": "slerp"}},
        {"hz": 30, "max_gap": -1.0},
        {"hz": 30, "shard": (2, 2)},
    ):
        with pytest.raises(Refused):
            tmaops.dataset.resample(source, tmp_path / "out", workers=1, **options)
        assert not (tmp_path / "out").exists()
        assert not (tmp_path / "out.partial").exists(), options
