"""The scenario's `control` for joints that are not elastic, `gravity` of pd laws, and `saturate`, bound to a model.

See `kernels.simulation.joint_laws`; for motors of elastic joints `simulation.control.elastic_joint_control`.
"""
from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from liedyn.arrays import Array, Integers, Mask
from liedyn.codegen.rhs import read_signal
from liedyn.dynamics.constraints.couplings import reduced_model
from liedyn.errors import Place, ScenarioError, WarningLog
from liedyn.integrators.problem import InitialValueProblem
from liedyn.io.scenarios.scenario import ROBOT_LIMITS, Pd, Prescribe, Rule, Scenario
from liedyn.kernels.couplings import coupling_views
from liedyn.kernels.hybrid_dynamics import coupled_motion_workspace_size
from liedyn.kernels.simulation.joint_laws import JointLaws
from liedyn.kernels.simulation.signals import TORQUE
from liedyn.model.model import Model
from liedyn.simulation.control.control_law import LawBinder, LawContext, check_can_move, describe_rows, law_model
from liedyn.simulation.control.elastic_joint_control import is_motor_law
from liedyn.simulation.control.motors import BoundMotor, bind_motors, driving_forces, gear_factors, gear_losses
from liedyn.simulation.control.rigid_joint_laws import bind_computed_torque, bind_gravity_compensation, bind_state_feedback
from liedyn.simulation.control.slotine_li_control import bind_slotine_li
from liedyn.simulation.control.task_space_control import Tracking, bind_task_space, signal_values, task_tracking
from liedyn.simulation.control.thrusts import input_name, split_limit_rules, thrust_limits, with_thrust_limits
from liedyn.simulation.name_binding import bind_joints, joint_mask, phase_rules
from liedyn.simulation.signals.curves import ramp
from liedyn.simulation.signals.signal_compiler import SignalCompiler, SignalPurpose

if TYPE_CHECKING:
    from liedyn.simulation.segment_problems import RunSegment  # imports this module

# laws -------------------------------------------------------------------------------------------------------------------

_LIMIT_TOLERANCE = 1e-12        # of the limit: a saturated force equals the limit to the rounding of the sum of its parts


# Laws for the motors of elastic joints are in `elastic_joint_control`. CONTRIBUTING.md shows how a law is added.
LAW_BINDERS: dict[str, LawBinder] = {"computed_torque": bind_computed_torque, "task_space": bind_task_space,
                                     "slotine_li": bind_slotine_li, "gravity_compensation": bind_gravity_compensation,
                                     "state_feedback": bind_state_feedback}

_LOOP_LAWS = "computed_torque", "gravity_compensation"         # laws that support robots with loops
_TREE_LAWS = "task_space", "slotine_li"                        # laws that do not support couplings


