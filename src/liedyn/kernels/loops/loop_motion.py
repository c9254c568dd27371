"""Constraints within a simulation: motions of driven closures from signals, and what `by_parts` does at a state."""
from typing import NamedTuple

import numpy as np

from liedyn.jit import kernel, primitive
from liedyn.kernels.loops.by_parts import CLOSE, CLOSE_UNCOUNTED, LOOK, MEASURE, MOVE, copy, run, worst
from liedyn.kernels.loops.desk import TIME, desk_of
from liedyn.kernels.simulation.signals import note, value
from liedyn.lie.lanes import sincos
from liedyn.lie.rows import load9, store_pose, store_twist
from liedyn.lie.vec3 import add3, cross, plus_cross, plus_rotate_back, product, rotate_back, scale3, sub3, transpose


class LoopPlant(NamedTuple):
    """The constraints of a run."""

    desk: np.ndarray          # see `desk`
    signal: np.ndarray        # (6 driven,) int64: x y z, roll pitch yaw of each driven closure
    turn: np.ndarray          # (9 driven,) rotation from the kernels' frame A to the file's
    drive: np.ndarray         # (24 driven,) of the desk: motion at the last evaluation
    multipliers: np.ndarray   # (m,) of the desk: of the last evaluation
    figures: np.ndarray       # of the desk
    q: np.ndarray             # (nq,) an output between two steps, back on the constraints
    y: np.ndarray             # (2 nv + 1,) and the rest of its state


# driven closures --------------------------------------------------------------------------------------------------
@kernel
def move_drives(signals, ties, t, work):
    """Writes ties.drive: p = x y z, R = Rz(yaw) Ry(pitch) Rx(roll). work.flag: a signal that is not finite."""
    for d in range(ties.signal.size // 6):
        p, dp, ddp = three(signals, ties.signal, 6 * d, t, work)
        angle, rate, rate2 = three(signals, ties.signal, 6 * d + 3, t, work)
        R, w, dw = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)
        for k in range(2, -1, -1):                                # yaw, pitch, roll
            e = (1.0 if k == 0 else 0.0, 1.0 if k == 1 else 0.0, 1.0 if k == 2 else 0.0)
            turn = turn_about(k, angle[k])
            de = scale3(rate[k], e)
            w = plus_rotate_back(de, turn, w)
            dw = plus_cross(add3(rotate_back(turn, dw), scale3(rate2[k], e)), w, de)
            R = product(R, turn)
        v = rotate_back(R, dp)
        dv = sub3(rotate_back(R, ddp), cross(w, v))
        Q = load9(ties.turn, 9 * d)
        store_pose(ties.drive, 2 * d, (product(transpose(Q), product(R, Q)), rotate_back(Q, p)))
        store_twist(ties.drive, 4 * d + 2, (rotate_back(Q, w), rotate_back(Q, v)))
        store_twist(ties.drive, 4 * d + 3, (rotate_back(Q, dw), rotate_back(Q, dv)))


@primitive
def three(signals, numbers, first, t, work):
    """Values, rates and second rates of three signals. work.flag: one that is not finite."""
    x0, v0, a0 = value(signals, numbers[first], t, work.q, work.v, work.stack)
    x1, v1, a1 = value(signals, numbers[first + 1], t, work.q, work.v, work.stack)
    x2, v2, a2 = value(signals, numbers[first + 2], t, work.q, work.v, work.stack)
    for k in range(3):
        x = x0 + v0 + a0 if k == 0 else (x1 + v1 + a1 if k == 1 else x2 + v2 + a2)
        note(work.flag, numbers[first + k], x)
    return (x0, x1, x2), (v0, v1, v2), (a0, a1, a2)


@primitive
def turn_about(k, x):
    """Rotation about axis k."""
    s, c = sincos(x)
    if k == 0:
        return 1.0, 0.0, 0.0, 0.0, c, -s, 0.0, s, c
    if k == 1:
        return c, 0.0, s, 0.0, 1.0, 0.0, -s, 0.0, c
    return c, -s, 0.0, s, c, 0.0, 0.0, 0.0, 1.0


# at a state -------------------------------------------------------------------------------------------------------
@primitive
def tied_hybrid(ties, work):
    """`hybrid` under the constraints; writes the multipliers too. Returns a code of `by_parts`."""
    d = desk_of(ties.desk)
    copy(work.q, d.q)
    copy(work.v, d.v)
    copy(work.a, d.a)
    copy(work.tau, d.tau)
    copy(work.F, d.f_ext)
    code = run(ties.desk, MOVE)
    copy(d.found_a, work.a)
    copy(d.found_tau, work.tau)
    return code


@primitive
def deficit_of(ties): return desk_of(ties.desk).deficit[0]


@primitive
def tied_power(ties):
    """What external wrenches and driven closures supply, after `tied_hybrid`."""
    d = desk_of(ties.desk)
    power = d.power[0]
    for r in range(d.drive_rate.size):
        power += d.multipliers[r] * d.drive_rate[r]
    return power


@primitive
def look_around(ties, t):
    """At an accepted state, after `tied_hybrid`: singular configurations, and prescriptions that contradict. Returns a code."""
    ties.figures[TIME] = t
    return run(ties.desk, LOOK)


@primitive
def close_loops(ties, counted, q, v):
    """q and v go back onto the constraints, what is prescribed of them excepted; ties.drive must be of this time. Where
    there is no projection only the drift is noted, as it is if `counted`. Returns a code."""
    d = desk_of(ties.desk)
    copy(q, d.q)
    copy(v, d.v)
    code = run(ties.desk, CLOSE if counted else CLOSE_UNCOUNTED)
    copy(d.q, q)
    copy(d.v, v)
    return code


@primitive
def measure(desk, q, v, out):
    """out = largest residual and velocity residual."""
    d = desk_of(desk)
    copy(q, d.q)
    copy(v, d.v)
    code = run(desk, MEASURE)
    out[0], out[1] = worst(d.residual), worst(d.velocity)
    return code
