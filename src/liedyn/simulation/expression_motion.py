"""The program of a signal at a state; of an event's expression also its motion: value, two time derivatives, rounding."""
from __future__ import annotations

from typing import NamedTuple

import numpy as np

from liedyn.arrays import Array, Integers
from liedyn.codegen.rhs import read_signal, signal_instructions
from liedyn.dynamics.kinematics import link_acceleration, link_poses, link_twist
from liedyn.dynamics.scales import model_scales
from liedyn.integrators.problem import InitialValueProblem
from liedyn.integrators.zero_crossings import is_below_rounding, rounding_bound
from liedyn.kernels.simulation import signals as code
from liedyn.model.description import ONE_DOF
from liedyn.model.model import Model
from liedyn.model.spatial import rotation
from liedyn.simulation.name_binding import with_measured_values


class StateProgram:
    """The program of a signal at a state, as a function of time and of the numbers of the state that it reads.

    signals   with the values of points of links, and of generalized forces if tau is given
    values    number of the state that each instruction reads, by instruction
    """

    def __init__(self, problem: InitialValueProblem, words: Integers, t: float, q: Array, v: Array, tau: Array | None = None):
        self.signals, self.words, self.t = problem.signals, words, t
        operations = (words & 255).tolist()                     # np.isin takes longer for few numbers
        if code.MEASURED in operations or code.MOVING_POINT in operations:
            self.signals = with_measured_values(problem.model, problem.signals, q, v)
            if tau is not None:
                self.signals.measured[:problem.model.nv] = tau
        read = sorted({word for word in words.tolist() if word & 255 in code.STATE_OPERATIONS})
        self.values = {word: self._value(word, q, v) for word in read}

    def _value(self, word: int, q: Array, v: Array) -> float:
        operation, i = word & 255, word >> 8
        if operation in (code.STATE_Q, code.MOVING_Q):
            return float(q[i % code.RATE])
        return float(v[i] if operation == code.STATE_V else self.signals.measured[i])

    def slopes(self) -> dict[int, float]:
        """Return the derivative with respect to each number of the state, by instruction."""
        return {word: self.jet(e)[1] for word, e in zip(self.values, np.eye(len(self.values)), strict=True)}

    def jet(self, value_rates: Array, time_rate: float = 0.0, curvatures: Array | None = None) -> tuple[float, float, float]:
        """Return the jet of the program whose inputs move on straight lines, or parabolas with these second derivatives.

        value_rates   rates of the values
        time_rate     rate of t
        """
        curvatures = np.zeros(len(self.values)) if curvatures is None else curvatures
        motions = dict(zip(self.values, zip(value_rates, curvatures, strict=True), strict=True))
        instructions: list[int] = []
        literals = list(self.signals.literals)
        for word in map(int, self.words):
            if word in motions:
                begin, (slope, curvature) = self.values[word], motions[word]
            elif word & 255 in (code.TIME, code.CLOCK):
                begin = self.t - (self.signals.clocks[word >> 8] if word & 255 == code.CLOCK else 0.0)
                slope, curvature = time_rate, 0.0
            else:
                instructions.append(word)
                continue
            constant, linear, quadratic = (code.LITERAL + 256 * (len(literals) + i) for i in range(3))
            literals += [float(begin), float(slope), 0.5 * float(curvature)]
            instructions += [constant, linear, quadratic, code.TIME, code.MULTIPLY, code.ADD, code.TIME, code.MULTIPLY, code.ADD]
        alone = self.signals._replace(kind=np.array([code.PROGRAM]), first=np.zeros(1, dtype=np.int64),
                                      count=np.array([len(instructions)]), code=np.array(instructions, dtype=np.int64),
                                      literals=np.array(literals))
        return read_signal(alone, 0, 0.0, np.zeros(0), np.zeros(0))


