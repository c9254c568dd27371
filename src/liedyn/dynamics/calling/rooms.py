"""Memory for the results of batches, taken again once nobody holds any of it.

The system clears fresh memory where it is first touched, and large results are fresh at every call (with glibc those of more than
32 MB): 40 MB of derivatives of a humanoid took 7 us a state, in memory used before 2.5."""
from __future__ import annotations

from ctypes import addressof, c_char
from math import prod
from weakref import ref

import numpy as np

_LARGE = 1 << 19            # numbers: memory of smaller results is kept by the C library
_MOST, _ROOMS = 1 << 25, 4                     # kept at most: numbers, 256 MB; and of how many results
_kept: list[Room] = []


class Memory(np.ndarray):
    """Of a room. Looking for the owner of its memory, an array goes on as long as it meets arrays of its own type."""


class Held(Memory):
    """A view of memory, over which results are made: they hold it, and so does all that is made of them."""


class Room:
    """Uninitialized rows of numbers, the first on a border of cache lines."""

    __slots__ = ("first", "held", "memory", "shape")

    def __init__(self, rows: int, columns: int):
        self.memory = Memory(rows * columns + 8)
        self.first = -addressof(c_char.from_buffer(self.memory)) % 64          # bytes; memory.ctypes.data takes 0.7 us more
        self.shape = rows, columns
        self.held: ref[np.ndarray] = ref(self.memory)                          # the view that results are made over

    def lines_in(self, view: Memory) -> np.ndarray:
        """The rows, for an entry. They hold the view as results do: a thread that still writes keeps the memory from others."""
        return np.ndarray(self.shape, float, view, self.first)


def room_for(shape: tuple[int, ...], rows: int) -> tuple[np.ndarray, np.ndarray]:
    """An uninitialized array, and the same numbers in so many rows for an entry. While the array or any view of it lives, nobody
    else gets the memory."""
    room, view = take_room(rows, prod(shape) // rows if rows else 0)
    return np.ndarray(shape, float, view, room.first), room.lines_in(view)


def take_room(rows: int, columns: int) -> tuple[Room, Memory]:
    """For one result, to be made over the second. While that lives, nobody else gets the memory."""
    if rows * columns <= _LARGE:
        room = Room(rows, columns)
        return room, room.memory
    room = _dropped(rows, columns) or Room(rows, columns)
    view = room.memory.view(Held)
    room.held = ref(view)
    if prod(room.shape) <= _MOST:
        _kept.append(room)
        while len(_kept) > _ROOMS or sum(prod(x.shape) for x in tuple(_kept)) > _MOST:
            del _kept[:1]
    return room, view


def _dropped(rows: int, columns: int) -> Room | None:
    """A room whose last result nobody holds any more. Safe in threads: who removes it has it."""
    for room in tuple(_kept):
        if room.shape == (rows, columns) and room.held() is None:
            try:
                _kept.remove(room)
            except ValueError:                 # another thread has
                continue
            if room.held() is None:            # else another thread had it in between
                return room
    return None
