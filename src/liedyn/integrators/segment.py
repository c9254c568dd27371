"""Right-hand side, sampled torques and state of a segment of a run, which can be saved and restored in another process."""
from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from liedyn.dynamics.constraints.constraints import use_generic_kernels
from liedyn.errors import WarningLog
from liedyn.integrators.diagnosis import early_end_error, failure
from liedyn.integrators.problem import (
    InitialValueProblem,
    Options,
    RunObserver,
    SegmentStart,
    Statistics,
    allocate_stages,
    initial_state,
    loop_statistics,
    state_vector,
)
from liedyn.integrators.run_state import (
    EVALUATIONS,
    FIRST_RATE_KNOWN,
    NEXT_BREAK,
    STEPS,
    T_NOW,
    BreakPoints,
    GenericCall,
    Record,
    State,
    arrays_of,
    constraint_arrays,
    load_arrays,
)
from liedyn.integrators.zero_crossings import ZeroCrossings
from liedyn.kernels.simulation.rate_evaluation import (
    CURVE_COEFFICIENTS,
    INVALID_ARGUMENTS,
    GeneratedCall,
    project_state,
    rates_compiled,
    stage_rates_compiled,
)
from liedyn.kernels.simulation.right_hand_side import FINISHED, NOT_CONVERGED, RUNNING, MotionWorkspace
from liedyn.kernels.simulation.signals import CONSTANT, ORDER, POLYNOMIAL, SWITCH_SIZE, Signals

# The right-hand side of a run: generated code if available, otherwise generic kernels -----------------------------------

class RightHandSide:
    """The right-hand side of a run: one of `generated` and `generic` is used, the other is None.

    signals      signals with the switches of this run
    constraints  a `ConstrainedSystem`, or None
    """

    def __init__(self, problem, signals: Signals):
        self.problem, self.signals, self.constraints = problem, signals, problem.constrained_system()
        self.generated = generated_call(problem, signals, self.constraints)
        self.generic = None if self.generated else self._generic_call()
        self.break_points = BreakPoints(problem.schedule.breaks, problem.schedule.before, problem.schedule.q_of_v, signals.held,
                                        self.constraints.constraint_ws if self.constraints else np.zeros(0), False)

    def use_generic_kernels(self) -> None:
        """Replace the generated code, for example for angles outside the range of its sine."""
        if self.constraints:
            use_generic_kernels(self.constraints.constraint_ws)
        self.generated, self.generic = None, self._generic_call()

    def state_dict(self) -> dict:
        return {"is_generic": self.generated is None, "measured": self.signals.measured,
                "constraints": arrays_of(constraint_arrays(self.constraints))}

    def load_state_dict(self, state: dict) -> None:
        if state["is_generic"] and self.generated is not None:
            self.use_generic_kernels()
        self.signals.measured[:] = state["measured"]
        load_arrays(constraint_arrays(self.constraints), state["constraints"])

    def evaluate(self, *arguments) -> int:
        """Evaluate (t, q0, y, K, row, ws): see `rates_compiled`."""
        return self._call_or_fall_back(rates_compiled, arguments)

    def evaluate_stages(self, *arguments) -> int:
        """Evaluate (method, t, h, ceiling, state, stages, first, last, ws): see `stage_rates`."""
        return self._call_or_fall_back(stage_rates_compiled, arguments)

    def bring_back(self, *arguments) -> int:
        """Project (t, counted, q0, y, q, ws) onto the constraints: see `project_state`."""
        return self._call_or_fall_back(project_state, arguments)

    def _call_or_fall_back(self, function, arguments) -> int:
        code = function(self.generated, self.generic, *arguments)
        if code == INVALID_ARGUMENTS and self.generated:
            self.use_generic_kernels()
            code = function(self.generated, self.generic, *arguments)
        return code

    def _generic_call(self) -> GenericCall:
        p = self.problem
        return GenericCall(*p.model._arrays[:2], p.system(), p.schedule, self.signals, self.constraints)


