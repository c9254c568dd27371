"""Linear-quadratic regulators along the motions of a rollout, by the backward Riccati recursion."""
from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

import numpy as np

from liedyn.analysis.linear_system import choose
from liedyn.analysis.optimal_gains import Weights, weight_matrix
from liedyn.arrays import Array, ArrayLike, Integers
from liedyn.dynamics.manifold import difference, integrate
from liedyn.errors import ComputationError, LiedynWarning, ShapeError, UsageError, checked_flag, counted, list_names, warn
from liedyn.immutable import Immutable
from liedyn.io.atomic_output import open_output
from liedyn.io.csv_table import cell, write_table
from liedyn.public_calls import explained
from liedyn.rollouts.inputs import Feedback
from liedyn.rollouts.rollout import LinearSteps, Rollout
from liedyn.simulation.trajectory_columns import motion_columns


@dataclass(frozen=True, eq=False, repr=False)
class TimeVaryingGain(Immutable):
    """Gains K[k] of a regulator u[k] = -K[k] x[k] of the deviations x from the motions of a rollout.

    matrix    (…, S, m, 2 nv); zero after the end of a shorter run
    rows      (m,) names of the inputs
    columns   (2 nv,) names of the states: q.elbow (tangent), …, v.elbow, …
    P         (…, S + 1, 2 nv, 2 nv): x[k]^T P[k] x[k] is the cost of the linear model from step k to the end
    run       the rollout with the motions

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> run = ld.rollout(model, [0.3, 0.0], [0.0, 0.0], dt=0.01, steps=100)
    >>> gain = ld.tvlqr(run, {"q.*": 10, "v.*": 1}, 0.1)
    >>> gain
    <TimeVaryingGain: 1 run, 100 steps; rows tau.shoulder, tau.elbow>
    >>> ld.rollout(model, [0.5, 0.0], [0.0, 0.0], dt=0.01, steps=100, feedback=gain.feedback()).q[-1] - run.q[-1]
    array([..., ...])
    """

    matrix: Array
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    P: Array
    run: Rollout
    _inputs: Integers = field(repr=False)
    _input_names: tuple[str, ...] = field(repr=False)

    def __repr__(self) -> str:
        *lead, steps, _, _ = self.matrix.shape
        return f"<TimeVaryingGain: {counted(prod(lead), 'run')}, {counted(steps, 'step')}; rows {list_names(self.rows, 8)}>"

    def feedback(self) -> Feedback:
        """Return the feedback about the motions for `ld.rollout`, which is evaluated at each stage of a step.

        Generalized forces and thrusts of the motions are `tau` of that rollout. Setpoints are the states in the middle of each
        step. The gains are those of inputs that are constant in each step (`policy`).

        Raises UsageError if an input is an acceleration.
        """
        self._check_forces()
        gain = np.zeros((*self.matrix.shape[:-2], len(self._input_names), self.matrix.shape[-1]))
        gain[..., self._inputs, :] = self.matrix
        q, v, model = self.run.q, self.run.v, self.run.model
        middle = integrate(model, q[..., :-1, :], 0.5 * difference(model, q[..., :-1, :], q[..., 1:, :]))
        return Feedback(gain, middle, 0.5 * (v[..., :-1, :] + v[..., 1:, :]))

    def policy(self, tau: ArrayLike) -> Callable[[float, Array, Array], Array]:
        """Return the policy tau[k] - K[k] x[k] for `ld.rollout`, whose inputs are constant in each step.

        tau   (…, S, inputs), or (inputs,): inputs of the motions

        Raises UsageError if an input is an acceleration, ShapeError for another number of inputs.
        """
        self._check_forces()
        nominal, (steps, n) = np.asarray(tau, dtype=float), (self.matrix.shape[-3], len(self._input_names))
        if nominal.shape[-1:] != (n,) or (nominal.ndim > 1 and nominal.shape[-2] != steps):
            raise ShapeError(f"tau has the wrong shape: expected (…, {steps}, {n}) or ({n},), got {nominal.shape}")
        nominal = np.broadcast_to(nominal, (*nominal.shape[:-2], steps, n))
        model, dt, reference = self.run.model, float(self.run.t[-1]) / steps, self.run

        def law(t: float, q: Array, v: Array) -> Array:
            k = min(round(t / dt), steps - 1)
            x = np.concatenate([difference(model, reference.q[..., k, :], q), v - reference.v[..., k, :]], axis=-1)
            change = (self.matrix[..., k, :, :] @ x[..., None])[..., 0]
            u = np.array(np.broadcast_to(nominal[..., k, :], (*change.shape[:-1], n)))
            u[..., self._inputs] -= change
            return u
        return law

    @explained
    def write(self, path: str | os.PathLike[str], tau: ArrayLike, *, force: bool = False) -> None:
        """Write a CSV for `gain` and `setpoint: {csv: …}` of a scenario: times, motion, inputs of the rows, and gains row/column.

        A scenario interpolates linearly. Inputs and gains, which are constant in each step, count for the middle of the step.

        tau   (S, inputs) or (inputs,): inputs of the motion; a warning names those that act and are not of the rows

        Raises UsageError for several runs, for an acceleration as input, and if the file exists, unless `force` is true.
        """
        force = checked_flag("write", "force", force)
        self._check_forces()
        if self.matrix.ndim != 3:
            raise UsageError(f"a file of gains has one run: expected a rollout of one run, got {self.matrix.shape[:-3]}")
        run, model, steps = self.run, self.run.model, self.matrix.shape[0]
        nominal = np.broadcast_to(np.asarray(tau, dtype=float), (steps, len(self._input_names)))
        missing = [name for k, name in enumerate(self._input_names) if k not in self._inputs and nominal[:, k].any()]
        nominal = nominal[:, self._inputs]
        nominal, gains = _between_steps(nominal), _between_steps(self.matrix)
        columns = [("t[s]", run.t), *((f"{name}[{unit}]" if unit else name, x) for name, unit, x in motion_columns(
            model, q=run.q, v=run.v))]
        columns += [(name, nominal[:, i]) for i, name in enumerate(self.rows)]
        columns += [(f"{row}/{column}", gains[:, i, j]) for i, row in enumerate(self.rows)
                    for j, column in enumerate(self.columns)]
        with open_output(Path(path), force=force) as file:
            write_table(file, [(cell(title), x) for title, x in columns])
        if missing:
            warn([LiedynWarning("inputs-not-written", f"{Path(path).name} has no {list_names(missing, 6)}, which act on the "
                                "motion and are not rows of the gain: give them in the scenario, too")])

    def _check_forces(self) -> None:
        """Raise UsageError if an input is an acceleration."""
        for name in self.rows:
            if name.startswith("a."):
                raise UsageError(f"{name}: expected forces or thrusts as rows of a feedback, got an acceleration")


