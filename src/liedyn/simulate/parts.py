"""A part of a run that is smooth."""
from __future__ import annotations

from dataclasses import dataclass

from liedyn.integrators.problem import Problem
from liedyn.integrators.run_state import Record


@dataclass(frozen=True, eq=False)
class Part:
    """A stretch of the run: its robot (bodies attached), problem and rows."""

    model: object
    problem: Problem
    record: Record
