"""Velocity terms: Coriolis matrix, inverse dynamics with it, Christoffel symbols, derivatives of the mass matrix."""
from __future__ import annotations

import numpy as np

from liedyn.arrays import Array, ArrayLike, Coriolis, OnError
from liedyn.dynamics.batching.arrays import as_single_state, broadcast_states
from liedyn.dynamics.batching.calls import evaluate
from liedyn.dynamics.batching.failed_states import handle_failed_states
from liedyn.dynamics.closed_form import ClosedForm, closed_form
from liedyn.dynamics.constraints.couplings import reduced_model
from liedyn.errors import ComputationError, ShapeError
from liedyn.kernels.coriolis import (
    DERIVATIVE,
    SYMBOLS,
    christoffel_batch,
    christoffel_workspace_size,
    coriolis_matrices,
    coriolis_workspace_size,
)
from liedyn.kernels.slotine_li import slotine_li_batch, slotine_li_workspace_size
from liedyn.model.model import Model
from liedyn.model.spatial import bracket, inertia_matrix

_METHODS = {"recursive": 1.0, "christoffel": 0.0}          # skew forms of `kernels.coriolis`


def coriolis_matrix(model: Model, q: ArrayLike, v: ArrayLike, *, method: Coriolis = "recursive",
                    on_error: OnError = "raise") -> Array:
    """Coriolis matrix ``C(q, v)`` with ``C v`` the bias force without gravity and ``dM/dt - 2C`` skew.

    Parameters
    ----------
    q : (..., nq) array
        Configuration [rad | m].
    v : (..., nv) array
        Velocity [rad/s | m/s].
    method : str
        "recursive": Ploen's skew-symmetric Newton-Euler form with composite bodies, O(n depth).
        "christoffel": ``C_kj = sum_i Gamma_ijk v_i`` of `christoffel_symbols`, by the same recursion.
        "factorized": Ploen's global factorization (37) with dense block matrices, in NumPy: for reading and checking.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    C : (..., nv, nv) array
        Row k belongs to force k; ``C v`` in N m | N. "recursive" and "factorized" give one matrix up to rounding. "christoffel"
        gives another with the same ``C v``; both agree if all rotation axes are parallel.

    Raises
    ------
    ShapeError, ConfigurationError

    Notes
    -----
    Source: PL (1)-(3), (23), (35)-(38), Propositions 1-2; PBP (52), (60)-(64). Rotors (armature) contribute nothing, as in
    inverse dynamics.

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> ld.coriolis_matrix(model, q, v).round(3)
    array([[ 0.05 ,  0.149],
           [-0.099,  0.   ]])
    """
    if on_error != "raise":
        return handle_failed_states(coriolis_matrix, locals())
    if method in _METHODS:
        return evaluate(model, ("coriolis_matrix", method), coriolis_matrices, coriolis_workspace_size, {"q": q, "v": v},
                        (model.nv, model.nv), static_arguments=(_METHODS[method],))
    if method != "factorized":
        raise ShapeError(f"method must be one of {', '.join(_METHODS)}, factorized, got {method!r}")
    lead, states = broadcast_states(model, {"q": q, "v": v})
    matrices = [closed_form(model, x).coriolis_matrix(y) for x, y in zip(states["q"], states["v"], strict=True)]
    return np.reshape(matrices, (*lead, model.nv, model.nv))


