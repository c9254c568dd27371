"""Plots of motions: figures of results of Python, and files of plots of trajectories or run folders."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from liedyn.analysis.recorded_motion import positions_of
from liedyn.analysis.recorded_robot import robot_of
from liedyn.dynamics.constraints.kinematic_sweep import KinematicSweep
from liedyn.errors import InputError, LiedynWarning, NameLookupError, TrajectoryError, UsageError, list_names, warn
from liedyn.io.atomic_output import STDIO, translate_os_errors
from liedyn.io.ros_bag import BagOptions, is_bag
from liedyn.io.trajectory_csv import Trajectory, read_trajectory
from liedyn.report.plots.palette import SCREEN, Look, look_of
from liedyn.report.plots.plot_data import (
    PlotData,
    TrackedReferences,
    compare_runs,
    followed_of,
    record,
    select_quantities,
    select_times,
)
from liedyn.report.plots.rollout_plots import rollout_figures
from liedyn.report.plots.save_plots import figures, save_figures
from liedyn.report.plots.saved_plots import SavedPlots, drawn_into
from liedyn.report.plots.sweep_plot import draw_sweep
from liedyn.report.replay.sources import marks_of_run, run_name, trajectory_file
from liedyn.report.run_folder import other_results, recording_of
from liedyn.report.sweep_report import transmission_angles_of
from liedyn.robot_files import ReadingOptions
from liedyn.rollouts.rollout import Rollout
from liedyn.simulation.run import Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figure_of(result: Result | Rollout | KinematicSweep, what: str = "positions", *,
              against: Sequence[Result] = (), width: float | None = None, style: Literal["screen", "paper"] = "screen",
              joints: Sequence[str] = (), t: tuple[float, float] | None = None) -> Figure:
    """Return a Matplotlib figure of a simulated motion, of the runs of a rollout, or of a sweep of a driver.

    Parameters
    ----------
    result : Result, Rollout or KinematicSweep
    what : str
        motion, positions, velocities, torques, energy, …: the names of the files in the folder `plots` of a run. Of a rollout:
        positions, velocities, and if it has `forces` accelerations and torques. Of a sweep: positions, with mechanical advantages
        and transmission angles.
    against : list of Result, optional
        Other runs that are drawn in the same panels, numbered in this order.
    width : float, optional
        Width of the figure [inches], such as 3.5 or 7 for one or two columns of a page; panels and labels are arranged for it.
    style : "screen" or "paper"
        In a paper: 8 points, no title, and patterns of lines that survive grey print; 3.5 inches without `width`.
    joints : list of str, optional
        Names or patterns of the joints to draw.
    t : (float, float), optional
        First and last time to draw [s].

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    NameLookupError
        If the motion has no such plot.
    UsageError
        For a width, a style, joints, times or other runs that cannot be drawn.

    Examples
    --------
    >>> run = ld.simulate("robots/double_pendulum.yaml", duration=0.1, q0=[0.3, 0.0])
    >>> ld.figure_of(run, "velocities").savefig("velocities.png")
    >>> ld.figure_of(run, "positions", width=3.5, style="paper", joints=["elbow"]).savefig("elbow.pdf")
    """
    look = look_of(style, width)
    if isinstance(result, Rollout | KinematicSweep) and (joints or t or against):
        kind = "rollout" if isinstance(result, Rollout) else "sweep"
        raise UsageError(f"joints, t and against are for the plot of one run, not of a {kind}")
    if isinstance(result, KinematicSweep):
        plots = {"positions": draw_sweep(result, transmission_angles_of(result)[0], look)}
    elif isinstance(result, Rollout):
        plots = rollout_figures(result, what, look)
    else:
        recording = recording_of(result)
        if against:
            runs = [result, *other_results(against)]
            recording, warnings = _compare([recording_of(run) for run in runs],
                                           [f"{run.model.name} {k}" for k, run in enumerate(runs, 1)])
            warn(warnings)
        recording = select_times(recording, *(t or (None, None)))
        plots = figures(replace(select_quantities(recording, (), joints), look=look))
    if what not in plots:
        raise NameLookupError(f"unknown plot {what!r} of this motion: expected one of {', '.join(plots)}")
    return plots[what]


# Plots of a trajectory file or of a run folder -----------------------------------------------------------------------

def plots_folder(trajectories: Sequence[str], output: str | None) -> Path:
    """Return the folder for the plots of a CSV, a run folder or `-`, or of several that are compared."""
    path = Path(trajectories[0])
    if len(trajectories) > 1:
        default = path.with_name("_".join(run_name(trajectory_file(each)) for each in trajectories[:3]) + "_plots")
        return Path(output or default)
    default = (Path("plots") if trajectories[0] == STDIO else path / "plots" if path.is_dir() and not is_bag(path)
               else path.with_name(f"{path.name if path.is_dir() else path.stem}_plots"))
    return Path(output or default)


def check_no_plots(folder: Path, formats: Sequence[str], *, force: bool) -> None:
    """Raise UsageError before any work is done if the folder already contains plots and `force` is false."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file: expected a folder")
    if folder.is_dir() and not force and any(path.suffix[1:] in formats for path in folder.iterdir()):
        raise UsageError(f"{folder} already contains plots; --force overwrites them")


