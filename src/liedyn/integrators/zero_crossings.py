"""Switches of the state: detect where the argument of step, sign, abs, floor, min or max crosses zero during a motion.

During a step every switch keeps the side that it has at the beginning of the step, so that the method integrates a smooth
problem. If a switch crosses in a step, the step is repeated with the length at which it ends there, and the next step starts on
the other side (Hairer, Norsett, Wanner, Solving ODEs I, II.6). An event keeps its sign between segments (`SegmentStart.signs`).
It happens where the sign changes or zero is reached. While it is disarmed, it happens only beyond its rounding bound. A switch
that chatters (dry friction that sticks) cannot be resolved by shorter steps. It is released until the next break of the
schedule, and then changes sides only between steps.
"""
from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from liedyn.arrays import Array, ArrayLike, Integers, Mask
from liedyn.errors import Place, WarningLog
from liedyn.integrators.problem import NO_DIRECTION, STAYS_AT_ZERO, InitialValueProblem, SegmentStart
from liedyn.kernels.simulation.signals import (
    CHATTERING,
    EVENT,
    FLOOR,
    KIND,
    PROGRAM,
    SIGN,
    STEP,
    SWITCH_OPERATIONS,
    SWITCH_SIGN,
    SWITCH_SIZE,
    SWITCH_VALUE,
    Signals,
)

Numbers: TypeAlias = Any         # a number, or an array of numbers

# dips -------------------------------------------------------------------------------------------------------------------

# Search for a value of an event that leaves its side within a step, and possibly returns in the same step: at samples of the
# step, and near the minima of parabolas through three of them.

_MIN_CURVATURE = 0.5         # of the deviation of values from a straight line: a smaller minimum can be beyond zero
_SAFE_DECREASE = 0.1         # of a value: if the next value is lower by less, none is beyond zero
_FAR_FACTOR = 2.0            # of the difference between the maximum and the minimum
_MAX_TRIES = 20              # iterations towards a minimum
_MAX_ROUNDS = 20             # rounds: the last interval is 2^-20 of the step with two samples per round, 4^-20 with four


def first_double_crossing(violation_after: Callable[[float], float], event_values: Callable[[], np.ndarray],
                          n_parts: int) -> float | None:
    """Return a fraction of a step at which a switch is beyond its side, as early as possible; None if none is found.

    Samples the ends of `n_parts` equal parts of the step. The part before the first sample beyond is sampled again, since other
    switches can be beyond within it. Minima of parabolas through the values of events are checked if they are below zero.

    violation_after  function of a fraction: makes that fraction of the step and returns the maximum violation of the switches
    event_values     function: returns the values of events at that fraction, positive on their sides
    """
    end, is_beyond = 1.0, False
    for _ in range(_MAX_ROUNDS):
        shares, values, ends_beyond = _sample_step(violation_after, event_values, end, n_parts)
        is_beyond, end = is_beyond or ends_beyond, float(shares[-1])
        if len(shares) > n_parts:
            break
    minima = ((*minimum, e) for e in np.flatnonzero(~is_far(values)) for minimum in _sample_minima(shares, values[:, e]))
    for fraction, lowest, e in sorted(minima):
        crossing = _minimum(violation_after, event_values, int(e), fraction, lowest, dict(zip(shares, values[:, e], strict=True)))
        if crossing is not None:
            return crossing
    return end if is_beyond else None


def _sample_step(violation_after: Callable[[float], float], event_values: Callable[[], np.ndarray], end: float,
                 n_parts: int) -> tuple[np.ndarray, np.ndarray, bool]:
    """Sample a step up to `end` in equal parts, until a switch is beyond its side.

    Returns the shares, the values of events there (shares, events), and whether a switch is beyond.
    """
    values = []
    for k in range(n_parts + 1):
        is_beyond = violation_after(end * k / n_parts) > 0 and k > 0
        values.append(event_values())
        if is_beyond:
            break
    return end * np.arange(len(values)) / n_parts, np.array(values), is_beyond


def is_far(values: Array) -> Mask:
    """Return whether each event is too far from zero to reach it between two samples. values: (samples, events)."""
    low = values.min(axis=0)
    with np.errstate(invalid="ignore"):                        # the time since an event that has not happened is infinite: far
        near: Mask = low <= _FAR_FACTOR * (values.max(axis=0) - low)
    return ~near


