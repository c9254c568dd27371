"""What is wrong with a sweep is said in one line, with its key, before anything runs."""
import json
import re

import pytest

from command_line import run
from liedyn.batch.run_batch import PreparedSweep
from liedyn.errors import InputError, LiedynError
from liedyn.io.sweep_file import read_sweep
from sweeps import SCENARIO, batch, written

ONE = "parameters: [{key: initial.q.elbow, list: [0, 1]}]\n"


def vary(text: str, more: str = "") -> str:
    return f"parameters: [{{key: initial.q.elbow, {text}}}]\n{more}"


BAD = [
    ("", "the key parameters is missing: expected a list of parameters"),
    ("parameters: []\n", r"parameters: expected a list of at least 1 entries, got \[\]"),
    (vary("list: []"), r"parameters\[0\].list: expected a list of at least 1 values, got \[\]"),
    ("parameters: [{list: [1]}]\n", r"parameters\[0\]: the key key is missing: expected a key of the scenario, or "
                                    r"robot\.<parameter>"),
    (vary("lst: [1]"), r"unknown key: expected one of .*did you mean list"),
    ("parameters: [{key: initial.q.elbow}]\n", "one source of values is required: expected one of list, range.*got none"),
    (vary("list: [1], range: [0, 1, 2]"), "one source of values is required.*got list, range"),
    (vary("range: [0, 1]"), r"range: expected a list of 3 numbers, got \[0, 1\]"),
    (vary("range: [0, 1, 2.5]"), r"wrong count of a range: expected an integer from 1 to 1e\+08, got 2.5"),
    (vary("range: [0, 1, 0]"), r"wrong count of a range: expected an integer from 1 to 1e\+08, got 0"),
    (vary("uniform: [0]", "samples: 3\n"), "uniform: expected a list of 2 numbers"),
    (vary("uniform: null", "samples: 3\n"), "uniform: no value: expected a list of 2 numbers"),
    (vary("uniform: [1, 0]", "samples: 3\n"), r"the bounds are not in order: expected \[low, high\] with low below high"),
    (vary("log_uniform: [0, 1]", "samples: 3\n"), "a logarithmic distribution requires bounds above 0"),
    (vary("normal: {mean: 0}", "samples: 3\n"), "the key std is missing"),
    (vary("normal: {mean: 0, std: 0}", "samples: 3\n"), "std: out of range: expected a number > 0, got 0"),
    (vary("normal: {mean: 0, std: 1, low: 2, high: 1}", "samples: 3\n"), r"the bounds are not in order: .*got \[2.0, 1.0\]"),
    (vary("log_normal: {median: 1, sigma: 1, high: -1}", "samples: 3\n"), "a log-normal distribution has no values below 0"),
    (vary("uniform: [0, 1]"), "the key samples is missing: expected a number of runs"),
    (vary("uniform: [0, 1]", "samples: 1000000000\n"), r"samples: too many runs: expected at most 1e\+08, got 1000000000"),
    (vary("uniform: [0, 1]", "samples: 100000000\nsampling: sobol\n").replace("}]", "}, {key: duration, uniform: [1, 2]}]"),
     r"samples: the points of sobol need 1.6 GB of memory: expected at most 1e\+08 numbers, got 200000000 .*random"),
    (vary("uniform: [0, 1]", "combine: grid\n"), "a distribution cannot be combined with grid.*got 'initial.q.elbow'"),
    (vary("list: [1]", "samples: 3\n"), "samples does not apply to grid: expected combine: sample"),
    (vary("list: [1]", "combine: product\n"), "combine: expected one of grid, zip, sample, got product"),
    ("parameters: [{key: initial.q.elbow, list: [0, 1]}, {key: initial.q.shoulder, list: [1]}]\ncombine: zip\n",
     "the lists of zip have different lengths: expected one length, got {'initial.q.elbow': 2, 'initial.q.shoulder': 1}"),
    ("parameters: [{key: initial.q.elbow, list: [0]}, {key: initial.q.elbow, list: [1], name: x}]\n",
     "the same key varies twice"),
    ("parameters: [{key: initial.q.elbow, list: [0], name: status}]\n",
     "two columns of the table have the same name.*got 'status'"),
    (ONE + "outputs: {initial.q.elbow: final(t)}\n", "two columns of the table have the same name.*got 'initial.q.elbow'"),
    (vary("list: [a], scale: relative"), "relative values must be numbers"),
    (vary("csv: {file: no.csv, column: a}"), "file: no such CSV file: got .*no.csv"),
    (vary("csv: {file: values.csv, column: c}"), "column: no such column: expected a name in line 1 of.*got 'c'"),
    (vary("csv: {file: values.csv, column: b}"), "values.csv:3: b: not a number: got 'x'"),
    (vary("csv: {file: others.csv, column: a}"), "others.csv:1: a: two columns have the same name"),
    (vary("csv: {file: others.csv, column: b}"), "others.csv:2: b: not a number: got '1_000'"),
    (vary("csv: {file: others.csv, column: c}"), "others.csv:2: c: the value is not finite: expected a finite number, got 'nan'"),
    (vary("csv: {file: others.csv, column: d}"), "others.csv:3: d: a value is missing"),
    (vary("csv: {file: values.csv, column: 'a[degs]'}"), r"column: unknown unit: .*got 'degs' .did you mean deg"),
    (vary("csv: {file: empty.csv, column: a}"), "empty.csv: the file is empty"),
    ("parameters: [{key: '', list: [1]}]\n",
     r"sweep.yaml:2: parameters\[0\].key: the key is empty: expected a key of the scenario, or robot\.<parameter>"),
    (ONE + "trajectories: 3\n", "trajectories: expected true, false, or a mapping with every and columns, got 3"),
    (ONE + "trajectories: {every: 0}\n", "every: out of range: expected a number >= 1, got 0"),
    (ONE + "trajectories: {columns: []}\n", "columns: expected"),
    (ONE + "speed: 3\n", "speed: unknown key"),
]


