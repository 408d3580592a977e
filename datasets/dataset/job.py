"""One run over a data set: units of work on all cores, each written whole, so that a stopped run can go on."""

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tmaops.dataset.errors import Lost, Refused
from tmaops.dataset.formats import Format, Plan, Unit, format_of, readable
from tmaops.dataset.options import Options, options_of
from tmaops.dataset.places import check_name, is_local, make_folder, move, place, remove_tree, whole, write_whole
from tmaops.dataset.workers import Workers

WORK = ".tmaops"  # inside the unfinished output: what is done
MANIFEST = "tmaops_manifest.json"


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


def file_digest(path: Path) -> str:
    """SHA-256 of a new file, which goes to the disk meanwhile; of a folder that of its files' digests."""
    if path.is_dir():
        files = sorted(each for each in path.rglob("*") if each.is_file())
        digests = [f"{each.relative_to(path)}\0{file_digest(each)}\n" for each in files]
        return hashlib.sha256("".join(digests).encode()).hexdigest()
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
        with readable(unit.task.get("file", unit.path), unit.kind.broken):
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
        if note["unit"] == unit.digest() and (out / unit.path).exists():
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
    rules: str | os.PathLike | None = None,
    resume: bool = False,
    keep_going: bool = False,
    shard: tuple[int, int] = (0, 1),
    workers: int | None = None,
    quiet: bool = True,
    runner: Runner | None = None,
    **options: Any,
) -> Report:
    """Resamples every episode of a data set onto first timestamp + i / hz and writes a data set of the same format
    (of recordings: Parquet tables).

    source: a LeRobot data set, a Zarr replay buffer, a Parquet or HDF5 file, a recording (MCAP, rosbag2, ROS 1 bag), or a
    folder of one kind of them, here or in an object store ("s3://bucket/set"). out: a path that does not exist. It appears complete or not at all; until then
    the work lies in `out` + ".partial". In an object store a folder is complete when it has a tmaops_manifest.json.
    hz: targets per second; fractions as text ("30000/1001"). rules: a YAML file with the options below; arguments go before
    it. resume: go on with an unfinished run of the same input and options; the result has the same bytes as one that was
    not stopped. keep_going: leave episodes out that cannot be resampled, and list them. shard (i, n): do every n-th unit;
    the run that finds all of them done ends the job. workers: this process and children; all cores by default. runner: what
    runs the units elsewhere; tmaops.ray has one for a cluster.

    Options:
        modes: column (or pattern with *, or "state[3:7]", or "type:int*") to a mode.
        max_gap: seconds, of all streams or by stream; targets strictly between two samples further apart are null.
        latency: stream to the seconds by which its timestamps are late. offset: seconds that are added to all timestamps.
        episode_column, time_column, time_unit: where names and values do not say it. input_hz: samples per second of
        episodes without timestamps.
        topics: of recordings, "/odom,/imu" or a list; patterns, and with a leading "-" those to leave out. times: of
        recordings, "header" stamps or the time of "record"ing.
        sort: samples of an episode into the order of their times. duplicates: equal timestamps are an "error", or the
        "last" sample wins. snap: seconds; a target at most this far from a sample takes that sample.
        start, end: seconds of the recording's clock or ISO 8601 times, between which targets lie. align: targets at
        multiples of the period.
        strict: a warning is an error. copy: videos are copied; without it they share their bytes with the source.
        device: "cpu", "cuda" (through torch), or "auto".

    Raises Refused, and tmaops.Error for what the operator itself refuses.
    """
    begin = time.monotonic()
    source, out = place(source), place(out)
    asked = options_of(hz, rules, **options)
    if not 0 <= shard[0] < shard[1]:
        raise Refused("shard", f"{shard[0]}/{shard[1]}", "i/N with i from 0 to N - 1")
    # Renaming a folder of an object store copies all of it, so that its work lies in its place.
    partial = out.with_name(out.name + ".partial") if is_local(out) or source.is_file() else out
    if _is_complete(out, partial):
        if not resume or not _ended(out, partial, _job(source, asked)):
            raise Refused(str(out), "a path that exists", "a new path for the output")
        return Report(done=True, notes=["the run was complete"])
    _check_places(source, out)
    kind = format_of(source)
    files = kind.files(source)
    for path in files:
        check_name(path)
    report = Report()
    with contextlib.ExitStack() as stack:
        if runner is None:
            count = min(workers or len(os.sched_getaffinity(0)), len(files))
            runner = functools.partial(
                _run_here, stack.enter_context(Workers(count, functools.partial(begin_worker, kind)))
            )
        plan = _planned(kind, source, asked, keep_going, set())
        stack.enter_context(_Claim(partial, source, asked, resume, shard))
        progress = Progress(quiet)
        plan, found = _do_units(kind, source, asked, keep_going, shard, partial, progress, runner, report, plan)
        every = [found.get(unit.path) or _done(unit, partial) for unit in plan.units]
        if all(result is not None for result in every):
            report.done = _end(kind, source, asked, plan, every, partial, out, report)
    report.seconds = time.monotonic() - begin
    return report


