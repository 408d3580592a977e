"""The operators inside jax.jit, jax.grad and jax.vmap: a callback to the host, which JAX makes when the compiled program runs.

JAX copies the operands to the host and the result back. Every vmapped call is made by itself.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from tmaops._arrays import is_traced
from tmaops._calls import Given
from tmaops._errors import invalid_value

Result = tuple[tuple[int, ...], str]  # shape and dtype
_UNTRACED = ("out", "valid", "stream")  # no memory exists yet


def traced(*arrays: object) -> bool:
    return "jax" in sys.modules and any(map(is_traced, arrays))


def call(
    name: str,
    run: Callable[..., Any],
    given: Given,
    operands: tuple[str, ...],
    result: Callable[[Given], Result],
    gradients: Callable[[Any, Given], tuple[Any, ...]] | None = None,
) -> Any:
    """run(**given) as an operation of the program that JAX traces.

    Args:
        given: the arguments, of which JAX traces the `operands`. result: shape and dtype of run(**given).
        gradients: of the operands, from the gradient of the result and all arguments; None for one without.
    """
    import numpy

    jax = sys.modules["jax"]
    for option, value in given.items():
        if option not in operands and is_traced(value):
            raise invalid_value(f"{name}: {option}", "a tracer of JAX", "what is known before jax.jit compiles")
        if option in _UNTRACED and value is not None:
            raise invalid_value(f"{name}: {option}", type(value).__name__, "None inside jax.jit, jax.grad and jax.vmap")
    names = [what for what in operands if given[what] is not None]

    def named(parts: tuple[Any, ...]) -> Given:
        return {**given, **dict(zip(names, parts))}

    def called(function: Callable[..., Any], shaped: Any, *parts: Any) -> Any:
        ranks = [array.ndim for array in parts]
        return jax.pure_callback(_one_by_one(function, ranks), shaped, *parts, vmap_method="expand_dims")

    def forward(*parts: Any) -> Any:
        shape, dtype = result(named(parts))
        shaped = jax.ShapeDtypeStruct(shape, dtype)
        return called(lambda *parts: (run(**named(parts)),), (shaped,), *parts)[0]

    def backward(parts: Any, grad: Any) -> Any:
        if gradients is None:
            raise NotImplementedError(f"tmaops.{name} has no gradient in JAX; jax.lax.stop_gradient leaves it out")
        shaped = tuple(jax.ShapeDtypeStruct(array.shape, array.dtype) for array in parts)

        def all_gradients(grad: Any, *parts: Any) -> tuple[Any, ...]:
            found = gradients(grad, named(parts))
            return tuple(numpy.zeros_like(part) if made is None else made for part, made in zip(parts, found))

        return called(all_gradients, shaped, grad, *parts)

    operation = jax.custom_vjp(forward)
    operation.defvjp(lambda *parts: (forward(*parts), parts), backward)
    return operation(*(jax.numpy.asarray(given[what]) for what in names))


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
