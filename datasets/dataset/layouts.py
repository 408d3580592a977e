"""Messages of ROS as blocks of columns, many at a time.

Messages whose lists and texts have the same lengths have their numbers at the same offsets. The first of them is walked by the
definition of its type; all others like it become columns at once, as strided views of their bytes.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, get_types_from_idl, get_types_from_msg, get_typestore
from rosbags.typesys.msg import normalize_msgtype
from tmaops.dataset.objects import HEADER, NAMES_OF_ELEMENTS, Block, Leaf, Message, Messages, Undecodable

NUMBERS = {
    **{name: name for name in ("int16", "int32", "int64", "uint16", "uint32", "uint64", "float32", "float64")},
    **{"bool": "bool", "byte": "uint8", "char": "uint8", "int8": "int8", "uint8": "uint8"},
}
#: Texts that say which columns there are.
DECIDING = (*NAMES_OF_ELEMENTS, "frame_id", "child_frame_id", "parent_frame_id")
FILLER = "structure_needs_at_least_one_member"  # what ROS 2 puts into an empty message
KNOWN_LAYOUTS = 64  # of a topic that are tried before a message is walked
PROBED = 64  # messages of a batch that a layout is tried on first

Types = dict[str, tuple[list, list]]  # as rosbags gives them: name -> constants and fields


def types_of(schema_encoding: str, schema: bytes, kind: str) -> Types:
    """The definitions that a recording has of a type and of those in it; raises Undecodable."""
    try:
        text = schema.decode()
        if schema_encoding in ("ros2msg", "ros1msg"):
            return get_types_from_msg(text, normalize_msgtype(kind))
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


class RosMessages(Messages):
    """Decodes messages of one type."""

    def __init__(self, types: Types, kind: str, ros1: bool):
        super().__init__()
        self.types, self.kind, self.ros1 = types, normalize_msgtype(kind), ros1
        if self.kind not in types:
            raise Undecodable(f"no definition of {kind}")
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
                self.lose(error)
                rows = rows[1:]
                continue
            self._checked = True
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
                self._wanted[what] = what != HEADER and any(self.wants(inner) for _, inner in self.fields(what))
            return self._wanted[what]
        return not _is_bytes(desc) and self.wants(what[0])

    def fields(self, kind: str) -> list:
        known = self.types if kind in self.types or not kind.startswith("builtin_interfaces/") else standard_types()
        if kind not in known:
            raise Undecodable(f"no definition of {kind}")
        fields = known[kind][1]
        return [] if self.ros1 and fields and fields[0][0] == FILLER else fields


class _Layout:
    """Where the numbers of messages like the one given are. fixed: positions of bytes that decide it; sample: those bytes."""

    def __init__(self, owner: RosMessages, message: bytes, whole: bool):
        walk = _Walk(owner, message)
        value = walk.message(owner.kind, stop_early=not whole)
        if whole and not 0 <= len(message) - walk.at <= (0 if owner.ros1 else 3):
            raise Undecodable(f"{len(message)} bytes where its definition gives {walk.at}")
        walk.check_end()
        self.order, self.parts = walk.order, list(owner.said(value))
        if owner.ros1:  # its seconds have no sign
            unsigned = [part.stamp and (part.stamp[0]._replace(kind="uint32"), part.stamp[1]) for part in self.parts]
            self.parts = [part._replace(stamp=stamp) for part, stamp in zip(self.parts, unsigned, strict=True)]
        leaves = [leaf for part in self.parts for leaf in (*part.fields.values(), *(part.stamp or ()))]
        ends = [each.end for leaf in leaves for each in (leaf if isinstance(leaf, list) else [leaf])]
        self.end = max([stop for _, stop in walk.ranges] + ends, default=0)
        self.fixed = np.concatenate([np.arange(a, b) for a, b in walk.ranges] or [np.arange(0)])
        self.sample = np.frombuffer(message, np.uint8)[self.fixed]

    def fits(self, messages: list[bytes], rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Which of some messages have this layout (n), and their bytes up to its end (n, end)."""
        data = b"".join([messages[row][: self.end].ljust(self.end, b"\0") for row in rows])
        data = np.frombuffer(data, np.uint8).reshape(rows.size, self.end)
        long = np.fromiter((len(messages[row]) >= self.end for row in rows), bool, rows.size)
        return long & (data[:, self.fixed] == self.sample).all(axis=1), data

    def blocks(self, data: np.ndarray, rows: np.ndarray) -> Iterator[Block]:
        for part in self.parts:
            stamps = None
            if part.stamp:
                seconds, fraction = (self._numbers(data, leaf) for leaf in part.stamp)
                stamps = seconds.astype(np.int64) * 10**9 + fraction
            values = {path: self._numbers(data, leaf) for path, leaf in part.fields.items()}
            yield Block(part.key, rows, stamps, values)

    def _numbers(self, data: np.ndarray, leaf: Leaf | list[Leaf]) -> np.ndarray:
        if isinstance(leaf, list):
            return np.stack([self._numbers(data, each) for each in leaf], axis=1)
        raw = np.ascontiguousarray(data[:, leaf.offset : leaf.end])
        if leaf.kind == "bool":
            made = raw != 0
        else:
            made = raw.view(np.dtype(leaf.kind).newbyteorder(self.order)).astype(leaf.kind, copy=False)
        return made[:, 0] if leaf.count is None else made


