"""Robots attached to robots: a robot in two parts is the whole robot, and everything of a part has its prefix."""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from liedyn.analysis.recorded_robot import robot_of
from liedyn.errors import CheckFailed, ModelError
from liedyn.io.robots.visual_shapes import link_meshes
from liedyn.model.composition import attach_robot
from liedyn.model.description import Joint
from zoo import ROBOTS as ZOO
from zoo import model_of, state

EXACT = 1e-12                     # relative: another order of sums
ROOT = Path(__file__).parents[2]
WALL = """\
name: wall
links: {plate: {mass: 2, inertia: [0.1, 0.1, 0.1]}}
joints: {slide: {type: prismatic, parent: world, child: plate, axis: [1, 0, 0], limits: {lower: -1, upper: 1}}}
actuated: [slide]
"""
TOOL = """\
name: tool
links:
  body: {mass: 1, inertia: [0.01, 0.01, 0.02]}
  tip: {mass: 0.2, inertia: [1.0e-3, 1.0e-3, 1.0e-3]}
  jaw: {mass: 0.1, inertia: [1.0e-3, 1.0e-3, 1.0e-3]}
  knob: {mass: 0.1, inertia: [1.0e-3, 1.0e-3, 1.0e-3]}
joints:
  turn: {type: revolute, parent: body, child: tip, axis: [0, 1, 0], origin: {xyz: [0, 0, 0.1]}, limits: {lower: -1, upper: 1}}
  grip: {type: prismatic, parent: tip, child: jaw, axis: [1, 0, 0], limits: {lower: 0, upper: 1},
         mimic: {joint: turn, multiplier: 0.5}}
  dial: {type: continuous, parent: body, child: knob, axis: [1, 0, 0]}
couplings:
  cam: {follower: dial, driver: turn, function: "0.3*sin(turn) + turn"}
elements:
  spring: {type: spring, a: {link: world, xyz: [0, 0, 0.3]}, b: tip, stiffness: 100, free_length: 0.2}
actuators:
  jet: {link: tip, axis: [1, 0, 0]}
keyframes:
  bent: {q: {turn: 0.5}}
actuated: [turn]
"""
INCLUDE = "include: {robot: tool.yaml, parent: plate, prefix: left_, origin: {xyz: [0, 0, 0.2]}}\n"


@pytest.fixture
def files(tmp_path):
    """files(include, **others): the path of a robot file that includes tool.yaml in another folder's file."""
    def written(text: str = INCLUDE, **others: str) -> Path:
        (tmp_path / "tool.yaml").write_text(TOOL)
        for name, content in others.items():
            (tmp_path / f"{name}.yaml").write_text(content)
        (tmp_path / "whole.yaml").write_text(WALL + text)
        return tmp_path / "whole.yaml"
    return written


@pytest.mark.parametrize("name", [name for name in ZOO if name.startswith("every kind") and "twice" not in name])
def test_a_robot_in_two_parts_is_the_whole_robot(name):
    """Cut at each joint that has others behind it: its joint carries the second part."""
    whole, (q, v, a, _) = model_of(name), state(model_of(name))
    robot = ZOO[name]
    for joint in robot.joints[1::4]:
        names = {joint.child}
        for each in whole.description.joints:
            names |= {each.child} if each.parent in names else set()
        first, second = (replace(robot, links=tuple(x for x in robot.links if (x.name in names) == inside), visuals={},
                                 joints=tuple(x for x in robot.joints if (x.child in names) == inside and x is not joint))
                         for inside in (False, True))
        if not first.links:
            continue
        composed = ld.build(attach_robot(first, replace(second, base="fixed"), joint))
        vs = np.concatenate([np.arange(whole.nv)[whole.v_index(each.name)] for each in composed.joints])
        qs = np.concatenate([np.arange(whole.nq)[whole.q_index(each.name)] for each in composed.joints])
        for x, y in ((ld.mass_matrix(composed, q[qs]), ld.mass_matrix(whole, q)[np.ix_(vs, vs)]),
                     (ld.inverse_dynamics(composed, q[qs], v[vs], a[vs]), ld.inverse_dynamics(whole, q, v, a)[vs])):
            assert np.abs(x - y).max() < EXACT * np.abs(y).max()


