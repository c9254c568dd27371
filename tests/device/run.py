"""Checks and speed of `ld.to_device` on the GPUs of a machine, in a few minutes: python tests/device/run.py [opencl | cuda …].

Prints for each robot, function and type of numbers: time of compilation, errors against this processor, states per second, and
whether two runs agree bit for bit. The exit status is 1 if a result is wrong.
"""
from __future__ import annotations

import sys
import time

import numpy as np

import liedyn as ld

ROBOTS = "panda", "quadruped", "humanoid"
FUNCTIONS = "inverse_dynamics", "forward_dynamics", "forward_dynamics_derivatives"
STATES, CHECKED, REPEATED = 1 << 20, 4096, 20
DOUBLE = 1e-9              # of the largest number of a state: states of the humanoid are badly conditioned
SINGLE = 1e-4              # median over states


def on_device(name, arrays):
    """Return arrays of the device in Fortran order."""
    if name == "opencl":
        import pyopencl as cl
        import pyopencl.array
        queue = cl.CommandQueue(cl.create_some_context(interactive=False))
        return queue, [pyopencl.array.to_device(queue, x) for x in arrays], queue.finish
    import cupy
    return "cuda", [cupy.asarray(x) for x in arrays], cupy.cuda.Device().synchronize


def relative_errors(results, expected):
    """Return the error of each state, relative to its largest number."""
    pairs = [(x.get().reshape(CHECKED, -1), y.reshape(CHECKED, -1)) for x, y in zip(results, expected, strict=True)]
    return np.max([np.abs(x - y).max(axis=1) / np.abs(y).max(axis=1) for x, y in pairs], axis=0)


def as_tuple(x):
    return x if isinstance(x, tuple) else (x,)


def check(name, robot, function, dtype):
    """Run one function. Return whether its results are right."""
    model, rng = ld.load(f"robots/{robot}.yaml"), np.random.default_rng(0)
    q = ld.random_configuration(model, rng, STATES)
    rates = rng.standard_normal((2, STATES, model.nv))
    target, arrays, wait = on_device(name, [np.asfortranarray(x, dtype=dtype) for x in (q, *rates)])
    start = time.perf_counter()
    compute = ld.to_device(model, target, dtype=dtype).function(function)
    compiled = time.perf_counter() - start
    few = [x[:CHECKED] for x in (q, *rates)]
    first, second = (as_tuple(compute(*(np.asarray(x, dtype=dtype) for x in few))) for _ in range(2))
    errors = relative_errors(first, as_tuple(getattr(ld, function)(model, *few)))
    equal = all(np.array_equal(x.get(), y.get(), equal_nan=True) for x, y in zip(first, second, strict=True))
    compute(*arrays)
    wait()
    start = time.perf_counter()
    for _ in range(REPEATED):
        compute(*arrays)
    wait()
    speed = STATES * REPEATED / (time.perf_counter() - start)
    is_right = equal and bool(errors.max() < DOUBLE if dtype == "float64" else np.nanmedian(errors) < SINGLE)
    conclusion = ("right" if is_right else "WRONG") + ("" if equal else ", differs between runs")
    print(f"{name:7}{robot:11}{function:30}{dtype:9}{compiled:7.1f} s  median {np.nanmedian(errors):.1e}, "
          f"worst {np.nanmax(errors):.1e}, NaN {np.isnan(errors).sum()}  {speed:.3g} states/s  {conclusion}", flush=True)
    return is_right


def main():
    names = sys.argv[1:] or ["opencl", "cuda"]
    results = [check(name, robot, function, dtype) for name in names for robot in ROBOTS for function in FUNCTIONS
               for dtype in ("float64", "float32")]
    return not all(results)


if __name__ == "__main__":
    sys.exit(main())
