"""Motions from which the parameters of a robot can be identified: series that maximize the information on them.

Each joint follows a Fourier series of one period (Swevers et al. 1997), or a spline. The motion starts and ends at rest, without
acceleration. `analysis.excitation_optimizer` chooses its coefficients.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from liedyn.analysis.clearance import Clearance, Space, clearance
from liedyn.analysis.configurations import check_repetition
from liedyn.analysis.excitation_optimizer import (
    CRITERIA,
    WHOLE,
    ExcitationLimits,
    Experiment,
    LimitUse,
    Settings,
    information,
)
from liedyn.analysis.excitation_series import SERIES, FourierSeries, Series
from liedyn.analysis.identification import Identification, identify, value_sizes
from liedyn.analysis.moves import (
    MAX_ROWS,
    Limit,
    MoveState,
    configuration_of,
    configuration_of_texts,
    limit_of_texts,
    limits_by_name,
    raised_limits,
)
from liedyn.analysis.recorded_motion import trajectory_of
from liedyn.arrays import Array, ArrayLike, Mask
from liedyn.dynamics.batching.arrays import as_array
from liedyn.dynamics.batching.processes import process_map
from liedyn.dynamics.constraints.couplings import reduced_model
from liedyn.dynamics.dynamics import inverse_dynamics
from liedyn.dynamics.inertial_parameters import (
    JOINT_PARAMETERS,
    BaseParameters,
    base_parameters,
    inertial_regressor,
    joint_parameter_kinds,
)
from liedyn.errors import ComputationError, ConfigurationError, ModelError, UsageError, list_names, unknown_name, warn
from liedyn.immutable import Immutable
from liedyn.io.trajectory_csv import Trajectory
from liedyn.model.model import Model
from liedyn.model.name_patterns import matching_names
from liedyn.public_calls import explained
from liedyn.simulation.limits import motion_limits

NOISE = 0.01              # of the force limit: default noise of a measured torque
AT_LIMIT = 0.99           # of a limit: a joint with a larger peak is at its limit
_NOISES = 1e-100, 1e100   # of a measured torque: the information on parameters can be computed
_POSTURES = 200           # random ones, in which links are compared
_BLOCK = 4096             # rows whose regressor is computed at a time


class FourierCoefficients(NamedTuple):
    """Mean positions (nv,) and coefficients (harmonics, nv) of a Fourier series."""

    center: Array
    sine: Array
    cosine: Array


@dataclass(frozen=True, eq=False, repr=False)
class Excitation(Immutable):
    """A motion from which base parameters can be identified, and the standard deviations that it promises.

    model        the robot
    base         the base parameters; those that no motion identifies are `base.unidentifiable`
    duration     [s], a multiple of the period
    period       [s] of the series
    rate         [Hz] of the rows from which parameters are identified
    series       functions of time whose sums are the motion: `kind` "fourier" or "splines"
    coefficients (size, nv) of the functions [rad | m]; those of the first one are constants
    noise        (nv,) standard deviations of the measured torques [N m | N]
    covariance   (b, b) of the base parameters
    relative     (b,) deviations relative to the values, as in `Identification`
    log_det      log det of the information, its parameters in characteristic units of the robot
    condition    condition number of the regressor along the motion: rows divided by the noise, columns of unit norm
    optima       (n,) criterion of each local optimum before refinement, best first: log det, or condition number
    limits       peaks of the motion relative to limits (`LimitUse`), for each coordinate and each limit that it has
    not_compared  pairs whose distance is always below its limit, and links without shapes

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> motion = ld.excite(model, duration=5.0, noise=0.1, velocity=3.0, torque=40.0, starts=2)
    >>> q, v, a = motion.at(0.0)
    >>> bool(np.abs(v).max() < 1e-9), len(motion.deviations), motion.trajectory().t[-1]
    (True, 8, np.float64(5.0))
    """

    model: Model
    base: BaseParameters
    duration: float
    period: float
    rate: float
    series: Series
    coefficients: Array
    noise: Array
    covariance: Array
    relative: Array
    log_det: float
    condition: float
    optima: Array
    limits: tuple[LimitUse, ...]
    not_compared: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the base parameters."""
        return self.base.names

    @property
    def kind(self) -> str:
        """Kind of the series: "fourier" or "splines"."""
        return next(name for name, series in SERIES.items() if isinstance(self.series, series))

    @property
    def fourier(self) -> FourierCoefficients:
        """Coefficients of the Fourier series. Raise UsageError for splines."""
        if not isinstance(self.series, FourierSeries):
            raise UsageError("splines have no Fourier coefficients; use `coefficients`, or `at`")
        return FourierCoefficients(*self.series.center_sine_and_cosine(self.coefficients))

    @property
    def center(self) -> Array:
        """(nv,) mean positions of a Fourier series [rad | m]."""
        return self.fourier.center

    @property
    def sine(self) -> Array:
        """(harmonics, nv) in q = center + sum of sine[k-1] sin(k w t) + cosine[k-1] cos(k w t), with w = 2 pi/period."""
        return self.fourier.sine

    @property
    def cosine(self) -> Array:
        """(harmonics, nv), as for `sine`."""
        return self.fourier.cosine

    @property
    def deviations(self) -> Array:
        """(b,) standard deviations of the base parameters that white torque noise of `noise` causes."""
        deviations: Array = np.sqrt(np.diag(self.covariance))
        return deviations

    @property
    def at_limits(self) -> tuple[LimitUse, ...]:
        """Limits of which the motion uses more than 99 %."""
        return tuple(use for use in self.limits if use.used >= AT_LIMIT)

    @property
    def summary(self) -> str:
        """Duration, information and limits as text."""
        by_kind: dict[str, list[str]] = {}
        for use in self.at_limits:
            by_kind.setdefault(use.kind, []).append(use.coordinate)
        met = "; ".join(f"{kind} of {list_names(names, 8)}" for kind, names in by_kind.items()) or "none"
        return (f"duration {self.duration:.6g} s, {self.series.summary}; log det "
                f"{self.log_det:.6g}, condition {self.condition:.3g}; limits reached: {met}")

    def __repr__(self) -> str:
        return f"<Excitation of {self.model.name}: {len(self.base)} base parameters, {self.summary}>"

    @explained
    def at(self, t: ArrayLike) -> MoveState:
        """Return q, v and a at the times t, a number or an (N,) array. The motion is periodic."""
        times = as_array(t, "t", ())
        if not np.isfinite(times).all():
            raise ConfigurationError("a time of the motion is not finite")
        q, v, a = ((functions @ self.coefficients).reshape(*times.shape, -1) for functions in self.series.at(times.ravel()))
        return MoveState(q, v, a)

    def trajectory(self) -> Trajectory:
        """Return the motion as a trajectory with columns q, v and a, from its start to its end, `rate` rows per second."""
        t = _row_times(self.duration, self.rate)
        return trajectory_of(self.model, t, *self.at(t))

    @explained
    def rehearse(self, seed: int = 0) -> Identification:
        """Return what `identify` finds from this motion with simulated noise of the torques; q, v and a are exact.

        Its deviations are those that the noise in the data shows. `deviations` are those that are predicted.

        Raises UsageError for a seed that is no integer >= 0.
        """
        _check_integers(("seed", seed, 0))
        t = _row_times(self.duration, self.rate)
        motion, rng = self.at(t), np.random.default_rng(int(seed))
        sigma = np.where(self.model.follows, 0.0, self.noise) if self.model.nc else self.noise
        tau = inverse_dynamics(self.model, *motion) + rng.standard_normal((len(t), self.model.nv)) * sigma
        tau[:, np.isinf(sigma)] = np.nan
        kinds = {name.partition(".")[0] for name in self.base.parameters.names} & set(JOINT_PARAMETERS)
        return identify(self.model, t, motion.q, tau, v=motion.v, a=motion.a, joints=sorted(kinds - {"offset"}),
                        offset="offset" in kinds)


