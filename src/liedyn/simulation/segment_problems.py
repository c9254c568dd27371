"""The initial value problem of each segment of a run: the robot with its attached bodies in the current phase, compiled once."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from liedyn.arrays import Array, Integers, Mask
from liedyn.dynamics.constraints.constraints import constraint_jacobian, constraint_residual, constraint_velocity
from liedyn.dynamics.constraints.inertia_transfer import correct_multipliers
from liedyn.dynamics.dynamics import inverse_dynamics
from liedyn.errors import LiedynWarning, ModelError, ScenarioError, WarningLog
from liedyn.integrators.contact_forces import sliding_friction
from liedyn.integrators.problem import InitialValueProblem
from liedyn.integrators.run_state import Record
from liedyn.io.scenarios.action_schema import Attach
from liedyn.io.scenarios.scenario import PHASE_START, Constant, Event, Phase, Prescribe, Rule, Scenario
from liedyn.joints.loop_joints import CONSTRAINT_MOTION_SIZE
from liedyn.model.link_tree import combine_bodies
from liedyn.model.links import Link
from liedyn.model.model import Model, build
from liedyn.model.spatial import symmetric_matrix
from liedyn.simulation.control.slotine_li_control import with_known_robot
from liedyn.simulation.input_schedule import compile_schedule
from liedyn.simulation.joint_friction import FrictionMode, FrictionState, JointFriction, prescribed_friction
from liedyn.simulation.joint_stops import JointStop, limit_stops
from liedyn.simulation.name_binding import phase_rules, unknown_name_error

RunIndex: TypeAlias = int | np.ndarray                             # one run or many

# Times of events, which determine whether they may occur again ----------------------------------------------------------

class EventLedger:
    """Occurrence times of events, for runs with the same events.

    In all methods, `runs` is the index of a run or an array of indices.

    last_times      (runs, events) time of the last occurrence of each event [s]; -inf: none
    short_flights   (runs, events) consecutive impacts that followed at once
    """

    def __init__(self, events: tuple[Event, ...], count: int = 1):
        self._names = [event.name for event in events]
        self._columns = {name: k for k, name in enumerate(self._names)}
        self.last_times = np.full((count, len(events)), -np.inf)
        self.short_flights = np.zeros((count, len(events)), dtype=np.int64)

    def last_time(self, event: Event, runs: RunIndex = 0) -> Any:
        """Return the time of the last occurrence of the event [s]; -inf: none."""
        return self.last_times[runs, self._columns[event.name]]

    def is_over(self, event: Event, runs: RunIndex = 0, phase: str | None = None) -> Any:
        """Return whether the event cannot occur again in this phase or at all."""
        return (event.once & np.isfinite(self.last_time(event, runs))) | (bool(event.phases) and phase not in event.phases)

    def is_too_soon(self, event: Event, t: float | np.ndarray, runs: RunIndex = 0) -> Any:
        """Return whether less time than the debounce of the event has passed since it occurred last."""
        return t - self.last_time(event, runs) < event.debounce

    def may_happen(self, event: Event, t: float | np.ndarray, runs: RunIndex = 0, phase: str | None = None) -> Any:
        """Return whether the event may occur at t in this phase."""
        return ~(self.is_over(event, runs, phase) | self.is_too_soon(event, t, runs))

    def record(self, event: Event, t: float | np.ndarray, runs: RunIndex = 0) -> None:
        """Store t as the time of the last occurrence of the event."""
        self.last_times[runs, self._columns[event.name]] = t

    def count_short_flight(self, event: Event, is_short: bool | np.ndarray, runs: RunIndex = 0) -> None:
        """Increment the number of consecutive impacts that followed at once, or reset it if is_short is False."""
        k = self._columns[event.name]
        self.short_flights[runs, k] = np.where(is_short, self.short_flights[runs, k] + 1, 0)

    def n_short_flights(self, event: Event, runs: RunIndex = 0) -> Any:
        """Return the number of consecutive impacts that followed at once."""
        return self.short_flights[runs, self._columns[event.name]]

    def times_by_name(self, run: int = 0) -> dict[str, float]:
        """Return the times of the last occurrences of events in one run, by name [s]."""
        times = self.last_times[run]
        return {self._names[k]: float(times[k]) for k in np.flatnonzero(np.isfinite(times))}

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the ledger."""
        return {"last_times": self.last_times, "short_flights": self.short_flights}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state of `state_dict`."""
        self.last_times[:], self.short_flights[:] = state["last_times"], state["short_flights"]


# Segments ---------------------------------------------------------------------------------------------------------------

def with_open_loops(model: Model, phase: Phase | None) -> Model:
    """Return the robot without the loops, couplings and mimic joints that are open in a phase.

    Raises ScenarioError for an unknown name.
    """
    if phase is None or not phase.open:
        return model
    robot, names = model.description, [element.name for element in model.constraints]
    if not names:
        raise ScenarioError("the robot has no loops or couplings", place=phase.place.at("open"), found=", ".join(phase.open))
    for name in phase.open:
        if name not in names:
            raise unknown_name_error(name, names, "loop or coupling", phase.place.at("open"))
        if model.constraint(name).driven:
            raise ScenarioError(f"loop {name} is driven: it cannot be open", place=phase.place.at("open"))
    return build(replace(robot, loops=tuple(element for element in robot.loops if element.name not in phase.open),
                         couplings=tuple(element for element in robot.couplings if element.name not in phase.open),
                         joints=tuple(replace(joint, mimic=None) if joint.name in phase.open else joint
                                      for joint in robot.joints)))


@dataclass(frozen=True, eq=False)
class RunSegment:
    """A segment of a run: its problem and rows."""

    problem: InitialValueProblem
    record: Record

    @property
    def model(self) -> Model:
        """The robot with the attached bodies of the segment."""
        return self.problem.model

    def rows(self, index: slice | Integers | Mask) -> RunSegment:
        """Return the segment with the rows of an index of arrays."""
        return RunSegment(self.problem, Record(*(x[index] for x in self.record)))


def full_record(segment: RunSegment, model: Model, frictions: Sequence[JointFriction] = ()) -> Record:
    """Return the record with the multipliers of all constraints of `model`; those of open constraints are zero.

    frictions   rigid friction, which is not part of the forces of prescribed coordinates
    """
    record, rows = segment.record, segment.model.constraint_equation_names
    if frictions:
        record = record._replace(tau=record.tau - prescribed_friction(segment.problem, frictions, record.v))
    if segment.problem.elimination is not None:
        record = record._replace(multipliers=coupling_multipliers(segment), residual=_residuals(segment.model, record))
    if segment.problem.transferred_armature.any():
        record = record._replace(multipliers=correct_multipliers(segment.model, segment.problem.transferred_armature, record.a,
                                                                 record.multipliers))
    if segment.model.nc == model.nc:
        return record
    n, driven = len(record.t), model.driven
    multipliers = np.zeros((n, model.nc))
    multipliers[:, [model.constraint_equation_names.index(name) for name in rows]] = record.multipliers
    tied = segment.problem.constraints is not None
    return record._replace(multipliers=multipliers, residual=record.residual if tied else np.zeros((n, 2)),
                           constraint_motion=record.constraint_motion if tied else np.zeros((n, CONSTRAINT_MOTION_SIZE * driven)))


def coupling_multipliers(segment: RunSegment) -> Array:
    """Return the multipliers (N, nc) of eliminated couplings, of minimum norm: A^T lambda = M a + b - tau."""
    record, A = segment.record, constraint_jacobian(segment.model, segment.model.neutral())
    forces = recomputed_forces(segment) - record.tau - sliding_friction(segment.problem, record.v)
    known = np.ones(segment.model.nv, dtype=bool)
    if segment.problem.stops is not None:
        known[segment.problem.stops.sticking] = False          # their friction follows from the multipliers
    multipliers: Array = np.linalg.lstsq(A.T[known], forces.T[known], rcond=None)[0].T
    return multipliers


def recomputed_forces(segment: RunSegment) -> Array:
    """Return the generalized forces (N, nv) of the open tree for the motion of a segment, by inverse dynamics."""
    record, problem, f_ext = segment.record, segment.problem, None
    if len(problem.forced_links):
        f_ext = np.zeros((len(record.t), len(segment.model.link_names), 6))
        f_ext[:, problem.forced_links] = problem.split_wrench(record.wrench)[0]
    return inverse_dynamics(segment.model.spanning_tree(), record.q, record.v, record.a, f_ext=f_ext, passive=problem.passive)


def _residuals(model: Model, record: Record) -> Array:
    """Return the maximum residuals (N, 2) of positions and velocities."""
    residuals = constraint_residual(model, record.q), constraint_velocity(model, record.q, record.v)
    return np.column_stack([np.abs(x).max(axis=1, initial=0.0) for x in residuals])


# hybrid states ----------------------------------------------------------------------------------------------------------

@dataclass(frozen=True)
class HybridState:
    """The discrete state of a run, which determines the initial value problem.

    phase      name of the phase; None without phases
    locked     names of the locked joints
    attached   attached bodies
    resting    hard stops at which coordinates rest, including those at which accumulated impacts have ended
    friction   modes of the coordinates with rigid friction; empty: not known, and no rigid friction acts
    """

    phase: str | None
    locked: tuple[str, ...] = ()
    attached: tuple[Attach, ...] = ()
    resting: tuple[JointStop, ...] = ()
    friction: FrictionState = ()

    @property
    def changes(self) -> str:
        """Locked joints and attached bodies, such as "elbow locked; a body attached to hand"; "" if there are none."""
        parts = [f"{', '.join(self.locked)} locked"] if self.locked else []
        parts += [f"a body attached to {', '.join(body.link for body in self.attached)}"] if self.attached else []
        return "; ".join(parts)


class SegmentProblems:
    """The initial value problems of one run, and the current one. first: the problem at the start of the scenario.

    frictions     rigid friction of coordinates, which `model` does not have
    compile_state  returns the problem of a hybrid state; None: that of the scenario
    ledger        times of the events
    phase_began   start time of the current phase [s]
    """

    def __init__(self, scenario: Scenario, model: Model, first: InitialValueProblem, frictions: Sequence[JointFriction] = (),
                 compile_state: Callable[[HybridState], InitialValueProblem] | None = None):
        self.scenario, self.model, self.frictions, self._compile_state = scenario, model, tuple(frictions), compile_state
        self.phases = {phase.name: phase for phase in scenario.phases}
        self.stops = limit_stops(scenario, model)
        self.hybrid_state = HybridState(scenario.phases[0].name if scenario.phases else None)
        self._problems: dict[HybridState, tuple[InitialValueProblem, Iterable[LiedynWarning]]] = {self.hybrid_state: (first, ())}
        self._first = first
        self.ledger = EventLedger(scenario.events)
        self.phase_began = 0.0
        self.warnings = WarningLog()
        for phase in scenario.phases[1:]:                      # errors in later phases are raised before the run
            self._compile(HybridState(phase.name))

    @property
    def current(self) -> InitialValueProblem:
        """The problem of the current hybrid state."""
        return self._problems[self.hybrid_state][0]

    @property
    def compiled(self) -> list[InitialValueProblem]:
        """The problems compiled so far, initially those of the phases."""
        return [problem for problem, _ in self._problems.values()]

    def present_stops(self, hybrid_state: HybridState) -> tuple[JointStop, ...]:
        """Return the stops of limits, and those of impacts at which coordinates rest."""
        return tuple(dict.fromkeys((*self.stops, *hybrid_state.resting)))

    def change(self, **parts: Any) -> None:
        """Enter the hybrid state that differs from the current one in these fields."""
        self.enter(replace(self.hybrid_state, **parts))

    def enter(self, hybrid_state: HybridState) -> None:
        """Make a hybrid state the current one. Its clocks of phase and events start at their last times."""
        self.hybrid_state = hybrid_state
        if hybrid_state not in self._problems:
            self._compile(hybrid_state)
        problem, warnings = self._problems[hybrid_state]
        self.warnings.extend(warnings)
        if problem.clocks:
            start_times = {PHASE_START: self.phase_began} | self.ledger.times_by_name()
            self._problems[hybrid_state] = problem.restarted_at(start_times), warnings

    def problem_with_stops(self, resting: tuple[JointStop, ...]) -> InitialValueProblem:
        """Return the problem in which coordinates also rest at these stops, without entering it."""
        present = self.hybrid_state
        self.change(resting=tuple(dict.fromkeys((*present.resting, *resting))))
        problem, self.hybrid_state = self.current, present
        return problem

    def phase_of(self, hybrid_state: HybridState) -> Phase | None:
        """Return the phase of a hybrid state; None without phases."""
        return self.phases.get(hybrid_state.phase or "")

    def _compile(self, hybrid_state: HybridState) -> None:
        if self._compile_state is not None:
            self._problems[hybrid_state] = self._compile_state(hybrid_state), ()
            return
        phase = self.phase_of(hybrid_state)
        model = with_attached_bodies(with_open_loops(self.model, phase), hybrid_state.attached)
        problem, _, warnings = compile_schedule(self.scenario, model, self._rules(hybrid_state), self.present_stops(hybrid_state),
                                                hybrid_state.resting, hybrid_state.friction)
        contacts, problem = self._first.contacts, with_known_robot(problem, self._first)
        if problem.contacts is not None and contacts is not None:            # a payload does not change the stiffness of contacts
            problem = replace(problem, contacts=problem.contacts._replace(material=contacts.material))
        self._problems[hybrid_state] = problem.with_transferred_inertia(), warnings

    def _rules(self, hybrid_state: HybridState) -> dict[str, Rule]:
        locked_rules = {name: Rule(name, Prescribe("acceleration", Constant(0.0))) for name in hybrid_state.locked}
        return phase_rules(self.scenario, self.model, hybrid_state.phase) | locked_rules

    def state_dict(self) -> dict[str, Any]:
        """Return the current hybrid state, the ledger and the warnings."""
        return {"hybrid_state": self.state_to_list(self.hybrid_state), "ledger": self.ledger.state_dict(),
                "phase_began": self.phase_began, "warnings": self.warnings.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state of `state_dict`."""
        self.ledger.load_state_dict(state["ledger"])
        self.phase_began, self.warnings = state["phase_began"], WarningLog.from_state_dict(state["warnings"])
        self.enter(self.state_from_list(state["hybrid_state"]))

    def state_to_list(self, hybrid_state: HybridState) -> list[Any]:
        """Return a hybrid state as JSON values."""
        bodies = self._bodies()
        return [hybrid_state.phase, list(hybrid_state.locked), [bodies.index(body) for body in hybrid_state.attached],
                [self.stops.index(stop) if stop in self.stops else asdict(stop) for stop in hybrid_state.resting],
                [[self.frictions.index(mode.friction), mode.direction, mode.at_rest] for mode in hybrid_state.friction]]

    def state_from_list(self, values: list[Any]) -> HybridState:
        """Return the hybrid state of `state_to_list`."""
        (phase, locked, attached, resting, friction), bodies = values, self._bodies()
        stops = tuple(JointStop(**k) if isinstance(k, dict) else self.stops[k] for k in resting)
        modes = tuple(FrictionMode(self.frictions[k], direction, at_rest) for k, direction, at_rest in friction)
        return HybridState(phase, tuple(locked), tuple(bodies[k] for k in attached), stops, modes)

    def _bodies(self) -> list[Attach]:
        return [action for event in self.scenario.events for action in event.actions if isinstance(action, Attach)]


def with_attached_bodies(model: Model, attached: tuple[Attach, ...]) -> Model:
    """Return the robot with bodies attached to links."""
    if not attached:
        return model
    by_link = {body.link: body for body in attached}
    links = tuple(_attach_body(link, by_link[link.name]) if link.name in by_link else link for link in model.description.links)
    try:
        return build(replace(model.description, links=links))
    except ModelError as problem:
        raise ScenarioError(f"with the body on link {attached[-1].link}, {problem.message}", place=attached[-1].place,
                            hint="the body is too heavy or too large for the robot") from None


def _attach_body(link: Link, body: Attach) -> Link:
    combined = combine_bodies([(part.mass, np.array(part.com), symmetric_matrix(part.inertia)) for part in (link, body)])
    return replace(link, mass=combined.mass, com=tuple(combined.com), inertia=tuple(combined.inertia[np.triu_indices(3)]))
