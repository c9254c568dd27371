"""Whether a switch of the state is passed in a step just made, by what it has read at the stages: behind their rates in K."""
import numpy as np

from liedyn.jit import kernel, primitive
from liedyn.kernels.simulation.signals import EVENT, FLOOR, KIND, LOOSE, SIDE, SWITCH

_FAR = 8.0               # times what it changes


@primitive
def passed_within(held, method, stages):
    """Whether one was beyond its side, or may have been between. Loose ones go over to the side where they are."""
    n, last, passed = stages.end.size, method.b.size, False
    for k in range(held.size // SWITCH):
        read = stages.K[:, n + k]
        i, side, end = SWITCH * k, held[SWITCH * k + SIDE], read[last]
        if held[i + LOOSE] != 0.0:
            held[i + SIDE] = np.floor(end) if held[i + LOOSE] > 1.0 else 1.0 if end >= 0.0 else -1.0
        elif side != side:
            passed = passed or end != 0.0
        elif held[i + KIND] != EVENT or not far(side, read[0], read[1], read[last // 2], end):
            low, high = end, end
            for r in range(last):
                x = read[r]
                low, high = x if x < low else low, x if x > high else high
            if held[i + KIND] == FLOOR:
                passed = passed or low < side or high >= side + 1.0
            else:
                low, high = (low, high) if side > 0.0 else (-high, -low)
                passed = passed or -np.inf < low < 0.0 or (low == 0.0 and held[i + KIND] == EVENT)      # zero is reached
                if held[i + KIND] == EVENT and low <= 2.0 * (high - low):      # near, as hardly ever
                    passed = passed or may_be_passed_twice(side, n + k, method, stages)
    return passed


@primitive
def far(side, w, x, y, z):
    """Whether an event that reads w, x, y, z at four stages of a step is so far that the others need not be looked at. Three are
    not enough: those of rk4 at the beginning, in the middle and at the end are equal where a way turns in the middle."""
    low, high = x if x < w else w, w if x < w else x
    low, high = y if y < low else low, y if y > high else high
    low, high = z if z < low else low, z if z > high else high
    return (low if side > 0.0 else -high) > _FAR * (high - low)


@kernel
def may_be_passed_twice(side, column, method, stages):
    """Whether an event may be passed and passed back within a step: where the polynomial through what it read falls to less than
    half of how far it is from a straight line. It is only good for so much."""
    last, times = method.b.size, method.between.shape[0]
    begin, slope = side * stages.K[0, column], side * (stages.K[last, column] - stages.K[0, column])
    least, bent = np.inf, 0.0
    for j in range(times):
        x = 0.0
        for r in range(last + 1):
            x += method.between[j, r] * stages.K[r, column]
        least, bent = min(least, side * x), max(bent, abs(side * x - begin - slope * (j + 1) / (times + 1)))
    return least < 0.5 * bent


@primitive
def none_loose(held):
    """Loose switches may have gone over between the steps."""
    loose = 0.0
    for i in range(LOOSE, held.size, SWITCH):
        loose += held[i]
    return loose == 0.0
