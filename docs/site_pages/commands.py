"""The commands with their arguments and options, from what click knows of them."""
from __future__ import annotations

import inspect
import re
import textwrap

import click

from liedyn.cli.app import main

COLUMNS = 88


def commands_page() -> str:
    table = [f"| [{name}](#{name}) | {_safe(command.get_short_help_str(200))} |" for name, command in commands().items()]
    return "\n".join(("| command | |", "|---|---|", *table, "", *(_command(name, one) for name, one in commands().items())))


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
        parts.append(_verbatim(inspect.cleandoc(lines)) if kept else f"{_safe(lines)}\n")
    return "\n".join(parts)


def _verbatim(text: str) -> str:
    """A block whose lines are kept: examples as commands, each with a comment on what it writes."""
    if "liedyn " not in text:
        return f"```text\n{text}\n```\n"
    lines: list[str] = []
    for line in re.sub(r"^Examples?:[ \n]*", "", text, flags=re.MULTILINE).splitlines():
        if match := re.match(r"writes +(.+)", line):
            lines += textwrap.wrap(f"# writes {match[1]}", COLUMNS, subsequent_indent="# ")
        elif line.strip():
            lines += _wrapped(line.strip() if line.strip().startswith("liedyn") else line)
    return "\n".join(("```sh", *lines, "```\n"))


def _wrapped(command: str) -> list[str]:
    """A command in lines of at most COLUMNS characters, which end with a backslash where it continues."""
    lines = [""]
    for word in re.findall(r"\s*(?:'[^']*'|\"[^\"]*\"|[^\s'\"])+", command):
        if len(lines[-1] + word) > COLUMNS - 2:
            lines[-1] += " \\"
            lines.append(f"    {word.strip()}")
        else:
            lines[-1] += word
    return lines


def _options(command: click.Command) -> str:
    context = _context(command)
    records = [one.get_help_record(context) for one in command.params if isinstance(one, click.Option)]
    items = [f"`{names}`\n: {_safe(meaning)}\n" for names, meaning in filter(None, records)]
    return "\n".join((*items, "`-h, --help`\n: Show this message and exit.\n"))


def _safe(text: str) -> str:
    """Text that holds no Markdown but code between `…`."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([*_<>|\[\]])", r"\\\1", part) for part in parts)
