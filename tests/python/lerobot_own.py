"""LeRobot's own code without torchvision and accelerate, which it imports for images and training."""

import contextlib
import importlib.machinery
import importlib.util
import sys
import types

import numpy as np


def stand_in(name, **attributes):
    module = types.ModuleType(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    module.__dict__.update(attributes)
    sys.modules[name] = module
    return module


def to_tensor(image):
    """An image of Pillow as torchvision gives it: (channels, height, width), between 0 and 1."""
    import torch

    return torch.from_numpy(np.array(image)).permute(2, 0, 1) / 255


@contextlib.contextmanager
def lerobot_imports():
    """Inside, lerobot can be imported where these two are missing; behind it they are missing again."""
    before = set(sys.modules)
    if importlib.util.find_spec("accelerate") is None:
        stand_in("accelerate", Accelerator=object)
    if importlib.util.find_spec("torchvision") is None:
        transforms = stand_in(
            "torchvision.transforms",
            ToTensor=lambda: to_tensor,
            functional=stand_in("torchvision.transforms.functional"),
        )
        stand_in("torchvision", transforms=transforms)
    yield
    for name in set(sys.modules) - before:
        if name.split(".")[0] in ("torchvision", "accelerate"):
            del sys.modules[name]
