"""Each row of the documents' table of repositories: its line puts tmaops under code with that repository's own signatures.

The stand-ins are written here: the names, arguments and layouts are the repositories', the work is done by torch's grid_sample.
"""

import functools
import importlib.util
import inspect
import pathlib
import re
import sys
import types
import warnings

import pytest

torch = pytest.importorskip("torch")

import tmaops.compat
import tmaops.compat.detr
import tmaops.compat.mmcv
from test_torch import LEVELS, by_grid_sample, inputs

DOUBLE = torch.float64
SHAPES, STARTS = torch.tensor(LEVELS), torch.tensor([0, 30])
PIXELS = [height * width for height, width in LEVELS]


def by_points(value, levels, locations, weights, points):
    """grid_sample over numbers of points that differ from level to level: (N, Lq, M, sum, 2)."""
    output = 0
    starts = [sum(PIXELS[:level]) for level in range(len(levels))]
    for start, level, place, weight in zip(starts, levels, locations.split(points, 3), weights.split(points, 3)):
        pixels = value[:, start : start + level[0] * level[1]]
        output = output + by_grid_sample(pixels, [level], place[:, :, :, None], weight[:, :, :, None])
    return output


def leaves(*tensors):
    return [tensor.detach().to(DOUBLE).requires_grad_() for tensor in tensors]


# --- stand-ins: a module with the repository's function, and how the repository's layer calls it ----------------------------


def mmcv_function(value, value_spatial_shapes, sampling_locations, attention_weights):
    return by_grid_sample(value, value_spatial_shapes.tolist(), sampling_locations, attention_weights)


