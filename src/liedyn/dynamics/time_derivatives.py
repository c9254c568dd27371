"""Inverse, forward and hybrid dynamics with their time derivatives, to any order."""
from __future__ import annotations

from collections.abc import Hashable
from contextlib import suppress
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
from liedyn.dynamics.batching.calls import check_finite, evaluate, evaluate_hybrid
from liedyn.dynamics.batching.failed_states import handle_failed_states
from liedyn.dynamics.constraints.couplings import (
    ReducedModel,
    closed_motion,
    closed_rates,
    reduced_model,
    solve_positive_definite,
)
from liedyn.dynamics.dynamics import forward_dynamics, hybrid_dynamics, mass_matrix, no_prescribed_mask
from liedyn.dynamics.force_elements import check_without_elements
from liedyn.dynamics.kinematics import link_pose
from liedyn.dynamics.spatial_closed_form import body_twists, spatial_twists, spatial_wrenches
from liedyn.errors import ConfigurationError, ShapeError
from liedyn.kernels.taylor_hybrid import higher_order_hybrid_workspace_size, higher_order_hybrids
from liedyn.kernels.taylor_inverse import higher_order_inverse_workspace_size, higher_order_inverses
from liedyn.model.description import FREE
from liedyn.model.description import WORLD as WORLD_LINK
from liedyn.model.model import Model
from liedyn.model.model_joint import ModelJoint

# Arguments of higher-order dynamics: shapes, frames, spatial coordinates of a base --------------------------------------

MAX_ORDER = 170      # order


def derivative_rows(x: ArrayLike, name: str, nv: int, min_rows: int) -> int:
    """Return the number of rows of derivatives x (…, rows, nv)."""
    try:
        shape = np.shape(x)
    except ValueError:                                   # ragged lists
        raise ShapeError(f"{name} is not an array of numbers: got {type(x).__name__}") from None
    if len(shape) < 2 or shape[-1] != nv or shape[-2] < min_rows:
        raise ShapeError(f"{name} has the wrong shape: expected (…, rows, {nv}) with {min_rows} or more rows of "
                         f"derivatives, got {shape}")
    if shape[-2] - min_rows > MAX_ORDER:
        raise ShapeError(f"{name} goes to order {shape[-2] - min_rows}; the highest order is {MAX_ORDER}")
    return int(shape[-2])


def spatial_base_joint(model: Model, base_frame: str) -> ModelJoint | None:
    """Return the floating base's joint if its coordinates are spatial, else None."""
    if check_frame(base_frame, "base_frame", (LOCAL, WORLD)) == LOCAL:
        return None
    if model.base != "floating":
        raise ShapeError(f'base_frame="world" requires a floating base; the base of {model.name} is {model.base}')
    return next(joint for joint in model.joints if joint.kind == FREE and joint.parent == WORLD_LINK)


def framed_wrenches(model: Model, f_ext: Wrenches | None, frame: str, rows: int) -> tuple[Array | None, int]:
    """Return external wrenches (…, rows, n_links, 6), and their frame as a number for the kernels."""
    kernel_frame = KERNEL_FRAMES[check_frame(frame, "f_ext_frame")]
    return wrenches(model, f_ext, "f_ext_derivatives", (rows,)), kernel_frame if f_ext is not None else KERNEL_FRAMES[LOCAL]


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
        raise ShapeError('with base_frame="world" all six coordinates of the base must be prescribed, or none, got '
                         f"{int(prescribed.sum())} of them")


# higher order -----------------------------------------------------------------------------------------------------------

_NO_BODY = -1      # no body whose coordinates are spatial


