"""Plots of batches: outputs over varied quantities, distributions, sensitivities, envelopes of trajectories."""
from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from liedyn import __version__
from liedyn.batch.result_store import TRAJECTORIES, ResultStore
from liedyn.errors import LiedynError, LiedynWarning, UsageError, WarningLog
from liedyn.io.atomic_output import translate_os_errors
from liedyn.report.plots import palette, style
from liedyn.report.plots.joint_plots import quantity_names
from liedyn.report.plots.save_plots import save_sheets
from liedyn.report.plots.saved_plots import SavedPlots, drawn_into

_LEFT, _GAP = 0.85, 0.7  # before columns, between rows [inches]
_POINTS = 3000           # in a panel, at most
_SLICES = 20             # of a curve of medians
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_BANDS = ("#CFE3F1", "#8FBFE0")             # of nine tenths and of half of the runs


# values of the complete runs, by name; an output is NaN if its event did not happen
Columns = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class OutputSensitivity:
    """Sensitivity of an output.

    name     of the output
    base     its value at the medians of the varied quantities
    changes  (varied,) first-order changes by one standard deviation of each quantity; NaN if unknown
    method   how the derivatives were computed
    """

    name: str
    base: float
    changes: np.ndarray
    method: str


@dataclass(frozen=True)
class Envelope:
    """Quantiles of a column of the trajectories over time: (5, R) at 5, 25, 50, 75 and 95 %."""

    name: str
    unit: str
    t: np.ndarray
    quantiles: np.ndarray


def draw_scatter(varied: Columns, outputs: Columns, subtitle: str, look: palette.Look = palette.SCREEN) -> Figure:
    """Draw one row per output and one column per varied quantity; a line follows the median."""
    width = 2.6 if len(varied) > 2 else 3.6
    figure, places = style.panels(len(outputs) * len(varied), len(varied), width, 1.7, "Outputs and varied parameters",
                                  f"{subtitle}; line: median", left=_LEFT, gap=_GAP, look=look)
    for k, (axes, (output, name)) in enumerate(zip(places, product(outputs, varied), strict=True)):
        x, y = _with_value(varied[name], outputs[output])
        axes.set(xlim=style.with_air(x), ylim=style.with_air(y))
        style.rulers(axes, 4, 4, style.shortened(name, int(13 * width)))
        some = np.arange(len(x)) if len(x) <= _POINTS else np.linspace(0, len(x) - 1, _POINTS).astype(int)
        axes.plot(x[some], y[some], ".", color=palette.BLUE, alpha=0.5, markeredgewidth=0,
                  markersize=2.5 if len(some) > 1000 else 5)
        _medians(axes, x, y)
        style.heading(axes, output if k % len(varied) == 0 else "")
    return figure


def draw_histograms(outputs: Columns, subtitle: str, look: palette.Look = palette.SCREEN) -> Figure:
    """Draw the distribution of each output with its median and its middle 90 %."""
    columns = 1 if len(outputs) == 1 or look.narrow else 2 if len(outputs) < 5 else 3
    figure, places = style.panels(len(outputs), columns, 3.6, 1.7, "Outputs", f"{subtitle}; median and central 90 %",
                                  left=_LEFT, gap=_GAP, look=look)
    for axes, (name, values) in zip(places, outputs.items(), strict=True):
        x = values[np.isfinite(values)]
        bins = int(np.clip(math.sqrt(len(x)), 5, 60))
        counts, edges = np.histogram(x, bins) if np.ptp(x) > 0.0 else np.histogram(x, bins | 1, range=style.with_air(x))
        top = 1.08 * max(counts.max(), 1)
        axes.set(xlim=(edges[0], edges[-1]), ylim=(0, top))
        style.rulers(axes, 5, [y for y in style.ticks(0, top, max_count=3) if y == int(y)], y_names=("runs",))
        axes.bar(edges[:-1], counts, np.diff(edges), align="edge", color=palette.SKY, linewidth=0)
        low, middle, high = np.quantile(x, (0.05, 0.5, 0.95))
        for at, line in ((low, (0, (2, 2))), (middle, "-"), (high, (0, (2, 2)))):
            axes.plot([at, at], axes.get_ylim(), color=palette.INK, linewidth=0.9, linestyle=line)
        style.heading(axes, name, f"{middle:.4g}, 90 % within {low:.4g} … {high:.4g}")
    return figure


