"""The tree that the paper measures, a floating base with branches of revolute bodies, as ours, Pinocchio's and CasADi's.

The paper: A. Ali, C. Gabellieri, A. Franchi, "Lie Group Formulation of Recursive Dynamics Algorithms of Higher Order for
Floating-Base Robots", Fig. 2 grown to five branches of twenty bodies. Its numbers were lost; masses and lengths are ours.
"""
from __future__ import annotations

import numpy as np

from liedyn.model.description import Joint, Robot
from liedyn.model.links import Link, Pose

AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


def tree(branches: int = 5, bodies: int = 20) -> Robot:
    """Return a floating base with branches of equally many bodies, with axes x, y, z in turn."""
    links = [Link("body", 4.0, (0.0, 0.0, 0.0), (0.03, 0.0, 0.0, 0.035, 0.0, 0.05))]
    joints = []
    for b in range(branches):
        for k in range(bodies):
            name, parent = f"link{b}_{k}", f"link{b}_{k - 1}" if k else "body"
            links.append(Link(name, 0.3, (0.0, 0.0, -0.1), (0.0012, 0.0, 0.0, 0.0011, 0.0, 0.0003)))
            joints.append(Joint(f"joint{b}_{k}", "revolute", parent, name,
                                Pose(translation=(0.1 * b if k == 0 else 0.0, 0.0, -0.2)), (AXES[(k + b) % 3],)))
    return Robot("tree", tuple(links), tuple(joints), base="floating")


