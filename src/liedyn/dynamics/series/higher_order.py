"""Inverse, forward and hybrid dynamics with their time derivatives, to any order."""
from __future__ import annotations

from contextlib import suppress
from math import prod

import numpy as np

from liedyn.dynamics.calling.annotations import Array, ArrayLike, BaseFrame, Frame, OnError, Wrenches
from liedyn.dynamics.calling.calls import NONE_BATCH, as_array, as_mask, batched, run, single, where_read
from liedyn.dynamics.calling.each_state import each_state
from liedyn.dynamics.hybrid import forward_dynamics, hybrid_dynamics, none_prescribed
from liedyn.dynamics.inverse import inverse_dynamics
from liedyn.dynamics.kinematics import link_pose
from liedyn.dynamics.open_tree import refuse_constraints
from liedyn.dynamics.series.higher_order_given import (
    HIGHEST,
    add_wrenches,
    all_or_none,
    check_finite,
    common_lead,
    contiguous_rows,
    in_body,
    is_plain,
    order_of,
    refuse_rows,
    spatial_joint,
)
from liedyn.dynamics.series.spatial_base import body_twists, spatial_twists, spatial_wrenches
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
    plain = is_plain(f_ext_derivatives, f_ext_frame, base_frame)
    if plain:
        tau = _inverse_of_one(model, q, v_derivatives, passive)
        if tau is not None:
            return tau
    rows = order_of(v_derivatives, "v_derivatives", model.nv, 2)
    if rows == 2 and plain:
        with suppress(ShapeError, ConfigurationError):                   # what follows names them as they are called here
            v, a = contiguous_rows(v_derivatives)
            return inverse_dynamics(model, q, v, a, passive=passive)[..., None, :]
    q, v = as_array(q, "q", (model.nq,)), as_array(v_derivatives, "v_derivatives", (rows, model.nv))
    joint = spatial_joint(model, base_frame)
    if joint is not None:
        pose = link_pose(model, q, joint.child)
        check_finite(model, "v_derivatives", v)
        common_lead({"q": q, "v_derivatives": v}, [q.shape[:-1], v.shape[:-2]])
        base_motion = body_twists(pose, v[..., joint.v])
        v = np.broadcast_to(v, (*base_motion.shape[:-2], *v.shape[-2:])).copy()
        v[..., joint.v] = base_motion
    named = [("q", q, 1), ("v_derivatives", v, 2)]
    which = add_wrenches(model, named, f_ext_derivatives, f_ext_frame, rows - 1)
    lead, given = batched(*named)
    tau = np.empty((prod(lead), (rows - 1) * model.nv))
    size, passive = higher_order_inverse_memory(*model.sizes, rows), bool(passive)
    if lead or f_ext_derivatives is not None:
        F = given[2] if len(given) > 2 else NONE_BATCH
        code = run(higher_order_inverses, model, size, (rows,), (*given[:2], F, which, passive, tau), len(tau))
    else:
        state = given[0][0], given[1].reshape(rows, -1), NONE_BATCH, which, passive, tau.reshape(rows - 1, -1)
        code = single(model, ("higher_order_inverse", rows, passive), higher_order_inverses, size, (rows,), state)
    refuse_rows(model, code, given[0], v_derivatives=given[1])
    tau = tau.reshape(*lead, rows - 1, model.nv)
    if joint is not None:
        tau[..., joint.v] = spatial_wrenches(pose, base_motion[..., :-1, :], tau[..., joint.v])
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
    none, plain = none_prescribed(model), is_plain(f_ext_derivatives, f_ext_frame, base_frame)
    if plain:
        a = _forward_of_one(model, q, v, tau_derivatives, none, passive)
        if a is not None:
            return a
    rows = order_of(tau_derivatives, "tau_derivatives", model.nv, 1)
    if rows == 1 and plain:
        with suppress(ShapeError, ConfigurationError):
            tau, = contiguous_rows(tau_derivatives)
            return forward_dynamics(model, q, v, tau, passive=passive)[..., None, :]
    return _hybrid(model, q, v, None, tau_derivatives, none, rows, f_ext_derivatives, f_ext_frame, passive, base_frame)[0]


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
    if rows == 1 and is_plain(f_ext_derivatives, f_ext_frame, base_frame):
        with suppress(ShapeError, ConfigurationError):
            (a,), (tau,) = contiguous_rows(a_derivatives), contiguous_rows(tau_derivatives)
            return tuple(x[..., None, :] for x in hybrid_dynamics(model, q, v, a, tau, prescribed, passive=passive))
    return _hybrid(model, q, v, a_derivatives, tau_derivatives, prescribed, rows, f_ext_derivatives, f_ext_frame, passive,
                   base_frame)


