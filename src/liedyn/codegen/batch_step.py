"""A whole integration step as generated code over many runs in one batch: the integrator traced with its right-hand side.

Runs share robot, modes, signals and step times. Each has its own state, numbers (gains, constants, torques) and, optionally,
parameters of the robot. Constraints are solved with independent equations that are selected in advance. Each step ends with a
projection onto them (`_ConstraintTracing`). A run with an event within the step keeps its state from before the step
(`StepTracing.revert_on_event`); steps of other lengths locate the event.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np

from liedyn.codegen.joint_modes import MODE_SIZE, JointModes
from liedyn.codegen.rhs import MechanismTracing, RhsTracing, signal_instructions
from liedyn.codegen.scenario_inputs import ScenarioTables
from liedyn.codegen.specialize import GeneratedBatchFunction, cache_folder, is_enabled, load_or_build_batch_function, simd_width
from liedyn.codegen.trace import (
    VARYING,
    Array,
    GeneratedProgram,
    Trace,
    angle_bounds,
    new_values,
    repeat_program,
    single_call,
    traced_module,
)
from liedyn.codegen.trace_derivatives import adjoint, tangent
from liedyn.codegen.tracer import NotTraceableError, Tracer, absolute, object_array, where_less, zeros
from liedyn.kernels.constraints.driver import LOOP_OPEN
from liedyn.kernels.constraints.solver import FIXED_PIVOT_TOLERANCE
from liedyn.kernels.simulation.rate_evaluation import CURVE_COEFFICIENTS, INVALID_ARGUMENTS
from liedyn.kernels.simulation.right_hand_side import AT_EVENT, BAD_SIGNAL, RUNNING
from liedyn.kernels.simulation.signals import ABS, MAX, MIN, POSITION, SIGN, TORQUE, VELOCITY
from liedyn.model.constraint_arrays import residual_weights

N_STEP_TIMES = 3            # times of a step at which signals are evaluated: beginning, middle and end
Pivots = tuple[tuple[int, ...], ...]
N_PROJECTIONS = 2                       # projections of the position after a step: the first leaves the square of its drift
_ZERO_THRESHOLD = np.finfo(float).tiny  # an event value below it counts as zero or crossed
NONSMOOTH_OPERATIONS = ABS, SIGN, MIN, MAX
NUMBERS_PER_EVENT = 4         # numbers in `work`
MAX_CLOSURE_ERROR = 1e-5      # rad or lengths of the loop, before the last projection, which squares it
MAX_MODE_MISMATCH = 1e-9      # of an acceleration that loops prevent, relative to itself plus 1
# operations of the right-hand side from which on a method calls it instead of repeating it: four copies would not fit into the
# instruction cache of the processor
MIN_CALLED_OPERATIONS = 1000
DEPENDENT_EQUATIONS, NONFINITE_EVENT_VALUE, CONTRADICTED_MODES = 9, 10, 11      # besides codes of `right_hand_side`, `driver`


@dataclass(frozen=True)
class BatchStep:
    """step(clock, curves, values, q, v, work, code, varying): one step of each run, in place.

    clock     (1, 4) length of the step, and its times
    curves    (1, 15 c) Taylor coefficients at these of the signals `curves`
    values    (N, k) numbers, for a single run `scenario_values`
    q, v      (N, nq), (N, nv)
    work      (N, 1 + 4 events) supplied work, then per event: the sign of its value (0: not known yet, NaN: disabled), its values
              two steps and one step ago (NaN: not known), and the time at which a double crossing within a step was first
              suspected (0: never); each quantity is stored for all events before the next
    code      (N, 1) code of `right_hand_side`; INVALID_ARGUMENTS for angles beyond the range of sines; LOOP_OPEN if a step opens
              a loop too far; DEPENDENT_EQUATIONS if the selected constraint equations depend on each other;
              NONFINITE_EVENT_VALUE if the value of an event is not finite; else RUNNING. Outputs of a run with another code are
              invalid, except AT_EVENT: an event happens within the step, and nothing is written
    varying   (N, m) constants of the model at the indices for which the code was generated

    outputs(clock, curves, values, q, v, work, a, tau, wrench, code, varying) writes accelerations, forces and wrenches of each
    run at clock[1], and the prescribed coordinates at that time into q, v.

    Both are programs: their arrays are blocks of `simd_width` states, see `codegen.targets.llvm_ir.program_text`.

    partial_step() compiles at its first use: step(clock, curves, values, q, v, work, reading, code, varying), with clocks (N, 4)
    per run. It ignores events within the step and writes the event values at its end to reading (N, events).
    """

    step: GeneratedBatchFunction
    outputs: GeneratedBatchFunction
    curves: np.ndarray
    scenario_values: np.ndarray
    partial_step: Callable[[], GeneratedBatchFunction | None]
    simd_width: int


def compile_batch_step(tables: ScenarioTables, method: str, varying: tuple[int, ...] = (), pivots: Pivots = (),
                       directions: tuple[int, ...] = (),
                       rates: bool = False) -> BatchStep | None:
    """Return the generated step, or None if generated code is not available.

    It is not available with too many operations, a law whose control flow depends on numbers, switches of the state, states
    of laws, driven loops, or an old LLVM.

    method      one of METHODS
    varying     indices in model.constants that differ between runs
    pivots      independent equations of the constraints for projections of position and velocity, and for motion
    directions  of the events in schedule.watch: 1 rising, -1 falling, 0 both
    rates       whether to include derivatives along a direction, see `trace_step_tangent`
    """
    schedule = tables.schedule
    if not is_enabled() or tables.signals.switches.size or len(schedule.watch) != len(directions) or tables.law_states \
            or tables.model.nv == 0:
        return None
    step, make_outputs = (trace_step_tangent, trace_outputs_tangent) if rates else (trace_step, trace_outputs)
    generated_step, outputs = (load_or_build_step(make_trace, tables, variant, varying, pivots, directions)
                               for make_trace, variant in ((step, method), (make_outputs, "")))
    partial_step = cache(partial(load_or_build_step, trace_partial_step, tables, method, varying, pivots, directions))
    if generated_step is None or outputs is None:
        return None
    return BatchStep(generated_step, outputs, tables.curves, tables.scenario_values, partial_step, simd_width(tables.single))


def load_or_build_step(make_trace, tables: ScenarioTables, variant: str, varying, pivots,
                       directions) -> GeneratedBatchFunction | None:
    """Return the generated code of make_trace(tables, variant, varying, pivots, directions), or None."""
    place = cache_folder("kernels.simulation.right_hand_side.right_hand_side", make_trace.__module__.removeprefix("liedyn."))
    name = tables.name(make_trace.__name__, variant, pivots, directions, simd_width(tables.single), varying=varying)
    return load_or_build_batch_function(tables.model, place, name,
                                        lambda: make_trace(tables, variant, varying, pivots, directions))


def may_cross_twice(x, y, z):
    """Return 1 if the parabola through three positive values at equal distances is below zero between them, else 0."""
    curvature, slope = x - 2.0 * y + z, z - x
    below = where_less(8.0 * y * curvature, slope * slope, where_less(slope * slope, 4.0 * curvature * curvature, 1.0, 0.0), 0.0)
    return where_less(0.0, curvature, where_less(0.0, x, where_less(0.0, y, where_less(0.0, z, below, 0.0), 0.0), 0.0), 0.0)


def may_cross_at_kink(x, y, z):
    """Return 1 if the straight line through the first two values is below zero at the third, else 0 (expressions with kinks)."""
    below = where_less(2.0 * y, x, 1.0, 0.0)
    return where_less(0.0, x, where_less(0.0, y, where_less(0.0, z, below, 0.0), 0.0), 0.0)


def sign_after_step(sign, value):
    """Return the sign of an event expression after a step.

    It changes if it was not known, or if the expression has crossed zero without an event.
    """
    new = where_less(value, 0.0, -1.0, where_less(0.0, value, 1.0, 0.0))
    return where_less(sign * value, 0.0, new, where_less(absolute(sign), 0.5, new, sign))


def event_code(sign, value, direction: int, otherwise):
    """Return AT_EVENT if an event happens in a step, else `otherwise`: the rule of `zero_crossings.crossed` for armed events."""
    expected = where_less(direction * sign, 0.0, float(AT_EVENT), otherwise) if direction else float(AT_EVENT)
    return where_less(sign * value, _ZERO_THRESHOLD, where_less(0.5, absolute(sign), expected, otherwise), otherwise)


class StepTracing(RhsTracing):
    """Tracing of a step.

    signals     those at each of the times of a step
    shared      inputs that all runs share
    law_states  states of laws at the end of the step
    """

    law_states: np.ndarray
    shared: tuple[str, ...] = ("clock", "curves")

    def __init__(self, tables: ScenarioTables, varying: tuple[int, ...], pivots: Pivots, directions: tuple[int, ...] = ()):
        self.directions, self.event_signals = directions, tables.schedule.watch
        self.is_nonsmooth = [bool(np.isin(signal_instructions(tables.signals, k) & 255, NONSMOOTH_OPERATIONS).any())
                             for k in self.event_signals]
        super().__init__(tables, self.sizes(tables), varying)
        self.times, self.curves = self.signal_inputs()
        # NaN: switches of the state are not on a side, but evaluated at each state
        sides = np.full(tables.signals.switches.size, np.nan)
        at = [tables.traced_tables(self.inputs["values"], t, curves, sides)
              for t, curves in zip(self.times, self.curves, strict=True)]
        # evaluated after steps only
        self.plant, self.schedule = at[0].plant, at[0].schedule._replace(watch=self.event_signals[:0])
        self.signals, self.varying = [inputs_at.signals for inputs_at in at], self.ops.inputs(VARYING, len(varying))
        self.mechanism = _ConstraintTracing(self, tables, pivots) if pivots else None
        self.modes = JointModes(self, tables.switchable) if tables.switchable else None

    def sizes(self, tables: ScenarioTables) -> dict[str, int]:
        """Return the sizes of the inputs. z: states of laws, modes: of coordinates; steps of batches support neither."""
        return {"clock": 1 + N_STEP_TIMES, "curves": N_STEP_TIMES * CURVE_COEFFICIENTS * len(tables.curves),
                "values": len(tables.scenario_values), "q": tables.model.nq, "v": tables.model.nv,
                "work": 1 + NUMBERS_PER_EVENT * len(self.directions), **({"z": tables.law_states} if tables.law_states else {}),
                **_mode_sizes(tables)}

    def signal_inputs(self):
        """Return the times at which signals are evaluated, and the curves at these times."""
        return self.inputs["clock"][1:], self.inputs["curves"].reshape(N_STEP_TIMES, -1)

    def rates(self, k: int, q0, y):
        """Return (dy, code) at time k of the step."""
        dy = zeros(len(y))
        with np.errstate(all="ignore"):
            if self.mechanism:
                return dy, self.mechanism.rates(k, q0, y, dy)
            if self.modes:
                return dy, self.modes.rates(k, q0, y, dy)
            code = self.motion.right_hand_side(self.tree, self.plant, self.schedule, self.signals[k], self.times[k], q0, y, dy,
                                               self.workspace)
        return dy, code

    def evaluate_inputs(self, k: int, q0, y):
        """Write the state, prescribed accelerations and forces at time k of the step to the workspace. Return the state."""
        if self.modes:
            y = self.modes.begin(k, q0, y)
        self.motion.evaluate_inputs(self.tree, self.plant, self.schedule, self.signals[k], self.times[k], q0, y, self.workspace)
        if self.modes:
            self.modes.prescribe()
        return y

    def chart_origin_state(self, v):
        """Return a state in the chart about its own configuration."""
        return np.concatenate([zeros(len(v)), v, self.inputs.get("z", zeros(0)), self.inputs["work"][:1]])

    def event_values(self, q, v) -> list:
        """Return the values of the events at the end of the step."""
        signals, w, signal = self.signals[-1], self.workspace, traced_module("kernels.simulation.signals").evaluate_signal
        traced_module("kernels.simulation.signals").measure_points(signals.points, self.tree, q, v, signals.measured)
        return [signal(signals, k, self.inputs["clock"][N_STEP_TIMES], q, v, w.stack)[0] for k in self.event_signals]

    def revert_on_event(self, code, **end_values):
        """Return the code and the contents of the arrays after the step: those from before it if an event happens."""
        event_values, count, end_time = self.event_values(end_values["q"], end_values["v"]), len(self.directions), self.times[-1]
        signs, history, suspected = np.split(self.inputs["work"][1:], [count, 3 * count])
        event, not_finite = float(RUNNING), float(RUNNING)
        new_signs, new_history, new_suspected = [], [], []
        for value, sign, direction, (earlier, last), since, is_nonsmooth in zip(
                event_values, signs, self.directions, history.reshape(-1, 2), suspected, self.is_nonsmooth, strict=True):
            new_signs.append(sign_after_step(sign, value))
            event = event_code(sign, value, direction, event)
            not_finite = where_less(absolute(value), np.inf, not_finite, float(NONFINITE_EVENT_VALUE))
            new_history += [last, value]
            values = sign * earlier, sign * last, sign * value
            double_crossing = may_cross_twice(*values) + (may_cross_at_kink(*values) if is_nonsmooth else 0.0)
            new_suspected.append(where_less(0.0, double_crossing, where_less(0.0, since, since, end_time), since))
        code = _first_error(code, not_finite, event)
        end_values["work"] = [*end_values["work"], *new_signs, *new_history, *new_suspected]
        return code, {name: [where_less(code, RUNNING + 0.5, x, y) for x, y in zip(values, self.inputs[name], strict=True)]
                      for name, values in end_values.items()}

    def range_checked_trace(self, code, **results) -> Trace:
        """Return a trace that checks the range of angles. results: contents of the arrays by name."""
        for x, bound in angle_bounds(self.ops):
            code = where_less(x, bound, code, float(INVALID_ARGUMENTS))
        return self.trace(**results, code=[code])

    def step_trace(self, code, **results) -> Trace:
        """Return `range_checked_trace` of a whole step, which reports whether all runs have the code RUNNING.

        In this case the caller need not check each run.
        """
        trace = self.range_checked_trace(code, **results)
        codes = next(array.new_values for array in trace.arrays if array.name == "code")
        return replace(trace, bounds=tuple((x, RUNNING + 0.5) for x in codes))

    def trace(self, **results) -> Trace:
        """Return the trace. results: contents of the arrays by name; other inputs do not change."""
        arrays = []
        for name, x in self.inputs.items():
            shared = name in self.shared
            arrays.append(Array(name, len(x), new_values(x, results.pop(name)) if name in results else (None,) * len(x), shared))
        for name, x in results.items():
            arrays.append(Array(name, len(x), tuple(y if isinstance(y, Tracer) else float(y) for y in x)))
        arrays.append(Array(VARYING, len(self.varying), (None,) * len(self.varying)))
        return Trace(self.ops, tuple(arrays), (), ())


class EvaluationTracing(StepTracing):
    """The right-hand side alone, which a step calls several times. now: time, curves and the state in the chart about q."""

    shared = ()

    def sizes(self, tables: ScenarioTables) -> dict[str, int]:
        """Return the sizes of the inputs."""
        self.n_state = 2 * tables.model.nv + tables.law_states + 1
        return {"now": 1 + CURVE_COEFFICIENTS * len(tables.curves) + self.n_state, "values": len(tables.scenario_values),
                "q": tables.model.nq, **_mode_sizes(tables)}

    def signal_inputs(self):
        """Return the time at which signals are evaluated, and the curves at this time, as lists of one."""
        t, curves, self.y = np.split(self.inputs["now"], [1, len(self.inputs["now"]) - self.n_state])
        return t, [curves]


def _mode_sizes(tables: ScenarioTables) -> dict[str, int]:
    return {"modes": MODE_SIZE * len(tables.switchable.v)} if tables.switchable else {}


class _ConstraintTracing(MechanismTracing):
    """The constraints of a robot, with `solve_with_fixed_pivots` between the stages."""

    def __init__(self, runs: StepTracing, tables: ScenarioTables, pivots: Pivots):
        model = tables.model
        if model.driven:
            raise NotTraceableError
        super().__init__(model, runs.tree, len(runs.plant.slot_link) > 0)
        self.runs, self.pivots = runs, [np.array(x, dtype=np.int64) for x in pivots]
        level, self.weight = tables.levels, residual_weights(model.constraints)
        # coordinates that follow their signals, which projections do not move
        self.fixed_position, self.fixed_velocity = level == POSITION, np.isin(level, (POSITION, VELOCITY))

    def solve(self, pivots, rhs):
        """Write the multipliers to the workspace and return the smallest pivot."""
        constraint_ws, k = self.constraint_ws, len(pivots)
        solve_with_fixed_pivots = traced_module("kernels.constraints.solver").solve_with_fixed_pivots
        return solve_with_fixed_pivots(pivots, constraint_ws.solver.null, constraint_ws.solver.size, rhs,
                                       constraint_ws.multipliers,
                                       zeros(k * (k + 2)))

    def rates(self, k: int, q0, y, dy):
        """Write the rates as `constrained_right_hand_side` does, and return a code."""
        s, w, p = self.runs, self.runs.workspace, self.runs.plant
        y = s.evaluate_inputs(k, q0, y)
        self.tree = s.modes.tree if s.modes else s.tree
        self.constraint_ws = d = self.constraint_ws._replace(q=w.q, v=w.v, a=w.a, tau=w.tau, f_ext=w.F)
        passive = bool(p.passive[0])
        self.write("equations", p.prescribed, False, passive)
        pivot = self.solve(self.pivots[2], d.rhs)
        self.write("solution", p.prescribed, passive)
        w.a[:], w.tau[:], self.tree = d.out_a, d.out_tau, s.tree
        code = s.motion.store_rates(s.tree, p, s.signals[k], y, d.deficit[0], d.power[0], dy, w)
        if s.modes:
            failure = s.modes.loop_code(DEPENDENT_EQUATIONS, CONTRADICTED_MODES)
            code = where_less(s.modes.mismatch, MAX_MODE_MISMATCH, code, float(CONTRADICTED_MODES))
            return where_less(FIXED_PIVOT_TOLERANCE, pivot, code, failure)
        return where_less(FIXED_PIVOT_TOLERANCE, pivot, code, float(DEPENDENT_EQUATIONS))

    def close(self, q, v):
        """Project q, v onto the constraints as `driver.project_state` does, with a fixed number of steps. Return a code."""
        code = float(RUNNING)
        self.constraint_ws = d = self.constraint_ws._replace(q=q, v=v)
        for _ in range(N_PROJECTIONS):
            self.write("residuals")
            self.write("pfaffian", self.fixed_position, True)
            pivot = self.solve(self.pivots[0], -d.residual)
            self.write("position_correction", self.fixed_position)
            q[:] = d.moved
            code = where_less(FIXED_PIVOT_TOLERANCE, pivot, code, float(DEPENDENT_EQUATIONS))
        for x, weight in zip(d.residual, self.weight, strict=True):                    # the last projection squares it
            code = where_less(weight * absolute(x), MAX_CLOSURE_ERROR, code, float(LOOP_OPEN))
        self.write("pfaffian", self.fixed_velocity, False)
        pivot = self.solve(self.pivots[1], -d.velocity)
        self.write("velocity_correction", self.fixed_velocity)
        v[:] = v + d.change
        return where_less(FIXED_PIVOT_TOLERANCE, pivot, code, float(DEPENDENT_EQUATIONS))


def trace_step(tables: ScenarioTables, method: str, varying, pivots: Pivots, directions: tuple[int, ...]) -> GeneratedProgram:
    """Trace `BatchStep.step`."""
    runs, called = StepTracing(tables, varying, pivots, directions), trace_evaluation(tables, method, varying, pivots)
    if called is None:
        return single_call(_finish_step(runs, *end_of_step(runs, method, runs.rates)))
    calls = RhsCalls(runs, called)
    return calls.program(_finish_step(runs, *end_of_step(runs, method, calls)))


def trace_evaluation(tables: ScenarioTables, method: str, varying, pivots: Pivots) -> Trace | None:
    """Return the trace for `RhsCalls`, or None if the step is shorter without calls."""
    if method != "rk4":
        return None
    tracing = EvaluationTracing(tables, varying, pivots)
    rates, code = tracing.rates(0, tracing.inputs["q"], tracing.y)
    trace = tracing.range_checked_trace(code, rates=rates)
    return trace if trace.size > MIN_CALLED_OPERATIONS else None


class RhsCalls:
    """A step that calls a generated function for each evaluation of the right-hand side: `rates` of `end_of_step`.

    stages    for each evaluation, the state y in the chart and the outputs of the function
    """

    def __init__(self, runs: StepTracing, trace: Trace):
        self.runs, self._trace = runs, trace
        self.stages: list[tuple[np.ndarray, np.ndarray]] = []
        self._calls: list[tuple[Trace, dict[str, str]]] = []
        self._inner: set[str] = set()

    def __call__(self, k: int, _q0, y):
        """Call the function at time k of the step and return (dy, code)."""
        n = len(self.stages)
        self.add(self.runs.trace(now=[self.runs.times[k], *self.runs.curves[k], *y]), {"now": f"now{n}"})
        self.add(self._trace, {name: f"{name}{n}" for name in ("now", "rates", "code")})
        rates, code = self.inputs(f"rates{n}", len(y)), self.inputs(f"code{n}", 1)
        self.stages.append((y, rates))
        return rates, code[0]

    def add(self, trace: Trace, renamed: dict[str, str]) -> None:
        """Add a call to the program. renamed: new names of arrays of the trace, which the program passes on."""
        self._calls.append((trace, renamed))
        self._inner.update(renamed.values())

    def inputs(self, name: str, size: int) -> np.ndarray:
        """Return outputs of a generated function as inputs of later functions of the step."""
        self.runs.inputs[name] = self.runs.ops.inputs(name, size)
        return self.runs.inputs[name]

    def program(self, last: Trace) -> GeneratedProgram:
        """Return the program of all calls, then the trace `last`."""
        return GeneratedProgram(tuple(x for x in last.arrays if x.name not in self._inner), (*self._calls, (last, {})))


def _finish_step(runs: StepTracing, code, q, v, work) -> Trace:
    results = {"q": q, "v": v, "work": [work], **({"z": runs.law_states} if "z" in runs.inputs else {})}
    if runs.directions:
        code, results = runs.revert_on_event(code, **results)
    return runs.step_trace(code, **results)


def trace_event_values(tables: ScenarioTables, directions: tuple[int, ...]) -> GeneratedProgram:
    """Trace the values of the events at the state q, v and the last time of the clock, which it writes to the array `reading`."""
    runs = StepTracing(tables, (), (), directions)
    return single_call(runs.trace(reading=runs.event_values(runs.inputs["q"], runs.inputs["v"]), code=[float(RUNNING)]))


def trace_partial_step(tables: ScenarioTables, method: str, varying, pivots: Pivots, directions: tuple[int, ...]) -> Trace:
    """Trace `BatchStep.partial_step`."""
    runs = StepTracing(tables, varying, pivots, directions)
    runs.shared = ("curves",)
    code, q, v, work = end_of_step(runs, method, runs.rates)
    return runs.range_checked_trace(code, q=q, v=v, work=[work, *runs.inputs["work"][1:]],
                                    reading=object_array(runs.event_values(q, v)))


def end_of_step(runs: StepTracing, method: str, rates):
    """Return code, q, v, work at the end of the step. rates(k, q0, y) returns (dy, code) at time k of the step."""
    stages, answer = _STEPS[method](runs), None
    try:
        while True:
            answer = rates(*stages.send(answer))
    except StopIteration as end:
        code, q0, y = end.value
    w, nv = runs.workspace, len(runs.workspace.v)
    traced_module("kernels.manifold").retract(runs.tree, q0, y[:nv], w.q)
    w.v[:], runs.law_states = y[nv:2 * nv], y[2 * nv:-1]
    runs.motion.set_prescribed_state(runs.schedule, runs.signals[-1], runs.times[-1], w.q, w.v, w)
    if runs.modes:
        runs.modes.end(w.q, w.v)
    traced_module("kernels.couplings").follow(runs.plant.couplings, w.q, w.v)
    if runs.mechanism:
        code = _first_error(code, runs.mechanism.close(w.q, w.v))
    return code, w.q, w.v, y[-1]


# methods: generators that yield arguments of `rates`, receive its results, and return code, origin of the chart, y at the end
def _rk4(runs: StepTracing):
    """Integrate with the classical Runge-Kutta method in the chart about the configuration at the beginning."""
    q0, y0, h = runs.inputs["q"], runs.chart_origin_state(runs.inputs["v"]), runs.inputs["clock"][0]
    k1, c1 = yield 0, q0, y0
    k2, c2 = yield 1, q0, y0 + k1 * (0.5 * h)
    k3, c3 = yield 1, q0, y0 + k2 * (0.5 * h)
    k4, c4 = yield 2, q0, y0 + k3 * h
    return _first_error(c1, c2, c3, c4), q0, y0 + (k1 + 2.0 * (k2 + k3) + k4) * (h / 6.0)


def _semi_implicit(runs: StepTracing):
    """Integrate with the symplectic Euler method: v' = v + h a(q, v), q' = q (+) h v'."""
    q0, y0, h, nv = runs.inputs["q"], runs.chart_origin_state(runs.inputs["v"]), runs.inputs["clock"][0], len(runs.inputs["v"])
    k, code = yield 0, q0, y0
    y = y0 + k * h
    y[:nv] = y[nv:2 * nv] * h
    return code, q0, y


