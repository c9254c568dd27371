"""Parallel projection of the world onto paper, the ground, and colours of time."""
from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from liedyn.report.pictures import style

UP = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True, eq=False)
class View:
    """Unit vectors of the paper in the world. Paper coordinates are metres: nothing is foreshortened along these."""

    right: np.ndarray
    up: np.ndarray

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """(..., 3) world to (..., 2) paper."""
        return np.asarray(points) @ np.column_stack([self.right, self.up])

    @property
    def flat(self) -> bool:
        """Whether the ground is seen from its edge."""
        return abs(self.up @ UP) > 1 - 1e-9


def view_from(azimuth: float, elevation: float) -> View:
    """Seen from a direction, in degrees: azimuth about z from the x axis, elevation above the ground."""
    a, e = math.radians(azimuth), math.radians(elevation)
    right = np.array([-math.sin(a), math.cos(a), 0.0])
    toward = np.array([math.cos(e) * math.cos(a), math.cos(e) * math.sin(a), math.sin(e)])
    return View(right, np.cross(toward, right))


def best_view(points: np.ndarray) -> View:
    """A view of (F, P, 3) points that shows their motion.

    Square on to the plane of a plane motion that stands upright; else from a little above, from the side where the
    points move most, and from that where this leaves a choice.
    """
    cloud = points.reshape(-1, 3) - points.reshape(-1, 3).mean(axis=0)
    _, extents, axes = np.linalg.svd(np.pad(cloud, ((0, 3), (0, 0))), full_matrices=False)      # three directions of any points
    normal = axes[2]
    if extents[2] < 0.02 * extents[0] and extents[1] > 0.02 * extents[0] and abs(normal[2]) < 0.05:
        right = np.cross(UP, normal)
        right *= np.sign(right[np.argmax(np.abs(right))]) / np.linalg.norm(right)
        return View(right, UP)
    moving = points - points.mean(axis=0)
    spread = np.einsum("fpi,fpj->ij", moving, moving)[:2, :2] + 0.2 * (cloud.T @ cloud)[:2, :2]
    azimuths = np.arange(-75.0, 105.0, 15.0)                # half a turn: the other half shows the same from behind
    rights = np.array([view_from(a, 0).right[:2] for a in azimuths])
    shown = np.einsum("ai,ij,aj->a", rights, spread, rights)
    preferred = np.cos(np.radians(azimuths + 60.0))         # seen from the right of the front, where it does not matter
    return view_from(azimuths[int(np.argmax(shown * (1 + 0.1 * preferred)))], 20.0)


def scene(figure: Figure, view: View, points: np.ndarray, left: float, bottom: float, width: float, height: float) -> Axes:
    """Axes at a place in inches, with equal scales, that hold all (N, 3) points; the ground, a scale bar and the directions
    of the world's axes are drawn."""
    axes = style.plain_axes(figure, left, bottom, width, height)
    size = float(np.ptp(points, axis=0).max()) or 1.0
    floor = _floor_height(points)
    corners = points
    if floor is not None:
        lines = _floor_lines(points, floor, size)
        axes.add_collection(LineCollection(view(lines), colors=style.GRID, linewidths=0.8, zorder=0), autolim=False)
        corners = np.concatenate([points, lines.reshape(-1, 3)])
    paper = view(corners)
    lower, upper = paper.min(axis=0), paper.max(axis=0)
    middle, half = 0.5 * (lower + upper), 0.53 * np.maximum(upper - lower, 0.05 * size)
    scale = max(half[0] / width, half[1] / height)
    axes.set_xlim(middle[0] - scale * width, middle[0] + scale * width)
    axes.set_ylim(middle[1] - scale * height, middle[1] + scale * height)
    _scale_bar(axes, 2 * scale * width)
    _world_axes(axes, view, 2 * scale)
    return axes


def shadow(axes: Axes, view: View, points: np.ndarray, segments: np.ndarray, **options) -> None:
    """(n, 2, 3) segments, dropped onto the ground that `scene` drew for `points`."""
    floor = _floor_height(points)
    if floor is None or view.flat:
        return
    dropped = np.array(segments, dtype=float)
    dropped[..., 2] = floor
    axes.add_collection(LineCollection(view(dropped), **{"colors": "#000000", "alpha": 0.08, "linewidths": 2.5,
                                                         "capstyle": "round", "zorder": 0.5} | options), autolim=False)


