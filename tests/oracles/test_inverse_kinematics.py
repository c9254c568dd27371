"""Inverse kinematics against Pinocchio: its forward kinematics at our configurations, and its loop (CLIK) on the same targets."""
import numpy as np
import pinocchio as pin
import pytest

import liedyn as ld
from benchmarks.inverse_kinematics import PinocchioLoop
from bridge import robots_folder

PANDA = robots_folder() / "panda_description/urdf/panda.urdf"


@pytest.fixture(scope="module")
def loop():
    return PinocchioLoop(PANDA, "panda_hand")


def test_pinocchio_sees_the_hand_at_its_targets(loop):
    model = ld.load(PANDA)
    targets = ld.link_pose(model, ld.random_configuration(model, 1, 100), "panda_hand")
    solution = ld.inverse_kinematics(model, {"panda_hand": targets})
    assert solution.reached.mean() >= 0.99
    for k in np.flatnonzero(solution.reached):
        place = loop.place(solution.q[k])
        assert np.abs(place.homogeneous - targets[k]).max() < 1e-9
        assert np.linalg.norm(pin.log6(place.actInv(pin.SE3(targets[k]))).vector) < 1e-9


def test_what_its_loop_reaches_within_the_limits_ours_reaches_too(loop):
    model = ld.load(PANDA)
    targets = ld.link_pose(model, ld.random_configuration(model, 2, 30), "panda_hand")
    guess = 0.5 * (np.array(model.lower) + model.upper)
    theirs = [loop.solve(T, guess) for T in targets]
    ours = ld.inverse_kinematics(model, {"panda_hand": targets}, guess)
    reached = np.array([q is not None for q in theirs])
    assert reached.any() and ours.reached[reached].all()
