"""Interpolation of tables by piecewise cubic polynomials: straight lines, a monotone interpolant (PCHIP) or a spline."""
from __future__ import annotations

import numpy as np

from liedyn.arrays import Array

INTERPOLATIONS = ("linear", "monotone", "cubic")
MIN_POINTS = {"linear": 2, "monotone": 2, "cubic": 4}


def cubic_pieces(x: Array, y: Array, interpolation: str, *, period: float = 0.0, lines: bool = True) -> tuple[Array, Array]:
    """Return the starts (p,) of the pieces of a table and their ascending coefficients (p, 4, …) in x - start.

    x              (n,) increasing; of a periodic table one period, with its end
    y              (n, …) values at them
    interpolation  one of INTERPOLATIONS
    period         0: not periodic
    lines          whether the straight lines before and beyond the table are its first and last piece
    """
    from scipy.interpolate import CubicSpline, PchipInterpolator  # only for tables: its import takes 0.4 s

    n, shape = len(x) - 1, (-1, *(1,) * (y.ndim - 1))
    if interpolation == "linear":
        c = np.zeros((4, n, *y.shape[1:]))
        c[0], c[1] = y[:-1], np.diff(y, axis=0) / np.diff(x).reshape(shape)
    elif interpolation == "cubic":
        c = CubicSpline(x, y, bc_type="periodic" if period else "not-a-knot").c[::-1]
    elif period:                                               # slopes depend on the neighbours only
        c = PchipInterpolator(np.concatenate([x[:-1] - period, x[:-1], x + period]),
                              np.concatenate([y[:-1], y[:-1], y])).c[::-1, n:2 * n]
    else:
        c = PchipInterpolator(x, y).c[::-1]
    coefficients = np.moveaxis(c, 0, 1)
    if not lines:
        return x[:-1].copy(), coefficients
    ends = np.zeros((2, 4, *y.shape[1:]))
    h, last = x[-1] - x[-2], coefficients[-1]
    ends[0, :2], ends[1, 0] = coefficients[0, :2], y[-1]
    ends[1, 1] = last[1] + h * (2.0 * last[2] + 3.0 * h * last[3])
    return np.concatenate([x[:1], x]), np.concatenate([ends[:1], coefficients, ends[1:]])
