"""Motors of a scenario, bound to a model: gears, rotors, limits by torque-speed curves, columns and warnings."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from liedyn.arrays import Array
from liedyn.errors import ScenarioError, WarningLog
from liedyn.io.scenarios.scenario import Expression, Motor, Rule, Scenario
from liedyn.model.model import Model, build
from liedyn.simulation.control.control_law import describe_rows
from liedyn.simulation.name_binding import bind_joints

if TYPE_CHECKING:
    from liedyn.simulation.segment_problems import RunSegment  # imports this module

# A motor of gear n turns n times as fast as its joint, omega = n v, and applies n times its torque to it. With the maximum torque
# T(omega) in the direction of omega, the force tau of the joint is limited by
#
#     -n T(-n v) <= tau <= n T(n v),
#
# where T(omega) for omega < 0 is the torque of a braking motor.

_CURVE_TOLERANCE = 1e-9         # relative to the maximum force: the simulation computes the limit by another formula


@dataclass(frozen=True, eq=False)
class BoundMotor:
    """The motor of velocity coordinate k."""

    k: int
    joint: str
    motor: Motor
    rule: Rule

    @property
    def armature(self) -> float:
        """Inertia of the rotor at the joint [kg m^2 | kg]."""
        return self.motor.gear**2 * self.motor.inertia

    @property
    def max_force(self) -> float:
        """The maximum force of the joint [N m | N]; infinite without a curve."""
        return self.motor.gear * max((torque for _, torque in self.motor.curve), default=np.inf)

    def max_force_at(self, v: Array) -> Array:
        """Return the maximum force at velocities v of the joint. The minimum force is -max_force_at(-v)."""
        if not self.motor.curve:
            return np.full(np.shape(v), np.inf)
        speeds, torques = np.array(self.motor.curve).T
        return np.asarray(self.motor.gear * np.interp(self.motor.gear * v, speeds, torques))

    def limits(self, other_limit: float) -> tuple[Expression, Expression]:
        """Return the maximum and the minimum force as expressions of the velocity v of the joint.

        other_limit: another limit of the force, or infinite.
        """
        top, bottom = (_piecewise_linear_expression(self.motor, sign) for sign in ("v", "(-v)"))
        if other_limit < np.inf:
            top, bottom = f"min({other_limit!r}, {top})", f"min({other_limit!r}, {bottom})"
        return Expression(top, place=self.rule.place), Expression(f"-({bottom})", place=self.rule.place)


def _piecewise_linear_expression(motor: Motor, v: str) -> str:
    """Return n T(n v) as the text of an expression: a sum of max(0, v - knot) times the change of slope at each knot."""
    n, (speeds, torques) = motor.gear, np.array(motor.curve).T
    slopes = np.concatenate([[0.0], n**2 * np.diff(torques) / np.diff(speeds), [0.0]])
    terms = [f"{float(change)!r}*max(0, {v} - {float(speed / n)!r})"
             for change, speed in zip(np.diff(slopes), speeds, strict=True) if change]
    return " + ".join([repr(float(n * torques[0])), *(f"({term})" for term in terms)])


def bind_motors(scenario: Scenario, model: Model) -> list[BoundMotor]:
    """Return the motors in the order of the model. Raises ScenarioError for named joints that do not have one coordinate."""
    motors = []
    for name, rule in bind_joints(scenario.motors, model).items():
        v = model.v_index(name)
        if v.stop - v.start == 1:
            assert isinstance(rule.value, Motor)
            motors.append(BoundMotor(v.start, name, rule.value, rule))
        elif rule.pattern == name:
            raise ScenarioError(f"joint {name} has {v.stop - v.start} coordinates: motors require joints with one coordinate",
                                place=rule.place)
    return motors


def add_rotor_inertias(scenario: Scenario, model: Model) -> Model:
    """Return the model with the rotor inertias of the motors as armatures.

    Raises ScenarioError if the robot file defines an armature, too.
    """
    joints = {joint.name: joint for joint in model.description.joints}
    for motor in bind_motors(scenario, model):
        armature = joints[motor.joint].coordinates[0].armature
        if motor.motor.inertia and armature:
            raise ScenarioError(f"joint {motor.joint} already has an armature in the robot file",
                                place=motor.rule.place.at("inertia"), expected="one of the two",
                                found=f"inertia: {motor.motor.inertia:g}, armature: {armature:g}")
    armatures = motor_armatures(scenario, model)
    return with_armatures(model, armatures) if armatures else model


def motor_armatures(scenario: Scenario, model: Model) -> dict[str, float]:
    """Return the armatures [kg m^2 | kg] of joints whose motors have a rotor inertia."""
    return {motor.joint: motor.armature for motor in bind_motors(scenario, model) if motor.motor.inertia}


def with_armatures(model: Model, armatures: dict[str, float]) -> Model:
    """Return the model with these armatures of joints of one coordinate, by name."""
    joints = tuple(replace(joint, coordinates=(replace(joint.coordinates[0], armature=armatures[joint.name]),))
                   if joint.name in armatures else joint for joint in model.description.joints)
    return build(replace(model.description, joints=joints))


def motor_columns(motors: list[BoundMotor], v: Array, tau: Array) -> list[tuple[str, str, Array]]:
    """Return (name, unit, (N,) array) of torque and speed of each motor. tau (N, nv): without the forces of stops."""
    return [column for motor in motors
            for column in ((f"motor.{motor.joint}.torque", "N m", tau[:, motor.k] / motor.motor.gear),
                           (f"motor.{motor.joint}.speed", "rad/s", motor.motor.gear * v[:, motor.k]))]


def motor_warnings(motors: list[BoundMotor], segments: Sequence[RunSegment], stop_forces: Array | None) -> WarningLog:
    """Return warnings about motors at their curves, and about prescribed motions that exceed them, at output times.

    segments     of the run
    stop_forces  (N, nv) part of the recorded tau that stops contribute; None: zero
    """
    warnings, times = WarningLog(), np.concatenate([segment.record.t for segment in segments])
    for motor in (motor for motor in motors if motor.motor.curve):
        at_curve, beyond = [], []
        for segment, tau in zip(segments, driving_forces(segments, motor.k, stop_forces), strict=True):
            v, is_prescribed = segment.record.v[:, motor.k], segment.problem.prescribed[motor.k]
            reserve = np.minimum(motor.max_force_at(v) - tau, motor.max_force_at(-v) + tau) / motor.max_force
            at_curve.append(~is_prescribed & (reserve <= _CURVE_TOLERANCE))
            beyond.append(is_prescribed & (reserve < -_CURVE_TOLERANCE))
        if np.concatenate(at_curve).any():
            warnings.add("motor-limited",
                         f"the motor of {motor.joint} is at its curve {describe_rows(times, np.concatenate(at_curve))}")
        if np.concatenate(beyond).any():
            warnings.add("motor-exceeded",
                         f"the prescribed motion of {motor.joint} requires more torque than the curve of its motor allows, "
                         f"{describe_rows(times, np.concatenate(beyond))}")
    return warnings


def driving_forces(segments: Sequence[RunSegment], k: int, stop_forces: Array | None) -> list[Array]:
    """Return the generalized forces of coordinate k in each segment, without those of stops."""
    forces = [segment.record.tau[:, k] for segment in segments]
    if stop_forces is None:
        return forces
    parts = np.split(stop_forces[:, k], np.cumsum([len(tau) for tau in forces])[:-1])
    return [tau - part for tau, part in zip(forces, parts, strict=True)]