def test_everything_of_a_part_has_the_prefix(files):
    robot = ld.load_description(files())
    assert [link.name for link in robot.links] == ["plate", "left_body", "left_tip", "left_jaw", "left_knob"]
    joints = {joint.name: joint for joint in robot.joints}
    assert list(joints) == ["slide", "left_mount", "left_turn", "left_grip", "left_dial"]
    assert (joints["left_mount"].parent, joints["left_mount"].child, joints["left_mount"].type) == ("plate", "left_body", "fixed")
    assert joints["left_mount"].origin.translation == (0.0, 0.0, 0.2)
    assert joints["left_grip"].mimic == ld.Mimic("left_turn", 0.5) and joints["left_turn"].coordinates[0].upper == 1.0
    assert [(each.name, each.function.text) for each in robot.couplings] == [("left_cam", "0.3*sin(left_turn) + left_turn")]
    assert [(each.name, each.a, each.b) for each in robot.elements] == [("left_spring", "left_body", "left_tip")]
    assert [(each.name, each.link) for each in robot.actuators] == [("left_jet", "left_tip")]
    assert robot.actuated == ("slide", "left_turn") and robot.keyframes[0].name == "left_bent"
    model = ld.build(robot)
    assert model.keyframes["left_bent"].q[model.q_index("left_turn")] == 0.5


@pytest.mark.parametrize("ending", ["yaml", "urdf"])
def test_a_composed_robot_is_written(files, tmp_path, ending):
    model = ld.load(files())
    ld.save(model, tmp_path / f"out.{ending}", lossy=True)
    again = ld.load(tmp_path / f"out.{ending}")
    assert set(again.link_names) - {"world"} == set(model.link_names) and again.joint_names == model.joint_names
    assert again.nc == model.nc
    if ending == "yaml":
        assert replace(again.description, name="whole") == replace(model.description, name="whole")


def test_attach_and_include_are_the_same(files):
    model, wall = ld.load(files()), ld.load(files().with_name("tool.yaml"))
    (files().parent / "wall.yaml").write_text(WALL)
    other = ld.attach(ld.load(files().parent / "wall.yaml"), wall, parent="plate", prefix="left_", origin=[0, 0, 0.2])
    assert other.description == model.description and other.source is None


def test_grounds_of_parts():
    """A root link, joints that start at the ground, and a floating base, on a link and on the ground."""
    cart, arm = ld.load_description("robots/cart_pole.yaml"), ld.load_description("robots/ur5.yaml")
    both = ld.attach(cart, cart, parent="cart", prefix="b_", origin=[0, 0.5, 0])
    assert both.joint_names == ("cart", "pole", "b_cart", "b_pole") and "b_ground" in both.link_names
    # two arms on the ground: the root link of the first one is the ground
    arms = ld.attach(arm, arm, parent="world", prefix="b_", origin=[0, 1, 0])
    assert next(joint for joint in arms.description.joints if joint.name == "b_mount").parent == "base_link"
    # two floating robots, and a floating robot that carries another one
    body = ld.load_description("robots/asymmetric_body.yaml")
    pair = ld.attach(body, body, parent="world", prefix="b_", joint="free")
    assert (pair.base, pair.nv, pair.joint_names) == ("fixed", 12, ("base", "b_mount"))
    assert ld.attach(body, body, parent=body.links[0].name, prefix="b_").nv == 6


def test_springs_to_the_ground_of_a_floating_part():
    """They act between the mount and the part."""
    body = ld.load_description("robots/asymmetric_body.yaml", base="floating")
    link = body.links[0].name
    spring = ld.ForceElement("s", "spring", "world", link, pose_a=[0.1, 0, 0], pose_b=[0, 0, 0.2], stiffness=50, free_length=0.1)
    robot = attach_robot(ld.load_description("robots/cart_pole.yaml"), replace(body, elements=(spring,)),
                         Joint("b_mount", "free", "cart", "", [0, 0, 1]), "b_")
    element, = robot.elements
    assert (element.a, element.pose_a.translation, element.b) == ("cart", (0.1, 0.0, 1.0), f"b_{link}")


