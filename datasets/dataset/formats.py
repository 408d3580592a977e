"""What a format of data sets is, and which formats there are."""

import contextlib
import hashlib
import importlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from tmaops.dataset import clock
from tmaops.dataset.errors import Refused
from tmaops.dataset.options import Options
from tmaops.dataset.places import fingerprint
from tmaops.dataset.rules import Decided, Rule, warnings_of_length

FEWEST_PER_SAMPLE, MOST_PER_SAMPLE = 0.01, 100  # targets; every usual rate lies between, a wrong unit does not

#: Attributes that say how many samples there are per second.
RATES = ("fps", "hz", "control_freq", "control_frequency", "frequency", "frame_rate", "sample_rate", "sampling_rate")


@dataclass
class Stream:
    """One stream of one episode, as a format reads it for inspect()."""

    episode: str
    name: str  # "" for the only one
    times: np.ndarray  # int64 nanoseconds (S), as recorded
    columns: dict[str, np.ndarray] = field(default_factory=dict)  # real numbers (S, channels)
    quaternions: dict[str, list[int]] = field(default_factory=dict)  # column -> first channels
    recorded: np.ndarray | None = None  # a second clock of the same samples (the recorder's), nanoseconds
    type: str = ""  # of its messages
    left_out: list[str] = field(default_factory=list)  # what of them is no column, and why


@dataclass
class Unit:
    """One output file and what it is made of. `task` is JSON: it says everything that decides the file's bytes."""

    path: str  # below the output
    task: dict[str, Any]
    source_bytes: int = 0
    episodes: "pa.Array | list[str]" = field(default_factory=list)  # names of what the file holds
    kind: "Format | None" = None  # set when the unit is planned

    def digest(self) -> str:
        return hashlib.sha256(json.dumps([self.path, self.task], sort_keys=True).encode()).hexdigest()


@contextlib.contextmanager
def readable(name: str, broken: tuple[type[Exception], ...]) -> Iterator[None]:
    """Inside, what libraries raise at broken bytes is a refusal of the file of this name."""
    try:
        yield
    except Refused:
        raise
    except (*broken, OSError) as error:
        ours = isinstance(error, OSError) and (error.errno is not None or "errno = 28" in str(error))
        if ours and not isinstance(error, broken):  # of this machine, such as a full disk
            raise
        said = "sizes beyond memory" if isinstance(error, MemoryError) else str(error).split("\n")[0]
        raise Refused(name, said or type(error).__name__, "a file that can be read") from error


class Failed(dict[str, str]):
    """Episodes, or whole files, that are left out, and why; where none may be left out, the first refusal is raised.

    broken: what the format's library raises at a file that cannot be read.
    """

    def __init__(self, keep_going: bool, broken: tuple[type[Exception], ...] = ()):
        super().__init__()
        self._keep_going, self._broken = keep_going, broken

    @contextlib.contextmanager
    def named(self, name: str) -> Iterator[None]:
        """Inside, a refusal is of the episode or file of this name."""
        try:
            with readable(name, self._broken):
                yield
        except Refused as error:
            if not self._keep_going:
                raise
            self[name] = str(error)


