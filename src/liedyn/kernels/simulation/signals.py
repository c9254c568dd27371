"""Signals of time and state: value and first two time derivatives.

A signal is a constant, a piecewise polynomial of t or a program (postfix code over numbers, tables, `t` and the state). Time
derivatives are second-order jets (x, dx, ddx) computed through the program. `q`, `v` and measured quantities count as constants
in time, except in targets of pd laws, which use the first derivative. All signals are continuous from the right: at a break, the
piece that begins there counts; where `step`, `sign`, `floor`, `abs`, `min` or `max` switch, the value just after counts.
`step(0)` is 1 and `sign(0)` is 0 if the argument stays 0.
"""
from __future__ import annotations

import math
from typing import NamedTuple

from numpy import floor, inf, int64, ndarray, zeros

from liedyn.joints.joint_model import joint_add, joint_pose
from liedyn.kernels.manifold import store_quaternion
from liedyn.lie.se3 import Ad_inv, compose
from liedyn.lie.simd import absolute, load, number_like, where_less
from liedyn.lie.so3 import (
    quaternion_exp,
    quaternion_product,
    quaternion_rotation,
    quaternion_unit,
    rotation_vector_motion,
    rpy_motion,
    rpy_quaternion,
)
from liedyn.lie.vectors import add_cross, add_rotate, cross, load3, load_pose, rotate, rotate_back, store3, sub3
from liedyn.numba_tools.decorators import ieee_inline_kernel, inline_kernel, kernel

# Positions and velocities of points of links, in world axes, for expressions of a scenario ------------------------------

# Along the path from the ground to the link: X = X T_i, V = Ad_{T_i^-1} V + S dq. Generated code computes twists that the
# dynamics needs, too, only once, and omits unused quantities.

COMPONENTS = ("x", "y", "z", "vx", "vy", "vz", "wx", "wy", "wz")      # position, velocity, angular velocity of the link
NUMBERS_PER_POINT = 9


class Points(NamedTuple):
    """Points of links (p of them)."""

    link: ndarray        # (p,) int64
    first: ndarray       # (p + 1,) int64: the part of `path` of each point
    path: ndarray        # int64: bodies from the ground to the link's
    at: ndarray          # (3p,) link frame


NO_POINTS = Points(zeros(0, dtype=int64), zeros(1, dtype=int64), zeros(0, dtype=int64), zeros(0))


@kernel
def measure_points(points, tree, q, v, measured):
    """Write positions and velocities of points to the last 9p numbers of `measured`."""
    o = measured.size - NUMBERS_PER_POINT * points.link.size
    for j in range(points.link.size):
        x, u, w = point_motion(points, j, tree, q, v)
        for k in range(3):
            measured[o + k], measured[o + 3 + k], measured[o + 6 + k] = x[k], u[k], w[k]
        o += NUMBERS_PER_POINT


@inline_kernel
def point_motion(points, j, tree, q, v):
    """Return position, velocity and angular velocity in world axes."""
    X, V = link_pose_and_twist(points.path, points.first[j], points.first[j + 1], points.link[j], tree, q, v)
    p = load3(points.at, 3 * j)
    return add_rotate(X[1], X[0], p), rotate(X[0], add_cross(V[1], V[0], p)), rotate(X[0], V[0])


@inline_kernel
def link_pose_and_twist(path, first, last, link, tree, q, v):
    """Return pose and twist of a link relative to the start of its path; the twist is in the frame of the link."""
    zero = number_like(q, 0.0)
    one = zero + 1.0
    T, V = ((one, zero, zero, zero, one, zero, zero, zero, one), (zero, zero, zero)), ((zero, zero, zero), (zero, zero, zero))
    for k in range(first, last):
        i = path[k]
        X = joint_pose(tree, i, q)
        V = joint_add(tree, i, Ad_inv(X, V), v)
        T = compose(T, X)
    X = load_pose(tree.link_pose, link)
    return compose(T, X), Ad_inv(X, V)


@inline_kernel
def measure_forces(tau, measured):
    """Write generalized forces to the first nv numbers of `measured`, unless it is empty."""
    if measured.size:
        for k in range(tau.size):
            measured[k] = tau[k]


