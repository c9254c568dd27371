"""Point-to-point motions of a robot under limits of velocity, acceleration and jerk."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from liedyn.analysis.configurations import check_repetition, positions_of
from liedyn.analysis.recorded_motion import trajectory_of
from liedyn.arrays import Array, ArrayLike, Mask
from liedyn.dynamics.batching.arrays import as_array
from liedyn.dynamics.batching.calls import check_finite
from liedyn.dynamics.constraints.couplings import checked_motion, follow_couplings
from liedyn.dynamics.inverse_kinematics import inverse_kinematics
from liedyn.dynamics.joint_values import with_joint_values
from liedyn.dynamics.kinematic_tasks import Task
from liedyn.dynamics.manifold import difference, integrate
from liedyn.errors import (
    ComputationError,
    ConfigurationError,
    LiedynWarning,
    ModelError,
    NameLookupError,
    UsageError,
    list_names,
    nearest,
    warn,
)
from liedyn.immutable import Immutable
from liedyn.io.trajectory_csv import Trajectory
from liedyn.kernels.simulation.signals import ORDER
from liedyn.model.model import Model
from liedyn.model.name_patterns import matching_names, values_by_name
from liedyn.simulation.limits import LimitViolation, limits_exceeded, motion_limits, start_warnings
from liedyn.simulation.name_binding import v_to_q_indices
from liedyn.simulation.signals.curves import Curve
from liedyn.simulation.signals.point_to_point import (
    LIMIT_TOLERANCE,
    MotionLimits,
    PointState,
    PointToPoint,
    fastest_motion,
    peak_rate,
)

Limit = float | Mapping[str, Any] | None

MAX_ROWS = 10_000_000    # of a trajectory
_SAMPLES = 400           # of a motion, at which followers and positions are compared with their limits
_AT_LIMIT = 1e-9         # of a limit, a rate or a number of steps: rounding of a motion that reaches it
_SLOWER = 1.001          # factor of the time of a motion whose followers exceed their limits, for maxima between samples


class MoveState(NamedTuple):
    """Configurations (..., nq), velocities and accelerations (..., nv) at given times."""

    q: Array
    v: Array
    a: Array


@dataclass(frozen=True, eq=False)
class Move(Immutable):
    """A motion of a robot from a state to rest at a configuration, in the shortest time that its limits allow.

    model      the robot
    q0, q1     (nq,) initial and final configuration
    duration   [s]
    limiting   the joints that need the whole duration, or whose followers do; then the followers at their limits. Empty if a
               longer duration was required
    knots      (k,) times at which the acceleration or its rate jumps, including start and end [s]

    Examples
    --------
    >>> model = ld.load("robots/panda.yaml")
    >>> move = ld.plan_move(model, {"panda_joint2": 0.5, "panda_joint4": -1.5}, acceleration=5.0, jerk=50.0)
    >>> q, v, a = move.at([0.0, move.duration])
    >>> move.trajectory(0.01).save("move.csv", force=True)
    """

    model: Model
    q0: Array
    q1: Array
    duration: float
    limiting: tuple[str, ...]
    knots: Array
    _curves: tuple[tuple[Array, Array], ...]                # breaks and coefficients
    _directions: Array                   # (nv, curves): displacement of each coordinate per unit of each curve

    def __repr__(self) -> str:
        return f"<Move of {self.model.name}: {self.summary}>"

    @property
    def summary(self) -> str:
        """Duration and limiting joints as text."""
        slowest = f"; limited by {list_names(self.limiting, 4)}" if self.limiting else ""
        return f"duration {self.duration:.6g} s{slowest}"

    def at(self, t: ArrayLike) -> MoveState:
        """Return q, v and a at the times t, a number or an (N,) array. Before the start and after the end, the robot rests.

        Before a start with a velocity or acceleration, the motion is that of the first part, continued.
        """
        times = np.asarray(t, dtype=float)
        if not np.isfinite(times).all():
            raise ConfigurationError("a time of the motion is not finite")
        x, v, a = (np.stack([_evaluate(*curve, times, k) for curve in self._curves], axis=-1) @ self._directions.T
                   if self._curves else np.zeros((*times.shape, self.model.nv)) for k in range(3))
        return MoveState(*follow_couplings(self.model, integrate(self.model, self.q0, x), v, a))

    def trajectory(self, step: float = 0.01) -> Trajectory:
        """Return the motion as a trajectory with columns q, v and a: rows every `step` seconds, and one at the end."""
        if not 0.0 < step < np.inf:
            raise UsageError(f"step must be a number of seconds > 0, got {step!r}")
        if self.duration / step > MAX_ROWS:
            raise UsageError(f"step {step:g} s needs more than {MAX_ROWS} rows; increase it")
        t = np.round(step * np.arange(max(np.ceil(self.duration / step * (1.0 - _AT_LIMIT)), 1.0)), 12)
        return trajectory_of(self.model, t := np.r_[t, self.duration or step], *self.at(t))


def _evaluate(breaks: Array, coefficients: Array, t: Array, order: int) -> Array:
    """Return the values or a time derivative of a curve."""
    k = np.clip(np.searchsorted(breaks, t, side="right") - 1, 0, None)
    c = coefficients[k]
    for _ in range(order):
        c = c[..., 1:] * np.arange(1, c.shape[-1])
    out, t = c[..., -1], t - breaks[k]
    for i in range(c.shape[-1] - 2, -1, -1):
        out = out * t + c[..., i]
    return np.asarray(out)


def plan_move(model: Model, target: ArrayLike | Mapping[str, Any], q0: ArrayLike | Mapping[str, Any] | None = None,     # noqa: PLR0913
              v0: ArrayLike | None = None, a0: ArrayLike | None = None, *, velocity: Limit = None, acceleration: Limit = None,
              jerk: Limit = None, duration: float | None = None, straight: bool = False) -> Move:
    """Return the fastest motion from a state to rest at a target, under limits. All joints arrive at the same time.

    Without a jerk limit, velocities are trapezoids; with one, they are S-curves. The coordinates of ball and free joints move
    along one screw. Motions from other states than rest require the package ruckig
    (`pip install 'liedyn[moves]'`).

    Parameters
    ----------
    model : Model
        Without loops. Mimic joints and couplings are followed; the limits of their joints count, too. Where a follower has a
        nonlinear coupling, these are its limits of velocity and acceleration, and the whole motion becomes slower.
    target : (nq,) array or {joint: values}
        Joints without a value stay.
    q0 : (nq,) array or {joint: values}, optional
        Initial configuration. Default, and joints without a value: neutral.
    v0, a0 : (nv,) arrays, optional
        Initial velocity and acceleration. Default: zero. An acceleration requires a jerk limit, since it may jump without one.
        Ball and free joints that move start at rest.
    velocity, acceleration, jerk : number or {joint, coordinate or pattern: number}, optional
        Maximum magnitudes: [rad/s | m/s], [rad/s^2 | m/s^2], [rad/s^3 | m/s^3]. Default: those of the robot file. Each joint
        that moves needs an acceleration limit. A name takes precedence over a pattern, a longer pattern over a shorter one. A
        start may make it impossible to keep within a limit: then a warning names it.
    duration : float, optional
        A longer duration [s].
    straight : bool
        Move along a straight line of coordinates: all joints follow one profile. This may take longer.

    Raises
    ------
    ConfigurationError
        For a target outside position limits.
    ComputationError
        For a duration that is too short, and a motion that would leave the position limits.
    UsageError, ModelError, NameLookupError, ShapeError

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> move = ld.plan_move(model, {"shoulder": 1.0, "elbow": 0.5}, velocity=2.0, acceleration=4.0)
    >>> move
    <Move of double_pendulum: duration 1 s; limited by shoulder>
    >>> move.at(0.5).v
    array([2., 1.])
    """
    if duration is not None and not 0.0 < duration < np.inf:
        raise UsageError(f"duration must be a number of seconds > 0, got {duration!r}")
    if model.nc and not model.has_only_couplings:
        raise ModelError(f"plan_move does not support robots with loops ({model.name})",
                         hint="simulate a scenario that prescribes independent joints with `move`")
    if target is None:
        raise UsageError("target: expected a configuration or values by joint, got None")
    first = configuration_of(model, q0, "q0", model.neutral())
    last = configuration_of(model, target, "target", first)
    _check_position_limits(model, last)
    warn(start_warnings(model, first))
    limits = MotionLimits(*(limits_by_name(model, name, limit, motion_limits(model, name)) for name, limit in (
        ("velocity", velocity), ("acceleration", acceleration), ("jerk", jerk))))
    warn(raised_limits(model, {name: (limit, motion_limits(model, name)) for name, limit in zip(
        MotionLimits._fields, limits, strict=True)}))
    rates = [_rate(model, x, name) for name, x in (("v0", v0), ("a0", a0))]
    plan = _Plan(model, first, last, rates[0], rates[1], limits, straight)
    return plan.move(duration)


def move_of_texts(model: Model, target: Sequence[str], start: Sequence[str], limits: Mapping[str, Sequence[str]], *,
                  tasks: Sequence[Task] = (), duration: float | None = None, straight: bool = False) -> Move:
    """Return the move of texts such as "elbow=0.5" or the name of a keyframe, and limits such as "2" or "elbow=2" by kind.

    tasks   that the target fulfils, as near to the start as possible. Joints of `target` keep their values.
    """
    q0 = configuration_of_texts(model, start, "start", model.neutral())
    q1 = configuration_of_texts(model, target, "target", q0)
    if tasks:
        fixed = [text.partition("=")[0].strip() for text in target if "=" in text]
        solution = inverse_kinematics(model, tasks, q1, posture=q1, fixed=fixed)
        if not solution.reached:
            raise ComputationError(f"the target is not reached: {solution.miss()}")
        q1 = solution.q
    return plan_move(model, q1, q0, velocity=limit_of_texts(limits["velocity"], "velocity"),
                     acceleration=limit_of_texts(limits["acceleration"], "acceleration"),
                     jerk=limit_of_texts(limits["jerk"], "jerk"), duration=duration, straight=straight)


def configuration_of_texts(model: Model, texts: Sequence[str], name: str, default: Array) -> Array:
    """Return the configuration of keyframes, which replace all joints, and of joints."""
    for text in texts:
        if "=" not in text:
            if text not in model.keyframes:
                names = f"the keyframes {list_names(tuple(model.keyframes), 8)}" if model.keyframes else "no keyframes"
                raise UsageError(f"{name} {text}: expected JOINT=VALUE or a keyframe; the robot has {names}")
            default = np.array(model.keyframes[text].q)
    joints = [text for text in texts if "=" in text]
    values = positions_of(model, joints, name)
    return configuration_of(model, values, name, default)


def limit_of_texts(texts: Sequence[str], kind: str) -> Limit:
    """Return limits by joint or pattern, "*" for all joints."""
    named = [(name.strip() or "*", value) for name, _, value in (text.rpartition("=") for text in texts)]
    check_repetition(kind, [name for name, _ in named])
    return {name: _limit(value, kind, f"{kind} {name}") for name, value in named} or None


@dataclass(frozen=True, eq=False)
class _Plan:
    model: Model
    q0: Array
    q1: Array
    v0: Array
    a0: Array
    limits: MotionLimits
    straight: bool

    def move(self, duration: float | None) -> Move:
        """Return the motion, slower if followers would exceed their limits. Warn of limits that the start exceeds."""
        move, beyond = self._move(self.limits, duration)
        for _ in range(2):
            factor, follower = self._excess(move, beyond)
            if factor <= 1.0 + _AT_LIMIT:
                self._check_positions(move)
                return move
            if self.v0.any() or self.a0.any():
                break
            slower = (limit / (factor * _SLOWER)**k for k, limit in enumerate(self.limits, 1))
            move, beyond = self._move(MotionLimits(*slower), duration)
            move = replace(move, limiting=(follower,) if move.limiting else ())
        raise ComputationError("joints that follow others would exceed their limits during the motion; reduce the limits of the "
                               "joints that they follow")

    def _move(self, limits: MotionLimits, duration: float | None) -> tuple[Move, Array]:
        """Return the motion, and by which factor (nv,) limits of coordinates are exceeded because of the start; at least 1."""
        model = self.model
        displacement = difference(model, self.q0, self.q1)
        directions, joints = self._directions(displacement)
        if not joints:
            nothing = np.zeros((model.nv, 0))
            return Move(model, self.q0, self.q1, duration or 0.0, (), np.zeros(1), (), nothing), np.ones(model.nv)
        ratios = self._ratios(directions)
        rates = (_along(np.where(self._followers(), 0.0, x), directions, name) for x, name in ((self.v0, "v0"), (self.a0, "a0")))
        start = PointState(np.zeros(len(joints)), *rates)
        first = [np.flatnonzero(column)[0] for column in directions.T]
        target = displacement[first] / directions[first, range(len(joints))]
        with np.errstate(divide="ignore", over="ignore"):
            curve_limits = MotionLimits(*((limit[:, None] / ratios).min(axis=0) for limit in limits))
        _check_limits(curve_limits, start, joints)
        planned: PointToPoint = fastest_motion(start, target, curve_limits, duration)
        peaks = [np.array([peak_rate(curve, order) for curve in planned.curves]) * ratios for order in (1, 2, 3)]
        at_limit = 1.0 - LIMIT_TOLERANCE
        slowest = planned.shortest >= planned.duration * at_limit
        binding = np.any([peak >= limit[:, None] * at_limit for peak, limit in zip(peaks, limits, strict=True)], axis=0)
        limiting = [name for k in np.flatnonzero(slowest) for name in self._limiting(binding[:, k], joints[k])]
        knots = np.unique(np.concatenate([curve.knots for curve in planned.curves]))
        curves = tuple(_with_rest(curve, not (v or a)) for curve, v, a in zip(planned.curves, start.v, start.a, strict=True))
        move = Move(model, self.q0, self.q1, planned.duration, tuple(dict.fromkeys(limiting)), knots, curves, directions)
        return move, self._beyond_limits(peaks, limits)

    def _limiting(self, binding: Mask, joints: tuple[str, ...]) -> Sequence[str]:
        """Return the joints that limit a curve: those that move along it; if followers are at a limit, only those at limits."""
        if not (binding & self._followers()).any():
            return joints
        return [joint.name for joint in self.model.joints if binding[joint.v].any()]

    def _beyond_limits(self, peaks: Sequence[Array], limits: MotionLimits) -> Array:
        """Return the factors (nv,) by which the start makes coordinates exceed their limits. Warn of them."""
        factors, messages = np.ones(self.model.nv), []
        for name, peak, limit in zip(limits._fields[:2], peaks, limits, strict=False):
            worst = peak.max(axis=1)
            for k in np.flatnonzero(worst > limit * (1.0 + LIMIT_TOLERANCE)):
                factors[k] = max(factors[k], worst[k] / limit[k])
                messages.append(f"{name} of {self.model.v_names[k]} reaches {worst[k]:.6g}, its limit is {limit[k]:.6g}")
        if messages:
            text = f"from this initial state, limits are exceeded: {list_names(messages, 4, '; ')}"
            warn([LiedynWarning("beyond-limits", text)])
        return factors

    def _ratios(self, directions: Array) -> Array:
        """Return the magnitudes of the displacements of all coordinates per unit of each curve (nv, curves).

        Followers with nonlinear couplings have zero.
        """
        followers = self._followers()
        if not followers.any():
            return np.abs(directions)
        at = [self.q0, integrate(self.model, self.q0, 0.5 * difference(self.model, self.q0, self.q1)), self.q1]
        moved = np.stack([np.stack([follow_couplings(self.model, q, column)[1] for column in directions.T], axis=1) for q in at])
        linear = np.isclose(moved, moved[0], rtol=_AT_LIMIT, atol=0.0).all(axis=0) | ~followers[:, None]
        return np.abs(np.where(linear, moved[0], 0.0))

    def _directions(self, displacement: Array) -> tuple[Array, list[tuple[str, ...]]]:
        """Return the displacement of the coordinates per unit of each curve (nv, curves), and the joints of each curve."""
        moving = (displacement != 0.0) | (self.v0 != 0.0) | (self.a0 != 0.0)
        moving &= ~self._followers()
        joints = [joint for joint in self.model.joints if moving[joint.v].any()]
        if self.straight and joints:
            return np.where(moving, displacement, 0.0)[:, None], [tuple(joint.name for joint in joints)]
        columns: list[Array] = []
        names: list[tuple[str, ...]] = []
        for joint in joints:
            for rows in ([joint.v] if joint.screws is None else [slice(k, k + 1) for k in range(joint.v.start, joint.v.stop)]):
                if moving[rows].any():
                    column = np.zeros(self.model.nv)
                    column[rows] = displacement[rows] if joint.screws is None else 1.0
                    columns.append(column)
                    names.append((joint.name,))
        return np.array(columns).reshape(-1, self.model.nv).T, names

    def _followers(self) -> Mask:
        return self.model.follows if self.model.nc else np.zeros(self.model.nv, dtype=bool)

    def _samples(self, move: Move) -> MoveState:
        return move.at(np.union1d(np.linspace(0.0, move.duration, _SAMPLES), move.knots))

    def _excess(self, move: Move, beyond: Array) -> tuple[float, str]:
        """Return the factor of time by which followers exceed their limits of velocity and acceleration, and the worst follower.

        beyond   factors (nv,) by which they exceed limits because of the start
        """
        followers = np.flatnonzero(self._followers())
        if not len(followers):
            return 1.0, ""
        state = self._samples(move)
        with np.errstate(divide="ignore", invalid="ignore"):
            v, a = (np.abs(x[:, followers]).max(axis=0) / (limit * beyond)[followers] for x, limit in (
                (state.v, self.limits.velocity), (state.a, self.limits.acceleration)))
        factors = np.maximum(v, np.sqrt(a))
        worst = int(np.argmax(factors))
        return float(factors[worst]), next(joint.name for joint in self.model.joints if joint.v.start <= followers[worst] <
                                           joint.v.stop)

    def _check_positions(self, move: Move) -> None:
        """Raise ComputationError if the motion leaves the position limits by more than it does at the start."""
        q = self._samples(move).q
        for excess in _positions_beyond_limits(self.model, q):
            start = q[0, v_to_q_indices(self.model)[self.model.v_names.index(excess.coordinate)]]
            if not start <= excess.worst <= excess.limit and not excess.limit <= excess.worst <= start:
                raise ComputationError(f"{excess.coordinate} reaches {excess.worst:.6g} {excess.unit} during the motion; "
                                       f"its limits are {_range(self.model, excess)}")


def configuration_of(model: Model, q: ArrayLike | Mapping[str, Any] | None, name: str, default: Array) -> Array:
    """Return a configuration from an array or from values by joint."""
    if isinstance(q, Mapping):
        out, followers = with_joint_values(model, default, q, name), model.follows if model.nc else np.zeros(model.nv, dtype=bool)
        for joint in q:
            if followers[model.v_index(joint)].any():
                raise UsageError(f"{name}: joint {joint} follows other joints: expected values of those only")
        return follow_couplings(model, integrate(model, out, np.zeros(model.nv)))[0]
    if q is None:
        return follow_couplings(model, default)[0] if model.nc else default
    x = as_array(q, name, (model.nq,))
    if x.ndim != 1:
        raise UsageError(f"{name} must be one configuration, got an array of shape {x.shape}")
    check_finite(name, x, model.q_names)
    return checked_motion(model, x)[0] if model.nc else x


def _rate(model: Model, x: ArrayLike | None, name: str) -> Array:
    if x is None:
        return np.zeros(model.nv)
    array = as_array(x, name, (model.nv,))
    check_finite(name, array, model.v_names)
    return array


def limits_by_name(model: Model, name: str, limit: Limit, default: Array) -> Array:
    """Return maximum magnitudes (nv,): `default`, replaced by a number or by numbers by name or pattern.

    name  of the quantity, in messages
    """
    if limit is None:
        return default
    out = default.copy()
    if not isinstance(limit, Mapping):
        return np.full(model.nv, _limit(limit, name, name))
    patterns: dict[str, float] = {}
    of_joints: dict[str, float] = {}
    for pattern, value in limit.items():
        number, joints = _limit(value, name, f"{name}[{pattern!r}]"), matching_names(pattern, model.joint_names)
        coordinates = [model.v_names[model.v_index(joint)] for joint in joints]
        if not joints and not matching_names(pattern, model.v_names):
            raise _unknown_joint(name, pattern, model)
        if pattern in model.joint_names:
            of_joints |= dict.fromkeys(coordinates[0], number)
        else:                                                  # also a pattern that matches joints and not their coordinates
            of_pattern = {coordinate for names in coordinates for coordinate in names}
            matches_coordinates = of_pattern <= set(matching_names(pattern, model.v_names))
            patterns[pattern if matches_coordinates else f"{pattern}.*"] = number
    exact = {pattern: number for pattern, number in patterns.items() if pattern in model.v_names}
    for coordinate, number in values_by_name(patterns | of_joints | exact, model.v_names, "coordinate").items():
        out[model.v_names.index(coordinate)] = number
    return out


_PER_TIME = {"lower position": "", "upper position": "", "velocity": "/s", "acceleration": "/s^2", "jerk": "/s^3"}


def raised_limits(model: Model, limits: Mapping[str, tuple[Array, Array]]) -> Iterator[LiedynWarning]:
    """Yield a warning for each kind of limits {kind: (limits (nv,), those of the robot file)} that allow more than the file's."""
    for kind, (values, of_file) in limits.items():
        units = [f"{unit}{_PER_TIME[kind]}" for unit in model.v_units] if kind in _PER_TIME else model.tau_units
        sign = -1.0 if kind.startswith("lower") else 1.0
        above = [f"{name} {x:g} {unit} (robot file: {y:g})" for name, x, y, unit in
                 zip(model.v_names, values.tolist(), of_file.tolist(), units, strict=True)
                 if sign * x > sign * y + LIMIT_TOLERANCE * abs(y)]
        if above:
            yield LiedynWarning("limits-raised", f"the {kind} limits exceed those of the robot file, so that the robot may not "
                                f"be able to follow: {list_names(above, 6)}")


