"""Planar mechanisms to scale: links, pivots on the ground, coupler curves, as a figure and as a DXF file for CAD programs."""
from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from liedyn.arrays import Array
from liedyn.errors import LiedynWarning, UsageError, list_names
from liedyn.model.model import Model
from liedyn.report.plots import palette, style
from liedyn.report.plots.plot_data import Mechanism, PlotData, Point, skeleton

PLANES = ("xy", "xz", "yz")
_WIDTH = 7.0                            # inches
_MARGIN = 0.45                          # inches, around the mechanism
_INCH = 0.0254                          # m
_STILL = 1e-9                           # of the size: a point that moves less is fixed to the ground
_PLANAR = 1e-6                          # of the size: motion perpendicular to the plane that is rounding
_PIVOT = 0.11                           # inches: height of the sign of a pivot on the ground
_MILLIMETRES = 1000.0


def curve_point(text: str, model: Model) -> Point:
    """Return the link and the point of a text such as "coupler" or "coupler:0.1,0,-0.2". Raise UsageError for another text."""
    link, _, position = text.rpartition(":") if text not in model.link_names else (text, "", "")
    try:
        values = tuple(float(x) for x in position.split(",")) if position else (0.0, 0.0, 0.0)
    except ValueError:
        values = ()
    if len(values) != 3 or not all(map(math.isfinite, values)) or (not link and position == text):
        raise UsageError(f"curve {text!r} is not LINK or LINK:X,Y,Z, with three numbers [m] in the axes of the link; the robot "
                         f"has the links {list_names(model.link_names, 12)}")
    model.link_index(link)                                     # raises for a link that does not exist
    return link, values


def mechanism_of(model: Model, t: Array, q: Array, plane: str,
                 curves: Sequence[str]) -> tuple[Mechanism, tuple[LiedynWarning, ...]]:
    """Return the mechanism of a motion in a plane of the world, and a warning if it also moves perpendicular to the plane.

    Links are drawn at the first time. Raises UsageError for a robot without links to draw, and for invalid curves.
    """
    from liedyn.dynamics.kinematics import link_poses

    drawn = skeleton(model, t, q)
    if drawn is None:
        raise UsageError("the robot has no lines to draw: no link is longer than a point")
    points = [(text if any(at) else link, link, at) for text in curves for link, at in [curve_point(text, model)]]
    T = link_poses(model, q) if points else np.zeros((len(t), 0, 4, 4))
    paths = [T[:, k, :3, :3] @ np.array(at) + T[:, k, :3, 3] for _, link, at in points for k in [model.link_index(link)]]
    size = float(np.ptp(drawn.points.reshape(-1, 3), axis=0).max())
    moved = np.ptp(drawn.points, axis=0)
    normal = next(k for k, axis in enumerate("xyz") if axis not in plane)
    beyond = max([float(moved[:, normal].max()), *(float(np.ptp(path[:, normal])) for path in paths)])
    warnings = () if beyond <= _PLANAR * size else (LiedynWarning(
        "not-planar", f"the motion leaves the plane {plane} by up to {beyond:.3g} m; its projection is drawn"),)
    columns = ["xyz".index(axis) for axis in plane]
    ends = sorted({k for edge in drawn.edges for k in edge})
    fixed = tuple(k for k in ends if moved[k].max() <= _STILL * size)
    return Mechanism(plane, drawn.points[0][:, columns], drawn.edges, fixed, drawn.rims,
                     tuple((text, path[:, columns]) for (text, _, _), path in zip(points, paths, strict=True))), warnings


def drawing_scale(mechanism: Mechanism, width: float) -> tuple[float, str]:
    """Return the factor from the mechanism to the paper, 1, 2 or 5 times a power of ten, and its text, such as "1:5".

    width: of the paper for the mechanism [inches], which is at most 1.2 times as high
    """
    size = np.ptp(_outline(mechanism), axis=0)
    largest = min(width * _INCH / max(size[0], 1e-12), 1.2 * width * _INCH / max(size[1], 1e-12))
    power = 10.0 ** math.floor(math.log10(largest))
    factor = power * max(k for k in (1, 2, 5) if k * power <= largest * (1 + 1e-9))
    return factor, f"{factor:g}:1" if factor >= 1 else f"1:{1 / factor:g}"


def _outline(mechanism: Mechanism) -> Array:
    """Return all points (n, 2) that are drawn."""
    ends = sorted({k for edge in mechanism.edges for k in edge} | {k for rim in mechanism.rims for k in rim})
    return np.concatenate([mechanism.points[ends], *(path for _, path in mechanism.curves)])


def draw_mechanism(mechanism: Mechanism, recording: PlotData) -> Figure:
    """Draw the mechanism to scale: lengths of the figure are lengths of the mechanism times the scale that is written on it.

    In another size (`set_size_inches`), no scale is written, and the bar still shows its length.
    """
    look = recording.look
    width = look.width or _WIDTH
    factor, text = drawing_scale(mechanism, width - 2 * _MARGIN)
    outline = _outline(mechanism)
    middle, size = 0.5 * (outline.min(axis=0) + outline.max(axis=0)), np.ptp(outline, axis=0)
    height = factor * size[1] / _INCH + 2 * _MARGIN + 0.3
    key = [(f"{style.sign(look, k)} {name}", _curve_colour(k)) for k, (name, _) in enumerate(mechanism.curves)]
    figure = style.new_figure(width, height, "Mechanism", recording.title, key, look)
    inch = _INCH / factor                                      # of the paper, in metres of the mechanism
    low = middle - 0.5 * np.array([width * inch, factor * size[1] / _INCH * inch + 2 * _MARGIN * inch]) - [0.0, 0.3 * inch]
    axes = style.plain_axes(figure, 0.0, 0.0, width, height, xlim=(low[0], low[0] + width * inch),
                            ylim=(low[1], low[1] + height * inch))
    axes.set_aspect("equal")
    _draw_curves(axes, mechanism)
    _draw_links(axes, mechanism, inch)
    _draw_scale(axes, mechanism, inch, text)
    return figure


