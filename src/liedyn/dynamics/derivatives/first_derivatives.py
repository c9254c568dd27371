"""Inverse, forward and hybrid dynamics differentiated by q, v and the inputs."""
from __future__ import annotations

from liedyn.dynamics.calling.annotations import ArrayLike, Matrices, OnError, Wrenches
from liedyn.dynamics.calling.arguments import NONE, as_mask
from liedyn.dynamics.calling.calls import by_line, computed
from liedyn.dynamics.calling.each_state import each_state
from liedyn.dynamics.derivatives.derivative_results import ForwardDerivatives, HybridDerivatives, InverseDerivatives
from liedyn.dynamics.hybrid import none_prescribed
from liedyn.dynamics.open_tree import refuse_constraints
from liedyn.kernels.derivatives.hybrid_derivatives import (
    hybrid_derivatives_batch,
    hybrid_derivatives_batch_memory,
)
from liedyn.kernels.derivatives.inverse_derivatives import inverse_derivatives_batch, inverse_derivatives_batch_memory
from liedyn.model.model import Model


def inverse_dynamics_derivatives(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, f_ext: Wrenches | None = None,
                                 passive: bool = True, on_error: OnError = "raise",
                                 out: Matrices | None = None) -> InverseDerivatives:
    """Derivatives of `inverse_dynamics` by q, v and a: O(n depth).

    Parameters
    ----------
    model, q, v, a, f_ext, passive
        As in `inverse_dynamics`. f_ext stays constant in its link's frame; for derivatives by it see `by_wrench`.
    on_error
        As in `inverse_dynamics`.
    out
        Three arrays (..., nv, nv) for the results, as in `inverse_dynamics`.

    Returns
    -------
    InverseDerivatives
        dtau_dq, dtau_dv, M, each (..., nv, nv). By q: d/de at 0 of tau(q (+) e d), with (+) as in `integrate`; v and a keep
        their components.

    Raises
    ------
    ShapeError, ConfigurationError

    Notes
    -----
    Source: K1 Table 5, for all coordinates at once; see `kernels.derivatives.inverse_derivatives`.

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> dtau_dq, dtau_dv, M = ld.inverse_dynamics_derivatives(model, q, v, [0.0, 1.0])
    >>> dtau_dq.round(3)
    array([[18.938,  4.367],
           [ 4.88 ,  5.371]])
    """
    if model.nc:
        refuse_constraints(model, "inverse_dynamics_derivatives", "constrained_inverse_derivatives")
    if on_error != "raise":
        return each_state(inverse_dynamics_derivatives, locals())
    key = "inverse_dynamics_derivatives", bool(passive)
    matrices = by_line(model, key, out, q, v, a) if f_ext is None else None
    if matrices is None:
        matrices = computed(model, key, inverse_derivatives_batch, inverse_derivatives_batch_memory,
                            {"q": q, "v": v, "a": a, "f_ext": f_ext}, *_shapes(model), options=(bool(passive),), out=out)
    return InverseDerivatives(*matrices)


def forward_dynamics_derivatives(model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, f_ext: Wrenches | None = None,
                                 passive: bool = True, on_error: OnError = "raise",
                                 out: Matrices | None = None) -> ForwardDerivatives:
    """Derivatives of `forward_dynamics` by q, v and tau.

    Parameters
    ----------
    model, q, v, tau, f_ext, passive
        As in `forward_dynamics`. f_ext stays constant in its link's frame; for derivatives by it see `by_wrench`.
    on_error
        As in `inverse_dynamics`.
    out
        Three arrays (..., nv, nv) for the results, as in `inverse_dynamics`.

    Returns
    -------
    ForwardDerivatives
        da_dq, da_dv, M_inverse, each (..., nv, nv). By q: d/de at 0 of a(q (+) e d), with (+) as in `integrate`; v and tau
        keep their components.

    Raises
    ------
    ShapeError, ConfigurationError
    ComputationError
        If a joint's articulated inertia vanishes.

    Notes
    -----
    ``da = -M^-1 dID`` with inverse dynamics ID at the solution (K1 Table 6, for all coordinates at once).

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> ld.forward_dynamics_derivatives(model, q, v, [0.0, 0.5]).da_dq.round(3)
    array([[-11.227,  10.552],
           [ 13.09 , -39.625]])
    """
    if model.nc:
        refuse_constraints(model, "forward_dynamics_derivatives", "constrained_forward_derivatives")
    if on_error != "raise":
        return each_state(forward_dynamics_derivatives, locals())
    key = "forward_dynamics_derivatives", bool(passive)
    matrices = by_line(model, key, out, q, v, tau) if f_ext is None else None
    if matrices is None:
        given = {"q": q, "v": v, "a": NONE, "tau": tau, "f_ext": f_ext}
        matrices = _solved(model, key, given, none_prescribed(model), passive, out)
    return ForwardDerivatives(*matrices)


def hybrid_dynamics_derivatives(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike, prescribed: ArrayLike, *,
                                f_ext: Wrenches | None = None, passive: bool = True, on_error: OnError = "raise",
                                out: Matrices | None = None) -> HybridDerivatives:
    """Derivatives of `hybrid_dynamics` by q, v and the inputs.

    Parameters
    ----------
    model, q, v, a, tau, prescribed, f_ext, passive
        As in `hybrid_dynamics`.
    on_error
        As in `inverse_dynamics`.
    out
        Three arrays (..., nv, nv) for the results, as in `inverse_dynamics`.

    Returns
    -------
    HybridDerivatives
        dy_dq, dy_dv, dy_du, each (..., nv, nv), of what comes out: tau where prescribed, a elsewhere. `split` makes da_dq,
        da_dv, da_du, dtau_dq, dtau_dv, dtau_du of them. Tangent convention as in `forward_dynamics_derivatives`.

    Raises
    ------
    ShapeError, ConfigurationError, ComputationError

    Notes
    -----
    ``da_v = -M_vv^-1 dID_v``, ``dtau_u = dID_u + M_uv da_v`` (K1 Table 7, for all coordinates at once).

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> d = ld.hybrid_dynamics_derivatives(model, q, v, [0.0, 0.0], [0.0, 0.5], [True, False])
    >>> d.dy_dq.round(3)          # tau of the shoulder, a of the elbow
    array([[  6.885,  -8.963],
           [-14.637, -16.107]])
    """
    if model.nc:
        refuse_constraints(model, "hybrid_dynamics_derivatives", "constrained_hybrid_derivatives")
    if on_error != "raise":
        return each_state(hybrid_dynamics_derivatives, locals())
    mask = as_mask(prescribed, model.nv).copy()
    key = "hybrid_dynamics_derivatives", bool(passive), mask.tobytes()
    matrices = by_line(model, key, out, q, v, a, tau) if f_ext is None else None
    if matrices is None:
        matrices = _solved(model, key, {"q": q, "v": v, "a": a, "tau": tau, "f_ext": f_ext}, mask, passive, out)
    mask.flags.writeable = False
    return HybridDerivatives(*matrices, mask)


def _solved(model, key, given, prescribed, passive, out):
    return computed(model, key, hybrid_derivatives_batch, hybrid_derivatives_batch_memory, given, *_shapes(model),
                    prescribed=prescribed, options=(bool(passive),), out=out)


def _shapes(model) -> tuple[tuple[int, int], ...]:
    return ((model.nv, model.nv),) * 3
