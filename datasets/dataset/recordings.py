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
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
from tmaops.dataset.bags import bags
from tmaops.dataset.columns import Clock, one_episode, real_numbers, resample_columns
from tmaops.dataset.errors import Refused
from tmaops.dataset.formats import Failed, Plan, Unit
from tmaops.dataset.formats import Stream as Seen
from tmaops.dataset.options import Options
from tmaops.dataset.places import fingerprint, size_of
from tmaops.dataset.rules import Decided, Part, Rule, Rules, channels_of, decide
from tmaops.dataset.tables import FIRST_ROWS, channels_of_table, known_of, write_table
from tmaops.dataset.topics import SIMULATED, Recording, held, read

SHORT = 0.8  # of the longest stream's time: a result that is shorter names the stream that cuts it


class Recordings:
    """One unit, a Parquet table, per recording. What plan() decodes waits in a folder of temporary files for run_unit()."""

    broken = (pa.ArrowException,)
    folder = ""  # of this process and its children

    def files(self, source: Path) -> list[Path]:
        return [path for bag in bags(source) for path in bag.files]

    def plan(self, source: Path, options: Options, keep_going: bool, left_out: set[str]) -> Plan:
        if not self.folder:
            self.folder = tempfile.mkdtemp(prefix="tmaops-")
            weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        plan = Plan([], 0, {}, failed=Failed(keep_going, self.broken))
        known: dict[str, pa.ChunkedArray] = {}
        held_columns: dict[str, Rule] = {}
        topics: set[str] = set()
        taken: set[str] = set()
        quaternions: set[str] = set()
        for bag in bags(source):
            for name, recording in read(bag, options.topics, options.times):
                if name in left_out:
                    continue
                warnings = None
                with plan.failed.named(name):
                    if isinstance(recording, Refused):
                        raise recording
                    _check_names(recording, f"episode {name}")
                    targets, warnings = _targets(recording, options, f"episode {name}")
                if warnings is None or not targets.size:
                    continue
                plan.count("", max(stream.times.size for stream in recording.streams), targets.size)
                plan.notes += [note for note in recording.notes if note not in plan.notes]
                plan.warnings += [f"{name}: {warning}" for warning in [*recording.lost, *recording.warnings, *warnings]]
                topics.update(recording.topics)
                for stream in recording.streams:
                    for path, data in stream.columns.items():
                        if stream.latched:
                            count = f"{stream.times.size} messages" if stream.times.size > 1 else "one message"
                            rule = Rule((Part(0, channels_of(data.type) or 1, "previous"),), f"held: {count}")
                            held_columns.setdefault(stream.name(path), rule)
                        else:
                            known.setdefault(
                                stream.name(path), data.take(pa.array(np.arange(min(len(data), FIRST_ROWS))))
                            )
                quaternions.update(recording.quaternions)
                files = [path for path in bag.files if path.name in recording.files]
                made = _table_name(name, taken)
                taken.add(made)
                task = {"files": recording.files, "input": [fingerprint(path) for path in files]}
                plan.units.append(Unit(made, task, sum(map(size_of, files)), [name]))
                with open(self._waiting(made), "wb") as file:
                    pickle.dump(recording, file, protocol=5)
                del recording  # run_unit() reads it again
        if plan.units:
            decided = _decided(known, quaternions, options)
            plan.columns = decided.rules.columns | held_columns
            plan.notes, plan.warnings = plan.notes + decided.notes, plan.warnings + decided.warnings
            for unit in plan.units:
                unit.task |= {"rules": decided.rules.json()}
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
        where = f"episode {unit.episodes[0]}"
        recording = self._recording(source, options, unit)
        rules = Rules.of_json(unit.task["rules"])
        targets, _ = _targets(recording, options, where)
        made: dict[str, Any] = {"timestamp": pa.array(targets, pa.timestamp("ns"))}
        rows = 0
        for stream in sorted(recording.streams, key=lambda stream: stream.label):
            times = stream.times - options.latency_ns(stream.topic)
            rows += times.size
            if stream.latched:
                held_rows = pa.array(held(times, targets))
                made |= {stream.name(path): data.take(held_rows) for path, data in stream.columns.items()}
                continue
            last = np.append(times[1:] != times[:-1], True)  # of those with one time the last that was recorded
            times = times[last]
            counts = np.array([times.size]), targets, np.array([targets.size])
            wanted = options.grid().evaluated(times, *counts)
            ticks = Clock(one_episode(times, wanted, where), options.max_gap_ns(stream.topic))
            kept = pa.array(last)
            columns = {
                stream.name(path): pa.chunked_array([data if last.all() else data.filter(kept)])
                for path, data in stream.columns.items()
            }
            made |= resample_columns(columns, rules, ticks, options.device)
        table = pa.table(made)
        write_table(table, target)
        return {"episodes": 1, "rows_read": rows, "rows_written": table.num_rows}

    def finish(self, source: Path, options: Options, plan: Plan, results: list[dict[str, Any]], out: Path) -> None:
        """Nothing: the tables are the result."""

    def episodes(self, source: Path, options: Options, unreadable: dict[str, str]) -> Iterator[list[Seen]]:
        """Every recording with its topics, for inspect()."""
        for bag in bags(source):
            for name, recording in read(bag, options.topics, options.times):
                if isinstance(recording, Refused):
                    unreadable[name] = str(recording)
                    continue
                if recording.lost:
                    unreadable[name] = "; ".join(recording.lost)
                yield _seen(name, recording)


