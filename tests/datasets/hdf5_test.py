"""HDF5 demonstrations as robomimic and ALOHA write them, and streams of several rates."""

import json

import known
import numpy as np
import pytest

h5py = pytest.importorskip("h5py")

import tmaops.dataset
from tmaops.dataset import Refused


def robomimic(path, lengths):
    """Demonstrations at 20 Hz, with the names, attributes and layout that robomimic has."""
    rng = np.random.default_rng(3)
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        data.attrs["env_args"] = json.dumps({"env_name": "Lift", "env_kwargs": {"control_freq": 20}})
        data.attrs["total"] = sum(lengths)
        for i, n in enumerate(lengths):
            demo = data.create_group(f"demo_{i}")
            demo.attrs["num_samples"] = n
            demo.attrs["model_file"] = "<xml/>"
            quaternion = rng.normal(size=(n, 4)) * 0.05 + [0, 0, 0, 1]
            demo.create_dataset("actions", data=rng.normal(size=(n, 7)))
            demo.create_dataset("dones", data=np.arange(n) == n - 1)
            demo.create_dataset(
                "obs/robot0_eef_quat", data=quaternion / np.linalg.norm(quaternion, axis=1, keepdims=True)
            )
            demo.create_dataset(
                "obs/image",
                data=rng.integers(0, 255, (n, 8, 8, 3), np.uint8),
                compression="gzip",
                chunks=(1, 8, 8, 3),
                fletcher32=True,
            )
        file.create_group("mask").create_dataset("train", data=np.array([b"demo_0"]))


