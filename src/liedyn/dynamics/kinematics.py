"""Poses, twists, accelerations and Jacobians of links; energy, momentum, centre of mass."""
from __future__ import annotations

import numpy as np

from liedyn.dynamics.calling.annotations import Array, ArrayLike, Frame, OnError
from liedyn.dynamics.calling.calls import as_array, batched, refuse, run, run_one
from liedyn.dynamics.calling.each_state import each_state
from liedyn.dynamics.calling.frames import KERNEL_FRAMES, LOCAL_WORLD_ALIGNED, check_frame, twists_in
from liedyn.errors import ComputationError
from liedyn.kernels.recursions.energy import energy_memory, totals
from liedyn.kernels.recursions.jacobian import jacobian_memory, jacobians
from liedyn.kernels.recursions.kinematics import ACCELERATIONS, POSES, TWISTS, kinematics_entry_memory, link_motions
from liedyn.model.model import Model

_UNUSED = np.empty((1, 0))


def link_pose(model: Model, q: ArrayLike, link: str, *, on_error: OnError = "raise") -> Array:
    """Pose of a link in the world: maps coordinates in the link frame to the world (K1 (1)-(3), Figure 1).

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints hold unit quaternions x y z w.
    link : str
        Name of a link.
    on_error
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
    if on_error != "raise":
        return each_state(link_pose, locals())
    return link_poses(model, q)[..., model.link_index(link), :, :]


def link_poses(model: Model, q: ArrayLike, *, on_error: OnError = "raise") -> Array:
    """Poses of all links in the world, in the order of ``model.link_names``.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints hold unit quaternions x y z w.
    on_error
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
    if on_error != "raise":
        return each_state(link_poses, locals())
    lead, T, _, _ = _motions(model, POSES, q)
    return _as_poses(T.reshape(*lead, len(model.link_names), 12))


def _as_poses(T) -> np.ndarray:
    """(..., 4, 4) of rotations by rows and translations (..., 12)."""
    out = np.zeros((*T.shape[:-1], 4, 4))
    out[..., :3, :3], out[..., :3, 3], out[..., 3, 3] = T[..., :9].reshape(*T.shape[:-1], 3, 3), T[..., 9:], 1.0
    return out


def link_twist(model: Model, q: ArrayLike, v: ArrayLike, link: str, *, frame: Frame = "local",
               on_error: OnError = "raise") -> Array:
    """Twist of a link (K1 (9), (10), (34)-(36)).

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints hold unit quaternions x y z w.
    v : (..., nv) array
        Velocity [rad/s | m/s]; of a free joint its body twist [w; v].
    link : str
        Name of a link.
    frame : "local", "local_world_aligned" or "world"
        As in `jacobian`.
    on_error
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
    if on_error != "raise":
        return each_state(link_twist, locals())
    check_frame(frame)
    lead, T, V, _ = _motions(model, TWISTS, q, v)
    T, V = _of_link(model, link, T, V)
    return twists_in(frame, T, V).reshape(*lead, 6)


def link_acceleration(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, link: str, *, frame: Frame = "local",
                      on_error: OnError = "raise") -> Array:
    """Component-wise rate of `link_twist` in the same frame, without gravity (K1 (37)-(40)).

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints hold unit quaternions x y z w.
    v, a : (..., nv) arrays
        Joint velocity [rad/s | m/s] and acceleration.
    link : str
        Name of a link.
    frame : "local", "local_world_aligned" or "world"
        "local" and "world" give the spatial acceleration, the rate of the twist [w; v] along link axes, and along world axes
        about the world's origin. "local_world_aligned" gives the classical acceleration: the second derivative of the position of
        the link's origin in its linear part. It is ``J a + dJ v`` of `jacobian` and `jacobian_derivative` in each frame.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    dV : (..., 6) array
        [rad/s^2 | m/s^2].

    Raises
    ------
    NameLookupError, ShapeError, ConfigurationError

    Examples
    --------
    >>> model, q, v = ld.load("robots/double_pendulum.yaml"), [0.3, -0.2], [1.0, 0.5]
    >>> ld.link_acceleration(model, q, v, [0.0, 0.0], "tip").round(3)
    array([ 0.   ,  0.   ,  0.   , -0.099,  0.   , -0.49 ])
    """
    if on_error != "raise":
        return each_state(link_acceleration, locals())
    check_frame(frame)
    lead, T, V, dV = _motions(model, ACCELERATIONS, q, v, a)
    _, V = _of_link(model, link, T, V)
    T, dV = _of_link(model, link, T, dV)
    if frame == LOCAL_WORLD_ALIGNED:                                       # d(R v)/dt = R (dv + w x v)
        dV = np.concatenate([dV[:, :3], dV[:, 3:] + np.cross(V[:, :3], V[:, 3:])], axis=-1)
    return twists_in(frame, T, dV).reshape(*lead, 6)


def all_link_motions(model: Model, q, v, a) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Poses (N, n_links, 4, 4), twists and accelerations (N, n_links, 6), both "local", of all links at q (N, nq), v, a (N, nv).

    Raises ShapeError, ConfigurationError."""
    lead, T, V, dV = _motions(model, ACCELERATIONS, q, v, a)
    shape = *lead, len(model.link_names)
    return _as_poses(T.reshape(*shape, 12)), V.reshape(*shape, 6), dV.reshape(*shape, 6)


def _of_link(model, link, T, V):
    """Pose (N, 4, 4) and twist (N, 6) of one link, from those of all."""
    k = model.link_index(link)
    return _as_poses(T[:, 12 * k:12 * k + 12]), V[:, 6 * k:6 * k + 6]


