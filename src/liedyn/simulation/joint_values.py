"""Values of joints that a scenario or a recording gives: an initial state, one that a law is about, angles that wrap."""
from __future__ import annotations

import math

import numpy as np

from liedyn.errors import Place, ScenarioError, TrajectoryError
from liedyn.io.scenarios.scenario import Rule
from liedyn.simulation.names import bind_joints

_UNIT_NORM = 1e-6                # a quaternion typed with seven digits is meant to be a unit one
_TURN = 2.0 * math.pi
_WRAPPED = 0.5                   # rad: a change between rows that is as close to full turns is a wrap of the angle
_ROUNDING = 1e-12                # of a norm: a change that is not worth a word


def coordinates(model) -> np.ndarray:
    """(nv,) index in q of each velocity coordinate; -1 for those of ball and free joints, which have none of their own."""
    q_of_v = np.full(model.nv, -1, dtype=np.int64)
    for joint in model.joints:
        if joint.screws is not None:
            q_of_v[joint.v] = np.arange(joint.q.start, joint.q.stop)
    return q_of_v


def coordinates_of(names, model) -> np.ndarray:
    """(nv,) bool: those of these joints."""
    return np.array([joint.name in names for joint in model.joints for _ in range(joint.v.start, joint.v.stop)], dtype=bool)


def of_coordinate(given, k: int, n: int, name: str, place: Place, what: str):
    """What is given for coordinate k of the n of joint `name`: one for all, or a tuple of n. what: these are, for messages."""
    if not isinstance(given, tuple):
        return given
    if len(given) != n:
        raise ScenarioError(f"joint {name} has {n} coordinate{'s' * (n != 1)}", place=place, found=f"{len(given)} {what}",
                            expected=f"a list of {n}" if n > 1 else "one value")
    return given[k]


def write_values(values: np.ndarray, rules: tuple[Rule, ...], model, index, ended: dict | None = None) -> dict[str, Rule]:
    """Write the values of joints, those of `ended` where `rules` give none; the rule by joint."""
    bound = (ended or {}) | bind_joints(rules, model)
    for name, rule in bound.items():
        part = index(name)
        if len(rule.value) != part.stop - part.start:
            raise ScenarioError(f"joint {name}: wrong number of values", place=rule.place,
                                found=len(rule.value), expected=str(part.stop - part.start))
        values[part] = rule.value
    return bound


def unwrapped_angle(x: np.ndarray, name: str, lower: float, upper: float) -> tuple[np.ndarray, int]:
    """Samples x (N,) of an angle [rad] without jumps by full turns, and how many jumps there were. TrajectoryError where the
    limits exclude the other turns; limits that are equal are none."""
    steps = np.diff(x)
    turns = np.round(steps / _TURN)
    turns[np.abs(steps - _TURN * turns) > _WRAPPED] = 0.0
    if not turns.any():
        return x, 0
    out = x - _TURN * np.r_[0.0, np.cumsum(turns)]
    if lower < upper and (out.min() < lower or out.max() > upper):
        row = int(np.flatnonzero(turns)[0]) + 1
        raise TrajectoryError(f"{name} jumps by a full turn at row {row + 1}, and its limits exclude further turns",
                              found=f"{x[row - 1]:.6g} rad, then {x[row]:.6g} rad",
                              expected=f"a continuous angle within [{lower:.4g}, {upper:.4g}] rad",
                              hint="velocities cannot be derived from an angle that jumps; give v and a as columns")
    return out, int(np.count_nonzero(turns))


def unit_quaternions(q: np.ndarray, rules: dict[str, Rule], model) -> list[str]:
    """Check, and rid of rounding, the quaternions of ball and free joints among `rules`. Returns notes."""
    found = []
    for joint in model.joints:
        if joint.name in rules and joint.screws is None:
            found += _unit_quaternion(q[joint.q], joint.name, rules[joint.name].place)
    return found


def _unit_quaternion(part: np.ndarray, name: str, place: Place) -> list[str]:
    """In a ball or free joint's coordinates."""
    quaternion = part[-4:]
    norm = math.hypot(*quaternion)                             # does not overflow
    if abs(norm - 1.0) > _UNIT_NORM:
        unit = ", ".join(f"{x:.9g}" for x in quaternion / norm) if norm > 0.0 else "0, 0, 0, 1"
        raise ScenarioError(f"the quaternion x y z w of joint {name} is not of unit norm", place=place, found=round(norm, 9),
                            expected="norm 1", hint=f"the unit quaternion is [{unit}]")
    quaternion /= norm
    return [f"{place}: the quaternion had norm {norm!r}; it was scaled to 1"] if abs(norm - 1.0) > _ROUNDING else []
