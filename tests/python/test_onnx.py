"""Models with tmaops.torch go to ONNX as standard operators, with both exporters of torch.

PYTEST_DONT_REWRITE: the exporter takes an assert of a model, but not what pytest makes of it.
"""

import io

import numpy as np
import pytest

torch = pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

import tmaops._torch_functions as definitions
import tmaops.torch as ops
from test_torch import LEVELS, inputs
from tmaops.compat import detr, transformers

pytestmark = pytest.mark.filterwarnings("ignore")  # of the exporters themselves


class Operators(torch.nn.Module):
    """Bilinear, ragged and nearest points, and a linear layer behind them."""

    def forward(self, value, locations, weights):
        output = ops.ms_deform_attn(value, LEVELS, locations, weights)
        output = output + ops.ms_deform_attn(value, LEVELS, locations, weights, sampling="nearest")
        locations, weights = locations.flatten(3, 4), weights.flatten(3, 4)
        output = output + transformers.multi_scale_deformable_attention_v2(value, LEVELS, locations, weights, [1, 5])
        return ops.linear(output, torch.ones(3, 8) / 8, torch.ones(3), activation="gelu")


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = ops.MSDeformAttn(8, n_levels=2, n_heads=2, n_points=3)

    def forward(self, value, locations, weights):
        references, features = locations[:, :, 0, :, 0], value.flatten(2)
        return self.layer(features[:, : locations.shape[1]], references, features, LEVELS)


def _exported(model, given, dynamo):
    names = ["value", "locations", "weights"]
    if dynamo:
        batch, queries = torch.export.Dim("batch"), torch.export.Dim("queries", min=2, max=30)
        shapes = {"value": {0: batch}, "locations": {0: batch, 1: queries}, "weights": {0: batch, 1: queries}}
        program = torch.onnx.export(model, given, dynamo=True, dynamic_shapes=shapes, input_names=names, verbose=False)
        return program.model_proto.SerializeToString()
    file = io.BytesIO()
    axes = {"value": {0: "batch"}, "locations": {0: "batch", 1: "queries"}, "weights": {0: "batch", 1: "queries"}}
    torch.onnx.export(model, given, file, dynamo=False, opset_version=16, input_names=names, dynamic_axes=axes)
    return file.getvalue()


@pytest.mark.parametrize("model, dynamo", [(Layer, True), (Layer, False), (Operators, False)])
def test_onnxruntime_computes_the_same(model, dynamo):
    model = model().eval()
    given = tuple(tensor.detach() for tensor in inputs("cpu"))
    exported = _exported(model, given, dynamo)
    operators = {node.op_type for node in onnx.load_from_string(exported).graph.node}
    assert "GridSample" in operators and not [name for name in operators if "deform" in name.lower()]
    session = onnxruntime.InferenceSession(exported, providers=["CPUExecutionProvider"])
    taken = {entry.name for entry in session.get_inputs()}
    for batch, queries in ((2, 7), (3, 11)):
        more = dict(zip(("value", "locations", "weights"), inputs("cpu", batch=batch, queries=queries)))
        fed = {name: tensor.detach().numpy() for name, tensor in more.items() if name in taken}
        (got,) = session.run(None, fed)
        wanted = model(*more.values()).detach().numpy()
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


class Detector(torch.nn.Module):
    """How Deformable DETR and those built on it give the levels: a tensor, which they hold against the value."""

    def forward(self, value, shapes, locations, weights):
        assert (shapes[:, 0] * shapes[:, 1]).sum() == value.shape[1]
        return detr.MSDeformAttnFunction.apply(value, shapes, None, locations, weights, 64)


class OfTheCpu(torch.nn.Module):
    """How Relation-DETR calls the function for the CPU."""

    def forward(self, value, shapes, locations, weights):
        assert (shapes[:, 0] * shapes[:, 1]).sum() == value.shape[1]
        return detr.multi_scale_deformable_attn_pytorch(value, shapes, locations, weights)


@pytest.mark.parametrize("model, dynamo", [(Detector, False), (Detector, True), (OfTheCpu, True)])
def test_levels_in_a_tensor_are_exported(model, dynamo):
    value, locations, weights = (tensor.detach() for tensor in inputs("cpu"))
    given, file = (value, torch.tensor(LEVELS), locations, weights), io.BytesIO()
    torch.onnx.export(model(), given, file, dynamo=dynamo, opset_version=18, verbose=False)
    session = onnxruntime.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    fed = [tensor.numpy() for tensor in given]
    fed = dict(zip([entry.name for entry in session.get_inputs()], fed if dynamo else [fed[0], *fed[2:]]))
    np.testing.assert_allclose(session.run(None, fed)[0], model()(*given).numpy(), rtol=1e-4, atol=1e-5)


def test_the_definitions_are_those_of_the_operators():
    value, locations, weights = (tensor.detach() for tensor in inputs("cpu"))
    flat = [side for level in LEVELS for side in level]
    for sampling in ("bilinear", "nearest"):
        got = definitions.ms_deform_attn(value, flat, locations, weights, sampling=sampling)
        torch.testing.assert_close(got, ops.ms_deform_attn(value, LEVELS, locations, weights, sampling=sampling))
    swapped = torch.cat([value[:, 30:], value[:, :30]], 1)
    got = definitions.ms_deform_attn(swapped, flat, locations, weights, [6, 0], out_dtype=torch.float64)
    torch.testing.assert_close(got.float(), ops.ms_deform_attn(value, LEVELS, locations, weights))
    x, weight, bias = torch.randn(5, 4), torch.randn(4, 3), torch.randn(3)
    for activation in ("none", "relu", "gelu", "silu"):
        got = definitions.gemm(x, weight, bias, activation)
        torch.testing.assert_close(got, ops.gemm(x, weight, bias, activation=activation))


@pytest.mark.parametrize("dynamo", [False, True])
def test_what_onnx_has_not_is_refused_by_name(dynamo):
    class Resample(torch.nn.Module):
        def forward(self, values):
            return ops.resample(values, torch.arange(5.0), torch.arange(3.0))

    with pytest.raises(Exception) as raised:
        torch.onnx.export(Resample(), (torch.ones(1, 5, 2),), io.BytesIO(), dynamo=dynamo, verbose=False)
    errors = [raised.value]
    while errors[-1].__cause__ is not None:
        errors.append(errors[-1].__cause__)
    assert "tmaops::resample cannot be exported to ONNX: run it outside of the model" in " ".join(map(str, errors))
