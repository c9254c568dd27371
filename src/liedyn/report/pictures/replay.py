"""The motion as a stroboscope shows it: the robot's skeleton at several times on one sheet."""
from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from liedyn.report.pictures import style
from liedyn.report.pictures.parallel_projection import View, best_view, scene, shadow, time_colours, time_strip
from liedyn.report.pictures.picture_data import Skeleton, carried

FLASHES = 10
TRAIL_COLOURS = 80
CURVE_PARTS = 3                         # of a trail between two frames: fast swings stay round
_WIDTH, _HEIGHT = 10.0, 6.6
_RIM = 2.0                              # points wide


def draw_replay(skeleton: Skeleton, subtitle: str = "") -> Figure:
    """Skeletons at FLASHES evenly spaced times, pale to dark, and the trails of the free ends."""
    t, points = skeleton.t, skeleton.points
    view = best_view(points)
    flashes = np.unique(np.searchsorted(t, np.linspace(t[0], t[-1], FLASHES)).clip(0, len(t) - 1))
    span = (float(t[0]), float(t[-1]))
    figure = style.new_figure(_WIDTH, _HEIGHT, "Motion", subtitle)
    everything = points.reshape(-1, 3)
    axes = scene(figure, view, everything, 0.3, 0.3, _WIDTH - 0.6, _HEIGHT - 1.1)
    lines = _lines(skeleton)
    for k, _ in lines:
        shadow(axes, view, everything, points[flashes[-1]][k])
    _draw_trails(axes, view, skeleton, span)
    for rank, k in enumerate(flashes):
        _draw_flash(axes, view, skeleton, int(k), time_colours(t[k], span), lines, last=rank == len(flashes) - 1)
    time_strip(figure, t[flashes], span, _WIDTH - 0.9 - 0.2 * len(flashes), _HEIGHT - 0.45)
    return figure


def _draw_flash(axes: Axes, view: View, skeleton: Skeleton, k: int, colour, lines: list, last: bool) -> None:
    paper = view(skeleton.points[k])
    zorder = 10 if last else 3
    alpha = 1.0 if last else 0.75
    for points, width in lines:
        if last:                          # a white edge lifts the last pose off the others
            axes.add_collection(LineCollection(paper[points], colors="white", linewidths=width + 2.5, capstyle="round",
                                               zorder=zorder), autolim=False)
        axes.add_collection(LineCollection(paper[points], colors=[colour], linewidths=width, alpha=alpha, capstyle="round",
                                           zorder=zorder + 1), autolim=False)
    heavy = np.flatnonzero(skeleton.masses) if skeleton.masses is not None else np.array([], dtype=int)
    joints = sorted({k for edge in skeleton.edges for k in edge} - set(heavy.tolist()))
    axes.scatter(*paper[joints].T, s=7 if last else 3, color="white" if last else [colour], zorder=zorder + 2, linewidths=0)
    if heavy.size:
        axes.scatter(*paper[heavy].T, s=90 * skeleton.masses[heavy] / skeleton.masses.max(), color=[colour], alpha=alpha,
                     edgecolors="white", linewidths=0.6, zorder=zorder + 2)


def _lines(skeleton: Skeleton) -> list[tuple[np.ndarray, np.ndarray | float]]:
    """Points (n, 2) that edges join, and (n, points) along closed rims, each with the widths of the lines."""
    rims = np.array([(*rim, rim[0]) for rim in skeleton.rims])
    both = (np.array(skeleton.edges), _widths(skeleton)), (rims, _RIM)
    return [(points, width) for points, width in both if len(points)]


def _draw_trails(axes: Axes, view: View, skeleton: Skeleton, span: tuple[float, float]) -> None:
    """Paths of the points that have no child, through all frames; finer and paler where they fill the sheet."""
    parents = {a for a, _ in skeleton.edges}
    ends = sorted({b for _, b in skeleton.edges} - parents)
    last = len(skeleton.t) - 1
    starts = np.unique(np.linspace(0, last, TRAIL_COLOURS, endpoint=False).astype(int))
    colours = time_colours(skeleton.t[starts], span)
    size = float(np.ptp(skeleton.points.reshape(-1, 3), axis=0).max())             # positive: see `skeleton`
    for end in ends:
        path = view(skeleton.points[:, end])
        turns = float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum()) / size
        fine = smoothed(path, CURVE_PARTS)
        pieces = [fine[CURVE_PARTS * a:CURVE_PARTS * b + 1] for a, b in zip(starts, [*starts[1:], last], strict=True)]
        axes.add_collection(LineCollection(pieces, colors=colours, linewidths=0.8, alpha=0.55 if turns < 40 else 0.3, zorder=2),
                            autolim=False)


def smoothed(path: np.ndarray, parts: int) -> np.ndarray:
    """(parts (n - 1) + 1, d) points of the Catmull-Rom curve through the (n, d) points of a path."""
    if len(path) < 2:
        return path
    slope = np.gradient(path, axis=0)
    s = (np.arange(parts) / parts)[None, :, None]
    a, b, da, db = path[:-1, None], path[1:, None], slope[:-1, None], slope[1:, None]
    curve = a + s * da + s**2 * (3 * (b - a) - 2 * da - db) + s**3 * (2 * (a - b) + da + db)
    return np.concatenate([curve.reshape(-1, path.shape[1]), path[-1:]])


def _widths(skeleton: Skeleton) -> np.ndarray:
    """(edges,) line widths [points]."""
    return 1.6 + 3.4 * np.sqrt(carried(skeleton.edges, skeleton.points.shape[1]))
