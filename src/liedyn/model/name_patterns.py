"""Names that match patterns such as "leg*", and values by name or pattern."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TypeVar

from liedyn.errors import UsageError, unknown_name

Value = TypeVar("Value")


def matching_names(pattern: str, names: Sequence[str]) -> list[str]:
    """Return the name equal to the pattern, whatever characters it contains, otherwise the names that match the pattern.

    A pattern that is no text matches none.
    """
    if not isinstance(pattern, str):
        return []
    return [pattern] if pattern in names else [name for name in names if fnmatchcase(name, pattern)]


def values_by_name(values: Mapping[str, Value], names: Sequence[str], kind: str) -> dict[str, Value]:
    """Return the value of each name: that of the name, otherwise of the longest pattern that matches it, "*" last.

    Raises NameLookupError for a pattern without match, and UsageError for two patterns of the same length that match one name.
    """
    def conflict(name: str, first: str, second: str) -> UsageError:
        return UsageError(f"{kind} {name} matches two patterns of the same length, {first!r} and {second!r}: "
                          f"name {name} separately")

    matches = []
    for pattern in values:
        hits = matching_names(pattern, names)
        if not hits:
            raise unknown_name(kind, pattern, names)
        matches += [(name, pattern_rank(pattern, names), pattern) for name in hits]
    best = most_specific(matches, conflict)
    return {name: values[best[name]] for name in names if name in best}


def most_specific(matches: Iterable[tuple[str, float, Value]],
                  conflict: Callable[[str, Value, Value], Exception]) -> dict[str, Value]:
    """Return the value of the highest rank of each name. Raises conflict(name, first, second) for two of this rank.

    matches  (name, rank of a pattern that matches it, value)
    """
    best: dict[str, tuple[float, list[Value]]] = {}
    for name, rank, value in matches:
        highest, values = best.get(name, (rank, []))
        if rank >= highest:
            best[name] = rank, [*(values if rank == highest else ()), value]
    for name, (_, values) in best.items():
        if len(values) > 1:
            raise conflict(name, *values[:2])
    return {name: values[0] for name, (_, values) in best.items()}


def pattern_rank(pattern: str, names: Sequence[str]) -> float:
    """Return how specific a pattern is: infinite for a name, 0 for "*", otherwise its length."""
    return float("inf") if pattern in names else 0.0 if pattern == "*" else float(len(pattern))
