"""URDF files: a small one in every detail, and all of example-robot-data against two independent readers."""
from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from liedyn.errors import ModelError
from liedyn.io.robots.urdf import read_urdf
from liedyn.io.robots.write_urdf import urdf
from liedyn.model.description import Coordinate, Mimic
from liedyn.model.validate import validate

cmeel = pytest.importorskip("cmeel")
ROBOTS = Path(cmeel.__file__).parents[1] / "cmeel.prefix/share/example-robot-data/robots"
FILES = sorted(ROBOTS.rglob("*.urdf"))
# errors, and why: both reasons are errors by design
REFUSED = {"romeo_laas_small.urdf": "the inertia is not positive semidefinite", "ur3.urdf": "no links in this robot"}
TYPES = {"floating": "free"}

SMALL = """\
<?xml version="1.0"?>
<!-- a comment
     of two lines -->
<robot name="small" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:property name="h" value="1"/>
  <material name="blue"/>
  <gazebo reference="a"><link name="not-a-link"/><xacro:plugin/></gazebo>
  <transmission name="t"><joint name="not-a-joint"/></transmission>
  <ros2_control><joint name="j"/></ros2_control>
  <sensor:camera/>
  <link name="a">
    <visual><geometry><mesh filename="package://nowhere/a.stl"/></geometry><odd/></visual>
    <visual><xacro:mesh/></visual>
  </link>
  <link name="b">
    <inertial>
      <origin xyz="0.1 0.2 0.3" rpy="0 0 1.5707963267948966"/>
      <mass value=" 2.5 "/>
      <inertia ixx="1" ixy="0.1" ixz="0.2" iyy="2" iyz="0.3" izz="2.5e0"/>
    </inertial>
    <contact><lateral_friction value="1"/></contact>
    <gazebo:odd/>
  </link>
  <link name="c"/> <link name="d"/> <link name="e"/> <link name="f"/>
  <link name="g"/>
  <joint name="j1" type="revolute" odd="1">
    <origin xyz="1 2 3" rpy="0 0 1.5707963267948966"/>
    <parent link="a"/>
    <child link="b"/>
    <axis xyz="0 -2e-1 0"/>
    <limit lower="-1" upper="2" effort="3" velocity="4" current="7"/>
    <dynamics damping="0.5" friction="0.25"/>
    <mimic joint="j2" multiplier="-1"/>
    <mimic joint="j3"/>
    <safety_controller k_velocity="1"/>
    <calibration rising="0"/>
    <hardware/>
  </joint>
  <joint name="j2" type="continuous">
    <parent link="b"/> <child link="c"/>
    <limit lower="-1" upper="1" effort="3" velocity="4"/>
  </joint>
  <joint name="j3" type="prismatic">
    <parent link="c"/> <child link="d"/> <axis xyz="0 0 1"/> <limit effort="1" velocity="1"/>
  </joint>
  <joint name="j4" type="fixed">
    <parent link="d"/> <child link="e"/> <axis xyz="0 0 0"/> <origin/>
  </joint>
  <joint name="j5" type="floating">
    <parent link="e"/> <child link="f"/> <dynamics damping="2"/>
  </joint>
  <joint name="j6" type="planar">
    <parent link="f"/> <child link="g"/> <axis xyz="0 1 0"/>
  </joint>
</robot>
"""


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.urdf"
    path.write_text(SMALL)
    return read_urdf(path)


def joint(robot, name):
    return next(joint for joint in robot.joints if joint.name == name)


def test_links_and_their_inertia_in_link_axes(small):
    assert small.name == "small" and small.base == "fixed"
    assert [link.name for link in small.links] == ["a", "b", "c", "d", "e", "f", "g"]
    a, b = small.links[:2]
    assert a.mass == 0 and a.inertia == (0,) * 6
    assert b.mass == 2.5 and b.com == (0.1, 0.2, 0.3)
    # a quarter turn about z maps x to y and y to -x
    assert b.inertia == pytest.approx((2, -0.1, -0.3, 1, 0.2, 2.5), abs=1e-15)