def slotine_li_inverse_dynamics(model: Model, q: ArrayLike, v: ArrayLike, v_r: ArrayLike, a_r: ArrayLike, *,
                                passive: bool = True, on_error: OnError = "raise") -> Array:
    """Generalized forces ``M a_r + C(q, v) v_r + g`` with ``dM/dt - 2C`` skew: a modified recursive Newton-Euler, O(n).

    Adaptive and passivity-based control use it with a reference velocity ``v_r`` and a reference acceleration ``a_r``.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints have unit quaternions x y z w.
    v, v_r, a_r : (..., nv) arrays
        Velocity [rad/s | m/s], reference velocity, and reference acceleration.
    passive : bool
        Whether to subtract the forces of joint springs, damping, friction and force elements at q and v.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    tau : (..., nv) array
        Generalized force [N m | N]. For ``v_r = v`` it is `inverse_dynamics`.

    Raises
    ------
    ShapeError, ConfigurationError
    ModelError
        For a robot with loops, as in `inverse_dynamics`. Couplings and mimic joints are eliminated.

    Notes
    -----
    After Slotine and Li (1987); C is ``coriolis_matrix(model, q, v, method="christoffel")``. `slotine_li_regressor` is the
    same, linear in the inertial parameters.

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> ld.slotine_li_inverse_dynamics(model, q, v, [0.9, 0.6], [0.0, 1.0]).round(3)
    array([5.796, 0.734])
    """
    if on_error != "raise":
        return handle_failed_states(slotine_li_inverse_dynamics, locals())
    if model.nc:
        model = reduced_model(model, "slotine_li_inverse_dynamics", "spanning_tree").model
    return evaluate(model, ("slotine_li_inverse_dynamics", bool(passive)), slotine_li_batch, slotine_li_workspace_size,
                    {"q": q, "v": v, "v_r": v_r, "a_r": a_r}, (model.nv,), options=(bool(passive),))


def mass_matrix_rate(model: Model, q: ArrayLike, v: ArrayLike, *, on_error: OnError = "raise") -> Array:
    """Time derivative ``dM/dt`` along the velocity v: ``C + C^T``, O(n depth).

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints have unit quaternions x y z w.
    v : (..., nv) array
        Velocity [rad/s | m/s]; of a free joint its body twist [w; v].
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    dM : (..., nv, nv) array

    Raises
    ------
    ShapeError, ConfigurationError

    Notes
    -----
    Source: PL (28), Proposition 2.

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> ld.mass_matrix_rate(model, q, v).round(3)
    array([[0.099, 0.05 ],
           [0.05 , 0.   ]])
    """
    C = coriolis_matrix(model, q, v, on_error=on_error)
    return C + C.swapaxes(-1, -2)


def christoffel_symbols(model: Model, q: ArrayLike, *, on_error: OnError = "raise") -> Array:
    """Christoffel symbols of the first kind (..., nv, nv, nv) of the mass matrix: ``[i, j, k]`` is Gamma_ijk.

    ``tau_k = sum_j M_kj a_j + sum_ij Gamma_ijk v_i v_j + gravity``, and ``Gamma_ijk + Gamma_ikj = dM_jk/dq_i``.
    For joints of one degree of freedom ``Gamma_ijk = (dM_kj/dq_i + dM_ki/dq_j - dM_ij/dq_k)/2 = Gamma_jik``. The velocities of
    ball and free joints are not rates of coordinates: there ``Gamma_ijk = <nabla_Xi Xj, Xk>`` of the Levi-Civita connection
    in the frame of body-fixed fields X (Koszul's formula), and Gamma_ijk - Gamma_jik = <[Xi, Xj], Xk>.

    q : (..., nq) array [rad | m]. Raises ShapeError, ConfigurationError.

    For on_error see `inverse_dynamics`.

    Notes
    -----
    Source: PBP (52), (55)-(57); PL (3); for trees, O(n depth^2). Rotors (armature) of ball and free joints act on
    each velocity alone, as in inverse dynamics: they are in M and not in the brackets.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.christoffel_symbols(model, [0.3, -0.2])[:, :, 0].round(3)
    array([[0.   , 0.099],
           [0.099, 0.099]])
    """
    if on_error != "raise":
        return handle_failed_states(christoffel_symbols, locals())
    return _christoffels(model, q, SYMBOLS)


def mass_matrix_derivative(model: Model, q: ArrayLike, *, on_error: OnError = "raise") -> Array:
    """Derivatives of the mass matrix with respect to q (tangent), O(n depth^2).

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints have unit quaternions x y z w.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    dM : (..., nv, nv, nv) array
        ``[i, j, k]`` is dM_ij/dq_k.

    Raises
    ------
    ShapeError, ConfigurationError

    Notes
    -----
    Source: PBP (53).

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.mass_matrix_derivative(model, [0.3, -0.2])[:, :, 1].round(3)
    array([[0.199, 0.099],
           [0.099, 0.   ]])
    """
    if on_error != "raise":
        return handle_failed_states(mass_matrix_derivative, locals())
    return _christoffels(model, q, DERIVATIVE)


