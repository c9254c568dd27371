"""Smooth motions of any robot, known with all their derivatives, and the trajectory files that a recorder would make of them."""
import numpy as np

from liedyn.analysis.numerical_differentiation import body_velocities
from liedyn.io.trajectory_csv import write_trajectory
from liedyn.model.description import ONE_DOF
from liedyn.simulation.trajectory_columns import coordinate_columns, derivative_kind, motion_columns, trajectory_header


def motion(model, t, highest: int, speed=2.0, seed=0):
    """q (N, nq) and v with its derivatives (N, highest, nv): sines in every coordinate, quaternions made to be of unit norm."""
    rng = np.random.default_rng(seed)
    size, phase = rng.uniform(0.2, 0.5, model.nq), rng.uniform(0, 6, model.nq)
    w = speed * rng.uniform(0.5, 1, model.nq)
    x = np.stack([size * w**k * np.sin(w * t[:, None] + phase + k * np.pi / 2) for k in range(highest + 1)], axis=1)
    for joint in model.joints:
        if joint.kind != ONE_DOF:
            x[:, 0, joint.q.stop - 1] += 2.0
    return unit(model, x[:, 0]), body_velocities(model, x)


def unit(model, q):
    q = q.copy()
    for joint in model.joints:
        if joint.kind != ONE_DOF:
            s = slice(joint.q.stop - 4, joint.q.stop)
            q[:, s] /= np.linalg.norm(q[:, s], axis=1, keepdims=True)
    return q


def noisy(model, q, size: float):
    return unit(model, q + size * np.random.default_rng(1).standard_normal(q.shape))


def record(path, model, t, extra=(), **arrays):
    """Write a file of these arrays (q, v, a, d1a, tau, …) and of more columns (name, unit, array)."""
    write_trajectory(path, trajectory_header(model, folder=path.parent), t, [*motion_columns(model, **arrays), *extra],
                     force=True)
    return path


def table(model, columns, kind: str, orders: int) -> np.ndarray:
    """Return the columns kind, d1kind, … by name: (N, orders, nv)."""
    return np.stack([np.column_stack([columns[name] for name in coordinate_columns(model, derivative_kind(kind, k))])
                     for k in range(orders)], axis=1)
