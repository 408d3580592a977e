"""Recordings of named columns: the tool's rules on dictionaries and frames, and steps of data pipelines."""

import sys

import numpy as np
import pytest

import tmaops


def recording(rows=11):
    times = np.arange(rows) * 0.1
    turn = np.linspace(0, np.pi / 2, rows)
    quaternion = np.stack([0 * turn, 0 * turn, np.sin(turn / 2), np.cos(turn / 2)], 1)
    return {
        "timestamp": times,
        "observation.state": np.stack([times, 2 * times], 1).astype("f4"),
        "eef_quat": quaternion,
        "gripper": np.arange(rows) // 5,
        "task": np.array(["pick"] * 6 + ["place"] * (rows - 6)),
        "joint_names": np.array(["a", "b"]),
    }


def test_every_column_has_the_rule_of_its_name_and_type():
    got, report = tmaops.resample_columns(recording(), hz=20, report=True)
    times = got["timestamp"]
    assert len(times) == 21
    np.testing.assert_allclose(got["observation.state"], np.stack([times, 2 * times], 1), atol=1e-6)
    assert got["observation.state"].dtype == np.float32
    np.testing.assert_allclose(2 * np.arcsin(got["eef_quat"][:, 2]), times * np.pi / 2, atol=1e-7)
    np.testing.assert_array_equal(got["gripper"], np.floor(times * 10 + 1e-6) // 5)
    assert got["task"][11] == "pick" and got["task"][12] == "place"
    np.testing.assert_array_equal(got["joint_names"], ["a", "b"])
    assert dict(report.modes) == {"observation.state": "linear", "eef_quat": "slerp", "gripper": "previous", "task": "previous"}
    assert report.time["unit"] == "s"
    assert report.quaternions[0]["columns"] == "eef_quat"


def test_resample_of_a_dictionary_is_resample_columns():
    got = tmaops.resample(recording(), hz=20, mode={"observation.state": "previous"}, outside="hold")
    np.testing.assert_array_equal(got["observation.state"][1], got["observation.state"][0])
    at = tmaops.resample(recording(), np.array([0.25, 5.0]))
    np.testing.assert_array_equal(at["valid"], [True, False])
    like = tmaops.resample(recording(), like={"stamp": np.array([0.5, 0.6])}, columns="gripper")
    np.testing.assert_array_equal(like["gripper"], [1, 1])


def test_errors_of_the_tool_are_errors():
    with pytest.raises(ValueError) as caught:
        tmaops.resample(recording(), hz=-1)
    assert (caught.value.code, caught.value.where, caught.value.got) == (18, "--hz", "-1")
    with pytest.raises(tmaops.Error) as caught:
        tmaops.resample(recording(), hz=10, mode="task=linear")
    assert caught.value.number == "E037"
    assert "recording" in caught.value.where
    with pytest.raises(TypeError, match="frame"):
        tmaops.resample_columns(3, hz=10)
    with pytest.raises(TypeError, match="hz"):
        tmaops.resample(np.zeros((1, 2, 1)), np.arange(2.0), np.arange(2.0), hz=3)


def test_what_looks_wrong_is_a_warning():
    with pytest.warns(UserWarning, match="orm"):
        tmaops.resample({"t": np.arange(9.0), "pose": np.tile([0.5, 0.5, 0.5, -0.5], (9, 1)) * np.where(np.arange(9) % 2, 1, -1)[:, None]}, hz=1)


def test_pandas_frames_keep_their_index_and_text():
    pandas = pytest.importorskip("pandas")
    index = pandas.date_range("2026-01-01", periods=5, freq="100ms", tz="Europe/Berlin")
    frame = pandas.DataFrame({"x": np.arange(5.0), "state": list(np.eye(5)), "label": list("abcde"), "seen": index}, index=index)
    got = tmaops.resample(frame, hz=20)
    assert len(got) == 9 and got.index.tz is not None
    assert got["seen"].iloc[1] == index[0] and got["seen"].dtype == frame["seen"].dtype
    assert got.index[1] - got.index[0] == pandas.Timedelta("50ms") and got.index[0] == index[0]
    assert got["x"].iloc[1] == 0.5 and list(got["label"][:3]) == ["a", "a", "b"]
    np.testing.assert_allclose(got["state"].iloc[1], [0.5, 0.5, 0, 0, 0])


def test_polars_frames_keep_their_types():
    polars = pytest.importorskip("polars")
    import datetime

    start = datetime.datetime(2026, 1, 1)
    times = [start + datetime.timedelta(milliseconds=100 * i) for i in range(5)]
    frame = polars.DataFrame({"when": times, "x": np.arange(5.0), "label": list("abcde"), "open": [True, False] * 2 + [True]})
    got = tmaops.resample(frame, hz=20)
    assert got["x"][1] == 0.5 and got["label"].to_list()[:3] == ["a", "a", "b"] and got["open"].dtype == polars.Boolean
    assert got["when"][1] - got["when"][0] == datetime.timedelta(milliseconds=50)


def test_torch_tensors_come_back_as_torch_tensors():
    torch = pytest.importorskip("torch")
    got = tmaops.resample({"t": torch.arange(4.0), "x": torch.arange(4.0, dtype=torch.bfloat16)[:, None]}, hz=2)
    assert got["x"].dtype is torch.bfloat16 and got["x"][1].item() == 0.5


class Episodes:
    def __len__(self):
        return 6

    def __getitem__(self, index):
        return recording(11 + index)


def test_forked_workers_of_a_data_loader_collate_episodes():
    torch = pytest.importorskip("torch")
    loader = torch.utils.data.DataLoader(
        Episodes(), batch_size=3, num_workers=2, collate_fn=tmaops.data.Resample(hz=20), multiprocessing_context="fork"
    )
    batches = list(loader)
    assert [batch["length"].tolist() for batch in batches] == [[21, 23, 25], [27, 29, 31]]
    state = batches[1]["observation.state"]
    assert state.shape == (3, 31, 2) and state.dtype is torch.float32
    torch.testing.assert_close(state[0, :27, 0], torch.arange(27) * 0.05)
    assert (state[0, 27:] == state[0, 26]).all()
    assert len(batches[0]["task"]) == 3


def test_a_step_describes_itself_and_changes_its_part():
    step = tmaops.data.ResampleStep(key="observation", hz=20)
    transition = {"observation": recording(), "action": 3}
    got = tmaops.data.ResampleStep(**step.get_config())(transition)
    assert got["action"] == 3 and len(got["observation"]["timestamp"]) == 21
    assert len(transition["observation"]["timestamp"]) == 11
    assert step.state_dict() == {}


def test_nothing_of_pandas_or_polars_is_imported():
    import subprocess

    code = "import sys, numpy, tmaops; tmaops.resample({'t': numpy.arange(3.0)}, hz=2); print(bool({'pandas', 'polars', 'torch'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"
