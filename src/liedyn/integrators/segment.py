"""What a stretch of a run is computed with, by our own methods and by SciPy's; saved, and put back in another process."""
from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Callable

import numpy as np

from liedyn.dynamics.constraints.constraints import use_generic_kernels
from liedyn.integrators.diagnosis import early_end, failure
from liedyn.integrators.problem import (
    InitialValueProblem,
    Options,
    RunObserver,
    Statistics,
    begin,
    loop_figures,
    stages_for,
    state_vector,
)
from liedyn.integrators.run_state import (
    EVALUATIONS,
    FIRST_RATE_KNOWN,
    NEXT_BREAK,
    STEPS,
    T_NOW,
    BreakPoints,
    Loops,
    Record,
    State,
    named_arrays,
    restore_arrays,
    restore_constraints,
)
from liedyn.integrators.zero_crossings import ZeroCrossings
from liedyn.kernels.simulation.rate_evaluation import INVALID_ARGUMENTS, TERMS, GeneratedCall, bring_back, rates_at, stages_apart
from liedyn.kernels.simulation.right_hand_side import FINISHED, NOT_CONVERGED, RUNNING, MotionWorkspace
from liedyn.kernels.simulation.signals import CONSTANT, ORDER, POLYNOMIAL, SWITCH, Signals

# The right-hand side of a run: a line where there is one, else loops ----------------------------------------------------

class RightHandSide:
    """line, loops: the one that is used, the other is None. signals: with the switches of this run.
    ties: a LoopPlant, or None."""

    def __init__(self, problem, signals: Signals):
        self.problem, self.signals, self.ties = problem, signals, problem.loop_plant()
        self.line = generated_call(problem, signals, self.ties)
        self.loops = None if self.line else self._loops()
        self.walls = BreakPoints(problem.schedule.breaks, problem.schedule.before, problem.schedule.q_of_v, signals.held,
                           self.ties.desk if self.ties else np.zeros(0), False)

    def use_generic_kernels(self) -> None:
        """Where the line does not hold, as for angles beyond the range of its sine."""
        if self.ties:
            use_generic_kernels(self.ties.desk)
        self.line, self.loops = None, self._loops()

    def at(self, *arguments) -> int:
        """(t, q0, y, K, row, work): see `rates_at`."""
        return self._either(rates_at, arguments)

    def at_stages(self, *arguments) -> int:
        """(method, t, h, ceiling, state, stages, first, last, work): see `rates_of_stages`."""
        return self._either(stages_apart, arguments)

    def bring_back(self, *arguments) -> int:
        """(t, counted, q0, y, q, work): see `bring_back`."""
        return self._either(bring_back, arguments)

    def _either(self, function, arguments) -> int:
        code = function(self.line, self.loops, *arguments)
        if code == INVALID_ARGUMENTS and self.line:
            self.use_generic_kernels()
            code = function(self.line, self.loops, *arguments)
        return code

    def _loops(self) -> Loops:
        p = self.problem
        return Loops(*p.model._arrays[:2], p.plant(), p.schedule, self.signals, self.ties)


def generated_call(problem, signals: Signals, ties) -> GeneratedCall | None:
    step, count = problem.step, signals.held.size // SWITCH
    if step is None:
        return None
    curves = step.curves
    numbers = problem.tables()._replace(signals=signals).numbers if signals.clocks.size else step.numbers
    return GeneratedCall(step.address, step.second_address, step.projection_address, ties.desk if ties else np.zeros(0),
                         np.zeros(1),
                np.zeros(TERMS * len(curves)), signals.first[curves], signals.count[curves], signals.breaks, signals.coefficients,
                signals.held, numbers, np.zeros(2), np.zeros(count), np.zeros(ORDER))


# held torques -----------------------------------------------------------------------------------------------------------

# Torques of a sampled controller in a stretch of a run: constants of its signals, or straight lines, renewed where steps end.

SAME = 4                 # spacings of floats between times that are the same but for rounding


