"""Lines of the parts of constrained motion (`kernels.loops.parts`), for one robot; loops where a line would be too long."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from liedyn import code_cache
from liedyn.codegen.compiled import loaded, processor
from liedyn.codegen.lines import folder, kept_parts, wanted
from liedyn.codegen.plain import plain
from liedyn.codegen.recording import Array, Recording, bounds_of_angles, cut, written
from liedyn.kernels.loops import parts
from liedyn.kernels.loops.desk import desk_memory
from liedyn.lie.recorded import NotALine, Tape, zeros
from liedyn.pointer_call import address_of


@dataclass(frozen=True)
class Ask:
    """What parts depend on, besides the model: masks (nv,) of what is prescribed in motion and in projections of position and
    velocity; whether springs and damping act, Baumgarte's stabilization, external wrenches."""

    prescribed: tuple[bool, ...]
    fixed: tuple[bool, ...]
    held: tuple[bool, ...]
    passive: bool
    stabilized: bool
    forced: bool


# groups of parts: the first of two leaves numbers to the second; what of `Ask` they depend on
_GROUPS = {(parts.EQUATIONS, parts.COMPLETED): ("prescribed", "passive", "stabilized", "forced"), (parts.RESIDUALS,): (),
           (parts.VELOCITIES,): (), (parts.HOLONOMIC, parts.MOVED): ("fixed",), (parts.ROWS, parts.CHANGED): ("held",)}


def addresses(model, ask: Ask, which=parts.PARTS, loops: bool = False) -> np.ndarray:
    """(8,) addresses of parts, 0 of those that are not in `which`. loops: no lines."""
    found = np.zeros(len(parts.PARTS), dtype=np.int64)
    for group, depends in _GROUPS.items():
        if set(group) & set(which):
            content = ask.forced, *(getattr(ask, name) for name in depends)
            lines = () if loops or not wanted() else _lines(model, group, content, ask)
            for k, part in enumerate(group):
                found[part] = lines[k].get_function_address("one") if lines else address_of(parts.BY_LOOPS[part])
    return found


def _lines(model, group, content, ask):
    key = "parts", group, content
    if key not in model._cache:
        model._cache[key] = tuple(map(loaded, _built(model, group, content, ask)))
    return model._cache[key]


def _built(model, group, content, ask) -> list[bytes]:
    """Machine code of the parts; nothing where one is too long."""
    arrays = (model.index, model.constants, model.loop_index, model.loop_constants)
    name = code_cache.digest(*(x.tobytes() for x in arrays), repr((group, content, processor())).encode())
    place = folder("kernels.loops.parts.parts", "codegen.mechanism")
    return kept_parts(place, name, lambda: record_parts(model, group, ask))[1]


# recording --------------------------------------------------------------------------------------------------------
def sizes_of(model, forced: bool) -> tuple[int, ...]:
    """What the size of a desk depends on."""
    return model.n_bodies, model.nq, model.nv, model.nc, sum(one.driven for one in model.constraints), forced


def record_parts(model, group, ask: Ask) -> list[Recording]:
    """The parts of a group as functions of the desk alone; none where one decides on a number. Where there are two, the second is
    what rests on the multipliers."""
    kernels, tape, sizes = plain("kernels.loops.parts"), Tape(), sizes_of(model, ask.forced)
    numbers = tape.inputs("desk", desk_memory(*sizes, 0))
    before = numbers.copy()
    n, nq, nv, m, driven, forced = sizes
    desk = plain("kernels.loops.desk").desk_views(numbers, n, nq, nv, m, driven, forced)
    tree = plain("joints.tree").tree_of(model.index, model.constants)
    loops, nc = plain("joints.closures").loops_of(model.loop_index, model.loop_constants), len(model.constraints)
    work = kernels.part_work(zeros(kernels.part_memory(n, nv, nc, m)), n, nv, nc, m)
    late, masks = {x.k for x in desk.multipliers}, {name: np.array(getattr(ask, name)) for name in _MASKS}
    try:
        for part in group:
            _WRITE[part](kernels, tree, loops, masks, ask, desk, work)
    except NotALine:
        return []
    whole = Recording(tape, (Array("desk", len(numbers), written(before, numbers)),), tuple(bounds_of_angles(tape)), ())
    return cut(whole, late, "desk") if len(group) == 2 else [whole]


_MASKS = ("prescribed", "fixed", "held")
_WRITE = {
    parts.EQUATIONS: lambda k, tree, loops, masks, ask, desk, work: k.write_equations(
        tree, loops, masks["prescribed"], ask.stabilized, ask.passive, desk, work),
    parts.COMPLETED: lambda k, tree, loops, masks, ask, desk, work: k.write_completed(
        tree, loops, masks["prescribed"], ask.passive, desk, work),
    parts.RESIDUALS: lambda k, tree, loops, masks, ask, desk, work: k.write_residuals(tree, loops, desk, work),
    parts.VELOCITIES: lambda k, tree, loops, masks, ask, desk, work: k.write_velocities(tree, loops, desk, work),
    parts.HOLONOMIC: lambda k, tree, loops, masks, ask, desk, work: k.write_rows(tree, loops, masks["fixed"], True, desk, work),
    parts.MOVED: lambda k, tree, loops, masks, ask, desk, work: k.write_moved(tree, loops, masks["fixed"], desk, work),
    parts.ROWS: lambda k, tree, loops, masks, ask, desk, work: k.write_rows(tree, loops, masks["held"], False, desk, work),
    parts.CHANGED: lambda k, tree, loops, masks, ask, desk, work: k.write_change(tree, loops, masks["held"], desk, work),
}

