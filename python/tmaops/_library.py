"""libtmaops.so: found, loaded, checked, and its C interface (include/tmaops/tmaops.h) as ctypes.

The environment variable TMAOPS_LIBRARY names another library than the one in the package.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import pathlib
import sys
from ctypes import (
    POINTER,
    Structure,
    c_char_p,
    c_double,
    c_float,
    c_int,
    c_int32,
    c_int64,
    c_size_t,
    c_uint8,
    c_uint16,
    c_uint64,
    c_void_p,
)
from typing import Any, NamedTuple

from tmaops._errors import Error, class_of, invalid_value
from tmaops._version import __version__

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13


class DType(Structure):
    _fields_ = [("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16)]


class Tensor(Structure):
    """tmaops_tensor, which is DLPack's DLTensor."""

    _fields_ = [
        ("data", c_void_p),
        ("device_type", c_int32),
        ("device_index", c_int32),
        ("ndim", c_int32),
        ("dtype", DType),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    ]


class MsDeformAttnGradients(Structure):
    _fields_ = [(name, POINTER(Tensor)) for name in ("value", "sampling_locations", "attention_weights")]


class Time(Structure):
    _fields_ = [("seconds", c_double), ("nanoseconds", c_int64)]


class UniformGrid(Structure):
    _fields_ = [("start", Time), ("period", Time), ("count", c_int64)]


class ChannelGroup(Structure):
    _fields_ = [("first", c_int64), ("count", c_int64), ("interpolation", c_int32)]


class RecordingColumn(Structure):
    _fields_ = [
        ("name", c_char_p),
        ("type", c_char_p),
        ("data", c_void_p),
        ("shape", POINTER(c_int64)),
        ("dimensions", c_int64),
        ("text_offsets", POINTER(c_int64)),
        ("channel_names", POINTER(c_char_p)),
        ("missing", c_int64),
        ("source", c_int64),
    ]


class ErrorParts(Structure):
    _fields_ = [("code", c_int)] + [
        (name, c_char_p) for name in ("number", "name", "where", "got", "needed", "mend", "message")
    ]


class Variant(Structure):
    _fields_ = [(name, c_char_p) for name in ("name", "description", "arch", "missing")] + [
        ("device_type", c_int32),
        ("version", c_int32),
    ]


class _OptionParts(Structure):
    _fields_ = [
        *((name, c_char_p) for name in ("name", "kind", "torch")),
        ("words", POINTER(c_char_p)),
        ("offset", c_int64),
        ("initial", c_double),
    ]


def _load() -> ctypes.CDLL:
    path = pathlib.Path(os.environ.get("TMAOPS_LIBRARY") or pathlib.Path(__file__).parent / "lib" / "libtmaops.so")
    if not path.exists():
        raise ImportError(
            f"tmaops: there is no {path}. The package is not installed: `pip install` a wheel of tmaops, or run Python outside "
            "the folder of its sources."
        )
    library = ctypes.CDLL(str(path))  # calls release the GIL
    library.tmaops_version.restype = c_char_p
    found = library.tmaops_version().decode()
    if found != __version__:
        raise ImportError(
            f"tmaops: the package is {__version__}, but {path} is {found}. They come from one wheel: remove both with "
            "`pip uninstall tmaops` and install again, or unset TMAOPS_LIBRARY."
        )
    return library


library = _load()


def declare(name: str, arguments: list[Any], result: Any = c_int) -> None:
    """Tells ctypes what a function of the library takes and gives."""
    function = getattr(library, f"tmaops_{name}")
    function.argtypes, function.restype = arguments, result


class Option(NamedTuple):
    """An option of an operator, as include/tmaops/options.h lists it."""

    name: str
    kind: str  # what it is in C, a key of _FIELDS
    torch: str  # the torch operators that take it: "none", "forward", "backward", "both"
    words: tuple[str, ...]  # of a word: what it may be, in the order of the numbers
    initial: float  # of a number: its default


_FIELDS = {
    "f32": c_float,
    "f64": c_double,
    "i32": c_int32,
    "flag": c_int32,
    "word": c_int32,
    "count": c_int64,
    "text": c_char_p,
    "tensor": POINTER(Tensor),
    "time": Time,
    "allocator": c_void_p,
    "i64_list": POINTER(c_int64),
    "i32_list": POINTER(c_int32),
    "group_list": POINTER(ChannelGroup),
    "text_list": POINTER(c_char_p),
    "column_list": POINTER(RecordingColumn),
}


