"""Regrouped inertias: the part of a body's inertia that its joint cannot distinguish from the parent's is added to the parent.

What a joint moves along itself, as a mass on its axis of rotation, is a part of the parent to the dynamics of coordinates.
Moved there it leaves zeros: a revolute joint keeps 7 of 10 numbers, a prismatic one 4 (Gautier and Khalil 1990; Khalil and
Kleinfinger 1987). Joint forces, accelerations and all derivatives are those of the robot; wrenches at joints, momenta and
energies are not.
"""
from __future__ import annotations

import numpy as np

from liedyn.model.description import BALL, ONE_DOF
from liedyn.model.spatial import transform_inertia

_ROUNDING = 1e-15         # of the largest moment of a body: smaller ones are what the subtraction leaves


def reduced_inertias(parent, kind, S, T0, I) -> np.ndarray:
    """(n, 10) from the inertias I (n, 10) of bodies, in which they are linear; the other arguments as in `joints.joint_model`,
    with T0 (n, 4, 4), S (n, 2)."""
    found = np.array(I, dtype=float)
    for i in range(len(found) - 1, 0, -1):
        moved = _regrouped_inertia(kind[i], S[i], found[i])
        if moved.any():
            found[i] -= moved
            found[parent[i]] += transform_inertia(T0[i], moved)
    for moments in (found[:, 1:4], found[:, 4:]):
        moments[np.abs(moments) < _ROUNDING * np.abs(moments).max(axis=1, keepdims=True)] = 0.0
    return found


def _regrouped_inertia(kind: int, S, I: np.ndarray) -> np.ndarray:
    """The part without momentum as the joint moves, which looks the same from the parent wherever the joint stands."""
    out, (m, _, _, hz, *A) = np.zeros(10), I
    turns, slides = kind == ONE_DOF and S[0] != 0.0, kind == ONE_DOF and S[1] != 0.0
    if kind == BALL or (turns and not slides):
        out[0] = m
    if turns:
        out[4] = out[7] = A[3]
    if turns and not slides:
        out[3] = hz
    if slides and not turns:
        out[4:] = A
    return out
