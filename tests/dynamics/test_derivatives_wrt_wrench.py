"""Derivatives by external wrenches, of all three results. Dynamics is linear in them: a difference of step 1 is exact."""
import numpy as np
import pytest

import liedyn as ld
import zoo


@pytest.mark.parametrize("name", ["every kind", "every kind, floating", "ball"])
@pytest.mark.parametrize("size", [(), (9,)])
def test_by_wrench(name, size, worst):
    model = zoo.model_of(name)
    q, v, a, tau = zoo.state(model, 6, size)
    link = model.link_names[-1]
    J = ld.jacobian(model, q, link)
    mask = np.arange(model.nv) % 3 == 0
    inverse = ld.inverse_dynamics_derivatives(model, q, v, a).wrt_wrench(J)
    forward = ld.forward_dynamics_derivatives(model, q, v, tau).wrt_wrench(J)
    hybrid = ld.hybrid_dynamics_derivatives(model, q, v, a, tau, mask).wrt_wrench(J)
    assert inverse.shape == forward.shape == hybrid.shape == (*size, model.nv, 6)
    for k in range(6):
        F = {link: np.eye(6)[k]}

        def step(function, F=F):
            return function(F) - function(None)

        def mixed(f_ext):
            accelerations, forces = ld.hybrid_dynamics(model, q, v, a, tau, mask, f_ext=f_ext)
            return np.where(mask, forces, accelerations)
        for what, ours, truth in (
                ("inverse", inverse, step(lambda F: ld.inverse_dynamics(model, q, v, a, f_ext=F))),
                ("forward", forward, step(lambda F: ld.forward_dynamics(model, q, v, tau, f_ext=F))),
                ("hybrid", hybrid, step(mixed))):
            scale = max(1.0, np.abs(ours).max(), np.abs(ld.forward_dynamics(model, q, v, tau)).max())
            error = worst(f"derivative by a wrench, {what}", np.abs(ours[..., k] - truth).max() / scale, name)
            assert error < 1e-11        # the difference of two results: rounding of either, and cond(M) of some thousands
