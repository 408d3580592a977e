"""mmcv's deformable attention on tmaops: `patch()`.

`MultiScaleDeformableAttnFunction.apply` and `multi_scale_deformable_attn_pytorch` of mmcv.ops are replaced, also where
other modules (as those of mmdetection) have imported them already.
"""

from __future__ import annotations

import sys
from typing import Any

from torch import Tensor

from tmaops.compat._attention import attention, pairs

_replaced: list[tuple[Any, str, Any]] = []


class MultiScaleDeformableAttnFunction:
    """mmcv's autograd function: its `apply` alone."""

    @staticmethod
    def apply(
        value: Tensor,
        value_spatial_shapes: Tensor,
        value_level_start_index: Tensor,
        sampling_locations: Tensor,
        attention_weights: Tensor,
        im2col_step: int = 64,
    ) -> Tensor:
        return attention(
            value, pairs(value_spatial_shapes), sampling_locations, attention_weights, value_level_start_index
        )


def multi_scale_deformable_attn_pytorch(
    value: Tensor, value_spatial_shapes: Tensor, sampling_locations: Tensor, attention_weights: Tensor
) -> Tensor:
    """mmcv's function for the CPU."""
    return attention(value, pairs(value_spatial_shapes), sampling_locations, attention_weights)


def patch() -> None:
    """Lets mmcv use tmaops. Raises ImportError where mmcv (with its operators) is not installed."""
    from mmcv.ops import multi_scale_deform_attn as home

    for new in (MultiScaleDeformableAttnFunction, multi_scale_deformable_attn_pytorch):
        old = getattr(home, new.__name__)
        if old is new:
            continue
        for module in list(sys.modules.values()):
            if getattr(module, "__dict__", {}).get(new.__name__) is old:
                _replaced.append((module, new.__name__, old))
                setattr(module, new.__name__, new)


def unpatch() -> None:
    """Gives everything back that `patch` replaced."""
    while _replaced:
        setattr(*_replaced.pop())
