"""The dynamics of a robot as C files: `liedyn export`."""
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from liedyn.codegen.c99 import CFunction, identifier
from liedyn.dynamics.batching.calls import intercepted_specialization
from liedyn.dynamics.constraints.couplings import follow_couplings, follow_couplings_unchecked, reduced_model
from liedyn.dynamics.derivatives import forward_dynamics_derivatives, inverse_dynamics_derivatives
from liedyn.dynamics.dynamics import forward_dynamics, inverse_dynamics, inverse_mass_matrix, mass_matrix
from liedyn.dynamics.manifold import random_configuration
from liedyn.dynamics.scales import model_scales
from liedyn.errors import UsageError
from liedyn.io.atomic_output import check_output, open_output, path_part
from liedyn.model.model import Model
from liedyn.public_calls import explained

# by name: function, input arrays besides q, quantity of the results, and the variables of each derivative
FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[str, ...], str, tuple[str | None, ...]]] = {
    "inverse_dynamics": (inverse_dynamics, ("v", "a"), "tau", (None,)),
    "forward_dynamics": (forward_dynamics, ("v", "tau"), "a", (None,)),
    "mass_matrix": (mass_matrix, (), "tau", ("a",)),
    "inverse_mass_matrix": (inverse_mass_matrix, (), "a", ("tau",)),
    "inverse_dynamics_derivatives": (inverse_dynamics_derivatives, ("v", "a"), "tau", ("q", "v", "a")),
    "forward_dynamics_derivatives": (forward_dynamics_derivatives, ("v", "tau"), "a", ("q", "v", "tau")),
}


@explained
def write_export(model: Model, function: str, path: Path | None = None, *, passive: bool = True, single: bool = False,
                 with_test: bool = False, force: bool = False) -> tuple[CFunction, list[Path]]:
    """Write a function of a robot as C code with a header and, optionally, a test program. The function has the file's name.

    Parameters
    ----------
    function : str
        One of `FUNCTIONS`.
    path : Path, optional
        With the ending .c; default: ROBOT_FUNCTION.c in the current folder.
    passive : bool
        Whether joint springs, damping and friction act.
    single : bool
        `float` in place of `double`.

    Raises
    ------
    UsageError
        If a file exists and `force` is false, or if it cannot be written.
    ModelError
        For a robot with loops, or without a moving joint.
    """
    if model.nc:
        reduced_model(model, function)
    if path is not None and (path.suffix != ".c" or not path.stem.isidentifier() or not path.stem.isascii()):
        raise UsageError(f"{path} is not the name of a C file: expected a name of letters, digits and _, and the ending .c")
    if path is None:
        path = Path(path_part(identifier(f"{model.name}_{function}")) + ".c")
    compute, names, quantity, variables = FUNCTIONS[function]
    options = {"passive": passive} if names else {}
    at, *_ = follow_couplings_unchecked(model, model.neutral())
    specialization, traced = intercepted_specialization(compute, model, at, *np.zeros((len(names), model.nv)), **options)
    c_function = CFunction(traced, function, specialization, name=path.stem, passive=passive, single=single)
    texts = {path: c_function.source, path.with_suffix(".h"): c_function.header}
    if with_test:
        rng, units = np.random.default_rng(0), _units(model)
        rates = rng.standard_normal((len(names), model.nv)) * np.reshape([units[name] for name in names], (-1, model.nv))
        state = {"q": random_configuration(model, rng), **dict(zip(names, rates, strict=True))}
        state |= dict(zip("qva", follow_couplings(model, *(state[name] for name in "qva" if name in state)), strict=False))
        result = compute(model, *state.values(), **options)
        results = result if isinstance(result, tuple) else (result,)
        sizes = [units[quantity] if x is None else units[quantity][:, None] / units[x] for x in variables]
        texts[path.with_name(f"{path.stem}_test.c")] = c_function.test(
            state, *(dict(zip(c_function.outputs, arrays, strict=True)) for arrays in (results, sizes)))
    for file in texts:
        check_output(file, force=force)
    for file, text in texts.items():
        with open_output(file, force=force) as stream:
            stream.write(text)
    return c_function, list(texts)


def _units(model: Model) -> dict[str, np.ndarray]:
    """Return characteristic units of coordinates, their rates and forces."""
    scales = model_scales(model)
    reach = scales.unit_scales(model.v_units)
    return {"q": reach, "v": reach / scales.time, "a": reach / scales.time**2, "tau": scales.force_scales(model.v_units)}