def pinocchio_of(robot: Robot):
    """Return Pinocchio's model of such a tree. q is the same; twists and wrenches of the base are linear first."""
    import pinocchio as pin
    model, links = pin.Model(), {link.name: link for link in robot.links}
    kinds = dict(zip(AXES, (pin.JointModelRX, pin.JointModelRY, pin.JointModelRZ), strict=True))
    carried = {"body": model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "base")}
    for joint in robot.joints:
        place = pin.SE3(np.eye(3), np.array(joint.origin.translation))
        carried[joint.child] = model.addJoint(carried[joint.parent], kinds[joint.axes[0]](), place, joint.name)
    for name, body in carried.items():
        link = links[name]
        xx, xy, xz, yy, yz, zz = link.inertia
        inertia = pin.Inertia(link.mass, np.array(link.com), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
        model.appendBodyToJoint(body, inertia, pin.SE3.Identity())
    return model


class Casadi:
    """Inverse or forward dynamics of revolute joints on a free base in CasADi, and time derivatives by repeated `jtimes`.

    The leanest recursions that we know for it, in body frames. Of the base's attitude only gravity in its axes enters, with
    d(R^T g)/dt = -w x R^T g. The state is what must be given: v, a, jerk, … for inverse dynamics; v, tau, dtau/dt, … for forward
    dynamics, where a is the expression itself.
    """

    def __init__(self, model, what: str, eliminate: bool):
        import casadi
        self.casadi, self.model, self.eliminate = casadi, model, eliminate
        sym, n = casadi.SX.sym, model.nv
        self.gravity, self.angles = sym("gravity", 3), sym("angles", n - 6)
        self.given = [sym("v", n), sym("input0", n)]
        self.order = 0
        self.result = self._simplified(self._newton_euler() if what == "inverse" else self._articulated_body())
        self.acceleration = self.given[1] if what == "inverse" else self.result

    def differentiate(self) -> None:
        """Return the next order: one more directional derivative along the motion."""
        casadi, given = self.casadi, self.given
        v, before = given[0], list(given)
        given.append(casadi.SX.sym(f"input{len(given) - 1}", self.model.nv))
        state = casadi.vertcat(self.gravity, self.angles, *before)
        rate = casadi.vertcat(-casadi.cross(v[:3], self.gravity), v[6:], self.acceleration, *given[2:])
        self.result = self._simplified(casadi.jtimes(self.result, state, rate))
        self.order += 1

    def call(self, q: np.ndarray, given: np.ndarray):
        """A function without arguments that returns the derivative of order `order` at a state (q as in liedyn; rows v, a, … or
        v, tau, …), and how many operations it takes. Called through buffers: nothing is converted or allocated."""
        casadi = self.casadi
        function = casadi.Function("dynamics", [casadi.vertcat(self.gravity, self.angles, *self.given)], [self.result])
        x, y, z, w = q[3:7]
        up = np.array([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)])       # last row of R(q)
        state = np.concatenate([self.model.gravity[2] * up, q[7:], np.ravel(given[:self.order + 2])])
        result = np.empty(self.model.nv)
        buffer, run = function.buffer()
        buffer.set_arg(0, memoryview(state))
        buffer.set_res(0, memoryview(result))

        def evaluate(kept=(function, buffer, state)):
            run()
            return result
        return evaluate, function.n_instructions()

    def _simplified(self, result):
        return self.casadi.cse(result) if self.eliminate else result

    def _rotation(self, i: int, home):
        """Return the rotation of the i-th link in its parent."""
        casadi = self.casadi
        c, s = casadi.cos(self.angles[i - 1]), casadi.sin(self.angles[i - 1])
        return casadi.mtimes(home, casadi.blockcat([[c, -s, 0], [s, c, 0], [0, 0, 1]]))

    def _newton_euler(self):
        """tau from angles, v, dv/dt: out with angular velocity and acceleration and the origin's acceleration, in with forces.

        With B = [dw] + [w]^2 a point x of a link has the acceleration dv + B x, and P = int x x^T dm gives the moment
        [m] = B P - P B^T: fewer products than w x (w x x) and I dw + w x I w, so fewer to differentiate."""
        casadi, (v, a), links = self.casadi, self.given, self._links()
        mtimes, cross, spin, skew = casadi.mtimes, casadi.cross, casadi.vertcat(0, 0, 1), casadi.skew
        w, dw, dv, B, R = [v[:3]], [a[:3]], [a[3:6] + cross(v[:3], v[3:6]) - self.gravity], [], [casadi.SX.eye(3)]
        for i, (parent, home, place, *_) in enumerate(links):
            if i:
                R.append(self._rotation(i, home))
                turn, speed = mtimes(R[i].T, w[parent]), v[5 + i] * spin
                w.append(turn + speed)
                dw.append(mtimes(R[i].T, dw[parent]) + cross(turn, speed) + a[5 + i] * spin)
                dv.append(mtimes(R[i].T, dv[parent] + mtimes(B[parent], place)))
            x, y, z = casadi.vertsplit(w[i])
            xx, yy, zz, xy, xz, yz = -x * x, -y * y, -z * z, x * y, x * z, y * z
            B.append(skew(dw[i]) + casadi.blockcat([[yy + zz, xy, xz], [xy, xx + zz, yz], [xz, yz, xx + yy]]))
        m, f = [], []
        for i, (_, _, _, mass, h, P) in enumerate(links):
            N = mtimes(B[i], P)
            m.append(casadi.vertcat(N[2, 1] - N[1, 2], N[0, 2] - N[2, 0], N[1, 0] - N[0, 1]) + cross(h, dv[i]))
            f.append(mass * dv[i] + mtimes(B[i], h))
        tau = [casadi.SX(0)] * len(links)
        for i in reversed(range(1, len(links))):
            parent, _, place, *_ = links[i]
            tau[i] = m[i][2]
            force = mtimes(R[i], f[i])
            f[parent] += force
            m[parent] += mtimes(R[i], m[i]) + cross(place, force)
        return casadi.vertcat(m[0], f[0], *tau[1:])

    def _articulated_body(self):
        """a from angles, v, tau: velocities out, articulated inertias [[A, H], [H', M]] and bias wrenches in, accelerations out.

        The base's six equations are left to CasADi's `solve`, as in the paper."""
        casadi, (v, tau), links = self.casadi, self.given, self._links()
        mtimes, cross, skew, z = casadi.mtimes, casadi.cross, casadi.skew, casadi.vertcat(0, 0, 1)
        w, u, R, bias = [v[:3]], [v[3:6]], [casadi.SX.eye(3)], [(casadi.SX(3, 1), casadi.SX(3, 1))]
        for i, (parent, home, place, *_) in enumerate(links[1:], 1):
            R.append(self._rotation(i, home))
            turn, speed = mtimes(R[i].T, w[parent]), v[5 + i] * z
            w.append(turn + speed)
            u.append(mtimes(R[i].T, u[parent] + cross(w[parent], place)))
            bias.append((cross(turn, speed), cross(u[i], speed)))
        A = [casadi.SX(casadi.trace(P) * casadi.DM.eye(3) - P) for *_, P in links]
        H = [casadi.SX(skew(h)) for *_, h, _ in links]
        M = [casadi.SX(mass * casadi.DM.eye(3)) for _, _, _, mass, *_ in links]
        m, f = [], []
        for i, (_, _, _, mass, h, _) in enumerate(links):
            angular, linear = mtimes(A[i], w[i]) + cross(h, u[i]), mass * u[i] - cross(h, w[i])
            m.append(cross(w[i], angular) + cross(u[i], linear))
            f.append(cross(w[i], linear))
        factors = [None] * len(links)
        for i in reversed(range(1, len(links))):
            (parent, _, place, *_), (dw, du) = links[i], bias[i]
            Ua, Ul, D = A[i][:, 2], H[i][2, :].T, A[i][2, 2]
            Va, Vl, rest = Ua / D, Ul / D, tau[5 + i] - m[i][2]
            factors[i] = Va, Vl, rest / D
            Ai, Hi, Mi = A[i] - mtimes(Va, Ua.T), H[i] - mtimes(Va, Ul.T), M[i] - mtimes(Vl, Ul.T)
            force = mtimes(R[i], f[i] + mtimes(Hi.T, dw) + mtimes(Mi, du) + Vl * rest)
            moment = mtimes(R[i], m[i] + mtimes(Ai, dw) + mtimes(Hi, du) + Va * rest) + cross(place, force)
            Ai, Hi, Mi = (mtimes(R[i], mtimes(X, R[i].T)) for X in (Ai, Hi, Mi))
            shifted = Hi + mtimes(skew(place), Mi)
            A[parent] += Ai + mtimes(skew(place), Hi.T) - mtimes(shifted, skew(place))
            H[parent], M[parent] = H[parent] + shifted, M[parent] + Mi
            m[parent], f[parent] = m[parent] + moment, f[parent] + force
        base = casadi.solve(casadi.blockcat([[A[0], H[0]], [H[0].T, M[0]]]), tau[:6] - casadi.vertcat(m[0], f[0]))
        dw, du, a = [base[:3]], [base[3:]], [base[:3], base[3:] + self.gravity]
        for i, (parent, _, place, *_) in enumerate(links[1:], 1):
            Va, Vl, part = factors[i]
            dwi = mtimes(R[i].T, dw[parent]) + bias[i][0]
            dui = mtimes(R[i].T, du[parent] + cross(dw[parent], place)) + bias[i][1]
            a.append(part - mtimes(Va.T, dwi) - mtimes(Vl.T, dui))
            dw.append(dwi + a[-1] * z)
            du.append(dui)
        return casadi.vertcat(*a)

    def _links(self):
        """(parent, rotation and place in it at angle 0, mass, h, P) of the base and of every link that a revolute joint carries;
        h = int x dm and P = int x x^T dm about the link's origin."""
        from liedyn.joints.joint_model import tree_views
        from liedyn.model.description import FREE, ONE_DOF
        casadi, model = self.casadi, self.model
        tree, rows = tree_views.py_func(model.index, model.constants), []
        assert tree.kind[1] == FREE and (tree.kind[2:] == ONE_DOF).all() and (tree.S[4:].reshape(-1, 2) == (1, 0)).all()
        for i in range(1, len(tree.kind)):
            mass, hx, hy, hz, xx, xy, xz, yy, yz, zz = tree.I[10 * i:10 * i + 10]
            P = np.array([[(yy + zz - xx) / 2, -xy, -xz], [-xy, (xx + zz - yy) / 2, -yz], [-xz, -yz, (xx + yy - zz) / 2]])
            R, p = tree.T0[12 * i:12 * i + 9].reshape(3, 3), tree.T0[12 * i + 9:12 * i + 12]
            rows.append((tree.parent[i] - 1, *map(casadi.DM, (R, p, mass, [hx, hy, hz], P))))
        return rows
