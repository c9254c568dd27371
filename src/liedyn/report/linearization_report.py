"""The folder of a linearization: matrices and linear.json, written completely or not at all, then a plot of the modes."""
from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from liedyn import __version__
from liedyn.analysis.linear_system import LinearSystem, stability_text
from liedyn.analysis.linearize import Linearization
from liedyn.analysis.modes import Mode, chains_text, eigenvalue_text, growth_text
from liedyn.analysis.optimal_gains import Gain
from liedyn.analysis.transfer_function import plot_frequencies
from liedyn.arrays import Array, ComplexArray
from liedyn.dynamics.finite_differences import MAX_EXCESS
from liedyn.dynamics.scales import model_scales
from liedyn.errors import CheckFailed, counted, first_of, list_names
from liedyn.io.atomic_output import open_folder
from liedyn.io.csv_table import cell, write_table
from liedyn.io.scenarios.scenario_file import to_plain
from liedyn.report.plots import palette, style
from liedyn.report.plots.bode_plot import check_bode, draw_bode, phases, response_units
from liedyn.report.plots.plot_data import FORMATS
from liedyn.report.plots.save_plots import save_sheets
from liedyn.report.plots.saved_plots import SavedPlots, draw_beside
from liedyn.report.robot_summary import WIDTH, table, wrapped

MARK = "linear.json"                    # identifies such a folder
_RESPONSE = "frequency_response"
_SHOWN = 3                              # coordinates named for a mode
_PLACES = 8                             # coordinates of an equilibrium that are printed
_MOVING = 1e-6                          # of characteristic velocities and accelerations: smaller ones count as rest


