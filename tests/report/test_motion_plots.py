"""`liedyn plot`: which file is drawn into which folder, with and without a robot."""
from pathlib import Path

import pytest

from command_line import run
from liedyn.errors import ModelError, UsageError
from liedyn.report.motion_plots import check_no_plots, plot_trajectories, plots_folder

ROBOT = """
links: {bar: {mass: 1, com: [0, 0, -1], inertia: [1, 1, 1]}}
joints: {hinge: {type: continuous, parent: world, child: bar, axis: [0, 1, 0]}}
"""
MOTION = "t[s],q.hinge[rad],v.hinge[rad/s]\n0,0,1\n1,1,1\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bar.yaml").write_text(ROBOT)
    (tmp_path / "motion.csv").write_text(MOTION)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "trajectory.csv").write_text("# robot: ../bar.yaml\n" + MOTION)
    return tmp_path


def test_sources(folder):
    assert plots_folder(["motion.csv"], None) == Path("motion_plots")
    assert plots_folder(["motion.csv"], "pictures") == Path("pictures")
    assert plots_folder(["run"], None) == Path("run/plots")
    assert plots_folder(["run/trajectory.csv"], None) == Path("run/trajectory_plots")
    assert plots_folder(["-"], None) == Path("plots")
    assert plots_folder(["run", "motion.csv"], None) == Path("run_motion_plots")
    with pytest.raises(UsageError, match=r"is not a run folder: it has no trajectory\.csv"):
        plot_trajectories(["."], None, Path("out"), ("png",))


def test_with_the_robot_that_the_file_names(folder):
    written, warnings = plot_trajectories(["run/trajectory.csv"], None, Path("run/plots"), ("svg",))
    assert [path.as_posix() for path in written.paths] == [
        f"run/plots/{name}.svg" for name in ("motion", "positions", "velocities", "energy")]
    assert warnings == () and not written.failures and all(path.is_file() for path in written.paths)
    assert sorted(path.name for path in (folder / "run").iterdir()) == ["plots", "trajectory.csv"]


def test_without_a_robot_the_columns_are_drawn(folder):
    written, (note,) = plot_trajectories(["motion.csv"], None, Path("out"), ("png",))
    assert [path.name for path in written.paths] == ["positions.png", "velocities.png"]
    assert note.message == (
        "limits and the motion itself are not drawn: motion.csv does not name a robot; give a robot file (--robot or robot=)")


def test_a_robot_that_is_asked_for_must_be_good(folder):
    (folder / "bar.yaml").write_text("links: 3\n")
    with pytest.raises(ModelError):
        plot_trajectories(["motion.csv"], "bar.yaml", Path("out"), ("png",))
    written, (note,) = plot_trajectories(["run/trajectory.csv"], None, Path("out"), ("png",))
    assert len(written.paths) == 2 and "bar.yaml" in str(note)


def test_nothing_to_draw(folder):
    (folder / "other.csv").write_text("t,temperature\n0,1\n")
    with pytest.raises(UsageError, match=r"other\.csv has nothing to plot: no column named q"):
        plot_trajectories(["other.csv"], None, Path("out"), ("png",))
    assert not (folder / "out").exists()


@pytest.mark.parametrize("options, words", [
    (("--joints", "bad"), "bad"), (("--quantities", "bad"), "bad"), (("--from", "9"), "no row from 9 s"),
    (("--until", "-1"), "no row until -1 s"), (("--against", "motion.csv"), "cannot be compared"), (("--robot", "run"), "run"),
    (("--columns", "t=x"), "x"), (("--plane", "xz", "--curve", "bad"), "bad"), (("--width", "900"), "width of a figure"),
    (("run/trajectory.csv", "--joints", "bad"), "bad")])
def test_wrong_arguments_come_before_existing_plots(folder, options, words):
    (folder / "plots").mkdir()
    (folder / "plots/positions.png").touch()
    said = run("plot", "run/trajectory.csv", "-o", "plots", *options)
    assert said.exit_code in (2, 3) and words in said.stderr and "already contains" not in said.stderr, said.stderr
    assert "already contains plots" in run("plot", "run/trajectory.csv", "-o", "plots").stderr


def test_replay_checks_links_before_an_existing_page(folder):
    (folder / "run/replay.html").touch()
    for option in ("--trace", "--follow"):
        assert "bra" in run("replay", "run", option, "bra").stderr
    assert "already exists" in run("replay", "run", "--trace", "bar").stderr


def test_a_warning_about_two_trajectories_is_printed_once(folder):
    (folder / "run/trajectory.csv").write_text("# robot: ../bar.yaml\n# robot_sha256: 0\n" + MOTION)
    assert run("replay", "run", "--against", "run").stderr.count("differs from the robot file") == 1


def test_pictures_are_replaced_only_by_force(folder):
    (folder / "out").mkdir()
    (folder / "out" / "notes.txt").write_text("")
    check_no_plots(Path("out"), ("png",), force=False)
    (folder / "out" / "mine.png").write_text("")
    check_no_plots(Path("out"), ("svg",), force=False)
    check_no_plots(Path("out"), ("png",), force=True)
    with pytest.raises(UsageError, match="out already contains plots; --force overwrites them"):
        check_no_plots(Path("out"), ("png",), force=False)
    with pytest.raises(UsageError, match="is a file: expected a folder"):
        check_no_plots(Path("motion.csv"), ("png",), force=True)
