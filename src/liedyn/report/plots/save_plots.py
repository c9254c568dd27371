"""Drawing and saving all plots of a motion."""
from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from liedyn.report.plots.figure_files import save_figure, words_only
from liedyn.report.plots.joint_plots import draw_energy, draw_group, draw_tracking
from liedyn.report.plots.mechanism_drawing import draw_mechanism, save_dxf
from liedyn.report.plots.plot_data import FORMATS, Group, PlotData, Series
from liedyn.report.plots.saved_plots import SavedPlots, reason
from liedyn.report.plots.spatial_plots import draw_base_path, draw_motion

DXF = "dxf"                                             # a format of mechanisms only
Draw = Callable[[], Figure | list[Figure]]              # returns a figure, or its pages


def figures(recording: PlotData) -> dict[str, Figure]:
    """Return figures by file name without ending: motion, positions, velocities, torques, energy, base_path, …

    A figure whose data do not exist is omitted.
    """
    with words_only():
        return {file: figure for name, draw in _sheets(recording).items() for file, figure in _pages(name, draw)}


def save_figures(recording: PlotData, folder: str | Path, formats: Sequence[str] = FORMATS) -> SavedPlots:
    """Draw a motion into `folder`, which is created if it does not exist; return the files, in order, and failures.

    Files of the same name are replaced. The same plot data give the same bytes.
    """
    saved = save_sheets(_sheets(recording), folder, [ending for ending in formats if ending != DXF])
    if DXF not in formats or recording.mechanism is None:
        return saved
    path = Path(folder, f"mechanism.{DXF}")
    save_dxf(recording.mechanism, path)
    return saved + SavedPlots([path])


def save_share(recording: PlotData, folder: str | Path, formats: Sequence[str], first: int) -> list[SavedPlots]:
    """Draw every second kind of figure, from `first` on; return the files of each kind."""
    return [save_sheets({name: draw}, folder, formats) for name, draw in list(_sheets(recording).items())[first::2]]


def save_sheets(sheets: Mapping[str, Draw], folder: str | Path, formats: Sequence[str]) -> SavedPlots:
    """Draw figures and save them under their names. Errors are returned and do not affect other figures."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    return sum((_save_sheet(name, draw, Path(folder), formats) for name, draw in sheets.items()), SavedPlots())


def _save_sheet(name: str, draw: Draw, folder: Path, formats: Sequence[str]) -> SavedPlots:
    paths: list[Path] = []
    notes: dict[str, str] = {}
    path = None
    try:
        with words_only():
            for file, figure in _pages(name, draw):
                if remarks := getattr(figure, "notes", []):
                    notes[name] = "; ".join(remarks)
                for ending in formats:
                    path = folder / f"{file}.{ending}"
                    save_figure(figure, path, ending)
                    paths.append(path)
    except Exception as error:
        if path is not None and path not in paths:          # an incomplete file
            with suppress(OSError):
                path.unlink()
        return SavedPlots(paths, {name: reason(error)}, notes)
    return SavedPlots(paths, notes=notes)


def warm_up() -> None:
    """Load fonts and writers, which Matplotlib would load for the first plot (0.15 s)."""
    t = np.linspace(0.0, 1.0, 2)
    small = PlotData("", t, (Group("positions", "", (Series("joint", "", "rad", t),)),))
    for figure in figures(small).values():
        for ending in FORMATS:
            save_figure(figure, io.BytesIO(), ending)


def _sheets(recording: PlotData) -> dict[str, Draw]:
    """Return a function for each kind of figure, in the order of `figures`."""
    sheets: dict[str, Draw] = {}
    if recording.skeleton is not None:
        sheets["motion"] = partial(draw_motion, recording.skeleton, recording.title, recording.look)
    sheets |= {group.name: partial(draw_group, group, recording) for group in recording.groups}
    if recording.mechanism is not None:
        sheets["mechanism"] = partial(draw_mechanism, recording.mechanism, recording)
    if recording.tracking:
        sheets["tracking"] = partial(draw_tracking, recording)
    if recording.energy is not None:
        sheets["energy"] = partial(draw_energy, recording.energy, recording)
    if recording.base is not None:
        sheets[recording.base.name] = partial(draw_base_path, recording.base, recording)
    return sheets


def _pages(name: str, draw: Draw) -> list[tuple[str, Figure]]:
    """Return figures by file name: `name`, or `name-1`, `name-2`, … for several pages."""
    drawn = draw()
    pages = drawn if isinstance(drawn, list) else [drawn]
    return [(f"{name}-{k}" if len(pages) > 1 else name, figure) for k, figure in enumerate(pages, 1)]
