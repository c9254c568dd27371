"""Pictures beside data: they come after the data are safe, and one that cannot be drawn costs nothing else."""
from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from liedyn.io.output import open_output, scratch_folder


@dataclass(frozen=True)
class Written:
    """Files that were written, and why pictures were not drawn, by their names: {picture: reason}."""

    paths: list[Path] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)

    def __add__(self, other: Written) -> Written:
        return Written(self.paths + other.paths, self.failures | other.failures)


def reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def draw_beside(data: Path, draw: Callable[[Path], Written]) -> Written:
    """Pictures that `draw` makes, in the folder `plots` beside the data."""
    return _beside(data, "pictures", "the pictures are not drawn", lambda: drawn_into(data / "plots", draw))


def page_beside(page: Path, text: Callable[[], str]) -> Written:
    """A page of the text that is made, beside the data."""
    def write() -> Written:
        with open_output(page) as file:
            file.write(text())
        return Written([page])

    return _beside(page.parent, page.name, f"{page.name} is not written", write)


def _beside(data: Path, name: str, missing: str, write: Callable[[], Written]) -> Written:
    """No failure is raised but an interrupt, which tells what stands."""
    try:
        return write()
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"the data are in {data}, {missing}") from None
    except Exception as error:              # whatever it is: the data stand
        return Written(failures={name: reason(error)})


def drawn_into(folder: Path, draw: Callable[[Path], Written]) -> Written:
    """Pictures that `draw` makes in a folder of its own, moved into `folder` when all are drawn."""
    with scratch_folder(next(p for p in folder.absolute().parents if p.is_dir())) as part:
        drawn = draw(part)
        if drawn.paths:
            folder.mkdir(parents=True, exist_ok=True)
        for path in drawn.paths:
            os.replace(path, folder / path.name)
    return Written([folder / path.name for path in drawn.paths], drawn.failures)
