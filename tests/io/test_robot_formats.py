"""A format of robot files is an entry of `FORMATS`, which loading, saving, scenarios, drawing and commands read."""
import json
import re
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

import liedyn as ld
from command_line import ok, run
from liedyn.cli.app import main
from liedyn.io.robots.robot_formats import FORMATS, RobotFormat, written_endings
from liedyn.io.robots.visual_shapes import link_shapes
from liedyn.io.robots.write_robot_yaml import Omission, Subset
from liedyn.model.description import Joint, Robot
from liedyn.model.links import Link, LinkVisuals, Pose, Shape
from liedyn.robot_files import load_description

ROOT = Path(__file__).parents[2]
ROD = Link("rod", 1.0, (0.0, 0.0, -0.5), (0.1, 0.0, 0.0, 0.1, 0.0, 0.001))


def read_pendulum(path: Path) -> Robot:
    """Read {"mass": ...}."""
    mass = json.loads(path.read_text(encoding="utf-8"))["mass"]
    return Robot(path.stem, (replace(ROD, mass=mass),), (Joint("hinge", "continuous", "world", "rod", axes=((0.0, 1.0, 0.0),)),),
                 source=str(path), visuals={"rod": LinkVisuals((Shape("sphere", (0.1,), Pose()),))})


def write_pendulum(robot: Robot, shapes) -> tuple[Subset, str]:
    lost = [Omission(joint.name, "its damping is left out") for joint in robot.joints if joint.coordinate_parameters[0].damping]
    return Subset(robot, losses=lost), json.dumps({"mass": robot.links[0].mass, "shapes": sorted(shapes)})


@pytest.fixture
def pendulum(tmp_path, monkeypatch):
    monkeypatch.setitem(FORMATS, "pendulum", RobotFormat("pendulum file", (".pendulum",), read_pendulum, write_pendulum,
                                                         writes_shapes=True))
    path = tmp_path / "robot.pendulum"
    path.write_text(json.dumps({"mass": 2.0}), encoding="utf-8")
    return path


def test_an_added_format_is_loaded_and_saved(pendulum, tmp_path):
    model = ld.load(pendulum)
    assert model.joint_names == ("hinge",) and model.description.links[0].mass == 2.0
    assert ld.save(model, tmp_path / "copy.pendulum") == ()
    assert json.loads((tmp_path / "copy.pendulum").read_text()) == {"mass": 2.0, "shapes": ["rod"]}
    with pytest.raises(ld.ModelError, match=r"a pendulum file cannot describe the dynamics .*: hinge: its damping is left out"):
        ld.save(model.with_changes(damping={"hinge": 1.0}), tmp_path / "damped.pendulum")


def test_an_added_format_has_shapes_and_may_have_a_loops_file(pendulum, tmp_path):
    assert link_shapes(load_description(pendulum))["rod"][0].kind == "sphere"
    ld.save(ld.load(pendulum), tmp_path / "drawn.urdf")
    assert "<sphere" in (tmp_path / "drawn.urdf").read_text()
    pendulum.with_name("robot.loops.yaml").write_text("couplings: {still: {terms: {hinge: 1}}}")
    assert ld.load(pendulum).nc == 1


def test_an_added_format_is_simulated_and_converted_by_commands(pendulum, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ok("convert", pendulum, "-o", "robot.yaml")
    assert ok("convert", "robot.yaml", "-o", "-", "--to", "pendulum").stdout.startswith("{")
    ok("simulate", pendulum, "-S", "duration=0.1", "-o", "run", "--no-plots")
    assert "expected urdf, yaml or pendulum" in run("convert", pendulum, "-o", "-", "--to", "sdf").stderr


def test_only_formats_with_keys_take_overrides(pendulum):
    with pytest.raises(ld.ModelError, match="keys can be changed in robot YAML files only"):
        ld.load_description(pendulum, overrides=("mass=1",))


def test_a_format_of_an_installed_package_is_found(tmp_path):
    """By an entry point, if a file has an unknown ending."""
    info = tmp_path / "other-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: other\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[liedyn.formats]\nempty = other:EMPTY\n")
    (tmp_path / "other.py").write_text("from liedyn.io.robots.robot_formats import RobotFormat\n"
                                       "from liedyn.model.description import Link, Robot\n"
                                       "def read(path): return Robot('r', (Link('a'),), ())\n"
                                       "EMPTY = RobotFormat('empty file', ('.empty',), read)\n")
    (tmp_path / "robot.empty").touch()
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import liedyn; print(liedyn.load('robot.empty').link_names)"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert done.stdout == "('a',)\n", done.stderr


