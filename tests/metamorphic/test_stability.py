"""Stability does not depend on the world's axes, units, the order of coordinates, or rounding."""
import numpy as np
import pytest

import liedyn as ld
from degenerate_mechanisms import at, body
from liedyn.model.description import WORLD, Coordinate, Joint, Robot
from liedyn.model.links import Link
from metamorphic.mechanisms import State
from metamorphic.transformations import TRANSFORMATIONS, other_units

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
DOWN = (0.0, 0.0, -9.81)


def joint(name, kind, parent, child, axis, xyz=(0.0, 0.0, 0.0), **figures):
    return Joint(name, kind, parent, child, at(xyz), (axis,), coordinates=(Coordinate(**figures),) if figures else ())


def heavy(name, com=(0.2, 0.0, -0.4)):
    return body(name, 1.0, com, (0.02, 0.03, 0.02))


def two(kind, axis, parents=(WORLD, WORLD), **figures):
    """Return two equal bodies, next to each other or one at the other."""
    return Robot("two", (heavy("a"), heavy("b")), (
        joint("one", kind, parents[0], "a", axis, **figures),
        joint("two", kind, parents[1], "b", axis, (0.5, 0.3, 0.0), **figures)), gravity=DOWN)


PLANAR = Robot("planar", (Link("a"), Link("b"), heavy("c", (0.1, 0.2, 0.0))), (
    joint("x", "prismatic", WORLD, "a", X), joint("y", "prismatic", "a", "b", Y),
    joint("turn", "continuous", "b", "c", Z)), gravity=DOWN)
HOVERING = Robot("hovering", (body("a", 2.0, (0.0, 0.0, 0.0), (0.1, 0.2, 0.3)), heavy("b")), (
    joint("arm", "continuous", "a", "b", Y, (0.0, 0.0, -0.1), damping=0.3),), base="floating", gravity=DOWN)
HEAVY = Robot("upright", (heavy("a"),), (joint("pole", "continuous", WORLD, "a", Y),), gravity=DOWN)

HANGING = [np.arctan2(0.2, 0.4)] * 2

# robot, positions of joints after the base: stability, growth, chains on the axis
CASES = {
    "horizontal arm": (two("continuous", Z, (WORLD, "a")), [0.3, 0.9], "drifting", 1, [(2, 2)]),
    "horizontal slides": (two("prismatic", X), [0.1, 0.2], "drifting", 1, [(2, 2)]),
    "damped horizontal arm": (two("continuous", Z, (WORLD, "a"), damping=0.5), [0.3, 0.9], "neutral", 0, [(1, 1)]),
    "equal pendulums": (two("continuous", Y), HANGING, "neutral", 0, [(1,), (1,)]),
    "damped pendulums": (two("continuous", Y, damping=0.5), HANGING, "stable", None, []),
    "upright pole": (HEAVY, [HANGING[0] + np.pi], "unstable", None, []),
    "planar body": (PLANAR, [0.1, 0.2, 0.7], "drifting", 1, [(2, 2, 2)]),
    "body that hovers": (HOVERING, [HANGING[0]], "unstable", 3, [(4, 4, 2, 2)]),
}


def of_case(name, *transformations):
    robot, q = CASES[name][:2]
    model = ld.build(robot)
    q = np.concatenate([model.neutral()[:model.nq - len(q)], q])
    zero = np.zeros(model.nv)
    state = State(q, zero, zero, ld.gravity_force(model, q), {}, zero, zero, np.zeros(model.nc), zero != 0)
    for by in transformations:
        robot = by.change(robot)
        changed = ld.build(robot)
        state, model = by.maps(model, changed).state(state), changed
    return ld.linearize(model, state.q, state.v, state.tau)


def check(name, s):
    stability, growth, chains = CASES[name][2:]
    assert (s.stability, s.growth, [mode.chains for mode in s.modes if mode.chains]) == (stability, growth, chains)
    assert s.controllable == s.observable == len(s.states)


@pytest.mark.parametrize("relation", [None, *TRANSFORMATIONS])
@pytest.mark.parametrize("name", CASES)
def test_stability_does_not_depend_on_the_description(name, relation):
    check(name, of_case(name, *([TRANSFORMATIONS[relation]] if relation else [])))


@pytest.mark.parametrize("length, time", [(1e9, 1.0), (1e-9, 1.0), (1.0, 1e9), (1.0, 1e-9), (1e6, 1e-8), (1e-6, 1e7)])
@pytest.mark.parametrize("name", CASES)
def test_stability_in_units_far_from_si(name, length, time):
    check(name, of_case(name, TRANSFORMATIONS["world rotated and moved"], other_units(length, 1.0, time)))
