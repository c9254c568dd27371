"""Operations of SE(3) in NumPy, for code where speed does not matter.

Poses are (…, 4, 4), adjoints (…, 6, 6); inertias are ten numbers (`inertia_from_link`).
"""
from __future__ import annotations

from math import factorial, pi
from typing import TYPE_CHECKING

import numpy as np

from liedyn.arrays import Array, ArrayLike

if TYPE_CHECKING:
    from liedyn.model.links import Link, Pose, Rotation

_ROUNDING = 1e-15         # of a screw's linear part: what is left along an axis that does not pass through the origin
# of a unit vector: below it what lies across z is rounding, and the turn from z is half a turn about x
_OPPOSITE_TOLERANCE = 1e-15
_TURN = 2.0 * pi
_WRAP_TOLERANCE = 0.5    # rad: a change between samples that differs less from full turns is a wrap of the angle


def full_turns(x: Array) -> Array:
    """Return the full turns (N,) [rad] by which samples x (N,) of an angle [rad] have jumped since the first one."""
    steps = np.diff(x)
    turns = np.round(steps / _TURN)
    turns[np.abs(steps - _TURN * turns) > _WRAP_TOLERANCE] = 0.0
    return _TURN * np.concatenate([[0.0], np.cumsum(turns)])


def matvec(A: Array, x: Array) -> Array:
    """Return A x (…, n) for matrices A (…, n, m) and vectors x (…, m)."""
    return (A @ x[..., None])[..., 0]


def skew(x: ArrayLike) -> Array:
    """Return the matrices (…, 3, 3) of the cross product with x (K1 (5))."""
    x = np.asarray(x, dtype=float)
    half = np.zeros((*x.shape, 3))
    half[..., 2, 1], half[..., 0, 2], half[..., 1, 0] = x[..., 0], x[..., 1], x[..., 2]
    return half - np.swapaxes(half, -1, -2)


def pose(origin: Pose) -> Array:
    """Return the (4, 4) matrix of a pose of a description."""
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = np.reshape(origin.rotation, (3, 3)), origin.translation
    return T


def rotation_by_rows(R: Array) -> Rotation:
    """Return the nine numbers of a (3, 3) rotation as in `Pose`, without negative zeros."""
    return tuple((R.ravel() + 0.0).tolist())


def inverse(T: Array) -> Array:
    """Return T^-1 (K1 (4))."""
    out, Rt = np.zeros(T.shape), np.swapaxes(T[..., :3, :3], -1, -2)
    out[..., :3, :3], out[..., :3, 3:], out[..., 3, 3] = Rt, -Rt @ T[..., :3, 3:], 1.0
    return out


def adjoint(T: Array) -> Array:
    """Return Ad_T (K1 (7); PBP (3); PL (4), (5); AGF (3)); its transpose is the dual."""
    R, out = T[..., :3, :3], np.zeros((*T.shape[:-2], 6, 6))
    out[..., :3, :3] = out[..., 3:, 3:] = R
    out[..., 3:, :3] = skew(T[..., :3, 3]) @ R
    return out


def bracket(V: Array) -> Array:
    """Return ad_V (K1 (27); PBP (6); PL (6), (7); AGF (4), (5)); its transpose is the dual."""
    out = np.zeros((*V.shape, 6))
    out[..., :3, :3] = out[..., 3:, 3:] = skew(V[..., :3])
    out[..., 3:, :3] = skew(V[..., 3:])
    return out