# signals ----------------------------------------------------------------------------------------------------------------

CONSTANT, POLYNOMIAL, PROGRAM = range(3)                       # Signals.kind
TORQUE, ACCELERATION, VELOCITY, POSITION = range(4)            # Schedule.level
ORDER = 6                                                      # coefficients of a piece: degree 5

# An instruction is opcode + 256 operand. Operands: index of a literal, of q, of v, of `measured`, of a clock; 1 + index of a
# switch of the state, or 0; for a moving position, index in q + RATE times index in v; for a table, index of its first literal.
# Other instructions act on the stack. Before it starts, a clock is infinite, and a held clock is 0.
OPERATIONS = ("literal", "time", "position", "velocity", "measured", "clock", "held clock", "moving position", "moving point",
              "knots", "negative", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "exp", "log", "sqrt",
              "abs", "sign", "floor", "step",
              "add", "subtract", "multiply", "divide", "power", "atan2", "min", "max", "piece", "patch")
(LITERAL, TIME, STATE_Q, STATE_V, MEASURED, CLOCK, FROZEN_CLOCK, MOVING_Q, MOVING_POINT,
 KNOTS, NEGATIVE, SIN, COS, TAN, ASIN, ACOS, ATAN, SINH, COSH, TANH, EXP, LOG, SQRT,
 ABS, SIGN, FLOOR, STEP,
 ADD, SUBTRACT, MULTIPLY, DIVIDE, POWER, ATAN2, MIN, MAX, PIECE, PATCH) = range(len(OPERATIONS))
_SMALLEST_NORMAL = 2.2250738585072014e-308     # |x| below it: x is 0
FIRST_UNARY, FIRST_BINARY = NEGATIVE, ADD
N_ARGUMENTS = (0,) * FIRST_UNARY + (1,) * (FIRST_BINARY - FIRST_UNARY) + (2,) * (PATCH - FIRST_BINARY) + (4,)   # by opcode
TABLE_OPERATIONS = KNOTS, PIECE, PATCH
RATE = 1 << 24
EVENT = len(OPERATIONS)           # a switch of an event, in addition to operations
SWITCH_OPERATIONS = ABS, SIGN, FLOOR, STEP, MIN, MAX            # with jumps or kinks, at which the state may switch
STATE_OPERATIONS = STATE_Q, STATE_V, MEASURED, MOVING_Q, MOVING_POINT

# Entries of Signals.switches for each switch of the state: the side on which it is held (1, -1; the value of a floor; NaN: none),
# its argument at the last evaluation, whether it may change sides without an event, whether it is a FLOOR or an EVENT.
SWITCH_SIGN, SWITCH_VALUE, CHATTERING, KIND = range(4)
SWITCH_SIZE = 4
NOT_FROZEN = 1e300              # a side in place of NaN, for comparisons


class Signals(NamedTuple):
    """All signals of a simulation.

    Each signal has a `kind`, and the `first` and `count` of its constant (in `literals`), pieces (in `breaks`, with six ascending
    `coefficients` of t - break each) or instructions (in `code`).
    """

    kind: ndarray            # (m,) int64
    first: ndarray           # (m,) int64
    count: ndarray           # type: ignore[assignment]  # (m,) int64; hides tuple.count, which nothing calls
    breaks: ndarray          # (pieces,) where each begins; the first and the last piece extend to infinity
    coefficients: ndarray    # (6 pieces,)
    code: ndarray            # int64
    literals: ndarray        # float64
    switches: ndarray = zeros(0)     # (4 s,) of the switches of the state, workspace of a run; sides NaN: nothing is held
    measured: ndarray = zeros(0) # (nv + 9 p,) workspace: generalized forces, then COMPONENTS of each point; or empty
    points: Points = NO_POINTS   # the p points of links
    clocks: ndarray = zeros(0)   # times at which clocks started; -inf: not yet


