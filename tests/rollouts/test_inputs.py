"""Arguments of rollouts as arrays: series of steps, masks, and axes that could mean two things."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.rollouts.inputs import Argument, _check_not_both, _masks, _steps_of_series
from zoo import model_of


def test_a_constant_series_is_that_of_each_step():
    x = np.arange(24.0).reshape(2, 4, 3)
    assert np.array_equal(_steps_of_series(x, 1, 3), x[:, 1:3])
    assert _steps_of_series(x[:, :1], 1, 3).shape == (2, 1, 3)


def test_masks_have_a_row_for_all_steps_or_for_each():
    model = model_of("universal")
    mask = np.arange(model.nv) % 2 == 0
    assert not _masks(model, None, 5).any() and _masks(model, None, 5).shape == (1, model.nv)
    assert np.array_equal(_masks(model, mask, 5), mask[None])
    assert _masks(model, np.tile(mask, (5, 1)), 5).shape == (5, model.nv)
    with pytest.raises(ld.UsageError, match=r"expected booleans .*, got int64"):
        _masks(model, mask.astype(np.int64), 5)
    with pytest.raises(ld.ShapeError, match=rf"expected \({model.nv},\) or \(5, {model.nv}\), got \(4, {model.nv}\)"):
        _masks(model, np.tile(mask, (4, 1)), 5)


@pytest.mark.parametrize("name, shape, allowed", [
    ("feedback.gain", (4, 2, 4), False), ("feedback.gain", (1, 4, 2, 4), True), ("feedback.gain", (2, 4), True),
    ("feedback.gain", (3, 2, 4), True), ("feedback.setpoint_q", (4, 2), False), ("feedback.setpoint_q", (1, 4, 2), True)])
def test_an_axis_of_runs_or_of_steps_is_an_error(name, shape, allowed):
    argument = Argument(name, np.zeros(shape), 1, ())
    if allowed:
        _check_not_both(argument, (4,), 4)
        return
    with pytest.raises(ld.ShapeError, match="for each run or for each step, as there are 4 of both"):
        _check_not_both(argument, (4,), 4)
    _check_not_both(argument, (4,), 3)
    _check_not_both(argument, (5,), 4)


def test_gains_of_pd_feedback_are_diagonal():
    feedback = ld.Feedback.pd([1.0, 2.0], 3.0, [0.1, 0.2])
    assert np.array_equal(feedback.gain, np.hstack([np.diag([1.0, 2.0]), np.diag([3.0, 3.0])]))
    assert np.array_equal(feedback.setpoint_q, [0.1, 0.2])
