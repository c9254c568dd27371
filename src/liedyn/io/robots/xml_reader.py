"""Reading XML with expat directly: no DOCTYPE (hence no entities), bounded nesting and size, no network, no recursion."""
from __future__ import annotations

import os
from contextlib import suppress
from typing import Any
from xml.parsers import expat

from liedyn.errors import ModelError, Place
from liedyn.io.text_file import read_bytes


class XmlReader:
    """Reads a file into `root`, None where it has no element. deepest: levels of nesting."""

    deepest: int

    def __init__(self, path: str | os.PathLike):
        self.path, self.file, self.root = path, os.fspath(path), None
        self.open: list = []                           # elements that have begun and not ended; None: passed over
        self.parser = expat.ParserCreate()
        self.parser.StartDoctypeDeclHandler = self._doctype
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = lambda _: self.open.pop()

    def begin(self, tag: str, attributes: dict[str, str]) -> Any:
        """The element, once the one that holds it, `self.open[-1]`, has it; None: it is passed over, with all that it holds."""
        raise NotImplementedError

    def read(self) -> Any:
        """The root; raises ModelError with the line."""
        try:
            self.parser.Parse(read_bytes(self.path, ModelError), True)
        except expat.ExpatError as problem:
            raise ModelError(f"not valid XML: {expat.ErrorString(problem.code)}",
                             place=Place(self.file, problem.lineno)) from None
        except (LookupError, ValueError) as problem:                # an encoding that Python does not know
            if isinstance(problem, ModelError):
                raise
            raise ModelError(f"not readable as XML: {problem}", place=Place(self.file)) from None
        return self.root

    @property
    def line(self) -> int:
        return self.parser.CurrentLineNumber

    def place(self) -> Place:
        return Place(self.file, self.line)

    def _doctype(self, *_) -> None:
        raise ModelError("a DOCTYPE is not accepted (it may define entities)", place=self.place(), expected="plain XML")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self.open) >= self.deepest:
            raise ModelError("too deeply nested", place=self.place(), expected=f"at most {self.deepest} levels")
        element = self.begin(tag, attributes)
        if not self.open:
            self.root = element
        self.open.append(element)


def root_tag(path: str | os.PathLike) -> str | None:
    """The tag of a file's first element; None where there is none. What follows it is not checked."""
    reader = _FirstTag(path)
    with suppress(ModelError):
        reader.read()
    return reader.root


class _FirstTag(XmlReader):
    deepest = 1

    def begin(self, tag: str, attributes: dict[str, str]) -> str:
        return tag
