"""What messages say: numbers by the paths of their fields, of which subject, and when.

A message is a dictionary of dictionaries, lists, texts and numbers: as its decoder gives it (JSON, Protocol Buffers), or for ROS
with places of numbers instead of numbers (`layouts`), so that many messages become columns at once.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from tmaops.dataset.rules import MOST_CHANNELS

NAMES_OF_ELEMENTS = ("name", "names", "joint_names", "interface_names")  # texts beside lists as long, which they name
WAYPOINTS = "points"  # a list beside joint_names that they do not name, of any length
HEADER = "std_msgs/msg/Header"
STAMPS = ("header", "stamp", "timestamp")
SECONDS, FRACTIONS = ("sec", "secs", "seconds"), ("nanosec", "nsec", "nsecs", "nanos")


class Undecodable(Exception):
    """A message, or all of a topic, that cannot be decoded, and why."""


class Leaf(NamedTuple):
    """A place of a number in the bytes of messages. count: of a list; None for a scalar. is_bytes: a list of any length."""

    offset: int
    kind: str
    count: int | None = None
    is_bytes: bool = False

    @property
    def size(self) -> int:
        """Bytes of a number."""
        return 1 if self.kind == "bool" else np.dtype(self.kind).itemsize

    @property
    def end(self) -> int:
        return self.offset + self.size * (1 if self.count is None else self.count)

    def each(self) -> "list[Leaf]":
        """The numbers of a list."""
        return [Leaf(self.offset + i * self.size, self.kind) for i in range(self.count)]


class Message(dict):
    """A message of ROS, of this type."""

    kind = ""


@dataclass
class Block:
    """Columns of some messages of a batch. rows: which; stamps: nanoseconds (n), or None; values: (n) or (n, count) by path."""

    key: tuple[str, ...]
    rows: np.ndarray
    stamps: np.ndarray | None
    values: dict[str, np.ndarray]


class Said(NamedTuple):
    """What one message says about one thing: itself, or a pair of frames."""

    key: tuple[str, ...]  # the names in it that decide which columns it fills
    stamp: tuple[Any, Any] | None  # seconds and nanoseconds
    fields: dict[str, Any]  # path -> a number, or a list of them


class Messages:
    """Reads messages. left_out: path -> why; quaternions, vectors: paths; broken: how many could not be read, and why."""

    def __init__(self) -> None:
        self.left_out: dict[str, str] = {}
        self.quaternions, self.vectors, self.frames = set[str](), set[str](), set[str]()  # frames: of headers
        self.broken, self.reason = 0, ""

    def lose(self, error: Exception) -> None:
        self.broken, self.reason = self.broken + 1, (str(error) or type(error).__name__).split("\n")[0]

    def said(self, message: dict) -> Iterator[Said]:
        """What a message says, or each of the transforms in it."""
        transforms = message.get("transforms")
        if "child_frame_id" in message and "parent_frame_id" in message:
            transforms = [message]
        listed = transforms if isinstance(transforms, list) else []
        if listed and all(isinstance(each, dict) and "child_frame_id" in each for each in listed):
            for transform in transforms:
                parent = transform.get("parent_frame_id", transform.get("header", {}).get("frame_id", ""))
                frames, fields = (str(parent), str(transform["child_frame_id"])), {}
                parent, child = (f'"{frame}"' if "." in frame else frame for frame in frames)  # dots part a path
                inner = transform.get("transform", transform)
                for name in ("translation", "rotation"):
                    self._walk(inner.get(name), f"{parent}.{child}.{name}", fields)
                yield Said(("frames", parent, child), _stamp_of(transform), fields)
            return
        fields, header = {}, message.get("header")
        frame = (header if isinstance(header, dict) else message).get("frame_id")
        self.frames |= {frame} if frame and isinstance(frame, str) else set()
        for name, value in message.items():
            if name not in STAMPS or _stamp_of({name: value}) is None:
                self._walk(value, str(name), fields, None if name == WAYPOINTS else _names_in(message))
        yield Said((), _stamp_of(message), fields)

    def _walk(self, value: Any, path: str, fields: dict[str, Any], names: list[str] | None = None) -> None:
        if isinstance(value, Leaf) and value.count is not None and names and len(names) == value.count:
            value = value.each()
        if _is_number(value):
            fields[path] = value
        elif isinstance(value, Leaf):
            if value.is_bytes or value.count > MOST_CHANNELS:
                self.left_out[path] = "bytes" if value.kind == "uint8" else f"{value.count} numbers"
            elif value.count:
                fields[path] = value
        elif isinstance(value, dict) and set(value) == set("xyzw") and all(map(_is_number, value.values())):
            fields[path] = [value[axis] for axis in "xyzw"]
            self.quaternions.add(path)
        elif isinstance(value, dict):
            inner_names = _names_in(value)
            self.vectors |= {path} if set(value) == set("xyz") else set()
            for name, inner in value.items() if getattr(value, "kind", "") != HEADER else ():
                self._walk(inner, f"{path}.{name}", fields, None if name == WAYPOINTS else inner_names)
        elif isinstance(value, (str, bytes)):
            self.left_out[path] = "text" if isinstance(value, str) else "bytes"
        elif isinstance(value, list) and value and value != names:
            self._list(value, path, fields, names)

    def _list(self, values: list, path: str, fields: dict[str, Any], names: list[str] | None) -> None:
        if all(isinstance(value, str) for value in values):
            self.left_out[path] = "text"
        elif names and len(values) == len(names):
            for name, value in zip(names, values, strict=True):
                self._walk(value, f"{path}.{name}", fields)
        elif not all(map(_is_number, values)):
            kind = getattr(values[0], "kind", "what is no number")
            self.left_out[path] = f"a list of {kind.split('/')[-1]}"
        elif len(values) > MOST_CHANNELS:
            self.left_out[path] = f"{len(values)} numbers"
        else:
            fields[path] = values


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float)) or isinstance(value, Leaf) and value.count is None


def _names_in(message: dict) -> list[str] | None:
    """The names of the elements of the lists in a message."""
    for name in NAMES_OF_ELEMENTS:
        names = message.get(name)
        if isinstance(names, list) and all(isinstance(n, str) for n in names) and len(set(names)) == len(names) > 0:
            return names
    return None


def _stamp_of(message: dict) -> tuple[Any, Any] | None:
    """The time in a message's header, or its own: seconds and nanoseconds."""
    header = next((value for value in message.values() if getattr(value, "kind", "") == HEADER), message.get("header"))
    inside = header.get("stamp") if isinstance(header, dict) else None
    for value in (inside, message.get("stamp"), message.get("timestamp")):
        if isinstance(value, dict):
            numbers = {name: each for name, each in value.items() if isinstance(each, (int, Leaf))}
            seconds, fraction = (
                next((numbers[n] for n in names if n in numbers), None) for names in (SECONDS, FRACTIONS)
            )
            there = seconds is not None and fraction is not None
            if there and (isinstance(seconds, Leaf) or abs(seconds) < 2**33 and 0 <= fraction < 10**9):
                return seconds, fraction
    return None


