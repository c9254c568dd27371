"""Energy over time, what its balance leaves over, and what the constraints do."""
from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from liedyn.report.pictures import style
from liedyn.report.pictures.picture_data import Energy

_WIDTH, _LEFT, _RIGHT = 8.5, 0.85, 1.55
_FLOOR = 1e-18                            # of the largest value of a residual: zero is drawn here
_ROUNDING = 1e-9                          # of the largest energy: axes show no less
_DECADES = 8                              # of the residual; the start, where it is nothing, falls out below


def draw_energy(energy: Energy, t: np.ndarray, subtitle: str = "", drift: np.ndarray | None = None) -> Figure:
    """Kinetic, potential (zero at the start) and total energy; below, on log axes, the balance residual and the largest residual
    of the constraints, where there are some."""
    small = [(x, *words) for x, *words in (
        (energy.residual, style.VERMILLION, "balance residual", "Balance: |total − start − work supplied|", "J"),
        (drift, style.SKY, "constraint residual", "Constraints: the largest residual", "rad or m")) if x is not None]
    height = 3.9 + 1.7 * len(small)
    figure = style.new_figure(_WIDTH, height, "Energy", subtitle)
    span = style.time_span(t)
    axes = style.plain_axes(figure, _LEFT, height - 3.3, _WIDTH - _LEFT - _RIGHT, 2.35, xlim=span)
    _draw_balance(axes, energy, t, None if small else "t [s]")
    for k, (x, *words) in enumerate(small, 1):
        axes = style.plain_axes(figure, _LEFT, height - 3.25 - 1.7 * k, _WIDTH - _LEFT - _RIGHT, 1.2, xlim=span)
        _draw_residual(axes, np.abs(x), t, *words, "t [s]" if k == len(small) else None)
    return figure


def _draw_balance(axes: Axes, energy: Energy, t: np.ndarray, x_name: str | None) -> None:
    potential = energy.potential - energy.potential[0]
    curves = [("kinetic", energy.kinetic, style.ORANGE, "-"), ("potential\n(0 at the start)", potential, style.BLUE, "-"),
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
    """Names at the right ends of the curves, moved apart where they would lie on each other or above the axes."""
    lower, upper = axes.get_ylim()
    lines = [name.count("\n") + 1 for name, _, _ in ends]
    line = 0.068 * (upper - lower)
    order = sorted(range(len(ends)), key=lambda k: ends[k][1])
    at = {}
    free = lower
    for k in order:                       # from below: each no lower than the one before allows
        at[k] = max(ends[k][1] - 0.5 * line * lines[k], free)
        free = at[k] + line * lines[k]
    for k in reversed(order):             # from above: back down where they left the axes
        at[k] = min(at[k], upper - line * lines[k])
        upper = at[k]
    for k, (name, _, colour) in enumerate(ends):
        style.words(axes, name, (1, at[k]), (6, 0), "left", "bottom", xycoords=axes.get_yaxis_transform(), size=style.NAME,
                    color=colour, linespacing=1.0)
