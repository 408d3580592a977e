"""The topics of one recording as streams: samples of columns with a clock of their own."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
from tmaops.dataset.bags import Bag, Channel, messages
from tmaops.dataset.errors import Refused
from tmaops.dataset.layouts import Block, RosMessages, Undecodable, standard_types, types_of
from tmaops.dataset.objects import ObjectMessages, decode_json, protobuf_decoder, real_paths

BATCH = 8192  # messages of a topic that are decoded together
JOINED = 32  # batches of columns that are kept as one
BATCH_BYTES = 4 << 20
LATEST = 2**63  # nanoseconds
PAUSE = 10**9  # the longest between two files of one recording that nothing else says belong together
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
    columns: dict[str, pa.Array]  # by path

    def name(self, path: str) -> str:
        return f"{self.topic}.{path}"


@dataclass
class Samples:
    """What some messages say. stamps: nanoseconds, or None; values: (n) or (n, count) by path."""

    recorded: np.ndarray
    stamps: np.ndarray | None
    values: dict[str, np.ndarray]


@dataclass
class Topic:
    """Everything that was recorded under one name. left_out: path ("" is all of it) -> why."""

    name: str
    type: str
    count: int = 0
    latched: bool = False
    left_out: dict[str, str] = field(default_factory=dict)
    quaternions: set[str] = field(default_factory=set)
    broken: int = 0
    reason: str = ""
    recorded: list[np.ndarray] = field(default_factory=list)
    samples: dict[tuple, list[Samples]] = field(default_factory=dict)  # by their subject and shape

    def add(self, block: Block, recorded: np.ndarray) -> None:
        """Keeps a block; many small ones become a large one, whose memory goes back to the system once it is used."""
        shapes = tuple((path, values.shape[1:], values.dtype) for path, values in block.values.items())
        kept = self.samples.setdefault((block.key, block.stamps is None, shapes), [])
        kept.append(Samples(recorded[block.rows], block.stamps, block.values))
        small = kept[-JOINED:]
        if len(small) == JOINED and max(each.recorded.size for each in small) <= BATCH:
            kept[-JOINED:] = [_joined(small)]


def _joined(parts: list[Samples]) -> Samples:
    stamps = None if parts[0].stamps is None else np.concatenate([part.stamps for part in parts])
    values = {path: np.concatenate([part.values[path] for part in parts]) for path in parts[0].values}
    return Samples(np.concatenate([part.recorded for part in parts]), stamps, values)


@dataclass
class Recording:
    """A recording, decoded. files: their names; lost: what of them could not be read."""

    topics: dict[str, Topic]
    files: list[str]
    lost: list[str]
    streams: list[Stream] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def quaternions(self) -> set[str]:
        return {f"{topic.name}.{path}" for topic in self.topics.values() for path in topic.quaternions}


def chosen(topic: str, patterns: list[str]) -> bool:
    """Whether --topics takes a topic: those named (all, where none is), without those with a leading "-"."""
    taken = [p for p in patterns if not p.startswith("-")]
    return (not taken or any(fnmatchcase(topic, p) for p in taken)) and not any(
        fnmatchcase(topic, p[1:]) for p in patterns if p.startswith("-")
    )


def _decoder(channel: Channel) -> RosMessages | ObjectMessages:
    """What decodes the messages of a channel; raises Undecodable."""
    if channel.encoding in ("cdr", "ros1"):
        if channel.schema:
            return RosMessages(
                types_of(channel.schema_encoding, channel.schema, channel.type),
                channel.type,
                channel.encoding == "ros1",
            )
        if channel.type not in standard_types():
            raise Undecodable(f"no definition of {channel.type} in the file: `ros2 bag convert` to MCAP adds it")
        return RosMessages(standard_types(), channel.type, False)
    if channel.encoding == "json":
        return ObjectMessages(
            decode_json, real_paths(channel.schema) if channel.schema_encoding == "jsonschema" else set()
        )
    if channel.encoding == "protobuf":
        return ObjectMessages(protobuf_decoder(channel.type, channel.schema))
    raise Undecodable(f"messages in the encoding {channel.encoding or 'of no name'}")


class _Reader:
    """Collects the messages of a recording by channel and decodes them in batches."""

    def __init__(self, patterns: list[str]):
        self.topics: dict[str, Topic] = {}
        self.passed: set[str] = set()  # topics that were not asked for
        self.count = 0
        self.last: int | None = None
        self._patterns = patterns
        self._decoders: dict[Channel, RosMessages | ObjectMessages | None] = {}
        self._waiting: dict[Channel, tuple[list[int], list[bytes]]] = {}
        self._bytes: dict[Channel, int] = {}

    def add(self, channel: Channel, time: int, data: bytes) -> None:
        self.count += 1
        self.last = time if self.last is None else max(self.last, time)
        waiting = self._waiting.get(channel)
        if waiting is None:
            if channel not in self._decoders:
                self._begin(channel)
            waiting = self._waiting[channel] = ([], [])
            self._bytes[channel] = 0
        waiting[0].append(time)
        if self._decoders[channel] is not None:
            waiting[1].append(data)
            self._bytes[channel] += len(data)
        if len(waiting[0]) >= BATCH or self._bytes[channel] > BATCH_BYTES:
            self._decode(channel)

    def _begin(self, channel: Channel) -> None:
        self._decoders[channel] = None
        if not chosen(channel.topic, self._patterns):
            self.passed.add(channel.topic)
            return
        topic = self.topics.setdefault(channel.topic, Topic(channel.topic, channel.type))
        topic.latched = topic.latched or channel.latched
        try:
            if topic.type != channel.type:
                topic.left_out[channel.type] = "a second type of messages"
                return
            self._decoders[channel] = _decoder(channel)
        except Undecodable as error:
            topic.left_out[""] = str(error)

    def _decode(self, channel: Channel) -> None:
        times, data = self._waiting.pop(channel)
        topic, decoder = self.topics.get(channel.topic), self._decoders[channel]
        if topic is None:
            return
        odd = next((time for time in times if not 0 <= time < LATEST), None)
        if odd is not None:
            topic.left_out[""] = f"a time of recording of {odd} ns"
            decoder = self._decoders[channel] = None
        recorded = np.array(times if odd is None else [0] * len(times), np.int64)
        topic.count += recorded.size
        topic.recorded.append(recorded)
        if decoder is None:
            return
        broken = decoder.broken
        for block in decoder.blocks(data):
            if block.values:
                topic.add(block, recorded)
        topic.broken += decoder.broken - broken
        topic.reason = decoder.reason
        topic.left_out |= decoder.left_out
        topic.quaternions |= decoder.quaternions

    def end(self) -> None:
        for channel in list(self._waiting):
            self._decode(channel)


def read(bag: Bag, patterns: list[str], time: str) -> Iterator[tuple[str, Recording | Refused]]:
    """The recordings of some files, each with its name: one, or several where their times say that they are apart.

    patterns: of topics, as --topics has them. time: "header" or "record".
    """
    files, ends, reader, lost = [], "", _Reader(patterns), [f"{name} is missing" for name in bag.missing]

    def ended(alone: bool) -> tuple[str, Recording | Refused]:
        name = bag.name
        if bag.tried:
            name = re.sub(r"_\d+(\.[a-z0-9.]+)$", r"\1", name) if alone else str(Path(name).with_name(files[0]))
        try:
            reader.end()
            if not reader.count:
                raise Refused(f"episode {name}", ends or "no messages", "a recording with messages: MCAP, .db3 or .bag")
            return name, _recording(reader, time, lost, files)
        except Refused as error:
            return name, error

    for path in bag.files:
        failure: list[Exception] = []
        found = _until_broken(path, bag.compressed_messages, failure)
        head = []
        if bag.tried and files:  # a recorder that begins another file writes again what is latched
            head = list(_until(found, lambda channel: not channel.latched and not channel.topic.endswith("/tf_static")))
        if head and (reader.last is None or not -PAUSE <= head[-1][1] - reader.last <= PAUSE):
            yield ended(alone=False)
            files, ends, reader, lost = [], "", _Reader(patterns), []
        files.append(path.name)
        before = reader.count
        for channel, at, data in chain(head, found):
            reader.add(channel, at, data)
        if failure:
            ends = (str(failure[0]) or type(failure[0]).__name__).split("\n")[0]
            if reader.count > before or len(bag.files) > 1:
                lost.append(f"{path.name} breaks off after {reader.count - before} messages ({ends}); those are used")
    yield ended(alone=len(files) == len(bag.files))


def _until(found: Iterator[tuple[Channel, int, bytes]], last: Callable[[Channel], bool]) -> Iterator:
    """The messages up to the first one whose channel is such."""
    for message in found:
        yield message
        if last(message[0]):
            return


def _until_broken(path: Path, compressed: bool, failure: list[Exception]) -> Iterator[tuple[Channel, int, bytes]]:
    try:
        yield from messages(path, compressed)
    except Exception as error:  # the libraries raise whatever broken bytes lead to (struct.error, EndOfFile, ...)
        failure.append(error)


def _recording(reader: _Reader, time: str, lost: list[str], files: list[str]) -> Recording:
    made = Recording(reader.topics, files, lost)
    known = [*reader.topics, *reader.passed]
    for pattern in reader._patterns:
        if not any(fnmatchcase(name, pattern.removeprefix("-")) for name in known):
            raise Refused("--topics", f"'{pattern}', and no such topic", "one of " + ", ".join(sorted(known)))
    if len(files) > 1:
        made.notes.append(f"one recording: {', '.join(files)}")
    for topic in reader.topics.values():
        if topic.broken == topic.count and topic.count:
            topic.left_out[""] = topic.reason
        elif topic.broken:
            lost.append(f"{topic.broken} of {topic.count} messages of {topic.name} are left out: {topic.reason}")
        if "" in topic.left_out:
            topic.samples.clear()
        for label, samples in _by_subject(topic):
            stream = _stream(topic, label, samples, time, made)
            if stream.columns:
                made.streams.append(stream)
        topic.samples.clear()
        made.notes += [
            f"left out: {topic.name}{'.' + path if path else ''} ({why})" for path, why in topic.left_out.items()
        ]
    return made


def _by_subject(topic: Topic) -> Iterator[tuple[str, list[Samples]]]:
    """The samples of a topic that share a clock: of a pair of frames, or of joints that occur in one message."""
    frames: dict[tuple[str, ...], list[Samples]] = {}
    publishers: list[tuple[set[str], list[Samples]]] = []
    for (subject, _, shapes), samples in topic.samples.items():
        if subject:
            frames.setdefault(subject, []).extend(samples)
            continue
        paths = {path for path, _, _ in shapes}
        shared = [other for other in publishers if other[0] & paths]
        publishers = [other for other in publishers if not other[0] & paths]
        publishers.append((paths.union(*(p for p, _ in shared)), [*chain(*(parts for _, parts in shared)), *samples]))
    for (_, parent, child), samples in frames.items():
        yield f"{topic.name}.{parent}.{child}", samples
    for paths, samples in publishers:
        yield topic.name if len(publishers) == 1 else f"{topic.name} ({min(paths)}, ...)", samples


def _stream(topic: Topic, label: str, samples: list[Samples], time: str, made: Recording) -> Stream:
    recorded = np.concatenate([part.recorded for part in samples])
    times, clock = recorded, "the time of recording"
    if time == "header" and all(part.stamps is not None for part in samples):
        stamps = np.concatenate([part.stamps for part in samples])
        unset = int((stamps == 0).sum())
        if unset > 1 or unset and (stamps.size == 1 or stamps.max() > SIMULATED):
            clock += f": {unset} of {stamps.size} header stamps are 0"
        elif stamps.min() < 0:
            clock += ": header stamps are below 0"
        else:
            times, clock = stamps, "header.stamp"
            steps = np.diff(stamps[np.argsort(recorded, kind="stable")])
            if steps.size and steps.min() < -(10**9):
                made.warnings.append(
                    f"the header stamps of {label} go back by {-steps.min() / 1e9:.3g} s; --time record takes the time of recording"
                )
    order = np.argsort(times, kind="stable")
    seconds = (recorded.max() - recorded.min()) / 1e9
    still = topic.latched or topic.name.endswith("/tf_static")
    latched = times.size == 1 or still and times.size <= max(10, seconds)
    columns = {}
    for path in dict.fromkeys(path for part in samples for path in part.values):
        try:
            parts = [(part.values.pop(path, None), part.recorded.size) for part in samples]
            columns[path] = _column(parts, order, path in topic.quaternions)
            unset = columns[path].null_count if path in topic.quaternions else 0
            if unset:
                made.warnings.append(
                    f"{unset} of {times.size} quaternions of {topic.name}.{path} are not set, and null in the result"
                )
        except Undecodable as error:
            topic.left_out[path] = str(error)
    made.notes.append(f"time of {label}: {'held, one message' if times.size == 1 else clock}")
    return Stream(topic.name, label, bool(latched), times[order], recorded[order], clock, columns)


def _column(parts: list[tuple[np.ndarray | None, int]], order: np.ndarray, is_quaternion: bool) -> pa.Array:
    """The values of a path, null where a message has none or a quaternion is not set, in the order of the times."""
    shapes = {part.shape[1:] for part, _ in parts if part is not None}
    if len(shapes) > 1:
        lengths = sorted(shape[0] if shape else 1 for shape in shapes)
        raise Undecodable(
            f"lists of {lengths[0]} to {lengths[-1]} numbers" if () not in shapes else "numbers and lists"
        )
    shape = shapes.pop()
    kind = np.result_type(*(part.dtype for part, _ in parts if part is not None))
    values = np.concatenate([np.zeros((rows, *shape), kind) if part is None else part for part, rows in parts])
    mask = None
    if any(part is None for part, _ in parts):
        mask = np.concatenate([np.full(rows, part is None) for part, rows in parts])[order]
    if (order[1:] < order[:-1]).any():
        values = values[order]
    parts.clear()
    if is_quaternion:
        norms = np.linalg.norm(values, axis=1)
        unset = ~np.isfinite(norms) | (norms == 0)
        if unset.all():
            raise Undecodable("no quaternion is set")
        mask = unset if mask is None else mask | unset
    if mask is not None and not mask.any():
        mask = None
    if not shape:
        return pa.array(values, mask=mask)
    flat = pa.array(values.reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, shape[0], mask=None if mask is None else pa.array(mask))


def held(times: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The row of a latched stream that each target takes: the last one before it, else the first."""
    return np.maximum(np.searchsorted(times, targets, side="right") - 1, 0)
