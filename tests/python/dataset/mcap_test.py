"""MCAP recordings of ROS 2 messages at mixed rates, written by the mcap library."""

import known
import numpy as np
import pyarrow.parquet as pq
import pytest

pytest.importorskip("mcap_ros2")
import tmaops.dataset
from mcap_ros2.writer import Writer
from tmaops.dataset import Refused

STAMP = "================================================================================\nMSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n"
HEADER = (
    "================================================================================\nMSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id\n"
    + STAMP
)
QUATERNION = "================================================================================\nMSG: geometry_msgs/Quaternion\nfloat64 x\nfloat64 y\nfloat64 z\nfloat64 w\n"
IMU = (
    "std_msgs/Header header\ngeometry_msgs/Quaternion orientation\nfloat64[9] covariance\nstring note\n"
    + HEADER
    + QUATERNION
)
BASE = 1_700_000_000_000_000_000


def stamp(ns):
    return {"sec": int(ns // 10**9), "nanosec": int(ns % 10**9)}


def record(path, rng):
    """IMU at 200 Hz with headers, a gripper at 30 Hz without, logged out of order. Returns what was written."""
    imu_times = BASE + np.arange(400) * 5_000_000 + rng.integers(-400_000, 400_000, 400)
    half = np.linspace(0, 1.2, 400)
    imu = np.stack([0 * half, 0 * half, np.sin(half), np.cos(half)], axis=1)
    grip_times = BASE + 70_000_000 + np.arange(50) * 33_333_333
    grip = rng.normal(size=50)
    with open(path, "wb") as file:
        writer = Writer(file)
        imu_type = writer.register_msgdef("sensor_msgs/msg/Imu", IMU)
        grip_type = writer.register_msgdef("std_msgs/msg/Float64", "float64 data\nint32 mode\n")
        for i in rng.permutation(400):
            header = {"stamp": stamp(imu_times[i]), "frame_id": "imu"}
            q = dict(zip("xyzw", imu[i], strict=True))
            message = {"header": header, "orientation": q, "covariance": [float(i)] * 9, "note": "text"}
            writer.write_message("/imu", imu_type, message, log_time=int(imu_times[i]) + 2_000_000)
        for i in range(50):
            writer.write_message("/grip", grip_type, {"data": grip[i], "mode": i}, log_time=int(grip_times[i]))
        writer.finish()
    return imu_times, imu, grip_times, grip


def test_topics_of_mixed_rates_come_onto_one_clock(tmp_path):
    imu_times, imu, grip_times, grip = record(tmp_path / "run.mcap", np.random.default_rng(2))
    report = tmaops.dataset.resample(tmp_path / "run.mcap", tmp_path / "run.parquet", hz=100, workers=1)
    assert "time of /imu: header.stamp" in report.notes and "time of /grip: the time of recording" in report.notes
    assert "left out: /imu.note (str)" in report.notes
    table = pq.read_table(tmp_path / "run.parquet")
    at = table.column("timestamp").cast("int64").to_numpy()
    assert at[0] == grip_times[0] and at[-1] <= min(imu_times[-1], grip_times[-1]) < at[-1] + 10_000_000
    assert (np.diff(at) == 10_000_000).all()

    def shift(t):
        return (np.asarray(t) - BASE) / 1e9

    np.testing.assert_allclose(
        np.stack(table.column("/imu.orientation").to_pylist()), known.slerp(imu, shift(imu_times), shift(at)), atol=1e-7
    )
    np.testing.assert_allclose(
        table.column("/grip.data").to_numpy(),
        known.linear(grip[:, None], shift(grip_times), shift(at))[:, 0],
        atol=1e-6,
    )
    assert table.column("/grip.mode").to_pylist() == known.previous(list(range(50)), grip_times, at)
    assert table.column("/imu.covariance").type.list_size == 9


def test_a_recording_that_breaks_off_gives_what_it_has_and_says_so(tmp_path):
    record(tmp_path / "whole.mcap", np.random.default_rng(2))
    data = (tmp_path / "whole.mcap").read_bytes()
    (tmp_path / "cut.mcap").write_bytes(data[:40])
    with pytest.raises(Refused, match="cut.mcap"):
        tmaops.dataset.resample(tmp_path / "cut.mcap", tmp_path / "cut.parquet", hz=100, workers=1)
    (tmp_path / "no_end.mcap").write_bytes(data[: data.rindex(b"\x89MCAP0") - 60])
    report = tmaops.dataset.resample(tmp_path / "no_end.mcap", tmp_path / "no_end.parquet", hz=100, workers=1)
    assert report.rows_read == 450
    assert any("breaks off after 450 messages" in warning for warning in report.warnings)
