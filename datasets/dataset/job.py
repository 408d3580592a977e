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

import pyarrow as pa
import tmaops
from tmaops.dataset.errors import Lost, Refused
from tmaops.dataset.formats import Format, Unit, format_of, readable
from tmaops.dataset.options import Options, described, options_of
from tmaops.dataset.places import check_name, is_local, move, place, remove_tree, whole, write_whole
from tmaops.dataset.rules import jumps
from tmaops.dataset.workers import Workers

WORK = ".tmaops"  # inside the unfinished output: what is done
MANIFEST = "tmaops_manifest.json"

#: Runs units in any order and yields each with its result, or with the error that refused it.
Runner = Callable[[Path, Options, list[Unit], Path], Iterator[tuple[Unit, "dict[str, Any] | Refused"]]]


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

    Raises Refused, and tmaops.Error for what the operator itself refuses.
    """
    begin = time.monotonic()
    source, out = place(source), place(out)
    asked = options_of(hz, rules, **options)
    if not 0 <= shard[0] < shard[1]:
        raise Refused("shard", f"{shard[0]}/{shard[1]}", "i/N with i from 0 to N - 1")
    job = _Job(source, out, asked, keep_going, shard)
    if job.is_complete():
        if not resume or not job.ended():
            raise Refused(str(out), "a path that exists", "a new path for the output")
        return Report(done=True, notes=["the run was complete"])
    job.check_places()
    with contextlib.ExitStack() as stack:
        if runner is None:
            count = min(workers or len(os.sched_getaffinity(0)), len(job.files))
            here = stack.enter_context(Workers(count, functools.partial(begin_worker, job.kind)))
            if count > 1:  # the units are the parallel work
                stack.callback(tmaops.set_num_threads, tmaops.num_threads())
                tmaops.set_num_threads(1)

            def runner(source: Path, options: Options, units: list[Unit], out: Path) -> Iterator:
                return here.map(functools.partial(run_unit, source, options, out), units)

        job.make_plan()
        stack.enter_context(_Claim(job.partial, job.text, resume or shard[1] > 1))
        job.do_units(runner, quiet or not sys.stderr.isatty())
        job.end()
    job.report.seconds = time.monotonic() - begin
    return job.report


resample.__doc__ = f"{resample.__doc__}\n    Options:\n{described(8)}"


def begin_worker(kind: Format | None = None) -> None:
    """Leaves the other cores to the other workers. kind: its module is imported by now."""
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    tmaops.set_num_threads(1)


def run_unit(source: Path, options: Options, out: Path, unit: Unit) -> dict[str, Any]:
    """Writes one unit beside its place, then moves it there, then notes that it is done."""
    jumps.clear()
    with whole(out / unit.path) as trial:
        with readable(unit.task.get("file", unit.path), unit.kind.broken):
            result = unit.kind.run_unit(source, options, unit, trial)
        result |= {"sha256": file_digest(trial), "jumps": dict(jumps)}
    note = {"unit": unit.digest(), "result": result}
    write_whole(_note_of(unit, out), json.dumps(note, sort_keys=True))
    return result


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


def _note_of(unit: Unit, out: Path) -> Path:
    return out / WORK / (hashlib.sha256(unit.path.encode()).hexdigest()[:24] + ".json")


def _done(unit: Unit, out: Path) -> dict[str, Any] | None:
    """The result of a unit that an earlier run finished with the same task; None where it has to be done."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        note = json.loads(_note_of(unit, out).read_text(encoding="utf-8"))
        if note["unit"] == unit.digest() and (out / unit.path).exists():
            return note["result"]
    return None


def _with_progress(results: Iterator, units: list[Unit], quiet: bool) -> Iterator:
    """The results of these units; after each a line on stderr, over the one before."""
    begin, done, episodes = time.monotonic(), 0, 0
    total = max(sum(unit.source_bytes for unit in units), 1)
    for unit, result in results:
        yield unit, result
        done += unit.source_bytes
        episodes += 0 if isinstance(result, Refused) else result["episodes"]
        spent = time.monotonic() - begin
        rates = f"{episodes / spent:.0f} episodes/s  {done / spent / 1e6:.0f} MB/s"
        left = spent * (total - done) / max(done, 1)
        if not quiet:
            end = "\n" if done == total else ""
            print(f"\r{100 * done / total:3.0f} %  {rates}  {left:.0f} s left ", end=end, file=sys.stderr)


