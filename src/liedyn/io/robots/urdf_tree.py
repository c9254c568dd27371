"""The part of a URDF file that dynamics needs, as a tree whose elements know their line.

What stands outside links and joints (gazebo, transmission, sensor, ros2_control, material, …), inside `visual` and
`collision`, or in an XML namespace is passed over, but not what xacro would expand.
"""
from __future__ import annotations

import os
from dataclasses import dataclass, field

from liedyn.errors import ModelError, Place
from liedyn.io.robots.xml_reader import XmlReader

DEEPEST = 50                        # levels of nesting
_PASSED_OVER = ("visual", "collision")
_NO_PARTS = ("xacro:property", "xacro:arg")
XACRO_HINT = "expand xacro first: xacro robot.urdf.xacro > robot.urdf"
_OTHER_FORMATS = {"sdf": "SDF files are not supported", "mujoco": "give a MuJoCo file the ending .xml",
                  "COLLADA": "COLLADA files are not supported"}


@dataclass(slots=True, eq=False)
class Element:
    tag: str
    attributes: dict[str, str]
    line: int
    children: list[Element] = field(default_factory=list)


def read_urdf_tree(path: str | os.PathLike) -> Element:
    """The <robot> element of the file `path` with its links and joints; raises ModelError with the line."""
    root = _Reader(path).read()
    if not any(element.tag == "link" for element in root.children):
        raise ModelError("no links in this robot", place=Place(os.fspath(path), root.line), expected="at least one <link>")
    return root


class _Reader(XmlReader):
    deepest = DEEPEST

    def begin(self, tag: str, attributes: dict[str, str]) -> Element | None:
        element = Element(tag, attributes, self.line)
        if not self.open:
            self.check_root(tag)
            return element
        parent = self.open[-1]
        outside = len(self.open) == 1 and tag not in ("link", "joint")
        inside = parent is None or parent.tag in _PASSED_OVER
        if not inside and tag.startswith("xacro:") and tag not in _NO_PARTS:
            raise ModelError("a xacro macro that is not expanded", place=self.place(), found=f"<{tag}>", hint=XACRO_HINT)
        if inside or outside or ":" in tag:
            return None
        parent.children.append(element)
        return element

    def check_root(self, tag: str) -> None:
        if tag != "robot":
            what, expected = "not a URDF file", "<robot>"
            if self.file.lower().endswith(".xml"):
                what, expected = "neither a URDF nor a MuJoCo file", "<robot> or <mujoco>"
            raise ModelError(what, place=self.place(), found=f"<{tag}>", expected=expected, hint=_OTHER_FORMATS.get(tag))
