"""JSON schemas (draft 2020-12) and templates of input files, generated from the declarations that their readers use."""
from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from liedyn.io.column_map import COLUMN_MAP
from liedyn.io.file_schema import Boolean, Choice, Field, File, Integer, List, Named, Number, OneOf, Schema, Text, Value, Vector
from liedyn.io.robots.robot_schema import LOOPS_FILE, ROBOT
from liedyn.io.scenarios.scenario_file import SCENARIO
from liedyn.io.sweep_file import SWEEP
from liedyn.io.yaml_values import flow_yaml

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")

JsonSchema = dict[str, Any]


def json_schema(root: Schema) -> JsonSchema:
    """Return the schema of a file with the root `root`. It accepts all valid files; the reader checks more."""
    defined: dict[str, JsonSchema | None] = {}
    body = _keys_schema(root, defined)
    return {"$schema": DRAFT, "title": f"liedyn {root.title.replace('_', ' ')}", **body, "$defs": dict(sorted(defined.items()))}


def meaning_text(key: Field) -> str:
    """Return the meaning of a key, with its default, as plain text."""
    return _LINK.sub(r"\1", meaning_markdown(key))


def meaning_markdown(key: Field) -> str:
    """Return the meaning of a key, with its default, in Markdown."""
    if key.required:
        return f"{key.meaning} (required)"
    return key.meaning if key.default is None else f"{key.meaning}; default: {_default(key.default)}"


def _default(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(_default, value)) + "]"
    return f"{value:g}" if isinstance(value, float) else str(value)


# values -------------------------------------------------------------------------------------------------------------
# `defined` collects the schemas of values with a title, which are referred to.

def _schema(value: Value, defined: dict[str, JsonSchema | None]) -> JsonSchema:
    match value:
        case Number():
            return {"type": "number"} | _without_none(minimum=value.minimum, exclusiveMinimum=value.above, maximum=value.maximum)
        case Integer():
            return {"type": "integer"} | _without_none(minimum=value.minimum, maximum=value.maximum)
        case Boolean():
            return {"type": "boolean"}
        case Text() | File():
            return {"type": "string"}
        case Choice():
            return {"enum": list(value.options)}
        case Vector():
            return _schema(List(value.entry, value.count, value.count), defined)
        case List():
            bounds = _without_none(minItems=value.minimum or None, maxItems=value.maximum)
            return {"type": "array", "items": _schema(value.of, defined)} | bounds
        case Named():
            return {"type": ["object", "null"], "additionalProperties": _schema(value.of, defined)}
        case OneOf():
            return _refer(value, defined, lambda: {"anyOf": [_schema(alternative, defined) for alternative in value.values]})
    return _refer(value, defined, lambda: _keys_schema(value, defined))


def _without_none(**values: Any) -> JsonSchema:
    return {name: value for name, value in values.items() if value is not None}


def _refer(value: OneOf | Schema, defined: dict[str, JsonSchema | None], make: Callable[[], JsonSchema]) -> JsonSchema:
    if value.title is None:
        return make()
    if value.title not in defined:
        defined[value.title] = None                            # of a value within itself: a reference
        defined[value.title] = make()
    return {"$ref": f"#/$defs/{value.title}"}


# mappings -----------------------------------------------------------------------------------------------------------

def _keys_schema(keys: Schema, defined: dict[str, JsonSchema | None]) -> JsonSchema:
    required = [key.name for key in keys.keys if key.required and not key.kinds]
    groups = [_exactly_one(group) for group in keys.one_of if not keys[group[0]].kinds]
    conditions = [*groups, *_of_kinds(keys)]
    return {"type": "object" if required or groups else ["object", "null"],
            "properties": {key.name: _property(key, keys.empty, defined) for key in keys.keys},
            "additionalProperties": False} | _without_none(required=required or None, allOf=conditions or None)


def _exactly_one(group: tuple[str, ...]) -> JsonSchema:
    return {"oneOf": [{"required": [name]} for name in group]}


