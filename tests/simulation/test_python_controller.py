"""Controllers in Python that a scenario names: as `run_scenario(controller=…)`, with new state and its model in each run."""
from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import liedyn as ld
from liedyn.analysis.linearize import linearize_scenario
from liedyn.errors import ComputationError, ScenarioError, UsageError
from liedyn.io.scenarios.scenario_file import scenario_of, to_plain
from liedyn.simulation.preparation import prepare_run
from liedyn.simulation.run_recorder import identity, resume
from sweeps import batch

ROBOT = Path(__file__).parents[2] / "robots/double_pendulum.yaml"
SOURCE = """\
import numpy as np
import constants_of_test

def servo(t, q, v, gain=20.0, joints=(1.0,)):
    return {"elbow": gain * (constants_of_test.TARGET - q[1]) - 4 * v[1]}

class Integrating:
    '''A controller with a state, and with the model.'''
    def __init__(self, model, gain=1.0):
        self.mass, self.gain, self.sum = model.description.links[1].mass, gain, 0.0
    def __call__(self, t, q, v):
        self.sum += 1.0
        return {"elbow": self.gain * self.sum, "shoulder": self.mass}

class NotCallable:
    def __init__(self, model):
        pass

NUMBER = 3.0
"""
SHORT = {"robot": str(ROBOT), "duration": 0.1, "output_step": 0.02, "sampling": {"rate": 50},
         "integrator": {"method": "rk4", "step": 2e-3}}


@pytest.fixture
def file(tmp_path):
    (tmp_path / "constants_of_test.py").write_text("TARGET = 0.5\n")
    (tmp_path / "c.py").write_text(SOURCE)
    return str(tmp_path / "c.py")


def test_a_function_of_a_file_is_called_at_samples(file, tmp_path, monkeypatch):
    """As one that is passed in Python; also of a module, and with other arguments."""
    def servo(gain):
        return lambda _t, q, v: {"elbow": gain * (0.5 - q[1]) - 4 * v[1]}

    expected = ld.run_scenario(SHORT, controller=servo(20.0))
    monkeypatch.syspath_prepend(tmp_path)
    for controller in (f"{file}:servo", "c:servo", {"function": f"{file}:servo", "arguments": {"gain": 20}}):
        assert np.array_equal(ld.run_scenario(SHORT | {"controller": controller}).q, expected.q)
    weaker = ld.run_scenario(SHORT | {"controller": {"function": f"{file}:servo"}}, {"controller.arguments.gain": 5})
    assert np.array_equal(weaker.q, ld.run_scenario(SHORT, controller=servo(5.0)).q)


def test_an_object_of_a_class_gets_its_model_and_starts_anew_in_each_run(file, tmp_path):
    """In a batch, too, where the robot varies."""
    scenario = SHORT | {"controller": {"function": "c.py:Integrating", "arguments": {"gain": 2}, "model": {"mass.lower": 3}}}
    text = "\n".join(f"{key}: {value}" for key, value in scenario.items()).replace("'", '"')
    sweep = """\
parameters:
  - {key: robot.mass.lower, list: [0.7, 1.3]}
  - {key: controller.arguments.gain, list: [2, 5]}
outputs: {elbow: final(tau.elbow), shoulder: final(tau.shoulder)}
"""
    evaluator = batch(tmp_path, sweep, scenario=text).evaluator
    outputs = evaluator.compute_chunk(0, 4).outputs
    np.testing.assert_allclose(outputs, [[10, 3], [25, 3], [10, 3], [25, 3]], rtol=1e-12)         # five samples; the model's mass
    alone = ld.run_scenario(scenario | {"controller": scenario["controller"] | {"function": f"{file}:Integrating", "model": {}}})
    assert alone.tau[-1].tolist() == [1.0, 10.0] and alone.tau[0].tolist() == [1.0, 2.0]