def time_colours(times: np.ndarray, span: tuple[float, float]) -> np.ndarray:
    """(n, 4) colours from pale (early) to dark (late), told apart in grey too."""
    share = (np.asarray(times) - span[0]) / ((span[1] - span[0]) or 1.0)
    return colormaps["viridis_r"](0.12 + 0.83 * share)


def time_strip(figure: Figure, times: np.ndarray, span: tuple[float, float], left: float, bottom: float) -> None:
    """The key of the colours: a row of squares with the first and the last time, at a place in inches."""
    step = 0.2
    axes = style.plain_axes(figure, left, bottom, step * len(times), step, xlim=(0, len(times)), ylim=(0, 1))
    axes.bar(np.arange(len(times)) + 0.5, 0.7, 0.82, 0.15, color=time_colours(times, span))
    for text, place, offset, side in ((f"t = {times[0]:.3g} s", (0, 0.5), (-5, 0), "right"),
                                      (f"{times[-1]:.3g} s", (1, 0.5), (5, 0), "left")):
        style.words(axes, text, place, offset, side, xycoords="axes fraction", size=style.NAME, color=style.INK)


def _floor_height(points: np.ndarray) -> float | None:
    """z of the ground: 0 where the points come near it from above, else just below them; None high in the air."""
    size, lowest = float(np.ptp(points, axis=0).max()) or 1.0, float(points[:, 2].min())
    if lowest >= -0.02 * size:
        return 0.0 if lowest < 1.5 * size else None
    return lowest - 0.03 * size


def _floor_lines(points: np.ndarray, z: float, size: float) -> np.ndarray:
    """(n, 2, 3) lines of a square grid under the points."""
    step = _round_length(0.25 * size)
    lower = np.floor((points[:, :2].min(axis=0) - 0.3 * step) / step) * step
    upper = np.ceil((points[:, :2].max(axis=0) + 0.3 * step) / step) * step
    xs, ys = (np.arange(lower[k], upper[k] + 0.5 * step, step) for k in (0, 1))
    along_y = [((x, lower[1], z), (x, upper[1], z)) for x in xs]
    along_x = [((lower[0], y, z), (upper[0], y, z)) for y in ys]
    return np.array(along_y + along_x)


def _scale_bar(axes: Axes, width: float) -> None:
    """A bar of a round length in the lower left corner; `width` of the axes in metres."""
    length = _round_length(0.15 * width)
    (x0, x1), (y0, y1) = axes.get_xlim(), axes.get_ylim()
    x, y = x0 + 0.01 * (x1 - x0), y0 + 0.02 * (y1 - y0)
    axes.plot([x, x + length], [y, y], color=style.INK, linewidth=2, solid_capstyle="butt")
    style.words(axes, f"{length:g} m", (x + length, y), (5, 0), "left", size=style.NAME, color=style.INK)


def _world_axes(axes: Axes, view: View, inch: float) -> None:
    """The directions x, y, z of the world, above the scale bar; without one that points at the viewer. `inch` in metres."""
    seen = {letter: view(axis) for letter, axis in zip("xyz", np.eye(3), strict=True)}
    seen = {letter: along for letter, along in seen.items() if np.linalg.norm(along) > 0.1}
    origin = np.array([axes.get_xlim()[0], axes.get_ylim()[0]]) + inch * np.array([0.45, 0.65])
    tips = {letter: origin + 0.32 * inch * along for letter, along in seen.items()}
    axes.add_collection(LineCollection([(origin, tip) for tip in tips.values()], colors=style.FAINT, linewidths=1.0,
                                       capstyle="round", zorder=1), autolim=False)
    for letter, tip in tips.items():
        style.words(axes, letter, tip, 8 * seen[letter] / np.linalg.norm(seen[letter]), size=style.NAME, color=style.INK)


def _round_length(x: float) -> float:
    """1, 2 or 5 times a power of ten, near x."""
    power = 10.0 ** math.floor(math.log10(x))
    return power * min((1, 2, 5, 10), key=lambda k: abs(math.log(k * power / x)))
