"""Derivatives by central differences, extrapolated to a step of zero (Richardson), and how accurate they are: constraints, sweeps
and `--verify` use them.

One-sided differences are used where a neighbouring state may not be valid: `integrators.rhs_jacobian`, `integrators.rosenbrock`.
"""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from liedyn.dynamics.dynamics import mass_matrix
from liedyn.dynamics.scales import model_scales
from liedyn.errors import ComputationError
from liedyn.joints.joint_model import tree_views
from liedyn.model.model import Model

MAX_EXCESS = 1e-6             # of relative differences; those of sound derivatives are about 1e-10
_SAFETY_FACTOR = 10.0         # differences may be off by so many times what they seem to be: the surest of many is often lucky
_LEVELS = 7
_ROUNDING = 2e-16
_ILL_CONDITIONED = 1e6        # a condition beyond which the peaks of an inverse are narrower than the usual steps
_NOISE_STEP = 1e-8            # of the first step: so close together, f is a straight line but for its rounding


class DerivativeComparison(NamedTuple):
    """Derivatives against differences, relative to the size of their kind.

    off      largest difference
    doubt    how far the differences may be off themselves: 1e-12 as a rule, more where M is nearly singular
    excess   largest difference beyond that doubt
    """

    off: float
    doubt: float
    excess: float

    @property
    def sound(self) -> bool:
        return self.excess <= MAX_EXCESS

    def __str__(self) -> str:
        return f"{self.off:.1e}" + (f" (differences are good to {self.doubt:.0e} only)" if self.doubt > MAX_EXCESS else "")


def compare(computed: np.ndarray, reference: np.ndarray, doubt: np.ndarray, size) -> DerivativeComparison:
    """size: a number or an array, that of the entries. Not-a-number is never sound."""
    off, doubt = np.abs(computed - reference) / size, _SAFETY_FACTOR * doubt / size
    return DerivativeComparison(*(float(x.max(initial=0.0)) for x in (off, doubt, np.maximum(off - doubt, 0.0))))


def numerical_derivative(f, h: float, levels: int = 1) -> np.ndarray:
    """f'(0) by central differences of the steps h, h/2, …, extrapolated to zero: the error falls as h to the power 2 levels.

    f takes steps (2 levels,) at once and returns values (2 levels, …)."""
    steps = h / 2.0**np.arange(levels)
    values = np.asarray(f(np.concatenate([steps, -steps])))
    row: list[np.ndarray] = []
    for s, up, down in zip(steps, values[:levels], values[levels:], strict=True):
        row = _neville(row, (up - down) / (2.0 * s))
    return row[-1]


def extrapolated_derivative(f, h: float, levels: int = _LEVELS, center_value=None) -> tuple[np.ndarray, np.ndarray]:
    """f'(0) by central differences of steps h, h/2, …, extrapolated: of each entry the value that is surest, and how far it may
    be off (Ridders 1982, with the rounding of f: differences of a short step may agree by chance).

    middle: f(0), where f may have a peak narrower than the steps: means of f(s) and f(-s) then lead elsewhere."""
    best, error, odd, even, noise = 0.0, np.inf, [], [], 0.0
    for level in range(levels):
        s = h / 2**level
        up, down = f(s), f(-s)
        if level in (0, levels - 1):
            noise = np.maximum(noise, _noise(f, s, up, _NOISE_STEP * h))
        rounding = np.maximum(_ROUNDING * np.maximum(np.abs(up), np.abs(down)), noise).max(axis=-1, keepdims=True) / s
        before, odd, even = odd, _neville(odd, (up - down) / (2 * s)), _neville(even, (up + down) / 2)
        for j, previous in enumerate(before):
            doubt = np.maximum(np.abs(odd[j + 1] - odd[j]), np.abs(odd[j + 1] - previous)) + rounding
            if center_value is not None:
                doubt = doubt + np.abs(even[j + 1] - center_value) / s
            best, error = np.where(doubt < error, odd[j + 1], best), np.minimum(doubt, error)
    return best, error


def _neville(before, first) -> list:
    """The next row of a table that extrapolates to a step of zero, in even powers of a step that is halved from row to row."""
    row = [first]
    for j, previous in enumerate(before):
        row.append(row[j] + (row[j] - previous) / (4.0**(j + 1) - 1))
    return row


def _noise(f, s: float, last: np.ndarray, d: float) -> np.ndarray:
    """The rounding of f near s, where it is `last`: the condition of a matrix that it inverts may blow it up."""
    return np.abs(last - 2 * f(s - d) + f(s - 2 * d)) / 2


def best_derivative(f, steps, condition: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """`slope` from several first steps; one that leads to a body without inertia does not count. Raises ComputationError.

    condition: of the matrix that f inverts. Where it is large, f has peaks about as wide as its root is large."""
    best, error, failure, center_value = 0.0, np.inf, None, None
    if condition > _ILL_CONDITIONED:
        narrow = (_ILL_CONDITIONED / condition) ** 0.5
        steps, center_value = [*steps, *(narrow * h for h in steps)], f(0.0)
    for h in steps:
        try:
            found, doubt = extrapolated_derivative(f, h, center_value=center_value)
        except ComputationError as problem:
            failure = problem
            continue
        best, error = np.where(doubt < error, found, best), np.minimum(doubt, error)
    if not np.all(np.isfinite(error)):
        raise failure or ComputationError("finite differences cannot be computed here: they are not finite")
    return best, error


def rounding_error(condition, derivative: np.ndarray) -> np.ndarray:
    """What a derivative (…, rows, columns) owes to rounding, however it is computed, where it inverts matrices (…, 1, 1) of
    this condition; a tenth of it, since `compare` allows ten times the doubt."""
    return 0.1 * _ROUNDING * condition * np.abs(derivative).max(axis=(-2, -1), keepdims=True, initial=0.0)


def has_friction(model: Model, coordinate: str) -> bool:
    """Whether Coulomb friction acts on a coordinate, which bends within `FRICTION_SPEED`."""
    friction = tree_views.py_func(model.index, model.constants).friction
    return bool(friction[model.v_names.index(coordinate)])


def mass_matrix_condition(model: Model, q, free) -> np.ndarray:
    """(N,) condition of the mass matrix of the coordinates whose force is given, which is what gets inverted: in radians and
    characteristic lengths."""
    if not free.any():
        return np.ones(len(q))
    reach = model_scales(model).unit_scales(model.v_units)[free]
    return np.linalg.cond(mass_matrix(model, q)[:, free][:, :, free] * reach[:, None] * reach)
