"""Declarations of the mappings in input files. Readers, JSON schemas, templates and the tables of the documentation use them.

docs/design.md explains how to add a key.
"""
from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any

from liedyn.errors import InputError
from liedyn.io.robots.described_robots import described_file
from liedyn.io.yaml_nodes import UNKNOWN_KEY, Node, SourceText


class Names(Sequence[str]):
    """Names of the entries of a table that satisfy a condition, including entries that are added later."""

    def __init__(self, table: Mapping[str, Any], condition: Callable[[Any], bool] = lambda entry: True):
        self.table, self.condition = table, condition

    def __getitem__(self, k: Any) -> Any:
        return [name for name, entry in self.table.items() if self.condition(entry)][k]

    def __len__(self) -> int:
        return len(self[:])

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self.table and self.condition(self.table[name])


# values -------------------------------------------------------------------------------------------------------------
# `read` gives the value of a node, or raises the node's error; where a declaration does not say all, by the function `reader`.


@dataclass(frozen=True, slots=True)
class Number:
    """A finite number, at least `minimum`, larger than `above`, at most `maximum`."""

    minimum: float | None = None
    above: float | None = None
    maximum: float | None = None

    def read(self, node: Node) -> float:
        """Return the number of a node."""
        return node.number(minimum=self.minimum, above=self.above, maximum=self.maximum)


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number from `minimum` to `maximum`."""

    minimum: int | None = None
    maximum: int | None = None

    def read(self, node: Node) -> int:
        """Return the whole number of a node."""
        return node.integer(minimum=self.minimum, maximum=self.maximum)


@dataclass(frozen=True, slots=True)
class Boolean:
    """True or false."""

    def read(self, node: Node) -> bool:
        """Return the truth value of a node."""
        return node.boolean()


@dataclass(frozen=True, slots=True)
class Text:
    """Any text."""

    def read(self, node: Node) -> str:
        """Return the text of a node."""
        return node.text()


@dataclass(frozen=True, slots=True)
class File:
    """A path, relative to the folder of the file that contains it, or to the current folder if an override contains it.

    content kind of file for the error if it does not exist; None: it need not exist
    holds   file in a folder that the path may name instead
    is_folder  whether the path is that of a folder
    """

    content: str | None = None
    holds: str | None = None
    is_folder: bool = False

    def read(self, node: Node) -> str:
        """Return the path as it can be opened from the current folder. Raise the node's error if it does not exist."""
        text = described_file(os.path.expanduser(node.text()))
        file = os.path.normpath(text if node.line is None else os.path.join(os.path.dirname(node.file or ""), text))
        if self.holds and os.path.isdir(file):
            file = os.path.join(file, self.holds)
        # the reader checks pipes and devices
        if self.content and (not os.path.exists(file) or os.path.isdir(file) != self.is_folder):
            from liedyn.io.ros_bag import is_bag  # imports NumPy
            is_folder_of_bag = os.path.isdir(file) and is_bag(file)
            hint = "name the file in the folder, or convert the bag with `liedyn convert`" if is_folder_of_bag else None
            raise node.problem(f"no such {self.content}", found=file, hint=hint)
        return file


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the words `options`. hints: corrections of frequent other words."""

    options: Sequence[str]
    hints: Mapping[str, str] = field(default_factory=dict, hash=False)

    def extend(self, word: str) -> None:
        """Add a word to this choice, in all declarations that use it."""
        object.__setattr__(self, "options", (*self.options, word))

    def read(self, node: Node) -> str:
        """Return the word of a node."""
        if node.kind == "text" and node.value in self.hints:
            raise node.wrong("one of " + ", ".join(self.options), hint=self.hints[node.value])
        return node.choice(self.options)


@dataclass(frozen=True, slots=True)
class List:
    """A list of values `of`, of at least `minimum` and at most `maximum` entries, which errors call `words`."""

    of: Value
    minimum: int = 0
    maximum: int | None = None
    words: str = "values"
    reader: Reader | None = None

    def nodes(self, node: Node) -> list[Node]:
        """Return the nodes of the entries."""
        return node.items(minimum=self.minimum, maximum=self.maximum, of=self.words)

    def read(self, node: Node) -> Any:
        """Return the values of the entries."""
        return self.reader(node) if self.reader else tuple(map(self.of.read, self.nodes(node)))


@dataclass(frozen=True, slots=True)
class Vector:
    """A list of `count` numbers, at most `maximum` in magnitude."""

    count: int
    maximum: float | None = None

    @property
    def entry(self) -> Number:
        """The declaration of one of the numbers."""
        return Number(minimum=None if self.maximum is None else -self.maximum, maximum=self.maximum)

    def read(self, node: Node) -> tuple[float, ...]:
        """Return the numbers of a node."""
        return node.vector(self.count, self.maximum)


@dataclass(frozen=True, slots=True, eq=False)
class OneOf:
    """Any of several values. `title` names it in the schema."""

    values: tuple[Value, ...]
    title: str | None = None
    reader: Reader | None = None

    def read(self, node: Node) -> Any:
        """Read by `reader`, if given. Otherwise the last value reads a list, and the first value everything else."""
        return (self.reader or self.values[-1 if node.kind == "list" else 0].read)(node)


@dataclass(frozen=True, slots=True)
class Named:
    """A mapping from names that the user chooses to values `of`; `name` stands for one in templates."""

    of: Value
    name: str
    reader: Reader | None = None

    def read(self, node: Node) -> Any:
        """Return the values by name."""
        return self.reader(node) if self.reader else {name: self.of.read(child) for name, child in node.mapping().items()}


@dataclass(frozen=True, slots=True)
class Field:
    """A key of a mapping.

    meaning   of the key, in one line of Markdown, with its unit
    default   value without the key, or a text about it
    required  whether the key must exist, or the expected value in the error without it
    kinds     kinds of the mapping (`Schema.kind`) with this key; empty: all of them
    example   plain value for templates; a structured value without an example is written key by key
    live      whether the key stands without a # in templates
    """

    name: str
    value: Value
    meaning: str
    default: Any = None
    required: bool | str = False
    kinds: Sequence[str] = ()
    example: Any = None
    live: bool = False

    def require(self, node: Node) -> None:
        """Raise the node's error if the mapping lacks the key."""
        node.require(self.name, None if isinstance(self.required, bool) else self.required)


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """A mapping with known keys. It is an iterable of their names, as `Node.mapping` takes.

    title     name in the schema and in tests
    kind      key whose value selects the other keys (`Field.kinds`)
    one_of    groups of keys, of which exactly one must exist, in the kinds with these keys
    empty     whether a key without a value is ignored
    subject   kind of the mapping in errors about keys of other kinds, such as "the method {}"
    lacks     text of these errors instead, such as "a {} joint has no {}"
    other_names   {other name of a key: the key}, for suggestions
    reader    function of the node; None: the value is a dict of the values in the file
    """

    title: str
    keys: tuple[Field, ...]
    kind: str | None = None
    one_of: tuple[tuple[str, ...], ...] = ()
    empty: bool = False
    subject: str = ""
    lacks: str = ""
    other_names: Mapping[str, str] = field(default_factory=dict)
    reader: Reader | None = None
    _by_name: dict[str, Field] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {key.name: key for key in self.keys})

    def extend(self, key: Field) -> None:
        """Add a key to this mapping, in all declarations that use it."""
        object.__setattr__(self, "keys", (*self.keys, key))
        self._by_name[key.name] = key

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __getitem__(self, name: str) -> Field:
        return self._by_name[name]

    @property
    def below(self) -> dict[str, str]:
        """Where the keys of mappings within this one stand: `integrator.step` by step. The nearest, where there are several."""
        paths: dict[str, str] = {}
        level = [(key.name, key.value) for key in self.keys]
        while level:
            inner = [(path, key) for path, value in level for path, keys in _mappings(path, value) for key in keys.keys]
            for path, key in inner:
                paths.setdefault(key.name, f"{path}.{key.name}")
            level = [(f"{path}.{key.name}", key.value) for path, key in inner]
        return paths

    @property
    def by_joint(self) -> tuple[str, ...]:
        """Names of the keys q, v, tau whose values are given by joint."""
        return tuple(key.name for key in self.keys if key.name in ("q", "v", "tau") and any(
            isinstance(value, Named) and value.name.startswith("joint")
            for value in (key.value.values if isinstance(key.value, OneOf) else (key.value,))))

    def of_kind(self, kind: str) -> tuple[str, ...]:
        """Return the names of the keys that apply to a kind."""
        return tuple(key.name for key in self.keys if not key.kinds or kind in key.kinds)

    def nodes(self, node: Node) -> dict[str, Node]:
        """Return the nodes of a mapping by key. Raise for unknown keys, keys of other kinds, and missing required keys."""
        self._check_mapping(node)
        kind = self._kind_of(node, self.kind) if self.kind else None
        if kind:
            self._check_kind(node, kind)
        nodes = node.mapping(self.of_kind(kind) if kind and self.lacks else self)
        for key in self.keys:
            if key.required and (not key.kinds or kind in key.kinds):
                key.require(node)
        if self.empty:
            return {name: child for name, child in nodes.items() if child.kind != "null" or self[name].required}
        return nodes

    def _check_mapping(self, node: Node) -> None:
        if node.key and node.kind not in ("mapping", "null"):
            raise node.wrong(f"a mapping (key: value) with keys such as {', '.join(list(self)[:3])}")

    def _kind_of(self, node: Node, name: str) -> str:
        key = self[name]
        if key.required:
            key.require(node)
        return str(self.value(node.mapping(), key.name, key.default))

    def _check_kind(self, node: Node, kind: str) -> None:
        for name, child in node.mapping().items():
            if name in self._by_name and name not in self.of_kind(kind):
                if self.lacks:
                    raise child.problem(self.lacks.format(kind, name))
                allowed = ", ".join(key for key in self.of_kind(kind) if key != self.kind)
                raise child.problem(f"{name} does not apply to {self.subject.format(kind)}", expected=allowed or None,
                                    hint=f"write {self.kind}: {' or '.join(self[name].kinds)}")

    def value(self, nodes: Mapping[str, Node], name: str, otherwise: Any = None, **bounds: Any) -> Any:
        """Return the value of one key, or `otherwise` if it is not given. `bounds` are added to the declared ones."""
        if name not in nodes:
            return otherwise
        declared = self[name].value
        try:
            return (replace(declared, **bounds) if bounds else declared).read(nodes[name])
        except InputError as error:
            key = (error.place.key or "").rpartition(".")[2] if error.place else ""
            siblings = [sibling.name for sibling in self.keys if isinstance(sibling.value, Schema) and key in sibling.value]
            if error.message != UNKNOWN_KEY or error.hint or not (key in self or siblings):
                raise
            hint = f"{key} belongs next to {name}, not in it" if key in self else f"{key} is a key of {' and '.join(siblings)}"
            raise type(error)(error.message, place=error.place, expected=error.expected, hint=hint) from None

    def values(self, node: Node) -> dict[str, Any]:
        """Return the given values by name."""
        nodes = self.nodes(node)
        return {name: self.value(nodes, name) for name in nodes}

    def read(self, node: Node) -> Any:
        """Return the value of a mapping: by `reader`, if given, else a dict of the given values."""
        return self.reader(node) if self.reader else self.values(node)

    def only(self, node: Node, subject: str) -> tuple[str, Any]:
        """Return the only key of a mapping that takes one key, and its value."""
        self._check_mapping(node)
        nodes = node.mapping(self)
        name, _ = only(node, nodes, self, subject)
        return name, self.value(nodes, name)


