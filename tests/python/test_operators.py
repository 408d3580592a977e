"""The operators on NumPy arrays, against NumPy."""

import gc
import weakref

import numpy as np
import pytest
import tmaops


def random(*shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def test_gemm_agrees_with_numpy():
    a, b, bias = random(5, 7), random(7, 3, seed=1), random(3, seed=2)
    got = tmaops.gemm(a, b, bias=bias, activation="relu", alpha=0.5)
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, np.maximum(0.5 * a @ b + bias, 0), rtol=1e-5, atol=1e-6)


def test_gemm_takes_transposed_and_strided_inputs_and_batches():
    a, b = random(2, 7, 5), random(3, 14, seed=1)
    np.testing.assert_allclose(
        tmaops.gemm(a.transpose(0, 2, 1), b.T[::2]), a.transpose(0, 2, 1) @ b.T[::2], rtol=1e-5, atol=1e-6
    )


def test_gemm_adds_c_and_writes_into_out():
    a, b, c = random(4, 6, dtype="float16"), random(6, 2, dtype="float16", seed=1), random(4, 2, seed=2)
    out = np.empty((4, 2), np.float32)
    assert tmaops.gemm(a, b, c=c, beta=2.0, out=out) is out
    np.testing.assert_allclose(out, a.astype("f4") @ b.astype("f4") + 2 * c, rtol=1e-4, atol=1e-4)


def test_gemm_takes_bfloat16_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a, b = random(4, 6).astype(ml_dtypes.bfloat16), random(6, 2, seed=1).astype(ml_dtypes.bfloat16)
    got = tmaops.gemm(a, b, out_dtype="f32")
    np.testing.assert_allclose(got, a.astype("f4") @ b.astype("f4"), rtol=1e-5, atol=1e-5)
    assert tmaops.gemm(a, b).dtype == ml_dtypes.bfloat16


LEVELS = [(5, 4), (3, 2)]


def attention_inputs(dtype="float64", points=3, n=2, queries=7, heads=2, channels=4):
    pixels = sum(h * w for h, w in LEVELS)
    rng = np.random.default_rng(3)
    value = rng.standard_normal((n, pixels, heads, channels)).astype(dtype)
    locations = rng.uniform(-0.1, 1.1, (n, queries, heads, len(LEVELS), points, 2)).astype(dtype)
    weights = rng.uniform(0, 1, (n, queries, heads, len(LEVELS), points)).astype(dtype)
    return value, locations, weights


def attention_by_definition(value, locations, weights):
    n, _, heads, channels = value.shape
    queries = locations.shape[1]
    output = np.zeros((n, queries, heads, channels))
    start = 0
    for level, (height, width) in enumerate(LEVELS):
        image = value[:, start : start + height * width].reshape(n, height, width, heads, channels)
        start += height * width
        for index in np.ndindex(n, queries, heads, locations.shape[4]):
            b, q, m, p = index
            u = locations[b, q, m, level, p, 0] * width - 0.5
            t = locations[b, q, m, level, p, 1] * height - 0.5
            for i in range(height):
                for j in range(width):
                    share = max(0, 1 - abs(u - j)) * max(0, 1 - abs(t - i))
                    output[b, q, m] += weights[b, q, m, level, p] * share * image[b, i, j, m]
    return output.reshape(n, queries, heads * channels)


def test_attention_agrees_with_its_definition():
    value, locations, weights = attention_inputs()
    wanted = attention_by_definition(value, locations, weights)
    np.testing.assert_allclose(tmaops.ms_deform_attn(value, LEVELS, locations, weights), wanted, atol=1e-12)
    got = tmaops.ms_deform_attn(
        value, np.array(LEVELS), locations.astype("f4"), weights.astype("f4"), variant="reference"
    )
    np.testing.assert_allclose(got, wanted, atol=1e-5)


