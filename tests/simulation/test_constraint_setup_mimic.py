"""Initial states of robots with mimic joints: the driver keeps its value, followers follow, and nothing else moves."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.errors import ModelError
from messages import has_parts

INERTIA = '<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/>'
LINK = f'<link name="{{}}"><inertial><origin xyz="0 0 0.2"/><mass value="1"/>{INERTIA}</inertial></link>'


def gripper(left: str = "", right: str = '<mimic joint="left"/>', third: str = '<mimic joint="right" multiplier="2"/>') -> str:
    """Return a rotating arm with three sliding fingers."""
    fingers = "".join(f'<joint name="{name}" type="prismatic"><parent link="arm"/><child link="{name}"/><origin xyz="0 0 0.4"/>'
                      f'<axis xyz="0 {y} 0.2"/><limit lower="-1" upper="1" velocity="1" effort="50"/>\n{mimic}</joint>\n'
                      for name, y, mimic in (("third", 1, third), ("left", 1, left), ("right", -1, right)))
    return ('<robot name="two"><link name="w"/>' + "".join(map(LINK.format, ("arm", "left", "right", "third")))
            + '<joint name="turn" type="continuous"><parent link="w"/><child link="arm"/><axis xyz="1 0 0"/></joint>\n'
            + fingers + "</robot>")


@pytest.fixture
def start(tmp_path):
    def of(robot: str, q=None, v=None, **keys):
        (tmp_path / "two.urdf").write_text(robot)
        run = ld.run_scenario({"robot": str(tmp_path / "two.urdf"), "duration": 0.002, "initial": {"q": q or {}, "v": v or {}}}
                              | keys)
        return run, {name: run.q[0][k] for k, name in enumerate(run.model.q_names)}, dict(zip(run.model.v_names, run.v[0],
                                                                                             strict=True))
    return of


def test_only_followers_move(start):
    run, q, v = start(gripper(), {"left": 0.03}, {"left": 0.1})
    assert q == pytest.approx({"turn": 0, "left": 0.03, "right": 0.03, "third": 0.06}, abs=1e-16)
    assert v == pytest.approx({"turn": 0, "left": 0.1, "right": 0.1, "third": 0.2}, abs=1e-16)
    assert not any(one.code == "initial-state-projected" for one in run.warnings)               # nothing else was given


def test_an_offset_moves_the_follower(start):
    _, q, _ = start(gripper(right='<mimic joint="left" multiplier="-2" offset="0.3"/>'))
    assert q == pytest.approx({"turn": 0, "left": 0, "right": 0.3, "third": 0.6}, abs=1e-16)


def test_a_follower_that_is_given_moves_its_driver(start):
    run, q, v = start(gripper(), {"right": 0.03, "turn": 0.7}, {"third": 0.2})
    assert not any(one.code == "initial-state-projected" for one in run.warnings)               # the driver is not given
    assert q == pytest.approx({"turn": 0.7, "left": 0.03, "right": 0.03, "third": 0.06}, abs=1e-16)
    assert v == pytest.approx({"turn": 0, "left": 0.1, "right": 0.1, "third": 0.2}, abs=1e-15)


def test_the_first_of_contradictory_followers_is_kept(start):
    run, q, _ = start(gripper(), {"right": 0.03, "third": 0.1})
    assert any(one.code == "initial-state-projected" for one in run.warnings)
    kept = min(("right", "third"), key=run.model.q_names.index)
    assert q[kept] == pytest.approx({"right": 0.03, "third": 0.1}[kept], abs=1e-15)
    assert q["third"] == pytest.approx(2 * q["right"], abs=1e-15) and q["left"] == pytest.approx(q["right"], abs=1e-15)


def test_a_prescribed_follower_moves_its_driver(start):
    _, q, v = start(gripper(), joints={"third": {"prescribe": {"position": "0.1 + 0.2*t"}}})
    assert q == pytest.approx({"turn": 0, "left": 0.05, "right": 0.05, "third": 0.1}, abs=1e-15)
    assert v == pytest.approx({"turn": 0, "left": 0.1, "right": 0.1, "third": 0.2}, abs=1e-15)


@pytest.mark.parametrize(("mimics", "line", "message"), [
    ({"right": '<mimic joint="right"/>'}, 7, "joint mimics itself … got 'right -> right'"),
    ({"left": '<mimic joint="right" multiplier="2"/>', "right": '<mimic joint="left" multiplier="2"/>'}, 7,
     "joints mimic each other in a cycle … got 'right -> left -> right'"),
    ({"left": '<mimic joint="third"/>'}, 3, "joints mimic each other in a cycle … got 'third -> right -> left -> third'")])
def test_cycles_of_mimic_joints_are_an_error(tmp_path, mimics, line, message):
    (tmp_path / "two.urdf").write_text(gripper(**mimics))
    with pytest.raises(ModelError) as error:
        ld.load(tmp_path / "two.urdf")
    assert f"two.urdf:{line}: " in str(error.value) and has_parts(str(error.value), message)


def test_general_couplings_move_only_their_coordinates(tmp_path):
    (tmp_path / "three.yaml").write_text("""\
links:
  arm: {mass: 1, com: [0, 0, 0.2], inertia: [0.01, 0.01, 0.01]}
  left: {mass: 1, com: [0, 0, 0.2], inertia: [0.01, 0.01, 0.01]}
  right: {mass: 1, com: [0, 0, 0.2], inertia: [0.01, 0.01, 0.01]}
joints:
  turn: {type: continuous, parent: world, child: arm, axis: [1, 0, 0]}
  left: {type: continuous, parent: arm, child: left, axis: [1, 0, 0]}
  right: {type: continuous, parent: arm, child: right, axis: [1, 0, 0]}
couplings:
  gear: {terms: {left: 1, right: 2}, offset: 0.5}
""")
    run = ld.run_scenario({"robot": str(tmp_path / "three.yaml"), "duration": 0.002, "initial": {"v": {"left": 1.0}}})
    assert run.q[0] == pytest.approx([0, 0.1, 0.2], abs=1e-15)             # the nearest point of the line
    assert run.v[0] == pytest.approx([0, 1, -0.5], abs=1e-15) and np.all(run.q[0][0] == 0)


@pytest.mark.parametrize(("keyframe", "q", "expected"), [
    ({"left": 0.03}, {}, 0.03), ({"third": 0.08}, {}, 0.04), ({"left": 0.03, "turn": 0.2}, {"third": 0.08}, 0.04)])
def test_values_of_keyframes_are_stated_only_where_they_are_named(keyframe, q, expected):
    """Followers follow, a named follower moves its driver, and values of the scenario come first; nothing is warned about."""
    links = [ld.Link(name, mass=1, com=[0, 0, 0.2], inertia=[0.01, 0.01, 0.01]) for name in ("arm", "left", "third")]
    joints = [ld.Joint("turn", "continuous", "world", "arm", axis=[1, 0, 0]),
              ld.Joint("left", "prismatic", "arm", "left", axis=[0, 1, 0.2], limits=(-1, 1)),
              ld.Joint("third", "prismatic", "arm", "third", axis=[0, -1, 0.2], limits=(-1, 1), mimic=ld.Mimic("left", 2))]
    model = ld.build(ld.Robot("gripper", links, joints, keyframes=[ld.Keyframe("here", keyframe)]))
    run = ld.simulate(model, duration=0.002, initial={"keyframe": "here", "q": q})
    assert run.q[0] == pytest.approx([keyframe.get("turn", 0.0), expected, 2 * expected], abs=1e-15)
    assert not any(warning.code == "initial-state-projected" for warning in run.warnings)
