"""Curves of a scenario as piecewise polynomials of degree five at most."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from liedyn.kernels.simulation.signals import ORDER

LEAST_ROWS = {"linear": 2, "cubic": 4, "quintic": 6}


@dataclass(frozen=True, eq=False)
class Curve:
    """Pieces as `kernels.simulation.signals.polynomial` reads them.

    breaks        (n,) where each piece begins; the first and the last extend to infinity
    coefficients  (n, 6) ascending powers of t - break
    knots         times at which one of the first three derivatives may jump
    clock         that gives its time; None: the time of the run
    """

    breaks: np.ndarray
    coefficients: np.ndarray
    knots: np.ndarray
    clock: int | None = None

    def end_slope(self, t: float) -> float:
        """Of the last piece."""
        return float(np.polyval(np.arange(1, ORDER)[::-1] * self.coefficients[-1, :0:-1], t - self.breaks[-1]))

    def started(self, origins) -> Curve:
        """Over the time of the run, where its clock began at its origin; before, a curve with a clock has its first value."""
        if self.clock is None:
            return self
        origin = origins[self.clock]
        if origin == -np.inf:
            return Curve(np.zeros(1), self.coefficients[:1], np.empty(0))
        return Curve(self.breaks + origin, self.coefficients, self.knots + origin)


def ramp() -> Curve:
    """A straight line, whose numbers a run writes."""
    return Curve(np.zeros(1), np.zeros((1, ORDER)), np.empty(0))


def quintic(points) -> Curve:
    """Through waypoints (t, x, dx, ddx); constant before the first and after the last."""
    # written out, as `spline` is: importing scipy.interpolate takes 0.4 s
    t, x, dx, ddx = np.asarray(points, dtype=float).T
    h = np.diff(t)
    gap, start, end = np.diff(x) / h, dx[:-1], dx[1:]
    bent, bend = h * ddx[:-1], h * ddx[1:]
    c3 = 10 * gap - 6 * start - 4 * end - 1.5 * bent + 0.5 * bend
    c4 = -15 * gap + 8 * start + 7 * end + 1.5 * bent - bend
    c5 = 6 * gap - 3 * (start + end) - 0.5 * bent + 0.5 * bend
    coefficients = np.column_stack([x[:-1], start, ddx[:-1] / 2, c3 / h**2, c4 / h**3, c5 / h**4])
    return held_at_ends(Curve(t[:-1], coefficients, t), t, x)


def spline(points) -> Curve:
    """C2 cubic through (t, x) with zero slope at both ends; constant before and after."""
    t, x = np.asarray(points, dtype=float).T
    h, gap = np.diff(t), np.diff(x) / np.diff(t)
    rows = np.eye(len(t))                                      # for the slopes: 0 at the ends, equal curvatures between
    right = np.zeros(len(t))
    inner = np.arange(1, len(t) - 1)
    rows[inner, inner - 1], rows[inner, inner], rows[inner, inner + 1] = 1 / h[:-1], 2 / h[:-1] + 2 / h[1:], 1 / h[1:]
    right[inner] = 3 * (gap[:-1] / h[:-1] + gap[1:] / h[1:])
    slope = np.linalg.solve(rows, right)
    start, end = slope[:-1], slope[1:]
    coefficients = np.zeros((len(h), ORDER))
    coefficients[:, 0], coefficients[:, 1] = x[:-1], start
    coefficients[:, 2], coefficients[:, 3] = (3 * gap - 2 * start - end) / h, (start + end - 2 * gap) / h**2
    return held_at_ends(Curve(t[:-1], coefficients, t), t, x)


def interpolant(t: np.ndarray, x: np.ndarray, interpolation: str) -> Curve:
    """Through samples: straight lines, or the not-a-knot spline of degree 3 or 5. Needs LEAST_ROWS samples."""
    if interpolation == "linear":
        coefficients = np.zeros((len(t) - 1, ORDER))
        coefficients[:, 0], coefficients[:, 1] = x[:-1], np.diff(x) / np.diff(t)
        return Curve(t[:-1].copy(), coefficients, t)
    from scipy.interpolate import PPoly, make_interp_spline

    polynomial = PPoly.from_spline(make_interp_spline(t, x, k=3 if interpolation == "cubic" else 5))
    real = np.diff(polynomial.x) > 0.0                         # the knots at the ends stand there several times
    coefficients = np.zeros((int(real.sum()), ORDER))
    coefficients[:, :len(polynomial.c)] = polynomial.c[::-1, real].T
    return Curve(polynomial.x[:-1][real], coefficients, np.empty(0))


def held_at_ends(curve: Curve, t: np.ndarray, x: np.ndarray) -> Curve:
    """A curve through these samples, constant before the first and after the last."""
    before, after = np.zeros((1, ORDER)), np.zeros((1, ORDER))
    before[0, 0], after[0, 0] = x[0], x[-1]
    return Curve(np.r_[t[0] - 1.0, curve.breaks, t[-1]], np.vstack([before, curve.coefficients, after]),
                 np.unique(np.r_[t[0], curve.knots, t[-1]]))