def test_joint_types_axes_origins_and_limits(small):
    assert [joint.type for joint in small.joints] == ["revolute", "continuous", "prismatic", "fixed", "free", "planar"]
    j1 = joint(small, "j1")
    assert (j1.parent, j1.child, j1.axes) == ("a", "b", ((0, -0.2, 0),))
    assert j1.origin.translation == (1, 2, 3)
    assert j1.origin.rotation == pytest.approx((0, -1, 0, 1, 0, 0, 0, 0, 1), abs=1e-15)
    assert j1.coordinates == (Coordinate(-1, 2, 4, 3, damping=0.5, friction=0.25),)
    assert j1.mimic == Mimic("j2", -1, 0)
    assert joint(small, "j2").axes == ((1, 0, 0),)                                  # URDF's default
    assert joint(small, "j2").coordinates == (Coordinate(velocity=4, effort=3),)    # no lower and upper
    assert joint(small, "j3").coordinates == (Coordinate(0, 0, 1, 1),)              # URDF's default limits
    assert joint(small, "j4").axes == () and joint(small, "j4").coordinates == ()
    assert joint(small, "j5").axes == () and joint(small, "j5").coordinates == (Coordinate(damping=2),) * 6
    assert joint(small, "j6").axes == ((0, 1, 0),) and len(joint(small, "j6").coordinates) == 3


def test_places(small):
    file = small.source
    assert str(small.links[1].place) == f'{file}:15: link "b"'
    assert str(small.links[1].place.at("mass")) == f'{file}:18: link "b", <mass value>'
    assert str(small.links[1].place.at("inertia")) == f'{file}:19: link "b", <inertia>'
    assert str(joint(small, "j1").place.at("axis")) == f'{file}:30: joint "j1", <axis xyz>'
    assert str(joint(small, "j2").place.at("axis")) == f'{file}:39: joint "j2"'     # not written: the joint's line


def test_findings_of_reading_and_of_validation(small):
    found = [(warning.code, warning.place.key, warning.place.line) for warning in validate(small).warnings]
    assert found == [("urdf-not-read", "robot", 5), ("unknown-tag", "b", 21), ("repeated-tag", "j1", 34),
                     ("unknown-tag", "j1", 37), ("unknown-attribute", "j1", 31), ("axis-not-unit", "j1", 30),
                     ("limits-zero-range", "j3", 44)]
    assert list(map(str, small.warnings[:2])) == [
        f"{small.source}:5: robot: not read: <xacro:property> (1), <gazebo> (1), <ros2_control> (1), "
        "<sensor:camera> (1) [urdf-not-read]",
        f"{small.source}:21: b: <contact> in <link> ignored: not part of URDF [unknown-tag]"]
    assert {warning.code for warning in small.warnings if warning.level == "information"} == {
        "urdf-not-read", "unknown-tag", "unknown-attribute"}


@pytest.mark.parametrize(("old", "new", "messages"), [
    ("<inertial>", "<inertal><mass/></inertal><link/><inertial>", []),                   # what it resembles is there
    ('<contact><lateral_friction value="1"/></contact>', '<mass value="3"/>',
     ["b: <mass> in <link> ignored: not part of URDF [dynamics-not-read]"]),
    ('<dynamics damping="2"/>', '<dynamics dampng="2" K="1"/>',
     ["j5: dampng of <dynamics> ignored: not part of URDF (did you mean damping?) [dynamics-not-read]"]),
    ('<dynamics damping="2"/>', '<dynamic damping="2"/>',
     ["j5: <dynamic> in <joint> ignored: not part of URDF (did you mean dynamics?) [dynamics-not-read]"]),
    ('<origin/>', '<origin quat_xyzw="1 0 0 0"/>',
     ["j4: quat_xyzw of <origin> ignored: not part of URDF (write the rotation as rpy) [dynamics-not-read]"]),
    ('<visual><xacro:mesh/></visual>', '<origin/><visuals/>', []),                                # changes no number
    ('<calibration rising="0"/>', '<calibration rising="0"/><calibration/>', [])])
def test_parts_that_resemble_dynamics_are_warnings(tmp_path, old, new, messages):
    assert SMALL.count(old) == 1
    (tmp_path / "r.urdf").write_text(SMALL.replace(old, new).replace('<mimic joint="j3"/>', ""))
    found = [str(message) for message in read_urdf(tmp_path / "r.urdf").warnings if message.level == "warning"]
    assert [text.partition(": ")[2] for text in found] == messages


