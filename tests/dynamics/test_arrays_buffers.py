"""Memory of results: no one gets what somebody holds any of, whoever calls; what is dropped is taken again."""
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import liedyn as ld
from liedyn.dynamics.batching import arrays
from liedyn.integrators.batch_integrator import BatchOutputs
from rounding import assert_same
from zoo import model_of, state

NAME = "every kind, floating"
MODEL = model_of(NAME)
MASK = np.arange(MODEL.nv) % 3 == 0
CALLS = {
    "inverse": lambda q, v, a, tau: ld.inverse_dynamics_derivatives(MODEL, q, v, a),
    "forward": lambda q, v, a, tau: ld.forward_dynamics_derivatives(MODEL, q, v, tau),
    "hybrid": lambda q, v, a, tau: ld.hybrid_dynamics_derivatives(MODEL, q, v, a, tau, MASK)[:3],
    "regressor": lambda q, v, a, tau: (ld.regressor(MODEL, q, v, a),),
    "M": lambda q, v, a, tau: (ld.mass_matrix(MODEL, q),),
    "M^-1": lambda q, v, a, tau: (ld.inverse_mass_matrix(MODEL, q),),
    "C": lambda q, v, a, tau: (ld.coriolis_matrix(MODEL, q, v),),
    "symbols": lambda q, v, a, tau: (ld.christoffel_symbols(MODEL, q),),
}
EVERY = pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
HOLDERS = {
    "all": lambda results: results,
    "one of them": lambda results: results[0],
    "a part": lambda results: results[0][3, 2:],
    "transposed": lambda results: results[0][5].T,
    "diagonal": lambda results: results[0][5].diagonal(),
    "other shape": lambda results: results[0][2:4, :, None],
    "other type": lambda results: results[0].view(np.int64),
    "memoryview": lambda results: memoryview(results[0]),
    "iterator": lambda results: iter(results[0]),
}


def states(seed, count=19):
    return state(MODEL, seed, (count,))


@pytest.fixture(autouse=True)
def all_large_nothing_kept(monkeypatch):
    monkeypatch.setattr(arrays, "_pool", [])
    monkeypatch.setattr(arrays, "_MIN_POOLED_SIZE", 0)


def place(array) -> int:
    return array.__array_interface__["data"][0]


@EVERY
@pytest.mark.parametrize("hold", HOLDERS.values(), ids=HOLDERS)
def test_what_is_held_stays(call, hold):
    results = call(*states(1))
    held, copies, there = hold(results), tuple(x.copy() for x in results), place(results[0])
    expected = hold(copies)
    del results
    others = [call(*states(seed)) for seed in range(2, 9)]
    assert there not in {place(x) for other in others for x in other}
    for x, y in zip(_arrays(held), _arrays(expected), strict=True):
        np.testing.assert_array_equal(x, y)


@EVERY
def test_what_a_result_lies_in_stays_too(call):
    memory = call(*states(1))[0].base[8:-8]
    copy = memory.copy()
    others = [call(*states(seed)) for seed in range(2, 9)]
    assert not any(np.shares_memory(memory, x) for other in others for x in other)
    np.testing.assert_array_equal(memory, copy)


def _arrays(held):
    return held if isinstance(held, tuple) or hasattr(held, "__next__") else (np.asarray(held),)


@EVERY
def test_what_is_dropped_is_taken_again(call):
    first = call(*states(1))
    dropped = {place(x) for x in first}
    second = call(*states(2))
    assert not dropped & {place(x) for x in second}
    del first
    for seed in (3, 4):                                          # and dropped at once
        assert {place(x) for x in call(*states(seed))} == dropped
    assert_same(second[0], call(*states(2))[0])


def test_the_last_used_memory_is_taken_first():
    first, second = (arrays.acquire_buffer((8, 16)) for _ in range(2))
    places = place(first), place(second)
    del first
    del second
    assert place(arrays.acquire_buffer((8, 16))) == places[1]
    held = [arrays.acquire_buffer((8, 16)) for _ in range(2)]
    assert [place(x) for x in held] == [places[1], places[0]]