def bind_laws(scenario: Scenario, model: Model, compiler: SignalCompiler, actuation: Mapping[str, np.ndarray],
              thrust_signals: Mapping[int, int], rules: Mapping[str, Rule], controlled: Mask | None = None,
              first_order_hold: bool = False) -> JointLaws | None:
    """Return the joint laws of a phase, or None if the scenario has no laws and no limits.

    A law omits joints while they are prescribed or locked. Raises ScenarioError for laws that the robot or a joint does not
    support, for joints that are prescribed in all phases, and for limits that the robot file does not define.

    actuation         arrays of `simulation.input_schedule` for each coordinate
    thrust_signals    signals of the thrusts, by actuator
    rules             rule of each joint in this phase
    controlled        (inputs,) bool, those of a sampled controller, which limits its torques and thrusts itself
    first_order_hold  whether the sampled torque changes between samples, where it may exceed the limits
    """
    control = scenario.control if scenario.control and not is_motor_law(scenario.control, model) else None
    gravity, prescribed = _pd_with_gravity(rules, model), actuation["level"] != TORQUE
    always = _always_prescribed(scenario, model)
    limit, places = _limits(scenario, model, always)
    free = [motor for motor in bind_motors(scenario, model) if not prescribed[motor.k]]
    motors = {motor.k: motor for motor in free if motor.motor.has_limit}
    gears = [motor for motor in free if motor.motor.gear_efficiency != (1.0, 1.0)]
    unlimited, bounds = prescribed.copy(), {j: x for j, x in thrust_limits(scenario, model).items() if j in thrust_signals}
    if controlled is not None and not first_order_hold:        # the controller limits what it computes
        no_torque = compiler.add_program(0.0, SignalPurpose("no torque"))
        unlimited |= controlled[:model.nv] & (actuation["target"] < 0) & (actuation["signal"] == no_torque)
        bounds = {j: x for j, x in bounds.items() if not controlled[model.nv + j]}
    limit[unlimited] = np.inf
    places = {k: place for k, place in places.items() if not unlimited[k]}
    places |= {k: motor.rule.place for k, motor in motors.items()} | {model.nv + j: x[2] for j, x in bounds.items()}
    if control is None and controlled is None and not gravity.any() and not places and not gears:
        return None
    has_loops, driven = not model.has_only_linear_couplings, [x.name for x in model.constraints if x.driven]
    if driven and (gravity.any() or (control and control.law in _LOOP_LAWS)):
        raise ScenarioError(f"{control.law if control else 'gravity of a pd law'} does not support driven loops",
                            place=control.place if control else Place(), found=driven[0])
    if model.nc and control and (control.law in _TREE_LAWS or (has_loops and control.law not in _LOOP_LAWS)):
        kind = "couplings" if not has_loops else "nonlinear couplings" if model.has_only_couplings else "loops"
        raise ScenarioError(f"{control.law} does not support robots with {kind}",
                            place=control.place, found=model.constraints[0].name)
    computing = law_model(scenario.control, model)
    laws = empty_joint_laws(computing, limit, prescribed, gravity)
    if computing is not model:
        laws = laws._replace(model_index=computing._arrays.index, model_constants=computing._arrays.constants,
                             model_passive=np.array([scenario.passive and computing.has_passive_forces]))
    if controlled is not None:
        torque = ramp() if first_order_hold else 1.0
        laws = laws._replace(torque_signal=np.array([
            compiler.add_program(torque, SignalPurpose(f"held torque of {input_name(model, k)}"), exclusive=True) if has else -1
            for k, has in enumerate(controlled)]))
    laws = with_thrust_limits(_with_gears(_with_motor_limits(laws, motors, compiler), gears), bounds, compiler)
    if control is not None:
        thrusts = np.zeros(len(model.description.actuators))
        for j, signal in thrust_signals.items():
            thrusts[j] = compiler.constant_value(signal) or 0.0
        context = LawContext(control, model, computing, compiler, scenario.passive, always, prescribed, thrusts)
        laws = LAW_BINDERS[control.law](context, laws)
    compensated_twice = gravity & (laws.driven | (laws.row[:model.nv] >= 0)) & bool(np.any(model.gravity))
    if control is not None and compensated_twice.any():
        names = ", ".join(name for name, both in zip(model.v_names, compensated_twice, strict=True) if both)
        compiler.warnings.add("gravity-twice",
                              f"gravity of {names} is compensated twice, by `gravity: true` of the pd law and by control: "
                              f"{control.law}", place=control.place)
    _check_gravity_of_followers(model, laws, control.place if control else Place())
    active_laws = np.array([laws.gravity.any(), (laws.row >= 0).any(), laws.driven.any() and laws.slotine_li is None])
    laws = with_couplings(computing, laws._replace(active_laws=active_laws))
    return _with_switches(laws, actuation["integral"], places, {gear.k: gear.rule.place for gear in gears}, compiler)


