"""The path of a floating base or of a link: in space, and its position and orientation over time."""
from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from liedyn.report.pictures import style
from liedyn.report.pictures.parallel_projection import View, best_view, scene, shadow, time_colours, time_strip
from liedyn.report.pictures.picture_data import BasePath

_WIDTH, _HEIGHT = 11.0, 5.2
_TRIADS = 9


def draw_base_path(base: BasePath, t: np.ndarray, subtitle: str = "") -> Figure:
    """Left: the path with the base's axes at some times, its shadow, start and end. Right: x y z, and the
    angles turned about the world's axes."""
    figure = style.new_figure(_WIDTH, _HEIGHT, f"Path of {base.of}", subtitle)
    _draw_space(figure, base, t)
    left, width, height = 7.2, 3.4, 1.75
    for name, unit, values, bottom, x_name in (
            ("position", "m", base.position, 0.65 + height + 0.45, None),
            ("rotation since the start, about", "rad", turned(base.quaternion), 0.65, "t [s]")):
        axes = style.plain_axes(figure, left, bottom, width, height, xlim=style.time_span(t), ylim=style.with_air(values, 1e-6))
        style.rulers(axes, 5, 4, x_name)
        style.heading(axes, name, unit, *((label, colour, "bold") for label, colour in zip("xyz", style.CURVES, strict=False)))
        for label, x, colour in zip("xyz", values.T, style.CURVES, strict=False):
            style.curve(axes, t, x, color=colour, linewidth=1.4, label=label)
    return figure


def _draw_space(figure: Figure, base: BasePath, t: np.ndarray) -> None:
    from scipy.spatial.transform import Rotation

    keep = np.unique(np.linspace(0, len(t) - 1, min(len(t), 1500)).astype(int))
    path, times, span = base.position[keep], t[keep], (float(t[0]), float(t[-1]))
    shown = np.unique(np.searchsorted(t, np.linspace(*span, _TRIADS)).clip(0, len(t) - 1))
    length = 0.07 * max(float(np.ptp(path, axis=0).max()), 0.1)
    axes_of_base = Rotation.from_quat(base.quaternion[shown]).as_matrix().swapaxes(1, 2)
    tips = base.position[shown, None] + length * axes_of_base                              # (n, 3 axes, 3)
    everything = np.concatenate([path, tips.reshape(-1, 3)])
    view = best_view(path[:, None])
    axes = scene(figure, view, everything, 0.3, 0.3, 6.0, _HEIGHT - 1.1)
    segments = np.stack([path[:-1], path[1:]], axis=1)
    shadow(axes, view, everything, segments, alpha=0.15, linewidths=1.2)
    axes.add_collection(LineCollection(view(segments), colors=time_colours(times[1:], span), linewidths=2.0, capstyle="round",
                                       zorder=2), autolim=False)
    _draw_triads(axes, view, base.position[shown], tips)
    _mark_ends(axes, view, path[0], path[-1], length)
    time_strip(figure, t[shown], span, 6.0 - 0.2 * len(shown), _HEIGHT - 0.45)


def _mark_ends(axes: Axes, view: View, start: np.ndarray, end: np.ndarray, length: float) -> None:
    """Named dots at start and end; one name for both where they are near, as after a round trip."""
    together = np.linalg.norm(end - start) < 2 * length
    for point, marker, label, name in ((start, "o", "start", "" if together else "start"),
                                       (end, "s", "end", "start, end" if together else "end")):
        at = view(point)
        axes.plot(*at, marker=marker, color=style.INK, markersize=6, markeredgecolor="white", zorder=5, label=label)
        style.words(axes, name, at, (7, -3), "left", "top", size=style.NAME, weight="bold", color=style.INK, zorder=6,
                    path_effects=[withStroke(linewidth=3, foreground="white")])


def _draw_triads(axes: Axes, view: View, origins: np.ndarray, tips: np.ndarray) -> None:
    for k, colour in enumerate((style.VERMILLION, style.GREEN, style.BLUE)):             # x, y, z
        axes.add_collection(LineCollection(view(np.stack([origins, tips[:, k]], axis=1)), colors=colour, linewidths=1.4,
                                           zorder=4), autolim=False)
    for letter, tip, colour in zip("xyz", tips[0], (style.VERMILLION, style.GREEN, style.BLUE), strict=True):
        style.words(axes, letter, view(tip), (2, 2), "left", "baseline", color=colour, zorder=6)


def turned(quaternion: np.ndarray) -> np.ndarray:
    """(n, 3) integral of the angular velocity in world axes, from (n, 4) quaternions: counts full turns, and has no
    singular poses as roll, pitch and yaw have."""
    from scipy.spatial.transform import Rotation

    if len(quaternion) < 2:                                    # SciPy 1.11 has no product of no rotations
        return np.zeros((len(quaternion), 3))
    turn = Rotation.from_quat(quaternion)
    steps = (turn[1:] * turn[:-1].inv()).as_rotvec()
    return np.concatenate([np.zeros((1, 3)), np.cumsum(steps, axis=0)])
