"""YAML files as trees of nodes with file, line and key, which errors name.

The trees are built from the events of PyYAML's parser. Supported are mappings, lists, text, numbers, true/false and null, and
aliases (`&name`, `*name`) with merge keys (`<<`). An alias becomes a copy, at the key of the alias and with the lines of the
anchor.
Errors: tags, several documents, duplicate or non-text keys, deep nesting, huge files, and aliases that add too many values.
Unlike in YAML 1.1, `yes`, `on` and `12:30` are text, and `1e-3` is a number.
"""
from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import yaml

from liedyn.errors import ElementPlace, InputError, ModelError, Place, nearest

# Reading input files ----------------------------------------------------------------------------------------------------

LARGEST_FILE = 10_000_000            # bytes: a robot or a scenario is far smaller; a bomb is stopped before it is parsed
_KINDS = ((stat.S_ISDIR, "directory"), (stat.S_ISFIFO, "pipe"), (stat.S_ISSOCK, "socket"), (stat.S_ISCHR, "device"),
          (stat.S_ISBLK, "device"))
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]")


def read_whole(path: str | os.PathLike[str], error: type[InputError], largest: int,
               hint: str = "save it to a file first") -> bytes:
    """Return the contents of a regular file of at most `largest` bytes. Raise `error` for other files, before reading.

    `hint` is the text of the error for a pipe or a device, which may have no end.
    """
    place = Place(os.fspath(path))
    try:
        status = os.stat(path)
        kind = next((name for is_kind, name in _KINDS if is_kind(status.st_mode)), None)
        if kind:
            raise error(f"this is a {kind}", place=place, expected="a file", hint=None if kind == "directory" else hint)
        if status.st_size > largest:
            raise too_large(error, path, largest)
        with open(path, "rb") as stream:
            data = stream.read(largest + 1)                # it may have grown, or be of a kind without a size
    except InputError:
        raise
    except FileNotFoundError:
        raise error("no such file", place=place) from None
    except (OSError, ValueError) as problem:               # ValueError: a NUL in the path
        raise error(f"cannot be read: {getattr(problem, 'strerror', None) or problem}", place=place) from None
    if len(data) > largest:
        raise too_large(error, path, largest)
    return data


def too_large(error: type[InputError], path: str | os.PathLike[str], largest: int) -> InputError:
    """Return the error for a file that is larger than allowed."""
    return error("the file is too large", place=Place(os.fspath(path)), expected=f"at most {largest / 1e6:g} MB")


def read_bytes(path: str | os.PathLike[str], error: type[InputError]) -> bytes:
    """Return the contents of a file as `read_whole` does. Also raise `error` if it is empty or binary."""
    data, place = read_whole(path, error, LARGEST_FILE), Place(os.fspath(path))
    if not data.strip():
        raise error("the file is empty", place=place)
    if b"\x00" in data:
        raise error("this is a binary file", place=place, expected="text in UTF-8")
    return data


