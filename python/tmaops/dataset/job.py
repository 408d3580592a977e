"""One run over a data set: units of work on all cores, each written whole, so that a stopped run can go on."""

import contextlib
import functools
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, fields
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tmaops.dataset import clock
from tmaops.dataset.errors import Refused
from tmaops.dataset.places import is_local, make_folder, move, place, remove_tree, whole, write_whole
from tmaops.dataset.rules import Rule
from tmaops.dataset.workers import Workers

if TYPE_CHECKING:
    from tmaops.dataset.inspect import Stream

WORK = ".tmaops"  # inside the unfinished output: what is done
MANIFEST = "tmaops_manifest.json"


@dataclass
class Options:
    """What was asked for; the same options and input give the same bytes."""

    hz: str
    modes: dict[str, str] = field(default_factory=dict)  # column or pattern -> mode
    max_gap: Any = None  # seconds, or stream (or pattern) -> seconds; then a dictionary
    latency: dict[str, float] = field(default_factory=dict)  # stream or pattern -> seconds its timestamps are late
    episode_column: str | None = None  # Parquet tables
    time_column: str | None = None
    time_unit: str | None = None
    input_hz: str | None = None  # of samples without timestamps (HDF5, Parquet)
    topics: list[str] = field(default_factory=list)  # of recordings; patterns, with a leading "-" those to leave out
    times: str = "header"  # of recordings: header, or record, the time of recording
    device: str = "cpu"

    def __post_init__(self) -> None:
        self.hz = str(clock.rate(self.hz))
        self.input_hz = str(clock.rate(self.input_hz)) if self.input_hz else None
        self.max_gap = (
            {} if self.max_gap is None else self.max_gap if isinstance(self.max_gap, dict) else {"*": self.max_gap}
        )
        for name, value in [*self.max_gap.items(), *self.latency.items()]:
            if not isinstance(value, (int, float)) or not abs(value) < 1e9:
                raise Refused(f"seconds of {name}", repr(value), "a number")
        if any(not gap > 0 for gap in self.max_gap.values()):
            raise Refused("max_gap", repr(self.max_gap), "seconds above 0")
        if self.time_unit is not None and self.time_unit not in clock.NANOSECONDS:
            raise Refused("time_unit", repr(self.time_unit), "one of " + ", ".join(clock.NANOSECONDS))
        if self.times not in ("header", "record"):
            raise Refused("times", repr(self.times), "header or record")
        if isinstance(self.topics, str):
            self.topics = [topic.strip() for topic in self.topics.split(",") if topic.strip()]
        self.device = _device(self.device)

    def max_gap_ns(self, stream: str = ".") -> int | None:
        """The longest gap of a stream that is bridged, in nanoseconds; the last pattern that fits wins."""
        return self._nanoseconds(self.max_gap, stream)

    def latency_ns(self, stream: str) -> int:
        """How late the timestamps of a stream are, in nanoseconds."""
        return self._nanoseconds(self.latency, stream) or 0

    @staticmethod
    def _nanoseconds(seconds: dict[str, float], stream: str) -> int | None:
        fits = [value for pattern, value in seconds.items() if fnmatchcase(stream, pattern)]
        return round(fits[-1] * 1e9) if fits else None

    def check_streams(self, names: list[str]) -> None:
        """Refuses a latency or gap of a stream that the data set has not."""
        needed = (
            "one of " + ", ".join(names) if names else "a data set whose episodes have streams with clocks of their own"
        )
        for what, asked in (("max_gap", self.max_gap), ("latency", self.latency)):
            for pattern in asked:
                if not any(fnmatchcase(name, pattern) for name in names) and (what, pattern) != ("max_gap", "*"):
                    raise Refused(f"{what} of {pattern}", "no such stream", needed)


