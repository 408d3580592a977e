"""MCAP recordings of ROS 2: numeric fields by topic and path, all topics onto one clock, written as a Parquet table.

A column is named `<topic>.<path>`, for example `/odom.pose.pose.position.x`. A quaternion is one column of four numbers
(x, y, z, w), an array of numbers one column of lists. Text, images and everything else is left out and named.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from mcap.reader import NonSeekingReader
from mcap_ros2.decoder import DecoderFactory

from tmaops.dataset import clock
from tmaops.dataset.columns import Clock, one_episode, real_numbers, resample_column
from tmaops.dataset.errors import Refused
from tmaops.dataset.inspect import Stream
from tmaops.dataset.job import Options, Plan, Unit
from tmaops.dataset.places import fingerprint, size_of
from tmaops.dataset.rules import Rule, Rules, channels_of
from tmaops.dataset.tables import write_table

LONGEST_LIST = 4096  # numbers in an array that still count as channels; longer ones are images and scans


@dataclass
class Topic:
    """The messages of a topic: their times (nanoseconds) and fields by path."""

    times: list[int] = field(default_factory=list)
    stamped: bool = True  # every message so far has a header with a time
    stamps: list[int] = field(default_factory=list)
    fields: dict[str, list] = field(default_factory=dict)
    quaternions: set[str] = field(default_factory=set)  # paths of the message type Quaternion
    left_out: dict[str, str] = field(default_factory=dict)  # path -> why

    def clock(self) -> np.ndarray:
        return np.array(self.stamps if self.stamped else self.times, np.int64)


def _numbers(message: Any, path: str, topic: Topic) -> Iterator[tuple[str, Any]]:
    """The numeric fields of a message by path; notes what is none."""
    names = list(message.__slots__)
    if names == ["x", "y", "z", "w"] and message.__class__.__name__.endswith("Quaternion"):
        topic.quaternions.add(path)
        yield path, [message.x, message.y, message.z, message.w]
        return
    for name in names:
        value = getattr(message, name)
        below = f"{path}.{name}" if path else name
        if path == "" and name == "header" or name == "stamp":
            continue
        if isinstance(value, (bool, int, float)):
            yield below, value
        elif hasattr(value, "__slots__") and not isinstance(value, (str, bytes)):
            yield from _numbers(value, below, topic)
        elif isinstance(value, (bytes, bytearray, memoryview)):
            topic.left_out[below] = "bytes"
        elif isinstance(value, (list, tuple, np.ndarray)) and all(
            isinstance(v, (int, float, np.number)) for v in value
        ):
            if len(value) <= LONGEST_LIST:
                yield below, [float(v) for v in value]
            else:
                topic.left_out[below] = f"{len(value)} numbers"
        else:
            topic.left_out[below] = type(value).__name__


def read(path: Path) -> tuple[dict[str, Topic], str | None]:
    """All topics of a recording, and what was lost where it has no end (a recorder that was killed)."""
    topics: dict[str, Topic] = {}
    lost = None
    count = 0
    with path.open("rb") as file:
        reader = NonSeekingReader(file, decoder_factories=[DecoderFactory()])
        try:
            for schema, channel, message, decoded in reader.iter_decoded_messages(log_time_order=False):
                topic = topics.setdefault(channel.topic, Topic())
                stamp = getattr(getattr(decoded, "header", None), "stamp", None)
                topic.stamped = topic.stamped and stamp is not None
                if stamp is not None:
                    topic.stamps.append(stamp.sec * 10**9 + stamp.nanosec)
                topic.times.append(message.log_time)
                for name, value in _numbers(decoded, "", topic):
                    topic.fields.setdefault(name, []).append(value)
                count += 1
        except Exception as error:  # the library raises whatever broken bytes lead to (struct.error, EndOfFile, ...)
            if count == 0:
                raise Refused(
                    str(path), str(error) or type(error).__name__, "an MCAP recording of ROS 2 messages"
                ) from error
            lost = f"the recording breaks off after {count} messages ({type(error).__name__}); those are used"
    if count == 0:
        raise Refused(str(path), "no messages", "at least one")
    return topics, lost


def _columns(name: str, topic: Topic, where: str) -> Iterator[tuple[str, pa.ChunkedArray]]:
    rows = len(topic.times)
    for path, values in topic.fields.items():
        if len(values) != rows:
            topic.left_out[path] = f"{len(values)} of {rows} messages have it"
            continue
        if isinstance(values[0], list):
            lengths = {len(value) for value in values}
            if len(lengths) > 1:
                topic.left_out[path] = f"lists of {min(lengths)} to {max(lengths)} numbers"
                continue
            yield f"{name}.{path}", pa.chunked_array([pa.array(values, pa.list_(pa.float64(), lengths.pop()))])
        else:
            yield f"{name}.{path}", pa.chunked_array([pa.array(values)])


class Mcap:
    """One unit, a Parquet table, per recording."""

    def files(self, source: Path) -> list[Path]:
        return [source] if source.is_file() else sorted(source.rglob("*.mcap"))

    def plan(self, source: Path, options: Options, keep_going: bool, left_out: set[str]) -> Plan:
        files = self.files(source)
        units: list[Unit] = []
        columns: dict[str, Rule] = {}
        kinds: dict[str, pa.DataType] = {}
        failed: dict[str, str] = {}
        notes: list[str] = []
        warnings: list[str] = []
        streams: set[str] = set()
        for path in files:
            name = path.name if source.is_file() else str(path.relative_to(source))
            if name in left_out:
                continue
            try:
                topics, lost = read(path)
                self._targets(topics, options, f"episode {name}")
            except Refused as error:
                if not keep_going:
                    raise
                failed[name] = str(error)
                continue
            if lost:
                warnings.append(f"{name}: {lost}")
            rules = _rules(options, topics)
            for title, topic in topics.items():
                for column, data in _columns(title, topic, name):
                    kinds[column] = data.type
                    columns.setdefault(column, rules.of(column, data.type, channels_of(data.type)))
                if not units:
                    by = "header.stamp" if topic.stamped else "the time of recording"
                    notes.append(f"time of {title}: {by}")
                    notes += [f"left out: {title}.{path_in} ({why})" for path_in, why in topic.left_out.items()]
            made = str(Path(name).with_suffix(".parquet"))
            units.append(Unit(made, {"file": name, "input": fingerprint(path)}, size_of(path), [name]))
            streams.update(topics)
        Rules(dict(options.modes)).check_used(kinds)
        options.check_streams(sorted(streams))
        return Plan(units, len(units), columns, notes, warnings, failed)

    def run_unit(self, source: Path, options: Options, unit: Unit, target: Path) -> dict[str, Any]:
        path = source if source.is_file() else source / unit.task["file"]
        topics, _ = read(path)
        rules = _rules(options, topics)
        where = f"episode {unit.task['file']}"
        targets = self._targets(topics, options, where)
        made: dict[str, Any] = {"timestamp": pa.array(targets, pa.timestamp("ns"))}
        rows = 0
        for title, topic in sorted(topics.items()):
            times, order = _sorted_times(topic, f"{where}: {title}", options.latency_ns(title))
            ticks = Clock(one_episode(times, targets, where), options.max_gap_ns(title))
            rows += times.size
            for column, data in _columns(title, topic, where):
                rule = rules.of(column, data.type, channels_of(data.type))
                sorted_data = data.take(pa.array(order))
                made[column] = resample_column(sorted_data, rule, ticks, f"{where}: {column}", options.device)
        table = pa.table(made)
        write_table(table, target)
        return {"episodes": 1, "rows_read": rows, "rows_written": table.num_rows}

    def finish(self, source: Path, options: Options, plan: Plan, results: list[dict[str, Any]], out: Path) -> None:
        """Nothing: the tables are the result."""

    def episodes(self, source: Path, options: Options, unreadable: dict[str, str]) -> Iterator[list[Stream]]:
        """Every recording with its topics, for inspect()."""
        for path in self.files(source):
            name = path.name if source.is_file() else str(path.relative_to(source))
            try:
                topics, lost = read(path)
            except Refused as error:
                unreadable[name] = str(error)
                continue
            if lost:
                unreadable[name] = lost
            seen = []
            for title, topic in topics.items():
                order = np.argsort(topic.clock(), kind="stable")
                stream = Stream(name, title, topic.clock()[order])
                stream.recorded = np.array(topic.times, np.int64)[order] if topic.stamped else None
                for column, data in _columns(title, topic, name):
                    if channels_of(data.type):
                        stream.columns[column] = real_numbers(data, column)[order]
                stream.quaternions = {
                    f"{title}.{q}": [0] for q in topic.quaternions if f"{title}.{q}" in stream.columns
                }
                seen.append(stream)
            yield seen

    def _targets(self, topics: dict[str, Topic], options: Options, where: str) -> np.ndarray:
        clocks = [
            _sorted_times(topic, f"{where}: {name}", options.latency_ns(name))[0] for name, topic in topics.items()
        ]
        first, last = max(int(t[0]) for t in clocks), min(int(t[-1]) for t in clocks)
        if last < first:
            raise Refused(where, "topics that do not overlap in time", "topics of one clock")
        return clock.grid(first, last, clock.rate(options.hz))


def _rules(options: Options, topics: dict[str, Topic]) -> Rules:
    names = {
        f"{title}.{path}": ["qx", "qy", "qz", "qw"] for title, topic in topics.items() for path in topic.quaternions
    }
    return Rules(dict(options.modes), names)


def _sorted_times(topic: Topic, where: str, latency: int) -> tuple[np.ndarray, np.ndarray]:
    """When a topic's samples were taken, in order, and the rows that have them: recorders log messages out of order."""
    times = topic.clock() - latency
    order = np.argsort(times, kind="stable")
    clock.check_increasing(times[order], where)
    return times[order], order
