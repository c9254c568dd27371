"""Evaluation of a scenario at one instant: forces and accelerations from the compiled right-hand side of simulations."""
from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from liedyn.analysis.linear_system import LinearSystem
from liedyn.arrays import Array, ArrayLike, Integers, Mask, Patterns
from liedyn.codegen.rhs import read_signal
from liedyn.dynamics.batching.arrays import as_single_state
from liedyn.dynamics.batching.calls import check_finite
from liedyn.dynamics.constraints.constrained_derivatives import balance_derivatives
from liedyn.dynamics.constraints.constrained_dynamics import constrained_hybrid_dynamics
from liedyn.dynamics.constraints.rank import RANK, least_norm_solution, null_space
from liedyn.dynamics.dynamics import hybrid_dynamics
from liedyn.dynamics.manifold import integrate
from liedyn.errors import ComputationError, LiedynWarning, ModelError, ScenarioError, UsageError, list_names, summarized
from liedyn.immutable import Immutable
from liedyn.integrators.contact_forces import sliding_friction
from liedyn.integrators.problem import InitialValueProblem, Options, SegmentStart
from liedyn.integrators.segment import RightHandSide, evaluate_state
from liedyn.io.scenarios.scenario import Constant, Rule, Scenario, SlotineLiControl, Torque
from liedyn.io.scenarios.scenario_file import scenario_of
from liedyn.io.yaml_values import Overrides
from liedyn.kernels.simulation.signals import ACCELERATION, CONSTANT, TORQUE, InputSchedule, Signals
from liedyn.model.model import Model
from liedyn.robot_files import read_model
from liedyn.simulation.constraint_setup import constraint_motions_at
from liedyn.simulation.control.control_model import bind_control_models
from liedyn.simulation.control.joint_control import with_couplings
from liedyn.simulation.control.motors import add_rotor_inertias
from liedyn.simulation.control.thrusts import thrust_entries
from liedyn.simulation.joint_friction import (
    JointFriction,
    friction_event_names,
    matches_friction_event,
    rigid_frictions,
    sticking_coordinates,
    with_scenario_friction,
    without_friction,
)
from liedyn.simulation.limits import start_within_limits
from liedyn.simulation.name_binding import select, with_measured_values
from liedyn.simulation.segment_problems import HybridState

if TYPE_CHECKING:
    from liedyn.simulation.hybrid_simulation import HybridSimulation


@summarized
@dataclass(frozen=True, eq=False)
class OperatingPoint(Immutable):
    """A state, with the accelerations and forces at it.

    t              time [s]
    q, v, a        (nq,), (nv,), (nv,) configuration, velocity, acceleration
    tau            (nv,) generalized forces [N m | N]
    f_ext          (n_links, 6) external wrenches [m; f] in link frames; None without external wrenches
    integral       (nv,) integrals of pid laws [N m | N], zero for other coordinates
    integral_rate  (nv,) time derivative of `integral`
    thrusts        (m,) thrusts [N] of the actuators that the scenario drives
    """

    t: float
    q: Array
    v: Array
    a: Array
    tau: Array
    f_ext: Array | None
    integral: Array
    integral_rate: Array
    thrusts: Array = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, eq=False)
