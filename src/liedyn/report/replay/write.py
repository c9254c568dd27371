"""Runs to watch, written as a page, a video or a recording for other viewers."""
from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from liedyn.errors import UsageError
from liedyn.io.output import STDIO, check_output, open_output
from liedyn.report.replay.mcap_file import check_mcap, write_mcap
from liedyn.report.replay.page import PAGE, Look, data_of, replay_page
from liedyn.report.replay.sources import Shown, shown_batch, shown_file
from liedyn.report.replay.video import check_video, write_video
from liedyn.report.replay.visuals import hint_of_meshes, visuals_of
from liedyn.report.run_sources import is_batch


@dataclass(frozen=True)
class Source:
    """What is shown. trajectory: a file, a run folder, `-`, or the folder of a batch, of which `runs` are shown; against: more of
    them; robot: its file, None: the one that the trajectory names; meshes: whether those of the robot file are drawn, with
    `package://` looked for in the folders `roots`."""

    trajectory: str
    runs: Sequence[str] = ()
    robot: str | None = None
    against: Sequence[str] = ()
    meshes: bool = False
    roots: Sequence[str] = ()


@dataclass(frozen=True)
class Files:
    """What is written; None for what is not. size: pixels of the video, rate: its frames a second."""

    page: str | None
    video: str | None = None
    mcap: str | None = None
    size: tuple[int, int] = (1280, 720)
    rate: float = 30.0


def page_output(trajectory: str) -> str:
    """replay.html in a run folder, NAME_replay.html beside a CSV."""
    path = Path(trajectory)
    if trajectory == STDIO:
        return PAGE
    return str(path / PAGE if path.is_dir() else path.with_name(f"{path.stem}_replay.html"))


def _runs(source: Source, progress: Callable[[float], None]) -> tuple[list[Shown], list[str]]:
    """What is shown, and notes for the user."""
    if is_batch(source.trajectory):
        if source.robot or source.against:
            raise UsageError("--robot and --against cannot be used with a batch")
        return shown_batch(source.trajectory, source.runs, progress), []
    if source.runs:
        raise UsageError(f"--runs needs the folder of a batch; {source.trajectory} is not one")
    runs, notes = [], []
    for path in (source.trajectory, *source.against):
        run, more = shown_file(path, source.robot)
        runs.append(run)
        notes += more
    return runs, notes


def write_replay(source: Source, look: Look, files: Files, *, force: bool = False,
                 progress: Callable[[float], None] = lambda share: None) -> tuple[dict, tuple[str, ...]]:
    """Write what is wanted; returns a report of it, and notes for the user. progress: called with the share of a video so far.

    Raises UsageError before any work is done where something cannot be written.
    """
    if files.page is not None:
        check_output(files.page, force=force)
    if files.video is not None:
        check_video(files.video, force=force)
    if files.mcap is not None:
        check_mcap(files.mcap, force=force)
    runs, notes = _runs(source, progress)
    if source.meshes:
        visuals, more = visuals_of([run.model for run in runs], source.roots)
    else:
        visuals, more = None, hint_of_meshes(runs[0].model)
    notes += more
    if is_batch(source.trajectory):
        look = replace(look, title=Path(source.trajectory).absolute().name)
    text = replay_page(runs, look, visuals)
    report = {"robot": runs[0].model.name, "frames": data_of(text)["runs"][0]["t"]["rows"]}
    if files.page is not None:
        with open_output(files.page, force=force) as file:
            file.write(text)
        report |= {"file": os.fspath(files.page), "bytes": len(text.encode())}
    if files.mcap is not None:
        report |= {"mcap": os.fspath(files.mcap), "messages": write_mcap(runs, files.mcap, visuals, force=force)}
    if files.video is not None:
        count = write_video(text, files.video, size=files.size, rate=files.rate, speed=look.speed, force=force, progress=progress)
        report |= {"video": os.fspath(files.video), "video_frames": count}
    return report, tuple(notes)
