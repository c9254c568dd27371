"""Random states: from a generator or from a seed."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.errors import ConfigurationError

MODEL = ld.load("robots/asymmetric_body.yaml")


def test_a_seed_gives_the_states_of_its_generator():
    ours, theirs = (ld.random_motion(MODEL, rng, 5) for rng in (7, np.random.default_rng(7)))
    assert all(np.array_equal(x, y) for x, y in zip(ours, theirs, strict=True))
    assert np.array_equal(ld.random_configuration(MODEL, 7, 5), ours[0])
    assert not np.array_equal(ld.random_configuration(MODEL, 8, 5), ours[0])


@pytest.mark.parametrize("rng", [-1, 1.5, "x"])
def test_what_is_neither_is_an_error(rng):
    with pytest.raises(ConfigurationError, match="rng is not a random generator or a seed"):
        ld.random_motion(MODEL, rng)


@pytest.mark.parametrize("seed", [-1, 1.5, True, None])
def test_a_seed_is_an_integer(seed):
    loop, q = ld.load("robots/four_bar.yaml"), [1.2, 0.2, 1.8]
    for call in (lambda: ld.assemble(loop, q, seed=seed), lambda: ld.mobility(loop, q, seed=seed),
                 lambda: ld.base_parameters(MODEL, seed=seed),
                 lambda: ld.inverse_kinematics(MODEL, {"block": [0, 0, 0]}, seed=seed)):
        with pytest.raises(ld.UsageError, match=f"seed: expected an integer >= 0, got {seed}"):
            call()