class LinearizationSetup:
    """A scenario bound to its robot.

    model       the robot in the current phase, with the bodies that are attached, and without rigid friction
    whole       the robot as loaded, without rigid friction
    integral    (nv,) current integrals of pid laws; None: zero
    frictions   rigid friction of coordinates
    simulation  the run up to the operating point, if it has events or rigid friction
    """

    scenario: Scenario
    model: Model
    problem: InitialValueProblem
    warnings: tuple[LiedynWarning, ...]
    whole: Model
    integral: Array | None = None
    frictions: tuple[JointFriction, ...] = ()
    simulation: HybridSimulation | None = None

    @property
    def prescribed(self) -> Mask:
        """Mask (nv,) of the coordinates with prescribed motion."""
        return np.asarray(self.problem.schedule.level != TORQUE)

    @property
    def sticking(self) -> Mask:
        """Mask (nv,) of the coordinates that friction holds at rest."""
        return sticking_coordinates(self.problem)

    def without_friction(self) -> LinearizationSetup:
        """Return the setup without the rigid friction of coordinates that stick or slide."""
        if self.simulation is None or not self.frictions:
            return self
        return replace(self, problem=self.simulation.problem_without_friction())

    def at_rest(self, t: float, q: Array) -> LinearizationSetup:
        """Return the setup at an equilibrium q, in which joints with rigid friction stick."""
        if self.simulation is None or not self.frictions:
            return self
        return replace(self, problem=self.simulation.problem_at_rest(t, q))


def prepare(path: str | os.PathLike[str] | Mapping[str, Any], overrides: Overrides = (),
            strict: bool = False) -> LinearizationSetup:
    """Load a scenario, or a robot file with defaults, and return its setup.

    Raises ScenarioError, ModelError, TrajectoryError, CheckFailed.
    """
    scenario = scenario_of(path, overrides, long=True)           # perhaps nothing of it is run
    model = read_model(scenario.robot, **scenario.robot_options, strict=strict)
    return _setup(start_within_limits(scenario, model), model)


def static_setup(model: Model, q: ArrayLike | None = None, tau: ArrayLike | None = None,
                 passive: bool = True) -> LinearizationSetup:
    """Return the setup of a model in the configuration q under constant generalized forces.

    q    (nq,) default: the neutral configuration, assembled if the model has constraints
    tau  (nv,) default: zero
    """
    torques = as_single_state(np.zeros(model.nv) if tau is None else tau, "tau", (model.nv,))
    check_finite("tau", torques, model.v_names)
    forces = tuple(Rule(joint.name, Torque(tuple(Constant(float(x)) for x in torques[joint.v]))) for joint in model.joints)
    setup = _setup(Scenario(str(model.source or model.name), 1.0, 1.0, passive=passive, joints=forces, assemble=q is None), model)
    if q is None:
        return setup
    configuration = as_single_state(q, "q", (model.nq,))
    return replace(setup, problem=replace(setup.problem, q=integrate(model, configuration, np.zeros(model.nv))))


def _setup(scenario: Scenario, model: Model) -> LinearizationSetup:
    from liedyn.simulation.input_schedule import compile_schedule
    from liedyn.simulation.segment_problems import with_open_loops

    if not model.nv:
        raise ModelError(f"the robot {model.name} has no moving joint: there is nothing to linearize")
    if isinstance(scenario.control, SlotineLiControl) and scenario.control.adapt:
        raise ScenarioError("a law that adapts parameters has no linear system", place=scenario.control.place.at("adapt"),
                            expected="the override control.adapt=false")
    if scenario.sampling is not None:
        raise ScenarioError("a sampled controller has no linear system in continuous time", place=scenario.sampling.place,
                            expected="the override sampling=null, which linearizes with continuous laws")
    if scenario.controller is not None:
        raise ScenarioError("a controller in Python has no linear system", place=scenario.controller.place,
                            expected="no key controller", hint="the override controller=null removes it")
    model = with_scenario_friction(scenario, model)
    scenario, model = bind_control_models(scenario, model), add_rotor_inertias(scenario, model)
    frictions = rigid_frictions(model) if scenario.passive else ()
    whole = without_friction(model, frictions)
    model = with_open_loops(whole, scenario.phases[0] if scenario.phases else None)
    problem, contact_names, warnings = compile_schedule(scenario, model)
    if problem.contacts is not None and (problem.contacts.stretch >= 0).any():
        sticking = [name for name, place in zip(contact_names, problem.contacts.stretch, strict=True) if place >= 0]
        raise UsageError(f"contacts that stick have no linear system: {list_names(sticking, 4)} (leave out the key stick)")
    return LinearizationSetup(scenario, model, problem, warnings, whole, frictions=frictions)


