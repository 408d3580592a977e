"""tmaops.torch: registration, gradients, compilation, and what is refused."""

import copy
import math
import os
import pathlib
import shutil
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tmaops
import tmaops.torch as ops
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils._python_dispatch import TorchDispatchMode

LEVELS = [(6, 5), (3, 2)]
ROUNDING = {"rtol": 1e-4, "atol": 1e-4}  # of gradients in f32, which are sums in another order


@pytest.fixture
def f64(device):
    return torch.float64 if device == "cpu" else torch.float32


@pytest.fixture
def cuda(device):
    if device == "cpu":
        pytest.skip("needs --device cuda")
    return device


def inputs(device, dtype=torch.float32, queries=7, levels=LEVELS, points=3, batch=2, heads=2, channels=4):
    generator = torch.Generator().manual_seed(queries)
    pixels = sum(h * w for h, w in levels)
    value = torch.randn(batch, pixels, heads, channels, generator=generator)
    locations = torch.rand(batch, queries, heads, len(levels), points, 2, generator=generator) * 1.2 - 0.1
    weights = torch.rand(batch, queries, heads, len(levels), points, generator=generator)
    return [tensor.to(device, dtype).requires_grad_() for tensor in (value, locations, weights)]


def by_grid_sample(value, levels, locations, weights):
    """The operator by torch's own functions."""
    batch, _, heads, channels = value.shape
    _, queries, _, count, points, _ = locations.shape
    sampled = []
    for level, (image, (height, width)) in enumerate(zip(value.split([h * w for h, w in levels], 1), levels)):
        image = image.flatten(2).transpose(1, 2).reshape(batch * heads, channels, height, width)
        grid = 2 * locations[:, :, :, level].transpose(1, 2).flatten(0, 1) - 1
        sampled.append(torch.nn.functional.grid_sample(image, grid, align_corners=False))
    weights = weights.transpose(1, 2).reshape(batch * heads, 1, queries, count * points)
    output = (torch.stack(sampled, -2).flatten(-2) * weights).sum(-1)
    return output.view(batch, heads * channels, queries).transpose(1, 2)


def test_attention_and_its_gradients_agree_with_grid_sample(device, f64):
    given = inputs(device, f64)
    got = ops.ms_deform_attn(given[0], LEVELS, *given[1:])
    wanted = by_grid_sample(given[0], LEVELS, *given[1:])
    torch.testing.assert_close(got, wanted)
    grad = torch.randn_like(wanted)
    for mine, theirs in zip(torch.autograd.grad(got, given, grad), torch.autograd.grad(wanted, given, grad)):
        torch.testing.assert_close(mine, theirs, **({} if f64 == torch.float64 else ROUNDING))


def packed(device, dtype=torch.float32):
    """Values of three trajectories of 3, 0 and 2 samples, their times, targets and offsets."""
    values = torch.randn(5, 4, device=device, dtype=dtype, requires_grad=True)
    times, targets = torch.tensor([0.0, 1, 3, 0, 1], device=device), torch.tensor([0.5, 2.5, 2, 0.25], device=device)
    return values, times, targets, torch.tensor([0, 3, 3, 5], device=device), torch.tensor([0, 3, 3, 4], device=device)


def test_offsets_of_packed_rows_may_be_tensors(device):
    values, times, targets, source, target = packed(device)
    lists = {"source_offsets": source.tolist(), "target_offsets": target.tolist()}
    wanted = ops.resample(values, times, targets, **lists)
    grad = torch.randn_like(wanted)
    (wanted_grad,) = torch.autograd.grad(wanted, values, grad)
    for given in (
        (source, target),
        (source.cpu(), target.cpu()),
        (source.tolist(), target),
        (source.cpu().numpy(), target.tolist()),
    ):
        offsets = dict(zip(lists, given))
        got = ops.resample(values, times, targets, **offsets)
        torch.testing.assert_close(got, wanted)
        torch.testing.assert_close(torch.autograd.grad(got, values, grad)[0], wanted_grad)
        plain = tmaops.resample(values.detach(), times, targets, **offsets)
        torch.testing.assert_close(plain, wanted.detach())
        assert sum(tmaops.resample_violations(times, targets, **offsets).values()) == 0
    unpacked = ops.resample(values, times, targets[:2], outside="nan", source_offsets=source)
    assert unpacked.shape == (3, 2, 4)
    assert ops.resample(values.reshape(1, 5, 4), times.sort().values, targets, duplicates="last").shape == (1, 4, 4)
    compiled = torch.compile(
        lambda *tensors: ops.resample(*tensors[:3], source_offsets=tensors[3], target_offsets=tensors[4]),
        backend="aot_eager",
        fullgraph=True,
    )
    torch.testing.assert_close(compiled(values, times, targets, source, target), wanted)


def test_offsets_on_a_gpu_are_read_there(cuda):
    values, times, targets, source, target = (tensor.detach() for tensor in packed(cuda))
    known = {"source_offsets": source.tolist(), "target_offsets": target.tolist()}
    wanted = tmaops.resample(values, times, targets, **known, variant="element_search")
    given = {"source_offsets": source, "target_offsets": target}
    plan = tmaops.plan_resample(values, times, targets, **given)
    assert plan.variant == "element_search"
    torch.testing.assert_close(plan.run(), wanted, atol=0, rtol=0)
    grad = torch.randn_like(wanted)
    backward = tmaops.resample_backward(grad, times, targets, samples=5, **known, variant="row_gather")
    torch.testing.assert_close(
        tmaops.resample_backward(grad, times, targets, samples=5, **given), backward, atol=0, rtol=0
    )
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):  # a wait or a copy to the host would fail here
        captured = ops.resample(values, times, targets, **given)
        gradient = tmaops.resample_backward(grad, times, targets, samples=5, **given)
    graph.replay()
    torch.testing.assert_close(captured, wanted, atol=0, rtol=0)
    torch.testing.assert_close(gradient, backward, atol=0, rtol=0)
    target.copy_(torch.tensor([0, 1, 3, 4], device=cuda))
    graph.replay()
    known["target_offsets"] = [0, 1, 3, 4]
    wanted = tmaops.resample(values, times, targets, **known, variant="element_search")
    assert wanted.isnan().any() and not wanted.isnan().all()  # the trajectory without samples has targets now
    torch.testing.assert_close(captured, wanted, atol=0, rtol=0, equal_nan=True)
    target.copy_(torch.tensor([0, 5, 3, 4], device=cuda))
    graph.replay()
    assert captured.isnan().all() and gradient.isnan().all()
    assert plan.run().isnan().all()
    assert tmaops.resample_violations(times, targets, **given)["bad_offsets"] == 1
    assert not plan.rebind(target_offsets=torch.tensor([0, 3, 3, 4], device=cuda)).run().isnan().any()


