"""`liedyn linearize`: what it writes, prints and says, and errors."""
import json
from pathlib import Path

import numpy as np
import pytest

from command_line import TWO_BARS
from command_line import run as command

ROBOT = TWO_BARS.replace("mass: 2", "mass: 1")
SCENARIO = """
robot: robots/bars.yaml
duration: 0.2
output_step: 0.01
initial: {v: {knee: 1}}
joints:
  hip: {prescribe: {position: "0.3*sin(5*t)"}}
  knee: {torque: "0.1*cos(t) - 2*q"}
"""
FILES = sorted([*(f"{name}.csv" for name in ("A", "B", "C", "D", "Ad", "Bd")), "linear.json", "system.npz"])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "robots").mkdir()
    (tmp_path / "robots" / "bars.yaml").write_text(ROBOT)
    (tmp_path / "swing.yaml").write_text(SCENARIO)
    return tmp_path


def run(*args):
    return command("linearize", *args)


def ok(*args):
    result = run(*args)
    assert result.exit_code == 0, result.output
    return result


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file())


def table(name, folder="runs/swing_linear"):
    rows = [line.split(",") for line in Path(folder, f"{name}.csv").read_text().splitlines()]
    return rows[0][1:], [row[0] for row in rows[1:]], np.array([row[1:] for row in rows[1:]], dtype=float)


def test_help_shows_an_example():
    assert "    liedyn linearize configs/panda_hybrid.yaml --at 2.0" in run("-h").output


def test_it_writes_a_folder_and_prints_the_modes(folder):
    result = ok("swing.yaml", "--at", "0.1")
    assert files("runs/swing_linear") == sorted([*FILES, "plots/modes.png", "plots/modes.svg"])
    *first, header = result.stdout.splitlines()[:3]
    assert first == ["bars at t = 0.1 s: 4 states, 2 inputs, 3 outputs; neutral (bounded)",
                     "    (frozen-time, not an equilibrium)"]
    assert "eigenvalue [1/s]" in header and "controllable: 4 of 4 states" in result.stdout
    assert "wrote runs/swing_linear/A.csv" in result.stderr
    columns, rows, D = table("D")
    assert columns == ["a.hip[rad/s^2]", "tau.knee[N m]"] and rows[-1] == "tau.hip[N m]" and D[-1, 0] > 0.1


def test_the_picture_of_the_modes_for_print_is_as_wide_as_a_column(folder):
    ok("swing.yaml", "--style", "paper")
    assert files("runs/swing_linear/plots") == ["modes.pdf", "modes.svg"]
    assert 'width="252pt"' in Path("runs/swing_linear/plots/modes.svg").read_text()               # 3.5 inches
    ok("swing.yaml", "--width", "5", "--force")
    assert 'width="360pt"' in Path("runs/swing_linear/plots/modes.svg").read_text()


def test_a_state_that_accelerates_from_rest_is_no_equilibrium(folder):
    """Deviations of a falling body do not grow as its matrices predict, which hold at one time only."""
    Path("robots/ball.yaml").write_text("base: floating\nlinks:\n  ball: {mass: 2, inertia: [0.02, 0.02, 0.03]}\n")
    first = " ".join(ok("robots/ball.yaml", "--no-plots").stdout.split("[1/s]")[0].split())
    assert first.startswith("ball at t = 0 s: ") and " (frozen-time, not an equilibrium)" in first
    Path("still.yaml").write_text("robot: robots/ball.yaml\nduration: 1\ngravity: [0, 0, 0]\n")
    assert ok("still.yaml", "--no-plots").stdout.splitlines()[0].endswith("drifting (grows like t)")


def test_a_robot_that_drifts_away_is_unstable(folder):
    """A free body whose thrust rotates with it has two chains of four integrators, which were called neutral."""
    Path("robots/drone.yaml").write_text(
        "base: floating\nlinks:\n  frame: {mass: 2, inertia: [0.02, 0.02, 0.03]}\n"
        "actuators:\n  rotor: {link: frame, axis: [0, 0, 1]}\n")
    result = ok("robots/drone.yaml", "--equilibrium", "--fix", "rotor", "--no-plots")
    lines = result.stdout.splitlines()
    assert lines[0] == "drone at rest: 12 states, 7 inputs, 6 outputs; unstable (grows like t^3)"
    assert lines[2].split()[:3] == ["0", "(12x)", "unstable"]
    assert "  0: Jordan chains of 4, 4, 2, 2; grows like t^3: base.vx, base.vy" in lines and max(map(len, lines)) <= 80
    told = json.loads(Path("runs/drone_linear/linear.json").read_text())
    assert (told["stability"], told["growth_power"]) == ("unstable", 3)
    (mode,) = told["modes"]
    assert (mode["chains"], mode["growth_power"], mode["time_constant"]) == ([4, 4, 2, 2], 3, None)
    assert mode["fastest"] == {"base.vx": 0.5, "base.vy": 0.5} and mode["count"] == 12


