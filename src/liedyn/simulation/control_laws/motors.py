"""Motors of a scenario, bound to a model: rotors' inertia, limits of joint forces by the speed, columns and notes.

A motor of gear n turns n times as fast as its joint, omega = n v, and gives it n times its torque. With the largest torque
T(omega) in the direction of omega, the force tau of the joint is limited by

    -n T(-n v) <= tau <= n T(n v),

T(omega) for omega < 0 being that of a motor that brakes.
"""
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from liedyn.errors import ScenarioError
from liedyn.io.scenarios.motor_keys import Motor
from liedyn.io.scenarios.scenario import Expression, Rule, Scenario
from liedyn.model.build import build
from liedyn.simulation.names import bind_joints

_AT_CURVE = 1e-9         # relative to the largest torque: the limit is computed in another way


@dataclass(frozen=True, eq=False)
class BoundMotor:
    """Of the coordinate k."""

    k: int
    joint: str
    motor: Motor
    rule: Rule

    @property
    def armature(self) -> float:
        """Inertia of the rotor at the joint [kg m^2 | kg]."""
        return self.motor.gear**2 * self.motor.inertia

    @property
    def most(self) -> float:
        """The largest force of the joint [N m | N]; infinite without a curve."""
        return self.motor.gear * max((torque for _, torque in self.motor.curve), default=np.inf)

    def top(self, v):
        """The largest force at velocities v of the joint; the lowest one is -top(-v)."""
        if not self.motor.curve:
            return np.full(np.shape(v), np.inf)
        speeds, torques = np.array(self.motor.curve).T
        return self.motor.gear * np.interp(self.motor.gear * np.asarray(v), speeds, torques)

    def limits(self, also: float) -> tuple[Expression, Expression]:
        """Of the force, expressions of the velocity v of the joint; also: another limit, or infinite."""
        top, bottom = (_broken_line(self.motor, sign) for sign in ("v", "(-v)"))
        if also < np.inf:
            top, bottom = f"min({also!r}, {top})", f"min({also!r}, {bottom})"
        return Expression(top, self.rule.place), Expression(f"-({bottom})", self.rule.place)


def _broken_line(motor: Motor, v: str) -> str:
    """n T(n v): a sum of max(0, v - knot) with the changes of the slope."""
    n, (speeds, torques) = motor.gear, np.array(motor.curve).T
    slopes = np.concatenate([[0.0], n**2 * np.diff(torques) / np.diff(speeds), [0.0]])
    terms = [f"{float(change)!r}*max(0, {v} - {float(speed / n)!r})"
             for change, speed in zip(np.diff(slopes), speeds, strict=True) if change]
    return " + ".join([repr(float(n * torques[0])), *(f"({term})" for term in terms)])


def bind_motors(scenario: Scenario, model) -> list[BoundMotor]:
    """In the order of the model. Raises ScenarioError for joints that have more than one coordinate, or none."""
    found = []
    for name, rule in bind_joints(scenario.motors, model).items():
        v = model.v_index(name)
        if v.stop - v.start == 1:
            found.append(BoundMotor(v.start, name, rule.value, rule))
        elif rule.pattern == name:
            raise ScenarioError(f"joint {name} has {v.stop - v.start} coordinates: motors are for joints of one",
                                place=rule.place)
    return found


def with_rotors(scenario: Scenario, model):
    """The model with the inertia of the motors' rotors. Raises ScenarioError where the robot file gives an armature, too."""
    rotors = {one.joint: one for one in bind_motors(scenario, model) if one.motor.inertia}
    if not rotors:
        return model
    for joint in model.description.joints:
        if joint.name in rotors and joint.coordinates[0].armature:
            raise ScenarioError(f"the robot file gives joint {joint.name} an armature already",
                                place=rotors[joint.name].rule.place, expected="one of the two",
                                found=f"inertia: {rotors[joint.name].motor.inertia:g}, armature: "
                                      f"{joint.coordinates[0].armature:g}")
    return with_armatures(model, {name: one.armature for name, one in rotors.items()})


def armatures_of(scenario: Scenario, model) -> dict[str, float]:
    """Of joints whose motors have rotors with inertia."""
    return {one.joint: one.armature for one in bind_motors(scenario, model) if one.motor.inertia}


def with_armatures(model, armatures: dict[str, float]):
    """The model with other armatures of joints of one coordinate."""
    joints = tuple(replace(joint, coordinates=(replace(joint.coordinates[0], armature=armatures[joint.name]),))
                   if joint.name in armatures else joint for joint in model.description.joints)
    return build(replace(model.description, joints=joints))


def motor_columns(motors: list[BoundMotor], v, tau) -> list[tuple[str, str, np.ndarray]]:
    """(name, unit, (N,) array) of torque and speed of each motor. tau (N, nv): without the forces of stops."""
    return [column for one in motors
            for column in ((f"motor.{one.joint}.torque", "N m", tau[:, one.k] / one.motor.gear),
                           (f"motor.{one.joint}.speed", "rad/s", one.motor.gear * v[:, one.k]))]


def motor_notes(motors: list[BoundMotor], parts, stops=None) -> list[str]:
    """Where motors are at their curves, and where prescribed motions ask for more than they give, at output times. parts: the
    stretches of the run; stops (N, nv): what stops add to tau."""
    notes = []
    for one in (motor for motor in motors if motor.motor.curve):
        k, times, place, at, beyond = one.k, [], 0, [], []
        for part in parts:
            tau, v = part.record.tau[:, k], part.record.v[:, k]
            tau = tau if stops is None else tau - stops[place:place + len(tau), k]
            place += len(tau)
            room = np.minimum(one.top(v) - tau, one.top(-v) + tau) / one.most
            given = bool(part.problem.prescribed[k])
            times.append(part.record.t)
            at.append((room <= _AT_CURVE) & (not given))
            beyond.append((room < -_AT_CURVE) & given)
        times, at, beyond = map(np.concatenate, (times, at, beyond))
        if at.any():
            notes.append(f"the motor of {one.joint} is at its curve from t = {times[np.argmax(at)]:.6g} s, in "
                         f"{np.count_nonzero(at)} of {len(at)} rows")
        if beyond.any():
            notes.append(f"the prescribed motion of {one.joint} needs more torque than the curve of its motor has, from t = "
                         f"{times[np.argmax(beyond)]:.6g} s, in {np.count_nonzero(beyond)} of {len(beyond)} rows")
    return notes
