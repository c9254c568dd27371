"""Dynamics of a description in complex arithmetic, the reference for directional derivatives.

Everything that depends on p is given the imaginary part 1e-30 d/dp, and the derivative is the imaginary part of the result:
no difference is taken, so nothing cancels, and it is exact to rounding. Joints are as in the description: one pose, one 6 x k
Jacobian each; nothing here comes from liedyn but names, slices and the description itself."""
import numpy as np
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from joint_forces import coordinates

H = 1e-30
_TWIST = ("wx", "wy", "wz", "vx", "vy", "vz")
_UPPER = ("xx", "xy", "xz", "yy", "yz", "zz")


def skew(x):
    return np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])


def hat(V):
    out = np.zeros((4, 4), complex)
    out[:3, :3], out[:3, 3] = skew(V[:3]), V[3:]
    return out


def vee(X):
    return np.array([X[2, 1], X[0, 2], X[1, 0], X[0, 3], X[1, 3], X[2, 3]])


def nudge(V):
    """Return exp of a twist that is imaginary and of size H."""
    return np.eye(4) + hat(V)


def pose(R, p):
    out = np.eye(4, dtype=complex)
    out[:3, :3], out[:3, 3] = np.reshape(R, (3, 3)), p
    return out


def inverse(T):
    """Return the inverse pose by transposition, not conjugation: R^T R = 1 also holds for the complex rotation."""
    return pose(T[:3, :3].T, -T[:3, :3].T @ T[:3, 3])


def adjoint(T):
    R, out = T[:3, :3], np.zeros((6, 6), complex)
    out[:3, :3] = out[3:, 3:] = R
    out[3:, :3] = skew(T[:3, 3]) @ R
    return out


def bracket(V):
    out = np.zeros((6, 6), complex)
    out[:3, :3] = out[3:, 3:] = skew(V[:3])
    out[3:, :3] = skew(V[3:])
    return out


class Link:
    """parent (-1: ground), T in the parent link, S, dS (6, k), v: slice of v, I (6, 6), F (6,), all complex; place among the
    model's links."""

    def __init__(self, parent, T, S, dS, v, I, F, place):
        self.parent, self.T, self.S, self.dS, self.v, self.I, self.F, self.place = parent, T, S, dS, v, I, F, place


