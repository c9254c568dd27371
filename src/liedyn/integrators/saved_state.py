"""The numbers that the loop over a run carries from chunk to chunk, by name: to be saved, and put back in another process.

A run that goes on with the same numbers goes on bit for bit, so all arrays that are written during a run are among them.
"""
from __future__ import annotations

import json
from collections import deque

import numpy as np

from liedyn.kernels.loops.desk import HEADER

TEXT = "text"             # the name of what is no array


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


def text_of(sides, switches=None, **more) -> dict[str, np.ndarray]:
    """What is no array: whether loops have taken over, cuts and notes of the switches, and `more`."""
    text = {"loops": sides.line is None, **more}
    if switches is not None:
        text |= {"cuts": [list(one) for one in switches.cuts], "notes": list(switches.notes.items())}
    return {TEXT: np.array(json.dumps(text))}


def put_back_text(saved, sides, switches=None) -> dict:
    """Returns the text."""
    text = json.loads(str(saved[TEXT]))
    if text["loops"] and sides.line is not None:
        sides.turn_to_loops()
    if switches is not None:
        switches.cuts = [deque(one, maxlen=cuts.maxlen) for one, cuts in zip(text["cuts"], switches.cuts, strict=True)]
        switches.notes = dict(map(tuple, text["notes"]))
    return text