def _check_gravity_of_followers(model: Model, laws: JointLaws, place: Place) -> None:
    """Raise ScenarioError if the gravity of a coordinate is compensated that follows others whose gravity is not."""
    if not (model.nc and model.has_only_linear_couplings and laws.gravity.any()):
        return
    elimination = model.elimination()
    for f in np.flatnonzero(laws.gravity):
        moving = np.flatnonzero(elimination.projection[f])
        if f in elimination.follower and moving.size and not (laws.gravity | laws.prescribed)[moving].all():
            drivers = ", ".join(model.v_names[k] for k in moving)
            raise ScenarioError(f"gravity compensation of {model.v_names[f]}, which follows {drivers}, has no effect: forces of "
                                "followers are those of the joints that move them", place=place, expected=f"the joints {drivers}")


def with_couplings(model: Model, laws: JointLaws) -> JointLaws:
    """Return the laws with the couplings of the robot for `laws.prescribed`, and the memory that they need."""
    if not model.nc or not model.has_only_linear_couplings:
        return laws._replace(acceleration_known=laws.prescribed)
    reduced = reduced_model(model, "control", prescribed=np.ascontiguousarray(laws.prescribed))
    couplings = coupling_views.py_func(reduced.model.index, reduced.model.constants)
    return laws._replace(acceleration_known=reduced.mask, couplings=couplings,
                         memory=np.zeros(coupled_motion_workspace_size(model.n_bodies, model.nv, couplings)))


def empty_joint_laws(model: Model, limit: Array, prescribed: Mask, gravity: Mask) -> JointLaws:
    """Return joint laws without any law. limit, prescribed, gravity: (nv,), see `JointLaws`. Thrusts have no limits."""
    nv, none, actuators = model.nv, np.zeros(0), len(model.description.actuators)
    row, torque_signal, switch, top, bottom = (np.full(nv + actuators, -1) for _ in range(5))
    return JointLaws(np.zeros(3, dtype=bool), gravity, row, none, np.zeros(model.nq), np.zeros(nv), none,
                     np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(nv, dtype=bool), prescribed.copy(),
                     np.full(nv, -1), np.zeros(2), torque_signal,
                     np.append(limit, np.full(actuators, np.inf)), switch, top, bottom,
                     integral=np.full(nv, -1), antiwindup_switch=np.full(nv, -1),
                     model_index=np.zeros(0, dtype=np.int64), model_constants=none, model_passive=np.zeros(1, dtype=bool),
                     gear_loss=np.zeros(nv), gear_gain=np.zeros(nv), gear_switch=np.full(nv, -1),
                     all=np.ones(nv, dtype=bool), v=np.zeros(nv), a=np.zeros(nv), tau=np.zeros(nv), x=np.zeros(nv), feedback=none,
                     reference=np.zeros(model.nq),
                     memory=np.zeros(coupled_motion_workspace_size(model.n_bodies, nv, None)), none=none,
                     acceleration_known=prescribed.copy(), couplings=None, task=None, slotine_li=None,
                     gravity_loops=None, computed_loops=None)


def _with_switches(laws: JointLaws, integrals: Integers, places: dict[int, Place], gears: dict[int, Place],
                   compiler: SignalCompiler) -> JointLaws:
    """Return the laws with two switches of the state for each limit, each integral of a limited coordinate, and each gear.

    places, gears: locations of the limits in the file by input, and of gears with losses by coordinate.
    """
    nv = len(laws.v)
    switch, antiwindup_switch, integral, gear_switch = (np.full(n, -1) for n in (len(laws.limit), nv, nv, nv))
    for k in sorted(gears):
        gear_switch[k] = compiler.reserve_switches(2, f"gear of {compiler.model.v_names[k]}", gears[k])
    for k in sorted(places):
        name = input_name(compiler.model, k)
        switch[k] = compiler.reserve_switches(2, f"limit of the force of {name}" if k < len(laws.v) else f"limit of {name}",
                                              places[k])
    for j, k in enumerate(integrals):
        if k in places:
            integral[k], antiwindup_switch[k] = j, compiler.reserve_switches(2, f"integral of {compiler.model.v_names[k]}",
                                                                             places[k])
    return laws._replace(switch=switch, antiwindup_switch=antiwindup_switch, integral=integral, gear_switch=gear_switch)


