"""Inverse, forward and hybrid dynamics differentiated by q, v and the inputs."""
from __future__ import annotations

import numpy as np

from liedyn.dynamics.annotations import ArrayLike, OnError, Wrenches
from liedyn.dynamics.calls import NONE_BATCH, as_array, as_mask, batched, refuse, run, where_read, wrenches
from liedyn.dynamics.derivative_results import ForwardDerivatives, HybridDerivatives, InverseDerivatives
from liedyn.dynamics.each_state import each_state
from liedyn.dynamics.open_tree import refuse_constraints
from liedyn.kernels.derivatives.hybrid_derivatives import hybrid_derivatives_batch, hybrid_derivatives_batch_memory
from liedyn.kernels.derivatives.inverse_derivatives import inverse_derivatives_batch, inverse_derivatives_batch_memory
from liedyn.model.model import Model


def inverse_dynamics_derivatives(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, f_ext: Wrenches | None = None,
                                 passive: bool = True, on_error: OnError = "raise") -> InverseDerivatives:
    """Derivatives of `inverse_dynamics` by q, v and a: O(n depth).

    Parameters
    ----------
    model, q, v, a, f_ext, passive
        As in `inverse_dynamics`. f_ext stays constant in its link's frame; for derivatives by it see `by_wrench`.
    on_error
        As in `inverse_dynamics`.

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
    Kim 2012 v1.01, Table 5, for all coordinates at once; see `kernels.derivatives.inverse_derivatives`.
    """
    if model.nc:
        refuse_constraints(model, "inverse_dynamics_derivatives", "constrained_inverse_derivatives")
    if on_error != "raise":
        return each_state(inverse_dynamics_derivatives, locals())
    given, matrices, code = _matrices(model, inverse_derivatives_batch, inverse_derivatives_batch_memory, (),
                                      {"q": q, "v": v, "a": a}, f_ext, passive)
    if code:
        refuse(model, code, q=given["q"], v=given["v"], a=given["a"])
    return InverseDerivatives(*matrices)


def forward_dynamics_derivatives(model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, f_ext: Wrenches | None = None,
                                 passive: bool = True, on_error: OnError = "raise") -> ForwardDerivatives:
    """Derivatives of `forward_dynamics` by q, v and tau.

    Parameters
    ----------
    model, q, v, tau, f_ext, passive
        As in `forward_dynamics`. f_ext stays constant in its link's frame; for derivatives by it see `by_wrench`.
    on_error
        As in `inverse_dynamics`.

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
    ``da = -M^-1 dID`` with inverse dynamics ID at the solution (Kim 2012 v1.01, Table 6, for all coordinates at once).
    """
    if model.nc:
        refuse_constraints(model, "forward_dynamics_derivatives", "constrained_forward_derivatives")
    if on_error != "raise":
        return each_state(forward_dynamics_derivatives, locals())
    return ForwardDerivatives(*_solved(model, q, v, None, tau, np.zeros(model.nv, dtype=bool), f_ext, passive))


def hybrid_dynamics_derivatives(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike, prescribed: ArrayLike, *,
                                f_ext: Wrenches | None = None, passive: bool = True,
                                on_error: OnError = "raise") -> HybridDerivatives:
    """Derivatives of `hybrid_dynamics` by q, v and the inputs.

    Parameters
    ----------
    model, q, v, a, tau, prescribed, f_ext, passive
        As in `hybrid_dynamics`.
    on_error
        As in `inverse_dynamics`.

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
    ``da_v = -M_vv^-1 dID_v``, ``dtau_u = dID_u + M_uv da_v`` (Kim 2012 v1.01, Table 7, for all coordinates at once).
    """
    if model.nc:
        refuse_constraints(model, "hybrid_dynamics_derivatives", "constrained_hybrid_derivatives")
    if on_error != "raise":
        return each_state(hybrid_dynamics_derivatives, locals())
    mask = as_mask(prescribed, model.nv).copy()
    matrices = _solved(model, q, v, a, tau, mask, f_ext, passive)
    mask.flags.writeable = False
    return HybridDerivatives(*matrices, mask)


def _solved(model, q, v, a, tau, prescribed, f_ext, passive):
    """a is None where nothing is prescribed."""
    given, matrices, code = _matrices(model, hybrid_derivatives_batch, hybrid_derivatives_batch_memory, (prescribed,),
                                      {"q": q, "v": v, "a": a, "tau": tau}, f_ext, passive)
    if code:
        refuse(model, code, q=given["q"], v=given["v"], a=where_read(given["a"], prescribed),
               tau=where_read(given["tau"], ~prescribed))
    return matrices


def _matrices(model, entry, memory, before, arguments, f_ext, passive):
    """What an entry made of the arguments: (arrays by name (N, n), three matrices (..., nv, nv), code)."""
    nv = model.nv
    named = [(name, as_array(x, name, (model.nq if name == "q" else nv,)), 1) for name, x in arguments.items() if x is not None]
    F = wrenches(model, f_ext)
    if F is not None:
        named.append(("f_ext", F, 2))
    lead, rows = batched(*named)
    given = dict.fromkeys((*arguments, "f_ext"), NONE_BATCH) | dict(zip([name for name, _, _ in named], rows, strict=True))
    count = len(rows[0])
    matrices = np.empty((3, *lead, nv, nv))        # one array: of three the C library gives memory back at each call, fresh memory
    out = matrices.reshape(3, count, nv * nv)      # is slow, and a humanoid took twice as long
    code = run(entry, model, memory(*model.sizes), before, (*given.values(), bool(passive), *out), count)
    return given, matrices, code
