"""Second derivatives of inverse dynamics."""
from __future__ import annotations

from typing import NamedTuple

from liedyn.dynamics.calling.annotations import Array, ArrayLike, OnError
from liedyn.dynamics.calling.calls import computed
from liedyn.dynamics.calling.each_state import each_state
from liedyn.dynamics.open_tree import refuse_constraints
from liedyn.kernels.derivatives.second_derivatives import second_derivatives, second_derivatives_memory
from liedyn.model.model import Model


class SecondDerivatives(NamedTuple):
    """Tensors (..., nv, nv, nv) of tau: [i, j, k] is the derivative of dtau_i by the first, coordinate j, by the second,
    coordinate k.

    dqdq   d/dq_k of dtau_dq[i, j], tangent both times: for ball and free joints not symmetric in j and k
    dqdv   d/dv_k of dtau_dq[i, j]
    dvdv   d/dv_k of dtau_dv[i, j]
    dqda   d/da_k of dtau_dq[i, j], which is dM_ik/dq_j

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> ld.inverse_dynamics_second_derivatives(model, q, v, [0.0, 1.0]).dvdv[0].round(3)
    array([[0.   , 0.199],
           [0.199, 0.199]])
    """

    dqdq: Array
    dqdv: Array
    dvdv: Array
    dqda: Array


def inverse_dynamics_second_derivatives(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, passive: bool = True,
                                        on_error: OnError = "raise") -> SecondDerivatives:
    """Second derivatives of `inverse_dynamics` by q, v and a; by v a and a a they are zero.

    Parameters
    ----------
    model, q, v, a, passive
        As in `inverse_dynamics`; q (..., nq), v and a (..., nv).
    on_error
        As in `inverse_dynamics`.

    Raises
    ------
    ShapeError, ConfigurationError

    Notes
    -----
    The formulas of `inverse_dynamics_derivatives` differentiated once more, O(n depth^2): see `derivatives.second_derivatives`;
    what Singh, Russell and Wensing 2023 give.

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> ld.inverse_dynamics_second_derivatives(model, q, v, [0.0, 1.0]).dqdq[0].round(3)
    array([[-4.838, -0.49 ],
           [-0.49 , -1.104]])
    """
    if model.nc:
        refuse_constraints(model, "inverse_dynamics_second_derivatives")
    if on_error != "raise":
        return each_state(inverse_dynamics_second_derivatives, locals())
    n = model.nv
    tensors = computed(model, ("second_derivatives", bool(passive)), second_derivatives, second_derivatives_memory,
                       {"q": q, "v": v, "a": a}, (4, n, n, n), options=(bool(passive),))
    return SecondDerivatives(*(tensors[..., k, :, :, :] for k in range(4)))
