"""A run of a chunk is the same alone: its outputs, its status, its reason, its trajectory."""
from pathlib import Path

import numpy as np
import pytest
import yaml

import liedyn as ld
from sweeps import batch

SPRING = """\
name: spring
gravity: [0, 0, 0]
links: {b: {mass: 1}}
joints:
  x: {type: prismatic, parent: world, child: b, axis: [1, 0, 0], stiffness: 1, limits: {lower: -1, upper: 1, effort: 9}}
"""
SCENARIO = "robot: spring.yaml\nduration: 2\noutput_step: 0.1\nintegrator: {method: rk4, step: 0.1}\ninitial: {q: {x: 0.5}}\n"
SWEEP = """\
parameters:
  - {key: robot.stiffness.x, list: [1, 400, 1000000]}
  - {key: initial.v.x, list: [0, 3]}
  - {key: robot.mass.b, list: [1, -1]}
outputs: {last: final(q.x), most: max(abs(v.x))}
trajectories: {columns: [q.x, energy.*], every: 5}
"""


@pytest.mark.parametrize("events", ["", "events: {middle: {when: q(x), do: {record: true}}}\n"], ids=["together", "one by one"])
def test_a_run_of_a_chunk_is_the_same_alone(tmp_path, events):
    """Stiff springs are inaccurate or diverge, fast sliders exceed limits, negative masses are errors: all in one chunk."""
    (tmp_path / "spring.yaml").write_text(SPRING)
    evaluator = batch(tmp_path, SWEEP, scenario=SCENARIO + events).evaluator
    assert evaluator.is_vectorized is (not events)
    whole, parts = evaluator.compute_chunk(0, 12), [evaluator.compute_chunk(k, k + 1) for k in range(12)]
    assert set(whole.status) == {"complete", "diverged", "failed"} and len({text[:30] for text in whole.reason}) > 4
    for name in ("number", "status", "reason", "hash"):
        assert list(getattr(whole, name)) == [getattr(part, name)[0] for part in parts], name
    for name in ("outputs", "energy_balance"):
        np.testing.assert_allclose(getattr(whole, name), np.concatenate([getattr(part, name) for part in parts]), rtol=1e-12)
    for title, column in whole.trajectories.items():
        alone = np.concatenate([part.trajectories[title] for part in parts if part.trajectories])
        np.testing.assert_allclose(column, alone, rtol=1e-12, err_msg=title)


SERVO = """\
import numpy as np

class Servo:
    vectorized = True

    def __init__(self, model, gain):
        self.gain, self.sum = gain, 0.0

    def __call__(self, t, q, v):
        assert q.ndim == 2
        self.sum = self.sum + q[:, 0]
        return {"x": np.where(v[:, 0] > 9.0, np.nan, -self.gain * q[:, 0] - self.sum - t)}

def alone(t, q, v):
    return -q - v

def wrong(t, q, v):
    return q[:, :, None]
wrong.vectorized = True
"""


@pytest.mark.parametrize(("changes", "reason"), [
    ("", ""), ("sampling: {rate: 7, quantization: {q: 0.01, v: 0.02, tau: 0.03}}\nsaturate: {x: 2}\n", ""),
    ("controller: servo.py:alone\n", "a controller in Python without vectorized = True"),
    ("sampling: {rate: 7, delay: 0.01, hold: first}\n", "a sampled controller with a first-order hold"),
    ("sampling: {rate: 7, delay: 0.2, noise: {q: 0.01, v: 0.03}}\nseed: 5\n", ""),
    ("sampling: {period: 0.1, delay: 0.1}\n", ""),
    ("joints: {x: {torque: {pd: {kp: 8, kd: 1, target: 0.1*sin(t)}}}}\n", ""),
    ("controller: servo.py:wrong\n", "")])
