"""An entry of the kernels, recorded as it stands for one robot: what it reads, writes and verifies."""
from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np

from liedyn.codegen.plain import plain
from liedyn.lie.recorded import NotALine, Recorded, Tape, absolute, maximum, zeros
from liedyn.lie.sine import SINCOS_RANGE


@dataclass(frozen=True)
class Array:
    """An array of an entry: rows of `size` numbers, one a state.

    written    the numbers that a state's row holds afterwards, None where it keeps its own
    shared     one row for all states, which is read only
    """

    name: str
    size: int
    written: tuple
    shared: bool = False

    @property
    def results(self) -> list:
        return [x for x in self.written if x is not None]


@dataclass(frozen=True, eq=False)
class Recording:
    """A function of one robot, recorded.

    arrays    of the entry, in its order; those without numbers are left out
    bounds    (x, bound): where x < bound does not hold for a state, what is written is worthless and the line says so
    finite    numbers that must be finite for a state, else the same
    """

    tape: Tape
    arrays: tuple[Array, ...]
    bounds: tuple[tuple[Recorded, float], ...]
    finite: tuple[Recorded, ...]

    @cached_property
    def needed(self) -> list[int]:
        """Operations, in order."""
        results = [x for array in self.arrays for x in array.results]
        return self.tape.needed([*results, *(x for x, _ in self.bounds), *self.finite])

    @property
    def size(self) -> int:
        return len(self.needed)


@dataclass(frozen=True, eq=False)
class Program:
    """Lines that are called one after the other for the same states: what is done several times is one piece of code.

    arrays    of the caller
    calls     lines, and for their arrays that have another name in the program this name; others are passed on by the program
    """

    arrays: tuple[Array, ...]
    calls: tuple[tuple[Recording, dict[str, str]], ...]

    @property
    def lines(self) -> list[Recording]:
        """Each once."""
        return [line for k, (line, _) in enumerate(self.calls) if all(line is not before for before, _ in self.calls[:k])]

    @property
    def size(self) -> int:
        return sum(line.size for line in self.lines)


def alone(line: Recording) -> Program:
    return Program(line.arrays, ((line, {}),))


class Columns(NamedTuple):
    """An array of states (N, …) among the arguments of an entry. shape: of one state."""

    shape: tuple[int, ...]


class Asked(NamedTuple):
    """What a line is asked for: the arguments of an entry but for the numbers of its states.

    entry    module and name below liedyn
    size     numbers of scratch for one state
    before   what the entry takes between scratch and arrays of states
    arrays   `Columns` for an array of states, else the argument
    varying  places in the model's constants that differ from state to state: an array of the line, its last
    """

    entry: str
    size: int
    before: tuple
    arrays: tuple
    varying: tuple[int, ...] = ()

    @property
    def content(self) -> tuple:
        """What tells it from others."""
        return self.entry, tuple(map(_content, self.before)), self.arrays, self.varying


def _content(x):
    return (x.shape, x.tobytes()) if isinstance(x, np.ndarray) else x


def record(model, asked: Asked, library: bool = False) -> Recording | None:
    """None where the entry decides on numbers, which a line cannot. library: see `Tape`."""
    if any(isinstance(x, Columns) and len(x.shape) != 1 for x in asked.arrays):     # directions come before states
        return None
    tape, (module, name) = Tape(library), asked.entry.rsplit(".", 1)
    try:
        function = getattr(plain(module), name)
        names = list(inspect.signature(function).parameters)[3 + len(asked.before):]
        rows = [_row(tape, names[k], x) for k, x in enumerate(asked.arrays)]
        given = [x.copy() if isinstance(x, np.ndarray) else x for x in rows]
        constants = constants_of(tape, model, asked.varying)
        code = function(model.index, constants, zeros(asked.size), *asked.before, *rows, 0, 1)
    except (NotALine, ZeroDivisionError):                    # 0/0 of constants is NaN in loops: no centre of a mass of 0
        return None
    if code != 0 or not any(isinstance(x, np.ndarray) and x.size for x in rows):     # wrong shapes; a robot that cannot move
        return None
    found = [Array(names[k], x.size, written(given[k].flat, x.flat))
             for k, x in enumerate(rows) if isinstance(x, np.ndarray) and x.size]
    if asked.varying:
        found.append(Array(VARYING, len(asked.varying), (None,) * len(asked.varying)))
    return Recording(tape, tuple(found), (*_joined(tape.bounds), *bounds_of_angles(tape)), tuple(tape.finite.values()))


VARYING = "varying"


def constants_of(tape: Tape, model, varying: tuple[int, ...]) -> np.ndarray:
    """Of the robot, those at the places `varying` inputs."""
    if not varying:
        return model.constants
    constants = model.constants.astype(object)
    constants[list(varying)] = tape.inputs(VARYING, len(varying))
    return constants


def _row(tape, name, x):
    if not isinstance(x, Columns):
        return x
    return tape.inputs(name, prod(x.shape)).reshape(1, *x.shape)


def written(before, after) -> tuple:
    """What an array holds afterwards, None where it is as before."""
    return tuple(None if x is y else y if isinstance(y, Recorded) else float(y) for x, y in zip(before, after, strict=True))


def _joined(bounds) -> list:
    """Of numbers with one bound the largest: one comparison."""
    largest: dict[float, Recorded] = {}
    for x, bound in bounds:
        largest[bound] = maximum(x, largest[bound]) if bound in largest else x
    return [(x, bound) for bound, x in largest.items()]


def bounds_of_angles(tape: Tape) -> list:
    """Sine and cosine hold angles up to a size."""
    largest = 0.0
    for x in tape.angles:
        largest = maximum(absolute(x), largest)
    return [] if isinstance(largest, float) else [(largest, SINCOS_RANGE)]


def cut(recording: Recording, late: set[int], array: str) -> list[Recording]:
    """A function in two: what rests on none of the inputs `late` (operations), and the rest. What the second needs of the
    first is left after the numbers of an array, its last."""
    tape, made, used = recording.tape, set(late), set()
    for k in recording.needed:
        rest = tape.rest_of(k)
        if not made.isdisjoint(rest):
            made.add(k)
            used.update(rest)
    place = next(i for i, x in enumerate(recording.arrays) if x.name == array)
    size = recording.arrays[place].size
    left = sorted(k for k in used - made if tape.operations[k][0] != "input")
    second = Tape()
    second.operations = list(tape.operations)
    for i, k in enumerate(left):
        second.operations[k] = "input", array, size + i

    def part(is_late: bool) -> list[Array]:
        def kept(x):
            return x if (isinstance(x, Recorded) and x.k in made) == is_late else None
        return [Array(x.name, x.size, tuple(map(kept, x.written))) for x in recording.arrays]

    first = part(False)
    first[place] = Array(array, size + len(left), (*first[place].written, *(Recorded(tape, k) for k in left)))
    return [Recording(tape, tuple(first), recording.bounds, recording.finite), Recording(second, tuple(part(True)), (), ())]
