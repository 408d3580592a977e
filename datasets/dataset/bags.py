"""Files of recorded messages: MCAP, rosbag2 (.db3) and ROS 1 (.bag), as channels with their messages in the file's order."""

import contextlib
import re
import shutil
import sqlite3
import tempfile
from bz2 import BZ2Decompressor
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

import zstandard
from lz4.frame import LZ4FrameDecompressor
from mcap.exceptions import EndOfFile
from mcap.records import Channel as McapChannel
from mcap.records import Chunk, Message, Schema
from mcap.stream_reader import CRCValidationError, StreamReader, breakup_chunk
from rosbags.rosbag1.reader import Header, ReaderError, RecordType, read_bytes, read_uint32
from rosbags.typesys.msg import normalize_msgtype
from ruamel.yaml import YAML, YAMLError
from tmaops.dataset.places import is_local

ENDINGS = (".mcap", ".db3", ".bag", ".mcap.zstd", ".db3.zstd")
TRANSIENT_LOCAL = re.compile(r"durability:\s*(1\b|\"?transient_local)", re.IGNORECASE)


@dataclass(eq=False)
class Channel:
    """One publisher of a topic, as a file tells of it. schema: its type's definition in schema_encoding; empty where there is none."""

    topic: str
    type: str
    encoding: str  # of the messages: cdr, ros1, json, protobuf, ...
    schema_encoding: str = ""
    schema: bytes = b""
    latched: bool = False  # late subscribers get its last message


Recorded = tuple[Channel, int, bytes]  # a message: its channel, the time of recording (nanoseconds) and its bytes


@dataclass
class Bag:
    """The files of one recording in their order. name: its path below the source, without an ending where there are several files."""

    name: str
    files: list[Path]
    compressed_messages: bool = False
    missing: list[str] = field(default_factory=list)  # named in metadata.yaml and not there
    tried: bool = False  # whether files are one recording is only known from their times


def bags(source: Path) -> list[Bag]:
    """The recordings of a file or of a folder: what a metadata.yaml lists belongs together, and so may NAME_0, NAME_1, ..."""
    if source.is_file():
        return [Bag(source.name, [source])]
    found, taken = [], set()
    for metadata in sorted(source.rglob("metadata.yaml")):
        folder = metadata.parent
        listed, compressed = _listed(metadata)
        files = [folder / name for name in listed if (folder / name).is_file()]
        if files:
            name = str(folder.relative_to(source))
            name = name if folder != source else source.resolve().name if is_local(source) else source.name
            missing = [name for name in listed if not (folder / name).is_file()]
            found.append(Bag(name, files, compressed, missing))
            taken.update(files)
    series: dict[tuple[Path, str, str], list[tuple[int, Path]]] = {}
    for path in sorted(source.rglob("*")):
        if not path.name.lower().endswith(ENDINGS) or not path.is_file() or path in taken:
            continue
        numbered = re.fullmatch(r"(.+?)(?:_\d{4}-\d\d-\d\d(?:-\d\d){3})?_(\d+)(\.[a-z0-9.]+)", path.name)
        if numbered:
            series.setdefault((path.parent, numbered[1], numbered[3]), []).append((int(numbered[2]), path))
        else:
            found.append(Bag(str(path.relative_to(source)), [path]))
    for files in series.values():
        paths = [path for _, path in sorted(files)]
        found.append(Bag(str(paths[0].relative_to(source)), paths, tried=len(paths) > 1))
    return sorted(found, key=lambda bag: bag.name)


def _listed(metadata: Path) -> tuple[list[str], bool]:
    """The files that a metadata.yaml of rosbag2 names, and whether each message in them is compressed."""
    try:
        about = YAML(typ="safe", pure=True).load(metadata.read_text(encoding="utf-8"))["rosbag2_bagfile_information"]
        names = [Path(name).name for name in about["relative_file_paths"]]
        return names, str(about.get("compression_mode", "")).lower() == "message"
    except (OSError, UnicodeDecodeError, YAMLError, KeyError, TypeError, AttributeError):
        return [], False  # of something else, or broken: the files speak for themselves


def messages(path: Path, compressed: bool = False) -> Iterator[Recorded]:
    """Each message of a file.

    Raises whatever error the broken bytes of a file lead its library to, after the messages before them.
    """
    kind = path.name.lower().removesuffix(".zstd").rsplit(".", 1)[-1]
    found = {"mcap": _mcap, "db3": _db3, "bag": _bag}[kind](path)
    if not compressed:
        return found
    return ((channel, time, _begin_of("zstd", data)) for channel, time, data in found)


@contextlib.contextmanager
def _unpacked(path: Path) -> Iterator[BinaryIO]:
    with path.open("rb") as file:
        yield zstandard.ZstdDecompressor().stream_reader(file) if path.name.lower().endswith(".zstd") else file


def _declared(channels: dict[int, Channel], number: int) -> Channel:
    if number not in channels:
        raise ReaderError(f"a message of the channel {number}, which is not declared")
    return channels[number]


def _begin_of(compression: str, data: bytes) -> bytes:
    """What can be read of compressed bytes that may have no end."""
    if compression in ("", "none"):
        return data
    made = {"zstd": zstandard.ZstdDecompressor().decompressobj, "lz4": LZ4FrameDecompressor, "bz2": BZ2Decompressor}
    if compression not in made:
        raise ReaderError(f"a chunk compressed by {compression}")
    return made[compression]().decompress(data)


