"""Constants are numbers too: eight robots of one shape, each in its own lane (parameter sweeps, randomized domains).

The public functions do not offer it yet; the kernels must not lose it."""
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from compiled import probe
from liedyn.dynamics.inertial_parameters import JOINT_PARAMETERS
from liedyn.joints.joint_model import tree_views
from liedyn.kernels.batch_blocks import SMALLEST_NORMAL, is_below
from liedyn.kernels.hybrid_dynamics import hybrid, hybrid_workspace, hybrid_workspace_size
from liedyn.kernels.kinematics import (
    ACCELERATIONS,
    LOCAL_WORLD_ALIGNED,
    centre_of_mass,
    energy,
    jacobian,
    kinematics,
    kinematics_workspace,
    kinematics_workspace_size,
    total_momentum,
)
from liedyn.kernels.mass_matrix import (
    composite_rigid_body,
    composite_workspace,
    composite_workspace_size,
    factor_articulated,
    factor_workspace,
    factor_workspace_size,
    inverse_columns,
    sweep_workspace_size,
)
from liedyn.kernels.newton_euler import newton_euler, newton_euler_workspace, newton_euler_workspace_size
from liedyn.numba_tools.decorators import entry_point
from zoo import floats, random_pose, random_robot


def varied(robot, rng):
    """Return another robot of the same tree, with other masses, frames, pitches, rotors, springs and gravity."""
    links = tuple(replace(link, mass=link.mass * f, com=floats(np.array(link.com) + 0.02 * rng.standard_normal(3)),
                          inertia=floats(np.array(link.inertia) * f)) for link in robot.links for f in [rng.uniform(0.7, 1.5)])
    joints = []
    for joint in robot.joints:
        moved = random_pose(rng)
        coordinates = tuple(replace(c, damping=c.damping * rng.uniform(0.5, 2), friction=c.friction * rng.uniform(0.5, 2),
                                    armature=c.armature * rng.uniform(0.5, 2), stiffness=c.stiffness * rng.uniform(0.5, 2),
                                    rest=c.rest * rng.uniform(0.5, 2)) for c in joint.coordinates)
        joints.append(replace(joint, origin=moved, pitch=joint.pitch * rng.uniform(0.5, 2), coordinates=coordinates))
    return replace(robot, links=links, joints=tuple(joints), gravity=floats(rng.uniform(-10, 10, 3)))


@pytest.fixture(scope="module")
def eight():
    """Return eight models, their states (8, n), and their constants as columns."""
    rng = np.random.default_rng(1)
    robot = random_robot(120, 12, base="floating")
    models = [ld.build(varied(robot, rng)) for _ in range(8)]
    for model in models[1:]:
        np.testing.assert_array_equal(model.index[5:], models[0].index[5:])
    constants = np.ascontiguousarray(np.array([model.constants for model in models]).T)
    assert (np.ptp(constants, axis=1) > 0).sum() > 300
    q = np.array([ld.random_configuration(model, rng) for model in models])
    return models, constants, q, *rng.standard_normal((3, 8, models[0].nv))


def lanes(x):
    """Transpose (8, n) to (n, 8)."""
    return np.ascontiguousarray(x.T)


@probe
def run_hybrid(index, constants, memory, prescribed, q, v, a, tau):
    work = hybrid_workspace(memory, index[0], index[2])
    return is_below(hybrid(tree_views(index, constants), prescribed, q, v, a, tau, memory[:0], True, work), SMALLEST_NORMAL)


@probe
def run_newton_euler(index, constants, memory, q, v, a, tau):
    tree = tree_views(index, constants)
    newton_euler(tree, tree.I, q, v, a, memory[:0], True, tau, newton_euler_workspace(memory, index[0], index[2]))


@probe
def run_composite(index, constants, memory, q, M):
    composite_rigid_body(tree_views(index, constants), q, M, composite_workspace(memory, index[0]))


@probe
def run_inverse_mass(index, constants, memory, none, q, M):
    n, nv = index[0], index[2]
    tree, factors = tree_views(index, constants), factor_workspace(memory, n, nv)
    deficit = factor_articulated(tree, none, q, factors)
    inverse_columns(tree, none, factors, memory[factor_workspace_size(n, nv):], M, n, nv)
    return is_below(deficit, SMALLEST_NORMAL)


