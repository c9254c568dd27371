"""URDF -> Robot. The file is first checked element by element with its lines, then read by urdf-parser-py.

urdf-parser-py alone accepts entities, reports no lines, prints to stderr and stops at tags that real files contain. So it reads
a tree of the elements that it supports, in which all attributes are checked and the defaults of the URDF format are added.
Files of meshes and `package://` are not searched for: dynamics does not need them.
"""
from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any
from xml.etree import ElementTree

from liedyn.errors import ElementPlace, LiedynWarning, ModelError, Place, escape_nonprintable, nearest
from liedyn.io.atomic_output import stem_of
from liedyn.io.robots.robot_schema import read_limit
from liedyn.io.robots.visual_shapes import visuals_of_urdf
from liedyn.io.robots.xacro_files import expanded_xacro, is_xacro
from liedyn.io.robots.xml_elements import XACRO_HINT, XmlElement, is_finite_number, read_urdf_tree
from liedyn.io.yaml_nodes import NUMBER
from liedyn.model.description import Coordinate, Joint, Mimic, Robot
from liedyn.model.element_values import element_location
from liedyn.model.links import Link, Pose, vector
from liedyn.model.mass_properties import rotated_inertia

_TYPES = {"revolute": "revolute", "continuous": "continuous", "prismatic": "prismatic", "fixed": "fixed",
          "floating": "free", "planar": "planar"}
_KNOWN_TAGS = {"link": ("inertial", "visual", "collision"),
               "joint": ("origin", "parent", "child", "axis", "limit", "dynamics", "mimic", "safety_controller", "calibration"),
               "inertial": ("origin", "mass", "inertia")}
