"""The operators for torch, with gradients: under autograd, autocast, torch.compile and torch.export.

    ms_deform_attn, resample, gemm, linear      functions
    Linear                                      torch.nn.Linear with an activation
    MSDeformAttn                                the module of Deformable DETR, which loads its checkpoints
    MSDeformAttnFunction                        autograd function with the signature of Deformable DETR and mmcv

The functions call torch operators of the same names: ``torch.ops.tmaops.ms_deform_attn``, ... Their kernels are in
libtmaops_torch.so, which is for torch 2.10 and newer. Where it cannot be loaded, or the environment has TMAOPS_TORCH=python, they
are registered in Python over ctypes, which is slower with every call; `native` says which it is. What looks below gradients, as
compiled graphs and dispatch modes do, sees ``torch.ops.tmaops.ms_deform_attn_kernel``, ...

vmap joins the mapped dimension to the batch. torch.func, forward mode and second derivatives are served: those of attention and gemm
by torch's own functions, which take longer and more memory. Autocast leaves types as they are: 16-bit values beside f32 locations
are taken together. With ``torch.use_deterministic_algorithms(True)`` gradients have the same bits
from run to run.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import numbers
import os
import pathlib
from collections.abc import Callable, Sequence
from typing import Any, get_args

import torch
from torch import Tensor
from torch.utils.flop_counter import register_flop_formula

from tmaops import _gemm, _ms_deform_attn, _resample, _torch_functions
from tmaops._errors import Error, invalid_type, invalid_value
from tmaops._library import OPTIONS, error_of, library
from tmaops._types import Activation, Duplicates, Interpolation, Outside, Sampling

_library = torch.library.Library("tmaops", "FRAGMENT")
_ARGUMENTS = {
    "word": "str {name}='{word}'",
    "flag": "bool {name}=False",
    "i32": "int {name}=0",
    "f32": "float {name}={initial}",
    "f64": "float {name}={initial}",
    "time": "float? {name}=None",
    "tensor": "Tensor? {name}=None",
    "i64_list": "SymInt[]? {name}=None",
    "i32_list": "int[]? {name}=None",
}


def _options_of(operator: str, direction: str = "forward") -> str:
    """Those options of options.h that torch's operator takes, as arguments of its schema."""
    return "".join(
        ", "
        + _ARGUMENTS[option.kind].format(
            name=option.name, word=option.words[:1] and option.words[0], initial=option.initial
        )
        for option in OPTIONS[operator]
        if option.torch in ("both", direction)
    )


_SCHEMAS = {
    "ms_deform_attn": "(Tensor value, SymInt[] levels, Tensor sampling_locations, Tensor attention_weights"
    + _options_of("ms_deform_attn")
    + ", ScalarType? out_dtype=None) -> Tensor",
    "ms_deform_attn_backward": "(Tensor grad_output, Tensor value, SymInt[] levels, Tensor sampling_locations, "
    "Tensor attention_weights, int needed"
    + _options_of("ms_deform_attn", "backward")
    + ") -> (Tensor, Tensor, Tensor)",
    "resample": "(Tensor values, Tensor source_times, Tensor target_times" + _options_of("resample") + ") -> Tensor",
    "resample_backward": "(Tensor grad_output, Tensor source_times, Tensor target_times, SymInt samples"
    + _options_of("resample", "backward")
    + ") -> Tensor",
    "gemm": "(Tensor a, Tensor b" + _options_of("gemm") + ", ScalarType? out_dtype=None) -> Tensor",
}
# Beside each operator stands another, named ..._kernel, which asks for no gradient: compiled graphs hold it, and call no Python.
for _name, _schema in _SCHEMAS.items():
    for _operator in (_name, f"{_name}_kernel"):
        _library.define(_operator + _schema, tags=(torch.Tag.pt2_compliant_tag,))
    _library.impl(f"{_name}_kernel", torch.library.fallthrough_kernel, "Autograd")


def _load_native() -> bool:
    """Loads libtmaops_torch.so. False where that cannot be, with a warning in the log unless it was asked for."""
    path = pathlib.Path(__file__).parent / "lib" / "libtmaops_torch.so"
    if os.environ.get("TMAOPS_TORCH") == "python":
        return False
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 10):
        reason: object = f"torch {torch.__version__} is older than 2.10"
    elif not path.exists():
        reason = f"the package was built without {path.name}"
    else:
        try:
            torch.ops.load_library(str(path))
            return True
        except OSError as error:
            reason = error
    logging.getLogger("tmaops").warning("tmaops.torch makes its calls over ctypes, which takes longer: %s", reason)
    return False


native = _load_native()


def _register(name: str, kernel: object) -> None:
    for key in () if native else ("CPU", "CUDA"):
        _library.impl(name, kernel, key)
        _library.impl(f"{name}_kernel", kernel, key)


def _register_fake(name: str) -> Callable:
    """A decorator: the function gives the operator's outputs without values, from its arguments by name."""

    def register(fake: Callable) -> None:
        def made(*args: Any, **kwargs: Any) -> Any:
            given = {**_named(name, args), **kwargs}
            devices = {what: each.device for what, each in given.items() if isinstance(each, Tensor)}
            first, place = next(iter(devices.items()))
            for what, device in devices.items():
                if device != place:  # torch asks here too for a meta tensor beside others
                    raise invalid_value(f"{name}: {what}", f"a tensor on {device}", f"one on {place}, as {first}")
            return fake(**given)

        for operator in (name, f"{name}_kernel"):
            torch.library.register_fake(f"tmaops::{operator}", made)

    return register


def _needs_gradient(arguments: Sequence[object]) -> bool:
    return torch.is_grad_enabled() and True in [getattr(given, "requires_grad", False) for given in arguments]


_operators = {name: getattr(torch.ops.tmaops, name).default for name in _SCHEMAS}
_kernels = {name: getattr(torch.ops.tmaops, f"{name}_kernel").default for name in _SCHEMAS}
_defaults = {
    name: tuple(argument.default_value for argument in operator._schema.arguments if argument.has_default_value())
    for name, operator in _operators.items()
}
_names = {name: [argument.name for argument in operator._schema.arguments] for name, operator in _operators.items()}
_functions: dict[str, Any] = {}  # the autograd.Function of each operator with a gradient
_DEVICES = ("cpu", "cuda")  # that autocast knows: before torch 2.13 a compiled graph breaks where torch is asked
_forward_ad = torch.autograd.forward_ad
_functorch_level = torch._C._functorch.peek_interpreter_stack
_modes = torch._C._len_torch_dispatch_stack
_hooks = torch._C._autograd._top_saved_tensors_default_hooks


