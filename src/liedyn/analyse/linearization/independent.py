"""Independent coordinates of a constrained mechanism at an instant, and the linear system in them.

Small changes that keep to the constraints are dq = Z dq_i, dv = Z dv_i + G dq_i, where i are the independent coordinates and

    A Z = 0, Z_i = 1;    A G = -d(A v)/dq Z, G_i = 0        (v less the motion of driven loops)
"""
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from liedyn.analyse.linearization.linear_system import LinearSystem
from liedyn.dynamics.loops.constrained_derivatives import balance_derivatives
from liedyn.dynamics.loops.rank import RANK, least_solution, null_space
from liedyn.errors import ComputationError, UsageError
from liedyn.simulation.names import listed, named

_NEARLY = 0.5      # of coordinates that move about as much the first in the file is taken


@dataclass(frozen=True, eq=False)
class Chart:
    """index: (f,) the independent coordinates; Z, G: (nv, f)."""

    index: np.ndarray
    Z: np.ndarray
    G: np.ndarray

    def reduced(self, full: LinearSystem) -> LinearSystem:
        """The system of all coordinates in the independent ones; integrals stay."""
        (nv, f), n = self.Z.shape, len(full.states)
        others = np.arange(2 * nv, n)
        P = np.zeros((n, 2 * f + len(others)))
        P[:nv, :f], P[nv:2 * nv, :f], P[nv:2 * nv, f:2 * f], P[2 * nv:, 2 * f:] = self.Z, self.G, self.Z, np.eye(len(others))
        kept = np.concatenate([self.index, nv + self.index, others])
        pick = lambda names: tuple(names[k] for k in kept)      # noqa: E731
        return replace(full, A=(full.A @ P)[kept], B=full.B[kept], C=full.C @ P, states=pick(full.states),
                       state_units=pick(full.state_units), moving=full.moving[kept])


def chart(model, q, v, prescribed, drive=None, wanted=()) -> Chart | None:
    """Of the model at q, v; None where it has no constraints. Independent are prescribed coordinates (nv,), then those `wanted`
    (patterns), then what moves most.

    Raises
    ------
    UsageError
        For a pattern that matches no coordinate, names that depend on each other, or any without constraints.
    ComputationError
        Where nothing can move, or where prescribed coordinates depend on each other.
    """
    if not model.nc:
        if len(wanted):
            raise UsageError("independent coordinates are chosen for robots with constraints; this one has none")
        return None
    nv, m = model.nv, model.nc
    rates = balance_derivatives(model, q, v, np.zeros(nv), np.zeros(m), v, drive=drive, passive=False)
    index = _independent(model, null_space(model, rates.A), np.flatnonzero(prescribed), _wanted(model, wanted))
    others = np.setdiff1d(np.arange(nv), index)
    Z, G = np.zeros((2, nv, len(index)))
    Z[index] = np.eye(len(index))
    A = np.where(np.isin(np.arange(nv), others), rates.A, 0.0)
    Z[others] = least_solution(model, A, -rates.A[:, index])[others]
    G[others] = least_solution(model, A, -rates.dAx_dq @ Z)[others]
    return Chart(index, Z, G)


def _wanted(model, patterns) -> np.ndarray:
    names = model.v_names
    chosen = named(patterns, names, lambda pattern: f"no independent coordinate matches {pattern!r}; the coordinates are "
                                                    f"{listed(names, 12)}")
    return np.array([names.index(name) for name in chosen], dtype=np.int64)


def _independent(model, N, prescribed, wanted) -> np.ndarray:
    """Rows of N (nv, f) that form a basis, in the order of the file."""
    if not N.shape[1]:
        raise ComputationError(f"the mechanism {model.name} cannot move here, its constraints leave no degree of freedom: there "
                               "is nothing to linearize")
    chosen, left = [], N.copy()
    for group in (prescribed, wanted, np.arange(len(N))):
        group = [k for k in group if k not in chosen]
        while group:
            size = np.linalg.norm(left[group], axis=1)
            if not size.max() > RANK:
                break
            k = group.pop(int(np.argmax(size >= _NEARLY * size.max())))
            d = left[k] / np.linalg.norm(left[k])
            left = left - np.outer(left @ d, d)
            chosen.append(k)
    _refuse_dependent(model, [k for k in prescribed if k not in chosen], [k for k in wanted if k not in chosen], N.shape[1])
    return np.sort(np.array(chosen))


def _refuse_dependent(model, prescribed, wanted, freedom: int) -> None:
    how_many = f"the mechanism has {freedom} degree{'s' * (freedom != 1)} of freedom here"
    if prescribed:
        names = ", ".join(model.v_names[k] for k in prescribed)
        raise ComputationError(f"the motion of {names} follows from that of other prescribed coordinates; {how_many} "
                               "(prescribe fewer joints)")
    if wanted:
        names = ", ".join(model.v_names[k] for k in wanted)
        raise UsageError(f"{names} cannot be independent, since the others determine it; {how_many}")
