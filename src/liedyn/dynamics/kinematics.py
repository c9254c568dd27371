"""Poses, twists, accelerations and Jacobians of links; energy, momentum, centre of mass; their time derivatives of any order."""
from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from liedyn.arrays import Array, ArrayLike, Frame, OnError, Precision
from liedyn.dynamics.batching.arrays import (
    KERNEL_FRAMES,
    LOCAL,
    NONE,
    accelerations_in_frame,
    as_array,
    check_frame,
    twists_in_frame,
)
from liedyn.dynamics.batching.calls import EntryPoint, check_finite, check_quaternion, evaluate
from liedyn.dynamics.batching.failed_states import handle_failed_states
from liedyn.dynamics.batching.single_precision import with_number_type
from liedyn.errors import ComputationError, ShapeError
from liedyn.kernels.kinematics import (
    ACCELERATIONS,
    POSES,
    TWISTS,
    energy_workspace_size,
    jacobian_workspace_size,
    jacobians,
    link_motions,
    link_motions_workspace_size,
    totals,
)
from liedyn.kernels.taylor_kinematics import (
    ALL_LINKS,
    jacobian_derivatives_batch,
    link_derivatives,
    series_workspace_size,
    total_derivatives,
)
from liedyn.model.description import BALL, ONE_DOF
from liedyn.model.model import Model
from liedyn.model.model_joint import joint_motion as _screw_motion
from liedyn.model.spatial import pose_from_array, rotation


def link_pose(model: Model, q: ArrayLike, link: str, *, on_error: OnError = "raise", dtype: Precision = "float64") -> Array:
    """Pose of a link in the world: maps coordinates in the link frame to the world (K1 (1)-(3), Figure 1).

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints have unit quaternions x y z w.
    link : str
        Name of a link.
    on_error, dtype
        As in `inverse_dynamics`.

    Returns
    -------
    T : (..., 4, 4) array
        Homogeneous matrix [m].

    Raises
    ------
    NameLookupError, ShapeError, ConfigurationError

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.link_pose(model, [0.3, -0.2], "tip").round(3)
    array([[ 0.995,  0.   ,  0.1  , -0.395],
           [ 0.   ,  1.   ,  0.   ,  0.   ],
           [-0.1  ,  0.   ,  0.995,  0.05 ],
           [ 0.   ,  0.   ,  0.   ,  1.   ]])
    """
    return link_poses(model, q, on_error=on_error, dtype=dtype)[..., model.link_index(link), :, :]


def link_poses(model: Model, q: ArrayLike, *, on_error: OnError = "raise", dtype: Precision = "float64") -> Array:
    """Poses of all links in the world, in the order of ``model.link_names``.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints have unit quaternions x y z w.
    on_error, dtype
        As in `inverse_dynamics`.

    Returns
    -------
    T : (..., n_links, 4, 4) array
        Homogeneous matrices [m].

    Raises
    ------
    ShapeError, ConfigurationError

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.link_poses(model, np.zeros((1000, 2))).shape      # a batch, three links
    (1000, 3, 4, 4)
    """
    if dtype != "float64":
        return with_number_type(link_poses, locals())
    if on_error != "raise":
        return handle_failed_states(link_poses, locals())
    return pose_from_array(_motions(model, POSES, {"q": q})[0])


def link_twist(model: Model, q: ArrayLike, v: ArrayLike, link: str, *, frame: Frame = "local",
               on_error: OnError = "raise", dtype: Precision = "float64") -> Array:
    """Twist of a link (K1 (9), (10), (34)-(36)).

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints have unit quaternions x y z w.
    v : (..., nv) array
        Velocity [rad/s | m/s]; of a free joint its body twist [w; v].
    link : str
        Name of a link.
    frame : "local", "local_world_aligned" or "world"
        As in `jacobian`.
    on_error, dtype
        As in `inverse_dynamics`.

    Returns
    -------
    V : (..., 6) array
        [w; v] [rad/s | m/s].

    Raises
    ------
    NameLookupError, ShapeError, ConfigurationError

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> ld.link_twist(model, q, v, "tip", frame="local_world_aligned").round(3)
    array([ 0.   ,  1.5  ,  0.   , -2.448,  0.   ,  0.445])
    """
    if dtype != "float64":
        return with_number_type(link_twist, locals())
    if on_error != "raise":
        return handle_failed_states(link_twist, locals())
    check_frame(frame)
    k, (T, V) = model.link_index(link), _motions(model, TWISTS, {"q": q, "v": v})
    return twists_in_frame(frame, pose_from_array(T[..., k, :]), V[..., k, :])


