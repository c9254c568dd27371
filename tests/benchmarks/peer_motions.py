"""The motion of a `Problem` by others: solve_ivp of SciPy around Pinocchio's aba, and MuJoCo's RK4. Without passive forces; of
torques they know pd laws with constant targets."""
from __future__ import annotations

import numpy as np
import pinocchio as pin
from scipy.integrate import solve_ivp

from benchmarks.peer_models import mjcf, mujoco_states, our_states, pinocchio_of
from liedyn.joints.joint_model import tree_views
from liedyn.kernels.simulation.contact import DAMPING, FRICTION, REGULARIZATION_SPEED, STIFFNESS
from liedyn.model.description import FREE, ONE_DOF

SMALLEST_RTOL = 2.3e-14          # that solve_ivp takes


class PinocchioMotion:
    """y = [q; v] in Pinocchio's order, with the rates of quaternions. Quaternions leave the unit sphere only by the error of a
    step, for their rates are at right angles to them."""

    def __init__(self, problem):
        self.problem, model = problem, problem.model
        tree = tree_views.py_func(model.index, model.constants)
        self.pin, self.order_q, self.order_v = pinocchio_of(model)
        places = [(q, v, kind) for q, v, kind in zip(self.pin.idx_qs, self.pin.idx_vs, tree.kind, strict=True)][1:]
        self.turning = [(q + 3, v + 3, True) if kind == FREE else (q, v, False) for q, v, kind in places if kind != ONE_DOF]
        self.simple_q, self.simple_v = (as_slice([place[k] for place in places if place[2] == ONE_DOF]) for k in (0, 1))
        schedule, signals = problem.schedule, problem.signals
        first = signals.first[np.maximum(schedule.target, 0)]
        target = np.where(schedule.target >= 0, signals.literals[first], 0.0)
        self.servo = bool((schedule.target >= 0).any())
        self.kp, self.kd, self.target = (x[self.order_v][self.simple_v] for x in (schedule.kp, schedule.kd, target))
        self.tau = np.zeros(model.nv)
        self.feet = [] if problem.contacts is None else self._feet(problem.contacts, tree)
        self.data = self.pin.createData()
        self.wrenches = pin.StdVec_Force()
        for _ in range(self.pin.njoints):
            self.wrenches.append(pin.Force.Zero())

    def _feet(self, contacts, tree):
        feet = []
        for j, (link, material) in enumerate(zip(contacts.link, contacts.material.reshape(len(contacts.link), -1), strict=True)):
            body, T = int(tree.link_body[link]), tree.link_pose[12 * link:12 * link + 12]
            centre = T[:9].reshape(3, 3) @ contacts.centre[3 * j:3 * j + 3] + T[9:]
            frame = self.pin.addFrame(pin.Frame(f"contact{j}", body, pin.SE3(np.eye(3), centre), pin.FrameType.OP_FRAME))
            feet.append((body, frame, float(contacts.radius[j]),
                         *(float(material[k]) for k in (STIFFNESS, DAMPING, FRICTION, REGULARIZATION_SPEED))))
        assert len({body for body, *_ in feet}) == len(feet), "one contact a body"
        return feet

    def solve(self, duration: float, method: str, rtol: float):
        """Return the final q and v, in the order of liedyn."""
        p = self.problem
        y = np.r_[p.q[self.order_q], p.v[self.order_v]]
        found = solve_ivp(self.rates, (0.0, duration), y, method=method, rtol=max(rtol, SMALLEST_RTOL), atol=0.1 * rtol)
        assert found.success, found.message
        self.evaluations = found.nfev
        q, v, nq = np.empty(self.pin.nq), np.empty(self.pin.nv), self.pin.nq
        q[self.order_q], v[self.order_v] = pin.normalize(self.pin, found.y[:nq, -1]), found.y[nq:, -1]
        return q, v

    def rates(self, t, y):
        nq = self.pin.nq
        q, v, dy = y[:nq], y[nq:], np.empty_like(y)
        if self.servo:
            self.tau[self.simple_v] = self.kp * (self.target - q[self.simple_q]) - self.kd * v[self.simple_v]
        if self.feet:
            dy[nq:] = pin.aba(self.pin, self.data, q, v, self.tau, self.push(q, v))
        else:
            dy[nq:] = pin.aba(self.pin, self.data, q, v, self.tau)
        dy[self.simple_q] = v[self.simple_v]
        for at, w, free in self.turning:
            x, y_, z, s = q[at:at + 4].tolist()
            a, b, c = v[w:w + 3].tolist()
            dy[at:at + 4] = (0.5 * (s * a + y_ * c - z * b), 0.5 * (s * b + z * a - x * c), 0.5 * (s * c + x * b - y_ * a),
                             -0.5 * (x * a + y_ * b + z * c))
            if free:
                dx, d_y, dz = v[w - 3:w].tolist()
                px, py, pz = 2 * (y_ * dz - z * d_y), 2 * (z * dx - x * dz), 2 * (x * d_y - y_ * dx)
                dy[at - 3:at] = (dx + s * px + y_ * pz - z * py, d_y + s * py + z * px - x * pz, dz + s * pz + x * py - y_ * px)
        return dy

    def push(self, q, v):
        """Return the law of contact of docs/scenarios.md for spheres on the plane z = 0, as wrenches on the bodies."""
        model, data, aligned = self.pin, self.data, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
        pin.forwardKinematics(model, data, q, v)
        for body, frame, radius, k, c, mu, e in self.feet:
            x, y, z = pin.updateFramePlacement(model, data, frame).translation.tolist()
            depth = radius - z
            if depth <= 0.0:
                self.wrenches[body] = pin.Force.Zero()
                continue
            ux, uy, uz, wx, wy, _ = pin.getFrameVelocity(model, data, frame, aligned).vector.tolist()
            ux, uy, low = ux - radius * wy, uy + radius * wx, z - radius
            N = max(k * depth**1.5 * (1.0 - c * uz), 0.0)
            s = -mu * N / (ux * ux + uy * uy + e * e)**0.5
            fx, fy = s * ux, s * uy
            self.wrenches[body] = data.oMi[body].actInv(pin.Force(np.array(
                [fx, fy, N, y * N - low * fy, low * fx - x * N, x * fy - y * fx])))
        return self.wrenches


def as_slice(places: list[int]) -> slice:
    """Which is read faster. They follow on each other, as Pinocchio orders them behind ball and free joints."""
    first = places[0] if places else 0
    assert places == list(range(first, first + len(places)))
    return slice(first, first + len(places))


class MujocoMotion:
    """RK4 without contacts, steps in C."""

    def __init__(self, problem):
        import mujoco
        self.mujoco, self.problem = mujoco, problem
        self.model = mujoco.MjModel.from_xml_string(mjcf(problem.model, 1e-3, "RK4"))
        self.data = mujoco.MjData(self.model)
        self.start = [x[0] for x in mujoco_states(problem.model, problem.q[None], problem.v[None])]

    def solve(self, duration: float, step: float):
        steps, d = round(duration / step), self.data
        self.model.opt.timestep = duration / steps
        d.time, d.qpos[:], d.qvel[:] = 0.0, *self.start
        self.mujoco.mj_step(self.model, d, nstep=steps)
        return [x[0] for x in our_states(self.problem.model, d.qpos[None], d.qvel[None])]