def write_linearization(result: Linearization, folder: str | Path, *, force: bool = False, plots: bool = True,
                        formats: Sequence[str] = FORMATS, look: palette.Look = palette.SCREEN, bode: bool = False,
                        gain: Gain | None = None) -> SavedPlots:
    """Write A, B, C, D, Ad, Bd as CSV, system.npz for NumPy, linear.json and the plot; with `bode`, the frequency response.

    gain: of a regulator, which is written as K.csv

    Returns the files, and the reason if the plot cannot be drawn.
    Raises UsageError if the folder exists and `force` is false, if it cannot be written, or if there are too many inputs or
    outputs for a Bode plot.
    """
    folder = Path(folder)
    tables = matrices(result)
    w = plot_frequencies(result.system) if bode else np.zeros(0)
    if bode:
        check_bode(result.system)
    G = result.system.frequency_response(w)
    with open_folder(folder, mark=MARK, force=force) as part:
        for name, (matrix, rows, columns) in tables.items():
            titled = [(cell(title), values) for title, values in zip(columns, matrix.T, strict=True)]
            with (part / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
                write_table(file, [(name, rows), *titled])
        if bode:
            with (part / f"{_RESPONSE}.csv").open("w", encoding="utf-8", newline="") as file:
                write_table(file, _response_columns(result.system, w, G))
        if gain is not None:
            gain.write(part / "K.csv")
        names = {name: np.array(getattr(result.system, name), dtype=str) for name in ("states", "inputs", "outputs")}
        arrays: dict[str, Any] = {name: matrix for name, (matrix, _, _) in tables.items()} | names | {"step": result.step}
        np.savez(part / "system.npz", **arrays)
        (part / MARK).write_text(json.dumps(summary(result, folder), indent=2, allow_nan=False) + "\n", encoding="utf-8",
                                 newline="\n")
    names_of_tables = [*tables, *([_RESPONSE] if bode else []), *(["K"] if gain is not None else [])]
    written = SavedPlots([*(folder / f"{name}.csv" for name in names_of_tables), folder / "system.npz", folder / MARK])
    response = (w, G) if bode else None
    return written + draw_beside(folder, partial(_draw, result, response, formats, look)) if plots else written


def _response_columns(system: LinearSystem, w: Array, G: ComplexArray) -> list[tuple[str, Array]]:
    """Return the columns of the CSV of the frequency response."""
    columns, units, angles = [("w[rad/s]", w)], response_units(system), phases(G)
    for j, source in enumerate(system.inputs):
        for k, output in enumerate(system.outputs):
            columns += [(cell(f"magnitude.{output}/{source}[{units[k][j]}]"), np.abs(G[:, k, j])),
                        (cell(f"phase.{output}/{source}[deg]"), angles[:, k, j])]
    return columns


def matrices(result: Linearization) -> dict[str, tuple[np.ndarray, list[str], list[str]]]:
    """Return {name: (matrix, names of its rows, names of its columns)}, with units in the names."""
    s = result.system
    named = {kind: [f"{name}[{unit}]" for name, unit in zip(names, units, strict=True)]
             for kind, names, units in (("x", s.states, s.state_units), ("u", s.inputs, s.input_units),
                                        ("y", s.outputs, s.output_units))}
    return {name: (matrix, named[rows], named[columns]) for name, matrix, rows, columns in (
        ("A", s.A, "x", "x"), ("B", s.B, "x", "u"), ("C", s.C, "y", "x"), ("D", s.D, "y", "u"), ("Ad", result.Ad, "x", "x"),
        ("Bd", result.Bd, "x", "u"))}


def _by_name(names: Sequence[str], x: np.ndarray) -> dict[str, float]:
    return dict(zip(names, map(float, x), strict=True))


def summary(result: Linearization, folder: str | Path | None = None) -> dict[str, Any]:
    """Return the content of linear.json, which is also printed by --json."""
    s, point, m = result.system, result.here, result.model
    return {
        "liedyn": __version__, "robot": m.name, "t": point.t, "at_rest": result.offset is not None,
        "states": list(s.states), "inputs": list(s.inputs), "outputs": list(s.outputs),
        "units": {"states": list(s.state_units), "inputs": list(s.input_units), "outputs": list(s.output_units)},
        "q": _by_name(m.q_names, point.q), "v": _by_name(m.v_names, point.v), "a": _by_name(m.v_names, point.a),
        "tau": _by_name(m.v_names, point.tau), "held_by": result.offset or {},
        "integrals": {name[2:]: float(point.integral[m.v_names.index(name[2:])]) for name in s.states if name.startswith("z.")},
        "stability": s.stability, "growth_power": s.growth, "modes": [_plain(mode) for mode in s.modes],
        "poles": _complex(s.poles), "zeros": _complex(s.zeros),
        "controllable_states": s.controllable, "observable_states": s.observable,
        "discretization": {"method": "zero-order hold", "step": result.step},
        "verified": {name: difference.off for name, difference in result.differences.items()} if result.differences else None,
        "scenario": to_plain(result.scenario, os.path.abspath(folder) if folder is not None else None),
        "warnings": [warning.to_dict() for warning in result.warnings],
    }


def _complex(values: ComplexArray) -> list[list[float]]:
    return [[value.real, value.imag] for value in values.tolist()]


def _plain(mode: Mode) -> dict[str, Any]:
    constant = mode.time_constant
    return {"eigenvalue": [mode.eigenvalue.real, mode.eigenvalue.imag], "count": mode.count, "stability": mode.stability,
            "chains": list(mode.chains), "growth_power": mode.growth,
            "frequency_hz": mode.frequency, "damping_ratio": mode.damping,
            "time_constant": constant if math.isfinite(constant) else None,
            "participation": _rounded(mode.participation), "fastest": _rounded(mode.fastest)}


def _rounded(shares: dict[str, float]) -> dict[str, float]:
    return {name: round(fraction, 6) for name, fraction in shares.items() if fraction >= 5e-7}


def _largest(shares: dict[str, float]) -> list[tuple[str, float]]:
    return [(name, fraction) for name, fraction in shares.items() if fraction >= 0.05]


def _time_text(result: Linearization) -> str:
    return "at rest" if result.offset is not None else f"at t = {result.here.t:g} s"


def _place(result: Linearization) -> str:
    """Return the text of the configuration. Rounding errors about zero are shown as zero."""
    m = result.model
    return list_names([f"{name} {round(x, 9) + 0.0:.5g} {unit}".rstrip()
                    for name, x, unit in zip(m.q_names, result.here.q.tolist(), m.q_units, strict=True)], _PLACES)


def text(result: Linearization, max_modes: int = 24) -> str:
    """Return a text: the least stable modes and their coordinates, ranks, and the agreement with finite differences."""
    s, n = result.system, len(result.system.states)
    units = model_scales(result.model)
    rates = np.abs([result.here.v * units.time, result.here.a * units.time**2])
    moving = rates > _MOVING * units.unit_scales(result.model.v_units)
    frozen = " (frozen-time, not an equilibrium)" if moving.any() else ""
    lines = [f"{result.model.name} {_time_text(result)}: {n} states, {counted(len(s.inputs), 'input')}, "
             f"{counted(len(s.outputs), 'output')}; {stability_text(s)}{frozen}"]
    if s.modes:
        head = ["eigenvalue [1/s]", "f [Hz]", "damping", "time const. [s]", "stability", "participation"]
        first, count = first_of(s.modes, max_modes)
        lines += [f"  {line}".rstrip() for line in table([head, *map(_cells, first)], (4, 5), WIDTH - 2)]
        lines += [f"  … and {count} more, in {MARK}"] if count else []
    lines += [f"  {eigenvalue_text(mode)}: {chains_text(mode)}; {growth_text(mode.growth)}: "
              + list_names([name for name, _ in _largest(mode.fastest)], _SHOWN) for mode in s.modes if mode.growth]
    fixed = int((~s.moving).sum())
    if fixed:
        subject = "All of these states" if fixed == n else f"{fixed} of the {n} states"
        lines += [f"{subject} belong to prescribed coordinates. Forces do not affect these; they have no modes."]
    if result.offset is not None:
        lines += [f"equilibrium at {_place(result)}"]
    if result.offset:
        lines += ["held by " + ", ".join(f"{name} {value:.6g}" for name, value in result.offset.items())]
    lines += [f"controllable: {s.controllable} of {n} states; observable: {s.observable} of {n}",
              f"transmission zeros [1/s]: {_zeros_text(s.zeros)}"]
    if result.differences:
        lines += ["maximum relative difference from extrapolated finite differences: "
                  + ", ".join(f"{name} {difference}" for name, difference in result.differences.items())]
    return "\n".join(part for line in lines for part in (wrapped(line, "    ") if len(line) > WIDTH else [line]))


def _zeros_text(zeros: ComplexArray) -> str:
    """Return the zeros as text, pairs of conjugate ones together."""
    upper = [zero for zero in zeros.tolist() if zero.imag >= 0.0]
    return list_names([f"{zero.real:.5g}" + (f" ± {zero.imag:.5g}i" if zero.imag else "") for zero in upper], _PLACES) or "none"


def _cells(mode: Mode) -> list[str]:
    pair = 2 if mode.eigenvalue.imag else 1
    value = eigenvalue_text(mode) + (f"  ({mode.count // pair}x)" if mode.count > pair else "")
    parts = list_names([f"{name} {100 * fraction:.0f}%" for name, fraction in _largest(mode.participation)], _SHOWN)
    damping = 0.0 if mode.chains else mode.damping
    frequency, damped = (f"{mode.frequency:.4g}", f"{damping:.3g}") if mode.eigenvalue.imag else ("", "")
    constant = "" if mode.chains else f"{mode.time_constant:.4g}"
    return [value, frequency, damped, constant, mode.stability, parts]


def check(result: Linearization) -> None:
    """Raise CheckFailed if the comparison with finite differences exceeds its bound."""
    bad = {name: difference for name, difference in (result.differences or {}).items() if not difference.sound}
    if bad:
        figures = ", ".join(f"{name} {difference.off:.1e}" for name, difference in bad.items())
        raise CheckFailed(f"the linearization differs from extrapolated finite differences by {figures} (relative), more than "
                          f"{MAX_EXCESS:g}: a force may have a kink here (abs, min, max, step, sign), or friction may be steep")


def _draw(result: Linearization, response: tuple[Array, ComplexArray] | None, formats: Sequence[str], look: palette.Look,
          folder: Path) -> SavedPlots:
    title = f"{result.model.name}, {_time_text(result)}"
    sheets = {"modes": lambda: draw_modes(result.system, title, look)} if result.system.modes else {}
    if response is not None:
        sheets["bode"] = lambda: draw_bode(result.system, *response, title, look)
    return save_sheets(sheets, folder, formats) if sheets else SavedPlots()


# Modes of a linear system as a table and as a plot ---------------------------------------------------------------------

_COLOURS = {"unstable": palette.VERMILLION, "drifting": palette.PURPLE, "neutral": palette.ORANGE, "stable": palette.BLUE}
_DECADES = 4                             # decades of the complex plane about zero
_MOST_ROWS, _NAMED = 30, 6               # rows of the map; eigenvalues with a label
_SIDE, _TOP, _LEFT, _GAP, _WORDS = 3.9, 0.55, 0.85, 1.75, 1.8        # inches
_SMALLEST_SIDE, _COLUMN = 2.6, 0.14      # inches: of the plane next to the map; a column of the map with words
_MARKERS = {"unstable": ("x", "×"), "drifting": ("+", "+"), "neutral": ("s", "□"), "stable": ("o", "○")}       # and signs in keys


def draw_modes(system: LinearSystem, title: str = "", look: palette.Look = palette.SCREEN) -> Figure:
    """Draw the eigenvalues of the moving states in the complex plane, and the participation of coordinates in each mode.

    Where the width of `look` is too small for both, the participation is below.
    """
    modes = system.modes
    names = _rows(system)
    right = 0.35 + max(2.0, 0.22 * len(modes))
    width = look.width or _LEFT + _SIDE + _GAP + right
    is_beside = width - _LEFT - _GAP - right >= _SMALLEST_SIDE
    side = min(_SIDE, width - _LEFT - (_GAP + right if is_beside else 0.2))
    if is_beside:
        map_x, height = _LEFT + side + _GAP, _TOP + max(side, 0.16 * len(names) + _WORDS) + 0.6
        top, tall = _TOP, min(height - _TOP - 0.5 - _WORDS, max(1.0, 0.26 * len(names)))
    else:
        map_x, top, tall = _GAP, _TOP + side + 0.8, max(0.5, 0.18 * len(names))
        height = top + tall + _WORDS if names else top
    counts = {word: sum(mode.count for mode in modes if mode.stability == word) for word in _COLOURS}
    key = [(f"{_MARKERS[word][1] + ' ' if look.paper else ''}{count} {word}", _COLOURS[word] if count else palette.FAINT)
           for word, count in counts.items()]
    figure = style.new_figure(width, height, "Modes", title, key, look)
    _draw_plane(style.plain_axes(figure, _LEFT, height - _TOP - side, side, side), modes)
    if names:
        wide = min(width - map_x - 0.35, 0.5 * len(modes))
        _draw_shares(style.plain_axes(figure, map_x, height - top - tall, wide, tall), modes, names)
    return figure


def _rows(system: LinearSystem) -> list[str]:
    """Return coordinates in the robot's order; if there are many, those with the largest participation."""
    if not system.modes:
        return []
    order = [name for name in dict.fromkeys(state.partition(".")[2] for state in system.states)
             if name in system.modes[0].participation]
    joints = sorted(order, key=lambda name: -max(mode.participation[name] for mode in system.modes))[:_MOST_ROWS]
    return [name for name in order if name in joints]


class _Plane:
    """Axes of the complex plane, logarithmic on both sides of a linear middle, which separates slow from fast modes."""

    def __init__(self, values: np.ndarray):
        parts = np.abs(np.concatenate([values.real, values.imag]))
        largest = parts.max(initial=0.0) or 1.0                    # modes at zero are exactly zero
        seen = parts[parts > largest * 10.0**-_DECADES]
        self.top = math.ceil(math.log10(largest * 1.2))
        lowest = math.floor(math.log10(seen.min() if len(seen) else largest))
        self.unit = 10.0 ** max(min(lowest, self.top - 2), self.top - _DECADES)
        self.end = self(10.0**self.top)

    def __call__(self, x: ArrayLike) -> Any:
        return np.sign(x) * np.log10(1.0 + np.abs(x) / self.unit)

    def ticks(self) -> tuple[list[float], list[str]]:
        first = round(math.log10(self.unit))
        sizes = [10.0**k for k in range(first, self.top + 1)]
        values = [-x for x in reversed(sizes)] + [0.0] + sizes
        crowded = self.top - first > 2                     # about zero
        return [float(self(x)) for x in values], ["" if crowded and abs(x) == sizes[0] else f"{x:g}" for x in values]


def _draw_plane(axes: Axes, modes: tuple[Mode, ...]) -> None:
    values, look = np.array([mode.eigenvalue for mode in modes] or [0j]), style.parent_figure(axes).look
    plane = _Plane(values)
    end = 1.06 * plane.end
    left, right = (max(float(plane(x)) + 0.1 * end, 0.2 * end) for x in (-values.real.min(), values.real.max()))
    axes.set_xlim(-left, right)
    axes.set_ylim(-end, end)
    axes.axvspan(0, right, color="#FBEFE8", zorder=-2, linewidth=0)
    at, labels = plane.ticks()
    across = {x: label for x, label in zip(at, labels, strict=True) if -left <= x <= right}
    style.rulers(axes, list(across), at, "real part [1/s]", x_labels=list(across.values()), y_labels=labels,
                 y_names=("imaginary part [1/s]",))
    axes.axvline(0, color=palette.FAINT, linewidth=1.0, zorder=1)
    named: list[tuple[float, float]] = []
    for number, mode in enumerate(modes, 1):
        x, y = plane(mode.eigenvalue.real), plane(mode.eigenvalue.imag)
        for side in (1, -1) if mode.eigenvalue.imag else (1,):
            axes.plot([x], [side * y], marker=_MARKERS[mode.stability][0] if look.paper else "x", markersize=7, fillstyle="none",
                      markeredgewidth=1.6, color=_COLOURS[mode.stability], linestyle="none",
                      label=f"mode {number}" if side == 1 else "_")
        if number <= _NAMED and all(math.hypot(x - a, y - b) > 0.06 * end for a, b in named):
            named.append((float(x), float(y)))
            style.words(axes, str(number), named[-1], (5, 4), "left", "baseline", color=palette.INK)
    remark = f"axes linear within ±{plane.unit:g}, logarithmic beyond"
    style.heading(axes, "Eigenvalues", remark if style.wide(axes) > 3.0 else f"linear within ±{plane.unit:g}")


def _draw_shares(axes: Axes, modes: tuple[Mode, ...], names: list[str]) -> None:
    shares = np.array([[mode.participation[name] for mode in modes] for name in names])
    axes.pcolormesh(shares, cmap=LinearSegmentedColormap.from_list("shares", ["#FFFFFF", palette.BLUE]), vmin=0, vmax=1,
                    edgecolors=palette.GRID, linewidth=0.5)
    axes.set_xlim(0, len(modes))
    axes.set_ylim(len(names), 0)
    for k, name in enumerate(names):
        style.words(axes, style.shortened(name, 22), (0, k + 0.5), (-4, 0), "right", color=palette.INK, annotation_clip=False)
    every = max(-(-len(modes) // 40), math.ceil(_COLUMN * len(modes) / style.wide(axes)))
    for k in range(0, len(modes), every):
        for text, down, turn in ((str(k + 1), 4, 0), (_words(modes[k]), 17, 90)):
            style.words(axes, text, (k + 0.5, len(names)), (0, -down), va="top", rotation=turn,
                        color=_COLOURS[modes[k].stability], annotation_clip=False)
    style.heading(axes, "", "", ("Joints in each mode", palette.INK, "bold"))


def _words(mode: Mode) -> str:
    """Return frequency and damping of an oscillating mode, or the time constant of another, as text."""
    if mode.growth:
        swings = f"{mode.frequency:.3g} Hz, " if mode.eigenvalue.imag else ""
        return f"{swings}chain of {mode.chains[0]}, {growth_text(mode.growth)}"
    if mode.eigenvalue.imag:
        damping = 0.0 if mode.chains else mode.damping
        return f"{mode.frequency:.3g} Hz, damping {damping:.2g}"
    if mode.chains:
        return "stays"
    return f"{'decays' if mode.time_constant > 0 else 'grows'} in {abs(mode.time_constant):.3g} s"
