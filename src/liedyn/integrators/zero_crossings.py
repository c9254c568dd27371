"""Switches of the state: where the argument of step, sign, abs, floor, min or max changes sides in the course of a motion.

While a step is computed every switch is held on the side it was on at its beginning, so that the method sees a smooth problem.
A step in which one was seen beyond its side is made anew, just so long that it ends there, and the next begins on the other side
(Hairer, Norsett, Wanner, Solving ODEs I, II.6). An event keeps its sign from segment to segment (`Start.signs`), and has happened
where the sign changes or zero is reached; while it is disarmed, only beyond its rounding. Where a switch goes to and fro at once
(dry friction that sticks), no cut helps: it is let loose until the next break of the schedule, and changes sides only between
steps.
"""
from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from liedyn.errors import Place
from liedyn.integrators.diagnosis import failure
from liedyn.integrators.problem import NEVER, UNSURE
from liedyn.integrators.run_state import EVALUATIONS, FIRST_RATE_KNOWN, H_MAX, H_TRIED, T_BEFORE, T_NOW, T_STOP
from liedyn.integrators.runge_kutta import end_step_here
from liedyn.kernels.simulation.right_hand_side import AT_EVENT, PASSED, RUNNING
from liedyn.kernels.simulation.signals import (
    ABS,
    CHATTERING,
    EVENT,
    FLOOR,
    KIND,
    MAX,
    MIN,
    PROGRAM,
    READING,
    SIDE,
    SIGN,
    STEP,
    SWITCH,
)

# dips -------------------------------------------------------------------------------------------------------------------

# Where a reading of an event leaves its side within a step, perhaps to come back in the same step: looked for among states of
# the step, and near the lowest values of parabolas through three of them.

_BENT = 0.5              # of how far readings are from a straight line: a lowest value below this may be one beyond
_SURE = 0.1              # of a reading: how much lower than it the next one may be, so that none is beyond
_FAR = 2.0               # of the difference between the highest and the lowest
_TRIES = 20              # on the way to a lowest reading
_CLOSER = 20             # rounds: 2^-20 of the step at last with two looks a round, 4^-20 with four


def first_double_crossing(excess_after: Callable[[float], float], within: Callable[[], np.ndarray], parts: int) -> float | None:
    """A share of a step at which a switch is beyond its side, as early as can be told; None: there is none. Looks at the ends of
    so many parts of the step first; again at those of what is before the first that is beyond, where others may be for a while.

    excess_after(share) makes that share of the step and returns how far the worst switch is beyond; within(): readings of events
    there, positive on their sides.
    """
    end, beyond = 1.0, False
    for _ in range(_CLOSER):
        readings = []
        for k in range(parts + 1):
            now = excess_after(end * k / parts) > 0 and k > 0
            readings.append(within())
            if now:
                break
        beyond = beyond or now
        shares = end * np.arange(len(readings)) / parts
        end = float(shares[-1])
        if len(readings) > parts:
            break
    readings = np.array(readings)
    near = sorted((*dip, e) for e in np.flatnonzero(~far(readings)) for dip in _sample_minima(shares, readings[:, e]))
    for share, lowest, e in near:
        found = _minimum(excess_after, lambda e=e: within()[e], share, lowest, dict(zip(shares, readings[:, e], strict=True)))
        if found is not None:
            return found
    return float(shares[-1]) if beyond else None


def far(readings) -> np.ndarray:
    """Whether each of the readings along a step (looks, events) is farther from its side's end than it can fall between looks."""
    low = readings.min(axis=0)
    with np.errstate(invalid="ignore"):                        # a time since what has not happened is infinite: far
        return ~(low <= _FAR * (readings.max(axis=0) - low))


def _sample_minima(x, y) -> list[tuple[float, float]]:
    """Where y(x) may be lowest, and below zero; and that value."""
    found = []
    for k in range(len(x) - 2):
        at, lowest = _parabola_vertex(x[k:k + 3], y[k:k + 3])
        chord = y[k] + (x[k + 1] - x[k]) / (x[k + 2] - x[k]) * (y[k + 2] - y[k])
        if at is not None and lowest < _BENT * (chord - y[k + 1]):
            found.append((float(at), float(lowest)))
    return found


