"""Recordings of ROS 1, ROS 2 and MCAP at mixed rates, against their formulas."""

import contextlib
import json
import sqlite3

import known
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

for needed in ("rosbags", "mcap"):
    pytest.importorskip(needed)
import recorded
import tmaops.dataset
from mcap.writer import CompressionType
from recorded import BASE, about, as_json, imu, joints, number, text, transform, transforms
from rosbags.rosbag1 import Writer as Bag1Writer
from rosbags.rosbag2 import StoragePlugin
from tmaops.dataset import Refused

MS = 1_000_000


def resampled(source, tmp_path, name="out.parquet", **options):
    """The report, and the table that pyarrow and pandas open."""
    options = {"hz": 100, "workers": 1} | options
    report = tmaops.dataset.resample(source, tmp_path / name, **options)
    found = tmp_path / name
    table = pq.read_table(found if found.is_file() else next(found.rglob("*.parquet")))
    assert len(table.to_pandas()) == table.num_rows
    return report, table


def times_of(table):
    return table.column("timestamp").cast("int64").to_numpy()


def numbers(table, name):
    return np.array(table.column(name).to_pylist(), np.float64)


def ramp(count=200, step=10 * MS, topic="/x", begin=BASE, slope=1.0):
    """Messages of a number that grows by `slope` per second."""
    return [(topic, begin + i * step, number(slope * i * step / 1e9)) for i in range(count)]


def arm(order=("a", "b"), at=0, step=10 * MS, count=100, topic="/joint_states"):
    """Joint states: a is the seconds since the beginning, b ten more, ..."""
    made = []
    for i in range(count):
        ns = BASE + at + i * step
        value = {name: (ns - BASE) / 1e9 + 10 * k for k, name in enumerate(sorted(order))}
        made.append((topic, ns, joints(ns, order, [value[name] for name in order])))
    return made


def mixed_rates(store=recorded.ROS2):
    """An IMU at 200 Hz with jitter and headers, recorded 2 ms late and out of order; a gripper at 30 Hz without headers."""
    rng = np.random.default_rng(2)
    imu_times = BASE + np.arange(400) * 5 * MS + rng.integers(-400_000, 400_000, 400)
    turns = about(np.linspace(0, 2.4, 400))
    grip_times = BASE + 70 * MS + np.arange(50) * 33_333_333
    grip = rng.normal(size=50)
    rows = [("/imu", imu_times[i] + 2 * MS, imu(imu_times[i], turns[i], i, store)) for i in rng.permutation(400)]
    rows += [("/grip", grip_times[i], number(grip[i])) for i in range(50)]
    return rows, imu_times, turns, grip_times, grip


def written(kind, tmp_path, rows):
    if kind == "mcap":
        return recorded.write_mcap(tmp_path / "in.mcap", rows)
    if kind.startswith("bag"):
        compression = {
            "bag": None,
            "bag bz2": Bag1Writer.CompressionFormat.BZ2,
            "bag lz4": Bag1Writer.CompressionFormat.LZ4,
        }
        return recorded.write_bag(tmp_path / "in.bag", rows, compression[kind])
    plugin = StoragePlugin.MCAP if "mcap" in kind else StoragePlugin.SQLITE3
    folder = recorded.write_rosbag2(tmp_path / "in", rows, plugin, recorded.MODES.get(kind.split(" ")[-1]))
    return folder / "in.db3" if kind == "db3 alone" else folder


@pytest.mark.parametrize(
    "kind",
    [
        "mcap",
        "bag",
        "bag bz2",
        "bag lz4",
        "db3",
        "db3 alone",
        "rosbag2 mcap",
        "rosbag2 mcap file",
        "db3 file",
        "db3 message",
    ],
)
def test_every_kind_of_recording_gives_the_same_columns_on_one_clock(kind, tmp_path):
    rows, imu_times, turns, grip_times, grip = mixed_rates(recorded.ROS1 if kind.startswith("bag") else recorded.ROS2)
    report, table = resampled(written(kind, tmp_path, rows), tmp_path)
    assert report.rows_read == 450 and not report.warnings
    assert "time of /imu: header.stamp" in report.notes and "time of /grip: the time of recording" in report.notes
    at = times_of(table)
    assert at[0] == grip_times[0] and at[-1] <= min(imu_times[-1], grip_times[-1]) < at[-1] + 10 * MS
    assert (np.diff(at) == 10 * MS).all()
    seconds = [(np.asarray(t) - BASE) / 1e9 for t in (imu_times, grip_times, at)]
    np.testing.assert_allclose(
        numbers(table, "/imu.orientation"), known.slerp(turns, seconds[0], seconds[2]), atol=1e-7
    )
    np.testing.assert_allclose(
        numbers(table, "/grip.data"), known.linear(grip[:, None], seconds[1], seconds[2])[:, 0], atol=1e-6
    )
    assert table.column("/imu.linear_acceleration_covariance").type == pa.list_(pa.float64(), 9)
    assert report.columns["/imu.orientation"].startswith("slerp")


