"""`initial: {from: …}`: a scenario starts where a run ended."""
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from command_line import ok
from liedyn.errors import ScenarioError
from liedyn.io.scenarios.scenario_file import read_scenario, scenario_of, to_plain

ROBOT = """\
links:
  a: {mass: 1, com: [0, 0, -0.2], inertia: [0.02, 0.02, 0.01]}
  b: {mass: 1, com: [0, 0.1, -0.2], inertia: [0.02, 0.03, 0.01]}
joints:
  hip: {type: continuous, parent: world, child: a, axis: [0, 1, 0]}
  knee: {type: ball, parent: a, child: b, origin: {xyz: [0, 0, -0.4]}}
"""
SWING = "robot: bars.yaml\nduration: 0.4\noutput_step: 0.1\ninitial: {q: {hip: 1}, v: {knee: [0.1, 2, 0.3]}}\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bars.yaml").write_text(ROBOT)
    (tmp_path / "other.yaml").write_text(ROBOT.replace("hip", "waist"))
    (tmp_path / "more.yaml").write_text(ROBOT.replace("joints:", "  c: {mass: 1, inertia: [1, 1, 1]}\njoints:")
                                        + "  wheel: {type: continuous, parent: b, child: c, axis: [1, 0, 0]}\n")
    (tmp_path / "swing.yaml").write_text(SWING)
    (tmp_path / "on.yaml").write_text("robot: bars.yaml\nduration: 0.4\noutput_step: 0.1\ninitial:\n  from: runs/swing\n")
    ok("simulate", "swing.yaml", "--no-plots")
    return tmp_path


def test_two_runs_are_one(folder):
    once, second = ld.run_scenario("swing.yaml", {"duration": 0.8}), ld.run_scenario("on.yaml")
    first = ld.run_scenario("swing.yaml")
    assert np.array_equal(second.v[0], first.v[-1]) and np.abs(second.q[0] - first.q[-1]).max() < 1e-15
    for name in ("q", "v", "a"):
        assert np.abs(getattr(second, name) - getattr(once, name)[4:]).max() < 1e-12          # rounding, in another order
    assert not second.warnings


def test_a_run_with_events_is_gone_on_from(folder):
    """One time occurs twice in its file."""
    (folder / "swing.yaml").write_text(SWING + "events: {stop: {at: 0.25, do: {set: {v: {hip: 2}}}}}\n")
    ok("simulate", "swing.yaml", "--no-plots", "--force")
    first, second = ld.run_scenario("swing.yaml"), ld.run_scenario("on.yaml")
    assert len(first.events) == 1 and np.array_equal(second.v[0], first.v[-1])


def test_bodies_and_locks_that_are_not_continued_are_named(folder):
    """A body that was attached and detached again is not missing."""
    events = ("grab: {at: 0.1, do: {attach: {link: b, mass: 1}}}, hold: {at: 0.15, do: {lock: hip}}, "
              "drop: {at: 0.2, do: {detach: b}}")
    (folder / "swing.yaml").write_text(f"{SWING}events: {{{events}}}\n")
    for overrides, text in ((["-S", "events.drop=null"], "hip locked; a body attached to b"), ([], "hip locked"),
                            (["-S", "events.hold=null"], "")):
        ok("simulate", "swing.yaml", "--no-plots", "--force", *overrides)
        warnings = [one for one in ld.run_scenario("on.yaml").warnings if one.code == "changes-not-continued"]
        assert [str(one.place) for one in warnings] == ["on.yaml:5: initial.from"] * bool(text)
        assert [one.message for one in warnings] == [
            f"runs/swing/trajectory.csv ends with {text}: this run starts without these changes, unless its own events make "
            "them"] * bool(text)
    ok("simulate", "swing.yaml", "--no-plots", "--force", "-S", "events.drop=null")
    assert ld.run_scenario("on.yaml", {"events": {"hold": {"at": 0, "do": {"lock": "hip"}}}}).final_changes == "hip locked"


def test_values_of_the_scenario_replace_those_of_the_run(folder):
    first = ld.run_scenario("swing.yaml")
    run = ld.run_scenario("on.yaml", {"initial.q.hip": 0.25, "initial.v": {"h*": -3}})
    assert (run.q[0, 0], run.v[0, 0]) == (0.25, -3.0)
    assert np.array_equal(run.v[0, 1:], first.v[-1, 1:])