@dataclass
class Plan:
    """What is to be done, found by reading times and metadata alone."""

    units: list[Unit] = field(default_factory=list)
    episodes: int = 0
    columns: dict[str, Rule] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)  # episode -> why, with keep_going
    found: dict[str, Any] = field(default_factory=dict)  # options that were inferred, by their names
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)  # stream -> samples and targets
    beside: set[str] = field(default_factory=set)  # arrays that are copied, and said to be
    inexact: int = 0  # episodes whose times are not frame / fps
    shares: dict[str, float] = field(default_factory=dict)  # column -> targets per sample, where streams differ
    decided: Decided | None = None

    @property
    def explained(self) -> dict[str, str]:
        """Column -> its rule and why, for people."""
        return {name: f"{rule.text()} ({rule.why})" for name, rule in self.columns.items()}

    def add(self, decided: Decided) -> None:
        """Takes the rules of columns, and gives them to the units."""
        self.decided, self.columns = decided, decided.rules.columns
        self.notes += decided.notes
        self.warnings += decided.warnings
        rules = decided.rules.json()
        for unit in self.units:
            unit.task["rules"] = rules

    def count(self, stream: str, samples: int, targets: int) -> None:
        """Adds the samples and targets of an episode."""
        before = self.counts.get(stream, (0, 0))
        self.counts[stream] = (before[0] + samples, before[1] + targets)

    def beside_samples(self, path: str, rows: int, samples: int) -> None:
        """Names an array that is copied beside resampled ones: in a warning where it may hold samples, too."""
        if path in self.beside:
            return
        self.beside.add(path)
        warnings = warnings_of_length(path, rows, samples)
        self.warnings += warnings
        if not warnings:
            self.notes.append(f"'{path}' stays as it is: it has {rows} rows beside {samples} samples")

    def check(self, options: Options) -> None:
        """Warns of an absurd number of targets; where warnings are errors, refuses the first. Refuses a rate that is not used."""
        if options.input_hz and "input_hz" not in self.found:
            raise Refused("input_hz", options.input_hz, "no such option: every episode has timestamps")
        cut = options.start is not None or options.end is not None
        for stream, (samples, targets) in self.counts.items():
            share = targets / max(samples, 1)
            if share > MOST_PER_SAMPLE or samples > 1 and not cut and share < FEWEST_PER_SAMPLE:
                what = f"{stream}: " if stream not in ("", ".") else ""
                unit = "is the unit of the times right? (--time-unit names another)"
                self.warnings.append(f"{what}{share:.4g} targets per sample: {unit} [targets_per_sample]")
        if self.decided is not None:
            samples, targets = self.counts.get("", (0, 0))
            shares = self.shares or dict.fromkeys(self.columns, targets / max(samples, 1))
            self.warnings += self.decided.too_fast(shares, float(clock.rate(options.hz)))
        if options.strict and self.warnings:
            raise Refused("strict", f"a warning: {self.warnings[0]}", "no warnings")


def rate_of(options: Options, groups: Iterable[Mapping[str, Any]]) -> tuple[str, str] | None:
    """Samples per second where there are no times, as asked for or by an attribute of some groups, and how it was found."""
    if options.input_hz:
        return options.input_hz, "asked for"
    for attributes in groups:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            found = json.loads(attributes["env_args"])["env_kwargs"]["control_freq"]
            return str(clock.rate(found)), "control_freq of env_args"
        for name in RATES:
            if (rate := rate_in(attributes.get(name))) is not None:
                return str(rate), f"attribute {name}"
    return None


def rate_in(value: Any) -> Fraction | None:
    """The rate that an attribute says: a number, or text of one; None for anything else."""
    if isinstance(value, str) or np.ndim(value) == 0 and np.array(value).dtype.kind in "iuf":
        with contextlib.suppress(Refused):
            return clock.rate(value if isinstance(value, str) else np.array(value).item())
    return None


class Format:
    """A kind of data set. plan() reads, run_unit() writes one file, finish() writes what needs all of them."""

    broken: tuple[type[Exception], ...] = ()  # what its library raises at a file that cannot be read
    endings: tuple[str, ...] = ()

    def files(self, source: Path) -> list[Path]:
        """Those that hold the episodes, at least one for each unit."""
        if source.is_file():
            return [source]
        return sorted(path for ending in self.endings for path in source.rglob(f"*{ending}"))

    def plan(self, source: Path, options: Options, keep_going: bool, left_out: set[str]) -> Plan:
        raise NotImplementedError

    def run_unit(self, source: Path, options: Options, unit: Unit, target: Path) -> dict[str, Any]:
        raise NotImplementedError

    def finish(self, source: Path, options: Options, plan: Plan, results: list[dict[str, Any]], out: Path) -> None:
        """Nothing, where the files are the data set."""

    def episodes(self, source: Path, options: Options, unreadable: dict[str, str]) -> Iterator[list[Stream]]:
        """The streams of every episode for inspect(); into `unreadable` goes what cannot be read."""
        raise NotImplementedError

    @staticmethod
    def unit_of(path: Path, name: str, episodes: "pa.Array | list[str]", **task: Any) -> Unit:
        """A unit of an output file for a file of the source."""
        return Unit(name, task | {"file": name, "input": fingerprint(path)}, path.stat().st_size, episodes)


