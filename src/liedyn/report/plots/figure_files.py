"""Figures as files and in notebooks: names are shown literally, and the same figure gives the same bytes."""
from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from liedyn.errors import escape_nonprintable

_DPI = 120


class PlotFigure(Figure):
    """A figure that notebooks display, also where pyplot is not imported."""

    def _repr_png_(self) -> bytes:
        """Return the figure as PNG."""
        file = io.BytesIO()
        with words_only():
            save_figure(self, file, "png")
        return file.getvalue()


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
        figure.savefig(file, dpi=_DPI, format="png", metadata={"Software": None}, pil_kwargs={"compress_level": 3})
        return
    with rc_context({"svg.hashsalt": "liedyn"}):            # otherwise identifiers are random
        figure.savefig(file, format=ending, metadata={"Date": None} if ending == "svg" else None)
