"""Marks in pages, at whose places the site has what is made from the code. Code hosts show the line after a mark instead."""
from __future__ import annotations

import re

import liedyn
from site_pages.commands import commands_page
from site_pages.contributing import contributing_page
from site_pages.gallery import gallery_page
from site_pages.history import history_page
from site_pages.keys import keys_page
from site_pages.python_api import subject_page

_MARK = re.compile(r"^<!-- from the code: (.+) -->$(?:\n\*.+\*$)?", re.MULTILINE)
_MAKERS = {"commands": commands_page, "contributing": contributing_page, "gallery": gallery_page, "history": history_page,
           "keys": keys_page, "python": subject_page}
# Links to files outside docs/, which the site does not have, and the pages that it has instead.
_REPLACED_LINKS = {"../CONTRIBUTING.md": "contributing.md"}
# A link whose text is the name of a test: it may be broken after an underscore.
_TEST = re.compile(r"(?<=\[)test_\w+(?=\]\()")
# A link to the page of a public name: on the site, to its entry on that page.
_NAME = re.compile(r"\[`?(\w+)`?\]\([./\w]*reference/python/[\w-]+\.md\)")


def filled(text: str) -> str:
    """A page with what its marks stand for, whose links lead to pages of the site."""
    text = _MARK.sub(lambda mark: made(mark[1]), text)
    for link, page in _REPLACED_LINKS.items():
        text = text.replace(f"]({link})", f"]({page})")
    text = _TEST.sub(lambda name: name[0].replace("_", "_\u200b"), text)
    return _NAME.sub(lambda link: f"{{py:obj}}`{link[1]} <liedyn.{link[1]}>`" if link[1] in liedyn.__all__ else link[0], text)


def made(what: str) -> str:
    """The Markdown of a mark, such as `keys scenario`."""
    kind, *rest = what.split(" ", 1)
    return _MAKERS[kind](*rest)


def made_by(text: str) -> str:
    """All that the marks of a page stand for."""
    return "\n".join(made(mark) for mark in _MARK.findall(text))
