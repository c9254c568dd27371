"""A description with other numbers: what `Model.with_changes` changes, of which positions and counts are checked."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from liedyn.arrays import ArrayLike
from liedyn.errors import ModelError, Place, unknown_name
from liedyn.model.description import Joint, Robot
from liedyn.model.element_values import as_each, as_inertia, check_finite, element_location
from liedyn.model.links import Link, as_pose, vector

Value = TypeVar("Value")
Changes = Mapping[str, ArrayLike]            # by name of the link, joint or coordinate


def changed_robot(robot: Robot, gravity: Any, of_links: Mapping[str, Changes | None], origins: Changes | None,
                  of_coordinates: Mapping[str, Changes | None]) -> Robot:
    """Return the robot with other numbers, of which the positions and the counts are checked."""
    if gravity is not None:
        check_finite(gravity, 3, Place(key="gravity"), "gravity")
        robot = replace(robot, gravity=vector(gravity))
    links, joints = {link.name: link for link in robot.links}, {joint.name: joint for joint in robot.joints}
    for key, values in of_links.items():
        for name, value in _named_values(values, key):
            link = _look_up(links, name, "link")
            links[name] = _replace_link_value(link, key, value)
    for name, T in _named_values(origins, "origin"):
        joint = _look_up(joints, name, "joint")
        place = element_location(joint, "origin")
        if np.shape(T) == (3,):
            raise ModelError("a position does not determine the rotation of the origin", place=place,
                             found=np.asarray(T).tolist(), expected="a Pose, or a (4, 4) matrix whose last row is 0 0 0 1")
        joints[name] = replace(joint, origin=as_pose(T, place, "origin"))
    for key, values in of_coordinates.items():
        for name, value in _named_values(values, key):
            joint, indices = _find_coordinates(joints, name)
            joints[joint.name] = _replace_coordinates(joint, indices, key, value)
    return replace(robot, links=tuple(links[link.name] for link in robot.links),
                   joints=tuple(joints[joint.name] for joint in robot.joints))


def _named_values(values: Changes | None, field: str) -> Iterable[tuple[str, Any]]:
    if values is None:
        return ()
    if not isinstance(values, Mapping):
        raise ModelError(f"{field} is given by name", found=values, expected="a dict such as {'name': value}")
    return values.items()


def _look_up(elements: Mapping[str, Value], name: str, kind: str) -> Value:
    if name not in elements:
        raise unknown_name(kind, name, elements)
    return elements[name]


def _replace_link_value(link: Link, field: str, value: Any) -> Link:
    """Return the link with another mass, com or inertia (`field`)."""
    place = element_location(link, field)
    if field == "mass":
        check_finite((value,), 1, place, "mass")
        return replace(link, mass=float(value))
    if field == "com":
        check_finite(value, 3, place, "centre of mass")
        return replace(link, com=vector(value))
    entries = as_inertia(value, place)
    check_finite(entries, 6, place, "inertia")
    return replace(link, inertia=entries)


def _find_coordinates(joints: Mapping[str, Joint], name: str) -> tuple[Joint, list[int]]:
    """Return the joint with this name or coordinate, and the indices of its coordinates that the name denotes."""
    moving = [joint for joint in joints.values() if joint.labels]
    whole = {joint.name: (joint, list(range(len(joint.labels)))) for joint in moving}
    single = {f"{joint.name}.{label}": (joint, [k]) for joint in moving for k, label in enumerate(joint.labels) if label}
    return _look_up(whole | single, name, "joint or coordinate")


def _replace_coordinates(joint: Joint, indices: list[int], field: str, value: Any) -> Joint:
    """Return the joint with one number for all coordinates `indices`, or one for each, in a field of `Coordinate`."""
    values = as_each(value, len(indices), element_location(joint, field), field)
    coordinates = list(joint.coordinate_parameters)
    for k, x in zip(indices, values, strict=True):
        coordinates[k] = replace(coordinates[k], **{field: x})
    return replace(joint, coordinates=tuple(coordinates))
