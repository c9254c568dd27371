"""A part of a run that is smooth."""
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from liedyn.errors import ScenarioError
from liedyn.integrators.problem import Problem
from liedyn.integrators.run_state import Record
from liedyn.io.scenarios.events import Phase
from liedyn.model.build import build
from liedyn.simulation.names import unknown


def opened(model, phase: Phase | None):
    """The robot without the loops, couplings and mimics that are open in a phase. ScenarioError for a name that is none."""
    if phase is None or not phase.open:
        return model
    robot, names = model.description, [one.name for one in model.constraints]
    if not names:
        raise ScenarioError("the robot has no loops or couplings", place=phase.place, found=", ".join(phase.open))
    for name in phase.open:
        if name not in names:
            raise unknown(name, names, "loop or coupling", phase.place)
        if model.constraint(name).driven:
            raise ScenarioError(f"loop {name} is driven: it cannot be open", place=phase.place)
    return build(replace(robot, loops=tuple(one for one in robot.loops if one.name not in phase.open),
                         couplings=tuple(one for one in robot.couplings if one.name not in phase.open),
                         joints=tuple(replace(one, mimic=None) if one.name in phase.open else one for one in robot.joints)))


@dataclass(frozen=True, eq=False)
class Part:
    """A stretch of the run: its problem and rows."""

    problem: Problem
    record: Record

    @property
    def model(self):
        """Its robot, with the bodies attached."""
        return self.problem.model


def whole_record(part: Part, model) -> Record:
    """Of all constraints of `model`: the multipliers of those that are open are zero."""
    record, rows = part.record, part.model.row_names
    if part.model.nc == model.nc:
        return record
    n, driven = len(record.t), sum(one.driven for one in model.constraints)
    multipliers = np.zeros((n, model.nc))
    multipliers[:, [model.row_names.index(name) for name in rows]] = record.multipliers
    tied = part.problem.ties is not None
    return record._replace(multipliers=multipliers, residual=record.residual if tied else np.zeros((n, 2)),
                           drive=record.drive if tied else np.zeros((n, 24 * driven)))
