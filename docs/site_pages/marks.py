"""Marks in pages, at whose places the site has what is made from the code. Code hosts show nothing there."""
from __future__ import annotations

import re
from pathlib import Path

from site_pages.commands import commands_page
from site_pages.keys import keys_page
from site_pages.python_api import subject_page

_MARK = re.compile(r"^<!-- from the code: (.+) -->$", re.MULTILINE)
_PATTERN = re.compile(r"^([\w./-]+\*)\n", re.MULTILINE)
_MAKERS = {"commands": commands_page, "keys": keys_page, "python": subject_page}


def filled(page: Path, text: str) -> str:
    """A page with what its marks stand for, without patterns of tables of contents that no page matches."""
    text = _PATTERN.sub(lambda line: line[0] if [*page.parent.glob(f"{line[1]}.md")] else "", text)
    return _MARK.sub(lambda mark: made(mark[1]), text).replace("](../README.md#python)", "](tutorials/first-motion.md)")


def made(what: str) -> str:
    """The Markdown of a mark, such as `keys scenario`."""
    kind, *rest = what.split(" ", 1)
    return _MAKERS[kind](*rest)


def made_by(text: str) -> str:
    """All that the marks of a page stand for."""
    return "\n".join(made(mark) for mark in _MARK.findall(text))
