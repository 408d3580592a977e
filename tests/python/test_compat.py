"""Other libraries' deformable attention on tmaops, against their own code."""

import sys
import types

import pytest

torch = pytest.importorskip("torch")

from test_torch import LEVELS, by_grid_sample, inputs


def test_the_extension_module_has_forward_and_backward(device):
    import MultiScaleDeformableAttention as extension

    given = inputs(device)
    shapes, starts = torch.tensor(LEVELS, device=device), torch.tensor([0, 30], device=device)
    wanted = by_grid_sample(given[0], LEVELS, *given[1:])
    plain = [tensor.detach() for tensor in given]
    torch.testing.assert_close(extension.ms_deform_attn_forward(plain[0], shapes, starts, *plain[1:], 64), wanted)
    grad = torch.randn_like(wanted)
    got = extension.ms_deform_attn_backward(plain[0], shapes, starts, *plain[1:], grad, 64)
    for mine, theirs in zip(got, torch.autograd.grad(wanted, given, grad)):
        torch.testing.assert_close(mine, theirs)


@pytest.fixture
def mmcv(monkeypatch):
    """The names of mmcv that are patched, with torch's own functions behind them, and a module that imported one of them."""

    class MultiScaleDeformableAttnFunction:
        @staticmethod
        def apply(value, shapes, starts, locations, weights, step):
            return by_grid_sample(value, shapes.tolist(), locations, weights)

    def multi_scale_deformable_attn_pytorch(value, shapes, locations, weights):
        return by_grid_sample(value, shapes.tolist(), locations, weights)

    modules = {name: types.ModuleType(name) for name in ("mmcv", "mmcv.ops", "mmcv.ops.multi_scale_deform_attn", "detector")}
    modules["mmcv.ops"].multi_scale_deform_attn = modules["mmcv.ops.multi_scale_deform_attn"]
    for name in ("mmcv.ops", "mmcv.ops.multi_scale_deform_attn", "detector"):
        modules[name].MultiScaleDeformableAttnFunction = MultiScaleDeformableAttnFunction
        modules[name].multi_scale_deformable_attn_pytorch = multi_scale_deformable_attn_pytorch
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    return modules


def test_mmcv_is_patched_wherever_it_was_imported_and_given_back(device, mmcv):
    import tmaops.compat.mmcv as compat

    original = mmcv["detector"].MultiScaleDeformableAttnFunction
    given = inputs(device)
    shapes, starts = torch.tensor(LEVELS, device=device), torch.tensor([0, 30], device=device)
    wanted = original.apply(given[0], shapes, starts, *given[1:], 64)
    compat.patch()
    compat.patch()
    try:
        assert mmcv["mmcv.ops"].MultiScaleDeformableAttnFunction is compat.MultiScaleDeformableAttnFunction
        got = mmcv["detector"].MultiScaleDeformableAttnFunction.apply(given[0], shapes, starts, *given[1:], 64)
        torch.testing.assert_close(got, wanted)
        torch.testing.assert_close(mmcv["mmcv.ops"].multi_scale_deformable_attn_pytorch(given[0], shapes, *given[1:]), wanted)
        grad = torch.randn_like(wanted)
        for mine, theirs in zip(torch.autograd.grad(got, given, grad), torch.autograd.grad(wanted, given, grad)):
            torch.testing.assert_close(mine, theirs)
    finally:
        compat.unpatch()
    assert mmcv["detector"].MultiScaleDeformableAttnFunction is original


def test_mixed_types_give_the_widest(device):
    from tmaops.compat._attention import attention

    value, locations, weights = inputs(device)
    assert attention(value.bfloat16(), LEVELS, locations, weights).dtype is torch.float32
