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
    ("", "the key parameters is missing; expected a list of parameters"),
    ("parameters: []\n", r"parameters: wrong value; found \[\]; expected a list of at least 1 entries"),
    (vary("list: []"), r"parameters\[0\].list: wrong value; found \[\]; expected a list of at least 1 values"),
    ("parameters: [{list: [1]}]\n", r"parameters\[0\]: the key key is missing; expected a key of the scenario"),
    (vary("lst: [1]"), r"unknown key; expected one of .*did you mean list"),
    ("parameters: [{key: initial.q.elbow}]\n", r"one source of values is required; found none; expected one of list, range"),
    (vary("list: [1], range: [0, 1, 2]"), "one source of values is required; found list, range"),
    (vary("range: [0, 1]"), r"range: wrong value; found \[0, 1\]; expected a list of 3 numbers"),
    (vary("range: [0, 1, 2.5]"), "wrong count of a range; found 2.5"),
    (vary("range: [0, 1, 0]"), "wrong count of a range; found 0"),
    (vary("uniform: [0]", "samples: 3\n"), "uniform: wrong value; .*expected a list of 2 numbers"),
    (vary("uniform: null", "samples: 3\n"), "uniform: no value; expected a list of 2 numbers"),
    (vary("uniform: [1, 0]", "samples: 3\n"), r"the bounds are not in order; .*expected \[low, high\] with low below high"),
    (vary("log_uniform: [0, 1]", "samples: 3\n"), "the logarithm needs bounds above 0"),
    (vary("normal: {mean: 0}", "samples: 3\n"), "the key std is missing"),
    (vary("normal: {mean: 0, std: 0}", "samples: 3\n"), "std: out of range; found 0; expected a number above 0"),
    (vary("normal: {mean: 0, std: 1, low: 2, high: 1}", "samples: 3\n"), r"the bounds are not in order; found \[2.0, 1.0\]"),
    (vary("log_normal: {median: 1, sigma: 1, high: -1}", "samples: 3\n"), "a log-normal distribution has no values below 0"),
    (vary("uniform: [0, 1]"), "the key samples is missing; expected a number of runs"),
    (vary("uniform: [0, 1]", "samples: 1000000000\n"), "samples: too many runs; found 1000000000; expected at most 1e"),
    (vary("uniform: [0, 1]", "samples: 100000000\nsampling: sobol\n").replace("}]", "}, {key: duration, uniform: [1, 2]}]"),
     r"samples: the points of sobol need 1.6 GB of memory; found 200000000; expected at most 1e\+08 numbers .*random"),
    (vary("uniform: [0, 1]", "combine: grid\n"), "a distribution cannot be combined with grid; found 'initial.q.elbow'"),
    (vary("list: [1]", "samples: 3\n"), "samples does not apply to grid; expected combine: sample"),
    (vary("list: [1]", "combine: product\n"), "combine: wrong value; found product; expected one of grid, zip, sample"),
    ("parameters: [{key: initial.q.elbow, list: [0, 1]}, {key: initial.q.shoulder, list: [1]}]\ncombine: zip\n",
     "the lists of zip have different lengths; found {'initial.q.elbow': 2, 'initial.q.shoulder': 1}"),
    ("parameters: [{key: initial.q.elbow, list: [0]}, {key: initial.q.elbow, list: [1], name: x}]\n",
     "the same key varies twice"),
    ("parameters: [{key: initial.q.elbow, list: [0], name: status}]\n",
     "two columns of the table have the same name; found 'status'"),
    (ONE + "outputs: {initial.q.elbow: final(t)}\n", "two columns of the table have the same name; found 'initial.q.elbow'"),
    (vary("list: [a], scale: relative"), "relative values must be numbers"),
    (vary("csv: {file: no.csv, column: a}"), "file: no such CSV file; found .*no.csv"),
    (vary("csv: {file: values.csv, column: c}"), "column: no such column; found 'c'; expected a name in line 1 of"),
    (vary("csv: {file: values.csv, column: b}"), r"values.csv:3: b: not a number; found 'x'"),
    (vary("csv: {file: others.csv, column: a}"), "others.csv:1: a: two columns have the same name"),
    (vary("csv: {file: others.csv, column: b}"), "others.csv:2: b: not a number; found '1_000'"),
    (vary("csv: {file: others.csv, column: c}"), "others.csv:2: c: the value is not finite; found 'nan'"),
    (vary("csv: {file: others.csv, column: d}"), "others.csv:3: d: a value is missing"),
    (vary("csv: {file: values.csv, column: 'a[degs]'}"), r"column: unknown unit; found 'degs'; .*did you mean deg"),
    (vary("csv: {file: empty.csv, column: a}"), "empty.csv: the file is empty"),
    ("parameters: [{key: '', list: [1]}]\n",
     r"sweep.yaml:2: parameters\[0\].key: the key is empty; expected a key of the scenario"),
    (ONE + "trajectories: 3\n", "trajectories: wrong value; found 3; expected true, false, or a mapping"),
    (ONE + "trajectories: {every: 0}\n", "every: out of range; found 0; expected a number of at least 1"),
    (ONE + "trajectories: {columns: []}\n", "columns: wrong value"),
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
          "no such parameter of the robot; found 'mass.lowr'.*did you mean robot.mass.lower"),
         ("parameters: [{key: robot.mass.lower, list: [-1]}]\n", "the first run cannot start: .*lower.*mass"),
         ("parameters: [{key: robot.links.lower.mas, list: [1]}]\n", "the first run cannot start: .*unknown key"),
         ("parameters: [{key: robot.mass.lower, list: [a]}]\n", "robot.mass.lower must be a number; found .?a"),
         ("parameters: [{key: robot.origin.elbow.wx, list: [1], scale: relative}]\n",
          "placements and screws have no relative values"),
         ("parameters: [{key: initial.q.tip, list: [1], scale: relative}]\n",
          "relative values require a number to multiply; .*has no value"),
         ("parameters: [{key: integrator.method, list: [1], scale: relative}]\n",
          "relative values require a number .*integrator.method = rk4"),
         (ONE + "outputs: {x: final(q.elbo)}\n", "outputs.x: no such column; found 'q.elbo'.*did you mean q.elbow"),
         (ONE + "outputs: {x: final(z(tipp))}\n", "outputs.x: no such link; found 'tipp'.*did you mean tip"),
         (ONE + "trajectories: {columns: [q.elbo]}\n",
          r"sweep.yaml:3: trajectories.columns: no such column; found 'q.elbo'.*did you mean q.elbow"),
         (ONE + "trajectories: {columns: ['q.*', 'contact.*']}\n", "no such column; found 'contact"),
         (ONE + "outputs: {x: q.elbow}\n", r"outputs.x: an output must be one number per run.*expected final\(…\)"),
         (ONE + "outputs: {x: fina(q.elbow)}\n", "unknown function fina; .*did you mean final"),
         (ONE + "outputs: {x: final(3)}\n", r"final\(…\) requires a series"),
         (ONE + "outputs: {x: 'final(q.elbow, 2)'}\n", "wrong arguments of final"),
         (ONE + "outputs: {x: 'at(latch, t)'}\n", "x: no such event; found 'latch'; expected no event: these runs have none"),
         (ONE + "overrides: {events.latch.at: 0.1, events.latch.do: record}\noutputs: {x: count(lach)}\n",
          "no such event; found 'lach'; expected one of latch .did you mean latch"),
         (ONE + "outputs: {x: 'before(0.2, t)'}\n", r"wrong arguments of before; .*expected before\(event, series\)"),
         (ONE + "outputs: {x: 'count(latch, t)'}\n", r"wrong arguments of count; .*expected count\(event\)"),
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
    with pytest.raises(InputError, match=r"no such parameter of the robot; found 'links\.lower\.mass'"):
        batch(tmp_path, "parameters: [{key: robot.links.lower.mass, list: [1, 2]}]\n", scenario=scenario)


