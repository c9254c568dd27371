"""A scenario bound to a model: names become indices, signals become arrays for the compiled loop."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from liedyn.codegen.signals import read_signal
from liedyn.errors import Place, ScenarioError
from liedyn.integrators.problem import Problem, Ties
from liedyn.io.scenarios.events import Event
from liedyn.io.scenarios.scenario import (
    PHASE_START,
    Begun,
    Column,
    Constant,
    Drive,
    ExternalForce,
    Motion,
    Pd,
    Prescribe,
    Rule,
    Scenario,
    Signal,
    Torque,
)
from liedyn.io.scenarios.waypoints import Waypoints
from liedyn.kernels.simulation.contact import Contacts
from liedyn.kernels.simulation.elastic_law import MotorLaw
from liedyn.kernels.simulation.joint_laws import JointLaws
from liedyn.kernels.simulation.signals import ACCELERATION, POSITION, VELOCITY, Schedule, Signals
from liedyn.kernels.simulation.stops import Stops
from liedyn.simulation.contact import bind_contacts, with_touch_switches
from liedyn.simulation.control_laws.control import Bound, bind_control, motor_law, start
from liedyn.simulation.control_laws.feedback import law_slopes
from liedyn.simulation.control_laws.laws import BoundLaws, bind_laws
from liedyn.simulation.control_laws.sampled_laws import SampledLaws, compile_sampled
from liedyn.simulation.driven_loops import closed_state, tie
from liedyn.simulation.joint_limits.stops import BoundStops, Stop, bind_stops, stops_of
from liedyn.simulation.joint_values import unit_quaternions, write_values
from liedyn.simulation.names import bind, find, phase_rules
from liedyn.simulation.prescribed_poses import PoseTable, held_by, pose_gap, prescribed_at, velocity_gap
from liedyn.simulation.records.ended_state import ended_state
from liedyn.simulation.records.motion_columns import WRENCH
from liedyn.simulation.signals.expression import passing
from liedyn.simulation.signals.signal_table import SAME_TIME, SignalTable, Use, merge_times, merge_windows, snap
from liedyn.simulation.signals.switches import MOST, switches_of_state

_LEVELS = {"acceleration": ACCELERATION, "velocity": VELOCITY, "position": POSITION}
_AGREE = 1e-6                    # relative: an initial value against the prescribed motion; people round
_STEPS_WITH_EVENTS = 100         # at least, of adaptive methods: what is passed and passed back between two stages is not seen


@dataclass(frozen=True, eq=False)
class Compiled:
    """What the simulation loop needs.

    q, v          the initial state, at the prescribed positions and velocities, and on the constraints
    ties          how the constraints act; None for a robot without
    law           of the motors of elastic joints; None without
    joint_laws    of other joints, and limits of forces; None without
    directions    of the events that the schedule watches for, and of resting stops
    stops, at_limits   at limits of joints: as problems have them, and with their names
    max_step      the largest that an adaptive method may take: finite where signals switch at times that are not all known
    signal_names, signal_places   what each signal drives and where it stands, for a message about a value that is not finite
    force_names   what each entry of the schedule's forces is
    contacts, contact_names   of links with planes; None, and no names, without `contacts`
    clocks        names of what the times of signals begin with, and bound: schedule and signals for other beginnings by name
    sampled       laws of a sampled controller; None without
    stack_size    floats of scratch for `kernels.simulation.signals.signal`
    warnings      what is doubtful but can be run, one line each
    """

    schedule: Schedule
    signals: Signals
    q: np.ndarray
    v: np.ndarray
    signal_names: tuple[str, ...]
    signal_places: tuple[Place, ...]
    force_names: tuple[str, ...]
    stack_size: int
    warnings: tuple[str, ...] = ()
    ties: Ties | None = None
    law: MotorLaw | None = None
    max_step: float = math.inf
    directions: tuple[int, ...] = ()
    contacts: Contacts | None = None
    contact_names: tuple[str, ...] = ()
    joint_laws: JointLaws | None = None
    clocks: tuple[str, ...] = ()
    bound: Callable[[Mapping[str, float]], tuple[Schedule, Signals]] | None = None
    sampled: SampledLaws | None = None
    stops: Stops | None = None
    at_limits: BoundStops = field(default_factory=BoundStops)

    def problem(self, model, passive: bool = True) -> Problem:
        return Problem(model, self.schedule, self.signals, self.q, self.v, self.stack_size, self.signal_names, self.signal_places,
                       passive, self.ties, self.law, self.max_step, law_slopes, self.directions, self.contacts, self.joint_laws,
                       self.clocks, self.bound, self.sampled, self.at_limits.guards, self.stops, self.at_limits.loads)


def compile_schedule(scenario: Scenario, model, rules: dict[str, Rule] | None = None, stops: tuple[Stop, ...] | None = None,
                     resting: tuple[Stop, ...] = (), *, initial: bool | None = None, held: np.ndarray | None = None,
                     ramps: bool = False) -> Compiled:
    """Bind `scenario` to `model`, with its initial state. rules: what each joint does later, in another phase; then q and v are
    at rest in the neutral configuration, unless initial is True. stops: at limits, if they are known; resting: those that
    joints rest at. held, ramps: see `bind_laws`.

    Raises ScenarioError for names that the model does not have, drives that a joint cannot have and initial values that
    contradict the prescribed motion, a `control` that the robot cannot have; TrajectoryError for an unreadable CSV.
    """
    initial = rules is None if initial is None else initial
    if scenario.sampling is not None:
        return compile_sampled(compile_schedule, scenario, model, rules, stops, resting, initial)
    table = SignalTable(model, scenario.duration, coordinates(model), bool(scenario.phases),
                        tuple(event.name for event in scenario.events))
    if rules is None:
        rules = phase_rules(scenario, model, scenario.phases[0].name if scenario.phases else None)
    drives = _drives(rules, model, table)
    forces = _Forces(model, table, scenario.duration)
    for number, force in enumerate(scenario.forces, 1):
        forces.add(force, f"external force {number} on link {force.link}")
    forces.add_actuators(scenario.actuators)
    ties = tie(scenario, model, table)
    contacts, contact_names = bind_contacts(scenario.contacts, model, scenario.events)
    control = bind_control(scenario, model, table, drives["level"])
    laws = bind_laws(scenario, model, table, drives, rules, held, ramps)
    watched = [event for event in scenario.events if event.when]
    at_limits = bind_stops(stops_of(scenario, model) if stops is None else stops, drives["level"], resting, table)
    watch = np.array([*(-1 if event.touch else _watch(event, table) for event in watched), *at_limits.watch], dtype=np.int64)

    def bound(begun: Mapping[str, float]):
        origins = table.origins(begun)
        windows, doubts = table.switches(origins)
        times = merge_times(np.concatenate([forces.start, forces.end, table.knots(origins)]), scenario.duration)
        breaks, before = merge_windows(times, windows, scenario.duration)
        schedule = Schedule(**drives, **forces.arrays(breaks), breaks=breaks, before=before, watch=watch)
        signals, joint_laws = laws.with_switches(table.arrays(breaks, origins))
        signals, acting = at_limits.with_switches(signals, model.nv)
        signals, touching = with_touch_switches(signals, contacts)
        return schedule, signals, joint_laws, acting, touching, doubts

    schedule, signals, joint_laws, acting, touching, doubts = bound({PHASE_START: 0.0})
    law = motor_law(control, model, table.stack_size)
    at_rest = model.neutral(), np.zeros(model.nv), None, []
    q, v, given, warnings = _initial_state(scenario, model, schedule, signals, table, control, law, laws) if initial else at_rest
    compiled = Compiled(schedule, signals, q, v, (*table.names, *laws.limit_names, *at_limits.names),
                        (*table.places, *laws.limit_places), tuple(forces.names), table.stack_size, ties=ties, law=law,
                        max_step=_largest_step(scenario.duration, doubts, watched or acting),
                        directions=(*(event.direction for event in watched), *at_limits.directions), contacts=touching,
                        contact_names=contact_names, joint_laws=joint_laws, clocks=tuple(table.clocks),
                        bound=lambda begun: bound(begun)[:2], stops=acting, at_limits=at_limits)
    if ties is not None and initial:
        q, v, notes = closed_state(scenario, compiled.problem(model), *given)
        warnings += notes
    warnings += (*(control.notes if control else ()), *laws.notes)
    if not initial:
        return replace(compiled, warnings=tuple(doubts))
    return replace(compiled, q=q, v=v, warnings=(*scenario.notes, *warnings, *doubts, *_beyond_limits(model, schedule, q)))


def coordinates(model) -> np.ndarray:
    """(nv,) index in q of each velocity coordinate; -1 for those of ball and free joints, which have none of their own."""
    q_of_v = np.full(model.nv, -1, dtype=np.int64)
    for name in model.joint_names:
        q, v = model.q_index(name), model.v_index(name)
        if q.stop - q.start == v.stop - v.start:
            q_of_v[v] = np.arange(q.start, q.stop)
    return q_of_v


# drives -------------------------------------------------------------------------------------------------------------

def _drives(rules: dict[str, Rule], model, table: SignalTable) -> dict[str, np.ndarray]:
    nothing = Torque(Constant(0.0))
    integrals: dict[int, float] = {}
    arrays = {"level": np.zeros(model.nv, dtype=np.int64), "signal": np.zeros(model.nv, dtype=np.int64),
              "target": np.full(model.nv, -1, dtype=np.int64), "kp": np.zeros(model.nv), "kd": np.zeros(model.nv),
              "q_of_v": table.q_of_v}
    poses = PoseTable(model, table)
    for name in model.joint_names:
        rule = rules.get(name)
        _drive_joint(arrays, name, rule.value if rule else nothing, model.v_index(name), table, poses, integrals)
    return arrays | {"poses": poses.poses, "integral": np.array(list(integrals), dtype=np.int64),
                     "ki": np.array(list(integrals.values()), dtype=float)}


def _drive_joint(arrays: dict[str, np.ndarray], name: str, drive: Drive, v: slice, table: SignalTable, poses: PoseTable,
                 integrals: dict[int, float]) -> None:
    n = v.stop - v.start
    manifold = n > 0 and arrays["q_of_v"][v.start] < 0
    if isinstance(drive, Prescribe) and drive.level == "position":
        if manifold:
            arrays["level"][v], arrays["signal"][v] = POSITION, poses.add(name, drive, n)
            return
        if isinstance(drive.signals, Motion | Waypoints):
            raise ScenarioError(f"{name} is not a ball or free joint: it has no pose", place=drive.place,
                                expected="a signal" if n == 1 else f"a list of {n} signals")
    for k, i in enumerate(range(v.start, v.stop)):
        if isinstance(drive, Prescribe):
            arrays["level"][i] = _LEVELS[drive.level]
            given = _component(drive.signals, k, n, name, drive.place, motion=True)
            arrays["signal"][i] = table.add(given, table.joint_use(drive.level, i))
        elif isinstance(drive, Torque):
            arrays["signal"][i] = table.add(_component(drive.signals, k, n, name, drive.place), table.joint_use("torque", i))
        else:
            if manifold:
                raise ScenarioError(f"joint {name} is a {_kind(n)} joint: pd is not available for it",
                                    place=drive.place, hint="give a torque for each component")
            _pd_coordinate(arrays, name, drive, k, i, n, table)
            if drive.ki is not None:
                integrals[i] = _gain(drive, "ki", k, n, name)


def _pd_coordinate(arrays: dict[str, np.ndarray], name: str, drive: Pd, k: int, i: int, n: int, table: SignalTable) -> None:
    for key in ("kp", "kd"):
        arrays[key][i] = _gain(drive, key, k, n, name)
    target = _component(drive.target, k, n, name, drive.place)
    arrays["target"][i] = table.add_target(target, table.joint_use("target", i), arrays["kd"][i] != 0.0)
    arrays["signal"][i] = table.add(_component(drive.feedforward, k, n, name, drive.place), table.joint_use("torque", i))


def _gain(drive: Pd, key: str, k: int, n: int, name: str) -> float:
    gain = getattr(drive, key)
    if not isinstance(gain, tuple):
        return gain
    _check_count(gain, n, name, drive.place, f"{key} values")
    return gain[k]


def _component(signals: Signal | tuple[Signal, ...], k: int, n: int, name: str, place: Place, motion: bool = False) -> Signal:
    """The signal of coordinate k of n. A single one serves all for a force; for a motion only where that says the same
    for each: rest, or each coordinate's own column."""
    if isinstance(signals, tuple):
        _check_count(signals, n, name, place, "signals")
        return signals[k]
    curve = signals.curve if isinstance(signals, Begun) else signals
    same = (isinstance(signals, Constant) and signals.value == 0.0) or (isinstance(curve, Column) and curve.name is None)
    if motion and n > 1 and not same:
        raise ScenarioError(f"joint {name} has {n} coordinates", place=place, found="a single signal",
                            expected=f"a list of {n} signals")
    return signals


