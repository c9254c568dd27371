"""Physically consistent parameters: all parameters of a robot from estimates of its base parameters and its robot file.

A rigid body exists for ten inertial parameters if and only if its pseudo-inertia is positive definite (Wensing, Kim and Slotine
2018). The recording determines the base parameters only. The robot file decides about the rest, by the log-det (Bregman)
divergence of every pseudo-inertia from that of the file. It does not depend on the frame of the link or on units, and it is
infinite for a body that cannot exist.
"""
from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import block_diag, null_space, qr, solve_triangular
from scipy.optimize import minimize_scalar, nnls

from liedyn.analysis.identification import (
    Identification,
    IdentificationOptions,
    check_smooth,
    prepared,
    recorded_motion,
)
from liedyn.analysis.nonlinear_parameters import (
    FRICTION_RISE,
    NONLINEAR_FIELDS,
    STRIBECK_SPEED,
    TORQUE_SCALE,
    ZERO_OFFSET,
    stribeck_friction,
    zero_shift,
)
from liedyn.analysis.parameter_constraints import (
    EqualLinks,
    check_estimated,
    equal_links,
    groups_of,
    prior_equations,
)
from liedyn.analysis.recorded_motion import naming
from liedyn.arrays import Array, Mask
from liedyn.dynamics.inertial_parameters import (
    JOINT_PARAMETERS,
    TOLERANCE,
    BaseParameters,
    InertialParameters,
    fixed_parameters,
    inertial_parameters,
)
from liedyn.dynamics.scales import model_scales
from liedyn.errors import ComputationError, LiedynWarning, UsageError, list_names, unknown_name, warn
from liedyn.immutable import Immutable
from liedyn.io.trajectory_csv import Trajectory, read_trajectory
from liedyn.model.description import Joint
from liedyn.model.model import Model, build
from liedyn.model.name_patterns import matching_names
from liedyn.model.spatial import body_of_inertia, inertia_of_pseudo_inertia, pseudo_inertia
from liedyn.public_calls import explained

_NONNEGATIVE = ("armature", "damping", "friction", "stiffness")
_THIN = 1e-4          # of a link's mean second moment: the prior of a link that is thinner in a direction is this thick in it
_COMPACT = 1e-2       # of the characteristic length: the radius of gyration of the prior of a link without inertia
_MIN_WEIGHT = 1e-6    # of the prior: inertias of the file that are wrong by a factor of 1000
_EXACT = 1e-9         # standard deviation relative to the robot file: more exact estimates count as if they had this one
_NEXT_WEIGHT = 0.3    # of the previous weight of the prior, in the sequence of problems to the one to solve
_CENTRED = 0.1        # squared Newton decrement at which the next problem begins
_CONVERGED = 1e-20    # the same of the last one
_SMALL = 1e-2         # the same from which a full step of Newton's method converges quadratically
_TO_BOUNDARY = 0.5    # of the step to a body that cannot exist
_DECREASE = 1e-4      # of the predicted decrease (Armijo)
_SHORTEST = 1e-12     # of a step
_STEPS = 3000         # of one problem
_UNLIKELY = 5.0       # deviations of chi^2: the consistent parameters contradict the recordings
_CONTRADICTION = ("no step reduces the distance; almost exact estimates contradict fixed and known values, equal links, or "
                  "bodies that can exist: omit these values, or increase prior_weight")
_DECIDES = 0.01       # of the information about a combination of values: the prior may move it if it has more
_CONTRADICTED = 4.0   # deviations of chi^2: the recordings contradict the prior of a link; right priors do in 1 of 500 links
_FEW = 0.5            # degrees of freedom: fewer do not contradict the prior
_CLEAR = 4.0          # deviations from which an offset is not zero
_AUTO = (1e-2, 1e4)   # weights of the prior among which "auto" selects: masses that are known to a factor of 10, and to 1 %
_AUTO_STEP = 10.0**0.5     # ratio of neighbouring weights of the first search
_AUTO_TOLERANCE = 0.05     # of the logarithm of the weight

# orthonormal basis F_k (10, 4, 4) of the symmetric matrices
_ROWS, _COLUMNS = np.triu_indices(4)
_BASIS = np.zeros((10, 4, 4))
_BASIS[np.arange(10), _ROWS, _COLUMNS] = _BASIS[np.arange(10), _COLUMNS, _ROWS] = np.where(_ROWS == _COLUMNS, 1.0, math.sqrt(0.5))


