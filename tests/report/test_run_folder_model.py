"""A run folder holds the model that was used; commands that read the run use it."""
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from command_line import ok, run
from liedyn.analysis.recorded_robot import robot_of
from liedyn.errors import LiedynWarning
from liedyn.model.model import build

TWO = """\
links:
  one: {mass: 1.5, com: [0.1, 0, -0.2], inertia: [0.02, 0.02, 0.01]}
  two: {mass: 0.7, com: [0, 0.3, -0.1], inertia: [0.01, 0.02, 0.02]}
joints:
  hip: {type: continuous, parent: world, child: one, axis: [0, 1, 0], damping: 0.1}
  knee: {type: continuous, parent: one, child: two, axis: [0, 1, 0.3], origin: {xyz: [0, 0, -0.4]}}
couplings:
  gear: {terms: {hip: 1, knee: 0.5}}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.yaml").write_text(TWO)
    return tmp_path


def tree_of(model):
    return model.spanning_tree()


def heavier(model):
    links = tuple(replace(link, mass=3.0) if link.name == "two" else link for link in model.description.links)
    return build(replace(model.description, links=links))


def otherwise(model):
    return ld.load("two.yaml", gravity=[0.5, 0, -1.6]).spanning_tree()


def without_file(model):
    return build(replace(model.description, source=None))


@pytest.mark.parametrize("change", [tree_of, heavier, otherwise, without_file])
def test_a_run_is_read_with_the_model_that_moved(folder, change):
    """Inverse dynamics of the recorded motion gives the recorded torques, which another model would not give."""
    model = change(ld.load("two.yaml"))
    result = ld.simulate(model, duration=0.05, v0=[0.4, -0.8] if model.nc else [0.3, 0.9])
    result.save("run")
    motion = ld.read_trajectory("run/trajectory.csv")
    read, warnings = robot_of(motion)
    assert warnings == ()
    for name in ("index", "constants", "loop_index", "loop_constants", "gravity"):
        assert np.array_equal(getattr(read, name), getattr(model, name)), name
    assert (read.v_names, read.base) == (model.v_names, model.base)
    assert read.source == ("run/model.yaml" if model.source is None else "two.yaml")
    if not model.nc:
        ok("inverse", "run/trajectory.csv", "-o", "run/again.csv")
        again = ld.read_trajectory("run/again.csv")
        for name in model.v_names:
            assert again.columns[f"tau.{name}"] == pytest.approx(motion.columns[f"tau.{name}"], abs=1e-12)
        assert robot_of(again)[1] == ()                            # a file next to the run names the model, too


@pytest.mark.parametrize("change", [tree_of, heavier, otherwise, without_file])
def test_a_trajectory_of_arrays_is_read_with_its_model(folder, change):
    """The CSV named the unchanged robot file: commands used other masses without a message."""
    model = change(ld.load("two.yaml"))
    t = np.linspace(0, 0.1, 21)
    q = 0.2 * np.outer(np.sin(t), [1.0, -2.0])
    ld.trajectory_of(model, t, q, *(np.gradient(q, t, axis=0) for _ in range(2))).save("motion.csv")
    read, warnings = robot_of(ld.read_trajectory("motion.csv"))
    assert warnings == () and Path("motion.model.yaml").is_file()
    for name in ("index", "constants", "loop_index", "loop_constants", "gravity"):
        assert np.array_equal(getattr(read, name), getattr(model, name)), name
    if not model.nc:
        ok("inverse", "motion.csv", "-o", "again.csv")
        motion = ld.motion_of(model, "again.csv")
        np.testing.assert_allclose(motion.tau, ld.inverse_dynamics(model, motion.q, motion.v, motion.a), rtol=0, atol=1e-12)
    Path("there").mkdir()
    ld.read_trajectory("motion.csv").save("there/motion.csv")                        # names the same model
    assert robot_of(ld.read_trajectory("there/motion.csv"))[0].constants.tolist() == model.constants.tolist()


@pytest.mark.parametrize("other", [{}, {"base": "fixed"}, {"gravity": [0, 0, -1.62]}])
def test_a_model_that_the_comments_tell_is_not_written(folder, other):
    """Also of robots whose spanning tree is another one than in the file, and of a loops file."""
    root = Path(__file__).parents[2] / "robots"
    for path in ("two.yaml", root / "n_four_bar.yaml", root / "gripper.urdf", root / "delta_guided.loops.yaml"):
        model = ld.load(path, **other)
        ld.trajectory_of(model, [0.0], [model.neutral()]).save("motion.csv", force=True)
        assert not Path("motion.model.yaml").exists(), path
        assert np.array_equal(robot_of(ld.read_trajectory("motion.csv"))[0].constants, model.constants)


def test_the_model_of_a_trajectory_replaces_nothing(folder):
    (folder / "arm.model.yaml").write_text(TWO)
    model = ld.load("arm.model.yaml").with_changes(mass={"two": 3.0})
    made = ld.trajectory_of(model, [0.0], [[0, 0]])
    with pytest.raises(ld.UsageError, match=r"would replace the robot file arm\.model\.yaml"):
        made.save("arm.csv", force=True)
    with pytest.raises(ld.UsageError, match="give the name of a file"):
        made.save("-")
    (folder / "other.model.yaml").write_text("mine")
    with pytest.raises(ld.UsageError, match=r"other\.model\.yaml already exists"):
        made.save("other.csv")
    assert (folder / "arm.model.yaml").read_text() == TWO and not (folder / "arm.csv").exists() and not Path("other.csv").exists()
    made.save("other.csv", force=True)
    (folder / "other.model.yaml").unlink()
    _, (note,) = robot_of(ld.read_trajectory("other.csv"))
    assert "other.model.yaml, the model that other.csv was recorded with, is missing" in note.message


def test_a_trajectory_of_a_robot_whose_file_is_gone(folder):
    model = ld.load("two.yaml")
    Path("two.yaml").unlink()
    ld.trajectory_of(model, [0.0], [[0, 0]]).save("motion.csv")
    assert np.array_equal(robot_of(ld.read_trajectory("motion.csv"))[0].constants, model.constants)


def test_a_changed_robot_file_does_not_change_results_of_a_run(folder):
    ok("simulate", "two.yaml", "-S", "duration=0.05", "-o", "run", "--no-plots")
    assert ld.load("run/model.yaml").loop_constants.tolist() == ld.load("two.yaml").loop_constants.tolist()
    (folder / "two.yaml").write_text(TWO.replace("mass: 0.7", "mass: 7"))
    found = ok("inverse", "run/trajectory.csv", "--actuated", "hip", "-o", "-")
    assert "two.yaml differs from the robot file that run/trajectory.csv was recorded with; the model of the run is used" in \
        found.stderr
    (folder / "two.yaml").unlink()
    assert ok("inverse", "run/trajectory.csv", "--actuated", "hip", "-o", "-").stdout == found.stdout


def test_a_changed_or_missing_model_is_reported(folder):
    ok("simulate", "two.yaml", "-S", "duration=0.05", "-o", "run", "--no-plots")
    shutil.copy("run/trajectory.csv", "motion.csv")
    Path("motion.csv").write_text(Path("motion.csv").read_text().replace("../two.yaml", "two.yaml"))
    found = ok("inverse", "motion.csv", "--actuated", "hip", "-o", "-")
    assert "model.yaml, the model that motion.csv was recorded with, is missing: two.yaml is used instead" in found.stderr
    with open("run/model.yaml", "a", encoding="utf-8") as file:
        file.write("# changed\n")
    found = run("inverse", "run/trajectory.csv", "-o", "-")
    assert found.exit_code == 3 and "is not the model that the run was computed with" in found.stderr
    ok("inverse", "run/trajectory.csv", "--robot", "two.yaml", "--actuated", "hip", "-o", "-")


def test_results_without_an_attached_body_are_reported(folder):
    (folder / "two.yaml").write_text(TWO.partition("couplings")[0])
    body = {"attach": {"link": "two", "mass": 0.5, "com": [0, 0, -0.1], "inertia": [0.001, 0.001, 0.001]}}
    result = ld.run_scenario({"robot": "two.yaml", "duration": 0.05, "events": {"grasp": {"at": 0.02, "do": body}}})
    result.save("run")
    text = "recorded with bodies attached to two: they are not included in results"
    assert text in ok("inverse", "run/trajectory.csv", "-o", "again.csv").stderr
    assert ld.read_trajectory("again.csv").header["attached"] == "two"
    assert text in ok("plot", "again.csv", "-o", "pictures", "-f", "svg").stderr
    assert "(without bodies attached to two)" in Path("pictures/torques.svg").read_text()
    ok("plot", "run/trajectory.csv", "-o", "own", "-f", "svg")          # the torques of the run itself have the body
    assert "without bodies" not in Path("own/torques.svg").read_text()
    for command in ("derivatives", "forward", "kinematics --link two", "inverse --wrenches world"):
        name, *options = command.split()
        done = ok(name, "run/trajectory.csv", *options, "-o", f"{name}.csv", "--force", "--json")
        assert text in done.stderr and any(text in one["message"] for one in json.loads(done.stdout)["warnings"]), command
        assert ld.read_trajectory(f"{name}.csv").header["without"] == "bodies attached to two", command
    shutil.copytree("run", "other")
    done = ok("replay", "run", "--against", "other", "-o", "both.html")
    assert f"warning: run/trajectory.csv was {text}" in done.stderr and f"warning: other/trajectory.csv was {text}" in done.stderr


def test_estimates_of_a_robot_with_an_attached_body_are_reported(folder):
    """Whoever fits the robot to such a run, from Python or from the command line, gets the robot and the body in one."""
    (folder / "two.yaml").write_text(TWO.partition("couplings")[0])
    swings = {"joints": {"*": {"torque": "0.2*sin(9*t)"}}}
    ld.run_scenario({"robot": "two.yaml", "duration": 0.5, "output_step": 0.005} | swings).save("run")
    path = Path("run/trajectory.csv")
    path.write_text("# attached: two\n" + path.read_text())
    text = ("run/trajectory.csv was recorded with bodies attached to two: they are not included in results")
    fit = ld.identify(ld.load("two.yaml"), "run/trajectory.csv")
    warning = LiedynWarning("attached-bodies", text)
    assert fit.warnings.count(warning) == 1
    done = ok("parameters", "two.yaml", "--from", "run/trajectory.csv", "--json")
    assert done.stderr.count(text) == 1 and json.loads(done.stdout)["fit"]["warnings"].count(warning.to_dict()) == 1