def _mcap(path: Path) -> Iterator[Recorded]:
    limit = path.stat().st_size if path.name.lower().endswith(".mcap") else 1 << 32
    schemas: dict[int, Any] = {}
    channels: dict[int, Channel] = {}
    with _unpacked(path) as file:
        for record in _mcap_records(StreamReader(file, emit_chunks=True, record_size_limit=limit)):
            if isinstance(record, Message):
                yield _declared(channels, record.channel_id), record.log_time, record.data
            elif isinstance(record, Schema):
                schemas[record.id] = record
            elif isinstance(record, McapChannel) and record.id not in channels:
                schema = schemas.get(record.schema_id) or Schema(id=0, name="", encoding="", data=b"")
                channel = Channel(record.topic, schema.name, record.message_encoding, schema.encoding, schema.data)
                qos = record.metadata.get("offered_qos_profiles", "")
                channel.latched = bool(TRANSIENT_LOCAL.search(qos)) or record.metadata.get("latching") == "1"
                channels[record.id] = channel


def _mcap_records(reader: StreamReader) -> Iterator[Any]:
    """The records of a file and of its chunks; of a chunk that is cut short those that are whole, before the error."""
    for record in reader.records:
        if not isinstance(record, Chunk):
            yield record
            continue
        try:
            short = not record.compression and len(record.data) < record.uncompressed_size
            inside = None if short else breakup_chunk(record, validate_crc=True)
        except CRCValidationError:
            raise  # its numbers may be wrong
        except Exception:  # the libraries raise whatever broken bytes lead to
            inside = None
        if inside is not None:
            yield from inside
            continue
        data = _begin_of(record.compression, record.data)
        at = 0
        while (end := at + 9 + int.from_bytes(data[at + 1 : at + 9], "little")) <= len(data):
            yield from islice(StreamReader(BytesIO(data[at:end]), skip_magic=True).records, 1)
            at = end
        if at < record.uncompressed_size:
            raise EndOfFile("a chunk is cut short")


def _db3(path: Path) -> Iterator[Recorded]:
    with contextlib.ExitStack() as stack:
        if path.name.lower().endswith(".zstd") or not is_local(path):
            copy = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "unpacked.db3"
            with _unpacked(path) as packed, copy.open("wb") as file:
                shutil.copyfileobj(packed, file, 8 << 20)
            path = copy
        way = "mode=ro" if path.with_name(path.name + "-wal").exists() else "immutable=1"
        base = stack.enter_context(contextlib.closing(sqlite3.connect(f"{path.resolve().as_uri()}?{way}", uri=True)))
        base.execute("pragma writable_schema = on")  # reads a file that is shorter than its header says
        definitions = {}
        if base.execute("pragma table_info(message_definitions)").fetchall():
            found = base.execute("select topic_type, encoding, encoded_message_definition from message_definitions")
            definitions = {kind: (encoding, text.encode()) for kind, encoding, text in found}
        fields = [row[1] for row in base.execute("pragma table_info(topics)")]
        qos = "offered_qos_profiles" if "offered_qos_profiles" in fields else "''"
        channels = {}
        texts = (f"cast(coalesce({field}, '') as text)" for field in ("name", "type", "serialization_format"))
        topics = base.execute(f"select id, {', '.join(texts)}, {qos} from topics")
        for number, topic, kind, encoding, offered in topics:
            definition = definitions.get(kind, ("", b""))
            latched = bool(TRANSIENT_LOCAL.search(str(offered)))
            channels[number] = Channel(topic, kind, encoding, *definition, latched)
        for number, time, data in base.execute("select topic_id, timestamp, data from messages"):
            if not isinstance(time, int) or not isinstance(data, bytes):
                raise ReaderError(f"a message with the time {time!r} and data of the type {type(data).__name__}")
            yield _declared(channels, number), time, data


def _bag(path: Path) -> Iterator[Recorded]:
    """Reads from the front to the end, so that a bag without an index gives what it has."""
    with path.open("rb") as file:
        if file.readline(64) != b"#ROSBAG V2.0\n":
            raise ReaderError("no bag of ROS 1 in version 2.0")
        header = Header.read(file, RecordType.BAGHEADER)
        if header.get("encryptor"):
            raise ReaderError(f"a bag encrypted by {header.get_string('encryptor')}")
        read_bytes(file, read_uint32(file))
        size = path.stat().st_size
        yield from _bag_records(file, size, {})
        if not 0 < header.get_uint64("index_pos") < size:
            raise ReaderError("no index")


def _bag_records(stream: BinaryIO, size: int, channels: dict[int, Channel]) -> Iterator[Recorded]:
    """The messages of a bag, or of a chunk in it."""
    while stream.tell() < size:
        header = Header.read(stream)
        kind = header.get_uint8("op")
        if kind == RecordType.CHUNK:
            length = read_uint32(stream)
            data = _begin_of(header.get_string("compression"), stream.read(length))
            yield from _bag_records(BytesIO(data), len(data), channels)
        elif kind == RecordType.CONNECTION:
            number, topic, about = header.get_uint32("conn"), header.get_string("topic"), Header.read(stream)
            if number not in channels:
                definition, latched = about["message_definition"], about.get("latching") == b"1"
                type_name = normalize_msgtype(about.get_string("type"))
                channels[number] = Channel(topic, type_name, "ros1", "ros1msg", definition, latched)
        else:
            data = read_bytes(stream, read_uint32(stream))
            if kind == RecordType.MSGDATA:
                yield _declared(channels, header.get_uint32("conn")), header.get_time("time"), data
