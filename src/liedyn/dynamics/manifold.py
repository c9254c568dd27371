"""Operations on the configuration manifold: steps and differences, tangent coordinates, random configurations and motions."""
from __future__ import annotations

import numpy as np

from liedyn.arrays import Array, ArrayLike, OnError
from liedyn.dynamics.batching.calls import evaluate
from liedyn.dynamics.batching.failed_states import handle_failed_states
from liedyn.dynamics.constraints.couplings import follow_couplings, follow_couplings_unchecked
from liedyn.errors import ConfigurationError, UsageError
from liedyn.kernels.manifold import differences, manifold_workspace_size, retractions
from liedyn.model.description import FREE, ONE_DOF
from liedyn.model.model import Model
from liedyn.model.model_joint import ModelJoint
from liedyn.model.spatial import matvec

# Steps, differences, random configurations ------------------------------------------------------------------------------

def integrate(model: Model, q0: ArrayLike, dv: ArrayLike, *, on_error: OnError = "raise") -> Array:
    """``q0 (+) dv``: each joint moves with its part of dv as a constant body twist for unit time.

    Parameters
    ----------
    model : Model
    q0 : (..., nq) array
        Configuration [rad | m]; ball and free joints have unit quaternions x y z w.
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
        return handle_failed_states(integrate, locals())
    return evaluate(model, "integrate", retractions, manifold_workspace_size, {"q0": q0, "dv": dv}, (model.nq,))


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
        return handle_failed_states(difference, locals())
    return evaluate(model, "difference", differences, manifold_workspace_size, {"q0": q0, "q1": q1}, (model.nv,))


def random_configuration(model: Model, rng: np.random.Generator | int, size: int | tuple[int, ...] = ()) -> Array:
    """Random configurations.

    1-DoF coordinates are uniform within their limits (+-pi or +-1 m if there are none), rotations uniform, free positions
    standard normal. Coordinates that couplings and mimic joints determine follow the others; loops are not closed. Configurations
    outside the domain of a nonlinear coupling are drawn again.

    Parameters
    ----------
    model : Model
    rng : numpy.random.Generator or int
        A generator, or a seed.
    size : int or tuple of int
        Leading axes.

    Returns
    -------
    q : (*size, nq) array
        Configurations [rad | m].

    Raises
    ------
    ConfigurationError
        If 100 draws are outside the domain of a nonlinear coupling, or `rng` is neither a generator nor a seed.

    Examples
    --------
    >>> model = ld.load("robots/asymmetric_body.yaml")
    >>> ld.random_configuration(model, np.random.default_rng(0), 1000).shape
    (1000, 7)
    """
    rng = _generator(rng)
    q = _random_configuration(model, rng, (size,) if isinstance(size, (int, np.integer)) else tuple(size))
    for _ in range(_MAX_DRAWS if model.function_couplings and model.has_only_couplings else 0):
        undefined = ~np.isfinite(follow_couplings_unchecked(model, q)[0]).all(axis=-1)
        if not undefined.any():
            break
        q[undefined] = _random_configuration(model, rng, (int(np.count_nonzero(undefined)),))
    return follow_couplings(model, q)[0]


_MAX_DRAWS = 100              # of configurations in the domain of nonlinear couplings


def _generator(rng: np.random.Generator | int) -> np.random.Generator:
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise ConfigurationError("rng is not a random generator or a seed: expected "
                                 f"numpy.random.default_rng(0) or an integer >= 0, got {rng!r}") from None


def generator_of_seed(seed: int, *stream: int) -> np.random.Generator:
    """Return the random generator of a seed, of one of its streams. Raise UsageError for other values."""
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise UsageError(f"seed: expected an integer >= 0, got {seed!r}")
    return np.random.default_rng([seed, *stream] if stream else seed)


def _random_configuration(model: Model, rng: np.random.Generator, lead: tuple[int, ...]) -> Array:
    """Return random q (*lead, nq) that do not follow couplings."""
    q = np.empty((*lead, model.nq))
    for joint in model.joints:
        if joint.kind == ONE_DOF:
            span = np.array([np.pi if unit == "rad" else 1.0 for unit in model.v_units[joint.v]])
            low, high = model.lower[joint.v], model.upper[joint.v]
            low = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high - 2 * span, -span))
            high = np.where(np.isfinite(high), high, low + 2 * span)
            q[..., joint.q] = rng.uniform(low, high, (*lead, len(span)))
            continue
        u = rng.standard_normal((*lead, 4))
        q[..., joint.q.stop - 4:joint.q.stop] = u / np.linalg.norm(u, axis=-1, keepdims=True)
        if joint.kind == FREE:
            q[..., joint.q.start:joint.q.start + 3] = rng.standard_normal((*lead, 3))
    return q


def random_motion(model: Model, rng: np.random.Generator | int,
                  size: int | tuple[int, ...] = ()) -> tuple[Array, Array, Array]:
    """Random configurations, velocities and accelerations.

    Configurations as in `random_configuration`. Velocities and accelerations are standard normal; those of coordinates that
    couplings and mimic joints determine follow the others.

    Parameters
    ----------
    model : Model
    rng : numpy.random.Generator or int
        A generator, or a seed.
    size : int or tuple of int
        Leading axes.

    Returns
    -------
    q : (*size, nq) array
        Configurations [rad | m].
    v, a : (*size, nv) arrays
        [rad/s | m/s] and their rates.

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> q, v, a = ld.random_motion(model, np.random.default_rng(0), 1000)
    >>> ld.inverse_dynamics(model, q, v, a).shape
    (1000, 2)
    """
    rng = _generator(rng)
    q = random_configuration(model, rng, size)
    v, a = rng.standard_normal((2, *q.shape[:-1], model.nv))
    q, v, a = follow_couplings(model, q, v, a)
    return q, v, a


# Tangent coordinates ----------------------------------------------------------------------------------------------------

# Derivatives with respect to the numbers of a configuration (with quaternions) and to tangent coordinates x of q (+) x.

def coordinate_gradient(model: Model, q: Array, w: Array) -> Array:
    """Return (…, nq) derivatives with respect to the numbers of q for tangent ones w (…, nv); zero across the unit sphere."""
    out = np.empty((*q.shape[:-1], model.nq), np.result_type(q, w))
    for joint in model.joints:
        out[..., joint.q] = w[..., joint.v] if joint.kind == ONE_DOF else matvec(
            _coordinate_jacobian(joint, q[..., joint.q], 4.0), w[..., joint.v])
    return out


def tangent_gradient(model: Model, q: Array, g: Array) -> Array:
    """Return (…, nv) tangent derivatives for derivatives (…, nq) with respect to the numbers of q."""
    out = np.empty((*q.shape[:-1], model.nv), np.result_type(q, g))
    for joint in model.joints:
        out[..., joint.v] = matvec(np.swapaxes(_coordinate_jacobian(joint, q[..., joint.q]), -1, -2), g[..., joint.q])
    return out


def tangent_velocity(model: Model, q: Array, dq: Array) -> Array:
    """Return (…, nv) tangent rates of q for the rates dq (…, nq) of its numbers."""
    out = np.empty((*np.broadcast_shapes(q.shape[:-1], dq.shape[:-1]), model.nv))
    for joint in model.joints:
        out[..., joint.v] = matvec(np.swapaxes(_coordinate_jacobian(joint, q[..., joint.q], 4.0), -1, -2), dq[..., joint.q])
    return out


def _coordinate_jacobian(joint: ModelJoint, q: Array, turns: float = 1.0) -> Array:
    """Return (…, nq, nv) d(q (+) x)/dx at x = 0 of a joint, with the rows of its quaternion times `turns`. q: of any number type.

    With turns = 4 the rows of a quaternion are the transpose of their pseudoinverse.
    """
    if joint.kind == ONE_DOF:
        return np.broadcast_to(np.eye(q.shape[-1]), (*q.shape, q.shape[-1]))
    u = q[..., -4:]
    x, y, z, w = np.moveaxis(u, -1, 0)
    of_turns = 0.5 * turns * np.stack([w, -z, y, z, w, -x, -y, x, w, -x, -y, -z], axis=-1).reshape(*u.shape, 3)     # u [x, 0] / 2
    if joint.kind != FREE:
        return of_turns
    out = np.zeros((*q.shape, 6)).astype(q.dtype)
    out[..., 3:, :3] = of_turns
    rows = (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y),
            2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x),
            2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y))
    out[..., :3, 3:] = np.stack(rows, axis=-1).reshape(*u.shape[:-1], 3, 3)
    return out


# Orientations over time for files -----------------------------------------------------------------------------------------

def continuous_quaternions(R: Array) -> Array:
    """Return (N, ..., 4) unit quaternions x y z w of rotations (N, ..., 3, 3).

    Their signs do not jump between rows; w >= 0 in the first.
    """
    from scipy.spatial.transform import Rotation

    if not R.size:
        return np.zeros((*R.shape[:-2], 4))
    Q = Rotation.from_matrix(R.reshape(-1, 3, 3)).as_quat().reshape(*R.shape[:-2], 4)
    signs = np.where(np.einsum("n...i,n...i->n...", Q[1:], Q[:-1]) < 0.0, -1.0, 1.0)
    first = np.copysign(1.0, Q[:1, ..., 3])
    continuous: Array = Q * np.concatenate([first, signs]).cumprod(axis=0)[..., None]
    return continuous
