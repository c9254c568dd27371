"""Numbers with their derivatives along K directions, through the functions that outputs are made of (forward accumulation:
Griewank and Walther, Evaluating Derivatives, 2008, ch. 3)."""
from __future__ import annotations

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from liedyn.errors import ComputationError


class NotExact(ComputationError):
    """No exact derivative is known of this; the text says of what."""


class WithRates(NDArrayOperatorsMixin):
    """x, of any shape, and dx (K, *shape). NumPy's functions of it are of the same kind; comparisons are those of x."""

    def __init__(self, x, dx):
        self.x, self.dx = np.asarray(x, dtype=float), np.asarray(dx, dtype=float)

    def __array_ufunc__(self, ufunc, method, *operands, **options):
        if method != "__call__" or options:
            return NotImplemented
        values = [one.x if isinstance(one, WithRates) else np.asarray(one, dtype=float) for one in operands]
        found = ufunc(*values)
        if found.dtype == bool:
            return found
        if ufunc not in _RULES:
            raise NotExact(f"{ufunc.__name__}(…)")
        dx = 0.0
        with np.errstate(all="ignore"):
            slopes = [(one.dx, slope) for one, slope in zip(operands, _RULES[ufunc](*values), strict=True)
                      if isinstance(one, WithRates)]
            for rate, slope in slopes:
                dx = dx + np.where(rate == 0.0, 0.0, slope * rate)          # a constant needs no slope: sqrt has none at 0
        return WithRates(found, np.broadcast_to(dx, (len(dx), *np.shape(found))))

    def __getitem__(self, key):
        return WithRates(self.x[key], self.dx[(slice(None), *(key if isinstance(key, tuple) else (key,)))])

    def __len__(self) -> int:
        return len(self.x)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        if self.dx.any():
            raise NotExact("at(…) of a time that varies")
        return self.x

    def min(self, axis: int):
        return self._picked(self.x.argmin(axis), axis)

    def max(self, axis: int):
        return self._picked(self.x.argmax(axis), axis)

    def sum(self, axis: int):
        return WithRates(self.x.sum(axis), self.dx.sum(axis + 1))

    def _picked(self, k: np.ndarray, axis: int):
        k = np.expand_dims(k, axis)
        return WithRates(np.take_along_axis(self.x, k, axis).squeeze(axis),
                         np.take_along_axis(self.dx, np.broadcast_to(k, (len(self.dx), *k.shape)), axis + 1).squeeze(axis + 1))


def _of_power(a, b):
    return b * a**(b - 1.0), np.where(a > 0.0, a**b * np.log(np.where(a > 0.0, a, 1.0)), np.nan)


# the slopes of a function by its operands
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
