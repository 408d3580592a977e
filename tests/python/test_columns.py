"""Recordings of named columns: the tool's rules on dictionaries and frames, and steps of data pipelines."""

import datetime
import decimal
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
    assert dict(report.modes) == {
        "observation.state": "linear",
        "eef_quat": "slerp",
        "gripper": "previous",
        "task": "previous",
    }
    assert report.time["unit"] == "s"
    assert report.quaternions[0]["columns"] == "eef_quat"


def test_resample_of_a_dictionary_is_resample_columns():
    got = tmaops.resample(recording(), hz=20, mode={"observation.state": "previous"}, outside="hold")
    np.testing.assert_array_equal(got["observation.state"][1], got["observation.state"][0])
    at = tmaops.resample(recording(), np.array([0.25, 5.0]))
    np.testing.assert_array_equal(at["valid"], [True, False])
    like = tmaops.resample(recording(), like={"stamp": np.array([0.5, 0.6])}, columns="gripper")
    np.testing.assert_array_equal(like["gripper"], [1, 1])


@pytest.mark.parametrize("kind", ["dict", "pandas", "polars"])
def test_the_rows_of_each_value_of_a_group_are_an_episode(kind):
    frames = pytest.importorskip(kind) if kind != "dict" else None
    one = np.arange(6) * 0.25
    rows = {"runner": np.array(["amy", "bob"] * 6), "t": np.repeat(one, 2), "pace": np.arange(12.0) // 2}
    rows["pace"][1::2] += 100
    given = frames.DataFrame(rows) if frames else rows
    got = tmaops.resample(given, hz=8, group="runner")
    assert list(got["runner"]) == ["amy"] * 11 + ["bob"] * 11
    np.testing.assert_allclose(got["t"], np.tile(np.arange(11) / 8, 2))
    np.testing.assert_allclose(got["pace"], np.concatenate([np.arange(11) / 2, 100 + np.arange(11) / 2]))
    with pytest.raises(tmaops.Error, match="--group"):
        tmaops.resample(given, hz=8)
    with pytest.raises(tmaops.Error, match="lane"):
        tmaops.resample(given, hz=8, group="lane")


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
        tmaops.resample(
            {
                "t": np.arange(9.0),
                "pose": np.tile([0.5, 0.5, 0.5, -0.5], (9, 1)) * np.where(np.arange(9) % 2, 1, -1)[:, None],
            },
            hz=1,
        )


def test_pandas_frames_keep_their_index_and_text():
    pandas = pytest.importorskip("pandas")
    index = pandas.date_range("2026-01-01", periods=5, freq="100ms", tz="Europe/Berlin")
    frame = pandas.DataFrame(
        {"x": np.arange(5.0), "state": list(np.eye(5)), "label": list("abcde"), "seen": index}, index=index
    )
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
    frame = polars.DataFrame(
        {"when": times, "x": np.arange(5.0), "label": list("abcde"), "open": [True, False] * 2 + [True]}
    )
    got = tmaops.resample(frame, hz=20)
    assert got["x"][1] == 0.5 and got["label"].to_list()[:3] == ["a", "a", "b"] and got["open"].dtype == polars.Boolean
    assert got["when"][1] - got["when"][0] == datetime.timedelta(milliseconds=50)


PANDAS = {
    "Int64": ([1, None, 3, 4, 5], [1, 1, None, None, 3, 3, 4, 4, 5]),
    "UInt8": ([1, 2, 3, 4, 5], [1, 1, 2, 2, 3, 3, 4, 4, 5]),
    "Float64": ([1, None, 3, 4, 5], [1, None, None, None, 3, 3.5, 4, 4.5, 5]),
    "Float32": ([1, 2, 3, 4, 5], [1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5]),
    "boolean": ([True, None, False, True, True], [True, True, None, None, False, False, True, True, True]),
    "string": (["a", None, "c", "d", "e"], ["a", "a", None, None, "c", "c", "d", "d", "e"]),
    "category": (["a", None, "b", "b", "a"], ["a", "a", None, None, "b", "b", "b", "b", "a"]),
    "timedelta64[us]": ([1, 2, 3, 4, 5], [1, 1, 2, 2, 3, 3, 4, 4, 5]),
    "object": (["a", None, [1], [1, 2], "e"], ["a", "a", None, None, [1], [1], [1, 2], [1, 2], "e"]),
    "int64[pyarrow]": ([1, None, 3, 4, 5], [1, 1, None, None, 3, 3, 4, 4, 5]),
    "double[pyarrow]": ([1, 2, 3, 4, 5], [1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5]),
}


@pytest.mark.parametrize("dtype", PANDAS)
def test_columns_of_pandas_keep_their_types_and_missing_values(dtype):
    pandas = pytest.importorskip("pandas")
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    values, wanted = PANDAS[dtype]
    frame = pandas.DataFrame({"t": np.arange(5) * 0.1, "c": pandas.Series(values, dtype=dtype)})
    got = tmaops.resample(frame, hz=20)["c"]
    assert got.dtype == frame["c"].dtype
    unit = pandas.Timedelta("1us")
    assert [
        value / unit
        if "delta" in dtype
        else None
        if value is not None and value is pandas.NA or value is None or value != value
        else value
        for value in got
    ] == wanted


def test_times_of_pandas_may_be_of_nullable_and_zoned_types():
    pandas = pytest.importorskip("pandas")
    zoned = pandas.date_range("2026-03-29 00:59:59.9", periods=5, freq="100ms", tz="UTC").tz_convert(
        "Europe/Berlin"
    )  # the clock goes forward
    for times in (
        pandas.array([0, 100, 200, 300, 400], dtype="Int64"),
        zoned,
        pandas.Series(zoned).astype("timestamp[us, tz=Europe/Berlin][pyarrow]"),
    ):
        frame = pandas.DataFrame({"stamp": times, "x": np.arange(5.0)})
        got = (
            tmaops.resample(frame, hz=20, time_unit="ms")
            if frame["stamp"].dtype == "Int64"
            else tmaops.resample(frame, hz=20)
        )
        assert got["stamp"].dtype == frame["stamp"].dtype and len(got) == 9
        assert got["stamp"][2] == frame["stamp"][1] and got["x"][3] == 1.5
        assert got["stamp"][3] - got["stamp"][2] == got["stamp"][1] - got["stamp"][0]


def test_what_has_no_data_is_missing_and_renamed_columns_keep_their_types():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "t": [0.0, 0.1, 0.9, 1.0],
            "label": pandas.Categorical(list("abcd")),
            "n": pandas.array([1, 2, 3, 4], dtype="Int8"),
        }
    )
    got = tmaops.resample(frame, times=[0.05, 0.5, 0.95], max_gap=0.2, columns="state=label,count=n")
    assert list(got.columns) == ["t", "state", "count", "valid"] and got["valid"].tolist() == [True, False, True]
    assert got["state"].dtype == frame["label"].dtype and got["count"].dtype == "Int8"
    assert got["state"].isna().tolist() == got["count"].isna().tolist() == [False, True, False]
    assert (got["state"][2], got["count"][2]) == ("c", 3)
    later = tmaops.resample(frame, times=[0.07, 0.97], mode={"label": "next", "n": "nearest"})
    assert later["label"].tolist() == ["b", "d"] and later["n"].tolist() == [2, 4]


