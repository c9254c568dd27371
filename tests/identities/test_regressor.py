"""Dynamics linear in the inertial parameters: torque, energy and momentum through their regressors, over every kind of joint.

Rounding: a row of Y pi is a sum of some hundred products, each right to about 1e-16 of the largest."""
import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings

import liedyn as ld
from liedyn.dynamics.inertial_parameters import JOINT_PARAMETERS, LINK_PARAMETERS
from liedyn.model.description import Joint
from liedyn.model.links import Link
from matrices import derivative
from zoo import ROBOTS, model_of, random_link, robots, state

EVERY = pytest.mark.parametrize("name", ROBOTS)
PASSIVE = pytest.mark.parametrize("passive", [False, True])
ROUNDING = 1e-13
SIZE = 9                        # a full block of Lanes and a remainder


def off(x, y):
    return np.abs(np.asarray(x) - y).max(initial=0.0) / max(np.abs(y).max(initial=0.0), 1e-300)


@EVERY
@PASSIVE
def test_torque_is_the_regressor_times_the_parameters(name, passive, worst):
    model = model_of(name)
    q, v, a, _ = state(model, 1, SIZE)
    pi = ld.inertial_parameters(model, passive=passive)
    tau = ld.inverse_dynamics(model, q, v, a, passive=passive)
    many = ld.regressor(model, q, v, a, passive=passive)
    one = np.array([ld.regressor(model, *row, passive=passive) for row in zip(q, v, a, strict=True)])
    assert many.shape == (SIZE, model.nv, len(pi.names))
    for kind, Y in (("Lanes", many), ("float64", one)):
        assert worst(f"regressor, {kind}: Y pi - tau", off(Y @ pi.values, tau), name) < ROUNDING
    assert off(many, one) < ROUNDING


@EVERY
@PASSIVE
def test_forces_with_a_reference_velocity(name, passive, worst):
    """M a_r + C v_r + g by matrices, by the recursion and by the regressor. For v_r = v these are inverse dynamics."""
    model = model_of(name)
    q, v, a, _ = state(model, 10, SIZE)
    v_r, pi = state(model, 11, SIZE)[1], ld.inertial_parameters(model, passive=passive).values
    C = ld.coriolis_matrix(model, q, v, method="christoffel")
    rest = np.zeros(model.nv)
    forces = ld.inverse_dynamics(model, q, v, rest, passive=passive) - ld.bias_force(model, q, v)        # passive ones
    forces += np.einsum("nij,nj->ni", ld.mass_matrix(model, q), a) + np.einsum("nij,nj->ni", C, v_r)
    forces += ld.gravity_force(model, q)
    tau = ld.slotine_li_inverse_dynamics(model, q, v, v_r, a, passive=passive)
    Y = ld.slotine_li_regressor(model, q, v, v_r, a, passive=passive)
    assert worst("Slotine and Li, recursion", off(tau, forces), name) < ROUNDING
    assert worst("Slotine and Li, regressor", off(Y @ pi, forces), name) < ROUNDING
    one = q[0], v[0], v_r[0], a[0]
    assert off(ld.slotine_li_inverse_dynamics(model, *one, passive=passive), tau[0]) < ROUNDING
    assert off(ld.slotine_li_regressor(model, *one, passive=passive), Y[0]) < ROUNDING
    tau, Y = (function(model, q, v, a, passive=passive) for function in (ld.inverse_dynamics, ld.regressor))
    assert off(ld.slotine_li_inverse_dynamics(model, q, v, v, a, passive=passive), tau) < ROUNDING
    assert off(ld.slotine_li_regressor(model, q, v, v, a, passive=passive), Y) < ROUNDING


@EVERY
def test_all_joint_parameters_have_columns_on_request(name):
    """… also those that the model has not; their values are then zero."""
    model = model_of(name)
    q, v, a, _ = state(model, 2, SIZE)
    pi = ld.inertial_parameters(model, joints=JOINT_PARAMETERS)
    Y = ld.regressor(model, q, v, a, joints=JOINT_PARAMETERS)
    assert off(Y @ pi.values, ld.inverse_dynamics(model, q, v, a)) < ROUNDING
    springs = sum(joint.type not in ("ball", "free") for joint in model.joints for _ in range(joint.v.start, joint.v.stop))
    assert len(pi.names) % 10 == (3 * model.nv + 3 * springs) % 10
    for kind in "preload.", "offset.":
        assert sum(name.startswith(kind) for name in pi.names) == springs


