"""Execution of the runs of a rollout: vectorized by generated code, or sequentially by the compiled loop of a single run."""
from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, TypeAlias
from weakref import ref

import numpy as np

from liedyn.arrays import Integers
from liedyn.codegen.batch_step import DEPENDENT_EQUATIONS, BatchStep, Pivots
from liedyn.codegen.specialize import cached_scenario, is_enabled
from liedyn.dynamics.constraints.constraints import constraint_jacobian
from liedyn.dynamics.constraints.rank import scaled_equations, scaled_rank
from liedyn.dynamics.dynamics import inverse_mass_matrix
from liedyn.errors import ComputationError, LiedynWarning, ShapeError, UsageError, list_names
from liedyn.integrators.batch_integrator import BatchIntegrator, BatchOutputs, BatchStates, Grid, generated_step
from liedyn.integrators.diagnosis import GAINS_LABEL, STABILITY_LIMIT, FastestMotion, check_inertia, fastest_motion
from liedyn.integrators.problem import ConstraintOptions, InitialValueProblem, Options, RunObserver, SegmentStart
from liedyn.integrators.run_state import NEXT_OUTPUT, Record
from liedyn.integrators.solve import solve_segment
from liedyn.io.scenarios.scenario import Scenario
from liedyn.joints.joint_model import tree_views
from liedyn.kernels.simulation.contact import MATERIAL_SIZE, STIFFNESS
from liedyn.kernels.simulation.signals import ACCELERATION, TORQUE, InputSchedule, Poses
from liedyn.model.model import Model
from liedyn.model.model_cache import ModelValue
from liedyn.rollouts.events import Events, RolloutEventHandler, unfreeze_switches
from liedyn.rollouts.inputs import RolloutInputs, to_numpy
from liedyn.simulation.contact_setup import (
    ContactMotion,
    contact_motion,
    friction_coefficients,
    material_scale,
    place_stretches,
    scale_with_weight,
)
from liedyn.simulation.control.joint_control import empty_joint_laws
from liedyn.simulation.control.thrusts import input_name, thrust_basis
from liedyn.simulation.hybrid_simulation import HybridSimulation
from liedyn.simulation.joint_friction import FrictionState, JointFriction, rigid_frictions, without_friction
from liedyn.simulation.joint_stops import bind_stops
from liedyn.simulation.limits import position_limit_warnings
from liedyn.simulation.name_binding import v_to_q_indices
from liedyn.simulation.run_checks import MIN_CREEP_TIME, measure_creep, smoothed_friction, spaced_rows
from liedyn.simulation.run_recorder import RunRecorder
from liedyn.simulation.segment_problems import HybridState
from liedyn.simulation.signals.curves import SAME_TIME
from liedyn.simulation.signals.signal_compiler import SignalCompiler, SignalPurpose

NO_GENERATED_CODE = "is not available for {} with this robot (too many operations, or LIEDYN_CODE=generic)"
_MIN_ALIGNMENT = 0.5      # minimum |product of cosines| between the equations at two outputs at which its sign is significant
STABILITY_LIMITS = {"rk4": STABILITY_LIMIT, "semi_implicit": 2.0}        # of the step multiplied by the fastest rate
_MAX_EXTREME_RUNS = 16    # whose steps are checked


@dataclass(frozen=True)
class RolloutKey:
    """Everything on which the problem of a rollout and its generated step depend.

    pattern      bytes of the mask of nonzero gains; None: no feedback
    n_inputs     number of inputs: thrusts of actuators act, or not
    contacts     text of the contacts
    prescribed   bytes of the mask
    places       indices in `Model.constants` that differ between runs
    rows         independent constraint equations
    events       key of the events
    generated    whether generated code is enabled
    """

    pattern: bytes | None
    n_inputs: int
    contacts: str | None
    prescribed: bytes
    passive: bool
    method: str
    places: tuple[int, ...]
    rows: tuple[Any, ...]
    events: Hashable
    generated: bool


@dataclass
class _WarningHistory:
    """Earlier rollouts of a model.

    without_warnings  arguments of the last rollout without warnings, except its states
    limits_reported   whether a warning about position limits was returned
    """

    without_warnings: tuple[Any, ...] | None = None
    limits_reported: bool = False


_WARNING_HISTORY = ModelValue("warnings of rollouts")
_MOVING_MODEL = ModelValue("robot without rigid friction")