# one state, arrays as they should be: the entries check them themselves; anything else takes the long way, which names it -----
def _inverse_of_one(model, q, v, passive):
    try:
        rows = len(v)
        if v.ndim != 2 or rows > HIGHEST + 2:          # a batch, or one whose axis of rows was forgotten: scratch would be kept
            return None
        if rows == 2 and q.ndim == 1:
            return inverse_dynamics(model, q, v[0], v[1], passive=passive)[None]
        tau = np.empty((rows - 1, model.nv))
        return None if model._cache["higher_order_inverse", rows, passive](q, v, tau) else tau
    except (KeyError, TypeError, ValueError, AttributeError):        # other types or axes, lists, or no line yet
        return None


def _forward_of_one(model, q, v, tau, none, passive):
    try:
        rows = len(tau)
        if tau.ndim != 2 or rows > HIGHEST + 1:
            return None
        if rows == 1 and q.ndim == v.ndim == 1:
            return forward_dynamics(model, q, v, tau[0], passive=passive)[None]
        a = np.empty((rows, model.nv))
        return None if model._cache["higher_order_hybrid", rows, passive, none.tobytes()](q, v, a, tau) else a
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _hybrid(model, q, v, a, tau, prescribed, rows, f_ext, f_ext_frame, passive, base_frame):
    """a may be None where nothing is prescribed."""
    q, v = as_array(q, "q", (model.nq,)), as_array(v, "v", (model.nv,))
    tau = where_read(as_array(tau, "tau_derivatives", (rows, model.nv)), ~prescribed)
    named = [("q", q, 1), ("v", v, 1), ("tau_derivatives", tau, 2)]
    if a is not None:
        named.append(("a_derivatives", where_read(as_array(a, "a_derivatives", (rows, model.nv)), prescribed), 2))
    as_given = {name: x for name, x, _ in named}
    joint = spatial_joint(model, base_frame)
    if joint is not None:
        all_or_none(prescribed[joint.v])
        pose = link_pose(model, q, joint.child)
        named[1:] = in_body(model, named[1:], pose, joint, prescribed)
    which = add_wrenches(model, named, f_ext, f_ext_frame, rows)
    lead, arrays = batched(*named)
    given = dict(zip([name for name, _, _ in named], arrays, strict=True))
    q, v, tau = given["q"], given["v"], given["tau_derivatives"].copy()
    a = given["a_derivatives"].copy() if a is not None else np.zeros_like(tau)
    body = _NOWHERE if joint is None or prescribed[joint.v].any() else joint.body
    size, before, passive = higher_order_hybrid_memory(*model.sizes, rows + 1), (rows + 1, prescribed), bool(passive)
    if lead or f_ext is not None or joint is not None:
        code = run(higher_order_hybrids, model, size, before,
                   (q, v, a, tau, given.get("f_ext_derivatives", NONE_BATCH), which, body, passive), len(q))
    else:
        state = q[0], v[0], a.reshape(rows, -1), tau.reshape(rows, -1), NONE_BATCH, which, body, passive
        key = "higher_order_hybrid", rows, passive, prescribed.tobytes()
        code = single(model, key, higher_order_hybrids, size, before, state)
    refuse_rows(model, code, q, v=v, a_derivatives=given.get("a_derivatives"), tau_derivatives=given["tau_derivatives"])
    shape = (*lead, rows, model.nv)
    a, tau = a.reshape(shape), tau.reshape(shape)
    if joint is not None:
        twists = np.concatenate([np.broadcast_to(v.reshape(*lead, 1, model.nv)[..., joint.v], (*lead, 1, 6)), a[..., joint.v]],
                                axis=-2)
        a[..., joint.v] = spatial_twists(pose, twists)[..., 1:, :]
        tau[..., joint.v] = spatial_wrenches(pose, twists[..., :-1, :], tau[..., joint.v])
        if prescribed[joint.v].any():                       # what was given comes back as it was, to the last digit
            a[..., joint.v] = as_given["a_derivatives"][..., joint.v]
        else:
            tau[..., joint.v] = as_given["tau_derivatives"][..., joint.v]
    return a, tau
