"""Integers in the memory of a block (see `blocks`)."""
import numpy as np
from numba.extending import overload


def integers(memory): ...


@overload(integers, inline="always")
def _integers(memory):
    """(memory as int64,): at least as many as it has numbers. A tuple, since compiled functions without reference counts cannot
    return a view alone."""
    if memory.ndim == 1:
        return lambda memory: (memory.view(np.int64),)
    return lambda memory: (memory.reshape(memory.size).view(np.int64),)