def prepare_problem(runs: RolloutInputs, mask: np.ndarray, passive: bool, method: str, places: tuple[int, ...],
                    events: Events | None) -> tuple[InitialValueProblem, BatchStep | None]:
    """Return the problem in which `mask` (nv,) is prescribed, without rigid friction, and its generated step or None.

    Both are cached with the model, because training loops call many short rollouts.
    """
    model, pattern, contacts, rows = runs.model, runs.pattern, runs.contacts, runs.rows.get(mask.tobytes(), ())
    key = RolloutKey(None if pattern is None else pattern.tobytes(), runs.n_inputs, contacts and contacts.key, mask.tobytes(),
                     bool(passive), method, places, rows, events and events.key, is_enabled())
    def build() -> tuple[InitialValueProblem, BatchStep | None]:
        moving = moving_model(model, passive)
        problem = make_problem(moving, runs, mask, passive, events)
        if runs.variants is None:
            problem = problem.with_transferred_inertia()
            check_inertia(problem, prescribe="prescribe its motion (`prescribed`)")
        return problem, None if moving is not model else generated_step(problem, method, places, pivots(problem, rows))
    problem, step = cached_scenario(model, key, build)
    return problem, step


def moving_model(model: Model, passive: bool) -> Model:
    """Return the robot without rigid friction, which runs add by its modes; `model` if none acts."""
    frictions = rigid_frictions(model) if passive else ()
    moving: Model = model.cached(_MOVING_MODEL, lambda: without_friction(model, frictions)) if frictions else model
    return moving


def pivots(problem: InitialValueProblem, rows: Pivots) -> Pivots:
    """Return the independent constraint equations for generated code: none where couplings are eliminated."""
    return rows if problem.solves_constraints else ()


def make_problem(model: Model, runs: RolloutInputs, mask: np.ndarray, passive: bool, events: Events | None,
             friction: FrictionState = ()) -> InitialValueProblem:
    """Return a problem whose generalized forces, thrusts, accelerations and feedback gains are constants of value 1.

    friction   modes of the coordinates with rigid friction, which `model` does not have
    """
    n_inputs, pattern = runs.n_inputs, runs.pattern
    nv, none, no = model.nv, np.zeros(0), np.zeros(0, dtype=np.int64)
    table = SignalCompiler(model, np.inf, v_to_q_indices(model))
    each = np.array([table.add_program(1.0, SignalPurpose(f"torque of {input_name(model, k)}"), exclusive=True)
                     for k in range(n_inputs)], dtype=np.int64)
    contacts, integral = (None, no) if runs.contacts is None else place_stretches(runs.contacts.contacts, nv, no)
    level = np.where(mask, ACCELERATION, TORQUE)
    stops = bind_stops((), level, (), friction, table, model)
    watch = np.append(no if events is None else events.add_event_signals(table), np.array(stops.event_signals, dtype=np.int64))
    actuators, basis = np.arange(n_inputs - nv), thrust_basis(model)[:n_inputs - nv]
    links = np.array([model.link_index(model.description.actuators[j].link) for j in actuators], dtype=np.int64)
    schedule = InputSchedule(level, each[:nv], np.full(nv, -1), np.zeros(nv), np.zeros(nv),
                             v_to_q_indices(model), links, np.zeros_like(links), basis.ravel(), np.zeros(3 * len(links)),
                             each[nv:], np.full(len(links), -np.inf), np.full(len(links), np.inf), none, none, watch,
                             Poses(*[no] * 5), integral, force_actuator=actuators)
    signals = table.arrays(none, none) if friction else unfreeze_switches(table.arrays(none, none))
    laws = None
    if pattern is not None:
        laws = empty_joint_laws(model, np.full(nv, np.inf), np.zeros(nv, dtype=bool),
                                np.zeros(nv, dtype=bool))._replace(active_laws=np.array([False, True, False]),
                                                                   gain=pattern.astype(float).reshape(-1),
                                                                   setpoint_q=model.neutral(), setpoint_tau=np.zeros(n_inputs),
                                                                   feedback=np.zeros(n_inputs))
        laws.row[:n_inputs] = each
    constraints = ConstraintOptions(no) if model.nc else None
    return InitialValueProblem(model=model, q=model.neutral(), v=np.zeros(nv), passive=passive, constraints=constraints,
                               schedule=schedule, signals=signals, stack_size=table.stack_size, joint_laws=laws,
                               contacts=contacts, stops=stops.stops, hard_stop_scales=stops.sizes,
                               directions=(*(events.directions if events else ()), *stops.directions))


