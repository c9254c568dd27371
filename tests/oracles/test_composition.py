"""Robots with another robot at a link against Pinocchio's appendModel: mass matrix, inverse dynamics, poses."""
import numpy as np
import pinocchio as pin
import pytest

import liedyn as ld
from bridge import PinocchioBridge, file_of, full, relative

EXACT = 1e-12               # relative to the largest entry; measured: 2e-15


@pytest.mark.parametrize(("base", "parent"), [("fixed", "tool0"), ("fixed", "world"), ("floating", "tool0")])
def test_a_robot_at_a_link_of_a_robot(base, parent):
    """A Panda with its hand at the flange of a UR5, and next to it on the ground."""
    one, two = (pin.buildModelFromUrdf(str(file_of(name)), *more) for name, more in (
        ("ur5_robot.urdf", (pin.JointModelFreeFlyer(),) if base == "floating" else ()), ("panda.urdf", ())))
    placement = pin.SE3(pin.utils.rotate("x", 0.7) @ pin.utils.rotate("z", -0.3), np.array([0.1, 0.2, 0.3]))
    frame = one.getFrameId(parent) if parent != "world" else 0
    theirs = pin.appendModel(one, two, frame, placement)
    arm, hand = ld.load(file_of("ur5_robot.urdf"), base=base), ld.load(file_of("panda.urdf")).spanning_tree()
    model = ld.attach(arm, hand, parent=parent, origin=placement.homogeneous)
    bridge = PinocchioBridge(theirs, model)
    rng = np.random.default_rng(3)
    q, v, a = ld.random_configuration(model, rng), *rng.standard_normal((2, model.nv))
    Q, S, dS = bridge.q(q), bridge.S(q), bridge.dS(q, v)
    assert relative(ld.mass_matrix(model, q), S.T @ full(pin.crba(theirs, bridge.data, Q)) @ S) < EXACT
    tau = S.T @ pin.rnea(theirs, bridge.data, Q, S @ v, S @ a + dS @ v)
    assert relative(ld.inverse_dynamics(model, q, v, a, passive=False), tau) < EXACT
    pin.framesForwardKinematics(theirs, bridge.data, Q)
    pose = bridge.data.oMf[theirs.getFrameId("panda_hand")].homogeneous
    assert relative(ld.link_pose(model, q, "panda_hand"), pose) < EXACT
