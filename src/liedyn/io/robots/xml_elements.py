"""XML files as trees of elements with their file and line.

They are read with expat, after repairs if the file is not well-formed: no DOCTYPE (hence no entities), limited nesting and
size, no network, no recursion.
"""
from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple, TypeVar, cast, overload
from xml.parsers import expat

from liedyn.errors import LiedynWarning, ModelError, Place, nearest
from liedyn.io.robots.xml_syntax import encoding_error, lines_in_words, repair, syntax_error
from liedyn.io.yaml_nodes import NUMBER, read_bytes

SWITCH = {"true": True, "false": False}

Numbers = TypeVar("Numbers", bound=tuple[float, ...])


class LocatedText(NamedTuple):
    """Text of an attribute, and its file and line."""

    text: str
    file: str
    line: int


@dataclass(slots=True, eq=False)
class XmlElement:
    """An element of an XML file: tag, attributes, children, file and line. `warnings` of a root are about the whole file.

    start, tail  positions [bytes] of the start tag, and of the end tag or the end of `<tag/>`
    content      of a root: the bytes of the file, after repairs
    model        of MJCF: root of the attached model that the element is from; None: of the file itself
    """

    tag: str
    attributes: dict[str, LocatedText]
    file: str
    line: int
    children: list[XmlElement] = field(default_factory=list)
    warnings: tuple[LiedynWarning, ...] = ()
    start: int = 0
    tail: int = 0
    content: bytes = b""
    model: XmlElement | None = None

    @property
    def name(self) -> str | None:
        """The attribute `name`, or None."""
        return self.text("name")

    def place(self, attribute: str | None = None) -> Place:
        """Return the location of an attribute (in its default class, if it has one), or else of the element."""
        named = f'<{self.tag}{f" {attribute}" if attribute else ""}>'
        name = self.attributes.get("name")
        source = self.attributes.get(attribute or "") or self
        return Place(source.file, source.line, f'{named} of "{name.text}"' if name and name.text.isprintable() else named)

    def problem(self, message: str, attribute: str | None = None, *, found: object = None, expected: str | None = None,
                hint: str | None = None) -> ModelError:
        """Return an error about this element or one of its attributes."""
        return ModelError(message, place=self.place(attribute), found=found, expected=expected, hint=hint)

    def every(self, tag: str) -> Iterable[XmlElement]:
        """Return the children with a tag."""
        return (child for child in self.children if child.tag == tag)

    def first(self, tag: str) -> XmlElement | None:
        """Return the first child with a tag, or None."""
        return next(iter(self.every(tag)), None)

    def within(self, tag: str) -> Iterable[XmlElement]:
        """Return the children of all children with a tag."""
        return (child for section in self.every(tag) for child in section.children)

    # attributes, or `default` where they are missing ------------------------------------------------------------------

    @overload
    def text(self, attribute: str) -> str | None: ...

    @overload
    def text(self, attribute: str, default: str) -> str: ...

    def text(self, attribute: str, default: str | None = None) -> str | None:
        """Return the text of an attribute, or the default."""
        written = self.attributes.get(attribute)
        return default if written is None else written.text

    def require(self, attribute: str) -> str:
        """Return the text of an attribute. Raise if it is missing or empty."""
        text = self.text(attribute)
        if not text:
            raise self.problem(f"the attribute {attribute} is missing" if text is None else "the name is empty", attribute)
        return text

    def choice(self, attribute: str, options: Iterable[str], default: str) -> str:
        """Return the text of an attribute, which must be one of `options`."""
        text, options = self.text(attribute, default), tuple(options)
        if text not in options:
            raise self.problem("wrong value", attribute, found=text, expected="one of " + ", ".join(options),
                               hint=nearest(text, options))
        return text

    def switch(self, attribute: str, default: bool) -> bool:
        """Return the truth value of an attribute, which must be true or false."""
        return SWITCH[self.choice(attribute, SWITCH, str(default).lower())]

    def name_of(self, attribute: str, known: Iterable[str], message: str, expected: str) -> str:
        """Return a required attribute, which must be one of the names `known`."""
        name = self.require(attribute)
        if name not in known:
            raise self.problem(message, attribute, found=name, expected=expected, hint=nearest(name, known))
        return name

    def refuse(self, attribute: str, message: str, expected: str = "0", hint: str | None = None) -> None:
        """Raise if an attribute has numbers other than zero."""
        if any(self.floats(attribute)):
            raise self.problem(message, attribute, found=self.text(attribute), expected=expected, hint=hint)

    def constant(self, attribute: str) -> float:
        """Return the first coefficient of a force, or zero without one. Raise if a coefficient of a higher power is not zero."""
        first, *higher = self.floats(attribute) or (0.0,)
        if any(higher):
            raise self.problem(f"{attribute} that is not constant is not supported", attribute, found=self.text(attribute),
                               expected="one number")
        return first

    def number(self, attribute: str, default: float) -> float:
        """Return the number of an attribute."""
        return self.vector(attribute, (default,))[0]

    def vector(self, attribute: str, default: Numbers, minimum: int | None = None) -> Numbers:
        """Return as many numbers as `default` has. If `minimum` are enough, those that are missing are taken from `default`."""
        text = self.text(attribute)
        if text is None:
            return default
        values = self.floats(attribute)
        maximum = len(default)
        minimum = maximum if minimum is None else minimum
        if not minimum <= len(values) <= maximum:
            count = str(maximum) if minimum == maximum else f"{minimum} to {maximum}"
            raise self.problem("wrong value", attribute, found=text, expected=f"{count} number{'s' * (count != '1')}")
        return cast(Numbers, (*values, *default[len(values):]))

    def floats(self, attribute: str) -> tuple[float, ...]:
        """Return the numbers of an attribute. Raise if one of them is not finite."""
        words = self.text(attribute, "").split()
        for word in words:
            if not is_finite_number(word):
                raise self.problem("not a finite number" if NUMBER.match(word) else "wrong value", attribute, found=word,
                                   expected="finite numbers separated by spaces")
        return tuple(map(float, words))


