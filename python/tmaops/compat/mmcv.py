"""mmcv's deformable attention on tmaops: `patch()`.

What `tmaops.compat.detr.patch()` does, where mmcv with its operators must be: `MultiScaleDeformableAttnFunction.apply` and
`multi_scale_deformable_attn_pytorch` of mmcv.ops are replaced in all modules that have them, as those of mmdetection, and so are
the functions of mmcv's compiled extension, so that autograd functions of others that call them, as BEVFormer's, come along.
"""

from __future__ import annotations

import importlib

from tmaops.compat import detr
from tmaops.compat.detr import MultiScaleDeformableAttnFunction, multi_scale_deformable_attn_pytorch, unpatch


def patch() -> list[str]:
    """Lets mmcv use tmaops. Raises ImportError where mmcv (with its operators) is not installed.

    Returns:
        What was replaced: "mmcv.ops.MultiScaleDeformableAttnFunction", "mmcv._ext.ms_deform_attn_forward", ...
    """
    importlib.import_module("mmcv.ops.multi_scale_deform_attn")
    return detr.patch()


__all__ = ["MultiScaleDeformableAttnFunction", "multi_scale_deformable_attn_pytorch", "patch", "unpatch"]