def test_texts_name_all_formats():
    """In commands and in the documents."""
    helps = [main.help, *(main.get_command(None, name).help for name in ("info", "convert"))]
    for one in FORMATS.values():
        name = one.title.rpartition(" ")[2]
        assert all(name in text for text in helps)
        assert name in (ROOT / "docs" / "files.md").read_text(encoding="utf-8")
    output = next(option for option in main.get_command(None, "convert").params if option.name == "output")
    assert all(ending in output.help for ending in written_endings())


# actuated joints --------------------------------------------------------------------------------------------------------
URDF = """<robot name="arm"><link name="base"/>
<link name="a"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
<link name="b"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
<link name="c"/>
<joint name="i" type="continuous"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/></joint>
<joint name="j" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/></joint>
<joint name="k" type="fixed"><parent link="b"/><child link="c"/></joint>
%s</robot>"""
TRANSMISSION = """<transmission name="t_{0}"><type>transmission_interface/SimpleTransmission</type>
<joint name="{0}"><hardwareInterface>hardware_interface/EffortJointInterface</hardwareInterface></joint>
<actuator name="m_{0}"><mechanicalReduction>1</mechanicalReduction></actuator></transmission>
"""


def test_actuated_joints_of_a_urdf_are_those_with_a_transmission(tmp_path):
    path = tmp_path / "arm.urdf"
    for joints, actuated in (((), ()), (("j",), ("j",)), (("j", "i", "j", "k", "none"), ("j", "i"))):
        path.write_text(URDF % "".join(map(TRANSMISSION.format, joints)))
        assert ld.load(path).actuated == actuated
    loops = tmp_path / "arm.loops.yaml"
    loops.write_text("actuated: [i]\n")                                        # takes precedence
    assert ld.load(path).actuated == ("i",)


def test_actuated_joints_of_an_mjcf_file_are_those_of_its_actuators(tmp_path):
    (tmp_path / "arm.xml").write_text("""<mujoco><default><motor joint="i"/></default>
<worldbody><body name="a"><joint name="i" axis="0 0 1"/><geom size="0.1"/>
<body name="b"><joint name="j" axis="0 1 0"/><geom size="0.1"/>
<body name="c"><joint name="ball" type="ball"/><geom size="0.1"/></body></body></body></worldbody>
<actuator><position joint="j" kp="2"/><motor/><motor joint="j"/><motor joint="ball" gear="1 0 0"/></actuator></mujoco>""")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert ld.load(tmp_path / "arm.xml").actuated == ("j", "i")


@pytest.mark.parametrize("ending", ["yaml", "urdf"])
def test_actuated_joints_are_written(ending, tmp_path):
    """Each joint of a URDF that is part of an actuated joint has a motor."""
    for name, expected in (("five_bar", ("left", "right")), ("stewart", tuple(f"leg_{k}" for k in range(1, 7)))):
        path = tmp_path / f"{name}.{ending}"
        ld.save(ld.load(ROOT / f"robots/{name}.yaml"), path, lossy=True)
        assert ld.load(path).actuated == expected
    robot = ld.load_description(ROOT / "robots/showcase.yaml")
    joint = next(joint for joint in robot.joints if joint.type == "universal")
    ld.save(replace(robot, actuated=(joint.name,)), tmp_path / f"showcase.{ending}", lossy=True)
    again = ld.load(tmp_path / f"showcase.{ending}").actuated
    assert again == ((joint.name,) if ending == "yaml" else tuple(f"{joint.name}.{label}" for label in joint.labels))


@pytest.mark.parametrize("actuated, words", [
    ("[shoulder, elbw]", r"yaml:\d+: actuated\[1\]: .*elbw.*did you mean elbow"),
    ("[tip_mount]", "actuated: a fixed joint has no motor"), ("[elbow, elbow]", "actuated: an actuated joint is named twice"),
    ("elbow", ":.*actuated: .*expected a list of"), ("[]", ":.*actuated: .*"), ("[1]", r":.*actuated\[0\]: .*")])
def test_actuated_joints_that_cannot_be_are_errors(actuated, words, tmp_path):
    text = (ROOT / "robots/double_pendulum.yaml").read_text()
    (tmp_path / "robot.yaml").write_text(f"{text}\nactuated: {actuated}\n")
    with pytest.raises(ld.ModelError) as error:
        ld.load(tmp_path / "robot.yaml")
    assert re.search(words, str(error.value)), str(error.value)
    assert "\n" not in str(error.value)


def test_an_actuated_joint_of_a_loops_file_must_exist(tmp_path):
    (tmp_path / "arm.urdf").write_text(URDF % "")
    (tmp_path / "arm.loops.yaml").write_text("actuated: [l]\n")
    with pytest.raises(ld.ModelError, match=r"arm\.urdf: actuated: unknown joint: expected the name of a moving joint, got 'l'"):
        ld.load(tmp_path / "arm.urdf")