def _check_count(values: tuple, n: int, name: str, place: Place, what: str) -> None:
    if len(values) != n:
        raise ScenarioError(f"joint {name} has {n} coordinate{'s' * (n != 1)}", place=place, found=f"{len(values)} {what}",
                            expected=f"a list of {n}" if n > 1 else "one value")


def _kind(n: int) -> str:
    return "ball" if n == 3 else "free"


def _largest_step(duration: float, doubts, watched) -> float:
    """Of adaptive methods."""
    return duration / MOST if doubts else duration / _STEPS_WITH_EVENTS if watched else math.inf


# events -------------------------------------------------------------------------------------------------------------
def _watch(event: Event, table: SignalTable) -> int:
    """Index of a signal that switches where the event happens: the sign of its expression less its value."""
    use = Use(f"event {event.name}", forces=True)
    lowered = table.lower(event.when, use)
    watched = None if isinstance(lowered, float) else passing(lowered, event.value)
    if watched is None or len(watched.code) - 1 not in switches_of_state(watched, clocks=True):
        raise ScenarioError(f"event {event.name}: the expression does not depend on the state", place=event.when.place,
                            found=event.when.text, expected="q(joint), v(joint), z(link), … in it, or the key at or every")
    return table.put(watched, use, event.when.place)


# external wrenches --------------------------------------------------------------------------------------------------

