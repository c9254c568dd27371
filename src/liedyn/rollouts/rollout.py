"""`ld.rollout`: many motions of one robot, or of variants of it, in one batch with a fixed step."""
from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import prod
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from liedyn.arrays import Array, ArrayLike, Mask, Method, Precision
from liedyn.codegen.batch_step import DEPENDENT_EQUATIONS, METHODS, NONFINITE_EVENT_VALUE, compile_adjoint_step
from liedyn.codegen.specialize import simd_width
from liedyn.dynamics.batching.arrays import as_array, check_out, copy_to_out
from liedyn.dynamics.batching.calls import thread_workspace
from liedyn.dynamics.batching.state_blocks import is_single
from liedyn.dynamics.batching.threads import run_on_threads
from liedyn.dynamics.manifold import coordinate_gradient, tangent_gradient
from liedyn.dynamics.model_parameters import parameter_tangent, tangent_sizes
from liedyn.dynamics.variants import Variants
from liedyn.errors import LiedynWarning, ShapeError, UsageError, counted, list_names, warn
from liedyn.immutable import Immutable
from liedyn.integrators.batch_integrator import BatchIntegrator, BatchOutputs, BatchStates, curve_coefficients, thread_borders
from liedyn.integrators.problem import InitialValueProblem
from liedyn.io.trajectory_csv import data_frame
from liedyn.joints.joint_model import tree_views
from liedyn.kernels.constraints.driver import LOOP_OPEN
from liedyn.kernels.simulation.contact import MATERIAL_SIZE, STIFFNESS
from liedyn.kernels.simulation.rate_evaluation import INVALID_ARGUMENTS
from liedyn.kernels.simulation.right_hand_side import BAD_SIGNAL, NOT_FINITE, SINGULAR
from liedyn.kernels.simulation.rollout_loop import RUNS_PER_BLOCK, backpropagate_rollouts, differentiate_steps
from liedyn.model.link_tree import reduced_inertias
from liedyn.model.model import Model
from liedyn.model.spatial import pose_from_array
from liedyn.numba_tools.decorators import compile_entry_point
from liedyn.public_calls import explained
from liedyn.rollouts.engine import (
    check_single_precision,
    contact_motions,
    normalize_quaternions,
    pivots,
    prepare_problem,
    run_vectorized,
    step_clocks,
)
from liedyn.rollouts.events import INCONSISTENT_IMPACT, STOPPED, ZENO, Events, RolloutEventHandler, RolloutEvents
from liedyn.rollouts.inputs import ContactSettings, Feedback, Policy, RolloutInputs
from liedyn.rollouts.rollout_warnings import checked_runs, drop_reported, from_states, state_warnings, warnings_of
from liedyn.rollouts.sequential_runs import check_within_limits, missing_code, rerun_dependent, run_sequentially
from liedyn.simulation.contact_setup import ContactMotion, robot_weight, weight_gradient
from liedyn.simulation.run_checks import MIN_CREEP_TIME
from liedyn.simulation.trajectory_columns import coordinate_columns, motion_columns, thrust_names

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

# Adjoint of a rollout: derivatives of a cost through its steps ----------------------------------------------------------

@dataclass(frozen=True, eq=False, repr=False)
class RolloutAdjoint(Immutable):
    """Derivatives of the cost of each run; NaN for runs that ended early or passed a singular configuration of the constraints.

    q0, v0      (…, nv) with respect to the initial state; that of q0 is tangent: with respect to x of q0 (+) x
    tau         (…, S, nv) with respect to the generalized forces of each step, zero for prescribed coordinates; if thrusts act,
                (…, S, nv + actuators) with these
    a           (…, S, nv) with respect to the accelerations of each step, zero for coordinates that are not prescribed; None if
                none are
    gain        (…, nv, 2 nv), or as many rows as the feedback, with respect to its gains, zero where a gain is zero; with an axis
                of steps, (…, S, nv, 2 nv), if the gains have one; None without feedback
    parameters  (…, m) with respect to the requested parameters, in their order

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> runs = ld.rollout(model, [0.3, 0.0], [0.0, 0.0], dt=1e-3, steps=100)
    >>> d_q = np.zeros((101, 2))
    >>> d_q[-1, 0] = 1.0              # the cost is the angle of the shoulder at the end
    >>> runs.adjoint(d_q, parameters=["mass.lower"]).q0.round(3)
    array([0.941, 0.058])
    """

    q0: Array
    v0: Array
    tau: Array
    a: Array | None
    gain: Array | None
    parameters: Array

    def __repr__(self) -> str:
        runs, steps = counted(prod(self.q0.shape[:-1]), "run"), counted(self.tau.shape[-2], "step")
        return f"<RolloutAdjoint: {runs}, {steps}, nv {self.q0.shape[-1]}>"


def compute_adjoint(engines: Sequence[BatchIntegrator], runs: RolloutInputs, clocks: np.ndarray, method: str, out: Rollout,
                    d_q: ArrayLike | None, d_v: ArrayLike | None, parameters: tuple[str, ...]) -> RolloutAdjoint:
    """Return the adjoint of a rollout, see `Rollout.adjoint`.

    engines  BatchIntegrator of each segment of the rollout
    runs     its arguments
    clocks   (S + 1, 4), see `BatchStep`
    out      its states, one for each step
    """
    backward = _RolloutBackpropagation(runs, out, parameters)
    steps = [_adjoint_step_of(engine, runs, mask, method, backward.places)
             for engine, (_, _, mask) in zip(engines, runs.segments, strict=True)]
    backward.set_cotangents(d_q, d_v)
    compile_entry_point(backpropagate_rollouts)
    parts = [backward.backpropagate_segment(engine, step, clocks[first:until + 1], first, until)
             for engine, step, (first, until, _) in zip(engines[::-1], steps[::-1], runs.segments[::-1], strict=True)]
    return backward.collect(np.concatenate(parts[::-1], axis=1) if len(parts) > 1 else parts[0])


