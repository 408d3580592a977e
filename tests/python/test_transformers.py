"""Models of transformers with and without tmaops: random weights, irregular offsets, outputs and the gradients of all parameters."""

import copy
import importlib
import pathlib
import re

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import models
import tmaops
import tmaops.compat.transformers as compat
from functorch.compile import make_boxed_func
from torch._functorch.aot_autograd import aot_module_simplified

# The lowest-order bits of D-FINE's features are multiplied more than those of the others.
CASES = [(name, {}, 1e-8 if name == "d_fine" else 1e-9) for name in models.SMALL] + [
    ("deformable_detr", {"two_stage": True, "with_box_refine": True, "two_stage_num_proposals": 6}, 1e-9),
    ("rt_detr_v2", {"decoder_method": "discrete"}, 1e-9),
    ("d_fine", {"decoder_method": "discrete"}, 1e-8),
]


def small(name, options=None):
    if not hasattr(transformers.models, name):
        pytest.skip(f"transformers {transformers.__version__} has no {name}")
    torch.manual_seed(0)
    model = models.SMALL[name](**options or {}).double().eval()
    models.scramble(model)
    return model


def run(model, given, autocast=None):
    """Outputs, and the gradients of all parameters."""
    for name in (
        "language_cache_class",
        "language_cache_prompt",
    ):  # what OmDet-Turbo computed of the words, with its graph
        if hasattr(model, name):
            getattr(model, name).cache.clear()
    with torch.autocast(given["pixel_values"].device.type, dtype=autocast, enabled=autocast is not None):
        outputs = list(models.outputs(model(**given)))
    models.loss(outputs).backward()
    return outputs, {name: parameter.grad for name, parameter in model.named_parameters()}


def distance(got, wanted):
    """Relative distance over all tensors together."""
    pairs = [(mine.detach().cpu().double(), theirs.detach().cpu().double()) for mine, theirs in zip(got, wanted)]
    difference = sum((mine - theirs).square().sum() for mine, theirs in pairs)
    return (difference / sum(theirs.square().sum() for _, theirs in pairs)).sqrt().item()


@pytest.fixture
def patched(monkeypatch):
    """Runs a model on tmaops, and counts the calls of its operator."""
    compat.unpatch()
    calls = []
    ops, attention = compat.ops, compat.ops.ms_deform_attn
    monkeypatch.setattr(ops, "ms_deform_attn", lambda *args, **more: calls.append(1) or attention(*args, **more))

    def run_patched(model, *args):
        compat.patch(model)
        try:
            return run(model, *args)
        finally:
            compat.unpatch()

    run_patched.calls = calls
    return run_patched


def name_of(given):
    return "_".join(map(str, given.values())) if isinstance(given, dict) else given if isinstance(given, str) else ""


@pytest.mark.parametrize("name, options, tolerance", CASES, ids=name_of)
def test_models_agree_with_their_own_code(name, options, tolerance, device, patched):
    if device != "cpu":
        pytest.skip("f64 runs on the CPU")
    original = small(name, options)
    model = copy.deepcopy(original)
    given = models.inputs(name, dtype=torch.float64)
    wanted, wanted_gradients = run(original, given)
    got, gradients = patched(model, given)
    assert len(patched.calls) >= 2
    assert len(got) == len(wanted) > 0
    assert distance(got, wanted) < tolerance
    for parameter, gradient in wanted_gradients.items():
        assert (gradient is None) == (gradients[parameter] is None), parameter
    names = [parameter for parameter, gradient in wanted_gradients.items() if gradient is not None]
    assert any("sampling_offsets" in parameter for parameter in names) or options.get("decoder_method") == "discrete"
    assert (
        distance([gradients[parameter] for parameter in names], [wanted_gradients[parameter] for parameter in names])
        < tolerance
    )


def compare_with_f64(model, name, size, device, autocast, run_patched):
    """Distances from the f64 model, of outputs and of gradients: of the model's own code, and on tmaops."""
    with torch.device("cpu"):
        exact, exact_gradients = run(copy.deepcopy(model).double(), models.inputs(name, *size, dtype=torch.float64))
    plain = model.float().to(device)
    given = models.inputs(name, *size, device=device)
    distances = []
    for runner in (run, run_patched):
        got, gradients = runner(copy.deepcopy(plain), given, autocast)
        assert len(got) == len(exact) > 0
        names = [parameter for parameter, gradient in exact_gradients.items() if gradient is not None]
        distances.append(
            (distance(got, exact), distance([gradients[n] for n in names], [exact_gradients[n] for n in names]))
        )
    assert len(run_patched.calls) >= 2
    return distances


TYPES = [None, torch.float16, torch.bfloat16]