def _limit(value: Any, kind: str, name: str) -> float:
    """Return a maximum magnitude, which is finite for accelerations. Raise UsageError for other values."""
    try:
        number = np.nan if isinstance(value, bool | np.bool_) else float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not number > 0.0:
        raise UsageError(f"{name} must be a number > 0, got {value!r}")
    if kind == "acceleration" and number == np.inf:
        raise UsageError(f"{name} must be a finite number, got {value!r}; each joint that moves needs an acceleration limit")
    return number


def _check_position_limits(model: Model, q: Array) -> None:
    """Raise ConfigurationError for a target outside position limits."""
    for excess in _positions_beyond_limits(model, q[None])[:1]:
        raise ConfigurationError(f"the target of {excess.coordinate} is {excess.worst:.6g} {excess.unit}; "
                                 f"its limits are {_range(model, excess)}")


def _positions_beyond_limits(model: Model, q: Array) -> tuple[LimitViolation, ...]:
    """Return the coordinates of q (N, nq) beyond their position limits."""
    zero = np.zeros((len(q), model.nv))
    return limits_exceeded(model, np.zeros(len(q)), q, zero, zero)


def _range(model: Model, excess: LimitViolation) -> str:
    k = model.v_names.index(excess.coordinate)
    return f"{model.lower[k]:g} to {model.upper[k]:g}"


