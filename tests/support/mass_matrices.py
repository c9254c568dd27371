"""Models and masks for tests of what is made of the mass matrix, and where it holds more than zeros."""
import numpy as np
import pytest

import liedyn as ld
from zoo import ROBOTS, model_of, random_robot

FOREST = ld.build(random_robot(21, 12, grounded=True))              # four trees on one ground
MODELS = [*ROBOTS, "forest"]
EVERY = pytest.mark.parametrize("name", MODELS)


def robot(name):
    return FOREST if name == "forest" else model_of(name)


def masks(model):
    rng = np.random.default_rng(1)
    nv = model.nv
    return np.zeros(nv, bool), np.ones(nv, bool), rng.random(nv) < 0.5, rng.random(nv) < 0.2, np.arange(nv) == nv - 1


def on_way(model):
    """Return whether one coordinate moves the other, from `last`: (nv, nv)."""
    k = np.arange(model.nv)
    below = (k[:, None] >= k) & (k[:, None] <= model.paths[2])
    return below | below.T


def together(model):
    return model.paths[1][:, None] == model.paths[1]
