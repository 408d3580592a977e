"""tmaops.resample_columns: recordings of named columns in memory, by the tool's own rules.

What a column is and how it is interpolated is decided in one place, by the tool (docs/resample_command.md). So the columns
go to the tool as an npz archive in memory-backed storage, and come back as one.
"""

from __future__ import annotations

import json
import logging
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tmaops import _errors
from tmaops._program import program

_log = logging.getLogger("tmaops")


@dataclass(frozen=True)
class Report:
    """What the tool found out and decided.

    Attributes:
        modes: interpolation of every column, or of a part of one, in order: [("quat", "slerp"), ...].
        time: {"name", "unit", "chosen_by", "unit_by", "first_ns", "last_ns", "median_step_ns"}.
        quaternions: the columns of each quaternion that was recognised, and the order of its components.
        warnings: what looks wrong.
        notes: what else was assumed.
        json: all of it, as `tmaops resample --json` prints it.
    """

    modes: list[tuple[str, str]]
    time: dict[str, Any]
    quaternions: list[dict[str, str]]
    warnings: list[str]
    notes: list[str]
    json: dict[str, Any] = field(repr=False)


def is_recording(value: Any) -> bool:
    """True for a dictionary of arrays, a pandas and a polars frame."""
    return isinstance(value, Mapping) or _frame_library(value) is not None


def _frame_library(value: Any) -> str | None:
    module = type(value).__module__.partition(".")[0]
    return module if module in ("pandas", "polars") and type(value).__name__ == "DataFrame" else None


# The names of times that the tool knows (src/io/time_names.cpp).
_TIME_NAMES = ("timestamp", "timestamps", "time", "times", "t", "stamp", "stamps")
_TAG = 52  # bits of a row number, above which the number of its column stands


