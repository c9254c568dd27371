"""One state as 1-d float arrays goes straight to the line: the same numbers and the same errors as by the long way."""
import threading

import numpy as np
import pytest

import liedyn as ld
from liedyn.model.description import Robot
from liedyn.model.links import Link
from rounding import assert_same
from zoo import model_of, state

NAME = "every kind, floating"
CALLS = {
    "mass matrix": (1, ld.mass_matrix),
    "Jacobian": (1, lambda m, q: ld.jacobian(m, q, m.link_names[-1], frame="local_world_aligned")),
    "its derivative": (2, lambda m, q, v: ld.jacobian_derivative(m, q, v, m.link_names[-1])),
    "energy": (2, lambda m, q, v: np.stack(ld.energy(m, q, v), axis=-1)),
    "Coriolis matrix": (2, ld.coriolis_matrix),
    "of Christoffel": (2, lambda m, q, v: ld.coriolis_matrix(m, q, v, method="christoffel")),
    "Christoffel symbols": (1, ld.christoffel_symbols),
    "dM/dq": (1, ld.mass_matrix_derivative),
    "regressor": (3, lambda m, q, v, a: ld.regressor(m, q, v, a, passive=True)),
    "energy regressor": (2, lambda m, q, v: np.stack(ld.energy_regressor(m, q, v), axis=-2)),
    "momentum regressor": (2, ld.momentum_regressor),
}
EVERY = pytest.mark.parametrize("label", CALLS)


def case(label, name=NAME):
    count, function = CALLS[label]
    model = model_of(name)
    x = state(model, 3)[:count]
    function(model, *x)                                   # compiled, and memory for this thread
    return model, function, x


@EVERY
def test_it_takes_the_short_way_and_finds_the_same(label, monkeypatch):
    """Results are bitwise equal, and they belong to the caller."""
    monkeypatch.setenv("LIEDYN_CODE", "auto")
    model, function, x = case(label, "universal")
    expected = function(model, *(list(y) for y in x))
    with monkeypatch.context() as patch:
        patch.delattr("liedyn.dynamics.batching.calls.broadcast_states")
        one, two = function(model, *x), function(model, *x)
    assert_same(one, expected)
    assert one.shape == expected.shape and not np.shares_memory(one, two)


@EVERY
def test_what_is_no_plain_array_goes_the_long_way(label):
    """Read-only, strided, of another type, or with leading axes."""
    model, function, x = case(label)
    expected = function(model, *x)
    frozen = [y.copy() for y in x]
    for y in frozen:
        y.flags.writeable = False
    strided = [np.repeat(y, 2)[::2] for y in x]
    for other in (frozen, strided, [y.astype(object).astype(float).tolist() for y in x], [*x[:-1], list(x[-1])]):
        assert_same(function(model, *other), expected)
    assert_same(function(model, *(y[None] for y in x))[0], expected)
    assert function(model, *(y[None, None] for y in x)).shape[:2] == (1, 1)


@EVERY
def test_wrong_states_are_named(label):
    model, function, x = case(label)
    for wrong in ([y[:-1] for y in x], [*x[:-1], x[-1][:-1]]):
        with pytest.raises(ld.ShapeError, match="has the wrong shape: expected"):
            function(model, *wrong)
    for k, name in enumerate("qva"[:len(x)]):
        bad = [y.copy() for y in x]
        bad[k][1] = np.nan
        with pytest.raises(ld.ConfigurationError, match=rf"{name}\[1\] \(.*\) is not finite: got nan"):
            function(model, *bad)
    with pytest.raises(ld.ConfigurationError, match="not of unit norm"):
        function(model, np.r_[x[0][:3], 2 * x[0][3:7], x[0][7:]], *x[1:])


@EVERY
def test_a_thread_of_its_own(label):
    """Each thread has its workspace: a new one has none, and that of a small robot is too small."""
    model, function, x = case(label)
    expected, found = function(model, *x), []

    def work():
        ld.mass_matrix(model_of("revolute"), state(model_of("revolute"), 1)[0])
        found.extend(function(model, *x) for _ in range(2))
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    for other in found:
        assert_same(other, expected)
    assert len(found) == 2


@EVERY
def test_a_robot_without_joints(label):
    count, function = CALLS[label]
    rock = ld.build(Robot("rock", (Link("rock", 1.0),), ()))
    one = function(rock, *[np.empty(0)] * count)
    assert one.shape == function(rock, *[[]] * count).shape == function(rock, *[np.empty((2, 0))] * count).shape[1:]
