"""The operators inside jax.jit, jax.grad and jax.vmap."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp
import tmaops

LEVELS = [(6, 5), (3, 2)]


def attention(seed=0, batch=2):
    generator = np.random.default_rng(seed)
    shapes = ((batch, 36, 2, 4), (batch, 7, 2, 2, 3, 2), (batch, 7, 2, 2, 3))
    return [generator.random(shape, dtype=np.float32) for shape in shapes]


def attend(value, locations, weights):
    return tmaops.ms_deform_attn(value, LEVELS, locations, weights)


def series():
    generator = np.random.default_rng(1)
    return generator.random((2, 5, 3), dtype=np.float32), np.arange(5, dtype=np.float32), np.float32([0.5, 3.25, 9])


def matrices():
    generator = np.random.default_rng(2)
    return [generator.random(shape, dtype=np.float32) for shape in ((4, 5), (5, 3), (3,))]


def product(a, b, bias):
    return tmaops.gemm(a, b, bias=bias, activation="gelu")


CASES = {"ms_deform_attn": (attend, attention), "resample": (tmaops.resample, series), "gemm": (product, matrices)}


@pytest.mark.parametrize("name", CASES)
def test_a_compiled_program_computes_what_the_call_does(name):
    function, given = CASES[name]
    wanted = function(*given())
    compiled = jax.jit(lambda *operands: function(*operands) * 2)
    got = compiled(*map(jnp.asarray, given()))
    np.testing.assert_allclose(got, wanted * 2, rtol=1e-6)
    assert got.dtype == wanted.dtype
    with pytest.raises(Exception, match="E0"):  # an error of the call, out of the compiled program
        jax.jit(function)(
            *(jnp.asarray(array)[:, :2] if array.ndim > 1 else array for array in given())
        ).block_until_ready()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("mapped", [(0, 0, 0), (1, None, None), (None, 0, None)])
def test_vmap_makes_each_call(name, mapped):
    function, given = CASES[name]
    operands = [
        array if dim is None else np.stack([array, array * np.float32(0.5), array * np.float32(0.25)], dim)
        for array, dim in zip(given(), mapped)
    ]
    wanted = [
        function(*(array if dim is None else np.take(array, call, dim) for array, dim in zip(operands, mapped)))
        for call in range(3)
    ]
    got = jax.jit(jax.vmap(function, mapped))(*map(jnp.asarray, operands))
    np.testing.assert_allclose(got, np.stack(wanted), rtol=1e-6)
    twice = jax.vmap(jax.vmap(function, mapped))(*(jnp.stack([array, array]) for array in operands))
    np.testing.assert_allclose(twice[1], np.stack(wanted), rtol=1e-6)


def test_gradients_are_those_of_the_backward_call():
    value, locations, weights = attention()
    loss = jax.jit(jax.grad(lambda *operands: (attend(*operands) ** 2).sum(), argnums=(0, 1, 2)))
    grad = 2 * attend(value, locations, weights)
    wanted = tmaops.ms_deform_attn_backward(value, LEVELS, locations, weights, grad)
    for mine, theirs in zip(loss(value, locations, weights), wanted):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)
    values, times, targets = series()
    got = jax.grad(lambda values: tmaops.resample(values, times, targets).sum())(jnp.asarray(values))
    ones = np.ones((2, 3, 3), np.float32)
    np.testing.assert_allclose(got, tmaops.resample_backward(ones, times, targets, samples=5), rtol=1e-6)


def test_what_cannot_be_traced_is_refused_by_name():
    value, locations, weights = map(jnp.asarray, attention())
    with pytest.raises(tmaops.Error, match="ms_deform_attn: levels"):
        jax.jit(lambda levels: tmaops.ms_deform_attn(value, levels, locations, weights))(jnp.asarray(LEVELS))
    with pytest.raises(tmaops.Error, match="ms_deform_attn: levels"):
        jax.jit(lambda levels, value: tmaops.ms_deform_attn(value, levels, locations, weights))(
            jnp.asarray(LEVELS), value
        )
    with pytest.raises(tmaops.Error, match="gemm: out"):
        jax.jit(lambda a: tmaops.gemm(a, a, out=np.ones((4, 4), np.float32)))(jnp.ones((4, 4)))
    with pytest.raises(NotImplementedError, match="tmaops.gemm has no gradient"):
        jax.grad(lambda a: tmaops.gemm(a, a).sum())(jnp.ones((4, 4)))
    with pytest.raises(tmaops.Error, match="gemm: a"):
        jax.jit(lambda a: tmaops.plan_gemm(a, a).run())(jnp.ones((4, 4)))
