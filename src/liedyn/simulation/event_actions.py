"""Actions of events.

Each action is one function for single runs and for batches of runs (`event_action`). Impulses change velocities (`impacts`).
Actions that change the phase, locked joints or attached bodies replace the initial value problem (`segment_problems`).
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from liedyn.arrays import Array
from liedyn.codegen.rhs import signal_instructions
from liedyn.dynamics.constraints.constraints import constraint_jacobian, constraint_residual
from liedyn.dynamics.constraints.rank import clear_rounding, equation_weights
from liedyn.dynamics.dynamics import mass_matrix
from liedyn.dynamics.singular_joints import with_positive_inertia
from liedyn.errors import ComputationError, LiedynWarning, Place, ScenarioError, UsageError
from liedyn.integrators.problem import InitialValueProblem
from liedyn.integrators.zero_crossings import comes_to_rest, crossing_direction, is_below_rounding
from liedyn.io.scenarios.action_schema import Attach, Detach, EndRun, EnterPhase, Impact, Lock, RecordState, Set
from liedyn.io.scenarios.scenario import Action, Event, Phase, Rule
from liedyn.kernels.simulation.signals import POSITION, VELOCITY
from liedyn.model.model import Model
from liedyn.model.spatial import symmetric_matrix
from liedyn.model.warnings import is_not_semidefinite
from liedyn.simulation.expression_motion import ExpressionMotion
from liedyn.simulation.impacts import (
    IMPACTS_BEFORE_REST,
    RATE_TOLERANCE,
    EventState,
    HardStops,
    after_collision,
    after_impact,
    after_impulses,
    follows_at_once,
    inverse_mass_of_free_motions,
    is_turned_back,
    normal_velocity_rows,
    preserved_velocities,
    solve_linear,
    velocity_jump,
)
from liedyn.simulation.joint_stops import JointStop
from liedyn.simulation.name_binding import bind_joints, find_index, normalize_quaternions, v_to_q_indices, write_values
from liedyn.simulation.prescribed_poses import PrescribedPose, prescribed_motions, prescribed_state
from liedyn.simulation.segment_problems import RunSegment, SegmentProblems

# Prescribed motions that begin or jump during a run ---------------------------------------------------------------------

# relative difference (`PrescribedPose.mismatch`) of a joint from its prescribed motion where that begins: users round numbers
_MOTION_TOLERANCE = 1e-6


def start_prescribed_motions(state: EventState, problem: InitialValueProblem, t: float, impulsive: bool, description: str,
                             place: Place) -> EventState:
    """Return the state with the prescribed coordinates on their motion at time t.

    impulsive     whether the velocities may jump there
    description   the cause, for messages

    Raises ScenarioError where a coordinate is away from its motion.
    """
    present, motion = (state.q, state.v), prescribed_state(problem, t, state.q, state.v)
    targets: dict[int, float] = {}
    for prescribed in prescribed_motions(problem):
        displacement, jump = prescribed.mismatch(present, motion)
        if not displacement <= _MOTION_TOLERANCE:
            target, position = prescribed.format(motion[0][prescribed.q]), prescribed.format(present[0][prescribed.q])
            expected = "a motion that starts at the position of the joint"
            if prescribed.is_pose:
                raise ScenarioError(f"{description} prescribes the pose {target} of {prescribed.name} from t = {t:.9g} s on, "
                                    f"where it is {position}", place=place, expected=expected)
            raise ScenarioError(f"{description} prescribes {prescribed.name} at {target} from t = {t:.9g} s on, where it is at "
                                f"{position}", place=place, expected=f"{expected}, or prescribe velocity")
        if not (impulsive or jump <= _MOTION_TOLERANCE):
            quantity = "twist" if prescribed.is_pose else "velocity"
            target, velocity = prescribed.format(motion[1][prescribed.v]), prescribed.format(present[1][prescribed.v])
            raise ScenarioError(f"{description} prescribes the {quantity} {target} of {prescribed.name} from t = {t:.9g} s on, "
                                f"where it is {velocity}", place=place,
                                expected="a motion without a jump, or impulsive: true in the phase")
        targets |= {k: float(motion[1][k]) for k in range(prescribed.v.start, prescribed.v.stop)}
    if all(state.v[k] == x for k, x in targets.items()):
        return state
    rows, values = np.eye(len(state.v))[list(targets)], np.array(list(targets.values()))
    return after_impulses(state, problem, rows, values, set(targets))[0]


def jump_warnings(segments: Sequence[RunSegment]) -> list[LiedynWarning]:
    """Return a warning for each prescribed motion about its first jump within a segment. Only expressions can jump."""
    warnings: dict[str, LiedynWarning] = {}
    for segment in segments:
        problem, times = segment.problem, segment.record.t
        moving = [motion for motion in prescribed_motions(problem)
                  if motion.name not in warnings and _is_expression(problem, motion)]
        breaks, before = problem.schedule.breaks, problem.schedule.before
        within = (breaks > times[0]) & (breaks <= times[-1]) if moving and len(times) else np.zeros(len(breaks), dtype=bool)
        q, v = problem.q, problem.v
        for t, earlier in zip(breaks[within], before[within], strict=True):
            before_jump, after = prescribed_state(problem, earlier, q, v), prescribed_state(problem, t, q, v)
            for motion in moving:
                if motion.name not in warnings and max(motion.mismatch(before_jump, after)) > _MOTION_TOLERANCE:
                    warnings[motion.name] = _jump_warning(problem, motion, t, before_jump, after)
    return list(warnings.values())


def _is_expression(problem: InitialValueProblem, motion: PrescribedPose) -> bool:
    poses = problem.schedule.poses
    used = poses.signal[poses.signal >= 0] if motion.is_pose else problem.schedule.signal[motion.v]
    return any(len(signal_instructions(problem.signals, int(k))) for k in used)


def _jump_warning(problem: InitialValueProblem, motion: PrescribedPose, t: float, before: tuple[Array, Array],
                  after: tuple[Array, Array]) -> LiedynWarning:
    unit = problem.model.v_units[motion.v.start]
    is_displaced = motion.mismatch(before, after)[0] > _MOTION_TOLERANCE
    if motion.is_pose:
        quantity, size = "pose" if is_displaced else "twist", ""
    elif is_displaced:
        quantity, size = "position", f" by {(after[0][motion.q] - before[0][motion.q])[0]:.6g} {unit}"
    else:
        quantity, size = "velocity", f" by {(after[1][motion.v] - before[1][motion.v])[0]:.6g} {unit}/s"
    return LiedynWarning("motion-jumps",
                         f"the prescribed {quantity} of {motion.name} jumps{size} at t = {t:.6g} s, where no impulse acts: "
                         "motion, forces and energies are not reliable from there on (use waypoints or a smooth expression)")


# actions ----------------------------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class ActionFunction:
    """The implementation of an action, for states of one run or of many.

    apply         (run, states, action) -> the states after it; run is an `EventContext`, of single runs `Actions`
    in_rollouts   whether the action only changes the state, so that rollouts support it
    check         (action, model, events of the run): raises an error before the run
    """

    apply: Callable[[Any, EventState, Any], EventState]
    in_rollouts: bool
    check: Callable[[Any, Model, tuple[Event, ...]], None]


ApplyFunction = TypeVar("ApplyFunction", bound=Callable[[Any, EventState, Any], EventState])
_FUNCTIONS: dict[type[Action], ActionFunction] = {}


def event_action(kind: type[Action], *, in_rollouts: bool = False,
                 check: Callable[[Any, Model, tuple[Event, ...]], None] = lambda action, model, events: None,
                 ) -> Callable[[ApplyFunction], ApplyFunction]:
    """Return a decorator that registers a function as the implementation of this kind of action (`ActionFunction`)."""
    def declare(apply: ApplyFunction) -> ApplyFunction:
        _FUNCTIONS[kind] = ActionFunction(apply, in_rollouts, check)
        return apply
    return declare


def action_function(action: Action) -> ActionFunction:
    """Return the implementation of an action. Raises UsageError for a declared kind of action that has none."""
    kind = type(action)
    if kind not in _FUNCTIONS:
        raise UsageError(f"the action {kind.__name__} has no function that executes it; "
                         f"expected one with the decorator @event_action({kind.__name__}) in an imported module")
    return _FUNCTIONS[kind]


class EventContext(Protocol):
    """One run, or many, at the time of an event.

    event           the event
    t               its time, of each run if there are many [s]
    problem         the problem in which no coordinate rests at a stop
    resting_stops   stops at which coordinates of one run rest
    """

    event: Event
    t: float | Array
    problem: InitialValueProblem
    resting_stops: Sequence[JointStop]

    def complete_action(self, before: EventState, after: EventState, place: Place) -> EventState:
        """Return the states after an action that has set coordinates."""

    def complete_impact(self, before: EventState, after: EventState, action: Impact, row: Array,
                      coordinates: Collection[int]) -> EventState:
        """Return the states after an impact along a row of the velocity, in which coordinates may come to rest.

        row           the velocity of the impact as a row that multiplies v
        coordinates   the coordinate of the impact, empty for an impact of a link
        """


# actions of single runs and rollouts ------------------------------------------------------------------------------------

def _check_set(action: Set, model: Model, _events: tuple[Event, ...]) -> None:
    if model.nc:
        raise ScenarioError("set is not supported for robots with loops or couplings", place=action.place)
    _values_to_set(action, model)


@event_action(Set, in_rollouts=True, check=_check_set)
def _set_state(run: EventContext, state: EventState, action: Set) -> EventState:
    q, v = _values_to_set(action, state.model)
    after = replace(state, q=np.where(np.isnan(q), state.q, q), v=np.where(np.isnan(v), state.v, v))
    return run.complete_action(state, after, action.place)


def _values_to_set(action: Set, model: Model) -> tuple[Array, Array]:
    """Return the positions and velocities to set, NaN where none is given."""
    q, v = np.full(model.nq, np.nan), np.full(model.nv, np.nan)
    normalize_quaternions(q, write_values(q, action.q, model, model.q_index), model)
    write_values(v, action.v, model, model.v_index)
    return q, v


def _check_impact(action: Impact, model: Model, _events: tuple[Event, ...]) -> None:
    if action.coordinate is not None:
        find_index(action.coordinate, model.v_names, "coordinate", action.place.at("joint"))
    elif action.link is not None:
        find_index(action.link, model.link_names, "link", action.place.at("link"))


@event_action(Impact, in_rollouts=True, check=_check_impact)
def _impact(run: EventContext, state: EventState, action: Impact) -> EventState:
    row, coordinates = _impact_row(state, action)
    if any(run.problem.schedule.level[k] in (VELOCITY, POSITION) for k in coordinates):
        raise ScenarioError(f"event {run.event.name} at t = {run.t:.9g} s: the motion of {action.coordinate} is prescribed, so "
                            "that an impact cannot change it", place=action.place.at("joint"),
                            expected="a phase in which it is free")
    after = after_impact(state, run.problem, row, action.restitution, coordinates, run.resting_stops)
    return run.complete_impact(state, after, action, row, coordinates)


def _impact_row(state: EventState, action: Impact) -> tuple[Array, tuple[int, ...]]:
    """Return the (…, nv) row of the velocity away from the obstacle, and the coordinate of the impact, empty for a link."""
    if action.coordinate is None:
        assert action.link is not None                         # an impact has either of them
        tree = state.model.spanning_tree()
        return normal_velocity_rows(tree, state.q, action.link, action.point, action.normal), ()
    k = state.model.v_names.index(action.coordinate)
    return -np.sign(state.v[..., k, None]) * np.eye(state.v.shape[-1])[k], (k,)


@event_action(RecordState, in_rollouts=True)
def _record_state(_run: EventContext, state: EventState, _action: RecordState) -> EventState:
    return state


@event_action(EndRun, in_rollouts=True)
def _end_run(_run: EventContext, state: EventState, _action: EndRun) -> EventState:
    return replace(state, stopped=np.ones(state.q.shape[:-1], dtype=bool))


# actions of single runs, which change the problem -----------------------------------------------------------------------

@event_action(EnterPhase)
def _enter_phase(run: Actions, state: EventState, action: EnterPhase) -> EventState:
    problems, name = run.problems, run.problems.hybrid_state.phase
    assert name is not None                                    # a run with phases is always in one of them
    phase, former_phase = problems.phases[action.phase], problems.phases[name]
    problems.phase_began = run.t
    problems.change(phase=action.phase)
    if set(former_phase.open) != set(phase.open):
        state = _close_loops(run, replace(state, model=run.problem.model), former_phase.open, phase)
    return start_prescribed_motions(state, run.problem, run.t, phase.impulsive, f"phase {phase.name}", phase.place)


def _close_loops(run: Actions, state: EventState, formerly_open: Collection[str], phase: Phase) -> EventState:
    """Return the state after loops have become active: they must be closed, and an impulse cancels their velocities."""
    closing = [constraint.rows for constraint in state.model.constraints if constraint.name in formerly_open]
    if not closing:
        return state
    rows = np.concatenate([np.arange(part.start, part.stop) for part in closing])
    errors = np.abs(constraint_residual(state.model, state.q))
    scaled = (equation_weights(state.model) * errors)[rows]
    if scaled.max(initial=0.0) > _CLOSURE_TOLERANCE:
        row = rows[int(np.argmax(scaled))]
        name = state.model.constraint_equation_names[row]
        raise ScenarioError(f"phase {phase.name} closes a loop that is open by {errors[row]:.3g} (rad or m) in {name}",
                            place=phase.place, expected=f"at most {_CLOSURE_TOLERANCE:g}, at an event where it closes")
    A = clear_rounding(state.model, constraint_jacobian(state.model, state.q))[rows]
    return after_collision(state, run.problem, A, np.zeros(len(rows)), closing=rows)


def _check_lock(action: Lock, model: Model, _events: tuple[Event, ...]) -> None:
    _joint_names(action, model)


def _joint_names(action: Lock, model: Model) -> tuple[str, ...]:
    names = (name for pattern in action.joints for name in bind_joints((Rule(pattern, "", place=action.place),), model))
    return tuple(dict.fromkeys(names))


@event_action(Lock, check=_check_lock)
def _lock(run: Actions, state: EventState, action: Lock) -> EventState:
    problems, model, names = run.problems, run.model, _joint_names(action, run.model)
    if action.hold:
        locked = np.concatenate([np.arange(model.nv)[model.v_index(name)] for name in names])
        state = after_collision(state, run.problem, np.eye(model.nv)[locked], np.zeros(len(locked)), set(locked))
        v = state.v.copy()
        v[locked] = 0.0                                          # removes rounding
        state = replace(state, v=v)
        problems.change(locked=tuple(sorted({*problems.hybrid_state.locked, *names})))
        return state
    problems.change(locked=tuple(name for name in problems.hybrid_state.locked if name not in names))
    return start_prescribed_motions(state, run.problem, run.t, False, f"event {run.event.name}", action.place)


def _check_attach(action: Attach, model: Model, _events: tuple[Event, ...]) -> None:
    find_index(action.link, model.link_names, "link", action.place.at("link"))
    if is_not_semidefinite(symmetric_matrix(action.inertia), action.mass):
        raise ScenarioError("the inertia of the body is not positive semidefinite", place=action.place.at("inertia"),
                            found=list(action.inertia), expected="principal inertias >= 0")


@event_action(Attach, check=_check_attach)
def _attach(run: Actions, state: EventState, action: Attach) -> EventState:
    problems = run.problems
    if any(body.link == action.link for body in problems.hybrid_state.attached):
        raise ScenarioError(f"event {run.event.name} at t = {run.t:.9g} s: a body is attached to link {action.link} already",
                            place=action.place.at("link"))
    inertia = mass_matrix(state.model.spanning_tree(), state.q)
    momentum = inertia @ state.v
    problems.change(attached=(*problems.hybrid_state.attached, action))
    model = run.problem.model
    gained = mass_matrix(model.spanning_tree(), state.q) - inertia
    metric = mass_matrix(with_positive_inertia(state.model).spanning_tree(), state.q)      # M, but for joints without inertia
    free = solve_linear(metric + gained, metric @ state.v)
    jump = velocity_jump(model, state.q, free, *preserved_velocities(state, run.problem))
    after = replace(state, model=model, v=jump.v, impulse=state.impulse + jump.impulse)
    driven = float(jump.impulse @ jump.v)                    # work of the drives of prescribed joints
    lost = momentum @ state.v / 2 - after.energies[0] + driven
    return replace(after.with_work_since(state), lost=state.lost + lost)


def _check_detach(action: Detach, model: Model, events: tuple[Event, ...]) -> None:
    find_index(action.link, model.link_names, "link", action.place.at("link"))
    actions = (other for event in events for other in event.actions)
    if action.link not in {other.link for other in actions if isinstance(other, Attach)}:
        raise ScenarioError(f"no event attaches a body to link {action.link}", place=action.place)


@event_action(Detach, check=_check_detach)
def _detach(run: Actions, state: EventState, action: Detach) -> EventState:
    problems = run.problems
    if all(body.link != action.link for body in problems.hybrid_state.attached):
        raise ScenarioError(f"event {run.event.name} at t = {run.t:.9g} s: nothing is attached to link {action.link}",
                            place=action.place)
    problems.change(attached=tuple(body for body in problems.hybrid_state.attached if body.link != action.link))
    return replace(state, model=run.problem.model).with_work_since(state)


# a single run -----------------------------------------------------------------------------------------------------------

_CLOSURE_TOLERANCE = 1e-6     # rad | lengths of the loop: maximum residual where a loop closes


# the motion of the expression of an event at a state, with the problem that holds there
ExpressionOfState: TypeAlias = Callable[[EventState, InitialValueProblem], ExpressionMotion]


class Actions:
    """The `EventContext` of a single run.

    closed_stops      stops at which coordinates rest from now on, because their impacts have accumulated
    stopped           whether an action has ended the run
    without_rebound   whether impacts do not rebound, because too many have occurred at this time
    """

    def __init__(self, problems: SegmentProblems, hard: HardStops, events: tuple[Event, ...]):
        self.problems, self.model, self._hard_stops = problems, problems.model, hard
        self.closed_stops: list[JointStop] = []
        self.stopped = self.without_rebound = False
        for event in events:
            for action in event.actions:
                action_function(action).check(action, self.model, events)

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint within a segment; everything else only exists while actions are applied."""
        return {"stopped": self.stopped}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state that `state_dict` returned."""
        self.stopped = state["stopped"]

    @property
    def problem(self) -> InitialValueProblem:
        """The problem of the present hybrid state."""
        return self.problems.current

    @property
    def resting_stops(self) -> list[JointStop]:
        """Stops at which coordinates rested until now, and that are not prescribed."""
        return [stop for stop in self.former_stops if not self.problem.prescribed[stop.coordinate]]

    def apply_actions(self, state: EventState, event: Event, t: float, expression: ExpressionOfState | None, sign: float,
                      left_zero: bool, former_stops: Sequence[JointStop]) -> EventState:
        """Return the state after the actions of an event.

        expression     (state, problem) -> the motion of the event's expression; None if the event has none
        sign           the side from which the expression came
        left_zero      whether the expression has exceeded its rounding since the event occurred last
        former_stops   stops at which coordinates rested until now
        """
        struck = {action.coordinate for action in event.actions if isinstance(action, Impact)}
        self.event, self.t, self.initial, self.left_zero, self.former_stops = event, t, state, left_zero, former_stops
        self._other_stops = [stop for stop in former_stops if stop.name not in struck]
        self.direction = crossing_direction(sign, event.direction)
        self.expression: Callable[[EventState], ExpressionMotion] | None = None
        if expression is not None:
            self.expression = lambda other: expression(other, self._problem_with_supports(other))
        for action in event.actions:
            try:
                state = action_function(action).apply(self, state, action)
            except ComputationError as problem_found:
                raise ComputationError(f"event {event.name} at t = {t:.9g} s: {problem_found}") from None
        self.stopped |= bool(state.stopped)
        return state

    def complete_action(self, before: EventState, after: EventState, place: Place) -> EventState:
        """Return the state after an action, with the work that changed the energy.

        Raises ScenarioError where a locked joint would move or a prescribed one would leave its motion.
        """
        moving = [name for name in self.problems.hybrid_state.locked if after.v[self.model.v_index(name)].any()]
        if moving:
            raise ScenarioError(f"event {self.event.name} at t = {self.t:.9g} s: joint {moving[0]} is locked, its velocity "
                                "cannot be set", place=place, expected="unlock before")
        after = after.with_work_since(before)
        return start_prescribed_motions(after, self.problem, self.t, False, f"event {self.event.name}", place)

    def complete_impact(self, before: EventState, after: EventState, action: Impact, row: Array,
                      coordinates: Collection[int]) -> EventState:
        """Return the state after an impact; a coordinate comes to rest if its impacts have accumulated or do not rebound."""
        if not coordinates:
            is_struck = bool(row @ before.v < 0.0)
            if self._accumulates(before, after, row) if is_struck else self._is_pressed(before):
                raise ComputationError(f"repeated impacts of link {action.link} come to rest, but a link cannot rest at a stop "
                                       "(stop the run, "
                                       "go to another phase, or use a restitution of a joint's coordinate)")
            return after
        k, = coordinates
        if self._is_returning(before, after):
            return before
        ends = self.without_rebound or self._accumulates(before, after, np.eye(self.model.nv)[k], {k})
        if action.restitution > 0.0 and not ends:
            self._warn_stop_passed(before, after)
            return after
        came = 0.0 if ends and self._arrives_at_rest(before) else float(np.sign(before.v[k]))
        return self._close_contact(after_impact(before, self.problem, row, 0.0, {k}, self.resting_stops), k, came)

    def _problem_with_supports(self, state: EventState) -> InitialValueProblem:
        """Return the problem in which coordinates rest at stops that support them, except the stops of the event."""
        return self.problems.problem_with_stops(self._hard_stops.supporting_stops(self._other_stops, state, self.problem))

    def count_short_flights(self, event: Event, since: float, before: EventState) -> None:
        """Update the number of consecutive impacts of the event that followed at once, the last one after `since` seconds."""
        names = [action.coordinate for action in event.actions if isinstance(action, Impact) and action.coordinate]
        q_of_v = v_to_q_indices(self.model)
        struck = [(k, q_of_v[k]) for k in map(self.model.v_names.index, names) if q_of_v[k] >= 0]
        duration = self.problems.scenario.duration
        soon = follows_at_once(since, np.inf, 0.0, duration) or any(
            follows_at_once(since, before.v[k], before.q[i], duration) for k, i in struck)
        self.problems.ledger.count_short_flight(event, soon)

    def pop_closed_stops(self) -> tuple[JointStop, ...]:
        """Return and clear `closed_stops`."""
        closed_stops, self.closed_stops = tuple(self.closed_stops), []
        return closed_stops

    def _is_returning(self, before: EventState, after: EventState) -> bool:
        """Return whether another impact has already turned back the event's expression, on which this impact acts."""
        if self.expression is None:
            return False
        motion = self.expression(before)
        if not self.direction * motion.rate < 0.0:
            return False
        rate_after = self.expression(after).rate
        return bool(is_turned_back(self.direction, motion.rate, motion.curvature, motion.bound, rate_after))

    def _arrives_at_rest(self, state: EventState) -> bool:
        """Return whether the rate of the event's expression is zero within rounding on arrival."""
        motion = self.expression and self.expression(state)
        return bool(motion and motion.is_at_rest)

    def _is_pressed(self, state: EventState) -> bool:
        """Return whether the event's expression rests at zero and accelerates beyond it."""
        motion = self.expression and self.expression(state)
        return bool(motion and self.event.direction * motion.curvature > 0.0 and motion.is_at_rest)

    def _affects_expression(self, state: EventState, row: Array, exempt: Collection[int]) -> bool:
        """Return whether an impact along a row of the velocity changes the rate of the event's expression."""
        assert self.expression is not None
        onward = inverse_mass_of_free_motions(state, self.problem, exempt) @ row
        speed = np.abs(state.v).max(initial=0.0) or 1.0
        struck = replace(state, v=state.v + speed * onward / (np.abs(onward).max() or 1.0))
        rate, rate_after = self.expression(state).rate, self.expression(struck).rate
        return bool(abs(rate_after - rate) > RATE_TOLERANCE * max(abs(rate), abs(rate_after)))

    def _accumulates(self, before: EventState, after: EventState, row: Array, exempt: Collection[int] = ()) -> bool:
        """Return whether the impact reverses the event's expression, and it returns sooner than can be resolved."""
        if self.expression is None:
            return False
        came, leaves = self.expression(before), self.expression(after)
        if np.isnan(leaves.curvature):
            return not self.left_zero or self.problems.ledger.n_short_flights(self.event) >= IMPACTS_BEFORE_REST
        if abs(came.rate - leaves.rate) <= RATE_TOLERANCE * max(abs(came.rate), abs(leaves.rate)) and (
                (after.v != before.v).any() or not self._affects_expression(before, row, exempt)):
            return False                                       # the impact does not act on the expression
        motion = came if before is self.initial else self.expression(self.initial)
        duration, bound = self.problems.scenario.duration, max(leaves.bound, 2.0 * abs(motion.value))
        if abs(leaves.value) > bound:
            return False                                       # another action has changed the expression
        turned = came.rate * leaves.rate <= 0.0 or is_below_rounding(came.rate, leaves.curvature, bound)
        return bool(comes_to_rest(turned, leaves.rate, leaves.curvature, bound, duration))

    def _warn_stop_passed(self, before: EventState, after: EventState) -> None:
        """Warn where an impact changes the rate of the expression but not its sign: a moving stop passes the joint."""
        if self.expression is None:
            return
        came, leaves = self.expression(before).rate, self.expression(after).rate
        if came * leaves > 0.0 and abs(came - leaves) > RATE_TOLERANCE * abs(came):
            self.problems.warnings.add(
                "stop-passed",
                f"event {self.event.name}: after its impact at t = {self.t:.9g} s the expression continues in the same "
                "direction, so that the stop is passed (restitution applies to the velocity of the joint, not to that relative "
                "to a stop that moves)", cause=f"{self.event.name} passes")

    def _close_contact(self, state: EventState, k: int, came: float) -> EventState:
        """Return the state in which coordinate k rests at a stop at its position, while its force presses it against the stop.

        came   the sign of the velocity that the stop has ended; 0: the force decides the side of the stop
        """
        place, name = int(v_to_q_indices(self.model)[k]), self.model.v_names[k]
        v = state.v.copy()
        v[k] = 0.0
        if place < 0:
            raise ComputationError(f"repeated impacts at {name} come to rest, but a coordinate of a ball or free joint cannot "
                                   "rest at a stop "
                                   "(stop the run or go to another phase)")
        a = replace(state, v=v).accelerations(self._problem_with_supports(state))[k]
        if self.problem.prescribed[k] and a:
            raise ComputationError(f"repeated impacts at {name} come to rest, but it cannot rest since its acceleration is "
                                   "prescribed (stop "
                                   "the run or go to another phase)")
        side = came or float(np.sign(a)) or 1.0
        self.closed_stops.append(JointStop(name, k, place, int(side), float(state.q[place]), True))
        return replace(state, v=v)

    def warn_impacts_ended(self, closed_stops: Iterable[JointStop], event: Event, t: float) -> None:
        """Warn about the stops at which coordinates rest because their impacts have accumulated."""
        for stop in closed_stops:
            self.problems.warnings.add(
                "impacts-ended",
                f"event {event.name}: impacts at {stop.name} ended at t = {t:.9g} s; it stays at the stop until the contact "
                "force vanishes", cause=event.name)