def test_every_standard_type_of_messages_is_read_as_rosbags_reads_it():
    from rosbags.interfaces import Nodetype
    from rosbags.typesys.base import normalize_fieldname
    from tmaops.dataset.layouts import RosMessages

    rng = np.random.default_rng(3)

    def number_of(kind):
        if kind == "string":
            return "abcdefgh"[: rng.integers(0, 8)]
        kind = np.dtype({"byte": "int8", "char": "uint8"}.get(kind, kind))
        return kind.type(rng.integers(0, 2 if kind.kind == "b" else 100)).item()

    def value(store, desc):
        node, what = desc
        if node == Nodetype.BASE:
            return number_of(what[0])
        if node == Nodetype.NAME:
            return store.types[what](**{normalize_fieldname(n): value(store, d) for n, d in store.fielddefs[what][1]})
        element, count = what
        values = [value(store, element) for _ in range(count if node == Nodetype.ARRAY else rng.integers(0, 3))]
        number = element[1][0] if element[0] == Nodetype.BASE else "string"
        kind = {"byte": "int8", "char": "uint8"}.get(number, number)
        return values if number == "string" else np.array(values, kind)

    compared = 0
    for store, ros1 in ((recorded.ROS2, False), (recorded.ROS1, True)):
        for kind in (
            kind for kind in store.fielddefs if "/msg/" in kind and not kind.endswith(("TFMessage", "tfMessage"))
        ):
            sent = [value(store, (Nodetype.NAME, kind)) for _ in range(4)]
            data = [
                bytes(store.serialize_ros1(m, kind) if ros1 else store.serialize_cdr(m, kind, little_endian=i % 2 == 0))
                for i, m in enumerate(sent)
            ]
            reader = RosMessages(store.fielddefs, kind, ros1)
            for block in reader.blocks(data):
                for path, column in block.values.items():
                    for row, got in zip(block.rows, column, strict=True):
                        expected = sent[row]
                        for step in path.split("."):
                            expected = getattr(expected, normalize_fieldname(step), None)
                        if expected is None:  # a joint by its name
                            continue
                        if path in reader.quaternions:
                            expected = [expected.x, expected.y, expected.z, expected.w]
                        assert np.array_equal(expected, got), f"{kind}: {path}: {got} for {expected}"
                        compared += 1
            assert not reader.broken, f"{kind}: {reader.reason}"
    assert compared > 4000


def test_a_message_of_json_beside_those_of_ros_costs_nothing(tmp_path):
    rows = ramp(200)
    rows.insert(51, ("/log", rows[50][1], as_json({"level": 3, "text": "warm"})))
    rows.insert(90, ("/odd", rows[80][1], ("flatbuffer", "", "", b"", b"\1\2\3")))
    report, table = resampled(recorded.write_mcap(tmp_path / "in.mcap", rows), tmp_path, hz=50)
    assert report.rows_read == 201 and table.num_rows == 100
    np.testing.assert_allclose(numbers(table, "/x.data"), np.arange(100) / 50, atol=1e-6)
    assert "left out: /log.text (text)" in report.notes
    assert "left out: /odd (messages in the encoding flatbuffer)" in report.notes
    assert set(table.column("/log.level").to_pylist()) == {3}


