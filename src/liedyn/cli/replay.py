from __future__ import annotations

import re

import click

from liedyn.cli.console import with_console
from liedyn.cli.options import Existing, force_option, json_option, robot_option


class _Size(click.ParamType):
    """WIDTHxHEIGHT."""

    name = "WIDTHxHEIGHT"

    def convert(self, value, param, ctx):
        found = re.fullmatch(r"(\d{2,4})x(\d{2,4})", value) if isinstance(value, str) else None
        if found is None or int(found[1]) % 2 or int(found[2]) % 2:
            self.fail(f"{value!r} is not a size in even numbers of pixels, such as 1280x720.", param, ctx)
        return int(found[1]), int(found[2])


@click.command(short_help="Write a motion as a 3D page for the browser, or as a video.")
@click.argument("trajectory", metavar="TRAJECTORY_OR_FOLDER", type=Existing(allow_dash=True))
@robot_option
@click.option("-o", "--output", type=click.Path(dir_okay=False), metavar="FILE.html",
              help="Page to write, `-` for stdout. Default: replay.html in the run folder, NAME_replay.html beside a CSV; none "
              "with --video and --mcap.")
@click.option("--against", multiple=True, type=Existing(), metavar="TRAJECTORY_OR_RUNFOLDER",
              help="Another run, drawn as a ghost at the same times; may be repeated.")
@click.option("--runs", metavar="LIST", default="",
              help="Runs of a batch to show: numbers, ranges, min:OUTPUT, max:OUTPUT, such as 0,4-6,max:error. Default: four "
              "of them.")
@click.option("--beside/--ghosts", default=None, help="Show other runs beside the first one, or as ghosts in the same place. "
              "Default: beside for a batch, ghosts with --against.")
@click.option("--trace", "traces", multiple=True, metavar="LINK", help="Draw the path of this link; may be repeated.")
@click.option("--follow", metavar="LINK", default="", help="Let the camera follow this link.")
@click.option("--speed", type=click.FloatRange(1e-3, 1e3), default=1.0, show_default=True, metavar="FACTOR",
              help="Playback speed: seconds of motion per second.")
@click.option("--meshes", is_flag=True, help="Draw the meshes that the URDF names in <visual> (needs liedyn[meshes]).")
@click.option("--package-root", "roots", multiple=True, type=Existing(file_okay=False), metavar="FOLDER",
              help="Folder in which to look for `package://` meshes; may be repeated. Folders above the URDF and ROS packages "
              "are found without it.")
@click.option("--video", type=click.Path(dir_okay=False), metavar="FILE.mp4",
              help="Write a video: mp4, webm or gif. Needs Chromium or Chrome, and ffmpeg.")
@click.option("--size", type=_Size(), default="1280x720", show_default=True, help="Size of the video in pixels.")
@click.option("--fps", type=click.FloatRange(1, 120), default=30.0, show_default=True, metavar="RATE",
              help="Frames per second of the video.")
@click.option("--mcap", type=click.Path(dir_okay=False), metavar="FILE.mcap",
              help="Write a recording for Foxglove (needs liedyn[mcap]).")
@with_console(force_option, json_option)
def replay(trajectory, robot, output, against, runs, beside, traces, follow, speed, meshes, roots, video, size, fps, mcap,
           force, as_json, console):
    """Write a motion as one HTML file: a 3D view with playback controls, forces, traces, and plots linked to the time.

    The file works offline in any browser with WebGL 2. Opened as replay.html#t=1.5, it shows that time. For the folder of a
    batch, some of its runs are simulated again and shown side by side.

    \b
    Example:  liedyn replay runs/panda_hybrid --force
    Example:  liedyn replay runs/panda_hybrid --against runs/stiff --trace panda_hand -o compare.html
    Example:  liedyn replay runs/panda_hybrid --video panda.mp4 --speed 0.5
    Example:  liedyn replay runs/panda_gains --runs min:error_rms,max:error_rms
    """
    from liedyn.report.replay.page import Look
    from liedyn.report.replay.write import Files, Source, page_output, write_replay
    from liedyn.report.run_sources import is_batch

    page = output or (page_output(trajectory) if video is mcap is None else None)
    if as_json and page == "-":
        raise click.UsageError("-o - and --json both write to stdout.")
    source = Source(trajectory, [one for one in runs.split(",") if one], robot, against, meshes or bool(roots), roots)
    beside = is_batch(trajectory) if beside is None else beside
    with console.progress.stage("writing the page" if video is None else "drawing the video"):
        look, files = Look("", traces, follow, beside, speed), Files(page, video, mcap, size, fps)
        report, notes = write_replay(source, look, files, force=force, progress=console.progress.update)
    console.notes(notes)
    if as_json:
        console.result_json(report)
    if page not in (None, "-"):
        console.wrote_file(page, f": {report['frames']} frames, {report['bytes'] / 1000:.0f} kB")
    if mcap is not None:
        console.wrote_file(mcap, f": {report['messages']} messages")
    if video is not None:
        console.wrote_file(video, f": {report['video_frames']} frames")
