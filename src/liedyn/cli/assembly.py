"""The command `assemble`: configurations that close the loops of a robot."""
from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from liedyn.cli.console import Console, arguments_first, check_drawn, with_console
from liedyn.cli.options import (
    base_option,
    force_option,
    json_option,
    loops_option,
    reading_options,
    robot_argument,
    strict_option,
)
from liedyn.errors import LiedynWarning

if TYPE_CHECKING:                       # imports NumPy
    from liedyn.analysis.configurations import AssembledState
    from liedyn.arrays import Base
    from liedyn.dynamics.constraints.kinematic_sweep import KinematicSweep
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
@click.option("--sweep", metavar="JOINT=FROM:TO[:STEPS]", help="Drive a joint through a range, from the assembly nearest to "
              "--q, such as crank=0:360deg or crank=0:2:100. Default: 180 steps.")
@click.option("--driven", multiple=True, metavar="PATTERN", help="Coordinates whose dead centres, mechanical advantage and "
              "transmission angle --sweep computes; may be repeated.")
@click.option("--no-limits", is_flag=True, help="Let --sweep exceed joint limits.")
@click.option("-o", "--output", type=click.Path(), default="-", help="File to write, .yaml or .csv; with --sweep a CSV, "
              "with a plot of the same name. Default: stdout.")
@with_console(base_option, reading_options, strict_option, force_option, json_option)
def assemble(robot: str, q: tuple[str, ...], keep: tuple[str, ...], v: tuple[str, ...],        # noqa: PLR0913
             constraint_motion: tuple[str, ...], loops: str | None, seed: int, find_all: bool, searches: int | None,
             sweep: str | None, driven: tuple[str, ...], no_limits: bool, output: str | None, base: Base | None,
             reading: ReadingOptions, strict: bool, force: bool, as_json: bool, console: Console) -> None:
    """Find a configuration of ROBOT that closes its loops, near an initial guess and within the joint limits.

    Also reports the degrees of freedom, the redundant constraints, and whether the configuration is singular or degenerate, with
    the coordinates concerned. The output can be copied to `initial:` of a scenario.

    --sweep writes positions and velocities of all coordinates while the driver moves at 1 rad/s or 1 m/s, and lists dead centres,
    which it locates. It stops where the mechanism cannot continue.

    \b
    Examples:
      liedyn assemble robots/four_bar.yaml --q crank=1.2 --keep crank
      liedyn assemble robots/four_bar.yaml --q crank=1.2 --keep crank --all
      liedyn assemble robots/stewart.yaml --q platform=0,0,0.65,0,0,0,1 \\
          --keep platform -o pose.yaml
      liedyn assemble robots/four_bar.yaml --sweep crank=0:360deg \\
          --driven rocker -o sweep.csv
    """
    from liedyn.io.atomic_output import check_output

    if as_json and output == "-":
        output = None
    _check_combination(sweep=sweep, all=find_all, v=v, searches=searches, driven=driven, no_limits=no_limits)

    def read() -> Model:
        from liedyn.robot_files import read_model
        return read_model(robot, base=base, loops=loops, strict=strict, **reading)

    if sweep is not None:
        _sweep(read, sweep, driven, q, keep, constraint_motion, not no_limits, output, force, as_json, console)
        return

    def find(model: Model) -> tuple[AssembledState, ...]:
        from liedyn.analysis.configurations import assembled_state, assembled_states
        if find_all:
            return assembled_states(model, q, v, keep, constraint_motion, searches=searches or 40, seed=seed)
        return (assembled_state(model, q, v, keep, constraint_motion, seed=seed),)

    if output:
        with arguments_first(lambda: find(read())):
            check_output(output, force=force, endings=(".yaml", ".yml", ".csv"))

    from liedyn.analysis.recorded_robot import options_comment
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
        comments = options_comment(reading, Path() if output == "-" else Path(output).absolute().parent)
        assembly_report.write_assemblies(states, output, comments, force=force, as_list=find_all)
        console.file(output)


def _check_combination(**options: Any) -> None:
    """Raise click.UsageError for options that require or exclude others."""
    used = {name: value not in (None, False, ()) for name, value in options.items()}
    for name, other in (("searches", "all"), ("driven", "sweep"), ("no_limits", "sweep")):
        if used[name] and not used[other]:
            raise click.UsageError(f"--{name.replace('_', '-')} requires --{other}.")
    for name in ("all", "v"):
        if used["sweep"] and used[name]:
            raise click.UsageError(f"--sweep cannot be combined with --{name}.")


def _sweep(read: Callable[[], Model], text: str, driven: tuple[str, ...], q: tuple[str, ...], fixed: tuple[str, ...],    # noqa: PLR0913
           constraint_motion: tuple[str, ...], limits: bool, output: str | None, force: bool, as_json: bool,
           console: Console) -> None:
    """Write a sweep of a driver, with its plot."""
    from liedyn.io.atomic_output import check_output

    def find(model: Model) -> KinematicSweep:
        from liedyn.analysis.driver_sweep import sweep_of_texts
        return sweep_of_texts(model, text, driven, q, fixed, constraint_motion, limits=limits)

    if output and output != "-" and not output.lower().endswith(".csv"):
        raise click.UsageError(f"-o {output}: a sweep is written as CSV; give a name that ends in .csv.")
    if output:
        with arguments_first(lambda: find(read())):
            check_output(output, force=force)

    from liedyn.report import sweep_report

    model = read()
    console.robot(model)
    with console.progress.stage("sweeping"), warnings.catch_warnings():
        warnings.simplefilter("ignore", LiedynWarning)               # printed below
        result = find(model)
    console.message(sweep_report.sweep_text(result))
    console.warn(*sweep_report.sweep_warnings(result))
    if as_json:
        console.result_json(sweep_report.sweep_to_dict(result))
    if output:
        sweep_report.write_sweep(result, output, force=force)
        console.file(output, f"{len(result.positions)} rows")
    if output and output != "-":
        drawn = sweep_report.plot_sweep(result, output)
        console.files(drawn.paths)
        check_drawn(drawn.failures)