def excite(  # noqa: PLR0913 - independent options of a public function
        model: Model, *, duration: float = 10.0, period: float | None = None, harmonics: int = 5, kind: str = "fourier",
        q0: ArrayLike | Mapping[str, Any] | None = None, rate: float = 100.0,
        noise: Limit = None, criterion: str = "d-optimal", parameters: Sequence[str] = (), joints: Sequence[str] | None = None,
        offset: bool = True, position: Mapping[str, Sequence[float]] | None = None, velocity: Limit = None,
        acceleration: Limit = None, torque: Limit = None, self_distance: float | None = None, space: Space = None,
        starts: int = 24, seed: int = 0, jobs: int | None = 1) -> Excitation:
    """Return a motion from which the base parameters of a robot can be identified as well as its limits allow.

    The motion is periodic. It starts and ends at rest, without acceleration, at a configuration that it chooses.

    Parameters
    ----------
    model : Model
        Without loops, ball joints and free joints. Mimic joints and linear couplings are followed; their limits count, too.
    duration, period : float
        [s] The duration is a multiple of the period; default: one period.
    harmonics : int
        At least 2: the frequencies are 1/period, 2/period, … Splines have as many coefficients.
    kind : "fourier" or "splines"
        Functions of time: a Fourier series, or splines of degree 5 with equal intervals.
    q0 : (nq,) array or {joint: value}, optional
        Configuration at the start and the end; joints without a value: neutral. Default: that of the optimum.
    rate : float
        Rows of the recording per second [Hz], on which deviations depend.
    noise : number or {joint, coordinate or pattern: number}, optional
        Standard deviation of the measured torque [N m | N], white from row to row. Default: 1 % of the force limit. Infinite:
        the torque is not measured.
    criterion : "d-optimal" or "condition"
        Maximize log det of the information on the base parameters, or minimize `Excitation.condition`.
    parameters : sequence of patterns
        Base parameters, by name, whose covariance is minimized (log det); the others are estimated with them. Default: all.
    joints, offset
        As in `identify`: which joint parameters are estimated, and whether a constant torque of each joint is.
    position : {joint, coordinate or pattern: (lower, upper)}, optional
        Position limits [rad | m]. Default: those of the robot file.
    velocity, acceleration, torque : number or {joint, coordinate or pattern: number}, optional
        Maximum magnitudes [rad/s | m/s], [rad/s^2 | m/s^2], [N m | N]. Default: those of the robot file. Torques are those of
        inverse dynamics, with springs, damping and friction. Each joint needs at least one limit.
    self_distance : float, optional
        Minimum distance of links from each other [m], as far as they have primitive shapes. Default: not limited.
    space : {"x", "y" or "z": (lower, upper)}, optional
        Positions in the world within which moving links stay [m], such as {"z": (0.05, inf)} above a floor. Default: not limited.
    starts : int
        Random starts. The criterion has local optima. Half as many optima are changed at random and optimized again.
    seed : int
        Seed of the starts. The same seed gives the same motion, whatever the number of jobs.
    jobs : int or None
        Processes that compute the starts; None: all cores. They begin if the search takes more than 3 s. Scripts need
        ``if __name__ == "__main__":`` for more than one.

    Returns
    -------
    Excitation

    Raises
    ------
    ComputationError
        If no start leads to a motion within the limits, or the measured torques do not determine the parameters.
    ModelError
        For robots with loops, ball joints or free joints.
    UsageError, NameLookupError

    Notes
    -----
    Distances are those of spheres that contain the shapes of the links: boxes, spheres, cylinders and capsules. Links that a
    joint connects are not compared with each other. What no posture separates is not compared either, nor are links without
    shapes: warnings name them, and `Excitation.not_compared`. Without `self_distance` and `space`, collisions are not considered.
    Replay the motion before it is used.

    Deviations assume that q, v and a are known without error, as far as the estimate depends on them.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> motion = ld.excite(model, duration=5.0, noise=0.1, velocity=3.0, torque=40.0, starts=2)
    >>> motion.trajectory().save("excite.csv", force=True)
    """
    _check_integers(("jobs", 1 if jobs is None else jobs, 1))
    settings = _settings(duration, period, harmonics, kind, rate, criterion, starts, seed)
    _check_robot(model)
    limits = _limits(model, position, velocity, acceleration, torque)
    columns = joint_parameter_kinds(model, True, joints)
    columns = (*columns, "offset") if offset and "offset" not in columns else columns
    base = base_parameters(model, passive=True, joints=columns)
    experiment = Experiment(model, base, columns, _noise(model, noise), limits, settings, _chosen(base, parameters, criterion),
                            start=None if q0 is None else configuration_of(model, q0, "q0", model.neutral()))
    experiment.check_determined()
    if self_distance is not None or space:
        experiment = replace(experiment, clearance=_distances(experiment, self_distance, space))
    with process_map(None if jobs is None else int(jobs)) as each:
        x, values = experiment.search(each)
    return _excitation(experiment, x, values)


