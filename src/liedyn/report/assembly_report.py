"""Assembled configurations as text, plain data and files."""
from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from liedyn.analysis.configurations import AssembledState
from liedyn.arrays import Array
from liedyn.errors import WarningLog, counted, list_names
from liedyn.io.atomic_output import STDIO, open_output
from liedyn.io.trajectory_csv import write_trajectory
from liedyn.io.yaml_values import flow_yaml
from liedyn.model.model import Model
from liedyn.report.mobility_report import mobility_text, mobility_to_dict, singular_text
from liedyn.simulation.trajectory_columns import motion_columns, trajectory_header

_SHOWN = 8                                  # names in a line


def assembly_text(state: AssembledState) -> str:
    """Return a short text about an assembled configuration."""
    model, assembly = state.model, state.assembly
    lines = [f"{model.name}: loops closed in {assembly.iterations} iterations (residual {assembly.open_before:.3g} -> "
             f"{assembly.residual:.2g})",
             mobility_text(model, assembly.mobility)]
    if assembly.at_limits:
        lines.append(f"at a limit: {', '.join(assembly.at_limits)}")
    return "\n".join(lines)


def assembly_warnings(state: AssembledState) -> WarningLog:
    """Return warnings about an assembled configuration."""
    assembly, mobility, warnings = state.assembly, state.assembly.mobility, WarningLog()
    if assembly.restarts:
        warnings.add("other-guess",
                     f"the initial guess led to no solution, but random start {assembly.restarts} around it did; check that "
                     "this is the intended branch")
    if mobility.degrees == 0:
        driven = any(constraint.driven for constraint in state.model.constraints)
        warnings.add("immobile",
                     "the driven loops determine all motion" if driven else
                     "the mechanism is immobile: the constraints leave no degree of freedom")
    elif mobility.singular:
        warnings.add("singular-configuration", singular_text(mobility))
    if assembly.degenerate:
        warnings.add("degenerate-assembly",
                     f"degenerate: this assembly has {counted(mobility.degrees, 'degree')} of freedom, more than others; "
                     f"coordinates that move in more ways: {list_names(assembly.degenerate, _SHOWN)} (another guess leads to "
                     "another assembly)")
    if state.still:
        warnings.add("driven-loops-still",
                     f"driven loops ({', '.join(state.still)}) are at their positions in the file; --constraint-motion moves "
                     "them")
    return warnings


def assembly_to_dict(state: AssembledState) -> dict[str, Any]:
    """Return an assembled configuration as plain data."""
    model, assembly, mobility = state.model, state.assembly, state.assembly.mobility
    return {"robot": model.source, "q": coordinates_by_joint(model, assembly.q, "q"),
            "v": None if state.v is None else coordinates_by_joint(model, state.v, "v"),
            "residual": assembly.residual, "open_before": assembly.open_before, "moved": assembly.moved,
            **mobility_to_dict(mobility), "degenerate": list(assembly.degenerate), "iterations": assembly.iterations,
            "restarts": assembly.restarts, "at_limits": list(assembly.at_limits)}


def assemblies_text(states: Sequence[AssembledState]) -> str:
    """Return a line for each assembly: its distance from the guess, degrees of freedom, and what is special about it."""
    count = len(states)
    lines = [f"{states[0].model.name}: {count} different {'assembly' if count == 1 else 'assemblies, the nearest first'}"]
    for number, state in enumerate(states, 1):
        assembly = state.assembly
        special = [name for name in ("singular", "degenerate") if getattr(assembly, name)]
        special += [f"at a limit: {list_names(assembly.at_limits, _SHOWN)}"] if assembly.at_limits else []
        lines.append(", ".join([f"{number}: {assembly.moved:.3g} from the guess",
                                f"{counted(assembly.mobility.degrees, 'degree')} of freedom", *special]))
    return "\n".join(lines)


def write_assemblies(states: Sequence[AssembledState], path: str, comments: dict[str, str], *, force: bool = False,
                     as_list: bool = False) -> None:
    """Write assemblies: YAML with `q` (and `v`) by joint, in the format of `initial` of a scenario; `-` is standard output.

    With `as_list` it is a list of these. A path that ends in .csv gets a trajectory with these comments, whose times are the
    numbers from 0.
    """
    model, q = states[0].model, np.array([state.assembly.q for state in states])
    v = None if states[0].v is None else np.array([state.v for state in states])
    write_states(model, q, v, path, "closed", comments, force=force, as_list=as_list)


def write_states(model: Model, q: Array, v: Array | None, path: str, kind: str,
                 comments: dict[str, str], *, force: bool, as_list: bool = False) -> None:
    """Write states (k, nq), (k, nv) as `write_assemblies` does. kind: of the configurations, such as "closed"."""
    if Path(path).suffix.lower() == ".csv":
        write_trajectory(path, trajectory_header(model, folder=Path(path).absolute().parent) | comments,
                         np.arange(float(len(q))), motion_columns(model, q=q, v=v), force=force)
        return
    with open_output(STDIO if path == STDIO else path, force=force) as file:
        subject = f"{kind} configurations of {model.name}, each" if as_list else f"a {kind} configuration of {model.name}:"
        file.write(f"# {subject} `initial` of a scenario\n")
        for k in range(len(q)):
            lead = "- " if as_list else ""
            for key, x in (("q", q[k]), ("v", None if v is None else v[k])):
                if x is None:
                    continue
                file.write(f"{lead}{key}:\n")
                lead = " " * len(lead)
                for name, value in coordinates_by_joint(model, x, key).items():
                    file.write(f"{lead}  {flow_yaml(name)}: {json.dumps(value)}\n")


def coordinates_by_joint(model: Model, x: Array, kind: str) -> dict[str, float | list[float]]:
    """Return coordinates by joint: those of q, or those of v."""
    index = model.q_index if kind == "q" else model.v_index
    values = {name: (x[index(name)] + 0.0).tolist() for name in model.joint_names}
    return {name: value[0] if len(value) == 1 else value for name, value in values.items()}
