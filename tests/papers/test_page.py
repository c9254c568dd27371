"""docs/papers.md is up to date, and what it names is there."""
import ast
import importlib
import importlib.util
import re
from functools import cache
from pathlib import Path

import pytest

from liedyn.cli.app import COMMANDS, main

ROOT = Path(__file__).parents[2]


def script():
    spec = importlib.util.spec_from_file_location("make_papers", ROOT / "docs/make_papers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make = script()
PAPERS = make.papers()
ROWS = [(paper, row) for paper in PAPERS for row in paper.rows]


def test_the_page_is_up_to_date():
    assert "[`joint_wrenches`](reference/python/dynamics.md)" in make.page()          # public names lead to their documentation
    assert (ROOT / "docs/papers.md").read_text(encoding="utf-8") == make.page(), "run python docs/make_papers.py"


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.name)
def test_the_guide_of_a_paper_has_all_its_numbers(paper):
    """Each numbered item is in the first column of a table, or named in the text between the tables."""
    text = (ROOT / f"docs/papers/{paper.name.lower()}.md").read_text(encoding="utf-8")
    text = re.sub(r"\band (?=\d)", ", ", text)
    named = set(make.items(text)) | ({"(60)", "(61)", "(62)", "(63)", "(64)"} if "(60) to (64)" in text else set())
    without = {member for item in paper.without for member in make.items(item)}
    missing = [member for row in paper.rows for member in row.members if member not in named | without]
    assert not missing


@pytest.mark.parametrize("paper, count", [("K1", 64), ("K2", 66), ("PBP", 83), ("PL", 38), ("AGF", 70)])
def test_every_number_is_in_the_inventory(paper, count):
    """Equations are numbered without gaps, each in one row."""
    members = [member for p, row in ROWS if p.name == paper for member in row.members]
    assert len(members) == len(set(members))
    assert [f"({n})" for n in range(1, count + 1)] == sorted((m for m in members if m[0] == "("), key=lambda m: int(m[1:-1]))


@pytest.mark.parametrize("paper", PAPERS, ids=lambda paper: paper.name)
def test_every_item_has_code_and_a_test(paper):
    without = {member for item in paper.without for member in make.items(item)}
    for row in paper.rows:
        for member, functions, tests in zip(row.members, row.functions, row.tests, strict=True):
            assert (member in without) != bool(functions and tests), f"{paper.name} {member}"
            assert bool(functions) == bool(tests), f"{paper.name} {member}"


def test_what_is_cited_is_numbered():
    """A slip of the pen in a docstring would be lost otherwise."""
    known = {(paper.name, member) for paper, row in ROWS for member in row.members}
    for places in (make.places(("src", "configs")), make.places(("tests",), after="Checks:")):
        for cited, where in places.items():
            assert cited in known, f"{' '.join(cited)} in {where[0].path}: {where[0].name}"


def test_citations_have_one_form():
    """After `Checks:` and `Source:` stands something that is read; names of authors stand before no number."""
    for path in (path for folder in ("src", "tests", "configs") for path in (ROOT / folder).rglob("*.py")):
        for name, text in make.docstrings(path):
            if path.name in ("test_page.py", "make_papers.py"):
                continue
            for word in ("Checks:", "Source:"):
                _, at, rest = text.partition(word)
                assert not at or make.citations(rest[:200]) or "§" in rest[:20], f"{path}: {name}: {word}{rest[:60]}"
            for old in ("Kim 2012 v1.01, Table", "Franchi, Algorithm", "Ploen 1995 (1", "Ploen 1995 (5", "Ploen (2"):
                assert old not in " ".join(text.split()), f"{path}: {name}: {old}"


def test_reading_of_ranges():
    assert make.items("(24)-(26), Tables 1, 3-4 and 7") == ["(24)", "(25)", "(26)", "Table 1", "Table 3", "Table 4", "Table 7"]
    assert make.citations("as in K1 (7), Corollaries 1-2;\n  PBP (3) and (5): AGF Lemma 2, of 3") == {
        ("K1", "(7)"), ("K1", "Corollary 1"), ("K1", "Corollary 2"), ("PBP", "(3)"), ("PBP", "(5)"), ("AGF", "Lemma 2")}
    assert make.citations("see (3), Table 2, K13 (4)") == set()


def test_slips_have_their_tests():
    tree = ast.parse((ROOT / make.SLIPS).read_text(encoding="utf-8"))
    there = {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}
    assert there == {slip["test"] for slip in make.slips()}


# commands -----------------------------------------------------------------------------------------------------------
def test_commands_and_their_options_exist():
    for command in {command for _, row in ROWS for command in row.commands}:
        name, *options = command.split()
        assert name in COMMANDS, command
        parameters = main.get_command(None, name).params
        assert set(options) <= {option for parameter in parameters for option in parameter.opts}, command


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports() -> dict[str, set[str]]:
    """Modules that each module of the package imports, at its top or in a function."""
    files = {module_of(path): path for path in (ROOT / "src").rglob("*.py")}
    return {module: imported(ast.parse(path.read_text(encoding="utf-8")), set(files)) for module, path in files.items()}


def imported(tree: ast.AST, modules: set[str]) -> set[str]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in modules:
            found |= {node.module, *(f"{node.module}.{x.name}" for x in node.names)} & modules
    return found


def imported_by(command: str) -> set[str]:
    """Modules that a command's function imports, or names in its own module."""
    tree = ast.parse((ROOT / f"src/liedyn/cli/{COMMANDS[command]}.py").read_text(encoding="utf-8"))
    parts = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    parts |= {name.asname or name.name: node for node in tree.body if isinstance(node, ast.ImportFrom) for name in node.names}
    seen, waiting, found = set(), [command], set()
    while waiting:
        name = waiting.pop()
        if name in parts and name not in seen:
            seen.add(name)
            found |= imported(parts[name], set(imports()))
            waiting += [node.id for node in ast.walk(parts[name]) if isinstance(node, ast.Name)]
    return found


def reached(start: set[str]) -> set[str]:
    seen, waiting = set(), list(start)
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            waiting += imports()[module]
    return seen


def test_commands_reach_the_functions():
    """A command imports, through others, at least one of the functions' modules for each item."""
    reach = {command: reached(imported_by(command)) for command in COMMANDS}
    for paper, row in ROWS:
        for command in row.commands:
            for member, functions in zip(row.members, row.functions, strict=True):
                modules = {module_of(ROOT / place.path) for place in functions if place.path.startswith("src")}
                assert modules & reach[command.split()[0]], f"{paper.name} {member}: liedyn {command}"
