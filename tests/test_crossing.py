"""Entries of one signature check their arguments themselves: what Numba refuses they refuse, by a TypeError."""
import sys

import numpy as np
import pytest
from numba.core.errors import NumbaError

import liedyn as ld
from liedyn import jit
from liedyn.dynamics.calling.calls import NONE
from liedyn.kernels.recursions.hybrid import hybrid_one
from zoo import model_of, state


def read_only(x):
    x = x.copy()
    x.flags.writeable = False
    return x


WRONG = {
    "one axis more": lambda x: x[None],
    "no axis": lambda x: np.array(1.0),
    "strided": lambda x: np.repeat(x, 2)[::2],
    "reversed": lambda x: x[::-1],
    "read-only": read_only,
    "of another type": lambda x: x.astype(np.float32),
    "of the same size": lambda x: x.astype(np.int64),
    "of another byte order": lambda x: x.astype(x.dtype.newbyteorder("S") if x.dtype != bool else ">i2"),
    "complex": lambda x: x.astype(complex),
    "of objects": lambda x: x.astype(object),
    "a list": lambda x: x.tolist(),
    "a tuple": lambda x: tuple(x),
    "a number": lambda x: 1.0,
    "bytes": lambda x: x.tobytes(),
    "nothing": lambda x: None,
    "the class": lambda x: np.ndarray,
}


def arguments():
    model = model_of("universal")
    q, v, a, tau = state(model)
    ld.forward_dynamics(model, q, v, tau)                              # compiled
    return [model.machine, np.arange(model.nv) % 2 == 0, q, v, a, tau, NONE, True]


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("place", range(1, 6))
def test_what_is_refused(wrong, place):
    given = arguments()
    given[place] = WRONG[wrong](given[place])
    with pytest.raises(TypeError):
        hybrid_one.direct(*given)
    with pytest.raises((TypeError, NumbaError)):                       # Numba 0.60 has an error of its own for byte orders
        hybrid_one(*given)


def test_both_ways_in_give_the_same():
    given, other = arguments(), arguments()
    assert hybrid_one.direct(*given) == hybrid_one(*other) == 0
    for x, y in zip(given, other, strict=True):
        np.testing.assert_array_equal(x, y)


def test_too_few_and_too_many_arguments():
    given = arguments()
    for wrong in (given[:-1], [*given, 1.0], []):
        with pytest.raises(TypeError):
            hybrid_one.direct(*wrong)


def test_no_reference_is_kept():
    given = arguments()
    wrong = [*given[:5], given[5][None], *given[6:]]
    before = [sys.getrefcount(x) for x in given[:6]]
    for _ in range(100):
        hybrid_one.direct(*given)
        with pytest.raises(TypeError):
            hybrid_one.direct(*wrong)
    assert [sys.getrefcount(x) for x in given[:6]] == before


def test_direct_is_shut_until_prepared():
    entry = jit.entry("f8(f8[::1])")(_first)
    with pytest.raises(TypeError, match="not compiled yet"):
        entry.direct(np.ones(3))
    jit.prepare(entry)
    assert entry.direct(np.arange(3.0) + 5.0) == 5.0


def _first(x):
    return x[0]
