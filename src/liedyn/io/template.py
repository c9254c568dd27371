"""Commented YAML of all keys of a file, made from the declarations that its reader uses. What has no # is a file that runs."""
from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from liedyn.io.keys import Either, Key, Keys, List, Named, Value
from liedyn.io.schema import told
from liedyn.io.write_yaml import to_yaml

_COLUMN = 46                         # of comments
_WIDTH = 130


@dataclass(frozen=True, slots=True)
class _Row:
    """A line. `off`: depth from which it is commented out; None: it is not."""

    depth: int
    off: int | None
    text: str
    comment: str = ""


def template(root: Keys, head: str) -> str:
    """The text of a file with all keys of `root`; `head` is a comment."""
    seen: set[int] = set()
    lines = [f"# {line}" for line in head.splitlines()]
    for key in _in_order(root):
        lines += ["", *(line for row in _key(key, 0, None, seen) for line in _lines(row))]
    return "\n".join(lines) + "\n"


def _in_order(keys: Keys) -> list[Key]:
    return sorted(keys.keys, key=lambda key: not key.required or bool(key.kinds and not key.live))


def _key(key: Key, depth: int, off: int | None, seen: set[int]) -> Iterator[_Row]:
    """A key with its example, and below it, commented out, what else it may hold."""
    if off is None and not key.live:
        off = depth
    if key.example is None:
        yield _Row(depth, off, f"{key.name}:", told(key))
        yield from _spelt(key.value, depth + 1, off, seen)
        return
    other = _structured(key.value)
    unseen = other is not None and any(id(one) not in seen for one in other.keys)
    if isinstance(key.value, Named):
        yield _Row(depth, off, f"{key.name}:", told(key))
        for name, value in key.example.items():
            yield from _entry(name, value, depth + 1, off)
        if unseen:
            yield from _spelt(key.value, depth + 1, depth + 1 if off is None else off, seen)
        return
    yield _Row(depth, off, f"{key.name}: {to_yaml(key.example, True)}", told(key))
    if unseen:
        off = depth if off is None else off
        yield _Row(depth, off, f"{key.name}:", "or one of:" if other.one_of else "or:")
        yield from _spelt(key.value, depth + 1, off, seen)


def _entry(name: str, value: Any, depth: int, off: int | None) -> Iterator[_Row]:
    """A key with its value in a line, or with a line for each of its own keys."""
    line = f"{to_yaml(name, True)}: {to_yaml(value, True)}"
    if not isinstance(value, dict) or len(line) + 2 * depth <= _WIDTH:
        yield _Row(depth, off, line)
        return
    yield _Row(depth, off, f"{to_yaml(name, True)}:")
    for inner, part in value.items():
        yield from _entry(inner, part, depth + 1, off)


def _spelt(value: Value, depth: int, off: int | None, seen: set[int]) -> Iterator[_Row]:
    """A structured value, key by key."""
    if isinstance(value, Named):
        yield _Row(depth, off, f"{to_yaml(value.name, True)}:")
        yield from _spelt(value.of, depth + 1, off, seen)
    elif isinstance(value, List):
        first = True
        for row in _spelt(value.of, depth + 1, off, seen):
            yield replace(row, depth=depth, text=f"- {row.text}") if first else row
            first = False
    elif (keys := _structured(value)) is not None:
        seen.update(map(id, keys.keys))
        for key in _in_order(keys):
            yield from _key(key, depth, off, seen)


def _structured(value: Value) -> Keys | None:
    """The mapping with known keys that a value is or may be."""
    if isinstance(value, Keys):
        return value
    if isinstance(value, List | Named):
        return _structured(value.of)
    return next(filter(None, map(_structured, value.values)), None) if isinstance(value, Either) else None


def _lines(row: _Row) -> list[str]:
    """The row with its comment behind it, or above it where that would be too long."""
    start = "  " * row.depth if row.off is None else "  " * row.off + "# " + "  " * (row.depth - row.off)
    text = start + row.text
    if not row.comment:
        return [text]
    if len(text) <= _COLUMN - 2:
        first, *rest = textwrap.wrap(row.comment, _WIDTH - _COLUMN - 2)
        more = start if row.off is not None else ""
        return [f"{text:{_COLUMN}}# {first}", *(f"{more:{_COLUMN}}# {line}" for line in rest)]
    return [*(f"{start}# {line}" for line in textwrap.wrap(row.comment, _WIDTH - len(start) - 2)), text]