class Poses(NamedTuple):
    """Prescribed poses of p ball and free joints.

    R = Rz(yaw) Ry(pitch) Rx(roll), or R = U exp(x) with a quaternion U and a rotation vector x.
    """

    q: ndarray               # (p,) int64: the joint's first coordinate in q
    v: ndarray               # (p,) int64: that in v
    free: ndarray            # (p,) int64: 1 a free joint, 0 a ball joint
    uses_rotation_vector: ndarray          # (p,) int64: 1 by U and x, 0 by angles
    signal: ndarray          # (10 p,) int64: x y z; roll pitch yaw, or x; U as x y z w. -1: not used


class InputSchedule(NamedTuple):
    """Prescribed motions and generalized forces of each velocity coordinate, and external wrenches. Signals are given by index.

    Coordinate i: at level TORQUE the force is signal[i], plus, where target[i] >= 0, kp (target - q) + kd (d target/dt - v)
    with q = q[q_of_v[i]]. At the other levels, signal[i] is the acceleration, velocity or position. At level POSITION, the
    coordinates of ball and free joints follow `poses`. Coordinate integral[j] has the additional force z_j, with the rate
    ki[j] (target - q); z is a part of the state.

    Wrench j on link force_link[j] is force_basis[j] * signal and acts while force_from <= t < force_until. In the link's frame,
    the basis is about the link's origin. In world axes (force_world 1), it acts at the point force_point[j] of the link's frame.
    Wrenches of actuators are the last ones; their signals are thrusts.
    """

    level: ndarray           # (nv,) int64
    signal: ndarray          # (nv,) int64
    target: ndarray          # (nv,) int64, -1: none
    kp: ndarray              # (nv,)
    kd: ndarray              # (nv,)
    q_of_v: ndarray          # (nv,) int64, -1: a coordinate of a ball or free joint
    force_link: ndarray      # (f,) int64
    force_world: ndarray     # (f,) int64
    force_basis: ndarray     # (6 f,) [m; f]
    force_point: ndarray     # (3 f,)
    force_signal: ndarray    # (f,) int64
    force_from: ndarray      # (f,) -inf: from the beginning
    force_until: ndarray     # (f,) inf: to the end
    breaks: ndarray          # sorted times in (0, duration) on which steps must land
    before: ndarray          # for each break, the last time before it at which all signals have their values of the step before
    watch: ndarray = zeros(0, int64)     # for each event, a signal that is evaluated only for its switch; -1: contacts switch
    poses: Poses = Poses(*[zeros(0, int64)] * 5)
    integral: ndarray = zeros(0, int64)  # (m,) coordinates of pid laws; nv, nv + 1, … are stretches of contacts
    ki: ndarray = zeros(0)               # (m,)
    force_actuator: ndarray = zeros(0, int64)      # (f,) int64: index of the actuator, -1: an external wrench


@kernel
def evaluate_signal(signals, k, t, q, v, stack):
    """Return value and first two time derivatives of signal `k`. `stack` is workspace of `InitialValueProblem.stack_size` floats.

    They are NaN or infinite outside the domain of a function: the caller checks those that it uses.
    """
    if signals.kind[k] == CONSTANT:
        return signals.literals[signals.first[k]], 0.0, 0.0
    if signals.kind[k] == POLYNOMIAL:
        return evaluate_polynomial(signals.breaks, signals.coefficients, signals.first[k], signals.count[k], t)
    return evaluate_program(signals.code, signals.literals, signals.switches, signals.measured, signals.clocks, signals.first[k],
                            signals.count[k], t, q, v, stack)


@kernel
def evaluate_signals(signals, indices, t, q, v, stack, order, out):
    """Write the values (order 0) or time derivatives (order 1, 2) (N, n) of the signals `indices` at the times t (N,)."""
    for i in range(t.size):
        for j in range(indices.size):
            out[i, j] = evaluate_signal(signals, indices[j], t[i], q, v, stack)[order]


@inline_kernel
def flag_nonfinite(flag, k, x):
    """Set flag[0] to k if x, a used value of signal k, is not finite and no other signal was before (-1: all are finite)."""
    flag[0] = where_less(absolute(x), inf, flag[0], where_less(flag[0], 0.0, float(k), flag[0]))


