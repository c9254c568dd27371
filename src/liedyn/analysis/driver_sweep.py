"""A sweep of a driver from texts of a command, such as crank=0:360deg."""
from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from liedyn.analysis.configurations import assembly_arguments
from liedyn.arrays import Array
from liedyn.dynamics.constraints.kinematic_sweep import KinematicSweep, kinematic_sweep
from liedyn.errors import UsageError, list_names
from liedyn.io.units import UNITS
from liedyn.model.model import Model
from liedyn.simulation.name_binding import select

_STEPS, _MAX_STEPS = 180, 100_000
_VALUE = re.compile(r"\s*(?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(?P<unit>[^\W\d]+|°)?\s*")
_FORM = "JOINT=FROM:TO[:STEPS], such as crank=0:360deg or crank=0:2:100"


def sweep_of_texts(model: Model, text: str, driven: Sequence[str] = (), q: Sequence[str] = (), fixed: Sequence[str] = (),
                   constraint_motion: Sequence[str] = (), *, limits: bool = True) -> KinematicSweep:
    """Return the sweep of a text such as "crank=0:360deg:72": from 0 to 360 degrees in 72 steps, by default 180.

    Parameters
    ----------
    text : str
        Values are in rad and m; the unit of the second one also applies to the first one without a unit.
    driven, fixed : names or patterns
        Coordinates whose mechanical advantages are computed; joints that keep the coordinates of the guess.
    q, constraint_motion : texts
        As in `assembled_state`.
    limits : bool
        Whether the sweep stops at joint limits.

    Raises
    ------
    UsageError
        For other texts, and names that match no coordinate.
    ComputationError, ModelError, NameLookupError, ConfigurationError
    """
    name, equals, values = text.partition("=")
    parts = values.split(":")
    if not equals or len(parts) not in (2, 3):
        raise _wrong(text)
    name = name.strip()
    if name not in (*model.v_names, *model.joint_names):
        raise UsageError(f"--sweep {text}: no coordinate {name!r}; the robot has {list_names(model.v_names, 12)}")
    positions = _positions(model, text, name, parts)
    outputs = [model.v_names[k] for k in select(driven, model.v_names, "coordinate")]
    guess, names, poses = assembly_arguments(model, q, fixed, constraint_motion)
    return kinematic_sweep(model, name, positions, guess, driven=outputs, fixed=names, limits=limits, constraint_motion=poses)


def _positions(model: Model, text: str, name: str, parts: Sequence[str]) -> Array:
    """Return the positions [rad | m] of the driver."""
    matches = [_VALUE.fullmatch(part) for part in parts[:2]]
    steps = parts[2].strip() if len(parts) == 3 else str(_STEPS)
    if not all(matches) or not re.fullmatch(r"\d{1,6}", steps) or not 1 <= int(steps) <= _MAX_STEPS:
        raise _wrong(text)
    k = model.v_names.index(name) if name in model.v_names else model.v_index(name).start
    coordinate_unit = model.v_units[k]
    last_unit = matches[1]["unit"] if matches[1] else None
    values = []
    for match in matches:
        assert match is not None
        unit = match["unit"] or last_unit or coordinate_unit
        if unit not in UNITS or UNITS[unit].exponents != UNITS[coordinate_unit].exponents:
            example = "deg" if coordinate_unit == "rad" else "mm"
            raise UsageError(f"--sweep {text}: {name} is in {coordinate_unit}: expected a unit such as {example}, got {unit!r}")
        values.append(float(match["number"]) * UNITS[unit].multiply / UNITS[unit].divide)
    if values[0] == values[1]:
        raise UsageError(f"--sweep {text}: expected two different positions")
    return np.linspace(values[0], values[1], int(steps) + 1)


def _wrong(text: str) -> UsageError:
    return UsageError(f"--sweep {text}: expected {_FORM}, with 1 to {_MAX_STEPS} steps")