def test_columns_of_polars_keep_their_types_zones_and_missing_values():
    polars = pytest.importorskip("polars")
    import datetime
    import decimal

    start = datetime.datetime(2026, 1, 1, 12)
    stamps = [start + datetime.timedelta(milliseconds=100 * i) for i in range(5)]
    columns = {
        "t": polars.Series(np.arange(5) * 0.1),
        "day": polars.Series([datetime.date(2026, 1, i + 1) for i in range(5)]),
        "seen": polars.Series(stamps).dt.replace_time_zone("Asia/Tokyo"),
        "lost": polars.Series([None, *stamps[1:]]),
        "n": polars.Series([1, None, 3, 4, 5], dtype=polars.Int16),
        "small": polars.Series([1, 2, 3, 4, 5], dtype=polars.UInt8),
        "x": polars.Series([1.0, None, 3.0, 4.0, 5.0], dtype=polars.Float32),
        "open": polars.Series([True, None, False, False, True]),
        "label": polars.Series(["a", None, "b", "b", "a"], dtype=polars.Categorical),
        "text": polars.Series(["a", None, "b", "b", "a"]),
        "took": polars.Series([datetime.timedelta(seconds=i) for i in range(5)]),
        "price": polars.Series([decimal.Decimal(i) for i in range(5)]),
        "pose": polars.Series([{"a": 1.0, "b": "x"}] * 5),
        "ragged": polars.Series([[1.0], [1.0, 2.0], [], [3.0], None]),
        "state": polars.Series([[0.0, 1.0 * i] for i in range(5)]),
        "eef_quat": polars.Series([[0.0, 0.0, 0.0, 1.0]] * 5, dtype=polars.Array(polars.Float64, 4)),
    }
    frame = polars.DataFrame(columns)
    got, report = tmaops.resample(frame, hz=20, report=True)
    assert got.schema == {**frame.schema, "valid": polars.Boolean} and report.time["name"] == "t"
    assert dict(report.modes)["eef_quat"] == "slerp" and dict(report.modes)["state"] == "linear"
    assert got["state"].to_list()[3] == [0.0, 1.5]
    assert got["x"].to_list() == [1.0, None, None, None, 3.0, 3.5, 4.0, 4.5, 5.0]
    before = [min(i // 2, 4) for i in range(9)]
    for name in set(columns) - {"t", "x", "state", "eef_quat"}:
        assert got[name].to_list() == [frame[name].to_list()[row] for row in before], name


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_times_of_polars_keep_their_unit_and_zone(unit, zone):
    polars = pytest.importorskip("polars")
    import datetime

    start = datetime.datetime(2026, 11, 1, 5, 59, 59, 900_000)  # in New York the clock goes back at 6:00 UTC
    stamps = polars.Series(
        [start + datetime.timedelta(milliseconds=100 * i) for i in range(5)], dtype=polars.Datetime(unit)
    )
    if zone:
        stamps = stamps.dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    frame = polars.DataFrame({"when": stamps, "x": np.arange(5.0)})
    got = tmaops.resample(frame, hz=20)
    assert got["when"].dtype == frame["when"].dtype and len(got) == 9
    assert got["when"].gather_every(2).equals(frame["when"])
    assert got["x"].to_list() == [i / 2 for i in range(9)]


def test_torch_tensors_come_back_as_torch_tensors():
    torch = pytest.importorskip("torch")
    got = tmaops.resample({"t": torch.arange(4.0), "x": torch.arange(4.0, dtype=torch.bfloat16)[:, None]}, hz=2)
    assert got["x"].dtype is torch.bfloat16 and got["x"][1].item() == 0.5
    assert got["valid"].dtype is torch.bool


class Episodes:
    def __len__(self):
        return 6

    def __getitem__(self, index):
        return recording(11 + index)


@pytest.mark.parametrize("start, workers", [("fork", 2), ("spawn", 2), ("forkserver", 1), (None, 0)])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_workers_of_a_data_loader_collate_episodes(start, workers):
    torch = pytest.importorskip("torch")
    loader = torch.utils.data.DataLoader(
        Episodes(),
        batch_size=3,
        num_workers=workers,
        collate_fn=tmaops.data.Resample(hz=20),
        multiprocessing_context=start,
    )
    batches = list(loader)
    assert [batch["length"].tolist() for batch in batches] == [[21, 23, 25], [27, 29, 31]]
    state = batches[1]["observation.state"]
    assert state.shape == (3, 31, 2) and state.dtype is torch.float32
    torch.testing.assert_close(state[0, :27, 0], torch.arange(27) * 0.05)
    assert (state[0, 27:] == state[0, 26]).all()
    assert len(batches[0]["task"]) == 3


def test_a_batch_loses_no_array_and_no_number():
    def collated(state, **more):
        return tmaops.data.Resample(hz=1)(
            [{"t": np.arange(3.0), "state": np.arange(3)}, {"t": np.arange(3.0), "state": state, **more}]
        )

    got = collated(np.arange(3) + 0.5)["state"]
    assert np.asarray(got).tolist() == [[0, 1, 2], [0.5, 1.5, 2.5]]
    with pytest.raises(tmaops.InvalidValue, match="recording 1 of the batch(.|\n)*'force': .."):
        collated(np.arange(3), force=np.zeros(3))
    with pytest.raises(tmaops.InvalidValue, match="'state': .1,.(.|\n)*'state': .."):
        collated(np.zeros((3, 1)))
    with pytest.raises(tmaops.InvalidValue, match="recording 1 of the batch(.|\n)*0 rows"):
        tmaops.data.Resample(hz=1)([{"t": np.arange(3.0)}, {"t": np.arange(0.0)}])
    with pytest.raises(tmaops.InvalidType, match="a dictionary of arrays"):
        tmaops.data.Resample(hz=1)([np.arange(3.0)])


class Aligned(Episodes):
    """The step in the worker itself, and the library's own call behind it."""

    def __getitem__(self, index):
        found = tmaops.data.ResampleStep(hz=20)(super().__getitem__(index))
        return tmaops.resample(found["observation.state"][None], found["timestamp"], np.array([0.1, 0.2]))


def test_what_has_no_rows_stays_that_of_each_recording_of_a_batch():
    """Also where its length is the number of rows of all."""
    recordings = [
        {
            "t": np.arange(6) / 10,
            "x": np.arange(6.0),
            "task": f"task {i}",
            "scale": np.array(i),
            "camera": np.ones(9) * i,
        }
        for i in range(3)
    ]
    with pytest.warns(UserWarning, match="'camera' stays as it is"):
        got = tmaops.data.Resample(hz=5)(recordings)
    assert np.asarray(got["x"]).shape == (3, 3)
    for name in ("task", "scale", "camera"):
        for own, recording in zip(got[name], recordings, strict=True):
            np.testing.assert_array_equal(own, recording[name])


def test_an_option_of_the_operator_holds_for_recordings_too():
    recording, times = {"t": np.arange(3.0), "x": np.arange(3.0)}, np.array([-1.0, 0.5, 5.0])
    assert tmaops.resample(recording, times=times, outside="hold")["x"].tolist() == [0, 0.5, 2]
    assert np.isnan(tmaops.resample(recording, times=times)["x"]).tolist() == [True, False, True]


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_workers_of_a_data_loader_call_the_tool_and_the_library(start):
    torch = pytest.importorskip("torch")
    tmaops.resample(np.zeros((64, 2000, 16)), np.arange(2000.0), np.arange(1999.0))  # the parent's threads exist
    got = list(torch.utils.data.DataLoader(Aligned(), batch_size=6, num_workers=2, multiprocessing_context=start))
    torch.testing.assert_close(got[0][0, 0, :, 1], torch.tensor([0.2, 0.4]))


def transition():
    """An episode as LeRobot's processors pass it on."""
    found = recording()
    times = found.pop("timestamp")
    names = found.pop("joint_names")
    action = np.stack([times, -times], 1)
    return {
        "observation": {"timestamp": times, **found},
        "action": action,
        "reward": 0.0,
        "done": False,
        "info": {"names": names, "who": {}},
    }


def test_a_step_resamples_everything_that_has_rows_and_leaves_the_rest():
    step = tmaops.data.ResampleStep(hz=20, mode={"action": "previous"})
    before = transition()
    got = step(before)
    assert list(got) == list(before) and list(got["observation"])[:5] == list(before["observation"])
    assert len(got["observation"]["timestamp"]) == len(got["action"]) == 21 and got["observation"]["valid"].all()
    np.testing.assert_array_equal(got["action"][1], before["action"][0])
    assert got["observation"]["task"][11] == "pick" and (got["reward"], got["done"]) == (0.0, False)
    np.testing.assert_array_equal(got["info"]["names"], ["a", "b"])
    assert len(before["observation"]["timestamp"]) == 11 and "valid" not in before["observation"]
    flat = tmaops.data.ResampleStep(hz=20)(recording())
    np.testing.assert_array_equal(flat["eef_quat"], tmaops.resample(recording(), hz=20)["eef_quat"])
    with pytest.raises(ValueError, match="'gripper' in two places"):
        step({**before, "gripper": np.zeros(11)})


def test_a_step_describes_itself():
    import json

    step = tmaops.data.ResampleStep(times=np.array([0.25, 0.5]), max_gap=1.0)
    again = tmaops.data.ResampleStep(**json.loads(json.dumps(step.get_config())))
    np.testing.assert_array_equal(again(recording())["gripper"], step(recording())["gripper"])


def test_columns_are_resampled_without_another_process(monkeypatch):
    pandas = pytest.importorskip("pandas")
    monkeypatch.setattr("os.fork", lambda: pytest.fail("a process is started"))
    monkeypatch.setattr("subprocess.Popen", lambda *_, **__: pytest.fail("a process is started"))
    frame = {name: column for name, column in recording().items() if column.ndim == 1 and len(column) == 11}
    for given in (frame, pandas.DataFrame(frame)):
        assert len(tmaops.resample(given, hz=20)["gripper"]) == 21


def test_nothing_of_pandas_or_polars_is_imported():
    import subprocess

    code = "import sys, numpy, tmaops; tmaops.resample({'t': numpy.arange(3.0)}, hz=2); print(bool({'pandas', 'polars', 'torch'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


@pytest.mark.parametrize("kind", ["dict", "pandas", "polars"])
@pytest.mark.parametrize("episodes", [["left", "right"], [7, 3]])
def test_rows_of_a_group_are_an_episode_of_their_own(kind, episodes):
    seconds = np.concatenate([np.arange(0, 1, 0.1), np.arange(0, 0.5, 0.1)])
    recording = {
        "time": seconds,
        "who": np.array([episodes[0]] * 10 + [episodes[1]] * 5),
        "x": np.concatenate([np.arange(0, 1, 0.1), 100 + np.arange(0, 0.5, 0.1)]),
    }
    if kind != "dict":
        recording = pytest.importorskip(kind).DataFrame(recording)
    made = tmaops.resample(recording, hz=20, time="time", group="who")
    who, x = (list(made[name]) for name in ("who", "x"))
    first = [value for name, value in zip(who, x) if name == episodes[0]]
    second = [value for name, value in zip(who, x) if name == episodes[1]]
    np.testing.assert_allclose(first, np.arange(19) * 0.05, atol=1e-6)
    np.testing.assert_allclose(second, 100 + np.arange(9) * 0.05, atol=1e-5)  # nothing between 0.9 and 100
    with pytest.raises(tmaops.Error, match="wo"):
        tmaops.resample(recording, hz=20, time="time", group="wo")


def test_real_numbers_of_any_frame_are_interpolated():
    """Objects that are floats, sparse columns, decimals with digits behind the point, and lists of lists."""
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    times, x = np.arange(5) * 0.1, [0.0, 1.0, 2.0, None, 4.0]
    frame = pandas.DataFrame({"t": times, "x": pandas.Series(x, dtype=object)})
    frame["sparse"] = pandas.arrays.SparseArray(times)
    poses = [np.empty(2, object) for _ in range(5)]  # as pandas reads lists of lists from Parquet
    for i, pose in enumerate(poses):
        pose[0], pose[1] = np.array([i, 0.0]), np.array([0.0, i])
    frame["pose"] = poses
    made = tmaops.resample(frame, hz=20)
    assert made["x"].tolist()[:4] == [0.0, 0.5, 1.0, 1.5] and made.dtypes["x"].kind == "O"
    assert made["sparse"].dtype == frame["sparse"].dtype and made["sparse"][1] == pytest.approx(0.05)
    assert np.array(made["pose"][1]).tolist() == [[0.5, 0], [0, 0.5]]
    lists = [[[float(i), 0.0], [0.0, 1.0]] for i in range(5)]
    other = {"list": lists, "array": polars.Series(lists, dtype=polars.Array(polars.Float64, (2, 2)))}
    other["price"] = polars.Series([decimal.Decimal(f"{i}.00") for i in range(5)], dtype=polars.Decimal(10, 2))
    made = tmaops.resample(polars.DataFrame({"t": times, **other}), hz=20)
    assert made["list"].to_list()[1] == made["array"].to_list()[1] == [[0.5, 0], [0, 1]]
    assert made["price"].to_list()[1] == decimal.Decimal("0.50") and made.dtypes[1:4] == [
        polars.List(polars.List(polars.Float64)),
        polars.Array(polars.Float64, (2, 2)),
        polars.Decimal(10, 2),
    ]


@pytest.mark.filterwarnings("ignore:tmaops.resample_columns")
def test_dictionaries_in_a_column_of_pandas_may_lack_keys_and_be_missing():
    pandas = pytest.importorskip("pandas")
    poses = [{"x": 0, "n": 1, 3: None}, {"x": 0.5, "n": 2}, float("nan"), {"x": 1.5, "n": 4}, {"x": 2, "n": 5, 3: 2.5}]
    frame = pandas.DataFrame(
        {"t": np.arange(5) * 0.1, "pose": poses, "other": [{}] * 5, "mixed": [{"x": 1.0}, 2] + [None] * 3}
    )
    made, report = tmaops.resample(frame, hz=20, report=True)
    assert made["pose"].tolist()[:3] == [
        {"x": 0, "n": 1, 3: None},
        {"x": 0.25, "n": 1, 3: None},
        {"x": 0.5, "n": 2, 3: None},
    ]
    assert made["pose"].tolist()[3:6] == [{"x": None, "n": 2, 3: None}, None, None]
    assert made["pose"].tolist()[7:] == [{"x": 1.75, "n": 4, 3: None}, {"x": 2, "n": 5, 3: 2.5}]
    assert made["other"].tolist() == [{}] * 9 and made["mixed"].tolist()[:3] == [{"x": 1.0}] * 2 + [2]
    assert dict(report.modes)["pose.n"] == dict(report.modes)["other"] == "previous"


def test_a_null_among_times_is_said():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"time": pandas.array([0, 20, None, 60], "Int64"), "x": np.arange(4.0)})
    with pytest.raises(tmaops.Error, match="'time'\\n  got:    1 null") as caught:
        tmaops.resample_columns(frame, hz=20)
    assert caught.value.number == "E031"