class _Walk:
    """Reads one message by the definition of its type. ranges: of bytes that decide where all is."""

    def __init__(self, owner: RosMessages, data: bytes):
        self._owner, self._data = owner, data
        self._base, self.order = (0, "<") if owner.ros1 else (4, _byte_order(data))
        self.ranges = [] if owner.ros1 else [(0, 2)]
        self.at = self._base

    def message(self, kind: str, stop_early: bool = False) -> Message:
        fields, made = self._owner.fields(kind), Message()
        made.kind = kind
        last = max((i for i, (_, desc) in enumerate(fields) if self._owner.wants(desc)), default=-1)
        for index, (name, desc) in enumerate(fields):
            if stop_early and index > last:
                others = {name: _what(desc) for name, desc in fields[index:] if desc != (Nodetype.NAME, HEADER)}
                self._owner.left_out |= others
                break
            if name == FILLER:
                self.at += 1
            else:
                made[name] = self._value(desc, name)
        return made

    def _value(self, desc: tuple, name: str) -> Any:
        node, what = desc
        if node == Nodetype.BASE:
            return self._text(name in DECIDING) if _is_text(desc) else self._number(what[0])
        if node == Nodetype.NAME:
            return self.message(what)
        element, count = what
        number = NUMBERS.get(element[1][0]) if element[0] == Nodetype.BASE else None
        if node == Nodetype.SEQUENCE:
            count = self._length(np.dtype(number).itemsize if number else 1)
        if number:
            return self._number(element[1][0], count)._replace(is_bytes=_is_bytes(desc)) if count else []
        made = []
        for _ in range(count):
            made.append(self._value(element, name))
            self.check_end()
        return made

    def _number(self, kind: str, count: int | None = None) -> Leaf:
        if kind not in NUMBERS:
            raise Undecodable(f"numbers of the type {kind}")
        leaf = Leaf(0, "int8" if kind == "byte" and self._owner.ros1 else NUMBERS[kind], count)
        self._align(leaf.size)
        leaf = leaf._replace(offset=self.at)
        self.at = leaf.end
        return leaf

    def _text(self, decides: bool) -> str:
        length = self._length(1)
        start, self.at = self.at, self.at + length
        if not decides:
            return ""
        self.ranges.append((start, self.at))
        return self._data[start : self.at].rstrip(b"\0").decode(errors="replace")

    def _length(self, element: int) -> int:
        """The length of a list of elements of at least so many bytes, or of a text."""
        self._align(4)
        data = self._data[self.at : self.at + 4]
        length = int.from_bytes(data, "little" if self.order == "<" else "big")
        self.ranges.append((self.at, self.at + 4))
        self.at += 4
        if len(data) < 4 or self.at + length * element > len(self._data):
            raise Undecodable(f"{len(self._data)} bytes, and more in its lists and texts")
        return length

    def _align(self, size: int) -> None:
        if not self._owner.ros1:
            self.at += -(self.at - self._base) % size

    def check_end(self) -> None:
        if self.at > len(self._data):
            raise Undecodable(f"{len(self._data)} bytes, and more in its definition")


def _byte_order(message: bytes) -> str:
    if message[:2] not in (b"\0\0", b"\0\1"):
        raise Undecodable(f"the encapsulation 0x{message[:2].hex()} of its bytes, which is not that of plain CDR")
    return "<" if message[1] else ">"


def _is_text(desc: tuple) -> bool:
    return desc[0] == Nodetype.BASE and desc[1][0] in ("string", "wstring")


def _is_bytes(desc: tuple) -> bool:
    element = desc[1][0]
    return desc[0] == Nodetype.SEQUENCE and element[0] == Nodetype.BASE and NUMBERS.get(element[1][0]) == "uint8"


def _what(desc: tuple) -> str:
    node, what = desc
    if node in (Nodetype.ARRAY, Nodetype.SEQUENCE):
        element = what[0]
        named = element[1].split("/")[-1] if element[0] == Nodetype.NAME else ""
        return f"a list of {named}" if named else "text" if _is_text(element) else "bytes"
    return "text" if _is_text(desc) else what.split("/")[-1] if node == Nodetype.NAME else what[0]