def check_time(scenario: Scenario, at: float) -> None:
    """Raise UsageError for a time outside the run."""
    if not 0.0 <= at <= scenario.duration:
        raise UsageError(f"at must be from 0 to {scenario.duration:g} s, got {at:g} s")


def state_at(setup: LinearizationSetup, at: float,
             progress: Callable[[float], None] = lambda _fraction: None) -> tuple[LinearizationSetup, float, Array, Array]:
    """Return the setup, t, q and v of the simulated motion at the time `at`, after the events up to that time.

    at  0 to the duration of the scenario [s]; at the duration, t is the largest number below it, so that the last phase applies

    Raises UsageError for a time outside the run, ComputationError if the simulation fails.
    """
    scenario, problem = setup.scenario, setup.problem
    check_time(scenario, at)
    t = at if at < scenario.duration else float(np.nextafter(at, -np.inf))
    hard = scenario.limits is not None and scenario.limits.mode == "hard"
    if at == 0.0 and not hard and not setup.frictions and not any(0.0 in event.at for event in scenario.events):
        return setup, t, problem.q.copy(), problem.v.copy()
    from liedyn.integrators.diagnosis import choose_integrator, integrator_options
    from liedyn.simulation.preparation import check_supports_integrals

    integrator = choose_integrator(scenario, problem, at or scenario.output_step)[0]
    check_supports_integrals(scenario, integrator.method)
    if scenario.events or hard or setup.frictions:
        setup, final = past_events(setup, at, integrator_options(integrator), progress)
        return replace(setup, integral=final.integral), t, final.q, final.v
    from liedyn.integrators.solve import solve, solve_segment

    times, options = np.array([0.0, at]), integrator_options(integrator)
    if len(problem.schedule.integral):
        final = solve_segment(problem, SegmentStart(0.0, problem.q, problem.v), times, options, progress).end
        return replace(setup, integral=final.integral), t, final.q, final.v
    record, _ = solve(problem, times, options, progress)
    return setup, t, record.q[-1], record.v[-1]


def instant(problem: InitialValueProblem, t: float, q: Array, v: Array, u: Array | None = None,
            integral: Array | None = None, rhs: RightHandSide | None = None) -> OperatingPoint:
    """Return accelerations and forces of the scenario at the state q, v.

    u         (nv + actuators,) additions to the accelerations of prescribed coordinates, to the forces of the other coordinates,
              and to the thrusts; None: zero
    integral  (nv,) integrals of pid laws; None: zero
    rhs       right-hand side, for several states of one problem, as in `evaluate_state`

    Raises ComputationError.
    """
    m, nv, work = problem.model, problem.model.nv, evaluate_state(problem, t, q, v, rhs, integral)
    f_ext = None
    if len(problem.forced_links):
        f_ext = np.zeros((len(m.link_names), 6))
        f_ext[problem.forced_links] = problem.split_wrench(work.wrench)[0]
    sums, of_laws = np.zeros((2, nv)), problem.schedule.integral
    sums[:, of_laws] = work.z.reshape(2, -1)
    point = OperatingPoint(t, work.q.copy(), work.v.copy(), work.a.copy(), work.tau.copy(), f_ext, sums[0], sums[1],
                           problem.split_wrench(work.wrench)[1].copy())
    if u is None or not np.any(u):
        return point
    for j, link, wrench in thrust_entries(m, np.flatnonzero(u[nv:])):
        f_ext = np.zeros((len(m.link_names), 6)) if f_ext is None else f_ext
        f_ext[link] += u[nv + j] * wrench
    tau, sticking = point.tau + u[:nv], sticking_coordinates(problem)
    forces = tau + sliding_friction(problem, v[None])[0]
    acting = replace(point, a=np.where(sticking, 0.0, point.a + u[:nv]), tau=forces, f_ext=f_ext)
    motion = with_hybrid_dynamics(m, acting, problem.prescribed, problem.passive, constraint_motions_at(problem, t))
    return replace(motion, tau=np.where(problem.schedule.level == TORQUE, tau, motion.tau))