def test_keyframes_of_a_base(files):
    """Values of a floating base belong to a free mount, and to no joint otherwise."""
    body = replace(ld.load_description("robots/asymmetric_body.yaml", base="floating"),
                   keyframes=(ld.Keyframe("high", q={"base": [0, 0, 2, 0, 0, 0, 1]}),))
    cart = ld.load_description("robots/cart_pole.yaml")
    free = ld.attach(cart, body, parent="world", prefix="b_", joint="free")
    assert free.keyframes["b_high"].q[free.q_index("b_mount")][2] == 2.0
    assert not ld.attach(cart, body, parent="cart", prefix="b_").keyframes["b_high"].q.any()


def test_a_robot_of_parts_only_whose_parts_and_joints_name_each_other(files):
    """Two tools, one on the other, a link and a loop of the file between them, and a motor that it chooses."""
    path = files()
    path.write_text("""\
links: {bar: {mass: 1, inertia: [0.1, 0.1, 0.1]}}
joints:
  swing: {type: revolute, parent: b_tip, child: bar, axis: [0, 1, 0], limits: {lower: -3, upper: 3}, mimic: {joint: a_turn}}
include:
  - {robot: tool.yaml, parent: world, prefix: a_,
     joint: {type: revolute, axis: [0, 0, 1], limits: {lower: -1, upper: 1}, name: table}}
  - {robot: tool.yaml, parent: a_tip, prefix: b_, ignore_mimic: true}
actuated: [a_turn, table]
""")
    robot = ld.load_description(path)
    assert [joint.name for joint in robot.joints] == ["swing", "table", "a_turn", "a_grip", "a_dial", "b_mount", "b_turn",
                                                      "b_grip", "b_dial"]
    assert not any(joint.mimic for joint in robot.joints if joint.name.startswith("b_")) and len(robot.couplings) == 1
    assert set(ld.build(robot).joint_names) == {each.name for each in robot.joints} - {"b_mount"}
    assert robot.actuated == ("a_turn", "table", "b_turn")


def test_meshes_are_found_relative_to_their_own_file(tmp_path):
    for folder in ("parts", "whole"):
        (tmp_path / folder / "meshes").mkdir(parents=True)
        (tmp_path / folder / "meshes" / "a.stl").write_text("")
    (tmp_path / "whole" / "meshes" / "b.stl").write_text("")
    visual = "".join(f'<visual><geometry><mesh filename="meshes/{name}.stl"/></geometry></visual>' for name in "ab")
    (tmp_path / "parts" / "part.urdf").write_text(f'<robot name="part"><link name="hand">{visual}</link></robot>')
    (tmp_path / "whole" / "whole.yaml").write_text("links: {}\ninclude: {robot: ../parts/part.urdf, parent: world, prefix: b_}\n")
    first, second = link_meshes(ld.load_description(tmp_path / "whole" / "whole.yaml"))["b_hand"]
    assert first.file == tmp_path / "parts" / "meshes" / "a.stl" and second.file is None


# results know the included files ---------------------------------------------------------------------------------------------

def test_a_changed_file_of_a_part_is_reported(files, tmp_path):
    model = ld.load(files())
    ld.trajectory_of(model, [0.0, 1.0], np.zeros((2, model.nq))).save(tmp_path / "motion.csv")
    text = (tmp_path / "motion.csv").read_text()
    assert "# loops" not in text
    assert not [w for w in recorded_warnings(tmp_path / "motion.csv") if w.code == "robot-changed"]
    (tmp_path / "tool.yaml").write_text(TOOL.replace("mass: 0.2", "mass: 0.3"))
    assert [w for w in recorded_warnings(tmp_path / "motion.csv") if w.code == "robot-changed"]


def recorded_warnings(path):
    return robot_of(ld.read_trajectory(path))[1]


# errors: one line with file and key -----------------------------------------------------------------------------------------

