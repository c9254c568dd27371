"""Problem of a rollout, its runs vectorized by generated code, and its contacts."""
from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from liedyn.codegen.batch_step import BatchStep, Pivots
from liedyn.codegen.specialize import cached_scenario, is_enabled
from liedyn.errors import ShapeError, UsageError, list_names
from liedyn.integrators.batch_integrator import BatchIntegrator, BatchOutputs, BatchStates, Grid, generated_step
from liedyn.integrators.diagnosis import check_inertia
from liedyn.integrators.problem import ConstraintOptions, InitialValueProblem
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
from liedyn.simulation.control.thrusts import input_name, thrust_entries
from liedyn.simulation.joint_friction import FrictionState, rigid_frictions, without_friction
from liedyn.simulation.joint_stops import bind_stops
from liedyn.simulation.name_binding import v_to_q_indices
from liedyn.simulation.signals.signal_compiler import SignalCompiler, SignalPurpose


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
    single       whether the step computes in single precision
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
    single: bool = False


_MOVING_MODEL = ModelValue("robot without rigid friction")


def prepare_problem(runs: RolloutInputs, mask: np.ndarray, passive: bool, method: str, places: tuple[int, ...],
                    events: Events | None, single: bool = False) -> tuple[InitialValueProblem, BatchStep | None]:
    """Return the problem in which `mask` (nv,) is prescribed, without rigid friction, and its generated step or None.

    Both are cached with the model, because training loops call many short rollouts.
    """
    model, pattern, contacts, rows = runs.model, runs.pattern, runs.contacts, runs.rows.get(mask.tobytes(), ())
    key = RolloutKey(None if pattern is None else pattern.tobytes(), runs.n_inputs, contacts and contacts.key, mask.tobytes(),
                     bool(passive), method, places, rows, events and events.key, is_enabled(), single)
    def build() -> tuple[InitialValueProblem, BatchStep | None]:
        moving = moving_model(model, passive)
        problem = checked_problem(moving, runs, mask, passive, events)
        return problem, None if moving is not model else generated_step(problem, method, places, pivots(problem, rows),
                                                                                single)
    problem, step = cached_scenario(model, key, build)
    return problem, step


def check_single_precision(caller: str, model: Model, unsupported: Mapping[str, object]) -> bool:
    """Return True. Raise UsageError for what a rollout or Stepper in single precision does not support, if any is not None."""
    used = [name for name, x in {"loops or couplings": model.nc or None, **unsupported}.items() if x is not None]
    if used:
        raise UsageError(f"a {caller} with {list_names(used, 5)} is not available in single precision; use dtype=\"float64\"")
    return True


def normalize_quaternions(model: Model, q: np.ndarray) -> None:
    """Divide quaternions by their norm, which single precision has rounded."""
    for columns in model.quaternions.values():
        q[..., columns] /= np.linalg.norm(q[..., columns], axis=-1, keepdims=True)


def moving_model(model: Model, passive: bool) -> Model:
    """Return the robot without rigid friction, which runs add by its modes; `model` if none acts."""
    frictions = rigid_frictions(model) if passive else ()
    moving: Model = model.cached(_MOVING_MODEL, lambda: without_friction(model, frictions)) if frictions else model
    return moving


def pivots(problem: InitialValueProblem, rows: Pivots) -> Pivots:
    """Return the independent constraint equations for generated code: none where couplings are eliminated."""
    return rows if problem.solves_constraints else ()


def checked_problem(model: Model, runs: RolloutInputs, mask: np.ndarray, passive: bool,
                    events: Events | None) -> InitialValueProblem:
    """Return `make_problem`, in which each torque moves an inertia; that of variants is not checked."""
    problem = make_problem(model, runs, mask, passive, events)
    if runs.variants is None:
        problem = problem.with_transferred_inertia()
        check_inertia(problem, prescribe="prescribe its motion (`prescribed`)")
    return problem


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
    entries = thrust_entries(model, range(n_inputs - nv))
    actuators, links = (np.array([entry[k] for entry in entries], dtype=np.int64) for k in range(2))
    basis = np.array([wrench for *_, wrench in entries])
    schedule = InputSchedule(level, each[:nv], np.full(nv, -1), np.zeros(nv), np.zeros(nv),
                             v_to_q_indices(model), links, np.zeros_like(links), basis.ravel(), np.zeros(3 * len(links)),
                             each[nv + actuators], np.full(len(links), -np.inf), np.full(len(links), np.inf), none, none, watch,
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
