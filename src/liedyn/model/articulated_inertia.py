"""Which joints have no inertia to act on: their torque does not determine their acceleration.

Two computations in plain NumPy. For each model, the articulated inertias (K1 Table 3) of random configurations show which joints
of the open tree have none. For robots with such joints, and for error messages, the pivots of the mass matrix show the same for
each mask of prescribed coordinates, with eliminated couplings, and in a given configuration.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from liedyn.arrays import Array, Integers, Mask
from liedyn.model.description import FREE, NQ, NV, ONE_DOF, SINGULAR_PIVOT
from liedyn.model.spatial import adjoint, exp_screw, inertia_matrix, inverse

# Smallest eigenvalue of D = S^T AI S + armature, or pivot, relative to the inertia that it is made of: the moments and masses of
# all bodies that the joint carries, and its armature. Each coordinate is divided by its own, so that moments are not compared
# with masses. Rounding leaves 1e-16 to 1e-14; bodies in use leave more than 1e-9.
_VANISHING = 1e-12
_SMALL = 1e-8                      # relative to the same: the pivots show whether it is rounding
_N_CONFIGURATIONS = 3              # a joint that is singular in one configuration only is a matter of the run, not of the model
_SEED = 7
_RANGE = 2.0                       # rad, or characteristic lengths: coordinates of random configurations
_SMALLEST_LIMIT = 1e-300           # of an inertia in any unit: a pivot of zero must be below its limit


class BodyTree(NamedTuple):
    """The bodies of the kernels (`joints.joint_model`), of which body 0 is the ground."""

    parent: Sequence[int] | Integers      # (n,)
    kind: Sequence[int] | Integers        # (n,) of the joint
    S: Sequence[Sequence[float]] | Array  # (n, 2) screw about z: angular and linear part
    T0: Sequence[Array] | Array           # (n, 4, 4) pose in the parent
    I: Sequence[Array] | Array            # (n, 10) mass, first moment, second moment
    armature: Array                       # (nv,)


class PivotLimits(NamedTuple):
    """Result of `joints_without_inertia`.

    bodies  whose joint moves no inertia in the open tree, the outermost first
    floor   (nv,) pivots below it are rounding
    """

    bodies: list[int]
    floor: Array


# The open tree ----------------------------------------------------------------------------------------------------------

def joints_without_inertia(tree: BodyTree) -> PivotLimits:
    """Return the bodies whose joint moves no inertia while all other joints are free, and the limits of pivots.

    The articulated inertias of these joints vanish in every random configuration.
    """
    bare = set(range(1, len(tree.parent)))
    small, floor = bare.copy(), np.zeros(len(tree.armature))
    for q in random_configurations(tree):
        vanishing, small_here, scale = _vanishing_inertias(tree, q)
        bare &= vanishing
        small &= small_here
        floor = np.maximum(floor, SINGULAR_PIVOT * scale)
        if not small:
            break
    if small - bare:                                           # rounding that joints behind amplify may be larger than _VANISHING
        body = np.repeat(np.arange(len(tree.parent)), [0, *(NV[k] for k in tree.kind[1:])])
        bare |= small & {int(body[k]) for k in vanishing_coordinates(tree)}
    if bare:
        floor = np.maximum(floor, _limits_of_bare_joints(tree, bare))
    return PivotLimits(sorted(bare, reverse=True), floor)


def _vanishing_inertias(tree: BodyTree, q: Sequence[Array]) -> tuple[set[int], set[int], Array]:
    """Return the bodies whose joint moves no inertia in one configuration, those with a small one, and scales (nv,) of pivots."""
    n = len(tree.parent)
    AI = [inertia_matrix(x) for x in tree.I]
    size = np.zeros((n, 2))       # turning and sliding: what the articulated inertia is made of, before joints took their part
    end = np.cumsum([0] + [NV[k] for k in tree.kind[1:]])
    vanishing, small, scales = set(), set(), np.empty(len(tree.armature))
    for i in range(n - 1, 0, -1):
        columns, motion = joint_columns(tree, i), _joint_transform(tree, i, q[i])
        columns_of_joint = slice(end[i - 1], end[i])
        if np.any(tree.I[i]):
            size[i] = np.trace(AI[i][:3, :3]), np.trace(AI[i][3:, 3:])
        U = AI[i] @ columns
        rotor = np.diag(tree.armature[columns_of_joint])
        D = columns.T @ U + rotor
        scale = (columns[:3]**2).sum(0) * size[i, 0] + (columns[3:]**2).sum(0) * size[i, 1]
        scales[columns_of_joint] = scale
        whole = scale + tree.armature[columns_of_joint]
        unit = np.sqrt(np.where(whole > 0.0, whole, 1.0))
        smallest = np.linalg.eigvalsh(D / np.outer(unit, unit))[0]
        if smallest <= _SMALL:
            small.add(i)
        if smallest <= _VANISHING:
            vanishing.add(i)
            D = D + np.diag(unit**2)                                          # continue, to find others
        T = np.asarray(tree.T0[i]) @ motion
        X = adjoint(inverse(T))
        p = tree.parent[i]
        AI[p] = AI[p] + X.T @ _inertia_without_joint(AI[i], columns, U, D, rotor) @ X
        size[p] += size[i, 0] + size[i, 1] * (T[:3, 3] @ T[:3, 3]), size[i, 1]
    return vanishing, small, scales


def _inertia_without_joint(AI: Array, S: Array, U: Array, D: Array, rotor: Array) -> Array:
    """Return Pi = AI - U D^-1 U^T with U = AI S, the inertia that the joint transmits to the parent (K1 Table 3).

    Computed as L^T AI L + K J K^T with K = U D^-1, L = 1 - S K^T and the armature J: a sum of squares is symmetric and positive
    semidefinite, and S^T Pi S vanishes to the square of the rounding. With the difference, rounding in that block grows from
    joint to joint, until after some 90 ball joints it exceeds the inertia.
    """
    K = np.linalg.solve(D, U.T).T
    L = np.eye(6) - S @ K.T
    Pi: Array = L.T @ AI @ L + K @ rotor @ K.T
    symmetric: Array = 0.5 * (Pi + Pi.T)
    return symmetric


def _limits_of_bare_joints(tree: BodyTree, bare: set[int]) -> Array:
    """Return the limits (nv,) of pivots of joints without inertia, zero for the others.

    Kernels compute these pivots as differences. Their rounding is that of all inertias in the motion that has the pivot, in
    which joints behind may turn by much more than the joint itself.
    """
    start = np.cumsum([0] + [NV[k] for k in tree.kind[1:]])
    coordinates = [k for i in bare for k in range(start[i - 1], start[i])]
    limits = np.zeros(len(tree.armature))
    limits[coordinates] = _SMALLEST_LIMIT
    for q in random_configurations(tree):
        values = pivots(*mass_matrix(tree, q))
        limits[coordinates] = np.maximum(limits[coordinates], _VANISHING * values.scale[coordinates])
    return limits


# Pivots of the mass matrix ----------------------------------------------------------------------------------------------

class Pivots(NamedTuple):
    """Pivots of the mass matrix (nv,), eliminated from the leaves to the root.

    pivot  inertia of the motion of one coordinate to which the later ones yield; infinite if prescribed
    scale  inertia of the same motion without cancellation
    """

    pivot: Array
    scale: Array

    @property
    def vanishing(self) -> Mask:
        """(nv,) bool, the coordinates whose pivot is rounding."""
        below: Mask = self.pivot <= np.maximum(_VANISHING * self.scale, _SMALLEST_LIMIT)
        return below


def vanishing_coordinates(tree: BodyTree, prescribed: Mask | None = None, projection: Array | None = None,
                          q: Sequence[Array] | None = None) -> list[int]:
    """Return the coordinates whose torque does not determine their acceleration, the outermost first.

    prescribed   (nv,) coordinates with a given acceleration; with `projection` also all followers
    projection   (nv, nv) N of `couplings.Elimination`
    q            coordinates of each joint; default: in every one of some random configurations
    """
    below = np.ones(len(tree.armature), dtype=bool)
    for configuration in random_configurations(tree) if q is None else [q]:
        below &= pivots(*mass_matrix(tree, configuration), prescribed, projection).vanishing
    return [int(k) for k in np.flatnonzero(below)[::-1]]


def mass_matrix(tree: BodyTree, q: Sequence[Array]) -> tuple[Array, Array]:
    """Return the mass matrix (nv, nv) of the open tree and the inertias (nv,) of coordinates without cancellation."""
    n, nv = len(tree.parent), len(tree.armature)
    start = np.cumsum([0, 0] + [NV[k] for k in tree.kind[1:]])
    J = np.zeros((n, 6, nv))
    M, scale = np.diag(tree.armature), tree.armature.copy()
    for i in range(1, n):
        T = np.asarray(tree.T0[i]) @ _joint_transform(tree, i, q[i])
        J[i] = adjoint(inverse(T)) @ J[tree.parent[i]]
        columns = joint_columns(tree, i)
        J[i][:, start[i]:start[i] + columns.shape[1]] += columns
        if np.any(tree.I[i]):
            G = inertia_matrix(np.asarray(tree.I[i]))
            M += J[i].T @ G @ J[i]
            scale += np.trace(G[:3, :3]) * (J[i][:3]**2).sum(0) + np.trace(G[3:, 3:]) * (J[i][3:]**2).sum(0)
    return M, scale


def pivots(M: Array, scale: Array, prescribed: Mask | None = None, projection: Array | None = None) -> Pivots:
    """Return the pivots of a mass matrix, see `vanishing_coordinates`. Vanishing ones do not move afterwards."""
    nv = len(scale)
    if projection is not None:
        M, scale = projection.T @ M @ projection, (projection**2).T @ scale
    A, motion, free = M.copy(), np.eye(nv), np.ones(nv, dtype=bool) if prescribed is None else ~prescribed
    values = Pivots(np.full(nv, np.inf), np.zeros(nv))
    for k in range(nv - 1, -1, -1):
        if not free[k]:
            continue
        values.pivot[k], values.scale[k] = A[k, k], (motion[k]**2) @ scale
        if values.pivot[k] > max(_VANISHING * values.scale[k], _SMALLEST_LIMIT):
            yields = A[:k, k] / A[k, k]
            A[:k, :k] -= np.outer(yields, A[k, :k])
            motion[:k] -= np.outer(yields, motion[k])
    return values


# Motions of joints ------------------------------------------------------------------------------------------------------

def joint_columns(tree: BodyTree, i: int) -> Array:
    """Return S (6, k) of a joint in the frame of body i."""
    if tree.kind[i] == ONE_DOF:
        a, b = tree.S[i]
        return np.array([[0.0], [0.0], [a], [0.0], [0.0], [b]])
    return np.eye(6)[:, :NV[tree.kind[i]]]


def _joint_transform(tree: BodyTree, i: int, q: Array) -> Array:
    """Return the motion (4, 4) of a joint from its coordinates."""
    if tree.kind[i] == ONE_DOF:
        a, b = tree.S[i]
        moved: Array = exp_screw(np.array([0.0, 0.0, a, 0.0, 0.0, b]), float(q[0]))
        return moved
    T, (x, y, z, w) = np.eye(4), q[-4:]
    T[:3, :3] = [[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                 [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                 [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]]
    if tree.kind[i] == FREE:
        T[:3, 3] = q[:3]
    return T


def split_configuration(tree: BodyTree, q: Array) -> list[Array]:
    """Return the coordinates of each joint, empty for the ground."""
    return np.split(q, np.cumsum([0] + [NQ[k] for k in tree.kind[1:]])[:-1]) if len(tree.kind) > 1 else [q]


def _random_configuration(tree: BodyTree, rng: np.random.Generator, length: float) -> list[Array]:
    """Return random coordinates of each joint. Slides move by about `length`."""
    coordinates = [np.zeros(0)]
    for i in range(1, len(tree.parent)):
        if tree.kind[i] == ONE_DOF:
            turns = tree.S[i][0] != 0.0
            coordinates.append(rng.uniform(-_RANGE, _RANGE, 1) * (1.0 if turns else length))
            continue
        quaternion = rng.standard_normal(4)
        place = length * rng.standard_normal(3 if tree.kind[i] == FREE else 0)
        coordinates.append(np.concatenate([place, quaternion / np.linalg.norm(quaternion)]))
    return coordinates


def random_configurations(tree: BodyTree, count: int = _N_CONFIGURATIONS) -> list[list[Array]]:
    """Return random configurations, the same in each call."""
    rng, length = np.random.default_rng(_SEED), _characteristic_length(tree)
    return [_random_configuration(tree, rng, length) for _ in range(count)]


def _characteristic_length(tree: BodyTree) -> float:
    """Return the maximum distance between joints, distance of a mass centre from its joint, or radius of gyration [m].

    1 m for a robot without any. The place of the robot in the world does not count.
    """
    distances = [float(np.linalg.norm(np.asarray(tree.T0[i])[:3, 3])) for i in range(1, len(tree.parent)) if tree.parent[i] > 0]
    gyration = [float(np.sqrt(max(0.0, (I[4] + I[7] + I[9]) / (2.0 * I[0])))) for I in tree.I[1:] if I[0] > 0.0]
    return max(distances + gyration, default=0.0) or 1.0
