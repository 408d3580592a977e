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
import zarr
from tmaops.dataset import clock
from tmaops.dataset.arrays import Clock, Part, check_mask, known_of, new_rate, read_times, times_among
from tmaops.dataset.errors import Refused
from tmaops.dataset.formats import Failed, Format, Plan, Stream, Unit, rate_of
from tmaops.dataset.options import Options
from tmaops.dataset.places import is_local
from tmaops.dataset.rules import MASK, Decided, Rules, decide
from tmaops.dataset.tables import FIRST_ROWS
from zarr.buffer.cpu import Buffer

ENDS = "meta/episode_ends"


@dataclass
class Array:
    """What an array says of itself (about), without its codecs, and its values, which `open` decodes."""

    open: Callable[[str], zarr.Array]
    path: str
    file: str  # the name of its file of JSON
    about: zarr.Array
    attrs: dict[str, Any]

    def __post_init__(self) -> None:
        self.shape, self.chunks, self.dtype = self.about.shape, self.about.chunks, self.about.dtype

    def __getitem__(self, rows: slice) -> np.ndarray:
        return self.open(self.path)[rows]

    def keys(self, row: int) -> Iterator[str]:
        """The files of the chunks of a row that has chunks of its own, below the array."""
        for chunk in product(
            (row,), *(range(-(-n // size)) for n, size in zip(self.shape[1:], self.chunks[1:], strict=True))
        ):
            yield self.about.metadata.encode_chunk_key(chunk)


def _without_codecs(said: dict[str, Any]) -> dict[str, Any]:
    """The JSON of an array with the codecs alone that its type needs, so that the others need not be installed."""
    if "node_type" not in said:
        needed = [each for each in said.get("filters") or () if each["id"].startswith("vlen")]
        return said | {"compressor": None, "filters": needed or None}
    plain = [{"name": "bytes", "configuration": {"endian": "little"}}]
    return said | {"codecs": [each for each in said["codecs"] if each["name"].startswith("vlen")] or plain}


class Store:
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
        self.data = {path: array for path, array in self.arrays.items() if path.startswith("data/")}
        self._time = self._times()
        self.rate = self._time.get("hz")  # where there are no times

    def __enter__(self) -> "Store":
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

    def attributes(self, path: str) -> dict[str, Any]:
        """What a group or an array says of itself."""
        below = f"{path}/" if path else ""
        return self.json(f"{below}.zattrs") | self.json(f"{below}zarr.json").get("attributes", {})

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
                if (said := self.json(key)).get("node_type") != "group":
                    text = Buffer.from_bytes(json.dumps(_without_codecs(said)).encode())
                    about = zarr.open_array({name: text}, mode="r")
                    yield path, Array(self._decoded, path, name, about, self.attributes(path))
            except Zarr.broken as error:
                if path.startswith("data/") or path == ENDS:  # others are copied as they are
                    said = str(error) or type(error).__name__
                    raise Refused(f"{self.place}/{key}", said, "the JSON of an array") from error

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

    def _times(self) -> dict[str, Any]:
        """What a clock says of its times; with `hz`, the rate, where they are counted."""
        own = {p.removeprefix("data/"): a for p, a in self.data.items() if a.shape[:1] == (self.samples,)}
        if not own and self.samples:
            lengths = ", ".join(f"{path} of {array.shape}" for path, array in self.data.items()) or "no array"
            raise Refused(str(self.place), lengths, f"arrays below data/ of {self.samples} rows, as {ENDS} says")
        asked = (self.options.time_column or "").removeprefix("data/") or None
        if (time := times_among(own, asked, self.options.time_unit)) is not None:
            names, unit, how, warnings = time
            said = f"time: array 'data/{names[0]}' in {clock.spoken(unit, names[-1] if names[1:] else None)} ({how})"
            return {"names": [f"data/{name}" for name in names], "unit": unit, "said": said, "warnings": warnings}
        if (rate := rate_of(self.options, map(self.attributes, ("data", "")))) is None:
            raise Refused(str(self.place), "no times", "--input-hz, the rate of its rows, or --time NAME")
        return {"hz": rate[0], "said": f"time: counted at {rate[0]} per second ({rate[1]})"}

    def part(self, which: list[int], in_order: bool = True) -> Part:
        """Some episodes. in_order: of their times; without it as they are stored."""
        first, counts = self.first[which], self.rows[which]
        rows = np.repeat(first, counts) + clock.places(counts)
        about = dict(self._time)
        if hz := about.pop("hz", None):
            times = clock.frames(np.zeros(counts.size, np.int64), counts, clock.rate(hz))
        else:
            low, names = int(rows.min()), about["names"]
            values = [self.arrays[path][low : int(rows.max()) + 1][rows - low] for path in names]
            times = read_times(values, about["unit"], names[0])
        labels = [f"episode {number}" for number in which]
        if in_order:
            times, order = self.options.in_order(times, counts, unit=about.get("unit"))
            rows = rows if order is None else rows[order]
        return Part(self.data, [Clock("", times, counts, rows, self.samples, **about)], labels, self.options)

    def decided(self) -> Decided:
        """The rules of arrays by the rows of the first episodes."""
        ends = self.first + self.rows
        most = max(int(ends[0]), int(ends[ends <= FIRST_ROWS][-1:].sum()))
        arrays = {path: self.data[path] for path in self.part([0], in_order=False).sampled}
        known = [known_of(path, array, most) for path, array in arrays.items()]
        return decide(known, self.options.modes, offsets=np.append(self.first[ends <= most], most), rows=most)

    def write(self, path: str, place: Path, rules: Rules, part: Part) -> None:
        """An array at the targets, with the chunks and codecs that it has."""
        array, targets = self.arrays[path], part.targets
        times = part.new_times(path) if path in part.times else None
        self._describe(array, place, targets.size, array.dtype if times is None else times.dtype)
        if times is not None:
            new = zarr.open_array(str(place), mode="r+")
            new[...] = times
            new.attrs.update(part.said_of_times(path))
        elif not (mode := rules[path].taken) or array.chunks[0] != 1:
            part.write(path, zarr.open_array(str(place), mode="r+"), rules)
        else:
            own = part.clocks[0]
            for target, row in enumerate(own.rows[own.episodes.taken(mode)].tolist()):
                for old, new in zip(array.keys(row), array.keys(target), strict=True):
                    if (data := self.read(f"{path}/{old}")) is not None:  # else it holds the fill value alone
                        _write(place / new, data)

    def _describe(self, array: Array, place: Path, rows: int, kind: np.dtype | None = None) -> None:
        """What an array says of itself, with another number of rows, and of another type where texts have become longer."""
        said = self.json(f"{array.path}/{array.file}")
        said["shape"][0] = rows
        if kind not in (None, array.dtype):
            made = {}
            zarr.create_array(made, shape=(1,), dtype=kind, zarr_format=2 if array.file == ".zarray" else 3)
            own = json.loads(made[array.file].to_bytes())
            said |= {key: own[key] for key in ("dtype", "data_type", "fill_value") if key in own}
        _write(place / array.file, json.dumps(said, indent=4).encode())
        if (attributes := self.read(f"{array.path}/.zattrs")) is not None:
            _write(place / ".zattrs", attributes)

    def finish(self, out: Path, part: Part) -> None:
        """The ends of the new episodes, and everything that is no sample, with the new rate where a group says the old one."""
        counts = part.targets.size and part.clocks[0].episodes.counts
        self._describe(self.arrays[ENDS], out / ENDS, counts.size)
        zarr.open_array(str(out / ENDS), mode="r+")[...] = np.cumsum(counts)
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
        with Store(source, options) as store:
            kept = []
            for episode in range(store.rows.size):
                with plan.failed.named(str(episode)):
                    if str(episode) not in left_out and store.part([episode]).planned(plan):
                        kept.append(episode)
            if kept:
                self._units(source, store, kept, plan)
            plan.notes.append(f"episodes: end where '{ENDS}' says")
            plan.found = {"input_hz": store.rate} if store.rate else {}
            plan.add(store.decided())
            check_mask(f"data/{MASK}", plan.decided)
        plan.episodes = len(kept)
        return plan

    def _units(self, source: Path, store: Store, kept: list[int], plan: Plan) -> None:
        part, names = store.part(kept[:1]), list(map(str, kept))
        arrays = [path for path in store.data if path in part.sampled or path in part.times]
        task = {"names": kept, "rows": store.rows[kept].tolist(), "times": plan.notes[0]}
        if source.is_file():
            plan.units.append(self.unit_of(source, source.name, names, arrays=arrays, **task))
            return
        for path in arrays:
            sizes = [[key, (source / key).stat()] for key in store.keys if key.startswith(f"{path}/")]
            marks = [[key, stat.st_size, stat.st_mtime_ns] for key, stat in sizes]
            own = {"file": path, "counted": not plan.units, "input": marks}
            plan.units.append(Unit(path, task | own, sum(stat.st_size for _, stat in sizes), names))

    def run_unit(self, source: Path, options: Options, unit: Unit, target: Path) -> dict[str, Any]:
        task, rules = unit.task, Rules.of_json(unit.task["rules"])
        with Store(source, options) as store:
            part = store.part(task["names"])
            rows = {"rows_read": part.clocks[0].times.size, "rows_written": part.targets.size}
            if source.is_dir():
                store.write(unit.path, target, rules, part)
            else:
                with tempfile.TemporaryDirectory(dir=target.parent, prefix=".", suffix=".tmp") as root:
                    for path in task["arrays"]:
                        store.write(path, Path(root) / path, rules, part)
                    store.finish(Path(root), part)
                    _zip(Path(root), target)
        facts = {"episodes": len(task["names"])} | rows
        return facts if task.get("counted", True) else dict.fromkeys(facts, 0)

    def finish(self, source: Path, options: Options, plan: Plan, results: list[dict[str, Any]], out: Path) -> None:
        """Writes the ends of the new episodes, groups, and arrays that are no samples."""
        if source.is_dir():
            with Store(source, options) as store:
                store.finish(out, store.part(plan.units[0].task["names"]))

    def episodes(self, source: Path, options: Options, unreadable: dict[str, str]) -> Iterator[list[Stream]]:
        """Every episode as one stream, for inspect()."""
        with Store(source, options) as store:
            rules = store.decided().rules
            for number in range(store.rows.size):
                yield store.part([number], in_order=False).seen(str(number), rules)
