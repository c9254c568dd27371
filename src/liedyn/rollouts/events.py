"""Events of a rollout: their location within steps, and their actions on runs.

Generated code detects that an event happens within a step of a run, and leaves the run at the state before that step
(`codegen.batch_step`). This module advances all such runs together to the time of the event, applies its actions, and continues
them to the end of the step and of the grid.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from liedyn.arrays import Array
from liedyn.dynamics.batching.calls import thread_workspace
from liedyn.errors import LiedynWarning, Place, ScenarioError, UsageError, counted
from liedyn.immutable import Immutable
from liedyn.integrators.batch_integrator import BatchIntegrator, BatchOutputs, BatchStates, Grid, StepInputs
from liedyn.integrators.problem import InitialValueProblem
from liedyn.integrators.zero_crossings import (
    EventSigns,
    comes_to_rest,
    crossing_direction,
    find_crossings,
    is_arriving,
    is_below_rounding,
    is_expected,
    signs_after_event,
    violation,
)
from liedyn.io.scenarios.action_schema import Impact
from liedyn.io.scenarios.event_schema import late_warnings, read_events
from liedyn.io.scenarios.scenario import Event
from liedyn.io.yaml_values import text_of
from liedyn.kernels.simulation.right_hand_side import AT_EVENT, RUNNING
from liedyn.kernels.simulation.signals import MEASURED, STATE_OPERATIONS, SWITCH_OPERATIONS, Signals
from liedyn.model.model import Model
from liedyn.rollouts.inputs import RolloutInputs, scenario_key
from liedyn.simulation.event_actions import action_function
from liedyn.simulation.expression_motion import expression_motion
from liedyn.simulation.impacts import EventState, is_turned_back, where_states
from liedyn.simulation.name_binding import v_to_q_indices
from liedyn.simulation.segment_problems import EventLedger
from liedyn.simulation.signals.expression import SignalProgram, subtract_constant
from liedyn.simulation.signals.signal_compiler import SignalCompiler, SignalPurpose

# codes of runs, in addition to those of `BatchStep`
STOPPED = 40
ZENO = 41
INCONSISTENT_IMPACT = 42
_MAX_EVENTS_PER_STEP = 100              # events of one run within a step
_STENCIL_WIDTH = 0.1      # of a step: derivatives of event values are from values at half and all of it before and after, with
                         # errors of its 4th power
_MIN_DURATION_STEPS = 100      # steps: in such a run, the rounding of the time is 1e-13 of a step, the tolerance of the search
_XTOL = 1e-13                  # of a step: tolerance of the search for an event
_JUMP_FACTOR = 1e3             # times _XTOL: an event value that is further beyond zero has jumped over it
_PROJECTION_FRACTION = 16.0    # projection of a mechanism changes an event value by less than its rounding over this
_STEP_TOLERANCE = 1e-9         # of a step: times that differ by less are equal


@dataclass(frozen=True, eq=False, repr=False)
class RolloutEvents(Immutable):
    """Events that have happened, in the order of time.

    run               (k,) int, index of the run (flattened)
    t                 (k,) [s]
    name              (k,) name of the event
    q, v              (k, nq), (k, nv) state before it
    q_after, v_after  (k, nq), (k, nv) state after it

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
        events, runs = counted(len(self), "event"), counted(len(np.unique(self.run)), "run")
        return f"<RolloutEvents: {events}, {runs}>"


