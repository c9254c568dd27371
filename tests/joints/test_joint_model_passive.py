"""Springs, damping, friction and rotors, from their formulas."""
from dataclasses import replace

import numpy as np
import pytest

import liedyn as ld
from joint_forces import figures, passive_force
from liedyn.model.description import Coordinate, Joint, Robot
from matrices import derivative
from rounding import assert_same
from zoo import ROBOTS, model_of, random_link, random_robot, state


@pytest.mark.parametrize("name", ROBOTS)
def test_passive_forces_are_what_the_motors_need_not_give(name):
    model = model_of(name)
    q, v, a, tau = state(model, 1, 9)
    force = passive_force(model, q, v)
    without = ld.inverse_dynamics(model, q, v, a, passive=False)
    np.testing.assert_allclose(ld.inverse_dynamics(model, q, v, a), without - force, rtol=1e-13, atol=1e-12)
    np.testing.assert_allclose(ld.inverse_dynamics(model, q[0], v[0], a[0]), (without - force)[0], rtol=1e-13, atol=1e-12)
    with_forces = ld.forward_dynamics(model, q, v, tau + force, passive=False)
    np.testing.assert_allclose(ld.forward_dynamics(model, q, v, tau), with_forces, rtol=1e-9, atol=1e-10)
    assert model.has_passive_forces == bool(force.any())


def test_bias_and_gravity_hold_no_passive_forces():
    model = model_of("every kind")
    q, v, a, _ = state(model, 2)
    assert_same(ld.bias_force(model, q, v), ld.inverse_dynamics(model, q, v, 0 * a, passive=False))
    assert_same(ld.gravity_force(model, q), ld.inverse_dynamics(model, q, 0 * v, 0 * a, passive=False))


def test_armature_stands_on_the_diagonal_of_the_mass_matrix():
    robot = random_robot(31, 8)
    bare = ld.build(replace(robot, joints=tuple(
        replace(joint, coordinates=tuple(replace(c, armature=0.0) for c in joint.coordinates)) for joint in robot.joints)))
    model = ld.build(robot)
    q, v, _, _ = state(model, 3)
    armature = figures(model, "armature")
    assert armature.any()
    np.testing.assert_allclose(ld.mass_matrix(model, q) - ld.mass_matrix(bare, q), np.diag(armature), atol=1e-14)
    kinetic = ld.energy(model, q, v)[0] - ld.energy(bare, q, v)[0]
    np.testing.assert_allclose(kinetic, armature @ v**2 / 2, rtol=1e-11)


def test_springs_store_the_energy_that_they_take():
    """The derivative of their potential energy with respect to each coordinate is minus the force."""
    robot = replace(random_robot(32, 8, types=("revolute", "prismatic", "universal", "screws")), gravity=(0.0, 0.0, 0.0))
    model = ld.build(robot)
    q, v = state(model, 4)[:2]
    gradient = derivative(lambda h: ld.energy(model, ld.integrate(model, q, h * v), v)[1])
    stiffness = figures(model, "stiffness")
    assert stiffness.any()
    np.testing.assert_allclose(gradient, -passive_force(model, q, 0 * v) @ v, rtol=1e-11)


def test_coulomb_friction_is_smooth_through_rest_and_full_at_speed():
    rng = np.random.default_rng(0)
    coordinate = Coordinate(friction=3.0, friction_speed=0.02)
    slider = Joint("slider", "prismatic", "root", "child", axes=((1.0, 0.0, 0.0),), coordinates=(coordinate,))
    model = ld.build(Robot("one", (random_link(rng, "root"), random_link(rng, "child")), (slider,), gravity=(0.0, 0.0, 0.0)))
    speed = np.array([[-1.0], [-0.02], [0.0], [0.02], [1.0]])
    needed = ld.inverse_dynamics(model, np.zeros((5, 1)), speed, np.zeros((5, 1)))[:, 0]
    full, half = 3 / np.sqrt(1.0004), 3 / np.sqrt(2)
    np.testing.assert_allclose(needed, [-full, -half, 0, half, full], rtol=1e-12)
