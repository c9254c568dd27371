"""Pictures of a trajectory file or of a run folder."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from liedyn.errors import InputError, UsageError
from liedyn.io.output import told
from liedyn.report.pictures.beside_data import Written, drawn_into
from liedyn.report.pictures.picture_data import (
    Followed,
    Recording,
    base_path_of_columns,
    energy_of_columns,
    followed_of_columns,
    groups_of_columns,
    prescribed_of_comments,
)


def sources(trajectory: str, output: str | None) -> tuple[str, Path]:
    """The CSV to draw and the folder for its pictures, for a CSV, a run folder or `-`."""
    path = Path(trajectory)
    if trajectory == "-":
        return trajectory, Path(output or "plots")
    if path.is_dir():
        if not (path / "trajectory.csv").is_file():
            raise UsageError(f"{path} is not a run folder: it has no trajectory.csv")
        return str(path / "trajectory.csv"), Path(output) if output else path / "plots"
    return trajectory, Path(output) if output else path.with_name(f"{path.stem}_plots")


def check_pictures(folder: Path, formats: Sequence[str], *, force: bool) -> None:
    """Refuse, before any work is done, a folder that holds pictures already (UsageError)."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; a folder is needed")
    if folder.is_dir() and not force and any(path.suffix[1:] in formats for path in folder.iterdir()):
        raise UsageError(f"{folder} already contains pictures; --force overwrites them")


def plot_trajectory(trajectory: str, robot: str | None, folder: Path, formats: Sequence[str],
                    against: Sequence[str] = ()) -> tuple[Written, tuple[str, ...]]:
    """Draw a trajectory file into `folder`; returns the pictures and notes about what could not be drawn.

    Pictures of the same names are replaced when all are drawn; those that cannot be drawn cost no others. against: trajectory
    files or run folders whose tracking errors are drawn beside this one's.
    """
    from liedyn.io.csv import read_trajectory
    from liedyn.report.pictures.all_pictures import save_figures

    motion = read_trajectory(trajectory, events=True)
    recording, notes = _recording(motion, robot)
    recording = replace(recording, tracking=_tracking(motion, against))
    if not (recording.groups or recording.energy or recording.base or recording.skeleton or recording.tracking):
        raise UsageError(f"{trajectory} has nothing to plot: no column named q.…, v.…, a.…, tau.… or fext.…")
    with told(folder):
        return drawn_into(folder, lambda part: save_figures(recording, part, formats)), notes


def _tracking(motion, against: Sequence[str]) -> tuple[Followed, ...]:
    """Of this run and the others, labelled by their laws, or by their files where two have the same."""
    from liedyn.io.csv import read_trajectory

    runs = [motion, *(read_trajectory(sources(path, None)[0], events=True) for path in against)]
    found = [followed_of_columns(run.t, run.columns, run.units, run.header.get("control", "")) for run in runs]
    if not against:
        return found[0]
    for run, followed in zip(runs, found, strict=True):
        if not followed or followed[0].joints.keys() != (found[0] or followed)[0].joints.keys():
            raise UsageError(f"{run.source} cannot be compared: its columns reference.… and link.… "
                             + ("are of other joints" if followed else "are missing: only runs with control have them"))
    labels = [one.label for one, in found]
    if len(set(labels)) < len(labels) or "" in labels:
        labels = [_name(run.source) for run in runs]
    return tuple(replace(one, label=label) for (one,), label in zip(found, labels, strict=True))


def _name(source: str) -> str:
    path = Path(source).absolute()
    return path.parent.name if path.name == "trajectory.csv" else path.stem


def _recording(motion, robot: str | None) -> tuple[Recording, tuple[str, ...]]:
    """With the robot where there is one; a robot that is named only by the file may be missing or broken."""
    from liedyn.analyse.along.robot_of_file import robot_of

    prescribed = prescribed_of_comments(motion.header)
    title = Path(motion.source).stem if motion.source != "-" else ""
    try:
        model, notes = robot_of(motion, robot)
    except (InputError, UsageError) as error:
        if robot is not None:
            raise
        columns = Recording(title, motion.t, groups_of_columns(motion.columns, motion.units, prescribed=prescribed,
                                                                comments=motion.header),
                            energy_of_columns(motion.columns), base_path_of_columns(motion.columns),
                            drift=motion.columns.get("drift"))
        return columns, (f"limits and the motion itself are not drawn: {error}",)
    from liedyn.report.pictures.motion_data import record

    title = model.name if title == "trajectory" else f"{model.name}  {title}".strip()       # a run folder says nothing more
    recording = record(model, motion.t, motion.columns, motion.units, title=title, prescribed=prescribed, comments=motion.header)
    return recording, notes
