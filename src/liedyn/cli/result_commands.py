"""The commands `plot`, `replay` and `linearize`."""
from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from liedyn.cli.console import Console, arguments_first, check_drawn, with_console
from liedyn.cli.options import (
    FILE,
    IGNORE_MIMIC,
    Existing,
    bag_options,
    columns_option,
    force_option,
    ignore_mimic_option,
    json_option,
    live_option,
    meshes_option,
    override_option,
    reading_options,
    reading_overrides,
    robot_option,
    slider_option,
    strict_option,
)

if TYPE_CHECKING:                       # imports NumPy
    from liedyn.errors import LiedynWarning
    from liedyn.io.ros_bag import BagOptions
    from liedyn.report.plots.saved_plots import SavedPlots
    from liedyn.robot_files import ReadingOptions


def _comma_separated(_context: click.Context, _parameter: click.Parameter, text: str | None) -> tuple[str, ...]:
    """Return the names of a list such as 'a,b,c'."""
    names = tuple(name.strip() for name in (text or "").split(",") if name.strip())
    if text is not None and not names:
        raise click.BadParameter("expected names, separated by commas.")
    return names


_style_option = click.option(
    "--style", type=click.Choice(["screen", "paper"]), default="screen", show_default=True,
    help="paper: for print, with 8-point text, line patterns that stay distinct in grey, and no titles; PDF and SVG.")
_width_option = click.option(
    "--width", type=float, metavar="INCHES",
    help="Width of the figures, such as 3.5 or 7 for one or two columns of a page. Default: by the content, with --style paper "
    "3.5.")


@click.command(short_help="Plot trajectories, run folders or a batch.")
@click.argument("trajectories", metavar="TRAJECTORY_OR_FOLDER...", nargs=-1, required=True, type=Existing(allow_dash=True))
@robot_option
@columns_option
@bag_options
@click.option("-o", "--output", type=click.Path(file_okay=False), metavar="FOLDER",
              help="Folder for the plots. Default: plots/ in the run folder, NAME_plots/ next to a CSV, A_B_plots/ next to the "
              "first of several.")
@click.option("-f", "--format", "formats", multiple=True, type=click.Choice(["png", "svg", "pdf", "dxf"]),
              help="File format; may be repeated. Default: png and svg, with --style paper pdf and svg. dxf: for CAD programs, "
              "with --plane (needs liedyn[dxf]).")
@_style_option
@_width_option
@click.option("--joints", callback=_comma_separated, metavar="NAMES", help="Joints or links to draw: names or patterns, "
              "separated by commas, such as 'elbow,wrist*'.")
@click.option("--quantities", callback=_comma_separated, metavar="NAMES", help="Prefixes of columns, or names of figures, "
              "to draw, separated by commas, such as q,tau,energy. Default: all.")
@click.option("--from", "start", type=float, metavar="SECONDS", help="First time to draw.")
@click.option("--until", "end", type=float, metavar="SECONDS", help="Last time to draw.")
@click.option("--plane", type=click.Choice(["xy", "xz", "yz"]), default=None, help="Draw the mechanism to scale in this plane of "
              "the world; other plots only with --quantities.")
@click.option("--curve", "curves", multiple=True, metavar="LINK[:X,Y,Z]", help="With --plane: draw the path of the origin of "
              "this link, or of a point in its axes [m]; may be repeated.")
@click.option("--against", multiple=True, type=Existing(), metavar="TRAJECTORY_OR_FOLDER",
              help="Another run of the same robot with `control`, to compare tracking errors; may be repeated.")