class Events:
    """The events of a rollout, bound to a robot.

    definitions   all events, in the order of the file
    state_events  events with an expression of the state
    directions    of these: 1 rising, -1 falling, 0 both
    timed         indices of events of known times, by the step before which they happen
    key           text of the argument
    warnings      about events after the end
    """

    def __init__(self, events: tuple[Event, ...], model: Model, dt: float, steps: int, key: str):
        self.definitions, self.key, self.model = events, key, model
        self.state_events = [event for event in events if event.when]
        self.directions, self.q_of_v = tuple(event.direction for event in self.state_events), v_to_q_indices(model)
        self.warnings = late_warnings(events, dt * steps * (1.0 + _STEP_TOLERANCE))
        self.timed: dict[int, list[int]] = {}
        for i, event in enumerate(events):
            _check_event(event, model, events)
            for s in _event_steps(event, dt, steps):
                self.timed.setdefault(s, []).append(i)

    @classmethod
    def read(cls, argument: Mapping[str, Any] | None, model: Model, dt: float, steps: int) -> Events | None:
        """Return the events of an argument, or None.

        Raises UsageError or ScenarioError for invalid events, and for those that a rollout does not support.
        """
        node = scenario_key("events", argument, "{'falls': {'when': 'z(torso)', 'value': 0.2, 'do': 'stop'}}")
        if node is None:
            return None
        return cls(read_events(node, (), dt * steps), model, dt, steps, text_of(argument, "events", ScenarioError))

    def add_event_signals(self, table: SignalCompiler) -> np.ndarray:
        """Add the signals that pass zero when events happen, and return their indices."""
        return np.array([table.add_program(self._event_program(event, table), SignalPurpose(f"event {event.name}"), event.place)
                         for event in self.state_events], dtype=np.int64)

    def _event_program(self, event: Event, table: SignalCompiler) -> SignalProgram:
        """Return the program of the event's expression minus its value."""
        when = event.when
        assert when is not None
        program = table.compile(when, SignalPurpose(f"event {event.name}", forces=True))
        words = [(word & 255, word >> 8) for word in program.code] if isinstance(program, SignalProgram) else []
        if not isinstance(program, SignalProgram) or not any(operation in STATE_OPERATIONS for operation, _ in words):
            raise ScenarioError(f"event {event.name}: the expression does not depend on the state", place=when.place,
                                found=when.text, expected="q(joint), v(joint), z(link), …, or the key at or every")
        if any(operation == MEASURED and k < self.model.nv for operation, k in words):
            raise _not_supported(event, "an expression of generalized forces")
        return subtract_constant(program, event.value)


def _not_supported(event: Event, option: str) -> UsageError:
    """Return the error for an event with an option that rollouts do not support."""
    return UsageError(f"event {event.name}: {option} is not supported in a rollout; use ld.simulate or `liedyn batch`")


def _check_event(event: Event, model: Model, events: tuple[Event, ...]) -> None:
    """Raise an error for unknown names, and for actions that change more than the state."""
    if event.touch:
        raise _not_supported(event, "touch or lift")
    for action in event.actions:
        function = action_function(action)
        if not function.in_rollouts:
            raise _not_supported(event, f"the action {type(action).__name__.lower()}")
        function.check(action, model, events)
        if isinstance(action, Impact) and action.coordinate and action.restitution == 0.0:
            raise _not_supported(event, "an impact with restitution 0, after which the joint rests,")


def _event_steps(event: Event, dt: float, steps: int) -> list[int]:
    """Return the steps before which an event of known times happens."""
    times = np.array(event.at) if event.at else np.arange(1, int(steps * dt / event.every + _STEP_TOLERANCE) + 1) * event.every \
        if event.every else np.zeros(0)
    nearest = np.round(times / dt)
    is_within_step = np.abs(times / dt - nearest) > _STEP_TOLERANCE * np.maximum(nearest, 1.0)
    if is_within_step.any():
        raise UsageError(f"event {event.name} at t = {times[np.argmax(is_within_step)]:.9g} s is not between two steps; "
                         f"expected a multiple of dt = {dt:g} s")
    return [int(k) for k in nearest if k <= steps]


def unfreeze_switches(signals: Signals) -> Signals:
    """Return signals whose abs, min, step … of the state are evaluated at each state, also within a step."""
    code = signals.code.copy()
    is_frozen = np.isin(code & 255, SWITCH_OPERATIONS)
    code[is_frozen] &= 255
    return signals._replace(code=code, switches=np.zeros(0))


def _select_runs(series: np.ndarray, run_indices: np.ndarray) -> np.ndarray:
    """Return the rows of runs `run_indices` of a series (1 or N, …)."""
    return np.asarray(series[np.minimum(run_indices, len(series) - 1)])


def _step_values(values: np.ndarray, step_inputs: StepInputs, run_indices: np.ndarray, steps: int | np.ndarray = 0) -> np.ndarray:
    """Return the values of runs `run_indices` with the step inputs of their steps `steps`."""
    run_values, series = values[run_indices], _select_runs(step_inputs.series, run_indices)
    run_values[:, step_inputs.places] = series[np.arange(len(series)), np.minimum(steps, series.shape[1] - 1)]
    return np.asarray(run_values)


