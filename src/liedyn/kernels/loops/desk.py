"""Where the parts of constrained dynamics meet: one array, of one state.

Constrained motion has parts that depend on the robot alone, without a decision on a number (straight lines, or loops where a line
would be too long), and a small dense part between them, which chooses rows and pivots and is the same for all robots. Each part
is called with the address of the desk alone: it reads some of its numbers and writes others.
"""
from typing import NamedTuple

import numpy as np

from liedyn.jit import everywhere, primitive
from liedyn.kernels.loops.constraint_solver import SolverWork, solver_memory, solver_work
from liedyn.seam.views import carve

HEADER = 24
# places in the header, which are integers: sizes; where loops find the model's arrays, and how many numbers they have; addresses
# of `by_parts.mechanism` and of the parts
N, NQ, NV, NC, M, DRIVEN, FORCED, PASSIVE, SIZE, MACHINE, MACHINE_SIZE, RUN, PART = range(13)

# places in Desk.figures
(TOLERANCE,                        # of a projection [rad | lengths of the loop]; 0: none
 DRIFT, DRIFT_VELOCITY,            # the largest before a projection [rad | m], [rad/s | m/s]
 RANK,                             # independent rows at the last accepted state; -1 before the first
 SMALL_1, TIME_1, SMALL_2, TIME_2, # their volume at the last two accepted states
 ROW_2,                            # and the row of the smallest pivot
 SINGULAR_COUNT, SINGULAR_TIME, SINGULAR_ROW,
 BAD_ROW, BAD_SIZE,                # what LOOP_OPEN or CONTRADICTION speaks of
 TIME, LEFT,                       # of the state; what a projection has left of the residual, or found of the velocity
 SLOWEST) = range(17)              # acceleration that is judged as one of its own size [rad/s^2, or lengths of the loop/s^2]
FIGURES = 17


class Desk(NamedTuple):
    q: np.ndarray             # (nq,)
    v: np.ndarray             # (nv,)
    a: np.ndarray             # (nv,) where prescribed
    tau: np.ndarray           # (nv,) where not
    f_ext: np.ndarray         # (6n,) wrenches on bodies, or empty
    drive: np.ndarray         # (24 driven,) motions of driven closures
    frequency: np.ndarray     # (1,) of Baumgarte's stabilization [rad/s]
    figures: np.ndarray       # (FIGURES,)
    multipliers: np.ndarray   # (m,)
    rhs: np.ndarray           # (m,) A M^-1 A^T lambda = rhs
    deficit: np.ndarray       # (1,) positive if a joint's articulated inertia vanishes
    power: np.ndarray         # (1,) of f_ext
    drive_rate: np.ndarray    # (m,) velocity of rows in the motion of driven closures
    residual: np.ndarray      # (m,)
    velocity: np.ndarray      # (m,) A v less that of the drive
    found_a: np.ndarray       # (nv,) complete
    found_tau: np.ndarray     # (nv,)
    moved: np.ndarray         # (nq,) q (+) M^-1 A^T lambda
    change: np.ndarray        # (nv,) M^-1 A^T lambda
    mask: np.ndarray          # (nv,) begins with as many bools: what is prescribed in motion
    fixed: np.ndarray         # (nv,) the same in a projection of the position
    held: np.ndarray          # (nv,) the same in a projection of the velocity
    weight: np.ndarray        # (m,) residuals times it have no unit: 1 in rad, the inverse length of the loop in m
    unit: np.ndarray          # (nv,) one unit of movement: 1 rad, or a length of the loops [m]
    solver: SolverWork        # its matrix and size, too
    rest: np.ndarray          # what the first of two parts leaves to the second


@primitive
def desk_of(x):
    h = x.view(np.int64)
    return desk_views(x, h[N], h[NQ], h[NV], h[M], h[DRIVEN], h[FORCED])


@everywhere
def desk_sizes(n, nq, nv, m, driven, forced):
    return (HEADER, nq, nv, nv, nv, 6 * n * forced, 24 * driven, 1, FIGURES, m, m, 1, 1, m, m, m, nv, nv, nq, nv, nv, nv, nv, m,
            nv, solver_memory(m))


@primitive
def desk_views(x, n, nq, nv, m, driven, forced):
    views = carve(x, desk_sizes(n, nq, nv, m, driven, forced))
    return Desk(*views[1:-2], solver_work(views[-2], m), views[-1])


def desk_memory(n, nq, nv, m, driven, forced, rest):
    return sum(desk_sizes(n, nq, nv, m, driven, forced)) + rest