def ultralytics_function(value, value_spatial_shapes, sampling_locations, attention_weights):
    points = [sampling_locations.shape[3] // len(value_spatial_shapes)] * len(value_spatial_shapes)
    return by_points(value, value_spatial_shapes, sampling_locations, attention_weights, points)


def core_function(value, value_spatial_shapes, sampling_locations, attention_weights):
    return by_grid_sample(
        value, [tuple(shape) for shape in value_spatial_shapes], sampling_locations, attention_weights
    )


def rfdetr_function(value, value_spatial_shapes, sampling_locations, attention_weights, value_spatial_shapes_hw=None):
    if sampling_locations.dim() == 5:
        sampling_locations = sampling_locations.unflatten(3, (len(LEVELS), -1))
    weights = attention_weights.reshape(sampling_locations.shape[:-1])
    return by_grid_sample(value.permute(0, 3, 1, 2), value_spatial_shapes_hw or LEVELS, sampling_locations, weights)


def rtdetr_v2_function(
    value, value_spatial_shapes, sampling_locations, attention_weights, num_points_list, method="default"
):
    return by_points(value, value_spatial_shapes, sampling_locations, attention_weights, num_points_list)


def dfine_function(
    value,
    value_spatial_shapes,
    sampling_locations,
    attention_weights,
    num_points_list,
    method="default",
    value_shape="default",
):
    value = torch.cat([level.flatten(3) for level in value], -1).permute(0, 3, 1, 2)
    return by_points(value, value_spatial_shapes, sampling_locations, attention_weights, num_points_list)


def folded_points(value, locations, weights):
    return value, locations.flatten(3, 4), weights.flatten(3, 4)


def levels_of(value):
    return list(value.permute(0, 2, 3, 1).split(PIXELS, -1))


def whole(function, value, locations, weights):
    return function(value, SHAPES, locations, weights)


def listed(function, value, locations, weights):
    return function(value, LEVELS, *folded_points(value, locations, weights)[1:])


def channels_first(function, value, locations, weights):
    return function(value.permute(0, 2, 3, 1).contiguous(), SHAPES, locations, weights.flatten(3), LEVELS)


def channels_first_exported(function, value, locations, weights):
    return function(value.permute(0, 2, 3, 1), SHAPES, locations.flatten(3, 4), weights.flatten(3), LEVELS)


def ragged(function, value, locations, weights):
    _, locations, weights = folded_points(value, locations, weights)
    return function(value, LEVELS, locations, weights, [2, 4])


def ragged_levels(function, value, locations, weights):
    _, locations, weights = folded_points(value, locations, weights)
    return function(levels_of(value), LEVELS, locations, weights, [2, 4], value_shape="default")


def ragged_images(function, value, locations, weights):
    _, locations, weights = folded_points(value, locations, weights)
    images = [level.unflatten(-1, shape) for level, shape in zip(levels_of(value), LEVELS)]
    return function(images, LEVELS, locations, weights, [1, 5])


PYTORCH, CORE = "multi_scale_deformable_attn_pytorch", "ms_deform_attn_core_pytorch"
FUNC, FUNC_V2 = "deformable_attention_core_func", "deformable_attention_core_func_v2"
ROWS = {
    "mmcv": ("detector_of_mmcv", PYTORCH, mmcv_function, whole),
    "ultralytics": ("ultralytics.nn.modules.transformer", PYTORCH, ultralytics_function, listed),
    "detrex": ("detrex.layers.multi_scale_deform_attn", PYTORCH, mmcv_function, whole),
    "GroundingDINO": ("groundingdino.models.GroundingDINO.ms_deform_attn", PYTORCH, mmcv_function, whole),
    "Deformable DETR": ("models.ops.functions.ms_deform_attn_func", CORE, core_function, whole),
    "rfdetr": ("rfdetr.models.ops.modules.ms_deform_attn", CORE, rfdetr_function, channels_first),
    "rfdetr, exported": ("rfdetr.models.ops.functions", CORE, rfdetr_function, channels_first_exported),
    "RT-DETR": ("src.zoo.rtdetr.utils", FUNC, core_function, whole),
    "RT-DETRv2": ("src.zoo.rtdetr.rtdetrv2_decoder", FUNC_V2, rtdetr_v2_function, ragged),
    "lightly-train": ("lightly_train._task_models.utils", FUNC_V2, rtdetr_v2_function, ragged),
    "D-FINE": ("src.zoo.dfine.dfine_decoder", FUNC_V2, dfine_function, ragged_levels),
    "DEIM": ("engine.deim.utils", FUNC_V2, dfine_function, ragged_images),
}


@pytest.fixture
def repository(monkeypatch):
    """Makes a module that is imported."""

    def make(name, **contents):
        module = types.ModuleType(name)
        vars(module).update(contents)
        for thing in contents.values():
            if inspect.isfunction(thing) or inspect.isclass(thing):
                thing.__module__ = name
        monkeypatch.setitem(sys.modules, name, module)
        return module

    yield make
    tmaops.compat.detr.unpatch()
    tmaops.compat.mmcv.unpatch()


def named(function, name):
    """The stand-in under the repository's name."""
    made = types.FunctionType(function.__code__, function.__globals__, name, function.__defaults__)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def compare(call, wanted_call, given):
    got, wanted = call(*given), wanted_call(*given)
    torch.testing.assert_close(got, wanted)
    grad = torch.randn_like(wanted)
    names = ("value", "locations", "weights")
    for name, mine, theirs in zip(
        names, torch.autograd.grad(got, given, grad), torch.autograd.grad(wanted, given, grad)
    ):
        torch.testing.assert_close(mine, theirs, msg=lambda text: f"gradient of the {name}: {text}")


@pytest.mark.parametrize("row", ROWS)
def test_functions_of_repositories_run_on_tmaops(row, repository):
    module_name, name, function, call = ROWS[row]
    own = named(function, name)
    module = repository(module_name, **{name: own})
    if row == "mmcv":
        home = repository("mmcv.ops.multi_scale_deform_attn", **{name: own, "MultiScaleDeformableAttnFunction": Own})
        repository("mmcv", ops=repository("mmcv.ops", multi_scale_deform_attn=home))
        replaced = tmaops.compat.mmcv.patch()
    else:
        replaced = tmaops.compat.detr.patch()
    assert f"{module_name}.{name}" in replaced
    assert tmaops.compat.active()[f"{module_name}.{name}"] == "tmaops"
    new = getattr(module, name)
    assert new is not own
    compare(functools.partial(call, new), functools.partial(call, own), leaves(*inputs("cpu")))
    (tmaops.compat.mmcv if row == "mmcv" else tmaops.compat.detr).unpatch()
    assert getattr(module, name) is own
    assert tmaops.compat.active()[f"{module_name}.{name}"] == own.__module__


class Own:
    @staticmethod
    def apply(*_):
        raise AssertionError("the repository's own function ran")


def client(name, extension, in_place):
    """An autograd function that calls a compiled extension, as repositories have them: mmcv's fills gradients."""

    class Client(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value, shapes, starts, locations, weights, step):
            ctx.step = step
            ctx.save_for_backward(value, shapes, starts, locations, weights)
            if in_place:
                return extension().ms_deform_attn_forward(
                    value, shapes, starts, locations, weights, im2col_step=ctx.step
                )
            return extension().ms_deform_attn_forward(value, shapes, starts, locations, weights, ctx.step)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, grad):
            value, shapes, starts, locations, weights = ctx.saved_tensors
            if in_place:
                filled = [torch.zeros_like(tensor) for tensor in (value, locations, weights)]
                extension().ms_deform_attn_backward(
                    value, shapes, starts, locations, weights, grad.contiguous(), *filled, im2col_step=ctx.step
                )
            else:
                filled = extension().ms_deform_attn_backward(value, shapes, starts, locations, weights, grad, ctx.step)
            return filled[0], None, None, filled[1], filled[2], None

    Client.__name__ = name
    return Client