@probe
def run_kinematics(index, constants, memory, q, v, a, link, sums, J, dJ):
    tree, work = tree_views(index, constants), kinematics_workspace(memory, index[0])
    kinematics(tree, q, v, a, ACCELERATIONS, work)
    energy(tree, q, v, True, work, sums[:2])
    total_momentum(tree, work, sums[2:8])
    centre_of_mass(tree, work, sums[8:11])
    jacobian(tree, link, LOCAL_WORLD_ALIGNED, q, v, J, dJ)


def test_hybrid_dynamics_of_eight_robots(eight):
    models, constants, q, v, a, tau = eight
    n, nv = models[0].n_bodies, models[0].nv
    for mask in (np.zeros(nv, dtype=bool), np.arange(nv) % 3 == 0, np.ones(nv, dtype=bool)):
        a8, tau8 = lanes(a), lanes(tau)
        memory = np.empty((hybrid_workspace_size(n, nv), 8))
        assert run_hybrid(models[0].index, constants, memory, mask, lanes(q), lanes(v), a8, tau8)
        for k, model in enumerate(models):
            expected = ld.hybrid_dynamics(model, q[k], v[k], a[k], tau[k], mask)
            assert relative(a8[:, k], expected[0]) < 1e-11 and relative(tau8[:, k], expected[1]) < 1e-11


def test_inverse_dynamics_of_eight_robots(eight):
    models, constants, q, v, a, _ = eight
    tau = np.empty((models[0].nv, 8))
    memory = np.empty((newton_euler_workspace_size(models[0].n_bodies, models[0].nv), 8))
    run_newton_euler(models[0].index, constants, memory, lanes(q), lanes(v), lanes(a), tau)
    for k, model in enumerate(models):
        assert relative(tau[:, k], ld.inverse_dynamics(model, q[k], v[k], a[k])) < 1e-13


def test_mass_matrices_of_eight_robots(eight):
    models, constants, q, *_ = eight
    n, nv = models[0].n_bodies, models[0].nv
    M, W = np.empty((2, nv * nv, 8))
    run_composite(models[0].index, constants, np.empty((composite_workspace_size(n), 8)), lanes(q), M)
    memory = np.empty((factor_workspace_size(n, nv) + sweep_workspace_size(n, nv) + 2 * nv, 8))
    assert run_inverse_mass(models[0].index, constants, memory, np.zeros(nv, dtype=bool), lanes(q), W)
    for k, model in enumerate(models):
        expected = ld.mass_matrix(model, q[k])
        assert relative(M[:, k].reshape(nv, nv), expected) < 1e-13
        assert relative(W[:, k].reshape(nv, nv) @ expected, np.eye(nv)) < 1e-9


def test_kinematics_energy_and_momentum_of_eight_robots(eight):
    models, constants, q, v, a, _ = eight
    n, nv = models[0].n_bodies, models[0].nv
    link = len(models[0].link_names) - 1
    sums, J, dJ = np.empty((11, 8)), np.empty((6 * nv, 8)), np.empty((6 * nv, 8))
    memory = np.empty((kinematics_workspace_size(n), 8))
    run_kinematics(models[0].index, constants, memory, lanes(q), lanes(v), lanes(a), link, sums, J, dJ)
    for k, model in enumerate(models):
        np.testing.assert_allclose(sums[:2, k], ld.energy(model, q[k], v[k]), rtol=1e-12)
        assert relative(sums[2:8, k], ld.momentum(model, q[k], v[k])) < 1e-13
        assert relative(sums[8:, k], ld.centre_of_mass(model, q[k])) < 1e-13
        name = model.link_names[link]
        assert relative(J[:, k].reshape(6, nv), ld.jacobian(model, q[k], name, frame="local_world_aligned")) < 1e-13
        rate = ld.jacobian_derivative(model, q[k], v[k], name, frame="local_world_aligned")
        assert relative(dJ[:, k].reshape(6, nv), rate) < 1e-12
        body = model.link_body[link]
        R = model.link_pose[link][:3, :3]
        twist = ld.link_twist(model, q[k], v[k], name)
        np.testing.assert_allclose(memory[12 * n + 6 * body:12 * n + 6 * body + 3, k], R @ twist[:3], atol=1e-12)