def is_finite_number(word: str) -> bool:
    """Return whether a word is a decimal number that is finite as a float."""
    return NUMBER.match(word) is not None and math.isfinite(float(word))


# Reading ----------------------------------------------------------------------------------------------------------------

class _RootTag(Exception):
    """Stops reading at the first element."""


class _SyntaxProblem(Exception):
    """Stops reading a text that is not well-formed."""

    def __init__(self, error: ModelError):
        super().__init__(error)
        self.error = error


def read_xml(path: str | os.PathLike[str], max_levels: int,
             is_needed: Callable[[str, list[XmlElement], Callable[[], Place]], bool] = lambda tag, open, place: True,
             expanded: bytes | None = None) -> XmlElement:
    """Return the root element of a file. Raise ModelError with the line, also for more than `max_levels` levels of nesting.

    A text that is not well-formed is repaired if that is possible, with warnings, and read again.

    is_needed: called with the tag of an element, the elements around it and its place; returns whether the tree contains the
          element. Children of an element that it does not contain are ignored. May raise.
    expanded: text to read in place of the file, in which the lines count
    """
    file = os.fspath(path)
    if expanded is None:
        text = read_bytes(path, ModelError)
    else:
        file, text = f"{file} (expanded)", expanded
    try:
        return _parse(text, file, max_levels, is_needed)
    except _SyntaxProblem as problem:
        text, repairs = repair(text)
        if not repairs:
            raise problem.error from None
    try:
        root = _parse(text, file, max_levels, is_needed)
    except _SyntaxProblem as problem:
        raise problem.error from None
    root.warnings = tuple(LiedynWarning("invalid-xml", f"not valid XML, but read: {kind}{lines_in_words(lines)}",
                                        place=Place(file, lines[0])) for kind, lines in repairs.items())
    return root


def _parse(text: bytes, file: str, max_levels: int,
           is_needed: Callable[[str, list[XmlElement], Callable[[], Place]], bool]) -> XmlElement:
    """Return the root element of a text, as `read_xml`. Raise _SyntaxProblem if it is not well-formed."""
    open: list[XmlElement | None] = []
    tags: list[tuple[str, int]] = []
    roots: list[XmlElement] = []
    parser = expat.ParserCreate()

    def place() -> Place:
        return Place(file, parser.CurrentLineNumber)

    def start(tag: str, attributes: dict[str, str]) -> None:
        if len(open) >= max_levels:
            raise ModelError("too deeply nested", place=place(), expected=f"at most {max_levels} levels")
        tags.append((tag, parser.CurrentLineNumber))
        parents = [element for element in open if element is not None]
        if len(parents) < len(open) or not is_needed(tag, parents, place):
            open.append(None)                              # ignored
        else:
            line = parser.CurrentLineNumber
            element = XmlElement(tag, {key: LocatedText(text, file, line) for key, text in attributes.items()}, file, line,
                                 start=parser.CurrentByteIndex)
            (parents[-1].children if parents else roots).append(element)
            open.append(element)

    def doctype(*_: object) -> None:
        raise ModelError("a DOCTYPE is not accepted (it may define entities)", place=place(), expected="plain XML")

    def end(_: str) -> None:
        element = open.pop()
        if element is not None:
            element.tail = parser.CurrentByteIndex
        tags.pop()

    parser.StartElementHandler, parser.EndElementHandler, parser.StartDoctypeDeclHandler = start, end, doctype
    try:
        parser.Parse(text, True)
    except expat.ExpatError as problem:
        raise _SyntaxProblem(syntax_error(problem, parser.ErrorByteIndex, text, file, tags)) from None
    except (LookupError, ValueError) as problem:                    # an encoding that Python does not know
        if isinstance(problem, ModelError):
            raise
        raise _SyntaxProblem(encoding_error(text, file)) from None
    result: XmlElement = roots[0]
    result.content = text
    return result


