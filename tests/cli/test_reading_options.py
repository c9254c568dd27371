"""Options for reading a robot file, which all commands that read one take."""
import math

import click
import numpy as np
import pytest

import liedyn as ld
from command_line import ok, run
from liedyn.cli.app import main
from liedyn.io.scenarios.scenario_file import scenario_of_robot, to_plain
from liedyn.report.replay.page import data_of

READING = {"inertia_from_meshes", "ignore", "xacro_args", "package_roots"}
ARM = """<mujoco><option density="1.2"/><worldbody><body name="a"><joint name="j" axis="0 1 0"/>
<geom type="box" size="0.1 0.2 0.3" pos="0 0 1"/></body></worldbody></mujoco>"""
COMMANDS = {
    "view": ["arm.xml", "--no-open", "-o", "arm.html"],
    "info": ["arm.xml"], "check": ["arm.xml"], "convert": ["arm.xml", "-o", "arm.yaml"], "export": ["arm.xml"],
    "assemble": ["arms.xml"], "parameters": ["arm.xml"], "simulate": ["arm.xml", "--dry-run"],
    "linearize": ["arm.xml", "--no-plots"], "move": ["arm.xml", "--to", "j=1", "--acceleration", "2"],
    "excite": ["arm.xml", "--noise", "1", "--velocity", "1", "--starts", "1"],
    "identify": ["arm.xml", "recording.csv"], "ik": ["arm.xml", "--link", "a", "--position", "0,0,0"],
    **{command: ["motion.csv", "-r", "arm.xml"] for command in ("inverse", "forward", "derivatives", "plot", "replay")},
    "hybrid": ["motion.csv", "-r", "arm.xml", "-p", "j"], "kinematics": ["motion.csv", "-r", "arm.xml", "--com"]}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.xml").write_text(ARM)
    (tmp_path / "arms.xml").write_text(ARM.replace("</mujoco>", '<equality><joint joint1="j"/></equality></mujoco>'))
    (tmp_path / "motion.csv").write_text("t,q.j,v.j,a.j,tau.j\n0,0,0,0,1\n1,0.1,0,0,1\n2,0.1,0,0,1\n3,0.1,0,0,1\n")
    rows = "".join(f"{t},{math.sin(4 * t)},{4 * math.cos(4 * t)},{-16 * math.sin(4 * t)},{2 * math.sin(9 * t)}\n"
                   for t in (0.05 * k for k in range(40)))
    (tmp_path / "recording.csv").write_text(f"t,q.j,v.j,a.j,tau.j\n{rows}")
    return tmp_path


def commands() -> list[str]:
    """Return commands with a robot file, or with a scenario that names one."""
    context = click.Context(main)
    parameters = {name: main.get_command(context, name).params for name in main.list_commands(context)}
    return [name for name, each in parameters.items() if {"robot", "robots", "scenario"} & {parameter.name for parameter in each}]


@pytest.mark.parametrize("name", commands())
def test_each_command_with_a_robot_takes_the_options(name):
    assert {parameter.name for parameter in main.get_command(click.Context(main), name).params} >= READING


def test_all_commands_with_a_robot_are_tested():
    assert set(commands()) == {*COMMANDS, "warmup"}          # which compiles


@pytest.mark.parametrize("name", COMMANDS)
def test_a_part_of_a_robot_is_left_out(name, folder):
    refused = run(name, *COMMANDS[name])
    assert refused.exit_code == 3 and "--ignore fluid leaves it out" in refused.output
    done = run(name, *COMMANDS[name], "--ignore", "fluid")
    assert done.exit_code in (0, 4 if name == "check" else 0), done.output
    assert "--ignore fluid leaves" not in done.output


def test_results_along_a_trajectory_name_the_options(folder):
    """A command that reads the result reads the robot with the same options."""
    ok("inverse", "motion.csv", "-r", "arm.xml", "--ignore", "fluid", "-o", "inverse.csv")
    assert '# robot_options: {"ignore": ["fluid"]}\n' in (folder / "inverse.csv").read_text()
    ok("forward", "inverse.csv", "-o", "forward.csv")
    a = ld.read_trajectory("forward.csv").columns["a.j"]
    assert np.allclose(a, 0.0, atol=1e-12) and "# robot_options" in (folder / "forward.csv").read_text()
    ok("convert", "motion.csv", "-r", "arm.xml", "--ignore", "fluid", "-o", "converted.csv")
    ok("kinematics", "converted.csv", "--com", "-o", "-")
    (folder / "wrong.csv").write_text((folder / "inverse.csv").read_text().replace('{"ignore"', '{"ignored"'))
    wrong = run("forward", "wrong.csv")
    assert wrong.exit_code == 3 and "any of inertia_from_meshes, ignore, xacro_args, package_roots" in wrong.stderr
    assert "give one (--robot or robot=)" in run("convert", "motion.csv", "--ignore", "fluid", "-o", "x.csv").stderr
    assert "apply to robot files only" in run("convert", "motion.csv", "--to", "yaml", "-o", "x.csv").stderr


