"""Higher-order kinematics: against derivatives in a hundred digits along a smooth motion; low orders against their functions."""
from functools import cache
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import liedyn as ld
import spatial_series
from bridge import relative
from exact import exact
from exact_motion import ExactMotion, cross, derivatives, precisely, product, twists
from liedyn.errors import NameLookupError
from liedyn.model.description import NV, ONE_DOF, Joint, Robot
from liedyn.model.links import Link
from rounding import assert_same
from zoo import ROBOTS, model_of, robots, state

EVERY = pytest.mark.parametrize("name", ROBOTS)
exploring = settings(max_examples=20, deadline=None, derandomize=True, database=None)
FRAMES = ("local", "local_world_aligned", "world")
ORDER = 7                 # rows of v_derivatives: poses then go to order 7, twists to 6
CLOSE = 1e-12             # of the order's largest number; derivatives are sums of 2^k products a joint, of either sign


def some_links(model): return model.link_names[::-max(1, len(model.link_names) // 3)]


@cache
def motion_of(name):
    """One motion for all tests of a robot, whose poses at an instant are computed once."""
    return ExactMotion(model_of(name), 1, ORDER)


def by_order(x, expected, least=1e-3):
    """Worst order; each against its own size, or `least`."""
    return max(relative(a, b, least) for a, b in zip(x, np.asarray(expected, dtype=float), strict=True))


@EVERY
def test_poses_and_twists(name, worst):
    model = model_of(name)
    motion = motion_of(name)
    exact_poses = derivatives(motion.links, ORDER + 1)
    poses = ld.link_pose_derivatives(model, motion.q, motion.v)
    assert poses.shape == (ORDER + 1, len(model.link_names), 4, 4)
    assert worst("higher order: poses", by_order(poses, exact_poses), name) < CLOSE
    for frame in FRAMES:
        every = ld.link_twist_derivatives(model, motion.q, motion.v, frame=frame)
        assert every.shape == (ORDER, len(model.link_names), 6)
        for link in some_links(model):
            k = model.link_index(link)
            V = ld.link_twist_derivatives(model, motion.q, motion.v, link, frame=frame)
            assert worst(f"higher order: twists, {frame}", by_order(V, twists(exact_poses[:, k], frame)), name) < CLOSE
            assert_same(V, every[:, k])
            assert_same(ld.link_pose_derivatives(model, motion.q, motion.v, link), poses[:, k])


@pytest.mark.parametrize("name", ["every kind, floating", "a long chain"])
def test_digits_are_not_lost_with_the_order(name, worst):
    """Poses to order 13, where their derivatives are 1e12 and more: each against the largest number of its order."""
    model = model_of(name)
    motion = ExactMotion(model, 9, 13)
    exact_poses = derivatives(motion.links, 14)
    poses = ld.link_pose_derivatives(model, motion.q, motion.v)
    assert np.abs(poses[13]).max() > 1e12
    assert worst("higher order: poses to order 13", by_order(poses, exact_poses), name) < 1e-13
    k = len(model.link_names) - 1
    for frame in FRAMES:
        V = ld.link_twist_derivatives(model, motion.q, motion.v, model.link_names[k], frame=frame)
        error = by_order(V, twists(exact_poses[:, k], frame))
        assert worst("higher order: twists to order 12", error, f"{name}, {frame}") < 1e-13


def columns_along(motion, link, frame):
    """t -> Jacobian (6, nv) of a link, from poses: the screw of each joint that carries it."""
    tree, model = motion.tree, motion.model
    path, i = [], model.link_body[model.link_index(link)]
    while i > 0:
        path.append(i)
        i = tree.parent[i]

    def at(t):
        bodies, X, J = motion.bodies(t), motion.links(t)[model.link_index(link)], exact(np.zeros((6, model.nv)))
        point = exact(np.zeros(3)) if frame == "world" else X[:3, 3]
        for i in path:
            R, p = bodies[i][:3, :3], bodies[i][:3, 3]
            S = np.eye(6)[:, :NV[tree.kind[i]]]
            if tree.kind[i] == ONE_DOF:
                S = np.zeros((6, 1))
                S[2], S[5] = tree.S[2 * i:2 * i + 2]
            for c, (w, v) in enumerate(zip(exact(S[:3]).T, exact(S[3:]).T, strict=True)):
                w, v = R @ w, R @ v
                V = np.stack([w, v + cross(w, point - p)])
                J[:, tree.iv[i] + c] = np.ravel(V @ X[:3, :3] if frame == "local" else V)
        return J
    return at


@EVERY
def test_jacobians(name, worst):
    model = model_of(name)
    motion, v = motion_of(name), motion_of(name).v[:ORDER - 2]
    link = some_links(model)[0]
    for frame in FRAMES:
        J = ld.jacobian_derivatives(model, motion.q, v, link, frame=frame)
        expected = derivatives(columns_along(motion, link, frame), ORDER - 1)
        assert J.shape == (ORDER - 1, 6, model.nv)
        assert worst(f"higher order: Jacobians, {frame}", by_order(J, expected), name) < CLOSE


@EVERY
def test_a_twist_is_the_jacobian_times_the_velocity(name, worst):
    """V^(k) = sum_j C(k, j) J^(j) v^(k - j), order twelve too. The sum's terms are larger than it."""
    model = model_of(name)
    q, n = state(model, 3)[0], 13
    v = np.random.default_rng(3).standard_normal((n, model.nv))
    for link in some_links(model):
        for frame in FRAMES:
            J = ld.jacobian_derivatives(model, q, v, link, frame=frame)
            V = ld.link_twist_derivatives(model, q, v, link, frame=frame)
            for k in range(n):
                terms = [comb(k, j) * J[j] @ v[k - j] for j in range(k + 1)]
                size = max(np.abs(terms).max(), 1e-3)
                assert worst("higher order: V = J v", np.abs(sum(terms) - V[k]).max() / size, f"{name}, order {k}") < CLOSE


@precisely
def exact_totals(motion, n):
    """Centre of mass (n) and momentum (n - 1) from poses: bodies as sums of points, r = T (x, 1), h = sum m (r x dr, dr)."""
    T = derivatives(lambda t: np.array(motion.bodies(t)), n)[:, :, :3]
    I = exact(motion.tree.I.reshape(-1, 10))
    mass, first, h = I[1:, 0].sum(), 0, 0
    for i in range(1, len(I)):
        m, A = I[i, 0], np.array([I[i, [4, 5, 6]], I[i, [5, 7, 8]], I[i, [6, 8, 9]]])
        P = exact(np.zeros((4, 4)))
        P[:3, :3], P[:3, 3], P[3, :3], P[3, 3] = np.trace(A) / 2 * exact(np.eye(3)) - A, I[i, 1:4], I[i, 1:4], m
        first = first + (T[:, i] @ P)[:, :, 3]
        X = product(T[:-1, i] @ P, T[1:, i].transpose(0, 2, 1))
        h = h + np.stack([X[:, 1, 2] - X[:, 2, 1], X[:, 2, 0] - X[:, 0, 2], X[:, 0, 1] - X[:, 1, 0]], axis=1)
    return first / mass, np.concatenate([h, first[1:]], axis=1)


@EVERY
def test_centre_of_mass_and_momentum(name, worst):
    model = model_of(name)
    motion = motion_of(name)
    c, h = exact_totals(motion, ORDER + 1)
    assert worst("higher order: centre of mass",
                 by_order(ld.centre_of_mass_derivatives(model, motion.q, motion.v), c), name) < CLOSE
    assert worst("higher order: momentum", by_order(ld.momentum_derivatives(model, motion.q, motion.v), h), name) < CLOSE


@given(robots, st.integers(0, 1000), st.integers(1, 8))
@exploring
def test_any_tree(robot, seed, rows):
    """Checks: AGF Algorithm 1. Against the spatial recursion in long double."""
    model = ld.build(robot)
    q = state(model, seed)[0]
    v = np.random.default_rng(seed).standard_normal((rows, model.nv))
    motion = spatial_series.reference_motion(model, q, v, dtype=np.longdouble)
    poses = spatial_series.link_poses(model, motion)
    assert by_order(ld.link_pose_derivatives(model, q, v), poses.swapaxes(0, 1)) < CLOSE
    assert by_order(ld.momentum_derivatives(model, q, v), spatial_series.spatial_momentum(motion)) < CLOSE
    assert by_order(ld.centre_of_mass_derivatives(model, q, v), spatial_series.centre_of_mass(model, motion)) < CLOSE
    every = ld.link_twist_derivatives(model, q, v, frame="world")
    for k, link in enumerate(model.link_names):
        body = model.link_body[k]
        assert by_order(every[:, k], motion.V[body]) < CLOSE
        J = ld.jacobian_derivatives(model, q, v, link, frame="world")
        # where columns are at rest, their derivatives are rounding of numbers of unit size
        assert by_order(J, spatial_series.body_jacobian(model, motion, body), 0.1) < CLOSE


@EVERY
def test_low_orders(name, worst):
    """What has its own function."""
    model = model_of(name)
    q, v, a, _ = state(model, 5)
    va = np.stack([v, a])
    c, h = ld.centre_of_mass_derivatives(model, q, va), ld.momentum_derivatives(model, q, va)
    pairs = [(ld.link_pose_derivatives(model, q, va)[0], ld.link_poses(model, q)), (c[0], ld.centre_of_mass(model, q)),
             (h[0], ld.momentum(model, q, v))]
    for link in some_links(model):
        V = ld.link_twist_derivatives(model, q, va, link)
        pairs += [(V[0], ld.link_twist(model, q, v, link)), (V[1], ld.link_acceleration(model, q, v, a, link))]
        for frame in FRAMES:
            J = ld.jacobian_derivatives(model, q, va, link, frame=frame)
            pairs += [(J[0], ld.jacobian(model, q, link, frame=frame)),
                      (J[1], ld.jacobian_derivative(model, q, v, link, frame=frame))]
    for x, y in pairs:
        assert worst("higher order: low orders", relative(x, y, 1e-3)) < 1e-13


def test_the_world_twist_of_the_base_is_the_spatial_twist():
    model = model_of("every kind twice, floating")
    motion, base = ExactMotion(model, 6, ORDER), model.joints[0]
    V = ld.spatial_twists(motion.q[base.q], motion.v[:, base.v])
    assert by_order(V, ld.link_twist_derivatives(model, motion.q, motion.v, base.child, frame="world")) < 1e-13


def test_batches_and_single_states_agree(worst):
    """Eight states at a time on Lanes; a batch with leading axes."""
    model, link = model_of("every kind, floating"), "link7"
    q = state(model, 7, (3, 1))[0]
    v = np.random.default_rng(7).standard_normal((7, 4, model.nv))
    calls = [ld.link_pose_derivatives, ld.link_twist_derivatives, ld.centre_of_mass_derivatives, ld.momentum_derivatives,
             *[lambda m, q, v, f=f: ld.link_twist_derivatives(m, q, v, link, frame=f) for f in FRAMES],
             *[lambda m, q, v, f=f: ld.jacobian_derivatives(m, q, v, link, frame=f) for f in FRAMES],
             lambda m, q, v: ld.link_pose_derivatives(m, q, v, link)]
    for call in calls:
        out = call(model, q, v)
        assert out.shape[:2] == (3, 7)
        for i in range(3):
            for j in range(7):
                assert worst("higher order: batch and one state", by_order(out[i, j], call(model, q[i, 0], v[j]))) < 1e-13
        assert call(model, q[:0], v).shape == (0, *out.shape[1:])


def test_links_that_do_not_move():
    """Welded to the world; and a robot without joints."""
    arm = Link("arm", 1.0, inertia=(1.0, 0, 0, 1.0, 0, 1.0))
    model = ld.build(Robot("post", (Link("post", 1.0), arm), (Joint("j", "continuous", "post", "arm", axes=((0, 0, 1.0),)),)))
    T = ld.link_pose_derivatives(model, [0.3], [[1.0], [2.0]], "post")
    np.testing.assert_array_equal(T, [np.eye(4), np.zeros((4, 4)), np.zeros((4, 4))])
    for frame in FRAMES:
        assert not ld.link_twist_derivatives(model, [0.3], [[1.0], [2.0]], "post", frame=frame).any()
        assert not ld.jacobian_derivatives(model, [0.3], [[1.0], [2.0]], "post", frame=frame).any()
    model = ld.build(Robot("rock", (Link("rock", 1.0),), ()))
    assert ld.link_pose_derivatives(model, [], np.empty((3, 0))).shape == (4, 1, 4, 4)
    assert ld.jacobian_derivatives(model, [], np.empty((3, 0)), "rock").shape == (4, 6, 0)
    assert not ld.momentum_derivatives(model, [], np.empty((3, 0))).any()
    with pytest.raises(ld.ComputationError, match="the robot has no moving mass: its centre of mass is not defined"):
        ld.centre_of_mass_derivatives(model, [], np.empty((3, 0)))


def test_errors():
    model = model_of("every kind, floating")
    q, v = state(model, 8)[:2]
    calls = [ld.link_pose_derivatives, ld.link_twist_derivatives, ld.centre_of_mass_derivatives, ld.momentum_derivatives,
             lambda m, q, v: ld.jacobian_derivatives(m, q, v, "link1")]
    for call in calls:
        with pytest.raises(ld.ShapeError, match=r"v_derivatives has the wrong shape: expected \(…, r \+ 1, 32\).*got \(32,\)"):
            call(model, q, v)
        with pytest.raises(ld.ShapeError, match=r"v_derivatives has the wrong shape.*got \(0, 32\)"):
            call(model, q, v[None][:0])
        with pytest.raises(ld.ShapeError, match=r"v_derivatives has the wrong shape: expected \(…, 32\), got \(2, 3\)"):
            call(model, q, np.ones((2, 3)))
        with pytest.raises(ld.ShapeError, match=r"q has the wrong shape: expected \(…, 35\), got \(3,\)"):
            call(model, q[:3], v[None])
        with pytest.raises(ld.ShapeError, match="leading axes do not match"):
            call(model, np.stack([q, q]), np.ones((3, 2, model.nv)))
        wrong = np.stack([v, v])
        wrong[1, 2] = np.nan
        with pytest.raises(ld.ConfigurationError, match=r"v_derivatives\[1, 2\] \(base.wz\) is not finite: got nan"):
            call(model, q, wrong)
        with pytest.raises(ld.ConfigurationError, match=r"v_derivatives\[1, 2\] \(base.wz\) of state 1 is not finite: got nan"):
            call(model, q, np.stack([np.ones_like(wrong), wrong]))
        with pytest.raises(ld.ConfigurationError, match=r"q\[0\] \(base.px\) is not finite: got inf"):
            call(model, np.r_[np.inf, q[1:]], v[None])
        with pytest.raises(ld.ConfigurationError, match="the quaternion of joint 'base' is not of unit norm"):
            call(model, np.r_[q[:3], 2 * q[3:7], q[7:]], v[None])
        with pytest.raises(ld.ComputationError, match="the result is not finite"):
            call(model, q, np.full((2, model.nv), 1e300))
    for call in (ld.link_pose_derivatives, ld.link_twist_derivatives, ld.jacobian_derivatives):
        with pytest.raises(NameLookupError, match="no link 'link77'; did you mean 'link7'"):
            call(model, q, v[None], "link77")
    for call in (ld.link_twist_derivatives, ld.jacobian_derivatives):
        with pytest.raises(ld.ShapeError, match=r"got 'spatial' .called .world. here."):
            call(model, q, v[None], "link1", frame="spatial")
