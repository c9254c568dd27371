"""A curve of rotations through waypoints whose angular velocity and acceleration are continuous.

Between waypoints i and i + 1, R = R_i exp x(t) with a cubic rotation vector x; the rates at the waypoints make the angular
acceleration continuous (the construction of SciPy's `RotationSpline`, after Y. Park, I. Kang, B. Ravani, Smooth invariant
interpolation of rotations, ACM Transactions on Graphics 16, 1997):

    2 J_i w_i / h_i + 4 (1/h_i + 1/h_{i+1}) w_{i+1} + 2 J_{i+1}^-1 w_{i+2} / h_{i+1} = 6 (r_i / h_i^2 + r_{i+1} / h_{i+1}^2) - N_i

with r_i = log(R_i^T R_{i+1}), J_i the right Jacobian of exp there, and N_i the part of the angular acceleration at the end of
piece i that is quadratic in the rate.
"""
from __future__ import annotations

import numpy as np

from liedyn.simulation.signals.curves import ORDER, Curve, held_at_ends

TURN = 3.1                       # rad: which way a larger turn between two waypoints goes hangs on rounding
_ITERATIONS = 500
_SETTLED = 32e-16                # of the largest rate: rounding of the banded equations
_NEAR = 1e-2                     # rad^2: below it series, whose next term is less than 1e-16; above it closed forms lose 1e-14


class Unsettled(ValueError):
    """The rates at the waypoints are not found: the rotation is too fast for its waypoints."""


def rotation_spline(t, quaternions, first=(0.0, 0.0, 0.0), last=(0.0, 0.0, 0.0)) -> tuple[np.ndarray, np.ndarray]:
    """The quaternions without jumps of sign; coefficients (n - 1, 3, 4) of the rotation vectors, ascending powers of t - t_i.

    t (n,) increasing, quaternions (n, 4) x y z w, first and last: angular velocities in the body at the ends [rad/s].
    Raises Unsettled.
    """
    u = _without_jumps(np.array(quaternions, dtype=float))
    r, h = _turns(u[:-1], u[1:]), np.diff(t)[:, None]
    w = _rates(r, h, np.array(first, dtype=float), np.array(last, dtype=float))
    dx0, dx1 = w[:-1], np.linalg.solve(_jacobian(r), w[1:, :, None])[..., 0]
    # cubic from 0 to r with these rates at the ends
    coefficients = np.stack([np.zeros_like(r), dx0, (3 * r / h - 2 * dx0 - dx1) / h, (dx0 + dx1 - 2 * r / h) / h**2], axis=-1)
    return u, coefficients


def rotation_curves(t: np.ndarray, u: np.ndarray, coefficients: np.ndarray, held: bool) -> list[Curve]:
    """The three of x and the four of U. held: constant before and after the waypoints, which are knots then; else the first and
    the last piece go on."""
    pieces = np.zeros((7, len(t) - 1, ORDER))
    pieces[:3, :, :4], pieces[3:, :, 0] = coefficients.transpose(1, 0, 2), u[:-1].T
    curves = [Curve(t[:-1].copy(), one, t if held else np.empty(0)) for one in pieces]
    ends = np.vstack([np.zeros((3, 2)), u[[0, -1]].T])
    return [held_at_ends(curve, t, x) for curve, x in zip(curves, ends, strict=True)] if held else curves


def rate_at_start(t, quaternions) -> np.ndarray:
    """Angular velocity in the body at the first of a few samples: by the polynomial through their rotation vectors from there.
    At the last, of the samples in reverse order."""
    x = _turns(np.repeat(quaternions[:1], len(t), axis=0), quaternions)
    return np.linalg.solve(np.vander(t[1:] - t[0], len(t), increasing=True)[:, 1:], x[1:])[0]


def largest_turn(quaternions) -> tuple[int, float]:
    """Between which waypoint and the next the rotation turns most, and how far [rad]."""
    angle = np.linalg.norm(_turns(quaternions[:-1], quaternions[1:]), axis=1)
    return int(np.argmax(angle)), float(angle.max(initial=0.0))