class _RolloutBackpropagation:
    """Derivatives of a cost, from the states of all steps back to the initial states and to parameters.

    q, v            (N, S + 1, nq), (N, S + 1, nv) states of the rollout
    ended           (N,) bool: runs without derivatives
    cost_q, cost_v  of the shapes of q, v: derivatives of the cost with respect to the coordinates of each state alone
    places, rates   indices (l,) of constants that vary or that parameters change, and (m, l) derivatives of these constants with
                    respect to the m parameters
    by_q, by_v      (N, nq), (N, nv) derivatives with respect to the state before the steps that are done
    by_values       (N, k) derivatives with respect to `RolloutInputs.values`
    by_constants    (N, l) derivatives with respect to the constants at `places`
    """

    def __init__(self, runs: RolloutInputs, out: Rollout, parameters: tuple[str, ...]):
        model, count = runs.model, runs.count
        if runs.variants and parameters:
            raise UsageError("derivatives with respect to parameters require one model, got variants")
        if runs.variants:
            places, constants = runs.varying
            self.rates = np.zeros((0, len(places)))
        else:
            indices, self.rates = constant_tangents(model, parameters)
            places, constants = tuple(indices.tolist()), np.broadcast_to(model.constants[indices], (count, len(indices)))
        self.runs, self.parameters, self.places = runs, parameters, places
        self.constants, self.values = np.require(constants, requirements=["C", "W"]), runs.values()
        self.q, self.v = (np.require(x.reshape(count, *x.shape[-2:]), requirements=["C", "W"]) for x in (out.q, out.v))
        self.ended = np.isnan(self.q[np.arange(count), runs.last]).any(axis=1)
        self.ended[runs.rerun_indices] = True
        self.last = np.where(self.ended, 0, runs.last)
        self.by_q, self.by_v, self.by_values, self.by_constants = (
            np.zeros((count, n)) for n in (model.nq, model.nv, self.values.shape[1], len(places)))

    def set_cotangents(self, d_q: ArrayLike | None, d_v: ArrayLike | None) -> None:
        """Set the derivatives of the cost from tangent ones (…, S + 1, nv). States after the end of a run are ignored."""
        runs, model, steps = self.runs, self.runs.model, self.runs.steps
        tangent, by_v = (None if x is None else _cotangent(name, x, (*runs.lead, steps + 1, model.nv)).reshape(self.v.shape)
                         for name, x in (("d_q", d_q), ("d_v", d_v)))
        self.finite_q = self.q
        if (self.last < steps).any():
            is_after_end = (np.arange(steps + 1) > self.last[:, None])[..., None]
            self.finite_q = np.where(is_after_end, model.neutral(), self.q)
            tangent, by_v = (x if x is None else np.where(is_after_end, 0.0, x) for x in (tangent, by_v))
        self.cost_q = np.zeros(self.q.shape) if tangent is None else coordinate_gradient(model, self.finite_q, tangent)
        self.cost_v = np.zeros(self.v.shape) if by_v is None else by_v

    def backpropagate_segment(self, engine: BatchIntegrator, step: Any, clocks: np.ndarray, first: int, until: int) -> np.ndarray:
        """Go back from step `until` to `first`.

        Returns the derivatives (N, steps, m) with respect to the series of `RolloutInputs.step_inputs`.
        """
        runs, neutral = self.runs, self.runs.model.neutral()
        step_inputs = runs.step_inputs(first, until)
        if until < runs.steps:                                # the next segment has counted the state at its start
            self.cost_q[:, until], self.cost_v[:, until] = 0.0, 0.0
        q, v, cost_q, cost_v = (np.require(x[:, first:until + 1], requirements=["C", "W"])
                                for x in (self.q, self.v, self.cost_q, self.cost_v))
        by_series = np.zeros((runs.count, until - first, len(step_inputs.places)))
        curves = curve_coefficients(engine.problem.signals, engine.batch_step.curves, clocks)
        sizes = self.by_q, self.by_v, self.by_values, self.by_constants
        numbers_per_run = 2 * sum(x.shape[1] for x in sizes) + 2

        def part(i: int, j: int) -> int:
            workspace = thread_workspace(RUNS_PER_BLOCK * numbers_per_run + step.workspace_size)
            result: int = backpropagate_rollouts(step.address, simd_width(), clocks, curves, step_inputs.places,
                                                 step_inputs.series, self.values, q, v, self.constants, self.last - first, cost_q,
                                                 cost_v, self.by_q, self.by_v, by_series, self.by_values, self.by_constants,
                                                 neutral, workspace, i, j)
            return result

        run_on_threads(part, thread_borders(runs.count))
        return by_series

    def collect(self, by_series: np.ndarray) -> RolloutAdjoint:
        """Return the result. by_series: (N, S, m) of all segments."""
        runs, model, nv, by_driving = self.runs, self.runs.model, self.runs.model.nv, by_series[..., :self.runs.n_inputs]
        masks = np.zeros((runs.steps, runs.n_inputs), dtype=bool)
        masks[:, :nv] = runs.masks
        by_parameters = self.by_constants @ self.rates.T
        if self.parameters and runs.contacts is not None:
            places = np.array(self.places, dtype=np.int64)
            by_parameters += _weight_derivatives(runs, self.by_values, places, self.rates, self.parameters)
        tau, a = (np.where(masks, 0.0, by_driving), np.where(masks, by_driving, 0.0)[..., :nv]) if masks.any() \
            else (by_driving, None)
        gain = self._by_gain(by_series)
        return RolloutAdjoint(self._by_run(tangent_gradient(model, self.finite_q[:, 0], self.by_q)), self._by_run(self.by_v),
                              self._by_run(tau), None if a is None else self._by_run(a),
                              None if gain is None else self._by_run(gain), self._by_run(by_parameters))

    def _by_gain(self, by_series: np.ndarray) -> np.ndarray | None:
        """Return the derivatives (N, rows, 2 nv) or (N, S, rows, 2 nv) with respect to the gains, or None without feedback."""
        runs = self.runs
        if runs.pattern is None:
            return None
        changing, n = runs.gain_steps > 1, runs.gains.shape[1]             # these follow the inputs in the series
        gain = np.zeros((runs.count, *((runs.steps,) if changing else ()), *runs.pattern.shape))
        gain[..., runs.pattern] = by_series[..., runs.n_inputs:runs.n_inputs + n] if changing else \
            self.by_values[:, runs.first_gain_index:runs.first_gain_index + n]
        return gain[..., :runs.gain_rows, :]

    def _by_run(self, x: np.ndarray) -> np.ndarray:
        """Return x (N, …) with the axes of runs, NaN for runs without derivatives."""
        x[self.ended] = np.nan
        return x.reshape(*self.runs.lead, *x.shape[1:])


