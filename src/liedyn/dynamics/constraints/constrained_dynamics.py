"""Forward and hybrid dynamics of constrained systems, and the constraint forces as wrenches and generalized forces."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from threading import get_ident
from typing import Any

import numpy as np

from liedyn.arrays import Array, ArrayLike, Mask, OnError, Pfaffian, Wrenches
from liedyn.codegen.specialize import is_enabled
from liedyn.dynamics.batching.arrays import NONE, as_array, as_mask, broadcast_states
from liedyn.dynamics.batching.calls import raise_for_code
from liedyn.dynamics.batching.failed_states import handle_failed_states
from liedyn.dynamics.batching.threads import chunks, run_on_threads
from liedyn.dynamics.constraints.constraints import (
    ConstraintWorkspaces,
    check_has_constraints,
    check_states,
    constraint_jacobian,
    constraint_residual,
    constraint_velocity,
    constraint_workspace_for,
)
from liedyn.dynamics.constraints.inertia_transfer import correct_multipliers, transfer_inertia
from liedyn.dynamics.constraints.mobility import generic_rank, warn_singular_state
from liedyn.dynamics.constraints.rank import RANK, equation_weights, rate_magnitude, reciprocals, scaled_equations
from liedyn.dynamics.dynamics import hybrid_dynamics, mass_matrix
from liedyn.dynamics.finite_differences import numerical_derivative
from liedyn.dynamics.manifold import integrate
from liedyn.dynamics.scales import model_scales
from liedyn.dynamics.singular_joints import check_joints_move_inertia
from liedyn.errors import ComputationError, LiedynWarning, ShapeError, summarized, warn
from liedyn.kernels.batch_blocks import OK
from liedyn.kernels.constraints.driver import CONTRADICTION_TOLERANCE, OUT_OF_RANGE, solve_motion_batch
from liedyn.kernels.constraints.stages import EQUATIONS, SOLUTION
from liedyn.model.description import RANK_TOLERANCE
from liedyn.model.model import Model
from liedyn.model.spatial import adjoint, inverse
from liedyn.numba_tools.decorators import compile_entry_point

# Constraints P(q) v = 0 from a function of the user, in addition to those of the model -----------------------------------------

# The constrained acceleration depends linearly on the generalized forces: forces P^T mu change it by R mu, and P R mu = -(P a +
# gamma) satisfies the constraints. R takes one more solution per row of P; a second iteration removes rounding errors.

_STEP = 2e-3          # rad or characteristic lengths: step of the differences for dP/dt v, whose error is about its sixth power


def pfaffian_and_bias(pfaffian: Pfaffian, model: Model, q: Array, v: Array) -> tuple[Array, Array]:
    """Return P (N, k, nv) and gamma = dP/dt v (N, k) at states (N, nq), (N, nv)."""
    P = _pfaffian_matrix(pfaffian, model, q)
    speed = np.maximum(np.abs(v / model_scales(model).unit_scales(model.v_units)).max(axis=1, initial=0.0), 1e-300)[:, None]
    along = v / speed

    def moved(steps: Array) -> Array:
        return np.array([_pfaffian_matrix(pfaffian, model, integrate(model, q, s * along)) for s in steps])

    rate = numerical_derivative(moved, 2.0 * _STEP, levels=3)
    gamma: Array = np.einsum("nkj,nj->nk", rate, v) * speed
    return P, gamma


def _pfaffian_matrix(pfaffian: Pfaffian, model: Model, q: Array) -> Array:
    P = np.asarray(pfaffian(q), dtype=float)
    if P.ndim == 2:
        P = P[None]
    if P.ndim != 3 or P.shape[0] not in (1, len(q)) or P.shape[2] != model.nv:
        raise ShapeError(f"pfaffian returned A(q) of shape {P.shape} for q of shape {q.shape}: expected (N, k, {model.nv})")
    if not np.isfinite(P).all():
        raise ComputationError("pfaffian returned an A(q) that is not finite")
    return np.broadcast_to(P, (len(q), *P.shape[1:]))


def enforce_pfaffian(model: Model, P: Array, gamma: Array, motion: Callable[[Array], Array], tau: Array,
                     M: Array) -> tuple[Array, Array, Mask]:
    """Return generalized forces (N, nv) with P a + gamma = 0, multipliers mu (N, k), and a mask (N, k) of independent rows of P.

    The forces are `tau` plus those of mu; motion(tau) returns the accelerations (N, nv). A row is dependent if it follows from
    rows before it. If rows depend on each other or on the constraints of the model, mu is of minimum norm. M (N, nv, nv) of the
    open tree gives P M^-1 P^T, the reference size for the part of a row that the constraints leave.
    """
    if not P.shape[1]:
        return tau, gamma, np.empty(gamma.shape, dtype=bool)
    units, free = model_scales(model), motion(tau)
    reach, force = units.unit_scales(model.v_units), units.force_scales(model.v_units)
    along, largest = np.abs(P / force).max(axis=2), np.abs(tau / force).max(axis=1, initial=1.0)[:, None]
    size = largest / np.where(along > 0.0, along, 1.0)                       # unit of a multiplier
    R = np.stack([(motion(tau + size[:, [j]] * P[:, j]) - free) / size[:, [j]] for j in range(P.shape[1])], axis=2)
    G = P @ R                                                             # P M^-1 P^T within the model's constraints
    open_ = np.sqrt(np.maximum(np.einsum("nkj,njk->nk", P, np.linalg.solve(M, np.swapaxes(P, 1, 2))), 0.0))
    open_ = np.where(open_ > 0.0, open_, 1.0)
    s, V = np.linalg.eigh(0.5 * (G + np.swapaxes(G, 1, 2)) / (open_[:, :, None] * open_[:, None]))
    significant = s > RANK_TOLERANCE
    gain = V @ (reciprocals(s, significant)[..., None] * np.swapaxes(V, 1, 2))
    gain, mu = gain / (open_[:, :, None] * open_[:, None]), np.zeros(gamma.shape)
    for _ in range(3):
        a = motion(tau + np.einsum("nkj,nk->nj", P, mu))
        deviation = np.einsum("nkj,nj->nk", P, a) + gamma
        mu = mu - np.einsum("nkl,nl->nk", gain, deviation)
    fastest = np.abs(a / reach).max(axis=1, initial=units.time**-2)[:, None]
    bad = np.abs(deviation) > _ACCELERATION_TOLERANCE * (np.abs(P) @ reach) * fastest
    if bad.any():
        k, r = np.argwhere(bad)[0]
        raise ComputationError(f"row {r} of the pfaffian constraint cannot be satisfied in state {k}: its residual is "
                               f"{abs(deviation[k, r]):.3g} (it contradicts the other constraints or the prescribed motion)")
    G = G / (open_[:, :, None] * open_[:, None])
    ranks = np.stack([(np.linalg.eigvalsh(G[:, :j, :j]) > RANK_TOLERANCE).sum(axis=1) for j in range(G.shape[1] + 1)], axis=1)
    return tau + np.einsum("nkj,nk->nj", P, mu), mu, np.diff(ranks, axis=1) > 0


# constrained ------------------------------------------------------------------------------------------------------------

# attribute lookups at import save 0.1 us per call
_empty, _new_object, _count_nonzero = np.empty, object.__new__, np.count_nonzero

_MOTION_STAGES = EQUATIONS, SOLUTION
_NONE = np.empty(0)
_MAX_CLOSURE_ERROR = 1e-6          # rad or lengths of the loop, and of the maximum velocity: a state with six digits is closed
_ACCELERATION_TOLERANCE = 1e-5     # of the maximum acceleration: tolerance for such states


@summarized
class ConstrainedMotion:
    """Result of constrained dynamics.

    a, tau        (..., nv) all accelerations and generalized forces; inputs are returned unchanged
    multipliers   (..., m) lambda with M a + b = tau + A^T lambda [N m | N]; of minimum norm if equations are dependent
    independent   (..., m) bool: False for a constraint equation that depends on the equations before it

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> q = ld.assemble(model, [1.2, 0.2, 1.8], fixed=["crank"]).q
    >>> a, tau, multipliers, independent = ld.constrained_forward_dynamics(model, q, np.zeros(3), [0.5, 0, 0])
    >>> independent
    array([False, False,  True,  True, False])
    """

    __slots__ = ("a", "independent", "multipliers", "tau")

    a: Array
    tau: Array
    multipliers: Array
    independent: Mask

    def __init__(self, a: Array, tau: Array, multipliers: Array, independent: Mask):
        self.a, self.tau, self.multipliers, self.independent = a, tau, multipliers, independent

    def __iter__(self) -> Iterator[Any]:
        return iter((self.a, self.tau, self.multipliers, self.independent))

    def __reduce__(self) -> tuple[Any, ...]:
        return ConstrainedMotion, tuple(self)


class _SingleStateMotion(ConstrainedMotion):
    """Result for one state. `out` holds all numbers that the kernel wrote.

    Further views are created at access, since all of them take as long as the computation. An `__init__` would cost 0.1 us.
    """

    __slots__ = ("out",)

    out: Array
    multipliers = property(lambda self: self.out[:self.out.size // 3])
    independent = property(lambda self: self.out[self.out.size // 3:self.out.size // 3 * 2] != 0.0)


def constrained_forward_dynamics(  # noqa: PLR0913 - independent options of a public call
        model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, f_ext: Wrenches | None = None, passive: bool = True,
        constraint_motion: Mapping[str, Any] | None = None, baumgarte: float = 0.0, pfaffian: Pfaffian | None = None,
        on_error: OnError = "raise") -> ConstrainedMotion:
    """Return the accelerations of a constrained system under generalized forces.

    Solves ``M a + b = tau + A^T lambda``, ``A a + gamma = 0`` by articulated sweeps: O(n m + m^3).

    Parameters
    ----------
    model : Model
        With constraints, which `forward_dynamics` and similar functions do not support.
    q : (..., nq) array
        Configuration [rad | m]; should be closed (`assemble`, `project_configuration`).
    v, tau : (..., nv) arrays
        Joint velocity, which should satisfy the constraints (`project_velocity`), and generalized force.
    f_ext, passive
        As in `forward_dynamics`.
    constraint_motion : {closure name: (T, V, dV)}, optional
        Motion of driven loops, see `constraint_residual`.
    baumgarte : float
        Frequency f [rad/s] of stabilization: ``A a + gamma + 2 f A v + f^2 residual = 0``.
    pfaffian : function, optional
        Further constraints ``P(q) v = 0``, holonomic or not: takes q (N, nq) and returns P (N, k, nv) or (k, nv). Its time
        derivative is computed by differences (error about 1e-10). The model itself may then have no constraints.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    ConstrainedMotion

    Raises
    ------
    ModelError, ShapeError, ConfigurationError, ComputationError

    Notes
    -----
    Source: K2 (54), (55). Accelerations are unique even if constraint equations depend on each other; multipliers are then those
    of minimum norm.

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> q = ld.assemble(model, [1.2, 0.2, 1.8], fixed=["crank"]).q
    >>> ld.constrained_forward_dynamics(model, q, np.zeros(3), tau=[0.5, 0, 0]).a.round(2)
    array([ 154.9 , -175.98,   45.1 ])
    """
    if on_error != "raise":
        return handle_failed_states(constrained_forward_dynamics, locals())
    if f_ext is None and constraint_motion is None and pfaffian is None:
        try:                                  # expected arrays: the entry point checks shapes and values
            key = "constrained_forward_dynamics", get_ident(), passive, baumgarte > 0.0
            workspace, address, nv, rows, generic = model.single_calls[key]
            a, out = _empty(nv), _empty(3 * rows.start)
            if not solve_motion_batch(address, baumgarte, q, v, _NONE, tau, _NONE, _NONE, a, _NONE, out, 1, 0, 1):
                rank = _count_nonzero(out[rows])
                if rank < generic:
                    state = np.asarray(q, dtype=np.float64)
                    warn_singular_state(model, state[None], np.array([rank]))
                    model.single_calls[key] = workspace, address, nv, rows, generic_rank(model, state, np.array([rank]))
                motion = _new_object(_SingleStateMotion)
                motion.a, motion.tau, motion.out = a, tau, out  # type: ignore[assignment]     # the entry point took arrays
                return motion
        except (TypeError, KeyError):         # a batch, other types, lists, or not compiled yet
            if model.nc and getattr(q, "ndim", 1) == 1 and not model.driven:
                compile_entry_point(solve_motion_batch)
                none = np.zeros(model.nv, dtype=bool)
                workspace = _thread_workspace(model, none, bool(passive), baumgarte > 0.0, False, False)
                model.single_calls[key] = (workspace, workspace.buffer.ctypes.data, model.nv, slice(model.nc, 2 * model.nc),
                                           min(model.nc, model.nv))
    inputs = {"q": q, "v": v, "tau": tau, "a": NONE, "f_ext": f_ext, "constraint_motion": constraint_motion}
    return _constrained(model, inputs, np.zeros(model.nv, dtype=bool), passive, baumgarte, pfaffian)


def constrained_hybrid_dynamics(  # noqa: PLR0913 - independent options of a public call
        model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike, prescribed: ArrayLike, *,
        f_ext: Wrenches | None = None, passive: bool = True, constraint_motion: Mapping[str, Any] | None = None,
        baumgarte: float = 0.0, pfaffian: Pfaffian | None = None, on_error: OnError = "raise") -> ConstrainedMotion:
    """Return all accelerations and generalized forces of a constrained system from one of the two for each coordinate.

    ``a`` is read where prescribed and ``tau`` elsewhere; other entries are ignored. Other parameters and results are those of
    `constrained_forward_dynamics`. If the prescribed motion does not determine the multipliers, they are those of minimum norm.

    Raises
    ------
    ComputationError
        Also if the prescribed accelerations contradict the constraints; the message names both.

    For on_error see `inverse_dynamics`.

    Notes
    -----
    Source: K2 (54), (55): A_v M_vv^-1 A_v^T takes the place of A M^-1 A^T.

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> q = ld.assemble(model, [1.2, 0.2, 1.8], fixed=["crank"]).q
    >>> motion = ld.constrained_hybrid_dynamics(model, q, np.zeros(3), [1.0, 0, 0], np.zeros(3), [True, False, False])
    >>> motion.a.round(3), motion.tau.round(4)
    (array([ 1.   , -1.136,  0.291]), array([0.0626, 0.    , 0.    ]))
    """
    if on_error != "raise":
        return handle_failed_states(constrained_hybrid_dynamics, locals())
    inputs = {"q": q, "v": v, "tau": tau, "a": a, "f_ext": f_ext, "constraint_motion": constraint_motion}
    return _constrained(model, inputs, as_mask(prescribed, model.nv), passive, baumgarte, pfaffian)


def constraint_forces(model: Model, q: ArrayLike, multipliers: ArrayLike, *, constraint_motion: Mapping[str, Any] | None = None,
                      on_error: OnError = "raise") -> Array:
    """Return the generalized forces A^T lambda of constraints.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints have unit quaternions x y z w.
    multipliers : (..., m) array
        lambda, from `constrained_forward_dynamics` and similar functions [N m | N].
    constraint_motion
        Motion of driven loops, as in `constraint_residual`.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    tau : (..., nv) array
        Generalized forces of the constraints, in addition to the others [N m | N].

    Raises
    ------
    ModelError, ShapeError, ConfigurationError

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> q = ld.assemble(model, [1.2, 0.2, 1.8], fixed=["crank"]).q
    >>> motion = ld.constrained_forward_dynamics(model, q, np.zeros(3), [0.5, 0, 0])
    >>> ld.constraint_forces(model, q, motion.multipliers).shape
    (3,)
    """
    if on_error != "raise":
        return handle_failed_states(constraint_forces, locals())
    A = constraint_jacobian(model, q, constraint_motion=constraint_motion)
    forces: Array = np.einsum("...rk,...r->...k", A, as_array(multipliers, "multipliers", (model.nc,)))
    return forces


def _constrained(model: Model, inputs: dict[str, Any], prescribed: Mask, passive: bool, frequency: float,
                 pfaffian: Pfaffian | None = None) -> ConstrainedMotion:
    """Compute constrained dynamics.

    inputs: q, v, tau, a, f_ext and constraint_motion, in this order; a is NONE if no coordinate is prescribed.
    """
    if pfaffian is not None:
        return _with_pfaffian(pfaffian, model, inputs, prescribed, passive, frequency)
    check_has_constraints(model)
    lead, states = broadcast_states(model, inputs)
    count, m = len(states["q"]), model.nc
    transfer = transfer_inertia(model, prescribed)
    if count:
        check_joints_move_inertia(transfer.model, prescribed)
    a = np.zeros((count, model.nv)) if inputs["a"] is NONE else states["a"].copy()
    tau, out = states["tau"].copy(), np.empty((count, 3 * m))
    code = _solve_batch(transfer.model, states, prescribed, float(frequency), bool(passive), a, tau, out) if count else OK
    if code:                                                     # inputs that are not finite give results that are not finite
        read = {"a": np.where(prescribed, a, 0.0), "tau": np.where(prescribed, 0.0, states["tau"])}
        check_states(model, **{**states, **read})
        raise_for_code(model, code, prescribed, **states)
    if transfer.armature.any():
        out[:, :m] = correct_multipliers(model, transfer.armature, a, out[:, :m])
    independent = out[:, m:2 * m] != 0.0
    _check_consistent(model, states, prescribed, a, independent, out[:, 2 * m:], frequency)
    if count:
        warn_singular_state(model, states["q"], independent.sum(axis=1), prescribed if prescribed.any() else None)
    shape = (*lead, model.nv)
    return ConstrainedMotion(a.reshape(shape), tau.reshape(shape), out[:, :m].reshape(*lead, m), independent.reshape(*lead, m))


def _with_pfaffian(pfaffian: Pfaffian, model: Model, inputs: dict[str, Any], prescribed: Mask, passive: bool,
                   frequency: float) -> ConstrainedMotion:
    """Compute constrained dynamics with further constraints (see `_constrained`)."""
    a = np.zeros(model.nv) if inputs["a"] is NONE else inputs["a"]
    lead, states = broadcast_states(model, {**inputs, "a": a})
    q, v, tau, a = (states[name] for name in ("q", "v", "tau", "a"))
    count = len(q)

    def solve(force: Array) -> ConstrainedMotion:
        arrays = {name: x.reshape(*lead, x.shape[-1]) for name, x in (("q", q), ("v", v), ("tau", force), ("a", a))}
        if model.nc:
            motion = _constrained(model, {**inputs, **arrays}, prescribed, passive, frequency)
            return ConstrainedMotion(*(x.reshape(count, x.shape[-1]) for x in motion))
        a_of_force, tau_of_force = hybrid_dynamics(model, arrays["q"], arrays["v"], arrays["a"], arrays["tau"], prescribed,
                                                   f_ext=inputs["f_ext"], passive=passive)
        return ConstrainedMotion(a_of_force.reshape(count, model.nv), tau_of_force.reshape(count, model.nv), np.empty((count, 0)),
                                 np.empty((count, 0), dtype=bool))

    tau = np.where(prescribed, 0.0, tau)
    P, gamma = pfaffian_and_bias(pfaffian, model, q, v)
    force, mu, independent = enforce_pfaffian(model, P, gamma, lambda x: solve(x).a, tau, mass_matrix(model.spanning_tree(), q))
    motion = solve(force)
    shape = (*lead, model.nv)
    return ConstrainedMotion(motion.a.reshape(shape), np.where(prescribed, motion.tau - (force - tau), tau).reshape(shape),
                             np.concatenate([motion.multipliers, mu], axis=1).reshape(*lead, -1),
                             np.concatenate([motion.independent, independent], axis=1).reshape(*lead, -1))


def _solve_batch(model: Model, states: dict[str, Array], prescribed: Mask, frequency: float, passive: bool, a: Array, tau: Array,
                 out: Array) -> int:
    """Run `solve_motion_batch` on all cores, with generic kernels where generated code is not valid. Return a code."""
    compile_entry_point(solve_motion_batch)
    count, forced = len(states["q"]), states["f_ext"].size > 0
    F = wrenches_on_bodies(model, states["f_ext"]) if forced else states["f_ext"]
    arrays = [x.reshape(-1) for x in (states["q"], states["v"], a, tau, F, states["constraint_motion"], a, tau, out)]
    for generic in (False, True):
        def part(first: int, last: int, generic: bool = generic) -> int:
            workspace = _thread_workspace(model, prescribed, passive, frequency > 0.0, forced, generic)
            return int(solve_motion_batch(workspace.buffer.ctypes.data, frequency, *arrays, count, first, last))
        code = next((code for code in run_on_threads(part, chunks(count, model.n_bodies)) if code), OK)
        if code != OUT_OF_RANGE:
            break
    return code


@dataclass(frozen=True)
class ConstraintWorkspaceKey:
    """Key of a workspace. thread: its identifier; prescribed: bytes of the mask; others as in `constraint_workspace_for`."""

    thread: int
    prescribed: bytes
    passive: bool
    stabilized: bool
    forced: bool
    generic: bool


def _thread_workspace(model: Model, prescribed: Mask, passive: bool, stabilized: bool, forced: bool,
                      generic: bool) -> ConstraintWorkspaces:
    """Return the workspace of this thread, which must be held while its address is in use."""
    key = ConstraintWorkspaceKey(get_ident(), prescribed.tobytes(), passive, stabilized, forced, generic or not is_enabled())
    return model.cached(key, lambda: constraint_workspace_for(model, (prescribed,) * 3, passive, float(stabilized), forced,
                                                              _MOTION_STAGES, generic))


def wrenches_on_bodies(model: Model, f_ext: Array) -> Array:
    """Return wrenches on bodies (N, n, 6) from wrenches on links (N, 6 n_links), each about its own origin."""
    F, on_links = np.zeros((len(f_ext), model.n_bodies, 6)), f_ext.reshape(len(f_ext), -1, 1, 6)
    on_bodies = (on_links @ adjoint(inverse(model.link_pose)))[:, :, 0]       # Ad*_{T^-1}
    np.add.at(F.swapaxes(0, 1), model.link_body, on_bodies.swapaxes(0, 1))
    return F


def _check_consistent(model: Model, states: dict[str, Array], prescribed: Mask, a: Array, independent: Mask, gap: Array,
                      frequency: float) -> None:
    """Check that dependent equations are satisfied up to rounding.

    Raise ComputationError if a constraint contradicts prescribed or driven motion, or if the configuration is singular and the
    velocity is along no branch. Warn if q or v violate the constraints.
    """
    given_motion = prescribed.any() or model.driven
    scale = (CONTRADICTION_TOLERANCE if given_motion else _ACCELERATION_TOLERANCE) * rate_magnitude(model, a, 2)
    bad = (np.abs(gap) * equation_weights(model) > scale[:, None]) & ~independent
    if not bad.any():
        return
    k, r = np.argwhere(bad)[0]
    constraint = next(driver for driver in model.constraints if driver.rows.start <= r < driver.rows.stop)
    q, location = states["q"][k], f" in state {k}" if len(a) > 1 else ""
    row = (f"its row {model.constraint_equation_names[r]} has a residual of {abs(gap[k, r]):.3g} "
           f"{model.constraint_equation_units[r]}/s^2")
    if not given_motion:
        if _open(model, q, states["v"][k]) or frequency:
            warn([LiedynWarning("constraint-not-met",
                                f"the constraint {constraint.name!r} is not met{location}: {row}, since q or v are open "
                                "(project_configuration, project_velocity)")])
            return
        raise ComputationError(f"no acceleration satisfies the constraint {constraint.name!r}{location}: {row}; the "
                               "configuration is singular, and the velocity leads along none of the branches that meet there")
    A = constraint_jacobian(model, q)
    moved = np.abs(scaled_equations(model, A)[constraint.rows]).max(axis=0) > RANK
    among = prescribed & moved if (prescribed & moved).any() else prescribed
    names = [model.v_names[i] for i in np.flatnonzero(among)] + [driver.name for driver in model.constraints if driver.driven]
    raise ComputationError(f"the prescribed motions contradict the constraint {constraint.name!r}{location}: {row}; prescribed "
                           f"are {', '.join(names)} (prescribe fewer, or consistent accelerations)")


def _open(model: Model, q: Array, v: Array) -> bool:
    """Return whether constraints are violated by more than the rounding of a state from a file."""
    weights = equation_weights(model)
    error, rate = constraint_residual(model, q) * weights, constraint_velocity(model, q, v) * weights
    return bool(np.abs(error).max() > _MAX_CLOSURE_ERROR
                or np.abs(rate).max() > _MAX_CLOSURE_ERROR * rate_magnitude(model, v, 1))
