"""Does each joint have an inertia to act on? Decided on the articulated inertias (K1 Table 3) of random configurations,
in plain NumPy: once a model."""
from __future__ import annotations

import numpy as np

from liedyn.joints.kinds import FREE, NV, SCREW, SINGULAR
from liedyn.model.spatial import adjoint, exp_screw, inverse, rigid_matrix, unit_screws

# Smallest eigenvalue of D = S^T AI S + armature, relative to the inertia that it is made of: the moments and masses of all bodies
# that the joint carries, and its armature. Each coordinate is divided by its own, so that moments are not compared with masses.
# Rounding leaves 1e-16 to 1e-14; bodies in use leave more than 1e-9.
_VANISHING = 1e-12
_TRIES = 3              # a joint that is singular in one configuration only is a matter of the run, not of the model


def joints_without_inertia(parent, kind, S, T0, I, armature) -> tuple[list[int], np.ndarray]:
    """Bodies whose joint's articulated inertia vanishes in every configuration tried, outermost first; and for each velocity
    coordinate the pivot below which it is rounding."""
    rng = np.random.default_rng(7)
    bare: set[int] | None = None
    floor = np.zeros(len(armature))
    for _ in range(_TRIES):
        found, scale = _vanishing(parent, kind, S, T0, I, armature, rng)
        bare = found if bare is None else bare & found
        floor = np.maximum(floor, SINGULAR * scale)
        if not bare:
            break
    return sorted(bare, reverse=True), floor


def _vanishing(parent, kind, S, T0, I, armature, rng) -> tuple[set[int], np.ndarray]:
    n = len(parent)
    AI = [rigid_matrix(x) for x in I]
    size = np.zeros((n, 2))       # turning and sliding: what the articulated inertia is made of, before joints took their part
    end = np.cumsum([0] + [NV[k] for k in kind[1:]])
    found, scales = set(), np.empty(len(armature))
    for i in range(n - 1, 0, -1):
        columns, motion = _joint(kind[i], S[i], rng)
        mine = slice(end[i - 1], end[i])
        if np.any(I[i]):
            size[i] = np.trace(AI[i][:3, :3]), np.trace(AI[i][3:, 3:])
        U = AI[i] @ columns
        rotor = np.diag(armature[mine])
        D = columns.T @ U + rotor
        scales[mine] = (columns[:3]**2).sum(0) * size[i, 0] + (columns[3:]**2).sum(0) * size[i, 1]
        whole = scales[mine] + armature[mine]
        unit = np.sqrt(np.where(whole > 0.0, whole, 1.0))
        if np.linalg.eigvalsh(D / np.outer(unit, unit))[0] <= _VANISHING:
            found.add(i)
            D = D + np.diag(unit**2)                                          # continue, to find others
        T = T0[i] @ motion
        X = adjoint(inverse(T))
        AI[parent[i]] = AI[parent[i]] + X.T @ _without_joint(AI[i], columns, U, D, rotor) @ X
        size[parent[i]] += size[i, 0] + size[i, 1] * (T[:3, 3] @ T[:3, 3]), size[i, 1]
    return found, scales


def _without_joint(AI, S, U, D, rotor) -> np.ndarray:
    """Pi = AI - U D^-1 U^T with U = AI S: the inertia that the joint hands on (K1 Table 3).

    Computed as L^T AI L + K J K^T with K = U D^-1, L = 1 - S K^T and the armature J: a sum of squares is symmetric and positive
    semidefinite, and S^T Pi S vanishes to the square of the rounding. With the difference, rounding left in that block grows from
    joint to joint, until after some 90 ball joints it exceeds the inertia."""
    K = np.linalg.solve(D, U.T).T
    L = np.eye(6) - S @ K.T
    Pi = L.T @ AI @ L + K @ rotor @ K.T
    return 0.5 * (Pi + Pi.T)


def _joint(kind: int, S, rng) -> tuple[np.ndarray, np.ndarray]:
    """S (6, k) in the body frame and a random motion (4, 4)."""
    columns, T = unit_screws(kind, S), np.eye(4)
    if kind == SCREW:
        return columns, exp_screw(columns[:, 0], rng.uniform(-2, 2))
    T[:3, :3] = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    T[:3, :3] *= np.linalg.det(T[:3, :3])
    if kind == FREE:
        T[:3, 3] = rng.standard_normal(3)
    return columns, T
