"""Evaluation of a scenario at one instant: forces and accelerations from the compiled right-hand side of simulations."""
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from liedyn.analysis.linear_system import LinearSystem
from liedyn.arrays import Array
from liedyn.codegen.rhs import read_signal
from liedyn.dynamics.batching.arrays import as_array
from liedyn.dynamics.batching.calls import check_finite
from liedyn.dynamics.constraints.constrained_derivatives import balance_derivatives
from liedyn.dynamics.constraints.constrained_dynamics import constrained_hybrid_dynamics
from liedyn.dynamics.constraints.rank import RANK, least_norm_solution, null_space
from liedyn.dynamics.dynamics import hybrid_dynamics
from liedyn.dynamics.kinematics import integrate, jacobian
from liedyn.errors import ComputationError, LiedynWarning, ModelError, ScenarioError, ShapeError, UsageError
from liedyn.immutable import Immutable
from liedyn.integrators.problem import InitialValueProblem, Options, SegmentStart
from liedyn.integrators.segment import evaluate_state
from liedyn.io.scenarios.scenario import Constant, Rule, Scenario, Torque
from liedyn.io.scenarios.scenario_file import scenario_of
from liedyn.kernels.simulation.signals import ACCELERATION, CONSTANT, TORQUE, InputSchedule
from liedyn.model.model import Model
from liedyn.robot_files import read_model
from liedyn.simulation.constraint_setup import constraint_motions_at
from liedyn.simulation.control.joint_control import add_rotor_inertias
from liedyn.simulation.name_binding import select, with_measured_values


@dataclass(frozen=True, eq=False)
class OperatingPoint(Immutable):
    """A state, with the accelerations and forces at it.

    t              time [s]
    q, v, a        (nq,), (nv,), (nv,) configuration, velocity, acceleration
    tau            (nv,) joint forces [N m | N]
    f_ext          (n_links, 6) external wrenches [m; f] in link frames; None without external wrenches
    integral       (nv,) integrals of pid laws [N m | N], zero for other coordinates
    integral_rate  (nv,) time derivative of `integral`
    """

    t: float
    q: Array
    v: Array
    a: Array
    tau: Array
    f_ext: Array | None
    integral: Array
    integral_rate: Array


@dataclass(frozen=True, eq=False)
class LinearizationSetup:
    """A scenario bound to its robot.

    model     the robot in the current phase, with the bodies that are attached
    whole     the robot as loaded
    integral  (nv,) current integrals of pid laws; None: zero
    """

    scenario: Scenario
    model: Model
    problem: InitialValueProblem
    warnings: tuple[LiedynWarning, ...]
    whole: Model
    integral: Array | None = None

    @property
    def prescribed(self) -> Array:
        """Mask (nv,) of the coordinates with prescribed motion."""
        return np.asarray(self.problem.schedule.level != TORQUE)


def prepare(path, overrides=(), strict: bool = False) -> LinearizationSetup:
    """Load a scenario, or a robot file with defaults, and return its setup.

    Raises ScenarioError, ModelError, TrajectoryError, CheckFailed.
    """
    scenario = scenario_of(path, overrides, long=True)           # perhaps nothing of it is run
    model = read_model(scenario.robot, base=scenario.base, gravity=scenario.gravity, loops=scenario.loops, strict=strict)
    return _setup(scenario, model)


def static_setup(model: Model, q=None, tau=None, passive: bool = True) -> LinearizationSetup:
    """Return the setup of a model in the configuration q under constant joint forces.

    q    (nq,) default: the neutral configuration, assembled if the model has constraints
    tau  (nv,) default: zero
    """
    tau = as_array(np.zeros(model.nv) if tau is None else tau, "tau", (model.nv,))
    if tau.ndim != 1:
        raise ShapeError(f"tau must be a single set of forces; found tau of shape {tau.shape}")
    check_finite("tau", tau, model.v_names)
    forces = tuple(Rule(joint.name, Torque(tuple(Constant(float(x)) for x in tau[joint.v]))) for joint in model.joints)
    setup = _setup(Scenario(str(model.source or model.name), 1.0, 1.0, passive=passive, joints=forces, assemble=q is None), model)
    if q is None:
        return setup
    q = as_array(q, "q", (model.nq,))
    if q.ndim != 1:
        raise ShapeError(f"a single state is expected; found q of shape {q.shape}")
    return replace(setup, problem=replace(setup.problem, q=integrate(model, q, np.zeros(model.nv))))