@pytest.mark.parametrize("autocast", TYPES, ids=str)
@pytest.mark.parametrize("name", models.SMALL)
def test_small_models_are_as_near_to_f64_as_their_own_code(name, autocast, device, patched, request):
    # On the CPU, where f64 agrees as well, one model of each signature.
    if (
        device == "cpu"
        and not request.config.getoption("--slow")
        and (name not in ("deformable_detr", "mask2former", "rt_detr_v2") or autocast is torch.float16)
    ):
        pytest.skip("needs --slow or --device cuda")
    (own, own_gradients), (ours, our_gradients) = compare_with_f64(
        small(name), name, (64, 64), device, autocast, patched
    )
    print(f"{name}: outputs {own:.2g} {ours:.2g}, gradients {own_gradients:.2g} {our_gradients:.2g}")
    assert ours <= 1.2 * own
    assert our_gradients <= 1.2 * own_gradients


@pytest.mark.slow
@pytest.mark.parametrize("autocast", TYPES, ids=str)
@pytest.mark.parametrize("name", models.WHOLE)
def test_whole_models_are_as_near_to_f64_as_their_own_code(name, autocast, device, patched):
    torch.manual_seed(0)
    model = models.WHOLE[name]().double().eval()
    models.scramble(model)
    (own, own_gradients), (ours, our_gradients) = compare_with_f64(model, name, (192, 192), device, autocast, patched)
    print(f"{name}: outputs {own:.2g} {ours:.2g}, gradients {own_gradients:.2g} {our_gradients:.2g}")
    assert ours <= 1.2 * own


def breaks_of(name, model):
    """Where torch.compile breaks the model's graph, and how many operators of tmaops all its graphs hold."""
    found = []

    def backend(graph, _):
        found.extend(node for node in graph.graph.nodes if "tmaops" in str(node.target))
        return graph.forward

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    with torch.no_grad():
        torch.compile(model, backend=backend)(**models.inputs(name))
    return sum(torch._dynamo.utils.counters["graph_break"].values()), len(found)


# Their own code looks at the levels on the device in every layer, which ends a graph.
BREAKING = ("rt_detr_v2", "d_fine", "deimv2", "grounding_dino", "mm_grounding_dino")


@pytest.mark.parametrize("name", models.SMALL)
def test_compiled_graphs_break_nowhere_that_the_models_own_code_does_not(name, request):
    if not request.config.getoption("--slow") and name != "rt_detr_v2":
        pytest.skip("needs --slow")
    original = small(name).float()
    model = copy.deepcopy(original)
    compat.patch(model)
    try:
        breaks, operators = breaks_of(name, model)
    finally:
        compat.unpatch()
    assert operators >= 2
    assert breaks == 0 or name not in BREAKING and breaks <= breaks_of(name, original)[0]


def test_the_operator_makes_the_models_check_of_levels():
    model = small("rt_detr_v2").float()
    layer = next(layer for layer in model.modules() if "MultiscaleDeformableAttention" in type(layer).__name__)
    shapes = [(4, 4), (2, 2), (1, 1)]
    states, pixels = torch.rand(1, 3, 32), torch.rand(1, 22, 32)  # 21 pixels would be right
    compat.patch(model)
    try:
        with pytest.raises(tmaops.Error, match="21"):
            layer(
                states,
                encoder_hidden_states=pixels,
                reference_points=torch.rand(1, 3, 1, 4),
                spatial_shapes=torch.tensor(shapes),
                spatial_shapes_list=shapes,
            )
    finally:
        compat.unpatch()


def test_under_autocast_nothing_stands_between_the_operator_and_the_next_linear():
    seen = []

    def compiler(graph, _):
        seen.extend(graph.graph.nodes)
        return make_boxed_func(graph.forward)

    linear = torch.nn.Linear(16, 16)

    def layer(value, locations, weights):
        return linear(compat.multi_scale_deformable_attention(value, [(4, 4)], locations, weights))

    given = torch.rand(1, 16, 2, 8).bfloat16(), torch.rand(1, 3, 2, 1, 4, 2), torch.rand(1, 3, 2, 1, 4)
    compiled = torch.compile(layer, backend=lambda *graph: aot_module_simplified(*graph, fw_compiler=compiler))
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert compat.multi_scale_deformable_attention(given[0], [(4, 4)], *given[1:]).dtype is torch.bfloat16
        compiled(*given)
    (operator,) = (node for node in seen if "tmaops" in str(node.target))
    assert operator.target is torch.ops.tmaops.ms_deform_attn_kernel.default  # below autograd: no Python runs in a call
    after = [node for node in operator.users]
    while after and "view" in str(after[0].target):
        after = list(after[0].users)
    assert [node.target for node in after] == [torch.ops.aten.addmm.default]


