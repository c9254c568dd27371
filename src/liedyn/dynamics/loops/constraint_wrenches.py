"""Constraint forces for people: as the wrenches that closures transmit, and as wrenches on links."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from liedyn.dynamics.calling.annotations import Array, ArrayLike, Frame, OnError
from liedyn.dynamics.calling.calls import computed
from liedyn.dynamics.calling.each_state import each_state
from liedyn.dynamics.calling.frames import check_frame, wrenches_in
from liedyn.dynamics.kinematics import link_poses
from liedyn.dynamics.loops.constraints import require_constraints
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
    on_bodies, loops, poses = _on_bodies(model, q, multipliers, drive), model.description.loops, link_poses(model, q)
    F, T = np.zeros((*on_bodies.shape[:-3], len(loops), 6)), np.zeros((*poses.shape[:-3], len(loops), 4, 4))
    for k, loop in enumerate(loops):
        end, link = pose(loop.pose_b), np.eye(4)
        T[..., k, :, :] = end
        if loop.b in model.link_names:                           # else the ground
            i = model.link_index(loop.b)
            T[..., k, :, :], link = poses[..., i, :, :] @ end, model.link_pose[i]
        F[..., k, :] = on_bodies[..., k, 1, :] @ adjoint(link @ end)       # Ad*_T of each row
    return wrenches_in(frame, T, F)


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
    on_bodies = _on_bodies(model, q, multipliers, drive)
    out = np.zeros((*on_bodies.shape[:-3], len(model.link_names), 6))
    for c, loop in enumerate(model.description.loops):
        for side, name in enumerate((loop.a, loop.b)):
            if name in model.link_names:
                link = model.link_index(name)
                out[..., link, :] += on_bodies[..., c, side, :] @ adjoint(model.link_pose[link])       # Ad*_T of each row
    return out


def _on_bodies(model, q, multipliers, drive) -> np.ndarray:
    """The wrench of each constraint on the bodies of A and of B, in their frames, (…, constraints, 2, 6)."""
    require_constraints(model)
    nc = len(model.constraints)
    return computed(model, "closure_wrenches", loop_wrenches.closure_wrenches,
                    lambda n, nq, nv, nl: loop_wrenches.closure_wrenches_memory(n, nq, nv, nc, model.nc, model.driven),
                    {"q": q, "drive": drive, "multipliers": multipliers}, (nc, 2, 6),
                    before=model._arrays[2:4])