def _named(name: str, arguments: Sequence[Any]) -> dict[str, Any]:
    """The arguments of an operator by name; those that are left out are at their defaults."""
    names, defaults = _names[name], _defaults[name]
    given = dict(zip(names[len(names) - len(defaults) :], defaults))
    given.update(zip(names, arguments))
    return given


def _ordered(name: str, given: dict[str, Any]) -> list[Any]:
    """The arguments of an operator in its order; those that are not given are at their defaults."""
    all_given = {**_named(name, ()), **given}
    return [all_given[what] for what in _names[name]]


def _call(name: str, arguments: tuple[Any, ...], given: dict[str, Any]) -> Tensor:
    """The operator, with its errors as tmaops.Error. `given` are options by name; the others are at their defaults."""
    operator, defaults = _operators[name], _defaults[name]
    options = defaults
    if given:
        options = tuple([given.get(what, usual) for what, usual in zip(_names[name][len(arguments) :], defaults)])
    if torch.compiler.is_compiling() or torch.jit.is_tracing():
        if _torch_functions.exports_to_onnx():
            return _definition(name)(*arguments, *options)
        return operator(*arguments, *_shortened(options, defaults))
    try:
        passed = arguments if options == defaults else arguments + _shortened(options, defaults)
        if _watched():
            return operator(*passed)
        # torch's way to `kernel` takes longer
        if _needs_gradient(passed):
            return _functions[name].apply(*arguments, *options)
        return _kernels[name](*passed)
    except (Error, RuntimeError, TypeError, ValueError) as error:
        named = _named_error(name, arguments + options, error)
        if named is None:
            raise
        raise named from None  # the words of torch's error may hold a whole array


def _shortened(options: tuple[Any, ...], defaults: tuple[Any, ...]) -> tuple[Any, ...]:
    """The options up to the last one that is not at its default: torch needs time to convert each, in a compiled graph too."""
    count = len(options)
    while count and type(options[count - 1]) is type(defaults[count - 1]) and options[count - 1] == defaults[count - 1]:
        count -= 1
    return options[:count]


def _definition(name: str) -> Callable:
    """The operator by torch's own functions, which ONNX has."""
    if not hasattr(_torch_functions, name):
        raise NotImplementedError(f"tmaops::{name} cannot be exported to ONNX: run it outside of the model")
    return getattr(_torch_functions, name)


def _watched() -> bool:
    """Whether something looks at the operators that are called: a dispatch mode, a trace, forward mode or a function transform."""
    return (
        _modes() > 0
        or _forward_ad._current_level >= 0
        or _functorch_level() is not None
        or torch._C._get_tracing_state() is not None
    )


# What an argument may be, by a part of its declaration.
_WANTED: dict[str, tuple[Any, str]] = {
    "out_dtype": (torch.dtype, "a torch.dtype"),
    "Tensor": (Tensor, "a torch.Tensor"),
    "List": ((list, tuple), "a list of whole numbers"),
    "bool": (bool, "True or False"),
    "float": (numbers.Real, "a number"),
}


def _named_error(name: str, arguments: tuple[Any, ...], error: Exception) -> Error | None:
    """The library's error for a call that failed, as the same call over ctypes gives it; None where it is none of the library's."""
    last = library.tmaops_last_error().contents
    passed_on = error_of(last.code) if last.code and last.number.decode() in str(error) else None
    for argument, given in zip(_operators[name]._schema.arguments, arguments):
        declared = f"{argument.name}: {argument.type}"
        types, needed = next((wanted for part, wanted in _WANTED.items() if part in declared), (object, ""))
        if isinstance(given, Tensor) and given.is_nested:
            return invalid_value(f"{name}: {argument.name}", "a nested tensor", "a dense one: its parts, or padded")
        if not isinstance(given, types) and not (given is None and "Optional" in declared):
            return invalid_type(f"{name}: {argument.name}", type(given).__name__, needed)
    tensors = [given for given in arguments if isinstance(given, Tensor)]
    plain = all(type(given) in (Tensor, torch.nn.Parameter) and not given.is_neg() for given in tensors)
    if isinstance(error, (Error, torch.OutOfMemoryError)) or _watched() or not plain:
        return error if isinstance(error, Error) else passed_on
    try:
        _checks[name](*arguments)
    except Error as named:
        return named
    except Exception:
        pass
    return passed_on


def _register_autograd(name: str, gradient: Callable, kept: Callable = lambda arguments: arguments) -> None:
    """Gives an operator its gradient. `kept` are its arguments as the gradient wants them."""
    operator, options = _kernels[name], _defaults[name]
    defaults = tuple(argument.default_value for argument in _operators[name]._schema.arguments)
    required = len(defaults) - len(options)

    def keep(ctx: Any, inputs: tuple[Any, ...], output: object = None) -> None:
        keeps = kept(inputs)
        tensors = [given if isinstance(given, Tensor) else None for given in keeps]
        ctx.save_for_backward(*tensors)
        ctx.others = [None if isinstance(given, Tensor) else given for given in keeps]
        if _forward_ad._current_level >= 0:
            ctx.save_for_forward(*tensors)

    class Gradient(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *arguments: Any) -> Any:
            passed = arguments[:required] + _shortened(arguments[required:], options)
            keep(ctx, passed)
            return operator(*passed)

        @staticmethod
        def jvp(ctx: Any, tangent: Tensor, *_: object) -> Tensor:  # of a resampling
            return _moved(name, _saved(name, ctx), tangent)

        backward = staticmethod(gradient)

    class Transformed(Gradient):
        """The same for torch.func. Its call takes longer."""

        generate_vmap_rule = True
        forward, setup_context = staticmethod(_operators[name]), staticmethod(keep)

    def kernel(*given: Any) -> Any:
        forward, transform = _forward_ad._current_level >= 0, _functorch_level()
        if forward and "resample" not in name:
            return _definition(name)(**_named(name, given))
        if transform is None:
            recorded = forward or _needs_gradient(given)
            return Gradient.apply(*given, *defaults[len(given) :]) if recorded else operator(*given)
        if transform.key() == torch._C._functorch.TransformType.Jvp:
            (primal, tangent), options = _forward_ad.unpack_dual(given[0]), _named(name, given)
            with torch._C._AutoDispatchBelowAutograd():
                output = _operators[name](primal, *given[1:])
                change = None if tangent is None else _moved(name, options, tangent)
            return output if change is None else _forward_ad.make_dual(output, change)
        if _needs_gradient(given):
            front = torch._C.DispatchKey.FuncTorchDynamicLayerFrontMode  # torch.func's, which an operator does without
            include, exclude = torch._C._dispatch_tls_local_include_set(), torch._C._dispatch_tls_local_exclude_set()
            with torch._C._ForceDispatchKeyGuard(include.add(front), exclude.remove(front)):
                return Transformed.apply(*given, *defaults[len(given) :])
        with torch._C._AutoDispatchBelowAutograd():  # another level of torch.func may want gradients
            return _operators[name](*given)

    _functions[name] = Gradient
    _library.impl(name, kernel, "Autograd")
    torch.library.register_vmap(f"tmaops::{name}", functools.partial(_vmap_rule, name))


