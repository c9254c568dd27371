"""Coriolis matrices, Christoffel symbols and derivatives of M: what they must be to inverse dynamics, to differences of M and
to each other, on trees of every joint kind.

Where a bound is 1e-13: rounding of sums over at most forty bodies, relative to the largest entry, or to M (times v) where all
entries may be nothing but rounding. Finite differences are
good to 1e-11 of the function's size (`matrices.derivative`)."""
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import liedyn as ld
from bridge import relative
from differences import by_q
from liedyn.dynamics.batching import threads
from liedyn.model.description import BALL, FREE, WORLD, Joint, Robot
from liedyn.model.links import Link, Pose
from matrices import bracket, derivative
from rounding import assert_same
from zoo import ROBOTS, model_of, random_robot, robots, state

EVERY = pytest.mark.parametrize("name", ROBOTS)
METHODS = ("recursive", "christoffel", "factorized")
exploring = settings(max_examples=30, deadline=None, derandomize=True, database=None)


def velocity_terms(model, q, v):
    """b(q, v) - g, and the size of the largest force in it."""
    b, g = ld.bias_force(model, q, v), ld.gravity_force(model, q)
    return b - g, np.abs(b).max(initial=0) + np.abs(g).max(initial=0) + 1e-300


def brackets(model):
    """(nv, nv, nv) c with [Xi, Xj] = sum_m c_ijm Xm of the body-fixed fields of ball and free joints."""
    c = np.zeros((model.nv,) * 3)
    for joint in model.joints:
        if joint.kind in (BALL, FREE):
            n = joint.v.stop - joint.v.start
            c[joint.v, joint.v, joint.v] = [[bracket(np.eye(6)[i])[:n, j] for j in range(n)] for i in range(n)]
    return c


def koszul(model, q):
    """2 <nabla_Xi Xj, Xk> = Xi g_jk + Xj g_ik - Xk g_ij + g([Xi, Xj], Xk) - g([Xi, Xk], Xj) - g([Xj, Xk], Xi), with differences
    of M; the rotors are in M but not in the brackets."""
    dM = by_q(lambda q: ld.mass_matrix(model, q), model, q)
    armature = np.concatenate([[c.armature for c in model_coordinates(joint)] for joint in moving(model)] or [[]])
    g = brackets(model) @ (ld.mass_matrix(model, q) - np.diag(armature))                  # g([Xi, Xj], Xk) at [i, j, k]
    return 0.5 * (np.einsum("jki->ijk", dM) + np.einsum("ikj->ijk", dM) - dM + g - np.einsum("ikj->ijk", g)
                  - np.einsum("jki->ijk", g))


def moving(model):
    described = {joint.name: joint for joint in model.description.joints}
    return [described.get(joint.name) for joint in model.joints]


def model_coordinates(joint):
    from liedyn.model.description import Coordinate
    if joint is None:                                          # the floating base
        return (Coordinate(),) * 6
    return joint.coordinates or (Coordinate(),) * len(joint.labels)


def check_coriolis(model, q, v, worst=lambda what, value: value):
    """C v = b - g; dM/dt = C + C^T, which is to say dM/dt - 2C skew; which of the three are equal."""
    force, size = velocity_terms(model, q, v)
    form = ld.closed_form(model, q)
    rate = form.mass_matrix_rate(v)                                      # PL (28), no recursion
    C = {method: ld.coriolis_matrix(model, q, v, method=method) for method in METHODS}
    scale = max(np.abs(C["recursive"]).max(initial=0), np.abs(form.mass_matrix).max(initial=0) * np.abs(v).max(initial=0), 1e-300)
    for method, X in C.items():
        assert worst(f"C v, {method}", np.abs(X @ v - force).max(initial=0) / size) < 1e-13
        skew = rate - 2 * X
        assert worst(f"dM/dt - 2C skew, {method}", np.abs(skew + skew.T).max(initial=0) / scale) < 1e-13
    assert worst("C recursive = factorized", np.abs(C["recursive"] - C["factorized"]).max(initial=0) / scale) < 1e-13
    Gamma = ld.christoffel_symbols(model, q)
    by_symbols = np.einsum("ijk,i->kj", Gamma, v)
    assert worst("C christoffel = sum Gamma v", np.abs(C["christoffel"] - by_symbols).max(initial=0) / scale) < 1e-13
    assert worst("dM/dt", np.abs(ld.mass_matrix_rate(model, q, v) - rate).max(initial=0) / scale) < 1e-13
    return Gamma, form


@EVERY
def test_coriolis_matrices(name, worst):
    """Checks: PL (37), Propositions 1-2; PBP (52)."""
    model = model_of(name)
    q, v = state(model, 1)[:2]
    check_coriolis(model, q, v, lambda what, value: worst(what, value, name))


