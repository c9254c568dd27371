"""Columns of derivatives: what is asked of them, their values at the rows of a motion, their names and units."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from liedyn.analyse.along.recorded_motion import Motion, mask_of, prescribed_of
from liedyn.dynamics.derivatives.directional import parameter_derivatives, parameter_names
from liedyn.dynamics.derivatives.first_derivatives import (
    forward_dynamics_derivatives,
    hybrid_dynamics_derivatives,
    inverse_dynamics_derivatives,
)
from liedyn.errors import UsageError, nearest
from liedyn.io.csv import LONGEST_LINE
from liedyn.model.model import Model
from liedyn.simulation.names import named

LARGEST = 20_000                 # columns


@dataclass(frozen=True, eq=False)
class Question:
    """What is differentiated by what.

    of           "inverse", "forward" or "hybrid"
    prescribed   (nv,) bool: coordinates whose force comes out; the acceleration of the others does
    outputs      coordinates of the rows wanted
    by           names: q.<coordinate>, v.<coordinate>, a.<coordinate> or tau.<coordinate> (the inputs), or model parameters
    """

    of: str
    prescribed: np.ndarray
    outputs: np.ndarray
    by: tuple[str, ...]


def question(model: Model, of: str, prescribed: Sequence[str], by: Sequence[str], joints: Sequence[str]) -> Question:
    """Patterns bound to the names of the model; refuses what matches nothing, and too much."""
    if (of == "hybrid") != bool(prescribed):
        raise UsageError("--prescribed and --of hybrid must be used together")
    mask = prescribed_of(model, of, prescribed)
    outputs = np.flatnonzero(mask_of(model, joints)) if joints else np.arange(model.nv)
    state = [f"{kind}.{name}" for kind in "qv" for name in model.v_names]
    state += [f"{'a' if given else 'tau'}.{name}" for name, given in zip(model.v_names, mask, strict=True)]
    asked = Question(of, mask, outputs, _chosen(model, by, state) if by else tuple(state))
    count = len(outputs) * len(asked.by)
    if count > LARGEST:
        raise UsageError(f"the result would have {count} columns: {len(outputs)} forces or accelerations by {len(asked.by)} "
                         "variables; "
                         f"at most {LARGEST} are written: select with --joint PATTERN and --by PATTERN, such as --by 'q.*'")
    if sum(len(text) + 3 for both in column_names(model, asked) for text in both) > LONGEST_LINE:       # io.csv would not read it
        raise UsageError(f"the names of {count} columns make the header line too long: select with --joint and --by")
    return asked


def _chosen(model: Model, patterns: Sequence[str], state: list[str]) -> tuple[str, ...]:
    """Names that match, in the order of the patterns, each once."""
    known = *state, *parameter_names(model)

    def refusal(pattern: str) -> str:
        kinds = dict.fromkeys(name.partition(".")[0] for name in known)
        hint = nearest(pattern, known, 3, 0.5) or f"there are {', '.join(f'{kind}.*' for kind in kinds)}"
        return f"--by {pattern}: there is no such variable; {hint}"
    return tuple(named(patterns, known, refusal))


def jacobian(model: Model, asked: Question, motion: Motion) -> np.ndarray:
    """(N, outputs, by) derivatives at every row of a motion."""
    given = {"f_ext": motion.f_ext, "passive": motion.passive}
    blocks = dict.fromkeys(("q", "v", "u"))
    kinds = [kind_of(name) for name in asked.by]
    if any(kind in blocks for kind in kinds):
        blocks = dict(zip(blocks, _full(model, asked, motion, given), strict=True))
    parameters = [name for name, kind in zip(asked.by, kinds, strict=True) if kind == "parameter"]
    if parameters:
        x = np.where(asked.prescribed, _or_zero(motion.a, motion.v), _or_zero(motion.tau, motion.v))
        mask = {"of": "hybrid", "prescribed": asked.prescribed} if asked.of == "hybrid" else {"of": asked.of}
        by_parameter = parameter_derivatives(model, motion.q, motion.v, x, parameters, **mask, **given)
    coordinate = {name: k for k, name in enumerate(model.v_names)}
    out = np.empty((len(motion.q), len(asked.outputs), len(asked.by)))
    for j, (name, kind) in enumerate(zip(asked.by, kinds, strict=True)):
        if kind == "parameter":
            out[:, :, j] = by_parameter[:, asked.outputs, parameters.index(name)]
        else:
            out[:, :, j] = blocks[kind][:, asked.outputs, coordinate[name.partition(".")[2]]]
    return out


def _full(model: Model, asked: Question, motion: Motion, given: dict) -> list[np.ndarray]:
    """(N, nv, nv) of what comes out, by q, by v and by what goes in."""
    if asked.of == "inverse":
        return list(inverse_dynamics_derivatives(model, motion.q, motion.v, motion.a, **given))
    if asked.of == "forward":
        return list(forward_dynamics_derivatives(model, motion.q, motion.v, motion.tau, **given))
    return list(hybrid_dynamics_derivatives(model, motion.q, motion.v, _or_zero(motion.a, motion.v),
                                            _or_zero(motion.tau, motion.v), asked.prescribed, **given)[:3])


def rows_of(motion: Motion, rows) -> Motion:
    """The motion at some of its rows."""
    arrays = (None if x is None else x[rows] for x in (motion.q, motion.v, motion.a, motion.tau, motion.f_ext))
    return Motion(*arrays, motion.passive, motion.notes)


def _or_zero(x: np.ndarray | None, like: np.ndarray) -> np.ndarray:
    return np.zeros_like(like) if x is None else x


# names and units ---------------------------------------------------------------------------------------------------
def kind_of(name: str) -> str:
    """q, v, u (what goes in) or parameter (of the model)."""
    head = name.partition(".")[0]
    return head if head in ("q", "v") else "u" if head in ("a", "tau") else "parameter"


def column_names(model: Model, asked: Question) -> tuple[list[str], list[str]]:
    """Of all columns, output by output: names and units."""
    names, units = [], []
    for k in asked.outputs:
        kind = "tau" if asked.prescribed[k] else "a"
        for by in asked.by:
            names.append(f"d{kind}.{model.v_names[k]}/d{by}")
            units.append(quotient(unit_of(model, f"{kind}.{model.v_names[k]}"), unit_of(model, by)))
    return names, units


def unit_of(model: Model, name: str) -> str:
    """Unit of a coordinate's q, v, a or tau, or of a parameter of the model."""
    head, _, rest = name.partition(".")
    fixed = {"mass": "kg", "com": "m", "inertia": "kg m^2", "pitch": "m/rad", "gravity": "m/s^2"}
    if head in fixed:
        return fixed[head]
    last = rest.rpartition(".")[2]
    if head in ("origin", "screw"):
        angle, length = ("rad", "m") if head == "origin" else ("", "m")
        return angle if last.startswith("w") else length
    c = model.v_units[model.v_names.index(rest)]
    force = {"rad": "N m", "m": "N"}[c]
    return {"q": c, "v": f"{c}/s", "a": f"{c}/s^2", "tau": force, "armature": {"rad": "kg m^2", "m": "kg"}[c],
            "damping": f"{force} s/{c}", "friction": force, "stiffness": f"{force}/{c}", "rest": c}[head]


def quotient(above: str, below: str) -> str:
    """Unit of a derivative: N m/rad, N m/(rad/s), (rad/s^2)/(N m); none where the two are the same."""
    if above == below:
        return ""
    if not below:
        return above
    above = f"({above})" if "/" in above else above
    return f"{above}/({below})" if "/" in below or " " in below else f"{above}/{below}"
