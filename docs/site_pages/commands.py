"""The commands with their arguments and options, from what click knows of them."""
from __future__ import annotations

import inspect
import re

import click

from liedyn.cli.app import main


def commands_page() -> str:
    return "\n".join(_command(name, command) for name, command in commands().items())


def commands() -> dict[str, click.Command]:
    context = click.Context(main)
    return {name: main.get_command(context, name) for name in main.list_commands(context)}


def _command(name: str, command: click.Command) -> str:
    usage = " ".join(("liedyn", name, *command.collect_usage_pieces(_context(command))))
    return "\n".join((f"## {name}\n", f"```text\n{usage}\n```\n", _text(command.help or ""), _options(command), ""))


def _context(command: click.Command) -> click.Context:
    """As when it is called: click keeps the help option that it makes for its first context."""
    return click.Context(command, parent=click.Context(main, **main.context_settings))


def _text(help: str) -> str:
    """A docstring for click: what follows \\b keeps its lines."""
    parts = []
    for part in inspect.cleandoc(help).split("\n\n"):
        kept = part.strip("\n").startswith("\b")
        lines = part.replace("\b", "").strip("\n")
        parts.append(f"```text\n{inspect.cleandoc(lines)}\n```\n" if kept else f"{_safe(lines)}\n")
    return "\n".join(parts)


def _options(command: click.Command) -> str:
    context = _context(command)
    records = [one.get_help_record(context) for one in command.params if isinstance(one, click.Option)]
    rows = [f"| `{_cell(names)}` | {_safe(meaning)} |" for names, meaning in filter(None, records)]
    return "\n".join(("| option | meaning |", "|---|---|", *rows, "| `-h, --help` | Show this message and exit. |"))


def _cell(code: str) -> str:
    return code.replace("|", r"\|")


def _safe(text: str) -> str:
    """Text that holds no Markdown but code between `…`."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([*_<>|\[\]])", r"\\\1", part) for part in parts)
