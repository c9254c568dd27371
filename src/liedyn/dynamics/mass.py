"""The mass matrix and its inverse."""
from __future__ import annotations

from liedyn.dynamics.calling.annotations import Array, ArrayLike, OnError
from liedyn.dynamics.calling.calls import computed
from liedyn.dynamics.calling.each_state import each_state
from liedyn.dynamics.hybrid import none_prescribed
from liedyn.kernels.recursions.composite import mass_matrices, mass_memory
from liedyn.kernels.recursions.inverse_mass import inverse_mass_memory, inverse_masses
from liedyn.model.model import Model


def mass_matrix(model: Model, q: ArrayLike, *, on_error: OnError = "raise", out: Array | None = None) -> Array:
    """Mass matrix ``M(q)``, armature on its diagonal: composite bodies, O(n depth).

    For a robot with loops it is the M of ``M a + b = tau + A^T lambda``, that of the open tree.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints hold unit quaternions x y z w.
    on_error, out
        As in `inverse_dynamics`.

    Returns
    -------
    M : (..., nv, nv) array
        [kg m^2 | kg m | kg].

    Raises
    ------
    ShapeError, ConfigurationError

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.mass_matrix(model, [0.3, -0.2]).round(3)
    array([[2.647, 0.823],
           [0.823, 0.333]])
    """
    if on_error != "raise":
        return each_state(mass_matrix, locals())
    nv = model.nv
    return computed(model, "mass_matrix", mass_matrices, mass_memory, {"q": q}, (nv, nv), out=out)


def inverse_mass_matrix(model: Model, q: ArrayLike, *, on_error: OnError = "raise", out: Array | None = None) -> Array:
    """``M(q)^-1`` without forming M: O(n) a column, by articulated bodies (K1 Table 3).

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints hold unit quaternions x y z w.
    on_error, out
        As in `inverse_dynamics`.

    Returns
    -------
    W : (..., nv, nv) array

    Raises
    ------
    ShapeError, ConfigurationError
    ComputationError
        If a joint's articulated inertia vanishes.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.inverse_mass_matrix(model, [0.3, -0.2]).round(3)
    array([[ 1.631, -4.027],
           [-4.027, 12.945]])
    """
    if on_error != "raise":
        return each_state(inverse_mass_matrix, locals())
    nv = model.nv
    return computed(model, "inverse_mass_matrix", inverse_masses, inverse_mass_memory, {"q": q}, (nv, nv),
                    prescribed=none_prescribed(model), out=out)
