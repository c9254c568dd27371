"""Several runs in one page: of a batch, and next to each other."""
import json
import re
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from command_line import ok, run
from liedyn.report.replay.meshes import unpacked
from liedyn.report.replay.page import data_of

SCENARIO = """
robot: robot.yaml
duration: 0.5
output_step: 0.02
integrator: {method: rk4, step: 0.005}
"""
ROBOT = """
links:
  arm: {mass: 1, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.01]}
  tip: {}
joints:
  hinge: {type: continuous, parent: world, child: arm, axis: [0, 1, 0]}
  end: {type: fixed, parent: arm, child: tip, origin: {xyz: [0, 0, -1]}}
"""
SWEEP = """
scenario: pendulum.yaml
parameters:
  - {key: initial.q.hinge, name: start, list: [0.2, 1.4, 0.7, 1.1, 0.5]}
outputs: {lowest: min(q.hinge), highest: max(z(tip))}
trajectories: true
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("batch")
    for name, text in (("robot", ROBOT), ("pendulum", SCENARIO), ("sweep", SWEEP)):
        (folder / f"{name}.yaml").write_text(text)
    ok("batch", folder / "sweep.yaml", "-o", folder / "runs")
    return folder


def shown(path: Path) -> dict:
    return data_of(path.read_text(encoding="utf-8"))


def test_scripts_read_only_what_the_page_has(folder, tmp_path):
    ok("replay", folder / "runs", "--runs", "3,4", "-o", tmp_path / "page.html")
    scripts = "".join(path.read_text(encoding="utf-8") for path in Path(ld.__file__).parent.glob("report/replay/*.js"))
    read = {name for names in re.findall(r"{ ([\w, ]+) } = run\.data", scripts) for name in names.split(", ")}
    read |= set(re.findall(r"\brun\.data\.(\w+)", scripts))
    assert {"name", "plots"} < read <= shown(tmp_path / "page.html")["runs"][0].keys()


def test_runs_of_a_batch_are_what_they_were(folder, tmp_path):
    import pyarrow.parquet as parquet
    ok("replay", folder / "runs", "--runs", "3,max:highest,max:lowest,3-4", "-o", tmp_path / "page.html")
    data = shown(tmp_path / "page.html")
    assert data["title"] == "runs" and data["beside"]
    names = [(one["name"], one["varied"]) for one in data["runs"]]
    # run 1 begins highest; run 0 begins lowest, and swings least to the other side
    assert names == [("run 3", ["start 1.1"]), ("run 1", ["start 1.4"]), ("run 0", ["start 0.2"]), ("run 4", ["start 0.5"])]
    kept = parquet.read_table(folder / "runs" / "trajectories").to_pydict()
    number, angle = np.array(kept["number"]), np.array(kept["q.hinge[rad]"])
    for run_number, one in zip((3, 1, 0, 4), data["runs"], strict=True):
        curve = unpacked(one["curves"])[:, 0]
        assert np.abs(curve - angle[number == run_number]).max() < 1e-4 * np.ptp(angle)
    model = ld.load(folder / "robot.yaml")
    T = ld.link_poses(model, angle[number == 3][:, None])[:, model.link_index("arm"), :3, :3]
    x, y, z, w = unpacked(data["runs"][0]["turns"]).T
    assert np.abs(2 * (x * z + y * w) - T[:, 0, 2]).max() < 1e-4


def test_without_a_list_four_runs_are_spread_over_the_batch(folder, tmp_path):
    ok("replay", folder / "runs", "--overlay", "-o", tmp_path / "page.html")
    data = shown(tmp_path / "page.html")
    assert [one["name"] for one in data["runs"]] == ["run 0", "run 1", "run 3", "run 4"] and not data["beside"]


@pytest.mark.parametrize("args, words", [
    (("--runs", "7"), "there is no run 7: {} has 5 runs, from 0 to 4"),
    (("--runs", "2-9"), "there is no run 5"),
    (("--runs", "best"), "--runs best: expected a run number, a range such as 0-3, min:OUTPUT or max:OUTPUT"),
    (("--runs", "max:higest"), "the batch has no output 'higest'; did you mean highest?"),
    (("--runs", "max:x"), "the batch has no output 'x'; it has lowest, highest"),
    (("--robot", "{}/../robot.yaml"), "--robot with its options and --against cannot be combined with a batch")])
def test_runs_that_are_not_there_are_refused(folder, tmp_path, args, words):
    place = str(folder / "runs")
    said = run("replay", place, *(arg.format(place) for arg in args), "-o", tmp_path / "page.html")
    assert said.exit_code == 2 and words.format(place) in said.stderr and len(said.stderr.splitlines()) == 1
    assert not (tmp_path / "page.html").exists()


def test_a_batch_that_has_changed_since_is_refused(folder, tmp_path):
    page = tmp_path / "page.html"
    (folder / "pendulum.yaml").write_text(SCENARIO.replace("0.5", "0.6"))
    try:
        said = run("replay", folder / "runs", "--runs", "0", "-o", page)
    finally:
        (folder / "pendulum.yaml").write_text(SCENARIO)
    assert said.exit_code == 2 and "has changed since" in said.stderr and "--resume` computes it again" in said.stderr
    about = json.loads((folder / "runs" / "batch.json").read_text())
    try:
        (folder / "runs" / "batch.json").write_text(json.dumps(about | {"source": "/nowhere.yaml"}))
        said = run("replay", folder / "runs", "--runs", "0", "-o", page)
    finally:
        (folder / "runs" / "batch.json").write_text(json.dumps(about))
    assert said.exit_code == 2 and "no longer exists: /nowhere.yaml" in said.stderr
    said = run("replay", folder / "robot.yaml", "--runs", "0", "-o", page)
    assert said.exit_code == 2 and "--runs needs the folder of a batch" in said.stderr
