"""The page of a robot whose joints are moved by sliders: `liedyn view` and `ld.view`."""
from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from liedyn.arrays import Array, ArrayLike
from liedyn.dynamics.batching.arrays import as_single_state
from liedyn.dynamics.constraints.assembly import assemble
from liedyn.dynamics.constraints.couplings import follow_couplings
from liedyn.dynamics.joint_values import neutral_within_limits, with_joint_values
from liedyn.dynamics.manifold import difference
from liedyn.errors import ComputationError, LiedynWarning, list_names, of_level, warn
from liedyn.io.atomic_output import open_output, path_part
from liedyn.model.model import Model
from liedyn.report.replay.mechanism import mechanism_data, messages_of
from liedyn.report.replay.page import ReplayOptions, replay_page
from liedyn.report.replay.scene import drawn_meshes
from liedyn.report.replay.sources import ReplayRun
from liedyn.simulation.limits import start_warnings

_NOTICEABLE = 1e-3         # rad or m: smaller changes of values by loops and couplings cause no warning
_MOST_NAMES = 3            # in a warning


def view(model: Model, q: ArrayLike | Mapping[str, ArrayLike] | None = None, *, output: str | os.PathLike[str] | None = None,
         meshes: bool | None = None, package_roots: Sequence[str] = (), open_browser: bool = True, force: bool = False) -> Path:
    """Write an HTML page that shows a robot in 3D, with a slider for each joint, and open it in the browser.

    Couplings and mimic joints follow the sliders, and loops stay closed. The page shows link frames, joint axes, inertia
    ellipsoids, centres of mass, shapes for collisions, and at each link its warnings.

    Parameters
    ----------
    model : Model
    q : (nq,) array, or {joint: value}, optional
        Configuration at which the page opens. Default, also of joints without a value: zero, or the middle of limits that exclude
        it. Loops are closed near it.
    output : path, optional
        File to write; default: one in a temporary folder, which the next page of a robot with this name replaces.
    meshes : bool, optional
        Whether the meshes of the robot file are drawn; default: if the packages that read them are installed.
    package_roots : sequence of paths
        Further folders in which to look for ``package://`` meshes.
    open_browser : bool
        Whether the page is opened.
    force : bool
        Whether an existing file is replaced.

    Returns
    -------
    Path
        The written file.

    Raises
    ------
    ShapeError, ConfigurationError, NameLookupError
        For an invalid q.
    UsageError
        If the file exists or cannot be written.

    Examples
    --------
    >>> model = ld.load("robots/four_bar.yaml")
    >>> ld.view(model, {"crank": 0.5}, output="four_bar.html", open_browser=False)
    PosixPath('four_bar.html')
    """
    stated = () if q is None else tuple(q) if isinstance(q, Mapping) else model.joint_names
    path, warnings = write_view(model, _configuration(model, q), stated, output=output, meshes=meshes, roots=package_roots,
                                force=force)
    if open_browser and not open_in_browser(path):
        warnings += (LiedynWarning("not-opened", f"no browser was found; open {path} in one"),)
    warn(of_level("warning", warnings))
    return path


def open_in_browser(path: Path) -> bool:
    """Open a written page in the browser. Return False without a desktop: a browser in the terminal cannot draw it."""
    if sys.platform.startswith(("linux", "freebsd")) and not ({"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"} & set(os.environ)):
        return False
    import webbrowser

    return webbrowser.open(path.absolute().as_uri())


def write_view(model: Model, q: Array, stated: Sequence[str] = (), *, output: str | os.PathLike[str] | None,
               meshes: bool | None, roots: Sequence[str | os.PathLike[str]],
               force: bool) -> tuple[Path, tuple[LiedynWarning, ...]]:
    """Write the page of `view`, and return its path and warnings.

    q: (nq,), whose loops may be open; stated: joints that keep their coordinates where loops can be closed with these.
    """
    path = Path(output) if output is not None else None
    q, warnings = _closed(model, q, stated)
    warnings += tuple(start_warnings(model, q, verb="is drawn at"))
    visuals, of_meshes = drawn_meshes([model], roots, meshes)
    mechanism = mechanism_data(model, q) | {"messages": messages_of(model)}
    run = ReplayRun(model.name, model, np.zeros(1), q[None], {}, {}, mechanism=mechanism)
    text = replay_page([run], ReplayOptions(model.name), visuals)
    if path is None:
        path, force = temporary_page(model.name), True
    with open_output(path, force=force) as file:
        file.write(text)
    return path, (*warnings, *of_meshes)


def temporary_page(name: str) -> Path:
    """Return the path of a page in the temporary folder of this user."""
    return _temporary_folder() / f"{path_part(name)}.html"


def _temporary_folder() -> Path:
    """Return the temporary folder of this user for pages, the same in each call; a new one if another user made that."""
    user = os.getuid() if hasattr(os, "getuid") else None               # the temporary folder of Windows belongs to the user
    folder = Path(tempfile.gettempdir(), f"liedyn-view-{user}" if user is not None else "liedyn-view")
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        if stat.S_ISDIR(status.st_mode) and (user is None or (status.st_uid == user and not status.st_mode & 0o022)):
            return folder
    return Path(tempfile.mkdtemp(prefix="liedyn-view-"))


def _configuration(model: Model, q: ArrayLike | Mapping[str, ArrayLike] | None) -> Array:
    """Return q (nq,). Raise for wrong names and shapes."""
    if q is not None and not isinstance(q, Mapping):
        return as_single_state(q, "q", (model.nq,))
    return with_joint_values(model, neutral_within_limits(model), q or {}, "q")


def _closed(model: Model, q: Array, stated: Sequence[str]) -> tuple[Array, tuple[LiedynWarning, ...]]:
    """Return q with followers at their values and closed loops, and a warning if joints that are `stated` moved.

    If the loops cannot be closed, return q and a warning.
    """
    if not model.constraints:
        return q, ()
    if model.has_only_couplings:
        closed = follow_couplings(model, q)[0]
        return closed, _moved(model, q, closed, stated)
    for joints in (stated, ()) if stated else ((),):
        try:
            closed = assemble(model, q, fixed=joints).q
        except ComputationError as error:
            problem = error
        else:
            return closed, _moved(model, q, closed, stated)
    return q, (LiedynWarning("open-loops", f"drawn with open loops: {problem}"),)


def _moved(model: Model, q: Array, closed: Array, stated: Sequence[str]) -> tuple[LiedynWarning, ...]:
    """Return a warning about the stated joints whose coordinates differ from those that are drawn."""
    change, of_joints = difference(model, q, closed), [model.v_index(name) for name in stated]
    texts = [f"{model.v_names[k]} by {change[k]:.3g} {model.v_units[k]}" for place in sorted(of_joints, key=lambda x: x.start)
             for k in range(place.start, place.stop) if abs(change[k]) > _NOTICEABLE]
    return (LiedynWarning("view-moved", "the values contradict the loops or couplings; the robot is drawn with changes of "
                          f"{list_names(texts, _MOST_NAMES)}"),) if texts else ()