@dataclass(frozen=True)
class PlotOptions:
    """What of a motion is drawn, and how: see `plot_data.select_quantities` and `select_times`.

    against  trajectory files or run folders whose tracking errors are also drawn
    plane    of a planar mechanism, such as xz, which is then drawn to scale; curves: points such as "coupler:0.1,0,0"
    """

    look: Look = SCREEN
    joints: tuple[str, ...] = ()
    quantities: tuple[str, ...] = ()
    start: float | None = None
    end: float | None = None
    against: tuple[str, ...] = ()
    plane: str = ""
    curves: tuple[str, ...] = ()


def plot_trajectories(trajectories: Sequence[str], robot: str | None, folder: Path, formats: Sequence[str],
                      options: PlotOptions = PlotOptions(), *, columns: str | None = None, bag: BagOptions | None = None,
                      reading: ReadingOptions | None = None) -> tuple[SavedPlots, tuple[LiedynWarning, ...]]:
    """Draw the plots of a trajectory file into `folder`, or of several in the same panels. Return the plots and warnings.

    Plots of the same names are replaced after all are drawn. A plot that cannot be drawn does not prevent others. The other
    arguments are those of `plotted_recording`.
    """
    recording, warnings = plotted_recording(trajectories, robot, options, columns=columns, bag=bag, reading=reading)
    with translate_os_errors(folder):
        return drawn_into(folder, lambda part: save_figures(recording, part, formats)), warnings


def plotted_recording(trajectories: Sequence[str], robot: str | None, options: PlotOptions = PlotOptions(), *,
                      columns: str | None = None, bag: BagOptions | None = None,
                      reading: ReadingOptions | None = None) -> tuple[PlotData, tuple[LiedynWarning, ...]]:
    """Return what `options` draw of a trajectory file, or of several in the same panels, and warnings.

    If the robot is named in the trajectory file only, it may be missing or invalid. columns, bag: map of the columns of the first
    trajectory, and how a ROS bag is read, as in `read_trajectory`. reading: options of reading the robot file.
    """
    files = [trajectory_file(path) for path in trajectories]
    motions = [read_trajectory(files[0], columns=columns, **(bag or {})), *map(read_trajectory, files[1:])]
    read = [_recording(path, motion, robot, reading) for path, motion in zip(files, motions, strict=True)]
    warnings = tuple(warning for _, of_motion in read for warning in of_motion)
    recording = read[0][0]
    if len(read) > 1:
        names = _distinct_names(files)
        recording, of_comparison = _compare([each for each, _ in read], names)
        warnings += of_comparison
        followed = [followed_of(motion) for motion in motions]
        if all(followed) and len({tuple(references[0].joints) for references in followed}) == 1:
            recording = replace(recording, tracking=_compared(motions))
    if options.against:
        runs = [motions[0], *(read_trajectory(trajectory_file(path)) for path in options.against)]
        recording = replace(recording, tracking=_compared(runs))
    if options.plane:
        recording, more = _with_mechanism(recording, motions[0], robot, reading, options)
        warnings += more
    if not (recording.groups or recording.energy or recording.base or recording.skeleton or recording.tracking
            or recording.mechanism):
        raise UsageError(f"{trajectories[0]} has nothing to plot: no column named q.…, v.…, a.…, tau.… or fext.…")
    recording = select_times(recording, options.start, options.end)
    recording = select_quantities(recording, options.quantities, options.joints)
    return replace(recording, look=options.look), warnings


