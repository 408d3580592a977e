"""Deformable attention of detectors' own repositories on tmaops: import the repository's model files, then `patch()`.

What is replaced has one of these names and the arguments that the repositories give it, in whatever module it is:

    multi_scale_deformable_attn_pytorch      ultralytics, detrex, GroundingDINO, Salience-DETR, Relation-DETR
    ms_deform_attn_core_pytorch              Deformable DETR, DINO, Mask2Former, MaskDINO, LW-DETR, rfdetr
    deformable_attention_core_func           RT-DETR
    deformable_attention_core_func_v2        RT-DETRv2, RT-DETRv4, D-FINE, DEIM, DEIMv2, lightly-train
    MSDeformAttnFunction                     Deformable DETR and those built on it: the function of the compiled extension
    MultiScaleDeformableAttnFunction         detrex, GroundingDINO

The compiled extensions detrex._C, groundingdino._C and MultiScaleDeformableAttention get our functions. The first two stand there
where they were never built.
The slot `ms_deform_attn` of libreyolo is taken.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from tmaops.compat import extension
from tmaops.compat._attention import Levels, attention, folded, pairs
from tmaops.compat._replacing import Replacements, is_ours, warn_of_nothing
from tmaops.compat.mmcv import MultiScaleDeformableAttnFunction, multi_scale_deformable_attn_pytorch

_EXTENSIONS = ("detrex._C", "groundingdino._C", "MultiScaleDeformableAttention")
_replaced = Replacements()


def ms_deform_attn_core_pytorch(
    value: Tensor,
    value_spatial_shapes: Tensor,
    sampling_locations: Tensor,
    attention_weights: Tensor,
    value_spatial_shapes_hw: list[tuple[int, int]] | None = None,
) -> Tensor:
    """The function of Deformable DETR, value (N, S, M, D), and of LW-DETR and rfdetr, value (N, M, D, S)."""
    shapes = value_spatial_shapes if value_spatial_shapes_hw is None else value_spatial_shapes_hw
    return folded(value, shapes, sampling_locations, attention_weights)


deformable_attention_core_func = multi_scale_deformable_attn_pytorch  # the function of RT-DETR's own repository


def deformable_attention_core_func_v2(
    value: Tensor | list[Tensor],
    value_spatial_shapes: Levels,
    sampling_locations: Tensor,
    attention_weights: Tensor,
    num_points_list: list[int],
    method: str = "default",
    value_shape: str = "default",
) -> Tensor:
    """The function of RT-DETRv2, value (N, S, M, D), and of D-FINE and DEIM, levels (N, M, D, H * W). The layout is seen from the value."""
    points = list(num_points_list)
    return folded(value, value_spatial_shapes, sampling_locations, attention_weights, points, method)


MSDeformAttnFunction = MultiScaleDeformableAttnFunction  # the autograd function of Deformable DETR


_FUNCTIONS: dict[str, Any] = {
    "multi_scale_deformable_attn_pytorch": multi_scale_deformable_attn_pytorch,
    "ms_deform_attn_core_pytorch": ms_deform_attn_core_pytorch,
    "deformable_attention_core_func": deformable_attention_core_func,
    "deformable_attention_core_func_v2": deformable_attention_core_func_v2,
}


def _slot(
    value: Tensor, spatial_shapes: Levels, sampling_locations: Tensor, attention_weights: Tensor, **_: object
) -> Tensor:
    """An implementation for libreyolo's slot `ms_deform_attn`."""
    return attention(value, pairs(spatial_shapes), sampling_locations, attention_weights)


def _takes(function: Any) -> bool:
    """Whether a function has the arguments of ours of that name."""
    try:
        theirs = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return False
    ours = list(inspect.signature(_FUNCTIONS[function.__name__]).parameters)
    return len(theirs) >= 4 and theirs == ours[: len(theirs)]


def _fits(module: ModuleType, function: Any) -> bool:
    return not module.__name__.startswith(("libreyolo.", "tmaops.")) and _takes(function)


def _has_apply(module: ModuleType, kind: Any) -> bool:
    return not module.__name__.startswith("tmaops.") and hasattr(kind, "apply")


def _put_extension(name: str) -> list[str]:
    """Gives a compiled extension our functions, or puts a module in its place where its package has none."""
    package = name.partition(".")[0]
    names = ("ms_deform_attn_forward", "ms_deform_attn_backward")
    if package not in sys.modules:
        return []
    compiled = sys.modules.get(name)
    if compiled is None and importlib.util.find_spec(name) is not None:
        compiled = importlib.import_module(name)
    if compiled is None:
        compiled = sys.modules[name] = ModuleType(name, extension.__doc__)
        _replaced.set(sys.modules[package], "_C", compiled)
    replaced = [function for function in names if not is_ours(getattr(compiled, function, None))]
    for function in replaced:
        _replaced.set(compiled, function, getattr(extension, function))
    return [f"{name}.{function}" for function in replaced]


def patch(model: torch.nn.Module | None = None) -> list[str]:
    """Lets detectors' repositories use tmaops: those modules that are imported already, and what they make from then on.

    Args:
        model: a model that was made before. Needed where layers hold the function themselves: RT-DETRv2, D-FINE, DEIM.

    Returns:
        What was replaced: "src.zoo.rtdetr.utils.deformable_attention_core_func", ... A warning says so where there was nothing.
    """
    names = []
    for name, function in _FUNCTIONS.items():
        names += _replaced.everywhere(name, function, _fits)
    for name in ("MSDeformAttnFunction", "MultiScaleDeformableAttnFunction"):
        names += _replaced.everywhere(name, MultiScaleDeformableAttnFunction, _has_apply)
    for name in _EXTENSIONS:
        names += _put_extension(name)
    names += _replaced.in_layers(model, _FUNCTIONS, _takes)
    slots = sys.modules.get("libreyolo.kernels")
    if slots is not None:
        slots.unregister("ms_deform_attn", "tmaops")
        slots.register("ms_deform_attn", _slot, name="tmaops")
        names.append("libreyolo.kernels: ms_deform_attn")
    if not names and not _replaced:
        warn_of_nothing("no imported module has a function that it knows; import the repository's model first")
    return names


def unpatch() -> None:
    """Gives everything back that `patch` replaced."""
    slots = sys.modules.get("libreyolo.kernels")
    if slots is not None:
        slots.unregister("ms_deform_attn", "tmaops")
    _replaced.undo()
    for name in _EXTENSIONS:
        if sys.modules.get(name) is not None and sys.modules[name].__doc__ == extension.__doc__:
            del sys.modules[name]


__all__ = [
    "MSDeformAttnFunction",
    "MultiScaleDeformableAttnFunction",
    "deformable_attention_core_func",
    "deformable_attention_core_func_v2",
    "ms_deform_attn_core_pytorch",
    "multi_scale_deformable_attn_pytorch",
    "patch",
    "unpatch",
]