def _property(key: Field, empty: bool, defined: dict[str, JsonSchema | None]) -> JsonSchema:
    schema = _schema(key.value, defined)
    if empty and not key.required:
        schema = _or_nothing(schema)
    annotations: JsonSchema = {"description": meaning_text(key)}
    if _is_a_value(key.default, key.value):
        annotations["default"] = key.default
    if key.example is not None:
        annotations["examples"] = [key.example]
    return schema | annotations


def _is_a_value(default: Any, value: Value) -> bool:
    """Return whether a default is a value of the key, not a text about it."""
    return default in value.options if isinstance(value, Choice) else default is not None and not isinstance(default, str)


def _or_nothing(schema: JsonSchema) -> JsonSchema:
    if isinstance(schema.get("type"), str):
        return schema | {"type": [schema["type"], "null"]}
    if "enum" in schema:
        return {"enum": [*schema["enum"], None]}
    return schema if "type" in schema else {"anyOf": [schema, {"type": "null"}]}


def _of_kinds(keys: Schema) -> list[JsonSchema]:
    """Return, for each kind of a mapping, a schema of the keys that apply and are required."""
    if keys.kind is None:
        return []
    by_keys: dict[tuple[str, ...], list[str]] = {}
    kinds_of_key = keys[keys.kind].value
    assert isinstance(kinds_of_key, Choice)
    for kind in kinds_of_key.options:
        by_keys.setdefault(keys.of_kind(kind), []).append(kind)
    rules = []
    for names, kinds in by_keys.items():
        needed = [key.name for key in keys.keys if key.required and key.kinds and key.name in names]
        groups = [_exactly_one(group) for group in keys.one_of if keys[group[0]].kinds and group[0] in names]
        is_default = keys[keys.kind].default in kinds
        condition = {"properties": {keys.kind: {"enum": kinds}}} | _without_none(required=None if is_default else [keys.kind])
        allowed = {"propertyNames": {"enum": list(names)}} | _without_none(required=needed or None, allOf=groups or None)
        rules.append({"if": condition, "then": allowed})
    return rules


# template ---------------------------------------------------------------------------------------------------------------

# Commented YAML of all keys of a file, made from the declarations that its reader uses. What has no # is a file that runs.

_COLUMN = 46                         # of comments
_WIDTH = 130


@dataclass(frozen=True, slots=True)
class _Row:
    """A line of a template. comment_depth: depth from which it is commented out, or None."""

    depth: int
    comment_depth: int | None
    text: str
    comment: str = ""


def template(root: Schema, head: str) -> str:
    """Return the text of a file with all keys of `root`. `head` is a comment."""
    seen: set[int] = set()
    lines = [f"# {line}" for line in head.splitlines()]
    for key in _in_order(root):
        lines += ["", *(line for row in _key(key, 0, None, seen) for line in _lines(row))]
    return "\n".join(lines) + "\n"


def _in_order(keys: Schema) -> list[Field]:
    return sorted(keys.keys, key=lambda key: not key.required or bool(key.kinds and not key.live))


def _key(key: Field, depth: int, comment_depth: int | None, seen: set[int]) -> Iterator[_Row]:
    """Yield the lines of a key with its example, and then those of its other keys and values, commented out."""
    if comment_depth is None and not key.live:
        comment_depth = depth
    if key.example is None:
        yield _Row(depth, comment_depth, f"{key.name}:", meaning_text(key))
        yield from _spelt(key.value, depth + 1, comment_depth, seen)
        return
    structured = _structured(key.value)
    unseen = structured is not None and any(id(field_of_schema) not in seen for field_of_schema in structured.keys)
    if isinstance(key.value, Named):
        yield _Row(depth, comment_depth, f"{key.name}:", meaning_text(key))
        for name, value in key.example.items():
            yield from _entry(name, value, depth + 1, comment_depth)
        if unseen:
            yield from _spelt(key.value, depth + 1, depth + 1 if comment_depth is None else comment_depth, seen)
        return
    yield _Row(depth, comment_depth, f"{key.name}: {flow_yaml(key.example)}", meaning_text(key))
    if structured is not None and unseen:
        comment_depth = depth if comment_depth is None else comment_depth
        yield _Row(depth, comment_depth, f"{key.name}:", "or one of:" if structured.one_of else "or:")
        yield from _spelt(key.value, depth + 1, comment_depth, seen)


