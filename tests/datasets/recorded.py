"""Recordings of ROS 1, ROS 2 and MCAP, written by the rosbags and mcap libraries."""

import json

import numpy as np
from mcap.writer import CompressionType
from mcap.writer import Writer as McapWriter
from rosbags.rosbag1 import Writer as Bag1Writer
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin
from rosbags.rosbag2 import Writer as Bag2Writer
from rosbags.typesys import Stores, get_typestore

BASE = 1_700_000_000_000_000_000
ROS2, ROS1 = get_typestore(Stores.ROS2_JAZZY), get_typestore(Stores.ROS1_NOETIC)


def stamp(ns):
    return ROS2.types["builtin_interfaces/msg/Time"](int(ns // 10**9), int(ns % 10**9))


def header(ns, frame="base", store=ROS2):
    seq = [0] if store is ROS1 else []
    return store.types["std_msgs/msg/Header"](*seq, stamp(ns), frame)


def vector(x, y, z, name="Vector3"):
    return ROS2.types[f"geometry_msgs/msg/{name}"](float(x), float(y), float(z))


def quaternion(values):
    return ROS2.types["geometry_msgs/msg/Quaternion"](*map(float, values))


def imu(ns, orientation, rate=0.0, store=ROS2):
    nine = np.full(9, rate)
    made = store.types["sensor_msgs/msg/Imu"]
    still = vector(rate, 0, 0)
    return made(header(ns, "imu", store), quaternion(orientation), nine, still, nine, still, nine)


def joints(ns, names, position, velocity=(), effort=(), store=ROS2):
    numbers = [np.array(values, np.float64) for values in (position, velocity, effort)]
    return store.types["sensor_msgs/msg/JointState"](header(ns, "", store), list(names), *numbers)


def transform(ns, parent, child, translation, rotation):
    made = ROS2.types["geometry_msgs/msg/Transform"](vector(*translation), quaternion(rotation))
    return ROS2.types["geometry_msgs/msg/TransformStamped"](header(ns, parent), child, made)


def transforms(*stamped):
    return ROS2.types["tf2_msgs/msg/TFMessage"](list(stamped))


def text(value):
    return ROS2.types["std_msgs/msg/String"](value)


def number(value):
    return ROS2.types["std_msgs/msg/Float64"](float(value))


def about(angles):
    """Rotations about z by so many radians (S): quaternions (S, 4)."""
    half = np.asarray(angles) / 2
    return np.stack([0 * half, 0 * half, np.sin(half), np.cos(half)], axis=1)


def write_mcap(path, rows, latched=(), compression=CompressionType.ZSTD, **options):
    """rows: (topic, time of recording, message), and perhaps a publisher; a message of ROS 2, or (encoding, schema's encoding, its
    name, schema, bytes).
    """
    channels = {}
    with open(path, "wb") as file:
        writer = McapWriter(file, compression=compression, **options)
        writer.start(profile="ros2")
        for topic, time, message, *publisher in rows:
            if isinstance(message, tuple):
                encoding, form, name, schema, data = message
            else:
                name, encoding, form = message.__msgtype__, "cdr", "ros2msg"
                data = bytes(ROS2.serialize_cdr(message, name))
                schema = ROS2.generate_msgdef(name, ros_version=2)[0].encode()
            key = (topic, name, *publisher)
            if key not in channels:
                number = writer.register_schema(name, form, schema) if form else 0
                qos = {"offered_qos_profiles": "- durability: transient_local\n"} if topic in latched else {}
                channels[key] = writer.register_channel(topic, encoding, number, qos)
            writer.add_message(channels[key], int(time), data, int(time))
        writer.finish()
    return path


def write_rosbag2(folder, rows, plugin=StoragePlugin.SQLITE3, compression=None):
    with_types = {}
    writer = Bag2Writer(folder, version=9, storage_plugin=plugin)
    if compression:
        writer.set_compression(compression, CompressionFormat.ZSTD)
    with writer:
        for topic, time, message in rows:
            if topic not in with_types:
                with_types[topic] = writer.add_connection(topic, message.__msgtype__, typestore=ROS2)
            writer.write(with_types[topic], int(time), bytes(ROS2.serialize_cdr(message, message.__msgtype__)))
    return folder


def write_bag(path, rows, compression=None, latched=()):
    with_types = {}
    writer = Bag1Writer(path)
    if compression:
        writer.set_compression(compression)
    with writer:
        for topic, time, message in rows:
            if topic not in with_types:
                latching = 1 if topic in latched else None
                with_types[topic] = writer.add_connection(topic, message.__msgtype__, typestore=ROS1, latching=latching)
            writer.write(with_types[topic], int(time), bytes(ROS1.serialize_ros1(message, message.__msgtype__)))
    return path


def as_json(value, schema=None):
    if schema is None:
        return ("json", "", "", b"", json.dumps(value).encode())
    return ("json", "jsonschema", "made", json.dumps(schema).encode(), json.dumps(value).encode())


MODES = {"file": CompressionMode.FILE, "message": CompressionMode.MESSAGE}
