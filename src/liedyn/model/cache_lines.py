"""Arrays on a border of cache lines. Kernels take eight numbers at a time, which from any other place cost two lines."""
from __future__ import annotations

from ctypes import addressof, c_char

import numpy as np

_LINE, _PAGE = 64, 1 << 21       # bytes


def on_cache_lines(count: int, at: int = 0, make=np.zeros) -> np.ndarray:
    """`count` numbers of which number `at` begins a line."""
    return _from_border(make(count + _LINE // 8), count, at, _LINE)


def on_large_pages(count: int) -> np.ndarray:
    """`count` numbers, uninitialized, from a border of large pages on, for which NumPy asks from 4 MB on; only what is touched
    takes memory. Places in the caches are then as even as addresses, and these are looked up once for all: batches of
    derivatives are 1 to 5% faster."""
    return _from_border(np.empty(count + 2 * _PAGE // 8), count, 0, _PAGE)


def _from_border(raw, count, at, border):
    address = addressof(c_char.from_buffer(raw))             # raw.ctypes.data takes 0.7 us more
    first = -(address + 8 * at) % border // 8
    return raw[first:first + count]