def test_messages_of_json_and_protobuf_become_columns(tmp_path):
    from google.protobuf import struct_pb2, timestamp_pb2
    from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

    def about_message(ns, value):
        return timestamp_pb2.Timestamp(seconds=int(ns // 10**9), nanos=int(ns % 10**9)).SerializeToString()

    described = FileDescriptorSet(file=[FileDescriptorProto.FromString(struct_pb2.DESCRIPTOR.serialized_pb)])
    rows = []
    schema = {"type": "object", "properties": {"x": {"type": "number"}, "pose": {"type": "object"}}}
    turns = about(np.linspace(0, 1, 100))
    for i in range(100):
        ns = BASE + i * 10 * MS
        pose = {"orientation": dict(zip("xyzw", turns[i].tolist(), strict=True))}
        stamp = {"sec": ns // 10**9, "nsec": ns % 10**9}
        value = {"timestamp": stamp, "x": i // 10, "n": i, "pose": pose, "name": ["j1", "j2"], "position": [i / 2, -i]}
        rows.append(("/json", ns + MS, as_json(value, schema)))
        if i % 7 == 0:
            del value["n"]
            rows[-1] = ("/json", ns + MS, as_json(value, schema))
        point = struct_pb2.Value(number_value=i / 4).SerializeToString()
        rows.append(
            ("/proto", ns, ("protobuf", "protobuf", "google.protobuf.Value", described.SerializeToString(), point))
        )
    report, table = resampled(recorded.write_mcap(tmp_path / "in.mcap", rows), tmp_path, hz=100)
    at = np.arange(100)
    assert "time of /json: header.stamp" in report.notes
    np.testing.assert_allclose(numbers(table, "/json.x"), at // 10)
    np.testing.assert_allclose(numbers(table, "/json.position.j1"), at / 2)
    np.testing.assert_allclose(numbers(table, "/json.position.j2"), -at)
    np.testing.assert_allclose(numbers(table, "/proto.number_value"), at / 4)
    np.testing.assert_allclose(numbers(table, "/json.pose.orientation"), turns, atol=1e-7)
    assert [v is None for v in table.column("/json.n").to_pylist()] == [i % 7 == 0 for i in range(100)]


def test_joints_are_columns_by_their_names_in_any_order(tmp_path):
    rows = arm(("a", "b"))
    swapped = arm(("b", "a"))
    rows = [swapped[i] if i % 3 == 1 else row for i, row in enumerate(rows)]
    _, table = resampled(recorded.write_mcap(tmp_path / "in.mcap", rows), tmp_path, hz=50)
    np.testing.assert_allclose(numbers(table, "/joint_states.position.a"), np.arange(50) / 50, atol=1e-9)
    np.testing.assert_allclose(numbers(table, "/joint_states.position.b"), 10 + np.arange(50) / 50, atol=1e-9)
    assert not any("velocity" in name or "effort" in name for name in table.column_names)


def test_interfaces_and_joints_of_several_axes_have_names_and_waypoints_have_none(tmp_path):
    def state(i):
        return {
            "joint_names": ["a", "b"],
            "interface_values": [
                {"interface_names": ["position", "effort"], "values": [i, -i]},
                {"interface_names": ["position"], "values": [2 * i]},
            ],
            "points": [{"positions": [i, i]}, {"positions": [i, i]}],
        }

    types = recorded.ROS2.types
    rows = []
    for i in range(100):
        ns = BASE + i * 10 * MS
        moves = [transform(ns, "", "", (k * i, 0, 0), (0, 0, 0, 1)).transform for k in (1, 2)]
        point = types["trajectory_msgs/msg/JointTrajectoryPoint"]
        points = [point(*[np.ones(2)] * 4, types["builtin_interfaces/msg/Duration"](1, 2)) for _ in range(2)]
        rows.append(("/states", ns, as_json(state(i))))
        made = types["sensor_msgs/msg/MultiDOFJointState"](recorded.header(ns), ["a", "b"], moves, [], [])
        rows.append(("/multi", ns, made))
        made = types["trajectory_msgs/msg/JointTrajectory"](recorded.header(ns), ["a", "b"], points)
        rows.append(("/plan", ns, made))
    report, table = resampled(recorded.write_mcap(tmp_path / "in.mcap", rows), tmp_path)
    for name, slope in (("a.values.position", 1), ("a.values.effort", -1), ("b.values.position", 2)):
        np.testing.assert_array_equal(numbers(table, f"/states.interface_values.{name}"), slope * np.arange(100))
    np.testing.assert_array_equal(numbers(table, "/multi.transforms.b.translation.x"), 2 * np.arange(100))
    assert "left out: /plan.points (a list of JointTrajectoryPoint)" in report.notes
    assert not any("/plan" in name or ".points" in name for name in table.column_names)


def test_a_joint_that_a_message_lacks_is_a_missing_value(tmp_path):
    rows = arm(("a", "b"))
    rows[40] = arm(("a",))[40]
    _, table = resampled(recorded.write_mcap(tmp_path / "in.mcap", rows), tmp_path, hz=100)
    b = table.column("/joint_states.position.b").to_pylist()
    assert [i for i, v in enumerate(b) if v is None] == [40]
    np.testing.assert_allclose(numbers(table, "/joint_states.position.a"), np.arange(100) / 100, atol=1e-9)


def test_two_publishers_of_joints_on_one_topic_do_not_mix(tmp_path):
    rows = arm(("a", "b")) + arm(("grip",), at=3 * MS, step=25 * MS, count=40)
    rows.sort(key=lambda row: row[1])
    report, table = resampled(recorded.write_mcap(tmp_path / "in.mcap", rows), tmp_path, hz=50)
    at = (times_of(table) - BASE) / 1e9
    for name, offset in (("a", 0), ("b", 10), ("grip", 0)):
        np.testing.assert_allclose(numbers(table, f"/joint_states.position.{name}"), offset + at, atol=1e-9)
    assert not report.warnings


def test_transforms_are_poses_by_their_frames_and_turn_by_slerp(tmp_path):
    turns = about(np.linspace(0, 3, 101))
    rows = []
    for i in range(101):
        ns = BASE + i * 20 * MS
        both = (
            transform(ns, "map", "base", (i, 0, 0), turns[i]),
            transform(ns + MS, "base", "cam", (0, i, 0), -turns[i]),
        )
        rows.append(("/tf", ns, transforms(*(both if i % 2 else both[::-1]))))
    rows.append(("/tf_static", BASE, transforms(transform(BASE, "base", "lidar", (1, 2, 3), about([0.5])[0]))))
    report, table = resampled(recorded.write_mcap(tmp_path / "in.mcap", rows), tmp_path, hz=37)
    at = times_of(table)
    for parent, child, begin in (("map", "base", 0), ("base", "cam", MS)):
        times = (np.arange(101) * 20 * MS + begin) / 1e9
        expected = known.slerp(turns, times, (at - BASE) / 1e9)
        got = numbers(table, f"/tf.{parent}.{child}.rotation")
        np.testing.assert_allclose(np.abs((got * expected).sum(1)), 1, atol=1e-7)
    np.testing.assert_allclose(numbers(table, "/tf.map.base.translation.x"), (at - BASE) / 20e6, atol=1e-6)
    np.testing.assert_allclose(numbers(table, "/tf_static.base.lidar.translation.z"), 3)
    np.testing.assert_allclose(numbers(table, "/tf_static.base.lidar.rotation"), np.tile(about([0.5]), (len(at), 1)))
    assert report.columns["/tf_static.base.lidar.rotation"] == "previous (held: one message)"


def test_transforms_of_json_are_poses_too(tmp_path):
    rows = []
    for i in range(50):
        stamp = {"sec": (BASE + i * 20 * MS) // 10**9, "nsec": (BASE + i * 20 * MS) % 10**9}
        moved = {"translation": {"x": 2 * i, "y": 0, "z": 1}, "rotation": {"x": 0, "y": 0, "z": 0, "w": 1}}
        one = {"timestamp": stamp, "parent_frame_id": "map", "child_frame_id": "base", **moved}
        two = {"header": {"stamp": stamp, "frame_id": "map"}, "child_frame_id": "arm", "transform": moved}
        rows.append(("/pose", BASE + i * 20 * MS + MS, as_json(one)))
        rows.append(("/tf", BASE + i * 20 * MS + MS, as_json({"transforms": [two]})))
    report, table = resampled(recorded.write_mcap(tmp_path / "in.mcap", rows), tmp_path)
    assert "time of /pose.map.base: header.stamp" in report.notes
    for name in ("/pose.map.base", "/tf.map.arm"):
        np.testing.assert_allclose(numbers(table, f"{name}.translation.x"), np.arange(99), atol=1e-5)
        np.testing.assert_array_equal(numbers(table, f"{name}.rotation")[:, 3], 1)


def test_what_is_latched_or_has_no_column_does_not_cut_the_span(tmp_path):
    rows = ramp(200) + [("/robot_description", BASE, text("<robot/>")), ("/gain", BASE + 900 * MS, number(4))]
    rows += [("/event", BASE + t * MS, text("hit")) for t in (500, 1500)]
    rows += [("/map", BASE + t * MS, number(t)) for t in (300, 700)]
    rows.sort(key=lambda row: row[1])
    source = recorded.write_mcap(tmp_path / "in.mcap", rows, latched=("/map", "/robot_description"))
    report, table = resampled(source, tmp_path, hz=50)
    assert table.num_rows == 100 and not report.warnings
    assert set(numbers(table, "/gain.data")) == {4}
    at = (times_of(table) - BASE) // MS
    np.testing.assert_array_equal(numbers(table, "/map.data"), np.where(at < 700, 300, 700))
    assert "left out: /event.data (text)" in report.notes
    assert "time of /gain: held, one message" in report.notes


def test_a_topic_that_cuts_the_span_is_named(tmp_path):
    rows = ramp(200) + ramp(5, topic="/short", begin=BASE + 500 * MS)
    report, table = resampled(recorded.write_mcap(tmp_path / "in.mcap", rows), tmp_path, hz=100)
    assert table.num_rows == 5
    (warning,) = report.warnings
    assert "0.04 of 1.99 s" in warning and "--topics=-/short" in warning
    report, table = resampled(tmp_path / "in.mcap", tmp_path, "all.parquet", topics=["-/short"])
    assert table.num_rows == 200 and not report.warnings


def test_an_option_that_no_recording_can_have_is_refused_as_such(tmp_path):
    recorded.write_mcap(tmp_path / "in.mcap", ramp())
    with pytest.raises(Refused, match="^start: got 'nan'; needed seconds of the recording's clock.*"):
        resampled(tmp_path / "in.mcap", tmp_path, start="nan")


def test_topics_are_chosen_by_name_and_pattern(tmp_path, capsys):
    rows = ramp(topic="/a/x") + ramp(topic="/a/y") + ramp(topic="/b")
    source = str(recorded.write_mcap(tmp_path / "in.mcap", rows))
    from tmaops.dataset.cli import main

    for k, (asked, expected) in enumerate(
        [
            (["--topics", "/a/x,/b"], {"/a/x.data", "/b.data"}),
            (["--topics", "-/a/*"], {"/b.data"}),
            (["--topics=/a/*,-/a/y"], {"/a/x.data"}),
        ]
    ):
        out = str(tmp_path / f"out{k}.parquet")
        assert main(["resample", source, out, "--hz", "10", "--quiet", *asked]) == 0
        assert set(pq.read_table(out).column_names) - {"timestamp"} == expected
    assert main(["resample", source, str(tmp_path / "no.parquet"), "--hz", "10", "--topics", "/c"]) == 2
    assert "'/c', and no such topic" in capsys.readouterr().err


def test_stamps_that_are_not_set_fall_back_to_the_time_of_recording(tmp_path):
    rows = [("/joints", BASE + i * 10 * MS, joints(0, "a", [i])) for i in range(100)]
    report, table = resampled(recorded.write_mcap(tmp_path / "in.mcap", rows), tmp_path)
    assert "time of /joints: the time of recording: 100 of 100 header stamps are 0" in report.notes
    np.testing.assert_allclose(numbers(table, "/joints.position.a"), np.arange(100))


def test_simulated_time_beside_wall_time_is_refused_with_the_option_that_helps(tmp_path):
    rows = [("/joints", BASE + i * 10 * MS, joints(i * 10 * MS, "a", [i])) for i in range(100)]
    source = recorded.write_mcap(tmp_path / "in.mcap", rows + ramp(100))
    with pytest.raises(Refused, match="simulated time in /joints and wall time in /x; .*--time record"):
        resampled(source, tmp_path)
    _, table = resampled(source, tmp_path, "record.parquet", times="record")
    np.testing.assert_allclose(numbers(table, "/joints.position.a"), np.arange(100))
    report, table = resampled(source, tmp_path, "sim.parquet", topics="/joints")
    assert times_of(table)[0] == 0 and "time of /joints: header.stamp" in report.notes


def test_quaternions_that_are_not_set_are_null_and_cost_nothing_else(tmp_path):
    turns = about(np.linspace(0, 1, 100))
    turns[50], turns[70] = 0, np.nan
    rows = [("/imu", BASE + i * 10 * MS, imu(BASE + i * 10 * MS, turns[i], i)) for i in range(100)]
    rows += [("/still", BASE + i * 10 * MS, imu(BASE + i * 10 * MS, (0, 0, 0, 0), i)) for i in range(100)]
    report, table = resampled(recorded.write_mcap(tmp_path / "in.mcap", rows), tmp_path)
    missing = [i for i, value in enumerate(table.column("/imu.orientation").to_pylist()) if value is None]
    assert missing == [50, 70] and table.num_rows == 100
    np.testing.assert_allclose(numbers(table, "/still.angular_velocity.x"), np.arange(100))
    assert "left out: /still.orientation (no quaternion is set)" in report.notes
    assert any("2 of 100 quaternions of /imu.orientation are not set" in warning for warning in report.warnings)


def test_a_repeated_stamp_costs_one_message(tmp_path):
    rows = arm(("a",))
    rows.insert(51, (rows[50][0], rows[50][1] + MS, joints(rows[50][1], "a", [7.0])))
    report, table = resampled(recorded.write_mcap(tmp_path / "in.mcap", rows), tmp_path)
    assert table.num_rows == 100 and numbers(table, "/joint_states.position.a")[50] == 7
    assert any("1 messages of /joint_states repeat a time" in warning for warning in report.warnings)
    modes = {"/joint_states.position.a": "count"}
    assert sum(numbers(resampled(tmp_path / "in.mcap", tmp_path, "b.parquet", modes=modes)[1], [*modes][0])) == 101


@pytest.mark.parametrize("kind", ["mcap", "unchunked mcap", "bag", "bag without index", "db3"])
def test_a_recording_that_breaks_off_gives_what_it_has_and_says_so(kind, tmp_path):
    rows = ramp(4000)
    if kind == "mcap":
        path = recorded.write_mcap(tmp_path / "in.mcap", rows, chunk_size=8192)
    elif kind == "unchunked mcap":
        path = recorded.write_mcap(tmp_path / "in.mcap", rows, use_chunking=False, compression=CompressionType.NONE)
    elif kind == "db3":
        path = recorded.write_rosbag2(tmp_path / "in", rows) / "in.db3"
    else:
        path = recorded.write_bag(tmp_path / "in.bag", rows)
    data = path.read_bytes()
    cut = tmp_path / f"cut{path.suffix}"
    if kind == "bag without index":  # as rosbag record leaves it when it is killed
        cut.write_bytes(data.replace(b"index_pos=" + data.split(b"index_pos=")[1][:8], b"index_pos=" + bytes(8), 1))
    else:
        cut.write_bytes(data[: int(len(data) * 0.6)])
    report, table = resampled(cut, tmp_path)
    (warning,) = [w for w in report.warnings if "breaks off" in w]
    assert f"breaks off after {report.rows_read} messages" in warning
    assert (1500 < report.rows_read < 3000 or kind == "bag without index") and table.num_rows > 1000
    np.testing.assert_allclose(numbers(table, "/x.data"), np.arange(table.num_rows) / 100, atol=1e-6)


def test_a_chunk_whose_numbers_changed_is_not_used(tmp_path):
    path = recorded.write_mcap(tmp_path / "in.mcap", ramp(1000), chunk_size=8192, compression=CompressionType.NONE)
    data = bytearray(path.read_bytes())
    at = data.index(np.float64(5.0).tobytes())  # the message after 5 s
    data[at + 6] ^= 1
    path.write_bytes(bytes(data))
    report, table = resampled(path, tmp_path)
    (warning,) = [w for w in report.warnings if "breaks off" in w]
    assert "crc" in warning and 300 < table.num_rows <= 500
    np.testing.assert_allclose(numbers(table, "/x.data"), np.arange(table.num_rows) / 100, atol=1e-6)


def test_messages_that_are_cut_short_are_counted_and_left_out(tmp_path):
    rows = arm(("a", "b"))
    schema = recorded.ROS2.generate_msgdef("sensor_msgs/msg/JointState", ros_version=2)[0].encode()

    def raw(i, size):
        whole = bytes(recorded.ROS2.serialize_cdr(rows[i][2], "sensor_msgs/msg/JointState"))
        return ("cdr", "ros2msg", "sensor_msgs/msg/JointState", schema, whole[:size])

    rows[20], rows[30] = (*rows[20][:2], raw(20, 30)), (*rows[30][:2], raw(30, 3))
    report, table = resampled(recorded.write_mcap(tmp_path / "in.mcap", rows), tmp_path)
    assert table.num_rows == 100
    assert any("2 of 100 messages of /joint_states are left out" in warning for warning in report.warnings)


def test_a_type_that_is_not_defined_or_does_not_fit_is_left_out_by_topic(tmp_path):
    odd = ("cdr", "ros2msg", "my_msgs/msg/Odd", b"my_msgs/Missing thing\n", bytes(12))
    wrong = ("cdr", "ros2msg", "my_msgs/msg/Short", b"float64 x\nfloat64 y\n", bytes(12))
    broken = ("cdr", "ros2msg", "my_msgs/msg/Bad", b"\xff\xfe ?? [[\n", bytes(12))
    proto = ("protobuf", "protobuf", "a.B", b"\xff\xff", bytes(12))
    many = ("cdr", "ros2msg", "my_msgs/msg/Many", b"my_msgs/E[1000000000] e\n===\nMSG: my_msgs/E\nint8 x\n", bytes(12))
    rows = ramp(100) + [("/many", BASE + i * 10 * MS, many) for i in range(2)]
    rows += [(f"/{k}", BASE + i * 10 * MS, m) for k, m in enumerate((odd, wrong, broken, proto)) for i in range(100)]
    report, table = resampled(recorded.write_mcap(tmp_path / "in.mcap", rows), tmp_path)
    assert table.column_names == ["timestamp", "/x.data"] and table.num_rows == 100
    for k, why in enumerate(("my_msgs", "12 bytes where its definition gives 20", "definition", "definition")):
        assert any(note.startswith(f"left out: /{k} (") and why in note for note in report.notes), report.notes


def test_a_database_without_definitions_is_read_by_those_of_ros_itself(tmp_path):
    import sqlite3

    source = recorded.write_rosbag2(tmp_path / "in", arm(("a", "b"))) / "in.db3"
    with sqlite3.connect(source) as base:
        base.execute("update schema set schema_version = 3")
        base.execute("drop table message_definitions")
    _, table = resampled(source, tmp_path)
    np.testing.assert_allclose(numbers(table, "/joint_states.position.a"), np.arange(100) / 100, atol=1e-9)
    with sqlite3.connect(source) as base:
        base.execute("update topics set type = 'my_msgs/msg/Arm'")
    with pytest.raises(Refused, match="no definition of my_msgs/msg/Arm in the file: `ros2 bag convert`"):
        resampled(source, tmp_path, "no.parquet")


def split(folder, parts, metadata=None):
    folder.mkdir()
    for k, rows in enumerate(parts):
        recorded.write_mcap(folder / f"rec_{k}.mcap", rows)
    if metadata:
        listed = "".join(f"    - rec_{k}.mcap\n" for k in range(len(parts)))
        (folder / "metadata.yaml").write_text(
            f"rosbag2_bagfile_information:\n  version: 9\n  relative_file_paths:\n{listed}"
        )
    return folder


@pytest.mark.parametrize("metadata", [True, False])
def test_a_recording_in_several_files_is_one(metadata, tmp_path):
    rows = ramp(300)
    static = [("/tf_static", BASE, transforms(transform(BASE, "a", "b", (1, 2, 3), (0, 0, 0, 1))))]
    folder = split(tmp_path / "rec", [static + rows[:110], static + rows[110:200], static + rows[200:]], metadata)
    for path in folder.glob("*.mcap"):  # a recorder that begins a file writes what is latched again, at its time
        assert path.stat().st_size
    report, table = resampled(folder, tmp_path, "out")
    assert report.episodes == 1 and [p.name for p in (tmp_path / "out").glob("*.parquet")] == ["rec.parquet"]
    np.testing.assert_allclose(numbers(table, "/x.data"), np.arange(300) / 100, atol=1e-6)
    assert "one recording: rec_0.mcap, rec_1.mcap, rec_2.mcap" in report.notes


def test_numbered_recordings_with_pauses_between_them_are_episodes(tmp_path):
    parts = [ramp(100, begin=BASE + (k // 2) * 10**10 + k % 2 * 10**9) for k in range(5)]  # 0 and 1, 2 and 3, 4
    folder = split(tmp_path / "rec", parts)
    report, _ = resampled(folder, tmp_path, "out")
    assert report.episodes == 3 and report.rows_written == 500
    assert sorted(p.name for p in (tmp_path / "out").glob("*.parquet")) == [f"rec_{k}.parquet" for k in (0, 2, 4)]
    (folder / "rec_0.mcap").write_bytes(b"garbage")
    report, _ = resampled(folder, tmp_path, "kept", keep_going=True)
    assert list(report.failed) == ["rec_0.mcap"] and report.rows_written == 400


def test_several_recordings_are_decoded_once_by_any_number_of_workers(tmp_path):
    (tmp_path / "in").mkdir()
    for name in "pqr":
        recorded.write_mcap(tmp_path / "in" / f"{name}.mcap", arm(("a", "b")))
    reports = [resampled(tmp_path / "in", tmp_path, f"out{n}", workers=n)[0] for n in (1, 3)]
    assert [r.episodes for r in reports] == [3, 3]
    manifests = [json.loads((tmp_path / f"out{n}" / "tmaops_manifest.json").read_text())["files"] for n in (1, 3)]
    assert manifests[0] == manifests[1]


def test_what_comes_out_can_go_in_again_20_to_10_to_5_hz_and_to_other_rates(tmp_path):
    turns = about(np.linspace(0, 3, 401))
    rows = []
    for i in range(401):
        ns = BASE + i * 5 * MS
        rows.append(("/tf", ns, transforms(transform(ns, "map", "base", (i, 0, 0), turns[i] * (-1) ** (i // 7)))))
        rows.append(("/imu", ns, imu(ns, turns[i])))
        rows.append(("/joint_states", ns, joints(ns, "ab", [i, -i])))
    source = recorded.write_mcap(tmp_path / "in.mcap", rows)
    for hz in (20, 10, 5, 7):
        _, table = resampled(source, tmp_path, f"{hz}.parquet", hz=hz)
        source = tmp_path / f"{hz}.parquet"
        assert table.num_rows == 2 * hz + 1
        at = (times_of(table) - BASE) / (5 * MS)
        np.testing.assert_allclose(numbers(table, "/joint_states.position.b"), -at, atol=1e-4)
        for name in ("/tf.map.base.rotation", "/imu.orientation"):
            likeness = np.abs((numbers(table, name) * about(at * 3 / 400)).sum(1))
            np.testing.assert_allclose(likeness, 1, atol=1e-7, err_msg=f"{name} at {hz} Hz")


def test_inspect_shows_topics_types_counts_and_what_is_left_out(tmp_path):
    rows = arm(("a", "b")) + [("/log", BASE + i * 20 * MS, text("x")) for i in range(30)]
    rows += [("/odd", BASE, ("flatbuffer", "", "", b"", b"\1"))]
    found = tmaops.dataset.inspect(recorded.write_mcap(tmp_path / "in.mcap", rows))
    totals = {row["stream"]: row for row in found.totals()}
    assert {name: row["samples"] for name, row in totals.items()} == {"/joint_states": 100, "/log": 30, "/odd": 1}
    assert totals["/joint_states"]["types"] == ["sensor_msgs/msg/JointState"]
    assert totals["/log"]["hz_median"] == pytest.approx(50)
    assert totals["/log"]["left_out"] == ["data (text)"]
    text_found = found.text()
    assert (
        "std_msgs/msg/String" in text_found
        and "left out: all of it (messages in the encoding flatbuffer)" in text_found
    )


def hostile(tmp_path):
    """50 files with the endings of recordings that are none, or are broken: name -> bytes."""
    rng = np.random.default_rng(5)
    rows = ramp(40) + arm(("a", "b"), count=40)
    rows.sort(key=lambda row: row[1])
    whole = {
        ".mcap": recorded.write_mcap(tmp_path / "whole.mcap", rows).read_bytes(),
        ".bag": recorded.write_bag(tmp_path / "whole.bag", ramp(40)).read_bytes(),
        ".db3": (recorded.write_rosbag2(tmp_path / "whole", rows) / "whole.db3").read_bytes(),
    }
    made = {}
    for ending, data in whole.items():
        made |= {f"empty{ending}": b"", f"zeros{ending}": bytes(1000), f"text{ending}": b"time,x\n0,1\n" * 90}
        made |= {f"garbage{ending}": rng.bytes(5000), f"magic{ending}": data[:16] + rng.bytes(3000)}
        made |= {f"wrong magic{ending}": b"X" + data[1:], f"ends early{ending}": data[: len(data) // 9]}
        for k in range(7):
            broken = bytearray(data)
            for at in rng.integers(0, len(data), 3 * 4**k):
                broken[at] = rng.integers(256)
            made[f"broken {k}{ending}"] = bytes(broken)
        made[f"of another kind{ending}"] = whole[{".mcap": ".bag", ".bag": ".db3", ".db3": ".mcap"}[ending]]
    odd = {
        "huge time": [("/x", 2**64 - 1 - i, number(i)) for i in range(9)],
        "huge stamps": [("/x", BASE + i, joints(i * 10**17, "a", [i])) for i in range(9)],
        "one time": [("/x", BASE, number(i)) for i in range(9)],
        "odd names": [("\udcff"[:0] + "/\n\t\0é*[", BASE + i * MS, joints(BASE + i * MS, ["", "\n.\0"], [i, i])) for i in range(9)],
        "half a character": [("/j", BASE + i * MS, ("json", "", "", b"", b'{"\\ud800": 1, "x": 2}')) for i in range(9)],
        "stamps of 70 bits": [("/j", BASE + i * MS, as_json({"stamp": {"sec": 1, "nanosec": 2**70}})) for i in range(9)],
        "same names": [(t, BASE + i * MS, as_json(v)) for i in range(9) for t, v in (("/a", {"b.c": 1}), ("/a.b", {"c": 1}))],
    }  # fmt: skip
    for name, rows in odd.items():
        made[f"{name}.mcap"] = recorded.write_mcap(tmp_path / "odd.mcap", rows).read_bytes()
    return made


def test_a_database_with_nulls_gives_the_messages_before_them(tmp_path):
    folder = recorded.write_rosbag2(tmp_path / "in", ramp(40))
    with contextlib.closing(sqlite3.connect(folder / "in.db3")) as base:
        for table in ("messages", "topics"):  # without the constraints of their columns
            base.execute(f"create table other as select * from {table}")
            base.execute(f"drop table {table}")
            base.execute(f"alter table other rename to {table}")
        base.execute("insert into topics select 99, null, null, null, null, null from topics limit 1")
        base.execute("update messages set timestamp = null where rowid = 30")
        base.commit()
    report = tmaops.dataset.resample(folder / "in.db3", tmp_path / "out.parquet", hz=20, workers=1)
    assert "breaks off after 29 messages (a message with the time None" in report.warnings[0]


def test_a_recording_without_samples_says_what_it_has(tmp_path):
    source = recorded.write_mcap(tmp_path / "in.mcap", [("/x", BASE, number(1)), ("/tf", BASE, transforms())])
    with pytest.raises(Refused, match=r"no topic with numbers in two messages \(1 of /x, 1 of /tf\)"):
        tmaops.dataset.resample(source, tmp_path / "out.parquet", hz=20)


def test_the_order_of_a_quaternion_is_said_once(tmp_path):
    rows = [("/imu", BASE + i * 20 * MS, imu(BASE + i * 20 * MS, about([i * 0.01])[0])) for i in range(30)]
    report, _ = resampled(recorded.write_mcap(tmp_path / "in.mcap", rows), tmp_path)
    assert [note for note in report.notes if "quaternion" in note] == ["quaternion: /imu.orientation (x y z w)"]


def test_hostile_files_are_refused_by_name_or_give_what_is_whole(tmp_path, capsys):
    from tmaops.dataset.cli import main

    files = hostile(tmp_path)
    assert len(files) >= 50
    (tmp_path / "in").mkdir()
    for name, data in files.items():
        path, out = tmp_path / "in" / name, tmp_path / f"{name}.parquet"
        path.write_bytes(data)
        code = main(["resample", str(path), str(out), "--hz", "20", "--workers", "1"])
        said = capsys.readouterr().err
        assert code in (0, 2) and "Traceback" not in said, f"{name}: {code}: {said}"
        if code == 2:
            assert name in said and "needed" in said and not out.exists(), f"{name}: {said}"
        else:
            assert pq.read_table(out).num_rows, name
        assert main(["inspect", str(path)]) in (0, 2, 3), name
        capsys.readouterr()
    report = tmaops.dataset.resample(tmp_path / "in", tmp_path / "all", hz=20, workers=1, keep_going=True)
    assert report.done and len(report.failed) + report.episodes == len(files)


def test_publishers_of_the_same_joints_at_a_time_are_apart_and_those_one_after_the_other_are_one(tmp_path):
    left, right = arm(("a", "b")), [(*row[:2], joints(row[1], ["b", "a"], [-5, -7])) for row in arm(at=3 * MS)]
    rows = sorted([(*row, "left") for row in left] + [(*row, "right") for row in right], key=lambda row: row[1])
    source = recorded.write_mcap(tmp_path / "in.mcap", rows)
    report, table = resampled(source, tmp_path, hz=50)
    at = (times_of(table) - BASE) / 1e9
    np.testing.assert_allclose(numbers(table, "/joint_states#1.position.a"), at, atol=1e-9)
    assert set(table["/joint_states#2.position.a"].to_pylist()) == {-7}
    assert "--topics=-/joint_states#2 leaves it out" in report.warnings[1]
    report, table = resampled(source, tmp_path, "one.parquet", topics=["-/joint_states#2"])
    assert table.column_names == ["timestamp", "/joint_states#1.position.a", "/joint_states#1.position.b"]
    again = [(*row, "first" if i < 50 else "second") for i, row in enumerate(left)]
    report, table = resampled(recorded.write_mcap(tmp_path / "again.mcap", again), tmp_path, "two.parquet", hz=50)
    assert table.num_rows == 50 and "/joint_states.position.a" in table.column_names and not report.warnings


def test_frames_whose_names_have_dots_are_columns_of_their_own(tmp_path):
    rows = []
    for i in range(50):
        ns = BASE + i * 20 * MS
        still = about([0.1])[0]
        both = transform(ns, "a.b", "c", (i, 0, 0), still), transform(ns, "a", "b.c", (-i, 0, 0), still)
        rows.append(("/tf", ns, transforms(*both)))
    _, table = resampled(recorded.write_mcap(tmp_path / "in.mcap", rows), tmp_path, hz=50)
    np.testing.assert_allclose(numbers(table, '/tf."a.b".c.translation.x'), np.arange(50), atol=1e-6)
    np.testing.assert_allclose(numbers(table, '/tf.a."b.c".translation.x'), -np.arange(50), atol=1e-6)


def test_messages_of_several_frames_in_one_topic_are_said_and_vectors_of_json_are_real(tmp_path):
    types = recorded.ROS2.types
    rows = []
    for i in range(50):
        ns = BASE + i * 20 * MS
        pose = types["geometry_msgs/msg/Pose"](recorded.vector(i, 0, 0, "Point"), recorded.quaternion([0, 0, 0, 1]))
        header = recorded.header(ns, "map" if i % 2 else "odom")
        rows.append(("/pose", ns, types["geometry_msgs/msg/PoseStamped"](header, pose)))
        rows.append(
            ("/json", ns, as_json({"frame_id": "map", "position": {"x": i, "y": 0, "z": 0}, "pixel": {"x": i}}))
        )
    report, table = resampled(recorded.write_mcap(tmp_path / "in.mcap", rows), tmp_path, hz=100)
    (warning,) = report.warnings
    assert warning.endswith("messages of /pose are of several frames, which its columns mix: map, odom")
    np.testing.assert_allclose(numbers(table, "/json.position.x"), np.arange(99) / 2, atol=1e-6)
    assert table["/json.pixel.x"].to_pylist()[:4] == [0, 0, 1, 1]


def test_messages_with_one_value_have_the_rule_of_their_topic(tmp_path):
    flag = recorded.ROS2.types["std_msgs/msg/Bool"]
    times = [BASE + i * 10**8 for i in range(31)]
    yaw = (np.arange(31) * 0.3 + np.pi) % (2 * np.pi) - np.pi
    rows = [(f"/{n}", t, m) for i, t in enumerate(times) for n, m in (("done", flag(i == 7)), ("yaw", number(yaw[i])))]
    rows += [("/arm/reward", t, number(i in (7, 8))) for i, t in enumerate(times)]
    recorded.write_mcap(tmp_path / "in.mcap", rows)
    report = tmaops.dataset.resample(tmp_path / "in.mcap", tmp_path / "out.parquet", hz=3, workers=1)
    modes = {name: rule.split(" (")[0] for name, rule in report.columns.items()}
    assert modes == {"/done.data": "any", "/arm/reward.data": "sum", "/yaw.data": "angle:rad"}
    table = pq.read_table(tmp_path / "out.parquet")
    assert sum(table["/done.data"].to_pylist()) == 1
    assert sum(table["/arm/reward.data"].to_pylist()) == pytest.approx(2)


def test_a_column_that_is_whole_in_one_recording_and_real_in_another_is_real(tmp_path):
    (tmp_path / "runs").mkdir()
    for name, more in (("a", 0), ("b", 0.5)):  # JSON prints 1.0 as 1
        rows = [("/arm", BASE + i * 50 * MS, as_json({"x": i + more, "both": [i, more]})) for i in range(20)]
        recorded.write_mcap(tmp_path / "runs" / f"{name}.mcap", rows)
    report, _ = resampled(tmp_path / "runs", tmp_path, "out", hz=40)
    assert report.columns["/arm.x"].startswith("linear")
    for name, more in (("a", 0), ("b", 0.5)):
        table = pq.read_table(tmp_path / "out" / f"{name}.parquet")
        np.testing.assert_allclose(numbers(table, "/arm.x"), np.arange(39) / 2 + more)
        np.testing.assert_allclose(numbers(table, "/arm.both")[:, 0], np.arange(39) / 2)


@pytest.mark.parametrize("back, warned", [(500, True), (15, False)])  # ms; messages in transit may overtake each other
def test_stamps_of_a_clock_that_was_set_back_are_a_warning(back, warned, tmp_path):
    stamps = BASE + (np.arange(200) * 10 - np.repeat([0, back], 100)) * MS
    rows = [("/imu", BASE + i * 10 * MS, imu(stamp, (0, 0, 0, 1))) for i, stamp in enumerate(stamps)]
    report, _ = resampled(recorded.write_mcap(tmp_path / "in.mcap", rows), tmp_path)
    assert any("header stamps of /imu go back" in warning for warning in report.warnings) == warned
