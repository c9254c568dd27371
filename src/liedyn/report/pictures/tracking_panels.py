"""How links follow their references: by joint the motion beside the error, whose decades tell laws apart."""
from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from liedyn.report.pictures import style
from liedyn.report.pictures.picture_data import Followed

_MOTIONS = (1.3, 2.1, 2.9, 3.7)          # widths of lines that often lie upon each other
_FLAT = 1e-6                             # of the largest value with the same unit: axes show no less
_SEEN = 0.02                             # the smallest errors, passing zero, are left out of the range


def draw_tracking(runs: Sequence[Followed], subtitle: str = "") -> Figure:
    """One row a joint; runs of the same joints, each in its colour."""
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


def _draw_motion(axes: Axes, runs: Sequence[Followed], joint: str, x_name: str | None) -> None:
    unit, _, reference = runs[0].joints[joint]
    largest = max(float(np.abs(x).max()) for run in runs for other, *both in run.joints.values() if other == unit for x in both)
    axes.set_ylim(*style.with_air(np.concatenate([x for run in runs for x in run.joints[joint][1:]]), _FLAT * largest))
    style.rulers(axes, 6, 3, x_name)
    for k in range(len(runs) - 1, -1, -1):
        style.curve(axes, runs[k].t, runs[k].joints[joint][1], color=_colour(k),
                    linewidth=_MOTIONS[min(k, len(_MOTIONS) - 1)], solid_joinstyle="round")
    style.curve(axes, runs[0].t, reference, color=style.INK, linewidth=0.9, linestyle=(0, (4, 4)))
    style.heading(axes, joint, style.unit_text(unit))


def _draw_error(axes: Axes, runs: Sequence[Followed], joint: str, x_name: str | None) -> None:
    """Decades of |link - reference|; zero, which has none, is left out."""
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
