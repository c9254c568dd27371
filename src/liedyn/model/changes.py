"""A model with other numbers: its description is changed and assembled again, of which only what has changed is checked."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from liedyn.errors import ModelError, NameLookupError, Place, nearest
from liedyn.model.build import assembled
from liedyn.model.description import Coordinate, Joint, Link, Pose
from liedyn.model.link_tree import place_of
from liedyn.model.model import Model
from liedyn.model.numbers import check_finite
from liedyn.model.validate import checked_again

_UPPER = np.triu_indices(3)
_SYMMETRIC = 1e-9          # of the largest entry of an inertia matrix: rounding of a product R I R^T


def changed(model: Model, *given) -> Model:
    """`Model.with_changes`; an error names the number that was given, and no line of the robot file."""
    try:
        return _changed(model, *given)
    except ModelError as error:
        place = error.place and Place(key=f"with_changes: {error.place.key}")
        raise ModelError(error.message, place=place, found=error.found, expected=error.expected, hint=error.hint) from None


def _changed(model: Model, gravity, of_links: Mapping[str, Mapping | None], origins: Mapping | None,
            of_coordinates: Mapping[str, Mapping | None]) -> Model:
    """of_links, of_coordinates: by field of `Link` and of `Coordinate`, then by name."""
    before = robot = model.description
    if gravity is not None:
        check_finite(gravity, 3, Place(key="gravity"), "gravity")
        robot = replace(robot, gravity=_floats(gravity))
    links, joints = {link.name: link for link in robot.links}, {joint.name: joint for joint in robot.joints}
    for field, values in of_links.items():
        for name, value in _items(values, field):
            link = _of(links, name, "link")
            links[name] = replace(link, **{field: _link_number(link, field, value)})
    for name, T in _items(origins, "origin"):
        joint = _of(joints, name, "joint")
        joints[name] = replace(joint, origin=_pose(joint, T))
    for field, values in of_coordinates.items():
        for name, value in _items(values, field):
            joint, which = _coordinates(joints, name)
            joints[joint.name] = _with_coordinates(joint, which, field, value)
    robot = replace(robot, links=tuple(links[link.name] for link in robot.links),
                    joints=tuple(joints[joint.name] for joint in robot.joints))
    return assembled(checked_again(robot, before))


def _items(values, field: str):
    if values is None:
        return ()
    if not isinstance(values, Mapping):
        raise ModelError(f"{field} is given by name", found=values, expected="a dict such as {'name': value}")
    return values.items()


def _of(known: Mapping, name, what: str):
    if name not in known:
        hint = nearest(name, known, written=repr) or f"the model has {', '.join(list(known)[:12]) or 'none'}"
        raise NameLookupError(f"no {what} {name!r}; {hint}")
    return known[name]


def _floats(values) -> tuple[float, ...]:
    return tuple(float(x) for x in values)


def _link_number(link: Link, field: str, value) -> float | tuple[float, ...]:
    place = place_of(link, field)
    if field == "mass":
        check_finite((value,), 1, place, "mass")
        return float(value)
    if field == "com":
        check_finite(value, 3, place, "centre of mass")
        return _floats(value)
    if np.shape(value) == (3, 3):
        I = np.asarray(value, dtype=float)
        if not np.allclose(I, I.T, rtol=0.0, atol=_SYMMETRIC * np.abs(I).max()):
            raise ModelError("the inertia is not symmetric", place=place, found=I.tolist(), expected="a symmetric matrix")
        value = I[_UPPER]
    elif np.shape(value) == (3,):
        value = np.diag(value)[_UPPER]
    check_finite(value, 6, place, "inertia")
    return _floats(value)


def _pose(joint: Joint, T) -> Pose:
    try:
        T = np.asarray(T, dtype=float)
    except (TypeError, ValueError):
        T = np.empty(0)
    if T.shape != (4, 4) or not np.array_equal(T[3], [0, 0, 0, 1]):
        raise ModelError("the origin is not a pose", place=place_of(joint, "origin"), found=T.tolist(),
                         expected="a (4, 4) matrix whose last row is 0 0 0 1")
    return Pose(_floats(T[:3, :3].ravel()), _floats(T[:3, 3]))


def _coordinates(joints: Mapping[str, Joint], name) -> tuple[Joint, list[int]]:
    """The joint that is meant, and which of its coordinates."""
    moving = {joint.name: joint for joint in joints.values() if joint.labels}
    if name in moving:
        return moving[name], list(range(len(moving[name].labels)))
    single = {f"{joint.name}.{label}": (joint, [k]) for joint in moving.values() for k, label in enumerate(joint.labels) if label}
    return _of({**moving, **single}, name, "joint or coordinate") if name not in single else single[name]


def _with_coordinates(joint: Joint, which: list[int], field: str, value) -> Joint:
    place = place_of(joint, field)
    values = [value] * len(which) if np.ndim(value) == 0 else list(value)
    if len(values) != len(which):
        raise ModelError(f"wrong {field}", place=place, found=len(values), expected=f"one number, or {len(which)}")
    try:
        values = _floats(values)
    except (TypeError, ValueError):
        raise ModelError(f"wrong {field}", place=place, found=value, expected="numbers") from None
    coordinates: list[Coordinate] = list(joint.figures)
    for k, x in zip(which, values, strict=True):
        coordinates[k] = replace(coordinates[k], **{field: x})
    return replace(joint, coordinates=tuple(coordinates))
