"""HDF5 demonstrations: robomimic (a group below /data per demonstration) and ALOHA (a file per demonstration).

Datasets whose first extent is the number of samples are resampled; all others, attributes and soft links are copied, and
what they say of rate and length follows. A group with timestamps of its own is a stream with its own rate: all streams of a
demonstration come onto one clock.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
from tmaops._recording import reads_text
from tmaops.dataset import clock
from tmaops.dataset.columns import compute_columns, in_gaps, one_episode
from tmaops.dataset.errors import Refused
from tmaops.dataset.formats import RATES, Failed, Plan, Unit, beside_samples
from tmaops.dataset.formats import Stream as Seen
from tmaops.dataset.options import Options
from tmaops.dataset.places import fingerprint, opened, size_of
from tmaops.dataset.rules import INTERVAL, Decided, Known, Rules, brackets, decide, find_time, rows_of
from tmaops.dataset.tables import FIRST_ROWS

SLAB_BYTES = 32 << 20  # of a dataset that are in memory at a time
FIRST_BYTES = 4 << 20  # of a dataset by which its rule is decided
AROUND = 2  # rows beside a bracket that its slopes (cubic) depend on

#: Attributes, and datasets of one number, that say how many samples there are.
COUNTS = ("num_samples", "num_frames", "num_steps", "num_timesteps", "n_frames", "n_steps", "length", "episode_length")
COUNTS += ("episode_len", "max_timesteps", "total_frames", "frame_count", "horizon")
LENGTHS_OF_CAMERAS = "compress_len"  # ALOHA: a row for each camera, the bytes of each of its frames


@dataclass
class Stream:
    """Samples with one clock. `path`: the group below the demonstration that has the timestamps ("" for itself)."""

    path: str
    times: np.ndarray  # int64 nanoseconds (S), in order
    time_name: str | None = None  # of the dataset that holds them; None: counted at the input's rate
    unit: str | None = None
    order: np.ndarray | None = None  # the rows that have the times; None: as they are

    @property
    def name(self) -> str:
        return self.path or "."

    @property
    def time_path(self) -> str | None:
        return f"{self.path}/{self.time_name}" if self.path and self.time_name else self.time_name

    def rows(self, item: h5py.Dataset, low: int, high: int, where: str) -> np.ndarray:
        """Rows of a dataset in the order of the times."""
        if self.order is None:
            return _read(item, slice(low, high), where)
        own = self.order[low:high]
        return _read(item, slice(int(own.min()), int(own.max()) + 1), where)[own - own.min()]


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


def _time_of(group: h5py.Group, options: Options, where: str) -> dict[str, Any] | None:
    """The dataset of a group that holds its times, as the library finds it by name; None where there is none."""
    lines = {
        name: item
        for name, item in group.items()
        if isinstance(item, h5py.Dataset) and item.ndim == 1 and item.shape[0] and item.dtype.kind in "iufOS"
    }
    known = {
        name: np.array(_column(_read(item, slice(0, FIRST_ROWS), where), where).to_pylist(), str)
        if item.dtype.kind in "OS"
        else item[:FIRST_ROWS]
        for name, item in lines.items()
        if item.dtype.kind not in "OS" or name == options.time_column or reads_text(name)
    }
    if options.time_column is not None and options.time_column not in known:
        return None
    return find_time({name: _native(values) for name, values in known.items()}, options.time_column, options.time_unit)


def _native(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values, values.dtype.newbyteorder("="))


def input_rate(file: h5py.File, options: Options) -> tuple[str, str] | None:
    """Samples per second of demonstrations without timestamps, and how it was found."""
    if options.input_hz:
        return options.input_hz, "asked for"
    for item in (file.get("data"), file):
        if not isinstance(item, h5py.Group):
            continue
        try:
            found = json.loads(item.attrs["env_args"])["env_kwargs"]["control_freq"]
            return str(clock.rate(found)), "control_freq of env_args"
        except (ValueError, KeyError, TypeError):
            pass
        for name in RATES:
            if name in item.attrs and np.ndim(item.attrs[name]) == 0 and np.array(item.attrs[name]).dtype.kind in "iuf":
                return str(clock.rate(item.attrs[name].item())), f"attribute {name}"
    return None


def streams_of(
    group: h5py.Group, options: Options, rate: str | None, where: str, units: dict[str, tuple[str | None, str]]
) -> list[Stream]:
    """The clocks of a demonstration, its own first. units: of the times of each stream, and how they were found; takes those
    of streams that it does not have yet.
    """
    streams = []
    groups = [("", group)] + [(path, item) for path, item in _members(group) if isinstance(item, h5py.Group)]
    for path, item in groups:
        if (time := _time_of(item, options, where)) is None:
            continue
        name = time["name"]
        label = f"{where}: {path or '.'}/{name}"
        column = pa.chunked_array([_column(_read(item[name], (), where), label)])
        if path not in units:
            units[path] = clock.unit_of(time, column, options.time_unit)
        times = clock.nanoseconds(column, units[path][0], label)
        times, order = clock.in_order(times, np.array([times.size]), [label], options.sort, options.duplicates)
        streams.append(Stream(path, times - options.latency_ns(path or "."), name, units[path][0], order))
    if not streams or streams[0].path:
        rows = _counted_rows(group, {stream.path for stream in streams})
        if rows and rate is None:
            raise Refused(where, "no timestamps", "--input-hz, the rate of its samples, or --time NAME")
        if rows:
            times = clock.frames(np.zeros(1, np.int64), np.array([rows]), clock.rate(rate))
            streams.insert(0, Stream("", times - options.latency_ns(".")))
    if not streams:
        raise Refused(where, "no samples", "datasets with one row per sample")
    return streams


def _column(values: np.ndarray, where: str) -> pa.Array:
    """Times of a dataset as Arrow has them."""
    if values.dtype.kind in "OS":
        values = [value.decode("utf-8", "replace") if isinstance(value, bytes) else value for value in values.tolist()]
    try:
        return pa.array(values)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise Refused(where, str(error).split("\n")[0], "numbers or ISO 8601 text") from error


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
        raise Refused(where, "streams that do not overlap in time", "streams of one clock (--latency moves one)")
    most = max(s.times.size for s in streams)
    targets, _ = options.grid().of(np.array([first]), np.array([last]), np.array([most]))
    for stream in streams:
        if in_gaps(stream.times, _evaluated(stream, targets, options), options.max_gap_ns(stream.name)) is not None:
            what = "a larger --max-gap, or a format that can leave values out (Parquet)"
            raise Refused(f"{where}: stream {stream.name}", "a gap longer than --max-gap", what)
    return targets


def _evaluated(stream: Stream, targets: np.ndarray, options: Options) -> np.ndarray:
    counts = np.array([stream.times.size]), targets, np.array([targets.size])
    return options.grid().evaluated(stream.times, *counts)


def _read(item: h5py.Dataset, rows: Any, where: str) -> np.ndarray:
    """Rows of a dataset; refuses by name what is damaged."""
    try:
        return item[rows]
    except (OSError, RuntimeError, MemoryError) as error:
        raise Refused(f"{where}: {item.name}", str(error), "data that can be read") from error


class Hdf5:
    """One unit per file."""

    broken = (RuntimeError, KeyError, ValueError, TypeError, MemoryError, OverflowError)

    def files(self, source: Path) -> list[Path]:
        return [source] if source.is_file() else sorted([*source.rglob("*.hdf5"), *source.rglob("*.h5")])

    def plan(self, source: Path, options: Options, keep_going: bool, left_out: set[str]) -> Plan:
        plan = Plan([], 0, {}, failed=Failed(keep_going, self.broken))
        names: set[str] = set()
        units: dict[str, tuple[str | None, str]] = {}
        known: dict[str, Known] = {}
        for path in self.files(source):
            name = path.name if source.is_file() else str(path.relative_to(source))
            kept, labels = [], []
            with plan.failed.named(name), _open(path) as file:
                found = input_rate(file, options)
                for demo in demonstrations(file):
                    label = f"{name}/{demo}" if demo else name
                    if label in left_out:
                        continue
                    with plan.failed.named(label):
                        group = file[demo] if demo else file
                        streams = streams_of(group, options, found[0] if found else None, f"episode {label}", units)
                        targets = shared_grid(streams, options, f"episode {label}")
                        if not targets.size:
                            continue
                        for path_in, item in _members(group):
                            if (
                                isinstance(item, h5py.Dataset)
                                and path_in not in known
                                and not _is_time(path_in, streams)
                            ):
                                if _is_sampled(item, stream_of(path_in, streams)):
                                    known[path_in] = _known(path_in, item, f"episode {label}")
                        if not plan.notes:
                            plan.notes += [_said(s, found, units) for s in streams]
                            plan.warnings += [w for s in streams if (w := _coarse(group, s))]
                        _note_others(group, streams, plan)
                        names.update(s.name for s in streams)
                        for stream in streams:
                            plan.count(stream.name, stream.times.size, targets.size)
                        kept.append(demo)
                        labels.append(label)
                        if found and not streams[0].time_name:
                            plan.found["input_hz"] = found[0]
            if kept:
                task = {"file": name, "demos": kept, "units": units, "input": fingerprint(path)}
                plan.units.append(Unit(name, task, size_of(path), labels))
            plan.episodes += len(kept)
        if plan.units:
            decided = _decided(known, options)
            plan.columns, rules = decided.rules.columns, decided.rules.json()
            plan.notes, plan.warnings = plan.notes + decided.notes, plan.warnings + decided.warnings
            for unit in plan.units:
                unit.task |= {"rules": rules}
            options.check_streams(sorted(names))
        return plan

    def run_unit(self, source: Path, options: Options, unit: Unit, target: Path) -> dict[str, Any]:
        path = source if source.is_file() else source / unit.task["file"]
        rules = Rules.of_json(unit.task["rules"])
        units = {name: tuple(found) for name, found in unit.task["units"].items()}
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
                streams = streams_of(group, options, rate, f"episode {label}", units)
                rows = self._demonstration(group, made, options, rules, streams, f"episode {label}")
                _follow(made, streams[0], rows[1], options)
                for place in (out, out.get("data")) if demo else ():
                    if isinstance(place, h5py.Group):
                        _follow(place, streams[0], rows[1], options, rate_alone=True)
                read, written = read + rows[0], written + rows[1]
            if "data" in out and "total" in out["data"].attrs:
                out["data"].attrs["total"] = written
        return {"episodes": len(demos), "rows_read": read, "rows_written": written}

    def finish(self, source: Path, options: Options, plan: Plan, results: list[dict[str, Any]], out: Path) -> None:
        """Nothing: the files are the data set."""

    def episodes(self, source: Path, options: Options, unreadable: dict[str, str]) -> Iterator[list[Seen]]:
        """Every demonstration with its streams, for inspect()."""
        units: dict[str, tuple[str | None, str]] = {}
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
                        group, rate = file[demo] if demo else file, found[0] if found else None
                        streams = streams_of(group, options, rate, f"episode {label}", units)
                        yield self._seen(group, streams, label)
                    except Refused as error:
                        unreadable[label] = str(error)

    def _seen(self, group: h5py.Group, streams: list[Stream], label: str) -> list[Seen]:
        seen = {s.path: Seen(label, s.path, s.times) for s in streams}
        known = {}
        for path, item in _members(group):
            if not isinstance(item, h5py.Dataset) or item.dtype.kind != "f" or _is_time(path, streams):
                continue
            stream = stream_of(path, streams)
            if not _is_sampled(item, stream):
                continue
            seen[stream.path].columns[path] = _read(item, (), f"episode {label}").reshape(stream.times.size, -1)
            known[path] = _known(path, item, f"episode {label}")
        rules = _decided(known, Options("1")).rules
        for each in seen.values():
            each.quaternions = {path: rules.quaternions_in(path) for path in each.columns}
        return list(seen.values())

    def _demonstration(
        self, group: h5py.Group, made: h5py.Group, options: Options, rules: Rules, streams: list[Stream], where: str
    ) -> tuple[int, int]:
        targets = shared_grid(streams, options, where)
        _copy_attributes(group, made)
        for path, item in _members(group):
            stream = stream_of(path, streams) if isinstance(item, h5py.Dataset) else None
            if not isinstance(item, h5py.Dataset):
                _copy(path, item, made)
            elif _is_of_cameras(path, item, stream):
                rows = rows_of("previous", stream.times, _evaluated(stream, targets, options))
                rows = rows if stream.order is None else stream.order[rows]
                made.create_dataset(path, data=_read(item, (), where)[:, rows])
                _copy_attributes(item, made[path])
            elif not _is_sampled(item, stream):
                group.copy(item, made, name=path)
            elif _is_time(path, streams):
                _write_times(item, made, path, targets, stream.unit)
            else:
                items = {name: group[name] for name in rules.partners.get(path, [path])}
                _resample(
                    items,
                    _create(made, path, item, targets.size),
                    rules,
                    stream,
                    _evaluated(stream, targets, options),
                    options,
                    where,
                )
        return sum(s.times.size for s in streams[:1]), targets.size


def _follow(made: h5py.Group, stream: Stream, rows: int, options: Options, rate_alone: bool = False) -> None:
    """Sets what a group says of its number of samples and of their rate, where it is that of the source."""
    hz, was = clock.rate(options.hz), stream.times.size
    seconds = (int(stream.times[-1]) - int(stream.times[0])) / 1e9
    for name, value in list(made.attrs.items()):
        single = np.ndim(value) == 0 and np.array(value).dtype.kind in "iuf"
        if name in COUNTS and single and value == was and not rate_alone:
            made.attrs[name] = np.asarray(rows, np.array(value).dtype)
        elif name in RATES and single and abs(float(value) * seconds - (was - 1)) <= 0.02 * (was - 1):
            whole = np.array(value).dtype.kind in "iu" and hz.denominator == 1
            made.attrs[name] = np.asarray(float(hz), np.array(value).dtype if whole else np.float64)
        elif name == "env_args":
            made.attrs[name] = _new_env_args(value, hz)
    for name in () if rate_alone else COUNTS:
        item = made.get(name)
        if isinstance(item, h5py.Dataset) and item.shape == () and item.dtype.kind in "iuf" and item[()] == was:
            item[()] = rows


def _new_env_args(text: Any, hz: Fraction) -> Any:
    """robomimic's description of the environment with another control_freq."""
    try:
        found = json.loads(text)
        if "control_freq" in found["env_kwargs"]:
            found["env_kwargs"]["control_freq"] = clock.number(hz)
            return json.dumps(found, indent=4 if "\n" in str(text) else None)
    except (ValueError, KeyError, TypeError):
        pass
    return text