@with_console(reading_options, force_option, json_option)
def plot(trajectories: tuple[str, ...], robot: str | None, columns: str | None, bag: BagOptions, output: str | None,  # noqa: PLR0913
         formats: tuple[str, ...], style: str, width: float | None, joints: tuple[str, ...], quantities: tuple[str, ...],
         start: float | None, end: float | None, plane: str | None, curves: tuple[str, ...], against: tuple[str, ...],
         reading: ReadingOptions, force: bool, as_json: bool, console: Console) -> None:
    """Plot a trajectory: positions, velocities and forces by joint, energy, base path, tracking errors, snapshots of the robot.

    Several trajectories or runs are compared: their curves share panels.

    For the folder of a batch, plot the outputs against the varied values, their distributions and derivatives, and envelopes of
    trajectories.

    Joint limits and snapshots need the robot file. Without it, only the columns are plotted.

    \b
    Examples:
      liedyn plot runs/panda_hybrid --force
      liedyn plot motion.csv --robot arm.urdf -f pdf -o figures
      liedyn plot runs/panda_hybrid --style paper --joints 'panda_joint[1-4]'
      liedyn plot runs/soft runs/stiff -o figures
      liedyn plot runs/four_bar --plane xz --curve foot -f pdf -f dxf
    """
    from liedyn.report.motion_plots import PlotOptions, check_no_plots, plot_trajectories, plots_folder, plotted_recording
    from liedyn.report.plots.palette import look_of
    from liedyn.report.replay.sources import is_batch

    if (curves or "dxf" in formats) and plane is None:
        raise click.UsageError("--curve and -f dxf require --plane.")
    if "dxf" in formats:
        from liedyn.report.plots.mechanism_drawing import check_dxf
        check_dxf()
    look = look_of(style, width)
    formats = formats or look.formats
    if any(is_batch(trajectory) for trajectory in trajectories):
        if len(trajectories) > 1 or robot or against or reading or joints or quantities or plane or (start, end) != (None, None):
            raise click.UsageError("--robot with its options, --against, --joints, --quantities, --from, --until, --plane and "
                                   "other runs cannot be combined with a batch.")
        if columns is not None or any(bag.values()):
            raise click.UsageError("--columns and options for ROS bags cannot be combined with a batch.")
        folder = Path(output or Path(trajectories[0], "plots"))
        check_no_plots(folder, formats, force=force)
        from liedyn.report.plots.batch_plots import plot_batch
        with console.progress.stage("drawing"):
            _report_plots(*plot_batch(trajectories[0], folder, formats, look), as_json, console)
        return
    folder = plots_folder(trajectories, output)
    options = PlotOptions(look, joints, quantities, start, end, against, plane or "", curves)
    with arguments_first(lambda: plotted_recording(trajectories, robot, options, columns=columns, bag=bag, reading=reading)):
        check_no_plots(folder, formats, force=force)
    with console.progress.stage("drawing"):
        written, warnings = plot_trajectories(trajectories, robot, folder, formats, options, columns=columns, bag=bag,
                                              reading=reading)
    if look.paper:
        for name, note in written.notes.items():
            console.message(f"{name}: {note}")
    _report_plots(written, warnings, as_json, console)


def _report_plots(written: SavedPlots, warnings: Sequence[LiedynWarning], as_json: bool, console: Console) -> None:
    console.warn(*warnings)
    if as_json:
        console.result_json({"plots": [str(path) for path in written.paths]})
    console.files(written.paths)
    check_drawn(written.failures)


# replay -----------------------------------------------------------------------------------------------------------------

def _size(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{2,4})x(\d{2,4})", text)
    if match is None or int(match[1]) % 2 or int(match[2]) % 2:
        raise click.BadParameter(f"expected WIDTHxHEIGHT in even numbers of pixels, such as 1280x720, got {text!r}.")
    return int(match[1]), int(match[2])


class _NamedFile(click.Path):
    """The file of an option that is easily taken for one without a value."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path. Raise click.BadParameter if the next option stands in its place."""
        if os.fspath(value).startswith("-"):
            self.fail(f"expected a file name, got '{value}'.", param, ctx)
        return super().convert(value, param, ctx)


@click.command(short_help="Write a motion as a 3D page for the browser, or as a video.")
@click.argument("trajectory", metavar="TRAJECTORY_OR_FOLDER", type=Existing(allow_dash=True))
@robot_option
@columns_option
@bag_options
@click.option("-o", "--output", type=click.Path(dir_okay=False), metavar="FILE.html",
              help="Page to write, `-` for stdout. Default: replay.html in the run folder, NAME_replay.html next to a CSV; none "
              "with --video and --mcap.")
