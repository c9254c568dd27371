"""Switches of the state: where the argument of step, sign, abs, floor, min or max changes sides in the course of a motion.

While a step is computed every switch is held on the side it was on at its beginning, so that the method sees a smooth problem.
A step in which one was seen beyond its side is made anew, just so long that it ends there, and the next begins on the other side
(Hairer, Norsett, Wanner, Solving ODEs I, II.6). An event keeps its sign from segment to segment (`SegmentStart.signs`), and has
happened where the sign changes or zero is reached; while it is disarmed, only beyond its rounding. Where a switch goes to and fro
at once (dry friction that sticks), no cut helps: it is let loose until the next break of the schedule, and changes sides only
between steps.
"""
from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from liedyn.errors import Place, WarningLog
from liedyn.integrators.diagnosis import failure
from liedyn.integrators.problem import NO_DIRECTION, STAYS_AT_ZERO
from liedyn.integrators.run_state import EVALUATIONS, FIRST_RATE_KNOWN, H_MAX, H_TRIED, T_BEFORE, T_NOW, T_STOP
from liedyn.integrators.runge_kutta import accept_shortened_step
from liedyn.kernels.simulation.right_hand_side import AT_EVENT, RUNNING, SWITCH_CROSSED
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
)

# dips -------------------------------------------------------------------------------------------------------------------

# Where a reading of an event leaves its side within a step, perhaps to come back in the same step: looked for among states of
# the step, and near the lowest values of parabolas through three of them.

_MIN_CURVATURE = 0.5         # of how far readings are from a straight line: a lowest value below this may be one beyond
_SAFE_DECREASE = 0.1         # of a reading: how much lower than it the next one may be, so that none is beyond
_FAR_FACTOR = 2.0            # of the difference between the highest and the lowest
_MAX_TRIES = 20              # on the way to a lowest reading
_MAX_ROUNDS = 20             # rounds: 2^-20 of the step at last with two looks a round, 4^-20 with four


def first_double_crossing(violation_after: Callable[[float], float], event_values: Callable[[], np.ndarray],
                          n_parts: int) -> float | None:
    """A share of a step at which a switch is beyond its side, as early as can be told; None: there is none. Looks at the ends of
    `n_parts` parts of the step; again at those of the part before the first that is beyond, where others may be for a while; and
    where parabolas through the values of events are below zero.

    violation_after(share) makes that share of the step and returns how far the worst switch is beyond; event_values(): values of
    events there, positive on their sides.
    """
    end, is_beyond = 1.0, False
    for _ in range(_MAX_ROUNDS):
        shares, values, ends_beyond = _sample_step(violation_after, event_values, end, n_parts)
        is_beyond, end = is_beyond or ends_beyond, float(shares[-1])
        if len(shares) > n_parts:
            break
    minima = ((*minimum, e) for e in np.flatnonzero(~is_far(values)) for minimum in _sample_minima(shares, values[:, e]))
    for share, lowest, e in sorted(minima):
        found = _minimum(violation_after, lambda e=e: event_values()[e], share, lowest,
                         dict(zip(shares, values[:, e], strict=True)))
        if found is not None:
            return found
    return end if is_beyond else None


def _sample_step(violation_after, event_values, end: float, n_parts: int) -> tuple[np.ndarray, np.ndarray, bool]:
    """Shares of a step up to `end`, in equal parts, until a switch is beyond its side; values of events (shares, events) there;
    and whether one is."""
    values = []
    for k in range(n_parts + 1):
        is_beyond = violation_after(end * k / n_parts) > 0 and k > 0
        values.append(event_values())
        if is_beyond:
            break
    return end * np.arange(len(values)) / n_parts, np.array(values), is_beyond


def is_far(values) -> np.ndarray:
    """Whether each of the readings along a step (looks, events) is farther from its side's end than it can fall between looks."""
    low = values.min(axis=0)
    with np.errstate(invalid="ignore"):                        # a time since what has not happened is infinite: far
        return ~(low <= _FAR_FACTOR * (values.max(axis=0) - low))


