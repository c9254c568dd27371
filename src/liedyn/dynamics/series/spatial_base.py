"""A floating base's twist and wrench, and their time derivatives of any order, between body and spatial coordinates.

Body coordinates are those of liedyn everywhere: in the base's frame, dT/dt = T [V]. Spatial (right-invariant) ones are in the
world's frame about the world's origin, dT/dt = [V_s] T, as Ali, Gabellieri and Franchi use them:

    V_s = Ad_T V,    F_s = Ad*_{T^-1} F,    d(Ad_T)/dt = Ad_T ad_V

Derivatives are component by component, so those of V_s are not Ad_T of those of V from the second on. All is done on truncated
Taylor coefficients, where a product of functions is a Cauchy sum.
"""
from __future__ import annotations

import numpy as np

from liedyn.dynamics.calling.annotations import Array, ArrayLike
from liedyn.dynamics.calling.arguments import as_array, common_lead
from liedyn.dynamics.calling.calls import check_unit
from liedyn.errors import ConfigurationError, ShapeError
from liedyn.kernels.checks import UNIT
from liedyn.model.spatial import adjoint, bracket, inverse, rotation


def spatial_twists(base: ArrayLike, twists: ArrayLike) -> Array:
    """Spatial twist of a floating base and its derivatives, from those of its body twist.

    Parameters
    ----------
    base : (..., 4, 4) or (..., 7) array
        Pose of the base in the world, or its coordinates px py pz qx qy qz qw [m].
    twists : (..., k, 6) array
        Body twist [w; v] and its first k - 1 time derivatives, component by component [rad/s | m/s, then per s each].

    Returns
    -------
    (..., k, 6) array
        The same of the spatial twist ``Ad_T V``: v is the velocity of the point of the base that is at the world's origin.

    Raises
    ------
    ShapeError, ConfigurationError

    Notes
    -----
    Source: AGF (20), Remark 1. `body_twists` is the inverse.

    Examples
    --------
    >>> base = [1, 0, 0, 0, 0, 0, 1]             # one metre along x
    >>> ld.spatial_twists(base, [[0, 0, 2.0, 0, 0, 0]]).round(3)
    array([[ 0.,  0.,  2.,  0., -2.,  0.]])
    """
    T, V, _ = _arguments(base, twists)
    return _derivatives(_product(_transport(adjoint(T), V, V.shape[-2]), V))


def body_twists(base: ArrayLike, twists: ArrayLike) -> Array:
    """Body twist of a floating base and its derivatives, from those of its spatial twist: the inverse of `spatial_twists`.

    base as there; twists (..., k, 6): spatial twist and its derivatives. Returns (..., k, 6). Raises ShapeError,
    ConfigurationError.

    Examples
    --------
    >>> base = [1, 0, 0, 0, 0, 0, 1]             # one metre along x
    >>> ld.body_twists(base, [[0, 0, 2.0, 0, -2.0, 0]]).round(3)
    array([[0., 0., 2., 0., 0., 0.]])
    """
    T, V, _ = _arguments(base, twists)          # of T^-1 the body twist is -V_s, and the spatial one -V
    return _derivatives(_product(_transport(adjoint(inverse(T)), -V, V.shape[-2]), V))


def spatial_wrenches(base: ArrayLike, twists: ArrayLike, wrenches: ArrayLike) -> Array:
    """Spatial wrench on a floating base and its derivatives, from those of the body wrench.

    Parameters
    ----------
    base : (..., 4, 4) or (..., 7) array
        As in `spatial_twists`.
    twists : (..., k - 1 or more, 6) array
        Body twist and its derivatives; those from the (k - 1)st on do not count.
    wrenches : (..., k, 6) array
        Body wrench [m; f] and its first k - 1 time derivatives, component by component [N m | N, then per s each].

    Returns
    -------
    (..., k, 6) array
        The same of the spatial wrench ``Ad*_{T^-1} F``: world axes, moment about the world's origin.

    Raises
    ------
    ShapeError, ConfigurationError

    Examples
    --------
    >>> base = [1, 0, 0, 0, 0, 0, 1]             # one metre along x
    >>> ld.spatial_wrenches(base, np.zeros((0, 6)), [[0, 0, 0, 0, 0, 5.0]]).round(3)
    array([[ 0., -5.,  0.,  0.,  0.,  5.]])
    """
    T, V, F = _arguments(base, twists, wrenches)
    return _derivatives(_product(_dual(_transport(adjoint(T), V, F.shape[-2])), F))