def test_opcheck_passes(device):
    given = inputs(device)
    flat = [side for level in LEVELS for side in level]
    torch.library.opcheck(torch.ops.tmaops.ms_deform_attn, (given[0], flat, *given[1:]))
    value, offsets, logits, references = fused_inputs(device, torch.float32, 4, 3)
    steps = {"softmax": True, "reference_points": references}
    torch.library.opcheck(torch.ops.tmaops.ms_deform_attn, (value, flat, offsets, logits), steps)
    torch.library.opcheck(
        torch.ops.tmaops.resample,
        (
            torch.randn(2, 5, 3, device=device, requires_grad=True),
            torch.arange(5.0, device=device),
            torch.rand(4, device=device),
        ),
    )
    values, times, targets, source, target = packed(device)
    torch.library.opcheck(
        torch.ops.tmaops.resample,
        (values, times, targets),
        {"source_offset_tensor": source, "target_offset_tensor": target},
    )
    half = torch.float32 if device == "cpu" else torch.float16
    a, b = (
        torch.randn(4, 5, device=device, dtype=half, requires_grad=True),
        torch.randn(5, 3, device=device, dtype=half),
    )
    torch.library.opcheck(torch.ops.tmaops.gemm, (a, b, None, "gelu"), atol=1e-3, rtol=1e-3)


def test_gradcheck_passes():
    given = inputs("cpu", torch.float64, batch=1, queries=2, points=2)
    assert torch.autograd.gradcheck(lambda *tensors: ops.ms_deform_attn(tensors[0], LEVELS, *tensors[1:]), given)
    times, targets = torch.tensor([0.0, 1, 2.5]).double(), torch.tensor([-1.0, 0.3, 2.0]).double()
    values = torch.randn(2, 3, 2, dtype=torch.float64, requires_grad=True)
    for outside in ("hold", "extrapolate"):
        assert torch.autograd.gradcheck(lambda v: ops.resample(v, times, targets, outside=outside), (values,))
    for mode in ("mean", "sum", "min", "max", "lowpass"):
        assert torch.autograd.gradcheck(lambda v: ops.resample(v, times, targets, interpolation=mode), (values,))


@pytest.mark.parametrize("activation", ["none", "relu", "gelu", "silu"])
def test_gradients_of_linear_agree_with_torch(device, activation):
    dtype = torch.float32 if device == "cpu" else torch.float16
    x, weight, bias = (
        torch.randn(*shape, device=device, dtype=dtype, requires_grad=True) for shape in ((2, 5, 8), (6, 8), (6,))
    )
    got = ops.linear(x, weight, bias, activation=activation)
    act = {"none": lambda t: t, "relu": torch.relu, "gelu": torch.nn.functional.gelu, "silu": torch.nn.functional.silu}[
        activation
    ]
    wanted = act(torch.nn.functional.linear(x, weight, bias))
    tolerance = {} if device == "cpu" else {"atol": 2e-2, "rtol": 2e-2}
    torch.testing.assert_close(got, wanted, **tolerance)
    grad = torch.randn_like(wanted)
    for mine, theirs in zip(
        torch.autograd.grad(got, (x, weight, bias), grad), torch.autograd.grad(wanted, (x, weight, bias), grad)
    ):
        torch.testing.assert_close(mine, theirs, **tolerance)


@pytest.mark.parametrize("rows", [16, 100, 300])
@pytest.mark.parametrize("activation", ["none", "relu", "gelu", "silu"])
def test_linear_without_gradients_agrees_with_torch(device, rows, activation):
    x, weight, bias = (
        torch.randn(*shape, device=device, dtype=torch.bfloat16) for shape in ((rows, 64), (48, 64), (48,))
    )
    layer = ops.Linear(64, 48, activation=activation, device=device, dtype=torch.bfloat16)
    layer.load_state_dict({"weight": weight, "bias": bias})
    wanted = torch.nn.functional.linear(x.double(), weight.double(), bias.double())
    wanted = wanted if activation == "none" else getattr(torch.nn.functional, activation)(wanted)
    with torch.no_grad():
        torch.testing.assert_close(layer(x).double(), wanted, atol=5e-2, rtol=1e-2)
        torch.testing.assert_close(torch.compile(layer)(x).double(), wanted, atol=5e-2, rtol=1e-2)


def test_gradients_of_batched_gemm_agree_with_torch(device):
    dtype = torch.float32 if device == "cpu" else torch.float16
    for first, second in (((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)), ((2, 3, 4), (2, 4, 5))):
        a, b = (torch.randn(shape, device=device, dtype=dtype, requires_grad=True) for shape in (first, second))
        got, wanted = ops.gemm(a, b), a @ b
        grad = torch.randn_like(wanted)
        for mine, theirs in zip(torch.autograd.grad(got, (a, b), grad), torch.autograd.grad(wanted, (a, b), grad)):
            torch.testing.assert_close(
                mine, theirs, atol=1e-2 if device != "cpu" else 1e-5, rtol=1e-2 if device != "cpu" else 1e-5
            )


def test_locations_of_nearest_pixels_get_no_gradient(device):
    value, locations, weights = inputs(device)
    ops.ms_deform_attn(value, LEVELS, locations, weights, sampling="nearest").sum().backward()
    assert locations.grad is None
    assert value.grad is not None and weights.grad is not None


def test_ragged_points_have_gradients(device):
    value, locations, weights = inputs(device)
    flat_locations, flat_weights = (
        locations[:, :, :, 0].detach().requires_grad_(),
        weights[:, :, :, 0].detach().requires_grad_(),
    )
    got = ops.ms_deform_attn(value, LEVELS, flat_locations, flat_weights, points_per_level=[1, 2])
    padded, none = locations.detach().clone(), torch.zeros_like(weights)
    padded[:, :, :, 0, :1], none[:, :, :, 0, :1] = flat_locations[..., :1, :], flat_weights[..., :1]
    padded[:, :, :, 1, :2], none[:, :, :, 1, :2] = flat_locations[..., 1:, :], flat_weights[..., 1:]
    torch.testing.assert_close(got, by_grid_sample(value, LEVELS, padded, none))
    got.sum().backward()
    assert flat_locations.grad.shape == flat_locations.shape


def test_autocast_leaves_types_alone(device):
    value, locations, weights = inputs(device)
    with torch.autocast(device, dtype=torch.bfloat16):
        assert ops.ms_deform_attn(value, LEVELS, locations, weights).dtype is torch.float32
        mixed = ops.ms_deform_attn(value.bfloat16(), LEVELS, locations, weights)
    assert mixed.dtype is torch.bfloat16
    mixed.sum().backward()
    assert locations.grad.dtype is torch.float32


