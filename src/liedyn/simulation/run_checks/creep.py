"""Joints that friction holds: smoothed Coulomb friction lets them creep, because it is zero at rest. So do laws such as
-sign(v) and -tanh(v/0.01) in a scenario: the first holds between two steps only. In joints that move slowly throughout, friction
acts as damping, because it never reaches its level.

A joint creeps where it moves slowly and steadily. That is judged by mean velocities over intervals of `_INTERVAL`, which also
show the drift of a law that chatters. `FRICTION_SPEED` is a part of the model of friction, in rad/s or m/s, and so are the times
here: they do not follow from the size of the robot.
"""
from __future__ import annotations

import numpy as np

from liedyn.codegen.steps.signals import instructions, read_signal
from liedyn.dynamics.scales import scales_of
from liedyn.joints.kinds import FRICTION_SPEED
from liedyn.joints.tree import tree_of
from liedyn.kernels.simulation.signals import STATE_V, TORQUE
from liedyn.simulation.joint_values import coordinates

CREEPS = "joints held by friction creep"
_LEAST_SPEED = 0.01      # of FRICTION_SPEED: below it, friction holds less than a hundredth of its level
_STEADY = 1.0            # s; a joint creeps while its acceleration would take longer than this to change FRICTION_SPEED
LEAST_TIME = 0.5         # s; a shorter creep is the end of a motion
_INTERVAL = 0.05         # s; a tenth of it, so that no more rows of a long run are read than this needs
_NEAR, _FAR = 10.0, 1e3  # times FRICTION_SPEED: a law that is smoothed friction hardly changes from the first to the second
_SATURATED = 0.5         # part of its change up to _FAR that such a law has at _NEAR; a damper has a hundredth
_MOVED = 1e-3            # rad, and of the characteristic length: a joint that goes no further is at rest
_NUMBERS = 1_000_000     # positions of many runs that are looked at together


class Creep:
    """Time, distance and largest speed (…, nv) of each coordinate that friction holds, while it creeps. Rows are added block by
    block; they may be of many runs, with leading axes.

    friction  (…, nv) levels of the joints' friction, zero where it does not act
    """

    def __init__(self, model, friction: np.ndarray):
        self.model, self.friction, self.at = model, friction, coordinates(model)
        self.time, self.distance, self.speed, self.way, self.fastest = np.zeros((5, *friction.shape))

    @classmethod
    def of_model(cls, model, passive: bool) -> Creep:
        return cls(model, friction_levels(model, model.constants) * passive)

    def add(self, t: np.ndarray, q: np.ndarray, problem=None) -> None:
        """Rows t (R,), q (…, R, nq); NaN after the end of a run. problem: whose laws act on them."""
        free = True if problem is None else ~problem.prescribed                # what moves as it is told does not creep
        which = np.flatnonzero((self.at >= 0) & free & (self.friction > 0.0).any(axis=tuple(range(self.friction.ndim - 1))))
        laws = [k for k in _speed_laws(problem) if self.at[k] >= 0 and k not in which] if problem is not None else []
        rows = spaced(t)
        if len(rows) < 3 or not (len(which) or laws):
            return
        self._add(t[rows], q[..., rows, :], which, self.friction[..., which] > 0.0)
        for k in laws:
            at = q[(*np.zeros(q.ndim - 2, dtype=int), rows[-1])]               # of many runs, the first tells
            self._add(t[rows], q[..., rows, :], np.array([k]), np.array([_is_friction(problem, k, t[rows[-1]], at)]))

    def follow(self, t: np.ndarray, v: np.ndarray) -> None:
        """Velocities v (R, nv) of one run, for `slow_friction_note`."""
        speed = np.abs(v)
        self.way += np.diff(t) @ speed[1:]
        self.fastest = np.maximum(self.fastest, speed.max(axis=0, initial=0.0))

    def _add(self, t: np.ndarray, q: np.ndarray, which: np.ndarray, held: np.ndarray) -> None:
        """Of the coordinates `which`, that friction holds where `held` (…, n)."""
        if not held.any():
            return
        dt = np.diff(t)[:, None]
        moved = np.abs(steps := np.diff(q[..., self.at[which]], axis=-2))
        speed = moved / dt
        apart = np.abs(np.diff(steps / dt, axis=-2)) < FRICTION_SPEED / _STEADY * 0.5 * (dt[1:] + dt[:-1])
        creeps = (speed < FRICTION_SPEED) & (speed > _LEAST_SPEED * FRICTION_SPEED) & held[..., None, :]
        both = creeps[..., 1:, :] & creeps[..., :-1, :] & apart                # two intervals, one after the other
        creeps[..., 0, :], creeps[..., -1, :] = both[..., 0, :], both[..., -1, :]
        creeps[..., 1:-1, :] = both[..., 1:, :] | both[..., :-1, :]
        self.time[..., which] += (dt * creeps).sum(axis=-2)
        self.distance[..., which] += np.where(creeps, moved, 0.0).sum(axis=-2)
        self.speed[..., which] = np.maximum(self.speed[..., which], np.where(creeps, speed, 0.0).max(axis=-2))

    def of_run(self, i: int) -> Creep:
        """Of one of many runs."""
        one = Creep(self.model, self.friction[i])
        one.time, one.distance, one.speed = self.time[i], self.distance[i], self.speed[i]
        return one

    def crept(self) -> np.ndarray:
        """(…, nv) bool: long enough to be reported."""
        return self.time > LEAST_TIME

    def notes(self) -> list[str]:
        return self._of_holding() + slow_friction_note(self.model, self.fastest, self.way, self.crept(), self.friction)

    def _of_holding(self) -> list[str]:
        """One line, which tells of the fastest of many runs."""
        crept = self.crept()
        if not crept.any():
            return []
        arrays = self.time, self.distance, np.where(crept, self.speed, 0.0)
        time, distance, speed = (x.reshape(-1, self.model.nv) for x in arrays)
        worst, columns = speed.argmax(axis=0), range(self.model.nv)
        found = [f"{self.model.v_names[k]} ({speed[i, k]:.2g} {unit}/s, {distance[i, k]:.2g} {unit} in {time[i, k]:.3g} s)"
                 for i, k, unit in zip(worst, columns, self.model.v_units, strict=True) if speed[i, k] > 0.0]
        if not found:
            return []
        more = f", and {len(found) - 3} more" if len(found) > 3 else ""
        runs = f" in {np.count_nonzero(crept.any(axis=-1))} of {len(speed)} runs" if len(speed) > 1 else ""
        return [f"{CREEPS}{runs}: {', '.join(found[:3])}{more}. Coulomb friction is smoothed below "
                f"{FRICTION_SPEED:g} rad/s or m/s and cannot hold a joint at rest, nor can a law such as sign(v); lock the "
                "joint to hold it"]


