"""tmaops.ms_deform_attn, its backward, and their plans."""

from __future__ import annotations

import ctypes
import functools
import operator
from collections.abc import Iterable, Sequence
from ctypes import c_int32, c_int64
from typing import Any, NamedTuple, get_args

from tmaops import _arrays as arrays
from tmaops import _jax
from tmaops._calls import Call, Plan, output
from tmaops._errors import invalid_value
from tmaops._gemm import choice
from tmaops._library import MsDeformAttnGradients, MsDeformAttnOptions, encoded, integers
from tmaops._types import Sampling

_SAMPLING = get_args(Sampling)


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
    def count(self) -> int:
        return len(self.flat) // 2 if self.shapes_there is None else self.shapes_there.shape[0]

    def arguments(self) -> tuple[Any, int]:
        return (c_int64 * len(self.flat))(*self.flat), len(self.flat) // 2


def _read_levels(name: str, levels: Any, level_start_index: Any, synchronize: bool, address: int | None) -> _Levels:
    if not synchronize and arrays.is_array(levels):
        shapes = arrays.read(f"{name}: levels", levels, address)
        if shapes.on_gpu:
            starts = (
                None
                if level_start_index is None
                else arrays.read(f"{name}: level_start_index", level_start_index, address)
            )
            return _Levels([], None, shapes, starts)
    return _Levels(flat_levels(name, levels), integers(f"{name}: level_start_index", level_start_index, c_int64))


def _options(
    name: str,
    levels: _Levels,
    points_per_level: Any,
    sampling: Sampling,
    dependent_launch: bool,
    variant: str | None,
    offset_scale: float = 0.5,
    **more: Any,
) -> MsDeformAttnOptions:
    points = integers(f"{name}: points_per_level", points_per_level, c_int32)
    for what, given in (("level_start_index", levels.starts), ("points_per_level", points)):
        if given is not None and len(given) != levels.count:
            raise invalid_value(f"{name}: {what}", f"{len(given)} numbers", f"{levels.count}, one for each level")
    return MsDeformAttnOptions(
        size=ctypes.sizeof(MsDeformAttnOptions),
        level_start_index=levels.starts,
        points_per_level=points,
        sampling=choice(name, "sampling", sampling, _SAMPLING),
        dependent_launch=dependent_launch,
        variant=encoded(variant),
        offset_scale=offset_scale,
        spatial_shapes=arrays.reference(levels.shapes_there),
        level_starts=arrays.reference(levels.starts_there),
        **more,
    )


def _call(
    value: Any,
    levels: Any,
    sampling_locations: Any,
    attention_weights: Any,
    level_start_index: Any,
    points_per_level: Any,
    sampling: Sampling,
    softmax: bool,
    reference_points: Any,
    offset_scale: float,
    padding_mask: Any,
    bordered_value: bool,
    out: Any,
    out_dtype: Any,
    synchronize: bool,
    dependent_launch: bool,
    variant: str | None,
    stream: Any,
) -> Call:
    address = arrays.stream_of(value, stream)
    values = arrays.read("ms_deform_attn: value", value, address)
    locations = arrays.read("ms_deform_attn: sampling_locations", sampling_locations, address)
    weights = arrays.read("ms_deform_attn: attention_weights", attention_weights, address)
    references = (
        None if reference_points is None else arrays.read("ms_deform_attn: reference_points", reference_points, address)
    )
    mask = None if padding_mask is None else arrays.read("ms_deform_attn: padding_mask", padding_mask, address)
    level_shapes = _read_levels("ms_deform_attn", levels, level_start_index, synchronize, address)
    shape: tuple[int, ...] = ()
    if len(values.shape) == 4 and len(locations.shape) > 1:
        shape = (values.shape[0], locations.shape[1], values.shape[2] * values.shape[3])
    dtype = values.dtype if out_dtype is None else arrays.dtype_name(out_dtype)
    result = output("ms_deform_attn: output", out, values, shape, dtype or "float32", stream)
    options = _options(
        "ms_deform_attn",
        level_shapes,
        points_per_level,
        sampling,
        dependent_launch,
        variant,
        offset_scale,
        softmax=softmax,
        reference_points=arrays.reference(references),
        padding_mask=arrays.reference(mask),
        bordered_value=bordered_value,
    )
    arguments = (
        arrays.reference(values),
        *level_shapes.arguments(),
        arrays.reference(locations),
        arrays.reference(weights),
        arrays.reference(result),
        ctypes.byref(options),
    )
    tensors = {
        "value": values,
        "sampling_locations": locations,
        "attention_weights": weights,
        "out": result,
        "reference_points": references,
        "padding_mask": mask,
    }
    return Call("ms_deform_attn", arguments, tensors, "value", {"out": out}, (level_shapes, options))


