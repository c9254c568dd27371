from __future__ import annotations

import click

from liedyn.cli.console import with_console
from liedyn.cli.options import FILE_OR_STDIN, Smooth, base_option, force_option, json_option, robot_argument, strict_option


@click.command(short_help="List the identifiable parameters; estimate them from a recorded motion.")
@robot_argument
@click.option("--from", "trajectory", type=FILE_OR_STDIN, metavar="TRAJECTORY",
              help="Estimate the parameters from this CSV of q and tau (and v and a if it has them).")
@click.option("--smooth", type=Smooth("auto", "none"), metavar="auto|SECONDS|none",
              help="How to compute v and a if TRAJECTORY has none: with least-squares splines of this knot spacing (auto, the "
                   "default: the one with the smallest estimated error), or with splines through every row (none).")
@click.option("--with", "joints", multiple=True, type=click.Choice(["armature", "damping", "friction", "stiffness", "none"]),
              help="Joint parameters to include; may be repeated. Default: those that the robot file has.")
@click.option("--offset/--no-offset", default=True, show_default=True,
              help="Also estimate a constant torque of each joint (with --from).")
@click.option("--tolerance", type=click.FloatRange(0, 1, max_open=True), metavar="X",
              help="Ignore parameters whose effect relative to the strongest one is below X. Default: 1e-10.")
@click.option("-o", "--output", type=click.Path(),
              help="CSV to write in addition to the table; `-` writes the CSV to stdout instead of the table.")
@with_console(base_option, strict_option, force_option, json_option)
def parameters(robot, trajectory, smooth, joints, offset, tolerance, output, base, strict, force, as_json, console):
    """List the base parameters of ROBOT: the identifiable combinations of masses, first moments of mass (hx = m c_x) and second
    moments about the link's origin (Ixx, …). With --from, estimate them from a recorded motion.

    \b
    Example:  liedyn parameters robots/ur5.yaml
    Example:  liedyn simulate configs/ur5_excite.yaml
              liedyn parameters robots/ur5.yaml --from runs/ur5_excite/trajectory.csv --with friction --with damping
    Example:  liedyn parameters arm.urdf --from encoders.csv --smooth 0.2
    """
    from liedyn.io.output import check_output

    if smooth is not None and trajectory is None:
        raise click.UsageError("--smooth requires --from.")
    if "none" in joints and len(joints) > 1:
        raise click.UsageError("--with none cannot be combined with another --with.")
    if as_json and output == "-":
        raise click.UsageError("--json and a CSV cannot both go to stdout; name a file with -o.")
    if output:
        check_output(output, force=force)

    from liedyn.analyse.identification.identify import parameters_of
    from liedyn.code_cache import FIRST_RUN
    from liedyn.report.texts.parameter_text import parameter_text, plain_parameters, weak_notes, write_parameters

    with console.progress.stage(f"computing ({FIRST_RUN})"):
        found = parameters_of(robot, trajectory, base=base, strict=strict, joints=joints, offset=offset,
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
