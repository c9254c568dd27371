"""A controller that acts at sample times t_k = k T: it measures the state, computes torques by its laws, and holds them.

    q_m, v_m = round((q + e_q) / r_q) r_q, round((v + e_v) / r_v) r_v          encoders of resolution r, with noise e
    tau_k = law(t_k, q_m, v_m) + z_k + f(t_k, q_m, v_m)      z: integral of a pid law, f: a function of the user
    u_k = limited(round(tau_k / r_tau) r_tau)                acts from t_k + delay to t_(k+1) + delay; u_0 from the start
    z_(k+1) = z_k + k_i T (target - q_m)                     unless u_k is at its limit and the integral would grow further

With a first-order hold, the output is u_k + (u_k - u_(k-1)) (t - t_k - delay) / T instead. It is constant for u_0, and for the
first torque of a joint that had no law at the previous sample.

The condition for z prevents windup of the integral: conditional integration (Astrom, Hagglund, Advanced PID Control, 2006, 3.5).
"""
from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np

from liedyn.arrays import Array, ArrayLike, Controller, Integers, Mask
from liedyn.codegen.rhs import signal_instructions
from liedyn.dynamics.manifold import integrate
from liedyn.errors import ComputationError
from liedyn.integrators.diagnosis import failure
from liedyn.integrators.problem import InitialValueProblem
from liedyn.integrators.segment import SAME_TIME_SPACINGS, RightHandSide
from liedyn.io.scenarios.scenario import Sampling
from liedyn.kernels.simulation.right_hand_side import BAD_SIGNAL
from liedyn.kernels.simulation.signals import STATE_OPERATIONS, TORQUE, Signals
from liedyn.model.model import Model
from liedyn.simulation.control.joint_control import force_limits
from liedyn.simulation.control.motors import gear_factors
from liedyn.simulation.control.observer import Observer, Piece
from liedyn.simulation.control.thrusts import input_name
from liedyn.simulation.random_streams import NOISE_BLOCK, MeasurementNoise
from liedyn.simulation.trajectory_columns import thrust_names

State: TypeAlias = tuple[Array, Array]                        # q, v

_EPS = np.finfo(float).eps