def _weight_derivatives(runs: RolloutInputs, by_values: np.ndarray, places: np.ndarray, rates: np.ndarray,
                        parameters: tuple[str, ...]) -> np.ndarray:
    """Return the derivatives (N, m) with respect to parameters through the stiffness of contacts with `sink`.

    That stiffness is proportional to the weight. places, rates (m, places): of `constant_tangents`.
    """
    assert runs.contacts is not None, "the rollout has contacts"
    bound, model = runs.contacts.contacts, runs.model
    if not bound.scales_with_weight.any():
        return np.zeros((len(by_values), len(rates)))
    by_gravity = rates[:, places < 6].any(axis=1)
    if by_gravity.any() and not model.gravity.any():           # the weight is that of 9.81 m/s^2 there: discontinuous
        raise UsageError(f"the adjoint has no derivative with respect to {parameters[int(np.argmax(by_gravity))]!r}: without "
                         "gravity, the "
                         "stiffness of contacts that `sink` gives is discontinuous; give `stiffness`")
    by_k = (by_values[:, runs.first_gain_index - bound.material.size:runs.first_gain_index] *
            bound.material).reshape(len(by_values), -1, MATERIAL_SIZE)[..., STIFFNESS]
    return np.outer(by_k[:, bound.scales_with_weight].sum(axis=1) / robot_weight(model, model.constants),
                    rates @ weight_gradient(model)[places])


def _adjoint_step_of(engine: BatchIntegrator, runs: RolloutInputs, mask: np.ndarray, method: str,
                     places: tuple[int, ...], all_results: bool = False) -> Any:
    """Return the generated adjoint step of a segment, see `compile_adjoint_step`, or raise UsageError."""
    key, code = f"adjoint {method} {places} {all_results}", engine.problem.code     # of a problem that is cached with the model
    if key not in code:
        code[key] = compile_adjoint_step(engine.problem.tables(), method, places,
                                         pivots(engine.problem, runs.rows.get(mask.tobytes(), ())), all_results)
    if code[key] is None:
        raise UsageError("the adjoint of a step of this robot has no generated code: too many operations")
    return code[key]


_MIN_SIZE_FOR_THREADS = 90_000     # numbers of A in `compute_linear_steps`: fewer take less than 1 ms


@dataclass(frozen=True, eq=False, repr=False)
class LinearSteps(Immutable):
    """Linear models x[k + 1] = A[k] x[k] + B[k] u[k] of the steps of a rollout, for small deviations from its motions.

    x is the tangent deviation of q, then that of v. u changes the inputs of the step: generalized forces, for prescribed
    coordinates accelerations, then thrusts if they act. With feedback, A is that of the closed loop. NaN after the end of a run.

    A        (…, S, 2 nv, 2 nv)
    B        (…, S, 2 nv, inputs)
    states   names of x: q.elbow, …, v.elbow, …
    inputs   names of u: tau.elbow, …, thrust.rotor1, …

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> steps = ld.rollout(model, [0.3, 0.0], [0.0, 0.0], dt=1e-3, steps=100).linearize()
    >>> steps
    <LinearSteps: 1 run, 100 steps; 4 states, 2 inputs tau.shoulder, tau.elbow>
    >>> steps.B[0, 2:].round(4)
    array([[ 0.0017, -0.0043],
           [-0.0043,  0.0137]])
    """

    A: Array
    B: Array
    states: tuple[str, ...]
    inputs: tuple[str, ...]

    def __repr__(self) -> str:
        *lead, steps, n, _ = self.A.shape
        return (f"<LinearSteps: {counted(prod(lead), 'run')}, {counted(steps, 'step')}; {counted(n, 'state')}, "
                f"{counted(len(self.inputs), 'input')} {list_names(self.inputs, 8)}>")


