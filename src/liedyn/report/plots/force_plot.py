"""Plot of measured and predicted forces of a recording: one row per joint, with the residuals."""
from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from liedyn.analysis.consistent_parameters import Validation
from liedyn.arrays import Array
from liedyn.report.plots import palette, style
from liedyn.report.plots.figure_files import PlotFigure

_KEY = (("measured", palette.INK), ("identified", palette.BLUE), ("robot file", palette.ORANGE))


def draw_forces(validation: Validation, units: list[str], look: palette.Look = palette.SCREEN) -> PlotFigure:
    """Draw the forces of each joint whose force was measured, and the residuals of the parameters and of the robot file.

    units  of the forces of all coordinates
    """
    measured = np.flatnonzero(np.isfinite(validation.force).all(axis=0))
    figure, places = style.panels(2 * len(measured), 2, 4.4, 1.3, "Forces and residuals", "", _KEY, look=look)
    for row, k in enumerate(measured):
        force, x, y = validation.force[:, k], validation.predicted[:, k], validation.predicted_by_file[:, k]
        last = "t [s]" if row == len(measured) - 1 else None
        _draw(places[2 * row], validation.t, (y, x, force), (palette.ORANGE, palette.BLUE, palette.INK), units[k], last)
        style.heading(places[2 * row], validation.joints[k])
        _draw(places[2 * row + 1], validation.t, (force - y, force - x), (palette.ORANGE, palette.BLUE), units[k], last)
        style.heading(places[2 * row + 1], "residual", f"{validation.residual[k]:.3g} {units[k]} (rms)")
    return figure


def _draw(axes: Axes, t: Array, curves: tuple[Array, ...], colours: tuple[str, ...], unit: str, x_name: str | None) -> None:
    axes.set_xlim(*style.time_span(t))
    axes.set_ylim(*style.with_air(np.concatenate(curves)))
    style.rulers(axes, 6, 3, x_name, y_names=(f"[{style.unit_text(unit)}]",))
    for x, colour in zip(curves, colours, strict=True):
        style.curve(axes, t, x, color=colour, linewidth=1.0, solid_joinstyle="round")