def _sample_minima(x, y) -> list[tuple[float, float]]:
    """Where y(x) may be lowest, and below zero; and that value."""
    found = []
    for k in range(len(x) - 2):
        at, lowest = _parabola_vertex(x[k:k + 3], y[k:k + 3])
        chord = y[k] + (x[k + 1] - x[k]) / (x[k + 2] - x[k]) * (y[k + 2] - y[k])
        if at is not None and lowest < _MIN_CURVATURE * (chord - y[k + 1]):
            found.append((float(at), float(lowest)))
    return found


def _minimum(violation_after, value, share: float, lowest: float, known: dict[float, float]) -> float | None:
    """A share at which a switch is beyond, on the way from `share`, where the reading may be `lowest`, to the lowest one near it;
    None as soon as parabolas foretell the readings and none that is beyond. known: readings by share."""
    for _ in range(_MAX_TRIES):
        if violation_after(share) > 0:
            return share
        known[share] = value()
        off = abs(known[share] - lowest)
        order = sorted(known)
        at = order.index(share)
        at = min((at - 1, at, at + 1), key=lambda n: known[order[n]])
        if not 0 < at < len(order) - 1:
            return None
        least, near = known[order[at]], order[at - 1:at + 2]
        share, lowest = _parabola_vertex(near, [known[x] for x in near])
        if share is None or max(least - lowest, off) < _SAFE_DECREASE * least or share in known:
            return None
    return None


def _parabola_vertex(x, y):
    """Place and height of the lowest point of the parabola through three points; None, nan: it has none between them."""
    slope = (y[1] - y[0]) / (x[1] - x[0])
    bent = ((y[2] - y[1]) / (x[2] - x[1]) - slope) / (x[2] - x[0])
    if not bent > 0.0:
        return None, np.nan
    at = (x[0] + x[1]) / 2 - slope / (2 * bent)
    return (at, y[0] + slope * (at - x[0]) + bent * (at - x[0]) * (at - x[1])) if x[0] < at < x[2] else (None, np.nan)


# Signs of event expressions: which side of zero an expression is on, and whether its next flight can be resolved --------

# An expression keeps its sign while a run is integrated. After a jump the new sign follows from the value, and within its
# rounding bound from its first and second time derivative along the flow. Until the expression exceeds the bound, the event is
# disarmed: it happens only where the expression falls below minus the bound.

# epsilons of the terms of an expression: what rounding may make of its value. A chain of transforms of 30 links stays below half
ROUNDING = 64.0
START_FACTOR = 8.0           # bounds: what may be left of zero at the end of another run, which is where a run begins
_RESOLVED_FACTOR = 4.0       # bounds: flights that are higher are seen above their rounding by halving the time until their end
_MIN_FLIGHT_SPACINGS = 64.0  # of the duration of a run: a flight that is no longer cannot be told from none


def rounding_bound(size):
    """Of an expression whose terms, and what they are computed from, sum up to `size` in absolute value."""
    return ROUNDING * np.finfo(float).eps * np.asarray(size)


def sign_after(value, rate, curvature, bound):
    """Sign just after now: of the value, if it exceeds its rounding; else of the rate, unless the curvature turns it round before
    the value exceeds its rounding; else of the curvature. 0: none. A derivative that is not a number is not known: it is 0."""
    value, rate, curvature = (np.nan_to_num(np.asarray(x, dtype=float), nan=0.0) for x in (value, rate, curvature))
    by_motion = np.where(reverses_at_once(rate, curvature, bound) | (rate == 0.0), np.sign(curvature), np.sign(rate))
    return np.where(np.abs(value) > bound, np.sign(value), by_motion)


def zero_at_start(value, rate, curvature, bound, begins):
    """Whether an expression counts as zero where a run begins: within its own rounding `bound`; or within `begins`, what rounding
    may have left at the end of another run, unless it moves towards zero: then its event is still ahead."""
    ahead = (value * rate < 0.0) & ~is_below_rounding(rate, curvature, begins)
    return (np.abs(value) <= bound) | ((np.abs(value) <= begins) & ~ahead)


def is_returning(rate, sign, bound, elapsed):
    """Whether an expression that has left zero to the side `sign` moves towards it again, so fast that it has exceeded its
    rounding in the time since."""
    return (rate * sign < 0.0) & (np.abs(rate) * elapsed > bound)