def _device(asked: str) -> str:
    """ "cpu" or "cuda"; "auto" is "cuda" where torch finds a GPU."""
    if asked == "cpu":
        return asked
    if asked not in ("auto", "cuda"):
        raise Refused("device", repr(asked), "cpu, cuda or auto")
    try:
        import torch

        found = torch.cuda.is_available()
    except ImportError:
        found = False
    if asked == "cuda" and not found:
        raise Refused("device", "cuda, and no GPU that torch finds", "torch with CUDA and a GPU, or the device cpu")
    return "cuda" if found else "cpu"


def read_rules(path: str | os.PathLike) -> dict[str, Any]:
    """Options of a YAML file: modes, max_gap, latency, and what the format asks for (time_column, ...)."""
    yaml = _yaml()
    try:
        found = yaml.safe_load(place(path).read_text(encoding="utf-8")) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise Refused(str(path), str(error).split("\n")[0], "a readable YAML file") from error
    known = [f.name for f in fields(Options) if f.name not in ("hz", "device")]
    for key in found if isinstance(found, dict) else ["no mapping"]:
        if key not in known:
            raise Refused(str(path), f"'{key}'", "the keys " + ", ".join(known))
    for key in ("modes", "latency"):
        if not isinstance(found.get(key, {}), dict):
            raise Refused(f"{path}: {key}", repr(found[key]), "names with values")
    return found


def save_rules(path: str | os.PathLike, options: Options, plan: "Plan") -> None:
    """Everything that was asked for or inferred as a YAML file for read_rules()."""
    found = {key: value for key, value in asdict(options).items() if key not in ("hz", "device") and value}
    found |= plan.found
    found["modes"] = {}
    for column, rule in plan.columns.items():
        found["modes"] |= rule.modes(column)
    text = "".join(f"# {note}\n" for note in plan.notes)
    write_whole(place(path), text + _yaml().safe_dump(found, sort_keys=False))


def _yaml() -> Any:
    try:
        import yaml
    except ImportError:
        raise Refused("rules", "no PyYAML", "pip install pyyaml") from None
    return yaml


@dataclass
class Unit:
    """One output file and what it is made of. `task` is JSON: it says everything that decides the file's bytes."""

    path: str  # below the output
    task: dict[str, Any]
    source_bytes: int = 0
    episodes: list[str] = field(default_factory=list)  # names of what the file holds
    kind: "Format | None" = None  # set when the unit is planned

    def digest(self) -> str:
        return hashlib.sha256(json.dumps([self.path, self.task], sort_keys=True).encode()).hexdigest()


@dataclass
class Plan:
    """What is to be done, found by reading times and metadata alone."""

    units: list[Unit]
    episodes: int
    columns: dict[str, Rule]
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)  # episode -> why, with keep_going
    found: dict[str, Any] = field(default_factory=dict)  # options that were inferred, by their names

    @property
    def explained(self) -> dict[str, str]:
        """Column -> its rule and why, for people."""
        return {name: f"{rule.text()} ({rule.why})" for name, rule in self.columns.items()}


class Format(Protocol):
    """A kind of data set. plan() reads, run_unit() writes one file, finish() writes what needs all of them.

    files() are those that hold the episodes, at least one for each unit. episodes() yields the streams of every episode for
    inspect(), and says in `unreadable` what it could not read.
    """

    def files(self, source: Path) -> list[Path]: ...
    def plan(self, source: Path, options: Options, keep_going: bool, left_out: set[str]) -> Plan: ...
    def run_unit(self, source: Path, options: Options, unit: Unit, target: Path) -> dict[str, Any]: ...
    def finish(self, source: Path, options: Options, plan: Plan, results: list[dict[str, Any]], out: Path) -> None: ...
    def episodes(self, source: Path, options: Options, unreadable: dict[str, str]) -> "Iterator[list[Stream]]": ...


