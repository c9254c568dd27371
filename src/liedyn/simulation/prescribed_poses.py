"""Poses of ball and free joints that a scenario prescribes: by signals, by waypoints, or by the columns of a recorded motion."""
from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from liedyn.codegen.plain import plain
from liedyn.codegen.steps.signals import read_signal
from liedyn.dynamics.scales import Scales, scales_of
from liedyn.errors import ScenarioError
from liedyn.integrators.problem import Problem
from liedyn.io.scenarios.scenario import Column, Constant, Motion, Prescribe
from liedyn.io.scenarios.waypoints import Waypoints
from liedyn.kernels.simulation.signals import POSITION, VELOCITY, Poses
from liedyn.model.model import Model
from liedyn.simulation.signals.curves import Curve, spline
from liedyn.simulation.signals.rotation_spline import (
    TURN,
    largest_turn,
    rate_at_start,
    rotation_curves,
    rotation_spline,
)
from liedyn.simulation.signals.signal_table import SignalTable, Use, finite

_AXES = ("x", "y", "z", "roll", "pitch", "yaw")
_UNUSED = -1
_END = 4                 # rows from which the rate at the end of a recorded motion is taken
_UNIT_NORM = 1e-6        # a quaternion printed with seven digits is meant to be a unit one


class PoseTable:
    """Collects prescribed poses; `poses` gives them as the kernels read them."""

    def __init__(self, model, table: SignalTable):
        self.model, self.table = model, table
        self.rows: list[tuple[int, int, bool, bool]] = []
        self.signals: list[int] = []

    def add(self, name: str, drive: Prescribe, n: int) -> list[int]:
        """The pose of joint `name` with n coordinates, 3 or 6. Returns the signal of each, for messages."""
        given, free = drive.signals, n == 6
        if isinstance(given, Waypoints):
            numbers = self._waypoints(name, given, free)
        elif isinstance(given, Motion):
            if given.xyz and not free:
                raise _no_position(name, given.xyz[0].place)
            numbers = motion_signals(self.table, name, given)
        elif isinstance(given, Column) and given.name is None:
            numbers = self._recorded(name, given, free)
        else:
            raise ScenarioError(f"the position of {name}, a {'free' if free else 'ball'} joint, is prescribed as a pose",
                                place=drive.place, expected="waypoints, or rpy with three signals"
                                + (" and xyz with three" if free else ""))
        self._append(self.model.q_index(name).start, self.model.v_index(name).start, free, numbers)
        return [*numbers[3:6], *(numbers[:3] if free else ())]

    def add_target(self, name: str, given: Motion | Waypoints) -> None:
        """A pose that is no joint's."""
        waypoints = isinstance(given, Waypoints)
        self._append(0, 0, True, self._waypoints(name, given, True) if waypoints else motion_signals(self.table, name, given))

    def _append(self, q: int, v: int, free: bool, numbers: list[int]) -> None:
        self.rows.append((q, v, free, len(numbers) == 10))
        self.signals += numbers + [_UNUSED] * (10 - len(numbers))

    @property
    def poses(self) -> Poses:
        return Poses(*np.array(self.rows, dtype=np.int64).reshape(-1, 4).T.copy(), np.array(self.signals, dtype=np.int64))

    def _waypoints(self, name: str, given: Waypoints, free: bool) -> list[int]:
        points = given.points
        turns = np.array([one.turn for one in points])
        place = next((one.place for one in points if one.xyz), None)
        if place is not None and not free:
            raise _no_position(name, place)
        t = np.array([one.t for one in points])
        turn = _turning(name, given.place, t, turns, held=True)
        position = [finite(given.place, spline, [(one.t, (one.xyz or (0.0,) * 3)[k]) for one in points]) for k in range(3)]
        return [self._put(curve, _use(axis, name), given)
                for axis, curve in zip((*_AXES, *("quaternion",) * 4), (*position, *turn), strict=True)]

    def _recorded(self, name: str, given: Column, free: bool) -> list[int]:
        """By all rows of a CSV."""
        q = self.model.q_index(name)
        names = self.model.q_names[q]
        t, turns = np.empty(0), []
        for column in names[-4:]:
            t, x, _ = self.table.samples(replace(given, name=f"q.{column}"), _use("quaternion", name))
            turns.append(x)
        u = np.column_stack(turns)
        norm = np.linalg.norm(u, axis=1)
        k = int(np.argmax(np.abs(norm - 1.0)))
        if not abs(norm[k] - 1.0) <= _UNIT_NORM:
            raise ScenarioError(f"the quaternion of {name} in {given.file} is not of unit norm at t = {t[k]:g} s",
                                place=given.place, found=float(norm[k]), expected="norm 1")
        turn = _turning(name, given.place, t, u / norm[:, None], held=False)
        position = [self.table.add(replace(given, name=f"q.{column}"), _use(axis, name))
                    for axis, column in zip(_AXES, names[:3], strict=False)] if free else [_UNUSED] * 3
        return [*position, *(self._put(curve, _use(axis, name), given)
                             for axis, curve in zip((*_AXES[3:], *("quaternion",) * 4), turn, strict=True))]

    def _put(self, curve: Curve, use: Use, given) -> int:
        if not np.isfinite(curve.coefficients).all():
            raise ScenarioError("the curve is not finite", place=given.place, expected="smaller values, or times farther apart")
        return self.table.put(curve, use, given.place)


