"""HDF5 demonstrations: robomimic (a group below /data per demonstration) and ALOHA (a file per demonstration).

Datasets whose first extent is the number of samples are resampled; all others, attributes and soft links are copied.
A group with timestamps of its own is a stream with its own rate: all streams of a demonstration come onto one clock.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa

from tmaops.dataset import clock
from tmaops.dataset.columns import compute_parts, in_gaps
from tmaops.dataset.errors import Refused
from tmaops.dataset.inspect import Stream as Seen
from tmaops.dataset.job import Options, Plan, Unit
from tmaops.dataset.parquet import TIME_NAMES
from tmaops.dataset.places import fingerprint, opened, size_of
from tmaops.dataset.rules import Rule, Rules, brackets, rows_of

SLAB_BYTES = 32 << 20  # of a dataset that are in memory at a time
AROUND = 2  # rows beside a bracket that its slopes (cubic) depend on


@dataclass
class Stream:
    """Samples with one clock. `path`: the group below the demonstration that has the timestamps ("" for itself)."""

    path: str
    times: np.ndarray  # int64 nanoseconds (S)
    time_name: str | None  # of the dataset that holds them; None: counted at the input's rate


def _open(path: Path) -> h5py.File:
    try:
        return h5py.File(opened(path), "r")
    except OSError as error:
        raise Refused(str(path), str(error), "a readable HDF5 file") from error


def _members(group: h5py.Group, below: str = "") -> Iterator[tuple[str, h5py.Group | h5py.Dataset | h5py.SoftLink]]:
    """Everything below a group by its path, groups before what they hold; refuses links into other files."""
    for name in group:
        path = f"{below}/{name}" if below else name
        link = group.get(name, getlink=True)
        if isinstance(link, h5py.ExternalLink):
            raise Refused(
                f"{group.file.filename}:{group.name}/{name}", f"a link to {link.filename}", "data in the file itself"
            )
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


def _time_dataset(group: h5py.Group, options: Options) -> str | None:
    names = (options.time_column,) if options.time_column else TIME_NAMES
    return next((n for n in names if n in group and isinstance(group[n], h5py.Dataset) and group[n].ndim == 1), None)


def input_rate(file: h5py.File, options: Options) -> tuple[str, str] | None:
    """Samples per second of demonstrations without timestamps, and how it was found."""
    if options.input_hz:
        return options.input_hz, "asked for"
    data = file.get("data")
    if data is not None and "env_args" in data.attrs:
        try:
            found = json.loads(data.attrs["env_args"])["env_kwargs"]["control_freq"]
            return str(clock.rate(found)), "control_freq of env_args"
        except (ValueError, KeyError, TypeError):
            pass
    return None


def streams_of(group: h5py.Group, options: Options, rate: str | None, where: str) -> list[Stream]:
    """The clocks of a demonstration, its own first."""
    streams = []
    groups = [("", group)] + [(path, item) for path, item in _members(group) if isinstance(item, h5py.Group)]
    for path, item in groups:
        name = _time_dataset(item, options)
        if name is None:
            continue
        values = _read(item[name], (), where)
        column = pa.chunked_array([pa.array(values)])
        unit = options.time_unit or next((u for u in clock.NANOSECONDS if name.endswith("_" + u)), None)
        times = clock.nanoseconds(column, unit, f"{where}: {path or '.'}/{name}")
        clock.check_increasing(times, f"{where}: {path or '.'}/{name}")
        streams.append(Stream(path, times - options.latency_ns(path or "."), name))
    if not streams or streams[0].path:
        rows = _counted_rows(group, {stream.path for stream in streams})
        if rows and rate is None:
            raise Refused(where, "no timestamps", "--input-hz, the rate of its samples")
        if rows:
            times = clock.grid(0, 2**62, clock.rate(rate), rows)
            streams.insert(0, Stream("", times - options.latency_ns("."), None))
    if not streams:
        raise Refused(where, "no samples", "datasets with one row per sample")
    return streams


def _counted_rows(group: h5py.Group, others: set[str]) -> int:
    """Rows of the datasets that belong to no stream with timestamps: the most common first extent."""
    extents = [
        item.shape[0]
        for path, item in _members(group)
        if isinstance(item, h5py.Dataset) and item.ndim and not any(path.startswith(o + "/") for o in others)
    ]
    return max(set(extents), key=lambda n: (extents.count(n), n)) if extents else 0


def stream_of(path: str, streams: list[Stream]) -> Stream | None:
    """The stream of a dataset: that of the nearest group around it."""
    around = [s for s in streams if s.path == "" or path.startswith(s.path + "/")]
    return max(around, key=lambda s: len(s.path)) if around else None


def shared_grid(streams: list[Stream], options: Options, where: str) -> np.ndarray:
    """Targets from the latest first sample to the earliest last one."""
    first, last = max(int(s.times[0]) for s in streams), min(int(s.times[-1]) for s in streams)
    if last < first:
        raise Refused(where, "streams that do not overlap in time", "streams of one clock")
    targets = clock.grid(first, last, clock.rate(options.hz))
    for stream in streams:
        name = stream.path or "."
        if in_gaps(stream.times, targets, options.max_gap_ns(name)) is not None:
            what = "a larger --max-gap, or a format that can leave values out (Parquet)"
            raise Refused(f"{where}: stream {name}", "a gap longer than --max-gap", what)
    return targets


def _read(item: h5py.Dataset, rows: Any, where: str) -> np.ndarray:
    """Rows of a dataset; refuses by name what is damaged."""
    try:
        return item[rows]
    except (OSError, RuntimeError) as error:
        raise Refused(f"{where}: {item.name}", str(error), "data that can be read") from error


class Hdf5:
    """One unit per file."""

    def files(self, source: Path) -> list[Path]:
        return [source] if source.is_file() else sorted([*source.rglob("*.hdf5"), *source.rglob("*.h5")])

    def plan(self, source: Path, options: Options, keep_going: bool, left_out: set[str]) -> Plan:
        files = self.files(source)
        units: list[Unit] = []
        columns: dict[str, Rule] = {}
        kinds: dict[str, str] = {}
        names: set[str] = set()
        failed: dict[str, str] = {}
        notes: list[str] = []
        warnings: list[str] = []
        rules = Rules(dict(options.modes))
        episodes = 0
        found = None
        for path in files:
            name = path.name if source.is_file() else str(path.relative_to(source))
            kept, labels = [], []
            try:
                file = _open(path)
            except Refused as error:
                if not keep_going:
                    raise
                failed[name] = str(error)
                continue
            with file:
                found = input_rate(file, options)
                for demo in demonstrations(file):
                    label = f"{name}/{demo}" if demo else name
                    if label in left_out:
                        continue
                    try:
                        group = file[demo] if demo else file
                        streams = streams_of(group, options, found[0] if found else None, f"episode {label}")
                        shared_grid(streams, options, f"episode {label}")
                    except Refused as error:
                        if not keep_going:
                            raise
                        failed[label] = str(error)
                        continue
                    kept.append(demo)
                    labels.append(label)
                    for path_in, item in _members(group):
                        if isinstance(item, h5py.Dataset) and _is_sampled(item, stream_of(path_in, streams)):
                            kinds[path_in] = str(item.dtype)
                            if path_in not in columns and not _is_time(path_in, streams):
                                columns[path_in] = _rule(rules, path_in, item)
                    names.update(s.path or "." for s in streams)
                    if not notes:
                        notes += [_said(s, found) for s in streams]
                        warnings += [w for s in streams if (w := _coarse(group, s))]
            episodes += len(kept)
            if kept:
                units.append(
                    Unit(name, {"file": name, "demos": kept, "input": fingerprint(path)}, size_of(path), labels)
                )
        if not files:
            raise Refused(str(source), "no HDF5 files", "at least one")
        rules.check_used(kinds)
        options.check_streams(sorted(names))
        return Plan(units, episodes, columns, notes, warnings, failed, {"input_hz": found[0]} if found else {})

    def run_unit(self, source: Path, options: Options, unit: Unit, target: Path) -> dict[str, Any]:
        path = source if source.is_file() else source / unit.task["file"]
        rules = Rules(dict(options.modes))
        read = written = 0
        with _open(path) as file, h5py.File(target, "w", libver="latest") as out:
            found = input_rate(file, options)
            rate = found[0] if found else None
            whole = demonstrations(file) == [""]
            demos = set(unit.task["demos"])
            _copy_attributes(file, out)
            for name, item in [] if whole else _members_outside(file, demonstrations(file)):
                _copy(name, item, out)
            for demo in unit.task["demos"]:
                label = f"{unit.task['file']}/{demo}" if demo else unit.task["file"]
                group, made = (file[demo], out.require_group(demo)) if demo else (file, out)
                rows = self._demonstration(group, made, options, rules, rate, f"episode {label}")
                read, written = read + rows[0], written + rows[1]
            if "data" in out and "total" in out["data"].attrs:
                out["data"].attrs["total"] = written
        return {"episodes": len(demos), "rows_read": read, "rows_written": written}

    def finish(self, source: Path, options: Options, plan: Plan, results: list[dict[str, Any]], out: Path) -> None:
        """Nothing: the files are the data set."""

    def episodes(self, source: Path, options: Options, unreadable: dict[str, str]) -> Iterator[list[Seen]]:
        """Every demonstration with its streams, for inspect()."""
        rules = Rules()
        for path in self.files(source):
            name = path.name if source.is_file() else str(path.relative_to(source))
            try:
                file = _open(path)
            except Refused as error:
                unreadable[name] = str(error)
                continue
            with file:
                found = input_rate(file, options)
                for demo in demonstrations(file):
                    label = f"{name}/{demo}" if demo else name
                    try:
                        yield self._seen(file[demo] if demo else file, options, found, label, rules)
                    except Refused as error:
                        unreadable[label] = str(error)

    def _seen(
        self, group: h5py.Group, options: Options, found: tuple[str, str] | None, label: str, rules: Rules
    ) -> list[Seen]:
        streams = streams_of(group, options, found[0] if found else None, f"episode {label}")
        seen = {s.path: Seen(label, s.path, s.times) for s in streams}
        for path, item in _members(group):
            if not isinstance(item, h5py.Dataset) or item.dtype.kind != "f" or _is_time(path, streams):
                continue
            stream = stream_of(path, streams)
            if not _is_sampled(item, stream):
                continue
            mine = seen[stream.path]
            mine.columns[path] = _read(item, (), f"episode {label}").reshape(stream.times.size, -1)
            parts = [p for p in _rule(rules, path, item).parts if p.mode == "slerp"]
            mine.quaternions[path] = [k for p in parts for k in range(p.first, p.first + p.count, 4)]
        return list(seen.values())

    def _demonstration(
        self, group: h5py.Group, made: h5py.Group, options: Options, rules: Rules, rate: str | None, where: str
    ) -> tuple[int, int]:
        streams = streams_of(group, options, rate, where)
        targets = shared_grid(streams, options, where)
        _copy_attributes(group, made)
        for path, item in _members(group):
            if not isinstance(item, h5py.Dataset):
                _copy(path, item, made)
                continue
            stream = stream_of(path, streams)
            if not _is_sampled(item, stream):
                group.copy(item, made, name=path)
            elif _is_time(path, streams):
                unit = options.time_unit or next((u for u in clock.NANOSECONDS if path.endswith("_" + u)), None)
                _create(made, path, item, targets.size)[...] = _times(targets, item.dtype, unit)
            else:
                _resample(
                    item,
                    _create(made, path, item, targets.size),
                    _rule(rules, path, item),
                    stream,
                    targets,
                    options,
                    f"{where}: {path}",
                )
        if "num_samples" in made.attrs:
            made.attrs["num_samples"] = targets.size
        return sum(s.times.size for s in streams[:1]), targets.size


def _members_outside(file: h5py.File, demos: list[str]) -> Iterator[tuple[str, Any]]:
    for path, item in _members(file):
        if not any(path == demo or path.startswith(demo + "/") for demo in demos):
            yield path, item


def _is_sampled(item: h5py.Dataset, stream: Stream | None) -> bool:
    return stream is not None and item.ndim > 0 and item.shape[0] == stream.times.size


def _is_time(path: str, streams: list[Stream]) -> bool:
    return any(s.time_name and path == (f"{s.path}/{s.time_name}" if s.path else s.time_name) for s in streams)


def _said(stream: Stream, found: tuple[str, str] | None) -> str:
    where = f"group '{stream.path}'" if stream.path else "samples"
    if stream.time_name:
        return f"time of {where}: dataset '{stream.time_name}'"
    return f"time of {where}: counted at {found[0]} per second ({found[1]})"


def _coarse(group: h5py.Group, stream: Stream) -> str | None:
    """A warning about timestamps whose resolution gets coarser with time."""
    kind = (
        group[f"{stream.path}/{stream.time_name}" if stream.path else stream.time_name].dtype
        if stream.time_name
        else None
    )
    if kind is None or kind.kind != "f" or kind.itemsize > 4:
        return None
    return f"dataset '{stream.time_name}' of {stream.path or 'the samples'} holds {kind} seconds: their resolution gets coarser with time"


def _rule(rules: Rules, path: str, item: h5py.Dataset) -> Rule:
    real = item.dtype.kind == "f"
    channels = int(np.prod(item.shape[1:], dtype=np.int64)) if real else None
    return rules.of(path, str(item.dtype), channels)


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
    chunks = None if like.chunks is None or rows == 0 else (min(like.chunks[0], rows), *like.chunks[1:])
    filters = {"compression": like.compression, "compression_opts": like.compression_opts, "shuffle": like.shuffle}
    made = group.create_dataset(
        path, shape=(rows, *like.shape[1:]), dtype=like.dtype, chunks=chunks, **(filters if chunks else {})
    )
    _copy_attributes(like, made)
    return made


def _times(targets: np.ndarray, dtype: np.dtype, unit: str | None) -> np.ndarray:
    if dtype.kind == "f":
        return (targets.astype(np.longdouble) / clock.NANOSECONDS[unit or "s"]).astype(dtype)
    scale = clock.NANOSECONDS[unit or "ns"]
    return ((targets + scale // 2) // scale).astype(dtype)


def _resample(
    item: h5py.Dataset,
    made: h5py.Dataset,
    rule: Rule,
    stream: Stream,
    targets: np.ndarray,
    options: Options,
    where: str,
) -> None:
    """Writes a dataset slab by slab: as many targets as fit SLAB_BYTES, from the rows that they need."""
    times = stream.times
    row_bytes = max(1, item.dtype.itemsize * int(np.prod(item.shape[1:], dtype=np.int64)))
    size = max(1, SLAB_BYTES // row_bytes * targets.size // max(times.size, targets.size))
    for first in range(0, targets.size, size):
        part = targets[first : first + size]
        if rule.taken:
            rows = rows_of(rule.taken, times, part if first + size >= targets.size else np.append(part, targets[-1]))[
                : part.size
            ]
            low, high = int(rows.min()), int(rows.max())
            made[first : first + size] = _read(item, slice(low, high + 1), where)[rows - low]
            continue
        before, after = brackets(times, part[[0, -1]])
        low, high = max(int(before[0]) - AROUND, 0), int(after[1]) + AROUND + 1
        slab = _read(item, slice(low, high), where)
        numbers = np.ascontiguousarray(slab, item.dtype.newbyteorder("=")).reshape(len(slab), -1)
        result = compute_parts(numbers, rule, times[low:high], part, options.device, where)
        made[first : first + size] = result.reshape(part.size, *item.shape[1:])
