"""The plain fallbacks of the seam compute what the library computes."""
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import liedyn as ld
from liedyn.numba_tools import numba_internals
from liedyn.numba_tools.numba_internals import DISABLED
from zoo import model_of, state

CODE = """
import json
import numpy as np
import liedyn as ld
from liedyn.numba_tools import numba_internals
from zoo import model_of, state

assert not (numba_internals.DISPATCHERS_FOUND or numba_internals.STACK_FOUND or numba_internals.VIEWS_FOUND)
model = model_of("every kind")
q, v, a, _ = state(model, 1, 9)
print(json.dumps(ld.inverse_dynamics(model, q, v, a).tolist()))
"""


def test_they_are_not_taken_here():
    """Otherwise a version of Numba has changed an internal that is used, and all runs are slow: the module names it."""
    assert not DISABLED and numba_internals.DISPATCHERS_FOUND and numba_internals.STACK_FOUND and numba_internals.VIEWS_FOUND


def test_loops_by_the_fallbacks(tmp_path):
    environment = os.environ | {"LIEDYN_NUMBA_INTERNALS": "off", "LIEDYN_CODE": "generic", "LIEDYN_CACHE_DIR": str(tmp_path),
                                "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    model = model_of("every kind")
    q, v, a, _ = state(model, 1, 9)
    expected = ld.inverse_dynamics(model, q, v, a)                        # a batch: views, internal functions, an aligned stack
    np.testing.assert_allclose(json.loads(done.stdout), expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())   # rounding


def test_an_unknown_word_is_refused():
    done = subprocess.run([sys.executable, "-c", "import liedyn.numba_tools.numba_internals"],
                          env=os.environ | {"LIEDYN_NUMBA_INTERNALS": "plan"}, capture_output=True, text=True, timeout=100,
                          check=False)
    assert done.returncode == 1 and "LIEDYN_NUMBA_INTERNALS is not known: expected auto or off, got 'plan'" in done.stderr
