"""From a description to the arrays of the kernels.

Fixed joints are merged into their parents; every joint but ball and free becomes screws about the z axes of their own
bodies, with massless bodies between where a joint has several (DESIGN §2).
"""
from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from liedyn.errors import ModelError
from liedyn.joints.kinds import BALL, BARE, FREE, HAS_CHILDREN, LAST_CHILD, NQ, NV, SCREW, SLIDES, TURNS
from liedyn.model.articulation import joints_without_inertia
from liedyn.model.constraints import Anchors, loop_arrays, loop_machine
from liedyn.model.description import WORLD, Joint, Link, Robot
from liedyn.model.lever_arms import LeverArms
from liedyn.model.link_tree import Tree, place_of, tree_of
from liedyn.model.minimal_inertias import minimal_inertias
from liedyn.model.model import Model, ModelJoint
from liedyn.model.spatial import adjoint, bracket, exp_screw, flat, inverse, pose, rigid_from_link, screw_frame, transform_rigid
from liedyn.model.validate import validate


def build(robot: Robot) -> Model:
    """Model of a robot description, which is validated first.

    Parameters
    ----------
    robot : Robot
        From `load_description`, or made in Python.

    Returns
    -------
    Model

    Raises
    ------
    ModelError
        If the robot is not valid, or a joint moves no inertia.

    Examples
    --------
    >>> robot = ld.load_description("robots/asymmetric_body.yaml")
    >>> ld.build(dataclasses.replace(robot, gravity=(0.0, 0.0, -1.62))).gravity
    array([ 0.  ,  0.  , -1.62])
    """
    return assembled(validate(robot))


def assembled(robot: Robot) -> Model:
    """Model of a validated description. ModelError where a joint moves no inertia."""
    tree = Assembly(robot)
    tree.grow()
    bare, tree.floor = joints_without_inertia(tree.parent, tree.kind, tree.S, tree.T0, tree.I, tree.armature())
    if bare:
        joint = tree.owner[bare[0]]
        raise ModelError(f'the joint moves link "{joint.child}", which has no inertia', place=place_of(joint),
                         expected="a mass or inertia of the link or its descendants, or an armature",
                         hint="a massless link is allowed between joints, but not at the end of the tree")
    return tree.model()


