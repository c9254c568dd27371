"""What joints transmit along a motion, moving and fixed ones, in each of the axes."""
from dataclasses import replace

import numpy as np
import pytest

import liedyn as ld
from liedyn.analysis.recorded_motion import SampledMotion
from liedyn.analysis.trajectory_dynamics import joint_wrenches_along
from liedyn.model.description import Joint
from zoo import model_of, random_robot, state


@pytest.mark.parametrize("name", ["every kind", "every kind, floating"])
def test_moving_joints_transmit_what_the_recursion_has(name):
    model = model_of(name)
    q, v, a, _ = state(model, 5, 3)
    F = np.random.default_rng(5).standard_normal((3, len(model.link_names), 6))
    T = ld.link_poses(model, q)
    homes = []
    for joint in model.joints:
        above = T[:, model.link_index(joint.parent), :3, :3] if joint.parent in model.link_names else np.eye(3)
        homes.append(above @ joint.home[:3, :3])
    expected = {frame: ld.joint_wrenches(model, q, v, a, f_ext=F, frame=frame) for frame in ("local", "local_world_aligned")}
    turned = np.stack([np.concatenate([np.einsum("...ji,...j->...i", R, W[:, s]) for s in (slice(0, 3), slice(3, 6))], axis=1)
                       for R, W in zip(homes, np.moveaxis(expected["local_world_aligned"], 1, 0), strict=True)], axis=1)
    for axes, one in (("link", expected["local"]), ("world", expected["local_world_aligned"]), ("joint", turned)):
        got = joint_wrenches_along(model, SampledMotion(q, v, a, None, F, True, ()), axes)
        assert set(got) == {joint.name for joint in model.description.joints} | set(model.joint_names)
        for k, joint in enumerate(model.joints):
            np.testing.assert_allclose(got[joint.name], one[:, k], rtol=0, atol=2e-13 * np.abs(one).max(), err_msg=joint.name)


def test_a_fixed_joint_transmits_what_a_locked_hinge_in_its_place_would():
    robot = random_robot(12, 6)
    weld = next(joint for joint in robot.joints if joint.type == "fixed"
                and any(link.name == joint.child and link.mass for link in robot.links))
    hinge = Joint(weld.name, "revolute", weld.parent, weld.child, weld.origin, axes=((0.0, 0.6, 0.8),))
    other = ld.build(replace(robot, joints=tuple(hinge if joint is weld else joint for joint in robot.joints)))
    model = ld.build(robot)
    q, v, a, _ = state(model, 6, 3)
    Q, V, A = np.zeros((3, other.nq)), np.zeros((3, other.nv)), np.zeros((3, other.nv))
    for joint in model.joints:
        Q[:, other.q_index(joint.name)], V[:, other.v_index(joint.name)] = q[:, joint.q], v[:, joint.v]
        A[:, other.v_index(joint.name)] = a[:, joint.v]
    locked = ld.joint_wrenches(other, Q, V, A)[:, other.joint_names.index(weld.name)]
    got = joint_wrenches_along(model, SampledMotion(q, v, a, None, None, True, ()), "link")[weld.name]
    np.testing.assert_allclose(got, locked, rtol=0, atol=1e-12 * np.abs(locked).max())


def test_force_elements_act_on_the_links_beyond_a_joint():
    model = ld.load("robots/toggle_clamp.yaml")
    q, v, a = model.neutral()[None], np.full((1, model.nv), 0.3), np.full((1, model.nv), -0.2)
    multipliers = np.linspace(1.0, 2.0, model.nc)[None]
    expected = ld.joint_wrenches(model, q, v, a, multipliers=multipliers)
    got = joint_wrenches_along(model, SampledMotion(q, v, a, None, None, True, (), multipliers=multipliers), "link")
    for k, name in enumerate(model.joint_names):
        np.testing.assert_allclose(got[name], expected[:, k], rtol=0, atol=1e-12 * np.abs(expected).max(), err_msg=name)
