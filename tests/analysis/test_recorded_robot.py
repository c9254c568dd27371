"""Which robot a trajectory file is of."""
import hashlib
from pathlib import Path

import pytest

import liedyn as ld
from liedyn.analysis.recorded_robot import as_recorded, comments_for, converted, robot_of
from liedyn.errors import CheckFailed, ModelError, TrajectoryError, UsageError
from liedyn.io.trajectory_csv import read_trajectory
from liedyn.robot_files import read_model
from messages import has_parts

ROBOTS = Path(__file__).parents[2] / "robots"
ROBOT = """
links: {bar: {mass: 1, inertia: [1, 1, 1]}}
joints: {hinge: {type: revolute, parent: world, child: bar, axis: [0, 1, 0]}}
"""


@pytest.fixture
def recorded(tmp_path):
    (tmp_path / "robots").mkdir()
    (tmp_path / "robots" / "bar.yaml").write_text(ROBOT)
    (tmp_path / "runs").mkdir()

    def recorded(*comments):
        path = tmp_path / "runs" / "motion.csv"
        path.write_text("".join(f"# {comment}\n" for comment in comments) + "t,q.hinge\n0,0\n")
        return read_trajectory(path)
    return recorded


def test_the_comment_is_relative_to_the_trajectory(recorded):
    model, warnings = robot_of(recorded("robot: ../robots/bar.yaml"))
    assert model.name == "bar" and warnings == ()


def test_an_argument_comes_first(recorded, tmp_path):
    (tmp_path / "other.yaml").write_text("name: other\n" + ROBOT)
    model, _ = robot_of(recorded("robot: none.yaml"), tmp_path / "other.yaml")
    assert model.name == "other"


@pytest.mark.parametrize("gravity", ["0 0 -1.62", "[0, 0, -1.62]", "0.0, 0.0, -1.62"])
def test_gravity_of_the_recording(recorded, gravity):
    model, _ = robot_of(recorded("robot: ../robots/bar.yaml", f"gravity: {gravity}"))
    assert model.gravity.tolist() == [0, 0, -1.62]


def test_base_of_the_recording_and_of_the_argument(recorded):
    comments = ("robot: ../robots/bar.yaml", "base: fixed")
    assert robot_of(recorded(*comments))[0].base == "fixed"
    with pytest.raises(ModelError):                                   # a link on a hinge cannot float
        robot_of(recorded(*comments), base="floating")


MIMIC = """
links: {base: {}, left: {mass: 1}, right: {mass: 2}}
joints:
  driver: {type: prismatic, parent: base, child: left, axis: [1, 0, 0]}
  follower: {type: prismatic, parent: base, child: right, axis: [1, 0, 0], mimic: {joint: driver}}
"""


@pytest.mark.parametrize("edits", [(), ("links.left.mass=3",)])
def test_ignored_mimic_joints_are_ignored_in_edited_robots_too(recorded, tmp_path, edits):
    """A batch over keys of the robot obeyed mimic joints that the recording, or an option, left out."""
    (tmp_path / "robots" / "bar.yaml").write_text(MIMIC)
    comment = "robot: ../robots/bar.yaml"
    assert robot_of(recorded(comment), edits=edits)[0].independent == ("driver",)
    both = ("driver", "follower")
    assert robot_of(recorded(comment, "mimic: ignored"), edits=edits)[0].independent == both
    model, _ = robot_of(recorded(comment), ignore_mimic=True, edits=edits)
    assert model.independent == both and model.description.links[1].mass == (3 if edits else 1)


def test_a_model_for_a_recording_that_ignores_mimic_joints(recorded, tmp_path):
    """`identify` used the couplings of its model."""
    (tmp_path / "bar.yaml").write_text(MIMIC)
    model = read_model(tmp_path / "bar.yaml")
    free, warnings = as_recorded(model, recorded("mimic: ignored"))
    assert free.independent == ("driver", "follower") and [warning.code for warning in warnings] == ["mimic-ignored"]
    assert as_recorded(free, recorded("mimic: ignored")) == (free, ()) and as_recorded(model, recorded()) == (model, ())


def test_a_changed_robot_is_noted(recorded):
    same = hashlib.sha256(ROBOT.encode()).hexdigest()
    assert robot_of(recorded("robot: ../robots/bar.yaml", f"robot_sha256: {same}"))[1] == ()
    _, (note,) = robot_of(recorded("robot: ../robots/bar.yaml", "robot_sha256: 0"))
    assert "bar.yaml differs from the robot file that" in note.message and note.message.endswith("motion.csv was recorded with")