def ms_deform_attn(
    value: Any,
    levels: Sequence[tuple[int, int]] | Any,
    sampling_locations: Any,
    attention_weights: Any,
    *,
    level_start_index: Any = None,
    points_per_level: Sequence[int] | None = None,
    sampling: Sampling = "bilinear",
    softmax: bool = False,
    reference_points: Any = None,
    offset_scale: float = 0.5,
    padding_mask: Any = None,
    bordered_value: bool = False,
    out: Any = None,
    out_dtype: Any = None,
    synchronize: bool = True,
    dependent_launch: bool = False,
    variant: str | None = None,
    stream: Any = None,
) -> Any:
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
    operands = {
        "value": value,
        "sampling_locations": sampling_locations,
        "attention_weights": attention_weights,
        "reference_points": reference_points,
        "padding_mask": padding_mask,
    }
    if any(map(arrays.is_traced, operands.values())):
        options: dict[str, Any] = {
            "level_start_index": level_start_index,
            "points_per_level": points_per_level,
            "sampling": sampling,
        }
        fused = {
            "softmax": softmax,
            "offset_scale": offset_scale,
            "bordered_value": bordered_value,
            "out_dtype": out_dtype,
            "variant": variant,
        }
        return _jax.call(
            "ms_deform_attn",
            functools.partial(ms_deform_attn, levels=levels, **options, **fused),
            operands,
            functools.partial(_traced_result, out_dtype),
            {"levels": levels, "level_start_index": level_start_index, "out": out, "stream": stream},
            None
            if softmax or reference_points is not None or padding_mask is not None
            else functools.partial(_traced_gradients, levels=levels, **options),
        )
    return _call(
        value,
        levels,
        sampling_locations,
        attention_weights,
        level_start_index,
        points_per_level,
        sampling,
        softmax,
        reference_points,
        offset_scale,
        padding_mask,
        bordered_value,
        out,
        out_dtype,
        synchronize,
        dependent_launch,
        variant,
        stream,
    ).run(stream)


def _traced_result(out_dtype: Any, value: Any, sampling_locations: Any, **_: Any) -> tuple[tuple[int, ...], str]:
    if len(value.shape) != 4 or len(sampling_locations.shape) < 2:
        raise invalid_value("ms_deform_attn: value", f"{len(value.shape)} dimensions", "(N, S, M, D)")
    shape = (value.shape[0], sampling_locations.shape[1], value.shape[2] * value.shape[3])
    return shape, arrays.dtype_name(value.dtype if out_dtype is None else out_dtype)


def _traced_gradients(grad: Any, value: Any, sampling_locations: Any, attention_weights: Any, **options: Any) -> Any:
    return ms_deform_attn_backward(
        value=value,
        sampling_locations=sampling_locations,
        attention_weights=attention_weights,
        grad_output=grad,
        **options,
    )


def plan_ms_deform_attn(
    value: Any,
    levels: Sequence[tuple[int, int]] | Any,
    sampling_locations: Any,
    attention_weights: Any,
    *,
    level_start_index: Any = None,
    points_per_level: Sequence[int] | None = None,
    sampling: Sampling = "bilinear",
    softmax: bool = False,
    reference_points: Any = None,
    offset_scale: float = 0.5,
    padding_mask: Any = None,
    bordered_value: bool = False,
    out: Any = None,
    out_dtype: Any = None,
    synchronize: bool = True,
    dependent_launch: bool = False,
    variant: str | None = None,
) -> Plan:
    """A plan of the same call. Arguments and errors as for `ms_deform_attn`."""
    return Plan(
        _call(
            value,
            levels,
            sampling_locations,
            attention_weights,
            level_start_index,
            points_per_level,
            sampling,
            softmax,
            reference_points,
            offset_scale,
            padding_mask,
            bordered_value,
            out,
            out_dtype,
            synchronize,
            dependent_launch,
            variant,
            None,
        )
    )


