"""The part of a URDF file that dynamics needs, as a tree whose elements know their line.

Reads with expat directly: no DOCTYPE (hence no entities), bounded nesting and size, no network, no recursion. What stands
outside links and joints (gazebo, transmission, sensor, ros2_control, material, …), inside `visual` and `collision`, or in
an XML namespace is passed over, but not what xacro would expand.
"""
from __future__ import annotations

import os
from dataclasses import dataclass, field
from xml.parsers import expat

from liedyn.errors import ModelError, Place
from liedyn.io.text_file import read_bytes

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
    file = os.fspath(path)
    reader = _Reader(file)
    try:
        reader.parser.Parse(read_bytes(path, ModelError), True)
    except expat.ExpatError as problem:
        raise ModelError(f"not valid XML: {expat.ErrorString(problem.code)}", place=Place(file, problem.lineno)) from None
    except (LookupError, ValueError) as problem:                    # an encoding that Python does not know
        if isinstance(problem, ModelError):
            raise
        raise ModelError(f"not readable as XML: {problem}", place=Place(file)) from None
    if not any(element.tag == "link" for element in reader.root.children):
        raise ModelError("no links in this robot", place=Place(file, reader.root.line), expected="at least one <link>")
    return reader.root


class _Reader:
    def __init__(self, file: str):
        self.file = file
        self.root: Element | None = None
        self.open: list[Element | None] = []           # None: passed over, with all that it holds
        self.parser = expat.ParserCreate()
        self.parser.StartDoctypeDeclHandler = self.doctype
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end

    def place(self) -> Place:
        return Place(self.file, self.parser.CurrentLineNumber)

    def doctype(self, *_) -> None:
        raise ModelError("a DOCTYPE is not accepted (it may define entities)", place=self.place(), expected="plain XML")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self.open) >= DEEPEST:
            raise ModelError("too deeply nested", place=self.place(), expected=f"at most {DEEPEST} levels")
        element = Element(tag, attributes, self.parser.CurrentLineNumber)
        if not self.open:
            self.check_root(tag)
            self.root = element
        else:
            parent = self.open[-1]
            outside = len(self.open) == 1 and tag not in ("link", "joint")
            inside = parent is None or parent.tag in _PASSED_OVER
            if not inside and tag.startswith("xacro:") and tag not in _NO_PARTS:
                raise ModelError("a xacro macro that is not expanded", place=self.place(), found=f"<{tag}>",
                                 hint=XACRO_HINT)
            if inside or outside or ":" in tag:
                self.open.append(None)
                return
            parent.children.append(element)
        self.open.append(element)

    def end(self, _) -> None:
        self.open.pop()

    def check_root(self, tag: str) -> None:
        if tag != "robot":
            what, expected = "not a URDF file", "<robot>"
            if self.file.lower().endswith(".xml"):
                what, expected = "neither a URDF nor a MuJoCo file", "<robot> or <mujoco>"
            raise ModelError(what, place=self.place(), found=f"<{tag}>", expected=expected, hint=_OTHER_FORMATS.get(tag))