def _moved(name: str, given: dict[str, Any], change: Tensor) -> Tensor:
    """How outputs of a resampling change with its first argument, in which it is linear; those without data (NaN) do not."""
    if (mode := given["interpolation"]) in ("cubic", "slerp", "any", "count", "min", "max"):
        raise NotImplementedError(f"tmaops::resample has no forward-mode and no second derivative of {mode!r}")
    rest = [given[what] for what in _names[name][1:]]
    absent = _operators[name](torch.zeros_like(change), *rest).isnan()
    return _operators[name](change, *rest).masked_fill(absent, 0)


def _attention_second_gradient(ctx, *grads):
    given = _saved("ms_deform_attn_backward", ctx)
    wanted = [what for what, needs in zip(_names["ms_deform_attn_backward"], ctx.needs_input_grad) if needs]

    def gradients(*tensors):
        return _definition("ms_deform_attn_backward")(**{**given, **dict(zip(wanted, tensors))})

    found = dict(zip(wanted, torch.func.vjp(gradients, *[given[what] for what in wanted])[1](grads)))
    return tuple(found.get(what) for what in _names["ms_deform_attn_backward"])


def _resample_second_gradient(ctx, grad):
    return _moved("resample", {**_saved("resample_backward", ctx), "values": grad}, grad), *(None,) * (
        len(_names["resample_backward"]) - 1
    )


# Which arguments of an operator have the batch in front, with the rank of one call.
_BATCHED = {
    "ms_deform_attn": {"value": 4, "sampling_locations": 0, "attention_weights": 0, "reference_points": 0},
    "ms_deform_attn_backward": {"grad_output": 3, "value": 4, "sampling_locations": 0, "attention_weights": 0},
    "resample": {"values": 3, "source_times": 2, "target_times": 2},
    "resample_backward": {"grad_output": 3, "source_times": 2, "target_times": 2},
}


def _vmap_rule(name: str, info: Any, dims: tuple[Any, ...], *arguments: Any) -> tuple[Any, Any]:
    """The mapped dimension joins the batch; calls without a batch, and gemm, are made one by one."""
    operator, names, size = _operators[name], _names[name], info.batch_size
    in_dims = [dim if isinstance(dim, int) else None for dim in dims]  # a list of numbers has a list of None
    ranks, given = _BATCHED.get(name, {}), list(arguments)
    each = arguments[0].shape[1 if in_dims[0] == 0 else 0]  # the batch of one call
    mapped = {index for index, dim in enumerate(in_dims) if dim is not None}
    joins = all(names[index] in ranks for index in mapped) and all(
        offsets is None for what, offsets in zip(names, arguments) if "offset" in what
    )
    if not joins:
        calls = [
            operator(*(value if dim is None else value.select(dim, call) for value, dim in zip(arguments, in_dims)))
            for call in range(size)
        ]
        return torch.stack(calls), 0
    for index, (what, tensor) in enumerate(zip(names, arguments)):
        if what not in ranks or tensor is None:
            continue
        dim, rank = in_dims[index], ranks[what]
        tensor = tensor.movedim(dim, 0) if dim is not None else tensor.unsqueeze(0)
        if dim is None and tensor.dim() == 2 and rank == 2:
            given[index] = tensor[0]  # times for all trajectories
            continue
        if tensor.dim() == rank:  # times of one call for all of its trajectories
            tensor = tensor.unsqueeze(1).expand(-1, each, -1)
        given[index] = tensor.expand(size, *tensor.shape[1:]).flatten(0, 1)
    output = operator(*given)
    if isinstance(output, Tensor):
        return output.unflatten(0, (size, each)), 0
    joined = tuple(0 if made.dim() > 1 else None for made in output)  # one dimension: a gradient that is not needed
    parts = (made if dim is None else made.unflatten(0, (size, each)) for made, dim in zip(output, joined))
    return tuple(parts), joined


# --- multi-scale deformable attention --------------------------------------------------------------------------------


def _with_levels(given: dict[str, Any]) -> dict[str, Any]:
    """The levels of an operator as those of the function over ctypes."""
    shapes, starts = given.pop("spatial_shapes"), given.pop("level_starts")
    if shapes is not None:
        return {**given, "levels": shapes, "level_start_index": starts, "synchronize": False}
    return {**given, "levels": list(zip(given["levels"][::2], given["levels"][1::2]))}


@torch.no_grad()
def _called(name: str, read: Callable, function: Callable, *arguments: Any) -> Any:
    """A function over ctypes, with an operator's arguments as `read` makes them its own."""
    return function(**read(_named(name, arguments)))


@torch.no_grad()
def _attention_backward(*arguments):
    given = _named("ms_deform_attn_backward", arguments)
    inputs = (given["value"], given["sampling_locations"], given["attention_weights"])
    given["needed"] = [bool(given["needed"] >> index & 1) for index in range(3)]
    gradients = _ms_deform_attn.ms_deform_attn_backward(**_with_levels(given))
    return tuple(like.new_empty(0) if gradient is None else gradient for like, gradient in zip(inputs, gradients))


_register("ms_deform_attn_backward", _attention_backward)


@_register_fake("ms_deform_attn")
def _(value, sampling_locations, out_dtype, **_):
    shape = _ms_deform_attn.shape_of(value, sampling_locations)
    return value.new_empty(shape, dtype=out_dtype or value.dtype)


