"""The run folder of a simulation: trajectory.csv and run.json, written completely or not at all, then plots/ and replay.html.

Also draws the plots one by one.
"""
from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from liedyn import __version__
from liedyn.analysis.recorded_motion import positions_of
from liedyn.analysis.recorded_robot import MIMIC_IGNORED, options_comment, robot_of
from liedyn.dynamics.constraints.kinematic_sweep import KinematicSweep
from liedyn.errors import InputError, LiedynWarning, NameLookupError, TrajectoryError, UsageError, list_names, of_level, warn
from liedyn.io.atomic_output import STDIO, open_folder, translate_os_errors
from liedyn.io.csv_table import Column, title_cell, write_table
from liedyn.io.recorded_paths import text_digest
from liedyn.io.ros_bag import BagOptions, is_bag
from liedyn.io.scenarios.scenario import Pd, Scenario
from liedyn.io.scenarios.scenario_file import to_plain
from liedyn.io.trajectory_csv import MISSING, Trajectory, read_trajectory, write_trajectory
from liedyn.report.plots.drawing import PlotProcess
from liedyn.report.plots.palette import PAPER_WIDTHS, SCREEN, Look
from liedyn.report.plots.plot_data import (
    FORMATS,
    PlotData,
    TrackedReferences,
    compare_runs,
    followed_of,
    prescribed_comment,
    record,
    select_quantities,
    select_times,
)
from liedyn.report.plots.rollout_plots import rollout_figures
from liedyn.report.plots.save_plots import SavedPlots, draw_beside, drawn_into, figures, page_beside, save_figures
from liedyn.report.plots.sweep_plot import draw_sweep
from liedyn.report.replay.page import PAGE, replay_page
from liedyn.report.replay.scene import drawn_meshes
from liedyn.report.replay.sources import marks_of_run, run_name, shown_result, trajectory_file
from liedyn.report.sweep_report import transmission_angles_of
from liedyn.robot_files import ReadingOptions, yaml_of
from liedyn.rollouts.rollout import Rollout
from liedyn.simulation.run import Result
from liedyn.simulation.sensors import Measurements
from liedyn.simulation.trajectory_columns import reaction_comment, trajectory_header

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARK = "run.json"                       # identifies a run folder
EVENTS, MEASUREMENTS = "events.csv", "measurements.csv"
MODEL = "model.yaml"                    # the simulated robot, which may differ from the robot file
NARROWEST, WIDEST = 1.5, 40.0           # inches: of figures
_MOST = 100_000                         # rows that are drawn; of longer runs every second, third, … row
_PACKAGES = ("numpy", "scipy", "numba", "matplotlib")


def write_run(result: Result, folder: str | Path, *, force: bool = False, plots: bool = True,
              plot_process: PlotProcess | None = None) -> SavedPlots:
    """Write a run folder: the CSV, run.json, the model as a robot YAML, the plots, the replay.

    Plots are drawn after the data are written. A plot that cannot be drawn does not end the run; the result contains the reason.

    Parameters
    ----------
    result : Result
    folder : path
        Created, including its parent folders.
    force : bool
        Whether an existing run folder is replaced.
    plots : bool
        Whether plots and replay.html are written.
    plot_process : PlotProcess, optional
        Draws in a separate process, as the command does.

    Returns
    -------
    Written
        The written files, and warnings.

    Raises
    ------
    UsageError
        Where the folder exists and `force` is not given, or cannot be written.

    Examples
    --------
    >>> run = ld.simulate("robots/double_pendulum.yaml", duration=0.1, q0=[0.3, 0.0])
    >>> written = ld.write_run(run, "runs/pendulum", plots=False)
    >>> ld.read_trajectory("runs/pendulum/trajectory.csv").source
    'runs/pendulum/trajectory.csv'
    """
    folder = Path(folder)
    with open_folder(folder, mark=MARK, force=force) as part:
        model = yaml_of(result.model)
        (part / MODEL).write_text(model, encoding="utf-8", newline="\n")
        header = trajectory_header(result.model, passive=result.scenario.passive, folder=os.path.abspath(folder)) \
            | {"model": MODEL, "model_sha256": text_digest(model.encode())}
        if result.scenario.package_roots:
            header |= options_comment({"package_roots": result.scenario.package_roots}, os.path.abspath(folder))
        write_trajectory(part / "trajectory.csv", header | _comments(result), result.t, result.columns)
        if result.has_events:
            write_events(part / EVENTS, result)
        if result.measurements is not None:
            write_measurements(part / MEASUREMENTS, result.measurements, header | _comments(result))
        (part / MARK).write_text(json.dumps(summary(result, folder), indent=2) + "\n", encoding="utf-8", newline="\n")
    optional = [EVENTS] * result.has_events + [MEASUREMENTS] * (result.measurements is not None)
    written = SavedPlots([folder / name for name in ("trajectory.csv", *optional, MARK)])
    if not plots:
        return written
    draw = (plot_process or PlotProcess(idle=True)).save_figures
    written += draw_beside(folder, lambda part: draw(recording_of(result), part, FORMATS))
    written += write_replay(result, folder)
    warn(LiedynWarning("not-drawn", f"{name} was not drawn: {why}") for name, why in written.failures.items())
    warn(of_level("warning", written.warnings))
    return written


