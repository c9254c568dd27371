"""The page itself: a template, the scripts and the runs in one HTML file that fetches nothing."""
from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from liedyn.errors import shown
from liedyn.report.replay.run_data import run_data
from liedyn.report.replay.sources import Shown
from liedyn.report.replay.visuals import Visuals

SCRIPTS = ("page.js", "vectors.js", "shapes.js", "drawing.js", "camera.js", "motion.js", "meshes.js", "curves.js", "plots.js",
           "arrangement.js", "recording.js", "picking.js", "viewer.js")
PAGE = "replay.html"                    # its name in a run folder
DATA = '<script id="data" type="application/json">'


@dataclass(frozen=True)
class Look:
    """How runs are shown when the page opens.

    title    of the page; "": that of the first run
    traces   links of the first run whose paths are drawn
    follow   the link of it that the camera follows, "" for none
    beside   whether the others stand beside it; else they are ghosts in its place
    speed    seconds of motion in a second
    """

    title: str = ""
    traces: tuple[str, ...] = ()
    follow: str = ""
    beside: bool = False
    speed: float = 1.0


DEFAULT = Look()


def replay_page(runs: Sequence[Shown], look: Look = DEFAULT, visuals: Visuals | None = None) -> str:
    """HTML of a run, and of others that are drawn with it. visuals: meshes of the robots.

    Raises NameLookupError for a link that the first run does not have.
    """
    for link in (*look.traces, *([look.follow] if look.follow else ())):
        runs[0].model.link_index(link)
    visuals = visuals or Visuals()
    title = look.title or runs[0].name
    data = {"title": title, "runs": [run_data(run, visuals.of(run.model)) for run in runs], "meshes": visuals.meshes,
            "traces": list(look.traces), "follow": look.follow, "beside": look.beside, "speed": look.speed}
    folder = files("liedyn.report.replay")
    parts = {"title": html.escape(shown(f"{title} · {runs[0].model.name}")),
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