@_register_fake("ms_deform_attn_backward")
def _(value, sampling_locations, attention_weights, needed, **_):
    inputs = (value, sampling_locations, attention_weights)
    return tuple(like.new_empty(like.shape if needed >> index & 1 else (0,)) for index, like in enumerate(inputs))


def _saved(name: str, ctx) -> dict[str, Any]:
    """The arguments that a call kept, by name."""
    kept = zip(ctx.saved_tensors, ctx.others)
    return _named(name, [other if tensor is None else tensor for tensor, other in kept])


def _attention_gradient(ctx, grad):
    given, needs = _saved("ms_deform_attn", ctx), dict(zip(_names["ms_deform_attn"], ctx.needs_input_grad))
    offsets, logits, references = (given[what] for what in _torch_functions.STEPS)
    types, shape = (offsets.dtype, logits.dtype), logits.shape
    # Made again: the forward pass keeps offsets and logits alone, which may be gone now (`_made_again`).
    given["sampling_locations"], given["attention_weights"], reach = _torch_functions.before_sampling(given)
    offsets, logits = offsets if needs["reference_points"] else None, None
    # The location of a nearest pixel has no gradient: None, since zeros would be seen by weight decay and by DDP.
    located = (needs["sampling_locations"] or needs["reference_points"]) and given["sampling"] != "nearest"
    needed = {"value": needs["value"], "sampling_locations": located, "attention_weights": needs["attention_weights"]}
    if grad.dtype not in (given["value"].dtype, torch.float32):
        grad = grad.to(given["value"].dtype)
    given["grad_output"], given["deterministic"] = grad, torch.are_deterministic_algorithms_enabled()
    given["needed"] = sum(wanted << index for index, wanted in enumerate(needed.values()))
    gradients = _operators["ms_deform_attn_backward"](*_ordered("ms_deform_attn_backward", given))
    found = {what: gradient for (what, wanted), gradient in zip(needed.items(), gradients) if wanted}
    del given["sampling_locations"], gradients  # whose memory what follows may have
    weights = given.pop("attention_weights").flatten(3)
    if given["softmax"] and needs["attention_weights"]:
        grads = found.pop("attention_weights").flatten(3)
        grads = torch.ops.aten._softmax_backward_data(grads, weights, -1, weights.dtype)
        found["attention_weights"] = grads.view(shape).to(types[1])
    if reach is not None and located:
        grads = found.pop("sampling_locations")
        if needs["reference_points"]:
            found["reference_points"] = _reference_gradient(given, grads, offsets, references)
        if references.shape[-1] == 4:  # a box that is not finite is of points that are skipped
            reach = reach.where(reach.isfinite(), 0)
        if needs["sampling_locations"]:
            scaled = grads * reach if torch.is_grad_enabled() else grads.mul_(reach)
            found["sampling_locations"] = scaled.to(types[0])
    return tuple(found.get(what) for what in _names["ms_deform_attn"])


def _reference_gradient(given: dict[str, Any], grads: Tensor, offsets: Tensor, references: Tensor) -> Tensor:
    """Sums of the locations' gradients over heads and points, and for boxes of those times the offsets."""
    points = given["points_per_level"]
    if points is None:
        points, grads, offsets = [grads.shape[4]] * grads.shape[3], grads.flatten(3, 4), offsets.flatten(3, 4)
    sums = [part.sum((2, 3)) for part in grads.split(points, 3)]
    if references.shape[-1] == 4:
        scales = [given["offset_scale"] / max(count, 1) for count in points]
        parts = zip((grads * offsets).split(points, 3), scales)
        sums = [torch.cat((xy, part.sum((2, 3)) * scale), -1) for xy, (part, scale) in zip(sums, parts)]
    return torch.stack(sums, 2).to(references.dtype)


def _flat_levels(levels: Tensor | Sequence[Sequence[int]]) -> list[int]:
    flat: list[Any] = []
    try:
        for height, width in levels.tolist() if isinstance(levels, Tensor) else levels:
            flat += (height, width)
    except (TypeError, ValueError):
        flat = [math.nan]
    if float in map(type, flat):
        return _ms_deform_attn.flat_levels("ms_deform_attn", levels)  # which says what is wrong
    if torch.jit.is_tracing():
        return [int(side) for side in flat]  # sides that were read from shapes are tensors
    return flat


# Pixels read per pixel of a head from which a copy costs less than kernels that read channels one by one, on a GPU: between
# decoders, which read one or two, and encoders, which read more than ten (scripts/bench_layouts.py --device cuda).
_READS_THAT_PAY = 2.0


def _copy_pays(value: Tensor, locations: Tensor) -> bool:
    """Whether a value whose channels lie apart is to be copied first. A backward pass reads and writes it once more."""
    if value.dim() != 4 or value.stride(3) == 1 or not isinstance(locations, Tensor) or locations.dim() < 4:
        return False
    if torch.is_grad_enabled() and (value.requires_grad or locations.requires_grad):
        return True
    return 4 * locations.shape[1] * math.prod(locations.shape[3:-1]) >= _READS_THAT_PAY * value.shape[1]


_STEPS_APART = {("cuda", torch.float32)}  # where compiled graphs are faster with steps in front of the plain kernel