@inline_kernel
def evaluate_vector3(signals, signal_indices, first, t, ws):
    """Return values, rates and second rates of three signals from signal_indices[first] on. ws.flag: one that is not finite."""
    x0, v0, a0 = evaluate_signal(signals, signal_indices[first], t, ws.q, ws.v, ws.stack)
    x1, v1, a1 = evaluate_signal(signals, signal_indices[first + 1], t, ws.q, ws.v, ws.stack)
    x2, v2, a2 = evaluate_signal(signals, signal_indices[first + 2], t, ws.q, ws.v, ws.stack)
    flag_nonfinite(ws.flag, signal_indices[first], x0 + v0 + a0)
    flag_nonfinite(ws.flag, signal_indices[first + 1], x1 + v1 + a1)
    flag_nonfinite(ws.flag, signal_indices[first + 2], x2 + v2 + a2)
    return (x0, x1, x2), (v0, v1, v2), (a0, a1, a2)


@inline_kernel
def find_piece(breaks, first, count, t):
    """Return the last piece that begins at or before t, by bisection."""
    low, high = first, first + count
    while high - low > 1:
        middle = (low + high) // 2
        if breaks[middle] <= t:
            low = middle
        else:
            high = middle
    return low


@kernel
def evaluate_polynomial(breaks, coefficients, first, count, t):
    """Return the value and both derivatives, by Horner's rule."""
    low = find_piece(breaks, first, count, t)
    s = t - breaks[low]
    x, dx, half_ddx = coefficients[ORDER * low + ORDER - 1], 0.0, 0.0
    for i in range(ORDER - 2, -1, -1):
        half_ddx = half_ddx * s + dx
        dx = dx * s + x
        x = x * s + coefficients[ORDER * low + i]
    return x, dx, 2.0 * half_ddx


