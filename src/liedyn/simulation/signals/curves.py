"""Curves over time: piecewise polynomials through waypoints, points and samples."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from liedyn.arrays import Array, ArrayLike
from liedyn.errors import Place, ScenarioError
from liedyn.kernels.simulation.signals import ORDER

SAME_TIME = 1e-12               # relative to the duration: times that differ by less are equal, as 3 * 0.1 and 0.3
MIN_ROWS = {"linear": 2, "cubic": 4, "quintic": 6}


@dataclass(frozen=True, eq=False)
class Curve:
    """Pieces for `kernels.simulation.signals.evaluate_polynomial`.

    breaks        (n,) start of each piece; the first and the last extend to infinity
    coefficients  (n, 6) ascending powers of t - break
    knots         times at which one of the first three derivatives may jump
    clock         index of the clock of its time; None: the time of the run
    """

    breaks: Array
    coefficients: Array
    knots: Array
    clock: int | None = None

    def end_rate(self, t: float) -> float:
        """Return the rate of the last piece at t."""
        return float(np.polyval(np.arange(1, ORDER)[::-1] * self.coefficients[-1, :0:-1], t - self.breaks[-1]))

    def with_clock_origin(self, origins: Array) -> Curve:
        """Return the curve over the time of the run, with its clock started at its origin.

        If the clock has not started, the curve is constant at its first value.
        """
        if self.clock is None:
            return self
        origin = origins[self.clock]
        if origin == -np.inf:
            return Curve(np.zeros(1), self.coefficients[:1], np.empty(0))
        return Curve(self.breaks + origin, self.coefficients, self.knots + origin)


def ramp() -> Curve:
    """Return a straight line, whose coefficients a run writes."""
    return Curve(np.zeros(1), np.zeros((1, ORDER)), np.empty(0))


def quintic(points: ArrayLike) -> Curve:
    """Return the curve through waypoints (t, x, dx, ddx), constant before the first and after the last."""
    # without scipy.interpolate, as `spline`: its import takes 0.4 s
    t, x, dx, ddx = np.asarray(points, dtype=float).T
    h = np.diff(t)
    gap, start, end = np.diff(x) / h, dx[:-1], dx[1:]
    bent, bend = h * ddx[:-1], h * ddx[1:]
    c3 = 10 * gap - 6 * start - 4 * end - 1.5 * bent + 0.5 * bend
    c4 = -15 * gap + 8 * start + 7 * end + 1.5 * bent - bend
    c5 = 6 * gap - 3 * (start + end) - 0.5 * bent + 0.5 * bend
    coefficients = np.column_stack([x[:-1], start, ddx[:-1] / 2, c3 / h**2, c4 / h**3, c5 / h**4])
    return extend_constant(Curve(t[:-1], coefficients, t), t, x)


def spline(points: ArrayLike) -> Curve:
    """Return the C2 cubic spline through (t, x) with zero slope at both ends, constant before and after."""
    t, x = np.asarray(points, dtype=float).T
    h, gap = np.diff(t), np.diff(x) / np.diff(t)
    rows = np.eye(len(t))                                      # equations of the slopes: 0 at the ends, continuous curvature
    right = np.zeros(len(t))
    inner = np.arange(1, len(t) - 1)
    rows[inner, inner - 1], rows[inner, inner], rows[inner, inner + 1] = 1 / h[:-1], 2 / h[:-1] + 2 / h[1:], 1 / h[1:]
    right[inner] = 3 * (gap[:-1] / h[:-1] + gap[1:] / h[1:])
    slope = np.linalg.solve(rows, right)
    start, end = slope[:-1], slope[1:]
    coefficients = np.zeros((len(h), ORDER))
    coefficients[:, 0], coefficients[:, 1] = x[:-1], start
    coefficients[:, 2], coefficients[:, 3] = (3 * gap - 2 * start - end) / h, (start + end - 2 * gap) / h**2
    return extend_constant(Curve(t[:-1], coefficients, t), t, x)


def interpolant(t: Array, x: Array, interpolation: str) -> Curve:
    """Return the curve through samples: straight lines, or the not-a-knot spline of degree 3 or 5. Needs MIN_ROWS samples."""
    if interpolation == "linear":
        coefficients = np.zeros((len(t) - 1, ORDER))
        coefficients[:, 0], coefficients[:, 1] = x[:-1], np.diff(x) / np.diff(t)
        return Curve(t[:-1].copy(), coefficients, t)
    from scipy.interpolate import PPoly, make_interp_spline

    polynomial = PPoly.from_spline(make_interp_spline(t, x, k=3 if interpolation == "cubic" else 5))
    real = np.diff(polynomial.x) > 0.0                         # knots at the ends are repeated
    coefficients = np.zeros((int(real.sum()), ORDER))
    coefficients[:, :len(polynomial.c)] = polynomial.c[::-1, real].T
    return Curve(polynomial.x[:-1][real], coefficients, np.empty(0))


def extend_constant(curve: Curve, t: Array, x: Array) -> Curve:
    """Return the curve through these samples, constant before the first and after the last."""
    first_piece, last_piece = np.zeros((1, ORDER)), np.zeros((1, ORDER))
    first_piece[0, 0], last_piece[0, 0] = x[0], x[-1]
    return Curve(np.r_[t[0] - 1.0, curve.breaks, t[-1]], np.vstack([first_piece, curve.coefficients, last_piece]),
                 np.unique(np.r_[t[0], curve.knots, t[-1]]))


def make_finite_curve(place: Place, make: Callable[..., Curve], *arguments: Any) -> Curve:
    """Return the curve make(*arguments). Raises ScenarioError if its coefficients overflow."""
    try:
        with np.errstate(all="ignore"):
            curve = make(*arguments)
        if np.isfinite(curve.coefficients).all():
            return curve
    except (np.linalg.LinAlgError, ValueError):                # infinite intermediate results
        pass
    raise ScenarioError("the curve is not finite", place=place, expected="smaller values, or times farther apart")