def generated_call(problem, signals: Signals, constraints) -> GeneratedCall | None:
    step, count = problem.generated_rhs, signals.held.size // SWITCH_SIZE
    if step is None:
        return None
    curves = step.curves
    numbers = problem.tables()._replace(signals=signals).numbers if signals.clocks.size else step.numbers
    return GeneratedCall(step.address, step.second_address, step.projection_address, constraints.constraint_ws
                         if constraints else np.zeros(0), np.zeros(1), np.zeros(CURVE_COEFFICIENTS * len(curves)),
                         signals.first[curves], signals.count[curves], signals.breaks, signals.coefficients, signals.held,
                         numbers, np.zeros(2), np.zeros(count), np.zeros(ORDER))


# held torques -----------------------------------------------------------------------------------------------------------

# Torques of a sampled controller in a segment of a run: constant or linear in time, updated at the ends of steps.

SAME_TIME_SPACINGS = 4                 # spacings of floats between times that are the same but for rounding


class ZeroOrderHold:
    """Applies the torques of a sampled controller in a segment.

    controller  has `act(problem, t, q0, y)`, called at the start and at each time `due`, and `torque` (nv,), which is held; for
                torques linear in time also `slope` (nv,) and their start time `since`
    rhs         the `RightHandSide` of the segment, which gets separate constants and break points
    times       output times of the segment
    """

    def __init__(self, problem, controller, rhs, times=()):
        self.problem, self.controller, self.rhs, self.times = problem, controller, rhs, np.asarray(times)
        signals, signal = problem.signals, problem.sampled.signal
        self.coordinates = np.flatnonzero(signal >= 0)
        self.first = signals.first[signal[self.coordinates]]
        self.linear_in_time = bool((signals.kind[signal[self.coordinates]] == POLYNOMIAL).any())
        # generated code reads the constants that are not zero, in their order (`codegen.scenario_inputs`)
        constants = signals.first[signals.kind == CONSTANT]
        constants = constants[signals.literals[constants] != 0.0]
        self.numbers = np.searchsorted(constants, self.first)
        own = {name: getattr(signals, name).copy()
               for name in (("breaks", "coefficients") if self.linear_in_time else ("literals",))}
        rhs.signals = signals._replace(held=rhs.signals.held, **own)
        if rhs.generated is not None:
            own = own if self.linear_in_time else {"numbers": rhs.generated.numbers.copy()}
            rhs.generated = rhs.generated._replace(**own)
        else:
            rhs.generic = rhs.generic._replace(signals=rhs.signals)
        self.breaks, self.before = rhs.break_points.breaks, rhs.break_points.before
        rhs.break_points = rhs.break_points._replace(breaks=np.zeros(1), before=np.zeros(1), stops_at_breaks=True)

    def state_dict(self) -> dict:
        """Return the state; the torques are part of the state of the controller."""
        return {"breaks": self.rhs.break_points.breaks, "before": self.rhs.break_points.before}

    def load_state_dict(self, state: dict) -> None:
        """Restore the state; the state of the controller must be restored before."""
        self.rhs.break_points.breaks[:], self.rhs.break_points.before[:] = state["breaks"], state["before"]
        self.write_torques()

    def act(self, state: State) -> None:
        """Call the controller if it is due at the present state, and set the next stop time."""
        t = float(state.clock[T_NOW])
        self.controller.update(self.problem, t, state.q, state.y)
        self.write_torques()
        self._limit_step(t)
        # the stop time and the rates have changed
        state.count[NEXT_BREAK] = state.count[FIRST_RATE_KNOWN] = 0

    def write_torques(self) -> None:
        """Write the torque that the controller holds to the constants of the signals."""
        torque, signals = self.controller.torque[self.coordinates], self.rhs.signals
        if self.linear_in_time:
            signals.breaks[self.first], signals.coefficients[ORDER * self.first] = self.controller.since, torque
            signals.coefficients[ORDER * self.first + 1] = self.controller.slope[self.coordinates]
            return
        signals.literals[self.first] = torque
        if self.rhs.generated is not None:
            self.rhs.generated.numbers[self.numbers] = torque

    def _limit_step(self, t: float) -> None:
        k = int(self.breaks.searchsorted(t, "right"))
        stop_time, before = (float(self.breaks[k]), float(self.before[k])) if k < len(self.breaks) else (math.inf, math.inf)
        due = self._snap_to_output(self.controller.next_time)
        if due < stop_time:
            stop_time, before = due, math.nextafter(due, -math.inf)
        self.rhs.break_points.breaks[0], self.rhs.break_points.before[0] = stop_time, before

    def _snap_to_output(self, due: float) -> float:
        """Return the output time equal to `due` within rounding, so that its row has the new torque; otherwise `due`."""
        k = int(self.times.searchsorted(due - SAME_TIME_SPACINGS * math.ulp(due)))
        return float(self.times[k]) if k < len(self.times) and self.times[k] - due <= SAME_TIME_SPACINGS * math.ulp(due) else due

    @property
    def stop_time(self) -> tuple[float, float]:
        """Return the time at which the next step must end, and the last time that counts as before it."""
        return float(self.rhs.break_points.breaks[0]), float(self.rhs.break_points.before[0])


