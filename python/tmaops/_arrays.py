"""Arrays of any library as tensors of the C interface, new arrays from the library of the caller, and its streams.

NumPy and torch are read by their attributes, which is quickest. Everything else is read through DLPack or
``__cuda_array_interface__``. Nothing here imports a library that the caller has not imported.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from ctypes import c_char_p, c_int64, c_void_p, pointer
from typing import Any, NamedTuple

from tmaops._errors import invalid_type, invalid_value
from tmaops._library import CPU, CUDA, CUDA_HOST, DType, Tensor

_CODES = {
    "float64": (2, 64),
    "float32": (2, 32),
    "float16": (2, 16),
    "bfloat16": (4, 16),
    "int64": (0, 64),
    "int32": (0, 32),
    "uint8": (1, 8),
    "bool": (6, 8),
}
_NAMES = {code: name for name, code in _CODES.items()}
_INTS = {rank: c_int64 * rank for rank in range(9)}
_KINDS = {2: "f", 0: "i", 1: "u", 6: "b"}
_TYPESTRS = {f"{_KINDS[code]}{bits // 8}": name for name, (code, bits) in _CODES.items() if code in _KINDS}


class Array(NamedTuple):
    """An array as the library sees it."""

    tensor: Tensor
    source: Any  # the caller's array
    dtype: str  # "float32"; "" for one that tmaops does not have
    owner: Any  # what keeps the memory alive
    shape: tuple[int, ...]

    @property
    def on_gpu(self) -> bool:
        return self.tensor.device_type not in (CPU, CUDA_HOST)


def module_of(array: Any) -> str:
    """Name of the library an array comes from: "numpy", "torch", "cupy", "jax" or "jaxlib", ..."""
    return _module_of_type(type(array))  # type: ignore[arg-type]  # for which a class with __hash__ of its own is none


@functools.cache
def _module_of_type(kind: type) -> str:
    return kind.__module__.partition(".")[0]


@functools.cache
def _numpy_type(dtype: Any) -> tuple[str, tuple[int, int] | None]:
    """Name and code of NumPy's dtype; no code for one that tmaops does not have. NumPy takes long to make the name."""
    kind = _CODES.get(dtype.name)
    return dtype.name, kind if dtype.isnative else None


def is_array(array: Any) -> bool:
    names = ("__cuda_array_interface__", "__array_interface__")
    return hasattr(array, "__dlpack__") or any(hasattr(array, name) for name in names)


def is_traced(array: Any) -> bool:
    """Whether JAX is tracing a program, in which the array has no memory."""
    jax = sys.modules.get("jax")
    return jax is not None and isinstance(array, jax.core.Tracer)


def lies_on_gpu(array: Any) -> bool:
    """Whether it is an array on a GPU, of any type."""
    device = getattr(array, "__dlpack_device__", None)
    if device is not None:
        return int(device()[0]) not in (CPU, CUDA_HOST)
    return hasattr(array, "__cuda_array_interface__")


def _make(data: int, device: tuple[int, int], shape: tuple[int, ...], strides: Any, code: tuple[int, int]) -> Tensor:
    filled, lists = _layout(device, shape, None if strides is None else tuple(strides), code)
    tensor = Tensor.from_buffer_copy(filled)
    tensor.data = data
    tensor.lists = lists  # stay as long as the tensor, which points to them
    return tensor


@functools.lru_cache(4096)
def _layout(
    device: tuple[int, int], shape: tuple[int, ...], strides: tuple[int, ...] | None, code: tuple[int, int]
) -> tuple[bytes, tuple[Any, Any]]:
    """A tensor without data, as bytes: ctypes takes longer to fill the fields than to copy them."""
    rank = len(shape)
    if rank > 8:
        raise invalid_value("an array", f"{rank} dimensions", "at most 8")
    ints = _INTS[rank]
    lists = (ints(*shape), None if strides is None else ints(*strides))
    tensor = Tensor(None, *device, rank, DType(*code, 1), lists[0])
    if strides is not None:
        tensor.strides = lists[1]
    return bytes(tensor), lists


