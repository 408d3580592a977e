"""Data sets written and read by LeRobot's own code (`pip install --no-deps lerobot` and what its data sets need)."""

import importlib.util
import io

import known
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tmaops.dataset
from lerobot_own import lerobot_imports

for needed in ("torch", "datasets", "lerobot"):
    if importlib.util.find_spec(needed) is None:
        pytest.skip(f"no {needed}", allow_module_level=True)


@pytest.fixture(scope="module")
def own():
    """LeRobotDataset itself."""
    with lerobot_imports():
        from lerobot.datasets.lerobot_dataset import LeRobotDataset

        yield LeRobotDataset


def motion(seconds):
    return np.stack([np.sin(seconds), np.cos(3 * seconds), seconds**2], axis=-1).astype(np.float32)


@pytest.fixture
def source(own, tmp_path):
    features = {
        "observation.state": {"dtype": "float32", "shape": (3,), "names": ["a", "b", "c"]},
        "action": {"dtype": "float32", "shape": (2,), "names": None},
    }
    made = own.create("test/made", fps=20, features=features, root=tmp_path / "in", use_videos=False)
    for length, task in ((40, "push"), (25, "pull"), (61, "push")):
        for i in range(length):
            frame = {
                "observation.state": motion(np.float64(i / 20)),
                "action": np.array([i, -i], np.float32),
                "task": task,
            }
            made.add_frame(frame)
        made.save_episode()
    made.finalize()
    return tmp_path / "in"


def test_its_loader_and_its_check_of_timestamps_accept_the_result(own, source, tmp_path):
    tmaops.dataset.resample(source, tmp_path / "out", hz=50, workers=1)
    deltas = {"observation.state": [-1 / 50, 0, 1 / 50]}
    loaded = own("test/made", root=tmp_path / "out", delta_timestamps=deltas)
    assert loaded.fps == 50 and loaded.num_episodes == 3 and len(loaded) == 98 + 61 + 151
    for index, (episode, frame, task) in {0: (0, 0, "push"), 100: (1, 2, "pull"), 309: (2, 150, "push")}.items():
        row = loaded[index]
        assert row["episode_index"].item() == episode and row["frame_index"].item() == frame and row["task"] == task
        assert row["timestamp"].item() == np.float32(frame / 50)
        times = np.arange(61) / 20
        wanted = known.linear(motion(times), times, [frame / 50])[0]
        np.testing.assert_allclose(row["observation.state"][1].numpy(), wanted, atol=3e-7)


def test_its_statistics_agree_with_those_that_it_would_compute(own, source, tmp_path):
    from lerobot.datasets.compute_stats import compute_episode_stats

    tmaops.dataset.resample(source, tmp_path / "out", hz=50, workers=1)
    loaded = own("test/made", root=tmp_path / "out")
    rows = pq.read_table(tmp_path / "out" / "data" / "chunk-000" / "file-000.parquet").to_pandas()
    state = np.stack(rows["observation.state"])
    theirs = compute_episode_stats({"observation.state": state}, loaded.meta.features)["observation.state"]
    ours = loaded.meta.stats["observation.state"]
    for key in ("min", "max", "mean", "std"):
        np.testing.assert_allclose(ours[key], theirs[key], rtol=1e-5, atol=1e-6, err_msg=key)
    assert ours["count"] == theirs["count"]
    episodes = pq.read_table(tmp_path / "out" / "meta" / "episodes" / "chunk-000" / "file-000.parquet").to_pylist()
    first = compute_episode_stats({"observation.state": state[:98]}, loaded.meta.features)["observation.state"]
    for key in ("min", "max", "mean", "std", "q01", "q50", "q99"):
        # Its quantiles are those of a histogram, with 98 rows up to 3 % of the range off; ours are exact.
        loose = 0.03 * np.ptp(state[:98], axis=0).max() if key[0] == "q" else 1e-6
        np.testing.assert_allclose(
            episodes[0][f"stats/observation.state/{key}"], first[key], rtol=1e-5, atol=loose, err_msg=key
        )


def test_its_loader_takes_a_set_that_was_made_of_tables(own, tmp_path):
    (tmp_path / "tables").mkdir()
    for episode, rows in enumerate((40, 25)):
        seconds = np.arange(rows) / 20
        columns = {
            "timestamp": seconds,
            "/arm.a": motion(seconds)[:, 0],
            "/arm.b": motion(seconds)[:, 1],
            "/grip": seconds,
        }
        pq.write_table(pa.table(columns), tmp_path / "tables" / f"run{episode}.parquet")
    features = {"observation.state": ["/arm.*"], "action": ["/grip"]}
    tmaops.dataset.new_set(tmp_path / "tables", tmp_path / "out", features=features, task="lift")
    loaded = own("test/made", root=tmp_path / "out", delta_timestamps={"observation.state": [-1 / 20, 0]})
    assert loaded.fps == 20 and loaded.num_episodes == 2 and len(loaded) == 65
    row = loaded[45]
    assert row["episode_index"].item() == 1 and row["task"] == "lift" and row["action"].item() == np.float32(5 / 20)
    np.testing.assert_allclose(row["observation.state"][1], motion(np.float64(5 / 20))[:2], atol=1e-6)
    assert loaded.meta.stats["action"]["max"].item() == np.float32(39 / 20)


def test_its_loader_takes_images_of_tables_before_and_after_another_rate(own, tmp_path):
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "tables").mkdir()
    for episode, rows in enumerate((20, 11)):
        pictures = []
        for i in range(rows):
            made = io.BytesIO()
            image.new("RGB", (8, 6), (10 * i, episode, 0)).save(made, "PNG")
            pictures.append(made.getvalue())
        columns = {"timestamp": np.arange(rows) / 20, "state": np.arange(rows, dtype=np.float64), "top": pictures}
        pq.write_table(pa.table(columns), tmp_path / "tables" / f"run{episode}.parquet")
    tmaops.dataset.new_set(tmp_path / "tables", tmp_path / "set")
    tmaops.dataset.resample(tmp_path / "set", tmp_path / "half", hz=10, workers=1)
    for name, fps, length in (("set", 20, 31), ("half", 10, 16)):
        loaded = own("test/made", root=tmp_path / name)
        assert loaded.fps == fps and len(loaded) == length and loaded.meta.camera_keys == ["observation.images.top"]
        row = loaded[20 // (20 // fps) + 3]
        pixels = row["observation.images.top"]
        assert row["episode_index"].item() == 1 and tuple(pixels.shape) == (3, 6, 8)
        frame = round(row["timestamp"].item() * 20)
        np.testing.assert_allclose(pixels[:, 0, 0].numpy() * 255, [10 * frame, 1, 0], atol=1e-3)
        mean = np.asarray(loaded.meta.stats["observation.images.top"]["mean"])
        assert mean.shape == (3, 1, 1) and 0.2 < mean[0, 0, 0] < 0.4
