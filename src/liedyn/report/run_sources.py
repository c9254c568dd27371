"""What a person names to be shown: a trajectory file, a run folder, the folder of a batch."""
from __future__ import annotations

from pathlib import Path

from liedyn.batch.store import MARK
from liedyn.errors import UsageError


def trajectory_file(source: str) -> str:
    """The trajectory of a run folder; a file, or `-`, is one itself. UsageError for a folder without one."""
    folder = Path(source)
    if not folder.is_dir():
        return source
    if not (folder / "trajectory.csv").is_file():
        raise UsageError(f"{folder} is not a run folder: it has no trajectory.csv")
    return str(folder / "trajectory.csv")


def run_name(trajectory: str) -> str:
    """Of a trajectory file: the name of its run folder, or its own."""
    path = Path(trajectory).absolute()
    return path.parent.name if path.name == "trajectory.csv" else path.stem


def is_batch(source: str) -> bool:
    return (Path(source) / MARK).is_file()
