"""What each action of an event does: another phase, joints that lock, bodies that attach make another problem (`stretch_modes`);
velocities jump by impulses (`moments`)."""
from __future__ import annotations

from dataclasses import replace

import numpy as np

from liedyn.codegen.rhs import signal_instructions
from liedyn.dynamics.constraints.constraints import constraint_jacobian, constraint_residual
from liedyn.dynamics.constraints.rank import clear_rounding, equation_weights
from liedyn.dynamics.dynamics import mass_matrix
from liedyn.errors import ComputationError, Place, ScenarioError
from liedyn.integrators.problem import InitialValueProblem
from liedyn.integrators.segment import evaluate_state
from liedyn.integrators.zero_crossings import comes_to_rest, is_below_rounding
from liedyn.io.scenarios.action_schema import Attach, Detach, EndRun, EnterPhase, Impact, Lock, RecordState, Set
from liedyn.io.scenarios.scenario import Event, Rule
from liedyn.kernels.simulation.signals import POSITION, VELOCITY
from liedyn.model.spatial import symmetric_matrix
from liedyn.model.warnings import is_not_semidefinite
from liedyn.simulation.impacts import (
    IMPACTS_BEFORE_REST,
    EventState,
    HardStops,
    Jump,
    after_collision,
    after_impacts,
    after_impulses,
    follows_at_once,
    inverse_mass_of_free_motions,
    limit_normals,
    normal_velocity_rows,
    preserved_velocities,
    velocity_jump,
)
from liedyn.simulation.joint_stops import JointStop
from liedyn.simulation.name_binding import bind_joints, find_index, normalize_quaternions, v_to_q_indices, write_values
from liedyn.simulation.prescribed_poses import PrescribedPose, prescribed_motions, prescribed_state
from liedyn.simulation.segment_problems import SegmentProblems

# Prescribed motions that begin or jump in the middle of a run -----------------------------------------------------------

# relative, as `PrescribedPose.mismatch` says: a prescribed motion that begins where the joint is; people round
_MOTION_TOLERANCE = 1e-6


def start_prescribed_motions(state: EventState, problem, t: float, impulsive: bool, description: str, place: Place) -> EventState:
    """Prescribed coordinates must be where their motion is at t; their velocity may jump there if that is allowed. who: begins
    them, for messages. Raises ScenarioError."""
    here, there, targets = (state.q, state.v), prescribed_state(problem, t, state.q, state.v), {}
    for one in prescribed_motions(problem):
        off, jump = one.mismatch(here, there)
        if not off <= _MOTION_TOLERANCE:
            where, is_at = one.format(there[0][one.q]), one.format(here[0][one.q])
            expected = "a motion that begins where the joint is"
            if one.is_pose:
                raise ScenarioError(
                    f"{description} prescribes the pose {where} of {one.name} from t = {t:.9g} s on, where it is {is_at}",
                                    place=place, expected=expected)
            raise ScenarioError(f"{description} prescribes {one.name} at {where} from t = {t:.9g} s on, where it is at {is_at}",
                                place=place, expected=f"{expected}, or prescribe velocity")
        if not (impulsive or jump <= _MOTION_TOLERANCE):
            raise ScenarioError(
                f"{description} prescribes the {'twist' if one.is_pose else 'velocity'} {one.format(there[1][one.v])} of "
                                f"{one.name} from t = {t:.9g} s on, where it is {one.format(here[1][one.v])}", place=place,
                                expected="a motion without a jump, or impulsive: true in the phase")
        targets |= {k: float(there[1][k]) for k in range(one.v.start, one.v.stop)}
    if all(state.v[k] == x for k, x in targets.items()):
        return state
    rows, values = np.eye(len(state.v))[list(targets)], np.array(list(targets.values()))
    return after_impulses(state, problem, rows, values, set(targets))[0]


def jump_warnings(segments) -> list[str]:
    """A warning on the first jump of each prescribed motion within the parts of a run (`Part`). Only expressions can jump."""
    warnings: dict[str, str] = {}
    for segment in segments:
        problem, times = segment.problem, segment.record.t
        moving = [one for one in prescribed_motions(problem) if one.name not in warnings and _is_expression(problem, one)]
        breaks, before = problem.schedule.breaks, problem.schedule.before
        within = (breaks > times[0]) & (breaks <= times[-1]) if moving and len(times) else np.zeros(len(breaks), dtype=bool)
        q, v = problem.q, problem.v
        for t, earlier in zip(breaks[within], before[within], strict=True):
            here, there = prescribed_state(problem, earlier, q, v), prescribed_state(problem, t, q, v)
            for one in moving:
                if one.name not in warnings and max(one.mismatch(here, there)) > _MOTION_TOLERANCE:
                    warnings[one.name] = _jump_warning(problem, one, t, here, there)
    return list(warnings.values())


