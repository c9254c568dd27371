"""Memory for the results of batches, taken again once nobody holds any of it.

The system clears fresh memory where it is first touched, and large results are fresh at every call (with glibc those of more than
32 MB): 40 MB of derivatives of a humanoid took 7 us a state, in memory used before 2.5."""
from __future__ import annotations

from math import prod
from weakref import ref

import numpy as np

_LARGE = 1 << 19            # numbers: memory of smaller results is kept by the C library
_MOST, _ROOMS = 1 << 25, 12                    # kept at most: numbers, 256 MB; and of how many results
_kept: list[Room] = []


class Memory(np.ndarray):
    """Of a room. Looking for the owner of its memory, an array goes on as long as it meets arrays of its own type."""


class Held(Memory):
    """A view of memory, over which a result is made: it holds it, and so does all that is made of it."""


class Room:
    """Uninitialized numbers, and the view that the last result was made over."""

    __slots__ = ("held", "memory", "size")

    def __init__(self, size: int):
        self.memory, self.size = Memory(size), size
        self.held: ref[np.ndarray] = ref(self.memory)


def room_for(shape: tuple[int, ...]) -> np.ndarray:
    """An uninitialized array. While it or any view of it lives, nobody else gets its memory."""
    size = prod(shape)
    if size <= _LARGE:
        return np.empty(shape)
    room = _dropped(size) or Room(size)
    view = room.memory.view(Held)
    room.held = ref(view)
    if size <= _MOST:
        _kept.append(room)
        while len(_kept) > _ROOMS or sum(x.size for x in tuple(_kept)) > _MOST:
            del _kept[:1]
    return np.ndarray(shape, float, view)


def _dropped(size: int) -> Room | None:
    """A room whose last result nobody holds any more. Safe in threads: who removes it has it."""
    for room in tuple(_kept):
        if room.size == size and room.held() is None:
            try:
                _kept.remove(room)
            except ValueError:                 # another thread has
                continue
            if room.held() is None:            # else another thread had it in between
                return room
    return None
