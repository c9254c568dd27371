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
    """Mass matrix ``M(q)`` (..., nv, nv), armature on its diagonal: composite bodies, O(n depth).

    For a robot with loops it is the M of ``M a + b = tau + A^T lambda``, that of the open tree.

    q : (..., nq) array [rad | m]. Raises ShapeError, ConfigurationError.

    For on_error and out see `inverse_dynamics`.
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
    """``M(q)^-1`` (..., nv, nv) without forming M: O(n) a column, by articulated bodies (K1 Table 3).

    q : (..., nq) array [rad | m]. Raises ShapeError, ConfigurationError, ComputationError.

    For on_error and out see `inverse_dynamics`.
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
