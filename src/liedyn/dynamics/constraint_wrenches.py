"""Constraint forces for people: as wrenches on links."""
from __future__ import annotations

import numpy as np

from liedyn.dynamics.calls import as_array, batched, scratch
from liedyn.dynamics.constraints import drive_array, refuse_constrained, require_constraints
from liedyn.jit import prepare
from liedyn.kernels.loop_wrenches import closure_wrenches, closure_wrenches_memory
from liedyn.model.description import WORLD
from liedyn.model.spatial import adjoint


def constraint_wrenches(model, q, multipliers, *, drive=None):
    """What closures exert on links: (..., n_links, 6) wrenches [m; f] [N m | N] in link frames, about the links' origins.

    They may be given as ``f_ext`` to the functions of the open tree, which then moves as the constrained one does. Couplings
    act on joints and have no part in it (`constraint_forces` has all as joint forces); nor has what closures exert on the
    ground.

    Parameters
    ----------
    q : (..., nq) array
    multipliers : (..., m) array
        Of `constrained_forward_dynamics` and its like [N m | N].

    Raises
    ------
    ModelError, ShapeError, ConfigurationError

    Notes
    -----
    Row r of a closure is a wrench on B in frame B (`joints.closures`), and its opposite on A (K2 (54): A^T lambda).
    """
    require_constraints(model)
    named = [("q", as_array(q, "q", (model.nq,)), 1), ("multipliers", as_array(multipliers, "multipliers", (model.nc,)), 1),
             ("drive", drive_array(model, drive), 1)]
    lead, rows = batched(*(named if named[2][1].size else named[:2]))
    D = rows[2] if len(rows) == 3 else np.empty((len(rows[0]), 0))
    n, _, nv, _ = model.sizes
    nc, m = len(model.constraints), model.nc
    per_body = np.empty((len(rows[0]), 12 * nc))
    prepare(closure_wrenches)
    code = closure_wrenches(model.index, model.constants, scratch(closure_wrenches_memory(n, nv, nc, m)), model.loop_index,
                            model.loop_constants, rows[0], D, rows[1], per_body, 0, len(per_body))
    refuse_constrained(model, code, q=rows[0])
    per_body = per_body.reshape(-1, nc, 2, 6)
    out = np.zeros((len(per_body), len(model.link_names), 6))
    for c, one in enumerate(model.constraints):
        for side, name in enumerate((one.a, one.b)):
            if name and name != WORLD:
                link = model.link_index(name)
                out[:, link] += per_body[:, c, side] @ adjoint(model.link_pose[link])       # Ad*_T of each row
    return out.reshape(*lead, *out.shape[1:])
