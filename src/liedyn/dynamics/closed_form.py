"""The equations of motion in closed form, as dense block matrices: Park, Bobrow and Ploen 1995 (PBP) §4, Ploen (PL) §3-5.

Plain NumPy for one state, as a readable reference; the compiled functions compute the same quantities much faster. Block i is a
rigid body: links that move together, or a massless body between two screws of a joint. Its frame is that of the child link of its
joint, `links[i]`, and its screws are those of the robot file in that frame. A massless body has the frame that the child link
would have without the screws that follow. Other links of a block are fixed to it (`model.link_body == i + 1`). Columns belong to
the coordinates of v.

Both papers treat chains of one-degree-of-freedom joints. Here i - 1 becomes the parent of i, "k <= l" becomes "k is l or an
ancestor of l", and a joint of several coordinates has several columns in its block; its pose replaces e^{A x}.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from liedyn.arrays import Array, ArrayLike, Integers, Mask
from liedyn.dynamics.batching.arrays import as_single_state
from liedyn.dynamics.batching.calls import check_configuration, check_finite
from liedyn.errors import ShapeError
from liedyn.immutable import Immutable, read_only_property
from liedyn.joints.joint_model import tree_views
from liedyn.model.description import FREE, NV
from liedyn.model.model import Model
from liedyn.model.model_joint import ModelJoint
from liedyn.model.spatial import (
    adjoint,
    bracket,
    exp_screw,
    inertia_matrix,
    inverse,
    rotation,
    screw_frame,
    skew,
    transform_inertia,
)

# Kinematics by products of exponentials, space form and body form: Park, Bobrow and Ploen 1995 (PBP) §2, §4 -------------

# Kinematics, without inertia. The head of this module defines blocks and columns.

_SINGLE = "the closed form is computed for one state"


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
    def from_state(cls, model: Model, q: Array, **more: Any) -> Self:
        """Return the object for q (nq,), which must be finite with unit quaternions. more: fields of a derived class."""
        tree = tree_views.py_func(model.index, model.constants)
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
        """Return the blocks from the ground to block i, which is the last."""
        path: list[int] = []
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
        """(N, N) bool: whether block i is block j or its ancestor."""
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
        """Return (6, nv) B_k = Ad_{M_i^-1} A_k: screws at home, in body i; zero for joints that do not move it (PBP (14))."""
        moves: Mask = self.above[self.block_of, i]
        return adjoint(inverse(self.home[i])) @ self.space_screws * moves

    @read_only_property
    def exponentials(self) -> Array:
        """(N, 4, 4) e^{A_i x_i} = M_i exp(S_i q_i) M_i^-1."""
        return np.array([M @ motion @ inverse(M) for M, motion in zip(self.home, self.motion, strict=True)]).reshape(-1, 4, 4)

    @read_only_property
    def poses(self) -> Array:
        """(N, 4, 4) f_i = e^{A_1 x_1} … e^{A_i x_i} M_i of the bodies in the world (PBP (12), (13), (30), (31), (67); PL (8))."""
        return np.array([product(self.exponentials[self.path(i)]) @ M for i, M in enumerate(self.home)]).reshape(-1, 4, 4)

    def pose_by_body_screws(self, i: int) -> Array:
        """Return (4, 4) the pose of body i as M_i e^{B_1 x_1} … e^{B_i x_i} (PBP (14))."""
        M = self.home[i]
        motions = (inverse(M) @ self.exponentials[j] @ M for j in self.path(i))
        return product([M, *motions])

    @read_only_property
    def space_jacobians(self) -> Array:
        """(N, 6, nv) df_i f_i^-1, in the world about its origin: column k is Ad of e^{A_1 x_1} … e^{A_k x_k} on A_k."""
        moved = np.zeros((6, len(self.block_of)))
        for k, columns in enumerate(self.columns):
            moved[:, columns] = adjoint(product(self.exponentials[self.path(k)])) @ self.space_screws[:, columns]
        return self.above.T[:, None, self.block_of] * moved

    # Ad and its derivatives -------------------------------------------------------------------------------------
    def Ad(self, j: int, i: int | None) -> Array:
        """Return (6, 6) Ad_j^i of e^{-A_j x_j} … e^{-A_i x_i} (PBP (37), (42), Definition 2).

        i = None is the block below the path, which gives the unit matrix, as i > j does.
        """
        if i is None:
            return np.eye(6)
        path = self.path(j)
        if i not in path:
            raise ShapeError(f"Ad_j^i needs a block i above j or j itself: got i = {i}, j = {j}, whose path is {path}")
        return adjoint(inverse(product(self.exponentials[path[path.index(i):]])))

    def below(self, j: int, k: int) -> int | None:
        """Return the block "k + 1" on the path from k to j; None if k is j."""
        path = self.path(j)
        return None if k == j else path[path.index(k) + 1]

    def Ad_derivative(self, j: int, i: int, k: int) -> Array:
        """Return (6, 6) the derivative of Ad_j^i with respect to coordinate k of v (PBP (53), Proposition 1).

        PBP write Ad_j^k([Ad_{k-1}^i(B), A_k]). Here it is Ad_j^{k+1}([Ad_k^i(B), A_k]), which is equal for a single screw, since
        its exponential does not change it, and also correct for joints of several coordinates.
        """
        K = self.block_of[k]
        if not (self.above[i, K] and self.above[K, j]):
            return np.zeros((6, 6))
        return -self.Ad(j, self.below(j, K)) @ bracket(self.space_screws[:, k]) @ self.Ad(K, i)

    def Ad_second_derivative(self, j: int, i: int, k: int, m: int) -> Array:
        """Return (6, 6) the derivative of `Ad_derivative` (j, i, k) with respect to coordinate m of v (PBP (54), Proposition 2).

        The order of k and m matters only between coordinates of one ball or free joint, whose tangent fields do not commute.
        """
        K, A = self.block_of[k], bracket(self.space_screws[:, k])
        if not (self.above[i, K] and self.above[K, j]):
            return np.zeros((6, 6))
        next_block = self.below(j, K)
        next_rate = np.zeros((6, 6)) if next_block is None else self.Ad_derivative(j, next_block, m)
        return -self.Ad(j, next_block) @ A @ self.Ad_derivative(K, i, m) - next_rate @ A @ self.Ad(K, i)


def child_links(model: Model) -> Integers:
    """Return (N,) the index of the child link of each block's joint; -1 for blocks between the screws of a joint."""
    links = np.full(model.n_bodies - 1, -1)
    for joint in model.joints:
        links[joint.body - 1] = model.link_index(joint.child)
    return links