def root_tag(path: str | os.PathLike[str]) -> str | None:
    """Return the tag of the first element of a file, or None without one. The rest of the file is not read."""
    def stop(tag: str, *_: object) -> bool:
        raise _RootTag(tag)

    try:
        read_xml(path, 1, stop)
    except _RootTag as found:
        result: str | None = found.args[0]
        return result
    except ModelError:
        pass
    return None


# URDF: the links, joints and materials ----------------------------------------------------------------------------------

# Other elements (gazebo, sensor, ros2_control, …) are left out, and so are elements with a namespace prefix,
# declared or not. Elements that xacro would expand are an error. A default namespace has no effect.

MAX_URDF_LEVELS = 50                              # levels of nesting
_READ = ("link", "joint", "material", "transmission")             # children of <robot>
_SHAPES = ("visual", "collision")
_IGNORED_XACRO = ("xacro:property", "xacro:arg")
XACRO_HINT = "give a xacro file the ending .xacro, or expand it: xacro robot.urdf.xacro > robot.urdf"
_OTHER_FORMATS = {"sdf": "SDF files are not supported", "mujoco": "give a MuJoCo file the ending .xml",
                  "COLLADA": "COLLADA files are not supported"}


def read_urdf_tree(path: str | os.PathLike[str], expanded: bytes | None = None) -> XmlElement:
    """Return the <robot> element of a file with the elements of `_READ`. Raise ModelError with the line.

    expanded: as for `read_xml`

    Information about it counts the other elements by tag.
    """
    counts: Counter[str] = Counter()
    places: list[Place] = []

    def is_needed(tag: str, open: list[XmlElement], place: Callable[[], Place]) -> bool:
        if not open:                                       # also at the beginning of a second reading, after repairs
            counts.clear()
            places.clear()
        if _is_urdf(tag, open, place):
            return True
        if len(open) == 1:
            counts[tag] += 1
            places.append(place())
        return False

    root = read_xml(path, MAX_URDF_LEVELS, is_needed, expanded)
    if not any(root.every("link")):
        raise ModelError("no links in this robot", place=Place(root.file, root.line), expected="at least one <link>")
    if counts:
        listed = ", ".join(f"<{tag}> ({count})" for tag, count in counts.items())
        root.warnings += (LiedynWarning("urdf-not-read", f"not read: {listed}", place=replace(places[0], key="robot")),)
    return root


def _is_urdf(tag: str, open: list[XmlElement], place: Callable[[], Place]) -> bool:
    if not open:
        _check_robot(tag, place())
        return True
    if ":" not in tag:
        return len(open) > 1 or tag in _READ
    in_shape = any(element.tag in _SHAPES for element in open)
    if not in_shape and tag.startswith("xacro:") and tag not in _IGNORED_XACRO:
        raise ModelError("a xacro macro is not expanded", place=place(), found=f"<{tag}>", hint=XACRO_HINT)
    return False


def _check_robot(tag: str, place: Place) -> None:
    if tag != "robot":
        problem, expected = "not a URDF file", "<robot>"
        if (place.file or "").lower().endswith(".xml"):
            problem, expected = "neither a URDF nor a MuJoCo file", "<robot> or <mujoco>"
        raise ModelError(problem, place=place, found=f"<{tag}>" if tag in _OTHER_FORMATS else None, expected=expected,
                         hint=_OTHER_FORMATS.get(tag))


# MJCF: all elements, with the files that the file includes --------------------------------------------------------------

MAX_MJCF_LEVELS = 200                        # levels of nesting: each body of a chain is one level
MAX_FILES = 100


def read_mjcf_tree(path: str | os.PathLike[str]) -> XmlElement:
    """Return the <mujoco> element with included files inserted. Raise ModelError with file and line."""
    root = read_xml(path, MAX_MJCF_LEVELS)
    if root.tag != "mujoco":
        raise ModelError("not a MuJoCo file", place=Place(root.file, root.line), expected="<mujoco>")
    _include(root, Path(root.file).parent, [os.path.realpath(root.file)])
    return root


def _include(element: XmlElement, folder: Path, seen: list[str]) -> None:
    """Replace <include> by the children of the included file.

    Paths are relative to the folder of the main file, or of the file that includes.
    """
    waiting = [element]
    while waiting:
        parent = waiting.pop()
        k = 0
        while k < len(parent.children):
            child = parent.children[k]
            if child.tag == "include":
                included = _included(child, folder, seen)
                parent.children[k:k + 1] = included.children
                element.warnings += included.warnings
            else:
                k += 1
        waiting += parent.children


def _included(element: XmlElement, folder: Path, seen: list[str]) -> XmlElement:
    name = element.require("file")
    path = next((path for path in (folder / name, Path(element.file).parent / name) if path.is_file()), folder / name)
    real = os.path.realpath(path)
    if real in seen:
        raise element.problem("the file is included twice", "file", found=name)
    if len(seen) >= MAX_FILES:
        raise element.problem("too many included files", "file", expected=f"at most {MAX_FILES}")
    if not path.is_file():
        raise element.problem("the included file does not exist", "file", found=name, expected=f"a file in {folder}")
    seen.append(real)
    return read_xml(path, MAX_MJCF_LEVELS)
