"""Functions of a robot as formulas in LaTeX, and as files of CasADi: `liedyn export`."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from liedyn import __version__
from liedyn.errors import UsageError
from liedyn.interop.c_files import code_file, default_name, write_all
from liedyn.interop.casadi import casadi_function
from liedyn.interop.sympy import symbolic
from liedyn.model.model import Model
from liedyn.public_calls import explained

ENDINGS = {"latex": ".tex", "casadi": ".casadi"}


class FormulaExport(NamedTuple):
    """name: of the file; size: number of equations in LaTeX, of instructions of CasADi."""

    name: str
    size: int


@explained
def write_formulas(model: Model, function: str, path: Path | None = None, *, to: str, parameters: Sequence[str] = (),
                   force: bool = False, **options: Any) -> tuple[FormulaExport, list[Path]]:
    """Write a function of a robot as equations in LaTeX, or as a function that `casadi.Function.load` reads.

    Parameters
    ----------
    function, options
        As for `symbolic` and `casadi_function`.
    path : Path, optional
        With the ending .tex or .casadi; default: ROBOT_FUNCTION in the current folder.
    to : "latex" or "casadi"
    parameters : sequence of str
        Parameters of the robot that are symbols: NAME, or in LaTeX also NAME=EXPRESSION such as mass.upper=m1.

    Raises
    ------
    UsageError
        If an option or a parameter does not belong to the function or the format, a package is missing, a file exists and `force`
        is false, or a file cannot be written.
    ModelError
        For the dynamics of a robot with loops, or for a robot without a moving joint.
    """
    path = code_file(path, default_name(model, function, options), ENDINGS[to])
    symbols = dict(text.partition("=")[::2] for text in parameters)
    if to == "casadi":
        if text := next((text for text in parameters if "=" in text), None):
            raise UsageError(f"{text}: parameters of a function of CasADi are its inputs: expected the name alone")
        f = casadi_function(model, function, **options, parameters=[*symbols])
        with TemporaryDirectory() as folder:                # CasADi writes to paths only
            f.save(str(file := Path(folder) / path.name))
            content = file.read_bytes()
        return FormulaExport(path.stem, f.n_instructions()), write_all({path: content}, force=force)
    formulas = symbolic(model, function, symbols, **options)
    equations = formulas.latex().splitlines()
    names = [("q", model.q_names), ("v", model.v_names), ("a", model.a_names), ("tau", model.tau_names)]
    comments = [f"{function.replace('_', ' ')} of the robot {model.name}. Written by liedyn {__version__}.",
                *(f"{symbol}: {coordinate}" for name, coordinates in names if name in formulas.inputs
                  for symbol, coordinate in zip(formulas.inputs[name], coordinates, strict=True)),
                *(f"{name}: {x}" for name, x in formulas.parameters.items())]
    text = "\n".join([*(f"% {' '.join(line.split())}" for line in comments),
                      *(f"\\begin{{equation*}}\n{equation}\n\\end{{equation*}}" for equation in equations), ""])
    return FormulaExport(path.stem, len(equations)), write_all({path: text}, force=force)
