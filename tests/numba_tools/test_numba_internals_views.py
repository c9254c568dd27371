"""Views in compiled code, made at once."""
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from liedyn.numba_tools import decorators
from liedyn.numba_tools.numba_internals import split_workspace

ARRAYS = [np.arange(12), np.arange(12.0), np.arange(12) % 3 == 0, np.arange(12, dtype=np.int32)]


@decorators.kernel
def numbers(x, first, count, k):
    _, part, rest = split_workspace(x, (first, count))
    return part[k], part[-1], part.size, part[1:][k], rest[k], rest.size


@decorators.kernel
def write(x, first, count, k, value):
    split_workspace(x, (first, count))[1][k] = value


@pytest.mark.parametrize("x", ARRAYS, ids=lambda x: x.dtype.name)
def test_numbers_as_numpy_reads_them(x):
    for k in range(3):
        assert numbers(x, 2, 4, k) == (x[2 + k], x[5], 4, x[3 + k], x[6 + k], 6) == numbers.py_func(x, 2, 4, k)
        y, z = x.copy(), x.copy()
        y[2 + k] = 1
        write(z, 2, 4, k, 1)
        np.testing.assert_array_equal(z, y)


@decorators.kernel
def rows(x, first, count):
    _, s, rest = split_workspace(x, (first, count))
    return s[1, 2], s[1][2], s[-1, 2], s.shape[0], s.size, rest.shape[0], rest[0, 0]


def test_rows_of_matrices_are_read_as_of_any_array():
    x = np.arange(24.0).reshape(8, 3)
    assert rows(x, 2, 4) == (x[3, 2], x[3, 2], x[5, 2], 4, 12, 2, x[6, 0])


@decorators.internal_kernel
def seen(pair, m):
    (x, i) = pair
    found = x.size, x.shape[0], x.strides[0], x.itemsize, x[1], i[2]
    return found, (m.size, *m.shape, *m.strides), m[1, 2]


@decorators.kernel
def sent(x, i, m):
    """Through a call that stays one, also parts of a whole."""
    return (seen((split_workspace(x, (x.size,))[0], split_workspace(i, (i.size,))[0]), split_workspace(m, (m.shape[0],))[0]),
            seen((split_workspace(x, (1, 3))[1], split_workspace(i, (2, 4))[1]), split_workspace(m, (1, 2))[1]))


def test_what_a_call_passes_of_a_view_is_all_that_it_is():
    x, i, m = np.arange(8.0), np.arange(8, dtype=np.int32), np.arange(24.0).reshape(3, 8)
    whole, part = sent(x, i, m)
    assert whole == ((8, 8, 8, 8, 1.0, 2), (24, 3, 8, 64, 8), m[1, 2])
    assert part == ((3, 3, 8, 8, 2.0, 4), (16, 2, 8, 64, 8), m[2, 2])


@decorators.kernel
def either(x, first):
    s = x if first < 0 else split_workspace(x, (first, 3))[1]              # any array, where both can come
    return s[0], s[-1]


def test_a_view_or_an_array():
    x = np.arange(8.0)
    assert either(x, -1) == (0.0, 7.0) and either(x, 2) == (2.0, 4.0)


CALLS = """
import numpy as np
import liedyn as ld
from test_numba_internals_views import numbers
from zoo import model_of, state

for name in ("every kind", "every kind, a chain", "every kind, floating", "no passive forces, floating", "a long chain"):
    model = model_of(name)
    for size in ((), (9,)):
        q, v, a, tau = state(model, 0, size)
        for mask in (np.zeros(model.nv, bool), np.arange(model.nv) % 2 == 0, np.arange(model.nv) % 3 > 0):
            ld.hybrid_dynamics(model, q, v, a, tau, mask)
            ld.hybrid_dynamics_derivatives(model, q, v, a, tau, mask)
print("inside")
numbers(np.ones(8), 2, 3, 5)
"""


def test_no_kernel_reads_outside_of_a_view(tmp_path):
    """Where Numba is told to check, views are checked as any array. Derivatives of hybrid dynamics are made of inverse dynamics,
    its derivatives and M: two entries are compiled for all of them."""
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "LIEDYN_CACHE_DIR": str(tmp_path), "LIEDYN_CODE": "generic",
                   "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[1]), *sys.path])}
    done = subprocess.run([sys.executable, "-c", CALLS], capture_output=True, text=True, timeout=900, env=environment,
                          check=False)
    assert done.stdout == "inside\n", done.stderr
    assert done.stderr.endswith("IndexError: index is out of bounds\n")
