"""JSON schemas (draft 2020-12) of scenario and robot files, made from the declarations that their readers use."""
from __future__ import annotations

import re
from typing import Any

from liedyn.io.keys import Boolean, Choice, Either, File, Integer, Key, Keys, List, Named, Number, Text, Value, Vector

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")

Schema = dict[str, Any]


def json_schema(root: Keys) -> Schema:
    """The schema of a file whose root is `root`. What the reader accepts it accepts; the reader checks more."""
    defined: dict[str, Schema | None] = {}
    body = _keys_schema(root, defined)
    return {"$schema": DRAFT, "title": f"liedyn {root.title.replace('_', ' ')}", **body, "$defs": dict(sorted(defined.items()))}


def told(key: Key) -> str:
    """What a key means, with its default, as plain text."""
    return _LINK.sub(r"\1", described(key))


def described(key: Key) -> str:
    """What a key means, with its default, in Markdown."""
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

def _schema(value: Value, defined: dict[str, Schema | None]) -> Schema:
    match value:
        case Number():
            return {"type": "number"} | _given(minimum=value.least, exclusiveMinimum=value.above, maximum=value.most)
        case Integer():
            return {"type": "integer"} | _given(minimum=value.least, maximum=value.most)
        case Boolean():
            return {"type": "boolean"}
        case Text() | File():
            return {"type": "string"}
        case Choice():
            return {"enum": list(value.options)}
        case Vector():
            return _schema(List(value.entry, value.count, value.count), defined)
        case List():
            bounds = _given(minItems=value.least or None, maxItems=value.most)
            return {"type": "array", "items": _schema(value.of, defined)} | bounds
        case Named():
            return {"type": ["object", "null"], "additionalProperties": _schema(value.of, defined)}
        case Either():
            return _refer(value, defined, lambda: {"anyOf": [_schema(one, defined) for one in value.values]})
    return _refer(value, defined, lambda: _keys_schema(value, defined))


def _given(**bounds: float | None) -> Schema:
    return {name: bound for name, bound in bounds.items() if bound is not None}


def _refer(value: Either | Keys, defined: dict[str, Schema | None], make) -> Schema:
    if value.title is None:
        return make()
    if value.title not in defined:
        defined[value.title] = None                            # of a value within itself: a reference
        defined[value.title] = make()
    return {"$ref": f"#/$defs/{value.title}"}


# mappings -----------------------------------------------------------------------------------------------------------

def _keys_schema(keys: Keys, defined: dict[str, Schema | None]) -> Schema:
    required = [key.name for key in keys.keys if key.required and not key.kinds]
    groups = [_exactly_one(group) for group in keys.one_of if not keys[group[0]].kinds]
    conditions = [*groups, *_of_kinds(keys)]
    return {"type": "object" if required or groups else ["object", "null"],
            "properties": {key.name: _property(key, keys.empty, defined) for key in keys.keys},
            "additionalProperties": False,
            **({"required": required} if required else {}), **({"allOf": conditions} if conditions else {})}


def _exactly_one(group: tuple[str, ...]) -> Schema:
    return {"oneOf": [{"required": [name]} for name in group]}


def _property(key: Key, empty: bool, defined: dict[str, Schema | None]) -> Schema:
    schema = _schema(key.value, defined)
    if empty and not key.required:
        schema = _or_nothing(schema)
    given = {"description": told(key)}
    if _is_a_value(key.default, key.value):
        given["default"] = key.default
    if key.example is not None:
        given["examples"] = [key.example]
    return schema | given


def _is_a_value(default: Any, value: Value) -> bool:
    """Whether a default is a value of the key, not a text about it."""
    return default in value.options if isinstance(value, Choice) else default is not None and not isinstance(default, str)


def _or_nothing(schema: Schema) -> Schema:
    if isinstance(schema.get("type"), str):
        return schema | {"type": [schema["type"], "null"]}
    if "enum" in schema:
        return {"enum": [*schema["enum"], None]}
    return schema if "type" in schema else {"anyOf": [schema, {"type": "null"}]}


def _of_kinds(keys: Keys) -> list[Schema]:
    """For each kind of a mapping: the keys that apply, and those that it needs."""
    if keys.kind is None:
        return []
    by_keys: dict[tuple[str, ...], list[str]] = {}
    for kind in keys[keys.kind].value.options:
        by_keys.setdefault(keys.of_kind(kind), []).append(kind)
    rules = []
    for names, kinds in by_keys.items():
        needed = [key.name for key in keys.keys if key.required and key.kinds and key.name in names]
        groups = [_exactly_one(group) for group in keys.one_of if keys[group[0]].kinds and group[0] in names]
        condition = {"properties": {keys.kind: {"enum": kinds}}}
        if keys[keys.kind].default not in kinds:
            condition["required"] = [keys.kind]
        rules.append({"if": condition, "then": {"propertyNames": {"enum": list(names)}}
                      | ({"required": needed} if needed else {}) | ({"allOf": groups} if groups else {})})
    return rules