@dataclass
class Report:
    """What a run did. `failed`: episodes left out and why. `done`: false while other shards have units to do."""

    episodes: int = 0
    rows_read: int = 0
    rows_written: int = 0
    seconds: float = 0.0
    source_bytes: int = 0
    units: int = 0
    reused: int = 0
    done: bool = False
    failed: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    columns: dict[str, str] = field(default_factory=dict)


class Progress:
    """A line on stderr every second or so; nothing where stderr is no terminal, but the last."""

    def __init__(self, quiet: bool):
        self._quiet = quiet

    def begin(self, units: list[Unit]) -> None:
        self._total = sum(unit.source_bytes for unit in units)
        self._begin, self._last = time.monotonic(), 0.0
        self._bytes = self._episodes = 0

    def add(self, unit: Unit, result: dict[str, Any]) -> None:
        self._bytes += unit.source_bytes
        self._episodes += result["episodes"]
        now = time.monotonic()
        if self._quiet or not sys.stderr.isatty() or now - self._last < 0.5:
            return
        self._last = now
        spent = now - self._begin
        left = spent * (self._total - self._bytes) / max(self._bytes, 1)
        print(
            f"\r{100 * self._bytes / max(self._total, 1):3.0f} %  {self._episodes / spent:.0f} episodes/s  "
            f"{self._bytes / spent / 1e6:.0f} MB/s  {left:.0f} s left ",
            end="",
            file=sys.stderr,
        )

    def end(self) -> None:
        if not self._quiet and sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)


def format_of(source: Path) -> Format:
    """The format of a data set, by what lies in its folder."""
    from tmaops.dataset.lerobot import LeRobot
    from tmaops.dataset.parquet import ParquetTables

    if (source / "meta" / "info.json").is_file():
        return LeRobot()
    if source.suffix == ".parquet" or (source.is_dir() and any(source.rglob("*.parquet"))):
        return ParquetTables()
    if source.suffix in (".hdf5", ".h5") or (
        source.is_dir() and any(source.rglob("*.hdf5")) | any(source.rglob("*.h5"))
    ):
        try:
            from tmaops.dataset.hdf5 import Hdf5
        except ImportError:
            raise Refused(str(source), "HDF5, and no h5py", "pip install h5py") from None
        return Hdf5()
    try:
        from tmaops.dataset.bags import bags, is_bag
        from tmaops.dataset.recordings import Recordings
    except ImportError as error:
        endings = (".mcap", ".db3", ".bag", ".zstd")
        if source.suffix in endings or source.is_dir() and any(p.suffix in endings for p in source.rglob("*")):
            needed = "pip install rosbags mcap mcap-protobuf-support"
            raise Refused(str(source), f"a recording, and no {error.name}", needed) from None
    else:
        if is_bag(source) if not source.is_dir() else bags(source):
            return Recordings()
    what = "a folder without data" if source.is_dir() else "a file" if source.exists() else "nothing"
    raise Refused(str(source), what, "a LeRobot v3 data set, a Parquet, HDF5, MCAP, .db3 or .bag file, or a folder")


def file_digest(path: Path) -> str:
    """SHA-256 of a new file, which goes to the disk meanwhile."""
    with open(path, "rb") as file, ThreadPoolExecutor(1) as beside:
        flushed = beside.submit(os.fsync, file.fileno())
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        flushed.result()
    return digest


def begin_worker(kind: Format | None = None) -> None:
    """Leaves the other cores to the other workers. kind: its module is imported by now."""
    import pyarrow as pa

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    import tmaops

    tmaops.set_num_threads(1)


def run_unit(source: Path, options: Options, unit: Unit, out: Path) -> dict[str, Any]:
    """Writes one unit beside its place, then moves it there, then notes that it is done."""
    with whole(out / unit.path) as trial:
        result = unit.kind.run_unit(source, options, unit, trial)
        result["sha256"] = file_digest(trial)
    note = {"unit": unit.digest(), "result": result}
    write_whole(_note_of(unit, out), json.dumps(note, sort_keys=True))
    return result


