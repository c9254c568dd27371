"""All functions of dynamics run on the robots with mimic joints of example-robot-data, and agree with their reduction by hand."""
import numpy as np
import pytest

import liedyn as ld
from bridge import urdf_files
from liedyn.codegen.specialize import generic_kernels

FILES = [path for path in urdf_files() if "<mimic" in path.read_text(errors="replace")]
WITHOUT_INERTIA = "romeo.urdf"         # its fingers, which follow LHand and RHand


@pytest.mark.filterwarnings("ignore::liedyn.LiedynWarning")
@pytest.mark.parametrize("path", [path for path in FILES if path.name != WITHOUT_INERTIA], ids=lambda path: path.stem)
def test_robots_with_mimic_joints(path):
    model = ld.load(path)
    rng, tree = np.random.default_rng(0), model.spanning_tree()
    N = model.elimination().projection
    q, v, a = ld.random_motion(model, rng, 3)
    tau = rng.standard_normal((3, model.nv))
    force = ld.inverse_dynamics(model, q, v, a)
    np.testing.assert_allclose(force, ld.inverse_dynamics(tree, q, v, a) @ N, atol=1e-12 * max(1.0, np.abs(force).max()))
    found = ld.forward_dynamics(model, q, v, tau)
    residual = (ld.inverse_dynamics(tree, q, v, found) - tau) @ N
    assert np.abs(residual).max() < 1e-12 * np.abs(found).max()
    mask = np.arange(model.nv) % 2 == 0
    x, y = ld.hybrid_dynamics(model, q, v, a, tau, mask)
    np.testing.assert_allclose(x[:, mask], a[:, mask], atol=1e-12)
    assert np.abs((ld.inverse_dynamics(tree, q, v, x) - y) @ N).max() < 1e-11 * max(1.0, np.abs(x).max())
    by_force = ld.forward_dynamics(model, q, v, tau + 1.0) - found
    with generic_kernels():                            # derivatives of humanoids take seconds to compile: see test_couplings
        check_derivatives(model, q, v, a, tau, found, by_force)


def check_derivatives(model, q, v, a, tau, found, by_force):
    d = ld.forward_dynamics_derivatives(model, q, v, tau)
    np.testing.assert_allclose(d.M_inverse.sum(axis=-1), by_force, atol=1e-9 * np.abs(by_force).max())
    *_, along = ld.forward_dynamics_directional(model, q, v, tau, dq=v, dv=a)
    assert np.abs((d.da_dq @ v[..., None] + d.da_dv @ a[..., None])[..., 0] - along).max() < 1e-9 * np.abs(along).max()
    orders = ld.higher_order_forward_dynamics(model, q, v, tau[:, None])
    np.testing.assert_allclose(orders[:, 0], found, atol=1e-9 * np.abs(found).max())


@pytest.mark.filterwarnings("ignore::liedyn.LiedynWarning")
def test_a_robot_whose_fingers_have_no_inertia():
    model = ld.load(next(path for path in FILES if path.name == WITHOUT_INERTIA))
    names = {warning.place.key for warning in model.warnings if warning.code == "no-inertia"}
    assert names == {"LHand", "RHand"}
    rng, tree = np.random.default_rng(0), model.spanning_tree()
    N = model.elimination().projection
    q, v, a = ld.random_motion(model, rng, 3)
    tau = rng.standard_normal((3, model.nv))
    with pytest.raises(ld.ComputationError, match=r"the acceleration of joint 'RHand' is not defined.*also 'LHand'"):
        ld.forward_dynamics(model, q, v, tau)
    mask = np.isin(model.v_names, list(names))
    x, y = ld.hybrid_dynamics(model, q, v, a, tau, mask)
    np.testing.assert_allclose(x[:, mask], a[:, mask], atol=1e-12)
    assert np.abs((ld.inverse_dynamics(tree, q, v, x) - y) @ N).max() < 1e-11 * max(1.0, np.abs(x).max())
    runs = ld.rollout(model, q, v, dt=1e-4, steps=3, prescribed=mask)
    assert runs.complete.all() and np.isfinite(runs.q).all()


def test_there_are_such_robots():
    assert len(FILES) > 5