def _christoffels(model: Model, q: ArrayLike, quantity: int) -> Array:
    return evaluate(model, ("christoffel_symbols", quantity), christoffel_batch, christoffel_workspace_size, {"q": q},
                    (model.nv,) * 3, static_arguments=(quantity,))


# Riemannian curvature of the mass matrix (PBP (66)): in plain NumPy, one state ------------------------------------------

_PARALLEL = 1e-14        # of |u|^2 |w|^2 in the metric of M: a smaller squared area of their parallelogram is rounding


def curvature_tensor(model: Model, q: ArrayLike) -> Array:
    """Riemann tensor (nv, nv, nv, nv) of the kinetic energy's metric M: ``[i, j, k, l]`` is ``R_ijkl``, all indices lowered.

    It is zero if coordinates exist in which M is constant: the robot is then equivalent to a set of free masses.

    Parameters
    ----------
    q : (nq,) array
        One state [rad | m].

    Returns
    -------
    R : (nv, nv, nv, nv) array
        ``R_ijkl = <R(Xk, Xl) Xj, Xi>`` with ``R(X, Y) = nabla_X nabla_Y - nabla_Y nabla_X - nabla_[X,Y]``: antisymmetric in
        i j and in k l, symmetric under exchange of the pairs. A sphere has ``R_1212 > 0``. Indices of ball and free joints
        belong to the body-fixed fields X of their velocities.

    Raises
    ------
    ShapeError, ConfigurationError
    ComputationError
        The mass matrix is singular.

    Notes
    -----
    Source: PBP (66), with the derivatives of the Christoffel symbols by (53) and, for body-fixed fields, their
    brackets. Rotors (armature) are in the metric whole, also those of ball and free joints. O(n nv^4).

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> round(float(ld.curvature_tensor(model, [0.3, -0.2])[0, 1, 0, 1]), 4)
    0.4664
    """
    return _curvature(closed_form(model, q))


def _curvature(f: ClosedForm) -> Array:
    c, M = field_brackets(f), f.mass_matrix
    size = np.sqrt(M.diagonal())
    if len(M) and not (size.all() and np.linalg.cond(M / np.outer(size, size)) < 1e13):
        raise ComputationError("the mass matrix is singular in this configuration: its curvature is not defined")
    rotors = c * f.armature                                     # <[Xi, Xj], Xk> of the rotors alone: constant
    Gamma = f.christoffel_symbols + 0.5 * (rotors - rotors.transpose(0, 2, 1) - rotors.transpose(2, 0, 1))
    raised = np.linalg.solve(M, Gamma.reshape(len(M) ** 2, len(M)).T).T.reshape(Gamma.shape)      # [i, j, r] = Gamma_ij^r
    squares = np.einsum("ljr,kir->ijkl", raised, Gamma)
    half = np.einsum("ljik->ijkl", christoffel_derivative(f)) - squares
    R: Array = half - half.swapaxes(2, 3) - np.einsum("klm,mji->ijkl", c, Gamma)
    return R


def sectional_curvature(model: Model, q: ArrayLike, u: ArrayLike, w: ArrayLike) -> float:
    """Gaussian curvature of the surface of geodesics (motions without forces) that start along u and w.

    Parameters
    ----------
    model : Model
    q : (nq,) array
        One state [rad | m].
    u, w : (nv,) arrays
        Velocities that are not parallel.

    Returns
    -------
    float
        [1/(kg m^2)].

    Raises
    ------
    As `curvature_tensor`; ComputationError also where u and w do not span a plane.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> round(ld.sectional_curvature(model, [0.3, -0.2], [1, 0], [0, 1]), 4)
    2.2809
    """
    u, w = (as_single_state(x, name, (model.nv,), "the curvature is computed for one state") for x, name in ((u, "u"), (w, "w")))
    f = closed_form(model, q)
    R, M = _curvature(f), f.mass_matrix
    uu, uw, ww = u @ M @ u, u @ M @ w, w @ M @ w
    area = uu * ww - uw**2
    if not area > _PARALLEL * uu * ww:
        raise ComputationError("u and w do not span a plane: they are parallel, zero or not finite")
    return float(np.einsum("ijkl,i,j,k,l", R, u, w, u, w) / area)


