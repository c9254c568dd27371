"""Signals read in Python, by the source of the kernels: a few values need no compilation."""
from __future__ import annotations

import numpy as np

from liedyn.codegen.plain import plain
from liedyn.kernels.simulation.signals import CLOCK, CONSTANT, HELD_CLOCK, ORDER, PROGRAM, TIME


def read_signal(signals, k: int, t: float, q, v) -> tuple[float, float, float]:
    """Value and two time derivatives of signal k: as `kernels.simulation.signals.signal`."""
    stack = np.zeros(3 * max(1, int(signals.count[k])))
    with np.errstate(all="ignore"):
        x, dx, ddx = plain("kernels.simulation.signals").signal(signals, k, np.float64(t), q, v, stack)
    return float(x), float(dx), float(ddx)


def instructions(signals, k: int) -> np.ndarray:
    """Of signal k; none where it is no program."""
    first = signals.first[k]
    return signals.code[first:first + signals.count[k]] if signals.kind[k] == PROGRAM else np.zeros(0, dtype=np.int64)


def depends_on_time(signals, k: int) -> bool:
    """Whether signal k reads the time: a program with a time in it, a curve that is not constant."""
    if signals.kind[k] in (CONSTANT, PROGRAM):
        return bool(np.isin(instructions(signals, k) & 255, (TIME, CLOCK, HELD_CLOCK)).any())
    first, count = signals.first[k], signals.count[k]
    pieces = signals.coefficients.reshape(-1, ORDER)[first:first + count]
    return bool(pieces[:, 1:].any() or (pieces[:, 0] != pieces[0, 0]).any())


def state_on_reference(law, signals, t: float, q, v, flag) -> bool:
    """As `kernels.simulation.elastic_law.state_on_reference`."""
    with np.errstate(all="ignore"):
        return plain("kernels.simulation.elastic_law").state_on_reference(law, signals, np.float64(t), q, v, flag)
