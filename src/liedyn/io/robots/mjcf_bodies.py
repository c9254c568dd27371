"""The kinematic tree of an MJCF file: bodies, their joints in order, sites as massless links.

Axes of joints may be anywhere in a body of MuJoCo, while a link has the frame of its joint. So a joint whose axis does not pass
through the origin of the body moves a massless link, to which the body is welded: links have the frames of their bodies.
Coordinates are those of MuJoCo: `ref` is subtracted from the placement, and a free joint starts at the origin of the world,
whatever the `pos` of its body.
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from liedyn.errors import ModelError
from liedyn.io.robots.mjcf_geometry import (
    MAIN,
    ORIENTATIONS,
    Compiler,
    Defaults,
    LeftOut,
    Option,
    axis_rotation,
    bounded,
    check_known,
    compiler_of,
    compose,
    is_mesh,
    minus,
    of_geom,
    of_inertial,
    placement,
    rotate,
    unit,
)
from liedyn.io.robots.mjcf_meshes import Meshes, read_meshes
from liedyn.io.robots.xml_elements import XmlElement
from liedyn.model.description import WORLD, Coordinate, Joint
from liedyn.model.links import Link, Pose, Vector, inertia_of, vector
from liedyn.model.mass_properties import Mass, total

_TYPES = ("hinge", "slide", "ball", "free")
_HINT = "write the compiled model with MuJoCo: mujoco.mj_saveLastXML"
_NOT_SUPPORTED = {"composite": _HINT}                           # elements that generate bodies, with a hint
_IGNORED = {"plugin": "plugins", "flexcomp": "flex"}            # elements with forces: names of `IGNORABLE`
_BODY = ("name", "pos", *ORIENTATIONS, "childclass", "mocap", "user", "sleep", "simple", "fuse", "gravcomp")
_INERTIAL = ("mass", "pos", "diaginertia", "fullinertia", *ORIENTATIONS)
_JOINT = ("name", "class", "type", "pos", "axis", "group", "user", "margin", "limited", "range", "ref", "armature", "damping",
          "frictionloss", "stiffness", "springref", "actuatorfrcrange", "actuatorfrclimited", "actuatorgravcomp", "align",
          "solreflimit", "solimplimit", "solreffriction", "solimpfriction", "springdamper", "springyield")


@dataclass(slots=True)
class BodyTree:
    """Links and joints of the bodies that have been read.

    compiler      settings for the body that is being read
    compilers     settings of each body, which differ in attached models
    at_start      pose of each link in the world when all coordinates have their `ref`, and WORLD
    site          link of each named site, and pose in it
    ref           of each joint with one coordinate
    mass          of each body, by link
    geoms         with their frames, by link
    still         links that do not move
    force_ranges  of joints, by name
    counts        of parts that are not read, by description
    left_out      parts that change the motion
    names         elements of links, by name
    joint_names   elements of joints, by name
    """

    compiler: Compiler
    option: Option
    defaults: Defaults
    meshes: Meshes
    left_out: LeftOut
    links: list[Link] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    at_start: dict[str, Pose] = field(default_factory=lambda: {WORLD: Pose()})
    site: dict[str, tuple[str, Pose]] = field(default_factory=dict)
    ref: dict[str, float] = field(default_factory=dict)
    mass: dict[str, Mass] = field(default_factory=dict)
    geoms: dict[str, list[tuple[XmlElement, Pose]]] = field(default_factory=dict)
    compilers: dict[str, Compiler] = field(default_factory=dict)
    still: set[str] = field(default_factory=lambda: {WORLD})
    force_ranges: dict[str, tuple[float, float]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    names: dict[str, XmlElement] = field(default_factory=dict)
    joint_names: dict[str, XmlElement] = field(default_factory=dict)
    bodies: int = 0

    def count(self, part: str) -> None:
        """Count a part of the file that is not read, for a warning."""
        self.counts[part] = self.counts.get(part, 0) + 1


def _unique_name(name: str, element: XmlElement, taken: dict[str, XmlElement]) -> str:
    """Return a unique name: underscores are added to a generated name that is taken."""
    is_written = element.name == name
    if is_written and name in taken and taken[name].name == name and taken[name].tag == element.tag:
        raise element.problem("another element has the same name", "name", found=name, hint=f"first on line {taken[name].line}")
    while name in taken or name == WORLD:
        name += "_"
    taken[name] = element
    return name


def read_bodies(root: XmlElement, compiler: Compiler, option: Option, defaults: Defaults, left_out: LeftOut) -> BodyTree:
    """Return the links and joints of <worldbody>."""
    tree = BodyTree(compiler, option, defaults, read_meshes(root, compiler, defaults), left_out)
    _reserve(root, tree)
    for world in root.every("worldbody"):
        for child, frame, childclass in _parts(world, Pose(), world.text("childclass", MAIN), tree):
            if child.tag == "body":
                _body(child, WORLD, frame, childclass, tree)
            elif child.tag in ("joint", "freejoint", "inertial"):
                raise child.problem("joints and inertials are not supported in the world body", expected="them in a <body>")
            elif child.tag == "site":
                _site(child, WORLD, frame, childclass, tree)
            elif child.tag == "geom":
                _collides(child, childclass, tree)
    if not tree.links:
        raise ModelError("no bodies in this file", place=root.place(), expected="at least one <body> in <worldbody>")
    tree.links = [_with_mass(link, tree) for link in tree.links]
    return tree


def _reserve(root: XmlElement, tree: BodyTree) -> None:
    """Reserve the names in the file before names are generated."""
    waiting = [*root.every("worldbody")]
    while waiting:
        element = waiting.pop()
        waiting += [child for child in element.children if child.tag in ("body", "frame")]
        if element.tag == "body" and element.name == WORLD:
            raise element.problem("the name of the world", "name", found=WORLD, expected="another name")
        for child in element.children:
            if child.tag in ("joint", "freejoint") and child.name:
                _unique_name(child.name, child, tree.joint_names)
            if child.tag == "body" and child.name:
                _unique_name(child.name, child, tree.names)


def _parts(element: XmlElement, frame: Pose, childclass: str, tree: BodyTree) -> Iterator[tuple[XmlElement, Pose, str]]:
    """Yield the children of an element and of the frames in it, with the pose of their frame in the body and their class."""
    for child in element.children:
        if child.tag in _IGNORED:
            tree.left_out.add(_IGNORED[child.tag], child, f"<{child.tag}> is not supported")
        elif child.tag in _NOT_SUPPORTED:
            raise child.problem(f"<{child.tag}> is not supported", hint=_NOT_SUPPORTED[child.tag])
        elif child.tag == "frame":
            class_name = child.text("childclass", childclass)
            tree.defaults.check(class_name, child, "childclass")
            yield from _parts(child, compose(frame, placement(child, tree.compiler)), class_name, tree)
        else:
            yield child, frame, childclass


# bodies ---------------------------------------------------------------------------------------------------------------

def _body(element: XmlElement, parent: str, frame: Pose, childclass: str, tree: BodyTree) -> None:
    outer, tree.compiler = tree.compiler, compiler_of(element, tree.compiler)
    tree.bodies += 1
    check_known(element, _BODY)
    tree.left_out.add_numbers("gravcomp", element, "gravcomp", "compensation of gravity is not supported")
    if element.switch("mocap", False):
        tree.count("mocap bodies, which do not move")
    childclass = element.text("childclass", childclass)
    tree.defaults.check(childclass, element, "childclass")
    name = element.name or _unique_name(f"body{tree.bodies}", element, tree.names)
    tree.compilers[name] = tree.compiler
    parts = list(_parts(element, Pose(), childclass, tree))
    home = compose(frame, placement(element, tree.compiler))
    joints = [(tree.defaults.of(child, class_name, "joint") if child.tag == "joint" else child, at, class_name)
              for child, at, class_name in parts if child.tag in ("joint", "freejoint")]
    tree.at_start[name] = compose(tree.at_start[parent], home)
    if not joints and parent in tree.still:
        tree.still.add(name)
    _attach(name, element, parent, home, joints, tree)
    tree.links.append(Link(name, place=element.place()))
    tree.geoms[name] = [(_collides(child, class_name, tree), at) for child, at, class_name in parts if child.tag == "geom"]
    tree.mass[name] = _mass(name, parts, tree)
    for child, at, class_name in parts:
        if child.tag == "site":
            _site(child, name, at, class_name, tree)
        elif child.tag == "body":
            _body(child, name, at, class_name, tree)
        elif child.tag not in ("joint", "freejoint", "inertial", "geom", "camera", "light"):
            raise child.problem("unknown element", found=f"<{child.tag}>", expected="an element of a body")
    tree.compiler = outer


def _mass(name: str, parts: Sequence[Any], tree: BodyTree) -> Mass:
    """Return the mass of a body: of its <inertial>, or of its geoms (`Compiler.inertia_from_geoms`)."""
    compiler, mass = tree.compiler, Mass()
    inertials = [(child, at) for child, at, _ in parts if child.tag == "inertial"]
    if len(inertials) > 1:
        raise inertials[1][0].problem("more than one <inertial>", expected="one")
    if compiler.inertia_from_geoms or (compiler.inertia_from_geoms is None and not inertials):
        mass = _of_geoms(name, tree)
    if inertials and not mass.mass:
        child, at = inertials[0]
        check_known(child, _INERTIAL)
        mass = of_inertial(child, compiler).seen_from(at)
    return bounded(mass, compiler)


def _of_geoms(name: str, tree: BodyTree) -> Mass:
    low, high = tree.compiler.groups
    counted = [(geom, at) for geom, at in tree.geoms[name] if low <= geom.number("group", 0.0) <= high]
    if name in tree.still and tree.compiler.total_mass is None and any(is_mesh(geom) for geom, _ in counted):
        tree.count("masses of meshes that do not move")
        return Mass()
    return total([of_geom(geom, tree.compiler, tree.meshes.mass_of).seen_from(at) for geom, at in counted])


def _with_mass(link: Link, tree: BodyTree) -> Link:
    mass, factor = tree.mass.get(link.name, Mass()), 1.0
    if tree.compiler.total_mass is not None:
        factor = tree.compiler.total_mass / (math.fsum(body.mass for body in tree.mass.values()) or 1.0)
    return replace(link, mass=factor * mass.mass, com=mass.com, inertia=inertia_of(factor * x for x in mass.inertia))


def _site(element: XmlElement, link: str, frame: Pose, childclass: str, tree: BodyTree) -> None:
    """Add a named site as a massless link that is welded to its body."""
    if not element.name:
        return
    site = tree.defaults.of(element, childclass)
    at = compose(frame, placement(site, tree.compiler))
    if element.name in tree.site:
        raise element.problem("another site has the same name", "name", found=element.name)
    tree.site[element.name] = link, at
    name = _unique_name(element.name, element, tree.names)
    _weld(f"{name}_site", element, link, name, at, tree)
    tree.links.append(Link(name, place=element.place()))
    tree.at_start[name] = compose(tree.at_start[link], at)


def _collides(element: XmlElement, childclass: str, tree: BodyTree) -> XmlElement:
    """Return a geom with the attributes of its class. It is counted if it may touch others."""
    geom = tree.defaults.of(element, childclass)
    if geom.number("contype", 1.0) or geom.number("conaffinity", 1.0):
        tree.count("contacts of geoms")
    return geom


# joints ---------------------------------------------------------------------------------------------------------------

def _attach(name: str, element: XmlElement, parent: str, home: Pose, joints: Sequence[Any], tree: BodyTree) -> None:
    """Add the joints between `parent` and the link `name`, whose pose at the start is `home`."""
    if not joints:
        _weld(f"{name}_fixed", element, parent, name, home, tree)
        return
    origin, anchor = home, (0.0, 0.0, 0.0)                            # of the next joint; of the last, in the body
    for k, (joint, frame, _) in enumerate(joints):
        new_joint = _joint(joint, f"{name}_joint" + (f"{k + 1}" if len(joints) > 1 else ""), frame, tree)
        if new_joint.type == "free":
            _check_free(joint, parent, len(joints))
            tree.joints.append(replace(new_joint, parent=parent, child=name))
            return
        at = anchor if new_joint.type == "prismatic" else _anchor(joint, frame)
        origin = compose(compose(origin, Pose(translation=minus(at, anchor))), _reference_motion(new_joint, tree))
        anchor, last = at, k == len(joints) - 1
        child = name if last and not any(anchor) else _unique_name(new_joint.name, joint, tree.names)
        tree.joints.append(replace(new_joint, parent=parent, child=child, origin=origin))
        if child != name:
            tree.links.append(Link(child, place=joint.place()))
        parent, origin = child, Pose()
    if any(anchor):
        _weld(f"{name}_frame", element, parent, name, Pose(translation=minus((0.0, 0.0, 0.0), anchor)), tree)


def _weld(name: str, element: XmlElement, parent: str, child: str, origin: Pose, tree: BodyTree) -> None:
    name = _unique_name(name, element, tree.joint_names)
    tree.joints.append(Joint(name, "fixed", parent, child, origin, place=element.place()))


def _anchor(joint: XmlElement, frame: Pose) -> Vector:
    return compose(frame, Pose(translation=joint.vector("pos", (0.0, 0.0, 0.0)))).translation


def _reference_motion(joint: Joint, tree: BodyTree) -> Pose:
    """Return the motion of the joint by minus its `ref`, so that the coordinate is that of MuJoCo."""
    ref = tree.ref.get(joint.name, 0.0)
    if not ref:
        return Pose()
    axis, = joint.axes
    return Pose(translation=vector(-ref * x for x in axis)) if joint.type == "prismatic" else Pose(axis_rotation(axis, -ref))


def _check_free(joint: XmlElement, parent: str, count: int) -> None:
    if count > 1 or parent != WORLD:
        raise joint.problem("a free joint must be the only joint of its body, which must be a child of the world",
                            expected="other joints" if parent != WORLD else "one joint")


def _joint(joint: XmlElement, name: str, frame: Pose, tree: BodyTree) -> Joint:
    """Return the joint without its parent and child."""
    check_known(joint, _JOINT)
    kind = "free" if joint.tag == "freejoint" else joint.choice("type", _TYPES, "hinge")
    name = joint.name or _unique_name(name, joint, tree.joint_names)
    scale = tree.compiler.angle if kind in ("hinge", "ball") else 1.0
    coordinate = _coordinate(joint, name, kind, scale, tree)
    if kind == "free":
        _check_alignment(joint, tree.compiler)
        return Joint(name, "free", "", "", coordinates=(coordinate,) * 6, place=joint.place())
    if kind == "ball":
        return Joint(name, "ball", "", "", coordinates=(coordinate,) * 3, place=joint.place())
    axis = rotate(frame, unit(joint.vector("axis", (0.0, 0.0, 1.0)), joint, "axis"))
    tree.ref[name] = joint.number("ref", 0.0) * scale
    limited = math.isfinite(coordinate.lower)
    type_ = "prismatic" if kind == "slide" else "revolute" if limited else "continuous"
    return Joint(name, type_, "", "", axes=(axis,), coordinates=(coordinate,), place=joint.place())


def _coordinate(joint: XmlElement, name: str, kind: str, scale: float, tree: BodyTree) -> Coordinate:
    """Return the limits and passive forces of each coordinate."""
    option = tree.option
    for key in ("springdamper", "springyield"):
        tree.left_out.add_numbers("springs", joint, key, f"{key} is not supported", "stiffness and damping")
    values = {"armature": joint.number("armature", 0.0), "damping": option.dampers * joint.constant("damping"),
              "friction": option.friction * joint.number("frictionloss", 0.0),
              "stiffness": option.springs * joint.constant("stiffness")}
    if kind == "free":
        _leave_out("free-joints", joint, values, ("armature", "friction"), tree)
    if kind in ("ball", "free"):
        _leave_out("springs", joint, values, ("stiffness",), tree)
    else:
        values["rest"] = joint.number("springref", 0.0) * scale
    lower, upper = joint.vector("range", (0.0, 0.0))
    if _limited(joint, "limited", lower < upper, tree) and option.limits:
        if kind in ("ball", "free"):
            tree.count("limits of ball joints")
        elif not lower < upper:
            if joint.text("range") is None:
                raise joint.problem("the joint is limited, but has no range", "limited", expected="a range, or limited=\"false\"")
            raise joint.problem("the limits are swapped", "range", found=joint.text("range"), expected="the lower limit first")
        else:
            values |= {"lower": lower * scale, "upper": upper * scale}
    min_force, max_force = joint.vector("actuatorfrcrange", (0.0, 0.0))
    if _limited(joint, "actuatorfrclimited", min_force < max_force, tree):
        tree.force_ranges[name] = min_force, max_force
        values["effort"] = max(abs(min_force), abs(max_force))
    return Coordinate(**values)


def _limited(joint: XmlElement, key: str, has_range: bool, tree: BodyTree) -> bool:
    """Return whether a limit applies; `auto` means that it does if a range is given."""
    setting = joint.choice(key, ("true", "false", "auto"), "auto")
    if setting == "auto" and has_range and not tree.compiler.autolimits:
        raise joint.problem(f"a range without {key}, and autolimits is false", key, expected="true or false")
    return setting == "true" or (setting == "auto" and has_range)


def _leave_out(part: str, joint: XmlElement, values: dict[str, float], keys: tuple[str, ...], tree: BodyTree) -> None:
    """Set values of a ball or free joint to zero, which a `Robot` does not have. Raise unless they are left out."""
    kind = "free" if joint.tag == "freejoint" else joint.text("type")
    for key in keys:
        if values[key]:
            attribute = {"friction": "frictionloss"}.get(key, key)
            expected = "0, or a <freejoint>, which takes no values of default classes" if kind == "free" else "0"
            tree.left_out.add(part, joint, f"a {kind} joint has no {attribute}", attribute, expected)
            values[key] = 0.0


def _check_alignment(joint: XmlElement, compiler: Compiler) -> None:
    setting = joint.choice("align", ("true", "false", "auto"), "auto")
    if setting == "true" or (setting == "auto" and compiler.align_free):
        raise joint.problem("a free body whose frame is moved to its centre of mass is not supported", "align", expected="false")
