"""Constrained forward dynamics against Pinocchio's constraintDynamics, and how its cost grows with the length of a loop."""
from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pinocchio as pin

import liedyn as ld
from benchmarks.measure import Pair, median, side_by_side
from liedyn.model.description import Joint, Loop, Robot
from liedyn.model.links import Link, Pose

FOLDER = Path(__file__).parents[2] / "robots"
BATCHES = 8          # of ours for one of theirs
ACCURATE = 1e-9      # relative: what both must agree to
PROXIMAL = 1e-10     # Pinocchio's regularization where rows depend on each other (with none it divides by zero); 0 elsewhere


class Mechanism:
    """A robot of robots/ with its loops cut at balls, so that Pinocchio has the same rows; random closed states for both."""

    def __init__(self, name: str, states: int, guess: dict | None = None):
        robot = ld.load_description(FOLDER / f"{name}.yaml")
        self.model = model = ld.build(dataclasses.replace(
            robot, loops=tuple(dataclasses.replace(loop, type="ball", axes=()) for loop in robot.loops)))
        self.pin, self.rows, self.order_q, self.order_v = pinocchio_of(model.description)
        self.data, self.row_data = self.pin.createData(), pin.StdVec_RigidConstraintData()
        for row in self.rows:
            self.row_data.append(row.createData())
        pin.initConstraintDynamics(self.pin, self.data, self.rows, self.row_data)
        rng = np.random.default_rng(0)
        start = model.neutral()
        for joint, value in (guess or {}).items():
            start[model.q_index(joint)] = value
        start = ld.assemble(model, start).q
        self.q = np.array([ld.project_configuration(model, ld.integrate(model, start, 0.02 * rng.standard_normal(model.nv)))
                           for _ in range(states)])
        self.v = ld.project_velocity(model, self.q, 0.5 * rng.standard_normal((states, model.nv)))
        self.tau = rng.standard_normal((states, model.nv))
        self.dependent = not ld.constrained_forward_dynamics(model, self.q[0], self.v[0], self.tau[0]).independent.all()
        self.settings = pin.ProximalSettings(1e-10, PROXIMAL if self.dependent else 0.0, 10)
        self.theirs = [(q[self.order_q], v[self.order_v], t[self.order_v])
                       for q, v, t in zip(self.q, self.v, self.tau, strict=True)]
        self.check()

    def check(self) -> None:
        ours = ld.constrained_forward_dynamics(self.model, self.q[0], self.v[0], self.tau[0]).a
        error = np.abs(self.constraint_dynamics(*self.theirs[0]) - ours[self.order_v]).max() / np.abs(ours).max()
        assert error < ACCURATE, f"{self.model.name}: constrained dynamics differ from Pinocchio's by {error:.1e}"

    def constraint_dynamics(self, q, v, tau):
        return pin.constraintDynamics(self.pin, self.data, q, v, tau, self.rows, self.row_data, self.settings)

    def one_by_one(self, repeats: int) -> Pair:
        mine, model = list(zip(self.q, self.v, self.tau, strict=True)), self.model
        return side_by_side(lambda: [ld.constrained_forward_dynamics(model, q, v, tau).a for q, v, tau in mine][-1:],
                            lambda: [self.constraint_dynamics(q, v, tau) for q, v, tau in self.theirs][-1:], repeats)

    def batch(self, repeats: int) -> Pair:
        model = self.model
        states = self.q, self.v, self.tau
        pair = side_by_side(lambda: [ld.constrained_forward_dynamics(model, *states).a[0] for _ in range(BATCHES)],
                            lambda: [self.constraint_dynamics(q, v, tau) for q, v, tau in self.theirs][-1:], repeats)
        return Pair(pair.ours / BATCHES, pair.theirs, pair.ratio * BATCHES)


MECHANISMS = {"five_bar": {"left": -2.2, "left_elbow": 1.3, "right": -0.9, "right_elbow": -1.3}, "stewart": {}}


def against_pinocchio(states: int = 1000, repeats: int = 15):
    """Return (robot, DoF of the tree, rows, "one" or "batch", microseconds per state, Pair)."""
    for name, guess in MECHANISMS.items():
        case = Mechanism(name, states, guess)
        for how, pair in (("one", case.one_by_one(repeats)), ("batch", case.batch(repeats))):
            yield name, case.model.nv, case.model.nc, how, pair.ours / states * 1e6, pair