def _note_of(unit: Unit, out: Path) -> Path:
    return out / WORK / (hashlib.sha256(unit.path.encode()).hexdigest()[:24] + ".json")


def _done(unit: Unit, out: Path) -> dict[str, Any] | None:
    """The result of a unit that an earlier run finished with the same task; None where it has to be done."""
    try:
        note = json.loads(_note_of(unit, out).read_text(encoding="utf-8"))
        if note["unit"] == unit.digest() and (out / unit.path).is_file():
            return note["result"]
    except (OSError, ValueError, KeyError):
        pass
    return None


#: Runs units in any order and yields each with its result, or with the error that refused it.
Runner = Callable[[Path, Options, list[Unit], Path], Iterator[tuple[Unit, "dict[str, Any] | Refused"]]]


def _run_here(
    workers: Workers, source: Path, options: Options, units: list[Unit], out: Path
) -> Iterator[tuple[Unit, dict[str, Any] | Refused]]:
    """The runner of one machine."""
    import tmaops

    before = tmaops.num_threads()
    if workers.count > 1:
        tmaops.set_num_threads(1)  # the units are the parallel work
    try:
        yield from workers.map(functools.partial(_run_unit_of, source, options, out), units)
    finally:
        if workers.count > 1:
            tmaops.set_num_threads(before)


def _run_unit_of(source: Path, options: Options, out: Path, unit: Unit) -> dict[str, Any]:
    return run_unit(source, options, unit, out)


def resample(
    source: str | os.PathLike,
    out: str | os.PathLike,
    *,
    hz: str | int | float,
    modes: dict[str, str] | None = None,
    max_gap: float | dict[str, float] | None = None,
    latency: dict[str, float] | None = None,
    rules: str | os.PathLike | None = None,
    episode_column: str | None = None,
    time_column: str | None = None,
    time_unit: str | None = None,
    input_hz: str | int | float | None = None,
    topics: str | list[str] | None = None,
    times: str | None = None,
    device: str = "cpu",
    resume: bool = False,
    keep_going: bool = False,
    shard: tuple[int, int] = (0, 1),
    workers: int | None = None,
    quiet: bool = True,
    runner: Runner | None = None,
) -> Report:
    """Resamples every episode of a data set onto first timestamp + i / hz and writes a data set of the same format
    (of recordings: Parquet tables).

    source: a LeRobot v3 data set, a Parquet or HDF5 file, a recording (MCAP, rosbag2, ROS 1 bag), or a folder of one kind of them, here or in an object
    store ("s3://bucket/set"). out: a path that does not exist. It appears complete or not at all; until then the work
    lies in `out` + ".partial". In an object store a folder is complete when it has a tmaops_manifest.json.
    hz: targets per second; fractions as text ("30000/1001"). modes: column (or pattern with *, or "state[3:7]", or
    "type:int*") to linear, cubic, slerp, previous, next, nearest or final. max_gap: seconds, of all streams or by stream;
    targets strictly between two samples further apart are null. latency: stream to the seconds by which its timestamps
    are late. rules: a YAML file with these and the following options; arguments go before it.
    episode_column, time_column, time_unit: of Parquet tables and HDF5 files, where their names do not say it.
    input_hz: samples per second of episodes without timestamps. topics: of recordings, "/odom,/imu" or a list; patterns,
    and with a leading "-" those to leave out. times: of recordings, "header" stamps or the time of "record"ing. device: "cpu", "cuda" (through torch), or "auto".
    resume: go on with an unfinished run of the same input and options; the result has the same bytes as one that was not
    stopped. keep_going: leave episodes out that cannot be resampled, and list them. shard (i, n): do every n-th unit; the
    run that finds all of them done ends the job. workers: this process and children; all cores by default. runner: what
    runs the units elsewhere; tmaops.ray has one for a cluster.
    Raises Refused, and tmaops.Error for what the operator itself refuses.
    """
    source, out = place(source), place(out)
    options = options_of(
        hz,
        rules,
        modes=modes,
        max_gap=max_gap,
        latency=latency,
        episode_column=episode_column,
        time_column=time_column,
        time_unit=time_unit,
        input_hz=input_hz,
        topics=topics,
        times=times,
        device=device,
    )
    if not 0 <= shard[0] < shard[1]:
        raise Refused("shard", f"{shard[0]}/{shard[1]}", "i/N with i from 0 to N - 1")
    begin = time.monotonic()
    # Renaming a folder of an object store copies all of it, so that its work lies in its place.
    partial = out.with_name(out.name + ".partial") if is_local(out) or source.is_file() else out
    if _is_complete(out, partial):
        if not resume or not _ended(out, partial, _job(source, options)):
            raise Refused(str(out), "a path that exists", "a new path for the output")
        return Report(done=True, notes=["the run was complete"])
    _claim(partial, source, options, resume or shard[1] > 1)
    kind = format_of(source)
    report = Report()
    with contextlib.ExitStack() as stack:
        if runner is None:
            count = min(workers or len(os.sched_getaffinity(0)), len(kind.files(source)))
            runner = functools.partial(
                _run_here, stack.enter_context(Workers(count, functools.partial(begin_worker, kind)))
            )
        plan, found = _do_units(kind, source, options, keep_going, shard, partial, Progress(quiet), runner, report)
    every = [found.get(unit.path) or _done(unit, partial) for unit in plan.units]
    if all(result is not None for result in every):
        report.done = _end(kind, source, options, plan, every, partial, out, report)
    report.seconds = time.monotonic() - begin
    return report


