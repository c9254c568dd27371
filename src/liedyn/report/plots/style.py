"""Colours, text sizes and rulers that all plots share."""
from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.ticker import MaxNLocator

from liedyn.arrays import ArrayLike
from liedyn.report.plots.figure_files import PlotFigure

# Okabe and Ito's palette, told apart by colour-blind readers too; yellow is left out: too pale on white
BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
CURVES = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILLION)
WARM = (VERMILLION, ORANGE, PURPLE, "#8F3F00", "#8C6D00", "#7D3F60")      # what is prescribed,
COOL = (BLUE, GREEN, SKY, "#003F63", "#005C43", "#6B7F8E")                # what follows from the forces
INK, FAINT, GRID = "#222222", "#777777", "#E3E3E3"
TITLE, NAME, LABEL = 13, 9, 7.5          # points
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
MOST_POINTS = 4000                       # of a curve; more are not seen but make files heavy


def new_figure(width: float, height: float, title: str, subtitle: str = "", key: Sequence[tuple[str, str]] = ()) -> Figure:
    """A white figure, in inches, with its title at the upper left; key: lines (text, colour) at the upper right."""
    figure = PlotFigure(figsize=(width, height), facecolor="white")
    figure.text(0.3 / width, 1 - 0.18 / height, title, size=TITLE, weight="bold", color=INK, va="top")
    if subtitle:
        figure.text(0.3 / width, 1 - 0.44 / height, subtitle, size=NAME, color=FAINT, va="top")
    for k, (text, colour) in enumerate(key):
        figure.text(1 - 0.25 / width, 1 - (0.14 + 0.19 * k) / height, text, size=NAME, color=colour, ha="right", va="top")
    return figure


