"""The numbers that the loop over a run carries from chunk to chunk, by name: to be saved, and put back in another process.

A run that goes on with the same numbers goes on bit for bit, so all arrays that are written during a run are among them.
"""
from __future__ import annotations

import numpy as np

from liedyn.kernels.loops.desk import HEADER


def numbers_of(**carried) -> dict[str, np.ndarray]:
    """All arrays in tuples of arrays and tuples, by their places: {"state.0": …}. Not copied."""
    found: dict[str, np.ndarray] = {}
    for name, x in carried.items():
        if isinstance(x, np.ndarray):
            found[name] = x
        elif isinstance(x, tuple):
            found |= numbers_of(**{f"{name}.{k}": one for k, one in enumerate(x)})
    return found


def put_back(saved, **carried) -> None:
    """The numbers of `numbers_of` into arrays of the same names and shapes."""
    for name, x in numbers_of(**carried).items():
        x[...] = saved[name]


def put_back_constraints(saved, ties) -> None:
    """The same of `ties`, a LoopPlant or None: the header of the desk has addresses of this process."""
    if ties is not None:
        header = ties.desk[:HEADER].copy()
        put_back(saved, ties=ties)
        ties.desk[:HEADER] = header
