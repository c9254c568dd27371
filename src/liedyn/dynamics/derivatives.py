"""Derivatives of inverse, forward and hybrid dynamics with respect to q, v and the inputs."""
from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple, Unpack, overload

import numpy as np

from liedyn.arrays import Array, ArrayLike, Mask, Matrices, OnError, Precision, Wrenches
from liedyn.dynamics.batching.arrays import NONE, as_mask
from liedyn.dynamics.batching.block_calls import BlockOptions, with_blocks
from liedyn.dynamics.batching.calls import EntryPoint, call_generated, evaluate
from liedyn.dynamics.batching.failed_states import handle_failed_states
from liedyn.dynamics.batching.single_precision import with_number_type
from liedyn.dynamics.batching.state_blocks import BlockMatrices, StateBlocks, States
from liedyn.dynamics.constraints.couplings import closed_motion, reduced_model
from liedyn.dynamics.dynamics import no_prescribed_mask
from liedyn.dynamics.force_elements import check_without_elements
from liedyn.errors import summarized
from liedyn.kernels.hybrid_dynamics_derivatives import hybrid_derivatives_batch, hybrid_derivatives_batch_workspace_size
from liedyn.kernels.inverse_dynamics_derivatives import inverse_derivatives_batch, inverse_derivatives_batch_workspace_size
from liedyn.kernels.manifold import differences_derivatives, manifold_derivatives_workspace_size, retractions_derivatives
from liedyn.kernels.second_derivatives import second_derivatives, second_derivatives_workspace_size
from liedyn.model.model import Model

# Results ------------------------------------------------------------------------------------------------

@summarized
class InverseDerivatives(NamedTuple):
    """Derivatives of tau = M a + b - tau_passive - J^T f_ext; each (..., nv, nv), [i, k] with respect to coordinate k.

    dtau_dq    with respect to q, tangent [N m or N, per rad or m]
    dtau_dv    with respect to v
    M          with respect to a: the mass matrix with armature

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

    def wrt_wrench(self, J: ArrayLike) -> Array:
        """dtau/df_ext (..., nv, 6) of a link, from its local Jacobian J (..., 6, nv), `jacobian(…, frame="local")`: -J^T."""
        return -np.asarray(J, dtype=np.float64).swapaxes(-1, -2)


class CoupledInverseDerivatives(InverseDerivatives):
    """Those of a robot with couplings: forces act on the independent coordinates."""

    projection: Array           # (nv, nv) N of `Elimination`

    def wrt_wrench(self, J: ArrayLike) -> Array:
        """dtau/df_ext (..., nv, 6) of a link, from its local Jacobian J (..., 6, nv): -N^T J^T."""
        reduced: Array = self.projection.T @ super().wrt_wrench(J)
        return reduced


@summarized
class ForwardDerivatives(NamedTuple):
    """Derivatives of a = M^-1 (tau + tau_passive + J^T f_ext - b); each (..., nv, nv), [i, k] with respect to coordinate k.

    da_dq      with respect to q, tangent [rad/s^2 or m/s^2, per rad or m]
    da_dv      with respect to v
    M_inverse  with respect to tau

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> d = ld.forward_dynamics_derivatives(model, q, v, [0.0, 0.5])
    >>> d.wrt_wrench(ld.jacobian(model, q, "tip")).shape
    (2, 6)
    """

    da_dq: Array
    da_dv: Array
    M_inverse: Array

    def wrt_wrench(self, J: ArrayLike) -> Array:
        """da/df_ext (..., nv, 6) of a link, from its local Jacobian J (..., 6, nv), `jacobian(…, frame="local")`: M^-1 J^T."""
        return self.M_inverse @ np.asarray(J, dtype=np.float64).swapaxes(-1, -2)


@summarized
class HybridDerivatives(NamedTuple):
    """Derivatives of the results y of hybrid dynamics with respect to q, v and the inputs u; each (..., nv, nv).

    y[k] = tau[k] and u[k] = a[k] if coordinate k is prescribed, else y[k] = a[k] and u[k] = tau[k].

    dy_dq       [i, k] with respect to coordinate k of q, tangent
    dy_dv       of v
    dy_du       of u
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

    def wrt_wrench(self, J: ArrayLike) -> Array:
        """dy/df_ext (..., nv, 6) of a link, from its local Jacobian J (..., 6, nv), `jacobian(…, frame="local")`.

        The wrench acts as the forces J^T f_ext.
        """
        Jt, prescribed = np.asarray(J, dtype=np.float64).swapaxes(-1, -2), self.prescribed
        return self.dy_du[..., ~prescribed] @ Jt[..., ~prescribed, :] - np.where(prescribed[:, None], Jt, 0.0)

    def split(self) -> SplitDerivatives:
        """Return the derivatives of a and tau separately: six matrices, with the rows of the inputs filled in."""
        prescribed, zero, unit = self.prescribed[:, None], np.zeros(1), np.eye(self.prescribed.size)
        y, inputs = (self.dy_dq, self.dy_dv, self.dy_du), (zero, zero, unit)
        return SplitDerivatives(*[np.where(prescribed, u, x) for u, x in zip(inputs, y, strict=True)],
                                *[np.where(prescribed, x, u) for u, x in zip(inputs, y, strict=True)])