def _do_units(
    kind: Format,
    source: Path,
    options: Options,
    keep_going: bool,
    shard: tuple[int, int],
    out: Path,
    progress: Progress,
    runner: Runner,
    report: Report,
) -> tuple[Plan, dict[str, dict[str, Any]]]:
    """Plans, and does all units of this shard that are not done: the plan, and the results of its units by their paths."""
    left_out: set[str] = set()
    while True:  # once, and again without the episodes that failed
        plan = kind.plan(source, options, keep_going, left_out)
        report.failed.update(plan.failed)
        for unit in plan.units:
            unit.kind = kind
        mine = [unit for i, unit in enumerate(plan.units) if i % shard[1] == shard[0]]
        found = {unit.path: result for unit in mine if (result := _done(unit, out)) is not None}
        report.reused = max(report.reused, len(found))
        todo = sorted((u for u in mine if u.path not in found), key=lambda u: -u.source_bytes)
        progress.begin(todo)
        again = False
        try:
            for unit, result in runner(source, options, todo, out):
                if isinstance(result, Refused):
                    episode = result.where.split(": ")[0]
                    named = episode.startswith("episode ")  # else the file cannot be read
                    lost = [episode.removeprefix("episode ")] if named else unit.episodes
                    if not keep_going or not lost:
                        raise result
                    left_out.update(lost)
                    report.failed.update(dict.fromkeys(lost, str(result)))
                    again = True
                    continue
                found[unit.path] = result
                progress.add(unit, result)
        finally:
            progress.end()
        if not again:
            break
    report.episodes = sum(r["episodes"] for r in found.values())
    report.rows_read = sum(r["rows_read"] for r in found.values())
    report.rows_written = sum(r["rows_written"] for r in found.values())
    report.source_bytes = sum(unit.source_bytes for unit in mine)
    report.units, report.notes, report.warnings, report.columns = len(mine), plan.notes, plan.warnings, plan.explained
    return plan, found


def options_of(hz: str | int | float, rules: str | os.PathLike | None = None, **given: Any) -> Options:
    """Options from a YAML file and from what is given beside it, which goes before it."""
    found = read_rules(rules) if rules is not None else {}
    for key, value in given.items():
        if isinstance(value, dict) and isinstance(found.get(key, {}), dict):
            found[key] = found.get(key, {}) | value
        elif value is not None:
            found[key] = value
    return Options(str(hz), **found)


