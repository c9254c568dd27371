"""Runs of a batch that exceed limits of their robot: their rows say so, as the notes of single runs do."""
import pytest

from command_line import ok
from command_line import run as command
from liedyn.errors import ScenarioError
from sweeps import batch, table, written

BLOCK = """\
name: block
links: {b: {mass: 2}}
joints:
  x: {type: prismatic, parent: world, child: b, axis: [1, 0, 0], limits: {LIMITS}}
"""
SCENARIO = "robot: block.yaml\nduration: 1\noutput_step: 0.05\nintegrator: {method: METHOD}\njoints: {x: {torque: 3}}\n"
SWEEP = "parameters: [{key: initial.v.x, list: [0, 1]}]\noutputs: {last: final(q.x)}\n"
CASES = {"position": ("lower: -1, upper: 1", "worst 1.75 m at t = 1 s, limit 1 m"),
         "velocity": ("velocity: 2", "worst 2.5 m/s at t = 1 s, limit 2 m/s"),
         "effort": ("effort: 2.5", "worst 3 N at t = 0 s, limit 2.5 N")}


def sweep(folder, limits: str, method: str = "rk4"):
    (folder / "block.yaml").write_text(BLOCK.replace("LIMITS", limits))
    return {"text": SWEEP, "scenario": SCENARIO.replace("METHOD", method)}


@pytest.mark.parametrize("method", ["rk4", "rodas5p"])
@pytest.mark.parametrize("kind", CASES)
def test_rows_of_runs_beyond_limits_have_a_reason(tmp_path, kind, method):
    limits, told = CASES[kind]
    found = batch(tmp_path, **sweep(tmp_path, limits, method))
    assert found.evaluator.is_vectorized is (method == "rk4")
    done = found.run(tmp_path / "out")
    within, beyond = table(tmp_path / "out")["reason"]
    assert beyond.startswith(f"{kind} limits are exceeded: x from t = ") and told in beyond
    assert "; limits are not enforced" in beyond
    assert (within == "") is (kind != "effort") and done.table.counts == {"complete": 2}
    assert done.table.n_with_warning == (2 if kind == "effort" else 1)


def test_runs_within_limits_and_joints_without_have_none(tmp_path):
    for k, limits in enumerate(("", "lower: -2, upper: 2, velocity: 3, effort: 4")):
        folder = tmp_path / str(k)
        folder.mkdir()
        assert batch(folder, **sweep(folder, limits)).run(folder / "out").table.n_with_warning == 0


def test_the_command_says_how_many(tmp_path):
    path = written(tmp_path, **sweep(tmp_path, CASES["velocity"][0]))
    text = "warning: 1 of 2 runs are complete but suspicious: see the column reason"
    assert text in ok("batch", path, "-o", tmp_path / "out").stderr


@pytest.mark.parametrize("method", ["rk4", "rodas5p"])
def test_a_start_beyond_a_limit_is_a_reason(tmp_path, method):
    """The position is worst at the start, where single runs have a note about the initial state."""
    text = "parameters: [{key: initial.q.x, list: [0.5, 30]}]\noverrides: {initial.v.x: -1, joints.x.torque: 0}\n" \
           "outputs: {last: final(q.x)}\n"
    found = batch(tmp_path, **sweep(tmp_path, "lower: -5, upper: 10", method) | {"text": text})
    assert found.evaluator.is_vectorized is (method == "rk4")
    assert found.run(tmp_path / "out").table.n_with_warning == 1
    assert table(tmp_path / "out")["reason"] == ["", "position limits are exceeded: x starts at 30 m, above its limit 10 m"]


BALLS = """\
name: balls
links: {a: {mass: 1}, b: {mass: 2}}
joints:
  x: {type: prismatic, parent: world, child: a, axis: [0, 0, 1], limits: {lower: 0, upper: 10}}
  y: {type: prismatic, parent: world, child: b, axis: [0, 0, 1], limits: {lower: 0, upper: 10}}
"""
BOUNCES = """\
robot: balls.yaml
duration: 0.7
output_step: 0.05
initial: {q: {x: 0.5, y: 0.5}}
limits: {mode: hard, restitution: 0.5}
"""
COUNTS = "outputs: {x: count(event(limit of x)), y: count(event(limit of y)), first: 'at(event(limit of y), t)'}\n"