def is_resolvable(rate, curvature, bound, duration):
    """Whether an expression that leaves zero at `rate` and is turned round by `curvature` exceeds its rounding before it is back,
    and is back at a time that a run of this duration can tell from now. True where it is not turned round."""
    rate, curvature = np.asarray(rate, dtype=float), np.asarray(curvature, dtype=float)
    back = (rate * curvature < 0.0) | (rate == 0.0)
    with np.errstate(all="ignore"):
        flight = 2.0 * np.abs(rate / curvature)
    short = flight <= _MIN_FLIGHT_SPACINGS * np.spacing(np.abs(duration))
    return ~(back & (is_below_rounding(rate, curvature, _RESOLVED_FACTOR * np.asarray(bound)) | (rate == 0.0) | short))


def is_below_rounding(rate, curvature, bound):
    """Whether the curvature makes good for the rate, whatever its sign, within the rounding of the value."""
    return rate * rate <= 2.0 * np.abs(curvature) * bound


def reverses_at_once(rate, curvature, bound):
    """Whether the curvature turns an expression round before it exceeds its rounding."""
    return (rate * curvature < 0.0) & is_below_rounding(rate, curvature, bound)


# Which events happen: of one run or many, arrays of any shape -----------------------------------------------------------

_MIN_VIOLATION = np.finfo(float).tiny  # of an event whose expression is zero, and less it, of a switch whose argument is


def is_expected(sign, direction):
    """Whether an event happens where its expression leaves the side `sign`: 1 or -1, else it is not known. direction: 1 rising,
    -1 falling, 0 both; others neither."""
    return (np.abs(sign) == 1.0) & ((direction == 0) | (direction == -sign))


def violation(sign, value, armed=True, bound=0.0):
    """How far the expression of an event is beyond its side: positive where it has crossed zero, else negative, never zero. Zero
    itself is beyond where the event is armed; where it is disarmed, only what exceeds the rounding bound."""
    beyond = -sign * value
    beyond = np.where(armed, np.where(beyond == 0.0, _MIN_VIOLATION, beyond), beyond - bound)
    return np.where(beyond == 0.0, -_MIN_VIOLATION, beyond)


def crossed(sign, value, direction, armed=True, bound=0.0):
    """Whether an event happens at this value of its expression."""
    return is_expected(sign, direction) & (violation(sign, value, armed, bound) > 0.0)


def crossing_direction(sign, direction):
    """The direction in which an event happens: 1 rising, -1 falling. Of one that happens in both, away from its side."""
    return np.where(direction == 0, -sign, direction)


def is_arriving(before: EventSigns, rate, curvature, elapsed):
    """Whether an expression that is zero but for rounding is on its way to the other side: of an event that is armed, or that has
    been armed in the time since."""
    comes = np.where(before.armed, rate * before.sign < 0.0, is_returning(rate, before.sign, before.bound, elapsed))
    return comes & ~reverses_at_once(rate, curvature, before.bound)


def comes_to_rest(turned, rate, curvature, bound, duration):
    """Whether an expression stays at zero after an impact: nothing moves it on, or it is back within what a run of this duration
    can resolve. turned: whether the impact has reversed its rate."""
    below = is_below_rounding(rate, curvature, bound)
    still = below & (rate * curvature >= 0.0)
    return (turned | below) & (still | ~is_resolvable(rate, curvature, bound, duration))


class EventSigns(NamedTuple):
    """Of event expressions: the side of zero that each is on (1, -1; others: not known), whether its event is armed, and the
    bound within which it counts as zero while it is not."""

    sign: np.ndarray
    armed: np.ndarray
    bound: np.ndarray


