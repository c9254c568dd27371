"""Robot YAML: every joint type and key, shapes against integrals, and the same robot as a URDF."""
from __future__ import annotations

import math

import numpy as np
import pytest

from liedyn.io.robots.robot_yaml import read_robot_yaml
from liedyn.io.robots.urdf import read_urdf
from liedyn.model.description import JOINT_TYPES, STANDARD_GRAVITY, Actuator, Coordinate, Joint
from liedyn.model.links import IDENTITY, Link, Pose
from liedyn.model.mass_properties import SHAPES, rotated_inertia, uniform
from liedyn.model.validate import validate

EVERYTHING = """\
name: all
base: fixed
gravity: [0, 0, -1.62]
links:
  a: {mass: 1.2, com: [0, 0, -0.25], inertia: [0.01, 0.02, 0.015]}
  b: {mass: 2, inertia: [0.1, 0.01, 0.02, 0.2, 0.03, 0.15]}
  frame: {}
  nothing:
  c: {shape: {box: [0.1, 0.2, 0.6]}, density: 1000, com: [0, 0, 0.3]}
  d: {shape: {sphere: {radius: 0.5}}, mass: 10}
  e: {shape: {cylinder: {radius: 0.1, length: 0.6}}, mass: 3, rpy: [1.5707963267948966, 0, 0]}
  f: {shape: {capsule: {radius: 0.1, length: 0.3}}, mass: 2}
  g: {mass: 1, inertia: [1, 1, 1]}
  h: {mass: 1, inertia: [1, 1, 1]}
  i: {mass: 1, inertia: [1, 1, 1]}
  j: {mass: 1, inertia: [1, 1, 1]}
joints:
  revolute:
    type: revolute
    parent: world
    child: a
    origin: {xyz: [1, 2, 3], rpy: [0, 0, 0]}
    axis: [0, 3, 4]
    limits: {lower: -1, upper: 1, velocity: 2, effort: 50}
    damping: 0.1
    friction: 0.2
    armature: 0.3
    stiffness: 0.4
    rest: -0.5
  continuous: {type: continuous, parent: a, child: b, axis: [1, 0, 0], limits: {velocity: 3}}
  fixed: {type: fixed, parent: b, child: frame, origin: {quaternion: [0, 0, 0.6, 0.8], xyz: [0, 0, 1]}}
  prismatic: {type: prismatic, parent: world, child: c, axis: [1, 0, 0], limits: {lower: 0, upper: 1}}
  helical: {type: helical, parent: c, child: d, axis: [0, 0, 1], pitch: 0.01, stiffness: [5]}
  ball: {type: ball, parent: d, child: e, damping: [1, 2, 3]}
  free: {type: free, parent: world, child: nothing}
  universal:
    {type: universal, parent: e, child: f, axes: [[1, 0, 0], [0, 1, 0]], limits: {lower: -1, upper: [1, 2]}, rest: [0.1, 0.2]}
  cylindrical: {type: cylindrical, parent: f, child: g, axis: [0, 1, 0], damping: 2}
  planar: {type: planar, parent: g, child: h, axis: [0, 0, 1]}
  euler: {type: euler, parent: h, child: i, sequence: zyx, friction: 1}
  screws: {type: screws, parent: i, child: j, screws: [[0, 0, 1, 0, 0, 0], [0, 0, 0, 2, 0, 0]]}
actuators:
  rotor1: {link: a, position: [0.2, 0, 0], axis: [0, 0, 2], torque_ratio: 0.016}
  rotor2: {link: a}
"""


def read(tmp_path, text, name="robot.yaml"):
    path = tmp_path / name
    path.write_text(text)
    return read_robot_yaml(path)


@pytest.fixture
def robot(tmp_path):
    return read(tmp_path, EVERYTHING)


def joint(robot, name):
    return next(joint for joint in robot.joints if joint.name == name)


def link(robot, name):
    return next(link for link in robot.links if link.name == name)


def test_robot(robot):
    assert (robot.name, robot.base, robot.gravity) == ("all", "fixed", (0, 0, -1.62))
    assert [joint.type for joint in robot.joints] == [joint.name for joint in robot.joints]
    assert {joint.type for joint in robot.joints} == set(JOINT_TYPES)
    assert [(warning.code, warning.place.key) for warning in validate(robot).warnings] == [("axis-not-unit", "revolute")]
    assert robot.actuators == (Actuator("rotor1", "a", (0.2, 0, 0), (0, 0, 2), 0.016), Actuator("rotor2", "a"))
    assert [actuator.axis for actuator in validate(robot).actuators] == [(0, 0, 1), (0, 0, 1)]


