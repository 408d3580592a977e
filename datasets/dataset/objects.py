"""Messages of JSON and Protocol Buffers as blocks of columns, as `layouts` makes them of ROS messages."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from tmaops.dataset.layouts import LONGEST_LIST, NAMES_OF_ELEMENTS, WAYPOINTS, Block, Undecodable

SECONDS, FRACTIONS = ("sec", "secs", "seconds"), ("nanosec", "nsec", "nsecs", "nanos")


def decode_json(message: bytes) -> Any:
    return json.loads(message)


def protobuf_decoder(schema_name: str, schema: bytes) -> Callable[[bytes], Any]:
    """What makes dictionaries of messages whose type a FileDescriptorSet describes; raises Undecodable."""
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
    return lambda message: _fields(decode(message))


def _fields(message: Any) -> dict[str, Any]:
    """The fields of a Protocol Buffers message, but for those of messages that are not set."""
    made = {}
    for about in message.DESCRIPTOR.fields:
        value = getattr(message, about.name)
        if about.message_type is None:
            made[about.name] = list(value) if hasattr(value, "append") else value
        elif about.message_type.GetOptions().map_entry:
            made[about.name] = {
                str(key): _fields(item) if hasattr(item, "DESCRIPTOR") else item for key, item in value.items()
            }
        elif hasattr(value, "append") or hasattr(value, "add"):
            made[about.name] = [_fields(item) for item in value]
        elif message.HasField(about.name):
            made[about.name] = _fields(value)
    return made


def real_paths(schema: bytes) -> set[str]:
    """The paths that a JSON Schema gives the type `number`: writers print 1.0 as 1."""
    found = set()

    def walk(about: Any, path: str, depth: int) -> None:
        if not isinstance(about, dict) or depth > 20:
            return
        if about.get("type") == "number":
            found.add(path)
        if isinstance(about.get("items"), dict):
            walk(about["items"], path, depth + 1)
        for name, inner in about["properties"].items() if isinstance(about.get("properties"), dict) else ():
            walk(inner, f"{path}.{name}" if path else name, depth + 1)

    try:
        walk(json.loads(schema), "", 0)
    except ValueError:  # a schema is a help, not a need
        pass
    return found


class ObjectMessages:
    """Decodes messages that are dictionaries once `decode` has read them. Attributes as those of RosMessages."""

    def __init__(self, decode: Callable[[bytes], Any], real: set[str] = frozenset()):
        self._decode, self._real = decode, real
        self.left_out: dict[str, str] = {}
        self.quaternions: set[str] = set()
        self.broken, self.reason = 0, ""

    def blocks(self, messages: list[bytes]) -> Iterator[Block]:
        """The columns of a batch, in blocks of messages that have the same fields."""
        alike: dict[tuple, list[tuple[int, int | None, dict[str, Any]]]] = {}
        for row, message in enumerate(messages):
            try:
                value = self._decode(message)
                if not isinstance(value, dict):
                    raise Undecodable(f"a {type(value).__name__} where an object is needed")
                parts = list(self._parts(value))
            except Exception as error:  # a decoder raises what foreign bytes lead to
                self.broken, self.reason = self.broken + 1, (str(error) or type(error).__name__).split("\n")[0]
                continue
            for key, stamp, fields in parts:
                lengths = tuple(len(v) if isinstance(v, list) else isinstance(v, bool) - 2 for v in fields.values())
                alike.setdefault((key, stamp is None, tuple(fields), lengths), []).append((row, stamp, fields))
        for (key, unstamped, paths, _), found in alike.items():
            stamps = None if unstamped else np.array([stamp for _, stamp, _ in found], np.int64)
            values = {path: self._numbers(path, [fields[path] for _, _, fields in found]) for path in paths}
            yield Block(key, np.array([row for row, _, _ in found]), stamps, values)

    def _numbers(self, path: str, values: list) -> np.ndarray:
        real = path in self.quaternions or not self._real.isdisjoint((path, path.rpartition(".")[0]))
        made = np.array(values, np.float64 if real else None)
        return made.astype(np.float64) if made.dtype.kind not in "biuf" else made

    def _parts(self, message: dict) -> Iterator[tuple[tuple[str, ...], int | None, dict[str, Any]]]:
        """A message, or each of the transforms in it."""
        transforms = message.get("transforms")
        if "child_frame_id" in message and "parent_frame_id" in message:
            transforms = [message]
        if isinstance(transforms, list) and all(isinstance(t, dict) and "child_frame_id" in t for t in transforms):
            for transform in transforms:
                header = transform.get("header", {})
                parent = str(transform.get("parent_frame_id", header.get("frame_id", "")))
                child, fields = str(transform["child_frame_id"]), {}
                inner = transform.get("transform", transform)
                for name in ("translation", "rotation"):
                    self._walk(inner.get(name), f"{parent}.{child}.{name}", fields, None)
                fields = {path: float(value) if _is_number(value) else value for path, value in fields.items()}
                yield ("frames", parent, child), _stamp_of(transform), fields
            return
        fields = {}
        for name, value in message.items():
            if name in ("header", "stamp", "timestamp") and _stamp_of({name: value}) is not None:
                continue
            self._walk(value, str(name), fields, None if name == WAYPOINTS else _names_in(message))
        yield (), _stamp_of(message), fields

    def _walk(self, value: Any, path: str, fields: dict[str, Any], names: list[str] | None) -> None:
        if isinstance(value, (bool, int, float)):
            fields[path] = value
        elif isinstance(value, dict) and set(value) == set("xyzw") and all(map(_is_number, value.values())):
            fields[path] = [value[axis] for axis in "xyzw"]
            self.quaternions.add(path)
        elif isinstance(value, dict):
            for name, inner in value.items():
                self._walk(inner, f"{path}.{name}", fields, None if name == WAYPOINTS else _names_in(value))
        elif isinstance(value, list) and names and len(value) == len(names) and value != names:
            for name, inner in zip(names, value, strict=True):
                self._walk(inner, f"{path}.{name}", fields, None)
        elif isinstance(value, list) and value and all(map(_is_number, value)):
            if len(value) <= LONGEST_LIST:
                fields[path] = value
            else:
                self.left_out[path] = f"{len(value)} numbers"
        elif isinstance(value, (str, bytes)):
            self.left_out[path] = "text" if isinstance(value, str) else "bytes"
        elif value is not None and value != [] and not (names and value == names):
            self.left_out[path] = "a list of what is no number"


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float))


def _names_in(message: dict) -> list[str] | None:
    """The names of the elements of the lists in a message."""
    for name in NAMES_OF_ELEMENTS:
        names = message.get(name)
        if (
            isinstance(names, list)
            and names
            and all(isinstance(n, str) for n in names)
            and len(set(names)) == len(names)
        ):
            return names
    return None


def _stamp_of(message: dict) -> int | None:
    """The time in a message's header, or its own, in nanoseconds."""
    header = message.get("header")
    for value in (
        header.get("stamp") if isinstance(header, dict) else None,
        message.get("stamp"),
        message.get("timestamp"),
    ):
        if isinstance(value, dict):
            seconds = next((value[name] for name in SECONDS if isinstance(value.get(name), int)), None)
            fraction = next((value[name] for name in FRACTIONS if isinstance(value.get(name), int)), None)
            if seconds is not None and fraction is not None and abs(seconds) < 2**33:
                return seconds * 10**9 + fraction
    return None