@dataclass
class Assembly:
    """The tree while it grows: one row a body, body 0 the ground."""

    robot: Robot
    parent: list[int] = field(default_factory=lambda: [-1])
    kind: list[int] = field(default_factory=lambda: [SCREW])
    S: list[tuple[float, float]] = field(default_factory=lambda: [(0.0, 0.0)])
    T0: list[np.ndarray] = field(default_factory=lambda: [np.eye(4)])
    I: list[np.ndarray] = field(default_factory=lambda: [np.zeros(10)])
    owner: list[Joint | None] = field(default_factory=lambda: [None])
    joints: list[ModelJoint] = field(default_factory=list)
    links: dict[str, tuple[int, np.ndarray, str | None]] = field(default_factory=dict)   # body, pose in it, parent link
    nq: int = 0
    nv: int = 0
    moving: list[Joint] = field(default_factory=list)
    floor: np.ndarray = field(default_factory=lambda: np.zeros(0))      # (nv,) pivots below it are rounding

    def grow(self) -> None:
        tree = tree_of(self.robot)
        if tree.root in tree.links:
            floating = self.robot.base == "floating"
            self._place(tree.links[tree.root], *(self._attach(self._root_joint(tree)) if floating else (0, np.eye(4))), None)
        for joint in tree.joints:
            self._place(tree.links[joint.child], *self._attach(joint), joint.parent if joint.parent in tree.links else None)

    def _root_joint(self, tree: Tree) -> Joint:
        return Joint(base_joint_name(self.robot), "free", WORLD, tree.root, place=tree.links[tree.root].place)

    def _place(self, link: Link, body: int, frame: np.ndarray, parent: str | None) -> None:
        self.links[link.name] = (body, frame, parent)
        self.I[body] = self.I[body] + transform_rigid(frame, rigid_from_link(link))

    def _attach(self, joint: Joint) -> tuple[int, np.ndarray]:
        """Body that carries the child link, and the link's pose in it."""
        body, frame = self.links[joint.parent][:2] if joint.parent in self.links else (0, np.eye(4))
        home = frame @ pose(joint.origin)
        if joint.type == "fixed":
            return body, home
        first, nq, nv = len(self.parent), self.nq, self.nv
        self.moving.append(joint)
        if joint.type in ("ball", "free"):
            kind, screws, offset = (BALL if joint.type == "ball" else FREE), None, np.eye(4)
            body = self._body(body, kind, (0.0, 0.0), home, joint)
        else:
            kind, screws = SCREW, joint_screws(joint)
            offset = np.eye(4)                                # frame after the screws so far, in the last body
            for screw in screws:
                z_frame, S = screw_frame(screw)
                body = self._body(body, SCREW, S, home @ offset @ z_frame, joint)
                home, offset = np.eye(4), inverse(z_frame)
        self.joints.append(ModelJoint(joint.name, joint.type, kind, joint.parent, joint.child, slice(nq, self.nq),
                                      slice(nv, self.nv), pose(joint.origin), screws, first, body))
        return body, offset

    def _body(self, parent: int, kind: int, S: tuple[float, float], T0: np.ndarray, joint: Joint) -> int:
        self.parent.append(parent)
        self.kind.append(kind)
        self.S.append(S)
        self.T0.append(T0)
        self.I.append(np.zeros(10))
        self.owner.append(joint)
        self.nq += NQ[kind]
        self.nv += NV[kind]
        return len(self.parent) - 1

    def armature(self) -> np.ndarray:
        return self.coordinate("armature")

    def coordinate(self, name: str) -> np.ndarray:
        """One number of every velocity coordinate."""
        return np.array([getattr(c, name) for joint in self.moving for c in joint.figures], dtype=float)

    def model(self) -> Model:
        index, constants = self._arrays()
        names = [link.name for link in self.robot.links]
        q_names, q_units, v_names, v_units = _names(self.moving)
        constraints, loop_index, loop_constants = loop_arrays(
            self.robot, self._anchors(), LeverArms(self.parent, self.kind, self.S, self.T0, self.I))
        return Model._made(
            name=self.robot.name, description=self.robot, base=self.robot.base, gravity=np.array(self.robot.gravity, dtype=float),
            nq=self.nq, nv=self.nv, joints=tuple(self.joints), link_names=tuple(names),
            link_body=np.array([self.links[n][0] for n in names], dtype=np.int64),
            link_pose=np.array([self.links[n][1] for n in names]).reshape(-1, 4, 4),
            link_parents=tuple(self.links[n][2] for n in names),
            q_names=q_names, v_names=v_names, q_units=q_units, v_units=v_units,
            lower=self.coordinate("lower"), upper=self.coordinate("upper"),
            velocity_limit=self.coordinate("velocity"), effort_limit=self.coordinate("effort"),
            index=index, constants=constants, findings=self.robot.findings,
            constraints=constraints, loop_index=loop_index, loop_constants=loop_constants,
            loop_machine=loop_machine(index, constants, loop_index, loop_constants))

    def _anchors(self) -> Anchors:
        coordinates = {}
        for made, joint in zip(self.joints, self.moving, strict=True):
            if made.kind == SCREW:
                for k, (label, unit) in enumerate(zip(joint.labels, joint.units, strict=True)):
                    coordinates[joint.name, label] = (made.first_body + k, made.v.start + k, made.q.start + k, unit)
        return Anchors(self.parent, self.kind, {name: link[:2] for name, link in self.links.items()}, coordinates)

    def _arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """`index` and `constants` in the order of `joints.tree`."""
        n, links = len(self.parent), [self.links[link.name] for link in self.robot.links]
        iq = np.cumsum([0, 0] + [NQ[k] for k in self.kind[1:]])[:n]
        iv = np.cumsum([0, 0] + [NV[k] for k in self.kind[1:]])[:n]
        marks, slot = _backward_plan(self.parent)
        rotors = [0.0, *self.armature()[iv[1:]]]              # of screws; a ball or free joint's is not asked for
        marks = [mark | TURNS * (a != 0) | SLIDES * (b != 0) | BARE * (a != 0 and b == 0 and rotor == 0)
                 for mark, (a, b), rotor in zip(marks, self.S, rotors, strict=True)]
        passive = any(self.coordinate(c).any() for c in ("damping", "friction", "stiffness"))
        friction = self.coordinate("friction").any()
        header = [n, self.nq, self.nv, len(links), int(passive), int(friction), 0, 0]
        on = [link[0] for link in links]
        paths = _coordinate_paths(self.parent, iv, [NV[k] for k in self.kind])
        index = np.concatenate([header, self.parent, self.kind, iq, iv, marks, slot, on, *paths]).astype(np.int64)
        constants = np.concatenate([
            np.zeros(3), -np.array(self.robot.gravity, dtype=float), np.ravel(self.S), *map(flat, self.T0), np.ravel(self.I),
            np.ravel(minimal_inertias(self.parent, self.kind, self.S, self.T0, self.I)),
            *[flat(link[1]) for link in links],
            *[self.coordinate(c) for c in ("armature", "damping", "friction", "stiffness", "rest")], self.floor])
        return index, np.ascontiguousarray(constants, dtype=float)


