"""The operators of tmaops.torch by torch's own functions: for ONNX, forward mode and second derivatives."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from tmaops._errors import invalid_type, invalid_value

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "none": lambda sums: sums,
    "relu": torch.relu,
    "gelu": torch.nn.functional.gelu,
    "silu": torch.nn.functional.silu,
}


def exports_to_onnx() -> bool:
    return torch.onnx.is_in_onnx_export()


# torch.compiler.assume_constant_result, without its import of the compiler: where torch.export traces Python, torch's function is False.
vars(exports_to_onnx)["_dynamo_marked_constant"] = True

# What locations and weights are made of.
STEPS = ("sampling_locations", "attention_weights", "reference_points")


def before_sampling(given: dict[str, Any]) -> tuple[Tensor, Tensor, Tensor | None]:
    """Locations of offsets, weights of logits, and what offsets are multiplied with, from the operator's arguments by name."""
    offsets, weights, references = (given[what] for what in STEPS)
    wide, points = torch.promote_types(given["value"].dtype, torch.float32), given["points_per_level"]
    if given["softmax"]:
        weights = weights.flatten(3).softmax(-1, wide).view(weights.shape)
    if references is None:
        return offsets, weights, None
    if references.shape[-1] == 4:
        counts = offsets.shape[4]
        if points is not None:
            counts = _numbers(tuple(max(count, 1) for count in points), wide, references.device)[:, None]
        reach = references[..., 2:].to(wide) * (given["offset_scale"] / counts)
    elif given["spatial_shapes"] is not None:
        reach = 1 / given["spatial_shapes"].flip(1).to(wide)[None, None]
    elif torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() > 0:  # where sides may be symbols
        sides = [torch.full((), side, dtype=wide, device=references.device) for side in given["levels"]]
        reach = 1 / torch.stack(sides).view(1, 1, -1, 2).flip(3)
    else:
        reach = 1 / _numbers(tuple(given["levels"]), wide, references.device).view(1, 1, -1, 2).flip(3)
    level: Any = (slice(None), slice(None), None, slice(None), None)
    if points is not None:
        owners = tuple(number for number, count in enumerate(points) for _ in range(count))
        level = (*level[:3], _numbers(owners, torch.int64, references.device))
    reach = reach[level]
    return torch.addcmul(references[..., :2].to(wide)[level], offsets.to(wide), reach), weights, reach