def ms_deform_attn(
    value: Tensor,
    levels: Tensor | Sequence[Sequence[int]],
    sampling_locations: Tensor,
    attention_weights: Tensor,
    *,
    level_start_index: None | Tensor | Sequence[int] = None,
    points_per_level: Sequence[int] | None = None,
    sampling: Sampling = "bilinear",
    softmax: bool = False,
    reference_points: Tensor | None = None,
    offset_scale: float = 0.5,
    padding_mask: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
    synchronize: bool = True,
) -> Tensor:
    """Multi-scale deformable attention, with gradients.

    Args:
        value: (N, S, M, D), f16, bf16, f32 or f64.
        levels: L pairs (height, width). A tensor of them is read on the host, for which a GPU's work is waited for; give a list, or
            see `synchronize`.
        sampling_locations: (N, Lq, M, L, P, 2), (x, y) in [0, 1]; any floating-point type.
        attention_weights: (N, Lq, M, L, P); any floating-point type.
        level_start_index: optional, where each level starts in S. points_per_level: optional, L numbers of points; locations
            are then (N, Lq, M, sum, 2) and weights (N, Lq, M, sum).
        sampling: "bilinear", or "nearest" ("discrete" of RT-DETRv2), for which the locations get no gradient (None).
        softmax, reference_points, offset_scale: as for tmaops.ms_deform_attn. The backward pass keeps logits and offsets alone.
        padding_mask: optional, (N, S) bool; pixels where it is true count as 0 and get no gradient.
        out_dtype: torch.float32 beside 16-bit values; by default the dtype of `value`.
        synchronize: False leaves `levels` and `level_start_index`, i64 tensors, on the GPU. Nothing waits for them, and only
            variants that take everything run. A level that does not lie in S then makes every output NaN.

    Returns:
        (N, Lq, M * D), dtype of `value` or `out_dtype`.

    Raises:
        tmaops.Error: as tmaops.ms_deform_attn.
    """
    if padding_mask is not None and isinstance(value, Tensor):
        if not isinstance(padding_mask, Tensor) or padding_mask.shape != value.shape[:2]:
            got = tuple(padding_mask.shape) if isinstance(padding_mask, Tensor) else type(padding_mask).__name__
            raise invalid_value("ms_deform_attn: padding_mask", str(got), f"a tensor (N, S) = {tuple(value.shape[:2])}")
        value = value.masked_fill(padding_mask.bool()[..., None, None], 0)
    options: dict[str, Any] = {}  # those that are not at their defaults: an empty one takes less time
    if points_per_level is not None or sampling != "bilinear" or out_dtype is not None:
        options.update(points_per_level=points_per_level, sampling=sampling, out_dtype=out_dtype)
    if softmax or reference_points is not None:
        options.update(softmax=softmax, reference_points=reference_points, offset_scale=offset_scale)
    if isinstance(value, Tensor) and value.is_cuda and _copy_pays(value, sampling_locations):
        value = value.contiguous()
    there = not synchronize and isinstance(levels, Tensor) and levels.is_cuda
    if not there and level_start_index is not None and hasattr(level_start_index, "tolist"):
        level_start_index = level_start_index.tolist()
    if there:
        options["spatial_shapes"], options["level_starts"] = levels, level_start_index
    elif level_start_index is not None:
        options["level_start_index"] = level_start_index
    arguments = (value, [] if there else _flat_levels(levels), sampling_locations, attention_weights)
    compiles = "softmax" in options and torch.compiler.is_compiling()
    if compiles and (value.device.type, value.dtype) in _STEPS_APART:
        made = _torch_functions.before_sampling({**_named("ms_deform_attn", arguments), **options})
        arguments = (*arguments[:2], *made[:2])
        options.update(softmax=False, reference_points=None)
    return _call("ms_deform_attn", arguments, options)


# --- resampling ------------------------------------------------------------------------------------------------------


def _with_offsets(given: dict[str, Any]) -> dict[str, Any]:
    """The offsets of an operator as those of the function over ctypes."""
    for side in ("source", "target"):
        there = given.pop(f"{side}_offset_tensor")
        given[f"{side}_offsets"] = given[f"{side}_offsets"] if there is None else there
    return given


@_register_fake("resample")
def _(values, target_times, source_offsets, source_offset_tensor, target_offsets, target_offset_tensor, **_):
    targets = target_times.shape[-1]
    if target_offsets is not None or target_offset_tensor is not None:
        return values.new_empty((targets, values.shape[-1]))
    batch = values.shape[0] if source_offsets is None else len(source_offsets) - 1
    if source_offset_tensor is not None:
        batch = source_offset_tensor.shape[0] - 1
    return values.new_empty((batch, targets, values.shape[-1]))


@_register_fake("resample_backward")
def _(grad_output, samples, source_offsets, source_offset_tensor, **_):
    batch = grad_output.shape[:1] if source_offsets is None and source_offset_tensor is None else ()
    return grad_output.new_empty((*batch, samples, grad_output.shape[-1]))


def _kept_of_resample(arguments):
    """Of the values their number alone, where the gradient does not look at them."""
    looks = _named("resample", arguments)["interpolation"] in _resample.EXTREMES
    return arguments if looks else (arguments[0].shape[-2], *arguments[1:])


def _resample_gradient(ctx, grad):
    given = {**_saved("resample", ctx), "grad_output": grad}
    values = given.pop("values")
    given |= {"values": values, "samples": values.shape[-2]} if isinstance(values, Tensor) else {"samples": values}
    gradient = _operators["resample_backward"](*_ordered("resample_backward", given))
    return gradient, *(None,) * (len(_names["resample"]) - 1)


def _listed(offsets, values):
    """Offsets as a list or as a tensor. One on the host beside values on a GPU becomes a list."""
    if isinstance(offsets, Tensor):
        return (None, offsets) if offsets.is_cuda or not values.is_cuda else (offsets.tolist(), None)
    return offsets.tolist() if hasattr(offsets, "tolist") else offsets, None


def resample(
    values: Tensor,
    source_times: Tensor,
    target_times: Tensor,
    *,
    interpolation: Interpolation = "linear",
    outside: Outside = "hold",
    duplicates: Duplicates = "error",
    max_gap: float | None = None,
    source_offsets: Sequence[int] | Tensor | None = None,
    target_offsets: Sequence[int] | Tensor | None = None,
    axis: int | None = None,
) -> Tensor:
    """Values of trajectories at other times, with the gradient to the values.

    Args:
        values: (B, S, D), (S, D) or (S), or packed (rows, D) with `source_offsets`; f16, bf16, f32 or f64. With `axis`, of any rank.
        source_times, target_times: (B, S) and (B, T), or (S) and (T) for all, or packed; f32 or f64 seconds, or i64 nanoseconds.
        max_gap: in the unit of the times.
        source_offsets, target_offsets: lists, or i64 tensors, which nothing waits for on a GPU.
        interpolation: as for tmaops.resample; "cubic", "slerp", "any" and "count" have no gradient.
        axis: optional, the dimension of the samples, for times (S) and (T).
        Others: as for tmaops.resample.

    Returns:
        (B, T, D), (T, D), (T) or packed (rows, D), or `values` with T in the place of S; dtype of `values`.

    Raises:
        tmaops.Error: as tmaops.resample. NotImplementedError in forward mode and for second derivatives of modes that are not linear.
    """
    options: dict[str, Any] = {"interpolation": interpolation, "duplicates": duplicates, "max_gap": max_gap}
    options["outside"] = outside or "hold"
    dense = isinstance(values, Tensor) and not values.is_nested
    if dense and _resample.lies_along_axis(values, axis, source_offsets, target_offsets):
        place = _resample.axis_of(values, axis)
        first = values.movedim(place, 0)
        rows = first.reshape(1, first.shape[0], math.prod(first.shape[1:]))
        made = resample(rows, source_times, target_times, **options)
        return made.view(-1, *first.shape[1:]).movedim(0, place)
    options["source_offsets"], options["source_offset_tensor"] = _listed(source_offsets, values)
    options["target_offsets"], options["target_offset_tensor"] = _listed(target_offsets, values)
    return _call("resample", (values, source_times, target_times), options)