@click.option("--against", multiple=True, type=Existing(), metavar="TRAJECTORY_OR_FOLDER",
              help="Another run, drawn as a ghost at the same times; may be repeated.")
@click.option("--runs", metavar="LIST", default="",
              help="Runs of a batch to show: numbers, ranges, min:OUTPUT, max:OUTPUT, such as 0,4-6,max:error. Default: four "
              "of them.")
@click.option("--side-by-side/--overlay", default=None, help="Show other runs next to the first one, or overlaid as ghosts. "
              "Default: next to each other for a batch, overlay with --against.")
@click.option("--trace", "traces", multiple=True, metavar="LINK", help="Draw the path of this link; may be repeated.")
@click.option("--follow", metavar="LINK", default="", help="Let the camera follow this link.")
@click.option("--speed", type=click.FloatRange(1e-3, 1e3), default=1.0, show_default=True, metavar="FACTOR",
              help="Playback speed: seconds of motion per second.")
@meshes_option
@click.option("--video", type=_NamedFile(dir_okay=False), metavar="FILE.mp4",
              help="Write a video: mp4, webm or gif. Needs Chromium or Chrome, and ffmpeg.")
@click.option("--size", type=_size, default="1280x720", show_default=True, metavar="WIDTHxHEIGHT",
              help="Size of the video in pixels.")
@click.option("--fps", type=click.FloatRange(1, 120), default=30.0, show_default=True, metavar="RATE",
              help="Frames per second of the video.")
@click.option("--mcap", type=_NamedFile(dir_okay=False), metavar="FILE.mcap",
              help="Write a recording for Foxglove (needs liedyn[mcap]).")
@live_option
@slider_option
@override_option(", with --live")
@with_console(reading_options, force_option, json_option)
def replay(trajectory: str, robot: str | None, columns: str | None, bag: BagOptions, output: str | None,         # noqa: PLR0913
           against: tuple[str, ...], runs: str, side_by_side: bool | None, traces: tuple[str, ...], follow: str, speed: float,
           meshes: bool | None, video: str | None, size: tuple[int, int], fps: float, mcap: str | None, live: bool,
           sliders: tuple[str, ...], overrides: tuple[str, ...], reading: ReadingOptions, force: bool, as_json: bool,
           console: Console) -> None:
    """Write a motion as one HTML file: a 3D view with playback controls, forces, traces, and plots linked to the time.

    The file works offline in any browser with WebGL 2. The address replay.html#t=1.5 shows the motion at 1.5 s. For the folder
    of a batch, some of its runs are simulated again and shown next to each other.

    With --live, the argument is a scenario or robot file, and the page simulates it in the browser: the mouse pulls links, and
    sliders change gravity, masses, gains, friction of contacts and constants.

    \b
    Examples:
      liedyn replay runs/panda_hybrid --force
      liedyn replay runs/panda_hybrid --against runs/stiff \\
          --trace panda_hand -o compare.html
      liedyn replay runs/panda_hybrid --video panda.mp4 --speed 0.5
      liedyn replay runs/panda_gains --runs min:error_rms,max:error_rms
      liedyn replay configs/panda_hybrid.yaml --live -o panda.html \\
          --slider mass.panda_hand=0.5:3
    """
    from liedyn.report.replay.page import ReplayOptions

    if live:
        for option, value in (("--robot", robot), ("--columns", columns), ("--against", against), ("--runs", runs),
                              ("--trace", traces), ("--video", video), ("--mcap", mcap)):
            if value:
                raise click.UsageError(f"{option} and --live cannot be combined.")
        console.live_page(trajectory, output, (*overrides, *reading_overrides(reading)), sliders=sliders, meshes=meshes,
                          look=ReplayOptions(follow=follow, speed=speed), package_roots=reading.get("package_roots", ()),
                          force=force, as_json=as_json)
        return
    for option, value in (("--slider", sliders), ("-S", overrides)):
        if value:
            raise click.UsageError(f"{option} requires --live.")
    from liedyn.report.replay.replay import check_outputs, page_output, shown_runs, write_replay
    from liedyn.report.replay.sources import is_batch

    page = output or (page_output(trajectory) if video is mcap is None else None)
    if as_json and page == "-":
        raise click.UsageError("-o - and --json cannot be combined: both write to stdout.")
    options = ReplayOptions("", traces, follow, is_batch(trajectory) if side_by_side is None else side_by_side, speed)
    choices, progress = [run for run in runs.split(",") if run], console.progress.update

    def check_arguments() -> None:
        displayed, _ = shown_runs(trajectory, choices, robot, columns, bag, reading, against, progress)
        options.check(displayed[0].model)

    with console.progress.stage("writing the page" if video is None else "drawing the video"):
        with arguments_first(check_arguments):
            check_outputs(page, video, mcap, force=force)
        report, warnings = write_replay(
            trajectory, options, choices=choices, robot=robot, columns=columns, bag=bag, reading=reading, against=against,
            meshes=meshes, page=page, video=video, mcap=mcap, size=size, rate=fps, force=force, progress=progress)
    console.warn(*warnings)
    if as_json:
        console.result_json(report)
    if page is not None:
        console.file(page, f"{report['frames']} frames, {report['bytes'] / 1000:.0f} kB")
    if mcap is not None:
        console.file(mcap, f"{report['messages']} messages")
    if video is not None:
        console.file(video, f"{report['video_frames']} frames")