def _from_numpy(where: str, array: Any) -> Array:
    dtype = array.dtype
    if type(array).__name__ == "MaskedArray":
        raise invalid_value(where, "a masked array", "one without a mask, as its filled() gives")
    name, kind = _numpy_type(dtype)
    if kind is None and dtype.kind == "M" and dtype.str.endswith("[ns]"):  # datetime64[ns] is i64 nanoseconds
        array = array.view("int64")
        name, kind = "int64", _CODES["int64"]
    if kind is None:
        raise invalid_type(
            where, f"a NumPy array of {dtype}", "f64, f32, f16, bf16 (ml_dtypes), i64, i32, u8 or bool, native"
        )
    size = dtype.itemsize
    if array.flags.c_contiguous:
        strides = None
    elif any(stride % size for stride in array.strides):
        array = array.copy()
        strides = None
    else:
        strides = [stride // size for stride in array.strides]
    return Array(_make(_data_of(array), (CPU, 0), array.shape, strides, kind), array, name, array, array.shape)


def _data_of(array: Any) -> int:
    """array.ctypes.data in a sixth of its time: NumPy's C interface promises that the address follows the head of an object."""
    if sys.implementation.name != "cpython":
        return int(array.ctypes.data)
    return c_void_p.from_address(id(array) + object.__basicsize__).value or 0


def _from_torch(where: str, tensor: Any) -> Array:
    torch = sys.modules["torch"]
    if tensor.requires_grad and torch.is_grad_enabled():
        raise invalid_value(
            where, "a torch tensor that requires gradients", "tmaops.torch, which has them, or tensor.detach()"
        )
    if tensor.layout is not torch.strided or tensor.is_conj() or tensor.is_neg():
        raise invalid_value(
            where, "a torch tensor that is sparse or lazily conjugated", "a dense one, with its values in memory"
        )
    name = str(tensor.dtype).partition(".")[2]
    kind = _CODES.get(name)
    if kind is None:
        raise invalid_type(where, f"a torch tensor of {tensor.dtype}", "f64, f32, f16, bf16, i64, i32, u8 or bool")
    device = tensor.device
    if device.type not in ("cpu", "cuda"):
        raise invalid_value(where, f"a torch tensor on {device}", "one on cpu or cuda")
    place = (CPU, 0) if device.type == "cpu" else (CUDA, device.index or 0)
    shape = tuple(tensor.shape)
    return Array(_make(tensor.data_ptr(), place, shape, tensor.stride(), kind), tensor, name, tensor, shape)


def _from_interface(where: str, array: Any, described: dict) -> Array:
    name = _TYPESTRS.get(described["typestr"][1:])
    if name is None or described["typestr"][0] == ">":
        raise invalid_type(where, f"an array of {described['typestr']}", "f64, f32, f16, i64, i32, u8 or bool")
    kind = _CODES[name]
    strides = described.get("strides")
    if strides is not None:
        strides = [stride * 8 // kind[1] for stride in strides]
    index = getattr(getattr(array, "device", None), "id", 0)
    shape = tuple(described["shape"])
    return Array(_make(described["data"][0] or 0, (CUDA, index), shape, strides, kind), array, name, array, shape)


_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, c_char_p]


def _from_dlpack(where: str, array: Any, stream: int | None) -> Array:
    device = array.__dlpack_device__()[0] if hasattr(array, "__dlpack_device__") else CPU
    # In DLPack 1 is the legacy default stream, which CUDA calls 0.
    capsule = array.__dlpack__(stream=stream or 1) if int(device) == CUDA else array.__dlpack__()
    # The capsule, which nobody takes over, gives the memory back when it goes.
    tensor = Tensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    name = _NAMES.get((tensor.dtype.code, tensor.dtype.bits), "")
    return Array(tensor, array, name, capsule, tuple(tensor.shape[: tensor.ndim]))


def read(where: str, array: Any, stream: int | None = None) -> Array:
    """The array as a tensor; `where` names it in errors: "gemm: a"."""
    module = module_of(array)
    if module == "numpy" and hasattr(type(array), "ctypes"):
        return _from_numpy(where, array)
    if module == "torch" or "torch" in sys.modules and isinstance(array, sys.modules["torch"].Tensor):
        return _from_torch(where, array)
    if is_traced(array):
        raise invalid_value(where, "a tracer of JAX", "an array: jax.jit, jax.grad and jax.vmap take the plain calls")
    if hasattr(array, "__dlpack__"):
        return _from_dlpack(where, array, stream)
    if hasattr(array, "__cuda_array_interface__"):
        return _from_interface(where, array, array.__cuda_array_interface__)
    if hasattr(array, "__array_interface__"):
        numpy = sys.modules["numpy"]
        return _from_numpy(where, numpy.asarray(array))
    raise invalid_type(where, type(array).__name__, "an array: of NumPy, torch, CuPy, JAX, or one with __dlpack__")


def writable(where: str, array: Any, stream: int | None = None) -> Array:
    """An output that the caller gives."""
    if module_of(array) in ("jax", "jaxlib"):
        raise invalid_value(where, "a JAX array", "an array that may be written to; leave it out for a new JAX array")
    if module_of(array) == "numpy" and hasattr(array, "flags"):
        if not array.flags.writeable:
            raise invalid_value(where, "a read-only array", "one that may be written to")
        size = array.dtype.itemsize
        if any(stride % size for stride in array.strides):
            raise invalid_value(where, f"strides of {array.strides} bytes", "whole elements")
    return read(where, array, stream)


def new(like: Array, shape: tuple[int, ...], dtype: str) -> Any:
    """An array of the library of `like`, on its device, with nothing in it yet."""
    array = like.source
    module = module_of(array)
    if module == "torch":
        torch = sys.modules["torch"]
        return torch.empty(shape, dtype=getattr(torch, dtype), device=array.device)
    if module == "cupy":
        cupy = sys.modules["cupy"]
        with array.device:
            return cupy.empty(shape, dtype=_numpy_dtype(dtype))
    if module in ("jax", "jaxlib") and like.on_gpu:
        return sys.modules["jax"].numpy.empty(shape, dtype=_numpy_dtype(dtype), device=array.device).block_until_ready()
    if module in ("numpy", "jax", "jaxlib") or not hasattr(array, "__array_namespace__"):
        if like.on_gpu:
            raise invalid_value("out", f"nothing, and {module} cannot allocate", "out=, an array on the inputs' device")
        import numpy

        return numpy.empty(shape, dtype=_numpy_dtype(dtype))
    namespace = array.__array_namespace__()
    return namespace.empty(shape, dtype=getattr(namespace, dtype), device=array.device)


def handed_back(like: Array, array: Any, stream: int | None) -> Any:
    """A new output, written on `stream`, as the caller's library has arrays. JAX's never change and wait for no stream of others,
    so they are copies of what has been written."""
    if module_of(like.source) not in ("jax", "jaxlib"):
        return array
    numpy = sys.modules["jax"].numpy
    if not like.on_gpu:
        return numpy.asarray(array)
    code = ctypes.CDLL("libcuda.so.1").cuStreamSynchronize(c_void_p(stream))
    if code:
        raise RuntimeError(f"tmaops: waiting for the GPU failed with error {code} of cuStreamSynchronize")
    return numpy.array(array, copy=True).block_until_ready()


def _numpy_dtype(name: str) -> Any:
    if name == "bfloat16":
        import ml_dtypes

        return ml_dtypes.bfloat16
    return name


def dtype_name(dtype: Any) -> str:
    """ "float32" for a dtype of any library or its name; also for "f32", "bf16" and "half"."""
    short = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "half": "float16"}
    named = getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype)
    name = (dtype if isinstance(dtype, str) else named).rpartition(".")[2]
    name = short.get(name, name)
    if name not in _CODES:
        raise invalid_type("a dtype", repr(dtype), "f64, f32, f16 or bf16, or a dtype of an array library")
    return name


