"""The operator as models written for torch expect it: mixed types give the widest of them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tmaops import torch as ops


def attention(
    value: Tensor,
    levels: Any,
    sampling_locations: Tensor,
    attention_weights: Tensor,
    level_start_index: Any = None,
    points_per_level: Sequence[int] | None = None,
    sampling: str = "bilinear",
) -> Tensor:
    """tmaops.torch.ms_deform_attn with the element type that torch's own functions would give."""
    output = ops.ms_deform_attn(
        value,
        levels,
        sampling_locations,
        attention_weights,
        level_start_index=level_start_index,
        points_per_level=points_per_level,
        sampling=sampling,
    )
    types = (value.dtype, sampling_locations.dtype, attention_weights.dtype)
    return output.to(functools.reduce(torch.promote_types, types))


def pairs(shapes: Any) -> list[Any]:
    """Level shapes on the host, from a tensor or a list."""
    return shapes.tolist() if isinstance(shapes, Tensor) else list(shapes)
