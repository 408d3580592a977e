"""Deformable attention of the models of transformers on tmaops: `patch()` before or after models are imported.

Three signatures are replaced, wherever a model file of transformers defines them:

    class MultiScaleDeformableAttention              Deformable DETR, RT-DETR, Grounding DINO, LW-DETR, OmDet-Turbo, ...
    function multi_scale_deformable_attention        Mask2Former, OneFormer
    function multi_scale_deformable_attention_v2     RT-DETRv2, D-FINE, DEIMv2: ragged points, "discrete"

So is the layer around that class where it is as Deformable DETR's: softmax and locations are then the operator's own.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import re
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from tmaops import torch as ops
from tmaops.compat._attention import Levels, attention, deformable_attention_core_func_v2, pairs
from tmaops.compat._replacing import Replacements

_FILES = re.compile(r"transformers\.models\.\w+\.modeling_\w+$")
_replaced = Replacements()


def forward(
    self: object,
    value: Tensor,
    value_spatial_shapes: Levels,
    value_spatial_shapes_list: Sequence[Sequence[int]] | None,
    level_start_index: Tensor | None,
    sampling_locations: Tensor,
    attention_weights: Tensor,
    im2col_step: int = 64,
) -> Tensor:
    """(N, Lq, M * D) of value (N, S, M, D), shapes (L, 2), starts (L), locations (N, Lq, M, L, P, 2), weights (N, Lq, M, L, P)."""
    shapes = value_spatial_shapes if value_spatial_shapes_list is None else value_spatial_shapes_list
    return attention(value, pairs(shapes), sampling_locations, attention_weights)


def _layer_forward(self: Any, hidden_states: Tensor, attention_mask: Tensor | None = None, **given: Any) -> tuple:
    """`forward` of `DeformableDetrMultiscaleDeformableAttention`. No gradient reaches the weights that are returned."""
    positions = given.get("position_embeddings")
    states = hidden_states if positions is None else hidden_states + positions
    states = states.to(ops._autocast_dtype(states) or states.dtype)  # once: both layers would keep a copy of their own
    made = [self.sampling_offsets(states), self.attention_weights(states)]
    mask = None if attention_mask is None else ~attention_mask
    shapes = pairs(given["spatial_shapes" if given.get("spatial_shapes_list") is None else "spatial_shapes_list"])
    places = (given["encoder_hidden_states"], shapes, given["reference_points"])
    output = ops._attended(self, attention, places, states, made, padding_mask=mask)
    weights = made[1].detach().unflatten(-1, (self.n_heads, -1)).softmax(-1)
    return output, weights.unflatten(-1, (self.n_levels, self.n_points))


_STATES = (
    "hidden_states attention_mask encoder_hidden_states encoder_attention_mask position_embeddings reference_points"
)
_ARGUMENTS = ("self", *_STATES.split(), "spatial_shapes", "spatial_shapes_list", "level_start_index")


def _is_like_deformable_detrs(layer: Any) -> bool:
    code: Any = getattr(getattr(layer, "forward", None), "__code__", None)
    return code is not None and code.co_varnames[:10] == _ARGUMENTS and {"attn", "n_points"} <= set(code.co_names)


def torch_compilable_check(condition: object, message: object, *more: object, **options: object) -> None:
    """transformers' check, in model files that run on tmaops, but for the one that the operator makes itself.

    Models compare the sum of the levels' pixels with the length of the value on the device: every layer waits for it, and a compiled
    graph ends there. The operator compares the same numbers on the host.
    """
    if not (isinstance(message, str) and message.startswith("Make sure to align the spatial shapes")):
        from transformers import utils

        original: Callable[..., None] = utils.torch_compilable_check
        original(condition, message, *more, **options)


# The functions of Mask2Former and OneFormer, and of RT-DETRv2, D-FINE and DEIMv2.
multi_scale_deformable_attention = multi_scale_deformable_attention_v2 = deformable_attention_core_func_v2
_FUNCTIONS = dict.fromkeys(
    ("multi_scale_deformable_attention", "multi_scale_deformable_attention_v2"), deformable_attention_core_func_v2
)


def _patch_module(module: ModuleType) -> bool:
    layer = getattr(module, "MultiScaleDeformableAttention", None)
    if layer is not None and hasattr(layer, "forward"):
        _replaced.set(layer, "forward", forward)
    found = layer is not None
    for around in filter(_is_like_deformable_detrs, [*vars(module).values()] if found else ()):
        _replaced.set(around, "forward", _layer_forward)
    for name, function in _FUNCTIONS.items():
        if hasattr(module, name):
            _replaced.set(module, name, function)
            found = True
    if found and hasattr(module, "torch_compilable_check"):
        _replaced.set(module, "torch_compilable_check", torch_compilable_check)
    return found


class _Finder(importlib.abc.MetaPathFinder):
    """Patches model files as they are imported."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if not _FILES.match(name):
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            _patch_module(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


_finder = _Finder()


def patch(model: torch.nn.Module | None = None) -> list[str]:
    """Lets the models of transformers use tmaops, those imported already and those imported later.

    Args:
        model: a model that was made before. Needed for D-FINE and DEIMv2 alone, whose layers hold the function themselves.

    Returns:
        The model files that are patched now; others follow when they are imported.
    """
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    patched = [
        name for name, module in list(sys.modules.items()) if _FILES.match(name) and module and _patch_module(module)
    ]
    _replaced.in_layers(model, _FUNCTIONS, lambda function: getattr(function, "__name__", None))
    return patched


def unpatch() -> None:
    """Gives everything back that `patch` replaced."""
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    _replaced.undo()


__all__ = ["multi_scale_deformable_attention", "multi_scale_deformable_attention_v2", "patch", "unpatch"]
