"""tmaops.gemm and its plan."""

from __future__ import annotations

from ctypes import byref
from typing import Any

from tmaops import _arrays as arrays
from tmaops import _jax
from tmaops._calls import Call, Given, Options, output, plan_of
from tmaops._types import A, Activation, ArrayLike, BiasAxis, DType, Stream

_OPTIONS = Options("gemm")


def gemm(
    a: A,
    b: ArrayLike,
    *,
    c: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    alpha: float = 1.0,
    beta: float | None = None,
    bias_axis: BiasAxis = "column",
    activation: Activation = "none",
    out: A | None = None,
    out_dtype: DType = None,
    dependent_launch: bool = False,
    variant: str | None = None,
    tuning: str | None = None,
    stream: Stream = None,
) -> A:
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
        variant: name of a variant ("portable"), or of one of its configurations ("wgmma_split_k/64x32"); by default the best.
        tuning: on a GPU, a file of measured choices, or "off".
        stream: a CUDA stream (of torch, CuPy, or its address); by default the current one of the library of `a`.

    Returns:
        The result, (M, N) or (batch, M, N): `out` where it was given. On a GPU the call is enqueued and has not yet run.

    Raises:
        tmaops.Error: E010 wrong shape, E011 and E012 element types (these are TypeErrors), E014 strides, E015 overlap,
            E018 parameter, E024 and E025 variant (ValueErrors), E080 and E081 memory (MemoryErrors), E07x GPU (RuntimeErrors).
    """
    given = dict(locals())  # a copy, since a debugger writes to locals()
    if _jax.traced(a, b, c, bias):
        return _jax.call("gemm", gemm, given, ("a", "b", "c", "bias"), _traced_result)
    return _prepare(given).run(stream)


def _prepare(given: Given) -> Call:
    a, out, out_dtype = given["a"], given["out"], given["out_dtype"]
    address = arrays.stream_of(a, given["stream"])
    left = arrays.read("gemm: a", a, address)
    right = arrays.read("gemm: b", given["b"], address)
    if given["beta"] is None:
        given["beta"] = 0.0 if given["c"] is None else 1.0
    options, tensors = _OPTIONS.of("gemm", given, address)
    dtype = left.dtype if out_dtype is None else arrays.dtype_name(out_dtype)
    result = output("gemm: d", out, left, shape_of(left, right), dtype or "float32", given["stream"])
    if options.beta == 0:
        tensors.pop("c", None)
    arguments = (byref(left.tensor), byref(right.tensor), byref(result.tensor), byref(options))
    return Call(
        "gemm", arguments, {"a": left, "b": right, "out": result, **tensors}, "a", {"out": out}, (options, tensors)
    )


def shape_of(a: Any, b: Any) -> tuple[int, ...]:
    shape = tuple(a.shape[:-1]) + tuple(b.shape[-1:])
    return tuple(b.shape[:1]) + shape if len(b.shape) == 3 and len(a.shape) == 2 else shape


def _traced_result(given: Given) -> tuple[tuple[int, ...], str]:
    dtype = given["out_dtype"]
    return shape_of(given["a"], given["b"]), arrays.dtype_name(given["a"].dtype if dtype is None else dtype)


plan_gemm = plan_of(gemm, _prepare)