def test_compiled_calls_take_changing_sizes_without_recompiling(device):
    torch._dynamo.reset()

    @torch.compile(fullgraph=True, dynamic=True, backend="aot_eager")
    def step(value, image, locations, weights):
        levels = [(image.shape[-2], image.shape[-1]), (3, 2)]
        return ops.ms_deform_attn(value, levels, locations, weights) * 2

    for turn, (queries, sides) in enumerate([(7, (6, 5)), (9, (7, 5)), (11, (8, 9))]):
        levels = [sides, (3, 2)]
        given = inputs(device, queries=queries, levels=levels)
        with torch._dynamo.config.patch(error_on_recompile=turn > 0):
            got = step(given[0], torch.empty(1, *sides), *given[1:])
        wanted = 2 * by_grid_sample(given[0], levels, *given[1:])
        torch.testing.assert_close(got, wanted)
        grad = torch.randn(wanted.shape, generator=torch.Generator().manual_seed(turn)).to(wanted)
        for mine, theirs in zip(torch.autograd.grad(got, given, grad), torch.autograd.grad(wanted, given, grad)):
            torch.testing.assert_close(mine, theirs, **ROUNDING)


def test_export_keeps_the_operator(device):
    class Model(torch.nn.Module):
        def forward(self, value, locations, weights):
            return ops.ms_deform_attn(value, LEVELS, locations, weights)

    given = [tensor.detach() for tensor in inputs(device)]
    queries = torch.export.Dim("queries", min=2, max=100)
    shapes = {"value": {}, "locations": {1: queries}, "weights": {1: queries}}
    program = torch.export.export(Model().to(device), tuple(given), dynamic_shapes=shapes)
    assert "tmaops.ms_deform_attn" in str(program.graph)
    more = [tensor.detach() for tensor in inputs(device, queries=13)]
    torch.testing.assert_close(program.module()(*more), ops.ms_deform_attn(more[0], LEVELS, *more[1:]))


class Model(torch.nn.Module):
    """The operator between others."""

    def forward(self, value, locations, weights):
        return ops.ms_deform_attn(value * 2, LEVELS, locations, weights.softmax(-1)).relu()


@pytest.mark.filterwarnings("ignore")  # of inductor itself
def test_a_package_of_aot_inductor_computes_the_same(device, tmp_path):
    if device == "cpu" and shutil.which("g++") is None:
        pytest.skip("inductor needs g++ on the CPU")
    queries = torch.export.Dim("queries", min=2, max=100)
    given = tuple(tensor.detach() for tensor in inputs(device))
    shapes = {"value": {}, "locations": {1: queries}, "weights": {1: queries}}
    program = torch.export.export(Model().to(device), given, dynamic_shapes=shapes)
    path = torch._inductor.aoti_compile_and_package(program, package_path=str(tmp_path / "model.pt2"))
    compiled = torch._inductor.aoti_load_package(path)
    for count in (7, 13):
        more = [tensor.detach() for tensor in inputs(device, queries=count)]
        torch.testing.assert_close(compiled(*more), Model()(*more))


def test_calls_are_captured_into_a_graph_and_replayed(cuda):
    given = inputs(cuda)
    values, times = torch.randn(2, 5, 3, device=cuda, requires_grad=True), torch.arange(5.0, device=cuda)
    a, b = (torch.randn(8, 8, device=cuda, dtype=torch.float16, requires_grad=True) for _ in range(2))

    def step():
        outputs = (
            ops.ms_deform_attn(given[0], LEVELS, *given[1:]),
            ops.resample(values, times, times[:3] + 0.5),
            ops.gemm(a, b, activation="gelu"),
        )
        leaves = (*given, values, a, b)
        return (*outputs, *torch.autograd.grad([output.float().square().sum() for output in outputs], leaves))

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    with torch.no_grad():
        for tensor in (given[0], values, a):
            tensor.mul_(-0.5)
    graph.replay()
    for got, wanted in zip(captured, step()):
        torch.testing.assert_close(got, wanted)


class WithLevels(torch.nn.Module):
    """Attention whose arguments are tensors alone."""

    def __init__(self):
        super().__init__()
        self.attention = ops.MSDeformAttn(16, n_levels=2, n_heads=4, n_points=3)

    def forward(self, query, references, features):
        return self.attention(query, references, features, LEVELS)


@pytest.mark.parametrize("training", [False, True])
def test_modules_become_graphed_callables(cuda, training):
    module = WithLevels().to(cuda).requires_grad_(training)
    eager = copy.deepcopy(module)

    def given():
        query, features = (torch.randn(2, n, 16, device=cuda, requires_grad=training) for n in (7, 36))
        return query, torch.rand(2, 7, 2, 2, device=cuda), features

    graphed = torch.cuda.make_graphed_callables(module, given())
    for _ in range(3):
        tensors = given()
        got, wanted = graphed(*tensors), eager(*tensors)
        torch.testing.assert_close(got, wanted)
        if training:
            grads = (torch.autograd.grad(output.square().sum(), tensors[0]) for output in (got, wanted))
            torch.testing.assert_close(*grads)


def test_calls_run_on_the_current_stream(cuda):
    side = torch.cuda.Stream()
    a, b = torch.ones(64, 64, device=cuda, dtype=torch.float16), torch.eye(64, device=cuda, dtype=torch.float16)
    outs = [torch.zeros(64, 64, device=cuda, dtype=torch.float16) for _ in range(2)]
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(50_000_000)
        a.mul_(3)  # behind the sleep: a call on another stream would see ones
        tmaops.gemm(a, b, out=outs[0])
        made = ops.gemm(a, b)
    tmaops.gemm(a, b, out=outs[1], stream=side)
    side.synchronize()
    for got in (*outs, made):
        assert (got == 3).all()


def test_other_threads_run_during_a_call():
    levels = [(60, 50), (30, 20)]
    given = [tensor.detach() for tensor in inputs("cpu", queries=1500, levels=levels, heads=8, channels=32)]
    state = {"inside": False, "done": False, "turns": 0}

    def other():
        while not state["done"]:
            state["turns"] += state["inside"]
            time.sleep(0)  # gives the GIL back

    for call in (tmaops.ms_deform_attn, ops.ms_deform_attn):
        state.update(done=False, turns=0)
        thread = threading.Thread(target=other)
        before = sys.getswitchinterval()
        sys.setswitchinterval(60)  # nobody takes the GIL from a thread that does not give it
        try:
            thread.start()
            for _ in range(20):
                state["inside"] = True
                call(given[0], levels, *given[1:])
                state["inside"] = False
        finally:
            sys.setswitchinterval(before)
            state["done"] = True
            thread.join()
        assert state["turns"] > 0


def test_a_torch_without_the_native_half_is_told_so(caplog, monkeypatch, tmp_path):
    monkeypatch.delenv("TMAOPS_TORCH", raising=False)
    monkeypatch.setattr(ops, "__file__", str(tmp_path / "torch.py"))
    with caplog.at_level("WARNING", logger="tmaops"):
        assert not ops._load_native()
    assert "ctypes" in caplog.text and "built without libtmaops_torch.so" in caplog.text
    monkeypatch.setattr(torch, "__version__", "2.9.1")
    with caplog.at_level("WARNING", logger="tmaops"):
        assert not ops._load_native()
    assert "2.9.1 is older than 2.10" in caplog.text