def _blocks(model: Model, joint: ModelJoint, q: Array) -> Iterator[tuple[str, Array, Array, Array]]:
    """Return link, screws, offset and motion of each block of a joint, in frames of the child link."""
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
    """Return (4, 4) the pose of the parent link in the frame of its block; on the ground, in the world."""
    if joint.parent not in model.link_names:
        return np.eye(4)
    k = model.link_index(joint.parent)
    block, place = int(model.link_body[k]) - 1, model.link_pose[k]
    return np.array(place) if block < 0 else inverse(model.link_pose[child_links(model)[block]]) @ place


def product(poses: Iterable[Array]) -> Array:
    """Return the product of poses (4, 4)."""
    out = np.eye(4)
    for T in poses:
        out = out @ T
    return out


# closed form ------------------------------------------------------------------------------------------------------------

def closed_form(model: Model, q: ArrayLike) -> ClosedForm:
    """The factors of the closed form of the equations of motion, and their products: see `ClosedForm`.

    Parameters
    ----------
    model : Model
    q : (nq,) array
        One state [rad | m].

    Returns
    -------
    ClosedForm

    Raises
    ------
    ShapeError, ConfigurationError

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> f = ld.closed_form(model, [0.3, -0.2])
    >>> np.allclose(f.mass_matrix, ld.mass_matrix(model, [0.3, -0.2]))
    True
    >>> f.links, np.allclose(f.poses[1], ld.link_pose(model, [0.3, -0.2], "lower"))
    (('upper', 'lower'), True)
    """
    q = as_single_state(q, "q", (model.nq,), _SINGLE)
    check_configuration(model, q)
    tree, rigid = tree_views.py_func(model.index, model.constants), []
    for I, k in zip(tree.I[10:].reshape(-1, 10), child_links(model), strict=True):
        rigid.append(I if k < 0 else transform_inertia(inverse(model.link_pose[k]), I))
    return ClosedForm.from_state(model, q, rigid=np.reshape(rigid, (-1, 10)), armature=tree.armature, gravity=model.gravity)


