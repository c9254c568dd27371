"""Cache of a model between calls: generated code, tables, workspaces.

A key is a frozen dataclass, equal only to keys of the same class with equal fields. Its fields are everything that the value
depends on, except for the model.
"""
from __future__ import annotations

import os
import threading
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

_LOCK = threading.RLock()          # of all models: a value may be built from those of another, such as the spanning tree


def _renew_lock() -> None:
    """Open the lock in a child process: a thread that builds a value holds it, and the child does not have that thread."""
    global _LOCK
    _LOCK = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


@dataclass(frozen=True, eq=False)
class ModelValue:
    """Key of a value that depends on the model only. Each instance is a separate key, whatever its name."""

    name: str


class ModelCache:
    """Values by key. Of the values with a limit, only the most recently used ones are stored."""

    __slots__ = ("recent", "values")

    def __init__(self) -> None:
        self.values: dict[Hashable, Any] = {}
        self.recent: dict[Hashable, Any] = {}          # the least recently used first

    def __len__(self) -> int:
        return len(self.values) + len(self.recent)

    def get(self, key: Hashable, build: Callable[[], Any], limit: int | None) -> Any:
        """Return the value of a key (see `Model.cached`)."""
        try:
            return self.values[key]
        except KeyError:
            pass
        with _LOCK:
            if limit is not None:
                value = self.recent.pop(key) if key in self.recent else build()
                self.recent[key] = value
                while len(self.recent) > limit:
                    del self.recent[next(iter(self.recent))]
                return value
            if key not in self.values:             # another thread may have been first
                self.values[key] = build()
            return self.values[key]

    def clear(self) -> None:
        """Remove all values."""
        with _LOCK:
            self.values.clear()
            self.recent.clear()