# The state of a segment ------------------------------------------------------------------------------------------------

class SegmentState:
    """State of a segment during its computation, and its record.

    stages       number of rows of rates; with_values: whether they have columns for the values of switches
    torques      the `ZeroOrderHold` of a sampled controller, or None
    fired        events that have ended the segment
    jump_events  events among `fired` whose expressions jump there
    """

    def __init__(self, problem, start, times, controller, stages: int, with_values: bool):
        self.fired: tuple[int, ...] = ()
        self.jump_events: tuple[int, ...] = ()
        self.problem, self.switches = problem, ZeroCrossings(problem, start)
        self.record, self.workspace = problem.allocate_record(np.array(times)), problem.workspace()
        self.state = initial_state(problem, start)
        self.rhs = RightHandSide(problem, self.switches.signals)
        self.stages = allocate_stages(stages, problem, len(self.switches) if with_values else 0)
        self.torques = None if controller is None else ZeroOrderHold(problem, controller, self.rhs, self.record.t)

    @property
    def constraints(self):
        return self.rhs.constraints

    def end(self, t: float, supplied_energy: float, integral: np.ndarray, step: float = 0.0) -> SegmentStart:
        """Return the final state, read from the workspace. step: next step of an adaptive method."""
        signs, armed, bounds = self.switches.event_signs(len(self.problem.schedule.watch))
        return SegmentStart(t, self.workspace.q.copy(), self.workspace.v.copy(), supplied_energy, self.fired, step, integral,
                            signs, armed, bounds, self.jump_events, self.switches.switch_signs())

    def state_dict(self) -> dict:
        """Return the state on which the rest of the segment depends."""
        return {"state": arrays_of(self.state), "stages": arrays_of(self.stages), "workspace": arrays_of(self.workspace),
                "switches": self.switches.state_dict(), "rhs": self.rhs.state_dict(),
                "torques": None if self.torques is None else self.torques.state_dict()}

    def load_state_dict(self, state: dict) -> None:
        self.rhs.load_state_dict(state["rhs"])
        self.switches.load_state_dict(state["switches"])
        for name in ("state", "stages", "workspace"):
            load_arrays(getattr(self, name), state[name])
        if self.torques is not None:
            self.torques.load_state_dict(state["torques"])


# The right-hand side at one state ---------------------------------------------------------------------------------------

