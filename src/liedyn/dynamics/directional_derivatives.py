"""Directional derivatives of inverse, forward and hybrid dynamics, and derivatives with respect to parameters of the model."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from liedyn.arrays import Array, ArrayLike, Mask, OnError, Wrenches
from liedyn.dynamics.batching.arrays import (
    NONE,
    as_array,
    as_mask,
    broadcast_states,
    common_leading_axes,
    with_arrays,
    wrenches,
)
from liedyn.dynamics.batching.calls import check_finite, raise_for_code, run
from liedyn.dynamics.batching.failed_states import handle_failed_states
from liedyn.dynamics.constraints.couplings import ReducedModel, closed_motion, reduced_model, solve_positive_definite
from liedyn.dynamics.dynamics import hybrid_dynamics, mass_matrix
from liedyn.dynamics.model_parameters import parameter_names, parameter_tangent, tangent_sizes
from liedyn.dynamics.singular_joints import check_joints_move_inertia
from liedyn.errors import ShapeError
from liedyn.kernels.directional_derivatives import (
    hybrid_directions,
    hybrid_directions_workspace_size,
    inverse_directions,
    inverse_directions_workspace_size,
)
from liedyn.model.model import Model

Results = TypeVar("Results", bound=tuple[Array, ...])


def inverse_dynamics_directional(  # noqa: PLR0913 - independent options of a public call
        model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, dq: ArrayLike | None = None, dv: ArrayLike | None = None,
        da: ArrayLike | None = None, f_ext: Wrenches | None = None, df_ext: Wrenches | None = None,
        parameters: Mapping[str, ArrayLike] | None = None, passive: bool = True,
        on_error: OnError = "raise") -> tuple[Array, Array]:
    """Generalized forces and their derivative with respect to a scalar p on which all arguments may depend, O(n).

    Several directions of one state are computed eight at a time if dq, … have leading axes and q, v, a have none.

    Parameters
    ----------
    model : Model
    q, v, a, f_ext, passive
        As in `inverse_dynamics`.
    dq : (..., nv) array, optional
        dq/dp as a tangent vector: of ball and free joints the right-multiplied one, like v (default: zero).
    dv, da : (..., nv) arrays, optional
        dv/dp and da/dp, component by component.
    df_ext : (..., n_links, 6) array or {link name: (..., 6) array}, optional
        d(f_ext)/dp, component by component in the link frames.
    parameters : {name: (...) array}, optional
        Derivatives of model parameters with respect to p; names as in `parameter_names`.
    on_error
        As in `inverse_dynamics`; a state and its directions fail together.

    Returns
    -------
    tau, dtau : (..., nv) arrays
        Both have the leading axes of all arguments, except that tau of a state without leading axes has none.

    Raises
    ------
    ShapeError, ConfigurationError, NameLookupError

    Notes
    -----
    Source: K1 Table 5. Passive forces depend on q, v and their parameters; damping that the model does not have counts
    when its rate is given.

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> tau, dtau = ld.inverse_dynamics_directional(model, q, v, [0.0, 1.0], dq=[1.0, 0.0], parameters={"mass.tip": 1.0})
    >>> dtau.round(3)
    array([25.045,  6.661])
    """
    if on_error != "raise":
        return _remove_leading_axes(handle_failed_states(inverse_dynamics_directional, locals()), 1, (q, v, a), f_ext)
    if model.nc:
        reduced_model(model, "inverse_dynamics_directional", "constrained_inverse_derivatives")
    inputs = _arrange(model, {"q": q, "v": v, "a": a}, f_ext, {"dq": dq, "dv": dv, "da": da}, df_ext, parameters, passive)
    tau, dtau = _inverse(model, inputs, passive)
    return _restore_leading_axes(tau, inputs), dtau.reshape(*inputs.lead, model.nv)


def forward_dynamics_directional(  # noqa: PLR0913 - independent options of a public call
        model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, dq: ArrayLike | None = None, dv: ArrayLike | None = None,
        dtau: ArrayLike | None = None, f_ext: Wrenches | None = None, df_ext: Wrenches | None = None,
        parameters: Mapping[str, ArrayLike] | None = None, passive: bool = True,
        on_error: OnError = "raise") -> tuple[Array, Array]:
    """Accelerations and their derivative with respect to a scalar p on which all arguments may depend, O(n).

    Parameters as in `inverse_dynamics_directional`, with dtau (..., nv) in place of da. Returns a, da (..., nv). Raises also
    ComputationError where a joint's articulated inertia vanishes. Source: K1 Table 6, in the form of
    `kernels.directional_derivatives`.

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> a, da = ld.forward_dynamics_directional(model, q, v, [0.0, 0.5], dtau=[1.0, 0.0])
    >>> da.round(3)
    array([ 1.631, -4.027])
    """
    if on_error != "raise":
        return _remove_leading_axes(handle_failed_states(forward_dynamics_directional, locals()), 1, (q, v, tau), f_ext)
    if model.nc:
        reduced_model(model, "forward_dynamics_directional", "constrained_forward_derivatives")
    inputs = _arrange(model, {"q": q, "v": v, "a": NONE, "tau": tau}, f_ext, {"dq": dq, "dv": dv, "da": None, "dtau": dtau},
                      df_ext, parameters, passive)
    a, _, out = _hybrid(model, inputs, np.zeros(model.nv, dtype=bool), passive)
    return _restore_leading_axes(a, inputs), np.ascontiguousarray(out[..., :model.nv]).reshape(*inputs.lead, model.nv)


def hybrid_dynamics_directional(  # noqa: PLR0913 - independent options of a public call
        model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike, prescribed: ArrayLike, *,
        dq: ArrayLike | None = None, dv: ArrayLike | None = None, da: ArrayLike | None = None, dtau: ArrayLike | None = None,
        f_ext: Wrenches | None = None, df_ext: Wrenches | None = None, parameters: Mapping[str, ArrayLike] | None = None,
        passive: bool = True, on_error: OnError = "raise") -> tuple[Array, Array, Array, Array]:
    """All accelerations and generalized forces, and their derivatives with respect to a scalar p of the arguments, O(n).

    Parameters
    ----------
    model, q, v, a, tau, prescribed, f_ext, passive
        As in `hybrid_dynamics`.
    da, dtau : (..., nv) arrays, optional
        da/dp, read where prescribed; dtau/dp, read where not. The rest is ignored, NaN included; default: zero.
    dq, dv, df_ext, parameters, on_error
        As in `inverse_dynamics_directional`.

    Returns
    -------
    a, tau, da, dtau : (..., nv) arrays
        New arrays, all complete; leading axes as in `inverse_dynamics_directional`.

    Raises
    ------
    ShapeError, ConfigurationError, ComputationError, NameLookupError

    Notes
    -----
    Source: K1 Table 7, in the form of `kernels.directional_derivatives`.

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> *_, da, dtau = ld.hybrid_dynamics_directional(model, q, v, [0, 0], [0, 0.5], [True, False], dq=[1, 0])
    >>> da.round(3), dtau.round(3)
    (array([  0.   , -14.637]), array([6.885, 0.   ]))
    """
    if on_error != "raise":
        return _remove_leading_axes(handle_failed_states(hybrid_dynamics_directional, locals()), 2, (q, v, a, tau), f_ext)
    if model.nc:
        reduced_model(model, "hybrid_dynamics_directional", "constrained_hybrid_derivatives")
    mask = as_mask(prescribed, model.nv)

    def read(name: str, x: ArrayLike | None, is_input: Mask) -> Array | None:
        return None if x is None else np.where(is_input, as_array(x, name, (model.nv,)), 0.0)

    state = {"q": q, "v": v, "a": read("a", a, mask), "tau": read("tau", tau, ~mask)}
    rates = {"dq": dq, "dv": dv, "da": read("da", da, mask), "dtau": read("dtau", dtau, ~mask)}
    inputs = _arrange(model, state, f_ext, rates, df_ext, parameters, passive)
    all_a, all_tau, out = _hybrid(model, inputs, mask, passive)
    all_da, all_dtau = (np.ascontiguousarray(x).reshape(*inputs.lead, model.nv)
                        for x in (out[..., :model.nv], out[..., model.nv:]))
    return _restore_leading_axes(all_a, inputs), _restore_leading_axes(all_tau, inputs), all_da, all_dtau


def parameter_derivatives(  # noqa: PLR0913 - independent options of a public call
        model: Model, q: ArrayLike, v: ArrayLike, x: ArrayLike, names: Sequence[str] | str | None = None, *,
        of: Literal["inverse", "forward", "hybrid"] = "inverse", prescribed: ArrayLike | None = None,
        f_ext: Wrenches | None = None, passive: bool = True, on_error: OnError = "raise") -> Array:
    """Derivatives (..., nv, len(names)) of inverse, forward or hybrid dynamics with respect to model parameters, O(n) each.

    Parameters
    ----------
    model : Model
    q, v, f_ext, passive
        As in `inverse_dynamics`.
    x : (..., nv) array
        The input. `of` "inverse": a; "forward": tau; "hybrid": a where prescribed and tau elsewhere.
    names : sequence of str, optional
        Parameters as in `parameter_names`; default: all.
    of : {"inverse", "forward", "hybrid"}
        Row k is the derivative of tau[k], of a[k], or of tau[k] where prescribed and a[k] elsewhere.
    prescribed : (nv,) bool array
        For "hybrid".
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    derivatives : (..., nv, len(names)) array
        [k, j]: derivative of the result at coordinate k by names[j]; units as in the table of `model_parameters`.

    Raises
    ------
    ShapeError, ConfigurationError, ComputationError, NameLookupError

    Notes
    -----
    Source: K1 Tables 5-7, at constant state. Eight parameters of one state or eight states at a time.

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> ld.parameter_derivatives(model, q, v, [0.0, 1.0], ["mass.lower", "damping.elbow"]).round(3)
    array([[4.253, 0.   ],
           [0.64 , 0.5  ]])
    """
    if on_error != "raise":
        return handle_failed_states(parameter_derivatives, locals())
    if model.nc:
        reduced_model(model, "parameter_derivatives")
    names = parameter_names(model) if names is None else (names,) if isinstance(names, str) else tuple(names)
    if of not in ("inverse", "forward", "hybrid") or (of == "hybrid") != (prescribed is not None):
        raise ShapeError(f"of must be 'inverse', 'forward', or 'hybrid' with prescribed, got {of!r} with"
                         f"{'out' if prescribed is None else ''} prescribed")
    rows = np.zeros((len(names), sum(tangent_sizes(model))))
    for row, name in zip(rows, names, strict=True):
        rates = parameter_tangent(model, name, passive)
        row[rates.at] = rates.values
    x = as_array(x, {"inverse": "a", "forward": "tau"}.get(of, "x"), (model.nv,))
    if of == "inverse":
        inputs = _arrange(model, {"q": q, "v": v, "a": x}, f_ext, {"dq": None, "dv": None, "da": None}, None, None, passive)
        out = _inverse(model, _parameter_directions(model, inputs, rows), passive)[1]
    else:
        mask = np.zeros(model.nv, dtype=bool) if prescribed is None else as_mask(prescribed, model.nv)
        inputs = _arrange(model, {"q": q, "v": v, "a": np.where(mask, x, 0.0), "tau": np.where(mask, 0.0, x)}, f_ext,
                          {"dq": None, "dv": None, "da": None, "dtau": None}, None, None, passive)
        out = _hybrid(model, _parameter_directions(model, inputs, rows), mask, passive)[2]
        out = np.where(mask, out[..., model.nv:], out[..., :model.nv])
    out = out.swapaxes(0, 1) if inputs.is_single else out
    return np.ascontiguousarray(np.moveaxis(out, 0, -1)).reshape(*inputs.lead, model.nv, len(names))


_NONE = np.empty((1, 1, 0))


# arguments --------------------------------------------------------------------------------------------------------
class _DirectionalInputs(NamedTuple):
    """State and directions as the kernels need them: K directions of each of N states, or N directions of one state."""

    is_single: bool
    lead: tuple[int, ...]
    state: dict[str, Array]     # (N, …), or (1, …) of one
    n_states: int                    # N
    n_directions: int                # K
    motion: Array               # (K or 1, N or 1, …)
    df_ext: Array               # the same; without columns if there is none
    changes: Array


def _arrange(model: Model, state: dict[str, Any], f_ext: Wrenches | None, moved: dict[str, ArrayLike | None],
             df_ext: Wrenches | None, parameters: Mapping[str, ArrayLike] | None, passive: bool) -> _DirectionalInputs:
    state_lead, state = broadcast_states(model, {**state, "f_ext": f_ext})
    changes, twists = _parameter_tangents(model, parameters, passive)
    dF = wrenches(model, df_ext, "df_ext")
    if dF is not None:
        check_finite("df_ext", dF, n_axes=2)
    if f_ext is not None and twists is not None:                        # a wrench moves with its link
        change = _wrench_derivative(twists, state["f_ext"].reshape(*state_lead, len(model.link_names), 6))
        dF = change + (0.0 if dF is None else dF)
    rates = {name: as_array(x, name, (model.nv,)) for name, x in moved.items() if x is not None}
    for name, x in rates.items():
        check_finite(name, x, model.v_names)
    named = [(name, x, 1) for name, x in rates.items()]
    named += [(name, x, axes) for name, x, axes in (("df_ext", dF, 2), ("parameters", changes, 1)) if x is not None]
    named += [("q", state["q"].reshape(*state_lead, model.nq), 1)] if state_lead else []
    lead = common_leading_axes(*named)
    count = math.prod(lead)

    def spread(x: Array, last: int) -> Array:
        """Return (1, N, …), with one row if it is the same for all."""
        return (_broadcast_rows(x, last, lead, count) if x.ndim > last else x.reshape(1, -1))[None]

    motion = np.zeros((1, count if any(x.ndim > 1 for x in rates.values()) else 1, len(moved) * model.nv))
    for k, name in enumerate(moved):
        if name in rates:
            motion[..., k * model.nv:(k + 1) * model.nv] = spread(rates[name], 1)
    if state_lead:
        state = {name: _broadcast_rows(x.reshape(*state_lead, x.shape[1]), 1, lead, count) for name, x in state.items()}
    return _DirectionalInputs(not state_lead, lead, state, *_size(not state_lead, count), motion,
                              _NONE if dF is None else spread(dF, 2), _NONE if changes is None else spread(changes, 1))


def _size(is_single: bool, count: int) -> tuple[int, int]:
    """Return N and K. For one state without directions N is 1, the state itself."""
    return (max(count, 1), min(count, 1)) if is_single else (count, 1)


def _parameter_directions(model: Model, inputs: _DirectionalInputs, rows: Array) -> _DirectionalInputs:
    """Return the same state with one direction for each row of parameter rates (K, …), and no other directions."""
    size = tangent_sizes(model)[0]
    changes, twists, df_ext = np.ascontiguousarray(rows[:, None, :size]), rows[:, size:], inputs.df_ext
    if inputs.state["f_ext"].size and twists.any():
        n = len(model.link_names)
        df_ext = _wrench_derivative(twists.reshape(-1, 1, n, 6),
                                    inputs.state["f_ext"].reshape(1, -1, n, 6)).reshape(len(rows), -1, 6 * n)
    if not inputs.is_single:
        return inputs._replace(n_directions=len(rows), df_ext=df_ext, changes=changes)
    n_states, n_directions = _size(True, len(rows))
    return inputs._replace(n_states=n_states, n_directions=n_directions, df_ext=df_ext.swapaxes(0, 1),
                           changes=changes.swapaxes(0, 1))


def _parameter_tangents(model: Model, parameters: Mapping[str, ArrayLike] | None,
                        passive: bool) -> tuple[Array, Array | None] | tuple[None, None]:
    """Return rates (…, parameter_tangent_size) of the kernels' arrays, and twists (…, n_links, 6) of link frames or None."""
    if not parameters and (parameters is None or isinstance(parameters, Mapping)):
        return None, None
    if not isinstance(parameters, Mapping):
        raise ShapeError(f"parameters must be a mapping from names to rates, got {type(parameters).__name__}")
    inputs = {name: as_array(x, f"parameters[{name!r}]", ()) for name, x in parameters.items()}
    for name, x in inputs.items():
        check_finite(f"parameters[{name!r}]", x, n_axes=0)
    size, twists = tangent_sizes(model)
    out = np.zeros((*common_leading_axes(*((f"parameters[{name!r}]", x, 0) for name, x in inputs.items())), size + twists))
    for name, x in inputs.items():
        rates = parameter_tangent(model, name, passive)
        out[..., rates.at] += x[..., None] * rates.values
    links = out[..., size:].reshape(*out.shape[:-1], twists // 6, 6)
    return np.ascontiguousarray(out[..., :size]), links if links.any() else None


def _wrench_derivative(x: Array, F: Array) -> Array:
    """Return -ad*_x F: the change of a link's wrench in the frame of the body, for the twist x of the link (K1 (60))."""
    return np.concatenate([np.cross(x[..., :3], F[..., :3]) + np.cross(x[..., 3:], F[..., 3:]), np.cross(x[..., :3], F[..., 3:])],
                          axis=-1)


def _broadcast_rows(x: Array, state_axes: int, lead: tuple[int, ...], count: int) -> Array:
    """Return (count, …), C-contiguous and writeable, as entry points need it."""
    shape = lead + x.shape[x.ndim - state_axes:]
    return (x if x.shape == shape else np.broadcast_to(x, shape).copy()).reshape(count, math.prod(x.shape[x.ndim - state_axes:]))


def _remove_leading_axes(results: Results, count: int, state: tuple[ArrayLike, ...], f_ext: Wrenches | None) -> Results:
    """Return the results with the axes that `handle_failed_states` expects.

    The first `count` results of one state have no leading axes, whatever axes its directions have.
    """
    wrenches = [(F, 1) for F in f_ext.values()] if isinstance(f_ext, Mapping) else [] if f_ext is None else [(f_ext, 2)]
    if any(np.ndim(x) > state_axes for x, state_axes in [*((x, 1) for x in state), *wrenches]):
        return results
    rows = [x.reshape(-1, x.shape[-1]) for x in results[:count]]
    return with_arrays(results, (*(x[np.argmax(np.isfinite(x).all(axis=1))] for x in rows), *results[count:]))


def _restore_leading_axes(x: Array, inputs: _DirectionalInputs) -> Array:
    return x[0] if inputs.is_single else x.reshape(*inputs.lead, x.shape[-1])


# kernels ----------------------------------------------------------------------------------------------------------
def _inverse(model: Model, inputs: _DirectionalInputs, passive: bool) -> tuple[Array, Array]:
    """Return tau (N, nv) or (1, nv), and dtau (K, N, nv)."""
    if model.nc:
        return _coupled_inverse(reduced_model(model, "inverse_dynamics_directional"), model, inputs, passive)
    tau, dtau = np.empty(inputs.state["v"].shape), np.empty((inputs.n_directions, inputs.n_states, model.nv))
    code = run(inverse_directions, model, inverse_directions_workspace_size(*model.sizes), (),
               (*inputs.state.values(), bool(passive), inputs.motion, inputs.df_ext, inputs.changes, tau, dtau), inputs.n_states)
    raise_for_code(model, code, None, **inputs.state)
    return tau, dtau


def _hybrid(model: Model, inputs: _DirectionalInputs, prescribed: Mask, passive: bool) -> tuple[Array, Array, Array]:
    """Return a, tau (N, nv) or (1, nv), and [da, dtau] (K, N, 2nv)."""
    if model.nc:
        reduced = reduced_model(model, "hybrid_dynamics_directional", prescribed=prescribed)
        return _coupled_hybrid(reduced, model, inputs, prescribed, passive)
    q, v, a, tau, F = inputs.state.values()
    a, tau = a.copy() if a.size else np.zeros(tau.shape), tau.copy()
    out = np.empty((inputs.n_directions, inputs.n_states, 2 * model.nv))
    if inputs.n_states:
        check_joints_move_inertia(model, prescribed)
    code = run(hybrid_directions, model, hybrid_directions_workspace_size(*model.sizes), (prescribed,),
               (q, v, a, tau, F, bool(passive), inputs.motion, inputs.df_ext, inputs.changes, out), inputs.n_states)
    raise_for_code(model, code, prescribed, **inputs.state)
    return a, tau, out


# Robots with couplings: K1 Tables 5-7 for the open tree, reduced with N (see `dynamics.constraints.couplings`) -----------
def _coupled_inverse(reduced: ReducedModel, model: Model, inputs: _DirectionalInputs, passive: bool) -> tuple[Array, Array]:
    """Return the results of `_inverse`, which are zero at followers."""
    q, v, a = closed_motion(reduced, *(inputs.state[name] for name in ("q", "v", "a")))
    N = reduced.elimination.projection
    tau, dtau = _inverse(model.spanning_tree(), inputs._replace(state=inputs.state | {"q": q, "v": v, "a": a},
                                                                motion=_expanded(inputs.motion, N, 3)), passive)
    return tau @ N, dtau @ N


def _coupled_hybrid(reduced: ReducedModel, model: Model, inputs: _DirectionalInputs, prescribed: Mask,
                    passive: bool) -> tuple[Array, Array, Array]:
    """Return the results of `_hybrid`: with ID at the solution, da_v = M_vv^-1 (dtau - dID)_v, dtau_u = dID_u + M_uv da_v."""
    q, v, a, tau, F = inputs.state.values()
    tree, N, nv = model.spanning_tree(), reduced.elimination.projection, model.nv
    u, free = prescribed & reduced.is_independent, ~reduced.mask
    wrench = F.reshape(-1, len(model.link_names), 6) if F.size else None
    a, tau = hybrid_dynamics(model, q, v, a if a.size else np.zeros(tau.shape), tau, prescribed, f_ext=wrench, passive=passive)
    q, v = closed_motion(reduced, q, v)
    dq, dv, da, dtau = np.split(inputs.motion, 4, axis=-1)
    da, dtau = np.where(u, da, 0.0) @ N.T, np.where(prescribed, 0.0, dtau)
    state = {"q": q, "v": v, "a": a, "f_ext": F}
    motion = np.ascontiguousarray(np.concatenate([dq @ N.T, dv @ N.T, da], axis=-1))
    _, forces = _inverse(tree, inputs._replace(state=state, motion=motion), passive)
    forces = (forces - np.where(reduced.is_independent, 0.0, dtau)) @ N                # forces of followers act on their drivers
    M = N.T @ mass_matrix(tree, q) @ N
    da_v = solve_positive_definite(M[:, free][:, :, free], (dtau - forces)[..., free])
    out = np.empty((*forces.shape[:-1], 2 * nv))
    all_da = np.broadcast_to(da, forces.shape).copy()
    all_da[..., free] = da_v
    out[..., :nv] = all_da @ N.T
    out[..., nv:] = np.where(u, forces + (M[:, :, free] @ da_v[..., None])[..., 0], dtau)
    return a, tau, out


def _expanded(motion: Array, N: Array, parts: int) -> Array:
    """Return directions in which followers move with their independent coordinates. motion (K, N, parts nv)."""
    return np.ascontiguousarray(np.concatenate([x @ N.T for x in np.split(motion, parts, axis=-1)], axis=-1))