def test_a_trajectory_serves_as_well_and_paths_are_relative_to_the_scenario(folder):
    (folder / "deep").mkdir()
    (folder / "deep" / "on.yaml").write_text("robot: ../bars.yaml\nduration: 1\ninitial: {from: ../runs/swing/trajectory.csv}\n")
    scenario = read_scenario("deep/on.yaml")
    assert scenario.initial_from == read_scenario("on.yaml").initial_from
    assert scenario_of(to_plain(scenario)).initial_from.file == str(folder / "runs" / "swing" / "trajectory.csv")
    assert np.array_equal(ld.run_scenario("deep/on.yaml").v[0], ld.run_scenario("swing.yaml").v[-1])


@pytest.mark.parametrize("overrides, text", [
    ({"robot": "other.yaml"}, r"on.yaml:5: initial.from: the motion in runs/swing/trajectory.csv is of another robot: "
                              r"expected coordinates of other: q.waist, …, got 'q.hip, v.hip'"),
    ({"robot": "more.yaml"}, r"trajectory.csv: column q.wheel: a column is missing: expected one for each coordinate"),
    ({"initial.from": "runs/swong"}, r"override initial.from=.*: no such run folder or trajectory.*got 'runs/swong'"),
    ({"initial.from": "."}, r"no such run folder or trajectory.*got './trajectory.csv'|got 'trajectory.csv'"),
    ({"initial.from": "bare.csv"}, "bare.csv has no columns of velocities: expected v.<joint>"),
    ({"joints": {"hip": {"prescribe": {"position": 0}}}},
     r"on.yaml:5: initial.from \(runs/swing/trajectory.csv\): the initial value contradicts the prescribed motion: hip is pre"),
])
def test_what_cannot_start_there_is_refused_by_name(folder, overrides, text):
    (folder / "bare.csv").write_text("t,q.hip,q.knee.qx,q.knee.qy,q.knee.qz,q.knee.qw\n0,1,0,0,0,1\n")
    with pytest.raises(ScenarioError, match=text):
        ld.run_scenario("on.yaml", overrides)


def test_a_run_may_start_where_a_motion_begins(folder):
    """Velocities that a path does not have are zero."""
    first, run = ld.run_scenario("swing.yaml"), ld.run_scenario("on.yaml", {"initial.row": "first"})
    assert np.array_equal(run.q[0], first.q[0]) and np.array_equal(run.v[0], first.v[0])
    (folder / "bare.csv").write_text("t,q.hip,q.knee.qx,q.knee.qy,q.knee.qz,q.knee.qw\n0,0.5,0,0,0,1\n1,2,0,0,0,1\n")
    scenario = read_scenario("on.yaml", {"initial.from": "bare.csv", "initial.row": "first"})
    assert scenario_of(to_plain(scenario)).initial_from.row == "first"
    run = ld.run_scenario("on.yaml", {"initial.from": "bare.csv", "initial.row": "first"})
    assert run.q[0, 0] == 0.5 and not run.v[0].any()
    for change, text in (({"initial.row": "middle"}, "one of last, first"),
                         ({"initial": {"row": "first"}}, "row belongs to from")):
        with pytest.raises(ScenarioError, match=text):
            ld.run_scenario("on.yaml", change)


def test_a_prescribed_joint_may_be_given_the_start_of_its_motion(folder):
    run = ld.run_scenario("on.yaml", {"joints": {"hip": {"prescribe": {"position": 0}}}, "initial.q.hip": 0, "initial.v.hip": 0})
    assert not run.q[:, 0].any()


def test_a_mechanism_goes_on_without_being_moved(folder):
    config = Path(__file__).parents[2] / "configs" / "five_bar_swing.yaml"
    overrides = {"duration": 0.2, "output_step": 0.1}
    ok("simulate", config, "--no-plots", "-o", "runs/loop", *(f"-S{key}={value}" for key, value in overrides.items()))
    first = ld.run_scenario(config, overrides)
    second = ld.run_scenario(config, {**overrides, "initial": {"from": "runs/loop"}})
    # a run keeps its loops to 1e-12 m, some 1e-11 rad of links of 0.2 m; the start closes them to rounding
    assert np.abs(second.q[0] - first.q[-1]).max() < 2e-11 and np.abs(second.v[0] - first.v[-1]).max() < 1e-9
    assert np.abs(second.q[-1] - first.q[-1]).max() > 1e-2
