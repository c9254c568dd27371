"""Events that read joint forces, which jump where another event locks or frees joints: what is jumped over has happened."""
from __future__ import annotations

import numpy as np

from liedyn.codegen.steps.signals import instructions, read_signal
from liedyn.integrators.evaluation import evaluated
from liedyn.integrators.held_torques import HeldTorques
from liedyn.integrators.right_hand_side import RightHandSide
from liedyn.kernels.simulation.signals import MEASURED
from liedyn.simulation.measured import measured_at


def reads_forces(problem, k: int) -> bool:
    """Whether signal k reads joint forces."""
    words = instructions(problem.signals, k)
    return bool(((words & 255 == MEASURED) & (words >> 8 < problem.model.nv)).any())


def reading_forces(problem) -> list[int]:
    """Which of the events that schedule.watch looks for read joint forces."""
    return [event for event, k in enumerate(problem.schedule.watch) if k >= 0 and reads_forces(problem, k)]       # -1: a contact


def sides(problem, now, events, controller=None) -> np.ndarray:
    """The sign of each event's expression less its value at the state `now`, a `Start`. controller: whose torques act;
    or None."""
    if not events:
        return np.zeros(0)
    run = RightHandSide(problem, problem.signals)
    if controller is not None:
        HeldTorques(problem, controller, run).show()
    work = evaluated(problem, now.t, now.q, now.v, run, now.integral)
    measured = measured_at(problem.model, problem.signals, work.q, work.v)
    measured.measured[:problem.model.nv] = work.tau
    return np.array([read_signal(measured, int(problem.schedule.watch[k]), now.t, work.q, work.v)[0] for k in events])


def jumped(before: np.ndarray, after: np.ndarray, events, directions) -> tuple[int, ...]:
    """Events whose sides have changed in the direction that they wait for."""
    return tuple(event for event, one, other in zip(events, before, after, strict=True)
                 if one * other < 0.0 and directions[event] in (0, other))
