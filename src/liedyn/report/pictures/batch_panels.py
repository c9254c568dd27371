"""Many runs at once: outputs against what varied, their distributions, what they depend on, envelopes of trajectories."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from liedyn.report.pictures import style

_LEFT, _RIGHT, _TOP, _BOTTOM, _GAP_X, _GAP_Y = 0.85, 0.25, 0.85, 0.6, 0.8, 0.6      # inches
_POINTS = 3000           # that are drawn in a panel
_SLICES = 20             # of a curve of medians
BANDS = ((0.05, 0.95, "#CFE3F1"), (0.25, 0.75, "#8FBFE0"))


@dataclass(frozen=True)
class Quantity:
    """A column of the table: numbers of the runs that are complete; outputs may be NaN, where an event did not happen."""

    name: str
    values: np.ndarray


@dataclass(frozen=True)
class Swing:
    """Of an output: its value at the medians of what varied, and by how much it changes by a standard deviation of each, to first
    order (varied,), NaN where that is not known. way: how derivatives were found."""

    name: str
    base: float
    changes: np.ndarray
    way: str


@dataclass(frozen=True)
class Envelope:
    """Quantiles of a column of the trajectories over time: (5, R) at 5, 25, 50, 75 and 95 %."""

    name: str
    unit: str
    t: np.ndarray
    quantiles: np.ndarray


def draw_scatter(varied: Sequence[Quantity], outputs: Sequence[Quantity], subtitle: str) -> Figure:
    """A row for each output, a column for what varied; the line follows the median."""
    width, height = 2.6 if len(varied) > 2 else 3.6, 1.7
    figure, place = _grid(len(outputs), len(varied), width, height, "Outputs and what varied", f"{subtitle}; line: median")
    for i, output in enumerate(outputs):
        for k, one in enumerate(varied):
            x, y = _with_value(one, output)
            axes = _axes(figure, place(i, k), x, y)
            style.rulers(axes, style.ticks(*axes.get_xlim(), most=4), style.ticks(*axes.get_ylim(), most=4))
            some = _some(len(x), _POINTS)
            axes.plot(x[some], y[some], ".", color=style.BLUE, alpha=0.5, markeredgewidth=0,
                      markersize=2.5 if len(some) > 1000 else 5)
            _medians(axes, x, y)
            if k == 0:
                style.heading(axes, (style.shortened(output.name, 40), style.INK, "bold"))
            _name_below(axes, one.name, width)
    return figure


def draw_histograms(outputs: Sequence[Quantity], subtitle: str) -> Figure:
    """With the median and the middle nine tenths."""
    columns = 1 if len(outputs) == 1 else 2 if len(outputs) < 5 else 3
    figure, place = _grid(-(-len(outputs) // columns), columns, 3.6, 1.7, "Outputs",
                          f"{subtitle}; median, and where 90 % of them are")
    for n, output in enumerate(outputs):
        x = output.values[np.isfinite(output.values)]
        bins = int(np.clip(math.sqrt(len(x)), 5, 60))
        counts, edges = np.histogram(x, bins, range=_span(x))
        most = 1.08 * max(counts.max(), 1)
        axes = style.plain_axes(figure, *place(*divmod(n, columns)), xlim=(edges[0], edges[-1]), ylim=(0, most))
        style.rulers(axes, style.ticks(*axes.get_xlim(), most=5), [y for y in style.ticks(0, most, most=3) if y == int(y)])
        axes.bar(edges[:-1], counts, np.diff(edges), align="edge", color=style.SKY, linewidth=0)
        low, middle, high = np.quantile(x, (0.05, 0.5, 0.95))
        for at, line in ((low, (0, (2, 2))), (middle, "-"), (high, (0, (2, 2)))):
            axes.plot([at, at], axes.get_ylim(), color=style.INK, linewidth=0.9, linestyle=line)
        style.heading(axes, (style.shortened(output.name, 22), style.INK, "bold"),
                      (f"{middle:.4g}, 90 % in {low:.4g} … {high:.4g}", style.FAINT, "normal"))
    return figure


def draw_indices(varied: Sequence[Quantity], outputs: Sequence[Quantity], subtitle: str) -> Figure:
    """Bars: the share of each output's variance that a quantity alone accounts for, see `first_order`; the largest on top. The
    rest is interactions, and the error of the estimate: with few runs the slices are wide."""
    height = 0.24 * len(varied) + 0.1
    columns, names = 1 if len(outputs) == 1 else 2, [style.shortened(one.name, 34) for one in varied]
    left = max(_LEFT, 0.3 + 0.062 * max(map(len, names)))                   # inches of a letter
    figure, place = _grid(-(-len(outputs) // columns), columns, 3.0, height, "What outputs depend on",
                          f"{subtitle}; first-order Sobol indices", left)
    for n, output in enumerate(outputs):
        shares = [first_order(*_with_value(one, output)) for one in varied]
        order = np.argsort(shares, kind="stable")
        axes = style.plain_axes(figure, *place(*divmod(n, columns)), xlim=(0, 1), ylim=(-0.6, len(varied) - 0.4))
        style.rulers(axes, (0, 0.5, 1), range(len(varied)), y_labels=[names[k] for k in order])
        axes.barh(range(len(varied)), [shares[k] for k in order], 0.6, color=style.BLUE, linewidth=0)
        if n >= len(outputs) - columns:
            _name_below(axes, "share of the variance", 3.0)
        rest = 1.0 - sum(shares)
        style.heading(axes, (style.shortened(output.name, 30), style.INK, "bold"),
                      (f"rest {100 * max(rest, 0.0):.0f} %", style.FAINT, "normal"))
    return figure


def draw_tornado(names: Sequence[str], swings: Sequence[Swing], subtitle: str) -> Figure:
    """A bar from one standard deviation less to one more of each varied quantity, the longest on top; the darker half is that of
    more."""
    height = 0.24 * len(names) + 0.1
    columns, names = 1 if len(swings) == 1 else 2, [style.shortened(name, 34) for name in names]
    left = max(_LEFT, 0.3 + 0.062 * max(map(len, names)))                   # inches of a letter
    figure, place = _grid(-(-len(swings) // columns), columns, 3.0, height, "Changes of outputs by one standard deviation",
                          f"{subtitle}; derivatives at the medians; dark: the input is larger, light: smaller", left)
    for n, one in enumerate(swings):
        sizes = np.nan_to_num(np.abs(one.changes), nan=-1.0)
        order = np.argsort(sizes, kind="stable")
        most = 1.08 * max(float(sizes.max()), 0.0) or 1.0
        axes = style.plain_axes(figure, *place(*divmod(n, columns)), xlim=(-most, most), ylim=(-0.6, len(names) - 0.4))
        style.rulers(axes, style.ticks(-most, most, most=4), range(len(names)), y_labels=[names[k] for k in order])
        for row, k in enumerate(order):
            if np.isfinite(one.changes[k]):
                axes.barh(row, -one.changes[k], 0.6, color=style.SKY, linewidth=0)
                axes.barh(row, one.changes[k], 0.6, color=style.BLUE, linewidth=0)
            else:
                axes.annotate("not known", (0, row), size=style.LABEL, color=style.FAINT, ha="center", va="center")
        style.heading(axes, (style.shortened(one.name, 26), style.INK, "bold"),
                      (f"{one.base:.4g}, {one.way}", style.FAINT, "normal"))
    return figure


def draw_envelopes(envelopes: Sequence[Envelope], subtitle: str) -> Figure:
    """Medians over time, within the bands of half and of nine tenths of the runs."""
    columns = 1 if len(envelopes) < 3 else 2 if len(envelopes) < 9 else 3
    figure, place = _grid(-(-len(envelopes) // columns), columns, 4.2, 1.5, "Envelopes",
                          f"{subtitle}; median, bands of 50 and 90 %")
    for n, one in enumerate(envelopes):
        low, high = _span(one.quantiles)
        axes = style.plain_axes(figure, *place(*divmod(n, columns)), xlim=style.time_span(one.t), ylim=(low, high))
        style.rulers(axes, style.ticks(*axes.get_xlim(), most=6), style.ticks(low, high, most=4))
        for k, (_, _, colour) in enumerate(BANDS):
            axes.fill_between(one.t, one.quantiles[k], one.quantiles[-1 - k], color=colour, linewidth=0)
        axes.plot(one.t, one.quantiles[2], color=style.BLUE, linewidth=1.4)
        style.heading(axes, (style.shortened(one.name, 40), style.INK, "bold"),
                      (style.unit_text(one.unit), style.FAINT, "normal"))
        if n >= len(envelopes) - columns:
            style.name_time(axes)
    return figure


def first_order(x: np.ndarray, y: np.ndarray) -> float:
    """Sobol's first-order index of y by x from given data: the share of the variance of y that is between slices of x with
    equally many runs, less what chance puts there (Plischke, Borgonovo and Smith, 2013). Values must be drawn independently."""
    n, distinct = len(y), np.unique(x)
    slices = min(len(distinct), max(2, int(math.sqrt(n) / 2)), 50)
    if slices < 2 or n <= slices or not np.ptp(y) > 0.0:
        return 0.0
    if slices == len(distinct):
        which = np.searchsorted(distinct, x)
    else:
        which = np.empty(n, dtype=int)
        which[np.argsort(x, kind="stable")] = np.arange(n) * slices // n
    counts = np.bincount(which, minlength=slices)
    means = np.bincount(which, y, slices) / np.maximum(counts, 1)
    within = ((y - means[which])**2).sum() / (n - slices)
    total = ((y - y.mean())**2).sum()
    return float(np.clip(1.0 - within * (n - 1) / total, 0.0, 1.0))


def _with_value(one: Quantity, output: Quantity) -> tuple[np.ndarray, np.ndarray]:
    """Of the runs that have this output."""
    there = np.isfinite(output.values)
    return one.values[there], output.values[there]


def _grid(rows: int, columns: int, width: float, height: float, title: str, subtitle: str, left: float = _LEFT):
    """A figure, and where its panels are, in inches."""
    gap = _GAP_X + (left - _LEFT)
    whole = left + _RIGHT + columns * width + (columns - 1) * gap
    tall = _TOP + _BOTTOM + rows * height + (rows - 1) * _GAP_Y
    figure = style.new_figure(max(whole, 4.5), tall, title, subtitle)
    return figure, lambda i, k: (left + k * (width + gap), tall - _TOP - height - i * (height + _GAP_Y), width, height)


def _axes(figure: Figure, place, x: np.ndarray, y: np.ndarray) -> Axes:
    return style.plain_axes(figure, *place, xlim=_span(x), ylim=_span(y))


def _span(x: np.ndarray) -> tuple[float, float]:
    low, high = float(np.min(x)), float(np.max(x))
    air = 0.05 * (high - low) or max(1e-6, 0.05 * abs(low))
    return low - air, high + air


def _medians(axes: Axes, x: np.ndarray, y: np.ndarray) -> None:
    """Of slices of x with equally many runs, where there are enough."""
    distinct = np.unique(x)
    if len(x) < 5 * _SLICES and len(distinct) > _SLICES:
        return
    parts = [np.flatnonzero(x == value) for value in distinct] if len(distinct) <= _SLICES else \
        np.array_split(np.argsort(x, kind="stable"), _SLICES)
    middles = ([np.median(values[part]) for part in parts] for values in (x, y))
    axes.plot(*middles, color=style.VERMILLION, linewidth=1.4)


def _name_below(axes: Axes, name: str, width: float) -> None:
    axes.annotate(style.shortened(name, int(13 * width)), (0.5, 0), (0, -17), xycoords="axes fraction",
                  textcoords="offset points", ha="center", va="top", size=style.LABEL, color=style.INK)


def _some(n: int, most: int) -> np.ndarray:
    return np.arange(n) if n <= most else np.linspace(0, n - 1, most).astype(int)