class ObjectMessages(Messages):
    """Decodes messages that are dictionaries once `decode` has read them. real: the paths of numbers that are real."""

    def __init__(self, decode: Callable[[bytes], Any], real: set[str] = frozenset()):
        super().__init__()
        self._decode, self._real = decode, real

    def blocks(self, messages: list[bytes]) -> Iterator[Block]:
        """The columns of a batch, in blocks of messages that have the same fields."""
        alike: dict[tuple, list[tuple[int, Said]]] = {}
        for row, message in enumerate(messages):
            try:
                value = self._decode(message)
                if not isinstance(value, dict):
                    raise Undecodable(f"a {type(value).__name__} where an object is needed")
                parts = list(self.said(value))
            except Exception as error:  # a decoder raises what foreign bytes lead to
                self.lose(error)
                continue
            for said in parts:
                values = said.fields.values()
                lengths = tuple(len(v) if isinstance(v, list) else isinstance(v, bool) - 2 for v in values)
                alike.setdefault((said.key, said.stamp is None, tuple(said.fields), lengths), []).append((row, said))
        for (key, unstamped, paths, _), found in alike.items():
            stamps = None
            if not unstamped:
                seconds, fraction = np.array([said.stamp for _, said in found], np.int64).T
                stamps = seconds * 10**9 + fraction
            values = {path: self._numbers(path, key, [said.fields[path] for _, said in found]) for path in paths}
            yield Block(key, np.array([row for row, _ in found]), stamps, values)

    def _numbers(self, path: str, key: tuple[str, ...], values: list) -> np.ndarray:
        parent = path.rpartition(".")[0]
        real = key or path in self.quaternions or parent in self.vectors or not self._real.isdisjoint((path, parent))
        made = np.array(values, np.float64 if real else None)
        return made.astype(np.float64) if made.dtype.kind not in "biuf" else made


def json_messages(schema: bytes) -> ObjectMessages:
    """schema: a JSON Schema, or nothing. Its paths of the type `number` are real: writers print 1.0 as 1."""
    found = set()

    def walk(about: Any, path: str, depth: int) -> None:
        if not isinstance(about, dict) or depth > 20:
            return
        if about.get("type") == "number":
            found.add(path)
        walk(about.get("items"), path, depth + 1)
        for name, inner in about["properties"].items() if isinstance(about.get("properties"), dict) else ():
            walk(inner, f"{path}.{name}" if path else name, depth + 1)

    try:
        walk(json.loads(schema or "0"), "", 0)
    except ValueError:  # a schema is a help, not a need
        pass
    return ObjectMessages(json.loads, found)


def protobuf_messages(schema_name: str, schema: bytes) -> ObjectMessages:
    """Of a type that a FileDescriptorSet describes; raises Undecodable."""
    try:
        from mcap.records import Schema
        from mcap_protobuf.decoder import DecoderFactory
    except ImportError:
        raise Undecodable("protobuf, and no mcap-protobuf-support: pip install mcap-protobuf-support") from None
    try:
        made = Schema(id=1, name=schema_name, encoding="protobuf", data=schema)
        decode = DecoderFactory().decoder_for("protobuf", made)
    except Exception as error:  # the library raises what foreign bytes lead to
        raise Undecodable(f"its definition of {schema_name}: {str(error) or type(error).__name__}") from error
    return ObjectMessages(lambda message: _fields(decode(message)))


def _fields(message: Any) -> Any:
    """The fields of a Protocol Buffers message, but for those of messages that are not set; other values as they are."""
    if not hasattr(message, "DESCRIPTOR"):
        return message
    made = {}
    for about in message.DESCRIPTOR.fields:
        value = getattr(message, about.name)
        if about.message_type is not None and about.message_type.GetOptions().map_entry:
            made[about.name] = {str(key): _fields(item) for key, item in value.items()}
        elif hasattr(value, "append") or hasattr(value, "add"):
            made[about.name] = [_fields(item) for item in value]
        elif about.message_type is None or message.HasField(about.name):
            made[about.name] = _fields(value)
    return made
