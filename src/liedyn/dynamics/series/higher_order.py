"""Inverse, forward and hybrid dynamics with their time derivatives, to any order."""
from __future__ import annotations

from contextlib import suppress

import numpy as np

from liedyn.dynamics.calling.annotations import Array, ArrayLike, BaseFrame, Frame, OnError, Wrenches
from liedyn.dynamics.calling.arguments import NONE, as_array, as_mask
from liedyn.dynamics.calling.calls import check_finite, completed, computed
from liedyn.dynamics.calling.each_state import each_state
from liedyn.dynamics.calling.frames import LOCAL
from liedyn.dynamics.hybrid import forward_dynamics, none_prescribed
from liedyn.dynamics.kinematics import link_pose
from liedyn.dynamics.open_tree import refuse_constraints
from liedyn.dynamics.series.higher_order_given import (
    all_or_none,
    framed_wrenches,
    in_body,
    motion_in_body,
    order_of,
    spatial_joint,
)
from liedyn.dynamics.series.spatial_base import spatial_twists, spatial_wrenches
from liedyn.errors import ConfigurationError, ShapeError
from liedyn.kernels.series.higher_order_hybrid import (
    higher_order_hybrid_memory,
    higher_order_hybrids,
)
from liedyn.kernels.series.higher_order_inverse import (
    higher_order_inverse_memory,
    higher_order_inverses,
)
from liedyn.model.model import Model

_NOWHERE = -1      # no body whose coordinates are spatial


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
        refuse_constraints(model, "higher_order_inverse_dynamics")
    if on_error != "raise":
        return each_state(higher_order_inverse_dynamics, locals())
    passive = bool(passive)
    if f_ext_derivatives is None and base_frame == f_ext_frame == LOCAL:
        try:                                  # one state, of which the line checks all
            tau = model._cache["higher_order_inverse", v_derivatives.shape[-2], passive](q, v_derivatives)
            if tau is not None:
                return tau
        except (AttributeError, IndexError, KeyError, TypeError):
            pass
    rows = order_of(v_derivatives, "v_derivatives", model.nv, 2)
    F, which = framed_wrenches(model, f_ext_derivatives, f_ext_frame, rows - 1)
    v, joint = as_array(v_derivatives, "v_derivatives", (rows, model.nv)), spatial_joint(model, base_frame)
    if joint is not None:
        pose = link_pose(model, q, joint.child)
        check_finite("v_derivatives", v, model.v_names)
        v = in_body(pose, joint, v)
    tau = computed(model, ("higher_order_inverse", rows, passive) if F is None else None, higher_order_inverses,
                   lambda *sizes: higher_order_inverse_memory(*sizes, rows),
                   {"q": q, "v_derivatives": v, "f_ext_derivatives": F}, (rows - 1, model.nv), before=(rows,),
                   options=(which, passive))
    if joint is not None:
        tau[..., joint.v] = spatial_wrenches(pose, v[..., :-1, joint.v], tau[..., joint.v])
    return tau


def higher_order_forward_dynamics(model: Model, q: ArrayLike, v: ArrayLike, tau_derivatives: ArrayLike, *,
                                  f_ext_derivatives: Wrenches | None = None, f_ext_frame: Frame = "local", passive: bool = True,
                                  base_frame: BaseFrame = "local", on_error: OnError = "raise") -> Array:
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
        refuse_constraints(model, "higher_order_forward_dynamics")
    if on_error != "raise":
        return each_state(higher_order_forward_dynamics, locals())
    passive = bool(passive)
    if f_ext_derivatives is None and base_frame == f_ext_frame == LOCAL:
        try:
            a = model._cache["higher_order_forward", len(tau_derivatives), passive](q, v, tau_derivatives)
            if a is not None:
                return a
        except (KeyError, TypeError):
            pass
    rows = order_of(tau_derivatives, "tau_derivatives", model.nv, 1)
    if rows == 1 and np.ndim(q) > 1 and f_ext_derivatives is None and base_frame == f_ext_frame == LOCAL:      # a tenth faster
        with suppress(ShapeError, ConfigurationError):                   # what follows names them as they are called here
            return forward_dynamics(model, q, v, np.asarray(tau_derivatives)[..., 0, :], passive=passive)[..., None, :]
    return _hybrid(model, ("higher_order_forward", rows, passive), q, v, NONE, tau_derivatives, none_prescribed(model), rows,
                   f_ext_derivatives, f_ext_frame, passive, base_frame)[0]


def higher_order_hybrid_dynamics(model: Model, q: ArrayLike, v: ArrayLike, a_derivatives: ArrayLike, tau_derivatives: ArrayLike,
                                 prescribed: ArrayLike, *, f_ext_derivatives: Wrenches | None = None,
                                 f_ext_frame: Frame = "local", passive: bool = True, base_frame: BaseFrame = "local",
                                 on_error: OnError = "raise") -> tuple[Array, Array]:
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
        refuse_constraints(model, "higher_order_hybrid_dynamics")
    if on_error != "raise":
        return each_state(higher_order_hybrid_dynamics, locals())
    prescribed = as_mask(prescribed, model.nv)
    rows = order_of(a_derivatives, "a_derivatives", model.nv, 1)
    if order_of(tau_derivatives, "tau_derivatives", model.nv, 1) != rows:
        raise ShapeError(f"a_derivatives has {rows} rows and tau_derivatives {np.shape(tau_derivatives)[-2]}; expected as many")
    return _hybrid(model, None, q, v, a_derivatives, tau_derivatives, prescribed, rows, f_ext_derivatives, f_ext_frame,
                   bool(passive), base_frame)


def _hybrid(model, key, q, v, a, tau, prescribed, rows, f_ext, f_ext_frame, passive, base_frame):
    """a: NONE where nothing is prescribed."""
    nv, joint, body = model.nv, spatial_joint(model, base_frame), _NOWHERE
    F, which = framed_wrenches(model, f_ext, f_ext_frame, rows)
    v, tau = as_array(v, "v", (nv,)), np.where(prescribed, 0.0, as_array(tau, "tau_derivatives", (rows, nv)))
    if a is not NONE:
        a = np.where(prescribed, as_array(a, "a_derivatives", (rows, nv)), 0.0)
    given = {"q": q, "v": v, "a_derivatives": a, "tau_derivatives": tau, "f_ext_derivatives": F}
    if joint is not None:
        all_or_none(prescribed[joint.v])
        pose = link_pose(model, q, joint.child)
        motion = motion_in_body(model, pose, joint, v, np.zeros((rows, nv)) if a is NONE else a, tau)
        given |= {"v": motion[..., 0, :], "a_derivatives": motion[..., 1:, :]}
        body = _NOWHERE if prescribed[joint.v].any() else joint.body
    all_a, all_tau = completed(model, key, higher_order_hybrids, lambda *sizes: higher_order_hybrid_memory(*sizes, rows + 1),
                               given, (rows, nv), prescribed, before=(rows + 1, prescribed), options=(which, body, passive))
    if joint is not None:                                   # what was given comes back as it was, to the last digit
        base = joint.v
        twists = np.concatenate([np.broadcast_to(motion[..., :1, base], (*all_a.shape[:-2], 1, 6)), all_a[..., base]], axis=-2)
        if prescribed[base].any():
            all_a[..., base], all_tau[..., base] = a[..., base], spatial_wrenches(pose, twists[..., :-1, :], all_tau[..., base])
        else:
            all_a[..., base], all_tau[..., base] = spatial_twists(pose, twists)[..., 1:, :], tau[..., base]
    return all_a, all_tau
