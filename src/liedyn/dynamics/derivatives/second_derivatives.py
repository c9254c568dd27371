"""Second derivatives of inverse dynamics."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from liedyn.dynamics.calling.annotations import Array, ArrayLike, OnError
from liedyn.dynamics.calling.calls import as_array, batched, refuse, run, run_one
from liedyn.dynamics.calling.each_state import each_state
from liedyn.dynamics.calling.rooms import room_for
from liedyn.dynamics.open_tree import refuse_constraints
from liedyn.kernels.derivatives.second_derivatives import second_derivatives, second_derivatives_memory
from liedyn.model.model import Model

# Coordinates up to which eight states go side by side: their block takes 32 MB a thread then, and grows as the third power.
_MOST_OF_EIGHT = 50


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
    n, size = model.nv, second_derivatives_memory(*model.sizes)
    if isinstance(q, np.ndarray) and q.ndim == 1:
        out = np.empty((4, n, n, n))
        key, passive = ("second_derivatives", bool(passive)), bool(passive)
        if run_one(model, key, second_derivatives, size, (), 3, (q, v, a, out), (q, v, a, passive, out)):
            return SecondDerivatives(*out)
    named = [("q", as_array(q, "q", (model.nq,)), 1), ("v", as_array(v, "v", (n,)), 1), ("a", as_array(a, "a", (n,)), 1)]
    lead, rows = batched(*named)
    out, lines = room_for((*lead, 4, n, n, n), len(rows[0]))
    code = run(second_derivatives, model, size, (), (*rows, bool(passive), lines), len(lines), one_by_one=n > _MOST_OF_EIGHT)
    refuse(model, code, **dict(zip(("q", "v", "a"), rows, strict=True)))
    return SecondDerivatives(*(out[..., k, :, :, :] for k in range(4)))