def scalar_curvature(model: Model, q: ArrayLike) -> float:
    """Scalar curvature R^ij_ij of the mass matrix: twice the Gaussian curvature for two coordinates.

    Parameters
    ----------
    model : Model
    q : (nq,) array
        One state [rad | m].

    Returns
    -------
    float
        [1/(kg m^2)].

    Raises
    ------
    As `curvature_tensor`.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> round(ld.scalar_curvature(model, [0.3, -0.2]), 4)
    4.5617
    """
    f = closed_form(model, q)
    R, W = _curvature(f), np.linalg.inv(f.mass_matrix)
    return float(np.einsum("ijkl,ik,jl", R, W, W))


def christoffel_derivative(f: ClosedForm) -> Array:
    """Return (nv, nv, nv, nv) [i, j, k, m] = dGamma_ijk/dq_m of a `ClosedForm`, without rotors.

    Gamma_ijk is a sum over bodies of t(S_i, S_j, S_k), trilinear in the screws in the frame of the body, for i above j. A screw
    changes by [S_i, S_m] if m is strictly below i (PBP (53)).
    """
    nv, out = len(f.armature), np.zeros((len(f.armature),) * 4)
    strictly = f.above & ~np.eye(len(f.above), dtype=bool)
    jacobians = (f.G @ f.S).reshape(len(f.parent), 6, nv)         # from body to body, not through the world's origin
    for l, (I, J) in enumerate(zip(f.rigid, jacobians, strict=True)):
        k = np.flatnonzero(f.above[f.block_of, l])
        X, t, at = J[:, k], trilinear(inertia_matrix(I)), f.block_of[k]
        dX = np.array([bracket(x) @ X for x in X.T]).reshape(len(k), 6, len(k)).swapaxes(0, 1)       # (6, i, m)
        dX = dX * strictly[np.ix_(at, at)]
        d = (np.einsum("ajk,aim->ijkm", np.einsum("abc,bj,ck->ajk", t, X, X), dX)
             + np.einsum("bik,bjm->ijkm", np.einsum("abc,ai,ck->bik", t, X, X), dX)
             + np.einsum("cij,ckm->ijkm", np.einsum("abc,ai,bj->cij", t, X, X), dX))
        out[np.ix_(k, k, k, k)] += d
    ordered = f.above[np.ix_(f.block_of, f.block_of)].reshape(nv, nv, 1, 1)
    return np.where(ordered, out, out.swapaxes(0, 1))


def trilinear(I: Array) -> Array:
    """Return (6, 6, 6) t(a, b, c) = (<[a, b], c> + <[c, a], b> + <[c, b], a>)/2 for the inertia I (6, 6): Koszul on SE(3)."""
    brackets = np.array([bracket(e) for e in np.eye(6)]).swapaxes(1, 2)              # [a, b, :] = [a, b]
    lowered = brackets @ I                                                           # <[a, b], c>
    return 0.5 * (lowered + lowered.transpose(1, 2, 0) + lowered.transpose(2, 1, 0))


def field_brackets(f: ClosedForm) -> Array:
    """Return (nv, nv, nv) c with [Xi, Xj] = sum_m c_ijm Xm.

    The brackets are nonzero only within a ball or free joint, whose screws are unit twists.
    """
    c = np.zeros((len(f.armature),) * 3)
    for S, at in zip(f.screws, f.columns, strict=True):
        if S.shape[1] > 1:
            c[at, at, at] = np.einsum("aim,ak->imk", np.array([bracket(x) @ S for x in S.T]).swapaxes(0, 1), S)
    return c