def refuse(*_, **__):
    raise AssertionError("the repository's own kernel ran")


def test_classes_of_bevformer_come_along_with_mmcv(repository):
    """They call mmcv's extension, in the form that fills gradients."""
    own = {"ms_deform_attn_forward": refuse, "ms_deform_attn_backward": refuse}
    compiled = repository("mmcv._ext", **own)
    home = repository(
        "mmcv.ops.multi_scale_deform_attn",
        MultiScaleDeformableAttnFunction=Own,
        multi_scale_deformable_attn_pytorch=named(mmcv_function, PYTORCH),
    )
    repository("mmcv", ops=repository("mmcv.ops", multi_scale_deform_attn=home))
    replaced = tmaops.compat.mmcv.patch()
    assert {"mmcv._ext.ms_deform_attn_forward", "mmcv._ext.ms_deform_attn_backward"} <= set(replaced)
    function = client("MultiScaleDeformableAttnFunction_fp32", lambda: compiled, in_place=True)
    compare(
        lambda value, locations, weights: function.apply(value, SHAPES, STARTS, locations, weights, 64),
        lambda value, locations, weights: by_grid_sample(value, LEVELS, locations, weights),
        leaves(*inputs("cpu")),
    )
    tmaops.compat.mmcv.unpatch()
    assert compiled.ms_deform_attn_forward is refuse


@pytest.mark.parametrize("package", ["detrex", "groundingdino", "adet", "grounding_dino.groundingdino"])
@pytest.mark.parametrize("built", [True, False])
def test_compiled_extensions_of_repositories_run_on_tmaops(package, built, repository):
    home = repository(package, __path__=[])
    if built:
        home._C = repository(f"{package}._C", ms_deform_attn_forward=refuse, ms_deform_attn_backward=refuse)
    replaced = tmaops.compat.detr.patch()
    assert f"{package}._C.ms_deform_attn_forward" in replaced
    function = client("Function", lambda: home._C, in_place=False)
    compare(
        lambda value, locations, weights: function.apply(value, SHAPES, STARTS, locations, weights, 64),
        lambda value, locations, weights: by_grid_sample(value, LEVELS, locations, weights),
        leaves(*inputs("cpu")),
    )
    tmaops.compat.detr.unpatch()
    if built:
        assert home._C.ms_deform_attn_forward is refuse
    else:
        assert f"{package}._C" not in sys.modules and not hasattr(home, "_C")


@pytest.mark.parametrize("name", ["MultiScaleDeformableAttention", "detector.ops._C"])
def test_a_compiled_extension_that_was_imported_is_given_our_functions(name, repository):
    compiled = repository(name, ms_deform_attn_forward=refuse, ms_deform_attn_backward=refuse)
    assert len(tmaops.compat.detr.patch()) == 2
    function = client("MSDeformAttnFunction", lambda: compiled, in_place=False)
    compare(
        lambda value, locations, weights: function.apply(value, SHAPES, STARTS, locations, weights, 64),
        lambda value, locations, weights: by_grid_sample(value, LEVELS, locations, weights),
        leaves(*inputs("cpu")),
    )
    tmaops.compat.detr.unpatch()
    assert compiled.ms_deform_attn_forward is refuse


@pytest.mark.parametrize("name", ["MSDeformAttnFunction", "MultiScaleDeformableAttnFunction", "_MSDeformAttnFunction"])
def test_functions_of_extensions_are_replaced_where_they_were_imported(name, repository):
    module = repository("models.ops.modules.ms_deform_attn", **{name: Own})
    assert tmaops.compat.detr.patch() == [f"models.ops.modules.ms_deform_attn.{name}"]
    compare(
        lambda value, locations, weights: getattr(module, name).apply(value, SHAPES, STARTS, locations, weights, 64),
        lambda value, locations, weights: by_grid_sample(value, LEVELS, locations, weights),
        leaves(*inputs("cpu")),
    )