class SampledController:
    """State of the sampled controller of one run, through all its segments.

    next_time      time of its next action [s]
    torque, slope  (inputs,) present torque or thrust is torque + slope (t - since) [N m | N, per s]
    """

    def __init__(self, sampling: Sampling, model: Model, observer: Observer | None = None):
        self.sampling, self.model, self.observer = sampling, model, observer
        self.samples = 0                                       # number of samples
        n = model.nv + len(model.description.actuators)
        self.since, self.torque, self.slope = 0.0, np.zeros(n), np.zeros(n)          # present torque
        self.before, self.had_law = np.zeros(n), np.zeros(n, dtype=bool)             # at the last sample
        self.integral = np.zeros(model.nv)
        self.waiting: deque[tuple[float, Array, Array]] = deque()         # delayed: time, torque, slope
        self._law: _Law | None = None

    @property
    def next_time(self) -> float:
        """Time of the next sample, or of the next delayed torque [s]."""
        sample = self.sampling.time(self.samples)
        return min(sample, self.waiting[0][0]) if self.waiting else sample

    def update(self, problem: InitialValueProblem, t: float, q0: Array, y: Array) -> None:
        """Take the samples and apply the delayed torques that are due at t. The state is q0 (+) y. Raises ComputationError."""
        while self.next_time - t <= SAME_TIME_SPACINGS * math.ulp(t):
            if self.waiting and self.waiting[0][0] <= self.sampling.time(self.samples):
                self.since, self.torque, self.slope = self.waiting.popleft()
                continue
            (torque, q, v), taken = self._sample(problem, t, q0, y), self.sampling.time(self.samples)
            slope = self._slope(torque, problem.sampled.controlled)
            if self.sampling.delay and self.samples:
                self.waiting.append((taken + self.sampling.delay, torque, slope))
            else:
                self.since, self.torque, self.slope = taken, torque, slope
            self.samples += 1
            if self.observer is not None:
                self.observer.advance(q, v, self._pieces(taken, self.sampling.time(self.samples)), problem.sampled.acting)

    def _pieces(self, taken: float, until: float) -> list[Piece]:
        """Return the torques from a sample until the next one."""
        entries = [(self.since, self.torque, self.slope), *(entry for entry in self.waiting if entry[0] < until)]
        ends = [*(entry[0] for entry in entries[1:]), until]
        return [Piece(end - taken, since - taken, torque, slope)
                for end, (since, torque, slope) in zip(ends, entries, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the controller and its observer, except that of a function of the user."""
        times, torques, slopes = zip(*self.waiting, strict=True) if self.waiting else ((), (), ())
        arrays = {name: getattr(self, name) for name in ("torque", "slope", "before", "had_law", "integral")}
        return arrays | {"samples": self.samples, "since": self.since, "observer": self.observer and self.observer.state_dict(),
                         "waiting": {"times": list(times), "torques": np.array(torques), "slopes": np.array(slopes)}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state that `state_dict` returned."""
        for name in ("torque", "slope", "before", "had_law", "integral"):
            setattr(self, name, np.array(state[name]))
        if self.observer is not None:
            self.observer.load_state_dict(state["observer"])
        self.samples, self.since, waiting = state["samples"], state["since"], state["waiting"]
        self.waiting = deque(zip(waiting["times"], waiting["torques"], waiting["slopes"], strict=True))

    def _slope(self, torque: Array, has_law: Mask) -> Array:
        """Return the slope of the line through the torques of the last two samples."""
        slope = np.where(self.had_law & (self.sampling.hold == "first"), (torque - self.before) / self.sampling.interval, 0.0)
        self.before, self.had_law = torque, has_law
        return slope

    def _sample(self, problem: InitialValueProblem, t: float, q0: Array, y: Array) -> tuple[Array, Array, Array]:
        """Return the quantized and limited torques and thrusts (inputs,) of a sample, and what is measured of q and v.

        Advances the integrals.
        """
        sampled = problem.sampled
        if self._law is None or self._law.sampled is not sampled:
            self._law = _Law(sampled)
        law = self._law
        taken = self.sampling.time(self.samples)
        if self.observer is not None and sampled.law.prescribed.any():
            raise ComputationError(f"a joint is prescribed or locked at t = {t:.9g} s, which observers do not support")
        estimate = None if self.observer is None else self.observer.state_at(taken)
        measured, (q, v), torque = law.evaluate(t, q0, y, self.integral, self.samples, estimate)
        torque = np.where(sampled.controlled, torque, 0.0) + 0.0         # 0, not -0
        if self.sampling.function is not None:
            values = user_torques(self.model, self.sampling.function, taken, q[None], v[None])
            torque += np.where(sampled.controlled, values[0], 0.0)
        if not np.isfinite(torque).all():
            name = input_name(self.model, int(np.argmin(np.isfinite(torque))))
            raise ComputationError(f"the sampled torque of {name} is not a finite number at t = {t:.9g} s")
        bottom, top = force_limits(sampled.law, sampled.limit, t, q, v)
        k, rate, previous_integral, self.integral = law.integral, law.integral_rate, self.integral, np.zeros(len(v))
        if len(k):
            winding = ((torque > top)[k] & (rate > 0.0)) | ((torque < bottom)[k] & (rate < 0.0))
            self.integral[k] = previous_integral[k] + np.where(winding, 0.0, rate * self.sampling.interval)
        return _quantize(torque, sampled.resolution[2]).clip(bottom, top), *measured


def takes_arrays(function: Controller) -> bool:
    """Return whether a function or object of the user computes torques of several runs: its attribute `vectorized` is true."""
    return getattr(getattr(function, "func", function), "vectorized", False) is True


def user_torques(model: Model, function: Controller, t: float, q: Array, v: Array) -> Array:
    """Return the torques and thrusts (N, inputs) of the user's function for states q (N, nq), v (N, nv) of runs.

    Several runs require a function that takes arrays. Raises ComputationError.
    """
    subject, several = f"the controller, called at t = {t:.9g} s,", takes_arrays(function)
    try:
        values = function(t, *(x.copy() if several else x[0].copy() for x in (q, v)))
    except Exception as problem_found:
        raise ComputationError(f"{subject} raised {type(problem_found).__name__}: {problem_found}") from problem_found
    nv, thrusts, lead = model.nv, thrust_names(model), (len(q),) if several else ()
    torque, of_runs = np.zeros((len(q), nv + len(thrusts))), f" of {len(q)} runs" if several else ""
    if not isinstance(values, Mapping):
        also = f" (and {len(thrusts)} thrusts after them)" if thrusts else ""
        n = torque.shape[1] if np.shape(values) == (*lead, torque.shape[1]) else nv
        torque[:, :n] = _torque_array(values, lead, n, f"{subject} must return {nv} torques{of_runs}, one for each velocity "
                                      f"coordinate{also}, or a dict by joint")
        return torque
    for name, value in values.items():
        if name in thrusts:
            meaning = f"{subject} must return one number{of_runs} for {name}"
            torque[:, nv + thrusts.index(name), None] = _torque_array(value, lead, 1, meaning)
            continue
        if name not in model.joint_names:
            raise ComputationError(f"{subject} returned a torque of {name!r}; the robot has the joints "
                                   f"{', '.join((*model.joint_names, *thrusts))}")
        place = model.v_index(name)
        n = place.stop - place.start
        torque[:, place] = _torque_array(value, lead, n, f"{subject} must return {n} torque{'s' * (n != 1)}{of_runs} for joint "
                                         f"{name}")
    return torque


def measured_states(sampled: SampledLaws, q: Array, v: Array, errors: Array | None = None) -> tuple[Array, Array]:
    """Return what encoders measure of the states q (N, nq), v (N, nv). errors (N, 2, nv): their noise."""
    schedule, nv = sampled.law.schedule, v.shape[1]
    is_measured = (schedule.level == TORQUE) & (schedule.q_of_v >= 0)                    # prescribed coordinates are not
    q_resolution, v_resolution = (np.where(is_measured, x[:nv], 0.0) for x in sampled.resolution[:2])
    if errors is not None:
        q, v = integrate(sampled.law.model, q, errors[:, 0]), v + errors[:, 1]
    coordinates, q = np.flatnonzero(q_resolution), q.copy()
    places = schedule.q_of_v[coordinates]
    q[:, places] = _quantize(q[:, places], q_resolution[coordinates])
    return q, _quantize(v, v_resolution)


def acting_torques(sampled: SampledLaws, torque: Array) -> Array:
    """Return torques (N, inputs) after resolution and constant limits, zero where the controller does not act."""
    return np.asarray(_quantize(np.where(sampled.controlled, torque, 0.0) + 0.0, sampled.resolution[2]).clip(
        -sampled.limit, sampled.limit))


class _Law:
    """Evaluation of the laws of one phase."""

    def __init__(self, sampled: SampledLaws):
        law = sampled.law
        self.sampled, self.problem, self.q_of_v, self.integral = sampled, law, law.schedule.q_of_v, law.schedule.integral
        self.rhs, self.work = RightHandSide(law, law.signals), law.workspace()
        self.rates = np.zeros((2, law.size))
        measured = (law.schedule.level == TORQUE) & (self.q_of_v >= 0)       # prescribed coordinates are not measured
        self.q_resolution, self.v_resolution = (np.where(measured, r[:law.model.nv], 0.0) for r in sampled.resolution[:2])
        self.thrusters = law.model.nv + law.thrusters
        self.measured, self.is_quantized = np.flatnonzero(self.q_resolution), bool(self.q_resolution.any()
                                                                                   or self.v_resolution.any())
        self.is_measured, self.is_noisy = law.schedule.level == TORQUE, bool(sampled.noise.deviations.any())
        self._first, self._block = -1, np.zeros(0)
        self.integral_rate = self.rates[0, 2 * law.model.nv:-1]

    def evaluate(self, t: float, q0: Array, y: Array, integral: Array, sample: int,
                 estimate: State | None) -> tuple[State, State, Array]:
        """Return the measured q and v, those with which the laws compute, and their torques and thrusts (inputs,).

        integral   (nv,) integrals of pid laws
        sample     its number, on which the noise depends
        estimate   of q and v, in place of what is measured
        """
        nv, z = len(self.v_resolution), integral[self.integral]
        self._evaluate(t, q0, np.concatenate([y[:2 * nv], z, [0.0]]))
        if self.is_quantized or self.is_noisy:
            errors = self._errors(sample)
            q, v, k = self.work.q.copy(), self.work.v + errors[1], self.q_of_v[self.measured]
            if errors[0].any():
                q = integrate(self.problem.model, q, errors[0])
            q[k] = _quantize(q[k], self.q_resolution[self.measured])
            self._evaluate(t, q, np.concatenate([np.zeros(nv), _quantize(v, self.v_resolution), z, [0.0]]))
        measured = used = self.work.q.copy(), self.work.v.copy()
        if estimate is not None:
            used = estimate
            self._evaluate(t, used[0], np.concatenate([np.zeros(nv), used[1], z, [0.0]]))
        torque = np.zeros(len(self.sampled.controlled))
        torque[:nv], torque[self.thrusters] = self.work.tau, self.problem.split_wrench(self.work.wrench)[1]
        return measured, used, torque

    def _errors(self, sample: int) -> Array:
        """Return the noise (2, nv) of a sample."""
        first = sample - sample % NOISE_BLOCK
        if first != self._first:
            self._first, self._block = first, self.sampled.noise.block(first) * self.is_measured
        errors: Array = self._block[sample - first]
        return errors

    def _evaluate(self, t: float, q0: Array, y: Array) -> None:
        code = self.rhs.evaluate(t, q0, y, self.rates, 0, self.work)
        if code == BAD_SIGNAL:                                 # the simulation of the motion reports other failures
            raise failure(self.problem, code, t, self.work, self.rhs.constraints)


def _quantize(x: Array, resolution: Array) -> Array:
    """Return x rounded to multiples of the resolution, or x where that is 0 or less than the spacing of floats."""
    if not resolution.any():
        return x
    with np.errstate(all="ignore"):
        return np.where(_EPS * np.abs(x) < resolution, np.rint(x / resolution) * resolution, x)


def _torque_array(torques: ArrayLike | None, lead: tuple[int, ...], n: int, meaning: str) -> Array:
    """Return the torques (N, n) of a user's function, or raise ComputationError.

    lead: () or (N,), the first axis of several runs; meaning: beginning of the message
    """
    if torques is None:
        raise ComputationError(f"{meaning}; it returned None")
    try:
        values = np.asarray(torques, dtype=float)
    except (TypeError, ValueError):
        raise ComputationError(f"{meaning}; it returned {type(torques).__name__}") from None
    if values.shape != (*lead, n) and not (n == 1 and values.shape == lead):
        raise ComputationError(f"{meaning}; it returned an array of shape {values.shape}")
    return values.reshape(-1, n)


# sampled laws -----------------------------------------------------------------------------------------------------------

# A scenario with sampling becomes two problems: that of the motion, in which the torques of the laws are constants or straight
# lines, and that of the laws, as if they were continuous. The controller evaluates the second at its samples and writes the
# torques into the first.

@dataclass(frozen=True, eq=False)
class SampledLaws:
    """Laws of a sampled controller, bound to a model.

    law            problem whose torques and thrusts at a state are those of the controller before limits
    controlled     (inputs,) bool: coordinates and actuators on which the controller acts
    signal         (inputs,) int64: signals of its torques in the problem of the motion, constants or straight lines; -1: none
    limit          (inputs,) of the torque [N m | N]
    resolution     of q, v and tau, each (inputs,); 0: exact
    noise          of q and v
    is_whole_run   whether the laws hold for the whole run, without phases
    measures       torques depend on the state; those of a rollout that changes its inputs at steps do not
    """

    measures: ClassVar[bool] = True

    law: InitialValueProblem
    controlled: Mask
    signal: Integers
    limit: Array
    resolution: tuple[Array, Array, Array]
    noise: MeasurementNoise
    is_whole_run: bool

    def restarted_at(self, start_times: Mapping[str, float]) -> SampledLaws:
        """Return the laws with other start times of clocks, as `InitialValueProblem.restarted_at`."""
        return replace(self, law=self.law.restarted_at(start_times))

    def acting(self, q: Array, v: Array, torque: Array) -> Array:
        """Return torques and thrusts (inputs,) behind the limits at a state and the losses of gears."""
        bottom, top = force_limits(self.law, self.limit, 0.0, q, v)
        torque, laws, nv = torque.clip(bottom, top), self.law.joint_laws, len(v)
        if laws is not None and laws.gear_loss.size:
            driving, braking = gear_factors(laws.gear_loss, laws.gear_gain, v)
            torque[:nv] *= np.where(torque[:nv] >= 0.0, driving, braking)
        return torque

    @property
    def targets(self) -> Integers:
        """(nv,) signals of the desired motions of pd, pid and computed torque; -1: none."""
        target, laws = self.law.schedule.target, self.law.joint_laws
        return target if laws is None else np.maximum(target, laws.signal)

    @property
    def references(self) -> Integers:
        """(nv,) the same for desired motions that are functions of time; else -1."""
        return np.array([k if k >= 0 and not reads_state(self.law.signals, k) else -1 for k in self.targets])


def reads_state(signals: Signals, k: int) -> bool:
    """Return whether signal k depends on more than time."""
    return bool(np.isin(signal_instructions(signals, k) & 255, STATE_OPERATIONS).any())