def excitation_of_texts(model: Model, limits: Mapping[str, Sequence[str]], start: Sequence[str] = (),
                        **options: Any) -> Excitation:
    """Return the motion of `excite` for limits and noise by kind, such as "2" or "elbow=2"; of positions "elbow=-1,1"."""
    position, space = (_spans(limits[name], name, key) for name, key in (("position", "JOINT"), ("space", "AXIS")))
    for name in ("noise", "velocity", "acceleration", "torque"):
        options[name] = limit_of_texts(limits[name], name)
    q0 = configuration_of_texts(model, start, "start", model.neutral()) if start else None
    return excite(model, position=position, space=space, q0=q0, **options)


def _spans(texts: Sequence[str], name: str, key: str) -> dict[str, tuple[float, ...]]:
    """Return limits of texts such as "elbow=-1,1". key: what the name before = is called."""
    spans: dict[str, tuple[float, ...]] = {}
    for text in texts:
        limited, _, span = text.partition("=")
        try:
            spans[limited.strip()] = tuple(map(float, span.split(",")))
        except ValueError:
            raise UsageError(f"{name} {text}: expected {key}=LOWER,UPPER") from None
    check_repetition(name, [text.partition("=")[0].strip() for text in texts])
    return spans


# Options ----------------------------------------------------------------------------------------------------------------