@EVERY
def test_the_regressor_knows_no_inertia(name):
    """It depends on the geometry only: that of another robot of the same shape gives this one's torques."""
    model = model_of(name)
    rng = np.random.default_rng(5)
    others = tuple(dataclasses.replace(random_link(rng, link.name), place=link.place) for link in model.description.links)
    frames = {link.name for link in model.description.links} - {joint.child for joint in model.joints}
    others = tuple(new if old.mass or old.name not in frames else old
                   for new, old in zip(others, model.description.links, strict=True))
    other = ld.build(dataclasses.replace(model.description, links=others))
    q, v, a, _ = state(model, 3, SIZE)
    tau = ld.inverse_dynamics(other, q, v, a)
    assert off(ld.regressor(model, q, v, a, passive=True) @ ld.inertial_parameters(other, passive=True).values, tau) < ROUNDING


@EVERY
@PASSIVE
def test_energy_and_momentum(name, passive, worst):
    """Without springs the potential differs by their energy; with them, by the constant k rest^2 / 2."""
    model = model_of(name)
    q, v = state(model, 4, SIZE)[:2]
    pi = ld.inertial_parameters(model, passive=passive)
    T, U = ld.energy_regressor(model, q, v, passive=passive)
    h = ld.momentum_regressor(model, q, v, passive=passive)
    kinetic, potential = ld.energy(model, q, v)
    assert T.shape == U.shape == (SIZE, len(pi.names)) and h.shape == (SIZE, 6, len(pi.names))
    assert worst("energy regressor: kinetic", off(T @ pi.values, kinetic), name) < ROUNDING
    assert worst("momentum regressor", off(h @ pi.values, ld.momentum(model, q, v)), name) < ROUNDING
    if passive or not any(x.stiffness for joint in model.description.joints for x in joint.coordinates):
        rest = sum(x.stiffness * x.rest**2 / 2 for joint in model.description.joints for x in joint.coordinates)
        assert worst("energy regressor: potential", off(U @ pi.values + rest, potential), name) < ROUNDING
    one = [ld.energy_regressor(model, *row, passive=passive) for row in zip(q, v, strict=True)]
    assert off(T, [row.kinetic for row in one]) < ROUNDING and off(U, [row.potential for row in one]) < ROUNDING
    assert off(h, [ld.momentum_regressor(model, *row, passive=passive) for row in zip(q, v, strict=True)]) < ROUNDING


@EVERY
def test_power_is_the_rate_of_energy_column_by_column(name, worst):
    """v^T Y = d/dt of the energy regressor along q (+) v t, v + a t: no parameter comes in."""
    model = model_of(name)
    q, v, a, _ = state(model, 5)
    Y = ld.regressor(model, q, v, a, joints=("armature", "stiffness"))

    def energy(t):
        T, U = ld.energy_regressor(model, ld.integrate(model, q, t * v), v + t * a, joints=("armature", "stiffness"))
        return T + U
    assert worst("regressor: v Y - d/dt energy", off(v @ Y, derivative(energy, 0.005)), name) < 1e-9


def test_momentum_changes_by_the_force_on_the_base():
    """Of a floating robot: the base's rows of Y are the rate of the momentum regressor less gravity, column by column."""
    model = ld.build(dataclasses.replace(ROBOTS["no passive forces, floating"], gravity=(0.0, 0.0, 0.0)))
    q, v, a, _ = state(model, 6)
    Y = ld.regressor(model, q, v, a, joints=())
    T = ld.link_pose(model, q, "root")

    def momentum(t):
        return ld.momentum_regressor(model, ld.integrate(model, q, t * v), v + t * a, joints=())
    rate = derivative(momentum, 0.005)
    force = np.r_[T[:3, :3].T @ (rate[:3] - np.cross(T[:3, 3], rate[3:], axis=0)), T[:3, :3].T @ rate[3:]]
    base = model.v_index("base")
    assert off(Y[base], force) < 1e-9


@given(robots)
@settings(max_examples=25, deadline=None)
def test_random_trees(robot):
    model = ld.build(robot)
    q, v, a, _ = state(model, 7, SIZE)
    for passive in (False, True):
        pi = ld.inertial_parameters(model, passive=passive)
        tau = ld.inverse_dynamics(model, q, v, a, passive=passive)
        assert off(ld.regressor(model, q, v, a, passive=passive) @ pi.values, tau) < ROUNDING