_STEPS = {"rk4": _rk4, "semi_implicit": _semi_implicit}
METHODS = tuple(_STEPS)


def _first_error(*codes):
    """Return the first code that is not RUNNING."""
    first = float(RUNNING)
    for code in reversed(codes):
        first = where_less(RUNNING + 0.5, code, code, first)
    return first


def trace_step_tangent(tables: ScenarioTables, method: str, varying, pivots: Pivots, _) -> GeneratedProgram:
    """Trace a step and the derivatives of its results along a direction.

    The derivatives of q, v, values and varying follow their numbers; that of the work follows those of q. Derivatives of q are
    those of its numbers (quaternions are not tangent).
    """
    runs = StepTracing(tables, varying, pivots)
    code, q, v, work = end_of_step(runs, method, runs.rates)
    dq, dv, dwork = np.split(_directional_rates(runs, [*q, *v, work]), [len(q), len(q) + len(v)])
    return single_call(runs.step_trace(code, q=np.concatenate([q, dq, dwork]), v=np.concatenate([v, dv]), work=[work]))


def trace_outputs_tangent(tables: ScenarioTables, _method: str, varying, pivots: Pivots, _) -> GeneratedProgram:
    """Trace outputs of robots without prescribed coordinates, with derivatives along a direction (see `trace_outputs`).

    Accelerations and forces are followed by their derivatives. The derivatives of kinetic and potential energy replace wrenches.
    """
    runs = StepTracing(tables, varying, pivots)
    _, code = runs.rates(0, runs.inputs["q"], runs.chart_origin_state(runs.inputs["v"]))
    a, tau = runs.workspace.a.copy(), runs.workspace.tau.copy()
    da, dtau, of_energies = np.split(_directional_rates(runs, [*a, *tau, *_energies(runs)]), [len(a), 2 * len(a)])
    return single_call(runs.range_checked_trace(code, a=np.concatenate([a, da]), tau=np.concatenate([tau, dtau]),
                                                wrench=of_energies))


