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
from liedyn.integrators.segment import evaluated
from liedyn.integrators.zero_crossings import hidden, resolvable
from liedyn.io.scenarios.scenario import Attach, Detach, EndRun, EnterPhase, Event, Impact, Lock, RecordState, Rule, Set
from liedyn.kernels.simulation.signals import POSITION, VELOCITY
from liedyn.model.spatial import symmetric_matrix
from liedyn.model.warnings import is_not_semidefinite
from liedyn.simulation.impacts import (
    REST_AFTER,
    EventState,
    HardStops,
    Jump,
    after_collision,
    after_impacts,
    follows_at_once,
    impelled,
    inverse_mass_of_free_motions,
    jump,
    limit_normals,
    point_rows,
    preserved_velocities,
)
from liedyn.simulation.joint_stops import JointStop
from liedyn.simulation.name_binding import bind_joints, coordinates, find, unit_quaternions, write_values
from liedyn.simulation.prescribed_poses import PrescribedPose, following, prescribed_at
from liedyn.simulation.segment_problems import SegmentProblems

# Prescribed motions that begin or jump in the middle of a run -----------------------------------------------------------

# relative, as `PrescribedPose.off` says: a prescribed motion that begins where the joint is; people round
_AGREE = 1e-6


def start_prescribed_motions(moment: EventState, problem, t: float, impulsive: bool, who: str, place: Place) -> EventState:
    """Prescribed coordinates must be where their motion is at t; their velocity may jump there if that is allowed. who: begins
    them, for messages. Raises ScenarioError."""
    here, there, targets = (moment.q, moment.v), prescribed_at(problem, t, moment.q, moment.v), {}
    for one in following(problem):
        off, jump = one.off(here, there)
        if not off <= _AGREE:
            where, is_at = one.told(there[0][one.q]), one.told(here[0][one.q])
            expected = "a motion that begins where the joint is"
            if one.is_pose:
                raise ScenarioError(f"{who} prescribes the pose {where} of {one.name} from t = {t:.9g} s on, where it is {is_at}",
                                    place=place, expected=expected)
            raise ScenarioError(f"{who} prescribes {one.name} at {where} from t = {t:.9g} s on, where it is at {is_at}",
                                place=place, expected=f"{expected}, or prescribe velocity")
        if not (impulsive or jump <= _AGREE):
            raise ScenarioError(f"{who} prescribes the {'twist' if one.is_pose else 'velocity'} {one.told(there[1][one.v])} of "
                                f"{one.name} from t = {t:.9g} s on, where it is {one.told(here[1][one.v])}", place=place,
                                expected="a motion without a jump, or impulsive: true in the phase")
        targets |= {k: float(there[1][k]) for k in range(one.v.start, one.v.stop)}
    if all(moment.v[k] == x for k, x in targets.items()):
        return moment
    rows, values = np.eye(len(moment.v))[list(targets)], np.array(list(targets.values()))
    return impelled(moment, problem, rows, values, set(targets))[0]


def jump_notes(parts) -> list[str]:
    """A note on the first jump of each prescribed motion within the parts of a run (`Part`). Only expressions can jump."""
    notes: dict[str, str] = {}
    for part in parts:
        problem, times = part.problem, part.record.t
        moving = [one for one in following(problem) if one.name not in notes and _is_expression(problem, one)]
        breaks, before = problem.schedule.breaks, problem.schedule.before
        within = (breaks > times[0]) & (breaks <= times[-1]) if moving and len(times) else np.zeros(len(breaks), dtype=bool)
        q, v = problem.q, problem.v
        for t, earlier in zip(breaks[within], before[within], strict=True):
            here, there = prescribed_at(problem, earlier, q, v), prescribed_at(problem, t, q, v)
            for one in moving:
                if one.name not in notes and max(one.off(here, there)) > _AGREE:
                    notes[one.name] = _jump_note(problem, one, t, here, there)
    return list(notes.values())


def _is_expression(problem, one: PrescribedPose) -> bool:
    poses = problem.schedule.poses
    used = poses.signal[poses.signal >= 0] if one.is_pose else problem.schedule.signal[one.v]
    return any(len(signal_instructions(problem.signals, int(k))) for k in used)


