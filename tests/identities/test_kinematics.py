"""Poses, twists, accelerations, Jacobians: against products of matrix exponentials and differences along motions."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.model.description import WORLD
from matrices import adjoint, derivative, exp, inverse, log
from rounding import assert_same
from zoo import ROBOTS, model_of, state

EVERY = pytest.mark.parametrize("name", ROBOTS)
FRAMES = ("local", "local_world_aligned", "world")


def along(model, q, v, a=None):
    """q(t) with dq/dt = v + a t at t = 0, to second order: so dq(0) = v, ddq(0) = a."""
    step = (lambda t: t * v) if a is None else (lambda t: t * v + 0.5 * t * t * a)
    return lambda t: ld.integrate(model, q, step(t))


def some_links(model):
    return model.link_names[::max(1, len(model.link_names) // 5)]


@EVERY
def test_poses_are_products_along_the_tree(name):
    """Of joint poses, themselves held against matrix exponentials in tests/joints."""
    model = model_of(name)
    q = state(model, 1)[0]
    poses = {WORLD: np.eye(4)}
    moving = {joint.name: joint for joint in model.joints}
    if model.base == "floating":
        base = model.joints[0]
        poses[base.child] = ld.joint_motion(model, base.name, q[base.q])[0]
    else:
        children = {joint.child for joint in model.description.joints}
        poses |= {link.name: np.eye(4) for link in model.description.links if link.name not in children}
    for joint in model.description.joints:                     # zoo robots name parents first
        if joint.type == "fixed":
            T = np.eye(4)
            T[:3, :3], T[:3, 3] = np.reshape(joint.origin.rotation, (3, 3)), joint.origin.translation
        else:
            T = ld.joint_motion(model, joint.name, q[moving[joint.name].q])[0]
        poses[joint.child] = poses[joint.parent] @ T
    np.testing.assert_allclose(ld.link_poses(model, q), [poses[link] for link in model.link_names], atol=5e-15)
    for link in some_links(model):
        assert_same(ld.link_pose(model, q, link), ld.link_poses(model, q)[model.link_index(link)])


@EVERY
def test_twists_are_rates_of_poses(name):
    """V = T^-1 dT/dt along q (+) t v."""
    model = model_of(name)
    q, v = state(model, 2)[:2]
    path = along(model, q, v)
    for link in some_links(model):
        T = inverse(ld.link_pose(model, q, link))
        V = derivative(lambda t, T=T, link=link: log(T @ ld.link_pose(model, path(t), link)), 0.01)
        np.testing.assert_allclose(ld.link_twist(model, q, v, link), V, atol=1e-9 * max(1, np.abs(V).max()))


@EVERY
def test_jacobians_map_velocities_to_twists_in_each_frame(name):
    model = model_of(name)
    q, v = state(model, 3)[:2]
    for link in some_links(model):
        T, V = ld.link_pose(model, q, link), ld.link_twist(model, q, v, link)
        turned = T.copy()
        turned[:3, 3] = 0
        for frame, expected in zip(FRAMES, (V, adjoint(turned) @ V, adjoint(T) @ V), strict=True):
            J = ld.jacobian(model, q, link, frame=frame)
            np.testing.assert_allclose(J @ v, expected, atol=1e-13 * max(1, np.abs(V).max()))
            np.testing.assert_allclose(ld.link_twist(model, q, v, link, frame=frame), expected,
                                       atol=1e-13 * max(1, np.abs(V).max()))


@EVERY
def test_columns_of_jacobians_are_rates_of_poses(name):
    model = model_of(name)
    q = state(model, 4)[0]
    link = model.link_names[-1]
    T = inverse(ld.link_pose(model, q, link))
    J = ld.jacobian(model, q, link)
    for k, e in enumerate(np.eye(model.nv)):
        path = along(model, q, e)
        column = derivative(lambda t, path=path: log(T @ ld.link_pose(model, path(t), link)))
        np.testing.assert_allclose(J[:, k], column, atol=1e-10 * max(1, np.abs(column).max()))


@EVERY
@pytest.mark.parametrize("frame", FRAMES)
def test_derivative_of_jacobians_along_a_motion(name, frame):
    model = model_of(name)
    q, v = state(model, 5)[:2]
    v = v / max(1, np.linalg.norm(v))
    path = along(model, q, v)
    for link in some_links(model):
        dJ = derivative(lambda t, link=link: ld.jacobian(model, path(t), link, frame=frame))
        ours = ld.jacobian_derivative(model, q, v, link, frame=frame)
        np.testing.assert_allclose(ours, dJ, atol=1e-10 * max(1, np.abs(dJ).max()))


@EVERY
@pytest.mark.parametrize("frame", FRAMES)
def test_accelerations_are_rates_of_twists_in_each_frame(name, frame):
    """dV = J a + dJ v, and by differences of the twist while v changes by a."""
    model = model_of(name)
    q, v, a, _ = state(model, 6)
    v = v / max(1, np.linalg.norm(v))
    path = along(model, q, v)
    for link in some_links(model):
        dV = ld.link_acceleration(model, q, v, a, link, frame=frame)
        J, dJ = ld.jacobian(model, q, link, frame=frame), ld.jacobian_derivative(model, q, v, link, frame=frame)
        scale = max(1, np.abs(dV).max())
        np.testing.assert_allclose(dV, J @ a + dJ @ v, atol=1e-13 * scale)
        rate = derivative(lambda t, link=link: ld.link_twist(model, path(t), v + t * a, link, frame=frame))
        np.testing.assert_allclose(dV, rate, atol=1e-10 * scale)


@EVERY
def test_jacobians_know_what_cannot_move_a_link(name):
    """Columns of joints that are not between link and ground are exactly zero."""
    model = model_of(name)
    q = state(model, 7)[0]
    above = {}
    for joint in model.description.joints:
        moves = [joint.name] if joint.type != "fixed" else []
        above[joint.child] = above.get(joint.parent, ["base"] if model.base == "floating" else []) + moves
    for link in some_links(model):
        J = ld.jacobian(model, q, link)
        for joint in model.joints:
            between = joint.name in above.get(link, ["base"] if model.base == "floating" else [])
            assert between == bool(J[:, joint.v].any()), (link, joint.name)


def test_a_robot_that_cannot_move():
    """nv = 0: everything has its shape and nothing fails."""
    from liedyn.model.description import Joint, Robot
    from liedyn.model.links import Link
    model = ld.build(Robot("still", (Link("a", 1.0), Link("b", 2.0)), (Joint("j", "fixed", "a", "b"),)))
    none = np.zeros(0)
    assert (model.nq, model.nv, model.joint_names) == (0, 0, ())
    assert ld.inverse_dynamics(model, none, none, none).shape == ld.forward_dynamics(model, none, none, none).shape == (0,)
    assert ld.mass_matrix(model, none).shape == ld.inverse_mass_matrix(model, none).shape == (0, 0)
    assert ld.jacobian(model, none, "b").shape == (6, 0)
    assert ld.joint_wrenches(model, none, none, none).shape == (0, 6)
    batch = np.zeros((5, 0))
    for dynamics in (ld.inverse_dynamics, ld.forward_dynamics):
        assert dynamics(model, batch, batch, batch).shape == (5, 0)
    np.testing.assert_array_equal(ld.link_poses(model, batch), np.broadcast_to(np.eye(4), (5, 2, 4, 4)))
    assert ld.energy(model, none, none) == (0.0, 0.0)


def test_poses_of_exponentials_of_a_floating_base():
    """Moving the base by exp(x) moves every link by it."""
    model = model_of("every kind, floating")
    q = state(model, 8)[0]
    x = np.array([0.3, -0.2, 0.5, 1.0, 2.0, 3.0])
    step = np.zeros(model.nv)
    step[:6] = x
    T = ld.link_poses(model, q)
    base = T[model.link_index("root")]
    np.testing.assert_allclose(ld.link_poses(model, ld.integrate(model, q, step)), base @ exp(x) @ inverse(base) @ T, atol=3e-14)