class Calls(torch.utils._python_dispatch.TorchDispatchMode):
    """Records what operators are called with."""

    def __init__(self):
        super().__init__()
        self.made = []

    def __torch_dispatch__(self, operator, types, arguments=(), options=None):
        self.made.append((str(operator), arguments))
        return operator(*arguments, **(options or {}))


def test_deterministic_mode_is_obeyed(device):
    given = inputs(device)
    asked = []
    for deterministic in (True, False):
        torch.use_deterministic_algorithms(deterministic)
        try:
            with Calls() as calls:
                ops.ms_deform_attn(given[0], LEVELS, *given[1:]).sum().backward()
        finally:
            torch.use_deterministic_algorithms(False)
        made = [arguments for name, arguments in calls.made if "ms_deform_attn_backward" in name]
        asked += [ops._named("ms_deform_attn_backward", arguments)["deterministic"] for arguments in made]
    assert asked == [True, False]


def test_what_watches_operators_sees_those_with_all_arguments(device):
    """Plain calls go to an operator with fewer arguments, where nobody watches."""
    seen = []

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    value, locations, weights = inputs(device)
    plain = ops.ms_deform_attn(value, LEVELS, locations, weights)
    with Watch():
        torch.testing.assert_close(ops.ms_deform_attn(value, LEVELS, locations, weights), plain, rtol=0, atol=0)
    assert torch.ops.tmaops.ms_deform_attn_kernel.default in seen
    traced = make_fx(lambda value: ops.ms_deform_attn(value, LEVELS, locations, weights))(value)
    assert torch.ops.tmaops.ms_deform_attn_kernel.default in [node.target for node in traced.graph.nodes]


def test_plain_calls_take_fake_and_meta_tensors(device):
    given = inputs(device)
    with FakeTensorMode() as mode:
        fakes = [mode.from_tensor(tensor) for tensor in given]
        assert ops.ms_deform_attn(fakes[0], LEVELS, *fakes[1:]).shape == (2, 7, 8)
    for tensors in (fakes, [tensor.to("meta") for tensor in given]):  # without the mode, too
        got = ops.ms_deform_attn(tensors[0], LEVELS, *tensors[1:])
        assert got.shape == (2, 7, 8) and got.device == tensors[0].device
    tensor_of_levels = torch.tensor(LEVELS, device=device)
    wanted = ops.ms_deform_attn(given[0], LEVELS, *given[1:])
    for levels in (tuple(LEVELS), tensor_of_levels, [list(level) for level in LEVELS]):
        torch.testing.assert_close(ops.ms_deform_attn(given[0], levels, *given[1:]), wanted, rtol=0, atol=0)