def _sample_minima(x: Array, y: Array) -> list[tuple[float, float]]:
    """Return the places and values of possible minima of y(x) below zero."""
    minima = []
    for k in range(len(x) - 2):
        at, lowest = _parabola_vertex(x[k:k + 3], y[k:k + 3])
        chord = y[k] + (x[k + 1] - x[k]) / (x[k + 2] - x[k]) * (y[k + 2] - y[k])
        if at is not None and lowest < _MIN_CURVATURE * (chord - y[k + 1]):
            minima.append((float(at), float(lowest)))
    return minima


def _minimum(violation_after: Callable[[float], float], event_values: Callable[[], np.ndarray], e: int, fraction: float,
             lowest: float, known: dict[float, float]) -> float | None:
    """Return a fraction at which a switch is beyond, searched from `fraction` towards the minimum of event e near it.

    Returns None as soon as parabolas predict the values and none is beyond.

    lowest  predicted value at `fraction`
    known   values by fraction
    """
    for _ in range(_MAX_TRIES):
        if violation_after(fraction) > 0:
            return fraction
        known[fraction] = float(event_values()[e])
        distance = abs(known[fraction] - lowest)
        order = sorted(known)
        at = order.index(fraction)
        at = min((at - 1, at, at + 1), key=lambda n: known[order[n]])
        if not 0 < at < len(order) - 1:
            return None
        lowest_value, near = known[order[at]], order[at - 1:at + 2]
        vertex, lowest = _parabola_vertex(near, [known[x] for x in near])
        if vertex is None or max(lowest_value - lowest, distance) < _SAFE_DECREASE * lowest_value or vertex in known:
            return None
        fraction = vertex
    return None


def _parabola_vertex(x: Sequence[float] | Array, y: Sequence[float] | Array) -> tuple[float | None, float]:
    """Return the place and value of the minimum of the parabola through three points; None, nan if it has none between them."""
    slope = (y[1] - y[0]) / (x[1] - x[0])
    bent = ((y[2] - y[1]) / (x[2] - x[1]) - slope) / (x[2] - x[0])
    if not bent > 0.0:
        return None, np.nan
    at = (x[0] + x[1]) / 2 - slope / (2 * bent)
    return (at, y[0] + slope * (at - x[0]) + bent * (at - x[0]) * (at - x[1])) if x[0] < at < x[2] else (None, np.nan)


# Signs of event expressions: the side of zero, and whether the next flight can be resolved ------------------------------

# An expression keeps its sign while a run is integrated. After a jump the new sign follows from the value, and within its
# rounding bound from its first and second time derivative along the flow. Until the expression exceeds the bound, the event is
# disarmed: it happens only where the expression falls below minus the bound.

# rounding error of an expression in epsilons of its terms. A chain of transforms of 30 links stays below half
ROUNDING = 64.0
START_FACTOR = 8.0           # bounds: deviation from zero of the final state of another run that is the initial state of a run
_RESOLVED_FACTOR = 4.0       # bounds: higher flights exceed their rounding when the time until their end is bisected
_MIN_FLIGHT_SPACINGS = 64.0  # spacings of floats at the duration of a run: shorter flights are not resolved


def rounding_bound(size: ArrayLike) -> Array:
    """Return the rounding bound of an expression whose terms and their inputs sum up to `size` in absolute value."""
    return ROUNDING * np.finfo(float).eps * np.asarray(size)


def sign_after(value: ArrayLike, rate: ArrayLike, curvature: ArrayLike, bound: Numbers) -> Any:
    """Return the sign of an expression just after the present time, 0 if it is zero.

    It is the sign of the value if that exceeds its rounding bound. Otherwise it is the sign of the rate, unless the curvature
    reverses the motion before the value exceeds the bound. Otherwise it is the sign of the curvature. Derivatives that are NaN
    count as 0.
    """
    value, rate, curvature = (np.nan_to_num(np.asarray(x, dtype=float), nan=0.0) for x in (value, rate, curvature))
    by_motion = np.where(reverses_at_once(rate, curvature, bound) | (rate == 0.0), np.sign(curvature), np.sign(rate))
    return np.where(np.abs(value) > bound, np.sign(value), by_motion)


