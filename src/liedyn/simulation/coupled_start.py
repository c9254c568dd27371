"""Initial states that satisfy couplings and mimic joints, before any loop is closed.

Couplings are linear. A mimic joint follows its driver: the driver keeps its value, and no other joint moves. A driver moves
only where its follower is given or prescribed. The other couplings move their own coordinates as little as possible.
"""
from __future__ import annotations

import numpy as np

from liedyn.dynamics.loops.closing import column_scale
from liedyn.dynamics.loops.constraints import constraint_jacobian, constraint_residual, constraint_velocity
from liedyn.dynamics.manifold import integrate
from liedyn.model.model import Model

_CONTRADICTION = 1e-9       # of what remains of the couplings, relative to the largest coordinate and to one unit: rounding of a
                            # few operations is 1e-15, and a contradiction of this size is left to the closing of loops


def coupled_position(model: Model, q: np.ndarray, kept: tuple[np.ndarray, ...], drive) -> np.ndarray:
    """The configuration (nq,) in which followers follow and couplings hold.

    kept: masks (nv,) of coordinates that must not move. The first with which the couplings can hold is used; q is returned
    where there is none.
    """
    rows = _coupling_rows(model)
    if not rows:
        return q
    C = constraint_jacobian(model, q, drive=drive)[rows]
    step = _step(model, C, constraint_residual(model, q, drive=drive)[rows], kept, np.abs(q).max(initial=1.0))
    return q if step is None else integrate(model, q, step)


def coupled_velocity(model: Model, q: np.ndarray, v: np.ndarray, kept: tuple[np.ndarray, ...], drive) -> np.ndarray:
    """As `coupled_position`, the velocity (nv,)."""
    rows = _coupling_rows(model)
    if not rows:
        return v
    C = constraint_jacobian(model, q, drive=drive)[rows]
    step = _step(model, C, constraint_velocity(model, q, v, drive=drive)[rows], kept, np.abs(v).max(initial=1.0))
    return v if step is None else v + step


def _coupling_rows(model: Model) -> list[int]:
    return [one.rows.start for one in model.constraints if one.type == "coupling"]


def _followers(model: Model) -> list[int]:
    """The coordinate (index in v) that follows by each coupling; -1 where none is distinguished."""
    mimics = {joint.name for joint in model.description.joints if joint.mimic}
    first = {joint.name: joint.v.start for joint in model.joints}
    return [first[one.name] if one.name in mimics else -1 for one in model.constraints if one.type == "coupling"]


def _step(model: Model, C, residual, kept: tuple[np.ndarray, ...], size: float) -> np.ndarray | None:
    """The step x (nv,) with C x = -residual, zero where the residual is zero; None where the kept coordinates exclude it."""
    if not residual.any():
        return None
    followers, unit = np.array(_followers(model)), column_scale(model)
    for mask in kept:
        follows = np.array([k >= 0 and not mask[k] for k in followers])
        F, others = followers[follows], np.setdiff1d(np.arange(model.nv), followers[follows])
        # followers by their drivers: x_F = -S x_others - s
        S, s = (np.linalg.solve(C[np.ix_(follows, F)], y) for y in (C[np.ix_(follows, others)], residual[follows]))
        A = C[np.ix_(~follows, others)] - C[np.ix_(~follows, F)] @ S
        b = C[np.ix_(~follows, F)] @ s - residual[~follows]
        free, x = ~mask[others], np.zeros(len(others))
        x[free] = unit[others][free] * np.linalg.lstsq(A[:, free] * unit[others][free], b, rcond=None)[0]
        if np.abs(A @ x - b).max(initial=0.0) <= _CONTRADICTION * size:
            step = np.zeros(model.nv)
            step[others], step[F] = x, -S @ x - s
            return step
    return None
