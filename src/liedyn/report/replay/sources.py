"""Runs to show in a page, from a simulation, a trajectory file, a run folder or a batch."""
from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from liedyn.analysis.recorded_motion import positions_of
from liedyn.analysis.recorded_robot import robot_of
from liedyn.batch.result_store import MARK
from liedyn.errors import LiedynWarning, TrajectoryError, UsageError
from liedyn.io.atomic_output import STDIO
from liedyn.io.csv_table import name_in_cell, read_table
from liedyn.io.ros_bag import BagOptions, is_bag
from liedyn.io.scenarios.scenario_file import to_plain
from liedyn.io.trajectory_csv import LARGEST_TRAJECTORY, read_trajectory
from liedyn.model.description import WORLD
from liedyn.model.model import Model
from liedyn.model.name_patterns import matching_names
from liedyn.model.spatial import matvec
from liedyn.robot_files import ReadingOptions
from liedyn.simulation.trajectory_columns import WRENCH, column_units, motion_columns, with_current_names

# Sources named by the user: a trajectory file, a run folder, the folder of a batch ---------------------------------------

def trajectory_file(source: str) -> str:
    """Return the trajectory of a run folder; a file, a ROS bag and `-` are returned unchanged.

    Raises UsageError for another folder.
    """
    folder = Path(source)
    if not folder.is_dir() or is_bag(folder):
        return source
    if not (folder / "trajectory.csv").is_file():
        raise UsageError(f"{folder} is not a run folder: it has no trajectory.csv")
    return str(folder / "trajectory.csv")


def run_name(trajectory: str) -> str:
    """Return the name of a run: that of its run folder, or that of its trajectory file."""
    path = Path(trajectory).absolute()
    return path.parent.name if path.name == "trajectory.csv" else path.stem


def is_batch(source: str) -> bool:
    """Return whether `source` is the folder of a batch."""
    return (Path(source) / MARK).is_file()


# sources ----------------------------------------------------------------------------------------------------------------

if TYPE_CHECKING:
    from liedyn.rollouts.rollout import Rollout
    from liedyn.simulation.run import Result

SCENERY = ("phases", "contacts", "control", "joints", "events")                 # keys of a scenario that are drawn
MOST_RUNS = 16          # maximum number of runs of a batch in one page


@dataclass(frozen=True, eq=False)
class ReplayRun:
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
    scenario: Mapping[str, Any] = field(default_factory=dict)          # keys SCENERY of the scenario, as plain values
    varied: tuple[str, ...] = ()        # label of the run if several are shown next to each other
    mechanism: Mapping[str, Any] | None = None          # of a robot whose joints are moved in the page: see `mechanism`
    live: Mapping[str, Any] | None = None               # of a robot that is simulated in the page: see `live`


def shown_result(result: Result, name: str) -> ReplayRun:
    """Return the run of a simulation."""
    scenario = result.scenario
    return ReplayRun(name, result.model, result.t, result.q, {column: x for column, _, x in result.columns},
                 {column: unit for column, unit, _ in result.columns}, result.status, result.reason,
                 scenario.phases[0].name if scenario.phases else "",
                 tuple((event.t, event.name, event.phase or "") for event in result.events),
                 scenery_keys(to_plain(scenario)))


def shown_rollout(runs: Rollout, choices: Sequence[int]) -> list[ReplayRun]:
    """Return runs of a rollout by their indices, up to their ends. Raise UsageError for none, too many, or an unknown index."""
    count, shape = runs.ended_at.size, runs.ended_at.shape
    if not 0 < len(choices) <= MOST_RUNS:
        raise UsageError(f"runs must name 1 to {MOST_RUNS} runs, got {len(choices)}")
    displayed = []
    for k in choices:
        if not 0 <= k < count:
            raise UsageError(f"there is no run {k}; the rollout has {count} runs{f', from 0 to {count - 1}' if count else ''}")
        arrays = {"q": runs.q, "v": runs.v, "a": runs.a, "tau": runs.tau}
        motion = {kind: x.reshape(count, len(runs.t), -1)[k] for kind, x in arrays.items() if x is not None}
        rows = np.isfinite(motion["q"]).all(axis=1)
        model = runs.variants.robot(int(np.unravel_index(k, shape)[-1])) if runs.variants else runs.model
        columns = motion_columns(model, **{kind: x[rows] for kind, x in motion.items()})
        name = model.name if count == 1 else f"run {k}"
        displayed.append(ReplayRun(name, model, runs.t[rows], motion["q"][rows], {column: x for column, _, x in columns},
                                   {column: unit for column, unit, _ in columns}, "diverged" if k in runs.reasons else "complete",
                                   runs.reasons.get(k, "")))
    return displayed


