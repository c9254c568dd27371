"""The page of results in memory, and how notebooks show one."""
from __future__ import annotations

import html
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from liedyn.errors import LiedynWarning, UsageError
from liedyn.io.atomic_output import STDIO, check_output, open_output
from liedyn.io.ros_bag import BagOptions, is_bag
from liedyn.report.replay.mcap import check_mcap, write_mcap
from liedyn.report.replay.page import PAGE, ReplayOptions, data_of, replay_page
from liedyn.report.replay.scene import drawn_meshes
from liedyn.report.replay.sources import ReplayRun, is_batch, shown_batch, shown_file, shown_result, shown_rollout
from liedyn.report.replay.video import check_video, write_video
from liedyn.report.run_folder import other_results
from liedyn.robot_files import ReadingOptions
from liedyn.rollouts.rollout import Rollout
from liedyn.simulation.run import Result

_MOST = 4_000_000       # maximum number of characters shown inline, since a notebook stores them
_HEIGHT = 560           # pixels


def replay_of(result: Result | Rollout, *, against: Sequence[Result] = (), runs: Sequence[int] = (0,),  # noqa: PLR0913
              side_by_side: bool = False, traces: Sequence[str] = (),
              follow: str = "", speed: float = 1.0, meshes: bool | None = None, package_roots: Sequence[str] = (),
              inline: bool = False) -> str:
    """Return an HTML page that shows a simulated motion, or runs of a rollout, in 3D: offline, in any browser.

    It is that of `liedyn replay`.

    Parameters
    ----------
    result : Result or Rollout
    against : sequence of Result
        Other results, drawn as ghosts; not for a rollout.
    runs : sequence of int
        Indices of the runs of a rollout (flattened), at most 16; the others are drawn as ghosts of the first one.
    side_by_side : bool
        Whether the others are drawn next to the first one instead.
    traces : sequence of str
        Links of the first one whose paths are drawn.
    follow : str
        Link of the first one that the camera follows.
    speed : float
        Playback speed: seconds of motion per second.
    meshes : bool, optional
        Whether the meshes of the robot file are drawn; default: if the packages that read them are installed.
    package_roots : sequence of paths
        Further folders in which to look for ``package://`` meshes.
    inline : bool
        Whether the page is wrapped as a frame of another page, as in notebooks. If it exceeds 4 MB, the frame explains how to
        write it to a file.

    Returns
    -------
    str

    Raises
    ------
    NameLookupError
        For an unknown link.
    UsageError
        If there are no meshes, or the packages that read them are missing.

    Examples
    --------
    >>> run = ld.simulate("robots/double_pendulum.yaml", duration=0.1, q0=[0.3, 0.0])
    >>> page = ld.replay_of(run, traces=["tip"])
    >>> Path("replay.html").write_text(page, encoding="utf-8") > 10_000
    True
    """
    if isinstance(result, Rollout):
        if against:
            raise UsageError("against is for results; runs names the runs of a rollout")
        displayed = shown_rollout(result, runs)
    else:
        displayed = [shown_result(each_run, f"{each_run.model.name} {k}" if against else each_run.model.name)
                 for k, each_run in enumerate([result, *other_results(against)], start=1)]
    visuals, _ = drawn_meshes([each_run.model for each_run in displayed], package_roots, meshes)
    page = replay_page(displayed, ReplayOptions(result.model.name, tuple(traces), follow, side_by_side, speed), visuals)
    return _in_a_frame(page, result) if inline else page


def _in_a_frame(page: str, result: Result | Rollout) -> str:
    if len(page) > _MOST:
        return (f"<pre>{html.escape(repr(result))}</pre><p>Its replay takes {len(page) / 1e6:.0f} MB and is not shown here: "
                "<code>run.replay(\"replay.html\")</code> writes it.</p>")
    title = html.escape(repr(result), quote=True)
    return (f'<iframe srcdoc="{html.escape(page, quote=True)}" title="{title}" sandbox="allow-scripts allow-downloads" '
            f'width="100%" height="{_HEIGHT}" style="border: 1px solid #8885"></iframe>')


# Runs to watch, written as a page, a video or a recording for other viewers ---------------------------------------------

