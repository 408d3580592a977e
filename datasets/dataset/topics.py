"""The topics of one recording as streams: samples of columns with a clock of their own."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
from tmaops.dataset.bags import Bag, Channel, Recorded, messages
from tmaops.dataset.errors import Refused
from tmaops.dataset.layouts import RosMessages, standard_types, types_of
from tmaops.dataset.objects import Block, ObjectMessages, Undecodable, json_messages, protobuf_messages

BATCH = 8192  # messages of a topic that are decoded together
JOINED = 32  # batches of columns that are kept as one
BATCH_BYTES = 4 << 20
LATEST = 2**63  # nanoseconds
PAUSE = 10**9  # the longest between two files of one recording that nothing else says belong together
PUBLISHER = re.compile(r"#\d+$")  # behind the name of a topic: one of several
SIMULATED = 10**17  # stamps below (1973) count from the start of a simulation


@dataclass
class Stream:
    """Samples of a topic, in the order of their times, or of those of its messages that speak of the same joints or frames."""

    topic: str
    label: str
    latched: bool
    times: np.ndarray  # int64 nanoseconds (S)
    recorded: np.ndarray  # by the recorder's clock (S)
    clock: str  # where the times are from
    columns: dict[str, pa.Array]  # by name


@dataclass
class Samples:
    """What some messages of a publisher say. stamps: nanoseconds, or None; values: (n) or (n, count) by path."""

    publisher: int
    recorded: np.ndarray
    stamps: np.ndarray | None
    values: dict[str, np.ndarray]


def _joined(parts: list[Samples]) -> Samples:
    stamps = None if parts[0].stamps is None else np.concatenate([part.stamps for part in parts])
    values = {path: np.concatenate([part.values[path] for part in parts]) for path in parts[0].values}
    return Samples(parts[0].publisher, np.concatenate([part.recorded for part in parts]), stamps, values)


def _by_publisher(samples: list[Samples]) -> list[list[Samples]]:
    """Samples of the same columns, apart where several publishers send real numbers at a time, not one after the other."""
    real = any(values.dtype.kind == "f" for part in samples for values in part.values.values())
    each: dict[int, list[Samples]] = {}
    for part in samples:
        each.setdefault(part.publisher, []).append(part)
    found: list[tuple[int, int, list[Samples]]] = []  # begin, end
    for parts in each.values():
        begin, end = (int(bound([bound(part.recorded) for part in parts])) for bound in (np.min, np.max))
        for at, (low, high, others) in enumerate(found):
            if not real or 2 * (min(end, high) - max(begin, low)) <= min(end - begin, high - low):
                found[at] = (min(begin, low), max(end, high), others + parts)
                break
        else:
            found.append((begin, end, parts))
    return [parts for _, _, parts in found]


@dataclass
class Topic:
    """Everything that was recorded under one name. left_out: path ("" is all of it) -> why."""

    name: str
    type: str
    latched: bool = False
    left_out: dict[str, str] = field(default_factory=dict)
    quaternions: set[str] = field(default_factory=set)
    frames: set[str] = field(default_factory=set)  # of its headers
    broken: int = 0
    reason: str = ""
    recorded: list[np.ndarray] = field(default_factory=list)
    samples: dict[tuple, list[Samples]] = field(default_factory=dict)  # by their publisher, subject and shape

    def add(self, block: Block, recorded: np.ndarray, publisher: int) -> None:
        """Keeps a block; many small ones become a large one, whose memory goes back to the system once it is used."""
        shapes = tuple((path, values.shape[1:], values.dtype) for path, values in block.values.items())
        kept = self.samples.setdefault((publisher, block.key, block.stamps is None, shapes), [])
        kept.append(Samples(publisher, recorded[block.rows], block.stamps, block.values))
        small = kept[-JOINED:]
        if len(small) == JOINED and max(each.recorded.size for each in small) <= BATCH:
            kept[-JOINED:] = [_joined(small)]

    def by_subject(self) -> Iterator[tuple[str, str, list[Samples]]]:
        """The samples that share a clock, of a pair of frames, or of joints that occur in one message: the name of the topic,
        with a number where several publishers send the same columns; what messages call them; and them.
        """
        frames: dict[tuple[str, ...], list[Samples]] = {}
        joints: list[tuple[set[str], list[Samples]]] = []
        for (_, subject, _, shapes), samples in self.samples.items():
            if subject:
                frames.setdefault(subject, []).extend(samples)
                continue
            paths, parts = {path for path, _, _ in shapes}, []
            for other in [each for each in joints if each[0] & paths]:
                joints.remove(other)
                paths, parts = paths | other[0], parts + other[1]
            joints.append((paths, parts + samples))
        of_all = [(f".{parent}.{child}", samples) for (_, parent, child), samples in frames.items()]
        of_all += [("" if len(joints) == 1 else f" ({min(paths)}, ...)", samples) for paths, samples in joints]
        for label, samples in of_all:
            apart = _by_publisher(samples)
            for number, own in enumerate(apart, 1):
                name = self.name if len(apart) == 1 else f"{self.name}#{number}"
                yield name, name + label, own


@dataclass
class Recording:
    """A recording, decoded. files: their names; lost: what of them could not be read; quaternions: names of columns."""

    topics: dict[str, Topic]
    files: list[str]
    lost: list[str]
    streams: list[Stream] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    quaternions: set[str] = field(default_factory=set)

    def take(self, topic: Topic, time: str, patterns: list[str]) -> None:
        """Makes the streams of a topic, of its publishers those that --topics takes."""
        count = sum(part.size for part in topic.recorded)
        if topic.broken == count and count:
            topic.left_out[""] = topic.reason
        elif topic.broken:
            self.lost.append(f"{topic.broken} of {count} messages of {topic.name} are left out: {topic.reason}")
        for name, label, samples in topic.by_subject() if "" not in topic.left_out else ():
            if not _chosen(name, [pattern for pattern in patterns if pattern.startswith("-")]):
                continue
            if name != topic.name:
                what = f"{label} is one of several publishers of {topic.name} that send at a time"
                self.warnings.append(f"{what}; --topics=-{name} leaves it out")
            stream = self._stream(topic, name, label, samples, time)
            if stream.columns:
                self.streams.append(stream)
        if len(topic.frames) > 1:
            frames = ", ".join(sorted(topic.frames))
            self.warnings.append(f"messages of {topic.name} are of several frames, which its columns mix: {frames}")
        topic.samples.clear()
        for path, why in topic.left_out.items():
            self.notes.append(f"left out: {topic.name}{'.' + path if path else ''} ({why})")

    def _stream(self, topic: Topic, topic_name: str, label: str, samples: list[Samples], time: str) -> Stream:
        recorded = np.concatenate([part.recorded for part in samples])
        times, clock = self._times(label, samples, recorded, time)
        order = np.argsort(times, kind="stable")
        still = topic.latched or topic.name.endswith("/tf_static")
        latched = times.size == 1 or still and times.size <= max(10, (recorded.max() - recorded.min()) / 1e9)
        columns = {}
        for path in dict.fromkeys(path for part in samples for path in part.values):
            try:
                parts = [(part.values.pop(path, None), part.recorded.size) for part in samples]
                name = f"{topic_name}.{path}".encode(errors="replace").decode()  # JSON may have halves of characters
                made = columns[name] = _column(parts, order, path in topic.quaternions)
                if path in topic.quaternions:
                    self.quaternions.add(name)
                if path in topic.quaternions and made.null_count:
                    what = f"{made.null_count} of {times.size} quaternions of {topic.name}.{path}"
                    self.warnings.append(f"{what} are not set, and null in the result")
            except Undecodable as error:
                topic.left_out[path] = str(error)
        self.notes.append(f"time of {label}: {'held, one message' if times.size == 1 else clock}")
        return Stream(topic_name, label, bool(latched), times[order], recorded[order], clock, columns)

    def _times(self, label: str, samples: list[Samples], recorded: np.ndarray, time: str) -> tuple[np.ndarray, str]:
        """The times of samples and where they are from: header stamps, where all have one and no more than one is not set."""
        if time != "header" or any(part.stamps is None for part in samples):
            return recorded, "the time of recording"
        stamps = np.concatenate([part.stamps for part in samples])
        unset = int((stamps == 0).sum())
        if unset > 1 or unset and (stamps.size == 1 or stamps.max() > SIMULATED):
            return recorded, f"the time of recording: {unset} of {stamps.size} header stamps are 0"
        if stamps.min() < 0:
            return recorded, "the time of recording: header stamps are below 0"
        steps = np.diff(stamps[np.argsort(recorded, kind="stable")])
        if steps.size and steps.min() < -min(1e9, 10 * max(np.median(steps), 1e6)):  # those in transit may overtake
            what = f"the header stamps of {label} go back by {-steps.min() / 1e9:.3g} s"
            self.warnings.append(f"{what}; --time record takes the time of recording")
        return stamps, "header.stamp"


def _column(parts: list[tuple[np.ndarray | None, int]], order: np.ndarray, is_quaternion: bool) -> pa.Array:
    """The values of a path, null where a message has none or a quaternion is not set, in the order of the times."""
    shapes = {part.shape[1:] for part, _ in parts if part is not None}
    if len(shapes) > 1:
        lengths = sorted(shape[0] for shape in shapes if shape)
        said = f"lists of {lengths[0]} to {lengths[-1]} numbers" if () not in shapes else "numbers and lists"
        raise Undecodable(said)
    shape = shapes.pop()
    kind = np.result_type(*(part.dtype for part, _ in parts if part is not None))
    values = np.concatenate([np.zeros((rows, *shape), kind) if part is None else part for part, rows in parts])
    mask = np.concatenate([np.full(rows, part is None) for part, rows in parts])[order]
    parts.clear()
    if (order[1:] < order[:-1]).any():
        values = values[order]
    if is_quaternion:
        norms = np.linalg.norm(values, axis=1)
        unset = ~np.isfinite(norms) | (norms == 0)
        if unset.all():
            raise Undecodable("no quaternion is set")
        mask |= unset
    mask = mask if mask.any() else None
    if not shape:
        return pa.array(values, mask=mask)
    flat = pa.array(values.reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, shape[0], mask=None if mask is None else pa.array(mask))


def _chosen(topic: str, patterns: list[str]) -> bool:
    """Whether --topics takes a topic: those named (all, where none is), without those with a leading "-"."""
    taken, left_out = [p for p in patterns if not p.startswith("-")], [p[1:] for p in patterns if p.startswith("-")]
    return any(fnmatchcase(topic, p) for p in taken or ["*"]) and not any(fnmatchcase(topic, p) for p in left_out)


def _decoder(channel: Channel) -> RosMessages | ObjectMessages:
    """What decodes the messages of a channel; raises Undecodable."""
    if channel.encoding in ("cdr", "ros1") and channel.schema:
        types = types_of(channel.schema_encoding, channel.schema, channel.type)
        return RosMessages(types, channel.type, channel.encoding == "ros1")
    if channel.encoding in ("cdr", "ros1"):
        if channel.type not in standard_types():
            raise Undecodable(f"no definition of {channel.type} in the file: `ros2 bag convert` to MCAP adds it")
        return RosMessages(standard_types(), channel.type, False)
    if channel.encoding == "json":
        return json_messages(channel.schema if channel.schema_encoding == "jsonschema" else b"")
    if channel.encoding == "protobuf":
        return protobuf_messages(channel.type, channel.schema)
    raise Undecodable(f"messages in the encoding {channel.encoding or 'of no name'}")


class _Publisher:
    """The messages of a channel that wait to be decoded together. topic: None where it was not asked for."""

    def __init__(self, number: int, channel: Channel, topic: Topic | None):
        self._number, self._topic, self._decoder = number, topic, None
        self._times: list[int] = []
        self._data: list[bytes] = []
        self._bytes = 0
        try:
            if topic is not None and topic.type == channel.type:
                self._decoder = _decoder(channel)
            elif topic is not None:
                topic.left_out[channel.type] = "a second type of messages"
        except Undecodable as error:
            topic.left_out[""] = str(error)

    def add(self, time: int, data: bytes) -> None:
        self._times.append(time)
        if self._decoder is not None:
            self._data.append(data)
            self._bytes += len(data)
        if len(self._times) >= BATCH or self._bytes > BATCH_BYTES:
            self.decode()

    def decode(self) -> None:
        times, data, topic, decoder = self._times, self._data, self._topic, self._decoder
        self._times, self._data, self._bytes = [], [], 0
        if topic is None or not times:
            return
        odd = next((time for time in times if not 0 <= time < LATEST), None)
        if odd is not None:
            topic.left_out[""] = f"a time of recording of {odd} ns"
            decoder = self._decoder = None
        recorded = np.array(times if odd is None else [0] * len(times), np.int64)
        topic.recorded.append(recorded)
        if decoder is None:
            return
        broken = decoder.broken
        for block in decoder.blocks(data):
            if block.values:
                topic.add(block, recorded, self._number)
        topic.broken, topic.reason = topic.broken + decoder.broken - broken, decoder.reason
        topic.left_out |= decoder.left_out
        topic.quaternions |= decoder.quaternions
        topic.frames |= decoder.frames


class _Reader:
    """Collects the messages of a recording. patterns: of topics, as --topics has them."""

    def __init__(self, bag: Bag, patterns: list[str], lost: list[str]):
        self.files: list[str] = []
        self.count, self._ends = 0, ""  # why a file breaks off
        self.last: int | None = None
        self._bag, self._patterns, self._lost = bag, patterns, lost
        self._topics: dict[str, Topic] = {}
        self._passed: set[str] = set()  # topics that were not asked for
        self._publishers: dict[Channel, _Publisher] = {}

    def read(self, path: Path, found: Iterator[Recorded], failure: list[Exception]) -> None:
        """Takes the messages of a file, up to where it breaks off."""
        self.files.append(path.name)
        before = self.count
        for channel, time, data in found:
            self.count += 1
            self.last = time if self.last is None else max(self.last, time)
            publisher = self._publishers.get(channel) or self._publisher(channel)
            publisher.add(time, data)
        if failure:
            self._ends = (str(failure[0]) or type(failure[0]).__name__).split("\n")[0]
            if self.count > before or len(self._bag.files) > 1:
                what = f"{path.name} breaks off after {self.count - before} messages"
                self._lost.append(f"{what} ({self._ends}); those are used")

    def _publisher(self, channel: Channel) -> _Publisher:
        topic = None
        of_all = [p for p in self._patterns if not (p.startswith("-") and PUBLISHER.search(p))]
        if _chosen(channel.topic, [PUBLISHER.sub("", pattern) for pattern in of_all]):
            topic = self._topics.setdefault(channel.topic, Topic(channel.topic, channel.type))
            topic.latched = topic.latched or channel.latched
        else:
            self._passed.add(channel.topic)
        return self._publishers.setdefault(channel, _Publisher(len(self._publishers), channel, topic))

    def ended(self, time: str) -> tuple[str, Recording | Refused]:
        """The recording, with its name."""
        name = self._bag.name
        if self._bag.tried:
            alone = len(self.files) == len(self._bag.files)
            name = re.sub(r"_\d+(\.[a-z0-9.]+)$", r"\1", name) if alone else str(Path(name).with_name(self.files[0]))
        try:
            for publisher in self._publishers.values():
                publisher.decode()
            if not self.count:
                needed = "a recording with messages: MCAP, .db3 or .bag"
                raise Refused(f"episode {name}", self._ends or "no messages", needed)
            known = [*self._topics, *self._passed]
            for pattern in self._patterns:
                if not any(fnmatchcase(topic, PUBLISHER.sub("", pattern.removeprefix("-"))) for topic in known):
                    needed = "one of " + ", ".join(sorted(known))
                    raise Refused("--topics", f"'{pattern}', and no such topic", needed)
            made = Recording(self._topics, self.files, self._lost)
            if len(self.files) > 1:
                made.notes.append(f"one recording: {', '.join(self.files)}")
            for topic in self._topics.values():
                made.take(topic, time, self._patterns)
            return name, made
        except Refused as error:
            return name, error


def read(bag: Bag, patterns: list[str], time: str) -> Iterator[tuple[str, Recording | Refused]]:
    """The recordings of some files, each with its name: one, or several where their times say that they are apart.

    patterns: of topics, as --topics has them. time: "header" or "record".
    """
    reader = _Reader(bag, patterns, [f"{name} is missing" for name in bag.missing])
    for path in bag.files:
        failure: list[Exception] = []
        found, head = _until_broken(path, bag.compressed_messages, failure), []
        if bag.tried and reader.files:  # a recorder that begins another file writes again what is latched
            head = list(_until_not_latched(found))
        if head and (reader.last is None or not -PAUSE <= head[-1][1] - reader.last <= PAUSE):
            yield reader.ended(time)
            reader = _Reader(bag, patterns, [])
        reader.read(path, chain(head, found), failure)
    yield reader.ended(time)


def _until_not_latched(found: Iterator[Recorded]) -> Iterator[Recorded]:
    for message in found:
        yield message
        if not message[0].latched and not message[0].topic.endswith("/tf_static"):
            return


def _until_broken(path: Path, compressed: bool, failure: list[Exception]) -> Iterator[Recorded]:
    try:
        yield from messages(path, compressed)
    except Exception as error:  # the libraries raise whatever broken bytes lead to (struct.error, EndOfFile, ...)
        failure.append(error)
