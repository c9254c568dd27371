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
    Envelope,
    Quantity,
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
    varied, outputs, notes = _quantities(source, about)
    subtitle = f"{source.name}: {len(varied[0].values) if varied else len(outputs[0].values) if outputs else 0} runs"
    shown, sheets = outputs[:_PANELS], {}
    if varied and outputs:
        sheets["scatter"] = lambda: draw_scatter(varied[:_PANELS], shown, subtitle)
        if about.get("combine") == "sample" and len(outputs[0].values) >= _ENOUGH:
            sheets["indices"] = lambda: draw_indices(varied, shown, subtitle)
    if outputs:
        sheets["histograms"] = lambda: draw_histograms(shown, subtitle)
    if varied and outputs:
        names = [one.name for one in varied]
        swings, more = _swings(source, about, names, [one.name for one in shown])
        notes += more
        if swings:
            sheets["tornado"] = lambda: draw_tornado(names, swings, subtitle)
    envelopes = _envelopes(source)
    if envelopes:
        sheets["envelopes"] = lambda: draw_envelopes(envelopes, subtitle)
    if not sheets:
        raise UsageError(f"{source} has nothing to plot: no run is complete, or there are no outputs and no trajectories")
    with told(folder):
        return drawn_into(folder, lambda part: save_sheets(sheets, part, formats)), notes


def _quantities(source: Path, about: dict) -> tuple[list[Quantity], list[Quantity], tuple[str, ...]]:
    """Of the complete runs: what varied, as numbers, and outputs; what is one value or none is left out."""
    names = [one["name"] for one in about.get("vary", [])]
    outputs = [*about.get("outputs", {})]
    table = Store(source).read([*names, *outputs, "status"])
    complete = np.array(table["status"].to_pylist()) == "complete"
    lost = np.count_nonzero(~complete)
    notes = (f"{lost} of {len(complete)} runs are not complete and not drawn",) if lost else ()
    columns = {name: table[name].to_numpy()[complete] for name in (*names, *outputs)}
    numbers = [name for name in names if columns[name].dtype.kind == "f" and len(np.unique(columns[name])) > 1]
    values = {name: columns[name].astype(float) for name in outputs}
    empty = {name: np.count_nonzero(~np.isfinite(x)) for name, x in values.items()}
    if complete.any():
        notes += tuple(f"{name} is empty in {n} of {np.count_nonzero(complete)} runs" for name, n in empty.items() if n)
    return ([Quantity(name, columns[name]) for name in numbers],
            [Quantity(name, x) for name, x in values.items() if empty[name] < len(x)], notes)


def _swings(source: Path, about: dict, varied: list[str], outputs: list[str]) -> tuple[list[Swing], tuple[str, ...]]:
    """For a tornado, from derivatives that are computed now; and a note where that cannot be."""
    from liedyn.batch.run_batch import Batch
    from liedyn.batch.sensitivities import RUNS as EACH
    from liedyn.batch.sensitivities import sensitivities
    from liedyn.io.sweep_file import read_sweep
    table = Store(source).read(["number", "status", "seconds", *varied]).to_pydict()
    complete = np.array(table["status"]) == "complete"
    seconds = (EACH * len(varied) + 1) * float(np.mean(np.array(table["seconds"])[complete]))
    if seconds > _LONGEST:
        return [], (f"no tornado: the runs beside the medians would take {seconds:.0f} s",)
    try:
        if not about.get("source"):
            raise UsageError("the batch was not made of a file")
        batch = Batch(replace(read_sweep(about["source"]), overrides=tuple(about["overrides"])))
        if batch.identity != about["identity"]:
            raise UsageError("the sweep, its scenario, its robot or liedyn has changed since the batch ran")
        number = table["number"][int(np.argmax(complete))]
        centre, spreads = batch.binding.values_of(number), np.zeros(len(batch.sweep.vary))
        for k, one in enumerate(batch.sweep.vary):
            if one.name in varied:
                x = np.array(table[one.name])[complete]
                centre[k], spreads[k] = float(np.median(x)), float(np.std(x))
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
