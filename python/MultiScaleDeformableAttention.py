"""The extension module that Deformable DETR, DINO, Mask2Former and others build and import, on tmaops."""

from tmaops.compat.extension import ms_deform_attn_backward, ms_deform_attn_forward

__all__ = ["ms_deform_attn_backward", "ms_deform_attn_forward"]
