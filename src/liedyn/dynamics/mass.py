"""The mass matrix and its inverse."""
from __future__ import annotations

import numpy as np

from liedyn.dynamics.calling.annotations import Array, ArrayLike, OnError
from liedyn.dynamics.calling.calls import as_array, batched, refuse, run, run_one
from liedyn.dynamics.calling.each_state import each_state
from liedyn.dynamics.calling.rooms import room_for
from liedyn.kernels.recursions.composite import mass_matrices, mass_memory
from liedyn.kernels.recursions.inverse_mass import inverse_mass_memory, inverse_masses
from liedyn.model.model import Model


def mass_matrix(model: Model, q: ArrayLike, *, on_error: OnError = "raise") -> Array:
    """Mass matrix ``M(q)`` (..., nv, nv), armature on its diagonal: composite bodies, O(n depth).

    For a robot with loops it is the M of ``M a + b = tau + A^T lambda``, that of the open tree.

    q : (..., nq) array [rad | m]. Raises ShapeError, ConfigurationError.

    For on_error see `inverse_dynamics`.
    """
    if on_error != "raise":
        return each_state(mass_matrix, locals())
    size, M = mass_memory(*model.sizes), np.empty((model.nv, model.nv))
    if run_one(model, "mass_matrix", mass_matrices, size, (), 1, (q, M), (q, M)):
        return M
    lead, (rows,) = batched(("q", as_array(q, "q", (model.nq,)), 1))
    M, lines = room_for((*lead, model.nv, model.nv), len(rows))
    refuse(model, run(mass_matrices, model, size, (), (rows, lines), len(rows)), q=rows)
    return M


def inverse_mass_matrix(model: Model, q: ArrayLike, *, on_error: OnError = "raise") -> Array:
    """``M(q)^-1`` (..., nv, nv) without forming M: O(n) a column, by articulated bodies (K1 Table 3).

    q : (..., nq) array [rad | m]. Raises ShapeError, ConfigurationError, ComputationError.

    For on_error see `inverse_dynamics`.
    """
    if on_error != "raise":
        return each_state(inverse_mass_matrix, locals())
    nv, size = model.nv, inverse_mass_memory(*model.sizes)
    before, out = (np.zeros(nv, dtype=bool),), np.empty((nv, nv))
    if run_one(model, "inverse_mass_matrix", inverse_masses, size, before, 1, (q, out), (q, out)):
        return out
    lead, (rows,) = batched(("q", as_array(q, "q", (model.nq,)), 1))
    out, lines = room_for((*lead, nv, nv), len(rows))
    code = run(inverse_masses, model, size, before, (rows, lines), len(rows))
    refuse(model, code, q=rows)
    return out