class ZeroOrderHold:
    """sides: the `RightHandSide` of the stretch, which gets separate constants and break points. times: of its outputs.

    controller   has `act(problem, t, q0, y)`, called at the beginning and at each time `due`, and `torque` (nv,), which it holds;
                 for straight lines also `slope` (nv,) and the time `since` when they begin
    """

    def __init__(self, problem, controller, sides, times=()):
        self.problem, self.controller, self.sides, self.times = problem, controller, sides, np.asarray(times)
        signals, signal = problem.signals, problem.sampled.signal
        self.coordinates = np.flatnonzero(signal >= 0)
        self.first = signals.first[signal[self.coordinates]]
        self.ramps = bool((signals.kind[signal[self.coordinates]] == POLYNOMIAL).any())
        # a line reads the constants that are not zero, in their order (`codegen.scenario_inputs`)
        constants = signals.first[signals.kind == CONSTANT]
        constants = constants[signals.literals[constants] != 0.0]
        self.numbers = np.searchsorted(constants, self.first)
        own = {name: getattr(signals, name).copy() for name in (("breaks", "coefficients") if self.ramps else ("literals",))}
        sides.signals = signals._replace(held=sides.signals.held, **own)
        if sides.line is not None:
            own = own if self.ramps else {"numbers": sides.line.numbers.copy()}
            sides.line = sides.line._replace(**own)
        else:
            sides.loops = sides.loops._replace(signals=sides.signals)
        self.breaks, self.before = sides.walls.breaks, sides.walls.before
        sides.walls = sides.walls._replace(breaks=np.zeros(1), before=np.zeros(1), stops_at_breaks=True)

    @property
    def carried(self) -> tuple:
        """All arrays that are written during a run."""
        line, walls = self.sides.line, self.sides.walls
        return self.sides.signals.literals, walls.breaks, walls.before, () if line is None else line.numbers

    def act(self, state: State) -> None:
        """At the state of the run: what is due, and where the next step must end."""
        t = float(state.clock[T_NOW])
        self.controller.act(self.problem, t, state.q, state.y)
        self.show()
        self._limit_step(t)
        # the wall is a new one, and so are the rates
        state.count[NEXT_BREAK] = state.count[FIRST_RATE_KNOWN] = 0

    def show(self) -> None:
        """The torque that the controller holds."""
        torque, signals = self.controller.torque[self.coordinates], self.sides.signals
        if self.ramps:
            signals.breaks[self.first], signals.coefficients[ORDER * self.first] = self.controller.since, torque
            signals.coefficients[ORDER * self.first + 1] = self.controller.slope[self.coordinates]
            return
        signals.literals[self.first] = torque
        if self.sides.line is not None:
            self.sides.line.numbers[self.numbers] = torque

    def _limit_step(self, t: float) -> None:
        k = int(self.breaks.searchsorted(t, "right"))
        wall, before = (float(self.breaks[k]), float(self.before[k])) if k < len(self.breaks) else (math.inf, math.inf)
        due = self._at_output(self.controller.due)
        if due < wall:
            wall, before = due, math.nextafter(due, -math.inf)
        self.sides.walls.breaks[0], self.sides.walls.before[0] = wall, before

    def _at_output(self, due: float) -> float:
        """The time of an output that is the same but for rounding, so that its row shows the new torque."""
        k = int(self.times.searchsorted(due - SAME * math.ulp(due)))
        return float(self.times[k]) if k < len(self.times) and self.times[k] - due <= SAME * math.ulp(due) else due

    @property
    def wall(self) -> tuple[float, float]:
        """Where the next step must end, and the last time that counts as before it."""
        return float(self.sides.walls.breaks[0]), float(self.sides.walls.before[0])


# underway ---------------------------------------------------------------------------------------------------------------

TEXT = "text"             # the name of what is no array


