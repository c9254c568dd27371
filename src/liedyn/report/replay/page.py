"""The HTML page of a replay: a template, the scripts and the runs in one file that loads nothing."""
from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np

from liedyn.dynamics.kinematics import link_poses
from liedyn.dynamics.manifold import continuous_quaternions
from liedyn.errors import escape_nonprintable
from liedyn.interop.wasm_files import simulation_script
from liedyn.model.model import Model, base_text
from liedyn.report.plots import palette
from liedyn.report.replay.meshes import packed
from liedyn.report.replay.scene import Visuals, bodies_of, body_scene
from liedyn.report.replay.scenery import scenery
from liedyn.report.replay.sources import ReplayRun, arrows_of

# Data of one run for the page: frames of its motion, forces, curves and time marks ---------------------------------------

RATE = 60                               # maximum number of frames per second
MOST_FRAMES = 20_000                    # longer motions get fewer per second
# Rounding of the numbers in the page, below the visible resolution.
_TIME = 1e-6                            # s, and of the run
_POSITION, _TURN = 1e-5, 5e-6           # of the size of the robot; of parts of quaternions, or of the size that they turn
_ARROW = 1e-4                           # of the maximum number of an arrow
_LEVELS = 10_000                        # of a curve from its lowest to its highest value
_MOST_CURVES = 600
# prefix of the columns, last part of their names ("" for any), title of the plot
_PLOTS = (("q", "", "positions"), ("v", "", "velocities"), ("a", "", "accelerations"), ("tau", "", "generalized forces"),
          ("motor", "torque", "motor torques"), ("motor", "speed", "motor speeds"),
          ("contact", "force", "contact forces"), ("reaction", "", "reactions"), ("fext", "", "external wrenches"),
          ("wrench", "", "wrenches of joints"), ("energy", "", "energy"))


def run_data(run: ReplayRun, visuals: Visuals) -> dict[str, Any]:
    """Return plain values of a run for the page, which `viewer.js` reads as JSON. visuals: meshes of the robots."""
    rows = frames_of(run.t)
    t, model = run.t[rows], run.model
    T = link_poses(model, run.q[rows])
    first, _ = bodies_of(model)
    poses = T[:, first]
    scene = body_scene(model, T, visuals.of(model), visuals.of(model, collision=True), visuals.robot_of(model))
    size = scene["size"] or 1.0
    names, arrows = arrows_of(run, rows, T, size)
    plots, curves = _plots(run, rows)
    return {"name": run.name, "varied": list(run.varied), "robot": model.name, "status": run.status, "reason": run.reason,
            "scene": scene, "scenery": scenery(run, rows, size),
            "floor": _floor(model, scene["bounds"][0][2], size, run.scenario.get("contacts") or {}),
            "phase": run.phase, "marks": [[float(time), event, phase] for time, event, phase in run.marks],
            "t": packed(t[:, None], _TIME * min(1.0, t[-1] - t[0] or 1.0)),
            "positions": packed(poses[..., :3, 3].reshape(len(t), -1), _POSITION * size),
            "turns": packed(continuous_quaternions(poses[..., :3, :3]).reshape(len(t), -1),
                            _TURN / max(1.0, _lever(scene) / size)),
            "arrows": {"of": names, **packed(arrows, _ARROW * _positive(np.abs(arrows).max(axis=0, initial=0.0)))},
            "plots": plots, "curves": packed(curves, _positive(np.ptp(curves, axis=0)) / _LEVELS), "mechanism": run.mechanism,
            **({"live": run.live} if run.live else {})}


def _positive(sizes: np.ndarray) -> np.ndarray:
    return np.where(sizes > 0.0, sizes, 1.0)


def frames_of(t: np.ndarray) -> np.ndarray:
    """Return the rows to show: the first, the last, those on both sides of an event, and at most RATE others per second."""
    span = t[-1] - t[0]
    times = np.arange(t[0], t[-1], max(1 / RATE, span / MOST_FRAMES))
    near = np.searchsorted(t, times).clip(0, len(t) - 1)
    near -= (near > 0) & (times - t[near - 1] < t[near] - times)
    repeated = np.flatnonzero(np.diff(t) == 0.0)
    return np.unique(np.concatenate([near, [0, len(t) - 1], repeated[:MOST_FRAMES], repeated[:MOST_FRAMES] + 1]))


def _lever(scene: dict[str, Any]) -> float:
    """Return the maximum distance of a link's origin from that of its body [m]."""
    return max((float(np.linalg.norm(link["at"][9:])) for link in scene["links"] if link["body"] >= 0), default=0.0)


