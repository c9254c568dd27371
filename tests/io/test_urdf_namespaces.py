"""Namespaces in URDF files: prefixes, declared or not, and default namespaces change neither dynamics nor shapes."""
import pytest

import liedyn as ld
from command_line import ok
from liedyn.io.robots.visual_shapes import link_meshes, link_shapes

ROBOT = """<robot name="r"{declared}>
  <material name="red"><color rgba="1 0 0 1"/></material>
  <link name="base"><visual><geometry><mesh filename="base.stl"/></geometry>{within}</visual></link>
  <link name="arm">
    <inertial><origin xyz="0 0 -0.5"/><mass value="1"/>
      <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>
    <visual><origin xyz="0 0 -0.5"/><geometry>{within}<box size="0.1 0.1 1"/></geometry><material name="red"/></visual>
    <collision><geometry><sphere radius="2"/></geometry></collision>{within}
  </link>
  <joint name="j" type="continuous"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/></joint>{outside}
</robot>"""


@pytest.fixture
def plain(tmp_path):
    path = tmp_path / "plain.urdf"
    path.write_text(ROBOT.format(declared="", within="", outside=""))
    return path


@pytest.mark.parametrize(("declared", "within", "outside"), [
    ("", "", '<sensor:camera name="cam"/>'),
    ("", '<drake:compliant a:b="1"><box size="9 9 9"/></drake:compliant>', ""),
    (' xmlns:drake="http://drake.mit.edu"', '<drake:illustration_properties/>', "<drake:joint/>"),
    (' xmlns="http://www.ros.org"', "", ""),
    (' xmlns="http://www.ros.org" xmlns:s="urn:s"', "<s:a/>", "<t:b/>")])
def test_namespaces_change_neither_dynamics_nor_shapes(tmp_path, plain, declared, within, outside):
    path = tmp_path / "robot.urdf"
    path.write_text(ROBOT.format(declared=declared, within=within, outside=outside))
    assert ld.load_description(path) == ld.load_description(plain)
    shapes = link_shapes(ld.load_description(path))
    assert shapes == link_shapes(ld.load_description(plain))
    assert shapes["arm"][0].sizes == (0.1, 0.1, 1.0) and shapes["arm"][0].colour == (1.0, 0.0, 0.0)
    assert [mesh.name for group in link_meshes(ld.load_description(path)).values() for mesh in group] == ["base.stl"]
    assert len(ld.load_description(path).visuals) == 2
    ok("convert", path, "-o", tmp_path / "out.urdf")
    assert link_shapes(ld.load_description(tmp_path / "out.urdf"))["arm"][0].sizes == (0.1, 0.1, 1.0)


def test_prefixes_that_are_not_declared_do_not_hide_a_mujoco_file(tmp_path):
    from liedyn.io.robots.xml_elements import root_tag
    (tmp_path / "a.xml").write_text("<mujoco><s:camera/></mujoco>")
    assert root_tag(tmp_path / "a.xml") == "mujoco"


def test_a_file_is_read_once_for_dynamics_and_drawing(tmp_path, monkeypatch):
    from liedyn.io.robots import xml_elements
    from liedyn.report.replay.scene import drawn_meshes
    path, read, count = tmp_path / "robot.urdf", xml_elements.read_bytes, []
    path.write_text(ROBOT.format(declared="", within="", outside=""))
    monkeypatch.setattr(xml_elements, "read_bytes", lambda *arguments: count.append(1) or read(*arguments))
    model = ld.load(path)
    path.unlink()
    assert link_shapes(model.description)["arm"] and not drawn_meshes([model], ())[0].meshes
    ld.save(model, tmp_path / "copy.urdf")
    assert len(count) == 1
    path.write_text((tmp_path / "copy.urdf").read_text())
    assert link_shapes(ld.load_description(path)) == link_shapes(model.description)


def test_what_follows_the_first_element_does_not_decide_the_format(tmp_path):
    (tmp_path / "a.xml").write_text("<mujoco><worldbody>")
    with pytest.raises(ld.ModelError, match=r"a.xml:1: not valid XML: the file ends before </worldbody>"):
        ld.load(tmp_path / "a.xml")


def test_shapes_that_cannot_be_read_do_not_stop_an_mjcf_file(tmp_path):
    path = tmp_path / "a.xml"
    path.write_text("<mujoco><worldbody><body><joint/><inertial pos='0 0 0' mass='1' diaginertia='1 1 1'/>"
                    "<geom type='box' size='1 2'/></body></worldbody></mujoco>")
    robot = ld.load_description(path)
    assert len(robot.visuals) == 1 and link_shapes(robot) == {}
