"""Inverse, forward and hybrid dynamics with their time derivatives, to any order."""
from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress
from math import prod
from typing import Any, NamedTuple

import numpy as np

from liedyn.arrays import Array, ArrayLike, BaseFrame, Frame, Mask, OnError, Wrenches
from liedyn.dynamics.batching.arrays import (
    KERNEL_FRAMES,
    LOCAL,
    NONE,
    WORLD,
    as_array,
    as_mask,
    check_frame,
    common_leading_axes,
    wrenches,
)
from liedyn.dynamics.batching.calls import (
    EntryPoint,
    check_finite,
    check_quaternion,
    evaluate,
    evaluate_hybrid,
    handle_failed_states,
)
from liedyn.dynamics.dynamics import forward_dynamics, no_prescribed_mask, raise_for_constraints
from liedyn.dynamics.kinematics import link_pose
from liedyn.errors import ComputationError, ConfigurationError, ShapeError
from liedyn.kernels.batch_blocks import QUATERNION_TOLERANCE
from liedyn.kernels.taylor_hybrid import higher_order_hybrid_workspace_size, higher_order_hybrids
from liedyn.kernels.taylor_inverse import higher_order_inverse_workspace_size, higher_order_inverses
from liedyn.kernels.taylor_kinematics import (
    ALL_LINKS,
    jacobian_derivatives_batch,
    link_derivatives,
    series_workspace_size,
    total_derivatives,
)
from liedyn.model.description import FREE
from liedyn.model.description import WORLD as WORLD_LINK
from liedyn.model.model import Model, ModelJoint
from liedyn.model.spatial import adjoint, bracket, inverse, pose_from_array, rotation

# Time derivatives of any order of link poses, twists and Jacobians, of the centre of mass and of momentum ---------------

# The motion is given by q and ``v_derivatives`` (..., r + 1, nv): the velocity and its time derivatives v, a, jerk, … of order
# 0 … r, component by component (for ball and free joints v is the body twist). They determine poses up to order r + 1.
#
# Derivatives grow with their order k like w^k for angular rates w; the error is some 1e-15 of the largest number of its order,
# for order 12 and higher ones. Overflow of double precision (order 170 at the latest) is a ComputationError.

def link_pose_derivatives(model: Model, q: ArrayLike, v_derivatives: ArrayLike, link: str | None = None, *,
                          on_error: OnError = "raise") -> Array:
    """Pose of a link in the world and its time derivatives of order 0 … r + 1, entry by entry.

    Parameters
    ----------
    q : (..., nq) array
        Configuration [rad | m].
    v_derivatives : (..., r + 1, nv) array
        Velocity and its first r time derivatives [rad/s | m/s, then per s each].
    link : str, optional
        All links by default.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    (..., r + 2, 4, 4) array
        [k] is d^k T/dt^k [-, m, per s^k]; its last row is zero from k = 1 on. Without a link (..., r + 2, n_links, 4, 4), in the
        order of ``model.link_names``.

    Raises
    ------
    NameLookupError, ShapeError, ConfigurationError, ComputationError

    Notes
    -----
    O(r^2) a body. The poses as series in time: T = T_parent T0 exp(S q(t)) for screws, dR/dt = R [w] for ball and free joints.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.link_pose_derivatives(model, [0.3, -0.2], [[1, 0.5], [0, 1]], "tip")[1, :3, 3].round(3)     # its velocity
    array([-2.448,  0.   ,  0.445])
    """
    if on_error != "raise":
        return handle_failed_states(link_pose_derivatives, locals())
    T, = _series(model, link_derivatives, q, v_derivatives, (1, _n_links(model, link), 12),
                 static_arguments=(_link_argument(model, link), KERNEL_FRAMES[LOCAL]), after=(NONE,))
    out = pose_from_array(T)
    out[..., 1:, :, 3, 3] = 0.0
    return out if link is None else out[..., 0, :, :]


