"""Second derivatives of inverse dynamics."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from liedyn.dynamics.calls import as_array, batched, refuse, run
from liedyn.dynamics.rooms import room_for
from liedyn.kernels.second_derivatives import second_derivatives, second_derivatives_memory


class SecondDerivatives(NamedTuple):
    """Tensors (..., nv, nv, nv) of tau: [i, j, k] is the derivative of dtau_i by the first, coordinate j, by the second,
    coordinate k.

    dqdq   d/dq_k of dtau_dq[i, j], tangent both times: for ball and free joints not symmetric in j and k
    dqdv   d/dv_k of dtau_dq[i, j]
    dvdv   d/dv_k of dtau_dv[i, j]
    dqda   d/da_k of dtau_dq[i, j], which is dM_ik/dq_j
    """

    dqdq: np.ndarray
    dqdv: np.ndarray
    dvdv: np.ndarray
    dqda: np.ndarray


def inverse_dynamics_second_derivatives(model, q, v, a, *, passive=True) -> SecondDerivatives:
    """Second derivatives of `inverse_dynamics` by q, v and a; by v a and a a they are zero.

    Parameters
    ----------
    model, q, v, a, passive
        As in `inverse_dynamics`; q (..., nq), v and a (..., nv).

    Raises
    ------
    ShapeError, ConfigurationError

    Notes
    -----
    The kernel of `inverse_dynamics_derivatives` on dual numbers (`lie.duals`), eight directions at a time: exact.
    """
    n = model.nv
    named = [("q", as_array(q, "q", (model.nq,)), 1), ("v", as_array(v, "v", (n,)), 1), ("a", as_array(a, "a", (n,)), 1)]
    lead, rows = batched(*named)
    out, lines, _ = room_for((*lead, 4, n, n, n), len(rows[0]))
    code = run(second_derivatives, model, second_derivatives_memory(*model.sizes), (), (*rows, bool(passive), lines), len(lines))
    refuse(model, code, **dict(zip(("q", "v", "a"), rows, strict=True)))
    return SecondDerivatives(*np.moveaxis(out, -4, 0))
