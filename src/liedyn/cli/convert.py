from __future__ import annotations

from pathlib import Path

import click

from liedyn.cli.console import with_console
from liedyn.cli.options import base_option, force_option, json_option, loops_option, robot_argument


@click.command(short_help="Convert a robot file to URDF or robot YAML.")
@robot_argument
@click.option("-o", "--output", type=click.Path(), required=True, metavar="FILE", help="File to write, with the ending .urdf, "
              ".yaml or .yml; `-` for stdout.")
@click.option("--to", "format", type=click.Choice(["urdf", "yaml"]), help="Format for `-o -`.")
@click.option("--lossy", is_flag=True, help="Convert even if the format cannot describe the robot's dynamics; what it "
              "cannot describe is left out.")
@with_console(base_option, loops_option, force_option, json_option)
def convert(robot, output, format, lossy, base, loops, force, as_json, console):
    """Convert ROBOT, a URDF, YAML or MJCF file, to the format given by the ending of the output file.

    Numbers are preserved exactly, rotations up to rounding. What URDF cannot express is written in an equivalent form where there
    is one, and a note says so: a universal joint becomes two revolute joints with a massless link between them; loops and
    couplings go to a loops file beside the URDF. Springs, armatures, ball and helical joints, and a gravity other than the
    default would be lost: such a robot is refused without --lossy. Meshes and shapes of contacts are not written.

    \b
    Example:  liedyn convert robots/ur5.yaml -o ur5.urdf
    Example:  liedyn convert robot.urdf -o robot.yaml
    Example:  liedyn convert robots/hopper.xml -o hopper.yaml
    Example:  liedyn convert robots/four_bar.yaml -o four_bar.urdf       also writes four_bar.loops.yaml
    Example:  liedyn convert robots/asymmetric_body.yaml --base fixed -o - --to urdf
    """
    from liedyn.io.output import STDIO
    from liedyn.loading import load_description
    from liedyn.saving import convert as converted_to
    from liedyn.saving import format_of, write

    if (output == STDIO) != (format is not None):
        raise click.UsageError("--to is required with `-o -` and allowed only there: else the ending of FILE gives the format.")
    if output == STDIO and as_json:
        raise click.UsageError("`-o -` and --json would both write to stdout.")
    path = Path(output)
    description = load_description(robot, base, loops)
    done = converted_to(description, format, None) if format else converted_to(description, format_of(path), path.name)
    done.check(lossy=lossy, source=robot)
    console.notes(done.notes)
    if output == STDIO:
        console.write_text(output, done.text, force=force)
        return
    files = write(done, path, force=force)
    if as_json:
        console.result_json({"files": [str(file) for file in files], "format": done.format, "rewritten": list(done.rewritten),
                             "losses": [{"element": loss.element, "message": loss.message, "dynamics": loss.dynamics}
                                        for loss in done.losses]})
    console.wrote(files)
