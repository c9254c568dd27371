from __future__ import annotations

import click

from liedyn.cli.console import with_console
from liedyn.cli.options import base_option, force_option, json_option, loops_option, robot_argument, strict_option


@click.command(short_help="Find a configuration that closes the loops of a robot.")
@robot_argument
@click.option("--q", "q", multiple=True, metavar="JOINT=VALUE", help="Initial guess of a joint's coordinates (separated by "
              "commas); may be repeated. Default: zero.")
@click.option("--keep", multiple=True, metavar="PATTERN", help="Joints that keep their initial guess; may be repeated.")
@click.option("--v", "v", multiple=True, metavar="JOINT=VALUE", help="Velocity of a joint; the velocities of the other joints "
              "are computed. May be repeated.")
@click.option("--drive", multiple=True, metavar="NAME=X,Y,Z", help="Position of the frame of a driven loop [m], optionally "
              "followed by roll, pitch, yaw [rad]; may be repeated.")
@loops_option
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random initial guesses, which are tried "
              "if the given one does not lead to a closed configuration.")
@click.option("-o", "--output", type=click.Path(), default="-", help="File to write, .yaml or .csv. Default: YAML on "
              "stdout.")
@with_console(base_option, strict_option, force_option, json_option)
def assemble(robot, q, keep, v, drive, loops, seed, output, base, strict, force, as_json, console):
    """Find a configuration of ROBOT that closes its loops, near an initial guess and within the joint limits.

    Also reports the degrees of freedom, the redundant constraints, and whether the configuration is singular. The output can
    be copied to `initial:` of a scenario.

    \b
    Example:  liedyn assemble robots/four_bar.yaml --q crank=1.2 --keep crank
    Example:  liedyn assemble robots/stewart.yaml --q platform=0,0,0.65,0,0,0,1 --keep platform -o pose.yaml
    """
    from liedyn.io.output import check_output

    if as_json and output == "-":
        output = None
    if output:
        check_output(output, force=force)

    from liedyn.analyse.assembled_state import assembled_state
    from liedyn.code_cache import FIRST_RUN
    from liedyn.loading import read_model
    from liedyn.report.texts.assembly_text import assembly_notes, assembly_text, plain_assembly, write_assembly

    model = read_model(robot, base=base, loops=loops, strict=strict)
    console.robot(model)
    with console.progress.stage(f"assembling ({FIRST_RUN})"):
        state = assembled_state(model, q, v, keep, drive, seed=seed)
    console.say(assembly_text(state))
    console.notes(assembly_notes(state))
    if as_json:
        console.result_json(plain_assembly(state))
    if output:
        write_assembly(state, output, force=force)
    if output and output != "-":
        console.wrote_file(output)
