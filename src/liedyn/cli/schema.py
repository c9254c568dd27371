from __future__ import annotations

import click

from liedyn.cli.console import with_console
from liedyn.cli.options import file_kind_argument, force_option, text_output_option


@click.command(short_help="Write the JSON schema of scenario, robot, loops or sweep files.")
@file_kind_argument
@with_console(text_output_option, force_option)
def schema(kind, output, force, console):
    """Write the JSON schema (draft 2020-12) of scenario, robot, loops or sweep files, with which editors complete and check them.

    \b
    Example:  liedyn schema scenario -o scenario.schema.json
    A file uses it if its first line is
              # yaml-language-server: $schema=scenario.schema.json
    """
    from liedyn.io.file_kinds import schema_text

    console.write_text(output, schema_text(kind), force=force)
