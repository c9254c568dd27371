"""Curves by joint: a grid of small panels over one time axis, one panel a joint and unit.

Small panels stay legible from 1 to 60 joints, and each scales by itself: a wrist torque is seen beside a shoulder's.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from liedyn.report.pictures import style
from liedyn.report.pictures.picture_data import Group, Series

PANELS_A_PAGE = 40
_MARGIN_LEFT, _MARGIN_RIGHT, _MARGIN_TOP, _MARGIN_BOTTOM = 0.75, 0.25, 0.85, 0.6     # inches
_GAP_X, _GAP_Y = 0.75, 0.42


@dataclass(frozen=True)
class _Grid:
    columns: int
    rows: int
    width: float                        # of a panel, inches
    height: float


def draw_group(group: Group, t: np.ndarray, subtitle: str = "") -> dict[str, Figure]:
    """Figures of a group by file name; where the panels need several pages, `name-1`, `name-2`, …"""
    panels = _panels(group.series)
    smallest = {unit: 1e-6 * max(float(np.abs(s.values).max()) for s in group.series if s.unit == unit) + 1e-12
                for unit in {s.unit for s in group.series}}
    pages = _pages(panels)
    subtitle = "   ".join(filter(None, (subtitle, group.axes)))
    figures = {}
    for k, page in enumerate(pages, 1):
        name = group.name if len(pages) == 1 else f"{group.name}-{k}"
        part = "" if len(pages) == 1 else f"  ({k} of {len(pages)})"
        figures[name] = _draw_page(page, t, group.title + part, subtitle, smallest)
    return figures


def _panels(series: Sequence[Series]) -> list[list[Series]]:
    """Series with the same joint and unit, in order."""
    panels: dict[tuple[str, str], list[Series]] = {}
    for s in series:
        panels.setdefault((s.joint, s.unit), []).append(s)
    return list(panels.values())


def _pages(panels: list[list[Series]]) -> list[list[list[Series]]]:
    """Pages of nearly the same number of panels."""
    number = math.ceil(len(panels) / PANELS_A_PAGE)
    size = math.ceil(len(panels) / number)
    return [panels[k:k + size] for k in range(0, len(panels), size)]


def _grid(number: int) -> _Grid:
    for most, columns, width, height in ((2, 1, 7.5, 2.1), (8, 2, 4.4, 1.5), (15, 3, 3.3, 1.4), (24, 4, 2.7, 1.25)):
        if number <= most:
            return _Grid(columns, math.ceil(number / columns), width, height)
    return _Grid(5, math.ceil(number / 5), 2.3, 1.1)


def _draw_page(panels: list[list[Series]], t: np.ndarray, title: str, subtitle: str,
               smallest: dict[str, float]) -> Figure:
    grid = _grid(len(panels))
    width = _MARGIN_LEFT + _MARGIN_RIGHT + grid.columns * grid.width + (grid.columns - 1) * _GAP_X
    height = _MARGIN_TOP + _MARGIN_BOTTOM + grid.rows * grid.height + (grid.rows - 1) * _GAP_Y
    figure = style.new_figure(width, height, title, subtitle)
    told_apart = any(s.prescribed for panel in panels for s in panel)
    if told_apart:
        _legend(figure, width, height)
    times = style.ticks(*style.time_span(t), most=6 if grid.width > 3 else 4)
    for k, panel in enumerate(panels):
        row, column = divmod(k, grid.columns)
        axes = style.plain_axes(figure, _MARGIN_LEFT + column * (grid.width + _GAP_X),
                                height - _MARGIN_TOP - grid.height - row * (grid.height + _GAP_Y), grid.width, grid.height)
        last = k + grid.columns >= len(panels)
        _draw_panel(axes, panel, t, _colours(panel, told_apart), times, last, smallest[panel[0].unit], int(grid.width * 11))
        if last:
            style.name_time(axes)
    return figure


def _draw_panel(axes: Axes, panel: list[Series], t: np.ndarray, colours: list[str], times: list[float], time_labels: bool,
                smallest: float, most_letters: int) -> None:
    limits = sorted({x for s in panel for x in _near_limits(s, smallest)})
    axes.set_xlim(*style.time_span(t))
    axes.set_ylim(*_value_range(panel, limits, smallest))
    style.rulers(axes, times, style.ticks(*axes.get_ylim(), most=3), x_labels=time_labels)
    beyond = any(_passes(s.lower, -s.values.min()) or _passes(-s.upper, s.values.max()) for s in panel)
    for limit in limits:
        axes.axhline(limit, color=style.VERMILLION if beyond else style.FAINT, linestyle=(0, (5, 4)), linewidth=0.8, zorder=1)
    for k, (s, colour) in enumerate(zip(panel, colours, strict=True)):
        width = 1.3 + 0.8 * (len(panel) - 1 - k) / max(len(panel) - 1, 2)     # equal curves show beside each other
        axes.plot(*style.thinned(t, s.values), color=colour, linewidth=width, solid_joinstyle="round", label=s.label or s.joint)
    _name(axes, panel, colours, beyond, most_letters)


def _name(axes: Axes, panel: list[Series], colours: list[str], beyond: bool, most_letters: int) -> None:
    """Above the panel: joint, unit, and the labels of its coordinates in their colours."""
    words = [(style.shortened(panel[0].joint, most_letters - 8 * beyond), style.INK, "bold")]
    if panel[0].unit:
        words.append((style.unit_text(panel[0].unit), style.FAINT, "normal"))
    if panel[0].label:
        words += [(s.label, colour, "bold") for s, colour in zip(panel, colours, strict=True)]
    if beyond:
        words.append(("over limit", style.VERMILLION, "normal"))
    style.heading(axes, *words)


def _colours(panel: list[Series], told_apart: bool) -> list[str]:
    """Warm and cool colours where prescribed and other curves are `told_apart`."""
    palettes = [style.CURVES if not told_apart else style.WARM if s.prescribed else style.COOL for s in panel]
    return [palette[k % len(palette)] for k, palette in enumerate(palettes)]


def _legend(figure: Figure, width: float, height: float) -> None:
    for k, (text, colour) in enumerate((("prescribed motion", style.VERMILLION), ("motion computed from forces", style.BLUE))):
        figure.text(1 - 0.25 / width, 1 - (0.2 + 0.2 * k) / height, "— " + text, size=style.NAME, color=colour,
                    ha="right", va="top")


def _value_range(panel: list[Series], limits: list[float], smallest: float) -> tuple[float, float]:
    """The values and the limits shown, with some air. What does not vary is drawn flat: no panel full of rounding errors."""
    values = [*limits, *(float(f(s.values)) for s in panel for f in (np.min, np.max))]
    lower, upper = min(values), max(values)
    middle, half = 0.5 * (lower + upper), 0.54 * (upper - lower)
    if half < max(smallest, 1e-3 * abs(middle)):
        half = 0.05 * abs(middle) if abs(middle) > smallest else 1.2
    return middle - half, middle + half


def _passes(limit: float, value: float) -> bool:
    """Whether value + limit > 0 by more than rounding: a joint at a stop does not."""
    return value + limit > 1e-9 * max(1.0, abs(limit)) if np.isfinite(limit) else False


def _near_limits(s: Series, smallest: float) -> list[float]:
    """Limits that the values reach, or nearly: farther ones would only flatten the curve."""
    low, high = float(s.values.min()), float(s.values.max())
    reach = 0.35 * max(high - low, smallest)
    return [x for x in (s.lower, s.upper) if low - reach <= x <= high + reach]
