"""The mass matrix and its inverse."""
from __future__ import annotations

import numpy as np

from liedyn.dynamics.calling.annotations import Array, ArrayLike, OnError
from liedyn.dynamics.calling.calls import as_array, batched, refuse, run, run_one
from liedyn.dynamics.calling.each_state import each_state
from liedyn.dynamics.calling.results import hand_over, place_for
from liedyn.dynamics.calling.rooms import room_for
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
    size, M = mass_memory(*model.sizes), _of_one(model.nv, q, out)
    if run_one(model, "mass_matrix", mass_matrices, size, (), 1, (q, M), (q, M)):
        return hand_over(M, out)
    lead, (rows,) = batched(("q", as_array(q, "q", (model.nq,)), 1))
    M, lines = _room(lead, model.nv, rows, out)
    refuse(model, run(mass_matrices, model, size, (), (rows, lines), len(rows)), q=rows)
    return hand_over(M, out)


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
    nv, size = model.nv, inverse_mass_memory(*model.sizes)
    before, W = (np.zeros(nv, dtype=bool),), _of_one(nv, q, out)
    if run_one(model, "inverse_mass_matrix", inverse_masses, size, before, 1, (q, W), (q, W)):
        return hand_over(W, out)
    lead, (rows,) = batched(("q", as_array(q, "q", (model.nq,)), 1))
    W, lines = _room(lead, nv, rows, out)
    code = run(inverse_masses, model, size, before, (rows, lines), len(rows))
    refuse(model, code, q=rows)
    return hand_over(W, out)


def _of_one(nv, q, out):
    """A matrix for one state, or for none."""
    one = out is not None and isinstance(q, np.ndarray) and q.ndim == 1
    return place_for((nv, nv), out, (q,)) if one else np.empty((nv, nv))


def _room(lead, nv, q, out):
    """Matrices (*lead, nv, nv), and as (N, nv nv)."""
    if out is None:
        return room_for((*lead, nv, nv), len(q))
    X = place_for((*lead, nv, nv), out, (q,))
    return X, X.reshape(len(q), nv * nv)
