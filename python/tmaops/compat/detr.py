"""Deformable attention of detectors' own repositories on tmaops: import the repository's model files, then `patch()`.

What is replaced has one of these names and the arguments that the repositories give it, in whatever module it is. A function of
another name of deformable attention is replaced, too, where it has the same arguments and gives the same numbers. One that gives
other numbers (by a border or an alignment of its own) stays, and a warning says so.

    multi_scale_deformable_attn_pytorch      ultralytics, detrex, GroundingDINO, Salience-DETR, Relation-DETR
    ms_deform_attn_core_pytorch              Deformable DETR, DINO, Mask2Former, MaskDINO, LW-DETR, rfdetr
    deformable_attention_core_func           RT-DETR
    deformable_attention_core_func_v2        RT-DETRv2, RT-DETRv4, D-FINE, DEIM, DEIMv2, lightly-train
    MSDeformAttnFunction                     Deformable DETR and those built on it: the function of the compiled extension
    MultiScaleDeformableAttnFunction         detrex, GroundingDINO

A compiled extension with ms_deform_attn_forward and ms_deform_attn_backward, whatever its name, gets our functions: mmcv._ext,
MultiScaleDeformableAttention, and the _C of detrex, GroundingDINO and AdelaiDet (TESTR, DPText-DETR, DeepSolo). That of these three stands
there where it was never built. The slot `ms_deform_attn` of libreyolo is taken.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import itertools
import re
import sys
import warnings
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from tmaops.compat import extension
from tmaops.compat._attention import Levels, attention, deformable_attention_core_func_v2, pairs, with_starts
from tmaops.compat._replacing import Replacements, is_ours, modules_beside

_PACKAGES = ("adet", "detrex", "groundingdino")  # which import a compiled _C; another package may hold them
_NOT_THEIRS = ("tmaops", "torch", "transformers", "libreyolo")
_replaced = Replacements()
_put: list[str] = []  # the modules that stand where none was built


class MultiScaleDeformableAttnFunction:
    """The autograd function of mmcv and of Deformable DETR: its `apply` alone."""

    @staticmethod
    @with_starts
    def apply(
        value: Tensor, shapes: Tensor, starts: Tensor | None, locations: Tensor, weights: Tensor, im2col_step: int = 64
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
    return deformable_attention_core_func_v2(value, value_spatial_shapes, sampling_locations, attention_weights)


def ms_deform_attn_core_pytorch(
    value: Tensor,
    value_spatial_shapes: Tensor,
    sampling_locations: Tensor,
    attention_weights: Tensor,
    value_spatial_shapes_hw: list[tuple[int, int]] | None = None,
) -> Tensor:
    """The function of Deformable DETR, value (N, S, M, D), and of LW-DETR and rfdetr, value (N, M, D, S)."""
    shapes = value_spatial_shapes if value_spatial_shapes_hw is None else value_spatial_shapes_hw
    return deformable_attention_core_func_v2(value, shapes, sampling_locations, attention_weights)


deformable_attention_core_func = multi_scale_deformable_attn_pytorch  # the function of RT-DETR's own repository
MSDeformAttnFunction = MultiScaleDeformableAttnFunction  # the autograd function of Deformable DETR


_FUNCTIONS: dict[str, Any] = {
    "multi_scale_deformable_attn_pytorch": multi_scale_deformable_attn_pytorch,
    "ms_deform_attn_core_pytorch": ms_deform_attn_core_pytorch,
    "deformable_attention_core_func": deformable_attention_core_func,
    "deformable_attention_core_func_v2": deformable_attention_core_func_v2,
    "MSDeformAttnFunction": MultiScaleDeformableAttnFunction,
    "MultiScaleDeformableAttnFunction": MultiScaleDeformableAttnFunction,
}


def _slot(
    value: Tensor, spatial_shapes: Levels, sampling_locations: Tensor, attention_weights: Tensor, **_: object
) -> Tensor:
    """An implementation for libreyolo's slot `ms_deform_attn`."""
    return attention(value, pairs(spatial_shapes), sampling_locations, attention_weights)


_COMPILED = ("ms_deform_attn_forward", "ms_deform_attn_backward")
NAMES = re.compile("deform.*att", re.IGNORECASE)  # of what may be like ours


def _parameters(function: Any) -> list[str]:
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []


@functools.cache
def _agrees(theirs: Any, ours: str) -> bool | None:
    """Whether a function gives our numbers, inside and outside of the levels; None where it cannot be tried."""
    levels, drawn, found = [(2, 3), (1, 2)], torch.Generator().manual_seed(1), None
    value, weights = (torch.rand(shape, generator=drawn) for shape in ((1, 8, 5, 4), (1, 6, 5, 2, 2)))
    locations = torch.rand(1, 6, 5, 2, 2, 2, generator=drawn) * 1.6 - 0.3
    first, flat, wanted = value.permute(0, 2, 3, 1), weights.flatten(3), attention(value, levels, locations, weights)
    values = (value, first.contiguous(), list(first.split([6, 2], -1)))
    steps = ((locations, weights), (locations, flat), (locations.flatten(3, 4), flat))
    points = [[2, 2]] if ours == "deformable_attention_core_func_v2" else []
    for layout, shapes, step in itertools.product(values, (torch.tensor(levels), levels), steps):
        try:
            with torch.no_grad():
                made = theirs(layout, shapes, *step, *points)
        except Exception:  # it is not called so
            continue
        found = (
            found or isinstance(made, Tensor) and made.shape == wanted.shape and torch.allclose(made, wanted, atol=1e-4)
        )
    return found


def _alike(thing: Any) -> str | None:
    """The name of our function that stands in for a function; None for one that stays."""
    name = str(getattr(thing, "__name__", ""))
    if not NAMES.search(name) or not callable(thing) or isinstance(thing, type) or is_ours(thing):
        return None
    theirs = _parameters(thing)
    for ours in [name] if name in _FUNCTIONS else _FUNCTIONS:
        parameters = _parameters(_FUNCTIONS[ours])[: len(theirs)]
        if len(theirs) >= 4 and theirs[4:] == parameters[4:]:
            if (agrees := _agrees(thing, ours)) or agrees is None and ours == name and theirs == parameters:
                return ours
    return None


def _functions_like_ours() -> list[str]:
    """Puts our functions in the place of those that are like them, and says which of a known name are not."""
    found: dict[str, str | None] = {}
    for module in modules_beside(*_NOT_THEIRS):
        for attribute, thing in list(vars(module).items()):
            if not NAMES.search(attribute) or is_ours(thing):
                continue
            known = attribute.lstrip("_")  # AdelaiDet's class is private
            ours = known if known in _FUNCTIONS and hasattr(thing, "apply") else _alike(thing)
            if ours is not None:
                _replaced.set(module, attribute, _FUNCTIONS[ours])
            if ours is not None or attribute in _FUNCTIONS:
                found[f"{module.__name__}.{attribute}"] = ours
    if kept := [name for name, ours in found.items() if ours is None]:
        warnings.warn(f"tmaops: with other arguments or other numbers, and kept: {', '.join(kept)}", stacklevel=3)
    return [name for name, ours in found.items() if ours is not None]


def _extensions() -> list[str]:
    """Gives compiled extensions our functions, and puts a module in the place of one that was not built."""
    for package, home in list(sys.modules.items()):
        if package.rpartition(".")[2] not in _PACKAGES or not hasattr(home, "__path__"):
            continue
        if (name := f"{package}._C") in sys.modules:
            continue
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name)
        else:
            _put.append(name)
            sys.modules[name] = ModuleType(name, extension.__doc__)
            vars(sys.modules[name]).update(dict.fromkeys(_COMPILED))
            _replaced.set(home, "_C", sys.modules[name])
    replaced = []
    for module in modules_beside(*_NOT_THEIRS):
        for function in _COMPILED if all(name in vars(module) for name in _COMPILED) else ():
            if not is_ours(getattr(module, function)):
                _replaced.set(module, function, getattr(extension, function))
                replaced.append(f"{module.__name__}.{function}")
    return replaced


def patch(model: torch.nn.Module | None = None) -> list[str]:
    """Lets detectors' repositories use tmaops: those modules that are imported already, and what they make from then on.

    Args:
        model: a model that was made before. Needed where layers hold the function themselves: RT-DETRv2, D-FINE, DEIM.

    Returns:
        What was replaced: "src.zoo.rtdetr.utils.deformable_attention_core_func", ... A warning says so where there was nothing.
    """
    names = _functions_like_ours() + _extensions()
    names += _replaced.in_layers(model, _FUNCTIONS, _alike)
    slots = sys.modules.get("libreyolo.kernels")
    if slots is not None:
        slots.unregister("ms_deform_attn", "tmaops")
        slots.register("ms_deform_attn", _slot, name="tmaops")
        names.append("libreyolo.kernels: ms_deform_attn")
    if not names and not _replaced:
        what = "no imported module has a function that it knows; import the repository's model first"
        warnings.warn(f"tmaops: patch() has replaced nothing: {what}", stacklevel=2)
    return names


def unpatch() -> None:
    """Gives everything back that `patch` replaced."""
    slots = sys.modules.get("libreyolo.kernels")
    if slots is not None:
        slots.unregister("ms_deform_attn", "tmaops")
    _replaced.undo()
    while _put:
        sys.modules.pop(_put.pop(), None)


__all__ = [*_FUNCTIONS, "patch", "unpatch"]