def _ends(*endings: str) -> Callable[[Path], bool]:
    """Whether a file, or a file below a folder, has one of these endings."""

    def fits(source: Path) -> bool:
        if source.is_dir():
            return any(any(source.rglob(f"*{ending}")) for ending in endings)
        return source.name.lower().endswith(endings)

    return fits


def _is_zarr(source: Path) -> bool:
    if source.is_dir():
        named = any((source / name).is_file() for name in (".zgroup", "zarr.json"))
        return named or (source / "meta/episode_ends").is_dir()
    return source.name.lower().endswith((".zarr.zip", ".zarr"))


class Kind(NamedTuple):
    """A format by what lies at a place: its module and class, or, of one that is not read, the line that gets one further."""

    name: str
    fits: Callable[[Path], bool]
    module: str = ""
    format: str = ""
    package: str = ""  # on PyPI, where the module needs one
    mend: str = ""
    without: str = "topics times copy"  # options that mean nothing for it


TO_PARQUET = (
    'Parquet: python3 -c "import sys, tensorflow as tf, tensorflow_datasets as ds, pyarrow as pa, pyarrow.parquet as pq; '
    "plain = lambda x: x.tolist() if hasattr(x, 'tolist') else x; "
    "episodes = ds.as_numpy(ds.builder_from_directory(sys.argv[1]).as_dataset(split='all')); "
    "rows = [{'steps': [tf.nest.map_structure(plain, step) for step in one['steps']]} for one in episodes]; "
    'pq.write_table(pa.Table.from_pylist(rows), sys.argv[2])" FOLDER rlds.parquet'
)
ONE_STORE = "one of them: tmaops dataset resample IN/NAME.zarr OUT.zarr --hz F"
FOR_RECORDED = "rosbags mcap mcap-protobuf-support"
RECORDED = _ends(".mcap", ".db3", ".bag", ".mcap.zstd", ".db3.zstd")
ONE_RECORDING = _ends(".npz", ".npy", ".csv", ".tsv", ".txt", ".tum")

TABLES = "episode_column time_column time_unit input_hz"
ALL_OF_THEM = f"topics times {TABLES}"

#: The formats, the surest first.
KINDS = [
    Kind("LeRobot data set", lambda at: (at / "meta/info.json").is_file(), "lerobot", "LeRobot", without=ALL_OF_THEM),
    Kind("Zarr replay buffer", _is_zarr, "zarr", "Zarr", "zarr", without="topics times copy episode_column"),
    Kind("a folder of Zarr stores", lambda at: at.is_dir() and any(at.glob("*.zarr*")), mend=ONE_STORE),
    Kind("Parquet", _ends(".parquet"), "parquet", "ParquetTables"),
    Kind("HDF5", _ends(".hdf5", ".h5"), "hdf5", "Hdf5", "h5py"),
    Kind("a recording", RECORDED, "recordings", "Recordings", FOR_RECORDED, without=f"copy {TABLES}"),
    Kind("RLDS tfrecords", lambda at: ".tfrecord" in at.name or any(at.rglob("*.tfrecord*")), mend=TO_PARQUET),
    Kind("npz, npy or text", ONE_RECORDING, mend="tmaops resample IN -o OUT --hz F"),
]


def format_of(source: Path, options: Options) -> Format:
    """The format of a data set, by what lies in its folder. Refuses options that mean nothing for it."""
    kind = next((kind for kind in KINDS if kind.fits(source)), None) if source.exists() else None
    if kind is None:
        what = "a folder without data" if source.is_dir() else "a file" if source.exists() else "nothing"
        known = "a LeRobot data set, Zarr replay buffer, Parquet, HDF5, MCAP, .db3 or .bag file, or a folder of them"
        raise Refused(str(source), what, known)
    if not kind.module:
        raise Refused(str(source), kind.name, kind.mend)
    options.check_known(kind.without, kind.name)
    try:
        return getattr(importlib.import_module(f"tmaops.dataset.{kind.module}"), kind.format)()
    except ImportError as error:
        if not kind.package:
            raise
        raise Refused(str(source), f"{kind.name}, and no {error.name}", f"pip install {kind.package}") from None
