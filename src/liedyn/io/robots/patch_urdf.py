"""Changes of a robot in the text of the URDF file from which it was read. All else in the file stays as it is.

Two texts of `write_urdf`, of the robot of the file and of the changed one, are compared. Where they differ, attributes are
replaced, and elements added or removed, in the file. The result is read back; it must be the changed robot.
"""
from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from xml.etree import ElementTree
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

import numpy as np

from liedyn.errors import ModelError
from liedyn.io.robots.urdf import read_urdf
from liedyn.io.robots.write_urdf import as_urdf, urdf
from liedyn.io.robots.xacro_files import is_xacro
from liedyn.io.robots.xml_syntax import repair
from liedyn.io.yaml_nodes import read_bytes
from liedyn.model.description import Robot
from liedyn.model.links import IDENTITY
from liedyn.model.model import build

_ENCODINGS = ("utf-8", "utf8", "us-ascii", "ascii")
_MARK = b"\xef\xbb\xbf"                       # byte order mark
_SAME_ROTATION = 1e-12                        # difference of entries of rotations that were written as angles
_FILES = ("mesh", "texture")                  # tags whose `filename` is relative to the file
_FIRST_PARTS = ("inertial",)                  # are added at the beginning of an element


def patched_urdf(robot: Robot, folder: Path | None = None) -> str | None:
    """Return the text of the URDF file of a robot with the changes of the robot; None if the file cannot be used.

    robot   what a URDF can describe of a valid robot: see `as_urdf`
    folder  of the file that is to be written: relative paths of meshes are adapted. None: they stay as they are
    """
    source = Path(robot.source or "")
    if not source.is_file() or is_xacro(source):
        return None
    try:
        text = read_bytes(source, ModelError)
        original = as_urdf(build(read_urdf(source)).description).robot
        file = _SourceText.read(text)
    except (ModelError, UnicodeDecodeError):
        return None
    if file is None:
        return None
    file.patch(file.root, *(ElementTree.fromstring(urdf(x)) for x in (original, robot)))
    if folder is not None and folder.resolve() != source.parent.resolve():
        file.move_paths(source.parent, folder)
    patched = file.text()
    return patched if _reads_back(patched, robot) else None


def _reads_back(text: str, robot: Robot) -> bool:
    """Return whether a text is a URDF of the robot, except for rounding of rotations."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "robot.urdf"
        path.write_text(text, encoding="utf-8", newline="")
        try:
            models = build(read_urdf(path)), build(replace(robot, loops=(), couplings=()))
        except ModelError:
            return False
    read, expected = (as_urdf(model.description).robot for model in models)
    rotations = [np.array([joint.origin.rotation for joint in sorted(x.joints, key=lambda joint: joint.name)])
                 for x in (read, expected)]
    return (_without_rotations(read) == _without_rotations(expected) and models[0].joint_names == models[1].joint_names
            and bool((np.abs(rotations[0] - rotations[1]) <= _SAME_ROTATION).all()))


def _without_rotations(robot: Robot) -> tuple[object, ...]:
    """Return name, actuated joints, and links and joints by name, the joints without the rotations of their origins."""
    return (robot.name, robot.actuated, {link.name: link for link in robot.links},
            {joint.name: replace(joint, origin=replace(joint.origin, rotation=IDENTITY)) for joint in robot.joints})


# The text ---------------------------------------------------------------------------------------------------------------

@dataclass(slots=True)
class _Span:
    """An element in a text: [start, head_end) is its start tag, [tail, end) its end tag, which is empty after `<tag/>`."""

    tag: str
    attributes: dict[str, str]
    start: int
    head_end: int = 0
    tail: int = 0
    end: int = 0
    children: list[_Span] = field(default_factory=list)

    def find(self, key: tuple[str, str | None]) -> _Span | None:
        """Return the first child with a tag and a name; the name None fits all."""
        tag, name = key
        return next((child for child in self.children if child.tag == tag
                     and (name is None or name in (child.attributes.get("name"), child.drives()))), None)

    def drives(self) -> str | None:
        """Return `<joint>_transmission` of a <transmission> of one joint, which is its name in `write_urdf`."""
        joints = [child.attributes.get("name") for child in self.children if child.tag == "joint"]
        return f"{joints[0]}_transmission" if self.tag == "transmission" and len(joints) == 1 else None

    def walk(self) -> Iterator[_Span]:
        """Yield the element and all elements in it."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting += element.children