def stream_of(array: Any, stream: Any) -> int | None:
    """Address of the stream of a call: the one given, else the current one of the array's library and device."""
    if stream is not None:
        known = getattr(stream, "cuda_stream", None) or getattr(stream, "ptr", None)
        return known or int(getattr(stream, "handle", stream) or 0)
    module = module_of(array)
    if module == "torch" and array.is_cuda:
        return sys.modules["torch"].cuda.current_stream(array.device).cuda_stream
    if module == "cupy":
        return sys.modules["cupy"].cuda.get_current_stream().ptr
    return None


def address(array: Array) -> int | None:
    """Where the first element lies; None for null."""
    return (array.tensor.data or 0) + array.tensor.byte_offset or None


def same_fields(array: Array, other: Array) -> bool:
    """Whether all but the memory is equal to the last field. Arrays of one layout may differ in fields that mean the same."""
    mine, others = array.tensor, other.tensor
    rank = mine.ndim
    if array.dtype != other.dtype or rank != others.ndim or mine.shape[:rank] != others.shape[:rank]:
        return False
    if mine.device_type != others.device_type or mine.device_index != others.device_index:
        return False
    if mine.strides and others.strides:
        return bool(mine.strides[:rank] == others.strides[:rank])
    return not mine.strides and not others.strides


def layout(array: Array) -> str:
    """Everything about an array but its memory: "float32 (4, 3), strides (3, 1), on cuda 0"."""
    shape, strides = array.shape, [1]
    if array.tensor.strides:
        strides = array.tensor.strides[: array.tensor.ndim]
    else:
        for extent in reversed(shape[1:]):
            strides.insert(0, strides[0] * extent)
    place = f"cuda {array.tensor.device_index}" if array.on_gpu else "the host"
    shown = ", ".join("-" if extent < 2 else str(stride) for extent, stride in zip(shape, strides))
    return f"{array.dtype} {shape}, strides ({shown}), on {place}"


def reference(array: Array | None) -> Any:
    """A pointer for the C interface; null for None."""
    return None if array is None else pointer(array.tensor)