def test_attention_fuses_softmax_reference_points_and_mask():
    value, locations, weights = attention_inputs()
    soft = np.exp(weights) / np.exp(weights).sum((-2, -1), keepdims=True)
    mask = np.zeros(value.shape[:2], bool)
    mask[:, ::3] = True
    references = np.full((2, 7, len(LEVELS), 2), 0.5)
    sizes = np.array([(w, h) for h, w in LEVELS])[:, None]
    wanted = attention_by_definition(np.where(mask[..., None, None], 0, value), 0.5 + locations / sizes, soft)
    got = tmaops.ms_deform_attn(
        value, LEVELS, locations, weights, softmax=True, reference_points=references, padding_mask=mask
    )
    np.testing.assert_allclose(got, wanted, atol=1e-12)


def test_attention_takes_the_factor_of_reference_boxes():
    value, locations, weights = attention_inputs()
    boxes = np.full((2, 7, len(LEVELS), 4), 0.4)
    wanted = tmaops.ms_deform_attn(value, LEVELS, 0.4 + locations / locations.shape[4] * 0.4 * 0.25, weights)
    got = tmaops.ms_deform_attn(value, LEVELS, locations, weights, reference_points=boxes, offset_scale=0.25)
    np.testing.assert_allclose(got, wanted, atol=1e-12)


def test_attention_writes_f32_beside_f16_values():
    value, locations, weights = attention_inputs()
    half = value.astype("f2")
    got = tmaops.ms_deform_attn(half, LEVELS, locations, weights, out_dtype="f32")
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, tmaops.ms_deform_attn(half.astype("f8"), LEVELS, locations, weights), atol=1e-5)


def test_attention_backward_agrees_with_differences():
    value, locations, weights = attention_inputs(n=1, queries=2)
    grad = random(1, 2, 8, dtype="float64", seed=5)
    grads = tmaops.ms_deform_attn_backward(value, LEVELS, locations, weights, grad)
    for position, (array, gradient) in enumerate(zip((value, locations, weights), grads)):
        index = tuple(size // 2 for size in array.shape)
        inputs = [value, locations, weights]
        ends = []
        for step in (1e-6, -1e-6):
            inputs[position] = array.copy()
            inputs[position][index] += step
            ends.append((tmaops.ms_deform_attn(inputs[0], LEVELS, inputs[1], inputs[2]) * grad).sum())
        assert gradient.shape == array.shape
        assert gradient[index] == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5, abs=1e-7)
    only = tmaops.ms_deform_attn_backward(value, LEVELS, locations, weights, grad, needed=(False, False, True))
    assert only[:2] == (None, None)
    np.testing.assert_array_equal(only[2], grads[2])


def test_resampling_agrees_with_numpy():
    times = np.cumsum(np.random.default_rng(0).uniform(0.1, 1, 50))
    values = random(1, 50, 3, dtype="float64")
    targets = np.linspace(times[0] - 1, times[-1] + 1, 77)
    got, valid = tmaops.resample(values, times, targets, outside="nan", valid=True)
    inside = (targets >= times[0]) & (targets <= times[-1])
    np.testing.assert_array_equal(valid[0], inside)
    for channel in range(3):
        np.testing.assert_allclose(
            got[0, inside, channel], np.interp(targets[inside], times, values[0, :, channel]), atol=1e-12
        )
    assert np.isnan(got[0, ~inside]).all()


def test_resampling_takes_grids_groups_gaps_and_datetimes():
    stamps = np.array(["2026-01-01T00:00:00", "2026-01-01T00:00:01", "2026-01-01T00:00:05"], "datetime64[ns]")
    values = np.array([[[0.0, 1], [10, 2], [20, 3]]])
    start = stamps[0]
    got = tmaops.resample(
        values,
        stamps,
        grid=(start, np.timedelta64(500, "ms"), 5),
        groups=[(0, 1, "linear"), (1, 1, "previous")],
        max_gap=np.timedelta64(2, "s"),
    )
    np.testing.assert_array_equal(got[0], [[0, 1], [5, 1], [10, 2], [np.nan, np.nan], [np.nan, np.nan]])


def test_resampling_of_packed_trajectories():
    got = tmaops.resample(
        np.arange(5.0)[:, None],
        np.array([0, 1, 0, 1, 2.0]),
        np.array([0.5, 0.5, 1.5]),
        source_offsets=[0, 2, 5],
        target_offsets=[0, 1, 3],
    )
    np.testing.assert_array_equal(got[:, 0], [0.5, 2.5, 3.5])