@summarized
class SplitDerivatives(NamedTuple):
    """Derivatives of a and tau with respect to q, v and u, as in `HybridDerivatives`; each (..., nv, nv).

    Rows of da_* of a prescribed coordinate and rows of dtau_* of a torque-specified one are those of an input: zero except for
    a one in d*_du.

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> d = ld.hybrid_dynamics_derivatives(model, q, v, [0.0, 0.0], [0.0, 0.5], [True, False]).split()
    >>> d.da_dq.round(3)          # the acceleration of the shoulder is an input
    array([[                      0.   ,   0.   ],
           [-14.637, -16.107]])
    """

    da_dq: Array
    da_dv: Array
    da_du: Array
    dtau_dq: Array
    dtau_dv: Array
    dtau_du: Array


# first derivatives ------------------------------------------------------------------------------------------------------

@overload
def inverse_dynamics_derivatives(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, f_ext: Wrenches | None = ...,
                                 passive: bool = ..., on_error: OnError = ..., dtype: Precision = ...,
                                 out: Matrices | None = ...) -> InverseDerivatives: ...
@overload
def inverse_dynamics_derivatives(model: Model, q: StateBlocks, v: StateBlocks, a: StateBlocks,
                                 **options: Unpack[BlockOptions]) -> BlockMatrices: ...
def inverse_dynamics_derivatives(  # noqa: PLR0913 - independent options of a public call
        model: Model, q: States, v: States, a: States, *, f_ext: Wrenches | StateBlocks | None = None, passive: bool = True,
        on_error: OnError = "raise", dtype: Precision = "float64",
        out: Matrices | None = None) -> InverseDerivatives | BlockMatrices:
    """Derivatives of `inverse_dynamics` with respect to q, v and a: O(n depth).

    Parameters
    ----------
    model, q, v, a, f_ext, passive
        As in `inverse_dynamics`. f_ext stays constant in its link's frame; for derivatives by it see `wrt_wrench`.
    on_error, dtype
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
    Source: K1 Table 5, for all coordinates at once; see `kernels.inverse_dynamics_derivatives`.

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> dtau_dq, dtau_dv, M = ld.inverse_dynamics_derivatives(model, q, v, [0.0, 1.0])
    >>> dtau_dq.round(3)
    array([[18.938,  4.367],
           [ 4.88 ,  5.371]])
    """
    if type(q) is StateBlocks:
        return with_blocks(inverse_dynamics_derivatives, locals())
    if dtype != "float64":
        return with_number_type(inverse_dynamics_derivatives, locals())
    if on_error != "raise":
        return handle_failed_states(inverse_dynamics_derivatives, locals())
    key = "inverse_dynamics_derivatives", bool(passive)
    matrices = call_generated(model, key, out, q, v, a) if f_ext is None else None
    if matrices is None:
        reduced = model
        if model.nc:
            reduced = reduced_model(model, "inverse_dynamics_derivatives", "constrained_inverse_derivatives").model
        matrices = evaluate(reduced, key, inverse_derivatives_batch, inverse_derivatives_batch_workspace_size,
                            {"q": q, "v": v, "a": a, "f_ext": f_ext}, *_shapes(model), options=(bool(passive),), out=out)
    if not model.nc:
        return InverseDerivatives(*matrices)
    derivatives = CoupledInverseDerivatives(*matrices)
    derivatives.projection = model.elimination().projection
    return derivatives


