"""The layers of this kernel repository."""

import torch

from tmaops.compat import transformers as compat


class MultiScaleDeformableAttention(torch.nn.Module):
    """`MultiScaleDeformableAttention` of transformers. It has no state, and takes any batch: im2col_step is not looked at."""

    can_torch_compile = True
    has_backward = True

    forward = compat.forward
