"""Identification: base parameters estimated from a recorded motion and its generalized forces."""
from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import numpy as np

from liedyn.analysis.column_repairs import MisfittingMotion, repair_warnings
from liedyn.analysis.nonlinear_parameters import (
    FRICTION_RISE,
    STRIBECK_SPEED,
    TORQUE_SCALE,
    ZERO_OFFSET,
    LinearizationPoint,
    NonlinearParameters,
    starting_point,
    stribeck_friction,
    with_rises,
)
from liedyn.analysis.numerical_differentiation import ROUNDING
from liedyn.analysis.numerical_differentiation import noise as noise_of
from liedyn.analysis.recorded_motion import (
    RecordedArrays,
    missing_array,
    motion_of_arrays,
    naming,
    on_couplings,
    recorded_arrays,
    require_columns,
)
from liedyn.analysis.recorded_robot import as_recorded, attached_warnings, robot_of, unknown_warnings
from liedyn.analysis.recorded_signals import signal_warnings, suspect_warnings
from liedyn.analysis.recording_checks import (
    ALIKE,
    conversion_hint,
    is_far,
    scale_text,
    torque_scale,
    torque_unit,
    unit_warnings,
    unwrapped,
)
from liedyn.analysis.smoothing import NoisySamples, noisy_samples
from liedyn.analysis.weighted_least_squares import (
    ESTIMABLE,
    SIGNIFICANT,
    ZERO_OFFSET_OF,
    FilteredEquations,
    FittedMotion,
    JointFit,
    LeastSquaresSolution,
    StateNoiseEffect,
    compressed,
    effect_of_noise,
    equation_count,
    fit,
    joint_fits,
    solve,
    variance_by_force,
)
from liedyn.arrays import Array, ArrayLike, Base, Mask, Wrenches
from liedyn.dynamics.constraints.loop_reduction import independent_motion, loop_reduction, projected, projection_at
from liedyn.dynamics.dynamics import inverse_dynamics
from liedyn.dynamics.inertial_parameters import (
    TOLERANCE,
    BaseParameters,
    base_parameters,
    inertial_regressor,
    joint_parameter_kinds,
)
from liedyn.dynamics.scales import model_scales
from liedyn.errors import (
    ComputationError,
    ConfigurationError,
    LiedynWarning,
    ModelError,
    TrajectoryError,
    UsageError,
    WarningLog,
    list_names,
    warn,
)
from liedyn.immutable import Immutable
from liedyn.io.ros_bag import BagOptions
from liedyn.io.trajectory_csv import Trajectory, check_no_events, read_trajectory
from liedyn.model.description import FREE
from liedyn.model.model import Model
from liedyn.robot_files import ReadingOptions, read_model

RELIABLE, IMPRECISE, UNRELIABLE, UNSEEN, MIXED, UNPHYSICAL = (
    "reliable", "imprecise", "not reliable", "not excited", "not separable", "not physical")
IMPRECISE_FROM = 0.3  # deviation relative to the value from which an estimate is imprecise
_MATERIAL = 0.01      # of a joint's torque (rms): a value with a smaller effect is judged as if it had this effect
_LEAST_NOISE = 1e-12  # of the maximum force, in characteristic units: exact data are weighted as if they had rounding only
# the same for a joint whose measured force is zero throughout: weights that differ more lose the others to rounding
_UNACTUATED_NOISE = 1e-8
_DRAWS = 8            # pairs of random noise
_NOISE = 0.1          # a parameter is not reliable where this part of the information about it is noise
_SHARE = 1e-3         # of the information about a parameter: a misfit of a joint that contributes less does no harm
_NEGATIVE = 4.0       # deviations below zero from which a sum of masses, moments of inertia and losses is negative
_POSITIVE = ("mass", "Ixx", "Iyy", "Izz", "armature", "damping", "friction")       # of every physical robot
_PASSIVE = ("damping", "friction", "stiffness")
# faults of recordings, in the verdict
_UNIT_CODES = {"degrees", "time-unit"}
_CERTAIN_CODES = _UNIT_CODES | {"contradicting-rates", "torque-scale"}
_CAUSE_CODES = _CERTAIN_CODES | {"outliers", "position-jumps", "coarse-positions", "time-gaps", "constant-positions",
                                 "saturated-torques", "suspected-columns", "joints-at-rest", "short-recording"}
_FEW = 1.5            # equations of each parameter: a recording with fewer is too short to test the fit
_SEVERAL = 3          # values that all have another sign than the robot file, if no value is impossible
_STEPS = 30           # of Gauss-Newton iterations
_SMALL_STEP = 1e-3    # of the standard deviation: a smaller step is the last one
_NEGLIGIBLE = 0.01    # of the torques of inertia and weight of the robot file: noise or rounding instead of torques
_OTHER_SCALE = 5.0    # times the common scale of the torques: the torque of a joint has another scale
_NEAR = 1.5           # ratio of the torques of all joints to those of the file: with other units of angles or times, it is larger
_CANCELS = 0.3        # of its parts: a smaller difference of a constant force from the robot file's means that it fits the motion
_SLIGHT = 0.01        # a systematic error that leaves the deviation below this part of the value does no harm