class OnAGpu:
    """Offsets at an address of a GPU that is not there: who reads them dies."""

    __cuda_array_interface__ = {"data": (1 << 44, False), "shape": (3,), "typestr": "<i8", "version": 3}


def test_resampling_takes_offsets_of_any_kind_on_the_host():
    values, times, targets = random(5, 2), np.array([0, 1, 0, 1, 2.0]), np.array([0.5, 0.5, 1.5])
    wanted = tmaops.resample(values, times, targets, source_offsets=[0, 2, 5], target_offsets=[0, 1, 3])
    for kind in ("i8", "i4", "u2"):
        source, target = np.array([0, 2, 5], kind), np.array([0, 1, 3], kind)
        np.testing.assert_array_equal(
            tmaops.resample(values, times, targets, source_offsets=source, target_offsets=target), wanted
        )
    plan = tmaops.plan_resample(values, times, targets, source_offsets=source, target_offsets=target)
    source[:] = 7
    np.testing.assert_array_equal(plan.run(), wanted)
    gridded = tmaops.resample(values, times, grid=(0.0, 0.5, 3), source_offsets=np.array([0, 2, 5]))
    assert gridded.shape == (2, 3, 2)


def test_offsets_on_a_gpu_are_not_copied_to_the_host():
    values, times, targets = random(5, 2), np.array([0, 1, 0, 1, 2.0]), np.array([0.5, 0.5, 1.5])
    for argument in ("source_offsets", "target_offsets"):
        offsets = {"source_offsets": [0, 2, 5], "target_offsets": [0, 1, 3], argument: OnAGpu()}
        for call in (tmaops.resample, tmaops.plan_resample):
            with pytest.raises(ValueError, match=argument[:-1] + "_tensor") as caught:
                call(values, times, targets, **offsets)
            assert caught.value.code == 13 and caught.value.got == "cuda:0"
        with pytest.raises(ValueError, match=argument[:-1] + "_tensor"):
            tmaops.resample_backward(random(3, 2), times, targets, **offsets)
        with pytest.raises(ValueError, match=argument[:-1] + "_tensor"):
            tmaops.resample_violations(times, targets, **offsets)


def test_gradient_of_resampling_is_its_transpose():
    times, targets = np.array([0, 1, 3.0]), np.array([0.25, 2.0, 2.5, 9])
    matrix = tmaops.resample(np.eye(3)[None], times, targets)[0]
    gradient = tmaops.resample_backward(np.eye(4)[None], times, targets)[0]
    np.testing.assert_allclose(gradient, matrix.T, atol=1e-15)


INTERVALS = {
    "sum": [1, 5, 9],
    "count": [1, 2, 2],
    "min": [1, 2, 4],
    "max": [1, 3, 5],
    "any": [1, 1, 1],
    "mean": [1.5, 3, 4.5],
    "lowpass": [1, 3, 5],
}


@pytest.mark.parametrize("mode", INTERVALS)
def test_resampling_over_the_interval_of_a_target(mode):
    values, times, targets = np.arange(1.0, 6)[None, :, None], np.arange(5.0), np.array([0.0, 2, 4])
    got = tmaops.resample(values, times, targets, interpolation=mode)[0, :, 0]
    np.testing.assert_allclose(got, INTERVALS[mode], atol=1e-9)
    grouped = tmaops.resample(values, times, targets, groups=[(0, 1, mode)])[0, :, 0]
    np.testing.assert_array_equal(grouped, got)


