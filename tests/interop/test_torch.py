"""Rollouts under torch.autograd: against JAX's, which are tested by differences. `make test-torch` installs PyTorch, which is too
large for the test extra."""
import numpy as np
import pytest

import liedyn as ld
from zoo import model_of, state

STEPS, DT = 15, 2e-3
torch = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch does so, and runs these tests")


def given(name, runs):
    model, rng = model_of(name), np.random.default_rng(0)
    q, v, _, _ = state(model, 3, (runs,))
    return model, q, 0.3 * v, rng.standard_normal((runs, STEPS, model.nv))


@pytest.mark.parametrize("name", ["universal", "free"])
def test_gradients_are_those_of_jax(name, worst):
    import jax
    jax.config.update("jax_enable_x64", True)
    from liedyn.interop import jax as of_jax
    from liedyn.interop import torch as of_torch
    model, *x = given(name, 3)
    options = {"dt": DT, "steps": STEPS, "method": "semi_implicit", "passive": False}
    weight = np.random.default_rng(1).standard_normal((3, STEPS + 1, model.nq))
    ours = [torch.tensor(y, requires_grad=True) for y in x]
    q, v = of_torch.rollout_function(model, **options)(*ours)
    ((torch.tensor(weight) * q).sum() + (v**2).sum()).backward()

    def cost(*x):
        q, v = of_jax.rollout_function(model, **options)(*x)
        return (weight * q).sum() + (v**2).sum()
    for mine, other in zip(ours, jax.grad(cost, argnums=(0, 1, 2))(*x), strict=True):
        assert worst("torch: gradient", np.abs(mine.grad.numpy() - other).max() / np.abs(other).max(), name) < 1e-13


def test_broadcast_arguments_and_types():
    from liedyn.interop.torch import rollout_function
    model, q, v, tau = given("universal", 4)
    roll = rollout_function(model, dt=DT, steps=STEPS, method="semi_implicit")
    one = torch.tensor(tau[:1], requires_grad=True)
    (roll(torch.tensor(q), torch.tensor(v), one)[1]**2).sum().backward()
    each = torch.tensor(np.tile(tau[:1], (4, 1, 1)), requires_grad=True)
    (roll(torch.tensor(q), torch.tensor(v), each)[1]**2).sum().backward()
    torch.testing.assert_close(one.grad[0], each.grad.sum(0), rtol=0, atol=1e-12)
    found = roll(torch.tensor(q, dtype=torch.float32), v, tau)[0]
    assert found.dtype == torch.float32 and found.shape == (4, STEPS + 1, model.nq)
    assert roll(torch.zeros(model.nq, dtype=torch.int64), v, tau)[0].dtype == torch.float64
    expected = ld.rollout(model, np.float32(q), v, tau, dt=DT, steps=STEPS, method="semi_implicit").q
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-6)