def _seen(episode: str, recording: Recording) -> list[Seen]:
    """The streams of a recording, and its topics without one."""
    found = []
    for topic in recording.topics.values():
        left_out = [f"{path or 'all of it'} ({why})" for path, why in topic.left_out.items()]
        streams = [stream for stream in recording.streams if stream.topic == topic.name]
        if not streams and topic.recorded:
            found.append(
                Seen(episode, topic.name, np.sort(np.concatenate(topic.recorded)), {}, {}, None, topic.type, left_out)
            )
        for stream in streams:
            recorded = stream.recorded if stream.clock == "header.stamp" else None
            seen = Seen(episode, stream.label, stream.times, {}, {}, recorded, topic.type, left_out)
            for path, data in stream.columns.items():
                if channels_of(data.type) and not data.null_count:
                    seen.columns[stream.name(path)] = real_numbers(data, path)
                    if path in topic.quaternions:
                        seen.quaternions[stream.name(path)] = [0]
            found.append(seen)
    return found


def _table_name(name: str, taken: set[str]) -> str:
    """The table of a recording, below the output: its own name, with its ending where another has that name."""
    bare = PurePosixPath(name.removesuffix(".zstd"))
    made = str(bare.with_suffix(".parquet")) if bare.suffix in (".mcap", ".db3", ".bag") else f"{name}.parquet"
    return made if made not in taken else f"{name}.parquet"


def _check_names(recording: Recording, where: str) -> None:
    names = [stream.name(path) for stream in recording.streams for path in stream.columns]
    twice = next((name for name in names if names.count(name) > 1), None) if len(set(names)) < len(names) else None
    if twice is not None:
        raise Refused(where, f"two columns of the name '{twice}'", "--topics without one of their topics")


def _decided(columns: dict[str, pa.Array], quaternions: set[str], options: Options) -> Decided:
    """The rules of columns by the first rows of each; of those with fewer rows the last one goes on."""
    rows = max(min(len(column), FIRST_ROWS) for column in columns.values())
    known = []
    for name, column in columns.items():
        table = pa.table({name: column.slice(0, rows).take(pa.array(np.minimum(np.arange(rows), len(column) - 1)))})
        names = {name: ["qx", "qy", "qz", "qw"]} if name in quaternions else None
        known += known_of(table, channels_of_table(table), names)
    return decide(known, options.modes, rows=rows)


def _targets(recording: Recording, options: Options, where: str) -> tuple[np.ndarray, list[str]]:
    """The targets of a recording, from the latest first sample to the earliest last one, and what is odd about them."""
    spans = {}
    for stream in recording.streams:
        if not stream.latched:
            times = stream.times - options.latency_ns(stream.topic)
            spans[stream.label] = (int(times[0]), int(times[-1]))
    if not spans:
        why = "; ".join(note for note in recording.notes if note.startswith("left out"))
        raise Refused(where, f"no topic with numbers and two messages ({why})", "one that is not left out")
    simulated = [label for label, (begin, _) in spans.items() if begin < SIMULATED]
    wall = [label for label in spans if label not in simulated]
    if simulated and wall:
        raise Refused(
            where,
            f"simulated time in {', '.join(simulated)} and wall time in {', '.join(wall)}",
            "one clock: --time record, or --topics without one of them",
        )
    latest = max(spans, key=lambda label: spans[label][0])
    earliest = min(spans, key=lambda label: spans[label][1])
    first, last = spans[latest][0], spans[earliest][1]
    if last < first:
        raise Refused(
            where,
            f"topics that do not overlap in time: {earliest} ends {(first - last) / 1e9:.6g} s before {latest} begins",
            f"topics of one clock: --time record, or --topics=-{earliest}",
        )
    samples = max(stream.times.size for stream in recording.streams)
    try:
        targets, _ = options.grid().of(np.array([first]), np.array([last]), np.array([samples]))
    except Refused as error:
        what = f"{error.got} from {first} to {last} ns"
        raise Refused(
            where, what, f"{error.needed}, --time record, or --topics without one whose times are odd"
        ) from error
    warnings = []
    longest = max(end - begin for begin, end in spans.values())
    if last - first < SHORT * longest:
        cuts = sorted({latest, earliest}, key=lambda label: spans[label][1] - spans[label][0])[0]
        warnings.append(
            f"{(last - first) / 1e9:.6g} of {longest / 1e9:.6g} s are used, since {cuts} has no more; --topics=-{cuts} leaves it out"
        )
    for stream in recording.streams:
        repeated = 0 if stream.latched else int((stream.times[1:] == stream.times[:-1]).sum())
        if repeated:
            warnings.append(f"{repeated} messages of {stream.label} repeat a time; the last of each is used")
    return targets, warnings
