"""Writes docs/papers.md: every numbered item of the five papers, the functions that compute it, the tests that check it, the
commands that use it.

    python docs/make_papers.py

docs/papers.toml says what the papers number. What computes an item names it in its docstring, in src/ or configs/, by the paper's
short name and the numbers as printed: `K1 (24)-(27), Table 2; PBP (21)`; so does the comment at the head of a section. A test
names what it checks in the same form after the word `Checks:` in its docstring.
"""
from __future__ import annotations

import ast
import inspect
import re
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "docs"))

from site_pages.python_api import SUBJECTS  # noqa: E402

import liedyn  # noqa: E402

PAPERS = ("K1", "K2", "PBP", "PL", "AGF")
KINDS = {"Table": "tables", "Algorithm": "algorithms", "Figure": "figures"}
INTRODUCTION = """\
<!-- written by docs/make_papers.py from docs/papers.toml and docstrings; a test checks that it is up to date -->

[Reading the papers](papers/index.md) explains the formulas. This page is the complete list: every numbered equation, table,
algorithm and figure, with the functions that compute it, the tests that check it, and the commands that use it. Names in `code`
are public and link to their documentation. Other names are internal and link to their source. Short names are explained in
[conventions](conventions.md#letters-in-the-code).

The tests in `tests/papers/` evaluate each formula as printed and compare it with the library. Items without a command are
computed in Python: `ld.closed_form`, `ld.spatial_closed_form`, `ld.coriolis_matrix`, `ld.christoffel_symbols`,
`ld.curvature_tensor`.

The column "statements" counts lemmas, propositions, corollaries, definitions and remarks."""
SLIPS = "tests/papers/test_slips.py"
SHOWN = 4                                        # places a row names; the others are counted

_RANGE = r"\(?\d+\)?(?:-\(?\d+\)?)?"
_KIND = r"(?:Table|Algorithm|Figure|Lemma|Proposition|Definition|Remark)s?|Corollary|Corollaries"
_ITEM = rf"(?:\(\d+\)(?:-\(\d+\))?|(?:{_KIND}) \d+(?:-\d+)?(?:(?:, | and )\d+(?:-\d+)?)*)"
_LIST = rf"{_ITEM}(?:(?:, and |, | and ){_ITEM})*"
_NAMED = re.compile(rf"\b(?:{'|'.join(PAPERS)})\b|Checks:|Source:|Kim|Ploen|Franchi")
_CITATION = re.compile(rf"\b({'|'.join(PAPERS)})\s+({_LIST})")

_SECTION = re.compile(r"^# .+ -{3,}\n(?:\n?(?:#.*\n)+)?", re.MULTILINE)


class Place(NamedTuple):
    """A function, class, method, module or test, and its file."""

    name: str
    path: str

    def __str__(self) -> str:
        subject = PUBLIC.get(self)
        if subject:
            return f"[`{self.name}`](reference/python/{subject.replace(' ', '-')}.md)"
        return f"[{self.name}](../{self.path})"


def items(text: str) -> list[str]:
    """"(24)-(26), Tables 1, 3-4" as "(24)", "(25)", "(26)", "Table 1", "Table 3", "Table 4"."""
    out = []
    for kind, numbers in re.findall(rf"(?:([A-Z][a-z]+) )?({_RANGE}(?:(?:, | and )\d+(?:-\d+)?)*)", text):
        kind = {"Corollaries": "Corollary"}.get(kind, kind.rstrip("s"))
        for part in re.findall(_RANGE, numbers):
            ends = [int(x) for x in re.findall(r"\d+", part)]
            out += [f"{kind} {n}" if kind else f"({n})" for n in range(ends[0], ends[-1] + 1)]
    return out


def citations(text: str) -> set[tuple[str, str]]:
    """What a docstring cites: {("K1", "(24)"), …}."""
    text = " ".join(text.split())
    return {(paper, item) for paper, found in _CITATION.findall(text) for item in items(found)}


@cache
def docstrings(path: Path) -> list[tuple[str, str]]:
    """(name, docstring) of the module with the heads of its sections, its functions, classes and their methods; none of a file in
    which no paper is named."""
    def below(node, prefix):
        for child in node.body:
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                yield prefix + child.name, ast.get_docstring(child, clean=False) or ""
                if isinstance(child, ast.ClassDef):
                    yield from below(child, f"{child.name}.")
    text = path.read_text(encoding="utf-8")
    if not _NAMED.search(text):
        return []
    tree = ast.parse(text)
    heads = (re.sub(r"^# ?|-{3,}$", "", head, flags=re.MULTILINE) for head in _SECTION.findall(text))
    return [(path.name, "\n\n".join([ast.get_docstring(tree, clean=False) or "", *heads])), *below(tree, "")]


def places(folders: tuple[str, ...], after: str = "") -> dict[tuple[str, str], list[Place]]:
    """Where each item is cited: in docstrings of the folders, or only behind the word `after` in them."""
    out: dict[tuple[str, str], list[Place]] = {}
    for path in sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        for name, text in docstrings(path):
            if after:
                text = text.partition(after)[2]
            for cited in citations(text):
                out.setdefault(cited, []).append(Place(name, path.relative_to(ROOT).as_posix()))
    return out


# The subjects of public names, each with its file.
PUBLIC = {Place(name, Path(inspect.getfile(inspect.unwrap(getattr(liedyn, name)))).relative_to(ROOT).as_posix()): subject
          for subject, names in SUBJECTS.items() for name in names}


