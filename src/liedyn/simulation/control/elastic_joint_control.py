"""The scenario's `control` for the motors of a robot whose joints are all elastic, bound to its model.

An elastic joint is two joints of the robot file about the same axis. The first is the joint of the motor, with the inertia of the
rotor as its armature. It carries a link without mass, and behind that the joint of the spring, with its stiffness. See
`kernels.simulation.elastic_joint_law`.
"""
from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from liedyn.arrays import Array, Integers
from liedyn.codegen.rhs import state_on_reference
from liedyn.dynamics.scales import model_scales
from liedyn.errors import LiedynWarning, Place, ScenarioError
from liedyn.integrators.problem import InitialValueProblem
from liedyn.io.scenarios.scenario import Control, Rule, Scenario, Signal
from liedyn.kernels.simulation.elastic_joint_law import REFERENCE_COEFFICIENTS, MotorLaw, rigid_workspace_size
from liedyn.kernels.simulation.signal_series import series_stack_size
from liedyn.kernels.simulation.signals import TORQUE
from liedyn.model.description import Coordinate, Joint
from liedyn.model.links import Pose
from liedyn.model.model import Model, build
from liedyn.model.model_joint import ModelJoint
from liedyn.model.spatial import adjoint, pose, rotation_by_rows
from liedyn.simulation.control.control_law import error_gains, law_model
from liedyn.simulation.control.thrusts import thrust_wrenches
from liedyn.simulation.name_binding import bind_rules
from liedyn.simulation.signals.curves import Curve
from liedyn.simulation.signals.signal_compiler import SignalCompiler

_AXIS_TOLERANCE = 1e-9   # rad, and lengths of the robot: axes that differ by less are equal but for the digits of the file
_JUMP = 1e-6             # of the maximum of a derivative in the motion: smaller jumps are ignored
_JUMP_ROUNDING = 1e-13   # of the motion, over powers of the length of its shortest piece: rounding of the pieces


@dataclass(frozen=True)
class Elastic:
    """An elastic joint: the name of the motor's joint and that of the spring's joint."""

    motor: str
    spring: str


def elastic_joints(model: Model, place: Place = Place()) -> tuple[Elastic, ...]:      # noqa: B008
    """Return the elastic joints of a robot in the order of the motors.

    Raises ScenarioError for a robot with constraints, and for the first joint that is not part of an elastic joint.
    """
    if model.nc:
        raise ScenarioError("the law does not support robots with loops or couplings", place=place,
                            found=model.constraints[0].name)
    joints, taken = [], set()
    for joint in model.joints:
        if joint.name not in taken:
            joints.append(Elastic(joint.name, _spring_behind(model, joint, place)))
            taken |= {joints[-1].motor, joints[-1].spring}
    if not joints:
        raise ScenarioError("the law requires elastic joints; the robot has no moving joint", place=place)
    return tuple(joints)


def _spring_behind(model: Model, joint: ModelJoint, place: Place) -> str:
    """Return the name of the spring's joint behind the motor at `joint`."""
    def not_elastic_error(why: str, hint: str | None = None) -> ScenarioError:
        return ScenarioError(f"the law requires that all joints are elastic; joint {joint.name} is not, "
                             "because "
                             f"{why}", place=place,
                             expected="a motor's joint with armature and, behind a link without mass, a joint about the same "
                                      "axis with stiffness", hint=hint)

    if joint.screws is None or len(joint.screws) != 1:
        raise not_elastic_error(f"it is of type {joint.type}", "it needs base: fixed" if joint.type == "free" else None)
    behind = [other for other in model.description.joints if other.parent == joint.child]
    if len(behind) != 1 or behind[0].name not in model.joint_names:
        raise not_elastic_error(f"its link {joint.child} carries {len(behind)} joints" if len(behind) != 1 else
                                f"its link {joint.child} is welded to {behind[0].child}")
    spring, link = model.joint(behind[0].name), next(link for link in model.description.links if link.name == joint.child)
    pulled = {name for actuator in model.description.actuators for name in thrust_wrenches(model, actuator)}
    if link.mass or any(link.inertia) or link.name in pulled:
        raise not_elastic_error(f"its link {link.name} has mass, inertia or an actuator",
                                f"they belong to {spring.child}, the rotor's inertia to the armature of {joint.name}")
    if spring.screws is None or len(spring.screws) != 1 or not \
            _same_axis(adjoint(spring.home) @ spring.screws[0], joint.screws[0], model_scales(model).length):
        raise not_elastic_error(f"joint {spring.name} behind it has another axis")
    rotor, parameters = _joint_parameters(model, joint.name), _joint_parameters(model, spring.name)
    if not parameters.stiffness:
        raise not_elastic_error(f"joint {spring.name} behind it has no stiffness")
    if parameters.damping or parameters.friction or parameters.armature:
        raise not_elastic_error(f"its spring {spring.name} has damping, friction or armature",
                                f"the law assumes an ideal spring; losses of the motor belong to {joint.name}")
    if rotor.stiffness:                                   # a missing armature is an error of the model already
        raise not_elastic_error("it has a spring")
    return spring.name


