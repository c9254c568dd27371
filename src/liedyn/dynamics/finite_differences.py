"""Derivatives by central differences, extrapolated to a step of zero (Richardson), and estimates of their error.

Constraints, sweeps and `--verify` use them. `integrators.rhs_jacobian` and `integrators.rosenbrock` use one-sided differences
instead, because a neighbouring state may not be valid there.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from liedyn.arrays import Array, Mask
from liedyn.dynamics.dynamics import mass_matrix
from liedyn.dynamics.scales import model_scales
from liedyn.errors import ComputationError, summarized
from liedyn.joints.joint_model import tree_views
from liedyn.model.model import Model

MAX_EXCESS = 1e-6             # of relative differences; those of correct derivatives are about 1e-10
_SAFETY_FACTOR = 10.0         # of estimated errors: the smallest of many estimates is often too small
_LEVELS = 7
_ROUNDING = 2e-16
_ILL_CONDITIONED = 1e6        # condition from which on the peaks of an inverse are narrower than the usual steps
_NOISE_STEP = 1e-8            # of the first step: at this distance, f is a straight line except for rounding


@summarized
class DerivativeComparison(NamedTuple):
    """Derivatives compared with finite differences, relative to the size of their kind.

    off      maximum difference
    doubt    maximum error of the finite differences: usually 1e-12, more if M is nearly singular
    excess   maximum difference beyond that error
    """

    off: float
    doubt: float
    excess: float

    @property
    def sound(self) -> bool:
        """Whether the derivatives agree with the finite differences within the error of these."""
        return self.excess <= MAX_EXCESS

    def __str__(self) -> str:
        return f"{self.off:.1e}" + (f" (finite differences are accurate to {self.doubt:.0e} "
                                    "only)" if self.doubt > MAX_EXCESS else "")


def compare(computed: Array, reference: Array, doubt: Array, size: float | Array) -> DerivativeComparison:
    """Compare derivatives with finite differences `reference`, whose error is at most `doubt`.

    size: that of the entries, a number or an array. NaN is never sound.
    """
    difference, doubt = np.abs(computed - reference) / size, _SAFETY_FACTOR * doubt / size
    return DerivativeComparison(*(float(x.max(initial=0.0)) for x in (difference, doubt, np.maximum(difference - doubt, 0.0))))


def numerical_derivative(f: Callable[[Array], Array], h: float, levels: int = 1) -> Array:
    """Return f'(0) by central differences of the steps h, h/2, …, extrapolated to zero.

    The error decreases as h to the power 2 levels. f takes steps (2 levels,) at once and returns values (2 levels, …).
    """
    steps = h / 2.0**np.arange(levels)
    values = np.asarray(f(np.concatenate([steps, -steps])))
    row: list[Array] = []
    for s, up, down in zip(steps, values[:levels], values[levels:], strict=True):
        row = _neville(row, (up - down) / (2.0 * s))
    return row[-1]


def extrapolated_derivative(f: Callable[[float], Array], h: float, levels: int = _LEVELS,
                            center_value: Array | None = None) -> tuple[Array, Array]:
    """Return f'(0) by central differences of steps h, h/2, …, extrapolated to zero, and its estimated error.

    For each entry, the value with the smallest estimated error is taken (Ridders 1982). The estimate includes the rounding of f,
    because differences of a short step may agree by chance.

    center_value: f(0), if f may have a peak narrower than the steps: means of f(s) and f(-s) then converge to another value.
    """
    best, error, noise = np.array(0.0), np.array(np.inf), np.array(0.0)
    odd: list[Array] = []
    even: list[Array] = []
    for level in range(levels):
        s = h / 2**level
        up, down = f(s), f(-s)
        if level in (0, levels - 1):
            noise = np.maximum(noise, _noise(f, s, up, _NOISE_STEP * h))
        rounding = np.maximum(_ROUNDING * np.maximum(np.abs(up), np.abs(down)), noise).max(axis=-1, keepdims=True) / s
        previous_row, odd, even = odd, _neville(odd, (up - down) / (2 * s)), _neville(even, (up + down) / 2)
        for j, previous in enumerate(previous_row):
            estimate = np.maximum(np.abs(odd[j + 1] - odd[j]), np.abs(odd[j + 1] - previous)) + rounding
            if center_value is not None:
                estimate = estimate + np.abs(even[j + 1] - center_value) / s
            best, error = np.where(estimate < error, odd[j + 1], best), np.minimum(estimate, error)
    return best, error


def _neville(previous_row: Sequence[Array], first: Array) -> list[Array]:
    """Return the next row of a table that extrapolates to a step of zero in even powers of a step halved from row to row."""
    row = [first]
    for j, previous in enumerate(previous_row):
        row.append(row[j] + (row[j] - previous) / (4.0**(j + 1) - 1))
    return row


def _noise(f: Callable[[float], Array], s: float, last: Array, d: float) -> Array:
    """Return the rounding of f near s, where f is `last`. An ill-conditioned matrix that f inverts increases it."""
    noise: Array = np.abs(last - 2 * f(s - d) + f(s - 2 * d)) / 2
    return noise


def best_derivative(f: Callable[[float], Array], steps: Sequence[float], condition: float = 1.0) -> tuple[Array, Array]:
    """Return f'(0) and its estimated error by `extrapolated_derivative` from several first steps.

    A step that leads to a body without inertia is skipped. Raises ComputationError if no step leads to a finite value.

    condition: of the matrix that f inverts. If it is large, f has peaks whose width is about its inverse square root.
    """
    best, error, center_value = np.array(0.0), np.array(np.inf), None
    failure: ComputationError | None = None
    if condition > _ILL_CONDITIONED:
        narrow = (_ILL_CONDITIONED / condition) ** 0.5
        steps, center_value = [*steps, *(narrow * h for h in steps)], f(0.0)
    for h in steps:
        try:
            derivative, estimate = extrapolated_derivative(f, h, center_value=center_value)
        except ComputationError as problem:
            failure = problem
            continue
        best, error = np.where(estimate < error, derivative, best), np.minimum(estimate, error)
    if not np.all(np.isfinite(error)):
        raise failure or ComputationError("finite differences cannot be computed here: they are not finite")
    return best, error


def rounding_error(condition: float | Array, derivative: Array) -> Array:
    """Return a tenth of the rounding error (…, 1, 1) of a derivative (…, rows, columns): `compare` allows ten times the error.

    condition: of the matrices that the derivative inverts, a number or (…, 1, 1).
    """
    error: Array = 0.1 * _ROUNDING * condition * np.abs(derivative).max(axis=(-2, -1), keepdims=True, initial=0.0)
    return error


def friction_steps(model: Model, coordinate: str) -> tuple[float, ...]:
    """Return a step of the velocity [rad/s | m/s] over which Coulomb friction of a coordinate changes, if it has friction."""
    tree, k = tree_views.py_func(model.index, model.constants), model.v_names.index(coordinate)
    return (2.0 * float(tree.friction_speed[k]),) if tree.friction[k] else ()


def mass_matrix_condition(model: Model, q: Array, free: Mask) -> Array:
    """Return the condition numbers (N,) of the inverted mass matrices, in radians and characteristic lengths.

    They belong to the coordinates `free`, whose force is an input.
    """
    if not free.any():
        return np.ones(len(q))
    reach = model_scales(model).unit_scales(model.v_units)[free]
    condition: Array = np.linalg.cond(mass_matrix(model, q)[:, free][:, :, free] * reach[:, None] * reach)
    return condition
