"""Checks of a recorded motion: angles that wrap by 2 pi, limits that it exceeds, angles that seem to be in degrees."""
from __future__ import annotations

import numpy as np

from liedyn.model.model import Model
from liedyn.simulation.joint_limits.limits import limit_notes, limits_exceeded
from liedyn.simulation.joint_values import coordinates, unwrapped_angle

_DEGREES = 2.0           # angles may be in degrees if one of them exceeds its limit by this factor
_TURN = 360.0            # what an angle in degrees jumps by where it wraps
_JUMP = 60.0             # degrees: a row turns by less; a jump is as near to a turn as that
_FEW = 0.1               # of the jump: what half of all rows stay below where jumps are single
_SWING = 4 * np.pi       # rad: few joints without limits turn to and fro by more, ...
_FAST = 20.0             # rad/s: ... as fast as this, ...
_MOVING = 2 * np.pi      # rad: ... while no angle of the robot moves by less: wheels do beside others that do not, ...
_MOST = 2 * _TURN        # ... and within two turns if they are degrees: motors and propellers turn farther


def unwrapped(model: Model, q: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Configurations (N, nq) without jumps by full turns, and a message. TrajectoryError where limits exclude the other turns."""
    out, names = q, []
    for k, i in enumerate(coordinates(model)):
        if i < 0 or model.v_units[k] != "rad" or _degrees_wrap(q[:, i]):
            continue
        x, jumps = unwrapped_angle(q[:, i], model.v_names[k], model.lower[k], model.upper[k])
        if jumps:
            out = out.copy() if out is q else out
            out[:, i] = x
            names.append(f"{model.v_names[k]} ({jumps} times)")
    return out, [f"angles that jump by 2 pi were unwrapped: {', '.join(names)}"] if names else []


def recorded_limit_notes(model: Model, t: np.ndarray, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> list[str]:
    """Messages about position, velocity and torque limits that the rows exceed, and about angles in degrees."""
    notes = limit_notes(limits_exceeded(model, t, q, v, tau), recorded=True)
    degrees = _in_degrees(model, q, v)
    return notes + ([f"are the angles in degrees? {degrees}; the columns must be in rad"] if degrees else [])


def _in_degrees(model: Model, q: np.ndarray, v: np.ndarray) -> str:
    """Why angles seem to be in degrees; empty if they do not: a 180/pi-th part of all is within their limits, and some are far
    beyond them, jump by 360, or turn to and fro by many turns."""
    worst, text, unlimited = 0.0, "", []
    for k, i in enumerate(coordinates(model)):
        if i < 0 or model.v_units[k] != "rad":
            continue
        if not (model.lower[k] < model.upper[k] and np.isfinite([model.lower[k], model.upper[k]]).all()):
            unlimited.append((k, i))
            continue
        reach = max(abs(model.lower[k]), abs(model.upper[k]))
        largest = float(np.abs(q[:, i]).max())
        if np.radians(largest) > reach:
            return ""
        if largest > max(_DEGREES * reach, worst * reach):
            worst = largest / reach
            text = f"{model.v_names[k]} reaches {largest:.4g} rad, its limit is {reach:.4g} rad"
    return text or _without_limits(model, q, v, unlimited)


def _without_limits(model: Model, q: np.ndarray, v: np.ndarray, places: list[tuple[int, int]]) -> str:
    """The same of angles without limits, at places (k, i) in v and q."""
    for k, i in places:
        if _degrees_wrap(q[:, i]):
            return f"{model.v_names[k]} jumps by {np.abs(np.diff(q[:, i])).max():.4g} rad between two rows"
    if set(model.v_units) != {"rad"} or min(coordinates(model)) < 0:           # wheels of vehicles turn to and fro
        return ""
    moved = np.ptp(q, axis=0)
    if (moved[moved > 0] < _MOVING).any() or np.abs(q).max() > _MOST:
        return ""
    for k, i in places:
        steps = np.diff(q[:, i])
        if min(steps[steps > 0].sum(), -steps[steps < 0].sum()) > _SWING and np.abs(v[:, k]).max() > _FAST:
            return f"{model.v_names[k]} turns to and fro by {np.ptp(q[:, i]):.4g} rad"
    return ""


def _degrees_wrap(x: np.ndarray) -> bool:
    """Whether samples x (N,) jump by about 360, and are continuous elsewhere."""
    steps = np.abs(np.diff(x))
    jumps = np.abs(steps - _TURN) < _JUMP
    return bool(jumps.any() and np.median(steps) < _FEW * _TURN and steps[~jumps].max(initial=0.0) < _JUMP)
