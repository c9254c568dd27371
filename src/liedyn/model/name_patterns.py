"""Names that match patterns such as "leg*"."""
from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase


def matching_names(pattern: str, names: Sequence[str]) -> list[str]:
    """Return the name equal to the pattern, whatever characters it contains, otherwise the names that match the pattern."""
    return [pattern] if pattern in names else [name for name in names if fnmatchcase(name, pattern)]
