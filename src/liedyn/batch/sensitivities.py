"""Derivatives of the outputs of a sweep with respect to the varied parameters, at one point.

For vectorized simulations they are the exact derivatives of the computed steps (`rates_of_simulation`). For jobs along a
trajectory they use the derivatives of the dynamics with respect to parameters. Outputs are differentiated while they are
evaluated (`Dual`). Otherwise central differences are used.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from liedyn.analysis.recorded_motion import columns_of_motion
from liedyn.analysis.trajectory_derivatives import DerivativeRequest
from liedyn.analysis.trajectory_derivatives import jacobian as derivatives
from liedyn.analysis.trajectory_dynamics import setting_of
from liedyn.batch.evaluator import SweepEvaluator
from liedyn.batch.output_expressions import BatchMotion
from liedyn.batch.simulations import SimulationEvaluator
from liedyn.batch.trajectory_jobs import TrajectoryEvaluator
from liedyn.batch.vectorized_sweep import numbers_of, parted, signature
from liedyn.codegen.batch_step import compile_batch_step
from liedyn.dynamics.finite_differences import numerical_derivative
from liedyn.dynamics.kinematics import energy, jacobian, jacobian_derivative, link_pose, link_twist, tangent_velocity
from liedyn.errors import ComputationError, LiedynError
from liedyn.integrators.batch_integrator import BatchIntegrator, BatchOutputs, BatchStates, make_grid
from liedyn.kernels.simulation.signals import COMPONENTS, TORQUE
from liedyn.simulation.preparation import output_times
from liedyn.simulation.trajectory_columns import energy_columns, motion_columns

# rates ------------------------------------------------------------------------------------------------------------------

# Numbers with their derivatives along K directions, for the functions that outputs use (forward accumulation:
# Griewank and Walther, Evaluating Derivatives, 2008, ch. 3).

class NotDifferentiableError(ComputationError):
    """Raised where no exact derivative is available; the text names the reason."""


class Dual(NDArrayOperatorsMixin):
    """Values x of any shape and their derivatives dx (K, *shape). NumPy functions return Duals; comparisons use x."""

    def __init__(self, x, dx):
        self.x, self.dx = np.asarray(x, dtype=float), np.asarray(dx, dtype=float)

    def __array_ufunc__(self, ufunc, method, *operands, **options):
        if method != "__call__" or options:
            return NotImplemented
        values = [one.x if isinstance(one, Dual) else np.asarray(one, dtype=float) for one in operands]
        found = ufunc(*values)
        if found.dtype == bool:
            return found
        if ufunc not in _RULES:
            raise NotDifferentiableError(f"{ufunc.__name__}(…)")
        dx = 0.0
        with np.errstate(all="ignore"):
            slopes = [(one.dx, slope) for one, slope in zip(operands, _RULES[ufunc](*values), strict=True)
                      if isinstance(one, Dual)]
            for rate, slope in slopes:
                dx = dx + np.where(rate == 0.0, 0.0, slope * rate)          # a constant needs no slope: sqrt has none at 0
        return Dual(found, np.broadcast_to(dx, (len(dx), *np.shape(found))))

    def __getitem__(self, key):
        return Dual(self.x[key], self.dx[(slice(None), *(key if isinstance(key, tuple) else (key,)))])

    def __len__(self) -> int:
        return len(self.x)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        if self.dx.any():
            raise NotDifferentiableError("at(…) of a time that varies")
        return self.x

    def min(self, axis: int):
        return self._picked(self.x.argmin(axis), axis)

    def max(self, axis: int):
        return self._picked(self.x.argmax(axis), axis)

    def sum(self, axis: int):
        return Dual(self.x.sum(axis), self.dx.sum(axis + 1))

    def _picked(self, k: np.ndarray, axis: int):
        k = np.expand_dims(k, axis)
        return Dual(np.take_along_axis(self.x, k, axis).squeeze(axis),
                         np.take_along_axis(self.dx, np.broadcast_to(k, (len(self.dx), *k.shape)), axis + 1).squeeze(axis + 1))


def _of_power(a, b):
    return b * a**(b - 1.0), np.where(a > 0.0, a**b * np.log(np.where(a > 0.0, a, 1.0)), np.nan)


# the derivatives of a function with respect to its operands
_RULES = {
    np.add: lambda a, b: (1.0, 1.0), np.subtract: lambda a, b: (1.0, -1.0), np.multiply: lambda a, b: (b, a),
    np.true_divide: lambda a, b: (1.0 / b, -a / b**2), np.power: _of_power, np.negative: lambda a: (-1.0,),
    np.sin: lambda a: (np.cos(a),), np.cos: lambda a: (-np.sin(a),), np.tan: lambda a: (1.0 + np.tan(a)**2,),
    np.sinh: lambda a: (np.cosh(a),), np.cosh: lambda a: (np.sinh(a),), np.tanh: lambda a: (1.0 - np.tanh(a)**2,),
    np.exp: lambda a: (np.exp(a),), np.log: lambda a: (1.0 / a,), np.sqrt: lambda a: (0.5 / np.sqrt(a),),
    np.abs: lambda a: (np.sign(a),), np.sign: lambda a: (0.0,), np.floor: lambda a: (0.0,),
    np.arcsin: lambda a: (1.0 / np.sqrt(1.0 - a**2),), np.arccos: lambda a: (-1.0 / np.sqrt(1.0 - a**2),),
    np.arctan: lambda a: (1.0 / (1.0 + a**2),), np.arctan2: lambda a, b: (b / (a**2 + b**2), -a / (a**2 + b**2)),
    np.minimum: lambda a, b: (1.0 * (a <= b), 1.0 * (a > b)), np.maximum: lambda a, b: (1.0 * (a >= b), 1.0 * (a < b)),
}


# Exact derivatives of the computed steps of a simulation with respect to the varied parameters --------------------------

# The generated step also computes the derivatives of its results along a direction (`trace_step_tangent` of `codegen.steps`).
# Each varied parameter is one direction, and all directions are computed in one batch.

def rates_of_simulation(bench: SimulationEvaluator, centre: list, differences: Callable) -> tuple[BatchMotion, BatchMotion]:
    """Return the run with these values, and its derivatives with respect to each varied parameter as runs of one batch.

    The derivatives of q are those of its nq entries.

    differences  function: (K, n) differences of numbers(rows of values) with respect to the varied parameters

    Raises NotDifferentiableError.
    """
    if not bench.side_by_side:
        raise NotDifferentiableError("runs that are computed sequentially")
    run = bench.binding.bind(centre)
    kind, problem, model = signature(run), run.problem, run.model
    if kind is None or (problem.schedule.level != TORQUE).any():
        raise NotDifferentiableError("events, samples, loops or prescribed motions")

    def numbers(rows) -> np.ndarray:
        bound = [bench.binding.bind(row) for row in rows]
        if any(signature(one) != kind for one in bound):
            raise NotDifferentiableError("what changes more than numbers")
        return np.array([numbers_of(one) for one in bound])

    rates = parted(model, differences(numbers))
    base, nq, nv = parted(model, numbers([centre])), model.nq, model.nv
    places = np.flatnonzero(rates.constants.any(axis=0))
    line = compile_batch_step(problem.tables(), "rk4", tuple(map(int, places)), rates=True)
    if line is None:
        raise NotDifferentiableError("a step with too many operations")

    def behind(x, dx) -> np.ndarray:
        return np.ascontiguousarray(np.hstack([np.repeat(x, len(dx), axis=0), dx]))

    engine = BatchIntegrator(problem, line, behind(base.constants[:, places], rates.constants[:, places]), 4 * nv + 2)
    count, times = len(rates.q), output_times(run.scenario)
    grid = make_grid(problem.schedule, times, run.scenario.integrator.step)
    moving = BatchStates.from_states(behind(base.q, np.column_stack([rates.q, np.zeros(count)])), behind(base.v, rates.v),
                              np.full(count, grid.steps))
    read = {name for output in bench.outputs for name in output.columns}
    more = any(name.startswith(("a.", "tau.", "energy.")) for name in read)
    out = BatchOutputs.allocate(count, len(times), 2 * nq + 1, 2 * nv, engine.n_forces if more else 0)
    engine.advance(moving, grid, out, behind(base.values, rates.values), threads=1)
    if (moving.ended >= 0).any() or not np.isfinite(out.q).all():
        raise NotDifferentiableError("a run that diverges")
    q, dq, dwork = np.split(out.q, [nq, 2 * nq], axis=2)
    v, dv = np.split(out.v, 2, axis=2)
    columns, by = motion_columns(model, q=q[:1], v=v[:1]), motion_columns(model, q=dq, v=dv)
    if more:
        a, da, tau, dtau, of_energies = np.split(out.forces, np.arange(1, 5) * nv, axis=2)
        kinetic, potential = energy(model, q[:1], v[:1], passive=problem.passive)
        columns += motion_columns(model, a=a[:1], tau=tau[:1]) + energy_columns(kinetic, potential, out.supplied_energy[:1])
        by += motion_columns(model, a=da, tau=dtau) + energy_columns(of_energies[..., 0], of_energies[..., 1], dwork[..., 0])
    return BatchMotion(model, times, columns, q[:1], v[:1]), BatchMotion(model, times, by, dq, dv)


# sensitivities ----------------------------------------------------------------------------------------------------------

RUNS = 4                         # per varied parameter, for central differences
EXACT, DIFFERENCES = "exact derivatives", "central differences"
_FINE, _STEP = 1e-3, 0.02        # of the spread: steps of differences of input numbers, and of runs
_MOVING = ("origin", "screw", "pitch")          # parameters that displace links


@dataclass(frozen=True)
class Sensitivities:
    """Derivatives of outputs at a point.

    base    (outputs,) outputs at the point
    slopes  (outputs, m) derivatives with respect to the varied parameters; NaN where a parameter is no number, or a run fails
    ways    EXACT or DIFFERENCES of each output
    """

    base: np.ndarray
    slopes: np.ndarray
    ways: tuple[str, ...]


def sensitivities(bench: SweepEvaluator, centre: list, spreads: np.ndarray) -> Sensitivities:
    """Return the derivatives of the outputs at a point.

    centre   values of the varied parameters
    spreads  (m,) range of variation of each, 0 if it is no number or does not vary

    Raises ComputationError if the run at the centre is not complete.
    """
    which = np.flatnonzero(spreads > 0.0)
    n, base = len(bench.outputs), _outputs_at(bench, [centre])[0]
    if np.isnan(base).all() and n:
        raise NotDifferentiableError("the run at the medians of what varies is not complete")
    slopes, ways = np.full((n, len(spreads)), np.nan), [DIFFERENCES] * n
    try:
        motion = _motion(bench, centre, spreads, which)
    # NotDifferentiableError, or runs next to the centre cannot be run
    except LiedynError:
        motion = None
    for k, output in enumerate(bench.outputs if motion is not None else ()):
        try:
            with np.errstate(all="ignore"):
                found = output.value(motion)
        except NotDifferentiableError:
            continue
        slopes[k, which], ways[k] = found.dx[:, 0] if isinstance(found, Dual) else 0.0, EXACT
    rest = [k for k in range(n) if ways[k] == DIFFERENCES]
    if rest:
        slopes[np.ix_(rest, which)] = differences(lambda rows: _outputs_at(bench, rows)[:, rest], centre, spreads, which, _STEP).T
    return Sensitivities(base, slopes, tuple(ways))


def differences(evaluate: Callable, centre: list, spreads, which, share: float) -> np.ndarray:
    """Return (which, results) central differences of evaluate(rows of values), extrapolated to order 4.

    The steps are a share of the spread and half of it.
    """
    return np.array([numerical_derivative(
        lambda steps, k=k: evaluate([[*centre[:k], centre[k] + float(step), *centre[k + 1:]] for step in steps]),
        share * spreads[k], levels=2) for k in which])


def _outputs_at(bench: SweepEvaluator, rows: list[list]) -> np.ndarray:
    """Return the (rows, outputs) outputs of runs with these values, NaN where runs are not complete."""
    columns = [np.array(x) if all(isinstance(y, float) for y in x) else list(x) for x in zip(*rows, strict=True)]
    return bench.computed(0, columns).outputs


def _motion(bench: SweepEvaluator, centre: list, spreads, which) -> _DualMotion:
    if not isinstance(bench, SimulationEvaluator):
        return _along(bench, centre, which)
    of_robot = [name for one, name in zip(bench.sweep.parameters, bench.binding.parameters, strict=True) if one.of_robot]
    still = all(name and name.partition(".")[0] not in _MOVING for name in of_robot)
    return _DualMotion(*rates_of_simulation(bench, centre, lambda numbers: differences(numbers, centre, spreads, which, _FINE)),
                        still)


class _DualMotion:
    """A run, and the derivatives of the columns and points that outputs read.

    rates  one run per varied parameter, whose values are derivatives; q holds those of the nq entries of q
    still  whether the poses of links on their bodies do not depend on the varied parameters
    """

    def __init__(self, base: BatchMotion, rates: BatchMotion, still: bool):
        self.base, self.t, self.rates, self.still = base, base.t, rates, still

    def column(self, name: str):
        if name in self.rates.columns:
            return Dual(self.base.column(name), self.rates.column(name)[:, None])
        if name.startswith("fext."):
            return self.base.column(name)
        raise NotDifferentiableError(name)

    def times_of(self, event: str):
        raise NotDifferentiableError("events")

    def point(self, kind: str, link: str, at) -> Dual:
        """Return a point of a link: p = p_link + R at. With the twist V in world axes, dV = J dv + (dJ along dq) v."""
        if not self.still:
            raise NotDifferentiableError(f"{kind}({link})")
        model, (q, v), found = self.base.model, (np.ascontiguousarray(x[0]) for x in (self.base.q, self.base.v)), []
        arm = link_pose(model, q, link)[..., :3, :3] @ np.array(at)
        J, V = (f(model, q, *more, link, frame="local_world_aligned") for f, more in ((jacobian, ()), (link_twist, (v,))))
        for dq, dv in zip(self.rates.q, self.rates.v, strict=True):
            x = np.ascontiguousarray(tangent_velocity(model, q, dq))
            moved = (J @ x[..., None])[..., 0]
            turned = np.cross(moved[..., :3], arm)
            dV = (J @ dv[..., None])[..., 0] + (jacobian_derivative(model, q, x, link, frame="local_world_aligned")
                                                @ v[..., None])[..., 0]
            of_point = dV[..., 3:] + np.cross(dV[..., :3], arm) + np.cross(V[..., :3], turned)
            found.append(np.concatenate([moved[..., 3:] + turned, of_point, dV[..., :3]], axis=-1))
        return Dual(self.base.point(kind, link, at), np.array(found)[:, None, :, COMPONENTS.index(kind)])


# along a trajectory -----------------------------------------------------------------------------------------------------

def _along(bench: TrajectoryEvaluator, centre: list, which) -> _DualMotion:
    """Return a job along a trajectory with the derivatives of its results with respect to parameters. The motion is given."""
    job, binding = bench.sweep.job, bench.binding
    names = [binding.parameters[k] for k in which]
    if not bench.side_by_side or job.kind == "derivatives" or not all(names):
        raise NotDifferentiableError("this job")
    if any(name.partition(".")[0] in _MOVING for name in names):
        raise NotDifferentiableError("placements")
    run = binding.bind(centre)
    setting = setting_of(run.model, run.trajectory, job.kind, job.prescribed)
    motion, given = setting.motion, setting.prescribed
    found = derivatives(run.model, DerivativeRequest(job.kind, given, np.arange(run.model.nv), tuple(names)), motion)
    found = np.moveaxis(found, -1, 0)
    still = {kind: np.zeros((len(names), *x.shape)) for kind, x in (("q", motion.q), ("v", motion.v))}
    rates = motion_columns(run.model, **still, tau=np.where(given, found, 0.0), a=np.where(given, 0.0, found))
    base = [(name, unit, x[None]) for name, unit, x in columns_of_motion(run.model, setting.compute(run.model, motion))]
    t = run.trajectory.t
    return _DualMotion(BatchMotion(run.model, t, base, motion.q[None], motion.v[None]),
                        BatchMotion(run.model, t, rates, **still), True)
