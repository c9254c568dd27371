"""Inverse dynamics of constrained systems: forces of the actuated joints that produce a motion (K2 §3.1)."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from liedyn.arrays import Actuated, Array, ArrayLike, Criterion, Integers, Mask, OnError, Wrenches
from liedyn.dynamics.batching.arrays import as_array, common_leading_axes
from liedyn.dynamics.batching.calls import check_finite
from liedyn.dynamics.batching.failed_states import handle_failed_states
from liedyn.dynamics.constraints.constrained_derivatives import (
    BalanceDerivatives,
    DynamicsOptions,
    balance_derivatives,
    pseudo_inverse,
)
from liedyn.dynamics.constraints.constraints import check_has_constraints, constraint_bias, constraint_jacobian
from liedyn.dynamics.constraints.mobility import warn_singular_state
from liedyn.dynamics.constraints.rank import (
    coordinate_scales,
    equation_norms,
    equation_rank,
    equation_weights,
    is_significant,
    rate_magnitude,
    reciprocals,
    scaled_equations,
    scaled_rank,
)
from liedyn.dynamics.dynamics import bias_force, inverse_dynamics, mass_matrix
from liedyn.dynamics.scales import model_scales
from liedyn.errors import ComputationError, ConfigurationError, NameLookupError, ShapeError, UsageError, summarized
from liedyn.model.description import RANK_TOLERANCE
from liedyn.model.model import Model
from liedyn.model.spatial import matvec

CRITERIA = ("unique", "least_constraint_force", "least_torque")
UNIQUE, REDUNDANT, FULL, IMMOBILE = CASES = ("unique", "redundant", "fully actuated", "immobile")

# tolerance of the equations, relative to the maximum acceleration (at least one per characteristic time squared) and to the
# maximum generalized force, in lengths of the loops
_BALANCE_TOLERANCE = 1e-7
_ZERO = 1e-14              # relative to the maximum weight: columns of U are orthonormal or zero
# rad, or lengths, per characteristic time squared: forces of smaller accelerations need no balance
_REST_TOLERANCE = 1e-11


@summarized
class ConstrainedInverse(NamedTuple):
    """Result of constrained inverse dynamics.

    tau           (..., nv) all generalized forces; those of joints that are not actuated equal the input [N m | N]
    multipliers   (..., m) lambda with M a + b = tau + A^T lambda; of minimum norm for this tau
    case          one of CASES, or an array (...) of them: "unique" (one tau produces the motion), "redundant" (several do),
                  "fully actuated" (every joint is actuated, and several tau do), "immobile" (the constraints allow no motion;
                  any tau is possible, also zero)

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> q = ld.assemble(model, [1.2, 0.2, 1.8], fixed=["crank"]).q
    >>> ld.constrained_inverse_dynamics(model, q, np.zeros(3), np.zeros(3), ["crank"]).case
    'unique'
    """

    tau: Array
    multipliers: Array
    case: str | NDArray[np.str_]


def constrained_inverse_dynamics(  # noqa: PLR0913 - independent options of a public call
        model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, actuated: Actuated | None = None, *,
        criterion: Criterion = "unique", weights: ArrayLike | None = None, tau_passive: ArrayLike | None = None,
        f_ext: Wrenches | None = None, passive: bool = True, constraint_motion: Mapping[str, Any] | None = None,
        on_error: OnError = "raise") -> ConstrainedInverse:
    """Return the forces of the actuated joints that produce the accelerations ``a`` of a constrained system.

    Solves ``M a + b = tau + A^T lambda``, where tau is known for the joints that are not actuated. If several tau solve this,
    the criterion selects one.

    Parameters
    ----------
    model : Model
        With constraints.
    q, v, a : (..., nq), (..., nv), (..., nv) arrays
        Motion that satisfies the constraints; the accelerations are checked. `constrained_hybrid_dynamics` computes all
        accelerations from those of independent joints.
    actuated : names of joints or coordinates, or (nv,) bool array, optional
        Default: those that the robot file names (`Model.actuated`).
    criterion : str
        "unique": error if several tau are solutions. "least_constraint_force": minimum of sum lambda^2. "least_torque": minimum
        of sum (weights tau)^2 over the actuated joints. Sums add numbers in [N m] and [N] without conversion.
    weights : (..., n) array, optional
        Positive, for the actuated coordinates or for all nv; for example 1 / effort limit. For "least_torque".
    tau_passive : (..., nv) array, optional
        Generalized force on joints that are not actuated, in addition to springs and damping [N m | N]; default 0. Entries of
        actuated joints are ignored.
    f_ext, passive
        As in `inverse_dynamics`.
    constraint_motion
        As in `constraint_residual`.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    ConstrainedInverse

    Raises
    ------
    ModelError, ShapeError, ConfigurationError, NameLookupError, UsageError
    ComputationError
        If the motion violates a constraint (the message names the equation), if no tau produces the motion (it names the passive
        joints whose forces do not balance), or, with "unique", if several tau do.

    Notes
    -----
    Source: K2 (56)-(66), for any rank of A (the rule of `dynamics.constraints.rank`).

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> q = ld.assemble(model, [1.2, 0.2, 1.8], fixed=["crank"]).q
    >>> ld.constrained_inverse_dynamics(model, q, np.zeros(3), np.zeros(3), ["crank"]).tau.round(4)
    array([0.0597, 0.    , 0.    ])
    """
    if on_error != "raise":
        return handle_failed_states(constrained_inverse_dynamics, locals())
    check_has_constraints(model)
    mask = actuated_mask(model, actuated)
    _check_criterion(criterion, weights)
    q, v, a = (as_array(x, name, (n,)) for x, name, n in ((q, "q", model.nq), (v, "v", model.nv), (a, "a", model.nv)))
    tau_p = as_array(np.zeros(model.nv) if tau_passive is None else tau_passive, "tau_passive", (model.nv,))
    check_finite("tau_passive", np.where(mask, 0.0, tau_p), model.v_names)
    w = actuator_weights(weights, mask)
    tau_r = inverse_dynamics(model.spanning_tree(), q, v, a, f_ext=f_ext, passive=passive)
    A = constraint_jacobian(model, q, constraint_motion=constraint_motion)
    gamma = constraint_bias(model, q, v, constraint_motion=constraint_motion)
    lead = common_leading_axes(("the motion", tau_r, 1), ("the drive", gamma, 1), ("tau_passive", tau_p, 1), ("weights", w, 1))
    A, gamma, a, tau_r, tau_p, w, b, q = (_flatten_states(lead, x, state_axes) for x, state_axes in (
        (A, 2), (gamma, 1), (a, 1), (tau_r, 1), (tau_p, 1), (w, 1), (bias_force(model, q, v), 1), (q, 1)))
    _check_accelerations(model, A, gamma, a)
    if len(q):
        warn_singular_state(model, q, equation_rank(model, A))
    tau, multipliers, case = _solve(_InverseProblem(model, q, A, tau_r, tau_p, b, mask, w), criterion)
    case = case.reshape(lead)
    return ConstrainedInverse(tau.reshape(*lead, model.nv), multipliers.reshape(*lead, model.nc), case if lead else str(case))


# the equations ----------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class _InverseProblem:
    """Motions of N states for which generalized forces are to be found.

    q, A      (N, nq) configurations, (N, m, nv) constraint Jacobians
    tau_r, b  (N, nv) generalized forces and bias forces of the open tree
    tau_p     (N, nv) forces of the joints that are not actuated
    mask, w   (nv,) mask of actuated coordinates, (N, n) their weights
    """

    model: Model
    q: Array
    A: Array
    tau_r: Array
    tau_p: Array
    b: Array
    mask: Mask
    w: Array


def _solve(problem: _InverseProblem, criterion: Criterion) -> tuple[Array, Array, NDArray[np.str_]]:
    """Return tau, lambda and the case of each state."""
    model, A, mask, tau_r, tau_p = problem.model, problem.A, problem.mask, problem.tau_r, problem.tau_p
    size, unit = equation_norms(model), coordinate_scales(model)
    G = scaled_equations(model, A)                                       # multipliers: size * lambda
    rhs = (unit * (tau_r - tau_p))[..., ~mask]
    x, N = _solve_passive_balance(G[..., ~mask], rhs)
    _check_balance(problem, G, x, rhs)
    freedom, U = _force_range(np.swapaxes(G[..., mask], -1, -2) @ N, unit[mask])         # how the null space N moves tau_a: (61)
    case = _classify(G, freedom, mask)
    multipliers = _least_norm(size, N, x)                                # (59)
    tau = np.where(mask, tau_r - matvec(np.swapaxes(A, -1, -2), multipliers), tau_p)            # (58), (59)
    if criterion == "unique":
        _check_unique(freedom, case, mask)
    if criterion == "least_torque":                                      # (62)-(66): the part of tau_a outside the range of U
        w = problem.w
        inverse = np.asarray(np.linalg.pinv(w[..., None] * U, rcond=_ZERO), dtype=np.float64)
        tau[..., mask] -= matvec(U, matvec(inverse, w * tau[..., mask]))
        x, N = _solve_passive_balance(G, unit * (tau_r - tau))                            # now every generalized force is known
        multipliers = _least_norm(size, N, x)
    return tau, multipliers, case


def _solve_passive_balance(Gp: Array, rhs: Array) -> tuple[Array, Array]:
    """Return a solution x of Gp^T x = rhs, with Gp (…, m, n), and a basis (…, m, m) of the null space of Gp^T.

    The columns of the basis follow columns of zeros.
    """
    U, s, Vt = np.linalg.svd(np.swapaxes(Gp, -1, -2))
    m, n = Gp.shape[-2:]
    k = min(m, n)
    significant = is_significant(s)
    V = np.swapaxes(Vt, -1, -2)
    y = matvec(np.swapaxes(U, -1, -2), rhs)[..., :k]
    x = matvec(V[..., :k], np.where(significant, y / np.where(significant, s, 1.0), 0.0))
    ranged = np.concatenate([significant, np.zeros((*significant.shape[:-1], m - k), bool)], axis=-1)[..., None, :]
    return x, np.where(ranged, 0.0, V)


def _force_range(B: Array, unit: Array) -> tuple[Integers, Array]:
    """Return the rank of B, of scaled equations, and an orthonormal basis of the generalized forces in its range.

    Columns beyond the rank are zero.
    """
    if not B.size:
        return np.zeros(len(B), int), np.zeros((*B.shape[:-1], 0))
    U, s, _ = np.linalg.svd(B, full_matrices=False)
    significant = is_significant(s)
    U, _ = np.linalg.qr(np.where(significant[..., None, :], U, 0.0) / unit[:, None])
    return significant.sum(axis=-1), np.where(significant[..., None, :], U, 0.0)


def _least_norm(size: Array, N: Array, x: Array) -> Array:
    """Return lambda = (x - N y) / size of minimum Euclidean norm.

    N: a basis of self-equilibrated multipliers, after columns of zeros. The forces are those of x, independent of rounding of y,
    even if the factors of equations differ by orders of magnitude.
    """
    N = N[..., ::-1]
    y = _least_squares(N / size[:, None], (x / size)[..., None])[..., 0]
    return (x - matvec(N, y)) / size


def _least_squares(B: Array, rhs: Array) -> Array:
    """Return the y with the least-squares residual of B y = rhs (…, m, k).

    Rows may differ in size by orders of magnitude. Columns are independent, except for the last ones, which are zero. QR by
    Householder keeps the digits of small rows if large ones come first.
    """
    order = np.argsort(-np.linalg.norm(B, axis=-1), axis=-1)[..., None]
    Q, R = np.linalg.qr(np.take_along_axis(B, order, axis=-2))
    unused = np.diagonal(R, axis1=-2, axis2=-1) == 0.0
    unused |= ~(B != 0.0).any(axis=-2)
    c = np.where(unused[..., None], 0.0, np.swapaxes(Q, -1, -2) @ np.take_along_axis(rhs, order, axis=-2))
    return np.linalg.solve(np.where(unused[..., None] | unused[..., None, :], np.eye(R.shape[-1]), R), c)


def _classify(G: Array, freedom: Integers, mask: Mask) -> NDArray[np.str_]:
    """Return the case. freedom: number of independent changes of actuated forces that do not change the motion."""
    fixed = scaled_rank(G) == mask.size
    several = np.where(mask.all(), FULL, REDUNDANT)
    return np.where(fixed, IMMOBILE, np.where(freedom, several, UNIQUE))


# inputs -----------------------------------------------------------------------------------------------------------
def actuated_mask(model: Model, actuated: Actuated | None) -> Mask:
    """Return a mask (nv,) from a mask or from names of joints and coordinates; None: those of the robot file."""
    if actuated is None:
        actuated = model.actuated
        if not actuated:
            raise UsageError(f"the actuated joints of {model.name} are not known: name them, such as "
                             f"actuated=[{model.joint_names[0]!r}], or with the key `actuated` of the robot file")
    items: list[Any] = [actuated] if isinstance(actuated, str) else list(actuated)
    if items and all(isinstance(name, str) for name in items):
        mask = np.zeros(model.nv, dtype=bool)
        for name in items:
            if name in model.v_names:
                mask[model.v_names.index(name)] = True
            else:
                mask[model.v_index(name)] = True
        return mask
    mask = np.asarray(actuated) if items else np.zeros(model.nv, dtype=bool)
    if mask.dtype != bool or mask.shape != (model.nv,):
        raise ShapeError(f"actuated is neither names of joints nor a mask over v: expected bool ({model.nv},), "
                         f"got {mask.dtype} of shape {mask.shape}")
    return mask


def _check_criterion(criterion: Criterion, weights: ArrayLike | None) -> None:
    if criterion not in CRITERIA:
        raise NameLookupError(f"unknown criterion {criterion!r}: expected one of {', '.join(CRITERIA)}")
    if weights is not None and criterion != "least_torque":
        raise UsageError(f"weights apply to forces of joints, which the criterion {criterion!r} does not use "
                         "(use criterion=\"least_torque\")")


def actuator_weights(weights: ArrayLike | None, mask: Mask) -> Array:
    """Return the weights (..., n) of the n actuated coordinates: ones by default.

    weights: (..., nv) or (..., n). Raises ConfigurationError unless they are positive and finite, ShapeError.
    """
    n = int(mask.sum())
    if weights is None:
        return np.ones(n)
    w = (as_array(weights, "weights", (mask.size,))[..., mask] if np.shape(weights)[-1:] == (mask.size,) else
         as_array(weights, "weights", (n,)))
    if not (np.isfinite(w).all() and (w > 0.0).all()):
        raise ConfigurationError("weights must be positive, finite numbers")
    return w


def _flatten_states(lead: tuple[int, ...], x: Array, state_axes: int) -> Array:
    """Return x with one leading axis for all states."""
    last = x.shape[x.ndim - state_axes:]
    return np.broadcast_to(x, (*lead, *last)).reshape(math.prod(lead), *last)


# errors -----------------------------------------------------------------------------------------------------------
def _check_accelerations(model: Model, A: Array, gamma: Array, a: Array) -> None:
    gap = np.abs(matvec(A, a) + gamma)
    bad = equation_weights(model) * gap > _BALANCE_TOLERANCE * rate_magnitude(model, a, 2)[..., None]
    if bad.any():
        k = int(np.argmax(bad.any(axis=-1)))
        r = int(np.argmax(np.where(bad[k], gap[k], 0.0)))
        raise ComputationError(f"the motion violates a constraint{_state(k, a)}: A a + gamma is {gap[k, r]:.3g} "
                               f"{model.constraint_equation_units[r]}/s^2 in row {model.constraint_equation_names[r]} "
                               "(constrained_hybrid_dynamics gives consistent accelerations)")


def _check_balance(problem: _InverseProblem, G: Array, x: Array, rhs: Array) -> None:
    """Raise an error if (57) does not hold at the passive joints, or at all: there is no solution.

    G (N, m, nv): scaled equations; x (N, m): their multipliers; rhs: forces that they must give at the passive joints.
    """
    model, mask, units = problem.model, problem.mask, coordinate_scales(problem.model)
    imbalance = np.abs(matvec(np.swapaxes(G[..., ~mask], -1, -2), x) - rhs)
    tau_r, b = units * problem.tau_r, units * problem.b
    scale = np.maximum(np.abs(tau_r).max(axis=-1, initial=0.0), np.abs(b).max(axis=-1, initial=0.0))
    scale = np.maximum(scale, np.abs(rhs).max(axis=-1, initial=0.0))
    bad = imbalance > _BALANCE_TOLERANCE * scale[..., None]
    if bad.any():
        M = np.diagonal(mass_matrix(model.spanning_tree(), problem.q), axis1=-2, axis2=-1) * units**2
        bad &= imbalance > _REST_TOLERANCE / model_scales(model).time**2 * M.max(axis=-1, keepdims=True)
    if not bad.any():
        return
    k = int(np.argmax(bad.any(axis=-1)))
    passive, unit = np.flatnonzero(~mask), units[~mask]
    worst = [i for i in np.argsort(-imbalance[k]) if bad[k, i]][:6]
    places = ", ".join(f"{model.v_names[passive[i]]} by {imbalance[k, i] / unit[i]:.3g} "
                       f"{'N m' if model.v_units[passive[i]] == 'rad' else 'N'}"
                       for i in worst)
    free = mask.size - int(scaled_rank(G[k]))
    freedom = "1 degree" if free == 1 else f"{free} degrees"
    names = ", ".join(model.v_names[i] for i in np.flatnonzero(mask)) or "none"
    raise ComputationError(f"no force of the actuated joints ({names}) produces this motion{_state(k, rhs)}: the forces of "
                           f"passive joints do not balance, {places}; the mechanism has {freedom} of freedom in this "
                           "configuration (actuate more or other joints)")


def _check_unique(freedom: Integers, case: NDArray[np.str_], mask: Mask) -> None:
    if not freedom.any():
        return
    k = int(np.argmax(freedom > 0))
    why = ("the constraints leave no motion, so any force is possible" if case[k] == IMMOBILE else
           f"{mask.sum()} coordinates are actuated, {freedom[k]} more than this motion requires")
    raise ComputationError(f"several sets of generalized forces produce this motion{_state(k, freedom)}: {why} "
                           "(select with criterion=\"least_torque\" or \"least_constraint_force\")")


def _state(k: int, rows: Sized) -> str:
    return f" in state {k}" if len(rows) > 1 else ""


# Derivatives of constrained inverse dynamics with respect to q, v and a -------------------------------------------------

@summarized
class ConstrainedInverseDerivatives(NamedTuple):
    """Derivatives of tau and lambda of constrained inverse dynamics; [i, k] with respect to coordinate k.

    dtau_dq, dtau_dv, dtau_da             (..., nv, nv); rows of joints that are not actuated are zero
    dlambda_dq, dlambda_dv, dlambda_da    (..., m, nv)
    """

    dtau_dq: Array
    dtau_dv: Array
    dtau_da: Array
    dlambda_dq: Array
    dlambda_dv: Array
    dlambda_da: Array


def constrained_inverse_derivatives(  # noqa: PLR0913 - independent options of a public call
        model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, actuated: Actuated | None = None, *,
        criterion: Criterion = "unique", weights: ArrayLike | None = None, tau_passive: ArrayLike | None = None,
        f_ext: Wrenches | None = None, passive: bool = True, constraint_motion: Mapping[str, Any] | None = None,
        on_error: OnError = "raise") -> ConstrainedInverseDerivatives:
    """Return the derivatives of `constrained_inverse_dynamics` with respect to q, v and a.

    Parameters
    ----------
    model, q, v, a, actuated, criterion, weights, tau_passive, f_ext, passive, constraint_motion, on_error
        As in `constrained_inverse_dynamics`; f_ext, the motion of driven loops and tau_passive are constant.

    Returns
    -------
    ConstrainedInverseDerivatives
        Those with respect to q are tangent, with (+) as in `integrate`. They are valid for changes of the motion that satisfy the
        constraints: dq in the null space of A, ``A dv + d(A v) = 0``, ``A da + d(A a + gamma) = 0`` (see `balance_derivatives`).
        In other directions no tau produces the motion; the values are those of a least-squares balance at the passive joints.

    Raises
    ------
    As `constrained_inverse_dynamics`.

    Notes
    -----
    With D the derivative of ``M a + b - A^T lambda`` at constant lambda, p passive and a actuated joints:
    ``A_p^T dlambda = D_p``, ``dtau_a = D_a - A_a^T dlambda``. The part in the null space N of A_p^T follows from the derivative
    of the criterion's condition, ``N^T lambda = 0`` or ``N^T A_a W^2 tau_a = 0``, and that of A: exact at constant ranks.

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> q = ld.assemble(model, [1.2, 0.2, 1.8], fixed=["crank"]).q
    >>> ld.constrained_inverse_derivatives(model, q, np.zeros(3), np.zeros(3), ["crank"]).dtau_da.shape
    (3, 3)
    """
    if on_error != "raise":
        return handle_failed_states(constrained_inverse_derivatives, locals())
    options: DynamicsOptions = {"f_ext": f_ext, "passive": passive, "constraint_motion": constraint_motion}
    motion = constrained_inverse_dynamics(model, q, v, a, actuated, criterion=criterion, weights=weights, tau_passive=tau_passive,
                                          **options)
    mask, lead, nv, m = actuated_mask(model, actuated), motion.tau.shape[:-1], model.nv, model.nc

    def balance(x: Array) -> BalanceDerivatives:
        return balance_derivatives(model, q, v, a, motion.multipliers, x.reshape(*lead, nv), **options)

    rates = balance(np.zeros((*lead, nv)))
    D = np.concatenate([rates.dR1_dq, rates.dR1_dv, rates.M], axis=-1).reshape(-1, nv, 3 * nv)
    A, tau, multipliers = rates.A.reshape(-1, m, nv), motion.tau.reshape(-1, nv), motion.multipliers.reshape(-1, m)
    rows = _ConstraintJacobian(model, A, lambda x: np.pad((balance(x).dAx_dq - rates.dAx_dq).reshape(-1, m, nv),
                                                          ((0, 0), (0, 0), (0, 2 * nv))))
    if criterion == "least_torque":
        w = np.zeros((*lead, nv))
        w[..., mask] = actuator_weights(weights, mask)
        dtau = _least_torque_derivative(rows, D, mask, w.reshape(-1, nv), tau)
        dlambda = rows.least_norm_derivative(np.ones(nv, dtype=bool), D - dtau, multipliers)
    else:
        dlambda = rows.least_norm_derivative(~mask, D, multipliers)
        dtau = np.where(mask[:, None], D - np.swapaxes(A, -1, -2) @ dlambda, 0.0)
    parts = [x.reshape(*lead, x.shape[-2], 3, nv) for x in (dtau, dlambda)]
    return ConstrainedInverseDerivatives(*(x[..., k, :] for x in parts for k in range(3)))


class _ConstraintJacobian:
    """A (N, m, nv), and directional_rate(x): derivatives (N, m, 3 nv) of A x."""

    def __init__(self, model: Model, A: Array, directional_rate: Callable[[Array], Array]) -> None:
        self.model, self.A, self.directional_rate = model, A, directional_rate

    def least_norm_derivative(self, mask: Mask, D: Array, multipliers: Array) -> Array:
        """Return dlambda of the minimum-norm lambda for a given A_p^T lambda, where A_p^T dlambda = D_p; p: `mask` (nv,).

        Equations and coordinates are scaled as in `_solve`. The part in the null space follows from the condition of
        `_least_norm`.
        """
        size, unit = equation_norms(self.model)[:, None], coordinate_scales(self.model)[:, None]
        A = np.where(mask, self.A, 0.0)
        inverse, null, ranged = pseudo_inverse(scaled_equations(self.model, A), equation_rank(self.model, A))
        x, null = np.swapaxes(inverse, -1, -2) @ (unit * D), null[..., ::-1]
        if null.any():
            coefficients = _least_squares(size * ranged, multipliers[..., None])
            moved = unit * (inverse @ (ranged @ coefficients))                                  # lambda = A_p moved
            x += null @ _least_squares(null / size, self.directional_rate(moved[..., 0]) - x / size)
        return x / size


def _least_torque_derivative(rows: _ConstraintJacobian, D: Array, mask: Mask, w: Array, tau: Array) -> Array:
    """Return dtau from N^T (A_a W^2 tau_a - A_p mu) = 0, with dimensionless constraint equations."""
    weights, passive = equation_weights(rows.model)[:, None], np.where(mask, 0.0, rows.A)
    A = weights * rows.A
    inverse, null, _ = pseudo_inverse(weights * passive, equation_rank(rows.model, passive))
    At, Nt, W2 = np.swapaxes(A, -1, -2), np.swapaxes(null, -1, -2), (w * w)[..., None]
    dtau = np.where(mask[:, None], D - At @ (np.swapaxes(inverse, -1, -2) @ D), 0.0)
    force = (W2[..., 0] * tau)[..., None]
    mu = inverse @ (A @ force)
    B = np.where(mask[:, None], At @ null, 0.0)
    rhs = np.swapaxes(B, -1, -2) @ (W2 * dtau) + Nt @ (weights * rows.directional_rate((force - mu)[..., 0]))
    s, V = np.linalg.eigh(np.swapaxes(B, -1, -2) @ (W2 * B))
    # relative to A_a: B may consist of rounding
    significant = s > RANK_TOLERANCE * np.einsum("nrk,nr->n", At**2, W2[..., 0])[:, None]
    y = reciprocals(s, significant)[..., None] * (np.swapaxes(V, -1, -2) @ rhs)
    return dtau - B @ (V @ y)