def test_an_array_of_nearly_as_many_rows_is_a_warning():
    times = np.arange(40) * 0.02
    given = {"t": times, "x": times, "y": times[:-1], "k": np.eye(3)}
    with pytest.warns(UserWarning, match="array 'y' stays as it is: it has 39 rows beside 40 samples"):
        made, report = tmaops.resample_columns(given, hz=25, report=True)
    assert len(report.warnings) == 1 and np.array_equal(made["y"], times[:-1])


@pytest.mark.parametrize("kind", ["f8", "i8", "M8[ms]", "U8"])
def test_times_of_one_column_are_times(kind):
    times = (np.arange(40) * 20).astype(kind)
    flat, tall = (
        tmaops.resample_columns({"t": t, "x": np.arange(40.0)}, hz=25, time_unit="ms") for t in (times, times[:, None])
    )
    np.testing.assert_array_equal(flat["t"], tall["t"])
    np.testing.assert_array_equal(flat["x"], tall["x"])


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
@pytest.mark.parametrize("kind", ["elapsed", "zoned", "arrow", "arrow elapsed", "index", "period", "objects"])
def test_targets_between_coarse_times_are_in_nanoseconds(kind, unit):
    pandas = pytest.importorskip("pandas")
    if "arrow" in kind:
        pytest.importorskip("pyarrow")
    elapsed = pandas.Series((np.arange(9) * {"s": 1, "ms": 1000, "us": 10**6}[unit]).astype(f"m8[{unit}]"))
    dates = elapsed + pandas.Timestamp(0, unit="s", tz="Asia/Tokyo").as_unit(unit)
    times = {
        "elapsed": lambda: elapsed,
        "zoned": lambda: dates,
        "arrow": lambda: dates.astype(f"timestamp[{unit}, tz=Asia/Tokyo][pyarrow]"),
        "arrow elapsed": lambda: elapsed.astype(f"duration[{unit}][pyarrow]"),
        "index": lambda: elapsed,
        "period": lambda: dates.dt.tz_localize(None).dt.to_period("s"),
        "objects": lambda: [date.to_pydatetime() for date in dates],
    }[kind]()
    given = {"when": times, "x": np.arange(9.0), "took": elapsed.to_numpy()}
    frame = given if kind == "objects" else pandas.DataFrame(given)
    got = tmaops.resample(frame.set_index("when") if kind == "index" else frame, hz=3, time="when")
    made = pandas.to_datetime(got["when"]) if kind == "objects" else pandas.Series(got.get("when", got.index))
    assert [(time - made[0]).value for time in made[:4]] == [0, 333333333, 666666667, 1000000000]
    np.testing.assert_allclose(got["x"][:4], [0, 1 / 3, 2 / 3, 1], atol=1e-8)
    assert got["took"].dtype == elapsed.dtype  # of other columns the type stays