def test_an_axis_without_xyz_is_a_finding(tmp_path):
    (tmp_path / "r.urdf").write_text('<robot name="r"><link name="a"/><link name="b"/>\n<joint name="j" type="continuous">\n'
                                     '<parent link="a"/><child link="b"/>\n<axis/></joint></robot>')
    robot = read_urdf(tmp_path / "r.urdf")
    assert robot.joints[0].axes == ((1, 0, 0),)
    assert [str(warning) for warning in robot.warnings] == [
        f"{tmp_path / 'r.urdf'}:4: j: <axis> has no xyz; using 1 0 0 [axis-missing]"]


def test_nothing_is_printed(tmp_path, capfd):
    (tmp_path / "small.urdf").write_text(SMALL)
    read_urdf(tmp_path / "small.urdf")
    assert capfd.readouterr() == ("", "")


def test_name_is_the_file_s_where_the_robot_has_none(tmp_path):
    (tmp_path / "arm.urdf").write_text('<robot><link name="a"/></robot>')
    assert read_urdf(tmp_path / "arm.urdf").name == "arm"


def test_an_encoding_other_than_utf8(tmp_path):
    path = tmp_path / "r.urdf"
    path.write_bytes('<?xml version="1.0" encoding="ISO-8859-1"?><robot name="ü"><link name="é"/></robot>'.encode("latin-1"))
    assert read_urdf(path).links[0].name == "é"


# all of example-robot-data ------------------------------------------------------------------------------------------

def numbers(element, key, default):
    text = element.get(key) if element is not None else None
    return [float(word) for word in text.split()] if text else default


def euler(roll, pitch, yaw):
    """Return Rz(yaw) Ry(pitch) Rx(roll), multiplied by NumPy."""
    (sr, cr), (sp, cp), (sy, cy) = ((np.sin(x), np.cos(x)) for x in (roll, pitch, yaw))
    return (np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]]) @ np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
            @ np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]]))


def symmetric(inertia):
    xx, xy, xz, yy, yz, zz = inertia
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_real_robot_as_element_tree_reads_it(path, capfd):
    if path.name in REFUSED:
        with pytest.raises(ModelError, match=REFUSED[path.name]):
            validate(read_urdf(path))
        return
    robot = validate(read_urdf(path))
    assert capfd.readouterr() == ("", "")
    root = ElementTree.parse(path).getroot()
    links, joints = root.findall("link"), root.findall("joint")
    assert [link.name for link in robot.links] == [link.get("name") for link in links]
    assert [joint.name for joint in robot.joints] == [joint.get("name") for joint in joints]
    for ours, theirs in zip(robot.links, links, strict=True):
        same_link(ours, theirs.find("inertial"))
    names = {joint.get("name") for joint in joints}
    for ours, theirs in zip(robot.joints, joints, strict=True):
        same_joint(ours, theirs, names)


