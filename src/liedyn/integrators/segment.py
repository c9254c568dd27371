"""Right-hand side, sampled torques and steppers of a segment of a run, which can be saved and restored in another process."""
from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from liedyn.arrays import Array, ArrayLike
from liedyn.codegen.trace import traced_module
from liedyn.dynamics.constraints.constraints import use_generic_kernels
from liedyn.dynamics.manifold import difference, integrate
from liedyn.errors import ComputationError, LiedynWarning
from liedyn.integrators.diagnosis import early_end_error, failure
from liedyn.integrators.problem import (
    InitialValueProblem,
    Options,
    SegmentStart,
    allocate_stages,
    estimated_parameters,
    initial_state,
    state_integrals,
    state_vector,
)
from liedyn.integrators.run_state import (
    EVALUATIONS,
    FIRST_RATE_KNOWN,
    H_MAX,
    H_TRIED,
    NEXT_BREAK,
    NEXT_OUTPUT,
    STEPS,
    T_BEFORE,
    T_NOW,
    T_STOP,
    T_TRIED,
    BreakPoints,
    State,
    arrays_of,
    constraint_arrays,
    load_arrays,
)
from liedyn.integrators.runge_kutta import Tableau, method_arrays, midpoint, switch_crosses_within
from liedyn.integrators.zero_crossings import CHATTERING_STEPS, ZeroCrossings
from liedyn.kernels.constraints.stages import HEADER
from liedyn.kernels.simulation.rate_evaluation import (
    CURVE_COEFFICIENTS,
    INVALID_ARGUMENTS,
    GeneratedCall,
    GenericArguments,
    GenericCall,
    project_state,
    projection_generic,
    rates_compiled,
    rates_generic,
    stage_rates_compiled,
)
from liedyn.kernels.simulation.right_hand_side import (
    AT_BREAK_POINT,
    NOT_CONVERGED,
    RUNNING,
    SWITCH_CROSSED,
    ConstrainedSystem,
    MotionWorkspace,
)
from liedyn.kernels.simulation.signals import CONSTANT, ORDER, POLYNOMIAL, SWITCH_SIZE, InputSchedule, Signals
from liedyn.numba_tools.decorators import address_for, packed_values

# The right-hand side of a run: generated code if available, otherwise generic kernels -----------------------------------