# linearize --------------------------------------------------------------------------------------------------------------

def _weights(text: str, name: str) -> dict[str, float] | float:
    """Return the weights of --lqr: a number, or numbers by name or pattern."""
    try:
        if "=" not in text:
            return float(text)
        entries = (entry.rpartition("=") for entry in text.split(","))
        return {pattern.strip(): float(value) for pattern, _, value in entries}
    except ValueError:
        raise click.UsageError(f"--lqr: {name}: expected a number, or numbers by name such as 'q.*=10,v.*=1', got {text!r}") \
            from None


@click.command(short_help="Linearize a scenario at a time or about an equilibrium.")
@click.argument("scenario", metavar="SCENARIO_OR_ROBOT", type=FILE)
@click.option("--at", type=float, default=0.0, show_default=True, metavar="SECONDS",
              help="Simulate up to this time and linearize there.")
@click.option("--equilibrium", is_flag=True, help="Linearize about an equilibrium near the state at that time.")
@click.option("--fix", "hold", multiple=True, metavar="PATTERN", help="With --equilibrium: joints that keep their position, or "
              "actuators; the required forces or thrusts are computed. May be repeated.")
@click.option("--open-loop", is_flag=True, help="Omit the state feedback of torques, PD laws, wrenches and thrusts.")
@click.option("--inputs", multiple=True, metavar="PATTERN", help="Inputs, such as 'tau.*' or thrust.rotor1; may be repeated. "
              "Default: all.")
@click.option("--outputs", multiple=True, metavar="PATTERN", help="Outputs, such as 'q.*', v.elbow, 'a.*', 'tau.*', "
              "'p.hand.*' (position of a link); may be repeated. Default: 'q.*' and the forces of prescribed joints.")
@click.option("--independent", multiple=True, metavar="PATTERN", help="For a robot with loops: coordinates to use as states; "
              "may be repeated. The remaining ones are chosen automatically.")
@click.option("--step", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="Time step of the discretization. "
              "Default: the scenario's output_step.")
@click.option("--bode", is_flag=True, help="Write the frequency response of the outputs to the inputs, and draw it: "
              "magnitude and phase. At most 4 inputs and 6 outputs.")
@click.option("--lqr", nargs=2, metavar="Q R", help="Write K.csv, the gain of the regulator with these weights of the states "
              "and of the inputs: numbers by name or pattern, such as 'q.*=10,v.*=1', or one number for all.")
