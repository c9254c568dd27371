"""Names that match patterns such as "leg*", and values by name or pattern."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TypeVar

from liedyn.errors import UsageError, unknown_name

Value = TypeVar("Value")


def matching_names(pattern: str, names: Sequence[str]) -> list[str]:
    """Return the name equal to the pattern, whatever characters it contains, otherwise the names that match the pattern."""
    return [pattern] if pattern in names else [name for name in names if fnmatchcase(name, pattern)]


def values_by_name(values: Mapping[str, Value], names: Sequence[str], kind: str) -> dict[str, Value]:
    """Return the value of each name: that of the name, otherwise of the longest pattern that matches it, "*" last.

    Raises NameLookupError for a pattern without match, and UsageError for two patterns of the same length that match one name.
    """
    best: dict[str, tuple[float, str]] = {}
    for pattern in values:
        hits = matching_names(pattern, names)
        if not hits:
            raise unknown_name(kind, pattern, names)
        for name in hits:
            rank = pattern_rank(pattern, names)
            if name in best and best[name][0] == rank:
                raise UsageError(f"{kind} {name} matches two patterns of the same length, {best[name][1]!r} and {pattern!r}: "
                                 f"name {name} separately")
            if name not in best or best[name][0] < rank:
                best[name] = rank, pattern
    return {name: values[best[name][1]] for name in names if name in best}


def pattern_rank(pattern: str, names: Sequence[str]) -> float:
    """Return how specific a pattern is: infinite for a name, 0 for "*", otherwise its length."""
    return float("inf") if pattern in names else 0.0 if pattern == "*" else float(len(pattern))
