"""Words of the field: names that were replaced by standard terms do not come back, and phrases that are still left only become
fewer."""
import ast
import builtins
import keyword
import re
from collections import Counter
from pathlib import Path

import pytest

from sources import nodes_of, text_of

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
    r"\b(is|are) refused": (0, 0),
    r"as it stands": (0, 0),
    r"\b(told|tells?)\b": (1, 0),                              # to tell apart
    r"\bhears?\b": (0, 0),
    r"\b(goes|go|went|going) on\b(?! (the|a) )": (0, 0),
    r"\bfindings?\b": (0, 0),
    r"\bpictures?\b": (2, 0),                                  # a frame of a video
    r"\b(a|the) notes?\b": (0, 0),
    r"; (found|expected) ": (0, 0),                            # errors say `expected X, got Y`
    r"without a word": (0, 0),
    r"again and again": (0, 0),
    r"exists already": (0, 0),
    r"\bof its own\b": (0, 0),
    r"\bby itself\b": (0, 0),
    r"\bat first\b": (0, 0),
    r"\bfor good\b": (0, 0),
    r"\bgives? back\b": (0, 0),
    r"\bstays? so\b": (0, 0),
    r"\bnobody\b": (0, 0),
    r"\b(is|are) the (angles|times|limit) in\b": (0, 0),
}


def identifiers(path: Path) -> set[str]:
    """All names in a source: of modules, functions, classes, parameters, attributes and variables."""
    found = {path.stem}
    for node in nodes_of(path):
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
    count = tuple(sum(len(re.findall(phrase, text_of(path), re.IGNORECASE)) for path in paths)
                  for paths in ([path for path in SOURCES if "src" in path.parts], PAGES))
    assert count == REMAINING[phrase], f"lower the number to {count}" if count < REMAINING[phrase] else f"more uses: {count}"


# Names in back quotes that are not of this package: of other libraries, and parts of names of columns.
OTHER_NAMES = {"findobj", "grad", "jit", "jvp", "vjp", "vmap", "scan", "jax_enable_x64", "refresh",
               "motion_name", "csv", "Condition", "threading", "RotationSpline"}


def words_of(path: Path) -> set[str]:
    """Identifiers of a source, and words of its short strings."""
    strings = (node.value for node in nodes_of(path)
               if isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 60)
    return identifiers(path) | {word for text in strings for word in re.findall(r"\w+", text)} | set(path.with_suffix("").parts)


def quoted_names(path: Path) -> set[str]:
    """Names in back quotes in docstrings and behind a # of a line, whether it begins a comment or is part of a text."""
    texts = [line.partition("#")[2] for line in text_of(path).splitlines()]
    texts += [ast.get_docstring(node) or "" for node in nodes_of(path)
              if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
    return {name for text in texts for name in re.findall(r"(?<!`)`([A-Za-z_][\w.]*)(?:\(\))?`(?!`)", text)}


def test_names_in_docstrings_and_comments_exist():
    sources = [path for path in SOURCES if "src" in path.parts]
    known = set().union(*map(words_of, sources)) | set(dir(builtins)) | set(keyword.kwlist) | OTHER_NAMES | {""}
    unknown = {path: {name for name in quoted_names(path) if not known.issuperset(name.split("."))}
               for path in sources}
    assert not {path.relative_to(ROOT).as_posix(): names for path, names in unknown.items() if names}


def attributes_by_class() -> dict[str, set[str]]:
    """Names that each class of the package defines, stores or inherits from another class of the package."""
    defined, bases = {}, {}
    for path in (path for path in SOURCES if "src" in path.parts):
        for node in nodes_of(path):
            if isinstance(node, ast.ClassDef):
                names = defined.setdefault(node.name, set())
                names |= {one.name for one in ast.walk(node) if isinstance(one, ast.FunctionDef)}
                names |= {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
                names |= {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store)}
                bases.setdefault(node.name, set()).update(base.id for base in node.bases if isinstance(base, ast.Name))
    inherited = set(defined)
    while inherited:
        sizes = {name: len(defined[name]) for name in defined}
        for name in inherited:
            defined[name] |= set().union(*(defined.get(base, set()) for base in bases[name]))
        inherited = {name for name in defined if len(defined[name]) > sizes[name]}
    return defined


def missing_attributes(text: str, defined: dict[str, set[str]]) -> list[str]:
    """Pairs `Class.attribute` in back quotes whose class is of this package and lacks the attribute."""
    pairs = re.findall(r"`(?:\w+\.)*([A-Z]\w+)\.(\w+)[`(]", text)
    return [f"{name}.{attribute}" for name, attribute in pairs if name in defined and attribute not in defined[name]]


def test_attributes_of_classes_in_texts_exist():
    defined = attributes_by_class()
    assert missing_attributes("`Model.nv`, `InitialValueProblem.begun`", defined) == ["InitialValueProblem.begun"]
    texts = [*PAGES, ROOT / "CONTRIBUTING.md", *(path for path in SOURCES if "src" in path.parts)]
    missing = {path: missing_attributes(text_of(path), defined) for path in texts}
    assert not {path.relative_to(ROOT).as_posix(): names for path, names in missing.items() if names}


def test_names_in_documents_are_in_the_module_that_follows():
    """`name` (`module.py`) in a document: the module has the name."""
    in_module = re.compile(r"`(\w+(?:\.\w+)*)(?:\(\))?`\s+\(`((?:\w+/)*\w+\.py)`\)")
    for page in (*PAGES, ROOT / "CONTRIBUTING.md"):
        for name, module in in_module.findall(page.read_text(encoding="utf-8")):
            found = [path for path in SOURCES if path.as_posix().endswith(f"/{module}")]
            names = set().union({"liedyn.__getattr__"}, *map(identifiers, found))
            assert {name, name.rpartition(".")[2]} & names, (page, name)


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
    "left": 9,            # opposite of right: eigenvectors, types of operands, margins of a figure
    "numbers": 1,          # public parameter of Variants.of_numbers
    "off": 1,              # public field of DerivativeComparison
    "one": 6,              # the number 1 in the number type of a kernel, next to `zero`
    "verdict": 1,          # public property of Identification
    "way": 1,              # public field of Plan
    "what": 5,             # public parameter of warmup, Result.plot, Rollout.plot and figure_of, and option of `liedyn warmup`
}


def bound_names(path: Path) -> list[str]:
    """All names that a source binds: variables, parameters, functions and classes, without leading underscores."""
    names = []
    for node in nodes_of(path):
        name = node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else getattr(node, "arg", None) if \
            isinstance(node, ast.arg) else node.name if isinstance(node, ast.FunctionDef | ast.ClassDef) else None
        names += [name.lstrip("_")] if name else []
    return names


def test_unclear_names_occur_only_as_exceptions():
    names = Counter(name for path in SOURCES if "src" in path.parts for name in bound_names(path))
    assert {word: names[word] for word in UNCLEAR_NAMES if names[word]} == REMAINING_NAMES
