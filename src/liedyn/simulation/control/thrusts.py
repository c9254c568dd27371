"""Thrusts of actuators as inputs of control laws: wrenches, limits, setpoints and derivatives.

The inputs of a robot are its nv coordinates, then its actuators. Input nv + j is the thrust of actuator j.
"""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from liedyn.arrays import Array, Integers, Mask
from liedyn.codegen.rhs import read_signal
from liedyn.dynamics.kinematics import jacobian
from liedyn.errors import Place, ScenarioError, WarningLog
from liedyn.integrators.problem import InitialValueProblem
from liedyn.io.scenarios.scenario import ROBOT_LIMITS, Rule, Scenario
from liedyn.kernels.simulation.joint_laws import JointLaws
from liedyn.model.description import Actuator
from liedyn.model.model import Model
from liedyn.simulation.control.control_law import describe_rows
from liedyn.simulation.name_binding import bind_rules
from liedyn.simulation.signals.signal_compiler import SignalCompiler, SignalPurpose
from liedyn.simulation.trajectory_columns import thrust_names

if TYPE_CHECKING:
    from liedyn.simulation.segment_problems import RunSegment  # imports the module of the laws

_LIMIT_TOLERANCE = 1e-12         # of the range of the limits


def thrust_wrench(actuator: Actuator) -> Array:
    """Return the wrench (6,) [m; f] of a thrust of 1 N, in the frame of the actuator's link."""
    axis = np.array(actuator.axis) / np.linalg.norm(actuator.axis)
    return np.concatenate([np.cross(actuator.position, axis) + actuator.torque_ratio * axis, axis])


def thrust_basis(model: Model) -> Array:
    """Return the wrenches (actuators, 6) of thrusts of 1 N, in the frames of their links."""
    return np.array([thrust_wrench(actuator) for actuator in model.description.actuators]).reshape(-1, 6)


def thrust_columns(model: Model, q: Array) -> Array:
    """Return the generalized forces (nv, actuators) of thrusts of 1 N."""
    columns = [jacobian(model, q, actuator.link).T @ thrust_wrench(actuator) for actuator in model.description.actuators]
    return np.column_stack(columns) if columns else np.zeros((model.nv, 0))


def input_count(model: Model) -> int:
    """Return the number of inputs: coordinates and actuators."""
    return model.nv + len(model.description.actuators)


def input_name(model: Model, k: int) -> str:
    """Return the name of the coordinate or the thrust of input k."""
    return model.v_names[k] if k < model.nv else thrust_names(model)[k - model.nv]


def driven_actuators(scenario: Scenario, model: Model, controlled: Mask | None) -> list[int]:
    """Return the actuators with a signal, a row of a gain, or a sampled controller (mask (inputs,)), in their order."""
    names = [actuator.name for actuator in model.description.actuators]
    used = set(bind_rules(scenario.actuators, names, "actuator"))
    rows = () if scenario.control is None else scenario.control.rows
    return [j for j, (name, thrust) in enumerate(zip(names, thrust_names(model), strict=True))
            if name in used or thrust in rows or (controlled is not None and controlled[model.nv + j])]


# Limits -----------------------------------------------------------------------------------------------------------------

def split_limit_rules(scenario: Scenario, model: Model) -> tuple[list[Rule], list[Rule]]:
    """Return the rules of `saturate` for joints and those for thrusts. Limits of the robot file for all are in both."""
    thrusts = [rule for rule in scenario.saturate if rule.pattern.startswith("thrust.") and rule.pattern not in model.joint_names]
    joints = [rule for rule in scenario.saturate if rule not in thrusts]
    return joints, thrusts + [rule for rule in joints if rule.pattern == "*" and rule.value == ROBOT_LIMITS and
                              model.description.actuators]


