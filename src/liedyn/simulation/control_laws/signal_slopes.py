"""What signals, and time derivatives of the targets of pd laws, answer to a small change x = [dq; dv] of the state, exactly.

Of f(t, s) with numbers s of the state, and of its derivative f' = f_t + sum_j f_j s_j' where a target reads the state,

    df = sum_j f_j ds_j        df' = sum_j (D^2 f(u, e_j) ds_j + f_j ds_j'),        u = (1, s'),

where f_j = Df(e_j) and D^2 f(u, e) = (D^2 f(u + e, u + e) - D^2 f(u - e, u - e)) / 4 come from the jets of the program along
straight lines.
"""
from __future__ import annotations

import numpy as np

from liedyn.codegen.steps.signals import instructions, read_signal
from liedyn.dynamics.tangent_numbers import tangent_of_numbers
from liedyn.errors import ComputationError
from liedyn.kernels.simulation.signals import (
    ADD,
    CLOCK,
    LITERAL,
    MOVING_POINT,
    MOVING_Q,
    MULTIPLY,
    OF_STATE,
    PROGRAM,
    RATE,
    STATE_Q,
    STATE_V,
    TIME,
)
from liedyn.simulation.measured import measured_at, measured_name, measured_slope


def signal_gradient(problem, k: int, t: float, q, v) -> np.ndarray:
    """(2 nv,) derivative of signal k by the state. Raises ComputationError where there is none."""
    model, words = problem.model, instructions(problem.signals, k)
    read = [int(word) for word in np.unique(words[np.isin(words & 255, OF_STATE)])]
    if not read:
        return np.zeros(2 * model.nv)
    signals, by_numbers, out = measured_at(model, problem.signals, q, v), np.zeros(model.nq), np.zeros(2 * model.nv)
    values = {word: number_of_state(signals, word, q, v) for word in read}
    for word, e in zip(read, np.eye(len(read)), strict=True):
        slope, operation, i = jet_along(signals, words, values, e, 0.0, t)[1], word & 255, word >> 8
        if not np.isfinite(slope):
            name = f"q({model.q_names[i % RATE]})" if operation in (STATE_Q, MOVING_Q) else f"v({model.v_names[i]})" \
                if operation == STATE_V else measured_name(model, signals, i)
            where = f"{problem.signal_places[k]}: " if str(problem.signal_places[k]) else ""
            raise ComputationError(f"{where}the {problem.signal_names[k]} has no derivative by {name} at t = {t:.6g} s")
        if operation in (STATE_Q, MOVING_Q):
            by_numbers[i % RATE] += slope
        elif operation == STATE_V:
            out[model.nv + i] += slope
        else:
            out += slope * measured_slope(model, signals, i, q, v)
    out[:model.nv] += tangent_of_numbers(model, q, by_numbers)
    return out


def rate_gradient(problem, k: int, t: float, q, v) -> np.ndarray:
    """(2 nv,) derivative by the state of the time derivative of signal k, a target."""
    model, words, out = problem.model, instructions(problem.signals, k), np.zeros(2 * problem.model.nv)
    moving = [int(word) for word in np.unique(words[np.isin(words & 255, (MOVING_Q, MOVING_POINT))])]
    if not moving:
        return out
    signals = measured_at(model, problem.signals, q, v)
    values = {word: number_of_state(signals, word, q, v) for word in moving}
    rates, by_state, rate_by_state = zip(*(_motion(model, signals, word, q, v) for word in moving), strict=True)
    for e, ds, d_rate in zip(np.eye(len(moving)), by_state, rate_by_state, strict=True):
        first = jet_along(signals, words, values, e, 0.0, t)[1]
        bent = jet_along(signals, words, values, rates + e, 1.0, t)[2] - jet_along(signals, words, values, rates - e, 1.0, t)[2]
        out += bent / 4 * ds + first * d_rate
    return out


def _motion(model, signals, word: int, q, v) -> tuple[float, np.ndarray, np.ndarray]:
    """Of a moving number its rate, and the derivatives of both by the state."""
    i, unit = word >> 8, np.eye(2 * model.nv)
    if word & 255 == MOVING_Q:
        return v[i // RATE], unit[i // RATE], unit[model.nv + i // RATE]
    return signals.measured[i + 3], measured_slope(model, signals, i, q, v), measured_slope(model, signals, i + 3, q, v)


def number_of_state(signals, word: int, q, v) -> float:
    """The number of the state that an instruction reads."""
    operation, i = word & 255, word >> 8
    return q[i % RATE] if operation in (STATE_Q, MOVING_Q) else v[i] if operation == STATE_V else signals.measured[i]


def jet_along(signals, words, values: dict[int, float], slopes, time_slope: float, t: float,
              curvatures=None) -> tuple[float, float, float]:
    """Jet of the program where its numbers move on straight lines, or with second derivatives `curvatures` on parabolas."""
    curvatures = np.zeros(len(values)) if curvatures is None else curvatures
    motions, code, literals = dict(zip(values, zip(slopes, curvatures, strict=True), strict=True)), [], list(signals.literals)
    for word in map(int, words):
        if word in values:
            begin, (slope, curvature) = values[word], motions[word]
        elif word & 255 in (TIME, CLOCK):
            begin, slope, curvature = t - (signals.clocks[word >> 8] if word & 255 == CLOCK else 0.0), time_slope, 0.0
        else:
            code.append(word)
            continue
        n = len(literals)
        literals += [float(begin), float(slope), 0.5 * float(curvature)]
        code += [LITERAL + 256 * n, LITERAL + 256 * (n + 1), LITERAL + 256 * (n + 2), TIME, MULTIPLY, ADD, TIME, MULTIPLY, ADD]
    alone = signals._replace(kind=np.array([PROGRAM]), first=np.zeros(1, dtype=np.int64), count=np.array([len(code)]),
                             code=np.array(code, dtype=np.int64), literals=np.array(literals))
    return read_signal(alone, 0, 0.0, np.zeros(0), np.zeros(0))