Value = Number | Integer | Boolean | Text | File | Choice | List | Vector | OneOf | Named | Schema
Reader = Callable[[Node], Any]


def _mappings(path: str, value: Value) -> Iterator[tuple[str, Schema]]:
    """Yield the mappings with known keys that a value may be or contain, with their paths."""
    if isinstance(value, Schema):
        yield path, value
    elif isinstance(value, List | Named):
        yield from _mappings(f"{path}.{'NAME' if isinstance(value, Named) else 0}", value.of)
    elif isinstance(value, OneOf):
        for alternative in value.values:
            yield from _mappings(path, alternative)


def _alternatives(values: Iterable[Value]) -> Iterator[Value]:
    for value in values:
        yield from _alternatives(value.values) if isinstance(value, OneOf) else (value,)


def values_below(values: Iterable[Value], key: str) -> tuple[Value, ...]:
    """Return the declarations of the entry `key` of what `values` declare. `points[0]` is the first entry of the list points."""
    name, bracket, _ = key.partition("[")
    if bracket:
        return values_below(values_below(values, name), "0")
    return tuple(value[key].value if isinstance(value, Schema) else value.of for value in _alternatives(values)
                 if isinstance(value, List | Named) or (isinstance(value, Schema) and key in value))


def excluded_keys(values: Iterable[Value], key: str) -> set[str]:
    """Return the keys that cannot stand next to `key` in a mapping that one of `values` declares."""
    groups = [group for value in _alternatives(values) if isinstance(value, Schema) for group in value.one_of if key in group]
    return {name for group in groups for name in group} - {key}