class RightHandSide:
    """The right-hand side of a run: one of `generated` and `generic` is used, the other is None.

    signals      signals with the switches of this run
    constraints  a `ConstrainedSystem`, or None
    """

    def __init__(self, problem: InitialValueProblem, signals: Signals):
        self.problem, self.signals = problem, signals
        self.constraints = problem.constrained_system() if problem.solves_constraints else None
        self.generated = generated_call(problem, signals, self.constraints)
        self.generic = None if self.generated else self.generic_call()
        self.break_points = BreakPoints(problem.schedule.breaks, problem.schedule.before, problem.schedule.q_of_v,
                                        signals.switches,
                                        self.constraints.constraint_ws if self.constraints else np.zeros(0), False)

    def use_generic_kernels(self) -> None:
        """Replace the generated code, for example for angles outside the range of its sine."""
        if self.constraints:
            use_generic_kernels(self.constraints.constraint_ws)
        self.generated, self.generic = None, self.generic_call()

    def state_dict(self) -> dict[str, Any]:
        """Return the state on which the rest of the segment depends."""
        return {"is_generic": self.generated is None, "measured": self.signals.measured,
                "constraints": arrays_of(constraint_arrays(self.constraints))}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state of `state_dict`."""
        if state["is_generic"] and self.generated is not None:
            self.use_generic_kernels()
        self.signals.measured[:] = state["measured"]
        load_arrays(constraint_arrays(self.constraints), state["constraints"])

    def evaluate(self, *arguments: Any) -> int:
        """Evaluate (t, q0, y, K, row, ws): see `rates_compiled`."""
        return self._call_or_fall_back(rates_compiled, arguments)

    def evaluate_stages(self, *arguments: Any) -> int:
        """Evaluate (method, t, h, ceiling, state, stages, first, last, ws): see `stage_rates`."""
        return self._call_or_fall_back(stage_rates_compiled, arguments)

    def bring_back(self, t: float, count_drift: bool, q0: Array, y: Array, q: Array, ws: MotionWorkspace) -> int:
        """Move the state q0 (+) x, v of y onto the constraints, write q, and y with x = 0. Return a code: `project_state`.

        Where the right-hand side eliminates couplings, it has no projection, and followers get their values.
        """
        if self.constraints is not None:
            return self._call_or_fall_back(project_state, (t, count_drift, q0, y, q, ws))
        nv = self.problem.model.nv
        q[:], y[:nv] = integrate(self.problem.model, q0, y[:nv]), 0.0
        traced_module("kernels.couplings").follow(self.problem.system().couplings, q, y[nv:2 * nv])
        return RUNNING

    def _call_or_fall_back(self, function: Callable[..., int], arguments: tuple[Any, ...]) -> int:
        code = function(self.generated, self.generic, *arguments)
        if code == INVALID_ARGUMENTS and self.generated:
            self.use_generic_kernels()
            code = function(self.generated, self.generic, *arguments)
        return code

    def generic_call(self) -> GenericCall:
        """Return the generic kernels with arrays of this run, which exist as long as this object."""
        p, x, ws = self.problem, np.zeros(0), self.problem.workspace()
        arguments = self._arguments = GenericArguments(*p.model._arrays[:2], p.system(), p.schedule, self.signals,
                                                       self.constraints)
        rates = address_for(rates_generic, arguments, 0.0, x, x, x.reshape(0, 0), 0, ws)
        projection = 0 if self.constraints is None else address_for(projection_generic, arguments, 0.0, False, x, x, x, ws)
        return GenericCall(rates, projection, packed_values(arguments))


def generated_call(problem: InitialValueProblem, signals: Signals, constraints: ConstrainedSystem | None) -> GeneratedCall | None:
    """Return the generated right-hand side with arrays of this run; None if generic kernels are used."""
    step, count = problem.generated_rhs, signals.switches.size // SWITCH_SIZE
    if step is None:
        return None
    curves = step.curves
    scenario_values = problem.tables()._replace(signals=signals).scenario_values if signals.clocks.size else step.scenario_values
    return GeneratedCall(step.address, step.second_address, step.projection_address, constraints.constraint_ws
                         if constraints else np.zeros(0), np.zeros(1), np.zeros(CURVE_COEFFICIENTS * len(curves)),
                         signals.first[curves], signals.count[curves], signals.breaks, signals.coefficients, signals.switches,
                         scenario_values, np.zeros(2), np.zeros(count), np.zeros(ORDER))


# held torques -----------------------------------------------------------------------------------------------------------

# Torques of a sampled controller in a segment of a run: constant or linear in time, updated at the ends of steps.

SAME_TIME_SPACINGS = 4                 # spacings of floats between times that are the same but for rounding


class SampledTorques(Protocol):
    """A controller that is called at sample times.

    torque  (nv,) generalized forces [N m | N], constant until the next sample. A controller whose forces are linear in time also
            has their rate `slope` (nv,), and the time `since` from which they change
    """

    torque: Array

    @property
    def next_time(self) -> float:
        """Time of the next call [s]."""

    def update(self, problem: InitialValueProblem, t: float, q: Array, y: Array) -> None:
        """Take the samples that are due at t in the state y about q."""


class ZeroOrderHold:
    """Applies the torques of a sampled controller in a segment.

    controller  called at the start, and at the times that it gives
    rhs         the `RightHandSide` of the segment, which gets separate constants and break points
    times       output times of the segment
    """

    def __init__(self, problem: InitialValueProblem, controller: SampledTorques, rhs: RightHandSide, times: ArrayLike = ()):
        self.problem, self.controller, self.rhs, self.times = problem, controller, rhs, np.asarray(times)
        signals, signal = problem.signals, problem.sampled.signal
        self.coordinates = np.flatnonzero(signal >= 0)
        self.first = signals.first[signal[self.coordinates]]
        self.linear_in_time = bool((signals.kind[signal[self.coordinates]] == POLYNOMIAL).any())
        # generated code reads the constants that are not zero, in their order (`codegen.scenario_inputs`)
        constants = signals.first[signals.kind == CONSTANT]
        constants = constants[signals.literals[constants] != 0.0]
        self.torque_indices = np.searchsorted(constants, self.first)
        copies = {name: getattr(signals, name).copy()
                  for name in (("breaks", "coefficients") if self.linear_in_time else ("literals",))}
        rhs.signals = signals._replace(switches=rhs.signals.switches, **copies)
        if rhs.generated is not None:
            copies = copies if self.linear_in_time else {"scenario_values": rhs.generated.scenario_values.copy()}
            rhs.generated = rhs.generated._replace(**copies)
        elif rhs.generic is not None:
            rhs.generic = rhs.generic_call()
        self.breaks, self.before = rhs.break_points.breaks, rhs.break_points.before
        rhs.break_points = rhs.break_points._replace(breaks=np.zeros(1), before=np.zeros(1), stops_at_breaks=True)

    def state_dict(self) -> dict[str, Any]:
        """Return the state; the torques are part of the state of the controller."""
        return {"breaks": self.rhs.break_points.breaks, "before": self.rhs.break_points.before}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
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
            controller: Any = self.controller
            signals.breaks[self.first], signals.coefficients[ORDER * self.first] = controller.since, torque
            signals.coefficients[ORDER * self.first + 1] = controller.slope[self.coordinates]
            return
        signals.literals[self.first] = torque
        if self.rhs.generated is not None:
            self.rhs.generated.scenario_values[self.torque_indices] = torque

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


# A method and its state in a segment ------------------------------------------------------------------------------------

class Stepper(ABC):
    """A method, its state in a segment, and the record. The loop over the segment (`solve`) calls these functions.

    take_steps            takes steps with their outputs, until the segment or a step with a crossing ends
    evaluate_part         evaluates the switches after a part of the step that contains a crossing
    accept_part           makes such a part the last step
    accept_step           accepts the whole step if it does not contain a crossing after all
    evaluate_present      evaluates the switches at the present state
    evaluate_ahead        evaluates them shortly after
    state_dict            state on which the rest of the segment depends, for `load_state_dict`

    method             explicit method of these evaluations
    step               length of a step [s], or the maximum of an adaptive method
    torques            the `ZeroOrderHold` of a sampled controller, or None
    triggered          events that have ended the segment
    jump_events        events among `triggered` whose expressions jump there
    detects_crossings  whether the tried step of SWITCH_CROSSED is suspected to contain a crossing
    """

    detects_crossings = True

    def __init__(self, problem: InitialValueProblem, start: SegmentStart, times: ArrayLike, options: Options,
                 controller: SampledTorques | None, tableau: Tableau, stores_values: bool = True):
        self.triggered: tuple[int, ...] = ()
        self.jump_events: tuple[int, ...] = ()
        self.problem, self.options, self.switches = problem, options, ZeroCrossings(problem, start)
        self.method = method_arrays(tableau, options, bool(problem.prescribed.any()))
        self.step = float(self.method.control[H_MAX])
        self.record, self.workspace = problem.allocate_record(np.array(times)), problem.workspace()
        self.last = float(self.record.t[-1])
        self.state = initial_state(problem, start)
        count = max(len(tableau.b), len(tableau.c) - 1)
        self.stages = allocate_stages(count, problem, len(self.switches) if stores_values else 0)
        self.torques = None if controller is None else ZeroOrderHold(problem, controller, self.rhs, self.record.t)

    @cached_property
    def rhs(self) -> RightHandSide:
        """The right-hand side with the switches of this segment. Its code is generated at the first use."""
        return RightHandSide(self.problem, self.switches.signals)

    @property
    def constraints(self) -> ConstrainedSystem | None:
        """The constraints of the steps; None without."""
        return self.rhs.constraints

    @property
    def evaluation(self) -> MotionWorkspace:
        """The workspace of evaluations of switches."""
        return self.workspace

    @property
    def next_step(self) -> float:
        """The next step of an adaptive method [s]; 0: to be chosen."""
        return 0.0

    @property
    def values_in_step(self) -> Array:
        """(k, switches) values of the switches at the stages of the last step; k = 0 if they are not stored."""
        values: Array = self.stages.K[:len(self.method.b), len(self.stages.end):]
        return values if values.size else values[:0]

    @property
    def warnings(self) -> tuple[LiedynWarning, ...]:
        """The warnings about the segment."""
        return tuple(self.switches.warnings)

    def take_steps(self, max_steps: int) -> int:
        """Take steps with their outputs. Return a code of `right_hand_side`.

        FINISHED after the last output; RUNNING after max_steps; SWITCH_CROSSED if a switch crosses in the next step, which is in
        clock[H_TRIED] and the following entries; AT_BREAK_POINT where signals or sampled torques may jump.
        """
        code = RUNNING
        for _ in range(max_steps):
            code = self.take_step()
            if code != RUNNING:
                break
        return code

    def take_step(self) -> int:
        """Take one step with its outputs, for methods without a compiled loop. Return a code as `take_steps`."""
        raise NotImplementedError

    @abstractmethod
    def accept_part(self, h: float) -> int:
        """Move the state to the time h after the beginning of the tried step, with the outputs until then. Return a code."""

    def accept_step(self) -> int:
        """Move the state to the end of the tried step, with the outputs until then. Return a code."""
        return self.accept_part(float(self.state.clock[H_TRIED]))

    @abstractmethod
    def store_output(self) -> int:
        """Store the next output at the present state. Return a code, FINISHED if it is the last one."""

    def evaluate_part(self, h: float) -> None:
        """Evaluate the switches at the time h after the beginning of the tried step, whose rates are in row 0 of the stages."""
        state, stages, count = self.state, self.stages, len(self.method.b)
        t, before = float(state.clock[T_NOW]), float(state.clock[T_BEFORE])
        self.check(t, self.rhs.evaluate_stages(self.method, t, h, before, state, stages, 1, count, self.evaluation), count - 1)
        stages.end[:] = state.y + h * (self.method.b @ stages.K[:count, :len(stages.end)])
        self.evaluate_rates(min(t + h, before), stages.end, count)

    def evaluate_present(self) -> None:
        """Evaluate the switches at the present state."""
        self.evaluate_rates(float(self.state.clock[T_NOW]), self.state.y, len(self.method.b) + 1)

    def evaluate_ahead(self, fraction: float) -> None:
        """Evaluate the switches after a fraction of a step from the present state."""
        if fraction == 0.0:
            return self.evaluate_present()
        t = float(self.state.clock[T_NOW])
        stop_time, _ = self.next_stop(t)
        self.evaluate_rates(t, self.state.y, 0)
        self.state.clock[T_BEFORE] = stop_time
        return Stepper.evaluate_part(self, fraction * min(self.step, stop_time - t))

    def evaluate_rates(self, t: float, y: np.ndarray, row: int) -> None:
        """Evaluate the rates of the state y about the present configuration in a row of the stages."""
        self.check(t, self.rhs.evaluate(t, self.state.q, y, self.stages.K, row, self.evaluation), 1)

    def check(self, t: float, code: int, evaluations: int) -> None:
        """Count evaluations, and raise ComputationError if their code is an error."""
        self.state.count[EVALUATIONS] += evaluations
        if code != RUNNING:
            raise failure(self.problem, code, t, self.evaluation, self.rhs.constraints)

    def next_stop(self, t: float) -> tuple[float, float]:
        """Return the next break after t or the end of the segment, and the last time that counts as before it."""
        breaks, before = self.rhs.break_points.breaks, self.rhs.break_points.before
        k = int(breaks.searchsorted(t, "right"))
        if k < len(breaks) and breaks[k] <= self.last:
            return float(breaks[k]), float(before[k])
        return self.last, math.nextafter(self.last, -math.inf)

    def limit_step(self, any_chattering: bool) -> None:
        """Limit the step of an adaptive method while switches chatter."""
        if self.method.error.size:
            self.method.control[H_MAX] = min(self.step, self.last / CHATTERING_STEPS) if any_chattering else self.step

    def restart(self) -> None:
        """Compute the rates again before the next step, since the signs of switches or torques have changed."""
        self.state.count[FIRST_RATE_KNOWN] = 0

    def failure(self, code: int) -> ComputationError:
        """Return the error for a code that ends the segment early."""
        return failure(self.problem, code, float(self.state.clock[T_NOW]), self.workspace, self.constraints, self.options)

    def end(self) -> SegmentStart:
        """Return the final state; q and v are those of the last output, in the workspace."""
        problem, ws, y, t = self.problem, self.workspace, self.state.y, float(self.state.clock[T_NOW])
        signs, armed, bounds = self.switches.event_signs(len(problem.schedule.watch))
        return SegmentStart(t, ws.q.copy(), ws.v.copy(), float(y[-1]), self.triggered, self.next_step,
                            state_integrals(problem, y), estimated_parameters(problem, y), signs, armed, bounds,
                            self.jump_events, self.switches.switch_signs())

    def state_dict(self) -> dict[str, Any]:
        """Return the state on which the rest of the segment depends."""
        return {"state": arrays_of(self.state), "stages": arrays_of(self.stages), "workspace": arrays_of(self.workspace),
                "switches": self.switches.state_dict(), "rhs": self.rhs.state_dict() if "rhs" in vars(self) else None,
                "torques": None if self.torques is None else self.torques.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state of `state_dict`."""
        if state["rhs"] is not None:
            self.rhs.load_state_dict(state["rhs"])
        self.switches.load_state_dict(state["switches"])
        for name in ("state", "stages", "workspace"):
            load_arrays(getattr(self, name), state[name])
        if self.torques is not None:
            self.torques.load_state_dict(state["torques"])


