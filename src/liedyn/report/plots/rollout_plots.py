"""Plots of rollouts: a panel for each coordinate, with all runs."""
from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from liedyn.errors import NameLookupError, UsageError
from liedyn.report.plots import palette, style
from liedyn.report.plots.batch_plots import QUANTILES, Envelope, draw_band
from liedyn.report.plots.figure_files import words_only
from liedyn.report.plots.joint_plots import quantity_names
from liedyn.rollouts.rollout import Rollout
from liedyn.simulation.trajectory_columns import motion_columns

_CURVES = 12                # maximum number of runs that are drawn as curves
_MOST_PANELS = 24           # of the coordinates of a figure
_TITLES = {"positions": ("q", "Positions"), "velocities": ("v", "Velocities"), "accelerations": ("a", "Accelerations"),
           "torques": ("tau", "Forces of joints")}


def rollout_figures(runs: Rollout, name: str, look: palette.Look = palette.SCREEN) -> dict[str, Figure]:
    """Return a figure of all runs by its name: positions, velocities, accelerations, torques.

    Raise NameLookupError for one that the rollout does not have.
    """
    available = [figure for figure, (kind, _) in _TITLES.items() if getattr(runs, kind) is not None]
    if name not in available:
        missing = "; forces=True of the rollout adds accelerations and torques" if name in _TITLES else ""
        raise NameLookupError(f"unknown plot {name!r} of this rollout: expected one of {', '.join(available)}{missing}")
    if not runs.ended_at.size:
        raise UsageError("the rollout has no runs to plot")
    kind, title = _TITLES[name]
    with words_only():
        return {name: _draw(runs, motion_columns(runs.model, **{kind: getattr(runs, kind)}), title, look)}


def _draw(runs: Rollout, columns: list[tuple[str, str, np.ndarray]], title: str, look: palette.Look) -> Figure:
    count, drawn = runs.ended_at.size, columns[:_MOST_PANELS]
    how = "" if count <= _CURVES else "; median, bands of 50 and 90 %"
    more = f"; the first {len(drawn)} of {len(columns)} coordinates" if len(drawn) < len(columns) else ""
    wide = 1 if len(drawn) < 3 else 2 if len(drawn) < 9 else 3
    figure, places = style.panels(len(drawn), wide, 4.2, 1.5, title, f"{runs.model.name}: {count} runs{how}{more}", look=look)
    wide = style.count_columns(places)
    for k, (axes, (name, unit, values)) in enumerate(zip(places, drawn, strict=True)):
        kind, _, coordinate = name.partition(".")
        _draw_panel(axes, runs.t, values.reshape(count, len(runs.t)), {"x_name": "t [s]" if k + wide >= len(drawn) else None,
                                                                       "y_names": quantity_names(kind, unit)})
        style.heading(axes, coordinate)
    return figure


def _draw_panel(axes: Axes, t: np.ndarray, values: np.ndarray, options: dict[str, Any]) -> None:
    """Draw the values (runs, R) of a coordinate, which are NaN after the end of a run."""
    finite = np.isfinite(values)
    axes.set_xlim(*style.time_span(t))
    axes.set_ylim(*style.with_air(values[finite] if finite.any() else np.zeros(1)))
    style.rulers(axes, 6, 4, **options)
    if len(values) <= _CURVES:
        for k, curve in enumerate(values):
            axes.plot(t, curve, color=palette.CURVES[k % len(palette.CURVES)], linewidth=1.2,
                      linestyle=style.line_pattern(style.parent_figure(axes).look, k))
        return
    going = finite.any(axis=0)
    draw_band(axes, Envelope("", "", t[going], np.nanquantile(values[:, going], QUANTILES, axis=0)))
