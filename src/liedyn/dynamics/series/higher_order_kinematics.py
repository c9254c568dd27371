"""Time derivatives of any order of link poses, twists and Jacobians, of the centre of mass and of momentum.

The motion is given by q and ``v_derivatives`` (..., r + 1, nv): the velocity and its time derivatives v, a, jerk, … of order
0 … r, component by component (for ball and free joints v is the body twist). They fix poses to order r + 1.

Derivatives grow with their order k like w^k for angular rates w; the error stays at some 1e-15 of the largest number of its
order, to order 12 and beyond. Overflow of double precision (order 170 at the latest) is a ComputationError.
"""
from __future__ import annotations

import numpy as np

from liedyn.dynamics.calling.annotations import Array, ArrayLike, Frame, OnError
from liedyn.dynamics.calling.calls import as_array, batched, refuse, run
from liedyn.dynamics.calling.each_state import each_state
from liedyn.dynamics.calling.frames import KERNEL_FRAMES, LOCAL, check_frame
from liedyn.dynamics.series.higher_order_given import check_finite
from liedyn.errors import ComputationError, ShapeError
from liedyn.kernels import checks
from liedyn.kernels.series.higher_order_kinematics import (
    EVERY,
    jacobian_derivatives_of,
    link_derivatives,
    series_memory,
    total_derivatives,
)
from liedyn.model.model import Model

_UNUSED = np.empty((1, 0))


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
        return each_state(link_pose_derivatives, locals())
    lead, T, _, links = _links(model, q, v_derivatives, link, LOCAL, twists=False)
    out = np.zeros((*T.shape[:3], 4, 4))
    out[..., :3, :3], out[..., :3, 3], out[:, 0, :, 3, 3] = T[..., :9].reshape(*T.shape[:3], 3, 3), T[..., 9:], 1.0
    return out.reshape(*lead, out.shape[1], *links, 4, 4)


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
        return each_state(link_twist_derivatives, locals())
    lead, _, V, links = _links(model, q, v_derivatives, link, check_frame(frame), twists=True)
    return V.reshape(*lead, V.shape[1], *links, 6)


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
        return each_state(jacobian_derivatives, locals())
    which = KERNEL_FRAMES[check_frame(frame)], model.link_index(link)
    lead, rows, m = _motion(model, q, v_derivatives)
    J = np.empty((len(rows[0]), 6 * model.nv * (m + 1)))
    size = series_memory(model.n_bodies, model.nq, model.nv, m, J.shape[1])
    _refuse(model, run(jacobian_derivatives_of, model, size, (m, *which[::-1]), (*rows, J), len(J)), rows)
    return J.reshape(*lead, m + 1, 6, model.nv)


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
        return each_state(centre_of_mass_derivatives, locals())
    lead, c, _ = _totals(model, q, v_derivatives)
    if not np.isfinite(c).all():
        raise ComputationError("the robot has no moving mass: its centre of mass is not defined")
    return c.reshape(*lead, c.shape[1], 3)


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
        return each_state(momentum_derivatives, locals())
    lead, _, h = _totals(model, q, v_derivatives)
    return h.reshape(*lead, h.shape[1], 6)


def _links(model, q, v_derivatives, link, frame, twists):
    """Leading axes, poses (N, r + 2, links, 12), twists (N, r + 1, links, 6) if wanted, and the axis of links if it is kept."""
    which = EVERY if link is None else model.link_index(link)
    count = len(model.link_names) if link is None else 1
    lead, rows, m = _motion(model, q, v_derivatives)
    T = np.empty((len(rows[0]), 12 * (m + 1) * count))
    V = np.empty((len(T), 6 * m * count)) if twists else _UNUSED
    size = series_memory(model.n_bodies, model.nq, model.nv, m, T.shape[1] + V.shape[1])
    _refuse(model, run(link_derivatives, model, size, (m, which, KERNEL_FRAMES[frame]), (*rows, T, V), len(T)), rows)
    shape = len(T), m + 1, count, 12
    return lead, T.reshape(shape), V.reshape(len(T), m, count, 6) if twists else None, (count,) if link is None else ()


def _totals(model, q, v_derivatives):
    lead, rows, m = _motion(model, q, v_derivatives)
    c, h = np.empty((len(rows[0]), 3 * (m + 1))), np.empty((len(rows[0]), 6 * m))
    size = series_memory(model.n_bodies, model.nq, model.nv, m, 9 * m + 3)
    _refuse(model, run(total_derivatives, model, size, (m,), (*rows, c, h), len(c)), rows)
    return lead, c.reshape(len(c), m + 1, 3), h.reshape(len(c), m, 6)


def _motion(model, q, v_derivatives):
    """Leading axes, q (N, nq) and v (N, m nv), and m = r + 1."""
    q, v = as_array(q, "q", (model.nq,)), as_array(v_derivatives, "v_derivatives", (model.nv,))
    if v.ndim < 2 or v.shape[-2] == 0:
        raise ShapeError(f"v_derivatives has the wrong shape; found {v.shape}, expected (…, r + 1, {model.nv}): the velocity and "
                         "its derivatives to order r")
    lead, rows = batched(("q", q, 1), ("v_derivatives", v, 2))
    return lead, rows, v.shape[-2]


def _refuse(model, code, rows) -> None:
    if code == checks.BAD_V:
        check_finite(model, "v_derivatives", rows[1].reshape(len(rows[1]), -1, model.nv))
    refuse(model, code, q=rows[0])
