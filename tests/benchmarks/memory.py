"""Results in new arrays, compared with those in `out=`. A process of its own, which may return memory to the system."""
from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np

import liedyn as ld
from benchmarks.measure import pin_to_one_core, side_by_side

STATES = (64, 512, 4096, 20_000)


def against_out(states: tuple[int, ...] = STATES, repeats: int = 15) -> list[tuple[str, int, float, float, float]]:
    """(function, states, MB of results, us a state, ratio to `out=`) of a Panda, from another process."""
    code = f"import json; from benchmarks import memory; print(json.dumps(memory.measured({states!r}, {repeats})))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    return [tuple(row) for row in json.loads(done.stdout)]


def measured(states: tuple[int, ...], repeats: int) -> list[tuple[str, int, float, float, float]]:
    """`against_out` in this process."""
    pin_to_one_core()
    model, rng, rows = ld.load("robots/panda.yaml"), np.random.default_rng(0), []
    for count in states:
        q, (v, x) = ld.random_configuration(model, rng, count), rng.standard_normal((2, count, model.nv))
        for function, inputs in ((ld.inverse_dynamics, (q, v, x)), (ld.mass_matrix, (q,)),
                                 (ld.forward_dynamics_derivatives, (q, v, x))):
            def new(function=function, inputs=inputs):
                return function(model, *inputs)
            result = new()
            out = tuple(map(np.empty_like, result)) if isinstance(result, tuple) else np.empty_like(result)
            size = sum(y.nbytes for y in (out if isinstance(out, tuple) else (out,)))
            del result
            pair = side_by_side(lambda new=new: len(new()), lambda function=function, inputs=inputs, out=out: len(
                function(model, *inputs, out=out)), repeats)
            rows.append((function.__name__, count, size / 1e6, pair.ours / count * 1e6, 1.0 / pair.ratio))
    return rows