def draw_indices(varied: Columns, outputs: Columns, subtitle: str, look: palette.Look = palette.SCREEN) -> Figure:
    """Draw bars: the share of each output's variance that one quantity explains alone, see `first_order`.

    The rest is due to interactions and to the error of the estimate: with few runs, the slices are wide.
    """
    charts = []
    for name, y in outputs.items():
        shares = np.array([first_order(*_with_value(x, y)) for x in varied.values()])
        rest = f"unexplained {100 * max(1.0 - shares.sum(), 0.0):.0f} %" if np.ptp(y[np.isfinite(y)]) > 0.0 else "constant"
        charts.append((name, rest, shares))
    return _draw_bars(list(varied), charts, "Sensitivity of outputs", f"{subtitle}; first-order Sobol indices",
                      "share of the variance", (0.0, 1.0), look)


def draw_tornado(names: Sequence[str], swings: Sequence[OutputSensitivity], subtitle: str,
                 look: palette.Look = palette.SCREEN) -> Figure:
    """Draw a bar from minus to plus one standard deviation of each varied quantity; the darker half is the positive one."""
    charts = [(swing.name, f"at the medians {swing.base:.4g}; {swing.method}", swing.changes) for swing in swings]
    return _draw_bars(names, charts, "Changes of outputs per standard deviation of each parameter",
                      f"{subtitle}; derivatives at the medians; dark: larger parameter, light: smaller parameter", look=look)


def draw_envelopes(envelopes: Sequence[Envelope], subtitle: str, look: palette.Look = palette.SCREEN) -> Figure:
    """Draw medians over time with bands that contain 50 % and 90 % of the runs."""
    columns = 1 if len(envelopes) < 3 else 2 if len(envelopes) < 9 else 3
    figure, places = style.panels(len(envelopes), columns, 4.2, 1.5, "Envelopes", f"{subtitle}; median, bands of 50 and 90 %",
                                  left=_LEFT, look=look)
    columns = style.count_columns(places)
    for k, (axes, envelope) in enumerate(zip(places, envelopes, strict=True)):
        axes.set(xlim=style.time_span(envelope.t), ylim=style.with_air(envelope.quantiles))
        style.rulers(axes, 6, 4, "t [s]" if k + columns >= len(envelopes) else None,
                     y_names=quantity_names(envelope.name.partition(".")[0], envelope.unit))
        draw_band(axes, envelope)
        style.heading(axes, envelope.name)
    return figure


def draw_band(axes: Axes, envelope: Envelope) -> None:
    """Draw the median, and bands between the outer and the inner quantiles."""
    look = style.parent_figure(axes).look
    for outer, colour in enumerate(_BANDS):
        axes.fill_between(envelope.t, envelope.quantiles[outer], envelope.quantiles[-1 - outer], facecolor=colour, linewidth=0,
                          edgecolor=palette.FAINT, hatch=style.hatch(look, outer))
    axes.plot(envelope.t, envelope.quantiles[2], color=palette.BLUE, linewidth=1.4)


def _draw_bars(names: Sequence[str], charts: Sequence[tuple[str, str, np.ndarray]], title: str, subtitle: str,
               x_name: str = "", span: tuple[float, float] | None = None, look: palette.Look = palette.SCREEN) -> Figure:
    """Draw charts (name, remark, length of the bar for each of `names`), with the longest bar on top.

    Without a span, paler bars of the same length are drawn on the other side of zero.
    """
    names = [style.shortened(name, 34) for name in names]
    left = max(_LEFT, 0.3 + 0.062 * max(map(len, names)))                   # inches per letter
    columns = 1 if look.narrow else min(len(charts), 2)
    figure, places = style.panels(len(charts), columns, 3.0, 0.24 * len(names) + 0.1, title, subtitle, left=left, gap=_GAP,
                                  look=look)
    columns = style.count_columns(places)
    for n, (axes, (name, remark, lengths)) in enumerate(zip(places, charts, strict=True)):
        sizes = np.nan_to_num(np.abs(lengths), nan=-1.0)
        order = np.argsort(sizes, kind="stable")
        longest = 1.08 * max(float(sizes.max()), 0.0) or 1.0
        axes.set(xlim=span or (-longest, longest), ylim=(-0.6, len(names) - 0.4))
        style.rulers(axes, 4, range(len(names)), x_name if n + columns >= len(charts) else "",
                     y_labels=[names[k] for k in order])
        if span is None:
            axes.barh(range(len(names)), -lengths[order], 0.6, color=palette.SKY, linewidth=0,
                      hatch=style.hatch(look, 1), edgecolor=palette.INK)
        axes.barh(range(len(names)), lengths[order], 0.6, color=palette.BLUE, linewidth=0)
        for row in np.flatnonzero(np.isnan(lengths[order])):
            style.words(axes, "not known", (0, int(row)), (0, 0))
        style.heading(axes, name, remark)
    return figure


