"""What robot files in YAML have in common: elements by name, and where each stands."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from liedyn.io.robots.element_place import ElementPlace
from liedyn.io.yaml_text import Node


def named(root: Node, key: str, read: Callable[[str, Node], Any]) -> tuple[Any, ...]:
    """The elements that stand by name under a key, if it is there."""
    node = root.get(key)
    return tuple(read(name, child) for name, child in node.mapping().items()) if node else ()


def place_of_keys(node: Node, **parts: str) -> ElementPlace:
    """The place of an element and of its keys; `parts` are those that go by another name in the description."""
    lines = {key: child.place for key, child in node.mapping().items()}
    lines.update({name: lines[key] for name, key in parts.items() if key in lines})
    return ElementPlace(node.file, node.line, node.key, lines)
