"""The same mechanism with another spanning tree: loops cut at other joints, another root link, reversed joints."""
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.transform import Rotation

import liedyn as ld
from liedyn.model.description import WORLD, Joint, Loop, Robot
from liedyn.model.links import Link
from loop_zoo import as_pose, matrix
from matrices import inverse
from metamorphic.mechanisms import State

CUT = {"revolute": "revolute", "continuous": "revolute", "prismatic": "prismatic", "ball": "ball"}        # joint: closure
JOINED = {"revolute": "continuous", "prismatic": "prismatic", "ball": "ball"}                              # closure: joint


@dataclass(frozen=True)
class Connection:
    """A joint or closure: frame A in link a, frame B in link b; B moves along the axes that both frames share."""

    name: str
    a: str
    b: str
    A: np.ndarray
    B: np.ndarray
    joint: Joint                                     # its type, axes, pitch, coordinates
    loop: Loop | None = None


def connections(robot: Robot) -> list[Connection]:
    tree = [Connection(j.name, j.parent, j.child, matrix(j.origin), np.eye(4), j) for j in robot.joints]
    return tree + [Connection(one.name, one.a, one.b, matrix(one.pose_a), matrix(one.pose_b),
                              Joint(one.name, JOINED[one.type], one.a, one.b, axes=one.axes), one)
                   for one in robot.loops if one.type in JOINED]


def respanned(robot: Robot, root: str, cut: tuple[str, ...] = ()) -> Robot:
    """The tree from `root` on that leaves the connections `cut` to closures. Joints passed from child to parent are reversed:
    about the opposite axis, so that their coordinates stay, with a massless frame and a fixed joint up to the parent's frame."""
    links, joints = list(robot.links), []
    reached, left = [root], [one for one in connections(robot) if one.name not in cut]
    for link in reached:
        for one in [one for one in left if link in (one.a, one.b)]:
            left.remove(one)
            forward = link == one.a
            (near, far), (here, there) = ((one.a, one.b), (one.A, one.B)) if forward else ((one.b, one.a), (one.B, one.A))
            if far in reached:
                raise ValueError(f"{one.name} closes a loop")
            reached.append(far)
            if one.joint.type == "fixed":
                joints.append(Joint(one.name, "fixed", near, far, as_pose(here @ inverse(there))))
                continue
            axes = one.joint.axes if forward else tuple(tuple(-x for x in axis) for axis in one.joint.axes)
            joint = replace(one.joint, parent=near, child=far, origin=as_pose(here), axes=axes)
            if not np.array_equal(there, np.eye(4)):
                links.append(Link(f"{one.name}_frame"))
                joint = replace(joint, child=f"{one.name}_frame")
                joints.append(Joint(f"{one.name}_place", "fixed", f"{one.name}_frame", far, as_pose(inverse(there))))
            joints.append(joint)
    if set(reached) != {root, *(one.name for one in robot.links)}:
        raise ValueError(f"{cut} are not part of loops")
    loops = [one for one in robot.loops if one.type not in JOINED]
    loops += [Loop(one.name, CUT[one.joint.type], one.a, one.b, as_pose(one.A), as_pose(one.B), one.joint.axes)
              for one in connections(robot) if one.name in cut]
    return replace(robot, links=tuple(links), joints=tuple(joints), loops=tuple(loops))


def pose_of(model, q, link):
    return np.eye(4) if link == WORLD else ld.link_pose(model, q, link)


def twist_of(model, s, link):
    return np.zeros(6) if link == WORLD else ld.link_twist(model, s.q, s.v, link, frame="world")


def common(old, new) -> tuple[np.ndarray, np.ndarray]:
    """Return the indices of the velocities of joints that both models have."""
    names = [name for name in old.v_names if name in new.v_names and not name.startswith("base.")]
    return np.array([old.v_names.index(n) for n in names], int), np.array([new.v_names.index(n) for n in names], int)


def state_in(new, old, robot: Robot, s: State) -> State:
    """Return the state in the other tree. Forces on joints that only one of the models has are zero."""
    q, v, tau = new.neutral(), np.zeros(new.nv), np.zeros(new.nv)
    known = {joint.name: joint for joint in old.joints}
    by_name = {one.name: one for one in connections(robot)}
    ours, theirs = common(old, new)
    tau[theirs] = s.tau[ours]
    for joint in new.joints:
        if joint.name == "base":
            root = next(link for link in new.link_names if link not in {j.child for j in new.description.joints})
            T = pose_of(old, s.q, root)
            q[joint.q] = [*T[:3, 3], *Rotation.from_matrix(T[:3, :3]).as_quat()]
            v[joint.v] = ld.link_twist(old, s.q, s.v, root)
            continue
        one = by_name[joint.name]
        written = next(j for j in new.description.joints if j.name == joint.name)
        if joint.name in known and one.joint.type != "ball":
            q[joint.q], v[joint.v] = s.q[known[joint.name].q], s.v[known[joint.name].v]
            continue
        ends = (one.a, one.A), (one.b, one.B)
        (near, here), (far, there) = ends if written.parent == one.a else ends[::-1]
        T_far = pose_of(old, s.q, far) @ there
        T = inverse(pose_of(old, s.q, near) @ here) @ T_far
        V = twist_of(old, s, far) - twist_of(old, s, near)                       # of the far link relative to the near one
        w, u = T_far[:3, :3].T @ V[:3], T_far[:3, :3].T @ (V[3:] + np.cross(V[:3], T_far[:3, 3]))
        turn = Rotation.from_matrix(T[:3, :3])
        if one.joint.type == "ball":
            q[joint.q], v[joint.v] = turn.as_quat(), w
        else:
            axis = np.array((written.axes or ((0.0, 0.0, 1.0),))[0])
            axis /= np.linalg.norm(axis)
            q[joint.q] = axis @ (turn.as_rotvec() if one.joint.type == "continuous" else T[:3, 3])
            v[joint.v] = axis @ (w if one.joint.type == "continuous" else u)
    return State(q, v, np.zeros(new.nv), tau, s.f_ext)
