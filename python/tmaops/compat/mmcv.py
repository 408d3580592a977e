"""mmcv's deformable attention on tmaops: `patch()`.

`MultiScaleDeformableAttnFunction.apply` and `multi_scale_deformable_attn_pytorch` of mmcv.ops are replaced, also where
other modules (as those of mmdetection) have imported them already. The functions `ms_deform_attn_forward` and
`ms_deform_attn_backward` of mmcv's compiled extension are replaced too, so that autograd functions of others that call them, as
those of BEVFormer, run on tmaops.
"""

from __future__ import annotations

import sys

from torch import Tensor

from tmaops.compat import extension
from tmaops.compat._attention import attention, folded, pairs
from tmaops.compat._replacing import Replacements, is_ours, warn_of_nothing

_replaced = Replacements()


class MultiScaleDeformableAttnFunction:
    """The autograd function of mmcv and of Deformable DETR: its `apply` alone."""

    @staticmethod
    def apply(
        value: Tensor, shapes: Tensor, starts: Tensor, locations: Tensor, weights: Tensor, im2col_step: int = 64
    ) -> Tensor:
        return attention(value, pairs(shapes), locations, weights, starts)


def multi_scale_deformable_attn_pytorch(
    value: Tensor,
    value_spatial_shapes: Tensor,
    sampling_locations: Tensor,
    attention_weights: Tensor,
    fifth: Tensor | None = None,
    im2col_step: int = 64,
) -> Tensor:
    """The function of mmcv for the CPU, and of RT-DETR's own repository; or with the arguments of `apply`, as mmcv's old layers call it."""
    if fifth is not None:
        shifted = (value, value_spatial_shapes, sampling_locations, attention_weights, fifth)
        return MultiScaleDeformableAttnFunction.apply(*shifted)
    return folded(value, value_spatial_shapes, sampling_locations, attention_weights)


def patch() -> list[str]:
    """Lets mmcv use tmaops. Raises ImportError where mmcv (with its operators) is not installed.

    Returns:
        What was replaced: "mmcv.ops.MultiScaleDeformableAttnFunction", "mmcv._ext.ms_deform_attn_forward", ... A warning says
        so where nothing of mmcv runs on tmaops.
    """
    from mmcv.ops import multi_scale_deform_attn as home

    names = []
    for new in (MultiScaleDeformableAttnFunction, multi_scale_deformable_attn_pytorch):
        old = getattr(home, new.__name__)
        names += _replaced.everywhere(new.__name__, new, lambda module, found: found is old)
    compiled = sys.modules.get("mmcv._ext")
    for name in ("ms_deform_attn_forward", "ms_deform_attn_backward"):
        if compiled is not None and not is_ours(getattr(compiled, name, None)):
            _replaced.set(compiled, name, getattr(extension, name))
            names.append(f"mmcv._ext.{name}")
    if not _replaced:
        warn_of_nothing("mmcv.ops has none of the functions that tmaops knows")
    return names


def unpatch() -> None:
    """Gives everything back that `patch` replaced."""
    _replaced.undo()


__all__ = ["MultiScaleDeformableAttnFunction", "multi_scale_deformable_attn_pytorch", "patch", "unpatch"]
