"""Exponentials and their Jacobians in fifty digits, by their power series alone: no closed form, so no cancellation."""
import numpy as np
from mpmath import mp, mpf

mp.dps = 50

# Where formulas change or lose digits: zero, the switch of series at 1, half a turn, a full turn.
ANGLES = (0.0, 1e-300, 1e-160, 1e-12, 1e-8, 1e-4, 0.01, 0.5, 0.99, 1 - 1e-9, 1.0, 1 + 1e-9, 1.01, 1.5, 2.0, 3.0, 3.1, np.pi - 1e-4,
          np.pi - 1e-8)
BEYOND_HALF_A_TURN = (np.pi, np.pi + 1e-8, 3.2, 4.0, 5.0, 6.0)


def matrix(X):
    """An mpmath matrix of floats."""
    return mp.matrix(np.asarray(X, dtype=float).tolist())


def series(X, first: int):
    """sum X^k / (k + first)!: the exponential for first = 0, (e^X - 1)/X for first = 1."""
    X = X if isinstance(X, mp.matrix) else matrix(X)
    term = mp.eye(X.rows) / mp.factorial(first)
    total, k = term, 0
    while mp.mnorm(term, 1) > mpf(10)**-45 * mp.mnorm(total, 1) or k < 3:
        k += 1
        term = term * X / (k + first)
        total = total + term
    return total


def error(value, exact) -> float:
    """Largest difference of floats from mpmath numbers."""
    pairs = zip(np.ravel(value), exact, strict=True)
    return max(float(abs(mpf(float(x)) - e)) for x, e in pairs)