@pytest.mark.skipif(shutil.which("cc") is None, reason="the script compiles a loop in C")
def test_the_script_of_the_overhead_runs(device):
    script = pathlib.Path(__file__).parents[2] / "scripts" / "bench_overhead.py"
    run = subprocess.run(
        [sys.executable, str(script), "--device", device, "--rounds", "2", "--calls", "2"],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert "C ABI, fresh" in run.stdout and "gradients recorded" in run.stdout


def _by_calls(function, in_dims, *given):
    """What vmap is to give: the calls one by one."""
    size = next(tensor.shape[dim] for tensor, dim in zip(given, in_dims) if dim is not None)
    parts = [
        [tensor if dim is None else tensor.select(dim, call) for tensor, dim in zip(given, in_dims)]
        for call in range(size)
    ]
    return torch.stack([function(*part) for part in parts])


@pytest.mark.parametrize("in_dims", [(0, 0, 0), (1, None, None), (None, 0, 2), (-1, 0, None)])
def test_vmap_joins_its_dimension_to_the_batch_of_attention(device, in_dims):
    given = [tensor.detach() for tensor in inputs(device)]
    given = [
        tensor if dim is None else torch.stack([tensor, 2 * tensor, -tensor], dim)
        for tensor, dim in zip(given, in_dims)
    ]
    flat = [side for level in LEVELS for side in level]
    for call in (
        lambda *tensors: ops.ms_deform_attn(tensors[0], LEVELS, *tensors[1:]),
        lambda *tensors: torch.ops.tmaops.ms_deform_attn(tensors[0], flat, *tensors[1:]),
    ):
        torch.testing.assert_close(torch.vmap(call, in_dims)(*given), _by_calls(call, in_dims, *given))
    leaves = [tensor.clone().requires_grad_() for tensor in given]
    loss = torch.vmap(call, in_dims)(*leaves).square().sum()
    wanted = torch.autograd.grad(_by_calls(call, in_dims, *leaves).square().sum(), leaves)
    for mine, theirs in zip(torch.autograd.grad(loss, leaves), wanted):
        torch.testing.assert_close(mine, theirs, **ROUNDING)


def test_vmap_over_gradients_gives_rows_of_a_jacobian(device):
    given = inputs(device, queries=2)
    output = ops.ms_deform_attn(given[0], LEVELS, *given[1:])
    rows = torch.randn(3, *output.shape, device=device)
    got = torch.autograd.grad(output, given, rows, is_grads_batched=True, retain_graph=True)
    for row in range(3):
        for mine, theirs in zip(got, torch.autograd.grad(output, given, rows[row], retain_graph=True)):
            torch.testing.assert_close(mine[row], theirs, **ROUNDING)


@pytest.mark.parametrize("in_dims", [(0, None, None), (0, 0, None), (1, 0, 0), (None, None, 1)])
@pytest.mark.parametrize("shared", [True, False])
def test_vmap_joins_its_dimension_to_the_batch_of_resample(device, in_dims, shared):
    values, times, targets = torch.randn(2, 5, 3), torch.arange(5.0), torch.rand(4) * 4
    given = [values, times, targets] if shared else [values, times + torch.zeros(2, 1), targets + torch.zeros(2, 1)]
    given = [
        tensor.to(device) if dim is None else torch.stack([tensor, tensor + 0.25, tensor + 0.5], dim).to(device)
        for tensor, dim in zip(given, in_dims)
    ]
    torch.testing.assert_close(torch.vmap(ops.resample, in_dims)(*given), _by_calls(ops.resample, in_dims, *given))


def test_vmap_over_nothing_gives_nothing(device):
    value, locations, weights = (tensor.detach() for tensor in inputs(device))
    nothing = locations.unsqueeze(0)[:0].requires_grad_()
    output = torch.vmap(lambda locations: ops.ms_deform_attn(value, LEVELS, locations, weights))(nothing)
    output.sum().backward()
    assert output.shape == (0, 2, 7, 8) and nothing.grad.shape == nothing.shape
    rows, times = torch.rand(0, 2, 5, 3, device=device), torch.arange(5.0, device=device)
    gradients = torch.vmap(torch.func.grad(lambda rows: ops.resample(rows, times, times + 0.5).sum()))(rows)
    assert gradients.shape == rows.shape


def test_transforms_leave_nothing_of_theirs_behind(device):
    torch.manual_seed(0)
    ops._torch_functions._kept.cache_clear()
    layer = ops.MSDeformAttn(8, n_levels=2, n_heads=2, n_points=3).to(device)
    query, references, features = (torch.rand(2, *shape, device=device) for shape in ((7, 8), (7, 2, 2), (36, 8)))
    run = lambda query: layer(query, references, features, LEVELS)  # noqa: E731
    changes = [torch.func.jvp(run, (query,), (torch.ones_like(query),))[1] for _ in range(2)]
    torch.testing.assert_close(*changes)
    step = 1e-2 * torch.ones_like(query)
    torch.testing.assert_close((run(query + step) - run(query - step)) / 2e-2, changes[0], rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_nested_tensors_are_refused_by_name(device, layout):
    value, locations, weights = (tensor.detach() for tensor in inputs(device))
    nested = torch.nested.nested_tensor(list(value), layout=layout)
    for given in (nested, nested.requires_grad_()):
        with pytest.raises(tmaops.InvalidValue, match="value\\n.*a nested tensor"):
            ops.ms_deform_attn(given, LEVELS, locations, weights)
        with pytest.raises(tmaops.InvalidValue, match="values\\n.*a nested tensor"):
            ops.resample(given, torch.arange(36.0), torch.arange(3.0))


def test_vmap_takes_packed_rows_and_matrices(device):
    values, times, targets, source, target = (tensor.detach() for tensor in packed(device))

    def call(values):
        return ops.resample(values, times, targets, source_offsets=source.tolist(), target_offsets=target.tolist())

    stacked = torch.stack([values, values + 1])
    torch.testing.assert_close(torch.vmap(call)(stacked), _by_calls(call, (0,), stacked))
    dtype = torch.float32 if device == "cpu" else torch.float16
    a, b, bias = (torch.randn(3, *shape, device=device, dtype=dtype) for shape in ((4, 5), (5, 2), (2,)))

    def product(a, b, bias):
        return ops.gemm(a, b, bias, activation="silu")

    torch.testing.assert_close(torch.vmap(product)(a, b, bias), _by_calls(product, (0, 0, 0), a, b, bias))


def by_definition(value, locations, weights):
    """The operator by functions that have derivatives of every order: a matrix of tents over the pixels."""
    output, start = 0, 0
    for level, (height, width) in enumerate(LEVELS):
        tents = [
            (
                1 - (locations[..., level, :, axis, None] * side - 0.5 - torch.arange(side, device=value.device)).abs()
            ).relu()
            for axis, side in enumerate((width, height))
        ]
        pixels = value[:, start : start + height * width].unflatten(1, (height, width))
        output = output + torch.einsum("nqmp,nqmpy,nqmpx,nyxmd->nqmd", weights[..., level, :], *tents[::-1], pixels)
        start += height * width
    return output.flatten(2)


def derivatives(function, given):
    """Of all orders and kinds that users of torch.func take; `given` are a function's arguments."""
    func, places = torch.func, tuple(range(len(given)))
    directions = [torch.cos(tensor) for tensor in given]

    def total(*given):
        return function(*given).square().sum()

    def sloped(*given):
        return sum((grad * way).sum() for grad, way in zip(func.grad(total, places)(*given), directions))

    def single(*given):
        return total(*(tensor[None] for tensor in given))

    def cut(first):  # two levels of torch.func, of which the inner one asks for nothing of the operator
        return func.grad(lambda scale: (function(first, *given[1:]) * scale).sum().square())(given[0].sum()).square()

    yield "grad", func.grad(total, places)(*given)
    yield "jvp", func.jvp(total, tuple(given), tuple(directions))
    yield "grad of grad", func.grad(sloped, places)(*given)
    yield "jvp of grad", func.jvp(func.grad(total, places), tuple(given), tuple(directions))[1]
    yield "vmap of grad", func.vmap(func.grad(single, places))(*given)
    yield "jacfwd", func.jacfwd(function)(*given)
    yield "hessian", func.hessian(lambda first: total(first, *given[1:]))(given[0])
    yield "grad beside grad", func.grad(cut)(given[0])


def test_attention_has_derivatives_of_every_order_and_torch_funcs(device, f64):
    given = [tensor.detach() for tensor in inputs(device, f64, queries=2, batch=1, heads=1, channels=2)]
    got = derivatives(lambda value, *rest: ops.ms_deform_attn(value, LEVELS, *rest), given)
    for (kind, mine), (_, theirs) in zip(got, derivatives(by_definition, given), strict=True):
        torch.testing.assert_close(mine, theirs, msg=lambda text, kind=kind: f"{kind}: {text}")


def test_fused_attention_has_second_derivatives(device):
    if device != "cpu":
        pytest.skip("needs f64")
    for components, points in ((2, 2), (4, 2), (4, [1, 2])):
        given = fused_inputs(device, torch.float64, components, points, queries=2)
        assert torch.autograd.gradgradcheck(fused, given, fast_mode=True)


@pytest.mark.parametrize("components", [2, 4])
def test_gradients_copy_numbers_to_the_device_once(device, components, monkeypatch):
    value, offsets, logits, references = fused_inputs(device, torch.float32, components, 3)
    given = (value, offsets[:, :, :, 0], logits[:, :, :, 0], references)

    def ragged(value, offsets, logits, references):
        steps = {"softmax": True, "reference_points": references, "points_per_level": [1, 2]}
        return ops.ms_deform_attn(value, LEVELS, offsets, logits, **steps)

    def gradients():
        first = torch.autograd.grad(ragged(*given).square().sum(), given, create_graph=True)
        return torch.autograd.grad(sum(one.square().sum() for one in first), given)

    wanted = gradients()  # of the same levels and points
    monkeypatch.setattr(torch, "tensor", None)
    monkeypatch.setattr(torch.Tensor, "new_tensor", None)
    for mine, theirs in zip(gradients(), wanted):
        torch.testing.assert_close(mine, theirs)
    if device == "cuda":
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error")
        gradients()
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("outside", ["hold", "nan", "extrapolate"])
def test_resample_has_derivatives_of_every_order_and_torch_funcs(outside, device, f64):
    times, targets = torch.arange(5.0, device=device), torch.tensor([-0.5, 0.2, 3.3, 7.0], device=device)
    values = torch.randn(2, 5, 3, device=device, dtype=f64)
    steps = ops.resample(torch.eye(5, device=device, dtype=f64), times, targets, outside=outside).nan_to_num()
    got = derivatives(lambda given: ops.resample(given, times, targets, outside=outside).nan_to_num(), [values])
    for (kind, mine), (_, theirs) in zip(got, derivatives(lambda given: steps @ given, [values]), strict=True):
        torch.testing.assert_close(mine, theirs, msg=lambda text, kind=kind: f"{kind}: {text}")


def test_forward_mode_goes_with_gradients_and_refuses_what_is_not_linear(device):
    values, times = torch.randn(1, 5, 4, device=device), torch.arange(5.0, device=device)
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        dual = forward.make_dual(values.clone().requires_grad_(), torch.ones_like(values))
        output = ops.resample(dual, times, times[:4] + 0.5)
        torch.testing.assert_close(forward.unpack_dual(output).tangent, torch.ones_like(output))
        assert output.requires_grad
        for mode in ("cubic", "slerp", "min"):
            with pytest.raises(NotImplementedError, match=mode):
                ops.resample(dual, times, times[:4] + 0.5, interpolation=mode)


@pytest.mark.parametrize("pixels", [30, 40])
def test_forward_mode_refuses_levels_that_are_not_those_of_the_value(pixels, device):
    _, locations, weights = (tensor.detach() for tensor in inputs(device))
    value = torch.ones(2, pixels, 2, 4, device=device)
    with pytest.raises(tmaops.Error, match=f"36 pixels\n.*{pixels}"):
        torch.func.jvp(lambda value: ops.ms_deform_attn(value, LEVELS, locations, weights), (value,), (value,))


def test_forward_mode_refuses_f64_of_gemm_as_the_operator_does(device):
    a = torch.ones(2, 2, dtype=torch.float64, device=device)
    for call in (ops.gemm, lambda *given: torch.func.jvp(ops.gemm, given, given)):
        with pytest.raises(tmaops.InvalidType, match="gemm: a"):
            call(a, a)


def test_gemm_has_derivatives_of_every_order_and_torch_funcs(device):
    given = [torch.randn(3, *shape, device=device) for shape in ((4, 5), (5, 2))]
    if device != "cpu":
        pytest.skip("needs f32")

    def product(a, b):
        return torch.nn.functional.gelu(a @ b)

    got = derivatives(lambda a, b: ops.gemm(a, b, activation="gelu"), given)
    for (kind, mine), (_, theirs) in zip(got, derivatives(product, given), strict=True):
        torch.testing.assert_close(mine, theirs, **ROUNDING, msg=lambda text, kind=kind: f"{kind}: {text}")


def test_errors_name_the_argument(device):
    value, locations, weights = inputs(device)
    with pytest.raises(tmaops.Error) as caught:
        ops.ms_deform_attn(value, [(6, 5), (3, 3)], locations, weights)
    assert isinstance(caught.value, ValueError) and caught.value.code == 20
    with pytest.raises(TypeError) as caught:
        ops.gemm(torch.ones(2, 2, device=device), torch.ones(2, 2, device=device, dtype=torch.float16))
    assert caught.value.code in (11, 12)


def test_tensors_that_require_gradients_are_refused_outside(device):
    value, locations, weights = inputs(device)
    with pytest.raises(ValueError, match="tmaops.torch"):
        tmaops.ms_deform_attn(value, LEVELS, locations, weights)


def test_the_plain_functions_take_torch_tensors(device):
    values, times = torch.randn(2, 5, 3, device=device), torch.arange(5.0, device=device)
    got, valid = tmaops.resample(values, times, times[:4] + 0.5, valid=True)
    assert got.device == values.device and valid.dtype is torch.bool
    torch.testing.assert_close(got, (values[:, :4] + values[:, 1:]) / 2)
    assert sum(tmaops.resample_violations(times, times).values()) == 0


def fused_inputs(device, dtype, components, points, queries=3):
    """Value, offsets, logits and reference points; `points` of each level, or one number for all."""
    generator = torch.Generator().manual_seed(components)
    shape = (2, queries, 2, len(LEVELS), points) if isinstance(points, int) else (2, queries, 2, sum(points))
    value = torch.randn(2, 36, 2, 4, generator=generator)
    offsets, logits = torch.randn(*shape, 2, generator=generator), torch.randn(shape, generator=generator)
    references = torch.rand(2, queries, len(LEVELS), components, generator=generator) * 0.6 + 0.2
    return [tensor.to(device, dtype).requires_grad_() for tensor in (value, offsets, logits, references)]


def fused(value, offsets, logits, references, mask=None, levels=LEVELS, scale=0.3, softmax=True):
    points = None if offsets.dim() == 6 else [1, 2]
    return ops.ms_deform_attn(
        value,
        levels,
        offsets,
        logits,
        points_per_level=points,
        softmax=softmax,
        reference_points=references,
        offset_scale=scale,
        padding_mask=mask,
    )


def steps_apart(value, offsets, logits, references, mask, levels=LEVELS, scale=0.3):
    """The same by torch's own functions."""
    weights = logits.flatten(3).softmax(-1).view(logits.shape)
    if offsets.dim() == 5:  # one point of the first level, two of the second: the missing one weighs nothing
        spread = [0, 0, 1, 2]
        offsets = offsets[:, :, :, spread].unflatten(3, (2, 2))
        there = torch.tensor([1.0, 0, 1, 1]).to(weights)
        weights = (weights[:, :, :, spread] * there).unflatten(3, (2, 2))
        counts = torch.tensor([1.0, 2])[:, None, None].to(offsets)
    else:
        counts = offsets.shape[4]
    centres = references[:, :, None, :, None]
    if references.shape[-1] == 2:
        locations = centres + offsets / torch.tensor([[w, h] for h, w in levels]).to(offsets)[:, None]
    else:
        locations = centres[..., :2] + offsets / counts * centres[..., 2:] * scale
    return by_grid_sample(value.masked_fill(mask[..., None, None], 0), levels, locations, weights)


@pytest.mark.parametrize("points", [3, [1, 2]])
@pytest.mark.parametrize("components", [2, 4])
def test_fused_steps_and_their_gradients_agree_with_separate_ones(device, f64, components, points):
    given = fused_inputs(device, f64, components, points)
    mask = torch.rand(2, 36, device=device) < 0.3
    got, wanted = fused(*given, mask), steps_apart(*given, mask)
    torch.testing.assert_close(got, wanted)
    grad = torch.randn_like(wanted)
    mine = torch.autograd.grad(got, given, grad)
    for one, other in zip(mine, torch.autograd.grad(wanted, given, grad)):
        torch.testing.assert_close(one, other, **({} if device == "cpu" else ROUNDING))
    assert (mine[0][mask] == 0).all() and (mine[0][~mask] != 0).any()
    for k in range(4):  # each alone
        torch.testing.assert_close(torch.autograd.grad(fused(*given, mask), given[k], grad)[0], mine[k])


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("points", [2, [1, 2]])
@pytest.mark.parametrize("components", [2, 4])
def test_gradcheck_of_fused_steps_passes(components, points, deterministic):
    given = fused_inputs("cpu", torch.float64, components, points, queries=2)
    mask = torch.rand(2, 36, generator=torch.Generator().manual_seed(1)) < 0.3
    torch.use_deterministic_algorithms(deterministic)
    try:
        assert torch.autograd.gradcheck(lambda *tensors: fused(*tensors, mask), given)
        assert torch.autograd.gradcheck(lambda *tensors: fused(*tensors, mask, softmax=False), given)
        plain = [given[0], given[1].detach() * 0.2 + 0.5, given[2]]
        assert torch.autograd.gradcheck(
            lambda value, logits: fused(value, plain[1], logits, None), (plain[0], plain[2])
        )
    finally:
        torch.use_deterministic_algorithms(False)


def test_queries_that_look_nowhere_have_no_gradients(device):
    value, offsets, logits, references = fused_inputs(device, torch.float32, 4, 3)
    with torch.no_grad():
        references[0, 0] = torch.inf
        references[0, 1, 0, 2] = torch.nan
    grads = torch.autograd.grad(fused(value, offsets, logits, references).sum(), (value, offsets, logits, references))
    assert all(grad.isfinite().all() for grad in grads)
    assert (grads[1][0, 0] == 0).all() and (grads[1][0, 1, :, 0] == 0).all() and (grads[1][0, 2] != 0).any()


def test_the_backward_pass_keeps_offsets_and_logits_alone(device):
    value, offsets, logits, references = fused_inputs(device, torch.float32, 2, 3)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor.data_ptr()) or tensor, lambda x: x):
        fused(value, offsets, logits, references)
    assert sorted(kept) == sorted(tensor.data_ptr() for tensor in (value, offsets, logits, references))


