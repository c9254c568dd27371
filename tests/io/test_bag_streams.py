"""Streams of a bag in numbers: order, norms, common times, interpolation, and what is said of irregular times."""
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from liedyn.errors import TrajectoryError
from liedyn.io.bag_streams import (
    BagReport,
    Stream,
    checked_order,
    composed_poses,
    merged_streams,
    sampling_warnings,
    with_unit_norm,
)

SECOND = 10**9


def stream(seconds, name="a", log=None, pose="", **columns):
    stamps, log = (np.round(np.array(x) * 1e9).astype(np.int64) for x in (seconds, seconds if log is None else log))
    return Stream(name, f"/{name}", stamps, log, {key: np.array(x, dtype=float) for key, x in columns.items()}, pose)


def report():
    return BagReport("bag")


def codes(warnings):
    return [warning.code for warning in warnings]


def test_repeated_messages_are_read_once_and_others_of_one_time_are_errors():
    x, said = stream([0, 1, 1, 2], q=[1, 2, 2, np.nan]), report()
    assert np.array_equal(checked_order(x, said).columns["q"], [1, 2, np.nan], equal_nan=True)
    assert codes(said.warnings) == ["repeated-messages"] and "of a are not read: 1" in str(said.warnings[0])
    with pytest.raises(TrajectoryError, match="message 3 of a: two different messages have the same time"):
        checked_order(stream([0, 1, 1, 2], q=[1, 2, 3, 4]), report())
    with pytest.raises(TrajectoryError, match="time stamps decrease"):
        checked_order(stream([0, 2, 1], q=[1, 2, 3]), report())


@pytest.mark.parametrize("norm, said", [(1.0, []), (1.0 + 5e-4, ["quaternion-scaled"])])
def test_quaternions_are_scaled_where_they_are_near_unit_norm(norm, said):
    q = norm * np.array([0.0, 0.6, 0.0, 0.8])
    pose = stream([0.0], pose="base", **dict(zip(("base.qx", "base.qy", "base.qz", "base.qw"), q[:, None], strict=True)))
    messages = report()
    result = with_unit_norm(pose, messages)
    assert codes(messages.warnings) == said
    assert np.linalg.norm([result.columns[f"base.{part}"] for part in ("qx", "qy", "qz", "qw")]) == pytest.approx(1.0, abs=1e-15)


def test_a_quaternion_far_from_unit_norm_is_an_error():
    with pytest.raises(TrajectoryError, match=r"message 1 of a: an orientation is not of unit norm: expected 1, got '\|q\| = 2'"):
        with_unit_norm(stream([0.0], pose="b", **{"b.qx": [2.0], "b.qy": [0.0], "b.qz": [0.0], "b.qw": [0.0]}), report())


def test_streams_of_equal_times_are_joined_in_their_common_interval():
    said = report()
    times, columns = merged_streams([stream([0, 1, 2, 3], x=[0, 1, 2, 3]), stream([1, 2, 3, 4], "b", y=[5, 6, 7, 8])], said,
                                    interpolate=False)
    assert np.array_equal(times, np.array([1, 2, 3]) * SECOND)
    assert columns["x"].tolist() == [1, 2, 3] and columns["y"].tolist() == [5, 6, 7]
    assert codes(said.warnings) == ["rows-omitted"] and str(said.warnings[0]).count("2") >= 1
    times, columns = merged_streams([stream([0, 1], x=[0, 1]), stream([1, 2], "b", y=[5, 6])], report(), interpolate=False)
    assert times.tolist() == [SECOND] and (columns["x"].tolist(), columns["y"].tolist()) == ([1.0], [5.0])
    with pytest.raises(TrajectoryError, match="no common time interval"):
        merged_streams([stream([0, 1], x=[0, 1]), stream([2, 3], "b", y=[0, 1])], report(), interpolate=True)
    with pytest.raises(TrajectoryError, match="messages have different times"):
        merged_streams([stream([0, 1], x=[0, 1]), stream([0, 0.5, 1], "b", y=[0, 1, 2])], report(), interpolate=False)


def test_other_times_are_interpolated_without_turns_and_along_rotations():
    turning = stream([0, 1, 2], "b", **{"q.j": [3.0, 3.2 - 2 * np.pi, 3.4 - 2 * np.pi]})
    half = Rotation.from_rotvec([[0, 0, 0], [0, 0, 1.0], [0, 0, 2.0]]).as_quat()
    pose = stream([0, 1, 2], "c", pose="p", **{f"p.{part}": half[:, k] for k, part in enumerate(("qx", "qy", "qz", "qw"))})
    said = report()
    _, columns = merged_streams([stream([0.5, 1.5], x=[0, 1]), turning, pose], said, interpolate=True)
    np.testing.assert_allclose(columns["q.j"], [3.1, 3.3])
    angles = Rotation.from_quat(np.column_stack([columns[f"p.{part}"] for part in ("qx", "qy", "qz", "qw")])).as_rotvec()
    np.testing.assert_allclose(angles, [[0, 0, 0.5], [0, 0, 1.5]], atol=1e-15)
    assert {"interpolated", "angles-unwrapped"} <= set(codes(said.warnings))


def test_composed_poses_are_products_of_matrices():
    rng = np.random.default_rng(0)
    poses = [np.hstack([rng.standard_normal((4, 3)), Rotation.random(4, random_state=k).as_quat()]) for k in range(3)]

    def matrix(pose):
        T = np.eye(4)
        T[:3, :3], T[:3, 3] = Rotation.from_quat(pose[3:]).as_matrix(), pose[:3]
        return T
    for row, *parts in zip(composed_poses(poses), *poses, strict=True):
        np.testing.assert_allclose(matrix(row), np.linalg.multi_dot([matrix(part) for part in parts]), atol=1e-14)


REGULAR = np.arange(20) * 0.1


@pytest.mark.parametrize("seconds, log, expected", [
    (REGULAR, REGULAR, []),
    (np.delete(REGULAR, 7), np.delete(REGULAR, 7), ["time-gaps"]),
    (REGULAR + np.where(REGULAR > 1.0, 5.0, 0.0), REGULAR, ["clock-jump"]),
    (REGULAR + np.where(REGULAR > 1.0, 5.0, 0.0), REGULAR + np.where(REGULAR > 1.0, 3.0, 0.0), ["time-gaps"]),
    (REGULAR + 0.02 * (np.arange(20) % 2), REGULAR, ["time-jitter"]),
    (REGULAR[:4], REGULAR[:4], [])])
def test_irregular_times_have_warnings(seconds, log, expected):
    assert codes(sampling_warnings(stream(seconds, log=log), 0, "bag")) == expected
