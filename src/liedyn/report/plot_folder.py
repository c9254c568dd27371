"""Pictures of a trajectory file or of a run folder."""
from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from liedyn.errors import InputError, UsageError
from liedyn.report.recording import (
    Recording,
    base_path_of_columns,
    energy_of_columns,
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
            raise UsageError(f"{path} is no run folder: it holds no trajectory.csv")
        return str(path / "trajectory.csv"), Path(output) if output else path / "plots"
    return trajectory, Path(output) if output else path.with_name(f"{path.stem}_plots")


def check_pictures(folder: Path, formats: Sequence[str], *, force: bool) -> None:
    """Refuse, before any work is done, a folder that holds pictures already (UsageError)."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; a folder is needed")
    if folder.is_dir() and not force and any(path.suffix[1:] in formats for path in folder.iterdir()):
        raise UsageError(f"{folder} holds pictures already; --force overwrites them")


def plot_trajectory(trajectory: str, robot: str | None, folder: Path,
                    formats: Sequence[str]) -> tuple[list[Path], tuple[str, ...]]:
    """Draw a trajectory file into `folder`; returns the pictures and notes about what could not be drawn.

    Pictures of the same names are replaced, all or none.
    """
    from liedyn.io.csv import read_trajectory
    from liedyn.report.figures import save_figures

    motion = read_trajectory(trajectory)
    recording, notes = _recording(motion, robot)
    if not (recording.groups or recording.energy or recording.base or recording.skeleton):
        raise UsageError(f"{trajectory} has nothing to draw: no column named q.…, v.…, a.…, tau.… or fext.…")
    above = next(p for p in folder.absolute().parents if p.is_dir())
    try:
        with tempfile.TemporaryDirectory(dir=above, prefix=".plots.") as part:
            drawn = save_figures(recording, part, formats)
            folder.mkdir(parents=True, exist_ok=True)
            for path in drawn:
                os.replace(path, folder / path.name)
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror or error}") from error
    return [folder / path.name for path in drawn], notes


def _recording(motion, robot: str | None) -> tuple[Recording, tuple[str, ...]]:
    """With the robot where there is one; a robot that is named only by the file may be missing or broken."""
    from liedyn.simulate.recorded import robot_of

    prescribed = prescribed_of_comments(motion.header)
    title = Path(motion.source).stem if motion.source != "-" else ""
    try:
        model, notes = robot_of(motion, robot)
    except (InputError, UsageError) as error:
        if robot is not None:
            raise
        columns = Recording(title, motion.t, groups_of_columns(motion.columns, motion.units, prescribed=prescribed),
                            energy_of_columns(motion.columns), base_path_of_columns(motion.columns),
                            drift=motion.columns.get("drift"))
        return columns, (f"limits and the motion itself are not drawn: {error}",)
    from liedyn.report.motion import record

    title = model.name if title == "trajectory" else f"{model.name}  {title}".strip()       # a run folder says nothing more
    return record(model, motion.t, motion.columns, motion.units, title=title, prescribed=prescribed), notes
