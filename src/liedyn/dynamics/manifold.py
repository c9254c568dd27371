"""Moving on the configuration manifold; random configurations; a joint's own functions."""
from __future__ import annotations

import numpy as np

from liedyn.dynamics.calling.annotations import Array, ArrayLike, OnError
from liedyn.dynamics.calling.arguments import as_array
from liedyn.dynamics.calling.calls import check_unit, computed
from liedyn.dynamics.calling.each_state import each_state
from liedyn.errors import ConfigurationError
from liedyn.joints.kinds import BALL, FREE, SCREW
from liedyn.kernels.recursions.manifold import differences, manifold_memory, retractions
from liedyn.model.build import joint_motion as _screw_motion
from liedyn.model.model import Model
from liedyn.model.spatial import rotation


def integrate(model: Model, q0: ArrayLike, dv: ArrayLike, *, on_error: OnError = "raise") -> Array:
    """``q0 (+) dv``: each joint moves with its part of dv as a constant body twist for unit time.

    Parameters
    ----------
    model : Model
    q0 : (..., nq) array
        Configuration [rad | m]; ball and free joints hold unit quaternions x y z w.
    dv : (..., nv) array
        Velocity times time [rad | m]; of ball and free joints in the body frame.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    q : (..., nq) array
        Quaternions are of unit norm.

    Raises
    ------
    ShapeError, ConfigurationError

    Examples
    --------
    >>> model = ld.load("robots/asymmetric_body.yaml")
    >>> ld.integrate(model, model.neutral(), [0, 0, np.pi / 2, 0.5, 0, 0]).round(3)
    array([0.318, 0.318, 0.   , 0.   , 0.   , 0.707, 0.707])
    """
    if on_error != "raise":
        return each_state(integrate, locals())
    return computed(model, "integrate", retractions, manifold_memory, {"q0": q0, "dv": dv}, (model.nq,))


def difference(model: Model, q0: ArrayLike, q1: ArrayLike, *, on_error: OnError = "raise") -> Array:
    """The dv with ``q0 (+) dv = q1``: the inverse of `integrate`.

    Parameters
    ----------
    model : Model
    q0, q1 : (..., nq) arrays
        Configurations [rad | m]; ball and free joints hold unit quaternions x y z w.
    on_error
        As in `inverse_dynamics`.

    Returns
    -------
    dv : (..., nv) array
        [rad | m]; rotations take the shorter path, |w| <= pi.

    Raises
    ------
    ShapeError, ConfigurationError

    Examples
    --------
    >>> model = ld.load("robots/asymmetric_body.yaml")
    >>> ld.difference(model, model.neutral(), [0.5, 0, 0, 0, 0, 1, 0]).round(3)
    array([ 0.   ,  0.   ,  3.142,  0.   , -0.785,  0.   ])
    """
    if on_error != "raise":
        return each_state(difference, locals())
    return computed(model, "difference", differences, manifold_memory, {"q0": q0, "q1": q1}, (model.nv,))


def random_configuration(model: Model, rng: np.random.Generator, size: int | tuple[int, ...] = ()) -> Array:
    """Random configurations.

    1-DoF coordinates are uniform within their limits (+-pi or +-1 m if there are none), rotations uniform, free positions
    standard normal.

    Parameters
    ----------
    model : Model
    rng : numpy.random.Generator
    size : int or tuple of int
        Leading axes.

    Returns
    -------
    q : (*size, nq) array
        [rad | m].

    Examples
    --------
    >>> model = ld.load("robots/asymmetric_body.yaml")
    >>> ld.random_configuration(model, np.random.default_rng(0), 1000).shape
    (1000, 7)
    """
    size = (size,) if np.isscalar(size) else tuple(size)
    q = np.empty((*size, model.nq))
    for joint in model.joints:
        if joint.kind == SCREW:
            span = np.array([np.pi if unit == "rad" else 1.0 for unit in model.v_units[joint.v]])
            low, high = model.lower[joint.v], model.upper[joint.v]
            low = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high - 2 * span, -span))
            high = np.where(np.isfinite(high), high, low + 2 * span)
            q[..., joint.q] = rng.uniform(low, high, (*size, len(span)))
            continue
        u = rng.standard_normal((*size, 4))
        q[..., joint.q.stop - 4:joint.q.stop] = u / np.linalg.norm(u, axis=-1, keepdims=True)
        if joint.kind == FREE:
            q[..., joint.q.start:joint.q.start + 3] = rng.standard_normal((*size, 3))
    return q


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
    if not (np.isfinite(q).all() and np.isfinite(v).all()):
        raise ConfigurationError(f"{'v' if np.isfinite(q).all() else 'q'} of {name!r} contains NaN or infinite values")
    if joint.kind == SCREW:
        return _screw_motion(joint, q, v)
    check_unit(name, q[-4:])
    T = np.eye(4)
    T[:3, :3] = rotation(q[-4:])
    if joint.kind != BALL:
        T[:3, 3] = q[:3]
    S = np.eye(6)[:, :len(v)]
    return joint.home @ T, S, np.zeros_like(S)
