"""A scenario bound to a model: names become indices, and signals become arrays for the compiled integrators."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from liedyn.arrays import Array, Mask
from liedyn.codegen.rhs import read_signal
from liedyn.dynamics.constraints.constraints import constraint_jacobian
from liedyn.errors import LiedynWarning, Place, ScenarioError, TrajectoryError, WarningLog, list_names, nearest
from liedyn.integrators.problem import STATE_LIMIT, InitialValueProblem
from liedyn.io.scenarios.scenario import (
    MEASURED,
    PHASE_START,
    Column,
    Constant,
    Drive,
    Event,
    ExternalForce,
    Motion,
    Pd,
    Prescribe,
    RelativeTime,
    Rule,
    Sampling,
    Scenario,
    Signal,
    SlotineLiControl,
    StartFrom,
    Torque,
    Waypoints,
)
from liedyn.io.trajectory_csv import Trajectory, read_trajectory
from liedyn.kernels.simulation.joint_laws import JointLaws
from liedyn.kernels.simulation.signals import ACCELERATION, POSITION, TORQUE, VELOCITY, InputSchedule, Poses, Signals
from liedyn.model.description import JointValues
from liedyn.model.model import Model
from liedyn.simulation.constraint_setup import bind_constraints, close_initial_state
from liedyn.simulation.contact_setup import bind_contacts, place_stretches
from liedyn.simulation.control.control_law import law_model, motor_messages
from liedyn.simulation.control.elastic_joint_control import bind_control, is_motor_law, start_on_reference
from liedyn.simulation.control.joint_control import bind_laws
from liedyn.simulation.control.law_derivatives import law_jacobians
from liedyn.simulation.control.rigid_joint_laws import check_joints_of_loop_laws
from liedyn.simulation.control.sampled_control import SampledLaws
from liedyn.simulation.control.slotine_li_control import place_estimate
from liedyn.simulation.control.thrusts import driven_actuators, thrust_entries
from liedyn.simulation.joint_friction import FrictionState
from liedyn.simulation.joint_stops import JointStop, bind_stops, limit_stops
from liedyn.simulation.limits import start_warnings
from liedyn.simulation.name_binding import (
    bind_joints,
    bind_rules,
    coordinate_value,
    find_index,
    joint_mask,
    normalize_quaternions,
    phase_rules,
    v_to_q_indices,
    write_values,
)
from liedyn.simulation.prescribed_poses import PoseTable, prescribed_motions, prescribed_state
from liedyn.simulation.random_streams import MeasurementNoise
from liedyn.simulation.signals.curves import SAME_TIME
from liedyn.simulation.signals.expression import SignalProgram, sign_of_difference
from liedyn.simulation.signals.signal_compiler import (
    SignalCompiler,
    SignalPurpose,
    merge_times,
    merge_windows,
    snap_to_breaks,
)
from liedyn.simulation.signals.switching_times import MAX_SWITCHES, switches_of_state
from liedyn.simulation.trajectory_columns import WRENCH, bind_columns, unused_columns

# The final state of a recorded motion, or a keyframe, as initial state ----------------------------------------------------

_MAX_NAMES = 8                    # of keyframes in an error


def recorded_initial_state(start: StartFrom | None, model: Model) -> tuple[dict[str, Rule], dict[str, Rule],
                                                                           list[LiedynWarning]]:
    """Return the initial q and v of each joint by name, from a row of a trajectory or from a keyframe, and warnings.

    Empty without `start`. Raises ScenarioError for a trajectory whose coordinates differ from those of the model, and for an
    unknown keyframe.
    """
    if start is None:
        return {}, {}, []
    if start.file is None:
        return *_values_of_keyframe(start, model), []
    trajectory = read_trajectory(start.file)
    unused = [name for name in unused_columns(model, trajectory) if name.startswith(("q.", "v."))]
    if unused:
        raise ScenarioError(f"the motion in {start.file} is of another robot", place=start.place, found=", ".join(unused),
                            expected=f"coordinates of {model.name}: q.{model.q_names[0]}, …" if model.nq else "no coordinates")
    changes = trajectory.header.get("final_changes") if start.row == "last" else None
    message = f"{start.file} ends with {changes}: this run starts without these changes, unless its own events make them"
    warning = LiedynWarning("changes-not-continued", message, place=start.place)
    return (_values_of_row(start, model, trajectory, "q", "positions", model.q_index),
            _values_of_row(start, model, trajectory, "v", "velocities", model.v_index),
            [*trajectory.warnings, *([warning] if changes else [])])


def _values_of_keyframe(start: StartFrom, model: Model) -> tuple[dict[str, Rule], dict[str, Rule]]:
    """Return the values of the joints that a keyframe names, and of those without constraints, which are at zero."""
    name, known = str(start.keyframe), model.keyframes
    if name not in known:
        expected = list_names(list(known), _MAX_NAMES) if known else f"no key keyframe: {model.source} describes none"
        raise ScenarioError(f"the robot {model.name} has no keyframe of this name", place=start.place, found=name,
                            expected=expected, hint=nearest(name, known))

    def rules(x: Array, values: JointValues, index: Callable[[str], slice]) -> dict[str, Rule]:
        named = {joint for joint, _ in values}
        return {joint.name: Rule(joint.name, tuple(x[index(joint.name)].tolist()), place=start.place) for joint in model.joints
                if joint.name in named or not tied[joint.v].any()}

    tied = np.zeros(model.nv, dtype=bool)
    if model.nc:
        tied |= (constraint_jacobian(model, model.neutral()) != 0.0).any(axis=0)
    keyframe = next(keyframe for keyframe in model.description.keyframes if keyframe.name == name)
    return rules(known[name].q, keyframe.q, model.q_index), rules(known[name].v, keyframe.v, model.v_index)


def _values_of_row(start: StartFrom, model: Model, trajectory: Trajectory, kind: str, meaning: str,
                   index: Callable[[str], slice]) -> dict[str, Rule]:
    """Return the values of each joint in the first or last row. kind: q or v, the columns; meaning: the same for messages."""
    try:
        values = bind_columns(model, trajectory, kind)
    except TrajectoryError as error:
        raise ScenarioError(f"{error.place}: {error.message}", place=start.place, found=error.found,
                            expected=error.expected) from None
    if values is None:
        if model.nv and (kind == "q" or start.row == "last"):
            raise ScenarioError(f"{start.file} has no columns of {meaning}", place=start.place, expected=f"{kind}.<joint>")
        return {}
    place = Place(start.place.file, start.place.line, f"{start.place.key} ({start.file})")
    row = values[0 if start.row == "first" else -1]
    return {name: Rule(name, tuple(row[index(name)].tolist()), place=place) for name in model.joint_names}


# schedule ---------------------------------------------------------------------------------------------------------------

_LEVELS = {"acceleration": ACCELERATION, "velocity": VELOCITY, "position": POSITION}
# relative difference (`PrescribedPose.mismatch`) of an initial value from the prescribed motion: users round numbers
_MOTION_TOLERANCE = 1e-6
_MIN_STEPS_WITH_EVENTS = 100      # of adaptive methods: two crossings between two stages are not detected


class CompiledSchedule(NamedTuple):
    """A scenario bound to a model.

    problem         with an initial state that satisfies prescribed motions and constraints
    contact_names   of contacts with planes and between links; empty without `contacts`
    warnings        about the scenario, one line each
    """

    problem: InitialValueProblem
    contact_names: tuple[str, ...]
    warnings: tuple[LiedynWarning, ...]


def compile_schedule(scenario: Scenario, model: Model, rules: dict[str, Rule] | None = None,            # noqa: PLR0913
                     stops: tuple[JointStop, ...] | None = None, resting: tuple[JointStop, ...] = (),
                     friction: FrictionState = (), *, initial: bool | None = None, controlled: Mask | None = None,
                     first_order_hold: bool = False) -> CompiledSchedule:
    """Bind `scenario` to `model`, with its initial state.

    rules        rule of each joint, in a later phase. Then the initial state is neutral and at rest, unless initial is True
    stops        stops at limits; None: those of the scenario
    resting      stops at which joints rest
    friction     modes of joints with rigid friction
    controlled   see `bind_laws`, also for first_order_hold

    Raises ScenarioError for unknown names, for actuation or control that is not possible for a joint or the robot, and for
    initial values that contradict a prescribed motion; TrajectoryError for an unreadable CSV.
    """
    initial = rules is None if initial is None else initial
    if rules is None:
        rules = phase_rules(scenario, model, scenario.phases[0].name if scenario.phases else None)
    if scenario.sampling is not None:
        return _compile_sampled(scenario, model, rules, stops, resting, friction, initial)
    stops = limit_stops(scenario, model) if stops is None else stops
    bound = _BoundScenario(scenario, model, rules, stops, resting, friction, controlled, first_order_hold)
    problem, signal_warnings = bound.problem()
    if not initial:
        return CompiledSchedule(problem, bound.contact_names, signal_warnings)
    problem, warnings = _with_initial_state(scenario, problem)
    return CompiledSchedule(problem, bound.contact_names,
                            (*scenario.warnings, *warnings, *signal_warnings, *start_warnings(model, problem.q)))


class _BoundScenario:
    """The parts of a problem. Each part adds its signals to those of the previous parts."""

    def __init__(self, scenario: Scenario, model: Model, rules: dict[str, Rule], stops: tuple[JointStop, ...],
                 resting: tuple[JointStop, ...], friction: FrictionState, controlled: Mask | None, first_order_hold: bool):
        self.scenario, self.model = scenario, model
        self.compiler = compiler = SignalCompiler(model, scenario.duration, v_to_q_indices(model), bool(scenario.phases),
                                                  tuple(event.name for event in scenario.events))
        self.actuation, self.poses = _bind_actuation(rules, model, compiler)
        self.wrenches = _bind_wrenches(scenario, model, compiler, driven_actuators(scenario, model, controlled))
        thrust_signals = {int(j): int(signal) for j, signal in zip(self.wrenches["force_actuator"], self.wrenches["force_signal"],
                                                                   strict=True) if j >= 0}
        self.constraints = bind_constraints(scenario, model, compiler)
        contacts, self.contact_names = bind_contacts(scenario.contacts, model, scenario.events)
        self.law = bind_control(scenario, model, compiler, self.actuation["level"])
        self.joint_laws = bind_laws(scenario, model, compiler, self.actuation, thrust_signals, rules, controlled,
                                    first_order_hold)
        computing = law_model(scenario.control, model)
        self.control_model = None if computing is model else computing
        compiler.warnings.extend(motor_messages(scenario, model, rules))
        self.stops = bind_stops(stops, self.actuation["level"], resting, friction, compiler, model)
        self.events = [event for event in scenario.events if event.when]
        event_signals = [-1 if event.touch else _bind_event(event, compiler) for event in self.events]
        self.watch = np.array([*event_signals, *self.stops.event_signals], dtype=np.int64)
        if contacts is not None:
            touching = np.arange(len(contacts.group) - 1)
            contacts = contacts._replace(switch=compiler.reserve_switches(len(touching)) + touching)
            contacts, self.actuation["integral"] = place_stretches(contacts, model.nv, self.actuation["integral"])
        self.contacts = contacts
        self.joint_laws = place_estimate(self.joint_laws, len(self.actuation["integral"]))

    def inputs(self, start_times: Mapping[str, float]) -> tuple[InputSchedule, Signals, WarningLog]:
        """Return schedule and signals for clocks that start at these times [s], and warnings."""
        compiler, duration, wrenches = self.compiler, self.scenario.duration, self.wrenches
        origins = compiler.origins(start_times)
        windows, warnings = compiler.switches(origins)
        times = merge_times(np.concatenate([*(wrenches[edge] for edge in _FORCE_TIMES), compiler.knots(origins)]), duration)
        breaks, before = merge_windows(times, windows, duration)
        acting = wrenches | {edge: snap_to_breaks(wrenches[edge], breaks, duration) for edge in _FORCE_TIMES}
        schedule = InputSchedule(**self.actuation, **acting, breaks=breaks, before=before, watch=self.watch, poses=self.poses)
        return schedule, compiler.arrays(breaks, origins), warnings

    def problem(self) -> tuple[InitialValueProblem, tuple[LiedynWarning, ...]]:
        """Return the problem with the neutral configuration at rest as initial state, and warnings."""
        compiler, stops, model = self.compiler, self.stops, self.model
        schedule, signals, warnings = self.inputs({PHASE_START: 0.0})
        problem = InitialValueProblem(
            model=model, q=model.neutral(), v=np.zeros(model.nv), passive=self.scenario.passive, constraints=self.constraints,
            schedule=schedule, signals=signals, stack_size=compiler.stack_size,
            signal_names=compiler.names, signal_locations=compiler.locations,
            max_step=_max_step(self.scenario.duration, bool(warnings), bool(self.events or stops.stops)),
            clocks=tuple(compiler.clocks), rebind=lambda start_times: self.inputs(start_times)[:2],
            law=self.law, joint_laws=self.joint_laws, control_model=self.control_model, input_jacobian=law_jacobians,
            contacts=self.contacts,
            stops=stops.stops, stop_loads=stops.loads,
            directions=(*(event.direction for event in self.events), *stops.directions), hard_stop_scales=stops.sizes)
        return problem, (*compiler.warnings, *warnings)


# sampled control ----------------------------------------------------------------------------------------------------

_ZERO_THRUST = Constant(0.0)
_ZERO_TORQUE = Torque(_ZERO_THRUST)


def _compile_sampled(scenario: Scenario, model: Model, rules: dict[str, Rule], stops: tuple[JointStop, ...] | None,
                     resting: tuple[JointStop, ...], friction: FrictionState, initial: bool) -> CompiledSchedule:
    """Return the problem of the motion with its `SampledLaws`. The arguments are those of `compile_schedule`."""
    sampling, control = scenario.sampling, scenario.control
    assert sampling is not None
    if control is not None and is_motor_law(control, model):
        raise ScenarioError(f"sampling is not available for the law {control.law} of elastic joints", place=sampling.place,
                            expected="no key sampling")
    if isinstance(control, SlotineLiControl) and control.adapt:
        raise ScenarioError("a sampled controller cannot adapt parameters", place=control.place.at("adapt"),
                            expected="adapt: false, or no key sampling")
    if scenario.limits is not None and scenario.limits.mode == "hard":
        raise ScenarioError("hard stops cannot be combined with sampling", place=scenario.limits.place,
                            expected="compliant stops, limits: stop")
    feedback = {name: rule for name, rule in rules.items() if isinstance(rule.value, Pd)}
    unwatched = tuple(replace(event, when=None, touch=None) for event in scenario.events)          # laws may read their times
    of_law = replace(scenario, sampling=None, forces=(), contacts=None, events=unwatched, limits=None)
    actuators = [actuator.name for actuator in model.description.actuators]
    has_function = sampling.function is not None or scenario.controller is not None
    if has_function:                                           # it may drive all actuators
        signals = bind_rules(scenario.actuators, actuators, "actuator")
        of_law = replace(of_law, actuators=(*scenario.actuators, *(Rule(name, _ZERO_THRUST) for name in actuators
                                                                   if name not in signals)))
    law, _, warnings = compile_schedule(of_law, model, rules, initial=initial)
    controlled = _controlled_mask(law.joint_laws, model)
    controlled[:model.nv] |= joint_mask(feedback, model)
    if has_function:
        controlled |= np.append(law.schedule.level == TORQUE, np.ones(len(actuators), dtype=bool))
    added = {name: Rule(name, _ZERO_TORQUE) for name in model.joint_names
             if controlled[model.v_index(name)].any() and name not in feedback and name in rules}
    if added:                                                  # torques of the schedule act continuously, not through the law
        other = compile_schedule(of_law, model, rules | added, initial=False).problem
        law = replace(other, q=law.q, v=law.v)
    everywhere = (*scenario.joints, *(rule for phase in scenario.phases for rule in phase.joints))
    if not (controlled.any() or control or has_function or any(isinstance(rule.value, Pd) for rule in everywhere)):
        raise ScenarioError("the sampled controller has no law", place=sampling.place,
                            expected="control, a joint with torque: {pd: …} or {pid: …}, or controller")
    limit = np.full(len(controlled), np.inf) if law.joint_laws is None else law.joint_laws.limit.copy()
    if law.joint_laws is not None:
        law = replace(law, joint_laws=law.joint_laws._replace(         # limits and gears act on the torques of the motion
            limit=np.where(controlled, np.inf, limit),
            gear_switch=np.where(controlled[:model.nv], -1, law.joint_laws.gear_switch)))
    motion_rules = rules | {name: Rule(name, _ZERO_TORQUE) for name in feedback}
    sampled_thrusts = [name for name, acts in zip(actuators, controlled[model.nv:], strict=True) if acts]
    thrusts = (*(rule for rule in scenario.actuators if rule.pattern not in sampled_thrusts),
               *(Rule(name, _ZERO_THRUST) for name in sampled_thrusts))             # the controller samples their signals
    motion, contact_names, more = compile_schedule(replace(scenario, sampling=None, control=None, actuators=thrusts), model,
                                                   motion_rules, stops, resting, friction, initial=False, controlled=controlled,
                                                   first_order_hold=sampling.hold == "first")
    assert motion.joint_laws is not None                     # they hold the torques of controlled coordinates
    sampled = SampledLaws(law, controlled, motion.joint_laws.torque_signal, limit, _resolutions(sampling, model),
                          _measurement_noise(scenario, model), not (scenario.phases or law.clocks))
    motion = replace(motion, q=law.q, v=law.v, sampled=sampled, clocks=tuple(dict.fromkeys((*motion.clocks, *law.clocks))))
    return CompiledSchedule(motion, contact_names, tuple(WarningLog((*warnings, *more))))


def _measurement_noise(scenario: Scenario, model: Model) -> MeasurementNoise:
    sampling, deviations = scenario.sampling, np.zeros((2, model.nv))
    assert sampling is not None
    for values, rules in zip(deviations, (sampling.noise_q, sampling.noise_v), strict=True):
        for name, rule in bind_joints(rules, model).items():
            assert isinstance(rule.value, int | float)
            values[model.v_index(name)] = rule.value
    return MeasurementNoise(scenario.seed or 0, model.v_names, deviations)


def _controlled_mask(laws: JointLaws | None, model: Model) -> Mask:
    """Return the mask (inputs,) of those on which `control` acts, or gravity of a pd law."""
    mask = np.zeros(model.nv + len(model.description.actuators), dtype=bool)
    if laws is not None:
        mask |= laws.row >= 0
        mask[:model.nv] |= laws.gravity | laws.driven
    return mask


def _resolutions(sampling: Sampling, model: Model) -> tuple[Array, Array, Array]:
    """Return the resolutions (inputs,) of each measured quantity, zero for thrusts.

    Positions and velocities have one only for joints with one coordinate.
    """
    resolutions = {key: np.zeros(model.nv + len(model.description.actuators)) for key in MEASURED}
    for key, values in resolutions.items():
        for name, rule in bind_joints(getattr(sampling, key), model).items():
            joint = model.joint(name)
            if key == "tau" or joint.screws is not None:
                assert isinstance(rule.value, int | float)
                values[joint.v] = rule.value
            elif rule.pattern == name:
                raise ScenarioError(f"quantization is not supported for {joint.type} joints: got {name}",
                                    place=rule.place)
    q, v, tau = resolutions.values()
    return q, v, tau


# actuation ----------------------------------------------------------------------------------------------------------

def _bind_actuation(rules: dict[str, Rule], model: Model, compiler: SignalCompiler) -> tuple[dict[str, np.ndarray], Poses]:
    """Return the fields of `InputSchedule` for each coordinate, and the prescribed poses."""
    arrays = {"level": np.zeros(model.nv, dtype=np.int64), "signal": np.zeros(model.nv, dtype=np.int64),
              "target": np.full(model.nv, -1, dtype=np.int64), "kp": np.zeros(model.nv), "kd": np.zeros(model.nv),
              "ki": np.full(model.nv, np.nan), "q_of_v": compiler.q_of_v}
    poses = PoseTable(model, compiler)
    for name in model.joint_names:
        drive = rules[name].value if name in rules else Torque(Constant(0.0))
        assert isinstance(drive, Drive)
        _bind_joint_actuation(arrays, name, drive, model.v_index(name), compiler, poses)
    integral = np.flatnonzero(~np.isnan(arrays["ki"]))
    return arrays | {"integral": integral, "ki": arrays["ki"][integral]}, poses.poses


def _bind_joint_actuation(arrays: dict[str, np.ndarray], name: str, drive: Drive, v: slice, compiler: SignalCompiler,
                          poses: PoseTable) -> None:
    n = v.stop - v.start
    manifold = n > 0 and arrays["q_of_v"][v.start] < 0
    if isinstance(drive, Prescribe) and drive.level == "position":
        if manifold:
            arrays["level"][v], arrays["signal"][v] = POSITION, poses.add(name, drive, n)
            return
        if isinstance(drive.signals, Motion | Waypoints):
            raise ScenarioError(f"{name} is not a ball or free joint: it has no pose", place=drive.place,
                                expected="a signal" if n == 1 else f"a list of {n} signals")
    if isinstance(drive, Pd) and manifold:
        raise ScenarioError(f"joint {name} is a {'ball' if n == 3 else 'free'} joint: pd is not available for it",
                            place=drive.place, hint="give a torque for each component")
    for k, i in enumerate(range(v.start, v.stop)):
        if isinstance(drive, Prescribe):
            arrays["level"][i] = _LEVELS[drive.level]
            assert not isinstance(drive.signals, Motion | Waypoints)
            signal = _component(drive.signals, k, n, name, drive.place, motion=True)
            arrays["signal"][i] = compiler.add(signal, compiler.joint_purpose(drive.level, i))
            continue
        if isinstance(drive, Pd):
            for key in ("kp", "kd", *(("ki",) if drive.ki is not None else ())):
                gain = getattr(drive, key)
                if isinstance(gain, tuple):
                    gain = coordinate_value(gain, k, n, name, drive.place, f"{key} values")
                arrays[key][i] = gain
            target = _component(drive.target, k, n, name, drive.place)
            arrays["target"][i] = compiler.add_target(target, compiler.joint_purpose("target", i), arrays["kd"][i] != 0.0)
        force = drive.feedforward if isinstance(drive, Pd) else drive.signals
        arrays["signal"][i] = compiler.add(_component(force, k, n, name, drive.place), compiler.joint_purpose("torque", i))


def _component(signals: Signal | tuple[Signal, ...], k: int, n: int, name: str, place: Place, motion: bool = False) -> Signal:
    """Return the signal of coordinate k of n.

    A single signal applies to all coordinates. For a motion it must be rest, or the column of each coordinate.
    """
    if isinstance(signals, tuple):
        return coordinate_value(signals, k, n, name, place, "signals")
    curve = signals.curve if isinstance(signals, RelativeTime) else signals
    same = (isinstance(signals, Constant) and signals.value == 0.0) or (isinstance(curve, Column) and curve.name is None)
    if motion and n > 1 and not same:
        raise ScenarioError(f"joint {name} has {n} coordinates", place=place, found="a single signal",
                            expected=f"a list of {n} signals")
    return signals


def _max_step(duration: float, many_switches: bool, watched: bool) -> float:
    """Return the maximum step of adaptive methods [s]."""
    return duration / MAX_SWITCHES if many_switches else duration / _MIN_STEPS_WITH_EVENTS if watched else math.inf


# events -------------------------------------------------------------------------------------------------------------
def _bind_event(event: Event, compiler: SignalCompiler) -> int:
    """Return the index of a signal that switches at the event: the sign of its expression minus the threshold."""
    expression = event.when
    assert expression is not None
    purpose = SignalPurpose(f"event {event.name}", forces=True)
    compiled = compiler.compile(expression, purpose)
    watched = sign_of_difference(compiled, event.value) if isinstance(compiled, SignalProgram) else None
    if watched is None or len(watched.code) - 1 not in switches_of_state(watched, clocks=True):
        raise ScenarioError(f"event {event.name}: the expression does not depend on the state", place=expression.place,
                            found=expression.text, expected="q(joint), v(joint), z(link), … in it, or the key at or every")
    return compiler.add_program(watched, purpose, expression.place)


# external wrenches --------------------------------------------------------------------------------------------------

_FORCE_TIMES = "force_from", "force_until"
_WRENCH_FIELDS = dict.fromkeys(("force_link", "force_world", "force_signal", "force_actuator"), np.int64) | dict.fromkeys(
    ("force_basis", "force_point", *_FORCE_TIMES), float)


def _bind_wrenches(scenario: Scenario, model: Model, compiler: SignalCompiler, driven: Sequence[int]) -> dict[str, np.ndarray]:
    """Return entries basis · signal on links. A constant wrench is one entry, others are one for each component.

    driven: actuators, whose entries are the last ones
    """
    rows = [row for number, force in enumerate(scenario.forces, 1)
            for row in _force_entries(force, f"external force {number} on link {force.link}", model, compiler)]
    rules = bind_rules(scenario.actuators, [actuator.name for actuator in model.description.actuators], "actuator")
    for j in driven:
        actuator = model.description.actuators[j]
        signal = rules[actuator.name].value if actuator.name in rules else Constant(0.0)
        assert isinstance(signal, Signal)
        index = compiler.add(signal, SignalPurpose(f"thrust of actuator {actuator.name}", unit="N"))
        rows += [_wrench_entry(link, ExternalForce(model.link_names[link], "local", ()), wrench, index, compiler.duration)
                 | {"force_actuator": j} for _, link, wrench in thrust_entries(model, [j])]
    return {name: np.array([row[name] for row in rows], dtype=kind).reshape(-1) for name, kind in _WRENCH_FIELDS.items()}


def _force_entries(force: ExternalForce, name: str, model: Model, compiler: SignalCompiler) -> list[dict[str, Any]]:
    link = find_index(force.link, model.link_names, "link", force.place.at("link"))
    window = (max(0.0, force.start), min(compiler.duration, force.end))
    constant, rows = np.zeros(6), []
    for k, signal in enumerate(force.wrench):
        purpose = SignalPurpose(f"{WRENCH[k]} of {name}", unit="N m" if k < 3 else "N", window=window)
        compiled = compiler.compile(signal, purpose)
        if isinstance(compiled, float):
            constant[k] = compiled
        else:
            rows.append(_wrench_entry(link, force, np.eye(6)[k], compiler.add_program(compiled, purpose, signal.place),
                                      compiler.duration))
    if constant.any():
        rows.append(_wrench_entry(link, force, constant, compiler.add_program(1.0, SignalPurpose(name)), compiler.duration))
    return rows


def _wrench_entry(link: int, force: ExternalForce, wrench: Array, index: int, duration: float) -> dict[str, Any]:
    world, point = force.frame == "local_world_aligned", np.array(force.point)
    if not world:                                         # moment about the link's origin: m + p x f
        wrench, point = np.concatenate([wrench[:3] + np.cross(point, wrench[3:]), wrench[3:]]), np.zeros(3)
    to_the_end = force.end >= duration * (1 - SAME_TIME)  # the last row includes it
    return {"force_link": link, "force_world": world, "force_basis": wrench, "force_point": point, "force_signal": index,
            "force_actuator": -1, "force_from": force.start, "force_until": math.inf if to_the_end else force.end}


# initial state ------------------------------------------------------------------------------------------------------

def _with_initial_state(scenario: Scenario, problem: InitialValueProblem) -> tuple[InitialValueProblem, list[LiedynWarning]]:
    """Return the problem with its initial state, and warnings about it."""
    model, q, v = problem.model, problem.q, problem.v
    if problem.law is not None:
        start_on_reference(problem, q, v)
    if problem.joint_laws is not None:
        _start_on_references(problem, problem.joint_laws, q, v)
    ended_q, ended_v, warnings = recorded_initial_state(scenario.initial_from, model)
    laws = problem.joint_laws                                  # joints on their references keep these where they can
    on_reference = np.zeros(model.nv, dtype=bool) if laws is None else laws.driven & (laws.signal >= 0)
    guesses = _guesses(scenario, problem, on_reference)
    rules_q = write_values(q, scenario.initial_q, model, model.q_index, {**ended_q, **guesses})
    rules_v = write_values(v, scenario.initial_v, model, model.v_index, ended_v)
    warnings += normalize_quaternions(q, rules_q, model)
    for rules, x, index in (rules_q, q, model.q_index), (rules_v, v, model.v_index):
        for name, rule in rules.items():
            _check_size(x[index(name)], rule.place)
    rules_q = {name: rule for name, rule in rules_q.items() if rule is not guesses.get(name)}        # what the scenario states
    initial, motion = (q, v), prescribed_state(problem, 0.0, q, v)
    for prescribed in prescribed_motions(problem):                            # start on the prescribed motion
        displacements, at_position = prescribed.mismatch(initial, motion), (True, prescribed.is_pose)
        for x, begins, part, rules, displacement, level in zip(initial, motion, (prescribed.q, prescribed.v), (rules_q, rules_v),
                                                               displacements, at_position, strict=True):
            rule = rules.get(prescribed.joint)
            if rule and displacement > _MOTION_TOLERANCE:
                raise ScenarioError("the initial value contradicts the prescribed motion: "
                                    f"{prescribed.name} is prescribed{' at position level' * level}", place=rule.place,
                                    found=list(rule.value) if prescribed.is_pose else float(x[part.start]),
                                    expected=f"{prescribed.format(begins[part])}, or no value")
            x[part] = begins[part]
    if problem.constraints is not None:
        given_q, given_v = (_given_masks(model, *rules) for rules in ((rules_q, ended_q), (rules_v, ended_v)))
        unchanged = joint_mask(bind_joints(scenario.initial_keep, model), model)
        q, v, more = close_initial_state(scenario, problem, problem.constraints.tolerance, given_q, given_v, on_reference,
                                         unchanged)
        warnings += more
    started = replace(problem, q=q, v=v)
    check_joints_of_loop_laws(started, scenario.control.place if scenario.control else Place())
    return started, warnings


def _guesses(scenario: Scenario, problem: InitialValueProblem, on_reference: Mask) -> dict[str, Rule]:
    """Return the guess of each joint whose position nothing else gives.

    Raises ScenarioError for guesses without any such joint, and for `guess` and `keep` of a robot without constraints.
    """
    model, rules = problem.model, scenario.initial_guess
    for key, each in (("guess", rules), ("keep", scenario.initial_keep)):
        if each and problem.constraints is None:
            raise ScenarioError(f"{key} has no effect: the robot has no constraints", place=each[0].place,
                                expected="loops, couplings or a mimic in its file")
    other = (problem.schedule.level == POSITION) | on_reference | joint_mask(bind_joints(scenario.initial_q, model), model)
    bound = bind_joints(rules, model)
    guesses = {name: rule for name, rule in bound.items() if not other[model.v_index(name)].any()}
    for rule in rules:
        if all(used is not rule for used in guesses.values()):
            names = [name for name, used in bound.items() if used is rule] or [rule.pattern]
            raise ScenarioError("the guess has no effect: initial.q, a prescribed motion, a reference or another guess gives "
                                f"the position of {list_names(names, _MAX_NAMES)}", place=rule.place, expected="no guess")
    return guesses


def _given_masks(model: Model, rules: Mapping[str, Rule], start: Mapping[str, Rule]) -> tuple[Mask, Mask]:
    """Return the masks (nv,) of all coordinates with rules, and of those whose rules are not of `start`, if there are any."""
    stated = {name for name, rule in rules.items() if rule is not start.get(name)}
    return joint_mask(rules, model), joint_mask(stated or rules, model)


def _check_size(values: Array, place: Place) -> None:
    """Raise ScenarioError for initial values that are too large to be meaningful."""
    large = values[~(np.abs(values) < STATE_LIMIT)]
    if large.size:
        raise ScenarioError("the initial value is too large", place=place, found=float(large[0]),
                            expected=f"less than {STATE_LIMIT:g}")


def _start_on_references(problem: InitialValueProblem, laws: JointLaws, q: Array, v: Array) -> None:
    """Write the positions and velocities of the reference motions of computed torque."""
    for k in np.flatnonzero(laws.driven & (laws.signal >= 0)):
        x, dx, ddx = read_signal(problem.signals, laws.signal[k], 0.0, q, v)
        if not np.isfinite([x, dx, ddx]).all():
            raise ScenarioError(f"the {problem.signal_names[laws.signal[k]]} does not have two finite derivatives at t = 0",
                                place=problem.signal_locations[laws.signal[k]])
        q[problem.schedule.q_of_v[k]], v[k] = x, dx
