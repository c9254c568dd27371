"""Constraints A(q) v = 0 that a user gives as a function, beside those of the model.

The constrained motion depends linearly on the joint forces: forces P^T mu along the rows P of the user's A move it by R mu,
and P R mu = -(P a + gamma) holds them. R comes from one more solution a row; a second round takes off what rounding left."""
from __future__ import annotations

import numpy as np

from liedyn.dynamics.manifold import integrate
from liedyn.dynamics.scales import scales_of
from liedyn.errors import ComputationError, ShapeError
from liedyn.kernels.loops.constraint_solver import DEPENDENT

_STEP = 2e-3          # rad or characteristic lengths, of the differences that give dA/dt v: their error is about its sixth power
_MET = 1e-5           # of what a row makes of the largest acceleration, or of a characteristic one: what rows may miss


def rows_and_bias(pfaffian, model, q, v) -> tuple[np.ndarray, np.ndarray]:
    """P (N, k, nv) and gamma = dP/dt v (N, k) at states (N, nq), (N, nv)."""
    P = _rows(pfaffian, model, q)
    speed = np.maximum(np.abs(v / scales_of(model).of_all(model.v_units)).max(axis=1, initial=0.0), 1e-300)[:, None]
    along = v / speed

    def slope(h):
        ends = [_rows(pfaffian, model, integrate(model, q, s * h * along)) for s in (1.0, -1.0, 2.0, -2.0)]
        return (8.0 * (ends[0] - ends[1]) - (ends[2] - ends[3])) / (12.0 * h)

    rate = (16.0 * slope(_STEP / 2) - slope(_STEP)) / 15.0
    return P, np.einsum("nkj,nj->nk", rate, v) * speed


def _rows(pfaffian, model, q) -> np.ndarray:
    P = np.asarray(pfaffian(q), dtype=float)
    if P.ndim == 2:
        P = P[None]
    if P.ndim != 3 or P.shape[0] not in (1, len(q)) or P.shape[2] != model.nv:
        raise ShapeError(f"pfaffian gives A(q) of shape {P.shape} for q of shape {q.shape}; expected (N, k, {model.nv})")
    if not np.isfinite(P).all():
        raise ComputationError("pfaffian gives an A(q) that is not finite")
    return np.broadcast_to(P, (len(q), *P.shape[1:]))


def hold(model, P, gamma, motion, tau, M):
    """Joint forces (N, nv) that with `tau` make motion(tau) (N, nv) obey P a + gamma = 0, the multipliers mu (N, k), and which
    rows do not follow from those before them (N, k).

    Where rows depend on each other or on the model's constraints: the least mu. M (N, nv, nv) of the open tree: by P M^-1 P^T
    what the constraints leave of a row is judged."""
    if not P.shape[1]:
        return tau, gamma, np.empty(gamma.shape, dtype=bool)
    units, free = scales_of(model), motion(tau)
    reach, force = units.of_all(model.v_units), units.of_forces(model.v_units)
    along, most = np.abs(P / force).max(axis=2), np.abs(tau / force).max(axis=1, initial=1.0)[:, None]
    size = most / np.where(along > 0.0, along, 1.0)                       # of a multiplier: its forces are as large as the others
    R = np.stack([(motion(tau + size[:, [j]] * P[:, j]) - free) / size[:, [j]] for j in range(P.shape[1])], axis=2)
    G = P @ R                                                             # P M^-1 P^T within the model's constraints
    open_ = np.sqrt(np.maximum(np.einsum("nkj,njk->nk", P, np.linalg.solve(M, np.swapaxes(P, 1, 2))), 0.0))
    open_ = np.where(open_ > 0.0, open_, 1.0)
    s, V = np.linalg.eigh(0.5 * (G + np.swapaxes(G, 1, 2)) / (open_[:, :, None] * open_[:, None]))
    kept = s > DEPENDENT
    gain = V @ (np.where(kept, 1.0 / np.where(kept, s, 1.0), 0.0)[..., None] * np.swapaxes(V, 1, 2))
    gain, mu = gain / (open_[:, :, None] * open_[:, None]), np.zeros(gamma.shape)
    for _ in range(3):
        a = motion(tau + np.einsum("nkj,nk->nj", P, mu))
        off = np.einsum("nkj,nj->nk", P, a) + gamma
        mu = mu - np.einsum("nkl,nl->nk", gain, off)
    fastest = np.abs(a / reach).max(axis=1, initial=units.time**-2)[:, None]
    bad = np.abs(off) > _MET * (np.abs(P) @ reach) * fastest
    if bad.any():
        k, r = np.argwhere(bad)[0]
        raise ComputationError(f"row {r} of the pfaffian constraint cannot be satisfied in state {k}: its residual is "
                               f"{abs(off[k, r]):.3g} "
                               "(it contradicts the other constraints or the prescribed motion)")
    G = G / (open_[:, :, None] * open_[:, None])
    ranks = np.stack([(np.linalg.eigvalsh(G[:, :j, :j]) > DEPENDENT).sum(axis=1) for j in range(G.shape[1] + 1)], axis=1)
    return tau + np.einsum("nkj,nk->nj", P, mu), mu, np.diff(ranks, axis=1) > 0