def link_twist_derivatives(model: Model, q: ArrayLike, v_derivatives: ArrayLike, link: str | None = None, *,
                           frame: Frame = "local", on_error: OnError = "raise") -> Array:
    """Twist [w; v] of a link and its time derivatives of order 0 … r, component by component.

    Parameters
    ----------
    q, v_derivatives, link
        As in `link_pose_derivatives`.
    frame : "local", "local_world_aligned" or "world"
        As in `jacobian`; "world" gives the spatial twist of Ali, Gabellieri and Franchi. Each row is the component-wise rate of
        the one before it in that frame.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    (..., r + 1, 6) array
        [rad/s | m/s, then per s each]; without a link (..., r + 1, n_links, 6).

    Raises
    ------
    NameLookupError, ShapeError, ConfigurationError, ComputationError

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.link_twist_derivatives(model, [0.3, -0.2], [[1, 0.5], [0, 1]], "tip").round(3)
    array([[ 0.   ,  1.5  ,  0.   , -2.48 ,  0.   ,  0.199],
           [ 0.   ,  1.   ,  0.   , -1.099,  0.   , -0.49 ]])
    """
    if on_error != "raise":
        return handle_failed_states(link_twist_derivatives, locals())
    count = _n_links(model, link)
    _, V = _series(model, link_derivatives, q, v_derivatives, (1, count, 12), (0, count, 6),
                   static_arguments=(_link_argument(model, link), KERNEL_FRAMES[check_frame(frame)]))
    return V if link is None else V[..., 0, :]


def jacobian_derivatives(model: Model, q: ArrayLike, v_derivatives: ArrayLike, link: str, *, frame: Frame = "local",
                         on_error: OnError = "raise") -> Array:
    """Jacobian of a link and its time derivatives of order 0 … r + 1, component by component.

    q, v_derivatives (..., r + 1, nv), link, frame: as in `link_twist_derivatives`. Returns (..., r + 2, 6, nv), of which [0] is
    `jacobian`, [1] is `jacobian_derivative`; ``V^(k) = sum_j C(k, j) J^(j) v^(k - j)``. Raises NameLookupError, ShapeError,
    ConfigurationError, ComputationError.

    For on_error see `inverse_dynamics`.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.jacobian_derivatives(model, [0.3, -0.2], [[1, 0.5], [0, 1]], "tip").shape     # J, dJ/dt, d2J/dt2
    (3, 6, 2)
    """
    if on_error != "raise":
        return handle_failed_states(jacobian_derivatives, locals())
    kernel_frame = KERNEL_FRAMES[check_frame(frame)]
    return _series(model, jacobian_derivatives_batch, q, v_derivatives, (1, 6, model.nv),
                   static_arguments=(model.link_index(link), kernel_frame))[0]


def centre_of_mass_derivatives(model: Model, q: ArrayLike, v_derivatives: ArrayLike, *, on_error: OnError = "raise") -> Array:
    """Centre of mass of the moving bodies in the world and its time derivatives of order 0 … r + 1: (..., r + 2, 3) [m, per s^k].

    q (..., nq), v_derivatives (..., r + 1, nv): as in `link_pose_derivatives`. Raises ShapeError, ConfigurationError,
    ComputationError where nothing that moves has mass.

    For on_error see `inverse_dynamics`.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.centre_of_mass_derivatives(model, [0.3, -0.2], [[1, 0.5], [0, 1]]).round(3)     # c, dc/dt, d2c/dt2
    array([[-0.247,  0.   ,  1.035],
           [-1.09 ,  0.   ,  0.259],
           [ 0.029,  0.   ,  1.301]])
    """
    if on_error != "raise":
        return handle_failed_states(centre_of_mass_derivatives, locals())
    c, _ = _series(model, total_derivatives, q, v_derivatives, (1, 3), (0, 6))
    if not np.isfinite(c).all():
        raise ComputationError("the robot has no moving mass: its centre of mass is not defined")
    return c


def momentum_derivatives(model: Model, q: ArrayLike, v_derivatives: ArrayLike, *, on_error: OnError = "raise") -> Array:
    """Momentum [angular; linear] of the moving bodies and its time derivatives of order 0 … r: (..., r + 1, 6).

    In the "world" frame, as `momentum` [kg m^2/s | kg m/s, then per s each]. q (..., nq), v_derivatives
    (..., r + 1, nv): as in `link_pose_derivatives`. Raises ShapeError, ConfigurationError, ComputationError.

    For on_error see `inverse_dynamics`.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.momentum_derivatives(model, [0.3, -0.2], [[1, 0.5], [0, 1]]).shape     # h, dh/dt
    (2, 6)
    """
    if on_error != "raise":
        return handle_failed_states(momentum_derivatives, locals())
    return _series(model, total_derivatives, q, v_derivatives, (1, 3), (0, 6))[1]


def _n_links(model: Model, link: str | None) -> int:
    return len(model.link_names) if link is None else 1


