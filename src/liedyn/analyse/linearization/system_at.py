"""The linear system of a scenario's problem about an instant, and the independent coordinates there."""
from __future__ import annotations

from liedyn.analyse.linearization.instant import Instant, Setup
from liedyn.analyse.linearization.linear_system import LinearSystem
from liedyn.analyse.linearization.tangent_system import tangent_system
from liedyn.errors import UsageError
from liedyn.simulation.feedback import joint_laws, wrench_laws


def linear_system(setup: Setup, problem, here: Instant, inputs="*", outputs="q.*", prescribed=None,
                  independent=()) -> LinearSystem:
    """Of a `frozen` problem about an instant. prescribed: other coordinates than those of the setup."""
    prescribed = setup.prescribed if prescribed is None else prescribed
    force, push = (laws(problem, here.t, here.q, here.v) for laws in (joint_laws, wrench_laws))
    chart, drive = chart_at(problem, here, prescribed, independent)
    return tangent_system(setup.model, here, prescribed, problem.passive, force, push, inputs, outputs, chart, drive)


def chart_at(problem, here: Instant, prescribed, independent=()):
    """Independent coordinates of a problem with constraints, and the motion of its driven loops; else None, None."""
    if problem.ties is None:
        refuse_independent(independent)
        return None, None
    from liedyn.analyse.linearization.independent import chart
    from liedyn.simulation.driven_loops import drives_at

    drive = drives_at(problem, here.t)
    return chart(problem.model, here.q, here.v, prescribed, drive, independent), drive


def refuse_independent(independent) -> None:
    if len(independent):
        raise UsageError("independent coordinates are chosen for robots with constraints; this one has none")
