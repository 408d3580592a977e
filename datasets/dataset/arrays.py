"""Arrays whose first extent is the samples, as HDF5 and Zarr hold them: read and written a part at a time."""

import contextlib
import json
import math
from typing import Any

import numpy as np
import pyarrow as pa
from tmaops.dataset import clock
from tmaops.dataset.formats import RATES, rate_in
from tmaops.dataset.options import Options
from tmaops.dataset.rules import Known

SLAB_BYTES = 32 << 20  # of an array that are in memory at a time


def native(values: np.ndarray) -> np.ndarray:
    """As the library takes them."""
    return np.ascontiguousarray(values, values.dtype.newbyteorder("="))


def width_of(array: Any) -> int:
    """The numbers of a row."""
    return math.prod(array.shape[1:])


def is_row_of_numbers(array: Any) -> bool:
    """Whether an array may hold times: one value for each sample, (S) or (S, 1)."""
    return array.shape[1:] in ((), (1,)) and array.shape[:1] not in ((), (0,))


def row_bytes(array: Any) -> int:
    return max(1, array.dtype.itemsize * width_of(array))


def known_of(path: str, array: Any, rows: int, read: bool = True) -> Known:
    """What the first rows of an array say of it. read: its rows may be numbers that are computed."""
    real = read and array.dtype.kind == "f"
    values = None
    if real or array.dtype.kind in "iub" and len(array.shape) == 1:
        values = native(array[:rows])
    return Known(path, str(array.dtype), width_of(array) if real else None, values)


def slab_rows(array: Any, targets: int) -> int:
    """So many targets of an array are made at a time, which need SLAB_BYTES of it or of the result."""
    return max(1, SLAB_BYTES // row_bytes(array) * targets // max(array.shape[0], targets, 1))


def copy_rows(old: Any, new: Any, rows: np.ndarray, step: int = 1) -> None:
    """Rows of an array into a new one, a multiple of `step` at a time."""
    size = max(1, slab_rows(old, rows.size) // step) * step
    for begin in range(0, rows.size, size):
        own = rows[begin : begin + size]
        low = int(own.min())
        new[begin : begin + size] = old[low : int(own.max()) + 1][own - low]


def times_like(array: Any, targets: np.ndarray, unit: str | None) -> np.ndarray:
    """Targets (T, nanoseconds) as numbers of the type and unit of the input's times."""
    kind = pa.from_numpy_dtype(array.dtype.newbyteorder("="))
    return clock.times_like(targets, kind, unit).to_numpy(zero_copy_only=False).astype(array.dtype)


def new_rate(attributes: dict[str, Any], options: Options, old: float | None = None) -> dict[str, Any]:
    """Attributes that say the rate, with the new one. old: samples per second; what says another rate stays."""
    made = {}
    for name, value in attributes.items():
        rate = rate_in(value) if name in RATES else None
        if rate is not None and (old is None or abs(rate - old) <= 0.02 * old):
            made[name] = options.rate
        elif name == "env_args":
            with contextlib.suppress(ValueError, KeyError, TypeError):
                found = json.loads(value)
                if "control_freq" in found["env_kwargs"]:
                    found["env_kwargs"]["control_freq"] = options.rate
                    made[name] = json.dumps(found, indent=4 if "\n" in str(value) else None)
    return made
