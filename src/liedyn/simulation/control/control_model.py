"""The controller's model: the robot that control laws of a scenario compute with, where it differs from the simulated robot.

It has the same coordinates, constraints and actuators as the robot; numbers, links and force elements may differ.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from liedyn.dynamics.model_parameters import parameter_names, with_parameters
from liedyn.errors import ModelError, Place, ScenarioError, list_names, nearest
from liedyn.io.scenarios.scenario import ControlModel, Scenario
from liedyn.model.model import Model, build
from liedyn.robot_files import read_model
from liedyn.simulation.control.motors import add_rotor_inertias
from liedyn.simulation.joint_friction import rigid_frictions, without_friction


def bind_control_models(scenario: Scenario, model: Model, nominal: Model | None = None,
                        load: Callable[..., Model] = read_model) -> Scenario:
    """Return the scenario whose control law, controller in Python and observer have the models that they name (`bound_model`).

    model    the simulated robot, without rotor inertias of motors
    nominal  robot whose parameters change if the model names no file; None: `model`
    load     reads a robot file

    Raises ScenarioError for parameters that the robot does not have, and for a robot with other coordinates or constraints.
    """
    for key in ("control", "controller", "observer"):
        part = getattr(scenario, key)
        if part is not None and part.model is not None and part.bound_model is None:
            bound = _bound_model(scenario, part.model, model if nominal is None else nominal, load)
            _check_same_coordinates(model, bound, part.model.place)
            scenario = replace(scenario, **{key: replace(part, bound_model=bound)})
    return scenario


def _bound_model(scenario: Scenario, named: ControlModel, nominal: Model, load: Callable[..., Model]) -> Model:
    bound = nominal
    if named.robot is not None:
        bound = load(named.robot, base=scenario.base, gravity=scenario.gravity, ignore_mimic=scenario.ignore_mimic)
    if named.parameters:
        known = set(parameter_names(bound))
        for name, _ in named.parameters:
            if name not in known:
                raise ScenarioError("no such parameter of the controller's model", place=named.place.at(name), found=name,
                                    expected="one of ld.parameter_names(model)", hint=nearest(name, known))
        try:
            bound = build(with_parameters(bound, dict(named.parameters)))
        except ModelError as error:
            names = ", ".join(name for name, _ in named.parameters)
            raise ScenarioError(f"no robot has these parameters of the controller's model ({names}): {error.message}",
                                place=named.place, found=error.found, expected=error.expected, hint=error.hint) from None
    bound = add_rotor_inertias(scenario, bound)
    return without_friction(bound, rigid_frictions(bound))


def _check_same_coordinates(model: Model, bound: Model, place: Place) -> None:
    """Raise ScenarioError for other coordinates, constraints or actuators: the law computes with the state of the robot."""
    constraints = [[constraint.name for constraint in x.constraints] for x in (model, bound)]
    actuators = [[actuator.name for actuator in x.description.actuators] for x in (model, bound)]
    for noun, expected, actual in (("coordinates", [*model.q_names, *model.v_names], [*bound.q_names, *bound.v_names]),
                                   ("loops or couplings", *constraints), ("actuators", *actuators)):
        if actual == expected:
            continue
        missing = dict.fromkeys(name for name in expected if name not in actual)
        more = dict.fromkeys(name for name in actual if name not in expected)
        parts = [f"{text} {list_names([*names], 4)}" for text, names in (("without", missing), ("with", more)) if names]
        difference = " and ".join(parts) or "they have another order"
        raise ScenarioError(f"the controller's model has other {noun} than the robot: {difference}", place=place,
                            hint="a law computes with the state of the robot")
