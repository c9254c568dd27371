"""Colours, text sizes and rulers that all pictures share."""
from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

# Okabe and Ito's palette, told apart by colour-blind readers too; yellow is left out: too pale on white
BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY = "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9"
CURVES = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILLION)
WARM = (VERMILLION, ORANGE, PURPLE, "#8F3F00", "#8C6D00", "#7D3F60")      # what is prescribed,
COOL = (BLUE, GREEN, SKY, "#003F63", "#005C43", "#6B7F8E")                # what follows from the forces
INK, FAINT, GRID = "#222222", "#777777", "#E3E3E3"
TITLE, NAME, LABEL = 13, 9, 7.5          # points
MOST_POINTS = 4000                       # of a curve; more are not seen but make files heavy


def new_figure(width: float, height: float, title: str, subtitle: str = "") -> Figure:
    """A white figure, in inches, with its title at the upper left."""
    figure = Figure(figsize=(width, height), facecolor="white")
    figure.text(0.3 / width, 1 - 0.18 / height, title, size=TITLE, weight="bold", color=INK, va="top")
    if subtitle:
        figure.text(0.3 / width, 1 - 0.44 / height, subtitle, size=NAME, color=FAINT, va="top")
    return figure


def plain_axes(figure: Figure, left: float, bottom: float, width: float, height: float, **options) -> Axes:
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


def rulers(axes: Axes, x_ticks: Sequence[float], y_ticks: Sequence[float], *, x_labels: bool = True,
           y_labels: Sequence[str] | None = None) -> None:
    """Grid lines at the ticks, and their labels, on axes whose limits are set."""
    (x0, x1), (y0, y1) = axes.get_xlim(), axes.get_ylim()
    lines = [((x0, y), (x1, y)) for y in y_ticks] + [((x, y0), (x, y1)) for x in x_ticks]
    axes.add_collection(LineCollection(lines, colors=GRID, linewidths=0.7, zorder=0), autolim=False)
    for y, label in zip(y_ticks, y_labels or tick_labels(y_ticks), strict=True):
        axes.annotate(label, (0, y), (-4, 0), xycoords=axes.get_yaxis_transform(), textcoords="offset points",
                      ha="right", va="center", size=LABEL, color=FAINT)
    if x_labels:
        for x, label in zip(x_ticks, tick_labels(x_ticks), strict=True):
            axes.annotate(label, (x, 0), (0, -4), xycoords=axes.get_xaxis_transform(), textcoords="offset points",
                          ha="center", va="top", size=LABEL, color=FAINT)


def heading(axes: Axes, *words: tuple[str, str, str]) -> None:
    """Words above the axes, one after the other: (text, colour, weight)."""
    at, xycoords, offset = (0, 1), "axes fraction", (0, 4)
    for text, colour, weight in words:
        word = axes.annotate(text, at, offset, xycoords=xycoords, textcoords="offset points", ha="left", va="bottom", size=NAME,
                             color=colour, weight=weight)
        at, xycoords, offset = (1, 0), word, (5, 0)


def name_time(axes: Axes) -> None:
    axes.annotate("t [s]", (0.5, 0), (0, -17), xycoords="axes fraction", textcoords="offset points", ha="center", va="top",
                  size=LABEL, color=INK)


def time_span(t: np.ndarray) -> tuple[float, float]:
    """From the first to the last time, never empty."""
    return (float(t[0]), float(t[-1])) if t[-1] > t[0] else (float(t[0]) - 0.5, float(t[0]) + 0.5)


def thinned(t: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The curve with at most MOST_POINTS points: least and greatest value of each of many short spans."""
    if len(t) <= MOST_POINTS:
        return t, x
    starts = np.linspace(0, len(t), MOST_POINTS // 2, endpoint=False).astype(int)
    spans = np.array_split(np.arange(len(t)), starts[1:])
    keep = np.unique([k for span in spans for k in (span[x[span].argmin()], span[x[span].argmax()])])
    return t[keep], x[keep]


def ticks(lower: float, upper: float, most: int) -> list[float]:
    """Round values within [lower, upper], at most `most` intervals."""
    slack = 1e-9 * (upper - lower)
    return [float(x) for x in MaxNLocator(most, steps=[1, 2, 5, 10]).tick_values(lower, upper)
            if lower - slack <= x <= upper + slack]


def tick_labels(values: Sequence[float]) -> list[str]:
    """The values with just the digits that tell them apart."""
    if len(values) < 2:
        return [f"{x:.3g}" for x in values]
    step = min(abs(b - a) for a, b in pairwise(values))
    largest = max(map(abs, values))
    if 1e-3 <= largest < 1e5:
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        return [f"{round(x, decimals) + 0.0:.{decimals}f}" for x in values]         # + 0.0: no minus zero
    digits = 1 + math.ceil(math.log10(largest / step))
    return [f"{round(x / step) * step:.{digits}g}" for x in values]


def unit_text(unit: str) -> str:
    """`N m` and `rad/s^2` as people write them."""
    return unit.replace("^2", "²").replace("N m", "N·m")


def shortened(name: str, most: int) -> str:
    """The name, or its two ends around an ellipsis: joints often differ in either."""
    if len(name) <= most:
        return name
    head = (most - 1) // 2
    return name[:head] + "…" + name[len(name) - (most - 1 - head):]
