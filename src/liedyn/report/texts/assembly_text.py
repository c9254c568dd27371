"""A closed configuration: words for people, values by joint for a scenario's `initial`, columns for a CSV."""
from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from liedyn.analyse.assembled_state import AssembledState
from liedyn.io.csv import write_trajectory
from liedyn.io.output import STDIO, open_output
from liedyn.io.write_yaml import to_yaml
from liedyn.model.model import Model
from liedyn.report.texts.text_table import counted
from liedyn.simulation.records.motion_columns import columns_of, header_of

_SHOWN = 8                                  # names of rows in a line for people


def assembly_text(state: AssembledState) -> str:
    """What was found, in a few lines."""
    model, found = state.model, state.assembly
    lines = [f"{model.name}: closed to {found.residual:.2g} in {found.iterations} steps; the guess was open by "
             f"{found.open_before:.3g}",
             _mobility(model, found.mobility)]
    if found.at_limits:
        lines.append(f"at a limit: {', '.join(found.at_limits)}")
    return "\n".join(lines)


def assembly_notes(state: AssembledState) -> list[str]:
    """What a person should know before using the configuration."""
    found, mobility, notes = state.assembly, state.assembly.mobility, []
    if found.restarts:
        notes.append(f"no solution was found from the guess itself, but from random start {found.restarts} around it; check "
                     "that this is the branch that you want")
    if mobility.degrees == 0:
        driven = any(one.driven for one in state.model.constraints)
        notes.append("the driven loops determine all motion" if driven else
                     "the mechanism is immobile: the constraints leave no degree of freedom")
    elif mobility.rigid:
        notes.append("singular: the mechanism is rigid, but movable to first order")
    elif mobility.singular:
        notes.append(f"singular: the constraint Jacobian has rank {mobility.rank} here and {mobility.generic_rank} nearby; "
                     f"degrees of freedom nearby: {mobility.degrees - mobility.generic_rank + mobility.rank}")
    if state.still:
        notes.append(f"driven loops ({', '.join(state.still)}) are at their positions in the file; --drive moves them")
    return notes


def plain_assembly(state: AssembledState) -> dict:
    """The same as data."""
    model, found, mobility = state.model, state.assembly, state.assembly.mobility
    return {"robot": model.source, "q": _by_joint(model, found.q, "q"),
            "v": None if state.v is None else _by_joint(model, state.v, "v"),
            "residual": found.residual, "open_before": found.open_before, "moved": found.moved,
            "degrees_of_freedom": mobility.degrees, "rank": mobility.rank, "generic_rank": mobility.generic_rank,
            "redundant": list(mobility.redundant), "singular": mobility.singular, "rigid": mobility.rigid,
            "gap": list(mobility.gap), "iterations": found.iterations, "restarts": found.restarts,
            "at_limits": list(found.at_limits)}


def write_assembly(state: AssembledState, path: str, *, force: bool = False) -> None:
    """YAML with `q` (and `v`) by joint, as a scenario's `initial` takes them; a trajectory of one row for a name that ends in
    .csv; `-` is standard output."""
    model = state.model
    if Path(path).suffix.lower() == ".csv":
        v = None if state.v is None else state.v[None]
        columns = columns_of(model, q=state.assembly.q[None], v=v)
        write_trajectory(path, header_of(model, folder=Path(path).absolute().parent), [0.0], columns, force=force)
        return
    with open_output(STDIO if path == STDIO else path, force=force) as file:
        file.write(f"# a closed configuration of {model.name}: `initial` of a scenario\n")
        for kind, x in (("q", state.assembly.q), ("v", state.v)):
            if x is not None:
                file.write(f"{kind}:\n")
                for name, value in _by_joint(model, x, kind).items():
                    file.write(f"  {to_yaml(name, flow=True)}: {json.dumps(value)}\n")


def _by_joint(model: Model, x: np.ndarray, kind: str) -> dict[str, float | list[float]]:
    index = model.q_index if kind == "q" else model.v_index
    values = {name: (x[index(name)] + 0.0).tolist() for name in model.joint_names}
    return {name: value[0] if len(value) == 1 else value for name, value in values.items()}


def _mobility(model: Model, mobility) -> str:
    count = len(mobility.redundant)
    names = ", ".join(mobility.redundant[:_SHOWN]) + (", …" if count > _SHOWN else "")
    return f"{counted(mobility.degrees, 'degree')} of freedom: " \
           f"{model.nv} coordinates, {model.nc} rows" + (f", of which {count} redundant: {names}" if count else "")