def base_joint_name(robot: Robot) -> str:
    """Of the free joint of a floating base."""
    return "base" if all(joint.name != "base" for joint in robot.joints) else "floating_base"


def joint_screws(joint: Joint) -> np.ndarray:
    """(k, 6) screws [w; v] of a joint in its frame: motion = exp(S1 q1) … exp(Sk qk)."""
    axes = [np.array(a, dtype=float) for a in joint.axes]
    zero = np.zeros(3)
    if joint.type in ("revolute", "continuous", "universal"):
        rows = [(axis, zero) for axis in axes]
    elif joint.type == "prismatic":
        rows = [(zero, axes[0])]
    elif joint.type == "helical":
        rows = [(axes[0], joint.pitch * axes[0])]
    elif joint.type == "cylindrical":
        rows = [(axes[0], zero), (zero, axes[0])]
    elif joint.type == "planar":
        R = screw_frame(np.r_[axes[0], zero])[0][:3, :3]
        rows = [(zero, R[:, 0]), (zero, R[:, 1]), (axes[0], zero)]
    elif joint.type == "euler":
        rows = [(np.eye(3)["xyz".index(letter)], zero) for letter in joint.sequence]
    elif joint.type == "screws":
        return np.array(joint.screws, dtype=float).reshape(-1, 6)
    else:
        raise ModelError(f"joint type {joint.type!r} has no screws", place=joint.place)
    return np.array([np.concatenate(row) for row in rows])


def joint_motion(joint: ModelJoint, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pose (4, 4) of the child in the parent link, S and dS/dt (6, k) in the child's frame, of a joint made of screws.

    S_j = Ad_{E^-1} S_j with E the product of the exponentials that follow, so dS_j = -ad_{E^-1 dE} S_j."""
    tail, twist, S, dS = np.eye(4), np.zeros(6), [], []
    for screw, x, dx in zip(joint.screws[::-1], q[::-1], v[::-1], strict=True):
        column = adjoint(inverse(tail)) @ screw
        S.insert(0, column)
        dS.insert(0, -bracket(twist) @ column)
        twist = twist + column * dx
        tail = exp_screw(screw, x) @ tail
    return joint.home @ tail, np.array(S).T, np.array(dS).T


def _backward_plan(parent: list[int]) -> tuple[list[int], list[int]]:
    """Marks and slots of the bodies (see `joints.tree`). A slot is taken by the first child that a backward pass meets and
    free again when its body's turn comes: a chain needs one, so that the pass works within the nearest cache."""
    n = len(parent)
    marks, slot, free, taken = [0] * n, [0] * n, [], 0
    for i in range(n - 1, 0, -1):
        if marks[i] & HAS_CHILDREN:
            free.append(slot[i])
        p = parent[i]
        if p > 0 and not marks[p] & HAS_CHILDREN:
            if not free:
                free.append(taken)
                taken += 1
            slot[p] = free.pop()
        if not marks[p] & HAS_CHILDREN:
            marks[i] |= LAST_CHILD
        marks[p] |= HAS_CHILDREN
    return marks, slot


def _coordinate_paths(parent: list[int], iv, size: list[int]) -> tuple[list[int], list[int], list[int]]:
    """above, top, last of the velocity coordinates (see `joints.tree`). Bodies stand depth first, so what a coordinate moves
    stands together."""
    above, top = [], []
    for i in range(1, len(parent)):
        p = parent[i]
        before = int(iv[p]) + size[p] - 1 if p > 0 else -1
        for c in range(size[i]):
            above.append(before if c == 0 else len(above) - 1)
            top.append(len(top) if above[-1] < 0 else top[above[-1]])
    last = list(range(len(above)))
    for k in range(len(above) - 1, -1, -1):
        if above[k] >= 0:
            last[above[k]] = max(last[above[k]], last[k])
    return above, top, last


def _names(joints: list[Joint]) -> tuple[tuple[str, ...], ...]:
    q_names, q_units, v_names, v_units = [], [], [], []
    for joint in joints:
        dotted = [f"{joint.name}.{label}" if label else joint.name for label in joint.labels]
        v_names += dotted
        v_units += joint.units
        if joint.type in ("ball", "free"):
            position = ["px", "py", "pz"] if joint.type == "free" else []
            q_names += [f"{joint.name}.{label}" for label in [*position, "qx", "qy", "qz", "qw"]]
            q_units += ["m"] * len(position) + [""] * 4
        else:
            q_names += dotted
            q_units += joint.units
    return tuple(q_names), tuple(q_units), tuple(v_names), tuple(v_units)