def step_clocks(steps: int, dt: float) -> np.ndarray:
    """Return the clocks (S + 1, 4) of `BatchStep`."""
    t = dt * np.arange(steps + 1)
    return np.stack([np.full(steps + 1, dt), t, t + 0.5 * dt, t + dt], axis=1)


def run_vectorized(engines: list[BatchIntegrator], runs: RolloutInputs, batch_states: BatchStates, outputs: BatchOutputs,
                   dt: float, rows: np.ndarray, handler: RolloutEventHandler | None) -> None:
    """Simulate all runs by generated code; write their outputs to `outputs`.

    engines  BatchIntegrator of each segment
    rows     steps before which there is an output
    """
    steps, values, row = runs.steps, runs.values(), np.full(runs.steps + 1, -1)
    row[rows] = np.arange(len(rows))
    clocks = step_clocks(steps, dt)
    timed = handler.events.timed if handler else {}
    # the last row of each run has the state after the events of its time, and the forces of its last step
    closes = handler is not None or bool(outputs.forces.shape[2] and (runs.last < steps).any())
    cuts, tau = sorted({*timed, *(runs.last.tolist() if closes else ())}), None
    for engine, (first, until, _) in zip(engines, runs.segments, strict=True):
        # a policy is called before each step
        borders = range(first, until) if runs.policy else [first, *(s for s in cuts if first < s < until)]
        for s, end in pairwise([*borders, until]):
            if runs.policy and (s == 0 or s not in timed):
                tau = policy_torques(runs, s * dt, batch_states.q, batch_states.v)[:, None]
            step_inputs = runs.step_inputs(s, end, tau)
            if handler and (s == 0 or s in timed):
                states_before = batch_states.q.copy(), batch_states.v.copy()
                handler.apply_timed_events(s, engine, clocks[s], step_inputs)
                changed = not all(map(np.array_equal, states_before, (batch_states.q, batch_states.v)))
                if runs.policy and (s > 0 or changed):                 # its arguments are the states after the events
                    tau = policy_torques(runs, s * dt, batch_states.q, batch_states.v)[:, None]
                    step_inputs = runs.step_inputs(s, end, tau)
                handler.update_signs(step_inputs)
            grid = Grid(clocks[s:end + 1], row[s:end + 1].copy())
            if end < steps or closes:
                grid.row[-1] = -1                                      # the next call writes this row, or the code below
            batch_states.last[:] = runs.last - s                             # relative to this call
            if closes:
                batch_states.last[runs.last == s] = -1
            ended_before = batch_states.ended.copy()
            engine.advance(batch_states, grid, outputs, values, step_inputs)
            if handler:
                handler.continue_runs(engine, grid, outputs, step_inputs)
            batch_states.ended[(batch_states.ended >= 0) & (ended_before < 0)] += s
            over = runs.last == end
            if closes and over.any():
                step_inputs = runs.step_inputs(end - 1, end, tau)
                if handler:
                    handler.finish(end, engine, clocks[end], step_inputs)
                batch_states.last[:], ended_before = np.where(over, 0, -1), batch_states.ended.copy()
                engine.advance(batch_states, Grid(clocks[end:end + 1], row[end:end + 1]), outputs, values, step_inputs)
                batch_states.ended[(batch_states.ended >= 0) & (ended_before < 0)] += end


def robot_of_run(runs: RolloutInputs, k: int) -> Model:
    """Return the robot of run k."""
    return runs.model if runs.variants is None else runs.variants.robot(int(runs.robot[k]))


def with_robot(problem: InitialValueProblem, runs: RolloutInputs, k: int) -> InitialValueProblem:
    """Return the problem with the robot of run k, and its contacts."""
    contacts = problem.contacts and scale_with_weight(problem.contacts, runs.weights[runs.robot[k]])
    return replace(problem, model=problem.model if runs.variants is None else robot_of_run(runs, k), contacts=contacts)


