"""Modes of joints at rest with rigid friction, against an enumeration of all modes."""
from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import liedyn as ld
from liedyn.simulation.joint_friction import JointFriction
from liedyn.simulation.sticking import _RestingCoordinates


def frictions(level, static, stribeck=0.0):
    return [JointFriction(f"j{k}", k, float(low), float(high), stribeck, 1.0, 1.0)
            for k, (low, high) in enumerate(zip(level, static, strict=True))]


def accelerations(W, b, level, static, directions, at_rest):
    """Return the accelerations of these modes, and whether they obey the law of friction."""
    directions, holds = np.array(directions), np.array(at_rest)
    force = np.where(holds, -directions * static, -directions * level)
    sticks = directions == 0
    if sticks.any():
        force[sticks] = np.linalg.lstsq(W[np.ix_(sticks, sticks)], -(b + W @ force)[sticks], rcond=None)[0]
    a = b + W @ force
    still = sticks | holds
    return a, bool((np.abs(force[still]) <= static[still] * (1 + 1e-9)).all() and np.abs(a[still]).max(initial=0.0) < 1e-9 and
                   (directions[~still] * a[~still] >= -1e-12).all())


@pytest.mark.parametrize("seed", range(20))
def test_modes_are_those_of_the_enumeration(seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((4, 4))
    W, b, level = A @ A.T * rng.uniform(0.1, 10.0), 5.0 * rng.standard_normal(4), rng.uniform(0.1, 3.0, 4)
    found = _RestingCoordinates(W, b, frictions(level, level)).modes({}, 0.0)
    a, sound = accelerations(W, b, level, level, *found)
    assert sound
    every = [accelerations(W, b, level, level, modes, [False] * 4) for modes in product((-1, 0, 1), repeat=4)]
    solutions = [x for x, is_sound in every if is_sound]
    assert solutions and all(np.abs(x - a).max() < 1e-9 for x in solutions)


@pytest.mark.parametrize("seed", range(20))
def test_modes_with_a_static_level_obey_the_law(seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((3, 3))
    W, b, level = A @ A.T, 3.0 * rng.standard_normal(3), rng.uniform(0.1, 2.0, 3)
    static = level * rng.uniform(1.0, 1.5, 3)
    _, sound = accelerations(W, b, level, static, *_RestingCoordinates(W, b, frictions(level, static)).modes({}, 0.0))
    assert sound


@pytest.mark.parametrize("count, motions", [(5, 2), (16, 7)])
@pytest.mark.parametrize("seed", range(20))
def test_coordinates_that_hold_each_other(seed, count, motions):
    """At rest, as many stick as there are motions, and the others are at their levels; or some move."""
    rng = np.random.default_rng(seed)
    J, level = rng.standard_normal((count, motions)), rng.uniform(0.5, 2.0, count)
    W, b = J @ J.T, J @ (rng.uniform(0.1, 5.0) * rng.standard_normal(motions))
    directions, at_rest = _RestingCoordinates(W, b, frictions(level, level)).modes({}, 0.0)
    a, sound = accelerations(W, b, level, level, directions, at_rest)
    assert sound
    assert np.abs(a).max() > 1e-9 or directions.count(0) == motions


def test_a_released_coordinate_passes_its_load_to_those_that_hold_it():
    W, b, level = np.ones((2, 2)), np.array([-1.5, -1.5]), np.array([1.0, 2.0])
    resting = _RestingCoordinates(W, b, frictions(level, level))
    assert resting.modes({0: -1}, 0.0)[0].count(0) == 1                    # 1.5 of 3: the other one takes over
    beyond = _RestingCoordinates(W, 2.0000001 * b, frictions(level, level))
    assert beyond.modes({0: -1}, 0.0) == ([-1, -1], [False, False])


def test_modes_that_contradict_each_other_are_an_error():
    """A matrix that is not positive semidefinite has no consistent modes, as no mass matrix does."""
    W = np.array([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(ld.ComputationError, match="no joints that stick and slide are consistent with each other among j0, j1"):
        _RestingCoordinates(W, np.array([1.0, 1.0]), frictions([0.2, 0.2], [0.5, 0.5])).modes({0: 1, 1: -1}, 0.0)