@overload
def forward_dynamics_derivatives(model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, f_ext: Wrenches | None = ...,
                                 passive: bool = ..., on_error: OnError = ..., dtype: Precision = ...,
                                 out: Matrices | None = ...) -> ForwardDerivatives: ...
@overload
def forward_dynamics_derivatives(model: Model, q: StateBlocks, v: StateBlocks, tau: StateBlocks,
                                 **options: Unpack[BlockOptions]) -> BlockMatrices: ...
def forward_dynamics_derivatives(  # noqa: PLR0913 - independent options of a public call
        model: Model, q: States, v: States, tau: States, *, f_ext: Wrenches | StateBlocks | None = None, passive: bool = True,
        on_error: OnError = "raise", dtype: Precision = "float64",
        out: Matrices | None = None) -> ForwardDerivatives | BlockMatrices:
    """Derivatives of `forward_dynamics` with respect to q, v and tau.

    Parameters
    ----------
    model, q, v, tau, f_ext, passive
        As in `forward_dynamics`. f_ext stays constant in its link's frame; for derivatives by it see `wrt_wrench`.
    on_error, dtype
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
    if type(q) is StateBlocks:
        return with_blocks(forward_dynamics_derivatives, locals())
    if dtype != "float64":
        return with_number_type(forward_dynamics_derivatives, locals())
    if on_error != "raise":
        return handle_failed_states(forward_dynamics_derivatives, locals())
    key = "forward_dynamics_derivatives", bool(passive)
    matrices = call_generated(model, key, out, q, v, tau) if f_ext is None else None
    if matrices is None:
        inputs, mask = {"q": q, "v": v, "a": NONE, "tau": tau, "f_ext": f_ext}, no_prescribed_mask(model)
        if model.nc:
            model, mask, _ = reduced_model(model, "forward_dynamics_derivatives", "constrained_forward_derivatives")
        matrices = _hybrid_derivatives(model, key, inputs, mask, passive, out)
    return ForwardDerivatives(*matrices)


@overload
def hybrid_dynamics_derivatives(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike, prescribed: ArrayLike, *,
                                f_ext: Wrenches | None = ..., passive: bool = ..., on_error: OnError = ...,
                                dtype: Precision = ..., out: Matrices | None = ...) -> HybridDerivatives: ...
@overload
def hybrid_dynamics_derivatives(model: Model, q: StateBlocks, v: StateBlocks, a: StateBlocks, tau: StateBlocks,
                                prescribed: ArrayLike, **options: Unpack[BlockOptions]) -> BlockMatrices: ...
def hybrid_dynamics_derivatives(  # noqa: PLR0913 - independent options of a public call
        model: Model, q: States, v: States, a: States, tau: States, prescribed: ArrayLike, *,
        f_ext: Wrenches | StateBlocks | None = None, passive: bool = True, on_error: OnError = "raise",
        dtype: Precision = "float64", out: Matrices | None = None) -> HybridDerivatives | BlockMatrices:
    """Derivatives of `hybrid_dynamics` with respect to q, v and the inputs.

    Parameters
    ----------
    model, q, v, a, tau, prescribed, f_ext, passive
        As in `hybrid_dynamics`.
    on_error, dtype
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
    array([[                      6.885,  -8.963],
           [-14.637, -16.107]])
    """
    if type(q) is StateBlocks:
        return with_blocks(hybrid_dynamics_derivatives, locals())
    if dtype != "float64":
        return with_number_type(hybrid_dynamics_derivatives, locals())
    if on_error != "raise":
        return handle_failed_states(hybrid_dynamics_derivatives, locals())
    mask = as_mask(prescribed, model.nv).copy()
    key = "hybrid_dynamics_derivatives", bool(passive), mask.tobytes()
    matrices = call_generated(model, key, out, q, v, a, tau) if f_ext is None else None
    if matrices is None:
        reduced, known = model, mask
        if model.nc:
            reduced, known, *_ = reduced_model(model, "hybrid_dynamics_derivatives", "constrained_hybrid_derivatives", mask)
        inputs = {"q": q, "v": v, "a": a, "tau": tau, "f_ext": f_ext}
        matrices = _hybrid_derivatives(reduced, key, inputs, known, passive, out)
    mask.flags.writeable = False
    dy_dq, dy_dv, dy_du = matrices
    return HybridDerivatives(dy_dq, dy_dv, dy_du, mask)


def _hybrid_derivatives(model: Model, key: Hashable, inputs: dict[str, Any], prescribed: Mask, passive: bool,
                        out: Matrices | None) -> tuple[Array, ...]:
    return evaluate(model, key, hybrid_derivatives_batch, hybrid_derivatives_batch_workspace_size, inputs, *_shapes(model),
                    prescribed=prescribed, options=(bool(passive),), out=out)


def _shapes(model: Model) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
    shape = model.nv, model.nv
    return shape, shape, shape


# Second derivatives of inverse dynamics ---------------------------------------------------------------------------------

@summarized
class SecondDerivatives(NamedTuple):
    """Second derivatives (..., nv, nv, nv) of tau: [i, j, k] belongs to tau_i, coordinate j of the first and k of the second.

    dqdq   d/dq_k of dtau_dq[i, j], both tangent: for ball and free joints not symmetric in j and k
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
    """Second derivatives of `inverse_dynamics` with respect to q, v and a; those for v a and a a are zero.

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
    The formulas of `inverse_dynamics_derivatives` differentiated again, O(n depth^2): see `kernels.second_derivatives`. The
    results are those of Singh, Russell and Wensing 2023.

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> ld.inverse_dynamics_second_derivatives(model, q, v, [0.0, 1.0]).dqdq[0].round(3)
    array([[-4.838, -0.49 ],
           [-0.49 , -1.104]])
    """
    if on_error != "raise":
        return handle_failed_states(inverse_dynamics_second_derivatives, locals())
    check_without_elements(model, bool(passive), "inverse_dynamics_second_derivatives")
    if model.nc:
        reduced = reduced_model(model, "inverse_dynamics_second_derivatives")
        of_tree = inverse_dynamics_second_derivatives(model.spanning_tree(), *closed_motion(reduced, q, v, a), passive=passive)
        N = reduced.elimination.projection
        return SecondDerivatives(*(np.einsum("...ijk,ia,jb,kc->...abc", x, N, N, N, optimize=True) for x in of_tree))
    n = model.nv
    tensors = evaluate(model, ("second_derivatives", bool(passive)), second_derivatives, second_derivatives_workspace_size,
                       {"q": q, "v": v, "a": a}, (4, n, n, n), options=(bool(passive),))
    return SecondDerivatives(*(tensors[..., k, :, :, :] for k in range(4)))


# Derivatives of `integrate` and `difference` ----------------------------------------------------------------------------

def d_integrate(model: Model, q0: ArrayLike, dv: ArrayLike, *, on_error: OnError = "raise") -> tuple[Array, Array]:
    """Derivatives of ``integrate(model, q0, dv)`` with respect to q0 and dv.

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
        return handle_failed_states(d_integrate, locals())
    return _manifold_derivatives(model, "d_integrate", retractions_derivatives, {"q0": q0, "dv": dv})


def d_difference(model: Model, q0: ArrayLike, q1: ArrayLike, *, on_error: OnError = "raise") -> tuple[Array, Array]:
    """Derivatives of ``difference(model, q0, q1)`` with respect to q0 and q1.

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
        return handle_failed_states(d_difference, locals())
    return _manifold_derivatives(model, "d_difference", differences_derivatives, {"q0": q0, "q1": q1})


def _manifold_derivatives(model: Model, key: str, entry: EntryPoint, inputs: dict[str, Any]) -> tuple[Array, Array]:
    shape = model.nv, model.nv
    first, second = evaluate(model, key, entry, manifold_derivatives_workspace_size, inputs, shape, shape)
    return first, second
