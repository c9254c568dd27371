"""Derivatives of constrained forward and hybrid dynamics with respect to q, v and the inputs."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypedDict

import numpy as np

from liedyn.arrays import Array, ArrayLike, Integers, Mask, OnError, Wrenches
from liedyn.dynamics.batching.arrays import NONE, as_mask
from liedyn.dynamics.batching.calls import evaluate
from liedyn.dynamics.batching.failed_states import handle_failed_states
from liedyn.dynamics.constraints.constrained_dynamics import (
    ConstrainedMotion,
    constrained_forward_dynamics,
    constrained_hybrid_dynamics,
)
from liedyn.dynamics.constraints.constraints import check_has_constraints
from liedyn.dynamics.constraints.rank import reciprocals
from liedyn.dynamics.derivatives import HybridDerivatives, SplitDerivatives
from liedyn.errors import ComputationError, summarized
from liedyn.kernels.constraints.derivatives import (
    balance_batch_workspace_size,
    balance_derivatives_batch,
    balance_derivatives_size,
)
from liedyn.model.model import Model


class DynamicsOptions(TypedDict):
    """Arguments that constrained dynamics and its derivatives share."""

    f_ext: Wrenches | None
    passive: bool
    constraint_motion: Mapping[str, Any] | None


@summarized
class ConstrainedForwardDerivatives(NamedTuple):
    """Derivatives of a and lambda of constrained forward dynamics; [i, k] with respect to coordinate k.

    da_dq         (..., nv, nv) tangent derivative with respect to q [rad/s^2 or m/s^2, per rad or m]
    da_dv         (..., nv, nv) with respect to v
    da_dtau       (..., nv, nv) with respect to tau; its rank is nv - rank A
    dlambda_dq    (..., m, nv) [N m or N, per rad or m]
    dlambda_dv    (..., m, nv)
    dlambda_dtau  (..., m, nv)
    """

    da_dq: Array
    da_dv: Array
    da_dtau: Array
    dlambda_dq: Array
    dlambda_dv: Array
    dlambda_dtau: Array

    def wrt_wrench(self, J: ArrayLike) -> tuple[Array, Array]:
        """Return da/df_ext (..., nv, 6) and dlambda/df_ext (..., m, 6) of a link, from its local Jacobian J (..., 6, nv)."""
        Jt = np.asarray(J, dtype=np.float64).swapaxes(-1, -2)
        return self.da_dtau @ Jt, self.dlambda_dtau @ Jt


@summarized
class ConstrainedHybridDerivatives(NamedTuple):
    """Derivatives of the outputs y and of lambda of constrained hybrid dynamics with respect to q, v and the inputs u.

    y[k] = tau[k] and u[k] = a[k] where prescribed[k], else y[k] = a[k] and u[k] = tau[k]; [i, k] with respect to coordinate k.

    dy_dq, dy_dv, dy_du                   (..., nv, nv)
    dlambda_dq, dlambda_dv, dlambda_du    (..., m, nv)
    prescribed                            (nv,) the mask
    """

    dy_dq: Array
    dy_dv: Array
    dy_du: Array
    dlambda_dq: Array
    dlambda_dv: Array
    dlambda_du: Array
    prescribed: Mask

    def split(self) -> SplitDerivatives:
        """Return the derivatives of a and tau with respect to q, v and u, including the rows of the inputs."""
        return HybridDerivatives(self.dy_dq, self.dy_dv, self.dy_du, self.prescribed).split()


@summarized
class BalanceDerivatives(NamedTuple):
    """Derivatives of the equations of constrained motion at constant a, lambda and x; [i, k] with respect to coordinate k.

    The equations are ``R1 = M a + b - tau_passive - J^T f_ext - A^T lambda``, ``R2 = A a + gamma``, and ``A x`` minus the
    velocity of driven loops.

    dR1_dq, dR1_dv   (..., nv, nv)
    M                derivative of R1 with respect to a: the mass matrix, including armature
    dR2_dq, dR2_dv   (..., m, nv)
    A                derivative of R2 with respect to a
    dAx_dq           (..., m, nv)
    """

    dR1_dq: Array
    dR1_dv: Array
    M: Array
    dR2_dq: Array
    dR2_dv: Array
    A: Array
    dAx_dq: Array


def constrained_forward_derivatives(model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, f_ext: Wrenches | None = None,
                                    passive: bool = True, constraint_motion: Mapping[str, Any] | None = None,
                                    on_error: OnError = "raise") -> ConstrainedForwardDerivatives:
    """Return the derivatives of `constrained_forward_dynamics` with respect to q, v and tau.

    Parameters
    ----------
    model, q, v, tau, f_ext, passive, constraint_motion
        As in `constrained_forward_dynamics`. f_ext is constant in the frame of its link; so is the motion of driven loops.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    ConstrainedForwardDerivatives
        With respect to q: d/de at 0 of a(q (+) e d), with (+) as in `integrate`, at constant components of v and tau. q and v
        need not satisfy the constraints: the formulas are differentiated in any case.

    Raises
    ------
    ModelError, ShapeError, ConfigurationError, ComputationError

    Notes
    -----
    ``M da - A^T dlambda = -dR1``, ``A da = -dR2`` with the derivatives of both equations at constant a, lambda:
    `BalanceDerivatives`.

    If rows of A depend on each other, derivatives are valid only for directions in which the mechanism can move: dq in the null
    space of A, dv with ``A dv + d(A v) = 0``. For these, da is unique, and dlambda is that of the multipliers of minimum norm.

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> q = ld.assemble(model, [1.2, 0.2, 1.8], fixed=["crank"]).q
    >>> ld.constrained_forward_derivatives(model, q, np.zeros(3), [0.5, 0, 0]).da_dtau.shape
    (3, 3)
    """
    if on_error != "raise":
        return handle_failed_states(constrained_forward_derivatives, locals())
    options: DynamicsOptions = {"f_ext": f_ext, "passive": passive, "constraint_motion": constraint_motion}
    motion = constrained_forward_dynamics(model, q, v, tau, **options)
    return ConstrainedForwardDerivatives(*_solve_derivatives(model, q, v, motion, np.zeros(model.nv, dtype=bool), options))


def constrained_hybrid_derivatives(  # noqa: PLR0913 - independent options of a public call
        model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike, prescribed: ArrayLike, *,
        f_ext: Wrenches | None = None, passive: bool = True, constraint_motion: Mapping[str, Any] | None = None,
        on_error: OnError = "raise") -> ConstrainedHybridDerivatives:
    """Return the derivatives of `constrained_hybrid_dynamics` with respect to q, v and the inputs.

    The inputs are accelerations of prescribed coordinates and forces of all others. The parameters are those of
    `constrained_hybrid_dynamics`. Conventions are those of `constrained_forward_derivatives`, with A_v, the columns of A that are
    not prescribed, in place of A. If rows of A_v depend on each other, derivatives are valid only for directions in which the
    prescribed accelerations do not contradict the constraints.

    For on_error see `inverse_dynamics`.

    Raises
    ------
    ModelError, ShapeError, ConfigurationError, ComputationError

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> q = ld.assemble(model, [1.2, 0.2, 1.8], fixed=["crank"]).q
    >>> mask = [True, False, False]
    >>> ld.constrained_hybrid_derivatives(model, q, np.zeros(3), [1.0, 0, 0], np.zeros(3), mask).dy_dq.shape
    (3, 3)
    """
    if on_error != "raise":
        return handle_failed_states(constrained_hybrid_derivatives, locals())
    mask = as_mask(prescribed, model.nv)
    options: DynamicsOptions = {"f_ext": f_ext, "passive": passive, "constraint_motion": constraint_motion}
    motion = constrained_hybrid_dynamics(model, q, v, a, tau, mask, **options)
    dy_dq, dy_dv, dy_du, dl_dq, dl_dv, dl_du = _solve_derivatives(model, q, v, motion, mask, options)
    return ConstrainedHybridDerivatives(dy_dq, dy_dv, dy_du, dl_dq, dl_dv, dl_du, mask.copy())


def balance_derivatives(  # noqa: PLR0913 - independent options of a public call
        model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, multipliers: ArrayLike, x: ArrayLike | None = None, *,
        f_ext: Wrenches | None = None, passive: bool = True, constraint_motion: Mapping[str, Any] | None = None,
        on_error: OnError = "raise") -> BalanceDerivatives:
    """Return the derivatives of the equations of constrained motion with respect to q and v at constant a, multipliers and x.

    Parameters
    ----------
    model : Model
    q, v, a : (..., nq), (..., nv), (..., nv) arrays
        State and acceleration [rad | m and their rates].
    multipliers : (..., m) array
        lambda, from `constrained_forward_dynamics` and similar functions [N m | N].
    x : (..., nv) array, optional
        Vector of which A x, without the velocity of driven loops, is differentiated, too; default: zero.
    f_ext, passive
        As in `inverse_dynamics`.
    constraint_motion
        Motion of driven loops, as in `constraint_residual`.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    BalanceDerivatives

    Raises
    ------
    ModelError, ShapeError, ConfigurationError, NameLookupError

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> q = ld.assemble(model, [1.2, 0.2, 1.8], fixed=["crank"]).q
    >>> rates = ld.balance_derivatives(model, q, np.zeros(3), np.zeros(3), np.zeros(5))
    >>> rates.dR1_dq.shape, rates.dR2_dq.shape
    ((3, 3), (5, 3))
    """
    if on_error != "raise":
        return handle_failed_states(balance_derivatives, locals())
    check_has_constraints(model)
    nv, m = model.nv, model.nc
    x = np.zeros(nv) if x is None else x
    out = evaluate(model, ("balance", bool(passive), x is NONE), balance_derivatives_batch,
                   lambda n, nq, nv, n_links: balance_batch_workspace_size(n, nq, nv, n_links, model.n_frames, m,
                                                                           model.driven),
                   {"q": q, "v": v, "a": a, "multipliers": multipliers, "x": x, "f_ext": f_ext,
                    "constraint_motion": constraint_motion}, (balance_derivatives_size(nv, m),),
                   static_arguments=model._arrays[2:4], options=(bool(passive),))
    R1, R2 = np.split(out, [3 * nv * nv], axis=-1)
    R1, R2 = R1.reshape(*out.shape[:-1], 3, nv, nv), R2.reshape(*out.shape[:-1], 4, m, nv)
    return BalanceDerivatives(*(R1[..., k, :, :] for k in range(3)), *(R2[..., k, :, :] for k in range(4)))


def _solve_derivatives(model: Model, q: ArrayLike, v: ArrayLike, motion: ConstrainedMotion, prescribed: Mask,
                       options: DynamicsOptions) -> tuple[Array, ...]:
    lead, independent = motion.a.shape[:-1], motion.independent.reshape(-1, model.nc)
    turned: tuple[Array, Array] | None = None

    def rates_with(x: ArrayLike | None) -> BalanceDerivatives:
        rates = balance_derivatives(model, q, v, motion.a, motion.multipliers, x, **options)
        return BalanceDerivatives(*(y.reshape(-1, *y.shape[-2:]) for y in rates))

    rates = rates_with(NONE if independent.all() else None)
    if not independent.all():
        inverse, null, _ = pseudo_inverse(rates.A * ~prescribed, independent.sum(axis=1))
        x: Array = np.einsum("nkr,nr->nk", inverse, motion.multipliers.reshape(-1, model.nc))
        turned = null, rates_with(x.reshape(*lead, model.nv)).dAx_dq - rates.dAx_dq
    y, multipliers = solve_implicit_derivatives(rates, prescribed, independent, turned)
    return tuple(array.reshape(*lead, array.shape[1], 3, model.nv)[..., k, :] for array in (y, multipliers) for k in range(3))


def solve_implicit_derivatives(rates: BalanceDerivatives, prescribed: Mask, independent: Mask,
                               turned: tuple[Array, Array] | None = None) -> tuple[Array, Array]:
    """Return the derivatives (N, nv or m, 3 nv) of outputs and multipliers with respect to q, v and the inputs.

    With prescribed coordinates p and others v

        M_vv da_v - A_v^T dlambda = -dR1_v,    A_v da_v = -dR2,    dtau_p = dR1_p + M_pv da_v - A_p^T dlambda

    without the equations that are not in `independent` (N, m). If there are any, dlambda is of minimum norm. turned: a basis N of
    the null space of A_v^T among columns of zeros (N, m, m), and dA_v mu (N, m, nv), where the minimum-norm lambda is A_v mu; N^T
    dlambda = N^T dA_v mu.
    """
    D, rows = (np.concatenate(x, axis=-1) for x in ((rates.dR1_dq, rates.dR1_dv, rates.M), (rates.dR2_dq, rates.dR2_dv, rates.A)))
    (_, m, nv), free, each = rates.A.shape, ~prescribed, np.arange(rates.A.shape[2])
    A = np.where(free & independent[..., None], rates.A, 0.0)
    J = np.zeros((len(A), nv + m, nv + m))
    J[:, :nv, :nv], J[:, :nv, nv:], J[:, nv:, :nv] = np.where(free & free[:, None], rates.M, np.eye(nv)), -A.swapaxes(1, 2), A
    J[:, nv + np.arange(m), nv + np.arange(m)] = ~independent
    varied = np.concatenate([np.ones(2 * nv, dtype=bool), prescribed])              # variables that change the equations
    rhs = np.concatenate([np.where(free[:, None] & varied, -D, 0.0), np.where(independent[..., None] & varied, -rows, 0.0)],
                         axis=1)
    rhs[:, each, 2 * nv + each] = 1.0
    try:
        solution = np.linalg.solve(J, rhs)
    except np.linalg.LinAlgError:
        raise ComputationError("M or A M^-1 A^T is singular in this configuration: the motion has no derivatives") from None
    y, multipliers = solution[:, :nv], solution[:, nv:]
    if turned is not None:
        null, dAx = turned
        multipliers -= null @ (null.swapaxes(1, 2) @ multipliers)
        multipliers[..., :nv] += null @ (null.swapaxes(1, 2) @ dAx)
    if prescribed.any():
        tau = np.where(varied, D, 0.0) + (rates.M * free) @ y - rates.A.swapaxes(1, 2) @ multipliers
        y[:, prescribed] = tau[:, prescribed]
    return y, multipliers


def pseudo_inverse(A: Array, rank: Integers) -> tuple[Array, Array, Array]:
    """Return the pseudo-inverse of A (N, m, n) of rank (N,), and bases (N, m, m) of the null space of A^T and of the range of A.

    In each basis, the columns of the other are zero; those of the null space are the last ones.
    """
    U, s, Vt = np.linalg.svd(A)
    k = s.shape[-1]
    significant = np.arange(k) < rank[:, None]
    gain = reciprocals(s, significant)
    inverse = np.swapaxes(Vt[:, :k], -1, -2) * gain[:, None] @ np.swapaxes(U[..., :k], -1, -2)
    ranged = np.arange(A.shape[1]) < rank[:, None, None]
    return inverse, np.where(ranged, 0.0, U), np.where(ranged, U, 0.0)
