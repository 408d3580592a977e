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
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from . import _errors
from .cli import program

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

    modes: List[Tuple[str, str]]
    time: Dict[str, Any]
    quaternions: List[Dict[str, str]]
    warnings: List[str]
    notes: List[str]
    json: Dict[str, Any] = field(repr=False)


def is_recording(value: Any) -> bool:
    """True for a dictionary of arrays, a pandas and a polars frame."""
    return isinstance(value, Mapping) or _frame_library(value) is not None


def _frame_library(value: Any) -> Optional[str]:
    module = type(value).__module__.partition(".")[0]
    return module if module in ("pandas", "polars") and type(value).__name__ == "DataFrame" else None


class _Columns:
    """Columns as NumPy arrays, and for each how the caller's kind of array is made of one again."""

    def __init__(self) -> None:
        self.arrays: Dict[str, Any] = {}
        self.restore: Dict[str, Callable[[Any], Any]] = {}
        self.dates: List[str] = []

    def add(self, name: str, values: Any) -> None:
        import numpy

        back: Callable[[Any], Any] = lambda array: array
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(values, torch.Tensor):
            dtype, device = values.dtype, values.device
            values = values.detach().cpu()
            values = values.float().numpy() if dtype is torch.bfloat16 else values.numpy()
            back = lambda array: torch.from_numpy(array).to(device, dtype if array.dtype.kind != "b" else torch.bool)
        elif not isinstance(values, numpy.ndarray):
            module = type(values).__module__.partition(".")[0]
            values = numpy.asarray(values.get() if module == "cupy" else values)
            if module in ("jax", "jaxlib"):
                back = sys.modules["jax"].numpy.asarray
        if values.dtype.kind == "O" and len(values) and isinstance(values[0], (numpy.ndarray, list, tuple)):
            values = numpy.stack([numpy.asarray(row) for row in values])
            back = lambda array: list(array)
        elif values.dtype.kind == "O":
            values = values.astype(str)
            back = lambda array: array.astype(object)
        elif values.dtype.kind == "M":
            dtype = values.dtype
            values = values.astype("datetime64[ns]").astype("int64")
            self.dates.append(name)
            back = lambda array: array.astype("datetime64[ns]").astype(dtype)
        elif values.dtype.name == "bfloat16":
            dtype = values.dtype
            values = values.astype("float32")
            back = lambda array: array.astype(dtype)
        self.arrays[name] = values
        self.restore[name] = back

    def add_of_pandas(self, name: str, values: Any) -> None:
        zone = getattr(values.dtype, "tz", None)
        self.add(name, values.to_numpy() if zone is None else values.to_numpy(dtype="datetime64[ns]"))
        if zone is not None:
            pandas, back, dtype = sys.modules["pandas"], self.restore[name], values.dtype
            self.restore[name] = lambda array: pandas.DatetimeIndex(back(array)).tz_localize("UTC").astype(dtype)


def _read(recording: Any) -> _Columns:
    columns = _Columns()
    library = _frame_library(recording)
    if library == "pandas":
        if type(recording.index).__name__ == "DatetimeIndex":
            columns.add_of_pandas(str(recording.index.name or "timestamp"), recording.index)
        for name in recording.columns:
            columns.add_of_pandas(str(name), recording[name])
    elif library == "polars":
        for series in recording.get_columns():
            text = str(series.dtype) in ("String", "Utf8", "Categorical")
            columns.add(series.name, _objects(series.to_list()) if text else series.to_numpy())
    elif isinstance(recording, Mapping):
        for name, values in recording.items():
            columns.add(str(name), values)
    else:
        raise _errors.invalid_type(
            "resample_columns: recording", type(recording).__name__, "a dictionary of arrays, a pandas or a polars frame"
        )
    return columns


def _objects(values: list) -> Any:
    import numpy

    array = numpy.empty(len(values), dtype=object)
    array[:] = values
    return array


