"""Xacro files against xacro itself, and what is wrong with them."""
import numpy as np
import pytest
import xacro

import liedyn as ld
from command_line import ok, run
from liedyn.errors import ModelError
from messages import has_parts

MAIN = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="{}">
  <xacro:arg name="mass" default="2"/>
  <xacro:property name="length" value="0.5"/>
  <xacro:include filename="parts/arm.xacro"/>
  <link name="base"/>
  <xacro:arm name="upper" parent="base" mass="$(arg mass)"/>
  <xacro:if value="${{length > 0.4}}"><xacro:arm name="lower" parent="upper" mass="${{length * 2}}"/></xacro:if>
</robot>"""
ARM = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:macro name="arm" params="name parent mass">
    <link name="${name}"><inertial><origin xyz="0 0 ${length / 2}"/><mass value="${mass}"/>
      <inertia ixx="${pi / 100}" iyy="0.03" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial>
      <visual><geometry><mesh filename="parts/arm.stl"/></geometry></visual></link>
    <joint name="j_${name}" type="continuous"><parent link="${parent}"/><child link="${name}"/><origin xyz="0 0 ${length}"/>
      <axis xyz="0 1 0"/></joint>
  </xacro:macro>
</robot>"""


@pytest.fixture
def file(tmp_path):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "arm.xacro").write_text(ARM)
    (tmp_path / "arm.urdf.xacro").write_text(MAIN.format("arm"))
    return tmp_path / "arm.urdf.xacro"


def masses(model):
    return {link.name: link.mass for link in model.description.links}


@pytest.mark.parametrize("arguments", [{}, {"mass": 3.5}])
def test_the_robot_is_that_of_xacro(file, arguments):
    model = ld.load(file, xacro_args=arguments)
    text = xacro.process_file(str(file), mappings={name: str(value) for name, value in arguments.items()}).toxml()
    (file.parent / "expanded.urdf").write_text(text)
    expected = ld.load(file.parent / "expanded.urdf")
    assert np.array_equal(model.constants, expected.constants) and model.v_names == expected.v_names == ("j_upper", "j_lower")
    assert masses(model) == {"base": 0, "upper": arguments.get("mass", 2), "lower": 1}
    assert model.source == str(file) and "arm.urdf.xacro (expanded):" in str(model.description.links[1].place)


def test_packages_are_found_in_parent_folders(file):
    package = file.parent / "pack"
    (package / "urdf").mkdir(parents=True)
    (package / "package.xml").write_text("<package><name>pack</name></package>")
    (file.parent / "parts" / "arm.xacro").rename(package / "urdf" / "part.xacro")
    (package / "urdf" / "arm.urdf.xacro").write_text(
        MAIN.format("arm").replace("parts/arm.xacro", "$(find pack)/urdf/part.xacro"))
    assert ld.load(package / "urdf" / "arm.urdf.xacro").nv == 2


def test_commands_and_saved_files(file):
    target = file.parent / "out.urdf"
    ok("convert", file, "--xacro-arg", "mass=4", "-o", target)
    assert masses(ld.load(target))["upper"] == 4 and "xacro" not in target.read_text()
    assert "j_lower" in ok("info", file, "--xacro-arg", "mass=4").stdout
    assert "expected NAME=VALUE, got 'mass'" in run("info", file, "--xacro-arg", "mass").stderr
    result = ld.run_scenario({"robot": str(file), "duration": 0.01})
    assert masses(result.model)["upper"] == 2
    ld.trajectory_of(ld.load(file, xacro_args={"mass": 5}), [0.0, 0.1], np.zeros((2, 2))).save(file.parent / "motion.csv")
    assert masses(ld.load(file.parent / "motion.model.yaml"))["upper"] == 5                 # not that of the file


@pytest.mark.parametrize("old, new, message", [
    ("parts/arm.xacro", "parts/none.xacro", "xacro cannot expand the file: "),
    ("parts/arm.xacro", "$(find your_pack)/arm.xacro",
     "a package of the xacro file is not found: expected a folder of this package … got '$(find your_pack)'"),
    ("$(arg mass)", "$(arg weight)", "xacro cannot expand the file: "),
    ("${length * 2}", "${length * }", "xacro cannot expand the file: "),
    ("${length * 2}", "${[].__class__}", "xacro cannot expand the file: "),
    ("${length * 2}", "heavy", "mass value>: expected a number, got 'heavy'"),
    ("</robot>", "", "xacro cannot expand the file: "),
])
def test_what_is_wrong_is_one_line(file, old, new, message, capfd):
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(ModelError) as error:
        ld.load(file)
    text = str(error.value)
    assert has_parts(text, message) and "arm.urdf.xacro" in text and "\n" not in text
    assert capfd.readouterr() == ("", "")


def test_missing_packages_and_arguments_of_other_files(file, monkeypatch):
    with pytest.raises(ModelError, match="no such file"):
        ld.load(file.parent / "none.urdf.xacro")
    for path in ("robots/double_pendulum.urdf", "robots/double_pendulum.yaml"):
        with pytest.raises(ModelError, match=r"xacro arguments apply only to files with the ending \.xacro: got"):
            ld.load(path, xacro_args={"mass": 1})
    monkeypatch.setattr("liedyn.io.robots.xacro_files.find_spec", lambda _: None)
    with pytest.raises(ModelError, match=r"reading xacro files requires the package xacrodoc: expected a URDF \(pip install "
                                         r"'liedyn\[xacro\]'"):
        ld.load(file)


def test_an_argument_that_the_file_does_not_use_is_an_error(file):
    """xacro ignores it: a misspelled mass had the default value."""
    with pytest.raises(ModelError, match=r"arm.urdf.xacro: the xacro file does not use this argument: expected "
                                         r"one of mass, got 'mas' \(did you mean mass\?\)"):
        ld.load(file, xacro_args={"mas": 3})
    (file.parent / "plain.xacro").write_text(MAIN.format("plain").replace('<xacro:arg name="mass" default="2"/>', "")
                                             .replace("$(arg mass)", "2"))
    with pytest.raises(ModelError, match=r"expected none, got 'tool'$"):
        ld.load(file.parent / "plain.xacro", xacro_args={"tool": "grip"})
