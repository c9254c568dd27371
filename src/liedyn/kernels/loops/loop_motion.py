"""Constraints within a simulation: motions of driven closures from signals, and what `by_parts` does at a state."""
from typing import NamedTuple

import numpy as np

from liedyn.jit import kernel, primitive
from liedyn.kernels.checks import OK
from liedyn.kernels.loops.by_parts import CLOSE, CLOSE_UNCOUNTED, CLOSED, LOOK, MEASURE, MOVE, copy, run, worst
from liedyn.kernels.loops.desk import TIME, desk_of
from liedyn.kernels.simulation.signals import three
from liedyn.lie.rotation_motion import angles_motion
from liedyn.lie.rows import load9, store_pose, store_twist
from liedyn.lie.vec3 import cross, product, rotate_back, sub3, transpose


class LoopPlant(NamedTuple):
    """The constraints of a run."""

    desk: np.ndarray          # see `desk`
    signal: np.ndarray        # (6 driven,) int64: x y z, roll pitch yaw of each driven closure
    turn: np.ndarray          # (9 driven,) rotation from the kernels' frame A to the file's
    drive: np.ndarray         # (24 driven,) of the desk: motion at the last evaluation
    multipliers: np.ndarray   # (m,) of the desk: of the last evaluation
    figures: np.ndarray       # of the desk


# driven closures --------------------------------------------------------------------------------------------------
@kernel
def move_drives(signals, ties, t, work):
    """Writes ties.drive: p = x y z, R = Rz(yaw) Ry(pitch) Rx(roll). work.flag: a signal that is not finite."""
    for d in range(ties.signal.size // 6):
        p, dp, ddp = three(signals, ties.signal, 6 * d, t, work)
        angle, rate, rate2 = three(signals, ties.signal, 6 * d + 3, t, work)
        R, w, dw = angles_motion(angle, rate, rate2)
        v = rotate_back(R, dp)
        dv = sub3(rotate_back(R, ddp), cross(w, v))
        Q = load9(ties.turn, 9 * d)
        store_pose(ties.drive, 2 * d, (product(transpose(Q), product(R, Q)), rotate_back(Q, p)))
        store_twist(ties.drive, 4 * d + 2, (rotate_back(Q, w), rotate_back(Q, v)))
        store_twist(ties.drive, 4 * d + 3, (rotate_back(Q, dw), rotate_back(Q, dv)))


# at a state -------------------------------------------------------------------------------------------------------
@primitive
def moved(ties, work):
    """The desk after `MOVE` at the state in work, and its code."""
    d = desk_of(ties.desk)
    copy(work.q, d.q)
    copy(work.v, d.v)
    copy(work.a, d.a)
    copy(work.tau, d.tau)
    copy(work.F, d.f_ext)
    return d, run(ties.desk, MOVE)


@primitive
def tied_hybrid(ties, work):
    """`hybrid` under the constraints; writes the multipliers too. Returns a code of `by_parts`."""
    d, code = moved(ties, work)
    copy(d.found_a, work.a)
    copy(d.found_tau, work.tau)
    return code


@primitive
def look_from(ties, t, work):
    """`look_around` at an accepted state of a method that does without `tied_hybrid`. Overwrites ties.multipliers."""
    _, code = moved(ties, work)
    return CLOSED if code != OK else look_around(ties, t)         # lines hold for angles that are not large


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
