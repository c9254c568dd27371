"""Signals of time as Taylor series of any order: x_k = x^(k)(t) / k!, for laws that need more than two derivatives.

Recurrences of power series (Knuth, The Art of Computer Programming 2, 4.7; Griewank and Walther, Evaluating Derivatives,
13.2). As in `signals`, a signal is continuous from the right, and a constant argument remains constant through a function of
infinite slope. These signals do not depend on the state.
"""
from numpy import inf

from liedyn.kernels.simulation.signals import (
    ABS,
    ACOS,
    ADD,
    ASIN,
    ATAN,
    ATAN2,
    AXIS_HEADER,
    CLOCK,
    CONSTANT,
    COS,
    COSH,
    DIVIDE,
    EXP,
    FIRST_BINARY,
    FIRST_UNARY,
    FROZEN_CLOCK,
    KNOTS,
    LITERAL,
    LOG,
    MIN,
    MULTIPLY,
    NEGATIVE,
    ORDER,
    PATCH,
    PIECE,
    POLYNOMIAL,
    POWER,
    SIN,
    SINH,
    SQRT,
    SUBTRACT,
    TAN,
    TANH,
    binary,
    find_piece,
    frozen_clock,
    load_entry,
    load_patch_entry,
    piece_and_offset,
    quotient,
    table_position,
    unary,
)
from liedyn.lie.simd import absolute, where_less
from liedyn.numba_tools.decorators import inline_kernel, kernel

_N_BUFFERS = 3                        # series of workspace before the stack
_MAX_EXPONENT = 64                    # of an integer exponent that is multiplied out


def series_stack_size(depth: int, order: int) -> int:
    """Return the size of the workspace array of `signal_series` for a program that needs `depth` jets."""
    return max((depth + _N_BUFFERS) * (order + 1), ORDER)


@kernel
def signal_series(signals, k, t, stack, out):
    """Write out (order + 1,), NaN or infinite where a function has no series. stack: `series_stack_size` floats."""
    first, count = signals.first[k], signals.count[k]
    for i in range(out.size):
        out[i] = 0.0
    if signals.kind[k] == CONSTANT:
        out[0] = signals.literals[first]
    elif signals.kind[k] == POLYNOMIAL:
        polynomial_series(signals.breaks, signals.coefficients, first, count, t, stack, out)
    else:
        program_series(signals.code, signals.literals, signals.clocks, first, count, t, stack, out)


@inline_kernel
def polynomial_series(breaks, coefficients, first, count, t, stack, out):
    """Write the Taylor shift of a piece, by repeated Horner's rule."""
    low = find_piece(breaks, first, count, t)
    s = t - breaks[low]
    for i in range(ORDER):
        stack[i] = coefficients[ORDER * low + i]
    for r in range(min(out.size, ORDER)):
        for i in range(ORDER - 2, r - 1, -1):
            stack[i] += s * stack[i + 1]
        out[r] = stack[r]


@inline_kernel
def program_series(code, literals, clocks, first, count, t, stack, out):  # noqa: C901 - a case per kind of operation
    """Run a program on a stack of series and write the result to out."""
    n = out.size
    a, b, c = stack[:n], stack[n:2 * n], stack[2 * n:3 * n]
    top = _N_BUFFERS * n - n
    for i in range(first, first + count):
        operation, operand = code[i] & 255, code[i] >> 8
        if operation < FIRST_UNARY:
            top += n
            for k in range(n):
                stack[top + k] = 0.0
            if operation == LITERAL:
                stack[top] = literals[operand]
            elif operation == KNOTS:
                position_series(literals, operand, stack[top - n:top], stack[top:top + n])
            else:
                begun, rate = t, 1.0
                if operation == CLOCK:
                    begun = t - clocks[operand]
                elif operation == FROZEN_CLOCK:
                    begun, rate = frozen_clock(t - clocks[operand])
                stack[top] = begun
                if n > 1:
                    stack[top + 1] = rate
        elif operation < FIRST_BINARY:
            unary_series(operation, stack[top:top + n], a, b)
        elif operation == PIECE:
            top -= n
            piece_series(literals, operand, stack[top:top + n], stack[top + n], a)
        elif operation == PATCH:
            top -= 3 * n
            patch_series(literals, operand, stack[top:top + n], stack[top + n], stack[top + 2 * n:top + 3 * n],
                         stack[top + 3 * n], a, b)
        else:
            top -= n
            binary_series(operation, stack[top:top + n], stack[top + n:top + 2 * n], a, b, c)
    for k in range(n):
        out[k] = stack[top + k]


