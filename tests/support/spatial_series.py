"""Time derivatives of any order of the motion and the dynamics of one state, in plain NumPy: the reference of the kernels.

Spatial form of Ali, Gabellieri and Franchi (Algorithms 1 and 2), where the kernels work on Taylor coefficients in body frames:
twists, screws, inertias and wrenches are in world axes about the world's origin, X^(k) is the k-th derivative of the components,
and C(k, j) are binomials:

    J_i^(k)   = sum_{j<k}    C(k-1, j) ad_{V_i^(j)} J_i^(k-1-j)            J_i = Ad_{C_i} S_i,  S_i fixed in body i
    V_i^(k)   = V_p^(k) + sum_{j<=k} C(k, j) J_i^(j) v_i^(k-j)
    C_i^(k+1) = sum_{j<=k}   C(k, j) hat(V_i^(j)) C_i^(k-j)
    M_i^(k+1) = -sum_{j<=k}  C(k, j) (ad_{V^(j)}^T M^(k-j) + M^(k-j) ad_{V^(j)})
    W_i^(k)   = sum_{j<=k+1} C(k+1, j) M^(k+1-j) V^(j) - M^(k) [0; g] - W_ext^(k) + sum of W_c^(k) of the children
    tau_i^(k) = sum_{j<=k}   C(k, j) J_i^(j)^T W_i^(k-j)

S_i has one column a coordinate, so ball and free joints need nothing of their own: the columns of J turn with the body and
v_i^(k) are the rates of the body twist's components. For a base in spatial coordinates J is the identity and stays so.

It reads the model's arrays (`joints.joint_model`) itself and uses nothing of the kernels. With dtype=np.longdouble it is right to
about 1e-18 of what it sums. Rotations and quaternions, which doubles hold to 1e-16 only, are made orthogonal to the last digit
first.
"""
from functools import lru_cache
from math import comb
from typing import NamedTuple

import numpy as np
from mpmath import mp, mpf

from liedyn.model.description import BALL, FREE, INDEX_HEADER, NQ, NV, ONE_DOF


class Arrays(NamedTuple):
    """The model's arrays in shapes for people. Body 0 is the ground."""
    parent: np.ndarray       # (n,)
    kind: np.ndarray         # (n,)
    q: list                  # n slices of q
    v: list                  # n slices of v
    link_body: np.ndarray    # (n_links,)
    g: np.ndarray            # (3,)
    S: np.ndarray            # (n, 2)
    T0: np.ndarray           # (n, 4, 4)
    I: np.ndarray            # (n, 6, 6)
    link_pose: np.ndarray    # (n_links, 4, 4)
    armature: np.ndarray     # (nv,) and so the others
    damping: np.ndarray
    friction: np.ndarray
    stiffness: np.ndarray
    rest: np.ndarray
    friction_speed: np.ndarray


class Motion(NamedTuple):
    """Derivatives of bodies, world axes about the world's origin, from K derivatives v, a, … of the coordinates."""
    C: np.ndarray    # (n, K+1, 4, 4) poses
    V: np.ndarray    # (n, K, 6) twists
    J: list          # n arrays (K+1, 6, m): screws of the body's own joint
    M: np.ndarray    # (n, K+1, 6, 6) inertias


@lru_cache(maxsize=4)
def arrays_of(model, dtype=np.float64) -> Arrays:
    index, c = model.index, model.constants.astype(dtype)
    n, nv, nl = int(index[0]), model.nv, len(model.link_names)
    parent, kind, iq, iv = index[INDEX_HEADER:INDEX_HEADER + 4 * n].reshape(4, n)
    link_body = index[INDEX_HEADER + 6 * n:INDEX_HEADER + 6 * n + nl]
    sizes = [6, 2 * n, 12 * n, 10 * n, 10 * n, 12 * nl, nv, nv, nv, nv, nv, nv]
    dV0, S, T0, I, _, link_pose, *figures = np.split(c, np.cumsum(sizes))[:len(sizes)]
    return Arrays(parent, kind, [slice(iq[i], iq[i] + NQ[kind[i]]) if i else slice(0, 0) for i in range(n)],
                  [slice(iv[i], iv[i] + NV[kind[i]]) if i else slice(0, 0) for i in range(n)], link_body, -dV0[3:],
                  S.reshape(n, 2), np.array([_pose(x) for x in T0.reshape(n, 12)]),
                  np.array([_inertia(x) for x in I.reshape(n, 10)]),
                  np.array([_pose(x) for x in link_pose.reshape(nl, 12)]).reshape(nl, 4, 4), *figures)