def zero_at_start(value: Numbers, rate: Numbers, curvature: Numbers, bound: Numbers, begins: Numbers) -> Any:
    """Return whether an expression counts as zero at the start of a run.

    It does within its rounding bound. It also does within `begins`, the possible deviation at the end of another run, unless it
    moves towards zero: then its event is still ahead.
    """
    ahead = (value * rate < 0.0) & ~is_below_rounding(rate, curvature, begins)
    return (np.abs(value) <= bound) | ((np.abs(value) <= begins) & ~ahead)


def is_returning(rate: Numbers, sign: Numbers, bound: Numbers, elapsed: Numbers) -> Any:
    """Return whether an expression that has left zero to the side `sign` returns after it has exceeded its rounding bound."""
    return (rate * sign < 0.0) & (np.abs(rate) * elapsed > bound)


def is_resolvable(rate: Numbers, curvature: Numbers, bound: Numbers, duration: float) -> Any:
    """Return whether a flight that leaves zero at `rate` and is reversed by `curvature` can be resolved in a run of `duration`.

    Its height must exceed the rounding bound, and its end must be distinguishable from the present time. True if it is not
    reversed.
    """
    rate, curvature = np.asarray(rate, dtype=float), np.asarray(curvature, dtype=float)
    back = (rate * curvature < 0.0) | (rate == 0.0)
    with np.errstate(all="ignore"):
        flight = 2.0 * np.abs(rate / curvature)
    short = flight <= _MIN_FLIGHT_SPACINGS * np.spacing(np.abs(duration))
    return ~(back & (is_below_rounding(rate, curvature, _RESOLVED_FACTOR * np.asarray(bound)) | (rate == 0.0) | short))


def is_below_rounding(rate: Numbers, curvature: Numbers, bound: Numbers) -> Any:
    """Return whether the curvature compensates the rate, whatever its sign, within the rounding bound of the value."""
    return rate * rate <= 2.0 * np.abs(curvature) * bound


def reverses_at_once(rate: Any, curvature: Any, bound: Numbers) -> Any:
    """Return whether the curvature reverses an expression before it exceeds its rounding bound."""
    return (rate * curvature < 0.0) & is_below_rounding(rate, curvature, bound)


# Conditions of events, for arrays of any shape --------------------------------------------------------------------------

_MIN_VIOLATION = np.finfo(float).tiny  # violation of an event whose expression is zero; its negative for a switch


def is_expected(sign: Any, direction: Any) -> Any:
    """Return whether an event happens when its expression leaves the side `sign` (1 or -1, otherwise unknown).

    direction: 1 rising, -1 falling, 0 both; others neither.
    """
    return (np.abs(sign) == 1.0) & ((direction == 0) | (direction == -sign))


def violation(sign: Any, value: Any, armed: bool | Mask = True, bound: Numbers = 0.0) -> Any:
    """Return how far the expression of an event is beyond its side: positive beyond, negative otherwise, never zero.

    Zero counts as beyond for an armed event. A disarmed event is beyond only outside its rounding bound.
    """
    beyond = -sign * value
    beyond = np.where(armed, np.where(beyond == 0.0, _MIN_VIOLATION, beyond), beyond - bound)
    return np.where(beyond == 0.0, -_MIN_VIOLATION, beyond)


def crossed(sign: Any, value: Any, direction: Any) -> Any:
    """Return whether an armed event happens at this value of its expression."""
    return is_expected(sign, direction) & (violation(sign, value) > 0.0)


def crossing_direction(sign: Numbers, direction: Numbers) -> Any:
    """Return the direction in which an event happens: 1 rising, -1 falling. If it happens in both, it is away from its side."""
    return np.where(direction == 0, -sign, direction)


def is_arriving(before: EventSigns, rate: Any, curvature: Any, elapsed: Numbers) -> Any:
    """Return whether an expression that is zero within rounding is crossing to the other side.

    The event must be armed, or its expression must return after it has exceeded its rounding in the time `elapsed`.
    """
    comes = np.where(before.armed, rate * before.sign < 0.0, is_returning(rate, before.sign, before.bound, elapsed))
    return comes & ~reverses_at_once(rate, curvature, before.bound)


