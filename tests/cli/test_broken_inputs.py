"""Broken robot, scenario and trajectory files, given to the commands: each gives one line on stderr that names file and
line or key, exit status 3, and leaves nothing behind."""
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import ok, run
from messages import has_parts


def table(name: str):
    """Return the table of broken samples of tests/io, which is not a package."""
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[1] / "io" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ROBOTS = table("test_robots_broken")
ROBOT = """\
links:
  bar: {mass: 1, com: [0, 0, -0.2], inertia: [0.02, 0.02, 0.01]}
joints:
  hip: {type: revolute, parent: world, child: bar, axis: [0, 1, 0], limits: {lower: -9, upper: 9}}
"""
SCENARIO = """\
robot: bar.yaml
duration: 0.1
integrator: {method: rk4, step: 1e-3}
initial: {q: {hip: 1}}
joints:
  hip: {torque: "sin(t)"}
external_forces:
  - {link: bar, wrench: [0, 0, 0, 0, 0, 1]}
"""
TRAJECTORY = """\
# robot: bar.yaml
t[s],q.hip[rad],v.hip[rad/s],a.hip[rad/s^2],tau.hip[N m]
0,0,0,0,0
1,0.5,0,0,0
2,1,0,0,0
"""
BOMB = "".join(f"l{k}: &l{k} [{', '.join(f'*l{k - 1}' for _ in range(9)) if k else 'lol'}]\n" for k in range(9))

