"""Figures as files and in notebooks: names are shown literally, and the same figure gives the same bytes."""
from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.figure import Figure

from liedyn.errors import escape_nonprintable
from liedyn.report.plots.palette import SCREEN, Look

_DPI, _PAPER_DPI = 120, 300
_SMALLEST = 0.15                        # of the size of panels: below it, margins shrink, too
_METADATA: dict[str, dict[str, str | None]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}


class PlotFigure(Figure):
    """A figure that notebooks display, also where pyplot is not imported.

    In another size (`set_size_inches`), panels grow or shrink and margins do not, so that labels stay legible.
    """

    def __init__(self, *args: Any, look: Look = SCREEN, **options: Any):
        super().__init__(*args, **options)
        self.look = look
        self.notes: list[str] = []                                          # what is not drawn
        self._adapting: list[tuple[list[Artist], Callable[[], list[Artist]]]] = []

    def adapt(self, draw: Callable[[], list[Artist]]) -> None:
        """Draw artists that depend on the size of the figure, which are drawn again when it changes."""
        self._adapting.append((draw(), draw))

    def set_size_inches(self, w: Any, h: float | None = None, forward: bool = True) -> None:
        """Set the size of the figure [inches]; the margins of its panels remain."""
        old, corner = np.array(self.get_size_inches()), [(text, text.get_position()) for text in self.texts]
        boxes = [axes.get_position() for axes in self.axes]
        super().set_size_inches(w, h, forward)
        new = np.array(self.get_size_inches())
        if (old == new).all():
            return
        moves = [_resized([(box.get_points()[:, k] * old[k]) for box in boxes], old[k], new[k]) for k in (0, 1)]
        for axes, box in zip(self.axes, boxes, strict=True):
            (x0, y0), (x1, y1) = ([move(x * a) / b for move, x, a, b in zip(moves, point, old, new, strict=True)]
                                  for point in box.get_points())
            axes.set_position((x0, y0, x1 - x0, y1 - y0))
        for text, (x, y) in corner:                                         # at its distance from the upper left or right
            ratio = old[0] / new[0]
            text.set_position((1 - (1 - x) * ratio if text.get_horizontalalignment() == "right" else x * ratio,
                               1 - (1 - y) * old[1] / new[1]))
        for k, (artists, draw) in enumerate(self._adapting):
            for artist in artists:
                artist.remove()
            self._adapting[k] = draw(), draw

    def _repr_png_(self) -> bytes:
        """Return the figure as PNG."""
        file = io.BytesIO()
        with words_only():
            save_figure(self, file, "png")
        return file.getvalue()


def _resized(spans: Sequence[np.ndarray], old: float, new: float) -> Callable[[float], float]:
    """Return the map of places from an old to a new length [inches] that resizes the spans of panels, and nothing else."""
    ends = sorted({0.0, old, *(float(x) for span in spans for x in span)})
    lengths = np.diff(ends)
    is_panel = np.array([any(span[0] < (a + b) / 2 < span[1] for span in spans) for a, b in pairwise(ends)], dtype=bool)
    margins = float(lengths[~is_panel].sum())
    panels = old - margins
    factor = (new - margins) / panels if panels else 0.0
    if factor < _SMALLEST:
        return lambda x: x * new / old
    moved = np.concatenate([[0.0], np.cumsum(lengths * np.where(is_panel, factor, 1.0))])
    return lambda x: float(np.interp(x, ends, moved))


@contextmanager
def words_only() -> Iterator[None]:
    """Show names literally while figures are drawn.

    $ starts no formula, and a letter that the font lacks is a box without a warning.
    """
    with rc_context({"text.parse_math": False, "text.usetex": False}), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


def save_figure(figure: Figure, file: Path | io.BytesIO, ending: str) -> None:
    """Save a figure in the format of its ending."""
    # control characters of names are escaped; `findobj` would create the ticks that `plain_axes` avoids
    for text in chain(figure.texts, *(axes.texts for axes in figure.axes)):
        if not text.get_text().isprintable():
            text.set_text("\n".join(map(escape_nonprintable, text.get_text().split("\n"))))
    if ending == "png":
        dpi = _PAPER_DPI if getattr(figure, "look", SCREEN).paper else _DPI
        figure.savefig(file, dpi=dpi, format="png", metadata={"Software": None}, pil_kwargs={"compress_level": 3})
        return
    with rc_context({"svg.hashsalt": "liedyn", "pdf.fonttype": 42, "hatch.linewidth": 0.5}):   # identifiers are not random
        figure.savefig(file, format=ending, metadata=_METADATA.get(ending))
