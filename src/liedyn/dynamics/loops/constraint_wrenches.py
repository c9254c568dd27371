"""Constraint forces for people: as the wrenches that closures transmit, and as wrenches on links."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from liedyn.dynamics.calling.annotations import Array, ArrayLike, Frame, OnError
from liedyn.dynamics.calling.calls import as_array, batched, run
from liedyn.dynamics.calling.each_state import each_state
from liedyn.dynamics.calling.frames import check_frame, wrenches_in
from liedyn.dynamics.kinematics import link_poses
from liedyn.dynamics.loops.constraints import DRIVE, drive_array, refuse_constrained, require_constraints
from liedyn.kernels.loops import loop_wrenches
from liedyn.model.model import Model
from liedyn.model.spatial import adjoint, pose


def closure_wrenches(model: Model, q: ArrayLike, multipliers: ArrayLike, *, drive: Mapping[str, Any] | None = None,
                     frame: Frame = "local_world_aligned", on_error: OnError = "raise") -> Array:
    """The reaction of each closure: the wrench (..., n_closures, 6) [m; f] [N m | N] that it exerts on link b, from link a.

    Link a receives the opposite wrench, about the same point. These are the columns ``reaction.<closure>`` of trajectory files.

    Parameters
    ----------
    q : (..., nq) array
    multipliers : (..., m) array
        From `constrained_forward_dynamics` and similar functions [N m | N]. If constraints are redundant,
        only sums of reactions are determined by rigid bodies; these are then the reactions of the multipliers of least norm.
    drive
        As in `constraint_residual`.
    frame : "local", "local_world_aligned" or "world"
        Axes of the closure's frame b, about its origin; axes of the world, about the origin of frame b; axes of the world, about
        the world's origin.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    (..., n_closures, 6) array
        In the order of the loops in ``model.description.loops``; couplings are not among them.

    Raises
    ------
    ModelError, ShapeError, ConfigurationError

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> q = ld.assemble(model, [1.2, 0.2, 1.8], fixed=["crank"]).q
    >>> motion = ld.constrained_forward_dynamics(model, q, np.zeros(3), [0.5, 0, 0])
    >>> ld.closure_wrenches(model, q, motion.multipliers)[0, 3:].round(2)     # force in the pin, world axes
    array([-2.  ,  0.  , -8.58])
    """
    if on_error != "raise":
        return each_state(closure_wrenches, locals())
    check_frame(frame)
    lead, on_bodies, q = _on_bodies(model, q, multipliers, drive)
    loops, poses = model.description.loops, link_poses(model, q)
    F, T = np.zeros((len(q), len(loops), 6)), np.zeros((len(q), len(loops), 4, 4))
    for k, loop in enumerate(loops):
        end, link = pose(loop.pose_b), np.eye(4)
        T[:, k] = end
        if loop.b in model.link_names:                           # else the ground
            i = model.link_index(loop.b)
            T[:, k], link = poses[:, i] @ end, model.link_pose[i]
        F[:, k] = on_bodies[:, k, 1] @ adjoint(link @ end)       # Ad*_T of each row
    return wrenches_in(frame, T, F).reshape(*lead, len(loops), 6)


def constraint_wrenches(model: Model, q: ArrayLike, multipliers: ArrayLike, *, drive: Mapping[str, Any] | None = None,
                        on_error: OnError = "raise") -> Array:
    """Wrenches that closures exert on links: (..., n_links, 6) [m; f] [N m | N], each in its link's "local" frame.

    They can be passed as ``f_ext`` to the functions of the open tree, `Model.open_tree`, which then moves like the constrained
    robot. Forces of couplings are not included (`constraint_forces` has all as joint forces), nor are the wrenches that
    closures exert on the ground. `closure_wrenches` returns the wrenches by closure.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m].
    multipliers : (..., m) array
        From `constrained_forward_dynamics` and similar functions [N m | N].
    drive
        Motion of driven loops, as in `constraint_residual`.
    on_error
        As in `inverse_dynamics`.

    Raises
    ------
    ModelError, ShapeError, ConfigurationError

    Notes
    -----
    Row r of a closure is a wrench on B in frame B (`joints.closures`), and its opposite on A (K2 (54): A^T lambda).

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> q = ld.assemble(model, [1.2, 0.2, 1.8], fixed=["crank"]).q
    >>> motion = ld.constrained_forward_dynamics(model, q, np.zeros(3), [0.5, 0, 0])
    >>> ld.constraint_wrenches(model, q, motion.multipliers).shape
    (4, 6)
    """
    if on_error != "raise":
        return each_state(constraint_wrenches, locals())
    lead, on_bodies, _ = _on_bodies(model, q, multipliers, drive)
    out = np.zeros((len(on_bodies), len(model.link_names), 6))
    for c, loop in enumerate(model.description.loops):
        for side, name in enumerate((loop.a, loop.b)):
            if name in model.link_names:
                link = model.link_index(name)
                out[:, link] += on_bodies[:, c, side] @ adjoint(model.link_pose[link])       # Ad*_T of each row
    return out.reshape(*lead, *out.shape[1:])


def _on_bodies(model, q, multipliers, drive):
    """Leading axes; the wrench of each constraint on the bodies of A and of B, in their frames, (N, constraints, 2, 6); q."""
    require_constraints(model)
    named = [("q", as_array(q, "q", (model.nq,)), 1), ("multipliers", as_array(multipliers, "multipliers", (model.nc,)), 1),
             ("drive", drive_array(model, drive), 1)]
    lead, rows = batched(*(named if named[2][1].size else named[:2]))
    D = rows[2] if len(rows) == 3 else np.empty((len(rows[0]), 0))
    n, nq, nv, _ = model.sizes
    nc = len(model.constraints)
    out = np.empty((len(rows[0]), 12 * nc))
    size = loop_wrenches.closure_wrenches_memory(n, nq, nv, nc, model.nc, D.shape[1] // DRIVE)
    code = run(loop_wrenches.closure_wrenches, model, size, (model.loop_index, model.loop_constants), (rows[0], D, rows[1], out),
               len(out))
    refuse_constrained(model, code, q=rows[0])
    return lead, out.reshape(-1, nc, 2, 6), rows[0]