def compute_linear_steps(engines: Sequence[BatchIntegrator], runs: RolloutInputs, clocks: np.ndarray, method: str,
                         out: Rollout) -> LinearSteps:
    """Return the linear models of all steps, see `Rollout.linearize`. Arguments are those of `compute_adjoint`."""
    model, count, places = runs.model, runs.count, runs.varying[0]
    n, n_inputs = model.nq + model.nv, runs.n_inputs
    adjoint_steps = [_adjoint_step_of(engine, runs, mask, method, places, all_results=True)
                     for engine, (_, _, mask) in zip(engines, runs.segments, strict=True)]
    compile_entry_point(differentiate_steps)
    q, v = (np.require(x.reshape(count, *x.shape[-2:]), requirements=["C", "W"]) for x in (out.q, out.v))
    ended = np.isnan(q[np.arange(count), runs.last]).any(axis=1)
    ended[runs.rerun_indices] = True
    last, values, constants = np.where(ended, 0, runs.last), runs.values(), np.require(runs.varying[1], requirements=["C", "W"])
    derivatives, rest = np.empty((count, runs.steps, n, n + n_inputs)), model.neutral()
    for engine, step, (first, until, _) in zip(engines, adjoint_steps, runs.segments, strict=True):
        inputs, curves = runs.step_inputs(first, until), curve_coefficients(engine.problem.signals, engine.batch_step.curves,
                                                                            clocks[:1])
        part = derivatives if until - first == runs.steps else np.empty((count, until - first, *derivatives.shape[2:]))
        states = [x if part is derivatives else np.ascontiguousarray(x[:, first:until + 1]) for x in (q, v)]
        size = (RUNS_PER_BLOCK + simd_width() * n) * (n + values.shape[1] + constants.shape[1] + 2) + step.workspace_size

        def rows(i: int, j: int, arrays: tuple[Any, ...] = (clocks, curves, inputs.places, inputs.series, values, *states,
                                                            constants, last - first, part, rest), address: int = step.address,
                 size: int = size) -> int:
            result: int = differentiate_steps(address, simd_width(), *arrays, thread_workspace(size), i, j)
            return result

        total = part.shape[0] * part.shape[1]
        run_on_threads(rows, thread_borders(total, None if total * n * n > _MIN_SIZE_FOR_THREADS else 1))
        derivatives[:, first:until] = part
    derivatives[np.arange(runs.steps) >= last[:, None]] = np.nan
    by_row = _tangent_rows(model, q, derivatives) if model.quaternions else derivatives
    nx, lead = 2 * model.nv, (*runs.lead, runs.steps)
    columns = {kind: coordinate_columns(model, kind) for kind in ("q", "v", "a", "tau")}
    always_prescribed = np.logical_and.reduce(runs.masks, axis=0)
    input_names = [columns["a" if always_prescribed[k] else "tau"][k] for k in range(model.nv)] + [*thrust_names(model)]
    A, B = by_row[..., :nx], by_row[..., nx:]
    return LinearSteps(A.reshape(*lead, nx, nx), B.reshape(*lead, nx, n_inputs), columns["q"] + columns["v"],
                       tuple(input_names[:n_inputs]))


def _tangent_rows(model: Model, q: Array, derivatives: Array) -> Array:
    """Return derivatives (N, S, 2 nv, 2 nv + inputs) of tangent deviations from those of the numbers of q and v.

    q: (N, S + 1, nq) motions
    """
    nq, nv = model.nq, model.nv
    q = np.where(np.isnan(q), model.neutral(), q)[:, :, None]
    to_numbers = coordinate_gradient(model, np.broadcast_to(q[:, 1:], (*q[:, 1:].shape[:2], nv, nq)), np.eye(nv))
    rows = np.concatenate([to_numbers @ derivatives[..., :nq, :], derivatives[..., nq:, :]], axis=2)
    by_q = tangent_gradient(model, np.broadcast_to(q[:, :-1], (*rows.shape[:3], nq)), rows[..., :nq])
    return np.concatenate([by_q, rows[..., nq:]], axis=3)


