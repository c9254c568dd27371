"""Compliant stops at given states in NumPy: forces, their derivatives, and how fast they act. The law is that of
`kernels.simulation.stops`."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from liedyn.kernels.simulation.stops import NUMBERS


class Pressed(NamedTuple):
    """m stops at N states: depth (N, m) [rad | m], below zero inside the limits; force (N, m) [N m | N], not negative; share
    (N, m), 1 + c d', not negative."""

    depth: np.ndarray
    force: np.ndarray
    share: np.ndarray


def pressed_stops(problem, q, v) -> Pressed:
    """Of states q (N, nq), v (N, nv)."""
    stops = problem.stops
    limit, k, c = stops.numbers.reshape(-1, NUMBERS).T
    depth = stops.side * (q[:, problem.schedule.q_of_v[stops.coordinate]] - limit)
    share = np.maximum(1.0 + c * stops.side * v[:, stops.coordinate], 0.0)
    return Pressed(depth, k * np.maximum(depth, 0.0) * share, share)


def stop_slopes(problem, q, v) -> np.ndarray:
    """(nv, 2 nv) derivative of joint forces of compliant stops by x = [dq; dv]."""
    stops, nv = problem.stops, problem.model.nv
    out, at = np.zeros((nv, 2 * nv)), pressed_stops(problem, q[None], v[None])
    _, stiffness, c = stops.numbers.reshape(-1, NUMBERS).T
    for j in np.flatnonzero(at.force[0] > 0.0):
        k = stops.coordinate[j]
        out[k, k] -= stiffness[j] * at.share[0, j]
        out[k, nv + k] -= stiffness[j] * c[j] * at.depth[0, j]
    return out


def stop_coefficients(problem, q, v, pressed: bool) -> tuple[np.ndarray, np.ndarray]:
    """(nv,) damping and stiffness of each coordinate. pressed: each stop carries the load of its joint at the least."""
    stops, nv = problem.stops, problem.model.nv
    resist, spring = np.zeros(nv), np.zeros(nv)
    force = pressed_stops(problem, q[None], v[None]).force[0]
    _, k, c = stops.numbers.reshape(-1, NUMBERS).T
    if pressed:
        force = np.maximum(force, problem.stop_loads)
    np.maximum.at(resist, stops.coordinate, c * force)
    np.maximum.at(spring, stops.coordinate, np.where(force > 0.0, k, 0.0))
    return resist, spring
