"""Park, Bobrow and Ploen 1995 written out again from the page with matrix exponentials, and chains to hold it against; nothing of
liedyn's algebra is used for it."""
import numpy as np

from liedyn.model.description import WORLD, Coordinate, Joint, Robot
from matrices import adjoint, bracket, exp, inertia, inverse, pose
from zoo import floats, random_link, random_pose, unit


class Page:
    """A chain in PBP's letters, from its description: screws A_i at home in the world, <,>_l with the matrix D_l (36).

    Indices from 1, as on the page."""

    def __init__(self, robot, x):
        self.n, self.x = len(robot.joints), np.r_[np.nan, x]
        self.A, self.D, self.c, self.m, M = [None], [None], [None], [None], np.eye(4)
        self.gravity = np.array(robot.gravity)
        links = {link.name: link for link in robot.links}
        for joint in robot.joints:
            M = M @ pose(joint.origin.rotation, joint.origin.translation)
            axis = np.array(joint.axes[0])
            S = np.r_[axis, 0, 0, 0] if joint.type == "revolute" else np.r_[0, 0, 0, axis]
            link = links[joint.child]
            self.A.append(adjoint(M) @ S)
            home = adjoint(inverse(M))
            self.D.append(home.T @ inertia(link.mass, link.com, link.inertia) @ home)
            self.c.append(M @ np.r_[link.com, 1])
            self.m.append(link.mass)

    def e(self, i, sign=1):
        return exp(sign * self.A[i] * self.x[i])

    def Ad(self, j, i, H):
        """Return Ad_j^i(H) (37)."""
        for k in range(i, j + 1):
            H = adjoint(self.e(k, -1)) @ H
        return H

    def metric(self, i, X, Y):
        return X @ self.D[i] @ Y

    def term(self, l, a, b, c):
        """Return <Ad_l^b([Ad_{b-1}^{a+1}(A_a), A_b]), Ad_l^{c+1}(A_c)>_l."""
        A = self.A
        moved = bracket(self.Ad(b - 1, a + 1, A[a])) @ A[b]
        return self.metric(l, self.Ad(l, b, moved), self.Ad(l, c + 1, A[c]))

    def mass(self):
        M = np.zeros((self.n + 1,) * 2)
        for i in range(1, self.n + 1):
            for j in range(i, self.n + 1):
                M[i, j] = M[j, i] = sum(self.metric(k, self.Ad(k, i + 1, self.A[i]), self.Ad(k, j + 1, self.A[j]))
                                        for k in range(j, self.n + 1))                                   # (40)
        return M[1:, 1:]

    def christoffel(self):
        out, t = np.zeros((self.n + 1,) * 3), self.term
        for i in range(1, self.n + 1):
            for j in range(i, self.n + 1):
                for k in range(1, self.n + 1):
                    if k <= i:                                                                           # (55)
                        x = sum(t(l, k, i, j) + t(l, k, j, i) + t(l, i, j, k) for l in range(j, self.n + 1))
                    elif k <= j:                                                                         # (56)
                        x = sum(t(l, k, j, i) + t(l, i, j, k) - t(l, i, k, j) for l in range(j, self.n + 1))
                    else:                                                                                # (57)
                        x = sum(t(l, i, j, k) - t(l, i, k, j) - t(l, j, k, i) for l in range(k, self.n + 1))
                    out[i, j, k] = out[j, i, k] = x / 2
        return out[1:, 1:, 1:]

    def gravity_force(self):
        phi = np.zeros(self.n + 1)
        for k in range(1, self.n + 1):
            for i in range(k, self.n + 1):
                A, X = self.Ad(i, k + 1, self.A[k]), np.eye(4)
                for j in range(1, i + 1):
                    X = X @ self.e(j)
                hat = np.zeros((4, 4))
                hat[:3, :3], hat[:3, 3] = bracket(A)[:3, :3], A[3:]
                phi[k] -= self.m[i] * self.gravity @ (X @ hat @ self.c[i])[:3]                           # (59)
        return phi[1:]


class Links:
    """A chain by its links' frames, as in §3: M_i and screws S_i of f_{i-1,i} = M_i e^{S_i x_i}, inertias J_i; indices from 0."""

    def __init__(self, robot):
        self.robot, self.M, self.S, self.J, self.com, self.mass = robot, [], [], [], [], []
        links = {link.name: link for link in robot.links}
        for joint in robot.joints:
            link, axis, none = links[joint.child], np.array(joint.axes[0]), np.zeros(3)
            self.M.append(pose(joint.origin.rotation, joint.origin.translation))
            self.S.append(np.r_[axis, none] if joint.type == "revolute" else np.r_[none, axis])
            self.J.append(inertia(link.mass, link.com, link.inertia))
            self.com.append(np.array(link.com))
            self.mass.append(link.mass)
        self.home = [product(self.M[:i + 1]) for i in range(len(self.M))]

    def steps_at(self, x):
        """Return f_{i-1,i} (23)."""
        return [M @ exp(S * y) for M, S, y in zip(self.M, self.S, x, strict=True)]

    def poses(self, x):
        """Return f_i (67)."""
        steps = self.steps_at(x)
        return [product(steps[:i + 1]) for i in range(len(steps))]


def product(poses):
    out = np.eye(4)
    for T in poses:
        out = out @ T
    return out


def chain(seed, types):
    """Return links of random inertia on joints with random axes and placements, without rotors."""
    rng = np.random.default_rng(seed)
    links = tuple(random_link(rng, f"link{k}") for k in range(len(types)))
    joints = tuple(Joint(f"joint{k}", kind, WORLD if k == 0 else f"link{k - 1}", f"link{k}", random_pose(rng),
                         axes=(floats(unit(rng)),), coordinates=(Coordinate(),)) for k, kind in enumerate(types))
    return Robot("chain", links, joints, gravity=floats(rng.uniform(-10, 10, 3)))