def _check_places(source: Path, out: Path) -> None:
    """Refuses what would fail at the end of the work."""
    check_name(out)
    if is_local(out):
        if out.is_symlink():
            raise Refused(str(out), "a link to nothing", "a new path for the output")
        if is_local(source) and source.is_dir() and source.resolve() in out.resolve().parents:
            raise Refused(str(out), "a path inside the input", "a path beside it")


def _planned(kind: Format, source: Path, options: Options, keep_going: bool, left_out: set[str]) -> Plan:
    """A plan that has something to do."""
    with readable(str(source), kind.broken):
        plan = kind.plan(source, options, keep_going, left_out)
    plan.check(options)
    if not plan.units:
        why = next(iter(plan.failed.values()), "")
        raise Refused(str(source), "no episode that can be resampled" + (f" ({why})" if why else ""), "at least one")
    for unit in plan.units:
        unit.kind = kind
    return plan


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
    plan: Plan,
) -> tuple[Plan, dict[str, dict[str, Any]]]:
    """Does all units of this shard that are not done: the plan, and the results of its units by their paths."""
    left_out: set[str] = set()
    while True:  # once, and again without the episodes that failed
        report.failed.update(plan.failed)
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
                    lost = [episode.removeprefix("episode ")] if named else list(map(str, unit.episodes))
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
        plan = _planned(kind, source, options, keep_going, left_out)
    report.episodes = sum(r["episodes"] for r in found.values())
    report.rows_read = sum(r["rows_read"] for r in found.values())
    report.rows_written = sum(r["rows_written"] for r in found.values())
    report.source_bytes = sum(unit.source_bytes for unit in mine)
    report.units, report.notes, report.warnings, report.columns = len(mine), plan.notes, plan.warnings, plan.explained
    return plan, found


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


class _Claim:
    """The folder of an unfinished output, made for this job or taken over. A context manager.

    While a run has it, a lock is held, which ends with the process. So what is left of a run of other options is told from one
    that is at work. A run that is refused removes what it made.
    """

    def __init__(self, partial: Path, source: Path, options: Options, resume: bool, shard: tuple[int, int]):
        self._partial, self._resume, self._joins = partial, resume, resume or shard[1] > 1
        self._job, self._note = _job(source, options), partial / WORK / "job.json"
        self._lock = None

    def __enter__(self) -> "_Claim":
        work = self._partial / WORK
        known = self._note.read_text(encoding="utf-8") if self._note.is_file() else None
        if is_local(self._partial) and self._partial.exists() and not work.is_dir():
            raise Refused(str(self._partial), "a path that is no unfinished run", "its removal, or another output")
        if known == self._job and not self._joins:
            raise Refused(str(self._partial), "an unfinished run", "--resume to go on with it, or its removal")
        if known is not None and known != self._job:
            if self._joins or not self._alone():
                what = "an unfinished run of another input or other options"
                raise Refused(str(self._partial), what, "the same, or its removal")
            remove_tree(self._partial)
        make_folder(work)  # another shard may do the same
        if known != self._job:
            write_whole(self._note, self._job)
        if is_local(self._partial):
            for trial in self._partial.rglob(".*.tmp") if self._alone() else ():
                remove_tree(trial)
            self._lock = open(work / "at_work", "w")
            fcntl.flock(self._lock, fcntl.LOCK_SH)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._lock is not None:
            self._lock.close()
        if isinstance(error, Refused) and not isinstance(error, Lost) and not self._joins and self._partial.exists():
            remove_tree(self._partial)

    def _alone(self) -> bool:
        """Whether no run is at work there."""
        path = self._partial / WORK / "at_work"
        return not path.exists() or _locked(path) is not None


def _locked(path: Path) -> Any:
    """A file with a lock that one process has, until it is closed or the process ends; None where another has it."""
    file = open(path, "a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    return file


def _end(
    kind: Format, source: Path, options: Options, plan: Plan, results: list, partial: Path, out: Path, report: Report
) -> bool:
    """Writes what needs all units and the manifest, and gives the output its name. False: another process does."""
    lock = _locked(partial / WORK / "ending") if is_local(partial) else None  # elsewhere two write the same files
    if is_local(partial) and lock is None:
        return False
    kept = {partial / unit.path for unit in plan.units} | {partial / WORK}
    for stale in list(partial.rglob("*")):  # of a unit that this job no longer has, or of finish() before
        if stale.is_file() and kept.isdisjoint((stale, *stale.parents)):
            stale.unlink()
    with readable(str(source), kind.broken):
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