def _joint_parameters(model: Model, name: str) -> Coordinate:
    return next(joint.coordinates[0] for joint in model.description.joints if joint.name == name)


def rigid_robot(model: Model, joints: tuple[Elastic, ...]) -> Model:
    """Return the robot with rigid joints, without rotors and springs. Each joint has the name of its motor's joint."""
    robot, of = model.description, {joint.name: joint for joint in model.description.joints}
    spring_of, springs = {joint.motor: of[joint.spring] for joint in joints}, {joint.spring for joint in joints}
    between = {of[joint.motor].child for joint in joints}
    merged_joints = tuple(_merge_joints(joint, spring_of[joint.name]) if joint.name in spring_of else joint
                          for joint in robot.joints if joint.name not in springs)
    return build(replace(robot, links=tuple(link for link in robot.links if link.name not in between), joints=merged_joints))


def _merge_joints(motor: Joint, spring: Joint) -> Joint:
    """Return one joint that moves by the sum of both angles: on a common axis the order does not matter."""
    T = pose(motor.origin) @ pose(spring.origin)
    x, y, z = T[:3, 3].tolist()
    origin = Pose(rotation_by_rows(T[:3, :3]), (x, y, z))
    return replace(spring, name=motor.name, parent=motor.parent, origin=origin, coordinates=(Coordinate(),), place=motor.place)


def is_motor_law(control: Control, model: Model) -> bool:
    """Return whether the law drives the motors of elastic joints. Computed torque exists for rigid joints, too."""
    return control.law == "feedback_linearization" or (control.law == "computed_torque" and is_elastic(model))


def is_elastic(model: Model) -> bool:
    """Return whether all joints are elastic."""
    try:
        return bool(elastic_joints(model))
    except ScenarioError:
        return False


# the law --------------------------------------------------------------------------------------------------------------
def bind_control(scenario: Scenario, model: Model, compiler: SignalCompiler, level: Integers) -> MotorLaw | None:
    """Return the motor law with its desired motions added to the compiler, or None if the scenario has no such law.

    Raises ScenarioError for a robot that the law does not support, for motions that omit a joint or name another, and for
    prescribed joints.

    level  (nv,) level at which each coordinate is driven
    """
    control = scenario.control
    if control is None or not is_motor_law(control, model):
        return None
    computing = law_model(control, model)
    joints = elastic_joints(computing, control.place)
    if not scenario.passive:
        raise ScenarioError("passive: false switches off the springs of the elastic joints", place=control.place,
                            expected="passive: true")
    for name, drives in zip(model.v_names, level, strict=True):
        if drives != TORQUE:
            raise ScenarioError(f"joint {name} is prescribed, but control drives it", place=control.place,
                                hint="a torque in `joints` is added to that of the law")
    rules, signals = _motor_motions(control, joints), {}
    for joint in joints:
        purpose = replace(compiler.joint_purpose("position", model.v_index(joint.motor).start), name=f"motion of {joint.motor}")
        motion = rules[joint.motor].value
        assert isinstance(motion, Signal)
        compiled = compiler.compile(motion, purpose)
        if isinstance(compiled, Curve) and control.law == "feedback_linearization":
            compiler.warnings.extend(_jump_warnings(compiled, scenario.duration, joint.motor, motion.place))
        signals[joint] = compiler.add_program(compiled, purpose, motion.place)
    law = _motor_law(control, computing, signals, compiler.stack_size)
    if computing is not model:
        law = law._replace(model_index=computing._arrays.index, model_constants=computing._arrays.constants)
    return law


def _same_axis(axis: Array, other: Array, length: float) -> bool:
    """Return whether two screws [w; v] are equal to rounding of a file. length: length of the robot [m]."""
    apart = np.abs(axis - other)
    return bool(apart[:3].max() <= _AXIS_TOLERANCE and apart[3:].max() <= _AXIS_TOLERANCE * (length if other[:3].any() else 1.0))