def _settings(duration: float, period: float | None, harmonics: int, kind: str, rate: float, criterion: str, starts: int,
              seed: int) -> Settings:
    """Return checked options. Raise UsageError for an option that is not valid."""
    period = duration if period is None else period
    for name, x in (("duration", duration), ("period", period), ("rate", rate)):
        if isinstance(x, bool) or not 0.0 < x < np.inf:
            raise UsageError(f"{name} must be a number > 0, got {x!r}")
    count = duration / period
    if round(count) < 1 or abs(count - round(count)) > WHOLE * count:
        raise UsageError(f"duration must be a multiple of the period {period:g} s, so that the motion ends at rest; got "
                         f"{duration:g}")
    _check_integers(("harmonics", harmonics, 2), ("starts", starts, 1), ("seed", seed, 0))
    if kind not in SERIES:
        raise UsageError(f"kind must be one of {', '.join(SERIES)}, got {kind!r}")
    if criterion not in CRITERIA:
        raise UsageError(f"criterion must be one of {', '.join(CRITERIA)}, got {criterion!r}")
    if duration * rate > MAX_ROWS:
        raise UsageError(f"duration {duration:g} s at a rate of {rate:g} Hz needs more than {MAX_ROWS} rows; reduce one of them")
    return Settings(duration, period, int(harmonics), kind, rate, criterion, int(starts), int(seed))