def test_robomimic_demonstrations_come_onto_another_rate(tmp_path):
    robomimic(tmp_path / "in.hdf5", [41, 12])
    report = tmaops.dataset.resample(tmp_path / "in.hdf5", tmp_path / "out.hdf5", hz=30, workers=1)
    assert report.notes[0] == "time of samples: counted at 20 per second (control_freq of env_args)"
    assert report.columns["obs/robot0_eef_quat"] == "slerp (a quaternion)"
    with h5py.File(tmp_path / "in.hdf5") as old, h5py.File(tmp_path / "out.hdf5") as new:
        assert new["mask/train"][()].tolist() == [b"demo_0"]
        total = 0
        for name, n in (("demo_0", 41), ("demo_1", 12)):
            was, now = old["data"][name], new["data"][name]
            times = np.arange(n) / 20
            targets = np.arange(int((n - 1) / 20 * 30) + 1) / 30
            assert now.attrs["num_samples"] == targets.size and now.attrs["model_file"] == "<xml/>"
            total += targets.size
            np.testing.assert_allclose(now["actions"], known.linear(was["actions"][()], times, targets), atol=1e-7)
            np.testing.assert_allclose(
                now["obs/robot0_eef_quat"], known.slerp(was["obs/robot0_eef_quat"][()], times, targets), atol=1e-7
            )
            images = known.previous(was["obs/image"][()], times, targets + 1e-9)
            np.testing.assert_array_equal(now["obs/image"], images)
            assert now["obs/image"].compression == "gzip" and now["obs/image"].fletcher32
        assert new["data"].attrs["total"] == total


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize(
    "names",
    ["ep_0 ep_1", "episodes/007 episodes/008", "data/train/demo_0 data/test/demo_0", "Traj0 Traj1", "data/a data/b"],
)
def test_groups_of_episodes_are_found_by_their_names(names, timed, tmp_path):
    rng, lengths = np.random.default_rng(5), {}
    with h5py.File(tmp_path / "in.hdf5", "w") as file:
        file.attrs["fps"] = 20
        for name, n in zip(names.split(), (41, 12), strict=True):
            lengths[name] = n
            file[f"{name}/obs/pos"] = rng.normal(size=(n, 3)).cumsum(0)
            file[name].parent.attrs["total"] = file[name].parent.attrs.get("total", 0) + n
            if timed:
                file[f"{name}/timestamp"] = 100.0 * n + np.arange(n) / 20
        file["cameras/cam_0/timestamp"] = np.arange(5.0)  # of no episode
    report = tmaops.dataset.resample(tmp_path / "in.hdf5", tmp_path / "out.hdf5", hz=10, workers=1)
    assert report.episodes == 2 and report.columns == {"obs/pos": "linear (real numbers)"}
    with h5py.File(tmp_path / "in.hdf5") as old, h5py.File(tmp_path / "out.hdf5") as new:
        for name, n in lengths.items():
            times, targets = np.arange(n) / 20, np.arange((n - 1) // 2 + 1) / 10
            wanted = known.linear(old[f"{name}/obs/pos"][()], times, targets)
            np.testing.assert_allclose(new[f"{name}/obs/pos"], wanted, atol=1e-7)
            beside = [other for other in lengths if old[other].parent == old[name].parent]
            assert new[name].parent.attrs["total"] == sum(len(new[f"{other}/obs/pos"]) for other in beside)
        assert len(new["cameras/cam_0/timestamp"]) == 5


def test_aloha_needs_the_rate_of_its_samples(tmp_path):
    with h5py.File(tmp_path / "episode_0.hdf5", "w") as file:
        file.attrs["sim"] = True
        file.create_dataset("action", data=np.arange(28.0).reshape(14, 2))
        file.create_dataset("observations/qpos", data=np.arange(14, dtype=np.float32)[:, None])
    with pytest.raises(Refused, match="--input-hz"):
        tmaops.dataset.resample(tmp_path / "episode_0.hdf5", tmp_path / "out.hdf5", hz=25, workers=1)
    tmaops.dataset.resample(tmp_path / "episode_0.hdf5", tmp_path / "at25.hdf5", hz=25, input_hz=50, workers=1)
    with h5py.File(tmp_path / "at25.hdf5") as new:
        assert new.attrs["sim"]
        assert new["observations/qpos"][:, 0].tolist() == list(range(0, 14, 2))


def test_streams_of_several_rates_share_one_clock(tmp_path):
    rng = np.random.default_rng(5)
    with h5py.File(tmp_path / "in.h5", "w") as file:
        for name, hz, start in (("camera", 30, 0.02), ("tactile", 150, 0.0), ("imu", 1000, 0.011)):
            n = int(2 * hz)
            times = start + np.arange(n) / hz + rng.uniform(-0.2, 0.2, n) / hz
            file.create_dataset(f"{name}/timestamp", data=times)
            file.create_dataset(f"{name}/value", data=rng.normal(size=(n, 3)))
            file.create_dataset(f"{name}/frame", data=np.arange(n))
    tmaops.dataset.resample(tmp_path / "in.h5", tmp_path / "out.h5", hz=100, workers=1)
    with h5py.File(tmp_path / "in.h5") as old, h5py.File(tmp_path / "out.h5") as new:
        clocks = [new[f"{name}/timestamp"][()] for name in ("camera", "tactile", "imu")]
        assert (clocks[0] == clocks[1]).all() and (clocks[0] == clocks[2]).all()
        firsts, lasts = zip(
            *((old[f"{n}/timestamp"][0], old[f"{n}/timestamp"][-1]) for n in ("camera", "tactile", "imu")), strict=True
        )
        assert clocks[0][0] == pytest.approx(max(firsts), abs=1e-9)
        assert min(lasts) - 0.01 < clocks[0][-1] <= min(lasts) + 1e-9
        for name in ("camera", "tactile", "imu"):
            times = old[f"{name}/timestamp"][()]
            wanted = known.linear(old[f"{name}/value"][()], times, clocks[0])
            np.testing.assert_allclose(
                new[f"{name}/value"], wanted, atol=1e-5
            )  # half a nanosecond at slopes of 1e4 per second
            assert new[f"{name}/frame"][()].tolist() == known.nearest(np.arange(times.size), times, clocks[0])


def test_each_stream_has_its_own_rule_gap_and_latency(tmp_path):
    times = {"camera": np.arange(60) / 30, "imu": 0.004 + np.delete(np.arange(2000), np.s_[900:1000]) / 1000}
    with h5py.File(tmp_path / "in.h5", "w") as file:
        for name, at in times.items():
            file.create_dataset(f"{name}/timestamp", data=at)
            file.create_dataset(f"{name}/value", data=np.sin(7 * at))
    rules = {"modes": {"camera/*": "nearest"}, "latency": {"camera": 0.02}, "workers": 1, "hz": 100}
    with pytest.raises(Refused, match="stream imu.*a gap longer"):
        tmaops.dataset.resample(tmp_path / "in.h5", tmp_path / "gap.h5", max_gap={"camera": 0.05, "imu": 0.05}, **rules)
    with pytest.raises(Refused, match="latency of wheel: got no such stream; needed one of camera, imu"):
        tmaops.dataset.resample(tmp_path / "in.h5", tmp_path / "no.h5", hz=100, latency={"wheel": 0.1}, workers=1)
    tmaops.dataset.resample(tmp_path / "in.h5", tmp_path / "out.h5", max_gap={"camera": 0.05}, **rules)
    taken = times["camera"] - 0.02  # when the camera's samples were taken
    with h5py.File(tmp_path / "out.h5") as new:
        at = new["camera/timestamp"][()]
        assert at[0] == pytest.approx(0.004) and at[-1] <= taken[-1]
        assert new["camera/value"][()].tolist() == known.nearest(np.sin(7 * times["camera"]), taken, at)
        wanted = known.linear(np.sin(7 * times["imu"])[:, None], times["imu"], at)[:, 0]
        np.testing.assert_allclose(new["imu/value"], wanted, atol=1e-6)


def test_slabs_give_the_bytes_of_the_whole(tmp_path, monkeypatch):
    rng = np.random.default_rng(8)
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file.create_dataset("timestamp", data=np.cumsum(rng.uniform(0.005, 0.02, 500)))
        file.create_dataset("linear", data=rng.normal(size=(500, 3)))
        file.create_dataset("cubic", data=rng.normal(size=(500, 2)).astype(np.float32))
        file.create_dataset("eef_quat", data=rng.normal(size=(500, 4)))
        file.create_dataset("dones", data=np.arange(500) == 499)
    given = {"hz": 130, "modes": {"cubic": "cubic"}, "workers": 1}
    tmaops.dataset.resample(tmp_path / "in.h5", tmp_path / "whole.h5", **given)
    monkeypatch.setattr("tmaops.dataset.arrays.SLAB_BYTES", 700)
    tmaops.dataset.resample(tmp_path / "in.h5", tmp_path / "slabs.h5", **given)
    with h5py.File(tmp_path / "whole.h5") as whole, h5py.File(tmp_path / "slabs.h5") as slabs:
        for name in ("linear", "cubic", "eef_quat", "dones", "timestamp"):
            np.testing.assert_array_equal(whole[name], slabs[name], err_msg=name)
        assert whole["dones"][-1] and whole["dones"][()].sum() == 1


def test_float32_seconds_are_warned_about(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file.create_dataset("timestamp", data=np.arange(50, dtype=np.float32) / 10)
        file.create_dataset("x", data=np.arange(50.0))
    report = tmaops.dataset.resample(tmp_path / "in.h5", tmp_path / "out.h5", hz=5, workers=1)
    assert report.warnings == [
        "'timestamp' holds float32 seconds: their resolution gets coarser with time [time_coarse]"
    ]


def test_damaged_files_and_datasets_are_left_out_by_name(tmp_path):
    (tmp_path / "in").mkdir()
    for i in range(3):
        with h5py.File(tmp_path / "in" / f"episode_{i}.hdf5", "w") as file:
            file.create_dataset(
                "action", data=np.random.default_rng(i).normal(size=(400, 8)), chunks=(50, 8), fletcher32=True
            )
    damaged = bytearray((tmp_path / "in" / "episode_1.hdf5").read_bytes())
    damaged[-3000:] = bytes(3000)  # of the numbers
    (tmp_path / "in" / "episode_1.hdf5").write_bytes(damaged)
    (tmp_path / "in" / "episode_2.hdf5").write_bytes(b"not HDF5")
    with pytest.raises(Refused, match="episode_2"):
        tmaops.dataset.resample(tmp_path / "in", tmp_path / "no", hz=25, input_hz=50, workers=1)
    report = tmaops.dataset.resample(tmp_path / "in", tmp_path / "out", hz=25, input_hz=50, workers=1, keep_going=True)
    assert report.done and sorted(report.failed) == ["episode_1.hdf5", "episode_2.hdf5"]
    assert sorted(p.name for p in (tmp_path / "out").glob("*.hdf5")) == ["episode_0.hdf5"]


def test_links_into_other_files_are_refused(tmp_path):
    robomimic(tmp_path / "in.hdf5", [10])
    with h5py.File(tmp_path / "in.hdf5", "a") as file:
        file["data/demo_0/obs/other"] = h5py.ExternalLink("/etc/passwd", "x")
    with pytest.raises(Refused, match="a link to /etc/passwd"):
        tmaops.dataset.resample(tmp_path / "in.hdf5", tmp_path / "out.hdf5", hz=30, workers=1)


def test_the_loader_of_robomimic_takes_the_result(tmp_path):
    pytest.importorskip("robomimic")
    from robomimic.utils.dataset import SequenceDataset

    robomimic(tmp_path / "in.hdf5", [41, 12])
    tmaops.dataset.resample(tmp_path / "in.hdf5", tmp_path / "out.hdf5", hz=30, workers=1)
    loaded = SequenceDataset(
        str(tmp_path / "out.hdf5"),
        obs_keys=["robot0_eef_quat", "image"],
        dataset_keys=["actions", "dones"],
        load_next_obs=False,
    )
    assert loaded.n_demos == 2 and len(loaded) == 61 + 17
    last, next_first = loaded[60]["actions"][0], loaded[61]["obs"]["image"][0]
    loaded.close_and_delete_hdf5_handle()
    with h5py.File(tmp_path / "out.hdf5") as new:
        np.testing.assert_array_equal(last, new["data/demo_0/actions"][60])
        np.testing.assert_array_equal(next_first, new["data/demo_1/obs/image"][0])


def test_datasets_that_the_library_has_no_type_for_are_taken_or_copied(tmp_path):
    """Long doubles, compounds, texts, references, datasets of width 0 and those without a shape."""
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["timestamp"] = np.arange(20) / 10
        file["x"] = np.arange(20.0)
        file["long"] = np.arange(20, dtype=np.longdouble)
        file["pair"] = np.zeros(20, [("a", "f4"), ("b", "i4")])
        file["wave"] = np.exp(1j * np.arange(20))
        file["none"] = np.zeros((20, 0))
        file.create_dataset("say", data=[f"t{i}" for i in range(20)], dtype=h5py.string_dtype())
        file.create_dataset("empty", data=h5py.Empty("f4"))
    report = tmaops.dataset.resample(tmp_path / "in.h5", tmp_path / "out.h5", hz=5, workers=1)
    assert not report.warnings and report.columns["pair/a"] == "linear (real numbers)"
    with h5py.File(tmp_path / "out.h5") as made:
        assert made["long"].dtype == np.longdouble and made["long"][()].tolist() == list(range(0, 20, 2))
        assert made["say"].asstr()[2] == "t4" and made["none"].shape == (10, 0) and made["empty"].shape is None
        assert made["pair"].shape == (10,) and made["wave"][1] == np.exp(2j)
        np.testing.assert_allclose(made["x"], np.arange(0, 20, 2))
    tmaops.dataset.inspect(tmp_path / "in.h5")


def test_lists_of_one_length_among_lists_of_any_length_are_taken(tmp_path):
    """As encoded images whose bytes are as many."""
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["timestamp"] = np.arange(10) / 10
        images = file.create_dataset("jpeg", (10,), h5py.vlen_dtype("u1"))
        cameras = file.create_dataset("pair", (10, 2), h5py.vlen_dtype("u1"))
        for row in range(10):
            images[row] = np.arange(3) + row
            cameras[row, 0], cameras[row, 1] = np.arange(4) + row, np.arange(4) - row
    tmaops.dataset.resample(tmp_path / "in.h5", tmp_path / "out.h5", hz=5, workers=1)
    with h5py.File(tmp_path / "out.h5") as made:
        assert [row.tolist() for row in made["jpeg"]] == [[i, i + 1, i + 2] for i in range(0, 10, 2)]
        assert made["pair"][1, 0].tolist() == [2, 3, 4, 5]


@pytest.mark.parametrize("kinds", [("i8", "f8"), ("f8", "i8")])
def test_demonstrations_whose_types_need_another_rule_are_refused_by_name(kinds, tmp_path):
    with h5py.File(tmp_path / "in.hdf5", "w") as file:
        for i, kind in enumerate(kinds):
            file[f"data/demo_{i}/actions"] = np.arange(9).astype(kind)
    with pytest.raises(Refused, match="demo_1: 'actions'.*as in the first episode"):
        tmaops.dataset.resample(tmp_path / "in.hdf5", tmp_path / "out.hdf5", hz=30, input_hz=20)


def test_numbers_of_more_than_64_bits_are_real(tmp_path):
    times = np.arange(9) / 20
    with h5py.File(tmp_path / "in.hdf5", "w") as file:
        file["timestamp"], file["x"] = times.astype("g"), (times * 2).astype("g")
    tmaops.dataset.resample(tmp_path / "in.hdf5", tmp_path / "out.hdf5", hz=30, workers=1)
    with h5py.File(tmp_path / "out.hdf5") as made:
        np.testing.assert_allclose(made["x"], np.arange(13) / 15)


def test_numbered_groups_of_unknown_names_are_streams_and_said_or_episodes_when_asked(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as file:
        for rows, name in ((200, "lift_0"), (240, "pick_3"), (280, "lift_1")):
            file[f"tasks/{name}/timestamp"], file[f"tasks/{name}/x"] = np.arange(rows) * 0.01, np.arange(rows) * 1.0
    report = tmaops.dataset.resample(tmp_path / "in.h5", tmp_path / "streams.h5", hz=30, workers=1)
    assert report.episodes == 1 and report.warnings == [
        "groups tasks/lift_0, tasks/lift_1, tasks/pick_3 are taken for streams of one recording "
        "(--group PATTERN where they are episodes) [groups_as_streams]"
    ]
    report = tmaops.dataset.resample(tmp_path / "in.h5", tmp_path / "out.h5", hz=30, workers=1, group="tasks/*_[0-9]")
    assert report.episodes == 3 and not report.warnings
    with h5py.File(tmp_path / "out.h5") as file:
        for name, rows in (("lift_0", 60), ("pick_3", 72), ("lift_1", 84)):
            np.testing.assert_allclose(file[f"tasks/{name}/x"], np.arange(rows) / 0.3)
    with pytest.raises(Refused, match="no episode"):
        tmaops.dataset.resample(tmp_path / "in.h5", tmp_path / "no.h5", hz=30, workers=1, group="pick_*")


def test_arrays_without_timestamps_take_those_of_the_group_with_as_many_rows(tmp_path):
    """As DROID has its timestamps in a group of their own, and RoNIN its poses beside those of synced/."""
    rows, begin = 90, 1_700_000_000
    ms = np.arange(rows) * 66
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["action/position"] = ms * 0.001
        file["observation/robot_state/joints"] = np.stack([ms * 0.002, ms * 0.003], 1)
        file["observation/timestamp/robot/robot_timestamp_seconds"] = begin + ms // 1000
        file["observation/timestamp/robot/robot_timestamp_nanos"] = ms % 1000 * 10**6
        file["camera/timestamp"], file["camera/exposure"] = begin + np.arange(300) * 0.02, np.arange(300) * 1.0
    report = tmaops.dataset.resample(tmp_path / "in.h5", tmp_path / "out.h5", hz=20, workers=1)
    assert any("also of arrays without timestamps, which have 90 rows too" in note for note in report.notes)
    with h5py.File(tmp_path / "out.h5") as file:
        times = np.arange(file["action/position"].size) * 0.05
        assert times[-1] == pytest.approx(5.85)
        np.testing.assert_allclose(file["action/position"], times, atol=1e-9)
        np.testing.assert_allclose(file["observation/robot_state/joints"][:, 1], times * 3, atol=1e-9)
        np.testing.assert_allclose(file["camera/exposure"], times * 50, atol=1e-4)
        stamps = file["observation/timestamp/robot"]
        got = stamps["robot_timestamp_seconds"][()] - begin + stamps["robot_timestamp_nanos"][()] * 1e-9
        np.testing.assert_allclose(got, times, atol=1e-9)
