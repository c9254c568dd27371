"""A run with phases and events: stretches of smooth motion, and what happens between them.

A stretch ends at a time that is known, where the integrator finds an event, or at the end of the run. What an event does is
computed in the order of its actions (`actions`), then the impacts at limits (`hard_stops`). The state before and the state after
are two rows of the result with the same time.
"""
from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from itertools import takewhile

import numpy as np

from liedyn.arrays import Array
from liedyn.codegen.rhs import read_signal, signal_instructions
from liedyn.dynamics.kinematics import link_poses
from liedyn.errors import ComputationError, Place, ScenarioError
from liedyn.immutable import Immutable
from liedyn.integrators.problem import (
    MULTISTEP,
    NEVER,
    UNSURE,
    InitialValueProblem,
    LoopStatistics,
    Options,
    Segment,
    SegmentStart,
    Statistics,
    event_options,
)
from liedyn.integrators.segment import RightHandSide, ZeroOrderHold, evaluated
from liedyn.integrators.solve import solve_segment
from liedyn.integrators.zero_crossings import STARTS, comes_back, hidden, rounding_bound, sign_after, turns_at_once, zero_at_start
from liedyn.io.scenarios.event_schema import late_notes
from liedyn.io.scenarios.scenario import EndRun, Event, Impact, Scenario, Set
from liedyn.kernels.simulation.signals import MEASURED
from liedyn.simulation.control.sampled_control import SampledController
from liedyn.simulation.event_actions import Actions, start_prescribed_motions
from liedyn.simulation.expression_motion import ExpressionMotion, expression_motion
from liedyn.simulation.impacts import STILL, EventState, HardStops
from liedyn.simulation.joint_stops import impact_name, release_name, stops_by_state
from liedyn.simulation.name_binding import measured_at
from liedyn.simulation.run_recorder import RunRecorder
from liedyn.simulation.segment_problems import HybridState, SegmentProblems
from liedyn.simulation.signals.signal_compiler import SAME_TIME

# Events that read joint forces, which jump where another event locks or frees joints: what is jumped over has happened ---

def reads_forces(problem, k: int) -> bool:
    """Whether signal k reads joint forces."""
    words = signal_instructions(problem.signals, k)
    return bool(((words & 255 == MEASURED) & (words >> 8 < problem.model.nv)).any())


def reading_forces(problem) -> list[int]:
    """Which of the events that schedule.watch looks for read joint forces."""
    return [event for event, k in enumerate(problem.schedule.watch) if k >= 0 and reads_forces(problem, k)]       # -1: a contact


def sides(problem, now, events, controller=None) -> np.ndarray:
    """The sign of each event's expression less its value at the state `now`, a `SegmentStart`. controller: whose torques act;
    or None."""
    if not events:
        return np.zeros(0)
    run = RightHandSide(problem, problem.signals)
    if controller is not None:
        ZeroOrderHold(problem, controller, run).show()
    work = evaluated(problem, now.t, now.q, now.v, run, now.integral)
    measured = measured_at(problem.model, problem.signals, work.q, work.v)
    measured.measured[:problem.model.nv] = work.tau
    return np.array([read_signal(measured, int(problem.schedule.watch[k]), now.t, work.q, work.v)[0] for k in events])


def jumped(before: np.ndarray, after: np.ndarray, events, directions) -> tuple[int, ...]:
    """Events whose sides have changed in the direction that they wait for."""
    return tuple(event for event, one, other in zip(events, before, after, strict=True)
                 if one * other < 0.0 and directions[event] in (0, other))


# stretches --------------------------------------------------------------------------------------------------------------

_ERRORS = 10.0           # of the tolerances of a multistep method: what it makes of an expression in a step
_MANY, _AT_ONCE = 200, 1e-9      # so many events within this share of the run never end; so many at one time rebound no more


