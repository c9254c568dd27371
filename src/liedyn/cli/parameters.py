from __future__ import annotations

import click

from liedyn.cli.console import with_console
from liedyn.cli.options import Existing, Smooth, base_option, force_option, json_option, robot_argument, strict_option


@click.command(short_help="List the identifiable parameters; estimate them from a recorded motion.")
@robot_argument
@click.option("--from", "trajectory", type=Existing(dir_okay=False, allow_dash=True), metavar="TRAJECTORY",
              help="Estimate them from this CSV of q and tau (v and a are derived where it has none).")
@click.option("--smooth", type=Smooth("auto", "none"), metavar="auto|SECONDS|none",
              help="How v and a are derived where TRAJECTORY has none: by least-squares splines with knots so far apart (auto, "
                   "the default: so that the estimated error is least), or by splines through every row (none).")
@click.option("--with", "joints", multiple=True, type=click.Choice(["armature", "damping", "friction", "stiffness", "none"]),
              help="Joint parameters to count among the parameters; may be repeated. Default: those that the robot file has.")
@click.option("--tolerance", type=click.FloatRange(0, 1, max_open=True), metavar="X",
              help="Pass over parameters that act X times as strongly as the strongest, or less. Default: 1e-10.")
@click.option("-o", "--output", type=click.Path(), help="CSV to write, `-` for stdout (in place of the table).")
@base_option
@strict_option
@force_option
@json_option
@with_console
def parameters(robot, trajectory, smooth, joints, tolerance, output, base, strict, force, as_json, console):
    """Show the base parameters of ROBOT: the combinations of masses, first moments (hx = m c) and second moments about a
    link's origin (Ixx …) that its forces depend on; and with --from their values as a recorded motion tells them.

    \b
    Example:  liedyn parameters robots/ur5.yaml
    Example:  liedyn simulate configs/ur5_excite.yaml
              liedyn parameters robots/ur5.yaml --from runs/ur5_excite/trajectory.csv --with friction --with damping
    Example:  liedyn parameters arm.urdf --from encoders.csv --smooth 0.2
    """
    from liedyn.io.output import check_output

    if smooth is not None and trajectory is None:
        raise click.UsageError("--smooth goes with --from.")
    if "none" in joints and len(joints) > 1:
        raise click.UsageError("--with none goes with no other --with.")
    if as_json and output == "-":
        raise click.UsageError("--json and a CSV cannot both go to stdout; name a file with -o.")
    if output:
        check_output(output, force=force)

    from liedyn.report.parameter_text import parameter_text, plain_parameters, weak_notes, write_parameters
    from liedyn.simulate.identify import parameters_of

    with console.progress.stage("computing (the first run compiles the kernels)"):
        found = parameters_of(robot, trajectory, base=base, strict=strict, joints=joints,
                              smooth=smooth or "auto", tolerance=tolerance)
    console.robot(found.model)
    console.notes([*found.notes, *weak_notes(found.base)])
    if output:
        write_parameters(output, found.base, found.fit, force=force)
    if as_json:
        console.result_json(plain_parameters(found.model, found.base, found.fit))
    elif output != "-":
        console.result(parameter_text(found.model, found.base, found.fit, whole=console.verbose))
    if output and output != "-":
        console.wrote_file(output, f": {len(found.base)} base parameters")
