"""Kinematics by products of exponentials, space form and body form: Park, Bobrow and Ploen 1995 (PBP) §2, §4.

The part of `closed_form` that knows no inertia; see there for blocks and columns."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from liedyn.arrays import Array, Integers, Mask
from liedyn.errors import ShapeError
from liedyn.immutable import Immutable, read_only_property
from liedyn.joints.kinds import FREE, NV
from liedyn.joints.tree import tree_of
from liedyn.model.model import Model, ModelJoint
from liedyn.model.spatial import adjoint, bracket, exp_screw, inverse, rotation


@dataclass(frozen=True, eq=False, repr=False)
class ProductOfExponentials(Immutable):
    """One state of a robot, N blocks; the fields are described in `ClosedForm`."""

    links: tuple[str, ...]
    parent: Integers
    columns: tuple[slice, ...]
    screws: tuple[Array, ...]
    offset: Array
    motion: Array

    @classmethod
    def of(cls, model: Model, q: Array, **more: Any) -> Self:
        """q (nq,): finite, quaternions of unit norm. more: what a class derived from this one holds besides."""
        tree = tree_of.py_func(model.index, model.constants)
        blocks = [block for joint in model.joints for block in _blocks(model, joint, q)]
        links, screws, offset, motion = zip(*blocks, strict=True) if blocks else ((),) * 4
        bodies = range(1, tree.parent.size)
        return cls(
            links=links, parent=tree.parent[1:] - 1,
            columns=tuple(slice(int(tree.iv[i]), int(tree.iv[i] + NV[tree.kind[i]])) for i in bodies),
            screws=screws, offset=np.reshape(offset, (-1, 4, 4)), motion=np.reshape(motion, (-1, 4, 4)), **more)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self.parent)} blocks, nv {len(self.block_of)}>"

    # the tree ---------------------------------------------------------------------------------------------------
    def path(self, i: int) -> list[int]:
        """Blocks from the ground to block i, which is the last."""
        path = []
        while i >= 0:
            path.insert(0, i)
            i = int(self.parent[i])
        return path

    @read_only_property
    def block_of(self) -> Integers:
        """(nv,) the block to which each coordinate belongs."""
        return np.repeat(np.arange(len(self.columns)), [S.shape[1] for S in self.screws])

    @read_only_property
    def above(self) -> Mask:
        """(N, N) bool: whether block i is block j or above it."""
        out = np.zeros((len(self.parent),) * 2, dtype=bool)
        for j in range(len(self.parent)):
            out[self.path(j), j] = True
        return out

    # kinematics -------------------------------------------------------------------------------------------------
    @read_only_property
    def home(self) -> Array:
        """(N, 4, 4) M_i: pose of the body in the world at zero coordinates and identity quaternions (PBP (31); AGF (29))."""
        return np.array([product(self.offset[self.path(i)]) for i in range(len(self.parent))]).reshape(-1, 4, 4)

    @read_only_property
    def space_screws(self) -> Array:
        """(6, nv) A_k = Ad_{M_i} S_k: the joints' screws at home, in the world (PBP (13), (30); AGF (8), (30))."""
        return np.hstack([adjoint(M) @ S for M, S in zip(self.home, self.screws, strict=True)] or [np.zeros((6, 0))])

    def body_screws(self, i: int) -> Array:
        """(6, nv) B_k = Ad_{M_i^-1} A_k: the joints' screws at home, seen from body i; zero where not above it (PBP (14))."""
        return adjoint(inverse(self.home[i])) @ self.space_screws * self.above[self.block_of, i]

    @read_only_property
    def exponentials(self) -> Array:
        """(N, 4, 4) e^{A_i x_i} = M_i exp(S_i q_i) M_i^-1."""
        return np.array([M @ motion @ inverse(M) for M, motion in zip(self.home, self.motion, strict=True)]).reshape(-1, 4, 4)

    @read_only_property
    def poses(self) -> Array:
        """(N, 4, 4) f_i = e^{A_1 x_1} … e^{A_i x_i} M_i of the bodies in the world (PBP (12), (13), (30), (31), (67); PL (8))."""
        return np.array([product(self.exponentials[self.path(i)]) @ M for i, M in enumerate(self.home)]).reshape(-1, 4, 4)

    def pose_by_body_screws(self, i: int) -> Array:
        """(4, 4) the same as M_i e^{B_1 x_1} … e^{B_i x_i} (PBP (14))."""
        M = self.home[i]
        return M @ product([inverse(M) @ self.exponentials[j] @ M for j in self.path(i)])

    @read_only_property
    def space_jacobians(self) -> Array:
        """(N, 6, nv) df_i f_i^-1, in the world about its origin: column k is Ad of e^{A_1 x_1} … e^{A_k x_k} on A_k."""
        moved = np.zeros((6, len(self.block_of)))
        for k, columns in enumerate(self.columns):
            moved[:, columns] = adjoint(product(self.exponentials[self.path(k)])) @ self.space_screws[:, columns]
        return self.above.T[:, None, self.block_of] * moved

    # Ad and its derivatives -------------------------------------------------------------------------------------
    def Ad(self, j: int, i: int | None) -> Array:
        """(6, 6) Ad_j^i (PBP (37), (42), Definition 2): of e^{-A_j x_j} … e^{-A_i x_i}; None for the block below the path: 1, as
        for i > j."""
        if i is None:
            return np.eye(6)
        path = self.path(j)
        if i not in path:
            raise ShapeError(f"Ad_j^i needs a block i above j or j itself; found i = {i}, j = {j}, whose path is {path}")
        return adjoint(inverse(product(self.exponentials[path[path.index(i):]])))

    def below(self, j: int, k: int) -> int | None:
        """The block "k + 1" on the way from k to j; None where k is j."""
        path = self.path(j)
        return None if k == j else path[path.index(k) + 1]

    def Ad_derivative(self, j: int, i: int, k: int) -> Array:
        """(6, 6) derivative of Ad_j^i by coordinate k of v (PBP (53), Proposition 1).

        PBP write Ad_j^k([Ad_{k-1}^i(B), A_k]); here Ad_j^{k+1}([Ad_k^i(B), A_k]), the same for a single screw, which its own
        exponential leaves in place, and right for joints of several coordinates too."""
        K = self.block_of[k]
        if not (self.above[i, K] and self.above[K, j]):
            return np.zeros((6, 6))
        return -self.Ad(j, self.below(j, K)) @ bracket(self.space_screws[:, k]) @ self.Ad(K, i)

    def Ad_second_derivative(self, j: int, i: int, k: int, m: int) -> Array:
        """(6, 6) derivative of `Ad_derivative` (j, i, k) by coordinate m of v (PBP (54), Proposition 2): by k first, then by m.

        The order matters between coordinates of one ball or free joint only, whose tangent fields do not commute."""
        K, A = self.block_of[k], bracket(self.space_screws[:, k])
        if not (self.above[i, K] and self.above[K, j]):
            return np.zeros((6, 6))
        after = self.below(j, K)
        moved_after = self.Ad_derivative(j, after, m) if j != K else np.zeros((6, 6))
        return -self.Ad(j, after) @ A @ self.Ad_derivative(K, i, m) - moved_after @ A @ self.Ad(K, i)