@dataclass(frozen=True, eq=False, repr=False)
class ClosedForm(ProductOfExponentials):
    """One state of a robot as block matrices, N blocks.

    links     (N,) the link whose frame block i has; "" for blocks between the screws of a joint
    parent    (N,) block of the parent, -1 for the ground
    columns   slices of v: the coordinates of block i
    screws    (6, k_i) S_i of block i in its frame: the axis of the robot file
    offset    (N, 4, 4) pose of the block in its parent at zero coordinates and identity quaternions (M_i of PBP (23), PL (14))
    motion    (N, 4, 4) motion of the joint, exp(S_i q_i) for a screw
    rigid     (N, 10) mass, first and second moment of the body in its frame
    armature  (nv,), gravity (3,) m/s^2

    All other attributes are computed at their first use: kinematics `poses`, `space_screws`, `body_jacobians`, … (most of them in
    `ProductOfExponentials`); factors `A`, `L`, `D`, `Q` of PBP and `S`, `G`, `Gamma`, `J`, `P0` of Ploen; `mass_matrix`,
    `mass_matrix_derivative`, `christoffel_symbols`, `coriolis_matrix(v)`, `gravity_force`.
    """

    rigid: Array
    armature: Array
    gravity: Array

    # the factors of PBP §4 --------------------------------------------------------------------------------------
    @read_only_property
    def A(self) -> Array:
        """(6N, nv) block-diagonal screws at home in the world (PBP (41))."""
        return self._block_columns(self.space_screws[:, columns] for columns in self.columns)

    @read_only_property
    def L(self) -> Array:
        """(6N, 6N) block (i, j) is Ad_i^{j+1} for j above i, 1 on the diagonal (PBP (43))."""
        out = np.eye(6 * len(self.parent))
        for i in range(len(self.parent)):
            for j in self.path(i)[:-1]:
                out[block(i), block(j)] = self.Ad(i, self.below(i, j))
        return out

    @read_only_property
    def D(self) -> Array:
        """(6N, 6N) block-diagonal inertias at home in the world (PBP (35), (36), (44), (45), Definition 1)."""
        return block_diagonal([inertia_matrix(transform_inertia(M, I)) for M, I in zip(self.home, self.rigid, strict=True)])

    @read_only_property
    def Q(self) -> Array:
        """(6N, 6N) block-diagonal Ad_{M_i} (PBP (50)): A = Q S, L = Q G Q^-1, D = Q^-T J Q^-1."""
        return block_diagonal(adjoint(self.home))

    @read_only_property
    def body_jacobians(self) -> Array:
        """(N, 6, nv) f_i^-1 df_i = Ad_{M_i^-1} sum_j Ad_i^{j+1}(A_j) v_j, in the body's frame.

        Source: PBP (18)-(20), (33), (34), (38)."""
        return adjoint(inverse(self.home)) @ (self.L @ self.A).reshape(len(self.parent), 6, len(self.armature))

    # the factors of Ploen §3 ------------------------------------------------------------------------------------
    @read_only_property
    def S(self) -> Array:
        """(6N, nv) block-diagonal screws in the bodies' frames (PBP (47); PL (19))."""
        return self._block_columns(self.screws)

    @read_only_property
    def J(self) -> Array:
        """(6N, 6N) block-diagonal inertias in the bodies' frames (PBP (48); PL (12), (21))."""
        return block_diagonal(inertia_matrix(self.rigid))

    @read_only_property
    def steps(self) -> Array:
        """(N, 6, 6) Ad of f_{parent,i}^-1, which transforms twists of the parent to the frame of body i."""
        return adjoint(inverse(self.offset @ self.motion))

    @read_only_property
    def Gamma(self) -> Array:
        """(6N, 6N) the step from the parent at block (i, parent of i); nilpotent (PL (19)-(22))."""
        out = np.zeros((6 * len(self.parent),) * 2)
        for i, p in enumerate(self.parent):
            if p >= 0:
                out[block(i), block(p)] = self.steps[i]
        return out

    @read_only_property
    def P0(self) -> Array:
        """(6N, 6) the step from the ground where the parent is the ground (PL (19), (20))."""
        return np.vstack([X * (p < 0) for X, p in zip(self.steps, self.parent, strict=True)] or [np.zeros((0, 6))])

    @read_only_property
    def G(self) -> Array:
        """(6N, 6N) (1 - Gamma)^-1 = 1 + Gamma + Gamma^2 + …: from every body to its descendants (PBP (49); PL (19))."""
        out = np.eye(6 * len(self.parent))
        for i, p in enumerate(self.parent):
            if p >= 0:
                out[block(i)] += self.steps[i] @ out[block(p)]
        return out

    # the mass matrix --------------------------------------------------------------------------------------------
    @property
    def mass_matrix(self) -> Array:
        """(nv, nv) S^T G^T J G S, and armature on the diagonal (PBP (51), (65); PL (24), (36))."""
        return self.S.T @ self.G.T @ self.J @ self.G @ self.S + np.diag(self.armature)

    @property
    def mass_matrix_from_home(self) -> Array:
        """(nv, nv) A^T L^T D L A, and armature on the diagonal (PBP (46))."""
        return self.A.T @ self.L.T @ self.D @ self.L @ self.A + np.diag(self.armature)

    def ad_of_joints(self, v: ArrayLike) -> Array:
        """(6N, 6N) diag(-ad of S_i v_i), by which dG/dt = G ad Gamma G (PL (27))."""
        return block_diagonal(-bracket((self.S @ self._velocity(v)).reshape(-1, 6)))

    def mass_matrix_rate(self, v: ArrayLike) -> Array:
        """(nv, nv) dM/dt along v (PL (28))."""
        half = self.S.T @ self.G.T @ self.J @ self.G @ self.ad_of_joints(v) @ self.Gamma @ self.G @ self.S
        return half + half.T

    @property
    def mass_matrix_derivative(self) -> Array:
        """(nv, nv, nv) [i, j, k] = dM_ij/dq_k: PL (28) along each coordinate."""
        nv = len(self.armature)
        return np.array([self.mass_matrix_rate(e) for e in np.eye(nv)]).reshape(nv, nv, nv).transpose(1, 2, 0)

    # velocity terms ---------------------------------------------------------------------------------------------
    def coriolis_matrix(self, v: ArrayLike) -> Array:
        """Return (nv, nv) S^T G^T (J G ad Gamma + C~) G S, with dM/dt - 2C skew (PL (35)-(37), Proposition 2).

        With ad*_V J in place of C~ it would not be skew (PL (25), (29)). C~ depends on a reference point: here a point on the
        axis of the joint, as in `liedyn.coriolis_matrix`.
        """
        G_S = self.G @ self.S
        twists = (G_S @ self._velocity(v)).reshape(-1, 6)
        C = skew_forms(self.rigid, twists, self.screws)
        return G_S.T @ (self.J @ self.G @ self.ad_of_joints(v) @ self.Gamma + C) @ G_S

    @property
    def christoffel_symbols(self) -> Array:
        """(nv, nv, nv) [i, j, k] = Gamma_ijk of PBP (55)-(57), without the rotors' (see `liedyn.christoffel_symbols`).

        With <ab|c> = sum_l <[Ad_l^{a+1}(A_a), Ad_l^{b+1}(A_b)], Ad_l^{c+1}(A_c)>_l over all bodies l below the three, the
        three cases are one, since [X, Y] = -[Y, X]: Gamma_ijk = (<ki|j> + <kj|i> + <ij|k>)/2 for i above j. All is computed in
        the frame of body l (columns of G S, inertia J), in which brackets have the same form. About the world's origin, digits
        would be lost with the square of the distance of a robot."""
        nv = len(self.armature)
        triple = np.zeros((nv, nv, nv))
        for l, columns in enumerate((self.G @ self.S).reshape(len(self.parent), 6, nv)):
            brackets = np.array([bracket(X) @ columns for X in columns.T]).reshape(nv, 6, nv)
            triple += np.einsum("amb,mn,nc->abc", brackets, self.J[block(l), block(l)], columns)
        lower = triple.transpose(1, 2, 0) + triple.transpose(2, 1, 0)              # <ki|j> + <kj|i> at [i, j, k]
        ordered = self.above[np.ix_(self.block_of, self.block_of)]                 # i above j, or of one joint
        sign = np.where(ordered, 1.0, -1.0)[:, :, None]
        return 0.5 * (lower + sign * triple)

    # gravity ----------------------------------------------------------------------------------------------------
    @property
    def gravity_force(self) -> Array:
        """(nv,) S^T G^T J G P0 dV_0 with dV_0 = [0; -g] (PL (26), (38))."""
        dV0: Array = np.r_[0, 0, 0, -self.gravity]
        return self.S.T @ self.G.T @ self.J @ self.G @ self.P0 @ dV0

    @property
    def gravity_force_from_home(self) -> Array:
        """(nv,) sum_i <m_i g, f_i M_i^-1 Ad_i^{k+1}(A_k) M_i r>, PBP's g being minus gravity's acceleration (PBP (58), (59))."""
        phi: Array = np.zeros(len(self.armature))
        for i, (m, *h) in enumerate(self.rigid[:, :4]):
            to_world, r = self.poses[i] @ inverse(self.home[i]), self.home[i] @ np.r_[h, m]            # m r
            for k in np.flatnonzero(self.above[self.block_of, i]):
                A = self.Ad(i, self.below(i, self.block_of[k])) @ self.space_screws[:, k]
                phi[k] -= self.gravity @ to_world[:3, :3] @ (np.cross(A[:3], r[:3]) + r[3] * A[3:])
        return phi

    def _block_columns(self, blocks: Iterable[Array]) -> Array:
        out = np.zeros((6 * len(self.parent), len(self.armature)))
        for i, (screws, columns) in enumerate(zip(blocks, self.columns, strict=True)):
            out[block(i), columns] = screws
        return out

    def _velocity(self, v: ArrayLike) -> Array:
        return finite_single_state("v", v, *self.armature.shape)


