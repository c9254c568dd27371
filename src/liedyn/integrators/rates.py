"""The right-hand side of a run in compiled code: by a `line` (machine code of one scenario: one compilation of a method serves
all), or by `loops`. The other is None, and Numba prunes at typing what belongs to it."""
from liedyn.jit import kernel, primitive
from liedyn.kernels.loops.by_parts import copy
from liedyn.kernels.simulation.by_line import back_by_line, rates_by_line
from liedyn.kernels.simulation.by_loops import back_by_loops, rates_by_loops
from liedyn.kernels.simulation.right_hand_side import RUNNING


@primitive
def rates_inline(line, loops, t, q0, y, K, row, work):
    """Rates of y at t into K[row]: see `by_loops.rates_by_loops`. Returns a code."""
    code = RUNNING
    if line is not None:                                      # Numba prunes a branch where it knows an argument to be None
        code = rates_by_line(line, t, q0, y, K, row, work)
    if loops is not None:
        code = rates_by_loops(loops.index, loops.constants, loops.plant, loops.schedule, loops.signals, loops.ties, t, q0, y, K,
                              row, work)
    return code


@kernel
def rates_at(line, loops, t, q0, y, K, row, work):
    """`rates_inline`, compiled once and called."""
    return rates_inline(line, loops, t, q0, y, K, row, work)


@primitive
def rates_of_stages(line, loops, method, t, h, ceiling, state, stages, first, last, work):
    """Rates at the stages first … last - 1 of a Runge-Kutta step of length h from state.y into these rows of stages.K. Signals
    are read at `ceiling` at the latest. Returns a code."""
    for s in range(first, last):
        copy(state.y, stages.y)
        for r in range(s):
            w = h * method.A[s, r]
            if w != 0.0:
                for k in range(stages.y.size):
                    stages.y[k] += w * stages.K[r, k]
        code = rates_inline(line, loops, min(t + method.c[s] * h, ceiling), state.q, stages.y, stages.K, s, work)
        if code != RUNNING:
            return code
    return RUNNING


@kernel
def stages_apart(line, loops, method, t, h, ceiling, state, stages, first, last, work):
    """`rates_of_stages`, for Python."""
    return rates_of_stages(line, loops, method, t, h, ceiling, state, stages, first, last, work)


@kernel
def bring_back(line, loops, t, counted, q0, y, q, work):
    """The state q0 (+) x, v of y goes back onto the constraints: see `by_loops.back_by_loops`. Returns a code."""
    code = RUNNING
    if line is not None:
        code = back_by_line(line, t, counted, q0, y, q, work)
    if loops is not None:
        code = back_by_loops(loops.index, loops.constants, loops.schedule, loops.signals, loops.ties, t, counted, q0, y, q, work)
    return code