def test_scenarios_have_the_options_as_keys(folder):
    text = ok("simulate", "arm.xml", "--ignore", "fluid", "--print-config").stdout
    assert "ignore: [fluid]" in text.replace("ignore:\n  - fluid", "ignore: [fluid]")
    scenario = scenario_of_robot("arm.xml", ["xacro_args={a: 2, b: true, c: text}"])
    assert to_plain(scenario)["xacro_args"] == {"a": "2", "b": "true", "c": "text"}
    wrong = run("simulate", "arm.xml", "-S", "xacro_args={a: [1]}", "--dry-run")
    assert wrong.exit_code == 3 and "xacro_args.a: expected" in wrong.stderr
    twice = run("info", "arm.xml", "--xacro-arg", "a=1", "--xacro-arg", "a=2")
    assert twice.exit_code == 2 and "expected one value of each argument, got a=1, a=2" in twice.stderr
    unfit = run("simulate", "arm.xml", "--ignore", "fluid", "--xacro-arg", "a=2", "--dry-run")
    assert unfit.exit_code == 3 and "xacro arguments apply only to files with the ending .xacro" in unfit.stderr


BOX = """v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"""
TOOL = """<robot name="tool"><link name="base"/><link name="tool"><visual><geometry><mesh filename="package://parts/tool.obj"/>
</geometry></visual></link><joint name="j" type="continuous"><parent link="base"/><child link="tool"/><axis xyz="0 1 0"/></joint>
</robot>"""


def test_meshes_of_packages_are_found_in_the_same_folders(folder):
    """For inertias, in results that commands read, and in pictures."""
    (folder / "tool.urdf").write_text(TOOL)
    (folder / "ros/parts").mkdir(parents=True)
    (folder / "ros/parts/tool.obj").write_text(BOX)
    refused = run("info", "tool.urdf", "--inertia-from-meshes", "6")
    assert refused.exit_code == 3 and "--package-root or package_roots= names the folder" in refused.stderr
    assert run("info", "tool.urdf", "--package-root", "rose").exit_code == 2
    roots = "--inertia-from-meshes", "6", "--package-root", "ros"
    assert "1 kg" in ok("info", "tool.urdf", *roots).stdout
    assert ld.load("tool.urdf", inertia_from_meshes=6, package_roots=["ros"]).description.links[1].mass == pytest.approx(1.0)
    (folder / "results").mkdir()
    ok("inverse", "motion.csv", "-r", "tool.urdf", *roots, "-o", "results/inverse.csv")
    assert '"package_roots": ["../ros"]' in (folder / "results/inverse.csv").read_text()
    ok("kinematics", "results/inverse.csv", "--com", "-o", "-")
    ok("simulate", "tool.urdf", *roots, "-S", "duration=0.01", "-o", "results/run", "--no-plots")
    assert len(data_of(ok("replay", "results/run", "-o", "-").stdout)["meshes"]) == 1
    unfit = run("simulate", "tool.urdf", "-S", "package_roots=[tool.urdf]", "--dry-run")
    assert unfit.exit_code == 3 and "package_roots[0]: no such folder: got 'tool.urdf'" in unfit.stderr


def test_converted_columns_have_units(folder):
    """Columns without units get those with which they are read. Other columns keep theirs."""
    (folder / "log.csv").write_text("t,q.j,v.j[rad/s],tau.j,q.other,note\n0,0,0,1,2,3\n1,0.1,0,1,2,3\n")
    ok("convert", "log.csv", "-r", "arm.xml", "--ignore", "fluid", "-o", "with.csv")
    ok("convert", "log.csv", "-o", "without.csv")
    titles = [next(line for line in (folder / name).read_text().splitlines() if not line.startswith("#"))
              for name in ("with.csv", "without.csv")]
    assert titles == ["t[s],q.j[rad],q.other,v.j[rad/s],tau.j[N m],note", "t[s],q.j,v.j[rad/s],tau.j,q.other,note"]
    assert np.array_equal(ld.read_trajectory("with.csv").columns["q.j"], [0.0, 0.1])