def _curve_colour(k: int) -> str:
    return palette.CURVES[k % len(palette.CURVES)]


def _draw_curves(axes: Axes, mechanism: Mechanism) -> None:
    look = style.parent_figure(axes).look
    for k, (_, path) in enumerate(mechanism.curves):
        axes.plot(*path.T, color=_curve_colour(k), linestyle=style.line_pattern(look, k), linewidth=1.2, zorder=2)
        axes.plot(*path[0], "o", color=_curve_colour(k), markersize=4, zorder=5)


def _draw_links(axes: Axes, mechanism: Mechanism, inch: float) -> None:
    points = mechanism.points
    bars = [points[list(edge)] for edge in mechanism.edges if not set(edge) <= set(mechanism.fixed)]
    style.draw_lines(axes, [*bars, *(points[[*rim, rim[0]]] for rim in mechanism.rims)], colors=palette.INK, linewidths=2.0,
                     capstyle="round", zorder=3)
    joints = sorted({k for edge in mechanism.edges for k in edge})
    axes.plot(*points[joints].T, "o", color="white", markeredgecolor=palette.INK, markersize=5, markeredgewidth=1.0, zorder=6)
    h = _PIVOT * inch
    for x, y in points[list(mechanism.fixed)]:                 # a triangle on hatched ground
        triangle = [(x, y), (x - 0.6 * h, y - h), (x + 0.6 * h, y - h), (x, y)]
        ground = [((x - h, y - h), (x + h, y - h))]
        ground += [((x + at * h, y - h), (x + (at - 0.35) * h, y - 1.35 * h)) for at in (-0.6, -0.2, 0.2, 0.6, 1.0)]
        style.draw_lines(axes, [triangle, *ground], colors=palette.INK, linewidths=0.9, zorder=4)


def _draw_scale(axes: Axes, mechanism: Mechanism, inch: float, text: str) -> None:
    """Draw a bar of a round length, the scale, and the axes of the plane, in the lower left corner."""
    (x, _), (y, _) = axes.get_xlim(), axes.get_ylim()
    x, y = x + 0.25 * inch, y + 0.14 * inch
    power = 10.0 ** math.floor(math.log10(1.2 * inch))
    length = power * max(k for k in (1, 2, 5) if k * power <= 1.2 * inch)
    style.draw_lines(axes, [((x, y), (x + length, y))], colors=palette.INK, linewidths=2.0)
    figure = style.parent_figure(axes)
    look, size = figure.look, tuple(figure.get_size_inches())

    def label() -> list[Artist]:
        scale = f"   scale {text}" if tuple(figure.get_size_inches()) == size else ""
        return [style.words(axes, f"{length * _MILLIMETRES:g} mm{scale}", (x + length, y), (5, 0), "left", size=look.name,
                            color=palette.INK)]

    figure.adapt(label)
    for k, axis in enumerate(mechanism.plane):
        tip = np.array([x, y + 0.18 * inch]) + 0.3 * inch * np.eye(2)[k]
        style.draw_lines(axes, [((x, y + 0.18 * inch), tuple(tip))], colors=palette.AXES[axis], linewidths=1.2)
        style.words(axes, axis, tip, 6 * np.eye(2)[k], size=look.name, color=palette.AXES[axis])


def check_dxf() -> None:
    """Raise UsageError if the package that writes DXF files is not installed."""
    if find_spec("ezdxf") is None:
        raise UsageError("writing DXF files requires the package ezdxf: pip install 'liedyn[dxf]'")


def save_dxf(mechanism: Mechanism, path: Path) -> None:
    """Write the mechanism in millimetres: layers LINKS, JOINTS, GROUND, and CURVE_1, CURVE_2, … with the names of the curves."""
    check_dxf()
    ezdxf: Any = import_module("ezdxf")
    previous = ezdxf.options.write_fixed_meta_data_for_testing
    ezdxf.options.write_fixed_meta_data_for_testing = True     # no date: the same mechanism gives the same bytes
    try:
        document = ezdxf.new("R2010", units=ezdxf.units.MM)
        _add_entities(document, mechanism)
        document.saveas(path)
    finally:
        ezdxf.options.write_fixed_meta_data_for_testing = previous


def _add_entities(document: Any, mechanism: Mechanism) -> None:
    space, points = document.modelspace(), _MILLIMETRES * mechanism.points
    radius = 0.01 * _MILLIMETRES * float(np.ptp(_outline(mechanism), axis=0).max())
    for layer, colour in (("LINKS", 7), ("JOINTS", 7), ("GROUND", 8)):
        document.layers.add(layer, color=colour)
    for a, b in mechanism.edges:
        if not {a, b} <= set(mechanism.fixed):
            space.add_line(tuple(points[a]), tuple(points[b]), dxfattribs={"layer": "LINKS"})
    for rim in mechanism.rims:
        space.add_lwpolyline([tuple(point) for point in points[list(rim)]], close=True, dxfattribs={"layer": "LINKS"})
    for k in sorted({k for edge in mechanism.edges for k in edge}):
        space.add_circle(tuple(points[k]), radius, dxfattribs={"layer": "GROUND" if k in mechanism.fixed else "JOINTS"})
    for k, (name, path_of_point) in enumerate(mechanism.curves, 1):
        document.layers.add(f"CURVE_{k}", color=k).description = name
        space.add_lwpolyline([tuple(point) for point in _MILLIMETRES * path_of_point], dxfattribs={"layer": f"CURVE_{k}"})
