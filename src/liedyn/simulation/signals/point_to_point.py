"""Fastest motions to a target under limits of velocity, acceleration and jerk, as curves.

Motions from rest have a closed form. The package ruckig computes those from other states.

Without a jerk limit the velocity is a trapezoid; with it, the acceleration is one, and the velocity has the shape of an S.
"""
from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from math import comb
from typing import Any, NamedTuple

import numpy as np

from liedyn.arrays import Array
from liedyn.errors import ComputationError, UsageError
from liedyn.kernels.simulation.signals import ORDER
from liedyn.simulation.signals.curves import SAME_TIME, Curve

LIMIT_TOLERANCE = 1e-6   # of a limit or a duration: rates within it are at the limit; Ruckig computes to about 1e-8
_CLOSE = 1e-5            # of the distance, in a time of one: a larger error at the end of Ruckig's motion is a failure
_LONG = 1e3              # units of time: Ruckig computes motions of up to 7.6e3
_ROUNDS = 10             # of the search for a common duration of coordinates with an initial velocity


class MotionLimits(NamedTuple):
    """Maximum magnitudes of the rates of n coordinates: (n,) arrays. Velocity and jerk may be infinite."""

    velocity: Array
    acceleration: Array
    jerk: Array


class PointState(NamedTuple):
    """Positions, velocities and accelerations of n coordinates: (n,) arrays."""

    x: Array
    v: Array
    a: Array


class PointToPoint(NamedTuple):
    """A motion that ends at rest: a curve of each coordinate, constant at the end; its duration [s].

    shortest   (n,) duration that each coordinate needs if it moves alone
    """

    curves: tuple[Curve, ...]
    duration: float
    shortest: Array


def fastest_motion(start: PointState, target: Array, limits: MotionLimits, duration: float | None = None) -> PointToPoint:
    """Return the fastest motion from a state to rest at the target (n,). All coordinates arrive at the same time.

    Coordinates that start at rest and would be faster follow their fastest motion more slowly.

    duration   longer than the shortest possible one [s]; None: the shortest one

    Raises ComputationError if the duration is too short, if the motion is not finite, or if Ruckig does not find one.
    """
    with np.errstate(all="ignore"):
        motion = _fastest_motion(start, target, limits, duration)
    if not all(np.isfinite(curve.coefficients).all() and np.isfinite(curve.breaks).all() for curve in motion.curves):
        raise ComputationError("the motion is not finite under these limits, which are too far apart, or from the distance")
    return motion


def _fastest_motion(start: PointState, target: Array, limits: MotionLimits, duration: float | None) -> PointToPoint:
    requests = [_Request(*values) for values in zip(*start, target, *limits, strict=True)]
    alone = [_single(request, 0.0) for request in requests]
    shortest = np.array([motion.duration for motion in alone])
    total = float(shortest.max(initial=0.0))
    if duration is not None and total > duration * (1.0 + _CLOSE):
        raise _duration_error(total, duration)
    total = max(total, duration or 0.0)
    for _ in range(_ROUNDS):                                   # with a velocity, some durations are impossible
        motions = [_single(request, total) for request in requests]
        longest = max([total, *(motion.duration for motion in motions)])
        if longest <= total * (1.0 + _CLOSE):
            return PointToPoint(tuple(motion.curve for motion in motions), total, shortest)
        if duration is not None:
            raise _duration_error(longest, duration)
        total = longest
    raise ComputationError("no common duration of the motions of all coordinates was found; let them start at rest")


def _duration_error(total: float, duration: float) -> ComputationError:
    return ComputationError(f"the motion takes at least {total:.6g} s under these limits, longer than the {duration:g} s of "
                            "`duration`")


class _Request(NamedTuple):
    x: float
    v: float
    a: float
    target: float
    max_v: float
    max_a: float
    max_j: float


class _Single(NamedTuple):
    curve: Curve
    duration: float


def _slower(motion: _Single, duration: float) -> _Single:
    """Return the motion from rest to rest over a longer time."""
    if not motion.duration:
        return motion
    factor = duration / motion.duration
    curve = motion.curve
    return _Single(Curve(curve.breaks * factor, curve.coefficients / factor ** np.arange(ORDER), curve.knots * factor), duration)


def peak_rate(curve: Curve, order: int) -> float:
    """Return the maximum magnitude of the first, second or third time derivative of a curve of `fastest_motion`.

    Accelerations are linear between breaks, and velocities may have a maximum where the acceleration is zero.
    """
    c = curve.coefficients
    rates = np.prod(np.arange(1, order + 1)) * c[:, order]
    if order > 1:
        return float(np.abs(rates).max())
    turns = np.flatnonzero(c[:-1, 3])
    t = np.clip(-c[turns, 2] / (3.0 * c[turns, 3]), 0.0, np.diff(curve.breaks)[turns])
    return float(np.abs(np.r_[rates, c[turns, 1] + t * (2.0 * c[turns, 2] + t * 3.0 * c[turns, 3])]).max())


