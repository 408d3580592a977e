"""Values whose channels lie apart, as (N, M, D, S) has them, are read as they lie."""

import numpy as np
import pytest
import tmaops

torch = pytest.importorskip("torch")

from tmaops.compat import _attention

PYRAMIDS = ([(6, 5), (3, 2)], [(40, 33), (20, 17), (1, 1)], [(1, 700)])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("levels", PYRAMIDS)
@pytest.mark.parametrize("channels", [32, 5])
def test_channels_before_pixels_give_the_same(dtype, levels, channels):
    generator = torch.Generator().manual_seed(0)
    pixels, batch, heads, queries = sum(height * width for height, width in levels), 2, 3, 70
    value = torch.randn(batch, pixels, heads, channels, generator=generator).to(dtype)
    locations = torch.rand(batch, queries, heads, len(levels), 2, 2, generator=generator) * 1.2 - 0.1
    weights = torch.rand(batch, queries, heads, len(levels), 2, generator=generator)
    mask = torch.rand(batch, pixels, generator=generator) < 0.2
    layouts = {
        "(N, M, D, S)": value.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2),
        "(N, D, S, M)": value.permute(0, 3, 1, 2).contiguous().permute(0, 2, 3, 1),
        "every other channel": value.repeat_interleave(2, -1)[..., ::2],
    }
    near = {"rtol": 1e-4, "atol": 3e-4} if dtype is torch.float32 else {"rtol": 2e-2, "atol": 2e-2}
    before = tmaops.num_threads()
    for options in ({}, {"padding_mask": mask}, {"sampling": "nearest"}):
        wanted = tmaops.ms_deform_attn(value, levels, locations, weights, **options, variant="reference")
        for name, layout in layouts.items():
            assert layout.stride(-1) != 1
            for threads in (1, 4, 9):  # less than the images and heads, and more
                tmaops.set_num_threads(threads)
                try:
                    got = tmaops.ms_deform_attn(layout, levels, locations, weights, **options)
                finally:
                    tmaops.set_num_threads(before)
                torch.testing.assert_close(
                    got, wanted, **near, msg=lambda text: f"{name}, {options}, {threads}: {text}"
                )


def test_vectors_read_channels_that_lie_apart():
    """Plain loops take 5 to 20 times as long."""
    if "highway" in {variant.missing for variant in tmaops.variants("ms_deform_attn") if variant.name == "simd"}.pop():
        pytest.skip("built without Highway")
    value = np.ones((1, 2, 32, 36), np.float32).transpose(0, 3, 1, 2)
    locations, weights = np.ones((1, 7, 2, 2, 3, 2), np.float32), np.ones((1, 7, 2, 2, 3), np.float32)
    assert tmaops.plan_ms_deform_attn(value, [(6, 5), (3, 2)], locations, weights).variant == "simd"


def test_the_parts_of_one_tensor_are_read_in_place_and_have_its_gradients():
    levels, heads, channels = [(4, 3), (2, 2), (1, 1)], 2, 5
    pixels = [height * width for height, width in levels]
    memory = torch.randn(3, sum(pixels), heads, channels, dtype=torch.float64, requires_grad=True)
    parts = (2 * memory).permute(0, 2, 3, 1).split(pixels, -1)
    joined = _attention.pixels_first(parts, levels, heads)
    assert joined.data_ptr() == parts[0].data_ptr() and joined.stride() == memory.stride()
    assert torch.equal(joined, 2 * memory)
    weights = torch.randn_like(memory)
    (joined * weights).sum().backward()
    torch.testing.assert_close(memory.grad, 2 * weights)


@pytest.mark.parametrize("change", [lambda parts: parts[::-1], lambda parts: [part.clone() for part in parts]])
def test_levels_that_do_not_follow_each_other_are_joined_by_a_copy(change):
    memory = torch.randn(3, 8, 2, 5)
    parts = change(memory.permute(0, 2, 3, 1).split([4, 4], -1))
    joined = _attention.pixels_first(parts, [(2, 2), (2, 2)], 2)
    assert joined.data_ptr() not in [part.data_ptr() for part in parts]
    assert torch.equal(joined, torch.cat([part.permute(0, 3, 1, 2) for part in parts], 1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_encoders_copy_channels_before_pixels_without_a_step_between(dtype):
    """Many queries on channels that are whole vectors: simd_packed turns the value while it packs it."""
    if "highway" in {variant.missing for variant in tmaops.variants("ms_deform_attn") if variant.name == "simd"}.pop():
        pytest.skip("built without Highway")
    levels, generator = [(21, 18), (9, 7), (2, 1)], torch.Generator().manual_seed(0)
    pixels = sum(height * width for height, width in levels)
    value = torch.randn(2, pixels, 2, 32, generator=generator).to(dtype)
    locations = torch.rand(2, pixels, 2, 3, 4, 2, generator=generator) * 1.2 - 0.1
    weights = torch.rand(2, pixels, 2, 3, 4, generator=generator)
    mask = torch.rand(2, pixels, generator=generator) < 0.2
    turned = value.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    assert tmaops.plan_ms_deform_attn(turned, levels, locations, weights).variant == "simd_packed"
    for options in ({}, {"padding_mask": mask}):
        wanted = tmaops.ms_deform_attn(value, levels, locations, weights, **options)
        assert torch.equal(tmaops.ms_deform_attn(turned, levels, locations, weights, **options), wanted)
    turned[1, 5, 0, 3] = torch.inf  # in an image that is not the first
    near = {"rtol": 1e-4, "atol": 3e-4} if dtype is torch.float32 else {"rtol": 2e-2, "atol": 2e-2}
    wanted = tmaops.ms_deform_attn(turned, levels, locations, weights, variant="reference")
    got = tmaops.ms_deform_attn(turned, levels, locations, weights)
    torch.testing.assert_close(got, wanted, **near, equal_nan=True)