class Row(NamedTuple):
    """One line of a paper's table."""

    item: str
    members: list[str]
    what: str
    functions: list[list[Place]]      # of each member
    tests: list[list[Place]]
    commands: list[str]


class Paper(NamedTuple):
    name: str
    title: str
    note: str
    without: dict[str, str]           # items that cannot be traced, and why
    rows: list[Row]

    def counts(self) -> dict[str, tuple[int, int, int]]:
        """(items, traced to code, with a test) of each kind."""
        out = {kind: [0, 0, 0] for kind in ("equations", *KINDS.values(), "statements")}
        for row in self.rows:
            for member, functions, tests in zip(row.members, row.functions, row.tests, strict=True):
                kind = "equations" if member[0] == "(" else KINDS.get(member.split()[0], "statements")
                out[kind] = [n + x for n, x in zip(out[kind], (1, bool(functions), bool(tests)), strict=True)]
        return {kind: tuple(n) for kind, n in out.items()}


def papers() -> list[Paper]:
    """All papers, in the order of PAPERS."""
    given = tomllib.loads((ROOT / "docs/papers.toml").read_text(encoding="utf-8"))
    functions, tests = places(("src", "configs")), places(("tests",), after="Checks:")
    out = {}
    for name in PAPERS:
        paper, rows = given[name], []
        commands = {member: split(text) for key, text in paper["commands"].items() for member in items(key)}
        for key, theirs in paper.get("same", {}).items():
            numbers = dict(zip(items(theirs), items(key), strict=True))
            for row in out["K1"].rows:
                if all(member in numbers for member in row.members):
                    own = [numbers[member] for member in row.members]
                    rows.append(Row(named(own), own, f"{row.what} (K1 {row.item})", row.functions, row.tests, row.commands))
        for key, what in paper["items"].items():
            members = items(key)
            rows.append(Row(key, members, what, [functions.get((name, member), []) for member in members],
                            [tests.get((name, member), []) for member in members], commands[members[0]]))
        if "same" in paper:
            rows.sort(key=lambda row: (row.members[0][0] != "(", int(re.findall(r"\d+", row.members[0])[0])))
        out[name] = Paper(name, paper["title"], paper["note"], paper.get("without", {}), rows)
    return list(out.values())


def slips() -> list[dict[str, str]]:
    return tomllib.loads((ROOT / "docs/papers.toml").read_text(encoding="utf-8"))["slips"]


def split(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def named(members: list[str]) -> str:
    """The range of some members of one kind."""
    if len(members) == 1:
        return members[0]
    if members[0][0] == "(":
        return f"{members[0]}-{members[-1]}"
    kind, first = members[0].split()
    return f"{kind.removesuffix('y') + 'ies' if kind.endswith('y') else kind + 's'} {first}-{members[-1].split()[1]}"


# the page -----------------------------------------------------------------------------------------------------------
def page() -> str:
    found = papers()
    lines = ["# Papers traced", "", INTRODUCTION, "",
             "| paper | equations | tables | algorithms | figures | statements |", "|---|---|---|---|---|---|"]
    total: dict[str, tuple[int, ...]] = {}
    for paper in found:
        counts = paper.counts()
        lines.append(f"| [{paper.name}](#{paper.name.lower()}) | " + " | ".join(map(told, counts.values())) + " |")
        total = {kind: tuple(map(sum, zip(total.get(kind, (0, 0, 0)), n, strict=True))) for kind, n in counts.items()}
    without = [f"{paper.name} {item} ({why})" for paper in found for item, why in paper.without.items()]
    lines += ["| all | " + " | ".join(map(told, total.values())) + " |", "",
              f"Numbers: items / traced to code / with a test. Not traced: {', '.join(without)}.", ""]
    lines += ["## Errata", "", "The formula as printed or scanned, and the correct formula. Each test evaluates both.", "",
              "| where | printed | correct | test |", "|---|---|---|---|"]
    lines += [f"| {slip['where']} | {slip['printed']} | {slip['right']} | {Place(slip['test'], SLIPS)} |" for slip in slips()]
    for paper in found:
        lines += ["", f"## {paper.name}", "", f"{paper.title}. {paper.note}", "",
                  "| item | content | function | test | command |", "|---|---|---|---|---|"]
        for row in paper.rows:
            commands = ", ".join(f"`liedyn {command}`" for command in row.commands)
            lines.append(f"| {row.item} | {row.what} | {listed(row.functions)} | {listed(row.tests)} | {commands} |")
    return "\n".join(lines) + "\n"


def told(counts: tuple[int, ...]) -> str:
    return " / ".join(map(str, counts)) if counts[0] else ""


def listed(of_members: list[list[Place]]) -> str:
    """The places of a row, of which SHOWN are named, and more where a member would have none."""
    count: dict[Place, int] = {}
    for places_ in of_members:
        for place in places_:
            count[place] = count.get(place, 0) + 1
    # public functions and tests of the papers first, then what names most of the members
    ranked = sorted(count, key=lambda place: (not place.path.startswith(("src/liedyn/dynamics", "tests/papers")), -count[place],
                                              place.name.endswith(".py")))
    shown, open_ = [], [set(places_) for places_ in of_members if places_]
    for place in ranked:
        if len(shown) < SHOWN or not all(set(shown) & one for one in open_):
            shown.append(place)
    more = len(ranked) - len(shown)
    return ", ".join(map(str, shown)) + (f", {more} more" if more else "")


if __name__ == "__main__":
    (ROOT / "docs/papers.md").write_text(page(), encoding="utf-8")
