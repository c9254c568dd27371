"""Pictures of a batch: from its table and its trajectories."""
from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from liedyn.batch.store import TRAJECTORIES, Store
from liedyn.errors import LiedynError, UsageError
from liedyn.io.output import told
from liedyn.report.pictures.all_pictures import save_sheets
from liedyn.report.pictures.batch_panels import (
    Columns,
    Envelope,
    Swing,
    draw_envelopes,
    draw_histograms,
    draw_indices,
    draw_scatter,
    draw_tornado,
)
from liedyn.report.pictures.beside_data import Written, drawn_into

_RUNS, _TIMES, _ENVELOPES, _PANELS = 2000, 201, 24, 8      # runs and times of an envelope; pictures stay legible
_ENOUGH = 50             # runs for shares of a variance
_LONGEST = 120.0         # s of runs for a tornado


def plot_batch(source: str | os.PathLike, folder: Path, formats: Sequence[str]) -> tuple[Written, tuple[str, ...]]:
    """Draw the pictures of a batch into `folder`, and notes about what is not drawn. UsageError where there is no table yet."""
    source, about = Path(source), Store(source).about() or {}
    runs, notes = _complete_runs(source, about)
    count = len(runs["number"])
    varied = {one["name"]: runs[one["name"]] for one in about.get("vary", [])}
    varied = {name: x for name, x in varied.items() if x.dtype.kind == "f" and len(np.unique(x)) > 1}
    outputs = {name: runs[name].astype(float) for name in about.get("outputs", {})}
    outputs = {name: x for name, x in outputs.items() if np.isfinite(x).any()}
    subtitle, sheets = f"{source.name}: {count} runs", {}
    shown, scattered = ({name: columns[name] for name in list(columns)[:_PANELS]} for columns in (outputs, varied))
    if varied and outputs:
        sheets["scatter"] = lambda: draw_scatter(scattered, shown, subtitle)
        if about.get("combine") == "sample" and count >= _ENOUGH:
            sheets["indices"] = lambda: draw_indices(varied, shown, subtitle)
    if outputs:
        sheets["histograms"] = lambda: draw_histograms(shown, subtitle)
    if varied and outputs:
        swings, more = _swings(about, runs, varied, list(shown))
        notes += more
        if swings:
            sheets["tornado"] = lambda: draw_tornado(list(varied), swings, subtitle)
    envelopes = _envelopes(source)
    if envelopes:
        sheets["envelopes"] = lambda: draw_envelopes(envelopes, subtitle)
    if not sheets:
        raise UsageError(f"{source} has nothing to plot: no run is complete, or there are no outputs and no trajectories")
    with told(folder):
        return drawn_into(folder, lambda part: save_sheets(sheets, part, formats)), notes


def _complete_runs(source: Path, about: dict) -> tuple[Columns, tuple[str, ...]]:
    """The table of the batch without the runs that are not complete, and notes about these and about outputs without a value."""
    table = Store(source).read()
    complete = np.array(table["status"].to_pylist()) == "complete"
    runs = {name: table[name].to_numpy()[complete] for name in table.column_names}
    count = np.count_nonzero(complete)
    notes = [f"{len(complete) - count} of {len(complete)} runs are not complete and not drawn"] if count < len(complete) else []
    empty = {name: np.count_nonzero(~np.isfinite(runs[name].astype(float))) for name in about.get("outputs", {})}
    return runs, (*notes, *(f"{name} is empty in {n} of {count} runs" for name, n in empty.items() if n))


def _swings(about: dict, runs: Columns, varied: Columns, outputs: list[str]) -> tuple[list[Swing], tuple[str, ...]]:
    """For a tornado, from derivatives that are computed now; and a note where that cannot be."""
    from liedyn.batch.run_batch import Batch
    from liedyn.batch.sensitivities import RUNS as EACH
    from liedyn.batch.sensitivities import sensitivities
    from liedyn.io.sweep_file import read_sweep
    seconds = (EACH * len(varied) + 1) * float(np.mean(runs["seconds"]))
    if seconds > _LONGEST:
        return [], (f"no tornado: the runs beside the medians would take {seconds:.0f} s",)
    try:
        if not about.get("source"):
            raise UsageError("the batch was not made of a file")
        batch = Batch(replace(read_sweep(about["source"]), overrides=tuple(about["overrides"])))
        if batch.identity != about["identity"]:
            raise UsageError("the sweep, its scenario, its robot or liedyn has changed since the batch ran")
        number = int(runs["number"][0])
        centre, spreads = batch.binding.values_of(number), np.zeros(len(batch.sweep.vary))
        for k, one in enumerate(batch.sweep.vary):
            if one.name in varied:
                centre[k], spreads[k] = float(np.median(varied[one.name])), float(np.std(varied[one.name]))
        found = sensitivities(batch.bench, centre, spreads)
    except LiedynError as error:
        return [], (f"no tornado: {error}",)
    which, names = spreads > 0.0, [one.name for one in batch.sweep.outputs]
    return [Swing(name, float(found.base[k]), found.slopes[k, which] * spreads[which], found.ways[k])
            for k, name in enumerate(names) if name in outputs], ()


def _envelopes(source: Path) -> list[Envelope]:
    """Of each column, over at most _RUNS runs; column by column, so that the memory stays small."""
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
    grid, found = np.linspace(float(t.min()), float(t.max()), _TIMES), []
    titles = [name for name in parquet.read_schema(files[0]).names if name not in ("number", "t[s]")]
    for title in titles[:_ENVELOPES]:
        x = np.concatenate([parquet.read_table(file, columns=[title])[title].to_numpy() for file in files])
        curves = np.array([np.interp(grid, t[a:b], x[a:b], right=np.nan) for a, b in zip(starts[some], ends[some], strict=True)])
        name, unit = re.fullmatch(r"(.*?)(?:\[(.*)\])?", title).groups()
        found.append(Envelope(name, unit or "", grid, np.nanquantile(curves, (0.05, 0.25, 0.5, 0.75, 0.95), axis=0)))
    return found
