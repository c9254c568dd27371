"""Characteristic lengths of loops: by hand, and at any position."""
import numpy as np
import pytest

import liedyn as ld
from degenerate_mechanisms import CASES, PLACES, moved

# the longest of: ground, bars; rod; table's centre from its axis, since the loop has no lever arms; radius of gyration
LENGTHS = {"parallelogram": 2.0, "slider-crank": 1.0, "coaxial, weld": 1.0, "five-bar": 0.6, "spherical, 0": np.sqrt(0.38),
           "Cardan joint, 0.1 rad": np.sqrt(0.023 / 2)}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", LENGTHS)
def test_lengths_move_with_the_world_and_scale_with_the_unit(name, place):
    (constraint,) = ld.build(moved(CASES[name].robot, PLACES[place])).constraints
    assert constraint.length == pytest.approx(LENGTHS[name] * PLACES[place].unit, rel=1e-12)
