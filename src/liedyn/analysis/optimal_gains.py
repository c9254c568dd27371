"""Gains of linear-quadratic regulators and Kalman filters with the names of a linear system, by Riccati equations (SciPy)."""
from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from liedyn.analysis.modes import Mode, coordinate_shares, eigenvalue_text, main_coordinates, modes, reachable_basis
from liedyn.analysis.transfer_function import zero_order_hold
from liedyn.arrays import Array, ArrayLike, ComplexArray, Integers
from liedyn.errors import ComputationError, LiedynWarning, ShapeError, UsageError, list_names, warn
from liedyn.immutable import Immutable
from liedyn.io.atomic_output import open_output
from liedyn.io.csv_table import cell, write_table
from liedyn.public_calls import explained
from liedyn.simulation.name_binding import select

if TYPE_CHECKING:
    from liedyn.analysis.linear_system import LinearSystem

Weights: TypeAlias = "ArrayLike | Mapping[str, float]"

_APART = 1e11            # ratio of the rates of poles from which on gains may be off by 1e-2 and more
_SMALL_CHANGE = 1e-2     # of the norm of the solution: a larger step of Newton's method is not a refinement
_ROUNDING = 1e-9         # of the maximum entry: smaller asymmetries and negative eigenvalues of weights are rounding