@given(robots, st.integers(0, 1000))
@exploring
def test_coriolis_matrices_and_christoffel_symbols_of_any_tree(robot, seed):
    """PBP's sums over all bodies (closed form) lose more digits than composite bodies: screws in the world, times D about it."""
    model = ld.build(robot)
    q, v = state(model, seed)[:2]
    Gamma, form = check_coriolis(model, q, v)
    scale = np.abs(form.mass_matrix).max(initial=1e-300)
    assert np.abs(form.christoffel_symbols - Gamma).max(initial=0) < 1e-11 * scale
    dM = ld.mass_matrix_derivative(model, q)
    assert np.abs(Gamma + Gamma.swapaxes(1, 2) - dM.transpose(2, 0, 1)).max(initial=0) < 1e-13 * scale
    assert np.abs(form.mass_matrix_derivative - dM).max(initial=0) < 1e-12 * scale


@EVERY
def test_mass_matrix_rate_is_the_difference_along_the_motion(name, worst):
    """Checks: PL (28)."""
    model = model_of(name)
    q, v = state(model, 2)[:2]
    v = 0.1 * v                                          # slow, for the sake of the differences
    slope = derivative(lambda h: ld.mass_matrix(model, ld.integrate(model, q, h * v)))
    off = np.abs(ld.mass_matrix_rate(model, q, v) - slope).max() / np.abs(ld.mass_matrix(model, q)).max()
    assert worst("dM/dt against differences", off, name) < 1e-10


@EVERY
def test_mass_matrix_derivative_is_the_difference_along_each_coordinate(name, worst):
    """Checks: PBP (53)."""
    model = model_of(name)
    q = state(model, 3)[0]
    dM = by_q(lambda q: ld.mass_matrix(model, q), model, q)
    size = np.abs(ld.mass_matrix(model, q)).max()
    assert worst("dM/dq against differences", np.abs(ld.mass_matrix_derivative(model, q) - dM).max() / size, name) < 1e-10
    batch = ld.mass_matrix_derivative(model, np.tile(q, (9, 1)))
    assert np.abs(batch - dM).max() / size < 1e-10


@EVERY
def test_christoffel_symbols_are_those_of_the_connection(name, worst):
    """Koszul's formula with differences of M; (52) where there is no ball or free joint. Checks: PBP (52), (55)-(57); PL (3)."""
    model = model_of(name)
    q = state(model, 4)[0]
    Gamma, size = ld.christoffel_symbols(model, q), np.abs(ld.mass_matrix(model, q)).max()
    assert worst("Gamma against Koszul's formula", np.abs(Gamma - koszul(model, q)).max() / size, name) < 1e-10
    if not brackets(model).any():
        np.testing.assert_array_equal(Gamma, Gamma.swapaxes(0, 1))


@EVERY
def test_christoffel_symbols_of_a_batch_give_the_forces(name):
    """tau = M a + sum Gamma_ijk v_i v_j + g in every state."""
    model = model_of(name)
    q, v = state(model, 5, 9)[:2]
    for k, x in enumerate(np.einsum("nijk,ni,nj->nk", ld.christoffel_symbols(model, q), v, v)):
        force, size = velocity_terms(model, q[k], v[k])
        assert np.abs(x - force).max() < 1e-13 * size


@pytest.mark.parametrize("name", ["every kind", "every kind, floating", "a long chain"])
@pytest.mark.parametrize("function", [
    ld.coriolis_matrix, lambda m, q, v: ld.coriolis_matrix(m, q, v, method="christoffel"), ld.mass_matrix_rate,
    lambda m, q, v: ld.coriolis_matrix(m, q, v, method="factorized"),
    lambda m, q, v: ld.christoffel_symbols(m, q), lambda m, q, v: ld.mass_matrix_derivative(m, q)],
    ids=["recursive", "christoffel", "rate", "factorized", "symbols", "derivative"])
def test_a_batch_is_its_states(function, name, worst, monkeypatch):
    """Lanes against float64; remainders, leading axes, threads and empty batches."""
    model = model_of(name)
    q, v = state(model, 6, 11)[:2]
    together = function(model, q, v)
    alone = np.array([function(model, *row) for row in zip(q, v, strict=True)])
    assert together.shape == alone.shape
    assert worst("velocity terms: Lanes against float64", relative(together, alone), name) < 1e-13
    assert_same(function(model, q[:9], v[:9]), together[:9])
    folded = function(model, q[:6].reshape(2, 3, -1), v[:6].reshape(2, 3, -1))
    assert_same(folded.reshape(6, *together.shape[1:]), together[:6])
    assert function(model, q[:0], v[:0]).shape == (0, *together.shape[1:])
    monkeypatch.setattr(threads, "_MIN_WORK_PER_THREAD", 1)
    monkeypatch.setattr(threads, "cores", lambda: 2)
    assert_same(function(model, q, v), together)


