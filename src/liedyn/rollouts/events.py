"""Events of a rollout: where they happen within steps, and what they do to runs.

A line finds that an event happens within a step of a run, and leaves the run before that step (`codegen.batch_step`). Here
these runs, all together, go to the moment of the event, change, go on to the end of the step, and catch up with the others.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from liedyn.arrays import Array
from liedyn.dynamics.batching.calls import thread_workspace
from liedyn.dynamics.constraints.constraints import constraint_jacobian
from liedyn.dynamics.constraints.rank import clear_rounding
from liedyn.errors import ScenarioError, UsageError
from liedyn.immutable import Immutable
from liedyn.integrators.batch_integrator import BatchIntegrator, BatchOutputs, BatchStates, Grid, StepInputs
from liedyn.integrators.zero_crossings import STARTS, comes_back, hidden, resolvable, sign_after, zero_at_start
from liedyn.io.scenarios.event_schema import late_notes, read_events
from liedyn.io.scenarios.scenario import EndRun, Event, Impact, RecordState, Set
from liedyn.kernels.simulation.right_hand_side import AT_EVENT, RUNNING
from liedyn.kernels.simulation.signals import ABS, FLOOR, MAX, MEASURED, MIN, OF_STATE, SIGN, STEP, Signals
from liedyn.rollouts.inputs import RolloutInputs, scenario_key
from liedyn.simulation.expression_motion import expression_motion
from liedyn.simulation.impacts import jumps, point_rows
from liedyn.simulation.name_binding import coordinates, find, unit_quaternions, write_values
from liedyn.simulation.signals.expression import SignalProgram, subtract_constant
from liedyn.simulation.signals.signal_compiler import SignalCompiler, SignalPurpose

STOPPED, AGAIN, CONTRADICTED = 40, 41, 42          # codes of runs, in addition to those of `compile_batch_step`
_MOST = 100              # events of one run within a step
_AROUND = 0.1            # of a step: readings at half and whole of it before and after give a reading's derivatives, to its 4th
                         # power
_SHORTEST = 100          # steps: the search for a moment ends at 1e-13 of a step, which is the rounding of a run of so many
_ROUNDS, _FINEST = 200, 1e-13           # of the search for a moment: at most, and the share of a step at which it ends
_CLOSE = 1e3             # of that share: what has gone further beyond zero has jumped there
_NOTICED = 16.0          # the share of the rounding of a reading that the projection of a mechanism does not move it by
_ON_STEPS = 1e-9         # of a step: times that are one


@dataclass(frozen=True, eq=False, repr=False)
class RolloutEvents(Immutable):
    """Events that have happened, in the order of time.

    run          (k,) int, among the runs (flattened)
    t            (k,) [s]
    name         (k,) of the event
    q, v         (k, nq), (k, nv) before it
    q_after, v_after   (k, nq), (k, nv)

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> low = {"low": {"when": "q(shoulder)", "do": "stop"}}
    >>> runs = ld.rollout(model, [[0.3, 0.0], [0.2, 0.0]], [0.0, 0.0], dt=1e-3, steps=1000, every=1000, events=low)
    >>> runs.events, runs.events.t.round(3)
    (<RolloutEvents: 2 events, 2 runs>, array([0.554, 0.558]))
    """

    run: Array
    t: Array
    name: Array
    q: Array
    v: Array
    q_after: Array
    v_after: Array

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        return f"<RolloutEvents: {len(self)} events, {len(np.unique(self.run))} runs>"


class Events:
    """The events of a rollout, bound to a robot.

    watched   those with a reading; directions: of these; timed: by the step before which they happen
    key       what they were read from; notes: what is doubtful, one line each
    """

    def __init__(self, events: tuple[Event, ...], model, dt: float, steps: int, key: str):
        self.all, self.key, self.model = events, key, model
        self.watched = [event for event in events if event.when]
        self.directions, self.q_of_v = tuple(event.direction for event in self.watched), coordinates(model)
        self.notes = late_notes(events, dt * steps * (1.0 + _ON_STEPS))
        self.timed: dict[int, list[int]] = {}
        for i, event in enumerate(events):
            _check(event, model)
            for s in _steps(event, dt, steps):
                self.timed.setdefault(s, []).append(i)

    @classmethod
    def read(cls, given: Mapping | None, model, dt: float, steps: int) -> Events | None:
        """UsageError, ScenarioError for what is not known, or not for rollouts."""
        node = scenario_key("events", given, "{'falls': {'when': 'z(torso)', 'value': 0.2, 'do': 'stop'}}")
        return node and cls(read_events(node, (), dt * steps), model, dt, steps, repr(given))

    def put_readings(self, table: SignalCompiler) -> np.ndarray:
        """Signals that pass 0 where events happen: their numbers."""
        return np.array([table.put(self._reading(event, table), SignalPurpose(f"event {event.name}"), event.when.place)
                         for event in self.watched], dtype=np.int64)

    def _reading(self, event: Event, table: SignalCompiler) -> SignalProgram:
        found = table.lower(event.when, SignalPurpose(f"event {event.name}", forces=True))
        words = [] if isinstance(found, float) else [(word & 255, word >> 8) for word in found.code]
        if not any(operation in OF_STATE for operation, _ in words):
            raise ScenarioError(f"event {event.name}: the expression does not depend on the state", place=event.when.place,
                                found=event.when.text, expected="q(joint), v(joint), z(link), …, or the key at or every")
        if any(operation == MEASURED and k < self.model.nv for operation, k in words):
            raise _not_supported(event, "reading joint forces")
        return subtract_constant(found, event.value)


def _not_supported(event: Event, what: str) -> UsageError:
    return UsageError(f"event {event.name}: {what} is not possible in a rollout; use ld.simulate or `liedyn batch`")


def _check(event: Event, model) -> None:
    """Names, and what changes more than the state."""
    if event.touch:
        raise _not_supported(event, "waiting for touch or lift")
    for action in event.actions:
        if not isinstance(action, Set | Impact | RecordState | EndRun):
            raise _not_supported(event, f"the action {type(action).__name__.lower()}")
        if isinstance(action, Set):
            if model.nc:
                raise ScenarioError("set is not possible for a robot with loops or couplings", place=action.place)
            _given(action, model)
        if isinstance(action, Impact):
            if action.coordinate:
                find(action.coordinate, model.v_names, "joint", action.place)
                if action.restitution == 0.0:
                    raise _not_supported(event, "an impact with restitution 0, which locks the joint,")
            else:
                find(action.link, model.link_names, "link", action.place)


def _given(action: Set, model) -> tuple[np.ndarray, np.ndarray]:
    """Positions and velocities, NaN where none is given."""
    q, v = np.full(model.nq, np.nan), np.full(model.nv, np.nan)
    unit_quaternions(q, write_values(q, action.q, model, model.q_index), model)
    write_values(v, action.v, model, model.v_index)
    return q, v


def _steps(event: Event, dt: float, steps: int) -> list[int]:
    """Steps before which an event of known times happens."""
    times = np.array(event.at) if event.at else np.arange(1, int(steps * dt / event.every + _ON_STEPS) + 1) * event.every \
        if event.every else np.zeros(0)
    numbers = np.round(times / dt)
    off = np.abs(times / dt - numbers) > _ON_STEPS * np.maximum(numbers, 1.0)
    if off.any():
        raise UsageError(f"event {event.name} at t = {times[np.argmax(off)]:.9g} s is not between two steps; "
                         f"expected a multiple of dt = {dt:g} s")
    return [int(k) for k in numbers if k <= steps]


def without_held_switches(signals: Signals) -> Signals:
    """abs, min, step … of the state as they are, also within a step."""
    code = signals.code.copy()
    held = np.isin(code & 255, (ABS, SIGN, STEP, FLOOR, MIN, MAX))
    code[held] &= 255
    return signals._replace(code=code, held=np.zeros(0))


def _rows_of(series: np.ndarray, who) -> np.ndarray:
    """Of runs `who`, of a series (1 or N, …)."""
    return series[np.minimum(who, len(series) - 1)]


def _numbers_of(values: np.ndarray, driven: StepInputs, who, steps=0) -> np.ndarray:
    """Numbers of runs `who` in their steps `steps` of what drives them."""
    own, series = values[who], _rows_of(driven.series, who)
    own[:, driven.places] = series[np.arange(len(series)), np.minimum(steps, series.shape[1] - 1)]
    return own


class RolloutEventHandler:
    """What the events of a rollout do to its runs.

    stopped_at   (N,) [s] where `stop` has ended a run, else NaN
    last         (N, events) [s] when each happened last, else -inf
    armed, bounds   (N, watched events) whether reaching zero counts, and the rounding of readings: see `zero_crossings`
    """

    def __init__(self, events: Events, runs: RolloutInputs):
        self.events, self.runs = events, runs
        self.stopped_at = np.full(runs.count, np.nan)
        self.last = np.full((runs.count, len(events.all)), -np.inf)
        self.armed = np.ones((runs.count, len(events.watched)), dtype=bool)
        self.bounds = np.zeros((runs.count, len(events.watched)))
        self.step, self.begun = 0.0, False                     # [s], whole
        self._found: list[tuple] = []

    @property
    def found(self) -> RolloutEvents:
        nq, nv = self.runs.model.nq, self.runs.model.nv
        none = np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0, dtype=str), *(np.zeros((0, n)) for n in (nq, nv, nq, nv))
        columns = [np.concatenate(x) for x in zip(*self._found, strict=True)] if self._found else none
        order = np.argsort(columns[1], kind="stable")
        return RolloutEvents(*(x[order] for x in columns))

    def happen_at(self, step: int, engine: BatchIntegrator, moving: BatchStates, clock, values, driven: StepInputs) -> None:
        """Events of this time, to the runs that go on; at the start, the side that each is on. `update_signs` must follow."""
        who = np.flatnonzero((moving.ended < 0) & (self.runs.last > step))
        if step == 0:
            self.step = float(clock[0])
        within = self._at(who, engine, moving, clock, values, driven)
        readings = within.readings()
        if step > 0:
            reached = within.almost(np.arange(len(who)), readings)
        elif readings.size:
            within.update_signs(np.arange(len(who)))
            self.begun, reached = True, within.resting_impacts(np.arange(len(who)))
        else:
            reached = np.zeros(readings.shape, dtype=bool)
        fired = within.in_order(self.events.timed.get(step, ()), reached)
        changed = (within.q != moving.q[who]).any(axis=1) | (within.v != moving.v[who]).any(axis=1) | fired.any(axis=1)
        within.write_back(moving, np.full(len(who), step))
        self._changed = within, np.flatnonzero(changed), step, fired, readings

    def update_signs(self, moving: BatchStates, values, driven: StepInputs) -> None:
        """Those of the runs that have changed in `happen_at`, with the joint forces of the next step."""
        within, k, step, fired, readings = self._changed
        if len(k) and readings.size:
            within.values = _numbers_of(values, driven, within.who)
            if step == 0:                                       # what starts at zero has come from neither side
                within.sides[~self.armed[within.who] & ~fired] = 0.0
            within.leave(k, fired[k], readings[k])
            within.write_back(moving, np.full(len(within.who), step))

    def finish(self, step: int, engine: BatchIntegrator, moving: BatchStates, clock, values, driven: StepInputs) -> None:
        """Events at the end of runs: those of this time, and those whose readings are zero but for rounding."""
        who = np.flatnonzero((moving.ended < 0) & (self.runs.last == step))
        within = self._at(who, engine, moving, clock, values, driven)
        within.in_order(self.events.timed.get(step, ()), within.almost(np.arange(len(who)), within.readings()))
        within.write_back(moving, np.full(len(who), step))

    def _at(self, who, engine: BatchIntegrator, moving: BatchStates, clock, values, driven: StepInputs) -> _PartialSteps:
        """Runs at the beginning of a step."""
        return _PartialSteps(self, engine, moving, who, np.tile(clock, (len(who), 1)), _numbers_of(values, driven, who))

    def follow(self, engine: BatchIntegrator, moving: BatchStates, grid: Grid, found: BatchOutputs, values,
               driven: StepInputs) -> None:
        """Runs that stay before a step for an event go on to the end of the grid."""
        while True:
            who = np.flatnonzero((moving.ended >= 0) & (moving.codes == AT_EVENT))
            if not len(who):
                return
            steps = moving.ended[who]
            own = _numbers_of(values, driven, who, steps)
            moving.ended[who], moving.codes[who] = -1, RUNNING
            within = _PartialSteps(self, engine, moving, who, grid.clocks[steps], own)
            within.go_on()
            within.write_back(moving, steps)
            on = moving.ended[who] < 0
            who, begins = who[on], steps[on] + 1
            some = BatchStates(*(x[who] for x in (moving.q, moving.v, moving.work)), begins,
                        *(x[who] for x in (moving.last, moving.ended, moving.codes)))
            out = BatchOutputs(*(x[who] for x in (found.q, found.v, found.more, found.work)))
            BatchIntegrator(engine.problem, engine.line, engine.varying[who]).advance(
                some, grid, out, values[who], StepInputs(driven.places, _rows_of(driven.series, who)))
            for x, y in ((moving, some), (found, out)):
                for name in vars(y):
                    getattr(x, name)[who] = getattr(y, name)
            moving.begins[who] = 0

    def notes(self, moving: BatchStates) -> list[str]:
        """Events that may be passed twice within a step, which is not found."""
        suspected = moving.work[:, 1 + 3 * len(self.events.watched):]
        out = []
        for column, event in enumerate(self.events.watched):
            runs = np.flatnonzero(suspected[:, column] > 0.0)
            if len(runs):
                out.append(f"event {event.name}: its expression may pass its value and return within a step, which is not found "
                           f"(run {runs[0]} before t = {suspected[runs[0], column]:.6g} s, {len(runs)} runs in all): use a "
                           "shorter dt, or ld.simulate")
        return out

    def note(self, event: int, who, t, before, after) -> None:
        name = np.full(len(who), self.events.all[event].name)
        self._found.append((who, t, name, *before, *after))

    def is_enabled(self, event: int, who, t) -> np.ndarray:
        """Whether an event happens that could."""
        asked, last = self.events.all[event], self.last[who, event]
        heard = (t - last >= asked.debounce) & ~(asked.once & np.isfinite(last))
        self.last[who[heard], event] = t[heard]
        return heard


class _PartialSteps:
    """Runs `who` of a rollout in the middle of a step: their states, and t, how far they have come, of clocks (n, 4)."""

    def __init__(self, handler: RolloutEventHandler, engine: BatchIntegrator, moving: BatchStates, who, clocks, values):
        self.handler, self.events, self.runs, self.engine = handler, handler.events, handler.runs, engine
        self.who, self.values, self.varying = who, values, engine.varying[who]
        self.q, self.v, self.work = (x[who].copy() for x in (moving.q, moving.v, moving.work))
        self.t, self.end, self.length = clocks[:, 1].copy(), clocks[:, 1] + clocks[:, 0], np.full(len(who), handler.step)
        self.codes = np.full(len(who), RUNNING)
        self.near = np.zeros((len(who), len(self.events.watched)))           # what counts as zero while events happen at one time
        self.directions = np.array(self.events.directions)
        self.numbers = np.array([self.events.all.index(event) for event in self.events.watched], dtype=np.int64)
        self.impacts = np.array([event.has_impact for event in self.events.watched], dtype=bool)

    @property
    def sides(self) -> np.ndarray:
        return self.work[:, 1:1 + len(self.directions)]

    def write_back(self, moving: BatchStates, steps) -> None:
        who, ended = self.who, self.codes != RUNNING
        self.q[ended], self.v[ended], self.work[ended, :1 + len(self.directions)] = self.runs.model.neutral(), 0.0, 0.0
        self.work[:, 1 + len(self.directions):1 + 3 * len(self.directions)] = np.nan # readings of another motion
        for x, y in ((moving.q, self.q), (moving.v, self.v), (moving.work, self.work)):
            x[who] = y
        moving.ended[who[ended]], moving.codes[who[ended]] = steps[ended], self.codes[ended]

    def go_on(self) -> None:
        """To the end of the step, with the events in it."""
        todo = np.arange(len(self.who))
        for _ in range(_MOST):
            if not len(todo):
                return
            q, v, work, readings, codes = self.after(todo, self.end[todo] - self.t[todo])
            hit = (codes == RUNNING) & self._passed(todo, readings).any(axis=1)
            calm = todo[~hit]
            self._set(calm, self.end[calm], q[~hit], v[~hit], work[~hit], readings[~hit])
            self.codes[calm] = codes[~hit]
            todo = todo[hit]
            if len(todo):
                self._go_to_event(todo)
                todo = todo[self.codes[todo] == RUNNING]
        self.codes[todo] = AGAIN

    def after(self, k, length) -> tuple[np.ndarray, ...]:
        """q, v, work, readings and codes of the runs k a time later, whatever happens in between."""
        (n, e), line = self.sides[k].shape, self.engine.line.partial_step()
        q, v, work = (x[k].copy() for x in (self.q, self.v, self.work))
        t, readings, codes = self.t[k], np.zeros((n, e)), np.zeros((n, 1))
        clocks = np.stack([length, t, t + 0.5 * length, t + length], axis=1)
        arrays = clocks, np.zeros((1, 1)), self.values[k].copy(), q, v, work, readings, codes, self.varying[k]
        line.run([x if x.size else np.zeros(1) for x in arrays], thread_workspace(line.workspace_size), 0, n)
        return q, v, work, readings, codes[:, 0].astype(np.int64)

    def _passed(self, k, readings) -> np.ndarray:
        """(n, events): those that have reached zero, or are beyond it by more than rounding while they are disarmed, in the
        direction that they wait for."""
        return self._left(k, readings) <= 0.0

    def _left(self, k, readings) -> np.ndarray:
        """(n, events): how far from happening; infinite where an event is not waited for."""
        sides, armed, bounds = self.sides[k], self.handler.armed[self.who[k]], self.handler.bounds[self.who[k]]
        waits = (np.abs(sides) == 1.0) & ((self.directions == 0) | (self.directions == -sides))
        return np.where(waits, sides * readings + np.where(armed, 0.0, bounds), np.inf)

    def _set(self, k, t, q, v, work, readings) -> None:
        self.t[k], self.q[k], self.v[k], self.work[k, 0] = t, q, v, work[:, 0]
        sides, who = self.sides[k], self.who[k]
        self.handler.armed[who] |= np.abs(readings) > self.handler.bounds[who]
        stays = np.isnan(sides) | (readings == 0.0) | ~self.handler.armed[who]
        self.work[k, 1:1 + len(self.directions)] = np.where(stays, sides, np.sign(readings))

    def _go_to_event(self, k) -> None:
        """To the first moment at which one is passed, and what it does."""
        length = self.end[k] - self.t[k]

        def left(share):                                       # until the first event, negative beyond it
            distance = self._left(k, self.after(k, share * length)[3]).min(axis=1)
            return np.where(distance == 0.0, -np.finfo(float).tiny, distance)
        share = find_crossings(left, self._risen(k, length))
        q, v, work, readings, codes = self.after(k, share * length)
        passed, came = self._passed(k, readings), self.sides[k].copy()
        self._set(k, self.t[k] + share * length, q, v, work, readings)
        self.work[k, 1:1 + len(self.directions)] = came
        self.codes[k] = codes
        passed |= self.almost(k, readings)                      # equal but for rounding: in the order of the file
        self.leave(k, self.in_turn(k, passed), readings)

    def almost(self, k, readings) -> np.ndarray:
        """(n, events): those whose readings are zero but for rounding, and on the way that they wait for."""
        bounds, armed = self.handler.bounds[self.who[k]], self.handler.armed[self.who[k]]
        near = (np.abs(readings) <= bounds) & np.isfinite(self._left(k, readings))
        if not near.any():
            return near
        sides, rate = self.sides[k], self._motion_of_readings(k)[1]
        return near & np.where(armed, sides * rate < 0.0, comes_back(rate, sides, bounds, self.length[k][:, None]))

    def _risen(self, k, length) -> np.ndarray:
        """(n,) shares at which disarmed events exceed their rounding, as in a short flight: they are armed from there. 0: none,
        or another event happens before."""
        found, share, who = np.zeros(len(k)), 1.0, self.who[k]
        while share > _FINEST:
            share *= 0.5
            disarmed = ~self.handler.armed[who] & (np.abs(self.sides[k]) == 1.0) & (found == 0.0)[:, None]
            if not disarmed.any():
                break
            readings = self.after(k, share * length)[3]
            risen = disarmed & (self.sides[k] * readings > self.handler.bounds[who])
            calm = risen.any(axis=1) & (self._left(k, readings).min(axis=1) > 0.0)
            self.handler.armed[who] |= risen & calm[:, None]
            found = np.where(calm, share, found)
        return found

    def update_signs(self, k, fired=None, found_at=0.0) -> None:
        """Sides from now on; fired (n, events): those that have just happened, with readings `found_at` before their actions."""
        who, came = self.who[k], self.sides[k].copy()
        fired = np.zeros(came.shape, dtype=bool) if fired is None else fired
        value, rate, curvature = self._motion_of_readings(k)
        rounding = np.maximum(self._rounding(k), self._overshoot(who))
        bounds = rounding if self.handler.begun else STARTS * rounding          # as `Timeline` does
        found = np.maximum(bounds + _CLOSE * _FINEST * self.length[k][:, None] * np.abs(rate), self.near[k])
        fired = fired & (np.abs(value - found_at) <= bounds) & (np.abs(value) <= found)          # nor jumped over zero, or since
        zero = fired | zero_at_start(value, rate, curvature, rounding, bounds)
        bounds = self.handler.bounds[who] = np.where(fired, np.maximum(bounds, 2.0 * np.abs(value)), bounds)     # as far as found
        passed = fired | (self.handler.armed[who] & (came * value <= 0.0))           # another event waits for its other side
        carried = zero & ~passed & (np.abs(came) == 1.0)
        sides = np.where(carried, came, np.nan_to_num(
            sign_after(np.where(zero, 0.0, value), rate, curvature, np.where(fired, bounds, rounding))))
        sides = np.where((sides == 0.0) & self.impacts, -self.directions, sides)          # what rests at its stop: on this side
        last = self.handler.last[who][:, self.numbers]
        over = np.array([event.once for event in self.events.watched], dtype=bool) & np.isfinite(last)
        self.handler.armed[who] = carried | ~zero
        self.work[k, 1:1 + len(self.directions)] = np.where(over, np.nan, sides)
        still = (rate * curvature >= 0.0) & hidden(rate, curvature, bounds)
        turned = (came * rate >= 0.0) | (sides == came) | still
        duration = max(self.runs.steps, _SHORTEST) * self.handler.step
        short = turned & (still | ~resolvable(rate, curvature, bounds, duration))
        # an impact that changes its own reading, by no more than rounding, although it goes on towards zero
        small = ~turned & (came * (value - found_at) > bounds / _NOTICED)
        ends = fired & self.impacts & zero & (short | small)
        stuck = ends.any(axis=1) & (self.codes[k] == RUNNING)
        self.codes[k[stuck]] = AGAIN

    def resting_impacts(self, k) -> np.ndarray:
        """(n, events): impacts whose readings are zero without having come there by the motion, as at the start and after `set`,
        and go the way that they wait for. They happen at once."""
        return ~self.handler.armed[self.who[k]] & self.impacts & (self.directions == self.sides[k]) & (self.directions != 0)

    def leave(self, k, fired, found_at) -> None:
        """`update_signs` after events, and what bodies do that these have put onto their stops."""
        self.update_signs(k, fired, found_at)
        pressed = self.resting_impacts(k) & ~fired & (self.codes[k] == RUNNING)[:, None]
        rows = np.flatnonzero(pressed.any(axis=1))
        if len(rows):
            readings = self.after(k[rows], 0.0 * self.length[k[rows]])[3]
            self.update_signs(k[rows], self.in_turn(k[rows], pressed[rows]), readings)

    def readings(self) -> np.ndarray:
        """(n, events): what events read now."""
        return self.after(np.arange(len(self.who)), 0.0 * self.length)[3] if self.sides.size else np.zeros(self.sides.shape)

    def _overshoot(self, who) -> np.ndarray:
        """(n, events): how far beyond zero those were found that have not exceeded their rounding since."""
        return np.where(self.handler.armed[who], 0.0, self.handler.bounds[who])

    def _motion_of_readings(self, k) -> tuple[np.ndarray, ...]:
        """(n, events): readings and their first two time derivatives, by five-point formulas along the flow."""
        h = 0.5 * _AROUND * self.length[k]
        far_back, back, here, ahead, far_ahead = (self.after(k, n * h)[3] for n in (-2, -1, 0, 1, 2))
        h = h[:, None]
        rate = (far_back - far_ahead + 8.0 * (ahead - back)) / (12.0 * h)
        return here, rate, (16.0 * (ahead + back) - far_ahead - far_back - 30.0 * here) / (12.0 * h * h)

    def _rounding(self, k) -> np.ndarray:
        """(events,) bounds of the rounding of readings, of the run that is farthest from zero."""
        problem, worst = self.engine.problem, k[np.argmax(np.abs(self.q[k]).max(axis=1))]
        motions = [expression_motion(problem, int(n), float(self.t[worst]), self.q[worst], self.v[worst])
                   for n in problem.schedule.watch]
        return np.array([motion.bound for motion in motions])

    def pressed_in(self, k, sign: float = 1.0) -> np.ndarray:
        """(n, events): impacts whose readings are zero but for rounding, and on their way beyond; with the sign -1: on their way
        back."""
        if not self.impacts.any() or not len(k):
            return np.zeros((len(k), len(self.impacts)), dtype=bool)
        value, rate, curvature = self._motion_of_readings(k)
        bounds = self._rounding(k) + 4.0 * _FINEST * self.length[k][:, None] * np.abs(rate)          # as far as one is found
        bounds = self.near[k] = np.maximum(np.maximum(bounds, self._overshoot(self.who[k])), self.near[k])
        way = sign * np.where(self.directions == 0, -self.sides[k], self.directions)
        return self.impacts & (np.abs(value) <= bounds) & (way * rate > 0.0) & ~hidden(rate, curvature, bounds)

    # what happens ----------------------------------------------------------------------------------------------------
    def in_turn(self, k, happens) -> np.ndarray:
        """Events (n, events) in the order of the file, and again the impacts of bodies that others drive into their stops. Those
        of bodies that others have turned back do nothing. Returns all that have happened."""
        waiting, found, several = happens.copy(), happens.copy(), np.count_nonzero(self.impacts) > 1
        acted, self.near[k] = np.zeros(len(k), dtype=bool), 0.0
        for _ in range(_MOST):
            if not waiting.any():
                return found
            for column, i in enumerate(self.numbers):
                rows = np.flatnonzero(waiting[:, column])
                if not len(rows):
                    continue
                there, waiting[rows, column] = k[rows], False
                heard = self.handler.is_enabled(i, self.who[there], self.t[there])
                if several and acted[rows].any():
                    turned = heard & acted[rows] & self.pressed_in(there, -1.0)[:, column]
                    heard &= ~turned
                    state = self.q[there[turned]], self.v[there[turned]]
                    self.handler.note(i, self.who[there[turned]], self.t[there[turned]], state, state)
                acted[rows] |= heard
                if not several:
                    self.happen(i, there[heard])
                    continue
                driven = self.drive(i, there, heard)
                driven[:, column] = False
                waiting[rows] |= driven
                found[rows] |= driven
        self.codes[k[waiting.any(axis=1)]] = AGAIN
        return found

    def in_order(self, timed, reached) -> np.ndarray:
        """Events of known times, and those that runs have reached (n, events), in the order of the file. Returns as `in_turn`."""
        k, waiting, found = np.arange(len(self.who)), reached.copy(), np.zeros(reached.shape, dtype=bool)
        for i in timed:
            before = waiting & (self.numbers < i)
            found |= self.in_turn(k, before)
            waiting = waiting & ~before | self.drive(i, k, self.handler.is_enabled(i, self.who, self.t))
        return found | self.in_turn(k, waiting)

    def drive(self, i: int, k, heard) -> np.ndarray:
        """Event i to those of the runs k that have heard it. Returns (n, events): the impacts of bodies that it drives into their
        stops."""
        before = self.pressed_in(k)
        self.happen(i, k[heard])
        return self.pressed_in(k) & ~before

    def happen(self, i: int, k) -> None:
        """Event i to the runs k."""
        k = k[self.codes[k] == RUNNING]
        if not len(k):
            return
        before = self.q[k], self.v[k]
        for action in self.events.all[i].actions:
            _DO[type(action)](self, action, k)
        self.handler.note(i, self.who[k], self.t[k], before, (self.q[k], self.v[k]))

    def _stop(self, action: EndRun, k) -> None:
        self.codes[k] = STOPPED
        self.handler.stopped_at[self.who[k]] = self.t[k]

    def _go_by(self, action: RecordState, k) -> None:
        pass

    def _put(self, action: Set, k) -> None:
        for x, values in zip((self.q, self.v), _given(action, self.runs.model), strict=True):
            x[k] = np.where(np.isnan(values), x[k], values)

    def _hit(self, action: Impact, k) -> None:
        """What is prescribed, and constraints, keep their velocities."""
        prescribed = self.engine.problem.prescribed.copy()
        with self.runs.each_robot(self.who[k]) as model:
            if action.coordinate:
                row = np.zeros((len(k), model.nv))
                row[:, model.v_names.index(action.coordinate)] = 1.0
                prescribed[model.v_names.index(action.coordinate)] = False
            else:
                row = point_rows(model.spanning_tree(), self.q[k], action.link, action.point, action.normal)
            come = (row * self.v[k]).sum(axis=1)
            kept = np.broadcast_to(np.eye(model.nv)[prescribed], (len(k), int(prescribed.sum()), model.nv))
            if model.nc:
                kept = np.concatenate([kept, clear_rounding(model, constraint_jacobian(model, self.q[k]))], axis=1)
            rows = np.concatenate([row[:, None], kept], axis=1)
            b = (rows @ self.v[k][..., None])[..., 0]
            b[:, 0] = -action.restitution * come
            found = jumps(model, self.q[k], self.v[k], rows, b)
        hits = np.full(len(k), True) if action.coordinate else come < 0.0
        self.v[k[hits]] = found.v[hits]
        self.codes[k[hits & found.contradicted]] = CONTRADICTED


_DO = {EndRun: _PartialSteps._stop, RecordState: _PartialSteps._go_by, Set: _PartialSteps._put, Impact: _PartialSteps._hit}


def find_crossings(left, begin) -> np.ndarray:
    """(n,) shares in (begin, 1] just beyond the roots of `left`, of n continuous functions that are negative at 1: inverse
    quadratic interpolation or bisection, by Chandrupatla's rule (Advances in Engineering Software 28, 1997). SciPy has it for
    arrays from 1.15 on."""
    n = len(begin)
    x1, x2 = begin.copy(), np.ones(n)
    f1, f2, t = np.maximum(left(x1), np.finfo(float).tiny), left(x2), np.full(n, 0.5)
    for _ in range(_ROUNDS):
        x = x1 + t * (x2 - x1)
        f = left(x)
        same = (f < 0.0) == (f1 < 0.0)
        x3, f3 = np.where(same, x1, x2), np.where(same, f1, f2)
        x2, f2 = np.where(same, x2, x1), np.where(same, f2, f1)
        x1, f1 = x, f
        width = np.abs(x2 - x1)
        if (width <= 2 * _FINEST).all():
            break
        with np.errstate(all="ignore"):
            least, xi, phi = _FINEST / width, (x1 - x2) / (x3 - x2), (f1 - f2) / (f3 - f2)
            t = f1 / (f2 - f1) * f3 / (f2 - f3) + (x3 - x1) / (x2 - x1) * f1 / (f3 - f1) * f2 / (f3 - f2)
        t = np.where((phi**2 < xi) & ((1.0 - phi) ** 2 < 1.0 - xi) & np.isfinite(t), t, 0.5)
        t = np.where(width > 2 * _FINEST, np.clip(t, least, 1.0 - least), 0.0)       # found: it waits for the others
    return np.where(f1 < 0.0, x1, x2)
