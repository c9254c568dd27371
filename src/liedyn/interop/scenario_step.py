"""A whole step of a scenario as programs for other languages: integrator, contacts, motors, laws, and a sampled controller."""
from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from liedyn.arrays import Array, Integers
from liedyn.codegen.batch_step import (
    CONTRADICTED_MODES,
    DEPENDENT_EQUATIONS,
    NONFINITE_EVENT_VALUE,
    NUMBERS_PER_EVENT,
    Pivots,
    trace_control,
    trace_outputs,
    trace_step,
)
from liedyn.codegen.joint_modes import FREE, MODE_SIZE, OF_SCENARIO
from liedyn.codegen.rhs import signal_instructions
from liedyn.codegen.sampled_laws import trace_sample
from liedyn.codegen.scenario_inputs import ScenarioTables
from liedyn.codegen.trace import GeneratedProgram, Trace
from liedyn.codegen.tracer import NotTraceableError
from liedyn.dynamics.constraints.constraints import independent_equations
from liedyn.errors import LiedynWarning, Place, ScenarioError, list_names
from liedyn.integrators.problem import InitialValueProblem, state_vector
from liedyn.io.scenarios.action_schema import EndRun, RecordState
from liedyn.io.scenarios.scenario import Event, Scenario
from liedyn.kernels.constraints.driver import LOOP_OPEN
from liedyn.kernels.simulation.contact import MATERIAL_SIZE
from liedyn.kernels.simulation.rate_evaluation import INVALID_ARGUMENTS
from liedyn.kernels.simulation.right_hand_side import AT_EVENT, BAD_SIGNAL, NOT_FINITE, SINGULAR
from liedyn.kernels.simulation.signals import CONSTANT, ORDER, POSITION, SWITCH_OPERATIONS, TORQUE, VELOCITY
from liedyn.simulation.control.sampled_control import SampledLaws
from liedyn.simulation.control.thrusts import check_varying_constants
from liedyn.simulation.preparation import PreparedRun
from liedyn.simulation.trajectory_columns import WRENCH, thrust_names

METHOD = "rk4"
# why a step returns a code, for people; another code than these cannot occur
STEP_REASONS = {BAD_SIGNAL: "a signal is not finite", SINGULAR: "the mass matrix is singular",
                NOT_FINITE: "the motion is no longer finite",
                INVALID_ARGUMENTS: "an angle is beyond 1e5 rad, a number is not finite, or h is negative",
                LOOP_OPEN: "a loop can no longer be closed: the step is too long, or the configuration cannot be reached",
                DEPENDENT_EQUATIONS: "the equations of the loops that were chosen at the start are no longer independent",
                CONTRADICTED_MODES: "loops prevent the motion of prescribed joints: fewer can be prescribed",
                NONFINITE_EVENT_VALUE: "the expression of an event is not finite", AT_EVENT: "an event ends the run"}
_MATERIAL = ("stiffness", "damping", "friction", "regularization speed", "width", "static friction", "sticking stiffness",
             "sticking damping")


@dataclass(frozen=True, eq=False)
class Sampler:
    """The laws of a sampled controller.

    trace     see `trace_sample`
    tables    of the laws
    interval  between samples [s]
    delay     from a sample to its torques [s]
    torques   indices of the torques in the values of the step
    inputs    indices of these torques among the inputs: coordinates of v, then actuators
    """

    trace: Trace
    tables: ScenarioTables
    interval: float
    delay: float
    torques: Integers
    inputs: Integers


