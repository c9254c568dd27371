"""A URDF that was read and changed is written as its file with the changes."""
import difflib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from liedyn.model.description import Coordinate, Joint, Mimic, Robot
from liedyn.model.links import Link, Pose
from liedyn.robot_files import convert, load_description

URDF = """<?xml version="1.0" encoding="utf-8"?>
<!-- an arm, größer als "klein" > 1 -->
<robot name='arm' xmlns:xacro="http://ros.org/wiki/xacro">
  <material name="grey"><color rgba=".5 .5 .5 1"/></material>
  <link name="base"/>
  <link name="upper">
    <inertial>   <!-- measured -->
      <origin xyz="0 0 0.1" rpy="0.3 0 0"/>
      <mass value = "2.50"/>
      <inertia ixx="0.01" ixy="0" ixz="0"
               iyy="0.02" iyz="0" izz="0.03" />
    </inertial>
    <visual>
      <geometry><mesh filename="meshes/upper.dae" scale="1 1 1"/></geometry>
      <material name="grey"/>
    </visual>
    <collision><geometry><cylinder radius="0.05" length="0.2"/></geometry></collision>
  </link>
  <link name="lower">
    <visual><geometry><mesh filename="package://arm/lower.dae"/></geometry></visual>
  </link>
  <joint name="shoulder" type="revolute">
    <parent link="base"/><child link="upper"/>
    <axis xyz="0 1 0"/>   <!-- y -->
    <limit effort="50" velocity="3" lower="-1" upper="1e0"/>
  </joint>
  <joint name="elbow" type="continuous">
    <origin rpy="0 0.5 0" xyz="0 0 .2"/>
    <parent link='upper'/>
    <child link='lower'/>
    <dynamics damping="0.1"/>
    <mimic joint="shoulder"/>
  </joint>
  <transmission name="shoulder_trans">
    <type>transmission_interface/SimpleTransmission</type>
    <joint name="shoulder"/>
    <actuator name="motor"><mechanicalReduction>50</mechanicalReduction></actuator>
  </transmission>
  <gazebo reference="upper"><mu1>0.9</mu1></gazebo>
</robot>
"""
LIGHT = replace(Link("lower"), mass=0.4, com=(0.0, 0.0, 0.1), inertia=(0.01, 0.0, 0.0, 0.01, 0.0, 0.01))


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(URDF.replace("<visual><geometry><mesh filename=\"package", "<inertial><mass value=\"1\"/>"
                                 "<inertia ixx='1' ixy='0' ixz='0' iyy='1' iyz='0' izz='1'/></inertial>\n    "
                                 "<visual><geometry><mesh filename=\"package"), encoding="utf-8")
    return path


def changed_lines(source, text):
    """Return the removed lines of the file, and the new ones."""
    lines = [*difflib.ndiff(source.read_text(encoding="utf-8").splitlines(), text.splitlines())]
    return tuple([line[2:].strip() for line in lines if line.startswith(sign)] for sign in ("- ", "+ "))


def with_link(robot, name, **changes):
    return replace(robot, links=tuple(replace(x, **changes) if x.name == name else x for x in robot.links))


def with_joint(robot, name, **changes):
    return replace(robot, joints=tuple(replace(x, **changes) if x.name == name else x for x in robot.joints))


@pytest.mark.parametrize("text", [URDF, URDF.replace("\n", "\r\n"), "\ufeff" + URDF, URDF.replace("\n", " \n\n")],
                         ids=["lines", "CRLF", "byte order mark", "empty lines"])
def test_an_untouched_file_is_written_as_it_is(tmp_path, text):
    path = tmp_path / "arm.urdf"
    path.write_bytes(text.replace("<visual><geometry><mesh filename=\"package", "<inertial><mass value=\"1\"/><inertia ixx='1' "
                                  "ixy='0' ixz='0' iyy='1' iyz='0' izz='1'/></inertial><visual><geometry><mesh filename="
                                  "\"package").encode())
    for robot in (ld.load(path), load_description(path)):
        assert ld.save(robot, tmp_path / "copy.urdf", force=True) == ()
        assert (tmp_path / "copy.urdf").read_bytes() == path.read_bytes()