class RolloutEventHandler:
    """Locates the events of a rollout within steps, and applies their actions.

    batch_states   states of all runs
    values         (N, k) values of each run, without step inputs
    stopped_at     (N,) [s] time at which `stop` has ended a run, else NaN
    ledger         last time of each event of each run
    armed, bounds  (N, state events) whether an event happens when its value reaches zero, and the rounding bound of that value:
                   see `zero_crossings`
    """

    def __init__(self, events: Events, runs: RolloutInputs, batch_states: BatchStates):
        self.events, self.runs, self.batch_states, self.values = events, runs, batch_states, runs.values()
        self.stopped_at = np.full(runs.count, np.nan)
        self.ledger = EventLedger(events.definitions, runs.count)
        self.armed = np.ones((runs.count, len(events.state_events)), dtype=bool)
        self.bounds = np.zeros((runs.count, len(events.state_events)))
        self.step, self.is_started = 0.0, False                     # length of a step [s]
        self._recorded: list[tuple[Any, ...]] = []

    @property
    def recorded_events(self) -> RolloutEvents:
        """The events that have happened, in the order of time."""
        nq, nv = self.runs.model.nq, self.runs.model.nv
        none = np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0, dtype=str), *(np.zeros((0, n)) for n in (nq, nv, nq, nv))
        columns = [np.concatenate(x) for x in zip(*self._recorded, strict=True)] if self._recorded else none
        order = np.argsort(columns[1], kind="stable")
        return RolloutEvents(*(x[order] for x in columns))

    def apply_timed_events(self, step: int, engine: BatchIntegrator, clock: np.ndarray, step_inputs: StepInputs) -> None:
        """Apply the events of this time to the runs that continue; at the start, set the signs of event values.

        `update_signs` must follow.
        """
        batch_states = self.batch_states
        run_indices = np.flatnonzero((batch_states.ended < 0) & (self.runs.last > step))
        if step == 0:
            self.step = float(clock[0])
        within = self._at(run_indices, engine, clock, step_inputs)
        event_values = within.event_values()
        if step > 0:
            reached = within.is_nearly_zero(np.arange(len(run_indices)), event_values)
        elif event_values.size:
            within.update_signs(np.arange(len(run_indices)))
            self.is_started, reached = True, within.resting_impacts(np.arange(len(run_indices)))
        else:
            reached = np.zeros(event_values.shape, dtype=bool)
        triggered = within.apply_timed_and_reached(self.events.timed.get(step, ()), reached)
        changed = (within.q != batch_states.q[run_indices]).any(axis=1) | (within.v != batch_states.v[run_indices]).any(
            axis=1) | triggered.any(axis=1)
        within.write_back(np.full(len(run_indices), step))
        self._changed = within, np.flatnonzero(changed), step, triggered, event_values

    def update_signs(self, step_inputs: StepInputs) -> None:
        """Update the signs of the runs that `apply_timed_events` has changed, with the generalized forces of the next step."""
        within, k, step, triggered, event_values = self._changed
        if len(k) and event_values.size:
            within.values = _step_values(self.values, step_inputs, within.run_indices)
            if step == 0:                                       # a value that starts at zero comes from neither side
                within.signs[~self.armed[within.run_indices] & ~triggered] = 0.0
            within.update_after_events(k, triggered[k], event_values[k])
            within.write_back(np.full(len(within.run_indices), step))

    def finish(self, step: int, engine: BatchIntegrator, clock: np.ndarray, step_inputs: StepInputs) -> None:
        """Apply the events at the end of runs: those of this time, and those whose values are zero to rounding."""
        run_indices = np.flatnonzero((self.batch_states.ended < 0) & (self.runs.last == step))
        within = self._at(run_indices, engine, clock, step_inputs)
        within.apply_timed_and_reached(self.events.timed.get(step, ()),
                                       within.is_nearly_zero(np.arange(len(run_indices)), within.event_values()))
        within.write_back(np.full(len(run_indices), step))

    def _at(self, run_indices: np.ndarray, engine: BatchIntegrator, clock: np.ndarray, step_inputs: StepInputs) -> _PartialSteps:
        """Return runs at the beginning of a step."""
        return _PartialSteps(self, engine, run_indices, np.tile(clock, (len(run_indices), 1)),
                             _step_values(self.values, step_inputs, run_indices))

    def continue_runs(self, engine: BatchIntegrator, grid: Grid, outputs: BatchOutputs, step_inputs: StepInputs) -> None:
        """Advance the runs that an event has left before a step to the end of the grid."""
        batch_states = self.batch_states
        while True:
            run_indices = np.flatnonzero((batch_states.ended >= 0) & (batch_states.codes == AT_EVENT))
            if not len(run_indices):
                return
            steps = batch_states.ended[run_indices]
            run_values = _step_values(self.values, step_inputs, run_indices, steps)
            batch_states.ended[run_indices], batch_states.codes[run_indices] = -1, RUNNING
            within = _PartialSteps(self, engine, run_indices, grid.clocks[steps], run_values)
            within.complete_step()
            within.write_back(steps)
            on = batch_states.ended[run_indices] < 0
            run_indices, first_step = run_indices[on], steps[on] + 1
            batch_states.first_step[run_indices] = first_step
            some = BatchStates(*(x[run_indices] for x in vars(batch_states).values()))
            out = BatchOutputs(*(x[run_indices] for x in vars(outputs).values()))
            inputs = StepInputs(step_inputs.places, _select_runs(step_inputs.series, run_indices))
            some_engine = BatchIntegrator(engine.problem, engine.batch_step, engine.varying[run_indices])
            some_engine.advance(some, grid, out, self.values[run_indices], inputs)
            for x, y in ((batch_states, some), (outputs, out)):
                for name in vars(y):
                    getattr(x, name)[run_indices] = getattr(y, name)
            batch_states.first_step[run_indices] = 0

    def warnings(self) -> list[LiedynWarning]:
        """Return warnings about events whose value may pass zero twice within a step, which is not detected."""
        suspected = self.batch_states.auxiliary[:, 1 + 3 * len(self.events.state_events):]
        out = []
        for column, event in enumerate(self.events.state_events):
            runs = np.flatnonzero(suspected[:, column] > 0.0)
            if len(runs):
                out.append(LiedynWarning("event-within-step",
                                         f"event {event.name}: its expression may cross its value twice within a step, which is "
                                         f"not detected (run {runs[0]} before t = {suspected[runs[0], column]:.6g} s, "
                                         f"{len(runs)} runs in all): use a shorter dt, or ld.simulate"))
        return out

    def record_event(self, event: int, run_indices: np.ndarray, t: np.ndarray, state_before: tuple[np.ndarray, np.ndarray],
                     state_after: tuple[np.ndarray, np.ndarray]) -> None:
        """Store an event of the runs `run_indices` with the states before and after it."""
        name = np.full(len(run_indices), self.events.definitions[event].name)
        self._recorded.append((run_indices, t, name, *state_before, *state_after))

    def is_enabled(self, event: int, run_indices: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Return whether an event may happen now (n,), and record it in the ledger if so."""
        enabled = self.ledger.may_happen(self.events.definitions[event], t, run_indices)
        self.ledger.record(self.events.definitions[event], t[enabled], run_indices[enabled])
        return np.asarray(enabled)


class _PartialSteps:
    """State of the runs `run_indices` within a step of clocks (n, 4): q, v, auxiliary, and the time t (n,) of each.

    Arguments k are indices among these runs. Event values are those of the state events, (n, events).
    """

    def __init__(self, handler: RolloutEventHandler, engine: BatchIntegrator, run_indices: np.ndarray, clocks: np.ndarray,
                 values: np.ndarray):
        batch_states = handler.batch_states
        self.handler, self.events, self.runs, self.engine = handler, handler.events, handler.runs, engine
        self.run_indices, self.values, self.varying = run_indices, values, engine.varying[run_indices]
        self.q, self.v, self.auxiliary = (x[run_indices].copy() for x in (batch_states.q, batch_states.v, batch_states.auxiliary))
        self.t, self.end, self.length = clocks[:, 1].copy(), clocks[:, 1] + clocks[:, 0], np.full(len(run_indices), handler.step)
        self.codes = np.full(len(run_indices), RUNNING)
        # tolerance within which event values are zero, while events happen at one time
        self.zero_tolerance = np.zeros((len(run_indices), len(self.events.state_events)))
        self.has_acted = np.zeros(len(run_indices), dtype=bool)          # whether an event changed the state at this time
        self.directions = np.array(self.events.directions)
        self.event_indices = np.array([self.events.definitions.index(event) for event in self.events.state_events],
                                      dtype=np.int64)
        self.impacts = np.array([event.has_impact for event in self.events.state_events], dtype=bool)

    @property
    def signs(self) -> np.ndarray:
        """(n, events) signs of the event values, a view."""
        return np.asarray(self.auxiliary[:, 1:1 + len(self.directions)])

    def _event_signs(self, k: np.ndarray) -> EventSigns:
        """Return the signs of the event values of runs k."""
        run_indices = self.run_indices[k]
        return EventSigns(self.signs[k], self.handler.armed[run_indices], self.handler.bounds[run_indices])

    def write_back(self, steps: np.ndarray) -> None:
        """Write states and codes to the states of all runs."""
        batch_states, run_indices, ended = self.handler.batch_states, self.run_indices, self.codes != RUNNING
        self.q[ended], self.v[ended], self.auxiliary[ended, :1 + len(self.directions)] = self.runs.model.neutral(), 0.0, 0.0
        self.auxiliary[:, 1 + len(self.directions):1 + 3 * len(self.directions)] = np.nan # values before the events
        for x, y in ((batch_states.q, self.q), (batch_states.v, self.v), (batch_states.auxiliary, self.auxiliary)):
            x[run_indices] = y
        batch_states.ended[run_indices[ended]], batch_states.codes[run_indices[ended]] = steps[ended], self.codes[ended]

    def complete_step(self) -> None:
        """Advance the runs to the end of the step, with the events in it."""
        todo = np.arange(len(self.run_indices))
        for _ in range(_MAX_EVENTS_PER_STEP):
            if not len(todo):
                return
            q, v, auxiliary, event_values, codes = self.state_after(todo, self.end[todo] - self.t[todo])
            hit = (codes == RUNNING) & self._has_crossed(todo, event_values).any(axis=1)
            calm = todo[~hit]
            self._set(calm, self.end[calm], q[~hit], v[~hit], auxiliary[~hit], event_values[~hit])
            self.codes[calm] = codes[~hit]
            todo = todo[hit]
            if len(todo):
                self._advance_to_event(todo)
                todo = todo[self.codes[todo] == RUNNING]
        self.codes[todo] = ZENO

    def state_after(self, k: np.ndarray, length: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return q, v, auxiliary, event values and codes of the runs k after a time `length`, without events."""
        (n, e), line = self.signs[k].shape, self.engine.batch_step.partial_step()
        q, v, auxiliary = (x[k].copy() for x in (self.q, self.v, self.auxiliary))
        t, event_values, codes = self.t[k], np.zeros((n, e)), np.zeros((n, 1))
        clocks = np.stack([length, t, t + 0.5 * length, t + length], axis=1)
        arrays = clocks, np.zeros((1, 1)), self.values[k].copy(), q, v, auxiliary, event_values, codes, self.varying[k]
        assert line is not None, "runs with events have generated code"
        line.run([x if x.size else np.zeros(1) for x in arrays], thread_workspace(line.workspace_size), 0, n)
        return q, v, auxiliary, event_values, codes[:, 0].astype(np.int64)

    def _has_crossed(self, k: np.ndarray, event_values: np.ndarray) -> np.ndarray:
        """Return (n, events): whether a value has reached zero in the expected direction.

        The value of a disarmed event must be beyond zero by more than rounding.
        """
        return self._distance_to_event(k, event_values) < 0.0

    def _distance_to_event(self, k: np.ndarray, event_values: np.ndarray) -> np.ndarray:
        """Return the distance of each value from its event (n, events): negative beyond, infinite if it is not expected."""
        sign, armed, bound = self._event_signs(k)
        return np.where(is_expected(sign, self.directions), -violation(sign, event_values, armed, bound), np.inf)

    def _set(self, k: np.ndarray, t: np.ndarray, q: np.ndarray, v: np.ndarray, auxiliary: np.ndarray,
             event_values: np.ndarray) -> None:
        """Set the state of the runs k at the time t, and update signs and armed events."""
        self.t[k], self.q[k], self.v[k], self.auxiliary[k, 0] = t, q, v, auxiliary[:, 0]
        signs, run_indices = self.signs[k], self.run_indices[k]
        self.handler.armed[run_indices] |= np.abs(event_values) > self.handler.bounds[run_indices]
        stays = np.isnan(signs) | (event_values == 0.0) | ~self.handler.armed[run_indices]
        self.signs[k] = np.where(stays, signs, np.sign(event_values))

    def _advance_to_event(self, k: np.ndarray) -> None:
        """Advance the runs k to their first event, and apply it."""
        length = self.end[k] - self.t[k]

        def distance(fraction: np.ndarray) -> np.ndarray:          # to the first event, negative beyond it
            return np.asarray(self._distance_to_event(k, self.state_after(k, fraction * length)[3]).min(axis=1))
        fraction = find_crossings(distance, self._rearming_fraction(k, length), _XTOL)
        q, v, auxiliary, event_values, codes = self.state_after(k, fraction * length)
        passed, came = self._has_crossed(k, event_values), self.signs[k].copy()
        self._set(k, self.t[k] + fraction * length, q, v, auxiliary, event_values)
        self.has_acted[k] = False
        self.signs[k] = came
        self.codes[k] = codes
        passed |= self.is_nearly_zero(k, event_values)                      # simultaneous to rounding: in the order of the file
        self.update_after_events(k, self.apply_events(k, passed), event_values)

    def is_nearly_zero(self, k: np.ndarray, event_values: np.ndarray) -> np.ndarray:
        """Return (n, events): whether a value is zero to rounding and moves in the expected direction."""
        signs = self._event_signs(k)
        near = (np.abs(event_values) <= signs.bound) & is_expected(signs.sign, self.directions)
        if not near.any():
            return np.asarray(near)
        _, rate, curvature = self._value_derivatives(k)
        return np.asarray(near & is_arriving(signs, rate, curvature, self.length[k][:, None]))

    def _rearming_fraction(self, k: np.ndarray, length: np.ndarray) -> np.ndarray:
        """Return (n,) fractions of the step at which the values of disarmed events exceed their rounding, as in a short flight.

        The events are armed from there. 0: there is none, or another event happens before.
        """
        fractions, fraction, run_indices = np.zeros(len(k)), 1.0, self.run_indices[k]
        while fraction > _XTOL:
            fraction *= 0.5
            disarmed = ~self.handler.armed[run_indices] & (np.abs(self.signs[k]) == 1.0) & (fractions == 0.0)[:, None]
            if not disarmed.any():
                break
            event_values = self.state_after(k, fraction * length)[3]
            risen = disarmed & (self.signs[k] * event_values > self.handler.bounds[run_indices])
            calm = risen.any(axis=1) & (self._distance_to_event(k, event_values).min(axis=1) > 0.0)
            self.handler.armed[run_indices] |= risen & calm[:, None]
            fractions = np.where(calm, fraction, fractions)
        return fractions

    def update_signs(self, k: np.ndarray, triggered: np.ndarray | None = None, values_before: np.ndarray | float = 0.0) -> None:
        """Update the signs, armed events and bounds of the runs k, and set ZENO for impacts that come to rest.

        triggered      (n, events): events that have just happened
        values_before  event values before their actions
        """
        run_indices, handler = self.run_indices[k], self.handler
        signs_before = EventSigns(self.signs[k].copy(), handler.armed[run_indices], self._overshoot(run_indices))
        triggered = np.zeros(signs_before.sign.shape, dtype=bool) if triggered is None else triggered
        value, rate, curvature = self._value_derivatives(k)
        rounding = self._rounding(k)
        bounds = np.maximum(rounding, signs_before.bound)
        tolerance = np.maximum(bounds + _JUMP_FACTOR * _XTOL * self.length[k][:, None] * np.abs(rate), self.zero_tolerance[k])
        triggered = triggered & (np.abs(value - values_before) <= bounds) & (np.abs(value) <= tolerance)  # did not jump
        (signs, armed, bounds), _ = signs_after_event(signs_before, value, rate, curvature, rounding, triggered,
                                                      not handler.is_started)
        signs = np.where((signs == 0.0) & self.impacts, -self.directions, signs)          # at rest at a stop: on its free side
        over = np.stack([handler.ledger.is_over(event, run_indices) for event in self.events.state_events], axis=1)
        handler.armed[run_indices], handler.bounds[run_indices] = armed, bounds
        self.signs[k] = np.where(over, np.nan, signs)
        duration = max(self.runs.steps, _MIN_DURATION_STEPS) * handler.step
        came, turned = signs_before.sign, signs_before.sign * rate >= 0.0
        rests = comes_to_rest(turned, rate, curvature, bounds, duration)
        # an impact that changes its value by no more than rounding, although it continues towards zero
        small = came * (value - values_before) > bounds / _PROJECTION_FRACTION
        small &= ~(turned | is_below_rounding(rate, curvature, bounds))
        ends = triggered & self.impacts & (rests | small)
        stuck = ends.any(axis=1) & (self.codes[k] == RUNNING)
        self.codes[k[stuck]] = ZENO

    def resting_impacts(self, k: np.ndarray) -> np.ndarray:
        """Return (n, events): impacts that happen at once, because their values are zero and move in their direction.

        This is possible at the start and after `set`, where the motion did not lead to zero.
        """
        result: np.ndarray = ~self.handler.armed[self.run_indices[k]] & self.impacts & (self.directions == self.signs[k]) & (
            self.directions != 0)
        return result

    def update_after_events(self, k: np.ndarray, triggered: np.ndarray, values_before: np.ndarray) -> None:
        """Update the signs after events, and apply the impacts of bodies that the events moved onto their stops."""
        self.update_signs(k, triggered, values_before)
        pressed = self.resting_impacts(k) & ~triggered & (self.codes[k] == RUNNING)[:, None]
        rows = np.flatnonzero(pressed.any(axis=1))
        if len(rows):
            event_values = self.state_after(k[rows], 0.0 * self.length[k[rows]])[3]
            self.update_signs(k[rows], self.apply_events(k[rows], pressed[rows]), event_values)

    def event_values(self) -> np.ndarray:
        """Return the present event values (n, events)."""
        return self.state_after(np.arange(len(self.run_indices)),
                                0.0 * self.length)[3] if self.signs.size else np.zeros(self.signs.shape)

    def _overshoot(self, run_indices: np.ndarray) -> np.ndarray:
        """Return (n, events): the distance beyond zero at the event, for values that have not exceeded their rounding since."""
        return np.where(self.handler.armed[run_indices], 0.0, self.handler.bounds[run_indices])

    def _value_derivatives(self, k: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return event values (n, events) and their first two time derivatives, by five-point formulas along the motion."""
        h = 0.5 * _STENCIL_WIDTH * self.length[k]
        far_back, back, centre, ahead, far_ahead = (self.state_after(k, n * h)[3] for n in (-2, -1, 0, 1, 2))
        h = h[:, None]
        rate = (far_back - far_ahead + 8.0 * (ahead - back)) / (12.0 * h)
        return centre, rate, (16.0 * (ahead + back) - far_ahead - far_back - 30.0 * centre) / (12.0 * h * h)

    def _rounding(self, k: np.ndarray) -> np.ndarray:
        """Return (events,) rounding bounds of the event values, at the run with the maximum coordinate."""
        problem, worst = self.engine.problem, k[np.argmax(np.abs(self.q[k]).max(axis=1))]
        motions = [expression_motion(problem, int(n), float(self.t[worst]), self.q[worst], self.v[worst])
                   for n in problem.schedule.watch]
        return np.array([motion.bound for motion in motions])

    def is_turned_back(self, event: Event, k: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return (n,) whether the value of the event is moving back already.

        Then an impact that leads to the state q, v does nothing.
        """
        column = self.events.state_events.index(event)
        _, rate, curvature = (x[:, column] for x in self._value_derivatives(k))
        state_before, (self.q[k], self.v[k]) = (self.q[k], self.v[k]), (q, v)
        rate_after = self._value_derivatives(k)[1][:, column]
        self.q[k], self.v[k] = state_before
        direction = crossing_direction(self.signs[k, column], event.direction)
        return np.asarray(is_turned_back(direction, rate, curvature, self.handler.bounds[self.run_indices[k], column],
                                         rate_after))

    def pending_impacts(self, k: np.ndarray) -> np.ndarray:
        """Return (n, events): impacts whose values are zero to rounding and move beyond it."""
        if not self.impacts.any() or not len(k):
            return np.zeros((len(k), len(self.impacts)), dtype=bool)
        value, rate, curvature = self._value_derivatives(k)
        bounds = self._rounding(k) + 4.0 * _XTOL * self.length[k][:, None] * np.abs(rate)          # and the search tolerance
        bounds = self.zero_tolerance[k] = np.maximum(np.maximum(bounds, self._overshoot(self.run_indices[k])),
                                                     self.zero_tolerance[k])
        direction = crossing_direction(self.signs[k], self.directions)
        result: np.ndarray = self.impacts & (np.abs(value) <= bounds) & (direction *
                                                                         rate > 0.0) & ~is_below_rounding(rate, curvature, bounds)
        return result

    # actions ---------------------------------------------------------------------------------------------------------
    def apply_events(self, k: np.ndarray, happens: np.ndarray) -> np.ndarray:
        """Apply the events `happens` (n, events) in the order of the file, and the impacts that they cause.

        These are impacts of bodies that the events drive into their stops. Returns all events that have happened (n, events).
        """
        waiting, applied, several = happens.copy(), happens.copy(), np.count_nonzero(self.impacts) > 1
        self.zero_tolerance[k] = 0.0
        for _ in range(_MAX_EVENTS_PER_STEP):
            if not waiting.any():
                return applied
            for column, i in enumerate(self.event_indices):
                rows = np.flatnonzero(waiting[:, column])
                if not len(rows):
                    continue
                run_rows, waiting[rows, column] = k[rows], False
                enabled = self.handler.is_enabled(i, self.run_indices[run_rows], self.t[run_rows])
                if not several:
                    self.apply_event(i, run_rows[enabled])
                    continue
                pending = self.apply_and_find_impacts(i, run_rows, enabled)
                pending[:, column] = False
                waiting[rows] |= pending
                applied[rows] |= pending
        self.codes[k[waiting.any(axis=1)]] = ZENO
        return applied

    def apply_timed_and_reached(self, timed: Iterable[int], reached: np.ndarray) -> np.ndarray:
        """Apply events of known times, and those that runs have reached (n, events), in the order of the file.

        Returns the same as `apply_events`.
        """
        k, waiting, applied = np.arange(len(self.run_indices)), reached.copy(), np.zeros(reached.shape, dtype=bool)
        for i in timed:
            earlier = waiting & (self.event_indices < i)
            applied |= self.apply_events(k, earlier)
            waiting = waiting & ~earlier | self.apply_and_find_impacts(i, k, self.handler.is_enabled(i, self.run_indices, self.t))
        return np.asarray(applied | self.apply_events(k, waiting))

    def apply_and_find_impacts(self, i: int, k: np.ndarray, enabled: np.ndarray) -> np.ndarray:
        """Apply event i to the runs k where it is enabled, and return the impacts that it causes (n, events)."""
        pending = self.pending_impacts(k)
        self.apply_event(i, k[enabled])
        return np.asarray(self.pending_impacts(k) & ~pending)

    def apply_event(self, i: int, k: np.ndarray) -> None:
        """Apply the actions of event i to the runs k."""
        k = k[self.codes[k] == RUNNING]
        if not len(k):
            return
        run_indices, event = self.run_indices[k], self.events.definitions[i]
        context = _RolloutContext(event, self.t[k], self.engine.problem, self, k)
        with self.runs.with_run_robots(run_indices) as model:
            before = after = EventState(model, self.q[k], self.v[k], np.zeros((len(k), model.nv)))
            for action in event.actions:
                after = action_function(action).apply(context, after, action)
                self.q[k], self.v[k], self.has_acted[k] = after.q, after.v, True
        contradicted, stopped = (np.broadcast_to(x, len(k)) for x in (after.contradicted, after.stopped))
        self.codes[k[stopped]], self.handler.stopped_at[run_indices[stopped]] = STOPPED, self.t[k[stopped]]
        self.codes[k[contradicted]] = INCONSISTENT_IMPACT
        self.handler.record_event(i, run_indices, self.t[k], (before.q, before.v), (after.q, after.v))


@dataclass(frozen=True, eq=False)
class _RolloutContext:
    """The `EventContext` of the runs k of a rollout. Actions change the state only."""

    event: Event
    t: np.ndarray
    problem: InitialValueProblem
    steps: _PartialSteps
    k: np.ndarray
    resting_stops: tuple[Any, ...] = ()

    def complete_action(self, before: EventState, after: EventState, place: Place) -> EventState:       # noqa: ARG002
        """Return the states after the action: no coordinate comes to rest."""
        return after

    def complete_impact(self, before: EventState, after: EventState, action: Impact,       # noqa: ARG002
                      row: np.ndarray, coordinates: Sequence[int]) -> EventState:       # noqa: ARG002
        """Return `after`, or `before` for runs whose coordinate another impact has turned back already."""
        acted = self.steps.has_acted[self.k]
        if not coordinates or not self.event.when or not acted.any():
            return after
        turned = self.steps.is_turned_back(self.event, self.k[acted], after.q[acted], after.v[acted])
        does_nothing = np.zeros(len(self.k), dtype=bool)
        does_nothing[acted] = turned
        return where_states(does_nothing, before, after)
