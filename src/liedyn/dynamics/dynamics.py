"""Inverse, forward and hybrid dynamics, forces of gravity, bias and constraints, mass matrix."""
from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Unpack, overload

import numpy as np

from liedyn.arrays import Array, ArrayLike, Frame, Mask, OnError, Precision, Wrenches
from liedyn.dynamics.batching.arrays import (
    LOCAL,
    NONE,
    WORLD,
    as_mask,
    broadcast_arrays,
    check_frame,
    copy_to_out,
    wrenches,
    wrenches_in_frame,
)
from liedyn.dynamics.batching.block_calls import BlockOptions, with_blocks
from liedyn.dynamics.batching.calls import evaluate, evaluate_hybrid
from liedyn.dynamics.batching.failed_states import handle_failed_states
from liedyn.dynamics.batching.single_precision import with_number_type
from liedyn.dynamics.batching.state_blocks import StateBlocks, States
from liedyn.dynamics.constraints.constraints import constraint_wrenches
from liedyn.dynamics.constraints.couplings import reduced_model
from liedyn.dynamics.force_elements import element_wrenches
from liedyn.dynamics.kinematics import all_link_motions, link_poses
from liedyn.errors import ModelError
from liedyn.joints.joint_model import FOLLOWER_COUNT
from liedyn.kernels.hybrid_dynamics import coupled_batch_workspace_size, hybrid_batch, hybrid_batch_workspace_size
from liedyn.kernels.mass_matrix import inverse_masses, inverse_masses_workspace_size, mass_matrices, mass_matrices_workspace_size
from liedyn.kernels.newton_euler import inverse_batch, inverse_batch_workspace_size
from liedyn.model.model import Model
from liedyn.model.model_cache import ModelValue
from liedyn.model.spatial import adjoint, symmetric_matrix

# inverse ----------------------------------------------------------------------------------------------------------------

_INVERSE_CALLS = {False: "inverse_dynamics, passive=False", True: "inverse_dynamics"}


@overload
def inverse_dynamics(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, f_ext: Wrenches | None = ...,
                     passive: bool = ..., on_error: OnError = ..., dtype: Precision = ..., out: Array | None = ...) -> Array: ...
@overload
def inverse_dynamics(model: Model, q: StateBlocks, v: StateBlocks, a: StateBlocks,
                     **options: Unpack[BlockOptions]) -> StateBlocks: ...
def inverse_dynamics(  # noqa: PLR0913 - independent options of a public call
        model: Model, q: States, v: States, a: States, *, f_ext: Wrenches | StateBlocks | None = None, passive: bool = True,
        on_error: OnError = "raise", dtype: Precision = "float64", out: Array | None = None) -> Array | StateBlocks:
    """Generalized forces that produce the accelerations ``a``: recursive Newton-Euler, O(n).

    Solves ``M(q) a + b(q, v) = tau + tau_passive + sum_i J_i^T f_ext_i`` for ``tau``.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints have unit quaternions x y z w.
    v, a : (..., nv) arrays
        Joint velocity [rad/s | m/s] and acceleration; a free joint's is its body twist [w; v] and its rate. All arrays of states
        may be `StateBlocks`; then the result is one, too.
    f_ext : (..., n_links, 6) array or {link name: (..., 6) array}, optional
        External wrench [m; f] [N m | N] on each link, in its "local" frame: link axes, about the link's origin.
    passive : bool
        Whether joint springs, damping, friction and force elements (`ForceElement`) act.
    on_error : "raise", "nan" or function
        What happens with a state that cannot be computed: "raise" ends the call with an error; "nan" gives NaN for that state; a
        function is called as ``on_error(state, error)``, with the index in the batch and the error, and the result is NaN.
    dtype : "float64" or "float32"
        Precision of the computation and of the results. In single precision, arguments are converted to float32, twice as many
        states are computed together, and `out` is of float32. States that it cannot compute are computed in double precision.
    out : (..., nv) array of float64, optional
        Where the result is written, which is then returned; it may be one of the arguments.

    Returns
    -------
    tau : (..., nv) array
        Generalized force [N m | N].

    Raises
    ------
    ShapeError, ConfigurationError
    ModelError
        For a robot with loops: use `constrained_inverse_dynamics`, which accounts for them, or `Model.spanning_tree`. Couplings
        and mimic joints are eliminated: tau is zero at coordinates that follow others.

    Notes
    -----
    Source: K1 (32), Tables 1-2; PBP (29). Gravity enters as ``dV_0 = [0; -g]``.

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> ld.inverse_dynamics(model, q, v, [0.0, 1.0]).round(3)
    array([5.786, 0.724])
    """
    if type(q) is StateBlocks:
        return with_blocks(inverse_dynamics, locals())
    if dtype != "float64":
        return with_number_type(inverse_dynamics, locals())
    if f_ext is None and on_error == "raise":
        try:                                  # the generated function checks the arrays
            generated = model.single_calls[_INVERSE_CALLS[passive]]
            if out is None:
                tau: Array | None = generated(q, v, a)
                if tau is not None:
                    return tau
            elif not generated(q, v, a, out):
                return out
        except (KeyError, TypeError):
            pass
    if on_error != "raise":
        return handle_failed_states(inverse_dynamics, locals())
    if model.nc:
        model = reduced_model(model, "inverse_dynamics", "constrained_inverse_dynamics").model
    return evaluate(model, _INVERSE_CALLS[bool(passive)], inverse_batch, inverse_batch_workspace_size,
                    {"q": q, "v": v, "a": a, "f_ext": f_ext}, (model.nv,), options=(bool(passive),), trailing_arguments=(NONE,),
                    out=out)


