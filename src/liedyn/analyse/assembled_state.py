"""A closed state of a robot from values by joint name: what `liedyn assemble` runs."""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from liedyn.dynamics.loops.assembly import Assembly, assemble
from liedyn.dynamics.loops.constraints import constraint_velocity, nearest_velocity
from liedyn.dynamics.loops.rank import column_scale, row_scale
from liedyn.errors import ComputationError, ConfigurationError, UsageError
from liedyn.joints.kinds import SCREW
from liedyn.model.description import Pose
from liedyn.model.model import Model
from liedyn.model.spatial import pose
from liedyn.simulation.names import named

_AGREE = 1e-9            # of the largest given velocity, in lengths of the loops: what is left of an equation is rounding
_UNIT_NORM = 1e-6        # rounding allowed in a quaternion; people write six digits


@dataclass(frozen=True, eq=False)
class AssembledState:
    """A closed configuration and, where one was asked for, a velocity that obeys the constraints there."""

    model: Model
    assembly: Assembly
    v: np.ndarray | None
    still: tuple[str, ...] = ()         # driven loops whose motion was not given: they stand where the file has them


def assembled_state(model: Model, q: Sequence[str] = (), v: Sequence[str] = (), keep: Sequence[str] = (),
                    drive: Sequence[str] = (), *, seed: int = 0) -> AssembledState:
    """Close the loops from a guess, and complete a velocity.

    Parameters
    ----------
    q, v : texts such as "crank=0.5" or "base=0,0,1,0,0,0,1"
        The guess, by joint; the others start from their neutral coordinates. Velocities, which are kept; the others become those
        that the constraints ask for, and as small as can be in kinetic energy.
    keep : joint names or patterns
        Joints that stay where the guess has them.
    drive : texts such as "tool=0,0,-0.7" or "tool=0,0,-0.7,0,0,1.57"
        Where the frames of driven loops stand: x, y, z [m] and roll, pitch, yaw [rad] in the frames of the file; at rest.
    seed : int

    Raises
    ------
    UsageError
        For texts and names that fit no joint.
    ModelError, ComputationError, ConfigurationError
    """
    guess = model.neutral()
    for name, values in _given(model, q, model.q_index, "--q"):
        guess[model.q_index(name)] = _unit(model, name, values)
    moved, known = dict(_driven(model, text) for text in drive), ", ".join(model.joint_names[:12])
    kept = named(keep, model.joint_names, lambda pattern: f"no joint to keep matches {pattern!r}; the robot has {known}")
    found = assemble(model, guess, fixed=kept, drive=moved, seed=seed)
    still = tuple(one.name for one in model.constraints if one.driven and one.name not in moved)
    return AssembledState(model, found, _velocity(model, found.q, v, moved) if v else None, still)


def _velocity(model: Model, q, texts: Sequence[str], drive: dict) -> np.ndarray:
    wanted, given = np.zeros(model.nv), np.zeros(model.nv, dtype=bool)
    for name, values in _given(model, texts, model.v_index, "--v"):
        wanted[model.v_index(name)], given[model.v_index(name)] = values, True
    v = nearest_velocity(model, q, wanted, prescribed=given, drive=drive)
    left = np.abs(constraint_velocity(model, q, v, drive=drive))
    off = row_scale(model) * left
    if off.max() > _AGREE * np.abs(wanted / column_scale(model)).max():
        row = int(np.argmax(off))
        raise ComputationError(f"the given velocities contradict the constraints: the residual of {model.row_names[row]} is "
                               f"{left[row]:.3g} {_unit_of(model, row)}/s (give fewer velocities)")
    return v


def _unit_of(model: Model, row: int) -> str:
    return [unit for one in model.constraints for unit in one.units][row]


def _given(model: Model, texts: Sequence[str], index, option: str):
    """Joint and values of each text."""
    for text in texts:
        name, values = _named_values(text, option, "moving joint", model.joint_names)
        part = index(name)
        if len(values) != part.stop - part.start:
            raise UsageError(f"{option} {text}: joint {name} takes {part.stop - part.start} number(s)")
        yield name, values


def _driven(model: Model, text: str) -> tuple[str, np.ndarray]:
    """Closure and pose (4, 4) of its frame A."""
    name, values = _named_values(text, "--drive", "driven loop", [one.name for one in model.constraints if one.driven])
    if len(values) not in (3, 6):
        raise UsageError(f"--drive {text}: a driven loop takes 3 numbers (x, y, z) or 6 (also roll, pitch, yaw)")
    return name, pose(Pose.from_xyz_rpy(values[:3], values[3:] or (0.0, 0.0, 0.0)))


def _named_values(text: str, option: str, what: str, names: Sequence[str]) -> tuple[str, list[float]]:
    name, equals, numbers = text.partition("=")
    name = name.strip()
    if not equals:
        raise UsageError(f"{option} {text}: expected NAME=VALUE")
    if name not in names:
        raise UsageError(f"{option} {text}: no {what} {name!r}; the robot has {', '.join(names[:12]) or 'none'}")
    try:
        values = [float(x) for x in numbers.strip().strip("[]").split(",")]
    except ValueError:
        values = [np.nan]
    if not np.isfinite(values).all():
        raise UsageError(f"{option} {text}: {numbers.strip()!r} is not a finite number or a comma-separated list of them")
    return name, values


def _unit(model: Model, name: str, values: list[float]) -> list[float]:
    """The values, the quaternion in them rid of rounding."""
    if model.joint(name).kind == SCREW:
        return values
    norm = math.hypot(*values[-4:])
    if abs(norm - 1.0) > _UNIT_NORM:
        raise ConfigurationError(f"the quaternion x y z w of joint {name} has norm {norm:.7g}; expected 1")
    return [*values[:-4], *(x / norm for x in values[-4:])]
