"""The desk of a constrained robot, and the addresses of the parts that work at it."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from liedyn.codegen.plain import plain
from liedyn.codegen.steps.mechanism import Ask, addresses
from liedyn.dynamics.loops.rank import column_scale, row_scale
from liedyn.dynamics.scales import scales_of
from liedyn.kernels.loops import by_parts
from liedyn.kernels.loops import desk as of
from liedyn.kernels.loops.parts import BY_LOOPS, PARTS, part_memory
from liedyn.model.cache_lines import on_cache_lines
from liedyn.pointer_call import address_of


class Laid(NamedTuple):
    numbers: np.ndarray       # of the desk
    desk: of.Desk             # views into them
    machine: np.ndarray       # the model's arrays, whose address the desk holds


def desk_for(model, prescribed, fixed, held, passive: bool, frequency: float = 0.0, forced: bool = False,
              which=PARTS, loops: bool = False) -> Laid:
    """which, loops: see `addresses`."""
    n, nq, nv, nc, m = model.n_bodies, model.nq, model.nv, len(model.constraints), model.nc
    driven = model.driven
    passive, stabilized = bool(passive and model.has_passive_forces), frequency > 0.0
    size = of.desk_memory(n, nq, nv, m, driven, forced, 0)
    numbers = on_cache_lines(size + part_memory(n, nv, nc, m), at=size)
    header, machine = numbers.view(np.int64), model._arrays.loop_machine
    header[[of.N, of.NQ, of.NV, of.NC, of.M, of.DRIVEN, of.FORCED, of.PASSIVE, of.SIZE]] = (
        n, nq, nv, nc, m, driven, forced, passive, numbers.size)
    header[[of.MACHINE, of.MACHINE_SIZE]] = machine.ctypes.data, machine.size
    desk = plain("kernels.loops.desk").desk_views(numbers, n, nq, nv, m, driven, forced)
    desk.frequency[0] = frequency
    for kept, mask in zip((desk.mask, desk.fixed, desk.held), (prescribed, fixed, held), strict=True):
        kept.view(np.bool_)[:nv] = mask
    desk.weight[:], desk.unit[:] = row_scale(model), column_scale(model)
    desk.figures[of.SLOWEST] = scales_of(model).time**-2
    header[of.RUN] = address_of(by_parts.mechanism)
    ask = Ask(*(tuple(map(bool, mask)) for mask in (prescribed, fixed, held)), passive, stabilized, forced)
    header[of.PART:of.PART + len(PARTS)] = addresses(model, ask, which, loops)
    return Laid(numbers, desk, machine)


def turn_to_loops(numbers) -> None:
    """Where lines do not hold, as for angles beyond the range of their sine."""
    numbers.view(np.int64)[of.PART:of.PART + len(PARTS)] = list(map(address_of, BY_LOOPS))
