"""The dynamics of a robot as C files: `liedyn export`."""
from __future__ import annotations

from pathlib import Path

import numpy as np

from liedyn.codegen.c99 import Written, identifier
from liedyn.dynamics.calling.calls import asked_by
from liedyn.dynamics.hybrid import forward_dynamics
from liedyn.dynamics.inverse import inverse_dynamics
from liedyn.dynamics.manifold import random_configuration
from liedyn.dynamics.open_tree import refuse_constraints
from liedyn.errors import UsageError
from liedyn.io.output import check_output, open_output, path_part
from liedyn.model.model import Model

_FUNCTIONS = {"inverse_dynamics": inverse_dynamics, "forward_dynamics": forward_dynamics}


def write_export(model: Model, function: str, path: Path | None = None, *, passive: bool = True, single: bool = False,
                 with_test: bool = False, force: bool = False) -> tuple[Written, list[Path]]:
    """Write a function of a robot as `path`, a header beside it, and a program that tests it. The function has the file's name.

    Parameters
    ----------
    function : "inverse_dynamics" or "forward_dynamics"
    path : Path, optional
        With the ending .c; default: ROBOT_FUNCTION.c in the current folder.
    passive : bool
        Whether joint springs, damping and friction act.
    single : bool
        `float` in place of `double`.

    Raises
    ------
    UsageError
        Where a file exists and `force` is not given, or cannot be written.
    ModelError
        For a robot with loops, couplings or mimics.
    """
    if model.nc:
        refuse_constraints(model, function)
    if path is not None and (path.suffix != ".c" or not path.stem.isidentifier() or not path.stem.isascii()):
        raise UsageError(f"{path} is no name of a C file; expected a name of letters, digits and _, and the ending .c")
    if path is None:
        path = Path(path_part(identifier(f"{model.name}_{function}")) + ".c")
    asked, _ = asked_by(_FUNCTIONS[function], model, model.neutral(), *np.zeros((2, model.nv)), passive=passive)
    found = Written(model, function, asked, name=path.stem, passive=passive, single=single)
    texts = {path: found.source, path.with_suffix(".h"): found.header}
    if with_test:
        rng = np.random.default_rng(0)
        q, v, x = random_configuration(model, rng), *rng.standard_normal((2, model.nv))
        texts[path.with_name(f"{path.stem}_test.c")] = found.test(q, v, x, _FUNCTIONS[function](model, q, v, x, passive=passive))
    for file in texts:
        check_output(file, force=force)
    for file, text in texts.items():
        with open_output(file, force=force) as stream:
            stream.write(text)
    return found, list(texts)