def first_order(x: np.ndarray, y: np.ndarray) -> float:
    """Return Sobol's first-order index of y with respect to x from given data.

    It is the share of the variance of y between slices of x with equally many runs, without the share that chance causes
    (Plischke, Borgonovo and Smith, 2013). Values must be drawn independently.
    """
    n, distinct = len(y), np.unique(x)
    slices = min(len(distinct), max(2, int(math.sqrt(n) / 2)), 50)
    if slices < 2 or n <= slices or not np.ptp(y) > 0.0:
        return 0.0
    if slices == len(distinct):
        group = np.searchsorted(distinct, x)
    else:
        group = np.empty(n, dtype=int)
        group[np.argsort(x, kind="stable")] = np.arange(n) * slices // n
    counts = np.bincount(group, minlength=slices)
    means = np.bincount(group, y, slices) / np.maximum(counts, 1)
    within = ((y - means[group])**2).sum() / (n - slices)
    total = ((y - y.mean())**2).sum()
    return float(np.clip(1.0 - within * (n - 1) / total, 0.0, 1.0))


def _with_value(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return x and y of the runs that have this output."""
    is_finite = np.isfinite(y)
    return x[is_finite], y[is_finite]


def _medians(axes: Axes, x: np.ndarray, y: np.ndarray) -> None:
    """Draw medians over slices of x with equally many runs, if there are enough runs."""
    distinct = np.unique(x)
    if len(x) < 5 * _SLICES and len(distinct) > _SLICES:
        return
    parts = [np.flatnonzero(x == value) for value in distinct] if len(distinct) <= _SLICES else \
        np.array_split(np.argsort(x, kind="stable"), _SLICES)
    middles = ([np.median(values[part]) for part in parts] for values in (x, y))
    axes.plot(*middles, color=palette.VERMILLION, linewidth=1.4)


# Plots of a batch: from its table and its trajectories ---------------------------------------------------------------

_RUNS, _TIMES, _ENVELOPES, _PANELS = 2000, 201, 24, 8      # runs and times of an envelope; plots stay legible
_ENOUGH = 50             # runs from which shares of the variance are drawn
_LONGEST = 120.0         # s: longest computation of derivatives for a tornado plot


def plot_batch(source: str | os.PathLike[str], folder: Path, formats: Sequence[str],
               look: palette.Look = palette.SCREEN) -> tuple[SavedPlots, tuple[LiedynWarning, ...]]:
    """Draw the plots of a batch into `folder`, and return warnings about plots that are not drawn.

    Raises UsageError if the batch has no table yet.
    """
    source, about = Path(source), ResultStore(source).description() or {}
    runs, warnings = _complete_runs(source, about)
    count = len(runs["number"])
    varied = {parameter["name"]: runs[parameter["name"]] for parameter in about.get("parameters", [])}
    varied = {name: x for name, x in varied.items() if x.dtype.kind == "f" and len(np.unique(x)) > 1}
    outputs = {name: runs[name].astype(float) for name in about.get("outputs", {})}
    outputs = {name: x for name, x in outputs.items() if np.isfinite(x).any()}
    subtitle, sheets = f"{source.name}: {count} runs", {}
    units = {name: f"{name} [{style.unit_text(unit)}]" for name, unit in about.get("units", {}).items()}
    varied, outputs = ({units.get(name, name): x for name, x in columns.items()} for columns in (varied, outputs))
    plotted, scattered = ({name: columns[name] for name in list(columns)[:_PANELS]} for columns in (outputs, varied))
    if varied and outputs:
        sheets["scatter"] = lambda: draw_scatter(scattered, plotted, subtitle, look)
        if about.get("combine") == "sample" and count >= _ENOUGH:
            sheets["indices"] = lambda: draw_indices(varied, plotted, subtitle, look)
    if outputs:
        sheets["histograms"] = lambda: draw_histograms(plotted, subtitle, look)
    if varied and outputs:
        swings, more = _swings(about, runs, varied, list(plotted), units)
        warnings += more
        if swings:
            sheets["tornado"] = lambda: draw_tornado(list(varied), swings, subtitle, look)
    envelopes = _envelopes(source)
    if envelopes:
        sheets["envelopes"] = lambda: draw_envelopes(envelopes, subtitle, look)
    if not sheets:
        raise UsageError(f"{source} has nothing to plot: no run is complete, or there are no outputs and no trajectories")
    with translate_os_errors(folder):
        return drawn_into(folder, lambda part: save_sheets(sheets, part, formats)), warnings


def _complete_runs(source: Path, about: dict[str, Any]) -> tuple[Columns, tuple[LiedynWarning, ...]]:
    """Return the table of the batch without incomplete runs, and warnings about these and about outputs without a value."""
    table = ResultStore(source).read()
    complete = np.array(table["status"].to_pylist()) == "complete"
    runs = {name: table[name].to_numpy()[complete] for name in table.column_names}
    count = np.count_nonzero(complete)
    warnings = WarningLog()
    if count < len(complete):
        warnings.add("incomplete-runs", f"{len(complete) - count} of {len(complete)} runs are not complete and not drawn")
    empty = {name: np.count_nonzero(~np.isfinite(runs[name].astype(float))) for name in about.get("outputs", {})}
    for name, n in empty.items():
        if n:
            warnings.add("empty-output", f"{name} is empty in {n} of {count} runs")
    return runs, tuple(warnings)


def _swings(about: dict[str, Any], runs: Columns, varied: Columns, outputs: list[str], units: Mapping[str, str],
            ) -> tuple[list[OutputSensitivity], tuple[LiedynWarning, ...]]:
    """Return the sensitivities for a tornado plot, from derivatives that are computed now; and warnings if they cannot be."""
    from liedyn.batch.run_batch import PreparedSweep
    from liedyn.batch.sensitivities import RUNS_PER_PARAMETER, sensitivities
    from liedyn.io.sweep_file import read_sweep
    seconds = (RUNS_PER_PARAMETER * len(varied) + 1) * float(np.mean(runs["seconds"]))
    if seconds > _LONGEST:
        return [], (LiedynWarning("not-drawn", f"no tornado plot: the runs around the medians would take {seconds:.0f} s"),)
    try:
        if not about.get("source"):
            raise UsageError("the batch was not run from a sweep file")
        batch = PreparedSweep(replace(read_sweep(about["source"]), overrides=tuple(about["overrides"])))
        if batch.identity != about["identity"]:
            raise UsageError(f"{_changed_part(about)} since the batch ran; run it again with --force")
        number = int(runs["number"][0])
        centre, spreads = batch.binding.values_of(number), np.zeros(len(batch.sweep.parameters))
        for k, parameter in enumerate(batch.sweep.parameters):
            x = varied.get(units.get(parameter.name, parameter.name))
            if x is not None:
                centre[k], spreads[k] = float(np.median(x)), float(np.std(x))
        result = sensitivities(batch.evaluator, centre, spreads)
    except LiedynError as error:
        return [], (LiedynWarning("not-drawn", f"no tornado plot: {error}"),)
    is_varied, names = spreads > 0.0, [units.get(output.name, output.name) for output in batch.sweep.outputs]
    changes = result.derivatives[:, is_varied] * spreads[is_varied]
    return [OutputSensitivity(name, float(result.base[k]), changes[k], result.methods[k])
            for k, name in enumerate(names) if name in outputs], ()


def _changed_part(about: dict[str, Any]) -> str:
    """Return what has changed, as a clause."""
    if about.get("liedyn") != __version__:
        return f"liedyn has changed from version {about.get('liedyn')} to {__version__}"
    return "the sweep, its scenario or a robot file has changed"


def _envelopes(source: Path) -> list[Envelope]:
    """Return the envelope of each column over at most _RUNS runs, column by column, which limits the memory."""
    from pyarrow import parquet
    files = sorted((source / TRAJECTORIES).glob("*.parquet"))
    if not files:
        return []
    stamps = [parquet.read_table(file, columns=["number", "t[s]"]) for file in files]
    number, t = (np.concatenate([table[name].to_numpy() for table in stamps]) for name in ("number", "t[s]"))
    runs = np.unique(number)
    starts = np.flatnonzero(np.r_[True, number[1:] != number[:-1]])
    ends = np.r_[starts[1:], len(number)]
    some = np.linspace(0, len(runs) - 1, min(len(runs), _RUNS)).astype(int)
    grid, envelopes = np.linspace(float(t.min()), float(t.max()), _TIMES), []
    titles = [name for name in parquet.read_schema(files[0]).names if name not in ("number", "t[s]")]
    for title in titles[:_ENVELOPES]:
        x = np.concatenate([parquet.read_table(file, columns=[title])[title].to_numpy() for file in files])
        curves = np.array([np.interp(grid, t[a:b], x[a:b], right=np.nan) for a, b in zip(starts[some], ends[some], strict=True)])
        name, _, unit = title.removesuffix("]").partition("[") if title.endswith("]") else (title, "", "")
        envelopes.append(Envelope(name, unit, grid, np.nanquantile(curves, QUANTILES, axis=0)))
    return envelopes
