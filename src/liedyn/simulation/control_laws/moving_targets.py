"""What the time derivative of a pd law's target answers to the state, where the target reads it, exactly.

Of f(t, s) with numbers s of the state, the derivative is f' = f_t + sum_j f_j s_j', and

    df' = sum_j (D^2 f(u, e_j) ds_j + f_j ds_j'),        u = (1, s'),

where D^2 f(u, e) = (D^2 f(u + e, u + e) - D^2 f(u - e, u - e)) / 4 comes from the jets of the program along straight lines.
"""
from __future__ import annotations

import numpy as np

from liedyn.codegen.signals import read_signal
from liedyn.kernels.simulation.signals import (
    ADD,
    CLOCK,
    LITERAL,
    MEASURED,
    MOVING_POINT,
    MOVING_Q,
    MULTIPLY,
    PROGRAM,
    RATE,
    STATE_Q,
    TIME,
)
from liedyn.simulation.measured import measured_at, measured_slope


def standing(words: np.ndarray) -> np.ndarray:
    """Instructions that read the state without its motion."""
    operation, operand = words & 255, words >> 8
    words = np.where(operation == MOVING_Q, STATE_Q + 256 * (operand % RATE), words)
    return np.where(operation == MOVING_POINT, MEASURED + 256 * operand, words)


def rate_gradient(problem, k: int, t: float, q, v) -> np.ndarray:
    """(2 nv,) derivative by [dq; dv] of the time derivative of signal k."""
    signals, nv = problem.signals, problem.model.nv
    out = np.zeros(2 * nv)
    if signals.kind[k] != PROGRAM:
        return out
    words = signals.code[signals.first[k]:][:signals.count[k]]
    moving = [int(word) for word in np.unique(words[np.isin(words & 255, (MOVING_Q, MOVING_POINT))])]
    if not moving:
        return out
    signals = measured_at(problem.model, signals, q, v)
    leaves = [_leaf(problem.model, signals, word, q, v) for word in moving]
    values = dict(zip(moving, (leaf[0] for leaf in leaves), strict=True))
    u = np.array([leaf[1] for leaf in leaves])
    for e, (_, _, by_state, rate_by_state) in zip(np.eye(len(leaves)), leaves, strict=True):
        first = _along(signals, words, values, e, 0.0, t)[1]
        bent = (_along(signals, words, values, u + e, 1.0, t)[2] - _along(signals, words, values, u - e, 1.0, t)[2]) / 4
        out += bent * by_state + first * rate_by_state
    return out


def _leaf(model, signals, word: int, q, v):
    """Value, rate, and the derivatives of both by the state."""
    i, unit = word >> 8, np.eye(2 * model.nv)
    if word & 255 == MOVING_Q:
        i, k = i % RATE, i // RATE
        return q[i], v[k], unit[k], unit[model.nv + k]
    return (signals.measured[i], signals.measured[i + 3], measured_slope(model, signals, i, q, v),
            measured_slope(model, signals, i + 3, q, v))


def _along(signals, words, values: dict[int, float], slopes, time_slope: float, t: float) -> tuple[float, float, float]:
    """Jet of the program where its numbers move on straight lines."""
    slope_of, code, literals = dict(zip(values, slopes, strict=True)), [], list(signals.literals)
    for word in map(int, words):
        if word in values:
            begin, slope = values[word], slope_of[word]
        elif word & 255 in (TIME, CLOCK):
            begin, slope = t - (signals.clocks[word >> 8] if word & 255 == CLOCK else 0.0), time_slope
        else:
            code.append(word)
            continue
        n = len(literals)
        literals += [float(begin), float(slope)]
        code += [LITERAL + 256 * n, LITERAL + 256 * (n + 1), TIME, MULTIPLY, ADD]
    alone = signals._replace(kind=np.array([PROGRAM]), first=np.zeros(1, dtype=np.int64), count=np.array([len(code)]),
                             code=np.array(code, dtype=np.int64), literals=np.array(literals))
    return read_signal(alone, 0, 0.0, np.zeros(0), np.zeros(0))