def test_names_units_and_values():
    model = model_of("every kind")
    pi = ld.inertial_parameters(model, passive=True)
    assert len(set(pi.names)) == len(pi.names) == len(pi.units) == len(pi.values)
    links = {link.name: link for link in model.description.links}
    for name, unit, value in zip(pi.names, pi.units, pi.values, strict=True):
        number, _, owner = name.partition(".")
        if number == "mass":
            assert value == links[owner].mass and unit == "kg"
        if number == "hy":
            assert value == pytest.approx(links[owner].mass * links[owner].com[1]) and unit == "kg m"
        if number == "Izz":
            x, y, _ = links[owner].com
            assert value == pytest.approx(links[owner].inertia[5] + links[owner].mass * (x * x + y * y)) and unit == "kg m^2"
    first = pi.names.index("mass.link1")
    assert [name.partition(".")[0] for name in pi.names[first:first + 10]] == list(LINK_PARAMETERS)


def welded(name: str, link: Link):
    """A robot of the zoo with a link more, welded to its last."""
    robot = ROBOTS[name]
    weld = Joint("weld", "fixed", robot.joints[-1].child, link.name)
    return ld.build(dataclasses.replace(robot, links=(*robot.links, link), joints=(*robot.joints, weld)))


def test_links_that_do_not_move_and_bare_frames_have_no_columns():
    names = ld.inertial_parameters(welded("revolute", Link("tip"))).names
    assert names and not any(name.endswith((".root", ".tip")) for name in names)


def test_a_welded_link_with_mass_has_columns_of_its_own():
    model = welded("ball", Link("tool", 0.7, (0.1, 0.0, 0.2), (0.01, 0.0, 0.0, 0.01, 0.0, 0.01)))
    pi = ld.inertial_parameters(model)
    assert pi.values[pi.names.index("mass.tool")] == 0.7
    q, v, a, _ = state(model, 8)
    assert off(ld.regressor(model, q, v, a) @ pi.values, ld.inverse_dynamics(model, q, v, a, passive=False)) < ROUNDING


def test_leading_axes():
    model = model_of("euler")
    q, v, a, _ = state(model, 9, (2, 3))
    Y = ld.regressor(model, q, v, a[0, 0])
    assert Y.shape[:3] == (2, 3, model.nv)
    np.testing.assert_allclose(Y[1, 2], ld.regressor(model, q[1, 2], v[1, 2], a[0, 0]), rtol=0, atol=1e-13 * np.abs(Y).max())
    assert ld.regressor(model, q[:0], v[:0], a[:0]).shape == (0, 3, *Y.shape[2:])
    assert ld.momentum_regressor(model, q, v).shape == (2, 3, 6, Y.shape[-1])
    assert ld.momentum_regressor(model, q[:0], v[:0]).shape == (0, 3, 6, Y.shape[-1])
    assert ld.energy_regressor(model, q[:0], v[:0]).potential.shape == (0, 3, Y.shape[-1])


@pytest.mark.parametrize("function", ["regressor", "energy_regressor", "momentum_regressor", "inertial_parameters"])
def test_an_unknown_joint_parameter_is_named(function):
    model = model_of("ball")
    q, v, a, _ = state(model, 1)
    states = {"regressor": (q, v, a), "inertial_parameters": ()}.get(function, (q, v))
    with pytest.raises(ld.LiedynError, match="unknown joint parameter 'stiction': expected one of armature, damping, friction, "
                                             "stiffness"):
        getattr(ld, function)(model, *states, joints=("stiction",))


def test_bad_states_are_refused():
    model = model_of("ball")
    q, v, a, _ = state(model, 1)
    with pytest.raises(ld.ShapeError, match="a has the wrong shape"):
        ld.regressor(model, q, v, a[:-1])
    with pytest.raises(ld.ConfigurationError, match=r"v\[1\] \(joint0.wy\) is not finite"):
        ld.regressor(model, q, np.where(np.arange(model.nv) == 1, np.nan, v), a)
    bad = np.where(np.arange(model.nv) == 1, np.inf, v)
    for name, states in {"v": (bad, v, a), "v_r": (v, bad, a), "a_r": (v, v, bad)}.items():
        for function in ld.slotine_li_regressor, ld.slotine_li_inverse_dynamics:
            with pytest.raises(ld.ConfigurationError, match=rf"{name}\[1\] \(joint0.wy\) is not finite"):
                function(model, q, *states)
    with pytest.raises(ld.ConfigurationError, match="not of unit norm"):
        ld.momentum_regressor(model, 2 * q, v)
    with pytest.raises(ld.ComputationError, match="not finite"):
        ld.energy_regressor(model, q, 1e200 * v)
