"""Zarr replay buffers, as diffusion policy and UMI write them: arrays below data/, where meta/episode_ends ends the episodes.

Formats 2 and 3 of Zarr, as a folder or as one file (.zarr.zip). What an array says of its type, chunks and codecs stays. Rows
that lie in a chunk each, as images do, are taken without decoding them, so that their codec need not be installed.
"""

import contextlib
import json
import math
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import zarr
from tmaops.dataset import clock
from tmaops.dataset.columns import Clock, Episodes, compute_columns, in_gaps
from tmaops.dataset.errors import Refused
from tmaops.dataset.formats import RATES, Failed, Plan, Stream, Unit, beside_samples
from tmaops.dataset.options import Options
from tmaops.dataset.places import is_local
from tmaops.dataset.rules import Decided, Known, Rules, decide, find_time
from tmaops.dataset.tables import FIRST_ROWS

ENDS = "meta/episode_ends"
SLAB_BYTES = 32 << 20  # of an array that are in memory at a time, where its rows are taken


class Store:
    """The files of a store by their keys, "data/action/0.0"; read only. A context manager."""

    def __init__(self, place: Path):
        if not is_local(place):
            raise Refused(str(place), "a Zarr store elsewhere", "a copy of it on this machine")
        self.place = place
        try:
            self._zip = zipfile.ZipFile(place) if place.is_file() else None
        except (zipfile.BadZipFile, OSError) as error:
            raise Refused(str(place), str(error), "a zip file that can be read") from error
        files = (path for path in place.rglob("*") if path.is_file()) if self._zip is None else ()
        self.keys = sorted(
            self._zip.namelist() if self._zip else (path.relative_to(place).as_posix() for path in files)
        )
        self._known = set(self.keys)

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_: object) -> None:
        if self._zip:
            self._zip.close()

    def read(self, key: str) -> bytes | None:
        """None where there is no such file."""
        if key not in self._known:
            return None
        return self._zip.read(key) if self._zip else (self.place / key).read_bytes()

    def json(self, key: str) -> dict[str, Any]:
        found = json.loads(self.read(key) or b"{}")
        return found if isinstance(found, dict) else {}

    def array(self, path: str) -> zarr.Array:
        """An array whose values are decoded."""
        try:
            store = zarr.storage.ZipStore(str(self.place), mode="r") if self._zip else str(self.place)
            return zarr.open_group(store, mode="r", use_consolidated=False)[path]
        except (ValueError, KeyError, ImportError, TypeError) as error:
            raise Refused(f"{self.place}/{path}", str(error).split("\n")[0], "a codec that numcodecs has") from error


