"""The compiled extensions of Deformable DETR, DINO, Mask2Former, detrex, GroundingDINO and mmcv, on tmaops.

Two functions, on the CPU and on CUDA, of any strides, types and batch; im2col_step is taken and not looked at. The backward
function returns the gradients, or fills those that it is given, as mmcv has it.
"""

from __future__ import annotations

import torch
from torch import Tensor

import tmaops
from tmaops import torch as ops


def ms_deform_attn_forward(
    value: Tensor,
    spatial_shapes: Tensor,
    level_start_index: Tensor,
    sampling_loc: Tensor,
    attn_weight: Tensor,
    im2col_step: int = 64,
) -> Tensor:
    """(N, Lq, M * D) of value (N, S, M, D), shapes (L, 2), starts (L), locations (N, Lq, M, L, P, 2), weights (N, Lq, M, L, P)."""
    with torch.no_grad():
        return ops.ms_deform_attn(value, spatial_shapes, sampling_loc, attn_weight, level_start_index=level_start_index)


def ms_deform_attn_backward(
    value: Tensor,
    spatial_shapes: Tensor,
    level_start_index: Tensor,
    sampling_loc: Tensor,
    attn_weight: Tensor,
    grad_output: Tensor,
    *filled: Tensor | int,
    im2col_step: int = 64,
) -> list[Tensor]:
    """Gradients of value, locations and weights for grad_output (N, Lq, M * D); three tensors in `filled` are written and returned."""
    with torch.no_grad():
        outputs = [given for given in filled if isinstance(given, Tensor)]
        gradients = tmaops.ms_deform_attn_backward(
            value,
            spatial_shapes,
            sampling_loc,
            attn_weight,
            grad_output,
            level_start_index=level_start_index,
            out=outputs or None,
            deterministic=torch.are_deterministic_algorithms_enabled(),
        )
        return list(gradients)
