"""Views in compiled code, made at once."""
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from liedyn import jit
from liedyn.seam.views import flat, span, table


@jit.kernel
def number(x, first, count, k):
    return span(x, first, count)[k]


@jit.kernel
def number_of_slice(x, first, count, k):
    return span(x, first, count)[1:][k]


@jit.kernel
def first_of_span_of_span(x, first, count):
    return span(span(x, first, count), 1, count - 1)[0]


@jit.kernel
def write(x, first, count, k, value):
    span(x, first, count)[k] = value


@jit.kernel
def row_and_cell(x, first, count):
    s = span(x, first, count)
    return s[1, 2], s[1][2], s[-1, 2], s.shape[0], s.size


@jit.kernel
def either(x, first):
    s = x if first < 0 else span(x, first, 3)              # any array, where both can come
    return s[0], s[-1]


ARRAYS = [np.arange(8), np.arange(8.0), np.arange(8) % 3 == 0, np.arange(8, dtype=np.int32)]


@pytest.mark.parametrize("x", ARRAYS, ids=lambda x: x.dtype.name)
def test_numbers_as_numpy_reads_them(x):
    for k in range(3):
        assert number(x, 2, 3, k) == x[2:5][k]
        assert number(x, 2, 3, np.uint8(k)) == x[2 + k]
        assert number_of_slice(x, 2, 4, k) == x[3 + k]
    assert first_of_span_of_span(x, 2, 3) == x[3]
    for k in range(3):
        y, z = x.copy(), x.copy()
        y[2 + k] = 1
        write(z, 2, 3, k, 1)
        np.testing.assert_array_equal(z, y)


def test_rows_of_matrices_are_read_as_of_any_array():
    x = np.arange(24.0).reshape(8, 3)
    assert row_and_cell(x, 2, 4) == (x[3, 2], x[3, 2], x[5, 2], 4, 12)


@jit.callee
def seen(pair, m):
    (x, i) = pair
    numbers = x.size, x.shape[0], x.strides[0], x.itemsize, x[1], i[2]
    return numbers, (m.size, *m.shape, *m.strides), m[1, 2]


@jit.kernel
def sent(x, i, m):
    """Through a call that stays one, also parts of a whole."""
    return (seen((span(x, 0, x.size), span(i, 0, i.size)), span(m, 0, m.shape[0])),
            seen((span(x, 1, 3), span(i, 2, 4)), span(m, 1, 2)))


def test_what_a_call_passes_of_a_span_is_all_that_it_is():
    x, i, m = np.arange(8.0), np.arange(8, dtype=np.int32), np.arange(24.0).reshape(3, 8)
    whole, part = sent(x, i, m)
    assert whole == ((8, 8, 8, 8, 1.0, 2), (24, 3, 8, 64, 8), m[1, 2])
    assert part == ((3, 3, 8, 8, 2.0, 4), (16, 2, 8, 64, 8), m[2, 2])
    whole, _ = sent(x, i, np.arange(12.0).reshape(4, 3))
    assert whole[1:] == ((12, 4, 3, 24, 8), 5.0)


@jit.kernel
def in_a_row(x):
    return flat(x)[5], flat(x).size, flat(x)[1:].sum()


@jit.kernel
def as_table(x, rows, columns, value):
    t = table(x, rows, columns)
    t[1, 2] = value
    return t[0, 1], t[1][0], t.shape[0], t.shape[1], t.sum()


def test_an_array_in_a_row_and_as_a_table():
    for x in (np.arange(12.0), np.arange(12.0).reshape(3, 4), np.arange(12.0).reshape(2, 2, 3)):
        assert in_a_row(x) == (5.0, 12, 66.0)
    x = np.arange(24.0)
    assert as_table(x, 3, 4, 50.0) == (1.0, 4.0, 3, 4, 66.0 + 44.0) and x[6] == 50.0


def test_a_span_or_an_array():
    x = np.arange(8.0)
    assert either(x, -1) == (x[0], x[7]) and either(x, 2) == (x[2], x[4])


CALLS = """
import numpy as np
import liedyn as ld
from test_views import number
from zoo import model_of, state

for name in ("every kind", "every kind, a chain", "every kind, floating", "no passive forces, floating", "a long chain"):
    model = model_of(name)
    for size in ((), (9,)):
        q, v, a, tau = state(model, 0, size)
        for mask in (np.zeros(model.nv, bool), np.arange(model.nv) % 2 == 0, np.arange(model.nv) % 3 > 0):
            ld.hybrid_dynamics(model, q, v, a, tau, mask)
            ld.hybrid_dynamics_derivatives(model, q, v, a, tau, mask)
print("inside")
number(np.ones(8), 2, 3, 5)
"""


def test_no_kernel_reads_outside_of_a_span(tmp_path):
    """Where Numba is told to check, views are checked as any array. Derivatives of hybrid dynamics are made of inverse dynamics,
    its derivatives and M: two entries are compiled for all of them."""
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "LIEDYN_CACHE_DIR": str(tmp_path), "LIEDYN_CODE": "loops",
                   "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[1]), *sys.path])}
    done = subprocess.run([sys.executable, "-c", CALLS], capture_output=True, text=True, timeout=900, env=environment,
                          check=False)
    assert done.stdout == "inside\n", done.stderr
    assert done.stderr.endswith("IndexError: index is out of bounds\n")
