"""Memory for the results of batches, taken again once nobody holds any of it.

The system clears fresh memory where it is first touched, and large results are fresh at every call (with glibc those of more than
32 MB): 40 MB of derivatives of a humanoid took 7 us a state, in memory used before 2.5."""
from __future__ import annotations

import sys
from ctypes import addressof, c_char
from math import prod
from sys import getrefcount

import numpy as np

from liedyn.lie.blocks import CACHED

# Smaller results than CACHED are left to the C library, which keeps their memory. Larger ones are best written past the caches,
# but not where memory is fresh: it has just been cleared through them.
_MOST, _ROOMS = 1 << 25, 4                     # kept at most: numbers, 256 MB; and of how many results
_COUNTS = getattr(sys, "_is_gil_enabled", lambda: True)()      # else references are not counted at once
_kept: list[Room] = []


class Room:
    """Uninitialized rows of numbers, the first on a border of cache lines."""

    __slots__ = ("first", "lines", "past", "raw")

    def __init__(self, rows: int, columns: int):
        self.raw = np.empty(rows * columns + 8)
        self.first = -addressof(c_char.from_buffer(self.raw)) % 64             # bytes; raw.ctypes.data takes 0.7 us more
        self.lines = np.ndarray((rows, columns), float, self.raw, self.first)  # for entries alone: not to be given away
        self.past = False                                                      # whether to be written past the caches


def room_for(shape: tuple[int, ...], rows: int) -> tuple[np.ndarray, np.ndarray, bool]:
    """An uninitialized array, the same numbers in so many rows for an entry, and whether these are to be written past the caches.
    While the array or any view of it lives, nobody else gets the memory."""
    room = take_room(rows, prod(shape) // rows if rows else 0)
    array = np.ndarray(shape, float, room.raw, room.first)
    keep_room(room)
    return array, room.lines, room.past


def take_room(rows: int, columns: int) -> Room:
    """For one result, nobody else's; once there are arrays in it, `keep_room`. Safe in threads: who removes it has it."""
    if rows * columns > CACHED:
        for room in tuple(_kept):
            if room.lines.shape == (rows, columns) and getrefcount(room.raw) == _NOBODY:
                try:
                    _kept.remove(room)
                except ValueError:                                             # another thread has
                    continue
                if getrefcount(room.raw) == _NOBODY:
                    room.past = columns % 8 == 0
                    return room
    return Room(rows, columns)


def keep_room(room: Room) -> None:
    """For the next result like this, when the arrays in it are gone."""
    if CACHED < room.lines.size <= _MOST and _COUNTS:
        _kept.append(room)
        while len(_kept) > _ROOMS or sum(x.lines.size for x in tuple(_kept)) > _MOST:
            del _kept[:1]


_one = Room(1, 8)
_NOBODY = getrefcount(_one.raw)