def _directional_rates(runs: StepTracing, results: list) -> np.ndarray:
    """Return the derivatives of the results along a direction, which becomes an input of the trace."""
    ops, inputs = runs.ops, runs.inputs | {VARYING: runs.varying}
    pairs: list[tuple[Tracer, Tracer]] = []
    variables = {"q": np.concatenate([inputs["q"], inputs["work"]]), **{name: inputs[name] for name in ("v", "values", VARYING)}}
    for name, x in variables.items():
        values = inputs[name]
        rates = object_array([ops.emit("input", name, len(values) + k) for k in range(len(x))])
        inputs[name] = np.concatenate([values, rates])
        pairs += zip(x, rates, strict=True)
    runs.varying, runs.inputs = inputs.pop(VARYING), inputs
    return object_array(tangent(ops, pairs, results))


def _energies(runs: StepTracing) -> list:
    """Return kinetic and potential energy."""
    kernels, q, v, out = traced_module("kernels.kinematics"), runs.inputs["q"], runs.inputs["v"], zeros(2)
    n = runs.tree.parent.size
    work = kernels.kinematics_workspace(zeros(kernels.kinematics_workspace_size(n)), n)
    kernels.kinematics(runs.tree, q, v, v, kernels.TWISTS, work)
    kernels.energy(runs.tree, q, v, bool(runs.plant.passive[0]), work, out)
    return [*out]


