"""The layer MultiScaleDeformableAttention for the `kernels` package, in its folder layout, for models that load kernels from a hub.

    from kernels import LocalLayerRepository, kernelize, Mode, use_kernel_mapping
    from tmaops.compat import hub

    mapping = {hub.LAYER: {"cuda": LocalLayerRepository(hub.FOLDER, layer_name=hub.LAYER)}}
    with use_kernel_mapping(mapping):
        model = kernelize(model, mode=Mode.TRAINING)

Models of transformers that name this layer are Deformable DETR, RT-DETR, Grounding DINO, LW-DETR, OmDet-Turbo and others. Mask2Former,
OneFormer, RT-DETRv2, D-FINE and DEIMv2 name none: `tmaops.compat.transformers.patch()` serves all of them.
"""

from __future__ import annotations

import pathlib

FOLDER = pathlib.Path(__file__).parent
LAYER = "MultiScaleDeformableAttention"

__all__ = ["FOLDER", "LAYER"]
