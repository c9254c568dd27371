"""Does each joint have an inertia to act on? Decided on the articulated inertias (K1 Table 3) of random configurations,
in plain NumPy: once a model."""
from __future__ import annotations

import numpy as np

from liedyn.joints.kinds import FREE, NV, SCREW
from liedyn.model.spatial import adjoint, inverse, rigid_matrix

_VANISHING = 1e-12      # of the trace of the articulated inertia: rounding leaves 1e-16 to 1e-14
_TRIES = 3              # a joint that is singular in one configuration only is a matter of the run, not of the model


def joints_without_inertia(parent, kind, S, T0, I, armature) -> list[int]:
    """Bodies whose joint's articulated inertia vanishes in every configuration tried, outermost first."""
    rng = np.random.default_rng(7)
    bare: set[int] | None = None
    for _ in range(_TRIES):
        found = _vanishing(parent, kind, S, T0, I, armature, rng)
        bare = found if bare is None else bare & found
        if not bare:
            return []
    return sorted(bare, reverse=True)


def _vanishing(parent, kind, S, T0, I, armature, rng) -> set[int]:
    n = len(parent)
    AI = [rigid_matrix(x) for x in I]
    end = np.cumsum([0] + [NV[k] for k in kind[1:]])
    found = set()
    for i in range(n - 1, 0, -1):
        columns, motion = _joint(kind[i], S[i], rng)
        U = AI[i] @ columns
        D = columns.T @ U + np.diag(armature[end[i - 1]:end[i]])
        scale = _scale(AI[i], columns)
        if np.linalg.eigvalsh(D)[0] <= _VANISHING * scale:
            found.add(i)
            D = D + np.eye(len(D)) * max(scale, 1e-300)          # carry on, to find others
        X = adjoint(inverse(T0[i] @ motion))
        AI[parent[i]] = AI[parent[i]] + X.T @ (AI[i] - U @ np.linalg.solve(D, U.T)) @ X
    return found


def _scale(AI: np.ndarray, columns: np.ndarray) -> float:
    turning, sliding = np.abs(columns[:3]).max() ** 2, np.abs(columns[3:]).max() ** 2
    return turning * np.trace(AI[:3, :3]) + sliding * np.trace(AI[3:, 3:])


def _joint(kind: int, S, rng) -> tuple[np.ndarray, np.ndarray]:
    """S (6, k) in the body frame and a random motion (4, 4)."""
    T = np.eye(4)
    if kind == SCREW:
        x = rng.uniform(-2, 2)
        c, s = np.cos(S[0] * x), np.sin(S[0] * x)
        T[:2, :2], T[2, 3] = [[c, -s], [s, c]], S[1] * x
        return np.array([[0, 0, S[0], 0, 0, S[1]]]).T, T
    T[:3, :3] = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    T[:3, :3] *= np.linalg.det(T[:3, :3])
    if kind == FREE:
        T[:3, 3] = rng.standard_normal(3)
    return np.eye(6)[:, :NV[kind]], T