@pytest.mark.parametrize("components", [2, 4])
def test_compiled_fused_calls_take_changing_sizes_without_recompiling(device, components):
    torch._dynamo.reset()

    @torch.compile(fullgraph=True, dynamic=True, backend="aot_eager")
    def step(image, *given):
        return fused(*given, levels=[(image.shape[-2], image.shape[-1]), (3, 2)]) * 2

    for turn, (queries, sides) in enumerate([(7, (6, 5)), (9, (7, 5)), (11, (8, 9))]):
        levels = [sides, (3, 2)]
        _, *points = fused_inputs(device, torch.float32, components, 3, queries)
        given = [inputs(device, levels=levels)[0], *points]
        with torch._dynamo.config.patch(error_on_recompile=turn > 0):
            got = step(torch.empty(1, *sides), *given)
        wanted = 2 * fused(*given, levels=levels)
        torch.testing.assert_close(got, wanted)
        grad = torch.randn(wanted.shape, generator=torch.Generator().manual_seed(turn)).to(wanted)
        for mine, theirs in zip(torch.autograd.grad(got, given, grad), torch.autograd.grad(wanted, given, grad)):
            torch.testing.assert_close(mine, theirs, **ROUNDING)


@pytest.mark.parametrize("components", [2, 4])
def test_steps_that_a_compiled_graph_does_itself_give_the_same(device, components, monkeypatch):
    given = fused_inputs(device, torch.float32, components, 3)
    wanted = fused(*given)
    monkeypatch.setattr(ops, "_STEPS_APART", {(device, torch.float32)})
    torch._dynamo.reset()
    got = torch.compile(fused, fullgraph=True, backend="aot_eager")(*given)
    torch.testing.assert_close(got, wanted)
    grad = torch.randn_like(wanted)
    for mine, theirs in zip(torch.autograd.grad(got, given, grad), torch.autograd.grad(wanted, given, grad)):
        torch.testing.assert_close(mine, theirs, **ROUNDING)


