"""Lines of the parts of constrained motion (`kernels.loops.parts`), for one robot; loops where a line would be too long."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from liedyn import code_cache
from liedyn.codegen.emit.compiled import processor
from liedyn.codegen.lines import folder, kept_parts, wanted
from liedyn.codegen.plain import plain
from liedyn.codegen.recording import Array, Recording, bounds_of_angles, cut, written
from liedyn.kernels.loops import parts
from liedyn.kernels.loops.desk import desk_memory
from liedyn.lie.recorded import Tape, zeros
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
        arrays = (model.index, model.constants, model.loop_index, model.loop_constants)
        name = code_cache.digest(*(x.tobytes() for x in arrays), repr((group, content, processor())).encode())
        place = folder("kernels.loops.parts.parts", "codegen.steps.mechanism")
        model._cache[key] = kept_parts(place, name, lambda: record_parts(model, group, ask))
    return model._cache[key]


# recording --------------------------------------------------------------------------------------------------------
class Mechanism:
    """The parts over numbers that record. desk: where they read and write, whose arrays may be exchanged for others."""

    def __init__(self, model, tree, forced: bool, numbers=None):
        """numbers: of the desk; None: zeros."""
        sizes = desk_sizes(model, forced)
        n, _, nv, m, *_ = sizes
        self.kernels, self.tree, nc = plain("kernels.loops.parts"), tree, len(model.constraints)
        self.loops = plain("joints.closures").loops_of(model.loop_index, model.loop_constants)
        numbers = zeros(desk_memory(*sizes, 0)) if numbers is None else numbers
        self.desk = plain("kernels.loops.desk").desk_views(numbers, *sizes)
        self.work = self.kernels.part_work(zeros(self.kernels.part_memory(n, nv, nc, m)), n, nv, nc, m)

    def write(self, what: str, *options) -> None:
        """write("rows", mask, holonomic) and so on: `write_rows` of `kernels.loops.parts`."""
        getattr(self.kernels, f"write_{what}")(self.tree, self.loops, *options, self.desk, self.work)


def desk_sizes(model, forced: bool) -> tuple[int, ...]:
    """What the size of a desk depends on."""
    return model.n_bodies, model.nq, model.nv, model.nc, sum(one.driven for one in model.constraints), forced


def record_parts(model, group, ask: Ask) -> list[Recording]:
    """The parts of a group as functions of the desk alone. Where there are two, the second is what rests on the multipliers.
    Raises NotALine."""
    tape = Tape()
    numbers = tape.inputs("desk", desk_memory(*desk_sizes(model, ask.forced), 0))
    before = numbers.copy()
    mechanism = Mechanism(model, plain("joints.tree").tree_of(model.index, model.constants), ask.forced, numbers)
    late = {x.k for x in mechanism.desk.multipliers}
    prescribed, fixed, held = (np.array(mask) for mask in (ask.prescribed, ask.fixed, ask.held))
    options = {parts.EQUATIONS: ("equations", prescribed, ask.stabilized, ask.passive),
               parts.COMPLETED: ("completed", prescribed, ask.passive), parts.RESIDUALS: ("residuals",),
               parts.VELOCITIES: ("velocities",), parts.HOLONOMIC: ("rows", fixed, True), parts.MOVED: ("moved", fixed),
               parts.ROWS: ("rows", held, False), parts.CHANGED: ("change", held)}
    for part in group:
        mechanism.write(*options[part])
    whole = Recording(tape, (Array("desk", len(numbers), written(before, numbers)),), tuple(bounds_of_angles(tape)), ())
    return cut(whole, late, "desk") if len(group) == 2 else [whole]