def slow_friction_note(model, fastest, way, known=False, friction=None) -> list[str]:
    """Of joints with friction whose largest speed (nv,) stays below `FRICTION_SPEED` although they go a way (nv,) [rad | m]; but
    for those that are `known`."""
    friction = friction_levels(model, model.constants) if friction is None else friction
    moved = way > _MOVED * scales_of(model).of_all(model.v_units)
    slow = np.argwhere((friction > 0.0) & moved & (fastest < FRICTION_SPEED) & ~np.asarray(known))[:, -1]
    if not len(slow):
        return []
    told = ", ".join(f"{model.v_names[k]} ({fastest[k]:.2g} {model.v_units[k]}/s)" for k in slow[:3])
    more = f", and {len(slow) - 3} more" if len(slow) > 3 else ""
    return [f"Coulomb friction acts as damping in joints that move slowly throughout: {told}{more}. It is smoothed below "
            f"{FRICTION_SPEED:g} rad/s or m/s, and less than its level below that; passive: false leaves all passive forces out"]


def friction_levels(model, constants: np.ndarray) -> np.ndarray:
    """(nv,) levels of the joints' friction."""
    return tree_of.py_func(model.index, constants).friction


def creep_of_runs(model, friction: np.ndarray, t: np.ndarray, q: np.ndarray, problem=None) -> Creep:
    """Of N runs: friction (N, nv), rows t (R,), q (N, R, nq); problem: whose laws act on them."""
    found = Creep(model, friction)
    rows, step = spaced(t), max(1, _NUMBERS // (len(t) * q.shape[2]))
    for first in range(0, len(q), step):
        some = slice(first, first + step)
        part = Creep(model, friction[some])
        part.add(t[rows], q[some][:, rows], problem)
        found.time[some], found.distance[some], found.speed[some] = part.time, part.distance, part.speed
    return found


def spaced(t: np.ndarray) -> np.ndarray:
    """Rows that are about `_INTERVAL` apart, or all where these are farther apart; of rows at one time, the first."""
    if not len(t):
        return np.zeros(0, dtype=int)
    asked = np.append(np.arange(t[0], t[-1], _INTERVAL), t[-1])
    return np.unique(np.searchsorted(t, np.minimum(asked, t[-1])))              # arange may end beyond it by rounding


def _speed_laws(problem) -> list[int]:
    """Coordinates whose torque is an expression that reads their velocity."""
    schedule, signals = problem.schedule, problem.signals
    return [k for k in np.flatnonzero(schedule.level == TORQUE)
            if (instructions(signals, schedule.signal[k]) == STATE_V + 256 * k).any()]


def _is_friction(problem, k: int, t: float, q: np.ndarray) -> bool:
    """Whether the torque of coordinate k brakes by a force that hardly grows with the speed beyond small ones."""
    def braking(speed: float) -> float:
        v = np.zeros((2, problem.model.nv))
        v[:, k] = -speed, speed
        against, along = (read_signal(problem.signals, int(problem.schedule.signal[k]), t, q, each)[0] for each in v)
        return against - along
    near, far = braking(_NEAR * FRICTION_SPEED), braking(_FAR * FRICTION_SPEED)
    return near > 0.0 and near > _SATURATED * far
