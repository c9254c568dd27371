from __future__ import annotations

import click

from liedyn.cli.console import with_console
from liedyn.cli.options import file_kind_argument, force_option, text_output_option


@click.command(short_help="Write a commented scenario, robot, loops or sweep file with all keys.")
@file_kind_argument
@with_console(text_output_option, force_option)
def template(kind, output, force, console):
    """Write a commented YAML file with all keys of a scenario, robot, loops or sweep file.

    The lines without a # are a complete file: the robot is an arm with two joints, and the scenario moves it.

    \b
    Example:  liedyn template robot -o robot.yaml
              liedyn template scenario -o swing.yaml
              liedyn simulate swing.yaml
    """
    from liedyn.io.file_kinds import template_text

    console.write_text(output, template_text(kind), force=force)