def _minimum(excess_after, reading, share: float, lowest: float, known: dict[float, float]) -> float | None:
    """A share at which a switch is beyond, on the way from `share`, where the reading may be `lowest`, to the lowest one near it;
    None as soon as parabolas foretell the readings and none that is beyond. known: readings by share."""
    for _ in range(_TRIES):
        if excess_after(share) > 0:
            return share
        known[share] = reading()
        off = abs(known[share] - lowest)
        order = sorted(known)
        at = order.index(share)
        at = min((at - 1, at, at + 1), key=lambda n: known[order[n]])
        if not 0 < at < len(order) - 1:
            return None
        least, near = known[order[at]], order[at - 1:at + 2]
        share, lowest = _parabola_vertex(near, [known[x] for x in near])
        if share is None or max(least - lowest, off) < _SURE * least or share in known:
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
STARTS = 8.0             # bounds: what may be left of zero at the end of another run, which is where a run begins
_CLEAR = 4.0             # bounds: flights that are higher are seen above their rounding by halving the time until their end
_SPACINGS = 64.0         # of the duration of a run: a flight that is no longer cannot be told from none


def rounding_bound(size):
    """Of an expression whose terms, and what they are computed from, sum up to `size` in absolute value."""
    return ROUNDING * np.finfo(float).eps * np.asarray(size)


def sign_after(value, rate, curvature, bound):
    """Sign just after now: of the value, if it exceeds its rounding; else of the rate, unless the curvature turns it round before
    the value exceeds its rounding; else of the curvature. 0: none. A derivative that is not a number is not known: it is 0."""
    value, rate, curvature = (np.nan_to_num(np.asarray(x, dtype=float), nan=0.0) for x in (value, rate, curvature))
    by_motion = np.where(turns_at_once(rate, curvature, bound) | (rate == 0.0), np.sign(curvature), np.sign(rate))
    return np.where(np.abs(value) > bound, np.sign(value), by_motion)


def zero_at_start(value, rate, curvature, bound, begins):
    """Whether an expression counts as zero where a run begins: within its own rounding `bound`; or within `begins`, what rounding
    may have left at the end of another run, unless it moves towards zero: then its event is still ahead."""
    ahead = (value * rate < 0.0) & ~hidden(rate, curvature, begins)
    return (np.abs(value) <= bound) | ((np.abs(value) <= begins) & ~ahead)


def comes_back(rate, sign, bound, elapsed):
    """Whether an expression that has left zero to the side `sign` moves towards it again, so fast that it has exceeded its
    rounding in the time since."""
    return (rate * sign < 0.0) & (np.abs(rate) * elapsed > bound)


def resolvable(rate, curvature, bound, duration):
    """Whether an expression that leaves zero at `rate` and is turned round by `curvature` exceeds its rounding before it is back,
    and is back at a time that a run of this duration can tell from now. True where it is not turned round."""
    rate, curvature = np.asarray(rate, dtype=float), np.asarray(curvature, dtype=float)
    back = (rate * curvature < 0.0) | (rate == 0.0)
    with np.errstate(all="ignore"):
        flight = 2.0 * np.abs(rate / curvature)
    short = flight <= _SPACINGS * np.spacing(np.abs(duration))
    return ~(back & (hidden(rate, curvature, _CLEAR * np.asarray(bound)) | (rate == 0.0) | short))


def hidden(rate, curvature, bound):
    """Whether the curvature makes good for the rate, whatever its sign, within the rounding of the value."""
    return rate * rate <= 2.0 * np.abs(curvature) * bound


def turns_at_once(rate, curvature, bound):
    """Whether the curvature turns an expression round before it exceeds its rounding."""
    return (rate * curvature < 0.0) & hidden(rate, curvature, bound)


# switching --------------------------------------------------------------------------------------------------------------

FEW_CUTS, SOON = 10, 1e-6     # so many of one switch within this share of a step: it sticks or slides
MOST_CUTS = 1000          # of one switch within a step
CHATTERING_STEPS = 20_000      # the largest step of an adaptive method, as a share of the run, once a switch is loose
_GLANCE = 1e-6            # of a step: how far ahead it is looked where an argument is 0 at the beginning
_FINEST = 1e-14           # of a step
_LEAST = np.finfo(float).tiny      # of an excess: of an event that reads zero, and less it, of a switch that does
_MAX_PROBES = 4                # parts of a step at whose ends it is looked