def with_hybrid_dynamics(model: Model, point: OperatingPoint, prescribed: Mask, passive: bool,
                         constraint_motion: Mapping[str, Any] | None) -> OperatingPoint:
    """Return the point with a and tau of all coordinates, by hybrid dynamics under the constraints of the model.

    Reads the a of `prescribed` coordinates (mask (nv,)) and the tau of the others.

    constraint_motion  motion of driven loops
    """
    state = model, point.q, point.v, point.a, point.tau, prescribed
    if not model.nc:
        a, tau = hybrid_dynamics(*state, f_ext=point.f_ext, passive=passive)
        return replace(point, a=a, tau=tau)
    motion = constrained_hybrid_dynamics(*state, f_ext=point.f_ext, passive=passive, constraint_motion=constraint_motion)
    return replace(point, a=motion.a, tau=motion.tau)


def with_fixed_inputs(problem: InitialValueProblem, point: OperatingPoint, *, laws: bool = True, rest: bool = False,
                      fixed: Mask | bool = False) -> InitialValueProblem:
    """Return the problem with constant accelerations of prescribed coordinates, equal to those at a point.

    The positions and velocities of prescribed coordinates become ordinary states.

    laws   False: torques, wrenches and thrusts keep their values at the point in any state. Integrals of pid laws continue
           summing, and their values at the point act.
    rest   True: the accelerations of prescribed coordinates and of `fixed` ones are zero
    fixed  mask (nv,) of further coordinates with prescribed acceleration
    """
    schedule, signals, nv = problem.schedule, problem.signals, problem.model.nv
    motion = np.asarray(schedule.level != TORQUE) | fixed
    values, first = (np.zeros(nv) if rest else point.a) * motion, len(signals.kind)
    constant = motion.copy()
    if not laws:
        # forces of the laws at the point: tau, which is used only where no motion is prescribed
        values, constant = np.where(motion, values, point.tau - point.integral), np.ones(nv, dtype=bool)
        summed = np.isin(np.arange(nv), schedule.integral)
        forces = np.array([signal_at(problem, k, point) for k in schedule.force_signal])
        of_actuators = schedule.force_actuator >= 0
        forces[of_actuators] = point.thrusts[np.searchsorted(problem.thrusters, schedule.force_actuator[of_actuators])]
        values = np.concatenate([values, forces])
        problem = replace(problem, law=None, joint_laws=None)
        schedule = schedule._replace(target=np.where(summed, schedule.target, -1), kp=np.zeros(nv), kd=np.zeros(nv),
                                     force_signal=first + nv + np.arange(len(forces)))
    elif problem.joint_laws is not None:                       # computed torque reads which accelerations are prescribed
        known = problem.joint_laws._replace(prescribed=problem.joint_laws.prescribed | motion)
        problem = replace(problem, joint_laws=with_couplings(problem.law_model, known))
    signals = _with_constants(signals, values)
    schedule = schedule._replace(level=np.where(motion, ACCELERATION, TORQUE), poses=InputSchedule._field_defaults["poses"],
                                 signal=np.where(constant, first + np.arange(nv), schedule.signal))
    return replace(problem, schedule=schedule, signals=signals, signal_names=(*problem.signal_names, *["constant"] * len(values)))


def signal_at(problem: InitialValueProblem, k: int, point: OperatingPoint) -> float:
    """Return the value of signal k at a point."""
    signals = with_measured_values(problem.model, problem.signals, point.q, point.v)
    return read_signal(signals, k, point.t, point.q, point.v)[0]


