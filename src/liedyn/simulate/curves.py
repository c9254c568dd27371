"""Curves of a scenario as piecewise polynomials of degree five at most."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from liedyn.kernels.signals import ORDER

LEAST_ROWS = {"linear": 2, "cubic": 4, "quintic": 6}


@dataclass(frozen=True, eq=False)
class Curve:
    """Pieces as `kernels.signals.polynomial` reads them.

    breaks        (n,) where each piece begins; the first and the last extend to infinity
    coefficients  (n, 6) ascending powers of t - break
    knots         times at which one of the first three derivatives may jump
    """

    breaks: np.ndarray
    coefficients: np.ndarray
    knots: np.ndarray


def quintic(points) -> Curve:
    """Through waypoints (t, x, dx, ddx); constant before the first and after the last."""
    from scipy.interpolate import BPoly, PPoly

    points = np.asarray(points, dtype=float)
    return _held(PPoly.from_bernstein_basis(BPoly.from_derivatives(points[:, 0], points[:, 1:])))


def spline(points) -> Curve:
    """C2 cubic through (t, x) with zero slope at both ends; constant before and after."""
    from scipy.interpolate import CubicSpline

    t, x = np.asarray(points, dtype=float).T
    return _held(CubicSpline(t, x, bc_type="clamped"))


def interpolant(t: np.ndarray, x: np.ndarray, interpolation: str) -> Curve:
    """Through samples: straight lines, or the not-a-knot spline of degree 3 or 5. Needs LEAST_ROWS samples."""
    from scipy.interpolate import PPoly, make_interp_spline

    if interpolation == "linear":
        coefficients = np.zeros((len(t) - 1, ORDER))
        coefficients[:, 0], coefficients[:, 1] = x[:-1], np.diff(x) / np.diff(t)
        return Curve(t[:-1].copy(), coefficients, t)
    breaks, coefficients = _pieces(PPoly.from_spline(make_interp_spline(t, x, k=3 if interpolation == "cubic" else 5)))
    return Curve(breaks, coefficients, np.empty(0))


def _held(polynomial) -> Curve:
    """With a constant piece before and after."""
    breaks, coefficients = _pieces(polynomial)
    t = polynomial.x
    before, after = np.zeros(ORDER), np.zeros(ORDER)
    before[0], after[0] = coefficients[0, 0], polynomial(t[-1])
    return Curve(np.concatenate([[t[0] - 1.0], breaks, [t[-1]]]), np.vstack([before, coefficients, after]), t)


def _pieces(polynomial) -> tuple[np.ndarray, np.ndarray]:
    """Beginnings and ascending coefficients of a SciPy PPoly, without its empty pieces."""
    real = np.diff(polynomial.x) > 0.0
    coefficients = np.zeros((int(real.sum()), ORDER))
    coefficients[:, :len(polynomial.c)] = polynomial.c[::-1, real].T
    return polynomial.x[:-1][real], coefficients