def test_durations_of_polars_are_times():
    polars = pytest.importorskip("polars")
    took = polars.Series(np.arange(5) * 100).cast(polars.Duration("ms"))
    got = tmaops.resample(polars.DataFrame({"t": took, "x": np.arange(5.0)}), hz=30)
    assert got["t"].dt.total_nanoseconds().to_list()[:3] == [0, 33333333, 66666667]
    np.testing.assert_allclose(got["x"][:4], [0, 1 / 3, 2 / 3, 1], atol=1e-8)


@pytest.mark.parametrize("kind", ["dict", "pandas"])
@pytest.mark.parametrize("name", ["t", "when"])
@pytest.mark.parametrize("first", [datetime.timedelta(0), datetime.datetime(2026, 1, 1)])
def test_durations_and_dates_of_python_are_times(first, name, kind):
    times = [first + datetime.timedelta(milliseconds=100 * i) for i in range(5)]
    given = {name: times, "x": np.arange(5.0)}
    if kind == "pandas":
        pandas = pytest.importorskip("pandas")
        given = pandas.DataFrame({name: pandas.Series(times, dtype=object), "x": np.arange(5.0)})
    got = tmaops.resample(given, hz=30)
    elapsed = (np.asarray(got[name]) - np.asarray(got[name])[0]).astype("m8[ns]").astype(int)
    assert elapsed.tolist()[:3] == [0, 33333333, 66666667]
    np.testing.assert_allclose(got["x"][:4], [0, 1 / 3, 2 / 3, 1], atol=1e-8)


