"""Controllers in Python that a scenario names: a function (t, q, v) -> torques, or a class whose objects are called so.

A class is created for each run, so that its state starts anew, with the model that the controller computes with.
"""
from __future__ import annotations

import hashlib
import sys
from dataclasses import replace
from functools import lru_cache, partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from liedyn.errors import ScenarioError, UsageError, nearest
from liedyn.io.scenarios.scenario import PythonController, Scenario
from liedyn.model.model import Model

_MODULES = 32                     # files whose modules are kept


def with_python_controller(scenario: Scenario, model: Model) -> Scenario:
    """Return the scenario with the function of its controller in `sampling`; itself if it names no controller.

    model  that the controller computes with if it has no other

    Raises ScenarioError without the key `sampling`, for a file that cannot be imported, and for an object that cannot be called.
    """
    named = scenario.controller
    if named is None:
        return scenario
    if scenario.sampling is None:
        raise ScenarioError("a controller is called at sample times, which the scenario does not have", place=named.place,
                            expected="the key sampling, such as sampling: {rate: 1000}")
    if scenario.sampling.function is not None:
        raise UsageError("controller= cannot be combined with the key controller of the scenario")
    function, arguments = _named_object(named), dict(named.arguments)
    if isinstance(function, type):
        try:
            function = function(model if named.bound_model is None else named.bound_model, **arguments)
        except Exception as error:
            raise ScenarioError(f"the controller {named.name} cannot be created: {type(error).__name__}: {error}",
                                place=named.place) from error
        if not callable(function):
            raise ScenarioError(f"objects of the class {named.name} cannot be called", place=named.place,
                                expected="a method __call__(self, t, q, v) that returns torques")
    elif not callable(function):
        raise ScenarioError(f"{named.name} is not a function", place=named.place, found=type(function).__name__,
                            expected="a function of (t, q, v), or a class")
    elif named.bound_model is not None:
        raise ScenarioError(f"the function {named.name} gets no model", place=named.place.at("model"),
                            expected="a class, whose objects get it, or no key model")
    elif arguments:
        function = partial(function, **arguments)
    return replace(scenario, sampling=replace(scenario.sampling, function=function))


def controller_digest(scenario: Scenario) -> str:
    """Return a hash of the file of the controller; "" if the scenario names none, or a module."""
    named = scenario.controller
    return "" if named is None or not named.is_file else hashlib.sha256(Path(named.module).read_bytes()).hexdigest()


def _named_object(named: PythonController) -> Any:
    try:
        if named.is_file:
            module = _module_of_file(named.module, Path(named.module).read_bytes())
        else:
            module = import_module(named.module)
    except Exception as error:
        raise ScenarioError(f"the controller {named.module} cannot be imported: {type(error).__name__}: {error}",
                            place=named.place) from error
    if not hasattr(module, named.name):
        raise ScenarioError(f"{named.module} does not define {named.name}", place=named.place,
                            hint=nearest(named.name, [name for name in vars(module) if not name.startswith("_")]))
    return getattr(module, named.name)


@lru_cache(_MODULES)
def _module_of_file(path: str, source: bytes) -> ModuleType:
    """Return the module of a file, which may import files next to it. It is executed once for each content."""
    module = ModuleType(Path(path).stem)
    module.__file__ = path
    folder = str(Path(path).absolute().parent)
    sys.path.insert(0, folder)
    try:
        exec(compile(source, path, "exec"), module.__dict__)
    finally:
        sys.path.remove(folder)
    return module