def trace_outputs(tables: ScenarioTables, _method: str, varying, pivots: Pivots, directions: tuple[int, ...]) -> GeneratedProgram:
    """Trace `BatchStep.outputs`."""
    runs = StepTracing(tables, varying, pivots, directions)
    _, code = runs.rates(0, runs.inputs["q"], runs.chart_origin_state(runs.inputs["v"]))
    w, q, v = runs.workspace, runs.inputs["q"].copy(), runs.inputs["v"].copy()
    for joint in tables.model.joints:
        if (tables.schedule.level[joint.v] != TORQUE).any():
            q[joint.q], v[joint.v] = w.q[joint.q], w.v[joint.v]
    if runs.modes:
        runs.modes.write_forces()
    return single_call(runs.range_checked_trace(code, q=q, v=v, a=w.a, tau=w.tau, wrench=w.wrench))


def trace_control(tables: ScenarioTables, directions: tuple[int, ...]) -> GeneratedProgram:
    """Trace the laws, motors and signals of a scenario alone.

    They write the generalized forces and the thrusts of actuators at clock[1] to the array `torque`, and the rates of their
    states z to `rates`.
    """
    runs, schedule = StepTracing(tables, (), (), directions), tables.schedule
    w, nv, y = runs.workspace, tables.model.nv, runs.chart_origin_state(runs.inputs["v"])
    with np.errstate(all="ignore"):
        runs.motion.evaluate_inputs(runs.tree, runs.plant, runs.schedule, runs.signals[0], runs.times[0], runs.inputs["q"], y, w)
    actuators = schedule.force_actuator[schedule.force_actuator >= 0]
    torque = zeros(nv + len(tables.model.description.actuators))
    torque[:nv], torque[nv + actuators] = w.tau, w.wrench[len(w.wrench) - len(actuators):]
    return single_call(runs.range_checked_trace(where_less(-0.5, w.flag[0], float(BAD_SIGNAL), float(RUNNING)), torque=torque,
                                                rates=w.z[len(w.z) // 2:]))


# adjoint step -----------------------------------------------------------------------------------------------------------

# The adjoint of a whole step, over many runs in one batch: it maps derivatives of a cost with respect to the state after the step
# to those with respect to the state before it. It repeats the step itself.

SHARED_INPUTS = "q", "values", VARYING         # inputs that all evaluations of a step share


def compile_adjoint_step(tables: ScenarioTables, method: str, varying: tuple[int, ...] = (),
                         pivots: Pivots = (), all_results: bool = False) -> GeneratedBatchFunction | None:
    """Return step(clock, curves, values, q, v, work, by_q, by_v, by_values, by_varying, code, varying), or None.

    See `BatchStep` and `trace_adjoint_step`, or for `all_results` `trace_step_rows`.
    """
    return load_or_build_step(trace_step_rows if all_results else trace_adjoint_step, tables, method, varying, pivots, ())


def trace_step_rows(tables: ScenarioTables, method: str, varying, pivots: Pivots, directions) -> GeneratedProgram:
    """Trace the adjoint of a step for as many costs as q and v have numbers. by_q, … contain the numbers of all costs."""
    program, by = trace_adjoint_step(tables, method, varying, pivots, directions), ("q", "v", "values", VARYING)
    return repeat_program(program, [f"by_{name}" for name in by], tables.model.nq + tables.model.nv)


def trace_adjoint_step(tables: ScenarioTables, method: str, varying, pivots: Pivots, _) -> GeneratedProgram:
    """Trace the adjoint of a step.

    by_q and by_v, in place, are derivatives with respect to the numbers of q (quaternions are not tangent) and to v; by_values
    and by_varying are those with respect to values and parameters.
    """
    called, runs = trace_evaluation(tables, method, varying, pivots), StepTracing(tables, varying, pivots)
    calls = called and RhsCalls(runs, called)
    if not calls:
        runs.ops.solved_unknowns = {}
    _, q, v, _ = end_of_step(runs, method, calls or runs.rates)
    inputs = {name: runs.ops.inputs(name, len(x)) for name, x in (("by_q", q), ("by_v", v))}
    runs.inputs |= inputs
    pairs, parts = [*zip(q, inputs["by_q"], strict=True), *zip(v, inputs["by_v"], strict=True)], []
    if calls:
        trace = _trace_evaluation_adjoint(tables, varying, pivots)
        for n, (y, rates) in reversed([*enumerate(calls.stages)]):
            back = adjoint(runs.ops, pairs)
            calls.add(runs.trace(by_rates=[back(x) for x in rates]), {"by_rates": f"by_rates{n}"})
            results = "by_y", *(f"by_{name}" for name in SHARED_INPUTS)
            calls.add(trace, {name: f"{name}{n}" for name in ("now", "rates", "by_rates", *results)})
            by_y, *by_shared = (calls.inputs(f"{name}{n}", size) for name, size in zip(
                results, (len(y), len(q), len(runs.inputs["values"]), len(runs.varying)), strict=True))
            pairs += zip(y, by_y, strict=True)
            parts.append(dict(zip(SHARED_INPUTS, by_shared, strict=True)))
    back = adjoint(runs.ops, pairs)

    def by(name: str, x) -> np.ndarray:
        direct = object_array([back(y) for y in x])
        return sum((part[name] for part in parts if name in part), direct)
    inputs = {name: runs.inputs[name] for name in ("q", "v", "values")} | {VARYING: runs.varying}
    last = runs.range_checked_trace(float(RUNNING), **{f"by_{name}": by(name, x) for name, x in inputs.items()})
    return calls.program(last) if calls else single_call(last)


def _trace_evaluation_adjoint(tables: ScenarioTables, varying, pivots: Pivots) -> Trace:
    """Trace the adjoint of the right-hand side.

    It maps derivatives of a cost with respect to the rates to those with respect to the state y in the chart and the shared
    inputs.
    """
    tracing = EvaluationTracing(tables, varying, pivots)
    n, nv = len(tracing.y), tables.model.nv
    tracing.inputs |= {name: tracing.ops.inputs(name, n) for name in ("rates", "by_rates")}
    tracing.ops.solved_unknowns, tracing.ops.known_accelerations = {}, tracing.inputs["rates"][nv:2 * nv]
    rates, _ = tracing.rates(0, tracing.inputs["q"], tracing.y)
    back = adjoint(tracing.ops, zip(rates, tracing.inputs["by_rates"], strict=True))
    variant = {"y": tracing.y, **{name: tracing.inputs.get(name, tracing.varying) for name in SHARED_INPUTS}}
    return tracing.trace(**{f"by_{name}": [back(x) for x in inputs] for name, inputs in variant.items()})