def _with_constants(signals: Signals, values: Array) -> Signals:
    """Return the signals, with a constant signal appended for each value."""
    n = len(values)
    return signals._replace(kind=np.append(signals.kind, np.full(n, CONSTANT)),
                            first=np.append(signals.first, len(signals.literals) + np.arange(n)),
                            count=np.append(signals.count, np.ones(n, dtype=np.int64)),
                            literals=np.append(signals.literals, values))


# Independent coordinates of a constrained mechanism ---------------------------------------------------------------------

# Small changes that satisfy the constraints are dq = Z dq_i, dv = Z dv_i + G dq_i, where i are the independent coordinates and
#
#     A Z = 0, Z_i = 1;    A G = -d(A v)/dq Z, G_i = 0        (A v minus the velocity of driven loops)

_NEARLY = 0.5      # of the maximum motion: the first coordinate in the file that moves at least so much becomes independent


@dataclass(frozen=True, eq=False)
class CoordinatePartition:
    """Independent coordinates of a constrained mechanism, and the others as linear functions of them.

    index  (f,) independent coordinates
    Z, G   (nv, f) dq = Z dq_i, dv = Z dv_i + G dq_i
    """

    index: Integers
    Z: Array
    G: Array

    def reduced(self, full: LinearSystem) -> LinearSystem:
        """Return the system in the independent coordinates, from that in all coordinates. Integral states are kept."""
        (nv, f), n = self.Z.shape, len(full.states)
        integrals = np.arange(2 * nv, n)
        P = np.zeros((n, 2 * f + len(integrals)))
        P[:nv, :f], P[nv:2 * nv, :f], P[nv:2 * nv, f:2 * f], P[2 * nv:, 2 * f:] = self.Z, self.G, self.Z, np.eye(len(integrals))
        selected = np.concatenate([self.index, nv + self.index, integrals])
        return replace(full, A=(full.A @ P)[selected], B=full.B[selected], C=full.C @ P,
                       states=tuple(full.states[k] for k in selected),
                       state_units=tuple(full.state_units[k] for k in selected), moving=full.moving[selected])


def partition_coordinates(model: Model, q: Array, v: Array, prescribed: Mask, constraint_motion: Mapping[str, Any] | None = None,
                          preferred: Patterns = ()) -> CoordinatePartition | None:
    """Return the independent coordinates at q, v; None for a model without constraints.

    Prescribed coordinates (mask `prescribed` (nv,)) are independent. Then come those that match the patterns `preferred`, then
    those that move most.

    Raises
    ------
    UsageError
        For a pattern that matches no coordinate, for preferred coordinates that depend on others, and for patterns if the
        model has no constraints.
    ComputationError
        If the mechanism has no degree of freedom, or prescribed coordinates depend on each other.
    """
    if not model.nc:
        if len(preferred):
            raise UsageError("independent coordinates require a robot with constraints; this robot has none")
        return None
    nv, m = model.nv, model.nc
    rates = balance_derivatives(model, q, v, np.zeros(nv), np.zeros(m), v, constraint_motion=constraint_motion, passive=False)
    index = _independent(model, null_space(model, rates.A), np.flatnonzero(prescribed).tolist(),
                         select(preferred, model.v_names, "independent coordinate"))
    dependent = np.setdiff1d(np.arange(nv), index)
    Z, G = np.zeros((2, nv, len(index)))
    Z[index] = np.eye(len(index))
    A = np.where(np.isin(np.arange(nv), dependent), rates.A, 0.0)
    Z[dependent] = least_norm_solution(model, A, -rates.A[:, index])[dependent]
    G[dependent] = least_norm_solution(model, A, -rates.dAx_dq @ Z)[dependent]
    return CoordinatePartition(index, Z, G)