def _setup(scenario: Scenario, model: Model) -> LinearizationSetup:
    from liedyn.simulation.input_schedule import compile_schedule
    from liedyn.simulation.segment_problems import with_open_loops

    if not model.nv:
        raise ModelError(f"the robot {model.name} has no moving joint: there is nothing to linearize")
    if scenario.sampling is not None:
        raise ScenarioError("a sampled controller has no linear system in continuous time", place=scenario.sampling.place,
                            expected="no sampling: -S sampling=null linearizes with continuous laws")
    model = add_rotor_inertias(scenario, model)
    whole, model = model, with_open_loops(model, scenario.phases[0] if scenario.phases else None)
    problem, _, warnings = compile_schedule(scenario, model)
    return LinearizationSetup(scenario, model, problem, warnings, whole)


def state_at(setup: LinearizationSetup, at: float,
             progress=lambda fraction: None) -> tuple[LinearizationSetup, float, np.ndarray, np.ndarray]:
    """Return the setup, t, q and v of the simulated motion at the time `at`, after the events up to that time.

    at  0 to the duration of the scenario [s]; at the duration, t is the largest number below it, so that the last phase applies

    Raises UsageError for a time outside the run, ComputationError if the simulation fails.
    """
    scenario, problem = setup.scenario, setup.problem
    if not 0.0 <= at <= scenario.duration:
        raise UsageError(f"the run lasts from 0 to {scenario.duration:g} s; found t = {at:g} s")
    t = at if at < scenario.duration else float(np.nextafter(at, -np.inf))
    hard = scenario.limits is not None and scenario.limits.mode == "hard"
    if at == 0.0 and not hard and not any(0.0 in event.at for event in scenario.events):
        return setup, t, problem.q.copy(), problem.v.copy()
    from liedyn.integrators.diagnosis import choose_integrator, integrator_options
    from liedyn.simulation.preparation import check_supports_integrals

    integrator = choose_integrator(scenario, problem, at or scenario.output_step)[0]
    check_supports_integrals(scenario, integrator.method)
    if scenario.events or hard:
        setup, now = past_events(setup, at, integrator_options(integrator), progress)
        return replace(setup, integral=now.integral), t, now.q, now.v
    from liedyn.integrators.solve import solve, solve_segment

    times, options = np.array([0.0, at]), integrator_options(integrator)
    if len(problem.schedule.integral):
        now = solve_segment(problem, SegmentStart(0.0, problem.q, problem.v), times, options, progress).end
        return replace(setup, integral=now.integral), t, now.q, now.v
    record, _ = solve(problem, times, options, progress)
    return setup, t, record.q[-1], record.v[-1]


