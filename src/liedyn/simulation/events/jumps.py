"""Jumps of the velocity: what an impulse along given rows does to a robot.

Rows G of a velocity v take given values b at once. Forces that are not along them are finite and do nothing in no time, so that

    M (v+ - v-) = G^T p,      G v+ = b:      p = (G M^-1 G^T)^-1 (b - G v-)

(Müller, on mechanisms of variable topology). Among all v+ with G v+ = b it is the nearest to v- in the metric of M.
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from liedyn.dynamics.kinematics import jacobian, link_poses
from liedyn.dynamics.loops.rank import column_scale
from liedyn.dynamics.mass import mass_matrix
from liedyn.errors import ComputationError
from liedyn.kernels.loops.constraint_solver import DEPENDENT

_ROUNDED = 1e-12             # of what an entry of a row is made of: it is rounding, of 1e-16 and a chain of products
_CONTRADICTS = 1e-8          # relative to what is asked for: what rows may miss
_NOTHING = 1e-12             # of the velocity, or of 1 rad/s: what rounding makes rows miss (a turn in 2e5 years is rest)
REST_AFTER = 3               # impacts of a joint that come at once: it rests
_AT_ONCE = 5e-13             # of the duration of the run: 36 times what can be told from nothing, see `zero_crossings.resolvable`
_ROUNDING = 16               # spacings of the position: the way there and back is less


@dataclass(frozen=True, eq=False)
class Jump:
    """v (…, nv) after; impulse (…, nv) G^T p [N m s | N s]; work (…, k) that the impulse of each row does [J]: p (G v+ + G v-) /
    2; contradicted (…): rows contradict each other, or the constraints of the robot, so that v is not what is asked for."""

    v: np.ndarray
    impulse: np.ndarray
    work: np.ndarray
    contradicted: np.ndarray


def jump(model, q, v, rows, b) -> Jump:
    """Velocity after rows (k, nv) of it have become b (k,). Raises ComputationError where rows contradict each other."""
    found = jumps(model, q, v, np.reshape(rows, (-1, len(v))), np.asarray(b, dtype=float))
    if found.contradicted:
        raise ComputationError("the velocities that are asked for contradict each other, or the constraints of the robot")
    return found


def jumps(model, q, v, rows, b) -> Jump:
    """The same of states (…, nq), (…, nv), with rows (…, k, nv) and b (…, k) of each."""
    M = mass_matrix(model.open_tree(), q)
    size = sizes_in(np.linalg.solve(M, np.swapaxes(rows, -1, -2)), rows)
    G, b = rows / size[..., None], b / size
    along = np.linalg.solve(M, np.swapaxes(G, -1, -2))         # M^-1 G^T
    response = G @ along
    inverse = np.linalg.pinv(response, rcond=DEPENDENT, hermitian=True)
    miss = b - _times(G, v)
    p = _times(inverse, miss)
    p += _times(inverse, miss - _times(response, p))           # once more: it takes rounding away
    impulse = _times(np.swapaxes(G, -1, -2), p)
    after = v + _times(along, p)
    scale = np.maximum(_largest(miss), _largest(b))
    missed = _largest(_times(G, after) - b)
    energy = np.sqrt(np.einsum("...i,...ij,...j->...", v, M, v))      # as G v is measured: G M^-1 G^T has ones on its diagonal
    slow = np.sqrt(np.abs(np.diagonal(M, axis1=-2, axis2=-1) * column_scale(model)**2).max(axis=-1))
    contradicted = missed > _CONTRADICTS * scale + _NOTHING * np.maximum(energy, slow)
    return Jump(after, impulse, p * _times(G, after + v) / 2, contradicted)


def point_rows(model, q, link: str, point, normal) -> np.ndarray:
    """(…, nv): the velocity of a point of a link along the normal, at configurations (…, nq) of an open tree; zero where a
    coordinate moves the point across the normal but for rounding."""
    J = jacobian(model, q, link, frame="local_world_aligned")
    T = link_poses(model, q)[..., model.link_names.index(link), :, :]
    x, n = (T[..., :3, :3] @ np.asarray(point, dtype=float)), np.asarray(normal, dtype=float)
    wrench = np.concatenate([np.cross(x, n), np.broadcast_to(n, x.shape)], axis=-1)[..., None, :]
    rows, sizes = (wrench @ J)[..., 0, :], (np.abs(wrench) @ np.abs(J))[..., 0, :]
    place = np.linalg.norm(T[..., :3, 3], axis=-1) + np.linalg.norm(x, axis=-1)           # lever arms are differences of these
    sizes = sizes + np.linalg.norm(n) * place[..., None] * np.linalg.norm(J[..., :3, :], axis=-2)
    return np.where(np.abs(rows) <= _ROUNDED * sizes, 0.0, rows)


def sizes_in(along, rows):
    """(…, k) by which rows are divided so that G M^-1 G^T has ones on its diagonal; along: M^-1 rows^T. 1 for a row of zeros.

    Rows are not rounding throughout: those of constraints are then zero (`rank.without_rounding`)."""
    square = np.einsum("...ki,...ik->...k", rows, along)
    return np.sqrt(np.where(square > 0.0, square, 1.0))


def _times(A, x):
    return (A @ x[..., None])[..., 0]


def _largest(x):
    return np.abs(x).max(axis=-1, initial=0.0)


def comes_at_once(since, speed, position, duration):
    """Whether an impact follows the one before, `since` seconds ago, within what can be told apart: in the time of a run of this
    duration, or in position."""
    with np.errstate(invalid="ignore"):                        # nothing happened before: since is infinite
        near = np.abs(speed) * since <= _ROUNDING * np.spacing(np.abs(position))
    return (since <= _AT_ONCE * duration) | (near & (since < np.inf))
