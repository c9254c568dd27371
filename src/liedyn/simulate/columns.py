"""A motion as the columns of a trajectory file, and back."""
from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np

from liedyn import __version__
from liedyn.errors import Place, TrajectoryError
from liedyn.model.model import Model

_FORCE = {"rad": "N m", "m": "N"}
_WRENCH = (("mx", "N m"), ("my", "N m"), ("mz", "N m"), ("fx", "N"), ("fy", "N"), ("fz", "N"))
_KINDS = ("q", "v", "a", "tau")


def header_of(model: Model, *, passive: bool = True, folder: str | Path | None = None) -> dict[str, str]:
    """Comments of a trajectory file that tell the robot and its file of loops; paths relative to `folder`, where it is known."""
    header = {}
    if model.source:
        robot = os.path.abspath(model.source)
        loops = {os.path.abspath(one.place.file) for one in (*model.description.loops, *model.description.couplings)
                 if one.place.file}
        for key, path in (("robot", robot), *(("loops", path) for path in loops - {robot})):
            header[key] = Path(os.path.relpath(path, folder) if folder is not None else path).as_posix()
        header["robot_sha256"] = hashlib.sha256(Path(model.source).read_bytes()).hexdigest()
    return header | {"base": model.base, "gravity": " ".join(repr(float(x)) for x in model.gravity),
                     "passive": "true" if passive else "false", "liedyn": __version__}


def columns_of(model: Model, forced_links=(), wrench=None, **arrays) -> list[tuple[str, str, np.ndarray]]:
    """(name, unit, (N,) array) of q (N, nq), v, a, tau (N, nv), as far as given, and of external wrenches (N, 6 links)."""
    out = []
    for kind in _KINDS:
        if arrays.get(kind) is not None:
            out += [(f"{kind}.{name}", unit, arrays[kind][:, k]) for k, (name, unit) in enumerate(_units(model, kind))]
    for k, link in enumerate(forced_links):
        out += [(f"fext.{link}.{part}", unit, wrench[:, 6 * k + j]) for j, (part, unit) in enumerate(_WRENCH)]
    return out


def constraint_columns(model: Model, multipliers, drift) -> list[tuple[str, str, np.ndarray]]:
    """lambda.<row> of each row of the constraints, `Model.row_names` [N m | N], and drift, the largest residual of them [rad, or
    m, or `rad or m` where they have both]. Nothing without constraints."""
    if multipliers is None:
        return []
    units = [unit for one in model.constraints for unit in one.units]
    columns = [(f"lambda.{name}", _FORCE[unit], multipliers[:, r])
               for r, (name, unit) in enumerate(zip(model.row_names, units, strict=True))]
    return [*columns, ("drift", " or ".join(sorted(set(units), reverse=True)), drift)]


def _units(model: Model, kind: str) -> list[tuple[str, str]]:
    if kind == "q":
        return list(zip(model.q_names, model.q_units, strict=True))
    unit = {"v": lambda u: f"{u}/s", "a": lambda u: f"{u}/s^2", "tau": _FORCE.__getitem__}[kind]
    return [(name, unit(u)) for name, u in zip(model.v_names, model.v_units, strict=True)]


def bind(model: Model, trajectory, kind: str) -> np.ndarray | None:
    """(N, n) array of the columns of `kind` (q, v, a, tau), by name. None where the file has none of them.

    Raises TrajectoryError where it has some but not all, or where a unit is not ours."""
    wanted = _units(model, kind)
    present = [(name, unit) for name, unit in wanted if f"{kind}.{name}" in trajectory.columns]
    for name, unit in present:
        found = trajectory.units.get(f"{kind}.{name}", "")
        if found and found.replace("·", " ").replace("*", " ") != unit:
            raise TrajectoryError("not the unit of this column", place=_place(trajectory, f"{kind}.{name}"), found=found,
                                  expected=unit or "none")
    if not present:
        return None
    return np.column_stack([_column(trajectory, f"{kind}.{name}", [f"{kind}.{n}" for n, _ in present]) for name, _ in wanted])


def _column(trajectory, name: str, present: list[str]) -> np.ndarray:
    if name not in trajectory.columns:
        raise TrajectoryError("a column is missing", place=_place(trajectory, name),
                              expected=f"one for each coordinate, as there is {present[0]}")
    return trajectory.columns[name]


def bind_wrenches(model: Model, trajectory) -> np.ndarray | None:
    """(N, n_links, 6) external wrenches of the columns fext.<link>.<component>; None where the file has none."""
    out = None
    for name in trajectory.columns:
        if not name.startswith("fext."):
            continue
        link, _, part = name[5:].rpartition(".")
        parts = [p for p, _ in _WRENCH]
        if link not in model.link_names or part not in parts:
            raise TrajectoryError("this column fits no link of the robot", place=_place(trajectory, name),
                                  expected="fext.<link>.mx … fext.<link>.fz")
        if out is None:
            out = np.zeros((len(trajectory.t), len(model.link_names), 6))
        out[:, model.link_index(link), parts.index(part)] = trajectory.columns[name]
    return out


def _place(trajectory, column: str) -> Place:
    return Place(trajectory.source, None, f"column {column}")