# --- matrix multiplication -------------------------------------------------------------------------------------------


@_register_fake("gemm")
def _(a, b, out_dtype, **_):
    return a.new_empty(_gemm.shape_of(a, b), dtype=out_dtype or a.dtype)


# grad times the derivative of the activation at the sums, in f32.
_ACTIVATION_GRADIENTS: dict[Activation, Callable[[Tensor, Tensor], Tensor]] = {
    "relu": lambda sums, grad: torch.where(sums > 0, grad, 0),
    "gelu": lambda sums, grad: torch.ops.aten.gelu_backward(grad, sums),
    "silu": lambda sums, grad: torch.ops.aten.silu_backward(grad, sums),
}


def _gemm_gradient(ctx, grad):
    given = _saved("gemm", ctx)
    a, b, bias, activation = (given[what] for what in ("a", "b", "bias", "activation"))
    if activation != "none":  # computed again, since the output does not tell them
        plain = {**given, "activation": "none", "out_dtype": torch.float32}
        sums = _operators["gemm"](*_ordered("gemm", plain))
        grad = _ACTIVATION_GRADIENTS[activation](sums, grad.float())
    rounded = grad.to(a.dtype)
    needs = ctx.needs_input_grad
    grad_a = grad_b = grad_bias = None
    if needs[0]:
        grad_a = _operators["gemm"](rounded, b.transpose(-1, -2), out_dtype=a.dtype)
        grad_a = grad_a if grad_a.dim() == a.dim() else grad_a.sum(0)
    if needs[1]:
        left, right = (a.flatten(0, 1), rounded.flatten(0, 1)) if b.dim() == 2 and a.dim() == 3 else (a, rounded)
        grad_b = _operators["gemm"](left.transpose(-1, -2), right, out_dtype=b.dtype)
    if bias is not None and needs[2]:
        grad_bias = grad.flatten(0, -2).float().sum(0).to(bias.dtype)
    return tuple({"a": grad_a, "b": grad_b, "bias": grad_bias}.get(what) for what in _names["gemm"])


