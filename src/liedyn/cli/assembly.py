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
    from liedyn.analysis.configurations import AssembledState
    from liedyn.arrays import Base
    from liedyn.model.model import Model
    from liedyn.robot_files import ReadingOptions


@click.command(short_help="Find a configuration that closes the loops of a robot.")
@robot_argument
@click.option("--q", "q", multiple=True, metavar="JOINT=VALUE", help="Initial guess of the coordinates (separated by commas) of "
              "a joint, or of all that match a pattern; may be repeated. Default: zero.")
@click.option("--keep", multiple=True, metavar="PATTERN", help="Joints that keep the coordinates of the initial guess; "
              "may be repeated.")
@click.option("--v", "v", multiple=True, metavar="JOINT=VALUE", help="Velocity of a joint, or of all that match a pattern; the "
              "velocities of the other joints are computed. May be repeated.")
@click.option("--constraint-motion", multiple=True, metavar="NAME=X,Y,Z", help="Position of the frame of a driven loop "
              "[m], optionally followed by roll, pitch, yaw [rad]; may be repeated.")
@loops_option
@click.option("--seed", type=click.IntRange(0), metavar="N", default=0, show_default=True, help="Seed of the random initial "
              "guesses, which are tried if the guess of --q does not lead to a closed configuration.")
@click.option("--all", "find_all", is_flag=True, help="Find all assemblies that searches from random configurations reach.")
@click.option("--searches", type=click.IntRange(1), metavar="N", help="Number of searches of --all. Default: 40.")
@click.option("-o", "--output", type=click.Path(), default="-", help="File to write, .yaml or .csv. Default: YAML on "
              "stdout.")
@with_console(base_option, reading_options, strict_option, force_option, json_option)
def assemble(robot: str, q: tuple[str, ...], keep: tuple[str, ...], v: tuple[str, ...],        # noqa: PLR0913
             constraint_motion: tuple[str, ...], loops: str | None, seed: int, find_all: bool, searches: int | None,
             output: str | None, base: Base | None, reading: ReadingOptions, strict: bool, force: bool, as_json: bool,
             console: Console) -> None:
    """Find a configuration of ROBOT that closes its loops, near an initial guess and within the joint limits.

    Also reports the degrees of freedom, the redundant constraints, and whether the configuration is singular or degenerate, with
    the coordinates concerned. The output can be copied to `initial:` of a scenario.

    \b
    Examples:
      liedyn assemble robots/four_bar.yaml --q crank=1.2 --keep crank
      liedyn assemble robots/four_bar.yaml --q crank=1.2 --keep crank --all
      liedyn assemble robots/stewart.yaml --q platform=0,0,0.65,0,0,0,1 \\
          --keep platform -o pose.yaml
    """
    from liedyn.io.atomic_output import check_output

    if as_json and output == "-":
        output = None
    if searches is not None and not find_all:
        raise click.UsageError("--searches requires --all.")

    def read() -> Model:
        from liedyn.robot_files import read_model
        return read_model(robot, base=base, loops=loops, strict=strict, **reading)

    def find(model: Model) -> tuple[AssembledState, ...]:
        from liedyn.analysis.configurations import assembled_state, assembled_states
        if find_all:
            return assembled_states(model, q, v, keep, constraint_motion, searches=searches or 40, seed=seed)
        return (assembled_state(model, q, v, keep, constraint_motion, seed=seed),)

    if output:
        with arguments_first(lambda: find(read())):
            check_output(output, force=force)

    from liedyn.report import assembly_report

    model = read()
    console.robot(model)
    with console.progress.stage("assembling"):
        states = find(model)
    console.message(assembly_report.assemblies_text(states) if find_all else assembly_report.assembly_text(states[0]))
    console.warn(*(() if find_all else assembly_report.assembly_warnings(states[0])))
    if as_json:
        results = [assembly_report.assembly_to_dict(state) for state in states]
        console.result_json({"robot": model.source, "assemblies": results} if find_all else results[0])
    if output:
        assembly_report.write_assemblies(states, output, force=force, as_list=find_all)
        console.file(output)