@dataclass(frozen=True, eq=False, repr=False)
class ConsistentParameters(Immutable):
    """All parameters of a robot, of which every link can exist, and the model with them.

    model        the robot with these parameters. Offsets are not part of a robot
    parameters   values (P,), names and units, as in `inertial_parameters`
    prior        (P,) values of the robot file
    covariance   (P, P) of the values: of the noise of the recordings and the uncertainty of the robot file. Zero for values that
                 are fixed
    data_share   (P,) part of the information on a value that comes from the recordings; the rest comes from the robot file
    misfit       squared distance of the values from the estimates of the base parameters, in standard deviations: chi^2. Several
                 recordings count as their common estimate
    expected_misfit  number of base parameters in `misfit` that the recordings determine
    prior_weight weight of the robot file
    zero_offsets, torque_scales  {coordinate: (value, standard deviation)}: zero offsets of encoders [rad | m], and ratios of
                 measured to true torques, common to all recordings. They are not part of a robot
    friction_rises, stribeck_speeds  the same of the static level of friction minus that in motion [N m | N], and of the speed
                 by which it falls [rad/s | m/s]
    changes      arguments of `Model.with_changes` with the parameters that were estimated, for the robot file, whose gravity and
                 armatures may differ from those of a recording; without Stribeck friction (`applied_to`)
    warnings     what a person should know before using the model

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> t = np.linspace(0, 2, 401)
    >>> q = np.stack([np.sin(3 * t), np.cos(4 * t)], axis=1)
    >>> m = ld.motion_of(model, ld.trajectory_of(model, t, q))
    >>> heavy = model.with_changes(mass={"lower": 1.5})
    >>> fit = ld.identify(model, t, q, ld.inverse_dynamics(heavy, *m[1:4]), v=m.v, a=m.a)
    >>> ld.consistent_parameters(fit).model.description.links[1].mass > 1.1
    True
    """

    model: Model
    parameters: InertialParameters
    prior: Array
    covariance: Array
    data_share: Array
    misfit: float
    expected_misfit: int
    prior_weight: float
    zero_offsets: dict[str, tuple[float, float]]
    torque_scales: dict[str, tuple[float, float]]
    friction_rises: dict[str, tuple[float, float]]
    stribeck_speeds: dict[str, tuple[float, float]]
    changes: dict[str, Any]
    warnings: tuple[LiedynWarning, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return self.parameters.names

    @property
    def values(self) -> Array:
        """(P,) values."""
        return self.parameters.values

    @property
    def units(self) -> tuple[str, ...]:
        """Units of the parameters."""
        return self.parameters.units

    @property
    def deviations(self) -> Array:
        """(P,) standard deviations; zero for values that are fixed."""
        deviations: Array = np.sqrt(np.diag(self.covariance))
        return deviations

    @property
    def stribeck(self) -> dict[str, tuple[float, float]]:
        """Rise of friction and Stribeck speed by coordinate."""
        return {name: (rise, self.stribeck_speeds[name][0]) for name, (rise, _) in self.friction_rises.items()}

    @explained
    def applied_to(self, model: Model) -> Model:
        """Return a model of the same robot, such as that of the robot file, with these parameters. Gravity stays."""
        return with_stribeck(model.with_changes(**self.changes), self.stribeck)

    @explained
    def validate(self, recording: str | PathLike[str] | Trajectory, *, smooth: float | str | None = "auto") -> Validation:
        """Compare measured forces of another recording with those of the parameters, and with those of the robot file.

        `zero_offsets` of encoders are subtracted from the positions first, and torques are divided by `torque_scales`.

        Parameters
        ----------
        recording : path or Trajectory
            With q and tau, as for `identify`; one that was not used for the fits.
        smooth : "auto", float or None
            As in `identify`.

        Returns
        -------
        Validation

        Raises
        ------
        TrajectoryError, UsageError
        """
        source = read_trajectory(os.fspath(recording)) if isinstance(recording, (str, PathLike)) else recording
        kinds = tuple(kind for kind in JOINT_PARAMETERS if any(name.startswith(f"{kind}.") for name in self.names))
        options = IdentificationOptions(kinds, offset=False, smooth=check_smooth(smooth), tolerance=TOLERANCE)
        model, source, motion = recorded_motion(self.model, source, None, options)
        scales = np.array([self.torque_scales.get(name, (1.0, 0.0))[0] for name in model.v_names])
        motion = replace(motion, q=motion.q - zero_shift(model, {name: x for name, (x, _) in self.zero_offsets.items()}),
                         tau=None if motion.tau is None else motion.tau / scales)     # None: of a floating base alone
        with naming(source):
            equations = prepared(model, source.t, motion, options, source)
        rows, raw = equations.rows, equations.raw
        current = inertial_parameters(model, passive=rows.motion.passive, joints=kinds).values
        changes = rows.base.matrix @ np.stack([self.values - current, self.prior - current], axis=1)
        residuals = raw[:, :, -1:] - raw[:, :, :-1] @ changes                              # (n, nv, 2)
        residuals[:, :, 0] -= stribeck_friction(model, self.stribeck, rows.samples.states()[1]) * rows.used
        tau = equations.tau[rows.samples.inner]
        power, spread = np.mean(residuals**2, axis=0), np.var(tau, axis=0)[:, None]
        explained = np.where(rows.used[:, None] & (spread > 0.0), 1.0 - power / np.where(spread > 0.0, spread, 1.0), np.nan)
        residual = np.where(rows.used[:, None], np.sqrt(power), np.nan)
        warn(equations.warnings)
        force = np.where(rows.used, tau, np.nan)
        return Validation(model.v_names, explained[:, 0], explained[:, 1], residual[:, 0], residual[:, 1],
                          source.t[rows.samples.inner], force, force - residuals[:, :, 0], force - residuals[:, :, 1],
                          equations.warnings)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return (f"<ConsistentParameters of {self.model.name}: {len(self)}, {np.count_nonzero(self.data_share > 0.5)} mainly from "
                f"the recordings; chi^2 {self.misfit:.3g} for {self.expected_misfit} base parameters>")


@dataclass(frozen=True, eq=False)
class Validation(Immutable):
    """How well parameters predict the forces of a recording that they were not estimated from; NaN where none was measured.

    joints            (nv,) names of the coordinates
    explained         (nv,) part of the variance of the measured force that the parameters explain: 1 less the mean square of the
                      residual relative to the variance. 1 is perfect; it is negative if a constant force would be better
    explained_by_file (nv,) the same of the robot file
    residual          (nv,) root mean square of the residual [N m | N]
    residual_of_file  (nv,) the same of the robot file
    t                 (n,) times of the rows that were used [s]
    force             (n, nv) measured forces
    predicted         (n, nv) forces of the parameters
    predicted_by_file (n, nv) the same of the robot file
    warnings          about the recording
    """

    joints: tuple[str, ...]
    explained: Array
    explained_by_file: Array
    residual: Array
    residual_of_file: Array
    t: Array
    force: Array
    predicted: Array
    predicted_by_file: Array
    warnings: tuple[LiedynWarning, ...]

    @property
    def rows(self) -> int:
        """Number of rows of the recording that were used."""
        return len(self.t)


def consistent_parameters(
        fits: Identification | Sequence[Identification], *, weights: Sequence[float] | None = None,
        prior_weight: float | str = 1.0, only: Sequence[str] | None = None, fixed: str | Sequence[str] = (),
        prior: Mapping[str, Sequence[float]] | None = None, equal: Mapping[str, str | Sequence[str]] | None = None,
        total_mass: float | None = None) -> ConsistentParameters:
    """All parameters of a robot that fit recordings, near to those of its robot file, with bodies that can exist.

    Parameters
    ----------
    fits : Identification, or a sequence of them
        Estimates of the base parameters of one robot (`identify`). Several recordings are combined by their standard deviations,
        which the residuals of each recording determine.
    weights : sequence of numbers > 0, optional
        Factors of the information of each fit; default: 1. A recording with the weight 1/4 counts as if its noise was doubled.
    prior_weight : float or "auto"
        Weight of the robot file, >= 1e-6, or "auto": the weight from 0.01 to 10,000 for which the estimates of the base
        parameters are most likely. Masses and second moments of mass of the file have the relative standard deviation
        1 / sqrt(prior_weight): 100 % by default, 20 % for 25, 10 % for 100. A common factor of a link's mass and moments, and
        joint parameters, have half of it.
    only : sequence of names or patterns, optional
        Links whose inertia is estimated, such as a payload; all others keep the values of the robot file.
    fixed : names or patterns of parameters
        Values that are those of the robot file: "damping.elbow", "friction.*", or all ten parameters of a link, "*.hand".
    prior : {name or pattern: (value, deviation)}, optional
        Known values of parameters and their standard deviations, such as {"mass.hand": (0.73, 0.01)}, in addition to the robot
        file.
    equal : {link: other link} or {link: (other link, axis)}, optional
        Pairs of links with the same ten parameters in their frames. With an axis "x", "y" or "z", one link is the mirror image
        of the other at the plane that is normal to this axis of its frame.
    total_mass : float, optional
        Mass of the whole robot [kg].

    Returns
    -------
    ConsistentParameters

    Raises
    ------
    UsageError
        For fits of different robots or parameters, a weight that is not positive, a mass that is not possible, or equal links of
        which one keeps its values.
    NameLookupError
        For links in `only` and `equal` that the robot does not have, or whose inertia has no effect, and for parameters in
        `fixed` and `prior` that it does not have.
    ComputationError
        If the iteration does not converge.

    Notes
    -----
    Minimizes half the squared distance from the estimates in standard deviations, plus the prior. That of a link is
    ``w (tr(J0^-1 J) - log det(J0^-1 J) - 4)``; that of an armature, damping, friction or spring is
    ``4 w (x / x0 - log(x / x0) - 1)``. Values of joints that are zero in the file, preloads and offsets have the prior
    ``2 w (x - x0)^2 / s^2`` with a characteristic size s; they are not negative where that is impossible (NNLS).

    The problem is convex: Newton's method finds its only minimum. Steps are least-squares problems of a fixed size, whatever the
    number of rows of the recordings. The logarithms keep bodies possible, so the ten parameters of a link are the unknowns, in
    which total mass and fixed values are linear; log-Cholesky parameters (Rucker and Wensing 2022) are not needed.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> t = np.linspace(0, 2, 401)
    >>> q = np.stack([np.sin(3 * t), np.cos(4 * t)], axis=1)
    >>> m = ld.motion_of(model, ld.trajectory_of(model, t, q))
    >>> fit = ld.identify(model, t, q, ld.inverse_dynamics(model, m.q, m.v, m.a), v=m.v, a=m.a)
    >>> payload = ld.consistent_parameters(fit, only=["lower"])
    >>> payload.expected_misfit, round(payload.model.description.links[1].mass, 3)
    (8, 1.0)
    """
    fits = (fits,) if isinstance(fits, Identification) else tuple(fits)
    _check_fits(fits)
    fits = _weighted(fits, weights)
    if prior_weight != "auto" and (isinstance(prior_weight, (bool, str)) or not _MIN_WEIGHT <= prior_weight < math.inf):
        raise UsageError(f"prior_weight is {prior_weight!r}: expected a number >= {_MIN_WEIGHT:g} or 'auto'; the robot file "
                         "decides on what the recordings do not determine")
    model, base = fits[0].model, fits[0].base
    names = base.parameters.names
    file = _prior_of(model, base, only, fixed_parameters(names, fixed) | np.isin(names, base.fixed))
    estimated: Mask = np.asarray(file.T.any(axis=1))
    known = _Knowledge(*prior_equations(names, base.sizes, estimated, prior or {}), equal_links(names, equal or {}), total_mass)
    problem = _problem_of(fits, file, known)
    weight = problem.likeliest_weight() if isinstance(prior_weight, str) else float(prior_weight)
    u = problem.minimum(weight)
    values = file.parameters(u)
    spread, alone = problem.deviations(u, weight)
    covariance = spread @ spread.T
    variance = np.diag(covariance)
    data_share = np.clip(1.0 - np.divide(variance, alone, out=np.ones_like(alone), where=alone > 0.0), 0.0, 1.0)
    misfit = float(np.sum((problem.A @ u - problem.d)[:problem.of_fits]**2)) + problem.fixed
    count = int(np.isfinite([fit.deviations for fit in fits]).any(axis=0).sum())
    conflicts = [*_total_mass_warnings(fits, file, known, weight)]
    conflicts = conflicts or [*_misfit_warnings(misfit, count, weight), *_conflict_warnings(problem, u, weight)]
    common = {kind: _common(fits, kind) for kind in NONLINEAR_FIELDS}
    warnings = [*file.warnings, *_repetition_warnings(fits), *_contradiction_warnings(fits),
                *_differing_warnings(fits, common), *_zero_offset_warnings(common[ZERO_OFFSET], model),
                *conflicts, *_offset_warnings(base.parameters.names, values, np.sqrt(variance))]
    changes = file.changes(values)
    stribeck = {name: (rise, common[STRIBECK_SPEED][name][0]) for name, (rise, _) in common[FRICTION_RISE].items()}
    result = ConsistentParameters(with_stribeck(model.with_changes(**changes), stribeck),
                                  InertialParameters(values, base.parameters.names, base.parameters.units),
                                  base.parameters.values, covariance, data_share, misfit, count, weight,
                                  common[ZERO_OFFSET], common[TORQUE_SCALE], common[FRICTION_RISE], common[STRIBECK_SPEED],
                                  changes, tuple(warnings))
    warn(result.warnings)
    return result


def with_stribeck(model: Model, stribeck: Mapping[str, tuple[float, float]]) -> Model:
    """Return the model with rigid friction of coordinates {name: (rise of the level at rest, Stribeck speed)}."""
    if not stribeck:
        return model

    def with_rise(joint: Joint) -> Joint:
        rise, speed = stribeck[joint.name]
        coordinate, = joint.coordinate_parameters
        return replace(joint, coordinates=(replace(coordinate, rigid_friction=1.0, stribeck_speed=speed,
                                                   static_friction=coordinate.friction + rise),))

    joints = (with_rise(joint) if joint.name in stribeck else joint for joint in model.description.joints)
    return build(replace(model.description, joints=tuple(joints)))


def _check_fits(fits: Sequence[Identification]) -> None:
    """Raise UsageError without fits, and for fits of different robots or parameters."""
    if not fits:
        raise UsageError("there is no fit: expected at least one result of identify")
    first = fits[0]
    for fit in fits[1:]:
        if (fit.base.parameters.names != first.base.parameters.names or fit.base.fixed != first.base.fixed
                or fit.model != first.model):
            raise UsageError("the fits are of different robots, gravities or parameters: expected fits of one robot with the "
                             "same joint parameters")


def _weighted(fits: Sequence[Identification], weights: Sequence[float] | None) -> tuple[Identification, ...]:
    """Return fits whose information is multiplied by the weights. Raise UsageError for weights that are not positive numbers."""
    if weights is None:
        return tuple(fits)
    valid = len(weights) == len(fits) and all(not isinstance(x, bool) and 0.0 < x < math.inf for x in weights)
    if not valid:
        raise UsageError(f"weights must be {len(fits)} numbers > 0, one for each fit, got {weights!r}")
    return tuple(replace(fit, root_information=math.sqrt(x) * fit.root_information, deviations=fit.deviations / math.sqrt(x),
                         nonlinear=fit.nonlinear._replace(deviations=fit.nonlinear.deviations / math.sqrt(x)))
                 for fit, x in zip(fits, weights, strict=True))


def _repetition_warnings(fits: Sequence[Identification]) -> Iterator[LiedynWarning]:
    """Return a warning about fits that are of one recording."""
    repeated = [k for k, fit in enumerate(fits) if any(
        np.array_equal(fit.values, other.values) and np.array_equal(fit.root_information, other.root_information)
        for other in fits[:k])]
    if repeated:
        yield LiedynWarning("recording-repeated", f"fits {', '.join(map(str, repeated))} (counted from 0) repeat others: the "
                            "information of one recording counts several times, and deviations are too small")


def _contradiction_warnings(fits: Sequence[Identification]) -> Iterator[LiedynWarning]:
    """Return a warning if the estimates of several recordings differ by more than their deviations."""
    roots, _ = _limited_roots(fits)
    freedom = sum(int(np.linalg.matrix_rank(R)) for R in roots) - int(np.linalg.matrix_rank(np.concatenate(roots)))
    chi2 = _distance(fits) if freedom else 0.0
    if chi2 > freedom + _UNLIKELY * math.sqrt(2.0 * freedom):
        yield LiedynWarning("recordings-contradict",
                            f"the estimates of the {len(fits)} recordings differ from each other by chi^2 = {chi2:.3g} for "
                            f"{freedom} degrees of freedom: the recordings may be of different robots or payloads, or their "
                            "deviations do not contain an error, such as that of the scale of a torque; compare the fits")


def _common(fits: Sequence[Identification], kind: str) -> dict[str, tuple[float, float]]:
    """Return common nonlinear parameters of a kind and their deviations: means weighted by the inverse variances of the fits."""
    estimates: dict[str, list[tuple[float, float]]] = {}
    for fit in fits:
        for name, estimate in fit.nonlinear.of(kind).items():
            estimates.setdefault(name, []).append(estimate)
    common = {}
    for name, pairs in estimates.items():
        x, s = np.array(pairs).T
        weights = 1.0 / np.maximum(s, _EXACT)**2
        common[name] = float(weights @ x / weights.sum()), float(weights.sum()**-0.5)
    return common


def _differing_warnings(fits: Sequence[Identification],
                        common: Mapping[str, Mapping[str, tuple[float, float]]]) -> Iterator[LiedynWarning]:
    """Return a warning about nonlinear parameters that differ from the common ones {kind: {coordinate: (value, deviation)}}."""
    for kind, subject in ((ZERO_OFFSET, "zero offsets of the encoders"), (TORQUE_SCALE, "scales of the torques"),
                          (FRICTION_RISE, "rises of friction"), (STRIBECK_SPEED, "Stribeck speeds")):
        differing = [name for name, (mean, s) in common[kind].items() if any(
            abs(x - mean) > _UNLIKELY * max(deviation, s)
            for fit in fits for x, deviation in [fit.nonlinear.of(kind).get(name, (mean, s))])]
        if differing:
            yield LiedynWarning("recordings-contradict", f"the recordings have different {subject} of "
                                f"{list_names(differing, 6)}: their common values are those of none; use recordings between "
                                "which nothing was calibrated")


def _zero_offset_warnings(zero_offsets: Mapping[str, tuple[float, float]], model: Model) -> Iterator[LiedynWarning]:
    """Return a warning about encoders with a zero offset."""
    units = dict(zip(model.v_names, model.v_units, strict=True))
    wrong = [f"{name} {x:.4g} {units[name]}" for name, (x, s) in zero_offsets.items() if abs(x) > _CLEAR * s]
    if wrong:
        yield LiedynWarning("zero-offsets-not-in-model", "joint positions of the model are those of its robot file: subtract the "
                            f"zero offsets from the readings of the encoders ({list_names(wrong, 6)})")


def _conflict_warnings(problem: _Problem, u: Array, weight: float) -> Iterator[LiedynWarning]:
    """Return a warning about links and joint parameters whose values in the robot file contradict the recordings."""
    contradicted = [f"{name} ({x:.2g} deviations)" for name, x in zip(problem.prior.block_names, problem.contradicted(u, weight),
                                                                      strict=True) if x > _CONTRADICTED]
    if contradicted:
        yield LiedynWarning("prior-contradicts-recordings",
                            f"the recordings contradict the robot file: {list_names(contradicted, 6)}. With its weight of "
                            f"{weight:g}, it moves values towards the file by more than their deviations: lower prior_weight")


def _total_mass_warnings(fits: Sequence[Identification], prior: _Prior, known: _Knowledge,
                         weight: float) -> Iterator[LiedynWarning]:
    """Return a warning if the total mass contradicts the recordings and the robot file."""
    if known.total_mass is None:
        return
    problem = _problem_of(fits, prior, known._replace(total_mass=None))
    mass, deviation = problem.total_mass(problem.minimum(weight), weight)
    if abs(known.total_mass - mass) > _UNLIKELY * deviation:
        yield LiedynWarning("total-mass-contradicted",
                            f"the total mass of {known.total_mass:g} kg contradicts the recordings and the robot file with its "
                            f"weight of {weight:g}, which give {mass:.4g} +- {deviation:.2g} kg: correct total_mass")


def _misfit_warnings(misfit: float, count: int, weight: float) -> Iterator[LiedynWarning]:
    if misfit > count + _UNLIKELY * math.sqrt(2.0 * count):
        yield LiedynWarning("consistent-misfit",
                            f"the consistent parameters differ from the estimates of the base parameters by chi^2 = {misfit:.3g} "
                            f"for {count} base parameters: a robot with these estimates cannot exist, or the weight of the "
                            f"robot file, {weight:g}, is too large")


def _offset_warnings(names: Sequence[str], values: Array, deviations: Array) -> Iterator[LiedynWarning]:
    offsets = [f"{name.partition('.')[2]} {x:.3g}" for name, x, s in zip(names, values, deviations, strict=True)
               if name.startswith("offset.") and abs(x) > _CLEAR * s]
    if offsets:
        yield LiedynWarning("offsets-not-in-model", "a robot has no constant torques of joints: the model does not contain the "
                            f"offsets of {list_names(offsets, 6)} (N m, N)")


# The prior ---------------------------------------------------------------------------------------------------------------

class _JointPrior(NamedTuple):
    """Prior of a joint parameter x = size y: 4 (y - log y - 1) for positive ones, else 2 (y - start)^2."""

    size: float
    start: float
    positive: bool
    bounded: bool


@dataclass(frozen=True, eq=False)
class _Prior:
    """Coordinates u (n,) of the parameters that are estimated, in which the robot file is simple.

    The pseudo-inertia of a link is J = C X C^T, where J0 = C C^T is that of the robot file: its ten coordinates are those of X in
    an orthonormal basis. The divergence from the file is tr X - log det X - 4.

    links      first column of each estimated link
    T          (P, n) parameters per coordinate
    joints     priors of the estimated joint parameters
    constant   (P,) values of the parameters that are not estimated; others are zero
    """

    model: Model
    names: tuple[str, ...]
    links: tuple[int, ...]
    T: Array
    joints: tuple[_JointPrior, ...]
    constant: Array
    warnings: tuple[LiedynWarning, ...]

    @property
    def link_size(self) -> int:
        """Number of coordinates of links, which precede those of joints."""
        return 10 * len(self.links)

    @property
    def start(self) -> Array:
        """Coordinates of the robot file."""
        identity = (_ROWS == _COLUMNS).astype(float)
        return np.concatenate([np.tile(identity, len(self.links)), [joint.start for joint in self.joints]])

    @property
    def bounded(self) -> Mask:
        """(n,) bool: coordinates that are not negative."""
        bounded: Mask = np.array([False] * self.link_size + [joint.bounded for joint in self.joints], dtype=bool)
        return bounded

    def parameters(self, u: Array) -> Array:
        """Return the values (P,) of all parameters."""
        values: Array = self.constant + self.T @ u
        return values

    def pseudo_inertias(self, u: Array) -> Array:
        """Return X (links, 4, 4), or a change of it."""
        return np.tensordot(u[:self.link_size].reshape(-1, 10), _BASIS, axes=1)

    @property
    def blocks(self) -> list[slice]:
        """Coordinates of each link, and then of each joint parameter."""
        return [*(slice(10 * k, 10 * k + 10) for k in range(len(self.links))),
                *(slice(k, k + 1) for k in range(self.link_size, self.link_size + len(self.joints)))]

    @property
    def fixed_mass(self) -> float:
        """Mass of the links that are not estimated."""
        estimated = {self.names[k].partition(".")[2] for k in self.links}
        return math.fsum(link.mass for link in self.model.description.links if link.name not in estimated)

    @property
    def block_names(self) -> list[str]:
        """Names of the links, and then of the joint parameters."""
        of_links = [self.names[first].partition(".")[2] for first in self.links]
        return [*of_links, *(self.names[int(np.argmax(np.abs(column)))] for column in self.T[:, self.link_size:].T)]

    def parts(self, u: Array) -> Array:
        """Return the prior of each of the `blocks`; infinite for bodies that cannot exist."""
        lowest, y = np.linalg.eigvalsh(self.pseudo_inertias(u)), u[self.link_size:]
        of_joints = [2.0 * (x - joint.start)**2 if not joint.positive else 4.0 * (x - math.log(x) - 1.0) if x > 0.0 else math.inf
                     for joint, x in zip(self.joints, y, strict=True)]
        safe = np.where(lowest > 0.0, lowest, 1.0)
        of_links = np.where(lowest > 0.0, safe - np.log(safe) - 1.0, math.inf).sum(axis=1)
        values: Array = np.r_[of_links, of_joints]
        return values

    def value(self, u: Array) -> float:
        """Return the prior; infinite for bodies that cannot exist."""
        return float(self.parts(u).sum())

    def square_root(self, u: Array) -> tuple[Array, Array]:
        """Return K (n, n) and r (n,): K^T K is the second derivative of the prior, and K^T r is its gradient."""
        K, r = np.zeros((len(u), len(u))), np.zeros(len(u))
        L = np.linalg.cholesky(self.pseudo_inertias(u))
        inverse = np.linalg.inv(L)
        G = inverse[:, None] @ _BASIS @ np.swapaxes(inverse, -1, -2)[:, None]         # L^-1 F_k L^-T
        blocks, residual = _vectors(G), _vectors(np.swapaxes(L, -1, -2) @ L - np.eye(4))
        for k in range(len(self.links)):
            part = slice(10 * k, 10 * k + 10)
            K[part, part], r[part] = blocks[k].T, residual[k]
        for k, joint in enumerate(self.joints, self.link_size):
            K[k, k] = 2.0 / u[k] if joint.positive else 2.0
            r[k] = 2.0 * (u[k] - (1.0 if joint.positive else joint.start))
        return K, r

    def longest_step(self, u: Array, step: Array) -> float:
        """Return the part of a step after which a body cannot exist; infinite if all can."""
        L = np.linalg.cholesky(self.pseudo_inertias(u))
        inverse = np.linalg.inv(L)
        rates = np.linalg.eigvalsh(inverse @ self.pseudo_inertias(step) @ np.swapaxes(inverse, -1, -2)).ravel()
        positive = [k for k, joint in enumerate(self.joints, self.link_size) if joint.positive]
        lowest = float(np.r_[rates, step[positive] / u[positive]].min(initial=0.0))
        return -1.0 / lowest if lowest < 0.0 else math.inf

    def changes(self, values: Array) -> dict[str, Any]:
        """Return the arguments of `Model.with_changes` for the values (P,)."""
        of_links: dict[str, dict[str, Any]] = {"mass": {}, "com": {}, "inertia": {}}
        for first in self.links:
            name = self.names[first].partition(".")[2]
            mass, com, inertia = body_of_inertia(values[first:first + 10])
            for key, value in zip(of_links, (mass, com, inertia), strict=True):
                of_links[key][name] = value
        of_joints: dict[str, dict[str, Any]] = {}
        of_base = _base_coordinates(self.model)
        for name, value in zip(self.names, values.tolist(), strict=True):
            if name.partition(".")[2] in of_base:
                continue
            kind, _, owner = name.partition(".")
            if kind in _NONNEGATIVE:
                of_joints.setdefault(kind, {})[owner] = value
            elif kind == "preload":
                stiffness = of_joints["stiffness"][owner]
                of_joints.setdefault("rest", {})[owner] = value / stiffness if stiffness > 0.0 else 0.0
        return {key: named for key, named in (of_links | of_joints).items() if named}


def _prior_of(model: Model, base: BaseParameters, only: Sequence[str] | None, fixed: Mask) -> _Prior:
    """Return the prior of a robot file. Raise NameLookupError for links in `only` that have no parameters.

    fixed  (P,) bool: parameters that are not estimated
    """
    names, values = base.parameters.names, base.parameters.values
    links = {name.partition(".")[2]: k for k, name in enumerate(names) if name.startswith("mass.")}
    selected = set(links)
    if only is not None:
        selected = set()
        for pattern in [only] if isinstance(only, str) else only:
            if not (matches := matching_names(pattern, list(links))):
                raise unknown_name("moving link", pattern, list(links))
            selected.update(matches)
    selected -= {link for link, k in links.items() if fixed[k]}
    factors: dict[int, Any] = {}
    massless, corrected = [], []
    for link, k in links.items():
        if link in selected:
            if values[k] > 0.0:
                J, possible = _possible(values[k:k + 10], model_scales(model).length)
                factors[k] = np.linalg.cholesky(J)
                corrected += [] if possible else [link]
            else:
                massless.append(link)
    joints, columns, of_base = [], [], _base_coordinates(model)
    for k in range(10 * len(links), len(names)):
        kind, x, unit = names[k].partition(".")[0], float(values[k]), float(base.sizes[k])
        if names[k].partition(".")[2] in of_base or fixed[k]:
            continue
        positive = kind in _NONNEGATIVE and x > 0.0
        columns.append(k)
        joints.append(_JointPrior(x, 1.0, True, False) if positive else
                      _JointPrior(unit, x / unit, False, kind in _NONNEGATIVE))
    T = np.zeros((len(names), 10 * len(factors) + len(joints)))
    for i, (k, C) in enumerate(factors.items()):
        T[k:k + 10, 10 * i:10 * i + 10] = inertia_of_pseudo_inertia(C @ _BASIS @ C.T).T
    for i, (k, joint) in enumerate(zip(columns, joints, strict=True), 10 * len(factors)):
        T[k, i] = joint.size
    constant = np.where(T.any(axis=1), 0.0, values)
    return _Prior(model, names, tuple(factors), T, tuple(joints), constant, tuple(_prior_warnings(massless, corrected)))


def _base_coordinates(model: Model) -> set[str]:
    """Return the coordinates of a floating base that is no joint of the robot file, and so has no armature or damping."""
    joints = {joint.name for joint in model.description.joints}
    return {model.v_names[k] for joint in model.joints if joint.name not in joints for k in range(joint.v.start, joint.v.stop)}


def _prior_warnings(massless: Sequence[str], corrected: Sequence[str]) -> Iterator[LiedynWarning]:
    if massless:
        yield LiedynWarning("links-without-prior", f"the links {list_names(massless, 6)} have no mass in the robot file and keep "
                            "their values: give them a mass and an inertia to estimate them")
    if corrected:
        yield LiedynWarning("prior-not-possible", f"the inertias of the links {list_names(corrected, 6)} in the robot file "
                            "cannot exist, or are those of a point, a line or a plane: slightly thicker bodies replace them in "
                            "the estimate")


def _possible(parameters: Array, length: float) -> tuple[Array, bool]:
    """Return the pseudo-inertia (4, 4) of a link, or of a body that is thicker where it cannot exist, and whether it is the same.

    length  characteristic length of the robot
    """
    J = pseudo_inertia(parameters)
    m, com = J[3, 3], J[:3, 3] / J[3, 3]
    spread, axes = np.linalg.eigh(J[:3, :3] - m * np.outer(com, com))
    thickness = max(_THIN * spread.mean(), 0.0) if spread.max() > 0.0 else 0.0
    if spread.min() > thickness > 0.0:
        return J, True
    thick = np.maximum(spread, thickness) if thickness > 0.0 else np.full(3, m * (_COMPACT * length)**2)
    J = J.copy()
    J[:3, :3] = axes * thick @ axes.T + m * np.outer(com, com)
    return J, False


def _vectors(A: Array) -> Array:
    """Return the coordinates (…, 10) of symmetric matrices (…, 4, 4) in the orthonormal basis."""
    return np.tensordot(A, _BASIS, axes=([-2, -1], [-2, -1]))


# The convex problem --------------------------------------------------------------------------------------------------------

@dataclass(frozen=True, eq=False)
class _Problem:
    """Minimize |A u - d|^2 / 2 + weight prior(u), where u = start + N z.

    A, d   (k, n), (k,) estimates of the base parameters, in standard deviations, and then known values
    of_fits  number of rows of A that are estimates
    fixed  squared distance from the estimates that no coordinates u change
    N      (n, n - constraints) orthonormal directions that the constraints leave free
    start  (n,) coordinates that satisfy the constraints
    """

    A: Array
    d: Array
    of_fits: int
    fixed: float
    prior: _Prior
    N: Array
    start: Array

    def minimum(self, weight: float) -> Array:
        """Return the coordinates (n,) of the minimum, by Newton's method for weights that decrease to the given one."""
        u, current = self.start, max(weight, float(np.linalg.norm(self.A, 2)**2))
        while current > weight:
            u, current = self._minimum_from(u, current, _CENTRED), max(weight, _NEXT_WEIGHT * current)
        return self._minimum_from(u, weight, _CONVERGED)

    def likeliest_weight(self) -> float:
        """Return the weight in the range of "auto" with the maximum `evidence`."""
        low, high = np.log(_AUTO)
        grid = np.linspace(low, high, math.ceil((high - low) / math.log(_AUTO_STEP)) + 1)
        best = int(np.argmax([self.evidence(math.exp(x)) for x in grid]))
        bounds = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        solution = minimize_scalar(lambda x: -self.evidence(math.exp(x)), bounds=bounds, method="bounded",
                                   options={"xatol": _AUTO_TOLERANCE})
        return math.exp(float(solution.x))

    def evidence(self, weight: float) -> float:
        """Return the logarithm of the marginal likelihood of the estimates, up to a constant, by Laplace's approximation.

        The integrals of likelihood times prior, and of the prior, are those of normal distributions at their maxima.
        """
        u = self.minimum(weight)
        K0 = math.sqrt(weight) * self.prior.square_root(self.start)[0] @ self.N
        K = np.concatenate([self.A @ self.N, math.sqrt(weight) * self.prior.square_root(u)[0] @ self.N])
        volumes = [float(np.log(np.abs(np.diag(qr(M, mode="r", pivoting=True)[0]))).sum()) for M in (K0, K)]
        return volumes[0] - volumes[1] - weight * (self._value(u, weight) - self.prior.value(self.start))

    def _minimum_from(self, u: Array, weight: float, tolerance: float) -> Array:
        """Return coordinates near the minimum: the square of the Newton decrement is at most the tolerance, or is rounding.

        The prior is self-concordant, so a full step is safe where the decrement is small.
        """
        previous = math.inf
        for _ in range(_STEPS):
            step, slope, decrement = self._step(u, weight)
            if decrement <= tolerance or (previous < _SMALL and decrement >= previous):
                return u
            previous, length = decrement, 1.0
            if decrement > _SMALL:
                length = min(1.0, _TO_BOUNDARY * self.prior.longest_step(u, step))
                value = self._value(u, weight)
                while not self._value(u + length * step, weight) <= value - _DECREASE * length * slope:
                    length /= 2.0
                    if length < _SHORTEST:
                        raise ComputationError(f"the consistent parameters were not found: {_CONTRADICTION}")
            u = u + length * step
        raise ComputationError(f"the consistent parameters were not found in {_STEPS} steps: {_CONTRADICTION}")

    def _value(self, u: Array, weight: float) -> float:
        """Return the objective relative to the weight."""
        return 0.5 * float(np.sum((self.A @ u - self.d)**2)) / weight + self.prior.value(u)

    def _step(self, u: Array, weight: float) -> tuple[Array, float, float]:
        """Return Newton's step, to coordinates that are not negative where they are bounded.

        Also returns the predicted rate of decrease of `_value`, and the square of the Newton decrement.
        """
        H, residual = self.prior.square_root(u)
        root = math.sqrt(weight)
        K = np.concatenate([self.A / root, H])
        rhs = np.concatenate([(self.d - self.A @ u) / root, -residual])
        order = np.argsort(-np.abs(K).max(axis=1), kind="stable")       # row by row stable, whatever the ratio of the weights
        K, rhs = K[order] @ self.N, rhs[order]
        bounded = self.N.T @ self.prior.bounded > 0.0
        Q, R, pivots = qr(K[:, ~bounded], mode="economic", pivoting=True)
        step, remaining = np.zeros(K.shape[1]), rhs
        if bounded.any():
            columns, y = K[:, bounded], self.N.T[bounded] @ u
            independent = columns - Q @ (Q.T @ columns)
            sizes = np.linalg.norm(independent, axis=0)
            target = rhs - Q @ (Q.T @ rhs) + independent @ y
            step[bounded] = nnls(independent / sizes, target)[0] / sizes - y
            remaining = rhs - columns @ step[bounded]
        step[np.flatnonzero(~bounded)[pivots]] = solve_triangular(R, Q.T @ remaining)
        change = K @ step
        return self.N @ step, float(rhs @ change), float(change @ change)

    def deviations(self, u: Array, weight: float) -> tuple[Array, Array]:
        """Return a square root (P, n) of the covariance of the parameters, and their variances (P,) without the recordings.

        Second derivatives at the minimum determine them, as if no value was at a bound.
        """
        H = np.concatenate([math.sqrt(weight) * self.prior.square_root(u)[0], self.A[self.of_fits:]]) @ self.N
        T = self.prior.T @ self.N
        return self.prior.T @ self._root_covariance(u, weight), np.sum(np.linalg.solve(H.T @ H, T.T) * T.T, axis=0)

    def _root_covariance(self, u: Array, weight: float) -> Array:
        """Return a square root (n, n - constraints) of the covariance of the coordinates."""
        K = np.concatenate([self.A, math.sqrt(weight) * self.prior.square_root(u)[0]]) @ self.N
        order = np.argsort(-np.abs(K).max(axis=1), kind="stable")
        R, pivots = qr(K[order], mode="r", pivoting=True)
        root: Array = solve_triangular(R[:K.shape[1]], self.N[:, pivots].T, trans="T").T
        return root

    def total_mass(self, u: Array, weight: float) -> tuple[float, float]:
        """Return the mass of the whole robot and its standard deviation."""
        masses = self.prior.T[list(self.prior.links)].sum(axis=0)
        return float(masses @ u) + self.prior.fixed_mass, float(np.linalg.norm(masses @ self._root_covariance(u, weight)))

    def contradicted(self, u: Array, weight: float) -> Array:
        """Return by how many deviations the recordings contradict each block of the prior; zero where they alone determine it.

        If the robot file is right within its standard deviations, twice the weighted prior of a block is about chi^2 for as many
        degrees of freedom as the recordings determine.
        """
        K, root = math.sqrt(weight) * self.prior.square_root(u)[0], self._root_covariance(u, weight)
        by_file = [np.linalg.svd(K[block] @ root, compute_uv=False)**2 for block in self.prior.blocks]
        freedom = np.array([np.sum(1.0 - np.minimum(shares, 1.0)) for shares in by_file])
        decides = np.array([shares.max() > _DECIDES for shares in by_file])
        excess = 2.0 * weight * self.prior.parts(u) - freedom
        return np.where(decides & (excess > 0.0), excess / np.sqrt(2.0 * np.maximum(freedom, _FEW)), 0.0)


class _Knowledge(NamedTuple):
    """What is known apart from recordings and robot file: rows and right-hand sides of values, equal links, total mass."""

    rows: Array
    values: Array
    equal: list[EqualLinks]
    total_mass: float | None


def _problem_of(fits: Sequence[Identification], prior: _Prior, known: _Knowledge) -> _Problem:
    """Return the problem of some fits. Raise UsageError for a total mass and for equal links that are not possible."""
    base = fits[0].base
    R = np.concatenate([fit.root_information for fit in fits])
    d = np.concatenate([fit.root_information @ (fit.values - base.matrix @ prior.constant) for fit in fits])
    U, s, Vt = np.linalg.svd(R @ base.matrix @ prior.T, full_matrices=False)
    # the QR factor of all rows, less accurate where the data are exact; rows of rounding contain contradictions only
    s = np.where(s > max(R.shape) * np.finfo(float).eps * s.max(initial=0.0), s, 0.0)
    limited = np.minimum(s, 1.0 / _EXACT)
    d = np.divide(limited, s, out=np.zeros_like(s), where=s > 0.0) * (U.T @ d)
    start, constraints = _with_equal_links(prior, known.equal)
    if known.total_mass is not None:
        start, masses = _with_total_mass(prior, start, known.total_mass)
        constraints = np.concatenate([constraints, masses[None] / np.linalg.norm(masses)])
    size = prior.link_size
    N = block_diag(null_space(constraints[:, :size]), np.eye(len(start) - size)) if len(constraints) else np.eye(len(start))
    A, d = np.concatenate([limited[:, None] * Vt, known.rows @ prior.T]), np.r_[d, known.values - known.rows @ prior.constant]
    return _Problem(A, d, len(limited), max(_distance(fits, base.matrix @ prior.T, base.matrix @ prior.constant)
                                            - _distance(fits), 0.0), prior, N, start)


def _with_equal_links(prior: _Prior, pairs: Sequence[EqualLinks]) -> tuple[Array, Array]:
    """Return coordinates (n,) near the robot file of which links are equal, and the constraints (10 pairs, n) that are zero."""
    check_estimated(prior.names, pairs, prior.links)
    start, rows = prior.start, [np.empty((0, len(prior.start)))]
    for link, other, signs in pairs:
        difference = prior.T[link:link + 10] - signs[:, None] * prior.T[other:other + 10]
        rows.append(difference / np.linalg.norm(difference, axis=1, keepdims=True))
    values = prior.parameters(start)
    for group in groups_of(pairs):
        mean = np.mean([signs * values[k:k + 10] for k, signs in group.items()], axis=0)
        for k, signs in group.items():                         # means of possible bodies, and their mirror images, are possible
            part = slice(10 * prior.links.index(k), 10 * prior.links.index(k) + 10)
            start[part] = np.linalg.solve(prior.T[k:k + 10, part], signs * mean)
    return start, np.concatenate(rows)


def _with_total_mass(prior: _Prior, start: Array, total_mass: float) -> tuple[Array, Array]:
    """Return coordinates (n,) with a total mass, and the row (n,) whose product with coordinates is the mass."""
    masses, size = prior.T[list(prior.links)].sum(axis=0), prior.link_size
    in_file = float(masses @ start)
    fixed = prior.fixed_mass
    if not in_file > 0.0:
        raise UsageError("total_mass needs a link whose inertia is estimated: expected a link with mass in `only`")
    if isinstance(total_mass, bool) or not fixed < total_mass < math.inf:
        raise UsageError(f"total_mass is {total_mass!r} kg: expected more than {fixed:.6g} kg, the mass of the links that "
                         "keep the values of the robot file, and a finite number")
    start = start.copy()
    start[:size] *= (total_mass - fixed) / in_file
    return start, masses


def _distance(fits: Sequence[Identification], directions: Array | None = None, start: Array | float = 0.0) -> float:
    """Return the minimum squared distance, in standard deviations, from all estimates to one vector of base parameters.

    directions, start  (b, n) and (b,) of the vectors; default: all vectors
    """
    roots, sizes = _limited_roots(fits)
    M = np.concatenate(roots) @ (np.eye(len(sizes)) if directions is None else directions / sizes[:, None])
    d = np.concatenate([R @ ((fit.values - start) / sizes) for R, fit in zip(roots, fits, strict=True)])
    return float(np.sum((d - M @ np.linalg.lstsq(M, d)[0])**2))


def _limited_roots(fits: Sequence[Identification]) -> tuple[list[Array], Array]:
    """Return `root_information` by parameters relative to characteristic sizes (b,), less accurate where data are exact."""
    base = fits[0].base
    sizes = base.sizes[base.columns]
    parts = [np.linalg.svd(fit.root_information * sizes, full_matrices=False)[1:] for fit in fits]
    return [np.minimum(s, 1.0 / _EXACT)[:, None] * Vt for s, Vt in parts], sizes