def _pose(x):
    T = np.eye(4, dtype=x.dtype)
    R = x[:9].reshape(3, 3)
    T[:3, :3], T[:3, 3] = R @ (3 * np.eye(3, dtype=x.dtype) - R.T @ R) / 2, x[9:]      # a Newton step: orthogonal
    return T


def _inertia(x):
    """Return [[A, [h]], [-[h], m 1]] from m, h, A."""
    M = np.zeros((6, 6), x.dtype)
    M[:3, :3][np.triu_indices(3)] = x[4:]
    M[:3, :3] += np.triu(M[:3, :3], 1).T
    M[:3, 3:], M[3:, :3], M[3:, 3:] = skew(x[1:4]), -skew(x[1:4]), x[0] * np.eye(3, dtype=x.dtype)
    return M


# SE(3) ------------------------------------------------------------------------------------------------------------
def skew(x):
    zero = x[0] - x[0]
    return np.array([[zero, -x[2], x[1]], [x[2], zero, -x[0]], [-x[1], x[0], zero]])


def hat(V):
    X = np.zeros((4, 4), V.dtype)
    X[:3, :3], X[:3, 3] = skew(V[:3]), V[3:]
    return X


def bracket(V):
    """Return ad_V."""
    X = np.zeros((6, 6), V.dtype)
    X[:3, :3] = X[3:, 3:] = skew(V[:3])
    X[3:, :3] = skew(V[3:])
    return X


def inverse(T):
    X = np.eye(4, dtype=T.dtype)
    X[:3, :3], X[:3, 3] = T[:3, :3].T, -T[:3, :3].T @ T[:3, 3]
    return X


def adjoint(T):
    """Return Ad_T, which takes twists in b to twists in a."""
    R = T[:3, :3]
    X = np.zeros((6, 6), T.dtype)
    X[:3, :3] = X[3:, 3:] = R
    X[3:, :3] = skew(T[:3, 3]) @ R
    return X


def leibniz(k, X, Y, times=np.matmul):
    """Return the k-th derivative of a product of two factors with given derivatives."""
    return sum(comb(k, j) * times(X[j], Y[k - j]) for j in range(k + 1))


