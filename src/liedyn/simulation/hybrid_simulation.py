"""A run with phases and events: segments of smooth motion, and the jumps between them.

A segment ends at a time that is known, where the integrator finds an event, or at the end of the run. The actions of an event
are applied in their order (`event_actions`), then the impacts at limits (`impacts`). The states before and after are two rows of
the result with the same time.
"""
from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from liedyn.arrays import Array, Mask
from liedyn.codegen.rhs import read_signal, signal_instructions
from liedyn.dynamics.kinematics import link_poses
from liedyn.errors import ComputationError, Place, ScenarioError, WarningLog, list_names, summarized
from liedyn.immutable import Immutable
from liedyn.integrators.diagnosis import early_end_error
from liedyn.integrators.problem import (
    MULTISTEP,
    NO_DIRECTION,
    STAYS_AT_ZERO,
    InitialValueProblem,
    Options,
    Segment,
    SegmentStart,
    Statistics,
    event_options,
    state_vector,
)
from liedyn.integrators.segment import RightHandSide, SampledTorques, ZeroOrderHold, evaluate_state
from liedyn.integrators.solve import solve_segment
from liedyn.integrators.zero_crossings import (
    START_FACTOR,
    EventSigns,
    crossed,
    crossing_direction,
    is_arriving,
    is_expected,
    rounding_bound,
    signs_after_event,
)
from liedyn.io.scenarios.action_schema import EndRun, Impact, Set
from liedyn.io.scenarios.scenario import Event, Scenario
from liedyn.kernels.simulation.right_hand_side import MotionWorkspace
from liedyn.kernels.simulation.signals import MEASURED
from liedyn.model.model import Model
from liedyn.simulation.control.observer import Estimate, bind_observer
from liedyn.simulation.control.rigid_joint_laws import undetermined_law
from liedyn.simulation.control.sampled_control import SampledController
from liedyn.simulation.event_actions import Actions, start_prescribed_motions
from liedyn.simulation.expression_motion import ExpressionMotion, expression_motion
from liedyn.simulation.impacts import SPEED_TOLERANCE, EventState, HardStops
from liedyn.simulation.joint_friction import FrictionState, JointFriction, change_names
from liedyn.simulation.joint_stops import JointStop, impact_name, release_name, stops_by_state
from liedyn.simulation.name_binding import with_measured_values
from liedyn.simulation.run_recorder import RunRecorder
from liedyn.simulation.segment_problems import EventLedger, HybridState, SegmentProblems
from liedyn.simulation.signals.curves import SAME_TIME
from liedyn.simulation.sticking import friction_modes, stop_slow_coordinates


def reads_forces(problem: InitialValueProblem, k: int) -> bool:
    """Return whether signal k reads generalized forces."""
    words = signal_instructions(problem.signals, k)
    return bool(((words & 255 == MEASURED) & (words >> 8 < problem.model.nv)).any())


# segments --------------------------------------------------------------------------------------------------------------

_ERROR_FACTOR = 10.0           # error of an expression in a step of a multistep method, relative to its tolerances
# so many events within this fraction of the run are an error; after so many at one time, impacts do not rebound
_MAX_EVENTS, _MAX_EVENTS_SPAN = 200, 1e-9


@summarized
@dataclass(frozen=True, eq=False)
class OccurredEvent(Immutable):
    """An event that occurred.

    t         [s]
    name      of the event
    phase     phase after the event; "" without phases
    dv        (nv,) jump of the velocity
    impulse   (nv,) generalized impulse of the event [N m s | N s]
    lost      kinetic energy dissipated where joints lock, bodies attach or collide: 1/2 dv^T M dv without rebound [J]
    change    change of kinetic and potential energy [J]
    """

    t: float
    name: str
    phase: str
    dv: Array
    impulse: Array
    lost: float
    change: float


class FrictionEvents(NamedTuple):
    """The modes of friction that have ended, and why.

    arrived    coordinates whose velocity has become zero
    released   whether friction of coordinates that stick has exceeded the static level
    speed      maximum speed
    """

    modes: FrictionState = ()
    arrived: frozenset[int] = frozenset()
    released: bool = False
    speed: float = 0.0

    @property
    def begun(self) -> dict[int, int]:
        """Directions of the coordinates that slide on, whose velocity may still be zero within rounding."""
        if not self.arrived and not self.released:
            return {}
        return {mode.friction.coordinate: mode.direction for mode in self.modes
                if mode.moves and mode.friction.coordinate not in self.arrived}


