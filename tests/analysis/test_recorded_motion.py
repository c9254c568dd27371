"""Trajectories of arrays, saved and read back, and a Trajectory as people handle it."""
import os
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from zoo import model_of, state

ROOT = Path(__file__).parents[2]
EVERY = "every kind, floating"


def moving(name=EVERY, rows=9):
    """Return t, q, v, a, tau of a motion with a constant twist."""
    model = model_of(name)
    q, v, _, tau = state(model, 1)
    t = 0.01 * np.arange(rows)
    return model, t, ld.integrate(model, q, t[:, None] * v), np.tile(v, (rows, 1)), np.tile(tau, (rows, 1))


def test_arrays_go_to_a_file_and_back(tmp_path):
    """Every kind of joint and wrenches on links are written and read without any rounding."""
    model, t, q, v, tau = moving()
    f_ext = {model.link_names[2]: np.outer(t, [1.0, 2, 3, 4, 5, 6])}
    made = ld.trajectory_of(model, t, q, v, 0 * v, tau, f_ext=f_ext, passive=False)
    made.save(tmp_path / "motion.csv")
    read = ld.read_trajectory(tmp_path / "motion.csv")
    back = ld.motion_of(model, read)
    for name, expected in zip(("t", "q", "v", "a", "tau"), (t, q, v, 0 * v, tau), strict=True):
        np.testing.assert_array_equal(getattr(back, name), expected)
    np.testing.assert_array_equal(back.f_ext[:, 2], f_ext[model.link_names[2]])
    assert np.count_nonzero(back.f_ext.any(axis=(0, 2))) == 1
    assert read.header["passive"] == "false" and read.units == made.units
    assert sum(name.startswith("fext.") for name in read.columns) == 6


def test_what_is_missing_is_derived_or_none():
    """The twist of each joint is constant: polynomials through seven rows find it to their rounding, 1e-16 / 0.01."""
    model, t, q, v, _ = moving("revolute")
    made = ld.trajectory_of(model, t, q)
    derived = ld.motion_of(model, made)
    np.testing.assert_allclose(derived.v, v, atol=1e-11)
    np.testing.assert_allclose(derived.a, 0, atol=1e-8)
    assert derived.tau is None and derived.f_ext is None
    half = ld.motion_of(model, ld.trajectory_of(model, t, q, 2 * v))
    np.testing.assert_array_equal(half.v, 2 * v)                                # what the file has is kept
    np.testing.assert_allclose(half.a, 0, atol=1e-11)


def test_a_motion_is_not_derived_across_an_event():
    """Two rows have the same time, where the velocity jumps."""
    model, t, q, *_ = moving("revolute")
    columns = ld.trajectory_of(model, t, q).columns
    twice = np.repeat(np.arange(9), [1, 1, 1, 1, 2, 1, 1, 1, 1])
    jumped = ld.Trajectory({"events": "1"}, t[twice], {name: x[twice] for name, x in columns.items()}, {})
    with pytest.raises(ld.TrajectoryError, match="cannot be derived across it"):
        ld.motion_of(model, jumped)


def test_paths_in_comments_follow_the_file(tmp_path):
    """A trajectory that is read from one folder and saved in another still names its robot."""
    model = ld.load(ROOT / "robots/double_pendulum.yaml")
    made = ld.trajectory_of(model, [0.0, 0.1], np.zeros((2, 2)))
    (tmp_path / "a/b").mkdir(parents=True)
    made.save(tmp_path / "a/b/one.csv")
    ld.read_trajectory(tmp_path / "a/b/one.csv").save(tmp_path / "two.csv")
    for path in (tmp_path / "a/b/one.csv", tmp_path / "two.csv"):
        named = ld.read_trajectory(path).header["robot"]
        assert not os.path.isabs(named) and (path.parent / named).samefile(ROOT / "robots/double_pendulum.yaml")


def test_an_existing_file_is_kept(tmp_path):
    model, t, q, *_ = moving("revolute")
    made = ld.trajectory_of(model, t, q)
    made.save(tmp_path / "motion.csv")
    with pytest.raises(ld.UsageError, match="exists"):
        made.save(tmp_path / "motion.csv")
    made.save(tmp_path / "motion.csv", force=True)
    with pytest.raises(ld.ComputationError, match=r"q.* is nan at t = 0.0 s: nothing is written"):
        ld.Trajectory({}, t, {"q.x": np.nan * t}, {}).save(tmp_path / "nan.csv")
    assert not (tmp_path / "nan.csv").exists()


def test_a_trajectory_as_a_data_frame_and_in_a_line():
    import pandas
    model, t, q, v, _ = moving("revolute")
    made = ld.trajectory_of(model, t, q, v)
    frame = made.to_pandas()
    assert frame.index.name == "t[s]" and frame.columns[0] == f"q.{model.q_names[0]}[rad]" and len(made) == 9
    pandas.testing.assert_series_equal(frame.iloc[:, 0], pandas.Series(q[:, 0], index=frame.index), check_names=False)
    assert repr(made) == "<Trajectory of arrays: 9 rows, t = 0 to 0.08 s; columns q 3, v 3>"


@pytest.mark.parametrize("change, error, message", [
    ({"q": np.zeros((9, 2))}, ld.ShapeError, r"q has the wrong shape: expected \(…, 9, 3\), got \(9, 2\)"),
    ({"t": np.zeros(9)}, ld.ConfigurationError, r"the times do not increase: t\[1\] is 0.0"),
    ({"t": np.zeros((9, 1))}, ld.ShapeError, "t has the wrong shape"),
    ({"v": np.full((9, 3), np.inf)}, ld.ConfigurationError, r"v\[0\] \(.*\) of row 0 is not finite: got inf"),
    ({"f_ext": {"nothing": np.zeros((9, 6))}}, ld.NameLookupError, "no link 'nothing'"),
])
def test_wrong_arrays_are_refused(change, error, message):
    model, t, q, *_ = moving("revolute")
    given = {"t": t, "q": q} | change
    with pytest.raises(error, match=message):
        ld.trajectory_of(model, given.pop("t"), given.pop("q"), **given)


def test_wrong_quaternions_and_files_are_refused(tmp_path):
    model, t, q, *_ = moving("ball")
    with pytest.raises(ld.ConfigurationError, match=r"not of unit norm in row 0: \|q\| = 2"):
        ld.trajectory_of(model, t, 2 * q)
    made = ld.trajectory_of(model, t, q)
    with pytest.raises(ld.TrajectoryError, match="no column belongs to a joint of the robot"):
        ld.motion_of(model, ld.Trajectory({}, t, {"q.other": t}, {}))
    with pytest.raises(ld.TrajectoryError, match=f"q.{model.q_names[0]}: wrong unit: expected none, got 'deg'"):
        ld.motion_of(model, ld.Trajectory({}, t, made.columns, {f"q.{model.q_names[0]}": "deg"}))
    with pytest.raises(ld.TrajectoryError, match=r"nothing.csv"):
        ld.motion_of(model, tmp_path / "nothing.csv")