def instant(problem: InitialValueProblem, t: float, q, v, u=None, integral=None) -> OperatingPoint:
    """Return accelerations and forces of the scenario at the state q, v.

    u         (nv + actuators,) additions to the accelerations of prescribed coordinates, to the forces of the other coordinates,
              and to the thrusts; None: zero
    integral  (nv,) integrals of pid laws; None: zero

    Raises ComputationError.
    """
    m, nv, work = problem.model, problem.model.nv, evaluate_state(problem, t, q, v, integral=integral)
    f_ext = None
    if len(problem.forced_links):
        f_ext = np.zeros((len(m.link_names), 6))
        f_ext[problem.forced_links] = work.wrench.reshape(-1, 6)
    sums, of_laws = np.zeros((2, nv)), problem.schedule.integral
    sums[:, of_laws] = work.z.reshape(2, -1)
    here = OperatingPoint(t, work.q.copy(), work.v.copy(), work.a.copy(), work.tau.copy(), f_ext, *sums)
    if u is None or not np.any(u):
        return here
    for actuator, thrust in zip(m.description.actuators, u[nv:], strict=True):
        if thrust:
            f_ext = np.zeros((len(m.link_names), 6)) if f_ext is None else f_ext
            f_ext[m.link_index(actuator.link)] += thrust * push_of(actuator)
    a, tau = completed(m, here.q, here.v, here.a + u[:nv], here.tau + u[:nv], np.asarray(problem.schedule.level != TORQUE), f_ext,
                       problem.passive, constraint_motions_at(problem, t))
    return replace(here, a=a, tau=tau, f_ext=f_ext)


def completed(model: Model, q, v, a, tau, prescribed, f_ext, passive: bool, constraint_motion) -> tuple[np.ndarray, np.ndarray]:
    """Return a and tau (nv,) of all coordinates, by hybrid dynamics under the constraints of the model.

    a                  read where prescribed
    tau                read where not prescribed
    constraint_motion  motion of driven loops
    """
    if not model.nc:
        return hybrid_dynamics(model, q, v, a, tau, prescribed, f_ext=f_ext, passive=passive)
    found = constrained_hybrid_dynamics(model, q, v, a, tau, prescribed, f_ext=f_ext, passive=passive,
                                        constraint_motion=constraint_motion)
    return found.a, found.tau


def with_fixed_inputs(problem: InitialValueProblem, here: OperatingPoint, *, laws: bool = True, rest: bool = False,
           held=False) -> InitialValueProblem:
    """Return the problem with constant accelerations of prescribed coordinates, equal to those of `here`.

    The positions and velocities of prescribed coordinates become ordinary states.

    laws  False: torques, wrenches and thrusts keep their values at `here` in any state. Integrals of pid laws continue summing,
          and their values in `here` act.
    rest  True: the accelerations of prescribed coordinates and of `held` ones are zero
    held  mask (nv,) of further coordinates with prescribed acceleration
    """
    schedule, signals, nv = problem.schedule, problem.signals, problem.model.nv
    motion = np.asarray(schedule.level != TORQUE) | held
    values, first = (np.zeros(nv) if rest else here.a) * motion, len(signals.kind)
    constant = motion.copy()
    if not laws:
        # forces of the laws at `here`: tau, which is used only where no motion is prescribed
        values, constant = np.where(motion, values, here.tau - here.integral), np.ones(nv, dtype=bool)
        summed = np.isin(np.arange(nv), schedule.integral)
        forces = np.array([signal_at(problem, k, here) for k in schedule.force_signal])
        values = np.concatenate([values, forces])
        problem = replace(problem, law=None, joint_laws=None)
        schedule = schedule._replace(target=np.where(summed, schedule.target, -1), kp=np.zeros(nv), kd=np.zeros(nv),
                                     force_signal=first + nv + np.arange(len(forces)))
    elif problem.joint_laws is not None:                       # computed torque reads which accelerations are prescribed
        known = problem.joint_laws._replace(given=problem.joint_laws.given | motion)
        problem = replace(problem, joint_laws=known)
    signals = _with_constants(signals, values)
    schedule = schedule._replace(level=np.where(motion, ACCELERATION, TORQUE), poses=InputSchedule._field_defaults["poses"],
                                 signal=np.where(constant, first + np.arange(nv), schedule.signal))
    return replace(problem, schedule=schedule, signals=signals, signal_names=(*problem.signal_names, *["constant"] * len(values)))


def signal_at(problem: InitialValueProblem, k: int, here: OperatingPoint) -> float:
    return read_signal(with_measured_values(problem.model, problem.signals, here.q, here.v), k, here.t, here.q, here.v)[0]