def in_pool(x):
    """Whether an array lies in memory of a buffer."""
    while x is not None and not isinstance(x, arrays.ResultMemory):
        x = x.base
    return x is not None


def rollout_rows(*_):
    out = BatchOutputs.allocate(3, 4, 5, 6, 7)
    return out.q, out.v, out.forces, out.supplied_energy


BATCHES = {
    "hybrid dynamics": lambda q, v, a, tau: ld.hybrid_dynamics(MODEL, q, v, a, tau, MASK),
    "forward dynamics": lambda q, v, a, tau: (ld.forward_dynamics(MODEL, q, v, tau),),
    "one tau for all": lambda q, v, a, tau: (arrays.broadcast_states(MODEL, {"q": q, "tau": tau[0]})[1]["tau"],),
    "rollout": rollout_rows,
}


@pytest.mark.parametrize("call", BATCHES.values(), ids=BATCHES)
def test_results_of_batches_are_in_the_pool(call):
    assert all(map(in_pool, call(*states(1))))


@EVERY
def test_other_sizes_have_other_memory(call):
    """Another number of states may need the same memory in blocks of eight. Results must be right in each case."""
    for count in (19, 20, 25, 8, 19, 1, 40):
        given = states(5, count)
        for x, y in zip(call(*given), call(*(np.repeat(x, 2, axis=0) for x in given)), strict=True):
            assert_same(x, y[::2])


@EVERY
def test_results_are_the_same_in_memory_used_before(call):
    given = states(6, 205)
    expected = call(*given)
    for _ in range(2):                                           # fresh memory, and the same again
        found = call(*given)
        for x, y in zip(found, expected, strict=True):
            assert_same(x, y)
        assert place(found[0]) != place(expected[0])
        del found, x


@EVERY
def test_a_call_that_fails_leaves_its_memory_to_others(call):
    given = states(7)
    there = place(call(*given)[0])
    bad = [x.copy() for x in given]
    bad[0][4, -1] = np.nan
    with pytest.raises(ld.ConfigurationError):
        call(*bad)
    assert place(call(*given)[0]) == there


def test_no_two_threads_have_the_same_memory():
    jobs = [(call, states(seed, 11)) for seed in range(5) for call in CALLS.values()]
    expected = [call(*given) for call, given in jobs]

    def work(k):
        held = []
        for turn in range(40):
            j = (k + turn) % len(jobs)
            call, given = jobs[j]
            held.append((call(*given), expected[j]))
            if len(held) > k % 4:
                for found, right in held:
                    for x, y in zip(found, right, strict=True):
                        assert_same(x, y)
                held.clear()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(16)))


def test_little_is_kept(monkeypatch):
    monkeypatch.setattr(arrays, "_MAX_POOL_SIZE", 1000)
    monkeypatch.setattr(arrays, "_MAX_POOL_BUFFERS", 4)
    for rows in (8, 16, 24, 32, 40, 8, 16):
        arrays.acquire_buffer((rows, 8))
        assert len(arrays._pool) <= arrays._MAX_POOL_BUFFERS and sum(x.size for x in arrays._pool) <= 1000
    assert [x.size for x in arrays._pool] == [256, 320, 64, 128]
    arrays.acquire_buffer((126, 8))
    assert [x.size for x in arrays._pool] == [256, 320, 64, 128]      # not kept, nor at others' cost
    arrays.acquire_buffer((104, 8))
    assert [x.size for x in arrays._pool] == [128, 832]


def test_small_results_are_left_to_the_c_library(monkeypatch):
    monkeypatch.setattr(arrays, "_MIN_POOLED_SIZE", 100)
    assert in_pool(arrays.acquire_buffer((8, 16)))
    arrays._pool.clear()
    arrays.acquire_buffer((8, 8))
    assert not arrays._pool
