"""A robot that is described in Python against MuJoCo and Pinocchio, which get the same numbers through their own interfaces."""
import mujoco
import numpy as np
import pinocchio as pin
import pytest

import liedyn as ld
from described_arm import arm
from liedyn.model.spatial import pose, symmetric_matrix

TOLERANCE = 1e-13           # relative to the largest entry: rounding of a chain of four joints
Q, V, A = np.random.default_rng(7).uniform(-2, 2, (3, 4))


def expected(model):
    """Return the mass matrix, and the torques of the motion without damping and friction."""
    return ld.mass_matrix(model, Q), ld.inverse_dynamics(model, Q, V, A, passive=False)


def assert_close(found, wanted):
    for x, y in zip(found, wanted, strict=True):
        assert np.abs(x - y).max() < TOLERANCE * np.abs(y).max()


def test_an_arm_is_that_of_pinocchio():
    robot, model = arm(), pin.Model()
    for joint, link in zip(robot.joints, robot.links, strict=True):
        axis = np.array(joint.axes[0])
        k = model.addJoint(model.njoints - 1, pin.JointModelRevoluteUnaligned(axis), pin.SE3(pose(joint.origin)), joint.name)
        inertia = pin.Inertia(link.mass, np.array(link.com), symmetric_matrix(link.inertia))
        model.appendBodyToJoint(k, inertia, pin.SE3.Identity())
    model.armature = np.array([joint.armature for joint in robot.joints])
    data = model.createData()
    M = pin.crba(model, data, Q)
    M = np.triu(M) + np.triu(M, 1).T
    assert_close(expected(ld.build(robot)), (M, pin.rnea(model, data, Q, V, A)))


@pytest.mark.parametrize("by_density", [True, False])
def test_an_arm_of_capsules_and_cylinders_is_that_of_mujoco(by_density):
    """MuJoCo computes masses and inertias from the shapes."""
    robot, spec = arm(), mujoco.MjSpec()
    body, kinds = spec.worldbody, {"capsule": mujoco.mjtGeom.mjGEOM_CAPSULE, "cylinder": mujoco.mjtGeom.mjGEOM_CYLINDER}
    for joint, link in zip(robot.joints, robot.links, strict=True):
        body = body.add_body(name=link.name, pos=joint.origin.translation)
        body.add_joint(name=joint.name, axis=joint.axes[0], armature=joint.armature)
        if not link.shapes:
            body.mass, body.ipos, body.inertia = link.mass, link.com, np.array(link.inertia)[[0, 3, 5]]
            body.explicitinertial = True
        for shape in link.shapes:
            radius, length = shape.sizes
            size = {"density": 2700.0} if by_density else {"mass": link.mass}
            body.add_geom(type=kinds[shape.kind], size=[radius, length / 2, 0], pos=shape.pose.translation, **size)
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos, data.qvel, data.qacc = Q, V, A
    mujoco.mj_forward(model, data)
    M = np.zeros((4, 4))
    for column, unit in zip(M, np.eye(4), strict=True):
        mujoco.mj_mulM(model, data, column, unit)
    tau = M @ A + data.qfrc_bias
    assert_close(expected(ld.build(robot)), (M, tau))
