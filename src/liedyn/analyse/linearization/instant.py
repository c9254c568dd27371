"""A scenario at one instant: its forces and accelerations at any state, by the compiled right-hand side of simulations."""
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from liedyn.arrays import Array
from liedyn.codegen.steps.signals import read_signal
from liedyn.dynamics.calling.arguments import as_array
from liedyn.dynamics.hybrid import hybrid_dynamics
from liedyn.dynamics.kinematics import jacobian
from liedyn.dynamics.loops.constrained import constrained_hybrid_dynamics
from liedyn.dynamics.manifold import integrate
from liedyn.errors import ConfigurationError, ModelError, ScenarioError, ShapeError, UsageError
from liedyn.immutable import Immutable
from liedyn.integrators.evaluation import evaluated
from liedyn.integrators.problem import Problem, Start
from liedyn.io.scenarios.scenario import Constant, Rule, Scenario, Torque
from liedyn.io.scenarios.scenario_file import scenario_of
from liedyn.kernels.simulation.signals import ACCELERATION, CONSTANT, TORQUE, Schedule
from liedyn.loading import read_model
from liedyn.model.model import Model
from liedyn.simulation.control_laws.motors import with_rotors
from liedyn.simulation.driven_loops import drives_at
from liedyn.simulation.measured import measured_at


@dataclass(frozen=True, eq=False)
class Instant(Immutable):
    """State, and what acts there. f_ext: (n_links, 6) external wrenches in link frames, None where there are none; integral
    (nv,): of pid laws [N m | N], zero for other coordinates, and its rate."""

    t: float
    q: Array
    v: Array
    a: Array
    tau: Array
    f_ext: Array | None
    integral: Array
    integral_rate: Array


@dataclass(frozen=True, eq=False)
class Setup:
    """A scenario bound to its robot, ready to be evaluated. model: in the present phase, with bodies that are attached; whole: as
    loaded. integral (nv,): of pid laws at present; None: zero."""

    scenario: Scenario
    model: Model
    problem: Problem
    notes: tuple[str, ...]
    whole: Model
    integral: Array | None = None

    @property
    def prescribed(self) -> Array:
        return np.asarray(self.problem.schedule.level != TORQUE)


def prepare(path, overrides=(), strict: bool = False) -> Setup:
    """Load a scenario, or a robot file with defaults. Raises ScenarioError, ModelError, TrajectoryError, CheckFailed."""
    scenario = scenario_of(path, overrides, long=True)           # perhaps nothing of it is run
    model = read_model(scenario.robot, base=scenario.base, gravity=scenario.gravity, loops=scenario.loops, strict=strict)
    return _setup(scenario, model)


def standing(model: Model, q=None, tau=None, passive: bool = True) -> Setup:
    """A model in the configuration q (nq,), by default the neutral one, under constant joint forces tau (nv,)."""
    tau = as_array(np.zeros(model.nv) if tau is None else tau, "tau", (model.nv,))
    if tau.ndim != 1:
        raise ShapeError(f"tau must be a single set of forces; found tau of shape {tau.shape}")
    if not np.isfinite(tau).all():
        k = int(np.argmin(np.isfinite(tau)))
        raise ConfigurationError(f"tau[{k}] is not finite; found {tau[k]}")
    forces = tuple(Rule(joint.name, Torque(tuple(Constant(float(x)) for x in tau[joint.v]))) for joint in model.joints)
    setup = _setup(Scenario(str(model.source or model.name), 1.0, 1.0, passive=passive, joints=forces, assemble=q is None), model)
    if q is None:
        return setup
    q = as_array(q, "q", (model.nq,))
    if q.ndim != 1:
        raise ShapeError(f"a single state is expected; found q of shape {q.shape}")
    return replace(setup, problem=replace(setup.problem, q=integrate(model, q, np.zeros(model.nv))))


