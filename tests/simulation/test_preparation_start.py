"""A robot file without a scenario starts within the limits of its joints."""
from pathlib import Path

import numpy as np
import pytest

from liedyn.analysis import operating_point
from liedyn.batch.run_batch import PreparedSweep
from liedyn.io.scenarios.scenario_file import to_plain
from liedyn.io.sweep_file import read_sweep
from liedyn.simulation.preparation import prepare
from liedyn.simulation.run import run_scenario

ROBOTS = Path(__file__).parents[2] / "robots"
ROBOT = """
links: {a: {mass: 1, inertia: [1, 1, 1]}, b: {mass: 1, inertia: [1, 1, 1]}, c: {mass: 1, inertia: [1, 1, 1]},
        d: {mass: 1, inertia: [1, 1, 1]}}
joints:
  below: {type: revolute, parent: world, child: a, axis: [0, 1, 0], limits: {lower: -3, upper: -1}}
  inside: {type: revolute, parent: a, child: b, axis: [0, 1, 0], limits: {lower: -1, upper: 3}}
  above: {type: prismatic, parent: b, child: c, axis: [1, 0, 0], limits: {lower: 0.25}}
  pair: {type: universal, parent: c, child: d, axes: [[1, 0, 0], [0, 1, 0]], limits: {lower: [1, -1], upper: [2, 1]}}
"""


@pytest.fixture
def robot(tmp_path):
    (tmp_path / "robot.yaml").write_text(ROBOT)
    return tmp_path / "robot.yaml"


def starts(prepared):
    return [str(w) for w in prepared.warnings if w.code == "started-within-limits"]


def test_joints_whose_limits_exclude_zero_start_in_their_range(robot):
    prepared = prepare(robot, ())
    np.testing.assert_array_equal(prepared.problem.q, [-2.0, 0.0, 0.25, 1.5, 0.0])
    message, = starts(prepared)
    assert "zero is outside the limits of joints: the run starts at below = -2 rad, above = 0.25 m, pair.1 = 1.5 rad" in message
    assert not any(w.code == "beyond-limits" for w in prepared.warnings)
    assert prepared.warnings[0].level == "information"


def test_the_start_is_a_part_of_the_scenario(robot, tmp_path):
    """Also of that which --print-config writes, and of a resumed run."""
    plain = to_plain(prepare(robot, ()).scenario)
    again = prepare(plain, ())
    np.testing.assert_array_equal(again.problem.q, [-2.0, 0.0, 0.25, 1.5, 0.0])
    assert not starts(again)


def test_what_is_given_or_prescribed_stays(robot):
    prepared = prepare(robot, ("initial.q.below=-1.5", "joints.above.prescribe.position=0.5", "initial.q.pair=[0, 0.5]"))
    np.testing.assert_array_equal(prepared.problem.q, [-1.5, 0.0, 0.5, 0.0, 0.5])
    assert not starts(prepared)
    prepared = prepare(robot, ('initial.q."*e*"=0.5', "initial.q.pair=[1.5, 0]"))                # a pattern names it
    assert prepared.problem.q[0] == 0.5 and prepared.problem.q[2] == 0.5 and not starts(prepared)


def test_a_scenario_starts_where_it_says(robot):
    """At zero, with the warning."""
    prepared = prepare({"robot": str(robot), "duration": 1.0}, ())
    assert not prepared.problem.q.any() and not starts(prepared)
    assert any(w.code == "beyond-limits" for w in prepared.warnings)


@pytest.mark.parametrize(("mimic", "start"), [
    ("multiplier: 1", 1.625), ("multiplier: -1", -0.625), ("multiplier: 0.5", 1.75), ("multiplier: 1, offset: 0.25", 0.0),
    ("multiplier: -1, offset: -9", 0.0)])
def test_joints_start_where_those_that_follow_them_are_within_their_limits(tmp_path, mimic, start):
    """The last: no position is within the limits of both."""
    limits = "limits: {lower: 0.25}"
    (tmp_path / "robot.yaml").write_text(ROBOT.replace(limits, f"{limits}, mimic: {{joint: inside, {mimic}}}"))
    prepared = prepare(tmp_path / "robot.yaml", ())
    assert prepared.problem.q[1] == start and "above" not in starts(prepared)[0]
    assert any(w.code == "beyond-limits" for w in prepared.warnings) == ("-9" in mimic)


def test_a_panda_falls_from_its_range():
    result = run_scenario(ROBOTS / "panda.yaml", ["duration=0.05"])
    assert result.q[0, 3] == pytest.approx(0.5 * (-3.0718 - 0.0698)) and np.abs(np.delete(result.q[0], 3)).max() == 0.0
    assert not any(w.code == "beyond-limits" and "starts" in w.message for w in result.warnings)


def test_batches_and_linearizations_start_as_the_run(robot, tmp_path):
    """A batch over a robot file started at zero."""
    (tmp_path / "sweep.yaml").write_text("scenario: robot.yaml\noverrides: {duration: 0.01}\n"
                                         "parameters: [{key: robot.mass.d, name: m, list: [1, 2]}]\n"
                                         "outputs: {x: initial(q.below), y: initial(q.pair.1)}\n")
    found = PreparedSweep(read_sweep(tmp_path / "sweep.yaml"))
    np.testing.assert_array_equal(found.evaluator.compute_chunk(0, 2).outputs, [[-2.0, 1.5], [-2.0, 1.5]])
    np.testing.assert_array_equal(operating_point.prepare(robot).problem.q, [-2.0, 0.0, 0.25, 1.5, 0.0])
