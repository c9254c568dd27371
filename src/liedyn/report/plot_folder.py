"""Pictures of a trajectory file or of a run folder."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from liedyn.errors import InputError, UsageError
from liedyn.io.output import STDIO, told
from liedyn.report.pictures.beside_data import Written, drawn_into
from liedyn.report.pictures.picture_data import Followed, followed_of
from liedyn.report.run_sources import run_name, trajectory_file

if TYPE_CHECKING:
    from liedyn.io.csv import Trajectory


def sources(trajectory: str, output: str | None) -> tuple[str, Path]:
    """The CSV to draw and the folder for its pictures, for a CSV, a run folder or `-`."""
    path = Path(trajectory)
    beside = "plots" if trajectory == STDIO else path / "plots" if path.is_dir() else path.with_name(f"{path.stem}_plots")
    return trajectory_file(trajectory), Path(output or beside)


def check_pictures(folder: Path, formats: Sequence[str], *, force: bool) -> None:
    """Refuse, before any work is done, a folder that holds pictures already (UsageError)."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; a folder is needed")
    if folder.is_dir() and not force and any(path.suffix[1:] in formats for path in folder.iterdir()):
        raise UsageError(f"{folder} already contains pictures; --force overwrites them")


def plot_trajectory(trajectory: str, robot: str | None, folder: Path, formats: Sequence[str],
                    against: Sequence[str] = ()) -> tuple[Written, tuple[str, ...]]:
    """Draw a trajectory file into `folder`; returns the pictures and notes about what could not be drawn.

    Pictures of the same names are replaced when all are drawn; those that cannot be drawn cost no others. A robot that is named
    only by the file may be missing or broken. against: trajectory files or run folders whose tracking errors are drawn beside
    this one's.
    """
    from liedyn.analyse.along.robot_of_file import robot_of
    from liedyn.io.csv import read_trajectory
    from liedyn.report.pictures.all_pictures import save_figures
    from liedyn.report.pictures.motion_data import record

    motion = read_trajectory(trajectory, events=True)
    title = Path(trajectory).stem if trajectory != STDIO else ""
    try:
        model, notes = robot_of(motion, robot)
        title = model.name if title == "trajectory" else f"{model.name}  {title}".strip()       # a run folder says nothing more
    except (InputError, UsageError) as error:
        if robot is not None:
            raise
        model, notes = None, (f"limits and the motion itself are not drawn: {error}",)
    if motion.header.get("without"):
        title += f"  (without {motion.header['without']})"
    recording = record(motion, model, title)
    if against:
        runs = [motion, *(read_trajectory(trajectory_file(path), events=True) for path in against)]
        recording = replace(recording, tracking=_compared(runs))
    if not (recording.groups or recording.energy or recording.base or recording.skeleton or recording.tracking):
        raise UsageError(f"{trajectory} has nothing to plot: no column named q.…, v.…, a.…, tau.… or fext.…")
    with told(folder):
        return drawn_into(folder, lambda part: save_figures(recording, part, formats)), notes


def _compared(runs: Sequence[Trajectory]) -> tuple[Followed, ...]:
    """How each followed its references, labelled by their laws, or by their files where two have the same."""
    found = [followed_of(run) for run in runs]
    for run, followed in zip(runs, found, strict=True):
        if not followed or followed[0].joints.keys() != (found[0] or followed)[0].joints.keys():
            raise UsageError(f"{run.source} cannot be compared: its columns reference.… and link.… "
                             + ("are of other joints" if followed else "are missing: only runs with control have them"))
    labels = [one.label for one, in found]
    if len(set(labels)) < len(labels) or "" in labels:
        labels = [run_name(run.source) for run in runs]
    return tuple(replace(one, label=label) for (one,), label in zip(found, labels, strict=True))
