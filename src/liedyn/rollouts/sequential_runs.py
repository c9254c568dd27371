"""Runs of a rollout by the compiled loop of a single run, and the options that require generated code."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np

from liedyn.codegen.batch_step import DEPENDENT_EQUATIONS
from liedyn.errors import ComputationError, UsageError, list_names
from liedyn.integrators.batch_integrator import BatchOutputs, BatchStates
from liedyn.integrators.problem import InitialValueProblem, Options, RunObserver, SegmentStart
from liedyn.integrators.run_state import NEXT_OUTPUT, Record
from liedyn.integrators.solve import solve_segment
from liedyn.io.scenarios.scenario import Scenario
from liedyn.rollouts.engine import make_problem, moving_model, with_robot
from liedyn.rollouts.inputs import RolloutInputs
from liedyn.rollouts.rollout_warnings import stretch_warnings
from liedyn.simulation.hybrid_simulation import HybridSimulation
from liedyn.simulation.joint_friction import JointFriction, rigid_frictions
from liedyn.simulation.run_recorder import RunRecorder
from liedyn.simulation.segment_problems import HybridState
from liedyn.simulation.signals.curves import SAME_TIME

NO_GENERATED_CODE = "is not available for {} with this robot (too many operations, or LIEDYN_CODE=generic)"


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
                    dt: float, rows: np.ndarray, method: str, single: bool = False) -> dict[int, str]:
    """Repeat runs whose independent constraint equations became dependent; a single run chooses them at each step.

    single: whether the runs had single precision. Then all that ended early are repeated, in double precision.

    Returns the same as `run_sequentially`.
    """
    if any(is_used for is_used, _ in _unsupported(problem, runs, method)):
        return {}
    runs.rerun_indices = np.flatnonzero(((batch_states.codes == DEPENDENT_EQUATIONS) | single) & (batch_states.ended >= 0))
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
    runs.warnings += stretch_warnings(runs, outputs.q, outputs.v)
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
    signals = SimpleNamespace(signal=np.arange(runs.n_inputs), measures=False)
    return replace(problem, q=runs.q[k], v=runs.v[k], joint_laws=laws, sampled=signals)