def _check_integers(*values: tuple[str, int, int]) -> None:
    """Raise UsageError for the first of (name, value, minimum) that is no integer of at least the minimum."""
    for name, x, minimum in values:
        if isinstance(x, bool) or not minimum <= x < np.inf or int(x) != x:
            raise UsageError(f"{name} must be an integer >= {minimum}, got {x!r}")


def _check_robot(model: Model) -> None:
    """Raise ModelError for a robot whose motion is not one Fourier series for each independent coordinate."""
    if model.nc:
        reduced_model(model, "excite")                              # raises for loops and nonlinear couplings
    joints = [joint.name for joint in model.joints if joint.screws is None]
    if joints:
        raise ModelError(f"excite does not support ball and free joints ({list_names(joints, 4)})",
                         hint="fix the base, or fix the joints with ld.fix_joints")
    if not model.nv:
        raise ModelError(f"the robot {model.name} has no moving joint: no force depends on its parameters")


def _noise(model: Model, noise: Limit) -> Array:
    """Return the noise (nv,) of the torques. Raise UsageError for a coordinate without noise and without force limit."""
    default = NOISE * motion_limits(model, "effort")
    sigma = limits_by_name(model, "noise", noise, np.where(np.isfinite(default), default, np.nan))
    unknown = np.isnan(sigma) & ~model.follows if model.nc else np.isnan(sigma)
    if unknown.any():
        names = [name for name, x in zip(model.v_names, unknown, strict=True) if x]
        raise UsageError(f"the torque noise of {list_names(names, 6)} is not known, since the robot file has no effort limit; "
                         "give `noise`")
    extreme = np.isfinite(sigma) & ((sigma < _NOISES[0]) | (sigma > _NOISES[1]))
    if extreme.any():
        raise UsageError(f"noise must be from {_NOISES[0]:g} to {_NOISES[1]:g}, or inf, got {sigma[extreme][0]:g} for "
                         f"{model.v_names[int(np.argmax(extreme))]}")
    return np.where(np.isnan(sigma), np.inf, sigma)


def _chosen(base: BaseParameters, patterns: Sequence[str], criterion: str) -> Mask:
    """Return (b,) which base parameters the criterion contains."""
    if not patterns:
        return np.ones(len(base), dtype=bool)
    if criterion != CRITERIA[0]:
        raise UsageError(f"the criterion {criterion!r} is that of all base parameters: omit `parameters`, or use 'd-optimal'")
    chosen = np.zeros(len(base), dtype=bool)
    for pattern in patterns:
        names = matching_names(pattern, base.names)
        if not names:
            raise unknown_name("base parameter", pattern, base.names)
        chosen |= np.isin(base.names, names)
    return chosen


