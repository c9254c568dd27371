"""Configurations from values of joints, and neutral ones within limits, also of the joints that follow."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.dynamics.joint_values import neutral_within_limits, with_joint_values
from zoo import model_of

INF = np.inf


def arm(a=(-INF, INF), b=(-INF, INF), mimic=None):
    """Return a robot of two revolute joints with limits."""
    links = [ld.Link(name, mass=1.0, inertia=(1, 1, 1)) for name in ("la", "lb")]
    joints = [ld.Joint("a", "revolute", "world", "la", axis=(0, 0, 1), limits=a),
              ld.Joint("b", "revolute", "la", "lb", axis=(0, 0, 1), limits=b, mimic=mimic)]
    return ld.build(ld.Robot("r", links, joints))


def test_values_replace_those_of_their_joints():
    model = model_of("every kind, floating")
    q = model.neutral()
    ball = next(joint for joint in model.joints if joint.q.stop - joint.q.start == 4)
    result = with_joint_values(model, q, {ball.name: [0.6, 0.0, 0.0, 0.8]}, "q")
    assert np.array_equal(result[ball.q], [0.6, 0.0, 0.0, 0.8]) and np.array_equal(q, model.neutral())
    assert np.array_equal(np.delete(result, ball.q), np.delete(q, ball.q))


@pytest.mark.parametrize("values, error, text", [
    ({"c": 1.0}, ld.NameLookupError, "guess: no moving joint 'c'"), ({"a": [1.0, 2.0]}, ld.ShapeError, r"guess\['a'\]"),
    ({"a": np.nan}, ld.ConfigurationError, "guess")])
def test_values_that_do_not_fit_are_errors(values, error, text):
    model = arm()
    with pytest.raises(error, match=text):
        with_joint_values(model, model.neutral(), values, "guess")


@pytest.mark.parametrize("lower, upper, q", [(-1.0, 1.0, 0.0), (0.5, 1.5, 1.0), (-3.0, -1.0, -2.0), (0.5, INF, 0.5),
                                             (-INF, -0.5, -0.5), (-INF, INF, 0.0)])
def test_limits_that_exclude_zero_move_the_neutral_configuration(lower, upper, q):
    assert neutral_within_limits(arm((lower, upper)))[0] == q
    assert neutral_within_limits(arm((lower, upper)), {"a"})[0] == 0.0


def test_a_driver_is_within_the_limits_of_its_follower():
    model = arm(mimic=ld.Mimic("a", 2.0, 1.0), b=(3.0, 5.0))
    q = neutral_within_limits(model)
    assert q[0] == 1.5                                # 3 <= 2 a + 1 <= 5