@pytest.mark.parametrize("comments, error, words", [
    ((), UsageError, "motion.csv does not name a robot; give a robot file (--robot or robot=)"),
    (("robot: none.yaml",), TrajectoryError, "# robot: the robot file does not exist … got 'none.yaml'"),
    (("robot: ../robots/bar.yaml", "base: flying"), TrajectoryError,
     "# base: unknown kind of base: expected fixed or floating, got 'flying'"),
    (("robot: ../robots/bar.yaml", "gravity: down"), TrajectoryError,
     "# gravity: invalid gravity: expected three numbers, got 'down'"),
    (("robot: ../robots/bar.yaml", "gravity: 0 0"), TrajectoryError, "expected three numbers"),
    (("robot: ../robots/bar.yaml", "gravity: 0 0 nan"), TrajectoryError, "expected three numbers"),
    *((("robot: ../robots/bar.yaml", f"mimic: {text}"), TrajectoryError,
       f"# mimic: expected ignored, got '{text}' (delete the comment to obey mimic joints and couplings)")
      for text in ("Ignored", "no")),
])
def test_comments_that_cannot_be_used(recorded, comments, error, words):
    with pytest.raises(error) as caught:
        robot_of(recorded(*comments))
    assert has_parts(str(caught.value), words)


def test_strict_refuses_findings(recorded):
    with pytest.raises(CheckFailed, match="limits-missing"):
        robot_of(recorded("robot: ../robots/bar.yaml"), strict=True)


@pytest.mark.parametrize("output, expected", [("runs/out.csv", "../robots/bar.yaml"), ("out.csv", "robots/bar.yaml"),
                                              ("-", "robots/bar.yaml")])
def test_the_robot_is_named_from_where_the_result_stands(recorded, tmp_path, monkeypatch, output, expected):
    monkeypatch.chdir(tmp_path)
    model, _ = robot_of(recorded("robot: ../robots/bar.yaml"))
    assert comments_for({"base": "fixed", "robot": "elsewhere"}, model, output) == {"robot": expected, "base": "fixed"}


def test_a_converted_file_has_columns_in_the_order_of_the_robot(tmp_path):
    """Joints were in the order of the file. Kinds and other columns keep that order."""
    titles = "t,v.elbow,q.elbow,fext.lower.fx,q.shoulder,v.shoulder,tau.elbow"
    (tmp_path / "log.csv").write_text(f"{titles}\n0,1,2,3,4,5,6\n1,1,2,3,4,5,6\n")
    trajectory, _ = converted(str(tmp_path / "log.csv"), str(tmp_path / "new.csv"), str(ROBOTS / "double_pendulum.yaml"))
    expected = {"v.shoulder": 5, "v.elbow": 1, "q.shoulder": 4, "q.elbow": 2, "fext.lower.fx": 3, "tau.elbow": 6}
    assert {name: column[0] for name, column in trajectory.columns.items()} == expected
    assert list(trajectory.columns) == list(expected)


@pytest.mark.parametrize("titles, mapped, error", [
    ("time,q.shoulder,q.elbow", "t=time", r"there is no column `t`.*\(--columns \(or columns=\) t=time reads the column time"),
    ("t,shoulder,elbow", "q.*=*", r"no columns of the positions.*--columns \(or columns=\) 'q\.\*=\*' reads"),
    ("t,q_shoulder,q_elbow", "q.*=q_*", r"no columns of the positions.*--columns \(or columns=\) 'q\.\*=q_\*' reads")])
def test_columns_of_other_names_have_a_hint_that_reads_them(tmp_path, titles, mapped, error):
    (tmp_path / "log.csv").write_text(f"{titles}\n" + "".join(f"{k},{k},{2 * k}\n" for k in range(9)))
    model = ld.load(ROBOTS / "double_pendulum.yaml")
    with pytest.raises(TrajectoryError, match=error):
        ld.motion_of(model, ld.read_trajectory(tmp_path / "log.csv"))
    motion = ld.motion_of(model, ld.read_trajectory(tmp_path / "log.csv", columns=mapped))
    assert motion.q[-1].tolist() == [8, 16]