@dataclass(frozen=True, eq=False)
class ScenarioStep:
    """A step of a scenario with rk4.

    run      the prepared run
    tables   from which the programs are traced
    step, outputs   as `codegen.batch_step.BatchStep`, for one state
    varying  indices of the constants of the robot that are inputs
    sampler  of a sampled controller; None
    fixed    why coordinates cannot switch between free and prescribed, by index in v
    """

    run: PreparedRun
    tables: ScenarioTables
    step: GeneratedProgram
    outputs: GeneratedProgram
    varying: tuple[int, ...]
    sampler: Sampler | None
    fixed: Mapping[int, str]

    @property
    def problem(self) -> InitialValueProblem:
        """The problem of the run."""
        return self.run.problem

    @cached_property
    def initial_work(self) -> Array:
        """The array `work` of `BatchStep` at the start."""
        events = len(self.tables.schedule.watch)
        work = np.zeros(1 + NUMBERS_PER_EVENT * events)
        work[1 + events:1 + 3 * events] = np.nan                       # values of events are not known
        return work

    @cached_property
    def initial_states(self) -> Array:
        """States of laws at the start: integrals of pid laws, stretches of contacts that stick, estimated parameters."""
        problem = self.problem
        states: Array = state_vector(problem, problem.v)[2 * problem.model.nv:-1]
        return states

    @property
    def initial_modes(self) -> Array:
        """Numbers of `codegen.joint_modes` at the start: the modes of the scenario."""
        switchable = self.tables.switchable
        modes = np.zeros((len(switchable.v) if switchable else 0, MODE_SIZE))
        if switchable:
            modes[:, 0] = np.where(switchable.level == TORQUE, FREE, OF_SCENARIO)
        return modes

    @property
    def warnings(self) -> tuple[LiedynWarning, ...]:
        """Warnings of the run, and about switches of the state."""
        events = {self.problem.signal_names[k] for k in self.tables.schedule.watch}
        names = [name for name, _ in state_switches(self.problem) if name not in events]
        more = (LiedynWarning("switches-in-steps",
                              f"switches of the state are evaluated at the stages of a step, and not located as in a run: steps "
                              f"that contain one are of low order; use shorter steps where this matters ({list_names(names, 4)})"
                              ),) if names else ()
        return (*self.run.warnings, *more)

    @property
    def value_names(self) -> list[str]:
        """Names of the numbers of the scenario that the step reads."""
        return list(value_names(self.problem, self.tables))

    @property
    def law_value_names(self) -> list[str]:
        """Names of the numbers of the laws of a sampled controller."""
        assert self.sampler is not None and self.problem.sampled is not None, "the scenario has a sampled controller"
        return list(value_names(self.problem.sampled.law, self.sampler.tables))

    @property
    def breaks(self) -> Array:
        """(n, 2) times at which signals switch, each with the last time before it: no step may pass one."""
        schedule = self.tables.schedule
        inside = (schedule.breaks > 0.0) & (schedule.breaks < self.run.scenario.duration)
        return np.column_stack([schedule.breaks[inside], schedule.before[inside]])

    @property
    def regular_step(self) -> float:
        """Length of a step [s] that a run of the scenario takes; a whole number of them makes up the sampling interval."""
        h = self.run.scenario.integrator.step
        return h if self.sampler is None else self.sampler.interval / math.ceil(self.sampler.interval / h * (1.0 - 1e-9))

    @property
    def end_times(self) -> tuple[float, ...]:
        """Times at which events end the run."""
        return tuple(t for event in self.run.scenario.events if _ends(event) for t in event.at)


def scenario_step(run: PreparedRun, varying: tuple[int, ...] = (), *, single: bool = False,
                  has_modes: bool = False) -> ScenarioStep:
    """Return the step of a scenario for other languages.

    varying    indices in the constants of the robot that are inputs of the step, not parts of it
    single     whether it computes in single precision
    has_modes  whether the modes of coordinates, free or prescribed, are inputs, too

    Raises ScenarioError, which names what the step of another language cannot contain.
    """
    raise_for_obstacles("a step in another language", step_obstacles(run))
    problem, pivots, fixed = run.problem, _pivots(run.problem), dict[int, str]()
    if len(problem.thrusters):
        check_varying_constants(problem.model, varying)
    tables = problem.tables()._replace(varying=(), single=single)
    if has_modes:
        fixed = _fixed_coordinates(problem, pivots)
        switchable = np.setdiff1d(np.arange(problem.model.nv), [*fixed])
        tables = tables.with_switchable(switchable) if len(switchable) else tables
    with _law_errors(run, "a step in another language"):
        step, outputs = (make(tables, METHOD, varying, pivots, problem.directions) for make in (trace_step, trace_outputs))
        sampler = None if problem.sampled is None else _sampler(run, tables, problem.sampled)
    return ScenarioStep(run, tables, step, outputs, varying, sampler, fixed)


def scenario_control(run: PreparedRun, *, single: bool = False) -> ScenarioStep:
    """Return the control laws, motors and signals of a scenario alone: they are its `step` and `outputs`, or its sampler.

    Raises ScenarioError, which names what the controller of another language cannot contain.
    """
    problem = run.problem
    raise_for_obstacles("a controller in another language", control_obstacles(run))
    tables = problem.tables()._replace(varying=(), single=single)
    with _law_errors(run, "a controller in another language"):
        program = trace_control(tables, problem.directions)
        sampler = None if problem.sampled is None else _sampler(run, tables, problem.sampled)
    return ScenarioStep(run, tables, program, program, (), sampler, {})