# joints -----------------------------------------------------------------------------------------------------------
def joint_pose(kind, S, q):
    """Return the pose of a joint's child at the coordinates q, from its pose at zero."""
    T = np.eye(4, dtype=q.dtype)
    if kind == ONE_DOF:
        c, s = np.cos(S[0] * q[0]), np.sin(S[0] * q[0])
        T[:2, :2], T[2, 3] = [[c, -s], [s, c]], S[1] * q[0]
        return T
    u = q[-4:]
    x, y, z, w = u / np.sqrt(u @ u)
    T[:3, :3] = [[1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                 [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                 [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]]
    if kind == FREE:
        T[:3, 3] = q[:3]
    return T


def joint_columns(kind, S):
    """Return the screws (6, m) in the body frame, which are constant."""
    if kind == ONE_DOF:
        return np.array([[0, 0, S[0], 0, 0, S[1]]], dtype=S.dtype).T
    return np.eye(6, dtype=S.dtype)[:, :3 if kind == BALL else 6]


# Algorithm 1: motion ----------------------------------------------------------------------------------------------
class MotionSeries:
    """Motion of all bodies, which `extend` completes by one order at a time, up to K derivatives v, a, … of the coordinates."""

    def __init__(self, model, q, K, base="local", dtype=np.float64):
        self.tree, q = arrays_of(model, dtype), np.asarray(q).astype(dtype)
        self.n, self.spatial, self.v = len(self.tree.parent), base == "world", np.zeros((K, model.nv), dtype)
        C, V = np.zeros((self.n, K + 1, 4, 4), dtype), np.zeros((self.n, K, 6), dtype)
        M, J = np.zeros((self.n, K + 1, 6, 6), dtype), [np.zeros((K + 1, 6, 0), dtype)]
        C[0, 0], M[0, 0] = np.eye(4), self.tree.I[0]
        for i in range(1, self.n):
            tree = self.tree
            C[i, 0] = C[tree.parent[i], 0] @ tree.T0[i] @ joint_pose(tree.kind[i], tree.S[i], q[tree.q[i]])
            columns = joint_columns(tree.kind[i], tree.S[i])
            J.append(np.zeros((K + 1, *columns.shape), dtype))
            J[i][0] = np.eye(6) if self.spatial and i == 1 else adjoint(C[i, 0]) @ columns
            back = adjoint(inverse(C[i, 0]))
            M[i, 0] = back.T @ tree.I[i] @ back
        self.motion = Motion(C, V, J, M)
        self.hats, self.brackets = [[] for _ in range(self.n)], [[] for _ in range(self.n)]     # of V, by order

    def extend(self, k, v):
        """Compute order k of V and order k + 1 of the others from derivative k of v (nv,), also a second time."""
        C, V, J, M = self.motion
        self.v[k] = v
        for i in range(1, self.n):
            V[i, k] = V[self.tree.parent[i], k] + leibniz(k, J[i], self.v[:, self.tree.v[i]])
            self.hats[i][k:] = [hat(V[i, k])]
            self.brackets[i][k:] = [bracket(V[i, k])]
            C[i, k + 1] = leibniz(k, self.hats[i], C[i])
            if not (self.spatial and i == 1):
                J[i][k + 1] = leibniz(k, self.brackets[i], J[i])
            half = leibniz(k, M[i], self.brackets[i])
            M[i, k + 1] = -half - half.T


def reference_motion(model, q, v_derivatives, base="local", dtype=np.float64) -> Motion:
    """Motion of all bodies from v, a, … (K, nv). base="world": the floating base's own are its spatial twist's."""
    v = np.asarray(v_derivatives).astype(dtype)
    series = MotionSeries(model, q, len(v), base, dtype)
    for k in range(len(v)):
        series.extend(k, v[k])
    return series.motion


def link_poses(model, motion: Motion):
    """Return the poses (n_links, K+1, 4, 4) of the links in the world and their derivatives."""
    tree = arrays_of(model, motion.C.dtype)
    return np.array([motion.C[i] @ X for i, X in zip(tree.link_body, tree.link_pose, strict=True)])


def body_jacobian(model, motion: Motion, i):
    """Return the Jacobian (K+1, 6, nv) of the spatial twist of body i and its derivatives."""
    tree = arrays_of(model, motion.C.dtype)
    J = np.zeros((*motion.J[0].shape[:2], model.nv), motion.C.dtype)
    while i > 0:
        J[:, :, tree.v[i]] = motion.J[i]
        i = tree.parent[i]
    return J


def spatial_momentum(motion: Motion):
    """Return the momentum (K, 6) [angular; linear] about the world's origin along world axes, and its derivatives."""
    return np.array([sum(leibniz(k, M, V) for M, V in zip(motion.M[1:], motion.V[1:], strict=True))
                     for k in range(motion.V.shape[1])])


def centre_of_mass(model, motion: Motion):
    """Return the centre of mass (K+1, 3) in the world: sum of C [h; m] over bodies divided by the mass of all moving bodies."""
    I = arrays_of(model, motion.C.dtype).I[1:]
    h = np.stack([I[:, 2, 4], I[:, 0, 5], I[:, 1, 3], I[:, 3, 3]], axis=1)       # hx, hy, hz of the block [h], and the mass
    return np.einsum("ikab,ib->ka", motion.C[1:, :, :3], h) / h[:, 3].sum()


# Algorithm 2: forces ----------------------------------------------------------------------------------------------
def spatial_wrenches(model, motion: Motion, F, frame):
    """(n_bodies, r+1, 6) from wrenches on links (r+1, n_links, 6): "local" in link axes about its origin,
    "local_world_aligned" in world axes about the link's origin, "world" in world axes about the world's origin."""
    tree, T = arrays_of(model, motion.C.dtype), link_poses(model, motion)
    F = np.asarray(F).astype(motion.C.dtype)
    W = np.zeros((len(tree.parent), len(F), 6), motion.C.dtype)
    for link, i in enumerate(tree.link_body):
        m, f = F[:, link, :3], F[:, link, 3:]
        if frame == "local":
            R = T[link, :, :3, :3]
            m, f = (np.array([leibniz(k, R, x) for k in range(len(F))]) for x in (m, f))
        if frame != "world":
            m = m + np.array([leibniz(k, T[link, :, :3, 3], f, np.cross) for k in range(len(F))])
        W[i] += np.concatenate([m, f], axis=1)
    return W


class ForceSeries:
    """tau of a motion that is completed by one order at a time. F: external wrenches (r+1, n_links, 6) or None."""

    def __init__(self, model, q, series: MotionSeries, orders, F, frame, passive):
        self.model, self.q, self.series, self.F, self.frame, self.passive = model, q, series, F, frame, passive
        self.dtype = series.v.dtype
        self.W = np.zeros((series.n, orders, 6), self.dtype)
        self.G = np.concatenate([np.zeros(3, self.dtype), series.tree.g])

    def of_order(self, k):
        """Return forces (nv,) from the motion up to derivative k + 1 of v. All lower orders must be computed first."""
        tree, motion, W, tau = self.series.tree, self.series.motion, self.W, np.zeros(self.model.nv, self.dtype)
        W[:, k] = 0.0
        if self.F is not None:
            W[:, k] = -spatial_wrenches(self.model, motion, self.F[:k + 1], self.frame)[:, k]
        for i in range(self.series.n - 1, 0, -1):
            W[i, k] += leibniz(k + 1, motion.M[i], motion.V[i]) - motion.M[i, k] @ self.G
            tau[tree.v[i]] = leibniz(k, motion.J[i].swapaxes(1, 2), W[i])
            W[tree.parent[i], k] += W[i, k]
        tau += tree.armature * self.series.v[k + 1]
        return tau - passive_forces(tree, self.q, self.series.v[:k + 2], self.dtype)[k] if self.passive else tau


def reference_inverse(model, q, v_derivatives, f_ext_derivatives=None, frame="local", passive=True, base="local",
                      dtype=np.float64):
    """tau and its derivatives (r+1, nv) from v, a, … (r+2, nv) of one state q; external wrenches (r+1, n_links, 6)."""
    v = np.asarray(v_derivatives).astype(dtype)
    series, orders = MotionSeries(model, q, len(v), base, dtype), len(v) - 1
    for k in range(len(v)):
        series.extend(k, v[k])
    rigid = ForceSeries(model, q, series, orders, f_ext_derivatives, frame, passive=False)
    tau = np.array([rigid.of_order(k) for k in range(orders)]).reshape(orders, model.nv)
    return tau - passive_forces(series.tree, q, v, dtype) if passive else tau


def passive_forces(tree, q, v, dtype=np.float64):
    """Return the contribution (r+1, nv) of springs, damping and friction to tau, from v (r+2, nv)."""
    out = -tree.damping * v[:-1]
    for i in range(1, len(tree.parent)):
        if tree.kind[i] == ONE_DOF:
            k = tree.v[i].start
            x = np.concatenate([[np.asarray(q).astype(dtype)[tree.q[i].start] - tree.rest[k]], v[:-2, k]])
            out[:, k] -= tree.stiffness[k] * x
    for k in np.flatnonzero(tree.friction):
        out[:, k] -= tree.friction[k] * friction_series(v[:-1, k], tree.friction_speed[k])
    return out


def friction_series(x, speed):
    """Derivatives of x / sqrt(x^2 + s^2) along x(t), from those of x: by differences of fifty digits and more."""
    with mp.workdps(50):
        exact = [mpf(float(y)) + mpf(float(y - np.asarray(float(y), x.dtype))) for y in x]
        s2 = mpf(float(speed))**2

        def friction(t):
            y = sum(c * t**j / mp.factorial(j) for j, c in enumerate(exact))
            return y / mp.sqrt(y * y + s2)
        return np.array([np.asarray(mp.nstr(y, 25)).astype(x.dtype) for _, y in zip(x, mp.diffs(friction, 0), strict=False)])


# Algorithms 3 and 4, without their recursions: the mass matrix is the same at every order ---------------------------
def reference_mass(model, q, base="local", dtype=np.float64):
    """Return the mass matrix (nv, nv) with the armature on its diagonal."""
    motion = reference_motion(model, q, np.zeros((1, model.nv)), base, dtype)
    M = np.diag(arrays_of(model, dtype).armature)
    for i in range(1, len(motion.C)):
        J = body_jacobian(model, motion, i)[0]
        M = M + J.T @ motion.M[i, 0] @ J
    return M


def reference_hybrid(model, q, v, a_derivatives, tau_derivatives, prescribed, f_ext_derivatives=None, frame="local", passive=True,
                     base="local", dtype=np.float64):
    """Return a and tau (r+1, nv each), order by order: M a^(k) = tau^(k) - terms of lower orders."""
    orders, free = len(tau_derivatives), ~np.asarray(prescribed)
    motion = np.zeros((orders + 1, model.nv), dtype)
    motion[0] = v
    motion[1:, ~free] = np.asarray(a_derivatives)[:, ~free]
    M = reference_mass(model, q, base, dtype)[np.ix_(free, free)]
    given, tau = np.asarray(tau_derivatives).astype(dtype), np.zeros((orders, model.nv), dtype)
    forces = ForceSeries(model, q, MotionSeries(model, q, orders + 1, base, dtype), orders, f_ext_derivatives, frame, passive)
    forces.series.extend(0, motion[0])
    for k in range(orders):
        forces.series.extend(k + 1, motion[k + 1])
        motion[k + 1, free] = solve(M, given[k, free] - forces.of_order(k)[free])
        forces.series.extend(k + 1, motion[k + 1])               # again, with all of a^(k)
        tau[k] = np.where(free, given[k], forces.of_order(k))
    return motion[1:], tau


def solve(M, y):
    """M^-1 y of a positive definite M, in any precision: M = L D L^T. NumPy's own knows doubles only."""
    L, n = M.copy(), len(M)
    for k in range(n):
        L[k + 1:, k + 1:] -= np.multiply.outer(L[k + 1:, k], L[k, k + 1:]) / L[k, k]
    x = y.copy()
    for k in range(n):
        x[k + 1:] -= L[k + 1:, k] / L[k, k] * x[k]
    for k in range(n - 1, -1, -1):
        x[k] = (x[k] - L[k, k + 1:] @ x[k + 1:]) / L[k, k]
    return x



def largest_terms(model, q, v_derivatives, base="local"):
    """(r+1,): the largest number that a recursion in body frames sums at each order, over all bodies: rates of momenta I V and
    terms of ad*_V I V, the ground falling as kernels have it. What rounding is measured by where they cancel: a single joint's
    force may be thousands of times smaller."""
    tree, motion = arrays_of(model), reference_motion(model, q, v_derivatives, base)
    K, out = len(v_derivatives), np.zeros(len(v_derivatives) - 1)
    fall = np.zeros((K, 6))
    fall[1, 3:] = -tree.g
    for C, V, I in zip(motion.C[1:], motion.V[1:], tree.I[1:], strict=True):
        R, p = C[:, :3, :3].swapaxes(1, 2), C[:, :3, 3]
        Ad = np.zeros((K, 6, 6))                    # of the inverse pose: [R^T 0; -R^T [p] R^T]
        for k in range(K):
            Ad[k, :3, :3] = Ad[k, 3:, 3:] = R[k]
            Ad[k, 3:, :3] = -leibniz(k, R, [skew(x) for x in p])
        body = [leibniz(k, Ad, V + fall) for k in range(K)]
        P, ad = [np.abs(I @ x) for x in body], [np.abs(bracket(x)).T for x in body]
        for k in range(K - 1):
            out[k] = max(out[k], P[k + 1].max(), leibniz(k, ad, P).max())
    return out