class _Job:
    """A run: its plan, the results of its units by their paths, and its report."""

    def __init__(self, source: Path, out: Path, options: Options, keep_going: bool, shard: tuple[int, int]):
        self.source, self.out, self.options = source, out, options
        # Renaming a folder of an object store copies all of it, so that its work lies in its place.
        self.partial = out.with_name(out.name + ".partial") if is_local(out) or source.is_file() else out
        self.text = json.dumps({"source": str(source.resolve()), "options": asdict(options)}, sort_keys=True)
        self.report = Report()
        self._keep_going, self._shard = keep_going, shard
        self._left_out: set[str] = set()
        self._found: dict[str, dict[str, Any]] = {}

    def is_complete(self) -> bool:
        if self.partial != self.out:
            return self.out.exists()
        foreign = self.out.exists() and any(True for _ in self.out.iterdir())  # has files, and no unfinished run
        return (self.out / MANIFEST).is_file() or foreign and not (self.out / WORK / "job.json").is_file()

    def ended(self) -> bool:
        """Ends a run that was stopped between the last two steps of end(). False where there is none of this job."""
        for work in (self.out / WORK, self.partial / WORK):
            note = work / "job.json"
            if note.is_file() and note.read_text(encoding="utf-8") == self.text:
                remove_tree(work if work == self.out / WORK else self.partial)
                return True
        return False

    def check_places(self) -> None:
        """Finds the format and its files, and refuses what would fail at the end of the work."""
        source, out = self.source, self.out
        check_name(out)
        if is_local(out) and out.is_symlink():
            raise Refused(str(out), "a link to nothing", "a new path for the output")
        if is_local(out) and is_local(source) and source.is_dir() and source.resolve() in out.resolve().parents:
            raise Refused(str(out), "a path inside the input", "a path beside it")
        self.kind = format_of(source, self.options)
        self.files = self.kind.files(source)
        for path in self.files:
            check_name(path)

    def make_plan(self) -> None:
        """A plan that has something to do."""
        with readable(str(self.source), self.kind.broken):
            self.plan = self.kind.plan(self.source, self.options, self._keep_going, self._left_out)
        self.plan.check(self.options)
        if not self.plan.units:
            cut = " (--start and --end leave none)" if self.options.start or self.options.end else ""
            why = next((f" ({why})" for why in self.plan.failed.values()), cut)
            raise Refused(str(self.source), f"no episode that can be resampled{why}", "at least one")
        for unit in self.plan.units:
            unit.kind = self.kind
        self.report.failed.update(self.plan.failed)

    def do_units(self, runner: Runner, quiet: bool) -> None:
        """Does all units of this shard that are not done; again without the episodes that failed."""
        report, found, failed = self.report, self._found, len(self._left_out)
        mine = self.plan.units[self._shard[0] :: self._shard[1]]
        found.clear()
        found |= {unit.path: result for unit in mine if (result := _done(unit, self.partial)) is not None}
        report.reused = max(report.reused, len(found))
        todo = sorted((unit for unit in mine if unit.path not in found), key=lambda unit: -unit.source_bytes)
        running = runner(self.source, self.options, todo, self.partial)
        with contextlib.closing(_with_progress(running, todo, quiet)) as results:
            for unit, result in results:
                if isinstance(result, Refused):
                    self._lose(unit, result)
                else:
                    found[unit.path] = result
        if len(self._left_out) > failed:
            self.make_plan()
            self.do_units(runner, quiet)
            return
        for fact in ("episodes", "rows_read", "rows_written"):
            setattr(report, fact, sum(result[fact] for result in found.values()))
        report.source_bytes, report.units = sum(unit.source_bytes for unit in mine), len(mine)
        report.notes, report.columns = self.plan.notes, self.plan.explained
        said = {name: text for unit in reversed(mine) for name, text in found[unit.path].get("jumps", {}).items()}
        report.warnings = [*self.plan.warnings, *(said[name] for name in sorted(said))]
        if self.options.strict and report.warnings:
            raise Refused("strict", f"a warning: {report.warnings[0]}", "no warnings")

    def _lose(self, unit: Unit, error: Refused) -> None:
        """Leaves out the episode that an error names, or all of a file that cannot be read."""
        episode = error.where.split(": ")[0]
        named = episode.startswith("episode ")
        lost = [episode.removeprefix("episode ")] if named else list(map(str, unit.episodes))
        if not self._keep_going or not lost:
            raise error
        self._left_out.update(lost)
        self.report.failed.update(dict.fromkeys(lost, str(error)))

    def end(self) -> None:
        """Writes what needs all units and the manifest, and gives the output its name. Not while others have units to do."""
        units, out, partial = self.plan.units, self.out, self.partial
        results = [self._found.get(unit.path) or _done(unit, partial) for unit in units]
        # In a store there are no locks: there two write the same files.
        lock = _locked(partial / WORK / "ending") if is_local(partial) else "none"
        if not all(results) or lock is None:
            return
        kept = {partial / unit.path for unit in units} | {partial / WORK}
        for stale in list(partial.rglob("*")):  # of a unit that this job no longer has, or of finish() before
            if stale.is_file() and kept.isdisjoint((stale, *stale.parents)):
                stale.unlink()
        with readable(str(self.source), self.kind.broken):
            self.kind.finish(self.source, self.options, self.plan, results, partial)
        files = {unit.path: result["sha256"] for unit, result in zip(units, results, strict=True)}
        manifest = {
            "made_by": "tmaops dataset resample",
            "options": asdict(self.options),
            "columns": self.plan.explained,
            "failed": self.report.failed,
            "files": files,
        }
        write_whole(partial / MANIFEST, json.dumps(manifest, indent=1, sort_keys=True) + "\n")
        if self.source.is_file():
            move(partial / units[0].path, out)
            remove_tree(partial)
        else:
            if partial != out:
                move(partial, out)
            remove_tree(out / WORK)
        self.report.done = True


