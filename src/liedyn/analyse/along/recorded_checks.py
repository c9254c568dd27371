"""Checks of a recorded motion: angles that wrap by 2 pi, limits that it exceeds, angles that seem to be in degrees."""
from __future__ import annotations

import numpy as np

from liedyn.errors import TrajectoryError
from liedyn.model.model import Model
from liedyn.simulation.joint_limits.limits import limit_notes, limits_exceeded
from liedyn.simulation.joint_values import coordinates

_WRAPPED = 0.5           # a change between rows that is within this many radians of a full turn is a wrap of the angle
_DEGREES = 2.0           # angles may be in degrees if one of them exceeds its limit by this factor


def unwrapped(model: Model, q: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Configurations (N, nq) without jumps by full turns, and a message. TrajectoryError where limits exclude the other turns."""
    turn, out, names = 2.0 * np.pi, q, []
    for k, i in enumerate(coordinates(model)):
        if i < 0 or model.v_units[k] != "rad":
            continue
        steps = np.diff(q[:, i])
        turns = np.round(steps / turn)
        turns[np.abs(steps - turn * turns) > _WRAPPED] = 0.0
        if not turns.any():
            continue
        x = q[:, i] - turn * np.r_[0.0, np.cumsum(turns)]
        row = int(np.flatnonzero(turns)[0]) + 1
        if model.lower[k] < model.upper[k] and (x.min() < model.lower[k] or x.max() > model.upper[k]):
            name = model.v_names[k]
            raise TrajectoryError(f"{name} jumps by a full turn at row {row + 1}, and its limits exclude further turns",
                                  found=f"{q[row - 1, i]:.6g} rad, then {q[row, i]:.6g} rad",
                                  expected=f"a continuous angle within [{model.lower[k]:.4g}, {model.upper[k]:.4g}] rad",
                                  hint="velocities cannot be derived from an angle that jumps; give v and a as columns")
        out = out.copy() if out is q else out
        out[:, i] = x
        names.append(f"{model.v_names[k]} ({np.count_nonzero(turns)} times)")
    return out, [f"angles that jump by 2 pi were unwrapped: {', '.join(names)}"] if names else []


def recorded_limit_notes(model: Model, t: np.ndarray, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> list[str]:
    """Messages about position, velocity and torque limits that the rows exceed, and about angles in degrees."""
    notes = limit_notes(limits_exceeded(model, t, q, v, tau), recorded=True)
    degrees = _in_degrees(model, q)
    return notes + ([f"are the angles in degrees? {degrees}; the columns must be in rad"] if degrees else [])


def _in_degrees(model: Model, q: np.ndarray) -> str:
    """Why angles seem to be in degrees; empty if they do not: some are far beyond their limits, and a 180/pi-th part of all is
    within them."""
    worst, text = 0.0, ""
    for k, i in enumerate(coordinates(model)):
        if i < 0 or model.v_units[k] != "rad":
            continue
        if not (model.lower[k] < model.upper[k] and np.isfinite([model.lower[k], model.upper[k]]).all()):
            continue
        reach = max(abs(model.lower[k]), abs(model.upper[k]))
        largest = float(np.abs(q[:, i]).max())
        if np.radians(largest) > reach:
            return ""
        if largest > max(_DEGREES * reach, worst * reach):
            worst = largest / reach
            text = f"{model.v_names[k]} reaches {largest:.4g} rad, its limit is {reach:.4g} rad"
    return text
