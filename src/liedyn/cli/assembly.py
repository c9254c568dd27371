"""The command `assemble`: configurations that close the loops of a robot."""
from __future__ import annotations

from typing import TYPE_CHECKING

import click

from liedyn.cli.console import Console, arguments_first, with_console
from liedyn.cli.options import (
    base_option,
    force_option,
    json_option,
    loops_option,
    reading_options,
    robot_argument,
    strict_option,
)

if TYPE_CHECKING:                       # imports NumPy
    from liedyn.arrays import Base
    from liedyn.robot_files import ReadingOptions


@click.command(short_help="Find a configuration that closes the loops of a robot.")
@robot_argument
@click.option("--q", "q", multiple=True, metavar="JOINT=VALUE", help="Initial guess of a joint's coordinates (separated by "
              "commas); may be repeated. Default: zero.")
@click.option("--keep", multiple=True, metavar="PATTERN", help="Joints that keep the coordinates of the initial guess; "
              "may be repeated.")
@click.option("--v", "v", multiple=True, metavar="JOINT=VALUE", help="Velocity of a joint; the velocities of the other joints "
              "are computed. May be repeated.")
@click.option("--constraint-motion", multiple=True, metavar="NAME=X,Y,Z", help="Position of the frame of a driven loop "
              "[m], optionally followed by roll, pitch, yaw [rad]; may be repeated.")
@loops_option
@click.option("--seed", type=click.IntRange(0), metavar="N", default=0, show_default=True, help="Seed of the random initial "
              "guesses, which are tried if the guess of --q does not lead to a closed configuration.")
@click.option("-o", "--output", type=click.Path(), default="-", help="File to write, .yaml or .csv. Default: YAML on "
              "stdout.")
@with_console(base_option, reading_options, strict_option, force_option, json_option)
def assemble(robot: str, q: tuple[str, ...], keep: tuple[str, ...], v: tuple[str, ...],        # noqa: PLR0913
             constraint_motion: tuple[str, ...], loops: str | None, seed: int, output: str | None, base: Base | None,
             reading: ReadingOptions, strict: bool, force: bool, as_json: bool, console: Console) -> None:
    """Find a configuration of ROBOT that closes its loops, near an initial guess and within the joint limits.

    Also reports the degrees of freedom, the redundant constraints, and whether the configuration is singular. The output can
    be copied to `initial:` of a scenario.

    \b
    Examples:
      liedyn assemble robots/four_bar.yaml --q crank=1.2 --keep crank
      liedyn assemble robots/stewart.yaml --q platform=0,0,0.65,0,0,0,1 \\
          --keep platform -o pose.yaml
    """
    from liedyn.io.atomic_output import check_output

    if as_json and output == "-":
        output = None

    def check_arguments() -> None:
        from liedyn.analysis.configurations import assembled_state
        from liedyn.robot_files import read_model
        model = read_model(robot, base=base, loops=loops, strict=strict, **reading)
        assembled_state(model, q, v, keep, constraint_motion, seed=seed)

    if output:
        with arguments_first(check_arguments):
            check_output(output, force=force)

    from liedyn.analysis.configurations import assembled_state
    from liedyn.report.result_summary import assembly_text, assembly_to_dict, assembly_warnings, write_assembly
    from liedyn.robot_files import read_model

    model = read_model(robot, base=base, loops=loops, strict=strict, **reading)
    console.robot(model)
    with console.progress.stage("assembling"):
        state = assembled_state(model, q, v, keep, constraint_motion, seed=seed)
    console.message(assembly_text(state))
    console.warn(*assembly_warnings(state))
    if as_json:
        console.result_json(assembly_to_dict(state))
    if output:
        write_assembly(state, output, force=force)
        console.file(output)
