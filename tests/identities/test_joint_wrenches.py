"""What joints transmit: it balances every body, and its part along the joint is the joint's force."""
import numpy as np
import pytest

import liedyn as ld
from joint_forces import figures, passive_force
from matrices import adjoint, bracket, inertia, inverse
from zoo import ROBOTS, model_of, state

EVERY = pytest.mark.parametrize("name", ROBOTS)


def motion(model, seed, size=()):
    F = np.random.default_rng([seed, 5]).standard_normal((*size, len(model.link_names), 6))
    return *state(model, seed, size)[:3], F


@EVERY
def test_joint_force_is_the_part_of_the_wrench_along_the_joint(name):
    """tau = S^T F + armature a - passive."""
    model = model_of(name)
    q, v, a, F = motion(model, 1)
    wrenches = ld.joint_wrenches(model, q, v, a, f_ext=F)
    tau = ld.inverse_dynamics(model, q, v, a, f_ext=F)
    along = np.concatenate([ld.joint_motion(model, j.name, q[j.q])[1].T @ W for j, W in zip(model.joints, wrenches, strict=True)])
    expected = along + figures(model, "armature") * a - passive_force(model, q, v)
    np.testing.assert_allclose(tau, expected, atol=1e-12 * max(1, np.abs(tau).max()))


@EVERY
def test_every_body_is_in_balance(name):
    """Free-body diagram of each body, its welded links together, seen from one of its links: I dV - ad* I V is the sum of
    external wrenches, weight, what its joint transmits to it, less what it transmits to the next."""
    model = model_of(name)
    q, v, a, F = motion(model, 2)
    wrenches = ld.joint_wrenches(model, q, v, a, f_ext=F)
    poses = ld.link_poses(model, q)
    body = {link: model.link_body[k] for k, link in enumerate(model.link_names)}
    gravity = np.r_[0, 0, 0, model.gravity]
    for joint, wrench in zip(model.joints, wrenches, strict=True):
        home = poses[model.link_index(joint.child)]
        balance = wrench.copy()
        for k, link in enumerate(model.description.links):
            if body[link.name] == body[joint.child]:
                V, dV = ld.link_twist(model, q, v, link.name), ld.link_acceleration(model, q, v, a, link.name)
                I = inertia(link.mass, link.com, link.inertia)
                weight = I @ np.r_[0, 0, 0, inverse(poses[k])[:3, :3] @ gravity[3:]]
                own = F[k] + weight - I @ dV + bracket(V).T @ I @ V
                balance += adjoint(inverse(poses[k]) @ home).T @ own
        for other, onward in zip(model.joints, wrenches, strict=True):
            if body.get(other.parent) == body[joint.child]:
                balance -= adjoint(inverse(poses[model.link_index(other.child)]) @ home).T @ onward
        np.testing.assert_allclose(balance, 0, atol=2e-13 * max(1, np.abs(wrenches).max()), err_msg=joint.name)


def test_wrenches_of_a_batch_are_those_of_its_states():
    model = model_of("every kind")
    q, v, a, F = motion(model, 3, (2, 5))
    together = ld.joint_wrenches(model, q, v, a, f_ext=F)
    assert together.shape == (2, 5, len(model.joints), 6)
    alone = [[ld.joint_wrenches(model, *x) for x in zip(*row, strict=True)] for row in zip(q, v, a, strict=True)]
    np.testing.assert_allclose(ld.joint_wrenches(model, q, v, a), alone, rtol=1e-13, atol=1e-12)


def test_wrenches_in_the_axes_and_about_the_origin_of_the_world():
    model = model_of("every kind, floating")
    q, v, a, F = motion(model, 4, (3,))
    local = ld.joint_wrenches(model, q, v, a, f_ext=F)
    poses = ld.link_poses(model, q)[:, [model.link_index(joint.child) for joint in model.joints]]
    turned = poses.copy()
    turned[..., :3, 3] = 0.0
    for frame, T in (("local_world_aligned", turned), ("world", poses)):
        expected = [[adjoint(inverse(X)).T @ W for X, W in zip(*rows, strict=True)] for rows in zip(T, local, strict=True)]
        np.testing.assert_allclose(ld.joint_wrenches(model, q, v, a, f_ext=F, frame=frame), expected,
                                   atol=1e-13 * np.abs(expected).max())


def test_a_link_at_rest_rests_on_its_joint():
    """A mass of 2 kg held 0.3 m out: its weight and its moment, whatever the motor does."""
    from liedyn.model.description import Joint, Robot
    from liedyn.model.links import Link
    arm = Joint("arm", "revolute", "base", "link", axes=((0.0, 0.0, 1.0),))
    model = ld.build(Robot("one", (Link("base"), Link("link", 2.0, (0.3, 0.0, 0.0), (0.1, 0, 0, 0.1, 0, 0.1))), (arm,)))
    np.testing.assert_allclose(ld.joint_wrenches(model, [0.7], [0.0], [0.0])[0], [0, -0.6 * 9.81, 0, 0, 0, 2 * 9.81], atol=1e-15)
