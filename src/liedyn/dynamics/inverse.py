"""Inverse dynamics and what follows from it: gravity, bias and constraint forces."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from liedyn.dynamics.calling.annotations import Array, ArrayLike, Frame, OnError, Wrenches
from liedyn.dynamics.calling.arguments import NONE, batched, wrenches
from liedyn.dynamics.calling.calls import computed
from liedyn.dynamics.calling.each_state import each_state
from liedyn.dynamics.calling.frames import LOCAL, check_frame, wrenches_in
from liedyn.dynamics.kinematics import link_poses
from liedyn.dynamics.loops.constraint_wrenches import constraint_wrenches
from liedyn.dynamics.open_tree import refuse_constraints
from liedyn.errors import ModelError
from liedyn.kernels.recursions.newton_euler import inverse_batch, inverse_batch_memory
from liedyn.model.model import Model
from liedyn.model.spatial import adjoint

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
    return computed(model, _ONE[bool(passive)], inverse_batch, inverse_batch_memory, {"q": q, "v": v, "a": a, "f_ext": f_ext},
                    (model.nv,), options=(bool(passive),), after=(NONE,), out=out)


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
    F = f_ext
    if model.description.loops or multipliers is not None:
        F = _with_reactions(model, q, wrenches(model, f_ext), multipliers, drive)
    _, on_bodies = computed(model, "joint_wrenches", inverse_batch, inverse_batch_memory, {"q": q, "v": v, "a": a, "f_ext": F},
                            (model.nv,), (model.n_bodies, 6), options=(False,))
    children = [model.link_index(joint.child) for joint in model.joints]
    rows = on_bodies[..., [joint.body for joint in model.joints], None, :]
    local = (rows @ adjoint(model.link_pose[children]))[..., 0, :]                                 # Ad*_T of each row
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