class _Claim:
    """The folder of an unfinished output, made for a job or taken over. A context manager.

    While a run has it, a lock is held, which ends with the process. So what is left of a run of other options is told from one
    that is at work. A run that is refused removes what it made.
    """

    def __init__(self, partial: Path, job: str, joins: bool):
        self._partial, self._job, self._joins = partial, job, joins
        self._lock = None

    def __enter__(self) -> "_Claim":
        partial, work = self._partial, self._partial / WORK
        note, lock = work / "job.json", work / "at_work"
        known = note.read_text(encoding="utf-8") if note.is_file() else None
        if is_local(partial) and partial.exists() and not work.is_dir():
            raise Refused(str(partial), "a path that is no unfinished run", "its removal, or another output")
        if known == self._job and not self._joins:
            raise Refused(str(partial), "an unfinished run", "--resume to go on with it, or its removal")
        if known is not None and known != self._job:
            if self._joins or (lock.exists() and _locked(lock) is None):
                what = "an unfinished run of another input or other options"
                raise Refused(str(partial), what, "the same, or its removal")
            remove_tree(partial)
        if is_local(partial):
            work.mkdir(parents=True, exist_ok=True)
            alone = _locked(lock)
            for trial in partial.rglob(".*.tmp") if alone else ():  # of runs that have ended
                remove_tree(trial)
            self._lock = alone or open(lock, "a")
            fcntl.flock(self._lock, fcntl.LOCK_SH)
        if known != self._job:
            write_whole(note, self._job)  # another shard may do the same
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._lock is not None:
            self._lock.close()
        if isinstance(error, Refused) and not isinstance(error, Lost) and not self._joins and self._partial.exists():
            remove_tree(self._partial)


def _locked(path: Path) -> Any:
    """A file with a lock that one process has, until it is closed or the process ends; None where another has it."""
    file = open(path, "a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        return None
    return file