def _is_expression(problem, one: PrescribedPose) -> bool:
    poses = problem.schedule.poses
    used = poses.signal[poses.signal >= 0] if one.is_pose else problem.schedule.signal[one.v]
    return any(len(signal_instructions(problem.signals, int(k))) for k in used)


def _jump_warning(problem, one: PrescribedPose, t: float, here, there) -> str:
    unit = problem.model.v_units[one.v.start]
    is_displaced = one.mismatch(here, there)[0] > _MOTION_TOLERANCE
    if one.is_pose:
        what, size = "pose" if is_displaced else "twist", ""
    elif is_displaced:
        what, size = "position", f" by {(there[0][one.q] - here[0][one.q])[0]:.6g} {unit}"
    else:
        what, size = "velocity", f" by {(there[1][one.v] - here[1][one.v])[0]:.6g} {unit}/s"
    return (f"the prescribed {what} of {one.name} jumps{size} at t = {t:.6g} s, where no impulse acts: motion, forces and "
            "energies are not reliable from there on (use waypoints or a smooth expression)")


# actions ----------------------------------------------------------------------------------------------------------------

_RATE_TOLERANCE = 1e-9        # of the rate of an expression: an impact that changes less does not act on it
_CLOSURE_TOLERANCE = 1e-6     # rad | lengths of the loop: what may be missing where a loop closes


