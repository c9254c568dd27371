"""Inverse, forward and hybrid dynamics, M and its inverse: what each must be to the others, on trees of every joint kind.

The trust that these identities hand on starts at `test_kinematics`, where poses, twists and accelerations are held
against matrix exponentials and differences: `test_inverse_dynamics_is_the_virtual_power_of_all_links` rests on it, and
all else on inverse dynamics."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import liedyn as ld
from bridge import relative
from joint_forces import figures
from matrices import bracket, derivative, inertia, inverse
from rounding import assert_same
from zoo import ROBOTS, model_of, robots, state

EPS = np.finfo(float).eps
EVERY = pytest.mark.parametrize("name", ROBOTS)
exploring = settings(max_examples=40, deadline=None, derandomize=True, database=None)


def residual(model, q, v, a, tau, **options):
    """How far (a, tau) is from the equation of motion, relative to the largest force in it."""
    needed = ld.inverse_dynamics(model, q, v, a, **options)
    size = np.abs(needed).max() + np.abs(ld.mass_matrix(model, q) @ a[..., None]).max() + np.abs(ld.bias_force(model, q, v)).max()
    return np.abs(needed - tau).max() / size


def wrenches(model, seed, size=()):
    return np.random.default_rng([seed, 5]).standard_normal((*size, len(model.link_names), 6))


@EVERY
def test_inverse_dynamics_is_the_virtual_power_of_all_links(name, worst):
    """tau = sum over links of J^T (I dV - ad* I V - F_ext), gravity in dV; rotors and passive forces apart. No recursion."""
    model = model_of(name)
    q, v, a, _ = state(model, 1)
    F = wrenches(model, 1)
    tau = np.zeros(model.nv)
    for k, link in enumerate(model.description.links):
        I = inertia(link.mass, link.com, link.inertia)
        up = np.r_[0, 0, 0, -model.gravity]
        T, J = ld.link_pose(model, q, link.name), ld.jacobian(model, q, link.name)
        V = ld.link_twist(model, q, v, link.name)
        dV = ld.link_acceleration(model, q, v, a, link.name) + np.r_[0, 0, 0, inverse(T)[:3, :3] @ up[3:]]
        tau += J.T @ (I @ dV - bracket(V).T @ I @ V - F[k])
    armature = figures(model, "armature")
    ours = ld.inverse_dynamics(model, q, v, a, f_ext=F, passive=False)
    assert worst("ID against virtual power", relative(ours - armature * a, tau)) < 1e-13


@EVERY
def test_forward_dynamics_undoes_inverse_dynamics(name, worst):
    """a comes back within eps cond(M), the sensitivity of the equation itself; measured factor 2 at most.
    Checks: K1 Tables 1-3."""
    model = model_of(name)
    q, v, a, tau = state(model, 2, 16)
    F = wrenches(model, 2, (16,))
    cond = np.linalg.cond(ld.mass_matrix(model, q)).max()
    for passive in (True, False):
        options = {"f_ext": F, "passive": passive}
        back = ld.forward_dynamics(model, q, v, ld.inverse_dynamics(model, q, v, a, **options), **options)
        assert worst("FD of ID, in eps cond(M)", relative(back, a) / (EPS * cond)) < 20
        a1 = ld.forward_dynamics(model, q, v, tau, **options)
        assert worst("ID of FD", residual(model, q, v, a1, tau, **options)) < 1e-13
    a1 = ld.forward_dynamics(model, q[0], v[0], tau[0])
    assert residual(model, q[0], v[0], a1, tau[0]) < 1e-13


@given(robots, st.integers(0, 1000))
@exploring
def test_forward_dynamics_undoes_inverse_dynamics_on_any_tree(robot, seed):
    model = ld.build(robot)
    q, v, a, tau = state(model, seed)
    assert residual(model, q, v, ld.forward_dynamics(model, q, v, tau), tau) < 1e-12
    cond = np.linalg.cond(ld.mass_matrix(model, q))
    back = ld.forward_dynamics(model, q, v, ld.inverse_dynamics(model, q, v, a))
    assert relative(back, a) < 100 * EPS * cond


@EVERY
def test_hybrid_dynamics_of_any_mask_satisfies_inverse_dynamics(name, worst):
    """Also masks that cut through ball, free and compound joints. What is not read may be NaN. Checks: K1 (33), Tables 1, 4."""
    model = model_of(name)
    rng = np.random.default_rng(3)
    for k in range(12):
        mask = rng.random(model.nv) < rng.random()
        size = () if k % 2 else (9,)
        q, v, a, tau = state(model, 10 + k, size)
        F = wrenches(model, k, size)
        given_a, given_tau = np.where(mask, a, np.nan), np.where(mask, np.nan, tau)
        a1, tau1 = ld.hybrid_dynamics(model, q, v, given_a, given_tau, mask, f_ext=F)
        np.testing.assert_array_equal(a1[..., mask], a[..., mask])
        np.testing.assert_array_equal(tau1[..., ~mask], tau[..., ~mask])
        assert worst("hybrid by ID", residual(model, q, v, a1, tau1, f_ext=F)) < 1e-13


@given(robots, st.integers(0, 1000), st.data())
@exploring
def test_hybrid_dynamics_on_any_tree_with_any_mask(robot, seed, data):
    model = ld.build(robot)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=model.nv, max_size=model.nv)), dtype=bool)
    q, v, a, tau = state(model, seed)
    a1, tau1 = ld.hybrid_dynamics(model, q, v, np.where(mask, a, np.nan), np.where(mask, np.nan, tau), mask)
    assert residual(model, q, v, a1, tau1) < 1e-12


@EVERY
def test_extremes_of_hybrid_dynamics(name):
    """No joint prescribed: forward dynamics. All: inverse dynamics."""
    model = model_of(name)
    for size in ((), (9,)):
        q, v, a, tau = state(model, 4, size)
        nan = np.full_like(a, np.nan)
        a1, tau1 = ld.hybrid_dynamics(model, q, v, nan, tau, np.zeros(model.nv, dtype=bool))
        assert_same(a1, ld.forward_dynamics(model, q, v, tau))
        np.testing.assert_array_equal(tau1, tau)
        a2, tau2 = ld.hybrid_dynamics(model, q, v, a, nan, np.ones(model.nv, dtype=bool))
        assert relative(tau2, ld.inverse_dynamics(model, q, v, a)) < 1e-13
        np.testing.assert_array_equal(a2, a)


@EVERY
def test_columns_of_the_mass_matrix_are_inverse_dynamics_of_unit_accelerations(name, worst):
    model = model_of(name)
    q, v = state(model, 5, 9)[:2]
    bias = ld.bias_force(model, q, v)
    columns = [ld.inverse_dynamics(model, q, v, np.broadcast_to(e, v.shape), passive=False) - bias for e in np.eye(model.nv)]
    M = ld.mass_matrix(model, q)
    scale = np.abs(bias).max() + np.abs(M).max()
    assert worst("M against columns of ID", np.abs(np.stack(columns, axis=-1) - M).max() / scale) < 1e-13
    np.testing.assert_array_equal(M, M.swapaxes(-1, -2))
    assert np.linalg.eigvalsh(M).min() > 0


@EVERY
def test_mass_matrix_is_the_kinetic_energy_of_all_links(name):
    """M = sum of J^T I J, from Jacobians alone, and v M v/2 the energy."""
    model = model_of(name)
    q, v = state(model, 6)[:2]
    M = np.diag(figures(model, "armature"))
    for link in model.description.links:
        J = ld.jacobian(model, q, link.name)
        M = M + J.T @ inertia(link.mass, link.com, link.inertia) @ J
    assert relative(ld.mass_matrix(model, q), M) < 1e-14
    np.testing.assert_allclose(ld.energy(model, q, v)[0], v @ M @ v / 2, rtol=1e-13)


@EVERY
def test_inverse_mass_matrix(name, worst):
    """M^-1 M = 1 to eps cond(M); one state and a batch."""
    model = model_of(name)
    q = state(model, 7, 9)[0]
    M, W = ld.mass_matrix(model, q), ld.inverse_mass_matrix(model, q)
    cond = np.linalg.cond(M).max()
    assert worst("M^-1 M - 1, in eps cond(M)", np.abs(W @ M - np.eye(model.nv)).max() / (EPS * cond)) < 10
    assert relative(W, W.swapaxes(-1, -2)) < EPS * cond
    assert relative(ld.inverse_mass_matrix(model, q[0]), W[0]) < EPS * cond


@EVERY
def test_forward_dynamics_is_linear_in_the_forces(name):
    """a(tau) - a(0) = M^-1 tau, and external wrenches enter by the transposed Jacobians."""
    model = model_of(name)
    q, v, _, tau = state(model, 8)
    F = wrenches(model, 8)
    generalized = sum(ld.jacobian(model, q, name).T @ F[k] for k, name in enumerate(model.link_names))
    with_wrenches = ld.forward_dynamics(model, q, v, tau, f_ext=F)
    assert relative(ld.forward_dynamics(model, q, v, tau + generalized), with_wrenches) < 1e-10
    change = ld.forward_dynamics(model, q, v, tau) - ld.forward_dynamics(model, q, v, 0 * tau)
    assert relative(change, ld.inverse_mass_matrix(model, q) @ tau) < 1e-9
    without = ld.inverse_dynamics(model, q, v, tau)
    assert relative(ld.inverse_dynamics(model, q, v, tau, f_ext=F), without - generalized) < 1e-13


@EVERY
def test_gravity_is_the_gradient_of_the_potential(name):
    model = model_of(name)
    q = state(model, 9)[0]
    v = np.zeros(model.nv)
    potential = lambda h, e: ld.energy(model, ld.integrate(model, q, h * e), v)[1]     # noqa: E731
    gradient = np.array([derivative(lambda h, e=e: potential(h, e)) for e in np.eye(model.nv)])
    holding = ld.inverse_dynamics(model, q, v, v)                                      # springs held, too
    assert relative(holding, gradient) < 1e-10
    assert relative(ld.gravity_force(model, q), ld.inverse_dynamics(model, q, v, v, passive=False)) == 0


@EVERY
def test_velocity_terms_are_quadratic(name):
    """b(q, s v) - g = s^2 (b(q, v) - g)."""
    model = model_of(name)
    q, v = state(model, 10)[:2]
    b, g = (lambda s: ld.bias_force(model, q, s * v)), ld.gravity_force(model, q)
    scale = np.abs(b(3)).max() + np.abs(g).max()
    np.testing.assert_allclose(b(3) - g, 9 * (b(1) - g), atol=1e-13 * scale)
    np.testing.assert_allclose(b(-1), b(1), atol=1e-14 * scale)
