"""Curves by joint: a grid of small panels over one time axis, one panel per joint and unit.

Small panels are legible from 1 to 60 joints. Each has its scale: a wrist torque is visible next to a shoulder torque.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from liedyn.report.plots import style
from liedyn.report.plots.plot_data import Energy, Group, Series, TrackedReferences

PANELS_A_PAGE = 40
# maximum number of panels on a page with so many columns; columns, width and height of a panel [inches]
_SIZES = ((2, 1, 7.5, 2.1), (8, 2, 4.4, 1.5), (15, 3, 3.3, 1.4), (24, 4, 2.7, 1.25), (PANELS_A_PAGE, 5, 2.3, 1.1))
_FLAT = 1e-6              # of the maximum value with the same unit: a curve that varies less is drawn flat
_LEVEL = 1e-3             # of the mean: the same
_AT_LIMIT = 1e-9          # of a limit: a value that exceeds it by less is at the limit
_KEY = (("— prescribed motion", style.VERMILLION), ("— motion computed from forces", style.BLUE))


def draw_group(group: Group, t: np.ndarray, subtitle: str = "") -> list[Figure]:
    """Return the figures of a group, one per page, with nearly the same number of panels each."""
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
    columns, width, height = next((columns, width, height) for capacity, columns, width, height in _SIZES
                                  if len(page) <= capacity)
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
        width = 1.3 + 0.8 * (len(panel) - 1 - k) / max(len(panel) - 1, 2)     # equal curves remain visible
        style.curve(axes, t, s.values, color=colour, linewidth=width, solid_joinstyle="round", label=s.label or s.joint)
    style.heading(axes, panel[0].joint, style.unit_text(panel[0].unit),
                  *((s.label, colour, "bold") for s, colour in zip(panel, colours, strict=True)),
                  ("over limit" if beyond else "", style.VERMILLION, "normal"))


def _colours(panel: list[Series], told_apart: bool) -> list[str]:
    """Return colours: warm and cool ones for prescribed and other curves if these are `told_apart`."""
    palettes = [style.CURVES if not told_apart else style.WARM if s.prescribed else style.COOL for s in panel]
    return [palette[k % len(palette)] for k, palette in enumerate(palettes)]


def _value_range(panel: list[Series], limits: list[float], smallest: float) -> tuple[float, float]:
    """Return the range of the values and the visible limits, with a margin. Constant curves are drawn flat, without rounding."""
    values = [*limits, *(float(f(s.values)) for s in panel for f in (np.min, np.max))]
    lower, upper = min(values), max(values)
    middle, half = 0.5 * (lower + upper), 0.54 * (upper - lower)
    if half <= max(smallest, _LEVEL * abs(middle)):
        half = 0.05 * abs(middle) if abs(middle) > smallest else 1.2
    return middle - half, middle + half


def _passes(limit: float, value: float) -> bool:
    """Return whether value + limit > 0 by more than rounding: a joint at its stop does not exceed the limit."""
    return value + limit > _AT_LIMIT * abs(limit) if np.isfinite(limit) else False


def _near_limits(s: Series, smallest: float) -> list[float]:
    """Return the limits that the values reach or nearly reach. Distant limits would flatten the curve."""
    low, high = float(s.values.min()), float(s.values.max())
    reach = 0.35 * max(high - low, smallest)
    return [x for x in (s.lower, s.upper) if low - reach <= x <= high + reach]


# Energy over time, residual of its balance, residual of the constraints -------------------------------------------------

_WIDTH, _LEFT, _RIGHT = 8.5, 0.85, 1.55
_FLOOR = 1e-18                            # of the maximum residual: zero is drawn here
_ROUNDING = 1e-9                          # of the maximum energy: smallest range of an axis
_DECADES = 8                              # of the residual; smaller values at the start are below the axis


def draw_energy(energy: Energy, t: np.ndarray, subtitle: str = "", drift: np.ndarray | None = None) -> Figure:
    """Draw kinetic, potential (zero at the start) and total energy; below, on log axes, residuals of balance and constraints."""
    small = []
    if energy.residual is not None:
        small.append((energy.residual, style.VERMILLION, "balance residual", "Energy balance: |total − initial − supplied|", "J"))
    if drift is not None:
        small.append((drift, style.SKY, "constraint residual", "Constraints: maximum residual", "rad or m"))
    height = 3.9 + 1.7 * len(small)
    figure = style.new_figure(_WIDTH, height, "Energy", subtitle)
    span = style.time_span(t)
    axes = style.plain_axes(figure, _LEFT, height - 3.3, _WIDTH - _LEFT - _RIGHT, 2.35, xlim=span)
    _draw_balance(axes, energy, t, None if small else "t [s]")
    for k, (x, colour, label, text, unit) in enumerate(small, 1):
        axes = style.plain_axes(figure, _LEFT, height - 3.25 - 1.7 * k, _WIDTH - _LEFT - _RIGHT, 1.2, xlim=span)
        _draw_residual(axes, np.abs(x), t, colour, label, text, unit, "t [s]" if k == len(small) else None)
    return figure


def _draw_balance(axes: Axes, energy: Energy, t: np.ndarray, x_name: str | None) -> None:
    potential = energy.potential - energy.potential[0]
    curves: list[tuple[str, np.ndarray, str, Any]] = [
        ("kinetic", energy.kinetic, style.ORANGE, "-"), ("potential\n(0 at the start)", potential, style.BLUE, "-"),
              ("total", energy.kinetic + potential, style.INK, "-")]
    if energy.work is not None:
        curves.append(("start + work\nsupplied", energy.kinetic[0] + energy.work, style.GREEN, (0, (4, 3))))
    largest = max(float(np.abs(x).max()) for x in (energy.kinetic, energy.potential))
    axes.set_ylim(*style.with_air([x for _, x, _, _ in curves], _ROUNDING * largest))
    style.rulers(axes, 8, 5, x_name)
    for name, x, colour, line in curves:
        style.curve(axes, t, x, color=colour, linestyle=line, linewidth=1.5, label=name.replace("\n", " "))
    _name_curves(axes, [(name, float(x[-1]), colour) for name, x, colour, _ in curves])
    style.heading(axes, "Energy", "J")


def _draw_residual(axes: Axes, residual: np.ndarray, t: np.ndarray, colour: str, label: str, text: str, unit: str,
                   x_name: str | None) -> None:
    exponents = np.log10(np.maximum(residual, _FLOOR * (residual.max() or 1.0)))
    upper = int(np.ceil(exponents.max()))
    lower = min(max(int(np.floor(exponents.min())), upper - _DECADES), upper - 2)
    axes.set_ylim(lower - 0.2, upper + 0.2)
    decades = range(lower, upper + 1, max(1, -(-(upper - lower) // 4)))
    style.rulers(axes, 8, decades, x_name, y_labels=style.powers(decades))
    style.curve(axes, t, exponents, color=colour, linewidth=1.2, label=label)
    style.heading(axes, text, unit)


def _name_curves(axes: Axes, ends: list[tuple[str, float, str]]) -> None:
    """Write names at the right ends of the curves, moved apart where they would overlap or leave the axes."""
    lower, upper = axes.get_ylim()
    lines = [name.count("\n") + 1 for name, _, _ in ends]
    line = 0.068 * (upper - lower)
    order = sorted(range(len(ends)), key=lambda k: ends[k][1])
    at = {}
    free = lower
    for k in order:                       # upwards: each above the one before
        at[k] = max(ends[k][1] - 0.5 * line * lines[k], free)
        free = at[k] + line * lines[k]
    for k in reversed(order):             # downwards: back into the axes
        at[k] = min(at[k], upper - line * lines[k])
        upper = at[k]
    for k, (name, _, colour) in enumerate(ends):
        style.words(axes, name, (1, at[k]), (6, 0), "left", "bottom", xycoords=axes.get_yaxis_transform(), size=style.NAME,
                    color=colour, linespacing=1.0)


# Tracking of references: motion and error of each joint; the error has a log axis to compare control laws --------------

_MOTIONS = (1.3, 2.1, 2.9, 3.7)          # widths of lines, which often overlap
_SEEN = 0.02                             # part of the smallest errors, near zero, that is outside of the range


def draw_tracking(runs: Sequence[TrackedReferences], subtitle: str = "") -> Figure:
    """Draw one row per joint; each run has its colour. All runs have the same joints."""
    joints = list(runs[0].joints)
    key = [(f"— {run.label.replace('_', ' ')}", _colour(k)) for k, run in enumerate(runs) if run.label]
    key.append(("- - reference", style.INK))
    figure, places = style.panels(2 * len(joints), 2, 4.2, 1.5, "Tracking", subtitle, key, top=0.95)
    span = style.time_span(np.sort([end for run in runs for end in (run.t[0], run.t[-1])]))
    for k, axes in enumerate(places):
        axes.set_xlim(*span)
        draw = _draw_error if k % 2 else _draw_motion
        draw(axes, runs, joints[k // 2], "t [s]" if k // 2 == len(joints) - 1 else None)
    return figure


def _draw_motion(axes: Axes, runs: Sequence[TrackedReferences], joint: str, x_name: str | None) -> None:
    unit, _, reference = runs[0].joints[joint]
    largest = max(float(np.abs(x).max()) for run in runs for joint_unit, *both in run.joints.values() if joint_unit == unit
                  for x in both)
    axes.set_ylim(*style.with_air(np.concatenate([x for run in runs for x in run.joints[joint][1:]]), _FLAT * largest))
    style.rulers(axes, 6, 3, x_name)
    for k in range(len(runs) - 1, -1, -1):
        style.curve(axes, runs[k].t, runs[k].joints[joint][1], color=_colour(k),
                    linewidth=_MOTIONS[min(k, len(_MOTIONS) - 1)], solid_joinstyle="round")
    style.curve(axes, runs[0].t, reference, color=style.INK, linewidth=0.9, linestyle=(0, (4, 4)))
    style.heading(axes, joint, style.unit_text(unit))


def _draw_error(axes: Axes, runs: Sequence[TrackedReferences], joint: str, x_name: str | None) -> None:
    """Draw |link - reference| on a log axis, without zeros."""
    curves = []
    for run in runs:
        unit, link, reference = run.joints[joint]
        size = np.abs(link - reference)
        curves.append((run.t[size > 0], np.log10(size[size > 0])))
    seen = [np.quantile(x, (_SEEN, 1.0)) for _, x in curves if len(x)] or [np.array([-17.0, -16.0])]
    low, high = math.floor(min(x[0] for x in seen)), math.ceil(max(x[1] for x in seen) + 0.05)
    axes.set_ylim(low, max(high, low + 1))
    decades = range(high, low - 1, -max(1, math.ceil((high - low) / 5)))
    style.rulers(axes, 6, decades, x_name, y_labels=style.powers(decades))
    for k, (t, x) in enumerate(curves):
        style.curve(axes, t, x, color=_colour(k), linewidth=1.3, solid_joinstyle="round")
    style.heading(axes, "|error|", style.unit_text(unit))


def _colour(k: int) -> str:
    return (style.BLUE, style.VERMILLION, style.GREEN, style.PURPLE, style.ORANGE, style.SKY)[k % 6]