def test_a_changed_file_is_seen(file):
    """By results that are resumed, and by runs of the same process."""
    scenario = SHORT | {"controller": f"{file}:servo"}
    first = identity(prepare_run(scenario_of(scenario), ld.load(ROBOT)))
    Path(file).write_text(SOURCE.replace("- 4 * v[1]", "- 5 * v[1]"))
    second = identity(prepare_run(scenario_of(scenario), ld.load(ROBOT)))
    assert first["scenario"] == second["scenario"] and first["numbers"] != second["numbers"]
    expected = ld.run_scenario(SHORT, controller=lambda _t, q, v: {"elbow": 20 * (0.5 - q[1]) - 5 * v[1]})
    assert np.array_equal(ld.run_scenario(scenario).q, expected.q)


def test_a_controller_is_written_as_it_was_read(file, tmp_path):
    arguments = {"gain": 2.0, "joints": [1.0, 2.0], "name": "fast", "on": True}
    values = {"function": f"{file}:servo", "arguments": arguments, "model": {"mass.lower": 2.0}}
    scenario = scenario_of(SHORT | {"controller": values})
    assert to_plain(scenario)["controller"] == values
    assert to_plain(scenario, tmp_path)["controller"]["function"] == "c.py:servo"
    assert scenario_of(to_plain(scenario)).controller == scenario.controller


@pytest.mark.parametrize(("controller", "message"), [
    ("{file}:srvo", "scenario: controller: .*c.py does not define srvo .did you mean servo"),
    ("{file}:NUMBER", "controller: NUMBER is not a function: expected a function of .t, q, v., or a class, got 'float'"),
    ("{file}:NotCallable", "controller: objects of the class NotCallable cannot be called"),
    ("{file}", "controller: expected file.py:name or module:name, the name of a function or a class, got"),
    ("none.py:servo", "controller: no such Python file"),
    ("no_such_module:f", "controller: the controller no_such_module cannot be imported: ModuleNotFoundError"),
    ({"function": "{file}:Integrating", "arguments": {"gian": 1}},
     "controller: the controller Integrating cannot be created: TypeError: .*gian"),
    ({"function": "{file}:Integrating", "arguments": {"gain": {"a": 1}}}, "controller.arguments.gain: expected a number, text"),
    ({"arguments": {"gain": 1}}, "controller: the key function is missing: expected file.py:name or module:name"),
    ({"function": "{file}:Integrating", "model": {"mass.lwer": 1}}, "controller.model.mass.lwer: no such parameter"),
    ({"function": "{file}:servo", "model": {"mass.lower": 1}}, "controller.model: the function servo gets no model")],
    ids=range(11))
def test_errors_name_the_key(file, controller, message):
    named = controller.replace("{file}", file) if isinstance(controller, str) else dict(controller)
    if "function" in named and isinstance(named, dict):
        named["function"] = named["function"].replace("{file}", file)
    with pytest.raises(ScenarioError, match=message) as error:
        ld.run_scenario(SHORT | {"controller": named})
    assert "\n" not in str(error.value)


def test_errors_of_scenarios_with_a_controller(file):
    controller = {"controller": f"{file}:servo"}
    without = {key: value for key, value in SHORT.items() if key != "sampling"}
    with pytest.raises(ScenarioError, match=r"controller: a controller is called at sample times.*: expected the key sampling"):
        ld.run_scenario(without | controller)
    with pytest.raises(UsageError, match="controller= cannot be combined with the key controller"):
        ld.run_scenario(SHORT | controller, controller=lambda *_: [0, 0])
    with pytest.raises(ScenarioError, match=r"controller: a controller in Python has no linear system.*controller=null"):
        linearize_scenario(without | controller)
    Path(file).write_text("def servo(t, q, v):\n    return 1 / t\n")
    with pytest.raises(ComputationError, match="the controller, called at t = 0 s, raised ZeroDivisionError"):
        ld.run_scenario(SHORT | controller)
    Path(file).write_text("def servo(t, q, v:\n")
    with pytest.raises(ScenarioError, match=r"c\.py cannot be imported: SyntaxError"):
        ld.run_scenario(SHORT | controller)


def test_a_run_with_a_controller_is_not_resumed():
    """Its state is not in the checkpoint."""
    disk = SimpleNamespace(load=lambda: {"recorder": {"width": 1}}, path="rows.part")
    with pytest.raises(UsageError, match="cannot be resumed: the state of its controller in Python is not stored"):
        resume(None, {"scenario": {"controller": {"function": "c.py:servo"}}}, SimpleNamespace(disk=disk, width=1))
