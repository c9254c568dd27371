"""The closed form: its factors against each other, against differences, and against the recursions."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import liedyn as ld
from bridge import relative
from liedyn.dynamics.closed_form import skew_form
from liedyn.model.description import Robot
from liedyn.model.links import Link
from liedyn.model.spatial import inertia_matrix, symmetric_matrix
from matrices import adjoint, bracket, derivative, inverse
from zoo import ROBOTS, model_of, robots, state

EVERY = pytest.mark.parametrize("name", ROBOTS)
exploring = settings(max_examples=20, deadline=None, derandomize=True, database=None)
CLOSE = 1e-12        # screws and inertias about the world's origin, up to ten metres away: two digits less than the recursions



@EVERY
def test_poses_and_jacobians_by_products_of_exponentials(name, worst):
    """Space form and body form against the recursions, link by link. Checks: PBP (13), (14), (20), (31), (33); PL (8)."""
    model = model_of(name)
    q = state(model, 1)[0]
    form = ld.closed_form(model, q)
    for k, link in enumerate(model.link_names):
        body = model.link_body[k] - 1
        if body < 0:
            continue
        offset = inverse(model.link_pose[model.link_index(form.links[body])]) @ model.link_pose[k]         # by fixed joints
        T = ld.link_pose(model, q, link)
        assert worst("product of exponentials: pose", relative(form.poses[body] @ offset, T)) < CLOSE
        assert relative(form.pose_by_body_screws(body) @ offset, T) < CLOSE
        J = adjoint(inverse(offset)) @ form.body_jacobians[body]
        assert worst("product of exponentials: body Jacobian", relative(J, ld.jacobian(model, q, link))) < CLOSE
        assert worst("product of exponentials: space Jacobian",
                     relative(form.space_jacobians[body], ld.jacobian(model, q, link, frame="world"))) < CLOSE


@EVERY
def test_blocks_are_links_of_the_file_and_screws_are_its_axes(name):
    """Poses, home, Jacobians, inertias and screws in the frames of links; massless blocks stand between screws of a joint."""
    robot, model = ROBOTS[name], model_of(name)
    q = state(model, 12)[0]
    form, links = ld.closed_form(model, q), {link.name: link for link in robot.links}
    home, found = ld.closed_form(model, model.neutral()), [link for link in form.links if link]
    assert found == [joint.child for joint in model.joints]
    for i, link in enumerate(form.links):
        if not link:
            assert not form.rigid[i].any()
            continue
        assert relative(form.poses[i], ld.link_pose(model, q, link)) < CLOSE
        assert relative(form.home[i], ld.link_pose(model, model.neutral(), link)) < CLOSE
        assert relative(home.poses[i], form.home[i]) < CLOSE
        assert relative(form.body_jacobians[i], ld.jacobian(model, q, link)) < CLOSE
        if (model.link_body == i + 1).sum() == 1:                        # nothing is welded to it
            body, c = links[link], np.array(links[link].com)
            A = symmetric_matrix(body.inertia) + body.mass * (c @ c * np.eye(3) - np.outer(c, c))
            np.testing.assert_allclose(form.rigid[i], np.r_[body.mass, body.mass * c, A[np.triu_indices(3)]], atol=1e-13)
    for joint in robot.joints:
        if joint.type == "revolute":
            axis = np.array(joint.axes[0]) / np.linalg.norm(joint.axes[0])
            np.testing.assert_allclose(form.screws[form.links.index(joint.child)][:, 0], np.r_[axis, 0, 0, 0], atol=1e-15)
        elif joint.type == "screws":
            last = form.links.index(joint.child)
            for k, screw in enumerate(joint.screws[::-1]):
                np.testing.assert_array_equal(form.screws[last - k][:, 0], screw)


@EVERY
def test_screws_in_space_and_body(name):
    """A = Ad_M B for the joints above a body; the others do not move it."""
    model = model_of(name)
    form = ld.closed_form(model, state(model, 2)[0])
    for i, M in enumerate(form.home):
        back = adjoint(M) @ form.body_screws(i)
        for k in range(model.nv):
            assert relative(back[:, k], form.space_screws[:, k] if form.above[form.block_of[k], i] else np.zeros(6)) < CLOSE
    assert relative(ld.closed_form(model, model.neutral()).poses, form.home) < 1e-13


@EVERY
def test_factors_of_both_papers(name, worst):
    """Checks: PBP (46)-(51); PL (24). A = Q S, L = Q G Q^-1, D = Q^-T J Q^-1; G (1 - Gamma) = 1 and Gamma is nilpotent."""
    model = model_of(name)
    form = ld.closed_form(model, state(model, 3)[0])
    Q, one = form.Q, np.eye(len(form.Q))
    W = np.linalg.inv(Q)
    assert relative(form.A, Q @ form.S) < 1e-15
    assert worst("L = Q G Q^-1", relative(form.L, Q @ form.G @ W)) < CLOSE
    assert worst("D = Q^-T J Q^-1", relative(form.D, W.T @ form.J @ W)) < CLOSE
    assert relative(form.G @ (one - form.Gamma), one) < CLOSE
    assert not np.linalg.matrix_power(form.Gamma, len(form.parent)).any()
    M = ld.mass_matrix(model, state(model, 3)[0])
    assert worst("M = S^T G^T J G S", relative(form.mass_matrix, M)) < 1e-13
    assert worst("M = A^T L^T D L A", relative(form.mass_matrix_from_home, M)) < CLOSE


@EVERY
def test_the_mass_matrix_is_a_pullback(name):
    """Checks: PBP (65). Of the metric of all bodies on SE(3) x … x SE(3) by the Jacobians of their poses."""
    model = model_of(name)
    form = ld.closed_form(model, state(model, 3)[0])
    M = sum(J.T @ inertia_matrix(I) @ J for I, J in zip(form.rigid, form.body_jacobians, strict=True))
    assert relative(M + np.diag(form.armature), form.mass_matrix) < CLOSE


def test_constant_factors_are_constant():
    """Only G, Gamma, L and P0 know q: inertias are all in D or J, screws in A or S."""
    model = model_of("every kind, floating")
    one, other = (ld.closed_form(model, state(model, seed)[0]) for seed in (4, 5))
    for factor in ("A", "D", "Q", "S", "J"):
        np.testing.assert_array_equal(getattr(one, factor), getattr(other, factor))
    for factor in ("G", "Gamma", "L", "P0"):
        assert relative(getattr(one, factor), getattr(other, factor)) > 0.01


@EVERY
def test_gravity(name, worst):
    """Checks: PBP (59); PL (26), (38). Both and the recursion."""
    model = model_of(name)
    q = state(model, 5)[0]
    form, g = ld.closed_form(model, q), ld.gravity_force(model, q)
    assert worst("gravity, factorized", relative(form.gravity_force, g)) < 1e-13
    assert worst("gravity by (59)", relative(form.gravity_force_from_home, g)) < CLOSE


@EVERY
def test_derivatives_of_the_mass_matrix(name, worst):
    """Checks: PL (28)."""
    model = model_of(name)
    q, v = state(model, 6)[:2]
    form = ld.closed_form(model, q)
    dM = ld.mass_matrix_derivative(model, q)
    scale = np.abs(form.mass_matrix).max()
    assert worst("closed form: dM/dq", np.abs(form.mass_matrix_derivative - dM).max() / scale) < 1e-13
    assert worst("closed form: dM/dt", np.abs(form.mass_matrix_rate(v) - dM @ v).max() / scale) < 1e-13


@EVERY
def test_christoffel_symbols(name, worst):
    """Checks: PBP (55)-(57)."""
    model = model_of(name)
    q = state(model, 7)[0]
    form = ld.closed_form(model, q)
    off = np.abs(form.christoffel_symbols - ld.christoffel_symbols(model, q)).max() / np.abs(form.mass_matrix).max()
    assert worst("closed form: Christoffel symbols", off) < CLOSE


def moved(model, q, k, h):
    return ld.closed_form(model, ld.integrate(model, q, h * np.eye(model.nv)[k]))


@pytest.mark.parametrize("name", ["revolute", "ball", "free", "screws", "every kind, a chain"])
def test_first_derivative_of_Ad(name, worst):
    """(53) against differences, for all triples (some, of a long chain). Checks: PBP (53), Proposition 1."""
    model = model_of(name)
    q = state(model, 8)[0]
    form, rng = ld.closed_form(model, q), np.random.default_rng(8)
    for j in rng.permutation(len(form.parent))[:6]:
        for i in rng.permutation(form.path(j))[:4]:
            for k in rng.permutation(model.nv)[:6]:
                slope = derivative(lambda h, i=i, j=j, k=k: moved(model, q, k, h).Ad(j, i), 0.05)
                scale = np.abs(form.Ad(j, i)).max() * (1 + np.abs(form.space_screws[:, k]).max())
                assert worst("derivative of Ad (53)", np.abs(form.Ad_derivative(j, i, k) - slope).max() / scale) < 1e-9


@pytest.mark.parametrize("name", ["revolute", "ball", "free", "screws", "every kind, a chain"])
def test_second_derivative_of_Ad(name, worst):
    """(54) against differences of (53): sequentially, also by coordinates of one joint.
    Checks: PBP (54), Proposition 2."""
    model = model_of(name)
    q = state(model, 9)[0]
    form, rng = ld.closed_form(model, q), np.random.default_rng(9)
    for j in rng.permutation(len(form.parent))[:4]:
        for i in rng.permutation(form.path(j))[:3]:
            path = np.flatnonzero(form.above[i, form.block_of] & form.above[form.block_of, j])
            for k in rng.permutation(path)[:4]:
                for m in rng.permutation(model.nv)[:4]:
                    slope = derivative(lambda h, i=i, j=j, k=k, m=m: moved(model, q, m, h).Ad_derivative(j, i, k), 0.05)
                    scale = np.abs(form.Ad(j, i)).max() * (1 + np.abs(form.space_screws[:, [k, m]]).max())**2
                    off = np.abs(form.Ad_second_derivative(j, i, k, m) - slope).max() / scale
                    assert worst("second derivative of Ad (54)", off) < 1e-9


def test_mixed_second_derivatives_differ_by_the_bracket_within_a_ball_joint():
    """X_m X_k - X_k X_m = [X_m, X_k]: zero between joints."""
    model = model_of("ball")
    form = ld.closed_form(model, state(model, 10)[0])
    for k in range(9):
        for m in range(9):
            gap = form.Ad_second_derivative(2, 0, k, m) - form.Ad_second_derivative(2, 0, m, k)
            expected = np.zeros((6, 6))
            if k // 3 == m // 3:
                b = bracket(np.eye(6)[m % 3])[:3, k % 3]
                expected = sum(b[c] * form.Ad_derivative(2, 0, 3 * (k // 3) + c) for c in range(3))
            assert np.abs(gap - expected).max() < 1e-12


def test_skew_form():
    """PL Proposition 1: skew, and C~ V = -ad*_V I V."""
    rng = np.random.default_rng(0)
    for I in rng.standard_normal((5, 10)):
        V = rng.standard_normal(6)
        C, J = skew_form(I, V), inertia_matrix(I)
        assert relative(C, -C.T) < 1e-15
        assert relative(C @ V, -bracket(V).T @ J @ V) < 1e-14


@given(robots, st.integers(0, 1000))
@exploring
def test_any_tree(robot, seed):
    model = ld.build(robot)
    q, v, a, _ = state(model, seed)
    form = ld.closed_form(model, q)
    tau = form.mass_matrix @ a + form.coriolis_matrix(v) @ v + form.gravity_force
    assert relative(tau, ld.inverse_dynamics(model, q, v, a, passive=False), 1e-6) < CLOSE
    assert relative(form.mass_matrix_from_home, form.mass_matrix) < CLOSE


def test_it_works_without_joints():
    form = ld.closed_form(ld.build(Robot("rock", (Link("rock", 1.0),), ())), [])
    assert form.mass_matrix.shape == form.mass_matrix_from_home.shape == (0, 0)
    assert form.mass_matrix_derivative.shape == form.christoffel_symbols.shape == (0, 0, 0)
    assert form.gravity_force.shape == form.gravity_force_from_home.shape == (0,)
    assert form.poses.shape == (0, 4, 4) and form.body_jacobians.shape == form.space_jacobians.shape == (0, 6, 0)


def test_errors():
    model = model_of("every kind, floating")
    q, v = state(model, 11)[:2]
    with pytest.raises(ld.ShapeError, match=r"q has the wrong shape: expected \(35,\), got \(2, 35\) \(the closed form is"):
        ld.closed_form(model, np.stack([q, q]))
    with pytest.raises(ld.ShapeError, match=r"q has the wrong shape: expected \(35,\), got \(3,\)"):
        ld.closed_form(model, q[:3])
    with pytest.raises(ld.ConfigurationError, match=r"q\[0\] \(base.px\) is not finite: got nan"):
        ld.closed_form(model, np.r_[np.nan, q[1:]])
    with pytest.raises(ld.ConfigurationError, match="the quaternion of joint 'base' is not of unit norm"):
        ld.closed_form(model, np.r_[q[:3], 2 * q[3:7], q[7:]])
    form = ld.closed_form(model, q)
    with pytest.raises(ld.ShapeError, match=r"v has the wrong shape: expected \(32,\), got \(2, 32\) \(the closed form is"):
        form.coriolis_matrix(np.stack([v, v]))
    with pytest.raises(ld.ShapeError, match=r"v has the wrong shape"):
        form.mass_matrix_rate(v[:4])
    for call in (form.coriolis_matrix, lambda v: ld.coriolis_matrix(model, q, v, method="factorized")):
        with pytest.raises(ld.ConfigurationError, match=r"v\[0\] is not finite: got inf"):
            call(np.r_[np.inf, v[1:]])
    with pytest.raises(ld.ShapeError, match=r"Ad_j\^i needs a block i above j or j itself: got i = 5, j = 0, whose path is "
                                            r"\[0\]"):
        form.Ad(0, 5)
    np.testing.assert_array_equal(form.Ad(0, None), np.eye(6))
