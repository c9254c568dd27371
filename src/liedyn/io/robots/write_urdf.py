"""Robot -> URDF. Numbers read back to the same bits; placements have the angles whose rotation agrees to rounding."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from xml.sax.saxutils import quoteattr

from liedyn.io.robots.limits import written_limit
from liedyn.io.robots.link_shapes import LinkShape
from liedyn.io.robots.write_rotation import rpy_of
from liedyn.model.description import IDENTITY, Coordinate, Joint, Link, Pose, Robot

_NAMES = {"free": "floating"}                        # of joint types that the format calls otherwise
_GEOMETRY = {"box": '<box size="{} {} {}"/>', "sphere": '<sphere radius="{}"/>',
             "cylinder": '<cylinder radius="{}" length="{}"/>'}
_INERTIA = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


def urdf(robot: Robot, shapes: Mapping[str, tuple[LinkShape, ...]] | None = None) -> str:
    """The text of a URDF of a valid robot that has only what the format has: see `model.urdf_subset.as_urdf`.
    shapes: of links, for pictures.

    Revolute and prismatic joints always get a <limit> with all four numbers, which other readers require."""
    lines = ['<?xml version="1.0"?>', f"<robot name={quoteattr(robot.name)}>"]
    for link in robot.links:
        lines += _element("link", link.name, "", [*_link(link), *_visuals((shapes or {}).get(link.name, ()))])
    for joint in robot.joints:
        lines += _element("joint", joint.name, f' type="{_NAMES.get(joint.type, joint.type)}"', _joint(joint))
    return "\n".join([*lines, "</robot>"]) + "\n"


def _element(tag: str, name: str, more: str, parts: Iterable[str]) -> list[str]:
    head, parts = f"  <{tag} name={quoteattr(name)}{more}", list(parts)
    return [head + ">", *("    " + part for part in parts), f"  </{tag}>"] if parts else [head + "/>"]


def _link(link: Link) -> Iterator[str]:
    if link.mass or any(link.com) or any(link.inertia):
        yield "<inertial>"
        yield from ("  " + part for part in _origin(Pose(translation=link.com)))
        yield f'  <mass value="{_number(link.mass)}"/>'
        yield "  <inertia " + " ".join(f'{k}="{_number(x)}"' for k, x in zip(_INERTIA, link.inertia, strict=True)) + "/>"
        yield "</inertial>"


def _visuals(shapes: Iterable[LinkShape]) -> Iterator[str]:
    for shape in shapes:
        for kind, sizes, pose in _standard(shape):
            yield "<visual>"
            yield from ("  " + part for part in _origin(pose))
            yield f"  <geometry>{_GEOMETRY[kind].format(*map(_number, sizes))}</geometry>"
            if shape.colour:
                rgb = _numbers(shape.colour)
                yield f'  <material name="colour {rgb}"><color rgba="{rgb} 1"/></material>'
            yield "</visual>"


def _standard(shape: LinkShape) -> Iterator[tuple[str, tuple[float, ...], Pose]]:
    """The shape, a capsule as a cylinder between two spheres, which the format lacks."""
    if shape.kind != "capsule":
        yield shape.kind, shape.sizes, shape.pose
        return
    radius, length = shape.sizes
    yield "cylinder", (radius, length), shape.pose
    for way in (-length / 2, length / 2):
        p = tuple(x + way * z for x, z in zip(shape.pose.translation, shape.pose.rotation[2::3], strict=True))
        yield "sphere", (radius,), Pose(shape.pose.rotation, p)


def _joint(joint: Joint) -> Iterator[str]:
    yield f"<parent link={quoteattr(joint.parent)}/>"
    yield f"<child link={quoteattr(joint.child)}/>"
    yield from _origin(joint.origin)
    if joint.axes:
        yield f'<axis xyz="{_numbers(joint.axes[0])}"/>'
    coordinate = joint.figures[0] if joint.labels else Coordinate()
    yield from _limit(joint.type, coordinate)
    if coordinate.damping or coordinate.friction:
        yield f'<dynamics damping="{_number(coordinate.damping)}" friction="{_number(coordinate.friction)}"/>'
    if joint.mimic:
        mimic = joint.mimic
        yield (f'<mimic joint={quoteattr(mimic.joint)} multiplier="{_number(mimic.multiplier)}" '
               f'offset="{_number(mimic.offset)}"/>')


def _limit(kind: str, coordinate: Coordinate) -> Iterator[str]:
    lower, upper, effort, velocity = (_number(written_limit(x)) for x in (coordinate.lower, coordinate.upper, coordinate.effort,
                                                                          coordinate.velocity))
    if kind in ("revolute", "prismatic"):
        yield f'<limit lower="{lower}" upper="{upper}" effort="{effort}" velocity="{velocity}"/>'
    elif kind == "continuous" and coordinate != Coordinate(damping=coordinate.damping, friction=coordinate.friction):
        yield f'<limit effort="{effort}" velocity="{velocity}"/>'


def _origin(pose: Pose) -> Iterator[str]:
    turn = f' rpy="{_numbers(rpy_of(pose.rotation))}"' if pose.rotation != IDENTITY else ""
    if turn or any(pose.translation):
        yield f'<origin xyz="{_numbers(pose.translation)}"{turn}/>'


def _numbers(values: Iterable[float]) -> str:
    return " ".join(map(_number, values))


def _number(x: float) -> str:
    return repr(float(x)).removesuffix(".0")
