"""tmaops.torch in torch.jit.trace, and with meta and fake tensors."""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import tmaops.torch as ops
from test_torch import LEVELS, inputs
from tmaops.compat.mmcv import multi_scale_deformable_attn_pytorch
from torch._subclasses.fake_tensor import FakeTensorMode

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")

LOAD = """
import sys, torch, tmaops.torch
model = torch.jit.load(sys.argv[1])
given = torch.load(sys.argv[2])
with torch.no_grad():
    plain = model(*given)
given[0].requires_grad_()
model(*given).square().sum().backward()
torch.save([plain, given[0].grad], sys.argv[3])
"""


class Operators(torch.nn.Module):
    """Every operator, with levels in each form that the function takes."""

    def forward(self, value, locations, weights):
        output = ops.ms_deform_attn(value, LEVELS, locations, weights)
        output = output + ops.ms_deform_attn(value, [list(level) for level in LEVELS], locations, weights)
        output = output + ops.ms_deform_attn(value, torch.tensor(LEVELS), locations, weights)
        times = torch.arange(output.shape[1], dtype=torch.float32)
        output = ops.resample(output, times, times[:-1] + 0.5)
        return ops.linear(output, torch.ones(3, 8), activation="gelu")


class Compat(torch.nn.Module):
    """The functions that patched models call."""

    def forward(self, value, locations, weights):
        from tmaops.compat import transformers

        output = transformers.multi_scale_deformable_attention(value, LEVELS, locations, weights)
        return output + transformers.forward(self, value, None, LEVELS, None, locations, weights)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = ops.MSDeformAttn(8, n_levels=2, n_heads=2, n_points=3)

    def forward(self, value, locations, weights):
        references = locations[:, :, 0, :, 0]
        return self.layer(value.flatten(2)[:, :7], references, value.flatten(2), LEVELS)


@pytest.mark.parametrize("model", [Operators, Compat, Layer])
def test_a_trace_is_right_and_holds_no_address(model):
    torch.manual_seed(0)
    model = model()
    given, others = ([tensor.detach() for tensor in inputs("cpu", batch=batch)] for batch in (2, 3))
    for gradients in (False, True):
        with torch.set_grad_enabled(gradients):
            traced = torch.jit.trace(model, given)
        graph = traced.inlined_graph
        constants = [node.output().toIValue() for node in graph.findAllNodes("prim::Constant")]
        assert not [number for number in constants if type(number) is int and 2**32 < number < 2**63 - 1]
        with torch.no_grad():
            torch.testing.assert_close(traced(*given), model(*given))
            torch.testing.assert_close(traced(*others), model(*others))


def test_a_trace_computes_the_same_in_another_process(tmp_path):
    torch.manual_seed(0)
    model, given = Both(), [tensor.detach() for tensor in inputs("cpu")]
    with torch.no_grad():
        traced, wanted = torch.jit.trace(model, given), model(*given)
    paths = [str(tmp_path / name) for name in ("model.pt", "given.pt", "got.pt")]
    traced.save(paths[0])
    torch.save(given, paths[1])
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", LOAD, *paths], capture_output=True, text=True)
    assert run.returncode == 0, f"exit status {run.returncode}\n{run.stderr}"
    got, grad = torch.load(paths[2])
    torch.testing.assert_close(got, wanted)
    given[0].requires_grad_()
    model(*given).square().sum().backward()
    torch.testing.assert_close(grad, given[0].grad)


class Both(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = torch.nn.ModuleList([Operators(), Compat(), Layer()])

    def forward(self, *given):
        return torch.cat([part(*given).flatten() for part in self.parts])


def test_levels_that_a_trace_reads_from_shapes_are_numbers():
    value, locations, weights = (tensor.detach() for tensor in inputs("cpu"))

    def model(image, value):
        return ops.ms_deform_attn(value, [(image.shape[0], image.shape[1]), (3, 2)], locations, weights)

    traced = torch.jit.trace(model, (torch.zeros(6, 5), value))
    torch.testing.assert_close(traced(torch.zeros(6, 5), value), ops.ms_deform_attn(value, LEVELS, locations, weights))


def test_a_script_holds_the_operators_and_refuses_layers_by_name():
    def model(value, locations, weights):
        return torch.ops.tmaops.ms_deform_attn(value, [6, 5, 3, 2], locations, weights)

    given, others = inputs("cpu"), inputs("cpu")
    output, wanted = torch.jit.script(model)(*given), ops.ms_deform_attn(others[0], LEVELS, *others[1:])
    torch.testing.assert_close(output, wanted)
    for mine, theirs in zip(*(torch.autograd.grad(made.sum(), of) for made, of in ((output, given), (wanted, others)))):
        torch.testing.assert_close(mine, theirs)
    for layer in (Layer(), ops.Linear(3, 2)):
        with pytest.raises(NotImplementedError, match="torch.jit.script takes no (MSDeformAttn|Linear) of tmaops"):
            torch.jit.script(torch.nn.ModuleList([layer]))


def test_a_graph_of_torch_fx_holds_the_functions_whole():
    traced = torch.fx.symbolic_trace(
        lambda value, locations, weights: ops.linear(ops.ms_deform_attn(value, LEVELS, locations, weights), value)
    )
    assert [node.target for node in traced.graph.nodes if node.op == "call_function"][-2:] == [
        ops.ms_deform_attn,
        ops.linear,
    ]


@pytest.mark.parametrize("gradients", [False, True])
def test_meta_and_fake_tensors_need_no_gradients(gradients):
    given = [tensor.detach().requires_grad_(gradients) for tensor in inputs("cpu")]
    layer = ops.MSDeformAttn(8, n_levels=2, n_heads=2, n_points=3).to("meta")
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fakes = [mode.from_tensor(tensor) for tensor in given]
    metas = [tensor.to("meta") for tensor in given]
    for levels in (LEVELS, tuple(LEVELS), [list(level) for level in LEVELS], torch.tensor(LEVELS)):
        for tensors in (fakes, metas):
            for function in (ops.ms_deform_attn, multi_scale_deformable_attn_pytorch):
                got = function(tensors[0], levels, *tensors[1:])
                assert got.shape == (2, 7, 8) and got.device == tensors[0].device
                assert got.requires_grad == gradients
    features, references = metas[0].flatten(2), metas[1][:, :, 0, :, 0]
    assert layer(features[:, :7], references, features, LEVELS).shape == (2, 7, 8)
