"""Time against the error of the final state: our integrators, SciPy's solve_ivp around Pinocchio's aba, MuJoCo's RK4.

Ours is timed as a run integrates, by `integrators.solve`: without reading files, compilation and the self-check, which the others
do not do either. Each side has several methods with several tolerances or steps. At an error, the time of a side is that of its
fastest method that comes as near: on straight lines in logarithms between those of its points than which none is both nearer and
faster. The error is the norm of the difference on the manifold and of that of the velocity [rad, m, s].
"""
from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

import liedyn as ld
from benchmarks.measure import cpu_seconds
from benchmarks.peer_motions import MujocoMotion, PinocchioMotion
from bridge import robots_folder
from liedyn.integrators.problem import Options
from liedyn.integrators.solve import solve
from liedyn.model.description import ONE_DOF
from liedyn.simulation.preparation import prepare

ERRORS = 1e-4, 1e-6, 1e-8
ASKED = {"solve_ivp": 10.0, "MuJoCo": 3.0}
SAME = 1e-10             # by which solve_ivp at its smallest tolerance may differ from our reference
OURS = "liedyn"
ROUNDS = 7
SLOW = 1.0               # s: what takes longer is timed once
_TIGHT = tuple(10.0**-k for k in range(3, 12))


@dataclass(frozen=True, eq=False)
class Motion:
    """ours, scipy: methods with values of rtol (atol is a tenth), of rk4 steps [s]; mujoco: steps [s]"""

    name: str
    scenario: dict
    ours: dict[str, tuple[float, ...]]
    scipy: dict[str, tuple[float, ...]]
    mujoco: tuple[float, ...] = ()

    @cached_property
    def problem(self):
        return prepare(self.scenario, (), False, False).problem

    @property
    def duration(self) -> float:
        return self.scenario["duration"]

    def solve(self, method: str, number: float):
        """Return the final q and v."""
        options = Options(method, step=number) if method == "rk4" else Options(method, rtol=number, atol=0.1 * number)
        record = solve(self.problem, np.array([0.0, self.duration]), options)[0]
        return record.q[-1], record.v[-1]

    @cached_property
    def reference(self):
        return self.solve("dop853", 1e-14)

    def error(self, end) -> float:
        (q, v), model = self.reference, self.problem.model
        return float(np.linalg.norm(np.r_[ld.difference(model, q, end[0]), end[1] - v]))


def motions() -> Iterator[Motion]:
    explicit = {"rk4": (8e-3, 4e-3, 2e-3, 1e-3, 5e-4), "dopri5": _TIGHT, "dop853": _TIGHT}
    scipy = {"RK45": _TIGHT, "DOP853": _TIGHT}
    steps = 1.6e-2, 8e-3, 4e-3, 1e-3, 2.5e-4, 6.25e-5
    humanoid = ld.load("robots/humanoid.yaml")
    posed = {joint.name: [0.5 * float(np.sin(3 * k + j)) for j in range(joint.v.stop - joint.v.start)]
             for k, joint in enumerate(humanoid.joints) if joint.kind == ONE_DOF}
    posed = {name: x if len(x) > 1 else x[0] for name, x in posed.items()}
    yield Motion("humanoid", {"robot": "robots/humanoid.yaml", "duration": 1.0, "passive": False,
                              "initial": {"q": posed, "v": {"base": [1, 4, -2, 0.5, 0, 3]}}}, explicit, scipy, steps)
    talos = str(robots_folder() / "talos_data/robots/talos_reduced.urdf")
    bent = {"arm_*": 0.5, "leg_*_4_joint": 0.8, "leg_*_3_joint": -0.4, "arm_left_4_joint": -1.0, "arm_right_4_joint": -1.3}
    thrown = {"base": [1, 4, -2, 0.5, 0, 3]}
    yield Motion("Talos, floating", {"robot": talos, "base": "floating", "duration": 1.0, "passive": False,
                                     "initial": {"q": bent, "v": thrown}}, explicit, scipy, steps)
    yield Motion("spinning top", {"robot": "robots/top.yaml", "duration": 1.0,
                                  "initial": {"q": {"pivot": [-(0.5**0.5), 0, 0, 0.5**0.5]}, "v": {"pivot": [0, 4.61538, 150]}}},
                 explicit | {"rk4": (2e-3, 1e-3, 5e-4, 2.5e-4)}, scipy, (1e-3, 1e-4, 1e-5, 1e-6))
    standing = {"*_hip": 0.8, "*_knee": -1.6}
    legs = {name: {"torque": {"pd": {"kp": 100, "kd": 4, "target": x}}}
            for name, x in {"*_abd": 0.1, "*_hip": 0.9, "*_knee": -1.8}.items()}
    stiff = 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8
    yield Motion("quadruped on its feet", {
        "robot": "robots/quadruped.yaml", "duration": 0.2, "passive": False, "joints": legs,
        "initial": {"q": standing | {"base": [0, 0, 0.3075, 0, 0, 0, 1]}},
        "contacts": {"links": {"*_foot": {"sphere": {"radius": 0.0175}}}}},
        {"rodas5p": stiff, "dopri5": (1e-4, 1e-6, 1e-8, 1e-10), "dop853": (1e-8, 1e-10)},
        {"RK45": (1e-3, 1e-6), "DOP853": (1e-6,), "LSODA": stiff, "BDF": stiff[:-1], "Radau": stiff[:-1]})
    yield Motion("quadruped in the air", {"robot": "robots/quadruped.yaml", "duration": 1.0, "passive": False,
                                          "initial": {"q": standing, "v": thrown | {"*_hip": 4, "*_knee": -8}}},
                 explicit, scipy, steps)