def test_a_mass_changes_one_number(source):
    converted = convert(with_link(load_description(source), "upper", mass=3.0), "urdf", "arm.urdf", source.parent)
    assert changed_lines(source, converted.text) == (['<mass value = "2.50"/>'], ['<mass value = "3"/>'])
    assert converted.warnings == ()


def test_an_inertia_is_written_in_axes_of_the_link(source, tmp_path):
    robot = load_description(source)
    new = with_link(robot, "upper", inertia=(0.011, 0.0, 0.0, 0.02, 0.001, 0.03))
    ld.save(new, tmp_path / "new.urdf")
    assert ld.load(tmp_path / "new.urdf").description.links[1] == ld.build(new).description.links[1]
    removed, added = changed_lines(source, (tmp_path / "new.urdf").read_text(encoding="utf-8"))
    assert removed[0] == '<origin xyz="0 0 0.1" rpy="0.3 0 0"/>' and added[0] == '<origin xyz="0 0 0.1" rpy="0 0 0"/>'
    assert "iyy=\"0.02\" iyz=\"0.001\" izz=\"0.03\" />" in added[2] and len(added) == 3


CHANGES = {
    "centre of mass": lambda r: with_link(r, "upper", com=(0.1, 0.0, 0.1)),
    "no inertia": lambda r: with_link(with_joint(r, "elbow", type="fixed", mimic=None, axes=(), coordinates=()), "lower",
                                      mass=0.0, inertia=(0.0,) * 6),
    "an inertia where there was none": lambda r: with_link(r, "base", mass=1.0, inertia=(1.0, 0.0, 0.0, 1.0, 0.0, 1.0)),
    "damping": lambda r: with_joint(r, "elbow", coordinates=(Coordinate(damping=0.3, friction=0.2),)),
    "no damping": lambda r: with_joint(r, "elbow", coordinates=(Coordinate(),)),
    "limits": lambda r: with_joint(r, "shoulder", coordinates=(Coordinate(lower=-2.0, upper=2.5, velocity=3.0, effort=9.0),)),
    "an axis that the file leaves out": lambda r: with_joint(r, "elbow", axes=((0.0, 0.6, 0.8),)),
    "an origin": lambda r: with_joint(r, "shoulder", origin=Pose(translation=(0.1, 0.2, 0.3))),
    "a rotation": lambda r: with_joint(r, "elbow", origin=Pose.from_xyz_rpy((0, 0, 0.2), (0.1, 0.2, 0.3))),
    "a mimic": lambda r: with_joint(r, "elbow", mimic=Mimic("shoulder", 2.0, 0.1)),
    "no mimic": lambda r: with_joint(r, "elbow", mimic=None),
    "a name": lambda r: replace(r, name='"arm" & <more>'),
    "a motor": lambda r: replace(r, actuated=("shoulder", "elbow")),
    "no motor": lambda r: replace(r, actuated=()),
    "a floating base": lambda r: replace(with_link(r, "base", mass=1.0, inertia=(1.0, 0.0, 0.0, 1.0, 0.0, 1.0)), base="floating"),
    "a further link": lambda r: replace(r, links=(*r.links, replace(LIGHT, name="hand")), joints=(
        *r.joints, Joint("wrist", "revolute", "lower", "hand", Pose(translation=(0.0, 0.0, 0.3)), ((1.0, 0.0, 0.0),),
                         coordinates=(Coordinate(lower=-1.0, upper=1.0),)))),
    "a link less": lambda r: replace(r, links=r.links[:2], joints=r.joints[:1]),
    "all numbers": lambda r: replace(
        r, links=tuple(replace(x, mass=1.1 * x.mass, com=(0.1, 0.2, 0.3), inertia=(1.0, 0.1, 0.2, 1.1, 0.3, 1.2)) if x.mass else x
                       for x in r.links),
        joints=tuple(replace(x, origin=Pose.from_xyz_rpy((1, 2, 3), (0.1, 0.2, 0.3)), axes=((0.6, 0.0, 0.8),))
                     for x in r.joints)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_robot_is_read_back_and_all_else_stays(source, tmp_path, change):
    robot = change(load_description(source))
    warnings = ld.save(robot, tmp_path / "new.urdf")
    assert not any(w.code == "not-written" for w in warnings)
    expected, found = ld.build(robot), ld.load(tmp_path / "new.urdf")
    text = (tmp_path / "new.urdf").read_text(encoding="utf-8")
    for part in ('<!-- an arm, größer als "klein" > 1 -->', "<gazebo reference=\"upper\"><mu1>0.9</mu1></gazebo>",
                 '<mesh filename="meshes/upper.dae" scale="1 1 1"/>', '<cylinder radius="0.05" length="0.2"/>', "<!-- y -->"):
        assert part in text
    assert found.joint_names == expected.joint_names or robot.base == "floating"
    assert found.description.actuated == robot.actuated and found.name == robot.name
    q, v = expected.neutral(), np.linspace(0.1, 0.2, expected.nv)
    if robot.base == "floating":
        found, expected = found.spanning_tree(), expected.spanning_tree()
    np.testing.assert_allclose(ld.bias_force(found, q, v), ld.bias_force(expected, q, v), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(ld.mass_matrix(found, q), ld.mass_matrix(expected, q), rtol=1e-12, atol=1e-13)


def test_relative_paths_of_meshes_are_those_from_the_new_folder(source, tmp_path):
    (tmp_path / "out").mkdir()
    ld.save(load_description(source), tmp_path / "out" / "arm.urdf")
    assert changed_lines(source, (tmp_path / "out" / "arm.urdf").read_text(encoding="utf-8")) == (
        ['<geometry><mesh filename="meshes/upper.dae" scale="1 1 1"/></geometry>'],
        ['<geometry><mesh filename="../meshes/upper.dae" scale="1 1 1"/></geometry>'])


@pytest.mark.parametrize("path", ["~/upper.stl", "$(find arm)/upper.stl", "/upper.stl", "file:upper.stl", "model://arm/upper.stl"])
def test_other_paths_of_meshes_stay(source, tmp_path, path):
    source.write_text(source.read_text(encoding="utf-8").replace("meshes/upper.dae", path), encoding="utf-8")
    (tmp_path / "out").mkdir()
    ld.save(load_description(source), tmp_path / "out" / "arm.urdf")
    assert (tmp_path / "out" / "arm.urdf").read_bytes() == source.read_bytes()


def test_another_order_of_links_is_written_anew(source, tmp_path):
    """The file kept its order, so that rows of `link_poses` belonged to other links."""
    robot = load_description(source)
    ld.save(replace(robot, links=robot.links[::-1]), tmp_path / "new.urdf")
    assert ld.load(tmp_path / "new.urdf").link_names == ld.build(replace(robot, links=robot.links[::-1])).link_names


def test_a_file_that_is_not_well_formed_is_written_repaired(source, tmp_path):
    text = source.read_text(encoding="utf-8").replace('velocity="3" lower', 'velocity="3"lower')
    source.write_text(f"\n{text}", encoding="utf-8")
    with pytest.warns(UserWarning, match="warnings"):
        model = ld.load(source)
    ld.save(model, tmp_path / "new.urdf")
    text = (tmp_path / "new.urdf").read_text(encoding="utf-8")
    assert text.startswith("<?xml") and 'velocity="3" lower' in text and "<gazebo" in text


@pytest.mark.parametrize("lost", ["gone", "another encoding", "another robot"])
def test_a_file_that_cannot_be_used_is_replaced_with_a_warning(source, tmp_path, lost):
    robot = load_description(source)
    if lost == "gone":
        source.unlink()
    elif lost == "another encoding":
        source.write_bytes(source.read_text(encoding="utf-8").replace("utf-8", "iso-8859-1").encode("latin-1"))
    else:
        source.write_text("<robot name='x'><link name='y'></robot>")
    warnings = ld.save(robot, tmp_path / "new.urdf")
    assert [w.code for w in warnings] == ["not-written"] and "cannot be kept (it is gone, not in UTF-8, or" in str(warnings[0])
    assert ld.load(tmp_path / "new.urdf").description.links == ld.build(robot).description.links


def test_a_robot_of_another_file_with_the_same_names_is_that_robot(tmp_path, source):
    """The source is a hint only: the robot that the file gives is compared."""
    other = replace(ld.load_description("robots/double_pendulum.urdf"), source=str(source))
    ld.save(other, tmp_path / "new.urdf")
    found, expected = ld.load(tmp_path / "new.urdf").description, ld.build(other).description
    assert {x.name: x for x in found.links} == {x.name: x for x in expected.links}


def test_a_robot_without_a_source_is_written_anew(tmp_path):
    robot = Robot("bar", (Link("bar", 1.0, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 1.0, 0.0, 1.0)), Link("base")),
                  (Joint("hinge", "continuous", "base", "bar", Pose(), ((0.0, 0.0, 1.0),)),))
    assert ld.save(robot, tmp_path / "bar.urdf") == ()
    assert Path(tmp_path / "bar.urdf").read_text().startswith('<?xml version="1.0"?>\n<robot name="bar">')


def renamed(robot: Robot, names: dict[str, str]) -> Robot:
    """Return the robot with other names of links."""
    def name(old: str) -> str:
        return names.get(old, old)
    return replace(robot, links=tuple(replace(link, name=name(link.name)) for link in robot.links),
                   joints=tuple(replace(joint, parent=name(joint.parent), child=name(joint.child)) for joint in robot.joints))


def test_renamed_links_keep_their_meshes(source, tmp_path):
    """They were written without meshes and collision shapes, and without a message."""
    robot = renamed(load_description(source), {"base": "foot", "upper": "thigh", "lower": "shin"})
    assert ld.save(robot, tmp_path / "new.urdf") == ()
    gone, new = changed_lines(source, (tmp_path / "new.urdf").read_text(encoding="utf-8"))
    assert new == ['<link name="foot"/>', '<link name="thigh">', '<link name="shin">',
                   '<parent link="foot"/><child link="thigh"/>', '<parent link="thigh"/>', '<child link="shin"/>']
    assert len(gone) == len(new)
    assert load_description(tmp_path / "new.urdf").visuals["thigh"].meshes[0].name == "meshes/upper.dae"


def test_shapes_of_links_renamed_with_all_their_joints_are_reported(source, tmp_path):
    """The text does not show that the link is the same one. A removed link is not reported."""
    robot = load_description(source)
    new = renamed(robot, {"upper": "thigh"})
    new = replace(new, joints=tuple(replace(joint, name=f"new_{joint.name}", mimic=None) for joint in new.joints),
                  loops=(), couplings=(), actuated=())
    with pytest.warns(ld.LiedynWarning, match="upper: its shapes are left out: the robot has no link of this name"):
        ld.save(new, tmp_path / "new.urdf")
    removed = replace(robot, links=robot.links[:1], joints=(), actuated=())
    assert "upper" in robot.visuals and ld.save(removed, tmp_path / "removed.urdf") == ()


def test_shapes_of_renamed_links_that_cannot_be_kept_are_reported(source, tmp_path):
    robot = replace(renamed(load_description(source), {"upper": "thigh"}), source=None)
    with pytest.warns(ld.LiedynWarning, match="upper: its shapes are left out: the robot has no link of this name"):
        ld.save(robot, tmp_path / "new.urdf")
    with pytest.warns(ld.LiedynWarning, match="upper: its shapes are left out"):
        ld.save(robot, tmp_path / "new.yaml")
