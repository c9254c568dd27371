"""`when` of an event that waits for a contact: touch(foot), lift(foot), touch(foot, ground)."""
from __future__ import annotations

import re
from dataclasses import dataclass

from liedyn.io.scenarios.event_keys import TOUCH
from liedyn.io.yaml_text import Node

_CALL = re.compile(r"\s*(touch|lift)\s*\((.*)\)\s*", re.DOTALL)
WAYS = {"touch": 1, "lift": -1}                # of the depth, where no direction is given
FORM = "touch(link), lift(link), touch(link, plane) or touch(link, link)"


@dataclass(frozen=True, slots=True)
class TouchEvent:
    """The first contact of a link (or pattern) begins, or its last one ends. other: a plane or link that it touches, or any."""

    link: str
    other: str | None = None
    way: int = 1


def read_touch(node: Node) -> TouchEvent | None:
    """None where `when` is an expression."""
    if node.kind == "mapping":
        given = node.mapping(TOUCH)
        if len(given) != 1:
            raise node.wrong(f"an expression, or {FORM}")
        word, = given
        return TouchEvent(TOUCH.value(given, word), way=WAYS[word])
    if node.kind != "text":
        raise node.wrong(f"an expression, or {FORM}")
    found = _CALL.fullmatch(node.value)
    if not found:
        return None
    names = [name.strip().strip("'\"") for name in found[2].split(",")]
    if len(names) > 2 or not all(names):
        raise node.wrong(FORM)
    return TouchEvent(*names, *([None] if len(names) == 1 else []), WAYS[found[1]])


def touch_text(touch: TouchEvent) -> str:
    word = next(word for word, way in WAYS.items() if way == touch.way)
    return f"{word}({', '.join(name for name in (touch.link, touch.other) if name)})"