def ring(n: int) -> Robot:
    """Return n bodies in a chain whose last body is welded to the ground at zero angles: a loop of n bodies."""
    axes = np.eye(3)
    link = Link("", 1.0, (0.05, 0.0, 0.0), (0.001, 0.0, 0.0, 0.002, 0.0, 0.002))
    turn = Pose.from_xyz_rpy((0.1, 0.0, 0.0), (0.0, 0.0, 2 * np.pi / n))
    links = tuple(dataclasses.replace(link, name=f"link{k}") for k in range(n))
    joints = tuple(Joint(f"joint{k}", "revolute", f"link{k - 1}" if k else "world", f"link{k}", turn if k else Pose(),
                         (tuple(axes[(2 * k) % 3]),)) for k in range(n))
    open_chain = ld.build(Robot("ring", links, joints))
    T = ld.link_pose(open_chain, open_chain.neutral(), f"link{n - 1}")
    end = Pose(tuple(map(float, T[:3, :3].ravel())), tuple(map(float, T[:3, 3])))
    return Robot("ring", links, joints, loops=(Loop("end", "weld", "world", f"link{n - 1}", end, Pose()),))


def microseconds_per_body(lengths=(10, 30, 100, 200), states: int = 256, repeats: int = 15):
    """Return (bodies, microseconds per body and state of a batch)."""
    for n in lengths:
        model, rng = ld.build(ring(n)), np.random.default_rng(n)
        q, tau = np.zeros((states, n)), rng.standard_normal((states, n))
        v = ld.project_velocity(model, q, rng.standard_normal((states, n)))
        yield n, median(lambda model=model, q=q, v=v, tau=tau: ld.constrained_forward_dynamics(model, q, v, tau).a,
                        repeats) / states / n * 1e6


# Pinocchio's model of a description, joint by joint ------------------------------------------------------------------
def pinocchio_of(robot: Robot):
    """Return Pinocchio's model and rows, and the indices of its q and v in those of liedyn."""
    model, carried, order_q, order_v, nq, nv = pin.Model(), {"world": (0, pin.SE3.Identity())}, [], [], 0, 0
    model.gravity.linear = np.array(robot.gravity)
    links = {link.name: link for link in robot.links}
    for joint in robot.joints:
        parent, home = carried[joint.parent]
        home = home * se3(joint.origin)
        for k, kind in enumerate(joint_models(joint)):
            parent = model.addJoint(parent, kind, home, f"{joint.name}{k}")
            armature = joint.coordinates[k].armature if joint.coordinates else 0.0
            start = model.idx_vs[parent]
            model.armature[start:start + kind.nv] = armature
            home = pin.SE3.Identity()
            order_q += range(nq, nq + kind.nq)
            order_v += [nv + 3, nv + 4, nv + 5, nv, nv + 1, nv + 2] if kind.nv == 6 else range(nv, nv + kind.nv)
            nq, nv = nq + kind.nq, nv + kind.nv
        link = links[joint.child]
        xx, xy, xz, yy, yz, zz = link.inertia
        model.appendBodyToJoint(parent, pin.Inertia(link.mass, np.array(link.com), np.array([[xx, xy, xz], [xy, yy, yz],
                                                                                             [xz, yz, zz]])), home)
        carried[joint.child] = parent, home
    rows = pin.StdVec_RigidConstraintModel()
    for loop in robot.loops:
        (a, T_a), (b, T_b) = carried[loop.a], carried[loop.b]
        rows.append(pin.RigidConstraintModel(pin.ContactType.CONTACT_3D, model, a, T_a * se3(loop.pose_a),
                                             b, T_b * se3(loop.pose_b), pin.LOCAL))
    return model, rows, order_q, order_v


def se3(pose: Pose) -> pin.SE3:
    return pin.SE3(np.reshape(pose.rotation, (3, 3)), np.array(pose.translation))


def joint_models(joint: Joint) -> list:
    axes = [np.array(axis) / np.linalg.norm(axis) for axis in joint.axes]
    if joint.type == "fixed":
        return []
    if joint.type in ("revolute", "continuous"):
        return [pin.JointModelRevoluteUnaligned(axes[0])]
    if joint.type == "prismatic":
        return [pin.JointModelPrismaticUnaligned(axes[0])]
    if joint.type == "universal":
        return [pin.JointModelRevoluteUnaligned(axis) for axis in axes]
    return [pin.JointModelSpherical() if joint.type == "ball" else pin.JointModelFreeFlyer()]