def test_fused_arguments_are_refused_by_name(device):
    value, offsets, logits, references = fused_inputs(device, torch.float32, 2, 3)
    for name, wrong in (
        ("reference_points", {"references": references[..., :1]}),
        ("offset_scale", {"scale": torch.inf}),
        ("padding_mask", {"mask": torch.zeros(2, 35, device=device).bool()}),
        ("padding_mask", {"mask": [True]}),
    ):
        given = {"references": references, **wrong}
        with pytest.raises(tmaops.Error, match=name):
            fused(value, offsets, logits, **given)


class OriginalModule(torch.nn.Module):
    """The module of Deformable DETR by torch's own functions."""

    def __init__(self, module):
        super().__init__()
        self.inner = copy.deepcopy(module)

    def forward(self, query, references, features, shapes, mask):
        m = self.inner
        value = m.value_proj(features).masked_fill(mask[..., None], 0).unflatten(-1, (m.n_heads, -1))
        grid = (*query.shape[:2], m.n_heads, m.n_levels, m.n_points)
        offsets = m.sampling_offsets(query).view(*grid, 2)
        weights = m.attention_weights(query).view(*grid[:3], -1).softmax(-1).view(grid)
        references = references[:, :, None, :, None]
        if references.shape[-1] == 2:
            locations = references + offsets / torch.tensor([[w, h] for h, w in shapes]).to(offsets)[:, None]
        else:
            locations = references[..., :2] + offsets / m.n_points * references[..., 2:] * 0.5
        return m.output_proj(by_grid_sample(value, shapes, locations, weights))


@pytest.mark.parametrize("components", [2, 4])
def test_the_module_agrees_with_its_definition(device, f64, components):
    torch.manual_seed(0)
    module = ops.MSDeformAttn(16, n_levels=2, n_heads=4, n_points=3).to(device, f64)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    original = OriginalModule(module)
    query, features = (torch.randn(2, n, 16, device=device, dtype=f64) for n in (7, 36))
    references = torch.rand(2, 7, 2, components, device=device, dtype=f64)
    mask = torch.rand(2, 36, device=device) < 0.2
    got = module(query, references, features, torch.tensor(LEVELS), torch.tensor([0, 30]), mask)
    wanted = original(query, references, features, LEVELS, mask)
    torch.testing.assert_close(got, wanted)
    got.square().sum().backward()
    wanted.square().sum().backward()
    for mine, theirs in zip(module.parameters(), original.inner.parameters()):
        torch.testing.assert_close(mine.grad, theirs.grad)
    names = {"sampling_offsets", "attention_weights", "value_proj", "output_proj"}
    assert set(module.state_dict()) == {f"{name}.{part}" for name in names for part in ("weight", "bias")}


def test_the_module_keeps_locations_f32_under_autocast(device):
    module = ops.MSDeformAttn(16, n_levels=2, n_heads=4, n_points=3).to(device)
    query, features = torch.randn(2, 7, 16, device=device), torch.randn(2, 36, 16, device=device)
    references = torch.rand(2, 7, 2, 2, device=device)
    wanted = module(query, references, features, LEVELS)
    with torch.autocast(device, dtype=torch.bfloat16):
        got = module(query, references, features, LEVELS)
    assert (got - wanted).norm() < 0.03 * wanted.norm()


