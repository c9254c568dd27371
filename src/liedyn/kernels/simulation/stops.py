"""Stops at position limits of joints. Compliant ones push back beyond the limit (Hunt and Crossley 1975, with a linear spring):

    tau -= s k d (1 + c d')        d = s (q - limit) > 0,  s = 1 at an upper limit, -1 at a lower one,  1 + c d' > 0

The force begins at zero, and never pulls. d and 1 + c d' are switches of the state, so that steps end where either passes zero.

Coordinates that rest at hard stops are prescribed with zero acceleration. What hybrid dynamics finds for them, less the force
that drives them, is the force of the stop: a switch, too.
"""
from typing import NamedTuple

import numpy as np

from liedyn.jit import primitive
from liedyn.kernels.simulation.signals import MAX, SWITCH, held_choice, look
from liedyn.lie.lanes import load, where_less

LIMIT, STIFFNESS, DAMPING, NUMBERS = range(4)      # places in the numbers of a stop, and how many there are


class Stops(NamedTuple):
    """m compliant stops, h coordinates that rest at hard ones."""

    coordinate: np.ndarray   # (m,) int64 of v
    side: np.ndarray         # (m,) int64: 1 upper, -1 lower
    numbers: np.ndarray      # (NUMBERS m,) limit, k, c
    switch: np.ndarray       # (m,) int64: the first of two in Signals.held
    held: np.ndarray         # (h,) int64
    held_switch: np.ndarray  # (h,) int64
    applied: np.ndarray      # (nv,) scratch: the joint force without that of a hard stop


@primitive
def push_back(stops, q_of_v, signals, work):
    """Adds forces of compliant stops to work.tau, which is complete otherwise; stops what rests."""
    for j in range(stops.coordinate.size):
        k, s, i, m = stops.coordinate[j], stops.side[j], SWITCH * stops.switch[j], NUMBERS * j
        d = positive(signals.held, i, s * (work.q[q_of_v[k]] - load(stops.numbers, m + LIMIT)))
        d = where_less(0.0, d, d, 0.0)
        rate = s * work.v[k]
        share = where_less(0.0, d, 1.0 + load(stops.numbers, m + DAMPING) * rate, 1.0)
        work.tau[k] -= s * load(stops.numbers, m + STIFFNESS) * d * positive(signals.held, i + SWITCH, share)
    for j in range(stops.held.size):
        k = stops.held[j]
        stops.applied[k] = work.tau[k]
        work.a[k] = 0.0


@primitive
def weigh(stops, signals, work):
    """The forces of hard stops, once work.tau holds what hybrid dynamics found, as readings of their switches."""
    for j in range(stops.held.size):
        k = stops.held[j]
        look(signals.held, SWITCH * stops.held_switch[j], work.tau[k] - stops.applied[k])


@primitive
def positive(held, i, x):
    """max(x, 0), held on the side of the switch."""
    return held_choice(MAX, held, i, (x, 0.0, 0.0), (0.0, 0.0, 0.0), (where_less(0.0, x, x, 0.0), 0.0, 0.0))[0]
