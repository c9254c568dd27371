"""A run with phases and events: stretches of smooth motion, and what happens between them.

A stretch ends at a time that is known, where the integrator finds an event, or at the end of the run. What an event does is
computed in the order of its actions: another phase, joints that lock, bodies that attach make another problem; velocities jump
by impulses (`jumps`). The state before and the state after are two rows of the result with the same time.
"""
from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

import numpy as np

from liedyn.codegen.signals import read_signal
from liedyn.dynamics.kinematics import energy, jacobian, link_poses
from liedyn.dynamics.loops.constraints import constraint_jacobian, constraint_residual
from liedyn.dynamics.mass import mass_matrix
from liedyn.errors import ComputationError, Place, ScenarioError
from liedyn.integrators.problem import LoopFigures, Options, Problem, Start, Statistics, Stretch
from liedyn.integrators.solve import solve_stretch
from liedyn.io.events import Attach, Detach, Event, Go, Impact, Lock, Note, Set, Stop
from liedyn.io.scenario import PHASE_START, Constant, Prescribe, Rule, Scenario
from liedyn.kernels.simulation.signals import POSITION, TORQUE, VELOCITY
from liedyn.model.build import build
from liedyn.model.doubts import not_positive
from liedyn.model.rigid_body import combined
from liedyn.model.spatial import full
from liedyn.simulate.hard_stops import HardStops
from liedyn.simulate.joint_values import write_values
from liedyn.simulate.jumped_events import jumped, reading_forces, sides
from liedyn.simulate.jumps import REST_AFTER, Jump, comes_at_once, jump
from liedyn.simulate.names import find, matching, phase_rules, unknown
from liedyn.simulate.parts import opened
from liedyn.simulate.prescribed_poses import held_by, pose_gap, prescribed_at, velocity_gap
from liedyn.simulate.rows import Rows
from liedyn.simulate.sampled_controller import SampledController
from liedyn.simulate.schedule import compile_schedule, coordinates
from liedyn.simulate.signals.signal_table import SAME_TIME
from liedyn.simulate.stops import Stop as LimitStop
from liedyn.simulate.stops import guards_of, stops_of

_CLOSED = 1e-6           # rad | m: what may be missing where a loop closes
_AGREE = 1e-6            # relative: a prescribed motion that begins where the joint is; people round
_MANY, _AT_ONCE = 200, 1e-9      # so many events within this share of the run never end


@dataclass(frozen=True, eq=False)
class Occurrence:
    """An event that happened.

    t         [s]
    name      of the event
    phase     after it; "" without phases
    dv        (nv,) jump of the velocity
    impulse   (nv,) of joints, along the coordinates [N m s | N s]
    lost      [J] where joints lock, bodies attach or hit: kinetic energy that is gone, 1/2 dv^T M dv where nothing rebounds
    change    of the energy, kinetic and potential [J]
    """

    t: float
    name: str
    phase: str
    dv: np.ndarray
    impulse: np.ndarray
    lost: float
    change: float


@dataclass(frozen=True)
class _Mode:
    """What decides which problem is solved."""

    phase: str | None
    locked: tuple[str, ...] = ()
    attached: tuple[Attach, ...] = ()
    resting: tuple[LimitStop, ...] = ()


@dataclass(frozen=True, eq=False)
class _Standing:
    """Where the present stretch began; silent: without a row of its own there."""

    start: Start
    silent: bool