def _write(recording: Any, columns: _Columns, arrays: Dict[str, Any]) -> Any:
    """What came back, as the caller's kind of recording."""
    restored = {name: columns.restore.get(name, lambda array: array)(array) for name, array in arrays.items()}
    library = _frame_library(recording)
    if library == "pandas":
        pandas = sys.modules["pandas"]
        name = str(recording.index.name or "timestamp")
        index = None
        if type(recording.index).__name__ == "DatetimeIndex" and name in restored:
            index = pandas.DatetimeIndex(restored.pop(name), name=recording.index.name)
        return pandas.DataFrame(restored, index=index)
    if library == "polars":
        return sys.modules["polars"].DataFrame({
            name: array.tolist() if getattr(array, "dtype", None) == object else array for name, array in restored.items()
        })
    return restored


def _options(mode: Any) -> List[str]:
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
        raise _errors.DeviceError(text.strip() or f"the tool ended with exit code {code}", code=1, number="E001", name="internal")
    parts = dict(re.findall(r"^  (got|needed|mend):\s+(.*)$", text, re.MULTILINE))
    number = int(found[2])
    title, _, where = found[3].partition(": ")
    message = text[found.start() + len("tmaops: "):].strip()
    raise _errors.class_of(number)(message, code=number, number=found[1], name=title, where=where, **parts)


def resample_columns(
    recording: Any, *, hz: Optional[float] = None, times: Any = None, like: Any = None,
    mode: Union[None, str, List[str], Dict[str, str]] = None, columns: Optional[str] = None, time: Optional[str] = None,
    time_unit: Optional[str] = None, times_unit: Optional[str] = None, offsets: Optional[str] = None,
    start: Union[None, float, str] = None, end: Union[None, float, str] = None, align: bool = False, snap: Optional[float] = None,
    max_gap: Optional[float] = None, outside: Optional[str] = None, duplicates: Optional[str] = None, sort: bool = False,
    strict: bool = False, report: bool = False,
) -> Any:  # fmt: skip
    """A recording of named columns at other times, every column by the rule for its name and type.

    The rules are those of ``tmaops resample`` (docs/resample_command.md): real numbers are linear, quaternions slerp,
    whole numbers, booleans and text keep the previous sample. The computation is in f64 with times in nanoseconds.

    Args:
        recording: a dictionary of arrays (NumPy, torch, JAX, CuPy, lists), a pandas or a polars frame. Arrays have one row
            for each timestamp and any further dimensions; others are passed on unchanged. The times are the array
            "timestamp", "timestamps", "time", "times", "t", "stamp" or "stamps", the only column of datetimes, or a pandas
            DatetimeIndex.
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
        A recording of the same kind. With targets that can have no data it has a column "valid". What looks wrong is a
        Python warning; what was assumed is logged to the logger "tmaops" as information.

    Raises:
        tmaops.Error: the tool's errors, as E030 unsorted times, E032 equal times, E037 a mode that a column cannot have, E049
            no times (ValueErrors), E080 (a MemoryError).
    """
    import numpy

    source = _read(recording)
    with tempfile.TemporaryDirectory(prefix="tmaops-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        given, made = os.path.join(folder, "recording.npz"), os.path.join(folder, "resampled.npz")
        _save(given, source.arrays)
        command = [program(), "resample", given, "-o", made, "--json", "--quiet", *_options(mode)]
        if time is None and len(source.dates) == 1:
            time = source.dates[0]
        if time is not None and time in source.dates:
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
            if len(other.dates) == 1:
                command += ["--targets-array", other.dates[0], "--like-unit", "ns"]
        named = {
            "--hz": hz, "--columns": columns, "--times-array": time, "--time-unit": time_unit, "--times-unit": times_unit,
            "--offsets-array": offsets, "--start": start, "--end": end, "--snap": snap, "--max-gap": max_gap,
            "--outside": outside, "--duplicates": duplicates,
        }  # fmt: skip
        command += [f"{option}={value!r}" if isinstance(value, float) else f"{option}={value}" for option, value in named.items() if value is not None]
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


def _save(path: str, arrays: Dict[str, Any]) -> None:
    """numpy.savez, for arrays of any name: savez has a parameter `file`."""
    import zipfile

    import numpy

    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                numpy.lib.format.write_array(member, numpy.asanyarray(array), allow_pickle=False)