def test_controllers_that_take_arrays_are_called_for_all_runs(tmp_path, changes, reason):
    """Samples that are no multiples of the step end steps; a run whose torques are not finite is computed again, alone."""
    (tmp_path / "spring.yaml").write_text(SPRING)
    (tmp_path / "servo.py").write_text(SERVO)
    keys = {"sampling": {"rate": 7}, "controller": {"function": "servo.py:Servo", "arguments": {"gain": 5}, "model": {}}}
    (tmp_path / "scenario.yaml").write_text(SCENARIO)
    text = yaml.safe_dump(yaml.safe_load(SCENARIO) | keys | (yaml.safe_load(changes) or {}))
    sweep = SWEEP.replace("[1, -1]", "[1, 2]").replace("[1, 400, 1000000]", "[1, 4, 8]").replace("[0, 3]", "[0, 3, 9.5]")
    if "noise" in changes:                                      # of each run
        sweep = sweep.replace("{key: robot.mass.b, list: [1, 2]}", "{key: seed, list: [5, 6]}")
    evaluator = batch(tmp_path, sweep.replace("max(abs(v.x))", "max(abs(tau.x))"), scenario=text).evaluator
    assert evaluator.sequential_reason == reason and evaluator.is_vectorized is (not reason)
    if reason:
        return
    together = evaluator.compute_chunk(0, 18)
    evaluator.__dict__["vectorized_sweep"] = None
    apart = evaluator.compute_chunk(0, 18)
    assert list(together.status) == list(apart.status) and list(together.reason) == list(apart.reason)
    assert "noise" not in changes or abs(together.outputs[0] - together.outputs[1]).max() > 1e-3
    assert (together.status.count("complete") in range(8, 13)) is ("wrong" not in changes) and "failed" in together.status
    np.testing.assert_allclose(together.outputs, apart.outputs, rtol=1e-12, atol=1e-14)
    for title, column in apart.trajectories.items():
        np.testing.assert_allclose(together.trajectories[title], column, rtol=1e-12, atol=1e-13, err_msg=title)


SAMPLED = f"""\
robot: {Path(__file__).parents[2] / "robots/double_pendulum.yaml"}
duration: 0.4
output_step: 0.1
initial: {{q: {{shoulder: 0.3}}}}
integrator: {{method: rk4, step: 0.01}}
"""
LAWS = {
    "pid": ("""\
sampling: {period: 0.02, delay: 0.015, noise: {q: 0.01}, quantization: {q: 0.001, tau: 0.01}}
saturate: {shoulder: 2.5}
joints:
  shoulder: {torque: {pid: {kp: 30, ki: 200, kd: 2, target: 0.5*sin(3*t)}}}
  elbow: {torque: {pd: {kp: 20, kd: 0.5, target: q(shoulder)}}}
""", "{key: joints.shoulder.torque.pid.kp, list: [30, 20]}"),
    "computed torque": ("""\
sampling: {rate: 90}
control: {law: computed_torque, bandwidth: 12, motion: {"*": 0.4}}
""", "{key: initial.v.elbow, list: [0.5, 1]}"),
}


@pytest.mark.parametrize("name", LAWS)
def test_laws_of_sampled_controllers_are_vectorized(tmp_path, name):
    """Also with robots, noise, gains and states of each run; no run is computed again, alone."""
    text, gain = LAWS[name]
    sweep = ("parameters:\n  - {key: robot.mass.lower, list: [1, 2]}\n  - {key: seed, list: [3, 4]}\n"
             f"  - {gain}\noutputs: {{last: final(q.elbow), most: max(abs(tau.shoulder))}}\n")
    evaluator = batch(tmp_path, sweep, scenario=SAMPLED + text).evaluator
    assert evaluator.sequential_reason == "" and evaluator.is_vectorized
    together = evaluator.compute_chunk(0, 8)
    assert not evaluator.vectorized_sweep.rows(together.values)[1].any() and together.status == ["complete"] * 8
    evaluator.__dict__["vectorized_sweep"] = None
    apart = evaluator.compute_chunk(0, 8)
    np.testing.assert_allclose(together.outputs, apart.outputs, rtol=1e-11, atol=1e-13)
    assert len({x.round(9) for x in together.outputs[:, 0]}) == (8 if name == "pid" else 4)


