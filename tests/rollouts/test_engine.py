"""Clocks of steps, and quaternions that single precision has rounded."""
import numpy as np

from liedyn.rollouts.engine import normalize_quaternions, step_clocks
from zoo import model_of, state


def test_clocks_are_the_times_of_each_step():
    clocks = step_clocks(3, 0.5)
    assert clocks.tolist() == [[0.5, 0.0, 0.25, 0.5], [0.5, 0.5, 0.75, 1.0], [0.5, 1.0, 1.25, 1.5], [0.5, 1.5, 1.75, 2.0]]


def test_only_quaternions_are_normalized():
    model = model_of("every kind, floating")
    q, *_ = state(model, 0, (5,))
    scaled = q.copy()
    for columns in model.quaternions.values():
        scaled[:, columns] *= 1.001
    normalize_quaternions(model, scaled)
    assert model.quaternions and np.abs(scaled - q).max() < 1e-15