@pytest.mark.parametrize(("text", "message"), [
    (INCLUDE.replace("parent: plate", "parent: plat"), "whole.yaml:5: include.parent: the parent is not a link of this robot: "
     "expected a link's name or world, got 'plat' (did you mean plate?)"),
    (INCLUDE.replace("parent: plate, ", ""), "whole.yaml:5: include: the key parent is missing: expected a link's name or world"),
    (INCLUDE.replace("robot: tool.yaml, ", ""), "whole.yaml:5: include: the key robot is missing: expected the path of a robot"),
    (INCLUDE.replace("tool.yaml", "none.yaml"), "none.yaml"),
    (INCLUDE.replace("prefix: left_", "prefx: left_"), "whole.yaml:5: include.prefx: unknown key"),
    ("include: {robot: whole.yaml, parent: plate}\n", "whole.yaml:5: include.robot: robot files include each other in a cycle: "
     "got"),
    ("include:\n  - {robot: tool.yaml, parent: plate}\n  - {robot: tool.yaml, parent: plate}\n",
     'whole.yaml:7: include[1]: the robot already has a link "body" (give the attached robot a prefix)'),
    ("include:\n  - {robot: tool.yaml, parent: plate, prefix: a_}\n  - {robot: tool.yaml, parent: plate, prefix: a_}\n",
     'whole.yaml:7: include[1]: the robot already has a link "a_body" (give the attached robot another prefix)'),
    (INCLUDE.replace("}}", "}, joint: {type: revolute}}"), "whole.yaml:5: include.joint: the key axis is missing"),
    (INCLUDE.replace("}}", "}, joint: {type: curve, coordinate: x}}"), "whole.yaml:5: include.joint: a curve requires functions "
     "or a table"),
    (INCLUDE.replace("}}", "}, joint: {name: slide, type: curve, coordinate: x, functions: {z: q**2}}}"),
     'whole.yaml:5: include: the robot already has a joint "slide"'),
    (INCLUDE.replace("}}", "}, joint: {type: curve, coordinate: x, functions: {z: q**2}}}").replace("plate", "plat"),
     "whole.yaml:5: include.parent: the parent is not a link"),
    (INCLUDE.replace("}}", "}, joint: {type: revolute, axis: [0, 0, 0]}}"), "whole.yaml:5: include.joint.axis: the axis is the"),
    (INCLUDE.replace("}}", "}, ignore: [fluid]}"), "tool.yaml: parts can be ignored in MJCF files only: got "
     "'fluid' (included at "),
    ("include: []\n", "whole.yaml:5: include: expected a list of at least 1 included robots, got []"),
], ids=range(15))
def test_errors_name_file_and_key(files, text, message):
    with pytest.raises(ModelError) as error:
        ld.build(ld.load_description(files(text)))
    assert message in str(error.value) and "\n" not in str(error.value)


CURVE = {"coordinate": "pitch", "functions": {"x": "0.1*sin(rail)", "roll": "0.2*q**2"}}


@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_a_joint_along_a_curve_carries_a_robot(files, base):
    """The whole robot, written with this joint. The ground of a floating part is that of its mount."""
    path = files("include: {robot: tool.yaml, parent: plate, origin: {xyz: [0, 0, 0.2]}, joint: {name: rail, type: curve, "
                 "coordinate: pitch, functions: {x: '0.1*sin(rail)', roll: '0.2*q**2'}, limits: {lower: -1, upper: 1}}}\n")
    path.with_name("tool.yaml").write_text(TOOL + f"base: {base}\n")
    wall, tool = ld.load_description(path).joints[0], ld.load_description(path.with_name("tool.yaml"))
    rail = ld.curve_joint("rail", "plate", "body", **CURVE, limits=(-1, 1), origin=[0, 0, 0.2])
    included = ld.load(path)
    attached = ld.attach(ld.load_description(files("")), replace(tool, base=base), parent="plate", origin=[0, 0, 0.2],
                         joint={"name": "rail", "type": "curve", "limits": (-1, 1), **CURVE})
    expected = {x.name: x for x in ld.Robot("", [], [wall, rail, *tool.joints], couplings=tool.couplings).joints}
    ground = ("body", [0, 0, 0.3]) if base == "fixed" else ("plate", [0, 0, 0.5])
    for model in (included, attached):
        robot = model.description
        assert {x.name: x for x in robot.joints} == expected and robot.actuated == ("slide", "rail", "turn")
        assert {x.name for x in robot.links} == {"plate", "rail.x", "rail.pitch", *(x.name for x in tool.links)}
        assert {*robot.couplings} == {*rail.couplings, *tool.couplings}
        assert model.independent == ("slide", "rail", "turn") and model.keyframes["bent"].q[model.q_index("turn")] == 0.5
        assert (robot.elements[0].a, [*robot.elements[0].pose_a.translation]) == ground
        assert ld.build(robot).joint_names == model.joint_names