def write_replay(result: Result, folder: Path) -> SavedPlots:
    """Write the replay of a run into its run folder, with the meshes that can be drawn, and messages about others."""
    def page() -> tuple[str, tuple[LiedynWarning, ...]]:
        visuals, warnings = drawn_meshes([result.model], ())
        return replay_page([shown_result(result, folder.absolute().name)], visuals=visuals), warnings
    return page_beside(folder / PAGE, page)


def figure_of(result: Result | Rollout | KinematicSweep, what: str = "positions", *, width: float | None = None,
              style: Literal["screen", "paper"] = "screen", joints: Sequence[str] = (),
              t: tuple[float, float] | None = None) -> Figure:
    """Return a Matplotlib figure of a simulated motion, of the runs of a rollout, or of a sweep of a driver.

    Parameters
    ----------
    result : Result, Rollout or KinematicSweep
    what : str
        motion, positions, velocities, torques, energy, …: the names of the files in the folder `plots` of a run. Of a rollout:
        positions, velocities, and if it has `forces` accelerations and torques. Of a sweep: positions, with mechanical advantages
        and transmission angles.
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
        For a width, a style, joints or times that cannot be drawn.

    Examples
    --------
    >>> run = ld.simulate("robots/double_pendulum.yaml", duration=0.1, q0=[0.3, 0.0])
    >>> ld.figure_of(run, "velocities").savefig("velocities.png")
    >>> ld.figure_of(run, "positions", width=3.5, style="paper", joints=["elbow"]).savefig("elbow.pdf")
    """
    look = look_of(style, width)
    if isinstance(result, Rollout | KinematicSweep) and (joints or t):
        kind = "rollout" if isinstance(result, Rollout) else "sweep"
        raise UsageError(f"joints and t are for the plot of one run, not of a {kind}")
    if isinstance(result, KinematicSweep):
        plots = {"positions": draw_sweep(result, transmission_angles_of(result)[0], look)}
    elif isinstance(result, Rollout):
        plots = rollout_figures(result, what, look)
    else:
        recording = select_times(recording_of(result), *(t or (None, None)))
        plots = figures(replace(select_quantities(recording, (), joints), look=look))
    if what not in plots:
        raise NameLookupError(f"unknown plot {what!r} of this motion: expected one of {', '.join(plots)}")
    return plots[what]


def look_of(style: str, width: float | None = None) -> Look:
    """Return the look of figures of a style and a width [inches]. Raise UsageError for one that does not exist."""
    if style not in ("screen", "paper"):
        raise UsageError(f"unknown style {style!r}: expected screen or paper")
    if width is not None and not NARROWEST <= width <= WIDEST:
        raise UsageError(f"the width of a figure must be {NARROWEST:g} to {WIDEST:g} inches, got {width!r}")
    return Look(width if width is not None or style == "screen" else PAPER_WIDTHS[0], style == "paper")


def status_of(folder: str | Path) -> str | None:
    """Return the status of the run in a folder: complete, diverged, interrupted; None if there is no run."""
    try:
        return str(json.loads((Path(folder) / MARK).read_text(encoding="utf-8")).get("status", "complete"))
    except (OSError, ValueError, AttributeError):
        return None


