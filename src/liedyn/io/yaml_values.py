"""YAML trees from other sources than files: overrides ``key.path=value`` of a parsed tree, and plain Python values."""
from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import yaml

from liedyn.errors import InputError, Place
from liedyn.io.file_schema import Value, excluded_keys, values_below
from liedyn.io.recorded_paths import relative_path
from liedyn.io.yaml_nodes import NULL, Node, parse_yaml

_PART = r'(?:"[^"]*"|[^.="]+)'
_OVERRIDE = re.compile(rf"\s*({_PART}(?:\.{_PART})*?)\s*=(.*)\Z", re.DOTALL)


Overrides = Mapping[str, Any] | Iterable[str]


def override_texts(overrides: Overrides, error: type[InputError]) -> tuple[str, ...]:
    """Return overrides as texts "key.path=value", from a dict {"key.path": value}, an iterable of such texts, or one text."""
    if isinstance(overrides, str):
        return (overrides,)
    if isinstance(overrides, Mapping):
        return tuple(f"{path}={text_of(value, str(path), error)}" for path, value in overrides.items())
    texts = tuple(overrides)
    for text in texts:
        if not isinstance(text, str):
            raise error("not an override", found=text, expected='"key.path=value", or a dict {"key.path": value}')
    return texts


def tree_of(values: Mapping[str, Any], file: str, error: type[InputError]) -> Node:
    """Return the tree of plain Python values. Errors name `file` and the key.

    Values may be dicts, lists, text, numbers, booleans, None, arrays and scalars of NumPy, and paths.
    """
    root = parse_yaml(text_of(values, file, error), file, error)
    _graft(root, file, "")
    return root


def text_of(value: Any, location: str, error: type[InputError]) -> str:
    """Return the values as JSON, numbers with all digits. `location` is the location in errors."""
    try:
        return json.dumps(value, default=_plain, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as problem:
        raise error(f"invalid values: {problem}", place=Place(location),
                    expected="dicts, lists, text, numbers, true or false") from None


def _plain(value: object) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"found {type(value).__name__}")


def is_override(text: str) -> bool:
    """Return whether the text has the form "key.path=value"."""
    return _OVERRIDE.match(text) is not None


def path_parts(path: str) -> list[str]:
    """Return the keys of "key.path". Names with a dot are in quotes."""
    return [part.strip('"').strip() for part in re.findall(_PART, path)]


def first_key(keys: Container[object], path: list[str]) -> list[str]:
    """Return the parts of a path that are its first key: several if `keys` contains a name with dots."""
    lengths = [1, *range(len(path), 1, -1)]
    return path[:next((k for k in lengths if ".".join(path[:k]) in keys), 1)]


def override(root: Node, text: str, error: type[InputError], *declared: Value) -> list[str]:
    """Apply "key.path=value" to the tree. Return the keys that it replaced.

    The value is YAML; null removes the key. Errors name the override. A new name with a dot is in quotes, an entry of a list is
    written by its number: ``external_forces.0.until=2``. `declared` is the declaration of the tree: a key of which only one may
    exist (`Schema.one_of`) replaces its siblings.
    """
    file = f"override {text}"
    match = _OVERRIDE.match(text)
    if match is None:
        raise error("not an override", place=Place(file), expected="key.path=value")
    path = path_parts(match[1])
    text = match[2].strip()
    if not text:
        raise error("no value", place=Place(file), expected="key.path=value", hint="null removes a key")
    new = Node("null", None, file, None, "", error) if text in NULL else parse_yaml(text, file, error)
    holder, replaced = root, []
    holder.mapping()
    while (part := first_key(holder.value, path)) != path:
        replaced += _make_room(holder, ".".join(part), declared)
        holder, path, declared = _enter(holder, ".".join(part), file), path[len(part):], values_below(declared, ".".join(part))
    holder, entry = _entry(holder, ".".join(part), file)
    if new.kind == "null" and (holder.kind == "list" or entry in holder.value):
        del holder.value[entry]
        return replaced
    replaced += _make_room(holder, entry, declared)
    _graft(new, file, _key(holder, entry))
    holder.value[entry] = new
    return replaced


def _make_room(node: Node, part: str | int, declared: Iterable[Value]) -> list[str]:
    """Remove the keys that cannot stand next to the key `part`. Return them."""
    if node.kind != "mapping":
        return []
    return [_key(node, key) for key in sorted(excluded_keys(declared, str(part))) if node.value.pop(key, None)]


_IN_FILES = {"robot": "`liedyn batch` varies parameters of a robot",
             "control.gain": "write the gain in the scenario, such as gain: {tau.cart: {q.pole: -50}}, to vary its values"}


def _enter(node: Node, part: str, file: str) -> Node:
    """Return the child `part`. If there is none, add an empty mapping."""
    node, entry = _entry(node, part, file)
    if node.kind == "list":
        child = node.value[entry]
    else:
        child = node.value.setdefault(entry, Node("mapping", {}, file, None, _key(node, entry), node.error))
    if child.kind == "null":
        child.kind, child.value = "mapping", {}
    if child.kind not in ("mapping", "list"):
        raise node.error("a value has no keys", place=Place(file, None, child.key), found=child.excerpt(),
                         hint=_IN_FILES.get(child.key))
    result: Node = child
    return result