def _with_constants(signals, values):
    """Return the signals, with a constant signal appended for each value."""
    n = len(values)
    return signals._replace(kind=np.append(signals.kind, np.full(n, CONSTANT)),
                            first=np.append(signals.first, len(signals.literals) + np.arange(n)),
                            count=np.append(signals.count, np.ones(n, dtype=np.int64)),
                            literals=np.append(signals.literals, values))


def push_of(actuator) -> np.ndarray:
    """Return the wrench (6,) [m; f] of a thrust of 1 N, in the frame of the actuator's link."""
    axis = np.array(actuator.axis) / np.linalg.norm(actuator.axis)
    return np.concatenate([np.cross(actuator.position, axis) + actuator.torque_ratio * axis, axis])


def thrust_columns(model: Model, q) -> np.ndarray:
    """Return the generalized forces (nv, actuators) of thrusts of 1 N."""
    columns = [jacobian(model, q, actuator.link).T @ push_of(actuator) for actuator in model.description.actuators]
    return np.column_stack(columns) if columns else np.zeros((model.nv, 0))


# Independent coordinates of a constrained mechanism ---------------------------------------------------------------------

# Small changes that satisfy the constraints are dq = Z dq_i, dv = Z dv_i + G dq_i, where i are the independent coordinates and
#
#     A Z = 0, Z_i = 1;    A G = -d(A v)/dq Z, G_i = 0        (A v minus the velocity of driven loops)

_NEARLY = 0.5      # of the largest motion: the first coordinate in the file that moves at least so much becomes independent


@dataclass(frozen=True, eq=False)
class CoordinatePartition:
    """Independent coordinates of a constrained mechanism, and the others as linear functions of them.

    index  (f,) independent coordinates
    Z, G   (nv, f) dq = Z dq_i, dv = Z dv_i + G dq_i
    """

    index: np.ndarray
    Z: np.ndarray
    G: np.ndarray

    def reduced(self, full: LinearSystem) -> LinearSystem:
        """Return the system in the independent coordinates, from that in all coordinates. Integral states are kept."""
        (nv, f), n = self.Z.shape, len(full.states)
        others = np.arange(2 * nv, n)
        P = np.zeros((n, 2 * f + len(others)))
        P[:nv, :f], P[nv:2 * nv, :f], P[nv:2 * nv, f:2 * f], P[2 * nv:, 2 * f:] = self.Z, self.G, self.Z, np.eye(len(others))
        kept = np.concatenate([self.index, nv + self.index, others])
        pick = lambda names: tuple(names[k] for k in kept)      # noqa: E731
        return replace(full, A=(full.A @ P)[kept], B=full.B[kept], C=full.C @ P, states=pick(full.states),
                       state_units=pick(full.state_units), moving=full.moving[kept])


def chart(model, q, v, prescribed, constraint_motion=None, wanted=()) -> CoordinatePartition | None:
    """Return the independent coordinates at q, v; None for a model without constraints.

    Prescribed coordinates (mask `prescribed` (nv,)) are independent. Then come those that match the patterns `wanted`, then those
    that move most.

    Raises
    ------
    UsageError
        For a pattern that matches no coordinate, for wanted coordinates that depend on others, and for patterns if the model has
        no constraints.
    ComputationError
        If the mechanism has no degree of freedom, or prescribed coordinates depend on each other.
    """
    if not model.nc:
        if len(wanted):
            raise UsageError("independent coordinates are chosen for robots with constraints; this one has none")
        return None
    nv, m = model.nv, model.nc
    rates = balance_derivatives(model, q, v, np.zeros(nv), np.zeros(m), v, constraint_motion=constraint_motion, passive=False)
    chosen = np.array(select(wanted, model.v_names, "independent coordinate"), dtype=np.int64)
    index = _independent(model, null_space(model, rates.A), np.flatnonzero(prescribed), chosen)
    others = np.setdiff1d(np.arange(nv), index)
    Z, G = np.zeros((2, nv, len(index)))
    Z[index] = np.eye(len(index))
    A = np.where(np.isin(np.arange(nv), others), rates.A, 0.0)
    Z[others] = least_norm_solution(model, A, -rates.A[:, index])[others]
    G[others] = least_norm_solution(model, A, -rates.dAx_dq @ Z)[others]
    return CoordinatePartition(index, Z, G)