def evaluate_state(problem: InitialValueProblem, t: float, q, v, rhs: RightHandSide | None = None,
                   integral=None) -> MotionWorkspace:
    """Return a workspace with the inputs and accelerations at a state. Raises ComputationError if they cannot be evaluated.

    rhs       right-hand side, for several evaluations of one problem; default: a new one, with `problem.signals`
    integral  (nv,) integrals of pid laws; None: zero
    """
    ws, n, rhs = problem.workspace(), problem.size, rhs or RightHandSide(problem, problem.signals)
    y, K = state_vector(problem, v, integral), np.zeros((2, n))
    code = rhs.evaluate(t, np.array(q), y, K, 0, ws)
    if code != RUNNING:
        raise failure(problem, code, t, ws, rhs.constraints)
    integrals = slice(2 * problem.model.nv, n - 1)
    ws.z[:] = np.concatenate([y[integrals], K[0, integrals]])           # not written by generated code
    return ws


# chunks -----------------------------------------------------------------------------------------------------------------

# A compiled loop over a run, called for a few steps at a time: in between, progress is reported and interrupts are handled.

CHUNK_SECONDS = 0.2       # of a chunk
_FIRST_CHUNK = 20         # steps


def next_chunk_steps(steps: int, seconds: float) -> int:
    """Return the number of steps of the next chunk if the last one of `steps` steps took `seconds`."""
    return int(min(max(steps * CHUNK_SECONDS / max(seconds, 1e-9), steps / 4 + 1), steps * 4))


class FixedStepState:
    """State of a run of `solve_in_chunks`."""

    def __init__(self, problem: InitialValueProblem, method_ws, constraints):
        self.state, self.workspace, self.method_ws = initial_state(problem), problem.workspace(), method_ws
        self.constraints = constraint_arrays(constraints)

    def state_dict(self) -> dict:
        return {name: arrays_of(x) for name, x in vars(self).items()}

    def load_state_dict(self, state: dict) -> None:
        for name, x in vars(self).items():
            load_arrays(x, state[name])


def solve_in_chunks(advance: Callable, problem: InitialValueProblem, times: np.ndarray, options: Options,
                    progress: Callable[[float], None], observer: RunObserver, method_ws, constraints,
                    reason: str = "") -> tuple[Record, Statistics]:
    """Solve the problem as `solve` does, with a method of fixed steps whose iteration can fail.

    advance      (state, record, ws, steps) -> code: take so many steps, or stop at a code other than RUNNING
    method_ws    workspace of the method, kept between chunks
    constraints  a `ConstrainedSystem`, or None
    reason       cause of failures of the iteration, for messages
    """
    began = time.perf_counter()
    record, run = problem.allocate_record(times), FixedStepState(problem, method_ws, constraints)
    state, ws = run.state, run.workspace
    if observer.saved_state is not None:
        run.load_state_dict(observer.saved_state)
    observer.begin_segment(record, state.count)
    code, steps = RUNNING, _FIRST_CHUNK
    while code == RUNNING:
        observer.checkpoint(float(state.clock[T_NOW]), run.state_dict)
        chunk = time.perf_counter()
        code = advance(state, record, ws, steps)
        steps = next_chunk_steps(steps, time.perf_counter() - chunk)
        progress(state.clock[T_NOW] / max(times[-1], 1e-300))
    t = float(state.clock[T_NOW])
    if code == NOT_CONVERGED:
        raise early_end_error(f"{options.method} did not converge in the step from t = {t:.6g} s{reason}", True, t)
    if code != FINISHED:
        raise failure(problem, code, t, ws, constraints, options)
    warnings = WarningLog()
    if problem.signals.held.size:
        warnings.add("switches-not-located",
                     f"{options.method} does not locate switches of step, sign, abs, floor, min or max of the state: it is of "
                     "first order there")
    return record, Statistics(int(state.count[STEPS]), 0, int(state.count[EVALUATIONS]), time.perf_counter() - began,
                              loop_statistics(constraints), tuple(warnings))