def test_a_cycle_of_three_files(files):
    path = files("include: {robot: b.yaml, parent: plate}\n", b=WALL + "include: {robot: c.yaml, parent: plate}\n",
                 c=WALL + "include: {robot: whole.yaml, parent: plate}\n")
    cycle = r"c\.yaml:5: include\.robot: .* cycle: got 'whole\.yaml -> b\.yaml -> c\.yaml -> whole\.yaml' \(included"
    with pytest.raises(ModelError, match=cycle):
        ld.load_description(path)


def test_an_error_of_a_part_names_its_own_file(files):
    path = files()
    (path.parent / "tool.yaml").write_text(TOOL.replace("mass: 0.2", "mass: -0.2"))
    with pytest.raises(ModelError, match=r"tool\.yaml:4: links\.tip\.mass: negative mass"):
        ld.load(path)


def test_a_link_with_the_name_of_the_ground_needs_a_prefix():
    other = ld.Robot("r", [ld.Link("world"), ld.Link("b", mass=1, inertia=[1, 1, 1])],
                     [ld.Joint("j", "revolute", "world", "b", axis=[0, 0, 1])])
    cart = ld.load_description("robots/cart_pole.yaml")
    with pytest.raises(ModelError, match=r'the robot already has a link "world" \(give the attached robot a prefix\)'):
        ld.attach(cart, other, parent="cart")
    assert "b_world" in ld.attach(cart, other, parent="cart", prefix="b_").link_names


def test_the_mount_and_the_ground_do_not_take_names_of_the_part(tmp_path):
    other = ld.Robot("r", [ld.Link("ground", mass=1, inertia=[1, 1, 1])],
                     [ld.Joint("mount", "revolute", "world", "ground", axis=[0, 0, 1], limits=(-1, 1))])
    cart = ld.load_description("robots/cart_pole.yaml")
    both = ld.attach(cart, other, parent="cart", prefix="b_")
    assert [x.name for x in both.description.joints[-2:]] == ["b_mount2", "b_mount"]
    assert [x.name for x in both.description.links[-2:]] == ["b_ground2", "b_ground"]
    ld.save(other, tmp_path / "part.yaml")
    (tmp_path / "whole.yaml").write_text(WALL + "include: {robot: part.yaml, parent: plate, prefix: b_}\n")
    assert [x.name for x in ld.load(tmp_path / "whole.yaml").description.joints[-2:]] == ["b_mount2", "b_mount"]


def test_other_gravity_is_a_warning(files, tmp_path):
    path = files()
    (path.parent / "tool.yaml").write_text("gravity: [0, 0, -1.62]\n" + TOOL)
    with pytest.raises(CheckFailed, match=r"the gravity \[0.0, 0.0, -1.62\] of tool is ignored"):
        ld.load(path, strict=True)
    path.write_text("gravity: [0, 0, -1.62]\n" + path.read_text())
    assert "gravity-of-part" not in {warning.code for warning in ld.load_description(path).warnings}


def test_a_part_with_constraints_that_does_not_name_its_motors():
    cart = ld.load_description("robots/cart_pole.yaml")
    linkage = ld.load_description("robots/four_bar.yaml")
    parts = [replace(cart, actuated=("cart",)), replace(linkage, actuated=())]
    assert ld.attach(*parts, parent="tip", prefix="b_").actuated == ()
    driven = replace(linkage, actuated=("crank",))
    assert ld.attach(cart, driven, parent="tip", prefix="b_").actuated == ("cart", "pole", "b_crank")
