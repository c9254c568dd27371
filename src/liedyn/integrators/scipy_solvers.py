"""Solvers of SciPy and Rosenbrock methods on the manifold.

They integrate y = [x; v; work] in exponential coordinates about an anchor. The anchor is replaced when a rotation is far from it.
"""
from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from math import isfinite
from typing import Any

import numpy as np

from liedyn.arrays import Array
from liedyn.dynamics.constraints.rank import coordinate_scales
from liedyn.dynamics.kinematics import difference
from liedyn.errors import LiedynWarning, WarningLog
from liedyn.integrators.diagnosis import failure
from liedyn.integrators.problem import (
    InitialValueProblem,
    Options,
    RunObserver,
    Segment,
    SegmentStart,
    Statistics,
    first_rows,
    loop_statistics,
    pid_integrals,
)
from liedyn.integrators.rosenbrock import METHODS as ROSENBROCK
from liedyn.integrators.rosenbrock import RosenbrockSolver
from liedyn.integrators.run_state import MIN_STEP_SPACINGS, NEXT_OUTPUT, STEPS, T_NOW, store_constraints
from liedyn.integrators.segment import SampledTorques, SegmentState
from liedyn.integrators.zero_crossings import CHATTERING_STEPS
from liedyn.kernels.simulation.right_hand_side import NOT_FINITE, RUNNING, SINGULAR, STEP_TOO_SMALL
from liedyn.model.description import ONE_DOF

# The state of one of SciPy's solvers ------------------------------------------------------------------------------------

# The state is that of its attributes: numbers, arrays, tuples of arrays. The state of LSODA is inaccessible in Fortran: its runs
# restart from the state of the motion.

_SHARED_ARRAYS = "K_extended", "K"              # arrays that are shared: written, not replaced
_CONSTRUCTOR_ARGUMENTS = "t_bound", "rtol", "atol"
_NUMBER_TYPES = (np.ndarray, bool, int, float, np.number, np.bool_)


def solver_state_dict(solver: Any) -> dict[str, Any]:
    """Return the attributes by name, tuples as {index: entry}, numbers as arrays without axes."""
    if isinstance(solver, RosenbrockSolver):
        return solver.state_dict()
    attributes = vars(solver)
    if type(solver).__name__ == "LSODA":
        attributes = {"t": solver.t, "y": solver.y}
    state = {name: _state_of_attribute(x) for name, x in attributes.items() if name not in _CONSTRUCTOR_ARGUMENTS}
    return {name: x for name, x in state.items() if x is not None}


def _state_of_attribute(x: Any) -> np.ndarray | dict[str, Any] | None:
    """Return the state of an attribute; None if it has no numbers."""
    if isinstance(x, _NUMBER_TYPES):
        return None if np.asarray(x).dtype == object else np.array(x)
    if isinstance(x, tuple):
        return {str(k): np.array(part) for k, part in enumerate(x)}
    return {name: np.array(part) for name, part in vars(x).items()} if type(x).__name__ == "RadauDenseOutput" else None


def load_solver_state_dict(solver: Any, state: Mapping[str, Any]) -> None:
    """Restore the state in a new solver of the same problem."""
    if isinstance(solver, RosenbrockSolver):
        return solver.load_state_dict(state)
    for name, x in state.items():
        if name in _SHARED_ARRAYS:
            getattr(solver, name)[...] = x
        elif name == "sol":
            solver.sol = _radau_output(x)
        else:
            setattr(solver, name, tuple(_native_value(x[k]) for k in sorted(x, key=int)) if isinstance(x, dict)
                    else _native_value(x))
    return None


def _native_value(x: np.ndarray) -> Any:
    return np.array(x, order="K") if x.ndim else x[()]


def _radau_output(state: Mapping[str, Any]) -> Any:
    from scipy.integrate._ivp.radau import RadauDenseOutput
    output = object.__new__(RadauDenseOutput)
    vars(output).update({name: _native_value(x) for name, x in state.items()})
    return output