@pytest.mark.parametrize("zone", [None, "Asia/Tokyo"])
def test_a_list_of_dates_of_pandas_comes_back_as_one(zone):
    pandas = pytest.importorskip("pandas")
    start = pandas.Timestamp("2026-01-01", tz=zone)
    dates = [start + pandas.Timedelta(100_000_004 * i, "ns") for i in range(3)]
    got = tmaops.resample({"timestamp": dates, "x": np.arange(3.0)}, hz=20)["timestamp"]
    assert len(got) == 5 and got.tolist() == [start + pandas.Timedelta(50 * i, "ms") for i in range(5)]


@pytest.mark.parametrize("times", [[], np.array([], dtype=object)])
def test_a_recording_without_samples_is_refused_by_name(times):
    with pytest.raises(tmaops.InvalidValue, match="without samples"):
        tmaops.resample({"timestamp": times, "x": np.array([])}, hz=10)


def test_a_dictionary_may_hold_rows_of_several_lengths_and_what_is_no_array():
    given = {"t": np.arange(4.0), "x": np.arange(4.0), "detections": [[1.0], [], [2.0, 3.0], [4.0]], "note": None}
    got = tmaops.resample(given, hz=2)
    assert list(got["detections"][:5]) == [[1.0], [1.0], [], [], [2.0, 3.0]] and got["note"] is None
    assert tmaops.data.Resample(hz=2)([given, given])["note"] == [None, None]
    with pytest.raises(tmaops.InvalidType, match="column 'obs'") as caught:
        tmaops.resample({**given, "obs": {"x": np.arange(4.0)}}, hz=2)
    assert "ResampleStep" in str(caught.value)