def higher_order_inverse_dynamics(model: Model, q: ArrayLike, v_derivatives: ArrayLike, *,
                                  f_ext_derivatives: Wrenches | None = None, f_ext_frame: Frame = "local", passive: bool = True,
                                  base_frame: BaseFrame = "local", on_error: OnError = "raise") -> Array:
    """Generalized forces along a motion and their time derivatives up to order r, exact, in O(n r^2).

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints have unit quaternions x y z w.
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
    if on_error != "raise":
        return handle_failed_states(higher_order_inverse_dynamics, locals())
    passive = bool(passive)
    check_without_elements(model, passive, "higher_order_inverse_dynamics")
    if model.nc:
        reduced = reduced_model(model, "higher_order_inverse_dynamics")
        rows = derivative_rows(v_derivatives, "v_derivatives", model.nv, 2)
        rates = closed_rates(reduced, "v_derivatives", as_array(v_derivatives, "v_derivatives", (rows, model.nv)), 1)
        tau: Array = higher_order_inverse_dynamics(model.spanning_tree(), closed_motion(reduced, q)[0], rates,
                                                   f_ext_derivatives=f_ext_derivatives, f_ext_frame=f_ext_frame, passive=passive,
                                                   base_frame=base_frame)
        return tau @ reduced.elimination.projection
    if f_ext_derivatives is None and base_frame == f_ext_frame == LOCAL and isinstance(v_derivatives, np.ndarray):
        try:                                  # one state: generated code checks all arguments
            result: Array | None = model.single_calls["higher_order_inverse", v_derivatives.shape[-2], passive](q, v_derivatives)
            if result is not None:
                return result
        except (IndexError, KeyError, TypeError):
            pass
    rows = derivative_rows(v_derivatives, "v_derivatives", model.nv, 2)
    F, kernel_frame = framed_wrenches(model, f_ext_derivatives, f_ext_frame, rows - 1)
    v, joint = as_array(v_derivatives, "v_derivatives", (rows, model.nv)), spatial_base_joint(model, base_frame)
    if joint is not None:
        pose = link_pose(model, q, joint.child)
        check_finite("v_derivatives", v, model.v_names)
        v = to_body_coordinates(pose, joint, v)

    tau = evaluate(model, ("higher_order_inverse", rows, passive) if F is None else None, higher_order_inverses,
                   lambda n, nq, nv, n_links: higher_order_inverse_workspace_size(n, nq, nv, n_links, rows),
                   {"q": q, "v_derivatives": v, "f_ext_derivatives": F}, (rows - 1, model.nv), static_arguments=(rows,),
                   options=(kernel_frame, passive))
    if joint is not None:
        tau[..., joint.v] = spatial_wrenches(pose, v[..., :-1, joint.v], tau[..., joint.v])
    return tau


def higher_order_forward_dynamics(  # noqa: PLR0913 - independent options of a public call
        model: Model, q: ArrayLike, v: ArrayLike, tau_derivatives: ArrayLike, *, f_ext_derivatives: Wrenches | None = None,
        f_ext_frame: Frame = "local", passive: bool = True, base_frame: BaseFrame = "local",
        on_error: OnError = "raise") -> Array:
    """Accelerations under generalized forces and their time derivatives up to order r, exact, in O(n r^2).

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
    if on_error != "raise":
        return handle_failed_states(higher_order_forward_dynamics, locals())
    if model.nc:
        reduced_model(model, "higher_order_forward_dynamics")
    passive = bool(passive)
    check_without_elements(model, passive, "higher_order_forward_dynamics")
    if f_ext_derivatives is None and base_frame == f_ext_frame == LOCAL and isinstance(tau_derivatives, np.ndarray):
        try:
            a: Array | None = model.single_calls["higher_order_forward", len(tau_derivatives), passive](q, v, tau_derivatives)
            if a is not None:
                return a
        except (KeyError, TypeError):
            pass
    rows = derivative_rows(tau_derivatives, "tau_derivatives", model.nv, 1)
    plain = f_ext_derivatives is None and base_frame == f_ext_frame == LOCAL
    if rows == 1 and np.ndim(q) > 1 and plain and not model.nc:                      # a tenth faster
        with suppress(ShapeError, ConfigurationError):                   # the code below raises them with the right names
            return forward_dynamics(model, q, v, np.asarray(tau_derivatives)[..., 0, :], passive=passive)[..., None, :]
    inputs = {"q": q, "v": v, "a_derivatives": NONE, "tau_derivatives": tau_derivatives}
    return _hybrid(model, ("higher_order_forward", rows, passive), inputs, no_prescribed_mask(model), rows,
                   _Options(f_ext_derivatives, f_ext_frame, passive, base_frame))[0]


