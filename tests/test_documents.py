"""README and docs/: links lead somewhere, commands have the options that they show, the README's Python runs."""
import importlib
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"```.*?```|`[^`]+`", re.DOTALL)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands(page: Path) -> list[str]:
    code = "\n".join(_CODE.findall(page.read_text(encoding="utf-8"))).replace("`", "\n")
    return re.findall(r"^(?:\.venv/bin/)?liedyn ([a-z]+ .*?)(?:  +#.*| \|.*)?$", code, re.MULTILINE)


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
        command = getattr(importlib.import_module(f"liedyn.cli.{name}"), name)
        known = {option for parameter in command.params for option in parameter.opts} | {"--help", "-h"}
        used = {a.partition("=")[0] for a in arguments if re.fullmatch(r"--[a-z].*|-[a-zA-Z]", a)}
        assert used <= known, f"liedyn {text}"


def test_the_python_of_the_readme_runs():
    block, = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    done = subprocess.run([sys.executable, "-c", block], cwd=ROOT, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("<Result asymmetric_body")
