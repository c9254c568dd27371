from __future__ import annotations

import click

from liedyn.cli.console import with_console
from liedyn.cli.options import base_option, json_option, loops_option, robot_argument


@click.command(short_help="Show a robot file: tree, coordinates, limits.")
@robot_argument
@with_console(base_option, loops_option, json_option)
def info(robot, base, loops, as_json, console):
    """Show the content of ROBOT, a URDF, YAML or MJCF file: tree, order of the coordinates, masses, limits.

    \b
    Example:  liedyn info robots/panda.yaml
    Example:  liedyn info robots/quadruped.yaml --base floating --json
    Example:  liedyn info robots/delta.yaml --loops robots/delta_guided.loops.yaml
    """
    from liedyn.loading import read_model
    from liedyn.report.texts.robot_text import robot_summary, robot_text

    model = read_model(robot, base=base, loops=loops)
    if as_json:
        console.result_json(robot_summary(model))
    else:
        console.result(robot_text(model))
    console.robot(model)