def _options_of(operator: str) -> tuple[Option, ...]:
    declare("option_at", [c_char_p, c_int64], POINTER(_OptionParts))
    found: list[Option] = []
    while entry := library.tmaops_option_at(operator.encode(), len(found)):
        line = entry.contents
        words = itertools.takewhile(lambda word: word is not None, line.words or ())
        name, kind, torch = (text.decode() for text in (line.name, line.kind, line.torch))
        found.append(Option(name, kind, torch, tuple(sys.intern(word.decode()) for word in words), line.initial))
    return tuple(found)


def _struct_of(operator: str) -> type[Structure]:
    fields = [("size", c_size_t), *((option.name, _FIELDS[option.kind]) for option in OPTIONS[operator])]
    return type(f"tmaops_{operator}_options", (Structure,), {"_fields_": fields})


OPTIONS = {operator: _options_of(operator) for operator in ("gemm", "ms_deform_attn", "resample", "recording")}
STRUCTS = {operator: _struct_of(operator) for operator in OPTIONS}


def _declare() -> None:
    tensor, stream, plan = POINTER(Tensor), c_void_p, POINTER(c_void_p)
    grid, resampling = POINTER(UniformGrid), POINTER(STRUCTS["resample"])
    attention = [tensor, c_void_p, c_int64, tensor, tensor, tensor]
    operators: dict[str, list[Any]] = {
        "gemm": [tensor, tensor, tensor, POINTER(STRUCTS["gemm"])],
        "ms_deform_attn": [*attention, POINTER(STRUCTS["ms_deform_attn"])],
        "ms_deform_attn_backward": [*attention, POINTER(MsDeformAttnGradients), POINTER(STRUCTS["ms_deform_attn"])],
        "resample": [tensor, tensor, tensor, grid, tensor, resampling],
        "resample_backward": [tensor, tensor, grid, tensor, tensor, resampling],
    }
    for name, arguments in operators.items():
        declare(name, [*arguments, stream])
        declare(f"plan_{name}", [*arguments, plan])
    declare("resample_violations", [tensor, tensor, grid, tensor, resampling, stream])
    declare("last_error", [], POINTER(ErrorParts))
    declare("plan_run", [c_void_p, stream])
    declare("plan_rebind", [c_void_p, POINTER(c_void_p), c_int64])
    declare("plan_variant", [c_void_p], c_char_p)
    declare("plan_config", [c_void_p], c_char_p)
    declare("plan_destroy", [c_void_p], None)
    declare("revision", [], c_char_p)
    declare("operator_at", [c_int64], c_char_p)
    declare("variant_at", [c_char_p, c_int64], POINTER(Variant))
    declare("num_threads", [POINTER(c_int)])
    declare("set_num_threads", [c_int])


_declare()


def check(code: int) -> None:
    """Raises what the thread's last call says, when it failed."""
    if code != 0:
        raise error_of(code)


def error_of(code: int) -> Error:
    """What the thread's last call says, which failed with this code."""
    parts = library.tmaops_last_error().contents
    texts = {name: getattr(parts, name).decode("utf-8", "replace") for name, *_ in ErrorParts._fields_[1:]}
    message = texts.pop("message")
    return class_of(code)(message, code=code, **texts)


def choice(where: str, value: str, words: tuple[str, ...]) -> int:
    """The number of a word, as the C interface counts them."""
    if value not in words:
        raise invalid_value(where, repr(value), "one of " + ", ".join(words))
    return words.index(value)


def integers(where: str, values: object, kind: Any) -> ctypes.Array | None:
    """A C array of whole numbers from a sequence or an array, which `where` names in errors; None for None."""
    if values is None:
        return None
    try:
        numbers = values.tolist() if hasattr(values, "tolist") else list(values)  # type: ignore[call-overload]
        return (kind * len(numbers))(*numbers)
    except TypeError:
        raise invalid_value(where, _described(values), "whole numbers") from None


def _described(values: object) -> str:
    """The type of what was given, and of what is in it."""
    kinds = sorted({type(value).__name__ for value in values}) if isinstance(values, (list, tuple)) else []
    return type(values).__name__ + (f" of {' and '.join(kinds)}" if kinds else "")