class _Columns:
    """Columns as NumPy arrays, and for each how the caller's kind of array is made of one again.

    What the tool has no type for, and what may lack values, goes to it as the numbers of the rows. They are whole numbers,
    which have the rule of everything that is no real number: a sample is taken as it is.
    """

    def __init__(self, time: str | None = None) -> None:
        self.time = time
        self.arrays: dict[str, Any] = {}
        self.restore: dict[str, Callable[[Any], Any]] = {}
        self.take: list[Callable[[Any], Any]] = []  # of columns of row numbers: from rows (-1: no data) to values
        self.dates: list[str] = []
        self.new: Callable[[Any], Any] = lambda array: array  # of columns that the tool adds

    def is_time(self, name: str) -> bool:
        return name == self.time or name in _TIME_NAMES

    def add_rows(self, name: str, count: int, take: Callable[[Any], Any]) -> None:
        import numpy

        self.take.append(take)
        self.arrays[name] = (len(self.take) << _TAG) + 1 + numpy.arange(count, dtype="int64")

    def taken(self, array: Any) -> Any:
        """The values of a column of row numbers; None for another column."""
        if array.dtype != "int64" or array.ndim != 1 or not len(array):
            return None
        number, rows = int(array.max()) >> _TAG, (array & ((1 << _TAG) - 1)) - 1
        return self.take[number - 1](rows) if 1 <= number <= len(self.take) else None

    def add(self, name: str, values: Any) -> None:
        import numpy

        def back(array: Any) -> Any:
            return array

        torch = sys.modules.get("torch")
        if torch is not None and isinstance(values, torch.Tensor):
            dtype, device = values.dtype, values.device
            values = values.detach().cpu()
            values = values.float().numpy() if dtype is torch.bfloat16 else values.numpy()

            def back(array):
                return torch.from_numpy(array).to(device, dtype if array.dtype.kind != "b" else torch.bool)

            self.new = lambda array: torch.from_numpy(array).to(device)
        elif not isinstance(values, numpy.ndarray):
            module = type(values).__module__.partition(".")[0]
            values = numpy.asarray(values.get() if module == "cupy" else values)
            if module in ("jax", "jaxlib"):
                back = sys.modules["jax"].numpy.asarray
        if values.dtype.kind == "O":
            rows = _stacked(values)
            if rows is None:
                self.add_rows(
                    name, len(values), lambda rows: _objects([values[row] if row >= 0 else None for row in rows])
                )
                return
            values, back = rows, lambda array: list(array)
        elif values.dtype.kind in "mM":
            dtype = values.dtype
            values = values.astype(f"{dtype.kind}8[ns]").astype("int64")
            if dtype.kind == "M":
                self.dates.append(name)

            def back(array):
                return array.astype(f"{dtype.kind}8[ns]").astype(dtype)
        elif values.dtype.name == "bfloat16":
            dtype = values.dtype
            values = values.astype("float32")

            def back(array):
                return array.astype(dtype)

        self.arrays[name] = values
        self.restore[name] = back

    def add_of_pandas(self, name: str, values: Any) -> None:
        pandas = sys.modules["pandas"]
        dtype, array = values.dtype, values.array
        kind = getattr(dtype, "kind", "O")
        if kind == "M" and not _is_numpy(dtype):
            zone = getattr(getattr(dtype, "pyarrow_dtype", dtype), "tz", None)
            self.add(name, values.to_numpy(dtype="datetime64[ns]"))
            back = self.restore[name]
            self.restore[name] = lambda column: (
                pandas.Series(pandas.DatetimeIndex(back(column)).tz_localize("UTC" if zone else None))
                .astype(dtype)
                .array
            )
        elif kind == "f" and not _is_numpy(dtype):
            self.add(name, values.to_numpy(dtype="f4" if dtype.itemsize == 4 else "f8", na_value=float("nan")))
            self.restore[name] = lambda column: pandas.array(column, dtype=dtype)
        elif _is_numpy(dtype) and (kind != "O" or _stacked(values.to_numpy()) is not None):
            self.add(name, values.to_numpy())
        elif (self.is_time(name) or name == "valid") and not values.isna().any():
            numbers = {"i": "i8", "u": "u8", "b": "?"}.get(kind, "U")
            self.add(name, values.to_numpy(dtype=object).astype(numbers))
            self.restore[name] = lambda column: pandas.array(column, dtype=dtype)
        else:
            self.add_rows(name, len(values), lambda rows: array.take(rows, allow_fill=bool((rows < 0).any())))

    def add_of_polars(self, name: str, values: Any) -> None:
        polars = sys.modules["polars"]
        dtype, nulls = values.dtype, bool(values.null_count())
        inner = getattr(dtype, "inner", None)
        rows = _stacked(values.to_numpy()) if inner is not None and inner.is_float() and not nulls else None
        if dtype.is_float() or rows is not None or (dtype.is_integer() or dtype == polars.Boolean) and not nulls:
            self.add(name, values.to_numpy() if rows is None else rows)
            self.restore[name] = lambda column: _polars_series(polars, column, dtype, nulls)
        elif isinstance(dtype, polars.Datetime) and not nulls:
            self.add(name, values.to_numpy())
            back, zone = self.restore[name], dtype.time_zone
            made = (
                (lambda series: series.dt.replace_time_zone("UTC").dt.convert_time_zone(zone))
                if zone
                else (lambda series: series)
            )
            self.restore[name] = lambda column: made(polars.Series(back(column)))
        elif dtype == polars.String and self.is_time(name) and not nulls:
            self.add(name, values.to_numpy().astype(str))
            self.restore[name] = lambda column: polars.Series(column.tolist(), dtype=dtype)
        else:
            self.add_rows(name, len(values), lambda rows: values.gather(polars.Series(rows).replace(-1, None)))


def _is_numpy(dtype: Any) -> bool:
    import numpy

    return isinstance(dtype, numpy.dtype)


def _stacked(values: Any) -> Any:
    """Rows of numbers of one shape as one array; None for everything else."""
    import numpy

    if values.dtype.kind != "O":
        return values if values.ndim > 1 else None
    if not len(values) or not all(isinstance(row, (numpy.ndarray, list, tuple)) for row in values):
        return None
    rows = [numpy.asarray(row) for row in values]
    return numpy.stack(rows) if len({row.shape for row in rows}) == 1 and rows[0].dtype.kind in "biuf" else None


def _polars_series(polars: Any, column: Any, dtype: Any, nulls: bool) -> Any:
    series = polars.Series(column)
    if nulls:
        series = series.fill_nan(None)
    return series.cast(dtype) if column.ndim > 1 or dtype.is_float() else series


