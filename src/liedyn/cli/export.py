from __future__ import annotations

from pathlib import Path

import click

from liedyn.cli.console import with_console
from liedyn.cli.options import base_option, force_option, json_option, robot_argument, strict_option

FUNCTIONS = ("inverse_dynamics", "forward_dynamics", "mass_matrix", "inverse_mass_matrix", "inverse_dynamics_derivatives",
             "forward_dynamics_derivatives")


@click.command(short_help="Write the dynamics of a robot as a C file.")
@robot_argument
@click.option("--function", type=click.Choice(FUNCTIONS), default="forward_dynamics",
              show_default=True, help="Function to write.")
@click.option("-o", "--output", type=click.Path(dir_okay=False), metavar="FILE.c",
              help="C file to write, with a header beside it. Default: ROBOT_FUNCTION.c in the current folder.")
@click.option("--no-passive", is_flag=True, help="Omit joint springs, damping and friction.")
@click.option("--float", "single", is_flag=True, help="Use single precision.")
@click.option("--with-test", is_flag=True, help="Also write NAME_test.c, a program that compares one state with liedyn's result.")
@with_console(base_option, strict_option, force_option, json_option)
def export(robot, function, output, no_passive, single, with_test, base, strict, force, as_json, console):
    """Write a function of ROBOT's dynamics as a C99 function with a header.

    The code has no loops, allocates no memory, and needs only <math.h>. Comments list the order and the units of the arrays.

    \b
    Example:  liedyn export robots/panda.yaml --function forward_dynamics -o panda_fd.c
    writes    panda_fd.c, panda_fd.h
    Example:  liedyn export robots/ur5.yaml --function inverse_dynamics --float --with-test
    """
    from liedyn.loading import read_model
    from liedyn.report.c_files import write_export

    model = read_model(robot, base=base, strict=strict)
    console.robot(model)
    with console.progress.stage("writing the function"):
        found, paths = write_export(model, function, output and Path(output), passive=not no_passive, single=single,
                                    with_test=with_test, force=force)
    if as_json:
        console.result_json({"files": [str(path) for path in paths], "function": found.name, "operations": found.recording.size})
    console.wrote(paths)