@dataclass
class Array:
    """What an array says of itself."""

    path: str
    file: str  # the name of its file of JSON
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: np.dtype
    prefix: str | None  # of a chunk's key, and what stands between its numbers; None: chunks hold more
    separator: str = "."

    def key(self, chunk: tuple[int, ...]) -> str:
        return f"{self.path}/{self.prefix}{self.separator.join(map(str, chunk))}"

    @property
    def inner(self) -> Iterator[tuple[int, ...]]:
        """The chunks of one row."""
        ends = zip(self.shape[1:], self.chunks[1:], strict=True)
        return product(*(range(-(-extent // chunk)) for extent, chunk in ends))


def arrays_of(store: Store) -> dict[str, Array]:
    """All arrays of a store by path."""
    found = {}
    for key in store.keys:
        path, _, name = key.rpartition("/")
        if name not in (".zarray", "zarr.json"):
            continue
        try:
            said = store.json(key)
            if name == ".zarray":
                separator = said.get("dimension_separator", ".")
                array = Array(
                    path, name, tuple(said["shape"]), tuple(said["chunks"]), _dtype(said["dtype"]), "", separator
                )
            elif said["node_type"] == "array":
                encoding = said["chunk_key_encoding"]
                sharded = any(codec["name"] == "sharding_indexed" for codec in said["codecs"])
                separator = encoding.get("configuration", {}).get("separator", "/")
                grid = tuple(said["chunk_grid"]["configuration"]["chunk_shape"])
                prefix = None if sharded or encoding["name"] != "default" else f"c{separator}"
                array = Array(path, name, tuple(said["shape"]), grid, _dtype(said["data_type"]), prefix, separator)
            else:
                continue
            if (
                len(array.shape) != len(array.chunks)
                or not all(
                    isinstance(n, int) and n >= (0 if n in array.shape else 1) for n in (*array.shape, *array.chunks)
                )
                or not all(array.chunks)
            ):
                raise ValueError(f"shape {array.shape} in chunks {array.chunks}")
            found[path] = array
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise Refused(f"{store.place}/{key}", str(error) or type(error).__name__, "the JSON of an array") from error
    return found


def _dtype(text: Any) -> np.dtype:
    try:
        return np.dtype(text if isinstance(text, str) else [tuple(field) for field in text])
    except TypeError:
        return np.dtype("O")  # a type of Zarr alone, whose rows are taken


class Zarr:
    """A unit for each array of a folder, or one for a zip file."""

    broken = (
        KeyError,
        ValueError,
        RuntimeError,
        SystemError,
        MemoryError,
        zipfile.BadZipFile,
    )  # SystemError: of codecs

    def files(self, source: Path) -> list[Path]:
        if source.is_file():
            return [source]
        with Store(source) as store:
            return [source / path for path in arrays_of(store)]

    def plan(self, source: Path, options: Options, keep_going: bool, left_out: set[str]) -> Plan:
        plan = Plan([], 0, {}, failed=Failed(keep_going, self.broken))
        options.check_streams([])
        with Store(source) as store:
            arrays = arrays_of(store)
            first, rows = _episodes(store, arrays)
            samples = int(rows.sum())
            found = _times(store, arrays, samples, options)
            plan.notes += [found.pop("said"), f"episodes: end where '{ENDS}' says"]
            plan.found = {key: found[key] for key in ("input_hz",) if found[key]}
            kept = []
            for episode in range(rows.size):
                with plan.failed.named(str(episode)):
                    if str(episode) in left_out:
                        continue
                    own, targets = _timed(
                        store, found, options, first[episode : episode + 1], rows[episode : episode + 1]
                    )
                    label = f"episode {episode}"
                    if in_gaps(own.times, own.targets, options.max_gap_ns()) is not None:
                        what = "a larger --max-gap, or a format that can leave values out (Parquet)"
                        raise Refused(label, "a gap longer than --max-gap", what)
                    plan.count("", int(rows[episode]), targets.size)
                    if targets.size:
                        kept.append(episode)
            sampled = {path: array for path, array in arrays.items() if _is_sampled(array, samples)}
            decided = _decided(store, sampled, found, first, rows, options)
            plan.columns = decided.rules.columns
            plan.notes, plan.warnings = plan.notes + decided.notes, list(decided.warnings)
            for path, array in arrays.items():
                if path not in sampled and path.startswith("data/") and array.shape:
                    beside_samples(path, array.shape[0], samples, plan)
            if not kept:
                return plan
            task = {"first": first[kept].tolist(), "rows": rows[kept].tolist(), "names": kept, "times": found}
            task["rules"] = decided.rules.json()
            names = [str(episode) for episode in kept]
            if source.is_file():
                stat = source.stat()
                task |= {"file": source.name, "arrays": list(sampled), "counted": True}
                task |= {"input": [stat.st_size, stat.st_mtime_ns]}
                plan.units.append(Unit(source.name, task, stat.st_size, names))
            else:
                for path in sampled:
                    sizes = [[key, (source / key).stat()] for key in store.keys if key.startswith(f"{path}/")]
                    marks = [[key, stat.st_size, stat.st_mtime_ns] for key, stat in sizes]
                    size = sum(stat.st_size for _, stat in sizes)
                    own = {"file": path, "arrays": [path], "counted": not plan.units, "input": marks}
                    plan.units.append(Unit(path, task | own, size, names))
        plan.episodes = len(kept)
        return plan

    def run_unit(self, source: Path, options: Options, unit: Unit, target: Path) -> dict[str, Any]:
        with Store(source) as store, contextlib.ExitStack() as stack:
            task, rules = unit.task, Rules.of_json(unit.task["rules"])
            arrays = arrays_of(store)
            first, rows = np.array(task["first"]), np.array(task["rows"])
            labels = [f"episode {name}" for name in task["names"]]
            episodes, targets = _timed(store, task["times"], options, first, rows, labels)
            if source.is_file():
                root = Path(
                    stack.enter_context(tempfile.TemporaryDirectory(dir=target.parent, prefix=".", suffix=".tmp"))
                )
            for path in task["arrays"]:
                place = root / path if source.is_file() else target
                _write_array(store, arrays[path], place, task["times"], rules, options, episodes, targets)
            if source.is_file():
                _finish(store, arrays, root, options, episodes)
                _zip(root, target)
        facts = {"episodes": rows.size, "rows_read": int(rows.sum()), "rows_written": targets.size}
        return facts if task["counted"] else dict.fromkeys(facts, 0)

    def finish(self, source: Path, options: Options, plan: Plan, results: list[dict[str, Any]], out: Path) -> None:
        """Writes the ends of the new episodes, groups, and arrays that are no samples."""
        if source.is_file():
            return
        with Store(source) as store:
            arrays = arrays_of(store)
            task = plan.units[0].task
            first, rows = np.array(task["first"]), np.array(task["rows"])
            episodes, _ = _timed(store, task["times"], options, first, rows)
            _finish(store, arrays, out, options, episodes)

    def episodes(self, source: Path, options: Options, unreadable: dict[str, str]) -> Iterator[list[Stream]]:
        """Every episode as one stream, for inspect()."""
        with Store(source) as store:
            arrays = arrays_of(store)
            firsts, rows = _episodes(store, arrays)
            found = _times(store, arrays, int(rows.sum()), options)
            sampled = {path: array for path, array in arrays.items() if _is_sampled(array, int(rows.sum()))}
            rules = _decided(store, sampled, found, firsts, rows, options).rules
            for number, (first, count) in enumerate(zip(firsts.tolist(), rows.tolist(), strict=True)):
                stream = Stream(
                    str(number), "", _stored(store, found, firsts[number : number + 1], rows[number : number + 1])
                )
                for path, rule in rules.columns.items():
                    if sampled[path].dtype.kind == "f" and rule.taken is None:
                        stream.columns[path] = store.array(path)[first : first + count].reshape(count, -1)
                        stream.quaternions[path] = rules.quaternions_in(path)
                yield [stream]


def _episodes(store: Store, arrays: dict[str, Array]) -> tuple[np.ndarray, np.ndarray]:
    """Where episodes begin, and how many rows each has (N)."""
    if ENDS not in arrays or len(arrays[ENDS].shape) != 1:
        raise Refused(str(store.place), f"no {ENDS}", "a replay buffer: the rows behind the last one of each episode")
    if arrays[ENDS].dtype.kind not in "iu":
        raise Refused(f"{store.place}/{ENDS}", str(arrays[ENDS].dtype), "whole numbers")
    ends = store.array(ENDS)[:].astype(np.int64)
    rows = np.diff(ends, prepend=0)
    if (rows <= 0).any():
        at = int(np.argmax(rows <= 0))
        raise Refused(f"{store.place}/{ENDS}", f"episode {at} with {rows[at]} rows", "ends that rise from above 0")
    return ends - rows, rows


def _times(store: Store, arrays: dict[str, Array], samples: int, options: Options) -> dict[str, Any]:
    """What says the times: {"time": the path of an array or None, "unit", "input_hz", "said"}."""
    lines = {path: array for path, array in arrays.items() if array.shape == (samples,) and path.startswith("data/")}
    known = {
        path.removeprefix("data/"): store.array(path)[:FIRST_ROWS]
        for path, a in lines.items()
        if a.dtype.kind in "iufM"
    }
    time = find_time(known, (options.time_column or "").removeprefix("data/") or None, options.time_unit)
    if time is not None:
        path = f"data/{time['name']}"
        unit, how = clock.unit_of(time, pa.chunked_array([pa.array(known[time["name"]])]), options.time_unit)
        said = f"time: array '{path}' in {unit or 'its own unit'} ({how})"
        return {"time": path, "unit": unit, "input_hz": None, "said": said}
    rates = [(options.input_hz, "asked for")]
    for key in ("data/.zattrs", ".zattrs"):
        rates += [(store.json(key)[name], f"attribute {name}") for name in RATES if name in store.json(key)]
    attributes = store.json("zarr.json").get("attributes", {})
    rates += [(attributes[name], f"attribute {name}") for name in RATES if name in attributes]
    hz, how = next(((hz, how) for hz, how in rates if hz), (None, ""))
    if hz is None:
        raise Refused(str(store.place), "no times", "--input-hz, the rate of its rows, or --time NAME")
    hz = str(clock.rate(hz))
    return {"time": None, "unit": None, "input_hz": hz, "said": f"time: counted at {hz} per second ({how})"}


def _stored(store: Store, found: dict[str, Any], first: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The times of episodes (nanoseconds), one after the other."""
    if found["time"] is None:
        return clock.frames(np.zeros(rows.size, np.int64), rows, clock.rate(found["input_hz"]))
    values = store.array(found["time"])[int(first[0]) : int(first[-1] + rows[-1])]
    values = values[np.repeat(first - first[0], rows) + clock.places(rows)]
    return clock.nanoseconds(pa.chunked_array([pa.array(values)]), found["unit"], found["time"])


def _timed(
    store: Store, found: dict[str, Any], options: Options, first: np.ndarray, rows: np.ndarray, labels: Any = None
) -> tuple[Episodes, np.ndarray]:
    """Episodes as they are resampled, their rows in the order of their times, and the targets as they are written."""
    labels = labels or [f"episode {number}" for number in range(rows.size)]
    times = _stored(store, found, first, rows) - options.latency_ns(".")
    times, order = clock.in_order(times, rows, labels, options.sort, options.duplicates)
    grid, ends = options.grid(), np.cumsum(rows)
    targets, counts = grid.of(times[ends - rows], times[ends - 1], rows)
    episodes = Episodes(times, grid.evaluated(times, rows, targets, counts), rows, counts, labels)
    episodes.taken = np.repeat(first, rows) + clock.places(rows)  # rows of the arrays that have these times
    if order is not None:
        episodes.taken = episodes.taken[order]
    return episodes, targets


def _is_sampled(array: Array, samples: int) -> bool:
    return array.path.startswith("data/") and bool(array.shape) and array.shape[0] == samples


def _decided(
    store: Store,
    sampled: dict[str, Array],
    found: dict[str, Any],
    first: np.ndarray,
    rows: np.ndarray,
    options: Options,
) -> Decided:
    """The rules of arrays by their first rows."""
    ends = first + rows
    most = max(int(ends[0]), int(ends[ends <= FIRST_ROWS][-1:].sum()))
    known = []
    for path, array in sampled.items():
        real = array.dtype.kind == "f" and len(array.shape) <= 2
        width = math.prod(array.shape[1:])
        values = store.array(path)[:most] if real or array.dtype.kind in "iub" and len(array.shape) == 1 else None
        values = values.reshape(most) if real and len(array.shape) == 1 else values
        if path != found["time"]:
            known.append(Known(path, str(array.dtype), width if real else None, values))
    offsets = np.append(first[ends <= most], most)
    return decide(known, options.modes, offsets=offsets, rows=most)


def _write_array(
    store: Store,
    array: Array,
    place: Path,
    found: dict[str, Any],
    rules: Rules,
    options: Options,
    episodes: Episodes,
    targets: np.ndarray,
) -> None:
    """An array at the targets, with the chunks and codecs that it has."""
    _write_json(store, array, place, targets.size)
    if array.path == found["time"]:
        kind = pa.from_numpy_dtype(array.dtype.newbyteorder("="))
        made = clock.times_like(targets, kind, found["unit"]).to_numpy(zero_copy_only=False)
        _open_new(place)[...] = made.astype(array.dtype)
        return
    rule = rules[array.path]
    if not rule.taken:
        numbers = {}
        for name in rules.partners.get(array.path, [array.path]):
            values = store.array(name)[:]
            numbers[name] = np.ascontiguousarray(
                values.reshape(len(values), -1)[episodes.taken], values.dtype.newbyteorder("=")
            )
        made = compute_columns(numbers, rules, episodes, options.device)[array.path]
        _open_new(place)[...] = made.reshape(targets.size, *array.shape[1:])
        return
    rows = episodes.taken[Clock(episodes).rows(rule.taken)]
    if array.chunks[0] == 1 and array.prefix is not None:
        inner = list(array.inner)
        for target, row in enumerate(rows.tolist()):
            for chunk in inner:
                data = store.read(array.key((row, *chunk)))
                if data is not None:  # else it holds the fill value alone
                    to = place / array.key((target, *chunk)).removeprefix(f"{array.path}/")
                    to.parent.mkdir(parents=True, exist_ok=True)
                    to.write_bytes(data)
        return
    old, new = store.array(array.path), _open_new(place)
    row_bytes = max(1, array.dtype.itemsize * math.prod(array.shape[1:]))
    step = max(1, SLAB_BYTES // row_bytes // array.chunks[0]) * array.chunks[0]
    for begin in range(0, targets.size, step):
        own = rows[begin : begin + step]
        low = int(own.min())
        new[begin : begin + step] = old[low : int(own.max()) + 1][own - low]


def _write_json(store: Store, array: Array, place: Path, rows: int) -> None:
    """What an array says of itself, with another number of rows."""
    place.mkdir(parents=True, exist_ok=True)
    said = store.json(f"{array.path}/{array.file}")
    said["shape"][0] = rows
    (place / array.file).write_text(json.dumps(said, indent=4), encoding="utf-8")
    attributes = store.read(f"{array.path}/.zattrs")
    if attributes is not None:
        (place / ".zattrs").write_bytes(attributes)


def _open_new(place: Path) -> zarr.Array:
    return zarr.open_array(str(place), mode="r+")


def _finish(store: Store, arrays: dict[str, Array], out: Path, options: Options, episodes: Episodes) -> None:
    """The ends of the new episodes, and everything that is no sample, with the new rate where a group says the old one."""
    _write_json(store, arrays[ENDS], out / ENDS, episodes.counts.size)
    _open_new(out / ENDS)[...] = np.cumsum(episodes.counts)
    done = [f"{path}/" for path, array in arrays.items() if path == ENDS or (out / path / array.file).exists()]
    for key in store.keys:
        if key.endswith("/") or key.rpartition("/")[2] == ".zmetadata" or key.startswith(tuple(done)):
            continue
        data = store.read(key) or b""
        if key.rpartition("/")[2] in (".zattrs", "zarr.json"):
            data = _new_rate(data, options)
        (out / key).parent.mkdir(parents=True, exist_ok=True)
        (out / key).write_bytes(data)


def _new_rate(data: bytes, options: Options) -> bytes:
    """The JSON of a group without a copy of what its arrays say, and with the new rate."""
    try:
        said = json.loads(data)
        attributes = said.get("attributes", {}) if "node_type" in said else said
        said.pop("consolidated_metadata", None)
        attributes |= {name: clock.number(clock.rate(options.hz)) for name in RATES if name in attributes}
        return json.dumps(said, indent=4).encode()
    except (ValueError, AttributeError, TypeError):
        return data


def _zip(root: Path, target: Path) -> None:
    """A folder as a zip file without compression; the same bytes each time."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as made:
        for path in sorted(root.rglob("*")):
            if path.is_file():
                entry = zipfile.ZipInfo(path.relative_to(root).as_posix(), (1980, 1, 1, 0, 0, 0))
                with path.open("rb") as data, made.open(entry, "w", force_zip64=True) as to:
                    shutil.copyfileobj(data, to)