def _note_others(group: h5py.Group, streams: list[Stream], plan: Plan) -> None:
    """Names the datasets that are copied beside resampled ones: as a warning those that may be samples, too."""
    for path, item in _members(group):
        stream = stream_of(path, streams) if isinstance(item, h5py.Dataset) else None
        if stream is None or item.ndim == 0 or _is_sampled(item, stream) or _is_of_cameras(path, item, stream):
            continue
        beside_samples(path, item.shape[0], stream.times.size, plan)


def _is_of_cameras(path: str, item: h5py.Dataset, stream: Stream | None) -> bool:
    named = path.split("/")[-1] == LENGTHS_OF_CAMERAS
    return named and stream is not None and item.ndim == 2 and item.shape[1] == stream.times.size


def _members_outside(file: h5py.File, demos: list[str]) -> Iterator[tuple[str, Any]]:
    for path, item in _members(file):
        if not any(path == demo or path.startswith(demo + "/") for demo in demos):
            yield path, item


def _is_sampled(item: h5py.Dataset, stream: Stream | None) -> bool:
    return stream is not None and item.ndim > 0 and item.shape[0] == stream.times.size


def _is_time(path: str, streams: list[Stream]) -> bool:
    return any(path == s.time_path for s in streams)


def _said(stream: Stream, found: tuple[str, str] | None, units: dict[str, tuple[str | None, str]]) -> str:
    where = f"group '{stream.path}'" if stream.path else "samples"
    if stream.time_name:
        unit, how = units[stream.path]
        return f"time of {where}: dataset '{stream.time_name}' in {unit or 'its own unit'} ({how})"
    return f"time of {where}: counted at {found[0]} per second ({found[1]})"