def test_states_of_prescribed_coordinates_have_no_modes(folder):
    """Two integrators in series were called stable and were counted as further states."""
    fixed = "{prescribe: {position: 0.3}}"
    Path("held.yaml").write_text(f"robot: robots/bars.yaml\nduration: 1\njoints: {{hip: {fixed}, knee: {fixed}}}\n")
    lines = ok("held.yaml", "--no-plots").stdout.splitlines()
    assert lines[0].startswith("bars at t = 0 s: 4 states,") and lines[0].endswith("; no modes")
    assert lines[1] == "All of these states belong to prescribed coordinates. Forces do not affect"
    assert "plots" not in ok("held.yaml", "--force").stderr                     # no empty picture
    told = json.loads(Path("runs/held_linear/linear.json").read_text())
    assert told["stability"] is None and told["modes"] == []
    Path("half.yaml").write_text(f"robot: robots/bars.yaml\nduration: 1\njoints: {{hip: {fixed}}}\n")
    assert "2 of the 4 states belong to prescribed" in ok("half.yaml", "--no-plots").stdout


def test_as_json_quietly_elsewhere(folder):
    result = ok("swing.yaml", "--json", "-q", "--no-plots", "-o", "here", "--verify", "--step", "0.5", "--open-loop")
    told = json.loads(result.stdout)
    assert told == json.loads(Path("here/linear.json").read_text()) and result.stderr == "" and files("here") == FILES
    assert told["discretization"]["step"] == 0.5 and max(told["verified"].values()) < 1e-8 and told["t"] == 0


def test_the_discretization_uses_the_output_step(folder):
    ok("swing.yaml", "--no-plots")
    _, _, Ad = table("Ad")
    assert Ad[0, 2] == pytest.approx(0.01) and json.loads(Path("runs/swing_linear/linear.json").read_text())["verified"] is None


def test_overrides_inputs_and_outputs(folder):
    ok("swing.yaml", "--no-plots", "-S", "joints.knee.torque=0", "--inputs", "tau.*", "--outputs", "p.lower.x",
       "--outputs", "a.knee")
    assert table("B")[0] == ["tau.knee[N m]"] and table("C")[1] == ["a.knee[rad/s^2]", "p.lower.x[m]"]


def test_an_equilibrium_and_what_holds_it(folder):
    result = ok("robots/bars.yaml", "--equilibrium", "--fix", "hip", "-S", "initial.q.hip=0.5", "--verify", "--no-plots")
    assert "\nequilibrium at hip 0.5 rad, knee -0.5 rad\n" in result.stdout
    assert "bars at rest: " in result.stdout and "\nheld by tau.hip " in result.stdout
    told = json.loads(Path("runs/bars_linear/linear.json").read_text())
    assert told["q"]["hip"] == 0.5 and told["q"]["knee"] == pytest.approx(-0.5)
    assert told["held_by"]["tau.hip"] == pytest.approx(9.81 * (0.2 + 0.4) * np.sin(0.5), rel=1e-6)


def test_notes_are_said(folder):
    result = ok("swing.yaml", "--equilibrium", "--no-plots")
    assert "warning: hip: the prescribed motion is not at rest at t = 0 s" in " ".join(result.stderr.split())
    assert "warning: forces depend on time" in result.stderr


def test_what_takes_long_is_told_part_by_part(folder, monkeypatch):
    from liedyn.cli import console
    stages = []
    stage = console.Progress.stage
    monkeypatch.setattr(console.Progress, "stage", lambda self, text: (stages.append(text), stage(self, text))[1])
    ok("swing.yaml", "--equilibrium", "--verify", "--no-plots")
    assert stages == ["simulating up to the operating point", "searching for an equilibrium", "linearizing",
                      "comparing with finite differences", "writing results"]


