"""All pictures of a recording."""
from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from liedyn.report.base_path import draw_base_path
from liedyn.report.energy import draw_energy
from liedyn.report.panels import draw_group
from liedyn.report.recording import FORMATS, Group, Recording, Series
from liedyn.report.replay import draw_replay
from liedyn.report.tracking import draw_tracking

_DPI = 120


def figures(recording: Recording) -> dict[str, Figure]:
    """Figures by file name without ending: replay, positions, velocities, torques, energy, base_path, …, as far as
    the recording has what they show."""
    return {name: figure for draw in _sheets(recording) for name, figure in draw().items()}


def save_figures(recording: Recording, folder: str | Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Draw the recording into `folder`, which is made where it is missing; returns the files, in order.

    Files of the same name are replaced. The same recording gives the same bytes.
    """
    return [path for paths in save_share(recording, folder, formats).values() for path in paths]


def save_share(recording: Recording, folder: str | Path, formats: Sequence[str], first: int = 0,
               step: int = 1) -> dict[int, list[Path]]:
    """Draw every `step`-th kind of figure, from `first` on; returns the files by the number of the kind."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = {}
    for k, draw in list(enumerate(_sheets(recording)))[first::step]:
        paths[k] = []
        for name, figure in draw().items():
            for ending in formats:
                paths[k].append(folder / f"{name}.{ending}")
                save_figure(figure, paths[k][-1], ending)
    return paths


def warm_up() -> None:
    """Load fonts and writers, which Matplotlib leaves to the first picture (0.15 s)."""
    t = np.linspace(0.0, 1.0, 2)
    small = Recording("", t, (Group("positions", "", (Series("joint", "", "rad", t),)),))
    for figure in figures(small).values():
        for ending in FORMATS:
            save_figure(figure, io.BytesIO(), ending)


def _sheets(recording: Recording) -> list[Callable[[], dict[str, Figure]]]:
    """Calls that draw one kind of figure each, in the order of `figures`."""
    t, title = recording.t, recording.title
    sheets: list[Callable[[], dict[str, Figure]]] = []
    if recording.skeleton is not None:
        sheets.append(lambda: {"replay": draw_replay(recording.skeleton, title)})
    sheets += [partial(draw_group, group, t, title) for group in recording.groups]
    if recording.tracking:
        sheets.append(lambda: {"tracking": draw_tracking(recording.tracking, title)})
    if recording.energy is not None:
        sheets.append(lambda: {"energy": draw_energy(recording.energy, t, title, recording.drift)})
    if recording.base is not None:
        sheets.append(lambda: {"base_path": draw_base_path(recording.base, t, title)})
    return sheets


def save_figure(figure: Figure, file: Path | io.BytesIO, ending: str) -> None:
    if ending == "png":
        figure.savefig(file, dpi=_DPI, format="png", metadata={"Software": None}, pil_kwargs={"compress_level": 3})
        return
    with rc_context({"svg.hashsalt": "liedyn"}):            # else identifiers are random
        figure.savefig(file, format=ending, metadata={"Date": None} if ending == "svg" else None)