# scipy solvers ----------------------------------------------------------------------------------------------------------

IMPLICIT = "Radau", "BDF", "LSODA", *ROSENBROCK        # take a Jacobian
_MAX_ROTATION = 1.5      # rad: rotations about the anchor; the chart ends at 2 pi
_MIN_CORRECTION = 1e-8   # rad or relative to the lengths of loops: smaller projections do not restart LSODA
_ENERGY_ATOL = 1e10      # absolute tolerance of the supplied energy, which does not control the step unless all is prescribed


class _SolverFailed(Exception):
    def __init__(self, code: int):
        self.code = code


def solve_with_scipy(problem: InitialValueProblem, start: SegmentStart, times: Array, options: Options,
                     progress: Callable[[float], None], controller: SampledTorques | None = None,
                     observer: RunObserver | None = None) -> Segment:
    """Solve a segment as `solve_segment`, with an `OdeSolver` that is restarted at each break and each new anchor."""
    run = _SolverRun(problem, start, times, options, controller, observer)
    began = time.perf_counter()
    # of rejected trial states
    with warnings.catch_warnings(record=True) as caught_warnings, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        run.caught_warnings = caught_warnings
        try:
            run.integrate_segment(progress)
        except _SolverFailed as stop:
            raise failure(problem, stop.code, run.t_reached, run.workspace, run.constraints, options) from None
    solver_warnings = WarningLog((*run.solver_warnings, *_solver_warnings(options.method, caught_warnings)))
    statistics = Statistics(int(run.state.count[STEPS]), 0, run.evaluations, time.perf_counter() - began,
                            loop_statistics(run.constraints), (*run.switches.warnings, *solver_warnings))
    record = first_rows(run.record, int(run.state.count[NEXT_OUTPUT]))
    return Segment(record, statistics, run.end(float(record.t[-1]), float(record.supplied_energy[-1]), run.integral))


def _solver_warnings(method: str, caught_warnings: Iterable[warnings.WarningMessage]) -> Iterator[LiedynWarning]:
    """Yield the warnings of SciPy during a run, except those about files that were not closed."""
    for caught in caught_warnings:
        if not issubclass(caught.category, ResourceWarning):
            yield LiedynWarning("solver-warning", f"{method} of SciPy warned: {' '.join(str(caught.message).split())}")