def motion_signals(table: SignalTable, name: str, given: Motion) -> list[int]:
    """x y z roll pitch yaw of what has this name."""
    zero = (Constant(0.0, given.place),) * 3
    for signal in (*given.xyz, *given.rpy):
        if isinstance(signal, Column) and signal.name is None:
            raise ScenarioError("the key column is missing", place=signal.place, expected="the name of a column")
    return [table.add(signal, _use(axis, name))
            for axis, signal in zip(_AXES, (*(given.xyz or zero), *(given.rpy or zero)), strict=True)]


def _use(axis: str, name: str) -> Use:
    unit = "m" if axis in "xyz" else "rad" if axis in _AXES else ""
    return Use(f"{axis} of {name}", state=False, unit=unit, interpolate="quintic", derivatives=2)


def _turning(name: str, place, t, turns, held: bool) -> list[Curve]:
    k, angle = largest_turn(turns)
    if angle > TURN:
        raise ScenarioError(f"{name} turns by {angle:.4g} rad from t = {t[k]:g} s to the next pose at t = {t[k + 1]:g} s",
                            place=place, expected=f"at most {TURN:g} rad, since it takes the shorter way",
                            hint="add a pose between them")
    ends = ((0.0,) * 3,) * 2 if held else tuple(rate_at_start(*(x[::way][:_END] for x in (t, turns))) for way in (1, -1))
    try:
        with np.errstate(all="ignore"):
            return rotation_curves(t, *rotation_spline(t, turns, *ends), held)
    except ValueError:                                         # unsettled, or not finite where times are too close
        raise ScenarioError(f"no smooth rotation through the poses of {name} was found", place=place,
                            expected="poses that turn less from one to the next, or times farther apart") from None


def _no_position(name: str, place) -> ScenarioError:
    return ScenarioError(f"{name} is a ball joint: it has no position", place=place, found="xyz", expected="rpy alone")


# what follows a motion --------------------------------------------------------------------------------------------------
class Followed(NamedTuple):
    """A ball or free joint whose pose is prescribed, or one coordinate whose position or velocity is.

    q, v   its places; none in q at velocity level
    """

    joint: str
    name: str
    q: slice
    v: slice
    is_pose: bool
    model: Model

    def off(self, here: tuple[np.ndarray, np.ndarray], there: tuple[np.ndarray, np.ndarray]) -> tuple[float, float]:
        """The largest differences of positions and of velocities, each relative to the largest number of its unit and to the
        characteristic one. A quaternion and its negative are the same."""
        q, begins, scales = here[0][self.q].copy(), there[0][self.q], scales_of(self.model)
        if self.is_pose and q[-4:] @ begins[-4:] < 0.0:
            q[-4:] *= -1.0
        rates = [f"{unit}/s" for unit in self.model.v_units[self.v]]
        return _gap(q, begins, self.model.q_units[self.q], scales), _gap(here[1][self.v], there[1][self.v], rates, scales)

    def told(self, x: np.ndarray) -> str:
        """Coordinates, for messages."""
        numbers = ", ".join(f"{number:.9g}" for number in x)
        return f"[{numbers}]" if self.is_pose else numbers


def _gap(here, there, units, scales: Scales) -> float:
    gap, units = 0.0, np.array(units)
    for unit in set(units):
        same = units == unit
        gap = max(gap, float(np.abs(here - there)[same].max() / np.abs(there[same]).max(initial=scales.of(unit))))
    return gap


def following(problem: Problem) -> list[Followed]:
    """What is prescribed at position or velocity level."""
    found, schedule = [], problem.schedule
    for joint in problem.model.joints:
        if joint.screws is None and schedule.level[joint.v.start] == POSITION:
            found.append(Followed(joint.name, joint.name, joint.q, joint.v, True, problem.model))
            continue
        for k in range(joint.v.start, joint.v.stop):
            if schedule.level[k] in (POSITION, VELOCITY):
                i = schedule.q_of_v[k]
                q = slice(i, i + 1) if schedule.level[k] == POSITION else slice(0)
                found.append(Followed(joint.name, problem.model.v_names[k], q, slice(k, k + 1), False, problem.model))
    return found


def prescribed_at(problem: Problem, t: float, q, v) -> tuple[np.ndarray, np.ndarray]:
    """q and v at t, with what is prescribed on its motion. Raises ScenarioError where a signal is not finite."""
    schedule, signals, poses = problem.schedule, problem.signals, problem.schedule.poses
    q, v, work = np.array(q, dtype=float), np.array(v, dtype=float), problem.work()
    work.q[:], work.v[:] = q, v
    for one in following(problem):
        if not one.is_pose:
            x, dx = _finite(problem, schedule.signal[one.v.start], t, work, 2)
            q[one.q], v[one.v] = x, x if schedule.level[one.v] == VELOCITY else dx
    for k in poses.signal[poses.signal >= 0]:
        _finite(problem, k, t, work, 3)
    with np.errstate(all="ignore"):
        plain("kernels.simulation.poses").prescribe_poses(poses, signals, np.float64(t), q, v, np.zeros_like(v), work)
    return q, v


def _finite(problem: Problem, k: int, t: float, work, count: int) -> tuple[float, ...]:
    """Signal k and its derivatives, `count` numbers."""
    jet = read_signal(problem.signals, k, t, work.q, work.v)[:count]
    if not np.isfinite(jet).all():
        raise ScenarioError(f"the {problem.signal_names[k]} is not finite at t = {t:g}", place=problem.signal_places[k],
                            found=f"{jet[0]}, derivative{'s' * (count > 2)} {' and '.join(map(str, jet[1:]))}")
    return jet
