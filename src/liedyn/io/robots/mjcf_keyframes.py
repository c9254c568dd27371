"""Keyframes of MJCF in the coordinates of `liedyn`."""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from liedyn.io.robots.mjcf_bodies import BodyTree
from liedyn.io.robots.mjcf_geometry import check_known, rotate, unit
from liedyn.io.robots.write_robot_yaml import quaternion_of
from liedyn.io.robots.xml_elements import XmlElement
from liedyn.model.description import BALL, FREE, NQ, NV, Joint, Keyframe
from liedyn.model.links import Pose, vector
from liedyn.model.spatial import inverse, pose

_KEY = ("name", "time", "qpos", "qvel", "act", "ctrl", "mpos", "mquat")
_NOT_READ = ("time", "act", "ctrl", "mpos", "mquat")


def read_keyframes(root: XmlElement, tree: BodyTree) -> Iterator[Keyframe]:
    """Yield the keyframes. Positions default to the initial pose of the file, velocities to zero."""
    joints = [joint for joint in tree.joints if joint.labels]
    for k, key in enumerate(root.within("keyframe")):
        check_known(key, _KEY)
        for part in _NOT_READ:
            if any(key.floats(part)):
                tree.count(f"{part} of key frames")
        qpos = _by_joint(key, "qpos", joints, NQ) or {joint.name: _at_start(joint, tree) for joint in joints}
        qvel = _by_joint(key, "qvel", joints, NV)
        q = {joint.name: _position(joint, qpos[joint.name], key) for joint in joints}
        v = {joint.name: _velocity(joint, qvel[joint.name], q[joint.name]) for joint in joints if qvel}
        yield Keyframe(key.name or f"key{k + 1}", q, v, key.place())


def _by_joint(key: XmlElement, part: str, joints: Sequence[Joint], sizes: Sequence[int]) -> dict[str, tuple[float, ...]]:
    """Return the numbers of each joint, or an empty dict without the attribute."""
    if part not in key.attributes:
        return {}
    values, count = iter(key.floats(part)), sum(sizes[joint.kind] for joint in joints)
    if len(key.floats(part)) != count:
        raise key.problem("wrong number of values", part, found=len(key.floats(part)), expected=f"{count}, for all joints")
    return {joint.name: tuple(next(values) for _ in range(sizes[joint.kind])) for joint in joints}


def _at_start(joint: Joint, tree: BodyTree) -> tuple[float, ...]:
    """Return the coordinates of MuJoCo in the initial pose of the file."""
    if joint.kind == BALL:
        return 1.0, 0.0, 0.0, 0.0
    if joint.kind == FREE:
        x, y, z, w = quaternion_of(tree.at_start[joint.child].rotation)
        return *tree.at_start[joint.child].translation, w, x, y, z
    return (tree.ref[joint.name],)


def _position(joint: Joint, qpos: tuple[float, ...], key: XmlElement) -> tuple[float, ...]:
    """Return the coordinates with the quaternion w x y z of any length as unit quaternion x y z w."""
    if joint.kind not in (BALL, FREE):
        return qpos
    w, x, y, z = unit(qpos[-4:], key, "qpos")
    return *qpos[:-4], x, y, z, w


def _velocity(joint: Joint, qvel: tuple[float, ...], q: tuple[float, ...]) -> tuple[float, ...]:
    """Return the velocities: of a free joint, its twist [w; v] in axes of the body."""
    if joint.kind != FREE:
        return qvel
    to_body = Pose.from_matrix(inverse(pose(Pose.from_xyz_quaternion((0.0, 0.0, 0.0), q[3:]))))
    return *qvel[3:], *rotate(to_body, vector(qvel[:3]))
