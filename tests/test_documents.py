"""README and docs/: links lead somewhere, commands have the options that they show. tests/documents runs what they show."""
import re
import shlex

import pytest

from document_pages import PAGES, ROOT, anchors, blocks, commands, name_of, outside_blocks
from liedyn.cli.app import main

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def test_there_are_pages_with_commands():
    assert len(PAGES) > 10
    assert sum(len(commands(page)) for page in PAGES) > 30


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


def test_no_result_of_a_command_is_in_the_root():
    results = (".csv", ".html", ".json", ".png", ".urdf", ".yaml")
    assert [path.name for path in ROOT.iterdir() if path.suffix in results and not path.name.startswith(".")] == []


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
        command = main.get_command(None, name)
        known = {option for parameter in command.params for option in parameter.opts} | {"--help", "-h"}
        used = {a.partition("=")[0] for a in arguments if re.fullmatch(r"--[a-z].*|-[a-zA-Z]", a)}
        assert used <= known, f"liedyn {text}"


@pytest.mark.parametrize("page", [ROOT / "CONTRIBUTING.md", *PAGES], ids=name_of)
def test_code_fits_the_page(page):
    """A column of the site has room for 88 characters on a screen of 1280 pixels."""
    wide = [(block.line + k, line) for block in blocks(page) for k, line in enumerate(block.text.splitlines()) if len(line) > 88]
    assert not wide


@pytest.mark.parametrize("page", [ROOT / "CONTRIBUTING.md", *PAGES], ids=name_of)
def test_items_and_paragraphs_begin_lines(page):
    """A new break of lines had joined items of lists, and paragraphs with two spaces between them."""
    text = re.sub(r"^\|.*$|(?<=^)    .*$", "", outside_blocks(page), flags=re.MULTILINE)
    text = re.sub(r"`[^`]*`", "code", text)
    assert not re.findall(r".*\S  +\S.*|.*[.:] - \S.*|.*\. \d\. \*\*.*", text)


def _rows_of_thresholds() -> list[tuple[str, list[str]]]:
    """(module, names of constants) of the tables of thresholds in docs/proof.md; `same` is the module of the row before."""
    found, module = [], ""
    for line in (ROOT / "docs" / "proof.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else [""]
        one = re.fullmatch(r"`([a-z_0-9.]+)`|same", cells[0])
        if one and len(cells) > 3:
            module = one[1] or module
            found.append((module, re.findall(r"`(_?[A-Z][A-Z_0-9]+)`", cells[1])))
        for name in re.findall(r"`([a-z_0-9.]+\._?[A-Z][A-Z_0-9]+)`", cells[0]):
            found.append((name.rpartition(".")[0], [name.rpartition(".")[2]]))
    return found


def test_the_tables_of_thresholds_name_constants_of_their_modules():
    """Renames had changed names of some rows to those of constants elsewhere."""
    package, rows = ROOT / "src" / "liedyn", _rows_of_thresholds()
    assert len(rows) > 100
    for module, names in rows:
        path = module.replace(".", "/")
        sources = [*package.glob(f"{path}.py"), *package.glob(f"{path}/*.py"), *package.glob(f"**/{path}.py")]
        text = "\n".join(source.read_text(encoding="utf-8") for source in sources)
        missing = [name for name in names if not re.search(rf"^[A-Z_0-9, ]*\b{name}\b[A-Z_0-9, ]* = ", text, re.MULTILINE)]
        assert sources and not missing, (module, missing)
