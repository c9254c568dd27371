"""Limbs side by side against one body after the other: the same equations, other sums."""
import copy
import dataclasses
import pickle

import numpy as np
import pytest

import liedyn as ld
from liedyn.dynamics.calls import NONE
from liedyn.dynamics.higher_order import _machine
from liedyn.dynamics.hybrid import none_prescribed
from liedyn.errors import ComputationError, ConfigurationError
from liedyn.jit import prepare
from liedyn.kernels import checks
from liedyn.kernels.recursions.hybrid import hybrid_one
from liedyn.kernels.recursions.limbs import forward_of_limbs, inverse_of_limbs
from liedyn.kernels.recursions.newton_euler import inverse_one
from liedyn.kernels.series.higher_order_hybrid import higher_order_hybrid_one, hybrid_one_memory
from liedyn.kernels.series.higher_order_inverse import higher_order_inverse_one, inverse_one_memory
from liedyn.kernels.series.higher_order_limbs import (
    forward_of_limbs_memory,
    higher_order_forward_of_limbs,
    higher_order_inverse_of_limbs,
    inverse_of_limbs_memory,
)
from liedyn.model import limbs as model_limbs
from rounding import assert_same
from zoo import MOVING, SIMPLE, random_joint, random_link, random_robot

COMPOUND = ("universal", "cylindrical", "planar", "euler", "screws")
LIMBS = {                         # seed of a trunk, its joints, base, how long the limbs are, kinds of their joints
    "alike": (1, 0, "floating", [4] * 5, SIMPLE),
    "all lanes": (2, 2, "floating", [3] * 8, SIMPLE),
    "of several lengths": (3, 3, "fixed", [6, 5, 4, 2, 1], SIMPLE),
    "of compound joints": (4, 2, "floating", [3, 3, 2], COMPOUND),
    "more than eight": (5, 4, "floating", [3, 2, 3, 2, 2, 3, 1, 3, 2, 2, 3, 3, 2], SIMPLE),
    "on a trunk of every kind": (6, len(MOVING), "floating", [4, 4, 3, 3], SIMPLE),
    "from the ground": (7, 0, "fixed", [4, 4, 4, 3], SIMPLE),
    "a large trunk": (8, 30, "floating", [9, 8, 7, 7, 6, 5, 5, 4, 4, 3, 3, 2, 2], SIMPLE),
}


def robot_of(name):
    """A random trunk with limbs on random links of it."""
    seed, joints, base, lengths, kinds = LIMBS[name]
    trunk = random_robot(seed, joints, base=base)
    rng = np.random.default_rng(seed)
    links, joints = list(trunk.links), list(trunk.joints)
    ends = [link.name for link in trunk.links]
    for k, length in enumerate(lengths):
        on = ends[rng.integers(len(ends))]
        for j in range(length):
            link = f"limb{k}_{j}"
            links.append(random_link(rng, link))
            joints.append(random_joint(rng, f"in_{link}", str(rng.choice(kinds)), on, link))
            on = link
    return dataclasses.replace(trunk, links=tuple(links), joints=tuple(joints))


def limbs_of(model, monkeypatch):
    """Also where they would not be faster."""
    for threshold in "_STEP", "_FEWEST", "_FEWEST_OF_SERIES":
        monkeypatch.setattr(model_limbs, threshold, -1)
    return model_limbs.limbs(model.index, model.constants)


def states(model, count=20):
    rng = np.random.default_rng(3)
    return ld.random_configuration(model, rng, count), *rng.standard_normal((3, count, model.nv))


@pytest.fixture(scope="module", autouse=True)
def compiled():
    for entry in (hybrid_one, inverse_one, forward_of_limbs, inverse_of_limbs, higher_order_hybrid_one, higher_order_inverse_one,
                  higher_order_forward_of_limbs, higher_order_inverse_of_limbs):
        prepare(entry)


@pytest.mark.parametrize("passive", [True, False])
@pytest.mark.parametrize("name", LIMBS)
def test_side_by_side_is_one_after_the_other(name, passive, monkeypatch, worst):
    model = ld.build(robot_of(name))
    limbs, none = limbs_of(model, monkeypatch), none_prescribed(model)
    limb_bodies = sum(len(limb) for group in model_limbs._groups(model_limbs._Tree.of(model.index, model.constants))
                      for limb in group)
    assert limb_bodies >= sum(LIMBS[name][3])                  # a chain of the trunk may be one more
    tau, expected_tau, a, expected_a = np.empty((4, model.nv))
    for q, v, x, y in zip(*states(model), strict=True):
        assert inverse_one(model.machine, q, v, x, NONE, passive, expected_tau) == checks.OK
        assert inverse_of_limbs(limbs, q, v, x, passive, tau) == checks.OK
        error = np.abs(tau - expected_tau).max() / np.abs(expected_tau).max()
        assert worst("limbs: inverse dynamics", error, name) < 1e-14
        assert hybrid_one(model.machine, none, q, v, expected_a, y, NONE, passive) == checks.OK
        assert forward_of_limbs(limbs, none, q, v, a, y, passive) == checks.OK
        bound = np.linalg.cond(ld.mass_matrix(model, q))
        error = np.abs(a - expected_a).max() / np.abs(expected_a).max() / bound
        assert worst("limbs: forward dynamics / cond(M)", error, name) < 1e-15