def _floor(model: Model, lowest: float, size: float, contacts: Mapping[str, Any]) -> float:
    """Return the height of the ground [m]: that of a horizontal contact plane, or of a fixed base; else 0 or below the motion."""
    for plane in (contacts.get("planes") or {}).values():
        if not plane.get("link") and list(plane.get("normal", [0, 0, 1]))[:2] == [0, 0]:
            return float(plane.get("point", [0, 0, 0])[2])
    if base_text(model) == "fixed" or lowest >= -0.02 * size:
        return 0.0
    return lowest - 0.05 * size


def _plots(run: ReplayRun, rows: np.ndarray) -> tuple[list[dict[str, Any]], np.ndarray]:
    """Return the plots of a quantity and unit with the names of their curves, and all curves (F, n) in their order."""
    plots: list[dict[str, Any]] = []
    curves: list[np.ndarray] = []
    for prefix, last, title in _PLOTS:
        names = [name for name in run.columns if name.startswith(prefix + ".") and (not last or name.endswith("." + last))]
        names = names[:_MOST_CURVES - len(curves)]
        for unit in dict.fromkeys(run.units.get(name, "") for name in names):
            of_unit = [name for name in names if run.units.get(name, "") == unit]
            plots.append({"title": title, "unit": unit, "curves": [[name.partition(".")[2], unit] for name in of_unit]})
            curves += [np.asarray(run.columns[name])[rows] for name in of_unit]
    return plots, np.column_stack(curves) if curves else np.zeros((len(rows), 0))


# page -------------------------------------------------------------------------------------------------------------------

SCRIPTS = ("page.js", "vectors.js", "shapes.js", "drawing.js", "camera.js", "mechanism.js", "motion.js", "scenery.js",
           "meshes.js", "curves.js", "plots.js", "sliders.js", "arrangement.js", "recording.js", "picking.js", "live.js",
           "modes.js", "viewer.js")
_LIVE_SCRIPTS = "live.js", "modes.js"
PAGE = "replay.html"                    # its name in a run folder
DATA = '<script id="data" type="application/json">'
_COLOURS = {"axes": list(palette.AXES.values()), "curves": [*palette.CURVES, *palette.MORE_CURVES]}
_PALETTE = f"const PALETTE = {json.dumps(_COLOURS)};"       # before the scripts: the colours of the figures


@dataclass(frozen=True)
class ReplayOptions:
    """How runs are shown when the page opens.

    title         of the page; "": that of the first run
    traces        links of the first run whose paths are drawn
    follow        link of the first run that the camera follows, "" for none
    side_by_side  whether other runs are shown next to the first; else they are ghosts in its place
    speed         seconds of motion per second
    """

    title: str = ""
    traces: tuple[str, ...] = ()
    follow: str = ""
    side_by_side: bool = False
    speed: float = 1.0

    def check(self, model: Model) -> None:
        """Raise NameLookupError for a link that the first run does not have. model: that of the first run."""
        for link in (*self.traces, *([self.follow] if self.follow else ())):
            model.link_index(link)


DEFAULT = ReplayOptions()


def replay_page(runs: Sequence[ReplayRun], look: ReplayOptions = DEFAULT, visuals: Visuals | None = None) -> str:
    """Return the HTML page of a run and the runs that are drawn with it. visuals: meshes of the robots.

    Raises NameLookupError for a link that the first run does not have.
    """
    look.check(runs[0].model)
    visuals = visuals or Visuals()
    title = look.title or runs[0].name
    data = {"title": title, "runs": [run_data(run, visuals) for run in runs], "meshes": visuals.meshes,
            "traces": list(look.traces), "follow": look.follow, "beside": look.side_by_side, "speed": look.speed}
    folder = files("liedyn.report.replay")
    is_live = any(run.live for run in runs)
    scripts = [_PALETTE, *([simulation_script()] if is_live else []),
               *((folder / name).read_text(encoding="utf-8") for name in SCRIPTS if is_live or name not in _LIVE_SCRIPTS)]
    parts = {"title": html.escape(escape_nonprintable(f"{title} · {runs[0].model.name}")),
             "style": (folder / "page.css").read_text(encoding="utf-8"),
             "data": json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c"),
             "wasm": " 'wasm-unsafe-eval'" if is_live else "", "scripts": "\n".join(scripts)}
    page = (folder / "page.html").read_text(encoding="utf-8")
    pieces = page.split("@@")                                # text, name, text, name, …: inserted text is not replaced again
    return "".join(parts[piece] if k % 2 else piece for k, piece in enumerate(pieces))


def data_of(page: str) -> dict[str, Any]:
    """Return the data in a page from `replay_page`."""
    begin = page.index(DATA) + len(DATA)
    return dict(json.loads(page[begin:page.index("</script>", begin)]))