# what to replace in SCENARIO, by what; then what the line says after the file's name
SCENARIOS = {
    "empty": (None, b"", ": the file is empty"),
    "binary": (None, b"\x00\x01\x02\x03", ": this is a binary file"),
    "not UTF-8": (None, "robot: größe".encode("latin-1"), ":1: this is not a text file"),
    "alias bomb": (None, BOMB.encode(), ":6: l5[6]: YAML aliases add too many values"),
    "huge nesting": (None, b"a: " + b"[" * 100_000, ":1: too deeply nested"),
    "code": (None, b"robot: !!python/object/apply:os.system [id]", ":1: robot: YAML tags are not supported"),
    "a list": (None, b"- robot: bar.yaml\n", ":1: not a file of this kind"),
    "not YAML": ("{q: {hip: 1}}", b"{q: {hip: 1}", ":5: not valid YAML"),
    "no robot": ("robot: bar.yaml\n", b"", ":1: the key robot is missing"),
    "missing robot": ("bar.yaml", b"none.yaml", ":1: robot: no such robot file … got 'none.yaml'"),
    "folder as robot": ("bar.yaml", b".", ":1: robot: no such robot file"),
    "no duration": ("duration: 0.1\n", b"", ":1: the key duration is missing"),
    "negative duration": ("0.1", b"-1", ":2: duration: out of range … got -1"),
    "duration as text": ("0.1", b"long", ":2: duration: expected a number >= 1e-12, got long"),
    "duration NaN": ("0.1", b".nan", ":2: duration: not a finite number"),
    "output_step beyond duration": ("0.1", b"0.1\noutput_step: 1", ":3: output_step: out of range … got 1"),
    "billions of rows": ("0.1", b"0.1\noutput_step: 1e-15", ":3: output_step: too many rows of output: about 1e+14, more"),
    "billions of steps": ("1e-3", b"1e-15", ":3: integrator.step: too many steps: about 1e+14, more than 1e+"),
    "smallest step": ("1e-3", b"5e-324", ":3: integrator.step: too many steps: about 1.8e+308, more than 1e+"),
    "largest duration": ("0.1", b"1e308", ":3: integrator.step: too many steps: about 1.8e+308,"),
    "smallest duration": ("0.1", b"5e-324", ":2: duration: out of range: expected a number >= 1e-12, got 5e-324"),
    "unknown key": ("duration: 0.1", b"duration: 0.1\nspeed: 2", ":3: speed: unknown key"),
    "key twice": ("duration: 0.1", b"duration: 0.1\nduration: 2", ":3: duration: duplicate key"),
    "tolerance below rounding": ("rk4, step: 1e-3", b"Radau, rtol: 1e-30", ":3: integrator.rtol: out of range … got 1e-30"),
    "tolerance that overflows": ("rk4, step: 1e-3", b"Radau, atol: 1e-300", ":3: integrator.atol: out of range … got 1e-300"),
    "unknown method": ("rk4", b"rk5", ":3: integrator.method … got rk5"),
    "unknown joint": ("{hip: 1}", b"{hop: 1}", ":4: initial.q.hop: no such joint … got 'hop' (did you mean hip?)"),
    "unknown drive": ("torque:", b"torqe:", ":6: joints.hip.torqe: unknown key"),
    "attribute": ("sin(t)", b"t.__class__", ":6: joints.hip.torque: attribute access is not allowed in an expression"),
    "unclosed": ("sin(t)", b"sin(t", ":6: joints.hip.torque: not an expression"),
    "huge power": ("sin(t)", b"9**9**9**9", ":6: joints.hip.torque: not a finite number"),
    "missing CSV": ('"sin(t)"', b"{csv: {file: none.csv}}", ":6: joints.hip.torque.csv.file: no such CSV file"),
    "unknown link": ("link: bar", b"link: bra", ":8: external_forces[0].link: no such link … got 'bra'"),
    "wrench of five": ("[0, 0, 0, 0, 0, 1]", b"[0, 0, 0, 0, 1]", ":8: external_forces[0].wrench: expected a list of 6 signals"),
}
TRAJECTORIES = {
    "empty": (None, b"", ": the file is empty"),
    "binary": (None, b"\x7fELF\x00\x00", ": the file is binary"),
    "UTF-16": (None, "t,q.hip\n0,0\n".encode("utf-16"), ": the file is text in UTF-16"),
    "comments only": (None, b"# robot: bar.yaml\n", ": the file contains comments only"),
    "no rows": (None, b"# robot: bar.yaml\nt,q.hip\n", ":2: the file has column names but no rows"),
    "no time": ("t[s]", b"x[s]", ":2: there is no column `t`"),
    "time in ms": ("t[s]", b"t[ms]", ":2: t: time is not in seconds … got 'ms'"),
    "column twice": ("v.hip[rad/s]", b"q.hip[rad]", ":2: q.hip: two columns have the same name"),
    "wrong unit": ("q.hip[rad]", b"q.hip[deg]", ": column q.hip: wrong unit: expected rad, got 'deg'"),
    "wrong column": ("q.hip[rad]", b"q.hop[rad]", ": no column belongs to a joint of the robot bar … got 'q.hop'"),
    "ragged row": ("1,0.5,0,0,0", b"1,0.5,0,0", ":4: the row has the wrong number of values: expected 5, got 4"),
    "text in a cell": ("1,0.5", b"1,half", ":4: q.hip: not a number … got 'half'"),
    "empty cell": ("1,0.5", b"1,", ":4: q.hip: a value is missing"),
    "NaN": ("1,0.5", b"1,nan", ":4: q.hip: the value is not finite"),
    "time stands still": ("1,0.5", b"0,0.5", ":4: t: time does not increase"),
    "missing robot": ("bar.yaml", b"none.yaml", ": # robot: the robot file does not exist"),
    "unknown base": ("# robot: bar.yaml", b"# robot: bar.yaml\n# base: flying", ": # base: unknown kind of base"),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bar.yaml").write_text(ROBOT)
    return tmp_path


def sample(whole: str, old: str | None, new: bytes) -> bytes:
    if old is None:
        return new
    assert whole.count(old) == 1
    return whole.encode().replace(old.encode(), new)


def refused(folder, start: str, *args, status: int = 3) -> None:
    """Check that the command prints one line with this beginning and does not change the folder."""
    before = sorted(folder.rglob("*"))
    result = run(*args)
    assert result.exit_code == status, result.output
    lines = [line for line in result.stderr.splitlines() if "… " not in line]              # less the progress of a compilation
    assert len(lines) == 1 and lines[0].startswith(("error: " + start).partition(" … ")[0]), result.stderr
    assert has_parts(lines[0], start), result.stderr
    assert result.stdout == "" and sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("command", ["info", "simulate", "linearize", "parameters"])
@pytest.mark.parametrize("name", ROBOTS.URDF)
def test_broken_urdf(folder, command, name):
    contents, line, _ = ROBOTS.URDF[name]
    (folder / "r.urdf").write_bytes(contents)
    refused(folder, "r.urdf" if line is None else f"r.urdf:{line}: ", command, "r.urdf")


@pytest.mark.parametrize("command", ["info", "simulate", "linearize", "parameters"])
@pytest.mark.parametrize("name", ROBOTS.YAML)
def test_broken_robot_yaml(folder, command, name):
    contents, line, _ = ROBOTS.YAML[name]
    (folder / "r.yaml").write_bytes(contents)
    if command in ("simulate", "linearize") and b"links" not in contents:
        line = None                                       # nothing tells that this is meant to be a robot
    refused(folder, "r.yaml" if line is None else f"r.yaml:{line}: ", command, "r.yaml")


@pytest.mark.parametrize("command", ["simulate", "linearize"])
@pytest.mark.parametrize("old, new, said", SCENARIOS.values(), ids=SCENARIOS.keys())
def test_broken_scenario(folder, command, old, new, said):
    (folder / "s.yaml").write_bytes(sample(SCENARIO, old, new))
    refused(folder, "s.yaml" + said, command, "s.yaml")


@pytest.mark.parametrize("command", [["inverse"], ["forward"], ["hybrid", "-p", "hip"], ["derivatives"], ["kinematics", "--com"],
                                     ["parameters", "bar.yaml", "--from"]], ids=lambda command: command[0])
@pytest.mark.parametrize("old, new, said", TRAJECTORIES.values(), ids=TRAJECTORIES.keys())
def test_broken_trajectory(folder, command, old, new, said):
    if command[0] == "parameters" and "bar.yaml" in (old or ""):
        pytest.skip("the robot is an argument")
    (folder / "m.csv").write_bytes(sample(TRAJECTORY, old, new))
    refused(folder, "m.csv" + said, *command, "m.csv")


def test_the_samples_are_whole_without_what_breaks_them(folder):
    (folder / "s.yaml").write_text(SCENARIO)
    (folder / "m.csv").write_text(TRAJECTORY)
    for args in (["simulate", "s.yaml", "--no-plots"], ["inverse", "m.csv"], ["linearize", "s.yaml", "--no-plots"],
                 ["derivatives", "m.csv"]):
        ok(*args)


def test_a_scenario_whose_robot_is_broken_names_the_robot(folder):
    (folder / "bar.yaml").write_text(ROBOT.replace("mass: 1", "mass: -1"))
    (folder / "s.yaml").write_text(SCENARIO)
    refused(folder, "bar.yaml:2: links.bar.mass: negative mass", "simulate", "s.yaml")


def test_a_trajectory_whose_robot_is_broken_names_the_robot(folder):
    (folder / "bar.yaml").write_text(ROBOT.replace("[0, 1, 0]", "[0, 0, 0]"))
    (folder / "m.csv").write_text(TRAJECTORY)
    refused(folder, "bar.yaml:4: joints.hip.axis: the axis is the zero vector", "inverse", "m.csv")


def test_a_robot_without_moving_joints_is_simulated_and_has_no_forces(folder):
    (folder / "still.yaml").write_text(ROBOT.replace("revolute", "fixed").split(", axis")[0] + "}\n")
    ok("simulate", "still.yaml", "--no-plots")
    for command in (["inverse"], ["derivatives"], ["kinematics", "--com"], ["parameters", "still.yaml", "--from"]):
        refused(folder, "runs/still/trajectory.csv: the robot still has no moving joint", *command, "runs/still/trajectory.csv")
    for args in ([], ["--equilibrium"]):
        refused(folder, "the robot still has no moving joint: there is nothing to linearize", "linearize", "still.yaml", *args)
    refused(folder, "the robot still has no moving joint: no force depends on its parameters", "parameters", "still.yaml")


@pytest.mark.parametrize("file", ["größe ü.yaml", "a b.yaml", "r.urdf"])
def test_as_a_process(folder, file):
    (folder / file).write_bytes(b"<!DOCTYPE x>\n" if file.endswith("urdf") else b"links: [1\n")
    before = sorted(folder.rglob("*"))
    done = subprocess.run([sys.executable, "-m", "liedyn", "simulate", file], capture_output=True, text=True, cwd=folder)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith(f"error: {file}:1: ") and done.stderr.count("\n") == 1
    assert sorted(folder.rglob("*")) == before