def shown_file(trajectory: str, robot: str | None, reading: ReadingOptions | None = None, columns: str | None = None,
               bag: BagOptions | None = None) -> tuple[ReplayRun, tuple[LiedynWarning, ...]]:
    """Return the run of a trajectory file or run folder, and warnings for the user.

    columns, bag: map of the columns of the file, and how a ROS bag is read, as in `read_trajectory`.
    reading: options of reading the robot file.
    Raises TrajectoryError, ModelError, UsageError.
    """
    trajectory = trajectory_file(trajectory)
    motion = read_trajectory(trajectory, columns=columns, **(bag or {}))
    model, warnings = robot_of(motion, robot, reading=reading)
    motion = with_current_names(model, motion)
    path = Path(trajectory)
    report: dict[str, Any] = _run_json(path.with_name("run.json")) if path.name == "trajectory.csv" else {}
    phase, marks = marks_of_run(trajectory)
    scenario = report.get("scenario", {})
    name = run_name(trajectory) if trajectory != STDIO else model.name
    run = ReplayRun(name, model, motion.t, positions_of(model, motion), motion.columns, column_units(model, motion),
                    report.get("status", ""), report.get("reason", ""), phase, marks, scenario)
    return run, warnings


def shown_batch(folder: str, choices: Sequence[str], progress: Callable[[float], None]) -> list[ReplayRun]:
    """Return runs of a batch, simulated again. Raise UsageError for invalid names.

    choices: as for `batch.run_batch.select_runs`.
    """
    from liedyn.batch.run_batch import rerun, select_runs

    run_numbers = select_runs(folder, choices)
    if len(run_numbers) > MOST_RUNS:
        raise UsageError(f"--runs names {len(run_numbers)} runs; the maximum of a page is {MOST_RUNS}")
    return [replace(shown_result(run.result, f"run {run.number}"), varied=run.varied)
            for run in rerun(folder, run_numbers, progress)]


def marks_of_run(trajectory: str) -> tuple[str, tuple[tuple[float, str, str], ...]]:
    """Return the first phase of the run that a trajectory file belongs to, and its events; nothing for another file."""
    path = Path(trajectory)
    if path.name != "trajectory.csv":
        return "", ()
    phases = _run_json(path.with_name("run.json")).get("scenario", {}).get("phases", {})
    return next(iter(phases), ""), read_event_marks(path.with_name("events.csv"))


def _run_json(path: Path) -> dict[str, Any]:
    """Return the content of run.json; empty if there is none."""
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(report, dict) or not isinstance(report.get("scenario", {}), dict):
        return {}
    scenario = scenery_keys(report.get("scenario", {}))
    return {key: str(report.get(key, "")) for key in ("status", "reason")} | {"scenario": scenario}


