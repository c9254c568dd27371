"""Exponentials and their Jacobians in forty digits, by their power series alone: no closed form, so no cancellation."""
from functools import cache

import numpy as np
from mpmath import mp, mpf

mp.dps = 40

# Where formulas change or lose digits: zero, the switch of series at 1, half a turn, a full turn.
ANGLES = (0.0, 1e-300, 1e-160, 1e-12, 1e-8, 1e-4, 0.01, 0.5, 0.99, 1 - 1e-9, 1.0, 1 + 1e-9, 1.01, 1.5, 2.0, 3.0, np.pi - 1e-4,
          np.pi - 1e-8)
BEYOND_HALF_A_TURN = (np.pi, np.pi + 1e-8, 3.2, 4.0, 5.0, 6.0)


def exact(X) -> np.ndarray:
    """Return floats as numbers of forty digits."""
    return np.vectorize(lambda x: mpf(float(x)), otypes=[object])(X)


def series(X: np.ndarray, first: int) -> np.ndarray:
    """Return sum X^k / (k + first)! of a square matrix: the exponential for first = 0, (e^X - 1)/X for first = 1."""
    return _series(np.asarray(X, dtype=float).tobytes(), len(X), first)


@cache
def _series(data: bytes, n: int, first: int) -> np.ndarray:
    X = exact(np.frombuffer(data).reshape(n, n))
    term, k = exact(np.eye(n)) / mp.factorial(first), 0
    total = term
    while k < 3 or abs(term).max() > mpf(10)**-36:
        k += 1
        term = term.dot(X) / (k + first)
        total = total + term
    return total


def solve(X: np.ndarray, y) -> np.ndarray:
    """Return X^-1 y with forty digits, as a matrix."""
    return np.array(mp.lu_solve(mp.matrix(X.tolist()), mp.matrix(exact(y).tolist())).tolist(), dtype=object)


def error(value, reference) -> float:
    """Return the maximum difference of floats from exact numbers."""
    return float(abs(exact(np.ravel(value)) - np.ravel(reference)).max())
