"""Plots of rollouts: a panel for each coordinate, with all runs."""
from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from liedyn.errors import NameLookupError, UsageError
from liedyn.report.plots import style
from liedyn.report.plots.batch_plots import QUANTILES, Envelope, draw_band
from liedyn.report.plots.figure_files import words_only
from liedyn.rollouts.rollout import Rollout
from liedyn.simulation.trajectory_columns import motion_columns

_CURVES = 12                # maximum number of runs that are drawn as curves
_MOST_PANELS = 24           # of the coordinates of a figure
_TITLES = {"positions": ("q", "Positions"), "velocities": ("v", "Velocities"), "accelerations": ("a", "Accelerations"),
           "torques": ("tau", "Generalized forces")}


def rollout_figures(runs: Rollout, name: str) -> dict[str, Figure]:
    """Return a figure of all runs by its name: positions, velocities, accelerations, torques.

    Raise NameLookupError for one that the rollout does not have.
    """
    available = [figure for figure, (kind, _) in _TITLES.items() if getattr(runs, kind) is not None]
    if name not in available:
        missing = "; forces=True of the rollout adds accelerations and torques" if name in _TITLES else ""
        raise NameLookupError(f"there is no plot {name!r} of this rollout; there are {', '.join(available)}{missing}")
    if not runs.ended_at.size:
        raise UsageError("the rollout has no runs to plot")
    kind, title = _TITLES[name]
    with words_only():
        return {name: _draw(runs, motion_columns(runs.model, **{kind: getattr(runs, kind)}), title)}


def _draw(runs: Rollout, columns: list[tuple[str, str, np.ndarray]], title: str) -> Figure:
    count, drawn = runs.ended_at.size, columns[:_MOST_PANELS]
    how = "" if count <= _CURVES else "; median, bands of 50 and 90 %"
    more = f"; the first {len(drawn)} of {len(columns)} coordinates" if len(drawn) < len(columns) else ""
    wide = 1 if len(drawn) < 3 else 2 if len(drawn) < 9 else 3
    figure, places = style.panels(len(drawn), wide, 4.2, 1.5, title, f"{runs.model.name}: {count} runs{how}{more}")
    for k, (axes, (name, unit, values)) in enumerate(zip(places, drawn, strict=True)):
        _draw_panel(axes, runs.t, values.reshape(count, len(runs.t)), {"x_name": "t [s]" if k + wide >= len(drawn) else None})
        style.heading(axes, name.partition(".")[2], style.unit_text(unit))
    return figure


def _draw_panel(axes: Axes, t: np.ndarray, values: np.ndarray, options: dict[str, Any]) -> None:
    """Draw the values (runs, R) of a coordinate, which are NaN after the end of a run."""
    finite = np.isfinite(values)
    axes.set_xlim(*style.time_span(t))
    axes.set_ylim(*style.with_air(values[finite] if finite.any() else np.zeros(1)))
    style.rulers(axes, 6, 4, **options)
    if len(values) <= _CURVES:
        for k, curve in enumerate(values):
            axes.plot(t, curve, color=style.CURVES[k % len(style.CURVES)], linewidth=1.2)
        return
    going = finite.any(axis=0)
    draw_band(axes, Envelope("", "", t[going], np.nanquantile(values[:, going], QUANTILES, axis=0)))