def _unknown_joint(argument: str, name: str, model: Model) -> NameLookupError:
    hint = nearest(name, model.joint_names)
    return NameLookupError(f"{argument}: the robot has no moving joint {name!r}" + (f" ({hint})" if hint else
                           f": expected one of {list_names(model.joint_names, 8)}"))


def _along(x: Array, directions: Array, name: str) -> Array:
    """Return rates of the coordinates as rates of the curves. Raise UsageError if they are not along the curves."""
    sizes = (directions**2).sum(axis=0)
    values = np.asarray(x @ directions / np.where(sizes > 0.0, sizes, 1.0))
    if np.abs(x - directions @ values).max(initial=0.0) > _AT_LIMIT * np.abs(x).max(initial=0.0):
        raise UsageError(f"{name} is not along the motion; ball and free joints, and straight motions, start at rest or along it")
    return values


def _check_limits(limits: MotionLimits, start: PointState, joints: list[tuple[str, ...]]) -> None:
    """Raise UsageError for a motion without a limit of acceleration, and one with an initial acceleration that may jump."""
    if missing := _names_of(~np.isfinite(limits.acceleration), joints):
        raise UsageError(f"no acceleration limit of {missing}; give `acceleration`, or `limits: {{acceleration: …}}` of the "
                         "joints in the robot file")
    if jumping := _names_of((start.a != 0.0) & ~np.isfinite(limits.jerk), joints):
        raise UsageError(f"a0 of {jumping} has no effect without a jerk limit, since accelerations may jump; give `jerk`, or "
                         "omit a0")


def _names_of(mask: Mask, joints: list[tuple[str, ...]]) -> str:
    return list_names([name for names, selected in zip(joints, mask, strict=True) if selected for name in names], 6)


def _with_rest(curve: Curve, at_rest: bool) -> tuple[Array, Array]:
    """Return the breaks and coefficients of a curve, constant before its start if it starts at rest."""
    if not at_rest:
        return curve.breaks, curve.coefficients
    return np.r_[-1.0, curve.breaks], np.vstack([np.eye(1, ORDER) * curve.coefficients[0, 0], curve.coefficients])
