"""The operator as models written for torch expect it: mixed types give the widest of them, values come in any layout."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

from tmaops import torch as ops
from tmaops._errors import invalid_value

Levels: TypeAlias = Tensor | Sequence[Sequence[int]]  # pairs (height, width)


def attention(
    value: Tensor, levels: Levels, locations: Tensor, weights: Tensor, starts: Tensor | None = None, **options: Any
) -> Tensor:
    """tmaops.torch.ms_deform_attn with the element type that torch's own functions would give.

    Under autocast it is that of the value: the Linear that follows takes it as it is, and would convert any other.
    """
    output = ops.ms_deform_attn(value, levels, locations, weights, level_start_index=starts, **options)
    if ops._autocast_dtype(value) is not None:
        return output
    types = (value.dtype, locations.dtype, weights.dtype)
    return output.to(functools.reduce(torch.promote_types, types))


def with_starts(function: Callable) -> Callable:
    """The function, which may be called without its third argument, the starts of levels, as TrackFormer's extension is."""

    @functools.wraps(function)
    def call(*given: Any, **named: Any) -> Any:
        if len(given) > 2 and isinstance(given[2], Tensor) and given[2].dim() > 1:
            given = (*given[:2], None, *given[2:])
        return function(*given, **named)

    return call


def pairs(shapes: Levels) -> list[Any]:
    """Level shapes on the host, from a tensor or a list."""
    return shapes.tolist() if isinstance(shapes, Tensor) else list(shapes)


def _joined(levels: Sequence[Tensor]) -> Tensor:
    """Levels (N, M, D, H * W) or (N, M, D, H, W) as one value (N, S, M, D)."""
    levels = [level.flatten(3) for level in levels]
    plain = not torch.compiler.is_compiling() and not ops._watched() and all(type(level) is Tensor for level in levels)
    if plain and _one_after_another(levels):
        return _InPlace.apply(*levels)
    return torch.cat(levels, -1).permute(0, 3, 1, 2)


def _one_after_another(levels: Sequence[Tensor]) -> bool:
    """Whether the levels are the parts of one tensor, in order, as `split` gives them."""
    first = levels[0]
    if first.device.type not in ("cpu", "cuda"):
        return False
    place, memory = first.storage_offset(), first.untyped_storage().data_ptr()
    for level in levels:
        if (level.shape[:3], level.stride(), level.dtype) != (first.shape[:3], first.stride(), first.dtype):
            return False
        if level.storage_offset() != place or level.untyped_storage().data_ptr() != memory:
            return False
        place += level.shape[3] * level.stride(3)
    return True


class _InPlace(torch.autograd.Function):
    """The value (N, S, M, D) that lies where its levels lie."""

    @staticmethod
    def forward(ctx: Any, *levels: Tensor) -> Tensor:
        first, ctx.pixels = levels[0], [level.shape[3] for level in levels]
        batch, heads, channels, _ = first.shape
        step = first.stride()
        return first.detach().as_strided(
            (batch, sum(ctx.pixels), heads, channels), (step[0], step[3], step[1], step[2]), first.storage_offset()
        )

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        return tuple(part.permute(0, 2, 3, 1) for part in grad.split(ctx.pixels, 1))


def pixels_first(value: Tensor | Sequence[Tensor], levels: Sequence[Sequence[int]], heads: int) -> Tensor:
    """A value as (N, S, M, D), from that or (N, M, D, S), or from levels of (N, M, D, H * W) or (N, M, D, H, W)."""
    if not isinstance(value, Tensor):
        return _joined(value)
    pixels = sum(height * width for height, width in levels)
    found = []  # not a comparison of truths, which symbols of a compiled graph do not take
    if value.shape[2] == heads:
        found.append(value)
    if value.shape[1] == heads:
        found.append(value.permute(0, 3, 1, 2))
    if len(found) > 1:  # pixels tell, which an exported graph may not know
        found = [one for one in found if one.shape[1] == pixels]
    if len(found) != 1:
        got = f"{tuple(value.shape)} beside {heads} heads and levels of {pixels} pixels"
        needed = "(N, S, M, D) or (N, M, D, S)" + (": both would be right" if found else "")
        raise invalid_value("ms_deform_attn: value", got, needed)
    return found[0]


def deformable_attention_core_func_v2(
    value: Tensor | Sequence[Tensor],
    value_spatial_shapes: Levels,
    sampling_locations: Tensor,
    attention_weights: Tensor,
    num_points_list: Sequence[int] | None = None,
    method: str = "default",
    value_shape: str = "default",
) -> Tensor:
    """The function of RT-DETRv2, value (N, S, M, D), and of D-FINE and DEIM, levels (N, M, D, H * W). The layout is seen from the value.

    Locations are (N, Lq, M, L, P, 2), or (N, Lq, M, L * P, 2) of levels and points in one.
    """
    levels = pairs(value_spatial_shapes)
    points = num_points_list if num_points_list is None else list(num_points_list)
    if points is None and sampling_locations.dim() == 5:
        points = [sampling_locations.shape[3] // len(levels)] * len(levels)
    value = pixels_first(value, levels, sampling_locations.shape[2])
    weights = attention_weights.reshape(sampling_locations.shape[:-1])
    given: tuple[Any, ...] = (value, levels, sampling_locations, weights)
    return attention(*given, points_per_level=points, sampling="nearest" if method == "discrete" else "bilinear")