def test_impacts_at_hard_stops_are_counted_for_each_joint(tmp_path):
    """Both balls come down after sqrt(2 h / g) and bounce for 2 e sqrt(2 h / g): at one time they are one event of two joints."""
    (tmp_path / "balls.yaml").write_text(BALLS)
    text = "parameters: [{key: initial.q.x, list: [0.5, 5, 0.4]}]\n" + COUNTS
    batch(tmp_path, text, scenario=BOUNCES).run(tmp_path / "out")
    found = table(tmp_path / "out")
    assert found["x"] == [2, 0, 2] and found["y"] == [2, 2, 2]
    assert found["first"] == pytest.approx([(2 * 0.5 / 9.81) ** 0.5] * 3, abs=1e-9)


def test_only_hard_stops_have_events(tmp_path):
    (tmp_path / "balls.yaml").write_text(BALLS)
    with pytest.raises(ScenarioError, match=r"no such event: expected one of limit of x, limit of y, x.*got 'limit of z'"):
        batch(tmp_path, "parameters: [{key: initial.q.x, list: [0.5]}]\noutputs: {x: count(event(limit of z))}\n",
              scenario=BOUNCES)
    soft = BOUNCES.replace("{mode: hard, restitution: 0.5}", "stop")
    with pytest.raises(ScenarioError, match="no such event: expected no event: these runs have none, got 'limit of x'"):
        batch(tmp_path, "parameters: [{key: initial.q.x, list: [0.5]}]\n" + COUNTS, scenario=soft)


def incomplete(*args):
    result = command(*args)
    assert result.exit_code == 1, result.output
    return result


def test_the_command_prints_the_most_frequent_reason_of_failed_runs(tmp_path):
    """Reasons that differ in numbers alone count as one: two runs start beyond hard stops."""
    (tmp_path / "balls.yaml").write_text(BALLS)
    text = "parameters: [{key: initial.q.x, list: [0.5, 30, 60]}]\noutputs: {last: final(q.x)}\n"
    said = incomplete("batch", written(tmp_path, text, scenario=BOUNCES), "-o", tmp_path / "out").stderr
    assert "error: 2 of 3 runs are not complete, the first because: " in said and "x is at 30 at t = 0 s, above its" in said
    assert "more for other reasons" not in said
    text = text.replace("60]}]", "60]}, {key: limits.restitution, list: [0.5, 7]}]")
    quiet = incomplete("batch", written(tmp_path, text, scenario=BOUNCES), "-o", tmp_path / "more", "-q")
    said = quiet.stderr
    assert quiet.stdout == "" and said.count("\n") == 1 and (tmp_path / "more" / "runs.parquet").exists()
    assert "error: 5 of 6 runs are not complete, 3 of them because: " in said and "restitution" in said


def test_a_table_in_csv_is_never_older_than_the_other(tmp_path):
    """It kept the rows of a former sweep where it was not asked for again."""
    (tmp_path / "balls.yaml").write_text(BALLS)
    text = "parameters: [{key: initial.q.x, list: [0.5, 1, 1.5]}]\noutputs: {last: final(q.x)}\n"
    ok("batch", written(tmp_path, text, scenario=BOUNCES), "-o", tmp_path / "out", "--csv")
    path = written(tmp_path, text.replace("1, 1.5", "1.2"), scenario=BOUNCES)
    assert "runs.parquet, .csv" in ok("batch", path, "-o", tmp_path / "out", "--resume").stderr
    rows = (tmp_path / "out" / "runs.csv").read_text().splitlines()
    assert len(rows) == 3 and '1.2' in rows[2].split(",")[1]
