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
from typing import Any

from tmaops.compat._replacing import is_ours, modules_beside


def _is_on_ours(thing: Any) -> bool:
    """Whether a function or a class is of tmaops, or a layer's forward names one that is."""
    forward: Any = getattr(thing, "forward", None)
    named = getattr(getattr(forward, "__code__", None), "co_names", ())
    return any(map(is_ours, (thing, forward, *(forward.__globals__.get(name) for name in named))))


def active() -> dict[str, str]:
    """Which implementation of deformable attention each imported module has.

    Returns:
        For each function and class by its name, as "ultralytics.nn.modules.transformer.multi_scale_deformable_attn_pytorch", "tmaops", or where the
        implementation comes from: a module or the file of a compiled extension. "MultiScaleDeformableAttention" is always there
        when Python finds a module of this name, imported or not: an extension that was compiled before goes before tmaops' own.
    """
    from tmaops.compat.detr import NAMES

    found: dict[str, str] = {}
    for module in modules_beside("tmaops"):
        for name, thing in list(vars(module).items()):  # which makes no module load what it loads on demand
            if NAMES.search(name) and callable(thing):
                home = getattr(thing, "__module__", None) or getattr(module, "__file__", None) or module.__name__
                found[f"{module.__name__}.{name}"] = "tmaops" if _is_on_ours(thing) else home
    name = "MultiScaleDeformableAttention"
    findable = getattr(sys.modules.get(name, sys), "__spec__", None) is not None
    spec = importlib.util.find_spec(name) if findable else None
    if spec is not None and spec.origin is not None:
        ours = spec.origin.endswith(".py") and "tmaops" in pathlib.Path(spec.origin).read_text(encoding="utf-8")
        found[name] = "tmaops" if ours else spec.origin
    return found


__all__ = ["active"]