def _limits(model: Model, position: Mapping[str, Sequence[float]] | None, velocity: Limit, acceleration: Limit,
            torque: Limit) -> ExcitationLimits:
    """Return the limits. Raise UsageError for a coordinate without any, whose information is not bounded."""
    unlimited = model.lower >= model.upper
    lower, upper = np.where(unlimited, -np.inf, model.lower), np.where(unlimited, np.inf, model.upper)
    files = {"lower position": lower, "upper position": upper, **{name: motion_limits(model, default) for name, default in (
        ("velocity", "velocity"), ("acceleration", "acceleration"), ("torque", "effort"))}}
    for name, span in (position or {}).items():
        try:
            low, high = map(float, span)
        except (TypeError, ValueError):
            low = high = np.nan
        if not low < high or np.isfinite(low) != np.isfinite(high):
            raise UsageError(f"position[{name!r}] must be two finite numbers, lower < upper, or -inf and inf, got {span!r}")
        selected = np.isfinite(limits_by_name(model, "position", {name: 1.0}, np.full(model.nv, np.inf)))
        lower, upper = np.where(selected, low, lower), np.where(selected, high, upper)
    one_sided = np.isfinite(lower) != np.isfinite(upper)
    if one_sided.any():
        names = [name for name, x in zip(model.v_names, one_sided, strict=True) if x]
        raise UsageError(f"the position of {list_names(names, 6)} is limited on one side only; give `position`, a lower and an "
                         "upper limit")
    rates = [limits_by_name(model, name, limit, files[name]) for name, limit in (
        ("velocity", velocity), ("acceleration", acceleration), ("torque", torque))]
    limits = ExcitationLimits(lower, upper, *rates)
    warn(raised_limits(model, {kind: (x, of_file) for (kind, of_file), x in zip(files.items(), limits, strict=True)}))
    bounded = np.isfinite(upper - lower) | np.isfinite(rates).any(axis=0)
    if not bounded.all():
        names = [name for name, x in zip(model.v_names, bounded, strict=True) if not x]
        raise UsageError(f"{list_names(names, 6)} have no limit, so that a faster motion is always better; give `velocity`, "
                         "`acceleration`, `torque` or `position`")
    return limits


def _distances(experiment: Experiment, self_distance: float | None, space: Space) -> Clearance | None:
    """Return the distances with a limit. Warn of what is not compared."""
    rng = np.random.default_rng(0)
    postures = np.array([experiment.random_position(rng) for _ in range(_POSTURES)]) @ experiment.N.T + experiment.constant
    distances, warnings = clearance(experiment.model, self_distance, space, postures)
    warn(warnings)
    return distances


# Result -----------------------------------------------------------------------------------------------------------------

def _excitation(e: Experiment, x: Array, values: Array) -> Excitation:
    """Return the motion with its predicted deviations."""
    s, model, b = e.settings, e.model, len(e.base)
    coefficients = x @ e.N.T
    coefficients[0] += e.constant
    times = _row_times(s.duration, s.rate)
    motion = Excitation(model, e.base, s.duration, s.period, s.rate, e.series, coefficients, e.noise, np.eye(b), np.ones(b), 0.0,
                        1.0, values, e.uses(x), e.clearance.excluded if e.clearance else ())
    R = np.zeros((0, b))
    for k in range(0, len(times), _BLOCK):
        F = e.equations(motion.at(times[k:k + _BLOCK]))
        R = np.asarray(np.linalg.qr(np.vstack([R, F.reshape(-1, b)]), mode="r"))
    if len(R) < b or not np.isfinite(information(R, e.chosen)[0]):
        raise ComputationError(f"the {len(times)} rows of the recording do not determine the {b} base parameters; use a "
                               "higher rate or a longer duration")
    from scipy.linalg import solve_triangular
    sizes = e.base.sizes[e.base.columns]
    root = solve_triangular(R, np.eye(b))
    covariance = sizes[:, None] * (root @ root.T) * sizes
    log_det, condition = -information(R, e.chosen)[0], float(np.linalg.cond(R / np.linalg.norm(R, axis=0)))
    state = e.motion(x, e.samples)
    Y = inertial_regressor(model, *state, True, e.columns)[:, :, e.base.columns]
    Y = e.N.T @ Y if model.nc else Y
    tau = inverse_dynamics(model, *state)[:, e.independent]
    relative = np.sqrt(np.diag(covariance)) / value_sizes(np.concatenate([Y, tau[:, :, None]], axis=2), e.base.values, tau)
    if s.criterion == CRITERIA[0]:
        optima = np.count_nonzero(e.chosen) * np.log(len(times)) - values
    else:
        optima = np.exp(values)
    return replace(motion, covariance=covariance, relative=relative, log_det=log_det, condition=condition, optima=optima)


def _row_times(duration: float, rate: float) -> Array:
    """Return the times of the rows, of equal steps, from 0 to the duration."""
    return np.linspace(0.0, duration, max(round(duration * rate), 1) + 1)