def _backward_call(
    value: Any,
    levels: Any,
    sampling_locations: Any,
    attention_weights: Any,
    grad_output: Any,
    level_start_index: Any,
    points_per_level: Any,
    sampling: Sampling,
    needed: Sequence[bool],
    out: Sequence[Any] | None,
    deterministic: bool,
    synchronize: bool,
    dependent_launch: bool,
    variant: str | None,
    stream: Any,
) -> Call:
    name = "ms_deform_attn_backward"
    address = arrays.stream_of(value, stream)
    inputs = [
        arrays.read(f"{name}: {what}", array, address)
        for what, array in (
            ("value", value),
            ("sampling_locations", sampling_locations),
            ("attention_weights", attention_weights),
            ("grad_output", grad_output),
        )
    ]
    level_shapes = _read_levels(name, levels, level_start_index, synchronize, address)
    given = (None, None, None) if out is None else tuple(out)
    if len(given) != 3 or len(needed) != 3:
        raise invalid_value(f"{name}: needed and out", f"{len(needed)} and {len(given)} entries", "3 of each")
    gradients: list[arrays.Array | None] = []
    for what, source, wanted, array in zip(("value", "sampling_locations", "attention_weights"), inputs, needed, given):
        where = f"{name}: gradient of {what}"
        gradients.append(
            output(where, array, source, source.shape, source.dtype or "float32", stream) if wanted else None
        )
    written = MsDeformAttnGradients(*(arrays.reference(gradient) for gradient in gradients))
    options = _options(
        name, level_shapes, points_per_level, sampling, dependent_launch, variant, deterministic=deterministic
    )
    first, locations, weights, grad = (arrays.reference(array) for array in inputs)
    arguments = (
        first,
        *level_shapes.arguments(),
        locations,
        weights,
        grad,
        ctypes.byref(written),
        ctypes.byref(options),
    )
    names = ("grad_value", "grad_sampling_locations", "grad_attention_weights")
    tensors = dict(
        zip(("value", "sampling_locations", "attention_weights", "grad_output", *names), [*inputs, *gradients])
    )
    return Call(
        name, arguments, tensors, "value", dict(zip(names, given)), (written, level_shapes, options), single=False
    )


def ms_deform_attn_backward(
    value: Any,
    levels: Sequence[tuple[int, int]] | Any,
    sampling_locations: Any,
    attention_weights: Any,
    grad_output: Any,
    *,
    level_start_index: Any = None,
    points_per_level: Sequence[int] | None = None,
    sampling: Sampling = "bilinear",
    needed: Sequence[bool] = (True, True, True),
    out: Sequence[Any] | None = None,
    deterministic: bool = False,
    synchronize: bool = True,
    dependent_launch: bool = False,
    variant: str | None = None,
    stream: Any = None,
) -> tuple[Any, Any, Any]:
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
    return _backward_call(
        value,
        levels,
        sampling_locations,
        attention_weights,
        grad_output,
        level_start_index,
        points_per_level,
        sampling,
        needed,
        out,
        deterministic,
        synchronize,
        dependent_launch,
        variant,
        stream,
    ).run(stream)


def plan_ms_deform_attn_backward(
    value: Any,
    levels: Sequence[tuple[int, int]] | Any,
    sampling_locations: Any,
    attention_weights: Any,
    grad_output: Any,
    *,
    level_start_index: Any = None,
    points_per_level: Sequence[int] | None = None,
    sampling: Sampling = "bilinear",
    needed: Sequence[bool] = (True, True, True),
    out: Sequence[Any] | None = None,
    deterministic: bool = False,
    synchronize: bool = True,
    dependent_launch: bool = False,
    variant: str | None = None,
) -> Plan:
    """A plan of the same call. Arguments and errors as for `ms_deform_attn_backward`."""
    return Plan(
        _backward_call(
            value,
            levels,
            sampling_locations,
            attention_weights,
            grad_output,
            level_start_index,
            points_per_level,
            sampling,
            needed,
            out,
            deterministic,
            synchronize,
            dependent_launch,
            variant,
            None,
        )
    )