@contextmanager
def _law_errors(run: PreparedRun, kind: str) -> Iterator[None]:
    """Raise ScenarioError for a law or signal whose computation branches on the state. kind: what cannot contain it."""
    control = run.scenario.control
    try:
        yield
    except NotTraceableError:
        raise ScenarioError(f"{kind} cannot contain {f'the law {control.law}' if control else 'a signal'}, "
                            "whose computation depends on the state", place=control.place if control else None) from None


def _pivots(problem: InitialValueProblem, free: Integers | None = None) -> Pivots:
    """Return the independent constraint equations at the initial state. free: coordinates that are not prescribed."""
    if not problem.solves_constraints:
        return ()
    level, prescribed = problem.schedule.level, problem.prescribed
    prescribed[[] if free is None else free] = False
    return independent_equations(problem.model, problem.q, prescribed,
                                 (level == POSITION, np.isin(level, (POSITION, VELOCITY))))


def _fixed_coordinates(problem: InitialValueProblem, pivots: Pivots) -> dict[int, str]:
    """Return why coordinates cannot switch between free and prescribed, by index in v."""
    model, schedule = problem.model, problem.schedule
    fixed = {int(k): "it follows other joints" for k in np.flatnonzero(model.follows)}
    for k in map(int, np.flatnonzero(schedule.level != TORQUE)):
        if schedule.q_of_v[k] < 0 and schedule.level[k] == POSITION:
            fixed.setdefault(k, "the scenario prescribes its pose")
        elif problem.sampled is not None:
            fixed.setdefault(k, "the sampled controller computes with its prescribed motion")
        elif pivots and len(_pivots(problem, np.array([k]))[-1]) > len(pivots[-1]):        # else these remain independent
            fixed.setdefault(k, "the loops have more equations without its prescribed motion")
    return fixed


# what a step cannot contain, whether the scenario has it, its place, and what is possible instead
Obstacle = tuple[str, bool, Place | None, str]


def raise_for_obstacles(kind: str, obstacles: Iterable[Obstacle]) -> None:
    """Raise ScenarioError for the first obstacle that the scenario has. kind: what cannot contain it."""
    for part, is_used, place, expected in obstacles:
        if is_used:
            raise ScenarioError(f"{kind} cannot contain {part}", place=place, expected=expected)


def common_obstacles(run: PreparedRun) -> Iterator[Obstacle]:
    """Yield what no trace of a scenario contains: what its runs change from one segment to the next."""
    yield (f"rigid friction of {list_names([friction.name for friction in run.frictions], 4)}", bool(run.frictions), None,
           "smooth friction")
    yield "a change of phases", len(run.scenario.phases) > 1, None, "one phase"
    yield ("a mimic joint that moves no inertia", bool(run.problem.transferred_armature.any()), None, "an armature, or inertia")


def state_switches(problem: InitialValueProblem) -> Iterator[tuple[str, Place | None]]:
    """Yield names and places of what switches with the state: expressions, limits of forces, stops, gears, contacts."""
    signals = problem.signals
    if not signals.switches.size:
        return
    count, locations, places = len(signals.kind), problem.signal_locations, dict[str, Place | None]()
    for k, name in enumerate(problem.signal_names):
        words = signal_instructions(signals, k) if k < count else np.zeros(0, dtype=np.int64)
        switches = words[np.isin(words & 255, SWITCH_OPERATIONS)] >> 8
        if name and (k >= count or switches.any()):
            places.setdefault(name, locations[k])
    yield from places.items() or [("contacts or resting joints", None)]


def step_obstacles(run: PreparedRun) -> Iterator[Obstacle]:
    """Yield what a step cannot contain."""
    scenario, problem = run.scenario, run.problem
    limits, stabilization = scenario.limits, scenario.stabilization
    yield (f"the integrator {scenario.integrator.method}", scenario.integrator.method != METHOD, scenario.integrator.place,
           f"integrator: {{method: {METHOD}, step: …}}")
    yield "hard stops", bool(limits and limits.mode == "hard"), limits.place if limits else None, "compliant stops, limits: stop"
    for event in scenario.events:
        ends = _ends(event) or all(isinstance(action, RecordState) for action in event.actions)
        yield f"what event {event.name} does", not ends, event.place, "do: stop, or record"
        yield (f"the condition of event {event.name}", bool(event.touch or event.every or event.phases or event.debounce),
               event.place, "at, or when, without phases and debounce")
    yield "the motion of a driven loop", any(x.driven for x in problem.model.constraints), None, "loops that are not driven"
    yield (f"stabilization by {stabilization.method}", problem.solves_constraints and stabilization.method != "projection",
           stabilization.place, "projection")
    yield from control_obstacles(run)


