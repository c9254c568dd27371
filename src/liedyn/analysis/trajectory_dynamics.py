"""Inverse, forward and hybrid dynamics at the rows of a trajectory file, and their time derivatives.

For time derivatives, quantities that the file lacks are derived by splines (`analysis.smoothing`). The dynamics are computed
twice more, with splines of another degree and with added noise. The differences are reported as the estimated error.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from liedyn.analysis.numerical_differentiation import (
    NEGLIGIBLE,
    POINTS,
    ROUNDING,
    UNRELIABLE,
    SmoothingFit,
    ends_warnings,
    error_warnings,
    errors,
    estimate_warning,
    one_sided,
    percent,
    remedy,
    sizes_to_judge_by,
    term_sizes,
    unless_cancelled,
)
from liedyn.analysis.recorded_motion import (
    CompletedTrajectory,
    RecordedArrays,
    SampledMotion,
    columns_of_motion,
    header_along,
    motion_for,
    naming,
    on_couplings,
    positions_of,
    prescribed_of,
    require_forces,
    thrusts_without_wrenches,
)
from liedyn.analysis.recording_checks import (
    MEASURED,
    TorqueDifference,
    recording_warnings,
    torque_differences,
    unwrapped,
)
from liedyn.analysis.smoothing import Chain, derivations, knot_spacings
from liedyn.arrays import Array, Criterion, Integers, Mask, Progress
from liedyn.dynamics.constraints.constrained_dynamics import constrained_hybrid_dynamics
from liedyn.dynamics.constraints.constrained_inverse import actuated_mask, constrained_inverse_dynamics
from liedyn.dynamics.constraints.constraints import (
    closure_wrenches,
    constraint_bias,
    constraint_jacobian,
    constraint_residual,
    constraint_velocity,
    constraint_wrenches,
)
from liedyn.dynamics.constraints.couplings import follow_couplings
from liedyn.dynamics.constraints.rank import coordinate_scales, equation_weights, least_norm_solution, rate_magnitude
from liedyn.dynamics.dynamics import forward_dynamics, hybrid_dynamics, inverse_dynamics
from liedyn.dynamics.scales import model_scales
from liedyn.dynamics.time_derivatives import (
    higher_order_forward_dynamics,
    higher_order_hybrid_dynamics,
    higher_order_inverse_dynamics,
)
from liedyn.dynamics.transmitted_wrenches import transmitted_wrenches
from liedyn.errors import (
    ComputationError,
    ConfigurationError,
    LiedynWarning,
    Place,
    TrajectoryError,
    UsageError,
    WarningLog,
    list_names,
)
from liedyn.io.trajectory_csv import Trajectory, check_no_events
from liedyn.model.model import Model
from liedyn.model.spatial import pose
from liedyn.simulation.joint_friction import rigid_frictions
from liedyn.simulation.name_binding import joint_coordinates
from liedyn.simulation.run_checks import slow_friction_warnings
from liedyn.simulation.trajectory_columns import (
    WRENCH,
    bind_columns,
    bind_wrench_rate,
    constraint_columns,
    derivative_kind,
    joint_wrench_columns,
    motion_columns,
    reaction_comment,
    wrench_columns,
    wrench_components,
)

# Robots with constraints: closed configurations and actuated joints -----------------------------------------------------

_CLOSED = 1e-5          # maximum residual [rad | lengths of the loop], for files with six digits; of velocities: relative
_MOVED = 1e-6           # of the maximum acceleration: larger corrections of accelerations cause a warning


def actuated_joints(model: Model, motion: SampledMotion, selected: Mask) -> tuple[Mask, list[LiedynWarning]]:
    """Return the mask (nv,) of actuated joints and warnings.

    selected: (nv,) bool. If it is all False, the actuated joints are those of the robot file. If the file does not name any, they
    are those with a force in the trajectory, and a warning names them. For a robot without loops they are independent joints, as
    many as its motion has degrees of freedom.
    """
    if selected.any():
        return selected, []
    actuated: Mask = np.abs(motion.tau_or_zero).max(axis=0) > 0.0
    if model.actuated and not model.has_only_linear_couplings:
        motors = actuated_mask(model, None)
        names = ", ".join(model.v_names[k] for k in np.flatnonzero(actuated & ~motors))
        message = f"the trajectory has forces of {names}, which the robot file does not call actuated: they are not used"
        return motors, [LiedynWarning("actuated-joints", message)] if names else []
    if model.has_only_linear_couplings:
        independent = np.zeros(model.nv, dtype=bool)
        independent[model.elimination(actuated).independent] = True
        return independent, []
    if not actuated.any():
        raise UsageError(f"the robot {model.name} has constraints: name its actuated joints by the option "
                         f"--actuated, such as --actuated {model.joint_names[0]}, or by the key `actuated` of the robot file "
                         "(default: joints with a force in the trajectory)")
    names = ", ".join(name for name, is_actuated in zip(model.v_names, actuated, strict=True) if is_actuated)
    return actuated, [LiedynWarning("actuated-joints", f"actuated joints (those with forces in the trajectory): {names}")]


def inverse_of_mechanism(model: Model, motion: SampledMotion, actuated: Mask, criterion: Criterion) -> SampledMotion:
    """Return the motion with generalized forces, and with accelerations that satisfy the constraints. actuated: (nv,) bool."""
    a, warnings = satisfy_acceleration_constraints(model, motion)
    forces = constrained_inverse_dynamics(model, motion.q, motion.v, a, actuated, criterion=criterion, **motion.options)
    return replace(motion, a=a, tau=forces.tau, multipliers=forces.multipliers, warnings=(*motion.warnings, *warnings))


def satisfy_acceleration_constraints(model: Model, motion: SampledMotion) -> tuple[Array, list[LiedynWarning]]:
    """Return the nearest accelerations that satisfy the constraints, and a warning if the change is more than rounding.

    Accelerations derived from positions satisfy the constraints only approximately.
    """
    A, a = constraint_jacobian(model, motion.q), motion.a_or_zero
    residual = np.einsum("nrk,nk->nr", A, a) + constraint_bias(model, motion.q, motion.v)
    change = least_norm_solution(model, A, residual[..., None])[..., 0]
    size, largest = _size_of_rates(model, a, 2), np.abs(change / coordinate_scales(model)).max(initial=0.0)
    warning = LiedynWarning("moved-onto-constraints",
                            f"accelerations were projected onto the constraints (maximum change {largest:.2g}, maximum value "
                            f"{size:.3g})")
    return a - change, [warning] if largest > _MOVED * size else []


def _size_of_rates(model: Model, rates: Array, order: int) -> float:
    """Return the maximum of velocities (order 1) or accelerations (order 2) in rad and lengths, at least that of rounding."""
    rounding = ROUNDING / model_scales(model).time**order
    return max(float(rate_magnitude(model, rates, order).max(initial=0.0)), rounding)


def satisfy_constraints(model: Model, trajectory: Trajectory, motion: SampledMotion) -> SampledMotion:
    """Return the motion, with derived velocities replaced by the nearest ones that satisfy the constraints.

    Differentiation amplifies rounding of positions. Raises TrajectoryError if positions or given velocities violate the
    constraints, and UsageError for driven closures.
    """
    driven = [constraint.name for constraint in model.constraints if constraint.driven]
    if driven:
        raise UsageError(f"the closure {driven[0]} of {model.name} is driven: its motion is not in a trajectory file; "
                         "simulate it, or use the library (constraint_motion=…)")
    _check_closed(model, trajectory, "position", constraint_residual(model, motion.q), _CLOSED)
    tolerance = _CLOSED * _size_of_rates(model, motion.v, 1)
    if any(name.startswith("v.") for name in trajectory.columns):
        _check_closed(model, trajectory, "velocity", constraint_velocity(model, motion.q, motion.v), tolerance)
        return motion
    v, change = _nearest_velocities(model, motion)
    warning = LiedynWarning("moved-onto-constraints", "derived velocities were projected onto the constraints (maximum change "
                                                      f"{change:.2g}, maximum value {tolerance / _CLOSED:.3g})")
    variants = tuple(replace(variant, v=_nearest_velocities(model, variant)[0]) for variant in motion.variants)
    return replace(motion, v=v, variants=variants, warnings=(*motion.warnings, *([warning] if change > tolerance else [])))


def with_followers(model: Model, motion: SampledMotion) -> SampledMotion:
    """Return the motion of a robot with couplings, with followers moved to their values: recordings have few digits."""
    rates = [motion.v] if motion.a is None else [motion.v, motion.a]
    q, v, *a = follow_couplings(model, motion.q, *rates)
    variants = tuple(with_followers(model, variant) for variant in motion.variants)
    return replace(motion, q=q, v=v, a=a[0] if a else None, variants=variants)


def _nearest_velocities(model: Model, motion: SampledMotion) -> tuple[Array, float]:
    """Return the nearest velocities (N, nv) that satisfy the constraints, and the maximum change [rad/s | loop lengths/s]."""
    residual = constraint_velocity(model, motion.q, motion.v)
    change = least_norm_solution(model, constraint_jacobian(model, motion.q), residual[..., None])[..., 0]
    return motion.v - change, float(np.abs(change / coordinate_scales(model)).max(initial=0.0))


def _check_closed(model: Model, trajectory: Trajectory, quantity: str, x: Array, tolerance: float) -> None:
    """Raise TrajectoryError if a residual in x (N, m) exceeds the tolerance."""
    weights = equation_weights(model)
    error = np.abs(x) * weights
    if error.max(initial=0.0) > tolerance:
        k, r = np.unravel_index(np.argmax(error), x.shape)
        raise TrajectoryError(f"the {quantity} violates the constraints",
                              place=Place(trajectory.source, int(trajectory.lines[k])),
                              found=f"a residual of {abs(x[k, r]):.3g} in {model.constraint_equation_names[r]}",
                              expected=f"at most {tolerance / weights[r]:.2g}",
                              hint="does the trajectory belong to this robot? (liedyn assemble closes a configuration)")


# transmitted wrenches ---------------------------------------------------------------------------------------------------

# Wrenches that joints transmit, including fixed joints and the cut joints of loops, in selected axes.

_OF_JOINTS = {"world": "world axes", "link": "axes of the child link",
              "joint": "axes of the joint's frame, fixed in the parent link"}
_OF_LOOPS = {"world": "world axes", "link": "axes of link b", "joint": "axes of frame b"}


def joint_wrenches_along(model: Model, motion: SampledMotion, axes: str) -> dict[str, Array]:
    """Return the wrenches that all joints transmit, as `transmitted_wrenches`.

    motion  with q, v, a, f_ext and, for a robot with constraints, multipliers
    axes    "world", "link" or "joint"
    """
    reactions = None if motion.multipliers is None else constraint_wrenches(model, motion.q, motion.multipliers)
    return transmitted_wrenches(model, motion.q, motion.v, motion.a_or_zero, axes, f_ext=motion.f_ext, reactions=reactions,
                                passive=motion.passive)


def reactions_along(model: Model, q: Array, multipliers: Array, axes: str) -> Array:
    """Return wrenches (N, n_closures, 6) on link b from link a, about the origin of frame b; "joint" are axes of frame b."""
    if axes == "world":
        return closure_wrenches(model, q, multipliers)
    F = closure_wrenches(model, q, multipliers, frame="local")
    if axes == "link":
        for k, loop in enumerate(model.description.loops):
            R = pose(loop.pose_b)[:3, :3]
            F[:, k] = np.concatenate([F[:, k, :3] @ R.T, F[:, k, 3:] @ R.T], axis=1)
    return F


def wrench_comments(model: Model, axes: str) -> dict[str, str]:
    """Return the comments of the file that name the axes of wrenches."""
    out = {"wrench": f"on the child link from the parent link, with the motor's force; {_OF_JOINTS[axes]}, about the child "
                     "link's origin"}
    if model.description.loops:
        out["reaction"] = reaction_comment(_OF_LOOPS[axes])
    return out


# dynamics along a trajectory --------------------------------------------------------------------------------------------

@dataclass(frozen=True, eq=False)
class DynamicsRequest:
    """Dynamics of a motion, before they are computed.

    compute     function (model, motion) that returns the motion with complete a and tau; also used for other motions
    prescribed  (nv,) bool: coordinates whose force is a result
    """

    model: Model
    motion: SampledMotion
    compute: Callable[[Model, SampledMotion], SampledMotion]
    prescribed: Mask


def dynamics_along(  # noqa: PLR0913 (independent options of the commands)
        model: Model, trajectory: Trajectory, of: str, prescribed: Sequence[str] = (), *, actuated: Sequence[str] = (),
        criterion: Criterion = "unique", order: int = 0, smooth: float | str | None = None, wrenches: str | None = None,
        progress: Progress | None = None) -> CompletedTrajectory:
    """Return inverse, forward or hybrid dynamics along a trajectory of q; missing v and a are derived.

    External wrenches are taken from columns fext.<link>.<component>. The comment `# passive:` defines whether joint springs,
    damping and friction act.

    Parameters
    ----------
    of : "inverse", "forward" or "hybrid"
        Results: generalized forces; accelerations, from the forces of the file; or forces of the prescribed joints and
        accelerations of the others.
    prescribed : patterns of joint names, for "hybrid"
    actuated : patterns of joint names
        For "inverse" of a robot with constraints: actuated joints; default: those with a force in the trajectory.
    criterion
        For "inverse" of a robot with constraints, as in `constrained_inverse_dynamics`.
    order, smooth, progress
        If `order` or `smooth` is given, time derivatives up to this order are also computed, see `higher_order_along`.
    wrenches : "world", "link" or "joint", optional
        Axes of the wrenches that joints transmit; default: these are not computed.

    Raises
    ------
    TrajectoryError, UsageError, ComputationError
    """
    for option, is_given in (("actuated", bool(actuated)), ("criterion", criterion != "unique")):
        if is_given and not model.nc:
            raise UsageError(f"the robot {model.name} has no constraints, so the motion determines all forces: --{option} does "
                             "not apply")
    if order or smooth is not None:
        if wrenches:
            raise UsageError("--wrenches cannot be combined with --order and --smooth: write v and a first with "
                             "--smooth, then use --wrenches on the result")
        return higher_order_along(model, trajectory, order, of=of, patterns=prescribed, smooth=smooth, progress=progress)
    return _along(model, trajectory, dynamics_request(model, trajectory, of, prescribed, actuated, criterion), wrenches)


def dynamics_request(model: Model, trajectory: Trajectory, of: str, prescribed: Sequence[str] = (),
                     actuated: Sequence[str] = (), criterion: Criterion = "unique") -> DynamicsRequest:
    """Return the request for a trajectory; arguments as for `dynamics_along`."""
    mask = prescribed_of(model, of, prescribed)
    motion = motion_for(model, trajectory, of, mask)
    motors = np.zeros(model.nv, dtype=bool)
    if model.nc:
        motion = satisfy_constraints(model, trajectory, motion)
        if of == "inverse":
            motors, warnings = actuated_joints(model, motion, joint_coordinates(model, actuated))
            motion = replace(motion, warnings=(*motion.warnings, *warnings))

    def compute(model: Model, motion: SampledMotion) -> SampledMotion:
        q, v, a, tau = motion.q, motion.v, motion.a_or_zero, motion.tau_or_zero
        if of == "inverse":
            if model.nc:
                return inverse_of_mechanism(model, motion, motors, criterion)
            return replace(motion, tau=inverse_dynamics(model, q, v, a, **motion.options))
        if model.nc:
            constrained = constrained_hybrid_dynamics(model, q, v, a, tau, mask, **motion.options)
            return replace(motion, a=constrained.a, tau=constrained.tau, multipliers=constrained.multipliers)
        if of == "forward":
            return replace(motion, a=forward_dynamics(model, q, v, tau, **motion.options))
        a, tau = hybrid_dynamics(model, q, v, a, tau, mask, **motion.options)
        return replace(motion, a=a, tau=tau)

    return DynamicsRequest(model, motion, compute, mask)


def complete_motion(request: DynamicsRequest, motion: SampledMotion) -> SampledMotion:
    """Return the motion with complete a and tau. Raise ConfigurationError if forces are not finite."""
    complete = request.compute(request.model, motion)
    if not np.isfinite(complete.tau_or_zero).all():
        raise ConfigurationError("the generalized forces are not finite")
    return complete


def _along(model: Model, trajectory: Trajectory, request: DynamicsRequest, axes: str | None = None) -> CompletedTrajectory:
    """Return the trajectory with the results. axes: of the wrenches that joints transmit; None: these are omitted."""
    motion = complete_motion(request, request.motion)
    header, columns = header_along(model, trajectory, motion.passive), columns_of_motion(model, motion)
    if motion.multipliers is not None:
        reactions = reactions_along(model, motion.q, motion.multipliers, axes or "world")
        columns += constraint_columns(model, motion.multipliers, reactions,
                                      np.abs(constraint_residual(model, motion.q)).max(axis=1))
    if axes:
        header |= wrench_comments(model, axes)
        columns += joint_wrench_columns(joint_wrenches_along(model, motion, axes))
    limits = recording_warnings(model, trajectory.t, motion.q, motion.v, motion.tau_or_zero, request.motion.a,
                                trajectory)
    slow = _slow_friction(model, trajectory.t, motion) if motion.passive else []
    ends = POINTS // 2 if motion.variants and len(motion.q) > POINTS else 0
    measured, differences, compared = _compared(model, trajectory, request.prescribed, motion.tau_or_zero, ends)
    return CompletedTrajectory(header, trajectory.t, columns + measured,
                               (*motion.warnings, *limits, *slow, *compared, *_derivation_warnings(model, request, motion)),
                               differences)


def _compared(model: Model, trajectory: Trajectory, prescribed: Mask, computed: Array,
              ends: int) -> tuple[list[tuple[str, str, Array]], tuple[TorqueDifference, ...], list[LiedynWarning]]:
    """Return columns of measured torques of prescribed coordinates, their differences from computed ones, and messages.

    ends  as in `torque_differences`
    """
    measured = bind_columns(model, trajectory, "tau", partial=True)
    if measured is None:
        return [], (), []
    measured = np.where(prescribed & ~np.isnan(measured), measured, 0.0)
    differences, messages = torque_differences(model, measured, computed, ends)
    coordinates = {difference.coordinate for difference in differences}
    columns = [(f"{MEASURED}.{name.partition('.')[2]}", unit, x) for coordinate, (name, unit, x)
               in zip(model.v_names, motion_columns(model, tau=measured), strict=True) if coordinate in coordinates]
    return columns, differences, messages


def _slow_friction(model: Model, t: Array, motion: SampledMotion) -> list[LiedynWarning]:
    speed, rigid = np.abs(motion.v), rigid_frictions(model)
    warnings = slow_friction_warnings(model, speed.max(axis=0, initial=0.0), np.diff(t) @ speed[1:])
    if rigid:
        names = list_names([friction.name for friction in rigid], 4)
        warnings.append(LiedynWarning("friction-regularized", f"rigid friction of {names} acts as regularized friction here: it "
                                      "is zero at rest, where it is not a function of the state"))
    return warnings


def _derivation_warnings(model: Model, request: DynamicsRequest, motion: SampledMotion) -> list[LiedynWarning]:
    """Return warnings with the estimated error of results from derived velocities or accelerations."""
    forces, accelerations = motion_columns(model, tau=motion.a), motion_columns(model, a=motion.a)
    columns = [force if is_prescribed else acceleration
               for force, acceleration, is_prescribed in zip(forces, accelerations, request.prescribed, strict=True)]

    def results(motion: SampledMotion) -> Array:
        return np.where(request.prescribed, motion.tau_or_zero, motion.a_or_zero)

    def terms(ends: int) -> Array:
        inputs, zero = request.motion, np.zeros_like(motion.v)
        rest = replace(inputs, v=zero, a=zero if model.nc else inputs.a)                # with constraints, a depends on v
        without = [(weightless(model), inputs), (model, replace(inputs, passive=False)), (model, replace(inputs, f_ext=None)),
                   (model, rest)]
        return _term_sizes(model, results(motion), [results(request.compute(*arguments)) for arguments in without], ends)

    return error_warnings(results(motion), motion.variants, lambda variant: results(request.compute(model, variant)),
                          [name for name, *_ in columns], [unit for _, unit, _ in columns],
                          model_scales(model).unit_scales(unit for _, unit, _ in columns), None if model.nc else "--smooth auto",
                          terms)


def _term_sizes(model: Model, results: Array, partial: Sequence[Array], ends: int) -> Array:
    """Return the sizes (nv,) of the terms of generalized forces and accelerations (N, nv); arguments as for `term_sizes`.

    The components of one joint count together, since they depend on the choice of its axes.
    """
    sizes, scales = term_sizes(results, partial, ends), model_scales(model).force_scales(model.v_units)
    for joint in model.joints:
        sizes[joint.v] = scales[joint.v] * (sizes[joint.v] / scales[joint.v]).max()
    return sizes


def weightless(model: Model) -> Model:
    """Return the model without gravity."""
    return model.with_changes(gravity=np.zeros(3))


# dynamics with time derivatives along a trajectory ----------------------------------------------------------------------

_ROWS = 4096                            # number of rows that are computed at a time
_NOTHING = 1e-6                         # of a result: minimum scale of its derivatives, integrated over the whole motion


@dataclass(frozen=True, eq=False)
class HigherOrderRequest:
    """The dynamics and time derivatives to compute.

    of                 "inverse", "forward" or "hybrid"
    order              highest time derivative of the results
    prescribed         (nv,) bool: coordinates whose motion is given
    wrench_components  components of external wrenches that act, such as "hand.fx"
    passive            whether springs, damping and friction of the joints act
    """

    of: str
    order: int
    prescribed: Mask
    wrench_components: list[str]
    passive: bool

    def name(self, k: int, j: int) -> str:
        """Return the kind of the columns of the k-th derivative of the result at coordinate j."""
        return derivative_kind("tau" if self.prescribed[j] else "a", k)

    def results(self, a: Array, tau: Array) -> Array:
        """Return the results among a and tau and their derivatives (N, order + 1, nv)."""
        return np.where(self.prescribed, tau, a)


@dataclass(frozen=True, eq=False)
class State:
    """Inputs of the dynamics: q (N, nq), and v (N, K, nv), tau (N, K, nv), wrench (N, K, components) with their derivatives."""

    q: Array
    v: Array
    tau: Array | None
    wrench: Array | None


def higher_order_along(model: Model, trajectory: Trajectory, order: int, *, of: str, patterns: Sequence[str] = (),
                       smooth: float | str | None = None, progress: Progress | None = None) -> CompletedTrajectory:
    """Return forces ("inverse"), accelerations ("forward") or both ("hybrid") with their first `order` time derivatives.

    Derivatives are taken from columns d1a, d2a, …, d1tau, …, d1fext, …. Missing ones are derived from the highest given
    derivative below them, or from q. Warnings report which are derived, and the estimated errors of the results.

    Parameters
    ----------
    patterns : of joint names, for "hybrid": the joints whose motion is given
    smooth : float or "auto", optional
        Distance between the knots of least-squares splines [s]; default: splines interpolate all rows. "auto" takes, for each
        coordinate, the distance that minimizes the estimated error of its highest derivative.
    progress : optional
        An object with `stage(text)`, a context, and `update(fraction)`.

    Raises
    ------
    TrajectoryError, ComputationError
    UsageError
        For a robot with loops, and for a pattern that matches nothing.
    """
    if not model.has_only_linear_couplings:
        raise UsageError(f"the robot {model.name} has loops: time derivatives of its dynamics are "
                         "not available; omit --order and --smooth")
    from liedyn.simulation.run import SilentProgress

    show: Progress = progress or SilentProgress()
    check_no_events(trajectory, "time derivatives")
    t, q = trajectory.t, positions_of(model, trajectory)
    unwrapping: list[LiedynWarning] = []
    with naming(trajectory):
        if bind_columns(model, trajectory, "v") is None:
            q, unwrapping = unwrapped(model, q)
        closed = on_couplings(model, RecordedArrays(q, None, None, None, None, trajectory.passive))
    q, unwrapping = closed.q, [*unwrapping, *closed.warnings]
    passive, thrusts = trajectory.passive, thrusts_without_wrenches(model, trajectory)
    if thrusts:
        raise TrajectoryError("time derivatives require the wrenches of thrusts", found=list_names([*thrusts.values()], 4),
                              expected="columns fext of the links on which they act, as in files of runs")
    request = HigherOrderRequest(of, order, prescribed_of(model, of, patterns), wrench_components(model, trajectory), passive)
    chains = _chains(model, trajectory, request, q)
    with show.stage("differentiating the recorded motion"), naming(trajectory):
        rows, warnings = knot_spacings(t, chains, smooth)
    header = header_along(model, trajectory, passive)
    fits = [SmoothingFit(rows)]
    derived = derivations(t, chains, rows)
    if derived:
        header["derived"] = "; ".join(derived)
        fits += SmoothingFit(rows).checks()

    def compute(fit: SmoothingFit) -> tuple[State, Array, Array]:
        with show.stage("differentiating the recorded motion"):
            state = _state(model, chains, t, fit)
        with show.stage("computing"):
            return state, *_compute(model, request, state, show)

    def results_of(fit: SmoothingFit) -> Array:
        _, a, tau = compute(fit)
        return request.results(a, tau)

    def partial() -> list[Array]:
        rest = state.v.copy()
        rest[:, slice(None) if model.nc else 0] = 0.0
        without = [(weightless(model), request, state), (model, replace(request, passive=False), state),
                   (model, request, replace(state, wrench=None)), (model, request, replace(state, v=rest))]
        return [request.results(*_compute(*arguments, show))[:, 0] for arguments in without]

    fit, *checks = fits
    state, a, tau = compute(fit)
    columns = _columns(model, request, state, a, tau)
    limits = recording_warnings(model, t, state.q, state.v[:, 0], tau[:, 0], trajectory=trajectory)
    measured, differences, compared = _compared(model, trajectory, request.prescribed, tau[:, 0], 0)
    limits += compared
    if derived:
        errors_of = _HigherOrderErrors(model, request, chains, t, rows, smooth, results_of, partial)
        warnings = [*(LiedynWarning("derived-motion", text) for text in derived), *warnings, *unwrapping, *limits,
                    *errors_of.warnings(request.results(a, tau), [results_of(check) for check in checks])]
    else:
        warnings = [*warnings, *unwrapping, *limits]
    return CompletedTrajectory(header, t, columns + measured, tuple(warnings), differences)


def _chains(model: Model, trajectory: Trajectory, request: HigherOrderRequest, q: Array) -> list[Chain]:
    """Return the chains of the motion, of generalized forces if they are inputs, and of external wrenches."""
    kinds = ["v", *(derivative_kind("a", k) for k in range(request.order + 1))] if request.prescribed.any() else ["v"]
    chains = [Chain(model, ["q", *kinds], [q, *(bind_columns(model, trajectory, kind) for kind in kinds)], model.v_units)]
    if not request.prescribed.all():
        kinds = [derivative_kind("tau", k) for k in range(request.order + 1)]
        forces = require_forces(model, trajectory, bind_columns(model, trajectory, "tau", partial=True), request.of,
                                request.prescribed)
        arrays = [forces, *(bind_columns(model, trajectory, kind) for kind in kinds[1:])]
        chains.append(Chain(model, kinds, arrays, model.v_units))
    arrays = [bind_wrench_rate(model, trajectory, request.wrench_components, k) for k in range(request.order + 1)]
    if request.wrench_components:
        units = tuple("m" if name.endswith(("mx", "my", "mz")) else "f" for name in request.wrench_components)
        chains.append(Chain(model, [derivative_kind("fext", k) for k in range(request.order + 1)], arrays, units,
                            tuple(request.wrench_components)))
    return chains


def _state(model: Model, chains: list[Chain], t: Array, fit: SmoothingFit) -> State:
    filled = {chain.names[0]: chain.filled(t, fit) for chain in chains}
    q, *v = filled.pop("q")
    stacked = {kind: np.stack(arrays, axis=1) for kind, arrays in filled.items()}
    if model.nc:
        q, *v = follow_couplings(model, q, *v)
    return State(q, np.stack(v, axis=1), stacked.get("tau"), stacked.get("fext"))


def _compute(model: Model, request: HigherOrderRequest, state: State, progress: Progress) -> tuple[Array, Array]:
    """Return a and tau with their derivatives, (N, order + 1, nv) each."""
    count = len(state.q)
    a, tau = (np.zeros((count, request.order + 1, model.nv)) for _ in range(2))
    if request.prescribed.any():
        a[:] = state.v[:, 1:]
    if state.tau is not None:
        tau[:] = state.tau
    for start in range(0, count, _ROWS):
        rows = slice(start, start + _ROWS)
        q, v = state.q[rows], state.v[rows]
        passive, wrenches = request.passive, _wrenches(request, state, rows)
        if request.of == "inverse":
            tau[rows] = higher_order_inverse_dynamics(model, q, v, passive=passive, f_ext_derivatives=wrenches)
        elif request.of == "forward":
            a[rows] = higher_order_forward_dynamics(model, q, v[:, 0], tau[rows], passive=passive, f_ext_derivatives=wrenches)
        else:
            a[rows], tau[rows] = higher_order_hybrid_dynamics(model, q, v[:, 0], a[rows], tau[rows], request.prescribed,
                                                              passive=passive, f_ext_derivatives=wrenches)
        progress.update(min(1.0, rows.stop / count))
    for x, quantity in ((a, "accelerations"), (tau, "generalized forces")):
        if not np.isfinite(x).all():
            raise ComputationError(f"the {quantity} or their derivatives are not finite: nothing is written")
    return a, tau


def _wrenches(request: HigherOrderRequest, state: State, rows: slice) -> dict[str, Array] | None:
    """Return external wrenches {link: (rows, K, 6)}; components that the file does not have are zero."""
    if state.wrench is None:
        return None
    wrench = state.wrench[rows]
    out: dict[str, Array] = {}
    for j, name in enumerate(request.wrench_components):
        link, _, part = name.rpartition(".")
        out.setdefault(link, np.zeros((*wrench.shape[:2], 6)))[:, :, WRENCH.index(part)] = wrench[:, :, j]
    return out


def _columns(model: Model, request: HigherOrderRequest, state: State, a: Array, tau: Array) -> list[tuple[str, str, Array]]:
    orders = range(request.order + 1)
    rates = {derivative_kind(kind, k): x[:, k] for kind, x in (("a", a), ("tau", tau)) for k in orders}
    columns = motion_columns(model, (), None, q=state.q, v=state.v[:, 0], **rates)
    return columns if state.wrench is None else columns + wrench_columns(request.wrench_components, state.wrench.swapaxes(0, 1))


@dataclass(frozen=True, eq=False)
class _HigherOrderErrors:
    """Estimates of the errors of results with time derivatives.

    chains      quantities of which some are derived by splines
    rows        rows per knot of each kind of quantity
    smooth      option of `higher_order_along`
    results_of  function that returns the results (N, order + 1, nv) of another fit
    partial     function that returns the results of order 0 without one of their terms, for each term
    """

    model: Model
    request: HigherOrderRequest
    chains: list[Chain]
    t: Array
    rows: dict[str, Integers]
    smooth: float | str | None
    results_of: Callable[[SmoothingFit], Array]
    partial: Callable[[], Sequence[Array]]

    def warnings(self, results: Array, checks: Sequence[Array]) -> WarningLog:
        """Return warnings with the estimated errors of the results of each order, and about results that are not reliable.

        checks  (N, order + 1, nv) results of a fit with another degree, and of one with added noise
        """
        model, request = self.model, self.request
        units = [f"{unit} {is_prescribed}" for unit, is_prescribed in zip(model.v_units, request.prescribed, strict=True)]
        rows_per_knot = {kind: int(x.max(initial=1)) for kind, x in self.rows.items()}
        ends = max(one_sided(len(results), last - first, rows_per_knot[chain.names[first]])
                   for chain in self.chains for first, last in chain.gaps())
        inner, outer, size = errors(results, checks, ends)
        duration = self.t[-1] - self.t[0]
        scales, orders = model_scales(model), np.arange(len(size))[:, None]
        zero = ROUNDING * np.where(request.prescribed, scales.force_scales(model.v_units),
                                   scales.unit_scales(f"{unit}/s^2" for unit in model.v_units))
        nothing = np.maximum(_NOTHING * size[:1] / duration**orders, zero / min(scales.time, np.median(np.diff(self.t)))**orders)
        is_moving, size = size > nothing, sizes_to_judge_by(np.maximum(size, nothing), units)
        if (np.maximum(inner, outer) > NEGLIGIBLE * size).any():
            size[0] = unless_cancelled(size[0], inner[0], _term_sizes(model, results[:, 0], self.partial(), ends))
        inner, outer = inner / size, outer / size
        worst = [int(k) for k in inner.argmax(axis=1)]
        worst_text = ", ".join(f"{request.name(k, j)} {percent(inner[k, j])}" for k, j in enumerate(worst))
        warnings = WarningLog()
        text = (f"estimated error (maximum): {worst_text} ({model.v_names[worst[-1]]}), {percent(outer[-1].max())} within {ends} "
                "rows of the ends")
        warnings.extend([estimate_warning(text, inner, outer, np.ones_like(inner))])
        unreliable = np.flatnonzero(inner.max(axis=1) > UNRELIABLE)
        if len(unreliable):
            order = int(unreliable[0])
            noisy = self._is_noise(results, checks, ends, (order, worst[order]), size)
            warnings.add("not-reliable", f"NOT RELIABLE: {'; '.join(self._unreliable_columns(inner))}: "
                         f"{_remedy(noisy, max(rows_per_knot.values()), self.smooth)}")
        else:
            warnings.extend(ends_warnings(ends, self._unreliable_columns(np.where(is_moving, outer, 0.0))))
        return warnings

    def _is_noise(self, results: Array, checks: Sequence[Array], ends: int, entry: tuple[int, int], size: Array) -> bool:
        """Return whether noise, not the spline, is the cause of the error of an entry (order, coordinate)."""
        if self.smooth == "auto":       # it balances both errors: noise is the cause if results without smoothing are noisy
            exact, disturbed = self.results_of(SmoothingFit()), self.results_of(SmoothingFit(noisy=True))
            return bool(errors(exact, [disturbed], ends)[0][entry] > UNRELIABLE * size[entry])
        by_spline, by_noise = (errors(results, [check], ends)[0][entry] for check in checks)
        return bool(by_noise > 2.0 * by_spline)

    def _unreliable_columns(self, error: Array) -> list[str]:
        """Return texts with the columns whose relative error (order + 1, nv) is large, from their lowest such order."""
        columns: dict[str, list[str]] = {}
        lowest = (error > UNRELIABLE).argmax(axis=0)
        coordinates = map(int, np.flatnonzero((error > UNRELIABLE).any(axis=0)))
        for j in sorted(coordinates, key=lambda j: (lowest[j], -error[lowest[j], j])):
            k = int(lowest[j])
            name = f"{self.request.name(k, j)}{' and higher derivatives' if k < self.request.order else ''}"
            columns.setdefault(name, []).append(f"{percent(error[k, j])} ({self.model.v_names[j]})")
        return [f"{name}, error {', '.join(texts)}" for name, texts in columns.items()]


def _remedy(noisy: bool, rows: int, smooth: float | str | None) -> str:
    if smooth == "auto":
        return remedy(False, "rows", None) if not noisy else (
            "the noise of the rows is too large for their number, and no knot spacing has a smaller estimated error; give "
            "measured derivatives as columns")
    return remedy(noisy, "rows" if rows == 1 else "knots", "--smooth auto" if rows == 1 else "a longer --smooth or --smooth auto")
