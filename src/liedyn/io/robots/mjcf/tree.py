"""An MJCF file as a tree of elements whose attributes know their file and line, with the files that it includes."""
from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from liedyn.errors import ModelError, Place, nearest
from liedyn.io.robots.xml_reader import XmlReader

DEEPEST = 200                        # levels of nesting: a chain of bodies is one level a body
MOST_FILES = 100
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\Z", re.ASCII)
SWITCH = {"true": True, "false": False}


class Written(NamedTuple):
    """An attribute's text and where it stands."""

    text: str
    file: str
    line: int


@dataclass(slots=True, eq=False)
class Element:
    tag: str
    attributes: dict[str, Written]
    file: str
    line: int
    children: list[Element] = field(default_factory=list)

    @property
    def name(self) -> str | None:
        return self.text("name")

    def place(self, attribute: str | None = None) -> Place:
        """Of an attribute, also where it comes from a default class; of the element where it has none."""
        named = f'<{self.tag}{f" {attribute}" if attribute else ""}>'
        name = self.attributes.get("name")
        at = self.attributes.get(attribute or "") or self
        return Place(at.file, at.line, f'{named} of "{name.text}"' if name and name.text.isprintable() else named)

    def problem(self, message: str, attribute: str | None = None, *, found=None, expected: str | None = None,
                hint: str | None = None) -> ModelError:
        return ModelError(message, place=self.place(attribute), found=found, expected=expected, hint=hint)

    def every(self, tag: str) -> Iterable[Element]:
        return (child for child in self.children if child.tag == tag)

    def within(self, tag: str) -> Iterable[Element]:
        """The children of all children of a tag."""
        return (child for section in self.every(tag) for child in section.children)

    # attributes, or `default` where they are missing ------------------------------------------------------------------

    def text(self, attribute: str, default: str | None = None) -> str | None:
        written = self.attributes.get(attribute)
        return default if written is None else written.text

    def require(self, attribute: str) -> str:
        text = self.text(attribute)
        if not text:
            raise self.problem(f"the attribute {attribute} is missing" if text is None else "an empty name", attribute)
        return text

    def choice(self, attribute: str, options: Iterable[str], default: str) -> str:
        text, options = self.text(attribute, default), tuple(options)
        if text not in options:
            raise self.problem("wrong value", attribute, found=text, expected="one of " + ", ".join(options),
                               hint=nearest(text, options))
        return text

    def switch(self, attribute: str, default: bool) -> bool:
        return SWITCH[self.choice(attribute, SWITCH, str(default).lower())]

    def name_of(self, attribute: str, known: Iterable[str], message: str, expected: str) -> str:
        """A required attribute that is one of the names `known`."""
        name = self.require(attribute)
        if name not in known:
            raise self.problem(message, attribute, found=name, expected=expected, hint=nearest(name, known))
        return name

    def refuse(self, attribute: str, message: str, expected: str = "0", hint: str | None = None) -> None:
        """Raise where an attribute has numbers other than zero."""
        if any(self.numbers(attribute)):
            raise self.problem(message, attribute, found=self.text(attribute), expected=expected, hint=hint)

    def constant(self, attribute: str) -> float:
        """The first of the coefficients of a force, none: zero; those of higher powers are refused."""
        first, *more = self.numbers(attribute) or (0.0,)
        if any(more):
            raise self.problem(f"{attribute} that is not constant is not supported", attribute, found=self.text(attribute),
                               expected="one number")
        return first

    def number(self, attribute: str, default: float) -> float:
        return self.vector(attribute, (default,))[0]

    def vector(self, attribute: str, default: tuple[float, ...], least: int | None = None) -> tuple[float, ...]:
        """As many numbers as `default` has; from `least` on, those that are missing are taken from it."""
        text = self.text(attribute)
        if text is None:
            return default
        found = self.numbers(attribute)
        most = len(default)
        least = most if least is None else least
        if not least <= len(found) <= most:
            count = str(most) if least == most else f"{least} to {most}"
            raise self.problem("wrong value", attribute, found=text, expected=f"{count} number{'s' * (count != '1')}")
        return (*found, *default[len(found):])

    def numbers(self, attribute: str) -> tuple[float, ...]:
        words = self.text(attribute, "").split()
        for word in words:
            if not _NUMBER.match(word) or not math.isfinite(float(word)):
                raise self.problem("not a finite number" if _NUMBER.match(word) else "wrong value", attribute, found=word,
                                   expected="finite numbers with blanks between")
        return tuple(map(float, words))


def read_mjcf_tree(path: str | os.PathLike) -> Element:
    """The <mujoco> element with what its files include in place; raises ModelError with file and line."""
    file = os.fspath(path)
    root = _Reader(file).read()
    if root.tag != "mujoco":
        raise ModelError("not a MuJoCo file", place=Place(file, root.line), expected="<mujoco>")
    _include(root, Path(file).parent, [os.path.realpath(file)])
    return root


def _include(element: Element, folder: Path, seen: list[str]) -> None:
    """Put the children of included files in the place of <include>. Paths are relative to the folder of the main file, or of
    the file that includes."""
    waiting = [element]
    while waiting:
        parent = waiting.pop()
        k = 0
        while k < len(parent.children):
            child = parent.children[k]
            if child.tag == "include":
                parent.children[k:k + 1] = _included(child, folder, seen).children
            else:
                k += 1
        waiting += parent.children


def _included(element: Element, folder: Path, seen: list[str]) -> Element:
    name = element.require("file")
    path = next((path for path in (folder / name, Path(element.file).parent / name) if path.is_file()), folder / name)
    real = os.path.realpath(path)
    if real in seen:
        raise element.problem("the file is included a second time", "file", found=name)
    if len(seen) >= MOST_FILES:
        raise element.problem("too many included files", "file", expected=f"at most {MOST_FILES}")
    if not path.is_file():
        raise element.problem("the included file does not exist", "file", found=name, expected=f"a file in {folder}")
    seen.append(real)
    return _Reader(os.fspath(path)).read()


class _Reader(XmlReader):
    deepest = DEEPEST

    def begin(self, tag: str, attributes: dict[str, str]) -> Element:
        written = {key: Written(text, self.file, self.line) for key, text in attributes.items()}
        element = Element(tag, written, self.file, self.line)
        if self.open:
            self.open[-1].children.append(element)
        return element
