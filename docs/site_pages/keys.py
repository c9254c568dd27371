"""The keys of a kind of file, from the declarations that validate them."""
from __future__ import annotations

import re
from functools import singledispatch
from pathlib import Path

from liedyn.io.file_schema import Boolean, Choice, Field, File, Integer, List, Named, Number, OneOf, Schema, Text, Value, Vector
from liedyn.io.schema_export import KINDS, meaning_markdown

DOCS = Path(__file__).resolve().parents[1]
_PAGES = {"scenario": ("scenarios", "scenarios/control", "scenarios/contact", "scenarios/events", "scenarios/integrators",
                       "scenarios/sensors"),
          "robot": ("files",), "loops": ("loops",), "sweep": ("batches",), "columns": ("files",)}


def keys_page(kind: str) -> str:
    """Markdown: a section and a table for each mapping of the file."""
    return "\n".join(_section(keys, kind) for keys in mappings(KINDS[kind]))


def mappings(root: Schema) -> list[Schema]:
    """All mappings of a file, each once, those of the root first."""
    found: dict[int, Schema] = {}

    def visit(value: Value) -> None:
        if isinstance(value, Schema) and id(value) not in found:
            found[id(value)] = value
            for key in value.keys:
                visit(key.value)
        elif isinstance(value, List | Named):
            visit(value.of)
        elif isinstance(value, OneOf):
            for one in value.values:
                visit(one)

    visit(root)
    return list(found.values())


def heading(keys: Schema) -> str:
    return keys.title.replace("_", " ")


def _section(keys: Schema, kind: str) -> str:
    rows = [f"| `{key.name}` | {value_words(key.value)} | {_meaning(key, kind)} |" for key in keys.keys]
    title = "Top level" if keys is KINDS[kind] else heading(keys)
    return "\n".join((f"## {title}\n", *_conditions(keys), "| key | value | meaning |", "|---|---|---|", *rows, ""))


def _conditions(keys: Schema) -> list[str]:
    return [f"Exactly one of {_listed(group)}{_where(keys, group)} is given.\n" for group in keys.one_of]


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _where(keys: Schema, group: tuple[str, ...]) -> str:
    kinds = keys[group[0]].kinds
    return f" (with `{keys.kind}: {'`, `'.join(kinds)}`)" if kinds else ""


def _meaning(key: Field, kind: str) -> str:
    """Its links start from the page that describes the file, which is a folder above."""
    text = re.sub(r"\]\((?=[a-z/-]+\.md)", "](../", meaning_markdown(key))
    text = re.sub(r"\]\(#([a-z-]+)", lambda link: f"](../{_page_with(kind, link[1])}.md#{link[1]}", text)
    return text.replace("|", r"\|")


def _page_with(kind: str, anchor: str) -> str:
    """The page on which a heading explains something, not only refers to another page."""
    name = re.compile(rf"^#+ {anchor.replace('-', '[- ]')}$", re.MULTILINE | re.IGNORECASE)
    return next(page for page in reversed(_PAGES[kind]) if name.search((DOCS / f"{page}.md").read_text(encoding="utf-8")))


# --- values in words -----------------------------------------------------------------------------------------------------

@singledispatch
def value_words(value: Value) -> str:
    raise TypeError(f"no words for {value!r}")


@value_words.register
def _(value: Number) -> str:
    signs = {"≥": value.minimum, ">": value.above, "≤": value.maximum}
    return f"number {' and '.join(f'{sign} {bound:g}' for sign, bound in signs.items() if bound is not None)}".strip()


@value_words.register
def _(value: Integer) -> str:
    return "integer" if value.minimum is None else f"integer ≥ {value.minimum}"


@value_words.register
def _(value: Boolean) -> str:
    return "true or false"


@value_words.register
def _(value: Text) -> str:
    return "text"


@value_words.register
def _(value: File) -> str:
    return "path"


@value_words.register
def _(value: Choice) -> str:
    return ", ".join(f"`{one}`" for one in value.options)


@value_words.register
def _(value: Vector) -> str:
    return f"{value.count} numbers"


@value_words.register
def _(value: List) -> str:
    minimum, maximum, words = value.minimum, value.maximum, value_words(value.of)
    count = f"{minimum} or more" if minimum > 1 else ""
    if maximum:
        count = str(minimum) if minimum == maximum else f"{minimum} to {maximum}"
    if " " in words and not words.startswith("["):
        return f"list{f' of {count}' if count else ''}, each {words}"
    return f"list of {count} {words}{'s' * (words == 'number')}".replace("  ", " ")


@value_words.register
def _(value: Named) -> str:
    return f"by {value.name.rstrip('*')}: {value_words(value.of)}"


_TITLED = {"signal": "[signal](../scenarios.md#signals)", "signals": "[signal](../scenarios.md#signals), or a list of them"}


@value_words.register
def _(value: OneOf) -> str:
    return _TITLED.get(value.title) or ", or ".join(dict.fromkeys(value_words(one) for one in value.values))


@value_words.register
def _(value: Schema) -> str:
    return f"[{heading(value)}](#{value.title.replace('_', '-')})"
