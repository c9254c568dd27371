"""One state, a batch on Lanes, a batch on threads: the same numbers, in the shape of the leading axes."""
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from liedyn.dynamics.batching import threads
from rounding import assert_same
from zoo import model_of, state

LINK = "link3"
FUNCTIONS = {
    "inverse_dynamics": lambda m, q, v, a, tau: ld.inverse_dynamics(m, q, v, a),
    "forward_dynamics": lambda m, q, v, a, tau: ld.forward_dynamics(m, q, v, tau),
    "hybrid_dynamics, a": lambda m, q, v, a, tau: ld.hybrid_dynamics(m, q, v, a, tau, np.arange(m.nv) % 3 == 0)[0],
    "hybrid_dynamics, tau": lambda m, q, v, a, tau: ld.hybrid_dynamics(m, q, v, a, tau, np.arange(m.nv) % 3 == 0)[1],
    "bias_force": lambda m, q, v, a, tau: ld.bias_force(m, q, v),
    "gravity_force": lambda m, q, v, a, tau: ld.gravity_force(m, q),
    "mass_matrix": lambda m, q, v, a, tau: ld.mass_matrix(m, q),
    "inverse_mass_matrix": lambda m, q, v, a, tau: ld.inverse_mass_matrix(m, q),
    "link_pose": lambda m, q, v, a, tau: ld.link_pose(m, q, LINK),
    "link_poses": lambda m, q, v, a, tau: ld.link_poses(m, q),
    "link_twist": lambda m, q, v, a, tau: ld.link_twist(m, q, v, LINK),
    "link_acceleration": lambda m, q, v, a, tau: ld.link_acceleration(m, q, v, a, LINK),
    "jacobian": lambda m, q, v, a, tau: ld.jacobian(m, q, LINK, frame="local_world_aligned"),
    "jacobian_derivative": lambda m, q, v, a, tau: ld.jacobian_derivative(m, q, v, LINK, frame="world"),
    "kinetic energy": lambda m, q, v, a, tau: ld.energy(m, q, v)[0],
    "potential energy": lambda m, q, v, a, tau: ld.energy(m, q, v)[1],
    "momentum": lambda m, q, v, a, tau: ld.momentum(m, q, v),
    "centre_of_mass": lambda m, q, v, a, tau: ld.centre_of_mass(m, q),
    "joint_wrenches": lambda m, q, v, a, tau: ld.joint_wrenches(m, q, v, a),
    "integrate": lambda m, q, v, a, tau: ld.integrate(m, q, v),
    "difference": lambda m, q, v, a, tau: ld.difference(m, q, ld.integrate(m, q, 0.3 * v)),
}
EVERY = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
NAME = "every kind, floating"


@EVERY
def test_a_batch_is_its_states(function, worst):
    """Lanes and float64 differ by rounding only: the compiler may fuse other products (measured 2e-13, where cond(M) is 1e4)."""
    model = model_of(NAME)
    states = state(model, 1, 19)
    together = function(model, *states)
    alone = np.array([function(model, *row) for row in zip(*states, strict=True)])
    assert together.shape == alone.shape
    assert worst("Lanes against float64", relative(together, alone)) < 1e-11


@EVERY
def test_remainders_and_places_in_a_batch_do_not_matter(function):
    """Sizes 1 to 17: each state gives bitwise the same on Lanes, at any position."""
    model = model_of(NAME)
    states = state(model, 2, 17)
    all_of_them = function(model, *states)
    for count in range(2, 17):
        assert_same(function(model, *(x[:count] for x in states)), all_of_them[:count])
        assert_same(function(model, *(x[17 - count:] for x in states)), all_of_them[17 - count:])
    one = function(model, *(x[:1] for x in states))
    assert one.shape == all_of_them[:1].shape and relative(one, all_of_them[:1]) < 1e-11


@EVERY
def test_leading_axes(function):
    """(2, 3, n) and an empty batch; axes of length one are spread."""
    model = model_of(NAME)
    states = state(model, 3, (2, 3))
    flat = function(model, *(x.reshape(6, -1) for x in states))
    assert_same(function(model, *states), flat.reshape(2, 3, *flat.shape[1:]))
    assert function(model, *(x[:, :0] for x in states)).shape == (2, 0, *flat.shape[1:])