@pytest.mark.parametrize("order", [0, 1, 4])
@pytest.mark.parametrize("name", LIMBS)
def test_time_derivatives_side_by_side_are_those_one_after_the_other(name, order, monkeypatch, worst):
    """Forward dynamics are judged by the forces that their accelerations take: see the README on digits lost by order."""
    model, K = ld.build(robot_of(name)), order + 2
    limbs, none, rng = limbs_of(model, monkeypatch), none_prescribed(model), np.random.default_rng(4)
    machines = _machine(model, inverse_one_memory, K), _machine(model, hybrid_one_memory, K)
    side_by_side = [model_limbs.limbs_for_series(limbs, memory, K)
                    for memory in (inverse_of_limbs_memory, forward_of_limbs_memory)]
    for passive in True, False:
        for q in ld.random_configuration(model, rng, 4):
            v = rng.standard_normal((K, model.nv))
            tau, expected, a, expected_a, again = np.empty((5, order + 1, model.nv))
            assert higher_order_inverse_one(machines[0], q, v, passive, expected) == checks.OK
            assert higher_order_inverse_of_limbs(side_by_side[0], q, v, passive, tau) == checks.OK
            error = (np.abs(tau - expected).max(axis=1) / np.abs(expected).max(axis=1)).max()
            assert worst("limbs: inverse dynamics to order 4", error, name) < 1e-12
            given = rng.standard_normal((order + 1, model.nv))
            assert higher_order_hybrid_one(machines[1], none, q, v[0].copy(), expected_a, given, True, passive) == checks.OK
            assert higher_order_forward_of_limbs(side_by_side[1], none, q, v[0].copy(), a, given, passive) == checks.OK
            np.testing.assert_allclose(a[0], expected_a[0], rtol=1e-7, atol=1e-9 * np.abs(a[0]).max())
            assert higher_order_inverse_one(machines[0], q, np.concatenate([v[:1], a]), passive, again) == checks.OK
            size = np.maximum(np.abs(given).max(axis=1), np.abs(ld.mass_matrix(model, q)).max() * np.abs(a).max(axis=1))
            error = (np.abs(again - given).max(axis=1) / size).max()
            assert worst("limbs: forward dynamics to order 4, residual", error, name) < 1e-12


@pytest.mark.parametrize("name", LIMBS)
def test_public_functions_take_them_where_they_are_faster(name):
    """Forward dynamics of inverse dynamics, one state, and the same in a batch."""
    model = ld.build(robot_of(name))
    q, v, a, _ = states(model)
    tau = np.array([ld.inverse_dynamics(model, *x) for x in zip(q, v, a, strict=True)])
    np.testing.assert_allclose(tau, ld.inverse_dynamics(model, q, v, a), rtol=1e-11, atol=1e-11)
    again = np.array([ld.forward_dynamics(model, *x) for x in zip(q, v, tau, strict=True)])
    np.testing.assert_allclose(again, a, rtol=1e-8, atol=1e-8)


def test_which_robots_have_limbs():
    """Few or short ones are computed faster one after the other."""
    def of(lengths, base="floating"):
        robot = random_robot(0, 0, base=base)
        LIMBS["this"] = (0, 0, base, lengths, ("revolute",))
        try:
            robot = robot_of("this")
        finally:
            del LIMBS["this"]
        return ld.build(robot).limbs is not None
    assert of([3] * 4) and of([20] * 5) and of([8] * 3) and of([3] * 16)
    assert not of([7]) and not of([7, 7]) and not of([1] * 5) and not of([], "floating")


@pytest.mark.parametrize("fails", ["forward", "inverse"])
@pytest.mark.parametrize("name", LIMBS)
def test_nothing_is_left_of_a_state_that_failed(name, fails, monkeypatch):
    """Scratch is kept from call to call and shared: what is not finite must not reach the next state, of either function."""
    model = ld.build(robot_of(name))
    limbs, none = limbs_of(model, monkeypatch), none_prescribed(model)
    (q, *_), (v, *_), (x, *_), _ = states(model)
    functions = {"forward": lambda v, out: forward_of_limbs(limbs, none, q, v, out, x, True),
                 "inverse": lambda v, out: inverse_of_limbs(limbs, q, v, x, True, out)}
    expected, out = {name: np.empty(model.nv) for name in functions}, np.empty(model.nv)
    for then, function in functions.items():
        assert function(v, expected[then]) == checks.OK
    for then, function in functions.items():
        for size in 1e160, 1e200:
            assert functions[fails](np.full(model.nv, size), out) == checks.BAD_RESULT
            assert function(v, out) == checks.OK
            assert_same(out, expected[then])


def test_errors_are_named_as_without():
    model = ld.build(robot_of("alike"))
    assert model.limbs is not None
    q, v, x, _ = (y[0] for y in states(model))
    bad = x.copy()
    bad[7] = np.nan
    with pytest.raises(ConfigurationError, match=r"tau\[7\]"):
        ld.forward_dynamics(model, q, v, bad)
    with pytest.raises(ConfigurationError, match=r"a\[7\]"):
        ld.inverse_dynamics(model, q, v, bad)
    turned = q.copy()
    turned[3:7] *= 2
    with pytest.raises(ConfigurationError, match="quaternion"):
        ld.forward_dynamics(model, turned, v, x)
    with pytest.raises(ComputationError):
        ld.forward_dynamics(model, q, np.full(model.nv, 1e200), x)


def test_copies_of_a_model_compute_the_same_and_carry_no_scratch():
    model = ld.build(robot_of("alike"))
    q, v, x, _ = (y[0] for y in states(model))
    bare = len(pickle.dumps(model))
    expected = ld.forward_dynamics(model, q, v, x)
    ld.higher_order_inverse_dynamics(model, q, np.stack([v, x, v, x]))
    assert len(pickle.dumps(model)) < bare + 100
    for other in pickle.loads(pickle.dumps(model)), copy.deepcopy(model):
        assert_same(ld.forward_dynamics(other, q, v, x), expected)
    heavier = dataclasses.replace(model, constants=model.constants.copy())
    assert heavier._cache == {} and heavier._cache is not model._cache