# tables -------------------------------------------------------------------------------------------------------------
@inline_kernel
def position_series(literals, axis, x, out):
    """Write the position of x among the knots of an axis: a value, and coefficients with the signs of those of x."""
    u, rate, _ = table_position(literals, axis, x[0], 1.0, 0.0)
    out[0] = u
    for k in range(1, x.size):
        out[k] = rate * x[k]


@inline_kernel
def piece_series(literals, axis, x, u, out):
    """Replace x by the table at the position u, by Horner's rule."""
    n = int(literals[axis])
    k, x[0] = piece_and_offset(literals, axis, x[0], u)
    for i in range(x.size):
        out[i] = 0.0
    for c in range(3, -1, -1):
        multiply_series(out, x, out)
        out[0] += load_entry(literals, axis + AXIS_HEADER + 2 * n + c, k, n, 4)
    out[0] = where_less(absolute(u), inf, out[0], u)
    copy_series(out, x)


@inline_kernel
def patch_series(literals, axis, x, u, y, w, a, b):
    """Replace x by the table of x and y at the positions u and w: sum_j p_j(x) y^j, by Horner's rule. a, b are workspace."""
    n = int(literals[axis])
    i, x[0] = piece_and_offset(literals, axis, x[0], u)
    axis += AXIS_HEADER + 2 * n
    m = int(literals[axis])
    j, y[0] = piece_and_offset(literals, axis, y[0], w)
    for k in range(x.size):
        a[k] = 0.0
    for d in range(3, -1, -1):
        multiply_series(a, y, a)
        for k in range(x.size):
            b[k] = 0.0
        for c in range(3, -1, -1):
            multiply_series(b, x, b)
            b[0] += load_patch_entry(literals, axis + AXIS_HEADER + 2 * m + 4 * c + d, i, n, j, m)
        for k in range(x.size):
            a[k] += b[k]
    a[0] = where_less(absolute(u), inf, where_less(absolute(w), inf, a[0], w), u)
    copy_series(a, x)


# series -------------------------------------------------------------------------------------------------------------
@inline_kernel
def is_constant(x):
    """Return whether all derivatives are zero."""
    moving = False
    for k in range(1, x.size):
        moving = moving or x[k] != 0.0
    return not moving


@inline_kernel
def sign_after(x, y):
    """Return the sign of x - y just after now: 1, 0, -1; NaN if one of them is NaN."""
    for k in range(x.size):
        d = x[k] - y[k]
        if d != 0.0:
            return 1.0 if d > 0.0 else (-1.0 if d < 0.0 else d)
    return 0.0


@inline_kernel
def copy_series(x, y):
    """Write y = x."""
    for k in range(x.size):
        y[k] = x[k]


@inline_kernel
def product_term(x, y, k):
    """Return coefficient k of x y."""
    total = 0.0
    for j in range(k + 1):
        total += x[j] * y[k - j]
    return total


@inline_kernel
def multiply_series(x, y, out):
    """Write out = x y; out may be x."""
    for k in range(x.size - 1, -1, -1):
        out[k] = product_term(x, y, k)


@inline_kernel
def divide_series(x, y, out):
    """Write out = x / y; out may be x."""
    for k in range(x.size):
        total = x[k]
        for j in range(k):
            total -= out[j] * y[k - j]
        out[k] = quotient(total, y[0])


@inline_kernel
def integral_coefficient(x, w, k):
    """Return coefficient k > 0 of f with f' = w x'."""
    total = 0.0
    for j in range(1, k + 1):
        total += j * x[j] * w[k - j]
    return total / k


@inline_kernel
def integrate_series(value, x, w, buffer):
    """Replace x by f with f' = w x'; coefficient 0 of f is `value`."""
    copy_series(x, buffer)
    for k in range(1, x.size):
        x[k] = integral_coefficient(buffer, w, k)
    x[0] = value


@inline_kernel
def real_power(x, p, out):
    """Write out = x^p for x[0] not zero; out is not x."""
    out[0] = x[0] ** p
    for k in range(1, x.size):
        total = 0.0
        for j in range(1, k + 1):
            total += (p * j - (k - j)) * x[j] * out[k - j]
        out[k] = total / (k * x[0])


@inline_kernel
def one_plus(sign, x, out):
    """Write out = 1 + sign x^2."""
    for k in range(x.size):
        out[k] = sign * product_term(x, x, k)
    out[0] += 1.0