def rotation(u: ArrayLike) -> Array:
    """Return the rotations (…, 3, 3) of unit quaternions x y z w."""
    x, y, z, w = np.moveaxis(np.asarray(u, dtype=float), -1, 0)
    rows = [[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


# In -t^2: sin t / t, (1 - cos t)/t^2, (t - sin t)/t^3, and the derivatives of the last two with respect to t^2. The first term
# left out is below 1e-19 for t < 1, where closed forms lose digits.
_SERIES = (*([1 / factorial(2 * k + j) for k in range(10)] for j in (1, 2, 3)),
           *([-(k + 1) / factorial(2 * k + j) for k in range(9)] for j in (4, 5)))


def angle_functions(tt: ArrayLike) -> list[Array]:
    """Return sin t / t, (1 - cos t)/t^2, (t - sin t)/t^3, and derivatives of the last two with respect to tt = t^2 (…)."""
    near = np.asarray(tt) < 1.0
    small, tt = np.where(near, tt, 0.0), np.where(near, 1.0, tt)
    t = np.sqrt(tt)
    a, b, c = np.sin(t) / t, 2.0 * (np.sin(0.5 * t) / t)**2, (t - np.sin(t)) / (t * tt)
    far = a, b, c, (a - 2.0 * b) / (2.0 * tt), (b - 3.0 * c) / (2.0 * tt)
    return [np.where(near, np.polynomial.polynomial.polyval(-small, series), x) for series, x in zip(_SERIES, far, strict=True)]


def exp3(x: ArrayLike) -> Array:
    """Return the rotations (…, 3, 3) of rotation vectors (Rodrigues; PBP (16))."""
    hat, (a, b, *_) = skew(x), angle_functions(np.sum(np.square(x), axis=-1))
    return np.eye(3) + a[..., None, None] * hat + b[..., None, None] * hat @ hat


def right_jacobian(x: ArrayLike) -> Array:
    """Return the right Jacobians (…, 3, 3) of `exp3`: multiplied by dx/dt they are the angular velocity in the body frame."""
    hat, (_, b, c, *_) = skew(x), angle_functions(np.sum(np.square(x), axis=-1))
    return np.eye(3) - b[..., None, None] * hat + c[..., None, None] * hat @ hat


def exp_screw(screw: ArrayLike, x: float) -> Array:
    """Return exp(S x) as a (4, 4) pose (PBP (15)-(17); PL (9)-(11); AGF (9))."""
    frame, (a, b) = screw_frame(screw)
    c, s = np.cos(a * x), np.sin(a * x)
    motion = np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1, b * x], [0, 0, 0, 1.0]])
    exponential: Array = frame @ motion @ inverse(frame)
    return exponential


def screw_frame(screw: ArrayLike) -> tuple[Array, tuple[float, float]]:
    """Return a frame X with its z axis along the screw S, and (a, b), such that S = Ad_X (0 0 a, 0 0 b)."""
    w, v = np.split(np.asarray(screw, dtype=float), 2)
    X, a = np.eye(4), float(np.linalg.norm(w))
    if a == 0.0:
        b = float(np.linalg.norm(v))
        X[:3, :3] = rotation_of_z(v / b)
        return X, (0.0, b)
    X[:3, :3], X[:3, 3] = rotation_of_z(w / a), np.cross(w, v) / a**2
    along = float(w @ v) / a
    return X, (a, along if abs(along) > _ROUNDING * np.linalg.norm(v) else 0.0)


def unit_force(screw: ArrayLike) -> Array:
    """Return the wrench (6,) along a screw S with power 1 on it: the moment of a screw that turns, the force of a translation.

    The motion along the screw does not change it.
    """
    S = np.array(screw, dtype=float)
    if S[:3].any():
        S[3:] = 0.0
    return np.asarray(S / (S @ S), dtype=float)


def rotation_of_z(u: Array | tuple[float, float, float]) -> Array:
    """Return the shortest rotation that takes z to the unit vector u."""
    x, y, z = u
    if z < 0:                                         # 1 + z would cancel: 1/(1 + z) = (1 - z)/(x^2 + y^2)
        s = np.hypot(x, y)
        c, d = (x / s, y / s) if s > _OPPOSITE_TOLERANCE else (0.0, 1.0)
        k = 1.0 - z
    else:
        c, d, k = x, y, 1.0 / (1.0 + z)
    return np.array([[1 - k * c * c, -k * c * d, x], [-k * c * d, 1 - k * d * d, y], [-x, -y, z]])