# Below this fraction of a step, a part of it is an explicit step: an implicit one would divide by its length. The error of third
# order of the explicit step is below rounding there.
_MIN_IMPLICIT_FRACTION = 1e-6


class ImplicitStepper(Stepper):
    """A method of fixed steps whose compiled loop solves equations in each step, with outputs at the ends of steps.

    With switches or sampled torques, the loop takes one step at a time. The switches are evaluated at its ends, and at an
    interpolated state between them. A part of a step is a shorter step from the same state, so crossings are located in the
    discrete solution to rounding error.

    method_ws    workspace of the method, kept between steps
    step_arrays  names of the arrays in it that a step starts from
    constraints  those of the steps, separate from those of evaluations of switches
    reason       cause of failures of the iteration, for messages
    """

    step_arrays: tuple[str, ...] = ()
    reason = ""

    def __init__(self, problem: InitialValueProblem, start: SegmentStart, times: ArrayLike, options: Options,
                 controller: SampledTorques | None, method_ws: tuple[Any, ...], constraints: ConstrainedSystem | None):
        super().__init__(problem, start, times, options, controller, midpoint())
        self.method_ws, self._constraints = method_ws, constraints
        self._schedule = problem.schedule._replace(breaks=np.zeros(1), before=np.zeros(1))        # the stop time of a step
        self._start: list[np.ndarray] = []                     # values of `_start_arrays` at the beginning of the step

    @abstractmethod
    def run(self, schedule: InputSchedule, signals: Signals, max_steps: int) -> int:
        """Call the compiled loop, which ends steps at the breaks of `schedule`. Return a code.

        Without steps, it computes what the next step starts from, and stores an output that is due.
        """

    @property
    def constraints(self) -> ConstrainedSystem | None:
        """The constraints of the steps; None without."""
        return self._constraints

    @cached_property
    def evaluation(self) -> MotionWorkspace:
        """The workspace of evaluations of switches. That of the method contains the accelerations of the next output."""
        return self.problem.workspace()

    @property
    def _start_arrays(self) -> list[np.ndarray]:
        """Arrays that a step starts from and changes. Methods store what they like in clock[H_NEXT]."""
        constraints = [] if self.constraints is None else [self.constraints.constraint_ws[HEADER:]]
        return [self.state.q, self.state.y, self.state.clock[:H_TRIED], *constraints,
                *(getattr(self.method_ws, name) for name in self.step_arrays)]

    def take_steps(self, max_steps: int) -> int:
        """Take steps by the compiled loop, one at a time with switches or sampled torques."""
        if not len(self.switches) and self.torques is None:
            return self.run(self.problem.schedule, self.switches.signals, max_steps)
        return super().take_steps(max_steps)

    def take_step(self) -> int:
        """Take one step, and return to its beginning if a switch crosses in it."""
        clock, t = self.state.clock, float(self.state.clock[T_NOW])
        stop_time, before = self.next_stop(t)
        code = self._run_until(stop_time, before, 0)
        if code != RUNNING:
            return code
        if len(self.switches):
            self.evaluate_rates(t, self.state.y, 0)
        self._start, steps = [x.copy() for x in self._start_arrays], self.state.count[STEPS]
        code = self._run_until(stop_time, before, 1)
        if code == RUNNING and len(self.switches):
            end = float(clock[T_NOW])
            self._evaluate_step(t, end, min(end, before))
            if switch_crosses_within(self.switches.signals.switches, self.method, self.stages):
                self._restore_start()
                clock[[H_TRIED, T_TRIED, T_STOP, T_BEFORE]], self.state.count[STEPS] = (end - t, end, stop_time, before), steps
                return SWITCH_CROSSED
        return AT_BREAK_POINT if code == RUNNING and clock[T_NOW] == stop_time else code

    def _run_until(self, stop_time: float, before: float, max_steps: int) -> int:
        self._schedule.breaks[0], self._schedule.before[0], self.state.count[NEXT_BREAK] = stop_time, before, 0
        return self.run(self._schedule, self.rhs.signals, max_steps)

    def _evaluate_step(self, t: float, end: float, before: float) -> None:
        """Evaluate the switches at the end of the step, and in its middle, which a cubic polynomial predicts."""
        (q, y), K, nv, h = self._start[:2], self.stages.K, self.problem.model.nv, end - t
        self.evaluate_rates(before, self.state.y, 2)
        v, v_end, a, a_end = y[nv:2 * nv], self.state.y[nv:2 * nv], K[0, nv:2 * nv], K[2, nv:2 * nv]
        x = difference(self.problem.model, q, self.state.q)
        middle = np.concatenate([0.5 * x + h / 8 * (v - v_end), 0.5 * (v + v_end) + h / 8 * (a - a_end), y[2 * nv:]])
        self.check(t, self.rhs.evaluate(t + 0.5 * h, q, middle, K, 1, self.evaluation), 1)

    def _restore_start(self) -> None:
        """Return to the beginning of the step."""
        for x, start in zip(self._start_arrays, self._start, strict=True):
            x[...] = start
        self.state.count[FIRST_RATE_KNOWN] = 1

    def _make_part(self, h: float) -> None:
        """Make a step of length h, at most that of the tried step, from its beginning."""
        clock, count = self.state.clock, self.state.count
        self._restore_start()
        t, tried, end, stop_time, before = (float(clock[k]) for k in (T_NOW, H_TRIED, T_TRIED, T_STOP, T_BEFORE))
        steps = int(count[STEPS])
        if h >= tried:
            code = self._run_until(stop_time, before, 1)
        elif h > _MIN_IMPLICIT_FRACTION * self.step:
            end = min(t + h, end)
            code = self._run_until(end, before if end == stop_time else end, 1)
        else:
            code = RUNNING
            self._make_explicit_part(t, min(t + h, end), h)
        count[STEPS] = steps
        if code != RUNNING:
            raise self.failure(code)

    def _make_explicit_part(self, t: float, end: float, h: float) -> None:
        state, nv = self.state, self.problem.model.nv
        self.evaluate_rates(t, state.y, 0)
        super().evaluate_part(h)
        state.q[:], state.y[nv:2 * nv], state.y[-1] = self.evaluation.q, self.evaluation.v, self.stages.end[-1]
        state.clock[T_NOW], state.count[FIRST_RATE_KNOWN] = end, 0

    def evaluate_part(self, h: float) -> None:
        """Make a step of length h from the beginning of the tried step, and evaluate the switches at its end."""
        self._make_part(h)
        self.evaluate_rates(min(float(self.state.clock[T_NOW]), float(self.state.clock[T_BEFORE])), self.state.y, 2)

    def accept_part(self, h: float) -> int:
        """Move the state to the end of the part, where velocities obey the constraints to rounding.

        Those of implicit steps obey them to second order, and to rounding divided by the length of a short step.
        """
        state = self.state
        self._make_part(h)
        state.count[STEPS] += 1
        if self.constraints is None or h >= state.clock[H_TRIED]:
            return RUNNING
        return self.rhs.bring_back(float(state.clock[T_NOW]), False, state.q, state.y, state.q, self.evaluation)

    def store_output(self) -> int:
        """Store the next output with the accelerations of the equations of motion at the present state."""
        state, t, k = self.state, float(self.state.clock[T_NOW]), int(self.state.count[NEXT_OUTPUT])
        state.clock[T_NOW] = self.record.t[k] = math.nextafter(t, -math.inf) if t > 0.0 else t          # with the signals before
        code = self._run_until(math.inf, math.inf, 0)
        state.clock[T_NOW] = self.record.t[k] = t
        return code

    def failure(self, code: int) -> ComputationError:
        """Return the error, with the reason if the iteration of a step does not converge."""
        if code == NOT_CONVERGED:
            t = float(self.state.clock[T_NOW])
            return early_end_error(f"{self.options.method} did not converge in the step from t = {t:.6g} s{self.reason}", True, t)
        return super().failure(code)

    def state_dict(self) -> dict[str, Any]:
        """Return the state on which the rest of the segment depends."""
        return super().state_dict() | {"method_ws": arrays_of(self.method_ws),
                                       "constraints": arrays_of(constraint_arrays(self.constraints))}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state of `state_dict`."""
        super().load_state_dict(state)
        load_arrays(self.method_ws, state["method_ws"])
        load_arrays(constraint_arrays(self.constraints), state["constraints"])


# The right-hand side at one state ---------------------------------------------------------------------------------------

def evaluate_state(problem: InitialValueProblem, t: float, q: Array, v: Array, rhs: RightHandSide | None = None,
                   integral: Array | None = None, estimate: Array | None = None) -> MotionWorkspace:
    """Return a workspace with the inputs and accelerations at a state. Raises ComputationError if they cannot be evaluated.

    rhs                 right-hand side, for several evaluations of one problem; default: a new one, with `problem.signals`
    integral, estimate  see `SegmentStart`
    """
    ws, n, rhs = problem.workspace(), problem.size, rhs or RightHandSide(problem, problem.signals)
    y, K = state_vector(problem, v, integral, estimate=estimate), np.zeros((2, n))
    code = rhs.evaluate(t, np.array(q), y, K, 0, ws)
    if code != RUNNING:
        raise failure(problem, code, t, ws, rhs.constraints)
    integrals = slice(2 * problem.model.nv, n - 1)
    ws.z[:] = np.concatenate([y[integrals], K[0, integrals]])           # not written by generated code
    return ws
