"""Arrays of other libraries: JAX, and whatever has DLPack alone."""

import numpy as np
import pytest
import tmaops


class DLPackAlone:
    """An array that can do nothing but be exported."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_an_array_with_dlpack_alone_is_read_and_written():
    a, b = np.arange(6, dtype="f4").reshape(2, 3), np.ones((3, 2), "f4")
    np.testing.assert_array_equal(tmaops.gemm(DLPackAlone(a), DLPackAlone(b)), a @ b)
    out = np.zeros((2, 2), "f4")
    tmaops.gemm(a, DLPackAlone(a).array.T, out=DLPackAlone(out))
    np.testing.assert_array_equal(out, a @ a.T)


def test_the_mask_of_an_array_is_not_passed_over():
    masked, times = np.ma.masked_equal([0.0, 99.0, 2.0], 99), np.arange(3.0)
    for call in (
        lambda: tmaops.gemm(masked[None], np.ones((3, 2))),
        lambda: tmaops.resample(masked, times, times),
        lambda: tmaops.resample({"t": times, "x": masked}, hz=1),
    ):
        with pytest.raises(tmaops.InvalidValue, match="masked array"):
            call()
    assert np.isnan(tmaops.resample({"t": times, "x": masked.filled(np.nan)}, hz=1)["x"][1])


@pytest.fixture
def jax():
    """With new arrays on the host."""
    found = pytest.importorskip("jax")
    with found.default_device(found.devices("cpu")[0]):
        yield found


def test_jax_arrays_give_jax_arrays(jax):
    a, b = jax.numpy.arange(6.0).reshape(2, 3), jax.numpy.ones((3, 2))
    got = tmaops.gemm(a, b)
    assert isinstance(got, jax.Array)
    np.testing.assert_allclose(got, a @ b)
    short = a.astype(jax.numpy.bfloat16)
    assert tmaops.gemm(short, short.T).dtype == jax.numpy.bfloat16
    values, valid = tmaops.resample(
        a[..., None], jax.numpy.arange(3.0), jax.numpy.array([0.5, 7.0]), outside="nan", valid=True
    )
    np.testing.assert_array_equal(values[:, 0, 0], [0.5, 3.5])
    np.testing.assert_array_equal(valid, [[True, False]] * 2)
    with pytest.raises(ValueError, match="JAX"):
        tmaops.gemm(a, b, out=jax.numpy.zeros((2, 2)))


def test_jax_arrays_on_a_gpu_give_such_arrays(device):
    jax = pytest.importorskip("jax")
    there = [one for one in jax.devices() if one.platform == "gpu"] if device == "cuda" else []
    if not there:
        pytest.skip("needs --device cuda and JAX with a GPU")
    random = np.random.default_rng(1)
    given = [random.standard_normal(shape).astype(np.float32) for shape in ((64, 96), (96, 32), (64, 96))]
    a, b, other = (jax.device_put(array.astype(jax.numpy.bfloat16), there[0]) for array in given)
    wanted = [np.float64(left) @ np.float64(b) for left in (a, other)]
    got = tmaops.gemm(a, b)
    assert isinstance(got, jax.Array) and got.devices() == {there[0]} and got.dtype == jax.numpy.bfloat16
    np.testing.assert_allclose(np.float64(got), wanted[0], atol=0.2)
    plan = tmaops.plan_gemm(a * 1, b)
    first = plan.run()
    second = plan.rebind(a=other).run()
    np.testing.assert_array_equal(np.float64(first), np.float64(got))  # is not written again
    np.testing.assert_allclose(np.float64(second), wanted[1], atol=0.2)
    with pytest.raises(ValueError, match="JAX"):
        tmaops.gemm(a, b, out=got)


def test_plans_of_jax_arrays_give_what_each_run_wrote(jax):
    plan = tmaops.plan_gemm(jax.numpy.ones((2, 3)), jax.numpy.ones((3, 2)))
    np.testing.assert_array_equal(plan.run(), np.full((2, 2), 3))


def test_a_plan_of_torch_tensors_can_be_rebound():
    torch = pytest.importorskip("torch")
    a, b, out = torch.randn(4, 5), torch.randn(5, 3), torch.empty(4, 3)
    plan = tmaops.plan_gemm(a, b)
    other = torch.randn(4, 5)
    assert plan.rebind(a=other, out=out).run() is out
    torch.testing.assert_close(out, other @ b)
    with pytest.raises(ValueError, match=r"gemm: b.*\n.*strides \(1, 5\)"):
        plan.rebind(b=torch.randn(3, 5).t())
    with pytest.raises(ValueError, match="requires gradients"):
        plan.rebind(b=torch.randn(5, 3, requires_grad=True))


def test_a_plan_of_jax_arrays_can_be_rebound(jax):
    plan = tmaops.plan_gemm(jax.numpy.ones((2, 3)), jax.numpy.ones((3, 2)))
    got = plan.rebind(a=2 * jax.numpy.ones((2, 3))).run()
    assert isinstance(got, jax.Array)
    np.testing.assert_array_equal(got, np.full((2, 2), 6))