# rates at the waypoints ---------------------------------------------------------------------------------------------------
def _rates(r, h, first, last) -> np.ndarray:
    """(n, 3): by iteration over the quadratic part."""
    from scipy.linalg import solve_banded

    n = len(r) - 1                                            # inner waypoints
    w = np.vstack([first, (r / h)[1:], last])
    if n == 0:
        return w
    J, eye = _jacobian(r), np.eye(3)
    J_inv = np.linalg.inv(J)
    blocks = {-1: 2 * J[1:n] / h[1:n, None], 0: 4 * (1 / h[:-1] + 1 / h[1:])[..., None] * eye,
              1: 2 * J_inv[1:n] / h[1:n, None]}
    banded = _banded(blocks, n)
    steady = 6 * (r[:-1] / h[:-1]**2 + r[1:] / h[1:]**2)
    steady[0] -= 2 * J[0] @ first / h[0]
    steady[-1] -= 2 * J_inv[n] @ last / h[n]
    fastest = np.abs(r / h).max()
    for _ in range(_ITERATIONS):
        b = steady - _quadratic(r[:-1], np.einsum("nij,nj->ni", J_inv[:-1], w[1:-1]))
        found = solve_banded((5, 5), banded, b.ravel()).reshape(n, 3)
        change = np.abs(found - w[1:-1]).max()
        w[1:-1] = found
        if change <= _SETTLED * max(fastest, np.abs(found).max()):
            return w
        if not np.isfinite(change):
            break
    raise Unsettled


def _banded(blocks, n: int) -> np.ndarray:
    """Blocks of 3 x 3 on three diagonals as `scipy.linalg.solve_banded` takes them."""
    A = np.zeros((11, 3 * n))
    for offset, stack in blocks.items():
        for i, j in np.ndindex(3, 3):
            A[5 - 3 * offset + i - j, 3 * max(offset, 0) + j::3][:len(stack)] = stack[:, i, j]
    return A


def _quadratic(x, dx) -> np.ndarray:
    """dw less J ddx where x moves with dx: see `lie.rotation_motion.rotation_vector_motion`."""
    tt = np.sum(x * x, axis=1)
    _, c, slope_b, slope_c = _functions(tt)
    y = np.cross(x, dx)
    rate = 2 * np.sum(x * dx, axis=1)
    return c[:, None] * np.cross(dx, y) + rate[:, None] * (slope_c[:, None] * np.cross(x, y) - slope_b[:, None] * y)


def _jacobian(x) -> np.ndarray:
    """Right Jacobian of exp, (n, 3, 3)."""
    b, c, _, _ = _functions(np.sum(x * x, axis=1))
    hat = _hat(x)
    return np.eye(3) - b[:, None, None] * hat + c[:, None, None] * hat @ hat


def _hat(x) -> np.ndarray:
    out = np.zeros((len(x), 3, 3))
    for i, j, k, sign in ((0, 1, 2, -1), (0, 2, 1, 1), (1, 2, 0, -1)):
        out[:, i, j], out[:, j, i] = sign * x[:, k], -sign * x[:, k]
    return out


def _functions(tt):
    """(1 - cos t)/t^2, (t - sin t)/t^3 and their derivatives with respect to tt = t^2."""
    near, t2 = tt < _NEAR, np.where(tt < _NEAR, 1.0, tt)
    t = np.sqrt(t2)
    s, b, c = np.sin(t) / t, 2 * (np.sin(t / 2) / t)**2, (t - np.sin(t)) / (t * t2)
    far = b, c, (s - 2 * b) / (2 * t2), (b - 3 * c) / (2 * t2)
    series = (1 / 2 - tt * (1 / 24 - tt * (1 / 720 - tt / 40320)), 1 / 6 - tt * (1 / 120 - tt * (1 / 5040 - tt / 362880)),
              -1 / 24 + tt * (1 / 360 - tt / 13440), -1 / 120 + tt * (1 / 2520 - tt / 120960))
    return tuple(np.where(near, x, y) for x, y in zip(series, far, strict=True))


def _turns(u, r) -> np.ndarray:
    """(n, 3) rotation vectors that lead from the rotations u to r, by the shorter way."""
    from scipy.spatial.transform import Rotation
    return (Rotation.from_quat(u).inv() * Rotation.from_quat(r)).as_rotvec()


def _without_jumps(u) -> np.ndarray:
    """Quaternions of the same sign, each as the one before."""
    turned = np.r_[u[0, 3] < 0.0, np.sum(u[:-1] * u[1:], axis=1) < 0.0]
    return u * np.where(np.cumsum(turned) % 2 == 1, -1.0, 1.0)[:, None]
