"""A long line in segments. Code that is larger than the cache beside the processor comes from afar at every run: each segment
goes over a few blocks of states before the next, and leaves what later ones rest on."""
from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from liedyn.codegen.recording import Recording
from liedyn.lie.recorded import Recorded

SEGMENT = 45_000           # operations, for 400 kB of code: caches beside a processor hold 512 kB and more


@dataclass(frozen=True)
class Segment:
    """operations   places on the tape, in order; inputs first
    loaded       operations of earlier segments, and where they were kept
    kept         operations that later ones rest on, and where
    bounds       those of the recording that it can see to
    """

    operations: list[int]
    loaded: dict[int, int]
    kept: dict[int, int]
    bounds: list[tuple[Recorded, float]]


def whole(recording: Recording) -> Segment:
    return Segment(recording.needed, {}, {}, list(recording.bounds))


def segments(recording: Recording) -> list[Segment]:
    """Of about the same length."""
    tape = recording.tape.operations
    made = [k for k in recording.needed if tape[k][0] != "input"]
    count = -(-len(made) // SEGMENT)
    if count <= 1:
        return [whole(recording)]
    of = {k: place * count // len(made) for place, k in enumerate(made)}

    def rest_on(k):
        return [x for x in tape[k][1:] if isinstance(x, int)]

    bounds = [(max(of.get(y.k, 0) for y in pair if isinstance(y, Recorded)), pair) for pair in recording.bounds]
    uses = [(s, {x for k in made[a:b] for x in rest_on(k)} | {y.k for at, pair in bounds if at == s for y in pair
                                                             if isinstance(y, Recorded)})
            for s, (a, b) in enumerate(pairwise([*(-(-s * len(made) // count) for s in range(count)), len(made)]))]
    slots: dict[int, int] = {}
    loaded = [{x: slots.setdefault(x, len(slots)) for x in sorted(used) if of.get(x, s) < s} for s, used in uses]
    finite = {x.k for x in recording.finite}
    found = []
    for s, used in uses:
        inputs = sorted(x for x in used | (finite if s == 0 else set()) if x not in of)
        operations = [*inputs, *(k for k in made if of[k] == s)]
        kept = {k: slot for k, slot in slots.items() if of[k] == s}
        found.append(Segment(operations, loaded[s], kept, [pair for at, pair in bounds if at == s]))
    return found
