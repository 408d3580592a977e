"""HDF5 demonstrations: robomimic and its like (a group per demonstration) and ALOHA (a file per demonstration).

Datasets whose first extent is the number of samples are resampled; all others, attributes and soft links are copied, and
what they say of rate and length follows. A group with timestamps of its own is a stream with its own rate: all streams of a
demonstration come onto one clock.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from fnmatch import translate
from pathlib import Path
from types import MappingProxyType
from typing import Any

import h5py
import numpy as np
from tmaops.dataset import clock, formats
from tmaops.dataset.arrays import Clock, Part, check_mask, known_of, new_rate, read_times, row_bytes, times_among
from tmaops.dataset.errors import Refused
from tmaops.dataset.formats import Failed, Format, Plan, Unit, rate_of, readable
from tmaops.dataset.options import Options
from tmaops.dataset.places import is_local, name_in, opened
from tmaops.dataset.rules import MASK, Known, Rules, decide_of_streams
from tmaops.dataset.tables import FIRST_ROWS
from tmaops.dataset.workers import without_end

FIRST_BYTES = 4 << 20  # of a dataset by which its rule is decided

#: Attributes, and datasets of one number, that say how many samples there are.
COUNTS = ("num_samples", "num_frames", "num_steps", "num_timesteps", "n_frames", "n_steps", "length", "episode_length")
COUNTS += ("episode_len", "max_timesteps", "total_frames", "frame_count", "horizon")
#: The paths of groups that are demonstrations by their names: demo_0, train/ep_003, trajectories/12.
NAMED = re.compile(
    r"(.+/)?((demo|demonstration|episode|ep|traj|trajectory|rollout)[_-]?\d+"
    r"|(demos|demonstrations|episodes|trajs|trajectories|rollouts)/\d+)",
    re.IGNORECASE,
)
LENGTHS_OF_CAMERAS = "compress_len"  # ALOHA: a row for each camera, the bytes of each of its frames

Units = dict[str, tuple[str | None, str, list[str]]]  # of the times of each stream, how they were found, and warnings


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


def demonstrations(file: h5py.File, pattern: str | None) -> list[str]:
    """Names of the groups that are demonstrations: of a pattern; else NAMED so, or below /data, or the whole file."""
    if pattern is not None:
        return [*_named(file, "", re.compile(translate(pattern)))]
    below = list(_groups(file.get("data"), "data/"))
    return [*_named(file, "", NAMED)] or below or [""]


def _groups(group: Any, below: str) -> Iterator[str]:
    for name in group if isinstance(group, h5py.Group) else ():
        if isinstance(group.get(name, getlink=True), h5py.HardLink) and group.get(name, getclass=True) is h5py.Group:
            yield below + name


def _named(group: h5py.Group, below: str, names: re.Pattern) -> Iterator[str]:
    for path in _groups(group, below):
        yield from [path] if names.fullmatch(path) else _named(group.file[path], f"{path}/", names)


def _is_array(item: Any) -> bool:
    """Whether it is a dataset with numbers, one at least; those of h5py.Empty have none."""
    return isinstance(item, h5py.Dataset) and item.shape is not None


class Field:
    """A field of a dataset of structures, as a dataset of its own."""

    attrs: Mapping[str, Any] = MappingProxyType({})
    chunks = None

    def __init__(self, item: h5py.Dataset, name: str):
        self.dtype, inner = item.dtype[name].subdtype or (item.dtype[name], ())
        self._item, self._name, self.shape = item, name, (*item.shape, *inner)

    def __getitem__(self, rows: Any) -> np.ndarray:
        return self._item.fields(self._name)[rows]

    def __setitem__(self, rows: Any, values: np.ndarray) -> None:
        whole = self._item[rows]
        whole[self._name] = values
        self._item[rows] = whole


def _inside(item: Any) -> Mapping[str, Any] | None:
    """What a group has inside, or a dataset of structures: its fields. None of everything else."""
    if _is_array(item) and item.dtype.names and item.shape:
        return {name: Field(item, name) for name in item.dtype.names}
    return item if isinstance(item, h5py.Group) else None


def _around(group: h5py.Group) -> list[h5py.Group]:
    """The group of a demonstration and those around it, whose attributes are of all in them; of a whole file its /data, too."""
    found, data = [group], group.get("data")
    while found[-1].name != "/":
        found.append(found[-1].parent)
    return found + [data] * (group.name == "/" and isinstance(data, h5py.Group))


class Demonstration(Part):
    """What a group holds by path, and its clocks. units: of the times of each stream; takes those that it does not have yet."""

    def __init__(self, group: h5py.Group, label: str, options: Options, units: Units):
        self.group, self.label, self.where = group, label, f"episode {label}"
        self.items, self.rate = dict(_members(group)), rate_of(options, [each.attrs for each in _around(group)])
        groups = {path: own for path, item in [("", group), *self.items.items()] if (own := _inside(item)) is not None}
        datasets = {path: item for path, item in self.items.items() if _is_array(item) and path not in groups}
        for path, own in groups.items():
            datasets |= {f"{path}/{name}": item for name, item in own.items() if isinstance(item, Field)}
        clocks = [made for path, own in groups.items() if (made := self._timed(path, own, options, units))]
        others = tuple(f"{each.path}/" for each in clocks)
        extents = [item.shape[0] for path, item in datasets.items() if item.shape and not path.startswith(others)]
        if extents and (not clocks or clocks[0].path):  # the most common one is of samples without timestamps
            rows = max(set(extents), key=lambda n: (extents.count(n), n))
            same = [each for each in clocks if each.extent == rows]
            if len(same) == 1 and self.rate is None:
                same[0].said += f", also of arrays without timestamps, which have {rows} rows too"
                same[0].path = ""
                clocks.sort(key=lambda each: each.path)
            else:
                clocks.insert(0, self._counted(rows, options))
        if not clocks or not clocks[0].extent:
            raise Refused(self.where, "no samples", "datasets with one row per sample")
        super().__init__(datasets, clocks, [self.where], options)

    def _timed(self, path: str, group: Mapping[str, Any], options: Options, units: Units) -> Clock | None:
        """The clock of a group with timestamps."""
        datasets = {name: item for name, item in group.items() if isinstance(item, Field) or _is_array(item)}
        asked = options.time_column
        if asked is not None and asked not in datasets:
            return None
        if (time := times_among(datasets, asked, options.time_unit)) is None:
            return None
        names, (unit, how, warnings) = time[0], units.setdefault(path, time[1:])
        where, of = f"{self.where}: {path or '.'}/{names[0]}", f"group '{path}'" if path else "samples"
        stored = read_times([datasets[name] for name in names], unit, where)
        counts = np.array([stored.size])
        times, order = options.in_order(stored, counts, path or ".", unit)
        said = f"time of {of}: dataset '{names[0]}' in {clock.spoken(unit, names[-1] if names[1:] else None)} ({how})"
        rows = np.arange(times.size) if order is None else order
        names = [f"{path}/{name}" if path else name for name in names]
        return Clock(path, times, counts, rows, times.size, names, unit, said, warnings)

    def _counted(self, rows: int, options: Options) -> Clock:
        """The clock of samples without timestamps."""
        if rows and self.rate is None:
            raise Refused(self.where, "no timestamps", "--input-hz, the rate of its samples, or --time NAME")
        hz, how = self.rate or ("1", "")
        counts = np.array([rows])
        times = clock.frames(np.zeros(1, np.int64), counts, clock.rate(hz)) - options.latency_ns(".")
        said = f"time of samples: counted at {hz} per second ({how})"
        return Clock("", times, counts, np.arange(rows), rows, said=said)

    def of_cameras(self) -> dict[str, Clock]:
        """The clocks of datasets whose second extent is the samples."""
        named = (path for path in self.arrays if path.split("/")[-1] == LENGTHS_OF_CAMERAS)
        found = {path: self.clock_of(path) for path in named}
        return {path: own for path, own in found.items() if own and self.arrays[path].shape[1:] == (own.extent,)}

    def numbered(self) -> list[str]:
        """A warning of groups that have the same datasets and a number each, which may be demonstrations."""
        inside: dict[str, set[str]] = {}
        for path in self.arrays:
            inside.setdefault(path.rpartition("/")[0], set()).add(path.rpartition("/")[2])
        alike = [path for path in inside if path[-1:].isdigit()]
        alike = [path for path in alike if inside[path] == inside[alike[0]]]
        what = f"groups {', '.join(alike[:3])}{', ...' if alike[3:] else ''} are taken for streams of one recording"
        return [f"{what} (--group PATTERN where they are episodes) [groups_as_streams]"] if alike[1:] else []

    def known(self) -> list[Known]:
        """What its datasets say of themselves."""
        rows = {path: max(1, min(FIRST_ROWS, FIRST_BYTES // row_bytes(self.arrays[path]))) for path in self.sampled}
        return [known_of(path, self.arrays[path], rows[path]) for path in rows]

    def make(self, made: h5py.Group, rules: Rules) -> None:
        """Writes the demonstration at its targets."""
        targets, cameras = self.targets, self.of_cameras()
        made.attrs.update(self.group.attrs)
        for path, item in self.items.items():
            fields = item.dtype.names if _is_array(item) else None
            if path in cameras:
                rows = cameras[path].rows[cameras[path].episodes.taken("previous")]
                made.create_dataset(path, data=item[()][:, rows])
                made[path].attrs.update(item.attrs)
            elif path in self.times:
                times = self.new_times(path)
                kind = times.dtype if item.dtype.kind == "S" else item.dtype
                new = _create(made, path, item, targets.size, kind)
                new[...] = times
                new.attrs.update(self.said_of_times(path))
            elif path in self.sampled:
                self.write(path, _create(made, path, item, targets.size, item.dtype), rules)
            elif fields and (f"{path}/{fields[0]}" in self.sampled.keys() | self.times):
                new = _inside(_create(made, path, item, targets.size, item.dtype))
                for name in fields:
                    if (field := f"{path}/{name}") in self.times:
                        new[name][:] = self.new_times(field)
                    else:
                        self.write(field, new[name], rules)
            else:
                _copy(path, item, made)
        self._follow(made, targets.size)

    def _follow(self, made: h5py.Group, rows: int) -> None:
        """Sets what the group, and those above it, say of its number of samples and of their rate."""
        own = self.clocks[0]
        seconds = (int(own.times[-1]) - int(own.times[0])) / 1e9
        for name in COUNTS:
            value = made.attrs.get(name)
            if np.ndim(value) == 0 and np.array(value).dtype.kind in "iuf" and value == own.extent:
                made.attrs[name] = np.asarray(rows, np.array(value).dtype)
            item = made.get(name)
            if isinstance(item, h5py.Dataset) and item.shape == () and item.dtype.kind in "iuf":
                item[()] = rows if item[()] == own.extent else item[()]
        for group in _around(made):
            rate = (own.extent - 1) / seconds if seconds else None
            for name, value in new_rate(dict(group.attrs), self.options, rate).items():
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

    def _tried(self, path: Path) -> h5py.File:
        """A file that libhdf5 reads to its end: over some damaged ones it runs for ever."""
        if is_local(path) and (said := without_end(20 + path.stat().st_size / 1e6, _read_what_is_said, path)):
            raise Refused(str(path), f"{said} in libhdf5", "a file that is not damaged")
        return self._opened(path)

    def plan(self, source: Path, options: Options, keep_going: bool, left_out: set[str]) -> Plan:
        plan = Plan(failed=Failed(keep_going, self.broken))
        names: set[str] = set()
        units: Units = {}
        known: dict[str, Known] = {}
        for path in self.files(source):
            name, kept = name_in(source, path), {}
            with plan.failed.named(name), self._tried(path) as file:
                for demo in demonstrations(file, options.episode_column):
                    label = f"{name}/{demo}" if demo else name
                    if label in left_out:
                        continue
                    with plan.failed.named(label):
                        made = Demonstration(file[demo or "/"], label, options, units)
                        if made.planned(plan, made.of_cameras()):
                            for each in made.sampled.keys() & known.keys():
                                made.check_like(known[each])
                            if not made.sampled.keys() <= known.keys():
                                known |= {each.name: each for each in made.known() if each.name not in known}
                            if made.rate and not made.clocks[0].names:
                                plan.found["input_hz"] = made.rate[0]
                            names.update(each.name for each in made.clocks)
                            plan.warnings += [said for said in made.numbered() if said not in plan.warnings]
                            kept[demo] = label
            if kept:
                plan.units.append(self.unit_of(path, name, list(kept.values()), demos=list(kept), units=units))
            plan.episodes += len(kept)
        if plan.units:
            plan.add(decide_of_streams(list(known.values()), options.modes))
            check_mask(MASK, plan.decided)
            options.check_streams(sorted(names))
        return plan

    def run_unit(self, source: Path, options: Options, unit: Unit, target: Path) -> dict[str, Any]:
        path = source if source.is_file() else source / unit.task["file"]
        rules, demos = Rules.of_json(unit.task["rules"]), unit.task["demos"]
        read, written = 0, Counter[str]()  # rows that were written below each group
        with self._opened(path) as file, h5py.File(target, "w", libver="latest") as out:
            inside = demonstrations(file, options.episode_column)
            out.attrs.update(file.attrs)
            for name, item in _members(file) if inside != [""] else ():
                if not any(name == demo or name.startswith(demo + "/") for demo in inside):
                    _copy(name, item, out)
            for demo, label in zip(demos, unit.episodes, strict=True):
                with readable(f"episode {label}", self.broken):
                    made = Demonstration(file[demo or "/"], label, options, unit.task["units"])
                    made.make(out.require_group(demo or "/"), rules)
                    read += made.clocks[0].extent
                    written.update(dict.fromkeys((each.name for each in _around(out[demo or "/"])), made.targets.size))
            for name, rows in written.items():
                if "total" in out[name].attrs:
                    out[name].attrs["total"] = rows
        return {"episodes": len(demos), "rows_read": read, "rows_written": written["/"]}

    def episodes(self, source: Path, options: Options, unreadable: dict[str, str]) -> Iterator[list[formats.Stream]]:
        """Every demonstration with its streams, for inspect()."""
        failed = Failed(True, self.broken)
        for path in self.files(source):
            name = name_in(source, path)
            with failed.named(name), self._tried(path) as file:
                for demo in demonstrations(file, options.episode_column):
                    label, seen = f"{name}/{demo}" if demo else name, []
                    with failed.named(label):
                        made = Demonstration(file[demo or "/"], label, options, {})
                        seen = made.seen(label, decide_of_streams(made.known(), {}).rules)
                    if seen:
                        yield seen
        unreadable |= failed


def _read_what_is_said(path: Path) -> None:
    with h5py.File(path, "r") as file:
        for _, item in _members(file):
            dict(getattr(item, "attrs", {}))


def _copy(path: str, item: Any, target: h5py.Group) -> None:
    """A group with its attributes, a soft link, or a dataset as it is."""
    if isinstance(item, h5py.SoftLink):
        target[path] = h5py.SoftLink(item.path)
    elif isinstance(item, h5py.Group):
        target.require_group(path).attrs.update(item.attrs)
    else:
        item.file.copy(item, target, name=path)


def _create(group: h5py.Group, path: str, like: h5py.Dataset, rows: int, kind: np.dtype) -> h5py.Dataset:
    """A dataset of a type, with the filters and attributes of another, and another number of rows."""
    more = {}
    if like.chunks is not None and rows:
        more = {"compression": like.compression, "compression_opts": like.compression_opts, "shuffle": like.shuffle}
        more |= {"chunks": (min(like.chunks[0], rows), *like.chunks[1:]), "fletcher32": like.fletcher32}
    made = group.create_dataset(path, shape=(rows, *like.shape[1:]), dtype=kind, **more)
    made.attrs.update(like.attrs)
    return made
