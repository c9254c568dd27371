"""What `dynamics.derivatives.first_derivatives` gives."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from liedyn.arrays import Array, ArrayLike, Mask


class InverseDerivatives(NamedTuple):
    """Derivatives of tau = M a + b - tau_passive - J^T f_ext; each (..., nv, nv), [i, k] by coordinate k.

    dtau_dq    tangent derivative by q [N m or N, by rad or m]
    dtau_dv    by v
    M          by a: the mass matrix, armature included

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> ld.inverse_dynamics_derivatives(model, q, v, [0.0, 1.0]).dtau_dv.round(3)
    array([[ 0.099,  0.298],
           [-0.199,  0.   ]])
    """

    dtau_dq: Array
    dtau_dv: Array
    M: Array

    def by_wrench(self, J: ArrayLike) -> Array:
        """dtau/df_ext (..., nv, 6) of a link, from its local Jacobian J (..., 6, nv), `jacobian(…, frame="local")`: -J^T."""
        return -np.asarray(J).swapaxes(-1, -2)


class ForwardDerivatives(NamedTuple):
    """Derivatives of a = M^-1 (tau + tau_passive + J^T f_ext - b); each (..., nv, nv), [i, k] by coordinate k.

    da_dq      tangent derivative by q [rad/s^2 or m/s^2, by rad or m]
    da_dv      by v
    M_inverse  by tau

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> d = ld.forward_dynamics_derivatives(model, q, v, [0.0, 0.5])
    >>> d.by_wrench(ld.jacobian(model, q, "tip")).shape
    (2, 6)
    """

    da_dq: Array
    da_dv: Array
    M_inverse: Array

    def by_wrench(self, J: ArrayLike) -> Array:
        """da/df_ext (..., nv, 6) of a link, from its local Jacobian J (..., 6, nv), `jacobian(…, frame="local")`: M^-1 J^T."""
        return self.M_inverse @ np.asarray(J).swapaxes(-1, -2)


class HybridDerivatives(NamedTuple):
    """Derivatives of the result of hybrid dynamics, y[k] = tau[k] where prescribed[k], else a[k], by q, v and the inputs,
    u[k] = a[k] where prescribed[k], else tau[k]; each (..., nv, nv), [i, k] by coordinate k.

    dy_dq       tangent derivative by q
    dy_dv       by v
    dy_du       by u
    prescribed  (nv,) the mask; read-only

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> d = ld.hybrid_dynamics_derivatives(model, q, v, [0.0, 0.0], [0.0, 0.5], [True, False])
    >>> d.dy_du.round(3)
    array([[ 0.613,  2.47 ],
           [-2.47 ,  2.999]])
    """

    dy_dq: Array
    dy_dv: Array
    dy_du: Array
    prescribed: Mask

    def by_wrench(self, J: ArrayLike) -> Array:
        """dy/df_ext (..., nv, 6) of a link, from its local Jacobian J (..., 6, nv), `jacobian(…, frame="local")`: a wrench
        acts as the forces J^T f_ext."""
        Jt, given = np.asarray(J).swapaxes(-1, -2), self.prescribed
        return self.dy_du[..., ~given] @ Jt[..., ~given, :] - np.where(given[:, None], Jt, 0.0)

    def split(self) -> SplitDerivatives:
        """The same by a and tau: six matrices, with the rows of the inputs filled in."""
        prescribed, unit = self.prescribed[:, None], np.eye(self.prescribed.size)
        y = self.dy_dq, self.dy_dv, self.dy_du
        inputs = 0.0, 0.0, unit
        return SplitDerivatives(*[np.where(prescribed, u, x) for u, x in zip(inputs, y, strict=True)],
                                *[np.where(prescribed, x, u) for u, x in zip(inputs, y, strict=True)])


class SplitDerivatives(NamedTuple):
    """Derivatives of a and tau by q, v and u, as in `HybridDerivatives`; each (..., nv, nv).

    Rows of da_* of a prescribed coordinate and rows of dtau_* of a torque-specified one are those of an input: zero but for
    the one in d*_du.

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> d = ld.hybrid_dynamics_derivatives(model, q, v, [0.0, 0.0], [0.0, 0.5], [True, False]).split()
    >>> d.da_dq.round(3)          # the shoulder's acceleration is given
    array([[  0.   ,   0.   ],
           [-14.637, -16.107]])
    """

    da_dq: Array
    da_dv: Array
    da_du: Array
    dtau_dq: Array
    dtau_dv: Array
    dtau_du: Array