def read_text(path: str | os.PathLike[str], error: type[InputError]) -> str:
    """Return the contents of a file decoded from UTF-8. Raise `error`, with the line, for control characters."""
    data = read_bytes(path, error)
    file = os.fspath(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = data.count(b"\n", 0, problem.start) + 1
        raise error("this is not a text file", place=Place(file, line), expected="text in UTF-8") from None
    control = _CONTROL.search(text)
    if control:
        raise error("control characters are not allowed", place=Place(file, text.count("\n", 0, control.start()) + 1),
                    found=control.group(), expected="plain text")
    return text


def number_in_cell(cell: str, place: Place, error: type[InputError], hint: str | None = None) -> float:
    """Return the number in a cell of a table; it may be infinite or NaN. `hint` is for the error of other text."""
    try:
        if "_" in cell or not cell.isascii():              # Python's float takes 1_000 and other scripts' digits
            raise ValueError
        return float(cell)
    except ValueError:
        raise error("not a number" if cell.strip() else "a value is missing", place=place, found=cell, hint=hint) from None


# yaml text --------------------------------------------------------------------------------------------------------------

DEEPEST = 50                         # levels of nesting
MAX_ALIASED = 100_000                # values that all aliases of a file add: a file of a few lines may add billions
_AHEAD = 2048                        # characters: more than PyYAML's scanner reads ahead of its events within brackets
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\Z", re.ASCII)
_NOT_FINITE = re.compile(r"[-+]?\.?(inf|nan|infinity)\Z", re.IGNORECASE)
_MAX_KEYS = 12                       # keys that an error lists in spite of a suggestion
UNKNOWN_KEY = "unknown key"             # message of errors about keys of a mapping
_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+\Z", re.ASCII)
_QUOTED = re.compile(r'"(?:\\.|[^"\\])*"|\'[^\']*\'', re.DOTALL)
_BOOLEAN = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
NULL = ("", "~", "null", "Null", "NULL")


@dataclass(slots=True, eq=False)
class Node:
    """One value of a YAML file.

    kind     mapping | list | text | number | boolean | null
    value    dict of Node by key (document order), list of Node, str, float, bool, None
    written  text of a plain scalar in the file; None for other nodes

    The accessors return a value of the kind in their name, or raise `error` with file, line, key, found and expected value.
    `mapping`, `get` and `require` treat null (`frame:`) as an empty mapping.
    """

    kind: str
    value: Any
    file: str | None
    line: int | None
    key: str
    error: type[InputError]
    written: str | None = None

    @property
    def place(self) -> Place:
        """File, line and key of the value, and of the values in a mapping."""
        if self.kind != "mapping":
            return Place(self.file, self.line, self.key or None)
        return ElementPlace(self.file, self.line, self.key or None,
                            {key: Place(child.file, child.line, child.key) for key, child in self.value.items()})

    def problem(self, message: str, *, found: object = None, expected: str | None = None, hint: str | None = None) -> InputError:
        """Return an error about this node: ``raise node.problem("…")``."""
        return self.error(message, place=self.place, found=found, expected=expected, hint=hint)

    def wrong(self, expected: str, hint: str | None = None) -> InputError:
        """Return an error that this node does not contain what is `expected`."""
        if self.kind == "null":
            return self.problem("no value", expected=expected, hint=hint)
        if self.kind == "mapping" and not self.value:
            return self.problem("empty value", expected=expected, hint=hint)
        if not self.key:                                       # the whole file is not shown: it may be of another kind
            return self.problem("not a file of this kind", expected=expected, hint=hint)
        if hint is None and self.kind == "text" and _DECIMAL_COMMA.match(self.value):
            hint = _point(self.value)
        return self.problem("wrong value", found=self.excerpt(), expected=expected, hint=hint)

    def plain(self) -> Any:
        """Return the value as plain Python, recursively: dict, list, str, float, bool or None."""
        if self.kind == "mapping":
            return {key: child.plain() for key, child in self.value.items()}
        if self.kind == "list":
            return [child.plain() for child in self.value]
        return self.value

    def excerpt(self) -> Any:
        """Return the value for an error message: plain scalars as they are written in the file."""
        if self.kind == "text" and self.written is None:
            return self.value
        return SourceText(_excerpt(self))

    # containers -----------------------------------------------------------------------------------------------------

    def mapping(self, known: Iterable[str] | None = None) -> dict[str, Node]:
        """Return the children by key, in document order. Raise `error` for keys that are not in `known`."""
        if self.kind == "null":
            return {}
        if self.kind != "mapping":
            raise self.wrong("a mapping (key: value)")
        if known is not None:
            self.check_known_keys(known)
        result: dict[str, Node] = self.value
        return result

    def check_known_keys(self, known: Iterable[str]) -> None:
        """Raise `error` for the first key that is not in `known`, with a suggestion."""
        # of `file_schema.Schema`: where else a key stands, other names of keys, and keys whose values are given by joint
        names, below, by_joint = tuple(known), getattr(known, "below", {}), getattr(known, "by_joint", ())
        other_names = getattr(known, "other_names", {})
        children = self.mapping()
        if not self.key and children and not any(key in names or key in below or nearest(key, names) for key in children):
            raise self.problem("not a file of this kind: it has none of the keys", expected="one of " + ", ".join(names))
        for key, child in children.items():
            if key not in names:
                hint = (nearest(other_names.get(key, key), names) or (f"did you mean {below[key]}?" if key in below else None)
                        or (f"names of joints are keys of {' and '.join(by_joint)}, such as {by_joint[0]}: {{{key[:40]}: …}}"
                            if by_joint else None))
                listed = not hint or len(names) <= _MAX_KEYS        # a suggestion replaces a long list
                raise child.problem(UNKNOWN_KEY, expected="one of " + ", ".join(names) if listed else None, hint=hint)

    def get(self, key: str) -> Node | None:
        """Return the child of a key, or None."""
        return self.mapping().get(key)

    def require(self, key: str, expected: str | None = None) -> Node:
        """Return the child of a key. Raise `error` if there is none."""
        child = self.mapping().get(key)
        if child is None:
            raise self.problem(f"the key {key} is missing", expected=expected)
        return child

    def items(self, count: int | None = None, *, minimum: int = 0, maximum: int | None = None, of: str = "values") -> list[Node]:
        """Return the children of a list of `count` values, or of at least `minimum` and at most `maximum`."""
        minimum, maximum = (minimum, maximum) if count is None else (count, count)
        number = f"at least {minimum} " if minimum else ""
        if maximum is not None:
            number = f"{minimum} " if minimum == maximum else f"{minimum} to {maximum} "
        if self.kind != "list" or len(self.value) < minimum or (maximum is not None and len(self.value) > maximum):
            raise self.wrong(f"a list of {number}{of}")
        result: list[Node] = self.value
        return result

    # scalars --------------------------------------------------------------------------------------------------------

    def number(self, *, minimum: float | None = None, above: float | None = None, maximum: float | None = None) -> float:
        """Return a finite number that is at least `minimum`, larger than `above` and at most `maximum`."""
        lower = (">", above) if minimum is None else (">=", minimum)
        bounds = [f"{sign} {bound:g}" for sign, bound in (lower, ("<=", maximum)) if bound is not None]
        expected = " ".join(["a number", " and ".join(bounds)]) if bounds else "a number"
        if self.kind != "number":
            raise self.wrong(expected)
        if not math.isfinite(self.value):
            raise self.problem("not a finite number", found=self.excerpt(), expected=expected)
        outside = ((minimum is not None and self.value < minimum) or (above is not None and self.value <= above)
                   or (maximum is not None and self.value > maximum))
        if outside:
            raise self.problem("out of range", found=self.excerpt(), expected=expected)
        return float(self.value)

    def integer(self, *, minimum: int | None = None, maximum: int | None = None) -> int:
        """Return an integer that is at least `minimum` and at most `maximum`."""
        value = self.number(minimum=minimum, maximum=maximum)
        if value != int(value):
            raise self.wrong("an integer")
        return int(value)

    def vector(self, count: int, maximum: float | None = None) -> tuple[float, ...]:
        """Return a list of `count` finite numbers, each at most `maximum` in magnitude."""
        minimum = None if maximum is None else -maximum
        return tuple(child.number(minimum=minimum, maximum=maximum) for child in self.items(count, of="numbers"))

    def text(self) -> str:
        """Return the text. Raise `error` for any other value."""
        if self.kind != "text":
            raise self.wrong("text", hint='write it in "quotes"' if self.kind in ("number", "boolean") else None)
        return str(self.value)

    def boolean(self) -> bool:
        """Return the truth value. Raise `error` for any other value."""
        if self.kind != "boolean":
            raise self.wrong("true or false")
        return bool(self.value)

    def choice(self, options: Iterable[str]) -> str:
        """Return the text, which must be one of `options`."""
        options = tuple(options)
        if self.kind != "text" or self.value not in options:
            raise self.wrong("one of " + ", ".join(options), hint=nearest(self.value, options))
        return str(self.value)


def read_yaml(path: str | os.PathLike[str], error: type[InputError] = ModelError) -> Node:
    """Return the root node of a YAML file. `error` is the class of all errors, also of those of the nodes."""
    if os.fspath(path).lower().endswith(".csv"):
        raise error("this is a CSV file, such as a trajectory", place=Place(os.fspath(path)),
                    expected="a YAML file: a robot, a scenario, loops, a sweep or a map of columns")
    return parse_yaml(read_text(path, error), os.fspath(path), error)


def parse_yaml(text: str, file: str | None = None, error: type[InputError] = ModelError) -> Node:
    """Return the root node of a YAML text. `file` is the file name in errors."""
    builder = _TreeBuilder(text, file, error)
    try:
        root = builder.root()
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        if mark and builder.depth + _nesting(text[builder.read:mark.index][:_AHEAD]) > DEEPEST:
            raise builder.too_deep(mark.line + 1) from None
        detail = " ".join(str(part) for part in (problem.context, problem.problem) if part)
        line = min(mark.line, len(text.splitlines()) - 1) + 1 if mark else None     # the end is on the last line
        if line and "\t" in _indentation(text.splitlines()[line - 1]):
            raise error("not valid YAML: the line is indented with a tab", place=Place(file, line), expected="spaces") from None
        raise error(f"not valid YAML: {detail}", place=Place(file, line)) from None
    except yaml.reader.ReaderError as problem:
        line = text.count("\n", 0, problem.position) + 1
        raise error("a character that YAML does not allow", place=Place(file, line), expected="plain text") from None
    if root is None or root.kind == "null":
        raise error("the file is empty", place=Place(file))
    return root


def _indentation(line: str) -> str:
    return line[:len(line) - len(line.lstrip())]


def _nesting(text: str) -> int:
    """Return the maximum nesting of brackets outside quotes: PyYAML scans a line ahead of its events, with another limit."""
    depth = deepest = 0
    for sign in _QUOTED.sub("", text):
        depth += (sign in "[{") - (sign in "]}")
        deepest = max(deepest, depth)
    return deepest


def _excerpt(node: Node) -> str:
    if node.kind == "mapping":
        return "{" + ", ".join(f"{key}: {_excerpt(child)}" for key, child in node.value.items()) + "}"
    if node.kind == "list":
        return "[" + ", ".join(_excerpt(child) for child in node.value) + "]"
    return node.written if node.written is not None else repr(node.value)


def _point(text: str) -> str:
    return f"write a decimal point: {text.replace(',', '.')}"


class SourceText:
    """Text of the file, printed without quotes."""

    def __init__(self, text: str):
        self.text = text

    def __str__(self) -> str:
        return self.text if self.text.isprintable() else repr(self.text)


class _TreeBuilder:
    """Builds the tree from the events of the parser, one at a time, so that excessive nesting stops it early."""

    def __init__(self, text: str, file: str | None, error: type[InputError]):
        self.events, self.file, self.error = yaml.parse(text, Loader=_Loader), file, error
        self.anchors: dict[str, tuple[Node, int] | None] = {}            # value and its number of nodes; None: not complete
        self.count = self.aliased = 0                  # nodes, and those that aliases and merge keys added
        self.depth = 0                                 # containers not yet closed
        self.read = self.before = 0                    # characters of the text: with the last event, and before it

    def next(self) -> Any:
        """Return the next event of the parser, or None at the end."""
        event = next(self.events, None)
        self.before, self.read = self.read, event.end_mark.index if event else self.read
        return event

    def root(self) -> Node | None:
        """Return the root of the only document, or None if there is none."""
        root = None
        while event := self.next():
            if isinstance(event, yaml.DocumentStartEvent):
                if root is not None:
                    raise self.refuse(event, "", "more than one YAML document", expected="one document in a file")
                root = self.node(self.next(), "")
        return root

    def node(self, event: yaml.Event, key: str, key_line: int | None = None) -> Node:
        """Return the node that begins with an event. key_line: line of its key in a mapping."""
        if isinstance(event, yaml.AliasEvent):
            return self.alias(event, key, key_line)
        self.check_no_tag(event, key)
        count, self.count = self.count, self.count + 1
        if event.anchor:
            self.anchors[event.anchor] = None
        node = self.scalar(event, key, key_line) if isinstance(event, yaml.ScalarEvent) else self.container(event, key, key_line)
        if event.anchor:
            self.anchors[event.anchor] = node, self.count - count
        return node

    def scalar(self, event: yaml.ScalarEvent, key: str, key_line: int | None) -> Node:
        kind, value = _resolve(event)
        line = event.start_mark.line + 1
        line = key_line or line if kind == "null" else line             # where a reader looks for it
        return Node(kind, value, self.file, line, key, self.error, event.value if event.implicit[0] else None)

    def container(self, event: yaml.CollectionStartEvent, key: str, key_line: int | None) -> Node:
        line = event.start_mark.line + 1
        if self.depth >= DEEPEST:
            raise self.too_deep(line)
        self.depth += 1
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        node = Node("mapping" if is_mapping else "list", {} if is_mapping else [], self.file, key_line or line, key, self.error)
        defaults: dict[str, Node] | None = None
        while not isinstance(event := self.next(), yaml.CollectionEndEvent):
            if not is_mapping:
                node.value.append(self.node(event, f"{key}[{len(node.value)}]"))
            elif _is_merge_key(event):
                if defaults is not None:
                    raise self.refuse(event, key, "duplicate merge key <<", expected="one with a list of aliases")
                defaults = self.defaults(event, key)
            else:
                name_line = event.start_mark.line + 1
                name = self.name(event, node)
                node.value[name] = self.node(self.next(), _join(key, name), name_line)
        if defaults:
            node.value = defaults | node.value
        self.depth -= 1
        return node

    def alias(self, event: yaml.AliasEvent, key: str, key_line: int | None) -> Node:
        """Return a copy of the value of an anchor."""
        if event.anchor not in self.anchors:
            raise self.refuse(event, key, "the YAML alias has no anchor before it", expected="an anchor &name before *name")
        anchor = self.anchors[event.anchor]
        if anchor is None:
            raise self.refuse(event, key, "the YAML alias refers to a value that contains it")
        node, size = anchor
        self.add_aliased(size, event, key)
        copy, line = self.copy(node, key), event.start_mark.line + 1
        copy.line = line if node.kind not in ("mapping", "list") else key_line or line
        return copy

    def copy(self, node: Node, key: str) -> Node:
        """Return a copy of a value for another key."""
        value = node.value
        if node.kind in ("mapping", "list"):
            if self.depth >= DEEPEST:
                raise self.too_deep(node.line)
            self.depth += 1
            value = ({name: self.copy(child, _join(key, name)) for name, child in value.items()} if node.kind == "mapping"
                     else [self.copy(child, f"{key}[{k}]") for k, child in enumerate(value)])
            self.depth -= 1
        return Node(node.kind, value, node.file, node.line, key, node.error, node.written)

    def defaults(self, event: yaml.ScalarEvent, key: str) -> dict[str, Node]:
        """Return the values of a merge key: of a mapping, or of a list of mappings, of which earlier ones take precedence."""
        count = self.count
        node = self.node(self.next(), _join(key, "<<"), event.start_mark.line + 1)
        sources = node.value if node.kind == "list" else [node]
        if any(source.kind != "mapping" for source in sources):
            raise self.refuse(event, node.key, "wrong value of a YAML merge key", expected="an alias of a mapping, or a list")
        self.add_aliased(self.count - count, event, key)
        merged: dict[str, Node] = {}
        for source in sources:
            for name, child in source.value.items():
                if name not in merged:
                    merged[name] = self.copy(child, _join(key, name))
        return merged

    def add_aliased(self, size: int, event: yaml.Event, key: str) -> None:
        """Count nodes that are copied. Raise if there are too many."""
        self.count += size
        self.aliased += size
        if self.aliased > MAX_ALIASED:
            raise self.refuse(event, key, "YAML aliases add too many values", expected=f"at most {MAX_ALIASED}")

    def name(self, event: yaml.Event, mapping: Node) -> str:
        """Return a key of a mapping."""
        if not isinstance(event, yaml.ScalarEvent):
            kind = "mapping" if isinstance(event, yaml.MappingStartEvent) else "list"
            kind = "YAML alias" if isinstance(event, yaml.AliasEvent) else kind
            raise self.refuse(event, mapping.key, f"a {kind} cannot be a key", expected="a name")
        self.check_no_tag(event, mapping.key)
        kind, name = _resolve(event)
        if kind != "text" or not name:
            self.check_decimal_point(event, mapping)
            options = {"hint": "write it in quotes"} if event.value else {}
            message = f"the key is {'empty' if name in ('', None) else f'a {kind}'}"
            raise self.refuse(event, mapping.key, message, expected="a name", **options)
        if event.anchor:
            self.anchors[event.anchor] = self.scalar(event, name, None), 1
        if name in mapping.value:
            raise self.refuse(event, _join(mapping.key, name), f"duplicate key, first on line {mapping.value[name].line}")
        return str(name)

    def check_decimal_point(self, event: yaml.ScalarEvent, mapping: Node) -> None:
        """Raise for a decimal comma as in {mass: 1,5}, in which 5 is parsed as a key."""
        last = list(mapping.value.values())[-1] if mapping.value else None
        if last is None or last.kind != "number":
            return
        text = f"{last.written},{event.value}"
        adjacent = event.start_mark.index == self.before + 1 and event.start_mark.column > 0        # not a new line
        if adjacent and _DECIMAL_COMMA.match(text):
            raise last.problem("wrong value", found=SourceText(text), expected="a number", hint=_point(text))

    def check_no_tag(self, event: yaml.Event, key: str) -> None:
        """Raise for a YAML tag."""
        if event.tag is not None:
            raise self.refuse(event, key, "YAML tags are not supported", expected="a plain value")

    def refuse(self, event: yaml.Event, key: str, message: str, **more: Any) -> InputError:
        return self.error(message, place=Place(self.file, event.start_mark.line + 1, key or None), **more)

    def too_deep(self, line: int | None) -> InputError:
        return self.error("too deeply nested", place=Place(self.file, line), expected=f"at most {DEEPEST} levels")


def _is_merge_key(event: yaml.Event) -> bool:
    return isinstance(event, yaml.ScalarEvent) and event.implicit[0] and event.value == "<<"


def _resolve(event: yaml.ScalarEvent) -> tuple[str, Any]:
    """Return the kind and the value of a scalar."""
    text = event.value
    if not event.implicit[0]:                          # in quotes
        return "text", text
    if text in NULL:
        return "null", None
    if text in _BOOLEAN:
        return "boolean", _BOOLEAN[text]
    if NUMBER.match(text):
        return "number", float(text)
    if _NOT_FINITE.match(text):
        return "number", float(text.lower().replace(".", ""))
    return "text", text


def _join(parent: str, key: str) -> str:
    name = key if key.isprintable() else repr(key)
    return f"{parent}.{name}" if parent else name
