"""Data from which control laws of joints are bound, and the joints that a law drives."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from liedyn.arrays import Array, Mask
from liedyn.errors import LiedynWarning, Place, ScenarioError, list_names
from liedyn.io.scenarios.control_schema import LAWS
from liedyn.io.scenarios.scenario import Constant, Control, Pd, Rule, Scenario, Torque
from liedyn.kernels.simulation.joint_laws import JointLaws
from liedyn.model.model import Model, build
from liedyn.model.model_joint import ModelJoint
from liedyn.simulation.name_binding import bind_joints, joint_mask
from liedyn.simulation.signals.signal_compiler import SignalCompiler
from liedyn.simulation.trajectory_columns import thrust_names


@dataclass(frozen=True, slots=True)
class LawContext:
    """Data from which a law is bound.

    law_model           the model that the law computes with; its coordinates and constraints are those of `model`
    compiler            compiler of the law's signals; it collects warnings
    passive             whether springs, damping and friction act
    always_prescribed   (nv,) coordinates that are prescribed in all phases
    prescribed          (nv,) coordinates that are prescribed in this phase
    thrusts             (actuators,) constant thrusts of the scenario [N]; others count as zero
    """

    control: Control
    model: Model
    law_model: Model
    compiler: SignalCompiler
    passive: bool
    always_prescribed: Mask
    prescribed: Mask
    thrusts: Array


# Returns the laws of a run with the bound law added; on input, `given` of the laws is the mask of prescribed coordinates.
LawBinder = Callable[[LawContext, JointLaws], JointLaws]


def law_model(control: Control | None, model: Model) -> Model:
    """Return the model with which the laws of a phase compute: the controller's, without the constraints that are open there.

    model: the robot in the phase
    """
    bound: Model | None = None if control is None else control.bound_model
    if bound is None:
        return model
    present = {constraint.name for constraint in model.constraints}
    if all(constraint.name in present for constraint in bound.constraints):
        return bound
    robot = bound.description
    return build(replace(robot, loops=tuple(loop for loop in robot.loops if loop.name in present),
                         couplings=tuple(coupling for coupling in robot.couplings if coupling.name in present),
                         joints=tuple(replace(joint, mimic=joint.mimic if joint.name in present else None)
                                      for joint in robot.joints)))


def controlled_coordinates(context: LawContext) -> Mask:
    """Return the mask (nv,) of coordinates that the law drives.

    These are `joints` of the law, or `joints_with_motors`, or all that are not free or prescribed.
    Raises ScenarioError for a named joint that is free, prescribed or fixed by couplings, and if no joint is left.
    """
    model, mask = context.model, np.zeros(context.model.nv, dtype=bool)
    rules = bind_joints(context.control.joints, model)
    if not rules and not model.actuated and not model.has_only_linear_couplings:
        raise unknown_actuation_error(context)
    for name in rules or joints_with_motors(model) or model.joint_names:
        joint, rule = model.joint(name), rules.get(name)
        if joint.type == "free" or context.always_prescribed[joint.v].any():
            if rule is not None and rule.pattern == name:
                raise not_controllable_error(joint, rule.place)
            continue
        if rule is not None and rule.pattern == name:
            check_can_move(model, joint, rule.place)
        mask[joint.v] = True
    if not mask.any():
        rows = f"a gain with rows such as {thrust_names(model)[0]}" if model.description.actuators else None
        raise ScenarioError("control has no joint to actuate: all joints are free or prescribed", place=context.control.place,
                            expected=rows)
    return mask


def joints_with_motors(model: Model) -> tuple[str, ...]:
    """Return the joints that the robot file calls actuated, and those which such joints follow, since their motors drive them."""
    names = set(model.actuated)
    if names and model.nc and model.has_only_linear_couplings:
        moved: Mask = np.any(model.elimination().projection[joint_mask(names, model)], axis=0)
        names |= {joint.name for joint in model.joints if moved[joint.v].any()}
    return tuple(name for name in model.joint_names if name in names)


def unknown_actuation_error(context: LawContext) -> ScenarioError:
    """Return the error for a law of a robot with loops whose actuated joints are not known."""
    key = "motion" if context.control.law == "computed_torque" else "joints"
    return ScenarioError("the actuated joints of the robot are not known", place=context.control.place,
                         expected=f"`{key}` of the law with names of joints, or the key `actuated` of the robot file")


def not_controllable_error(joint: ModelJoint, place: Place) -> ScenarioError:
    """Return the error for a joint that the law cannot drive."""
    if joint.type == "free":
        return ScenarioError(f"joint {joint.name} is free: no motor acts there", place=place)
    return ScenarioError(f"joint {joint.name} is prescribed, but control drives it", place=place,
                         hint="a torque in `joints` is added to that of the law")


def check_can_move(model: Model, joint: ModelJoint, place: Place) -> None:
    """Raise ScenarioError if couplings fix the joint: a force there has no effect."""
    if model.nc and model.has_only_linear_couplings and not model.elimination().projection[joint.v].any():
        raise ScenarioError(f"joint {joint.name} cannot move, since couplings fix it: a law has no effect there", place=place,
                            expected="a joint that moves")


def motor_messages(scenario: Scenario, model: Model, rules: Mapping[str, Rule]) -> list[LiedynWarning]:
    """Return messages about laws and torques of joints that the robot file does not call actuated, where it names such joints.

    rules   rule of each joint in the phase
    """
    if not model.actuated:
        return []
    messages, control, motors = [], scenario.control, joints_with_motors(model)
    if control is not None:
        named = [*bind_joints(control.joints, model), *(rule.pattern for rule in control.motion)]
        if passive := [name for name in model.joint_names if name in named and name not in motors]:
            messages.append(LiedynWarning(
                "joint-without-motor", f"{control.law} drives {list_names(passive, 6)}, which `actuated` of the robot file does "
                "not name: these joints have no motor", place=control.place))
    for name in (name for name in rules if name not in motors):
        drive, place = rules[name].value, rules[name].place
        if isinstance(drive, Pd):
            messages.append(LiedynWarning("joint-without-motor", f"a pd law drives {name}, which `actuated` of the robot file "
                                          "does not name: this joint has no motor", place=place))
        elif isinstance(drive, Torque) and not (isinstance(drive.signals, Constant) and drive.signals.value == 0.0):
            messages.append(LiedynWarning("passive-torque", f"a torque acts on {name}, which `actuated` of the robot file "
                                          "does not name", place=place))
    return messages


def describe_rows(t: Array, mask: Mask) -> str:
    """Return the time of the first of the rows t (N,) where the mask (N,) holds, and their number, for a message."""
    return f"from t = {t[np.argmax(mask)]:.6g} s, in {np.count_nonzero(mask)} of {len(mask)} rows"


def error_gains(control: Control) -> Array:
    """Return the gains of the error and its derivatives, in ascending order of the derivative, from the poles."""
    poles = control.poles if control.bandwidth is None else (-control.bandwidth,) * LAWS[control.law].poles
    return np.array(np.poly(poles)[:0:-1], dtype=float)
