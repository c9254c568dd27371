"""Views in compiled code, made at once."""
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import liedyn as ld
from bridge import relative
from liedyn.codegen.trace import traced_module
from liedyn.numba_tools import decorators
from liedyn.numba_tools.numba_internals import split_workspace
from zoo import model_of, state

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


OUTSIDE = """
import numpy as np
from test_numba_internals_views import numbers

print(numbers(np.ones(8), 2, 3, 1)[0])
numbers(np.ones(8), 2, 3, 5)
"""


def test_reading_outside_of_a_view_is_an_error_where_numba_checks(tmp_path):
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "LIEDYN_CACHE_DIR": str(tmp_path),
                   "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[1]), *sys.path])}
    done = subprocess.run([sys.executable, "-c", OUTSIDE], capture_output=True, text=True, timeout=900, env=environment,
                          check=False)
    assert done.stdout == "1.0\n", done.stderr
    assert done.stderr.endswith("IndexError: index is out of bounds\n")


@pytest.mark.parametrize("name", ["every kind", "every kind, a chain", "every kind, floating", "no passive forces, floating",
                                  "a long chain"])
def test_no_kernel_reads_outside_of_a_view(name, worst):
    """In plain Python, where views are slices of a workspace of the exact size. Compilation with checks would take 40 s.

    Derivatives of hybrid dynamics consist of inverse dynamics, its derivatives and M.
    """
    model = model_of(name)
    (q, v, a, tau), (index, constants, *_) = state(model, 0), model._arrays
    tree, n, nv = traced_module("joints.joint_model").tree_views(index, constants), model.n_bodies, model.nv
    couplings = traced_module("kernels.couplings").coupling_views(index, constants)
    dynamics, derivatives = (traced_module(f"kernels.{name}") for name in ("hybrid_dynamics", "hybrid_dynamics_derivatives"))
    passive, no_wrenches = model.has_passive_forces, np.zeros(0)
    for mask in (np.zeros(nv, bool), np.arange(nv) % 2 == 0, np.arange(nv) % 3 > 0):
        found, expected = (a.copy(), tau.copy()), ld.hybrid_dynamics(model, q, v, a, tau, mask)
        dynamics.complete_motion(tree, mask, q, v, *found, no_wrenches, passive,
                                 dynamics.hybrid_workspace(np.zeros(dynamics.hybrid_workspace_size(n, nv)), n, nv))
        assert worst("kernels in plain Python", max(map(relative, found, expected)), name) < 1e-10
        memory, blocks = np.zeros(derivatives.hybrid_derivatives_workspace_size(n, nv)), np.zeros((3, nv * nv))
        derivatives.hybrid_derivatives(tree, couplings, mask, q, v, a.copy(), tau.copy(), no_wrenches, passive, *blocks,
                                       dynamics.mass_matrix_workspace(memory, nv))
        expected = ld.hybrid_dynamics_derivatives(model, q, v, a, tau, mask)
        for block, x in zip(blocks, (expected.dy_dq, expected.dy_dv, expected.dy_du), strict=True):
            assert worst("derivatives in plain Python", relative(block.reshape(nv, nv), x), name) < 1e-9
