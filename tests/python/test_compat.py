"""Other libraries' deformable attention on tmaops, against their own code."""

import importlib.util
import sys
import types

import pytest

torch = pytest.importorskip("torch")

from test_torch import LEVELS, by_grid_sample, inputs


def by_four_pixels(value, levels, locations, weights):
    """The operator by its definition: the four pixels around each location, with torch's gradients."""
    batch, _, heads, channels = value.shape
    queries, start, output = locations.shape[1], 0, 0
    for level, (height, width) in enumerate(levels):
        pixels = value[:, start : start + height * width].transpose(1, 2)  # (N, M, height * width, D)
        start += height * width
        x = (locations[:, :, :, level, :, 0] * width - 0.5).transpose(1, 2)  # (N, M, Lq, P)
        y = (locations[:, :, :, level, :, 1] * height - 0.5).transpose(1, 2)
        for right in (0, 1):
            for below in (0, 1):
                column, row = x.detach().floor() + right, y.detach().floor() + below
                inside = (column >= 0) & (column < width) & (row >= 0) & (row < height)
                share = (
                    (1 - (x - column).abs()) * (1 - (y - row).abs()) * inside * weights[:, :, :, level].transpose(1, 2)
                )
                index = (row.clamp(0, height - 1) * width + column.clamp(0, width - 1)).long().flatten(2)
                read = pixels.gather(2, index[..., None].expand(-1, -1, -1, channels)).unflatten(2, (queries, -1))
                output = output + (share[..., None] * read).sum(3)
    return output.transpose(1, 2).flatten(2)


class ClientFunction(torch.autograd.Function):
    """How Deformable DETR, DINO and Mask2Former call the extension."""

    @staticmethod
    def forward(ctx, value, shapes, starts, locations, weights, step):
        import MultiScaleDeformableAttention as extension

        ctx.step = step
        ctx.save_for_backward(value, shapes, starts, locations, weights)
        return extension.ms_deform_attn_forward(value, shapes, starts, locations, weights, ctx.step)

    @staticmethod
    def backward(ctx, grad):
        import MultiScaleDeformableAttention as extension

        value, locations, weights = extension.ms_deform_attn_backward(*ctx.saved_tensors, grad, ctx.step)
        return value, None, None, locations, weights, None


@pytest.mark.parametrize("batch", [1, 3])  # 3 is no multiple of the step
def test_the_extension_module_serves_its_clients(device, batch):
    dtype = torch.float64 if device == "cpu" else torch.float32
    given = inputs(device, dtype, batch=batch)
    shapes, starts = torch.tensor(LEVELS, device=device), torch.tensor([0, 30], device=device)
    wanted = by_four_pixels(given[0], LEVELS, *given[1:])
    got = ClientFunction.apply(given[0], shapes, starts, *given[1:], 2)
    torch.testing.assert_close(got, wanted)
    grad = torch.randn_like(wanted)
    for mine, theirs in zip(torch.autograd.grad(got, given, grad), torch.autograd.grad(wanted, given, grad)):
        torch.testing.assert_close(mine, theirs)


def test_the_extension_module_is_compiled_in_one_graph():
    import MultiScaleDeformableAttention as extension

    value, locations, weights = (tensor.detach() for tensor in inputs("cpu", torch.float32, batch=2))
    given = (value, torch.tensor(LEVELS), torch.tensor([0, 30]), locations, weights)

    def both(*given):
        output = extension.ms_deform_attn_forward(*given, 2)
        return output, *extension.ms_deform_attn_backward(*given, torch.ones_like(output), 2)

    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        for got, wanted in zip(torch.compile(both, fullgraph=True, backend="aot_eager")(*given), both(*given)):
            torch.testing.assert_close(got, wanted)


@pytest.fixture
def mmcv(monkeypatch):
    """The names of mmcv that are patched, with torch's own functions behind them, and a module that imported one of them."""

    class MultiScaleDeformableAttnFunction:
        @staticmethod
        def apply(value, shapes, starts, locations, weights, step):
            return by_grid_sample(value, shapes.tolist(), locations, weights)

    def multi_scale_deformable_attn_pytorch(value, shapes, locations, weights):
        return by_grid_sample(value, shapes.tolist(), locations, weights)

    modules = {
        name: types.ModuleType(name) for name in ("mmcv", "mmcv.ops", "mmcv.ops.multi_scale_deform_attn", "detector")
    }
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
        function = mmcv["mmcv.ops"].multi_scale_deformable_attn_pytorch
        torch.testing.assert_close(function(given[0], shapes, *given[1:]), wanted)
        # mmcv 1.3's layer, which mmdetection uses, gives the function of the CPU the arguments of that of the GPU.
        torch.testing.assert_close(function(given[0], shapes, starts, *given[1:], 64), wanted)
        grad = torch.randn_like(wanted)
        for mine, theirs in zip(torch.autograd.grad(got, given, grad), torch.autograd.grad(wanted, given, grad)):
            torch.testing.assert_close(mine, theirs)
    finally:
        compat.unpatch()
    assert mmcv["detector"].MultiScaleDeformableAttnFunction is original


def test_the_function_of_an_installed_mmcv_is_patched(monkeypatch):
    """mmcv's own Python code; its compiled extension, which mmcv-lite lacks and the CPU does not call, is an empty module."""
    pytest.importorskip("mmcv")
    if importlib.util.find_spec("mmcv._ext") is None:
        empty = types.ModuleType("mmcv._ext")
        empty.__getattr__ = lambda name: None
        monkeypatch.setitem(sys.modules, "mmcv._ext", empty)
    module = importlib.import_module("mmcv.ops.multi_scale_deform_attn")
    import tmaops.compat.mmcv as compat

    torch.manual_seed(0)
    layer = module.MultiScaleDeformableAttention(
        embed_dims=16, num_heads=4, num_levels=2, num_points=3, dropout=0.0, batch_first=True
    ).double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    arguments = dict(
        query=torch.randn(2, 7, 16).double(),
        value=torch.randn(2, 36, 16).double(),
        reference_points=torch.rand(2, 7, 2, 2).double(),
        spatial_shapes=torch.tensor(LEVELS),
        level_start_index=torch.tensor([0, 30]),
    )
    results = []
    for patched in (False, True):
        if patched:
            compat.patch()
        try:
            layer.zero_grad()
            output = layer(**arguments)
        finally:
            compat.unpatch()
        output.square().sum().backward()
        results.append([output.detach()] + [parameter.grad.clone() for parameter in layer.parameters()])
    assert module.multi_scale_deformable_attn_pytorch is not compat.multi_scale_deformable_attn_pytorch
    for mine, theirs in zip(results[1], results[0]):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-12)


def test_mixed_types_give_the_widest(device):
    from tmaops.compat._attention import attention

    value, locations, weights = inputs(device)
    assert attention(value.bfloat16(), LEVELS, locations, weights).dtype is torch.float32
