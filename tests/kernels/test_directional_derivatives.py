"""Eight directions of one state, one direction of eight states, several of each: the same numbers, at any position."""
import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from liedyn.dynamics.batching import threads
from rounding import assert_same
from zoo import model_of, state

NAME = "every kind, floating"
MOVED = ("dq", "dv", "da", "dtau")
MASK = slice(None, None, 3)


def directions(model, seed, size):
    """Return dq, …, wrenches and rates of three parameters along the leading axes."""
    rng = np.random.default_rng([seed, 7])
    out = {name: rng.standard_normal((*size, model.nv)) for name in MOVED}
    out["df_ext"] = rng.standard_normal((*size, len(model.link_names), 6))
    out["parameters"] = {name: rng.standard_normal(size) for name in ("mass.link1", "origin.joint2.wy", "gravity.x")}
    return out


def row(given, k):
    return {name: row(x, k) if isinstance(x, dict) else x[k] for name, x in given.items()}


def inverse(model, states, F, given):
    q, v, a, _ = states
    given = {name: x for name, x in given.items() if name != "dtau"}
    return np.array(ld.inverse_dynamics_directional(model, q, v, a, f_ext=F, **given)[1])


def forward(model, states, F, given):
    q, v, _, tau = states
    given = {name: x for name, x in given.items() if name != "da"}
    return np.array(ld.forward_dynamics_directional(model, q, v, tau, f_ext=F, **given)[1])


def hybrid(model, states, F, given):
    mask = np.zeros(model.nv, bool)
    mask[MASK] = True
    return np.concatenate(ld.hybrid_dynamics_directional(model, *states, mask, f_ext=F, **given)[2:], axis=-1)


EVERY = pytest.mark.parametrize("function", [inverse, forward, hybrid])


def setting(count=None):
    model = model_of(NAME)
    size = () if count is None else (count,)
    F = np.random.default_rng(8).standard_normal((*size, len(model.link_names), 6))
    return model, state(model, 9, size), F


@EVERY
def test_eight_directions_of_a_state_equal_one_at_a_time(function):
    """Bitwise, also where their number is not a multiple of eight: lanes are independent."""
    model, states, F = setting()
    given = directions(model, 1, (19,))
    together = function(model, states, F, given)
    assert together.shape[0] == 19
    alone = np.array([function(model, states, F, row(given, k)) for k in range(19)])
    assert_same(together, alone)


@EVERY
def test_directions_of_one_state_equal_those_of_the_state_repeated(function, worst):
    """float64 states with directions on Lanes, and both on Lanes, differ by rounding only (M: condition 1e4)."""
    model, states, F = setting()
    given = directions(model, 2, (9,))
    repeated = [np.repeat(x[None], 9, axis=0) for x in states]
    x, y = function(model, states, F, given), function(model, repeated, F, given)
    assert worst("directions, float64 states against Lanes", relative(x, y)) < 1e-10


@EVERY
def test_a_batch_is_its_states(function, worst):
    model, states, F = setting(19)
    given = directions(model, 3, (19,))
    together = function(model, states, F, given)
    alone = np.array([function(model, [x[k] for x in states], F[k], row(given, k)) for k in range(19)])
    assert worst("directions, batch against single states", relative(together, alone)) < 1e-10
    for count in (1, 7, 8, 17):
        some = function(model, [x[:count] for x in states], F[:count], row(given, slice(count)))
        assert_same(some, together[:count])


@EVERY
def test_leading_axes(function):
    """States (3, 1), directions (5,) or common to all; an empty batch; no direction at all."""
    model, states, F = setting(3)
    states, F = [x[:, None] for x in states], F[:, None]
    given = directions(model, 4, (5,))
    together = function(model, states, F, given)
    assert together.shape[:2] == (3, 5)
    for i, j in ((0, 0), (2, 4)):
        alone = function(model, [x[i, 0] for x in states], F[i, 0], row(given, j))
        assert relative(together[i, j], alone) < 1e-10
    common = function(model, states, F, row(given, 2))
    assert common.shape[:2] == (3, 1) and relative(common[:, 0], together[:, 2]) < 1e-12
    assert function(model, [x[:0] for x in states], F[:0], given).shape[:2] == (0, 5)
    assert function(model, [x[0, 0] for x in states], F[0, 0], directions(model, 4, (0,))).shape[0] == 0
    assert not function(model, states, F, {}).any()


@EVERY
def test_threads_do_not_matter(function, monkeypatch):
    model, states, F = setting(101)
    given = directions(model, 5, (101,))
    expected = function(model, states, F, given)
    monkeypatch.setattr(threads, "_MIN_WORK_PER_THREAD", 1)
    monkeypatch.setattr(threads, "cores", lambda: 3)
    assert_same(function(model, states, F, given), expected)


@EVERY
def test_directions_are_linear(function):
    """The derivative along a sum is the sum of the derivatives, also for parameters."""
    model, states, F = setting()
    given = directions(model, 6, (2,))
    one, two = (function(model, states, F, row(given, k)) for k in range(2))
    both = {name: {n: 2 * y[0] - 3 * y[1] for n, y in x.items()} if isinstance(x, dict) else 2 * x[0] - 3 * x[1]
            for name, x in given.items()}
    assert relative(function(model, states, F, both), 2 * one - 3 * two) < 1e-10


def test_what_is_not_moved_changes_nothing():
    """Zero directions give the same result as omitted ones."""
    model, (q, v, a, _), F = setting()
    dq = directions(model, 7, ())["dq"]
    bare = ld.inverse_dynamics_directional(model, q, v, a, dq=dq, f_ext=F)
    for more in ({"dv": np.zeros(model.nv)}, {"df_ext": {"link1": np.zeros(6)}}, {"parameters": {"mass.link1": 0.0}},
                 {"parameters": {}}):
        for x, y in zip(ld.inverse_dynamics_directional(model, q, v, a, dq=dq, f_ext=F, **more), bare, strict=True):
            assert relative(x, y) < 1e-15