def _cotangent(name: str, x: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """Return the derivatives of the cost with respect to states as a new array (…, S + 1, nv)."""
    x = as_array(x, name, shape[-1:])
    try:
        return np.array(np.broadcast_to(x, shape))
    except ValueError:
        raise ShapeError(f"{name} has the wrong shape: expected {shape}, for each step and the end, got {x.shape}") from None


def constant_tangents(model: Model, parameters: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of the constants of a model that parameters change, and their derivatives (parameters, indices)."""
    n, nv = model.n_bodies, model.nv
    tree, dense = tree_views.py_func(model.index, model.constants), np.zeros((len(parameters), model.constants.size))
    for row, name in enumerate(parameters):
        tangent, rates = parameter_tangent(model, name), tree_views.py_func(model.index, dense[row])
        changes = np.zeros(tangent_sizes(model)[0])                # of gravity, joint frames, inertias and coordinates
        in_constants = tangent.at < changes.size
        changes[tangent.at[in_constants]] = tangent.values[in_constants]
        rates.dV0[:], rates.I[:] = changes[:6], changes[6 + 12 * n:6 + 22 * n]
        rates.J[:] = reduced_inertias(tree.parent, tree.kind, tree.S.reshape(n, 2), pose_from_array(tree.T0.reshape(n, 12)),
                                      rates.I.reshape(n, 10)).ravel()
        for k, x in enumerate((rates.armature, rates.damping, rates.friction, rates.stiffness, rates.rest, rates.friction_speed)):
            x[:] = changes[6 + 22 * n + k * nv:][:nv]
        if not dense[row].any() and tangent.at.size:
            raise UsageError(f"the adjoint has no derivative with respect to {name!r}: it moves a joint (masses, inertias, "
                             "gravity, "
                             "armature, damping, friction and springs are available)")
    places = np.flatnonzero(dense.any(axis=0))
    return places, dense[:, places]


# rollout ----------------------------------------------------------------------------------------------------------------

REASONS = {BAD_SIGNAL: "a torque is not finite", SINGULAR: "a joint's articulated inertia vanishes",
           NOT_FINITE: "the motion is no longer finite", INVALID_ARGUMENTS: "an angle is beyond 1e5 rad, or no longer finite",
           LOOP_OPEN: "a loop can no longer be closed: dt is too long, or the configuration cannot be reached",
           DEPENDENT_EQUATIONS: "the constraints became dependent (a singular configuration); use rk4 with tau as an array",
           NONFINITE_EVENT_VALUE: "the expression of an event is not finite",
           ZENO: "events repeat indefinitely: impacts accumulate, and rollouts cannot hold a joint at a stop "
                 "(use ld.run_scenario)",
           INCONSISTENT_IMPACT: "an impact contradicts the constraints of the robot, or its prescribed motions"}
_MAX_REASONS = 3             # number of reasons in the representation


@dataclass(frozen=True, eq=False, repr=False)
class Rollout(Immutable):
    """Motions of many runs.

    t          (R,) [s] output times: every `every` steps, and the end
    q, v       (…, R, nq), (…, R, nv); NaN after the end of a run
    a, tau     (…, R, nv) at the output times if `forces`, else None; the last row of a run has the forces of its last step
    thrusts    (…, R, actuators) the same, if thrusts act, else None
    ended_at   (…,) [s] time at which a run ended early, NaN if it is complete
    reasons    why runs ended early, by the index of the run (flattened)
    events     events that have happened; None without `events`
    stopped_at (…,) [s] time at which an event has stopped a run, else NaN
    model      the robot; of variants, that of which they have the structure
    variants   the robots, by the last axis of runs; None if all runs have one robot

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> runs = ld.rollout(model, [[0.3, 0.0], [0.2, 0.0]], [0.0, 0.0], dt=1e-3, steps=100)
    >>> runs.q.shape, runs.complete
    ((2, 101, 2), array([ True,  True]))
    """

    t: Array
    q: Array
    v: Array
    a: Array | None
    tau: Array | None
    thrusts: Array | None
    ended_at: Array
    reasons: dict[int, str]
    events: RolloutEvents | None
    stopped_at: Array
    _compute_adjoint: Callable[..., Any] = field(compare=False)
    _adjoint_error: str = field(compare=False)
    _contact_motion: Callable[..., ContactMotion] | None = field(compare=False)
    _compute_warnings: Callable[..., tuple[LiedynWarning, ...]] = field(compare=False)
    model: Model
    variants: Variants | None = field(compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling, with contacts and warnings computed.

        The adjoint compiles its functions again if needed.
        """
        computed = {"contacts": self.contacts, "warnings": self.warnings}
        return vars(self) | computed | {"_contact_motion": None,
                                        "_compute_warnings": None} | ({"_compute_adjoint": None} if self._adjoint_error else {})

    def adjoint(self, d_q: ArrayLike | None = None, d_v: ArrayLike | None = None,
                parameters: Sequence[str] = ()) -> RolloutAdjoint:
        """Return derivatives of a cost with respect to initial states, generalized forces, gains and parameters.

        They are exact for the computed steps. Needs ``every=1``.

        Parameters
        ----------
        d_q, d_v : (…, S + 1, nv), optional
            Derivatives of the cost with respect to each state alone; those for q are tangent: with respect to x of q (+) x.
            Default: zero.
        parameters : sequence of str, optional
            Names of `parameter_names`: masses, inertias, gravity, armature, damping, friction, springs.

        Raises
        ------
        UsageError
            If ``every`` is not 1, for a policy, for events, and for robots without generated code.
        """
        if self._adjoint_error:
            raise UsageError(f"the adjoint {self._adjoint_error}")
        back: RolloutAdjoint = self._compute_adjoint(self, d_q, d_v, tuple(parameters))
        return back

    def linearize(self) -> LinearSteps:
        """Return the linear models x[k + 1] = A[k] x[k] + B[k] u[k] of all steps, exact for the computed steps.

        They are those of the motion of each run, in one call. Needs ``every=1``. Raises as `adjoint`.
        """
        if self._adjoint_error:
            raise UsageError(f"the linear models of steps: the adjoint {self._adjoint_error}")
        steps: LinearSteps = self._compute_adjoint(self, function=compute_linear_steps)
        return steps

    @cached_property
    def contacts(self) -> ContactMotion | None:
        """Normal forces, depths and slips (…, R, m) of m contacts, centre of pressure (…, R, 3); NaN after the end of a run.

        Computed from the states on first access. None without `contacts`.
        """
        return self._contact_motion and self._contact_motion(self.q, self.v)

    @cached_property
    def warnings(self) -> tuple[LiedynWarning, ...]:
        """Warnings about the rollout, computed on first access.

        They are about events after the end, singular initial states, and joints that creep because friction is smoothed about
        rest. A step that is too long for stiff forces, and singular configurations of mechanisms, are detected in the first run.
        Coordinates that leave their position limits, which do not act, are detected at outputs 0.05 s apart.
        """
        return self._compute_warnings(self.t, self.q, self.v) if self.ended_at.size else ()

    @property
    def complete(self) -> Mask:
        """(…,) bool: runs that have not ended early."""
        return np.isnan(self.ended_at)

    def to_pandas(self) -> pandas.DataFrame:
        """Return a DataFrame with columns such as "q.elbow[rad]", and the run and the time "t[s]" as index.

        With several axes of runs, the levels of the index are run.0, run.1, …; with none, the time alone. Rows after the end of
        a run are NaN. Requires pandas, which liedyn does not install.
        """
        columns = motion_columns(self.model, q=self.q, v=self.v, a=self.a, tau=self.tau)
        return data_frame(self.t, columns, self.ended_at.shape)

    @explained
    def plot(self, what: str = "positions", *, width: float | None = None,
             style: Literal["screen", "paper"] = "screen") -> Figure:
        """Return a Matplotlib figure of all runs: positions, velocities, and with `forces` accelerations and torques.

        A few runs are drawn as curves, more as bands around the median. width [inches] and style are as for `figure_of`. Raises
        NameLookupError for another plot.
        """
        import liedyn
        return liedyn.figure_of(self, what, width=width, style=style)

    @explained
    def replay(self, path: str | os.PathLike[str], *, runs: Sequence[int] = (0,), side_by_side: bool = False,  # noqa: PLR0913
               traces: Sequence[str] = (), follow: str = "", speed: float = 1.0, meshes: bool | None = None,
               package_roots: Sequence[str] = (), force: bool = False) -> None:
        """Write a page that shows some runs in 3D, see `liedyn.replay_of`. `runs` are indices of runs (flattened), at most 16.

        Raises UsageError for an index that does not exist, and where the file exists and `force` is not given.
        """
        import liedyn
        from liedyn.io.atomic_output import open_output
        page = liedyn.replay_of(self, runs=runs, side_by_side=side_by_side, traces=traces, follow=follow, speed=speed,
                                meshes=meshes, package_roots=package_roots)
        with open_output(os.fspath(path), force=force) as file:
            file.write(page)

    def _repr_html_(self) -> str:
        """Return the summary, and the first run in 3D, for notebooks."""
        from html import escape

        import liedyn
        summary = f"<pre>{escape(repr(self))}</pre>"
        return summary + liedyn.replay_of(self, inline=True) if self.ended_at.size else summary

    def __repr__(self) -> str:
        stopped, bad = np.count_nonzero(np.isfinite(self.stopped_at)), np.count_nonzero(~self.complete)
        ended = _reason_lines(self.reasons)
        runs = counted(self.ended_at.size, "run")
        return (f"<Rollout: {runs} of {self.t[-1]:g} s, {len(self.t)} rows, nq {self.q.shape[-1]}, nv "
                f"{self.v.shape[-1]}{f', {stopped} stopped' if stopped else ''}{f', {bad} ended early' if bad else ''}>"
                + "".join(f"\n  {line}" for line in (*ended, *(f"warning: {warning}" for warning in self.warnings))))


def _reason_lines(reasons: Mapping[int, str]) -> list[str]:
    """Return a line for each reason, the most frequent first."""
    counts = Counter(reasons.values()).most_common()
    lines = [f"{counted(count, 'run')} ended early: {reason}" for reason, count in counts[:_MAX_REASONS]]
    remaining = counts[_MAX_REASONS:]
    more = f"{sum(count for _, count in remaining)} runs ended early for {len(remaining)} other reasons"
    return [*lines, *([more] if remaining else [])]


def rollout(model: Model | Variants, q0: ArrayLike, v0: ArrayLike,       # noqa: PLR0913 - options are independent
            tau: ArrayLike | Policy | None = None, *, dt: float,
            steps: int, method: Method = "rk4", every: int = 1, feedback: Feedback | None = None, passive: bool = True,
            last: ArrayLike | None = None, prescribed: ArrayLike | None = None, a: ArrayLike | None = None,
            contacts: Mapping[str, Any] | None = None, events: Mapping[str, Any] | None = None, forces: bool = False,
            dtype: Precision = "float64", out: tuple[Array, Array] | None = None) -> Rollout:
    """Simulate many runs in one batch, vectorized and on all cores.

    Parameters
    ----------
    model : Model or Variants
        With `Variants`, the last axis of runs is that of the robots.
    q0, v0 : (…, nq), (…, nv)
        Initial states; their leading axes, and those of the other arguments, are the runs.
    tau : array or callable, optional
        Generalized forces [N m | N], constant during each step: (nv,) for all, or (…, S, nv) with an axis of steps, S = steps or
        1. With nv + m columns, the last m are thrusts [N] of the actuators of the robot, in their order: columns are inputs as
        in `linearize`. Or a policy, called once per step: ``policy(t, q, v)`` takes the time [s] and all states, (…, nq) and
        (…, nv), and returns (…, nv) or (…, nv + m). Its arguments are the states after events of that time; if events change
        the state at t = 0, it is called twice there. Runs that have ended early are at rest in the neutral configuration.
    dt : float
        Step [s].
    steps : int
    method : {"rk4", "semi_implicit"}
        Runge-Kutta of fourth order; or symplectic Euler, v' = v + dt a(q, v), q' = q (+) dt v', one evaluation per step.
    every : int
        Steps between two outputs.
    feedback : Feedback, optional
        Added to tau. It is evaluated at each stage, so that rk4 keeps its order.
    passive : bool
        Whether joint springs, damping and friction act.
    last : (…,) int, optional
        Steps of each run, at most `steps`; default: all of them.
    prescribed : (nv,) or (S, nv) bool, optional
        Hybrid dynamics: mask of coordinates whose acceleration is prescribed, in all steps or in each step. Their generalized
        force is computed (`forces`).
    a : (…, S, nv) or (nv,), optional
        Accelerations of prescribed coordinates, constant during each step; default: zero. Other entries are ignored. An error
        without `prescribed`.
    contacts : mapping, optional
        Contacts of links with planes and each other, as the key `contacts` of a scenario. Contact is stiff: a fixed step must
        resolve it (a larger `friction_speed` and `sink`, a smaller dt). There is a warning if it does not. See
        `Rollout.contacts`.
    events : mapping, optional
        As the key `events` of a scenario. Events happen when an expression of the state passes a value, located within the step
        to rounding, or at times that are multiples of dt. Actions: set, impact, record, stop. An expression that passes its value
        and returns within one step is not detected. See `Rollout.events`.
    forces : bool
        Whether to return accelerations and generalized forces at the outputs, too.
    dtype : "float64" or "float32"
        Precision of the steps. In single precision, twice as many runs are computed together; the rounding of a step is 6e-8 of
        the state. Arrays of results are of float64 all the same. Runs that end early are repeated in double precision, with rk4.
        It is an error for robots with loops or couplings, for `Variants`, and with policies, contacts and events.
    out : (q, v), optional
        Arrays (…, R, nq) and (…, R, nv) for the result. `Rollout.adjoint` reads them, so they must not be changed before.

    Returns
    -------
    Rollout
        Runs that cannot continue end early, with time and reason; the others continue.

    Raises
    ------
    ShapeError, ConfigurationError
        For wrong shapes, numbers that are not finite, quaternions without unit norm, and states off the constraints.
    UsageError
        For driven loops; for prescribed coordinates that depend on each other by constraints; for semi_implicit, policies, events
        and feedback about a motion if the robot has no generated code; for events that change more than the state.
    ScenarioError
        For contacts and events that are invalid in a scenario.

    Notes
    -----
    Joint limits do not act. Coordinates beyond position limits are reported once per model as a warning, and in
    `Rollout.warnings`; velocity and effort limits are not checked. The accuracy is not checked: repeat the rollout with half the
    step.

    Arrays with ``__dlpack__`` (PyTorch, JAX) are used without a copy if they are float64 in the memory of the CPU.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.rollout(model, np.zeros((1000, 2)), np.ones((1000, 2)), dt=1e-3, steps=100, every=50)
    <Rollout: 1000 runs of 0.1 s, 3 rows, nq 2, nv 2>
    """
    variants, model = (model, model.model) if isinstance(model, Variants) else (None, model)
    check_numbers(method, dt, steps=steps, every=every)
    steps, every, dt = int(steps), int(every), float(dt)               # of NumPy they may be 32 bits wide
    single = is_single(dtype, "rollout") and check_single_precision("rollout", model, {
        "Variants": variants, "policies": tau if callable(tau) else None, "contacts": contacts, "events": events})
    contact_settings = ContactSettings.read(contacts, model)
    runs = RolloutInputs(model, variants, q0, v0, tau, feedback, last, steps, contact_settings, a, prescribed)
    places, constants = runs.varying
    bound_events = Events.read(events, model, dt, steps)
    segments = [prepare_problem(runs, mask, passive, method, places, bound_events, single) for _, _, mask in runs.segments]
    engines = [BatchIntegrator(problem, line, constants) for problem, line in segments if line]
    problem, vectorized = segments[0][0], len(engines) == len(segments)
    rows = np.unique([*range(0, steps + 1, every), steps])
    check_out([(*runs.lead, len(rows), n) for n in (model.nq, model.nv)], out)
    outputs = BatchOutputs.allocate(runs.count, len(rows), model.nq, model.nv, 2 * model.nv + problem.wrench_size
                                    if forces else 0)
    batch_states = BatchStates.from_states(runs.q, runs.v, runs.last, len(problem.directions))
    handler = RolloutEventHandler(bound_events, runs, batch_states) if bound_events else None
    reasons: dict[int, str] = {}
    if vectorized:
        run_vectorized(engines, runs, batch_states, outputs, dt, rows, handler)
        repeated = rerun_dependent(problem, runs, batch_states, outputs, dt, rows, method, single)
        if single:
            normalize_quaternions(model, outputs.q)
        batch_states.ended[batch_states.codes == STOPPED] = -1
        remark = " (in single precision)" if single else ""
        reasons = repeated | {int(k): REASONS[int(batch_states.codes[k])] + remark
                              for k in np.flatnonzero(batch_states.ended >= 0) if k not in repeated}
    elif runs.count:
        check_within_limits(problem, runs, method)
        if single:
            warn([LiedynWarning("double-precision", f"a rollout of robot {model.name} in single precision requires "
                                f"{missing_code(problem, runs, method)}: it is computed in double precision")])
        reasons = run_sequentially(problem, runs, batch_states, outputs, dt, rows, range(runs.count))
    ended = np.where(batch_states.ended >= 0, batch_states.ended * dt, np.nan).reshape(runs.lead)
    q, v, all_forces = (x.reshape(*runs.lead, *x.shape[1:]) for x in (outputs.q, outputs.v, outputs.forces))
    q, v = copy_to_out((q, v), out)
    all_a, all_tau = (all_forces[..., :model.nv], all_forces[..., model.nv:2 * model.nv]) if forces else (None, None)
    event_warnings = (*bound_events.warnings, *handler.warnings()) if bound_events and handler else ()
    stopped = handler.stopped_at if handler else np.full(runs.count, np.nan)
    all_thrusts = problem.split_wrench(all_forces[..., 2 * model.nv:])[1] if forces and len(problem.thrusters) else None
    result = Rollout(dt * rows, q, v, all_a, all_tau, all_thrusts, ended, reasons, handler.recorded_events if handler else None,
                     stopped.reshape(runs.lead), partial(_adjoint, runs, passive, method, dt),
                     _missing_adjoint(vectorized, problem, method, runs, bound_events, every),
                     contact_settings and partial(contact_motions, problem, runs),
                     partial(warnings_of, event_warnings, problem, runs, dt, method), model, variants)
    already_checked = checked_runs(runs, problem, dt, method)
    is_long = result.t[-1] > MIN_CREEP_TIME                           # saves time in many short rollouts
    warnings = result.warnings if not already_checked else (
        *runs.warnings, *(state_warnings(problem, runs, result.t, q) if is_long else ()))
    warn(drop_reported(model, warnings))
    if not already_checked and all(map(from_states, warnings)):
        checked_runs(runs, problem, dt, method, without_warnings=True)
    return result


def _missing_adjoint(vectorized: bool, problem: InitialValueProblem, method: Method, runs: RolloutInputs,
                     events: Events | None, every: int) -> str:
    """Return why a rollout has no adjoint, or an empty text."""
    if not vectorized:
        return f"requires {missing_code(problem, runs, method)}"
    if runs.policy:
        return "has no derivatives of a policy; use a Feedback, or tau as an array"
    if events:
        return "has no derivatives through events"
    return f"requires the state of each step: expected every=1, got every={every}" if every > 1 else ""


def _adjoint(runs: RolloutInputs, passive: bool, method: Method, dt: float, *arguments: Any,
             function: Callable[..., Any] = compute_adjoint) -> Any:
    """Return the adjoint or the linear models of a rollout. arguments: the last arguments of `function`.

    Problems and generated steps are cached with the model, or compiled again.
    """
    places, constants = runs.varying
    ready = (prepare_problem(runs, mask, passive, method, places, None) for _, _, mask in runs.segments)
    engines = [BatchIntegrator(problem, step, constants) for problem, step in ready if step]
    return function(engines, runs, step_clocks(runs.steps, dt), method, *arguments)


@dataclass(frozen=True, eq=False, repr=False)
class RolloutDerivatives(Immutable):
    """Derivatives of the final state of each run; the 2 nv rows are x of q (+) x, tangent, then v.

    q0, v0   (…, 2 nv, nv) with respect to the initial state, tangent for q0
    tau      (…, 2 nv, S, nv) with respect to the generalized forces of each step, zero for prescribed coordinates; if thrusts
             act, (…, 2 nv, S, nv + actuators) with these
    a        (…, 2 nv, S, nv) with respect to the accelerations of prescribed coordinates; None without `prescribed`

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.rollout_derivatives(model, [0.3, 0.0], [0.0, 0.0], dt=1e-3, steps=100)
    <RolloutDerivatives: 1 run, 100 steps, nv 2>
    """

    q0: Array
    v0: Array
    tau: Array
    a: Array | None = None

    def __repr__(self) -> str:
        runs, steps = counted(prod(self.q0.shape[:-2]), "run"), counted(self.tau.shape[-2], "step")
        return f"<RolloutDerivatives: {runs}, {steps}, nv {self.q0.shape[-1]}>"


def rollout_derivatives(model: Model | Variants, q0: ArrayLike, v0: ArrayLike,       # noqa: PLR0913 - of `rollout`
                        tau: ArrayLike | None = None, *, dt: float,
                        steps: int, method: Method = "rk4", feedback: Feedback | None = None, passive: bool = True,
                        prescribed: ArrayLike | None = None, a: ArrayLike | None = None,
                        contacts: Mapping[str, Any] | None = None) -> RolloutDerivatives:
    """Return derivatives of the final state of each run with respect to its initial state and its generalized forces.

    They are exact for the computed steps. For arguments and errors see `rollout`. Each of the 2 nv rows is a separate adjoint;
    for the derivatives of one cost, `Rollout.adjoint` is cheaper.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.rollout_derivatives(model, [0.3, 0.0], [0.0, 0.0], dt=1e-3, steps=100).q0.round(3)
    array([[ 0.941,  0.058],
           [ 0.077,  0.787],
           [-1.153,  1.101],
           [ 1.468, -4.091]])
    """
    run = rollout(model, q0, v0, tau, dt=dt, steps=steps, method=method, feedback=feedback, passive=passive,
                  prescribed=prescribed, a=a, contacts=contacts)
    nv, lead = run.v.shape[-1], run.ended_at.shape
    rows = []
    for k in range(2 * nv):
        unit = np.zeros((*lead, steps + 1, nv))
        unit[..., -1, k % nv] = 1.0
        rows.append(run.adjoint(unit, None) if k < nv else run.adjoint(None, unit))
    names = ("q0", "v0", "tau", *(["a"] if rows[0].a is not None else []))
    return RolloutDerivatives(*(np.stack([getattr(row, name) for row in rows], axis=len(lead)) for name in names))


def check_numbers(method: object, dt: object, **counts: object) -> None:
    """Raise UsageError for an invalid method, step, or number of steps or runs."""
    if method not in METHODS:
        raise UsageError(f"method must be {' or '.join(METHODS)}, got {method!r}")
    if isinstance(dt, bool) or not (isinstance(dt, Real) and 0.0 < float(dt) < np.inf):
        raise UsageError(f"dt must be a number of seconds > 0, got {dt!r}")
    for name, x in counts.items():
        if isinstance(x, bool) or not isinstance(x, Integral) or x < 1:
            raise UsageError(f"{name} must be an integer >= 1, got {x!r}")


# A rollout as a function of arrays, with its adjoint, for other libraries -----------------------------------------------

class RolloutMap:
    """The function (q0, v0, tau) -> (q, v) of NumPy arrays, (…, nq), (…, nv), (…, S, nv) -> (…, S + 1, nq), (…, S + 1, nv)."""

    def __init__(self, model: Model, **options: Any) -> None:
        """Set the model and the options of `liedyn.rollout`."""
        self.model, self.steps, self.options = model, options["steps"], options

    def run(self, q0: Any, v0: Any, tau: Any) -> Rollout:
        """Return the rollout of the initial states and generalized forces."""
        return rollout(self.model, *(np.asarray(x, dtype=float) for x in (q0, v0, tau)), **self.options)

    def back(self, run: Rollout, q0: Any, tau: Any, d_q: np.ndarray | None,
             d_v: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the derivatives of a cost with respect to q0, v0 and tau from those with respect to q and v.

        Derivatives with respect to quaternions have no component normal to the unit sphere.
        """
        adjoint = run.adjoint(tangent_gradient(self.model, run.q, np.asarray(d_q, dtype=float)), np.asarray(d_v, dtype=float))
        lead = run.ended_at.shape
        q0 = np.broadcast_to(np.asarray(q0, dtype=float), (*lead, self.model.nq))
        return coordinate_gradient(self.model, q0, adjoint.q0), adjoint.v0, adjoint.tau[..., :np.shape(tau)[-1]]