def test_categories_of_numbers_are_times_and_episodes():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"t": pandas.Categorical([0.0, 0.5, 1.0]), "x": [0.0, 1.0, 2.0]})
    got = tmaops.resample(frame, hz=4)
    assert got["t"].tolist() == got["x"].div(2).tolist() == [0, 0.25, 0.5, 0.75, 1]
    frame = pandas.DataFrame({"t": [0, 1, 0, 1.0], "x": np.arange(4.0), "run": pandas.Categorical([7, 7, 9, 9])})
    got = tmaops.resample(frame, hz=2, group="run")
    assert got["run"].tolist() == [7, 7, 7, 9, 9, 9] and got["run"].dtype == frame["run"].dtype


def test_an_index_with_the_name_of_times_holds_them_and_several_levels_are_refused():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": np.arange(5.0)}, index=pandas.Index(np.arange(5) / 10, name="time"))
    got = tmaops.resample(frame, hz=20)
    assert got.index.name == "time" and got.columns.tolist() == ["x", "valid"]
    np.testing.assert_allclose(got["x"], got.index * 10, atol=1e-8)
    levels = pandas.MultiIndex.from_product([["a", "b"], np.arange(5) / 10], names=["run", "time"])
    frame = pandas.DataFrame({"x": np.arange(10.0)}, index=levels)
    with pytest.raises(tmaops.InvalidValue, match="reset_index"):
        tmaops.resample(frame, hz=20)
    assert len(tmaops.resample(frame.reset_index(), hz=20, group="run")) == 18