def _read(recording: Any, time: str | None = None) -> _Columns:
    columns = _Columns(time)
    library = _frame_library(recording)
    if library == "pandas":
        if type(recording.index).__name__ == "DatetimeIndex":
            columns.time = columns.time or str(recording.index.name or "timestamp")
            columns.add_of_pandas(str(recording.index.name or "timestamp"), recording.index)
        for name in recording.columns:
            columns.add_of_pandas(str(name), recording[name])
    elif library == "polars":
        for series in recording.get_columns():
            columns.add_of_polars(series.name, series)
    elif isinstance(recording, Mapping):
        for name, values in recording.items():
            columns.add(str(name), values)
    else:
        raise _errors.invalid_type(
            "resample_columns: recording",
            type(recording).__name__,
            "a dictionary of arrays, a pandas or a polars frame",
        )
    if columns.time is None and len(columns.dates) == 1 and not set(_TIME_NAMES) & set(columns.arrays):
        columns.time = columns.dates[0]
    return columns


def _objects(values: list) -> Any:
    import numpy

    array = numpy.empty(len(values), dtype=object)
    array[:] = values
    return array


def _write(recording: Any, columns: _Columns, arrays: dict[str, Any]) -> Any:
    """What came back, as the caller's kind of recording."""
    restored = {}
    for name, array in arrays.items():
        back = columns.restore.get(name)
        values = columns.taken(array) if back is None else None
        restored[name] = back(array) if back else columns.new(array) if values is None else values
    library = _frame_library(recording)
    if library == "pandas":
        pandas = sys.modules["pandas"]
        name = str(recording.index.name or "timestamp")
        index = None
        if type(recording.index).__name__ == "DatetimeIndex" and name in restored:
            index = pandas.DatetimeIndex(restored.pop(name), name=recording.index.name)
        return pandas.DataFrame(
            {name: pandas.Series(values, index=index) for name, values in restored.items()}, index=index
        )
    if library == "polars":
        return sys.modules["polars"].DataFrame(restored)
    return restored


def _options(mode: Any) -> list[str]:
    """`mode` as options of the tool."""
    if mode is None:
        return []
    if isinstance(mode, str):
        mode = [mode]
    specifications = [f"{name}={how}" for name, how in mode.items()] if isinstance(mode, Mapping) else list(mode)
    return [part for specification in specifications for part in ("--mode", specification)]


def _raise(text: str, code: int) -> None:
    """The tool's error as the exception that the library would raise."""
    found = re.search(r"tmaops: (E(\d{3})) (.*)", text)
    if not found:
        raise _errors.DeviceError(
            text.strip() or f"the tool ended with exit code {code}", code=1, number="E001", name="internal"
        )
    parts = dict(re.findall(r"^  (got|needed|mend):\s+(.*)$", text, re.MULTILINE))
    number = int(found[2])
    title, _, where = found[3].partition(": ")
    message = text[found.start() + len("tmaops: ") :].strip()
    raise _errors.class_of(number)(message, code=number, number=found[1], name=title, where=where, **parts)


