"""The run folder of a simulation: trajectory.csv and run.json, written completely or not at all, then plots/ and replay.html."""
from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from liedyn import __version__
from liedyn.analysis.recorded_robot import MIMIC_IGNORED, options_comment
from liedyn.errors import ArgumentError, LiedynWarning, of_level, warn
from liedyn.io.atomic_output import open_folder
from liedyn.io.csv_table import Column, title_cell, write_table
from liedyn.io.recorded_paths import text_digest
from liedyn.io.scenarios.scenario import Pd, Scenario
from liedyn.io.scenarios.scenario_file import to_plain
from liedyn.io.trajectory_csv import MISSING, Trajectory, write_trajectory
from liedyn.report.plots.drawing import PlotProcess
from liedyn.report.plots.plot_data import FORMATS, PlotData, prescribed_comment, record
from liedyn.report.plots.saved_plots import SavedPlots, draw_beside, page_beside
from liedyn.report.replay.page import PAGE, replay_page
from liedyn.report.replay.scene import drawn_meshes
from liedyn.report.replay.sources import shown_result
from liedyn.robot_files import yaml_of
from liedyn.simulation.run import Result
from liedyn.simulation.sensors import Measurements
from liedyn.simulation.trajectory_columns import reaction_comment, trajectory_header

MARK = "run.json"                       # identifies a run folder
EVENTS, MEASUREMENTS = "events.csv", "measurements.csv"
MODEL = "model.yaml"                    # the simulated robot, which may differ from the robot file
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


def other_results(against: object) -> list[Result]:
    """Return the results with which one is compared. Raises ArgumentError if they are not a list of results."""
    if isinstance(against, Iterable) and not isinstance(against, str):
        results = list(against)
        if all(isinstance(result, Result) for result in results):
            return results
        against = next(result for result in results if not isinstance(result, Result))
    raise ArgumentError(f"against must be a list of Result, such as [run], got {type(against).__name__}")


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