def test_more_than_the_disk_holds_is_refused(tmp_path):
    found = batch(tmp_path, vary("uniform: [0, 1]", "samples: 100000000\ntrajectories: true\n"))
    with pytest.raises(LiedynError, match=r"100000000 runs need about \S+ GB of disk in .* GB are free \(keep fewer") as caught:
        found.run(tmp_path / "out")
    assert float(re.search(r"about (\S+) GB", str(caught.value))[1]) > 90.0 and not (tmp_path / "out").exists()


@pytest.mark.parametrize("options, message", [
    (["--shard", "3/2"], "'3/2' is not a shard I/N"), (["--shard", "x"], "is not a shard"),
    (["--resume", "--force"], "--force cannot be combined with --resume"),
    (["--dry-run", "--rerun", 1], "cannot be combined, neither with each other"),
    (["--rerun", 7], "there is no run 7: the sweep has 2 runs, from 0 to 1"), (["-S", "duration=-1"], "duration")])
def test_options(tmp_path, options, message):
    found = run("batch", written(tmp_path, ONE), *options, "-o", tmp_path / "out")
    assert found.exit_code in (2, 3) and message in found.stderr and not (tmp_path / "out").exists()


@pytest.mark.parametrize("key, value, message",
                         [("runs_in_a_chunk", "many", 'runs_in_a_chunk: found "many", expected an integer >= 1'),
                          ("runs_in_a_chunk", 0, "runs_in_a_chunk: found 0, expected"),
                          ("runs_in_a_chunk", True, "runs_in_a_chunk: found true"),
                          ("parameters", 3, "parameters: found 3, expected a list of mappings"),
                          ("outputs", None, "outputs: found null, expected a mapping"),
                          ("overrides", ["a", 1], 'overrides: found ["a", 1], expected a list of text'),
                          ("source", 7, "source: found 7, expected"), (None, "[1]", "found [1], expected"),
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
