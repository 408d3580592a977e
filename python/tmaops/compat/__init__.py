"""Other libraries' deformable attention on tmaops, by one line.

    import tmaops.compat.transformers as compat; compat.patch()      # Deformable DETR, RT-DETR, D-FINE, Mask2Former, ...
    import tmaops.compat.mmcv as compat; compat.patch()              # mmdetection, BEVFormer and what else uses mmcv.ops
    import tmaops.compat.detr as compat; compat.patch()              # ultralytics, rfdetr, and detectors' own repositories
    from tmaops.compat import hub                                    # a layer for the `kernels` package, read from disk
    import MultiScaleDeformableAttention                             # the extension that Deformable DETR and others build

Each `patch()` returns what it replaced and has an `unpatch()`; `active()` says what is in use. im2col_step is taken and not
looked at: any batch works.
"""

from __future__ import annotations

import importlib.util
import pathlib
import sys
from types import ModuleType


def active() -> dict[str, str]:
    """Which implementation of deformable attention each imported module has.

    Returns:
        For each name, as "ultralytics.nn.modules.transformer.multi_scale_deformable_attn_pytorch", "tmaops", or where the
        implementation comes from: a module or the file of a compiled extension. "MultiScaleDeformableAttention" is always there
        when Python finds a module of this name, imported or not: an extension that was compiled before goes before tmaops' own.
    """
    from tmaops.compat import detr, transformers
    from tmaops.compat._replacing import is_ours, modules_with

    found = {}
    extensions = {"MultiScaleDeformableAttention", "ms_deform_attn_backward", "ms_deform_attn_forward"}
    for name in sorted({*detr.__all__, *transformers.__all__, *extensions} - {"patch", "unpatch"}):
        for module, thing in modules_with(name):
            if isinstance(thing, ModuleType) or module.__name__.partition(".")[0] == "tmaops":
                continue
            home = getattr(thing, "__module__", None) or getattr(module, "__file__", None) or module.__name__
            ours = is_ours(getattr(thing, "forward", None)) or is_ours(thing)
            found[f"{module.__name__}.{name}"] = "tmaops" if ours else home
    name = "MultiScaleDeformableAttention"
    findable = getattr(sys.modules.get(name, sys), "__spec__", None) is not None
    spec = importlib.util.find_spec(name) if findable else None
    if spec is not None and spec.origin is not None:
        ours = spec.origin.endswith(".py") and "tmaops" in pathlib.Path(spec.origin).read_text(encoding="utf-8")
        found[name] = "tmaops" if ours else spec.origin
    return found


__all__ = ["active"]