@dataclass(frozen=True, eq=False)
class Point:
    """A method of a side with a tolerance or step, and what came of it."""

    side: str
    method: str
    run: Callable[[], tuple]
    error: float
    times: list[float]        # s

    @property
    def time(self) -> float:
        return statistics.median(self.times)


def points(motion: Motion, rounds: int) -> list[Point]:
    """Return the points of all programs, which alternate so that a slow period of the machine affects all."""
    pinocchio, found = PinocchioMotion(motion.problem), []
    runs = [(OURS, method, lambda m=method, x=x: motion.solve(m, x)) for method, xs in motion.ours.items() for x in xs]
    runs += [("solve_ivp", method, lambda m=method, x=x: pinocchio.solve(motion.duration, m, x))
             for method, xs in motion.scipy.items() for x in xs]
    if motion.mujoco:
        mujoco = MujocoMotion(motion.problem)
        runs += [("MuJoCo", "RK4", lambda x=x: mujoco.solve(motion.duration, x)) for x in motion.mujoco]
    for side, method, run in runs:
        error = motion.error(run())                            # perhaps compiles
        found.append(Point(side, method, run, error, [cpu_seconds(run)]))
    quick = [point for point in found if point.time < SLOW]
    for _ in range(rounds):
        for point in quick:
            point.times.append(cpu_seconds(point.run))
    return found


def time_at(error: float, found: list[Point], side: str) -> tuple[float, str]:
    """Return the time [s] of the fastest method of a program at this error, and its name; infinite if none reaches it."""
    best = np.inf, ""
    for method in {point.method for point in found if point.side == side}:
        front: list[tuple[float, float]] = []                  # points than which none is both nearer and faster
        for point in sorted((p for p in found if (p.side, p.method) == (side, method)), key=lambda p: p.time):
            if not front or point.error < front[-1][0]:
                front.append((point.error, point.time))
        errors, times = np.log(front[::-1]).T
        if errors[0] <= np.log(error):
            best = min(best, (float(np.exp(np.interp(np.log(error), errors, times))), method))
    return best


def ratios(motion: Motion, found: list[Point]) -> Iterator[tuple[str, float, tuple, tuple]]:
    """Return (peer, error, (time of liedyn, method), (time of the peer, method)) at the errors that both reach."""
    for peer in ASKED:
        for error in ERRORS:
            ours, theirs = time_at(error, found, OURS), time_at(error, found, peer)
            if np.isfinite([ours[0], theirs[0]]).all():
                yield peer, error, ours, theirs


def split(motion: Motion) -> float:
    """Return the difference between solve_ivp with the smallest tolerance and the reference of liedyn."""
    return motion.error(PinocchioMotion(motion.problem).solve(motion.duration, "DOP853", 1e-14))


def report(line, quick: bool) -> None:
    print("\ntime of a run (ms, CPU) at the same error of its final state: ours, solve_ivp around Pinocchio's aba, MuJoCo's RK4")
    for motion in motions():
        if quick and "feet" in motion.name:
            continue
        apart = split(motion)
        line(apart < SAME, f"{motion.name}: the reference and solve_ivp differ by {apart:.1e} (asked {SAME:g})")
        found = points(motion, 1 if quick else ROUNDS)
        for peer, error, (ours, mine), (theirs, other) in ratios(motion, found):
            line(theirs >= ASKED[peer] * ours, f"{motion.name:22s} {error:.0e}: {mine:8s}{1e3 * ours:8.3f}, {peer} {other:6s}"
                 f"{1e3 * theirs:9.2f}, {theirs / ours:5.1f}x (asked {ASKED[peer]:g}x)")