def _with_motor_limits(laws: JointLaws, motors: dict[int, BoundMotor], compiler: SignalCompiler) -> JointLaws:
    """Return the laws with the limits of motors as signals; `limit` is then at most the maximum over all speeds."""
    limit, top, bottom = laws.limit.copy(), laws.top.copy(), laws.bottom.copy()
    for k, motor in motors.items():
        purpose = replace(compiler.joint_purpose("torque", k), name=f"motor of {motor.joint}")
        programs = motor.limits(float(limit[k]))
        top[k], bottom[k] = (compiler.add_program(program, purpose, motor.rule.place) for program in programs)
        limit[k] = min(limit[k], motor.max_force)
    return laws._replace(limit=limit, top=top, bottom=bottom)


def _with_gears(laws: JointLaws, gears: Sequence[BoundMotor]) -> JointLaws:
    """Return the laws with the losses of gears."""
    loss, gain = laws.gear_loss.copy(), laws.gear_gain.copy()
    for gear in gears:
        loss[gear.k], gain[gear.k] = gear_losses(gear.motor.gear_efficiency)
    return laws._replace(gear_loss=loss, gear_gain=gain)


def forces_before_gears(laws: JointLaws, tau: Array, v: Array) -> Array:
    """Return the generalized forces before the losses of gears (nv,) at velocities v."""
    driving, braking = gear_factors(laws.gear_loss, laws.gear_gain, v)
    return np.asarray(tau / np.where(tau >= 0.0, driving, braking))


def _pd_with_gravity(rules: Mapping[str, Rule], model: Model) -> Mask:
    """Return the mask (nv,) of joints with a pd law with `gravity`. Raises ScenarioError for a named joint that cannot move."""
    compensated = {name: rule for name, rule in rules.items() if isinstance(rule.value, Pd) and rule.value.gravity}
    for name, rule in compensated.items():
        if rule.pattern == name:
            check_can_move(model, model.joint(name), rule.place)
    return joint_mask([*compensated], model)


def _always_prescribed(scenario: Scenario, model: Model) -> Mask:
    """Return the mask (nv,) of coordinates that are prescribed in all phases."""
    names: list[str | None] = [phase.name for phase in scenario.phases]
    phases = [phase_rules(scenario, model, name) for name in names or [None]]
    return joint_mask([name for name in model.joint_names
                       if all(name in rules and isinstance(rules[name].value, Prescribe) for rules in phases)], model)


# limits ---------------------------------------------------------------------------------------------------------------
def _limits(scenario: Scenario, model: Model, prescribed: Mask) -> tuple[Array, dict[int, Place]]:
    """Return the limits (nv,), infinite if there is none, and the locations of the finite ones, by coordinate."""
    limit = np.full(model.nv, np.inf)
    places: dict[int, Place] = {}
    for name, rule in bind_joints(split_limit_rules(scenario, model)[0], model).items():
        joint, named = model.joint(name), rule.pattern == name
        if joint.type == "free" or prescribed[joint.v].all():
            if named:
                why = "it is free and has no motor" if joint.type == "free" else \
                    "it is prescribed, its force follows from the motion"
                raise ScenarioError(f"the force of {name} cannot be limited: {why}", place=rule.place)
            continue
        for k in range(joint.v.start, joint.v.stop):
            if isinstance(rule.value, tuple):
                raise ScenarioError(f"the force of {name} has one limit for both directions", place=rule.place,
                                    found=list(rule.value), expected="a number [N m or N]")
            value = float(rule.value if isinstance(rule.value, int | float) else model.effort_limit[k])      # or ROBOT_LIMITS
            if 0.0 < value < math.inf:
                limit[k], places[k] = value, rule.place
            elif named:
                raise ScenarioError(f"joint {name} has no effort limit in the robot file", place=rule.place, found=ROBOT_LIMITS,
                                    expected="a number [N m or N]")
    return limit, places


