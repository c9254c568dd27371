"""How links follow their references: by joint the motion beside the error, whose decades tell laws apart."""
from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from liedyn.report.pictures import style
from liedyn.report.pictures.picture_data import Followed

_LEFT, _RIGHT, _TOP, _BOTTOM, _GAP_X, _GAP_Y = 0.75, 0.25, 0.95, 0.6, 0.85, 0.42     # inches
_WIDTH, _HEIGHT = 4.2, 1.5               # of a panel
_MOTIONS = (1.3, 2.1, 2.9, 3.7)          # widths of lines that often lie upon each other
_SEEN = 0.02                             # the smallest errors, passing zero, are left out of the range


def draw_tracking(runs: Sequence[Followed], subtitle: str = "") -> Figure:
    """One row a joint; runs of the same joints, each in its colour."""
    joints = list(runs[0].joints)
    width = _LEFT + _RIGHT + 2 * _WIDTH + _GAP_X
    height = _TOP + _BOTTOM + len(joints) * _HEIGHT + (len(joints) - 1) * _GAP_Y
    figure = style.new_figure(width, height, "Tracking", subtitle)
    _legend(figure, width, height, runs)
    span = style.time_span(np.sort([end for run in runs for end in (run.t[0], run.t[-1])]))
    times = style.ticks(*span, most=6)
    for row, joint in enumerate(joints):
        bottom, last = height - _TOP - _HEIGHT - row * (_HEIGHT + _GAP_Y), row == len(joints) - 1
        for column, draw in enumerate((_draw_motion, _draw_error)):
            axes = style.plain_axes(figure, _LEFT + column * (_WIDTH + _GAP_X), bottom, _WIDTH, _HEIGHT)
            axes.set_xlim(*span)
            draw(axes, runs, joint, times, last)
            if last:
                style.name_time(axes)
    return figure


def _draw_motion(axes: Axes, runs: Sequence[Followed], joint: str, times: list[float], last: bool) -> None:
    unit, _, reference = runs[0].joints[joint]
    values = np.concatenate([x for run in runs for x in run.joints[joint][1:]])
    half = max(0.54 * np.ptp(values), 1e-6)
    middle = 0.5 * (values.min() + values.max())
    axes.set_ylim(middle - half, middle + half)
    style.rulers(axes, times, style.ticks(*axes.get_ylim(), most=3), x_labels=last)
    for k in range(len(runs) - 1, -1, -1):
        axes.plot(*style.thinned(runs[k].t, runs[k].joints[joint][1]), color=_colour(k),
                  linewidth=_MOTIONS[min(k, len(_MOTIONS) - 1)], solid_joinstyle="round")
    axes.plot(*style.thinned(runs[0].t, reference), color=style.INK, linewidth=0.9, linestyle=(0, (4, 4)))
    style.heading(axes, (style.shortened(joint, 40), style.INK, "bold"), (style.unit_text(unit), style.FAINT, "normal"))


def _draw_error(axes: Axes, runs: Sequence[Followed], joint: str, times: list[float], last: bool) -> None:
    """Decades of |link - reference|; zero, which has none, is left out."""
    curves = []
    for run in runs:
        unit, link, reference = run.joints[joint]
        size = np.abs(link - reference)
        curves.append((run.t[size > 0], np.log10(size[size > 0])))
    seen = [np.quantile(x, (_SEEN, 1.0)) for _, x in curves if len(x)] or [np.array([-17.0, -16.0])]
    low, high = math.floor(min(x[0] for x in seen)), math.ceil(max(x[1] for x in seen) + 0.05)
    axes.set_ylim(low, max(high, low + 1))
    step = max(1, math.ceil((high - low) / 5))
    decades = list(range(high, low - 1, -step))[::-1]
    style.rulers(axes, times, decades, x_labels=last, y_labels=[f"1e{k}" for k in decades])
    for k, (t, x) in enumerate(curves):
        axes.plot(*style.thinned(t, x) if len(t) else (t, x), color=_colour(k), linewidth=1.3, solid_joinstyle="round")
    style.heading(axes, ("|error|", style.INK, "bold"), (style.unit_text(unit), style.FAINT, "normal"))


def _legend(figure: Figure, width: float, height: float, runs: Sequence[Followed]) -> None:
    lines = [(f"— {run.label.replace('_', ' ')}", _colour(k)) for k, run in enumerate(runs) if run.label]
    for k, (text, colour) in enumerate([*lines, ("- - reference", style.INK)]):
        figure.text(1 - 0.25 / width, 1 - (0.14 + 0.19 * k) / height, text, size=style.NAME, color=colour, ha="right", va="top")


def _colour(k: int) -> str:
    return (style.BLUE, style.VERMILLION, style.GREEN, style.PURPLE, style.ORANGE, style.SKY)[k % 6]