def page_output(trajectory: str) -> str:
    """Return the default output: replay.html in a run folder, NAME_replay.html next to a CSV."""
    path = Path(trajectory)
    if trajectory == STDIO:
        return PAGE
    if is_bag(path):
        return str(path.with_name(f"{path.name if path.is_dir() else path.stem}_replay.html"))
    return str(path / PAGE if path.is_dir() else path.with_name(f"{path.stem}_replay.html"))


def check_outputs(page: str | None, video: str | None, mcap: str | None, *, force: bool) -> None:
    """Raise UsageError if the page, the video or the recording cannot be written; None: is not written."""
    if page is not None:
        check_output(page, force=force)
    if video is not None:
        check_video(video, force=force)
    if mcap is not None:
        check_mcap(mcap, force=force)


def shown_runs(trajectory: str, choices: Sequence[str], robot: str | None, columns: str | None, bag: BagOptions | None,
               reading: ReadingOptions | None, against: Sequence[str],
               progress: Callable[[float], None]) -> tuple[list[ReplayRun], list[LiedynWarning]]:
    """Return the runs to show, and warnings for the user."""
    if is_batch(trajectory):
        if robot or against or (reading or {}).keys() - {"package_roots"}:
            raise UsageError("--robot with its options and --against cannot be combined with a batch")
        if columns is not None or any((bag or {}).values()):
            raise UsageError("--columns and options for ROS bags cannot be combined with a batch")
        return shown_batch(trajectory, choices, progress), []
    if choices:
        raise UsageError(f"--runs needs the folder of a batch; {trajectory} is not one")
    runs: list[ReplayRun] = []
    warnings: list[LiedynWarning] = []
    for path in (trajectory, *against):
        run, more = shown_file(path, robot, reading, *(columns, bag) if path == trajectory else ())
        runs.append(run)
        warnings += more
    return runs, warnings


def write_replay(trajectory: str, look: ReplayOptions, *, choices: Sequence[str], robot: str | None,       # noqa: PLR0913
                 columns: str | None = None, bag: BagOptions | None = None, reading: ReadingOptions | None = None,
                 against: Sequence[str], meshes: bool | None, page: str | None, video: str | None,
                 mcap: str | None, size: tuple[int, int], rate: float, force: bool,
                 progress: Callable[[float], None]) -> tuple[dict[str, Any], tuple[LiedynWarning, ...]]:
    """Write the page, video and recording whose names are not None. Return a report and warnings.

    Raises UsageError before any work is done if a file cannot be written.

    Parameters
    ----------
    trajectory : a file, a run folder, `-`, or the folder of a batch, of which the runs `choices` are shown
    robot : its file; None: the one that the trajectory names
    columns, bag : map of the columns of the trajectory, and how a ROS bag is read, as in `read_trajectory`; not of `against`
    reading : options of reading the robot file, with the folders in which `package://` meshes are searched
    against : more trajectories
    meshes : whether meshes of the robot file are drawn (None: if they can be)
    size, rate : pixels of the video, frames per second
    progress : called with the fraction of the video
    """
    check_outputs(page, video, mcap, force=force)
    runs, warnings = shown_runs(trajectory, choices, robot, columns, bag, reading, against, progress)
    visuals, more = drawn_meshes([run.model for run in runs], (reading or {}).get("package_roots", ()), meshes)
    if is_batch(trajectory):
        look = replace(look, title=Path(trajectory).absolute().name)
    text = replay_page(runs, look, visuals)
    report = {"robot": runs[0].model.name, "frames": data_of(text)["runs"][0]["t"]["rows"]}
    if page is not None:
        with open_output(page, force=force) as file:
            file.write(text)
        report |= {"file": os.fspath(page), "bytes": len(text.encode())}
    if mcap is not None:
        report |= {"mcap": os.fspath(mcap), "messages": write_mcap(runs, mcap, visuals, force=force)}
    if video is not None:
        count = write_video(text, video, size=size, rate=rate, speed=look.speed, force=force, progress=progress)
        report |= {"video": os.fspath(video), "video_frames": count}
    return report, (*warnings, *more)
