"""Initial value problems, options of integrators, and segments of runs."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from liedyn.arrays import Array, Integers, Mask
from liedyn.codegen.rhs import GeneratedRhs, generated_rhs, generated_rhs_jacobian
from liedyn.codegen.scenario_inputs import ConstraintTables, ScenarioTables
from liedyn.codegen.specialize import GeneratedBatchFunction, read_constants
from liedyn.dynamics.constraints.constraints import constraint_jacobian, constraint_workspace_for
from liedyn.dynamics.constraints.couplings import ReducedModel, reduced_model
from liedyn.dynamics.constraints.inertia_transfer import transfer_inertia
from liedyn.dynamics.constraints.rank import equation_rank
from liedyn.dynamics.inertial_parameters import LINK_UNITS
from liedyn.dynamics.manifold import random_configuration
from liedyn.dynamics.singular_joints import singular_coordinates
from liedyn.errors import LiedynWarning, Place, WarningLog, summarized
from liedyn.integrators.run_state import Record, Stages, State, mapped_zeros
from liedyn.kernels.constraints.stages import (
    DRIFT,
    DRIFT_VELOCITY,
    EQUATIONS,
    RANK,
    SINGULAR_COUNT,
    SINGULAR_EQUATION,
    SINGULAR_ROW_TIME,
    SINGULAR_ROWS,
    SINGULAR_TIME,
    SOLUTION,
    TIME_1,
    TIME_2,
    TOLERANCE,
)
from liedyn.kernels.couplings import coupling_views
from liedyn.kernels.hybrid_dynamics import coupled_motion_workspace_size
from liedyn.kernels.simulation.contact import Contacts
from liedyn.kernels.simulation.elastic_joint_law import MotorLaw
from liedyn.kernels.simulation.joint_laws import COMPUTED, GRAVITY, JointLaws, Stops
from liedyn.kernels.simulation.right_hand_side import ConstrainedSystem, MotionWorkspace, SystemModel
from liedyn.kernels.simulation.signals import POSITION, TORQUE, VELOCITY, InputSchedule, Signals
from liedyn.kernels.simulation.slotine_li_law import estimate_count
from liedyn.model.model import Model

NO_DIRECTION = 2             # a direction of `InitialValueProblem.directions`
STAYS_AT_ZERO = 2.0          # factor of a sign in `SegmentStart.signs`: the expression stays at zero
STATE_LIMIT = 1e12           # rad, m and their rates: larger states are meaningless, since sines of such angles are rounding


def within_limit(q: Array, v: Array) -> Mask:
    """Return (...,) bool: whether all entries of the states q (..., nq), v (..., nv) are below STATE_LIMIT; False for NaN."""
    mask: Mask = (np.abs(np.concatenate([q, v], axis=-1)) < STATE_LIMIT).all(axis=-1)
    return mask


@dataclass(frozen=True, eq=False)
class ConstraintOptions:
    """Settings of the constraints of a model in a run.

    signals    (6 driven,) signals x y z roll pitch yaw of each driven loop
    tolerance  maximum residual [rad | m] after a projection; 0: no projection
    frequency  of Baumgarte's stabilization [rad/s], or 0
    """

    signals: Integers
    tolerance: float = 1e-12
    frequency: float = 0.0


@dataclass(frozen=True, eq=False, kw_only=True)
class InitialValueProblem:
    """An initial value problem on the manifold: a model, its inputs, and the initial state.

    q, v                           (nq,), (nv,) initial state
    passive                        whether joint springs, damping and friction act
    constraints                    None: the constraints of the model are ignored

    schedule, signals              signals of each coordinate, wrench and event, and their definitions
    stack_size                     stack size of the programs of signals
    signal_names, signal_locations names and locations of signals, then of the limits of forces, for messages
    max_step                       upper bound of the maximum step of the options [s]
    clocks, rebind                 names of the clocks of signals; function of start times by name: returns schedule and signals

    law                            law of the motor torques, in addition to the schedule; or None
    joint_laws                     laws of other joints, and limits of all forces; or None
    control_model                  model that the laws compute with; None: `model`
    input_jacobian                 (problem, t, q, v) -> two (nv, 2 nv), derivatives of the forces of joints and of wrenches with
                                   respect to the state (`control.law_derivatives`); None: finite differences
    sampled                        laws of a sampled controller (`simulation.control.sampled_control`); or None

    contacts                       contacts of links with planes and with each other; or None
    stops                          stops at limits of joints; or None
    stop_loads                     (m,) loads of compliant stops [N m | N], for estimates of their time constants
    directions                     of the events of schedule.watch, then of `stops.resting`: 1 rising, -1 falling, 0 both, or
                                   NO_DIRECTION
    hard_stop_scales               of the last of these events, which are hard stops: magnitude of the terms of their expressions.
                                   A state beyond a hard stop is never accepted

    transferred_armature           (nv,) added to the armatures of `model` by `dynamics.constraints.inertia_transfer`; or empty

    code                           generated functions by name, shared by copies of `with_same_code`
    curve_sizes                    maximum terms of polynomials by (signal, derivative), see `simulation.expression_motion`
    """

    model: Model
    q: Array
    v: Array
    passive: bool = True
    constraints: ConstraintOptions | None = None

    schedule: InputSchedule
    signals: Signals
    stack_size: int
    signal_names: tuple[str, ...] = ()
    signal_locations: tuple[Place, ...] = ()
    max_step: float = np.inf
    clocks: tuple[str, ...] = ()
    rebind: Callable[[Mapping[str, float]], tuple[InputSchedule, Signals]] | None = None

    law: MotorLaw | None = None
    joint_laws: JointLaws | None = None
    control_model: Model | None = None
    input_jacobian: Callable[[InitialValueProblem, float, Array, Array], tuple[Array, Array]] | None = None
    sampled: Any = None

    contacts: Contacts | None = None
    stops: Stops | None = None
    stop_loads: Array = field(default_factory=lambda: np.zeros(0))
    directions: tuple[int, ...] = ()
    hard_stop_scales: tuple[float, ...] = ()

    transferred_armature: Array = field(default_factory=lambda: np.zeros(0))

    code: dict[str, Any] = field(init=False, repr=False, default_factory=dict)
    curve_sizes: dict[tuple[int, int], float] = field(init=False, repr=False, default_factory=dict)

    def restarted_at(self, start_times: Mapping[str, float]) -> InitialValueProblem:
        """Return a copy with other start times of its clocks [s]; nothing is compiled again."""
        schedule, signals = self.rebind(start_times) if self.rebind else (self.schedule, self.signals)
        sampled = None if self.sampled is None else self.sampled.restarted_at(start_times)
        return self.with_same_code(schedule=schedule, signals=signals, sampled=sampled)

    def with_same_code(self, **changes: Any) -> InitialValueProblem:
        """Return a copy with changes that generated code does not depend on, which shares the code."""
        other = replace(self, **changes)
        object.__setattr__(other, "code", self.code)
        return other

    def with_transferred_inertia(self) -> InitialValueProblem:
        """Return the problem with inertia transferred to mimic joints that move none, if there are any."""
        transfer = transfer_inertia(self.model, self.prescribed) if self.constraints is not None else None
        if transfer is None or transfer.model is self.model:
            return self
        return replace(self, model=transfer.model, transferred_armature=transfer.armature)

    @property
    def law_model(self) -> Model:
        """The model that the laws compute with."""
        return self.model if self.control_model is None else self.control_model

    @property
    def size(self) -> int:
        """Number of entries of the state y = [x; v; z; work], see `kernels.simulation.right_hand_side`."""
        return int(2 * self.model.nv + len(self.schedule.integral) + estimate_count(self.joint_laws) + 1)

    @property
    def prescribed(self) -> Mask:
        """(nv,) bool: coordinates with prescribed acceleration, including those that rest at hard stops."""
        mask = np.asarray(self.schedule.level != TORQUE)
        if self.stops is not None:
            mask[self.stops.resting] = True
        return mask

    @cached_property
    def forced_links(self) -> Integers:
        """Sorted links with external wrenches or contacts."""
        touching = [] if self.contacts is None else [self.contacts.link, self.contacts.other]
        return np.unique(np.concatenate([self.schedule.force_link, *touching]).astype(np.int64))

    @property
    def thrusters(self) -> Integers:
        """Indices of the actuators that have thrusts, in the order of the thrusts."""
        return self._thrusters[0]

    @cached_property
    def _thrusters(self) -> tuple[Integers, Integers]:
        """The actuators that have thrusts, and the first of the wrenches of each among those of actuators."""
        actuators = self.schedule.force_actuator
        indices, first = np.unique(actuators[actuators >= 0], return_index=True)
        return indices, first

    @property
    def wrench_size(self) -> int:
        """Number of entries of `MotionWorkspace.wrench`: external wrenches, then the thrust of each wrench of an actuator."""
        return 6 * len(self.forced_links) + int(np.count_nonzero(self.schedule.force_actuator >= 0))

    def split_wrench(self, wrench: Array) -> tuple[Array, Array]:
        """Return the external wrenches (…, links, 6) on `forced_links`, and the thrusts (…, m) of `thrusters`."""
        links = len(self.forced_links)
        return wrench[..., :6 * links].reshape(*wrench.shape[:-1], links, 6), wrench[..., 6 * links:][..., self._thrusters[1]]

    @cached_property
    def elimination(self) -> ReducedModel | None:
        """The robot whose couplings the right-hand side eliminates; None if it solves for multipliers, or has no constraints.

        Without projections, couplings stay open if they start open. Two coordinates of a coupling that are both prescribed
        have separate forces, and their motions may contradict each other.
        """
        options = self.constraints
        if options is None or options.frequency or not options.tolerance or not self.model.has_only_linear_couplings:
            return None
        reduced = reduced_model(self.model, "simulate", prescribed=self.prescribed)
        return None if self.prescribed[reduced.elimination.follower].any() else reduced

    @property
    def solves_constraints(self) -> bool:
        """Whether the right-hand side solves for multipliers of constraints, and steps end with a projection onto them."""
        return self.constraints is not None and self.elimination is None

    def system(self, eliminate: bool = True) -> SystemModel:
        """Return the data of the compiled right-hand side, with new workspace of the contacts.

        eliminate: whether it contains the couplings of `elimination`
        """
        links, contacts, prescribed = self.forced_links, self.contacts, self.prescribed
        known, couplings = prescribed, None
        if eliminate and self.elimination is not None:
            known, arrays = self.elimination.mask, self.elimination.model
            couplings = coupling_views.py_func(arrays.index, arrays.constants)
        if contacts is not None:
            slot, other = (np.searchsorted(links, x).astype(np.int64) for x in (contacts.link, contacts.other))
            contacts = contacts._replace(slot=slot, other_slot=other, depth=np.zeros(len(slot)))
        return SystemModel(prescribed, known, couplings, np.searchsorted(links, self.schedule.force_link).astype(np.int64),
                     links.astype(np.int64), np.array([self.passive and self.model.has_passive_forces]), self.law,
                     contacts, self._laws_with_loops(), self.stops or _no_stops(self.model.nv))

    @property
    def laws_depend_on_loops(self) -> bool:
        """Whether forces of joint laws are those of a robot with loops."""
        laws = self.joint_laws
        return (laws is not None and self.constraints is not None and not self.model.has_only_linear_couplings
                and bool(laws.active_laws[[GRAVITY, COMPUTED]].any()))

    @cached_property
    def held_at_rest(self) -> Mask:
        """(nv,) coordinates at which forces of gravity compensation hold a robot with loops.

        These are the coordinates of the law, and those that are prescribed if the law alone does not hold the robot in a random
        configuration: the initial one may be singular before loops are closed.
        """
        assert self.joint_laws is not None
        gravity, model = self.joint_laws.gravity, self.law_model
        A = np.where(gravity, 0.0, constraint_jacobian(model, random_configuration(model, np.random.default_rng(0))))
        return gravity if equation_rank(model, A) == np.count_nonzero(~gravity) else gravity | self.prescribed

    def _laws_with_loops(self) -> JointLaws | None:
        """Return the joint laws, for robots with loops with new constraint workspaces.

        These call generic kernels, which are valid for all angles.
        """
        laws = self.joint_laws
        if laws is None or not self.laws_depend_on_loops:
            return laws
        at_rest, none = self.held_at_rest, np.zeros(self.model.nv, dtype=bool)
        gravity, computed = (constraint_workspace_for(self.law_model, (mask, none, none), passive,
                                                      stage_set=(EQUATIONS, SOLUTION), generic=True).buffer
                             for mask, passive in ((at_rest, False), (laws.prescribed, self.passive)))
        return laws._replace(gravity_loops=gravity, computed_loops=computed)

    def tables(self) -> ScenarioTables:
        """Return the tables from which the generated functions are traced."""
        tied = None
        if self.constraints is not None and self.solves_constraints:
            tied = ConstraintTables(self.constraints.signals, self._axis_rotations, self.constraints.frequency > 0.0)
        varying = self.code.get("varying", read_constants() if tied is None else ())
        return ScenarioTables(self.model, self.system(), self.schedule, self.signals, tied, varying)

    @cached_property
    def without_stops(self) -> InitialValueProblem:
        """The problem without stops at limits."""
        return self if self.stops is None else replace(self, stops=None, hard_stop_scales=())

    @property
    def generated_rhs(self) -> GeneratedRhs | None:
        """Return the generated right-hand side; None if the generic kernels are used."""
        if "rhs" not in self.code:
            tables = self.tables()
            self.code["rhs"] = None if self.laws_depend_on_loops else generated_rhs(tables)
            self.code["varying"] = tables.varying                      # the same wherever this code is used later
        generated: GeneratedRhs | None = self.code["rhs"]
        return generated

    @property
    def generated_jacobian(self) -> GeneratedBatchFunction | None:
        """Return the generated derivative of the right-hand side, see `RightHandSideJacobian`; None if not supported."""
        if self.solves_constraints or self.generated_rhs is None:
            return None
        if "jacobian" not in self.code:
            self.code["jacobian"] = generated_rhs_jacobian(self.tables())
        generated: GeneratedBatchFunction | None = self.code["jacobian"]
        return generated

    def workspace(self) -> MotionWorkspace:
        """Return a new workspace of the right-hand side."""
        m, slots = self.model, len(self.forced_links)
        return MotionWorkspace(np.zeros(m.nq), np.zeros(m.nv), np.zeros(m.nv), np.zeros(m.nv),
                          np.zeros(6 * m.n_bodies if slots else 0), np.zeros(self.wrench_size), np.zeros(max(self.stack_size, 3)),
                          np.array([-1.0, 0.0]), np.zeros(coupled_motion_workspace_size(m.n_bodies, m.nv, self.elimination)),
                          np.zeros(2 * (self.size - 2 * m.nv - 1)))

    def constrained_system(self) -> ConstrainedSystem | None:
        """Return the constraints with a new workspace; None without constraints."""
        m, constraints, level = self.model, self.constraints, np.asarray(self.schedule.level)
        if constraints is None:
            return None
        rests = self.prescribed & (level == TORQUE)
        masks = self.prescribed, *(mask | self._without_inertia(mask) for mask in (
            (level == POSITION) | rests, np.isin(level, (POSITION, VELOCITY)) | rests))
        workspace = constraint_workspace_for(m, masks, self.passive, constraints.frequency, bool(len(self.forced_links)))
        arrays = workspace.workspace
        arrays.statistics[[TOLERANCE, RANK, TIME_1, TIME_2]] = constraints.tolerance, -1.0, np.inf, -np.inf
        return ConstrainedSystem(workspace.buffer, constraints.signals, self._axis_rotations, arrays.constraint_motion,
                                 arrays.multipliers, arrays.statistics)

    def _without_inertia(self, fixed: Mask) -> Mask:
        """Return the coordinates that move no inertia, which projections do not move. fixed: coordinates that do not move."""
        mask = np.zeros(self.model.nv, dtype=bool)
        if not self.model.moves_inertia:
            mask[singular_coordinates(self.model, fixed)] = True
        return mask

    @property
    def _axis_rotations(self) -> Array:
        turns = [constraint.turn for constraint in self.model.constraints if constraint.driven]
        return np.array([np.eye(3) if turn is None else turn for turn in turns]).reshape(-1)

    def allocate_record(self, times: Array) -> Record:
        """Return a record of zeros with rows for these times."""
        m, n = self.model, len(times)
        equations, residuals, motions = (0, 0, 0) if self.constraints is None else (m.nc, 2, 4 * len(self.constraints.signals))
        q, v, a, tau = (mapped_zeros((n, width)) for width in (m.nq, m.nv, m.nv, m.nv))
        return Record(times, q, v, a, tau, mapped_zeros((n, self.wrench_size)), mapped_zeros((n,)),
                      mapped_zeros((n, estimate_count(self.joint_laws))),
                      mapped_zeros((n, equations)), mapped_zeros((n, residuals)), mapped_zeros((n, motions)),
                      mapped_zeros((n, len(self.schedule.integral) - len(self.schedule.ki))))


@dataclass(frozen=True)
class Options:
    """Options of an integrator.

    method  rk4, variational, generalized_alpha (fixed `step`; `rho`), dopri5, dop853, rodas5p, or a method of SciPy (rtol, atol,
            max_step)
    """

    method: str = "rk4"
    step: float = 1e-3
    rtol: float = 1e-8
    atol: float = 1e-10
    max_step: float = np.inf
    rho: float = 0.9


# Factor of tolerances. BDF and LSODA restart with order 1 after each event. The error of impact times of a bouncing ball is
# 9e-6 s with the default tolerances and 9e-10 s with tightened ones.
_EVENT_FACTOR = 1e-4
MULTISTEP = "BDF", "LSODA"
IMPLICIT = "Radau", *MULTISTEP, "rodas5p"              # take a Jacobian


def event_options(options: Options, events: bool) -> Options:
    """Return the options for a run with or without events: multistep methods have smaller tolerances with events."""
    if not events or options.method not in MULTISTEP:
        return options
    return replace(options, rtol=max(_EVENT_FACTOR * options.rtol, 1e-13), atol=_EVENT_FACTOR * options.atol)


@dataclass(frozen=True, eq=False)
class SegmentStart:
    """Initial state of a segment of a run.

    t, q, v         time [s] and state
    supplied_energy energy [J] supplied so far
    triggered       events that have just happened
    step            first step of adaptive methods; 0: to be chosen
    integral        (nv,) integrals of pid laws [N m | N], then stretches of contacts [m] if these stick; None: zero
    estimate        (P,) estimated parameters of `slotine_li`; None: those of its robot
    signs           side of zero of each event expression of schedule.watch. NaN: unknown; times STAYS_AT_ZERO: the expression
                    stays at zero
    armed, bounds   whether reaching zero is an event, and rounding bounds of the expressions; see `zero_crossings`. None: unknown
    jump_events     events among `triggered` whose expressions have jumped over zero, and are not near it
    switch_signs    signs of the other switches if nothing has changed since; NaN: unknown
    """

    t: float
    q: Array
    v: Array
    supplied_energy: float = 0.0
    triggered: tuple[int, ...] = ()
    step: float = 0.0
    integral: Array | None = None
    estimate: Array | None = None
    signs: Array | None = None
    armed: Mask | None = None
    bounds: Array | None = None
    jump_events: tuple[int, ...] = ()
    switch_signs: Array | None = None

    def state_dict(self) -> dict[str, Any]:
        """Return the fields as arrays and JSON values."""
        return vars(self) | {"triggered": list(self.triggered), "jump_events": list(self.jump_events)}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> SegmentStart:
        """Return the object of a `state_dict`."""
        return cls(**{**state} | {"triggered": tuple(state["triggered"]), "jump_events": tuple(state["jump_events"])})


@dataclass(frozen=True, eq=False)
class Segment:
    """Result of a segment.

    record  rows at the output times that were reached; if an event ended the segment, the last row is the state just before it
    end     final state, with the events that ended the segment (none: the last output was reached)
    """

    record: Record
    statistics: Statistics
    end: SegmentStart


class RunObserver:
    """Callbacks during the computation of a segment; this base class does nothing.

    saved_state  state from a `checkpoint` at which the segment continues; None: from the start
    """

    saved_state: Mapping[str, Any] | None = None

    def begin_segment(self, record: Record, count: Integers) -> None:
        """Called before the first step: the rows [0, count[NEXT_OUTPUT]) of record are complete, now and later."""

    def checkpoint(self, t: float, state_dict: Callable[[], dict[str, Any]]) -> None:
        """Called between chunks or steps at time t. An exception ends the run.

        state_dict: function that returns the state from which the segment can be continued.
        """


@summarized
@dataclass
class Statistics:
    """Numbers of steps, rejected steps and evaluations of the right-hand side, and computation time [s]."""

    steps: int = 0
    rejected: int = 0
    evaluations: int = 0
    seconds: float = 0.0
    loops: LoopStatistics | None = None
    warnings: tuple[LiedynWarning, ...] = ()

    def plus(self, other: Statistics) -> Statistics:
        """Return the sum with the statistics of another segment."""
        loops = self.loops.combine(other.loops) if self.loops and other.loops else self.loops or other.loops
        return Statistics(self.steps + other.steps, self.rejected + other.rejected, self.evaluations + other.evaluations,
                          self.seconds + other.seconds, loops, tuple(WarningLog((*self.warnings, *other.warnings))))

    def state_dict(self) -> dict[str, Any]:
        """Return the fields as arrays and JSON values."""
        return vars(self) | {"loops": self.loops and dict(vars(self.loops)),
                             "warnings": [warning.to_dict() for warning in self.warnings]}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any]) -> Statistics:
        """Return the object of a `state_dict`."""
        return cls(**{**state} | {"loops": state["loops"] and LoopStatistics(**state["loops"]),
                                  "warnings": tuple(map(LiedynWarning.from_dict, state["warnings"]))})


@summarized
@dataclass(frozen=True)
class LoopStatistics:
    """Statistics of the constraints in a run.

    drift           maximum residual [rad | m] before a projection
    drift_velocity  maximum velocity residual [rad/s | m/s] before a projection
    singular        number of singular configurations that were passed
    singular_time   time of the first one, and singular_row, the equation that became dependent
    outputs         number of outputs in singular configurations, and output_time, the time of the first
    """

    drift: float
    drift_velocity: float
    singular: int = 0
    singular_time: float = np.nan
    singular_row: int = -1
    outputs: int = 0
    output_time: float = np.nan

    def combine(self, other: LoopStatistics) -> LoopStatistics:
        """Return the statistics of both: maximum drifts, the sum of singular configurations and the first of them."""
        first, first_output = self if self.singular else other, self if self.outputs else other
        return LoopStatistics(max(self.drift, other.drift), max(self.drift_velocity, other.drift_velocity),
                              self.singular + other.singular, first.singular_time, first.singular_row,
                              self.outputs + other.outputs, first_output.output_time)


def loop_statistics(constraints: ConstrainedSystem | None) -> LoopStatistics | None:
    """Return the statistics of the constraints of a run; None without constraints."""
    if constraints is None:
        return None
    f = constraints.statistics
    return LoopStatistics(float(f[DRIFT]), float(f[DRIFT_VELOCITY]), int(f[SINGULAR_COUNT]), float(f[SINGULAR_TIME]),
                          int(f[SINGULAR_EQUATION]), int(f[SINGULAR_ROWS]), float(f[SINGULAR_ROW_TIME]))


def _no_stops(nv: int) -> Stops:
    none = np.zeros(0, dtype=np.int64)
    return Stops(none, none, np.zeros(0), none, none, none, np.zeros(0), none, none, np.zeros(0), np.zeros(nv))


def initial_state(problem: InitialValueProblem, start: SegmentStart) -> State:
    """Return the state at the start of a segment."""
    y = state_vector(problem, start.v, start.integral, start.supplied_energy, start.estimate)
    return State(start.q.copy(), y, np.array([start.t, start.step, 0.0, 0.0, 0.0, 0.0]), np.zeros(6, dtype=np.int64))


def state_vector(problem: InitialValueProblem, v: Array, integral: Array | None = None, supplied_energy: float = 0.0,
                 estimate: Array | None = None) -> Array:
    """Return y = [0; v; z; work]. integral, estimate: see `SegmentStart`."""
    z = np.zeros(len(problem.schedule.integral)) if integral is None else integral[problem.schedule.integral]
    if estimate is None:
        law = None if problem.joint_laws is None else problem.joint_laws.slotine_li
        estimate = np.zeros(0) if law is None else law.parameters[law.state >= 0]
    return np.concatenate([np.zeros(problem.model.nv), v, z, estimate, [supplied_energy]])


def state_integrals(problem: InitialValueProblem, y: Array) -> Array:
    """Return the integrals of a state y, see `SegmentStart`."""
    nv, integral = problem.model.nv, problem.schedule.integral
    out = np.zeros(max(nv, 1 + int(integral.max(initial=-1))))
    out[integral] = y[2 * nv:2 * nv + len(integral)]
    return out


def estimate_units(laws: JointLaws | None) -> list[str]:
    """Return the units of the parameters that `slotine_li` estimates."""
    if laws is None or laws.slotine_li is None:
        return []
    return [LINK_UNITS[k % len(LINK_UNITS)] for k in np.flatnonzero(laws.slotine_li.state >= 0)]


def estimated_parameters(problem: InitialValueProblem, y: Array) -> Array:
    """Return the (P,) estimated parameters of `slotine_li` in a state y."""
    return y[2 * problem.model.nv + len(problem.schedule.integral):-1].copy()


def first_rows(record: Record, count: int) -> Record:
    """Return the first `count` rows of a record."""
    return Record(*(x[:count] for x in record))


def allocate_stages(stages: int, problem: InitialValueProblem, n_switches: int) -> Stages:
    """Allocate the stages of a step. n_switches: number of switches whose values are stored next to the rates."""
    n, nq, nv = problem.size, problem.model.nq, problem.model.nv
    return Stages(np.zeros((stages + 2, n + n_switches)), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(nv), np.zeros(nq),
                  np.zeros(nq), np.zeros(nv))
