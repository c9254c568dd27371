"""A long line in segments. Code that is larger than the cache beside the processor comes from afar at every run: each segment
goes over a few blocks of states before the next, and leaves what later ones rest on."""
from __future__ import annotations

from dataclasses import dataclass

from liedyn.codegen.recording import Recording
from liedyn.lie.recorded import Recorded

SEGMENT = 45_000           # operations, for 400 kB of code: caches beside a processor hold 512 kB and more


@dataclass(frozen=True)
class Segment:
    """operations   places on the tape, in order; inputs first
    loaded       operations of earlier segments, and where they were kept
    kept         operations that later ones rest on, and where
    bounds       those of the recording: of the last one
    """

    operations: list[int]
    loaded: dict[int, int]
    kept: dict[int, int]
    bounds: list[tuple[Recorded, float]]


def whole(recording: Recording) -> Segment:
    return Segment(recording.needed, {}, {}, list(recording.bounds))


def segments(recording: Recording, late: bool = False) -> list[Segment]:
    """Of about the same length. late: the last one has all results at hand, since what is read must not be written earlier."""
    tape = recording.tape
    made = [k for k in recording.needed if tape.operations[k][0] != "input"]
    count = -(-len(made) // SEGMENT)
    if count <= 1:
        return [whole(recording)]
    of = {k: place * count // len(made) for place, k in enumerate(made)}
    uses = [{x for k in made if of[k] == s for x in tape.rest_of(k)} for s in range(count)]
    uses[0] |= {x.k for x in recording.finite}                 # inputs among them
    uses[-1] |= {x.k for pair in recording.bounds for x in pair if isinstance(x, Recorded)}
    if late:
        uses[-1] |= {x.k for array in recording.arrays for x in array.results if isinstance(x, Recorded)}
    slots: dict[int, int] = {}
    found = []
    for s, used in enumerate(uses):
        inputs = sorted(x for x in used if x not in of)
        loaded = {x: slots.setdefault(x, len(slots)) for x in sorted(used) if of.get(x, s) < s}
        bounds = list(recording.bounds) if s == count - 1 else []
        found.append(Segment([*inputs, *(k for k in made if of[k] == s)], loaded, {}, bounds))
    for k, slot in slots.items():
        found[of[k]].kept[k] = slot
    return found