def link_acceleration(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, link: str, *, frame: Frame = "local",
                      on_error: OnError = "raise", dtype: Precision = "float64") -> Array:
    """Component-wise rate of `link_twist` in the same frame, without gravity (K1 (37)-(40)).

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints have unit quaternions x y z w.
    v, a : (..., nv) arrays
        Joint velocity [rad/s | m/s] and acceleration.
    link : str
        Name of a link.
    frame : "local", "local_world_aligned" or "world"
        "local" and "world" give the spatial acceleration, the rate of the twist [w; v] along link axes, and along world axes
        about the world's origin. "local_world_aligned" gives the classical acceleration: the second derivative of the position of
        the link's origin in its linear part. It is ``J a + dJ v`` of `jacobian` and `jacobian_derivative` in each frame.
    on_error, dtype
        As in `inverse_dynamics`.

    Returns
    -------
    dV : (..., 6) array
        Angular, then linear acceleration [rad/s^2 | m/s^2].

    Raises
    ------
    NameLookupError, ShapeError, ConfigurationError

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> ld.link_acceleration(model, q, v, [0.0, 0.0], "tip").round(3)
    array([ 0.   ,  0.   ,  0.   , -0.099,  0.   , -0.49 ])
    """
    if dtype != "float64":
        return with_number_type(link_acceleration, locals())
    if on_error != "raise":
        return handle_failed_states(link_acceleration, locals())
    check_frame(frame)
    k, motions = model.link_index(link), _motions(model, ACCELERATIONS, {"q": q, "v": v, "a": a})
    T, V, dV = (x[..., k, :] for x in motions)
    return accelerations_in_frame(frame, pose_from_array(T), V, dV)


