"""Moving on the configuration manifold: q (+) x against matrices, its inverse, its charts."""
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import liedyn as ld
from compiled import KINDS, probe
from liedyn.joints.joint_model import tree_views
from liedyn.kernels.manifold import chart_rate, difference, retract
from liedyn.model.description import BALL, FREE
from matrices import derivative, exp, inverse, log, pose
from zoo import ROBOTS, model_of, state

EVERY = "every kind, floating"


def matrix(kind, q):
    """Return the pose of a ball or free joint."""
    return pose(Rotation.from_quat(q[-4:]).as_matrix(), q[:3] if kind == FREE else [0, 0, 0])


def twist(kind, x):
    return np.r_[x, 0, 0, 0] if kind == BALL else x


@pytest.mark.parametrize("name", ROBOTS)
def test_integrate_is_the_right_multiplied_exponential(name):
    model = model_of(name)
    q, x = state(model, 1, 20)[:2]
    moved = ld.integrate(model, q, x)
    for joint in model.joints:
        for k in range(20):
            before, after = q[k, joint.q], moved[k, joint.q]
            if joint.kind in (BALL, FREE):
                expected = matrix(joint.kind, before) @ exp(twist(joint.kind, x[k, joint.v]))
                np.testing.assert_allclose(matrix(joint.kind, after), expected, atol=5e-15)
            else:
                np.testing.assert_array_equal(after, before + x[k, joint.v])


@pytest.mark.parametrize("name", ROBOTS)
def test_difference_undoes_integrate_and_the_other_way_round(name):
    """Rotations below half a turn are recovered; any two configurations are connected."""
    model = model_of(name)
    q, x = state(model, 2, 20)[:2]
    x *= 0.9 * np.pi / np.maximum(np.pi, np.linalg.norm(x, axis=-1, keepdims=True))
    np.testing.assert_allclose(ld.difference(model, q, ld.integrate(model, q, x)), x, atol=2e-14)
    other = state(model, 3, 20)[0]
    back = ld.integrate(model, q, ld.difference(model, q, other))
    np.testing.assert_allclose(ld.link_poses(model, back), ld.link_poses(model, other), atol=3e-14)
    assert not ld.difference(model, q, q).any() or abs(ld.difference(model, q, q)).max() < 1e-15


def test_difference_takes_the_shorter_way():
    model = model_of("ball")
    q = np.tile([0.0, 0, 0, 1], 3)
    for angle in (3.0, np.pi - 1e-7, 3.3, 6.0):
        x = np.zeros(9)
        x[3:6] = np.array([0.6, 0.0, 0.8]) * angle
        step = ld.difference(model, q, ld.integrate(model, q, x))
        shorter = angle if angle <= np.pi else angle - 2 * np.pi
        np.testing.assert_allclose(step[3:6], np.array([0.6, 0.0, 0.8]) * shorter, atol=1e-14)
    np.testing.assert_allclose(ld.difference(model, q, -q), 0, atol=1e-15)         # the same rotation


def test_quaternions_keep_unit_norm_over_many_steps():
    """They are normalized at each step: 4e-16 after ten thousand, instead of a drift to 1e-13."""
    model = model_of("a lone body")
    q, x = state(model)[:2]
    for _ in range(10000):
        q = ld.integrate(model, q, 0.01 * x)
    assert abs(np.linalg.norm(q[3:]) - 1) < 4e-16


def test_position_of_a_free_joint_far_from_the_origin():
    """A step of 1e-6 m at 1e6 m is as accurate as double precision allows."""
    model = model_of("a lone body")
    q = model.neutral()
    q[:3] = 1e6
    x = np.array([0.1, 0.2, 0.3, 1e-6, 0, 0])
    moved = ld.integrate(model, q, x)
    np.testing.assert_allclose(moved[:3] - 1e6, exp(x)[:3, 3], atol=2e-10)
    np.testing.assert_allclose(ld.difference(model, q, moved), x, atol=3e-10)


@probe
def tree_functions(index, constants, q, q1, x, v, moved, step, rate):
    tree = tree_views(index, constants)
    retract(tree, q, x, moved)
    difference(tree, q, q1, step)
    chart_rate(tree, x, v, rate)
    retract(tree, q, x, q)                          # `out` may be q


def evaluated(model, kind, q, q1, x, v):
    shape = () if kind == "float64" else (8,)
    spread = lambda y: np.broadcast_to(y.reshape(-1, *[1] * len(shape)), (len(y), *shape)).copy()       # noqa: E731
    q, q1, x, v = map(spread, (q, q1, x, v))
    moved, step, rate = np.empty((model.nq, *shape)), np.empty((model.nv, *shape)), np.empty((model.nv, *shape))
    tree_functions(model.index, model.constants, q, q1, x, v, moved, step, rate)
    np.testing.assert_array_equal(q, moved)
    return [y if not shape else y[:, 3] for y in (moved, step, rate)]


@pytest.mark.parametrize("kind", KINDS)
def test_kernels_agree_with_the_public_functions(kind):
    model = model_of(EVERY)
    q, x, v = state(model, 5)[:3]
    q1 = state(model, 6)[0]
    moved, step, _ = evaluated(model, kind, q, q1, x, v)
    np.testing.assert_allclose(moved, ld.integrate(model, q, x), atol=1e-15)
    np.testing.assert_allclose(step, ld.difference(model, q, q1), atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [0.0, 1e-9, 0.3, 1.0, 1.6])
def test_chart_rate_makes_the_robot_move_at_v(kind, size):
    """Along x + h dx, the configuration q (+) x moves with the body twist v, by differences of poses."""
    model = model_of(EVERY)
    q, x, v = state(model, 7)[:3]
    x *= size
    rate = evaluated(model, kind, q, q, x, v)[2]
    for joint in model.joints:
        a, da = x[joint.v], rate[joint.v]
        if joint.kind not in (BALL, FREE):
            np.testing.assert_array_equal(da, v[joint.v])
            continue
        start = exp(twist(joint.kind, a))
        speed = derivative(lambda h, a=a, da=da, k=joint.kind, T=start: log(inverse(T) @ exp(twist(k, a + h * da))))
        np.testing.assert_allclose(speed, twist(joint.kind, v[joint.v]), atol=1e-10)


def test_random_configurations_keep_their_limits():
    model = model_of("every kind")
    q = ld.random_configuration(model, np.random.default_rng(0), (500,))
    low, high = np.full(model.nq, -np.inf), np.full(model.nq, np.inf)
    for joint in model.joints:
        if joint.kind not in (BALL, FREE):
            low[joint.q], high[joint.q] = model.lower[joint.v], model.upper[joint.v]
        else:
            np.testing.assert_allclose(np.linalg.norm(q[:, joint.q][:, -4:], axis=1), 1, atol=1e-15)
    assert (q >= low).all() and (q <= high).all()
    inside = np.isfinite(high - low)
    np.testing.assert_allclose(q.mean(0)[inside], (low[inside] + high[inside]) / 2, atol=0.2)
    assert ld.random_configuration(model, np.random.default_rng(0)).shape == (model.nq,)
    assert ld.random_configuration(model, np.random.default_rng(0), (2, 3)).shape == (2, 3, model.nq)
