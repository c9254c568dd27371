from __future__ import annotations

import click

from liedyn.cli.console import with_console
from liedyn.cli.options import FILE, base_option, json_option, loops_option


@click.command(short_help="Check robot files and list all findings.")
@click.argument("robots", metavar="ROBOT...", nargs=-1, required=True, type=FILE)
@with_console(base_option, loops_option, json_option)
def check(robots, base, loops, as_json, console):
    """Check robot files and list all findings: physically impossible inertias, missing limits, mimic joints without a joint to
    follow, …

    Exit status 0: no findings; 3: a file cannot be used; 4: findings, which are listed.

    \b
    Example:  liedyn check robots/*.yaml
    Example:  liedyn check robots/delta.yaml --loops robots/delta_guided.loops.yaml
    """
    if loops and len(robots) > 1:
        raise click.UsageError(f"--loops needs exactly one robot; found {len(robots)}.")
    from liedyn.report.texts.robot_check import examine, verdict

    examined = [examine(robot, base, loops) for robot in robots]
    if as_json:
        console.result_json([one.plain() for one in examined])
    else:
        console.result("\n".join(one.text() for one in examined))
    verdict(examined)
