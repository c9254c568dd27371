"""Time derivatives of any order of link poses, twists and Jacobians, of the centre of mass and of momentum.

The motion is given by q and ``v_derivatives`` (..., r + 1, nv): the velocity and its time derivatives v, a, jerk, … of order
0 … r, component by component (for ball and free joints v is the body twist). They fix poses to order r + 1.

Derivatives grow with their order k like w^k for angular rates w; the error stays at some 1e-15 of the largest number of its
order, to order 12 and beyond. Overflow of double precision (order 170 at the latest) is a ComputationError.
"""
from __future__ import annotations

from math import prod

import numpy as np

from liedyn.dynamics.calling.annotations import Array, ArrayLike, Frame, OnError
from liedyn.dynamics.calling.arguments import NONE, as_array
from liedyn.dynamics.calling.calls import computed
from liedyn.dynamics.calling.each_state import each_state
from liedyn.dynamics.calling.frames import KERNEL_FRAMES, LOCAL, check_frame
from liedyn.errors import ComputationError, ShapeError
from liedyn.kernels.series.higher_order_kinematics import (
    EVERY,
    jacobian_derivatives_of,
    link_derivatives,
    series_memory,
    total_derivatives,
)
from liedyn.model.model import Model
from liedyn.model.spatial import unflat


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
    T = _series(model, link_derivatives, q, v_derivatives, (1, _count(model, link), 12),
                before=(_which(model, link), KERNEL_FRAMES[LOCAL]), after=(NONE,))
    out = unflat(T)
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
        return each_state(link_twist_derivatives, locals())
    count, frame = _count(model, link), KERNEL_FRAMES[check_frame(frame)]
    _, V = _series(model, link_derivatives, q, v_derivatives, (1, count, 12), (0, count, 6), before=(_which(model, link), frame))
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
        return each_state(jacobian_derivatives, locals())
    frame = KERNEL_FRAMES[check_frame(frame)]
    return _series(model, jacobian_derivatives_of, q, v_derivatives, (1, 6, model.nv), before=(model.link_index(link), frame))


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
        return each_state(momentum_derivatives, locals())
    return _series(model, total_derivatives, q, v_derivatives, (1, 3), (0, 6))[1]


def _count(model, link) -> int:
    return len(model.link_names) if link is None else 1


def _which(model, link) -> int:
    return EVERY if link is None else model.link_index(link)


def _series(model, entry, q, v_derivatives, *shapes: tuple[int, ...], before: tuple = (), after: tuple = ()):
    """`computed` for v and its first r derivatives, m = r + 1 being the first argument of the entry. A shape (k, …) is that of
    m + k derivatives of (…)."""
    v = as_array(v_derivatives, "v_derivatives", (model.nv,))
    if v.ndim < 2 or v.shape[-2] == 0:
        raise ShapeError(f"v_derivatives has the wrong shape; found {v.shape}, expected (…, r + 1, {model.nv}): the velocity and "
                         "its derivatives to order r")
    m = v.shape[-2]
    shapes = tuple((m + more, *shape) for more, *shape in shapes)
    return computed(model, (entry.__name__, len(shapes), m, *before), entry,
                    lambda n, nq, nv, nl: series_memory(n, nq, nv, m, sum(map(prod, shapes))),
                    {"q": q, "v_derivatives": v}, *shapes, before=(m, *before), after=after)
