"""Docstrings as reStructuredText: they are written to be read as they stand, with columns of names and meanings."""
from __future__ import annotations

import inspect
import re

import liedyn
from site_pages.equations import typeset

_NAMES = re.compile(r"[A-Z]\w+Error(?:, [A-Z]\w+Error)*")
_ERROR = re.compile(rf"(?<![\w.`])({'|'.join(name for name in liedyn.__all__ if name.endswith('Error'))})\b(?!`)")
_ROW = re.compile(r"^(\S.*?)(?:  +(\S.*))?$")
_GAP = re.compile(r"\S   +\S|\w  +\S")
_SIGNS = re.compile(r"([*|]|(?<=\w)_(?!\w))")
_CODE = re.compile(r"(``.+?``|`[^`]+`)")
_PAGE = re.compile(r"docs/([\w/-]+)\.md(?:#[\w-]+)?")
_FIELD = re.compile(r"\w+(?:, \w+)* : (?!.*`)")
_CLASS = re.compile(rf"(?<![\w.`])({'|'.join(name for name in liedyn.__all__ if name[0].isupper())})\b")


def as_rst(what: str, lines: list[str]) -> list[str]:
    """The lines of a docstring: equations as formulas, the columns of a class as definitions, the reason of each error."""
    lines = typeset("\n".join(lines)).split("\n")
    out, example = [], False
    for line in _errors(_definitions(lines) if what == "class" else lines):
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        out.append(line if example else _escaped(line))
    return out


def is_noise(name: str, member: object) -> bool:
    """Whether a member of a class is not for users: fields of named tuples, and constructors of results and errors."""
    owner = getattr(liedyn, getattr(member, "__qualname__", "").partition(".")[0], object)
    return type(member).__name__ == "_tuplegetter" or name == "__new__" or (
        name == "__init__" and (not inspect.isfunction(member) or issubclass(owner, Exception)))


def _errors(lines: list[str]) -> list[str]:
    """Lines whose lists of errors, in a section Raises, say what each is raised for."""
    out: list[str] = []
    for k, line in enumerate(lines):
        names = _NAMES.fullmatch(line.strip()) and lines[k - 2:k] == ["Raises", "------"] and line.strip().split(", ")
        if not names or "".join(lines[k + 1:k + 2]).startswith("    "):         # a reason follows
            out.append(line)
        else:
            out += [part for name in names for part in (name, f"    {reason(name)}")]
    return out


def reason(error: str) -> str:
    """What an error is raised for: the first paragraph of its docstring."""
    return " ".join(inspect.cleandoc(getattr(liedyn, error).__doc__).split("\n\n")[0].split())


def _definitions(lines: list[str]) -> list[str]:
    out: list[str] = []
    for paragraph in "\n".join(lines).split("\n\n"):
        rows = paragraph.splitlines()
        if _is_in_columns(rows):
            for row in rows:
                name, meaning = (None, row.strip()) if row.startswith(" ") else _ROW.match(row).groups()
                out += ([f"``{name}``"] if name else []) + [f"    {meaning or chr(92)}"]
        else:
            out += rows
        out.append("")
    return out


def _is_in_columns(rows: list[str]) -> bool:
    """Whether lines are names and, after a gap, meanings, which continue in lines that are indented."""
    text = "\n".join(rows)
    return len(rows) > 1 and not text.startswith(" ") and "----" not in text and ">>>" not in text and any(
        _GAP.search(row) for row in (rows[0], rows[-1]))


def _escaped(line: str) -> str:
    """Signs that would begin emphasis or a substitution, as they are; links to public classes and to pages."""
    if line.lstrip().startswith(("*", "..")):
        return line
    line = _PAGE.sub(r":doc:`/\1`", line)
    if _FIELD.match(line):
        line = _CLASS.sub(r"`\1`", line)
    linked = line if _NAMES.fullmatch(line.strip()) else _ERROR.sub(r"`\1`", line)
    return "".join(part if part.startswith("`") else _SIGNS.sub(r"\\\1", part) for part in _CODE.split(linked))