def bias_force(model: Model, q: ArrayLike, v: ArrayLike, *, f_ext: Wrenches | None = None,
               on_error: OnError = "raise", dtype: Precision = "float64") -> Array:
    """Coriolis, centrifugal and gravity force ``b(q, v)`` of ``M a + b = tau``.

    Passive forces are not included. For a robot with loops it is the b of ``M a + b = tau + A^T lambda``, that of the open tree.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints have unit quaternions x y z w.
    v : (..., nv) array
        Velocity [rad/s | m/s]; of a free joint its body twist [w; v].
    f_ext
        External wrenches as in `inverse_dynamics`, which are subtracted; default: none.
    on_error, dtype
        As in `inverse_dynamics`.

    Returns
    -------
    b : (..., nv) array
        Bias force [N m | N].

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
    return inverse_dynamics(model.spanning_tree(), q, v, np.zeros(model.nv), f_ext=f_ext, passive=False, on_error=on_error,
                            dtype=dtype)


def gravity_force(model: Model, q: ArrayLike, *, on_error: OnError = "raise", dtype: Precision = "float64") -> Array:
    """Generalized forces that hold the robot at rest against gravity: ``b(q, 0)``. Springs are not included.

    For a robot with loops it is the term of ``M a + b = tau + A^T lambda`` of the open tree; `constrained_inverse_dynamics` at
    rest gives the holding forces of its motors.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints have unit quaternions x y z w.
    on_error, dtype
        As in `inverse_dynamics`.

    Returns
    -------
    g : (..., nv) array
        Gravity force [N m | N].

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
    return inverse_dynamics(model.spanning_tree(), q, np.zeros(model.nv), np.zeros(model.nv), passive=False, on_error=on_error,
                            dtype=dtype)