GRIPPER = """\
name: gripper
links: {arm: {mass: 2, com: [0, 0, -0.3], inertia: [0.1, 0.1, 0.02]}, left: {mass: 0.1}, right: {mass: 0.2}}
joints:
  turn: {type: revolute, parent: world, child: arm, axis: [0, 1, 0], damping: 0.1}
  left: {type: prismatic, parent: arm, child: left, axis: [1, 0, -1], stiffness: 30, rest: 0.1}
  right: {type: prismatic, parent: arm, child: right, axis: [-1, 0, -1], mimic: {joint: left, multiplier: -0.5, offset: 0.02}}
"""
GRIPPER_SWEEP = """\
parameters:
  - {key: robot.mass.right, list: [0.1, 0.3]}
  - {key: initial.q.left, list: [0.05, 0.2]}
outputs: {last: final(q.right), most: max(abs(v.turn))}
"""


@pytest.mark.parametrize(("joints", "reason"), [
    ("", ""), ("joints: {left: {prescribe: {position: 0.1}}}\n", ""),
    ("joints: {left: {prescribe: {position: 0.1}}, right: {prescribe: {position: -0.03}}}\n",
     "loops, or couplings that are not eliminated"),
    ("joints: {turn: {torque: {pd: {kp: 5, target: 1}}}}\nsaturate: {turn: 1}\n",
     "forces that switch with the state, such as at a limit")])
def test_runs_of_robots_with_mimic_joints_are_vectorized(tmp_path, joints, reason):
    """A driver and its follower that are both prescribed have separate forces: these runs solve for multipliers."""
    (tmp_path / "gripper.yaml").write_text(GRIPPER)
    text = f"robot: gripper.yaml\nduration: 0.5\noutput_step: 0.1\ninitial: {{q: {{turn: 0.4}}}}\n{joints}"
    sweep = GRIPPER_SWEEP.replace("left, list: [0.05, 0.2]", "turn, list: [0.1, 0.4]") if joints else GRIPPER_SWEEP
    evaluator = batch(tmp_path, sweep, scenario=text).evaluator
    assert evaluator.sequential_reason == reason and evaluator.is_vectorized is (not reason)
    together = evaluator.compute_chunk(0, 4)
    runs = [evaluator.simulate(evaluator.binding.bind(values)) for values in zip(*together.values, strict=True)]
    expected = [[run.q[-1, 2], np.abs(run.v[:, 0]).max()] for run in runs]
    np.testing.assert_allclose(together.outputs, expected, rtol=1e-10)
    assert list(together.status) == ["complete"] * 4


DRIVEN = f"""\
robot: {Path(__file__).parents[2] / "robots/double_pendulum.yaml"}
duration: 0.3
output_step: 0.1
initial: {{q: {{shoulder: 0.3}}}}
integrator: {{method: rk4, step: 1.0e-3}}
joints:
  shoulder: {{torque: {{table: {{of: q(shoulder), points: [[-1, 3], [0, 0.5], [1, -4]]}}}}}}
  elbow: {{torque: "3*sin(9*t)"}}
"""
MOTOR = """\
motors: {elbow: {gear: 20, curve: [[0, 0.1], [60, 0.1], [200, -0.05]], gear_efficiency: 0.8}}
"""
THRUSTS = f"""\
robot: {Path(__file__).parents[2] / "robots/quadrotor.yaml"}
duration: 0.3
output_step: 0.1
integrator: {{method: rk4, step: 1.0e-3}}
initial: {{v: {{base: [0, 0, 0, 0, 0, 1]}}}}
control:
  law: state_feedback
  gain: {{thrust.rotor1: {{v.base.vz: 0.5}}, thrust.rotor2: {{v.base.vz: 0.4}}, thrust.rotor3: {{v.base.vz: 0.5}},
         thrust.rotor4: {{v.base.vz: 0.4}}}}
  setpoint: {{}}
"""