def test_gradient_over_an_interval_is_its_transpose_or_that_of_the_extreme():
    times, targets = np.array([0, 1, 3.0, 4]), np.array([0.25, 2.0, 2.5, 9])
    for mode in ("mean", "sum", "lowpass"):
        matrix = tmaops.resample(np.eye(4)[None], times, targets, interpolation=mode)[0]
        gradient = tmaops.resample_backward(np.eye(4)[None], times, targets, interpolation=mode)[0]
        np.testing.assert_allclose(gradient, matrix.T, atol=1e-15)
    values, grad = np.array([[[5.0], [7], [7], [1]]]), np.ones((1, 2, 1))
    gradient = tmaops.resample_backward(grad, times, np.array([0.0, 4]), values=values, interpolation="max")
    np.testing.assert_array_equal(gradient[0, :, 0], [1, 1, 0, 0])
    plan = tmaops.plan_resample_backward(grad, times, np.array([0.0, 4]), values=values, interpolation="max")
    np.testing.assert_array_equal(plan.rebind(values=-values).run()[0, :, 0], [1, 0, 0, 1])
    with pytest.raises(tmaops.Error, match="values of the forward pass"):
        tmaops.resample_backward(grad, times, np.array([0.0, 4]), interpolation="max")
    with pytest.raises(tmaops.Error, match="any and count are steps"):
        tmaops.resample_backward(grad, times, np.array([0.0, 4]), interpolation="any")


def test_violations_are_counted():
    counts = tmaops.resample_violations(np.array([0.0, 2, 1, np.nan]), np.array([0.0]))
    assert counts["source_not_sorted"] == 1
    assert counts["source_not_finite"] == 1
    assert counts["target_outside"] == 0
    assert counts["bad_offsets"] == 0


def test_a_plan_runs_again_on_what_lies_in_its_arrays():
    a, b = random(4, 4), random(4, 4, seed=1)
    with tmaops.plan_gemm(a, b) as plan:
        np.testing.assert_allclose(plan.run(), a @ b, rtol=1e-5, atol=1e-6)
        a[:] = 0
        assert not plan.run().any()
        assert plan.variant in repr(plan)
    with pytest.raises(ValueError, match="closed"):
        plan.run()