def _link_argument(model: Model, link: str | None) -> int:
    return ALL_LINKS if link is None else model.link_index(link)


def _series(model: Model, entry: EntryPoint, q: ArrayLike, v_derivatives: ArrayLike, *shapes: tuple[int, ...],
            static_arguments: tuple[Any, ...] = (), after: tuple[Any, ...] = ()) -> tuple[Array, ...]:
    """Run `evaluate` for v and its first r derivatives; m = r + 1 is the first argument of the entry point.

    A shape (k, …) is that of m + k derivatives of (…).
    """
    v = as_array(v_derivatives, "v_derivatives", (model.nv,))
    if v.ndim < 2 or v.shape[-2] == 0:
        raise ShapeError(f"v_derivatives has the wrong shape; found {v.shape}, expected (…, r + 1, {model.nv}): the velocity and "
                         "its derivatives to order r")
    m = v.shape[-2]
    shapes = tuple((m + more, *shape) for more, *shape in shapes)

    def workspace_size(n: int, nq: int, nv: int, _n_links: int) -> int:
        return int(series_workspace_size(n, nq, nv, m, sum(map(prod, shapes))))

    found = evaluate(model, (entry.__name__, len(shapes), m, *static_arguments), entry, workspace_size,
                     {"q": q, "v_derivatives": v}, *shapes, static_arguments=(m, *static_arguments), after=after)
    return found if isinstance(found, tuple) else (found,)


# A floating base's twist and wrench, and their time derivatives of any order, between body and spatial coordinates ------

# Body coordinates are those of liedyn everywhere: in the base's frame, dT/dt = T [V]. Spatial (right-invariant) ones are in the
# world's frame about the world's origin, dT/dt = [V_s] T, as Ali, Gabellieri and Franchi use them:
#
#     V_s = Ad_T V,    F_s = Ad*_{T^-1} F,    d(Ad_T)/dt = Ad_T ad_V
#
# Derivatives are component by component, so those of V_s are not Ad_T of those of V from the second on. All computations use
# truncated Taylor coefficients, in which a product of functions is a Cauchy sum.

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
    T, V, _ = _arguments(base, twists)          # T^-1 has the body twist -V_s and the spatial twist -V
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


# series: x_k = x^(k)/k! on the axis before those of a matrix or vector ------------------------------------------------------
def _transport(X: Array, V: Array, count: int) -> Array:
    """Return (..., count, 6, 6) series of Ad_T from X = Ad_T at t = 0: (k + 1) X_{k+1} = sum_j X_j ad_{V_{k-j}}."""
    ad = bracket(V)
    out = np.zeros((*np.broadcast_shapes(X.shape[:-2], V.shape[:-2]), count, 6, 6))
    out[..., :1, :, :] = X[..., None, :, :]
    for k in range(count - 1):
        out[..., k + 1, :, :] = np.einsum("...jab,...jbc->...ac", out[..., :k + 1, :, :], ad[..., k::-1, :, :]) / (k + 1)
    return out


def _dual(X: Array) -> Array:
    """Return the series of Ad*_{T^-1} from that of Ad_T: [[R, 0], [P, R]] -> [[R, P], [0, R]]."""
    R, P = X[..., :3, :3], X[..., 3:, :3]
    return np.block([[R, P], [np.zeros_like(R), R]])


def _product(X: Array, y: Array) -> Array:
    """Return (..., k, 6) Cauchy sums of the series X (..., k, 6, 6) and y (..., k, 6)."""
    lead, count = np.broadcast_shapes(X.shape[:-3], y.shape[:-2]), y.shape[-2]
    out = np.empty((*lead, count, 6))
    for k in range(count):
        out[..., k, :] = np.einsum("...jab,...jb->...a", X[..., :k + 1, :, :], y[..., k::-1, :])
    return out


def _derivatives(x: Array) -> Array:
    return x * _factorials(x.shape[-2])


def _factorials(count: int) -> Array:
    return np.cumprod([1.0, *range(1, count)], dtype=np.float64)[:count, None]


