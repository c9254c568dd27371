"""Runs a piece of compiled algebra on both kinds of number."""
import numpy as np

from liedyn.numba_tools.decorators import kernel

probe = kernel                 # to be called by tests; the next run of the suite loads it
KINDS = ("float64", "Lanes")


def evaluate(function, rows, n_out: int, kind: str) -> np.ndarray:
    """function(x, y) of every row of `rows` (N, n): reads x, writes y (n_out). On Lanes, eight rows at a time."""
    rows = np.ascontiguousarray(np.atleast_2d(rows), dtype=float)
    out = np.empty((len(rows), n_out))
    if kind == "float64":
        for x, y in zip(rows, out, strict=True):
            function(x, y)
        return out
    for k in range(0, len(rows), 8):
        part = rows[k:k + 8]
        block = np.repeat(part[-1:], 8, axis=0)
        block[:len(part)] = part
        y = np.empty((n_out, 8))
        function(np.ascontiguousarray(block.T), y)
        out[k:k + 8] = y.T[:len(part)]
    return out
