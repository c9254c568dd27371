"""Plot of a sweep of a driver: positions, mechanical advantages and transmission angles over the position of the driver."""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from liedyn.arrays import Array
from liedyn.dynamics.constraints.kinematic_sweep import KinematicSweep
from liedyn.report.plots import palette, style

_MAX_SIZE = 5.0          # of the median of a mechanical advantage: beyond it, curves leave the panel


class _Panel(NamedTuple):
    """name and unit of a panel, and its curves {coordinate: (k,) values}."""

    name: str
    unit: str
    curves: dict[str, Array]


def draw_sweep(sweep: KinematicSweep, angles: dict[str, Array], look: palette.Look = palette.SCREEN) -> Figure:
    """Draw a sweep. angles: transmission angles [rad] of driven coordinates; dotted lines are dead centres and change points."""
    panels = _panels(sweep, angles)
    names = list(dict.fromkeys(name for panel in panels for name in panel.curves))
    key = [(style.key_label(look, k, name), palette.CURVES[k]) for k, name in enumerate(names)]
    scale, unit = _unit_of(sweep, sweep.driver)
    figure, places = style.panels(len(panels), 1, 6.0, 1.7, f"Sweep of {sweep.driver}", sweep.model.name, key, left=0.85,
                                  look=look)
    x = scale * sweep.positions
    for axes, panel in zip(places, panels, strict=True):
        values = np.concatenate([curve[np.isfinite(curve)] for curve in panel.curves.values()])
        axes.set_xlim(*sorted((x[0], x[-1])) if len(x) > 1 else style.time_span(x))
        axes.set_ylim(*(style.with_air(values, 1e-6) if values.size else (-1.0, 1.0)))
        for name, curve in panel.curves.items():
            k = names.index(name)
            axes.plot(x, curve, color=palette.CURVES[k], linestyle=style.line_pattern(look, k),
                      linewidth=0.9 if look.paper else 1.4, solid_joinstyle="round")
        style.draw_marks(axes, [scale * each.position for each in sweep.special_positions], [], False)
        title = f"{panel.name} [{style.unit_text(panel.unit)}]" if panel.unit else panel.name
        last = axes is places[-1]
        style.rulers(axes, 9, 5, f"{sweep.driver} [{unit}]" if last else None, y_names=[title, panel.name])
    return figure


def _panels(sweep: KinematicSweep, angles: dict[str, Array]) -> list[_Panel]:
    moving = [name for name in (*sweep.driven, *_coordinates(sweep)) if name != sweep.driver and name not in sweep.idle]
    drawn = list(dict.fromkeys(moving))[:len(palette.CURVES)]
    panels = []
    for unit, name in (("deg", "angle"), ("m", "position")):
        curves = {each: _unit_of(sweep, each)[0] * sweep.position(each) for each in drawn if _unit_of(sweep, each)[1] == unit}
        panels += [_Panel(name, unit, curves)] if curves else []
    for each in sweep.driven:
        advantage = {each: _clipped(sweep.mechanical_advantage(each))}
        panels.append(_Panel("mechanical advantage", sweep.advantage_unit(each), advantage))
    if angles:
        panels.append(_Panel("transmission angle", "deg", {name: np.degrees(x) for name, x in angles.items()}))
    return panels or [_Panel("angle", "deg", {sweep.driver: np.degrees(sweep.positions)})]


def _coordinates(sweep: KinematicSweep) -> Sequence[str]:
    """Return the coordinates of joints that turn or slide, without quaternions."""
    return [name for joint in sweep.model.joints if joint.screws is not None for name in sweep.model.v_names[joint.v]]


def _unit_of(sweep: KinematicSweep, name: str) -> tuple[float, str]:
    """Return the factor and the unit in which a coordinate is drawn."""
    unit = sweep.model.v_units[sweep.model.v_names.index(name)]
    return (180.0 / np.pi, "deg") if unit == "rad" else (1.0, unit)


def _clipped(values: Array) -> Array:
    """Return values without those next to a pole."""
    finite = np.abs(values[np.isfinite(values)])
    maximum = _MAX_SIZE * float(np.median(finite)) if finite.size else 1.0
    return np.where(np.abs(values) <= maximum, values, np.nan)
