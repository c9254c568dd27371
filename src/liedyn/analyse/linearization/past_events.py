"""What a scenario with phases and events does at a time of its motion: the robot with what it carries, and the problem then."""
from __future__ import annotations

from dataclasses import replace

import numpy as np

from liedyn.errors import UsageError
from liedyn.integrators.problem import Options


def past_events(setup, at: float, options: Options, progress):
    """The setup of the phase at the time `at`, with locked joints prescribed at rest and with attached bodies, after all that
    happens at that time; and the state. Raises UsageError where the run ends before, or a joint rests at a hard stop then."""
    from liedyn.simulation.events.stretches import Timeline
    from liedyn.simulation.records.rows import Rows

    scenario = setup.scenario
    timeline, rows = Timeline(scenario, setup.whole, setup.problem), Rows(setup.whole, setup.problem)
    timeline.run(np.array([at]) if at == 0.0 else np.array([0.0, at]), options, progress, rows)
    now, mode = timeline.ended, timeline.modes.mode
    if timeline.actions.stopped:
        raise UsageError(f"the run ends at t = {now.t:g} s, by the event {timeline.occurrences[-1].name}; found t = {at:g} s")
    if mode.resting:
        names = ", ".join(dict.fromkeys(stop.name for stop in mode.resting))
        raise UsageError(f"{names} rests at its hard stop at t = {at:g} s, where there is no linear system: it leaves to one "
                         "side only (limits: stop gives compliant stops; or lock the joint by an event)")
    problem = timeline.modes.problem
    notes = setup.notes if not timeline.occurrences else (*setup.notes, _told(mode, at))
    return replace(setup, model=problem.model, problem=problem, notes=notes), now


def _told(mode, at: float) -> str:
    parts = [f"phase {mode.phase}"] if mode.phase else []
    parts += [f"{', '.join(mode.locked)} locked"] if mode.locked else []
    parts += [f"a body attached to {', '.join(one.link for one in mode.attached)}"] if mode.attached else []
    return f"after the events up to t = {at:g} s" + (f": {'; '.join(parts)}" if parts else "")
