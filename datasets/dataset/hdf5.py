"""HDF5 demonstrations: robomimic (a group below /data per demonstration) and ALOHA (a file per demonstration).

Datasets whose first extent is the number of samples are resampled; all others, attributes and soft links are copied, and
what they say of rate and length follows. A group with timestamps of its own is a stream with its own rate: all streams of a
demonstration come onto one clock.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
from tmaops._recording import reads_text
from tmaops.dataset import arrays, clock, formats
from tmaops.dataset.arrays import copy_rows, known_of, native, new_rate, row_bytes, slab_rows
from tmaops.dataset.clock import Episodes, one_episode
from tmaops.dataset.columns import compute_columns
from tmaops.dataset.errors import Refused
from tmaops.dataset.formats import Failed, Format, Plan, Unit, rate_of, readable
from tmaops.dataset.options import Options
from tmaops.dataset.places import name_in, opened
from tmaops.dataset.rules import Known, Rules, decide_of_streams, find_time
from tmaops.dataset.tables import FIRST_ROWS

FIRST_BYTES = 4 << 20  # of a dataset by which its rule is decided
AROUND = 2  # rows beside a bracket that its slopes (cubic) depend on

#: Attributes, and datasets of one number, that say how many samples there are.
COUNTS = ("num_samples", "num_frames", "num_steps", "num_timesteps", "n_frames", "n_steps", "length", "episode_length")
COUNTS += ("episode_len", "max_timesteps", "total_frames", "frame_count", "horizon")
LENGTHS_OF_CAMERAS = "compress_len"  # ALOHA: a row for each camera, the bytes of each of its frames

Units = dict[str, tuple[str | None, str, list[str]]]  # of the times of each stream, how they were found, and warnings
Rate = tuple[str, str] | None  # samples per second where there are no times, and how it was found


@dataclass
class Stream:
    """Samples with one clock. `path`: the group below the demonstration that has the timestamps ("" for itself)."""

    path: str
    times: np.ndarray  # int64 nanoseconds (S), in order
    time_name: str | None = None  # of the dataset that holds them; None: counted at the input's rate
    unit: str | None = None
    order: np.ndarray | None = None  # the rows that have the times; None: as they are
    episode: Episodes | None = None  # its samples at the targets of the demonstration

    @property
    def name(self) -> str:
        return self.path or "."

    @property
    def time_path(self) -> str | None:
        return f"{self.path}/{self.time_name}" if self.path and self.time_name else self.time_name

    def taken(self, mode: str) -> np.ndarray:
        """The rows that the targets take."""
        rows = self.episode.taken(mode)
        return rows if self.order is None else self.order[rows]

    def rows(self, item: h5py.Dataset, low: int, high: int) -> np.ndarray:
        """Rows of a dataset in the order of the times."""
        if self.order is None:
            return item[low:high]
        own = self.order[low:high]
        return item[int(own.min()) : int(own.max()) + 1][own - own.min()]


def _members(group: h5py.Group, below: str = "") -> Iterator[tuple[str, h5py.Group | h5py.Dataset | h5py.SoftLink]]:
    """Everything below a group by its path, groups before what they hold; refuses links into other files."""
    for name in group:
        path = f"{below}/{name}" if below else name
        link = group.get(name, getlink=True)
        if isinstance(link, h5py.ExternalLink):
            where = f"{group.file.filename}:{group.name}/{name}"
            raise Refused(where, f"a link to {link.filename}", "data in the file itself")
        if isinstance(link, h5py.SoftLink):
            yield path, link
            continue
        yield path, group[name]
        if isinstance(group[name], h5py.Group):
            yield from _members(group[name], path)


def demonstrations(file: h5py.File) -> list[str]:
    """Names of the groups that are demonstrations: those below /data, or the whole file."""
    data = file.get("data")
    if isinstance(data, h5py.Group) and any(isinstance(item, h5py.Group) for item in data.values()):
        return [f"data/{name}" for name in data if isinstance(data[name], h5py.Group)]
    return [""]


def _above(file: h5py.File) -> list[h5py.Group]:
    """The groups whose attributes are of all demonstrations."""
    return [group for group in (file.get("data"), file) if isinstance(group, h5py.Group)]


def _text_or_numbers(values: np.ndarray, where: str) -> pa.Array:
    """Times of a dataset as Arrow has them."""
    if values.dtype.kind in "OS":
        values = [value.decode("utf-8", "replace") if isinstance(value, bytes) else value for value in values.tolist()]
    try:
        return pa.array(values)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise Refused(where, str(error).split("\n")[0], "numbers or ISO 8601 text") from error


class Demonstration:
    """What a group holds by path, its clocks, its own first, and its targets.

    units: of the times of each stream; takes those of streams that it does not have yet.
    """

    def __init__(self, group: h5py.Group, label: str, options: Options, rate: Rate, units: Units):
        self.group, self.label, self.where, self._options = group, label, f"episode {label}", options
        self.items = dict(_members(group))
        self.datasets = {path: item for path, item in self.items.items() if isinstance(item, h5py.Dataset)}
        self.streams = list(self._timed_streams(units))
        if not self.streams or self.streams[0].path:
            rows = self._counted_rows()
            if rows and rate is None:
                raise Refused(self.where, "no timestamps", "--input-hz, the rate of its samples, or --time NAME")
            if rows:
                times = clock.frames(np.zeros(1, np.int64), np.array([rows]), clock.rate(rate[0]))
                self.streams.insert(0, Stream("", times - options.latency_ns(".")))
        if not self.streams:
            raise Refused(self.where, "no samples", "datasets with one row per sample")
        self._times = {stream.time_path for stream in self.streams}
        self.samples = self.streams[0].times.size

    def _timed_streams(self, units: Units) -> Iterator[Stream]:
        groups = {"": self.group} | {path: item for path, item in self.items.items() if isinstance(item, h5py.Group)}
        for path, group in groups.items():
            if (time := self._time_of(group)) is None:
                continue
            label = f"{self.where}: {path or '.'}/{time['name']}"
            column = pa.chunked_array([_text_or_numbers(group[time["name"]][()].reshape(-1), label)])
            unit, *_ = units.setdefault(path, (*clock.unit_of(time, column.type), time["warnings"]))
            times = clock.nanoseconds(column, unit, label)
            times, order = self._options.in_order(times, np.array([times.size]), [label], path or ".")
            yield Stream(path, times, time["name"], unit, order)

    def _time_of(self, group: h5py.Group) -> dict[str, Any] | None:
        """The dataset of a group that holds its times, as the library finds it by name; None where there is none."""
        asked, known = self._options.time_column, {}
        for name, item in group.items():
            if not isinstance(item, h5py.Dataset) or not arrays.is_row_of_numbers(item):
                continue
            if item.dtype.kind in "OS" and (name == asked or reads_text(name)):
                known[name] = np.array(_text_or_numbers(item[:FIRST_ROWS].reshape(-1), self.where).to_pylist(), str)
            elif item.dtype.kind in "iuf":
                known[name] = native(item[:FIRST_ROWS].reshape(-1))
        return None if asked is not None and asked not in known else find_time(known, asked, self._options.time_unit)

    def _counted_rows(self) -> int:
        """Rows of the datasets that belong to no stream with timestamps: the most common first extent."""
        others = tuple(f"{stream.path}/" for stream in self.streams)
        extents = [item.shape[0] for path, item in self.datasets.items() if item.ndim and not path.startswith(others)]
        return max(set(extents), key=lambda n: (extents.count(n), n)) if extents else 0

    def stream(self, path: str) -> Stream | None:
        """The stream of a dataset: that of the nearest group around it."""
        around = [s for s in self.streams if s.path == "" or path.startswith(s.path + "/")]
        return max(around, key=lambda s: len(s.path), default=None)

    def sampled(self) -> dict[str, Stream]:
        """The streams of the datasets that have a row for each sample, without those of times."""
        found = {path: self.stream(path) for path in self.datasets if path not in self._times}
        return {path: stream for path, stream in found.items() if stream and self._rows(path) == stream.times.size}

    def _rows(self, path: str) -> int | None:
        shape = self.datasets[path].shape
        return shape[0] if shape else None

    def of_cameras(self) -> dict[str, Stream]:
        """The streams of datasets whose second extent is the samples."""
        named = (path for path in self.datasets if path.split("/")[-1] == LENGTHS_OF_CAMERAS)
        found = {path: self.stream(path) for path in named}
        return {p: s for p, s in found.items() if s and self.datasets[p].shape[1:] == (s.times.size,)}

    def targets(self) -> np.ndarray:
        """From the latest first sample to the earliest last one; gives each stream its samples at them."""
        first, last = (end(int(s.times[at]) for s in self.streams) for end, at in ((max, 0), (min, -1)))
        if last < first:
            needed = "streams of one clock (--latency moves one)"
            raise Refused(self.where, "streams that do not overlap in time", needed)
        most, grid = max(s.times.size for s in self.streams), self._options.grid
        targets, counts = grid.of(np.array([first]), np.array([last]), np.array([most]))
        for stream in self.streams:
            wanted = grid.evaluated(stream.times, np.array([stream.times.size]), targets, counts)
            stream.episode = one_episode(stream.times, wanted, self.where)
            if stream.episode.empty(self._options.max_gap_ns(stream.name)) is not None:
                what = "a larger --max-gap, or a format that can leave values out (Parquet)"
                raise Refused(f"{self.where}: stream {stream.name}", "a gap longer than --max-gap", what)
        return targets

    def planned(self, plan: Plan, known: dict[str, Known], rate: Rate, units: Units) -> bool:
        """Whether there are targets; then the plan has what is to be said, and `known` what datasets say of themselves."""
        targets, sampled, cameras = self.targets(), self.sampled(), self.of_cameras()
        if not targets.size:
            return False
        if not plan.notes:
            self._say(plan, rate, units)
        for path, item in self.datasets.items():
            stream = self.stream(path)
            if path in sampled and path not in known:
                known[path] = known_of(path, item, max(1, min(FIRST_ROWS, FIRST_BYTES // row_bytes(item))))
                plan.shares[path] = targets.size / stream.times.size
            elif stream and item.shape and not (path in sampled or path in cameras or path in self._times):
                plan.beside_samples(path, item.shape[0], stream.times.size)
        for stream in self.streams:
            plan.count(stream.name, stream.times.size, targets.size)
        if rate and not self.streams[0].time_name:
            plan.found["input_hz"] = rate[0]
        return True

    def seen(self) -> list[formats.Stream]:
        """Its streams, for inspect()."""
        found = {stream.path: formats.Stream(self.label, stream.path, stream.times) for stream in self.streams}
        real = {path: stream for path, stream in self.sampled().items() if self.datasets[path].dtype.kind == "f"}
        known = [known_of(path, self.datasets[path], FIRST_ROWS) for path in real]
        rules = decide_of_streams(known, {}).rules
        for path, stream in real.items():
            columns = found[stream.path].columns
            columns[path] = self.datasets[path][()].reshape(stream.times.size, -1)
            found[stream.path].quaternions[path] = rules.quaternions_in(path)
        return list(found.values())

    def _say(self, plan: Plan, rate: Rate, units: Units) -> None:
        """What is to be known of the times."""
        for stream in self.streams:
            of = f"group '{stream.path}'" if stream.path else "samples"
            if not stream.time_name:
                plan.notes.append(f"time of {of}: counted at {rate[0]} per second ({rate[1]})")
                continue
            unit, how, warnings = units[stream.path]
            plan.warnings += warnings
            plan.notes.append(f"time of {of}: dataset '{stream.time_name}' in {unit or 'its own unit'} ({how})")
            kind = self.datasets[stream.time_path].dtype
            if kind.kind == "f" and kind.itemsize < 8:
                what = f"dataset '{stream.time_name}' of {stream.path or 'the samples'} holds {kind} seconds"
                plan.warnings.append(f"{what}: their resolution gets coarser with time")

    def write(self, made: h5py.Group, rules: Rules) -> int:
        """Writes the demonstration at its targets, and returns their number."""
        targets, sampled, cameras = self.targets(), self.sampled(), self.of_cameras()
        _copy_attributes(self.group, made)
        for path, item in self.items.items():
            if path in cameras:
                made.create_dataset(path, data=item[()][:, cameras[path].taken("previous")])
                _copy_attributes(item, made[path])
            elif path in self._times:
                self._write_times(path, made, targets)
            elif path in sampled:
                new = _create(made, path, item, targets.size)
                if rules[path].taken:
                    copy_rows(item, new, sampled[path].taken(rules[path].taken))
                else:
                    self._compute(path, new, rules, sampled[path])
            else:
                _copy(path, item, made)
        seconds = (int(self.streams[0].times[-1]) - int(self.streams[0].times[0])) / 1e9
        self._follow(made, targets.size, (self.samples - 1) / seconds if seconds else None)
        return targets.size

    def _write_times(self, path: str, made: h5py.Group, targets: np.ndarray) -> None:
        item = self.datasets[path]
        if item.dtype.kind not in "OS":
            new = _create(made, path, item, targets.size)
            new[...] = arrays.times_like(item, targets, self.stream(path).unit).reshape(new.shape)
            return
        first = _text_or_numbers(item[:1].reshape(-1), path)[0].as_py()
        text = clock.times_like(targets, pa.string(), self.stream(path).unit, clock.text_style(first)).to_pylist()
        kind = item.dtype if item.dtype.kind == "O" else np.dtype(f"S{max(map(len, text), default=1)}")
        text = np.array(text, object if kind.kind == "O" else kind).reshape(-1, *item.shape[1:])
        made.create_dataset(path, data=text, dtype=kind)
        _copy_attributes(item, made[path])

    def _compute(self, path: str, made: h5py.Dataset, rules: Rules, stream: Stream) -> None:
        """Writes a dataset slab by slab: as many targets as fit SLAB_BYTES, from the rows that they need."""
        episode, targets = stream.episode, stream.episode.targets
        items = {name: self.datasets[name] for name in rules.partners(path)}
        whole = rules[path].over_intervals  # each sample counts, also behind the last target
        size = targets.size if whole else slab_rows(self.datasets[path], targets.size)
        for first in range(0, targets.size, size):
            part = targets[first : first + size]
            before, after = (rows[first : first + size] for rows in episode.around)
            low, high = max(int(before[0]) - AROUND, 0), min(int(after[-1]) + AROUND + 1, stream.times.size)
            low, high = (0, stream.times.size) if whole else (low, high)
            numbers = {n: native(stream.rows(item, low, high)).reshape(high - low, -1) for n, item in items.items()}
            own = one_episode(stream.times[low:high], part, self.where)
            computed = compute_columns(numbers, rules, own, self._options.device)[path]
            made[first : first + size] = computed.reshape(part.size, *made.shape[1:])

    def _follow(self, made: h5py.Group, rows: int, rate: float | None) -> None:
        """Sets what the group, and those above it, say of its number of samples and of their rate."""
        for name in COUNTS:
            value = made.attrs.get(name)
            if np.ndim(value) == 0 and np.array(value).dtype.kind in "iuf" and value == self.samples:
                made.attrs[name] = np.asarray(rows, np.array(value).dtype)
            item = made.get(name)
            if isinstance(item, h5py.Dataset) and item.shape == () and item.dtype.kind in "iuf":
                item[()] = rows if item[()] == self.samples else item[()]
        for group in (made, *_above(made.file)):
            for name, value in new_rate(dict(group.attrs), self._options, rate).items():
                was = np.array(group.attrs[name]).dtype
                whole = was.kind in "iu" and isinstance(value, int)
                group.attrs[name] = value if isinstance(value, str) else np.asarray(value, was if whole else np.float64)


class Hdf5(Format):
    """One unit per file."""

    broken = (RuntimeError, KeyError, ValueError, TypeError, MemoryError, OverflowError)
    endings = (".hdf5", ".h5")

    def _opened(self, path: Path) -> h5py.File:
        with readable(str(path), self.broken):
            return h5py.File(opened(path), "r")

    def plan(self, source: Path, options: Options, keep_going: bool, left_out: set[str]) -> Plan:
        plan = Plan(failed=Failed(keep_going, self.broken))
        names: set[str] = set()
        units: Units = {}
        known: dict[str, Known] = {}
        for path in self.files(source):
            name, kept = name_in(source, path), {}
            with plan.failed.named(name), self._opened(path) as file:
                rate = rate_of(options, [group.attrs for group in _above(file)])
                for demo in demonstrations(file):
                    label = f"{name}/{demo}" if demo else name
                    if label in left_out:
                        continue
                    with plan.failed.named(label):
                        made = Demonstration(file[demo or "/"], label, options, rate, units)
                        if made.planned(plan, known, rate, units):
                            names.update(stream.name for stream in made.streams)
                            kept[demo] = label
            if kept:
                plan.units.append(self.unit_of(path, name, list(kept.values()), demos=list(kept), units=units))
            plan.episodes += len(kept)
        if plan.units:
            plan.add(decide_of_streams(list(known.values()), options.modes))
            options.check_streams(sorted(names))
        return plan

    def run_unit(self, source: Path, options: Options, unit: Unit, target: Path) -> dict[str, Any]:
        path = source if source.is_file() else source / unit.task["file"]
        rules, demos = Rules.of_json(unit.task["rules"]), unit.task["demos"]
        read = written = 0
        with self._opened(path) as file, h5py.File(target, "w", libver="latest") as out:
            rate, inside = rate_of(options, [group.attrs for group in _above(file)]), demonstrations(file)
            _copy_attributes(file, out)
            for name, item in _members(file) if inside != [""] else ():
                if not any(name == demo or name.startswith(demo + "/") for demo in inside):
                    _copy(name, item, out)
            for demo, label in zip(demos, unit.episodes, strict=True):
                with readable(f"episode {label}", self.broken):
                    made = Demonstration(file[demo or "/"], label, options, rate, unit.task["units"])
                    written += made.write(out.require_group(demo or "/"), rules)
                    read += made.samples
            if "data" in out and "total" in out["data"].attrs:
                out["data"].attrs["total"] = written
        return {"episodes": len(demos), "rows_read": read, "rows_written": written}

    def episodes(self, source: Path, options: Options, unreadable: dict[str, str]) -> Iterator[list[formats.Stream]]:
        """Every demonstration with its streams, for inspect()."""
        failed = Failed(True, self.broken)
        for path in self.files(source):
            name = name_in(source, path)
            with failed.named(name), self._opened(path) as file:
                rate = rate_of(options, [group.attrs for group in _above(file)])
                for demo in demonstrations(file):
                    label, seen = f"{name}/{demo}" if demo else name, []
                    with failed.named(label):
                        seen = Demonstration(file[demo or "/"], label, options, rate, {}).seen()
                    if seen:
                        yield seen
        unreadable |= failed


def _copy_attributes(source: h5py.Group | h5py.Dataset, target: h5py.Group | h5py.Dataset) -> None:
    for name, value in source.attrs.items():
        target.attrs[name] = value


def _copy(path: str, item: Any, target: h5py.Group) -> None:
    """A group with its attributes, a soft link, or a dataset as it is."""
    if isinstance(item, h5py.SoftLink):
        target[path] = h5py.SoftLink(item.path)
    elif isinstance(item, h5py.Group):
        _copy_attributes(item, target.require_group(path))
    else:
        item.file.copy(item, target, name=path)


def _create(group: h5py.Group, path: str, like: h5py.Dataset, rows: int) -> h5py.Dataset:
    """A dataset of the type, filters and attributes of another, with another number of rows."""
    more = {}
    if like.chunks is not None and rows:
        more = {"compression": like.compression, "compression_opts": like.compression_opts, "shuffle": like.shuffle}
        more["chunks"] = (min(like.chunks[0], rows), *like.chunks[1:])
    made = group.create_dataset(path, shape=(rows, *like.shape[1:]), dtype=like.dtype, **more)
    _copy_attributes(like, made)
    return made