def _between_steps(x: Array) -> Array:
    """Return (S + 1, …) values at the ends of steps from those in their middle (S, …), linear between these."""
    slopes = np.diff(x, axis=0) if len(x) > 1 else np.zeros_like(x)
    return np.concatenate([x[:1] - 0.5 * slopes[:1], 0.5 * (x[1:] + x[:-1]), x[-1:] + 0.5 * slopes[-1:]])


def tvlqr(run: Rollout, Q: Weights, R: Weights, *, Q_end: Weights | None = None,
          inputs: str | Sequence[str] = "*") -> TimeVaryingGain:
    """Return the gains of the regulator along the motions of a rollout.

    It minimizes the sum over all steps of x^T Q x + u^T R u, plus x^T Q_end x at the end, for the linear models of the steps
    (`Rollout.linearize`) with inputs u that are constant in each step.

    Parameters
    ----------
    run : Rollout
        With ``every=1``.
    Q, R
        Weights of states and inputs, as of `LinearSystem.lqr`.
    Q_end : optional
        Weights of the state at the end; default: Q.
    inputs : names or patterns, one or several
        Inputs that the regulator drives, such as "tau.*" or "thrust.*".

    Returns
    -------
    TimeVaryingGain

    Raises
    ------
    UsageError, ShapeError
        For weights that do not fit, a pattern that matches nothing, and rollouts without linear models.
    ComputationError
        If a run ended early, or without a finite solution.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> run = ld.rollout(model, [0.3, 0.0], [0.0, 0.0], dt=0.01, steps=100)
    >>> ld.tvlqr(run, {"q.*": 10, "v.*": 1}, 0.1, inputs="tau.elbow").matrix.shape
    (100, 1, 4)
    """
    steps: LinearSteps = run.linearize()
    if not run.complete.all():
        k = int(np.argmin(run.complete.ravel()))
        raise ComputationError(f"tvlqr: run {k} ended early at t = {run.ended_at.ravel()[k]:.6g} s: expected complete runs")
    selected = np.array(choose(steps.inputs, inputs, "input"), dtype=np.int64)
    rows = tuple(steps.inputs[k] for k in selected)
    costs, weights = weight_matrix(R, rows, "R", "input", positive=True), weight_matrix(Q, steps.states, "Q", "state")
    P = weights if Q_end is None else weight_matrix(Q_end, steps.states, "Q_end", "state")
    A, B = steps.A, steps.B[..., selected]
    *lead, count, n, _ = A.shape
    K, values = np.zeros((*lead, count, len(rows), n)), np.empty((*lead, count + 1, n, n))
    P = values[..., count, :, :] = np.broadcast_to(P, (*lead, n, n))
    for k in range(count - 1, -1, -1):
        acts = np.isfinite(A[..., k, 0, 0])[..., None, None]               # False after the end of a shorter run
        A_k, B_k = np.where(acts, A[..., k, :, :], 0.0), np.where(acts, B[..., k, :, :], 0.0)
        by_input = np.swapaxes(B_k, -1, -2) @ P
        K[..., k, :, :] = np.linalg.solve(costs + by_input @ B_k, by_input @ A_k)
        next_P = weights + np.swapaxes(A_k, -1, -2) @ P @ (A_k - B_k @ K[..., k, :, :])
        P = values[..., k, :, :] = np.where(acts, 0.5 * (next_P + np.swapaxes(next_P, -1, -2)), P)
    if not np.isfinite(values).all():
        raise ComputationError("tvlqr: the Riccati recursion has no finite solution: expected shorter motions or other weights")
    return TimeVaryingGain(K, rows, steps.states, values, run, selected, steps.inputs)