class ZeroCrossings:
    """Of one run. signals: its own, with sides to be written. A method evaluates its right-hand side to renew the readings."""

    def __init__(self, problem, start=None):
        held = np.array([np.nan, 0.0, 0.0, 0.0] * (len(problem.signals.held) // SWITCH))
        self.signals, self.problem = problem.signals._replace(held=held, measured=problem.signals.measured.copy()), problem
        self.side, self.reading, self.loose = (held[k::SWITCH] for k in (SIDE, READING, CHATTERING))
        self.cuts = [deque(maxlen=MOST_CUTS) for _ in self.side]
        self.notes: dict[int, str] = {}
        self.armed, self.bound, self.start = np.ones(len(self.side), dtype=bool), np.zeros(len(self.side)), start
        self.event, self.events = np.full(len(self.side), -1), np.zeros(0, dtype=np.int64)
        if not held.size:
            return
        self.owner, operation = _owners(problem.signals, len(self.side))
        self.floor, self.jumps = operation == FLOOR, np.isin(operation, (SIGN, STEP, FLOOR))
        self.event = _events(problem, self.owner)
        self.inside, self.direction = _guarded(problem, self.event), np.append(problem.directions, 0)[self.event]
        self.events = np.flatnonzero(self.event >= 0)
        held[KIND::SWITCH] = np.where(self.event >= 0, EVENT, np.where(self.floor, FLOOR, 0))

    def __len__(self) -> int:
        return len(self.side)

    @property
    def any_chattering(self) -> bool:
        return bool(self.loose.any())

    def excess(self) -> float:
        """How far beyond its side the worst of them is, at the state looked at last; negative where all are within. Never zero:
        zero is passed where an event waits for it, and within elsewhere, for as long as it lasts."""
        x, s = self.reading, self.side
        out = np.where(self.floor, np.maximum(s - x, x - (s + 1)), -s * x)
        if len(self.events):
            out = np.where(self.armed, np.where((out == 0.0) & (self.event >= 0), _LEAST, out), out - self.bound)
        return float(np.max(np.where(out == 0.0, -_LEAST, out)[self._kept], initial=-np.inf))

    def arm(self, reading) -> None:
        """Events whose readings exceed their rounding happen from now on where zero is reached."""
        self.armed |= self.side * reading > self.bound

    def _passed(self) -> np.ndarray:
        """Switches that are beyond their sides at the readings now."""
        x, s = self.reading, self.side
        beyond = np.where(self.event >= 0, np.where(self.armed, s * x <= 0.0, s * x < -self.bound), s * x < 0.0)
        return self._kept & np.where(self.floor, (x < s) | (x >= s + 1), beyond)

    def _all_far(self, excess_after) -> bool:
        readings = []
        for share in (0.0, 0.5, 1.0):
            excess_after(share)
            readings.append(self.reading.copy())
        if not far(np.array(readings)[:, self.events] * self.side[self.events]).all():
            return False
        for reading in readings:
            self.arm(reading)
        return True

    def _within(self) -> np.ndarray:
        return self.side[self.events] * self.reading[self.events]

    @property
    def _kept(self) -> np.ndarray:
        return (self.loose == 0) & np.isfinite(self.side) & (self.direction != NEVER)

    @np.errstate(invalid="ignore")                             # readings of what has never happened are infinite
    def begin(self, glance) -> None:
        """Choose sides at the start or after a break. Events keep theirs. glance(share) looks that share of a step ahead: 0 is
        here."""
        begins, known = self.start is not None, self._known_sides()
        still = np.where((self.event >= 0) & (np.abs(known) == UNSURE), known / UNSURE, np.nan)
        known[np.isfinite(still)] = np.nan
        self.side[:], self.reading[:], self.loose[:] = np.where(self.event >= 0, np.nan, known), 0.0, 0.0
        glance(0.0)
        here, side = self.reading.copy(), _side(self.reading, self.floor)
        free = self.inside == 0
        guards = ~free
        self.bound[guards] = rounding_bound(self.problem.guards)[self.event[guards] - len(self.problem.directions)]
        near = guards & (self.inside * here <= self.bound)
        zero = np.abs(here) <= np.where(self.event >= 0, self.bound, 0.0)
        even = free & np.isnan(known) & (zero | (self.floor & (here == side)))
        if even.any() or near.any():
            glance(_GLANCE)
            side[even] = _side(self.reading, self.floor)[even]
            stays = even & np.isfinite(still) & (np.abs(self.reading) <= self.bound)
            side[stays] = still[stays]
        comes = (self.inside * here > 0.0) & (self.inside * (self.reading - here) < 0.0)
        self.armed[guards] = (~near | comes)[guards]           # what leaves a stop passes it beyond rounding only
        self.armed[even & (self.event >= 0)] = False           # as does what leaves the ground
        self._hold(np.where(free, np.where(np.isnan(known), side, known), self.inside))
        if even[self.event < 0].any():                         # what events read depends on those sides
            glance(0.0)
            here = self.reading.copy()
            turned = begins & free & (self.event >= 0) & (self.side * here < -self.bound)
            self.side[turned], self.armed[turned] = np.sign(here[turned]), True
        self.reading[:] = here
        self.reading[self.armed & (self.event >= 0) & (np.abs(here) <= self.bound)] = 0.0         # reached, be it at a kink
        unheard = self._passed() & (self.event >= 0) & ~self._waits()
        self.side[unheard], self.armed[unheard] = -self.side[unheard], (np.abs(here) > self.bound)[unheard]

    def _known_sides(self) -> np.ndarray:
        """Sides of events at the beginning of a segment, or before a break of it; NaN: not known. Of other switches where a
        segment goes on from the same state: that may be beyond them by rounding, or by a projection."""
        known, start, self.start = np.where(self.event >= 0, self.side, np.nan), self.start, None
        if start is not None and start.signs is not None:
            watched = np.flatnonzero((self.event >= 0) & (self.event < len(start.signs)))
            e = self.event[watched]
            known[watched], self.armed[watched], self.bound[watched] = start.signs[e], start.armed[e], start.bounds[e]
        if start is not None and start.sides is not None and len(start.sides) == len(self):
            known = np.where(self.event >= 0, known, start.sides)
        return known

    def sides(self) -> np.ndarray:
        """Of switches that are no events; NaN: of others, and of those that are loose."""
        return np.where((self.event >= 0) | (self.loose > 0), np.nan, self.side)

    def _hold(self, side: np.ndarray) -> None:
        """Sides that are 0 stay free: an argument that stays 0."""
        self.side[:] = np.where((side == 0) & ~self.floor, np.nan, side)

    def event_signs(self, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of the first events, the side of each (NaN: not known), whether it is armed, and its rounding."""
        signs, armed, bounds = np.full(count, np.nan), np.zeros(count, dtype=bool), np.zeros(count)
        found = (self.event >= 0) & (self.event < count)
        e = self.event[found]
        signs[e], armed[e], bounds[e] = self.side[found], self.armed[found], self.bound[found]
        return signs, armed, bounds

    def first_passing(self, excess_after, suspected: bool = True) -> float | None:
        """The share of a step after which a switch is just passed, None where none is; it was looked last there, or at the end.
        excess_after(share): `excess` then. suspected: whether there is a sign that one is."""
        if not suspected and len(self.events) == len(self) and self._all_far(excess_after):
            return None
        from scipy.optimize import brentq
        if len(self.events):
            excess_after(0.0)
            self.arm(self.reading)
        end = first_double_crossing(excess_after, self._within, _MAX_PROBES)
        height = excess_after(1.0 if end is None else end)
        if end is None:
            return None
        begin = self._risen(excess_after, end) if (self.event[~self.armed] >= 0).any() else 0.0
        share = brentq(lambda s: excess_after(s) if s > begin else -height, begin, end, xtol=_FINEST, maxiter=500,
                       rtol=4 * np.finfo(float).eps)
        further = _FINEST
        while not excess_after(share) > 0 and share < end:
            share, further = min(end, share + further), 2 * further
        return share

    def _risen(self, excess_after, end: float) -> float:
        """A share before `end` at which a disarmed event exceeds its rounding, as in a short flight: it is armed from there. 0:
        none, or another switch is passed before."""
        share = end
        while share > _FINEST:
            share *= 0.5
            before = excess_after(share) > 0
            risen = ~self.armed & (self.event >= 0) & (self.side * self.reading > self.bound)
            if risen.any():
                if not before:
                    self.armed |= risen
                return 0.0 if before else share
        return 0.0

    def fired(self, among=True) -> tuple[int, ...]:
        """Events that are passed at the cut, whose readings these are, in the direction that they wait for."""
        return tuple(np.sort(self.event[self._passed() & self._waits() & among]).tolist())

    def _waits(self) -> np.ndarray:
        """Events that happen where they pass to the other side."""
        return (self.event >= 0) & ((self.direction == 0) | (self.direction == -self.side))

    def change(self, t: float, step: float, look) -> tuple[int, ...]:
        """After a cut at t, out of a step that was to take `step`: to the other side, also of those that the change takes along.
        The readings are those at the cut; look() renews them. Returns events that have jumped with them, as `fired`: it ends
        there. What was passed and is put back by a projection onto constraints stays on its new side."""
        crossed = np.zeros(len(self), dtype=bool)
        for _ in range(len(self)):
            passed, fired = self._passed() & ~crossed, self.fired(~crossed)
            if fired or not passed.any():
                return fired
            crossed |= passed
            self._cross(passed)
            for i in np.flatnonzero(passed & (self.event < 0)):
                self._record_shortened_step(i, t, step)
            look()
        return self.fired(~crossed)

    def _cross(self, passed: np.ndarray) -> None:
        """To the other side. An event that nobody waited for there is disarmed: its reading is zero but for rounding."""
        event = passed & (self.event >= 0)
        self.side[passed] = np.where(event, -self.side, _side(self.reading, self.floor))[passed]
        self.armed[event] = False

    def settle_free(self) -> None:
        """After a step in which none is passed: those that were even take the side that they have left for; events that are over,
        the side where they are."""
        self.arm(self.reading)
        free = (np.isnan(self.side) | (self.direction == NEVER)) & (self.reading != 0)
        self.side[free] = _side(self.reading, self.floor)[free]

    def release_chattering(self) -> bool:
        """Let those that are loose go over to the side where they are. Whether one did."""
        side = np.where(self.loose > 0, np.where(self.reading >= 0, 1.0, -1.0), self.side)
        side = np.where(self.loose > 1, np.floor(self.reading), side)
        turned = bool((side != self.side).any(where=self.loose > 0))
        self.side[:] = side
        return turned

    def _record_shortened_step(self, i: int, t: float, step: float) -> None:
        cuts = self.cuts[i]
        cuts.append(t)
        sticks = self.jumps[i] and len(cuts) >= FEW_CUTS and t - cuts[-FEW_CUTS] <= SOON * step      # a kink does not stick
        if not sticks and (len(cuts) < MOST_CUTS or t - cuts[0] > step):
            return
        self.loose[i] = 2.0 if self.floor[i] else 1.0
        cuts.clear()
        k = int(self.owner[i])
        place = self.problem.signal_places[k] if k < len(self.problem.signal_places) else Place()
        name = self.problem.signal_names[k] if k < len(self.problem.signal_names) else f"signal {k}"
        where = f"{place}: " if str(place) else ""
        self.notes.setdefault(k, f"{where}the {name} switches too often from t = {t:.6g} s (sticking, sliding or chatter): steps "
                                 "no longer end where it switches, and the integration is of first order there")


def _owners(signals, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Signal and operation of each switch. After those of programs come two of each limit of a force, which have names after
    those of the signals."""
    owner, operation = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    owned = np.zeros(count, dtype=bool)
    for k in np.flatnonzero(signals.kind == PROGRAM):
        words = signals.code[signals.first[k]:][:signals.count[k]]
        words = words[np.isin(words & 255, (ABS, SIGN, STEP, FLOOR, MIN, MAX)) & (words >> 8 > 0)]
        owner[(words >> 8) - 1], operation[(words >> 8) - 1] = k, words & 255
        owned[(words >> 8) - 1] = True
    owner[~owned] = len(signals.kind) + np.arange(np.count_nonzero(~owned)) // 2
    return owner, operation


def _events(problem, owner) -> np.ndarray:
    """Which event each switch is, -1: none. An event's program ends with the sign of what is watched."""
    watch = problem.schedule.watch
    event = np.full(len(owner), -1)
    for e, k in enumerate(watch):
        if k >= 0:
            event[np.flatnonzero(owner == k)[-1]] = e
    if problem.contacts is not None:                       # an event without a signal waits for a contact
        event[problem.contacts.switch] = np.flatnonzero(np.asarray(watch) < 0)
    if problem.stops is not None:
        event[problem.stops.held_switch] = len(watch) + np.arange(len(problem.stops.held))
    return event


def _guarded(problem, event) -> np.ndarray:
    """The side that each switch of a hard stop keeps to, 0 for others."""
    directions = np.asarray(problem.directions, dtype=float)
    of_event = np.where(np.arange(len(directions)) < len(directions) - len(problem.guards), 0.0, -directions)
    return np.append(of_event, 0.0)[event]


def _side(reading: np.ndarray, floor: np.ndarray) -> np.ndarray:
    return np.where(floor, np.floor(reading), np.sign(reading))


# Runge-Kutta steps that end where a switch of the state is passed: from Python, between chunks of the compiled loop -----

class EventStepper:
    """run: `Underway`."""

    def __init__(self, run, method):
        self.problem, self.sides, self.switches, self.torques = run.problem, run.sides, run.switches, run.torques
        self.method, self.state, self.stages, self.record, self.work = method, run.state, run.stages, run.record, run.work
        self.step, self.last = float(method.control[H_MAX]), float(run.record.t[-1])
        self.fired: tuple[int, ...] = ()
        self.jumped: tuple[int, ...] = ()                      # of these, whose expressions jump here
        self._begin()

    def go_on(self, code: int) -> int:
        """After the compiled loop returned PASSED or WALL. Returns a code; EVENT: the run stands at an event."""
        clock = self.state.clock
        if code == PASSED:
            h, t = float(clock[H_TRIED]), float(clock[T_NOW])
            share = self.switches.first_passing(lambda share: self._excess_after(share * h))
            reading = self.switches.reading.copy()
            code = end_step_here(self.sides.line, self.sides.loops, self.sides.walls, self.method, self.state, self.stages,
                                 self.record, h if share is None else share * h, self.work)
            if code != RUNNING:
                return code
            self.switches.reading[:] = reading
            self.fired = self.switches.fired() if share is not None else ()
            if self.fired:
                return AT_EVENT
            if share is None:
                self.switches.settle_free()
            elif self._jump(self.switches.change(t + share * h, h, self._probe)):
                return AT_EVENT
            self._limit()
            if clock[T_NOW] != clock[T_STOP]:
                return RUNNING
        if clock[T_NOW] < self.last:
            if self.torques is not None:
                self.torques.act(self.state)
            self._begin()
            if self._jump(self.switches.fired()):              # signals and torques jump here
                return AT_EVENT
        return RUNNING

    def _jump(self, fired: tuple[int, ...]) -> bool:
        self.fired = self.jumped = fired
        return bool(fired)

    def _begin(self) -> None:
        for reading in self.stages.K[:len(self.method.b), len(self.stages.end):]:          # in the last step
            self.switches.arm(reading[:len(self.switches)])
        self.switches.begin(self._probe_end)
        self.state.count[FIRST_RATE_KNOWN] = 0                                # rates are to be computed with the new sides
        self._limit()

    def _limit(self) -> None:
        if self.method.error.size:
            self.method.control[H_MAX] = min(self.step,
                                             self.last / CHATTERING_STEPS) if self.switches.any_chattering else self.step

    def _probe_end(self, share: float) -> None:
        if share == 0.0:
            return self._probe()
        t, breaks = float(self.state.clock[T_NOW]), self.sides.walls.breaks
        wall = min(breaks[breaks > t].min(initial=np.inf), self.last)
        self._rates(t, self.state.y, 0)
        self.state.clock[T_BEFORE] = wall
        self._excess_after(share * min(self.step, wall - t))

    def _probe(self) -> None:
        self._rates(float(self.state.clock[T_NOW]), self.state.y, len(self.method.b) + 1)

    def _excess_after(self, h: float) -> float:
        """Make the step of length h, from the rates at its beginning, and look at the switches at its end."""
        clock, stages, method = self.state.clock, self.stages, self.method
        t, before, count = float(clock[T_NOW]), float(clock[T_BEFORE]), len(method.b)
        self._check(t, self.sides.at_stages(method, t, h, before, self.state, stages, 1, count, self.work), count - 1)
        stages.end[:] = self.state.y + h * (method.b @ stages.K[:count, :len(stages.end)])
        self._rates(min(t + h, before), stages.end, count)
        return self.switches.excess()

    def _rates(self, t: float, y, row: int) -> None:
        self._check(t, self.sides.at(t, self.state.q, y, self.stages.K, row, self.work), 1)

    def _check(self, t: float, code: int, evaluations: int) -> None:
        self.state.count[EVALUATIONS] += evaluations
        if code != RUNNING:
            raise failure(self.problem, code, t, self.work, self.sides.ties)
