"""Words of the field: names that were replaced by standard terms do not come back, and phrases that are still left only become
fewer."""
import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = [path for folder in ("src", "tests") for path in sorted((ROOT / folder).rglob("*.py"))
           if path.name != Path(__file__).name]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FORBIDDEN = frozenset((ROOT / "tests" / "forbidden_names.txt").read_text(encoding="utf-8").split())
# Phrases that a stranger does not understand, with the uses that remain in the sources and in the documents. A test fails where
# there are more, and where there are fewer: then lower the number.
REMAINING = {
    r"straight-line": (0, 0),
    r"side by side": (0, 0),
    r"one after the other": (0, 0),
    r"\bbeside\b": (1, 1),
    r"of its own": (0, 1),
    r"\b(is|are) refused": (0, 0),
    r"as it stands": (0, 0),
    r"\b(told|tells?)\b": (109, 0),
    r"\bhears?\b": (0, 0),
    r"\b(goes|go|went|going) on\b(?! (the|a) )": (0, 0),
    r"\bfindings?\b": (1, 0),
    r"\bpictures?\b": (3, 0),
    r"\b(a|the) notes?\b": (0, 0),
}


def identifiers(path: Path) -> set[str]:
    """All names in a source: of modules, functions, classes, parameters, attributes and variables."""
    found = {path.stem}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        found |= {value for key in ("id", "attr", "arg", "name", "asname") if isinstance(value := getattr(node, key, None), str)}
    return found


def test_names_that_were_replaced_do_not_come_back():
    found = {path.relative_to(ROOT).as_posix(): names for path in SOURCES if (names := identifiers(path) & FORBIDDEN)}
    assert not found


def test_the_list_is_read_and_finds_names():
    assert len(FORBIDDEN) > 800 and identifiers(ROOT / "src" / "liedyn" / "model" / "model.py") >= {
        "Model", "spanning_tree", "nv"}


@pytest.mark.parametrize("phrase", REMAINING)
def test_phrases_only_become_fewer(phrase):
    count = tuple(sum(len(re.findall(phrase, path.read_text(encoding="utf-8"), re.IGNORECASE)) for path in paths)
                  for paths in ([path for path in SOURCES if "src" in path.parts], PAGES))
    assert count == REMAINING[phrase], f"lower the number to {count}" if count < REMAINING[phrase] else f"more uses: {count}"
