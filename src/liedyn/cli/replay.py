from __future__ import annotations

import click

from liedyn.cli.console import with_console
from liedyn.cli.options import Existing, force_option, json_option, robot_option


@click.command(short_help="Write a motion as a 3D page for the browser.")
@click.argument("trajectory", metavar="TRAJECTORY_OR_RUNFOLDER", type=Existing(allow_dash=True))
@robot_option
@click.option("-o", "--output", type=click.Path(dir_okay=False), metavar="FILE.html",
              help="Page to write, `-` for stdout. Default: replay.html in the run folder, NAME_replay.html beside a CSV.")
@click.option("--against", multiple=True, type=Existing(), metavar="TRAJECTORY_OR_RUNFOLDER",
              help="Another run, drawn as a ghost at the same times; may be repeated.")
@click.option("--trace", "traces", multiple=True, metavar="LINK", help="Draw the path of this link; may be repeated.")
@click.option("--follow", metavar="LINK", default="", help="Let the camera follow this link.")
@click.option("--meshes", is_flag=True, help="Draw the meshes that the URDF names in <visual> (needs liedyn[meshes]).")
@click.option("--package-root", "roots", multiple=True, type=Existing(file_okay=False), metavar="FOLDER",
              help="Folder in which `package://` of meshes is looked for; may be repeated. Folders above the URDF and packages "
              "of ROS are found without it.")
@force_option
@json_option
@with_console
def replay(trajectory, robot, output, against, traces, follow, meshes, roots, force, as_json, console):
    """Write a motion as one HTML file: 3D with play, pause and a time slider, forces, traces, and plots linked to the time.

    The file works offline in any browser with WebGL 2. Opened as replay.html#t=1.5 it shows that time.

    \b
    Example:  liedyn replay runs/panda_hybrid --force
    Example:  liedyn replay runs/panda_hybrid --against runs/stiff --trace panda_hand -o compare.html
    """
    from liedyn.report.replay.page import replay_output, write_replay

    path = replay_output(trajectory, output)
    if as_json and path == "-":
        raise click.UsageError("-o - and --json both write to stdout.")
    with console.progress.stage("writing the page"):
        report, notes = write_replay(trajectory, robot, path, against=against, traces=traces, follow=follow,
                                     meshes=meshes or bool(roots), roots=roots, force=force)
    console.notes(notes)
    if as_json:
        console.result_json(report)
    if path != "-":
        console.wrote_file(path, f": {report['frames']} frames, {report['bytes'] / 1000:.0f} kB")
