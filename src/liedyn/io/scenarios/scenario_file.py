"""Scenario YAML -> `Scenario`."""
from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from liedyn.errors import ScenarioError
from liedyn.io.override import Overrides, override, override_texts, tree_of
from liedyn.io.scenarios.contact_keys import read_contacts
from liedyn.io.scenarios.event_keys import read_events, read_phases, unreached
from liedyn.io.scenarios.joint_keys import DRIVES, LEVELS, TORQUES
from liedyn.io.scenarios.law_keys import POLES
from liedyn.io.scenarios.sampling_keys import read_sampling
from liedyn.io.scenarios.scenario import Integrator, Scenario, StartFrom
from liedyn.io.scenarios.scenario_keys import INITIAL, INTEGRATOR, SCENARIO
from liedyn.io.yaml_text import Node, read_yaml

MOST_ROWS = 10_000_000                           # of output, and
MOST_STEPS = 100_000_000                         # more is often a slip of the pen, and takes hours: only where it is asked for
MOST_AT_ALL = 1_000_000_000_000                  # a microsecond each: two weeks. No run ends that takes more
_LONG_STEP = 0.1                                 # s: adaptive methods seldom take longer ones while a robot moves
_FIELDS = {"external_forces": "forces", "constraints": "stabilization"}          # of `Scenario`, where keys have other names
_INITIAL = {"q": "initial_q", "v": "initial_v", "from": "initial_from"}


def read_scenario(path: str | os.PathLike, overrides: Overrides = (), long: bool = False) -> Scenario:
    """The scenario in the YAML file `path`, after `overrides` ("key.path=value", value in YAML; or a dict).

    Paths in it are relative to its folder; in an override, to the current one. Raises ScenarioError.
    """
    root = read_yaml(path, ScenarioError)
    if is_robot(root):
        raise root.problem("this is a robot, not a scenario", expected="the key robot")
    return _scenario(root, os.fspath(path), overrides, long)


def scenario_of_robot(path: str | os.PathLike, overrides: Overrides = (), long: bool = False) -> Scenario:
    """Five seconds of a robot's passive motion from its neutral configuration, after `overrides`."""
    file = os.fspath(path)
    values = {"robot": Node("text", file, file, None, "robot", ScenarioError),
              "duration": Node("number", 5.0, file, None, "duration", ScenarioError)}
    return _scenario(Node("mapping", values, file, None, "", ScenarioError), file, overrides, long)


def scenario_of(path: str | os.PathLike | Mapping[str, Any], overrides: Overrides = (), long: bool = False) -> Scenario:
    """`read_scenario` of a scenario, `scenario_of_robot` of a robot file; of a mapping, the scenario with these keys, whose paths
    are relative to the current folder. `long` allows up to MOST_AT_ALL steps."""
    if isinstance(path, Mapping):
        return _scenario(tree_of(path, "scenario", ScenarioError), "scenario", overrides, long)
    robot = os.fspath(path).lower().endswith((".urdf", ".xml", ".mjcf", ".xacro")) or is_robot(read_yaml(path, ScenarioError))
    return (scenario_of_robot if robot else read_scenario)(path, overrides, long)


def is_robot(root: Node) -> bool:
    """Whether a YAML file describes a robot: it has links and names no robot."""
    return root.kind == "mapping" and "links" in root.value and "robot" not in root.value


def _scenario(root: Node, source: str, overrides: Overrides, long: bool) -> Scenario:
    overrides = override_texts(overrides, ScenarioError)
    replaced = [(text, key) for text in overrides
                for key in override(root, text, ScenarioError, (*DRIVES.one_of, *LEVELS.one_of, *TORQUES.one_of, POLES))]
    given = SCENARIO.given(root)
    duration = SCENARIO.value(given, "duration")
    output_step = SCENARIO.value(given, "output_step", duration / 500, most=duration)
    integrator = _integrator(given["integrator"], duration) if "integrator" in given else Integrator(named=False)
    _check_length(given, duration, output_step, integrator, long)
    values = {"duration": duration, "output_step": output_step, "integrator": integrator}
    if "sampling" in given:
        values["sampling"] = read_sampling(given["sampling"], duration, MOST_AT_ALL if long else MOST_STEPS)
    if "phases" in given:
        values["phases"] = read_phases(given["phases"])
    if "events" in given:
        values["events"] = read_events(given["events"], values.get("phases", ()), duration)
    if "contacts" in given:
        values["contacts"] = read_contacts(given["contacts"], integrator.method)
    values |= {_FIELDS.get(key, key): SCENARIO.value(given, key) for key in given if key not in (*values, "initial")}
    if "initial" in given:
        values |= _initial(given["initial"])
    if integrator.method == "generalized_alpha" and values.get("limits"):       # its Newton iteration does not know their slopes
        raise given["limits"].problem("generalized_alpha does not go with stops at limits", expected="another integrator.method")
    notes = (*(f"-S {text} replaces {key}" for text, key in replaced),
             *unreached(values.get("phases", ()), values.get("events", ())))
    return Scenario(**values, source=source, overrides=overrides, notes=notes)


def _integrator(node: Node, duration: float) -> Integrator:
    given = INTEGRATOR.given(node)
    INTEGRATOR.value(given, "step", most=duration)
    return Integrator(**INTEGRATOR.values(node), named=bool(given.keys() & {"method", "step"}), place=node.place)


def _initial(node: Node) -> dict[str, Any]:
    values = INITIAL.values(node)
    if "from" in values:
        values["from"] = StartFrom(values["from"], node.value["from"].place)
    return {_INITIAL.get(key, key): value for key, value in values.items()}


def _check_length(given: dict[str, Node], duration: float, output_step: float, integrator: Integrator, long: bool) -> None:
    """Refuse a run of more rows or steps than are meant, or than can ever be made."""
    step, key = (integrator.step, "step") if integrator.step_is_fixed else (min(integrator.max_step, _LONG_STEP), "max_step")
    step_node = given["integrator"].get(key) if "integrator" in given else None
    for what, count, most, node in (("rows of output", duration / output_step, MOST_ROWS, given.get("output_step")),
                                    ("steps", duration / step, MOST_STEPS, step_node)):
        limit, blamed = MOST_AT_ALL if long else most, node or given["duration"]
        if count > limit:
            told = f"about {min(count, sys.float_info.max):.3g} {what} in {duration:g} s"
            raise blamed.problem(told, found=blamed.shown(), expected=f"at most {limit:g}",
                                 hint=None if long or count > MOST_AT_ALL else "--force-long or force_long=True allows more")
