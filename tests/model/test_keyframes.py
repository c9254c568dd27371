"""Keyframes of descriptions and robot YAML, and runs that start from them."""
from dataclasses import replace

import numpy as np
import pytest

import liedyn as ld
from command_line import ok
from liedyn.errors import ModelError, ScenarioError

ROBOT = """\
links: {a: {mass: 1, inertia: [1, 1, 1]}, b: {mass: 1, inertia: [1, 1, 1]}, c: {}}
joints:
  ball: {type: ball, parent: world, child: a}
  slide: {type: prismatic, parent: a, child: b, axis: [0, 0, 1]}
  fixed: {type: fixed, parent: b, child: c}
keyframes:
  home: {q: {ball: [0, 0, 0.6, 0.8], slide: 0.2}, v: {ball: [1, 2, 3]}}
  zero: {}
"""


@pytest.fixture
def robot(tmp_path):
    path = tmp_path / "robot.yaml"
    path.write_text(ROBOT)
    return path


def test_states_are_in_the_order_of_the_model_and_survive_writing(robot, tmp_path):
    model = ld.load(robot)
    assert model.keyframes["home"].q.tolist() == [0, 0, 0.6, 0.8, 0.2] and model.keyframes["home"].v.tolist() == [1, 2, 3, 0]
    assert model.keyframes["zero"].q.tolist() == model.neutral().tolist()
    with pytest.raises(ValueError, match="read-only"):
        model.keyframes["home"].q[0] = 1.0
    ld.save(model, tmp_path / "again.yaml")
    assert ld.load(tmp_path / "again.yaml").description.keyframes == model.description.keyframes
    with pytest.warns(ld.LiedynWarning, match="keyframes: the states home, zero are left out"):
        ld.save(model, tmp_path / "robot.urdf", lossy=True)
    assert "Keyframes: home, zero" in ok("info", robot).stdout
    arm = replace(model.description, joints=model.description.joints[:1], links=model.description.links[:1], keyframes=())
    floating = replace(arm, joints=(), base="floating", keyframes=[ld.Keyframe("up", {"base": [0, 0, 1, 0, 0, 0, 1]})])
    assert ld.build(floating).keyframes["up"].q[2] == 1.0
    assert ld.build(replace(floating, base="fixed")).keyframes["up"].q.size == 0


@pytest.mark.parametrize("values, message", [
    ("q: {slied: 1}", "unknown joint: expected the name of a moving joint, got 'slied' (did you mean slide?)"),
    ("q: {fixed: 1}", "unknown joint: expected the name of a moving joint, got 'fixed'"),
    ("v: {slide: [1, 2]}", "wrong v of joint slide: expected a number, got [1.0, 2.0]"),
    ("q: {ball: [0, 0, 1]}", "wrong q of joint ball"),
    ("q: {ball: [0, 0, 1, 1]}", "the quaternion of joint ball has norm 1.414214"),
    ("p: {slide: 1}", "unknown key"),
])
def test_wrong_values(robot, values, message):
    robot.write_text(ROBOT.replace("zero: {}", f"zero: {{{values}}}"))
    with pytest.raises(ModelError) as error:
        ld.load(robot)
    assert message in str(error.value) and ":8: keyframes.zero" in str(error.value)


def test_two_keyframes_of_one_name(robot):
    two = [ld.Keyframe("x"), ld.Keyframe("x")]
    with pytest.raises(ModelError, match='two keyframes are called "x"'):
        ld.build(replace(ld.load_description(robot), keyframes=two))


def test_a_run_starts_from_a_keyframe(robot, tmp_path):
    scenario = {"robot": str(robot), "duration": 1e-3, "initial": {"keyframe": "home", "q": {"slide": 0.5}}}
    result = ld.run_scenario(scenario)
    assert np.array_equal(result.q[0], [0, 0, 0.6, 0.8, 0.5]) and np.array_equal(result.v[0], [1, 2, 3, 0])
    with pytest.raises(ScenarioError, match=r"no keyframe of this name: expected home, zero, got 'hom' .did you mean home"):
        ld.run_scenario(scenario | {"initial": {"keyframe": "hom"}})
    with pytest.raises(ScenarioError, match="from and keyframe cannot be combined: expected one of them, got 'from, keyframe'"):
        ld.run_scenario(scenario | {"initial": {"keyframe": "home", "from": str(robot)}})
    with pytest.raises(ScenarioError, match=r"has no keyframe of this name: expected no key keyframe.*got 'x'"):
        ld.run_scenario(scenario | {"robot": "robots/top.yaml", "initial": {"keyframe": "x"}})
    ok("simulate", robot, "-S", "initial.keyframe=zero", "-S", "duration=0.001", "-o", tmp_path / "run")
    assert '"keyframe": "zero"' in (tmp_path / "run" / "run.json").read_text()
