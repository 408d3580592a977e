"""tmaops.ms_deform_attn, its backward, and their plans."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from ctypes import byref, c_int32, c_int64
from typing import Any, NamedTuple

from tmaops import _arrays as arrays
from tmaops import _jax
from tmaops._calls import Call, Given, Options, output, plan_of
from tmaops._errors import invalid_value
from tmaops._library import MsDeformAttnGradients, integers
from tmaops._types import A, ArrayLike, B, C, DType, Sampling, Stream

_OPTIONS = Options("ms_deform_attn")
_OPERANDS = ("value", "sampling_locations", "attention_weights", "reference_points", "padding_mask")


def flat_levels(name: str, levels: Any) -> list[int]:
    """Heights and widths, one after the other."""
    where, needed = f"{name}: levels", "pairs (height, width) of whole numbers"
    if arrays.is_traced(levels):
        raise invalid_value(where, "a tracer of JAX", "what is known before jax.jit compiles")
    pairs = levels.tolist() if hasattr(levels, "tolist") else levels
    if not isinstance(pairs, Iterable):
        raise invalid_value(where, type(levels).__name__, needed)
    flat: list[int] = []
    for pair in pairs:
        try:
            height, width = pair
            flat += (operator.index(height), operator.index(width))
        except (TypeError, ValueError):
            raise invalid_value(where, repr(pair), needed) from None
    return flat


class _Levels(NamedTuple):
    """Shapes and starts of the levels: numbers on the host, or arrays that stay on the GPU."""

    flat: list[int]
    starts: Any
    shapes_there: arrays.Array | None = None
    starts_there: arrays.Array | None = None

    @property
    def total(self) -> int:
        return len(self.flat) // 2 if self.shapes_there is None else self.shapes_there.shape[0]

    def arguments(self) -> tuple[Any, int]:
        return (c_int64 * len(self.flat))(*self.flat), len(self.flat) // 2


def _read_levels(name: str, levels: Any, level_start_index: Any, synchronize: bool, address: int | None) -> _Levels:
    if not synchronize and arrays.is_array(levels):
        shapes = arrays.read(f"{name}: levels", levels, address)
        if shapes.on_gpu:
            starts, where = level_start_index, f"{name}: level_start_index"
            return _Levels([], None, shapes, None if starts is None else arrays.read(where, starts, address))
    return _Levels(flat_levels(name, levels), integers(f"{name}: level_start_index", level_start_index, c_int64))


def _options(name: str, given: Given, levels: _Levels, address: int | None) -> tuple[Any, dict[str, arrays.Array]]:
    options, tensors = _OPTIONS.of(name, given, address)
    points = integers(f"{name}: points_per_level", given["points_per_level"], c_int32)
    for what, numbers in (("level_start_index", levels.starts), ("points_per_level", points)):
        if numbers is not None:
            if len(numbers) != levels.total:
                raise invalid_value(f"{name}: {what}", f"{len(numbers)} numbers", f"{levels.total}, one for each level")
            setattr(options, what, numbers)
    if levels.shapes_there is not None:
        options.spatial_shapes = arrays.reference(levels.shapes_there)
        options.level_starts = arrays.reference(levels.starts_there)
    return options, tensors


def ms_deform_attn(
    value: A,
    levels: Sequence[Sequence[int]] | ArrayLike,
    sampling_locations: ArrayLike,
    attention_weights: ArrayLike,
    *,
    level_start_index: Sequence[int] | ArrayLike | None = None,
    points_per_level: Sequence[int] | ArrayLike | None = None,
    sampling: Sampling = "bilinear",
    softmax: bool = False,
    reference_points: ArrayLike | None = None,
    offset_scale: float = 0.5,
    padding_mask: ArrayLike | None = None,
    bordered_value: bool = False,
    out: A | None = None,
    out_dtype: DType = None,
    synchronize: bool = True,
    dependent_launch: bool = False,
    variant: str | None = None,
    stream: Stream = None,
) -> A:
    """Multi-scale deformable attention: each query and head adds up weighted samples of the feature levels.

    output[n, q, m, :] = sum over levels l and points p of attention_weights[n, q, m, l, p] *
                         sample(value[n, level l, m, :], sampling_locations[n, q, m, l, p, :])

    Args:
        value: (N, S, M, D): images, pixels of all levels, heads, channels; f16, bf16, f32 or f64.
        levels: L pairs (height, width) in pixels whose areas add up to S. A GPU array of them is copied to the host,
            for which the call waits, unless `synchronize` is false.
        sampling_locations: (N, Lq, M, L, P, 2), (x, y) from 0 to 1 between the outer edges of a level; any of the types.
        attention_weights: (N, Lq, M, L, P), any of the types.
        level_start_index: optional, L starts in S; else the levels lie one after the other.
        points_per_level: optional, L numbers of points. Locations are then (N, Lq, M, sum, 2), weights (N, Lq, M, sum).
        sampling: "bilinear" (zero outside), or "nearest" ("discrete" of RT-DETRv2).
        softmax: `attention_weights` are logits, whose softmax over a query's and head's points weighs.
        reference_points: optional, (N, Lq, L, 2) or (N, Lq, L, 4). `sampling_locations` are then offsets: in pixels of the
            level from points (x, y), or parts of the box (w, h) times `offset_scale`, divided by the level's points.
        offset_scale: factor of reference boxes, 0.5 but for models with a `decoder_offset_scale` of their own.
        padding_mask: optional, (N, S) u8 or bool; pixels where it is true count as 0.
        bordered_value: every level of `value` lies in a border of one pixel that means 0.
        out: (N, Lq, M * D), dtype of `value`, or f32 beside 16-bit values, to write; else a new array of the library of `value`.
        out_dtype: dtype of a new result, by default that of `value`.
        synchronize: False leaves `levels` and `level_start_index`, i64 arrays, on the GPU. Nothing waits for them, and only
            variants that take everything run. A level that does not lie in S then makes every output NaN.
        dependent_launch, variant, stream: as for `tmaops.gemm`.

    Returns:
        (N, Lq, M * D), dtype of `value` or `out_dtype`: `out` where it was given. On a GPU the call is enqueued and has not yet run.

    Raises:
        tmaops.Error: E010 wrong shape, E020 to E023 levels and points, E011 and E012 element types (TypeErrors), E014, E015,
            E018, E024, E025 (ValueErrors), E080 and E081 (MemoryErrors), E07x (RuntimeErrors).
    """
    given = dict(locals())  # a copy, since a debugger writes to locals()
    if _jax.traced(*map(given.get, _OPERANDS)):
        plain = not softmax and reference_points is None and padding_mask is None
        gradients = _traced_gradients if plain else None
        return _jax.call("ms_deform_attn", ms_deform_attn, given, _OPERANDS, _traced_result, gradients)
    return _prepare(given).run(stream)


def shape_of(value: Any, locations: Any) -> tuple[int, ...]:
    return (value.shape[0], locations.shape[1], value.shape[2] * value.shape[3])


def _prepare(given: Given) -> Call:
    name, out, out_dtype = "ms_deform_attn", given["out"], given["out_dtype"]
    address = arrays.stream_of(given["value"], given["stream"])
    inputs = {what: arrays.read(f"{name}: {what}", given[what], address) for what in _OPERANDS[:3]}
    value, locations, weights = inputs.values()
    levels = _read_levels(name, given["levels"], given["level_start_index"], given["synchronize"], address)
    shape = shape_of(value, locations) if len(value.shape) == 4 and len(locations.shape) > 1 else ()
    dtype = value.dtype if out_dtype is None else arrays.dtype_name(out_dtype)
    result = output(f"{name}: output", out, value, shape, dtype or "float32", given["stream"])
    options, tensors = _options(name, given, levels, address)
    arguments = (
        byref(value.tensor),
        *levels.arguments(),
        byref(locations.tensor),
        byref(weights.tensor),
        byref(result.tensor),
        byref(options),
    )
    return Call(name, arguments, {**inputs, "out": result, **tensors}, "value", {"out": out}, (levels, options))


def _traced_result(given: Given) -> tuple[tuple[int, ...], str]:
    value, dtype = given["value"], given["out_dtype"]
    if len(value.shape) != 4 or len(given["sampling_locations"].shape) < 2:
        raise invalid_value("ms_deform_attn: value", f"{len(value.shape)} dimensions", "(N, S, M, D)")
    return shape_of(value, given["sampling_locations"]), arrays.dtype_name(value.dtype if dtype is None else dtype)


def _traced_gradients(grad: Any, given: Given) -> Any:
    names = (*_OPERANDS[:3], "levels", "level_start_index", "points_per_level", "sampling")
    return ms_deform_attn_backward(grad_output=grad, **{what: given[what] for what in names})


def ms_deform_attn_backward(
    value: A,
    levels: Sequence[Sequence[int]] | ArrayLike,
    sampling_locations: B,
    attention_weights: C,
    grad_output: ArrayLike,
    *,
    level_start_index: Sequence[int] | ArrayLike | None = None,
    points_per_level: Sequence[int] | ArrayLike | None = None,
    sampling: Sampling = "bilinear",
    needed: Sequence[bool] = (True, True, True),
    out: Sequence[ArrayLike | None] | None = None,
    deterministic: bool = False,
    synchronize: bool = True,
    dependent_launch: bool = False,
    variant: str | None = None,
    stream: Stream = None,
) -> tuple[A | None, B | None, C | None]:
    """Gradients of `ms_deform_attn` to value, sampling_locations and attention_weights.

    Args:
        grad_output: (N, Lq, M * D), dtype of `value` or f32.
        needed: which of the three are computed.
        out: three arrays to write (not added to), or None for new ones: shapes of the inputs; dtype of the input or f32.
        deterministic: on a GPU, the same bits from run to run. On the host they always are.
        value, levels, sampling_locations, attention_weights, level_start_index, points_per_level, sampling, synchronize,
        dependent_launch, variant, stream: as for `ms_deform_attn`; gradients of the points of a level not in S are 0.

    Returns:
        The three gradients; None for one that was not needed. With "nearest" the gradient of the locations is 0.

    Raises:
        tmaops.Error: as `ms_deform_attn`.
    """
    return _prepare_backward(locals()).run(stream)


def _prepare_backward(given: Given) -> Call:
    name, needed = "ms_deform_attn_backward", given["needed"]
    address = arrays.stream_of(given["value"], given["stream"])
    sources = _OPERANDS[:3]
    inputs = {what: arrays.read(f"{name}: {what}", given[what], address) for what in (*sources, "grad_output")}
    levels = _read_levels(name, given["levels"], given["level_start_index"], given["synchronize"], address)
    written = (None, None, None) if given["out"] is None else tuple(given["out"])
    if len(written) != 3 or len(needed) != 3:
        raise invalid_value(f"{name}: needed and out", f"{len(needed)} and {len(written)} entries", "3 of each")
    gradients: dict[str, arrays.Array | None] = {}
    for what, wanted, array in zip(sources, needed, written):
        where, source = f"{name}: gradient of {what}", inputs[what]
        like = (source, source.shape, source.dtype or "float32", given["stream"])
        gradients[f"grad_{what}"] = output(where, array, *like) if wanted else None
    pointers = MsDeformAttnGradients(*map(arrays.reference, gradients.values()))
    options, _ = _options(name, given, levels, address)
    value, *others = (byref(array.tensor) for array in inputs.values())
    arguments = (value, *levels.arguments(), *others, byref(pointers), byref(options))
    keep = (pointers, levels, options)
    outputs = dict(zip(gradients, written))
    return Call(name, arguments, {**inputs, **gradients}, "value", outputs, keep, single=False)


plan_ms_deform_attn = plan_of(ms_deform_attn, _prepare)
plan_ms_deform_attn_backward = plan_of(ms_deform_attn_backward, _prepare_backward)