def stop_and_go(points: Sequence[Sequence[float | None]], limits: MotionLimits) -> Curve:
    """Return the curve of the fastest motions from the start (t, x, dx, ddx) to targets (t, x), at rest at each of them.

    t of a target is the time at which the motion to it starts; None: when the previous one ends. limits: of one coordinate

    Raises ComputationError if a motion has not ended when the next one starts, and as `fastest_motion`.
    """
    t, *state = (float(x or 0.0) for x in points[0])
    at = PointState(*(np.array([x]) for x in state))
    breaks, coefficients = [t - 1.0], [np.eye(1, ORDER)[0] * state[0]]
    for number, (begin, x) in enumerate(points[1:], 1):
        if begin is not None and begin < t - SAME_TIME * max(abs(t), 1.0):
            raise ComputationError(f"the motion to point {number} starts at {begin:g} s; the motion before it ends at {t:.6g} s")
        t = t if begin is None else max(begin, t)
        motion = fastest_motion(at, np.array([x], dtype=float), limits)
        breaks += list(motion.curves[0].breaks + t)
        coefficients += list(motion.curves[0].coefficients)
        t += motion.duration
        at = PointState(np.array([x], dtype=float), np.zeros(1), np.zeros(1))
    starts = np.array(breaks)
    last = np.r_[starts[1:] > starts[:-1], True]               # without pieces of no length, where a motion starts at once
    return Curve(starts[last], np.array(coefficients)[last], starts[1:])


def _ruckig() -> Any:
    if find_spec("ruckig") is None:
        raise UsageError("motions that start with a velocity are computed by the package ruckig: pip install 'liedyn[moves]'")
    return import_module("ruckig")


def _from_rest(x: float, target: float, max_v: float, max_a: float, max_j: float) -> _Single:
    """Return the fastest motion from rest to rest: seven phases of constant jerk, or three of constant acceleration.

    The velocity rises within `rise` to its peak, with the maximum acceleration a = j t_j; without a jerk limit, t_j = 0.
    """
    distance = abs(target - x)
    if distance == 0.0:
        return _Single(Curve(np.zeros(1), np.eye(1, ORDER) * target, np.zeros(1)), 0.0)
    t_j = max_a / max_j                                        # time to the maximum acceleration
    if max_v < max_a * t_j:                                    # the maximum velocity is reached before
        t_j = np.sqrt(max_v / max_j)
    rise = max(t_j + max_v / max_a, 2.0 * t_j)
    cruise = distance / max_v - rise
    if not cruise >= 0.0:                                      # also for unlimited velocity
        cruise, t_j = 0.0, min(t_j, np.cbrt(distance / (2.0 * max_j)))
        rise = max(0.5 * t_j + np.sqrt(0.25 * t_j**2 + distance / max_a), 2.0 * t_j)
    peak = distance / (rise + cruise)                          # exactly: the mean velocity of both ramps is half of it
    a = peak / (rise - t_j)
    j = a / t_j if t_j else 0.0
    times = np.array([t_j, rise - 2.0 * t_j, t_j, cruise, t_j, rise - 2.0 * t_j, t_j])
    jerks = np.array([j, 0.0, -j, 0.0, -j, 0.0, j])
    accelerations = np.array([0.0 if t_j else a, a, a, 0.0, 0.0 if t_j else -a, -a, -a])
    sign, at, v, t, breaks, pieces = np.sign(target - x), 0.0, 0.0, 0.0, [], []
    for dt, jerk, acceleration in zip(times, jerks, accelerations, strict=True):
        if dt > 0.0:
            breaks.append(t)
            pieces.append([x + sign * at, sign * v, sign * acceleration / 2.0, sign * jerk / 6.0, 0.0, 0.0])
            at += dt * (v + dt * (acceleration / 2.0 + dt * jerk / 6.0))
            v += dt * (acceleration + dt * jerk / 2.0)
            t += dt
    ends = np.r_[breaks, t]
    return _Single(Curve(ends, np.vstack([pieces, np.eye(1, ORDER) * target]), ends), float(t))


