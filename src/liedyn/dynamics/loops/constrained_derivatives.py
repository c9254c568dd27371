"""Constrained forward and hybrid dynamics differentiated by q, v and the inputs."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from liedyn.dynamics.calling.annotations import ArrayLike, OnError, Wrenches
from liedyn.dynamics.calling.calls import as_array, as_mask, batched, run, where_read, wrenches
from liedyn.dynamics.calling.each_state import each_state
from liedyn.dynamics.loops.constrained import constrained_forward_dynamics, constrained_hybrid_dynamics
from liedyn.dynamics.loops.constraints import constraint_jacobian, drive_array, refuse_constrained, require_constraints
from liedyn.kernels.loops.constrained_derivatives import (
    constrained_derivatives,
    derivatives_memory,
)
from liedyn.model.model import Model


class ConstrainedForwardDerivatives(NamedTuple):
    """Of a and lambda of constrained forward dynamics; [i, k] by coordinate k.

    da_dq         (..., nv, nv) tangent derivative by q [rad/s^2 or m/s^2, by rad or m]
    da_dv         by v
    da_dtau       by tau: of rank nv - rank A
    dlambda_dq    (..., m, nv) [N m or N, by rad or m]
    dlambda_dv, dlambda_dtau
    """

    da_dq: np.ndarray
    da_dv: np.ndarray
    da_dtau: np.ndarray
    dlambda_dq: np.ndarray
    dlambda_dv: np.ndarray
    dlambda_dtau: np.ndarray

    def by_wrench(self, J) -> tuple[np.ndarray, np.ndarray]:
        """da/df_ext (..., nv, 6) and dlambda/df_ext (..., m, 6) of a link, from its local Jacobian J (..., 6, nv)."""
        Jt = np.asarray(J).swapaxes(-1, -2)
        return self.da_dtau @ Jt, self.dlambda_dtau @ Jt


class ConstrainedHybridDerivatives(NamedTuple):
    """Of what constrained hybrid dynamics gives, y[k] = tau[k] where prescribed[k], else a[k], and of lambda, by q, v and what
    it is given, u[k] = a[k] where prescribed[k], else tau[k]; [i, k] by coordinate k.

    dy_dq, dy_dv, dy_du                   (..., nv, nv)
    dlambda_dq, dlambda_dv, dlambda_du    (..., m, nv)
    prescribed                            (nv,) the mask
    """

    dy_dq: np.ndarray
    dy_dv: np.ndarray
    dy_du: np.ndarray
    dlambda_dq: np.ndarray
    dlambda_dv: np.ndarray
    dlambda_du: np.ndarray
    prescribed: np.ndarray

    def split(self):
        """`SplitDerivatives`: a and tau by q, v and u, with the rows of the inputs filled in."""
        from liedyn.dynamics.derivatives.first_derivatives import HybridDerivatives

        return HybridDerivatives(self.dy_dq, self.dy_dv, self.dy_du, self.prescribed).split()


class BalanceDerivatives(NamedTuple):
    """Rates of the equations of motion ``R1 = M a + b - tau_passive - J^T f_ext - A^T lambda``, ``R2 = A a + gamma`` and of
    ``A x - the drive's velocity``, while a, lambda and x stay; [i, k] by coordinate k.

    dR1_dq, dR1_dv   (..., nv, nv)
    M                by a: the mass matrix, armature included
    dR2_dq, dR2_dv   (..., m, nv)
    A                by a
    dAx_dq           (..., m, nv)
    """

    dR1_dq: np.ndarray
    dR1_dv: np.ndarray
    M: np.ndarray
    dR2_dq: np.ndarray
    dR2_dv: np.ndarray
    A: np.ndarray
    dAx_dq: np.ndarray


def constrained_forward_derivatives(model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, f_ext: Wrenches | None = None,
                                    passive: bool = True, drive: Mapping[str, Any] | None = None,
                                    on_error: OnError = "raise") -> ConstrainedForwardDerivatives:
    """Derivatives of `constrained_forward_dynamics` by q, v and tau.

    Parameters
    ----------
    model, q, v, tau, f_ext, passive, drive
        As in `constrained_forward_dynamics`. f_ext stays constant in its link's frame, drives keep their motion.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    ConstrainedForwardDerivatives
        By q: d/de at 0 of a(q (+) e d), with (+) as in `integrate`; v and tau keep their components. q and v need not obey the
        constraints: the formulas are differentiated as they stand.

    Raises
    ------
    ModelError, ShapeError, ConfigurationError, ComputationError

    Notes
    -----
    ``M da - A^T dlambda = -dR1``, ``A da = -dR2`` with the rates of both equations at fixed a, lambda, exact by dual numbers.

    Where rows of A depend on each other, derivatives mean the directions only along which the mechanism can move: dq in the null
    space of A, dv with ``A dv + d(A v) = 0``. There da is unique, and dlambda that of the multipliers of least norm.
    """
    if on_error != "raise":
        return each_state(constrained_forward_derivatives, locals())
    motion = constrained_forward_dynamics(model, q, v, tau, f_ext=f_ext, passive=passive, drive=drive)
    none = np.zeros(model.nv, dtype=bool)
    return ConstrainedForwardDerivatives(*_solved(model, q, v, motion, none, f_ext, passive, drive))


def constrained_hybrid_derivatives(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike, prescribed: ArrayLike,
                                   *, f_ext: Wrenches | None = None, passive: bool = True, drive: Mapping[str, Any] | None = None,
                                   on_error: OnError = "raise") -> ConstrainedHybridDerivatives:
    """Derivatives of `constrained_hybrid_dynamics` by q, v and the inputs: accelerations where prescribed, else forces.

    Parameters as there; conventions and what holds for dependent rows as in `constrained_forward_derivatives`, with A_v, the
    columns of A that are not prescribed, in place of A: where the rows of A_v depend on each other, derivatives mean
    directions that do not make the prescribed accelerations contradict the constraints.

    For on_error see `inverse_dynamics`.

    Raises
    ------
    ModelError, ShapeError, ConfigurationError, ComputationError
    """
    if on_error != "raise":
        return each_state(constrained_hybrid_derivatives, locals())
    prescribed = as_mask(prescribed, model.nv)
    motion = constrained_hybrid_dynamics(model, q, v, a, tau, prescribed, f_ext=f_ext, passive=passive, drive=drive)
    return ConstrainedHybridDerivatives(*_solved(model, q, v, motion, prescribed, f_ext, passive, drive), prescribed.copy())


def balance_derivatives(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, multipliers: ArrayLike,
                        x: ArrayLike | None = None, *, f_ext: Wrenches | None = None, passive: bool = True,
                        drive: Mapping[str, Any] | None = None, on_error: OnError = "raise") -> BalanceDerivatives:
    """Rates of the equations of constrained motion at a (..., nv), multipliers (..., m), x (..., nv; default: zero) as given.

    For on_error see `inverse_dynamics`.
    """
    if on_error != "raise":
        return each_state(balance_derivatives, locals())
    nv, m = model.nv, model.nc
    x = np.zeros(nv) if x is None else x
    lead, given = _given(model, q, v, a, multipliers, f_ext, drive, [("x", as_array(x, "x", (nv,)), 1)])
    out = _run(model, given, np.zeros(nv, dtype=bool), np.ones((len(given["q"]), m)), passive, nv + 2 * m)
    R = out.reshape(*lead, nv + 2 * m, 3, nv)
    return BalanceDerivatives(*(R[..., :nv, k, :] for k in range(3)), *(R[..., nv:nv + m, k, :] for k in range(3)),
                              R[..., nv + m:, 0, :])


def _solved(model, q, v, motion, prescribed, f_ext, passive, drive):
    nv, m = model.nv, model.nc
    lead, given = _given(model, q, v, motion.a, motion.multipliers, f_ext, drive)
    keep = motion.independent.reshape(-1, m).astype(float)
    R = _run(model, given, prescribed, keep, passive, nv + m)
    if not keep.all():
        A = np.broadcast_to(constraint_jacobian(model, q, drive=drive), (*lead, m, nv)).reshape(-1, m, nv)
        _turn_null_space(model, given, A, prescribed, keep, passive, R)
    R = R.reshape(*lead, nv + m, 3, nv)
    return (*(R[..., :nv, k, :] for k in range(3)), *(R[..., nv:, k, :] for k in range(3)))


def _turn_null_space(model, given, A, prescribed, keep, passive, R) -> None:
    """Adds to dlambda/dq how the least lambda = A_v mu follows the null space N of A_v^T: N^T dlambda = N^T dA_v mu."""
    nv, m = model.nv, model.nc
    inverse, null = pseudo_inverse(np.where(prescribed, 0.0, A), keep.sum(axis=1).astype(int))
    x = np.einsum("nkr,nr->nk", inverse, given["multipliers"])
    both = [_run(model, {**given, "x": y}, prescribed, keep, passive, nv + 2 * m)[:, nv + m:, :nv] for y in (x, 0.0 * x)]
    dAx = both[0] - both[1]                           # without the drive's velocity
    R[:, nv:, :nv] += null @ (np.swapaxes(null, -1, -2) @ dAx)


def pseudo_inverse(A, rank) -> tuple[np.ndarray, np.ndarray]:
    """Of A (N, m, n) of rank (N,): its pseudo-inverse, and (N, m, m) a basis of the null space of A^T among columns of zeros."""
    U, s, Vt = np.linalg.svd(A)
    k = s.shape[-1]
    kept = np.arange(k) < rank[:, None]
    gain = np.where(kept, 1.0 / np.where(kept, s, 1.0), 0.0)
    inverse = np.swapaxes(Vt[:, :k], -1, -2) * gain[:, None] @ np.swapaxes(U[..., :k], -1, -2)
    return inverse, np.where(np.arange(A.shape[1]) < rank[:, None, None], 0.0, U)


def _run(model, given, prescribed, keep, passive, rows) -> np.ndarray:
    """(N, rows, 3 nv) of the entry."""
    count, (n, nq, nv, _) = len(given["q"]), model.sizes
    out = np.zeros((count, rows, 3 * nv))             # A x changes by q only
    if not count:
        return out
    size = derivatives_memory(n, nq, nv, len(model.constraints), model.nc)
    q, v, a, multipliers, x, f_ext, drive = (given[name] for name in ("q", "v", "a", "multipliers", "x", "f_ext", "drive"))
    code = run(constrained_derivatives, model, size, (model.loop_index, model.loop_constants, prescribed),
               (q, v, a, multipliers, keep, x, f_ext, drive, bool(passive), out), count)
    refuse_constrained(model, code, q=q, v=v, a=where_read(a, prescribed))
    return out


def _given(model, q, v, a, multipliers, f_ext, drive, more=()):
    """Leading axes and arguments by name, as entries take them."""
    require_constraints(model)
    nv = model.nv
    named = [("q", as_array(q, "q", (model.nq,)), 1), ("v", as_array(v, "v", (nv,)), 1), ("a", as_array(a, "a", (nv,)), 1),
             ("multipliers", as_array(multipliers, "multipliers", (model.nc,)), 1), *more]
    F, D = wrenches(model, f_ext), drive_array(model, drive)
    if F is not None:
        named.append(("f_ext", F, 2))
    if D.size:
        named.append(("drive", D, 1))
    lead, rows = batched(*named)
    given = dict(zip([name for name, _, _ in named], rows, strict=True))
    none = np.empty((len(rows[0]), 0))
    return lead, {"x": none, "f_ext": none, "drive": none, **given}
