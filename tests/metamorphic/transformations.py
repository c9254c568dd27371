"""Changes of the input with a known effect on results: world frame, units, order and names."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.spatial.transform import Rotation

from liedyn.model.description import WORLD, Joint, Robot
from liedyn.model.links import Link, Pose
from metamorphic.mechanisms import State
from other_units import in_units


@dataclass(frozen=True)
class Transformation:
    """A change of the robot, and the map of states and results."""

    change: Callable[[Robot], Robot] = lambda robot: robot
    rotation: np.ndarray = field(default_factory=lambda: np.eye(3))     # of the world
    translation: np.ndarray = field(default_factory=lambda: np.zeros(3))
    length: float = 1.0
    mass: float = 1.0
    time: float = 1.0
    name: Callable[[str], str] = str                                    # the new name of a joint or link

    def maps(self, old, new) -> Maps:
        return Maps(self, old, new)


class Maps:
    """Maps of states and results of the model `old` to those of the model `new`."""

    def __init__(self, by: Transformation, old, new):
        self.by, self.old, self.new = by, old, new
        self.v = self._order(old.v_names, new.v_names)
        self.q = self._order(old.q_names, new.q_names)
        scale = np.where(np.array(old.v_units)[self.v] == "m", by.length, 1.0)
        P = np.eye(old.nv)[self.v]
        twist = np.repeat([1.0, by.length], 3)
        turned = np.kron(np.eye(2), by.rotation)
        origin = turned.copy()                                    # wrenches about the world's origin
        origin[:3, 3:] = np.cross(np.eye(3), by.translation) @ by.rotation
        loops = [one.name for one in new.description.loops]
        closures = [loops.index(by.name(one.name)) for one in old.description.loops]
        names = [f"{one.name}:{k}" for one in old.constraints for k in range(len(one.units))]
        there = [by.name(text.split(":")[0]) + ":" + text.split(":")[1] for text in names]
        rows = [there.index(f"{one.name}:{k}") for one in new.constraints for k in range(len(one.units))]
        written = {one.name for one in old.description.couplings}               # their equations have no unit of their own
        units = [by.length if one.name not in written and unit == "m" else 1.0 for one in old.constraints for unit in one.units]
        scaled, shared = np.diag(units), 1 / np.array(units)
        self.matrices = {"r": scaled[rows] if rows else np.zeros((0, 0)), "M": origin / twist[:, None],
                         "l": np.diag(shared)[rows] if rows else np.zeros((0, 0)), "c": np.eye(len(loops))[:, closures],
                         "S": np.roll(origin, (3, 3), (0, 1)) * twist[:, None],
                         "v": scale[:, None] * P, "f": P / scale[:, None], "t": np.diag(twist), "h": np.diag(1 / twist),
                         "w": by.rotation, "T": twist[:, None] * turned, "H": turned / twist[:, None]}

    def _order(self, old, new) -> list[int]:
        def renamed(text):
            joint, *rest = text.split(".")
            return ".".join([self.by.name(joint), *rest])
        place = {renamed(text): k for k, text in enumerate(old)}
        return [place[text] for text in new]

    def configuration(self, q) -> np.ndarray:
        q, by = np.array(q), self.by
        for joint in self.old.joints:
            if joint.name == "base":
                x, r = q[..., joint.q][..., :3], q[..., joint.q][..., 3:]
                turned = Rotation.from_matrix(by.rotation) * Rotation.from_quat(r)
                q[..., joint.q] = np.concatenate([x @ by.rotation.T + by.translation, turned.as_quat()], axis=-1)
        lengths = np.array([by.length if unit == "m" else 1.0 for unit in self.q_units()])
        return (q * lengths)[..., self.q]

    def q_units(self) -> list[str]:
        """Return the units of coordinates of position: m."""
        units = []
        for joint in self.old.joints:
            v = list(self.old.v_units[joint.v])
            labels = [name.rpartition(".")[2] for name in self.old.q_names[joint.q]]
            if "qw" in labels:
                v = ["m" if one.startswith("p") else "rad" for one in labels]
            units += v
        return units

    def state(self, s: State) -> State:
        by, m = self.by, self.matrices
        energy = by.mass * by.length**2 / by.time**2
        wrenches = {by.name(link): energy * m["h"] @ f for link, f in s.f_ext.items()}
        v, a, tau = m["v"] @ s.v / by.time, m["v"] @ s.a / by.time**2, energy * m["f"] @ s.tau
        return State(self.configuration(s.q), v, a, tau, wrenches, m["v"] @ s.free / by.time, m["v"] @ s.step,
                     energy * m["l"] @ s.multipliers, s.mask[self.v], s.time * by.time)

    def result(self, value, axes: str, units: tuple[int, int, int]) -> np.ndarray:
        """axes: the kind of each axis. v velocity, f generalized force, t twist and h wrench of a link, w vector, T twist and
        H wrench along world axes; S twist and M wrench about the world's origin; r constraint equation and l its multiplier;
        c closure; - no change; X a position; P a pose, D its derivatives.
        units: exponents of mass, length and time."""
        by, value = self.by, np.asarray(value, dtype=float)
        if axes == "P":
            T = np.eye(4)
            T[:3, :3], T[:3, 3] = by.rotation @ value[:3, :3], by.length * (by.rotation @ value[:3, 3]) + by.translation
            return T
        if axes == "D":
            T = np.zeros((4, 4))
            T[:3, :3], T[:3, 3] = by.rotation @ value[:3, :3], by.length * (by.rotation @ value[:3, 3])
            return T * by.time**units[2]
        if axes == "X":
            return by.length * (by.rotation @ value) + by.translation
        for k, letter in enumerate(axes):
            if letter == "-":
                continue
            value = np.moveaxis(np.tensordot(self.matrices[letter], value, (1, k)), 0, k)
        return value * by.mass**units[0] * by.length**units[1] * by.time**units[2]


def world_moved(rpy, xyz) -> Transformation:
    R, p = Rotation.from_euler("xyz", rpy).as_matrix(), np.array(xyz, dtype=float)

    def pose(given: Pose) -> Pose:
        x = R @ np.array(given.translation) + p
        return Pose(tuple((R @ np.reshape(given.rotation, (3, 3))).ravel().tolist()), tuple(x.tolist()))

    def change(robot: Robot) -> Robot:
        joints = tuple(replace(j, origin=pose(j.origin)) if j.parent == WORLD else j for j in robot.joints)
        loops = tuple(replace(one, pose_a=pose(one.pose_a) if one.a == WORLD else one.pose_a,
                              pose_b=pose(one.pose_b) if one.b == WORLD else one.pose_b) for one in robot.loops)
        if robot.base == "fixed" and not any(j.parent == WORLD for j in robot.joints):     # the root is fixed in the world
            children = {j.child for j in robot.joints}
            root = next(link.name for link in robot.links if link.name not in children)
            joints = (Joint("place", "fixed", WORLD, root, Pose(tuple(R.ravel().tolist()), tuple(p.tolist()))), *joints)
        elements = tuple(replace(one, pose_a=pose(one.pose_a) if one.a == WORLD else one.pose_a,
                                 pose_b=pose(one.pose_b) if one.b == WORLD else one.pose_b) for one in robot.elements)
        return replace(robot, joints=joints, loops=loops, elements=elements,
                       gravity=tuple((R @ np.array(robot.gravity)).tolist()))
    return Transformation(change, R, p)


def other_units(length: float, mass: float, time: float) -> Transformation:
    def change(robot: Robot) -> Robot:
        def pose(p: Pose) -> Pose:
            return replace(p, translation=tuple(x * length for x in p.translation))
        kinds = {joint.name: joint for joint in robot.joints}

        def coupling(one):
            terms = tuple((j, label, c / (length if kinds[j].units[kinds[j].labels.index(label)] == "m" else 1.0))
                          for j, label, c in one.terms)
            return replace(one, terms=terms)
        loops = tuple(replace(one, pose_a=pose(one.pose_a), pose_b=pose(one.pose_b), length=one.length * length,
                              radius=one.radius * length) for one in robot.loops)
        force, stiffness = mass * length / time**2, mass / time**2
        of_bushing = 3 * [stiffness * length**2] + 3 * [stiffness]

        def element(one):
            torsion = one.type == "torsion"
            x = stiffness * length**2 if torsion else stiffness
            changes = {"preload": one.preload * (force * length if torsion else force),
                       "free_length": [y * length for y in one.free_length]}
            changes |= {"stiffness": [y * x for y in one.stiffness], "damping": [y * x * time for y in one.damping]}
            if one.type == "bushing":
                changes["stiffness"] = [y * x for y, x in zip(one.stiffness, of_bushing, strict=True)]
                changes["damping"] = [y * x * time for y, x in zip(one.damping, of_bushing, strict=True)]
            if one.type == "gas_spring":
                changes |= {"force": one.force * force, "extended_length": one.extended_length * length,
                            "stroke": one.stroke * length}
            return replace(one, pose_a=pose(one.pose_a), pose_b=pose(one.pose_b), **changes)
        return replace(in_units(robot, length, mass, time), loops=loops, couplings=tuple(map(coupling, robot.couplings)),
                       elements=tuple(map(element, robot.elements)))
    return Transformation(change, length=length, mass=mass, time=time)


def reversed_and_renamed() -> Transformation:
    def name(text: str) -> str:
        return text if text in (WORLD, "base") else f"n_{text[::-1]}"

    def change(robot: Robot) -> Robot:
        links = tuple(replace(one, name=name(one.name)) for one in reversed(robot.links))
        joints = tuple(replace(one, name=name(one.name), parent=name(one.parent), child=name(one.child),
                               mimic=one.mimic and replace(one.mimic, joint=name(one.mimic.joint)))
                       for one in reversed(robot.joints))
        loops = tuple(replace(one, name=name(one.name), a=name(one.a), b=name(one.b)) for one in reversed(robot.loops))
        couplings = tuple(replace(one, name=name(one.name), terms=tuple((name(j), c, x) for j, c, x in reversed(one.terms)))
                          for one in reversed(robot.couplings))
        elements = tuple(replace(one, name=name(one.name), a=name(one.a), b=name(one.b)) for one in robot.elements)
        return replace(robot, name="other", links=links, joints=joints, loops=loops, couplings=couplings, elements=elements)
    return Transformation(change, name=name)


def fixed_joints_inserted() -> Transformation:
    """Insert a massless link and a fixed joint, rotated and moved, between each joint and its child."""
    def change(robot: Robot) -> Robot:
        there = Rotation.from_euler("xyz", [0.3, -0.8, 1.1]).as_matrix()
        x = np.array([0.2, -0.1, 0.3])
        fixed = Pose(tuple(there.ravel().tolist()), tuple(x.tolist()))
        links, joints = list(robot.links), []
        for joint in robot.joints:
            if joint.parent != WORLD:                             # the joint's origin seen from the new link
                R, p = np.reshape(joint.origin.rotation, (3, 3)), np.array(joint.origin.translation)
                origin = Pose(tuple((there.T @ R).ravel().tolist()), tuple((there.T @ (p - x)).tolist()))
                links.append(Link(f"{joint.name}_frame"))
                joints.append(Joint(f"{joint.name}_fixed", "fixed", joint.parent, f"{joint.name}_frame", fixed))
                joint = replace(joint, parent=f"{joint.name}_frame", origin=origin)
            joints.append(joint)
        return replace(robot, links=tuple(links), joints=tuple(joints))
    return Transformation(change)


TRANSFORMATIONS = {
    "world rotated and moved": world_moved((0.4, -0.9, 2.0), (0.3, 0.2, 0.1)),
    "world a kilometre away": world_moved((1.1, 0.7, -2.2), (900.0, -300.0, 200.0)),
    "millimetres": other_units(1e3, 1.0, 1.0),
    "kilometres, milligrams, 10 ms": other_units(1e-3, 1e6, 1e2),
    "millimetres, kilotonnes, 100 s": other_units(1e3, 1e-6, 1e-2),
    "order reversed, names changed": reversed_and_renamed(),
    "fixed joints inserted": fixed_joints_inserted(),
}
