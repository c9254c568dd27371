"""Energy and momentum: what goes in is what changes, on trees of every joint kind.

Rates are taken by differences along q (+) t v, v + t a: the state itself need not be integrated."""
from dataclasses import replace

import numpy as np
import pytest

import liedyn as ld
from joint_forces import figures, passive_force, positions
from liedyn.model.description import WORLD
from matrices import adjoint, derivative, inertia, inverse
from zoo import ROBOTS, model_of, random_robot, state

EVERY = pytest.mark.parametrize("name", ROBOTS)


def motion(model, seed):
    """A state of moderate speed under random forces and wrenches, and its acceleration."""
    q, v, _, tau = state(model, seed)
    v = v / max(1.0, np.linalg.norm(v))
    F = np.random.default_rng([seed, 5]).standard_normal((len(model.link_names), 6))
    return q, v, tau, F, ld.forward_dynamics(model, q, v, tau, f_ext=F)


def rate(f, model, q, v, a):
    """df(q, v)/dt along the motion."""
    return derivative(lambda t: f(model, ld.integrate(model, q, t * v), v + t * a))


@EVERY
def test_power_is_the_rate_of_energy(name, worst):
    """dE/dt = (tau + damping and friction) v + sum of F_ext V: springs and gravity are in E."""
    model = model_of(name)
    q, v, tau, F, a = motion(model, 1)
    power = tau @ v + passive_force(model, q, v, springs=False) @ v
    power += sum(F[k] @ ld.link_twist(model, q, v, name) for k, name in enumerate(model.link_names))
    energy = sum(ld.energy(model, q, v))
    change = rate(lambda m, q, v: sum(ld.energy(m, q, v)), model, q, v, a)
    scale = max(1.0, abs(power), abs(energy), np.abs(a).max())
    assert worst("power against the rate of energy", abs(change - power) / scale) < 1e-10


def outer_wrench(model, q, v, a, F):
    """Wrench of gravity, external wrenches and the joints that stand on the ground, about the world's origin."""
    poses = ld.link_poses(model, q)
    total = np.zeros(6)
    for k, link in enumerate(model.description.links):
        if moves(model, link.name):
            weight = link.mass * model.gravity
            centre = poses[k] @ [*link.com, 1]
            total += np.r_[np.cross(centre[:3], weight), weight]
            total += adjoint(inverse(poses[k])).T @ F[k]
    on_ground = ld.joint_wrenches(model, q, v, a, f_ext=F)
    for joint, wrench in zip(model.joints, on_ground, strict=True):
        if not moves(model, joint.parent):
            total += adjoint(inverse(poses[model.link_index(joint.child)])).T @ wrench
    return total


def moves(model, link):
    return link != WORLD and model.link_body[model.link_index(link)] > 0


@EVERY
def test_rate_of_momentum_is_the_outer_wrench(name, worst):
    """Gravity, external wrenches and the reaction of the ground; inner forces, of motors, springs and friction, cancel."""
    model = model_of(name)
    q, v, _, F, a = motion(model, 2)
    change = rate(ld.momentum, model, q, v, a)
    expected = outer_wrench(model, q, v, a, F)
    assert worst("rate of momentum", np.abs(change - expected).max() / max(1, np.abs(expected).max())) < 1e-10


@pytest.mark.parametrize("seed", range(5))
def test_momentum_of_a_floating_robot_without_outer_force_is_kept(seed):
    robot = random_robot(40 + seed, 8, base="floating")
    model = ld.build(replace(robot, gravity=(0.0, 0.0, 0.0)))
    q, v, _, tau = state(model, seed)
    v = v / np.linalg.norm(v)
    tau[:6] = 0                                        # the base has no motor
    a = ld.forward_dynamics(model, q, v, tau)
    assert np.abs(rate(ld.momentum, model, q, v, a)).max() < 1e-10 * max(1, np.abs(a).max())


@EVERY
def test_momentum_is_the_sum_over_links(name):
    """h = sum of Ad* I V; linear part: mass times the velocity of the centre of mass."""
    model = model_of(name)
    q, v = state(model, 3)[:2]
    poses, h, mass = ld.link_poses(model, q), np.zeros(6), 0.0
    centre = np.zeros(3)
    for k, link in enumerate(model.description.links):
        if moves(model, link.name):
            V = ld.link_twist(model, q, v, link.name)
            h += adjoint(inverse(poses[k])).T @ inertia(link.mass, link.com, link.inertia) @ V
            mass += link.mass
            centre += link.mass * (poses[k] @ [*link.com, 1])[:3]
    np.testing.assert_allclose(ld.momentum(model, q, v), h, atol=1e-13 * max(1, np.abs(h).max()))
    np.testing.assert_allclose(ld.centre_of_mass(model, q), centre / mass, atol=1e-14)
    v = v / max(1, np.linalg.norm(v))
    speed = derivative(lambda t: ld.centre_of_mass(model, ld.integrate(model, q, t * v)))
    np.testing.assert_allclose(ld.momentum(model, q, v)[3:], mass * speed, atol=1e-10)


@EVERY
def test_energy_is_the_sum_over_links(name):
    model = model_of(name)
    q, v = state(model, 4)[:2]
    poses, kinetic, potential = ld.link_poses(model, q), 0.0, 0.0
    for k, link in enumerate(model.description.links):
        if moves(model, link.name):
            V = ld.link_twist(model, q, v, link.name)
            kinetic += V @ inertia(link.mass, link.com, link.inertia) @ V / 2
            potential -= link.mass * model.gravity @ (poses[k] @ [*link.com, 1])[:3]
    kinetic += figures(model, "armature") @ v**2 / 2
    potential += figures(model, "stiffness") @ (positions(model, q) - figures(model, "rest"))**2 / 2
    np.testing.assert_allclose(ld.energy(model, q, v), (kinetic, potential), rtol=1e-13, atol=1e-12)


def test_a_robot_without_moving_mass_has_no_centre():
    """Rotors alone make it computable; its centre of mass used to be NaN."""
    from liedyn.model.description import Coordinate, Joint, Robot
    from liedyn.model.links import Link
    motor = Joint("j", "revolute", "a", "b", axes=((0.0, 0.0, 1.0),), coordinates=(Coordinate(armature=0.1),))
    model = ld.build(Robot("rotor", (Link("a", 1.0), Link("b")), (motor,)))
    assert ld.energy(model, [0.0], [2.0]) == pytest.approx((0.2, 0.0))
    with pytest.raises(ld.ComputationError, match="no moving mass"):
        ld.centre_of_mass(model, [0.0])
