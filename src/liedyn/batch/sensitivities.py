"""Derivatives of the outputs of a sweep with respect to the varied parameters, at one point.

For vectorized simulations they are the exact derivatives of the computed steps (`simulation_derivatives`). For jobs along a
trajectory they use the derivatives of the dynamics with respect to parameters. Outputs are differentiated while they are
evaluated (`Dual`). Otherwise central differences are used.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from liedyn.analysis.recorded_motion import columns_of_motion
from liedyn.analysis.trajectory_derivatives import DerivativeRequest
from liedyn.analysis.trajectory_derivatives import jacobian as trajectory_jacobian
from liedyn.analysis.trajectory_dynamics import dynamics_request
from liedyn.arrays import Array, ArrayLike, Integers
from liedyn.batch.evaluator import SweepEvaluator
from liedyn.batch.output_expressions import BatchMotion, Values
from liedyn.batch.simulations import SimulationEvaluator
from liedyn.batch.sweep_binding import Value
from liedyn.batch.trajectory_jobs import TrajectoryEvaluator
from liedyn.batch.vectorized_sweep import parameter_row, signature, split_rows
from liedyn.codegen.batch_step import compile_batch_step
from liedyn.dynamics.finite_differences import numerical_derivative
from liedyn.dynamics.kinematics import energy, jacobian, jacobian_derivative, link_pose, link_twist
from liedyn.dynamics.manifold import tangent_velocity
from liedyn.errors import ComputationError, LiedynError
from liedyn.integrators.batch_integrator import BatchIntegrator, BatchOutputs, BatchStates, make_grid
from liedyn.kernels.simulation.signals import COMPONENTS, TORQUE
from liedyn.simulation.preparation import output_times
from liedyn.simulation.trajectory_columns import energy_columns, motion_columns

# Numbers with their derivatives along K directions, for the functions that outputs use ----------------------------------

# Forward accumulation: Griewank and Walther, Evaluating Derivatives, 2008, ch. 3.

class NotDifferentiableError(ComputationError):
    """Raised where no exact derivative is available; the text names the reason."""


class Dual(NDArrayOperatorsMixin):
    """Values x of any shape and their derivatives dx (K, *shape). NumPy functions return Duals; comparisons use x."""

    def __init__(self, x: ArrayLike, dx: ArrayLike):
        self.x, self.dx = np.asarray(x, dtype=float), np.asarray(dx, dtype=float)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Values, **options: Any) -> Values:
        if method != "__call__" or options:
            return NotImplemented
        values = [operand.x if isinstance(operand, Dual) else np.asarray(operand, dtype=float) for operand in operands]
        result = ufunc(*values)
        if result.dtype == bool:
            return result
        if ufunc not in _RULES:
            raise NotDifferentiableError(f"{ufunc.__name__}(…)")
        dx: Any = 0.0
        with np.errstate(all="ignore"):
            for operand, derivative in zip(operands, _RULES[ufunc](*values), strict=True):
                if isinstance(operand, Dual):                  # a constant needs no derivative: sqrt has none at 0
                    dx = dx + np.where(operand.dx == 0.0, 0.0, derivative * operand.dx)
        return Dual(result, np.broadcast_to(dx, (len(dx), *np.shape(result))))

    def __getitem__(self, key: Any) -> Dual:
        return Dual(self.x[key], self.dx[(slice(None), *(key if isinstance(key, tuple) else (key,)))])

    def __len__(self) -> int:
        return len(self.x)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if self.dx.any():
            raise NotDifferentiableError("at(…) of a time that varies")
        return self.x

    def min(self, axis: int) -> Dual:
        """Return the minimum along an axis."""
        return self._select(self.x.argmin(axis), axis)

    def max(self, axis: int) -> Dual:
        """Return the maximum along an axis."""
        return self._select(self.x.argmax(axis), axis)

    def sum(self, axis: int) -> Dual:
        """Return the sum along an axis."""
        return Dual(self.x.sum(axis), self.dx.sum(axis + 1))

    def _select(self, indices: Integers, axis: int) -> Dual:
        k = np.expand_dims(indices, axis)
        dx = np.take_along_axis(self.dx, np.broadcast_to(k, (len(self.dx), *k.shape)), axis + 1)
        return Dual(np.take_along_axis(self.x, k, axis).squeeze(axis), dx.squeeze(axis + 1))


def _power_derivatives(a: Array, b: Array) -> tuple[Array, Array]:
    return b * a**(b - 1.0), np.where(a > 0.0, a**b * np.log(np.where(a > 0.0, a, 1.0)), np.nan)


# the derivatives of a function with respect to its operands
_RULES: dict[np.ufunc, Callable[..., tuple[Any, ...]]] = {
    np.add: lambda a, b: (1.0, 1.0), np.subtract: lambda a, b: (1.0, -1.0), np.multiply: lambda a, b: (b, a),
    np.true_divide: lambda a, b: (1.0 / b, -a / b**2), np.power: _power_derivatives, np.negative: lambda a: (-1.0,),
    np.sin: lambda a: (np.cos(a),), np.cos: lambda a: (-np.sin(a),), np.tan: lambda a: (1.0 + np.tan(a)**2,),
    np.sinh: lambda a: (np.cosh(a),), np.cosh: lambda a: (np.sinh(a),), np.tanh: lambda a: (1.0 - np.tanh(a)**2,),
    np.exp: lambda a: (np.exp(a),), np.log: lambda a: (1.0 / a,), np.sqrt: lambda a: (0.5 / np.sqrt(a),),
    np.abs: lambda a: (np.sign(a),), np.sign: lambda a: (0.0,), np.floor: lambda a: (0.0,),
    np.arcsin: lambda a: (1.0 / np.sqrt(1.0 - a**2),), np.arccos: lambda a: (-1.0 / np.sqrt(1.0 - a**2),),
    np.arctan: lambda a: (1.0 / (1.0 + a**2),), np.arctan2: lambda a, b: (b / (a**2 + b**2), -a / (a**2 + b**2)),
    np.minimum: lambda a, b: (1.0 * (a <= b), 1.0 * (a > b)), np.maximum: lambda a, b: (1.0 * (a >= b), 1.0 * (a < b)),
}


Evaluate: TypeAlias = Callable[[list[list[Value]]], Array]     # results (rows, n) of rows of values of the varied parameters

# Exact derivatives of the computed steps of a simulation with respect to the varied parameters --------------------------

# The generated step also computes the derivatives of its results along a direction (`trace_step_tangent` of `codegen.steps`).
# Each varied parameter is one direction, and all directions are computed in one batch.

def simulation_derivatives(evaluator: SimulationEvaluator, point: list[Value],
                           differentiate: Callable[[Evaluate], Array]) -> tuple[BatchMotion, BatchMotion]:
    """Return the run with these values, and its derivatives with respect to each varied parameter as runs of one batch.

    The derivatives of q are those of its nq entries.

    differentiate  function: (K, n) derivatives of a function with respect to the varied parameters

    Raises NotDifferentiableError.
    """
    if not evaluator.is_vectorized:
        raise NotDifferentiableError("runs that are computed sequentially")
    run = evaluator.binding.bind(point)
    shared, problem, model = signature(run), run.problem, run.model
    if shared is None or problem.sampled is not None or (problem.schedule.level != TORQUE).any():
        raise NotDifferentiableError("events, samples, loops or prescribed motions")

    def parameter_rows(values: list[list[Value]]) -> Array:
        runs = [evaluator.binding.bind(row) for row in values]
        if any(signature(run) != shared for run in runs):
            raise NotDifferentiableError("parameters that change the structure of a run")
        return np.array([parameter_row(run) for run in runs])

    d = split_rows(model, differentiate(parameter_rows))
    base, nq, nv = split_rows(model, parameter_rows([point])), model.nq, model.nv
    indices = np.flatnonzero(d.constants.any(axis=0))
    step = compile_batch_step(problem.tables(), "rk4", tuple(map(int, indices)), rates=True)
    if step is None:
        raise NotDifferentiableError("a step with too many operations")
    engine = BatchIntegrator(problem, step, _with_derivatives(base.constants[:, indices], d.constants[:, indices]), 4 * nv + 2)
    count, times = len(d.q), output_times(run.scenario)
    grid = make_grid(problem.schedule, times, run.scenario.integrator.step)
    states = BatchStates.from_states(_with_derivatives(base.q, np.column_stack([d.q, np.zeros(count)])),
                                     _with_derivatives(base.v, d.v), np.full(count, grid.steps))
    columns = {name for output in evaluator.outputs for name in output.columns}
    has_forces = any(name.startswith(("a.", "tau.", "energy.")) for name in columns)
    out = BatchOutputs.allocate(count, len(times), 2 * nq + 1, 2 * nv, engine.n_forces if has_forces else 0)
    engine.advance(states, grid, out, _with_derivatives(base.values, d.values), threads=1)
    if (states.ended >= 0).any() or not np.isfinite(out.q).all():
        raise NotDifferentiableError("a diverging run")
    q, dq, dwork = np.split(out.q, [nq, 2 * nq], axis=2)
    v, dv = np.split(out.v, 2, axis=2)
    values, derivatives = motion_columns(model, q=q[:1], v=v[:1]), motion_columns(model, q=dq, v=dv)
    if has_forces:
        a, da, tau, dtau, denergy = np.split(out.forces, np.arange(1, 5) * nv, axis=2)
        kinetic, potential = energy(model, q[:1], v[:1], passive=problem.passive)
        values += motion_columns(model, a=a[:1], tau=tau[:1]) + energy_columns(kinetic, potential, out.supplied_energy[:1])
        derivatives += motion_columns(model, a=da, tau=dtau) + energy_columns(denergy[..., 0], denergy[..., 1], dwork[..., 0])
    return BatchMotion(model, times, values, q[:1], v[:1]), BatchMotion(model, times, derivatives, dq, dv)


def _with_derivatives(x: Array, dx: Array) -> Array:
    """Return rows (K, n + m): x (1, n), the same in each, and dx (K, m)."""
    return np.ascontiguousarray(np.hstack([np.repeat(x, len(dx), axis=0), dx]))


# sensitivities ----------------------------------------------------------------------------------------------------------

RUNS_PER_PARAMETER = 4           # for central differences
EXACT, DIFFERENCES = "exact derivatives", "central differences"
_INPUT_STEP, _RUN_STEP = 1e-3, 0.02             # of the range: steps of differences of input numbers, and of runs
_SMOOTH = 1e-9                   # of the largest derivative of a number of a run: difference of its derivatives by two steps
_PLACEMENTS = ("origin", "screw", "pitch")      # parameters that displace links


@dataclass(frozen=True)
class Sensitivities:
    """Derivatives of outputs at a point.

    base         (outputs,) outputs at the point
    derivatives  (outputs, m) derivatives with respect to the varied parameters; NaN where a parameter is no number or a run fails
    methods      EXACT or DIFFERENCES of each output
    """

    base: Array
    derivatives: Array
    methods: tuple[str, ...]


def sensitivities(evaluator: SweepEvaluator[Any], point: list[Value], ranges: Array) -> Sensitivities:
    """Return the derivatives of the outputs at a point.

    point   values of the varied parameters
    ranges  (m,) range of variation of each, 0 if it is no number or does not vary

    Raises ComputationError if the run at the point is not complete.
    """
    varied = np.flatnonzero(ranges > 0.0)
    n, base = len(evaluator.outputs), _outputs_at(evaluator, [point])[0]
    if np.isnan(base).all() and n:
        raise NotDifferentiableError("the run at the medians of the varied parameters did not complete")
    derivatives, exact = np.full((n, len(ranges)), np.nan), _exact_derivatives(evaluator, point, ranges, varied)
    for k, derivative in exact.items():
        derivatives[k, varied] = derivative
    remaining = [k for k in range(n) if k not in exact]
    if remaining:
        slopes = differences(lambda rows: _outputs_at(evaluator, rows)[:, remaining], point, ranges, varied, _RUN_STEP)
        derivatives[np.ix_(np.array(remaining), varied)] = slopes.T
    return Sensitivities(base, derivatives, tuple(EXACT if k in exact else DIFFERENCES for k in range(n)))


def _exact_derivatives(evaluator: SweepEvaluator[Any], point: list[Value], ranges: Array, varied: Integers
                       ) -> dict[int, Array | float]:
    """Return the (varied,) derivatives of the outputs that have exact ones, by their index."""
    try:
        motion = _motion_with_derivatives(evaluator, point, ranges, varied)
    except LiedynError:                  # NotDifferentiableError, or the runs next to the point cannot be run
        return {}
    exact: dict[int, Array | float] = {}
    for k, output in enumerate(evaluator.outputs):
        with suppress(NotDifferentiableError), np.errstate(all="ignore"):
            result = output.value(motion)
            exact[k] = result.dx[:, 0] if isinstance(result, Dual) else 0.0
    return exact


def differences(evaluate: Evaluate, point: list[Value], ranges: Array, varied: Integers, fraction: float) -> Array:
    """Return (varied, results) central differences of evaluate(rows of values), extrapolated to order 4.

    The steps are a fraction of the range and half of it.
    """
    def derivative(k: int) -> Array:
        return numerical_derivative(
            lambda steps: evaluate([[*point[:k], point[k] + float(step), *point[k + 1:]] for step in steps]),
            fraction * ranges[k], levels=2)
    return np.array([derivative(int(k)) for k in varied])


def _outputs_at(evaluator: SweepEvaluator[Any], rows: list[list[Value]]) -> Array:
    """Return the (rows, outputs) outputs of runs with these values, NaN where runs are not complete."""
    columns = [np.array(x) if all(isinstance(y, float) for y in x) else list(x) for x in zip(*rows, strict=True)]
    return evaluator.compute_runs(0, columns).outputs


def _motion_with_derivatives(evaluator: SweepEvaluator[Any], point: list[Value], ranges: Array, varied: Integers) -> _DualMotion:
    """Return the run at a point with its exact derivatives. Raises NotDifferentiableError where there are none."""
    if isinstance(evaluator, TrajectoryEvaluator):
        return _trajectory_job_derivatives(evaluator, point, varied)
    if not isinstance(evaluator, SimulationEvaluator):
        raise NotDifferentiableError("this job")
    of_robot = [name for parameter, name in zip(evaluator.sweep.parameters, evaluator.binding.parameters, strict=True)
                if parameter.of_robot]
    fixed_links = all(name and name.partition(".")[0] not in _PLACEMENTS for name in of_robot)
    return _DualMotion(*simulation_derivatives(evaluator, point, lambda evaluate: _input_derivatives(evaluate, point, ranges,
                                                                                                     varied)), fixed_links)


def _input_derivatives(evaluate: Evaluate, point: list[Value], ranges: Array, varied: Integers) -> Array:
    """Return `differences` of the numbers of a run, which depend smoothly on most parameters.

    Raises NotDifferentiableError if they do not, as at a prismatic joint whose screw turns: its axis jumps.
    """
    coarse, fine = (differences(evaluate, point, ranges, varied, step) for step in (_INPUT_STEP, _INPUT_STEP / 3.0))
    if (np.abs(coarse - fine).max(axis=1) > _SMOOTH * np.abs(fine).max(axis=1)).any():
        raise NotDifferentiableError("numbers of the robot that are no smooth functions of a parameter")
    return fine


class _DualMotion:
    """A run, and the derivatives of the columns and points that outputs read.

    derivatives  one run per varied parameter, whose values are derivatives; q holds those of the nq entries of q
    fixed_links  whether the poses of links on their bodies do not depend on the varied parameters
    """

    def __init__(self, base: BatchMotion, derivatives: BatchMotion, fixed_links: bool):
        self.base, self.t, self.derivatives, self.fixed_links = base, base.t, derivatives, fixed_links

    def column(self, name: str) -> Values:
        """Return a column (1, R) with its derivatives."""
        if name in self.derivatives.columns:
            return Dual(self.base.column(name), self.derivatives.column(name)[:, None])
        if name.startswith("fext."):
            return self.base.column(name)
        raise NotDifferentiableError(name)

    def event_times(self, event: str) -> list[float]:
        """Raise NotDifferentiableError: times of events have no exact derivatives."""
        raise NotDifferentiableError(f"events such as {event}")

    def point(self, kind: str, link: str, offset: Sequence[float]) -> Dual:
        """Return a point of a link: p = p_link + R offset. With the twist V in world axes, dV = J dv + (dJ along dq) v."""
        if not self.fixed_links:
            raise NotDifferentiableError(f"{kind}({link})")
        model, (q, v) = self.base.model, (np.ascontiguousarray(x[0]) for x in (self.base.q, self.base.v))
        arm = link_pose(model, q, link)[..., :3, :3] @ np.array(offset)
        J = jacobian(model, q, link, frame="local_world_aligned")
        V = link_twist(model, q, v, link, frame="local_world_aligned")
        components = []
        for dq, dv in zip(self.derivatives.q, self.derivatives.v, strict=True):
            x = np.ascontiguousarray(tangent_velocity(model, q, dq))
            displacement = (J @ x[..., None])[..., 0]                          # rotation vector and translation of the link
            darm = np.cross(displacement[..., :3], arm)
            dV = (J @ dv[..., None])[..., 0] + (jacobian_derivative(model, q, x, link, frame="local_world_aligned")
                                                @ v[..., None])[..., 0]
            d_velocity = dV[..., 3:] + np.cross(dV[..., :3], arm) + np.cross(V[..., :3], darm)
            components.append(np.concatenate([displacement[..., 3:] + darm, d_velocity, dV[..., :3]], axis=-1))
        return Dual(self.base.point(kind, link, offset), np.array(components)[:, None, :, COMPONENTS.index(kind)])


# along a trajectory -----------------------------------------------------------------------------------------------------

def _trajectory_job_derivatives(evaluator: TrajectoryEvaluator, point: list[Value], varied: Integers) -> _DualMotion:
    """Return a job along a trajectory with the derivatives of its results. The motion itself does not depend on parameters."""
    job, binding = evaluator.job, evaluator.binding
    names = [name for k in varied if (name := binding.parameters[k])]
    if not evaluator.is_vectorized or job.kind == "derivatives" or len(names) < len(varied):
        raise NotDifferentiableError("this job")
    if any(name.partition(".")[0] in _PLACEMENTS for name in names):
        raise NotDifferentiableError("placements")
    run = binding.bind(point)
    model, t = run.model, run.trajectory.t
    setting = dynamics_request(model, run.trajectory, job.kind, job.prescribed)
    motion, prescribed = setting.motion, setting.prescribed
    request = DerivativeRequest(job.kind, prescribed, np.arange(model.nv), tuple(names))
    d = np.moveaxis(trajectory_jacobian(model, request, motion), -1, 0)
    dq, dv = (np.zeros((len(names), *x.shape)) for x in (motion.q, motion.v))
    columns = motion_columns(model, q=dq, v=dv, tau=np.where(prescribed, d, 0.0), a=np.where(prescribed, 0.0, d))
    base = [(name, unit, x[None]) for name, unit, x in columns_of_motion(model, setting.compute(model, motion))]
    return _DualMotion(BatchMotion(model, t, base, motion.q[None], motion.v[None]), BatchMotion(model, t, columns, dq, dv), True)
