"""Plots next to data: they are drawn after the data are written, and a plot that fails does not affect others.

This module does not import Matplotlib, which the process of a simulation does not need.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from liedyn.errors import LiedynWarning, summarized
from liedyn.io.atomic_output import open_output, scratch_folder


@summarized
@dataclass(frozen=True)
class SavedPlots:
    """Written files, and texts about them.

    failures  reasons of plots that could not be drawn: {plot: reason}
    notes     what plots leave out: {plot: note}
    warnings  messages about what was drawn
    """

    paths: list[Path] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    warnings: tuple[LiedynWarning, ...] = ()

    def __add__(self, other: SavedPlots) -> SavedPlots:
        return SavedPlots(self.paths + other.paths, self.failures | other.failures, self.notes | other.notes,
                          self.warnings + other.warnings)


def reason(error: Exception) -> str:
    """Return the type and message of an error."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def draw_beside(data: Path, draw: Callable[[Path], SavedPlots]) -> SavedPlots:
    """Draw plots by `draw` into the folder `plots` next to the data."""
    return _beside(data, "plots", "the plots are not drawn", lambda: drawn_into(data / "plots", draw))


def page_beside(page: Path, make: Callable[[], tuple[str, tuple[LiedynWarning, ...]]]) -> SavedPlots:
    """Write the page that `make` returns, with messages about it, next to the data."""
    def write() -> SavedPlots:
        text, warnings = make()
        with open_output(page) as file:
            file.write(text)
        return SavedPlots([page], warnings=warnings)

    return _beside(page.parent, page.name, f"{page.name} is not written", write)


def _beside(data: Path, name: str, missing: str, write: Callable[[], SavedPlots]) -> SavedPlots:
    """Run `write` and return errors as failures. An interrupt is raised, with a message about the data that exist."""
    try:
        return write()
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"the data are in {data}, {missing}") from None
    except Exception as error:              # any error: the data are complete
        return SavedPlots(failures={name: reason(error)})


def drawn_into(folder: Path, draw: Callable[[Path], SavedPlots]) -> SavedPlots:
    """Draw plots by `draw` into a temporary folder, and move them to `folder` when all are drawn."""
    with scratch_folder(next(p for p in folder.absolute().parents if p.is_dir())) as part:
        drawn = draw(part)
        if drawn.paths:
            folder.mkdir(parents=True, exist_ok=True)
        for path in drawn.paths:
            path.replace(folder / path.name)
    return replace(drawn, paths=[folder / path.name for path in drawn.paths])
