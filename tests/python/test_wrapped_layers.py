"""MSDeformAttn calls its layers: hooks, parametrisations and modules in their place count as in any module of torch."""

import copy

import pytest

torch = pytest.importorskip("torch")

import tmaops
import tmaops.torch as ops
from test_torch import LEVELS, OriginalModule
from torch import nn
from torch.nn.utils import parametrizations, prune

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::UserWarning")
LAYERS = ("sampling_offsets", "attention_weights", "value_proj", "output_proj")


class Lora(nn.Module):
    """A layer with a low-rank addition, as peft puts in a Linear's place: it has no weight of its own."""

    def __init__(self, base):
        super().__init__()
        self.base_layer = base
        self.down, self.up = nn.Linear(base.in_features, 2, bias=False), nn.Linear(2, base.out_features, bias=False)

    def forward(self, states):
        return self.base_layer(states) + self.up(self.down(states))


def _hook(layer):
    layer.register_forward_hook(lambda module, given, output: 0.5 * output + 0.1)
    return layer


def _pre_hook(layer):
    layer.register_forward_pre_hook(lambda module, given: (2 * given[0],))
    return layer


def _own_forward(layer):
    forward = layer.forward
    layer.forward = lambda states: 0.5 * forward(states)
    return layer


WRAPPERS = {
    "forward hook": _hook,
    "forward pre-hook": _pre_hook,
    "forward of the instance": _own_forward,
    "spectral_norm": nn.utils.spectral_norm,
    "weight_norm": nn.utils.weight_norm,
    "parametrised spectral_norm": parametrizations.spectral_norm,
    "parametrised weight_norm": parametrizations.weight_norm,
    "prune": lambda layer: prune.l1_unstructured(layer, "weight", amount=0.5),
    "LoRA": Lora,
    "no bias": lambda layer: nn.Linear(layer.in_features, layer.out_features, bias=False),
}


def _module(dtype=torch.float32):
    torch.manual_seed(0)
    module = ops.MSDeformAttn(16, n_levels=2, n_heads=4, n_points=3)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return module.to(dtype)


def _given(dtype=torch.float32):
    torch.manual_seed(1)
    return torch.randn(2, 7, 16).to(dtype), torch.rand(2, 7, 2, 2).to(dtype), torch.randn(2, 36, 16).to(dtype)


def _losses(module, call, steps=3):
    """Losses of some steps of training."""
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = call(module).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def _by_layers(module):
    """The module by its definition, which calls the same layers."""
    original = OriginalModule.__new__(OriginalModule)
    nn.Module.__init__(original)
    original.inner = module
    query, references, features = _given()
    return original(query, references, features, LEVELS, torch.zeros(2, 36, dtype=torch.bool))


def _wrapped(name):
    module = _module()
    for layer in LAYERS:
        torch.manual_seed(2)
        setattr(module, layer, WRAPPERS[name](getattr(module, layer)))
    return module


@pytest.mark.parametrize("name", WRAPPERS)
def test_what_wraps_a_layer_counts(name):
    module, other = _wrapped(name), _wrapped(name)
    change = (module(*_given(), LEVELS) - _module()(*_given(), LEVELS)).abs().max()
    assert "weight_norm" in name or change > 1e-3, "the wrapper changes nothing"
    _by_layers(other)  # the power iteration of spectral_norm goes on with every call
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        module(*_given(), LEVELS), _by_layers(other)
    got = _losses(module, lambda module: module(*_given(), LEVELS))
    torch.testing.assert_close(got, _losses(other, _by_layers), rtol=1e-4, atol=0)
    assert got[0] != got[1]


def test_layers_of_int8_run():
    module = _module().eval()
    wanted = module(*_given(), LEVELS)
    quantized = torch.ao.quantization.quantize_dynamic(module, {nn.Linear}, dtype=torch.qint8)
    assert "quantized" in type(quantized.attention_weights).__module__
    got = quantized(*_given(), LEVELS)
    assert 0 < (got - wanted).norm() < 0.05 * wanted.norm()


def test_statically_quantized_layers_run_between_real_numbers():
    from torch.ao import quantization

    module = _module().eval()
    wanted = module(*_given(), LEVELS)
    query, references, features = _given()
    with pytest.raises(tmaops.InvalidType, match="MSDeformAttn: query"):
        module(torch.quantize_per_tensor(query, 0.1, 0, torch.qint8), references, features, LEVELS)
    for layer in LAYERS:
        setattr(module, layer, quantization.QuantWrapper(getattr(module, layer)))
    engine = next(name for name in torch.backends.quantized.supported_engines if name != "none")
    torch.backends.quantized.engine, module.qconfig = engine, quantization.get_default_qconfig(engine)
    prepared = quantization.prepare(module)
    prepared(*_given(), LEVELS)
    got = quantization.convert(prepared)(*_given(), LEVELS)
    assert 0 < (got - wanted).norm() < 0.1 * wanted.norm()


def test_layers_of_16_bits_keep_locations_in_f32():
    module = _module(torch.bfloat16)
    query, references, features = _given(torch.bfloat16)
    got = module(query, references.float(), features, LEVELS)
    wanted = copy.deepcopy(module).double()(query.double(), references.double(), features.double(), LEVELS)
    assert got.dtype is torch.bfloat16
    assert (got - wanted).norm() < 0.01 * wanted.norm()


def _sharded(file):
    from torch.distributed.fsdp import fully_shard

    torch.distributed.init_process_group("gloo", init_method=f"file://{file}", rank=0, world_size=1)
    try:
        mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (1,))
        module = _module()
        for layer in LAYERS:
            fully_shard(getattr(module, layer), mesh=mesh)
        fully_shard(module, mesh=mesh)
        return _losses(module, lambda module: module(*_given(), LEVELS))
    finally:
        torch.distributed.destroy_process_group()


def test_sharded_layers_train_as_whole_ones(tmp_path):
    wanted = _losses(_module(), lambda module: module(*_given(), LEVELS))
    torch.testing.assert_close(_sharded(tmp_path / "store"), wanted)


@pytest.mark.parametrize("components", [2, 4])
@pytest.mark.parametrize("bad", [float("inf"), float("nan")])
def test_queries_without_a_finite_reference_count_nothing(components, bad):
    module = _module(torch.float64)
    query, _, features = _given(torch.float64)
    query.requires_grad_()
    features.requires_grad_()
    references = torch.rand(2, 7, 2, components, dtype=torch.float64)
    leaves = [query, features, *module.parameters()]
    wanted = torch.autograd.grad(module(query[:, :5], references[:, :5], features, LEVELS).square().sum(), leaves)
    references[:, 5] = bad
    references[:, 6, :, -1] = bad
    references.requires_grad_()
    output = module(query, references, features, LEVELS)
    torch.testing.assert_close(output[:, 5:], module.output_proj.bias.expand(2, 2, 16))
    got = torch.autograd.grad(output[:, :5].square().sum() + 0 * output[:, 5:].sum(), [*leaves, references])
    for mine, theirs in zip(got, wanted):
        torch.testing.assert_close(mine, theirs)
    assert got[-1].isfinite().all() and not got[-1][:, 5:].any()
    for gradient in torch.autograd.grad(module(query, references, features, LEVELS).square().sum(), leaves):
        assert gradient.isfinite().all()