# attributes by tag, with their default (None: required) and how many numbers they hold (0: a name)
_ATTRIBUTES: dict[str, dict[str, tuple[str | None, int]]] = {
    "origin": {"xyz": ("0 0 0", 3), "rpy": ("0 0 0", 3)},
    "mass": {"value": (None, 1)},
    "inertia": {key: (None, 1) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")},
    "axis": {"xyz": ("1 0 0", 3)},
    "parent": {"link": (None, 0)},
    "child": {"link": (None, 0)},
    "limit": {"lower": ("0", 1), "upper": ("0", 1), "velocity": ("inf", 1), "effort": ("inf", 1),
              "acceleration": ("inf", 1), "deceleration": ("inf", 1), "jerk": ("inf", 1)},
    "dynamics": {"damping": ("0", 1), "friction": ("0", 1)},
    "mimic": {"joint": (None, 0), "multiplier": ("1", 1), "offset": ("0", 1)},
}
_NO_DYNAMICS = ("visual", "collision", "safety_controller", "calibration")
_EXTENSIONS = {("origin", "quat_xyzw"): "write the rotation as rpy"}       # attributes that other programs read, and what to do
_SIMILAR = 0.8                           # ratio of `difflib`: a name that resembles a known one that much is misspelled
# tags of the parts of a link or joint
_PARTS = {"link": {"mass": "mass", "com": "origin", "inertia": "inertia"},
          "joint": {"origin": "origin", "parent": "parent", "child": "child", "axis": "axis", "limits": "limit",
                    "damping": "dynamics", "friction": "dynamics", "mimic": "mimic"}}
_NOT_FINITE = re.compile(r"[-+]*((inf|infinity|nan)\Z|nan\()", re.IGNORECASE)


def read_urdf(path: str | os.PathLike[str], xacro_args: Mapping[str, object] = MappingProxyType({})) -> Robot:
    """Return the robot of a URDF or xacro file, with `base` fixed and the warnings of reading it. It is not validated.

    xacro_args  values of the arguments of a xacro file; see `expanded_xacro`

    Raises ModelError with file, line and element for a file that is not XML, a DOCTYPE, an unexpanded xacro file, missing or
    wrong attributes, and an unknown joint type. `safety_controller` and `calibration` are ignored. Of the limits of a continuous
    joint, `lower` and `upper` are not read; missing `lower` and `upper` are 0, as in the specification of the format.
    """
    file = os.fspath(path)
    if xacro_args and not is_xacro(file):
        raise ModelError("xacro arguments apply only to files with the ending .xacro", place=Place(file),
                         found=", ".join(xacro_args))
    return urdf_robot(read_urdf_tree(path, expanded_xacro(path, xacro_args) if is_xacro(file) else None), file)


def urdf_robot(root: XmlElement, file: str) -> Robot:
    """Return the robot of the elements of a URDF, as `read_urdf`. file: its source."""
    reader = _Checker()
    links, joints = ([reader.check(element) for element in root.every(tag)] for tag in ("link", "joint"))
    motion_limits = [_take_motion_limits(tree) for tree, _ in joints]
    parsed = _parse(root.text("name") or stem_of(file), [tree for tree, _ in links + joints])
    described, warnings = _without_unknown_mimics(
        tuple(_joint(joint, place, limits)
              for joint, (_, place), limits in zip(parsed.joints, joints, motion_limits, strict=True)))
    visuals, of_shapes = visuals_of_urdf(root)
    return Robot(name=parsed.name, joints=described,
                 links=tuple(_link(link, place) for link, (_, place) in zip(parsed.links, links, strict=True)),
                 actuated=_actuated(root), warnings=(*root.warnings, *reader.warnings, *warnings, *of_shapes), source=file,
                 visuals=visuals)


def _without_unknown_mimics(joints: tuple[Joint, ...]) -> tuple[tuple[Joint, ...], list[LiedynWarning]]:
    """Return the joints without mimics of joints that do not exist, which published files have, and a warning for each."""
    names = {joint.name for joint in joints}
    unknown = [joint for joint in joints if joint.mimic and joint.mimic.joint not in names]
    warnings = [LiedynWarning("mimic", f"mimics {joint.mimic.joint}, which does not exist; it moves independently",
                              place=replace(element_location(joint, "mimic"), key=joint.name))
                for joint in unknown if joint.mimic and joint.labels]
    return tuple(replace(joint, mimic=None) if joint in unknown else joint for joint in joints), warnings


def _actuated(root: XmlElement) -> tuple[str, ...]:
    """Return the names of moving joints with a <transmission>, each once. Others of its joints are left out."""
    moving = {joint.text("name") for joint in root.every("joint") if joint.text("type") != "fixed"}
    names = (part.text("name") for part in root.within("transmission") if part.tag == "joint")
    return tuple(dict.fromkeys(name for name in names if name and name in moving))


def _take_motion_limits(joint: ElementTree.Element) -> dict[str, float]:
    """Remove the limits of URDF 1.2 from a checked <joint>, which urdf-parser-py does not read, and return them.

    The smaller one of acceleration and deceleration is the acceleration limit.
    """
    limit = joint.find("limit")
    if limit is None:
        return {}
    acceleration, deceleration, jerk = (read_limit(float(limit.attrib.pop(key)))
                                        for key in ("acceleration", "deceleration", "jerk"))
    return {"acceleration": min(acceleration, deceleration), "jerk": jerk}


def _parse(name: str, elements: list[ElementTree.Element]) -> Any:
    """Return the objects of urdf-parser-py for checked elements."""
    from urdf_parser_py.urdf import URDF
    from urdf_parser_py.xml_reflection.core import Path as XmlPath
    tree = ElementTree.Element("robot", {"name": name})
    tree.extend(elements)
    return URDF.from_xml(tree, XmlPath("robot"))


class _Checker:
    """Checks links and joints, copies the parts that affect dynamics, and warns about ignored parts."""

    def __init__(self) -> None:
        self.warnings: list[LiedynWarning] = []

    def check(self, element: XmlElement) -> tuple[ElementTree.Element, ElementPlace]:
        """Return the checked copy of a <link> or <joint>, and its location."""
        name = element.text("name")
        if not name:
            raise ModelError(f"<{element.tag}> has no name", place=Place(element.file, element.line))
        place = Place(element.file, element.line, f'{element.tag} "{escape_nonprintable(name)}"')
        copy = ElementTree.Element(element.tag, {"name": name})
        parts = {part.tag: part for part in self.known_children(element, name)}
        if element.tag == "joint":
            copy.set("type", self.joint_type(element, place))
            parts = self.joint_parts(parts, copy.attrib["type"], place)
            copy.extend([self.attributes(part, name, place) for part in parts.values()])
        elif "inertial" in parts:
            copy.append(self.inertial(parts["inertial"], name, place))
            parts = {part.tag: part for part in reversed(parts["inertial"].children)}
        return copy, _element_place(place, element.tag, parts)

    def known_children(self, element: XmlElement, name: str) -> list[XmlElement]:
        """Return the first child of each known tag. Warn about the other children."""
        known, present = _KNOWN_TAGS[element.tag], [child.tag for child in element.children]
        first: dict[str, XmlElement] = {}
        for child in element.children:
            if child.tag not in known:
                hint = _misspelled(child.tag, known, present)
                message = f"<{child.tag}> in <{element.tag}> ignored: not part of URDF"
                if hint or (child.tag in _ATTRIBUTES and child.tag != "origin"):         # misspelled, or misplaced
                    self.warn("dynamics-not-read", name, message, child, hint)
                else:
                    self.warn("unknown-tag", name, message, child)
            elif child.tag in first and child.tag not in _NO_DYNAMICS:
                self.warn("repeated-tag", name, f"duplicate <{child.tag}> in <{element.tag}>; the first one is used", child)
            else:
                first.setdefault(child.tag, child)
        return [child for tag, child in first.items() if tag in _ATTRIBUTES or tag == "inertial"]

    def joint_type(self, element: XmlElement, place: Place) -> str:
        kind = element.text("type")
        if kind not in _TYPES:
            raise ModelError("unknown joint type" if kind else "the joint has no type", place=place, found=kind or None,
                             expected="one of " + ", ".join(_TYPES), hint=nearest((kind or "").strip().lower(), _TYPES))
        return kind

    def joint_parts(self, parts: dict[str, XmlElement], kind: str, place: Place) -> dict[str, XmlElement]:
        """Return the parts that a joint of a type uses. Raise ModelError without a parent or a child."""
        for tag in ("parent", "child"):
            if tag not in parts:
                raise ModelError(f"the joint has no <{tag}>", place=place, expected=f'<{tag} link="…"/>')
        unused = {"fixed": ("dynamics", "axis", "limit"), "floating": ("axis", "limit"), "planar": ("limit",)}.get(kind, ())
        return {tag: part for tag, part in parts.items() if tag not in unused}

    def inertial(self, element: XmlElement, name: str, place: Place) -> ElementTree.Element:
        children = self.known_children(element, name)
        if all(child.tag != "mass" for child in children):
            raise ModelError("<inertial> has no <mass>", place=Place(element.file, element.line, place.key),
                             expected='<mass value="…"/>')
        copy = ElementTree.Element("inertial")
        copy.extend([self.attributes(child, name, place) for child in children])
        return copy

    def attributes(self, element: XmlElement, name: str, place: Place) -> ElementTree.Element:
        """Return a copy of an element with its known attributes, checked, and their defaults."""
        known = _ATTRIBUTES[element.tag]
        copy = ElementTree.Element(element.tag)
        for key, (default, count) in known.items():
            text = element.text(key)
            if text is None:
                if default is None:
                    raise ModelError(f"the attribute {key} is missing", place=_attribute_place(element, key, place),
                                     expected="a number" if count else "a name")
                text = default
                if element.tag == "axis":
                    self.warn("axis-missing", name, f"<axis> has no xyz; using {default}", element)
            elif count:
                _check_numbers(text, count, element, key, place)
            elif not text:
                raise ModelError("the name is empty", place=_attribute_place(element, key, place))
            copy.set(key, text)
        unknown = [key for key in element.attributes if key not in known and ":" not in key and key != "xmlns"]
        for key in unknown[:]:
            if hint := _EXTENSIONS.get((element.tag, key)) or _misspelled(key, known, element.attributes):
                unknown.remove(key)
                self.warn("dynamics-not-read", name, f"{key} of <{element.tag}> ignored: not part of URDF", element, hint)
        if unknown:
            self.warn("unknown-attribute", name, f"{', '.join(unknown)} of <{element.tag}> ignored: not part of URDF", element)
        return copy

    def warn(self, code: str, name: str, message: str, element: XmlElement, hint: str | None = None) -> None:
        self.warnings.append(LiedynWarning(code, message, place=Place(element.file, element.line, name), hint=hint))


def _misspelled(name: str, known: Iterable[str], present: Container[str]) -> str | None:
    """Return a hint if a name that is not read resembles one that is and that is missing."""
    return nearest(name, [option for option in known if option not in present and option not in _NO_DYNAMICS], cutoff=_SIMILAR)


def _attribute_place(element: XmlElement, key: str, place: Place) -> Place:
    return Place(element.file, element.line, f"{place.key}, <{element.tag} {key}>")


def _check_numbers(text: str, count: int, element: XmlElement, key: str, place: Place) -> None:
    words = text.split()
    bad = next((word for word in words if not is_finite_number(word)), "")
    if len(words) == count and not bad:
        return
    attribute_place, expected = _attribute_place(element, key, place), "a number" if count == 1 else f"{count} numbers"
    if len(words) == count and not NUMBER.match(bad) and ("${" in text or "$(" in text):
        raise ModelError("a xacro expression", place=attribute_place, found=text, expected=expected, hint=XACRO_HINT)
    infinite = len(words) == count and (NUMBER.match(bad) or _NOT_FINITE.match(bad))
    raise ModelError("not a finite number" if infinite else "wrong value", place=attribute_place, found=text, expected=expected)


def _element_place(place: Place, tag: str, parts: dict[str, XmlElement]) -> ElementPlace:
    places = {}
    for part, source in _PARTS[tag].items():
        if source in parts:
            attributes = _ATTRIBUTES[source]
            key = f"<{source} {next(iter(attributes))}>" if len(attributes) == 1 else f"<{source}>"
            places[part] = Place(place.file, parts[source].line, f"{place.key}, {key}")
    return ElementPlace(place.file, place.line, place.key, places)


def _pose(origin: Any) -> Pose:
    return Pose() if origin is None else Pose.from_xyz_rpy(origin.xyz, origin.rpy)


def _link(link: Any, place: Place) -> Link:
    inertial = link.inertial
    if inertial is None:
        return Link(link.name, place=place)
    frame, I = _pose(inertial.origin), inertial.inertia
    written = (I.ixx, I.ixy, I.ixz, I.iyy, I.iyz, I.izz) if I is not None else (0.0,) * 6
    return Link(link.name, inertial.mass, frame.translation, rotated_inertia(frame.rotation, written), place=place)


def _joint(joint: Any, place: Place, motion_limits: Mapping[str, float]) -> Joint:
    kind = _TYPES[joint.type]
    axes = (vector(joint.axis or (1.0, 0.0, 0.0)),) if kind in ("revolute", "continuous", "prismatic", "planar") else ()
    passive, limit = joint.dynamics, joint.limit
    values = dict(motion_limits)
    if passive is not None:
        values.update(damping=passive.damping, friction=passive.friction)
    if limit is not None:
        values.update(velocity=read_limit(limit.velocity), effort=read_limit(limit.effort))
        if kind != "continuous":
            values.update(lower=read_limit(limit.lower), upper=read_limit(limit.upper))
    mimic = joint.mimic and Mimic(joint.mimic.joint, joint.mimic.multiplier, joint.mimic.offset)
    described = Joint(joint.name, kind, joint.parent, joint.child, _pose(joint.origin), axes, mimic=mimic, place=place)
    return replace(described, coordinates=(Coordinate(**values),) * len(described.labels))