def saturation_warnings(segments: Sequence[RunSegment], model: Model, motors: Iterable[BoundMotor], stop_forces: Array | None
                        ) -> WarningLog:
    """Return warnings about forces at their limits at output times.

    segments     of the run
    motors       whose curves are other limits (`motor_warnings`)
    stop_forces  (N, nv) part of the recorded tau that stops contribute; None: zero
    """
    warnings, maxima = WarningLog(), np.full(model.nv, np.inf)
    for motor in motors:
        maxima[motor.k] = motor.max_force
    limits = np.array([_limits_without_curve(segment.problem, maxima) for segment in segments])
    times = np.concatenate([segment.record.t for segment in segments])
    for k in np.flatnonzero(np.isfinite(limits).any(axis=0)):
        forces = driving_forces(segments, int(k), stop_forces)
        at_limit = np.concatenate([np.abs(_force_before_gear(segment, tau, int(k))) >= limit * (1 - _LIMIT_TOLERANCE)
                                   for segment, tau, limit in zip(segments, forces, limits[:, k], strict=True)])
        if at_limit.any():
            unit = {"rad": "N m", "m": "N"}[model.v_units[k]]
            warnings.add("force-limited",
                         f"the force of {model.v_names[k]} is at its limit of {limits[:, k].min():g} {unit} "
                         f"{describe_rows(times, at_limit)}")
    return warnings


def _force_before_gear(segment: RunSegment, tau: Array, k: int) -> Array:
    """Return the forces (N,) of coordinate k before the losses of its gear."""
    laws = segment.problem.joint_laws
    if laws is None:
        return tau
    driving, braking = gear_factors(laws.gear_loss[k], laws.gear_gain[k], segment.record.v[:, k])
    return np.asarray(tau / np.where(tau >= 0.0, driving, braking))


def _limits_without_curve(problem: InitialValueProblem, maxima: Array) -> Array:
    """Return the limits (nv,) of generalized forces, infinite where only the curve of a motor limits them.

    maxima: (nv,) maxima of the curves
    """
    laws, sampled = problem.joint_laws, problem.sampled
    if laws is None:
        return np.full(problem.model.nv, np.inf)
    limit = (laws.limit if sampled is None else sampled.limit)[:problem.model.nv]
    return np.where(limit < maxima, limit, np.inf)


def force_limits(problem: InitialValueProblem, limit: Array, t: float, q: Array, v: Array) -> tuple[Array, Array]:
    """Return the minimum and the maximum generalized forces and thrusts (inputs,) at a state [N m | N].

    limit: (inputs,) limits of inputs without a motor curve.
    """
    bottom, top, laws = -limit, limit.copy(), problem.joint_laws
    if laws is None:
        return bottom, top
    for k in np.flatnonzero(laws.top >= 0):
        bottom[k], top[k] = (read_signal(problem.signals, limits[k], t, q, v)[0] for limits in (laws.bottom, laws.top))
    return bottom, top


# tracking -------------------------------------------------------------------------------------------------------------
def compute_tracking(problem: InitialValueProblem, times: Array, q: Array, final: bool = True) -> Tracking | None:
    """Return the desired motions and those of the joints at output times, or None if there are no desired motions.

    final: whether the last time is the end of the run.
    """
    model, law, sampled, t = problem.model, problem.law, problem.sampled, np.array(times)
    if final:
        t[-1] = np.nextafter(t[-1], -np.inf)                   # the end of the run belongs to the interval before it
    problem = problem if sampled is None else sampled.law
    laws = problem.joint_laws
    if laws is not None and laws.task is not None:
        return task_tracking(problem, laws.task, t, q)
    if law is not None:
        k, signal, link = law.motor, law.signal, q[:, law.motor] + q[:, law.spring]
    else:                                                      # includes joints that are prescribed or locked in some phases
        signal = sampled.references if sampled and sampled.is_whole_run else np.zeros(0) if laws is None else laws.signal
        k = np.flatnonzero(signal >= 0)
        signal, link = signal[k], q[:, problem.schedule.q_of_v[k]]
    names, units = (tuple(texts[i] for i in k) for texts in (model.v_names, model.v_units))
    return Tracking(names, units, link, signal_values(problem, signal, t)) if len(k) else None