def signs_after_event(before: EventSigns, value, rate, curvature, rounding, fired,
                      at_start: bool = False) -> tuple[EventSigns, np.ndarray]:
    """The signs from now on, after events have changed the state, and which expressions leave zero: their signs follow from their
    motion, 0 where they stay at zero. Others keep their sign while they are within their bound, or have that of their value.

    before     bound: where the event is armed and its expression has not jumped, zero
    value      of the expressions, with rate and curvature: NaN where not known, or where the value is beyond its bound
    rounding   of the values
    fired      events that have just happened, and whose expressions have not jumped since
    at_start   whether a run begins: zero then includes what rounding may have left at the end of another run
    """
    size, bound = np.abs(value), np.maximum(rounding, before.bound)
    begins = np.where(size <= START_FACTOR * bound, START_FACTOR * bound, bound) if at_start else bound
    zero = fired | zero_at_start(value, rate, curvature, bound, begins)
    passed = fired | (before.armed & (before.sign * value <= 0.0))         # another event waits for its other side
    stays = zero & ~passed & (np.abs(before.sign) == 1.0)
    leaves = zero & ~stays
    bound = np.where(leaves, np.maximum(begins, 2.0 * size), begins)       # as far beyond as it was found
    sign = sign_after(np.where(zero, 0.0, value), rate, curvature, np.where(fired, bound, rounding))
    return EventSigns(np.where(stays, before.sign, sign), np.where(stays, before.armed, ~zero), bound), leaves


# Where an event happens, in many runs at once ---------------------------------------------------------------------------

_MAX_ITERATIONS = 200


def find_crossings(left: Callable[[np.ndarray], np.ndarray], begin: np.ndarray, xtol: float) -> np.ndarray:
    """(n,) shares in (begin, 1], about xtol beyond the roots of `left`, of n continuous functions that are negative at 1: inverse
    quadratic interpolation or bisection, by Chandrupatla's rule (Advances in Engineering Software 28, 1997). SciPy has it for
    arrays from 1.15 on (scipy.optimize.elementwise.find_root)."""
    n = len(begin)
    x1, x2 = begin.copy(), np.ones(n)
    f1, f2, t = np.maximum(left(x1), np.finfo(float).tiny), left(x2), np.full(n, 0.5)
    for _ in range(_MAX_ITERATIONS):
        x = x1 + t * (x2 - x1)
        f = left(x)
        same = (f < 0.0) == (f1 < 0.0)
        x3, f3 = np.where(same, x1, x2), np.where(same, f1, f2)
        x2, f2 = np.where(same, x2, x1), np.where(same, f2, f1)
        x1, f1 = x, f
        width = np.abs(x2 - x1)
        if (width <= 2 * xtol).all():
            break
        with np.errstate(all="ignore"):
            least, xi, phi = xtol / width, (x1 - x2) / (x3 - x2), (f1 - f2) / (f3 - f2)
            t = f1 / (f2 - f1) * f3 / (f2 - f3) + (x3 - x1) / (x2 - x1) * f1 / (f3 - f1) * f2 / (f3 - f2)
        t = np.where((phi**2 < xi) & ((1.0 - phi) ** 2 < 1.0 - xi) & np.isfinite(t), t, 0.5)
        t = np.where(width > 2 * xtol, np.clip(t, least, 1.0 - least), 0.0)       # found: it waits for the others
    return np.where(f1 < 0.0, x1, x2)


# switching --------------------------------------------------------------------------------------------------------------

CHATTERING_COUNT, CHATTERING_SPAN = 10, 1e-6     # so many of one switch within this share of a step: it sticks or slides
MAX_CROSSINGS = 1000                   # of one switch within a step
CHATTERING_STEPS = 20_000              # the largest step of an adaptive method, as a share of the run, once a switch is loose
_PROBE_FRACTION = 1e-6                 # of a step: how far ahead it is looked where an argument is 0 at the beginning
_XTOL = 1e-14                          # of a step
_MAX_PROBES = 4                        # parts of a step at whose ends it is looked


