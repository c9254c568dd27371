"""Texts, rulers and panels that all plots share."""
from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, cast

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.ticker import MaxNLocator

from liedyn.arrays import ArrayLike
from liedyn.report.plots.figure_files import PlotFigure
from liedyn.report.plots.palette import BAND, FAINT, GRID, HATCHES, INK, LINES, SCREEN, Look

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
MOST_POINTS = 4000                       # of a curve; more are not seen but make files heavy
_LETTER, _BOLD = 0.56 / 72, 0.66 / 72    # mean width of a letter [inches] for a size of one point
_NO_BREAK = "\u00a0"                     # a space at which lines do not end: within parentheses
_SMALL, _SMALL_PRINT = 0.7, 0.8          # smallest size of headings, of the usual one, on screens and in print
_PANEL = 1.05                            # smallest width of a panel of a figure with a given width [inches]
_LABEL = 5                               # characters of a tick label for which there is room
_MARK_LINES = 12                         # events with lines in panels; more have short marks

Key = Sequence[tuple[str, str]]          # lines (text, colour)


def new_figure(width: float, height: float, title: str, subtitle: str = "", key: Key = (), look: Look = SCREEN) -> PlotFigure:
    """Return a white figure with a title at the upper left and a key at the upper right, above `height` [inches] of content."""
    header = _header(width, title, subtitle, key, look)
    below = 0.05 if look.paper else 0.08
    tall = height + max((top + size * 1.45 / 72 for _, _, top, size, _, _, _ in header), default=0.0) + below
    figure = PlotFigure(figsize=(width, tall), facecolor="white", look=look)
    for text, x, top, size, colour, weight, ha in header:
        figure.text(x / width, 1 - top / tall, text, size=size, weight=weight, color=colour, ha=ha, va="top")
    return figure


def _header(width: float, title: str, subtitle: str, key: Key, look: Look,
            ) -> list[tuple[str, float, float, float, str, str, str]]:
    """Return lines (text, left, top, size, colour, weight, alignment) above a figure; left and top in inches."""
    if look.paper:
        title = subtitle = ""
    top, margin, lines = 0.06 if look.paper else 0.18, 0.3, []
    wide_key = max((len(text) * _LETTER * look.name for text, _ in key), default=0.0)
    fits = len(title) * _BOLD * look.title + wide_key + 2.5 * margin <= width and len(key) <= 3 and not look.paper
    room = width - 2 * margin - (wide_key if fits else 0.0)
    for text, size, weight, colour in ((title, look.title, "bold", INK), (subtitle, look.name, "normal", FAINT)):
        per_letter = _BOLD if weight == "bold" else _LETTER
        unbroken = re.sub(r"\([^()]{,40}\)", lambda part: part[0].replace(" ", _NO_BREAK), text)
        for line in textwrap.wrap(unbroken, max(int(room / (per_letter * size)), 10)):
            lines.append((line.replace(_NO_BREAK, " "), margin, top, size, colour, weight, "left"))
            top += 1.45 * size / 72
    if fits:
        return lines + [(text, width - 0.25, 0.14 + 0.19 * k, look.name, colour, "normal", "right")
                        for k, (text, colour) in enumerate(key)]
    at = margin if not look.paper else 0.1
    for text, colour in key:
        length = len(text) * _LETTER * look.name + 0.15
        if at + length > width and at > margin:
            at, top = margin if not look.paper else 0.1, top + 1.45 * look.name / 72
        lines.append((text, at, top, look.name, colour, "normal", "left"))
        at += length
    return lines