def test_every_model_file_with_the_operator_is_patched_as_it_is_imported_and_given_back():
    """The list is read from the installed transformers, so that a new model is seen."""
    folder = pathlib.Path(transformers.__file__).parent / "models"
    operator = re.compile(
        r"^(class MultiScaleDeformableAttention\b|def multi_scale_deformable_attention(_v2)?\b)", re.MULTILINE
    )
    files = [
        file for file in sorted(folder.glob("*/modeling_*.py")) if operator.search(file.read_text(encoding="utf-8"))
    ]
    assert {file.parent.name for file in files} <= set(models.SMALL), "a model that models.py does not have"
    names = sorted(
        (f"transformers.models.{file.parent.name}.{file.stem}" for file in files),
        key=lambda name: "deformable_detr" not in name,
    )
    assert len(names) >= 10
    importlib.import_module(names[0])
    compat.patch()
    try:
        for name in names:
            module = importlib.import_module(name)
            held = [
                getattr(module, function) is getattr(compat, function)
                for function in ("multi_scale_deformable_attention", "multi_scale_deformable_attention_v2")
                if hasattr(module, function)
            ]
            if hasattr(module, "MultiScaleDeformableAttention"):
                held.append(module.MultiScaleDeformableAttention.forward is compat.forward)
            assert held and all(held), name
    finally:
        compat.unpatch()
    assert importlib.import_module(names[0]).MultiScaleDeformableAttention.forward is not compat.forward


def test_layers_like_deformable_detrs_leave_their_steps_to_the_operator():
    modules = {
        name: importlib.import_module(f"transformers.models.{name}.modeling_{name}")
        for name in ("deformable_detr", "rt_detr", "grounding_dino", "rt_detr_v2", "d_fine")
    }
    layers = {
        name: next(vars(module)[what] for what in vars(module) if what.endswith("MultiscaleDeformableAttention"))
        for name, module in modules.items()
    }
    own = {name: layer.forward for name, layer in layers.items()}
    compat.patch()
    try:
        patched = {name for name, layer in layers.items() if layer.forward is compat._layer_forward}
    finally:
        compat.unpatch()
    assert patched == {"deformable_detr", "rt_detr", "grounding_dino"}  # the others have steps of another form
    assert {name: layer.forward for name, layer in layers.items()} == own


@pytest.mark.parametrize("autocast", [None, torch.bfloat16], ids=str)
def test_offsets_that_are_made_again_give_the_same_gradients(autocast, monkeypatch):
    """What a GPU does for encoders, whose offsets take much memory."""
    model, given, gradients, runs = small("deformable_detr").float(), models.inputs("deformable_detr"), [], []
    linear = torch.nn.functional.linear
    monkeypatch.setattr(torch.nn.functional, "linear", lambda *args: runs.append(args) or linear(*args))
    compat.patch(model)
    try:
        for many in (float("inf"), 1):
            monkeypatch.setitem(tmaops.torch._MANY, "cpu", many)
            model.zero_grad()
            runs.append(many)
            made = run(model, given, autocast)[1].values()
            gradients.append([gradient for gradient in made if gradient is not None])
    finally:
        compat.unpatch()
    second = runs.index(1)
    assert len(runs) - 1 - second == second - 1 + 2 * 4  # two layers of each of four attentions
    assert distance(*gradients) < (1e-6 if autocast is None else 2e-2)


def test_the_weights_of_patched_layers_are_those_of_the_model(patched):
    model = small("deformable_detr", {}).float()
    given = {**models.inputs("deformable_detr"), "output_attentions": True}
    with torch.no_grad():
        wanted = model(**given).encoder_attentions
        compat.patch(model)
        try:
            got = model(**given).encoder_attentions
        finally:
            compat.unpatch()
    assert len(got) == len(wanted) > 0
    for mine, theirs in zip(got, wanted):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", ["deformable_detr", "rt_detr"])
def test_the_layer_for_kernel_hubs_is_loaded_from_disk_and_agrees(name, device):
    kernels = pytest.importorskip("kernels")
    from tmaops.compat import hub

    model = small(name).to(device, torch.float64 if device == "cpu" else torch.float32)
    layers = [layer for layer in model.modules() if type(layer).__name__ == hub.LAYER]
    if not hasattr(
        type(layers[0]), "kernel_layer_name"
    ):  # transformers names its layers for some versions of kernels alone
        kernels.use_kernel_forward_from_hub(hub.LAYER)(type(layers[0]))
    given = models.inputs(name, device=device, dtype=model.dtype)
    wanted, wanted_gradients = run(copy.deepcopy(model), given)
    place = kernels.LocalLayerRepository(hub.FOLDER, layer_name=hub.LAYER)
    with kernels.use_kernel_mapping({hub.LAYER: {device: place}}, inherit_mapping=False):
        layered = kernels.kernelize(
            model, mode=kernels.Mode.TRAINING | kernels.Mode.TORCH_COMPILE, device=device, use_fallback=False
        )
    assert all("tmaops" in layer.forward.__func__.__module__ for layer in layers)
    got, gradients = run(layered, given)
    tolerance = 1e-9 if device == "cpu" else 1e-4
    assert distance(got, wanted) < tolerance
    names = [parameter for parameter, gradient in wanted_gradients.items() if gradient is not None]
    assert distance([gradients[n] for n in names], [wanted_gradients[n] for n in names]) < tolerance