def _motor_motions(control: Control, joints: tuple[Elastic, ...]) -> dict[str, Rule]:
    """Return the rule of the desired motion of each motor."""
    motors = tuple(joint.motor for joint in joints)
    for rule in control.motion:
        for joint in joints:
            if rule.pattern == joint.spring:
                raise ScenarioError(f"{joint.spring} is a spring; the motion of its link is named by the motor's joint",
                                    place=rule.place, found=rule.pattern, expected=joint.motor)
    rules = bind_rules(control.motion, motors, "motor's joint")
    for motor in motors:
        if motor not in rules:
            raise ScenarioError(f"the motion of {motor} is missing", place=control.place,
                                hint=f'"{motor}: 0" under motion keeps it at zero')
    return rules


def _jump_warnings(curve: Curve, duration: float, name: str, place: Place) -> list[LiedynWarning]:
    """Return a warning about the first jump of one of the first three derivatives, if there is one."""
    min_jumps = _min_jumps(curve, duration)
    for k, t in enumerate(curve.breaks[1:], 1):
        if not 0.0 < t < duration:
            continue
        previous_piece = np.polynomial.Polynomial(curve.coefficients[k - 1])
        h = t - curve.breaks[k - 1]
        for order in range(1, 4):
            x, y = previous_piece.deriv(order)(h), np.polynomial.Polynomial(curve.coefficients[k]).deriv(order)(0.0)
            if abs(x - y) > min_jumps[order]:
                quantity = ("velocity", "acceleration", "jerk")[order - 1]
                return [LiedynWarning("motion-not-smooth", f"the {quantity} of the motion of {name} jumps at t = {t:g} s. An "
                                      "elastic joint cannot follow it, so an error starts there (a sine, a csv of "
                                      "interpolation quintic or a smooth expression has no jump up to the jerk)", place=place)]
    return []


def _min_jumps(curve: Curve, duration: float) -> Array:
    """Return (4,) the minimum jumps that count of the motion and its first three derivatives.

    They exceed the rounding of the pieces, which is that of the motion divided by powers of their length.
    """
    lengths = np.diff(curve.breaks, append=max(duration, curve.breaks[-1]))
    pieces = [np.polynomial.Polynomial(c) for c in curve.coefficients]
    size = np.array([max(abs(piece.deriv(order)(h)) for piece, length in zip(pieces, lengths, strict=True) for h in (0.0, length))
                     for order in range(4)])
    shortest = lengths[lengths > 0.0].min(initial=duration)
    return np.asarray(_JUMP * size + _JUMP_ROUNDING * size[0] * np.array([1.0, 1.0, 2.0, 6.0]) / shortest ** np.arange(4))


def _motor_law(control: Control, model: Model, signals: dict[Elastic, int], stack_size: int) -> MotorLaw:
    """Return the law for the compiled right-hand side.

    signals     of the desired motions
    stack_size  of the signals, three floats per jet
    """
    rigid = rigid_robot(model, tuple(signals))
    order = sorted(signals, key=lambda joint: rigid.v_index(joint.motor).start)
    n = len(order)
    motor, spring = (np.array([model.v_index(getattr(joint, part)).start for joint in order], dtype=np.int64)
                     for part in ("motor", "spring"))
    rotors, springs = ([_joint_parameters(model, getattr(joint, part)) for joint in order] for part in ("motor", "spring"))
    return MotorLaw(*rigid._arrays[:2], np.zeros(0, dtype=np.int64), np.zeros(0),
                    np.array([control.law == "feedback_linearization"]), motor, spring,
                    np.array([parameters.stiffness for parameters in springs]),
                    np.array([parameters.rest for parameters in springs]),
                    np.array([parameters.armature for parameters in rotors]), error_gains(control),
                    np.array([signals[joint] for joint in order], dtype=np.int64), np.zeros((n, REFERENCE_COEFFICIENTS)),
                    np.zeros(n), np.zeros(n), np.zeros(2 * n), np.zeros(3 * n), np.zeros(4 * n), np.zeros(n, dtype=bool),
                    np.zeros(series_stack_size(stack_size // 3, REFERENCE_COEFFICIENTS - 1)),
                    np.zeros(rigid_workspace_size(rigid.n_bodies, n)))


def start_on_reference(problem: InitialValueProblem, q: Array, v: Array) -> None:
    """Write the state in which the motion of the links matches the desired one up to the third derivative."""
    flag = np.zeros(2)
    if not state_on_reference(problem.law, problem.signals, 0.0, q, v, flag):
        k = int(flag[0])
        raise ScenarioError(f"the {problem.signal_names[k]} does not have four finite derivatives at t = 0",
                            place=problem.signal_locations[k])