def test_a_plan_can_be_given_other_arrays():
    a, b, bias, c = random(4, 5), random(5, 3, seed=1), random(3, seed=2), random(4, 3, seed=3)
    plan = tmaops.plan_gemm(a, b, bias=bias, c=c)
    first = plan.run()
    kept = first.copy()
    a2, d2 = random(4, 5, seed=4), np.empty((4, 3), "f4")
    assert plan.rebind(a=a2, out=d2) is plan
    assert plan.run() is d2 and plan.output is d2
    np.testing.assert_allclose(d2, a2 @ b + bias + c, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(first, kept)
    bias2, c2 = random(3, seed=5), random(4, 3, seed=6)
    np.testing.assert_allclose(plan.rebind(bias=bias2, c=c2).run(), a2 @ b + bias2 + c2, rtol=1e-5, atol=1e-5)


def test_a_plan_without_c_has_none_to_rebind():
    c = random(4, 3)
    plan = tmaops.plan_gemm(random(4, 5), random(5, 3), c=c, beta=0)
    plan.rebind(a=random(4, 5, seed=6))
    with pytest.raises(tmaops.Error, match="gemm: c") as caught:
        plan.rebind(c=c)
    assert caught.value.needed == "one of a, b, out"


def test_what_cannot_be_rebound_leaves_the_plan_as_it_was():
    a, b = random(4, 4), random(4, 4, seed=1)
    plan = tmaops.plan_gemm(a, b)
    wide = random(8, 4)
    for name, array in (
        ("a", random(4, 5)),
        ("a", a.astype("f8")),
        ("a", np.asfortranarray(a)),
        ("a", wide[::2]),
        ("x", a),
        ("bias", a[0]),
    ):
        with pytest.raises(ValueError, match=f"gemm: {name}") as caught:
            plan.rebind(**{"b": wide[:4], name: array})
        assert caught.value.code == 18
    with pytest.raises(tmaops.Error) as caught:
        plan.rebind(out=a)
    assert caught.value.name == "overlap"
    read_only = random(4, 4)
    read_only.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        plan.rebind(out=read_only)
    np.testing.assert_allclose(plan.run(), a @ b, rtol=1e-5, atol=1e-6)
    plan.close()
    with pytest.raises(ValueError, match="closed"):
        plan.rebind(a=a)


def test_a_rebound_plan_keeps_its_new_arrays_and_lets_go_of_the_old_ones():
    a, b = random(4, 4), random(4, 4, seed=1)
    plan = tmaops.plan_gemm(a, b)
    old = weakref.ref(a)
    plan.rebind(a=random(4, 4, seed=2))
    del a
    gc.collect()
    assert old() is None
    np.testing.assert_allclose(plan.run(), random(4, 4, seed=2) @ b, rtol=1e-5, atol=1e-6)


def test_plans_of_every_operator_can_be_rebound():
    def again(arrays):
        return {name: random(*array.shape, dtype="float64", seed=9) for name, array in arrays.items()}

    value, locations, weights = attention_inputs()
    references, mask = np.random.default_rng(2).uniform(size=(2, 7, 2, 2)), np.zeros((2, value.shape[1]), bool)
    arrays = {"value": value, "sampling_locations": locations, "attention_weights": weights}
    fused = {"reference_points": references, "padding_mask": mask}
    plan = tmaops.plan_ms_deform_attn(levels=LEVELS, **arrays, **fused, softmax=True)
    new = again(arrays) | {"reference_points": references + 0.1, "padding_mask": ~mask}
    assert not plan.rebind(padding_mask=~mask).run().any()
    new["padding_mask"][:, ::2] = False
    np.testing.assert_array_equal(plan.rebind(**new).run(), tmaops.ms_deform_attn(levels=LEVELS, **new, softmax=True))

    arrays["grad_output"] = random(2, 7, 8, dtype="float64")
    backward = tmaops.plan_ms_deform_attn_backward(levels=LEVELS, **arrays, needed=(True, False, True))
    new = again(arrays)
    wanted = tmaops.ms_deform_attn_backward(levels=LEVELS, **new)
    grad_value = np.empty_like(value)
    got = backward.rebind(**new, grad_value=grad_value).run()
    assert got[0] is grad_value and got[1] is None
    np.testing.assert_array_equal(got[0], wanted[0])
    np.testing.assert_array_equal(got[2], wanted[2])
    with pytest.raises(ValueError, match="grad_sampling_locations"):
        backward.rebind(grad_sampling_locations=np.empty_like(locations))

    values, times, targets = random(2, 9, 3), np.arange(9.0), np.array([0.5, 30.25])
    resampling = tmaops.plan_resample(values, times, targets, outside="nan", valid=True)
    new = {"values": random(2, 9, 3, seed=9), "source_times": times * 2, "target_times": targets[::-1].copy()}
    valid = np.empty((2, 2), bool)
    for planned, called in zip(
        resampling.rebind(**new, valid=valid).run(), tmaops.resample(**new, outside="nan", valid=True)
    ):
        np.testing.assert_array_equal(planned, called)
    assert resampling.output[1] is valid
    gridded = tmaops.plan_resample(values, times, grid=(0.0, 0.5, 4))
    np.testing.assert_array_equal(
        gridded.rebind(values=new["values"]).run(), tmaops.resample(new["values"], times, grid=(0.0, 0.5, 4))
    )
    back = tmaops.plan_resample_backward(random(2, 2, 3), times, targets)
    gradient = {"grad_output": random(2, 2, 3, seed=9), "source_times": times * 2}
    np.testing.assert_array_equal(
        back.rebind(**gradient).run(), tmaops.resample_backward(target_times=targets, **gradient)
    )


def test_every_operator_has_a_plan():
    value, locations, weights = attention_inputs()
    grad = random(2, 7, 8, dtype="float64")
    attention = tmaops.plan_ms_deform_attn(value, LEVELS, locations, weights)
    np.testing.assert_array_equal(attention.run(), tmaops.ms_deform_attn(value, LEVELS, locations, weights))
    backward = tmaops.plan_ms_deform_attn_backward(value, LEVELS, locations, weights, grad)
    for planned, called in zip(backward.run(), tmaops.ms_deform_attn_backward(value, LEVELS, locations, weights, grad)):
        np.testing.assert_array_equal(planned, called)
    values, times, targets = random(2, 9, 3), np.arange(9.0), np.array([0.5, 3.25])
    np.testing.assert_array_equal(
        tmaops.plan_resample(values, times, targets).run(), tmaops.resample(values, times, targets)
    )
    gradient = random(2, 2, 3)
    np.testing.assert_array_equal(
        tmaops.plan_resample_backward(gradient, times, targets).run(),
        tmaops.resample_backward(gradient, times, targets),
    )