def test_layers_that_hold_the_function_are_patched_in_a_model(repository):
    own = named(dfine_function, FUNC_V2)
    repository("src.zoo.dfine.utils", **{FUNC_V2: own})
    layer = torch.nn.Module()
    layer.ms_deformable_attn_core = functools.partial(own, method="default")
    model = torch.nn.Sequential(layer)
    replaced = tmaops.compat.detr.patch(model)
    assert "0.ms_deformable_attn_core" in replaced
    call = functools.partial(ragged_levels, layer.ms_deformable_attn_core)
    assert layer.ms_deformable_attn_core.func is tmaops.compat.detr.deformable_attention_core_func_v2
    compare(call, functools.partial(ragged_levels, own), leaves(*inputs("cpu")))
    tmaops.compat.detr.unpatch()
    assert layer.ms_deformable_attn_core.func is own


def test_discrete_points_take_the_nearest_pixel(repository):
    module = repository("src.zoo.rtdetr.utils", **{FUNC_V2: named(rtdetr_v2_function, FUNC_V2)})
    tmaops.compat.detr.patch()
    value, locations, weights = leaves(*inputs("cpu"))
    got = getattr(module, FUNC_V2)(value, LEVELS, *folded_points(value, locations, weights)[1:], [3, 3], "discrete")
    wanted = tmaops.torch.ms_deform_attn(value, LEVELS, locations, weights, sampling="nearest")
    torch.testing.assert_close(got, wanted)


def test_the_slot_of_libreyolo_is_taken(repository):
    slots = {}

    def register(op, impl, *, name, predicate=None):
        slots.setdefault(op, []).insert(0, (name, impl))

    def unregister(op, name):
        slots[op] = [entry for entry in slots.get(op, []) if entry[0] != name]

    repository("libreyolo.kernels", register=register, unregister=unregister)
    assert tmaops.compat.detr.patch() == ["libreyolo.kernels: ms_deform_attn"]
    ((name, slot),) = slots["ms_deform_attn"]
    assert name == "tmaops"
    compare(
        lambda value, locations, weights: slot(value, SHAPES, locations, weights),
        lambda value, locations, weights: by_grid_sample(value, LEVELS, locations, weights),
        leaves(*inputs("cpu")),
    )
    tmaops.compat.detr.unpatch()
    assert slots["ms_deform_attn"] == []


def test_functions_of_other_names_are_replaced_where_they_give_the_same_numbers(repository):
    alike, border = named(core_function, "deform_attn_core_pytorch"), named(with_border, CORE)
    module = repository("tadtr.ops", deform_attn_core_pytorch=alike, ms_deform_attn_core_pytorch=border)
    reference = repository("tadtr.tests", core=core_function)
    with pytest.warns(UserWarning, match=r"other numbers, and kept: tadtr\.ops\.ms_deform_attn_core_pytorch$"):
        assert tmaops.compat.detr.patch() == ["tadtr.ops.deform_attn_core_pytorch"]
    assert module.ms_deform_attn_core_pytorch is border and reference.core is core_function
    given = leaves(*inputs("cpu"))
    compare(functools.partial(whole, module.deform_attn_core_pytorch), functools.partial(whole, alike), given)


def with_border(value, value_spatial_shapes, sampling_locations, attention_weights):
    return core_function(value, value_spatial_shapes, sampling_locations.clamp(0.1, 0.9), attention_weights)


def test_the_older_function_and_extension_have_no_level_starts(repository):
    """As TrackFormer has them."""
    extension = importlib.import_module("MultiScaleDeformableAttention")

    class Client(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *given):
            ctx.save_for_backward(*given)
            return extension.ms_deform_attn_forward(*given, 64)

        @staticmethod
        def backward(ctx, grad):
            value, locations, weights = extension.ms_deform_attn_backward(*ctx.saved_tensors, grad, 64)
            return value, None, locations, weights

    given = leaves(*inputs("cpu"))
    wanted = functools.partial(whole, core_function)
    compare(lambda value, *steps: Client.apply(value, SHAPES, *steps), wanted, given)
    module = repository("trackformer.ops", MSDeformAttnFunction=Own)
    tmaops.compat.detr.patch()
    compare(lambda value, *steps: module.MSDeformAttnFunction.apply(value, SHAPES, *steps, 64), wanted, given)


