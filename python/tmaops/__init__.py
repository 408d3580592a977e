"""GEMM, multi-scale deformable attention and trajectory resampling, on the CPU and on Hopper GPUs.

The operators take arrays of NumPy, torch, CuPy and JAX, and anything with ``__dlpack__`` or ``__cuda_array_interface__``.
They run where the arrays lie, on the current stream of the arrays' library, and without the GIL.

    gemm                     activation(alpha A B + beta C + bias)
    ms_deform_attn           multi-scale deformable attention; ms_deform_attn_backward for its gradients
    resample                 trajectories, dictionaries of arrays and frames at other times; resample_backward, resample_violations
    resample_columns         a recording of named columns, by the rules of the tool
    plan_...                 the same calls, checked once and run many times
    operators, variants      what this library has
    num_threads              how many threads calls on the host use; set_num_threads

    tmaops.torch             operators with gradients for torch, and the module MSDeformAttn
    tmaops.data              steps of data pipelines: collate functions, LeRobot
    tmaops.compat            mmcv and transformers on these operators, by one line
    tmaops.cli               the command line tool

An output is `out=` or a new array of the caller's library. Every failure is a `tmaops.Error`, with `.code`, `.where`,
`.got`, `.needed` and `.mend`, and also a ValueError, TypeError, MemoryError or RuntimeError.
"""

from __future__ import annotations

import ctypes
from typing import NamedTuple

from tmaops import data
from tmaops._calls import Plan
from tmaops._columns import Report, resample_columns
from tmaops._errors import DeviceError, Error, InvalidType, InvalidValue, OutOfMemory
from tmaops._gemm import gemm, plan_gemm
from tmaops._library import check as _check
from tmaops._library import library as _c
from tmaops._ms_deform_attn import (
    ms_deform_attn,
    ms_deform_attn_backward,
    plan_ms_deform_attn,
    plan_ms_deform_attn_backward,
)
from tmaops._resample import plan_resample, plan_resample_backward, resample, resample_backward, resample_violations
from tmaops._version import __version__


class Variant(NamedTuple):
    """A variant of an operator, one of its implementations."""

    name: str
    description: str
    device: str  # "cpu" or "cuda"
    arch: str  # "any", "sm80", "sm90", "sm90a"
    missing: str  # why it is not in this library; empty: it is


def revision() -> str:
    """Git revision of the library, 12 digits; "-dirty" behind it when its sources differed from it."""
    return _c.tmaops_revision().decode()


def operators() -> list[str]:
    """Names of the operators, backward passes apart."""
    names: list[str] = []
    while (name := _c.tmaops_operator_at(len(names))) is not None:
        names.append(name.decode())
    return names


def variants(operator: str) -> list[Variant]:
    """Variants of an operator, best first, the plain reference last. Raises Error E018 or E024 for an unknown operator."""
    found: list[Variant] = []
    while entry := _c.tmaops_variant_at(operator.encode(), len(found)):
        line = entry.contents
        texts = (line.name, line.description, line.arch, line.missing)
        name, description, arch, missing = (text.decode() for text in texts)
        found.append(Variant(name, description, "cuda" if line.device_type == 2 else "cpu", arch, missing))
    if not found:
        _check(_c.tmaops_last_error().contents.code)
    return found


def num_threads() -> int:
    """How many threads calls on the host use: what was set, else TMAOPS_NUM_THREADS, else the processors at hand."""
    count = ctypes.c_int()
    _check(_c.tmaops_num_threads(ctypes.byref(count)))
    return count.value


def set_num_threads(count: int) -> None:
    """Overrides `num_threads` for this process; 0 goes back. Results do not depend on it."""
    _check(_c.tmaops_set_num_threads(count))


__all__ = [
    "DeviceError",
    "Error",
    "InvalidType",
    "InvalidValue",
    "OutOfMemory",
    "Plan",
    "Report",
    "Variant",
    "__version__",
    "data",
    "gemm",
    "ms_deform_attn",
    "ms_deform_attn_backward",
    "num_threads",
    "operators",
    "plan_gemm",
    "plan_ms_deform_attn",
    "plan_ms_deform_attn_backward",
    "plan_resample",
    "plan_resample_backward",
    "resample",
    "resample_backward",
    "resample_columns",
    "resample_violations",
    "revision",
    "set_num_threads",
    "variants",
]