def higher_order_hybrid_dynamics(  # noqa: PLR0913 - independent options of a public call
        model: Model, q: ArrayLike, v: ArrayLike, a_derivatives: ArrayLike, tau_derivatives: ArrayLike, prescribed: ArrayLike, *,
        f_ext_derivatives: Wrenches | None = None, f_ext_frame: Frame = "local", passive: bool = True,
        base_frame: BaseFrame = "local", on_error: OnError = "raise") -> tuple[Array, Array]:
    """Accelerations and generalized forces with their time derivatives, given one of the two for each coordinate.

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
    if on_error != "raise":
        return handle_failed_states(higher_order_hybrid_dynamics, locals())
    mask = as_mask(prescribed, model.nv)
    check_without_elements(model, bool(passive), "higher_order_hybrid_dynamics")
    rows = derivative_rows(a_derivatives, "a_derivatives", model.nv, 1)
    if derivative_rows(tau_derivatives, "tau_derivatives", model.nv, 1) != rows:
        raise ShapeError(f"a_derivatives has {rows} rows and tau_derivatives {np.shape(tau_derivatives)[-2]}: expected the same "
                         "number")
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
    if model.nc:
        return _coupled_hybrid(reduced_model(model, "higher_order_hybrid_dynamics", prescribed=prescribed), model, inputs,
                               prescribed, rows, options)
    nv, joint, body = model.nv, spatial_base_joint(model, options.base_frame), _NO_BODY
    F, kernel_frame = framed_wrenches(model, options.f_ext, options.f_ext_frame, rows)
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

    all_a, all_tau = evaluate_hybrid(model, key, higher_order_hybrids,
                                     lambda n, nq, nv, n_links: higher_order_hybrid_workspace_size(n, nq, nv, n_links, rows + 1),
                                     states, (rows, nv), prescribed, static_arguments=(rows + 1, prescribed),
                                     options=(kernel_frame, body, options.passive))
    if joint is not None:                                   # inputs are returned bit for bit
        base = joint.v
        twists = np.concatenate([np.broadcast_to(motion[..., :1, base], (*all_a.shape[:-2], 1, 6)), all_a[..., base]], axis=-2)
        if prescribed[base].any():
            all_a[..., base], all_tau[..., base] = a[..., base], spatial_wrenches(pose, twists[..., :-1, :], all_tau[..., base])
        else:
            all_a[..., base], all_tau[..., base] = spatial_twists(pose, twists)[..., 1:, :], tau[..., base]
    return all_a, all_tau


def _coupled_hybrid(reduced: ReducedModel, model: Model, inputs: dict[str, Any], prescribed: Mask, rows: int,
                    options: _Options) -> tuple[Array, Array]:
    """Return the results of `_hybrid` for a robot with couplings, order by order.

    The k-th derivative of inverse dynamics ID is C a^(k) + terms of lower orders, with one matrix C for all orders. So
    C a_v^(k) = (tau^(k) - ID^(k) without a_v^(k))_v. C has the columns v of N^T M N.
    """
    nv, N, tree = model.nv, reduced.elimination.projection, model.spanning_tree()
    u, free = prescribed & reduced.is_independent, ~reduced.mask
    F = wrenches(model, options.f_ext, "f_ext_derivatives", (rows,))
    q, v = closed_motion(reduced, inputs["q"], inputs["v"])
    rest = np.zeros(nv)
    hybrid_dynamics(model, q, rest, rest, rest, prescribed)             # raises ComputationError where C has no inverse
    tau = np.where(prescribed, 0.0, as_array(inputs["tau_derivatives"], "tau_derivatives", (rows, nv)))
    check_finite("tau_derivatives", tau, model.v_names)
    a = np.zeros((rows, nv))
    if inputs["a_derivatives"] is not NONE:
        read = np.where(prescribed, as_array(inputs["a_derivatives"], "a_derivatives", (rows, nv)), 0.0)
        a = np.where(u, read, 0.0) @ N.T
        closed_rates(reduced, "a_derivatives", np.where(prescribed, read, a), 2)
    lead = common_leading_axes(("q", q, 1), ("v", v, 1), ("tau_derivatives", tau, 2), ("a_derivatives", a, 2),
                               *([] if F is None else [("f_ext_derivatives", F, 3)]))
    a, tau = (np.broadcast_to(x, (*lead, rows, nv)).copy() for x in (a, tau))
    v = np.broadcast_to(v, (*lead, nv))
    C = N.T @ _mass_matrix_in_frame(tree, q, options.base_frame) @ N[:, free]
    followers = np.where(reduced.is_independent, 0.0, tau)
    for k in range(rows):
        motion = np.concatenate([v[..., None, :], a[..., :k + 1, :]], axis=-2)
        force = higher_order_inverse_dynamics(tree, q, motion, f_ext_derivatives=None if F is None else F[..., :k + 1, :, :],
                                              f_ext_frame=options.f_ext_frame, passive=options.passive,
                                              base_frame=options.base_frame)[..., k, :]
        force = (force - followers[..., k, :]) @ N
        a_v = solve_positive_definite(C[..., free, :], (tau[..., k, :] - force)[..., free])
        a[..., k, free] = a_v
        a[..., k, :] = np.where(reduced.is_independent, a[..., k, :], 0.0) @ N.T
        tau[..., k, u] = (force + (C @ a_v[..., None])[..., 0])[..., u]
    return a, tau


def _mass_matrix_in_frame(tree: Model, q: Array, base_frame: BaseFrame) -> Array:
    """Return the mass matrix (…, nv, nv) of a tree whose base has body coordinates or spatial ones."""
    M, joint = mass_matrix(tree, q), spatial_base_joint(tree, base_frame)
    if joint is None:
        return M
    pose = link_pose(tree, q, joint.child)
    body = to_body_coordinates(pose[..., None, :, :], joint, np.eye(tree.nv)[:, None, :])[..., 0, :]       # a coordinate per row
    in_frame: Array = body @ M @ np.swapaxes(body, -1, -2)
    return in_frame
