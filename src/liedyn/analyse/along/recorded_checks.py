"""Checks of a recorded motion: angles that wrap by 2 pi, limits that it exceeds, angles that seem to be in degrees."""
from __future__ import annotations

import numpy as np

from liedyn.model.model import Model
from liedyn.simulation.joint_limits.limits import limit_notes, limits_exceeded
from liedyn.simulation.joint_values import coordinates, unwrapped_angle

_DEGREES = 2.0           # angles may be in degrees if one of them exceeds its limit by this factor


def unwrapped(model: Model, q: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """Configurations (N, nq) without jumps by full turns, and a message. TrajectoryError where limits exclude the other turns."""
    out, names = q, []
    for k, i in enumerate(coordinates(model)):
        if i < 0 or model.v_units[k] != "rad":
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