def _single(request: _Request, duration: float) -> _Single:
    """Return the motion of one coordinate, which takes at least `duration`.

    Ruckig's tolerances are absolute. The units of time and length are those of the phases of the motion.
    """
    x, v, a, target, max_v, max_a, max_j = request
    if v == 0.0 and a == 0.0:
        motion = _from_rest(x, target, max_v, max_a, max_j)
        return _slower(motion, duration) if duration > motion.duration else motion
    ruckig, distance = _ruckig(), abs(target - x)
    longest = max(distance / max_v, np.sqrt(distance / max_a), np.cbrt(distance / max_j), abs(v) / max_a, abs(a) / max_j)
    unit = max(min(longest, max_v / max_a + max_a / max_j), longest / _LONG)
    scale = max(min(distance, max_a * unit**2), abs(v) * unit, abs(a) * unit**2)
    task, trajectory = ruckig.InputParameter(1), ruckig.Trajectory(1)
    task.current_position, task.target_position = [0.0], [(target - x) / scale]
    task.current_velocity, task.current_acceleration = [v * unit / scale], [a * unit**2 / scale]
    task.max_velocity, task.max_acceleration = [max_v * unit / scale], [max_a * unit**2 / scale]
    task.max_jerk, task.minimum_duration = [max_j * unit**3 / scale], duration / unit
    try:
        code = ruckig.Ruckig(1).calculate(task, trajectory)
    except (ruckig.RuckigError, ValueError) as error:          # codes without a name are a ValueError
        code = str(error).strip().splitlines()[0] or type(error).__name__
    if code != ruckig.Result.Working:
        raise ComputationError(f"no motion under these limits ({code}); the initial velocity or acceleration may be far beyond "
                               "them")
    curve = _curve(trajectory.profiles[0][0], x, target, scale, unit, bool(np.isfinite(max_j)))
    return _Single(curve, trajectory.duration * unit)


def _curve(profile: Any, start: float, target: float, scale: float, unit: float, smooth: bool) -> Curve:
    """Return the curve of a profile of Ruckig, whose parts are cubic, and constant at the target afterwards."""
    breaks, pieces, t = [0.0], [[0.0] * 4], 0.0
    for part in (profile.brake, profile, profile.accel):
        for k, dt in enumerate(part.t):
            if dt > 0.0:
                breaks.append(t)
                pieces.append([part.p[k], part.v[k], part.a[k] / 2.0, part.j[k] / 6.0])
                t += dt
    starts, coefficients = np.array(breaks[1:]), np.zeros((len(pieces) - 1, ORDER))
    coefficients[:, :4] = np.array(pieces[1:]).reshape(-1, 4)
    if t > 0.0:
        coefficients += _correction(coefficients[-1], t - starts[-1], t, (target - start) / scale, starts, smooth)
    units = scale / unit ** np.arange(ORDER)
    ends = np.r_[starts, t] * unit
    coefficients = np.vstack([coefficients * units, [target, *[0.0] * (ORDER - 1)]])
    coefficients[:-1, 0] += start
    return Curve(ends, coefficients, ends)


def _correction(last: Array, length: float, duration: float, goal: float, starts: Array, smooth: bool) -> Array:
    """Return what makes a motion end exactly at rest at the goal: a small polynomial over the whole motion, by pieces.

    Ruckig computes to about 1e-8. smooth: whether the acceleration is continuous and ends at zero.
    """
    powers = length ** np.arange(ORDER)
    errors = [goal - last @ powers, -(last[1:] @ (np.arange(1, ORDER) * powers[:-1])),
              -(last[2:] @ (np.arange(2, ORDER) * np.arange(1, ORDER - 1) * powers[:-2]))]
    sizes = [abs(error) * duration**k for k, error in enumerate(errors[:3 if smooth else 2])]
    if max(sizes) > _CLOSE:
        raise ComputationError(f"the motion of Ruckig misses its target by {max(sizes):.3g} of the distance")
    n = len(sizes)
    exponents = np.arange(n, 2 * n)                            # of t / duration: n derivatives are zero at the start
    falling = np.ones((n, n))
    for k in range(1, n):
        falling[k] = falling[k - 1] * (exponents - k + 1)
    ends = np.linalg.solve(falling, [error * duration**k for k, error in enumerate(errors[:n])])
    polynomial = np.zeros(ORDER)
    polynomial[exponents] = ends / duration ** exponents.astype(float)
    return np.array([shifted(polynomial, t) for t in starts])


def shifted(polynomial: Array | Sequence[float], t: float) -> Array:
    """Return the coefficients of p(t + s) in s from those of p, in ascending order."""
    n = len(polynomial)
    return np.array([sum(polynomial[i] * comb(i, k) * t ** (i - k) for i in range(k, n)) for k in range(n)])
