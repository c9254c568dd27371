"""Where the runs of a page come from: a simulation, a trajectory file or run folder, a batch."""
from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from liedyn.errors import Place, TrajectoryError, UsageError
from liedyn.io.output import STDIO
from liedyn.model.model import Model
from liedyn.report.run_sources import run_name, trajectory_file

if TYPE_CHECKING:
    from liedyn.simulation.run import Result

MOST_RUNS = 16          # of a batch in one page


@dataclass(frozen=True, eq=False)
class Shown:
    """A run to show: columns as in its trajectory file; marks (time, event, phase after it); phase: the first one's name."""

    name: str
    model: Model
    t: np.ndarray
    q: np.ndarray
    columns: Mapping[str, np.ndarray]
    units: Mapping[str, str]
    status: str = ""
    reason: str = ""
    phase: str = ""
    marks: tuple[tuple[float, str, str], ...] = ()
    contacts: Mapping = field(default_factory=dict)          # the key `contacts` of the scenario, as plain values
    notes: tuple[str, ...] = ()                              # what is told of the run where several stand beside each other


def shown_result(result: Result, name: str) -> Shown:
    """Of a simulation that has just ended."""
    from liedyn.io.scenarios.contact_keys import plain_contacts

    scenario = result.scenario
    return Shown(name, result.model, result.t, result.q, {column: x for column, _, x in result.columns},
                 {column: unit for column, unit, _ in result.columns}, result.status, result.reason,
                 scenario.phases[0].name if scenario.phases else "",
                 tuple((one.t, one.name, one.phase or "") for one in result.events),
                 plain_contacts(scenario.contacts) if scenario.contacts else {})


def shown_file(trajectory: str, robot: str | None) -> tuple[Shown, tuple[str, ...]]:
    """Of a trajectory file or run folder, and of what stands in this; with notes for the user.

    Raises TrajectoryError, ModelError, UsageError.
    """
    from liedyn.analyse.along.recorded_motion import positions_of
    from liedyn.analyse.along.robot_of_file import robot_of
    from liedyn.io.csv import read_trajectory

    trajectory = trajectory_file(trajectory)
    motion = read_trajectory(trajectory, events=True)
    model, notes = robot_of(motion, robot)
    path = Path(trajectory)
    told, marks = {}, ()
    if path.name == "trajectory.csv":
        told, marks = _run_json(path.with_name("run.json")), _marks(path.with_name("events.csv"))
    scenario = told.get("scenario", {})
    name = run_name(trajectory) if trajectory != STDIO else model.name
    run = Shown(name, model, motion.t, positions_of(model, motion), motion.columns, motion.units, told.get("status", ""),
                told.get("reason", ""), next(iter(scenario.get("phases", {})), ""), marks, scenario.get("contacts", {}))
    return run, notes


def shown_batch(folder: str, wanted: Sequence[str], progress: Callable[[float], None] = lambda share: None) -> list[Shown]:
    """Runs of a batch, computed again; `wanted` as `batch.rerun.chosen_runs` takes them. Raises UsageError."""
    from liedyn.batch.rerun import chosen_runs, rerun

    numbers = chosen_runs(folder, wanted)
    if len(numbers) > MOST_RUNS:
        raise UsageError(f"--runs names {len(numbers)} runs; a page shows {MOST_RUNS} at most")
    return [replace(shown_result(one.result, f"run {one.number}"), notes=one.varied) for one in rerun(folder, numbers, progress)]


def _run_json(path: Path) -> dict:
    """What a run folder tells of the run; nothing where it does not."""
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(told, dict) or not isinstance(told.get("scenario", {}), dict):
        return {}
    scenario = {key: x for key, x in told.get("scenario", {}).items() if key in ("phases", "contacts") and isinstance(x, dict)}
    return {key: str(told.get(key, "")) for key in ("status", "reason")} | {"scenario": scenario}


def _marks(path: Path) -> tuple[tuple[float, str, str], ...]:
    """Time, event and phase of each row of events.csv, which only runs with events have."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
    except FileNotFoundError:
        return ()
    marks = []
    for line, row in enumerate(rows[1:], start=2):
        try:
            marks.append((float(row[0]), row[1], row[2]))
        except (ValueError, IndexError):
            raise TrajectoryError("not a row of events", place=Place(str(path), line),
                                  expected="a time, an event and a phase, as simulate writes them") from None
    return tuple(marks)
