"""tmaops.torch.linear and Linear as torch has them, and resample of arrays of any rank."""

import subprocess
import sys

import numpy as np
import pytest
import tmaops

torch = pytest.importorskip("torch")

import tmaops.torch as ops

TORCH = {"none": lambda x: x, "relu": torch.relu, "gelu": torch.nn.functional.gelu, "silu": torch.nn.functional.silu}


@pytest.mark.parametrize("shape", [(8,), (5, 8), (2, 3, 8), (9, 8), (0, 8), (3, 4, 5, 8)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_layers_take_what_those_of_torch_take(device, shape, dtype):
    torch.manual_seed(0)
    for activation in ("none", "gelu"):
        layer = ops.Linear(8, 6, activation=activation, device=device, dtype=dtype)
        plain = torch.nn.Linear(8, 6, device=device, dtype=dtype)
        layer.load_state_dict(plain.state_dict())  # the names of torch's layer, and its own
        layer.load_state_dict(layer.state_dict())
        x = torch.randn(shape, device=device, dtype=dtype, requires_grad=True)
        got, wanted = layer(x), TORCH[activation](plain(x))
        assert got.shape == wanted.shape and got.dtype is wanted.dtype
        near = {"rtol": 2e-2, "atol": 2e-2} if dtype.itemsize == 2 else {}
        torch.testing.assert_close(got, wanted, **near)
        grad = torch.randn_like(wanted)
        mine = torch.autograd.grad(got, (x, layer.linear.weight, layer.linear.bias), grad)
        theirs = torch.autograd.grad(wanted, (x, plain.weight, plain.bias), grad)
        for one, other in zip(mine, theirs):
            torch.testing.assert_close(one, other, **near)


def test_autocast_converts_as_for_layers_of_torch(device):
    layer, x = ops.Linear(8, 6, activation="relu", device=device), torch.randn(16, 8, device=device, requires_grad=True)
    with torch.autocast(device, torch.bfloat16):
        got, wanted = layer(x), torch.relu(torch.nn.functional.linear(x, layer.linear.weight, layer.linear.bias))
        assert layer.double()(x.double()).dtype is torch.nn.functional.linear(x.double(), layer.linear.weight).dtype
    assert got.dtype is wanted.dtype is torch.bfloat16
    torch.testing.assert_close(got, wanted, rtol=2e-2, atol=2e-2)
    got.sum().backward()
    assert x.grad.dtype is torch.float32


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_is_no_tensor_is_refused_by_name(dtype):
    x, weight = torch.ones(9, 8, dtype=dtype), torch.ones(6, 8, dtype=dtype)
    for what, given in {"x": (None, weight), "weight": (x, weight.tolist())}.items():
        with pytest.raises(tmaops.InvalidType, match=f"linear: {what}"):
            ops.linear(*given)
    with pytest.raises(tmaops.InvalidType, match="linear: out_dtype"):
        ops.linear(x, weight, out_dtype="float32")


@pytest.mark.parametrize("resample", [tmaops.resample, ops.resample])
def test_an_axis_is_a_whole_number_of_any_kind(resample):
    values, times = torch.rand(2, 5, 3), torch.arange(5.0)
    wanted = resample(values, times, times[:-1] + 0.5, outside=None)
    for axis in (np.int64(1), torch.tensor(1), -2):
        assert torch.equal(resample(values, times, times[:-1] + 0.5, axis=axis), wanted)
    for axis in (1.0, "1", 3):
        with pytest.raises(tmaops.InvalidValue, match="resample: axis"):
            resample(values, times, times, axis=axis)


def test_layers_pass_gradcheck_and_are_printed():
    layer = ops.Linear(4, 3, activation="silu", dtype=torch.float64)
    assert torch.autograd.gradcheck(layer, (torch.randn(2, 4, dtype=torch.float64, requires_grad=True),))
    assert repr(layer).startswith("Linear(\n  activation='silu'\n  (linear): Linear(in_features=4")
    with pytest.raises(tmaops.Error, match="one of none, relu, gelu, silu"):
        ops.linear(torch.ones(2, 4), torch.ones(3, 4), activation="tanh")


class Added(torch.nn.Module):
    """What LoRA puts in the place of a layer."""

    def __init__(self, layer):
        super().__init__()
        self.base_layer, self.added = layer, torch.nn.Linear(8, 6, bias=False, dtype=layer.weight.dtype)

    def forward(self, x):
        return self.base_layer(x) + self.added(x)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_takes_the_place_of_a_layer_comes_before_the_activation(device, dtype, bias):
    """Tools that replace each torch.nn.Linear of a model, LoRA of PEFT for one, found the activation in it."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(ops.Linear(8, 6, bias, activation="relu", device=device, dtype=dtype))
    x = torch.randn(16, 8, device=device, dtype=dtype)
    own = dict(model.named_modules())
    linears = [name for name, module in own.items() if isinstance(module, torch.nn.Linear)]
    assert linears == ["0.linear"]
    plain = model(x)
    torch.testing.assert_close(plain, torch.relu(own["0.linear"](x)), rtol=2e-2, atol=2e-2)
    handle = own["0.linear"].register_forward_hook(lambda layer, given, sums: sums - 1)
    torch.testing.assert_close(model(x), torch.relu(own["0.linear"](x)))
    handle.remove()
    model[0].linear = Added(own["0.linear"]).to(device)
    torch.testing.assert_close(model(x), torch.relu(model[0].linear(x)))
    assert not torch.equal(model(x), plain)


def test_f32_on_the_cpu_is_the_work_of_torch():
    """So a layer there is never slower; gemm has the 16-bit rows."""
    calls = []

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            calls.append(str(function))
            return function(*args, **(kwargs or {}))

    for dtype, rows, ours in ((torch.float32, 64, False), (torch.bfloat16, 1, False), (torch.bfloat16, 64, True)):
        calls.clear()
        with Watch():
            ops.linear(torch.ones(rows, 8, dtype=dtype), torch.ones(6, 8, dtype=dtype))
        assert any("tmaops" in name for name in calls) == ours, (dtype, rows, calls)


LIBRARIES = {"numpy": np.asarray, "torch": torch.from_numpy}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(
    "shape, axis", [((5,), None), ((5, 3), None), ((5,), -1), ((3, 5), 1), ((2, 3, 5), -1), ((2, 5, 3, 4), 1)]
)
def test_samples_lie_along_any_axis(library, shape, axis):
    make = LIBRARIES[library]
    values, times, targets = np.random.default_rng(0).random(shape), np.arange(5.0), np.array([0.5, 3.25, 9])
    place = 0 if axis is None else axis % len(shape)
    wanted = np.apply_along_axis(lambda samples: np.interp(targets, times, samples), place, values)
    more = {} if axis is None else {"axis": axis}
    got = tmaops.resample(make(values), make(times), make(targets), **more)
    assert type(got) is type(make(values))
    np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-12)
    got, valid = tmaops.resample(make(values), make(times), grid=(0.5, 1.0, 6), outside="nan", valid=True, **more)
    assert got.shape[place] == 6 and np.asarray(valid).tolist() == [True] * 4 + [False] * 2
    if library == "torch":
        given = make(values).requires_grad_()
        got = ops.resample(given, make(times), make(targets), **more)
        np.testing.assert_allclose(got.detach().numpy(), wanted, rtol=1e-12)
        got.sum().backward()
        assert given.grad.shape == given.shape and given.grad.sum().item() == pytest.approx(got.numel())


def test_outputs_of_few_dimensions_are_written():
    values, times, targets = np.arange(10.0).reshape(5, 2), np.arange(5.0), np.array([0.5, 2])
    out, one = np.zeros((2, 2)), np.zeros(2)
    assert tmaops.resample(values, times, targets, out=out) is out
    np.testing.assert_array_equal(out, [[1, 2], [4, 5]])
    assert tmaops.resample(np.ascontiguousarray(values[:, 0]), times, targets, out=one) is one
    np.testing.assert_array_equal(one, [1, 4])
    for wrong in ({"axis": 2}, {"axis": 0, "out": out}, {"axis": 0, "source_offsets": [0, 5]}):
        with pytest.raises(tmaops.Error, match="resample: (axis|out)"):
            tmaops.resample(values, times, targets, **wrong)


def test_calls_work_under_a_debugger():
    """A trace function writes the variables of a frame into its locals(), from which calls take their arguments."""
    code = (
        "import sys, numpy, tmaops\n"
        "def trace(frame, event, argument):\n"
        "    frame.f_locals\n"
        "    return trace\n"
        "values, times = numpy.arange(4.0), numpy.arange(4.0)\n"
        "sys.settrace(trace)\n"
        "print(tmaops.resample(values, times, times[:2] + 0.5), tmaops.resample(values[None, :, None], times, times).shape)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.stdout == "[0.5 1.5] (1, 4, 1)\n", run.stderr


def test_a_small_call_makes_few_calls_in_python():
    """A word or a flag that is left at its default is neither looked up nor written; an array is read by its attributes."""
    code = (
        "import sys, numpy, tmaops\n"
        "values, times, targets = numpy.ones((1, 10, 2), 'f4'), numpy.arange(10.0)[None], numpy.array([[0.5, 4.5]])\n"
        "for given in ((values, times, targets), (values[0], times[0], targets[0])):\n"
        "    tmaops.resample(*given)\n"
        "    calls = []\n"
        "    sys.setprofile(lambda frame, event, what: calls.append(event) if event.endswith('call') else None)\n"
        "    tmaops.resample(*given)\n"
        "    sys.setprofile(None)\n"
        "    print(len(calls))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True
    )  # where no other library is imported
    found = [int(line) for line in run.stdout.split()]
    assert len(found) == 2 and 20 < found[0] <= 120 and 20 < found[1] <= 140, (found, run.stderr)


def test_the_address_of_an_array_is_that_of_its_first_element():
    from tmaops._arrays import _data_of

    whole = np.arange(24.0).reshape(4, 6)
    frozen = whole.copy()
    frozen.flags.writeable = False
    for array in (
        whole,
        whole[1:, ::2],
        whole.T,
        whole[::-1],
        frozen,
        np.empty((0, 3)),
        np.zeros(()),
        whole.view(np.recarray),
    ):
        assert _data_of(array) == array.ctypes.data