def scenery_keys(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a scenario that are drawn."""
    return {key: scenario[key] for key in SCENERY if isinstance(scenario.get(key), dict)}


def read_event_marks(path: Path) -> tuple[tuple[float, str, str], ...]:
    """Return time, event and phase of each row of events.csv, which exists only for runs with events."""
    if not path.exists() or not path.stat().st_size:
        return ()
    table, marks = read_table(str(path), TrajectoryError, largest=LARGEST_TRAJECTORY), []
    for line, cells in table.cells():
        if len(cells) < 3:
            raise TrajectoryError("not a row of events", place=table.place(line),
                                  expected="a time, an event and a phase, as simulate writes them")
        marks.append((table.number(line, "t", cells[0]), name_in_cell(cells[1]), name_in_cell(cells[2])))
    return tuple(marks)


# Wrenches of a run as arrows in the world: forces at points on their lines of action, moments, reactions of loops -------

_NO_FORCE = 1e-12       # of the maximum force of a run: a smaller one has no axis
_SMALL = 1e-3           # in forces times sizes of the robot: smaller residual moments are not drawn


def arrows_of(run: ReplayRun, rows: np.ndarray, T: np.ndarray, size: float) -> tuple[list[dict[str, Any]], np.ndarray]:
    """Return names, links and kinds (force, contact, moment, reaction) of n arrows, and an array (F, 6 n) in the world.

    The array holds the feet [m] and vectors [N | N m]. A wrench is drawn as its force on its central axis, where its moment is
    smallest, and that moment. If the axis is far from the robot, the force is small compared with the moment, and is drawn at the
    link's origin.
    T: (F, n_links, 4, 4) poses of the links at the rows `rows`.
    """
    names, arrays = [], []

    def add(name: str, link: str, kind: str, foot: np.ndarray, vector: np.ndarray) -> None:
        names.append({"name": name, "link": link, "kind": kind})
        arrays.append(np.concatenate([foot, vector], axis=1))

    for link in run.model.link_names:
        wrench = _wrench(run.columns, f"fext.{link}", rows)
        if wrench is None or not wrench.any():
            continue
        R, at = T[:, run.model.link_index(link), :3, :3], T[:, run.model.link_index(link), :3, 3]
        m, f = wrench[:, :3], wrench[:, 3:]
        foot, moment = _reduced(m, f, _touching(run, link), size)
        if f.any():
            kind = "contact" if f"contact.{link}.force" in run.columns else "force"
            add(link, link, kind, at + matvec(R, foot), matvec(R, f))
        if np.abs(moment).max() > _SMALL * size * np.abs(f).max():
            add(link, link, "moment", at, matvec(R, moment))
    for loop in run.model.description.loops:
        wrench = _wrench(run.columns, f"reaction.{loop.name}", rows)
        if wrench is not None and wrench[:, 3:].any():
            pose = np.eye(4) if loop.b == WORLD else T[:, run.model.link_index(loop.b)]
            foot = pose[..., :3, :3] @ np.array(loop.pose_b.translation) + pose[..., :3, 3]
            add(loop.name, "" if loop.b == WORLD else loop.b, "reaction", np.broadcast_to(foot, (len(rows), 3)), wrench[:, 3:])
    return names, np.concatenate(arrays, axis=1) if arrays else np.zeros((len(rows), 0))


def _reduced(m: np.ndarray, f: np.ndarray, near: np.ndarray, size: float) -> tuple[np.ndarray, np.ndarray]:
    """Return points (F, 3) on the central axes of wrenches, in the link, and the moments about them.

    Each point is nearest to the one of the points `near` (n, 3) to which the axis is closest.
    """
    square = np.maximum(np.einsum("fi,fi->f", f, f), 1e-300)[:, None]
    axis = np.cross(f, m) / square
    away = near[None] - axis[:, None]                       # (F, n, 3)
    along = np.einsum("fni,fi->fn", away, f) / square
    distance = np.linalg.norm(away - along[..., None] * f[:, None], axis=2)
    foot = axis + np.take_along_axis(along, distance.argmin(axis=1)[:, None], axis=1) * f
    foot[(np.linalg.norm(foot, axis=1) > size) | (square[:, 0] < _NO_FORCE**2 * float(square.max()))] = 0.0
    return foot, m - np.cross(foot, f)


def _touching(run: ReplayRun, link: str) -> np.ndarray:
    """Return centres (n, 3) of the contact shapes of a link and of links welded to it, in the link; its origin if there are none.

    Arrows of contacts begin near them.
    """
    model, k, points = run.model, run.model.link_index(link), []
    for pattern, shapes in ((run.scenario.get("contacts") or {}).get("links") or {}).items():
        for link_name in matching_names(pattern, model.link_names):
            j = model.link_index(link_name)
            if model.link_body[j] == model.link_body[k]:
                pose = np.linalg.solve(model.link_pose[k], model.link_pose[j])
                points += [(pose @ [*shape.get("at", shape.get("point", (0.0, 0.0, 0.0))), 1.0])[:3]
                           for shape in (shapes if isinstance(shapes, list) else [shapes])]
    return np.array(points or [np.zeros(3)], dtype=float)


def _wrench(columns: Mapping[str, np.ndarray], name: str, rows: np.ndarray) -> np.ndarray | None:
    """Return the columns (F, 6) of a wrench; missing components are zero. Return None if the file has none of them."""
    parts = [columns.get(f"{name}.{part}") for part in WRENCH]
    if all(x is None for x in parts):
        return None
    return np.column_stack([np.zeros(len(rows)) if x is None else np.asarray(x)[rows] for x in parts])
