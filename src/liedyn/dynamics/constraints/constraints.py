"""Constraints of a model at a state: residual, Jacobian, velocity, acceleration bias, projections, and reactions."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from liedyn.arrays import Array, ArrayLike, Frame, Mask, OnError, cache_aligned
from liedyn.codegen.rhs import StageKey, stage_addresses
from liedyn.codegen.trace import traced_module
from liedyn.dynamics.batching.arrays import as_array, as_mask, broadcast_states, check_frame, motion_tuple, wrenches_in_frame
from liedyn.dynamics.batching.calls import check_configuration, check_finite, evaluate, raise_for_code
from liedyn.dynamics.batching.failed_states import handle_failed_states
from liedyn.dynamics.constraints.rank import coordinate_scales, equation_weights, rate_magnitude
from liedyn.dynamics.kinematics import link_poses
from liedyn.dynamics.manifold import difference, integrate
from liedyn.dynamics.scales import model_scales
from liedyn.dynamics.singular_joints import with_positive_inertia
from liedyn.errors import ComputationError, ModelError
from liedyn.kernels.batch_blocks import BAD_F_EXT, OK
from liedyn.kernels.constraints import driver, kinematics, stages
from liedyn.kernels.constraints.driver import (
    CONTRADICTION_TOLERANCE,
    NOT_CLOSED,
    OUT_OF_RANGE,
    PROJECT_POSITION,
    PROJECT_VELOCITY,
    run_constraint_operation,
)
from liedyn.kernels.constraints.kinematics import (
    BIAS,
    JACOBIAN,
    RESIDUAL,
    VELOCITY,
    constraint_state_workspace_size,
    constraint_states,
)
from liedyn.kernels.constraints.stages import (
    GENERIC_STAGES,
    HOLONOMIC,
    PFAFFIAN,
    POSITION_CORRECTION,
    REMAINING,
    RESIDUALS,
    STAGES,
    TOLERANCE,
    VELOCITY_CORRECTION,
    stage_workspace_size,
)
from liedyn.model.model import Model
from liedyn.model.spatial import adjoint, pose
from liedyn.numba_tools.decorators import compile_entry_point, entry_point_address

# The workspace of a constrained robot, and the addresses of its stages --------------------------------------------------

class ConstraintWorkspaces(NamedTuple):
    """A workspace, its views, and the arrays of the model to which it refers."""

    buffer: Array       # of the workspace
    workspace: stages.ConstraintWorkspace             # views of the buffer
    packed_model: Array       # the model's arrays; the workspace contains their address


def constraint_workspace_for(model: Model, masks: Sequence[Mask], passive: bool, frequency: float = 0.0, forced: bool = False,
                             stage_set: Sequence[int] = STAGES, generic: bool = False) -> ConstraintWorkspaces:
    """Return a workspace for the masks `prescribed`, `fixed_position` and `fixed_velocity` of `StageKey` and these options.

    frequency: of Baumgarte's stabilization [1/s]; forced: whether external wrenches act; stage_set, generic: see
    `stage_addresses`.
    """
    n, nq, nv, frames, m = model.n_bodies, model.nq, model.nv, model.n_frames, model.nc
    driven = model.driven
    passive, stabilized = bool(passive and model.has_passive_forces), frequency > 0.0
    size = stages.constraint_workspace_size(n, nq, nv, m, driven, forced, 0)
    buffer = cache_aligned(size + stage_workspace_size(n, nv, frames, m), at=size)
    header, packed_model = buffer.view(np.int64), model._arrays.packed_model
    header[[stages.N, stages.NQ, stages.NV, stages.FRAMES, stages.M, stages.DRIVEN_COUNT, stages.HAS_WRENCHES, stages.PASSIVE,
            stages.SIZE]] = (n, nq, nv, frames, m, driven, forced, passive, buffer.size)
    header[[stages.PACKED_MODEL, stages.PACKED_MODEL_SIZE]] = packed_model.ctypes.data, packed_model.size
    workspace = traced_module("kernels.constraints.stages").constraint_workspace_views(buffer, n, nq, nv, m, driven, forced)
    workspace.frequency[0] = frequency
    for view, mask in zip((workspace.mask, workspace.fixed, workspace.fixed_velocity), masks, strict=True):
        view.view(np.bool_)[:nv] = mask
    workspace.weight[:], workspace.unit[:] = equation_weights(model), coordinate_scales(model)
    workspace.statistics[stages.ACCELERATION_SCALE] = model_scales(model).time**-2
    header[stages.OPERATION_ADDRESS] = entry_point_address(driver.run_constraint_operation)
    prescribed, fixed_position, fixed_velocity = (tuple(map(bool, mask)) for mask in masks)
    key = StageKey(prescribed, fixed_position, fixed_velocity, passive, stabilized, forced)
    header[stages.STAGE_ADDRESSES:stages.STAGE_ADDRESSES + len(STAGES)] = stage_addresses(model, key, stage_set, generic)
    return ConstraintWorkspaces(buffer, workspace, packed_model)


def use_generic_kernels(buffer: Array) -> None:
    """Select the generic kernels if generated code is not valid, as for angles beyond the range of its sine."""
    first = stages.STAGE_ADDRESSES
    buffer.view(np.int64)[first:first + len(STAGES)] = list(map(entry_point_address, GENERIC_STAGES))


# constraints ------------------------------------------------------------------------------------------------------------

_MAX_SLIDES = 20         # slides along the constraints: the error of each is their curvature times the distance
_MIN_DISTANCE = 1e-9     # the direction of a smaller distance is rounding
_PERPENDICULAR = 1e-9    # of the distance: omitting a slide changes the result by 1e-9 of it

_POSITION_STAGES, _VELOCITY_STAGES = (RESIDUALS, HOLONOMIC, POSITION_CORRECTION), (PFAFFIAN, VELOCITY_CORRECTION)


def constraint_residual(model: Model, q: ArrayLike, *, constraint_motion: Mapping[str, Any] | None = None,
                        on_error: OnError = "raise") -> Array:
    """Return the residual of each constraint equation (..., m) [rad | m], in the order of ``model.constraint_equation_names``.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
    constraint_motion : {closure name: (T, V, dV)}, optional
        Motion of the frames A of driven loops: pose (..., 4, 4) in the frame of the file, its twist (..., 6) and the twist's
        rate (..., 6), both in the moving frame [w; v]; what is omitted is zero. Closures that are not named do not move.
    on_error
        As in `inverse_dynamics`.

    Raises
    ------
    ModelError
        For a model without constraints.
    ShapeError, ConfigurationError, NameLookupError

    Notes
    -----
    The equations are those of `joints.loop_joints`: misalignment angles as 2 sin(angle/2), lengths along frame B.

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> ld.constraint_residual(model, [1.2, 0.2, 1.8]).round(3)      # the loop is open
    array([ 0.   ,  0.   , -0.108,  0.041,  0.   ])
    """
    if on_error != "raise":
        return handle_failed_states(constraint_residual, locals())
    return _constraint_states(model, RESIDUAL, q, np.zeros(model.nv), constraint_motion)


def constraint_velocity(model: Model, q: ArrayLike, v: ArrayLike, *, constraint_motion: Mapping[str, Any] | None = None,
                        on_error: OnError = "raise") -> Array:
    """Return the velocity of each constraint equation: A v minus that of driven loops; zero if v satisfies the constraints.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m] that closes the loops: see `assemble`.
    v : (..., nv) array
        Velocity [rad/s | m/s]; of a free joint its body twist [w; v].
    constraint_motion
        Motion of driven loops, as in `constraint_residual`.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    velocity : (..., m) array
        In the order of ``model.constraint_equation_names`` [rad/s | m/s].

    Raises
    ------
    ModelError, ShapeError, ConfigurationError, NameLookupError

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> q = ld.assemble(model, [1.2, 0.2, 1.8], fixed=["crank"]).q
    >>> ld.constraint_velocity(model, q, [1.0, 0.0, 0.0]).round(3)      # the loop opens
    array([ 0.   ,  0.   , -0.198,  0.276,  0.   ])
    """
    if on_error != "raise":
        return handle_failed_states(constraint_velocity, locals())
    return _constraint_states(model, VELOCITY, q, v, constraint_motion)


def constraint_bias(model: Model, q: ArrayLike, v: ArrayLike, *, constraint_motion: Mapping[str, Any] | None = None,
                    on_error: OnError = "raise") -> Array:
    """Return gamma of the constraints at acceleration level: ``A a + gamma = 0`` (K2 §3).

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m] that closes the loops: see `assemble`.
    v : (..., nv) array
        Velocity [rad/s | m/s]; of a free joint its body twist [w; v].
    constraint_motion
        Motion of driven loops, as in `constraint_residual`.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    gamma : (..., m) array
        In the order of ``model.constraint_equation_names`` [rad/s^2 | m/s^2].

    Raises
    ------
    ModelError, ShapeError, ConfigurationError, NameLookupError

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> q = ld.assemble(model, [1.2, 0.2, 1.8], fixed=["crank"]).q
    >>> v = ld.project_velocity(model, q, [1.0, 0.0, 0.0])
    >>> ld.constraint_bias(model, q, v).round(3)
    array([0.   , 0.   , 0.486, 0.165, 0.   ])
    """
    if on_error != "raise":
        return handle_failed_states(constraint_bias, locals())
    return _constraint_states(model, BIAS, q, v, constraint_motion)


def constraint_jacobian(model: Model, q: ArrayLike, *, constraint_motion: Mapping[str, Any] | None = None,
                        on_error: OnError = "raise") -> Array:
    """Return the Jacobian A of closures (constrained components of the twist of frame B relative to A) and couplings (K2 (55)).

    It is the derivative of `constraint_residual` at configurations with zero residual. Of a rolling closure this holds for the
    normal to the plane only: its other equations constrain velocities.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m] that closes the loops: see `assemble`.
    constraint_motion
        Motion of driven loops, as in `constraint_residual`.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    A : (..., m, nv) array
        Rows in the order of ``model.constraint_equation_names``.

    Raises
    ------
    ModelError, ShapeError, ConfigurationError, NameLookupError

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> q = ld.assemble(model, [1.2, 0.2, 1.8], fixed=["crank"]).q
    >>> ld.constraint_jacobian(model, q).shape
    (5, 3)
    """
    if on_error != "raise":
        return handle_failed_states(constraint_jacobian, locals())
    return _constraint_states(model, JACOBIAN, q, np.zeros(model.nv), constraint_motion)


def project_configuration(model: Model, q: ArrayLike, *, prescribed: ArrayLike | None = None,
                          constraint_motion: Mapping[str, Any] | None = None, tolerance: float = 1e-13,
                          on_error: OnError = "raise") -> Array:
    """Return q projected onto the constraints in the metric of the mass matrix.

    It takes Gauss-Newton steps on the manifold from a nearly closed configuration; for a guess, see `assemble`. Then q slides
    along the constraints until the displacement from the initial configuration is perpendicular to them.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m] near a closed one.
    prescribed : (nv,) bool array, optional
        Coordinates that do not change.
    constraint_motion
        Motion of driven loops, as in `constraint_residual`.
    tolerance : float
        Largest residual that counts as closed [rad | metres per characteristic length of the loop]. If rounding prevents it, a
        residual up to 1000 times as large is accepted.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    q : (..., nq) array
        A closed configuration.

    Raises
    ------
    ModelError, ShapeError, ConfigurationError
    ComputationError
        If the constraints cannot be satisfied from this configuration.

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> q = ld.project_configuration(model, [1.2, 0.6, 1.8])
    >>> bool(np.abs(ld.constraint_residual(model, q)).max() < 1e-12)
    True
    """
    if on_error != "raise":
        return handle_failed_states(project_configuration, locals())
    closed = _project(model, q, None, prescribed, constraint_motion, tolerance)
    return _slide_to_nearest(model, as_array(q, "q", (model.nq,)), closed, prescribed, constraint_motion,
                             tolerance) if closed.size else closed


def _slide_to_nearest(model: Model, start: Array, q: Array, prescribed: ArrayLike | None,
                      constraint_motion: Mapping[str, Any] | None, tolerance: float) -> Array:
    """Move closed configurations q along the constraints to the one nearest to `start` in the metric of M.

    There the displacement to `start` is perpendicular to the constraints. Newton steps from an open configuration are not enough.
    Equations that are dependent in closed configurations, as those of overconstrained linkages, are independent in open ones,
    where they add directions to the steps.
    """
    still = {name: motion_tuple(motion)[:1] for name, motion in (constraint_motion or {}).items()}    # with zero velocity
    unit = coordinate_scales(model)

    def distance(x: Array) -> Array:
        largest: Array = np.abs(x / unit).max(axis=-1, keepdims=True)
        return largest

    def slide(q: Array) -> tuple[Array, Array, Array]:
        away = difference(model, q, start)
        among = project_velocity(model, q, away, prescribed=prescribed, constraint_motion=still)
        return among, distance(among), distance(away)

    among, size, far = slide(q)
    moving = np.ones_like(size, dtype=bool)
    for _ in range(_MAX_SLIDES):
        moving &= (far > _MIN_DISTANCE) & (size > _PERPENDICULAR * far)
        if not moving.any():
            break
        try:
            projected = _project(model, integrate(model, q, np.where(moving, among, 0.0)), None, prescribed, constraint_motion,
                                 tolerance)
            next_among, next_size, away = slide(projected)
        except ComputationError:                                       # a neighbour that cannot be closed
            break
        moving &= next_size < size                                     # not at branches
        q, among, size, far = (np.where(moving, x, y) for x, y in (
            (projected, q), (next_among, among), (next_size, size), (away, far)))
    return q


def project_velocity(model: Model, q: ArrayLike, v: ArrayLike, *, prescribed: ArrayLike | None = None,
                     constraint_motion: Mapping[str, Any] | None = None, on_error: OnError = "raise") -> Array:
    """Return v projected onto the constraints in the metric of the mass matrix.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m] that closes the loops: see `assemble`.
    v : (..., nv) array
        Velocity [rad/s | m/s]; of a free joint its body twist [w; v].
    prescribed : (nv,) bool array, optional
        Coordinates whose velocity does not change.
    constraint_motion
        Motion of driven loops, as in `constraint_residual`.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    v : (..., nv) array
        The nearest velocity for which ``A v`` is the velocity of driven loops, or zero.

    Raises
    ------
    ModelError, ShapeError, ConfigurationError
    ComputationError
        If no velocity satisfies the constraints: velocities of `prescribed` coordinates or driven loops contradict them.

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> q = ld.assemble(model, [1.2, 0.2, 1.8], fixed=["crank"]).q
    >>> v = ld.project_velocity(model, q, [1.0, 0.0, 0.0])
    >>> bool(np.abs(ld.constraint_velocity(model, q, v)).max() < 1e-12)
    True
    """
    if on_error != "raise":
        return handle_failed_states(project_velocity, locals())
    projected = project_velocity_unchecked(model, q, v, prescribed, constraint_motion)
    if prescribed is not None or constraint_motion is not None:
        _check_velocity_consistent(model, q, projected, constraint_motion)
    return projected


def project_velocity_unchecked(model: Model, q: ArrayLike, v: ArrayLike, prescribed: ArrayLike | None = None,
                               constraint_motion: Mapping[str, Any] | None = None) -> Array:
    """Return the result of `project_velocity` without a check of the remaining residual."""
    return _project(model, q, v, prescribed, constraint_motion, 0.0)


def _check_velocity_consistent(model: Model, q: ArrayLike, v: Array, constraint_motion: Mapping[str, Any] | None) -> None:
    """Raise an error if dependent equations could not be satisfied."""
    residual = np.abs(constraint_velocity(model, q, v, constraint_motion=constraint_motion)).reshape(-1, model.nc)
    scaled = residual * equation_weights(model)
    bad = scaled > CONTRADICTION_TOLERANCE * rate_magnitude(model, v, 1).reshape(-1, 1)
    if bad.any():
        k, r = np.unravel_index(np.argmax(np.where(bad, scaled, 0.0)), residual.shape)
        state = f" of state {k}" if len(residual) > 1 else ""
        raise ComputationError(f"no velocity{state} satisfies the constraints: the residual of "
                               f"{model.constraint_equation_names[r]} "
                               f"remains {residual[k, r]:.3g} (prescribe fewer coordinates, or other velocities)")


def check_has_constraints(model: Model) -> None:
    """Raise ModelError for a model without constraints."""
    if not model.nc:
        raise ModelError(f"robot {model.name} has no constraints", expected="loops, couplings or a mimic in its file")


def _constraint_states(model: Model, quantity: int, q: ArrayLike, v: ArrayLike,
                       constraint_motion: Mapping[str, Any] | None) -> Array:
    check_has_constraints(model)
    sizes = model.n_frames, model.nc, model.driven
    shape = (model.nc, model.nv) if quantity == JACOBIAN else (model.nc,)
    return evaluate(model, ("constraints", quantity), constraint_states,
                    lambda n, nq, nv, _: constraint_state_workspace_size(n, nq, nv, *sizes),
                    {"q": q, "v": v, "constraint_motion": constraint_motion}, shape, static_arguments=model._arrays[2:4],
                    options=(quantity,))


def _project(model: Model, q: ArrayLike, v: ArrayLike | None, prescribed: ArrayLike | None,
             constraint_motion: Mapping[str, Any] | None, tolerance: float) -> Array:
    check_has_constraints(model)
    lead, arrays = broadcast_states(model, {"q": q, "constraint_motion": constraint_motion}
                                    if v is None else {"q": q, "constraint_motion": constraint_motion, "v": v})
    states = {name: x.copy() for name, x in arrays.items()}
    if not len(states["q"]):
        return np.empty((*lead, model.nq if v is None else model.nv))
    mask = np.zeros(model.nv, dtype=bool) if prescribed is None else as_mask(prescribed, model.nv)
    compile_entry_point(run_constraint_operation)
    check_states(model, **states)
    code, k, residual = _project_each(model, states, mask, float(tolerance), False)
    if code == OUT_OF_RANGE:
        code, k, residual = _project_each(model, states, mask, float(tolerance), True)
    if code == NOT_CLOSED:
        _raise_not_closed(model, states["q"][k], constraint_motion, residual)
    raise_for_code(model, code, mask, **states)
    return states["v" if v is not None else "q"].reshape(*lead, -1)


def _project_each(model: Model, states: dict[str, Array], mask: Mask, tolerance: float, generic: bool) -> tuple[int, int, float]:
    """Project states one at a time, in place. Return a code, the index of its state, and the remaining residual."""
    position = "v" not in states
    buffer, d, _ = constraint_workspace_for(with_positive_inertia(model), (mask,) * 3, False, generic=generic,
                                            stage_set=_POSITION_STAGES if position else _VELOCITY_STAGES)
    operation, address = PROJECT_POSITION if position else PROJECT_VELOCITY, buffer.ctypes.data
    d.statistics[TOLERANCE] = tolerance
    for k in range(len(states["q"])):
        for name, x in states.items():
            getattr(d, name)[:] = x[k]
        code = run_constraint_operation(address, operation)
        if code != OK:
            return code, k, d.statistics[REMAINING]
        for name in ("q", "v"):
            if name in states:
                states[name][k] = getattr(d, name)
    return OK, 0, 0.0


def check_states(model: Model, q: Array, v: Array | None = None, a: Array | None = None, tau: Array | None = None,
                 **other: Array) -> None:
    """Raise ConfigurationError for arrays (N, n) that are not finite, or quaternions that are not of unit norm.

    other: f_ext, constraint_motion.
    """
    check_configuration(model, q)
    for name, x in (("v", v), ("a", a), ("tau", tau)):
        if x is not None:
            check_finite(name, x, model.v_names)
    if not all(np.isfinite(x).all() for x in other.values()):
        raise_for_code(model, BAD_F_EXT, None, **other)


def _raise_not_closed(model: Model, q: Array, constraint_motion: Mapping[str, Any] | None, size: float) -> NoReturn:
    name = "one"
    if np.isfinite(q).all():
        residual = np.abs(constraint_residual(model, q, constraint_motion=constraint_motion))
        if residual.ndim == 1:                                 # the motion of driven loops is that of one state
            r = int(np.argmax(residual))
            name, size = model.constraint_equation_names[r], float(residual[r])
    raise ComputationError(f"the constraints cannot be satisfied from this configuration; the residual of {name} remains "
                           f"{size:.3g} (start from a closer configuration, or check with liedyn assemble "
                           "whether the lengths allow it)")


# Independent constraint equations at a configuration: the others depend on them -----------------------------------------

def independent_equations(model: Model, q: Array, prescribed: Mask, fixed: tuple[Mask, Mask] | None = None) -> tuple[
        tuple[int, ...], ...]:
    """Return the independent equations for projections of position, projections of velocity, and motion at a closed q (nq,).

    Each is in the order in which `constraints.solver` eliminates them. In motion, the accelerations of the coordinates
    `prescribed` (nv,) are inputs.

    fixed  coordinates that projections of position and of velocity do not move; None: no coordinate
    """
    model, none, indices = with_positive_inertia(model), np.zeros(model.nv, dtype=bool), []
    position, velocity = fixed or (none, none)
    for operation, mask, parts in ((PROJECT_POSITION, position, (RESIDUALS, HOLONOMIC, POSITION_CORRECTION)),
                                   (PROJECT_VELOCITY, velocity, (PFAFFIAN, VELOCITY_CORRECTION)),
                                   (PROJECT_VELOCITY, prescribed, (PFAFFIAN, VELOCITY_CORRECTION))):
        buffer, workspace, _ = constraint_workspace_for(model, (none, mask, mask), False, stage_set=parts)
        workspace.q[:], workspace.statistics[TOLERANCE] = q, -1.0           # factorizes for any residual
        run_constraint_operation(buffer.ctypes.data, operation)
        solver = workspace.solver
        order = solver.order.view(np.int64)
        indices.append(tuple(int(r) for r in order if solver.independent[r] > 0.5))
    return tuple(indices)


# Constraint forces as wrenches of closures, and as wrenches on links ----------------------------------------------------

def closure_wrenches(model: Model, q: ArrayLike, multipliers: ArrayLike, *, constraint_motion: Mapping[str, Any] | None = None,
                     frame: Frame = "local_world_aligned", on_error: OnError = "raise") -> Array:
    """Return the reaction of each closure: the wrench (..., n_closures, 6) [m; f] [N m | N] that link a exerts on link b.

    Link a receives the opposite wrench, about the same point. These are the columns ``reaction.<closure>`` of trajectory files.

    Parameters
    ----------
    q : (..., nq) array
    multipliers : (..., m) array
        From `constrained_forward_dynamics` and similar functions [N m | N]. If constraints are redundant,
        rigid bodies determine only sums of reactions; these are then the reactions of the multipliers of minimum norm.
    constraint_motion
        As in `constraint_residual`.
    frame : "local", "local_world_aligned" or "world"
        Axes of the closure's frame b, about its origin; axes of the world, about the origin of frame b; axes of the world, about
        the world's origin.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    (..., n_closures, 6) array
        In the order of the loops in ``model.description.loops``; couplings are not among them.

    Raises
    ------
    ModelError, ShapeError, ConfigurationError

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> q = ld.assemble(model, [1.2, 0.2, 1.8], fixed=["crank"]).q
    >>> motion = ld.constrained_forward_dynamics(model, q, np.zeros(3), [0.5, 0, 0])
    >>> ld.closure_wrenches(model, q, motion.multipliers)[0, 3:].round(2)     # force in the pin, world axes
    array([-2.  ,  0.  , -8.58])
    """
    if on_error != "raise":
        return handle_failed_states(closure_wrenches, locals())
    check_frame(frame)
    on_bodies, loops, poses = _wrenches_on_bodies(model, q, multipliers,
                                                  constraint_motion), model.description.loops, link_poses(model, q)
    F, T = np.zeros((*on_bodies.shape[:-3], len(loops), 6)), np.zeros((*poses.shape[:-3], len(loops), 4, 4))
    for k, loop in enumerate(loops):
        end, link = pose(loop.pose_b), np.eye(4)
        T[..., k, :, :] = end
        if loop.b in model.link_names:                           # else the ground
            i = model.link_index(loop.b)
            T[..., k, :, :], link = poses[..., i, :, :] @ end, model.link_pose[i]
        F[..., k, :] = on_bodies[..., k, 1, :] @ adjoint(link @ end)       # Ad*_T of each row
    return wrenches_in_frame(frame, T, F)


def constraint_wrenches(model: Model, q: ArrayLike, multipliers: ArrayLike, *, constraint_motion: Mapping[str, Any] | None = None,
                        on_error: OnError = "raise") -> Array:
    """Return the wrenches that closures exert on links: (..., n_links, 6) [m; f] [N m | N], each in its link's "local" frame.

    They can be passed as ``f_ext`` to the functions of the open tree, `Model.spanning_tree`, which then moves like the
    constrained robot. Forces of couplings are not included (`constraint_forces` returns all as generalized forces), nor are
    wrenches of closures on the ground. `closure_wrenches` returns the wrenches by closure.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m].
    multipliers : (..., m) array
        From `constrained_forward_dynamics` and similar functions [N m | N].
    constraint_motion
        Motion of driven loops, as in `constraint_residual`.
    on_error
        As in `inverse_dynamics`.

    Raises
    ------
    ModelError, ShapeError, ConfigurationError

    Notes
    -----
    Equation r of a closure exerts a wrench on B in frame B (`joints.loop_joints`), and the opposite on A (K2 (54): A^T lambda).

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> q = ld.assemble(model, [1.2, 0.2, 1.8], fixed=["crank"]).q
    >>> motion = ld.constrained_forward_dynamics(model, q, np.zeros(3), [0.5, 0, 0])
    >>> ld.constraint_wrenches(model, q, motion.multipliers).shape
    (4, 6)
    """
    if on_error != "raise":
        return handle_failed_states(constraint_wrenches, locals())
    on_bodies = _wrenches_on_bodies(model, q, multipliers, constraint_motion)
    out = np.zeros((*on_bodies.shape[:-3], len(model.link_names), 6))
    for c, loop in enumerate(model.description.loops):
        for side, name in enumerate((loop.a, loop.b)):
            if name in model.link_names:
                link = model.link_index(name)
                out[..., link, :] += on_bodies[..., c, side, :] @ adjoint(model.link_pose[link])       # Ad*_T of each row
    return out


def _wrenches_on_bodies(model: Model, q: ArrayLike, multipliers: ArrayLike, constraint_motion: Mapping[str, Any] | None) -> Array:
    """Return the wrench of each constraint on the bodies of A and of B, in their frames, (…, constraints, 2, 6)."""
    check_has_constraints(model)
    nc = len(model.constraints)
    return evaluate(model, "closure_wrenches", kinematics.closure_wrenches,
                    lambda n, nq, _nv, _: kinematics.closure_wrenches_workspace_size(n, nq, nc, model.n_frames, model.nc,
                                                                                     model.driven),
                    {"q": q, "constraint_motion": constraint_motion, "multipliers": multipliers}, (nc, 2, 6),
                    static_arguments=model._arrays[2:4])
