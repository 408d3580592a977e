"""What the arguments of the operators may be, for type checkers. A test holds the words against those of the library."""

from collections.abc import Callable, Mapping
from typing import Literal, Protocol, SupportsFloat, SupportsInt, TypeAlias, TypeVar

Sampling = Literal["bilinear", "nearest"]
Activation = Literal["none", "relu", "gelu", "silu"]
BiasAxis = Literal["column", "row"]
Interpolation = Literal[
    "linear", "previous", "next", "nearest", "cubic", "slerp", "mean", "sum", "min", "max", "any", "count", "lowpass"
]
Outside = Literal["hold", "nan", "extrapolate", "error"]
Duplicates = Literal["error", "last"]


class _DLPackArray(Protocol):
    @property
    def __dlpack__(self) -> Callable[..., object]: ...


class _CudaArray(Protocol):
    @property
    def __cuda_array_interface__(self) -> object: ...


class _HostArray(Protocol):
    @property
    def __array_interface__(self) -> object: ...


class _Frame(Protocol):
    @property
    def columns(self) -> object: ...


ArrayLike: TypeAlias = _DLPackArray | _CudaArray | _HostArray  # of NumPy, torch, CuPy, JAX, ...
Recording: TypeAlias = Mapping[str, object] | _Frame  # columns by name: a dictionary of arrays, a frame
A = TypeVar("A", bound=ArrayLike)  # the caller's kind of array, which a new result has too
B = TypeVar("B", bound=ArrayLike)
C = TypeVar("C", bound=ArrayLike)
R = TypeVar("R", bound=ArrayLike | Recording)
DType: TypeAlias = object  # "float32", "f32", or a dtype of an array library
Stream: TypeAlias = object  # a stream of torch or CuPy, or its address
Moment: TypeAlias = SupportsFloat | SupportsInt  # seconds, whole nanoseconds, or numpy.datetime64 and timedelta64
