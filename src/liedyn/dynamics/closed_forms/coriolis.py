"""Velocity terms as matrices and tensors: Coriolis matrix, Christoffel symbols, derivatives of the mass matrix."""
from __future__ import annotations

import numpy as np

from liedyn.dynamics.calling.annotations import Array, ArrayLike, Coriolis, OnError
from liedyn.dynamics.calling.arguments import states
from liedyn.dynamics.calling.calls import computed
from liedyn.dynamics.calling.each_state import each_state
from liedyn.dynamics.closed_forms.closed_form import closed_form
from liedyn.errors import ShapeError
from liedyn.kernels.recursions.christoffel import DERIVATIVE, SYMBOLS, christoffel_memory, christoffels
from liedyn.kernels.recursions.coriolis import coriolis_matrices, coriolis_memory
from liedyn.model.model import Model

_PLOEN = {"recursive": 1.0, "christoffel": 0.0}          # which skew form: see `kernels.recursions.coriolis`


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
        return each_state(coriolis_matrix, locals())
    if method in _PLOEN:
        return computed(model, ("coriolis_matrix", method), coriolis_matrices, coriolis_memory, {"q": q, "v": v},
                        (model.nv, model.nv), before=(_PLOEN[method],))
    if method != "factorized":
        raise ShapeError(f"method must be one of {', '.join(_PLOEN)}, factorized; found {method!r}")
    lead, given = states(model, {"q": q, "v": v})
    matrices = [closed_form(model, x).coriolis_matrix(y) for x, y in zip(given["q"], given["v"], strict=True)]
    return np.reshape(matrices, (*lead, model.nv, model.nv))


def mass_matrix_rate(model: Model, q: ArrayLike, v: ArrayLike, *, on_error: OnError = "raise") -> Array:
    """Time derivative ``dM/dt`` along the velocity v: ``C + C^T``, O(n depth).

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints hold unit quaternions x y z w.
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
    if on_error != "raise":
        return each_state(mass_matrix_rate, locals())
    C = coriolis_matrix(model, q, v)
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
        return each_state(christoffel_symbols, locals())
    return _christoffels(model, q, SYMBOLS)


def mass_matrix_derivative(model: Model, q: ArrayLike, *, on_error: OnError = "raise") -> Array:
    """Derivatives of the mass matrix by q, tangent, O(n depth^2).

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints hold unit quaternions x y z w.
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
        return each_state(mass_matrix_derivative, locals())
    return _christoffels(model, q, DERIVATIVE)


def _christoffels(model, q, what):
    return computed(model, ("christoffel_symbols", what), christoffels, christoffel_memory, {"q": q}, (model.nv,) * 3,
                    before=(what,))