class ExpressionMotion(NamedTuple):
    """The motion of an expression.

    value      of the expression
    rate       first time derivative
    curvature  second time derivative; NaN if it depends on the unknown rate of an acceleration or a force
    bound      bound of the rounding of the value
    size       size of the terms from which the value is computed

    The bound includes rounding from earlier values: for a number that is zero now, rounding of its characteristic size.
    """

    value: float
    rate: float
    curvature: float
    bound: float
    size: float

    @property
    def is_at_rest(self) -> bool:
        """Whether the rate is zero within the rounding of the value."""
        return bool(is_below_rounding(self.rate, self.curvature, self.bound))


def expression_motion(problem: InitialValueProblem, k: int, t: float, q: Array, v: Array, a: Array | None = None,
                      tau: Array | None = None) -> ExpressionMotion:
    """Return the motion of the expression of signal k at a state.

    a     accelerations; None: derivatives are NaN
    tau   generalized forces
    """
    model, words = problem.model.spanning_tree(), _smooth_instructions(signal_instructions(problem.signals, k))
    program = StateProgram(problem, words, t, q, v, tau)
    signals = program.signals
    size = original_size = np.abs(signals.literals[words[words & 255 == code.LITERAL] >> 8]).sum()
    for word, slope in program.slopes().items():
        if np.isfinite(slope):
            terms = _term_size(model, signals, word, program.values[word], q)
            min_size = max(_characteristic_size(model, word), _curve_term_size(problem, word))
            size, original_size = size + abs(slope) * terms, original_size + abs(slope) * max(terms, min_size)
    bound = float(rounding_bound(original_size))
    if a is None:
        value, _, _ = program.jet(np.zeros(len(program.values)))
        return ExpressionMotion(value, np.nan, np.nan, bound, float(size))
    motions = [_state_value_rates(model, signals, word, q, v, a) for word in program.values]
    rates, curvatures = np.array(motions).reshape(-1, 2).T
    finite_rates, finite_curvatures = np.nan_to_num((rates, curvatures))
    value, rate, curvature = program.jet(finite_rates, 1.0, finite_curvatures)
    known_rate, known_curvature = not np.isnan(rates).any(), not np.isnan(curvatures).any()
    return ExpressionMotion(value, rate if known_rate else np.nan, curvature if known_rate and known_curvature else np.nan, bound,
                            float(size))


def _smooth_instructions(words: Integers) -> Integers:
    """Return the instructions without the sign at the end of an event's program, and without switches whose side is held."""
    words = words[:-1] if len(words) and words[-1] & 255 == code.SIGN else words
    smooth = [word & 255 if word & 255 in code.SWITCH_OPERATIONS else word for word in words.tolist()]
    return np.array(smooth, dtype=words.dtype)


def _state_value_rates(model: Model, signals: code.Signals, word: int, q: Array, v: Array, a: Array) -> tuple[float, float]:
    """Return the first two time derivatives of a state variable; NaN if unknown."""
    operation, i = word & 255, word >> 8
    if operation == code.STATE_V:
        return a[i], np.nan
    if operation != code.MEASURED:
        return _coordinate_rates(model, i % code.RATE, q, v, a)
    if i < model.nv:
        return np.nan, np.nan
    (j, component), points = divmod(i - model.nv, code.NUMBERS_PER_POINT), signals.points
    link, p = model.link_names[points.link[j]], points.at[3 * j:3 * j + 3]
    R = link_poses(model, q)[points.link[j], :3, :3]
    V, dV = link_twist(model, q, v, link, frame="local"), link_acceleration(model, q, v, a, link, frame="local")
    velocity = V[3:] + np.cross(V[:3], p)
    acceleration = R @ (dV[3:] + np.cross(dV[:3], p) + np.cross(V[:3], velocity))
    group, axis = divmod(component, 3)
    rates = (R @ velocity)[axis], acceleration[axis], (R @ dV[:3])[axis]
    return rates[group], acceleration[axis] if group == 0 else np.nan


