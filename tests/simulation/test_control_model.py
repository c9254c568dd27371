"""Laws with a model of their own: the forces are those of the same law on the robot of that model, in the same state."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from controlled_robots import ARM
from liedyn.dynamics.model_parameters import with_parameters
from liedyn.errors import ScenarioError
from liedyn.integrators.segment import evaluate_state
from liedyn.io.scenarios.scenario_file import scenario_of, to_plain
from liedyn.model.model import build
from liedyn.simulation.control.law_derivatives import joint_force_jacobian
from liedyn.simulation.preparation import prepare_run
from liedyn.simulation.run_recorder import identity

EXACT = 1e-12                     # relative to the largest: the same operations, in another order
ROBOTS = Path(__file__).parents[2] / "robots"
COUPLED = ARM + "couplings: {gear: {terms: {elbow: 1, shoulder: -0.5}, offset: 0.1}}\n"
FLYER = """\
base: floating
links: {body: {mass: 1, inertia: [0.1, 0.1, 0.2]}}
actuators: {fore: {link: body, position: [0.2, 0, 0]}, aft: {link: body, position: [-0.2, 0, 0]}}
"""
ERRORS = {"mass.hand": 1.4, "com.lower.y": -0.1, "damping.elbow": 0.7, "gravity.z": -9.0}
MOTION = {"shoulder": "0.3*sin(2*t) + 0.1", "slide": "0.1*cos(t)"}
TASK = {"law": "task_space", "link": "hand", "target": {"xyz": [0.1, "0.2*sin(t)", 0.6]}, "bandwidth": 5}
CASES = {
    "computed torque of some joints": (ARM, ERRORS, {"law": "computed_torque", "motion": MOTION, "bandwidth": 6}),
    "task space": (ARM, ERRORS | {"origin.slide.vz": 0.05}, TASK),
    "gravity compensation": (ARM, ERRORS, {"law": "gravity_compensation", "joints": ["shoulder"]}),
    "state feedback": (ARM, ERRORS, {"law": "state_feedback", "setpoint": {"q": {"shoulder": 0.4}},
                                     "gain": [[1, 2, 3, 4, 5, 6], [6, 5, 4, 3, 2, 1], [1, 1, 1, 2, 2, 2]]}),
    "thrusts": (FLYER, {"mass.body": 1.5, "com.body.x": 0.02}, {
        "law": "state_feedback", "setpoint": {"q": {"base": [0, 0, 2, 0, 0, 0, 1]}}, "gain": {
            f"thrust.{name}": {"q.base.vz": 3, "v.base.wy": sign} for name, sign in (("fore", 1), ("aft", -1))}}),
    "couplings": (COUPLED, ERRORS, {"law": "computed_torque", "motion": {"shoulder": MOTION["shoulder"]}, "bandwidth": 6}),
    "elastic joints": (ROBOTS / "elastic_arm.yaml", {"mass.payload": 2.0, "stiffness.elbow_spring": 400, "damping.waist": 3.0},
                       {"law": "feedback_linearization", "bandwidth": 8,
                        "motion": {"waist": "0.2*sin(t)", "shoulder": 0.3, "elbow": 0.8}}),
    "loops": (ROBOTS / "delta.yaml", {"mass.platform": 1.5},
              {"law": "computed_torque", "bandwidth": 12, "motion": {"motor_1": "0.3 + 0.1*t", "motor_2": 0.3, "motor_3": 0.35}})}
START = {"flyer": {"base": [0, 0, 1.9, 0, 0, 0, 1]}, "delta.yaml": {"platform": [0.0006, -0.0641, -0.7911, 0, 0, 0, 1]}}


@pytest.fixture
def case(tmp_path):
    """case(name): the scenario without a model, and the model of the robot and that of the law."""
    def written(name: str) -> tuple[dict, ld.Model, ld.Model]:
        robot, changes, control = CASES[name]
        path = robot
        if isinstance(robot, str):
            path = tmp_path / "robot.yaml"
            path.write_text(robot)
        model = ld.load(path)
        start = START.get("flyer" if robot == FLYER else path.name, {})
        scenario = {"robot": str(path), "duration": 1, "control": control, "initial": {"q": start}}
        if control["law"] == "gravity_compensation":
            scenario["joints"] = {"elbow": {"torque": {"pd": {"kp": 5, "kd": 1, "gravity": True, "target": 0.2}}}}
        return scenario, model, build(with_parameters(model, changes))
    return written


def forces(scenario: dict, model: ld.Model, q=None, v=None):
    problem = prepare_run(scenario_of(scenario), model).problem
    q, v = problem.q if q is None else q, problem.v if v is None else v
    inputs = evaluate_state(problem, 0.3, q, v)
    return np.append(inputs.tau, inputs.wrench), joint_force_jacobian(problem, 0.3, q, v), q


@pytest.mark.filterwarnings("ignore::liedyn.LiedynWarning")
@pytest.mark.parametrize("name", CASES)
def test_forces_are_those_of_the_law_on_the_robot_of_its_model(case, name):
    scenario, model, nominal = case(name)
    v = np.linspace(-0.3, 0.4, model.nv) * (model.nc == 0)
    ours, jacobian, q = forces(scenario | {"control": scenario["control"] | {"model": CASES[name][1]}}, model, v=v)
    alone, by_state, _ = forces(scenario, nominal, q, v)
    other, _, _ = forces(scenario, model, q, v)
    for x, y in (ours, alone), (jacobian, by_state):
        np.testing.assert_allclose(x, y, rtol=0, atol=(1e-9 if name == "task space" else EXACT) * np.abs(y).max())
    assert np.abs(ours - other).max() > 1e-3 * np.abs(other).max()


def test_a_model_may_be_another_file(case, tmp_path):
    """Its path is relative to the scenario; links may have other names."""
    scenario, model, nominal = case("computed torque of some joints")
    ld.save(nominal, tmp_path / "nominal.yaml")
    text = (tmp_path / "nominal.yaml").read_text()
    (tmp_path / "nominal.yaml").write_text(text.replace("upper:", "upper_arm:", 1).replace("child: upper", "child: upper_arm")
                                           .replace("parent: upper", "parent: upper_arm"))
    control = scenario["control"]
    expected, _, q = forces(scenario | {"control": control | {"model": ERRORS}}, model)
    found, _, _ = forces(scenario | {"control": control | {"model": {"robot": str(tmp_path / "nominal.yaml")}}}, model, q)
    np.testing.assert_allclose(found, expected, rtol=0, atol=EXACT * np.abs(expected).max())


def test_a_run_with_a_model_error_has_a_tracking_error(case):
    """The recorded forces are those of inverse dynamics of the model; generated and generic code agree."""
    scenario, _, nominal = case("computed torque of some joints")
    motion = MOTION | {"elbow": "0.2*t"}
    scenario |= {"duration": 0.2, "output_step": 0.02, "joints": {},
                 "control": scenario["control"] | {"motion": motion, "model": ERRORS}}
    run = ld.run_scenario(scenario)
    t, k = run.t, [0, 1, 2]
    ref = np.stack([0.3 * np.sin(2 * t) + 0.1, 0.2 * t, 0.1 * np.cos(t)], axis=1)
    rate = np.stack([0.6 * np.cos(2 * t), 0.2 + 0 * t, -0.1 * np.sin(t)], axis=1)
    curvature = np.stack([-1.2 * np.sin(2 * t), 0 * t, -0.1 * np.cos(t)], axis=1)
    a = curvature + 12 * (rate - run.v[:, k]) + 36 * (ref - run.q[:, k])
    np.testing.assert_allclose(ld.inverse_dynamics(nominal, run.q, run.v, a), run.tau, rtol=0, atol=1e-10)
    assert np.abs(run.q - ref)[-1].max() > 1e-3


def test_the_model_of_a_sampled_law(case):
    scenario, _, nominal = case("gravity compensation")
    scenario |= {"joints": {}, "duration": 0.02, "output_step": 0.01, "sampling": {"rate": 100},
                 "control": {"law": "gravity_compensation", "model": ERRORS}}
    run = ld.run_scenario(scenario)
    np.testing.assert_allclose(run.tau[0], ld.gravity_force(nominal, run.q[0]), rtol=0, atol=1e-12)


def test_phases_may_open_couplings(case):
    """The model has the constraints of the robot in each phase."""
    scenario, model, _ = case("couplings")
    scenario |= {"phases": {"coupled": {}, "apart": {"open": ["gear"]}}, "duration": 0.02,
                 "events": {"open": {"at": 0.01, "do": {"phase": "apart"}}}, "control": scenario["control"] | {"model": ERRORS}}
    prepared = prepare_run(scenario_of(scenario), model)
    first, second = prepared.hybrid_simulation.problems.compiled
    assert first.law_model.nc == 1 and second.law_model.nc == 0 == second.model.nc
    assert first.law_model.description.links[2].mass == 1.4 == second.law_model.description.links[2].mass


def test_the_model_is_written_as_it_was_read(case, tmp_path):
    scenario, _, nominal = case("task space")
    ld.save(nominal, tmp_path / "nominal.yaml")
    model = {"robot": str(tmp_path / "nominal.yaml"), "mass.hand": 2.0}
    written = to_plain(scenario_of(scenario | {"control": TASK | {"model": model}}))
    assert written["control"]["model"] == model
    nested = scenario_of(scenario | {"control": TASK}, ["control.model.mass.hand=2", "control.model.com.lower.y=0.1"])
    assert nested.control.model.parameters == (("mass.hand", 2.0), ("com.lower.y", 0.1))
    assert to_plain(scenario_of(scenario | {"control": TASK | {"model": {}}}))["control"]["model"] == {}


@pytest.mark.parametrize(("model", "message"), [
    ({"mass.hnd": 1}, 'control.model.mass.hnd: no such parameter of the controller\'s model: expected one of'),
    ({"mass.hand": "heavy"}, "control.model.mass.hand: expected a number, got 'heavy'"),
    ({"robot": "none.yaml"}, "control.model.robot: no such robot file"),
    ("nominal", "control.model: expected a mapping: the path of a robot, and values by parameter"),
    ({"robot": str(ROBOTS / "double_pendulum.yaml")}, "control.model: the controller's model has other coordinates than the "
     "robot: without slide"),
    ({"mass.hand": -1}, "control.model: no robot has these parameters of the controller's model (mass.hand): negative mass")],
    ids=range(6))
def test_errors_name_the_key(case, model, message):
    scenario, robot, _ = case("gravity compensation")
    with pytest.raises((ScenarioError, ld.ModelError)) as error:
        prepare_run(scenario_of(scenario | {"control": scenario["control"] | {"model": model}}), robot)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_a_model_with_other_couplings_is_an_error(case, tmp_path):
    scenario, model, _ = case("couplings")
    (tmp_path / "other.yaml").write_text(ARM)
    with pytest.raises(ScenarioError, match="the controller's model has other loops or couplings than the robot: without gear"):
        prepare_run(scenario_of(scenario | {"control": scenario["control"] | {"model": {"robot": str(tmp_path / "other.yaml")}}}),
                    model)


@pytest.mark.parametrize("sampling", [{}, {"sampling": {"rate": 100}}], ids=["continuous", "sampled"])
def test_a_changed_file_of_the_model_is_seen(case, tmp_path, sampling):
    """By runs and batches that are resumed."""
    scenario, model, nominal = case("gravity compensation")
    control = {"law": "gravity_compensation", "model": {"robot": str(tmp_path / "nominal.yaml")}}
    identities = []
    for changed in (nominal, nominal.with_changes(mass={"hand": 2.0})):
        ld.save(changed, tmp_path / "nominal.yaml", force=True)
        identities.append(identity(prepare_run(scenario_of(scenario | sampling | {"joints": {}, "control": control}), model)))
    assert identities[0]["scenario"] == identities[1]["scenario"] and identities[0]["numbers"] != identities[1]["numbers"]


def test_a_changed_target_of_a_sampled_law_is_seen(case, tmp_path):
    """Its file is read by the problem of the law, not by that of the motion."""
    scenario, model, _ = case("gravity compensation")
    target = {"csv": {"file": str(tmp_path / "target.csv"), "column": "x", "interpolation": "linear"}}
    scenario = {"robot": scenario["robot"], "duration": 1, "sampling": {"rate": 100},
                "joints": {"elbow": {"torque": {"pd": {"kp": 5, "target": target}}}}}
    numbers = []
    for last in 0.3, 0.4:
        (tmp_path / "target.csv").write_text(f"t,x\n0,0\n0.5,0.1\n1,{last}\n")
        numbers.append(identity(prepare_run(scenario_of(scenario), model))["numbers"])
    assert numbers[0] != numbers[1]