def one_of(title: str, *keys: Field, reader: Reader | None = None) -> Schema:
    """Return the declaration of a mapping with exactly one key."""
    return Schema(title, keys, one_of=(tuple(key.name for key in keys),), reader=reader)


def one_or_more(of: Value, title: str, words: str) -> OneOf:
    """Return the declaration of a value or a list of values, read as a tuple."""
    several = List(of, 1, words=words)
    return OneOf((of, several), title, lambda node: several.read(node) if node.kind == "list" else (of.read(node),))


def only(node: Node, nodes: Mapping[str, Node], keys: Iterable[str], subject: str, nothing: str = "nothing", between: str = ", ",
         expected: str | None = None) -> tuple[str, Node]:
    """Return the only one of `keys` that a mapping contains, and its node. Raise the node's error for none or several."""
    selected = {name: child for name, child in nodes.items() if name in keys}
    if len(selected) != 1:
        raise node.problem(f"{subject} takes exactly one of {', '.join(keys)}",
                           found=SourceText(between.join(selected) or nothing), expected=expected)
    return next(iter(selected.items()))


def too_many(node: Node, quantity: str, count: float, maximum: float, bound: str, value: float, unit: str = "s",
             hint: str | None = None) -> InputError:
    """Return the error that the value of a node leads to too many rows, steps or samples.

    The bound of the value is rounded up or down to three digits.

    bound   "at least" or "at most" `value`
    """
    rounding = ROUND_CEILING if bound == "at least" else ROUND_FLOOR
    rounded = float(Context(prec=3, rounding=rounding).create_decimal(f"{value:.12g}"))
    return node.problem(f"too many {quantity}: about {min(count, sys.float_info.max):.3g}, more than {maximum:g}",
                        found=node.excerpt(), expected=f"{bound} {rounded:g} {unit}", hint=hint)


def kinds_with(name: str, kinds: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Return the kinds that list a key."""
    return tuple(kind for kind, names in kinds.items() if name in names)


def default_of(cls: type, name: str) -> Any:
    """Return the default of a field of a dataclass."""
    return next(each_field.default for each_field in fields(cls) if each_field.name == name)