@pytest.mark.parametrize("autocast", [False, True])
def test_the_module_keeps_its_queries_once(device, autocast):
    module = ops.MSDeformAttn(16, n_levels=2, n_heads=4, n_points=3).to(device, None if autocast else torch.bfloat16)
    query, features = (torch.randn(2, n, 16, device=device).bfloat16() for n in (7, 36))
    references, kept = torch.rand(2, 7, 2, 2, device=device), {}
    with (
        torch.autograd.graph.saved_tensors_hooks(lambda x: kept.setdefault(x.data_ptr(), x), lambda x: x),
        torch.autocast(device, torch.bfloat16, enabled=autocast),
    ):
        module(query.requires_grad_(), references, features, LEVELS)
    queries = [x for x in kept.values() if x.numel() == query.numel() and (x.view_as(query) == query).all()]
    assert [x.dtype for x in queries] == [torch.bfloat16 if device == "cuda" else torch.float32]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_offsets_of_many_queries_are_made_again(device, dtype, monkeypatch):
    torch.manual_seed(0)
    module = ops.MSDeformAttn(16, n_levels=2, n_heads=4, n_points=3).to(device, dtype)
    query, features = (torch.randn(2, n, 16, device=device, dtype=dtype) for n in (7, 36))
    references, gradients, made = torch.rand(2, 7, 2, 2, device=device), {}, []
    linear = torch.nn.functional.linear
    for many in (math.inf, 1):
        monkeypatch.setitem(ops._MANY, device, many)
        output = module(query, references, features, LEVELS)
        monkeypatch.setattr(torch.nn.functional, "linear", lambda *args: made.append(many) or linear(*args))
        output.float().square().sum().backward()
        monkeypatch.undo()
        gradients[many] = [parameter.grad for parameter in module.parameters()]
        module.zero_grad()
    assert device == "cuda" or made == [1, 1]
    for mine, theirs in zip(gradients[1], gradients[math.inf]):
        torch.testing.assert_close(mine, theirs)
    monkeypatch.setitem(ops._MANY, device, 1)
    output = module(query, references, features, LEVELS)
    with torch.no_grad():
        module.sampling_offsets.weight.add_(1)
    with pytest.raises(RuntimeError, match="modified in place"):
        output.float().sum().backward()
    monkeypatch.setitem(ops._MANY, device, 1)
    with torch.autograd.graph.save_on_cpu():  # other hooks have what is kept
        module(query, references, features, LEVELS).float().sum().backward()


@pytest.mark.parametrize("autocast", [False, True])
def test_modules_are_one_graph(device, autocast):
    attention, layer = ops.MSDeformAttn(16, n_levels=2, n_heads=4, n_points=3), ops.Linear(16, 16, activation="gelu")
    query, features, references = torch.randn(2, 7, 16), torch.randn(2, 36, 16), torch.rand(2, 7, 2, 2)
    given = [tensor.to(device) for tensor in (query, references, features)]
    model = torch.nn.ModuleList([attention, layer]).to(device)

    def run(query, references, features):
        return model[0](model[1](query), references, features, LEVELS)

    with torch.autocast(device, torch.bfloat16, enabled=autocast), torch.no_grad():
        got = torch.compile(run, fullgraph=True, backend="aot_eager")(*given)
        torch.testing.assert_close(got, run(*given))


def test_a_compiled_graph_names_no_options_at_their_defaults(device):
    calls = []

    def backend(graph, _):
        calls.extend(len(node.args) + len(node.kwargs) for node in graph.graph.nodes if "tmaops" in str(node.target))
        return graph

    value, locations, weights = inputs(device, torch.float32)
    torch.compile(lambda: ops.ms_deform_attn(value, LEVELS, locations, weights), backend=backend)()
    torch.compile(lambda: ops.ms_deform_attn(value, LEVELS, locations, weights, softmax=True), backend=backend)()
    assert calls == [4, 8]


def _train(rank, file, results):
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=2)
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(ops.MSDeformAttn(16, n_levels=2, n_heads=4, n_points=3))
    torch.manual_seed(1)
    queries, features, references = torch.randn(2, 7, 16), torch.randn(2, 36, 16), torch.rand(2, 7, 2, 2)
    model(
        queries[rank : rank + 1], references[rank : rank + 1], features[rank : rank + 1], LEVELS
    ).square().mean().backward()
    if rank == 0:
        torch.save([parameter.grad for parameter in model.parameters()], results)
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
    # Without the interpreter's clean-up, during which threads of gloo that still run may abort the process.
    os._exit(0)


def test_two_processes_train_as_one(tmp_path):
    results = tmp_path / "gradients"
    start = "spawn" if torch.cuda.is_initialized() else "fork"  # the latter imports nothing again
    torch.multiprocessing.start_processes(_train, (str(tmp_path / "store"), str(results)), nprocs=2, start_method=start)
    torch.manual_seed(0)
    model = ops.MSDeformAttn(16, n_levels=2, n_heads=4, n_points=3)
    torch.manual_seed(1)
    queries, features, references = torch.randn(2, 7, 16), torch.randn(2, 36, 16), torch.rand(2, 7, 2, 2)
    model(queries, references, features, LEVELS).square().mean().backward()
    for parameter, together in zip(model.parameters(), torch.load(results)):
        torch.testing.assert_close(together, parameter.grad)


def test_both_registrations_are_tested():
    """The wheel's library is used unless Python is asked for."""
    assert ops.native == (os.environ.get("TMAOPS_TORCH") != "python")


def test_numpy_and_torch_share_memory_with_the_operator():
    values = np.ones((1, 3, 1), np.float32)
    got = tmaops.resample(torch.from_numpy(values), torch.arange(3.0), torch.tensor([0.5]))
    assert isinstance(got, torch.Tensor) and got.item() == 1


@pytest.mark.parametrize("sampling, corners", [("bilinear", 4), ("nearest", 1)])
def test_the_flop_counter_of_torch_sees_the_operators(sampling, corners):
    value, locations, weights = torch.ones(2, 20, 3, 8), torch.rand(2, 5, 3, 2, 4, 2), torch.ones(2, 5, 3, 2, 4)
    products = 2 * corners * weights.numel() * 8
    with torch.utils.flop_counter.FlopCounterMode(display=False) as counter:
        output = ops.ms_deform_attn(value.requires_grad_(), [(4, 4), (2, 2)], locations, weights, sampling=sampling)
        assert counter.get_total_flops() == products
        output.sum().backward()
        assert counter.get_total_flops() == 3 * products
    with torch.utils.flop_counter.FlopCounterMode(display=False) as counter:
        ops.gemm(torch.ones(7, 5), torch.ones(5, 3))
    assert counter.get_total_flops() == 2 * 7 * 5 * 3