@pytest.mark.parametrize(("scenario", "key", "values", "output", "reason"), [
    (DRIVEN, "joints.shoulder.torque.table.points.0.1", [2.0, 3.0], "final(q.shoulder)", ""),
    (DRIVEN + MOTOR, "motors.elbow.gear", [10, 30], "max(abs(tau.elbow))",
     "forces that switch with the state, such as at a limit"),
    (THRUSTS, "control.gain.thrust.rotor1.v.base.vz", [0.3, 0.8], "max(abs(v.base.wx))", "")])
def test_runs_with_tables_motors_and_thrusts(tmp_path, scenario, key, values, output, reason):
    """Each run of a batch is the run alone, also where it is computed with others."""
    sweep = f"parameters: [{{key: {key}, list: {values}}}]\noutputs: {{x: {output}}}\n"
    evaluator = batch(tmp_path, sweep, scenario=scenario).evaluator
    assert evaluator.sequential_reason == reason
    together = evaluator.compute_chunk(0, 2)
    for k, value in enumerate(values):
        run = evaluator.simulate(evaluator.binding.bind([value]))
        columns = {name: x for name, _, x in run.columns}
        x = {"final(q.shoulder)": run.q[-1, 0], "max(abs(tau.elbow))": np.abs(run.tau[:, 1]).max(),
             "max(abs(v.base.wx))": np.abs(columns.get("v.base.wx", run.v[:, 0])).max()}[output]
        assert together.outputs[k][0] == pytest.approx(x, rel=1e-10)
    assert together.outputs[0][0] != together.outputs[1][0]


CONTROLLED = f"""\
robot: {Path(__file__).parents[2] / "robots/double_pendulum.yaml"}
duration: 0.4
output_step: 0.1
initial: {{q: {{shoulder: 0.3}}}}
control: {{law: computed_torque, bandwidth: 8, motion: {{shoulder: "0.4*sin(3*t)", elbow: 0.2}}, model: {{mass.upper: 0.8}}}}
"""
MODEL_ERRORS = """\
parameters:
  - {key: robot.mass.lower, list: [0.7, 1.3]}
  - {key: control.model.mass.upper, list: [0.6, 1.1]}
outputs: {shoulder: final(q.shoulder), force: final(tau.shoulder)}
"""


def test_a_sweep_of_the_robot_does_not_change_the_model_of_its_controller(tmp_path):
    """Each run is that of a robot that a controller with another model drives. All run in one batch, as numbers of one code."""
    evaluator = batch(tmp_path, MODEL_ERRORS, scenario=CONTROLLED).evaluator
    assert evaluator.is_vectorized and evaluator.is_affine
    together = evaluator.compute_chunk(0, 4)
    robot, scenario = ld.load("robots/double_pendulum.yaml"), yaml.safe_load(CONTROLLED)
    for outputs, plant, model in zip(together.outputs, *together.values, strict=True):
        nominal = tmp_path / f"nominal_{model}.yaml"
        ld.save(robot.with_changes(mass={"upper": model}), nominal, force=True)
        control = scenario["control"] | {"model": {"robot": str(nominal)}}
        changed = tmp_path / f"robot_{plant}.yaml"
        ld.save(robot.with_changes(mass={"lower": plant}), changed, force=True)
        run = ld.run_scenario(scenario | {"robot": str(changed), "control": control})
        np.testing.assert_allclose(outputs, [run.q[-1, 0], run.tau[-1, 0]], rtol=1e-10)


def test_runs_with_sensors_are_sequential_and_have_other_noise_for_other_seeds(tmp_path):
    (tmp_path / "gripper.yaml").write_text(GRIPPER)
    sensors = "sensors: {e: {type: encoder, rate: 10, joints: [turn], noise: 0.1}}\n"
    evaluator = batch(tmp_path, "parameters: [{key: seed, list: [1, 2, 1]}]\noutputs: {error: final(meas.q.turn - q.turn)}\n",
                      scenario=f"robot: gripper.yaml\nduration: 0.2\noutput_step: 0.1\n{sensors}").evaluator
    assert evaluator.sequential_reason == "sensors" and not evaluator.is_vectorized
    first, second, again = evaluator.compute_chunk(0, 3).outputs[:, 0]
    assert first == again and first != second and 0.0 < abs(first) < 0.5