@click.option("--verify", is_flag=True, help="Compare with extrapolated finite differences; exit status 4 if they differ.")
@click.option("-o", "--output", type=click.Path(), metavar="FOLDER", help="Folder to write. Default: runs/NAME_linear.")
@override_option()
@click.option("--no-plots", is_flag=True, help="Do not draw plots.")
@_style_option
@_width_option
@with_console(ignore_mimic_option, reading_options, strict_option, force_option, json_option)
def linearize(scenario: str, at: float, equilibrium: bool, hold: tuple[str, ...], open_loop: bool,         # noqa: PLR0913
              inputs: tuple[str, ...], outputs: tuple[str, ...], independent: tuple[str, ...], step: float | None, bode: bool,
              lqr: tuple[str, str] | None, verify: bool, output: str | None, overrides: tuple[str, ...], no_plots: bool,
              style: str, width: float | None,
              ignore_mimic: bool, reading: ReadingOptions, strict: bool, force: bool, as_json: bool, console: Console) -> None:
    """Linearize a scenario about its motion or an equilibrium: dx/dt = A x + B u, y = C x + D u for small deviations.

    States are the deviations q.<joint> and v.<joint>. Inputs are the accelerations of prescribed joints, and additional forces
    and thrusts for all other joints and actuators.

    \b
    Examples:
      liedyn linearize configs/panda_hybrid.yaml --at 2.0
          # writes runs/panda_hybrid_linear/: A.csv … D.csv, Ad.csv, Bd.csv,
          # system.npz, linear.json, plots/
      liedyn linearize configs/cart_pole.yaml --equilibrium --open-loop \\
          --inputs tau.cart --verify
      liedyn linearize configs/cart_pole.yaml --equilibrium --open-loop \\
          --inputs tau.cart --bode
          # also frequency_response.csv, plots/bode.png, plots/bode.svg
      liedyn linearize robots/quadrotor.yaml --equilibrium --fix 'rotor*' \\
          --inputs 'thrust.*' --lqr 'q.*=20,v.*=2' 1
          # also K.csv, which `gain` of a scenario reads
    """
    from liedyn.io.atomic_output import check_folder, path_part, stem_of
    from liedyn.report.plots.palette import look_of

    look = look_of(style, width)
    overrides = (*overrides, *reading_overrides(reading), *((IGNORE_MIMIC,) if ignore_mimic else ()))
    if hold and not equilibrium:
        raise click.UsageError("--fix requires --equilibrium.")
    if output == "-":
        raise click.UsageError("The result is a folder; name one with -o, or use --json for a report on stdout.")
    folder = Path(output) if output else Path("runs", path_part(f"{stem_of(scenario)}_linear"))

    weights = None if lqr is None else [_weights(text, name) for text, name in zip(lqr, "QR", strict=True)]

    def check_arguments() -> None:
        from liedyn.analysis.linearize import check_linearization
        check_linearization(scenario, at=at, equilibrium=equilibrium, hold=hold, inputs=inputs or "*", outputs=outputs or None,
                            overrides=overrides, strict=strict)

    with arguments_first(check_arguments):
        check_folder(folder, mark="linear.json", force=force)

    from liedyn.analysis.linearize import linearize_scenario
    from liedyn.report.linearization_report import check, summary, text, write_linearization

    result = linearize_scenario(scenario, at=at, equilibrium=equilibrium, hold=hold, open_loop=open_loop, step=step,
                                inputs=inputs or "*", outputs=outputs or None, independent=independent, verify=verify,
                                overrides=overrides, strict=strict, progress=console.progress)
    console.robot(result.model)
    check(result)
    with console.issued_warnings():
        gain = None if weights is None else result.system.lqr(weights[0], weights[1])
    with console.progress.stage("writing results"), console.issued_warnings():
        written = write_linearization(result, folder, force=force, plots=not no_plots, look=look, formats=look.formats,
                                      bode=bode, gain=gain)
    console.warn(*result.warnings)
    console.report(as_json, summary(result, folder), text(result))
    console.timing(result.timing)
    console.files(written.paths)
    check_drawn(written.failures)