# arguments --------------------------------------------------------------------------------------------------------------
def _arguments(base: ArrayLike, twists: ArrayLike, wrenches: ArrayLike | None = None) -> tuple[Array, Array, Array]:
    """Return poses, and the series of twists and of wrenches (twists again if there are no wrenches)."""
    T, V = _pose(base), _taylor("twists", twists)
    F = V if wrenches is None else _taylor("wrenches", wrenches)
    common_leading_axes(("base", T, 2), ("twists", V, 2), *[("wrenches", F, 2)] * (wrenches is not None))
    if V.shape[-2] < F.shape[-2] - 1:
        raise ShapeError(f"wrenches to order {F.shape[-2] - 1} need twists to order {F.shape[-2] - 2} at least; "
                         f"found {V.shape[-2]} of them, expected {F.shape[-2] - 1}")
    return T, V, F


def _taylor(name: str, x: ArrayLike) -> Array:
    derivatives = as_array(x, name, (6,))
    if derivatives.ndim < 2:
        raise ShapeError(f"{name} has the wrong shape; found {derivatives.shape}, expected (…, k, 6): derivatives of order "
                         "0 … k - 1")
    check_finite(name, derivatives, n_axes=2)
    return derivatives / _factorials(derivatives.shape[-2])


def _pose(base: ArrayLike) -> Array:
    """Return (..., 4, 4) from either form."""
    q = as_array(base, "base", ())
    if q.ndim and q.shape[-1] == 7:
        check_finite("base", q)
        check_quaternion("base", q[..., 3:])
        T = np.zeros((*q.shape[:-1], 4, 4))
        T[..., :3, :3], T[..., :3, 3], T[..., 3, 3] = rotation(q[..., 3:]), q[..., :3], 1.0
        return T
    if q.shape[-2:] != (4, 4):
        raise ShapeError(f"base has the wrong shape; found {q.shape}, expected a pose (…, 4, 4) or coordinates (…, 7)")
    R = q[..., :3, :3]
    off = np.abs(R @ R.swapaxes(-1, -2) - np.eye(3)).max(initial=0.0)
    if not (off < QUATERNION_TOLERANCE and np.isfinite(q).all() and (np.linalg.det(R) > 0).all()):
        raise ConfigurationError(f"base is not a pose; found a rotation R with |R R^T - 1| = {off:.3g}, "
                                 f"expected it within {QUATERNION_TOLERANCE:g}, right-handed, and all numbers finite")
    return q


# Arguments of higher-order dynamics: shapes, frames, spatial coordinates of a base --------------------------------------

MAX_ORDER = 170      # order


def derivative_rows(x: ArrayLike, name: str, nv: int, min_rows: int) -> int:
    """Return the number of rows of derivatives x (…, rows, nv)."""
    try:
        shape = np.shape(x)
    except ValueError:                                   # ragged lists
        raise ShapeError(f"{name} is not an array of numbers; found {type(x).__name__}") from None
    if len(shape) < 2 or shape[-1] != nv or shape[-2] < min_rows:
        raise ShapeError(f"{name} has the wrong shape; found {shape}, expected (…, rows, {nv}) with {min_rows} or more rows of "
                         "derivatives")
    if shape[-2] - min_rows > MAX_ORDER:
        raise ShapeError(f"{name} goes to order {shape[-2] - min_rows}; the highest order is {MAX_ORDER}")
    return int(shape[-2])


def spatial_base_joint(model: Model, base_frame: str) -> ModelJoint | None:
    """Return the floating base's joint if its coordinates are spatial, else None."""
    if check_frame(base_frame, "base_frame", (LOCAL, WORLD)) == LOCAL:
        return None
    if model.base != "floating":
        raise ShapeError(f'base_frame="world" is for a floating base; the base of {model.name} is {model.base}')
    return next(joint for joint in model.joints if joint.kind == FREE and joint.parent == WORLD_LINK)


def framed_wrenches(model: Model, f_ext: Wrenches | None, frame: str, rows: int) -> tuple[Array | None, int]:
    """Return external wrenches (…, rows, n_links, 6), and their frame as a number for the kernels."""
    which = KERNEL_FRAMES[check_frame(frame, "f_ext_frame")]
    return wrenches(model, f_ext, "f_ext_derivatives", (rows,)), which if f_ext is not None else KERNEL_FRAMES[LOCAL]


def to_body_coordinates(pose: Array, joint: ModelJoint, x: Array) -> Array:
    """Return derivatives x (..., rows, nv) of v, from order 0 on, with those of the base in body coordinates."""
    lead = common_leading_axes(("q", pose[..., 0, 0], 0), ("v_derivatives", x[..., 0, 0], 0))
    out = np.broadcast_to(x, (*lead, *x.shape[-2:])).copy()
    out[..., joint.v] = body_twists(pose, out[..., joint.v])
    return out


