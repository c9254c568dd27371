"""Words of the field: names that were replaced by standard terms do not come back, and phrases that are still left only become
fewer."""
import ast
import builtins
import io
import keyword
import re
import tokenize
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = [path for folder in ("src", "tests") for path in sorted((ROOT / folder).rglob("*.py"))
           if path.name != Path(__file__).name]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FORBIDDEN = frozenset((ROOT / "tests" / "forbidden_names.txt").read_text(encoding="utf-8").split())
# Phrases that a stranger does not understand. The exceptions are the uses in the sources and in the documents, with their reason.
REMAINING = {
    r"straight-line": (0, 0),
    r"side by side": (0, 0),
    r"one after the other": (0, 0),
    r"\bbeside\b": (1, 0),                                     # key of a replay's page
    r"of its own": (0, 1),                                      # "the expression of its own event"
    r"\b(is|are) refused": (0, 0),
    r"as it stands": (0, 0),
    r"\b(told|tells?)\b": (2, 0),                              # to tell apart
    r"\bhears?\b": (0, 0),
    r"\b(goes|go|went|going) on\b(?! (the|a) )": (0, 0),
    r"\bfindings?\b": (0, 0),
    r"\bpictures?\b": (2, 0),                                  # a frame of a video
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


# Names in back quotes that are not of this package: of other libraries, and parts of names of columns.
OTHER_NAMES = {"findobj", "grad", "jit", "vmap", "refresh", "motion_name", "csv", "Condition", "threading", "RotationSpline"}


def words_of(path: Path) -> set[str]:
    """Identifiers of a source, and words of its short strings."""
    strings = (node.value for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
               if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 60)
    return identifiers(path) | {word for text in strings for word in re.findall(r"\w+", text)} | set(path.with_suffix("").parts)


def quoted_names(source: str) -> set[str]:
    """Names in back quotes in docstrings and comments."""
    texts = [token.string for token in tokenize.generate_tokens(io.StringIO(source).readline) if token.type == tokenize.COMMENT]
    texts += [ast.get_docstring(node) or "" for node in ast.walk(ast.parse(source))
              if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
    return {name for text in texts for name in re.findall(r"(?<!`)`([A-Za-z_][\w.]*)(?:\(\))?`(?!`)", text)}


def test_names_in_docstrings_and_comments_exist():
    sources = [path for path in SOURCES if "src" in path.parts]
    known = set().union(*map(words_of, sources)) | set(dir(builtins)) | set(keyword.kwlist) | OTHER_NAMES | {""}
    unknown = {path: {name for name in quoted_names(path.read_text(encoding="utf-8")) if not known.issuperset(name.split("."))}
               for path in sources}
    assert not {path.relative_to(ROOT).as_posix(): names for path, names in unknown.items() if names}


# Words that do not say what a variable holds: no variable, parameter, field, function or class in src may have such a name.
UNCLEAR_NAMES = frozenset({
    "after", "asked", "before", "found", "given", "heard", "held", "here", "keep", "kept", "least", "left", "made",
    "most", "now", "numbers", "off", "one", "others", "own", "share", "shown", "tell", "there", "told", "twice",
    "verdict", "wanted", "way", "what", "where", "which",
})
# The exceptions that remain, with their exact number. Public names stay, since programs of users contain them.
REMAINING_NAMES = {
    "after": 27,           # states or values after an event, step, impact or call; those before are `before`
    "before": 53,          # the same before it; and the last time before a stop time, which still has the earlier signals
    "found": 5,            # public attribute of InputError, and the keyword of the methods that make such errors
    "here": 1,             # public field of Linearization
    "keep": 2,             # public parameter of assembled_state, and option of `liedyn assemble`
    "left": 10,            # opposite of right: eigenvectors, types of operands, margins of a figure
    "numbers": 1,          # public parameter of Variants.of_numbers
    "off": 1,              # public field of DerivativeComparison
    "one": 6,              # the number 1 in the number type of a kernel, next to `zero`
    "verdict": 1,          # public property of Identification
    "way": 1,              # public field of Plan
    "what": 4,             # public parameter of warmup, Result.plot and figure_of, and option of `liedyn warmup`
}


def bound_names(path: Path) -> list[str]:
    """All names that a source binds: variables, parameters, functions and classes, without leading underscores."""
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        name = node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else getattr(node, "arg", None) if \
            isinstance(node, ast.arg) else node.name if isinstance(node, ast.FunctionDef | ast.ClassDef) else None
        names += [name.lstrip("_")] if name else []
    return names


def test_unclear_names_occur_only_as_exceptions():
    names = Counter(name for path in SOURCES if "src" in path.parts for name in bound_names(path))
    assert {word: names[word] for word in UNCLEAR_NAMES if names[word]} == REMAINING_NAMES
