"""Other libraries' deformable attention on tmaops, by one line.

    import tmaops.compat.transformers as compat; compat.patch()      # Deformable DETR, RT-DETR, D-FINE, Mask2Former, ...
    import tmaops.compat.mmcv as compat; compat.patch()              # MultiScaleDeformableAttnFunction
    from tmaops.compat import hub                                    # a layer for the `kernels` package, read from disk
    import MultiScaleDeformableAttention                             # the extension that Deformable DETR and others build

Each `patch()` has an `unpatch()`. im2col_step is taken and not looked at: any batch works.
"""