@kernel
def unary_series(operation, x, a, b):  # noqa: C901 - a case per operation
    """Replace x by f(x); a, b are workspace."""
    n = x.size
    value, _, _ = unary(operation, x[0], x[1] if n > 1 else 0.0, 2.0 * x[2] if n > 2 else 0.0)      # at a jump: just after
    if operation == NEGATIVE:
        for k in range(n):
            x[k] = -x[k]
    elif operation == ABS:
        for k in range(n):
            b[k] = 0.0
        s = sign_after(x, b)
        for k in range(n):
            x[k] = s * x[k]
    elif is_constant(x):
        x[0] = value
    elif operation in (SIN, COS, SINH, COSH):
        odd, even = (SIN, COS) if operation in (SIN, COS) else (SINH, COSH)
        turn = -1.0 if odd == SIN else 1.0
        a[0], b[0] = unary(odd, x[0], 0.0, 0.0)[0], unary(even, x[0], 0.0, 0.0)[0]
        for k in range(1, n):
            a[k], b[k] = integral_coefficient(x, b, k), turn * integral_coefficient(x, a, k)
        copy_series(a if operation == odd else b, x)
    elif operation in (TAN, TANH):                             # f' = (1 +- f^2) x'
        turn = 1.0 if operation == TAN else -1.0
        a[0], b[0] = value, 1.0 + turn * value * value
        if operation == TANH:
            cosh = unary(COSH, x[0], 0.0, 0.0)[0]
            b[0] = 1.0 / (cosh * cosh)
        for k in range(1, n):
            a[k] = integral_coefficient(x, b, k)
            b[k] = turn * product_term(a, a, k)
        copy_series(a, x)
    elif operation == EXP:
        a[0] = value
        for k in range(1, n):
            a[k] = integral_coefficient(x, a, k)
        copy_series(a, x)
    elif operation == SQRT:
        real_power(x, 0.5, a)
        copy_series(a, x)
    elif operation in (ASIN, ACOS):
        one_plus(-1.0, x, a)
        real_power(a, -0.5, b)
        if operation == ACOS:
            for k in range(n):
                b[k] = -b[k]
        integrate_series(value, x, b, a)
    elif operation in (ATAN, LOG):
        if operation == ATAN:
            one_plus(1.0, x, a)
        else:
            copy_series(x, a)
        real_power(a, -1.0, b)
        integrate_series(value, x, b, a)
    else:                                                      # sign, floor, step: constant between jumps
        x[0] = value
        for k in range(1, n):
            x[k] = 0.0


@kernel
def binary_series(operation, x, y, a, b, c):
    """Replace x by f(x, y); y changes, too; a, b, c are workspace."""
    n = x.size
    if operation == ADD:
        for k in range(n):
            x[k] += y[k]
    elif operation == SUBTRACT:
        for k in range(n):
            x[k] -= y[k]
    elif operation == MULTIPLY:
        multiply_series(x, y, x)
    elif operation == DIVIDE:
        divide_series(x, y, x)
    elif operation == POWER:
        power_series(x, y, a, b, c)
    elif operation == ATAN2:
        atan2_series(x, y, a, b, c)
    else:
        s = sign_after(x, y)
        if s != s or (s <= 0.0) != (operation == MIN):
            copy_series(y, x)
        if s != s:
            x[0] = s


@inline_kernel
def power_series(x, y, a, b, c):
    """Replace x by x^y."""
    n = x.size
    value, _, _ = binary(POWER, x[0], 0.0, 0.0, y[0], 0.0, 0.0)
    if is_constant(y) and is_constant(x):
        x[0] = value
    elif is_constant(y) and y[0] >= 0.0 and y[0] <= _MAX_EXPONENT and y[0] == float(int(y[0])):
        for k in range(n):
            a[k] = 0.0
        a[0] = 1.0
        for _ in range(int(y[0])):
            multiply_series(a, x, a)
        copy_series(a, x)
    elif is_constant(y):
        real_power(x, y[0], a)
        copy_series(a, x)
    else:                                                      # exp(y log x)
        copy_series(x, c)
        unary_series(LOG, c, a, b)
        multiply_series(c, y, x)
        unary_series(EXP, x, a, b)
        x[0] = value


@inline_kernel
def atan2_series(x, y, a, b, c):
    """Replace x by atan2(x, y): f' = (y x' - x y') / (x^2 + y^2)."""
    n = x.size
    value, _, _ = binary(ATAN2, x[0], 0.0, 0.0, y[0], 0.0, 0.0)
    still = is_constant(x) and is_constant(y)
    for k in range(n):
        a[k] = product_term(x, x, k) + product_term(y, y, k)
    for k in range(n):                                         # coefficient k of y x' - x y'; the last is not needed
        total = 0.0
        for j in range(k + 1 if k + 1 < n else 0):
            total += (j + 1) * (x[j + 1] * y[k - j] - y[j + 1] * x[k - j])
        b[k] = total
    if not still:
        divide_series(b, a, c)
        for k in range(1, n):
            x[k] = c[k - 1] / k
    x[0] = value