def _motions(model, level, q, *rates):
    named = [("q", as_array(q, "q", (model.nq,)), 1)]
    named += [(name, as_array(x, name, (model.nv,)), 1) for name, x in zip(("v", "a"), rates, strict=False)]
    lead, rows = batched(*named)
    n, k = len(rows[0]), len(model.link_names)
    T = np.empty((n, 12 * k))
    V = np.empty((n, 6 * k)) if level >= TWISTS else _UNUSED
    dV = np.empty((n, 6 * k)) if level == ACCELERATIONS else _UNUSED
    given = rows + [_UNUSED] * (3 - len(rows))
    size = kinematics_entry_memory(model.n_bodies, model.nq, model.nv, k)
    code = run(link_motions, model, size, (level,), (*given, T, V, dV), n)
    refuse(model, code, **dict(zip(("q", "v", "a"), rows, strict=False)))
    return lead, T, V, dV


def jacobian(model: Model, q: ArrayLike, link: str, *, frame: Frame = "local", on_error: OnError = "raise") -> Array:
    """Jacobian of a link: its twist is ``J v``.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints hold unit quaternions x y z w.
    link : str
        Name of a link.
    frame : "local", "local_world_aligned" or "world"
        The twist along link axes about the link's origin; along world axes about the link's origin; or along world axes about
        the world's origin (the spatial Jacobian of PBP). Pinocchio's LOCAL, LOCAL_WORLD_ALIGNED and WORLD.
    on_error
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
    if on_error != "raise":
        return each_state(jacobian, locals())
    which, J = _which(model, link, frame), np.empty((6, model.nv))
    if run_one(model, ("jacobian", *which), jacobians, jacobian_memory(*model.sizes), which, 1, (q, J), (q, _UNUSED, J, _UNUSED)):
        return J
    return _jacobians(model, q, np.zeros(model.nv), which, False)[0]


def jacobian_derivative(model: Model, q: ArrayLike, v: ArrayLike, link: str, *, frame: Frame = "local",
                        on_error: OnError = "raise") -> Array:
    """Time derivative of `jacobian` along the velocity v, component by component: dV = J a + dJ v.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints hold unit quaternions x y z w.
    v : (..., nv) array
        Velocity [rad/s | m/s]; of a free joint its body twist [w; v].
    link : str
        Name of a link.
    frame : "local", "local_world_aligned" or "world"
        As in `jacobian`.
    on_error
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
    if on_error != "raise":
        return each_state(jacobian_derivative, locals())
    which, J, dJ = _which(model, link, frame), np.empty((6, model.nv)), np.empty((6, model.nv))
    arrays = q, v, J, dJ
    if run_one(model, ("jacobian_derivative", *which), jacobians, jacobian_memory(*model.sizes), which, 2, arrays, arrays):
        return dJ
    return _jacobians(model, q, v, which, True)[1]


def _which(model, link, frame) -> tuple[int, int]:
    return model.link_index(link), KERNEL_FRAMES[check_frame(frame)]


def _jacobians(model, q, v, which, derivative):
    lead, rows = batched(("q", as_array(q, "q", (model.nq,)), 1), ("v", as_array(v, "v", (model.nv,)), 1))
    J = np.empty((len(rows[0]), 6 * model.nv))
    dJ = np.empty_like(J) if derivative else _UNUSED
    size = jacobian_memory(*model.sizes)
    code = run(jacobians, model, size, which, (*rows, J, dJ), len(J))
    refuse(model, code, q=rows[0], v=rows[1])
    shape = (*lead, 6, model.nv)
    return J.reshape(shape), dJ.reshape(shape) if derivative else None


def energy(model: Model, q: ArrayLike, v: ArrayLike, *, on_error: OnError = "raise") -> tuple[Array, Array]:
    """Kinetic energy, of rotors too, and potential energy of gravity and of joint springs (K1 (14)-(19); PBP (32), (39), (58)).

    The potential energy of gravity is zero at the world's origin, that of a spring at its rest.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints hold unit quaternions x y z w.
    v : (..., nv) array
        Velocity [rad/s | m/s]; of a free joint its body twist [w; v].
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    kinetic, potential : (...,) arrays
        [J].

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
        return each_state(energy, locals())
    lead, out = _totals(model, q, v)
    return out[:, 0].reshape(lead)[()], out[:, 1].reshape(lead)[()]


def momentum(model: Model, q: ArrayLike, v: ArrayLike, *, on_error: OnError = "raise") -> Array:
    """Momentum of the moving bodies in the "world" frame: world axes, about the world's origin (K1 (23), (24)).

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints hold unit quaternions x y z w.
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
        return each_state(momentum, locals())
    lead, out = _totals(model, q, v)
    return out[:, 2:8].reshape(*lead, 6)


def centre_of_mass(model: Model, q: ArrayLike, *, on_error: OnError = "raise") -> Array:
    """Centre of mass of the moving bodies, in the world.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints hold unit quaternions x y z w.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    c : (..., 3) array
        [m].

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
        return each_state(centre_of_mass, locals())
    lead, out = _totals(model, q, np.zeros(model.nv))
    if not np.isfinite(out[:, 8:]).all():
        raise ComputationError("the robot has no moving mass: its centre of mass is not defined")
    return out[:, 8:].reshape(*lead, 3)


def _totals(model, q, v):
    size, out = energy_memory(*model.sizes), np.empty(11)
    if run_one(model, "totals", totals, size, (), 2, (q, v, out), (q, v, out)):
        return (), out[None]
    lead, rows = batched(("q", as_array(q, "q", (model.nq,)), 1), ("v", as_array(v, "v", (model.nv,)), 1))
    out = np.empty((len(rows[0]), 11))
    refuse(model, run(totals, model, size, (), (*rows, out), len(out)), q=rows[0], v=rows[1])
    return lead, out
