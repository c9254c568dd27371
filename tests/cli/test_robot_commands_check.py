"""`liedyn check`: errors, warnings and information of robot files. Only errors and warnings change the exit status."""
import json
import warnings

import pytest

import liedyn as ld
from command_line import ok, run

ARM = """<robot name="arm">
  <link name="base"/>
  <link name="arm"><inertial><origin xyz="0 0 -0.5"/><mass value="1"/>
    <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>{link}</link>
  <joint name="hinge" type="{type}"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
    <dynamics damping="0.1" friction="0"{dynamics}/></joint>
  {robot}
</robot>
"""
FOREIGN = {"link": "<self_collide/>", "dynamics": ' K="7000"', "robot": '<gazebo reference="arm"/><gazebo/>'}
INFORMATION = ["urdf-not-read", "unknown-tag", "unknown-attribute"]


@pytest.fixture
def arm(tmp_path, monkeypatch):
    def write(name="arm.urdf", type="continuous", link="", dynamics="", robot=""):
        (tmp_path / name).write_text(ARM.format(type=type, link=link, dynamics=dynamics, robot=robot))
        return name
    monkeypatch.chdir(tmp_path)
    return write


def test_a_robot_with_parts_for_other_programs_passes(arm):
    path = arm(**FOREIGN)
    assert ok("check", path).stdout == "arm.urdf: no warnings\n  information: 3 messages (-v lists them)\n"
    assert ok("check", "-v", path).stdout == """arm.urdf: no warnings
  information: 3 messages
    arm.urdf:7: robot: not read: <gazebo> (2) [urdf-not-read]
    arm.urdf:4: arm: <self_collide> in <link> ignored: not part of URDF [unknown-tag]
    arm.urdf:6: hinge: K of <dynamics> ignored: not part of URDF [unknown-attribute]
"""
    assert ok("check", arm(robot="<gazebo/>")).stdout.endswith("\n  information: 1 message (-v lists it)\n")
    assert ok("check", "-v", arm()).stdout == "arm.urdf: no warnings\n"


def test_warnings_come_before_information_and_alone_count(arm):
    result = run("check", arm(type="revolute", **FOREIGN), arm("other.urdf", **FOREIGN))
    assert result.exit_code == 4 and result.stderr == "error: 1 warning in 1 robot of 2\n"
    first, second, third, *_ = result.stdout.splitlines()
    assert first == "arm.urdf: 1 warning" and second.endswith("[limits-missing]") and third.startswith("  information: 3 ")


def test_json_has_a_level_for_each_message(arm):
    robot, = json.loads(run("check", arm(type="revolute", **FOREIGN), "--json").stdout)
    assert [(one["level"], one["code"]) for one in robot["warnings"]] == [("warning", "limits-missing")]
    assert [(one["level"], one["code"]) for one in robot["information"]] == [("information", code) for code in INFORMATION]
    counts = json.loads(ok("info", "arm.urdf", "--json").stdout)
    assert (counts["warnings"], counts["information"]) == (1, 3)


def test_loading_and_strict_commands_accept_information(arm):
    path = arm(**FOREIGN)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = ld.load(path, strict=True)
    assert [one.code for one in model.warnings] == INFORMATION and "warning" not in repr(model) + repr(model.description)
    assert ok("info", path).stderr == ""
    assert ok("export", path, "--strict", "-o", "arm.c").stderr.startswith("wrote ")
    with pytest.raises(ld.CheckFailed, match=r"^1 warning\(s\) in arm.urdf, the first: arm.urdf:5: hinge: the revolute joint"):
        ld.load(arm(type="revolute", **FOREIGN), strict=True)
