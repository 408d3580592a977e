"""Messages of ROS as blocks of columns, many at a time.

Messages whose lists and texts have the same lengths have their numbers at the same offsets. The first of them is walked by the
definition of its type; all others like it become columns at once, as strided views of their bytes.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

import numpy as np
from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore

LONGEST_LIST = 4096  # numbers in an array that still count as channels; longer ones are images and scans
NUMBERS = {
    **{name: name for name in ("int16", "int32", "int64", "uint16", "uint32", "uint64", "float32", "float64")},
    **{"bool": "bool", "byte": "uint8", "char": "uint8", "int8": "int8", "uint8": "uint8"},
}
NAMES_OF_ELEMENTS = ("name", "names", "joint_names", "interface_names")  # texts beside lists as long, which they name
WAYPOINTS = "points"  # a list beside joint_names that they do not name, of any length
HEADER, TIME = "std_msgs/msg/Header", "builtin_interfaces/msg/Time"
FILLER = "structure_needs_at_least_one_member"  # what ROS 2 puts into an empty message
TRANSFORMS = ("tf2_msgs/msg/TFMessage", "tf/msg/tfMessage")
KNOWN_LAYOUTS = 64  # of a topic that are tried before a message is walked
PROBED = 64  # messages of a batch that a layout is tried on first

Types = dict[str, tuple[list, list]]  # as rosbags gives them: name -> constants and fields


class Undecodable(Exception):
    """A message, or all of a topic, that cannot be decoded, and why."""


class Leaf(NamedTuple):
    """Numbers of a message that become a column. count: of a list; None for a scalar."""

    path: str
    offset: int
    kind: str
    count: int | None


@dataclass
class Part:
    """What one message says about one thing: itself, or a pair of frames of a message of transforms."""

    key: tuple[str, ...] = ()  # the names in it that decide which columns it fills
    stamp: int | None = None  # offset of seconds and nanoseconds
    leaves: list[Leaf] = field(default_factory=list)


@dataclass
class Block:
    """Columns of some messages of a batch. rows: which; stamps: nanoseconds (n), or None; values: (n) or (n, count) by path."""

    key: tuple[str, ...]
    rows: np.ndarray
    stamps: np.ndarray | None
    values: dict[str, np.ndarray]


def types_of(schema_encoding: str, schema: bytes, kind: str) -> Types:
    """The definitions that a recording has of a type and of those in it; raises Undecodable."""
    try:
        text = schema.decode()
        if schema_encoding in ("ros2msg", "ros1msg"):
            return get_types_from_msg(text, _ros2_name(kind))
        if schema_encoding in ("ros2idl", "omgidl"):
            parts = re.split(r"^=+\nIDL: .*\n", text, flags=re.MULTILINE)
            return {name: made for part in parts if part.strip() for name, made in get_types_from_idl(part).items()}
    except Exception as error:  # a parser of foreign text raises many things
        raise Undecodable(f"its definition of {kind}: {str(error) or type(error).__name__}".split("\n")[0]) from error
    raise Undecodable(f"a definition in {schema_encoding or 'no known form'}")


@cache
def standard_types() -> Types:
    """Those of ROS 2 itself, for recordings without definitions (rosbag2 before Iron)."""
    return get_typestore(Stores.ROS2_HUMBLE).fielddefs


def _ros2_name(kind: str) -> str:
    return kind if kind.count("/") != 1 else kind.replace("/", "/msg/")


class RosMessages:
    """Decodes messages of one type. left_out: path -> why; quaternions: paths; broken: how many messages could not be read."""

    def __init__(self, types: Types, kind: str, ros1: bool):
        self.types, self.kind, self.ros1 = types, _ros2_name(kind), ros1
        if self.kind not in types:
            raise Undecodable(f"no definition of {kind}")
        self.left_out: dict[str, str] = {}
        self.quaternions: set[str] = set()
        self.broken, self.reason = 0, ""
        self._checked = False  # whether a message fits the definition to its last byte
        self._layouts: list[_Layout] = []
        self._wanted: dict[str, bool] = {}

    def blocks(self, messages: list[bytes]) -> Iterator[Block]:
        """The columns of a batch, in blocks of messages that are alike."""
        rows = np.arange(len(messages))
        for layout in [*reversed(self._layouts)]:
            rows = yield from self._like(layout, messages, rows)
        while rows.size:
            try:
                layout = _Layout(self, messages[rows[0]], whole=not self._checked)
            except (Undecodable, RecursionError) as error:
                self.broken, self.reason = self.broken + 1, str(error)
                rows = rows[1:]
                continue
            self._checked = True
            self.left_out |= layout.left_out
            self.quaternions |= layout.quaternions
            yield from layout.blocks(np.frombuffer(messages[rows[0]], np.uint8)[None], rows[:1])
            left = yield from self._like(layout, messages, rows[1:])
            if left.size < rows.size - 1:
                self._layouts = self._layouts[1 - KNOWN_LAYOUTS :] + [layout]
            rows = left

    def _like(self, layout: "_Layout", messages: list[bytes], rows: np.ndarray) -> Iterator[Block]:
        """Yields the blocks of the messages that have this layout; returns the rows of the others.

        Looks at all only where some of a few have it: where texts make every message another one, each is walked by itself.
        """
        if not rows.size or not layout.fits(messages, rows[:: 1 + rows.size // PROBED])[0].any():
            return rows
        alike, data = layout.fits(messages, rows)
        yield from layout.blocks(data[alike], rows[alike])
        return rows[~alike]

    def wants(self, desc: tuple) -> bool:
        """Whether a field holds numbers that can be columns; what holds none and ends a message is not walked."""
        node, what = desc
        if node == Nodetype.BASE:
            return what[0] in NUMBERS
        if node == Nodetype.NAME:
            if what not in self._wanted:
                self._wanted[what] = False  # a type cannot hold itself
                fields = self._fields(what)
                self._wanted[what] = what != HEADER and any(self.wants(inner) for _, inner in fields)
            return self._wanted[what]
        element = what[0]
        if element[0] == Nodetype.BASE and node == Nodetype.SEQUENCE and NUMBERS.get(element[1][0]) == "uint8":
            return False
        return self.wants(element)

    def _fields(self, kind: str) -> list:
        known = self.types if kind in self.types or not kind.startswith("builtin_interfaces/") else standard_types()
        if kind not in known:
            raise Undecodable(f"no definition of {kind}")
        fields = known[kind][1]
        return [] if self.ros1 and fields and fields[0][0] == FILLER else fields


class _Layout:
    """Where the numbers of messages like the one given are. fixed: positions of bytes that decide it; sample: those bytes."""

    def __init__(self, owner: RosMessages, message: bytes, whole: bool):
        self.left_out: dict[str, str] = {}
        self.quaternions: set[str] = set()
        self.parts: list[Part] = []
        self._owner, self._data = owner, message
        self._base, self._order = (0, "<") if owner.ros1 else (4, _byte_order(message))
        self._ranges = [] if owner.ros1 else [(0, 2)]  # of bytes that decide the layout
        self._at, self._muted = self._base, 0
        if owner.kind in TRANSFORMS:
            self._transforms()
        else:
            self._part = Part()
            self.parts.append(self._part)
            self._message(owner.kind, "", stop_early=not whole)
        if whole and not 0 <= len(message) - self._at <= (0 if owner.ros1 else 3):
            raise Undecodable(f"{len(message)} bytes where its definition gives {self._at}")
        self._check_end()
        offsets = [leaf.offset + _bytes(leaf) for part in self.parts for leaf in part.leaves]
        offsets += [part.stamp + 8 for part in self.parts if part.stamp is not None]
        self.end = max([stop for _, stop in self._ranges] + offsets, default=0)
        self.fixed = np.concatenate([np.arange(a, b) for a, b in self._ranges] or [np.arange(0)])
        self.sample = np.frombuffer(message, np.uint8)[self.fixed]
        del self._data

    def fits(self, messages: list[bytes], rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which of some messages have this layout (n), and their bytes up to its end (n, end)."""
        data = b"".join([messages[row][: self.end].ljust(self.end, b"\0") for row in rows])
        data = np.frombuffer(data, np.uint8).reshape(rows.size, self.end)
        long = np.fromiter((len(messages[row]) >= self.end for row in rows), bool, rows.size)
        return long & (data[:, self.fixed] == self.sample).all(axis=1), data

    def blocks(self, data: np.ndarray, rows: np.ndarray) -> Iterator[Block]:
        for part in self.parts:
            stamps = None
            if part.stamp is not None:
                seconds = self._numbers(data, part.stamp, "uint32" if self._owner.ros1 else "int32", 1)[:, 0]
                fraction = self._numbers(data, part.stamp + 4, "uint32", 1)[:, 0]
                stamps = seconds.astype(np.int64) * 10**9 + fraction
            values = {}
            for path, offset, kind, count in part.leaves:
                numbers = self._numbers(data, offset, kind, 1 if count is None else count)
                values[path] = numbers[:, 0] if count is None else numbers
            yield Block(part.key, rows, stamps, values)

    def _numbers(self, data: np.ndarray, offset: int, kind: str, count: int) -> np.ndarray:
        size = 1 if kind == "bool" else np.dtype(kind).itemsize
        raw = np.ascontiguousarray(data[:, offset : offset + size * count])
        if kind == "bool":
            return raw != 0
        return raw.view(np.dtype(kind).newbyteorder(self._order)).astype(kind, copy=False)

    def _message(self, kind: str, path: str, stop_early: bool = False) -> None:
        fields, names = self._owner._fields(kind), None
        last = max((i for i, (_, desc) in enumerate(fields) if self._owner.wants(desc)), default=-1)
        for index, (name, desc) in enumerate(fields):
            below = f"{path}.{name}" if path else name
            if stop_early and index > last:
                self._name_left_out(fields[index:])
                return
            if name == FILLER:
                self._at += 1
            elif not path and desc == (Nodetype.NAME, HEADER):
                self._header()
            elif not path and name in ("stamp", "timestamp") and desc == (Nodetype.NAME, TIME):
                self._stamp()
            elif name in NAMES_OF_ELEMENTS and desc[0] == Nodetype.SEQUENCE and _is_text(desc[1][0]):
                names = self._names()
            else:
                self._value(desc, below, None if name == WAYPOINTS else names)

    def _name_left_out(self, fields: list) -> None:
        """Says why the fields at a message's end, which are not walked, are no columns."""
        for name, desc in fields:
            if desc != (Nodetype.NAME, HEADER):
                self.left_out[name] = _what(desc)

    def _header(self) -> tuple[int, str]:
        """Walks a header: the offset of its stamp, and its frame."""
        stamp, frame = 0, ""
        for name, desc in self._owner._fields(HEADER):
            if desc == (Nodetype.NAME, TIME):
                stamp = self._stamp()
            elif name == "frame_id":
                frame = self._text(decides=self._owner.kind in TRANSFORMS)
            else:
                self._value(desc, "header", None, mute=True)
        return stamp, frame

    def _stamp(self) -> int:
        self._align(4)
        at = self._at
        self._at += 8
        if self._part.stamp is None:
            self._part.stamp = at
        return at

    def _transforms(self) -> None:
        name, (_, (element, _)) = self._owner._fields(self._owner.kind)[0]
        for _ in range(self._length(1)):
            self._part = Part()
            parent = child = ""
            for field_name, desc in self._owner._fields(element[1]):
                if desc == (Nodetype.NAME, HEADER):
                    _, parent = self._header()
                elif field_name == "child_frame_id":
                    child = self._text(decides=True)
                elif desc[0] == Nodetype.NAME:
                    self._message(desc[1], f"{parent}.{child}")
                else:
                    self._value(desc, f"{parent}.{child}.{field_name}", None)
            self._part.key = ("frames", parent, child)
            self.parts.append(self._part)

    def _names(self) -> list[str]:
        return [self._text(decides=True) for _ in range(self._length(4))]

    def _value(self, desc: tuple, path: str, names: list[str] | None, mute: bool = False) -> None:
        node, what = desc
        self._muted += mute
        if node == Nodetype.BASE and _is_text(desc):
            self._text()
            self._leave_out(path, "text")
        elif node == Nodetype.BASE:
            self._numbers_at(path, what[0], None)
        elif node == Nodetype.NAME and what == "geometry_msgs/msg/Quaternion":
            self._numbers_at(path, "float64", 4)
            if not self._muted:
                self.quaternions.add(path)
        elif node == Nodetype.NAME and what == HEADER:
            self._muted += 1
            self._message(what, path)
            self._muted -= 1
        elif node == Nodetype.NAME:
            self._message(what, path)
        else:
            self._list(node, what[0], what[1], path, names)
        self._muted -= mute

    def _list(self, node: int, element: tuple, count: int, path: str, names: list[str] | None) -> None:
        number = element[1][0] if element[0] == Nodetype.BASE else ""
        if node == Nodetype.SEQUENCE:
            count = self._length(np.dtype(NUMBERS[number]).itemsize if number in NUMBERS else 1)
        named = names is not None and len(names) == count and len(set(names)) == count
        if _is_text(element):
            for _ in range(count):
                self._text()  # which ends where the message does
            self._leave_out(path, "text")
        elif number and named:
            for name in names:
                self._numbers_at(f"{path}.{name}", number, None)
        elif number and count:
            too_long = count > LONGEST_LIST or node == Nodetype.SEQUENCE and NUMBERS.get(number) == "uint8"
            if too_long:
                self._leave_out(path, "bytes" if NUMBERS.get(number) == "uint8" else f"{count} numbers")
            self._muted += too_long
            self._numbers_at(path, number, count)
            self._muted -= too_long
        elif element[0] == Nodetype.NAME and named:
            for name in names:
                self._value(element, f"{path}.{name}", None)
        elif element[0] == Nodetype.NAME:
            self._leave_out(path, f"a list of {element[1].split('/')[-1]}")
            self._muted += 1
            for _ in range(count):
                self._value(element, path, None)
                self._check_end()
            self._muted -= 1

    def _numbers_at(self, path: str, kind: str, count: int | None) -> None:
        if kind not in NUMBERS:
            raise Undecodable(f"numbers of the type {kind}")
        kind = "int8" if kind == "byte" and self._owner.ros1 else NUMBERS[kind]
        size = 1 if kind == "bool" else np.dtype(kind).itemsize
        self._align(size)
        leaf = Leaf(path, self._at, kind, count)
        self._at += _bytes(leaf)
        if not self._muted:
            self._part.leaves.append(leaf)

    def _leave_out(self, path: str, why: str) -> None:
        if not self._muted:
            self.left_out[path] = why

    def _check_end(self) -> None:
        if self._at > len(self._data):
            raise Undecodable(f"{len(self._data)} bytes, and more in its definition")

    def _align(self, size: int) -> None:
        if not self._owner.ros1:
            self._at += -(self._at - self._base) % size

    def _length(self, element: int) -> int:
        """The length of a list of elements of at least so many bytes, or of a text."""
        self._align(4)
        data = self._data[self._at : self._at + 4]
        length = int.from_bytes(data, "little" if self._order == "<" else "big")
        self._ranges.append((self._at, self._at + 4))
        self._at += 4
        if len(data) < 4 or self._at + length * element > len(self._data):
            raise Undecodable(f"{len(self._data)} bytes, and more in its lists and texts")
        return length

    def _text(self, decides: bool = False) -> str:
        length = self._length(1)
        start, self._at = self._at, self._at + length
        if decides:
            self._ranges.append((start, self._at))
        return self._data[start : self._at].rstrip(b"\0").decode(errors="replace") if decides else ""


def _byte_order(message: bytes) -> str:
    if message[:2] not in (b"\0\0", b"\0\1"):
        raise Undecodable(f"the encapsulation 0x{message[:2].hex()} of its bytes, which is not that of plain CDR")
    return "<" if message[1] else ">"


def _bytes(leaf: Leaf) -> int:
    return (1 if leaf.kind == "bool" else np.dtype(leaf.kind).itemsize) * (1 if leaf.count is None else leaf.count)


def _is_text(desc: tuple) -> bool:
    return desc[0] == Nodetype.BASE and desc[1][0] in ("string", "wstring")


def _what(desc: tuple) -> str:
    node, what = desc
    if node in (Nodetype.ARRAY, Nodetype.SEQUENCE):
        element = what[0]
        named = element[1].split("/")[-1] if element[0] == Nodetype.NAME else ""
        return f"a list of {named}" if named else "text" if _is_text(element) else "bytes"
    return "text" if _is_text(desc) else what.split("/")[-1] if node == Nodetype.NAME else what[0]