def _setup(scenario: Scenario, model: Model) -> Setup:
    from liedyn.simulation.events.parts import opened
    from liedyn.simulation.schedule import compile_schedule

    if not model.nv:
        raise ModelError(f"the robot {model.name} has no moving joint: there is nothing to linearize")
    if scenario.sampling is not None:
        raise ScenarioError("a sampled controller has no linear system in continuous time", place=scenario.sampling.place,
                            expected="no sampling: -S sampling=null linearizes with continuous laws")
    model = with_rotors(scenario, model)
    whole, model = model, opened(model, scenario.phases[0] if scenario.phases else None)
    problem, _, warnings = compile_schedule(scenario, model)
    return Setup(scenario, model, problem, warnings, whole)


def state_at(setup: Setup, at: float, progress=lambda fraction: None) -> tuple[Setup, float, np.ndarray, np.ndarray]:
    """t, q, v of the simulated motion at the time `at`, from 0 to the duration, with the setup of that time, after the events up
    to it. At the very end t is just before it: the last instant belongs to what came before. Raises UsageError for another time,
    ComputationError."""
    scenario, problem = setup.scenario, setup.problem
    if not 0.0 <= at <= scenario.duration:
        raise UsageError(f"the run lasts from 0 to {scenario.duration:g} s; found t = {at:g} s")
    t = at if at < scenario.duration else float(np.nextafter(at, -np.inf))
    hard = scenario.limits is not None and scenario.limits.mode == "hard"
    if at == 0.0 and not hard and not any(0.0 in event.at for event in scenario.events):
        return setup, t, problem.q.copy(), problem.v.copy()
    from liedyn.simulation.integrator import choose_integrator, options_of
    from liedyn.simulation.preparation import refuse_integrals

    integrator = choose_integrator(scenario, problem, at or scenario.output_step)[0]
    refuse_integrals(scenario, integrator.method)
    if scenario.events or hard:
        from liedyn.analyse.linearization.past_events import past_events
        from liedyn.simulation.preparation import refuse_uneventful
        refuse_uneventful(replace(scenario, integrator=integrator))
        setup, now = past_events(setup, at, options_of(integrator), progress)
        return replace(setup, integral=now.integral), t, now.q, now.v
    from liedyn.integrators.solve import solve, solve_stretch

    times, options = np.array([0.0, at]), options_of(integrator)
    if len(problem.schedule.integral):
        now = solve_stretch(problem, Start(0.0, problem.q, problem.v), times, options, progress).end
        return replace(setup, integral=now.integral), t, now.q, now.v
    record, _ = solve(problem, times, options, progress)
    return setup, t, record.q[-1], record.v[-1]


def instant(problem: Problem, t: float, q, v, u=None, integral=None) -> Instant:
    """What the scenario does at a state; `u` (nv + actuators,) is added to its inputs: to the acceleration of each prescribed
    coordinate, the force of each other one, the thrusts. integral (nv,): of pid laws, None: zero. Raises ComputationError."""
    m, nv, work = problem.model, problem.model.nv, evaluated(problem, t, q, v, integral=integral)
    f_ext = None
    if len(problem.forced_links):
        f_ext = np.zeros((len(m.link_names), 6))
        f_ext[problem.forced_links] = work.wrench.reshape(-1, 6)
    sums, of_laws = np.zeros((2, nv)), problem.schedule.integral
    sums[:, of_laws] = work.z.reshape(2, -1)
    here = Instant(t, work.q.copy(), work.v.copy(), work.a.copy(), work.tau.copy(), f_ext, *sums)
    if u is None or not np.any(u):
        return here
    for actuator, thrust in zip(m.description.actuators, u[nv:], strict=True):
        if thrust:
            f_ext = np.zeros((len(m.link_names), 6)) if f_ext is None else f_ext
            f_ext[m.link_index(actuator.link)] += thrust * push_of(actuator)
    a, tau = completed(m, here.q, here.v, here.a + u[:nv], here.tau + u[:nv], np.asarray(problem.schedule.level != TORQUE), f_ext,
                       problem.passive, drives_at(problem, t))
    return replace(here, a=a, tau=tau, f_ext=f_ext)