class HybridSimulation:
    """The segments and events of one run.

    first       problem at the start of the scenario, for the first segment
    frictions   rigid friction of coordinates, which `model` does not have
    compile_state, controller   of `SegmentProblems`, and called at samples; None: those of the scenario
    """

    def __init__(self, scenario: Scenario, model: Model, first: InitialValueProblem, frictions: Sequence[JointFriction] = (), *,
                 compile_state: Callable[[HybridState], InitialValueProblem] | None = None,
                 controller: SampledTorques | None = None):
        self.scenario, self.model = scenario, model
        self.problems = SegmentProblems(scenario, model, first, frictions, compile_state)
        self.frictions = self.problems.frictions
        self._ended_friction = FrictionEvents()                # of the last segment
        self._hard_stops = HardStops(self.problems.stops, model, scenario.duration, scenario.limits.place
                                     if scenario.limits else Place())
        self.actions = Actions(self.problems, self._hard_stops, scenario.events)
        self._hard_stops.check_start(first)
        self.state_events = [event for event in scenario.events if event.when]
        # signals of contacts are negative
        self._force_events = [e for e, k in enumerate(first.schedule.watch) if k >= 0 and reads_forces(first, k)]
        self._has_impact = np.array([event.has_impact for event in self.state_events], dtype=bool)
        self._directions = np.array([event.direction for event in self.state_events])
        self.controller = controller if scenario.sampling is None else SampledController(
            scenario.sampling, model, bind_observer(scenario, model))
        self.visited_states: list[HybridState] = []                   # of completed segments
        self.total_statistics = Statistics(warnings=())
        self._duration = scenario.duration                             # end of the run [s]
        self._known_events: list[tuple[float, Event]] = []             # that are still to come
        self._n_recorded_events = 0                                    # whose states before and after are recorded
        self._segment_start: SegmentStart | None = None                # start of the current segment
        self._omits_first_row = False                                  # whether it records no row at its start
        self.final_state: SegmentStart | None = None                 # the state after the last event
        self._segment_ends: deque[float] = deque(maxlen=_MAX_EVENTS)      # ends of segments
        self.occurred_events: list[OccurredEvent] = []
        self._disabled_until: dict[str, float] = {}      # time until which events that recur too soon are disabled
        self._driven_into_stop = False      # whether an impact at a limit drives a body into the stop of the last event
        self._zero_values: dict[int, float] = {}                   # values of expressions at events, before their actions
        self._cached_state: tuple[InitialValueProblem, float, bytes, bytes] | None = None
        self._cached_motions: dict[int, ExpressionMotion] = {}     # of expressions at the cached state
        self._tolerances = 0.0, 0.0                            # rtol and atol of a method whose errors can hide short flights

    @property
    def warnings(self) -> WarningLog:
        """Warnings about events and their impacts."""
        return self.problems.warnings

    @property
    def ledger(self) -> EventLedger:
        """Times of the events."""
        return self.problems.ledger

    def run(self, times: np.ndarray, options: Options, progress: Callable[[float], None], rows: RunRecorder) -> Statistics:
        """Run all segments and events, pass the segments to `rows`, and fill `occurred_events`. Return the statistics."""
        self._duration = float(times[-1])
        options = event_options(options, bool(self.state_events or self._hard_stops.stops or self.frictions))
        self._tolerances = (options.rtol, options.atol) if options.method in MULTISTEP else (0.0, 0.0)
        self._n_recorded_events = 0
        start = self._with_friction(self._first_state())
        while not self._is_finished(start):
            segment = self._integrate_until(self._next_time(start), start, times, options, progress, rows)
            start = self._with_friction(self._apply_due_events(self._handle_events(segment, start.t)))
        if len(self.occurred_events) > self._n_recorded_events or not self.visited_states:
            self._run_segment(replace(start, triggered=()), np.array([start.t]), options, rows)   # after the last event
        self.final_state = start
        if missed := self._missed_events():
            self.problems.warnings.add("event-never-happened", f"events that never happened: {', '.join(missed)}")
        return self.total_statistics

    @property
    def estimate(self) -> Estimate | None:
        """The estimates of the observer, or None."""
        observer = self.controller.observer if isinstance(self.controller, SampledController) else None
        return None if observer is None else observer.estimate

    @property
    def _slack(self) -> float:
        """Difference [s] below which times are the same."""
        return SAME_TIME * self._duration

    def _first_state(self) -> SegmentStart:
        """Return the state after the events at the start of the run, or at the start of the segment in which it is resumed."""
        problem, start = self.problems.current, self._segment_start
        self._known_events = _timed_events(self.scenario.events, self._duration)
        if start is not None:
            self._pop_due_events(start.t)
            return start
        start = replace(self._apply_limits(SegmentStart(0.0, problem.q, problem.v), begins_run=True), supplied_energy=0.0)
        self._known_events = [*((0.0, event) for event in self._impacts_at_start(start)), *self._known_events]
        return self._apply_due_events(start)

    def _is_finished(self, start: SegmentStart) -> bool:
        return self.actions.stopped or start.t >= self._duration - self._slack

    def _next_time(self, start: SegmentStart) -> float:
        """Return the end of the next segment: a known event, the end of the debounce of an event, or the end of the run."""
        end = self._known_events[0][0] if self._known_events else self._duration
        end = min([end, *(t for t in self._disabled_until.values() if t > start.t + self._slack)])
        return end if end < self._duration - self._slack else self._duration

    def _integrate_until(self, end: float, start: SegmentStart, times: np.ndarray, options: Options,
                         progress: Callable[[float], None], rows: RunRecorder) -> Segment:
        """Return the segment from `start` to the time `end`, or to the first event before."""
        inside = times[(times > start.t + self._slack) & (times < end - self._slack)]
        outputs = np.concatenate([[] if self._omits_first_row else [start.t], inside, [end]])
        self._n_recorded_events = len(self.occurred_events)
        segment = self._run_segment(start, outputs, options, rows, lambda fraction: progress(fraction * end / self._duration))
        self.total_statistics = self.total_statistics.plus(
            self._renumber_singular_row(self.problems.current.model, segment.statistics))
        return segment

    def _handle_events(self, segment: Segment, start_time: float) -> SegmentStart:
        """Return the state after the events that have ended a segment, and after known events at the same time."""
        problem, end = self.problems.current, segment.end
        start = self._add_reached_events(end, end.t - start_time)
        self._check_progress(start.t)
        count = len(self.occurred_events)
        has_triggered = bool(start.triggered)
        if has_triggered:
            start = self._apply_limits(self._take_friction_events(start))
            due = self._pop_due_events(start.t)
            start = self._apply_events(start, [*due, *(self.state_events[k] for k in start.triggered)])
            same = (self.problems.current is problem and not self.frictions and np.array_equal(start.q, end.q)
                    and np.array_equal(start.v, end.v))
            start = start if same else replace(start, switch_signs=None)
        continues = has_triggered or start.t in self._disabled_until.values()
        self._omits_first_row = continues and len(self.occurred_events) == count
        return start

    def _check_progress(self, t: float) -> None:
        """Raise ComputationError if too many segments have ended within a short time before t."""
        ends = self._segment_ends
        ends.append(t)
        if len(ends) == _MAX_EVENTS and t - ends[0] <= _MAX_EVENTS_SPAN * self._duration:
            last_event = self.occurred_events[-1].name if self.occurred_events else "?"
            raise ComputationError(f"events repeat indefinitely at t = {t:.9g} s, the last one is {last_event} "
                                   "(give it a debounce, or an action after which the motion continues)")

    def _apply_due_events(self, start: SegmentStart) -> SegmentStart:
        """Return the state after the events whose known times are reached."""
        due, count, has_begun = self._pop_due_events(start.t), len(self.occurred_events), bool(self.visited_states)
        if not due:
            return start
        self._end_friction(start)
        start = self._apply_events(start, due)
        self._omits_first_row = (has_begun and (self._omits_first_row or not start.triggered)
                                 and len(self.occurred_events) == count)
        return start if has_begun else replace(start, supplied_energy=0.0)       # the motion begins after them

    def _pop_due_events(self, t: float) -> list[Event]:
        """Remove the events whose known times are reached at t, and return them."""
        due = [event for _, event in takewhile(lambda timed: timed[0] <= t + self._slack, self._known_events)]
        self._known_events = self._known_events[len(due):]
        return due

    def _missed_events(self) -> list[str]:
        """Return the events with `when` that could have occurred but did not, in a complete run whose phases were entered.

        An event that stops the run may be a guard. It is included only if no event occurred.
        """
        if self.actions.stopped:
            return []
        visited_phases, happened = {hybrid_state.phase for hybrid_state in self.visited_states}, self.ledger.times_by_name()
        return [event.name for event in self.state_events if event.name not in happened
                and (not event.phases or visited_phases.intersection(event.phases))
                and not (happened and any(isinstance(action, EndRun) for action in event.actions))]

    def _run_segment(self, start: SegmentStart, times: np.ndarray, options: Options, rows: RunRecorder,
                     progress: Callable[[float], None] = lambda fraction: None) -> Segment:
        problem, self._segment_start = self.problems.current, start
        self._take_sample(problem, start)
        start = self._with_signs(start)
        if start.t > 0.0 and (reason := undetermined_law(problem, start.t, start.q)) is not None:
            raise early_end_error(f"{reason[0]} from t = {start.t:.6g} s: {reason[1]}; use {reason[2]}", False, start.t)
        rows.open_segment(problem)
        segment = solve_segment(self._enabled_events(problem, start), start, times, options, progress, self.controller, rows)
        rows.close_segment(segment.record)
        self.visited_states.append(self.problems.hybrid_state)
        return segment

    def _take_sample(self, problem: InitialValueProblem, start: SegmentStart) -> None:
        """Take a sample if one is due, so that the signs of expressions and the segment use its torque."""
        if self.controller is not None:
            y = state_vector(problem, start.v, supplied_energy=start.supplied_energy)
            self.controller.update(problem, start.t, start.q, y)

    def _with_signs(self, start: SegmentStart) -> SegmentStart:
        """Return `start` with the sign of each event's expression from now on, see `zero_crossings.signs_after_event`."""
        count = len(self.state_events)
        if not count:
            return replace(start, signs=None, armed=None, bounds=None)
        before = EventSigns(np.full(count, np.nan), np.ones(count, dtype=bool), np.zeros(count))
        if start.signs is not None and start.armed is not None:
            bounds = np.array([self._overshoot(e, start) for e in range(count)])
            before = EventSigns(start.signs[:count], start.armed[:count], bounds)
        happened, jumped = (np.isin(np.arange(count), events) for events in (start.triggered, start.jump_events))
        value, rate, curvature, rounding, contacts = self._expression_motions(start, before.bound, happened, jumped)
        with np.errstate(invalid="ignore"):                    # times since events that have not occurred are infinite
            triggered = happened & (np.abs(value - [self._zero_values.get(e, np.inf) for e in range(count)]) <= rounding)
        after, leaves = signs_after_event(before, value, rate, curvature, rounding, triggered, start.signs is None)
        at_rest = -np.where(self._has_impact, crossing_direction(before.sign, self._directions), before.sign)
        unknown = np.isnan(rate) | (np.isnan(curvature) & ~self._has_impact)             # the integrator determines the sign
        signs = np.where(leaves & (after.sign == 0.0), at_rest, after.sign)
        signs = np.where(leaves & unknown, STAYS_AT_ZERO * np.where(happened, -before.sign, np.nan), signs)
        if start.switch_signs is not None:                     # a projection has returned it to the former side
            signs = np.where(jumped & (np.abs(value) > after.bound), -before.sign, signs)
        # a contact has begun or ended
        signs = np.where(contacts, np.where(happened, -before.sign, before.sign), signs)
        armed, bounds = np.where(contacts, ~happened, after.armed), np.where(contacts, rounding, after.bound)
        return replace(start, signs=signs, armed=armed, bounds=bounds)

    def _expression_motions(self, start: SegmentStart, bounds: Array, happened: Mask, jumped: Mask
                            ) -> tuple[Array, Array, Array, Array, Mask]:
        """Return value, rate, curvature and rounding of each event's expression, and which events detect contacts instead.

        Rate and curvature are NaN where the value is beyond its bound.
        """
        problem, count = self.problems.current, len(self.state_events)
        value, rounding, (rate, curvature) = np.zeros(count), np.zeros(count), np.full((2, count), np.nan)
        signals, factor = problem.schedule.watch[:count], START_FACTOR if start.signs is None else 1.0
        for e, k in enumerate(signals):
            if k < 0:
                positions = link_poses(problem.model.spanning_tree(), start.q)[..., :3, 3]
                rounding[e] = rounding_bound(np.abs(positions).max(initial=1.0))
                continue
            # evaluate after the jump
            state = replace(start, t=float(np.nextafter(start.t, np.inf))) if jumped[e] else start
            motion = self._signal_motion(int(k), state, derivatives=False)
            value[e], rounding[e] = motion.value, motion.bound
            if happened[e] or abs(motion.value) <= factor * max(motion.bound, bounds[e]):
                motion = self._signal_motion(int(k), state)
                rate[e], curvature[e] = motion.rate, motion.curvature
        return value, rate, curvature, rounding, np.asarray(signals) < 0

    def _overshoot(self, e: int, start: SegmentStart) -> float:
        """Return how far beyond zero event e was found if its expression has not exceeded its rounding since then, otherwise 0.

        At a discontinuity that ended at zero, it is the rounding of the expression there, where its terms may be as small.
        """
        if start.bounds is None or start.armed is None or (start.armed[e] and e not in start.jump_events):
            return 0.0
        return float(start.bounds[e])

    def _add_reached_events(self, start: SegmentStart, elapsed: float) -> SegmentStart:
        """Return `start` with the other events whose expressions are also zero where the segment ends.

        Their signs or times differ by rounding only, or their last step ended just before.

        elapsed   time since the start of the segment [s]
        """
        signs, armed = start.signs, start.armed
        if signs is None or armed is None or not self.state_events:
            return start
        reached, jumped, self._zero_values = set(start.triggered), set(start.jump_events), {}
        for e, k in enumerate(self.problems.current.schedule.watch[:len(self.state_events)]):
            if k < 0:
                continue
            motion = self._signal_motion(int(k), start, derivatives=False)
            expected = is_expected(signs[e], self.problems.current.directions[e])
            bound = max(motion.bound, self._overshoot(e, start))
            if e not in reached and expected and armed[e] and motion.value * signs[e] < -bound:        # a signal jumps here
                reached.add(e)
                jumped.add(e)
            elif e not in reached and expected and abs(motion.value) <= bound:
                arrival = self._signal_motion(int(k), start)
                if is_arriving(EventSigns(signs[e], armed[e], arrival.bound), arrival.rate, arrival.curvature, elapsed):
                    reached.add(e)
            if e in reached and (e not in jumped or abs(motion.value) <= bound):
                self._zero_values[e] = motion.value
        return replace(start, triggered=tuple(sorted(reached)))

    def _impacts_at_start(self, start: SegmentStart) -> list[Event]:
        """Return the events with impacts whose expressions are zero at the start and move in the direction of the event."""
        signed, impacts = self._with_signs(replace(start, signs=None)), []
        if signed.signs is None or signed.armed is None:
            return []
        for e, (event, k) in enumerate(zip(self.state_events, self.problems.current.schedule.watch, strict=False)):
            if k < 0 or signed.armed[e] or not event.has_impact:
                continue
            if event.direction and event.direction == signed.signs[e]:
                impacts.append(event)
            elif not event.direction and self._is_at_rest(int(k), start):
                self.problems.warnings.add(
                    "event-without-side",
                    f"event {event.name}: the expression starts at its value at rest, and the event has no direction. Therefore "
                    "no impact acts on the coordinate (set direction to falling or rising)",
                    cause=f"{event.name} begins")
        return impacts

    def _is_at_rest(self, k: int, start: SegmentStart) -> bool:
        motion = self._signal_motion(k, start)
        return bool(motion.curvature and motion.is_at_rest)

    def _signal_motion(self, k: int, start: SegmentStart, derivatives: bool = True,
                       problem: InitialValueProblem | None = None) -> ExpressionMotion:
        problem = problem or self.problems.current
        if not derivatives and not reads_forces(problem, k):
            state = problem, start.t, start.q.tobytes(), start.v.tobytes()
            if state != self._cached_state:
                self._cached_state, self._cached_motions = state, {}
            if k not in self._cached_motions:
                self._cached_motions[k] = expression_motion(problem, k, start.t, start.q, start.v)
            motion = self._cached_motions[k]
        else:
            work = self._evaluate(problem, start)
            motion = expression_motion(problem, k, start.t, work.q, work.v, work.a, work.tau)
        rtol, atol = self._tolerances
        return motion._replace(bound=max(motion.bound, _ERROR_FACTOR * (atol + rtol * motion.size)))

    def _evaluate(self, problem: InitialValueProblem, start: SegmentStart) -> MotionWorkspace:
        """Return the workspace with accelerations and generalized forces at a state, also of the sampled controller."""
        rhs = RightHandSide(problem, problem.signals)
        if self.controller is not None:
            ZeroOrderHold(problem, self.controller, rhs).write_torques()
        return evaluate_state(problem, start.t, start.q, start.v, rhs, start.integral, start.estimate)

    def _enabled_events(self, problem: InitialValueProblem, start: SegmentStart) -> InitialValueProblem:
        """Return the problem without events that are over, belong to other phases or recur too soon.

        A locked joint may be at the threshold of an event within rounding, and a chattering force may jump over it.
        """
        over = [self._is_over(event) or start.t < self._disabled_until.get(event.name, -math.inf) for event in self.state_events]
        if not any(over):
            return problem
        directions = [NO_DIRECTION if ends else direction for ends, direction in zip(over, problem.directions, strict=False)]
        return problem.with_same_code(directions=(*directions, *problem.directions[len(over):]))

    def partial_statistics(self, partial: Statistics) -> Statistics:
        """Return the statistics of the run with those of an incomplete segment."""
        return self.total_statistics.plus(partial)

    def _renumber_singular_row(self, model: Model, statistics: Statistics) -> Statistics:
        """Return the statistics with the index of their singular row among the rows of all constraints."""
        loops = statistics.loops
        if loops is not None and loops.singular_row >= 0:
            row = self.model.constraint_equation_names.index(model.constraint_equation_names[loops.singular_row])
            statistics = replace(statistics, loops=replace(loops, singular_row=row))
        return statistics

    # checkpoints --------------------------------------------------------------------------------------------------------
    def state_dict(self) -> dict[str, Any]:
        """Return the state that determines the rest of the run, except the state of the segment."""
        events = {field.name: [getattr(event, field.name) for event in self.occurred_events] for field in fields(OccurredEvent)}
        jumps = {name: np.array(events[name]).reshape(-1, self.model.nv) for name in ("dv", "impulse")}
        return {"problems": self.problems.state_dict(), "hard_stops": self._hard_stops.state_dict(),
                "actions": self.actions.state_dict(),
                "controller": self.controller.state_dict() if isinstance(self.controller, SampledController) else None,
                "visited_states": [self.problems.state_to_list(hybrid_state) for hybrid_state in self.visited_states],
                "segment_start": self._segment_start and self._segment_start.state_dict(),
                "omits_first_row": self._omits_first_row, "segment_ends": list(self._segment_ends),
                "occurred_events": events | jumps, "total_statistics": self.total_statistics.state_dict(),
                "disabled_until": dict(self._disabled_until)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state of `state_dict`."""
        self.problems.load_state_dict(state["problems"])
        self._hard_stops.load_state_dict(state["hard_stops"])
        self.actions.load_state_dict(state["actions"])
        if isinstance(self.controller, SampledController):
            self.controller.load_state_dict(state["controller"])
        self.visited_states = [self.problems.state_from_list(values) for values in state["visited_states"]]
        self._segment_start = SegmentStart.from_state_dict(state["segment_start"])
        self._omits_first_row = state["omits_first_row"]
        self._segment_ends.extend(state["segment_ends"])
        columns = state["occurred_events"]
        self.occurred_events = [OccurredEvent(**dict(zip(columns, row, strict=True)))
                                for row in zip(*columns.values(), strict=True)]
        self.total_statistics = Statistics.from_state_dict(state["total_statistics"])
        self._disabled_until = dict(state["disabled_until"])

    def problems_of_segments(self) -> list[InitialValueProblem]:
        """Return the problems of the completed segments."""
        present, problems = self.problems.hybrid_state, []
        for hybrid_state in self.visited_states:
            self.problems.enter(hybrid_state)
            problems.append(self.problems.current)
        self.problems.enter(present)
        return problems

    # events -------------------------------------------------------------------------------------------------------------
    def _apply_events(self, start: SegmentStart, events: list[Event]) -> SegmentStart:
        """Return the start after these events in the order of the file, and those whose forces jump over their threshold."""
        waiting, first = deque(sorted(events, key=self.scenario.events.index)), len(self.occurred_events)
        while waiting and not self.actions.stopped:
            event = waiting.popleft()
            if event.when and self.ledger.is_too_soon(event, start.t):
                self._disabled_until[event.name] = float(self.ledger.last_time(event)) + event.debounce
            if not self.ledger.may_happen(event, start.t, phase=self.problems.hybrid_state.phase):
                continue
            before, pressed = self._force_signs(start), self._pending_impacts(start)
            self.actions.without_rebound = len(self.occurred_events) - first >= _MAX_EVENTS
            start = self._apply_event(start, event)
            driven = _driven_events(pressed, self._pending_impacts(start))
            caused = [self.state_events[k] for k in (*self._triggered_events(before, start), *driven)]
            following = [other for other in caused if other is not event] + ([event] if self._driven_into_stop else [])
            waiting.extend(other for other in following if other not in waiting)
            if len(self.occurred_events) - first > 2 * _MAX_EVENTS:
                raise ComputationError(f"events repeat indefinitely at t = {start.t:.9g} s, the last one is {event.name} "
                                       "(forces jump back and forth across its value)")
        self.actions.without_rebound = False
        return start

    def _pending_impacts(self, start: SegmentStart) -> dict[int, float]:
        """Return the speeds of the events with impacts whose expressions are zero and cross it, or are pressed there at rest.

        An impact elsewhere may drive a body into its stop again, and a body may be released where it lies.
        """
        speeds = {}
        for e, (event, k) in enumerate(zip(self.state_events, self.problems.current.schedule.watch, strict=False)):
            if k < 0 or self._is_over(event) or not event.has_impact:
                continue
            motion = self._signal_motion(int(k), start, derivatives=False)
            if abs(motion.value) > max(motion.bound, 2.0 * abs(self._zero_values.get(e, 0.0)), self._overshoot(e, start)):
                continue
            motion = self._signal_motion(int(k), start)
            direction = crossing_direction(0.0 if start.signs is None else start.signs[e], event.direction)
            if direction * (motion.curvature if motion.is_at_rest else motion.rate) > 0.0:
                speeds[e] = 0.0 if motion.is_at_rest else abs(motion.rate)
        return speeds

    def _force_signs(self, start: SegmentStart) -> Array:
        """Return the sign of expression minus threshold of each event that reads generalized forces."""
        if not self._force_events:
            return np.zeros(0)
        problem = self.problems.current
        work = self._evaluate(problem, start)
        signals = with_measured_values(problem.model, problem.signals, work.q, work.v)
        signals.measured[:problem.model.nv] = work.tau
        watched = problem.schedule.watch[self._force_events].tolist()
        return np.array([read_signal(signals, k, start.t, work.q, work.v)[0] for k in watched])

    def _triggered_events(self, before: Array, start: SegmentStart) -> list[int]:
        """Return the events whose signs have changed from `before` in the direction of the event, because forces have jumped.

        Forces jump where another event locks or frees joints. An event that is jumped over has occurred.
        """
        signs = zip(self._force_events, before, self._force_signs(start), strict=True)
        directions = self.problems.current.directions
        return [e for e, sign, new_sign in signs if new_sign and crossed(sign, new_sign, directions[e])]

    def _event_index(self, event: Event) -> int:
        """Return the index among the events with an expression; -1 for other events."""
        return next((e for e, state_event in enumerate(self.state_events) if state_event is event), -1)

    def _is_over(self, event: Event) -> bool:
        """Return whether the event cannot occur again in this phase or at all."""
        return bool(self.ledger.is_over(event, phase=self.problems.hybrid_state.phase))

    def _apply_event(self, start: SegmentStart, event: Event) -> SegmentStart:
        problems, before = self.problems, self._event_state(start)
        since, former_stops = start.t - float(self.ledger.last_time(event)), problems.hybrid_state.resting
        self.ledger.record(event, start.t)
        problems.change(resting=())
        state = self.actions.apply_actions(before, event, start.t, *self._expression_function(event, start), former_stops)
        if event.name in problems.current.clocks:
            phase = problems.phase_of(problems.hybrid_state)
            state = start_prescribed_motions(state, problems.current, start.t, phase is not None and phase.impulsive,
                                             f"event {event.name}", event.place)
        closed_stops = self.actions.pop_closed_stops()
        e = self._event_index(event)
        turned = self._hard_stops.stops and e not in self._pending_impacts(replace(start, q=state.q, v=state.v))
        aimed = self._coordinates_set_into_stops(event, start, state)
        staying = (stop for stop in former_stops if state.q[stop.q] == before.q[stop.q] and (
            stop in self._hard_stops.stops or stop.name not in aimed))
        outcome = state                                          # impulses of the event; those at limits are summed separately
        try:
            state = self._after_limit_impacts(replace(outcome, impulse=np.zeros(len(start.v)), work=0.0, lost=0.0), start.t,
                                              (*staying, *closed_stops), speed=np.abs(before.v).max(initial=0.0))
        except ScenarioError as problem:                       # the event has set a coordinate beyond its hard stop
            raise ScenarioError(f"event {event.name}: {problem.message}", place=event.place,
                                expected=problem.expected) from None
        struck = [stop for stop in self._pushed_stops(state) if stop not in former_stops]
        self._driven_into_stop = bool(turned and e in self._pending_impacts(replace(start, q=state.q, v=state.v)))
        self.actions.count_short_flights(event, since, before)
        if self._starts_at_rest(event, before, state):
            return replace(start, q=state.q, v=state.v)
        self.actions.warn_impacts_ended([stop for stop in closed_stops if stop in problems.hybrid_state.resting], event, start.t)
        if struck:                                             # impacts at limits that the event causes or that coincide with it
            return self._record_event(impact_name(struck), self._record_event(event.name, start, before, outcome), outcome, state)
        return self._record_event(event.name, start, before, replace(
            state, impulse=outcome.impulse + state.impulse, work=outcome.work + state.work, lost=outcome.lost + state.lost))

    def _coordinates_set_into_stops(self, event: Event, start: SegmentStart, state: EventState) -> set[str]:
        """Return the coordinates that this event has set into the stop of another event, which then has an impact."""
        if not any(isinstance(action, Set) for action in event.actions):
            return set()
        pressed = self._pending_impacts(replace(start, q=state.q, v=state.v))
        return {action.coordinate for e, speed in pressed.items() if speed and self.state_events[e] is not event
                for action in self.state_events[e].actions if isinstance(action, Impact) and action.coordinate}

    def _with_triggered(self, start: SegmentStart, events: Iterable[int]) -> SegmentStart:
        return replace(start, triggered=tuple(sorted({*start.triggered, *events})))

    def _pushed_stops(self, state: EventState) -> list[JointStop]:
        """Return the hard stops against which the impulses of the state push. Impulses of constraints act elsewhere, too."""
        return [stop for stop in self._hard_stops.stops if stop.side * state.impulse[stop.coordinate] < 0.0
                and self._hard_stops.is_at(stop, state.q)]

    def _starts_at_rest(self, event: Event, before: EventState, after: EventState) -> bool:
        """Return whether a run starts at rest at the stop of an impact, so that the event has no effect, as at hard stops."""
        impacts = event.when and all(isinstance(action, Impact) for action in event.actions)
        return bool(impacts and not self.visited_states and np.abs(after.v - before.v).max() <= SPEED_TOLERANCE *
                    np.abs(before.v).max())

    def _expression_function(self, event: Event, start: SegmentStart) -> tuple[Any, float, bool]:
        """Return the motion of the event's expression as a function, the side from which it came, and whether it has left zero.

        The function takes a state and a problem; it is None for an event without expression. A side of 0 is unknown. The last
        value is whether the expression has exceeded its rounding since the event occurred last.
        """
        e = self._event_index(event)
        if e < 0 or self.problems.current.schedule.watch[e] < 0:
            return None, 0.0, True
        return (lambda state, problem: self._signal_motion(int(problem.schedule.watch[e]), replace(start, q=state.q, v=state.v),
                                                           problem=problem),
                0.0 if start.signs is None else start.signs[e],
                start.armed is None or e not in start.triggered or bool(start.armed[e]))

    def _event_state(self, start: SegmentStart) -> EventState:
        problem = self.problems.current
        return EventState(problem.model, start.q.copy(), start.v.copy(), np.zeros(len(start.v)), passive=problem.passive,
                          evaluate=lambda other, q, v: self._evaluate(other, replace(start, q=q, v=v)).a)

    def _record_event(self, name: str, start: SegmentStart, before: EventState, after: EventState) -> SegmentStart:
        change, phase = sum(after.energies) - sum(before.energies), self.problems.hybrid_state.phase or ""
        self.occurred_events.append(OccurredEvent(start.t, name, phase, after.v - before.v, after.impulse, float(after.lost),
                                                  float(change)))
        return replace(start, q=after.q, v=after.v, supplied_energy=start.supplied_energy + float(after.work))

    # rigid friction -----------------------------------------------------------------------------------------------------
    def _take_friction_events(self, start: SegmentStart) -> SegmentStart:
        """Return `start` without the events of friction, which end the modes of friction. Other events keep their indices."""
        if not self.frictions:
            return start
        problem, count, friction = self.problems.current, len(self.state_events), self.problems.hybrid_state.friction
        hard = len(problem.schedule.watch) - count - sum(mode.moves for mode in friction)
        stops = problem.stops
        resting = 0 if stops is None else len(stops.resting) - 2 * len(stops.sticking)
        moving = [mode for mode in friction if mode.moves]
        remaining, arrived, released = [], set(), False
        for e in start.triggered:
            j = e - count - hard
            if j < 0:
                remaining.append(e)
            elif j < len(moving):
                arrived.add(moving[j].friction.coordinate)
            elif j < len(moving) + resting:
                remaining.append(e - len(moving))
            else:
                released = True
        self._end_friction(start, arrived, released)
        return replace(start, triggered=tuple(remaining))

    def _end_friction(self, start: SegmentStart, arrived: Iterable[int] = (), released: bool = False) -> None:
        """Enter the problem without rigid friction, in which events act."""
        if friction := self.problems.hybrid_state.friction:
            self._ended_friction = FrictionEvents(friction, frozenset(arrived), released, float(np.abs(start.v).max()))
            self.problems.change(friction=())

    def _with_friction(self, start: SegmentStart) -> SegmentStart:
        """Return the start of a segment in whose problem joints with rigid friction stick or slide."""
        problems, problem, ended = self.problems, self.problems.current, self._ended_friction
        self._ended_friction = FrictionEvents()
        acting = self._acting_frictions()
        if not acting or problems.hybrid_state.friction:
            return start
        state = self._event_state(start)
        speed = max(ended.speed, float(np.abs(start.v).max()))
        state, resting = stop_slow_coordinates(state, problem, acting, ended.arrived, speed)
        start = replace(start, q=state.q, v=state.v, switch_signs=None)
        self._take_sample(problem, start)
        modes = friction_modes(state, start.t, problem, self._evaluate(problem, start).a, acting, resting, ended.begun)
        problems.change(friction=modes)
        if at_level := [mode.friction.name for mode in modes if mode.at_rest]:
            problems.warnings.add("friction-not-unique",
                                  f"{list_names(at_level, 4)} and other joints hold each other at rest: the motion is unique, "
                                  "but not how much friction each of them contributes", cause="friction")
        for name in change_names(ended.modes, modes):
            start, self._omits_first_row = self._record_event(name, start, state, state), False
        return start

    def _acting_frictions(self) -> list[JointFriction]:
        """Return the rigid friction of the coordinates that are neither prescribed nor at rest at stops."""
        prescribed, stops = self.problems.current.prescribed, {stop.coordinate for stop in self.problems.hybrid_state.resting}
        return [friction for friction in self.frictions if not prescribed[friction.coordinate]
                and friction.coordinate not in stops]

    def problem_without_friction(self) -> InitialValueProblem:
        """Return the current problem without rigid friction, and enter it."""
        self.problems.change(friction=())
        return self.problems.current

    def problem_at_rest(self, t: float, q: Array) -> InitialValueProblem:
        """Return the current problem at an equilibrium q, in which joints with rigid friction stick, and enter it."""
        problem, acting = self.problem_without_friction(), self._acting_frictions()
        zero = np.zeros(problem.model.nv)
        state = self._event_state(SegmentStart(t, q, zero))
        self.problems.change(friction=friction_modes(state, t, problem, zero, acting, acting, {}))
        return self.problems.current

    # limits -------------------------------------------------------------------------------------------------------------
    def _apply_limits(self, start: SegmentStart, begins_run: bool = False) -> SegmentStart:
        """Return the start after impacts and releases at hard stops. At the start of a run, coordinates may begin at them."""
        if not self._hard_stops.stops and not self.problems.hybrid_state.resting:
            return start
        problems, before, forces = self.problems, self._event_state(start), self._force_signs(start)
        resting, count = problems.hybrid_state.resting, len(self.state_events)
        stops = stops_by_state(problems.present_stops(problems.hybrid_state), problems.current.schedule.level, resting)
        met = [(*stops[0], *stops[1])[k - count] for k in start.triggered if k >= count]
        begins_run |= bool(self._ended_friction.modes)               # friction does not hold a coordinate at its stop any longer
        start = replace(start, triggered=tuple(k for k in start.triggered if k < count))
        released = [stop for stop in met if stop in resting]
        hits, pressed = [stop for stop in met if stop not in resting], self._pending_impacts(start)
        if released:
            resting = tuple(stop for stop in resting if stop not in released)
            problems.change(resting=resting)
            start = self._record_event(release_name(released), start, before, before)
        if not hits and not begins_run:
            return self._with_triggered(start, self._triggered_events(forces, start))
        problems.change(resting=())
        after = self._after_limit_impacts(before, start.t, resting, hits)
        if hits or after.impulse.any():
            pushed = self._pushed_stops(after)
            moving = [stop for stop in pushed if stop not in hits and stop.side * before.v[stop.coordinate] > 0.0]
            pushed = [*hits, *moving] if hits else pushed      # also those that arrive simultaneously within rounding
            start = self._record_event(impact_name(pushed), start, before, after)
            driven = _driven_events(pressed, self._pending_impacts(start))
            return self._with_triggered(start, (*driven, *self._triggered_events(forces, start)))
        return replace(start, q=after.q, v=after.v)

    def _after_limit_impacts(self, state: EventState, t: float, former_stops: Sequence[JointStop],
                             hits: Sequence[JointStop] = (), speed: float | None = None) -> EventState:
        """Return the state after the impacts at limits, and change to the problem in which the coordinates rest.

        speed   the maximum speed before the event, if it has changed
        """
        if self._hard_stops.stops or former_stops:
            state, resting = self._hard_stops.resolve_impacts(state, t, self.problems.current, former_stops, hits, speed)
            self.problems.change(resting=resting)
        return state


def _driven_events(before: dict[int, float], after: dict[int, float]) -> list[int]:
    """Return the events that are now pressed, and were not before or with lower speed."""
    return [e for e, speed in after.items() if speed > before.get(e, -1.0) * (1.0 + SPEED_TOLERANCE)]


def _timed_events(events: Sequence[Event], duration: float) -> list[tuple[float, Event]]:
    """Return the known times of events, sorted; events at the same time are in the order of the file."""
    timed_events = [(t, event) for event in events for t in event.at if t <= duration]
    for event in events:
        if event.every:
            timed_events += [(k * event.every, event) for k in range(1, int(duration / event.every * (1 + 1e-12)) + 1)]
    return sorted(timed_events, key=lambda timed: timed[0])