def contact_motions(problem: InitialValueProblem, runs: RolloutInputs, q: np.ndarray, v: np.ndarray) -> ContactMotion:
    """Return the contacts at the states q (…, R, nq), v (…, R, nv) of all runs."""
    q, v = (x.reshape(runs.count, *x.shape[-2:]) for x in (q, v))
    ended = np.isnan(q).any(axis=2)
    q, v = np.where(ended[..., None], runs.model.neutral(), q), np.where(ended[..., None], 0.0, v)
    assert runs.contacts is not None and problem.contacts is not None, "the rollout has contacts"
    states = (q, v) if runs.stretches is None else (q, v, runs.stretches)
    names = runs.contacts.names
    force, tangential, depth, slip = (np.empty((*ended.shape, len(names))) for _ in range(4))
    arrays = {"force": force, "depth": depth, "slip": slip, "centre": np.empty((*ended.shape, 3)), "tangential": tangential}
    if _have_equal_frames(runs):
        motion = contact_motion(problem, names, *(x.reshape(-1, x.shape[2]) for x in states))
        for name, x in arrays.items():
            x[...] = getattr(motion, name).reshape(x.shape)
        scale = material_scale(problem.contacts, runs.weights[runs.robot]).reshape(runs.count, len(names), MATERIAL_SIZE)
        force *= scale[:, None, :, STIFFNESS]
        tangential *= scale[:, None, :, STIFFNESS]
    else:
        for robot in np.unique(runs.robot):
            run_indices = np.flatnonzero(runs.robot == robot)
            motion = contact_motion(with_robot(problem, runs, int(run_indices[0])), names,
                                    *(x[run_indices].reshape(-1, x.shape[2]) for x in states))
            for name, x in arrays.items():
                x[run_indices] = getattr(motion, name).reshape(len(run_indices), *x.shape[1:])
    for x in arrays.values():
        x[ended] = np.nan
    of_runs = {name: x.reshape(*runs.lead, *x.shape[1:]) for name, x in arrays.items()}
    return ContactMotion(names, **of_runs, friction=friction_coefficients(problem.contacts))


def _have_equal_frames(runs: RolloutInputs) -> bool:
    """Return whether contacts of the robots of all runs differ in a common factor of their forces only."""
    assert runs.contacts is not None, "the rollout has contacts"
    index = tree_views.py_func(runs.model.index, np.arange(runs.model.constants.size))
    scales = runs.contacts.contacts.scales_with_weight
    return not np.isin(runs.varying[0], np.concatenate([index.S, index.T0, index.link_pose])).any() and (
        runs.variants is None or bool(scales.all()) or not scales.any())


def checked_runs(runs: RolloutInputs, problem: InitialValueProblem, dt: float, method: str, *,
                 without_warnings: bool = False) -> bool:
    """Return whether the last rollout of this model or these variants had the same arguments, except states, and no warnings.

    `without_warnings` stores that this rollout has none. This avoids `stiff_warnings`, which takes longer than a short rollout of
    a training loop.
    """
    if runs.contacts is not None or problem.directions:
        return False
    gains = b"" if runs.pattern is None else runs.pattern.tobytes() + runs.largest_gains[_extreme_runs(runs)].tobytes()
    history = runs.model.cached(_WARNING_HISTORY, _WarningHistory)
    alike = (dt, method, problem.passive, runs.masks.tobytes(), gains, runs.variants and ref(runs.variants))
    if without_warnings:
        history.without_warnings = alike
    return history.without_warnings == alike


