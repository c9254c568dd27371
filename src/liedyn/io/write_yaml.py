"""Plain values as YAML that reads back equal."""
from __future__ import annotations

import math
import os
from typing import Any

import yaml

from liedyn.io.yaml_text import parse_yaml

_WIDTH = 130


class FilePath(str):
    """A path within plain values, as it can be opened from the current folder."""


def plain(value: Any, folder: str | os.PathLike | None = None) -> Any:
    """Values as a file holds them: lists for tuples, without keys whose value is None, paths relative to `folder` or absolute."""
    if isinstance(value, dict):
        return {key: plain(one, folder) for key, one in value.items() if one is not None}
    if isinstance(value, list | tuple):
        return [plain(one, folder) for one in value]
    if isinstance(value, FilePath):
        return os.path.abspath(value) if folder is None else os.path.relpath(value, folder)
    return value


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data) -> bool:
        return True


def _text(dumper: _Dumper, text: str):
    """In quotes where our reader would take the word for something else; PyYAML quotes by the rules of YAML 1.1."""
    node = dumper.represent_scalar("tag:yaml.org,2002:str", text)
    if _kind(text) != "text":
        node.style = '"'
    return node


def _kind(text: str) -> str | None:
    if not text or text.split() != [text]:
        return "text"                                          # PyYAML quotes what has blanks where they matter
    try:
        return parse_yaml(f"- {text}").value[0].kind
    except (ValueError, IndexError):
        return None


def _number(dumper: _Dumper, x: float):
    text = number_text(x)
    return dumper.represent_scalar(f"tag:yaml.org,2002:{'float' if '.' in text else 'int'}", text)


def number_text(x: float) -> str:
    """A number that reads back to the same bits: whole ones without a point, as people write them, others with one, which some
    readers need to tell 1.0e-05 from text."""
    if not math.isfinite(x):
        return ".nan" if math.isnan(x) else ".inf" if x > 0 else "-.inf"
    text = repr(x)
    if x.is_integer() and abs(x) < 1e15 and text[:2] != "-0":
        return str(int(x))
    return text.replace("e", ".0e") if "." not in text else text


_Dumper.add_representer(str, _text)
_Dumper.add_representer(float, _number)


def to_yaml(values: Any, flow: bool | None = None) -> str:
    """YAML of dicts, lists, text, numbers, booleans and None; `flow`: in one line, None: the innermost only."""
    text = yaml.dump(values, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=flow,
                     width=1_000_000 if flow else _WIDTH)
    return text.removesuffix("\n...\n").rstrip("\n") if flow else text