def inertia_from_link(link: Link) -> Array:
    """Return the ten inertia parameters of a link: mass, first moment, second moment about the link's origin (K1 (22))."""
    c = np.array(link.com, dtype=float)
    second = symmetric_matrix(link.inertia) + link.mass * skew(c).T @ skew(c)
    return np.concatenate([[link.mass], link.mass * c, second[np.triu_indices(3)]])


def body_of_inertia(I: Array) -> tuple[float, Array, Array]:
    """Return mass, centre of mass (3,) and inertia (3, 3) about it of ten inertia parameters, as in `inertia_from_link`."""
    mass, com = float(I[0]), I[1:4] / I[0]
    return mass, com, symmetric_matrix(I[4:]) - mass * skew(com).T @ skew(com)


def pseudo_inertia(I: Array) -> Array:
    """Return the pseudo-inertias (…, 4, 4) of ten inertia parameters (…, 10): integrals of x x^T, x and 1 over the mass.

    It is positive definite for every body that is not flat (Wensing, Kim and Slotine 2018).
    """
    second = symmetric_matrix(I[..., 4:])
    J = np.zeros((*I.shape[:-1], 4, 4))
    J[..., :3, :3] = 0.5 * np.trace(second, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - second
    J[..., :3, 3] = J[..., 3, :3] = I[..., 1:4]
    J[..., 3, 3] = I[..., 0]
    return J


def inertia_of_pseudo_inertia(J: Array) -> Array:
    """Return the ten inertia parameters (…, 10) of pseudo-inertias J (…, 4, 4)."""
    second = np.trace(J[..., :3, :3], axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - J[..., :3, :3]
    rows, columns = np.triu_indices(3)
    return np.concatenate([J[..., 3:, 3], J[..., :3, 3], second[..., rows, columns]], axis=-1)


def transform_inertia(T: Array, I: Array) -> Array:
    """Return the ten inertia parameters I (…, 10) of bodies, given in frame b, in frame a; T = T_ab (K1 (21))."""
    if I.ndim == 1:
        return _transformed_inertia(adjoint(inverse(T)), I)
    transformed: Array = I @ _transformed_inertia(adjoint(inverse(T)), np.eye(10))             # it is linear in I
    return transformed


def _transformed_inertia(X: Array, I: Array) -> Array:
    return inertia_parameters(I[..., 0], X.T @ inertia_matrix(I) @ X)


def inertia_parameters(mass: ArrayLike, J: Array) -> Array:
    """Return the ten inertia parameters of bodies with the generalized inertias J (…, 6, 6)."""
    first_moment, second_moment = J[..., (2, 0, 1), (4, 5, 3)], J[..., (0, 0, 0, 1, 1, 2), (0, 1, 2, 1, 2, 2)]
    return np.concatenate([np.asarray(mass, dtype=float)[..., None], first_moment, second_moment], axis=-1)


def inertia_matrix(I: Array) -> Array:
    """Return the generalized inertia (…, 6, 6) (K1 (20); PBP (21), and (28) with its halves exchanged; PL (12))."""
    h = skew(I[..., 1:4])
    return np.block([[symmetric_matrix(I[..., 4:]), h], [-h, I[..., 0, None, None] * np.eye(3)]])


def pose_to_array(T: Array) -> Array:
    """Return the twelve numbers of a (4, 4) pose in the order of the kernels: rotation by rows, translation."""
    return np.concatenate([T[:3, :3].ravel(), T[:3, 3]])


def pose_from_array(x: Array) -> Array:
    """Return the (…, 4, 4) poses of twelve numbers (…, 12): the inverse of `pose_to_array`."""
    T = np.zeros((*x.shape[:-1], 4, 4))
    T[..., :3, :3], T[..., :3, 3], T[..., 3, 3] = x[..., :9].reshape(*T.shape[:-2], 3, 3), x[..., 9:], 1.0
    return T


def symmetric_matrix(A: ArrayLike) -> Array:
    """Return the symmetric matrices (…, 3, 3) of xx, xy, xz, yy, yz, zz."""
    A = np.asarray(A, dtype=float)
    return A[..., [0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(*A.shape[:-1], 3, 3)