def test_the_three_are_one_where_all_axes_are_parallel():
    """tr(A)/2 [w], by which the skew forms differ, gives nothing between parallel axes."""
    robot = random_robot(11, 5, types=("revolute", "prismatic"), chain=True)
    flat = replace(robot, joints=tuple(
        replace(j, axes=((0.0, 0.0, 1.0) if j.type == "revolute" else (1.0, 0.0, 0.0),), origin=Pose(translation=(0.3, 0.1, 0.0)))
        if j.axes else j for j in robot.joints))
    for model, equal in ((ld.build(flat), True), (ld.build(robot), False)):
        q, v = state(model, 1)[:2]
        pair = [ld.coriolis_matrix(model, q, v, method=method) for method in METHODS[:2]]
        assert (relative(*pair) < 1e-13) == equal


def shifted(robot, distance):
    """The robot with everything on the ground moved away."""
    root = {link.name for link in robot.links} - {joint.child for joint in robot.joints}
    joints = [replace(j, origin=replace(j.origin, translation=tuple(np.add(j.origin.translation, distance))))
              if j.parent in root | {WORLD} else j for j in robot.joints]
    return replace(robot, joints=tuple(joints))


@pytest.mark.parametrize("name", ["every kind", "every kind, a chain", "one degree of freedom each", "every kind, floating"])
def test_nothing_is_lost_far_from_the_origin(name, worst):
    """A million metres away, fixed or floating: the same to rounding, since no kernel knows where the robot stands. (Where the
    base floats it is q that is far away.)"""
    robot, near = ROBOTS[name], model_of(name)
    q, v = state(near, 7, 9)[:2]
    far, q_far = (near, q + np.r_[[1e6, -2e6, 3e6], np.zeros(near.nq - 3)]) if robot.base == "floating" else (
        ld.build(shifted(robot, (1e6, -2e6, 3e6))), q)
    for what, function in {"C": ld.coriolis_matrix, "Gamma": lambda m, q, v: ld.christoffel_symbols(m, q),
                           "dM": lambda m, q, v: ld.mass_matrix_derivative(m, q)}.items():
        for size in (9, 1):
            off = relative(function(far, q_far[:size], v[:size]), function(near, q[:size], v[:size]))
            assert worst(f"far from the origin: {what}", off, name) < 1e-13


def test_rotors_add_nothing():
    """Armature is constant: in M, in no velocity term."""
    robot = ROBOTS["every kind, floating"]
    bare = replace(robot, joints=tuple(replace(j, coordinates=tuple(replace(c, armature=0.0) for c in j.coordinates))
                                       for j in robot.joints))
    with_, without = ld.build(robot), ld.build(bare)
    q, v = state(with_, 8)[:2]
    assert relative(ld.mass_matrix(with_, q), ld.mass_matrix(without, q)) > 1e-3
    assert_same(ld.coriolis_matrix(with_, q, v), ld.coriolis_matrix(without, q, v))
    assert_same(ld.christoffel_symbols(with_, q), ld.christoffel_symbols(without, q))


def test_a_robot_without_joints():
    model = ld.build(Robot("rock", (Link("rock", 1.0),), ()))
    assert ld.coriolis_matrix(model, [], []).shape == (0, 0)
    assert ld.christoffel_symbols(model, []).shape == ld.mass_matrix_derivative(model, []).shape == (0, 0, 0)
    assert ld.coriolis_matrix(model, [], [], method="factorized").shape == (0, 0)


def test_one_pendulum():
    """One joint: M is constant, so nothing is left."""
    link = Link("a", 1.0, (0.0, 0.0, 1.0), (0.1, 0.0, 0.0, 0.1, 0.0, 0.1))
    model = ld.build(Robot("p", (link,), (Joint("j", "revolute", WORLD, "a", axes=((1.0, 0.0, 0.0),)),)))
    assert abs(ld.coriolis_matrix(model, [0.3], [2.0])).max() < 1e-16
    assert ld.mass_matrix_derivative(model, [0.3]) == 0


def test_errors():
    model = model_of("every kind, floating")
    q, v = state(model, 9)[:2]
    with pytest.raises(ld.ShapeError, match="method must be one of recursive, christoffel, factorized, got 'ploen'"):
        ld.coriolis_matrix(model, q, v, method="ploen")
    with pytest.raises(ld.ShapeError, match=r"v has the wrong shape: expected \(…, 32\), got \(3,\)"):
        ld.coriolis_matrix(model, q, v[:3])
    with pytest.raises(ld.ConfigurationError, match=r"v\[2\] \(base.wz\) is not finite: got nan"):
        ld.coriolis_matrix(model, q, np.r_[v[:2], np.nan, v[3:]])
    with pytest.raises(ld.ConfigurationError, match=r"q\[1\] \(base.py\) is not finite: got inf"):
        ld.christoffel_symbols(model, np.r_[q[0], np.inf, q[2:]])
    with pytest.raises(ld.ConfigurationError, match="the quaternion of joint 'base' is not of unit norm"):
        ld.mass_matrix_derivative(model, np.r_[q[:3], 2 * q[3:7], q[7:]])
    with pytest.raises(ld.ComputationError, match="the result is not finite"):
        ld.coriolis_matrix(model, q, 1e307 * np.ones(model.nv))
