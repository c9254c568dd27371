"""Plots in space: parallel projection of the world, the ground, colours of time."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from liedyn.report.plots import palette, style
from liedyn.report.plots.figure_files import PlotFigure
from liedyn.report.plots.plot_data import BasePath, PlotData, Skeleton, carried

UP = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True, eq=False)
class View:
    """A parallel projection. Unit vectors of the paper in the world; paper coordinates are metres."""

    right: np.ndarray
    up: np.ndarray

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """Project (..., 3) points of the world to (..., 2) points of the paper."""
        return np.asarray(np.asarray(points) @ np.column_stack([self.right, self.up]))

    @property
    def flat(self) -> bool:
        """Return whether the ground is seen from its edge."""
        return bool(abs(self.up @ UP) > 1 - 1e-9)


def view_from(azimuth: float, elevation: float) -> View:
    """Return the view from a direction in degrees: azimuth about z from the x axis, elevation above the ground."""
    a, e = math.radians(azimuth), math.radians(elevation)
    right = np.array([-math.sin(a), math.cos(a), 0.0])
    toward = np.array([math.cos(e) * math.cos(a), math.cos(e) * math.sin(a), math.sin(e)])
    return View(right, np.cross(toward, right))


def best_view(points: np.ndarray) -> View:
    """Return a view of (F, P, 3) points that shows their motion.

    A vertical planar motion is seen perpendicular to its plane. Otherwise the view is from slightly above, from the side with the
    maximum visible motion.
    """
    cloud = points.reshape(-1, 3) - points.reshape(-1, 3).mean(axis=0)
    _, extents, axes = np.linalg.svd(np.pad(cloud, ((0, 3), (0, 0))), full_matrices=False)      # padded: always three directions
    normal = axes[2]
    if extents[2] < 0.02 * extents[0] and extents[1] > 0.02 * extents[0] and abs(normal[2]) < 0.05:
        right = np.cross(UP, normal)
        right *= np.sign(right[np.argmax(np.abs(right))]) / np.linalg.norm(right)
        return View(right, UP)
    moving = points - points.mean(axis=0)
    spread = np.einsum("fpi,fpj->ij", moving, moving)[:2, :2] + 0.2 * (cloud.T @ cloud)[:2, :2]
    azimuths = np.arange(-75.0, 105.0, 15.0)                # half a turn; the other half is the view from behind
    rights = np.array([view_from(a, 0).right[:2] for a in azimuths])
    visible_spread = np.einsum("ai,ij,aj->a", rights, spread, rights)
    preferred = np.cos(np.radians(azimuths + 60.0))         # from the front right if all are equal
    return view_from(azimuths[int(np.argmax(visible_spread * (1 + 0.1 * preferred)))], 20.0)


def scene(figure: Figure, view: View, points: np.ndarray, left: float, bottom: float, width: float, height: float) -> Axes:
    """Return axes at a place in inches, with equal scales, that contain all (N, 3) points.

    Draws the ground, a scale bar and the directions of the world's axes.
    """
    axes = style.plain_axes(figure, left, bottom, width, height)
    size = float(np.ptp(points, axis=0).max()) or 1.0
    floor = _floor_height(points)
    corners = points
    if floor is not None:
        lines = _floor_lines(points, floor, size)
        style.draw_lines(axes, view(lines), colors=palette.GRID, linewidths=0.8, zorder=0)
        corners = np.concatenate([points, lines.reshape(-1, 3)])
    paper = view(corners)
    lower, upper = paper.min(axis=0), paper.max(axis=0)
    if view.flat:                                              # the ground, a line, is above the scale bar
        lower[1] -= 0.06 * max(upper - lower)
    middle, half = 0.5 * (lower + upper), 0.53 * np.maximum(upper - lower, 0.05 * size)
    scale = max(half[0] / width, half[1] / height)
    axes.set_xlim(middle[0] - scale * width, middle[0] + scale * width)
    axes.set_ylim(middle[1] - scale * height, middle[1] + scale * height)
    axes.set_aspect("equal")                                   # in another size, too
    _scale_bar(axes, 2 * scale * width)
    _world_axes(axes, view, 2 * scale)
    return axes


def shadow(axes: Axes, view: View, points: np.ndarray, segments: np.ndarray, **options: Any) -> None:
    """Draw (n, 2, 3) segments as a shadow on the ground that `scene` drew for `points`."""
    floor = _floor_height(points)
    if floor is None or view.flat:
        return
    dropped = np.array(segments, dtype=float)
    dropped[..., 2] = floor
    options = dict[str, Any](colors="#000000", alpha=0.08, linewidths=2.5, capstyle="round", zorder=0.5) | options
    style.draw_lines(axes, view(dropped), **options)


def time_colours(times: np.ndarray, span: tuple[float, float]) -> np.ndarray:
    """Return (n, 4) colours from pale (early) to dark (late), which differ in grey, too."""
    fraction = (np.asarray(times) - span[0]) / ((span[1] - span[0]) or 1.0)
    return colormaps["viridis_r"](0.12 + 0.83 * fraction)


def time_strip(figure: PlotFigure, times: np.ndarray, span: tuple[float, float], left: float, bottom: float) -> None:
    """Draw the key of the colours at a place in inches: a row of squares with the first and the last time."""
    step = 0.2
    axes = style.plain_axes(figure, left, bottom, step * len(times), step, xlim=(0, len(times)), ylim=(0, 1))
    axes.bar(np.arange(len(times)) + 0.5, 0.7, 0.82, 0.15, color=time_colours(times, span))
    for text, anchor, offset, side in ((f"t = {times[0]:.3g} s", (0, 0.5), (-5, 0), "right"),
                                       (f"{times[-1]:.3g} s", (1, 0.5), (5, 0), "left")):
        style.words(axes, text, anchor, offset, side, xycoords="axes fraction", size=figure.look.name, color=palette.INK)


def _floor_height(points: np.ndarray) -> float | None:
    """Return z of the ground: 0 if the points come near it from above, else just below them; None high in the air."""
    size, lowest = float(np.ptp(points, axis=0).max()) or 1.0, float(points[:, 2].min())
    if lowest >= -0.02 * size:
        return 0.0 if lowest < 1.5 * size else None
    return lowest - 0.03 * size


def _floor_lines(points: np.ndarray, z: float, size: float) -> np.ndarray:
    """Return (n, 2, 3) lines of a square grid under the points."""
    step = _round_length(0.25 * size)
    lower = np.floor((points[:, :2].min(axis=0) - 0.3 * step) / step) * step
    upper = np.ceil((points[:, :2].max(axis=0) + 0.3 * step) / step) * step
    xs, ys = (np.arange(lower[k], upper[k] + 0.5 * step, step) for k in (0, 1))
    along_y = [((x, lower[1], z), (x, upper[1], z)) for x in xs]
    along_x = [((lower[0], y, z), (upper[0], y, z)) for y in ys]
    return np.array(along_y + along_x)


def _scale_bar(axes: Axes, width: float) -> None:
    """Draw a bar of a round length in the lower left corner. `width` of the axes in metres."""
    length = _round_length(0.15 * width)
    (x0, x1), (y0, y1) = axes.get_xlim(), axes.get_ylim()
    x, y = x0 + 0.01 * (x1 - x0), y0 + 0.02 * (y1 - y0)
    axes.plot([x, x + length], [y, y], color=palette.INK, linewidth=2, solid_capstyle="butt")
    style.words(axes, f"{length:g} m", (x + length, y), (5, 0), "left", size=style.parent_figure(axes).look.name,
                color=palette.INK)


def _world_axes(axes: Axes, view: View, inch: float) -> None:
    """Draw the directions x, y, z of the world above the scale bar, except one that points at the viewer. `inch` in metres."""
    seen = {letter: view(axis) for letter, axis in zip("xyz", np.eye(3), strict=True)}
    seen = {letter: along for letter, along in seen.items() if np.linalg.norm(along) > 0.1}
    origin = np.array([axes.get_xlim()[0], axes.get_ylim()[0]]) + inch * np.array([0.45, 0.65])
    tips = {letter: origin + 0.32 * inch * along for letter, along in seen.items()}
    style.draw_lines(axes, [(origin, tip) for tip in tips.values()], colors=[palette.AXES[letter] for letter in tips],
                     linewidths=1.2, capstyle="round", zorder=1)
    for letter, tip in tips.items():
        style.words(axes, letter, tip, 8 * seen[letter] / np.linalg.norm(seen[letter]),
                    size=style.parent_figure(axes).look.name, color=palette.AXES[letter])


def _round_length(x: float) -> float:
    """Return 1, 2 or 5 times a power of ten, near x."""
    power = 10.0 ** math.floor(math.log10(x))
    return power * min((1, 2, 5, 10), key=lambda k: abs(math.log(k * power / x)))


# The path of a floating base or of a link: in space, and its position and orientation over time -------------------------

_PATH_WIDTH, _PATH_HEIGHT = 11.0, 4.6
_WIDE = 6.0                      # smallest width with curves next to the path [inches]
_TRIADS = 9


def draw_base_path(base: BasePath, recording: PlotData) -> Figure:
    """Draw the path of a body.

    Left or above: the path with axes of the body at some times, its shadow, start and end. Right or below: x y z, and angles
    about the world's axes.
    """
    t, look = recording.t, recording.look
    width = look.width or _PATH_WIDTH
    wide = width >= _WIDE
    margin, row, gap = 0.7, 1.75 if look.width is None else 1.2, 0.45
    curves_height = 2 * row + gap + 0.5
    space = (0.6 * width, max(_PATH_HEIGHT * width / _PATH_WIDTH, curves_height + 0.3)) if wide else (width, 0.7 * width)
    height = space[1] if wide else space[1] + curves_height + 0.3
    figure = style.new_figure(width, height, f"Path of {base.of}", recording.title, look=look)
    _draw_space(figure, base, t, (0.0, height - space[1], *space))
    at = space[0] + margin if wide else margin
    for name, unit, values, bottom, x_name in (
            ("position", "m", base.position, 0.5 + row + gap, None),
            ("rotation since the start, about", "rad", turned(base.quaternion), 0.5, "t [s]")):
        axes = style.plain_axes(figure, at, bottom, width - at - 0.2, row, xlim=style.time_span(t),
                                ylim=style.with_air(values, 1e-6))
        style.draw_marks(axes, recording.event_times, recording.phases, names=x_name is None)
        quantity = name.partition(" ")[0]
        style.rulers(axes, 5, 4, x_name, y_names=(f"{quantity} [{unit}]", f"[{unit}]"))
        style.heading(axes, name if width - at > 3.5 else quantity, "",
                      *((style.key_label(look, k, x), colour, "bold") for k, (x, colour) in enumerate(palette.AXES.items())))
        for k, (x, (label, colour)) in enumerate(zip(values.T, palette.AXES.items(), strict=True)):
            style.curve(axes, t, x, color=colour, linestyle=style.line_pattern(look, k), linewidth=1.0 if look.paper else 1.4,
                        label=label)
    return figure


def _draw_space(figure: PlotFigure, base: BasePath, t: np.ndarray, box: tuple[float, float, float, float]) -> None:
    """Draw the path into a box: x, y, width, height [inches]."""
    from scipy.spatial.transform import Rotation

    rows = np.unique(np.linspace(0, len(t) - 1, min(len(t), 1500)).astype(int))
    path, times, span = base.position[rows], t[rows], (float(t[0]), float(t[-1]))
    triad_rows = np.unique(np.searchsorted(t, np.linspace(*span, _TRIADS)).clip(0, len(t) - 1))
    length = 0.07 * max(float(np.ptp(path, axis=0).max()), 0.1)
    axes_of_base = Rotation.from_quat(base.quaternion[triad_rows]).as_matrix().swapaxes(1, 2)
    tips = base.position[triad_rows, None] + length * axes_of_base                              # (n, 3 axes, 3)
    everything = np.concatenate([path, tips.reshape(-1, 3)])
    view = best_view(path[:, None])
    x, y, width, height = box
    axes = scene(figure, view, everything, x + 0.2, y + 0.25, width - 0.4, height - 0.65)
    segments = np.stack([path[:-1], path[1:]], axis=1)
    shadow(axes, view, everything, segments, alpha=0.15, linewidths=1.2)
    style.draw_lines(axes, view(segments), colors=time_colours(times[1:], span), linewidths=2.0, capstyle="round", zorder=2)
    _draw_triads(axes, view, base.position[triad_rows], tips)
    _mark_ends(axes, view, path[0], path[-1], length)
    time_strip(figure, t[triad_rows], span, x + width - 0.5 - 0.2 * len(triad_rows), y + height - 0.25)


def _mark_ends(axes: Axes, view: View, start: np.ndarray, end: np.ndarray, length: float) -> None:
    """Draw named dots at start and end; one name for both if they are near, as after a round trip."""
    together = np.linalg.norm(end - start) < 2 * length
    for point, marker, label, name in ((start, "o", "start", "" if together else "start"),
                                       (end, "s", "end", "start, end" if together else "end")):
        at = view(point)
        axes.plot(*at, marker=marker, color=palette.INK, markersize=6, markeredgecolor="white", zorder=5, label=label)
        style.words(axes, name, at, (7, -3), "left", "top", size=style.parent_figure(axes).look.name, weight="bold",
                    color=palette.INK, zorder=6, path_effects=[withStroke(linewidth=3, foreground="white")])


def _draw_triads(axes: Axes, view: View, origins: np.ndarray, tips: np.ndarray) -> None:
    for k, colour in enumerate(palette.AXES.values()):
        style.draw_lines(axes, view(np.stack([origins, tips[:, k]], axis=1)), colors=colour, linewidths=1.4, zorder=4)
    for tip, (letter, colour) in zip(tips[0], palette.AXES.items(), strict=True):
        style.words(axes, letter, view(tip), (2, 2), "left", "baseline", color=colour, zorder=6)


def turned(quaternion: np.ndarray) -> np.ndarray:
    """Return the (n, 3) integral of the angular velocity in world axes, from (n, 4) quaternions.

    It counts full turns, and has no singular poses as roll, pitch and yaw have.
    """
    from scipy.spatial.transform import Rotation

    if len(quaternion) < 2:                                    # SciPy 1.11 cannot multiply empty rotations
        return np.zeros((len(quaternion), 3))
    turn = Rotation.from_quat(quaternion)
    steps = (turn[1:] * turn[:-1].inv()).as_rotvec()
    return np.concatenate([np.zeros((1, 3)), np.cumsum(steps, axis=0)])


# Stroboscopic view of a motion: the robot's skeleton at several times on one sheet --------------------------------------

FLASHES = 10
TRAIL_COLOURS = 80
CURVE_PARTS = 3                         # of a trail between two frames, so that fast swings are round
_MOTION_WIDTH, _MOTION_HEIGHT = 10.0, 5.9
_RIM, _OUTLINE = 2.0, 1.0               # widths of rims, and of outlines in space [points]


def draw_motion(skeleton: Skeleton, subtitle: str = "", look: palette.Look = palette.SCREEN) -> Figure:
    """Draw skeletons at FLASHES evenly spaced times, pale to dark, and the trails of the free ends."""
    t, points = skeleton.t, skeleton.points
    view = best_view(skeleton.line_points)
    flashes = np.unique(np.searchsorted(t, np.linspace(t[0], t[-1], FLASHES)).clip(0, len(t) - 1))
    span = (float(t[0]), float(t[-1]))
    width = look.width or _MOTION_WIDTH
    height = _MOTION_HEIGHT * width / _MOTION_WIDTH
    figure = style.new_figure(width, height, "Motion", subtitle, look=look)
    everything = points.reshape(-1, 3)
    axes = scene(figure, view, everything, 0.2, 0.2, width - 0.4, height - 0.5)
    scale = math.sqrt(width / _MOTION_WIDTH)               # of the widths of lines
    lines, outlines = ([(ends, scale * np.asarray(widths)) for ends, widths in parts] for parts in _lines(skeleton, view.flat))
    for k, _ in (*lines, *outlines):
        shadow(axes, view, everything, points[flashes[-1]][k])
    _draw_trails(axes, view, skeleton, span)
    for rank, k in enumerate(flashes):
        last = rank == len(flashes) - 1                        # outlines in space would hide each other
        _draw_flash(axes, view, skeleton, int(k), time_colours(t[k], span), [*lines, *outlines] if last else lines, last=last)
    time_strip(figure, t[flashes], span, width - 0.6 - 0.2 * len(flashes), height - 0.22)
    return figure


def _draw_flash(axes: Axes, view: View, skeleton: Skeleton, k: int, colour: np.ndarray,
                lines: Sequence[tuple[np.ndarray, np.ndarray | float]], last: bool) -> None:
    paper = view(skeleton.points[k])
    zorder = 10 if last else 3
    alpha = 1.0 if last else 0.75
    for points, width in lines:
        if last:                          # a white edge separates the last pose from the others
            style.draw_lines(axes, paper[points], colors="white", linewidths=width + 2.5, capstyle="round", zorder=zorder)
        style.draw_lines(axes, paper[points], colors=[colour], linewidths=width, alpha=alpha, capstyle="round", zorder=zorder + 1)
    masses = np.zeros(0) if skeleton.masses is None else skeleton.masses
    heavy = np.flatnonzero(masses)
    joints = sorted({k for edge in skeleton.edges for k in edge} - set(heavy.tolist()))
    x, y = paper[joints].T
    axes.scatter(x, y, s=7 if last else 3, color="white" if last else [colour], zorder=zorder + 2, linewidths=0)
    if heavy.size:
        x, y = paper[heavy].T
        axes.scatter(x, y, s=9 * style.wide(axes) * masses[heavy] / masses.max(), color=[colour], alpha=alpha,
                     edgecolors="white", linewidths=0.6, zorder=zorder + 2)


Lines: TypeAlias = list[tuple[np.ndarray, np.ndarray | float]]


def _lines(skeleton: Skeleton, flat: bool) -> tuple[Lines, Lines]:
    """Return the lines of each pose, and those of the last pose only, each with their widths.

    Lines are points (n, 2) that edges join, and (n, points) along closed lines. Outlines of shapes belong to each pose if the
    view is flat, or if there are no other lines.
    """
    edges: Lines = [(np.array(skeleton.edges), _widths(skeleton))] if skeleton.edges else []
    if flat or not (edges or skeleton.rims):
        return [*edges, *_closed((*skeleton.rims, *skeleton.outlines), _RIM)], []
    return [*edges, *_closed(skeleton.rims, _RIM)], _closed(skeleton.outlines, _OUTLINE)


def _closed(lines: Sequence[tuple[int, ...]], width: float) -> Lines:
    """Return closed lines, grouped by their numbers of points."""
    groups: dict[int, list[tuple[int, ...]]] = {}
    for line in lines:
        groups.setdefault(len(line), []).append((*line, line[0]))
    return [(np.array(group), width) for group in groups.values()]


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
        style.draw_lines(axes, pieces, colors=colours, linewidths=0.8, alpha=0.55 if turns < 40 else 0.3, zorder=2)


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
    return np.asarray(1.6 + 3.4 * np.sqrt(carried(skeleton.edges, skeleton.points.shape[1])))