class _Forces:
    """Entries basis · signal on links. A constant wrench is one entry, others one for each component."""

    def __init__(self, model, table: SignalTable, duration: float):
        self.model, self.table, self.duration = model, table, duration
        self.names: list[str] = []
        self.link, self.world, self.signal = [], [], []
        self.basis, self.point, self.start, self.end = [], [], [], []

    def add(self, force: ExternalForce, name: str) -> None:
        link = find(force.link, self.model.link_names, "link", force.place)
        window = (max(0.0, force.start), min(self.duration, force.end))
        constant = np.zeros(6)
        for k, given in enumerate(force.wrench):
            use = Use(f"{WRENCH[k]} of {name}", unit="N m" if k < 3 else "N", window=window)
            lowered = self.table.lower(given, use)
            if isinstance(lowered, float):
                constant[k] = lowered
            else:
                self._entry(name, link, force, np.eye(6)[k], self.table.put(lowered, use, given.place))
        if constant.any():
            self._entry(name, link, force, constant, self.table.put(1.0, Use(name)))

    def _entry(self, name: str, link: int, force: ExternalForce, wrench: np.ndarray, index: int) -> None:
        world, point = force.frame == "local_world_aligned", np.array(force.point)
        if not world:                                          # about the link's origin: m + p x f
            wrench = np.concatenate([wrench[:3] + np.cross(point, wrench[3:]), wrench[3:]])
        self.names.append(name)
        self.link.append(link), self.world.append(world), self.signal.append(index)
        self.basis.append(wrench), self.point.append(point if world else np.zeros(3))
        to_the_end = force.end >= self.duration * (1 - SAME_TIME)          # the last row shows it still
        self.start.append(force.start), self.end.append(math.inf if to_the_end else force.end)

    def add_actuators(self, rules: tuple[Rule, ...]) -> None:
        actuators = {actuator.name: actuator for actuator in self.model.description.actuators}
        for name, rule in bind(rules, tuple(actuators), "actuator").items():
            actuator = actuators[name]
            axis = np.array(actuator.axis) / np.linalg.norm(actuator.axis)
            moment = np.cross(actuator.position, axis) + actuator.torque_ratio * axis
            index = self.table.add(rule.value, Use(f"thrust of actuator {name}", unit="N"))
            placed = ExternalForce(actuator.link, "local", (), place=rule.place)
            self._entry(f"actuator {name}", find(actuator.link, self.model.link_names, "link", actuator.place), placed,
                        np.concatenate([moment, axis]), index)

    def arrays(self, breaks: np.ndarray) -> dict[str, np.ndarray]:
        return {"force_link": np.array(self.link, dtype=np.int64), "force_world": np.array(self.world, dtype=np.int64),
                "force_basis": np.array(self.basis, dtype=float).reshape(-1),
                "force_point": np.array(self.point, dtype=float).reshape(-1),
                "force_signal": np.array(self.signal, dtype=np.int64),
                "force_from": snap(np.array(self.start, dtype=float), breaks, self.duration),
                "force_until": snap(np.array(self.end, dtype=float), breaks, self.duration)}


