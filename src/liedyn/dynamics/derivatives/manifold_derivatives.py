"""Derivatives of `integrate` and `difference`."""
from __future__ import annotations

from liedyn.dynamics.calling.annotations import Array, ArrayLike, OnError
from liedyn.dynamics.calling.calls import as_array, batched, refuse, run
from liedyn.dynamics.calling.each_state import each_state
from liedyn.dynamics.calling.rooms import room_for
from liedyn.dynamics.manifold import refuse_either
from liedyn.kernels.derivatives.manifold_derivatives import (
    differences_derivatives,
    manifold_derivatives_memory,
    retractions_derivatives,
)
from liedyn.model.model import Model


def d_integrate(model: Model, q0: ArrayLike, dv: ArrayLike, *, on_error: OnError = "raise") -> tuple[Array, Array]:
    """Derivatives of ``integrate(model, q0, dv)`` by q0 and by dv.

    Parameters
    ----------
    model, q0, dv, on_error
        As in `integrate`.

    Returns
    -------
    by_q0, by_dv : (..., nv, nv) arrays
        Tangent derivatives, of the result as well: for q1 = q0 (+) dv, q0 (+) e and dv + d, to first order,
        ``q1 (+) (by_q0 e + by_dv d)`` is the result. A block a joint; twists are angular first, in the body frame.

    Raises
    ------
    ShapeError, ConfigurationError

    Notes
    -----
    Of a free or ball joint: ``by_q0 = Ad_exp(-dv)``, by_dv is the right Jacobian of exp, which is singular where it turns by
    2 pi. Of other joints both are 1. See `d_difference` for the inverse.
    """
    if on_error != "raise":
        return each_state(d_integrate, locals())
    lead, rows = batched(("q0", as_array(q0, "q0", (model.nq,)), 1), ("dv", as_array(dv, "dv", (model.nv,)), 1))
    matrices, code = _matrices(model, retractions_derivatives, lead, rows)
    refuse(model, code, {"q": "q0", "v": "dv"}, q=rows[0], v=rows[1])
    return matrices


def d_difference(model: Model, q0: ArrayLike, q1: ArrayLike, *, on_error: OnError = "raise") -> tuple[Array, Array]:
    """Derivatives of ``difference(model, q0, q1)`` by q0 and by q1.

    Parameters
    ----------
    model, q0, q1, on_error
        As in `difference`.

    Returns
    -------
    by_q0, by_q1 : (..., nv, nv) arrays
        Tangent derivatives: of q0 (+) e and q1 (+) d the difference is ``dv + by_q0 e + by_q1 d`` to first order. A block a
        joint; twists are angular first, in the body frame.

    Raises
    ------
    ShapeError, ConfigurationError

    Notes
    -----
    Of a free or ball joint: minus the inverse left Jacobian of exp at dv, and the inverse right one. Of other joints -1 and 1.
    At half a turn the difference jumps; the derivatives are those of the side on which `difference` is.
    """
    if on_error != "raise":
        return each_state(d_difference, locals())
    q0, q1 = as_array(q0, "q0", (model.nq,)), as_array(q1, "q1", (model.nq,))
    lead, rows = batched(("q0", q0, 1), ("q1", q1, 1))
    matrices, code = _matrices(model, differences_derivatives, lead, rows)
    refuse_either(model, code, rows)
    return matrices


def _matrices(model, entry, lead, rows):
    """Two matrices (*lead, nv, nv), and a code of the kernels."""
    nv, count = model.nv, len(rows[0])
    (A, a), (B, b) = room_for((*lead, nv, nv), count), room_for((*lead, nv, nv), count)
    size = manifold_derivatives_memory(model.n_bodies, model.nq, nv, 0)
    return (A, B), run(entry, model, size, (), (*rows, a, b), count)
