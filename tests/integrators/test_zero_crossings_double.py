"""Readings that leave their side within a step and come back."""
import numpy as np
import pytest

from liedyn.integrators.zero_crossings import first_double_crossing


class Step:
    """y(share): readings of events along a step, positive on their sides."""

    def __init__(self, *y):
        self.y, self.looks = y, 0

    def excess(self, share):
        self.at, self.looks = np.array([y(share) for y in self.y]), self.looks + 1
        return -self.at.min()

    def beyond(self, parts=4):
        return first_double_crossing(self.excess, lambda: self.at, parts)


@pytest.mark.parametrize("depth", [1e-1, 1e-3, 1e-6, 1e-9])
def test_a_shallow_dip_anywhere_in_a_step_is_found(depth, worst):
    """The curve is not a parabola. The time between its roots is about the root of the depth."""
    rng = np.random.default_rng(6)
    for _ in range(200):
        place, bent, skew = rng.uniform(0.02, 0.98), rng.uniform(0.5, 2), rng.uniform(-0.5, 0.5)

        def y(x, depth=depth, place=place, bent=bent, skew=skew):
            d = x - place
            return bent * d**2 * (1 + skew * d + 0.3 * d**2) - depth
        if min(y(0.0), y(1.0)) <= 0.0:                        # no dip, but an end beyond
            continue
        step = Step(y)
        found = step.beyond()
        assert found is not None and y(found) < 0.0
        assert worst("looks for a dip", step.looks) < 25            # those near its ends are looked at again in parts
        up = Step(lambda x, y=y, depth=depth: y(x) + 2 * depth)
        assert up.beyond() is None                            # as far on this side


def test_the_first_of_several_is_found():
    """One event has a dip before another is beyond its value at the end; one has three roots in a step."""
    one, other = (lambda x: (x - 0.3)**2 - 1e-4), (lambda x: 0.9 - x)
    assert 0.29 < Step(other, one).beyond() < 0.31
    three = Step(lambda x: -(x - 0.11) * (x - 0.14) * (x - 0.8))
    assert 0.11 < three.beyond() < 0.14


@pytest.mark.parametrize("y", [lambda x: 1e-3 + x, lambda x: 1.0 - 0.999 * x, lambda x: 0.02 + (x - 0.5)**2,
                               lambda x: 1 - 0.9 * np.sin(3 * x), lambda x: 0 * x + 1e-17], ids=range(5))
def test_where_nothing_is_beyond_it_is_soon_known(y):
    step = Step(y)
    assert step.beyond() is None and step.looks <= 7


def test_what_begins_at_zero_is_not_beyond_there():
    """After an event, its value is a rounding on the wrong side."""
    assert Step(lambda x: x - 1e-17).beyond() is None
    assert Step(lambda x: x * (x - 0.4)).beyond() <= 0.4


def test_what_is_infinitely_far_is_passed_over(recwarn):
    """The time since an event that has not occurred is infinite."""
    step = Step(lambda x: np.inf, lambda x: (x - 0.4)**2 - 1e-6)
    assert abs(step.beyond() - 0.4) < 1e-3 and not recwarn.list