class _SourceText:
    """A text, its elements, and edits of it."""

    def __init__(self, mark: bytes, text: bytes, root: _Span):
        self.mark, self.source, self.root = mark, text, root
        self.edits: list[tuple[int, int, bytes]] = []

    @classmethod
    def read(cls, text: bytes) -> _SourceText | None:
        """Return the text with its elements; None for a text in another encoding than UTF-8."""
        text.decode("utf-8")
        mark, text = (_MARK, text[len(_MARK):]) if text.startswith(_MARK) else (b"", text)
        try:
            encoding, root = _elements(text)
        except expat.ExpatError:
            text, _ = repair(text)
            encoding, root = _elements(text)
        return cls(mark, text, root) if (encoding or "utf-8").lower() in _ENCODINGS else None

    def text(self) -> str:
        """Return the text with all edits."""
        pieces, at = [self.mark], 0
        for start, end, new in sorted(self.edits, key=lambda edit: edit[:2]):
            pieces += [self.source[at:start], new]
            at = end
        return b"".join([*pieces, self.source[at:]]).decode("utf-8")

    # edits ------------------------------------------------------------------------------------------------------------

    def patch(self, element: _Span, old: ElementTree.Element, new: ElementTree.Element) -> None:
        """Edit an element that means `old` so that it means `new`."""
        changed = {key: value for key, value in new.attrib.items() if old.get(key) != value}
        if element.tag == "inertia" and changed:
            changed = dict(new.attrib)                         # in axes of the link, see `_patch_parts`
        for key, value in changed.items():
            self.set_attribute(element, key, value)
        for key in old.attrib.keys() - new.attrib.keys():
            self.remove_attribute(element, key)
        self._patch_parts(element, old, new)

    def _patch_parts(self, element: _Span, old: ElementTree.Element, new: ElementTree.Element) -> None:
        olds, news = ({_key(child): child for child in parent} for parent in (old, new))
        added = []
        for key, child in news.items():
            present = element.find(key)
            if key in olds and ElementTree.tostring(olds[key]).strip() == ElementTree.tostring(child).strip():
                continue
            if present is None:
                added.append(child)
            else:
                self.patch(present, olds.get(key, ElementTree.Element(child.tag)), child)
        for key in olds.keys() - news.keys():
            removed = element.find(key)
            if removed is not None:
                self.remove(removed)
        turned = element.find(("origin", None))
        if element.tag == "inertial" and turned is not None and _differ(old.find("inertia"), new.find("inertia")):
            self.set_attribute(turned, "rpy", "0 0 0")
        if added:
            self.add(element, added)

    def set_attribute(self, element: _Span, key: str, value: str) -> None:
        """Replace the value of an attribute, or add it."""
        written, quoted = self._attribute(element, key), _encoded(quoteattr(value))
        if written is not None:
            self.edits.append((*written.span(2), quoted))
        else:
            at = self._end_of_attributes(element)
            self.edits.append((at, at, b" " + key.encode() + b"=" + quoted))

    def remove_attribute(self, element: _Span, key: str) -> None:
        """Remove an attribute, if it is there."""
        written = self._attribute(element, key)
        if written is not None:
            self.edits.append((*written.span(0), b""))

    def remove(self, element: _Span) -> None:
        """Remove an element and the blanks before it."""
        start = element.start
        while self.source[start - 1:start] in (b" ", b"\t"):
            start -= 1
        if self.source[start - 1:start] == b"\n":
            start -= 1 + (self.source[start - 2:start - 1] == b"\r")
        self.edits = [edit for edit in self.edits if not element.start <= edit[0] < element.end]
        self.edits.append((start, element.end, b""))

    def add(self, element: _Span, children: list[ElementTree.Element]) -> None:
        """Add children at the end of an element, or at its beginning, in lines with its indentation."""
        line = b"\r\n" if b"\r\n" in self.source else b"\n"
        outer = self._indentation(element)
        texts = []
        for child in children:
            ElementTree.indent(child, "  ")
            lines = ElementTree.tostring(child, encoding="unicode", short_empty_elements=True).strip().replace(" />", "/>")
            texts.append(b"".join(line + outer + b"  " + _encoded(part) for part in lines.splitlines()))
        content = b"".join(texts)
        if element.tail == element.head_end == element.end:
            at = self._end_of_attributes(element)
            self.edits.append((at, element.end, b">" + content + line + outer + b"</" + element.tag.encode() + b">"))
        elif children[0].tag in _FIRST_PARTS:
            self.edits.append((element.head_end, element.head_end, content))
        else:
            at = element.tail
            while self.source[at - 1:at].isspace():
                at -= 1
            self.edits.append((at, at, content))

    def move_paths(self, source: Path, folder: Path) -> None:
        """Adapt relative paths of files to another folder."""
        for element in self.root.walk():
            name = element.attributes.get("filename", "")
            if element.tag in _FILES and name and ":" not in name and not name.startswith("/"):
                path = os.path.relpath(source / name, folder)
                self.set_attribute(element, "filename", path.replace(os.sep, "/"))

    # places -----------------------------------------------------------------------------------------------------------

    def _attribute(self, element: _Span, key: str) -> re.Match[bytes] | None:
        """Return the match of an attribute with the blank before it, whose second group is the value with its quotes."""
        at = element.start
        pattern = re.compile(rb"""\s+([^\s=<>"'/]+)\s*=\s*("[^"]*"|'[^']*')""")
        while (attribute := pattern.search(self.source, at, element.head_end)) is not None:
            if attribute[1] == key.encode():
                return attribute
            at = attribute.end()
        return None

    def _end_of_attributes(self, element: _Span) -> int:
        """Return the position after the last attribute in the start tag."""
        at = element.head_end - (2 if self.source[element.head_end - 2:element.head_end] == b"/>" else 1)
        while self.source[at - 1:at].isspace():
            at -= 1
        return at

    def _indentation(self, element: _Span) -> bytes:
        line = self.source[self.source.rfind(b"\n", 0, element.start) + 1:element.start]
        return line if not line.strip() else b""