@dataclass(frozen=True, eq=False)
class Gain(Immutable):
    """A gain matrix with names: K of a regulator u = -K x, or L of an observer dx/dt = A x + B u + L (y - C x - D u).

    matrix                      (rows, columns)
    rows, columns               names: inputs and states of a regulator, states and outputs of an observer
    row_units, column_units
    P                           (n, n) solution of the Riccati equation: x^T P x is the cost of a regulator from the state x; the
                                covariance of the error of an observer
    poles                       (n,) eigenvalues of A - B K or A - L C, by decreasing real part [1/s]; with a step, of the
                                discrete system, by decreasing magnitude
    step                        [s] of a discrete gain; None: continuous

    Examples
    --------
    >>> model = ld.load("robots/cart_pole.yaml")
    >>> system = ld.linearize(model, model.neutral(), [0, 0], [0, 0], inputs="tau.cart")
    >>> system.lqr({"q.*": 4.0, "v.*": 1.0}, 0.2)
    <Gain 1 x 4: rows tau.cart; columns q.cart, q.pole, v.cart, v.pole>
    """

    matrix: Array
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    row_units: tuple[str, ...]
    column_units: tuple[str, ...]
    P: Array
    poles: ComplexArray
    step: float | None = None

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.matrix.shape))
        return f"<Gain {shape}: rows {list_names(self.rows, 8)}; columns {list_names(self.columns, 8)}>"

    @property
    def by_name(self) -> dict[str, dict[str, float]]:
        """{row: {column: value}}, as `gain` of a scenario's law `state_feedback` and `Feedback.by_name` read it."""
        return {row: dict(zip(self.columns, map(float, values), strict=True))
                for row, values in zip(self.rows, self.matrix, strict=True)}

    @explained
    def write(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write a CSV with named rows and columns, which `gain` of a scenario reads.

        Raises UsageError if the file exists, unless `force` is true.
        """
        titles = [cell(f"{name}[{unit}]") for name, unit in zip(self.columns, self.column_units, strict=True)]
        rows = [f"{name}[{unit}]" for name, unit in zip(self.rows, self.row_units, strict=True)]
        with open_output(Path(path), force=force) as file:
            write_table(file, [("gain", rows), *zip(titles, self.matrix.T, strict=True)])


def regulator(system: LinearSystem, Q: Weights, R: Weights, step: float | None) -> Gain:
    """Return the gain of `LinearSystem.lqr`."""
    if not system.inputs:
        raise UsageError("lqr: expected a system with inputs, got none")
    A, B, _, units, selected = _characteristic_part(system)
    names = [system.states[k] for k in selected]
    weights = weight_matrix(Q, names, "Q", "state") * units * units[:, None]
    costs = weight_matrix(R, system.inputs, "R", "input", positive=True)
    _check_decay(A, B, names, system, f"lqr: the inputs {list_names(system.inputs, 6)} do not affect")
    _check_decay(A.T, weights, names, system, "lqr: the weights Q do not contain", on_axis=True)
    if step is not None:
        A, B = zero_order_hold(A, B, step)
    K, P, poles = _riccati("lqr", A, B, weights, costs, step)
    return Gain(K / units, system.inputs, tuple(names), system.input_units, tuple(system.state_units[k] for k in selected),
                P / units / units[:, None], poles, step)


def observer(system: LinearSystem, W: Weights, V: Weights, step: float | None) -> Gain:
    """Return the gain of `LinearSystem.lqe`, which is that of the regulator of the transposed system."""
    if not system.outputs:
        raise UsageError("lqe: expected a system with outputs, got none")
    A, B, C, units, selected = _characteristic_part(system)
    names = [system.states[k] for k in selected]
    noise = weight_matrix(W, names, "W", "state") / units / units[:, None]
    errors = weight_matrix(V, system.outputs, "V", "output", positive=True)
    _check_decay(A.T, C.T, names, system, f"lqe: the outputs {list_names(system.outputs, 6)} do not contain")
    _check_decay(A, noise, names, system, "lqe: the noise W does not excite", on_axis=True)
    if step is not None:
        A = zero_order_hold(A, B, step)[0]
    K, P, poles = _riccati("lqe", A.T, C.T, noise, errors, step)
    return Gain(K.T * units[:, None], tuple(names), system.outputs, tuple(system.state_units[k] for k in selected),
                system.output_units, P * units * units[:, None], poles, step)


def _characteristic_part(system: LinearSystem) -> tuple[Array, Array, Array, Array, Integers]:
    """Return A, B, C in characteristic units of the states of a gain, these units, and the indices of the states.

    These are all states, without those of prescribed coordinates if no acceleration is an input: their deviations are zero.
    """
    has_accelerations = any(name.startswith("a.") for name in system.inputs)
    selected = np.arange(len(system.states)) if has_accelerations else np.flatnonzero(system.moving)
    if not len(selected):
        raise UsageError("a gain: expected states that forces affect, got only those of prescribed coordinates")
    A, B, C = system.characteristic_realization
    units = system.scales.unit_scales(system.state_units)[selected]
    return A[np.ix_(selected, selected)], B[selected], C[:, selected], units, selected


def weight_matrix(weights: Weights, names: Sequence[str], argument: str, kind: str, positive: bool = False) -> Array:
    """Return the matrix (n, n) of weights, which are a number, numbers, a matrix, or numbers by name or pattern."""
    n = len(names)
    matrix = np.zeros((n, n))
    if isinstance(weights, Mapping):
        for pattern, value in weights.items():
            if not isinstance(value, Real):
                raise UsageError(f"{argument}: {pattern}: expected a number, got {value!r}")
            places = select([pattern], names, kind)
            matrix[places, places] = value
    else:
        try:
            array = np.asarray(weights, dtype=float)
        except (TypeError, ValueError):
            raise UsageError(f"{argument}: expected numbers, or numbers by name such as {{{names[0]!r}: 10}}, "
                             f"got {weights!r}") from None
        if array.shape not in ((), (n,), (n, n)):
            raise ShapeError(f"{argument} has the wrong shape: expected (), ({n},) or ({n}, {n}) for {list_names(names, 6)}, "
                             f"got {array.shape}")
        matrix = array if array.ndim == 2 else np.diag(np.broadcast_to(array, n))
    size = np.abs(matrix).max(initial=0.0)
    if not np.isfinite(size):
        raise UsageError(f"{argument}: expected finite numbers, got {matrix[~np.isfinite(matrix)][0]}")
    diagonal, bound = np.diag(matrix), "> 0" if positive else ">= 0"
    bad = diagonal <= 0.0 if positive else diagonal < 0.0
    if bad.any():
        k = int(np.argmax(bad))
        hint = f" (each {kind} needs a weight; select the {kind}s to use)" if positive and isinstance(weights, Mapping) else ""
        raise UsageError(f"{argument}: {names[k]}: expected a number {bound}, got {diagonal[k]:g}{hint}")
    if np.abs(matrix - matrix.T).max(initial=0.0) > _ROUNDING * size:
        raise UsageError(f"{argument}: expected a symmetric matrix, got one that differs from its transpose")
    lowest = float(np.linalg.eigvalsh(matrix).min(initial=np.inf))
    if lowest < -_ROUNDING * size or (positive and lowest <= 0.0):
        raise UsageError(f"{argument}: expected a matrix with eigenvalues {bound}, got {lowest:g}")
    return matrix


def _check_decay(A: Array, B: Array, names: Sequence[str], system: LinearSystem, problem: str, on_axis: bool = False) -> None:
    """Raise ComputationError if B does not reach a mode of A that does not decay; with `on_axis`, one on the imaginary axis."""
    for mode, shares in _unreached_modes(A, B, [name.partition(".")[2] for name in names], 1.0 / system.scales.time):
        if mode.chains if on_axis else mode.stability != "stable":
            expected = "a positive number for one of its states" if on_axis else "a system in which it decays or is affected"
            raise ComputationError(f"{problem} the mode {eigenvalue_text(mode)} [1/s] of {main_coordinates(shares)}, which is "
                                   f"{mode.stability}: expected {expected}")


def _unreached_modes(A: Array, B: Array, coordinates: Sequence[str], rate: float) -> Iterator[tuple[Mode, dict[str, float]]]:
    """Yield the modes of A that the columns of B do not reach, with the shares of coordinates."""
    basis, balanced, _ = reachable_basis(A, B, rate)
    rest = np.linalg.svd(basis)[0][:, basis.shape[1]:]
    A_rest = rest.T @ balanced @ rest
    for mode in modes(A_rest, [str(k) for k in range(len(A_rest))], rate, rotated=True):
        vector = np.linalg.svd(A_rest.T - mode.eigenvalue * np.eye(len(A_rest)))[2][-1].conj()
        yield mode, coordinate_shares(np.abs(rest @ vector)**2, coordinates)


def _riccati(function: str, A: Array, B: Array, Q: Array, R: Array, step: float | None) -> tuple[Array, Array, ComplexArray]:
    """Return K, the solution P of the Riccati equation, and the eigenvalues of A - B K."""
    from scipy.linalg import solve_continuous_are, solve_discrete_are
    try:
        if step is None:
            P = solve_continuous_are(A, B, Q, R)
            P += _refinement(A, B, Q, R, P)
            K = np.linalg.solve(R, B.T @ P)
        else:
            P = solve_discrete_are(A, B, Q, R)
            K = np.linalg.solve(R + B.T @ P @ B, B.T @ P @ A)
    except (np.linalg.LinAlgError, ValueError) as error:         # SciPy raises ValueError for results that are not finite
        raise ComputationError(f"{function}: the Riccati equation has no accurate solution: {error}") from error
    poles = np.linalg.eigvals(A - B @ K).astype(complex)
    decay = -poles.real if step is None else 1.0 - np.abs(poles)
    if not (decay > 0.0).all():
        raise ComputationError(f"{function}: the Riccati equation has no accurate solution: expected poles that decay, got "
                               f"{poles[np.argmin(decay)]:.6g}")
    if decay.max() > _APART * decay.min():
        rates = f"{decay.min():.2g} to {decay.max():.2g} 1/{'s' if step is None else 'step'}"
        warn([LiedynWarning("gain-inaccurate", f"{function}: the gain is not accurate: poles decay at rates from {rates}, which "
                            "are too far apart for the Riccati equation: use less damping, or lock the joint that hardly moves")])
    by_decay: ComplexArray = poles[np.argsort(decay, kind="stable")]
    return K, P, by_decay


def _refinement(A: Array, B: Array, Q: Array, R: Array, P: Array) -> Array:
    """Return the change of the solution of the Riccati equation by a step of Newton's method (Kleinman, IEEE TAC, 1968).

    The residual is computed with more digits where the processor has them. Zero where the step would not be a refinement.
    """
    from scipy.linalg import solve_continuous_lyapunov

    a, b, q, p, k = (x.astype(np.longdouble) for x in (A, B, Q, P, np.linalg.solve(R, B.T)))
    residual = a.T @ p + p @ a - p @ (b @ k) @ p + q
    change = solve_continuous_lyapunov((A - B @ np.linalg.solve(R, B.T @ P)).T, -residual.astype(float))
    symmetric: Array = 0.5 * (change + change.T)
    return symmetric if np.linalg.norm(change) < _SMALL_CHANGE * np.linalg.norm(P) else np.zeros_like(P)
