"""Values whose channels lie apart, as (N, M, D, S) has them, are read as they lie."""

import numpy as np
import pytest
import tmaops

torch = pytest.importorskip("torch")

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
