"""Recordings of ROS 1, ROS 2 and MCAP: the numbers of all topics onto one clock, written as a Parquet table.

A column is named `<topic>.<path>`, for example `/odom.pose.pose.position.x`. A quaternion is one column of four numbers
(x, y, z, w), an array of numbers one column of lists; joints and frames are columns by their names. Everything else is left
out and named.
"""

import pickle
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
from tmaops.dataset import clock, formats
from tmaops.dataset.bags import bags
from tmaops.dataset.clock import one_episode
from tmaops.dataset.columns import resample_columns
from tmaops.dataset.errors import Refused
from tmaops.dataset.formats import Failed, Format, Plan, Unit
from tmaops.dataset.options import Options
from tmaops.dataset.places import fingerprint
from tmaops.dataset.rules import Part, Rule, Rules, decide_of_streams
from tmaops.dataset.tables import FIRST_ROWS, channels_of, known_of, real_numbers, write_table
from tmaops.dataset.topics import PUBLISHER, SIMULATED, Recording, read

SHORT = 0.8  # of the longest stream's time: a result that is shorter names the stream that cuts it


class Recordings(Format):
    """One unit, a Parquet table, per recording. What plan() decodes waits in a folder of temporary files for run_unit()."""

    broken = (pa.ArrowException,)
    folder = ""  # of this process and its children

    def files(self, source: Path) -> list[Path]:
        return [path for bag in bags(source) for path in bag.files]

    def plan(self, source: Path, options: Options, keep_going: bool, left_out: set[str]) -> Plan:
        if not self.folder:
            self.folder = tempfile.mkdtemp(prefix="tmaops-")
            weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        plan = Plan(failed=Failed(keep_going, self.broken))
        known: dict[str, pa.Array] = {}  # of the first recording that has real numbers, else of the first one
        whole: set[str] = set()  # columns that hold no real numbers in some recording
        held: dict[str, Rule] = {}
        topics: set[str] = set()
        quaternions: set[str] = set()
        for bag in bags(source):
            for name, recording in read(bag, options.topics, options.times):
                targets = None
                with plan.failed.named(name):
                    if name in left_out:
                        continue
                    if isinstance(recording, Refused):
                        raise recording
                    targets, warnings = _targets(recording, options, f"episode {name}")
                if targets is None or not targets.size:
                    continue
                plan.count("", max(stream.times.size for stream in recording.streams), targets.size)
                plan.notes += [note for note in recording.notes if note not in plan.notes]
                plan.warnings += [f"{name}: {warning}" for warning in [*recording.lost, *recording.warnings, *warnings]]
                topics.update(stream.topic for stream in recording.streams)
                quaternions.update(recording.quaternions)
                for stream in recording.streams:
                    for column, data in stream.columns.items():
                        if stream.latched:
                            count = f"{stream.times.size} messages" if stream.times.size > 1 else "one message"
                            part = Part(0, channels_of(data) or 1, "previous")
                            held.setdefault(column, Rule((part,), f"held: {count}"))
                            continue
                        whole |= set() if channels_of(data) else {column}
                        if column not in known or channels_of(data) and not channels_of(known[column]):  # a copy
                            known[column] = data.take(pa.array(np.arange(min(len(data), FIRST_ROWS))))
                            plan.shares[column] = targets.size / stream.times.size
                files = [path for path in bag.files if path.name in recording.files]
                task = {"files": recording.files, "input": [fingerprint(path) for path in files]}
                made = _table_name(name, {unit.path for unit in plan.units})
                plan.units.append(Unit(made, task, sum(path.stat().st_size for path in files), [name]))
                with open(self._waiting(made), "wb") as file:
                    pickle.dump(recording, file, protocol=5)
                del recording  # run_unit() reads it again
        if plan.units:
            names = {name: ["qx", "qy", "qz", "qw"] for name in quaternions}
            columns = (known_of(pa.table({name: column}), names=names) for name, column in known.items())
            plan.add(decide_of_streams([*chain(*columns)], options.modes))
            plan.columns |= held
            for unit in plan.units:
                unit.task["real"] = {n: getattr(known[n].type, "list_size", 0) for n in whole if channels_of(known[n])}
            options.check_streams(sorted(topics))
        plan.episodes = len(plan.units)
        return plan

    def _waiting(self, table: str) -> Path:
        return Path(self.folder) / table.replace("/", "%2F")

    def _recording(self, source: Path, options: Options, unit: Unit) -> Recording:
        """The recording of a unit: as plan() left it, or decoded here, on another machine of a cluster."""
        try:
            with open(self._waiting(unit.path), "rb") as file:
                return pickle.load(file)
        except OSError:
            pass
        for bag in bags(source):
            if {path.name for path in bag.files}.issuperset(unit.task["files"]):
                for name, recording in read(bag, options.topics, options.times):
                    if name == unit.episodes[0] and isinstance(recording, Recording):
                        return recording
        raise Refused(f"episode {unit.episodes[0]}", "no such recording", "the files as they were when the run began")

    def run_unit(self, source: Path, options: Options, unit: Unit, target: Path) -> dict[str, Any]:
        where, rules = f"episode {unit.episodes[0]}", Rules.of_json(unit.task["rules"])
        recording = self._recording(source, options, unit)
        targets, _ = _targets(recording, options, where)
        made: dict[str, Any] = {"timestamp": pa.array(targets, pa.timestamp("ns"))}
        rows = 0
        for stream in sorted(recording.streams, key=lambda stream: stream.label):
            times = stream.times - options.latency_ns(stream.topic)
            rows += times.size
            if stream.latched:  # the last one before each target, else the first
                taken = pa.array(one_episode(times, targets, where).taken("previous"))
                made |= {name: data.take(taken) for name, data in stream.columns.items()}
                continue
            columns = {name: pa.chunked_array([data]) for name, data in stream.columns.items()}
            for name in columns.keys() & unit.task["real"].keys():
                count = unit.task["real"][name]
                columns[name] = columns[name].cast(pa.list_(pa.float64(), count) if count else pa.float64())
            episode = one_episode(times, targets, where, options.snap, options.max_gap_ns(stream.topic))
            made |= resample_columns(columns, rules, episode)
        write_table(pa.table(made), target)
        return {"episodes": 1, "rows_read": rows, "rows_written": targets.size}

    def episodes(self, source: Path, options: Options, unreadable: dict[str, str]) -> Iterator[list[formats.Stream]]:
        """Every recording with its topics, for inspect()."""
        for bag in bags(source):
            for name, recording in read(bag, options.topics, options.times):
                if isinstance(recording, Refused):
                    unreadable[name] = str(recording)
                    continue
                if recording.lost:
                    unreadable[name] = "; ".join(recording.lost)
                yield list(_seen(name, recording))


