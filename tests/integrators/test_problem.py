"""Statistics of the segments of a run, combined."""
from dataclasses import astuple

import numpy as np
import pytest

from liedyn.integrators.problem import LoopStatistics

FIRST = LoopStatistics(1e-9, 3e-8, 2, 0.5, 4, 3, 0.6)
SECOND = LoopStatistics(2e-9, 1e-8, 1, 1.5, 5, 2, 1.6)
REGULAR = LoopStatistics(3e-9, 4e-8)


@pytest.mark.parametrize("first, second, expected", [
    (FIRST, SECOND, LoopStatistics(2e-9, 3e-8, 3, 0.5, 4, 5, 0.6)),
    (REGULAR, SECOND, LoopStatistics(3e-9, 4e-8, 1, 1.5, 5, 2, 1.6)),
    (FIRST, REGULAR, LoopStatistics(3e-9, 4e-8, 2, 0.5, 4, 3, 0.6)),
    (REGULAR, REGULAR, REGULAR)])
def test_statistics_of_two_segments(first, second, expected):
    """Maximum drifts, sums of counts, and the first singular configuration and output."""
    np.testing.assert_array_equal(astuple(first.combine(second)), astuple(expected))