def completed(model: Model, q, v, a, tau, prescribed, f_ext, passive: bool, drive) -> tuple[np.ndarray, np.ndarray]:
    """a and tau complete, by hybrid dynamics under the constraints that the model has; drive: the motion of driven loops."""
    if not model.nc:
        return hybrid_dynamics(model, q, v, a, tau, prescribed, f_ext=f_ext, passive=passive)
    found = constrained_hybrid_dynamics(model, q, v, a, tau, prescribed, f_ext=f_ext, passive=passive, drive=drive)
    return found.a, found.tau


def frozen(problem: Problem, here: Instant, *, laws: bool = True, rest: bool = False, held=False) -> Problem:
    """The problem with constant accelerations of its prescribed coordinates, those of `here`: their positions and velocities
    are states like others.

    laws   False: torques, wrenches and thrusts keep their values too, whatever the state; integrals of pid laws go on
           summing, and their values in `here` act
    rest   prescribed coordinates, and those of the mask `held`, keep no acceleration
    """
    schedule, signals, nv = problem.schedule, problem.signals, problem.model.nv
    motion = np.asarray(schedule.level != TORQUE) | held
    values, first = (np.zeros(nv) if rest else here.a) * motion, len(signals.kind)
    constant = motion.copy()
    if not laws:
        # what the laws give here: tau itself, as it is written where no motion is prescribed
        values, constant = np.where(motion, values, here.tau - here.integral), np.ones(nv, dtype=bool)
        summed = np.isin(np.arange(nv), schedule.integral)
        forces = np.array([signal_at(problem, k, here) for k in schedule.force_signal])
        values = np.concatenate([values, forces])
        problem = replace(problem, law=None, joint_laws=None)
        schedule = schedule._replace(target=np.where(summed, schedule.target, -1), kp=np.zeros(nv), kd=np.zeros(nv),
                                     force_signal=first + nv + np.arange(len(forces)))
    elif problem.joint_laws is not None:                       # computed torque knows what is prescribed
        known = problem.joint_laws._replace(given=problem.joint_laws.given | motion)
        problem = replace(problem, joint_laws=known)
    signals = _with_constants(signals, values)
    schedule = schedule._replace(level=np.where(motion, ACCELERATION, TORQUE), poses=Schedule._field_defaults["poses"],
                                 signal=np.where(constant, first + np.arange(nv), schedule.signal))
    return replace(problem, schedule=schedule, signals=signals, signal_names=(*problem.signal_names, *["constant"] * len(values)))


def signal_at(problem: Problem, k: int, here: Instant) -> float:
    return read_signal(measured_at(problem.model, problem.signals, here.q, here.v), k, here.t, here.q, here.v)[0]


def _with_constants(signals, values):
    """The signals, and a constant one for each value."""
    n = len(values)
    return signals._replace(kind=np.append(signals.kind, np.full(n, CONSTANT)),
                            first=np.append(signals.first, len(signals.literals) + np.arange(n)),
                            count=np.append(signals.count, np.ones(n, dtype=np.int64)),
                            literals=np.append(signals.literals, values))


def push_of(actuator) -> np.ndarray:
    """(6,) wrench of a thrust of 1 N, in its link's frame."""
    axis = np.array(actuator.axis) / np.linalg.norm(actuator.axis)
    return np.concatenate([np.cross(actuator.position, axis) + actuator.torque_ratio * axis, axis])


def thrust_columns(model: Model, q) -> np.ndarray:
    """(nv, actuators) generalized forces of thrusts of 1 N."""
    columns = [jacobian(model, q, actuator.link).T @ push_of(actuator) for actuator in model.description.actuators]
    return np.column_stack(columns) if columns else np.zeros((model.nv, 0))
