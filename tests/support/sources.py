"""Sources of the package and of its tests as syntax trees: each file is read and parsed once per process."""
import ast
from functools import cache
from pathlib import Path


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(text_of(path))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of the syntax tree of a file, in the order of `ast.walk`."""
    return tuple(ast.walk(tree_of(path)))
