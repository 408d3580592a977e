"""The extension module that Deformable DETR, DINO, Mask2Former and others build and import, on tmaops.

It takes tensors on the CPU and on CUDA, of any strides, types and batch; im2col_step is taken and not looked at.
"""

from __future__ import annotations

import tmaops
import torch
from torch import Tensor


def ms_deform_attn_forward(
    value: Tensor,
    spatial_shapes: Tensor,
    level_start_index: Tensor,
    sampling_loc: Tensor,
    attn_weight: Tensor,
    im2col_step: int,
) -> Tensor:
    """(N, Lq, M * D) of value (N, S, M, D), shapes (L, 2), starts (L), locations (N, Lq, M, L, P, 2), weights (N, Lq, M, L, P)."""
    with torch.no_grad():
        return tmaops.ms_deform_attn(
            value, spatial_shapes, sampling_loc, attn_weight, level_start_index=level_start_index
        )


def ms_deform_attn_backward(
    value: Tensor,
    spatial_shapes: Tensor,
    level_start_index: Tensor,
    sampling_loc: Tensor,
    attn_weight: Tensor,
    grad_output: Tensor,
    im2col_step: int,
) -> list[Tensor]:
    """Gradients of value, locations and weights for grad_output (N, Lq, M * D)."""
    with torch.no_grad():
        return list(
            tmaops.ms_deform_attn_backward(
                value,
                spatial_shapes,
                sampling_loc,
                attn_weight,
                grad_output,
                level_start_index=level_start_index,
                deterministic=torch.are_deterministic_algorithms_enabled(),
            )
        )