def test_a_name_that_stands_twice_is_said():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.arange(9.0).reshape(3, 3), columns=["t", "x", "x"])
    with pytest.warns(UserWarning, match="the name 'x' stands twice and became 'x_2'"):
        assert tmaops.resample(frame, hz=1).columns.tolist()[:3] == ["t", "x", "x_2"]


def test_options_of_another_type_and_two_kinds_of_targets_are_refused():
    for asked in ({"hz": "30"}, {"hz": 1, "sort": "yes"}, {"hz": 1, "snap": "0.1"}):
        with pytest.raises(tmaops.InvalidType, match=f"option {list(asked)[-1]}"):
            tmaops.resample_columns(recording(), **asked)
    targets = {"times": np.arange(2.0), "like": recording()}
    for asked in (targets, {"hz": 1, "times": np.arange(2.0)}, {"hz": 1, "like": recording()}):
        with pytest.raises(tmaops.InvalidValue):
            tmaops.resample_columns(recording(), **asked)
    assert tmaops.resample_columns(recording(), hz=20, start=np.float64(0.5))["timestamp"][0] == 0.5


@pytest.mark.parametrize("value", ["pick", 10, 2.5, True, None, np.float32(3), np.array(4)])
def test_a_value_beside_the_columns_comes_back_as_it_is(value):
    made = tmaops.resample({"timestamp": np.arange(9) / 8, "x": np.arange(9.0), "task": value}, hz=4)
    assert type(made["task"]) is type(value) and made["task"] == value


@pytest.mark.parametrize("option", ["hz", "max_gap"])
def test_a_rate_and_a_gap_of_zero_are_refused_as_zero(option):
    with pytest.raises(ValueError, match=rf"{option}\n  got:    0\n  needed: more than 0"):
        tmaops.resample({"timestamp": np.arange(9) / 8, "x": np.arange(9.0)}, **({"hz": 4} | {option: 0}))
