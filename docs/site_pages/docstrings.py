"""Docstrings as reStructuredText: they are written to be read as they stand, with columns of names and meanings."""
from __future__ import annotations

import re

_ROW = re.compile(r"^(\S.*?)(?:  +(\S.*))?$")
_GAP = re.compile(r"\S   +\S|\w  +\S")
_SIGNS = re.compile(r"([*|]|(?<=\w)_(?!\w))")
_CODE = re.compile(r"(``.+?``|`[^`]+`)")


def as_rst(what: str, lines: list[str]) -> list[str]:
    """The lines of a docstring, of a class with its columns as definitions."""
    return [_escaped(line) for line in (_definitions(lines) if what == "class" else lines)]


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
    """Signs that would begin emphasis or a substitution, as they are."""
    if line.lstrip().startswith((">>>", "...", "*", "..")):
        return line
    return "".join(part if part.startswith("`") else _SIGNS.sub(r"\\\1", part) for part in _CODE.split(line))