class ZeroCrossings:
    """Of one run. signals: its own, with sides to be written. A method evaluates its right-hand side to renew the readings."""

    def __init__(self, problem, start=None):
        held = np.array([np.nan, 0.0, 0.0, 0.0] * (len(problem.signals.held) // SWITCH_SIZE))
        self.signals, self.problem = problem.signals._replace(held=held, measured=problem.signals.measured.copy()), problem
        self.sign, self.value, self.chattering = (held[k::SWITCH_SIZE] for k in (SWITCH_SIGN, SWITCH_VALUE, CHATTERING))
        self.shortened_steps = [deque(maxlen=MAX_CROSSINGS) for _ in self.sign]
        self.warnings = WarningLog()
        self.armed, self.bound, self.start = np.ones(len(self.sign), dtype=bool), np.zeros(len(self.sign)), start
        self.event, self.events = np.full(len(self.sign), -1), np.zeros(0, dtype=np.int64)
        if not held.size:
            return
        self.signal_of, operation = _switch_signals(problem.signals, len(self.sign))
        self.is_floor, self.is_discontinuous = operation == FLOOR, np.isin(operation, (SIGN, STEP, FLOOR))
        self.event = _switch_events(problem, self.signal_of)
        self.inside_sign, self.direction = _hard_stop_signs(problem, self.event), np.append(problem.directions, 0)[self.event]
        self.events = np.flatnonzero(self.event >= 0)
        held[KIND::SWITCH_SIZE] = np.where(self.event >= 0, EVENT, np.where(self.is_floor, FLOOR, 0))

    def __len__(self) -> int:
        return len(self.sign)

    def state_dict(self) -> dict:
        return {"held": self.signals.held, "armed": self.armed, "bound": self.bound,
                "shortened_steps": [list(times) for times in self.shortened_steps],
                "warnings": self.warnings.state_dict()}

    def load_state_dict(self, state: dict) -> None:
        self.signals.held[:], self.armed[:], self.bound[:] = state["held"], state["armed"], state["bound"]
        self.start = None
        self.shortened_steps = [deque(times, MAX_CROSSINGS) for times in state["shortened_steps"]]
        self.warnings = WarningLog.from_state_dict(state["warnings"])

    @property
    def any_chattering(self) -> bool:
        return bool(self.chattering.any())

    def violation(self) -> float:
        """How far beyond its side the worst of them is, at the state looked at last; negative where all are within. Never zero:
        zero is passed where an event waits for it, and within elsewhere, for as long as it lasts."""
        x, s = self.value, self.sign
        beyond = np.where(self.is_floor, np.maximum(s - x, x - (s + 1)), -s * x)
        beyond = np.where(beyond == 0.0, -_MIN_VIOLATION, beyond)
        if len(self.events):
            beyond = np.where(self.event >= 0, violation(s, x, self.armed, self.bound), beyond)
        return float(np.max(beyond[self._is_active], initial=-np.inf))

    def arm(self, value) -> None:
        """Events whose readings exceed their rounding happen from now on where zero is reached."""
        self.armed |= self.sign * value > self.bound

    def _crossed(self) -> np.ndarray:
        """Switches that are beyond their sides at the readings now."""
        x, s = self.value, self.sign
        beyond = np.where(self.event >= 0, violation(s, x, self.armed, self.bound) > 0.0, s * x < 0.0)
        return self._is_active & np.where(self.is_floor, (x < s) | (x >= s + 1), beyond)

    def _all_far(self, violation_after) -> bool:
        values = []
        for share in (0.0, 0.5, 1.0):
            violation_after(share)
            values.append(self.value.copy())
        if not is_far(np.array(values)[:, self.events] * self.sign[self.events]).all():
            return False
        for value in values:
            self.arm(value)
        return True

    def _event_values(self) -> np.ndarray:
        return self.sign[self.events] * self.value[self.events]

    @property
    def _is_active(self) -> np.ndarray:
        return (self.chattering == 0) & np.isfinite(self.sign) & (self.direction != NO_DIRECTION)

    @np.errstate(invalid="ignore")                             # values of what has never happened are infinite
    def initialize(self, probe) -> None:
        """Choose signs at the start or after a break. Events keep theirs. probe(share) evaluates the switches after that share of
        a step: 0 is now.

        A switch that is zero now, and whose sign is not known, takes the sign that it has a little later; without one it is free.
        Hard stops have the sign of their inside.
        """
        begins, known, has_event = self.start is not None, self._known_signs(), self.event >= 0
        stays = has_event & (np.abs(known) == STAYS_AT_ZERO)
        sign_if_it_stays, known = known / STAYS_AT_ZERO, np.where(stays, np.nan, known)
        self.sign[:], self.value[:], self.chattering[:] = np.where(has_event, np.nan, known), 0.0, 0.0
        probe(0.0)
        now, sign = self.value.copy(), _sign(self.value, self.is_floor)
        is_stop = self.inside_sign != 0
        stop = self.event[is_stop] - len(self.problem.directions)
        self.bound[is_stop] = rounding_bound(self.problem.hard_stop_scales)[stop]
        is_zero = np.abs(now) <= np.where(has_event, self.bound, 0.0)
        undecided = ~is_stop & np.isnan(known) & (is_zero | (self.is_floor & (now == sign)))
        at_stop = is_stop & (self.inside_sign * now <= self.bound)
        if undecided.any() or at_stop.any():
            probe(_PROBE_FRACTION)
            sign[undecided] = _sign(self.value, self.is_floor)[undecided]
            stays &= undecided & (np.abs(self.value) <= self.bound)
            sign[stays] = sign_if_it_stays[stays]
        approaches = (self.inside_sign * now > 0.0) & (self.inside_sign * (self.value - now) < 0.0)
        self.armed[is_stop] = (~at_stop | approaches)[is_stop]         # what leaves a stop passes it beyond rounding only
        self.armed[undecided & has_event] = False               # as does what leaves zero
        self._freeze(np.where(is_stop, self.inside_sign, np.where(np.isnan(known), sign, known)))
        if undecided[~has_event].any():                         # values of events depend on the signs of these
            probe(0.0)
            now = self.value.copy()
            turned = begins & ~is_stop & has_event & (self.sign * now < -self.bound)
            self.sign[turned], self.armed[turned] = np.sign(now[turned]), True
        self.value[:] = now
        self.value[self.armed & has_event & (np.abs(now) <= self.bound)] = 0.0         # reached, be it at a kink
        unexpected = self._crossed() & has_event & ~self._is_expected()
        self.sign[unexpected], self.armed[unexpected] = -self.sign[unexpected], (np.abs(now) > self.bound)[unexpected]

    def _known_signs(self) -> np.ndarray:
        """Sides of events at the beginning of a segment, or before a break of it; NaN: not known. Of other switches where a
        segment continues from the same state: that may be beyond them by rounding, or by a projection."""
        known, start, self.start = np.where(self.event >= 0, self.sign, np.nan), self.start, None
        if start is not None and start.signs is not None:
            watched = np.flatnonzero((self.event >= 0) & (self.event < len(start.signs)))
            e = self.event[watched]
            known[watched], self.armed[watched], self.bound[watched] = start.signs[e], start.armed[e], start.bounds[e]
        if start is not None and start.switch_signs is not None and len(start.switch_signs) == len(self):
            known = np.where(self.event >= 0, known, start.switch_signs)
        return known

    def switch_signs(self) -> np.ndarray:
        """Of switches that are no events; NaN: of others, and of those that are loose."""
        return np.where((self.event >= 0) | (self.chattering > 0), np.nan, self.sign)

    def _freeze(self, sign: np.ndarray) -> None:
        """Sides that are 0 stay free: an argument that stays 0."""
        self.sign[:] = np.where((sign == 0) & ~self.is_floor, np.nan, sign)

    def event_signs(self, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of the first events, the side of each (NaN: not known), whether it is armed, and its rounding."""
        signs, armed, bounds = np.full(count, np.nan), np.zeros(count, dtype=bool), np.zeros(count)
        found = (self.event >= 0) & (self.event < count)
        e = self.event[found]
        signs[e], armed[e], bounds[e] = self.sign[found], self.armed[found], self.bound[found]
        return signs, armed, bounds

    def locate_crossing(self, violation_after, may_cross: bool = True) -> float | None:
        """The share of a step after which a switch is just passed, None where none is; it was looked last there, or at the end.
        violation_after(share): `violation` then. suspected: whether there is a sign that one is."""
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
        share = brentq(lambda s: violation_after(s) if s > begin else -height, begin, end, xtol=_XTOL, maxiter=500,
                       rtol=4 * np.finfo(float).eps)
        further = _XTOL
        while not violation_after(share) > 0 and share < end:
            share, further = min(end, share + further), 2 * further
        return share

    def _rearming_fraction(self, violation_after, end: float) -> float:
        """A share before `end` at which a disarmed event exceeds its rounding, as in a short flight: it is armed from there. 0:
        none, or another switch is passed before."""
        share = end
        while share > _XTOL:
            share *= 0.5
            before = violation_after(share) > 0
            risen = ~self.armed & (self.event >= 0) & (self.sign * self.value > self.bound)
            if risen.any():
                if not before:
                    self.armed |= risen
                return 0.0 if before else share
        return 0.0

    def fired(self, among=True) -> tuple[int, ...]:
        """Events that are passed at the cut, whose readings these are, in the direction that they wait for."""
        return tuple(np.sort(self.event[self._crossed() & self._is_expected() & among]).tolist())

    def _is_expected(self) -> np.ndarray:
        """Events that happen where they pass to the other side."""
        return (self.event >= 0) & is_expected(self.sign, self.direction)

    def cross_switches(self, t: float, step: float, update_values) -> tuple[int, ...]:
        """After a cut at t, out of a step that was to take `step`: to the other side, also of those that the change takes along.
        The readings are those at the cut; look() renews them. Returns events that have jumped with them, as `fired`: it ends
        there. What was passed and is put back by a projection onto constraints stays on its new side."""
        crossed = np.zeros(len(self), dtype=bool)
        for _ in range(len(self)):
            crossing, fired = self._crossed() & ~crossed, self.fired(~crossed)
            if fired or not crossing.any():
                return fired
            crossed |= crossing
            self._change_signs(crossing)
            for i in np.flatnonzero(crossing & (self.event < 0)):
                self._record_shortened_step(i, t, step)
            update_values()
        return self.fired(~crossed)

    def _change_signs(self, crossing: np.ndarray) -> None:
        """To the other side. An event that nobody waited for there is disarmed: its reading is zero but for rounding."""
        event = crossing & (self.event >= 0)
        self.sign[crossing] = np.where(event, -self.sign, _sign(self.value, self.is_floor))[crossing]
        self.armed[event] = False

    def update_free_signs(self) -> None:
        """After a step in which none is passed: those that were even take the side that they have left for; events that are over,
        the side where they are."""
        self.arm(self.value)
        free = (np.isnan(self.sign) | (self.direction == NO_DIRECTION)) & (self.value != 0)
        self.sign[free] = _sign(self.value, self.is_floor)[free]

    def release_chattering(self) -> bool:
        """Let those that are loose go over to the side where they are. Whether one did."""
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


def _switch_signals(signals, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Signal and operation of each switch. After those of programs come two of each limit of a force, which have names after
    those of the signals."""
    signal_of, operation = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    owned = np.zeros(count, dtype=bool)
    for k in np.flatnonzero(signals.kind == PROGRAM):
        words = signals.code[signals.first[k]:][:signals.count[k]]
        words = words[np.isin(words & 255, SWITCH_OPERATIONS) & (words >> 8 > 0)]
        signal_of[(words >> 8) - 1], operation[(words >> 8) - 1] = k, words & 255
        owned[(words >> 8) - 1] = True
    signal_of[~owned] = len(signals.kind) + np.arange(np.count_nonzero(~owned)) // 2
    return signal_of, operation


def _switch_events(problem, signal_of) -> np.ndarray:
    """Which event each switch is, -1: none. An event's program ends with the sign of what is watched."""
    watch = problem.schedule.watch
    event = np.full(len(signal_of), -1)
    for e, k in enumerate(watch):
        if k >= 0:
            event[np.flatnonzero(signal_of == k)[-1]] = e
    if problem.contacts is not None:                       # an event without a signal waits for a contact
        event[problem.contacts.switch] = np.flatnonzero(np.asarray(watch) < 0)
    if problem.stops is not None:
        event[problem.stops.resting_switch] = len(watch) + np.arange(len(problem.stops.held))
    return event


def _hard_stop_signs(problem, event) -> np.ndarray:
    """The side that each switch of a hard stop keeps to, 0 for others."""
    directions = np.asarray(problem.directions, dtype=float)
    of_event = np.where(np.arange(len(directions)) < len(directions) - len(problem.hard_stop_scales), 0.0, -directions)
    return np.append(of_event, 0.0)[event]


def _sign(value: np.ndarray, floor: np.ndarray) -> np.ndarray:
    return np.where(floor, np.floor(value), np.sign(value))


# Runge-Kutta steps that end where a switch of the state is passed: from Python, between chunks of the compiled loop -----

class EventStepper:
    """run: `Underway`."""

    def __init__(self, run, method):
        self.problem, self.rhs, self.switches, self.torques = run.problem, run.rhs, run.switches, run.torques
        self.method, self.state, self.stages = method, run.state, run.stages
        self.record, self.workspace = run.record, run.workspace
        self.step, self.last = float(method.control[H_MAX]), float(run.record.t[-1])
        self.fired: tuple[int, ...] = ()
        self.jump_events: tuple[int, ...] = ()                      # of these, whose expressions jump here
        self._initialize()

    def handle_return_code(self, code: int) -> int:
        """After the compiled loop returned SWITCH_CROSSED or WALL. Returns a code; EVENT: the run stands at an event."""
        clock = self.state.clock
        if code == SWITCH_CROSSED:
            h, t = float(clock[H_TRIED]), float(clock[T_NOW])
            share = self.switches.locate_crossing(lambda share: self._violation_after(share * h))
            value = self.switches.value.copy()
            code = accept_shortened_step(self.rhs.generated, self.rhs.generic, self.rhs.break_points, self.method, self.state,
                                         self.stages, self.record, h if share is None else share * h, self.workspace)
            if code != RUNNING:
                return code
            self.switches.value[:] = value
            self.fired = self.switches.fired() if share is not None else ()
            if self.fired:
                return AT_EVENT
            if share is None:
                self.switches.update_free_signs()
            elif self._set_jump_events(self.switches.cross_switches(t + share * h, h, self._probe)):
                return AT_EVENT
            self._limit_step()
            if clock[T_NOW] != clock[T_STOP]:
                return RUNNING
        if clock[T_NOW] < self.last:
            if self.torques is not None:
                self.torques.act(self.state)
            self._initialize()
            if self._set_jump_events(self.switches.fired()):              # signals and torques jump here
                return AT_EVENT
        return RUNNING

    def _set_jump_events(self, fired: tuple[int, ...]) -> bool:
        self.fired = self.jump_events = fired
        return bool(fired)

    def _initialize(self) -> None:
        for value in self.stages.K[:len(self.method.b), len(self.stages.end):]:          # in the last step
            self.switches.arm(value[:len(self.switches)])
        self.switches.initialize(self._probe_end)
        self.state.count[FIRST_RATE_KNOWN] = 0                                # rates are to be computed with the new sides
        self._limit_step()

    def _limit_step(self) -> None:
        if self.method.error.size:
            self.method.control[H_MAX] = min(self.step,
                                             self.last / CHATTERING_STEPS) if self.switches.any_chattering else self.step

    def _probe_end(self, share: float) -> None:
        if share == 0.0:
            return self._probe()
        t, breaks = float(self.state.clock[T_NOW]), self.rhs.break_points.breaks
        stop_time = min(breaks[breaks > t].min(initial=np.inf), self.last)
        self._rates(t, self.state.y, 0)
        self.state.clock[T_BEFORE] = stop_time
        self._violation_after(share * min(self.step, stop_time - t))

    def _probe(self) -> None:
        self._rates(float(self.state.clock[T_NOW]), self.state.y, len(self.method.b) + 1)

    def _violation_after(self, h: float) -> float:
        """Make the step of length h, from the rates at its beginning, and look at the switches at its end."""
        clock, stages, method = self.state.clock, self.stages, self.method
        t, before, count = float(clock[T_NOW]), float(clock[T_BEFORE]), len(method.b)
        self._check(t, self.rhs.evaluate_stages(method, t, h, before, self.state, stages, 1, count, self.workspace), count - 1)
        stages.end[:] = self.state.y + h * (method.b @ stages.K[:count, :len(stages.end)])
        self._rates(min(t + h, before), stages.end, count)
        return self.switches.violation()

    def _rates(self, t: float, y, row: int) -> None:
        self._check(t, self.rhs.evaluate(t, self.state.q, y, self.stages.K, row, self.workspace), 1)

    def _check(self, t: float, code: int, evaluations: int) -> None:
        self.state.count[EVALUATIONS] += evaluations
        if code != RUNNING:
            raise failure(self.problem, code, t, self.workspace, self.rhs.constraints)