def finite_single_state(name: str, x: ArrayLike, *shape: int) -> Array:
    """Return x as an array of this shape; raise ShapeError or ConfigurationError."""
    array = as_single_state(x, name, shape, _SINGLE)
    check_finite(name, array, n_axes=len(shape))
    return array


def skew_form(I: Array, V: Array) -> Array:
    """(…, 6, 6) Ploen's C~, skew, with C~ V = -ad*_V I V of bodies I (…, 10) at twists V (…, 6) (PL (30)-(34), Proposition 1)."""
    J = inertia_matrix(I)
    w, A, h = skew(V[..., :3]), J[..., :3, :3], J[..., :3, 3:]
    return np.block([[w @ A + A @ w, h @ w], [-w @ h, I[..., 0, None, None] * w]])


def skew_forms(rigid: Array, twists: Array, screws: Iterable[Array]) -> Array:
    """(6N, 6N) block-diagonal C~ of blocks, each written about the axis of its last screw."""
    frames = [screw_frame(S[:, 0])[0] if S.shape[1] == 1 else np.eye(4) for S in screws]
    out = []
    for I, V, Z in zip(rigid, twists, frames, strict=True):
        back = adjoint(inverse(Z))
        out.append(back.T @ skew_form(transform_inertia(inverse(Z), I), back @ V) @ back)
    return block_diagonal(out)


def block(i: int) -> slice:
    """Return the rows or columns of block i."""
    return slice(6 * i, 6 * i + 6)


def block_diagonal(blocks: Sequence[Array] | Array) -> Array:
    """Return (6N, 6N) with N blocks (6, 6) on the diagonal."""
    out = np.zeros((6 * len(blocks),) * 2)
    for i, x in enumerate(blocks):
        out[block(i), block(i)] = x
    return out