def body_wrenches(base: ArrayLike, twists: ArrayLike, wrenches: ArrayLike) -> Array:
    """Body wrench on a floating base and its derivatives, from those of the spatial wrench: the inverse of `spatial_wrenches`.

    base and twists (the body twist's) as there; wrenches (..., k, 6): spatial wrench and its derivatives. Returns (..., k, 6).
    Raises ShapeError, ConfigurationError.

    Examples
    --------
    >>> base = [1, 0, 0, 0, 0, 0, 1]             # one metre along x
    >>> ld.body_wrenches(base, np.zeros((0, 6)), [[0, -5.0, 0, 0, 0, 5.0]]).round(3)
    array([[0., 0., 0., 0., 0., 5.]])
    """
    T, V, F = _arguments(base, twists, wrenches)
    return _derivatives(_product(_transport(adjoint(T), V, F.shape[-2]).swapaxes(-1, -2), F))      # Ad*_T is Ad_T^T


# series: x_k = x^(k)/k! on the axis before a matrix's or a vector's own ---------------------------------------------------
def _transport(X, V, count: int) -> np.ndarray:
    """(..., count, 6, 6) series of Ad_T, from X = Ad_T at first: (k + 1) X_{k+1} = sum_j X_j ad_{V_{k-j}}."""
    ad = bracket(V)
    out = np.zeros((*np.broadcast_shapes(X.shape[:-2], V.shape[:-2]), count, 6, 6))
    out[..., :1, :, :] = X[..., None, :, :]
    for k in range(count - 1):
        out[..., k + 1, :, :] = np.einsum("...jab,...jbc->...ac", out[..., :k + 1, :, :], ad[..., k::-1, :, :]) / (k + 1)
    return out


def _dual(X) -> np.ndarray:
    """Series of Ad*_{T^-1} from that of Ad_T: [[R, 0], [P, R]] -> [[R, P], [0, R]]."""
    R, P = X[..., :3, :3], X[..., 3:, :3]
    return np.block([[R, P], [np.zeros_like(R), R]])


def _product(X, y) -> np.ndarray:
    """(..., k, 6) Cauchy sums of the series X (..., k, 6, 6) and y (..., k, 6)."""
    lead, count = np.broadcast_shapes(X.shape[:-3], y.shape[:-2]), y.shape[-2]
    out = np.empty((*lead, count, 6))
    for k in range(count):
        out[..., k, :] = np.einsum("...jab,...jb->...a", X[..., :k + 1, :, :], y[..., k::-1, :])
    return out


def _derivatives(x) -> np.ndarray: return x * _factorials(x.shape[-2])


def _factorials(count: int) -> np.ndarray: return np.cumprod([1.0, *range(1, count)])[:count, None]


# arguments --------------------------------------------------------------------------------------------------------------
def _arguments(base, twists, wrenches=None):
    """Poses, and the series of twists and of wrenches (where there are none, the twists again)."""
    T, V = _pose(base), _taylor("twists", twists)
    F = V if wrenches is None else _taylor("wrenches", wrenches)
    common_lead(("base", T, 2), ("twists", V, 2), *[("wrenches", F, 2)] * (wrenches is not None))
    if V.shape[-2] < F.shape[-2] - 1:
        raise ShapeError(f"wrenches to order {F.shape[-2] - 1} need twists to order {F.shape[-2] - 2} at least; "
                         f"found {V.shape[-2]} of them, expected {F.shape[-2] - 1}")
    return T, V, F


def _taylor(name: str, x) -> np.ndarray:
    x = as_array(x, name, (6,))
    if x.ndim < 2:
        raise ShapeError(f"{name} has the wrong shape; found {x.shape}, expected (…, k, 6): derivatives of order 0 … k - 1")
    if not np.isfinite(x).all():
        raise ConfigurationError(f"{name} contains NaN or infinite values")
    return x / _factorials(x.shape[-2])


def _pose(base) -> np.ndarray:
    """(..., 4, 4), from either form."""
    q = as_array(base, "base", ())
    if q.ndim and q.shape[-1] == 7:
        if not np.isfinite(q).all():
            raise ConfigurationError("base contains NaN or infinite values")
        for u in q[..., 3:].reshape(-1, 4):
            check_unit("base", u)
        T = np.zeros((*q.shape[:-1], 4, 4))
        T[..., :3, :3], T[..., :3, 3], T[..., 3, 3] = rotation(q[..., 3:]), q[..., :3], 1.0
        return T
    if q.shape[-2:] != (4, 4):
        raise ShapeError(f"base has the wrong shape; found {q.shape}, expected a pose (…, 4, 4) or coordinates (…, 7)")
    R = q[..., :3, :3]
    off = np.abs(R @ R.swapaxes(-1, -2) - np.eye(3)).max(initial=0.0)
    if not (off < UNIT and np.isfinite(q).all() and (np.linalg.det(R) > 0).all()):
        raise ConfigurationError(f"base is not a pose; found a rotation R with |R R^T - 1| = {off:.3g}, "
                                 f"expected it within {UNIT:g}, right-handed, and all numbers finite")
    return q