def thrust_limits(scenario: Scenario, model: Model) -> dict[int, tuple[float, float, Place]]:
    """Return the minimum, the maximum and the place of the limits of thrusts, by actuator.

    Raises ScenarioError for an unknown actuator, and for a named one whose limits the robot file does not define.
    """
    limits: dict[int, tuple[float, float, Place]] = {}
    names = thrust_names(model)
    for name, rule in bind_rules(split_limit_rules(scenario, model)[1], names, "thrust").items():
        actuator = model.description.actuators[names.index(name)]
        if isinstance(rule.value, tuple):
            low, high = rule.value
            limits[names.index(name)] = float(low), float(high), rule.place                         # type: ignore[arg-type]
        elif isinstance(rule.value, int | float):
            limits[names.index(name)] = -float(rule.value), float(rule.value), rule.place
        elif actuator.limits is not None:
            limits[names.index(name)] = *actuator.limits, rule.place
        elif rule.pattern == name:
            raise ScenarioError(f"actuator {actuator.name} has no limits in the robot file", place=rule.place, found=ROBOT_LIMITS,
                                expected="[minimum, maximum], or a number [N]")
    return limits


def with_thrust_limits(laws: JointLaws, limits: Mapping[int, tuple[float, float, Place]], compiler: SignalCompiler) -> JointLaws:
    """Return the laws with these limits of thrusts, by actuator, as signals."""
    limit, top, bottom = laws.limit.copy(), laws.top.copy(), laws.bottom.copy()
    for j, (low, high, _) in limits.items():
        k = compiler.model.nv + j
        purpose = SignalPurpose(f"limit of {input_name(compiler.model, k)}", unit="N")
        top[k], bottom[k] = compiler.add_program(high, purpose), compiler.add_program(low, purpose)
        limit[k] = max(abs(low), abs(high))
    return laws._replace(limit=limit, top=top, bottom=bottom)


def thrust_warnings(segments: Sequence[RunSegment], model: Model) -> WarningLog:
    """Return warnings about thrusts at their limits at output times."""
    warnings, times, names = WarningLog(), np.concatenate([segment.record.t for segment in segments]), thrust_names(model)
    first = segments[0].problem                                  # actuators and their limits are those of all segments
    thrusts = np.concatenate([segment.problem.split_wrench(segment.record.wrench)[1] for segment in segments])
    for j, thrust in zip(first.thrusters, thrusts.T, strict=True):
        low, high = thrust_range(first, int(j))
        if not math.isfinite(high - low):
            continue
        tolerance = _LIMIT_TOLERANCE * (high - low)
        for kind, bound, mask in (("minimum", low, thrust <= low + tolerance), ("maximum", high, thrust >= high - tolerance)):
            if mask.any():
                warnings.add("force-limited", f"{names[j]} is at its {kind} of {bound:g} N {describe_rows(times, mask)}")
    return warnings


def thrust_range(problem: InitialValueProblem, j: int) -> tuple[float, float]:
    """Return the minimum and the maximum thrust of actuator j, also where a sampled controller limits it."""
    for laws, signals in [(problem.joint_laws, problem.signals)] + (
            [] if problem.sampled is None else [(problem.sampled.law.joint_laws, problem.sampled.law.signals)]):
        k = problem.model.nv + j
        if laws is not None and laws.top[k] >= 0:
            low, high = (read_signal(signals, x[k], 0.0, problem.q, problem.v)[0] for x in (laws.bottom, laws.top))
            return low, high
    return -math.inf, math.inf


# State feedback ---------------------------------------------------------------------------------------------------------

def setpoint_thrusts(model: Model, q: Array, missing: Array, free: Mask, actuators: Integers, sizes: Array) -> Array:
    """Return the thrusts (m,) of `actuators`, of minimum norm, that supply the generalized forces that are missing at q.

    missing, free   (nv,) forces, and the coordinates that only thrusts can supply
    sizes           (nv,) scales of forces
    """
    columns = (thrust_columns(model, q)[:, actuators] / sizes[:, None])[free]
    return np.asarray(np.linalg.lstsq(columns, (missing / sizes)[free], rcond=None)[0], dtype=float)
