"""A smooth motion of a robot in a hundred digits, and derivatives by time of whatever follows from its poses.

Coordinates are polynomials in time, quaternions normalized ones. Poses are products along the tree at 2 n + 3 instants, 1e-5 s
apart; the polynomial through what they give has its first n derivatives to some thirty digits. Of the package only the
model's arrays are used: no recursion for derivatives.
"""
from functools import cache
from math import comb, factorial

import numpy as np
from mpmath import mp, mpf

import liedyn as ld
from exact import exact
from liedyn.joints.joint_model import tree_views
from liedyn.model.description import BALL, NQ, NV, ONE_DOF

DIGITS, STEP = 100, mpf(10)**-5
precisely = mp.workdps(DIGITS)


@precisely
def derivatives(function, n: int) -> np.ndarray:
    """Return the derivatives (n, ...) of order 0 … n - 1 at t = 0 of an array-valued function of time."""
    half = n + 1
    values = np.array([function(k * STEP) for k in range(-half, half + 1)], dtype=object)
    coefficients = np.tensordot(_through(half)[:n], values, 1)
    return np.array([factorial(k) / STEP**k * c for k, c in enumerate(coefficients)], dtype=object)


@cache
def _through(half: int) -> np.ndarray:
    """Return the coefficients of the polynomial with the given values at -half … half."""
    nodes = mp.matrix([[mpf(x)**k for k in range(2 * half + 1)] for x in range(-half, half + 1)])
    return np.array(mp.inverse(nodes).tolist(), dtype=object)


@precisely
def polynomial(rows):
    """Return the function with these derivatives (n, ...) at 0."""
    rows = exact(rows)
    return lambda t: sum(t**k / factorial(k) * row for k, row in enumerate(rows))


@precisely
def rotation(u) -> np.ndarray:
    """Return the rotation of a quaternion x y z w of any length."""
    x, y, z, w = u / mp.sqrt(sum(u * u))
    return np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                     [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                     [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]], dtype=object)


def pose(R, p) -> np.ndarray:
    out = exact(np.eye(4))
    out[:3, :3], out[:3, 3] = R, p
    return out


@precisely
def place(x) -> np.ndarray:
    """The pose of twelve floats. Their rotation is one to 1e-16 only, which derivatives would magnify: here to the last digit."""
    x = exact(x)
    R, one = x[:9].reshape(3, 3), exact(np.eye(3))
    for _ in range(4):
        R = R @ (3 * one - R.T @ R) / 2
    return pose(R, x[9:])


def cross(x, y): return np.array([x[1] * y[2] - x[2] * y[1], x[2] * y[0] - x[0] * y[2], x[0] * y[1] - x[1] * y[0]], dtype=object)


@precisely
def product(x, y, multiply=np.matmul) -> np.ndarray:
    """Return the derivatives of a product from those of its factors (Leibniz)."""
    n = min(len(x), len(y))
    return np.array([sum(comb(k, j) * multiply(x[j], y[k - j]) for j in range(k + 1)) for k in range(n)], dtype=object)


@precisely
def twists(T, frame: str) -> np.ndarray:
    """Return the derivatives (n - 1, 6) of the twist from those of poses (n, 4, 4): [w] is R^T dR or dR R^T."""
    R, p, back = T[:, :3, :3], T[:, :3, 3], T[:, :3, :3].transpose(0, 2, 1)
    W = product(back, R[1:]) if frame == "local" else product(R[1:], back)
    w = np.stack([W[:, 2, 1], W[:, 0, 2], W[:, 1, 0]], axis=1)
    v = {"local": lambda: product(back, p[1:]), "local_world_aligned": lambda: p[1:],
         "world": lambda: p[1:] - product(w, p[:-1], cross)}[frame]()
    return np.concatenate([w, v], axis=1)