def control_obstacles(run: PreparedRun) -> Iterator[Obstacle]:
    """Yield what a controller cannot contain."""
    scenario, problem, sampled, control = run.scenario, run.problem, run.problem.sampled, run.scenario.control
    yield "a robot without a moving joint", not problem.model.nv, None, "a robot that moves"
    yield from common_obstacles(run)
    yield ("a law that computes with loops",
           any(each.laws_depend_on_loops for each in (problem, *([sampled.law] if sampled else []))),
           control.place if control else None, "a law without the loops, such as pd")
    if sampled is not None:
        yield from _obstacles_of_sampling(scenario, sampled)


def _obstacles_of_sampling(scenario: Scenario, sampled: SampledLaws) -> Iterator[Obstacle]:
    sampling = scenario.sampling
    assert sampling is not None
    for part, is_used in (("a controller in Python", bool(scenario.controller or sampling.function)),
                          ("an observer", scenario.observer is not None),
                          ("noise of measurements", bool(sampled.noise.deviations.any())),
                          ("a hold of first order", sampling.hold != "zero")):
        yield part, is_used, sampling.place, "sampling with rate or period, delay and quantization"


def _ends(event: Event) -> bool:
    return any(isinstance(action, EndRun) for action in event.actions)


def piece_tables(tables: ScenarioTables) -> tuple[Integers, Array, Array]:
    """Return the pieces of the signals that are curves: index of the first piece of each, with the end; breaks; coefficients."""
    signals, used = tables.signals, tables.curves
    pieces = [np.arange(signals.first[k], signals.first[k] + signals.count[k]) for k in used]
    rows = np.concatenate([*pieces, np.zeros(0, dtype=np.int64)]).astype(np.int64)
    first = np.cumsum([0, *map(len, pieces)])
    return first, signals.breaks[rows], signals.coefficients.reshape(-1, ORDER)[rows]


# names ------------------------------------------------------------------------------------------------------------------

def value_names(problem: InitialValueProblem, tables: ScenarioTables) -> Iterator[str]:
    """Yield a name for each number of `ScenarioTables.scenario_values`."""
    signals, v_names = tables.signals, problem.model.v_names
    constants = {int(signals.first[k]): problem.signal_names[k] for k in np.flatnonzero(signals.kind == CONSTANT)}
    for table, field, chosen in tables.number_masks:
        for k in map(int, np.flatnonzero(chosen)):
            if field == "literals":
                yield constants[k]
            elif table == "schedule" and field in ("kp", "kd"):
                yield f"{field} of {v_names[k]}"
            elif field == "force_basis":
                row, part = k // 6, WRENCH[k % 6]
                j, link = (int(x[row]) for x in (problem.schedule.force_actuator, problem.schedule.force_link))
                names = problem.model.link_names[link], thrust_names(problem.model)[j] if j >= 0 else ""
                yield f"{part} on {names[0]} of {names[1]}" if j >= 0 else f"external force {row + 1}, {part}"
            elif field == "material":
                yield f"contact {k // MATERIAL_SIZE + 1}, {_MATERIAL[k % MATERIAL_SIZE]}"
            else:
                yield f"{field} {k} of {table.replace('_', ' ')}"


# sampled controller -----------------------------------------------------------------------------------------------------

def _sampler(run: PreparedRun, motion: ScenarioTables, sampled: SampledLaws) -> Sampler:
    sampling = run.scenario.sampling
    assert sampling is not None
    tables = sampled.law.tables()._replace(varying=(), single=motion.single)
    inputs = np.flatnonzero(sampled.signal >= 0)
    torques = motion.places_of_constants(sampled.signal[inputs])
    trace = trace_sample(tables, sampled.controlled, sampled.limit, sampled.resolution, sampling.interval)
    return Sampler(trace, tables, sampling.interval, sampling.delay, torques, inputs)
