"""The page itself: a template, the scripts and the runs in one HTML file that fetches nothing."""
from __future__ import annotations

import html
import json
import os
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from liedyn.errors import UsageError, shown
from liedyn.io.output import STDIO, check_output, open_output
from liedyn.report.replay.run_data import Shown, run_data, shown_file
from liedyn.report.replay.visuals import Visuals, hint_of_meshes, visuals_of

SCRIPTS = ("vectors.js", "shapes.js", "drawing.js", "camera.js", "motion.js", "meshes.js", "curves.js", "viewer.js")
PAGE = "replay.html"                    # its name in a run folder
DATA = '<script id="data" type="application/json">'


def replay_page(runs: Sequence[Shown], *, traces: Sequence[str] = (), follow: str = "", visuals: Visuals | None = None) -> str:
    """HTML of a run, and of others that are drawn as its ghosts.

    traces, follow : links of the first run whose paths are drawn, and that the camera follows, when the page opens
    visuals : meshes that are drawn of the robots
    Raises NameLookupError for a link that it does not have.
    """
    for link in (*traces, *([follow] if follow else ())):
        runs[0].model.link_index(link)
    visuals = visuals or Visuals()
    data = {"runs": [run_data(run, visuals.of(run.model)) for run in runs], "meshes": visuals.meshes,
            "traces": list(traces), "follow": follow}
    folder = files("liedyn.report.replay")
    parts = {"title": html.escape(shown(f"{runs[0].name} · {runs[0].model.name}")),
             "style": (folder / "page.css").read_text(encoding="utf-8"),
             "data": json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c"),
             "scripts": "\n".join((folder / name).read_text(encoding="utf-8") for name in SCRIPTS)}
    page = (folder / "page.html").read_text(encoding="utf-8")
    pieces = page.split("@@")                                # text, name, text, name, …: what is put in is not looked at again
    return "".join(parts[piece] if k % 2 else piece for k, piece in enumerate(pieces))


def data_of(page: str) -> dict:
    """The data in a page that `replay_page` made."""
    begin = page.index(DATA) + len(DATA)
    return json.loads(page[begin:page.index("</script>", begin)])


def replay_output(trajectory: str, output: str | None) -> str:
    """The file to write: as given, else replay.html in a run folder, NAME_replay.html beside a CSV."""
    path = Path(trajectory)
    if output is not None or trajectory == STDIO:
        return output or PAGE
    return str(path / PAGE if path.is_dir() else path.with_name(f"{path.stem}_replay.html"))


def write_replay(trajectory: str, robot: str | None, output: str, *, against: Sequence[str] = (), traces: Sequence[str] = (),
                 follow: str = "", meshes: bool = False, roots: Sequence[str] = (),
                 force: bool = False) -> tuple[dict, tuple[str, ...]]:
    """Write the page of a trajectory file or run folder; returns a report of it, and notes for the user. meshes: whether those of
    the robot file are drawn; roots: folders in which their `package://` is looked for."""
    check_output(output, force=force)
    runs, notes = [], []
    for path in (trajectory, *against):
        run, more = shown_file(_trajectory(path), robot)
        runs.append(run)
        notes += more
    if meshes:
        visuals, more = visuals_of([run.model for run in runs], roots)
    else:
        visuals, more = None, hint_of_meshes(runs[0].model)
    notes += more
    text = replay_page(runs, traces=traces, follow=follow, visuals=visuals)
    with open_output(output, force=force) as file:
        file.write(text)
    first = data_of(text)["runs"][0]
    report = {"file": os.fspath(output), "bytes": len(text.encode()), "frames": first["t"]["rows"], "robot": first["robot"]}
    return report, tuple(notes)


def _trajectory(path: str) -> str:
    folder = Path(path)
    if path == STDIO or not folder.is_dir():
        return path
    if not (folder / "trajectory.csv").is_file():
        raise UsageError(f"{folder} is not a run folder: it has no trajectory.csv")
    return str(folder / "trajectory.csv")