def motion_to_body_coordinates(model: Model, pose: Array, joint: ModelJoint, v: Array, a: Array, tau: Array) -> Array:
    """Return v (..., nv) and the derivatives of a (..., rows, nv) in body coordinates, as one array (..., rows + 1, nv)."""
    check_finite("v", v, model.v_names)
    check_finite("a_derivatives", a, model.v_names)
    lead = common_leading_axes(("q", pose[..., 0, 0], 0), ("v", v[..., 0], 0), ("tau_derivatives", tau[..., 0, 0], 0),
                               ("a_derivatives", a[..., 0, 0], 0))
    parts = [np.broadcast_to(x, (*lead, *x.shape[-2:])) for x in (v[..., None, :], a)]
    return to_body_coordinates(pose, joint, np.concatenate(parts, axis=-2))


def check_base_prescription(prescribed: Mask) -> None:
    """Raise ShapeError unless the mask (6,) of a base in spatial coordinates prescribes all coordinates or none."""
    if prescribed.any() and not prescribed.all():
        raise ShapeError('with base_frame="world" all six coordinates of the base are prescribed or none; found '
                         f"{int(prescribed.sum())} of them")


# higher order -----------------------------------------------------------------------------------------------------------

_NO_BODY = -1      # no body whose coordinates are spatial


def higher_order_inverse_dynamics(model: Model, q: ArrayLike, v_derivatives: ArrayLike, *,
                                  f_ext_derivatives: Wrenches | None = None, f_ext_frame: Frame = "local", passive: bool = True,
                                  base_frame: BaseFrame = "local", on_error: OnError = "raise") -> Array:
    """Joint forces along a motion and their time derivatives up to order r, exact, in O(n r^2).

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints hold unit quaternions x y z w.
    v_derivatives : (..., r + 2, nv) array
        Velocity, acceleration, jerk, …: row k is d^k v / dt^k, component by component [rad/s^(k+1) | m/s^(k+1)]. A ball or
        free joint's v is its body twist.
    f_ext_derivatives : (..., r + 1, n_links, 6) array or {link name: (..., r + 1, 6) array}, optional
        External wrenches [m; f] on links [N m | N] and their derivatives, component by component in `f_ext_frame`.
    f_ext_frame : "local", "local_world_aligned" or "world"
        Of the external wrenches: axes of the link, about its origin; axes of the world, about the link's origin; axes of the
        world, about the world's origin.
    passive : bool
        Whether joint springs, damping and (smoothed) friction act.
    base_frame : "local" or "world"
        Of the six coordinates of a floating base, in `v_derivatives` and in the result: its twist and wrench in its own frame, as
        everywhere else, or in the world's, its right-invariant twist and spatial wrench (see `spatial_twists`,
        `spatial_wrenches`).
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    tau : (..., r + 1, nv) array
        Row k is d^k tau / dt^k [N m/s^k | N/s^k].

    Raises
    ------
    ShapeError, ConfigurationError, ComputationError

    Notes
    -----
    Source: AGF Algorithms 1-2, Table 5, in body frames on Taylor coefficients.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.higher_order_inverse_dynamics(model, [0.3, -0.2], [[1, 0.5], [0, 1], [0, 0]]).round(3)     # tau, dtau/dt
    array([[ 5.786,  0.724],
           [21.42 ,  7.566]])
    """
    if model.nc:
        raise_for_constraints(model, "higher_order_inverse_dynamics")
    if on_error != "raise":
        return handle_failed_states(higher_order_inverse_dynamics, locals())
    passive = bool(passive)
    if f_ext_derivatives is None and base_frame == f_ext_frame == LOCAL and isinstance(v_derivatives, np.ndarray):
        try:                                  # one state: generated code checks all arguments
            result: Array | None = model.single_calls["higher_order_inverse", v_derivatives.shape[-2], passive](q, v_derivatives)
            if result is not None:
                return result
        except (IndexError, KeyError, TypeError):
            pass
    rows = derivative_rows(v_derivatives, "v_derivatives", model.nv, 2)
    F, which = framed_wrenches(model, f_ext_derivatives, f_ext_frame, rows - 1)
    v, joint = as_array(v_derivatives, "v_derivatives", (rows, model.nv)), spatial_base_joint(model, base_frame)
    if joint is not None:
        pose = link_pose(model, q, joint.child)
        check_finite("v_derivatives", v, model.v_names)
        v = to_body_coordinates(pose, joint, v)

    def workspace_size(n: int, nq: int, nv: int, n_links: int) -> int:
        return int(higher_order_inverse_workspace_size(n, nq, nv, n_links, rows))

    tau = evaluate(model, ("higher_order_inverse", rows, passive) if F is None else None, higher_order_inverses, workspace_size,
                   {"q": q, "v_derivatives": v, "f_ext_derivatives": F}, (rows - 1, model.nv), static_arguments=(rows,),
                   options=(which, passive))
    if joint is not None:
        tau[..., joint.v] = spatial_wrenches(pose, v[..., :-1, joint.v], tau[..., joint.v])
    return tau