class Timeline:
    """Of one run. first: the problem of the scenario as it begins, which the first stretch takes."""

    def __init__(self, scenario: Scenario, model, first: Problem):
        self.scenario, self.model = scenario, model
        self.phases = {phase.name: phase for phase in scenario.phases}
        self.mode = _Mode(scenario.phases[0].name if scenario.phases else None)
        self._stops = stops_of(scenario, model)
        self._hard = HardStops(self._stops, scenario.duration, scenario.limits.place if scenario.limits else Place())
        self._known = {self.mode: (first.model, first)}
        for phase in scenario.phases:
            opened(model, phase)
        self._contacts = first.contacts
        self.watched, self._of_forces = [event for event in scenario.events if event.when], reading_forces(first)
        self.controller = SampledController(scenario.sampling, model) if scenario.sampling else None
        for event in scenario.events:
            self._check_names(event)
        self.modes: list[_Mode] = []                           # of the stretches
        self.totals = Statistics(notes=())
        self._standing: _Standing | None = None
        self._recent: deque[float] = deque(maxlen=_MANY)       # ends of stretches
        self.occurrences: list[Occurrence] = []
        self.notes: dict[str, str] = {}
        self._last: dict[str, float] = {}                      # when each event happened last
        self._phase_began = 0.0
        self._short: dict[str, int] = {}                       # impacts of it in a row that came at once
        self._came: dict[str, float] = {}                      # the sign of the velocity at its first impact
        self._done: set[str] = set()
        self.stopped = False

    def run(self, times: np.ndarray, options: Options, progress: Callable[[float], None], rows: Rows) -> Statistics:
        """Hands its stretches to `rows`, and fills `occurrences`."""
        _, problem = self._known[self.mode]
        duration, timed = float(times[-1]), _timed(self.scenario.events, float(times[-1]))
        late = [event.name for event in self.scenario.events if event.at and event.at[-1] > duration]
        if late:
            self.notes["late"] = f"the run ends before the events {', '.join(late)}"
        slack, recent = SAME_TIME * duration, self._recent
        if self._standing is None:
            now, silent = replace(self._meet_limits(Start(0.0, problem.q, problem.v)), work=0.0), False
        else:                                                  # in the middle of a stretch
            now, silent = self._standing.start, self._standing.silent
            timed = [(t, event) for t, event in timed if t > now.t + slack]
        while not self.stopped:
            due = [event for t, event in timed if t <= now.t + slack]
            if due:
                timed, known = [(t, event) for t, event in timed if t > now.t + slack], len(self.occurrences)
                now = self._happen(now, due)
                silent = bool(self.modes) and (silent or not now.fired) and len(self.occurrences) == known
                now = now if self.modes else replace(now, work=0.0)          # the motion begins with what it makes
                continue
            end = min([t for t, _ in timed], default=duration)
            if now.t >= duration - slack:
                break
            end = end if end < duration - slack else duration
            inside = times[(times > now.t + slack) & (times < end - slack)]
            asked = np.concatenate([[] if silent else [now.t], inside, [end]])
            self._standing = _Standing(now, silent)
            model, problem = self._known[self.mode]
            stretch = self._stretch(now, asked, options, rows, lambda share, end=end: progress(share * end / duration))
            self.totals = _sum(self.totals, self._by_all_rows(model, stretch.statistics))
            now = stretch.end
            recent.append(now.t)
            if len(recent) == _MANY and now.t - recent[0] <= _AT_ONCE * duration:
                raise ComputationError(f"events happen again and again at t = {now.t:.9g} s, the last one is "
                                       f"{self.occurrences[-1].name if self.occurrences else '?'} (give it a debounce, or an "
                                       "action after which the motion goes on)")
            known = len(self.occurrences)
            if now.fired:
                now = self._meet_limits(now, problem)
                now = self._happen(now, [self.watched[k] for k in now.fired])
            silent = bool(stretch.end.fired) and len(self.occurrences) == known          # nothing has happened: no second row
        if self.stopped or not self.modes:
            self._stretch(replace(now, fired=()), np.array([now.t]), options, rows)          # the state after the last event
        return self.totals

    def _stretch(self, now: Start, times, options: Options, rows: Rows, progress=lambda share: None) -> Stretch:
        model, problem = self._known[self.mode]
        self.modes.append(self.mode)
        rows.begin(model, problem)
        stretch = solve_stretch(problem, now, times, options, progress, self.controller, rows)
        rows.end(stretch.record)
        return stretch

    def so_far(self, cut: Statistics) -> Statistics:
        """What it took, with a stretch that was cut."""
        return _sum(self.totals, cut)

    def _by_all_rows(self, model, statistics: Statistics) -> Statistics:
        """The row that they name is one of all constraints."""
        loops = statistics.loops
        if loops is not None and loops.singular_row >= 0:
            row = self.model.row_names.index(model.row_names[loops.singular_row])
            statistics = replace(statistics, loops=replace(loops, singular_row=row))
        return statistics

    # checkpoints --------------------------------------------------------------------------------------------------------
    def about(self) -> dict:
        """All that the rest of the run depends on but the numbers of its stretch, as plain values."""
        start = self._standing.start
        return {"timeline": {
            "modes": [self._plain(mode) for mode in self.modes], "silent": self._standing.silent, "recent": list(self._recent),
            "start": {"t": start.t, "q": start.q.tolist(), "v": start.v.tolist(), "work": float(start.work),
                      "fired": list(start.fired), "step": float(start.step)},
            "occurrences": [asdict(one) | {"dv": one.dv.tolist(), "impulse": one.impulse.tolist()} for one in self.occurrences],
            "totals": asdict(self.totals), "phase_began": self._phase_began, "stops": self._hard.about(),
            "controller": self.controller and self.controller.about(),
            "notes": self.notes, "last": self._last, "short": self._short, "came": self._came,
            "done": sorted(self._done)}}

    def go_on(self, about: dict) -> list[tuple[object, Problem]]:
        """From what `about` said. Returns model and problem of each stretch so far."""
        saved = about["timeline"]
        stages, start, loops = [], saved["start"], saved["totals"]["loops"]
        self._last, self._phase_began = saved["last"], saved["phase_began"]
        for plain in saved["modes"]:
            self._enter(self._mode(plain))
            stages.append(self._known[self.mode])
            self.modes.append(self.mode)
        self.modes.pop()                                       # the last one begins again
        self._standing = _Standing(Start(**start | {"q": np.array(start["q"]), "v": np.array(start["v"]),
                                                    "fired": tuple(start["fired"])}), saved["silent"])
        self._recent.extend(saved["recent"])
        self.occurrences += [Occurrence(**one | {"dv": np.array(one["dv"]), "impulse": np.array(one["impulse"])})
                             for one in saved["occurrences"]]
        self.totals = Statistics(**saved["totals"] | {"loops": loops and LoopFigures(**loops),
                                                      "notes": tuple(saved["totals"]["notes"])})
        self.notes, self._short = saved["notes"], saved["short"]
        self._hard.go_on(saved["stops"])
        if self.controller:
            self.controller.go_on(saved["controller"])
        self._came, self._done = saved["came"], set(saved["done"])
        return stages

    def _bodies(self) -> list[Attach]:
        return [action for event in self.scenario.events for action in event.actions if isinstance(action, Attach)]

    def _plain(self, mode: _Mode) -> list:
        return [mode.phase, list(mode.locked), [self._bodies().index(one) for one in mode.attached],
                [self._stops.index(one) for one in mode.resting]]

    def _mode(self, plain: list) -> _Mode:
        phase, locked, attached, resting = plain
        return _Mode(phase, tuple(locked), tuple(self._bodies()[k] for k in attached), tuple(self._stops[k] for k in resting))

    # what an event does -------------------------------------------------------------------------------------------------
    def _happen(self, now: Start, events: list[Event]) -> Start:
        """These, and those whose forces jump over their value by what others do."""
        waiting, first = deque(events), len(self.occurrences)
        while waiting and not self.stopped:
            event = waiting.popleft()
            if not self._is_heard(event, now.t):
                continue
            before = self._sides(now)
            now = self._act(now, event)
            passed = jumped(before, self._sides(now), self._of_forces, self._known[self.mode][1].directions)
            waiting.extend(one for one in (self.watched[k] for k in passed) if one is not event and one not in waiting)
            if len(self.occurrences) - first > _MANY:
                raise ComputationError(f"events happen again and again at t = {now.t:.9g} s, the last one is {event.name} "
                                       "(forces jump to and fro over their values)")
        return now

    def _sides(self, now: Start) -> np.ndarray:
        return sides(self._known[self.mode][1], now.t, now.q, now.v, self._of_forces, self.controller)

    def _is_heard(self, event: Event, t: float) -> bool:
        if event.name in self._done or (event.phases and self.mode.phase not in event.phases):
            return False
        return not (event.debounce and t - self._last.get(event.name, -math.inf) < event.debounce)

    def _act(self, now: Start, event: Event) -> Start:
        before = moment = self._moment(now)
        since = now.t - self._last.get(event.name, -math.inf)
        self._last[event.name] = now.t
        rested, self.mode = self.mode.resting, replace(self.mode, resting=())
        self._enter(self.mode)
        for action in event.actions:
            try:
                moment = _DO[type(action)](self, moment, action, now.t, event)
            except ComputationError as problem_found:
                raise ComputationError(f"event {event.name} at t = {now.t:.9g} s: {problem_found}") from None
        if event.name in self._known[self.mode][1].clocks:
            phase = self.phases.get(self.mode.phase)
            impulsive = phase is not None and phase.impulsive
            moment = self._begin_motions(moment, now.t, impulsive, f"event {event.name}", event.place)
        moment = self._settled(moment, now.t, rested)
        soon = any(comes_at_once(now.t, since, before.v[k], before.q[i]) for k, i in self._struck(event)) \
            or comes_at_once(now.t, since, np.inf, 0.0)
        self._short[event.name] = self._short.get(event.name, 0) + 1 if soon else 0
        if event.once:
            self._done.add(event.name)
        return self._happened(event.name, now, before, moment)

    def _struck(self, event: Event) -> list[tuple[int, int]]:
        """Places in v and q of coordinates that its impacts are of."""
        names = [action.coordinate for action in event.actions if isinstance(action, Impact) and action.coordinate]
        found = [(k, int(coordinates(self.model)[k])) for k in map(self.model.v_names.index, names)]
        return [(k, i) for k, i in found if i >= 0]

    def _moment(self, now: Start) -> _Moment:
        model, _ = self._known[self.mode]
        return _Moment(model, now.q.copy(), now.v.copy(), np.zeros(model.nv), 0.0, 0.0)

    def _happened(self, name: str, now: Start, before: _Moment, after: _Moment) -> Start:
        change = sum(after.energies) - sum(before.energies)
        self.occurrences.append(Occurrence(now.t, name, self.mode.phase or "", after.v - before.v, after.impulse, after.lost,
                                           change))
        return Start(now.t, after.q, after.v, now.work + after.work, now.fired, now.step)

    # limits -------------------------------------------------------------------------------------------------------------
    def _meet_limits(self, now: Start, problem: Problem | None = None) -> Start:
        """Hard stops that are reached or let go. problem: whose events have fired; None: the run begins."""
        if not self._hard.stops:
            return now
        guards = () if problem is None else sum(guards_of(self._stops, problem.schedule.level, self.mode.resting), ())
        met = [guards[k - len(self.watched)] for k in now.fired if k >= len(self.watched)]
        now = replace(now, fired=tuple(k for k in now.fired if k < len(self.watched)))
        before, resting = self._moment(now), self.mode.resting
        released = [stop for stop in met if stop in resting]
        hits = [stop for stop in met if stop not in resting]
        if released:
            self._enter(replace(self.mode, resting=tuple(stop for stop in resting if stop not in released)))
            now = self._happened(f"{self._hard.names(released)} off its limit", now, before, before)
        if not hits and problem is not None:
            return now
        rested = self.mode.resting
        self._enter(replace(self.mode, resting=()))
        after = self._settled(before, now.t, rested, hits)
        if hits or after.impulse.any():
            pushed = hits or [stop for stop in self._hard.stops if stop.side * after.impulse[stop.coordinate] < 0.0]
            return self._happened(f"limit of {self._hard.names(pushed)}", now, before, after)
        return replace(now, q=after.q, v=after.v)

    def _settled(self, moment: _Moment, t: float, rested, hits=()) -> _Moment:
        """After the impacts at limits; the mode is that of the coordinates that rest."""
        if self._hard.stops:
            _, problem = self._known[self.mode]
            moment, resting = self._hard.settle(moment, t, problem, rested, hits, lambda at: self._kept(at, set()),
                                                lambda at, rows, b: self._collide(at, rows, b, set()))
            self._enter(replace(self.mode, resting=resting))
        return moment

    def _go(self, moment: _Moment, action: Go, t: float, event: Event) -> _Moment:
        phase, before = self.phases[action.phase], self.mode
        self._phase_began = t
        self._enter(replace(self.mode, phase=action.phase))
        if set(self.phases[before.phase].open) != set(phase.open):
            moment = self._close(replace(moment, model=self._known[self.mode][0]), self.phases[before.phase].open, phase)
        return self._begin_motions(moment, t, phase.impulsive, f"phase {phase.name}", phase.place)

    def _close(self, moment: _Moment, were_open, phase) -> _Moment:
        """Loops that act from now on: they must be closed, and their velocities vanish at once."""
        rows = [one.rows for one in moment.model.constraints if one.name in were_open]
        if not rows:
            return moment
        rows = np.concatenate([np.arange(one.start, one.stop) for one in rows])
        off = np.abs(constraint_residual(moment.model, moment.q)[rows])
        if off.max(initial=0.0) > _CLOSED:
            name = moment.model.row_names[rows[int(np.argmax(off))]]
            raise ScenarioError(f"phase {phase.name} closes a loop that is open by {off.max():.3g} (rad or m) in {name}",
                                place=phase.place, expected=f"at most {_CLOSED:g}, at an event where it closes")
        A = constraint_jacobian(moment.model, moment.q)[rows]
        return self._collide(moment, A, np.zeros(len(rows)), set(), rows)

    def _lock(self, moment: _Moment, action: Lock, t: float, event: Event) -> _Moment:
        names = tuple(dict.fromkeys(name for given in action.joints for name in self._joints(given, action.place)))
        if action.hold:
            coordinates = np.concatenate([np.arange(self.model.nv)[self.model.v_index(name)] for name in names])
            moment = self._collide(moment, np.eye(self.model.nv)[coordinates], np.zeros(len(coordinates)), set(coordinates))
            self._enter(replace(self.mode, locked=tuple(sorted({*self.mode.locked, *names}))))
            return moment
        self._enter(replace(self.mode, locked=tuple(name for name in self.mode.locked if name not in names)))
        return self._begin_motions(moment, t, False, f"event {event.name}", action.place)

    def _set(self, moment: _Moment, action: Set, t: float, event: Event) -> _Moment:
        if self.model.nc:
            raise ScenarioError("set is not possible for a robot with loops or couplings", place=action.place)
        q, v = moment.q.copy(), moment.v.copy()
        write_values(q, action.q, self.model, self.model.q_index)
        write_values(v, action.v, self.model, self.model.v_index)
        after = replace(moment, q=q, v=v)
        return self._begin_motions(after.with_work(sum(after.energies) - sum(moment.energies)), t, False, f"event {event.name}",
                                   action.place)

    def _impact(self, moment: _Moment, action: Impact, t: float, event: Event) -> _Moment:
        if action.coordinate:
            k = self.model.v_names.index(action.coordinate)
            came = np.sign(moment.v[k])
            back = event.direction and came != self._came.setdefault(event.name, came)       # but for rounding, it rests
            if back or action.restitution == 0.0 or self._short.get(event.name, 0) >= REST_AFTER:
                name = next(joint.name for joint in self.model.joints if joint.v.start <= k < joint.v.stop)
                self.notes.setdefault(event.name, f"event {event.name}: the impacts have come to an end at t = {t:.9g} s; "
                                      f"{name} is locked from then on (an event with unlock frees it)")
                return self._lock(moment, Lock((name,), True, action.place), t, event)
            return self._collide(moment, np.eye(self.model.nv)[[k]], -action.restitution * moment.v[[k]], {k})
        row = self._row(moment, action)
        approach = float(row @ moment.v)
        if approach >= 0.0:
            return moment
        if self._short.get(event.name, 0) >= REST_AFTER:
            raise ComputationError(f"the impacts of link {action.link} come to an end here, and nothing would hold it (stop the "
                                   "run, go to another phase, or use a restitution of a joint's coordinate)")
        return self._collide(moment, row[None], np.array([-action.restitution * approach]), set())

    def _row(self, moment: _Moment, action: Impact) -> np.ndarray:
        """The velocity of a point of a link along the normal."""
        J = jacobian(moment.model.open_tree(), moment.q, action.link, frame="local_world_aligned")
        R = link_poses(moment.model.open_tree(), moment.q)[self.model.link_names.index(action.link)][:3, :3]
        arm = np.cross(R @ np.array(action.point), np.array(action.normal))
        return np.concatenate([arm, action.normal]) @ J

    def _attach(self, moment: _Moment, action: Attach, t: float, event: Event) -> _Moment:
        if any(one.link == action.link for one in self.mode.attached):
            raise ScenarioError(f"a body is attached to link {action.link} already", place=action.place)
        before = mass_matrix(moment.model.open_tree(), moment.q) @ moment.v
        self._enter(replace(self.mode, attached=(*self.mode.attached, action)))
        model, _ = self._known[self.mode]
        free = np.linalg.solve(mass_matrix(model.open_tree(), moment.q), before)
        rows, b = self._kept(moment, set())
        found = jump(model, moment.q, free, rows, b) if len(rows) else Jump(free, np.zeros(model.nv), np.zeros(0))
        after = replace(moment, model=model, v=found.v, impulse=moment.impulse + found.impulse)
        kinetic = before @ moment.v / 2 - after.energies[0]
        return replace(after.with_work(sum(after.energies) - sum(moment.energies)), lost=moment.lost + kinetic)

    def _detach(self, moment: _Moment, action: Detach, t: float, event: Event) -> _Moment:
        if all(one.link != action.link for one in self.mode.attached):
            raise ComputationError(f"nothing is attached to link {action.link}")
        self._enter(replace(self.mode, attached=tuple(one for one in self.mode.attached if one.link != action.link)))
        after = replace(moment, model=self._known[self.mode][0])
        return after.with_work(sum(after.energies) - sum(moment.energies))

    def _note(self, moment: _Moment, action: Note, t: float, event: Event) -> _Moment:
        return moment

    def _stop(self, moment: _Moment, action: Stop, t: float, event: Event) -> _Moment:
        self.stopped = True
        return moment

    # jumps --------------------------------------------------------------------------------------------------------------
    def _jump(self, moment: _Moment, rows, b, moved: set[int], closing=()) -> tuple[_Moment, float]:
        """Rows of the velocity become b; constraints and what is prescribed, but for the coordinates `moved`, keep theirs. And
        the work of the impulses along these rows."""
        kept, values = self._kept(moment, moved, closing)
        found = jump(moment.model, moment.q, moment.v, np.vstack([rows, kept]), np.concatenate([b, values]))
        after = replace(moment, v=found.v, impulse=moment.impulse + found.impulse, work=moment.work + float(found.work.sum()))
        return after, float(found.work[:len(rows)].sum())

    def _collide(self, moment: _Moment, rows, b, moved: set[int], closing=()) -> _Moment:
        """The same where what the impulses along the rows take is lost."""
        after, work = self._jump(moment, rows, b, moved, closing)
        return replace(after, lost=after.lost - work)

    def _kept(self, moment: _Moment, moved: set[int], closing=()) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the velocity that stay: what is prescribed, and constraints but for those rows that are `closing`."""
        prescribed = [k for k in np.flatnonzero(self._known[self.mode][1].schedule.level != TORQUE) if k not in moved]
        rows = np.eye(self.model.nv)[prescribed]
        if moment.model.nc:
            rows = np.vstack([rows, np.delete(constraint_jacobian(moment.model, moment.q), closing, axis=0)])
        return rows, rows @ moment.v

    def _begin_motions(self, moment: _Moment, t: float, impulsive: bool, who: str, place: Place) -> _Moment:
        """Prescribed coordinates must be where their motion is at t; their velocity may jump there if that is allowed."""
        schedule, signals = (getattr(self._known[self.mode][1], name) for name in ("schedule", "signals"))
        targets = {}
        self._check_poses(moment, t, impulsive, who, place, targets)
        for k in np.flatnonzero(np.isin(schedule.level, (POSITION, VELOCITY))):
            if k in targets:
                continue
            x, dx, _ = read_signal(signals, schedule.signal[k], t, moment.q, moment.v)
            name = self.model.v_names[k]
            if schedule.level[k] == POSITION:
                is_at = moment.q[schedule.q_of_v[k]]
                if not abs(x - is_at) <= _AGREE * max(1.0, abs(x)):
                    raise ScenarioError(f"{who} prescribes {name} at {x:.9g} from t = {t:.9g} s on, where it is at {is_at:.9g}",
                                        place=place, expected="a motion that begins where the joint is, or prescribe velocity")
            wanted = dx if schedule.level[k] == POSITION else x
            if not (impulsive or abs(wanted - moment.v[k]) <= _AGREE * max(1.0, abs(wanted))):
                raise ScenarioError(f"{who} prescribes the velocity {wanted:.9g} of {name} from t = {t:.9g} s on, where it is "
                                    f"{moment.v[k]:.9g}", place=place,
                                    expected="a motion without a jump, or impulsive: true in the phase")
            targets[int(k)] = wanted
        if all(moment.v[k] == x for k, x in targets.items()):
            return moment
        return self._jump(moment, np.eye(self.model.nv)[list(targets)], np.array(list(targets.values())), set(targets))[0]

    def _check_poses(self, moment: _Moment, t: float, impulsive: bool, who: str, place: Place, targets: dict[int, float]) -> None:
        """The same for ball and free joints whose pose is prescribed. Adds their velocities to the targets."""
        problem = self._known[self.mode][1]
        q, v = prescribed_at(problem.schedule.poses, problem.signals, t, moment.q, moment.v, problem.signal_names,
                             problem.signal_places)
        for name, parts in held_by(problem.schedule.poses, self.model).items():
            for what, here, there, part, gap in (("pose", moment.q, q, parts[0], pose_gap), ("twist", moment.v, v, parts[1],
                                                                                             velocity_gap)):
                if not gap(here[part], there[part]) <= _AGREE and not (impulsive and what == "twist"):
                    is_at, begins = (", ".join(f"{x:.9g}" for x in one[part]) for one in (here, there))
                    raise ScenarioError(f"{who} prescribes the {what} [{begins}] of {name} from t = {t:.9g} s on, where it is "
                                        f"[{is_at}]", place=place, expected="a motion that begins where the joint is"
                                        if what == "pose" else "a motion without a jump, or impulsive: true in the phase")
            targets |= {k: float(v[k]) for k in range(parts[1].start, parts[1].stop)}

    # problems -----------------------------------------------------------------------------------------------------------
    def _enter(self, mode: _Mode) -> None:
        self.mode = mode
        if mode not in self._known:
            model = _carrying(opened(self.model, self.phases.get(mode.phase)), mode.attached)
            compiled = compile_schedule(self.scenario, model, self._rules(mode), self._stops, mode.resting)
            problem = compiled.problem(model, self.scenario.passive)
            if problem.contacts is not None:                   # a payload makes contacts no stiffer
                problem = replace(problem, contacts=problem.contacts._replace(material=self._contacts.material))
            self._known[mode] = model, problem
            for text in compiled.warnings:
                self.notes.setdefault(text, text)
        self._start_clocks()

    def _start_clocks(self) -> None:
        """Times since the beginning of the phase and since events count from where they happened last."""
        model, problem = self._known[self.mode]
        if problem.clocks:
            self._known[self.mode] = model, problem.begun({PHASE_START: self._phase_began} | self._last)

    def _rules(self, mode: _Mode) -> dict[str, Rule]:
        held = {name: Rule(name, Prescribe("acceleration", Constant(0.0))) for name in mode.locked}
        return phase_rules(self.scenario, self.model, mode.phase) | held

    def _joints(self, given: str, place: Place) -> list[str]:
        found = matching(given, self.model.joint_names)
        if not found or found[0] not in self.model.joint_names:
            raise unknown(given, self.model.joint_names, "joint", place)
        return found

    def _check_names(self, event: Event) -> None:
        """Before the run: what actions name must be there."""
        for action in event.actions:
            if isinstance(action, Lock):
                for given in action.joints:
                    self._joints(given, action.place)
            elif isinstance(action, Impact) and action.coordinate:
                find(action.coordinate, self.model.v_names, "coordinate", action.place)
            elif isinstance(action, (Impact, Attach, Detach)):
                find(action.link, self.model.link_names, "link", action.place)
                if isinstance(action, Attach) and not_positive(full(action.inertia), action.mass):
                    raise ScenarioError("the inertia of the body is not positive semidefinite", place=action.place,
                                        found=list(action.inertia), expected="principal inertias of at least zero")
            elif isinstance(action, Set):
                write_values(self.model.neutral(), action.q, self.model, self.model.q_index)
                write_values(np.zeros(self.model.nv), action.v, self.model, self.model.v_index)


_DO = {Go: Timeline._go, Lock: Timeline._lock, Set: Timeline._set, Impact: Timeline._impact, Attach: Timeline._attach,
       Detach: Timeline._detach, Note: Timeline._note, Stop: Timeline._stop}


@dataclass(frozen=True, eq=False)
class _Moment:
    """The state while an event acts: model, q, v; impulse (nv,), work and lost energy so far."""

    model: object
    q: np.ndarray
    v: np.ndarray
    impulse: np.ndarray
    work: float
    lost: float

    @property
    def energies(self) -> tuple[float, float]:
        kinetic, potential = energy(self.model.open_tree(), self.q, self.v)
        return float(kinetic), float(potential)

    def with_work(self, work: float) -> _Moment:
        return replace(self, work=self.work + work)


def _timed(events, duration: float) -> list[tuple[float, Event]]:
    """Times that are known, in order; of several at one time, in the order of the file."""
    found = [(t, event) for event in events for t in event.at if t <= duration]
    for event in events:
        if event.every:
            found += [(k * event.every, event) for k in range(1, int(duration / event.every * (1 + 1e-12)) + 1)]
    return sorted(found, key=lambda one: one[0])


def _carrying(model, attached: tuple[Attach, ...]):
    """The robot with bodies attached to links."""
    if not attached:
        return model
    by_link = {one.link: one for one in attached}
    links = tuple(_with_body(link, by_link[link.name]) if link.name in by_link else link for link in model.description.links)
    return build(replace(model.description, links=links))


def _with_body(link, body: Attach):
    found = combined([(one.mass, np.array(one.com), full(one.inertia)) for one in (link, body)])
    return replace(link, mass=found.mass, com=tuple(found.com), inertia=tuple(found.inertia[np.triu_indices(3)]))


def _sum(a: Statistics, b: Statistics) -> Statistics:
    return Statistics(a.steps + b.steps, a.rejected + b.rejected, a.evaluations + b.evaluations, a.seconds + b.seconds,
                      _worse(a.loops, b.loops), tuple(dict.fromkeys((*a.notes, *b.notes))))


def _worse(a: LoopFigures | None, b: LoopFigures | None) -> LoopFigures | None:
    if a is None or b is None:
        return a or b
    first = a if a.singular else b
    return LoopFigures(max(a.drift, b.drift), max(a.drift_velocity, b.drift_velocity), a.singular + b.singular,
                       first.singular_time, first.singular_row)