def panels(count: int, columns: int, width: float, height: float, title: str, subtitle: str = "",  # noqa: PLR0913
           key: Sequence[tuple[str, str]] = (), *, left: float = 0.75, top: float = 0.85, gap: float = 0.42,
           ) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels of a size in inches, and their axes row by row.

    left, top, gap: room before each column, above the first row, between rows [inches].
    """
    rows = -(-count // columns)
    wide, tall = max(columns * (left + width) + 0.25, 4.5), top + rows * (height + gap) - gap + 0.6
    figure = new_figure(wide, tall, title, subtitle, key)
    return figure, [plain_axes(figure, left + column * (left + width), tall - top - height - row * (height + gap), width, height)
                    for row, column in (divmod(k, columns) for k in range(count))]


def plain_axes(figure: Figure, left: float, bottom: float, width: float, height: float, **options: Any) -> Axes:
    """Axes at a place in inches, without matplotlib's own ticks.

    Those take two thirds of the time of a grid of panels (9 panels as PNG: 190 ms with, 90 ms without); `rulers` draws
    what we need of them.
    """
    W, H = figure.get_size_inches()
    axes = figure.add_axes((left / W, bottom / H, width / W, height / H), **options)
    axes.xaxis.set_visible(False)
    axes.yaxis.set_visible(False)
    axes.spines[:].set_visible(False)
    axes.patch.set_visible(False)
    return axes


def wide(axes: Axes) -> float:
    """The width of axes [inches]."""
    return axes.get_position().width * cast(Figure, axes.figure).get_figwidth()


def words(axes: Axes, text: str, at: ArrayLike, offset: ArrayLike, ha: str = "center", va: str = "center",
          **options: Any) -> Annotation:
    """A text in small faint letters, so many points next to a place."""
    options = dict[str, Any](size=LABEL, color=FAINT) | options
    (x, y), (dx, dy) = np.asarray(at), np.asarray(offset)
    return axes.annotate(text, (x, y), (dx, dy), textcoords="offset points", ha=ha, va=va, **options)


def draw_lines(axes: Axes, lines: Any, **options: Any) -> None:
    """Lines, each through its points, which do not change the limits of the axes."""
    axes.add_collection(LineCollection(lines, **options), autolim=False)


def rulers(axes: Axes, x_ticks: int | Sequence[float], y_ticks: int | Sequence[float], x_name: str | None = "", *,
           x_labels: Sequence[str] | None = None, y_labels: Sequence[str] | None = None) -> None:
    """Grid lines at the ticks, or at so many at most, on axes whose limits are set, with their labels and the name of x.

    x_name: None where x has neither a name nor labels, since another panel follows below.
    """
    (x0, x1), (y0, y1) = axes.get_xlim(), axes.get_ylim()
    x_ticks = ticks(x0, x1, x_ticks) if isinstance(x_ticks, int) else x_ticks
    y_ticks = ticks(y0, y1, y_ticks) if isinstance(y_ticks, int) else y_ticks
    lines = [((x0, y), (x1, y)) for y in y_ticks] + [((x, y0), (x, y1)) for x in x_ticks]
    draw_lines(axes, lines, colors=GRID, linewidths=0.7, zorder=0)
    for y, label in zip(y_ticks, y_labels or tick_labels(y_ticks), strict=True):
        words(axes, label, (0, y), (-4, 0), "right", xycoords=axes.get_yaxis_transform())
    if x_name is not None:
        for x, label in zip(x_ticks, x_labels or tick_labels(x_ticks), strict=True):
            words(axes, label, (x, 0), (0, -4), va="top", xycoords=axes.get_xaxis_transform())
        words(axes, x_name, (0.5, 0), (0, -17), va="top", xycoords="axes fraction", color=INK)


def heading(axes: Axes, name: str, remark: str = "", *more: tuple[str, str, str]) -> None:
    """Above the axes: a name, shortened where there is not room for all, a remark, and further (text, colour, weight)."""
    parts = [part for part in ((remark, FAINT, "normal"), *more) if part[0]]
    room = int(15 * wide(axes)) - sum(len(text) + 1 for text, _, _ in parts)
    xycoords: str | Annotation = "axes fraction"
    at, offset = (0, 1), (0, 4)
    for text, colour, weight in ([(shortened(name, max(room, 16)), INK, "bold")] if name else []) + parts:
        word = words(axes, text, at, offset, "left", "bottom", xycoords=xycoords, size=NAME, color=colour, weight=weight)
        at, xycoords, offset = (1, 0), word, (5, 0)


def with_air(x: ArrayLike, min_range: float = 0.0) -> tuple[float, float]:
    """Return the range of the values, extended at both ends by a twentieth of it and by at least `min_range`."""
    low, high = float(np.nanmin(x)), float(np.nanmax(x))
    air = max(0.05 * ((high - low) or abs(low)), min_range) or 1.0
    return low - air, high + air


def time_span(t: np.ndarray) -> tuple[float, float]:
    """Return the first and the last time; if they are equal, 0.5 s before and after them."""
    return (float(t[0]), float(t[-1])) if t[-1] > t[0] else (float(t[0]) - 0.5, float(t[0]) + 0.5)


def curve(axes: Axes, t: np.ndarray, x: np.ndarray, **options: Any) -> None:
    """Draw the curve x over t; a point if there is one row."""
    point: dict[str, Any] = {"marker": "o", "markersize": 4} if len(t) == 1 else {}
    axes.plot(*thinned(t, x), **options, **point)


def thinned(t: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the curve with at most MOST_POINTS points: the minimum and the maximum of each of many short spans."""
    if len(t) <= MOST_POINTS:
        return t, x
    starts = np.linspace(0, len(t), MOST_POINTS // 2, endpoint=False).astype(int)
    spans = np.array_split(np.arange(len(t)), starts[1:])
    rows = np.unique([k for span in spans for k in (span[x[span].argmin()], span[x[span].argmax()])])
    return t[rows], x[rows]


def ticks(lower: float, upper: float, max_count: int) -> list[float]:
    """Return round values within [lower, upper], with at most `max_count` intervals."""
    slack = 1e-9 * (upper - lower)
    return [float(x) for x in MaxNLocator(max_count, steps=[1, 2, 5, 10]).tick_values(lower, upper)
            if lower - slack <= x <= upper + slack]


def tick_labels(values: Sequence[float]) -> list[str]:
    """Return the values as text, with the digits that distinguish them."""
    if len(values) < 2:
        return [f"{x:.3g}" for x in values]
    step = min(abs(b - a) for a, b in pairwise(values))
    largest = max(map(abs, values))
    if 1e-3 <= largest < 1e5:
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        return [f"{round(x, decimals) + 0.0:.{decimals}f}" for x in values]         # + 0.0: no minus zero
    digits = 1 + math.ceil(math.log10(largest / step))
    return [f"{round(x / step) * step:.{digits}g}" for x in values]


def powers(exponents: Sequence[int]) -> list[str]:
    """Powers of ten as labels; matplotlib's formulas would take 20 ms each."""
    return ["10" + str(k).translate(_RAISED) for k in exponents]


def unit_text(unit: str) -> str:
    """`N m` and `rad/s^2` as people write them."""
    return unit.replace("^2", "²").replace("N m", "N·m")


def shortened(name: str, max_length: int) -> str:
    """The name, or its two ends around an ellipsis: joints often differ in either."""
    if len(name) <= max_length:
        return name
    head = (max_length - 1) // 2
    return name[:head] + "…" + name[len(name) - (max_length - 1 - head):]