def _seen(episode: str, recording: Recording) -> Iterator[formats.Stream]:
    """The streams of a recording, and its topics without one."""
    for topic in recording.topics.values():
        more = {"type": topic.type, "left_out": [f"{p or 'all of it'} ({why})" for p, why in topic.left_out.items()]}
        streams = [stream for stream in recording.streams if PUBLISHER.sub("", stream.topic) == topic.name]
        if not streams and topic.recorded:
            yield formats.Stream(episode, topic.name, np.sort(np.concatenate(topic.recorded)), **more)
        for stream in streams:
            seen = formats.Stream(episode, stream.label, stream.times, **more)
            seen.recorded = stream.recorded if stream.clock == "header.stamp" else None
            for name, data in stream.columns.items():
                if channels_of(data) and not data.null_count:
                    seen.columns[name] = real_numbers(data, name)
                    seen.quaternions[name] = [0] if name in recording.quaternions else []
            yield seen


def _table_name(name: str, taken: set[str]) -> str:
    """The table of a recording, below the output: its own name, with its ending where another has that name."""
    bare = PurePosixPath(name.removesuffix(".zstd"))
    made = str(bare.with_suffix(".parquet")) if bare.suffix in (".mcap", ".db3", ".bag") else f"{name}.parquet"
    return made if made not in taken else f"{name}.parquet"


def _targets(recording: Recording, options: Options, where: str) -> tuple[np.ndarray, list[str]]:
    """The targets of a recording, from the latest first sample to the earliest last one, and what is odd about them."""
    names = [name for stream in recording.streams for name in stream.columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise Refused(where, f"two columns of the name '{twice}'", "--topics without one of their topics")
    clocks = [stream for stream in recording.streams if not stream.latched]
    taken = {stream.label: stream.times - options.latency_ns(stream.topic) for stream in clocks}
    begins, ends = ({label: int(times[at]) for label, times in taken.items()} for at in (0, -1))
    if not clocks:
        counts = [f"{sum(map(len, topic.recorded))} of {topic.name}" for topic in recording.topics.values()]
        why = "; ".join(note for note in recording.notes if note.startswith("left out")) or ", ".join(counts)
        raise Refused(where, f"no topic with numbers in two messages ({why})", "one that has them")
    simulated = [label for label, begin in begins.items() if begin < SIMULATED]
    wall = [label for label in begins if label not in simulated]
    if simulated and wall:
        what = f"simulated time in {', '.join(simulated)} and wall time in {', '.join(wall)}"
        raise Refused(where, what, "one clock: --time record, or --topics without one of them")
    latest, earliest = max(begins, key=begins.get), min(ends, key=ends.get)
    first, last = begins[latest], ends[earliest]
    if last < first:
        apart = f"{earliest} ends {(first - last) / 1e9:.6g} s before {latest} begins"
        needed = f"topics of one clock: --time record, or --topics=-{earliest}"
        raise Refused(where, f"topics that do not overlap in time: {apart}", needed)
    times = clock.shared([*taken.values()])
    try:
        targets = options.episodes(times, np.array([times.size]), [where]).targets
    except Refused as error:
        if not error.where.startswith(where):  # an option that no recording can have
            raise
        needed = f"{error.needed}, --time record, or --topics without one whose times are odd"
        raise Refused(where, f"{error.got} from {first} to {last} ns", needed) from error
    spans, warnings = {label: ends[label] - begins[label] for label in begins}, []
    longest = max(spans.values())
    if last - first < SHORT * longest:
        cuts = min(sorted({latest, earliest}), key=spans.get)
        what = f"{(last - first) / 1e9:.6g} of {longest / 1e9:.6g} s are used, since {cuts} has no more"
        warnings.append(f"{what}; --topics=-{cuts} leaves it out")
    for stream in clocks:
        repeated = int((stream.times[1:] == stream.times[:-1]).sum())
        if repeated:
            warnings.append(f"{repeated} messages of {stream.label} repeat a time; the last of each is used")
    return targets, warnings
