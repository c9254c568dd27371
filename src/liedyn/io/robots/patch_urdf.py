"""Changes of a robot in the text of the URDF file from which it was read. All else in the file stays as it is.

Two texts of `write_urdf`, of the robot of the file and of the changed one, are compared. Where they differ, attributes are
replaced, and elements added or removed, in the file. The result is read back; it must be the changed robot.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

import numpy as np

from liedyn.errors import ModelError
from liedyn.io.recorded_paths import relative_path
from liedyn.io.robots.urdf import urdf_robot
from liedyn.io.robots.write_urdf import as_urdf, urdf
from liedyn.io.robots.xacro_files import is_xacro
from liedyn.io.robots.xml_elements import XmlElement, read_urdf_tree
from liedyn.io.robots.xml_syntax import declared_encoding
from liedyn.model.description import Robot
from liedyn.model.links import IDENTITY
from liedyn.model.model import Model, build

_ENCODINGS = ("utf-8", "utf8", "us-ascii", "ascii")
_SAME_ROTATION = 1e-12                        # difference of entries of rotations that were written as angles
_FILES = ("mesh", "texture")                  # tags whose `filename` is relative to the file
_NOT_RELATIVE = re.compile(r"/|~|\$|[\w+.-]*:")            # begins other paths: absolute, with a scheme, a substitution
_START_TAG = re.compile(rb"""(?:[^>"']|"[^"]*"|'[^']*')*>""")
_ATTRIBUTE = re.compile(rb"""\s+([^\s=<>"'/]+)\s*=\s*("[^"]*"|'[^']*')""")
_FIRST_PARTS = ("inertial",)                  # are added at the beginning of an element


def patched_urdf(robot: Robot, folder: Path | None = None) -> tuple[str, tuple[str, ...]] | None:
    """Return the text of the URDF file of a robot with the changes of the robot; None if the file cannot be used.

    Also the names of links of the file whose shapes the text lacks, although links of the robot with other names may be the same.

    robot   what a URDF can describe of a valid robot: see `as_urdf`
    folder  of the file that is to be written: relative paths of meshes are adapted. None: they stay as they are
    """
    source = Path(robot.source or "")
    if not source.is_file() or is_xacro(source):
        return None
    try:
        root = read_urdf_tree(source)
        original = as_urdf(_model(root, source).description).robot
        root.content.decode("utf-8")
    except (ModelError, UnicodeDecodeError):
        return None
    if (declared_encoding(root.content) or "utf-8").lower() not in _ENCODINGS:
        return None
    file = _SourceText(root)
    old, new = (ElementTree.fromstring(urdf(x)) for x in (original, robot))
    renamed, names = _renamed_links(original, robot), {link.name for link in robot.links}
    file.rename_links(root, old, renamed)
    file.patch(root, old, new)
    if folder is not None and folder.resolve() != source.parent.resolve():
        file.move_paths(source.parent, folder)
    patched = file.text()
    if not _reads_back(patched, robot, source):
        return None
    is_new = names - {link.name for link in original.links} - set(renamed.values())
    return patched, tuple(name for name in original.visuals if is_new and name not in names and name not in renamed)


def _renamed_links(original: Robot, robot: Robot) -> dict[str, str]:
    """Return the new names of links that are at the same joints under other names, by their old names."""
    joints = {joint.name: joint for joint in original.joints}
    old_names, new_names = ({link.name for link in each.links} for each in (original, robot))
    pairs = {pair for joint in robot.joints if joint.name in joints
             for pair in ((joints[joint.name].parent, joint.parent), (joints[joint.name].child, joint.child))
             if pair[0] in old_names - new_names and pair[1] in new_names - old_names}
    renamed = dict(pairs)
    return renamed if len(renamed) == len(set(renamed.values())) == len(pairs) else {}


def _model(root: XmlElement, source: Path) -> Model:
    return build(urdf_robot(root, str(source)))


def _reads_back(text: str, robot: Robot, source: Path) -> bool:
    """Return whether a text in place of a file is a URDF of the robot, except for rounding of rotations."""
    try:
        models = _model(read_urdf_tree(source, text.encode("utf-8")), source), build(replace(robot, loops=(), couplings=()))
    except ModelError:
        return False
    read, expected = (as_urdf(model.description).robot for model in models)
    rotations = [np.array([joint.origin.rotation for joint in sorted(x.joints, key=lambda joint: joint.name)])
                 for x in (read, expected)]
    names = [(model.joint_names, model.link_names) for model in models]
    return (_without_rotations(read) == _without_rotations(expected) and names[0] == names[1]
            and bool((np.abs(rotations[0] - rotations[1]) <= _SAME_ROTATION).all()))


def _without_rotations(robot: Robot) -> tuple[object, ...]:
    """Return name, actuated joints, and links and joints by name, the joints without the rotations of their origins."""
    return (robot.name, robot.actuated, {link.name: link for link in robot.links},
            {joint.name: replace(joint, origin=replace(joint.origin, rotation=IDENTITY)) for joint in robot.joints})


# The text ---------------------------------------------------------------------------------------------------------------

def _find(element: XmlElement, key: tuple[str, str | None]) -> XmlElement | None:
    """Return the first child with a tag and a name; the name None fits all."""
    tag, name = key
    return next((child for child in element.every(tag) if name is None or name in (child.name, _drives(child))), None)


def _drives(element: XmlElement) -> str | None:
    """Return `<joint>_transmission` of a <transmission> of one joint, which is its name in `write_urdf`."""
    joints = list(element.every("joint"))
    return f"{joints[0].name}_transmission" if element.tag == "transmission" and len(joints) == 1 else None


def _walk(root: XmlElement) -> Iterator[XmlElement]:
    """Yield an element and all elements in it."""
    waiting = [root]
    while waiting:
        element = waiting.pop()
        yield element
        waiting += element.children


class _SourceText:
    """The text of a file, and edits of it."""

    def __init__(self, root: XmlElement):
        self.root, self.source = root, root.content
        self.edits: list[tuple[int, int, bytes]] = []

    def text(self) -> str:
        """Return the text with all edits."""
        pieces, at = [], 0
        for start, end, new in sorted(self.edits, key=lambda edit: edit[:2]):
            pieces += [self.source[at:start], new]
            at = end
        return b"".join([*pieces, self.source[at:]]).decode("utf-8")

    # edits ------------------------------------------------------------------------------------------------------------

    def patch(self, element: XmlElement, old: ElementTree.Element, new: ElementTree.Element) -> None:
        """Edit an element that means `old` so that it means `new`."""
        changed = {key: value for key, value in new.attrib.items() if old.get(key) != value}
        if element.tag == "inertia" and changed:
            changed = dict(new.attrib)                         # in axes of the link, see `_patch_parts`
        for key, value in changed.items():
            self.set_attribute(element, key, value)
        for key in old.attrib.keys() - new.attrib.keys():
            self.remove_attribute(element, key)
        self._patch_parts(element, old, new)

    def _patch_parts(self, element: XmlElement, old: ElementTree.Element, new: ElementTree.Element) -> None:
        olds, news = ({_key(child): child for child in parent} for parent in (old, new))
        added = []
        for key, child in news.items():
            present = _find(element, key)
            if key in olds and ElementTree.tostring(olds[key]).strip() == ElementTree.tostring(child).strip():
                continue
            if present is None:
                added.append(child)
            else:
                self.patch(present, olds.get(key, ElementTree.Element(child.tag)), child)
        for key in olds.keys() - news.keys():
            removed = _find(element, key)
            if removed is not None:
                self.remove(removed)
        turned = element.first("origin")
        if element.tag == "inertial" and turned is not None and _differ(old.find("inertia"), new.find("inertia")):
            self.set_attribute(turned, "rpy", "0 0 0")
        if added:
            self.add(element, added)

    def rename_links(self, root: XmlElement, old: ElementTree.Element, names: dict[str, str]) -> None:
        """Rename links of the file, and of its meaning `old`; joints that name them are patched as other changes."""
        for element in root.every("link"):
            if element.name in names:
                self.set_attribute(element, "name", names[element.name])
                element.attributes["name"] = element.attributes["name"]._replace(text=names[element.name])
        for link in old.iter("link"):
            link.set("name", names.get(link.get("name", ""), link.get("name", "")))

    def set_attribute(self, element: XmlElement, key: str, value: str) -> None:
        """Replace the value of an attribute, or add it."""
        written, quoted = self._attribute(element, key), _encoded(quoteattr(value))
        if written is not None:
            self.edits.append((*written.span(2), quoted))
        else:
            at = self._end_of_attributes(element)
            self.edits.append((at, at, b" " + key.encode() + b"=" + quoted))

    def remove_attribute(self, element: XmlElement, key: str) -> None:
        """Remove an attribute, if it is there."""
        written = self._attribute(element, key)
        if written is not None:
            self.edits.append((*written.span(0), b""))

    def remove(self, element: XmlElement) -> None:
        """Remove an element and the blanks before it."""
        start = element.start
        while self.source[start - 1:start] in (b" ", b"\t"):
            start -= 1
        if self.source[start - 1:start] == b"\n":
            start -= 1 + (self.source[start - 2:start - 1] == b"\r")
        self.edits = [edit for edit in self.edits if not element.start <= edit[0] < self._end(element)]
        self.edits.append((start, self._end(element), b""))

    def add(self, element: XmlElement, children: list[ElementTree.Element]) -> None:
        """Add children at the end of an element, or at its beginning, in lines with its indentation."""
        line = b"\r\n" if b"\r\n" in self.source else b"\n"
        outer = self._indentation(element)
        texts = []
        for child in children:
            ElementTree.indent(child, "  ")
            lines = ElementTree.tostring(child, encoding="unicode", short_empty_elements=True).strip().replace(" />", "/>")
            texts.append(b"".join(line + outer + b"  " + _encoded(part) for part in lines.splitlines()))
        content = b"".join(texts)
        if self._is_empty(element):
            at = self._end_of_attributes(element)
            self.edits.append((at, self._end(element), b">" + content + line + outer + b"</" + element.tag.encode() + b">"))
        elif children[0].tag in _FIRST_PARTS:
            at = self._head_end(element)
            self.edits.append((at, at, content))
        else:
            at = element.tail
            while self.source[at - 1:at].isspace():
                at -= 1
            self.edits.append((at, at, content))

    def move_paths(self, source: Path, folder: Path) -> None:
        """Adapt relative paths of files to another folder."""
        for element in _walk(self.root):
            name = element.text("filename", "")
            if element.tag in _FILES and name and not _NOT_RELATIVE.match(name):
                self.set_attribute(element, "filename", relative_path(source / name, folder))

    # places -----------------------------------------------------------------------------------------------------------

    def _head_end(self, element: XmlElement) -> int:
        """Return the position after the start tag; values of attributes may contain `>`."""
        return _START_TAG.match(self.source, element.start).end()                           # type: ignore[union-attr]

    def _is_empty(self, element: XmlElement) -> bool:
        """Return whether an element is written as `<tag/>`."""
        return self.source.endswith(b"/>", element.start, self._head_end(element))

    def _end(self, element: XmlElement) -> int:
        """Return the position after the element."""
        return self._head_end(element) if self._is_empty(element) else self.source.index(b">", element.tail) + 1

    def _attribute(self, element: XmlElement, key: str) -> re.Match[bytes] | None:
        """Return the match of an attribute with the blank before it, whose second group is the value with its quotes."""
        attributes = _ATTRIBUTE.finditer(self.source, element.start, self._head_end(element))
        return next((attribute for attribute in attributes if attribute[1] == key.encode()), None)

    def _end_of_attributes(self, element: XmlElement) -> int:
        """Return the position after the last attribute in the start tag."""
        at = self._head_end(element) - len(b"/>" if self._is_empty(element) else b">")
        while self.source[at - 1:at].isspace():
            at -= 1
        return at

    def _indentation(self, element: XmlElement) -> bytes:
        line = self.source[self.source.rfind(b"\n", 0, element.start) + 1:element.start]
        return line if not line.strip() else b""


def _key(element: ElementTree.Element) -> tuple[str, str | None]:
    """Return tag and name: parts of links and joints have no names, but for materials, which are not written here."""
    return element.tag, element.get("name")


def _differ(old: ElementTree.Element | None, new: ElementTree.Element | None) -> bool:
    return new is not None and (old is None or old.attrib != new.attrib)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8")