def test_what_is_left_out_takes_its_default(tmp_path):
    robot = read(tmp_path, "links:\n  a:\n", "arm.yaml")
    assert (robot.name, robot.base, robot.gravity) == ("arm", "fixed", STANDARD_GRAVITY)
    assert robot.links == (Link("a"),) and robot.joints == () and robot.actuators == ()
    assert read(tmp_path, "links: {a: {}}\nbase: floating\njoints:\nactuators: {}\n").base == "floating"


def test_links(robot):
    assert link(robot, "a") == Link("a", 1.2, (0, 0, -0.25), (0.01, 0, 0, 0.02, 0, 0.015))
    assert link(robot, "b") == Link("b", 2, (0, 0, 0), (0.1, 0.01, 0.02, 0.2, 0.03, 0.15))
    assert link(robot, "frame") == Link("frame") and link(robot, "nothing") == Link("nothing")
    box = link(robot, "c")
    assert (box.mass, box.com) == (pytest.approx(12), (0, 0, 0.3))
    assert box.inertia == pytest.approx((0.4, 0, 0, 0.37, 0, 0.05))
    assert link(robot, "d").inertia == pytest.approx((1, 0, 0, 1, 0, 1))
    assert link(robot, "e").inertia == pytest.approx((0.0975, 0, 0, 0.015, 0, 0.0975))       # its axis is turned to y


def test_joints(robot):
    assert joint(robot, "revolute") == Joint(
        "revolute", "revolute", "world", "a", Pose(IDENTITY, (1, 2, 3)), ((0, 3, 4),),
        coordinates=(Coordinate(-1, 1, 2, 50, 0.1, 0.2, 0.3, 0.4, -0.5),))
    assert joint(validate(robot), "revolute").axes == ((0, 0.6, 0.8),)
    assert joint(robot, "continuous").coordinates == (Coordinate(velocity=3),)
    assert joint(robot, "fixed").origin.translation == (0, 0, 1)
    assert joint(robot, "fixed").origin.rotation == pytest.approx((0.28, -0.96, 0, 0.96, 0.28, 0, 0, 0, 1), abs=1e-15)
    assert joint(robot, "helical").pitch == 0.01 and joint(robot, "helical").coordinates[0].stiffness == 5
    assert [c.damping for c in joint(robot, "ball").coordinates] == [1, 2, 3]
    assert joint(robot, "free").coordinates == (Coordinate(),) * 6
    universal = joint(robot, "universal")
    assert universal.axes == ((1, 0, 0), (0, 1, 0))
    assert universal.coordinates == (Coordinate(-1, 1, rest=0.1), Coordinate(-1, 2, rest=0.2))
    assert [c.damping for c in joint(robot, "cylindrical").coordinates] == [2, 2]
    assert joint(robot, "planar").labels == ("x", "y", "angle")
    assert joint(robot, "euler").labels == ("z", "y", "x") and joint(robot, "euler").coordinates == (Coordinate(friction=1),) * 3
    assert joint(robot, "screws").screws == ((0, 0, 1, 0, 0, 0), (0, 0, 0, 2, 0, 0))
    assert joint(robot, "screws").units == ("rad", "m")


def test_places(robot):
    assert str(link(robot, "b").place) == f"{robot.source}:6: links.b"
    assert str(joint(robot, "revolute").place.at("axis")) == f"{robot.source}:23: joints.revolute.axis"
    assert str(joint(robot, "universal").place.at("axis")) == f"{robot.source}:37: joints.universal.axes"