def _coordinate_rates(model: Model, i: int, q: Array, v: Array, a: Array) -> tuple[float, float]:
    """Return the first two time derivatives of q[i]."""
    joint = next(joint for joint in model.joints if joint.q.start <= i < joint.q.stop)
    k, rates, accelerations = i - joint.q.start, v[joint.v], a[joint.v]
    if joint.kind == ONE_DOF:
        return rates[k], accelerations[k]
    free = joint.q.stop - joint.q.start == 7
    w, dw = rates[:3], accelerations[:3]
    quaternion = q[joint.q.stop - 4:joint.q.stop]
    if free and k < 3:
        R = rotation(quaternion)
        return (R @ rates[3:])[k], (R @ (np.cross(w, rates[3:]) + accelerations[3:]))[k]
    dq = _quaternion_rate(quaternion, w)
    k -= 3 * free
    return dq[k], (_quaternion_rate(dq, w) + _quaternion_rate(quaternion, dw))[k]


def _quaternion_rate(quaternion: Array, w: Array) -> Array:
    """Return 1/2 q (w, 0), the rate of the quaternion x y z w of a body with angular velocity w in body axes."""
    x, s = quaternion[:3], quaternion[3]
    return 0.5 * np.append(s * w + np.cross(x, w), -x @ w)


def _term_size(model: Model, signals: code.Signals, word: int, value: float, q: Array) -> float:
    """Return the size of the terms from which a state variable is computed: positions of links are sums of lever arms."""
    operation, i = word & 255, word >> 8
    if operation != code.MEASURED or i < model.nv or (i - model.nv) % code.NUMBERS_PER_POINT >= 3:
        return abs(value)
    j = (i - model.nv) // code.NUMBERS_PER_POINT
    lengths = np.abs(link_poses(model, q)[..., :3, 3]).max() + np.abs(signals.points.at[3 * j:3 * j + 3]).sum()
    return abs(value) + float(lengths)


def _curve_term_size(problem: InitialValueProblem, word: int) -> float:
    """Return the maximum size of the terms of the polynomials that prescribe a state variable; 0 if none do."""
    operation, i, schedule, signals = word & 255, word >> 8, problem.schedule, problem.signals
    if operation == code.MEASURED:
        return 0.0
    at = [i] if operation == code.STATE_V else np.flatnonzero(schedule.q_of_v == i % code.RATE).tolist()
    if not at or schedule.level[at[0]] != code.POSITION:
        return 0.0
    k, order = int(schedule.signal[at[0]]), int(operation == code.STATE_V)
    if signals.kind[k] != code.POLYNOMIAL:
        return 0.0
    if (k, order) not in problem.curve_sizes:
        first, count = int(signals.first[k]), int(signals.count[k])
        lengths = np.diff(signals.breaks[first:first + count])
        lengths = np.append(lengths, lengths[-1:] if count > 1 else 1.0)          # the last piece has no end
        c = np.abs(signals.coefficients[code.ORDER * first:code.ORDER * (first + count)].reshape(count, code.ORDER))
        for _ in range(order):
            c = c[:, 1:] * np.arange(1, c.shape[1])
        problem.curve_sizes[k, order] = float((c * lengths[:, None]**np.arange(c.shape[1])).sum(axis=1).max())
    return problem.curve_sizes[k, order]


def _characteristic_size(model: Model, word: int) -> float:
    """Return the characteristic size of a state variable."""
    operation, i, scales = word & 255, word >> 8, model_scales(model)
    if operation == code.STATE_V:
        return scales.unit_scale(f"{model.v_units[i]}/s")
    if operation != code.MEASURED:
        return scales.unit_scale(model.q_units[i % code.RATE] or "1")
    if i < model.nv:
        return float(scales.force_scales([model.v_units[i]])[0])
    return scales.unit_scale(("m", "m/s", "rad/s")[(i - model.nv) % code.NUMBERS_PER_POINT // 3])
