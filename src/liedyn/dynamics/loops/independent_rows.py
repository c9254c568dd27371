"""Rows on which the constraints of a robot rest at a configuration: the others depend on them."""
from __future__ import annotations

import numpy as np

from liedyn.dynamics.loops.desk_for import desk_for
from liedyn.kernels.loops.by_parts import CLOSE_POSITION, CLOSE_VELOCITY, mechanism
from liedyn.kernels.loops.desk import TOLERANCE
from liedyn.kernels.loops.parts import CHANGED, HOLONOMIC, MOVED, RESIDUALS, ROWS


def independent_rows(model, q: np.ndarray, prescribed: np.ndarray) -> tuple[tuple[int, ...], ...]:
    """Of projections of the position, of those of the velocity, and of motion in which the coordinates `prescribed` (nv,) have
    given accelerations, each in the order in which `constraint_solver` takes them. q (nq,): closed."""
    none, found = np.zeros(model.nv, dtype=bool), []
    for what, mask, parts in ((CLOSE_POSITION, none, (RESIDUALS, HOLONOMIC, MOVED)), (CLOSE_VELOCITY, none, (ROWS, CHANGED)),
                              (CLOSE_VELOCITY, prescribed, (ROWS, CHANGED))):
        made = desk_for(model, none, none, mask, False, which=parts)
        made.desk.q[:], made.desk.figures[TOLERANCE] = q, -1.0           # so that it factors, however closed q is
        mechanism(made.numbers.ctypes.data, what)
        solver = made.desk.solver
        order = solver.order.view(np.int64)
        found.append(tuple(int(r) for r in order if solver.keep[r] > 0.5))
    return tuple(found)
