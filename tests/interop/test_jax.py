"""Rollouts under jax.grad, jit and vmap."""
import numpy as np
import pytest

import liedyn as ld
from zoo import model_of, state

STEPS, DT = 15, 2e-3


@pytest.fixture
def jax():
    import jax
    jax.config.update("jax_enable_x64", True)
    return jax


@pytest.mark.parametrize("name", ["universal", "free"])
def test_gradients_are_those_of_the_adjoint_and_of_differences(name, jax, worst):
    from liedyn.interop.jax import rollout_function
    model, rng = model_of(name), np.random.default_rng(0)
    q, v, _, _ = (x[0] for x in state(model, 3, (1,)))
    tau, w = rng.standard_normal((STEPS, model.nv)), rng.standard_normal((STEPS + 1, model.nv))
    roll = rollout_function(model, dt=DT, steps=STEPS, method="semi_implicit", passive=False)
    weight = rng.standard_normal((STEPS + 1, model.nq))

    def cost(q0, v0, tau):
        q, v = roll(q0, v0, tau)
        return (weight * q).sum() + (w * v**2).sum()
    found = jax.jit(jax.grad(cost, argnums=(0, 1, 2)))(q, 0.3 * v, tau)
    x = [rng.standard_normal(model.nv), rng.standard_normal(model.nv), rng.standard_normal(tau.shape)]

    def moved(e):
        run = ld.rollout(model, ld.integrate(model, q, e * x[0]), 0.3 * v + e * x[1], tau + e * x[2], dt=DT, steps=STEPS,
                         method="semi_implicit", passive=False)
        return (weight * run.q).sum() + (w * run.v**2).sum()
    e = 1e-4
    expected = (8 * (moved(e) - moved(-e)) - (moved(2 * e) - moved(-2 * e))) / (12 * e)
    by_q = (ld.integrate(model, q, 1e-6 * x[0]) - ld.integrate(model, q, -1e-6 * x[0])) / 2e-6       # of the numbers of q
    rate = by_q @ found[0] + x[1] @ found[1] + (x[2] * found[2]).sum()
    # differences of q keep 1e-9
    assert worst("jax: gradient", abs(rate - expected) / abs(expected), name) < 1e-7


def test_batches_and_broadcast_arguments(jax):
    from liedyn.interop.jax import rollout_function
    model, rng = model_of("universal"), np.random.default_rng(1)
    q, v, _, _ = state(model, 3, (4,))
    tau = rng.standard_normal((1, STEPS, model.nv))
    roll = rollout_function(model, dt=DT, steps=STEPS, method="semi_implicit")
    whole = jax.grad(lambda tau: (roll(q, v, tau)[1]**2).sum())(tau)
    each = jax.vmap(jax.grad(lambda tau, q, v: (roll(q, v, tau)[1]**2).sum()), in_axes=(None, 0, 0))(tau[0], q, v)
    assert whole.shape == tau.shape
    np.testing.assert_allclose(whole[0], each.sum(axis=0), rtol=0, atol=1e-12 * np.abs(whole).max())
    np.testing.assert_array_equal(roll(q, v, tau)[0], ld.rollout(model, q, v, tau, dt=DT, steps=STEPS, method="semi_implicit").q)


def test_integers_one_force_for_all_steps_and_wrong_shapes(jax):
    from liedyn.interop.jax import rollout_function
    model = ld.load("robots/double_pendulum.yaml")
    roll = rollout_function(model, dt=DT, steps=STEPS, method="semi_implicit")
    expected = ld.rollout(model, [0, 1], [1, 0], dt=DT, steps=STEPS, method="semi_implicit")
    np.testing.assert_array_equal(roll(np.array([0, 1]), np.array([1, 0]), np.zeros((1, 2), int))[0], expected.q)
    assert roll(np.zeros((3, 2)), np.zeros(2), np.zeros(2))[0].shape == (3, STEPS + 1, 2)
    with pytest.raises(ld.ShapeError, match=r"v0 has the wrong shape: expected \(…, 2\), got \(3,\)"):
        roll(np.zeros(2), np.zeros(3), np.zeros(2))
    with pytest.raises(ld.ShapeError, match=r"tau has the wrong shape: expected \(…, 15, 2\), got \(3, 2\)"):
        roll(np.zeros(2), np.zeros(2), np.zeros((3, 2)))


def test_flags(jax):
    from liedyn.interop.jax import rollout_function
    model = model_of("universal")
    q, v, a, _ = (x[0] for x in state(model, 3, (1,)))
    for flag in (True, False):
        tau = ld.inverse_dynamics(model, q, v, a, passive=jax.numpy.array(flag))
        np.testing.assert_array_equal(tau, ld.inverse_dynamics(model, q, v, a, passive=flag))
    with pytest.raises(ld.ArgumentError, match="passive must be True or False, got 'no'"):
        rollout_function(model, dt=DT, steps=STEPS, passive="no")