def _independent(model, N, prescribed, wanted) -> np.ndarray:
    """Rows of N (nv, f) that form a basis, in the order of the file."""
    if not N.shape[1]:
        raise ComputationError(f"the mechanism {model.name} cannot move here, its constraints leave no degree of freedom: there "
                               "is nothing to linearize")
    chosen, left = [], N.copy()
    for group in (prescribed, wanted, np.arange(len(N))):
        group = [k for k in group if k not in chosen]
        while group:
            size = np.linalg.norm(left[group], axis=1)
            if not size.max() > RANK:
                break
            k = group.pop(int(np.argmax(size >= _NEARLY * size.max())))
            d = left[k] / np.linalg.norm(left[k])
            left = left - np.outer(left @ d, d)
            chosen.append(k)
    _check_independent(model, [k for k in prescribed if k not in chosen], [k for k in wanted if k not in chosen], N.shape[1])
    return np.sort(np.array(chosen))


def _check_independent(model, prescribed, wanted, freedom: int) -> None:
    how_many = f"the mechanism has {freedom} degree{'s' * (freedom != 1)} of freedom here"
    if prescribed:
        names = ", ".join(model.v_names[k] for k in prescribed)
        raise ComputationError(f"the motion of {names} follows from that of other prescribed coordinates; {how_many} "
                               "(prescribe fewer joints)")
    if wanted:
        names = ", ".join(model.v_names[k] for k in wanted)
        raise UsageError(f"{names} cannot be independent, since the others determine it; {how_many}")


# scenarios with phases and events ---------------------------------------------------------------------------------------


def past_events(setup, at: float, options: Options, progress):
    """Return the setup in the phase at the time `at`, after all events up to that time, and the final state of the simulation.

    Locked joints are prescribed at rest, and bodies are attached.

    Raises UsageError if the run ends before `at`, or a joint rests at a hard stop at that time.
    """
    from liedyn.simulation.hybrid_simulation import HybridSimulation
    from liedyn.simulation.run_recorder import RunRecorder

    scenario = setup.scenario
    hybrid_simulation, rows = HybridSimulation(scenario, setup.whole, setup.problem), RunRecorder(setup.whole, setup.problem)
    hybrid_simulation.run(np.array([at]) if at == 0.0 else np.array([0.0, at]), options, progress, rows)
    now, mode = hybrid_simulation.final_state, hybrid_simulation.problems.hybrid_state
    if hybrid_simulation.actions.stopped:
        raise UsageError(
            f"the run ends at t = {now.t:g} s, by the event {hybrid_simulation.occurred_events[-1].name}; found t = {at:g} s")
    if mode.resting:
        names = ", ".join(dict.fromkeys(stop.name for stop in mode.resting))
        raise UsageError(f"{names} rests at its hard stop at t = {at:g} s, where there is no linear system: it leaves to one "
                         "side only (limits: stop gives compliant stops; or lock the joint by an event)")
    problem = hybrid_simulation.problems.current
    warnings = setup.warnings if not hybrid_simulation.occurred_events else (*setup.warnings, _told(mode, at))
    return replace(setup, model=problem.model, problem=problem, warnings=warnings), now


def _told(mode, at: float) -> LiedynWarning:
    """Return the message that names the phase, the locked joints and the attached bodies."""
    parts = [f"phase {mode.phase}"] if mode.phase else []
    parts += [f"{', '.join(mode.locked)} locked"] if mode.locked else []
    parts += [f"a body attached to {', '.join(one.link for one in mode.attached)}"] if mode.attached else []
    return LiedynWarning("after-events", f"after the events up to t = {at:g} s" + (f": {'; '.join(parts)}" if parts else ""))