@dataclass(frozen=True, eq=False)
class OccurredEvent(Immutable):
    """An event that happened.

    t         [s]
    name      of the event
    phase     after it; "" without phases
    dv        (nv,) jump of the velocity
    impulse   (nv,) of joints, along the coordinates [N m s | N s]
    lost      [J] where joints lock, bodies attach or hit: kinetic energy that is gone, 1/2 dv^T M dv where nothing rebounds
    change    of the energy, kinetic and potential [J]
    """

    t: float
    name: str
    phase: str
    dv: Array
    impulse: Array
    lost: float
    change: float


class HybridSimulation:
    """Of one run. first: the problem of the scenario as it begins, which the first stretch takes."""

    def __init__(self, scenario: Scenario, model, first: InitialValueProblem):
        self.scenario, self.model, self.modes = scenario, model, SegmentProblems(scenario, model, first)
        self._hard = HardStops(self.modes.stops, model, scenario.duration, scenario.limits.place if scenario.limits else Place())
        self.actions = Actions(self.modes, self._hard, scenario.events)
        self._hard.check_start(first)
        self.watched, self._of_forces = [event for event in scenario.events if event.when], reading_forces(first)
        self.controller = SampledController(scenario.sampling, model) if scenario.sampling else None
        self.entered: list[HybridState] = []                   # of the segments
        self.totals = Statistics(notes=())
        # where the present segment began, and whether without a row there
        self._standing: tuple[SegmentStart, bool] | None = None
        self.ended: SegmentStart | None = None                 # the state after the last event
        self._recent: deque[float] = deque(maxlen=_MANY)       # ends of stretches
        self.occurrences: list[OccurredEvent] = []
        self._done: set[str] = set()
        self._deaf: dict[str, float] = {}                      # until when events that came too soon after the last are not heard
        self._turned_back = False                              # whether a limit drives a body into the stop of the last event
        self._at_zero: dict[int, float] = {}                   # expressions of events that happen, before their actions
        self._state, self._values = (), {}                     # where expressions were evaluated last, and their values there
        self._tolerances = 0.0, 0.0                            # rtol and atol of a method whose errors hide short flights

    @property
    def notes(self) -> dict[str, str]:
        return self.modes.notes

    def run(self, times: np.ndarray, options: Options, progress: Callable[[float], None], rows: RunRecorder) -> Statistics:
        """Hands its stretches to `rows`, and fills `occurrences`."""
        problem = self.modes.problem
        options = event_options(options, bool(self.watched) or bool(self._hard.stops))
        self._tolerances = (options.rtol, options.atol) if options.method in MULTISTEP else (0.0, 0.0)
        duration, timed = float(times[-1]), _timed_events(self.scenario.events, float(times[-1]))
        for note in late_notes(self.scenario.events, duration):
            self.modes.notes["late"] = note
        slack, recent = SAME_TIME * duration, self._recent
        if self._standing is None:
            now, silent = replace(self._meet_limits(SegmentStart(0.0, problem.q, problem.v)), work=0.0), False
            timed = [*((0.0, event) for event in self._pressed(now)), *timed]
        else:                                                  # in the middle of a stretch
            now, silent = self._standing
            timed = timed[len(_due_events(timed, now.t + slack)):]
        shown = 0                                              # events whose states before and after are rows
        while not self.actions.stopped:
            due = _due_events(timed, now.t + slack)
            if due:
                timed, known = timed[len(due):], len(self.occurrences)
                now = self._happen(now, due)
                silent = bool(self.entered) and (silent or not now.fired) and len(self.occurrences) == known
                now = now if self.entered else replace(now, work=0.0)          # the motion begins with what it makes
                continue
            end = timed[0][0] if timed else duration
            if now.t >= duration - slack:
                break
            end = min([end, *(t for t in self._deaf.values() if t > now.t + slack)])
            end = end if end < duration - slack else duration
            inside = times[(times > now.t + slack) & (times < end - slack)]
            asked = np.concatenate([[] if silent else [now.t], inside, [end]])
            self._standing, problem = (now, silent), self.modes.problem
            stretch = self._stretch(now, asked, options, rows, lambda share, end=end: progress(share * end / duration))
            self.totals, shown = self.totals.plus(self._by_all_rows(problem.model, stretch.statistics)), len(self.occurrences)
            now = self._reached(stretch.end, stretch.end.signs, stretch.end.armed, stretch.end.t - now.t)
            recent.append(now.t)
            if len(recent) == _MANY and now.t - recent[0] <= _AT_ONCE * duration:
                raise ComputationError(f"events happen again and again at t = {now.t:.9g} s, the last one is "
                                       f"{self.occurrences[-1].name if self.occurrences else '?'} (give it a debounce, or an "
                                       "action after which the motion goes on)")
            known = len(self.occurrences)
            if now.fired:
                now = self._meet_limits(now, problem)
                due = _due_events(timed, now.t + slack)
                timed = timed[len(due):]
                now = self._happen(now, [*due, *(self.watched[k] for k in now.fired)])
                same = self.modes.problem is problem and all(map(np.array_equal, (now.q, now.v), (stretch.end.q, stretch.end.v)))
                now = now if same else replace(now, sides=None)
            silent = (bool(now.fired) or now.t in self._deaf.values()) and len(self.occurrences) == known      # no second row
        if len(self.occurrences) > shown or not self.entered:
            self._stretch(replace(now, fired=()), np.array([now.t]), options, rows)          # the state after the last event
        self.ended = now
        if missed := self._missed_events():
            self.modes.notes["never"] = f"events that never happened: {', '.join(missed)}"
        return self.totals

    def _missed_events(self) -> list[str]:
        """Of those with `when`, those that could: the run has its full duration, and phases in which they happen were entered.
        An event that stops the run may guard it: such an event counts where nothing happened."""
        if self.actions.stopped:
            return []
        entered, happened = {mode.phase for mode in self.entered}, self.modes.last
        return [event.name for event in self.watched if event.name not in happened
                and (not event.phases or entered.intersection(event.phases))
                and not (happened and any(isinstance(action, EndRun) for action in event.actions))]

    def _stretch(self, now: SegmentStart, times, options: Options, rows: RunRecorder, progress=lambda share: None) -> Segment:
        problem = self.modes.problem
        self._take_sample(problem, now)
        now = self._with_signs(now)
        self.entered.append(self.modes.mode)
        rows.begin(problem)
        stretch = solve_segment(self._enabled_events(problem, now), now, times, options, progress, self.controller, rows)
        rows.end(stretch.record)
        return stretch

    def _take_sample(self, problem: InitialValueProblem, now: SegmentStart) -> None:
        """If one is due: the sides of expressions follow from its torque, and the stretch begins with it."""
        if self.controller is not None:
            y, nv = np.zeros(problem.size), len(now.v)
            y[nv:2 * nv], y[-1] = now.v, now.work
            self.controller.act(problem, now.t, now.q, y)

    def _with_signs(self, now: SegmentStart) -> SegmentStart:
        """With the sign of each event's expression from here on, see `zero_crossings`."""
        problem, count = self.modes.problem, len(self.watched)
        if not count:
            return replace(now, signs=None, armed=None, bounds=None)
        carried = np.full(count, np.nan) if now.signs is None else now.signs[:count]
        signs, armed, bounds = carried.copy(), np.ones(count, dtype=bool), np.zeros(count)
        for e, k in enumerate(problem.schedule.watch[:count]):
            fired = e in now.fired
            if k < 0:                                          # a contact: it has begun or ended
                signs[e], armed[e] = -carried[e] if fired else carried[e], not fired
                bounds[e] = rounding_bound(np.abs(link_poses(problem.model.spanning_tree(), now.q)[..., :3, 3]).max(initial=1.0))
                continue
            after = replace(now, t=float(np.nextafter(now.t, np.inf))) if e in now.jumped else now      # beyond the jump
            motion = self._expression(int(k), after, derivatives=False)
            bounds[e] = max(motion.bound, self._overshoot(e, now))
            zero = abs(motion.value) <= bounds[e]
            if now.signs is None and abs(motion.value) <= STARTS * motion.bound:
                motion = self._expression(int(k), now)
                bounds[e] = STARTS * motion.bound
                zero = zero_at_start(motion.value, motion.rate, motion.curvature, motion.bound, bounds[e])
            fired = fired and abs(motion.value - self._at_zero.get(e, np.inf)) <= motion.bound       # it has not jumped since
            was_armed = now.armed is None or now.armed[e]
            passed = fired or (was_armed and carried[e] * motion.value <= 0.0)           # another event waits for its other side
            if not fired and not zero:
                back = e in now.jumped and now.sides is not None          # to the former side, by a projection
                signs[e] = -carried[e] if back else np.sign(motion.value)
            elif passed or np.isnan(carried[e]):
                bounds[e] = max(bounds[e], 2.0 * abs(motion.value))          # as far beyond as it was found
                motion = self._expression(int(k), after)
                sign = sign_after(0.0, motion.rate, motion.curvature, bounds[e] if fired else motion.bound)
                unknown = np.isnan(motion.curvature) and not self.watched[e].has_impact
                if unknown or np.isnan(motion.rate):           # the integrator looks ahead
                    sign = UNSURE * (-carried[e] if e in now.fired else np.nan)
                elif sign == 0.0:                              # it stays at zero
                    sign = self._side_of_rest(e, carried[e], -carried[e] if passed else np.nan)
                signs[e], armed[e] = sign, False
            else:
                armed[e] = was_armed                           # still within its rounding
        return replace(now, signs=signs, armed=armed, bounds=bounds)

    def _overshoot(self, e: int, now: SegmentStart) -> float:
        """How far beyond zero an event was found that has not exceeded its rounding since; and the rounding of one that has
        reached zero at a break, where its terms may be as small."""
        return 0.0 if now.bounds is None or (now.armed[e] and e not in now.jumped) else float(now.bounds[e])

    def _side_of_rest(self, e: int, came: float, otherwise: float) -> float:
        """The side of an expression that stays at zero: of an impact, that from which it comes."""
        event = self.watched[e]
        return -event.direction or came if event.has_impact else otherwise

    def _reached(self, now: SegmentStart, known: np.ndarray | None, armed: np.ndarray | None, elapsed: float) -> SegmentStart:
        """With the events that are at zero, too, where a segment ends: those of other signs or times that are equal but for
        rounding, and those whose last step ended just before. elapsed: since the segment began [s]."""
        if known is None or not len(self.watched):
            return now
        found, jumped, self._at_zero = set(now.fired), set(now.jumped), {}
        for e, k in enumerate(self.modes.problem.schedule.watch[:len(self.watched)]):
            if k < 0:
                continue
            motion = self._expression(int(k), now, derivatives=False)
            waits, bound = self.modes.problem.directions[e] in (0, -known[e]), max(motion.bound, self._overshoot(e, now))
            if e not in found and waits and armed[e] and motion.value * known[e] < -bound:          # a signal jumps here
                found.add(e)
                jumped.add(e)
            elif e not in found and waits and abs(motion.value) <= bound:
                way = self._expression(int(k), now)
                comes = way.rate * known[e] < 0.0 if armed[e] else comes_back(way.rate, known[e], way.bound, elapsed)
                if comes and not turns_at_once(way.rate, way.curvature, way.bound):
                    found.add(e)
            if e in found and (e not in jumped or abs(motion.value) <= bound):
                self._at_zero[e] = motion.value
        return replace(now, fired=tuple(sorted(found)))

    def _pressed(self, now: SegmentStart) -> list[Event]:
        """Events with impacts whose expressions are zero at the beginning and go the way that they wait for."""
        start, found = self._with_signs(replace(now, signs=None)), []
        for e, (event, k) in enumerate(zip(self.watched, self.modes.problem.schedule.watch, strict=False)):
            if k < 0 or start.armed[e] or not event.has_impact:
                continue
            if event.direction and event.direction == start.signs[e]:
                found.append(event)
            elif not event.direction and self._rests_at(int(k), now):
                self.modes.notes[f"{event.name} begins"] = (
                    f"event {event.name}: its expression starts at its value at rest, and it has no direction. Its side is "
                    "unknown, so the coordinate leaves without an impact (give direction: falling or rising to let it rest)")
        return found

    def _rests_at(self, k: int, now: SegmentStart) -> bool:
        motion = self._expression(k, now)
        return bool(motion.curvature and hidden(motion.rate, motion.curvature, motion.bound))

    def _expression(self, k: int, now: SegmentStart, derivatives: bool = True, problem: InitialValueProblem
                    | None = None) -> ExpressionMotion:
        problem, run = problem or self.modes.problem, None
        if not derivatives and not reads_forces(problem, k):
            state = problem, now.t, now.q.tobytes(), now.v.tobytes()
            if state != self._state:
                self._state, self._values = state, {}
            if k not in self._values:
                self._values[k] = expression_motion(problem, k, now.t, now.q, now.v)
            found = self._values[k]
        else:
            if self.controller is not None:
                run = RightHandSide(problem, problem.signals)
                ZeroOrderHold(problem, self.controller, run).show()
            work = evaluated(problem, now.t, now.q, now.v, run, now.integral)
            found = expression_motion(problem, k, now.t, work.q, work.v, work.a, work.tau)
        rtol, atol = self._tolerances
        return found._replace(bound=max(found.bound, _ERRORS * (atol + rtol * found.size)))

    def _enabled_events(self, problem: InitialValueProblem, now: SegmentStart) -> InitialValueProblem:
        """Without events that are over for good, of other phases, or too soon: a locked joint may stand at the value of one, to
        and fro by rounding, and a force that chatters jumps over it."""
        over = [self._is_over(event) or now.t < self._deaf.get(event.name, -math.inf) for event in self.watched]
        if not any(over):
            return problem
        directions = [NEVER if one else direction for one, direction in zip(over, problem.directions, strict=False)]
        other = replace(problem, directions=(*directions, *problem.directions[len(over):]))
        other.__dict__["step"] = problem.step
        return other

    def so_far(self, cut: Statistics) -> Statistics:
        """What it took, with a stretch that was cut."""
        return self.totals.plus(cut)

    def _by_all_rows(self, model, statistics: Statistics) -> Statistics:
        """The row that they name is one of all constraints."""
        loops = statistics.loops
        if loops is not None and loops.singular_row >= 0:
            row = self.model.constraint_equation_names.index(model.constraint_equation_names[loops.singular_row])
            statistics = replace(statistics, loops=replace(loops, singular_row=row))
        return statistics

    # checkpoints --------------------------------------------------------------------------------------------------------
    def about(self) -> dict:
        """All that the rest of the run depends on but the numbers of its stretch, as plain values."""
        (start, silent), modes = self._standing, self.modes
        return {"timeline": {
            "modes": [modes.plain(mode) for mode in self.entered], "silent": silent, "recent": list(self._recent),
            "start": _plain(start), "occurrences": [_plain(one) for one in self.occurrences],
            "totals": asdict(self.totals), "phase_began": modes.phase_began, "stops": self._hard.about(),
            "controller": self.controller and self.controller.about(),
            "notes": modes.notes, "last": modes.last, "short": self.actions.short,
            "done": sorted(self._done), "deaf": self._deaf}}

    def go_on(self, about: dict) -> list[InitialValueProblem]:
        """From what `about` said. Returns the problem of each stretch so far."""
        saved, modes = about["timeline"], self.modes
        stages, start, loops = [], _arrays(saved["start"]), saved["totals"]["loops"]
        modes.last, modes.phase_began = saved["last"], saved["phase_began"]
        for plain in saved["modes"]:
            modes.enter(modes.of_plain(plain))
            stages.append(modes.problem)
            self.entered.append(modes.mode)
        self.entered.pop()                                     # the last one begins again
        tuples = {name: tuple(saved["start"][name]) for name in ("fired", "jumped")}
        self._standing = SegmentStart(**start | tuples), saved["silent"]
        self._recent.extend(saved["recent"])
        self.occurrences += [OccurredEvent(**_arrays(one)) for one in saved["occurrences"]]
        self.totals = Statistics(**saved["totals"] | {"loops": loops and LoopStatistics(**loops),
                                                      "notes": tuple(saved["totals"]["notes"])})
        modes.notes, self.actions.short = saved["notes"], saved["short"]
        self._hard.go_on(saved["stops"])
        if self.controller:
            self.controller.go_on(saved["controller"])
        self._done, self._deaf = set(saved["done"]), saved["deaf"]
        return stages

    # events -------------------------------------------------------------------------------------------------------------
    def _happen(self, now: SegmentStart, events: list[Event]) -> SegmentStart:
        """These, in the order of the file, and those whose forces jump over their value by what others do."""
        waiting, first = deque(sorted(events, key=self.scenario.events.index)), len(self.occurrences)
        while waiting and not self.actions.stopped:
            event = waiting.popleft()
            last = self.modes.last.get(event.name, -math.inf)
            if event.debounce and now.t - last < event.debounce and event.when:
                self._deaf[event.name] = last + event.debounce
            if self._is_over(event) or (event.debounce and now.t - last < event.debounce):
                continue
            before, pressed = self._sides(now), self._pressed_in(now)
            self.actions.ending = len(self.occurrences) - first >= _MANY
            now = self._act(now, event)
            passed = [self.watched[k] for k in (*self._jumped(before, now), *_driven_events(pressed, self._pressed_in(now)))]
            again = [event] if self._turned_back else []       # by an impact at a limit
            waiting.extend(one for one in (*(one for one in passed if one is not event), *again) if one not in waiting)
            if len(self.occurrences) - first > 2 * _MANY:
                raise ComputationError(f"events happen again and again at t = {now.t:.9g} s, the last one is {event.name} "
                                       "(forces jump back and forth across its value)")
        self.actions.ending = False
        return now

    def _pressed_in(self, now: SegmentStart) -> dict[int, float]:
        """Events with impacts whose expressions are at zero and on their way beyond, or pressed there at rest, and how fast: an
        impact elsewhere may drive a body into its stop again, and a body may be released where it lies."""
        found = {}
        for e, (event, k) in enumerate(zip(self.watched, self.modes.problem.schedule.watch, strict=False)):
            if k < 0 or self._is_over(event) or not event.has_impact:
                continue
            motion = self._expression(int(k), now, derivatives=False)
            if abs(motion.value) > max(motion.bound, 2.0 * abs(self._at_zero.get(e, 0.0)), self._overshoot(e, now)):
                continue
            motion, way = self._expression(int(k), now), event.direction or (0.0 if now.signs is None else -now.signs[e])
            rests = hidden(motion.rate, motion.curvature, motion.bound)
            if way * (motion.curvature if rests else motion.rate) > 0.0:
                found[e] = 0.0 if rests else abs(motion.rate)
        return found

    def _sides(self, now: SegmentStart) -> np.ndarray:
        return sides(self.modes.problem, now, self._of_forces, self.controller)

    def _jumped(self, before: np.ndarray, now: SegmentStart) -> tuple[int, ...]:
        """Events that read forces and were on these sides."""
        return jumped(before, self._sides(now), self._of_forces, self.modes.problem.directions)

    def _number_of(self, event: Event) -> int:
        """Among those with an expression; -1: it has none."""
        return next((e for e, one in enumerate(self.watched) if one is event), -1)

    def _is_over(self, event: Event) -> bool:
        """For good, or in this phase."""
        return event.name in self._done or bool(event.phases and self.modes.mode.phase not in event.phases)

    def _act(self, now: SegmentStart, event: Event) -> SegmentStart:
        modes, before = self.modes, self._moment(now)
        since, rested = now.t - modes.last.get(event.name, -math.inf), modes.mode.resting
        modes.last[event.name] = now.t
        modes.change(resting=())
        moment = self.actions.do(before, event, now.t, *self._expression_after(event, now), rested)
        if event.name in modes.problem.clocks:
            phase = modes.phases.get(modes.mode.phase)
            moment = start_prescribed_motions(moment, modes.problem, now.t, phase is not None and phase.impulsive,
                                              f"event {event.name}", event.place)
        closed = self.actions.take_closed()
        e = self._number_of(event)
        turned = self._hard.stops and e not in self._pressed_in(replace(now, q=moment.q, v=moment.v))
        aimed = self._coordinates_set_into_stops(event, now, moment)
        staying = (stop for stop in rested if moment.q[stop.q] == before.q[stop.q] and (
            stop in self._hard.stops or stop.name not in aimed))
        made = moment                                          # by the event itself; then, from nothing, at limits
        try:
            moment = self._settled(replace(made, impulse=np.zeros(len(now.v)), work=0.0, lost=0.0), now.t, (*staying, *closed),
                                   speed=np.abs(before.v).max(initial=0.0))
        except ScenarioError as problem:                       # a coordinate is beyond its hard stop now
            raise ScenarioError(f"event {event.name}: {problem.message}", place=event.place,
                                expected=problem.expected) from None
        struck = [stop for stop in self._pushed_by(moment) if stop not in rested]
        self._turned_back = bool(turned and e in self._pressed_in(replace(now, q=moment.q, v=moment.v)))
        self.actions.count_short(event, since, before)
        if event.once:
            self._done.add(event.name)
        if self._rests_from_start(event, before, moment):
            return replace(now, q=moment.q, v=moment.v)
        self.actions.note_closed([stop for stop in closed if stop in modes.mode.resting], event, now.t)
        if struck:                                             # impacts at limits, which the event makes or which meet it
            return self._happened(impact_name(struck), self._happened(event.name, now, before, made), made, moment)
        return self._happened(event.name, now, before, replace(
            moment, impulse=made.impulse + moment.impulse, work=made.work + moment.work, lost=made.lost + moment.lost))

    def _coordinates_set_into_stops(self, event: Event, now: SegmentStart, moment: EventState) -> set[str]:
        """Coordinates that this event has set into the stop of another, which has an impact then."""
        if not any(isinstance(action, Set) for action in event.actions):
            return set()
        pressed = self._pressed_in(replace(now, q=moment.q, v=moment.v))
        return {action.coordinate for e, speed in pressed.items() if speed and self.watched[e] is not event
                for action in self.watched[e].actions if isinstance(action, Impact)}

    def _also(self, now: SegmentStart, events) -> SegmentStart:
        return replace(now, fired=tuple(sorted({*now.fired, *events})))

    def _pushed_by(self, moment: EventState) -> list:
        """Hard stops at limits that the impulses of this moment push against. Impulses of constraints act elsewhere, too."""
        return [stop for stop in self._hard.stops if stop.side * moment.impulse[stop.coordinate] < 0.0
                and self._hard.is_at(stop, moment.q)]

    def _rests_from_start(self, event: Event, before: EventState, after: EventState) -> bool:
        """Whether a run begins at rest at the stop of an impact: nothing happens, as at hard stops."""
        impacts = event.when and all(isinstance(action, Impact) for action in event.actions)
        return bool(impacts and not self.entered and np.abs(after.v - before.v).max() <= STILL * np.abs(before.v).max())

    def _expression_after(self, event: Event, now: SegmentStart):
        """A function of a moment and a problem: the motion of the event's expression there; None where it has none. And whether
        the expression has exceeded its rounding since the event happened before."""
        e = self._number_of(event)
        if e < 0 or self.modes.problem.schedule.watch[e] < 0:
            return None, True
        return (lambda moment, problem: self._expression(int(problem.schedule.watch[e]), replace(now, q=moment.q, v=moment.v),
                                                         problem=problem),
                now.armed is None or e not in now.fired or bool(now.armed[e]))

    def _moment(self, now: SegmentStart) -> EventState:
        problem = self.modes.problem
        return EventState(problem.model, now.q.copy(), now.v.copy(), np.zeros(len(now.v)), passive=problem.passive)

    def _happened(self, name: str, now: SegmentStart, before: EventState, after: EventState) -> SegmentStart:
        change, phase = sum(after.energies) - sum(before.energies), self.modes.mode.phase or ""
        self.occurrences.append(OccurredEvent(now.t, name, phase, after.v - before.v, after.impulse, after.lost, change))
        return replace(now, q=after.q, v=after.v, work=now.work + after.work)

    # limits -------------------------------------------------------------------------------------------------------------
    def _meet_limits(self, now: SegmentStart, problem: InitialValueProblem | None = None) -> SegmentStart:
        """Hard stops that are reached or let go. problem: whose events have fired; None: the run begins."""
        if not self._hard.stops and not self.modes.mode.resting:
            return now
        modes, before, resting, forces = self.modes, self._moment(now), self.modes.mode.resting, self._sides(now)
        guards = () if problem is None else sum(stops_by_state(modes.acting_stops, problem.schedule.level, resting), ())
        met = [guards[k - len(self.watched)] for k in now.fired if k >= len(self.watched)]
        now = replace(now, fired=tuple(k for k in now.fired if k < len(self.watched)))
        released = [stop for stop in met if stop in resting]
        hits, pressed = [stop for stop in met if stop not in resting], self._pressed_in(now)
        if released:
            resting = tuple(stop for stop in resting if stop not in released)
            modes.change(resting=resting)
            now = self._happened(release_name(released), now, before, before)
        if not hits and problem is not None:
            return self._also(now, self._jumped(forces, now))
        modes.change(resting=())
        after = self._settled(before, now.t, resting, hits)
        if hits or after.impulse.any():
            pushed = self._pushed_by(after)
            moving = [stop for stop in pushed if stop not in hits and stop.side * before.v[stop.coordinate] > 0.0]
            pushed = [*hits, *moving] if hits else pushed      # those that arrive at the same time but for rounding
            now = self._happened(impact_name(pushed), now, before, after)
            return self._also(now, (*_driven_events(pressed, self._pressed_in(now)), *self._jumped(forces, now)))
        return replace(now, q=after.q, v=after.v)

    def _settled(self, moment: EventState, t: float, rested, hits=(), speed: float | None = None) -> EventState:
        """After the impacts at limits; the mode is that of the coordinates that rest. speed: the largest before, if it has
        changed."""
        if self._hard.stops or rested:
            moment, resting = self._hard.settle(moment, t, self.modes.problem, rested, hits, speed)
            self.modes.change(resting=resting)
        return moment


def _driven_events(before: dict[int, float], after: dict[int, float]) -> list[int]:
    """Events that are pressed now and were not, or not as fast."""
    return [e for e, speed in after.items() if speed > before.get(e, -1.0) * (1.0 + STILL)]


def _plain(one) -> dict:
    """Fields, arrays as lists."""
    return {name: x.tolist() if isinstance(x, np.ndarray) else x for name, x in vars(one).items()}


def _arrays(plain: dict) -> dict:
    """Back."""
    return {name: np.array(x) if isinstance(x, list) else x for name, x in plain.items()}


def _due_events(timed, until: float) -> list[Event]:
    """The first of those that are known, up to this time."""
    return [event for _, event in takewhile(lambda one: one[0] <= until, timed)]


def _timed_events(events, duration: float) -> list[tuple[float, Event]]:
    """Times that are known, in order; of several at one time, in the order of the file."""
    found = [(t, event) for event in events for t in event.at if t <= duration]
    for event in events:
        if event.every:
            found += [(k * event.every, event) for k in range(1, int(duration / event.every * (1 + 1e-12)) + 1)]
    return sorted(found, key=lambda one: one[0])