def comes_to_rest(turned: Any, rate: Numbers, curvature: Numbers, bound: Numbers, duration: float) -> Any:
    """Return whether an expression stays at zero after an impact: it does not move, or its flight cannot be resolved in this run.

    turned: whether the impact has reversed its rate.
    """
    below = is_below_rounding(rate, curvature, bound)
    still = below & (rate * curvature >= 0.0)
    return (turned | below) & (still | ~is_resolvable(rate, curvature, bound, duration))


class EventSigns(NamedTuple):
    """State of event expressions.

    sign   side of zero: 1 or -1; other values: unknown
    armed  whether reaching zero is an event
    bound  bound within which a disarmed expression counts as zero
    """

    sign: Numbers
    armed: bool | Mask
    bound: Numbers


def signs_after_event(before: EventSigns, value: Array, rate: Array, curvature: Array, rounding: Array, triggered: Mask,
                      at_start: bool = False) -> tuple[EventSigns, np.ndarray]:
    """Return the signs after events have changed the state, and which expressions leave zero.

    Signs of expressions that leave zero follow from their derivatives, 0 if they stay at zero. Other expressions keep their sign
    within their bound, or have the sign of their value.

    before    state before; bound is zero where the event is armed and its expression has not jumped
    value     values of the expressions; rate and curvature are NaN where unknown, or where the value exceeds its bound
    rounding  rounding bounds of the values
    triggered  events that have just happened, and whose expressions have not jumped since
    at_start  whether a run starts: zero then includes the deviation at the end of another run
    """
    size, bound = np.abs(value), np.maximum(rounding, before.bound)
    begins = np.where(size <= START_FACTOR * bound, START_FACTOR * bound, bound) if at_start else bound
    zero = triggered | zero_at_start(value, rate, curvature, bound, begins)
    passed = triggered | (before.armed & (before.sign * value <= 0.0))         # another event waits for its other side
    stays = zero & ~passed & (np.abs(before.sign) == 1.0)
    leaves = zero & ~stays
    bound = np.where(leaves, np.maximum(begins, 2.0 * size), begins)       # as far beyond as it was found
    sign = sign_after(np.where(zero, 0.0, value), rate, curvature, np.where(triggered, bound, rounding))
    return EventSigns(np.where(stays, before.sign, sign), np.where(stays, before.armed, ~zero), bound), leaves


# Root search for many runs ----------------------------------------------------------------------------------------------

_MAX_ITERATIONS = 200


def find_crossings(functions: Callable[[np.ndarray], np.ndarray], begin: np.ndarray, xtol: float) -> np.ndarray:
    """Return (n,) fractions in (begin, 1], about xtol beyond the roots of n continuous functions, which are negative at 1.

    Inverse quadratic interpolation or bisection by Chandrupatla's rule (Advances in Engineering Software 28, 1997). SciPy
    provides it for arrays since 1.15 (scipy.optimize.elementwise.find_root).
    """
    n = len(begin)
    x1, x2 = begin.copy(), np.ones(n)
    f1, f2, t = np.maximum(functions(x1), np.finfo(float).tiny), functions(x2), np.full(n, 0.5)
    for _ in range(_MAX_ITERATIONS):
        x = x1 + t * (x2 - x1)
        f = functions(x)
        same = (f < 0.0) == (f1 < 0.0)
        x3, f3 = np.where(same, x1, x2), np.where(same, f1, f2)
        x2, f2 = np.where(same, x2, x1), np.where(same, f2, f1)
        x1, f1 = x, f
        width = np.abs(x2 - x1)
        if (width <= 2 * xtol).all():
            break
        with np.errstate(all="ignore"):
            margin, xi, phi = xtol / width, (x1 - x2) / (x3 - x2), (f1 - f2) / (f3 - f2)
            t = f1 / (f2 - f1) * f3 / (f2 - f3) + (x3 - x1) / (x2 - x1) * f1 / (f3 - f1) * f2 / (f3 - f2)
        t = np.where((phi**2 < xi) & ((1.0 - phi) ** 2 < 1.0 - xi) & np.isfinite(t), t, 0.5)
        t = np.where(width > 2 * xtol, np.clip(t, margin, 1.0 - margin), 0.0)        # converged
    return np.where(f1 < 0.0, x1, x2)


