from __future__ import annotations

import click

from liedyn.cli.console import with_console
from liedyn.cli.options import FILE, base_option, json_option, loops_option


@click.command(short_help="List everything doubtful in robot files.")
@click.argument("robots", metavar="ROBOT...", nargs=-1, required=True, type=FILE)
@base_option
@loops_option
@json_option
@with_console
def check(robots, base, loops, as_json, console):
    """List everything doubtful in robot files: impossible inertias, missing limits, joints that follow nothing, …

    Exit status 0: nothing is; 3: a file cannot be used at all; 4: something is doubtful, and listed.

    \b
    Example:  liedyn check robots/*.yaml
    Example:  liedyn check robots/delta.yaml --loops robots/delta_guided.loops.yaml
    """
    if loops and len(robots) > 1:
        raise click.UsageError(f"--loops belongs to one robot; found {len(robots)}.")
    from liedyn.report.robot_check import examine, verdict

    examined = [examine(robot, base, loops) for robot in robots]
    if as_json:
        console.result_json([one.plain() for one in examined])
    else:
        console.result("\n".join(one.text() for one in examined))
    verdict(examined)
