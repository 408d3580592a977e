"""What the options of the operators may be, for type checkers; the numbers of the C interface are their places."""

from typing import Literal

Sampling = Literal["bilinear", "nearest"]
Activation = Literal["none", "relu", "gelu", "silu"]
BiasAxis = Literal["column", "row"]
Interpolation = Literal[
    "linear", "previous", "next", "nearest", "cubic", "slerp", "mean", "sum", "min", "max", "any", "count", "lowpass"
]
Outside = Literal["hold", "nan", "extrapolate", "error"]
Duplicates = Literal["error", "last"]

__all__ = ["Activation", "BiasAxis", "Duplicates", "Interpolation", "Outside", "Sampling"]