@pytest.mark.parametrize("text, message", BAD, ids=range(len(BAD)))
def test_files(tmp_path, text, message):
    (tmp_path / "values.csv").write_text("a,b\n1,2\n2,x\n", encoding="utf-8")
    (tmp_path / "others.csv").write_text("a, a, b, c, d\n1,2,1_000,nan,\"4\"\n1,2,3,4\n", encoding="utf-8")
    (tmp_path / "empty.csv").touch()
    path = written(tmp_path, text)
    with pytest.raises(InputError, match=message) as caught:
        read_sweep(path)
    assert "\n" not in str(caught.value) and str(tmp_path) in str(caught.value)


BOUND = [("parameters: [{key: initial.q.elbo, list: [0]}]\n",
          r"sweep.yaml:2: parameters\[0\].key: the first run cannot start: override initial.q.elbo=0.0: .*elbo"),
         ("parameters: [{key: initial.qq.elbow, list: [0]}]\n", "the first run cannot start: .*unknown key.*did you mean q"),
         ("parameters: [{key: integrator.method, list: [rk5]}]\n", "the first run cannot start: .*expected one of rk4"),
         ("parameters: [{key: robot.mass.lowr, list: [1]}]\n",
          "no such parameter of the robot: .*got 'mass.lowr'.*did you mean robot.mass.lower"),
         ("parameters: [{key: robot.mass.lower, list: [-1]}]\n", "the first run cannot start: .*lower.*mass"),
         ("parameters: [{key: robot.links.lower.mas, list: [1]}]\n", "the first run cannot start: .*unknown key"),
         ("parameters: [{key: robot.mass.lower, list: [a]}]\n", "robot.mass.lower must be a number: got .?a"),
         ("parameters: [{key: robot.origin.elbow.wx, list: [1], scale: relative}]\n",
          "placements and screws have no relative values"),
         ("parameters: [{key: initial.q.tip, list: [1], scale: relative}]\n",
          "relative values require a number to multiply: .*has no value"),
         ("parameters: [{key: integrator.method, list: [1], scale: relative}]\n",
          "relative values require a number .*integrator.method = rk4"),
         (ONE + "outputs: {x: final(q.elbo)}\n", "outputs.x: no such column: .*got 'q.elbo'.*did you mean q.elbow"),
         (ONE + "outputs: {x: final(z(tipp))}\n", "outputs.x: no such link: .*got 'tipp'.*did you mean tip"),
         (ONE + "trajectories: {columns: [q.elbo]}\n",
          r"sweep.yaml:3: trajectories.columns: no such column: .*got 'q.elbo'.*did you mean q.elbow"),
         (ONE + "trajectories: {columns: ['q.*', 'contact.*']}\n",
          "no such column: expected a column of the trajectory, got 'contact.*'"),
         (ONE + "outputs: {x: q.elbow}\n", r"outputs.x: an output must be one number per run.*expected final\(…\)"),
         (ONE + "outputs: {x: fina(q.elbow)}\n", "unknown function fina: .*did you mean final"),
         (ONE + "outputs: {x: final(3)}\n", r"final\(…\) requires a series"),
         (ONE + "outputs: {x: 'final(q.elbow, 2)'}\n", "wrong arguments of final"),
         (ONE + "outputs: {x: 'at(latch, t)'}\n", "x: no such event: expected no event: these runs have none, got 'latch'"),
         (ONE + "overrides: {events.latch.at: 0.1, events.latch.do: record}\noutputs: {x: count(lach)}\n",
          "no such event: expected one of latch, got 'lach' .did you mean latch"),
         (ONE + "outputs: {x: 'before(0.2, t)'}\n", r"wrong arguments of before: expected before\(event, series\)"),
         (ONE + "outputs: {x: 'count(latch, t)'}\n", r"wrong arguments of count: expected count\(event\)"),
         (ONE + "outputs: {x: 'at(latch, 2)'}\n", r"at\(…\) requires a series"),
         (ONE + "outputs: {x: final(event(latch))}\n", "an event is not a number"),
         (ONE + "outputs: {x: 'at(t, q.elbow)'}\n", r"the time in at\(time, …\) must be a number"),
         (ONE + "outputs: {x: 'final(q.elbow) if 1 else 2'}\n", "a condition is not allowed in an expression"),
         (ONE + "outputs: {x: '__import__(1)'}\n", "unknown function __import__"),
         (ONE + "outputs: {x: 'final(q.elbow).real'}\n", "attribute access is not allowed in an expression"),
         (ONE + "outputs: {x: '1 +'}\n", "not an expression"), (ONE + "outputs: {x: final(speed)}\n", "unknown name speed"),
         (ONE + "overrides: {durration: 2}\n", "durration.*unknown key"),]