def carried_links(model: Model) -> Integers:
    """(N,) the child link of the joint that a block belongs to, by its index; -1 for blocks between the screws of a joint."""
    found = np.full(model.n_bodies - 1, -1)
    for joint in model.joints:
        found[joint.body - 1] = model.link_index(joint.child)
    return found


def _blocks(model: Model, joint: ModelJoint, q: Array):
    """Link, screws, offset and motion of each block of a joint, whose frames are those of its child link."""
    home, x = _parent_frame(model, joint) @ joint.home, q[joint.q]
    if joint.screws is None:
        T = np.eye(4)
        T[:3, :3] = rotation(x[-4:])
        if joint.kind == FREE:
            T[:3, 3] = x[:3]
        yield joint.child, np.eye(6)[:, :NV[joint.kind]], home, T
        return
    for k, screw in enumerate(joint.screws):
        last = k + 1 == len(joint.screws)
        yield joint.child if last else "", screw[:, None], np.eye(4) if k else home, exp_screw(screw, x[k])


def _parent_frame(model: Model, joint: ModelJoint) -> Array:
    """(4, 4) pose of the parent link in the frame of its block; on the ground in the world."""
    if joint.parent not in model.link_names:
        return np.eye(4)
    k = model.link_index(joint.parent)
    block = int(model.link_body[k]) - 1
    if block < 0:
        return model.link_pose[k]
    return inverse(model.link_pose[carried_links(model)[block]]) @ model.link_pose[k]


def product(poses) -> np.ndarray:
    out = np.eye(4)
    for T in poses:
        out = out @ T
    return out
