"""Solvers of SciPy and Rosenbrock methods on the manifold.

They integrate y = [x; v; work] in exponential coordinates about an anchor. The anchor is replaced when a rotation is far from it.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from math import isfinite
from typing import Any

import numpy as np

from liedyn.arrays import Array, ArrayLike
from liedyn.dynamics.constraints.rank import coordinate_scales
from liedyn.dynamics.manifold import difference
from liedyn.errors import LiedynWarning, WarningLog
from liedyn.integrators.problem import IMPLICIT, InitialValueProblem, Options, SegmentStart
from liedyn.integrators.rosenbrock import METHODS as ROSENBROCK
from liedyn.integrators.rosenbrock import RosenbrockSolver
from liedyn.integrators.run_state import (
    EVALUATIONS,
    H_NEXT,
    H_TRIED,
    MIN_STEP_SPACINGS,
    NEXT_OUTPUT,
    STEPS,
    T_BEFORE,
    T_NOW,
    T_STOP,
    T_TRIED,
    store_constraints,
)
from liedyn.integrators.runge_kutta import midpoint
from liedyn.integrators.segment import SampledTorques, Stepper
from liedyn.integrators.zero_crossings import CHATTERING_STEPS
from liedyn.kernels.simulation.right_hand_side import (
    AT_BREAK_POINT,
    FINISHED,
    NOT_FINITE,
    RUNNING,
    SINGULAR,
    STEP_TOO_SMALL,
    SWITCH_CROSSED,
)
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

_MAX_ROTATION = 1.5      # rad: rotations about the anchor; the chart ends at 2 pi
_MIN_CORRECTION = 1e-8   # rad or relative to the lengths of loops: smaller projections do not restart LSODA
_ENERGY_ATOL = 1e10      # absolute tolerance of the supplied energy, which does not control the step unless all is prescribed


def _solver_warnings(method: str, caught_warnings: Iterable[warnings.WarningMessage]) -> Iterator[LiedynWarning]:
    """Yield the warnings of SciPy during a run, except those about files that were not closed."""
    for caught in caught_warnings:
        if not issubclass(caught.category, ResourceWarning):
            yield LiedynWarning("solver-warning", f"the solver {method} warned: {' '.join(str(caught.message).split())}")


class SolverStepper(Stepper):
    """Steps of an `OdeSolver`, which is created again at each break, crossing and new anchor.

    The solver integrates y in the chart of the anchor state.q. clock[H_NEXT] is the first step of the next solver.

    solver      the solver, or None where it must be created
    trial_code  reason of failures: the code of the last trial state, or STEP_TOO_SMALL
    """

    detects_crossings = False

    def __init__(self, problem: InitialValueProblem, start: SegmentStart, times: ArrayLike, options: Options,
                 controller: SampledTorques | None = None):
        import scipy.integrate

        super().__init__(problem, start, times, options, controller, midpoint(), stores_values=False)
        self.model, self.step = problem.model, options.max_step
        self.make_solver = partial(RosenbrockSolver, self) if options.method in ROSENBROCK \
            else getattr(scipy.integrate, options.method)
        self.solver: Any = None
        self.dense_output: Callable[[float], Array]
        self.trial_code, self.state.clock[T_BEFORE] = STEP_TOO_SMALL, self.last
        self.atol = np.r_[np.full(problem.size - 1, options.atol), options.atol if problem.prescribed.all() else _ENERGY_ATOL]
        self.is_implicit = options.method in IMPLICIT
        if self.is_implicit:
            from liedyn.integrators.rhs_jacobian import RightHandSideJacobian
            self.jacobian = RightHandSideJacobian(problem, self.workspace, self.evaluate_trial, self.rhs, self.state.q)
        self.solver_warnings = WarningLog()
        self.rotations = [joint.v.start + k for joint in self.model.joints if joint.kind != ONE_DOF for k in range(3)]

    @property
    def warnings(self) -> tuple[LiedynWarning, ...]:
        """The warnings about the segment, and those of SciPy."""
        return *super().warnings, *self.solver_warnings

    def take_steps(self, max_steps: int) -> int:
        """Take steps, and collect the warnings of SciPy."""
        with warnings.catch_warnings(record=True) as caught_warnings:
            warnings.simplefilter("always")
            code = super().take_steps(max_steps)
        self.solver_warnings.extend(_solver_warnings(self.options.method, caught_warnings))
        return code

    @np.errstate(all="ignore")                       # of rejected trial states
    def take_step(self) -> int:
        """Take one step. With switches, it may contain a crossing."""
        clock = self.state.clock
        if clock[T_NOW] >= self.last:
            if len(self.record.t) == 1 and self.is_implicit:
                self.evaluate_jacobian(self.last, self.state.y)            # a run with one output only compiles
            self.record_outputs(lambda t: self.state.y, self.last)
            return FINISHED
        if self.solver is None:
            self.record_outputs(lambda t: self.state.y, clock[T_NOW])
            self.create_solver()
        solver = self.solver
        try:
            solver.step()
        except ValueError:                       # SciPy's linear algebra refuses numbers that overflowed in a trial
            return self.shorten_step()
        if solver.status == "failed":
            return self.trial_code
        if not isfinite(solver.y.sum()):
            return NOT_FINITE
        self.trial_code = STEP_TOO_SMALL
        self.state.count[STEPS] += 1
        self.dense_output = solver.dense_output()
        clock[H_TRIED], clock[T_TRIED] = solver.t - clock[T_NOW], solver.t
        if len(self.switches):
            return SWITCH_CROSSED
        self.accept_step()
        return RUNNING if solver.status == "running" else AT_BREAK_POINT

    def create_solver(self) -> None:
        """Create the solver at the present state, for the time until the next stop."""
        clock = self.state.clock
        t, h = float(clock[T_NOW]), float(clock[H_NEXT])
        stop_time, before = self.next_stop(t)
        clock[T_STOP], clock[T_BEFORE] = stop_time, before
        max_step = min(self.step, self.last / CHATTERING_STEPS if self.switches.any_chattering else np.inf)
        jacobian = {"jac": self.evaluate_jacobian} if self.is_implicit else {}
        self.solver = self.make_solver(self.rates, t, self.state.y.copy(), stop_time, rtol=self.options.rtol, atol=self.atol,
                                       max_step=max_step, first_step=min(h, stop_time - t, max_step) or None, **jacobian)
        clock[H_NEXT] = 0.0

    def shorten_step(self) -> int:
        """Restart from the last accepted state with a step shorter than the failed one. Return a code."""
        h = 0.1 * (getattr(self.solver, "h_abs", None) or self.solver.step_size or 1e-6)
        if not h > MIN_STEP_SPACINGS * np.spacing(self.solver.t):
            return self.trial_code
        self.move_anchor()
        self.state.clock[H_NEXT] = h
        return RUNNING

    @np.errstate(all="ignore")
    def accept_step(self) -> int:
        """Move the state to the end of the step. The solver continues unless it must be restarted there."""
        solver = self.solver
        turned = self.switches.release_chattering()
        running = solver.status == "running"
        self.record_outputs(self.dense_output, solver.t if running else np.nextafter(solver.t, -np.inf))
        moved = running and not turned and self.constraints is not None and self.project_solver_state()
        self.state.clock[T_NOW], self.state.y[:] = solver.t, solver.y
        if not running or turned or moved or np.abs(solver.y[self.rotations]).max(initial=0.0) > _MAX_ROTATION:
            self.move_anchor()
        return RUNNING

    @np.errstate(all="ignore")
    def accept_part(self, h: float) -> int:
        """Move the state to the end of the part, and restart the solver there."""
        t, y = self.state_after(h)
        self.record_outputs(self.dense_output, np.nextafter(t, -np.inf))
        self.state.clock[T_NOW], self.state.y[:] = t, y
        self.move_anchor()
        return RUNNING

    @np.errstate(all="ignore")
    def evaluate_part(self, h: float) -> None:
        """Evaluate the switches at the time h after the beginning of the tried step."""
        self.rates(*self.state_after(h))

    def state_after(self, h: float) -> tuple[float, Array]:
        """Return the time and the state at the time h after the beginning of the tried step."""
        clock = self.state.clock
        if h >= clock[H_TRIED]:
            return float(clock[T_TRIED]), self.solver.y
        t = float(clock[T_NOW] + h)
        return t, self.dense_output(t)

    def move_anchor(self) -> None:
        """Make the present configuration the next anchor, for a new solver."""
        state = self.state
        t, y = float(state.clock[T_NOW]), state.y.copy()
        if self.constraints is not None:
            self.bring_back(t, y, True)
        self.check(t, self.evaluate(min(t, self.last_time_before_end), y, 1), 0)
        state.q[:], state.y[:] = self.workspace.q, np.r_[np.zeros(self.model.nv), self.workspace.v, y[2 * self.model.nv:]]
        state.clock[H_NEXT] = (self.solver.step_size or 0.0) if t < state.clock[T_STOP] else 0.0
        self.solver = None

    def project_solver_state(self) -> bool:
        """Project the state of the solver onto the constraints. Return whether the solver must be restarted."""
        solver = self.solver
        y = np.array(solver.y)
        self.bring_back(solver.t, y, True)
        if self.options.method == "LSODA":
            return bool(np.abs((y - solver.y)[:self.model.nv] / coordinate_scales(self.model)).max(initial=0.0) > _MIN_CORRECTION)
        solver.y = y
        if self.options.method == "BDF":
            solver.D[0] = y                  # the first backward difference is the state
        self.check(solver.t, self.evaluate(self.time_before_stop(solver.t), y, 0), 1)
        if self.options.method != "BDF":
            solver.f = self.stages.K[0].copy()
        return False

    def bring_back(self, t: float, y: Array, count_drift: bool) -> None:
        """Project the state y at t onto the constraints, in the chart of the anchor."""
        q, m = self.stages.projected_q, self.model
        self.check(t, self.rhs.bring_back(t, count_drift, self.state.q, y, q, self.workspace), 0)
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

    def store_output(self) -> int:
        """Store the next output at the present state, evaluated with the signals before a break."""
        clock = self.state.clock
        t = float(clock[T_NOW])
        self.record_output(self.state.y, t if t < clock[T_STOP] else float(np.nextafter(t, -np.inf)))
        return FINISHED

    def record_output(self, y: Array, t: float) -> None:
        """Store an output, evaluated at t, which may be just before its time."""
        self.check(t, self.evaluate(t, y, len(self.stages.K) - 1), 0)
        i = self.state.count[NEXT_OUTPUT]
        for name in ("q", "v", "a", "tau", "wrench"):
            getattr(self.record, name)[i] = getattr(self.workspace, name)
        end = len(y) - 1 - self.record.estimate.shape[1]
        self.record.supplied_energy[i], self.record.estimate[i] = y[-1], y[end:-1]
        self.record.stretch[i] = y[end - self.record.stretch.shape[1]:end]
        if self.constraints is not None:
            store_constraints(self.constraints.constraint_ws, self.record, i, self.workspace)
        self.state.count[NEXT_OUTPUT] += 1

    @property
    def last_time_before_end(self) -> float:
        """Return the last time before the end, at which the last output is evaluated with the signals before it."""
        return float(np.nextafter(self.last, -np.inf)) if self.last > 0.0 else self.last

    def evaluate(self, t: float, y: Array, row: int) -> int:
        """Evaluate the rates at (t, y) in stages.K[row], 0 for accepted states, the last one for outputs. Return a code."""
        return self.rhs.evaluate(t, self.state.q, y, self.stages.K, row, self.workspace)

    def time_before_stop(self, t: float) -> float:
        """Return t, or the last time that counts as before the next stop."""
        return min(t, float(self.state.clock[T_BEFORE]))

    def evaluate_trial(self, t: float, y: Array) -> tuple[int, Array]:
        """Return the code and the rates of a state that is not accepted."""
        self.state.count[EVALUATIONS] += 1
        code = self.evaluate(self.time_before_stop(t), np.array(y), 1)
        return code, self.stages.K[1].copy()

    def rates(self, t: float, y: Array) -> Array:
        """Return the rates, NaN for a state that is too far."""
        code, dy = self.evaluate_trial(t, y)
        if code in (NOT_FINITE, SINGULAR):            # possibly a trial state that is too far: the solver shortens its step
            self.trial_code = code
            dy[:] = np.nan
        else:
            self.check(t, code, 0)
        return dy

    def evaluate_jacobian(self, t: float, y: Array) -> Array:
        """Return the derivative of the rates with respect to y."""
        return self.jacobian(self.time_before_stop(t), y)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the segment and of the solver."""
        return super().state_dict() | {
            "solver": self.solver and solver_state_dict(self.solver), "trial_code": self.trial_code,
            "jacobian": self.jacobian.state_dict() if self.is_implicit else None,
            "solver_warnings": self.solver_warnings.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state, with a new solver."""
        super().load_state_dict(state)
        if state["solver"] is not None:
            self.create_solver()
            load_solver_state_dict(self.solver, state["solver"])
            super().load_state_dict(state)                # a new solver evaluates the problem
        if self.is_implicit:
            self.jacobian.load_state_dict(state["jacobian"])
        self.trial_code, self.solver_warnings = state["trial_code"], WarningLog.from_state_dict(state["solver_warnings"])