def all_link_motions(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> tuple[Array, Array, Array]:
    """Return poses (N, n_links, 4, 4), twists and accelerations (N, n_links, 6), both "local", of all links.

    q (N, nq), v, a (N, nv). Raises ShapeError, ConfigurationError.
    """
    T, V, dV = _motions(model, ACCELERATIONS, {"q": q, "v": v, "a": a})
    return pose_from_array(T), V, dV


def _motions(model: Model, level: int, inputs: dict[str, ArrayLike]) -> tuple[Array, ...]:
    """Return poses (…, n_links, 12) and, up to the level, twists and their rates (…, n_links, 6)."""
    unused = (NONE,) * (3 - len(inputs))
    n = len(model.link_names)
    shapes = [(n, 12), (n, 6), (n, 6)][:len(inputs)]
    motions = evaluate(model, ("link_motions", level), link_motions, link_motions_workspace_size, inputs, *shapes,
                       static_arguments=(level,), options=unused, trailing_arguments=unused)
    return motions if isinstance(motions, tuple) else (motions,)


def jacobian(model: Model, q: ArrayLike, link: str, *, frame: Frame = "local",
             on_error: OnError = "raise", dtype: Precision = "float64") -> Array:
    """Jacobian of a link: its twist is ``J v``.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints have unit quaternions x y z w.
    link : str
        Name of a link.
    frame : "local", "local_world_aligned" or "world"
        The twist along link axes about the link's origin; along world axes about the link's origin; or along world axes about
        the world's origin (the spatial Jacobian of PBP). Pinocchio's LOCAL, LOCAL_WORLD_ALIGNED and WORLD.
    on_error, dtype
        As in `inverse_dynamics`.

    Returns
    -------
    J : (..., 6, nv) array
        Rows [w; v].

    Raises
    ------
    NameLookupError, ShapeError, ConfigurationError

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.jacobian(model, [0.3, -0.2], "tip", frame="local_world_aligned").round(3)
    array([[ 0.   ,  0.   ],
           [ 1.   ,  1.   ],
           [ 0.   ,  0.   ],
           [-1.95 , -0.995],
           [ 0.   ,  0.   ],
           [ 0.395,  0.1  ]])
    """
    if dtype != "float64":
        return with_number_type(jacobian, locals())
    if on_error != "raise":
        return handle_failed_states(jacobian, locals())
    link_and_frame = model.link_index(link), KERNEL_FRAMES[check_frame(frame)]
    return evaluate(model, ("jacobian", *link_and_frame), jacobians, jacobian_workspace_size, {"q": q}, (6, model.nv),
                    static_arguments=link_and_frame, options=(NONE,), trailing_arguments=(NONE,))


def jacobian_derivative(model: Model, q: ArrayLike, v: ArrayLike, link: str, *, frame: Frame = "local",
                        on_error: OnError = "raise", dtype: Precision = "float64") -> Array:
    """Time derivative of `jacobian` along the velocity v, component by component: dV = J a + dJ v.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints have unit quaternions x y z w.
    v : (..., nv) array
        Velocity [rad/s | m/s]; of a free joint its body twist [w; v].
    link : str
        Name of a link.
    frame : "local", "local_world_aligned" or "world"
        As in `jacobian`.
    on_error, dtype
        As in `inverse_dynamics`.

    Returns
    -------
    dJ : (..., 6, nv) array

    Raises
    ------
    NameLookupError, ShapeError, ConfigurationError

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> ld.jacobian_derivative(model, q, v, "tip", frame="local_world_aligned").round(3)
    array([[0.   , 0.   ],
           [0.   , 0.   ],
           [0.   , 0.   ],
           [0.445, 0.15 ],
           [0.   , 0.   ],
           [2.448, 1.493]])
    """
    if dtype != "float64":
        return with_number_type(jacobian_derivative, locals())
    if on_error != "raise":
        return handle_failed_states(jacobian_derivative, locals())
    link_and_frame = model.link_index(link), KERNEL_FRAMES[check_frame(frame)]
    return evaluate(model, ("jacobian_derivative", *link_and_frame), jacobians, jacobian_workspace_size, {"q": q, "v": v},
                    (6, model.nv), (6, model.nv), static_arguments=link_and_frame)[1]


def energy(model: Model, q: ArrayLike, v: ArrayLike, *, passive: bool = True,
           on_error: OnError = "raise") -> tuple[Array, Array]:
    """Kinetic energy, of rotors too, and potential energy of gravity and of joint springs (K1 (14)-(19); PBP (32), (39), (58)).

    The potential energy of gravity is zero at the world's origin, that of a spring at its rest.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints have unit quaternions x y z w.
    v : (..., nv) array
        Velocity [rad/s | m/s]; of a free joint its body twist [w; v].
    passive : bool
        Whether joint springs act: their energy is left out if not.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    kinetic, potential : (...,) arrays
        Energies [J].

    Raises
    ------
    ShapeError, ConfigurationError

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> kinetic, potential = ld.energy(model, q, v)
    >>> round(float(kinetic), 3), round(float(potential), 3)
    (1.777, 20.302)
    """
    if on_error != "raise":
        return handle_failed_states(energy, locals())
    out = _totals(model, q, v, bool(passive))
    return out[..., 0][()], out[..., 1][()]


def momentum(model: Model, q: ArrayLike, v: ArrayLike, *, on_error: OnError = "raise") -> Array:
    """Momentum of the moving bodies in the "world" frame: world axes, about the world's origin (K1 (23), (24)).

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints have unit quaternions x y z w.
    v : (..., nv) array
        Velocity [rad/s | m/s]; of a free joint its body twist [w; v].
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    h : (..., 6) array
        [angular; linear] [kg m^2/s | kg m/s].

    Raises
    ------
    ShapeError, ConfigurationError

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> ld.momentum(model, q, v).round(3)
    array([ 0.   , -1.3  ,  0.   , -2.179,  0.   ,  0.518])
    """
    if on_error != "raise":
        return handle_failed_states(momentum, locals())
    return _totals(model, q, v)[..., 2:8]


def centre_of_mass(model: Model, q: ArrayLike, *, on_error: OnError = "raise") -> Array:
    """Centre of mass of the moving bodies, in the world.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints have unit quaternions x y z w.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    c : (..., 3) array
        Position of the centre of mass [m].

    Raises
    ------
    ShapeError, ConfigurationError
    ComputationError
        Where nothing that moves has mass.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.centre_of_mass(model, [0.3, -0.2]).round(3)
    array([-0.247,  0.   ,  1.035])
    """
    if on_error != "raise":
        return handle_failed_states(centre_of_mass, locals())
    centre = _totals(model, q, np.zeros(model.nv))[..., 8:]
    if not np.isfinite(centre).all():
        raise ComputationError("the robot has no moving mass: its centre of mass is not defined")
    return centre


def _totals(model: Model, q: ArrayLike, v: ArrayLike, passive: bool = True) -> Array:
    return evaluate(model, ("totals", passive), totals, energy_workspace_size, {"q": q, "v": v}, (11,), options=(passive,))


# Time derivatives of any order of link poses, twists and Jacobians, of the centre of mass and of momentum ---------------

# The motion is given by q and ``v_derivatives`` (..., r + 1, nv): the velocity and its time derivatives v, a, jerk, … of order
# 0 … r, component by component (for ball and free joints v is the body twist). They determine poses up to order r + 1.
#
# Derivatives grow with their order k like w^k for angular rates w; the error is some 1e-15 of the maximum number of its order,
# for order 12 and higher ones. Overflow of double precision (order 170 at the latest) is a ComputationError.

def link_pose_derivatives(model: Model, q: ArrayLike, v_derivatives: ArrayLike, link: str | None = None, *,
                          on_error: OnError = "raise") -> Array:
    """Pose of a link in the world and its time derivatives of order 0 … r + 1, entry by entry.

    Parameters
    ----------
    q : (..., nq) array
        Configuration [rad | m].
    v_derivatives : (..., r + 1, nv) array
        Velocity and its first r time derivatives [rad/s | m/s, then per s each].
    link : str, optional
        All links by default.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    (..., r + 2, 4, 4) array
        [k] is d^k T/dt^k [-, m, per s^k]; its last row is zero from k = 1 on. Without a link (..., r + 2, n_links, 4, 4), in the
        order of ``model.link_names``.

    Raises
    ------
    NameLookupError, ShapeError, ConfigurationError, ComputationError

    Notes
    -----
    O(r^2) a body. The poses as series in time: T = T_parent T0 exp(S q(t)) for screws, dR/dt = R [w] for ball and free joints.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.link_pose_derivatives(model, [0.3, -0.2], [[1, 0.5], [0, 1]], "tip")[1, :3, 3].round(3)     # its velocity
    array([-2.448,  0.   ,  0.445])
    """
    if on_error != "raise":
        return handle_failed_states(link_pose_derivatives, locals())
    count, index = _count_and_index(model, link)
    T, = _series(model, link_derivatives, q, v_derivatives, (1, count, 12), static_arguments=(index, KERNEL_FRAMES[LOCAL]),
                 trailing_arguments=(NONE,))
    out = pose_from_array(T)
    out[..., 1:, :, 3, 3] = 0.0
    return out if link is None else out[..., 0, :, :]


def link_twist_derivatives(model: Model, q: ArrayLike, v_derivatives: ArrayLike, link: str | None = None, *,
                           frame: Frame = "local", on_error: OnError = "raise") -> Array:
    """Twist [w; v] of a link and its time derivatives of order 0 … r, component by component.

    Parameters
    ----------
    q, v_derivatives, link
        As in `link_pose_derivatives`.
    frame : "local", "local_world_aligned" or "world"
        As in `jacobian`; "world" gives the spatial twist of Ali, Gabellieri and Franchi. Each row is the component-wise rate of
        the one before it in that frame.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    (..., r + 1, 6) array
        [rad/s | m/s, then per s each]; without a link (..., r + 1, n_links, 6).

    Raises
    ------
    NameLookupError, ShapeError, ConfigurationError, ComputationError

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.link_twist_derivatives(model, [0.3, -0.2], [[1, 0.5], [0, 1]], "tip").round(3)
    array([[ 0.   ,  1.5  ,  0.   , -2.48 ,  0.   ,  0.199],
           [ 0.   ,  1.   ,  0.   , -1.099,  0.   , -0.49 ]])
    """
    if on_error != "raise":
        return handle_failed_states(link_twist_derivatives, locals())
    count, index = _count_and_index(model, link)
    _, V = _series(model, link_derivatives, q, v_derivatives, (1, count, 12), (0, count, 6),
                   static_arguments=(index, KERNEL_FRAMES[check_frame(frame)]))
    return V if link is None else V[..., 0, :]


def jacobian_derivatives(model: Model, q: ArrayLike, v_derivatives: ArrayLike, link: str, *, frame: Frame = "local",
                         on_error: OnError = "raise") -> Array:
    """Jacobian of a link and its time derivatives of order 0 … r + 1, component by component.

    q, v_derivatives (..., r + 1, nv), link, frame: as in `link_twist_derivatives`. Returns (..., r + 2, 6, nv), of which [0] is
    `jacobian`, [1] is `jacobian_derivative`; ``V^(k) = sum_j C(k, j) J^(j) v^(k - j)``. Raises NameLookupError, ShapeError,
    ConfigurationError, ComputationError.

    For on_error see `inverse_dynamics`.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.jacobian_derivatives(model, [0.3, -0.2], [[1, 0.5], [0, 1]], "tip").shape     # J, dJ/dt, d2J/dt2
    (3, 6, 2)
    """
    if on_error != "raise":
        return handle_failed_states(jacobian_derivatives, locals())
    kernel_frame = KERNEL_FRAMES[check_frame(frame)]
    return _series(model, jacobian_derivatives_batch, q, v_derivatives, (1, 6, model.nv),
                   static_arguments=(model.link_index(link), kernel_frame))[0]


def centre_of_mass_derivatives(model: Model, q: ArrayLike, v_derivatives: ArrayLike, *, on_error: OnError = "raise") -> Array:
    """Centre of mass of the moving bodies in the world and its time derivatives of order 0 … r + 1: (..., r + 2, 3) [m, per s^k].

    q (..., nq), v_derivatives (..., r + 1, nv): as in `link_pose_derivatives`. Raises ShapeError, ConfigurationError,
    ComputationError where nothing that moves has mass.

    For on_error see `inverse_dynamics`.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.centre_of_mass_derivatives(model, [0.3, -0.2], [[1, 0.5], [0, 1]]).round(3)     # c, dc/dt, d2c/dt2
    array([[-0.247,  0.   ,  1.035],
           [-1.09 ,  0.   ,  0.259],
           [ 0.029,  0.   ,  1.301]])
    """
    if on_error != "raise":
        return handle_failed_states(centre_of_mass_derivatives, locals())
    c, _ = _series(model, total_derivatives, q, v_derivatives, (1, 3), (0, 6))
    if not np.isfinite(c).all():
        raise ComputationError("the robot has no moving mass: its centre of mass is not defined")
    return c


def momentum_derivatives(model: Model, q: ArrayLike, v_derivatives: ArrayLike, *, on_error: OnError = "raise") -> Array:
    """Momentum [angular; linear] of the moving bodies and its time derivatives of order 0 … r: (..., r + 1, 6).

    In the "world" frame, as `momentum` [kg m^2/s | kg m/s, then per s each]. q (..., nq), v_derivatives
    (..., r + 1, nv): as in `link_pose_derivatives`. Raises ShapeError, ConfigurationError, ComputationError.

    For on_error see `inverse_dynamics`.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> ld.momentum_derivatives(model, [0.3, -0.2], [[1, 0.5], [0, 1]]).shape     # h, dh/dt
    (2, 6)
    """
    if on_error != "raise":
        return handle_failed_states(momentum_derivatives, locals())
    return _series(model, total_derivatives, q, v_derivatives, (1, 3), (0, 6))[1]


def _count_and_index(model: Model, link: str | None) -> tuple[int, int]:
    """Return the number of links and their index for the kernels: of one link, or of all if there is no name."""
    return (len(model.link_names), ALL_LINKS) if link is None else (1, model.link_index(link))


def _series(model: Model, entry: EntryPoint, q: ArrayLike, v_derivatives: ArrayLike, *shapes: tuple[int, ...],
            static_arguments: tuple[Any, ...] = (), trailing_arguments: tuple[Any, ...] = ()) -> tuple[Array, ...]:
    """Run `evaluate` for v and its first r derivatives; m = r + 1 is the first argument of the entry point.

    A shape (k, …) is that of m + k derivatives of (…).
    """
    v = as_array(v_derivatives, "v_derivatives", (model.nv,))
    if v.ndim < 2 or v.shape[-2] == 0:
        raise ShapeError(f"v_derivatives has the wrong shape: expected (…, r + 1, {model.nv}), the velocity and "
                         f"its derivatives to order r, got {v.shape}")
    m = v.shape[-2]
    shapes = tuple((m + more, *shape) for more, *shape in shapes)

    results = evaluate(model, (entry.__name__, len(shapes), m, *static_arguments), entry,
                       lambda n, nq, nv, _: series_workspace_size(n, nq, nv, m, sum(map(prod, shapes))),
                       {"q": q, "v_derivatives": v}, *shapes, static_arguments=(m, *static_arguments),
                       trailing_arguments=trailing_arguments)
    return results if isinstance(results, tuple) else (results,)


# Functions of single joints ----------------------------------------------------------------------------------------------

def joint_motion(model: Model, name: str, q: ArrayLike, v: ArrayLike | None = None) -> tuple[Array, Array, Array]:
    """Pose, Jacobian and Jacobian rate of one joint at its own coordinates.

    Parameters
    ----------
    model : Model
    name : str
        Name of a moving joint.
    q : array
        Coordinates of the joint [rad | m]: ``q[model.q_index(name)]``.
    v : array, optional
        Its velocities; default: zero.

    Returns
    -------
    T : (4, 4) array
        Pose of the child link in the parent link.
    S : (6, k) array
        Joint Jacobian in the child's frame: S v is the child's twist relative to its parent (K1 (36)).
    dS : (6, k) array
        Its time derivative along v.

    Raises
    ------
    NameLookupError, ShapeError, ConfigurationError

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> T, S, dS = ld.joint_motion(model, "elbow", [0.3])
    >>> T[:3, 3], S[:, 0]
    (array([ 0.,  0., -1.]), array([0., 1., 0., 0., 0., 0.]))
    """
    joint = model.joint(name)
    q = as_array(q, f"q of {name!r}", (joint.q.stop - joint.q.start,))
    v = np.zeros(joint.v.stop - joint.v.start) if v is None else as_array(v, f"v of {name!r}", (joint.v.stop - joint.v.start,))
    check_finite("q", q, model.q_names[joint.q])
    check_finite("v", v, model.v_names[joint.v])
    if joint.kind == ONE_DOF:
        return _screw_motion(joint, q, v)
    check_quaternion(f"joint {name!r}", q[-4:])
    T = np.eye(4)
    T[:3, :3] = rotation(q[-4:])
    if joint.kind != BALL:
        T[:3, 3] = q[:3]
    S = np.eye(6)[:, :len(v)]
    return joint.home @ T, S, np.zeros_like(S)
