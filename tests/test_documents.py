"""README and docs/: links lead somewhere, commands have the options that they show. tests/documents runs what they show."""
import importlib
import re
import shlex

import pytest

from document_pages import PAGES, ROOT, anchors, commands, name_of
from liedyn.cli.app import _COMMANDS

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def test_there_are_pages_with_commands():
    assert len(PAGES) > 10
    assert sum(len(commands(page)) for page in PAGES) > 30


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page):
    for link in _LINK.findall(page.read_text(encoding="utf-8")):
        path, _, anchor = link.partition("#")
        if "://" not in path:
            target = page.parent / path if path else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=name_of)
def test_commands_have_the_options_that_are_shown(page):
    for text in commands(page):
        name, *arguments = shlex.split(text, comments=True)
        command = getattr(importlib.import_module(f"liedyn.cli.{_COMMANDS[name]}"), name)
        known = {option for parameter in command.params for option in parameter.opts} | {"--help", "-h"}
        used = {a.partition("=")[0] for a in arguments if re.fullmatch(r"--[a-z].*|-[a-zA-Z]", a)}
        assert used <= known, f"liedyn {text}"
