"""Curves by joint: a grid of small panels over one time axis, one panel a joint and unit.

Small panels stay legible from 1 to 60 joints, and each scales by itself: a wrist torque is seen beside a shoulder's.
"""
from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from liedyn.report.pictures import style
from liedyn.report.pictures.picture_data import Group, Series

PANELS_A_PAGE = 40
# the most panels of a page that have so many columns, width and height of each [inches]
_SIZES = ((2, 1, 7.5, 2.1), (8, 2, 4.4, 1.5), (15, 3, 3.3, 1.4), (24, 4, 2.7, 1.25), (PANELS_A_PAGE, 5, 2.3, 1.1))
_FLAT = 1e-6              # of the largest value with the same unit: what varies less is drawn flat
_LEVEL = 1e-3             # of its own mean: the same
_AT_LIMIT = 1e-9          # of a limit: what passes it by less is at it
_KEY = (("— prescribed motion", style.VERMILLION), ("— motion computed from forces", style.BLUE))


def draw_group(group: Group, t: np.ndarray, subtitle: str = "") -> list[Figure]:
    """The figure of a group, or the pages of it, with nearly the same number of panels each."""
    by_joint: dict[tuple[str, str], list[Series]] = {}
    for s in group.series:
        by_joint.setdefault((s.joint, s.unit), []).append(s)
    smallest = {unit: _FLAT * max(float(np.abs(s.values).max()) for s in group.series if s.unit == unit)
                for unit in {s.unit for s in group.series}}
    panels, count = list(by_joint.values()), math.ceil(len(by_joint) / PANELS_A_PAGE)
    size = math.ceil(len(panels) / count)
    subtitle = "   ".join(filter(None, (subtitle, group.axes)))
    titles = [f"{group.title}  ({k} of {count})" for k in range(1, count + 1)] if count > 1 else [group.title]
    return [_draw_page(panels[k * size:(k + 1) * size], t, title, subtitle, smallest) for k, title in enumerate(titles)]


def _draw_page(page: list[list[Series]], t: np.ndarray, title: str, subtitle: str, smallest: dict[str, float]) -> Figure:
    columns, width, height = next(sizes for most, *sizes in _SIZES if len(page) <= most)
    told_apart = any(s.prescribed for panel in page for s in panel)
    figure, places = style.panels(len(page), columns, width, height, title, subtitle, _KEY if told_apart else ())
    for k, (axes, panel) in enumerate(zip(places, page, strict=True)):
        axes.set_xlim(*style.time_span(t))
        _draw_panel(axes, panel, t, _colours(panel, told_apart), smallest[panel[0].unit], k + columns >= len(page))
    return figure


def _draw_panel(axes: Axes, panel: list[Series], t: np.ndarray, colours: list[str], smallest: float, last: bool) -> None:
    limits = sorted({x for s in panel for x in _near_limits(s, smallest)})
    axes.set_ylim(*_value_range(panel, limits, smallest))
    style.rulers(axes, 6 if style.wide(axes) > 3 else 4, 3, "t [s]" if last else None)
    beyond = any(_passes(s.lower, -s.values.min()) or _passes(-s.upper, s.values.max()) for s in panel)
    for limit in limits:
        axes.axhline(limit, color=style.VERMILLION if beyond else style.FAINT, linestyle=(0, (5, 4)), linewidth=0.8, zorder=1)
    for k, (s, colour) in enumerate(zip(panel, colours, strict=True)):
        width = 1.3 + 0.8 * (len(panel) - 1 - k) / max(len(panel) - 1, 2)     # equal curves show beside each other
        style.curve(axes, t, s.values, color=colour, linewidth=width, solid_joinstyle="round", label=s.label or s.joint)
    style.heading(axes, panel[0].joint, style.unit_text(panel[0].unit),
                  *((s.label, colour, "bold") for s, colour in zip(panel, colours, strict=True)),
                  ("over limit" if beyond else "", style.VERMILLION, "normal"))


def _colours(panel: list[Series], told_apart: bool) -> list[str]:
    """Warm and cool colours where prescribed and other curves are `told_apart`."""
    palettes = [style.CURVES if not told_apart else style.WARM if s.prescribed else style.COOL for s in panel]
    return [palette[k % len(palette)] for k, palette in enumerate(palettes)]


def _value_range(panel: list[Series], limits: list[float], smallest: float) -> tuple[float, float]:
    """The values and the limits shown, with some air. What does not vary is drawn flat: no panel full of rounding errors."""
    values = [*limits, *(float(f(s.values)) for s in panel for f in (np.min, np.max))]
    lower, upper = min(values), max(values)
    middle, half = 0.5 * (lower + upper), 0.54 * (upper - lower)
    if half <= max(smallest, _LEVEL * abs(middle)):
        half = 0.05 * abs(middle) if abs(middle) > smallest else 1.2
    return middle - half, middle + half


def _passes(limit: float, value: float) -> bool:
    """Whether value + limit > 0 by more than rounding: a joint at a stop does not."""
    return value + limit > _AT_LIMIT * abs(limit) if np.isfinite(limit) else False


def _near_limits(s: Series, smallest: float) -> list[float]:
    """Limits that the values reach, or nearly: farther ones would only flatten the curve."""
    low, high = float(s.values.min()), float(s.values.max())
    reach = 0.35 * max(high - low, smallest)
    return [x for x in (s.lower, s.upper) if low - reach <= x <= high + reach]