def _entry(name: str, value: Any, depth: int, comment_depth: int | None) -> Iterator[_Row]:
    """Yield a key with its value on one line, or with a line for each key of the value."""
    line = f"{flow_yaml(name)}: {flow_yaml(value)}"
    if not isinstance(value, dict) or len(line) + 2 * depth <= _WIDTH:
        yield _Row(depth, comment_depth, line)
        return
    yield _Row(depth, comment_depth, f"{flow_yaml(name)}:")
    for inner, part in value.items():
        yield from _entry(inner, part, depth + 1, comment_depth)


def _spelt(value: Value, depth: int, comment_depth: int | None, seen: set[int]) -> Iterator[_Row]:
    """Yield the lines of a structured value, key by key."""
    if isinstance(value, Named):
        yield _Row(depth, comment_depth, f"{flow_yaml(value.name)}:")
        yield from _spelt(value.of, depth + 1, comment_depth, seen)
    elif isinstance(value, List):
        first = True
        for row in _spelt(value.of, depth + 1, comment_depth, seen):
            yield replace(row, depth=depth, text=f"- {row.text}") if first else row
            first = False
    elif (keys := _structured(value)) is not None:
        seen.update(map(id, keys.keys))
        for key in _in_order(keys):
            yield from _key(key, depth, comment_depth, seen)


def _structured(value: Value) -> Schema | None:
    """Return the mapping with known keys that a value is or may be, or None."""
    if isinstance(value, Schema):
        return value
    if isinstance(value, List | Named):
        return _structured(value.of)
    return next(filter(None, map(_structured, value.values)), None) if isinstance(value, OneOf) else None


def _lines(row: _Row) -> list[str]:
    """Return the row with its comment after it, or above it if the line would be too long."""
    start = "  " * row.depth
    if row.comment_depth is not None:
        start = "  " * row.comment_depth + "# " + "  " * (row.depth - row.comment_depth)
    text = start + row.text
    if not row.comment:
        return [text]
    if len(text) <= _COLUMN - 2:
        first, *further = textwrap.wrap(row.comment, _WIDTH - _COLUMN - 2)
        margin = start if row.comment_depth is not None else ""
        return [f"{text:{_COLUMN}}# {first}", *(f"{margin:{_COLUMN}}# {line}" for line in further)]
    return [*(f"{start}# {line}" for line in textwrap.wrap(row.comment, _WIDTH - len(start) - 2)), text]


# The kinds of YAML files that have keys of their own, with their templates and schemas ----------------------------------

KINDS: dict[str, Schema] = {"scenario": SCENARIO, "robot": ROBOT, "loops": LOOPS_FILE, "sweep": SWEEP,
                            "columns": COLUMN_MAP}
_HEAD = """\
yaml-language-server: $schema={kind}.schema.json
All keys of {what}.
Those behind a # are examples and alternatives.
Editors complete and check the file by the schema that `liedyn schema {kind} -o {kind}.schema.json` writes."""
_WHAT = {"scenario": "a scenario, which `liedyn simulate` runs; `liedyn template robot -o robot.yaml` writes its robot",
         "robot": "a robot", "loops": "a file of loops, which is next to a URDF",
         "sweep": "a sweep, which `liedyn batch` runs; `liedyn template scenario -o scenario.yaml` writes its scenario",
         "columns": "a map of the columns of a CSV, for `--columns` or next to it: motion.columns.yaml for motion.csv"}


def template_text(kind: str) -> str:
    """Return a commented YAML file with all keys."""
    return template(KINDS[kind], _HEAD.format(kind=kind, what=_WHAT[kind]))


def schema_text(kind: str) -> str:
    """Return the JSON schema of a kind of file."""
    return json.dumps(json_schema(KINDS[kind]), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
