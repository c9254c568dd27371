"""Derivatives of `integrate` and `difference`."""
from __future__ import annotations

from liedyn.dynamics.calling.annotations import Array, ArrayLike, OnError
from liedyn.dynamics.calling.calls import computed
from liedyn.dynamics.calling.each_state import each_state
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
        Tangent derivatives: to first order, q0 (+) e and dv + d lead to ``integrate(model, q0, dv) (+) (by_q0 e + by_dv d)``.
        One block per joint; twists are angular first, in the body frame.

    Raises
    ------
    ShapeError, ConfigurationError

    Notes
    -----
    For a free or ball joint, by_q0 is Ad of exp(-dv) and by_dv the right Jacobian of exp at dv, which is singular for a rotation
    by 2 pi. For other joints both are 1. `d_difference` gives the inverse.

    Examples
    --------
    >>> model = ld.load("robots/asymmetric_body.yaml")
    >>> by_q0, by_dv = ld.d_integrate(model, model.neutral(), [0, 0, 1.0, 0, 0, 0])
    >>> by_dv[:3, :3].round(3)
    array([[ 0.841,  0.46 ,  0.   ],
           [-0.46 ,  0.841,  0.   ],
           [ 0.   ,  0.   ,  1.   ]])
    """
    if on_error != "raise":
        return each_state(d_integrate, locals())
    return _matrices(model, "d_integrate", retractions_derivatives, {"q0": q0, "dv": dv})


def d_difference(model: Model, q0: ArrayLike, q1: ArrayLike, *, on_error: OnError = "raise") -> tuple[Array, Array]:
    """Derivatives of ``difference(model, q0, q1)`` by q0 and by q1.

    Parameters
    ----------
    model, q0, q1, on_error
        As in `difference`.

    Returns
    -------
    by_q0, by_q1 : (..., nv, nv) arrays
        Tangent derivatives: to first order, the difference of q0 (+) e and q1 (+) d is ``dv + by_q0 e + by_q1 d``. One block per
        joint; twists are angular first, in the body frame.

    Raises
    ------
    ShapeError, ConfigurationError

    Notes
    -----
    For a free or ball joint: minus the inverse of the left Jacobian of exp at dv, and the inverse of the right one. For other
    joints: -1 and 1. At half a turn the difference jumps; the derivatives are those of the side on which `difference` is.

    Examples
    --------
    >>> model = ld.load("robots/asymmetric_body.yaml")
    >>> by_q0, by_q1 = ld.d_difference(model, model.neutral(), [0.5, 0, 0, 0, 0, 0.6, 0.8])
    >>> by_q1[:3, :3].round(3)
    array([[ 0.858, -0.644,  0.   ],
           [ 0.644,  0.858,  0.   ],
           [ 0.   ,  0.   ,  1.   ]])
    """
    if on_error != "raise":
        return each_state(d_difference, locals())
    return _matrices(model, "d_difference", differences_derivatives, {"q0": q0, "q1": q1})


def _matrices(model, key, entry, given):
    return computed(model, key, entry, manifold_derivatives_memory, given, *((model.nv, model.nv),) * 2)
