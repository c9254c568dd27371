"""Responses of linear systems: frequency response, minimal part, transmission zeros, exact discretization.

Zeros follow Emami-Naeini and Van Dooren, Computation of zeros of linear multivariable systems, Automatica 18 (1982).
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from liedyn.analysis.modes import Mode, balance, expand_modes, main_coordinates, modes, reachable_basis
from liedyn.arrays import Array, ArrayLike, ComplexArray, Mask
from liedyn.errors import ComputationError, ShapeError, UsageError

if TYPE_CHECKING:
    from liedyn.analysis.linear_system import LinearSystem

Realization: TypeAlias = tuple[Array, Array, Array]             # A, B, C

_RANK = 1e-10            # of the norm: singular values of matrices of zeros below this are rounding
_AT_POLE = 1e-9          # of the frequency: a distance from a pole on the imaginary axis below this is rounding
_BLOCK = 1 << 22         # numbers of the matrices that are solved together


def frequency_response(system: LinearSystem, w: ArrayLike) -> ComplexArray:
    """Return C (i w - A)^-1 B + D at the frequencies w [rad/s]; see `LinearSystem.frequency_response`."""
    frequencies = _frequencies(w)
    if frequencies.ndim > 1:
        raise ShapeError(f"w has the wrong shape: expected a number or one axis, got {frequencies.shape}")
    if not np.isfinite(frequencies).all():
        raise UsageError(f"w: expected finite frequencies [rad/s], got {frequencies[~np.isfinite(frequencies)][0]}")
    A, B, C = realization = system.characteristic_realization
    flat = frequencies.reshape(-1)
    out = np.empty((len(flat), *system.D.shape), dtype=complex)
    at_pole = _is_at_pole(flat, _axis_frequencies(system.pole_modes))
    length = max(1, _BLOCK // max(1, len(A))**2)
    regular = np.flatnonzero(~at_pole)
    for first in range(0, len(regular), length):
        rows = regular[first:first + length]
        out[rows] = _solve(A, B, C, flat[rows]) + system.D
    if at_pole.any():
        A, B, C = _minimal_part(*realization, 1.0 / system.scales.time)[0]
        axis = _axis_frequencies(modes(A, [""] * len(A), 1.0 / system.scales.time, rotated=True))
        for row in np.flatnonzero(at_pole):
            if _is_at_pole(flat[row:row + 1], axis).any():
                raise _pole_error(system, float(flat[row]))
            out[row] = _solve(A, B, C, flat[row:row + 1])[0] + system.D
    bad = ~np.isfinite(out).all(axis=(1, 2))
    if bad.any():
        raise _pole_error(system, float(flat[np.argmax(bad)]))
    return out.reshape(*frequencies.shape, *system.D.shape)


def _frequencies(w: ArrayLike) -> Array:
    """Return frequencies as real numbers. Raise UsageError for others."""
    try:
        frequencies = np.asarray(w)
    except ValueError:                                         # ragged lists
        frequencies = np.array(None)
    if frequencies.size and frequencies.dtype.kind not in "fiu":
        raise UsageError(f"w: expected real frequencies [rad/s], got {w!r}")
    return frequencies.astype(float)


def _axis_frequencies(all_modes: Sequence[Mode]) -> Array:
    """Return the frequencies of the modes on the imaginary axis."""
    return np.array([abs(mode.eigenvalue.imag) for mode in all_modes if mode.chains])


def _is_at_pole(w: Array, axis: Array) -> Mask:
    """Return whether each frequency is that of a mode on the imaginary axis."""
    return np.asarray((np.abs(np.abs(w)[:, None] - axis) <= _AT_POLE * axis).any(axis=1))


def _solve(A: Array, B: Array, C: Array, w: Array) -> ComplexArray:
    """Return C (i w - A)^-1 B for each frequency. Entries are infinite or NaN where a frequency is too close to a pole."""
    with np.errstate(all="ignore"):
        matrices = 1j * w[:, None, None] * np.eye(len(A)) - A
        try:
            response: ComplexArray = C @ np.linalg.solve(matrices, np.broadcast_to(B, (len(w), *B.shape)).astype(complex))
        except np.linalg.LinAlgError:
            response = np.full((len(w), len(C), B.shape[1]), np.nan, dtype=complex)
    return response


def _pole_error(system: LinearSystem, w: float) -> ComputationError:
    """Return the error for a frequency at a pole. It names the coordinates of the mode."""
    nearest = min((mode for mode in system.pole_modes if mode.chains), default=None,
                  key=lambda mode: abs(abs(mode.eigenvalue.imag) - abs(w)))
    names = "" if nearest is None else f" of {main_coordinates(nearest.participation)}"
    return ComputationError(f"the frequency response is infinite at w = {w:.9g} rad/s: expected frequencies that are not poles, "
                            f"got that of an undamped mode{names}")


_PER_DECADE = 60         # frequencies of a plot
_PEAK = np.logspace(-4, -1, 25)     # of the frequency of a pole or zero: distances of further frequencies from it


def plot_frequencies(system: LinearSystem) -> Array:
    """Return frequencies [rad/s] for a plot: one decade beyond the poles and zeros, denser about them, none at a pole."""
    corners = np.abs(np.concatenate([system.poles, system.zeros]))
    corners = corners[corners > 0.0] if corners.any() else np.array([1.0 / system.scales.time])
    first, last = np.floor(np.log10(corners.min())) - 1, np.ceil(np.log10(corners.max())) + 1
    grid = np.logspace(first, last, int(_PER_DECADE * (last - first)) + 1)
    w = np.unique(np.concatenate([grid, *(corners[:, None] * (1.0 + sign * _PEAK) for sign in (1, -1))], axis=None))
    axis = np.array([mode.eigenvalue.imag for mode in system.pole_modes if mode.chains])
    regular: Array = w[(np.abs(w[:, None] - axis) > 1e-5 * axis).all(axis=1)]
    return regular


# Minimal part and zeros -------------------------------------------------------------------------------------------------

def _minimal_part(A: Array, B: Array, C: Array, rate: float) -> tuple[Realization, ComplexArray]:
    """Return the part that the inputs reach and the outputs distinguish, and the eigenvalues of the rest."""
    (A, B, C), unreached = _reachable_part(A, B, C, rate)
    (A, C, B), unseen = _reachable_part(A.T, C.T, B.T, rate)
    return (A.T, B.T, C.T), np.concatenate([unreached, unseen])


def _reachable_part(A: Array, B: Array, C: Array, rate: float) -> tuple[Realization, ComplexArray]:
    basis, A, scale = reachable_basis(A, B, rate)
    rest = np.linalg.svd(basis)[0][:, basis.shape[1]:]
    unreached = rest.T @ A @ rest
    return ((basis.T @ A @ basis, basis.T @ (B / scale[:, None]), (C * scale) @ basis),
            expand_modes(modes(unreached, [""] * len(unreached), rate, rotated=True)))


def transmission_zeros(system: LinearSystem) -> ComplexArray:
    """Return the transmission zeros; see `LinearSystem.zeros`.

    They are the invariant zeros without the eigenvalues that the inputs do not reach or the outputs do not distinguish. Removing
    these first, as is done if the transfer matrix is not invertible, perturbs zeros where a part is hardly reached.
    """
    rate, realization = 1.0 / system.scales.time, system.characteristic_realization
    zeros, rank = _invariant_zeros(*realization, system.D, rate)
    minimal, hidden = _minimal_part(*realization, rate)
    if not rank == len(system.inputs) == len(system.outputs):
        return _invariant_zeros(*minimal, system.D, rate)[0]
    for value in hidden:
        zeros = np.delete(zeros, np.argmin(np.abs(zeros - value)))
    return zeros


def _invariant_zeros(A: Array, B: Array, C: Array, D: Array, rate: float) -> tuple[ComplexArray, int]:
    """Return the finite zeros of the matrix [A - s, B; C, D], and the rank of the transfer matrix."""
    A, scale = balance(A, rate)
    A, B, C = A / rate, B / scale[:, None] / rate, C * scale
    columns = np.linalg.norm(np.vstack([B, D]), axis=0)
    B, D = (x[:, columns > 0.0] / columns[columns > 0.0] for x in (B, D))
    rows = np.linalg.norm(np.hstack([C, D]), axis=1)
    C, D = (x[rows > 0.0] / rows[rows > 0.0, None] for x in (C, D))
    if not (len(A) and B.shape[1] and len(C)):
        return np.zeros(0, dtype=complex), 0
    small = _RANK * max(1.0, float(np.linalg.norm(A, 2)))
    A, B, C, D = _without_infinite_zeros(A, B, C, D, small)
    A, C, B, D = (x.T for x in _without_infinite_zeros(A.T, C.T, B.T, D.T, small))
    zeros = A - B @ np.linalg.solve(D, C) if len(D) else A
    return expand_modes(modes(zeros, [""] * len(zeros), rotated=True)) * rate, len(D)


def _without_infinite_zeros(A: Array, B: Array, C: Array, D: Array, small: float) -> tuple[Array, Array, Array, Array]:
    """Return a system with the same finite zeros, whose D has full row rank.

    Each pass separates the outputs into those that inputs affect directly, and those of states alone. At a zero, the latter
    states are zero, and their rates are outputs of the next system.
    """
    while True:
        rotation, s, _ = np.linalg.svd(D)
        direct = int((s > small).sum())
        C, D = rotation.T @ C, (rotation.T @ D)[:direct]
        _, s, states = np.linalg.svd(C[direct:])
        known = int((s > small).sum())
        if not known:
            return A, B, C[:direct], D
        change = np.vstack([states[known:], states[:known]])         # the last states are zero
        A, B, C = change @ A @ change.T, change @ B, C[:direct] @ change.T
        n = len(A) - known
        A, B, C, D = A[:n, :n], B[:n], np.vstack([C[:, :n], A[n:, :n]]), np.vstack([D, B[n:]])


def seconds(x: Any, requirement: str, minimum: float = np.nextafter(0.0, 1.0)) -> float:
    """Return a number of seconds. Raise UsageError with the requirement for other values and numbers below the minimum."""
    try:
        number = np.nan if isinstance(x, str | bytes) else float(x)
    except (TypeError, ValueError):
        number = np.nan
    if not minimum <= number < np.inf:
        raise UsageError(f"{requirement}, got {x!r}" if np.isnan(number) else f"{requirement}, got {number:g}")
    return number


def zero_order_hold(A: Array, B: Array, h: float) -> tuple[Array, Array]:
    """Return Ad, Bd of x[k+1] = Ad x[k] + Bd u[k] for steps of h [s] with constant u."""
    from scipy.linalg import expm

    h = seconds(h, "the step of the discretization must be a positive number of seconds")
    n, m = B.shape
    block = np.zeros((n + m, n + m))
    with np.errstate(over="ignore", invalid="ignore"):
        block[:n, :n], block[:n, n:] = A * h, B * h
        transition = expm(block) if np.isfinite(block).all() else np.full_like(block, np.nan)
    if not np.isfinite(transition).all():
        raise ComputationError(f"the discretization overflows: an unstable mode grows without bounds within {h:g} s")
    return transition[:n, :n], transition[:n, n:]
