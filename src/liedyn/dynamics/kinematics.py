"""Poses, twists, accelerations and Jacobians of links; energy, momentum, centre of mass."""
from __future__ import annotations

import numpy as np

from liedyn.dynamics.calling.annotations import Array, ArrayLike, Frame, OnError
from liedyn.dynamics.calling.arguments import NONE
from liedyn.dynamics.calling.calls import computed
from liedyn.dynamics.calling.each_state import each_state
from liedyn.dynamics.calling.frames import KERNEL_FRAMES, LOCAL_WORLD_ALIGNED, check_frame, twists_in
from liedyn.errors import ComputationError
from liedyn.kernels.recursions.energy import energy_memory, totals
from liedyn.kernels.recursions.jacobian import jacobian_memory, jacobians
from liedyn.kernels.recursions.kinematics import ACCELERATIONS, POSES, TWISTS, kinematics_entry_memory, link_motions
from liedyn.model.model import Model
from liedyn.model.spatial import unflat


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
    return unflat(_motions(model, POSES, {"q": q}, 12)[0])


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
    k, (T, V) = model.link_index(link), _motions(model, TWISTS, {"q": q, "v": v}, 12, 6)
    return twists_in(frame, unflat(T[..., k, :]), V[..., k, :])


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
    k, motions = model.link_index(link), _motions(model, ACCELERATIONS, {"q": q, "v": v, "a": a}, 12, 6, 6)
    T, V, dV = (x[..., k, :] for x in motions)
    if frame == LOCAL_WORLD_ALIGNED:                                       # d(R v)/dt = R (dv + w x v)
        dV = np.concatenate([dV[..., :3], dV[..., 3:] + np.cross(V[..., :3], V[..., 3:])], axis=-1)
    return twists_in(frame, unflat(T), dV)


def all_link_motions(model: Model, q, v, a) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Poses (N, n_links, 4, 4), twists and accelerations (N, n_links, 6), both "local", of all links at q (N, nq), v, a (N, nv).

    Raises ShapeError, ConfigurationError."""
    T, V, dV = _motions(model, ACCELERATIONS, {"q": q, "v": v, "a": a}, 12, 6, 6)
    return unflat(T), V, dV


def _motions(model, level, given, *sizes) -> tuple[np.ndarray, ...]:
    """Poses (…, n_links, 12) and, up to the level, twists and their rates (…, n_links, 6)."""
    unused = (NONE,) * (3 - len(given))
    found = computed(model, ("link_motions", level), link_motions, kinematics_entry_memory, given,
                     *((len(model.link_names), size) for size in sizes), before=(level,), options=unused, after=unused)
    return found if len(sizes) > 1 else (found,)


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
    which = model.link_index(link), KERNEL_FRAMES[check_frame(frame)]
    return computed(model, ("jacobian", *which), jacobians, jacobian_memory, {"q": q}, (6, model.nv), before=which,
                    options=(NONE,), after=(NONE,))


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
    which = model.link_index(link), KERNEL_FRAMES[check_frame(frame)]
    return computed(model, ("jacobian_derivative", *which), jacobians, jacobian_memory, {"q": q, "v": v}, (6, model.nv),
                    (6, model.nv), before=which)[1]


def energy(model: Model, q: ArrayLike, v: ArrayLike, *, passive: bool = True,
           on_error: OnError = "raise") -> tuple[Array, Array]:
    """Kinetic energy, of rotors too, and potential energy of gravity and of joint springs (K1 (14)-(19); PBP (32), (39), (58)).

    The potential energy of gravity is zero at the world's origin, that of a spring at its rest.

    Parameters
    ----------
    model : Model
    q : (..., nq) array
        Configuration [rad | m]; ball and free joints hold unit quaternions x y z w.
    v : (..., nv) array
        Velocity [rad/s | m/s]; of a free joint its body twist [w; v].
    passive : bool
        Whether joint springs act: their energy is left out if not.
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
    out = _totals(model, q, v, bool(passive))
    return out[..., 0][()], out[..., 1][()]


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
    return _totals(model, q, v)[..., 2:8]


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
    centre = _totals(model, q, np.zeros(model.nv))[..., 8:]
    if not np.isfinite(centre).all():
        raise ComputationError("the robot has no moving mass: its centre of mass is not defined")
    return centre


def _totals(model, q, v, passive: bool = True) -> np.ndarray:
    return computed(model, ("totals", passive), totals, energy_memory, {"q": q, "v": v}, (11,), options=(passive,))