def resample_columns(
    recording: Any,
    *,
    hz: float | None = None,
    times: Any = None,
    like: Any = None,
    mode: None | str | list[str] | dict[str, str] = None,
    columns: str | None = None,
    time: str | None = None,
    time_unit: str | None = None,
    times_unit: str | None = None,
    offsets: str | None = None,
    start: None | float | str = None,
    end: None | float | str = None,
    align: bool = False,
    snap: float | None = None,
    max_gap: float | None = None,
    outside: str | None = None,
    duplicates: str | None = None,
    sort: bool = False,
    strict: bool = False,
    report: bool = False,
) -> Any:
    """A recording of named columns at other times, every column by the rule for its name and type.

    The rules are those of ``tmaops resample`` (docs/resample_command.md): real numbers are linear, quaternions slerp,
    whole numbers, booleans and text keep the previous sample. The computation is in f64 with times in nanoseconds.

    Args:
        recording: a dictionary of arrays (NumPy, torch, JAX, CuPy, lists), a pandas or a polars frame. Arrays have one row
            for each timestamp and any further dimensions; others are passed on unchanged. The times are a pandas
            DatetimeIndex, else the array "timestamp", "timestamps", "time", "times", "t", "stamp" or "stamps", else the only
            column of datetimes.
        hz: targets at this rate, from the first timestamp to the last; or
        times: the targets: an array of times, or of datetimes; or
        like: the targets are the timestamps of this recording.
        mode: {"gripper": "previous", "state[3:7]": "slerp"}, or one mode for all real numbers.
        columns: only these, in this order, renamed: "x,y,z", "tx=p_x,*".
        time: name of the times. time_unit, times_unit: "s", "ms", "us" or "ns" of the recording's times and of `times`.
        offsets: name of the array of episode offsets; "offsets" and "episode_offsets" are found.
        start, end: only targets from and to this time, in seconds or ISO 8601. align: targets at multiples of the period.
        snap: a target this near to a sample, in seconds, takes that sample's values.
        max_gap: samples further apart than this, in seconds, have nothing between them.
        outside: targets outside the recording: "hold", "nan" (default), "extrapolate", "error", "drop".
        duplicates: samples at one time are an "error" (default), or the "last" wins.
        sort: sort rows by time. strict: a warning is an error.
        report: return the pair (recording, Report).

    Returns:
        A recording of the same kind. Columns of frames keep their types: nullable ones, categories, time zones, lists and all
        others; a missing value stays missing. With targets that can have no data it has a column "valid". What looks wrong
        is a Python warning; what was assumed is logged to the logger "tmaops" as information.

    Raises:
        tmaops.Error: the tool's errors, as E030 unsorted times, E032 equal times, E037 a mode that a column cannot have, E049
            no times (ValueErrors), E080 (a MemoryError).
    """
    import numpy

    source = _read(recording, time)
    with tempfile.TemporaryDirectory(
        prefix="tmaops-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    ) as folder:
        given, made = os.path.join(folder, "recording.npz"), os.path.join(folder, "resampled.npz")
        _save(given, source.arrays)
        command = [program(), "resample", given, "-o", made, "--json", "--quiet", *_options(mode)]
        if source.time in source.dates:
            time_unit = "ns"
        if times is not None:
            targets = _Columns()
            targets.add("times", times)
            if targets.dates:
                times_unit = "ns"
            path = os.path.join(folder, "times.npy")
            numpy.save(path, targets.arrays["times"], allow_pickle=False)
            command += ["--times", path]
        if like is not None:
            other = _read(like)
            path = os.path.join(folder, "like.npz")
            _save(path, other.arrays)
            command += ["--like", path]
            if other.time is not None:
                command += [
                    "--targets-array",
                    other.time,
                    *(["--like-unit", "ns"] if other.time in other.dates else []),
                ]
        named = {
            "--hz": hz,
            "--columns": columns,
            "--times-array": source.time,
            "--time-unit": time_unit,
            "--times-unit": times_unit,
            "--offsets-array": offsets,
            "--start": start,
            "--end": end,
            "--snap": snap,
            "--max-gap": max_gap,
            "--outside": outside,
            "--duplicates": duplicates,
        }
        command += [
            f"{option}={value!r}" if isinstance(value, float) else f"{option}={value}"
            for option, value in named.items()
            if value is not None
        ]
        command += [option for option, wanted in (("--align", align), ("--sort", sort), ("--strict", strict)) if wanted]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            _raise(done.stderr.replace(given, "recording"), done.returncode)
        with numpy.load(made, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    said = json.loads(done.stdout)
    for text in said["warnings"]:
        warnings.warn(f"tmaops.resample_columns: {text}", stacklevel=2)
    for text in said["notes"]:
        _log.info("resample_columns: %s", text)
    result = _write(recording, source, arrays)
    if not report:
        return result
    modes = [(column["name"], column["mode"]) for column in said["columns"]]
    return result, Report(modes, said["time"], said["quaternions"], said["warnings"], said["notes"], said)


def _save(path: str, arrays: dict[str, Any]) -> None:
    """numpy.savez, for arrays of any name: savez has a parameter `file`."""
    import zipfile

    import numpy

    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                numpy.lib.format.write_array(member, numpy.asanyarray(array), allow_pickle=False)
