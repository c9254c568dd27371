"""Curves by joint: a grid of small panels over one time axis, one panel per joint and unit.

Small panels are legible from 1 to 60 joints. Each has its scale: a wrist torque is visible next to a shoulder torque.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from liedyn.arrays import Array
from liedyn.errors import list_names
from liedyn.report.plots import palette, style
from liedyn.report.plots.figure_files import PlotFigure
from liedyn.report.plots.plot_data import Energy, Group, PlotData, Series, TrackedReferences

if TYPE_CHECKING:
    from liedyn.analysis.consistent_parameters import Validation

PANELS_A_PAGE = 40
# maximum number of panels on a page with so many columns; columns, width and height of a panel [inches]
_SIZES = ((2, 1, 7.5, 2.1), (8, 2, 4.4, 1.5), (15, 3, 3.3, 1.4), (24, 4, 2.7, 1.25), (PANELS_A_PAGE, 5, 2.3, 1.1))
_LETTERS = 22             # of a heading above a panel of half the width of a narrow figure
_FLAT = 1e-6              # of the maximum value with the same unit: a curve that varies less is drawn flat
_ZERO = 1e-9              # of the same: a panel with smaller values is not drawn, but listed
_ROUNDED = 1e-3           # of the maximum of all units [1/m]: a panel of moments below 1e-12 of the forces is rounding
_LEVEL = 1e-3             # of the mean: the same
_AT_LIMIT = 1e-9          # of a limit: a value that exceeds it by less is at the limit
_KEY = (("prescribed motion", palette.WARM[0]), ("motion computed from forces", palette.COOL[0]))
_FORCE_KEY = (("measured", palette.INK), ("identified", palette.BLUE), ("robot file", palette.ORANGE))

# quantity of a column by the start of its name and its unit; by its unit alone
_QUANTITIES = {("q", "rad"): "angle", ("q", "m"): "position", ("q", ""): "quaternion", ("pose", ""): "quaternion",
               ("tau", "N m"): "torque", ("motor", "N m"): "torque", ("stop", "N m"): "torque",
               ("friction", "N m"): "torque", ("contact", "m"): "depth",
               ("contact", "m/s"): "slip",
               ("contact", ""): "utilization", ("motor", ""): "load", ("motor", "rad/s"): "speed", ("speed", "m/s"): "speed"}
_OF_UNITS = {"rad": "angle", "m": "position", "rad/s": "angular velocity", "m/s": "velocity", "rad/s^2": "angular acceleration",
             "m/s^2": "acceleration", "N m": "moment", "N": "force", "kg m/s": "momentum", "kg m^2/s": "angular momentum",
             "N m s": "angular momentum", "N s": "momentum", "J": "energy", "W": "power"}

Panel = list[Series]


def quantity_names(kind: str, unit: str) -> tuple[str, ...]:
    """Return names of a quantity with its unit for an axis, the longest first."""
    quantity = _QUANTITIES.get((kind, unit), _OF_UNITS.get(unit, kind))
    symbol = f"[{style.unit_text(unit)}]" if unit else ""
    short = quantity.replace("angular ", "").replace("acceleration", "acc.").replace("velocity", "vel.")
    return tuple(f"{name} {symbol}".strip() for name in (quantity, short, "") if name or symbol)


def _quantity_names(kind: str, s: Series) -> tuple[str, ...]:
    """Return the names of the quantity of a curve. One without a unit, of a file that gives none, is no quaternion."""
    if kind == "q" and not s.unit and not s.label.startswith("q"):
        return ("position",)
    return quantity_names(kind, s.unit)


def draw_group(group: Group, recording: PlotData) -> list[Figure]:
    """Return the figures of a group, one per page, with nearly the same number of panels each.

    Panels of zeros are listed under the title instead of drawn.
    """
    by_joint: dict[tuple[str, str], Panel] = {}
    for s in group.series:
        by_joint.setdefault((s.joint, s.unit), []).append(s)
    largest = {unit: max(float(np.abs(s.values).max()) for s in group.series if s.unit == unit)
               for unit in {s.unit for s in group.series}}
    smallest = {unit: _FLAT * x for unit, x in largest.items()}
    idle = {link for link, touches in recording.contacts.items() if not touches.any()} if group.kind == "contact" else ()
    scales = {unit: max(x, _ROUNDED * max(largest.values())) or 1.0 for unit, x in largest.items()}
    sizes = {key: 0.0 if key[0] in idle else max(float(np.abs(s.values).max()) for s in panel) / scales[key[1]]
             for key, panel in by_joint.items()}
    zero = list(dict.fromkeys(joint if joint in idle or not unit else f"{joint} [{style.unit_text(unit)}]"
                              for (joint, unit), size in sizes.items() if size <= _ZERO))
    zero = zero if max(sizes.values()) > _ZERO else []                      # all are zero: drawn
    panels = [panel for key, panel in by_joint.items() if not zero or sizes[key] > _ZERO]
    count = math.ceil(len(panels) / PANELS_A_PAGE)
    size = math.ceil(len(panels) / count)
    notes = [f"{'never in contact' if idle else 'zero'}, not drawn: {list_names(zero, 8)}"] if zero else []
    heads = [_title(group, panels) + (f"  ({k} of {count})" if count > 1 else "") for k in range(1, count + 1)]
    shaded = "shaded: in contact" if recording.contacts and group.kind in ("contact", "fext") else ""
    axes = group.axes if any(s.label for s in group.series) else ""         # a coupling has no axes
    subtitle = style.joined(recording.title, axes, *notes, recording.event_names, shaded)
    figures = [_draw_page(group, panels[k * size:(k + 1) * size], recording, title, subtitle, smallest)
               for k, title in enumerate(heads)]
    for figure in figures:
        figure.notes += notes
    return list(figures)


def _title(group: Group, panels: list[Panel]) -> str:
    """Return the title of a group: of forces of joints by their units, of reactions by whether there are loops and couplings."""
    if group.kind == "reaction" and len(loops := {bool(s.label) for s in group.series}) == 1:
        return "Reactions of loops (on link b)" if loops == {True} else "Reactions of couplings"
    units = {panel[0].unit for panel in panels}
    if group.kind != "tau" or not units <= {"N m", "N"}:
        return group.title
    return "Joint torques and forces" if len(units) == 2 else "Joint torques" if "N m" in units else "Joint forces"


def _draw_page(group: Group, page: list[Panel], recording: PlotData, title: str, subtitle: str,
               smallest: dict[str, float]) -> PlotFigure:
    columns, width, height = next((columns, width, height) for capacity, columns, width, height in _SIZES
                                  if len(page) <= capacity)
    look, runs = recording.look, recording.runs
    if look.narrow and max(8 + sum(len(label) + 4 for label in {s.label for s in panel}) for panel in page) > _LETTERS:
        columns = 1
    told_apart = any(s.prescribed for panel in page for s in panel) and not runs
    key = run_key(look, runs) if runs else [(f"{style.sign(look, 1 - k)} {text}", colour) for k, (text, colour) in enumerate(_KEY)
                                            if told_apart]
    figure, places = style.panels(len(page), columns, width, height, title, subtitle, key, look=look)
    columns = style.count_columns(places)
    names = [_quantity_names(group.kind, panel[0]) for panel in page]
    for k, (axes, panel) in enumerate(zip(places, page, strict=True)):
        axes.set_xlim(*style.time_span(recording.t))
        style.draw_marks(axes, recording.event_times, recording.phases, names=k < columns)
        y_names = names[k] if k % columns == 0 or names[k] != names[k - 1] else ()
        if group.kind in ("contact", "fext"):
            _draw_contacts(axes, panel[0].joint, recording)
        _draw_panel(axes, panel, recording, _colours(panel, told_apart, bool(runs)), smallest[panel[0].unit],
                    k + columns >= len(page), y_names)
    return figure


def run_key(look: palette.Look, runs: Sequence[str]) -> list[tuple[str, str]]:
    """Return the key of runs that are compared: the pattern, the name and the colour of each."""
    return [(f"{style.sign(look, k)} {run}", palette.CURVES[k % len(palette.CURVES)]) for k, run in enumerate(runs)]


def _draw_contacts(axes: Axes, link: str, recording: PlotData) -> None:
    """Shade the times at which a link is in contact."""
    if link in recording.contacts:
        axes.fill_between(recording.t, 0, 1, where=recording.contacts[link], transform=axes.get_xaxis_transform(),
                          facecolor=palette.BAND, linewidth=0, edgecolor=palette.HATCHING, hatch=style.hatch(recording.look, 1),
                          step="post", zorder=-1, label="contact")


def _draw_panel(axes: Axes, panel: Panel, recording: PlotData, colours: list[str], smallest: float, last: bool,
                names: Sequence[str]) -> None:
    look, compared = recording.look, bool(recording.runs)
    limits = sorted({x for s in panel for x in _near_limits(s, smallest)})
    axes.set_ylim(*_value_range(panel, limits, smallest))
    style.rulers(axes, 6, 3, "t [s]" if last else None, y_names=names)
    beyond = any(_passes(s.lower, -s.values.min()) or _passes(-s.upper, s.values.max()) for s in panel)
    for limit in limits:
        axes.axhline(limit, color=palette.VERMILLION if beyond else palette.FAINT, linestyle=(0, (5, 4)), linewidth=0.8, zorder=1)
    labels = list(dict.fromkeys(s.label for s in panel))
    several = compared and len(labels) > 1                     # components of runs: runs differ by their patterns
    for k, (s, colour) in enumerate(zip(panel, colours, strict=True)):
        width = 1.3 + 0.8 * (len(panel) - 1 - k) / max(len(panel) - 1, 2)     # equal curves remain visible
        pattern = palette.LINES[s.run % len(palette.LINES)][0] if several else style.line_pattern(
            look, s.run if compared else int(s.prescribed) if len(panel) == 1 else k)
        style.curve(axes, recording.t if s.t is None else s.t, s.values, color=colour, linestyle=pattern,
                    linewidth=0.7 * width if look.paper else width, solid_joinstyle="round", label=s.label or s.joint)
    named = any(label and name.startswith(label) for label in labels for name in names[:1]) and len(labels) == 1
    keys = {} if named else {s.label: (style.key_label(look, k, s.label) if not compared else s.label, colour, "bold")
             for k, (s, colour) in enumerate(zip(panel, colours, strict=True))}
    style.heading(axes, panel[0].joint, "", *keys.values(), ("over limit" if beyond else "", palette.VERMILLION, "normal"))


def _colours(panel: Panel, told_apart: bool, compared: bool) -> list[str]:
    """Return the colours of curves: of components those of axes, of runs that are compared one each.

    Others are warm and cool for prescribed and other curves if these are `told_apart`.
    """
    components = [palette.component_colour(s.label.partition(" ")[0]) for s in panel]
    if len({s.label for s in panel}) > 1 and all(components):
        return [str(colour) for colour in components]
    if compared:
        return [palette.CURVES[s.run % len(palette.CURVES)] for s in panel]
    palettes = [palette.CURVES if not told_apart else palette.WARM if s.prescribed else palette.COOL for s in panel]
    return [colours[k % len(colours)] for k, colours in enumerate(palettes)]


def _value_range(panel: Panel, limits: list[float], smallest: float) -> tuple[float, float]:
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

_WIDTH, _RIGHT = 7.0, 1.3                 # of a panel, and of the names at the ends of its curves [inches]
_FLOOR = 1e-18                            # of the maximum residual: zero is drawn here
_ROUNDING = 1e-9                          # of the maximum energy: smallest range of an axis
_SHORT = ("kinetic", "potential", "total", "supplied")
_DECADES = 8                              # of the residual; smaller values at the start are below the axis


def draw_energy(energy: Energy, recording: PlotData) -> Figure:
    """Draw kinetic, potential (zero at the start) and total energy; below, on log axes, residuals of balance and constraints."""
    t, look, small = recording.t, recording.look, []
    if energy.residual is not None:
        small.append((energy.residual, palette.VERMILLION, "balance residual",
                      "Balance" if look.width else "Balance: |total − initial − supplied|", "J"))
    notes = ["zero, not drawn: constraints"] if recording.drift is not None and not recording.drift.any() else []
    if recording.drift is not None and not notes:
        small.append((recording.drift, palette.SKY, "constraint residual", "Maximum constraint residual", recording.drift_unit))
    subtitle = style.joined(recording.title, *notes, recording.event_names)
    figure, places = style.panels(1 + len(small), 1, _WIDTH, 1.8, "Energy", subtitle, left=0.85, look=look,
                                  right=0.25 if look.width else _RIGHT)
    figure.notes += notes
    for axes in places:
        axes.set_xlim(*style.time_span(t))
        style.draw_marks(axes, recording.event_times, recording.phases, names=axes is places[0])
    _draw_balance(places[0], energy, t, None if small else "t [s]")
    for axes, (x, colour, label, text, unit) in zip(places[1:], small, strict=True):
        _draw_residual(axes, np.abs(x), t, colour, label, text, unit, "t [s]" if axes is places[-1] else None)
    return figure


def _draw_balance(axes: Axes, energy: Energy, t: np.ndarray, x_name: str | None) -> None:
    potential = energy.potential - energy.potential[0]
    curves: list[tuple[str, np.ndarray, str, Any]] = [
        ("kinetic", energy.kinetic, palette.ORANGE, "-"), ("potential\n(0 at the start)", potential, palette.BLUE, "-"),
        ("total", energy.kinetic + potential, palette.INK, "-")]
    if energy.work is not None:
        curves.append(("initial +\nsupplied work", energy.kinetic[0] + energy.work, palette.GREEN, (0, (4, 3))))
    largest = max(float(np.abs(x).max()) for x in (energy.kinetic, energy.potential))
    axes.set_ylim(*style.with_air([x for _, x, _, _ in curves], _ROUNDING * largest))
    style.rulers(axes, 8, 5, x_name, y_names=quantity_names("energy", "J"))
    look = style.parent_figure(axes).look
    for k, (name, x, colour, line) in enumerate(curves):
        style.curve(axes, t, x, color=colour, linestyle=style.line_pattern(look, k) if look.paper else line,
                    linewidth=1.0 if look.paper else 1.5, label=name.replace("\n", " "))
    if look.width is not None:                              # no room at the ends of the curves
        names = (style.key_label(look, k, name) for k, name in enumerate(_SHORT))
        style.heading(axes, "", "", *((name, colour, "bold") for name, (_, _, colour, _) in zip(names, curves, strict=False)))
        return
    _name_curves(axes, [(name, float(x[-1]), colour) for name, x, colour, _ in curves])
    style.heading(axes, "Kinetic, potential and total energy")


def _draw_residual(axes: Axes, residual: np.ndarray, t: np.ndarray, colour: str, label: str, text: str, unit: str,
                   x_name: str | None) -> None:
    exponents = np.log10(np.maximum(residual, _FLOOR * (residual.max() or 1.0)))
    upper = int(np.ceil(exponents.max()))
    lower = min(max(int(np.floor(exponents.min())), upper - _DECADES), upper - 2)
    axes.set_ylim(lower - 0.2, upper + 0.2)
    decades = range(lower, upper + 1, max(1, -(-(upper - lower) // 4)))
    style.rulers(axes, 8, decades, x_name, y_labels=style.powers(decades), y_names=(f"residual [{unit}]", f"[{unit}]"))
    style.curve(axes, t, exponents, color=colour, linewidth=1.2, label=label)
    style.heading(axes, text, "log axis")


def _name_curves(axes: Axes, ends: list[tuple[str, float, str]]) -> None:
    """Write names at the right ends of the curves, moved apart where they would overlap or leave the axes."""
    lower, upper = axes.get_ylim()
    lines = [name.count("\n") + 1 for name, _, _ in ends]
    line = 1.2 * style.parent_figure(axes).look.name / 72 / style.tall(axes) * (upper - lower)
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
        style.words(axes, name, (1, at[k]), (6, 0), "left", "bottom", xycoords=axes.get_yaxis_transform(),
                    size=style.parent_figure(axes).look.name,
                    color=colour, linespacing=1.0)


# Tracking of references: motion and error of each joint; the error has a log axis to compare control laws --------------

_MOTIONS = (1.3, 2.1, 2.9, 3.7)          # widths of lines, which often overlap
_SEEN = 0.02                             # part of the smallest errors, near zero, that is outside of the range


def draw_tracking(recording: PlotData) -> Figure:
    """Draw one row per joint; each run has its colour. All runs have the same joints."""
    runs, look = recording.tracking, recording.look
    joints = list(runs[0].joints)
    key = [(f"{style.sign(look, k)} {run.label.replace('_', ' ')}", _colour(k)) for k, run in enumerate(runs) if run.label]
    key.append(("- - reference", palette.INK))
    figure, places = style.panels(2 * len(joints), 2, 4.2, 1.5, "Tracking", recording.title, key, look=look)
    span = style.time_span(np.sort([end for run in runs for end in (run.t[0], run.t[-1])]))
    columns = style.count_columns(places)
    for k, axes in enumerate(places):
        axes.set_xlim(*span)
        style.draw_marks(axes, recording.event_times, recording.phases, names=k < columns)
        draw = _draw_error if k % 2 else _draw_motion
        draw(axes, runs, joints[k // 2], "t [s]" if k + columns >= len(places) else None)
    return figure


def _draw_motion(axes: Axes, runs: Sequence[TrackedReferences], joint: str, x_name: str | None) -> None:
    unit, _, reference = runs[0].joints[joint]
    largest = max(float(np.abs(x).max()) for run in runs for joint_unit, *both in run.joints.values() if joint_unit == unit
                  for x in both)
    axes.set_ylim(*style.with_air(np.concatenate([x for run in runs for x in run.joints[joint][1:]]), _FLAT * largest))
    style.rulers(axes, 6, 3, x_name, y_names=quantity_names("q", unit))
    for k in range(len(runs) - 1, -1, -1):
        style.curve(axes, runs[k].t, runs[k].joints[joint][1], color=_colour(k), linestyle=_pattern(axes, k),
                    linewidth=_MOTIONS[min(k, len(_MOTIONS) - 1)], solid_joinstyle="round")
    style.curve(axes, runs[0].t, reference, color=palette.INK, linewidth=0.9, linestyle=(0, (4, 4)))
    style.heading(axes, joint)


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
    style.rulers(axes, 6, decades, x_name, y_labels=style.powers(decades), y_names=(f"|error| [{style.unit_text(unit)}]",))
    for k, (t, x) in enumerate(curves):
        style.curve(axes, t, x, color=_colour(k), linestyle=_pattern(axes, k), linewidth=1.3, solid_joinstyle="round")
    style.heading(axes, "|error|", "log axis")


def _pattern(axes: Axes, k: int) -> Any:
    return style.line_pattern(style.parent_figure(axes).look, k)


def _colour(k: int) -> str:
    return (palette.BLUE, palette.VERMILLION, palette.GREEN, palette.PURPLE, palette.ORANGE, palette.SKY)[k % 6]


def draw_forces(validation: Validation, units: list[str], look: palette.Look = palette.SCREEN) -> PlotFigure:
    """Draw the forces of each joint whose force was measured, and the residuals of the parameters and of the robot file.

    units  of the forces of all coordinates
    """
    measured = np.flatnonzero(np.isfinite(validation.force).all(axis=0))
    figure, places = style.panels(2 * len(measured), 2, 4.4, 1.3, "Forces and residuals", "", _FORCE_KEY, look=look)
    for row, k in enumerate(measured):
        force, x, y = validation.force[:, k], validation.predicted[:, k], validation.predicted_by_file[:, k]
        last = "t [s]" if row == len(measured) - 1 else None
        _draw_forces(places[2 * row], validation.t, (y, x, force), (palette.ORANGE, palette.BLUE, palette.INK), units[k], last)
        style.heading(places[2 * row], validation.joints[k])
        _draw_forces(places[2 * row + 1], validation.t, (force - y, force - x), (palette.ORANGE, palette.BLUE), units[k], last)
        style.heading(places[2 * row + 1], "residual", f"{validation.residual[k]:.3g} {units[k]} (rms)")
    return figure


def _draw_forces(axes: Axes, t: Array, curves: tuple[Array, ...], colours: tuple[str, ...], unit: str,
                 x_name: str | None) -> None:
    axes.set_xlim(*style.time_span(t))
    axes.set_ylim(*style.with_air(np.concatenate(curves)))
    style.rulers(axes, 6, 3, x_name, y_names=(f"[{style.unit_text(unit)}]",))
    for x, colour in zip(curves, colours, strict=True):
        style.curve(axes, t, x, color=colour, linewidth=1.0, solid_joinstyle="round")