@kernel
def evaluate_program(code, literals, switches, measured, clocks, first, count, t, q, v, stack):  # noqa: C901 - many operations
    """Run the instructions on a stack of jets, and return the last jet on it. Writes `stack` and `switches`."""
    top = -3
    for i in range(first, first + count):
        operation, operand = code[i] & 255, code[i] >> 8
        if operation < FIRST_UNARY:
            top += 3
            if operation == TIME:
                x, dx, ddx = t, 1.0, 0.0
            elif operation == LITERAL:
                x, dx, ddx = literals[operand], 0.0, 0.0
            elif operation == STATE_Q:
                x, dx, ddx = q[operand], 0.0, 0.0
            elif operation == STATE_V:
                x, dx, ddx = v[operand], 0.0, 0.0
            elif operation == MEASURED:
                x, dx, ddx = measured[operand], 0.0, 0.0
            elif operation == CLOCK:
                x, dx, ddx = t - clocks[operand], 1.0, 0.0
            elif operation == FROZEN_CLOCK:
                x, dx = frozen_clock(t - clocks[operand])
                ddx = 0.0
            elif operation == MOVING_Q:
                x, dx, ddx = q[operand % RATE], v[operand // RATE], 0.0
            elif operation == KNOTS:
                x, dx, ddx = table_position(literals, operand, stack[top - 3], stack[top - 2], stack[top - 1])
            else:
                x, dx, ddx = measured[operand], measured[operand + 3], 0.0
        elif operation < FIRST_BINARY:
            x, dx, ddx = unary(operation, stack[top], stack[top + 1], stack[top + 2])
            if operand > 0:
                x, dx, ddx = frozen_unary(operation, switches, SWITCH_SIZE * (operand - 1), stack[top], stack[top + 1],
                                          stack[top + 2], (x, dx, ddx))
        elif operation == PIECE:
            top -= 3
            x, dx, ddx = table_value(literals, operand, stack[top], stack[top + 1], stack[top + 2], stack[top + 3])
        elif operation == PATCH:
            top -= 9
            x, dx, ddx = grid_value(literals, operand, (stack[top], stack[top + 1], stack[top + 2]), stack[top + 3],
                                    (stack[top + 6], stack[top + 7], stack[top + 8]), stack[top + 9])
        else:
            top -= 3
            left_jet, right_jet = (stack[top], stack[top + 1], stack[top + 2]), (stack[top + 3], stack[top + 4], stack[top + 5])
            x, dx, ddx = binary(operation, left_jet[0], left_jet[1], left_jet[2], right_jet[0], right_jet[1], right_jet[2])
            if operand > 0:
                x, dx, ddx = frozen_choice(operation, switches, SWITCH_SIZE * (operand - 1), left_jet, right_jet, (x, dx, ddx))
        stack[top], stack[top + 1], stack[top + 2] = x, dx, ddx
    return stack[0], stack[1], stack[2]


@inline_kernel
def frozen_clock(x):
    """Return a held clock and its rate, where the clock is at x."""
    return where_less(x, inf, x, 0.0), where_less(x, inf, 1.0, 0.0)


@inline_kernel
def register_zero_crossing(switches, i, x):
    """Store the argument x of a switch. Return the side on which it is held; NOT_FROZEN if none."""
    switches[i + SWITCH_VALUE] = x
    side = load(switches, i)
    return where_less(absolute(side), NOT_FROZEN, where_less(absolute(x), inf, side, NOT_FROZEN), NOT_FROZEN)


@inline_kernel
def store_switch_values(switches, K, row, n):
    """Store the arguments of the switches in K[row, n:], as many as it has columns."""
    for k in range(n, K.shape[1]):
        K[row, k] = switches[SWITCH_SIZE * (k - n) + SWITCH_VALUE]


@inline_kernel
def frozen_unary(operation, switches, i, x, dx, ddx, free):
    """Return the jet of sign, floor, step or abs on its side; `free` where it is on none."""
    side = register_zero_crossing(switches, i, x)
    if operation == ABS:
        return choose(side, NOT_FROZEN, (side * x, side * dx, side * ddx), free)
    if operation == STEP:
        return choose(side, NOT_FROZEN, (where_less(0.0, side, 1.0, 0.0), 0.0, 0.0), free)
    return choose(side, NOT_FROZEN, (side, 0.0, 0.0), free)


@inline_kernel
def frozen_choice(operation, switches, i, x, y, free):
    """Return the jet of min or max: that of x or y according to the side of x - y; `free` where it is on none."""
    side = register_zero_crossing(switches, i, x[0] - y[0])
    lower, higher = (x, y) if operation == MIN else (y, x)
    return choose(side, NOT_FROZEN, choose(0.0, side, higher, lower), free)


@inline_kernel
def choose(x, y, yes, no):
    """Return the jet `yes` where x < y, else `no`."""
    return where_less(x, y, yes[0], no[0]), where_less(x, y, yes[1], no[1]), where_less(x, y, yes[2], no[2])


@inline_kernel
def where_zero(x, yes, no):
    """Return `yes` where |x| is below the smallest normal number, else `no`."""
    return where_less(absolute(x), _SMALLEST_NORMAL, yes, no)


@inline_kernel
def rate_product(slope, rate):
    """Return slope · rate, with zero for an infinite slope times a zero rate (sqrt(0), abs(v)**0.5)."""
    return where_zero(rate, 0.0, slope * rate)


@inline_kernel
def chain_rule(f, df, ddf, dx, ddx):
    """Return the jet of f(x(t)) from f and its derivatives with respect to x."""
    return f, rate_product(df, dx), rate_product(ddf, dx * dx) + rate_product(df, ddx)


@inline_kernel
def jet_sign(x, dx, ddx):
    """Return the sign of x just after now: 1, 0, -1; NaN if x is NaN."""
    return sign_or(x, sign_or(dx, sign_or(ddx, 0.0)))


@inline_kernel
def sign_or(x, other):
    """Return the sign of x; `other` where x is 0."""
    return where_less(0.0, x, 1.0, where_less(x, 0.0, -1.0, where_zero(x, other, x)))


@kernel
def unary(operation, x, dx, ddx):  # noqa: C901 - a case per operation
    """Return the jet of a function of one jet."""
    if operation == NEGATIVE:
        return -x, -dx, -ddx
    if operation in (SIN, COS):
        s, c = math.sin(x), math.cos(x)
        return chain_rule(s, c, -s, dx, ddx) if operation == SIN else chain_rule(c, -s, -c, dx, ddx)
    if operation in (SINH, COSH):
        s, c = math.sinh(x), math.cosh(x)
        return chain_rule(s, c, s, dx, ddx) if operation == SINH else chain_rule(c, s, c, dx, ddx)
    if operation == TAN:
        f = math.tan(x)
        return chain_rule(f, 1.0 + f * f, 2.0 * f * (1.0 + f * f), dx, ddx)
    if operation == TANH:
        f, c = math.tanh(x), math.cosh(x)
        return chain_rule(f, 1.0 / (c * c), -2.0 * f / (c * c), dx, ddx)
    if operation in (ASIN, ACOS):
        square = (1.0 - x) * (1.0 + x)
        root = math.sqrt(square)
        if operation == ASIN:
            return chain_rule(math.asin(x), 1.0 / root, x / (root * square), dx, ddx)
        return chain_rule(math.acos(x), -1.0 / root, -x / (root * square), dx, ddx)
    if operation == ATAN:
        slope = 1.0 / (1.0 + x * x)
        return chain_rule(math.atan(x), slope, -2.0 * x * slope * slope, dx, ddx)
    if operation == EXP:
        f = math.exp(x)
        return chain_rule(f, f, f, dx, ddx)
    if operation == LOG:
        return chain_rule(math.log(x), 1.0 / x, -1.0 / (x * x), dx, ddx)
    if operation == SQRT:
        f = math.sqrt(x)
        return chain_rule(f, 0.5 / f, -0.25 / (f * x), dx, ddx)
    if operation == ABS:
        s = jet_sign(x, dx, ddx)
        return s * x, s * dx, s * ddx
    return step_function(operation, x, dx, ddx), 0.0, 0.0


@inline_kernel
def step_function(operation, x, dx, ddx):
    """Return the jet of sign, floor or step, constant between jumps."""
    if operation == FLOOR:
        whole = floor(x)
        arrived = where_less(jet_sign(0.0, dx, ddx), 0.0, 1.0, 0.0)
        return whole - where_zero(x - whole, arrived, 0.0)
    s = jet_sign(x, dx, ddx)
    if operation == STEP:
        return where_less(s, 0.0, 0.0, where_less(absolute(s), 2.0, 1.0, s))
    return s


@ieee_inline_kernel
def quotient(x, y):
    """Return x / y, rounded as IEEE 754 requires."""
    return x / y


@kernel
def binary(operation, x, dx, ddx, y, dy, ddy):
    """Return the jet of a function of two jets."""
    if operation == ADD:
        return x + y, dx + dy, ddx + ddy
    if operation == SUBTRACT:
        return x - y, dx - dy, ddx - ddy
    if operation == MULTIPLY:
        return x * y, dx * y + x * dy, ddx * y + 2.0 * (dx * dy) + x * ddy
    if operation == DIVIDE:
        f = quotient(x, y)
        df = (dx - rate_product(f, dy)) / y
        return f, df, (ddx - 2.0 * rate_product(df, dy) - rate_product(f, ddy)) / y
    if operation == POWER:
        return power(x, dx, ddx, y, dy, ddy)
    if operation == ATAN2:                                     # atan2(y, x): the first argument is the ordinate
        square = x * x + y * y
        df = (y * dx - x * dy) / square
        ddf = (y * ddx - x * ddy - 2.0 * df * (x * dx + y * dy)) / square
        moving = absolute(dx) + absolute(dy) + absolute(ddx) + absolute(ddy)
        return math.atan2(x, y), where_zero(moving, 0.0, df), where_zero(moving, 0.0, ddf)
    s = jet_sign(x - y, dx - dy, ddx - ddy)
    chosen_jet, other_jet = ((x, dx, ddx), (y, dy, ddy)) if operation == MIN else ((y, dy, ddy), (x, dx, ddx))
    return choose(0.0, s, other_jet, choose(s, 0.5, chosen_jet, (s, s, s)))


@inline_kernel
def power(x, dx, ddx, y, dy, ddy):
    """Return the jet of x**y. With a constant exponent, x may be any base that the power admits."""
    f, slope = x ** y, where_zero(y, 0.0, y * x ** (y - 1.0))
    curvature = where_zero(y * (y - 1.0), 0.0, y * (y - 1.0) * x ** (y - 2.0))
    log = math.log(x)
    g = dy * log + y * dx / x                                  # d/dt of y log x
    dg = ddy * log + 2.0 * dy * dx / x + y * (ddx - dx * dx / x) / x
    moving = absolute(dy) + absolute(ddy)
    still = chain_rule(f, slope, curvature, dx, ddx)
    return f, where_zero(moving, still[1], f * g), where_zero(moving, still[2], f * (dg + g * g))


# Tables: piecewise cubic polynomials of one or two numbers --------------------------------------------------------------

# A table of x is KNOTS, which leaves x on the stack and adds its position u among the knots: u = k + a fraction in piece k. A
# FLOOR, whose side may be held, makes k of it. PIECE replaces x and k by the value of piece k, which is continued beyond its
# ends. PATCH does the same for x, k of two axes. In the literals, an axis has n pieces, period, lower and upper bound, whether it
# is open, the start of each piece, and 1 / its length. The axes are followed by four coefficients of each piece, or 16 of each
# patch. In an open axis, the first and the last piece are the straight lines beyond the table.
AXIS_HEADER = 5
_WITHIN = 2.0**-30               # of a piece: positions in a closed axis end below its end, so that no piece begins there


@inline_kernel
def load_entry(values, first, k, count, stride):
    """Return values[first + stride k] for a whole number k, which is limited to 0 … count - 1."""
    i = 0 if not k >= 1.0 else min(int(k), count - 1)
    return values[first + stride * i]


@inline_kernel
def piece_number(breaks, first, count, x):
    """Return the last piece that begins at or before x, or 0."""
    return float(find_piece(breaks, first, count, x) - first)


@kernel
def table_position(literals, axis, x, dx, ddx):
    """Return the position of x among the knots of an axis, NaN beyond its bounds, and numbers with the signs of its rates."""
    n, period, lower, upper, is_open = int(load(literals, axis)), load(literals, axis + 1), load(literals, axis + 2), load(
        literals, axis + 3), load(literals, axis + 4)
    first, turns = axis + AXIS_HEADER, 0.0
    if period > 0.0:
        turns = floor((x - load(literals, first)) / period)
    y = x - turns * period
    k = piece_number(literals, first, n, y)
    rate = load_entry(literals, first + n, k, n, 1)
    fraction = (y - load_entry(literals, first, k, n, 1)) * rate
    if is_open > 0.0:
        bounded = fraction / (1.0 + absolute(fraction))
        u = where_less(k, 0.5, 1.0 + bounded, where_less(n - 1.5, k, k + bounded, k + fraction))
    else:
        u = k + fraction
        last = n - _WITHIN
        u = turns * n + where_less(u, 0.0, 0.0, where_less(last, u, last, u))
        if lower > -inf:
            u = where_less(y, lower, math.nan, where_less(upper, y, math.nan, u))
    return u, rate * dx, rate * ddx


@inline_kernel
def piece_and_offset(literals, axis, x, u):
    """Return the piece at the position u of an axis, and x relative to its start."""
    n, period, first = int(load(literals, axis)), load(literals, axis + 1), axis + AXIS_HEADER
    k, turns = floor(u), 0.0
    if period > 0.0:
        turns = floor((k + 0.5) / n)
        k = k - turns * n
    return k, x - turns * period - load_entry(literals, first, k, n, 1)


@inline_kernel
def cubic(c0, c1, c2, c3, s):
    """Return the value and two derivatives of a cubic polynomial."""
    return c0 + s * (c1 + s * (c2 + s * c3)), c1 + s * (2.0 * c2 + s * (3.0 * c3)), 2.0 * c2 + s * (6.0 * c3)


@kernel
def table_value(literals, axis, x, dx, ddx, u):
    """Return the jet of a table of x at the position u."""
    n = int(load(literals, axis))
    k, s = piece_and_offset(literals, axis, x, u)
    o = axis + AXIS_HEADER + 2 * n
    f, df, ddf = cubic(load_entry(literals, o, k, n, 4), load_entry(literals, o + 1, k, n, 4),
                       load_entry(literals, o + 2, k, n, 4), load_entry(literals, o + 3, k, n, 4), s)
    return chain_rule(where_less(absolute(u), inf, f, u), df, ddf, dx, ddx)


@inline_kernel
def load_patch_entry(values, first, i, rows, j, columns):
    """Return values[first + 16 (columns i + j)] for whole numbers i, j within the grid."""
    return load_entry(values, first, columns * load_entry_number(i, rows) + load_entry_number(j, columns), rows * columns, 16)


@inline_kernel
def load_entry_number(k, count):
    """Return a whole number k, limited to 0 … count - 1."""
    return where_less(k, 1.0, 0.0, where_less(count - 1.0, k, count - 1.0, k))


@kernel
def grid_value(literals, axis, x, u, y, w):
    """Return the jet of a table of x and y at the positions u and w."""
    n, (i, s) = int(load(literals, axis)), piece_and_offset(literals, axis, x[0], u)
    axis += AXIS_HEADER + 2 * n
    m, (j, r) = int(load(literals, axis)), piece_and_offset(literals, axis, y[0], w)
    o = axis + AXIS_HEADER + 2 * m
    f, fx, fxx, fy, fxy, half_fyy = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for b in range(3, -1, -1):                                 # sum_b p_b(x) r^b, by Horner's rule
        p, dp, ddp = cubic(
            load_patch_entry(literals, o + b, i, n, j, m), load_patch_entry(literals, o + 4 + b, i, n, j, m),
            load_patch_entry(literals, o + 8 + b, i, n, j, m), load_patch_entry(literals, o + 12 + b, i, n, j, m), s)
        half_fyy = half_fyy * r + fy
        fy, fxy = fy * r + f, fxy * r + fx
        f, fx, fxx = f * r + p, fx * r + dp, fxx * r + ddp
    f = where_less(absolute(u), inf, where_less(absolute(w), inf, f, w), u)
    return (f, fx * x[1] + fy * y[1], fx * x[2] + fy * y[2] + fxx * x[1] * x[1] + 2.0 * (fxy * x[1] * y[1])
            + 2.0 * (half_fyy * y[1] * y[1]))


# Prescribed poses of ball and free joints: configuration, twist and acceleration from signals ---------------------------

# With p(t) and R(t) the joint's v is [w; R^T p'], its a [dw; R^T p'' - w × R^T p'].

SIGNALS_PER_POSE = 10                     # of a pose


@kernel
def prescribe_poses(poses, signals, t, q, v, a, ws):
    """Write the coordinates of these joints to q, v, a. ws.flag: a signal that is not finite."""
    for k in range(poses.q.size):
        i, j = poses.q[k], poses.v[k]
        u, w, dw = pose_rotation(poses, k, signals, t, ws)
        store3(v, j, w)
        store3(a, j, dw)
        if poses.free[k]:
            p, dp, ddp = evaluate_vector3(signals, poses.signal, SIGNALS_PER_POSE * k, t, ws)
            R = quaternion_rotation(u)
            b = rotate_back(R, dp)
            store3(q, i, p)
            store3(v, j + 3, b)
            store3(a, j + 3, sub3(rotate_back(R, ddp), cross(w, b)))
            i += 3
        store_quaternion(q, i, u)


@inline_kernel
def pose_rotation(poses, k, signals, t, ws):
    """Return quaternion, w, dw."""
    first = SIGNALS_PER_POSE * k + 3
    x, dx, ddx = evaluate_vector3(signals, poses.signal, first, t, ws)
    if poses.uses_rotation_vector[k]:
        w, dw = rotation_vector_motion(x, dx, ddx)
        u = quaternion_product(evaluate_values4(signals, poses.signal, first + 3, t, ws), quaternion_exp(x))
    else:
        _, w, dw = rpy_motion(x, dx, ddx)
        u = rpy_quaternion(x)
    return quaternion_unit(u), w, dw


@inline_kernel
def evaluate_values4(signals, signal_indices, first, t, ws):
    """Return the values of four signals."""
    return (evaluate_signal(signals, signal_indices[first], t, ws.q, ws.v, ws.stack)[0],
            evaluate_signal(signals, signal_indices[first + 1], t, ws.q, ws.v, ws.stack)[0],
            evaluate_signal(signals, signal_indices[first + 2], t, ws.q, ws.v, ws.stack)[0],
            evaluate_signal(signals, signal_indices[first + 3], t, ws.q, ws.v, ws.stack)[0])