def _entry(node: Node, part: str, file: str) -> tuple[Node, str | int]:
    """Return the node and key of a part of a path: a mapping and its key, or a list and the index of its entry.

    `external_forces[0]`, the form in errors, is a list and an index.
    """
    entry = re.fullmatch(r"(.+)\[(\d+)\]", part)
    if node.kind == "mapping" and entry and part not in node.value:
        child = node.value.get(entry[1])
        if child is not None and child.kind == "list":
            node, part = child, entry[2]
    if node.kind != "list":
        return node, part
    if not part.isdecimal() or int(part) >= len(node.value):
        raise node.error("no such entry", place=Place(file, None, node.key), found=part,
                         expected=f"a number from 0 to {len(node.value) - 1}" if node.value
                         else "another key: the list is empty")
    return node, int(part)


def _key(node: Node, part: str | int) -> str:
    if node.kind == "list":
        return f"{node.key}[{part}]"
    return f"{node.key}.{part}" if node.key else str(part)


def _graft(node: Node, file: str, key: str) -> None:
    """Set the location of a parsed value, and of its children, to that of its override."""
    node.file, node.line, node.key = file, None, key
    children = node.value.items() if node.kind == "mapping" else enumerate(node.value) if node.kind == "list" else ()
    for part, child in children:
        _graft(child, file, _key(node, part))


# Plain values as YAML that reads back equal -----------------------------------------------------------------------------

_WIDTH = 130
_LONG_KEY = 1000                     # characters: longer keys must be written as `? key`


class FilePath(str):
    """A path within plain values, as it can be opened from the current folder."""


def plain(value: Any, folder: str | os.PathLike[str] | None = None) -> Any:
    """Return values as in a file: lists for tuples, no keys whose value is None, paths relative to `folder` or absolute."""
    if isinstance(value, dict):
        return {key: plain(entry, folder) for key, entry in value.items() if entry is not None}
    if isinstance(value, list | tuple):
        return [plain(entry, folder) for entry in value]
    if isinstance(value, FilePath):
        return os.path.abspath(value) if folder is None else relative_path(value, folder)
    return value


def to_yaml(values: Mapping[str, Any], indent: str = "") -> str:
    """Return YAML of a mapping of text, numbers, booleans, None, lists and mappings.

    A key whose value fits has one line. Otherwise the keys of a mapping, and the entries of a list with mappings, have lines of
    their own, one level deeper.
    """
    return "\n".join(_key_lines(values, indent)) + "\n"


def _key_lines(values: Mapping[str, Any], indent: str) -> Iterator[str]:
    for key, value in values.items():
        word = _word(key)
        head = f"{indent}{word}:" if len(word) < _LONG_KEY else f"{indent}? {word}\n{indent}:"
        line = f"{head} {flow_yaml(value)}"
        if len(line) > _WIDTH and isinstance(value, dict) and value:
            yield head
            yield from _key_lines(value, indent + "  ")
        elif len(line) > _WIDTH and isinstance(value, list) and any(isinstance(entry, dict) for entry in value):
            yield head
            yield from _entry_lines(value, indent + "  ")
        else:
            yield line


def _entry_lines(values: list[Any], indent: str) -> Iterator[str]:
    for value in values:
        line = f"{indent}- {flow_yaml(value)}"
        if len(line) > _WIDTH and isinstance(value, dict) and value:
            text = to_yaml(value, indent + "  ").rstrip("\n")
            yield f"{indent}- {text.lstrip()}"
        else:
            yield line


def flow_yaml(value: Any) -> str:
    """Return a value as YAML on one line."""
    if isinstance(value, dict):
        keys = [("? " if len(key) >= _LONG_KEY else "") + _word(key) for key in value]
        return "{" + ", ".join(f"{key}: {flow_yaml(x)}" for key, x in zip(keys, value.values(), strict=True)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(flow_yaml, value)) + "]"
    if isinstance(value, str):
        return _word(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    return _number(float(value))


def _number(x: float) -> str:
    """Return a number as text that reads back to the same bits.

    Integers have no point. Other numbers have one: some YAML readers take 1e-05 as text, but 1.0e-05 as a number.
    """
    if not math.isfinite(x):
        return ".nan" if math.isnan(x) else ".inf" if x > 0 else "-.inf"
    text = repr(x)
    if x.is_integer() and abs(x) < 1e15 and text[:2] != "-0":
        return str(int(x))
    return text.replace("e", ".0e") if "." not in text else text


@lru_cache(4096)
def _word(text: str) -> str:
    """Return text with quotes if it needs them in a flow mapping or list."""
    return str(yaml.dump([text], Dumper=_Dumper, default_flow_style=True, allow_unicode=True, width=1_000_000))[1:-2]


class _Dumper(yaml.SafeDumper):          # type: ignore[misc]  # PyYAML has no types
    """Writer of text in quotes that our reader understands, too; PyYAML quotes by the rules of YAML 1.1."""


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if _is_text(text) else '"')


_Dumper.add_representer(str, _text)


def _is_text(text: str) -> bool:
    """Return whether our reader takes a word for text, or PyYAML quotes it anyway. Line ends need double quotes."""
    if not text or text.split() != [text]:
        return "\n" not in text                                # PyYAML quotes text with blanks at the ends
    try:
        return bool(parse_yaml(f"- {text}").value[0].kind == "text")
    except (ValueError, IndexError):
        return False