@EVERY
def test_threads_do_not_matter(function, monkeypatch):
    model = model_of(NAME)
    states = state(model, 4, 101)
    expected = function(model, *states)
    monkeypatch.setattr(threads, "_MIN_WORK_PER_THREAD", 1)
    monkeypatch.setattr(threads, "cores", lambda: 5)
    assert len(threads.chunks(101, model.n_bodies)) == 6
    assert_same(function(model, *states), expected)


def test_borders_of_chunks():
    """Each part but the last a multiple of eight; nothing twice, nothing left out."""
    for count in (1, 7, 8, 9, 63, 64, 65, 1000, 4097):
        for bodies in (2, 40, 5000):
            edges = threads.chunks(count, bodies)
            assert edges[0] == 0 and edges[-1] == count
            assert all(b > a for a, b in pairwise(edges))
            assert all(a % 8 == 0 for a in edges[:-1])
            assert len(edges) - 1 <= threads.cores()


def test_axes_are_spread_over_each_other():
    """q of one state with velocities of many, external wrenches of one with all."""
    model = model_of(NAME)
    q, v, a, tau = state(model, 5, (4, 3))
    F = np.random.default_rng(0).standard_normal((3, len(model.link_names), 6))
    got = ld.inverse_dynamics(model, q[0, 0], v[:, :1], a[:1], f_ext=F)
    full = [np.broadcast_to(x, (4, 3, x.shape[-1])) for x in (q[0, 0], v[:, :1], a[:1])]
    assert_same(got, ld.inverse_dynamics(model, *full, f_ext=np.broadcast_to(F, (4, *F.shape))))
    got = ld.forward_dynamics(model, q[0, 0], v[:, :1], tau[0, 0], f_ext=F)
    assert got.shape == (4, 3, model.nv)
    one = ld.forward_dynamics(model, q[0, 0], v[2, 0], tau[0, 0], f_ext=F[1])
    assert relative(got[2, 1], one) < 1e-11
    a1, tau1 = ld.hybrid_dynamics(model, q[0, 0], v[0, 0], a, tau[0, 0], np.arange(model.nv) % 2 == 0)
    assert a1.shape == tau1.shape == (4, 3, model.nv)


@pytest.mark.parametrize("size", [(), (11,), (2, 3)])
def test_external_wrenches_by_name_and_by_array(size):
    model = model_of(NAME)
    q, v, a, tau = state(model, 6, size)
    F = np.zeros((*size, len(model.link_names), 6))
    rng = np.random.default_rng(1)
    by_name = {name: rng.standard_normal((*size, 6)) for name in (LINK, "root", model.link_names[-1])}
    for name, wrench in by_name.items():
        F[..., model.link_index(name), :] = wrench
    functions = {"inverse": lambda f: ld.inverse_dynamics(model, q, v, a, f_ext=f),
                 "forward": lambda f: ld.forward_dynamics(model, q, v, tau, f_ext=f),
                 "bias": lambda f: ld.bias_force(model, q, v, f_ext=f),
                 "joints": lambda f: ld.joint_wrenches(model, q, v, a, f_ext=f)}
    constant = {LINK: [1, 2, 3, 4, 5, 6]}                        # one wrench for all states; integers and lists are fine
    spread = {LINK: np.broadcast_to(np.arange(1.0, 7.0), (*size, 6))}
    for function in functions.values():
        assert_same(function(by_name), function(F))
        assert_same(function({}), function(0 * F))
        assert relative(function(constant), function(spread)) < 1e-12


def test_calls_from_many_threads_at_once():
    """Single calls share a model's scratch but hold the interpreter's lock; batches have separate scratch."""
    model = model_of(NAME)
    cases = [state(model, 100 + k, size) for k, size in enumerate([(), (3,), (40,), (), (300,), (17,)] * 4)]
    expected = [(ld.forward_dynamics(model, q, v, tau), ld.inverse_dynamics(model, q, v, a), ld.mass_matrix(model, q))
                for q, v, a, tau in cases]

    def again(k):
        q, v, a, tau = cases[k]
        return [(ld.forward_dynamics(model, q, v, tau), ld.inverse_dynamics(model, q, v, a), ld.mass_matrix(model, q))
                for _ in range(20)]

    with ThreadPoolExecutor(8) as pool:
        for k, rounds in enumerate(pool.map(again, range(len(cases)))):
            for got in rounds:
                for x, y in zip(got, expected[k], strict=True):
                    assert_same(x, y)
