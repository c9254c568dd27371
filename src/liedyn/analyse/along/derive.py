"""Velocities and accelerations of sampled motions, on the manifold.

About each sample, the seven nearest samples are written in exponential coordinates, q_j = q_k (+) x_j, and a polynomial
through them is differentiated: at its own origin the chart's rate is the velocity and its second rate the acceleration
(the terms of dexp vanish there), for every kind of joint. Order 6 for v, 5 for a, on any grid of times.
"""
from __future__ import annotations

import numpy as np

from liedyn.dynamics.manifold import difference
from liedyn.errors import TrajectoryError

POINTS = 7


def derivatives(model, t, q, points: int = POINTS) -> tuple[np.ndarray, np.ndarray]:
    """v, a (N, nv) of samples q (N, nq) at times t (N,)."""
    near, first, second = _stencils(t, points)
    v, a = np.zeros((len(t), model.nv)), np.zeros((len(t), model.nv))
    for j in range(near.shape[1]):
        x = difference(model, q, q[near[:, j]])
        v += first[:, j:j + 1] * x
        a += second[:, j:j + 1] * x
    return v, a


def rates(t, v, points: int = POINTS) -> np.ndarray:
    """Time derivative (N, n) of samples v (N, n)."""
    near, first, _ = _stencils(t, points)
    return np.einsum("kj,kjn->kn", first, v[near] - v[:, None])


def other_points(rows: int) -> int:
    """Samples to take in order to see what the usual number of them is off: two more, or two fewer where there are no more."""
    return POINTS + 2 if rows >= POINTS + 2 else max(3, min(POINTS, rows) - 2)


def _stencils(t, points: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each sample: its neighbours (N, p), and the weights (N, p) of the first and second derivative."""
    n = len(t)
    if n < 3:
        raise TrajectoryError(f"{n} row(s) are not enough to compute velocities and accelerations; at least 3 are needed")
    p = min(points, n)
    start = np.clip(np.arange(n) - p // 2, 0, n - p)
    near = start[:, None] + np.arange(p)
    s = t[near] - t[:, None]
    scale = np.abs(s).max(axis=1)
    powers = (s / scale[:, None])[:, None, :] ** np.arange(p)[None, :, None]       # row r: s^r
    right = np.zeros((n, p, 2))
    right[:, 1, 0], right[:, 2, 1] = 1.0, 2.0
    weights = np.linalg.solve(powers, right)
    return near, weights[..., 0] / scale[:, None], weights[..., 1] / scale[:, None] ** 2