def _coarse(group: h5py.Group, stream: Stream) -> str | None:
    """A warning about timestamps whose resolution gets coarser with time."""
    kind = group[stream.time_path].dtype if stream.time_path else None
    if kind is None or kind.kind != "f" or kind.itemsize > 4:
        return None
    return f"dataset '{stream.time_name}' of {stream.path or 'the samples'} holds {kind} seconds: their resolution gets coarser with time"


def _known(path: str, item: h5py.Dataset, where: str) -> Known:
    """What the first rows of a dataset say of it."""
    real = item.dtype.kind == "f"
    channels = int(np.prod(item.shape[1:], dtype=np.int64)) if real else None
    looked_at = real or item.dtype.kind in "iub" and item.ndim == 1
    row_bytes = max(1, item.dtype.itemsize * int(np.prod(item.shape[1:], dtype=np.int64)))
    rows = max(1, min(FIRST_ROWS, FIRST_BYTES // row_bytes))
    values = _native(_read(item, slice(0, rows), where)) if looked_at else None
    return Known(
        path, str(item.dtype), channels, values if values is None or item.ndim == 1 else values.reshape(len(values), -1)
    )


def _decided(known: dict[str, Known], options: Options) -> Decided:
    """The rules of datasets; those with fewer rows go on with their last one."""
    rows = max((len(each.values) for each in known.values() if each.values is not None), default=1)

    def lengthened(values: np.ndarray | None) -> np.ndarray | None:
        if values is None or len(values) == rows:
            return values
        return np.concatenate([values, np.repeat(values[-1:], rows - len(values), axis=0)])

    return decide([each._replace(values=lengthened(each.values)) for each in known.values()], options.modes, rows=rows)


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


def _write_times(item: h5py.Dataset, made: h5py.Group, path: str, targets: np.ndarray, unit: str | None) -> None:
    """Targets (T, nanoseconds) as a dataset of the type and unit of the input's times."""
    if item.dtype.kind in "OS":
        first = _column(item[:1], path)[0].as_py()
        text = clock.times_like(targets, pa.string(), None, clock.text_style(first)).to_pylist()
        kind = item.dtype if item.dtype.kind == "O" else f"S{max(map(len, text), default=1)}"
        made.create_dataset(path, data=np.array(text, object if item.dtype.kind == "O" else kind), dtype=kind)
        _copy_attributes(item, made[path])
    else:
        kind = pa.from_numpy_dtype(item.dtype.newbyteorder("="))
        times = clock.times_like(targets, kind, unit).to_numpy(zero_copy_only=False)
        _create(made, path, item, targets.size)[...] = times


def _resample(
    items: dict[str, h5py.Dataset],
    made: h5py.Dataset,
    rules: Rules,
    stream: Stream,
    targets: np.ndarray,
    options: Options,
    where: str,
) -> None:
    """Writes a dataset slab by slab: as many targets as fit SLAB_BYTES, from the rows that they need. items: it, and those that
    are resampled with it, by their paths.
    """
    path, item = next((path, item) for path, item in items.items() if made.name.endswith(path))
    times, taken = stream.times, rules[path].taken
    row_bytes = max(1, item.dtype.itemsize * int(np.prod(item.shape[1:], dtype=np.int64)))
    size = max(1, SLAB_BYTES // row_bytes * targets.size // max(times.size, targets.size))
    size = targets.size if rules[path].parts[0].mode in INTERVAL else size
    for first in range(0, targets.size, size):
        part = targets[first : first + size]
        if taken:
            rows = rows_of(taken, times, part if first + size >= targets.size else np.append(part, targets[-1]))[
                : part.size
            ]
            low, high = int(rows.min()), int(rows.max())
            made[first : first + size] = stream.rows(item, low, high + 1, where)[rows - low]
            continue
        before, after = brackets(times, part[[0, -1]])
        low, high = max(int(before[0]) - AROUND, 0), int(after[1]) + AROUND + 1
        if rules[path].parts[0].mode in INTERVAL:  # each sample counts, also behind the last target
            low, high = 0, times.size
        slabs = {name: _native(stream.rows(each, low, high, where)) for name, each in items.items()}
        numbers = {name: slab.reshape(len(slab), -1) for name, slab in slabs.items()}
        episode = one_episode(times[low:high], part, where)
        made[first : first + size] = compute_columns(numbers, rules, episode, options.device)[path].reshape(
            part.size, *item.shape[1:]
        )