class Actions:
    """Of one run. Each method of an action has (moment, action, t, event) and returns the moment after it.

    closed    stops at which coordinates rest from now on, since their impacts have accumulated
    stopped   whether an action has ended the run
    ending    whether impacts do not rebound, since too many have happened at this time
    """

    def __init__(self, problems: SegmentProblems, hard: HardStops, events):
        self.problems, self.model, self._hard_stops = problems, problems.model, hard
        self.closed_stops: list[JointStop] = []
        self.stopped = self.without_rebound = False
        carrier_links = {action.link for event in events for action in event.actions if isinstance(action, Attach)}
        for event in events:
            self._check_names(event, carrier_links)

    def apply_actions(self, state: EventState, event: Event, t: float, expression=None, left_zero: bool = True,
                      former_stops=()) -> EventState:
        """expression(moment, problem): the motion of the event's expression; None: it has none. seen: whether it has exceeded its
        rounding since the event happened before. rested: stops at which coordinates rested until now."""
        struck = {action.coordinate for action in event.actions if isinstance(action, Impact)}
        self.left_zero, self.former_stops, self._other_stops = left_zero, former_stops, [stop for stop in former_stops
                                                                                         if stop.name not in struck]
        self.expression = expression and (lambda state: expression(state, self._problem_with_supports(state, t)))
        for action in event.actions:
            try:
                state = _ACTIONS[type(action)](self, state, action, t, event)
            except ComputationError as problem_found:
                raise ComputationError(f"event {event.name} at t = {t:.9g} s: {problem_found}") from None
        return state

    def _problem_with_supports(self, state: EventState, t: float) -> InitialValueProblem:
        """The problem, with coordinates at rest where other stops than those of the event hold them."""
        return self.problems.problem_with_stops(self._hard_stops.supporting_stops(self._other_stops, state, t,
                                                                                  self.problems.current))

    def count_short_flights(self, event: Event, since: float, before: EventState) -> None:
        """Whether the event has come at once after the one before, `since` seconds ago."""
        names = [action.coordinate for action in event.actions if isinstance(action, Impact) and action.coordinate]
        q_of_v = v_to_q_indices(self.model)
        struck = [(k, q_of_v[k]) for k in map(self.model.v_names.index, names) if q_of_v[k] >= 0]
        duration = self.problems.scenario.duration
        soon = follows_at_once(since, np.inf, 0.0, duration) or any(
            follows_at_once(since, before.v[k], before.q[i], duration) for k, i in struck)
        self.problems.ledger.count_short_flight(event, soon)

    def pop_closed_stops(self) -> tuple[JointStop, ...]:
        closed_stops, self.closed_stops = tuple(self.closed_stops), []
        return closed_stops

    def _enter_phase(self, state: EventState, action: EnterPhase, t: float, event: Event) -> EventState:
        problems = self.problems
        phase, before = problems.phases[action.phase], problems.phases[problems.hybrid_state.phase]
        problems.phase_began = t
        problems.change(phase=action.phase)
        if set(before.open) != set(phase.open):
            state = self._close_loops(replace(state, model=problems.current.model), before.open, phase)
        return start_prescribed_motions(state, problems.current, t, phase.impulsive, f"phase {phase.name}", phase.place)

    def _close_loops(self, state: EventState, formerly_open, phase) -> EventState:
        """Loops that act from now on: they must be closed, and their velocities vanish at once."""
        rows = [one.rows for one in state.model.constraints if one.name in formerly_open]
        if not rows:
            return state
        rows = np.concatenate([np.arange(one.start, one.stop) for one in rows])
        off = np.abs(constraint_residual(state.model, state.q))
        scaled = (equation_weights(state.model) * off)[rows]
        if scaled.max(initial=0.0) > _CLOSURE_TOLERANCE:
            row = rows[int(np.argmax(scaled))]
            name = state.model.constraint_equation_names[row]
            raise ScenarioError(f"phase {phase.name} closes a loop that is open by {off[row]:.3g} (rad or m) in {name}",
                                place=phase.place, expected=f"at most {_CLOSURE_TOLERANCE:g}, at an event where it closes")
        A = clear_rounding(state.model, constraint_jacobian(state.model, state.q))[rows]
        return after_collision(state, self.problems.current, A, np.zeros(len(rows)), closing=rows)

    def _lock(self, state: EventState, action: Lock, t: float, event: Event) -> EventState:
        problems = self.problems
        names = tuple(dict.fromkeys(name for given in action.joints for name in self._joint_names(given, action.place)))
        if action.hold:
            held = np.concatenate([np.arange(self.model.nv)[self.model.v_index(name)] for name in names])
            state = after_collision(state, problems.current, np.eye(self.model.nv)[held], np.zeros(len(held)), set(held))
            v = state.v.copy()
            v[held] = 0.0                                      # also of rounding: it is held
            state = replace(state, v=v)
            problems.change(locked=tuple(sorted({*problems.hybrid_state.locked, *names})))
            return state
        problems.change(locked=tuple(name for name in problems.hybrid_state.locked if name not in names))
        return start_prescribed_motions(state, problems.current, t, False, f"event {event.name}", action.place)

    def _set_state(self, state: EventState, action: Set, t: float, event: Event) -> EventState:
        q, v = state.q.copy(), state.v.copy()
        self._write_values(action, q, v)
        moving = [name for name in self.problems.hybrid_state.locked if v[self.model.v_index(name)].any()]
        if moving:
            raise ScenarioError(f"event {event.name} at t = {t:.9g} s: joint {moving[0]} is locked, its velocity cannot be set",
                                place=action.place, expected="unlock before")
        after = replace(state, q=q, v=v).with_work_since(state)
        return start_prescribed_motions(after, self.problems.current, t, False, f"event {event.name}", action.place)

    def _write_values(self, action: Set, q, v) -> None:
        normalize_quaternions(q, write_values(q, action.q, self.model, self.model.q_index), self.model)
        write_values(v, action.v, self.model, self.model.v_index)

    def _impact(self, state: EventState, action: Impact, t: float, event: Event) -> EventState:
        problem = self.problems.current
        if action.coordinate:
            k = self.model.v_names.index(action.coordinate)
            if problem.schedule.level[k] in (VELOCITY, POSITION):
                raise ScenarioError(f"event {event.name} at t = {t:.9g} s: the motion of {action.coordinate} is prescribed, so "
                                    "that an impact cannot change it", place=action.place, expected="a phase in which it is free")
            def becomes(e: float) -> EventState:
                return self._after_impact(state, -np.sign(state.v[k]) * np.eye(self.model.nv)[k], e, {k})
            after = becomes(action.restitution)
            if self._is_returning(state, after, event):
                return state
            ends = self.without_rebound or self._accumulates(state, after, np.eye(self.model.nv)[k], t, event, {k})
            if action.restitution > 0.0 and not ends:
                self._warn_stop_passed(state, after, t, event)
                return after
            came = 0.0 if ends and self._arrives_at_rest(state) else float(np.sign(state.v[k]))
            return self._close_contact(becomes(0.0), k, came, t, event)
        row = normal_velocity_rows(state.model.spanning_tree(), state.q, action.link, action.point, action.normal)
        approach = float(row @ state.v)
        after = state
        if approach < 0.0:
            after = self._after_impact(state, row, action.restitution)
        if self._accumulates(state, after, row, t, event) if approach < 0.0 else self._is_pressed(state, event):
            raise ComputationError(f"the impacts of link {action.link} come to an end here, and nothing would hold it (stop the "
                                   "run, go to another phase, or use a restitution of a joint's coordinate)")
        return after

    def _after_impact(self, state: EventState, row, restitution: float, exempt=()) -> EventState:
        """After an impact by which a row of the velocity, less than zero, is reversed; at once with those by which coordinates
        that rest at stops stay outside of them."""
        problem = self.problems.current
        if not row @ state.v:
            return state
        pressed = [stop for stop in self.former_stops if not problem.prescribed[stop.coordinate]]
        rows, e = np.vstack([row, limit_normals(pressed, len(row))]), np.append(restitution, np.zeros(len(pressed)))
        return after_impacts(state, problem, rows, e, exempt=exempt)

    def _is_returning(self, before: EventState, after: EventState, event: Event) -> bool:
        """Whether the event's expression, on which the impact acts, is on its way back already: another impact has turned it."""
        motion = self.expression and self.expression(before)
        if not motion or event.direction * motion.rate >= 0.0 or is_below_rounding(motion.rate, motion.curvature, motion.bound):
            return False
        return bool(abs(motion.rate - self.expression(after).rate) > _RATE_TOLERANCE * abs(motion.rate))

    def _arrives_at_rest(self, state: EventState) -> bool:
        """Whether the event's expression arrives at zero as slowly as what rests there."""
        motion = self.expression and self.expression(state)
        return bool(motion and is_below_rounding(motion.rate, motion.curvature, motion.bound))

    def _is_pressed(self, state: EventState, event: Event) -> bool:
        """Whether the event's expression rests at zero and is on its way beyond."""
        motion = self.expression and self.expression(state)
        return bool(motion and event.direction * motion.curvature > 0.0
                    and is_below_rounding(motion.rate, motion.curvature, motion.bound))

    def _affects_expression(self, state: EventState, row, exempt) -> bool:
        """Whether an impact along a row of the velocity changes the rate of the event's expression."""
        onward = inverse_mass_of_free_motions(state, self.problems.current, exempt) @ row
        speed = np.abs(state.v).max(initial=0.0) or 1.0
        struck = replace(state, v=state.v + speed * onward / (np.abs(onward).max() or 1.0))
        here, there = self.expression(state).rate, self.expression(struck).rate
        return bool(abs(there - here) > _RATE_TOLERANCE * max(abs(here), abs(there)))

    def _accumulates(self, before: EventState, after: EventState, row, t: float, event: Event, exempt=()) -> bool:
        """Whether the impact along a row of the velocity reverses the event's expression, and it comes back within what can be
        resolved."""
        if self.expression is None:
            return False
        came, leaves = self.expression(before), self.expression(after)
        if np.isnan(leaves.curvature):
            return not self.left_zero or self.problems.ledger.n_short_flights(event) >= IMPACTS_BEFORE_REST
        if abs(came.rate - leaves.rate) <= _RATE_TOLERANCE * max(abs(came.rate), abs(leaves.rate)) and (
                (after.v != before.v).any() or not self._affects_expression(before, row, exempt)):
            return False                                       # the condition is elsewhere
        duration, bound = self.problems.scenario.duration, max(leaves.bound, 2.0 * abs(leaves.value))
        turned = came.rate * leaves.rate <= 0.0 or is_below_rounding(came.rate, leaves.curvature, bound)
        return bool(comes_to_rest(turned, leaves.rate, leaves.curvature, bound, duration))

    def _warn_stop_passed(self, before: EventState, after: EventState, t: float, event: Event) -> None:
        """An impact that changes the rate of its expression, but not its sign: a stop that moves passes the joint."""
        if self.expression is None:
            return
        came, leaves = self.expression(before).rate, self.expression(after).rate
        if came * leaves > 0.0 and abs(came - leaves) > _RATE_TOLERANCE * abs(came):
            self.problems.warnings.setdefault(f"{event.name} passes", (
                f"event {event.name}: after its impact at t = {t:.9g} s the expression continues in the same direction, so that "
                "the stop is passed (restitution applies to the velocity of the joint, not to that relative to a stop that "
                "moves)"))

    def _close_contact(self, state: EventState, k: int, came: float, t: float, event: Event) -> EventState:
        """The coordinate rests at a stop where it is, as long as its force presses it on. came: the sign of the velocity that the
        stop has ended, 0: the stop is where the force presses."""
        place, name = int(v_to_q_indices(self.model)[k]), self.model.v_names[k]
        v = state.v.copy()
        v[k] = 0.0                                             # also of rounding
        if place < 0:
            raise ComputationError(f"the impacts of {name} come to an end here, and nothing would hold it: a coordinate of a "
                                   "ball or free joint cannot rest at a stop (stop the run or go to another phase)")
        a = evaluate_state(self._problem_with_supports(state, t), t, state.q, v).a[k]
        if self.problems.current.prescribed[k] and a:
            raise ComputationError(f"the impacts of {name} come to an end here, and nothing would hold it: the acceleration of "
                                   f"{name} is prescribed (stop the run or go to another phase)")
        side = came or float(np.sign(a)) or 1.0
        self.closed_stops.append(JointStop(name, k, place, int(side), float(state.q[place]), True))
        return replace(state, v=v)

    def warn_impacts_ended(self, closed_stops, event: Event, t: float) -> None:
        """Of stops that impacts have left coordinates at."""
        for stop in closed_stops:
            self.problems.warnings.setdefault(event.name,
                                              f"event {event.name}: the impacts have come to an end at t = {t:.9g} s; "
                                              f"{stop.name} rests there as long as its force presses it on")

    def _attach(self, state: EventState, action: Attach, t: float, event: Event) -> EventState:
        problems = self.problems
        if any(one.link == action.link for one in problems.hybrid_state.attached):
            raise ScenarioError(f"event {event.name} at t = {t:.9g} s: a body is attached to link {action.link} already",
                                place=action.place)
        before = mass_matrix(state.model.spanning_tree(), state.q) @ state.v
        problems.change(attached=(*problems.hybrid_state.attached, action))
        problem, model = problems.current, problems.current.model
        free = np.linalg.solve(mass_matrix(model.spanning_tree(), state.q), before)
        rows, b = preserved_velocities(state, problem)
        found = velocity_jump(model, state.q, free, rows,
                              b) if len(rows) else Jump(free, np.zeros(model.nv), np.zeros(0), np.False_)
        after = replace(state, model=model, v=found.v, impulse=state.impulse + found.impulse)
        driven = float(found.impulse @ found.v)                # the work of what moves prescribed joints
        lost = before @ state.v / 2 - after.energies[0] + driven
        return replace(after.with_work_since(state), lost=state.lost + lost)

    def _detach(self, state: EventState, action: Detach, t: float, event: Event) -> EventState:
        problems = self.problems
        if all(one.link != action.link for one in problems.hybrid_state.attached):
            raise ScenarioError(f"event {event.name} at t = {t:.9g} s: nothing is attached to link {action.link}",
                                place=action.place)
        problems.change(attached=tuple(one for one in problems.hybrid_state.attached if one.link != action.link))
        return replace(state, model=problems.current.model).with_work_since(state)

    def _record_state(self, state: EventState, action: RecordState, t: float, event: Event) -> EventState:
        return state

    def _stop(self, state: EventState, action: EndRun, t: float, event: Event) -> EventState:
        self.stopped = True
        return state

    # names ----------------------------------------------------------------------------------------------------------
    def _joint_names(self, given: str, place: Place) -> list[str]:
        return list(bind_joints((Rule(given, "", place),), self.model))

    def _check_names(self, event: Event, carrier_links: set[str]) -> None:
        """Before the run: what actions name must be there. carrying: links to which something attaches a body."""
        for action in event.actions:
            if isinstance(action, Lock):
                for given in action.joints:
                    self._joint_names(given, action.place)
            elif isinstance(action, Impact) and action.coordinate:
                find_index(action.coordinate, self.model.v_names, "coordinate", action.place)
            elif isinstance(action, (Impact, Attach, Detach)):
                find_index(action.link, self.model.link_names, "link", action.place)
                if isinstance(action, Detach) and action.link not in carrier_links:
                    raise ScenarioError(f"no event attaches a body to link {action.link}", place=action.place)
                if isinstance(action, Attach) and is_not_semidefinite(symmetric_matrix(action.inertia), action.mass):
                    raise ScenarioError("the inertia of the body is not positive semidefinite", place=action.place,
                                        found=list(action.inertia), expected="principal inertias of at least zero")
            elif isinstance(action, Set):
                if self.model.nc:
                    raise ScenarioError("set is not possible for a robot with loops or couplings", place=action.place)
                self._write_values(action, self.model.neutral(), np.zeros(self.model.nv))


_ACTIONS = {EnterPhase: Actions._enter_phase, Lock: Actions._lock, Set: Actions._set_state, Impact: Actions._impact,
            Attach: Actions._attach, Detach: Actions._detach, RecordState: Actions._record_state, EndRun: Actions._stop}