def warnings_of(event_warnings: Sequence[LiedynWarning], problem: InitialValueProblem, runs: RolloutInputs, dt: float,
                method: str, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> tuple[LiedynWarning, ...]:
    """Return all warnings about a rollout with states q (…, R, nq), v (…, R, nv) at t (R,). event_warnings: about its events."""
    first, flat = np.unravel_index(0, runs.lead), [x.reshape(runs.count, *x.shape[-2:]) for x in (q, v)]
    return (*event_warnings, *runs.warnings, *stiff_warnings(problem, runs, dt, method, t, *flat),
            *singular_warnings(problem, runs, t, q[first]), *state_warnings(problem, runs, t, q))


def state_warnings(problem: InitialValueProblem, runs: RolloutInputs, t: np.ndarray, q: np.ndarray) -> list[LiedynWarning]:
    """Return the warnings about the states of all runs, which take little time to compute."""
    rows = spaced_rows(t)
    beyond = position_limit_warnings(runs.model, t[rows], q.reshape(runs.count, *q.shape[-2:])[:, rows])
    return [*creep_warnings(problem, runs, t, q), *beyond]


def from_states(warning: LiedynWarning) -> bool:
    """Return whether a warning is one of `state_warnings`."""
    return warning.code in ("friction-creep", "beyond-limits")


def drop_reported(model: Model, warnings: Sequence[LiedynWarning]) -> list[LiedynWarning]:
    """Return the warnings without those on limits, if some were returned before.

    In a training loop, each rollout may exceed the limits.
    """
    beyond = [warning for warning in warnings if warning.code == "beyond-limits"]
    history = model.cached(_WARNING_HISTORY, _WarningHistory)
    new_warnings = [warning for warning in warnings if not (history.limits_reported and warning in beyond)]
    history.limits_reported = history.limits_reported or bool(beyond)
    return new_warnings


def creep_warnings(problem: InitialValueProblem, runs: RolloutInputs, t: np.ndarray, q: np.ndarray) -> list[LiedynWarning]:
    """Return a warning if joints creep because friction is smoothed."""
    model = runs.model if runs.variants else problem.model               # without rigid friction
    if not problem.passive or t[-1] <= MIN_CREEP_TIME:             # saves time in many short rollouts
        return []
    constants = [model.constants] if runs.variants is None else map(runs.variants.constants_of, range(len(runs.variants)))
    friction = np.array([smoothed_friction(model, each) for each in constants])
    if not friction[:, 0].any():
        return []
    return measure_creep(model, friction[runs.robot], t, q.reshape(runs.count, *q.shape[-2:])).warnings()


def singular_warnings(problem: InitialValueProblem, runs: RolloutInputs, t: np.ndarray,
                      q: np.ndarray) -> tuple[LiedynWarning, ...]:
    """Return a warning if mechanisms passed singular configurations.

    It covers runs that were repeated sequentially, and the first run at its outputs t (R,), q (R, nq).
    """
    passed = dict(runs.singular_times)
    first = None if 0 in passed or not runs.rows or not problem.solves_constraints else _singular_time(problem, runs, t, q)
    if first is not None:
        passed[0] = first
    if not passed:
        return ()
    k = min(passed, key=lambda k: (passed[k], k))
    more_runs = f" (and those of {len(passed) - 1} more runs)" if len(passed) > 1 else ""
    return (LiedynWarning("singular-configuration",
                          f"the mechanism of run {k} passed a singular configuration at t = {passed[k]:.6g} s{more_runs}: "
                          "constraints became dependent. The motion may branch there, and was continued on one branch"),)


def _singular_time(problem: InitialValueProblem, runs: RolloutInputs, t: np.ndarray, q: np.ndarray) -> float | None:
    """Return the time at which the independent equations of the first run became dependent, or None.

    It is at an output, or between two of them if the orientation of the equations is reversed: then the determinant of A(t1)
    A(t2)^T is negative, which it is not for small motions without a singular configuration.
    """
    model, whole = robot_of_run(runs, 0), np.isfinite(q).all(axis=1)
    rows = np.array(next(iter(runs.rows.values()))[2], dtype=int)
    if not len(rows) or not whole.any():
        return None
    A = np.where(problem.prescribed, 0.0, scaled_equations(model, constraint_jacobian(model, q[whole])))[:, rows]
    singular, t = scaled_rank(A) < min(A.shape[1:]), t[whole]
    if singular.any():
        return float(t[np.argmax(singular)])
    size = np.linalg.det(A @ np.swapaxes(A, 1, 2))
    turned = np.linalg.det(A[:-1] @ np.swapaxes(A[1:], 1, 2)) < -_MIN_ALIGNMENT * np.sqrt(size[:-1] * size[1:])
    return float(0.5 * (t[:-1] + t[1:])[np.argmax(turned)]) if turned.any() else None


def stiff_warnings(problem: InitialValueProblem, runs: RolloutInputs, dt: float, method: str, t: np.ndarray, q: np.ndarray,
                   v: np.ndarray) -> tuple[LiedynWarning, ...]:
    """Return a warning if forces of joints, contacts and feedback act faster than the step can resolve.

    Evaluated at some outputs t (R,), q (N, R, nq), v (N, R, nv) of the runs with extreme robots and gains, and of those that have
    probably the fastest forces.
    """
    fast = [] if runs.variants is None else _rate_estimates(runs).argmax(axis=0).tolist()
    motions = [(fastest, int(k)) for k in dict.fromkeys((0, *fast, *_extreme_runs(runs)))
               for fastest in _fastest_motions(_problem_with_gains(problem, runs, k), t, q[k], v[k])]
    fastest, k = max(motions, key=lambda x: x[0].rate, default=(FastestMotion(0.0, "", 0.0), 0))
    limit = STABILITY_LIMITS[method]
    if fastest.rate * dt <= limit:
        return ()
    description = fastest.description.replace(GAINS_LABEL, "gains")
    run = f" in run {k}" if k else ""
    return (LiedynWarning("stiff-step",
                          f"dt is too long: {description} at t = {fastest.t:.6g} s{run}, and {method} is not stable there with "
                          f"steps over {limit / fastest.rate:.1g} s; the motion is not reliable"),)


def _extreme_runs(runs: RolloutInputs) -> Integers:
    """Return the first run and the runs with the minimum and maximum of each number of robots and each gain that differs."""
    tables = [] if runs.variants is None else [runs.variants.varying[1][runs.robot]]
    tables += [] if runs.pattern is None else [runs.largest_gains]
    extremes = [k for x in tables for k in (*x.argmin(axis=0), *x.argmax(axis=0))]
    return np.array(list(dict.fromkeys((0, *extremes)))[:_MAX_EXTREME_RUNS])


def _rate_estimates(runs: RolloutInputs) -> np.ndarray:
    """Return (N, 2) upper bounds of the rates by damping, with friction, and of their squares by springs, in initial states.

    `checked_runs` does not depend on them: they change with the states.
    """
    model, nv = runs.model, runs.model.nv
    index = tree_views.py_func(model.index, np.arange(len(model.constants), dtype=np.float64))
    assert runs.variants is not None
    damping, friction, speed, stiffness = (runs.variants.constants_at(x.astype(np.int64))[runs.robot]
                                    for x in (index.damping, index.friction, index.friction_speed, index.stiffness))
    try:
        with runs.with_run_robots() as robots:
            inverse = np.diagonal(inverse_mass_matrix(robots, runs.q), axis1=1, axis2=2)
    except ComputationError:                                   # a joint without inertia
        inverse = np.ones((runs.count, nv))
    return np.column_stack([(inverse * (damping + friction / speed)).sum(axis=1), (inverse * stiffness).sum(axis=1)])


def _problem_with_gains(problem: InitialValueProblem, runs: RolloutInputs, k: int) -> InitialValueProblem:
    """Return the problem with the robot of run k and with its feedback gains of a coordinate on itself as pd laws."""
    at = with_robot(problem, runs, k)
    if runs.pattern is None:
        return at
    nv, gain = runs.model.nv, np.zeros(runs.pattern.shape)
    gain[runs.pattern] = runs.largest_gains[k]
    kp, kd = (np.maximum(np.diag(x), 0.0) for x in (gain[:nv, :nv], gain[:nv, nv:]))
    return replace(at, schedule=at.schedule._replace(kp=kp, kd=kd, target=np.where(kp + kd > 0.0, 0, -1)))


def _fastest_motions(problem: InitialValueProblem, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> list[FastestMotion]:
    """Return the fastest motion at some of the outputs t (R,), q (R, nq), v (R, nv) of a run."""
    whole = np.flatnonzero(np.isfinite(q).all(axis=1))
    if not len(whole):
        return []
    some = np.unique(whole[np.linspace(0, len(whole) - 1, 8).astype(int)])
    return [fastest_motion(problem, float(t[k]), q[k], v[k], False) for k in some]


def policy_torques(runs: RolloutInputs, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the generalized forces and thrusts (N, inputs) of the policy at t [s]."""
    assert runs.policy is not None, "the rollout has a policy"
    tau = runs.policy(float(t), *(x.reshape(*runs.lead, x.shape[1]).copy() for x in (q, v)))
    tau = runs.as_inputs(to_numpy(tau), "the result of the policy")
    try:
        return np.ascontiguousarray(np.broadcast_to(tau, (*runs.lead, runs.n_inputs)).reshape(runs.count, runs.n_inputs))
    except ValueError:
        raise ShapeError(f"the result of the policy has the wrong shape: expected "
                         f"{(*runs.lead, runs.n_inputs)}, got {tau.shape}") from None


class _HeldForces:
    """Generalized forces of one run for `ZeroOrderHold`: row k of a series acts from k dt on."""

    def __init__(self, series: np.ndarray, dt: float):
        self.series, self.dt, self.k, self.torque = series, dt, 0, series[0]

    @property
    def next_time(self) -> float:
        return (self.k + 1) * self.dt if self.k + 1 < len(self.series) else np.inf

    def update(self, _problem: InitialValueProblem, t: float, _q0: np.ndarray, _y: np.ndarray) -> None:
        """Set the forces that act at t."""
        while self.next_time <= t * (1.0 + 1e-15):
            self.k += 1
        self.torque = self.series[min(self.k, len(self.series) - 1)]


class _RowCounter(RunObserver):
    """Observer that keeps the record and the number of rows of a run, also if it fails."""

    record: Any = None
    count: Any = (0,)

    def begin_segment(self, record: Any, count: Any) -> None:
        self.record, self.count = record, count


def check_within_limits(problem: InitialValueProblem, runs: RolloutInputs, method: str) -> None:
    """Raise UsageError for options that the loop of a single run does not support."""
    for is_used, option in _unsupported(problem, runs, method):
        if is_used:
            raise UsageError(f"{option} requires {missing_code(problem, runs, method)}; use {_way_out(problem, runs, method)}")


def _way_out(problem: InitialValueProblem, runs: RolloutInputs, method: str) -> str:
    """Return what runs without generated code can use in place of an option."""
    if moving_model(runs.model, problem.passive) is not runs.model:
        return "ld.simulate"
    if method != "rk4":
        return "rk4 with tau as an array"
    if runs.contacts and runs.contacts.sticking:
        return "rk4 with tau as an array" if runs.policy is not None else "ld.simulate"
    return "semi_implicit, whose code is four times shorter, or tau as an array"


def missing_code(problem: InitialValueProblem, runs: RolloutInputs, method: str) -> str:
    """Return what vectorized runs of a robot require but do not have."""
    model, contacts = runs.model, runs.contacts
    if problem.passive and (frictions := rigid_frictions(model)):
        names = list_names([friction.name for friction in frictions], 4)
        return f"a robot without rigid friction, which {names} {'have' if len(frictions) > 1 else 'has'}"
    if contacts is not None and contacts.sticking:
        return f"contacts that do not stick, unlike {list_names(contacts.sticking, 4)} (key stick)"
    return f"generated code, which {NO_GENERATED_CODE.format(method)}"


def _unsupported(problem: InitialValueProblem, runs: RolloutInputs, method: str) -> tuple[Any, ...]:
    """Return (whether it is used, name) of each option that the loop of a single run does not support."""
    return ((method != "rk4", f"method {method!r}"), (runs.policy is not None, "a policy"),
            (runs.moving, "feedback with gains or a state that change"),
            (len(runs.segments) > 1, "a mask that changes"), (problem.directions, "an event"),
            (runs.variants is not None and problem.passive and rigid_frictions(runs.model), "a rollout of variants"))


def rerun_dependent(problem: InitialValueProblem, runs: RolloutInputs, batch_states: BatchStates, outputs: BatchOutputs,
                    dt: float, rows: np.ndarray, method: str) -> dict[int, str]:
    """Repeat runs whose independent constraint equations became dependent; a single run chooses them at each step.

    Returns the same as `run_sequentially`.
    """
    if any(is_used for is_used, _ in _unsupported(problem, runs, method)):
        return {}
    runs.rerun_indices = np.flatnonzero((batch_states.codes == DEPENDENT_EQUATIONS) & (batch_states.ended >= 0))
    if not len(runs.rerun_indices):
        return {}
    batch_states.ended[runs.rerun_indices] = -1
    return run_sequentially(problem, runs, batch_states, outputs, dt, rows, runs.rerun_indices)


def run_sequentially(problem: InitialValueProblem, runs: RolloutInputs, batch_states: BatchStates, outputs: BatchOutputs,
                     dt: float, rows: np.ndarray, run_indices: Iterable[int]) -> dict[int, str]:
    """Simulate the runs `run_indices` by the compiled loop of a single run.

    Returns the reasons of runs that ended early, by run.
    """
    reasons: dict[int, str] = {}
    driving = runs.step_inputs(0, runs.steps).series
    for k in map(int, run_indices):
        has_output = rows <= runs.last[k]
        times = np.unique(dt * np.append(rows[has_output], runs.last[k]))
        forces = _HeldForces(driving[k], dt)
        if problem.passive and (frictions := rigid_frictions(runs.model)):
            record, count, failed = _run_with_friction(problem, runs, k, frictions, times, dt, forces)
        else:
            record, count, failed = _run_segment(problem, runs, k, times, dt, forces)
        if failed is not None:
            batch_states.ended[k], reasons[k] = round((failed.at or 0.0) / dt), str(failed)
        count = min(count, int(np.count_nonzero(has_output)))
        # the vectorized run may have written more rows
        for x in (outputs.q, outputs.v, outputs.supplied_energy, outputs.forces):
            x[k] = np.nan
        if record is None:                                     # the segment has not begun
            continue
        for x, recorded in ((outputs.q, record.q), (outputs.v, record.v), (outputs.supplied_energy, record.supplied_energy)):
            x[k, :count] = recorded[:count]
        if record.stretch.shape[1]:
            if runs.stretches is None:
                runs.stretches = np.zeros((runs.count, len(rows), record.stretch.shape[1]))
            runs.stretches[k, :count] = record.stretch[:count]
        if outputs.forces.shape[2]:
            outputs.forces[k, :count] = np.concatenate([record.a, record.tau, record.wrench], axis=1)[:count]
    return reasons


_Attempt: TypeAlias = tuple[Record | None, int, ComputationError | None]      # rows, their number, and why the run has ended


def _run_segment(problem: InitialValueProblem, runs: RolloutInputs, k: int, times: np.ndarray, dt: float,
                 forces: _HeldForces) -> _Attempt:
    """Simulate run k."""
    single, counter = _problem_of_run(problem, runs, k), _RowCounter()
    failed = None
    try:
        segment = solve_segment(single, SegmentStart(0.0, single.q, single.v), times, Options(step=dt), controller=forces,
                                observer=counter)
        runs.note_singular(k, segment.statistics)
    except ComputationError as error:
        failed = error
    return counter.record, int(counter.count[NEXT_OUTPUT]), failed


def _run_with_friction(problem: InitialValueProblem, runs: RolloutInputs, k: int, frictions: Sequence[JointFriction],
                       times: np.ndarray, dt: float, forces: _HeldForces) -> _Attempt:
    """Simulate run k with rigid friction: each time when a joint sticks or slides ends a segment."""
    def compile_state(state: HybridState) -> InitialValueProblem:
        segment = make_problem(moving, runs, problem.prescribed, problem.passive, None, state.friction)
        return _problem_of_run(segment.with_transferred_inertia(), runs, k)

    moving, single = moving_model(runs.model, problem.passive), _problem_of_run(problem, runs, k)
    rows, failed = RunRecorder(moving, single, frictions=frictions), None
    scenario = Scenario(robot="", duration=float(times[-1]), output_step=float(times[-1]))
    simulation = HybridSimulation(scenario, moving, single, frictions, compile_state=compile_state, controller=forces)
    try:
        runs.note_singular(k, simulation.run(times, Options(step=dt), lambda fraction: None, rows))
    except ComputationError as error:
        rows.abort_segment()
        failed = error
    runs.warnings += [warning for warning in simulation.warnings if warning not in runs.warnings]
    if not (segments := rows.segments()):
        return None, 0, failed
    record = rows.full_run_record(segments)
    times = times[:np.searchsorted(times, record.t[-1] * (1.0 + SAME_TIME), side="right")]
    last = np.searchsorted(record.t, times + SAME_TIME * record.t[-1], side="right") - 1        # after the events of its time
    return Record(*(x[last] for x in record)), len(times), failed


def _problem_of_run(problem: InitialValueProblem, runs: RolloutInputs, k: int) -> InitialValueProblem:
    """Return the problem of run k: its robot, initial state, feedback and generalized forces."""
    problem = with_robot(problem, runs, k)
    model, laws = problem.model, problem.joint_laws
    if laws is not None and runs.pattern is not None:
        gain = np.zeros(runs.pattern.size)
        gain[runs.pattern.reshape(-1)] = runs.gains[k]
        setpoint = runs.feedback_values[k, runs.gains.shape[1]:]
        laws = laws._replace(gain=gain, setpoint_q=setpoint[:model.nq], setpoint_v=setpoint[model.nq:model.nq + model.nv])
    signals = SimpleNamespace(signal=np.arange(runs.n_inputs))
    return replace(problem, q=runs.q[k], v=runs.v[k], joint_laws=laws, sampled=signals)
