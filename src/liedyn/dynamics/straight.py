"""Large batches by straight lines: one function for this robot alone packs, computes and unpacks, on all cores."""
from __future__ import annotations

from liedyn.codegen.lines import line_of
from liedyn.dynamics.calls import scratch
from liedyn.dynamics.threads import chunks, on_threads

# Below this many states a line, 0.03 to 1 s of compilation the first time, is not worth it.
FEWEST = 1000


def by_line(model, function: str, passive: bool, with_f_ext: bool, arrays) -> bool:
    """Whether a line has computed the batch. arrays: (N, n) C-contiguous float64, inputs and then outputs. Where it has not, the
    loops do, and they name what is wrong with the input or the result."""
    count = len(arrays[0])
    line = line_of(model, function, passive, with_f_ext) if count >= FEWEST else None
    if line is None:
        return False
    edges = chunks(count, model.n_bodies)

    def part(first, last):
        return line.run(arrays, scratch(line.scratch), first, last)

    return part(0, count) if len(edges) == 2 else all(on_threads(part, edges))
