"""Functions of nonlinear couplings: f and its first three derivatives, by the programs of `model.coupling_functions`."""
from liedyn.joints.loop_joints import CODE, CODE_SIZE, TERM
from liedyn.lie.simd import atan2, exp, floor, load, log, number_like, sincos, sqrt, store, where_less
from liedyn.model.coupling_functions import (
    ADD,
    ATAN2,
    COPY,
    COS,
    DIVIDE,
    EXP,
    INPUT,
    INSTRUCTION_SIZE,
    LITERAL,
    LOG,
    MULTIPLY,
    N_RESULTS,
    SIN,
    SQRT,
    SUBTRACT,
    TABLE_HEADER,
)
from liedyn.numba_tools.decorators import inline_kernel, internal_kernel


@inline_kernel
def store_coupling_function(loops, c, q, out):
    """Write f and its derivatives of nonlinear coupling c to the first numbers of its frame in `out` (12 frames).

    The frames after those of the constraints are registers.
    """
    registers = out[12 * loops.record.shape[0]:]
    store(registers, INPUT, load(q, loops.term_q[loops.record[c, TERM] + 1]))
    run_program(loops.code, loops.function_constants, loops.record[c, CODE], loops.record[c, CODE_SIZE], registers)
    for k in range(N_RESULTS):
        store(out, 12 * c + k, load(registers, k))


@internal_kernel
def run_program(code, constants, first, count, r):  # noqa: C901 - a case per operation
    """Run `count` instructions from number `first` of the code on the registers r."""
    for k in range(first, first + INSTRUCTION_SIZE * count, INSTRUCTION_SIZE):
        operation, out, a, b = code[k], code[k + 1], code[k + 2], code[k + 3]
        if operation == LITERAL:
            store(r, out, number_like(r, load(constants, a)))
        elif operation == COPY:
            store(r, out, load(r, a))
        elif operation == ADD:
            store(r, out, load(r, a) + load(r, b))
        elif operation == SUBTRACT:
            store(r, out, load(r, a) - load(r, b))
        elif operation == MULTIPLY:
            store(r, out, load(r, a) * load(r, b))
        elif operation == DIVIDE:
            store(r, out, load(r, a) / load(r, b))
        elif operation == SQRT:
            store(r, out, sqrt(load(r, a)))
        elif operation == SIN:
            store(r, out, sincos(load(r, a))[0])
        elif operation == COS:
            store(r, out, sincos(load(r, a))[1])
        elif operation == EXP:
            store(r, out, exp(load(r, a)))
        elif operation == LOG:
            store(r, out, log(load(r, a)))
        elif operation == ATAN2:
            store(r, out, atan2(load(r, a), load(r, b)))
        else:
            look_up(constants, r, out, load(r, a), b, code[k + 4], code[k + 5])


@internal_kernel
def look_up(constants, r, out, x, first, pieces, degree):
    """Write a table's f and derivatives at x to the registers from `out` on. The registers after INPUT are workspace.

    The piece is selected number by number, without a branch on x.
    """
    period, begin = load(constants, first), INPUT + 1
    turns = number_like(r, 0.0)
    if period > 0.0:
        turns = floor((x - load(constants, first + 1)) / period)
    y = x - turns * period
    breaks = first + TABLE_HEADER
    coefficients, size = breaks + pieces, degree + 1
    store(r, begin, number_like(r, load(constants, breaks)))
    for i in range(size):
        store(r, begin + 1 + i, number_like(r, load(constants, coefficients + i)))
    for k in range(1, pieces):
        start = load(constants, breaks + k)
        store(r, begin, where_less(y, start, load(r, begin), start))
        for i in range(size):
            store(r, begin + 1 + i, where_less(y, start, load(r, begin + 1 + i), load(constants, coefficients + size * k + i)))
    s, zero = y - load(r, begin), number_like(r, 0.0)
    p0, p1, p2, p3 = zero, zero, zero, zero
    for i in range(size):
        p3 = p3 * s + p2
        p2 = p2 * s + p1
        p1 = p1 * s + p0
        p0 = p0 * s + load(r, begin + size - i)
    store(r, out, p0 + turns * load(constants, first + 2))
    store(r, out + 1, p1)
    store(r, out + 2, 2.0 * p2)
    store(r, out + 3, 6.0 * p3)