def higher_order_forward_dynamics(  # noqa: PLR0913 - independent options of a public call
        model: Model, q: ArrayLike, v: ArrayLike, tau_derivatives: ArrayLike, *, f_ext_derivatives: Wrenches | None = None,
        f_ext_frame: Frame = "local", passive: bool = True, base_frame: BaseFrame = "local",
        on_error: OnError = "raise") -> Array:
    """Accelerations under joint forces and their time derivatives up to order r, exact, in O(n r^2).

    Parameters
    ----------
    q : (..., nq) array
    v : (..., nv) array
        Velocity [rad/s | m/s].
    tau_derivatives : (..., r + 1, nv) array
        Row k is d^k tau / dt^k [N m/s^k | N/s^k].
    f_ext_derivatives, f_ext_frame, passive, base_frame
        As in `higher_order_inverse_dynamics`.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    a : (..., r + 1, nv) array
        Acceleration, jerk, …: row k is d^k a / dt^k, component by component.

    Raises
    ------
    ShapeError, ConfigurationError
    ComputationError
        If a joint's articulated inertia vanishes.

    Notes
    -----
    Source: AGF (22), (23), Algorithm 3, Lemma 2, Table 5: the articulated inertias are factored once. Each order divides the
    rounding errors of the orders before by inertias: docs/higher-orders.md lists the digits that this costs.

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> ld.higher_order_forward_dynamics(model, q, v, [[0.0, 0.5], [0.0, 0.0]]).round(3)     # a, jerk
    array([[-8.534, 21.404],
           [-8.142, -6.395]])
    """
    if model.nc:
        raise_for_constraints(model, "higher_order_forward_dynamics")
    if on_error != "raise":
        return handle_failed_states(higher_order_forward_dynamics, locals())
    passive = bool(passive)
    if f_ext_derivatives is None and base_frame == f_ext_frame == LOCAL and isinstance(tau_derivatives, np.ndarray):
        try:
            a: Array | None = model.single_calls["higher_order_forward", len(tau_derivatives), passive](q, v, tau_derivatives)
            if a is not None:
                return a
        except (KeyError, TypeError):
            pass
    rows = derivative_rows(tau_derivatives, "tau_derivatives", model.nv, 1)
    if rows == 1 and np.ndim(q) > 1 and f_ext_derivatives is None and base_frame == f_ext_frame == LOCAL:      # a tenth faster
        with suppress(ShapeError, ConfigurationError):                   # the code below raises them with the right names
            return forward_dynamics(model, q, v, np.asarray(tau_derivatives)[..., 0, :], passive=passive)[..., None, :]
    inputs = {"q": q, "v": v, "a_derivatives": NONE, "tau_derivatives": tau_derivatives}
    return _hybrid(model, ("higher_order_forward", rows, passive), inputs, no_prescribed_mask(model), rows,
                   _Options(f_ext_derivatives, f_ext_frame, passive, base_frame))[0]


