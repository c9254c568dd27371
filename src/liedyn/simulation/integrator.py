"""The integrator of a run: what the scenario names, else one that holds; and whether its step was fit for the robot."""
from __future__ import annotations

import numpy as np

from liedyn.integrators.problem import Options, Problem
from liedyn.integrators.stiffness import LIMIT, Fastest, fastest, fastest_along
from liedyn.io.scenarios.scenario import Integrator, Scenario

# Where forces are stiff: within 1e-6 of the converged motion on robots of example-robot-data, in half of Radau's time or less.
_STIFF = Integrator("rodas5p", rtol=1e-6, atol=1e-8)
_HELD = Integrator("Radau", rtol=1e-6, atol=1e-8)        # with constraints: Jacobians take long, and it keeps them
_MARGIN = 0.7            # of the limit of stability: inertias change along the way


def choose_integrator(scenario: Scenario, problem: Problem, between: float) -> tuple[Integrator, list[str]]:
    """The integrator, and what is to be said of the choice. Friction is taken at rest, where it is stiffest.

    between   outputs [s]: fixed steps are equal parts of it
    """
    default = scenario.integrator
    if default.named:
        return default, []
    found = fastest(problem, 0.0, problem.q, np.zeros(problem.model.nv))
    step = taken_step(default.step, between)
    if found.rate * step <= _MARGIN * LIMIT:
        return default, []
    taken = _STIFF if problem.ties is None else _HELD
    return taken, [f"{_cause(found)}, too fast for rk4 with {steps_text(step, default.step)}: the run uses "
                   f"{taken.method} with rtol {taken.rtol:g} and atol {taken.atol:g} (set integrator.method to choose another)"]


def options_of(integrator: Integrator) -> Options:
    i = integrator
    return Options(i.method, i.step, i.rtol, i.atol, i.max_step, i.rho)


def unstable_steps(integrator: Integrator, parts) -> list[str]:
    """Says where steps of rk4 are too long for the forces along a motion. Adaptive methods shorten theirs, others are stable."""
    if integrator.method != "rk4":
        return []
    for part in parts:
        step, found = taken_step(integrator.step, np.diff(part.record.t)), fastest_along(part.problem, part.record)
        if found.rate * step > LIMIT:
            return [f"{_cause(found)} at t = {found.t:.6g} s: rk4 is not stable there with "
                    f"{steps_text(step, integrator.step)}, and the motion is not reliable"]
    return []


def taken_step(step: float, between) -> float:
    """The longest step where steps are equal parts of the times between outputs; some are one time twice, about an event."""
    between = np.atleast_1d(between)
    between = between[between > 0.0]
    return float(np.max(between / np.ceil(between / step * (1 - 1e-9)), initial=0.0))


def steps_text(taken: float, given: float) -> str:
    """The steps that were taken, and the given step if outputs shorten it by more than a rounding to equal parts (a half)."""
    cut = f" (the step of {given:g} s is cut to output_step)" if taken <= 0.5 * given else ""
    return f"steps of {taken:g} s{cut}"


def _cause(found: Fastest) -> str:
    return f"{found.acting} with a time constant of {1 / found.rate:.1e} s"
