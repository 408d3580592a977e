"""The operators inside jax.jit, jax.grad and jax.vmap: a callback to the host, which JAX makes when the compiled program runs.

JAX copies the operands to the host and the result back. Every vmapped call is made by itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tmaops._arrays import is_traced
from tmaops._errors import invalid_value

Result = tuple[tuple[int, ...], str]  # shape and dtype


def call(
    name: str,
    run: Callable[..., Any],
    arrays: dict[str, Any],
    result: Callable[..., Result],
    known: dict[str, Any],
    gradients: Callable[..., tuple[Any, ...]] | None = None,
) -> Any:
    """run(**arrays) as an operation of the program that JAX traces.

    Args:
        arrays: the operands by name, None for none. result: shape and dtype of run(**arrays).
        known: options that JAX must not trace; "out", "valid" and "stream" must be None, since no memory exists yet.
        gradients: of the operands, in their order, from the gradient of the result and the operands; None for one without.
    """
    import numpy

    jax = sys.modules["jax"]
    for option, given in known.items():
        if is_traced(given):
            raise invalid_value(f"{name}: {option}", "a tracer of JAX", "what is known before jax.jit compiles")
        if option in ("out", "valid", "stream") and given is not None:
            raise invalid_value(f"{name}: {option}", type(given).__name__, "None inside jax.jit, jax.grad and jax.vmap")
    names = [what for what, array in arrays.items() if array is not None]
    operands = [jax.numpy.asarray(arrays[what]) for what in names]

    def called(function: Callable[..., Any], shaped: Any, *given: Any) -> Any:
        ranks = [array.ndim for array in given]
        return jax.pure_callback(_one_by_one(function, ranks), shaped, *given, vmap_method="expand_dims")

    def forward(*given: Any) -> Any:
        shape, dtype = result(**dict(zip(names, given)))
        shaped = jax.ShapeDtypeStruct(shape, _dtype(dtype))
        return called(lambda *parts: (run(**dict(zip(names, parts))),), (shaped,), *given)[0]

    def backward(given: Any, grad: Any) -> Any:
        if gradients is None:
            raise NotImplementedError(f"tmaops.{name} has no gradient in JAX: call tmaops.{name}_backward, or stop it")
        shaped = tuple(jax.ShapeDtypeStruct(array.shape, array.dtype) for array in given)

        def all_gradients(grad: Any, *parts: Any) -> tuple[Any, ...]:
            found = gradients(grad, **dict(zip(names, parts)))
            return tuple(numpy.zeros_like(part) if made is None else made for part, made in zip(parts, found))

        return called(all_gradients, shaped, grad, *given)

    operation = jax.custom_vjp(forward)
    operation.defvjp(lambda *given: (forward(*given), given), backward)
    return operation(*operands)


def _dtype(name: str) -> Any:
    jax = sys.modules["jax"]
    return jax.numpy.bfloat16 if name == "bfloat16" else name


def _one_by_one(function: Callable[..., Any], ranks: list[int]) -> Callable[..., Any]:
    """A function of NumPy arrays of these ranks, with dimensions of vmap in front of each."""
    import numpy

    def host(*given: Any) -> tuple[Any, ...]:
        arrays = [numpy.asarray(array) for array in given]
        mapped = numpy.broadcast_shapes(*(array.shape[: array.ndim - rank] for array, rank in zip(arrays, ranks)))
        arrays = [
            numpy.broadcast_to(array, mapped + array.shape[array.ndim - rank :]) for array, rank in zip(arrays, ranks)
        ]
        calls = [function(*(array[index] for array in arrays)) for index in numpy.ndindex(*mapped)]
        return tuple(numpy.stack(parts).reshape(*mapped, *parts[0].shape) for parts in zip(*calls))

    return host