def _compare(recordings: Sequence[PlotData], names: Sequence[str]) -> tuple[PlotData, tuple[LiedynWarning, ...]]:
    """Return the plot data of several runs in the same panels, and a warning if they have no joints in common."""
    warnings: tuple[LiedynWarning, ...] = ()
    if not set.intersection(*({(group.name, s.joint) for group in each.groups for s in group.series} for each in recordings)):
        warnings = (LiedynWarning("nothing-compared", f"the runs {list_names(names, 4)} have no joints in common: "
                                  "no panel compares them"),)
    return compare_runs(recordings, names), warnings


def _with_mechanism(recording: PlotData, motion: Trajectory, robot: str | None, reading: ReadingOptions | None,
                    options: PlotOptions) -> tuple[PlotData, tuple[LiedynWarning, ...]]:
    """Return the plot data with a mechanism. Without names of quantities, it alone is drawn."""
    from liedyn.report.plots.mechanism_drawing import mechanism_of

    model, _ = robot_of(motion, robot, reading=reading)
    rows = (motion.t >= (-math.inf if options.start is None else options.start)) \
        & (motion.t <= (math.inf if options.end is None else options.end))
    if not rows.any():
        raise UsageError(f"no row between these times: the motion is from {motion.t[0]:g} to {motion.t[-1]:g} s")
    mechanism, warnings = mechanism_of(model, motion.t[rows], positions_of(model, motion)[rows], options.plane, options.curves)
    if not options.quantities:
        recording = PlotData(recording.title, motion.t, ())
    return replace(recording, mechanism=mechanism), warnings


def _distinct_names(files: Sequence[str]) -> list[str]:
    """Return names of runs that differ: of their folders or files, else their paths."""
    names = [run_name(path) for path in files]
    return names if len(set(names)) == len(names) else list(files)


def _recording(path: str, motion: Trajectory, robot: str | None,
               reading: ReadingOptions | None) -> tuple[PlotData, tuple[LiedynWarning, ...]]:
    """Return the plot data of a motion, and warnings about its robot."""
    title = Path(path).stem if path != STDIO else ""
    try:
        model, warnings = robot_of(motion, robot, reading=reading)
        title = model.name if title == "trajectory" else f"{model.name}  {title}".strip()        # a run folder needs no more
    except (InputError, UsageError) as error:
        if robot is not None or reading or (motion.mapping is not None and isinstance(error, TrajectoryError)):
            raise
        not_drawn = LiedynWarning("not-drawn", f"limits and the motion itself are not drawn: {error}")
        model, warnings = None, (*motion.warnings, not_drawn)
    if motion.header.get("without"):
        title += f"  (without {motion.header['without']})"
    phase, events = marks_of_run(path)
    return replace(record(motion, model, title), phase=phase, events=events), warnings


def _compared(runs: Sequence[Trajectory]) -> tuple[TrackedReferences, ...]:
    """Return the tracking errors of each run, labelled by their laws, or by their files if two laws are equal."""
    references = [followed_of(run) for run in runs]
    for run, followed in zip(runs, references, strict=True):
        if not followed or followed[0].joints.keys() != (references[0] or followed)[0].joints.keys():
            raise UsageError(f"{run.source} cannot be compared: its columns reference.… and link.… "
                             + ("are of other joints" if followed else "are missing: only runs with control have them"))
    labels = [reference.label for reference, in references]
    if len(set(labels)) < len(labels) or "" in labels:
        labels = [run_name(run.source or STDIO) for run in runs]
    return tuple(replace(reference, label=label) for (reference,), label in zip(references, labels, strict=True))