SAME_YAML = """\
links:
  base: {}
  upper: {mass: 1.5, com: [0, 0.1, -0.25], inertia: [0.01, 0.001, 0.002, 0.02, 0.003, 0.015]}
  lower: {mass: 0.5, inertia: [0.01, 0.01, 0.001]}
  tool:
joints:
  shoulder: {type: revolute, parent: base, child: upper, origin: {xyz: [0, 0, 1], rpy: [0.1, 0.2, 0.3]}, axis: [0, 1, 0],
             limits: {lower: -1, upper: 1, velocity: 2, effort: 50}, damping: 0.1, friction: 0.2}
  elbow: {type: prismatic, parent: upper, child: lower, axis: [0, 0, 1], limits: {lower: 0, upper: 1, velocity: 2, effort: 5}}
  wrist: {type: fixed, parent: lower, child: tool, origin: {xyz: [0, 0, -0.5]}}
"""
SAME_URDF = """\
<robot name="robot">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0 0.1 -0.25"/><mass value="1.5"/>
    <inertia ixx="0.01" ixy="0.001" ixz="0.002" iyy="0.02" iyz="0.003" izz="0.015"/></inertial></link>
  <link name="lower"><inertial><mass value="0.5"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.001"/></inertial></link>
  <link name="tool"/>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 1" rpy="0.1 0.2 0.3"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="1" velocity="2" effort="50"/><dynamics damping="0.1" friction="0.2"/></joint>
  <joint name="elbow" type="prismatic"><parent link="upper"/><child link="lower"/><axis xyz="0 0 1"/>
    <limit lower="0" upper="1" velocity="2" effort="5"/></joint>
  <joint name="wrist" type="fixed"><parent link="lower"/><child link="tool"/><origin xyz="0 0 -0.5"/></joint>
</robot>
"""


def test_urdf_and_yaml_of_the_same_robot_give_the_same_description(tmp_path):
    (tmp_path / "robot.urdf").write_text(SAME_URDF)
    ours, theirs = read(tmp_path, SAME_YAML), read_urdf(tmp_path / "robot.urdf")
    assert ours == theirs and validate(ours) == validate(theirs)
    assert ours.source != theirs.source


def test_axes_of_six_values_are_in_the_order_of_the_description(robot):
    """xx, xy, xz, yy, yz, zz: read as a matrix, the fourth is on the diagonal."""
    xx, _, _, yy, _, zz = link(robot, "b").inertia
    assert (xx, yy, zz) == (0.1, 0.2, 0.15)


@pytest.mark.parametrize("shape, sizes, inside", [
    ("box", (0.4, 0.6, 1.0), lambda x, y, z: (abs(x) < 0.2) & (abs(y) < 0.3) & (abs(z) < 0.5)),
    ("sphere", (0.5,), lambda x, y, z: x * x + y * y + z * z < 0.25),
    ("cylinder", (0.3, 1.0), lambda x, y, z: (x * x + y * y < 0.09) & (abs(z) < 0.5)),
    ("capsule", (0.2, 0.6), lambda x, y, z: x * x + y * y + np.maximum(abs(z) - 0.3, 0) ** 2 < 0.04),
])
def test_shapes_against_a_sum_over_a_grid(shape, sizes, inside):
    n = 160
    side = (np.arange(n) + 0.5) / n - 0.5
    x, y, z = (grid[inside(*np.meshgrid(side, side, side))] for grid in np.meshgrid(side, side, side))
    volume, (xx, xy, xz, yy, yz, zz) = uniform(shape, sizes)
    assert (xy, xz, yz) == (0, 0, 0)
    # cells of 1/160 m leave about half a percent at curved edges
    assert volume == pytest.approx(len(x) / n ** 3, rel=5e-3)
    assert (xx, yy, zz) == pytest.approx((np.mean(y * y + z * z), np.mean(x * x + z * z), np.mean(x * x + y * y)), rel=5e-3)


def test_a_capsule_without_length_is_a_sphere():
    assert set(SHAPES) == {"box", "sphere", "cylinder", "capsule"}
    volume, inertia = uniform("capsule", (0.5, 0.0))
    assert volume == pytest.approx(math.pi / 6) and inertia == pytest.approx(uniform("sphere", (0.5,))[1])


def test_rotated_inertia_is_r_i_rt():
    R = np.reshape(Pose.from_xyz_rpy(rpy=(0.3, -1.1, 2.0)).rotation, (3, 3))
    I = np.array([[3, 0.1, 0.2], [0.1, 4, 0.3], [0.2, 0.3, 5]])
    xx, xy, xz, yy, yz, zz = rotated_inertia(tuple(R.ravel()), (3, 0.1, 0.2, 4, 0.3, 5))
    np.testing.assert_allclose([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], R @ I @ R.T, atol=1e-14)


def test_a_shape_too_small_to_have_a_volume_in_floating_point():
    volume, inertia = uniform("capsule", (1e-200, 1e-200))
    assert volume == 0 and inertia == (0,) * 6
