"""What events cost a run in which none happens: the same robot and scenario with none, one and three of them."""
from __future__ import annotations

import statistics
from pathlib import Path

import numpy as np

from benchmarks.measure import seconds
from liedyn.integrators.diagnosis import integrator_options
from liedyn.integrators.problem import SegmentStart
from liedyn.integrators.solve import solve_segment
from liedyn.simulation.preparation import prepare

FOLDER = Path(__file__).parents[2] / "robots"
ROBOTS = {"double_pendulum": ("shoulder", "elbow", "lower", 1.3), "panda": ("panda_joint2", "panda_joint4", "panda_hand", 0.3)}
METHODS = {"rk4": {"step": 1e-3}, "dopri5": {"rtol": 1e-8, "atol": 1e-10}}
OUTPUT, SECONDS, STEPS = 0.1, 5.0, 50_000          # so many steps that what it takes to begin a run is little next to them


def events(one: str, other: str, link: str) -> dict:
    """Return events of a position, a speed and a height, which do not occur."""
    return {"angle": {"when": f"q({one})", "value": 5000.0, "do": "stop"},
            "fast": {"when": f"v({other})", "value": -500.0, "do": "stop"},
            "high": {"when": f"z({link})", "value": 9.0, "do": "stop"}}


def run(robot: str, method: str, count: int, duration: float):
    """Return a function that runs the scenario and returns the number of its steps."""
    one, other, link, start = ROBOTS[robot]
    prepared = prepare({"robot": str(FOLDER / f"{robot}.yaml"), "duration": duration, "output_step": OUTPUT, "passive": False,
                        "integrator": {"method": method, **METHODS[method]}, "initial": {"q": {one: start, other: -1.5}},
                        "events": dict(list(events(one, other, link).items())[:count])}, ())
    problem, times = prepared.problem, np.linspace(0.0, duration, round(duration / OUTPUT) + 1)
    begin, options = SegmentStart(0.0, problem.q, problem.v), integrator_options(prepared.scenario.integrator)

    def once():
        return solve_segment(problem, begin, times, options)
    done = once()
    assert not done.end.triggered and done.end.t == duration
    return lambda: once().statistics.steps


def cost(robots=tuple(ROBOTS), steps: int = STEPS, repeats: int = 31):
    """Return (robot, method, microseconds per step without events, {events: their share of a step})."""
    for robot in robots:
        for method in METHODS:
            duration = round(SECONDS * steps / run(robot, method, 0, SECONDS)(), 1)
            runs = {count: run(robot, method, count, duration) for count in (0, 1, 3)}
            taken = {count: function() for count, function in runs.items()}
            rounds = [{count: seconds(function) / taken[count] for count, function in runs.items()} for _ in range(repeats)]
            us = statistics.median(one[0] for one in rounds) * 1e6
            yield robot, method, us, {count: statistics.median(one[count] / one[0] - 1.0 for one in rounds) for count in (1, 3)}


def report(line, quick: bool) -> None:
    print("\nevents that do not happen, in times of a step without events (us)")
    for robot, method, us, more in cost(**({"steps": 500, "repeats": 3} if quick else {})):
        line(max(more.values()) <= 0.05, f"{robot:15s} {method:6s}: {us:6.3f}, "
             + ", ".join(f"{count} event{'s' * (count > 1)} {share:+6.1%}" for count, share in more.items()) + " (asked 5 %)")


if __name__ == "__main__":
    report(lambda holds, text: print("ok  " if holds else "MISS", text), False)