def _independent(model: Model, N: Array, prescribed: Sequence[int], preferred: Sequence[int]) -> Integers:
    """Return the rows of the null space N (nv, f) that form a basis: of the prescribed, preferred, then other coordinates.

    Raises ComputationError or UsageError if prescribed or preferred coordinates depend on others.
    """
    if not N.shape[1]:
        raise ComputationError(f"the mechanism {model.name} has no degree of freedom in this configuration: there is nothing to "
                               "linearize")
    chosen: list[int] = []
    remaining = N.copy()
    for group in (prescribed, preferred, range(len(N))):
        candidates = [k for k in group if k not in chosen]
        while candidates:
            size = np.linalg.norm(remaining[candidates], axis=1)
            if not size.max() > RANK:
                break
            k = candidates.pop(int(np.argmax(size >= _NEARLY * size.max())))
            d = remaining[k] / np.linalg.norm(remaining[k])
            remaining = remaining - np.outer(remaining @ d, d)
            chosen.append(k)
    _check_independent(model, [k for k in prescribed if k not in chosen], [k for k in preferred if k not in chosen], N.shape[1])
    return np.sort(np.array(chosen))


def _check_independent(model: Model, prescribed: Sequence[int], preferred: Sequence[int], freedom: int) -> None:
    """Raise an error for prescribed or preferred coordinates that depend on others."""
    how_many = f"the mechanism has {freedom} degree{'s' * (freedom != 1)} of freedom in this configuration"
    if prescribed:
        names = ", ".join(model.v_names[k] for k in prescribed)
        raise ComputationError(f"other prescribed coordinates determine the motion of {names}; {how_many} "
                               "(prescribe fewer joints)")
    if preferred:
        names = ", ".join(model.v_names[k] for k in preferred)
        raise UsageError(f"{names} cannot be independent, since other coordinates determine it; {how_many}")


# scenarios with phases and events ---------------------------------------------------------------------------------------


def past_events(setup: LinearizationSetup, at: float, options: Options,
                progress: Callable[[float], None]) -> tuple[LinearizationSetup, SegmentStart]:
    """Return the setup in the phase at the time `at`, after all events up to that time, and the final state of the simulation.

    Locked joints are prescribed at rest, and bodies are attached.

    Raises UsageError if the run ends before `at`, or a joint rests at a hard stop at that time.
    """
    from liedyn.simulation.hybrid_simulation import HybridSimulation
    from liedyn.simulation.run_recorder import RunRecorder

    scenario = setup.scenario
    hybrid_simulation = HybridSimulation(scenario, setup.whole, setup.problem, setup.frictions)
    rows = RunRecorder(setup.whole, setup.problem)
    hybrid_simulation.run(np.array([at]) if at == 0.0 else np.array([0.0, at]), options, progress, rows)
    final, mode = hybrid_simulation.final_state, hybrid_simulation.problems.hybrid_state
    assert final is not None                                   # the simulation has run
    if hybrid_simulation.actions.stopped:
        raise UsageError(
            f"the run ends at t = {final.t:g} s, by the event {hybrid_simulation.occurred_events[-1].name}, before at = {at:g} s")
    if mode.resting:
        names = ", ".join(dict.fromkeys(stop.name for stop in mode.resting))
        raise UsageError(f"{names} rests at its hard stop at t = {at:g} s, where no linear system exists, since it can move in "
                         "one direction only (use compliant stops, limits: stop, or lock the joint by an event)")
    problem = hybrid_simulation.problems.current
    of_friction = friction_event_names(setup.frictions)
    occurred = [event for event in hybrid_simulation.occurred_events
                if not any(matches_friction_event(event.name, name) for name in of_friction)]
    warnings = (*setup.warnings, _state_warning(mode, at)) if occurred else setup.warnings
    return replace(setup, model=problem.model, problem=problem, warnings=warnings, simulation=hybrid_simulation), final


def _state_warning(mode: HybridState, at: float) -> LiedynWarning:
    """Return the message that names the phase, the locked joints and the attached bodies."""
    text = "; ".join(part for part in (f"phase {mode.phase}" if mode.phase else "", mode.changes) if part)
    return LiedynWarning("after-events", f"after the events up to t = {at:g} s" + (f": {text}" if text else ""))