@pytest.mark.parametrize("row", ["Deformable DETR", "RT-DETRv2", "D-FINE"])
def test_functions_of_repositories_compile_for_any_sizes(row):
    _, name, own, call = ROWS[row]
    new = getattr(tmaops.compat.detr, name)
    compiled = torch.compile(lambda *given: call(new, *given), backend="aot_eager", dynamic=True)
    for queries in (5, 9):
        given = [tensor.detach() for tensor in inputs("cpu", queries=queries, batch=queries - 3)]
        torch.testing.assert_close(compiled(*given), call(own, *given))


def test_functions_with_other_arguments_are_left_alone(repository):
    def deformable_attention_core_func(value, shapes, level_start_index, sampling_locations, attention_weights):
        return value

    module = repository("other.detector", deformable_attention_core_func=deformable_attention_core_func)
    with pytest.warns(UserWarning, match="replaced nothing"):
        assert tmaops.compat.detr.patch() == []
    assert module.deformable_attention_core_func is deformable_attention_core_func
    assert tmaops.compat.active()["other.detector.deformable_attention_core_func"] == "other.detector"


class _Layer:
    def forward(self, *given):
        return _deformable_attention_kernel(*given)  # noqa: F821


def test_names_of_their_own_and_the_layers_that_call_them_are_said_to_be_in_use(repository):
    module = repository("kornia.rtdetr_head", _deformable_attention_kernel=named(ROWS["mmcv"][2], "_kernel_attention"))
    forward = types.FunctionType(_Layer.forward.__code__, vars(module))
    own = type("MultiScaleDeformableAttention", (), {"forward": forward, "__module__": module.__name__})
    module.MultiScaleDeformableAttention = own
    module._deformable_attention_kernel.__name__ = "_deformable_attention_kernel"
    assert tmaops.compat.active()["kornia.rtdetr_head.MultiScaleDeformableAttention"] == "kornia.rtdetr_head"
    tmaops.compat.detr.patch()
    used = tmaops.compat.active()
    assert used["kornia.rtdetr_head._deformable_attention_kernel"] == "tmaops"
    assert used["kornia.rtdetr_head.MultiScaleDeformableAttention"] == "tmaops"


def test_a_value_that_fits_two_layouts_is_refused(repository):
    module = repository("rfdetr.models.ops.functions", **{CORE: named(rfdetr_function, CORE)})
    tmaops.compat.detr.patch()
    value, locations, weights = torch.ones(1, 2, 2, 2), torch.zeros(1, 1, 2, 1, 1, 2), torch.zeros(1, 1, 2, 1, 1)
    with pytest.raises(tmaops.Error, match="both would be right"):
        getattr(module, CORE)(value, [(1, 2)], locations, weights)


def test_an_extension_that_shadows_the_wheel_is_named(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "MultiScaleDeformableAttention", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    suffix = next(iter(importlib.machinery.EXTENSION_SUFFIXES))
    shadow = tmp_path / f"MultiScaleDeformableAttention{suffix}"
    shadow.touch()
    importlib.invalidate_caches()
    assert tmaops.compat.active()["MultiScaleDeformableAttention"] == str(shadow)
    shadow.unlink()
    importlib.invalidate_caches()
    assert tmaops.compat.active()["MultiScaleDeformableAttention"] == "tmaops"


def test_patches_warn_where_they_replace_nothing(repository):
    home = repository("mmcv.ops.multi_scale_deform_attn")
    for name in ("MultiScaleDeformableAttnFunction", PYTORCH):
        setattr(home, name, getattr(tmaops.compat.mmcv, name))
    repository("mmcv", ops=repository("mmcv.ops", multi_scale_deform_attn=home))
    with pytest.warns(UserWarning, match="replaced nothing"):
        assert tmaops.compat.mmcv.patch() == []
    repository("src.zoo.rtdetr.utils", **{FUNC: named(core_function, FUNC)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tmaops.compat.detr.patch() == [f"src.zoo.rtdetr.utils.{FUNC}"]
        assert tmaops.compat.detr.patch() == [], "what is replaced already is not replaced again"


def test_every_row_of_the_documents_is_tested():
    text = (pathlib.Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")
    table = re.search(r"\| repository \| line \|\n.*?\n\n", text, re.DOTALL)[0]
    for row in ROWS:
        assert row.partition(",")[0] in table, f"docs/python.md has no row for {row}"
