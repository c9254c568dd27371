"""YAML trees from other sources than files: overrides ``-S key.path=value`` of a parsed tree, and plain Python values."""
from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import yaml

from liedyn.errors import InputError, Place
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


def override(root: Node, text: str, error: type[InputError], exclusive: tuple[tuple[str, ...], ...] = ()) -> list[str]:
    """Apply "key.path=value" to the tree. Return the keys that it replaced, and its own key.

    The value is YAML; null removes the key. Errors name the override. A name with a dot is written in quotes, an entry of a list
    by its number: ``external_forces.0.until=2``. A key of one of the groups `exclusive` replaces its siblings of the same group,
    in ``control`` and below an entry of ``joints``, also of a phase.
    """
    file = f"-S {text}"
    match = _OVERRIDE.match(text)
    if match is None:
        raise error("not an override", place=Place(file), expected="-S key.path=value")
    path = path_parts(match[1])
    text = match[2].strip()
    if not text:
        raise error("no value", place=Place(file), expected="-S key.path=value", hint="null removes a key")
    new = Node("null", None, file, None, "", error) if text in NULL else parse_yaml(text, file, error)
    holder, replaced = root, []
    holder.mapping()
    for part in path[:-1]:
        replaced += _make_room(holder, part, exclusive)
        holder = _enter(holder, part, file)
    holder, entry = _entry(holder, path[-1], file)
    if new.kind == "null" and (holder.kind == "list" or entry in holder.value):
        del holder.value[entry]
        return replaced
    replaced += _make_room(holder, entry, exclusive)
    _graft(new, file, _key(holder, entry))
    holder.value[entry] = new
    return replaced


def _make_room(node: Node, part: str | int, exclusive: tuple[tuple[str, ...], ...]) -> list[str]:
    if node.kind != "mapping" or not re.match(r"control|(phases\..*\.)?joints\.", node.key):
        return []
    siblings = {key for group in exclusive if part in group for key in group} - {part}
    return [_key(node, sibling) for sibling in sorted(siblings) if node.value.pop(sibling, None)]


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
        raise node.error("has no keys", place=Place(file, None, child.key), found=child.shown())
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


class FilePath(str):
    """A path within plain values, as it can be opened from the current folder."""


def plain(value: Any, folder: str | os.PathLike[str] | None = None) -> Any:
    """Return values as in a file: lists for tuples, no keys whose value is None, paths relative to `folder` or absolute."""
    if isinstance(value, dict):
        return {key: plain(entry, folder) for key, entry in value.items() if entry is not None}
    if isinstance(value, list | tuple):
        return [plain(entry, folder) for entry in value]
    if isinstance(value, FilePath):
        return os.path.abspath(value) if folder is None else os.path.relpath(value, folder)
    return value


class _Dumper(yaml.SafeDumper):          # type: ignore[misc]  # PyYAML has no types
    def ignore_aliases(self, _data: object) -> bool:
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    """In quotes where our reader would take the word for something else; PyYAML quotes by the rules of YAML 1.1."""
    node = dumper.represent_scalar("tag:yaml.org,2002:str", text)
    if _kind(text) != "text":
        node.style = '"'
    return node


def _kind(text: str) -> str | None:
    if not text or text.split() != [text]:
        return "text"                                          # PyYAML quotes what has blanks where they matter
    try:
        result: str | None = parse_yaml(f"- {text}").value[0].kind
        return result
    except (ValueError, IndexError):
        return None


def _number(dumper: _Dumper, x: float) -> yaml.ScalarNode:
    text = number_text(x)
    return dumper.represent_scalar(f"tag:yaml.org,2002:{'float' if '.' in text else 'int'}", text)


def number_text(x: float) -> str:
    """Return a number as text that reads back to the same bits.

    Integers have no point. Other numbers have one: some YAML readers take 1e-05 as text, but 1.0e-05 as a number.
    """
    if not math.isfinite(x):
        return ".nan" if math.isnan(x) else ".inf" if x > 0 else "-.inf"
    text = repr(x)
    if x.is_integer() and abs(x) < 1e15 and text[:2] != "-0":
        return str(int(x))
    return text.replace("e", ".0e") if "." not in text else text


_Dumper.add_representer(str, _text)
_Dumper.add_representer(float, _number)


def to_yaml(values: Any, flow: bool | None = None) -> str:
    """Return YAML of dicts, lists, text, numbers, booleans and None. `flow`: on one line; None: only the innermost values are."""
    text = yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=flow,
                     width=1_000_000 if flow else _WIDTH)
    return str(text.removesuffix("\n...\n").rstrip("\n") if flow else text)
