"""Memory of rows that is given back once they are on disk: else it grows with the length of a run."""
from __future__ import annotations

import mmap
from math import prod

import numpy as np

_LARGE = 1 << 24         # bytes: below, there is nothing to be gained


def zeros(shape: tuple[int, ...]) -> np.ndarray:
    """float64; large ones in a mapping of their own, which takes memory where it is written to."""
    size = 8 * prod(shape)
    if size < _LARGE or not hasattr(mmap, "MADV_DONTNEED"):
        return np.zeros(shape)
    private = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)         # of a shared one nothing is given back
    return np.frombuffer(private, dtype=np.float64).reshape(shape)


def give_back(x: np.ndarray, rows: int) -> None:
    """The first rows of an array of `zeros` are no longer needed: they read as zeros from now on, or stay."""
    mapping = x
    while isinstance(mapping, np.ndarray):
        mapping = mapping.base
    mapping = mapping.obj if isinstance(mapping, memoryview) else mapping
    size = rows * x.strides[0] // mmap.PAGESIZE * mmap.PAGESIZE if isinstance(mapping, mmap.mmap) else 0
    if size:
        mapping.madvise(mmap.MADV_DONTNEED, 0, size)
