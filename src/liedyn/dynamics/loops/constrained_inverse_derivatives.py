"""Constrained inverse dynamics differentiated by q, v and a."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from liedyn.dynamics.calling.annotations import Actuated, Array, ArrayLike, Criterion, OnError, Wrenches
from liedyn.dynamics.calling.each_state import each_state
from liedyn.dynamics.loops.constrained_derivatives import balance_derivatives, pseudo_inverse
from liedyn.dynamics.loops.constrained_inverse import (
    actuated_mask,
    constrained_inverse_dynamics,
    weights_of,
)
from liedyn.dynamics.loops.rank import rank_of
from liedyn.kernels.loops.constraint_solver import DEPENDENT
from liedyn.model.model import Model


class ConstrainedInverseDerivatives(NamedTuple):
    """Of tau and lambda of constrained inverse dynamics; [i, k] by coordinate k.

    dtau_dq, dtau_dv, dtau_da             (..., nv, nv); rows of joints that are not actuated are zero
    dlambda_dq, dlambda_dv, dlambda_da    (..., m, nv)
    """

    dtau_dq: Array
    dtau_dv: Array
    dtau_da: Array
    dlambda_dq: Array
    dlambda_dv: Array
    dlambda_da: Array


def constrained_inverse_derivatives(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, actuated: Actuated, *,
                                    criterion: Criterion = "unique", weights: ArrayLike | None = None,
                                    tau_passive: ArrayLike | None = None, f_ext: Wrenches | None = None, passive: bool = True,
                                    drive: Mapping[str, Any] | None = None,
                                    on_error: OnError = "raise") -> ConstrainedInverseDerivatives:
    """Derivatives of `constrained_inverse_dynamics` by q, v and a.

    Parameters
    ----------
    model, q, v, a, actuated, criterion, weights, tau_passive, f_ext, passive, drive, on_error
        As in `constrained_inverse_dynamics`; f_ext, the drives and tau_passive keep their values.

    Returns
    -------
    ConstrainedInverseDerivatives
        By q: tangent, with (+) as in `integrate`. They hold for changes of the motion that keep obeying the constraints: dq in
        the null space of A, ``A dv + d(A v) = 0``, ``A da + d(A a + gamma) = 0`` (`balance_derivatives` has these rates). Along
        others, where no tau makes the motion, they are those of a least-squares balance at the passive joints.

    Raises
    ------
    As `constrained_inverse_dynamics`.

    Notes
    -----
    With D the rate of ``M a + b - A^T lambda`` at fixed lambda, p passive and a actuated joints: ``A_p^T dlambda = D_p``,
    ``dtau_a = D_a - A_a^T dlambda``. What the criterion chooses in the null space N of A_p^T follows by differentiating its
    condition, ``N^T lambda = 0`` or ``N^T A_a W^2 tau_a = 0``, with the rate of A: exact as long as ranks stay.

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> q = ld.assemble(model, [1.2, 0.2, 1.8], fixed=["crank"]).q
    >>> ld.constrained_inverse_derivatives(model, q, np.zeros(3), np.zeros(3), ["crank"]).dtau_da.shape
    (3, 3)
    """
    if on_error != "raise":
        return each_state(constrained_inverse_derivatives, locals())
    given = {"f_ext": f_ext, "passive": passive, "drive": drive}
    motion = constrained_inverse_dynamics(model, q, v, a, actuated, criterion=criterion, weights=weights, tau_passive=tau_passive,
                                          **given)
    mask, lead, nv, m = actuated_mask(model, actuated), motion.tau.shape[:-1], model.nv, model.nc

    def balance(x):
        return balance_derivatives(model, q, v, a, motion.multipliers, x.reshape(*lead, nv), **given)

    rates = balance(np.zeros((*lead, nv)))
    D = np.concatenate([rates.dR1_dq, rates.dR1_dv, rates.M], axis=-1).reshape(-1, nv, 3 * nv)
    A, tau, multipliers = rates.A.reshape(-1, m, nv), motion.tau.reshape(-1, nv), motion.multipliers.reshape(-1, m)
    rows = _Rows(model, A, lambda x: np.pad((balance(x).dAx_dq - rates.dAx_dq).reshape(-1, m, nv), ((0, 0), (0, 0), (0, 2 * nv))))
    if criterion == "least_torque":
        w = np.zeros((*lead, nv))
        w[..., mask] = weights_of(weights, mask)
        dtau = _least_torque(rows, D, mask, w.reshape(-1, nv), tau)
        dlambda = rows.least(np.ones(nv, dtype=bool), D - dtau, multipliers)
    else:
        dlambda = rows.least(~mask, D, multipliers)
        dtau = np.where(mask[:, None], D - np.swapaxes(A, -1, -2) @ dlambda, 0.0)
    parts = [x.reshape(*lead, x.shape[-2], 3, nv) for x in (dtau, dlambda)]
    return ConstrainedInverseDerivatives(*(x[..., k, :] for x in parts for k in range(3)))


class _Rows:
    """A (N, m, nv), and along(x): rates (N, m, 3 nv) of A x."""

    def __init__(self, model, A, along):
        self.model, self.A, self.along = model, A, along

    def least(self, which, D, multipliers):
        """dlambda of the least lambda with A_p^T lambda given, where A_p^T dlambda = D_p; p: `which` (nv,)."""
        inverse, null = self.part(which)
        out = np.swapaxes(inverse, -1, -2) @ D
        if null.any():
            x = (inverse @ multipliers[..., None])[..., 0]          # lambda = A_p x
            out += null @ (np.swapaxes(null, -1, -2) @ self.along(x))
        return out

    def part(self, which):
        """A_p^+ as (N, nv, m), and a basis of the null space of A_p^T among columns of zeros."""
        A = np.where(which, self.A, 0.0)
        return pseudo_inverse(A, rank_of(self.model, A))


def _least_torque(rows, D, mask, w, tau):
    """dtau from N^T (A_a W^2 tau_a - A_p mu) = 0."""
    inverse, null = rows.part(~mask)
    At, Nt, W2 = np.swapaxes(rows.A, -1, -2), np.swapaxes(null, -1, -2), (w * w)[..., None]
    dtau = np.where(mask[:, None], D - At @ (np.swapaxes(inverse, -1, -2) @ D), 0.0)
    force = (W2[..., 0] * tau)[..., None]
    mu = inverse @ (rows.A @ force)
    B = np.where(mask[:, None], At @ null, 0.0)
    rhs = np.swapaxes(B, -1, -2) @ (W2 * dtau) + Nt @ rows.along((force - mu)[..., 0])
    s, V = np.linalg.eigh(np.swapaxes(B, -1, -2) @ (W2 * B))
    kept = s > DEPENDENT * np.einsum("nrk,nr->n", At**2, W2[..., 0])[:, None]        # against A_a: B may be rounding throughout
    y = np.where(kept, 1.0 / np.where(kept, s, 1.0), 0.0)[..., None] * (np.swapaxes(V, -1, -2) @ rhs)
    return dtau - B @ (V @ y)