class SegmentState:
    """stages: rows of rates; readings: whether they have columns for what switches read. torques: of a sampled controller, or
    None."""

    def __init__(self, problem, start, times, controller, stages: int, readings: bool):
        self.problem, self.switches = problem, ZeroCrossings(problem, start)
        self.record, self.work, self.state = problem.record(np.array(times)), problem.work(), begin(problem, start)
        self.sides = RightHandSide(problem, self.switches.signals)
        self.stages = stages_for(stages, problem, len(self.switches) if readings else 0)
        self.torques = None if controller is None else ZeroOrderHold(problem, controller, self.sides, self.record.t)

    @property
    def ties(self):
        return self.sides.ties

    def snapshot(self, arrays, **text) -> dict[str, np.ndarray]:
        """All numbers to go on from here. arrays: those that are written besides, by name; text: what is no array."""
        text |= {"loops": self.sides.line is None, "cuts": [list(one) for one in self.switches.cuts],
                 "notes": list(self.switches.notes.items()), "armed": self.switches.armed.tolist(),
                 "bounds": self.switches.bound.tolist()}
        return named_arrays(**self._carried, **arrays, ties=self.ties) | {TEXT: np.array(json.dumps(text))}

    def put_back(self, saved, arrays) -> dict:
        """Go on from a snapshot. Returns its text."""
        text, switches = json.loads(str(saved[TEXT])), self.switches
        if text["loops"] and self.sides.line is not None:
            self.sides.use_generic_kernels()
        switches.cuts = [deque(one, maxlen=cuts.maxlen) for one, cuts in zip(text["cuts"], switches.cuts, strict=True)]
        switches.notes = dict(map(tuple, text["notes"]))
        switches.armed, switches.bound = np.array(text["armed"], dtype=bool), np.array(text["bounds"], dtype=float)
        restore_arrays(saved, **self._carried, **arrays)
        restore_constraints(saved, self.ties)
        if self.torques:
            self.torques.show()
        return text

    @property
    def _carried(self) -> dict:
        signals = self.sides.signals
        return {"state": self.state, "stages": self.stages, "work": self.work, "held": signals.held, "measured": signals.measured,
                "torques": self.torques.carried if self.torques else ()}


# The right-hand side at one state ---------------------------------------------------------------------------------------

def evaluated(problem: InitialValueProblem, t: float, q, v, sides: RightHandSide | None = None, integral=None) -> MotionWorkspace:
    """What is prescribed and what acts at a state, with accelerations. sides: where several states of a problem are evaluated;
    default: with the problem's own switches. integral (nv,): of pid laws; None: zero. Raises ComputationError where the scenario
    cannot be evaluated."""
    work, n, sides = problem.work(), problem.size, sides or RightHandSide(problem, problem.signals)
    y, K = state_vector(problem, v, integral), np.zeros((2, n))
    code = sides.at(t, np.array(q), y, K, 0, work)
    if code != RUNNING:
        raise failure(problem, code, t, work, sides.ties)
    integrals = slice(2 * problem.model.nv, n - 1)
    work.z[:] = np.concatenate([y[integrals], K[0, integrals]])          # which a line does not write there
    return work


# chunks -----------------------------------------------------------------------------------------------------------------

# A compiled loop over a run, called for a few steps at a time: in between, progress is reported and interrupts are handled.

SECONDS = 0.2             # of a chunk
_FIRST_CHUNK = 20         # steps


def next_count(steps: int, spent: float) -> int:
    """Steps of the next chunk, where the last one of so many took `spent` seconds."""
    return int(min(max(steps * SECONDS / max(spent, 1e-9), steps / 4 + 1), steps * 4))


def solve_in_chunks(advance: Callable, problem: InitialValueProblem, times: np.ndarray, options: Options,
                    progress: Callable[[float], None], observer: RunObserver, own, ties,
                    why: str = "") -> tuple[Record, Statistics]:
    """`solve` by a method of fixed steps whose iteration may fail. why: it may.

    advance   (state, record, work, steps) -> code: takes so many steps, until its code is another than RUNNING
    own, ties   what it carries from chunk to chunk besides; ties: LoopPlant or None
    """
    began = time.perf_counter()
    record, work, state = problem.record(times), problem.work(), begin(problem)
    carried = {"state": state, "work": work, "own": own}
    if observer.saved is not None:
        restore_arrays(observer.saved, **carried)
        restore_constraints(observer.saved, ties)
    observer.follow(record, state.count)
    code, steps = RUNNING, _FIRST_CHUNK
    while code == RUNNING:
        observer.between(float(state.clock[T_NOW]), lambda: named_arrays(**carried, ties=ties))
        chunk = time.perf_counter()
        code = advance(state, record, work, steps)
        steps = next_count(steps, time.perf_counter() - chunk)
        progress(state.clock[T_NOW] / max(times[-1], 1e-300))
    t = float(state.clock[T_NOW])
    if code == NOT_CONVERGED:
        raise early_end(f"{options.method} did not converge in the step from t = {t:.6g} s{why}", True, t)
    if code != FINISHED:
        raise failure(problem, code, t, work, ties, options)
    uncut = (f"{options.method} does not locate switches of step, sign, abs, floor, min or max of the state: it is of first "
             "order there",) if problem.signals.held.size else ()
    return record, Statistics(int(state.count[STEPS]), 0, int(state.count[EVALUATIONS]), time.perf_counter() - began,
                              loop_figures(ties), uncut)
