"""Zarr replay buffers, as diffusion policy and UMI write them: arrays below data/, where meta/episode_ends ends the episodes.

Formats 2 and 3 of Zarr, as a folder or as one file (.zarr.zip). What an array says of its type, chunks and codecs stays. Rows
that lie in a chunk each, as images do, are taken without decoding them, so that their codec need not be installed.
"""

import json
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import zarr
from tmaops.dataset import clock
from tmaops.dataset.arrays import copy_rows, is_row_of_numbers, known_of, native, new_rate, times_like
from tmaops.dataset.clock import Episodes
from tmaops.dataset.columns import compute_columns
from tmaops.dataset.errors import Refused
from tmaops.dataset.formats import Failed, Format, Plan, Stream, Unit, rate_of
from tmaops.dataset.options import Options
from tmaops.dataset.places import is_local
from tmaops.dataset.rules import Decided, Rules, decide, find_time
from tmaops.dataset.tables import FIRST_ROWS

ENDS = "meta/episode_ends"


@dataclass
class Array:
    """What an array says of itself, and its values, which `open` decodes."""

    open: Callable[[str], zarr.Array]
    path: str
    file: str  # the name of its file of JSON
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: np.dtype
    prefix: str | None  # of a chunk's key, and what stands between its numbers; None: chunks hold more
    separator: str = "."

    def __post_init__(self) -> None:
        sizes = zip(self.shape, self.chunks, strict=True)
        if not all(type(n) is int and type(c) is int and n >= 0 and c > 0 for n, c in sizes):
            raise ValueError(f"shape {self.shape} in chunks {self.chunks}")

    def __getitem__(self, rows: slice) -> np.ndarray:
        return self.open(self.path)[rows]

    def key(self, chunk: tuple[int, ...]) -> str:
        """The file of a chunk, below the array."""
        return f"{self.prefix}{self.separator.join(map(str, chunk))}"

    @property
    def inner(self) -> list[tuple[int, ...]]:
        """The chunks of one row."""
        ends = zip(self.shape[1:], self.chunks[1:], strict=True)
        return list(product(*(range(-(-extent // chunk)) for extent, chunk in ends)))


def _array(open: Callable[[str], zarr.Array], path: str, file: str, said: dict[str, Any]) -> Array | None:
    """An array by its JSON; None where that is of a group."""
    shape, separator = tuple(said.get("shape", ())), said.get("dimension_separator", ".")
    if file == ".zarray":
        return Array(open, path, file, shape, tuple(said["chunks"]), _dtype(said["dtype"]), "", separator)
    if said["node_type"] != "array":
        return None
    encoding = said["chunk_key_encoding"]
    sharded = any(codec["name"] == "sharding_indexed" for codec in said["codecs"])
    separator = encoding.get("configuration", {}).get("separator", "/")
    grid = tuple(said["chunk_grid"]["configuration"]["chunk_shape"])
    prefix = None if sharded or encoding["name"] != "default" else f"c{separator}"
    return Array(open, path, file, shape, grid, _dtype(said["data_type"]), prefix, separator)


def _dtype(text: Any) -> np.dtype:
    try:
        return np.dtype(text if isinstance(text, str) else [tuple(field) for field in text])
    except TypeError:
        return np.dtype("O")  # a type of Zarr alone, whose rows are taken


class Buffer:
    """A store, its arrays by path, its episodes and their times; read only. A context manager."""

    def __init__(self, place: Path, options: Options):
        if not is_local(place):
            raise Refused(str(place), "a Zarr store elsewhere", "a copy of it on this machine")
        self.place, self.options = place, options
        try:
            self._zip = zipfile.ZipFile(place) if place.is_file() else None
        except (zipfile.BadZipFile, OSError) as error:
            raise Refused(str(place), str(error), "a zip file that can be read") from error
        files = (path for path in place.rglob("*") if path.is_file()) if self._zip is None else ()
        names = self._zip.namelist() if self._zip else (path.relative_to(place).as_posix() for path in files)
        self.keys = dict.fromkeys(sorted(names))
        self.arrays = dict(self._arrays())
        self.first, self.rows = self._episodes()
        self.samples = int(self.rows.sum())
        self.sampled = {
            path: array
            for path, array in self.arrays.items()
            if path.startswith("data/") and array.shape[:1] == (self.samples,)
        }
        self.warnings: list[str] = []
        self.time, self.unit, self.rate, self.said = self._times()

    def __enter__(self) -> "Buffer":
        return self

    def __exit__(self, *_: object) -> None:
        if self._zip:
            self._zip.close()

    def read(self, key: str) -> bytes | None:
        """None where there is no such file."""
        if key not in self.keys:
            return None
        return self._zip.read(key) if self._zip else (self.place / key).read_bytes()

    def json(self, key: str) -> dict[str, Any]:
        found = json.loads(self.read(key) or b"{}")
        return found if isinstance(found, dict) else {}

    def _decoded(self, path: str) -> zarr.Array:
        try:
            store = zarr.storage.ZipStore(str(self.place), mode="r") if self._zip else str(self.place)
            return zarr.open_group(store, mode="r", use_consolidated=False)[path]
        except (ValueError, KeyError, ImportError, TypeError) as error:
            raise Refused(f"{self.place}/{path}", str(error).split("\n")[0], "a codec that numcodecs has") from error

    def _arrays(self) -> Iterator[tuple[str, Array]]:
        for key in self.keys:
            path, _, name = key.rpartition("/")
            if name not in (".zarray", "zarr.json"):
                continue
            try:
                array = _array(self._decoded, path, name, self.json(key))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                said = str(error) or type(error).__name__
                raise Refused(f"{self.place}/{key}", said, "the JSON of an array") from error
            if array:
                yield path, array

    def _episodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Where episodes begin, and how many rows each has (N)."""
        ends = self.arrays.get(ENDS)
        if ends is None or len(ends.shape) != 1:
            needed = "a replay buffer: the rows behind the last one of each episode"
            raise Refused(str(self.place), f"no {ENDS}", needed)
        if ends.dtype.kind not in "iu":
            raise Refused(f"{self.place}/{ENDS}", str(ends.dtype), "whole numbers")
        ends = ends[:].astype(np.int64)
        rows = np.diff(ends, prepend=0)
        if (rows <= 0).any():
            at = int(np.argmax(rows <= 0))
            what = f"episode {at} with {rows[at]} rows"
            raise Refused(f"{self.place}/{ENDS}", what, "ends that rise from above 0")
        return ends - rows, rows

    def _times(self) -> tuple[str | None, str | None, str | None, str]:
        """The array of times and its unit, or the rate, and how they were found."""
        known = {
            path.removeprefix("data/"): array[:FIRST_ROWS].reshape(-1)
            for path, array in self.sampled.items()
            if is_row_of_numbers(array) and array.dtype.kind in "iufM"
        }
        asked = (self.options.time_column or "").removeprefix("data/") or None
        if (time := find_time(known, asked, self.options.time_unit)) is not None:
            path, self.warnings = f"data/{time['name']}", time["warnings"]
            unit, how = clock.unit_of(time, pa.from_numpy_dtype(known[time["name"]].dtype))
            return path, unit, None, f"time: array '{path}' in {unit or 'its own unit'} ({how})"
        groups = (self.json("data/.zattrs"), self.json(".zattrs"), self.json("zarr.json").get("attributes", {}))
        if (rate := rate_of(self.options, groups)) is None:
            raise Refused(str(self.place), "no times", "--input-hz, the rate of its rows, or --time NAME")
        return None, None, rate[0], f"time: counted at {rate[0]} per second ({rate[1]})"

    def taken(self, which: np.ndarray) -> np.ndarray:
        """The rows of some episodes, one after the other."""
        return np.repeat(self.first[which], self.rows[which]) + clock.places(self.rows[which])

    def stored(self, which: np.ndarray) -> np.ndarray:
        """The times of some episodes (nanoseconds), one after the other."""
        if self.time is None:
            return clock.frames(np.zeros(which.size, np.int64), self.rows[which], clock.rate(self.rate))
        low = int(self.first[which].min())
        values = self.arrays[self.time][low : int((self.first + self.rows)[which].max())][self.taken(which) - low]
        return clock.nanoseconds(pa.chunked_array([pa.array(values.reshape(-1))]), self.unit, self.time)

    def timed(self, which: np.ndarray) -> tuple[Episodes, np.ndarray]:
        """Some episodes at their targets, and the rows of the arrays that have their times."""
        labels, rows = [f"episode {number}" for number in which], self.taken(which)
        times, order = self.options.in_order(self.stored(which), self.rows[which], labels)
        episodes = self.options.grid.episodes(times, self.rows[which], labels)
        return episodes, rows if order is None else rows[order]

    def decided(self) -> Decided:
        """The rules of arrays by the rows of the first episodes."""
        ends = self.first + self.rows
        most = max(int(ends[0]), int(ends[ends <= FIRST_ROWS][-1:].sum()))
        known = [known_of(p, a, most, len(a.shape) <= 2) for p, a in self.sampled.items() if p != self.time]
        offsets = np.append(self.first[ends <= most], most)
        return decide(known, self.options.modes, offsets=offsets, rows=most)

    def write(self, array: Array, place: Path, rules: Rules, episodes: Episodes, taken: np.ndarray) -> None:
        """An array at the targets, with the chunks and codecs that it has."""
        targets = episodes.targets.size
        self._describe(array, place, targets)
        if array.path == self.time:
            _open_new(place)[...] = times_like(array, episodes.written, self.unit).reshape(targets, *array.shape[1:])
            return
        rule = rules[array.path]
        if not rule.taken:
            numbers = {}
            for name in rules.partners(array.path):
                values = self.arrays[name][:]
                numbers[name] = native(values.reshape(len(values), -1)[taken])
            made = compute_columns(numbers, rules, episodes, self.options.device)[array.path]
            _open_new(place)[...] = made.reshape(targets, *array.shape[1:])
            return
        rows = taken[episodes.taken(rule.taken)]
        if array.chunks[0] != 1 or array.prefix is None:
            copy_rows(array, _open_new(place), rows, array.chunks[0])
            return
        inner = array.inner
        for target, row in enumerate(rows.tolist()):
            for chunk in inner:
                data = self.read(f"{array.path}/{array.key((row, *chunk))}")
                if data is not None:  # else it holds the fill value alone
                    _write(place / array.key((target, *chunk)), data)

    def _describe(self, array: Array, place: Path, rows: int) -> None:
        """What an array says of itself, with another number of rows."""
        said = self.json(f"{array.path}/{array.file}")
        said["shape"][0] = rows
        _write(place / array.file, json.dumps(said, indent=4).encode())
        attributes = self.read(f"{array.path}/.zattrs")
        if attributes is not None:
            _write(place / ".zattrs", attributes)

    def finish(self, out: Path, episodes: Episodes) -> None:
        """The ends of the new episodes, and everything that is no sample, with the new rate where a group says the old one."""
        self._describe(self.arrays[ENDS], out / ENDS, episodes.counts.size)
        _open_new(out / ENDS)[...] = np.cumsum(episodes.counts)
        done = tuple(f"{path}/" for path, a in self.arrays.items() if path == ENDS or (out / path / a.file).exists())
        for key in self.keys:
            name = key.rpartition("/")[2]
            if name and name != ".zmetadata" and not key.startswith(done):
                data = self.read(key) or b""
                _write(out / key, self._new_rate(data) if name in (".zattrs", "zarr.json") else data)

    def _new_rate(self, data: bytes) -> bytes:
        """The JSON of a group without a copy of what its arrays say, and with the new rate."""
        try:
            said = json.loads(data)
            attributes = said.get("attributes", {}) if "node_type" in said else said
            said.pop("consolidated_metadata", None)
            attributes |= new_rate(attributes, self.options)
            return json.dumps(said, indent=4).encode()
        except (ValueError, AttributeError, TypeError):
            return data


def _write(place: Path, data: bytes) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)


def _open_new(place: Path) -> zarr.Array:
    return zarr.open_array(str(place), mode="r+")


def _zip(root: Path, target: Path) -> None:
    """A folder as a zip file without compression; the same bytes each time."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as made:
        for path in sorted(path for path in root.rglob("*") if path.is_file()):
            entry = zipfile.ZipInfo(path.relative_to(root).as_posix(), (1980, 1, 1, 0, 0, 0))
            with path.open("rb") as data, made.open(entry, "w", force_zip64=True) as to:
                shutil.copyfileobj(data, to)


class Zarr(Format):
    """A unit for each array of a folder, or one for a zip file."""

    #: SystemError: of codecs.
    broken = (LookupError, ValueError, TypeError, AttributeError, RuntimeError, SystemError, MemoryError)
    broken += (zipfile.BadZipFile,)

    def files(self, source: Path) -> list[Path]:
        """Of a folder its arrays and groups."""
        found = (path.parent for name in (".zarray", "zarr.json") for path in source.rglob(name))
        return [source] if source.is_file() else sorted(found)

    def plan(self, source: Path, options: Options, keep_going: bool, left_out: set[str]) -> Plan:
        plan = Plan(failed=Failed(keep_going, self.broken))
        options.check_streams([])
        with Buffer(source, options) as buffer:
            plan.warnings += buffer.warnings
            plan.notes += [buffer.said, f"episodes: end where '{ENDS}' says"]
            plan.found = {"input_hz": buffer.rate} if buffer.rate else {}
            kept = []
            for episode in range(buffer.rows.size):
                with plan.failed.named(str(episode)):
                    if str(episode) in left_out:
                        continue
                    own, _ = buffer.timed(np.array([episode]))
                    if own.empty(options.max_gap_ns()) is not None:
                        what = "a larger --max-gap, or a format that can leave values out (Parquet)"
                        raise Refused(f"episode {episode}", "a gap longer than --max-gap", what)
                    plan.count("", int(buffer.rows[episode]), own.targets.size)
                    if own.targets.size:
                        kept.append(episode)
            for path, array in buffer.arrays.items():
                if path not in buffer.sampled and path.startswith("data/") and array.shape:
                    plan.beside_samples(path, array.shape[0], buffer.samples)
            task = {"names": kept, "rows": buffer.rows[kept].tolist(), "times": buffer.said}
            names = list(map(str, kept))
            if kept and source.is_file():
                plan.units.append(self.unit_of(source, source.name, names, arrays=list(buffer.sampled), **task))
            for path in buffer.sampled if kept and source.is_dir() else ():
                sizes = [[key, (source / key).stat()] for key in buffer.keys if key.startswith(f"{path}/")]
                marks = [[key, stat.st_size, stat.st_mtime_ns] for key, stat in sizes]
                own = {"file": path, "arrays": [path], "counted": not plan.units, "input": marks}
                plan.units.append(Unit(path, task | own, sum(stat.st_size for _, stat in sizes), names))
            plan.add(buffer.decided())
        plan.episodes = len(kept)
        return plan

    def run_unit(self, source: Path, options: Options, unit: Unit, target: Path) -> dict[str, Any]:
        task, rules = unit.task, Rules.of_json(unit.task["rules"])
        with Buffer(source, options) as buffer:
            episodes, taken = buffer.timed(np.array(task["names"]))
            if source.is_dir():
                buffer.write(buffer.arrays[unit.path], target, rules, episodes, taken)
            else:
                with tempfile.TemporaryDirectory(dir=target.parent, prefix=".", suffix=".tmp") as root:
                    for path in task["arrays"]:
                        buffer.write(buffer.arrays[path], Path(root) / path, rules, episodes, taken)
                    buffer.finish(Path(root), episodes)
                    _zip(Path(root), target)
        facts = {"episodes": len(task["names"]), "rows_read": taken.size, "rows_written": episodes.targets.size}
        return facts if task.get("counted", True) else dict.fromkeys(facts, 0)

    def finish(self, source: Path, options: Options, plan: Plan, results: list[dict[str, Any]], out: Path) -> None:
        """Writes the ends of the new episodes, groups, and arrays that are no samples."""
        if source.is_dir():
            with Buffer(source, options) as buffer:
                buffer.finish(out, buffer.timed(np.array(plan.units[0].task["names"]))[0])

    def episodes(self, source: Path, options: Options, unreadable: dict[str, str]) -> Iterator[list[Stream]]:
        """Every episode as one stream, for inspect()."""
        with Buffer(source, options) as buffer:
            rules = buffer.decided().rules
            real = [p for p, rule in rules.columns.items() if buffer.sampled[p].dtype.kind == "f" and not rule.taken]
            quaternions = {path: rules.quaternions_in(path) for path in real}
            for number, (first, rows) in enumerate(zip(buffer.first.tolist(), buffer.rows.tolist(), strict=True)):
                columns = {p: buffer.arrays[p][first : first + rows].reshape(rows, -1) for p in real}
                yield [Stream(str(number), "", buffer.stored(np.array([number])), columns, quaternions)]