def _job(source: Path, options: Options) -> str:
    return json.dumps({"source": str(source.resolve()), "options": asdict(options)}, sort_keys=True)


def _is_complete(out: Path, partial: Path) -> bool:
    return (out / MANIFEST).is_file() or _is_foreign(out) if partial == out else out.exists()


def _is_foreign(out: Path) -> bool:
    """Whether a folder of an object store has files and none of an unfinished run."""
    return not (out / WORK / "job.json").is_file() and out.exists() and any(True for _ in out.iterdir())


def _ended(out: Path, partial: Path, job: str) -> bool:
    """Ends a run that was stopped between the last two steps of _end(). False where there is none of this job."""
    for work in (out / WORK, partial / WORK):
        note = work / "job.json"
        if note.is_file() and note.read_text(encoding="utf-8") == job:
            remove_tree(work if work == out / WORK else partial)
            return True
    return False


def _claim(partial: Path, source: Path, options: Options, resume: bool) -> None:
    """Makes the folder of an unfinished output, or takes over one of the same job."""
    job, note = _job(source, options), partial / WORK / "job.json"
    if note.is_file() or partial.exists() and not resume:
        if not resume:
            raise Refused(str(partial), "an unfinished run", "--resume to go on with it, or its removal")
        if note.read_text(encoding="utf-8") != job:
            raise Refused(
                str(partial), "an unfinished run of another input or other options", "the same, or its removal"
            )
        for trial in partial.rglob(".*.tmp") if is_local(partial) else ():
            if trial.stat().st_mtime < time.time() - 60 or resume and not _alive(trial):
                trial.unlink(missing_ok=True)
        return
    make_folder(partial / WORK)  # another shard may do the same
    write_whole(note, job)


def _alive(trial: Path) -> bool:
    """Whether the process that writes a file, whose number is in its name, still runs on this machine."""
    with contextlib.suppress(ValueError, ProcessLookupError, PermissionError, IndexError):
        os.kill(int(trial.name.split(".")[-2]), 0)
        return True
    return False


def _end(
    kind: Format, source: Path, options: Options, plan: Plan, results: list, partial: Path, out: Path, report: Report
) -> bool:
    """Writes what needs all units and the manifest, and gives the output its name. False: another process does."""
    if is_local(partial) and not _locked(partial / WORK / "ending"):  # elsewhere two that end write the same files
        return False
    kept = {partial / unit.path for unit in plan.units}
    for stale in partial.rglob("*"):  # of a unit that this job no longer has, or of finish() before
        if stale.is_file() and stale not in kept and WORK not in str(stale.relative_to(partial)).split("/"):
            stale.unlink()
    kind.finish(source, options, plan, results, partial)
    manifest = {
        "made_by": "tmaops dataset resample",
        "options": asdict(options),
        "columns": plan.explained,
        "failed": report.failed,
        "files": {unit.path: result["sha256"] for unit, result in zip(plan.units, results, strict=True)},
    }
    write_whole(partial / MANIFEST, json.dumps(manifest, indent=1, sort_keys=True) + "\n")
    if source.is_file():
        move(partial / plan.units[0].path, out)
        remove_tree(partial)
    else:
        if partial != out:
            move(partial, out)
        remove_tree(out / WORK)
    return True


def _locked(lock: Path) -> bool:
    """Takes a lock of this machine's disk; one whose holder is gone or has had it for ten minutes is taken over."""
    try:
        os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        if time.time() - lock.stat().st_mtime < 600 and _holder_alive(lock):
            return False
    lock.write_text(str(os.getpid()))
    return True


def _holder_alive(lock: Path) -> bool:
    with contextlib.suppress(ValueError, ProcessLookupError):
        holder = int(lock.read_text() or "x")
        os.kill(holder, 0)
        return holder != os.getpid()
    return False