def panels(count: int, columns: int, width: float, height: float, title: str, subtitle: str = "",  # noqa: PLR0913
           key: Key = (), *, left: float = 0.75, right: float = 0.25, gap: float = 0.42,
           look: Look = SCREEN) -> tuple[PlotFigure, list[Axes]]:
    """Return a figure with `count` panels of a size in inches, and their axes row by row.

    A figure with a given width has at most `columns` columns, of panels that fill it.
    left, right, gap: room before each column, after the last one, between rows [inches].
    """
    below = 0.36 if look.paper else 0.5
    if look.width is not None:
        left, right = min(left, 0.6) if left < 1.0 else left, min(right, 0.12)         # names of bars keep their room
        columns = next(n for n in range(min(columns, count), 0, -1) if n == 1 or (look.width - right) / n - left >= _PANEL)
        width = max((look.width - right) / columns - left, 0.5)
        height = min(height, max(0.55 * width, 0.75))
    wide, above = look.width or max(columns * (left + width) + right, 4.5), 1.6 * look.name / 72
    rows = -(-count // columns)
    tall = above + rows * (height + gap) - gap + below
    figure = new_figure(wide, tall, title, subtitle, key, look)
    top = tall - above - height
    return figure, [plain_axes(figure, left + column * (left + width), top - row * (height + gap), width, height)
                    for row, column in (divmod(k, columns) for k in range(count))]


def count_columns(places: Sequence[Axes]) -> int:
    """Return the number of columns of panels."""
    return len({round(axes.get_position().x0, 6) for axes in places})


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


def parent_figure(axes: Axes) -> PlotFigure:
    """Return the figure of axes."""
    return cast(PlotFigure, axes.figure)


def wide(axes: Axes) -> float:
    """The width of axes [inches]."""
    return axes.get_position().width * parent_figure(axes).get_figwidth()


def tall(axes: Axes) -> float:
    """The height of axes [inches]."""
    return axes.get_position().height * parent_figure(axes).get_figheight()


def words(axes: Axes, text: str, at: ArrayLike, offset: ArrayLike, ha: str = "center", va: str = "center",
          **options: Any) -> Annotation:
    """A text in small faint letters, so many points next to a place."""
    options = dict[str, Any](size=parent_figure(axes).look.label, color=FAINT) | options
    (x, y), (dx, dy) = np.asarray(at), np.asarray(offset)
    return axes.annotate(text, (x, y), (dx, dy), textcoords="offset points", ha=ha, va=va, **options)


def draw_lines(axes: Axes, lines: Any, **options: Any) -> LineCollection:
    """Lines, each through its points, which do not change the limits of the axes."""
    collection = LineCollection(lines, **options)
    axes.add_collection(collection, autolim=False)
    return collection


def rulers(axes: Axes, x_ticks: int | Sequence[float], y_ticks: int | Sequence[float], x_name: str | None = "",
           *, x_labels: Sequence[str] | None = None, y_labels: Sequence[str] | None = None, y_names: Sequence[str] = ()) -> None:
    """Grid lines at the ticks, or at so many at most, on axes whose limits are set, with their labels and names.

    x_name: None where x has neither a name nor labels, since another panel follows below.
    y_names: of the quantity with its unit, the longest first; the first one for which there is room is drawn.
    """
    parent_figure(axes).adapt(partial(_draw_rulers, axes, x_ticks, y_ticks, x_name, x_labels, y_labels, y_names))


def _draw_rulers(axes: Axes, x_ticks: int | Sequence[float], y_ticks: int | Sequence[float], x_name: str | None,
                 x_labels: Sequence[str] | None, y_labels: Sequence[str] | None, y_names: Sequence[str]) -> list[Artist]:
    (x0, x1), (y0, y1), size = axes.get_xlim(), axes.get_ylim(), parent_figure(axes).look.label
    if isinstance(x_ticks, int):
        x_ticks = ticks(x0, x1, max(min(x_ticks, int(wide(axes) / 0.5)), 2))
    if isinstance(y_ticks, int):
        y_ticks = ticks(y0, y1, max(min(y_ticks, int(tall(axes) / 0.25)), 2))
    x_labels, y_labels = x_labels or tick_labels(x_ticks), y_labels or tick_labels(y_ticks)
    lines = [((x0, y), (x1, y)) for y in y_ticks] + [((x, y0), (x, y1)) for x in x_ticks]
    drawn: list[Artist] = [draw_lines(axes, lines, colors=GRID, linewidths=0.7, zorder=0)]
    drawn += [words(axes, label, (0, y), (-4, 0), "right", xycoords=axes.get_yaxis_transform())
              for y, label in zip(y_ticks, y_labels, strict=True)]
    if x_name is not None:
        drawn += [words(axes, label, (x, 0), (0, -4), va="top", xycoords=axes.get_xaxis_transform())
                  for x, label in zip(x_ticks, x_labels, strict=True)]
        drawn.append(words(axes, x_name, (0.5, 0), (0, -6 - 1.3 * size), va="top", xycoords="axes fraction", color=INK))
    name = next((name for name in y_names if len(name) * _LETTER * size <= tall(axes) + 0.2), "")
    if name:
        offset = 7 + 0.57 * size * max(_LABEL, *map(len, y_labels))         # the same in most panels of a column
        drawn.append(words(axes, name, (0, 0.5), (-offset, 0), "right", xycoords="axes fraction", rotation=90, color=INK))
    return drawn


def heading(axes: Axes, name: str, remark: str = "", *more: tuple[str, str, str]) -> None:
    """Above the axes: a name, shortened where there is not room for all, a remark, and further (text, colour, weight)."""
    parent_figure(axes).adapt(partial(_draw_heading, axes, name, remark, more))


def _draw_heading(axes: Axes, name: str, remark: str, more: Sequence[tuple[str, str, str]]) -> list[Artist]:
    look = parent_figure(axes).look
    parts = [part for part in ((remark, FAINT, "normal"), *more) if part[0]]
    taken = sum((len(text) + 1) * (_BOLD if weight == "bold" else _LETTER) for text, _, weight in parts)
    needed = (len(name) * _BOLD + taken) * look.name
    smallest = _SMALL_PRINT if look.paper else _SMALL
    size = look.name * min(1.0, max(1.1 * wide(axes) / needed, smallest)) if needed else look.name     # fits above the panel
    shortest = min(len(name), 8 if look.paper else 16)
    room = int((1.1 * wide(axes) / size - taken) / _BOLD + 1e-6)
    xycoords: str | Annotation = "axes fraction"
    at, offset, drawn = (0, 1), (0, 4), list[Artist]()
    for text, colour, weight in ([(shortened(name, max(room, shortest)), INK, "bold")] if name else []) + parts:
        word = words(axes, text, at, offset, "left", "bottom", xycoords=xycoords, size=size, color=colour, weight=weight)
        at, xycoords, offset = (1, 0), word, (5, 0)
        drawn.append(word)
    return drawn


def draw_marks(axes: Axes, events: Sequence[float], phases: Sequence[tuple[float, float, str]], names: bool) -> None:
    """Draw dotted lines at the times of events, and bands of every second phase, with the names of phases if `names`."""
    for k, (begin, end, name) in enumerate(phases):
        if k % 2:
            axes.axvspan(begin, end, color=BAND, linewidth=0, zorder=-1)
        room = (end - begin) / float(np.ptp(axes.get_xlim())) * wide(axes)
        if names and room >= len(name) * _LETTER * parent_figure(axes).look.label:
            words(axes, name, (0.5 * (begin + end), 1), (0, -2), va="top", xycoords=axes.get_xaxis_transform())
    many = len(events) > _MARK_LINES
    for t in events:
        axes.axvline(t, 0.95 if many else 0.0, color=FAINT, linestyle="-" if many else (0, (1, 2)), linewidth=0.8, zorder=0.5)


def hatch(look: Look, k: int) -> str:
    """Return the hatching of the k-th filled area of a panel: areas are hatched in print only."""
    return HATCHES[k % len(HATCHES)] if look.paper else ""


def line_pattern(look: Look, k: int) -> Any:
    """Return the pattern of the k-th curve of a panel: patterns differ in print only."""
    return LINES[k % len(LINES)][0] if look.paper else "-"


def key_label(look: Look, k: int, label: str) -> str:
    """Return the label of the k-th curve of a panel, in print with its pattern."""
    return f"{sign(look, k)} {label}" if look.paper and label else label


def sign(look: Look, k: int) -> str:
    """Return the sign of the pattern of the k-th curve in a key."""
    return LINES[k % len(LINES)][1] if look.paper else LINES[0][1]


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
    return unit if " or " in unit else unit.replace("^2", "²").replace(" ", "·")


def joined(*remarks: str) -> str:
    """Return the remarks that are not empty as one line."""
    return " · ".join(filter(None, remarks))


def shortened(name: str, max_length: int) -> str:
    """The name, or its two ends around an ellipsis: joints often differ in either."""
    if len(name) <= max_length:
        return name
    head = (max_length - 1) // 2
    return name[:head] + "…" + name[len(name) - (max_length - 1 - head):]
