"""What helps to write a scenario: templates, schemas, dry runs and the resolved scenario."""
import json
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from command_line import ok, run, said
from liedyn.io.scenarios.scenario_file import read_scenario, to_plain
from liedyn.io.yaml_nodes import parse_yaml
from liedyn.io.yaml_values import to_yaml

CONFIGS = sorted((Path(__file__).parents[2] / "configs").glob("*.yaml"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ok("template", "robot", "-o", "robot.yaml")
    ok("template", "scenario", "-o", "swing.yaml")
    return tmp_path


def files(folder):
    return sorted(path.name for path in folder.rglob("*"))


# --- templates and schemas -------------------------------------------------------------------------------------------

def test_the_templates_run_as_they_are(folder):
    result = ok("simulate", "swing.yaml", "--no-plots")
    assert "note" not in result.stderr and (folder / "runs" / "swing" / "trajectory.csv").is_file()
    assert ok("check", "robot.yaml").exit_code == 0


@pytest.mark.parametrize("kind", ["scenario", "robot", "loops"])
def test_templates_and_schemas_go_to_a_file_or_to_stdout(folder, kind):
    for command in ("template", "schema"):
        result = ok(command, kind)
        assert result.stderr == ""
        assert said(ok(command, kind, "-o", f"{command}.txt", "--force")) == [f"wrote {command}.txt"]
        assert (folder / f"{command}.txt").read_text(encoding="utf-8") == result.stdout
    assert json.loads(result.stdout)["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_a_template_does_not_overwrite(folder):
    result = run("template", "robot", "-o", "robot.yaml")
    assert result.exit_code == 2 and "already exists" in result.stderr
    assert "'scenario', 'robot', 'loops'" in run("template", "scenari").stderr


# --- dry run ---------------------------------------------------------------------------------------------------------

def test_a_dry_run_says_what_would_be_done_and_writes_nothing(folder):
    before = files(folder)
    assert ok("simulate", "swing.yaml", "--dry-run").stdout.splitlines() == [
        "robot       arm from robot.yaml: nq 2, nv 2, fixed base",
        "joints      1 prescribed, 1 with a given force",
        "motion      5 s, 501 rows, steps chosen by error control",
        "integrator  dopri5: rtol 1e-08, atol 1e-10; named in the scenario",
        "size        about 842 kB of memory, 295 kB of disk",
        "folder      runs/swing would be written"]
    assert files(folder) == before


@pytest.mark.parametrize("overrides", [(), ("duration=0.95", "output_step=0.1", "integrator={step: 0.03}"),
                                       ("duration=0.3", "output_step=0.1", "integrator={method: rk4, step: 0.1}"),
                                       ("duration=0.3", "output_step=0.1", "sensors={e: {type: encoder, rate: 70}}")])
def test_a_dry_run_counts_the_rows_and_steps_of_the_run(folder, overrides):
    fixed = ("external_forces=[]", "joints={}", "integrator={step: 1e-2}")
    arguments = [part for text in (*fixed, *overrides) for part in ("-S", text)]
    plan = json.loads(ok("simulate", "swing.yaml", "--dry-run", "--json", *arguments).stdout)
    result = ld.run_scenario("swing.yaml", [*fixed, *overrides])
    assert (plan["rows"], plan["steps"]) == (len(result.t), result.statistics.steps)
    assert plan["joints"] == {"prescribed": [], "given_force": [], "driven": [], "free": ["shoulder", "elbow"], "law": None}
    if plan["samples"]:
        assert plan["samples"] == {"e": 22} and len(result.measurements.t) == 22
        assert "sensors     e (22 samples)\n" in ok("simulate", "swing.yaml", "--dry-run", *arguments).stdout


def test_a_dry_run_names_what_a_law_drives_and_events_that_are_late(folder):
    control = "control={law: computed_torque, motion: {elbow: sin(t)}, bandwidth: 10}"
    late = "events={late: {at: [1, 9], do: record}, soon: {at: 1, do: record}}"
    arguments = [part for text in ("joints=null", control, late) for part in ("-S", text)]
    found = ok("simulate", "swing.yaml", "--dry-run", *arguments)
    assert "joints      1 driven by computed_torque, 1 without force\n" in found.stdout
    assert "warning: events after the end of the run do not happen: late (at 9 s) [event-after-end]" in found.stderr
    plan = json.loads(ok("simulate", "swing.yaml", "--dry-run", "--json", *arguments).stdout)
    assert (plan["joints"]["driven"], plan["joints"]["free"]) == (["elbow"], ["shoulder"])
    run = ok("simulate", "swing.yaml", "--no-plots", *arguments)
    assert run.stderr.count("[event-after-end]") == 1
    Path("servo.py").write_text("def servo(t, q, v):\n    return 0 * v\n")
    sampled = "-S", "sampling={rate: 50, delay: 0.01, hold: first, noise: {q: 1e-3}}", "-S", "controller=servo.py:servo"
    text = ok("simulate", "swing.yaml", "--dry-run", "-S", "joints=null", *sampled).stdout
    assert "sampling    each 0.02 s, delay 0.01 s, first-order hold, noise, controller" in text
    assert "servo.py:servo" in text and "2 driven by the controller" in text


def test_a_dry_run_says_why_it_takes_another_integrator(folder):
    (folder / "stiff.yaml").write_text((folder / "robot.yaml").read_text().replace("damping: 0.1", "damping: 1e5"))
    result = ok("simulate", "stiff.yaml", "--dry-run")
    plan = " ".join(result.stdout.split())                   # without line breaks
    assert "integrator rodas5p: rtol 1e-06, atol 1e-08; stiff joint shoulder (damping, time constant " in plan
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert "; the default\n" in ok("simulate", "robot.yaml", "--dry-run").stdout


@pytest.mark.parametrize("arguments, status, text", [
    (("-S", "joints.elbw.torque=0"), 3, "no such joint: got 'elbw' (did you mean elbow?)"),
    (("-S", "external_forces.0.link=lowr"), 3, "did you mean lower?"),
    (("-S", "initial.q.shoulder=0.5"), 3, "contradicts the prescribed motion"),
    (("-S", "joints.elbow.torque=sen(t)"), 3, "did you mean sin?"),
    (("-S", "joints.elbow.torque={csv: {file: none.csv}}"), 3, "none.csv"),
    (("-S", "output_step=1e-9"), 3, "rows of output"),
    (("-S", "events={latch: {when: q(elbow), do: {lock: elbo}}}"), 3, "events.latch.do.lock: no such joint: got 'elbo'"),
    (("-o", "."), 2, "is not replaced"),
    (("--print-config",), 2, "--print-config cannot be combined with --dry-run"),
])
def test_a_dry_run_refuses_what_a_run_refuses(folder, arguments, status, text):
    result = run("simulate", "swing.yaml", "--dry-run", *arguments)
    assert (result.exit_code, result.stdout) == (status, "") and text in result.stderr


def test_a_dry_run_reports_an_existing_run(folder):
    ok("simulate", "swing.yaml", "--no-plots", "-S", "duration=0.1", "-S", "external_forces=[]")
    found = ok("simulate", "swing.yaml", "--dry-run")
    assert "warning: runs/swing already exists; --force overwrites it" in found.stderr and found.stdout
    ok("simulate", "swing.yaml", "--dry-run", "--force")


# --- resolved scenario -----------------------------------------------------------------------------------------------

def test_the_printed_scenario_gives_the_same_motion(folder):
    overrides = ("-S", "duration=0.5", "-S", "external_forces.0.from=0.1", "-S", "external_forces.0.until=0.2")
    text = ok("simulate", "swing.yaml", "--print-config", *overrides).stdout
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "again.yaml").write_text(text)
    again, once = ld.run_scenario("elsewhere/again.yaml"), ld.run_scenario("swing.yaml", overrides[1::2])
    for name in ("t", "q", "v", "a", "tau"):
        assert np.array_equal(getattr(again, name), getattr(once, name)), name
    assert files(folder) == ["again.yaml", "elsewhere", "robot.yaml", "swing.yaml"]


def test_the_printed_scenario_names_the_integrator_that_was_chosen(folder):
    (folder / "stiff.yaml").write_text((folder / "robot.yaml").read_text().replace("damping: 0.1", "damping: 1e5"))
    result = ok("simulate", "stiff.yaml", "--print-config")
    values = parse_yaml(result.stdout).plain()
    assert "using rodas5p (rtol 1e-06, atol 1e-08) instead of rk4 with steps of 0.001 s. Set integrator.method" in result.stderr
    assert not ok("simulate", "stiff.yaml", "--print-config", "-q").stderr
    assert values["integrator"] == {"method": "rodas5p", "rtol": 1e-6, "atol": 1e-8}
    assert values["robot"] == str(folder / "stiff.yaml") and values["duration"] == 5.0


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_scenario_reads_back_equal_from_its_yaml(path, tmp_path):
    scenario = read_scenario(path)
    (tmp_path / "again.yaml").write_text(to_yaml(to_plain(scenario)), encoding="utf-8")
    again = read_scenario(tmp_path / "again.yaml")
    assert to_plain(again) == to_plain(scenario)


@pytest.mark.parametrize("command", ["info", "plot", "simulate"])
def test_a_name_that_is_too_long_is_no_file(command):
    """The command ended with a traceback of OSError."""
    done = run(command, 300 * "a")
    assert done.exit_code == 2 and "does not exist" in done.stderr and len(done.stderr.splitlines()) == 1


def test_a_file_of_another_kind_is_reported_before_an_existing_result(folder):
    """The error was that the folder of the sweep's batch has no run.json."""
    (folder / "sweep.yaml").write_text("scenario: swing.yaml\nparameters: [{key: duration, list: [1, 2]}]\n")
    (folder / "motion.csv").write_text("# a comment\nt[s],q.elbow[rad]\n0,1\n")
    for name, text in (("sweep", "sweep.yaml:1: this is a sweep, not a scenario"), ("motion", "motion.csv: this is a CSV file")):
        (folder / "runs" / name).mkdir(parents=True)
        (folder / "runs" / name / "batch.json").write_text("{}")
        result = run("simulate", "sweep.yaml" if name == "sweep" else "motion.csv")
        assert result.exit_code == 3 and text in result.stderr


@pytest.mark.parametrize("command, message", [
    (("inverse", "--actuated", "elbo"), "no moving joint matches"), (("hybrid", "-p", "elbo"), "no moving joint matches"),
    (("kinematics", "--link", "lowr"), "lowr"), (("derivatives", "--wrt", "mass.lowr"), "mass.lowr")])
def test_wrong_names_are_reported_before_an_existing_result(folder, command, message):
    name, *options = command
    ld.trajectory_of(ld.load("robot.yaml"), [0.0, 0.1], np.zeros((2, 2)), np.zeros((2, 2))).save("motion.csv")
    (folder / "out.csv").write_text("a result")
    found = run(name, "motion.csv", "-o", "out.csv", *options)
    assert found.exit_code in (2, 3) and message in found.stderr and "exists" not in found.stderr
    assert (folder / "out.csv").read_text() == "a result"


@pytest.mark.parametrize("command, message", [
    (("linearize", "--at", 100), "at must be from 0 to"), (("linearize", "--inputs", "tau.elbo"), "tau.elbo"),
    (("linearize", "--width", "0.1"), "the width of a figure must be"),
    (("simulate", "-S", "duraton=2"), "duraton: unknown key"), (("simulate", "-S", "initial={q: {elbo: 1}}"), "no such joint")])
def test_wrong_arguments_are_reported_before_an_existing_run(folder, command, message):
    name, *options = command
    (folder / "out").mkdir()
    for file in ("run.json", "linear.json"):
        (folder / "out" / file).write_text("{}")
    found = run(name, "swing.yaml", "-o", "out", *options)
    assert found.exit_code in (2, 3) and message in found.stderr and "exists" not in found.stderr


def test_a_run_in_which_nothing_moves_says_so(folder):
    (folder / "rest.yaml").write_text("robot: robot.yaml\nduration: 0.1\ngravity: [0, 0, 0]\n")
    said = ok("simulate", "rest.yaml", "--no-plots").stderr
    assert "information: nothing moves: the robot starts at rest" in said and "; gravity is zero (set initial.q" in said
    assert "nothing moves" not in ok("simulate", "rest.yaml", "--no-plots", "--force", "-S", "gravity=[1, 0, -9.81]").stderr