def same_link(ours, inertial):
    if inertial is None:
        assert (ours.mass, ours.com, ours.inertia) == (0, (0, 0, 0), (0,) * 6)
        return
    origin, written = inertial.find("origin"), inertial.find("inertia")
    R = euler(*numbers(origin, "rpy", [0, 0, 0]))
    I = symmetric([float(written.get(key)) for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")])
    assert ours.mass == float(inertial.find("mass").get("value"))
    assert list(ours.com) == numbers(origin, "xyz", [0, 0, 0])
    np.testing.assert_allclose(symmetric(ours.inertia), R @ I @ R.T, rtol=0, atol=1e-14 * max(1e-30, np.abs(I).max()))


def same_joint(ours, theirs, names):
    kind, origin, limit, passive = theirs.get("type"), theirs.find("origin"), theirs.find("limit"), theirs.find("dynamics")
    assert ours.type == TYPES.get(kind, kind)
    assert (ours.parent, ours.child) == (theirs.find("parent").get("link"), theirs.find("child").get("link"))
    assert list(ours.origin.translation) == numbers(origin, "xyz", [0, 0, 0])
    np.testing.assert_allclose(np.reshape(ours.origin.rotation, (3, 3)), euler(*numbers(origin, "rpy", [0, 0, 0])), atol=1e-15)
    assert ([ours.mimic.joint] if ours.mimic else []) == [mimic.get("joint") for mimic in theirs.findall("mimic")
                                                             if mimic.get("joint") in names]
    if kind == "fixed":
        return
    axis = np.array(numbers(theirs.find("axis"), "xyz", [1, 0, 0]))
    np.testing.assert_allclose(ours.axes[0], axis / np.linalg.norm(axis), rtol=1e-15)
    coordinate, = ours.coordinates
    assert coordinate.damping == numbers(passive, "damping", [0])[0]
    assert coordinate.friction == numbers(passive, "friction", [0])[0]
    assert coordinate.velocity == numbers(limit, "velocity", [np.inf])[0]
    if kind != "continuous":
        assert [coordinate.lower, coordinate.upper] == [numbers(limit, key, [0])[0] for key in ("lower", "upper")]


@pytest.mark.parametrize("path", [path for path in FILES if path.name not in REFUSED], ids=lambda path: path.stem)
def test_real_robot_as_pinocchio_reads_it(path):
    """Mass, centre and inertia of each body, placement of each joint: Pinocchio merges welded links, so joints are compared by
    name where both parent bodies are one link, masses by their sum."""
    pinocchio = pytest.importorskip("pinocchio")
    robot, model = validate(read_urdf(path)), pinocchio.buildModelFromUrdf(str(path))
    moving = [joint for joint in robot.joints if joint.type != "fixed"]
    assert {joint.name for joint in moving} == set(model.names) - {"universe"}
    assert sum(link.mass for link in robot.links) >= sum(I.mass for I in list(model.inertias)[1:]) * (1 - 1e-12)
    welded_to = {joint.parent for joint in robot.joints if joint.type == "fixed"}
    links, fixed_children = {link.name: link for link in robot.links}, {j.child for j in robot.joints if j.type == "fixed"}
    for joint in moving:
        k = model.getJointId(joint.name)
        name = model.joints[k].shortname()
        if name.startswith(("JointModelR", "JointModelP")):
            direction = ["X", "Y", "Z"].index(name[-1]) if name[-1] in "XYZ" else None
            if direction is not None:
                assert joint.axes[0][direction] == pytest.approx(1, abs=1e-12)
        if joint.parent not in fixed_children and model.parents[k] != 0:
            np.testing.assert_allclose(model.jointPlacements[k].rotation, np.reshape(joint.origin.rotation, (3, 3)), atol=1e-12)
            np.testing.assert_allclose(model.jointPlacements[k].translation, joint.origin.translation, atol=1e-12)
        if joint.child not in welded_to:
            link, I = links[joint.child], model.inertias[k]
            assert I.mass == pytest.approx(link.mass, rel=1e-12)
            if link.mass > 0:
                np.testing.assert_allclose(I.lever, link.com, atol=1e-12)
                np.testing.assert_allclose(I.inertia, symmetric(link.inertia), atol=1e-12 * max(1, np.abs(link.inertia).max()))


def test_all_real_robots_are_there():
    assert len(FILES) >= 69
    assert set(REFUSED) <= {path.name for path in FILES}


LIMITED = """<robot name="r"><link name="b"/><joint name="j" type="revolute"><parent link="world"/><child link="b"/>
<axis xyz="0 0 1"/><limit lower="-1" upper="2" effort="3" velocity="4" {}/></joint></robot>"""


def test_acceleration_and_jerk_limits_are_read(tmp_path):
    """Those of URDF 1.2. The smaller of acceleration and deceleration counts."""
    path, again = tmp_path / "r.urdf", tmp_path / "again.urdf"
    path.write_text(LIMITED.format('acceleration="5" deceleration="4.5" jerk="60"'))
    robot = read_urdf(path)
    assert joint(robot, "j").coordinates == (Coordinate(-1, 2, 4, 3, acceleration=4.5, jerk=60),) and not robot.warnings
    again.write_text(urdf(robot))
    assert joint(read_urdf(again), "j").coordinates == joint(robot, "j").coordinates
    path.write_text(LIMITED.format('jerk="fast"'))
    with pytest.raises(ModelError, match="<limit jerk>: expected a number, got 'fast'"):
        read_urdf(path)
