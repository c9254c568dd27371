from __future__ import annotations

import click

from liedyn.cli.console import check_drawn, with_console
from liedyn.cli.options import Existing, force_option, json_option, robot_option


@click.command(short_help="Plot a trajectory, a run folder or a batch.")
@click.argument("trajectory", metavar="TRAJECTORY_OR_FOLDER", type=Existing(allow_dash=True))
@robot_option
@click.option("-o", "--output", type=click.Path(file_okay=False), metavar="FOLDER",
              help="Folder for the pictures. Default: plots/ in the run folder, NAME_plots/ beside a CSV.")
@click.option("-f", "--format", "formats", multiple=True, type=click.Choice(["png", "svg", "pdf"]), default=("png", "svg"),
              show_default=True, help="File format; may be repeated.")
@click.option("--against", multiple=True, type=Existing(), metavar="TRAJECTORY_OR_RUNFOLDER",
              help="Another run of the same robot with `control`, to compare tracking errors; may be repeated.")
@with_console(force_option, json_option)
def plot(trajectory, robot, output, formats, against, force, as_json, console):
    """Plot a trajectory: positions, velocities and forces by joint, energy, base path, tracking errors, snapshots of the robot.

    For the folder of a batch: outputs against the varied values, their distributions and derivatives, and envelopes of
    trajectories.

    Joint limits and snapshots need the robot file; without it, only the columns are plotted.

    \b
    Example:  liedyn plot runs/panda_hybrid --force
    Example:  liedyn plot motion.csv --robot arm.urdf -f pdf -o figures
    """
    from pathlib import Path

    from liedyn.report.plot_folder import check_pictures, plot_trajectory, sources
    from liedyn.report.run_sources import is_batch

    if is_batch(trajectory):
        folder = Path(output or Path(trajectory, "plots"))
        check_pictures(folder, formats, force=force)
        if robot or against:
            raise click.UsageError("--robot and --against cannot be used with a batch.")
        from liedyn.report.batch_folder import plot_batch
        with console.progress.stage("drawing"):
            _tell(*plot_batch(trajectory, folder, formats), as_json, console)
        return
    csv, folder = sources(trajectory, output)
    check_pictures(folder, formats, force=force)
    with console.progress.stage("drawing"):
        written, notes = plot_trajectory(csv, robot, folder, formats, against)
    _tell(written, notes, as_json, console)


def _tell(written, notes, as_json, console):
    console.notes(notes)
    if as_json:
        console.result_json({"pictures": [str(path) for path in written.paths]})
    console.wrote(written.paths)
    check_drawn(written.failures)
