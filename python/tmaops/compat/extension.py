"""The compiled extensions of Deformable DETR, DINO, Mask2Former, detrex, GroundingDINO and mmcv, on tmaops.

Two functions, with or without the starts of levels, on the CPU and on CUDA, of any strides, types and batch; im2col_step is taken and not looked at. The backward
function returns the gradients, or fills those that it is given, as mmcv has it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import tmaops
from tmaops import torch as ops
from tmaops.compat._attention import with_starts


@with_starts
def ms_deform_attn_forward(
    value: Tensor,
    spatial_shapes: Tensor,
    level_start_index: Tensor | None,
    sampling_loc: Tensor,
    attn_weight: Tensor,
    im2col_step: int = 64,
) -> Tensor:
    """(N, Lq, M * D) of value (N, S, M, D), shapes (L, 2), starts (L), locations (N, Lq, M, L, P, 2), weights (N, Lq, M, L, P)."""
    with torch.no_grad():
        return ops.ms_deform_attn(value, spatial_shapes, sampling_loc, attn_weight, level_start_index=level_start_index)


@with_starts
def ms_deform_attn_backward(
    value: Tensor,
    spatial_shapes: Tensor,
    level_start_index: Tensor | None,
    sampling_loc: Tensor,
    attn_weight: Tensor,
    grad_output: Tensor,
    *filled: Tensor | int,
    im2col_step: int = 64,
) -> list[Tensor]:
    """Gradients of value, locations and weights for grad_output (N, Lq, M * D); three tensors in `filled` are written and returned."""
    outputs = [given for given in filled if isinstance(given, Tensor)]
    inputs, deterministic = (sampling_loc, attn_weight), torch.are_deterministic_algorithms_enabled()
    with torch.no_grad():
        if not outputs:  # an operator, which torch.compile takes
            starts = None if level_start_index is None else level_start_index.tolist()
            given = {"level_start_index": starts, "deterministic": deterministic}
            arguments = (grad_output, value, ops._flat_levels(spatial_shapes), *inputs, 7)  # 7: all three
            return list(ops._call("ms_deform_attn_backward", arguments, given))
        more: dict[str, Any] = {"level_start_index": level_start_index, "deterministic": deterministic}
        return list(tmaops.ms_deform_attn_backward(value, spatial_shapes, *inputs, grad_output, out=outputs, **more))  # type: ignore[arg-type]  # no None, where all are needed