def write_events(path: Path, result: Result) -> None:
    """Write a CSV with a row for each event.

    Columns: time, name, next phase, energy lost by impulses, change of energy [J], then the jump of each velocity coordinate and
    its impulse.
    """
    model = result.model
    events = result.events
    dv, impulse = (np.array([getattr(event, key)[:model.nv] for event in events]).reshape(-1, model.nv)
                   for key in ("dv", "impulse"))
    times, lost, change = (np.array([getattr(event, key) for event in events], dtype=float) for key in ("t", "lost", "change"))
    columns: list[Column] = [
        ("t[s]", times), ("event", [event.name for event in events]), ("phase", [event.phase for event in events]),
        ("energy_lost[J]", lost), ("energy_change[J]", change),
        *((title_cell(f"dv.{name}", f"{unit}/s"), dv[:, k])
          for k, (name, unit) in enumerate(zip(model.v_names, model.v_units, strict=True))),
        *((title_cell(f"impulse.{name}", "N m s" if unit == "rad" else "N s"), impulse[:, k])
          for k, (name, unit) in enumerate(zip(model.tau_names, model.v_units, strict=True)))]
    with path.open("w", newline="", encoding="utf-8") as file:
        write_table(file, columns)


def write_measurements(path: Path, measurements: Measurements, header: Mapping[str, str]) -> None:
    """Write a trajectory file of the samples of all sensors. header: comments of the run."""
    missing = {MISSING: f"{measurements.missing} of {len(measurements.t)} rows"} if measurements.missing else {}
    comments = {key: text for key, text in header.items() if key != "events"} | missing
    write_trajectory(path, comments, measurements.t, measurements.columns)


def summary(result: Result, folder: str | Path | None = None) -> dict[str, Any]:
    """Return the content of run.json: the resolved scenario, versions, the self-check, statistics and timing."""
    statistics = result.statistics
    return {
        "liedyn": __version__,
        "python": platform.python_version(),
        "packages": {name: version(name) for name in _PACKAGES},
        "status": result.status,
        **({"reason": result.reason} if result.reason else {}),
        "robot": result.model.name,
        "scenario": to_plain(result.scenario, os.path.abspath(folder) if folder is not None else None),
        "coordinates": {"q": list(result.model.q_names), "v": list(result.model.v_names)},
        "robot_warnings": [warning.to_dict() for warning in result.model.warnings],
        "self_check": {name: value if math.isfinite(value) else None for name, value in result.check.items()},
        **({"events": len(result.events)} if result.has_events else {}),
        "limits": [asdict(excess) for excess in result.limits],
        **({"motors": energies} if (energies := result.motor_energies) else {}),
        "statistics": {"steps": statistics.steps, "rejected": statistics.rejected, "evaluations": statistics.evaluations},
        "seconds": {name: round(value, 4) for name, value in result.timing.items()},
        "warnings": [warning.to_dict() for warning in result.warnings],
    }


def recording_of(result: Result) -> PlotData:
    """Return the data for the plots of a simulation."""
    n = len(result.t)
    drawn = slice(None) if n <= _MOST else np.append(np.arange(0, n - 1, -(-n // _MOST)), n - 1)
    motion = Trajectory({"reaction": reaction_comment()} | _comments(result), result.t[drawn],
                        {name: x[drawn] for name, _, x in result.columns}, {name: unit for name, unit, _ in result.columns})
    phase = result.scenario.phases[0].name if result.scenario.phases else ""
    return replace(record(motion, result.model, result.model.name), phase=phase,
                   events=tuple((event.t, event.name, event.phase or "") for event in result.events))


def _comments(result: Result) -> dict[str, str]:
    """Return comments about the run for the trajectory file."""
    comments = prescribed_comment([name for name, prescribed in zip(result.model.v_names, result.prescribed, strict=True)
                                   if prescribed])
    comments |= {"mimic": MIMIC_IGNORED if result.scenario.ignore_mimic else "", "events": str(len(result.events) or ""),
                 "attached": result.attached, "final_changes": result.final_changes,
                 "armatures": json.dumps(result.armatures) if result.armatures else "", "control": _law(result.scenario)}
    return {key: text for key, text in comments.items() if text}


def _law(scenario: Scenario) -> str:
    """Return the name of the law that moves the joints; "" if there are only the laws of the joints."""
    if scenario.control is not None:
        return scenario.control.law
    if scenario.sampling is None:
        return ""
    return "pid" if any(isinstance(rule.value, Pd) and rule.value.ki is not None for rule in scenario.joints) else "pd"


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
        recording = compare_runs([each for each, _ in read], names)
        if not set.intersection(*({(group.name, s.joint) for group in each.groups for s in group.series} for each, _ in read)):
            warnings += (LiedynWarning("nothing-compared", f"the runs {list_names(names, 4)} have no joints in common: "
                                       "no panel compares them"),)
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
