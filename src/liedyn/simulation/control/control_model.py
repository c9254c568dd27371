"""The controller's model: the robot that control laws of a scenario compute with, where it differs from the simulated robot.

It has the same coordinates and constraints as the robot; numbers, links and force elements may differ.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from liedyn.dynamics.model_parameters import parameter_names, with_parameters
from liedyn.errors import Place, ScenarioError, list_names, nearest
from liedyn.io.scenarios.scenario import Scenario
from liedyn.model.model import Model, build
from liedyn.robot_files import read_model
from liedyn.simulation.control.joint_control import add_rotor_inertias
from liedyn.simulation.joint_friction import rigid_frictions, without_friction


def bind_control_model(scenario: Scenario, model: Model, nominal: Model | None = None,
                       load: Callable[..., Model] = read_model) -> Scenario:
    """Return the scenario whose control law has its model (`Control.bound_model`), if it names one.

    model    the simulated robot, without rotor inertias of motors
    nominal  robot whose parameters the law changes if it names no file; None: `model`
    load     reads a robot file

    Raises ScenarioError for parameters that the robot does not have, and for a robot with other coordinates or constraints.
    """
    control = scenario.control
    if control is None or control.model is None or control.bound_model is not None:
        return scenario
    if control.model.robot is None:
        bound = model if nominal is None else nominal
    else:
        bound = load(control.model.robot, base=scenario.base, gravity=scenario.gravity, ignore_mimic=scenario.ignore_mimic)
    if control.model.parameters:
        known = set(parameter_names(bound))
        for name, _ in control.model.parameters:
            if name not in known:
                raise ScenarioError("no such parameter of the controller's model", place=control.model.place.at(name), found=name,
                                    expected="one of ld.parameter_names(model)", hint=nearest(name, known))
        bound = build(with_parameters(bound, dict(control.model.parameters)))
    bound = add_rotor_inertias(scenario, bound)
    bound = without_friction(bound, rigid_frictions(bound))
    _check_same_coordinates(model, bound, control.model.place)
    return replace(scenario, control=replace(control, bound_model=bound))


def _check_same_coordinates(model: Model, bound: Model, place: Place) -> None:
    """Raise ScenarioError for other coordinates or constraints: the law computes with the state of the robot."""
    constraints, others = ([constraint.name for constraint in x.constraints] for x in (model, bound))
    for noun, expected, found in (("coordinates", [*model.q_names, *model.v_names], [*bound.q_names, *bound.v_names]),
                                  ("loops or couplings", constraints, others)):
        if found == expected:
            continue
        lacking, more = ([*dict.fromkeys(name for name in x if name not in y)] for x, y in ((expected, found), (found, expected)))
        parts = [f"{text} {list_names(names, 4)}" for text, names in (("without", lacking), ("with", more)) if names]
        difference = " and ".join(parts) or "they have another order"
        raise ScenarioError(f"the controller's model has other {noun} than the robot: {difference}", place=place,
                            hint="a law computes with the state of the robot")