def every_third(model): return np.arange(model.nv) % 3 == 0


def directional(function):
    """Return directions of q, v and three parameters whose rates are equal in each model."""
    def moved(model, q, v, *inputs):
        figures = {"gravity.x": 0.3, f"armature.{model.v_names[-1]}": 0.2, f"damping.{model.v_names[0]}": 0.1}
        return np.concatenate(function(model, q, v, *inputs, dq=0.3 * v, dv=0.1 * v, parameters=figures), axis=-1)
    return moved


# where the entry stands, and the public function that calls it
ENTRIES = {
    "coriolis_matrices": ("dynamics.coriolis", lambda m, q, v, a, tau: ld.coriolis_matrix(m, q, v)),
    "christoffel_batch": ("dynamics.coriolis", lambda m, q, v, a, tau: ld.christoffel_symbols(m, q)),
    "regressors": ("dynamics.inertial_parameters", lambda m, q, v, a, tau: ld.regressor(m, q, v, a, joints=JOINT_PARAMETERS)),
    "energy_momentum_regressors": ("dynamics.inertial_parameters",
             lambda m, q, v, a, tau: ld.energy_regressor(m, q, v, joints=JOINT_PARAMETERS).kinetic),
    "inverse_directions": (
        "dynamics.directional_derivatives",
        lambda m, q, v, a, tau: directional(ld.inverse_dynamics_directional)(m, q, v, a)),
    "hybrid_directions": (
        "dynamics.directional_derivatives",
        lambda m, q, v, a, tau: directional(ld.hybrid_dynamics_directional)(m, q, v, a, tau, every_third(m))),
    "inverse_derivatives_batch": (
        "dynamics.derivatives",
        lambda m, q, v, a, tau: np.stack(ld.inverse_dynamics_derivatives(m, q, v, a), axis=-1)),
    "hybrid_derivatives_batch": (
        "dynamics.derivatives",
        lambda m, q, v, a, tau: np.stack(ld.hybrid_dynamics_derivatives(m, q, v, a, tau, every_third(m))[:3], axis=-1)),
}


@pytest.mark.parametrize("name", ENTRIES)
def test_entries_of_eight_robots(eight, name, monkeypatch):
    """With constants (m, 8), an entry point computes eight states, each of a separate model."""
    module, function = ENTRIES[name]
    models, constants, *states = eight
    alone = [function(model, *(x[k] for x in states)) for k, model in enumerate(models)]
    place = import_module(f"liedyn.{module}")
    one = getattr(place, name)
    monkeypatch.setattr(place, name, entry_point(one.liedyn_signatures[-1].replace("f8[::1]", "f8[:,::1]", 1))(one.py_func))
    varied = models[0]._copy(constants=constants)
    varied._cache.values.update(models[0]._cache.values)        # tools that use the sizes only
    together = function(varied, *states)
    for k, expected in enumerate(alone):
        assert relative(together[k], expected) < 1e-11, k


def test_one_singular_robot_among_eight_is_seen():
    """The deficit of each lane counts."""
    from liedyn.model.description import Joint, Robot
    from liedyn.model.links import Link
    ball = (1.0, 0.0, 0.0, 1.0, 0.0, 1.0)
    model = ld.build(Robot("r", (Link("a", 1.0, (0, 0, 0), ball), Link("b", 1.0, (0.1, 0, 0), ball)),
                           (Joint("j", "revolute", "a", "b", axes=((0.0, 0.0, 1.0),)),)))
    constants = np.repeat(model.constants[:, None], 8, axis=1)
    zero = np.zeros((1, 8))
    memory = np.empty((hybrid_workspace_size(2, 1), 8))
    none = np.zeros(1, dtype=bool)
    assert run_hybrid(model.index, constants, memory, none, zero, zero, zero.copy(), zero)
    inertia = slice(6 + 2 * 2 + 12 * 2 + 30, 6 + 2 * 2 + 12 * 2 + 40)                # J of body 1, see joints.joint_model
    for k in range(8):
        broken = constants.copy()
        broken[inertia, k] = 0
        assert not run_hybrid(model.index, broken, memory, none, zero, zero, zero.copy(), zero)
