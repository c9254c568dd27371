"""What is to be integrated, how, and how a run can fail."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from liedyn.errors import ComputationError, Place
from liedyn.integrators.runge_kutta import Record, Stages, State
from liedyn.kernels.hybrid import hybrid_memory
from liedyn.kernels.motion import BAD_SIGNAL, NOT_FINITE, SINGULAR, STEP_TOO_SMALL, MotionWork, Plant
from liedyn.kernels.signals import TORQUE, Schedule, Signals


@dataclass(frozen=True, eq=False)
class Problem:
    """An initial value problem on the manifold.

    q, v                 initial state
    signal_names, signal_places   what each signal drives, for messages
    """

    model: object
    schedule: Schedule
    signals: Signals
    q: np.ndarray
    v: np.ndarray
    stack_size: int
    signal_names: tuple[str, ...] = ()
    signal_places: tuple[Place, ...] = ()
    passive: bool = True

    @property
    def forced_links(self) -> np.ndarray:
        """Links that external wrenches act on, sorted."""
        return np.unique(self.schedule.force_link)

    def plant(self) -> Plant:
        links = self.forced_links
        return Plant(np.asarray(self.schedule.level != TORQUE), np.searchsorted(links, self.schedule.force_link).astype(np.int64),
                     links.astype(np.int64), np.array([self.passive and self.model.has_passive_forces]))

    def work(self) -> MotionWork:
        m, slots = self.model, len(self.forced_links)
        return MotionWork(np.zeros(m.nq), np.zeros(m.nv), np.zeros(m.nv), np.zeros(m.nv),
                          np.zeros(6 * m.n_bodies if slots else 0), np.zeros(6 * slots), np.zeros(max(self.stack_size, 3)),
                          np.zeros(2, dtype=np.int64), np.zeros(hybrid_memory(m.n_bodies, m.nv)))

    def record(self, times: np.ndarray) -> Record:
        m, n = self.model, len(times)
        return Record(times, np.zeros((n, m.nq)), *(np.zeros((n, m.nv)) for _ in range(3)),
                      np.zeros((n, 6 * len(self.forced_links))), np.zeros(n))


@dataclass(frozen=True)
class Options:
    """method: rk4 (fixed `step`), dopri5, or one of SciPy's (rtol, atol, max_step)."""

    method: str = "rk4"
    step: float = 1e-3
    rtol: float = 1e-8
    atol: float = 1e-10
    max_step: float = np.inf


@dataclass
class Statistics:
    steps: int = 0
    rejected: int = 0
    evaluations: int = 0
    seconds: float = 0.0


def begin(problem: Problem) -> State:
    y = np.concatenate([np.zeros(problem.model.nv), problem.v, [0.0]])
    return State(problem.q.copy(), y, np.zeros(2), np.zeros(6, dtype=np.int64))


def stages_for(stages: int, nv: int) -> Stages:
    n = 2 * nv + 1
    return Stages(np.zeros((stages + 2, n)), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(nv))


def failure(problem: Problem, code: int, t: float, work: MotionWork) -> ComputationError:
    """What to tell when a run ends early."""
    if code == BAD_SIGNAL:
        k = int(work.flag[0])
        name = problem.signal_names[k] if k < len(problem.signal_names) else f"number {k}"
        place = problem.signal_places[k] if k < len(problem.signal_places) else Place()
        where = f"{place}: " if str(place) else ""
        return ComputationError(f"{where}the signal of {name} is not a finite number at or soon after t = {t:.6g} s")
    if code == SINGULAR:
        return ComputationError(f"a joint's articulated inertia vanishes at or soon after t = {t:.6g} s: its acceleration is not "
                                "defined (a compound joint in a singular position)")
    fast = problem.model.v_names[int(np.argmax(np.abs(work.v)))] if problem.model.nv else ""
    if code == NOT_FINITE:
        return ComputationError(f"the motion is no longer finite soon after t = {t:.6g} s; the fastest coordinate was {fast}: "
                                "try a smaller step, an adaptive method (dopri5), or Radau for a stiff robot")
    if code == STEP_TOO_SMALL:
        return ComputationError(f"the step size fell to rounding level at t = {t:.6g} s; the fastest coordinate was {fast}: the "
                                "problem may be stiff (try Radau) or blow up there")
    return ComputationError(f"the run ended early at t = {t:.6g} s (code {code})")
