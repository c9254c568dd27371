"""Events on the command line: events.csv, and what other commands read of such a run."""
import csv
import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from command_line import run
from liedyn.cli.app import main
from liedyn.io.trajectory_csv import read_trajectory


def test_a_run_with_events_is_written_and_read(tmp_path):
    folder = tmp_path / "run"
    done = CliRunner().invoke(main, ["simulate", "configs/pendulum_latch.yaml", "-o", str(folder), "--no-plots"])
    assert done.exit_code == 0, done.output
    assert "\n5 events: latch 1, release 1, stop 2, brake 1\n" in done.output
    with (folder / "events.csv").open(encoding="utf-8") as file:
        events = list(csv.DictReader(file))
    names = [one["event"] for one in events]
    assert names[0] == "latch" and "release" in names and "stop" in names and events[-1]["phase"] == "damped"
    assert float(events[0]["energy_lost[J]"]) > 0 and float(events[0]["dv.elbow[rad/s]"]) != 0
    run = json.loads((folder / "run.json").read_text())
    assert run["events"] == len(events) and run["self_check"]["energy_balance_relative"] < 1e-8
    trajectory = read_trajectory(folder / "trajectory.csv")
    assert np.count_nonzero(np.diff(trajectory.t) == 0) == len(events)
    again = CliRunner().invoke(main, ["inverse", str(folder / "trajectory.csv"), "-o", str(tmp_path / "again.csv")])
    assert again.exit_code == 0, again.output
    tau = read_trajectory(tmp_path / "again.csv").columns["tau.shoulder"]
    np.testing.assert_allclose(tau, trajectory.columns["tau.shoulder"], atol=1e-8)


def test_the_scenario_in_run_json_runs_again(tmp_path):
    import yaml

    from liedyn.io.scenarios.scenario_file import read_scenario, to_plain
    for name in ("pendulum_latch", "pendulum_throw", "ur5_pick"):
        scenario = read_scenario(f"configs/{name}.yaml")
        (tmp_path / "again.yaml").write_text(yaml.safe_dump(to_plain(scenario, tmp_path), sort_keys=False))
        again = read_scenario(tmp_path / "again.yaml")
        assert again.events == scenario.events and again.phases == scenario.phases and again.joints == scenario.joints


def test_velocities_are_not_derived_across_an_event(tmp_path):
    rows = "".join(f"{t},0.1,0.2\n" for t in (0, 1, 2, 2, 3, 4, 5, 6, 7))
    (tmp_path / "m.csv").write_text(f"# events: 1\nt,q.shoulder,q.elbow\n{rows}")
    done = CliRunner().invoke(main, ["inverse", str(tmp_path / "m.csv"), "--robot", "robots/double_pendulum.yaml"])
    assert done.exit_code != 0 and "before and after an event" in done.output


def test_linearize_goes_past_events(tmp_path):
    done = CliRunner().invoke(main, ["linearize", "configs/pendulum_latch.yaml", "--at", "1.0", "-o", str(tmp_path / "x")])
    assert done.exit_code == 0 and "after the events up to t = 1 s: phase swing; elbow locked" in done.output, done.output
    assert "a.elbow" in json.loads((tmp_path / "x" / "linear.json").read_text())["inputs"]
    done = CliRunner().invoke(main, ["linearize", "configs/bouncing_arm.yaml", "--at", "2.0", "-o", str(tmp_path / "y")])
    assert done.exit_code == 2 and "shoulder rests at its hard stop" in done.output and not (tmp_path / "y").exists()


def test_bodies_that_other_commands_do_not_know_are_told(tmp_path):
    folder = tmp_path / "run"
    done = CliRunner().invoke(main, ["simulate", "configs/ur5_pick.yaml", "-S", "duration=2", "-o", str(folder), "--no-plots"])
    assert done.exit_code == 0 and "events after the end of the run do not happen: place" in done.output, done.output
    again = CliRunner().invoke(main, ["inverse", str(folder / "trajectory.csv"), "-o", str(tmp_path / "again.csv")])
    assert again.exit_code == 0 and "bodies attached to wrist_3_link" in again.output


PRESCRIBES = ["-S", "phases={a: {}, b: {joints: {elbow: {prescribe: {position: 0.5}}}}}", "-S",
              "events={e: {at: 1, do: {phase: b}}}"]
BEYOND = ["-S", "limits=hard",
          "-S", "events={e: {at: 1, do: {set: {q: {elbow: 5}}}}}"]


@pytest.mark.parametrize(("overrides", "names"), [(PRESCRIBES, "phase b prescribes elbow at 0.5"),
                                                  (BEYOND, "events.e: event e: elbow is at 5 at t = 1 s, above its limit 2")])
def test_rows_before_an_event_that_is_not_possible_are_kept(tmp_path, overrides, names):
    """These rows were lost, and the second error named the limits instead of the event."""
    if overrides is BEYOND:
        text = Path("robots/double_pendulum.yaml").read_text()
        (tmp_path / "arm.yaml").write_text(text.replace("continuous\n    parent: upper",
                                                        "revolute\n    parent: upper").replace("child: lower\n",
                                                                                               "child: lower\n    limits: "
                                                                                               "{lower: -90, upper: 2}\n"))
        overrides = ["-S", f"robot={tmp_path / 'arm.yaml'}", *overrides]
    (tmp_path / "fall.yaml").write_text(f"robot: {Path('robots/double_pendulum.yaml').absolute()}\nduration: 2\noutput_step: "
                                        f"0.1\n"
                                        "initial: {q: {shoulder: 0.3}}\n")
    result = run("simulate", tmp_path / "fall.yaml", *overrides, "-o", tmp_path / "out", "--no-plots")
    assert result.exit_code == 3 and names in result.stderr and "11 rows, up to t = 1 s, in " in result.stderr, result.stderr
    assert read_trajectory(tmp_path / "out" / "trajectory.csv").t[-1] == 1.0
    told = json.loads((tmp_path / "out" / "run.json").read_text())
    assert told["status"] == "diverged" and names in told["reason"]


def test_a_dry_run_knows_that_mechanisms_cannot_be_set(tmp_path):
    (tmp_path / "bars.yaml").write_text(f"robot: {Path('robots/four_bar.yaml').absolute()}\nduration: 1\n")
    result = run("simulate", tmp_path / "bars.yaml", "--dry-run", "-S", "events={e: {at: 0.5, do: {set: {q: {crank: 0}}}}}")
    assert result.exit_code == 3 and "set is not supported for robots with loops or couplings" in result.stderr