class _SolverRun(SegmentState):
    def __init__(self, problem: InitialValueProblem, start: SegmentStart, times: Array, options: Options,
                 controller: SampledTorques | None = None, observer: RunObserver | None = None):
        import scipy.integrate

        super().__init__(problem, start, times, controller, 1, False)
        self.model, self.options = problem.model, options
        ours = options.method in ROSENBROCK
        self.make_solver = partial(RosenbrockSolver, self) if ours else getattr(scipy.integrate, options.method)
        self.solver: Any = None
        self.evaluations, self.ceiling, self.t_reached, self.trial_code = 0, self.last, start.t, RUNNING
        self.atol = np.r_[np.full(problem.size - 1, options.atol), options.atol if problem.prescribed.all() else _ENERGY_ATOL]
        self.extra: dict[str, Callable[[float, Array], Array]] = {}
        if options.method in IMPLICIT:
            from liedyn.integrators.rhs_jacobian import RightHandSideJacobian
            self.jacobian = jacobian = RightHandSideJacobian(problem, self.workspace, self.evaluate_trial, self.rhs, self.state.q)
            self.extra["jac"] = lambda t, y: jacobian(min(t, self.ceiling), y)
        self.observer = observer or RunObserver()
        self.caught_warnings: list[warnings.WarningMessage] = []
        self.solver_warnings: tuple[LiedynWarning, ...] = ()
        self.saved_state = self.observer.saved_state
        self.rotations = [joint.v.start + k for joint in self.model.joints if joint.kind != ONE_DOF for k in range(3)]

    def integrate_segment(self, progress: Callable[[float], None]) -> None:
        """Take steps until the last output or an event."""
        if len(self.record.t) == 1 and self.extra:
            self.extra["jac"](self.last, self.state.y)            # a run with one output only compiles
        if self.saved_state is not None:
            super().load_state_dict(self.saved_state)            # before the solver is created, which evaluates the problem
        self.observer.begin_segment(self.record, self.state.count)
        for stop_time, before in self.stop_times():
            self.ceiling, h = before, None
            if self.saved_state is None and self.initialize_switches(stop_time):
                return
            while self.state.clock[T_NOW] < stop_time and not self.fired:
                h = self.run_solver(stop_time, h, progress)
            if self.fired:
                return
        if self.fired:
            return
        self.ceiling = self.last
        self.record_outputs(lambda t: self.state.y, self.last)

    def stop_times(self) -> Iterator[tuple[float, float]]:
        """Yield the stop times of steps, each with the last time before it; the controller acts when a stop time is reached."""
        schedule, now = self.problem.schedule, self.state.clock[T_NOW]
        end = self.last, float(np.nextafter(self.last, -np.inf))
        while self.torques and self.state.clock[T_NOW] < self.last:
            if self.saved_state is None:
                self.torques.act(self.state)
            yield min(self.torques.stop_time, end)
        if self.torques is None:
            yield from (stop_time for stop_time in zip(schedule.breaks, schedule.before, strict=True)
                        if now < stop_time[0] < self.last)
            yield end

    def run_solver(self, stop_time: float, h: float | None, progress: Callable[[float], None]) -> float | None:
        """Take steps with one solver until the stop time, or until the anchor must be replaced. Return the last step size."""
        t = float(self.state.clock[T_NOW])
        if self.saved_state is None:
            self.record_outputs(lambda s: self.state.y, t)
        else:
            t, self.state.y[:] = float(self.saved_state["solver"]["t"]), self.saved_state["solver"]["y"]
        most = min(self.options.max_step, self.last / CHATTERING_STEPS if self.switches.any_chattering else np.inf)
        self.solver = solver = self.make_solver(
            self.rates, t, self.state.y.copy(), stop_time, rtol=self.options.rtol, atol=self.atol, max_step=most,
            first_step=None if h is None else min(h, stop_time - t, most), **self.extra)
        if self.saved_state is not None:
            self.load_state_dict(self.saved_state)
        while solver.status == "running":
            self.observer.checkpoint(float(solver.t), self.state_dict)
            try:
                solver.step()
            except ValueError:                       # SciPy's linear algebra refuses numbers that overflowed in a trial
                return self.restart_with_shorter_step(solver)
            if solver.status == "failed":
                raise _SolverFailed(self.trial_code if self.trial_code != RUNNING else STEP_TOO_SMALL)
            if not isfinite(solver.y.sum()):
                raise _SolverFailed(NOT_FINITE)
            self.trial_code = RUNNING
            self.state.count[STEPS] += 1
            self.t_reached = solver.t
            dense = solver.dense_output()
            if len(self.switches) and self.end_step_at_crossing(solver, dense):
                return solver.step_size or None
            self.record_outputs(dense, solver.t if solver.t < stop_time else np.nextafter(stop_time, -np.inf))
            progress(solver.t / max(self.last, 1e-300))
            if self.constraints is not None and solver.status == "running" and self.project_solver_state(solver):
                break
            if np.abs(solver.y[self.rotations]).max(initial=0.0) > _MAX_ROTATION:
                break
        self.move_anchor(solver.t, solver.y)
        return solver.step_size if solver.step_size else None

    def state_dict(self) -> dict[str, Any]:
        solver_warnings = (*self.solver_warnings, *_solver_warnings(self.options.method, self.caught_warnings))
        return super().state_dict() | {
            "solver": solver_state_dict(self.solver), "jacobian": self.extra and self.jacobian.state_dict(),
            "evaluations": self.evaluations, "trial_code": self.trial_code,
            "solver_warnings": [warning.to_dict() for warning in solver_warnings]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state with a new solver."""
        load_solver_state_dict(self.solver, state["solver"])
        super().load_state_dict(state)
        if self.extra:
            self.jacobian.load_state_dict(state["jacobian"])
        self.evaluations, self.trial_code = state["evaluations"], state["trial_code"]
        self.solver_warnings = tuple(map(LiedynWarning.from_dict, state["solver_warnings"]))
        self.t_reached, self.saved_state = self.solver.t, None

    def move_anchor(self, t: float, y: Array) -> None:
        """Make the configuration of the state y at t, in the chart of the present anchor, the next anchor."""
        y, state = np.array(y), self.state
        if self.constraints is not None:
            self.bring_back(t, y, True)
        self.check(self.evaluate(t, y, self.last_time_before_end, 1))
        state.q[:], state.clock[T_NOW] = self.workspace.q, t
        state.y[:] = np.r_[np.zeros(self.model.nv), self.workspace.v, y[2 * self.model.nv:]]

    def initialize_switches(self, stop_time: float) -> bool:
        """Return whether expressions of events have jumped over zero here, with a signal or a torque of the controller."""
        t = float(self.state.clock[T_NOW])

        def probe(share: float) -> None:
            h, y = share * min(stop_time - t, self.options.max_step), self.state.y
            if h != 0.0:                  # midpoint rule: a robot at rest can have accelerations
                y = y + h * self.rates(t + 0.5 * h, y + 0.5 * h * self.rates(t, y))
            self.rates(t + h, y)

        if not len(self.switches) or not t < stop_time:
            return False
        begins = self.switches.start is not None
        self.switches.initialize(probe)
        return not begins and self.end_at_jump(self.switches.fired(), t, t)

    def end_at_jump(self, fired: tuple[int, ...], t: float, now: float) -> bool:
        """Return whether events have fired; they end the run at t, and their row is evaluated at `now`."""
        if fired:
            self.fired = self.jump_events = fired
            self.record_event(t, self.state.y, now)
        return bool(fired)

    def end_step_at_crossing(self, solver: Any, dense: Callable[[float], Array]) -> bool:
        """Move to the first crossing of a switch in the last step.

        Returns whether there is one, or a chattering switch has changed sides: then the solver must be restarted.
        """
        t, step, switches = float(solver.t_old), float(solver.t - solver.t_old), self.switches

        def violation_after(share: float) -> float:
            self.rates(t + share * step, dense(t + share * step) if share < 1.0 else solver.y)
            return switches.violation()

        share = switches.locate_crossing(violation_after, may_cross=False)
        if share is None:
            switches.update_free_signs()
            turned = switches.release_chattering()
            if turned:
                self.record_outputs(dense, solver.t)
                self.move_anchor(solver.t, solver.y)
            return turned
        now = t + share * step if share < 1.0 else solver.t
        y, value = (dense(now) if share < 1.0 else solver.y), switches.value.copy()
        self.record_outputs(dense, np.nextafter(now, -np.inf))
        self.move_anchor(now, y)
        switches.value[:] = value
        self.fired = switches.fired()
        before = min(now, self.ceiling, self.last_time_before_end)
        if self.fired:
            self.record_event(now, self.state.y, before)
        else:
            self.end_at_jump(switches.cross_switches(now, step, lambda: self.rates(now, self.state.y)), now, before)
        return True

    def restart_with_shorter_step(self, solver: Any) -> float:
        """Restart from the last accepted state. Return a step shorter than the failed one."""
        h = 0.1 * (getattr(solver, "h_abs", None) or solver.step_size or 1e-6)
        if not h > MIN_STEP_SPACINGS * np.spacing(solver.t):
            raise _SolverFailed(self.trial_code if self.trial_code != RUNNING else STEP_TOO_SMALL)
        self.move_anchor(solver.t, solver.y)
        return h

    def check(self, code: int) -> None:
        """Raise _SolverFailed if the code is an error."""
        if code != RUNNING:
            raise _SolverFailed(code)

    def project_solver_state(self, solver: Any) -> bool:
        """Project the state of the solver onto the constraints. Return whether the solver must be restarted."""
        y = np.array(solver.y)
        self.bring_back(solver.t, y, True)
        if self.options.method == "LSODA":
            return bool(np.abs((y - solver.y)[:self.model.nv] / coordinate_scales(self.model)).max(initial=0.0) > _MIN_CORRECTION)
        solver.y = y
        if self.options.method == "BDF":
            solver.D[0] = y                  # the first backward difference is the state
        self.check(self.evaluate(solver.t, y, self.ceiling))
        if self.options.method != "BDF":
            solver.f = self.stages.K[0].copy()
        self.evaluations += 1
        return False

    def bring_back(self, t: float, y: Array, count_drift: bool) -> None:
        """Project the state y at t onto the constraints, in the chart of the anchor."""
        q, m = self.stages.projected_q, self.model
        self.check(self.rhs.bring_back(t, count_drift, self.state.q, y, q, self.workspace))
        y[:m.nv] = difference(m, self.state.q, q)

    def record_outputs(self, y_at: Callable[[float], Array], until: float) -> None:
        """Store the outputs up to the time `until`."""
        times, count = self.record.t, self.state.count
        while count[NEXT_OUTPUT] < len(times) and times[count[NEXT_OUTPUT]] <= until:
            t = float(times[count[NEXT_OUTPUT]])
            y = np.array(y_at(t))
            if self.constraints is not None:
                self.bring_back(t, y, False)
            self.record_output(y, min(t, self.last_time_before_end))

    def record_event(self, t: float, y: Array, now: float) -> None:
        """Store the row of an event; it replaces the last output if that is already stored."""
        self.state.count[NEXT_OUTPUT] = min(self.state.count[NEXT_OUTPUT], len(self.record.t) - 1)
        self.record.t[self.state.count[NEXT_OUTPUT]] = t
        self.record_output(y, now)

    def record_output(self, y: Array, now: float) -> None:
        """Store an output, evaluated at `now`, which may be just before its time."""
        self.check(self.evaluate(now, y, now, len(self.stages.K) - 1))
        i = self.state.count[NEXT_OUTPUT]
        for name in ("q", "v", "a", "tau", "wrench"):
            getattr(self.record, name)[i] = getattr(self.workspace, name)
        self.record.supplied_energy[i], self.integral = y[-1], pid_integrals(self.problem, y)
        if self.constraints is not None:
            store_constraints(self.constraints.constraint_ws, self.record, i, self.workspace)
        self.state.count[NEXT_OUTPUT] += 1

    @property
    def last_time_before_end(self) -> float:
        """Return the last time before the end, at which the last output is evaluated with the signals before it."""
        return float(np.nextafter(self.last, -np.inf)) if self.last > 0.0 else self.last

    def evaluate(self, t: float, y: Array, ceiling: float, row: int = 0) -> int:
        """Evaluate the rates at (t, y) in stages.K[row].

        Row 0 is for accepted states, the last row for outputs. Return a code.
        """
        return self.rhs.evaluate(min(t, ceiling), self.state.q, y, self.stages.K, row, self.workspace)

    def evaluate_trial(self, t: float, y: Array) -> tuple[int, Array]:
        """Return the code and the rates of a state that is not accepted."""
        self.evaluations += 1
        code = self.evaluate(t, np.array(y), self.ceiling, 1)
        return code, self.stages.K[1].copy()

    def rates(self, t: float, y: Array) -> Array:
        """Return the rates, NaN for a state that is too far."""
        code, dy = self.evaluate_trial(t, y)
        if code in (NOT_FINITE, SINGULAR):            # possibly a trial state that is too far: the solver shortens its step
            self.trial_code = code
            dy[:] = np.nan
        else:
            self.check(code)
        return dy