def gemm(
    a: Tensor,
    b: Tensor,
    bias: Tensor | None = None,
    *,
    activation: Activation = "none",
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """activation(a @ b + bias), accumulated in f32, with gradients.

    Args:
        a: (M, K) or (batch, M, K); b: (K, N) or (batch, K, N), both f16 or bf16; f32 on the CPU.
        bias: optional, (N). activation: "none", "relu", "gelu" or "silu". out_dtype: f16, bf16 or f32; else that of `a`.

    Returns:
        (M, N) or (batch, M, N).

    Raises:
        tmaops.Error: as tmaops.gemm.
    """
    return _call("gemm", (a, b), {"bias": bias, "activation": activation, "out_dtype": out_dtype})


def linear(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    activation: Activation = "none",
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """activation(x weight^T + bias): torch.nn.functional.linear with its activation.

    gemm does it where it pays, of 16-bit types. On the CPU: 8 rows and more. On a GPU: a result in f32; and without gradients an
    activation of 256 rows and more, and all of up to 64 rows. Everything else goes to torch's own function. Autocast converts as it does
    for torch's.

    Args:
        x: (..., in_features). weight: (out_features, in_features). bias: optional, (out_features). All of one type.
        activation, out_dtype: as for `gemm`.

    Returns:
        (..., out_features).
    """
    dtype = torch.float32 if out_dtype is None else out_dtype
    for what, given, kind in (("x", x, Tensor), ("weight", weight, Tensor), ("out_dtype", dtype, torch.dtype)):
        if not isinstance(given, kind):
            raise invalid_type(f"linear: {what}", type(given).__name__, f"a torch.{kind.__name__}")
    narrow = _autocast_dtype(x)
    if narrow is not None:
        x, weight, bias = (  # type: ignore[assignment]
            tensor.to(narrow) if isinstance(tensor, Tensor) and tensor.dtype is not torch.float64 else tensor
            for tensor in (x, weight, bias)
        )
        with _without_autocast(x):
            return linear(x, weight, bias, activation=activation, out_dtype=out_dtype)
    if activation not in _torch_functions.ACTIVATIONS:
        raise invalid_value("linear: activation", repr(activation), "one of " + ", ".join(get_args(Activation)))
    if not _gemm_pays(x, weight, bias, activation, out_dtype):
        sums = torch.nn.functional.linear(x, weight, bias)
        return _torch_functions.ACTIVATIONS[activation](sums).to(out_dtype or x.dtype)
    rows = x.reshape(-1, x.shape[-1])
    wide = x.is_cuda and out_dtype is torch.float32
    steps: dict[str, Any] = {} if wide else {"bias": bias, "activation": activation}
    output = gemm(rows, weight.t(), out_dtype=out_dtype, **steps)
    if wide:  # torch adds a bias to f32 in less time than the kernel does
        output = _torch_functions.ACTIVATIONS[activation](output if bias is None else output + bias)
    return output if x.dim() == 2 else output.view(*x.shape[:-1], -1)


def _gemm_pays(
    x: Tensor, weight: Tensor, bias: Tensor | None, activation: Activation, out_dtype: torch.dtype | None
) -> bool:
    if x.dtype not in (torch.float16, torch.bfloat16) or x.dim() == 0 or _torch_functions.exports_to_onnx():
        return False
    rows = math.prod(x.shape[:-1])
    if not x.is_cuda:
        return rows >= 8  # torch is as fast with less
    if out_dtype is torch.float32:
        return True
    few, many = rows <= 64, rows >= 256 and activation != "none"  # scripts/bench_linear.py
    given = [x, weight] if bias is None else [x, weight, bias]
    plain = out_dtype in (None, x.dtype) and all(type(one) in (Tensor, torch.nn.Parameter) for one in given)
    if not (few or many) or not plain or _needs_gradient(given) or torch.cuda.get_device_capability(x.device) != (9, 0):
        return False
    return all(extent % 8 == 0 for extent in weight.shape)  # 16 bytes: TMA


def _not_scripted(layer: torch.nn.Module) -> None:
    """What torch.jit.script asks a layer first."""
    raise NotImplementedError(f"torch.jit.script takes no {type(layer).__name__} of tmaops: trace or export it")


class Linear(torch.nn.Module):
    """A torch.nn.Linear, `linear`, and an activation. They are one call, by the function `linear`; where hooks, LoRA or a quantised layer
    are on the layer or in its place, it is called, and the activation follows. The weights of a torch.nn.Linear load.

    Args:
        in_features, out_features, bias, device, dtype: as for torch.nn.Linear. activation: as for `gemm`.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        activation: Activation = "none",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(in_features, out_features, bias, device, dtype)
        self.activation = activation

    __prepare_scriptable__ = _not_scripted

    def forward(self, input: Tensor) -> Tensor:
        """activation(linear(input)), (..., out_features)."""
        layer, chosen = self.linear, _torch_functions.ACTIVATIONS.get(self.activation)
        torch_alone = input.is_cpu and input.dtype.itemsize > 2 and not torch.is_autocast_enabled("cpu")
        if chosen is None or (not torch_alone and _is_plain_linear(layer, type(None))):
            return linear(input, layer.weight, layer.bias, activation=self.activation)
        return chosen(layer(input))

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        for name in [name for name in ("weight", "bias") if prefix + name in state_dict]:
            state_dict[f"{prefix}linear.{name}"] = state_dict.pop(prefix + name)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def extra_repr(self) -> str:
        """The activation."""
        return f"activation={self.activation!r}"


# Where an operator's function over ctypes is, and what makes the operator's arguments its own.
_OVER_CTYPES: dict[str, tuple[Any, Callable]] = {
    "ms_deform_attn": (_ms_deform_attn, _with_levels),
    "resample": (_resample, _with_offsets),
    "resample_backward": (_resample, _with_offsets),
    "gemm": (_gemm, dict),
}
_checks: dict[str, Callable] = {}  # a plan checks all arguments and runs nothing
for _name, (_module, _read) in _OVER_CTYPES.items():
    _register(_name, functools.partial(_called, _name, _read, getattr(_module, _name)))
    _checks[_name] = functools.partial(_called, _name, _read, getattr(_module, f"plan_{_name}"))

_register_autograd("ms_deform_attn", _attention_gradient)
_register_autograd("resample", _resample_gradient, _kept_of_resample)
_register_autograd("gemm", _gemm_gradient)
_register_autograd("ms_deform_attn_backward", _attention_second_gradient)
_register_autograd("resample_backward", _resample_second_gradient)


def _flops(name: str, *arguments: Any, out_shape: Any, **given: Any) -> int:
    """What torch's flop counter says of an operator, from its arguments with shapes in the place of tensors."""
    shapes = {**_named(name, arguments), **given}
    if name == "gemm":
        return 2 * math.prod(out_shape) * shapes["a"][-1]
    corners = 1 if shapes["sampling"] == "nearest" else 4
    both = 2 if name.endswith("backward") else 1  # to the value, and to locations and weights
    return 2 * both * corners * math.prod(shapes["attention_weights"]) * shapes["value"][-1]


for _name in ("ms_deform_attn", "ms_deform_attn_backward", "gemm"):
    for _kind in (_name, f"{_name}_kernel"):
        register_flop_formula(getattr(torch.ops.tmaops, _kind))(functools.partial(_flops, _name))


for _name in ("ms_deform_attn", "resample", "gemm", "linear"):
    torch.fx.wrap(_name)  # a node of the graphs of torch.fx


# --- what models are made of -----------------------------------------------------------------------------------------


class MSDeformAttnFunction:
    """`MSDeformAttnFunction.apply` of Deformable DETR and mmcv. im2col_step is taken and not looked at: any batch works."""

    @staticmethod
    def apply(
        value: Tensor, shapes: Tensor, starts: Tensor, locations: Tensor, weights: Tensor, im2col_step: int = 64
    ) -> Tensor:
        return ms_deform_attn(value, shapes, locations, weights, level_start_index=starts)


def _autocast_dtype(like: Tensor) -> torch.dtype | None:
    """What autocast makes of the inputs of layers beside this tensor; None where it is off."""
    kind = like.device.type
    return torch.get_autocast_dtype(kind) if kind in _DEVICES and torch.is_autocast_enabled(kind) else None


def _without_autocast(like: Tensor) -> contextlib.AbstractContextManager:
    kind = like.device.type
    return torch.autocast(kind, enabled=False) if kind in _DEVICES else contextlib.nullcontext()


def _is_plain_linear(layer: torch.nn.Module, bias: type = torch.nn.Parameter) -> bool:
    """Whether calling the layer is F.linear of its weight and bias and nothing else. `bias`: what this may be, too."""
    return (
        type(layer) is torch.nn.Linear
        and {type(layer.weight), type(layer.bias)} <= {torch.nn.Parameter, bias}
        and "forward" not in layer.__dict__
        and not (layer._forward_hooks or layer._forward_pre_hooks or layer._backward_hooks or layer._backward_pre_hooks)
        and not torch.nn.modules.module._has_any_global_hook()
    )


def _projected(layers: Sequence[Any], states: Tensor) -> tuple[Tensor, list[Tensor]]:
    """Each layer(states) as f32, or f64, behind what they keep of the states. Plain layers in 16 bits have sums in f32; every other is
    called, in its own type."""
    if states.is_quantized:
        raise invalid_type("MSDeformAttn: query", str(states.dtype), "real numbers: layers may be in QuantWrapper")
    if states.is_cuda and all(map(_is_plain_linear, layers)) and not _torch_functions.exports_to_onnx():
        autocast = _autocast_dtype(states)
        narrow = autocast or states.dtype
        types = (narrow, torch.float32) if autocast else (narrow,)
        if narrow.itemsize == 2 and all(layer.weight.dtype in types for layer in layers):
            states = states.to(narrow)  # once: both layers keep it
            return states, [linear(states, layer.weight, layer.bias, out_dtype=torch.float32) for layer in layers]
    with _without_autocast(states):
        states, made = states.to(torch.promote_types(states.dtype, torch.float32)), []
        for layer in layers:
            own = next((part.dtype for part in layer.parameters() if part.is_floating_point()), torch.float32)
            if own.itemsize == 2 and _is_plain_linear(layer):
                made.append(torch.nn.functional.linear(states.float(), layer.weight.float(), layer.bias.float()))
            else:
                made.append(layer(states.to(own)).to(torch.promote_types(own, torch.float32)))
    return states, made


_MANY = {"cuda": 1 << 20}  # values of a layer's output, from which on their memory is worth the work: those of encoders


def _made_again(layers: Sequence[torch.nn.Module], states: Tensor, made: Sequence[Tensor]) -> Any:
    """A context in which gradients keep no outputs `made` of plain layers where there are many: the backward pass makes them again of
    `states`, which the layers keep anyway."""
    few = made[0].numel() < _MANY.get(states.device.type, math.inf) or made[0].dtype.itemsize == 8
    if few or torch.compiler.is_compiling() or not all(map(_is_plain_linear, layers)) or _hooks(True):
        return contextlib.nullcontext()  # checkpoints and others want what is kept
    kept_of = [(layer.weight, layer.bias, layer.weight._version) for layer in layers]
    sources = {output.data_ptr(): (output.dtype, *kept) for output, kept in zip(made, kept_of)}

    def unpack(kept: Any) -> Tensor:
        if isinstance(kept, Tensor):
            return kept
        shape, (dtype, weight, bias, version) = kept
        if weight._version != version:
            raise RuntimeError("tmaops: a weight of the attention was modified in place before its backward pass")
        with torch.no_grad(), _without_autocast(states):
            call = torch.nn.functional.linear if dtype is states.dtype else functools.partial(linear, out_dtype=dtype)
            return call(states, weight.to(states.dtype), bias.to(states.dtype)).view(shape)

    def pack(tensor: Tensor) -> Any:
        return (tensor.shape, source) if (source := sources.get(tensor.data_ptr())) else tensor

    return torch.autograd.graph.saved_tensors_hooks(pack, unpack)


def _attended(layer: Any, run: Callable, places: Any, states: Tensor, made: Sequence[Tensor], **steps: Any) -> Tensor:
    """What a layer like `MSDeformAttn` gives of features, levels and reference points, and of what two of its layers made of states."""
    features, shapes, references = places
    value = layer.value_proj(features).unflatten(-1, (layer.n_heads, -1))
    grid = (*states.shape[:2], layer.n_heads, layer.n_levels, layer.n_points)
    steps |= {"softmax": True, "reference_points": references.expand(*grid[:2], layer.n_levels, -1)}
    offsets, logits = made[0].view(*grid, 2), made[1].view(grid)
    with _made_again((layer.sampling_offsets, layer.attention_weights), states, made):
        output = run(value, shapes, offsets, logits, **steps)
    return layer.output_proj(output)


class MSDeformAttn(torch.nn.Module):
    """Multi-scale deformable attention with its projections. It has the parameters of Deformable DETR's `MSDeformAttn`.

    Args:
        d_model: channels of queries and features. n_levels: feature levels L. n_heads: heads M. n_points: points P of a level.
        offset_scale: what part of a reference box an offset of n_points reaches.

    Under autocast the locations and weights stay f32.
    """

    def __init__(
        self, d_model: int = 256, n_levels: int = 4, n_heads: int = 8, n_points: int = 4, offset_scale: float = 0.5
    ) -> None:
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"MSDeformAttn: got d_model {d_model}, needed a multiple of n_heads {n_heads}")
        self.d_model, self.n_levels, self.n_heads, self.n_points = d_model, n_levels, n_heads, n_points
        self.offset_scale, self.im2col_step = offset_scale, 64
        self.sampling_offsets = torch.nn.Linear(d_model, n_heads * n_levels * n_points * 2)
        self.attention_weights = torch.nn.Linear(d_model, n_heads * n_levels * n_points)
        self.value_proj = torch.nn.Linear(d_model, d_model)
        self.output_proj = torch.nn.Linear(d_model, d_model)
        self._reset_parameters()

    __prepare_scriptable__ = _not_scripted

    def _reset_parameters(self) -> None:
        """Every head begins looking into a direction of its own, one pixel further with each point."""
        with torch.no_grad():
            self.sampling_offsets.weight.zero_()
            angles = torch.arange(self.n_heads, dtype=torch.float32) * (2 * math.pi / self.n_heads)
            directions = torch.stack([angles.cos(), angles.sin()], -1)
            directions = directions / directions.abs().amax(-1, keepdim=True)
            steps = torch.arange(1, self.n_points + 1, dtype=torch.float32)
            offsets = directions[:, None, None, :] * steps[:, None]
            self.sampling_offsets.bias.copy_(offsets.expand(-1, self.n_levels, -1, -1).reshape(-1))
            self.attention_weights.weight.zero_()
            self.attention_weights.bias.zero_()
            for projection in (self.value_proj, self.output_proj):
                torch.nn.init.xavier_uniform_(projection.weight)
                projection.bias.zero_()

    def forward(
        self,
        query: Tensor,
        reference_points: Tensor,
        input_flatten: Tensor,
        input_spatial_shapes: Tensor | Sequence[Sequence[int]],
        input_level_start_index: Tensor | None = None,
        input_padding_mask: Tensor | None = None,
    ) -> Tensor:
        """
        Args:
            query: (N, Lq, d_model).
            reference_points: (N, Lq, L, 2), (x, y) in [0, 1], or (N, Lq, L, 4) boxes (x, y, w, h).
            input_flatten: (N, S, d_model), the pixels of all levels.
            input_spatial_shapes: L pairs (height, width), best as a list.
            input_level_start_index: optional, where each level starts in S.
            input_padding_mask: optional, (N, S) bool; True for pixels that are none.

        Returns:
            (N, Lq, d_model).
        """
        states, made = _projected((self.sampling_offsets, self.attention_weights), query)  # f32: 16 bits are too coarse
        places = (input_flatten, input_spatial_shapes, reference_points)
        steps: dict[str, Any] = {"offset_scale": self.offset_scale, "padding_mask": input_padding_mask}
        steps["level_start_index"] = input_level_start_index
        return _attended(self, ms_deform_attn, places, states, made, **steps)


__all__ = ["Linear", "MSDeformAttn", "MSDeformAttnFunction", "gemm", "linear", "ms_deform_attn", "resample"]