def higher_order_hybrid_dynamics(  # noqa: PLR0913 - independent options of a public call
        model: Model, q: ArrayLike, v: ArrayLike, a_derivatives: ArrayLike, tau_derivatives: ArrayLike, prescribed: ArrayLike, *,
        f_ext_derivatives: Wrenches | None = None, f_ext_frame: Frame = "local", passive: bool = True,
        base_frame: BaseFrame = "local", on_error: OnError = "raise") -> tuple[Array, Array]:
    """Accelerations and joint forces with their time derivatives, given one of the two for each coordinate.

    Parameters
    ----------
    q : (..., nq) array
    v : (..., nv) array
    a_derivatives, tau_derivatives : (..., r + 1, nv) arrays
        Row k is the k-th time derivative. a is read where prescribed, tau where not; the rest is ignored, NaN included.
    prescribed : (nv,) bool array
        Any mask; with base_frame="world" all six coordinates of the base or none.
    f_ext_derivatives, f_ext_frame, passive, base_frame
        As in `higher_order_inverse_dynamics`.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    a, tau : (..., r + 1, nv) arrays
        New arrays, both complete.

    Raises
    ------
    ShapeError, ConfigurationError, ComputationError

    Notes
    -----
    Source: AGF (24)-(26), Algorithm 4.

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> a, tau = ld.higher_order_hybrid_dynamics(model, q, v, np.zeros((2, 2)), np.zeros((2, 2)), [True, False])
    >>> a.round(3)
    array([[  0.   ,  -1.171],
           [  0.   , -22.69 ]])
    """
    if model.nc:
        raise_for_constraints(model, "higher_order_hybrid_dynamics")
    if on_error != "raise":
        return handle_failed_states(higher_order_hybrid_dynamics, locals())
    mask = as_mask(prescribed, model.nv)
    rows = derivative_rows(a_derivatives, "a_derivatives", model.nv, 1)
    if derivative_rows(tau_derivatives, "tau_derivatives", model.nv, 1) != rows:
        raise ShapeError(f"a_derivatives has {rows} rows and tau_derivatives {np.shape(tau_derivatives)[-2]}; expected as many")
    inputs = {"q": q, "v": v, "a_derivatives": a_derivatives, "tau_derivatives": tau_derivatives}
    return _hybrid(model, None, inputs, mask, rows, _Options(f_ext_derivatives, f_ext_frame, bool(passive), base_frame))


class _Options(NamedTuple):
    """Derivatives of external wrenches and their frame, whether passive forces act, and the frame of a base's coordinates."""

    f_ext: Wrenches | None
    f_ext_frame: Frame
    passive: bool
    base_frame: BaseFrame


def _hybrid(model: Model, key: Hashable, inputs: dict[str, Any], prescribed: Mask, rows: int,
            options: _Options) -> tuple[Array, Array]:
    """Return the derivatives of a and tau, `rows` of each.

    inputs: q, v, a_derivatives and tau_derivatives, in this order; a_derivatives is NONE if nothing is prescribed.
    """
    nv, joint, body = model.nv, spatial_base_joint(model, options.base_frame), _NO_BODY
    F, which = framed_wrenches(model, options.f_ext, options.f_ext_frame, rows)
    v = as_array(inputs["v"], "v", (nv,))
    tau = np.where(prescribed, 0.0, as_array(inputs["tau_derivatives"], "tau_derivatives", (rows, nv)))
    a = inputs["a_derivatives"]
    if a is not NONE:
        a = np.where(prescribed, as_array(a, "a_derivatives", (rows, nv)), 0.0)
    states = {**inputs, "v": v, "a_derivatives": a, "tau_derivatives": tau, "f_ext_derivatives": F}
    if joint is not None:
        check_base_prescription(prescribed[joint.v])
        pose = link_pose(model, inputs["q"], joint.child)
        motion = motion_to_body_coordinates(model, pose, joint, v, np.zeros((rows, nv)) if a is NONE else a, tau)
        states |= {"v": motion[..., 0, :], "a_derivatives": motion[..., 1:, :]}
        body = _NO_BODY if prescribed[joint.v].any() else joint.body

    def workspace_size(n: int, nq: int, nv: int, n_links: int) -> int:
        return int(higher_order_hybrid_workspace_size(n, nq, nv, n_links, rows + 1))

    all_a, all_tau = evaluate_hybrid(model, key, higher_order_hybrids, workspace_size, states, (rows, nv), prescribed,
                                     static_arguments=(rows + 1, prescribed), options=(which, body, options.passive))
    if joint is not None:                                   # inputs are returned bit for bit
        base = joint.v
        twists = np.concatenate([np.broadcast_to(motion[..., :1, base], (*all_a.shape[:-2], 1, 6)), all_a[..., base]], axis=-2)
        if prescribed[base].any():
            all_a[..., base], all_tau[..., base] = a[..., base], spatial_wrenches(pose, twists[..., :-1, :], all_tau[..., base])
        else:
            all_a[..., base], all_tau[..., base] = spatial_twists(pose, twists)[..., 1:, :], tau[..., base]
    return all_a, all_tau