# switching --------------------------------------------------------------------------------------------------------------

CHATTERING_COUNT, CHATTERING_SPAN = 10, 1e-6     # so many crossings of a switch within this share of a step: it chatters
MAX_CROSSINGS = 1000                   # of one switch within a step
CHATTERING_STEPS = 20_000              # minimum number of steps of an adaptive method per run while a switch chatters
_PROBE_FRACTION = 1e-6                 # of a step: probe for the side of an argument that is 0 at the beginning
_XTOL = 1e-14                          # of a step
_MAX_PROBES = 4                        # parts of a step, sampled at their ends


class ZeroCrossings:
    """State of the switches of one run.

    The signals are a copy for this run, whose sides are written here. Evaluating the right-hand side updates the values of the
    switches.
    """

    def __init__(self, problem: InitialValueProblem, start: SegmentStart):
        switches = np.array([np.nan, 0.0, 0.0, 0.0] * (len(problem.signals.switches) // SWITCH_SIZE))
        self.problem = problem
        self.signals = problem.signals._replace(switches=switches, measured=problem.signals.measured.copy())
        self.sign, self.value, self.chattering = (switches[k::SWITCH_SIZE] for k in (SWITCH_SIGN, SWITCH_VALUE, CHATTERING))
        self.shortened_steps: list[deque[float]] = [deque(maxlen=MAX_CROSSINGS) for _ in self.sign]
        self.warnings = WarningLog()
        self.armed, self.bound = np.ones(len(self.sign), dtype=bool), np.zeros(len(self.sign))
        self.start = start if switches.size else None
        self.event, self.events = np.full(len(self.sign), -1), np.zeros(0, dtype=np.int64)
        if not switches.size:
            return
        self.signal_of, operation = _switch_signals(problem.signals, len(self.sign))
        self.is_floor, self.is_discontinuous = operation == FLOOR, np.isin(operation, (SIGN, STEP, FLOOR))
        self.any_floor = bool(self.is_floor.any())
        self.event = _switch_events(problem, self.signal_of)
        self.inside_sign, self.direction = _hard_stop_signs(problem, self.event), np.append(problem.directions, 0)[self.event]
        self.events = np.flatnonzero(self.event >= 0)
        switches[KIND::SWITCH_SIZE] = np.where(self.event >= 0, EVENT, np.where(self.is_floor, FLOOR, 0))

    def __len__(self) -> int:
        return len(self.sign)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the switches."""
        return {"held": self.signals.switches, "armed": self.armed, "bound": self.bound,
                "shortened_steps": [list(times) for times in self.shortened_steps],
                "warnings": self.warnings.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state of the switches."""
        self.signals.switches[:], self.armed[:], self.bound[:] = state["held"], state["armed"], state["bound"]
        self.start = None
        self.shortened_steps = [deque(times, MAX_CROSSINGS) for times in state["shortened_steps"]]
        self.warnings = WarningLog.from_state_dict(state["warnings"])

    @property
    def any_chattering(self) -> bool:
        """Whether a switch chatters."""
        return bool(self.chattering.any())

    def violation(self) -> float:
        """Return the maximum violation of the active switches at the last evaluated state. It is never zero.

        Zero counts as beyond for armed events, and as not beyond for other switches.
        """
        x, s = self.value, self.sign
        beyond = -s * x
        if self.any_floor:
            beyond = np.where(self.is_floor, np.maximum(s - x, x - (s + 1)), beyond)
        beyond = np.where(beyond == 0.0, -_MIN_VIOLATION, beyond)
        if len(self.events):
            beyond = np.where(self.event >= 0, violation(s, x, self.armed, self.bound), beyond)
        return float(np.max(beyond[self._is_active], initial=-np.inf))

    def arm(self, value: Array) -> None:
        """Arm the events whose values exceed their rounding bound: they happen when zero is reached."""
        self.armed |= self.sign * value > self.bound

    def _crossed(self) -> np.ndarray:
        """Return which switches are beyond their sides at the present values."""
        x, s = self.value, self.sign
        beyond = np.where(self.event >= 0, violation(s, x, self.armed, self.bound) > 0.0, s * x < 0.0)
        return self._is_active & np.where(self.is_floor, (x < s) | (x >= s + 1), beyond)

    def _all_far(self, violation_after: Callable[[float], float]) -> bool:
        values = []
        for fraction in (0.0, 0.5, 1.0):
            violation_after(fraction)
            values.append(self.value.copy())
        if not is_far(np.array(values)[:, self.events] * self.sign[self.events]).all():
            return False
        for value in values:
            self.arm(value)
        return True

    def _event_values(self) -> np.ndarray:
        values: Array = self.sign[self.events] * self.value[self.events]
        return values

    @property
    def _is_active(self) -> np.ndarray:
        active: Mask = (self.chattering == 0) & np.isfinite(self.sign) & (self.direction != NO_DIRECTION)
        return active

    @np.errstate(invalid="ignore")                             # values of events that have never happened are infinite
    def initialize(self, probe: Callable[[float], None]) -> None:
        """Choose the signs at the start or after a break. Events keep known signs.

        A switch that is zero and whose sign is unknown takes the sign that it has shortly after; if that is zero, it is free.
        Hard stops have the sign of their inside.

        probe  function of a share: evaluates the switches after that share of a step; 0 is the present time
        """
        begins, known, has_event = self.start is not None, self._known_signs(), self.event >= 0
        stays = has_event & (np.abs(known) == STAYS_AT_ZERO)
        sign_if_it_stays, known = known / STAYS_AT_ZERO, np.where(stays, np.nan, known)
        self.sign[:], self.value[:], self.chattering[:] = np.where(has_event, np.nan, known), 0.0, 0.0
        probe(0.0)
        present, sign = self.value.copy(), _sign(self.value, self.is_floor)
        is_stop = self.inside_sign != 0
        stop = self.event[is_stop] - len(self.problem.directions)
        self.bound[is_stop] = rounding_bound(self.problem.hard_stop_scales)[stop]
        is_zero = np.abs(present) <= np.where(has_event, self.bound, 0.0)
        undecided = ~is_stop & np.isnan(known) & (is_zero | (self.is_floor & (present == sign)))
        at_stop = is_stop & (self.inside_sign * present <= self.bound)
        if undecided.any() or at_stop.any():
            probe(_PROBE_FRACTION)
            sign[undecided] = _sign(self.value, self.is_floor)[undecided]
            stays &= undecided & (np.abs(self.value) <= self.bound)
            sign[stays] = sign_if_it_stays[stays]
        approaches = (self.inside_sign * present > 0.0) & (self.inside_sign * (self.value - present) < 0.0)
        self.armed[is_stop] = (~at_stop | approaches)[is_stop]         # a coordinate that leaves a stop is disarmed
        self.armed[undecided & has_event] = False               # so is an expression that leaves zero
        sign = np.where(is_stop, self.inside_sign, np.where(np.isnan(known), sign, known))
        self.sign[:] = np.where((sign == 0) & ~self.is_floor, np.nan, sign)     # free as long as its argument stays 0
        if undecided[~has_event].any():                         # values of events depend on the signs of these
            probe(0.0)
            present = self.value.copy()
            turned = begins & ~is_stop & has_event & (self.sign * present < -self.bound)
            self.sign[turned], self.armed[turned] = np.sign(present[turned]), True
        self.value[:] = present
        self.value[self.armed & has_event & (np.abs(present) <= self.bound)] = 0.0         # reached, be it at a kink
        unexpected = self._crossed() & has_event & ~self._is_expected()
        self.sign[unexpected], self.armed[unexpected] = -self.sign[unexpected], (np.abs(present) > self.bound)[unexpected]

    def _known_signs(self) -> np.ndarray:
        """Return the known sides at the start of a segment, or before a break within it; NaN: unknown.

        Sides of switches that are no events are known only if a segment continues from the same state. The state can then be
        beyond them by rounding or by a projection.
        """
        known, start, self.start = np.where(self.event >= 0, self.sign, np.nan), self.start, None
        if start is not None and start.signs is not None:
            assert start.armed is not None and start.bounds is not None
            watched = np.flatnonzero((self.event >= 0) & (self.event < len(start.signs)))
            e = self.event[watched]
            known[watched], self.armed[watched], self.bound[watched] = start.signs[e], start.armed[e], start.bounds[e]
        if start is not None and start.switch_signs is not None and len(start.switch_signs) == len(self):
            known = np.where(self.event >= 0, known, start.switch_signs)
        return known

    def switch_signs(self) -> np.ndarray:
        """Return the signs of switches that are no events; NaN for events and for chattering switches."""
        return np.where((self.event >= 0) | (self.chattering > 0), np.nan, self.sign)

    def event_signs(self, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the sign (NaN: unknown), the armed flag and the rounding bound of the first `count` events."""
        signs, armed, bounds = np.full(count, np.nan), np.zeros(count, dtype=bool), np.zeros(count)
        events = (self.event >= 0) & (self.event < count)
        e = self.event[events]
        signs[e], armed[e], bounds[e] = self.sign[events], self.armed[events], self.bound[events]
        return signs, armed, bounds

    def locate_crossing(self, violation_after: Callable[[float], float], may_cross: bool) -> float | None:
        """Return the fraction of a step just after a switch crosses, or None.

        The last evaluated state is there, or at the end of the step.

        violation_after  function of a fraction: `violation` after that fraction of the step
        may_cross        whether a crossing is suspected
        """
        if not may_cross and len(self.events) == len(self) and self._all_far(violation_after):
            return None
        from scipy.optimize import brentq
        if len(self.events):
            violation_after(0.0)
            self.arm(self.value)
        end = first_double_crossing(violation_after, self._event_values, _MAX_PROBES)
        height = violation_after(1.0 if end is None else end)
        if end is None:
            return None
        begin = self._rearming_fraction(violation_after, end) if (self.event[~self.armed] >= 0).any() else 0.0
        fraction: float = brentq(lambda s: violation_after(s) if s > begin else -height, begin, end, xtol=_XTOL, maxiter=500,
                                 rtol=4 * np.finfo(float).eps)
        further = _XTOL
        while not violation_after(fraction) > 0 and fraction < end:
            fraction, further = min(end, fraction + further), 2 * further
        return fraction

    def _rearming_fraction(self, violation_after: Callable[[float], float], end: float) -> float:
        """Return a fraction before `end` at which a disarmed event exceeds its rounding, as in a short flight, and arm it.

        Returns 0 if there is none, or if another switch crosses before.
        """
        fraction = end
        while fraction > _XTOL:
            fraction *= 0.5
            is_beyond = violation_after(fraction) > 0
            risen = ~self.armed & (self.event >= 0) & (self.sign * self.value > self.bound)
            if risen.any():
                if not is_beyond:
                    self.armed |= risen
                return 0.0 if is_beyond else fraction
        return 0.0

    def triggered(self, among: bool | Mask = True) -> tuple[int, ...]:
        """Return the events that have crossed at the present values in their direction."""
        return tuple(np.sort(self.event[self._crossed() & self._is_expected() & among]).tolist())

    def _is_expected(self) -> np.ndarray:
        """Return which events happen if they leave their present side."""
        expected: Mask = (self.event >= 0) & is_expected(self.sign, self.direction)
        return expected

    def cross_switches(self, t: float, step: float, update_values: Callable[[], object]) -> tuple[int, ...]:
        """Change the sides of crossed switches at the end t of a shortened step, and of switches that cross as a result.

        Returns the events whose expressions jump with the change; then it stops. A switch that a projection onto constraints
        moves back stays on its new side.

        step           length of the step before it was shortened
        update_values  function: evaluates the switches again; at the call they have the values at t
        """
        crossed = np.zeros(len(self), dtype=bool)
        for _ in range(len(self)):
            crossing, triggered = self._crossed() & ~crossed, self.triggered(~crossed)
            if triggered or not crossing.any():
                return triggered
            crossed |= crossing
            self._change_signs(crossing)
            for i in np.flatnonzero(crossing & (self.event < 0)):
                self._record_shortened_step(int(i), t, step)
            update_values()
        return self.triggered(~crossed)

    def _change_signs(self, crossing: np.ndarray) -> None:
        """Change the sides of crossing switches.

        Events that are not expected there are disarmed: their value is zero within rounding.
        """
        event = crossing & (self.event >= 0)
        self.sign[crossing] = np.where(event, -self.sign, _sign(self.value, self.is_floor))[crossing]
        self.armed[event] = False

    def update_free_signs(self) -> None:
        """Set the signs of free switches after a step without a crossing, and of events without a direction."""
        self.arm(self.value)
        free = (np.isnan(self.sign) | (self.direction == NO_DIRECTION)) & (self.value != 0)
        self.sign[free] = _sign(self.value, self.is_floor)[free]

    def release_chattering(self) -> bool:
        """Set the signs of chattering switches from their values. Return whether one has changed."""
        sign = np.where(self.chattering > 0, np.where(self.value >= 0, 1.0, -1.0), self.sign)
        sign = np.where(self.chattering > 1, np.floor(self.value), sign)
        turned = bool((sign != self.sign).any(where=self.chattering > 0))
        self.sign[:] = sign
        return turned

    def _record_shortened_step(self, i: int, t: float, step: float) -> None:
        times = self.shortened_steps[i]
        times.append(t)
        sticks = (self.is_discontinuous[i] and len(times) >= CHATTERING_COUNT            # a kink does not stick
                  and t - times[-CHATTERING_COUNT] <= CHATTERING_SPAN * step)
        if not sticks and (len(times) < MAX_CROSSINGS or t - times[0] > step):
            return
        self.chattering[i] = 2.0 if self.is_floor[i] else 1.0
        times.clear()
        k = int(self.signal_of[i])
        place = self.problem.signal_locations[k] if k < len(self.problem.signal_locations) else Place()
        name = self.problem.signal_names[k] if k < len(self.problem.signal_names) else f"signal {k}"
        self.warnings.add("chattering",
                          f"the {name} switches too often from t = {t:.6g} s (sticking, sliding or chatter): steps no longer end "
                          "where it switches, and the integration is of first order there", place=place, cause=k)


def _switch_signals(signals: Signals, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the signal and the operation of each switch.

    Switches of programs are followed by two for each limit of a force, whose names follow those of the signals.
    """
    signal_of, operation = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    owned = np.zeros(count, dtype=bool)
    for k in np.flatnonzero(signals.kind == PROGRAM):
        words = signals.code[signals.first[k]:][:signals.count[k]]
        words = words[np.isin(words & 255, SWITCH_OPERATIONS) & (words >> 8 > 0)]
        signal_of[(words >> 8) - 1], operation[(words >> 8) - 1] = k, words & 255
        owned[(words >> 8) - 1] = True
    signal_of[~owned] = len(signals.kind) + np.arange(np.count_nonzero(~owned)) // 2
    return signal_of, operation


def _switch_events(problem: InitialValueProblem, signal_of: Integers) -> np.ndarray:
    """Return the event of each switch, or -1. The program of an event ends with the sign of its expression."""
    watch = problem.schedule.watch
    event = np.full(len(signal_of), -1)
    for e, k in enumerate(watch):
        if k >= 0:
            event[np.flatnonzero(signal_of == k)[-1]] = e
    if problem.contacts is not None:                       # an event without a signal is that of a contact
        event[problem.contacts.switch] = np.flatnonzero(np.asarray(watch) < 0)
    if problem.stops is not None:
        event[problem.stops.resting_switch] = len(watch) + np.arange(len(problem.stops.resting))
    return event


def _hard_stop_signs(problem: InitialValueProblem, event: Integers) -> np.ndarray:
    """Return the side of each hard stop's switch that is inside the limits, 0 for other switches."""
    directions = np.asarray(problem.directions, dtype=float)
    of_event = np.where(np.arange(len(directions)) < len(directions) - len(problem.hard_stop_scales), 0.0, -directions)
    signs: Array = np.append(of_event, 0.0)[event]
    return signs


def _sign(value: np.ndarray, floor: np.ndarray) -> np.ndarray:
    sign: Array = np.where(floor, np.floor(value), np.sign(value))
    return sign