def test_a_failed_comparison_is_status_4_and_writes_nothing(folder):
    result = run("swing.yaml", "--verify", "-S", "joints.knee.torque='abs(q)'")
    assert result.exit_code == 4 and "differs from extrapolated finite differences" in result.stderr and not Path("runs").exists()


@pytest.mark.parametrize("args, status, words", [
    (["swing.yaml", "--at", "0.3"], 2, "at must be from 0 to 0.2 s, got 0.3 s"),
    (["swing.yaml", "--at", "nan"], 2, "at must be from 0 to 0.2 s"),
    (["swing.yaml", "--at", "soon"], 2, "'soon' is not a valid float"),
    (["swing.yaml", "--step", "0"], 2, "0.0 is not in the range x>0"),
    (["swing.yaml", "--step", "nan"], 2, "the step of the discretization must be a positive number of seconds, got nan"),
    (["swing.yaml", "--fix", "hip"], 2, "--fix requires --equilibrium"),
    (["swing.yaml", "--equilibrium", "--fix", "ankle"], 2, "no joint or actuator to fix matches 'ankle'"),
    (["swing.yaml", "--inputs", "thrust.*"], 2, "no input matches 'thrust.*'; the names are a.hip, tau.knee"),
    (["swing.yaml", "--outputs", "hip"], 2, "no output matches 'hip'; did you mean v.hip or q.hip or a.hip?"),
    (["swing.yaml", "-S", "joints.hop.torque=0"], 3, "hop"),
    (["swing.yaml", "-S", "joints.knee.torque=sqrt(q)"], 1, "knee has no derivative with respect to q(knee) at t = 0 s"),
    (["swing.yaml", "--equilibrium", "-S", "joints.knee.torque=99"], 1, "no equilibrium was found near the configuration"),
    (["none.yaml"], 2, "'none.yaml' does not exist"),
    (["swing.yaml", "-o", "-"], 2, "The result is a folder; name one with -o, or use --json for a report on stdout"),
    (["swing.yaml", "-o", "robots/bars.yaml"], 2, "is a file: expected a folder"),
    (["swing.yaml", "-o", "robots", "--force"], 2, "contains other files and no linear.json"),
    (["swing.yaml", "-S", "gravity=[0, 0, 1e30]", "--step", "1e9"], 1, ""),
])
def test_what_is_refused_leaves_nothing(folder, args, status, words):
    result = run(*args, "--no-plots")
    assert result.exit_code == status, result.output
    assert words in " ".join(result.stderr.split()) and result.stdout == ""
    assert result.stderr.startswith("error: ") and not Path("runs").exists()


def test_patterns_are_refused_before_anything_is_computed(folder, monkeypatch):
    monkeypatch.setattr("liedyn.analysis.linearize.state_at", lambda *_: pytest.fail("simulated"))
    for args in (["--inputs", "x"], ["--outputs", "x"], ["--equilibrium", "--fix", "x"]):
        result = run("swing.yaml", "--at", "0.1", *args)
        assert result.exit_code == 2 and "matches 'x'" in result.stderr, result.output


def test_results_are_replaced_only_by_force(folder):
    ok("swing.yaml", "--no-plots")
    assert run("swing.yaml").exit_code == 2
    ok("swing.yaml", "--no-plots", "--force", "--at", "0.1")
    assert json.loads(Path("runs/swing_linear/linear.json").read_text())["t"] == 0.1


def test_strict_refuses_findings(folder):
    Path("robots/bars.yaml").write_text(ROBOT.replace("continuous", "revolute"))
    assert run("swing.yaml", "--strict").exit_code == 4 and not Path("runs").exists()


def test_a_frequency_response_is_written_and_drawn_on_request(folder):
    ok("swing.yaml", "--bode", "--inputs", "tau.knee", "--outputs", "q.knee", "-o", "out")
    assert files("out") == sorted([*FILES, "frequency_response.csv", *(f"plots/{name}" for name in (
        "bode.png", "bode.svg", "modes.png", "modes.svg"))])
    with_all = run("swing.yaml", "--bode", "--outputs", "*", "-o", "all")
    assert with_all.exit_code == 2 and "a Bode plot: expected 1 to 6 outputs, got " in with_all.output
    assert not Path("all").exists()