# initial state ------------------------------------------------------------------------------------------------------

def _initial_state(scenario: Scenario, model, schedule: Schedule, signals: Signals, table: SignalTable, control: Bound | None,
                   law: MotorLaw | None, laws: BoundLaws,
                   ) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray], list[str]]:
    """q, v, which velocity coordinates have an initial position and an initial velocity (nv) given, and notes."""
    q, v = model.neutral(), np.zeros(model.nv)
    if control is not None:
        start(control, law, signals, q, v)
    laws.start(signals, q, v)
    ended_q, ended_v = ended_state(scenario.initial_from, model)
    rules_q = write_values(q, scenario.initial_q, model, model.q_index, ended_q)
    rules_v = write_values(v, scenario.initial_v, model, model.v_index, ended_v)
    warnings = unit_quaternions(q, rules_q, model)
    for name in model.joint_names:
        rule_q, rule_v = rules_q.get(name), rules_v.get(name)
        for i in range(model.v_index(name).start, model.v_index(name).stop):
            level, k = schedule.level[i], schedule.signal[i]
            if level != VELOCITY and (level != POSITION or schedule.q_of_v[i] < 0):
                continue
            x, dx, _ = read_signal(signals, k, 0.0, q, v)
            if not (math.isfinite(x) and math.isfinite(dx)):
                raise ScenarioError(f"the {table.names[k]} is not finite at t = 0", place=table.places[k],
                                    found=f"{x}, derivative {dx}")
            if level == POSITION:
                _settle(q, schedule.q_of_v[i], x, rule_q, f"{model.v_names[i]} is prescribed at position level")
            _settle(v, i, dx if level == POSITION else x, rule_v, f"{model.v_names[i]} is prescribed")
    _settle_poses(model, schedule, signals, table, (q, v), (rules_q, rules_v))
    given = tuple(np.array([name in rules for name in model.joint_names for _ in range(*_span(model, name))], dtype=bool)
                  for rules in (rules_q, rules_v))
    return q, v, given, warnings