def joint_wrenches(  # noqa: PLR0913 - independent options of a public call
        model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, f_ext: Wrenches | None = None, frame: Frame = "local",
        multipliers: ArrayLike | None = None, constraint_motion: Mapping[str, Any] | None = None,
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
    constraint_motion
        As in `constraint_residual`.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    F : (..., n_joints, 6) array
        [m; f] [N m | N] on the child link of each moving joint (K1 (12), (41), Table 2; PBP (8), (80)). Locally,
        ``S^T F`` is the joint's force without armature, joint springs, damping and friction. Force elements between links act.

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
        return handle_failed_states(joint_wrenches, locals())
    check_frame(frame)
    F = f_ext
    if model.description.loops or multipliers is not None:
        F = _add_reactions(model, q, wrenches(model, f_ext), multipliers, constraint_motion)
    if model.description.elements:
        F = _sum_of_wrenches(wrenches(model, F), "force elements", element_wrenches(model, q, v))
    _, on_bodies = evaluate(model.spanning_tree(), "joint_wrenches", inverse_batch, inverse_batch_workspace_size,
                            {"q": q, "v": v, "a": a, "f_ext": F},
                            (model.nv,), (model.n_bodies, 6), options=(False,))
    children = [model.link_index(joint.child) for joint in model.joints]
    rows = on_bodies[..., [joint.body for joint in model.joints], None, :]
    local = (rows @ adjoint(model.link_pose[children]))[..., 0, :]                                 # Ad*_T of each row
    return local if frame == LOCAL else wrenches_in_frame(frame, link_poses(model, q)[..., children, :, :], local)


def _add_reactions(model: Model, q: ArrayLike, F: Array | None, multipliers: ArrayLike | None,
                   constraint_motion: Mapping[str, Any] | None) -> Array:
    if multipliers is None:
        raise ModelError(f"robot {model.name} has loops, whose reactions also act on its links",
                         hint="give multipliers=, as constrained_forward_dynamics, constrained_hybrid_dynamics or "
                         "constrained_inverse_dynamics return them, or use model.spanning_tree()")
    reactions = constraint_wrenches(model, q, multipliers, constraint_motion=constraint_motion)
    return _sum_of_wrenches(F, "reactions", reactions)


def _sum_of_wrenches(F: Array | None, name: str, added: Array) -> Array:
    if F is None:
        return added
    lead, (F, added) = broadcast_arrays(("f_ext", F, 2), (name, added, 2))
    return (F + added).reshape(*lead, -1, 6)


# Forward and hybrid dynamics --------------------------------------------------------------------------------------------

_NO_PRESCRIBED_MASK = ModelValue("mask without prescribed coordinates")
_FORWARD_CALLS = {False: "forward_dynamics, passive=False", True: "forward_dynamics"}


@overload
def forward_dynamics(model: Model, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, f_ext: Wrenches | None = ...,
                     passive: bool = ..., on_error: OnError = ..., dtype: Precision = ..., out: Array | None = ...) -> Array: ...
@overload
def forward_dynamics(model: Model, q: StateBlocks, v: StateBlocks, tau: StateBlocks,
                     **options: Unpack[BlockOptions]) -> StateBlocks: ...
def forward_dynamics(  # noqa: PLR0913 - independent options of a public call
        model: Model, q: States, v: States, tau: States, *, f_ext: Wrenches | StateBlocks | None = None, passive: bool = True,
        on_error: OnError = "raise", dtype: Precision = "float64", out: Array | None = None) -> Array | StateBlocks:
    """Accelerations that the generalized forces ``tau`` produce: articulated bodies, O(n).

    Solves ``M(q) a + b(q, v) = tau + tau_passive + sum_i J_i^T f_ext_i`` for ``a``.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints have unit quaternions x y z w.
    v, tau : (..., nv) arrays
        Joint velocity [rad/s | m/s] and force [N m | N].
    f_ext : (..., n_links, 6) array or {link name: (..., 6) array}, optional
        External wrench [m; f] [N m | N] on each link, in its "local" frame: link axes, about the link's origin.
    passive : bool
        Whether joint springs, damping, friction and force elements (`ForceElement`) act.
    on_error : "raise", "nan" or function
        What happens with a state that cannot be computed: "raise" ends the call with an error; "nan" gives NaN for that state; a
        function is called as ``on_error(state, error)``, with the index in the batch and the error, and the result is NaN.
    dtype
        As in `inverse_dynamics`.
    out : (..., nv) array of float64, optional
        Where the result is written, which is then returned; it may be one of the arguments.

    Returns
    -------
    a : (..., nv) array
        Joint acceleration; a free joint's is the component-wise rate of its body twist.

    Raises
    ------
    ShapeError, ConfigurationError
    ModelError
        For a robot with loops: use `constrained_forward_dynamics` or `Model.spanning_tree`.
    ComputationError
        If a joint's articulated inertia vanishes.

    Notes
    -----
    Source: K1 Tables 1, 3.

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> ld.forward_dynamics(model, q, v, tau=[0.0, 0.5], f_ext={"tip": [0, 0, 0, 1, 0, 0]}).round(3)
    array([-7.735, 16.433])
    """
    if type(q) is StateBlocks:
        return with_blocks(forward_dynamics, locals())
    if dtype != "float64":
        return with_number_type(forward_dynamics, locals())
    if f_ext is None and on_error == "raise":
        try:                                  # the generated function checks the arrays
            generated = model.single_calls[_FORWARD_CALLS[passive]]
            if out is None:
                a: Array | None = generated(q, v, tau)
                if a is not None:
                    return a
            elif not generated(q, v, out, tau):
                return out
        except (KeyError, TypeError):
            pass
    if on_error != "raise":
        return handle_failed_states(forward_dynamics, locals())
    inputs, mask = {"q": q, "v": v, "a": NONE, "tau": tau, "f_ext": f_ext}, no_prescribed_mask(model)
    if model.nc:
        model, mask, _ = reduced_model(model, "forward_dynamics", "constrained_forward_dynamics")
    return copy_to_out(_evaluate_hybrid(model, _FORWARD_CALLS[bool(passive)], inputs, mask, passive, out)[0], out)


@overload
def hybrid_dynamics(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike, prescribed: ArrayLike, *,
                    f_ext: Wrenches | None = ..., passive: bool = ..., on_error: OnError = ..., dtype: Precision = ...,
                    out: tuple[Array, Array] | None = ...) -> tuple[Array, Array]: ...
@overload
def hybrid_dynamics(model: Model, q: StateBlocks, v: StateBlocks, a: StateBlocks, tau: StateBlocks, prescribed: ArrayLike,
                    **options: Unpack[BlockOptions]) -> tuple[StateBlocks, StateBlocks]: ...
def hybrid_dynamics(  # noqa: PLR0913 - independent options of a public call
        model: Model, q: States, v: States, a: States, tau: States, prescribed: ArrayLike, *,
        f_ext: Wrenches | StateBlocks | None = None, passive: bool = True, on_error: OnError = "raise",
        dtype: Precision = "float64", out: tuple[Array, Array] | None = None) -> tuple[Array, Array] | tuple[StateBlocks,
        StateBlocks]:
    """All accelerations and generalized forces, given one of the two for each coordinate.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints have unit quaternions x y z w.
    v : (..., nv) array
        Joint velocity [rad/s | m/s].
    a, tau : (..., nv) arrays
        Acceleration, read where prescribed; generalized force, read where not. The rest is ignored, NaN included.
    prescribed : (nv,) bool array
        True where the acceleration is given; any mask, also within a ball or free joint.
    f_ext, passive
        As in `forward_dynamics`.
    on_error, dtype
        As in `inverse_dynamics`.
    out : two (..., nv) arrays of float64, optional
        Where a and tau are written, which are then returned; they may be those of the arguments.

    Returns
    -------
    a, tau : (..., nv) arrays
        Both complete, and new where there is no `out`.

    Raises
    ------
    ShapeError, ConfigurationError, ComputationError
    ModelError
        For a robot with loops: use `constrained_hybrid_dynamics` or `Model.spanning_tree`.

    Notes
    -----
    Source: K1 (33), Tables 1, 4; K2 (34).

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> a, tau = ld.hybrid_dynamics(model, q, v, a=[0.0, np.nan], tau=[np.nan, 0.5], prescribed=[True, False])
    >>> a.round(3), tau.round(3)
    (array([0.   , 0.329]), array([5.233, 0.5  ]))
    """
    if type(q) is StateBlocks:
        return with_blocks(hybrid_dynamics, locals())
    if dtype != "float64":
        return with_number_type(hybrid_dynamics, locals())
    if on_error != "raise":
        return handle_failed_states(hybrid_dynamics, locals())
    if f_ext is None and isinstance(a, np.ndarray) and isinstance(tau, np.ndarray) and isinstance(prescribed, np.ndarray):
        try:
            all_a, all_tau = a.copy(), tau.copy()
            if not model.single_calls["hybrid_dynamics", passive, prescribed.tobytes()](q, v, all_a, all_tau):
                return copy_to_out((all_a, all_tau), out)
        except (KeyError, TypeError):
            pass
    mask = as_mask(prescribed, model.nv)
    key = "hybrid_dynamics", bool(passive), mask.tobytes()
    inputs = {"q": q, "v": v, "a": a, "tau": tau, "f_ext": f_ext}
    if model.nc:
        model, mask, _ = reduced_model(model, "hybrid_dynamics", "constrained_hybrid_dynamics", mask)
    return copy_to_out(_evaluate_hybrid(model, key, inputs, mask, passive), out)


def no_prescribed_mask(model: Model) -> Mask:
    """Return the mask without prescribed coordinates."""
    return model.cached(_NO_PRESCRIBED_MASK, lambda: np.zeros(model.nv, dtype=bool))


def _evaluate_hybrid(model: Model, key: Hashable, inputs: dict[str, Any], prescribed: Mask, passive: bool,
                     out: Array | None = None) -> tuple[Array, Array]:
    """Return a and tau. If nothing is prescribed, the input a is NONE, and `out` is for the accelerations."""
    memory = coupled_batch_workspace_size if model.index[FOLLOWER_COUNT] else hybrid_batch_workspace_size
    return evaluate_hybrid(model, key, hybrid_batch, memory, inputs, (model.nv,), prescribed, (prescribed,), (bool(passive),),
                           out)


# The mass matrix and its inverse ----------------------------------------------------------------------------------------

@overload
def mass_matrix(model: Model, q: ArrayLike, *, on_error: OnError = ..., dtype: Precision = ...,
                out: Array | None = ...) -> Array: ...
@overload
def mass_matrix(model: Model, q: StateBlocks, *, on_error: OnError = ..., dtype: Precision = ...) -> StateBlocks: ...
def mass_matrix(model: Model, q: States, *,
                on_error: OnError = "raise", dtype: Precision = "float64", out: Array | None = None) -> Array | StateBlocks:
    """Mass matrix ``M(q)``, armature on its diagonal: composite bodies, O(n depth).

    For a robot with loops it is the M of ``M a + b = tau + A^T lambda``, that of the open tree.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints have unit quaternions x y z w.
    on_error, dtype, out
        As in `inverse_dynamics`.

    Returns
    -------
    M : (..., nv, nv) array
        Mass matrix [kg m^2 | kg m | kg].

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
    if type(q) is StateBlocks:
        return with_blocks(mass_matrix, locals())
    if dtype != "float64":
        return with_number_type(mass_matrix, locals())
    if on_error != "raise":
        return handle_failed_states(mass_matrix, locals())
    nv = model.nv
    return evaluate(model, "mass_matrix", mass_matrices, mass_matrices_workspace_size, {"q": q}, (nv, nv), out=out)


@overload
def inverse_mass_matrix(model: Model, q: ArrayLike, *, on_error: OnError = ..., dtype: Precision = ...,
                        out: Array | None = ...) -> Array: ...
@overload
def inverse_mass_matrix(model: Model, q: StateBlocks, *, on_error: OnError = ..., dtype: Precision = ...) -> StateBlocks: ...
def inverse_mass_matrix(model: Model, q: States, *,
                        on_error: OnError = "raise", dtype: Precision = "float64",
                        out: Array | None = None) -> Array | StateBlocks:
    """``M(q)^-1`` without forming M: O(n) a column, by articulated bodies (K1 Table 3).

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints have unit quaternions x y z w.
    on_error, dtype, out
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
    if type(q) is StateBlocks:
        return with_blocks(inverse_mass_matrix, locals())
    if dtype != "float64":
        return with_number_type(inverse_mass_matrix, locals())
    if on_error != "raise":
        return handle_failed_states(inverse_mass_matrix, locals())
    nv = model.nv
    return evaluate(model, "inverse_mass_matrix", inverse_masses, inverse_masses_workspace_size, {"q": q}, (nv, nv),
                    prescribed=no_prescribed_mask(model), out=out)


# Newton's and Euler's equations of each link, in plain NumPy ------------------------------------------------------------

# Kernels merge links that are fixed to each other. Here links are separate, so that the wrench in a fixed joint, the rate of the
# momentum and the zero-moment point follow by sums.

def newton_euler_residual(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, gravity: bool = True) -> Array:
    """Return the wrench (N, n_links, 6) [m; f] [N m | N] that must act on each link in addition to its weight.

    World axes, about the world's origin. With r the centre of mass: f = mass (ddr - g), m = d/dt (I w) + r x f. Without
    `gravity`: the rate of the link's momentum.

    q : (N, nq) array; v, a : (N, nv) arrays. Raises ShapeError, ConfigurationError.
    """
    T, V, dV = all_link_motions(model, q, v, a)
    links = model.description.links
    mass, com = np.array([link.mass for link in links]), np.array([link.com for link in links])
    I = symmetric_matrix([link.inertia for link in links])
    w, dw = V[..., :3], dV[..., :3]
    rate = dV[..., 3:] + np.cross(w, V[..., 3:] + np.cross(w, com)) + np.cross(dw, com)        # of the centre's velocity, local
    if gravity:
        rate = rate - np.einsum("nkji,j->nki", T[..., :3, :3], model.gravity)
    f = mass[:, None] * rate
    Iw, Idw = (np.einsum("kij,nkj->nki", I, x) for x in (w, dw))
    m = Idw + np.cross(w, Iw) + np.cross(com, f)
    return wrenches_in_frame(WORLD, T, np.concatenate([m, f], axis=-1))


def moving_links(model: Model) -> Mask:
    """Return (n_links,) bool: links that are not fixed to the ground."""
    return np.asarray(model.link_body) > 0