@pytest.mark.parametrize("text, message", BOUND, ids=range(len(BOUND)))
def test_what_the_scenario_or_the_robot_does_not_have(tmp_path, text, message):
    path = written(tmp_path, text)
    with pytest.raises(LiedynError, match=message) as caught:
        PreparedSweep(read_sweep(path))
    assert "\n" not in str(caught.value)


def test_a_robot_of_urdf_has_parameters_but_no_keys(tmp_path):
    scenario = SCENARIO.replace("double_pendulum.yaml", "double_pendulum.urdf")
    assert batch(tmp_path, "parameters: [{key: robot.mass.lower, list: [1, 2]}]\n", scenario=scenario).count == 2
    with pytest.raises(InputError, match=r"no such parameter of the robot.*got 'links\.lower\.mass'"):
        batch(tmp_path, "parameters: [{key: robot.links.lower.mass, list: [1, 2]}]\n", scenario=scenario)


def test_more_than_the_disk_holds_is_refused(tmp_path):
    found = batch(tmp_path, vary("uniform: [0, 1]", "samples: 100000000\ntrajectories: true\n"))
    with pytest.raises(LiedynError, match=r"100000000 runs need about \S+ GB of disk in .* GB are free \(keep fewer") as caught:
        found.run(tmp_path / "out")
    assert float(re.search(r"about (\S+) GB", str(caught.value))[1]) > 90.0 and not (tmp_path / "out").exists()


@pytest.mark.parametrize("options, message", [
    (["--shard", "3/2"], "expected a shard I/N, such as 2/5, got '3/2'"), (["--shard", "x"], "expected a shard"),
    (["--resume", "--force"], "--force cannot be combined with --resume"),
    (["--dry-run", "--rerun", 1], "cannot be combined with each other"),
    (["--rerun", 7], "there is no run 7: the sweep has 2 runs, from 0 to 1"), (["-S", "duration=-1"], "duration")])
def test_options(tmp_path, options, message):
    found = run("batch", written(tmp_path, ONE), *options, "-o", tmp_path / "out")
    assert found.exit_code in (2, 3) and message in found.stderr and not (tmp_path / "out").exists()


@pytest.mark.parametrize("key, value, message",
                         [("runs_in_a_chunk", "many", 'runs_in_a_chunk: expected an integer >= 1, got "many"'),
                          ("runs_in_a_chunk", 0, "runs_in_a_chunk: expected an integer >= 1, got 0"),
                          ("runs_in_a_chunk", True, "runs_in_a_chunk: expected an integer >= 1, got true"),
                          ("parameters", 3, "parameters: expected a list of mappings with key, name and scale, got 3"),
                          ("outputs", None, "outputs: expected a mapping of expressions by name, got null"),
                          ("overrides", ["a", 1], 'overrides: expected a list of text, got ["a", 1]'),
                          ("source", 7, ", got 7"), (None, "[1]", ", got [1]"),
                          (None, "{", "is damaged: Expecting property name")])
def test_a_batch_that_was_edited_by_hand(tmp_path, key, value, message):
    path, mark = written(tmp_path, ONE), tmp_path / "out" / "batch.json"
    assert run("batch", path, "-o", tmp_path / "out").exit_code == 0
    mark.write_text(value if key is None else json.dumps(json.loads(mark.read_text()) | {key: value}))
    for command in (("batch", path, "-o", tmp_path / "out", "--resume"), ("plot", tmp_path / "out")):
        found = run(*command)
        told = found.stderr.strip().splitlines()
        assert found.exit_code == 2 and message in told[-1] and "batch.json" in told[-1], found.stderr
    assert run("batch", path, "-o", tmp_path / "out", "--force").exit_code == 0


def test_a_scenario_and_a_folder_of_something_else_are_no_sweep_and_no_batch(tmp_path):
    path = written(tmp_path, ONE)
    found = run("batch", tmp_path / "scenario.yaml")
    assert found.exit_code == 3 and "this is a scenario, not a sweep" in found.stderr
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "letter.txt").touch()
    found = run("batch", path, "-o", tmp_path / "out", "--force")
    assert found.exit_code == 2 and "contains other files and no batch.json" in found.stderr
