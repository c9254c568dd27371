"""The links, joints and materials of a URDF file as a tree whose elements have a line, for dynamics and for shapes.

What stands elsewhere (gazebo, transmission, sensor, ros2_control, …) is passed over, and so are elements with a namespace
prefix, whether or not it is declared. Elements that xacro would expand are an error. A default namespace has no effect.
"""
from __future__ import annotations

import os
from xml.etree import ElementTree

from liedyn.errors import ModelError, Place
from liedyn.io.robots.xml_reader import XmlReader

DEEPEST = 50                        # levels of nesting
_READ = ("link", "joint", "material")             # children of <robot>
_SHAPES = ("visual", "collision")
_NO_PARTS = ("xacro:property", "xacro:arg")
XACRO_HINT = "expand xacro first: xacro robot.urdf.xacro > robot.urdf"
_OTHER_FORMATS = {"sdf": "SDF files are not supported", "mujoco": "give a MuJoCo file the ending .xml",
                  "COLLADA": "COLLADA files are not supported"}


class Element(ElementTree.Element):
    """An element with its line in the file."""

    def __init__(self, tag: str, attributes: dict[str, str], line: int):
        super().__init__(tag, attributes)
        self.line = line


def read_urdf_tree(path: str | os.PathLike) -> Element:
    """The <robot> element of the file `path` with its links, joints and materials; raises ModelError with the line."""
    root = _Reader(path).read()
    if not any(element.tag == "link" for element in root):
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
        outside = len(self.open) == 1 and tag not in _READ
        in_shape = parent is None or any(element.tag in _SHAPES for element in self.open)
        if not in_shape and tag.startswith("xacro:") and tag not in _NO_PARTS:
            raise ModelError("a xacro macro that is not expanded", place=self.place(), found=f"<{tag}>", hint=XACRO_HINT)
        if parent is None or outside or ":" in tag:
            return None
        parent.append(element)
        return element

    def check_root(self, tag: str) -> None:
        if tag != "robot":
            what, expected = "not a URDF file", "<robot>"
            if self.file.lower().endswith(".xml"):
                what, expected = "neither a URDF nor a MuJoCo file", "<robot> or <mujoco>"
            raise ModelError(what, place=self.place(), found=f"<{tag}>" if tag in _OTHER_FORMATS else None, expected=expected,
                             hint=_OTHER_FORMATS.get(tag))
