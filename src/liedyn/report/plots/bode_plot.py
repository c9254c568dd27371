"""Bode plot of a linear system: magnitude and phase of each output, by input."""
from __future__ import annotations

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from liedyn.analysis.linear_system import LinearSystem
from liedyn.arrays import Array, ComplexArray
from liedyn.errors import UsageError
from liedyn.report.plots import palette, style

MAX_INPUTS, MAX_OUTPUTS = 4, len(palette.CURVES)
_ZERO = 1e-12            # of the maximum magnitude: smaller ones are rounding


def check_bode(system: LinearSystem) -> None:
    """Raise UsageError unless the numbers of inputs and outputs fit a plot."""
    for kind, names, maximum in (("input", system.inputs, MAX_INPUTS), ("output", system.outputs, MAX_OUTPUTS)):
        if not 1 <= len(names) <= maximum:
            raise UsageError(f"a Bode plot: expected 1 to {maximum} {kind}s, got {len(names)} (select them, such as "
                             f"--{kind}s {names[0] if names else kind})")


def response_units(system: LinearSystem) -> list[list[str]]:
    """Return the unit of the response of each output (rows) to each input."""
    return [[f"{output}/({unit})" if " " in unit or "/" in unit else f"{output}/{unit}" for unit in system.input_units]
            for output in system.output_units]


def phases(G: ComplexArray) -> Array:
    """Return the phases [deg] of responses (frequencies, outputs, inputs), without jumps of 360 degrees.

    The first ones are from -225 to 135: -180 of a double integrator, and 90 of a derivative.
    """
    angles = np.degrees(np.unwrap(np.angle(G), axis=0))
    return np.where(angles[:1] > 135.0, angles - 360.0, angles)


def draw_bode(system: LinearSystem, w: Array, G: ComplexArray, title: str = "", look: palette.Look = palette.SCREEN) -> Figure:
    """Draw magnitude and phase of the responses G (frequencies, outputs, inputs) at w [rad/s], one column for each input."""
    units, inputs = response_units(system), len(system.inputs)
    magnitude, phase = np.abs(G), phases(G)
    is_zero = magnitude.max(axis=0) <= _ZERO * magnitude.max()
    same = len({unit for row in units for unit in row}) == 1
    key = [(style.key_label(look, k, name if same else f"{name} [{style.unit_text(system.output_units[k])}]"),
            palette.CURVES[k]) for k, name in enumerate(system.outputs)]
    figure, places = style.panels(2 * inputs, inputs, 3.6, 1.9, "Frequency response", title, key, left=0.85, look=look)
    is_single = style.count_columns(places) < inputs
    for j in range(inputs):
        drawn = [k for k in range(len(system.outputs)) if not is_zero[k, j]]
        zero = [name for k, name in enumerate(system.outputs) if is_zero[k, j]]
        for axes, part in ((places[j], "magnitude"), (places[inputs + j], "phase")):
            values = np.log10(np.maximum(magnitude[:, drawn, j], 1e-300)) if part == "magnitude" else phase[:, drawn, j]
            _draw_curves(axes, np.log10(w), values, drawn, look)
            names = [f"{part} [{style.unit_text(units[0][0])}]", part] if part == "magnitude" and same else [part]
            names = ["phase [deg]"] if part == "phase" else names
            _rule(axes, part, names if j == 0 or is_single else (), "frequency [rad/s]" if part == "phase" or is_single else None)
        remark = f"[{style.unit_text(system.input_units[j])}]" + (f", no effect on {', '.join(zero)}" if zero else "")
        style.heading(places[j], system.inputs[j], remark)
    return figure


def _draw_curves(axes: Axes, x: Array, values: Array, outputs: list[int], look: palette.Look) -> None:
    axes.set_xlim(x[0], x[-1])
    axes.set_ylim(*(style.with_air(values, 0.1) if values.size else (-1.0, 1.0)))
    for column, k in enumerate(outputs):
        axes.plot(x, values[:, column], color=palette.CURVES[k], linestyle=style.line_pattern(look, k),
                  linewidth=0.9 if look.paper else 1.4, solid_joinstyle="round")


def _rule(axes: Axes, part: str, y_names: list[str] | tuple[()], x_name: str | None) -> None:
    """Draw grid lines at powers of ten, and of phases at multiples of 45 degrees, at most six of each."""
    def exponents(low: float, high: float) -> list[int]:
        step = max(1, math.ceil((high - low) / 6))
        return [k for k in range(math.ceil(low), math.floor(high) + 1) if k % step == 0]

    x_ticks, (low, high) = exponents(*axes.get_xlim()), axes.get_ylim()
    if part == "magnitude":
        y_ticks, labels = exponents(low, high), style.powers(exponents(low, high))
    else:
        step = next((step for step in (45, 90, 180, 360, 720) if high - low <= 5 * step), 1440)
        y_ticks = [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]
        labels = [f"{angle}°" for angle in y_ticks]
    style.rulers(axes, x_ticks, y_ticks, x_name, x_labels=style.powers(x_ticks), y_labels=labels, y_names=y_names)
