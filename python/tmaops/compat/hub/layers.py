"""The layers of this kernel repository."""

from typing import Any

import torch
from torch import Tensor

from tmaops.compat import transformers as compat


class MultiScaleDeformableAttention(torch.nn.Module):
    """`MultiScaleDeformableAttention` of transformers. It has no state, and takes any batch: im2col_step is not looked at."""

    can_torch_compile = True
    has_backward = True

    def forward(
        self,
        value: Tensor,
        value_spatial_shapes: Any,
        value_spatial_shapes_list: Any,
        level_start_index: Any,
        sampling_locations: Tensor,
        attention_weights: Tensor,
        im2col_step: int,
    ) -> Tensor:
        """(N, Lq, M * D) of value (N, S, M, D), shapes (L, 2), starts (L), locations (N, Lq, M, L, P, 2), weights (N, Lq, M, L, P)."""
        return compat.forward(
            self,
            value,
            value_spatial_shapes,
            value_spatial_shapes_list,
            level_start_index,
            sampling_locations,
            attention_weights,
            im2col_step,
        )