def _jump_note(problem, one: PrescribedPose, t: float, here, there) -> str:
    unit = problem.model.v_units[one.v.start]
    moved = one.off(here, there)[0] > _AGREE
    if one.is_pose:
        what, size = "pose" if moved else "twist", ""
    elif moved:
        what, size = "position", f" by {(there[0][one.q] - here[0][one.q])[0]:.6g} {unit}"
    else:
        what, size = "velocity", f" by {(there[1][one.v] - here[1][one.v])[0]:.6g} {unit}/s"
    return (f"the prescribed {what} of {one.name} jumps{size} at t = {t:.6g} s, where no impulse acts: motion, forces and "
            "energies are not reliable from there on (use waypoints or a smooth expression)")


# actions ----------------------------------------------------------------------------------------------------------------

_UNCHANGED = 1e-9        # of the rate of an expression: an impact that changes less does not act on it
_CLOSED = 1e-6           # rad | lengths of the loop: what may be missing where a loop closes


class Actions:
    """Of one run. Each method of an action has (moment, action, t, event) and returns the moment after it.

    short     of an event: its impacts in a row that came at once
    closed    stops at which coordinates rest from now on, since their impacts have accumulated
    stopped   whether an action has ended the run
    ending    whether impacts do not rebound, since too many have happened at this time
    """

    def __init__(self, modes: SegmentProblems, hard: HardStops, events):
        self.modes, self.model, self._hard = modes, modes.model, hard
        self.short: dict[str, int] = {}
        self.closed: list[JointStop] = []
        self.stopped = self.ending = False
        carrying = {action.link for event in events for action in event.actions if isinstance(action, Attach)}
        for event in events:
            self._check_names(event, carrying)

    def do(self, moment: EventState, event: Event, t: float, expression=None, seen: bool = True, rested=()) -> EventState:
        """expression(moment, problem): the motion of the event's expression; None: it has none. seen: whether it has exceeded its
        rounding since the event happened before. rested: stops at which coordinates rested until now."""
        struck = {action.coordinate for action in event.actions if isinstance(action, Impact)}
        self.seen, self.rested, self._beside = seen, rested, [stop for stop in rested if stop.name not in struck]
        self.expression = expression and (lambda moment: expression(moment, self._supported(moment, t)))
        for action in event.actions:
            try:
                moment = _DO[type(action)](self, moment, action, t, event)
            except ComputationError as problem_found:
                raise ComputationError(f"event {event.name} at t = {t:.9g} s: {problem_found}") from None
        return moment

    def _supported(self, moment: EventState, t: float) -> InitialValueProblem:
        """The problem, with coordinates at rest where other stops than those of the event hold them."""
        return self.modes.problem_with(self._hard.holding(self._beside, moment, t, self.modes.problem))

    def count_short(self, event: Event, since: float, before: EventState) -> None:
        """Whether the event has come at once after the one before, `since` seconds ago."""
        names = [action.coordinate for action in event.actions if isinstance(action, Impact) and action.coordinate]
        q_of_v = coordinates(self.model)
        struck = [(k, q_of_v[k]) for k in map(self.model.v_names.index, names) if q_of_v[k] >= 0]
        duration = self.modes.scenario.duration
        soon = follows_at_once(since, np.inf, 0.0, duration) or any(
            follows_at_once(since, before.v[k], before.q[i], duration) for k, i in struck)
        self.short[event.name] = self.short.get(event.name, 0) + 1 if soon else 0

    def take_closed(self) -> tuple[JointStop, ...]:
        closed, self.closed = tuple(self.closed), []
        return closed

    def _go(self, moment: EventState, action: EnterPhase, t: float, event: Event) -> EventState:
        modes = self.modes
        phase, before = modes.phases[action.phase], modes.phases[modes.mode.phase]
        modes.phase_began = t
        modes.change(phase=action.phase)
        if set(before.open) != set(phase.open):
            moment = self._close(replace(moment, model=modes.problem.model), before.open, phase)
        return start_prescribed_motions(moment, modes.problem, t, phase.impulsive, f"phase {phase.name}", phase.place)

    def _close(self, moment: EventState, were_open, phase) -> EventState:
        """Loops that act from now on: they must be closed, and their velocities vanish at once."""
        rows = [one.rows for one in moment.model.constraints if one.name in were_open]
        if not rows:
            return moment
        rows = np.concatenate([np.arange(one.start, one.stop) for one in rows])
        off = np.abs(constraint_residual(moment.model, moment.q))
        scaled = (equation_weights(moment.model) * off)[rows]
        if scaled.max(initial=0.0) > _CLOSED:
            row = rows[int(np.argmax(scaled))]
            name = moment.model.constraint_equation_names[row]
            raise ScenarioError(f"phase {phase.name} closes a loop that is open by {off[row]:.3g} (rad or m) in {name}",
                                place=phase.place, expected=f"at most {_CLOSED:g}, at an event where it closes")
        A = clear_rounding(moment.model, constraint_jacobian(moment.model, moment.q))[rows]
        return after_collision(moment, self.modes.problem, A, np.zeros(len(rows)), closing=rows)

    def _lock(self, moment: EventState, action: Lock, t: float, event: Event) -> EventState:
        modes = self.modes
        names = tuple(dict.fromkeys(name for given in action.joints for name in self._joints(given, action.place)))
        if action.hold:
            held = np.concatenate([np.arange(self.model.nv)[self.model.v_index(name)] for name in names])
            moment = after_collision(moment, modes.problem, np.eye(self.model.nv)[held], np.zeros(len(held)), set(held))
            v = moment.v.copy()
            v[held] = 0.0                                      # also of rounding: it is held
            moment = replace(moment, v=v)
            modes.change(locked=tuple(sorted({*modes.mode.locked, *names})))
            return moment
        modes.change(locked=tuple(name for name in modes.mode.locked if name not in names))
        return start_prescribed_motions(moment, modes.problem, t, False, f"event {event.name}", action.place)

    def _set(self, moment: EventState, action: Set, t: float, event: Event) -> EventState:
        q, v = moment.q.copy(), moment.v.copy()
        self._write(action, q, v)
        moving = [name for name in self.modes.mode.locked if v[self.model.v_index(name)].any()]
        if moving:
            raise ScenarioError(f"event {event.name} at t = {t:.9g} s: joint {moving[0]} is locked, its velocity cannot be set",
                                place=action.place, expected="unlock before")
        after = replace(moment, q=q, v=v).with_work_since(moment)
        return start_prescribed_motions(after, self.modes.problem, t, False, f"event {event.name}", action.place)

    def _write(self, action: Set, q, v) -> None:
        unit_quaternions(q, write_values(q, action.q, self.model, self.model.q_index), self.model)
        write_values(v, action.v, self.model, self.model.v_index)

    def _impact(self, moment: EventState, action: Impact, t: float, event: Event) -> EventState:
        problem = self.modes.problem
        if action.coordinate:
            k = self.model.v_names.index(action.coordinate)
            if problem.schedule.level[k] in (VELOCITY, POSITION):
                raise ScenarioError(f"event {event.name} at t = {t:.9g} s: the motion of {action.coordinate} is prescribed, so "
                                    "that an impact cannot change it", place=action.place, expected="a phase in which it is free")
            def becomes(e: float) -> EventState:
                return self._struck(moment, -np.sign(moment.v[k]) * np.eye(self.model.nv)[k], e, {k})
            after = becomes(action.restitution)
            if self._leaves(moment, after, event):
                return moment
            ends = self.ending or self._accumulates(moment, after, np.eye(self.model.nv)[k], t, event, {k})
            if action.restitution > 0.0 and not ends:
                self._note_passing(moment, after, t, event)
                return after
            came = 0.0 if ends and self._creeps(moment) else float(np.sign(moment.v[k]))
            return self._close_contact(becomes(0.0), k, came, t, event)
        row = point_rows(moment.model.spanning_tree(), moment.q, action.link, action.point, action.normal)
        approach = float(row @ moment.v)
        after = moment
        if approach < 0.0:
            after = self._struck(moment, row, action.restitution)
        if self._accumulates(moment, after, row, t, event) if approach < 0.0 else self._presses(moment, event):
            raise ComputationError(f"the impacts of link {action.link} come to an end here, and nothing would hold it (stop the "
                                   "run, go to another phase, or use a restitution of a joint's coordinate)")
        return after

    def _struck(self, moment: EventState, row, restitution: float, moved=()) -> EventState:
        """After an impact by which a row of the velocity, less than zero, is reversed; at once with those by which coordinates
        that rest at stops stay outside of them."""
        problem = self.modes.problem
        if not row @ moment.v:
            return moment
        pressed = [stop for stop in self.rested if not problem.prescribed[stop.coordinate]]
        rows, e = np.vstack([row, limit_normals(pressed, len(row))]), np.append(restitution, np.zeros(len(pressed)))
        return after_impacts(moment, problem, rows, e, moved=moved)

    def _leaves(self, before: EventState, after: EventState, event: Event) -> bool:
        """Whether the event's expression, on which the impact acts, is on its way back already: another impact has turned it."""
        motion = self.expression and self.expression(before)
        if not motion or event.direction * motion.rate >= 0.0 or hidden(motion.rate, motion.curvature, motion.bound):
            return False
        return bool(abs(motion.rate - self.expression(after).rate) > _UNCHANGED * abs(motion.rate))

    def _creeps(self, moment: EventState) -> bool:
        """Whether the event's expression arrives at zero as slowly as what rests there."""
        motion = self.expression and self.expression(moment)
        return bool(motion and hidden(motion.rate, motion.curvature, motion.bound))

    def _presses(self, moment: EventState, event: Event) -> bool:
        """Whether the event's expression rests at zero and is on its way beyond."""
        motion = self.expression and self.expression(moment)
        return bool(motion and event.direction * motion.curvature > 0.0 and hidden(motion.rate, motion.curvature, motion.bound))

    def _acts(self, moment: EventState, row, moved) -> bool:
        """Whether an impact along a row of the velocity changes the rate of the event's expression."""
        onward = inverse_mass_of_free_motions(moment, self.modes.problem, moved) @ row
        speed = np.abs(moment.v).max(initial=0.0) or 1.0
        struck = replace(moment, v=moment.v + speed * onward / (np.abs(onward).max() or 1.0))
        here, there = self.expression(moment).rate, self.expression(struck).rate
        return bool(abs(there - here) > _UNCHANGED * max(abs(here), abs(there)))

    def _accumulates(self, before: EventState, after: EventState, row, t: float, event: Event, moved=()) -> bool:
        """Whether the impact along a row of the velocity reverses the event's expression, and it comes back within what can be
        resolved."""
        if self.expression is None:
            return False
        came, leaves = self.expression(before), self.expression(after)
        if np.isnan(leaves.curvature):
            return not self.seen or self.short.get(event.name, 0) >= REST_AFTER
        if abs(came.rate - leaves.rate) <= _UNCHANGED * max(abs(came.rate), abs(leaves.rate)) and (
                (after.v != before.v).any() or not self._acts(before, row, moved)):
            return False                                       # the condition is elsewhere
        duration, bound = self.modes.scenario.duration, max(leaves.bound, 2.0 * abs(leaves.value))
        none = hidden(leaves.rate, leaves.curvature, bound)
        still, turned = none and leaves.rate * leaves.curvature >= 0.0, came.rate * leaves.rate <= 0.0
        turned |= none or hidden(came.rate, leaves.curvature, bound)
        return bool(turned and (still or not resolvable(leaves.rate, leaves.curvature, bound, duration)))

    def _note_passing(self, before: EventState, after: EventState, t: float, event: Event) -> None:
        """An impact that changes the rate of its expression, but not its sign: a stop that moves passes the joint."""
        if self.expression is None:
            return
        came, leaves = self.expression(before).rate, self.expression(after).rate
        if came * leaves > 0.0 and abs(came - leaves) > _UNCHANGED * abs(came):
            self.modes.notes.setdefault(f"{event.name} passes", f"event {event.name}: after its impact at t = {t:.9g} s the "
                                        "expression goes on in the same direction, so that the stop is passed (restitution "
                                        "applies to the velocity of the joint, not to that relative to a stop that moves)")

    def _close_contact(self, moment: EventState, k: int, came: float, t: float, event: Event) -> EventState:
        """The coordinate rests at a stop where it is, as long as its force presses it on. came: the sign of the velocity that the
        stop has ended, 0: the stop is where the force presses."""
        place, name = int(coordinates(self.model)[k]), self.model.v_names[k]
        v = moment.v.copy()
        v[k] = 0.0                                             # also of rounding
        if place < 0:
            raise ComputationError(f"the impacts of {name} come to an end here, and nothing would hold it: a coordinate of a "
                                   "ball or free joint cannot rest at a stop (stop the run or go to another phase)")
        a = evaluated(self._supported(moment, t), t, moment.q, v).a[k]
        if self.modes.problem.prescribed[k] and a:
            raise ComputationError(f"the impacts of {name} come to an end here, and nothing would hold it: the acceleration of "
                                   f"{name} is prescribed (stop the run or go to another phase)")
        side = came or float(np.sign(a)) or 1.0
        self.closed.append(JointStop(name, k, place, int(side), float(moment.q[place]), True))
        return replace(moment, v=v)

    def note_closed(self, closed, event: Event, t: float) -> None:
        """Of stops that impacts have left coordinates at."""
        for stop in closed:
            self.modes.notes.setdefault(event.name, f"event {event.name}: the impacts have come to an end at t = {t:.9g} s; "
                                        f"{stop.name} rests there as long as its force presses it on")

    def _attach(self, moment: EventState, action: Attach, t: float, event: Event) -> EventState:
        modes = self.modes
        if any(one.link == action.link for one in modes.mode.attached):
            raise ScenarioError(f"event {event.name} at t = {t:.9g} s: a body is attached to link {action.link} already",
                                place=action.place)
        before = mass_matrix(moment.model.spanning_tree(), moment.q) @ moment.v
        modes.change(attached=(*modes.mode.attached, action))
        problem, model = modes.problem, modes.problem.model
        free = np.linalg.solve(mass_matrix(model.spanning_tree(), moment.q), before)
        rows, b = preserved_velocities(moment, problem)
        found = jump(model, moment.q, free, rows, b) if len(rows) else Jump(free, np.zeros(model.nv), np.zeros(0), np.False_)
        after = replace(moment, model=model, v=found.v, impulse=moment.impulse + found.impulse)
        driven = float(found.impulse @ found.v)                # the work of what moves prescribed joints
        lost = before @ moment.v / 2 - after.energies[0] + driven
        return replace(after.with_work_since(moment), lost=moment.lost + lost)

    def _detach(self, moment: EventState, action: Detach, t: float, event: Event) -> EventState:
        modes = self.modes
        if all(one.link != action.link for one in modes.mode.attached):
            raise ScenarioError(f"event {event.name} at t = {t:.9g} s: nothing is attached to link {action.link}",
                                place=action.place)
        modes.change(attached=tuple(one for one in modes.mode.attached if one.link != action.link))
        return replace(moment, model=modes.problem.model).with_work_since(moment)

    def _note(self, moment: EventState, action: RecordState, t: float, event: Event) -> EventState:
        return moment

    def _stop(self, moment: EventState, action: EndRun, t: float, event: Event) -> EventState:
        self.stopped = True
        return moment

    # names ----------------------------------------------------------------------------------------------------------
    def _joints(self, given: str, place: Place) -> list[str]:
        return list(bind_joints((Rule(given, "", place),), self.model))

    def _check_names(self, event: Event, carrying: set[str]) -> None:
        """Before the run: what actions name must be there. carrying: links to which something attaches a body."""
        for action in event.actions:
            if isinstance(action, Lock):
                for given in action.joints:
                    self._joints(given, action.place)
            elif isinstance(action, Impact) and action.coordinate:
                find(action.coordinate, self.model.v_names, "coordinate", action.place)
            elif isinstance(action, (Impact, Attach, Detach)):
                find(action.link, self.model.link_names, "link", action.place)
                if isinstance(action, Detach) and action.link not in carrying:
                    raise ScenarioError(f"no event attaches a body to link {action.link}", place=action.place)
                if isinstance(action, Attach) and is_not_semidefinite(symmetric_matrix(action.inertia), action.mass):
                    raise ScenarioError("the inertia of the body is not positive semidefinite", place=action.place,
                                        found=list(action.inertia), expected="principal inertias of at least zero")
            elif isinstance(action, Set):
                if self.model.nc:
                    raise ScenarioError("set is not possible for a robot with loops or couplings", place=action.place)
                self._write(action, self.model.neutral(), np.zeros(self.model.nv))


_DO = {EnterPhase: Actions._go, Lock: Actions._lock, Set: Actions._set, Impact: Actions._impact, Attach: Actions._attach,
       Detach: Actions._detach, RecordState: Actions._note, EndRun: Actions._stop}
