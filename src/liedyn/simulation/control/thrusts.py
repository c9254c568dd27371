"""Thrusts of actuators as inputs of control laws: wrenches, limits, setpoints and derivatives.

The inputs of a robot are its nv coordinates, then its actuators. Input nv + j is the thrust of actuator j.
"""
from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from liedyn.arrays import Array, Mask
from liedyn.codegen.rhs import read_signal
from liedyn.dynamics.kinematics import jacobian
from liedyn.errors import Place, ScenarioError, UsageError, WarningLog
from liedyn.integrators.problem import InitialValueProblem
from liedyn.io.scenarios.scenario import ROBOT_LIMITS, Rule, Scenario
from liedyn.joints.joint_model import tree_views
from liedyn.kernels.simulation.joint_laws import JointLaws
from liedyn.model.description import WORLD, Actuator
from liedyn.model.model import Model
from liedyn.model.spatial import adjoint, inverse, unit_force
from liedyn.simulation.control.control_law import describe_rows
from liedyn.simulation.limits import LimitViolation, limit_violation, limit_warnings
from liedyn.simulation.name_binding import bind_rules
from liedyn.simulation.signals.signal_compiler import SignalCompiler, SignalPurpose
from liedyn.simulation.trajectory_columns import thrust_names

if TYPE_CHECKING:
    from liedyn.dynamics.variants import Variants
    from liedyn.simulation.segment_problems import RunSegment  # imports the module of the laws

_LIMIT_TOLERANCE = 1e-12         # of the range of the limits


def thrust_wrenches(model: Model, actuator: Actuator) -> dict[str, Array]:
    """Return the wrenches (6,) [m; f] of a thrust of 1 N by link, in the frames of the links.

    The force of a tendon on a joint acts on its child, and back on its parent. Both wrenches are along the axis of the joint,
    whose motion does not change them, so that they are constant in both links.
    """
    if not actuator.joints:
        axis = np.array(actuator.axis) / np.linalg.norm(actuator.axis)
        return {actuator.link: np.concatenate([np.cross(actuator.position, axis) + actuator.torque_ratio * axis, axis])}
    wrenches: dict[str, Array] = {}
    for joint, factor in ((model.joint(name), factor) for name, factor in actuator.joints):
        assert joint.screws is not None
        wrench = factor * unit_force(joint.screws[0])
        for link, of_link in ((joint.child, wrench), (joint.parent, -adjoint(inverse(joint.home)).T @ wrench)):
            if link != WORLD:
                wrenches[link] = wrenches.get(link, np.zeros(6)) + of_link
    return wrenches


def thrust_entries(model: Model, actuators: Iterable[int]) -> list[tuple[int, int, Array]]:
    """Return actuator, link and wrench (6,) of a thrust of 1 N, for each link on which these actuators act."""
    return [(j, model.link_index(link), wrench) for j in actuators
            for link, wrench in thrust_wrenches(model, model.description.actuators[j]).items()]


def check_varying_constants(model: Model, places: Sequence[int]) -> None:
    """Raise UsageError if constants of the model that vary change wrenches of tendons, which depend on axes and origins."""
    tree = tree_views.py_func(model.index, np.arange(model.constants.size))
    S, T0, link_pose = tree.S.reshape(-1, 2), tree.T0.reshape(-1, 12), tree.link_pose.reshape(-1, 12)
    for actuator in model.description.actuators:
        for joint in (model.joint(name) for name, _ in actuator.joints):
            constants_of = {"axis": np.concatenate([S[joint.body], link_pose[model.link_index(joint.child)]])}
            if joint.parent != WORLD:                      # which is pulled; a moment depends on the rotation only
                assert joint.screws is not None
                constants_of["origin"] = T0[joint.body, :9 if joint.screws[0, :3].any() else 12]
            for kind, constants in constants_of.items():
                if np.isin(constants, places).any():
                    raise UsageError(f"the {kind} of joint {joint.name} varies, on which the wrenches of tendon {actuator.name} "
                                     "depend: expected the same for all robots, or a rollout of each robot")


def check_variants(variants: Variants) -> None:
    """Raise UsageError for robots on which thrusts do not act alike."""
    if variants.other_actuators is not None:
        raise UsageError(f"robot {variants.other_actuators} of the variants has other actuators than robot 0: expected the same "
                         "actuators if thrusts act, or a rollout of each robot")
    check_varying_constants(variants.model, variants.varying[0])


def thrust_columns(model: Model, q: Array) -> Array:
    """Return the generalized forces (nv, actuators) of thrusts of 1 N."""
    columns = np.zeros((model.nv, len(model.description.actuators)))
    for j, actuator in enumerate(model.description.actuators):
        for name, factor in actuator.joints:
            columns[model.v_index(name), j] += factor
        if not actuator.joints:
            columns[:, j] = jacobian(model, q, actuator.link).T @ thrust_wrenches(model, actuator)[actuator.link]
    return columns


def reduced_thrust_columns(model: Model, q: Array) -> Array:
    """Return `thrust_columns` with forces on followers of linear couplings moved to the coordinates that they follow."""
    columns = thrust_columns(model, q)
    return model.elimination().projection.T @ columns if model.constraints and model.has_only_linear_couplings else columns


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
    """Return warnings about thrusts at their limits at output times, and beyond those that do not act."""
    warnings, beyond = WarningLog(), list[LimitViolation]()
    times, names = np.concatenate([segment.record.t for segment in segments]), thrust_names(model)
    first = segments[0].problem                                  # actuators and their limits are those of all segments
    thrusts = np.concatenate([segment.problem.split_wrench(segment.record.wrench)[1] for segment in segments])
    for j, thrust in zip(first.thrusters, thrusts.T, strict=True):
        low, high = thrust_range(first, int(j))
        if not math.isfinite(high - low):
            limits = model.description.actuators[j].limits or (low, high)
            excess = limit_violation(times, names[j], "thrust", "N", thrust, *limits)
            beyond += [excess] if excess else []
            continue
        tolerance = _LIMIT_TOLERANCE * (high - low)
        for kind, bound, mask in (("minimum", low, thrust <= low + tolerance), ("maximum", high, thrust >= high - tolerance)):
            if mask.any():
                warnings.add("force-limited", f"{names[j]} is at its {kind} of {bound:g} N {describe_rows(times, mask)}")
    warnings.extend(limit_warnings(beyond))
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

def setpoint_thrusts(columns: Array, missing: Array, free: Mask, sizes: Array) -> Array:
    """Return the thrusts (m,) of minimum norm that supply the generalized forces that are missing.

    columns         (nv, m) generalized forces of thrusts of 1 N
    missing, free   (nv,) forces, and the coordinates that only thrusts can supply
    sizes           (nv,) scales of forces
    """
    rows = (columns / sizes[:, None])[free]
    return np.asarray(np.linalg.lstsq(rows, (missing / sizes)[free], rcond=None)[0], dtype=float)
