from __future__ import annotations

import click

from liedyn.cli.console import with_console
from liedyn.cli.options import FILE, json_option

GROUPS = ("dynamics", "simulate", "derivatives", "higher-order", "parameters", "loops", "all")


@click.command(short_help="Compile functions in advance.")
@click.argument("robot", type=FILE, required=False)
@click.option("-w", "--what", multiple=True, type=click.Choice(GROUPS), help="Group of functions to compile; may be repeated. "
              "Default: dynamics and simulate, and loops if ROBOT has loops.")
@with_console(json_option)
def warmup(robot, what, as_json, console):
    """Compile functions for this processor and store the code in the cache, so that later runs need not compile it: for
    container images, for CI, before a demonstration.

    Most of the code is the same for all robots. The environment variable LIEDYN_CACHE_DIR selects the folder of the cache.

    \b
    Example:  liedyn warmup
    Example:  liedyn warmup robots/four_bar.yaml
    Example:  liedyn warmup --what all --json
    """
    from liedyn.simulation import warmup as library

    done = library.warmup(what or None, robot=robot, progress=console.progress)
    if as_json:
        console.result_json(done.plain())
    for step in done.steps:
        console.detail(f"{step.seconds:6.1f} s  {step.function} ({step.group})")
    console.say(done.summary)
