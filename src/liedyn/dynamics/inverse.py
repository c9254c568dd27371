"""Inverse dynamics and what follows from it: gravity, bias and constraint forces."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from liedyn.dynamics.calling.annotations import Array, ArrayLike, Frame, OnError, Wrenches
from liedyn.dynamics.calling.calls import NONE_BATCH, as_array, batched, refuse, run, single, wrenches
from liedyn.dynamics.calling.each_state import each_state
from liedyn.dynamics.calling.frames import LOCAL, check_frame, wrenches_in
from liedyn.dynamics.calling.results import hand_over, place_for
from liedyn.dynamics.kinematics import link_poses
from liedyn.dynamics.loops.constraint_wrenches import constraint_wrenches
from liedyn.dynamics.open_tree import refuse_constraints
from liedyn.errors import ModelError
from liedyn.kernels.recursions.newton_euler import inverse_batch, inverse_batch_memory
from liedyn.model.model import Model

_ONE = {False: "inverse_dynamics, passive=False", True: "inverse_dynamics"}


def inverse_dynamics(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, f_ext: Wrenches | None = None,
                     passive: bool = True, on_error: OnError = "raise", out: Array | None = None) -> Array:
    """Joint forces that produce the accelerations ``a``: recursive Newton-Euler, O(n).

    Solves ``M(q) a + b(q, v) = tau + tau_passive + sum_i J_i^T f_ext_i`` for ``tau``.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints hold unit quaternions x y z w.
    v, a : (..., nv) arrays
        Joint velocity [rad/s | m/s] and acceleration; a free joint's is its body twist [w; v] and its rate.
    f_ext : (..., n_links, 6) array or {link name: (..., 6) array}, optional
        External wrench [m; f] [N m | N] on each link, in its "local" frame: link axes, about the link's origin.
    passive : bool
        Whether joint springs, damping and friction act.
    on_error : "raise", "nan" or function
        What happens with a state that cannot be computed: "raise" ends the call with an error; "nan" gives NaN for that state; a
        function is called as ``on_error(state, error)``, with the index in the batch and the error, and the result is NaN.
    out : (..., nv) array of float64, optional
        Where the result is written, which is then returned; it may be one of the arguments.

    Returns
    -------
    tau : (..., nv) array
        Joint force [N m | N].

    Raises
    ------
    ShapeError, ConfigurationError
    ModelError
        For a robot with loops or couplings: use `constrained_inverse_dynamics`, which accounts for them, or
        `Model.open_tree`.

    Notes
    -----
    Source: K1 (32), Tables 1-2; PBP (29). Gravity enters as ``dV_0 = [0; -g]``.

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> ld.inverse_dynamics(model, q, v, [0.0, 1.0]).round(3)
    array([5.786, 0.724])
    """
    if f_ext is None and on_error == "raise":
        try:                                  # arrays as they should be, of which the line checks all
            line = model._cache[_ONE[passive]]
            if out is not None and not line(q, v, a, out):
                return out
            if out is None and (tau := line(q, v, a)) is not None:
                return tau
        except (KeyError, TypeError):
            pass
    if model.nc:
        refuse_constraints(model, "inverse_dynamics", "constrained_inverse_dynamics")
    if on_error != "raise":
        return each_state(inverse_dynamics, locals())
    return _general(model, q, v, a, f_ext, passive, out)


def _general(model, q, v, a, f_ext, passive, out):
    q, v, a = as_array(q, "q", (model.nq,)), as_array(v, "v", (model.nv,)), as_array(a, "a", (model.nv,))
    F = wrenches(model, f_ext)
    if q.ndim == v.ndim == a.ndim == 1 and (F is None or F.ndim == 2):
        tau, passive = place_for((model.nv,), out, (q, v, a)), bool(passive)
        key = _ONE[passive] if F is None else ("inverse_dynamics", passive, "f_ext")
        code = single(model, key, inverse_batch, inverse_batch_memory(*model.sizes), (),
                      (q, v, a, NONE_BATCH if F is None else F, passive, tau, NONE_BATCH))
        refuse(model, code, q=q, v=v, a=a)
        return hand_over(tau, out)
    named = [("q", q, 1), ("v", v, 1), ("a", a, 1)] + ([("f_ext", F, 2)] if F is not None else [])
    lead, tau = _batch(model, named, F is not None, passive, NONE_BATCH, out)
    return hand_over(tau.reshape(*lead, model.nv), out)


def _batch(model, named, with_f_ext, passive, wrenches_out, out=None):
    lead, rows = batched(*named)
    tau = place_for((*lead, model.nv), out, rows).reshape(len(rows[0]), model.nv)
    if wrenches_out is None:
        wrenches_out = np.empty((len(tau), 6 * model.n_bodies))
    size = inverse_batch_memory(*model.sizes)
    code = run(inverse_batch, model, size, (),
               (*rows[:3], rows[3] if with_f_ext else NONE_BATCH, bool(passive), tau, wrenches_out), len(tau))
    refuse(model, code, q=rows[0], v=rows[1], a=rows[2])
    return lead, tau if wrenches_out is NONE_BATCH else wrenches_out


def bias_force(model: Model, q: ArrayLike, v: ArrayLike, *, f_ext: Wrenches | None = None, on_error: OnError = "raise") -> Array:
    """Coriolis, centrifugal and gravity force ``b(q, v)`` of ``M a + b = tau``.

    Passive forces are not included. For a robot with loops it is the b of ``M a + b = tau + A^T lambda``, that of the open tree.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints hold unit quaternions x y z w.
    v : (..., nv) array
        Velocity [rad/s | m/s]; of a free joint its body twist [w; v].
    f_ext
        External wrenches as in `inverse_dynamics`, which are subtracted; default: none.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    b : (..., nv) array
        [N m | N].

    Raises
    ------
    ShapeError, ConfigurationError, NameLookupError

    Notes
    -----
    K1 Table 2 with zero acceleration.

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> ld.bias_force(model, q, v).round(3)
    array([4.962, 0.39 ])
    """
    if on_error != "raise":
        return each_state(bias_force, locals())
    return inverse_dynamics(model.open_tree(), q, v, np.zeros(model.nv), f_ext=f_ext, passive=False)


def gravity_force(model: Model, q: ArrayLike, *, on_error: OnError = "raise") -> Array:
    """Joint forces that hold the robot at rest against gravity: ``b(q, 0)``. Springs are not included.

    For a robot with loops it is the term of ``M a + b = tau + A^T lambda`` of the open tree; `constrained_inverse_dynamics` at
    rest gives the holding forces of its motors.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints hold unit quaternions x y z w.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    g : (..., nv) array
        [N m | N].

    Raises
    ------
    ShapeError, ConfigurationError

    Notes
    -----
    Source: PBP (59); PL (26), (38).

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.gravity_force(model, [0.3, -0.2]).round(3)
    array([4.838, 0.49 ])
    """
    if on_error != "raise":
        return each_state(gravity_force, locals())
    return inverse_dynamics(model.open_tree(), q, np.zeros(model.nv), np.zeros(model.nv), passive=False)


def joint_wrenches(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, f_ext: Wrenches | None = None,
                   frame: Frame = "local", multipliers: ArrayLike | None = None, drive: Mapping[str, Any] | None = None,
                   on_error: OnError = "raise") -> Array:
    """Wrench that each joint transmits to its child link, including the motor force.

    Parameters
    ----------
    model, q, v, a, f_ext
        As in `inverse_dynamics`.
    frame : "local", "local_world_aligned" or "world"
        Of the result: axes of the child link, about its origin; axes of the world, about the child link's origin; axes of the
        world, about the world's origin.
    multipliers : (..., m) array
        For a robot with loops, whose reactions also act on the links: those of the constrained dynamics that gave ``a``.
    drive
        As in `constraint_residual`.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    F : (..., n_joints, 6) array
        [m; f] [N m | N] on the child link of each moving joint (K1 (12), (41), Table 2; PBP (8), (80)). Locally,
        ``S^T F`` is the joint's force without armature and passive forces.

    Raises
    ------
    ShapeError, ConfigurationError, NameLookupError

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> ld.joint_wrenches(model, q, v, a=[0.0, 0.0], frame="local_world_aligned").round(2)[1]
    array([ 0.  ,  0.39,  0.  ,  0.41,  0.  , 11.88])
    """
    if on_error != "raise":
        return each_state(joint_wrenches, locals())
    check_frame(frame)
    q, v, a = as_array(q, "q", (model.nq,)), as_array(v, "v", (model.nv,)), as_array(a, "a", (model.nv,))
    F = wrenches(model, f_ext)
    if model.description.loops or multipliers is not None:
        F = _with_reactions(model, q, F, multipliers, drive)
    named = [("q", q, 1), ("v", v, 1), ("a", a, 1)] + ([("f_ext", F, 2)] if F is not None else [])
    lead, out = _batch(model, named, F is not None, False, None)
    bodies = np.array([joint.body for joint in model.joints], dtype=int)
    children = [model.link_index(joint.child) for joint in model.joints]
    local = _to_links(out.reshape(-1, model.n_bodies, 6)[:, bodies], [model.link_pose[k] for k in children])
    local = local.reshape(*lead, len(model.joints), 6)
    return local if frame == LOCAL else wrenches_in(frame, link_poses(model, q)[..., children, :, :], local)


def _with_reactions(model, q, F, multipliers, drive):
    if multipliers is None:
        raise ModelError(f"robot {model.name} has loops, whose reactions also act on its links",
                         hint="give multipliers=, as constrained_forward_dynamics, constrained_hybrid_dynamics or "
                              "constrained_inverse_dynamics return them, or use model.open_tree()")
    reactions = constraint_wrenches(model, q, multipliers, drive=drive)
    if F is None:
        return reactions
    lead, (F, reactions) = batched(("f_ext", F, 2), ("reactions", reactions, 2))
    return (F + reactions).reshape(*lead, -1, 6)


def _to_links(F: np.ndarray, frames: list[np.ndarray]) -> np.ndarray:
    """Wrenches (N, k, 6) on bodies, seen from the link frames on them: F_link = Ad*_T F_body."""
    R = np.array([T[:3, :3] for T in frames]).reshape(-1, 3, 3)
    p = np.array([T[:3, 3] for T in frames]).reshape(-1, 3)
    m, f = F[..., :3], F[..., 3:]
    return np.concatenate([np.einsum("kji,nkj->nki", R, m - np.cross(p, f)), np.einsum("kji,nkj->nki", R, f)], axis=-1)