def _span(model, name: str) -> tuple[int, int]:
    return model.v_index(name).start, model.v_index(name).stop


def _settle(values: np.ndarray, i: int, prescribed: float, rule: Rule | None, why: str) -> None:
    """Start where the prescribed motion starts; an initial value that says otherwise is an error."""
    if rule and abs(values[i] - prescribed) > _AGREE * max(1.0, abs(prescribed)):
        raise ScenarioError("the initial value contradicts the prescribed motion: "
                            f"{why}", place=rule.place, found=float(values[i]),
                            expected=f"{prescribed:.9g}, or no value")
    values[i] = prescribed


def _settle_poses(model, schedule: Schedule, signals: Signals, table: SignalTable, state, rules) -> None:
    """The same for joints whose pose is prescribed."""
    on_motion = prescribed_at(schedule.poses, signals, 0.0, *state, table.names, table.places)
    for name, parts in held_by(schedule.poses, model).items():
        for x, begins, part, given, gap in zip(state, on_motion, parts, rules, (pose_gap, velocity_gap), strict=True):
            if name in given and gap(x[part], begins[part]) > _AGREE:
                raise ScenarioError("the initial value contradicts the prescribed motion: "
                                    f"{name} is prescribed at position level", place=given[name].place,
                                    found=list(given[name].value),
                                    expected=f"[{', '.join(f'{number:.9g}' for number in begins[part])}], or no value")
            x[part] = begins[part]


def _beyond_limits(model, schedule: Schedule, q: np.ndarray) -> list[str]:
    warnings = []
    for i, name in enumerate(model.v_names):
        if schedule.q_of_v[i] < 0:
            continue
        x, unit = q[schedule.q_of_v[i]], model.v_units[i]
        if x < model.lower[i] - _AGREE or x > model.upper[i] + _AGREE:
            side, limit = ("below", model.lower[i]) if x < model.lower[i] else ("above", model.upper[i])
            warnings.append(f"{name} starts at {x:g} {unit}, {side} its limit {limit:g} {unit}")
    return warnings
