"""The meshes of robots in a page: each file once, whatever links and runs show it."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from liedyn.errors import ComputationError, LiedynError, UsageError
from liedyn.io.robots.link_meshes import LinkMesh, link_meshes
from liedyn.model.model import Model
from liedyn.report.replay.body_scene import Placed
from liedyn.report.replay.mesh_files import missing_readers, packed_mesh, read_mesh, thinned

_INSTALL = "pip install 'liedyn[meshes]'"


@dataclass(frozen=True, eq=False)
class Visuals:
    """numbers: of the files in `meshes`, which are plain values for the page; boxes: (2, 3) their lowest and highest corners [m];
    links: the found meshes by robot file and link."""

    numbers: Mapping[Path, int] = field(default_factory=dict)
    meshes: Sequence[list[dict]] = ()
    boxes: Sequence[np.ndarray] = ()
    links: Mapping[str, Mapping[str, tuple[LinkMesh, ...]]] = field(default_factory=dict)

    def of(self, model: Model) -> dict[str, list[Placed]]:
        """By link, those that are in the page."""
        found = {link: [Placed(k, mesh, self.boxes[k]) for mesh in group if (k := self.numbers.get(mesh.file)) is not None]
                 for link, group in self.links.get(str(model.source), {}).items() if link in model.link_names}
        return {link: group for link, group in found.items() if group}


def visuals_of(models: Iterable[Model], roots: Sequence[str]) -> tuple[Visuals, tuple[str, ...]]:
    """The meshes of robot files, read and made small; notes for the user about those that are not there or not readable.

    roots: folders in which `package://` is looked for. Raises UsageError where there is nothing to draw or to read it with.
    """
    sources = dict.fromkeys(str(model.source) for model in models if model.source)
    links = {source: link_meshes(source, roots) for source in sources}
    named = [mesh for of_file in links.values() for group in of_file.values() for mesh in group]
    if not named:
        raise UsageError(f"{', '.join(links) or 'the robot'} names no meshes: a URDF does in <visual>")
    missing = missing_readers()
    if missing:
        raise UsageError(f"meshes need {', '.join(missing)}: {_INSTALL}")
    lost = list(dict.fromkeys(mesh.name for mesh in named if mesh.file is None))
    notes = [_not_found(lost)] if lost else []
    read = {}
    for file in dict.fromkeys(mesh.file for mesh in named if mesh.file is not None):
        try:
            read[file] = read_mesh(file)
        except ComputationError as problem:
            notes.append(f"not drawn: {problem}")
    if not read:
        raise UsageError(notes[0])
    boxes = [np.array([points.min(axis=0), points.max(axis=0)])
             for parts in read.values() for points in [np.concatenate([part.points for part in parts])]]
    packs = [packed_mesh(parts) for parts in thinned(read).values()]
    return Visuals({file: k for k, file in enumerate(read)}, packs, boxes, links), tuple(notes)


def hint_of_meshes(model: Model) -> tuple[str, ...]:
    """What to say where meshes of a robot could be drawn and are not."""
    try:
        found = link_meshes(model.source) if model.source else {}
    except (LiedynError, OSError, ValueError):                  # changed since it was loaded
        return ()
    count = sum(mesh.file is not None for group in found.values() for mesh in group)
    how = f"`{_INSTALL}`, then --meshes draws" if missing_readers() else "--meshes draws"
    return (f"the robot file has {count} mesh{'es' * (count > 1)}: {how} {'them' if count > 1 else 'it'}",) if count else ()


def _not_found(names: Sequence[str]) -> str:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    of_package = names[0].startswith(("package://", "model://"))
    mend = f": --package-root names the folder that has {names[0].split('/')[2]}" if of_package else ""
    return f"no file for the mesh {names[0]}{more}{mend}"
