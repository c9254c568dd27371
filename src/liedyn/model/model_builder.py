"""From a validated description to the arrays of the kernels.

Fixed joints are merged into their parents; every joint but ball and free becomes screws about the z axes of their own
bodies, with massless bodies between where a joint has several (DESIGN §2).
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from liedyn.arrays import Array, Integers
from liedyn.model.articulated_inertia import BodyTree
from liedyn.model.constraint_arrays import ConstraintAnchors, LeverArms, pack_constraints, packed_model
from liedyn.model.description import (
    FREE,
    HAS_CHILDREN,
    LAST_CHILD,
    NO_AXIAL_INERTIA,
    NQ,
    NV,
    ONE_DOF,
    ROTATES,
    TRANSLATES,
    WORLD,
    Joint,
    Robot,
)
from liedyn.model.force_element import pack_elements
from liedyn.model.link_tree import LinkTree, build_link_tree, reduced_inertias
from liedyn.model.links import Link, Pose
from liedyn.model.model_joint import ModelJoint, joint_screws
from liedyn.model.spatial import inertia_from_link, inverse, pose, pose_to_array, screw_frame, transform_inertia


@dataclass
class ModelBuilder:
    """The tree under construction: one entry of each list per body. Body 0 is the ground, which has no joint."""

    robot: Robot
    parent: list[int] = field(default_factory=lambda: [-1])
    kind: list[int] = field(default_factory=lambda: [ONE_DOF])
    S: list[tuple[float, float]] = field(default_factory=lambda: [(0.0, 0.0)])
    T0: list[Array] = field(default_factory=lambda: [np.eye(4)])
    I: list[Array] = field(default_factory=lambda: [np.zeros(10)])
    joint_of_body: list[Joint] = field(default_factory=list)                      # without the ground
    joints: list[ModelJoint] = field(default_factory=list)
    links: dict[str, tuple[int, Array, str | None]] = field(default_factory=dict)   # body, pose in it, parent link
    nq: int = 0
    nv: int = 0
    moving: list[Joint] = field(default_factory=list)
    pivot_threshold: Array = field(default_factory=lambda: np.zeros(0))      # (nv,) pivots below it are rounding

    def add_links(self) -> None:
        """Add the bodies of all joints, and the links to them."""
        tree = build_link_tree(self.robot)
        if tree.root in tree.links:
            floating = self.robot.base == "floating"
            body, frame = self._add_joint(self._root_joint(tree)) if floating else (0, np.eye(4))
            self._place_link(tree.links[tree.root], body, frame, None)
        for joint in tree.joints:
            body, frame = self._add_joint(joint)
            self._place_link(tree.links[joint.child], body, frame, joint.parent if joint.parent in tree.links else None)

    def _root_joint(self, tree: LinkTree) -> Joint:
        return Joint(base_joint_name(self.robot), "free", WORLD, tree.root, place=tree.links[tree.root].place)

    def _place_link(self, link: Link, body: int, frame: Array, parent: str | None) -> None:
        self.links[link.name] = (body, frame, parent)
        self.I[body] = self.I[body] + transform_inertia(frame, inertia_from_link(link))

    def _add_joint(self, joint: Joint) -> tuple[int, Array]:
        """Add the bodies of a joint. Return the body of the child link, and the pose of the link in it."""
        body, frame = self.links[joint.parent][:2] if joint.parent in self.links else (0, np.eye(4))
        home = frame @ pose(joint.origin)
        if joint.type == "fixed":
            return body, home
        first, nq, nv = len(self.parent), self.nq, self.nv
        self.moving.append(joint)
        screws, offset = None, np.eye(4)                      # offset: frame after the screws so far, in the last body
        if joint.kind != ONE_DOF:
            body = self._add_body(body, joint.kind, (0.0, 0.0), home, joint)
        else:
            screws = joint_screws(joint)
            for screw in screws:
                z_frame, S = screw_frame(screw)
                body = self._add_body(body, ONE_DOF, S, home @ offset @ z_frame, joint)
                home, offset = np.eye(4), inverse(z_frame)
        self.joints.append(ModelJoint(joint.name, joint.type, joint.kind, joint.parent, joint.child, slice(nq, self.nq),
                                      slice(nv, self.nv), pose(joint.origin), screws, first, body))
        return body, offset

    def _add_body(self, parent: int, kind: int, S: tuple[float, float], T0: Array, joint: Joint) -> int:
        self.parent.append(parent)
        self.kind.append(kind)
        self.S.append(S)
        self.T0.append(T0)
        self.I.append(np.zeros(10))
        self.joint_of_body.append(joint)
        self.nq += NQ[kind]
        self.nv += NV[kind]
        return len(self.parent) - 1

    def bodies(self) -> BodyTree:
        """Return the bodies, after `add_links`."""
        return BodyTree(self.parent, self.kind, self.S, self.T0, self.I, self.coordinate("armature"))

    def coordinate(self, name: str) -> Array:
        """Return a parameter (nv,) of the velocity coordinates, by its field of `Coordinate`."""
        return np.array([getattr(c, name) for joint in self.moving for c in joint.coordinate_parameters], dtype=float)

    def fields(self) -> dict[str, Any]:
        """Return the fields of the `Model`, after `add_links`."""
        index, constants = self._arrays()
        names = [link.name for link in self.robot.links]
        q_names, q_units, v_names, v_units = _coordinate_names(self.moving)
        constraints, loop_index, loop_constants = pack_constraints(
            self.robot, self._anchors(), LeverArms(self.parent, self.kind, self.S, self.T0, self.I))
        return dict(
            name=self.robot.name, description=self.robot, base=self.robot.base, gravity=np.array(self.robot.gravity, dtype=float),
            nq=self.nq, nv=self.nv, joints=tuple(self.joints), link_names=tuple(names),
            link_body=np.array([self.links[n][0] for n in names], dtype=np.int64),
            link_pose=np.array([self.links[n][1] for n in names]).reshape(-1, 4, 4),
            link_parents=tuple(self.links[n][2] for n in names),
            q_names=q_names, v_names=v_names, q_units=q_units, v_units=v_units,
            lower=self.coordinate("lower"), upper=self.coordinate("upper"),
            velocity_limit=self.coordinate("velocity"), effort_limit=self.coordinate("effort"),
            acceleration_limit=self.coordinate("acceleration"), jerk_limit=self.coordinate("jerk"),
            index=index, constants=constants, warnings=self.robot.warnings,
            constraints=constraints, loop_index=loop_index, loop_constants=loop_constants,
            packed_model=packed_model(index, constants, loop_index, loop_constants))

    def _anchors(self) -> ConstraintAnchors:
        coordinates = {}
        for moving, joint in zip(self.joints, self.moving, strict=True):
            if moving.kind == ONE_DOF:
                for k, (label, unit) in enumerate(zip(joint.labels, joint.units, strict=True)):
                    coordinates[joint.name, label] = (moving.first_body + k, moving.v.start + k, moving.q.start + k, unit)
        return ConstraintAnchors(self.parent, self.kind, {name: link[:2] for name, link in self.links.items()}, coordinates)

    def _frame(self, link: str, at: Pose) -> tuple[int, Array]:
        """Return the body of a frame in a link or the ground, and the pose of the frame in the body."""
        body, frame = self.links[link][:2] if link in self.links else (0, np.eye(4))
        return body, frame @ pose(at)

    def _home(self, body: int) -> Array:
        """Return the pose of a body at zero coordinates."""
        T = np.eye(4)
        while body > 0:
            T, body = self.T0[body] @ T, self.parent[body]
        return T

    def _size(self) -> float:
        """Return the maximum distance in the placements of bodies and frames of force elements; 1 m if all are zero."""
        places = [*self.T0, *(pose(at) for element in self.robot.elements for at in (element.pose_a, element.pose_b))]
        return max((float(np.linalg.norm(T[:3, 3])) for T in places), default=0.0) or 1.0

    def _arrays(self) -> tuple[Integers, Array]:
        """Return `index` and `constants` in the layout of `joints.joint_model`."""
        n, links = len(self.parent), [self.links[link.name] for link in self.robot.links]
        iq = np.cumsum([0, 0] + [NQ[k] for k in self.kind[1:]])[:n]
        iv = np.cumsum([0, 0] + [NV[k] for k in self.kind[1:]])[:n]
        marks, slot = _backward_plan(self.parent)
        rotors = [0.0, *self.coordinate("armature")[iv[1:]]]              # of screws; that of a ball or free joint is not used
        marks = [mark | ROTATES * (a != 0) | TRANSLATES * (b != 0) | NO_AXIAL_INERTIA * (a != 0 and b == 0 and rotor == 0)
                 for mark, (a, b), rotor in zip(marks, self.S, rotors, strict=True)]
        passive = bool(self.robot.elements) or any(self.coordinate(c).any() for c in ("damping", "friction", "stiffness"))
        friction = self.coordinate("friction").any()
        element, element_pose, element_values = pack_elements(self.robot.elements, self._frame, self._home, self._size())
        header = [n, self.nq, self.nv, len(links), int(passive), int(friction), 0, 0, len(self.robot.elements),
                  element_values.size]
        on = [link[0] for link in links]
        paths = _coordinate_paths(self.parent, iv, [NV[k] for k in self.kind])
        index = np.concatenate([header, self.parent, self.kind, iq, iv, marks, slot, on, *paths, element]).astype(np.int64)
        constants = np.concatenate([
            np.zeros(3), -np.array(self.robot.gravity, dtype=float), np.ravel(self.S), *map(pose_to_array, self.T0),
            np.ravel(self.I),
            np.ravel(reduced_inertias(self.parent, self.kind, self.S, self.T0, self.I)),
            *[pose_to_array(link[1]) for link in links],
            *[self.coordinate(c) for c in ("armature", "damping", "friction", "stiffness", "rest", "friction_speed")],
            self.pivot_threshold,
            element_pose, element_values])
        return index, np.ascontiguousarray(constants, dtype=float)


def base_joint_name(robot: Robot) -> str:
    """Return the name of the free joint of a floating base."""
    return "base" if all(joint.name != "base" for joint in robot.joints) else "floating_base"


def _backward_plan(parent: list[int]) -> tuple[list[int], list[int]]:
    """Return the marks and slots of the bodies (see `joints.joint_model`).

    A slot of a body is taken by the first of its children in a backward pass and free again after the body itself. A chain needs
    one slot, so that the pass works within the nearest cache.
    """
    n = len(parent)
    marks, slot, taken = [0] * n, [0] * n, 0
    free: list[int] = []
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


def _coordinate_paths(parent: list[int], iv: Integers, size: list[int]) -> tuple[list[int], list[int], list[int]]:
    """Return above, top and last of the velocity coordinates (see `joints.joint_model`).

    Bodies are ordered depth first, so the coordinates that a coordinate moves are consecutive.
    """
    above: list[int] = []
    top: list[int] = []
    for i in range(1, len(parent)):
        p = parent[i]
        previous = int(iv[p]) + size[p] - 1 if p > 0 else -1
        for c in range(size[i]):
            above.append(previous if c == 0 else len(above) - 1)
            top.append(len(top) if above[-1] < 0 else top[above[-1]])
    last = list(range(len(above)))
    for k in range(len(above) - 1, -1, -1):
        if above[k] >= 0:
            last[above[k]] = max(last[above[k]], last[k])
    return above, top, last


def _coordinate_names(joints: list[Joint]) -> tuple[tuple[str, ...], ...]:
    q_names: list[str] = []
    q_units: list[str] = []
    v_names: list[str] = []
    v_units: list[str] = []
    for joint in joints:
        v_names += joint.coordinate_names
        v_units += joint.units
        if joint.kind != ONE_DOF:
            position = ["px", "py", "pz"] if joint.kind == FREE else []
            q_names += [f"{joint.name}.{label}" for label in [*position, "qx", "qy", "qz", "qw"]]
            q_units += ["m"] * len(position) + [""] * 4
        else:
            q_names += joint.coordinate_names
            q_units += joint.units
    return tuple(q_names), tuple(q_units), tuple(v_names), tuple(v_units)
