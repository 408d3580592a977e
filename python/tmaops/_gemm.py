"""tmaops.gemm and its plan."""

from __future__ import annotations

import ctypes
import functools
from typing import Any, get_args

from tmaops import _arrays as arrays
from tmaops import _jax
from tmaops._calls import Call, Plan, output
from tmaops._errors import invalid_value
from tmaops._library import GemmOptions, encoded
from tmaops._types import Activation, BiasAxis

_ACTIVATIONS = get_args(Activation)
_AXES = get_args(BiasAxis)


def choice(operator: str, argument: str, value: str, known: tuple[str, ...]) -> int:
    """The number of a name, as the C interface counts them."""
    if value not in known:
        raise invalid_value(f"{operator}: {argument}", repr(value), "one of " + ", ".join(known))
    return known.index(value)


def _call(
    a: Any,
    b: Any,
    c: Any,
    bias: Any,
    alpha: float,
    beta: float | None,
    bias_axis: BiasAxis,
    activation: Activation,
    out: Any,
    out_dtype: Any,
    dependent_launch: bool,
    variant: str | None,
    tuning: str | None,
    stream: Any,
) -> Call:
    address = arrays.stream_of(a, stream)
    left = arrays.read("gemm: a", a, address)
    right = arrays.read("gemm: b", b, address)
    added = None if c is None else arrays.read("gemm: c", c, address)
    offset = None if bias is None else arrays.read("gemm: bias", bias, address)
    shape = tuple(left.shape[:-1]) + tuple(right.shape[-1:])
    if len(right.shape) == 3 and len(left.shape) == 2:
        shape = right.shape[:1] + shape
    dtype = left.dtype if out_dtype is None else arrays.dtype_name(out_dtype)
    result = output("gemm: d", out, left, shape, dtype or "float32", stream)
    options = GemmOptions(
        size=ctypes.sizeof(GemmOptions),
        alpha=alpha,
        beta=(0.0 if c is None else 1.0) if beta is None else beta,
        c=arrays.reference(added),
        bias=arrays.reference(offset),
        bias_axis=choice("gemm", "bias_axis", bias_axis, _AXES),
        activation=choice("gemm", "activation", activation, _ACTIVATIONS),
        dependent_launch=dependent_launch,
        variant=encoded(variant),
        tuning=encoded(tuning),
    )
    arguments = (arrays.reference(left), arrays.reference(right), arrays.reference(result), ctypes.byref(options))
    tensors = {"a": left, "b": right, "out": result, "c": added if options.beta != 0 else None, "bias": offset}
    return Call("gemm", arguments, tensors, "a", {"out": out}, options)


def gemm(
    a: Any,
    b: Any,
    *,
    c: Any = None,
    bias: Any = None,
    alpha: float = 1.0,
    beta: float | None = None,
    bias_axis: BiasAxis = "column",
    activation: Activation = "none",
    out: Any = None,
    out_dtype: Any = None,
    dependent_launch: bool = False,
    variant: str | None = None,
    tuning: str | None = None,
    stream: Any = None,
) -> Any:
    """D = activation(alpha * A B + beta * C + bias), accumulated in f32 and rounded once.

    Args:
        a: (M, K) or (batch, M, K), f16 or bf16, on the host f32 too. Any strides: ``a.T`` costs nothing.
        b: (K, N) or (batch, K, N), dtype of `a`. Two dimensions serve every batch of the other.
        c: optional, shape of the result, f16, bf16 or f32.
        bias: optional, (N), or (M) with ``bias_axis="row"``; f16, bf16 or f32.
        alpha, beta: factors. beta is 1 where `c` is given and it is not said otherwise.
        activation: "none", "relu", "gelu" (x/2 (1 + erf(x / sqrt 2))) or "silu", in f32.
        out: array to write, which must not overlap the inputs but `c`; else a new one of the library of `a`.
        out_dtype: f16, bf16 or f32 of a new result; by default that of `a`.
        dependent_launch: on a GPU, let the kernel start before the one in front of it has ended (it waits before it reads).
        variant: name of a variant ("portable"), or of one of its configurations ("wgmma_latency/64x32"); by default the best.
        tuning: on a GPU, a file of measured choices, or "off".
        stream: a CUDA stream (of torch, CuPy, or its address); by default the current one of the library of `a`.

    Returns:
        The result, (M, N) or (batch, M, N): `out` where it was given. On a GPU the call is enqueued and has not yet run.

    Raises:
        tmaops.Error: E010 wrong shape, E011 and E012 element types (these are TypeErrors), E014 strides, E015 overlap,
            E018 parameter, E024 and E025 variant (ValueErrors), E080 and E081 memory (MemoryErrors), E07x GPU (RuntimeErrors).
    """
    operands = {"a": a, "b": b, "c": c, "bias": bias}
    if any(map(arrays.is_traced, operands.values())):
        run = functools.partial(
            gemm,
            alpha=alpha,
            beta=beta,
            bias_axis=bias_axis,
            activation=activation,
            out_dtype=out_dtype,
            variant=variant,
            tuning=tuning,
        )
        result = functools.partial(_traced_result, out_dtype)
        return _jax.call("gemm", run, operands, result, {"out": out, "stream": stream})
    return _call(
        a, b, c, bias, alpha, beta, bias_axis, activation, out, out_dtype, dependent_launch, variant, tuning, stream
    ).run(stream)


def _traced_result(out_dtype: Any, a: Any, b: Any, **_: Any) -> tuple[tuple[int, ...], str]:
    shape = tuple(a.shape[:-1]) + tuple(b.shape[-1:])
    shape = tuple(b.shape[:1]) + shape if len(b.shape) == 3 and len(a.shape) == 2 else shape
    return shape, arrays.dtype_name(a.dtype if out_dtype is None else out_dtype)


def plan_gemm(
    a: Any,
    b: Any,
    *,
    c: Any = None,
    bias: Any = None,
    alpha: float = 1.0,
    beta: float | None = None,
    bias_axis: BiasAxis = "column",
    activation: Activation = "none",
    out: Any = None,
    out_dtype: Any = None,
    dependent_launch: bool = False,
    variant: str | None = None,
    tuning: str | None = None,
) -> Plan:
    """A plan of the same call: `run()` reads what then lies in these arrays. Arguments and errors as for `gemm`."""
    return Plan(
        _call(
            a, b, c, bias, alpha, beta, bias_axis, activation, out, out_dtype, dependent_launch, variant, tuning, None
        )
    )
