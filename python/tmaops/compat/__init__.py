"""Other libraries' deformable attention on tmaops, by one line.

    import tmaops.compat.transformers as compat; compat.patch()      # Deformable DETR, RT-DETR, D-FINE, Mask2Former, ...
    import tmaops.compat.mmcv as compat; compat.patch()              # MultiScaleDeformableAttnFunction
    import MultiScaleDeformableAttention                             # the extension that Deformable DETR and others build

Each has `unpatch()`. im2col_step is taken and not looked at: any batch works.
"""