class Reference:
    """The robot at q, v, moving along (dq, dv), with external wrenches F along dF, figures along rates {name: rate}."""

    def __init__(self, model, q, v, *, dq=None, dv=None, f_ext=None, df_ext=None, rates=None):
        zero = np.zeros(model.nv)
        self.model, self.rates = model, rates or {}
        self.v = v + 1j * H * (zero if dv is None else dv)
        self.dq = 1j * H * (zero if dq is None else dq)
        self.q = q
        count = len(model.link_names)
        F = np.zeros((count, 6)) if f_ext is None else f_ext
        self.F = F + 1j * H * (np.zeros((count, 6)) if df_ext is None else df_ext)
        self.ground = np.array([0, 0, 0, *(-(g + self.rate(f"gravity.{c}")) for g, c in zip(model.gravity, "xyz", strict=True))])
        self.links = self._links()

    def rate(self, name):
        return 1j * H * self.rates.get(name, 0.0)

    def twist(self, name):
        return np.array([self.rate(f"{name}.{letter}") for letter in _TWIST])

    # kinematics and inertia, link by link -------------------------------------------------------------------------
    def _links(self):
        robot = self.model.description
        moving = {joint.name: joint for joint in self.model.joints}
        joint_of = {joint.child: joint for joint in robot.joints}
        children = {}
        for name in self.model.link_names:
            parent = joint_of[name].parent if name in joint_of else None
            children.setdefault(parent if parent in self.model.link_names else None, []).append(name)
        joint_of |= {joint.child: joint for joint in self.model.joints if joint.child not in joint_of}      # a floating base
        out, at, waiting = [], {None: -1}, [(None, name) for name in children[None][::-1]]
        while waiting:
            parent, name = waiting.pop()
            joint = joint_of.get(name)
            none = np.zeros((6, 0), complex)
            if joint is None:
                T, S, dS, where = np.eye(4, dtype=complex), none, none, slice(0, 0)
            elif joint.name not in moving:
                T, S, dS, where = self._home(joint), none, none, slice(0, 0)
            else:
                T, S, dS, where = *self._joint(moving[joint.name], joint), moving[joint.name].v
            k = self.model.link_names.index(name)
            at[name] = len(out)
            out.append(Link(at[parent], T, S, dS, where, self._inertia(robot.links[k]), self.F[k], k))
            waiting += [(name, child) for child in children.get(name, [])[::-1]]
        return out

    def _home(self, joint):
        home = joint.home if hasattr(joint, "home") else pose(joint.origin.rotation, joint.origin.translation)
        return home @ nudge(self.twist(f"origin.{joint.name}"))

    def _joint(self, joint, described):
        home, dq, v = self._home(described), self.dq[joint.v], self.v[joint.v]
        if joint.screws is None:
            u = self.q[joint.q][-4:]
            p = self.q[joint.q][:3] if joint.type == "free" else np.zeros(3)
            E = pose(Rotation.from_quat(u).as_matrix(), p) @ nudge(np.r_[dq, np.zeros(6 - len(dq))])
            S = np.eye(6, dtype=complex)[:, :len(dq)]
            return home @ E, S, np.zeros_like(S)
        tail, twist, S, dS = np.eye(4, dtype=complex), np.zeros(6, complex), [], []
        several = len(joint.screws) > 1
        for k in range(len(joint.screws) - 1, -1, -1):
            screw = joint.screws[k] + self.twist(f"screw.{joint.name}.{k + 1}" if several else f"screw.{joint.name}")
            if joint.type == "helical":
                screw = screw + np.r_[np.zeros(3), self.rate(f"pitch.{joint.name}") * joint.screws[k][:3]]
            column = adjoint(inverse(tail)) @ screw
            S.insert(0, column)
            dS.insert(0, -bracket(twist) @ column)
            twist = twist + column * v[k]
            tail = expm(hat(screw) * (self.q[joint.q][k] + dq[k])) @ tail
        return home @ tail, np.array(S).T, np.array(dS).T

    def _inertia(self, link):
        m = link.mass + self.rate(f"mass.{link.name}")
        c = np.array([x + self.rate(f"com.{link.name}.{letter}") for x, letter in zip(link.com, "xyz", strict=True)])
        J = np.zeros((3, 3), complex)
        J[np.triu_indices(3)] = [x + self.rate(f"inertia.{link.name}.{letters}")
                                 for x, letters in zip(link.inertia, _UPPER, strict=True)]
        J = J + np.triu(J, 1).T
        return np.block([[J - m * skew(c) @ skew(c), m * skew(c)], [-m * skew(c), m * np.eye(3)]])

    # forces -------------------------------------------------------------------------------------------------------
    def figure(self, name):
        return np.array([getattr(c, name) + self.rate(f"{name}.{coordinate}")
                         for c, coordinate in zip(coordinates(self.model), self.model.v_names, strict=True)])

    def passive(self):
        """Return the contribution of springs, damping and friction to tau."""
        x = np.zeros(self.model.nv, complex)
        for joint in self.model.joints:
            if joint.screws is not None:
                x[joint.v] = self.q[joint.q] + self.dq[joint.v]
        friction = self.figure("friction") * self.v / np.sqrt(self.v**2 + self.figure("friction_speed")**2)
        spring = np.where(self._springs(), self.figure("stiffness") * (x - self.figure("rest")), 0)
        return -(self.figure("damping") * self.v + friction + spring)

    def _springs(self):
        out = np.zeros(self.model.nv, bool)
        for joint in self.model.joints:
            out[joint.v] = joint.screws is not None
        return out

    def equation(self, passive=True):
        """Return M and b of M a + b = tau: the sum of the virtual powers of all links."""
        nv = self.model.nv
        M, b = np.diag(self.figure("armature")).astype(complex), np.zeros(nv, complex)
        J, V, dV = [], [], []
        for link in self.links:
            back = adjoint(inverse(link.T))
            root = link.parent < 0
            Ji = np.zeros((6, nv), complex) if root else back @ J[link.parent]
            Ji[:, link.v] += link.S
            v = self.v[link.v]
            Vi = link.S @ v if root else back @ V[link.parent] + link.S @ v
            dVi = back @ (self.ground if root else dV[link.parent]) + bracket(Vi) @ (link.S @ v) + link.dS @ v
            J.append(Ji), V.append(Vi), dV.append(dVi)
            M = M + Ji.T @ link.I @ Ji
            b = b + Ji.T @ (link.I @ dVi - bracket(Vi).T @ (link.I @ Vi) - link.F)
        return M, b - (self.passive() if passive else 0)

    def inverse(self, a, da=None, passive=True):
        """Return tau and its derivative."""
        M, b = self.equation(passive)
        return parts(M @ (a + 1j * H * (0 if da is None else da)) + b)

    def hybrid(self, a, tau, prescribed, da=None, dtau=None, passive=True):
        """Return a, tau and their derivatives da, dtau. Entries of the inputs that are not read are arbitrary."""
        M, b = self.equation(passive)
        u, w = prescribed, ~prescribed
        x = np.where(u, a + 1j * H * (0 if da is None else da), 0)
        force = tau + 1j * H * (0 if dtau is None else dtau)
        x[w] = np.linalg.solve(M[np.ix_(w, w)], force[w] - b[w] - M[np.ix_(w, u)] @ x[u])
        y = np.where(u, M @ x + b, force)
        (a, da), (tau, dtau) = parts(x), parts(y)
        return a, tau, da, dtau


def parts(x):
    """Return value and derivative."""
    return np.real(x), np.imag(x) / H
