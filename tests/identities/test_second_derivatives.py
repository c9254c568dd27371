"""Second derivatives of inverse dynamics, over every joint kind."""
import numpy as np
import pytest
from hypothesis import given, settings

import liedyn as ld
import zoo
from bridge import file_of
from differences import by_each, by_q
from liedyn.dynamics.batching import calls
from rounding import assert_same

BOUND = 1e-11       # of the largest entry: what differences of eighth order are good to


def assert_tensors(model, q, v, a, passive, worst, name):
    ours = ld.inverse_dynamics_second_derivatives(model, q, v, a, passive=passive)

    def first(q, v, a):
        return ld.inverse_dynamics_derivatives(model, q, v, a, passive=passive)
    truth = (by_q(lambda q: first(q, v, a).dtau_dq, model, q), by_each(lambda d: first(q, v + d, a).dtau_dq, model.nv),
             by_each(lambda d: first(q, v + d, a).dtau_dv, model.nv), by_each(lambda d: first(q, v, a + d).dtau_dq, model.nv))
    for what, x, y in zip(ours._fields, ours, truth, strict=True):
        scale = max(1.0, *(np.abs(t).max() for t in truth))
        error = worst(f"second derivatives, {what}", np.abs(x - y).max() / scale, name)
        assert error < BOUND, f"{what}: {error:.1e}"


@pytest.mark.parametrize("name", [name for name in zoo.ROBOTS if "twice" not in name])
def test_against_differences_of_the_first_ones(name, worst):
    """Smoothed friction has a scale of 0.01 rad/s, too short for a step that keeps the digits: without passive forces."""
    model = zoo.model_of(name)
    q, v, a, _ = zoo.state(model, 3)
    assert_tensors(model, q, v, a, False, worst, name)


@settings(max_examples=8, deadline=None)
@given(zoo.robots)
def test_random_trees(worst, robot):
    model = ld.build(robot)
    if model.nv <= 14:
        q, v, a, _ = zoo.state(model, 1)
        assert_tensors(model, q, v, a, False, worst, robot.name)


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", ["ur5_robot", "panda", "solo12", "talos_reduced", "simple_humanoid"])
def test_real_robots(name, base, worst):
    model = ld.load(file_of(f"{name}.urdf"), base=base).spanning_tree()
    q, v, a, _ = zoo.state(model, 6)
    assert_tensors(model, q, v, a, False, worst, f"{name}, {base}")


@pytest.mark.parametrize("most", [1 << 19, 0])
@pytest.mark.parametrize("passive", [True, False])
@pytest.mark.parametrize("name", zoo.ROBOTS)
def test_many_states_are_as_one(name, passive, most, monkeypatch):
    """Eight at a time, the last three of them alone; and one by one, as models do whose tensors are large."""
    monkeypatch.setattr(calls, "_MAX_SIMD_WORKSPACE", most)
    model = zoo.model_of(name)
    q, v, a, _ = zoo.state(model, 7, (19,))
    together = ld.inverse_dynamics_second_derivatives(model, q, v, a, passive=passive)
    for k in range(19):
        one = ld.inverse_dynamics_second_derivatives(model, q[k], v[k], a[k], passive=passive)
        for x, y in zip(together, one, strict=True):
            np.testing.assert_allclose(x[k], y, rtol=0, atol=1e-14 * max(1.0, np.abs(y).max()))


def test_tensors_are_those_of_a_robot_elsewhere():
    """All of a path is taken about its deepest body: a floating robot a thousand kilometres off loses nothing."""
    model = zoo.model_of("every kind, floating")
    q, v, a, _ = zoo.state(model, 8)
    away = q.copy()
    away[:3] += 1e6
    for x, y in zip(*(ld.inverse_dynamics_second_derivatives(model, x, v, a) for x in (q, away)), strict=True):
        assert_same(x, y)


def test_friction_and_damping():
    """d2/dv2 of f v / sqrt(v^2 + s^2) is -3 f s^2 v / (v^2 + s^2)^2.5; damping and springs are linear."""
    model = zoo.model_of("one degree of freedom each")
    q, v, a, _ = zoo.state(model, 2)
    v *= 0.02
    with_, without = (ld.inverse_dynamics_second_derivatives(model, q, v, a, passive=p) for p in (True, False))
    friction, s = np.zeros((2, model.nv))
    for joint in model.description.joints:
        if joint.type != "fixed":
            friction[model.v_index(joint.name)] = [c.friction for c in joint.coordinates]
            s[model.v_index(joint.name)] = [c.friction_speed for c in joint.coordinates]
    truth = np.zeros((model.nv,) * 3)
    k = np.arange(model.nv)
    truth[k, k, k] = -3 * friction * s**2 * v / (v * v + s * s)**2.5
    assert np.abs(truth).max() > 10
    np.testing.assert_allclose(with_.dvdv - without.dvdv, truth, rtol=1e-12, atol=1e-12 * np.abs(truth).max())
    np.testing.assert_allclose(with_.dqdq, without.dqdq, rtol=0, atol=1e-13 * np.abs(without.dqdq).max())


@pytest.mark.parametrize("name", ["every kind, floating", "ball", "free", "one degree of freedom each"])
def test_identities(name):
    """tau is quadratic in v: dvdv is symmetric and 2 C v = dvdv v v; dqda = dM/dq; dqdq is symmetric up to the bracket of the
    joints' own motions: for 1-DoF joints fully."""
    model = zoo.model_of(name)
    q, v, a, _ = zoo.state(model, 4)
    H = ld.inverse_dynamics_second_derivatives(model, q, v, a, passive=False)
    bias = ld.bias_force(model, q, v) - ld.gravity_force(model, q)
    scale = np.abs(H.dvdv).max()
    np.testing.assert_allclose(H.dvdv, H.dvdv.swapaxes(1, 2), atol=1e-14 * scale * model.nv)
    np.testing.assert_allclose(0.5 * np.einsum("ijk,j,k->i", H.dvdv, v, v), bias, atol=1e-13 * max(1, np.abs(bias).max()))
    dM = ld.mass_matrix_derivative(model, q)
    np.testing.assert_allclose(H.dqda, dM.swapaxes(1, 2), atol=1e-13 * max(1.0, np.abs(dM).max()))
    if model.nq == model.nv:
        np.testing.assert_allclose(H.dqdq, H.dqdq.swapaxes(1, 2), atol=1e-13 * np.abs(H.dqdq).max())
    else:
        assert np.abs(H.dqdq - H.dqdq.swapaxes(1, 2)).max() > 1e-3


def test_batches_broadcast_and_refuse():
    model = zoo.model_of("every kind")
    q, v, a, _ = zoo.state(model, 5, (2, 3))
    H = ld.inverse_dynamics_second_derivatives(model, q, v[0], a[0, 0])
    assert H.dqdq.shape == (2, 3, model.nv, model.nv, model.nv)
    one = ld.inverse_dynamics_second_derivatives(model, q[1, 2], v[0, 2], a[0, 0])
    for x, y in zip(H, one, strict=True):
        assert_same(x[1, 2], y)
    v[0, 1, 3] = np.nan
    with pytest.raises(ld.ConfigurationError, match=r"v\[3\].* of state 1 is not finite"):
        ld.inverse_dynamics_second_derivatives(model, q[0], v[0], a[0])
    with pytest.raises(ld.ShapeError, match="a has the wrong shape"):
        ld.inverse_dynamics_second_derivatives(model, q[0, 0], v[0, 0], a[0, 0, 1:])
