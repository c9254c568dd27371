"""Inverse kinematics of a Panda's hand, and of a humanoid along a path; against Pinocchio's damped least-squares loop (CLIK)."""
from __future__ import annotations

import time
import warnings
from typing import NamedTuple

import numpy as np
import pinocchio as pin

import liedyn as ld
from bridge import robots_folder

TOLERANCE = 1e-10
PANDA = robots_folder() / "panda_description/urdf/panda.urdf"


class PinocchioLoop:
    """The loop of Pinocchio's documentation, q (+) J^T (J J^T + damping)^-1 log6, within the limits and with restarts."""

    def __init__(self, path, frame: str, damping: float = 1e-6, steps: int = 200, restarts: int = 10):
        self.model = pin.buildModelFromUrdf(str(path), mimic=False)
        self.data, self.frame = self.model.createData(), self.model.getFrameId(frame)
        self.damping, self.steps, self.restarts = damping, steps, restarts

    def place(self, q):
        """Return the pose of the frame."""
        pin.framesForwardKinematics(self.model, self.data, np.asarray(q, dtype=float))
        return self.data.oMf[self.frame].copy()

    def solve(self, target, guess, seed: int = 0):
        """Return a configuration, or None."""
        goal, rng, q = pin.SE3(np.asarray(target)), np.random.default_rng(seed), np.asarray(guess, dtype=float)
        for _ in range(1 + self.restarts):
            for _ in range(self.steps):
                pin.framesForwardKinematics(self.model, self.data, q)
                error = self.data.oMf[self.frame].actInv(goal)
                e = pin.log6(error).vector
                if np.linalg.norm(e) < TOLERANCE:
                    return q
                J = pin.Jlog6(error.inverse()) @ pin.computeFrameJacobian(self.model, self.data, q, self.frame)
                v = J.T @ np.linalg.solve(J @ J.T + self.damping * np.eye(6), e)
                q = np.clip(pin.integrate(self.model, q, v), self.model.lowerPositionLimit, self.model.upperPositionLimit)
            q = rng.uniform(self.model.lowerPositionLimit, self.model.upperPositionLimit)
        return None


class Figure(NamedTuple):
    """us a target and part of the targets reached, ours and Pinocchio's; 0 where Pinocchio has no such function."""

    what: str
    ours: float
    reached: float
    theirs: float = 0.0
    theirs_reached: float = 0.0


def figures(targets: int = 1000, compared: int = 100, rows: int = 500, repeats: int = 5):
    """Yield the figures: medians of repeated calls."""
    model, loop = ld.load(PANDA), PinocchioLoop(PANDA, "panda_hand")
    T = ld.link_pose(model, ld.random_configuration(model, 1, targets), "panda_hand")
    guess = 0.5 * (np.array(model.lower) + model.upper)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")                                  # targets that are not reached
        us, solution = _median(lambda: ld.inverse_kinematics(model, {"panda_hand": T}, guess), repeats)
        start = time.perf_counter()
        theirs = [loop.solve(each, guess) is not None for each in T[:compared]]
        elapsed = 1e6 * (time.perf_counter() - start) / len(theirs)
        yield Figure("random poses of a Panda's hand", us / targets, solution.reached.mean(), elapsed, float(np.mean(theirs)))
        yield from _humanoid(repeats, rows)


def _humanoid(repeats: int, rows: int):
    """Feet stand, both hands and the centre of mass move along circles; also with a preferred posture."""
    model = ld.load("robots/humanoid.yaml", base="floating")
    start, t = model.neutral(), np.linspace(0.0, 2.0 * np.pi, rows)
    start[2] = 1.0
    for name, angle in {"left_knee": 0.6, "right_knee": 0.6, "left_elbow": 0.5, "right_elbow": 0.5}.items():
        start[model.q_index(name)] = angle
    circle = 0.1 * np.stack([np.sin(t), 0.0 * t, 1.0 - np.cos(t)], axis=1)
    tasks = [ld.Task(link=f"{side}_foot", pose=ld.link_pose(model, start, f"{side}_foot")) for side in ("left", "right")]
    tasks += [ld.Task(link=f"{side}_hand", position=ld.link_pose(model, start, f"{side}_hand")[:3, 3] + circle)
              for side in ("left", "right")]
    tasks.append(ld.Task(centre_of_mass=ld.centre_of_mass(model, start) + 0.3 * circle[:, [1, 0, 1]] * [1, 1, -1]))
    for what, posture in (("path of a humanoid", None), ("path of a humanoid, with a posture", start)):
        us, solution = _median(lambda: ld.inverse_kinematics(model, tasks, start, path=True, posture=posture), repeats)  # noqa: B023
        yield Figure(what, us / rows, solution.reached.mean())


def _median(function, repeats: int):
    result, times = function(), []
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - start)
    return 1e6 * float(np.median(times)), result