@dataclass(frozen=True, eq=False, repr=False)
class Identification(Immutable):
    """Base parameters estimated from a motion, with their standard deviations and verdicts.

    values       (b,) estimates: weighted least squares; in directions that the motion does not excite, the robot file's
    deviations   (b,) standard deviations; infinite where the motion does not excite the parameter, or only with others
    relative     (b,) deviations relative to the values. A value whose effect is below 1% of each joint's torque is replaced by
                 the value with an effect of 1%
    verdicts     (b,) of "reliable"; "imprecise": the deviation is right, but more than 30% of the value; "not reliable": noise,
                 smoothing or a torque that the model lacks biases the value by more than its deviation, or the value depends on
                 a joint whose torque the model does not explain; "not excited": the value is that of the robot file; "not
                 separable": the motion determines combinations with other parameters only. The value alone has no meaning;
                 "not physical": the value is certainly negative, but a sum of masses, moments of inertia, armature, damping
                 and friction
    misfits      (b,) joints on whose torque the value depends, and which the model does not explain or which has a wrong sign or
                 unit; "" where there are none
    scale_errors (b,) by how much the value may be off because the measured torque of one joint has a wrong scale that is too
                 small to be found (`JointFit.scale`; 1 where the scale is not tested). Deviations do not contain it
    nonlinear    estimates of parameters in which the forces are not linear, such as zero offsets of encoders
    root_information  (k, b) matrix R: R^T R is the information, the inverse covariance, that the weighted equations of the motion
                 give about the values, whatever the nonlinear parameters are
    model        the robot of the recording: with its gravity and armatures
    base         the base parameters: what they stand for; those of the robot file are `base.values`
    condition    of the weighted regressor along the motion, its columns normalized
    joints       (nv,) test of each joint's residual: noise, autocorrelation, what torque the model may lack, and whether the
                 torque was measured (`JointFit`)
    scale        ratio of the measured torques to those of inertia and weight of the robot file; NaN if they are not alike, zero
                 if the measured ones are noise. Far from 1, they may be in other units
    residual     (nv,) root mean square of what force is left over [N m | N]; NaN for forces that were not measured
    force        (nv,) root mean square of the force; NaN for forces that were not measured
    t            (n,) times of the rows that were used [s]
    residuals    (n, nv) measured minus fitted forces of these rows [N m | N], neither filtered nor divided by their noise; NaN
                 for forces that were not measured. `residual` is their root mean square
    rows         how many rows of the trajectory were used
    warnings     what a person should know before trusting the result

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> t = np.linspace(0, 2, 401)
    >>> q = np.stack([np.sin(3 * t), np.cos(4 * t)], axis=1)
    >>> m = ld.motion_of(model, ld.trajectory_of(model, t, q))
    >>> fit = ld.identify(model, t, q, ld.inverse_dynamics(model, *m[1:4]), v=m.v, a=m.a)
    >>> fit.names[1], fit.units[1], fit.verdicts[1], fit.verdict
    ('hz.upper', 'kg m', 'reliable', 'the model explains the torques')
    """

    values: Array
    deviations: Array
    relative: Array
    verdicts: tuple[str, ...]
    misfits: tuple[str, ...]
    scale_errors: Array
    nonlinear: NonlinearParameters
    root_information: Array
    model: Model
    base: BaseParameters
    condition: float
    joints: tuple[JointFit, ...]
    scale: float
    residual: Array
    force: Array
    rows: int
    t: Array
    residuals: Array
    warnings: tuple[LiedynWarning, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the base parameters."""
        return self.base.names

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the base parameters."""
        return self.base.units

    @property
    def covariance(self) -> Array:
        """(b, b) covariance of the values, with the square of `deviations` on its diagonal; infinite where these are."""
        finite = np.isfinite(self.deviations)
        inverse = np.linalg.pinv(self.root_information)
        C = inverse @ inverse.T
        sizes = np.sqrt(np.diag(C))
        correlation = np.divide(C, np.outer(sizes, sizes), out=np.zeros_like(C), where=np.outer(sizes, sizes) > 0.0)
        np.fill_diagonal(correlation, 1.0)
        deviations = np.where(finite, self.deviations, 0.0)
        covariance: Array = np.outer(deviations, deviations) * correlation
        covariance[np.diag_indices_from(covariance)] += np.where(finite, 0.0, np.inf)
        return covariance

    @property
    def reliable(self) -> Mask:
        """(b,) bool: the verdict is "reliable"."""
        return np.array([reliability == RELIABLE for reliability in self.verdicts], dtype=bool)

    @property
    def verdict(self) -> str:
        """Whether the model explains the torques; otherwise the joints with a misfit. Probable faults of the recording."""
        misfit = [f"{joint.joint} ({joint.candidate})" if joint.candidate else joint.joint for joint in self.joints
                  if not joint.explained]
        text = f"does not explain the torques of {list_names(misfit, 6)}" if misfit else "explains the torques"
        remark = f", which are {scale_text(abs(self.scale))} times those of the robot file" if is_far(abs(self.scale)) else ""
        causes = list_names([warning.message for warning in self.warnings if warning.code in _CAUSE_CODES], 3, "; ")
        return f"the model {text}{remark}{'; ' * bool(causes)}{causes}"

    @property
    def premise(self) -> str:
        """Assumption of the values and deviations about the measured torques, and how far the fit has tested it."""
        tested = [f"{joint.joint} {100 * joint.scale:.2g} %" for joint in self.joints if joint.scale < 1.0]
        estimated = self.nonlinear.of(TORQUE_SCALE)
        untested = [joint.joint for joint in self.joints
                    if joint.measured and not joint.scale < 1.0 and joint.joint not in estimated]
        known = "; ".join([*([f"tested to {list_names(tested, 6)}"] if tested else []),
                           *([f"not tested: {list_names(untested, 6)}"] if untested else []),
                           *([f"estimated: {list_names([*estimated], 6)}"] if estimated else [])])
        common = "" if estimated else "; a common scale cannot be tested"
        return (f"values and deviations are valid if the scales of the measured torques are right ({known}{common})")

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        n_reliable = self.verdicts.count(RELIABLE)
        lines = [f"Identification of {len(self)} base parameters from {self.rows} rows: {n_reliable} reliable, condition "
                 f"{self.condition:.3g}; {self.verdict}"]
        extra = self.nonlinear
        width = max(map(len, (*self.names, *extra.names)), default=0)
        for name, x, s, unit, reliability in [
                *zip(self.names, self.values, self.deviations, self.units, self.verdicts, strict=True),
                *zip(extra.names, extra.values, extra.deviations, extra.units, extra.verdicts, strict=True)]:
            mark = "" if reliability == RELIABLE else f"  {reliability.upper()}"
            lines.append(f"  {name.ljust(width)}  {x:12.6g} ± {s:<8.2g} {unit}{mark}")
        return "\n".join([*lines, f"  {self.premise}"])


def identify(  # noqa: PLR0913 (arrays and independent options of a public function)
        model: Model, t: ArrayLike | str | PathLike[str] | Trajectory, q: ArrayLike | None = None,
        tau: ArrayLike | None = None, *, v: ArrayLike | None = None, a: ArrayLike | None = None,
        f_ext: Wrenches | None = None, passive: bool | None = None, joints: Sequence[str] | None = None,
        offset: bool = True, fixed: str | Sequence[str] = (), zero_offsets: str | Sequence[str] = (),
        torque_scales: str | Sequence[str] = (), stribeck: str | Sequence[str] = (), smooth: float | str | None = "auto",
        tolerance: float | None = None) -> Identification:
    """Estimate the base parameters of a model from a recorded motion and its generalized forces.

        fit = ld.identify(model, t, q, tau)                  # arrays
        fit = ld.identify(model, "motion.csv")               # a trajectory file

    Parameters
    ----------
    model : Model
        The geometry and all parameters that are not estimated are assumed exact: joint parameters without a column, external
        wrenches.
    t : (N,) array, path or Trajectory
        Times [s], increasing; or a file that holds t, q, tau and perhaps v, a and external wrenches. Its comments `gravity` and
        `armatures` replace those of the model; a warning reports a difference.
    q : (N, nq) array
        Configurations [rad | m]; ball and free joints hold unit quaternions x y z w.
    tau : (N, nv) array
        Generalized forces [N m | N]; NaN in all rows for coordinates whose force was not measured. Their equations are left out,
        except for those of joints without a motor, whose force is zero: a floating base, and joints that `actuated` of the robot
        file does not list. May be omitted for a robot with such joints: the equations of a floating base alone, with all
        external wrenches, determine the inertias.
    v, a : (N, nv) arrays, optional
        Measured velocities [rad/s | m/s] and accelerations. Those that are missing are derived.
    f_ext : (N, n_links, 6) array or {link name: (N, 6) array}, optional
        External wrench [m; f] on each link, in the link frame, about its origin.
    passive : bool, optional
        Whether springs, damping and friction acted. Default: the value of the file, else True. If they did not act, none of them
        can be estimated.
    joints : sequence of "armature", "damping", "friction", "stiffness", optional
        Joint parameters to estimate; default: those that the model has.
    offset : bool
        Whether a constant torque of each joint is estimated, too (parameters offset.<coordinate>).
    fixed : names or patterns of parameters
        Known parameters, which keep the values of the robot file: "damping.elbow", or all ten parameters of a link, "*.hand".
    zero_offsets : names or patterns of joints
        Joints whose encoder may have a zero offset, which is estimated, too (`Identification.nonlinear`): its reading where the
        joint of the robot file is at zero. Followers of couplings have none.
    torque_scales : names or patterns of joints
        Joints whose measured torque may have a wrong scale, such as the torque constant of a motor. The ratio of the measured to
        the true torque is estimated, too. A common factor of all torques is determined only if parameters are known (`fixed`).
    stribeck : names or patterns of joints
        Joints whose friction rises from its level in motion to a static level at low speed. The rise and the Stribeck speed are
        estimated, too: ``friction_rise exp(-(v / stribeck_speed)^2)`` is added to the level. Friction must be estimated.
    smooth : "auto", float or None
        How v and a are derived where they are missing: by least-squares splines with this knot spacing [s], or "auto": the
        spacing for which the estimated error of a is minimal. None: by splines through every row, which magnify noise.
    tolerance : float, optional
        As in `base_parameters`.

    Returns
    -------
    Identification

    Raises
    ------
    TrajectoryError
        Without measured forces, or with fewer equations than parameters.
    UsageError
        For springs, damping or friction in `joints` if they did not act, for a pattern in `zero_offsets`, `torque_scales` or
        `stribeck` without match, for `stribeck` of joints whose friction is not estimated, and for scales of torques that the
        recording does not determine.
    ComputationError
        If the iteration for `zero_offsets`, `torque_scales` and `stribeck` does not converge.
    ShapeError, ConfigurationError, NameLookupError

    Notes
    -----
    Forces and regressor pass the low-pass filter of the splines, one equation per knot (parallel filtering and decimation,
    Gautier 1997). Least squares estimates the noise of each joint's force; with its inverse as weight, the equations are solved
    again, for some rounds. The noise of q, v, a is measured from their high differences. With as much noise added again, the
    change of the estimate gives its deviation and its bias due to noise (simulation and extrapolation, Cook and Stefanski 1994).
    Zero offsets of encoders and Stribeck speeds are found by Gauss-Newton iterations, with exact derivatives of the forces as
    further columns.

    The residual of each joint is tested for autocorrelation, which widens the deviations (effective number of samples), and for
    torques that the model lacks: offset, friction, damping, spring, scale of the torque, time shift (score tests). If one is
    significant, or the residual is coloured and larger than the noise, estimates that depend on this joint are not reliable. A
    wrong scale common to all torques, or of a joint whose parameters no other joint's torque depends on, cannot be found: values
    and deviations assume correct torque scales.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> t = np.linspace(0, 2, 401)
    >>> q = np.stack([np.sin(3 * t), np.cos(4 * t)], axis=1)
    >>> motion = ld.motion_of(model, ld.trajectory_of(model, t, q))
    >>> tau = ld.inverse_dynamics(model, motion.q, motion.v, motion.a)
    >>> ld.identify(model, t, q, tau, v=motion.v, a=motion.a).values.round(3)
    array([ 0.   , -1.5  ,  1.333,  0.   , -0.5  ,  0.333,  0.   ,  0.   ])
    """
    options = IdentificationOptions(joints, offset, check_smooth(smooth), TOLERANCE if tolerance is None else tolerance,
                                    fixed, zero_offsets, torque_scales, stribeck)
    source = read_trajectory(os.fspath(t)) if isinstance(t, (str, PathLike)) else t
    if isinstance(source, Trajectory):
        if any(x is not None for x in (q, tau, v, a, f_ext)):
            raise UsageError("a trajectory file contains q, tau, v, a and f_ext: give either the file or arrays")
        result = _identify_recording(model, source, passive, options)
    else:
        if q is None or (tau is None and not _without_motor(model).any()):
            raise missing_array("q" if q is None else "tau")
        result = _identify(model, *motion_of_arrays(model, source, q, v, a, tau, f_ext, passive), options)
    warn(result.warnings)
    return result


def _identify_recording(model: Model, source: Trajectory, passive: bool | None, options: IdentificationOptions) -> Identification:
    """Estimate the base parameters from a trajectory file. passive: None for that of the file."""
    model, source, motion = recorded_motion(model, source, passive, options)
    with naming(source):
        return _identify(model, source.t, motion, options, source)


def recorded_motion(model: Model, source: Trajectory, passive: bool | None,
                    options: IdentificationOptions) -> tuple[Model, Trajectory, RecordedArrays]:
    """Return the robot of a recording, the rows with increasing times, and their motion with forces. passive: as above."""
    model, differing = as_recorded(model, source)
    source, jumps = _without_jumps(model, source, options.smooth)
    motion = recorded_arrays(model, source)
    warnings = *motion.warnings, *differing, *attached_warnings(source), *unknown_warnings(model, source), *jumps
    motion = replace(motion, warnings=warnings, passive=motion.passive if passive is None else passive)
    if not _without_motor(model).any():
        require_columns(source, motion.tau, "tau", "the generalized forces")
    return model, source, motion


def _without_jumps(model: Model, source: Trajectory, smooth: float | str | None) -> tuple[Trajectory, list[LiedynWarning]]:
    """Return the rows of a file with increasing times, and warnings: of two rows at an event, the row before it remains.

    Equations of single rows remain valid. Derivatives and smoothing across a jump would be wrong and raise TrajectoryError.
    """
    first = np.r_[True, np.diff(source.t) > 0.0]
    if first.all():
        return source, []
    arrays = recorded_arrays(model, source)
    missing = [name for name, x in (("v", arrays.v), ("a", arrays.a)) if x is None]
    if missing:
        check_no_events(source, " and ".join(missing))
    if smooth not in (None, "auto"):
        check_no_events(source, "a smooth motion")
    selected = replace(source, t=source.t[first], columns={name: x[first] for name, x in source.columns.items()},
                       lines=source.lines[first])
    return selected, [LiedynWarning("event-rows-omitted",
                                    "the motion jumps at events: of two rows at one time, the second is left out "
                                    f"({len(first) - len(selected)} rows)")]


@dataclass(frozen=True)
class IdentificationOptions:
    """Options of `identify`, checked."""

    joints: Sequence[str] | None
    offset: bool
    smooth: float | str | None
    tolerance: float
    fixed: str | Sequence[str] = ()
    zero_offsets: str | Sequence[str] = ()
    torque_scales: str | Sequence[str] = ()
    stribeck: str | Sequence[str] = ()


def check_smooth(smooth: float | str | None) -> float | str | None:
    """Return the option, None for "none". Raise UsageError if it is not valid."""
    if smooth in (None, "none"):
        return None
    if smooth == "auto" or (isinstance(smooth, (int, float)) and 0.0 < smooth < math.inf):
        return smooth
    raise UsageError(f"smooth is {smooth!r}: expected 'auto', a positive number of seconds, or None")


class PreparedEquations(NamedTuple):
    """Equations of the base parameters along a motion.

    kinds     kinds of joint parameters
    rows      the equations as functions of noise and smoothing
    raw       (n, nv, b + 1) equations; the last column is the force that the model does not explain
    tau       (N, nv) measured forces
    warnings  about the motion, and about forces that were not measured
    """

    kinds: tuple[str, ...]
    rows: RegressorRows
    raw: Array
    tau: Array
    motion: RecordedArrays
    warnings: tuple[LiedynWarning, ...]


def prepared(model: Model, t: Array, motion: RecordedArrays, options: IdentificationOptions,
             source: Trajectory | None = None) -> PreparedEquations:
    """Return the equations of a motion at times t (N,) with generalized forces. source: what it was read from."""
    kinds = joint_parameter_kinds(model, motion.passive, options.joints)
    inactive = [] if motion.passive else [kind for kind in kinds if kind in _PASSIVE]
    if inactive:
        raise UsageError(
            f"{list_names(inactive, 6)} did not act in this recording (passive is False) and cannot be estimated: omit it "
            "from the joint parameters, or use passive=True, the comment `# passive: true` of a file")
    columns = (*kinds, "offset") if options.offset and "offset" not in kinds else kinds
    base = base_parameters(model, passive=motion.passive, joints=columns, fixed=options.fixed, tolerance=options.tolerance)
    if motion.v is None:
        q, unwrapping = unwrapped(model, motion.q)
        motion = replace(motion, q=q, warnings=(*motion.warnings, *unwrapping))
    motion = on_couplings(model, motion)
    about_units = unit_warnings(model, t, motion.q, motion.v, motion.a, source)
    if model.nc and not model.has_only_linear_couplings:
        try:
            motion = replace(motion, q=loop_reduction(model).closed_positions(motion.q))
        except ConfigurationError as error:
            causes = list_names([warning.message for warning in about_units], 3, "; ")
            raise ConfigurationError(f"{error}: {causes or 'check the units and signs of the positions'}") from None
    motion = replace(motion, warnings=(*motion.warnings, *about_units))
    recorded = np.full((len(t), model.nv), np.nan) if motion.tau is None else motion.tau
    absent = np.isnan(recorded).all(axis=0)
    tau, missing = np.where(absent, 0.0, recorded), absent & ~_without_motor(model)
    if model.nc:                                               # forces of followers act on the coordinates that move them
        N = projection_at(model, motion.q)
        tau, missing = projected(N, tau), (missing @ np.abs(N).reshape(-1, model.nv, model.nv).max(axis=0)) > 0.0
    known = {warning.code for warning in motion.warnings}                     # gaps of a ROS bag
    faults = [warning for warning in signal_warnings(model, t, motion.q, tau, derived=motion.v is None or motion.a is None)
              if warning.code not in known]
    samples, warnings = noisy_samples(model, t, motion, options.smooth)
    rows = RegressorRows(model, base, motion, tau, samples, columns, ~missing, starting_point(model, base))
    raw = rows.equations()
    constant = _unlikely_constants(model, base, tau[samples.inner], raw, "offset" in columns) & ~missing
    used = ~(missing | constant)
    rows, raw = replace(rows, used=used), raw * used[:, None]
    warnings += _unmeasured_warnings(model, missing, constant)
    return PreparedEquations(kinds, rows, raw, tau, motion, (*motion.warnings, *faults, *warnings))


def _identify(model: Model, t: Array, recorded: RecordedArrays, options: IdentificationOptions,
              source: Trajectory | None = None) -> Identification:
    """Estimate the base parameters from a motion at times t (N,) with generalized forces. source: what it was read from."""
    kinds, rows, raw, tau, motion, warnings = prepared(model, t, recorded, options, source)
    base, samples, used = rows.base, rows.samples, rows.used
    point = starting_point(model, base, options.zero_offsets, options.torque_scales, options.stribeck)
    _check_stribeck(point, base)
    b, columns = len(base), len(base) + len(point.names)
    if equation_count(raw) < columns:
        raise TrajectoryError("the trajectory is too short for the number of parameters",
                              found=f"{equation_count(raw)} equations", expected=f"at least {columns}")
    forces = model_scales(model).force_scales(model.v_units)
    min_noise = np.where(tau.any(axis=0), _LEAST_NOISE,
                         _UNACTUATED_NOISE) * forces * (np.abs(tau / forces).max(initial=0.0) or 1.0)
    rows, raw, equations, undetermined = _iterated(rows, raw, point, min_noise)
    solution, final = equations.solution, rows.point
    values = np.r_[base.values, final.values] + solution.x
    misfit = raw @ np.r_[solution.x, -1.0]
    effect = effect_of_noise(solution, rows.noisier())
    tested, shifts, rescaled = rows.tested(equations, misfit, effect.force)
    sizes = value_sizes(raw, values, tau[samples.inner])
    deviations, trusted, dependent = _deviations(rows, equations, effect, tested, shifts, sizes)
    untested = np.minimum([joint.scale for joint in tested], 1.0)
    scale_errors = np.where(solution.blind, np.inf, np.abs(rescaled * untested[:, None]).max(axis=0))
    relative = np.divide(deviations, sizes, out=np.full_like(sizes, np.inf), where=np.isfinite(deviations) & (sizes > 0.0))
    verdicts = tuple(MIXED if mixed else UNSEEN if blind else UNRELIABLE if not good else IMPRECISE if ratio > IMPRECISE_FROM
                     else RELIABLE for mixed, blind, good, ratio in zip(solution.mixed, solution.blind, trusted, relative,
                                                                        strict=True))
    nonlinear = _nonlinear(point, final, undetermined, values[b:], deviations[b:], verdicts[b:])
    raw = np.delete(raw, slice(b, -1), axis=2)
    values, deviations, relative, sizes, scale_errors = (x[:b] for x in (values, deviations, relative, sizes, scale_errors))
    by_values = _physical(base, values, deviations, sizes, verdicts[:b])
    expected = raw[:, :, :-1] @ base.values
    right = _of_right_sign(base, raw, values, deviations, sizes)
    ratios = [torque_scale(x + y, y, ALIKE) for x, y in zip(raw[:, :, -1].T, expected.T, strict=True)]
    tested = tuple(replace(joint, measured=bool(is_used), ratio=math.nan if is_right and ratio < 0.0 else ratio)
                   for joint, is_used, is_right, ratio in zip(tested, used, right, ratios, strict=True))
    known = [joint.ratio for joint in tested if joint.measured]
    if known and all(1.0 / _NEAR < ratio < _NEAR for ratio in known):     # torques of the file: angles and times have their units
        warnings = tuple(warning for warning in warnings if warning.code not in _UNIT_CODES)
    wrong = np.array([_has_wrong_torques(joint, unit) for joint, unit in zip(tested, model.v_units, strict=True)])
    affected = np.any(wrong[:, None] & dependent[:, :b], axis=0).tolist()
    verdicts = tuple(UNRELIABLE if is_affected and reliability in (RELIABLE, IMPRECISE) else reliability
                     for is_affected, reliability in zip(affected, by_values, strict=True))
    misfits = _misfits(tested, wrong, dependent[:, :b])
    residual, force = (np.where(used, np.sqrt(np.mean(x**2, axis=0)), np.nan) for x in (misfit, tau))
    root_information = _root_information(equations.W, solution, tested, b)
    scale = _scale_of_torques(base, raw, values, root_information, forces)
    alike = np.abs([joint.ratio for joint in tested if joint.measured])
    is_short = equation_count(equations.W) < _FEW * len(base)
    in_other_units = any(warning.code in _UNIT_CODES for warning in warnings)
    if in_other_units or (is_short and not {RELIABLE, IMPRECISE, UNPHYSICAL} & {*by_values}) or (
            scale != 0.0 and ((alike < abs(scale) / _OTHER_SCALE) | (alike > _OTHER_SCALE * abs(scale))).any()):
        scale = math.nan                                                  # not known, or not of all joints
    if not in_other_units:
        warnings = (*warnings, *_torque_warnings(model, tested, wrong, scale, source))
    has_cause = any(warning.code in _CERTAIN_CODES for warning in warnings)
    warnings = (*warnings, *_cause_warnings(rows, tested, source))
    remedy = _remedy(motion, options.smooth, all(joint.explained for joint in tested), has_cause)
    warnings = (*warnings, *_fit_warnings(model, tested, residual, force, kinds, motion.passive, has_cause),
                *_extent_warnings(rows, equation_count(equations.W), is_short, by_values),
                *_warnings(base, verdicts, misfits, remedy), *_undetermined_warnings(nonlinear),
                *_unlike_warnings(model, base, values, sizes, by_values, scale, source))
    return Identification(values, deviations, relative, verdicts, misfits, scale_errors, nonlinear, root_information, model, base,
                          solution.condition, tested, scale, residual, force, len(raw), samples.t[samples.inner],
                          np.where(used, -misfit, np.nan), warnings)


def _iterated(rows: RegressorRows, linear: Array, point: LinearizationPoint,
              min_noise: Array) -> tuple[RegressorRows, Array, FilteredEquations, dict[str, str]]:
    """Return rows whose forces are linearized at the solution, their equations, and verdicts {name: ...} of nonlinear parameters
    that the recording does not determine. These keep their values.

    linear  equations without nonlinear parameters
    point   where to start
    """
    base, undetermined, count = rows.base, dict[str, str](), 0
    b, units = len(base), base.sizes[base.columns]
    if point.names:                                            # of which parameters depend is judged with those of the motion
        W = rows.filtered(linear)
        solution = fit(W, min_noise, units)
        point = with_rises(replace(point, change=solution.x), rows.samples.states()[1], rows.samples.filter, W, solution.x,
                           solution.noise)
        constant = np.isinf(point.values) | (point.of_kind(FRICTION_RISE) & (point.values == 0.0))
        undetermined = {name: UNSEEN for name, is_constant in zip(point.names, constant, strict=True) if is_constant}
        point = point.only(~constant)
    while True:
        rows, count = replace(rows, point=point), count + 1
        raw = rows.equations() if point.names else linear
        W = rows.filtered(raw)
        solution = fit(W, min_noise, np.r_[units, point.sizes])
        steps, deviations = solution.x[b:], np.sqrt((solution.root**2).sum(axis=1))[b:]
        blind: Mask = np.asarray(solution.blind[b:], dtype=bool)
        done = bool((np.abs(steps) <= np.maximum(_SMALL_STEP * deviations, ROUNDING * point.sizes)).all())
        omitted = point.with_partners(blind) if blind.any() or not (done or count == _STEPS) else point.vague(deviations)
        _check_scales(point.names, omitted)
        if omitted.any():
            undetermined |= {name: MIXED if solution.mixed[b + k] or not blind[k] else UNSEEN
                             for k, name in enumerate(point.names) if omitted[k]}
            point, count = point.only(~omitted), 0
        elif done:
            return rows, raw, FilteredEquations(W, solution, min_noise), undetermined
        elif count == _STEPS:
            raise ComputationError(f"{list_names(point.names, 6)} were not found in {_STEPS} iterations: estimate fewer of them, "
                                   "or check the recording")
        else:
            factor = 1.0 / max((np.abs(steps) / point.longest_steps).max(), 1.0)
            point = point.moved(factor * steps, point.change + factor * (solution.x[:b] - point.change))


def _check_scales(names: Sequence[str], omitted: Mask) -> None:
    """Raise UsageError if scales of torques are among the parameters that are not determined."""
    scales = [name.partition(".")[2] for name, is_omitted in zip(names, omitted, strict=True)
              if is_omitted and name.startswith(f"{TORQUE_SCALE}.")]
    if scales:
        raise UsageError(f"the scales of the torques of {list_names(scales, 6)} are not determined: they have the same effect as "
                         "a factor of masses and inertias; fix the parameters of a link that is known, such as a payload, or "
                         "assume that the torque of another joint is right")


def _nonlinear(point: LinearizationPoint, final: LinearizationPoint, undetermined: Mapping[str, str], values: Array,
               deviations: Array, verdicts: Sequence[str]) -> NonlinearParameters:
    """Return estimates of the parameters of `point`, of which those of `final` are determined."""
    estimates = dict(zip(final.names, zip(values, deviations, verdicts, strict=True), strict=True))
    rows = [estimates.get(name, (math.nan, math.inf, undetermined.get(name, UNSEEN))) for name in point.names]
    return NonlinearParameters(point.names, point.units, np.array([row[0] for row in rows], dtype=float),
                               np.array([row[1] for row in rows], dtype=float), tuple(row[2] for row in rows))


def _check_stribeck(point: LinearizationPoint, base: BaseParameters) -> None:
    """Raise UsageError for Stribeck friction of joints whose level of friction is not estimated."""
    estimated = {*base.parameters.names} - {*base.fixed}
    unknown = [name for name in point.stribeck if f"friction.{name}" not in estimated]
    if unknown:
        raise UsageError(f"Stribeck friction of {list_names(unknown, 6)} is a rise above the level of friction, which is not "
                         "estimated: estimate the joint parameter friction, too")


def _undetermined_warnings(nonlinear: NonlinearParameters) -> Iterator[LiedynWarning]:
    """Return warnings about zero offsets of encoders and Stribeck friction that the recording does not determine."""
    causes = _undetermined(nonlinear, ZERO_OFFSET, {
        UNSEEN: "the forces do not depend on them, as at a vertical axis",
        MIXED: "the forces determine them only together with inertias of the links, as at the last joint, or to more than 0.1 "
               "rad"})
    if causes:
        yield LiedynWarning("zero-offset-not-identifiable", f"zero offsets of the encoders of {causes} are not identifiable "
                            "from this recording, and are assumed to be zero")
    causes = _undetermined(nonlinear, STRIBECK_SPEED, {
        UNSEEN: "the forces show no rise of friction at low speed",
        MIXED: "the rise is smaller than four deviations, or its speed is known to more than 30 %"})
    if causes:
        yield LiedynWarning("stribeck-not-identifiable", f"Stribeck friction of {causes} is not determined by this recording, "
                            "and the level of friction is assumed to be constant: move the joints slowly, in both directions, or "
                            "use a shorter knot spacing (smooth)")


def _undetermined(nonlinear: NonlinearParameters, kind: str, reasons: Mapping[str, str]) -> str:
    """Return the joints whose parameter of a kind is not determined, with reasons {verdict: reason}."""
    return " and of ".join(f"{list_names(names, 6)} ({reason})" for state, reason in reasons.items() if (names := [
        name.partition(".")[2] for name, reliability in zip(nonlinear.names, nonlinear.verdicts, strict=True)
        if reliability == state and name.startswith(f"{kind}.")]))


def _remedy(motion: RecordedArrays, smooth: float | str | None, explained: bool, has_cause: bool) -> str:
    """Return what makes values reliable.

    explained  whether the model explains the forces of all joints
    has_cause  whether a fault of the recording is known
    """
    if has_cause:
        return "first repair the recording: see the other warnings"
    if motion.v is not None or motion.a is not None:
        return "omit the given v and a, so that they are derived from smoothed positions"
    if smooth != "auto":
        return "use smooth = auto"
    if explained:
        return "use data with less noise, or a longer or faster motion"
    return "first add the missing forces to the model"


@dataclass(frozen=True, eq=False)
class RegressorRows:
    """Equations for changes of the base parameters, from the rows of a motion.

    used   (nv,) bool: coordinates whose force was measured; the equations of others are zero
    point  where the forces are linearized in parameters in which they are not linear
    """

    model: Model
    base: BaseParameters
    motion: RecordedArrays
    tau: Array
    samples: NoisySamples
    columns: tuple[str, ...]
    used: Mask
    point: LinearizationPoint

    def equations(self, raised: int = 0, added: Mapping[str, Array] | None = None) -> Array:
        """Return (n inner rows, nv, b + e + 1) equations; the last column is the force that the model does not explain.

        Nonlinear parameters have e columns, for changes from the point of linearization.

        raised, added  as in `NoisySamples.states`
        """
        inner = self.samples.inner
        f_ext = None if self.motion.f_ext is None else self.motion.f_ext[inner]
        q, v, a = self._moved(*self.samples.states(raised, added))
        Y, modelled = self._forces(q, v, a, f_ext)
        Y, scales = Y[:, :, self.base.columns], self.point.scales
        columns = self.point.columns(self.base, (q, v, a), f_ext, self.motion.passive, self.columns,
                                     modelled + Y @ self.point.change)
        return np.concatenate([Y * scales[:, None], columns, (self.tau[inner] - scales * modelled)[:, :, None]],
                              axis=2) * self.used[:, None]

    def _moved(self, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
        """Return recorded states without zero offsets, and with followers at the positions of their couplings."""
        q = q - self.point.shift
        return independent_motion(self.model, q, v, a)

    def _forces(self, q: Array, v: Array, a: Array, f_ext: Array | None) -> tuple[Array, Array]:
        """Return the regressor (n, nv, P) of all parameters and the forces (n, nv) of the robot file."""
        passive, tree = self.motion.passive, self.model.spanning_tree()
        Y, modelled = inertial_regressor(tree, q, v, a, passive, self.columns), inverse_dynamics(tree, q, v, a, f_ext=f_ext,
                                                                                                 passive=passive)
        if self.model.nc:                                      # forces of followers act on the coordinates that move them
            N = projection_at(self.model, q)
            Y, modelled = projected(N, Y), projected(N, modelled)
        return Y, modelled + stribeck_friction(self.model, self.point.stribeck, v)

    def forces(self, q: Array, v: Array, a: Array, f_ext: Array | None,
               gravity: Sequence[float] | None) -> tuple[Array, Array]:
        """Return the regressor of all parameters and the forces of the robot file at recorded states.

        gravity  (3,); None: that of the robot
        """
        q, v, a = self._moved(q, v, a)
        Y, modelled = self._forces(q, v, a, f_ext)
        if gravity is None:
            return Y, modelled
        other = replace(self, model=self.model.with_changes(gravity=gravity))._forces(q, v, a, f_ext)[0]
        return other, modelled + (other - Y) @ self.base.parameters.values

    def filtered(self, W: Array) -> Array:
        """Return equations (n, nv, b + 1) after the low-pass filter."""
        return self.samples.filter(W.reshape(len(W), -1)).reshape(-1, *W.shape[1:])

    def tested(self, equations: FilteredEquations, misfit: Array, by_states: Array) -> tuple[tuple[JointFit, ...], Array, Array]:
        """Return the results of `joint_fits`.

        misfit     (n inner rows, nv) modelled minus measured torques
        by_states  (nv,) noise of the filtered torques that the noise of the states causes
        """
        inner, t = self.samples.inner, self.samples.t
        q, v, _ = self.samples.states()
        # a force that is exactly zero has no noise that could be measured: that of its equation counts, from the noise of the
        # states
        measured: Mask = np.any(self.tau, axis=0) & self.used
        passed = np.sqrt(len(equations.W) / len(misfit))
        noise = np.where(measured, noise_of(t, self.tau), np.maximum(noise_of(t[inner], misfit), by_states / passed))
        motion = FittedMotion(t[inner], q, v, np.where(self.used, self.tau[inner] + misfit, 0.0))
        return joint_fits(self.model, motion, equations, self.samples.filter, noise, measured, by_states,
                          self._position_derivatives(equations.solution.x[:len(self.base)]))

    def _position_derivatives(self, change: Array) -> Array:
        """Return the derivatives (n, nv, nv) of the measured forces with respect to positions, for changed base parameters.

        They are zero for followers of couplings, and for robots with loops.
        """
        inner, independent = self.samples.inner, np.ones(self.model.nv, dtype=bool)
        if self.model.nc:
            projection = self.model.elimination().projection
            independent = np.array(projection.any(axis=0) & self.model.has_only_linear_couplings, dtype=bool)
        if not independent.any():
            return np.zeros((len(self.tau[inner]), self.model.nv, self.model.nv))
        f_ext = None if self.motion.f_ext is None else self.motion.f_ext[inner]
        D = replace(self.point, change=change).position_derivatives(
            self.base, self._moved(*self.samples.states()), f_ext, self.motion.passive, self.columns)
        return D * (self.point.scales * self.used)[:, None] * independent

    def noisier(self) -> Iterator[tuple[Array, Array]]:
        """Yield pairs of equations of states with noise added and subtracted."""
        rng = np.random.default_rng(0)
        for _ in range(_DRAWS):
            draw = self.samples.draw(rng)
            plus, minus = (self.filtered(self.equations(added={kind: sign * x for kind, x in draw.items()})) for sign in (1, -1))
            yield plus, minus


def _unlikely_constants(model: Model, base: BaseParameters, tau: Array, raw: Array, offset: bool) -> Mask:
    """Return (nv,) bool: forces tau (N, nv) that are constant and do not fit the robot file along the motion.

    They are placeholders of a logger. The force of a joint without a motor is zero, too, but the forces of its links cancel.

    raw     (N, nv, b + 1) equations
    offset  whether offsets are estimated, so that only changes along the motion count
    """
    parts = np.concatenate([raw[:, :, :-1] * base.values, raw[:, :, -1:]], axis=2)
    sizes = np.sqrt(np.mean((parts - parts.mean(axis=0) * offset)**2, axis=0))
    difference, size = sizes[:, -1], np.linalg.norm(sizes[:, :-1], axis=1)
    moves = size > ROUNDING * model_scales(model).force_scales(model.v_units)
    unlikely: Mask = (np.ptp(tau, axis=0) == 0.0) & moves & (difference > _CANCELS * size)
    return unlikely & ~(_without_motor(model) & ~tau.any(axis=0))


def _without_motor(model: Model) -> Mask:
    """Return (nv,) bool: coordinates of joints without a motor. Their force is zero, also where it is not recorded."""
    mask = np.zeros(model.nv, dtype=bool)
    for joint in model.joints:
        mask[joint.v] = joint.name not in model.actuated if model.actuated else joint.kind == FREE
    return mask


def _unmeasured_warnings(model: Model, missing: Mask, constant: Mask) -> list[LiedynWarning]:
    """Return a warning about coordinates whose force is missing, or is a constant that does not fit the motion.

    Raises TrajectoryError if no force was measured.
    """
    if (missing | constant).all():
        raise TrajectoryError("no joint has measured generalized forces", found="constants" if constant.any() else "NaN",
                              expected="tau of at least one joint")
    reasons = [f"{list_names([model.v_names[k] for k in np.flatnonzero(mask)], 6)} ({reason})" for mask, reason in
               ((missing, "missing"), (constant, "constant, but the joint moves a load; if it has no motor, name the motors "
                                                 "of the robot by `actuated` in the robot file")) if mask.any()]
    return [LiedynWarning("force-not-measured", f"forces without measurement are left out of the fit: {', '.join(reasons)}"
                          )] if reasons else []


def _deviations(rows: RegressorRows, equations: FilteredEquations, effect: StateNoiseEffect, tested: Sequence[JointFit],
                shifts: Array, sizes: Array) -> tuple[Array, Mask, Mask]:
    """Return the standard deviations, whether they and the values are reliable, and on which joints (nv, b) values depend.

    A deviation contains the noise of the forces and of the states and the systematic errors: the bias by noise, the change by a
    spline of another degree beyond chance, and the possible effect of a torque that the model lacks.
    """
    W, solution = equations.W, equations.solution
    force_noise = np.maximum(np.sqrt(np.maximum(solution.noise**2 - effect.force**2, 0.0)), 0.3 * solution.noise)
    inflation, misfit = (np.array([getattr(joint, name) for joint in tested])[:, None] for name in ("inflation", "deviations"))
    variance = variance_by_force(W, solution, solution.noise) * inflation   # as if the whole residual were noise of the forces
    deviation = np.sqrt(np.maximum(variance.sum(axis=0), (variance_by_force(W, solution, force_noise) * inflation).sum(axis=0)
                                   + effect.variance))
    # of a torque as large as what is visible (Cauchy-Schwarz), which is at most the residual
    unknown = np.sqrt((variance * np.minimum(misfit**2, len(W))).sum(axis=0))
    systematic = np.hypot(np.hypot(effect.bias, unknown), np.abs(shifts).sum(axis=0))
    if rows.samples.derives:
        raised = solve(compressed(rows.filtered(rows.equations(raised=2))), solution.noise, solution.sizes, solution.seen).x
        systematic = np.hypot(systematic, np.maximum(np.abs(raised - solution.x) - deviation, 0.0))
    total = np.hypot(deviation, systematic)
    has_residual = equation_count(W) > len(solution.x)                # otherwise the noise is not known
    trusted: Mask = has_residual & (effect.noise_share <= _NOISE) & ~((systematic > deviation) & (total > _SLIGHT * sizes))
    fraction = np.divide(variance, variance.sum(axis=0), out=np.zeros_like(variance), where=variance > 0.0)
    dependent: Mask = fraction > _SHARE
    affected = np.array([not joint.explained for joint in tested])[:, None] & dependent
    return np.where(solution.blind, np.inf, total), trusted & ~affected.any(axis=0), dependent


def _misfits(tested: Sequence[JointFit], wrong: Mask, dependent: Mask) -> tuple[str, ...]:
    """Return `Identification.misfits`.

    wrong      (nv,) bool: joints whose measured torque has a wrong sign or unit
    dependent  (nv, b) bool: parameters that depend on the torque of a joint
    """
    affected = (np.array([not joint.explained for joint in tested]) | wrong)[:, None] & dependent
    return tuple(list_names([joint.joint for joint, is_affected in zip(tested, column, strict=True) if is_affected], 6)
                 for column in affected.T)


def _root_information(W: Array, solution: LeastSquaresSolution, tested: Sequence[JointFit], b: int) -> Array:
    """Return `Identification.root_information` of filtered equations W (n, nv, b + e + 1) with e nonlinear parameters."""
    deviation = solution.noise * np.sqrt([joint.inflation for joint in tested])
    weighted = compressed(W)[:, :, :-1] / deviation[:, None, None]
    weighted = weighted.reshape(-1, W.shape[2] - 1)
    extra = weighted.shape[1] - b
    R: Array = np.asarray(np.linalg.qr(np.roll(weighted, extra, axis=1), mode="r"))         # nonlinear parameters first
    return R[extra:, extra:]


def value_sizes(raw: Array, values: Array, tau: Array) -> Array:
    """Return the sizes (b,) of the values, each at least that which causes 1% of the torque of a joint."""
    effect, force = np.sqrt(np.mean(raw[:, :, :-1] ** 2, axis=0)), np.sqrt(np.mean(tau**2, axis=0))
    strongest = np.divide(effect, force[:, None], out=np.zeros_like(effect), where=force[:, None] > 0.0).max(axis=0)
    material = np.divide(_MATERIAL, strongest, out=np.zeros_like(strongest), where=strongest > 0.0)
    sizes: Array = np.maximum(np.abs(values), material)
    return sizes


def _physical(base: BaseParameters, values: Array, deviations: Array, sizes: Array,
              verdicts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the verdicts, with "not physical" for values that are certainly negative but a sum of nonnegative parameters.

    The effect of such a value is at least 1% of the torque of a joint: smaller effects may be of something that the model lacks.
    """
    negative = _sums_of_positive(base) & (values < -_NEGATIVE * deviations) & (-values >= sizes)
    return tuple(UNPHYSICAL if bad and reliability in (RELIABLE, IMPRECISE) else reliability
                 for bad, reliability in zip(negative, verdicts, strict=True))


def _sums_of_positive(base: BaseParameters) -> Mask:
    """Return which base parameters (b,) are sums of parameters that are positive."""
    positive = np.array([name.partition(".")[0] in _POSITIVE for name in base.parameters.names])
    return np.asarray((base.matrix[:, ~positive] == 0.0).all(axis=1) & (base.matrix >= 0.0).all(axis=1))


def _of_right_sign(base: BaseParameters, raw: Array, values: Array, deviations: Array, sizes: Array) -> Mask:
    """Return whose measured torques (nv,) have the right sign for certain: a positive parameter of the joint alone is positive.

    Its other torques may be opposite to those of the robot file because a mass is missing, such as a counterweight.
    """
    acts = (raw[:, :, :-1] != 0.0).any(axis=0)
    certain = _sums_of_positive(base) & (values > _NEGATIVE * deviations) & (values >= sizes) & (acts.sum(axis=0) == 1)
    return np.asarray((acts & certain).any(axis=1))


def _scale_of_torques(base: BaseParameters, raw: Array, values: Array, root_information: Array, units: Array) -> float:
    """Return the ratio of the torques of inertia and weight that the estimate has along the motion to those of the robot file.

    NaN if these torques are not alike, or if the ratio is far from 1 by chance; zero if those of the estimate are negligible.

    raw    (n, nv, b + 1) equations
    units  (nv,) scales of the torques
    """
    inertial = np.array([name.partition(".")[0] not in (*_PASSIVE, "offset") for name in base.names], dtype=bool)
    columns = raw[:, :, :-1][:, :, inertial] / units[:, None]
    estimated, expected = (columns @ x[inertial] for x in (values, base.values))
    scale = torque_scale(estimated, expected)
    if np.isnan(scale):
        negligible = np.linalg.norm(estimated) < _NEGLIGIBLE * np.linalg.norm(expected)
        return 0.0 if negligible else scale
    gradient = np.zeros(len(base))
    gradient[inertial] = np.tensordot(expected, columns, axes=2) / np.vdot(expected, expected)
    deviation = np.linalg.norm(gradient @ np.linalg.pinv(root_information))
    return math.nan if is_far(abs(scale)) and abs(scale - 1.0) < SIGNIFICANT * deviation else scale


def _unlike_warnings(model: Model, base: BaseParameters, values: Array, sizes: Array, verdicts: Sequence[str],
                     scale: float, source: Trajectory | None) -> list[LiedynWarning]:
    """Return warnings of impossible values, and of values that differ from the robot file by their sign or by a factor."""
    known = np.array([reliability in (RELIABLE, UNPHYSICAL) for reliability in verdicts], dtype=bool)
    known &= (np.abs(values) >= sizes) & (np.abs(base.values) > _LEAST_NOISE * base.sizes[base.columns])
    ratios = values[known] / base.values[known]
    impossible = [name for name, reliability in zip(base.names, verdicts, strict=True) if reliability == UNPHYSICAL]
    hints = []
    if len(ratios) and (ratios < 0.0).all() and (impossible or len(ratios) >= _SEVERAL):
        hints.append(f"all {len(ratios)} well-determined values have the opposite sign of those in the robot file: check the "
                     "signs of the torques")
    if scale == 0.0:
        hints.append("the measured torques are zero or noise only, compared with those of inertia and weight of the robot file: "
                     "check that the columns tau contain the torques")
    elif is_far(abs(scale)):
        hints.append(f"the measured torques are about {scale_text(abs(scale))} times those of the robot file (inertia and "
                     f"weight): {_unit_hint(model, scale, source)}")
    if not impossible:
        return [LiedynWarning("unlike-robot-file", hint) for hint in hints]
    hints = hints or ["check the signs of the torques, the joint axes and the gravity of the robot file"]
    return [
        LiedynWarning("not-physical",
                      f"NOT PHYSICAL: {len(impossible)} of {len(base)} base parameters ({list_names(impossible, 6)}): "
                      f"negative, but no mass, moment of inertia, armature, damping or friction is negative; {'; '.join(hints)}")]


def _unit_hint(model: Model, scale: float, source: Trajectory | None) -> str:
    """Return what to check where all torques have another scale than those of the robot file."""
    unit = torque_unit(scale, "rad")
    if not unit:
        return "check the units of the torques, such as mA instead of N m, or the masses of the robot file"
    conversion = conversion_hint(model, source, {"tau": unit}) if source is not None else ""
    return f"they seem to be in {unit} instead of N m{'; ' * bool(conversion)}{conversion}"


def _has_wrong_torques(joint: JointFit, unit: str) -> bool:
    """Return whether the measured torque of a joint has another sign or unit than that of the robot file."""
    return joint.measured and (joint.ratio < 0.0 or (is_far(joint.ratio) and bool(torque_unit(joint.ratio, unit))))


def _torque_warnings(model: Model, joints: Sequence[JointFit], wrong: Mask, scale: float,
                     source: Trajectory | None) -> list[LiedynWarning]:
    """Return warnings with the joints whose torque has a wrong sign or unit (nv,), and with the option that changes it.

    scale  common ratio of the torques to those of the robot file
    """
    known = [joint for joint in joints if joint.measured and math.isfinite(joint.ratio)]
    warnings = []
    flipped = [joint for joint in known if joint.ratio < 0.0]
    if flipped:
        measured = [joint.joint for joint in joints if joint.measured]
        is_common = len(flipped) == len(known) and 2 * len(flipped) > len(measured) > 1
        names = measured if is_common else [joint.joint for joint in flipped]
        subject = "all measured torques" if is_common else f"the measured torques of {list_names(names, 6)}"
        hint = None if source is None else conversion_hint(model, source, {"tau": "-"}, names) or None
        warnings.append(LiedynWarning(
            "torque-scale", f"{subject} have the opposite sign of those of the robot file: their sign or that of the positions "
            f"is probably wrong{'' if is_common else ', or they are columns of other joints'}", hint=hint))
    units: dict[tuple[str, str], list[JointFit]] = {}
    for joint, unit, is_wrong in zip(joints, model.v_units, wrong, strict=True):
        if is_wrong and not is_far(scale) and (text := torque_unit(joint.ratio, unit)):
            units.setdefault((text, unit), []).append(joint)
    for (text, unit), group in units.items():
        names = [joint.joint for joint in group]
        ratio = scale_text(abs(float(np.median([joint.ratio for joint in group]))))
        hint = None if source is None else conversion_hint(model, source, {"tau": text}, names, unit) or None
        warnings.append(LiedynWarning("torque-scale", f"the measured torques of {list_names(names, 6)} are about {ratio} times "
                                      f"those of the robot file: they seem to be in {text}", hint=hint))
    return warnings


def _cause_warnings(rows: RegressorRows, joints: Sequence[JointFit], source: Trajectory | None) -> list[LiedynWarning]:
    """Return warnings about probable causes in the recording, if the model does not explain the torques."""
    misfit = [joint for joint in joints if not joint.explained]
    if not misfit:
        return []
    model, samples, motion = rows.model, rows.samples, rows.motion
    q, v, a = samples.states()
    f_ext = None if motion.f_ext is None else motion.f_ext[samples.inner]
    noise, ratios = (np.array([getattr(joint, name) for joint in joints]) for name in ("noise", "ratio"))
    powers = int(motion.v is None), 0 if motion.a is not None else 2 if motion.v is None else 1
    misfitting = MisfittingMotion(samples.t[samples.inner], q, v, a, f_ext, samples.t, rows.tau, noise, rows.used, ratios, powers)
    return [*suspect_warnings(model, samples.t, motion.q, rows.tau),
            *repair_warnings(model, misfitting, rows.forces, source,
                             delays=not all(joint.shifted for joint in misfit))]


def _describe_residual(joint: JointFit) -> str:
    if joint.candidate:
        delay = f"; the torque is {abs(joint.delay):.3g} s {'late' if joint.delay > 0.0 else 'early'}" if joint.shifted else ""
        return f"similar to {joint.candidate} ({joint.deviations:.3g} deviations{delay})"
    colour = "" if joint.white else "not white, "
    if not joint.noise > 0.0:
        return f"{colour}without noise"
    return f"{colour}{joint.residual / (joint.passed * joint.noise):.2g} times the noise"


def _fit_warnings(model: Model, tested: Sequence[JointFit], residual: Array, force: Array,
                  estimated: Sequence[str], passive: bool, has_cause: bool) -> WarningLog:
    misfit = [(joint, f"{rms:.3g} of {total:.3g} {'N' if unit == 'm' else 'N m'}")
              for joint, rms, total, unit in zip(tested, residual, force, model.v_units, strict=True) if not joint.explained]
    coloured = [joint.joint for joint in tested if not joint.white and joint.material]
    warnings = WarningLog()
    if misfit:
        listing = list_names([f"{joint.joint}: residual force {figures}, {_describe_residual(joint)}"
                              for joint, figures in misfit], 6, "; ")
        resembling = dict.fromkeys(ESTIMABLE[joint.candidate] for joint, _ in misfit if joint.candidate in ESTIMABLE)
        additional = [kind for kind in resembling if kind not in estimated]
        kinds = [kind for kind in estimated if kind != "offset"] + additional
        encoders = list(dict.fromkeys(joint.candidate.removeprefix(ZERO_OFFSET_OF) for joint, _ in misfit
                                      if joint.candidate.startswith(ZERO_OFFSET_OF)))
        added = "; ".join([
            *([f"joints={kinds}; --with {' --with '.join(kinds)}{'' if passive else '; passive=True, # passive: true'}"]
              if additional else []),
            *([f"zero_offsets={encoders}; --zero-offset {' --zero-offset '.join(encoders)}"] if encoders else [])])
        options = f" ({added})" if added else ""
        remedy = ("first repair the recording: see the other warnings" if has_cause else
                  f"add what is missing to the robot file or to the estimated parameters{options}, or check the recording")
        warnings.add("unexplained-torques", f"the model does not explain the measured torques ({listing}): {remedy}")
    if coloured:
        warnings.add("coloured-residuals",
                     f"the residuals of {list_names(coloured, 6)} are not white: the deviations count fewer independent "
                     "samples")
    return warnings


def _extent_warnings(rows: RegressorRows, equations: int, is_short: bool, verdicts: Sequence[str]) -> list[LiedynWarning]:
    """Return warnings about joints that do not move, where parameters are not determined, and about too few rows."""
    warnings, samples = [], rows.samples
    moves = samples.chain.moves(samples.t, 0)
    resting = [name for name, is_moving in zip(rows.model.v_names, moves, strict=True) if not is_moving]
    if resting and {UNSEEN, MIXED} & {*verdicts}:
        verb = "do" if len(resting) > 1 else "does"
        warnings.append(LiedynWarning("joints-at-rest", f"{list_names(resting, 6)} {verb} not move in the recording"))
    if is_short and len(resting) < rows.model.nv:
        warnings.append(LiedynWarning("short-recording", f"the recording is short: {len(samples.t)} rows of "
                                      f"{np.ptp(samples.t):.3g} s give {equations} independent equations for {len(rows.base)} "
                                      "parameters"))
    return warnings


def _warnings(base: BaseParameters, verdicts: Sequence[str], misfits: Sequence[str], remedy: str) -> WarningLog:
    """Return warnings about values that are not reliable. misfits: joints with a misfit that each value depends on."""
    unseen, mixed, biased = ([name for name, reliability in zip(base.names, verdicts, strict=True) if reliability == kind]
                             for kind in (UNSEEN, MIXED, UNRELIABLE))
    misfitted = [name for name, reliability, misfit in zip(base.names, verdicts, misfits, strict=True)
                 if reliability == UNRELIABLE and misfit]
    biased = [name for name in biased if name not in misfitted]
    warnings = WarningLog()
    if unseen:
        warnings.add("not-excited",
                     f"the recording does not excite {len(unseen)} of {len(base)} base parameters ({list_names(unseen, 6)}): "
                     "their values are those of the robot file")
    if mixed:
        warnings.add("not-separable",
                     f"the recording does not separate {len(mixed)} of {len(base)} base parameters ({list_names(mixed, 6)}): "
                     "it determines only combinations of them, so a single value has no meaning. Move all joints, or estimate "
                     "with a robot in which those at rest, such as the fingers of a gripper, are fixed")
    if misfitted:
        warnings.add("not-reliable",
                     f"NOT RELIABLE: {len(misfitted)} of {len(base)} base parameters ({list_names(misfitted, 6)}): they "
                     "depend on joints whose torque the model does not explain, or whose torque has a wrong sign or unit. Causes "
                     f"are a fault of the recording, a torque that is missing in the model, noise, or smoothing; {remedy}")
    if biased:
        warnings.add("not-reliable",
                     f"NOT RELIABLE: {len(biased)} of {len(base)} base parameters ({list_names(biased, 6)}): noise of the "
                     f"motion or its smoothing may bias them by more than their deviation; {remedy}")
    return warnings


class ParametersResult(NamedTuple):
    """Result of the command `parameters`."""

    model: Model
    base: BaseParameters
    fit: Identification | None
    warnings: tuple[LiedynWarning, ...]


def parameters_of(  # noqa: PLR0913 - options of the command
        robot: str | Path | None, trajectory: str | Path | None = None, *, columns: str | None = None,
        bag: BagOptions | None = None, base: Base | None = None, strict: bool = False, ignore_mimic: bool = False,
        reading: ReadingOptions | None = None, joints: Sequence[str] = (), offset: bool = True,
        fixed: Sequence[str] = (), zero_offsets: Sequence[str] = (), torque_scales: Sequence[str] = (),
        stribeck: Sequence[str] = (), smooth: float | str | None = "auto", tolerance: float | None = None) -> ParametersResult:
    """Return the base parameters of a robot file, fitted to a trajectory file if one is given (with its base and gravity).

    columns, bag    map of the columns of the trajectory file, and how a ROS bag is read, as in `read_trajectory`
    joints          as in `base_parameters`; empty: those that the robot has; "none": none of them
    offset, fixed, zero_offsets, torque_scales, stribeck, smooth  as in `identify`
    """
    kinds = None if not joints else tuple(kind for kind in joints if kind != "none")
    if trajectory is None:
        if robot is None:
            raise UsageError("expected a robot file or a trajectory file")
        model = read_model(robot, base=base, strict=strict, ignore_mimic=ignore_mimic, **(reading or {}))
        if not model.nv:
            raise ModelError(f"the robot {model.name} has no moving joint: no force depends on its parameters")
        parameters = base_parameters(model, passive=True, joints=kinds, fixed=fixed,
                                     tolerance=TOLERANCE if tolerance is None else tolerance)
        return ParametersResult(model, parameters, None, ())
    motion = read_trajectory(trajectory, columns=columns, **(bag or {}))
    model, warnings = robot_of(motion, robot, base=base, strict=strict, ignore_mimic=ignore_mimic, reading=reading)
    identification = identify(model, motion, joints=kinds, offset=offset, fixed=fixed, zero_offsets=zero_offsets,
                              torque_scales=torque_scales, stribeck=stribeck, smooth=smooth, tolerance=tolerance)
    return ParametersResult(model, identification.base, identification,
                            tuple(WarningLog((*warnings, *identification.warnings))))