def _key(element: ElementTree.Element) -> tuple[str, str | None]:
    """Return tag and name: parts of links and joints have no names, but for materials, which are not written here."""
    return element.tag, element.get("name")


def _differ(old: ElementTree.Element | None, new: ElementTree.Element | None) -> bool:
    return new is not None and (old is None or old.attrib != new.attrib)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8")


def _elements(text: bytes) -> tuple[str | None, _Span]:
    """Return the declared encoding and the root element of a well-formed text."""
    parser = expat.ParserCreate()
    open: list[_Span] = []
    roots: list[_Span] = []
    encodings: list[str | None] = [None]

    def start(tag: str, attributes: dict[str, str]) -> None:
        element = _Span(tag, attributes, parser.CurrentByteIndex)
        element.head_end = _end_of_tag(text, element.start)
        (open[-1].children if open else roots).append(element)
        open.append(element)

    def end(_: str) -> None:
        element = open.pop()
        element.tail = element.end = element.head_end
        if not text.endswith(b"/>", element.start, element.head_end):
            element.tail = parser.CurrentByteIndex
            element.end = text.index(b">", element.tail) + 1

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.XmlDeclHandler = lambda _version, encoding, _standalone: encodings.append(encoding)
    parser.Parse(text, True)
    return encodings[-1], roots[0]


def _end_of_tag(text: bytes, start: int) -> int:
    """Return the position after the `>` that closes a start tag; values of attributes may contain `>`."""
    return re.compile(rb"""(?:[^>"']|"[^"]*"|'[^']*')*>""").match(text, start).end()      # type: ignore[union-attr]
