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


def draw_beside(folder: Path, draw: Callable[[Path], Written]) -> Written:
    """Let `draw` fill a folder that becomes `plots` in `folder`, which holds the data already. No failure is raised but an
    interrupt, which tells what stands."""
    try:
        with scratch_folder(folder) as part:
            (part / "plots").mkdir()
            drawn = draw(part / "plots")
            if drawn.paths:
                os.rename(part / "plots", folder / "plots")
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"the data are in {folder}, the pictures are not drawn") from None
    except Exception as error:              # whatever it is: the data stand
        return Written(failures={"pictures": reason(error)})
    return Written([folder / "plots" / path.name for path in drawn.paths], drawn.failures)


def page_beside(page: Path, text: Callable[[], str]) -> Written:
    """Write what `text` makes, as `draw_beside` does with pictures."""
    try:
        with open_output(page) as file:
            file.write(text())
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"the data are in {page.parent}, {page.name} is not written") from None
    except Exception as error:
        return Written(failures={page.name: reason(error)})
    return Written([page])