def _numbers(given: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """A tensor that is copied to a GPU once: a copy in every call would be waited for, and a CUDA graph refuses it."""
    anew = torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack() > 0
    return torch.tensor(given, dtype=dtype, device=device) if anew else _kept(given, dtype, device)


@functools.lru_cache
def _kept(given: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    with torch.inference_mode(False), torch._C._DisableFuncTorch():  # a tensor of a transform ends with it
        return torch.tensor(given, dtype=dtype, device=device)


def ms_deform_attn(
    value: Tensor,
    levels: Sequence[int],
    sampling_locations: Tensor,
    attention_weights: Tensor,
    level_start_index: Sequence[int] | None = None,
    points_per_level: Sequence[int] | None = None,
    sampling: str = "bilinear",
    softmax: bool = False,
    reference_points: Tensor | None = None,
    offset_scale: float = 0.5,
    spatial_shapes: Tensor | None = None,
    level_starts: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """One grid_sample for each level in ONNX, where locations that are not finite are not looked for. Else gathers."""
    if spatial_shapes is not None:
        raise invalid_value(
            "ms_deform_attn: levels", "a tensor that stays on the GPU", "a list, for torch's own functions"
        )
    sampling_locations, attention_weights, _ = before_sampling(dict(locals()))
    pairs = list(zip(levels[::2], levels[1::2]))
    sizes = [height * width for height, width in pairs]
    compiles = torch.compiler.is_compiling()  # where sides may be symbols, and split looks at them
    if level_start_index is None and not compiles and sum(sizes) != value.shape[1]:
        raise invalid_value("ms_deform_attn: levels", f"{sum(sizes)} pixels", f"{value.shape[1]}, as the value has")
    if points_per_level is None:
        points_per_level = [sampling_locations.shape[4]] * len(pairs)
        sampling_locations, attention_weights = sampling_locations.flatten(3, 4), attention_weights.flatten(3, 4)
    heads, wide = value.shape[2], torch.promote_types(value.dtype, torch.float32)
    images = value.to(wide).permute(0, 2, 3, 1).flatten(0, 1)  # (N M, D, S)
    locations = sampling_locations.to(wide).permute(0, 2, 1, 3, 4).flatten(0, 1)  # (N M, Lq, points, 2)
    weights = attention_weights.to(wide).permute(0, 2, 1, 3).flatten(0, 1).unsqueeze(1)  # (N M, 1, Lq, points)
    narrow = functools.partial(images.narrow, 2)  # no function with images in its closure: locals() above would read it
    parts = images.split(sizes, 2) if level_start_index is None else tuple(map(narrow, level_start_index, sizes))
    sampled, look = [], _nearest if sampling == "nearest" else _bilinear
    for part, places, shape in zip(parts, locations.split(points_per_level, 2), pairs):
        sampled.append(look(part, places, *shape))
    output = (torch.cat(sampled, -1) * weights).sum(-1)  # (N M, D, Lq)
    return output.unflatten(0, (-1, heads)).permute(0, 3, 1, 2).flatten(2).to(out_dtype or value.dtype)


def _bilinear(image: Tensor, places: Tensor, height: int, width: int) -> Tensor:
    """(N M, D, Lq, points) of an image (N M, D, S). grid_sample has neither forward mode nor second derivatives."""
    if exports_to_onnx():
        grid, image = 2 * places - 1, image.unflatten(2, (height, width))
        return torch.nn.functional.grid_sample(image, grid, padding_mode="zeros", align_corners=False)
    places = places.where(places.isfinite().all(-1, keepdim=True), -1)
    x, y = places.unsqueeze(1).unbind(-1)
    x, y = x * width - 0.5, y * height - 0.5
    left, top = x.detach().floor(), y.detach().floor()
    rows = [(top, 1 + top - y), (top + 1, y - top)]
    columns = [(left, 1 + left - x), (left + 1, x - left)]
    corners = itertools.product(rows, columns)
    return sum(_pixels_of(image, row, column, height, width) * up * side for (row, up), (column, side) in corners)  # type: ignore[return-value]


def _nearest(image: Tensor, places: Tensor, height: int, width: int) -> Tensor:
    x, y = places.detach().unsqueeze(1).unbind(-1)
    rows, columns = (y * height + 0.5).floor(), (x * width + 0.5).floor()
    return _pixels_of(image, rows.clamp(0, height - 1), columns.clamp(0, width - 1), height, width)


def _pixels_of(image: Tensor, rows: Tensor, columns: Tensor, height: int, width: int) -> Tensor:
    """(N M, D, Lq, points) at rows and columns (N M, 1, Lq, points), 0 beside the image."""
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    pixels = rows.clamp(0, height - 1).long() * width + columns.clamp(0, width - 1).long()
    found = image.gather(2, pixels.flatten(2).expand(-1, image.shape[1], -1))
    return found.unflatten(2, pixels.shape[2:]).where(inside, 0)


def ms_deform_attn_backward(
    grad_output: Tensor,
    value: Tensor,
    levels: Sequence[int],
    sampling_locations: Tensor,
    attention_weights: Tensor,
    needed: int,
    deterministic: bool = False,
    **options: Any,
) -> tuple[Tensor, ...]:
    """The gradients; `needed` has a bit for each."""
    inputs = (value, sampling_locations, attention_weights)
    output, pullback, *_ = torch.func.vjp(lambda v, *steps: ms_deform_attn(v, levels, *steps, **options), *inputs)
    gradients = pullback(grad_output.to(output.dtype))
    return tuple(grad if needed >> bit & 1 else grad.new_empty(0) for bit, grad in enumerate(gradients))


def gemm(
    a: Tensor, b: Tensor, bias: Tensor | None = None, activation: str = "none", out_dtype: torch.dtype | None = None
) -> Tensor:
    if torch.float64 in (a.dtype, b.dtype):
        raise invalid_type("gemm: a and b", f"{a.dtype} and {b.dtype}", "types of at most 32 bits: sums are f32")
    product = torch.matmul(a.float(), b.float())
    if bias is not None:
        product = product + bias.float()
    return ACTIVATIONS[activation](product).to(out_dtype or a.dtype)
