"""Which events happen, and the signs of their expressions afterwards: the rules that single runs and rollouts share."""
import itertools

import numpy as np
import pytest

from liedyn.codegen.batch_step import event_code
from liedyn.integrators.problem import NO_DIRECTION
from liedyn.integrators.zero_crossings import (
    EventSigns,
    comes_to_rest,
    crossed,
    crossing_direction,
    find_crossings,
    is_arriving,
    is_expected,
    signs_after_event,
    violation,
)
from liedyn.kernels.simulation.right_hand_side import AT_EVENT, RUNNING

BOUND = 1e-14
VALUES = -1.0, -BOUND, -BOUND / 4, 0.0, BOUND / 4, BOUND, 1.0


@pytest.mark.parametrize("direction", [-1, 0, 1])
def test_generated_steps_find_the_events_of_single_runs(direction):
    for sign, value in itertools.product((-1.0, 1.0, 0.0, np.nan), VALUES):
        found = event_code(sign, value, direction, float(RUNNING)) == AT_EVENT
        assert found == crossed(sign, value, direction), (sign, value)


def test_zero_is_beyond_where_an_event_is_armed():
    sign, value = np.meshgrid([-1.0, 1.0], VALUES)
    assert np.array_equal(violation(sign, value) > 0.0, sign * value <= 0.0)
    assert np.array_equal(violation(sign, value, False, BOUND) > 0.0, sign * value < -BOUND)
    assert violation(sign, value, value > 0.0, BOUND).all()


def test_events_wait_for_their_direction():
    assert is_expected(np.array([1.0, -1.0, 0.0, np.nan, 2.0]), 0).tolist() == [True, True, False, False, False]
    assert is_expected(-1.0, 1) and is_expected(1.0, -1) and not is_expected(1.0, 1) and not is_expected(-1.0, NO_DIRECTION)


# sign, armed, bound before, triggered, value, rate, curvature; sign, armed, leaves after
CASES = {
    "a jump beyond zero": (1.0, True, 0.0, False, -0.5, np.nan, np.nan, -1.0, True, False),
    "an impact": (1.0, True, 0.0, True, -BOUND / 4, 3.0, -9.81, 1.0, False, True),
    "an event on its way": (1.0, True, 0.0, True, 0.0, -3.0, 0.0, -1.0, False, True),
    "at rest, pushed back": (1.0, True, 0.0, True, 0.0, 0.0, -9.81, -1.0, False, True),
    "at rest for good": (1.0, True, 0.0, True, 0.0, 0.0, 0.0, 0.0, False, True),
    "reached, not triggered yet": (1.0, True, 0.0, False, -BOUND / 4, -3.0, 0.0, -1.0, False, True),
    "near, on its side": (1.0, True, 0.0, False, BOUND / 4, -3.0, 0.0, 1.0, True, False),
    "disarmed, still near": (1.0, False, 0.0, False, -BOUND / 4, -3.0, 0.0, 1.0, False, False),
    "disarmed, found far beyond": (1.0, False, 1e-9, False, -1e-10, -3.0, 0.0, 1.0, False, False),
    "not known, at zero": (np.nan, True, 0.0, False, 0.0, 2.0, 0.0, 1.0, False, True),
    "not known, beyond": (np.nan, True, 0.0, False, 0.2, np.nan, np.nan, 1.0, True, False),
}


@pytest.mark.parametrize("name", CASES)
def test_signs_after_an_event(name):
    sign, armed, bound, triggered, value, rate, curvature, *expected = CASES[name]
    after, leaves = signs_after_event(EventSigns(sign, armed, bound), value, rate, curvature, BOUND, triggered)
    assert [float(after.sign), bool(after.armed), bool(leaves)] == expected


def test_signs_of_many_runs_are_those_of_each():
    columns = [np.array(column) for column in zip(*CASES.values(), strict=True)]
    sign, armed, bound, triggered, value, rate, curvature, *expected = (np.stack([x, x[::-1]]) for x in columns)
    after, leaves = signs_after_event(EventSigns(sign, armed, bound), value, rate, curvature, BOUND, triggered)
    for found, x in zip((after.sign, after.armed, leaves), expected, strict=True):
        assert np.array_equal(found, x)


def test_a_run_begins_at_zero_within_the_rounding_of_another_run():
    unknown = EventSigns(np.nan, True, 0.0)
    after, leaves = signs_after_event(unknown, -4 * BOUND, 2.0, 0.0, BOUND, False, at_start=True)       # its event is ahead
    assert after.sign == -1.0 and after.armed and not leaves
    after, leaves = signs_after_event(unknown, -4 * BOUND, -2.0, 0.0, BOUND, False, at_start=True)
    assert after.sign == -1.0 and not after.armed and leaves and after.bound == 8 * BOUND


@pytest.mark.parametrize("turned, rate, curvature, rests", [
    (True, 1.0, -9.81, False),                                 # a bounce
    (True, 1e-9, -9.81, True),                                 # a bounce that is lower than the rounding
    (False, -1.0, 0.0, False),                                 # it passes
    (False, -1e-9, -9.81, True),                               # it lies there, and is pressed on
    (False, -1e-9, 9.81, True),
    (True, 0.0, 0.0, True),
    (True, 1.0, 2.0, False)])                                  # it leaves for good
def test_what_comes_to_rest_after_an_impact(turned, rate, curvature, rests):
    assert comes_to_rest(turned, rate, curvature, 1e-14, 10.0) == rests


def test_what_arrives_at_zero_crosses_it():
    armed, disarmed = (EventSigns(1.0, yes, BOUND) for yes in (True, False))
    assert is_arriving(armed, -1.0, 0.0, 0.1) and is_arriving(disarmed, -1.0, 0.0, 0.1)
    assert not is_arriving(armed, 1.0, 0.0, 0.1) and not is_arriving(EventSigns(np.nan, True, BOUND), 1.0, 0.0, 0.1)
    assert is_arriving(armed, -1e-9, 0.0, 1e-9) and not is_arriving(disarmed, -1e-9, 0.0, 1e-9)        # it has not left zero
    assert not is_arriving(armed, -1e-9, 9.81, 0.1)                                   # it turns round within its rounding


def test_the_direction_of_a_crossing():
    assert crossing_direction(np.array([1.0, -1.0, 1.0]), np.array([0, 0, 1])).tolist() == [-1.0, 1.0, 1.0]


def test_the_moment_is_found_to_rounding():
    roots = np.array([1e-9, 0.1, 1 / 3, 0.5, 1 - 1e-12, 0.7])
    for power in (1, 3):
        found = find_crossings(lambda x, power=power: (roots - x) ** power, np.zeros(len(roots)), 1e-13)
        assert (found > roots).all() and (found - roots).max() < 3e-13