class ExactMotion:
    """model at q (nq,) with the velocity and its derivatives v (n, nv) of a random motion, rounded to double precision."""

    def __init__(self, model, seed: int, n: int):
        rng = np.random.default_rng([seed, 77])
        self.model, self.tree = model, tree_views.py_func(model.index, model.constants)
        self.offsets = [place(x) for x in self.tree.T0.reshape(-1, 12)]
        self.link_offsets = [place(x) for x in self.tree.link_pose.reshape(-1, 12)]
        self.q, self.v = ld.random_configuration(model, rng), np.empty((n, model.nv))
        self._bodies = {}
        rows = np.concatenate([self.q[None], rng.standard_normal((n, model.nq))])
        self.coordinates = polynomial(rows)
        for i in range(1, len(self.tree.parent)):
            k, o, kind = self.tree.iv[i], self.tree.iq[i], self.tree.kind[i]
            if kind == ONE_DOF:
                self.v[:, k] = rows[1:, o]
            else:
                V = twists(derivatives(lambda t, i=i: self.joint(i, self.coordinates(t)), n + 1), "local")
                self.v[:, k:k + NV[kind]] = V[:, :NV[kind]].astype(float)

    def joint(self, i, q) -> np.ndarray:
        """Return the motion (4, 4) of joint i: T(q) = T0 joint(q)."""
        kind, x = self.tree.kind[i], q[self.tree.iq[i]:self.tree.iq[i] + NQ[self.tree.kind[i]]]
        zero = exact(np.zeros(3))
        if kind == ONE_DOF:
            a, b = exact(self.tree.S[2 * i:2 * i + 2])
            c, s = mp.cos(a * x[0]), mp.sin(a * x[0])
            return pose(np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]], dtype=object), np.array([0, 0, b * x[0]], dtype=object))
        return pose(rotation(x), zero) if kind == BALL else pose(rotation(x[3:]), x[:3])

    def bodies(self, t) -> list:
        """Return the poses of the bodies at time t, the ground first. Each time is computed once."""
        if t not in self._bodies:
            q, out = self.coordinates(t), [exact(np.eye(4))]
            for i in range(1, len(self.tree.parent)):
                out.append(out[self.tree.parent[i]] @ self.offsets[i] @ self.joint(i, q))
            self._bodies[t] = out
        return self._bodies[t]

    def links(self, t) -> np.ndarray:
        """Return the poses (n_links, 4, 4) of the links at time t."""
        bodies = self.bodies(t)
        return np.array([bodies[i] @ T for i, T in zip(self.tree.link_body, self.link_offsets, strict=True)])

    @precisely
    def forces(self) -> np.ndarray:
        """(nv,) generalized forces at t = 0 of inertia and gravity, without passive forces: d'Alembert's principle, body by body.

        Robots of single coordinates only. A body's wrench is the rate of its momentum about the world's origin, less gravity.
        """
        tree, n, g = self.tree, len(self.tree.parent), -exact(self.tree.dV0[3:])
        tau, now = exact(np.zeros(self.model.nv)), self.bodies(mpf(0))
        for i in range(1, n):
            m, first, (xx, xy, xz, yy, yz, zz) = mpf(tree.I[10 * i]), *np.split(exact(tree.I[10 * i + 1:10 * i + 10]), [3])
            J = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], dtype=object)               # about the body's origin
            T = derivatives(lambda t, i=i: self.bodies(t)[i], 3)
            (w, alpha), R = twists(T, "local")[:, :3], T[0, :3, :3]
            acceleration = T[2, :3, 3]                                                             # of the body's origin
            spin = R @ (J @ alpha + cross(w, J @ w))
            offset = R @ first
            force = m * (acceleration - g) + R @ (cross(alpha, first) + cross(w, cross(w, first)))
            moment = spin + cross(offset, acceleration - g) + cross(T[0, :3, 3], force)
            k = i
            while k > 0:
                a, b = exact(tree.S[2 * k:2 * k + 2])
                axis, p = now[k][:3, 2], now[k][:3, 3]
                tau[tree.iv[k]] += (a * axis) @ moment + (b * axis + cross(p, a * axis)) @ force
                k = tree.parent[k]
        tau[tree.iv[1:]] += exact(tree.armature[tree.iv[1:]]) * derivatives(self.coordinates, 3)[2][tree.iq[1:]]
        return tau


class CoupledMotion(ExactMotion):
    """The same with coordinates q = G y + c, for robots of single coordinates with couplings. G (nv, ny), c (nv,) have digits."""

    @precisely
    def __init__(self, model, seed: int, G, c, independent):
        super().__init__(model, seed, 2)
        rows = exact(np.array([self.q, *self.v])[:, independent]) @ G.T
        rows[0] += c
        self.coordinates = lambda t: sum(t**k / factorial(k) * row for k, row in enumerate(rows))
        self._bodies, (self.q, *self.v) = {}, rows.astype(float)
