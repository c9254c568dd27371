"""A controller that acts at sample times t_k = k T: it measures, computes torques by its laws, and holds them.

    q_m, v_m = round(q / r_q) r_q, round(v / r_v) r_v        encoders of resolution r
    tau_k = law(t_k, q_m, v_m) + z_k + f(t_k, q_m, v_m)      z: sum of a pid law, f: a function of the user
    u_k = limited(round(tau_k / r_tau) r_tau)                acts from t_k + delay to t_(k+1) + delay; u_0 from the start
    z_(k+1) = z_k + k_i T (target - q_m)                     but not where u_k is at its limit and the sum would go on growing

A first-order hold puts out u_k + (u_k - u_(k-1)) (t - t_k - delay) / T instead; u_0, and the first torque of a joint that had no
law at the sample before, is constant.
The last condition keeps the integral from winding up: conditional integration (Astrom, Hagglund, Advanced PID Control, 2006,
3.5).
"""
from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping

import numpy as np

from liedyn.errors import ComputationError
from liedyn.integrators.failure import failure
from liedyn.integrators.held_torques import SAME
from liedyn.integrators.problem import Problem
from liedyn.integrators.right_hand_side import RightHandSide
from liedyn.io.scenarios.sampling import Sampling
from liedyn.kernels.simulation.right_hand_side import BAD_SIGNAL
from liedyn.kernels.simulation.signals import TORQUE
from liedyn.simulation.control_laws.laws import limits_at

_EPS = np.finfo(float).eps


class SampledController:
    """Of one run, through all its stretches. due: when it acts next [s]; torque, slope: (nv,) that it holds, from `since` on and
    a second [N m/s | N/s]."""

    def __init__(self, sampling: Sampling, model):
        self.sampling, self.model = sampling, model
        self.samples = 0                                       # taken so far
        self.since, self.torque, self.slope = 0.0, np.zeros(model.nv), np.zeros(model.nv)          # what acts
        self.before, self.had_law = np.zeros(model.nv), np.zeros(model.nv, dtype=bool)             # at the last sample
        self.integral = np.zeros(model.nv)
        self.waiting: deque[tuple[float, np.ndarray, np.ndarray]] = deque()         # what will: time, torque, slope
        self._law: _Law | None = None

    @property
    def due(self) -> float:
        sample = self.sampling.time(self.samples)
        return min(sample, self.waiting[0][0]) if self.waiting else sample

    def act(self, problem: Problem, t: float, q0, y) -> None:
        """What is due at t, where the state is q0 (+) y. Raises ComputationError."""
        while self.due - t <= SAME * math.ulp(t):
            if self.waiting and self.waiting[0][0] <= self.sampling.time(self.samples):
                self.since, self.torque, self.slope = self.waiting.popleft()
                continue
            torque, taken = self._sample(problem, t, q0, y), self.sampling.time(self.samples)
            slope = self._slope(torque, problem.sampled.held)
            if self.sampling.delay and self.samples:
                self.waiting.append((taken + self.sampling.delay, torque, slope))
            else:
                self.since, self.torque, self.slope = taken, torque, slope
            self.samples += 1

    def about(self) -> dict:
        """All that its further work depends on, as plain values, but for what a function of the user keeps."""
        return {"samples": self.samples, "since": self.since, "integral": self.integral.tolist(),
                **{name: getattr(self, name).tolist() for name in ("torque", "slope", "before", "had_law")},
                "waiting": [[t, torque.tolist(), slope.tolist()] for t, torque, slope in self.waiting]}

    def go_on(self, about: dict) -> None:
        """From what `about` said."""
        self.samples, self.since, self.integral = about["samples"], about["since"], np.array(about["integral"])
        for name in ("torque", "slope", "before", "had_law"):
            setattr(self, name, np.array(about[name]))
        self.waiting = deque((t, np.array(torque), np.array(slope)) for t, torque, slope in about["waiting"])

    def _slope(self, torque, has_law) -> np.ndarray:
        """Of the line through the torques of the last two samples."""
        slope = np.where(self.had_law & (self.sampling.hold == "first"), (torque - self.before) / self.sampling.interval, 0.0)
        self.before, self.had_law = torque, has_law
        return slope

    def _sample(self, problem: Problem, t: float, q0, y) -> np.ndarray:
        sampled = problem.sampled
        if self._law is None or self._law.sampled is not sampled:
            self._law = _Law(sampled)
        law = self._law
        q, v, torque = law.at(t, q0, y, self.integral)
        torque = np.where(sampled.held, torque, 0.0) + 0.0         # 0, not -0
        if self.sampling.function is not None:
            torque += np.where(sampled.held, self._asked(self.sampling.time(self.samples), q, v), 0.0)
        if not np.isfinite(torque).all():
            name = self.model.v_names[int(np.argmin(np.isfinite(torque)))]
            raise ComputationError(f"the sampled torque of {name} is not a finite number at t = {t:.9g} s")
        bottom, top = limits_at(sampled.law, sampled.limit, t, q, v)
        k, rate, before, self.integral = law.integral, law.integral_rate, self.integral, np.zeros(len(v))
        if len(k):
            winding = ((torque > top)[k] & (rate > 0.0)) | ((torque < bottom)[k] & (rate < 0.0))
            self.integral[k] = before[k] + np.where(winding, 0.0, rate * self.sampling.interval)
        return _rounded(torque, sampled.resolution[2]).clip(bottom, top)

    def _asked(self, t: float, q, v) -> np.ndarray:
        """Torques by the user's function."""
        where = f"the controller, called at t = {t:.9g} s,"
        try:
            given = self.sampling.function(t, q.copy(), v.copy())
        except Exception as problem_found:
            raise ComputationError(f"{where} raised {type(problem_found).__name__}: {problem_found}") from problem_found
        nv, torque = self.model.nv, np.zeros(self.model.nv)
        if not isinstance(given, Mapping):
            return _numbers(given, nv, f"{where} must return {nv} torques, one for each velocity coordinate, or a dict by joint")
        for name, value in given.items():
            if name not in self.model.joint_names:
                raise ComputationError(f"{where} returned a torque of {name!r}; the robot has the joints "
                                       f"{', '.join(self.model.joint_names)}")
            place = self.model.v_index(name)
            n = place.stop - place.start
            torque[place] = _numbers(value, n, f"{where} must return {n} torque{'s' * (n != 1)} for joint {name}")
        return torque


class _Law:
    """What the laws of one phase ask for."""

    def __init__(self, sampled):
        law = sampled.law
        self.sampled, self.problem, self.q_of_v, self.integral = sampled, law, law.schedule.q_of_v, law.schedule.integral
        self.sides, self.work = RightHandSide(law, law.signals), law.work()
        self.rates = np.zeros((2, law.size))
        measured = (law.schedule.level == TORQUE) & (self.q_of_v >= 0)       # what is prescribed is known
        self.of_q, self.of_v = (np.where(measured, r, 0.0) for r in sampled.resolution[:2])
        self.measured, self.coarse = np.flatnonzero(self.of_q), bool(self.of_q.any() or self.of_v.any())
        self.integral_rate = self.rates[0, 2 * law.model.nv:-1]

    def at(self, t: float, q0, y, integral) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What is measured of q and v, and the torque (nv,). integral (nv,): of pid laws."""
        nv, q, z = len(self.of_v), self.work.q, integral[self.integral]
        self._evaluate(t, q0, np.concatenate([y[:2 * nv], z, [0.0]]))
        if self.coarse:
            q, k = q.copy(), self.q_of_v[self.measured]
            q[k] = _rounded(q[k], self.of_q[self.measured])
            self._evaluate(t, q, np.concatenate([np.zeros(nv), _rounded(self.work.v, self.of_v), z, [0.0]]))
        return self.work.q.copy(), self.work.v.copy(), self.work.tau.copy()

    def _evaluate(self, t: float, q0, y) -> None:
        code = self.sides.at(t, q0, y, self.rates, 0, self.work)
        if code == BAD_SIGNAL:                                 # other trouble is the motion's, too
            raise failure(self.problem, code, t, self.work, self.sides.ties)


def _rounded(x: np.ndarray, resolution: np.ndarray) -> np.ndarray:
    """To multiples of the resolution; unchanged where that is 0, or less than the spacing of the number."""
    if not resolution.any():
        return x
    with np.errstate(all="ignore"):
        return np.where(_EPS * np.abs(x) < resolution, np.rint(x / resolution) * resolution, x)


def _numbers(given, n: int, what: str) -> np.ndarray:
    if given is None:
        raise ComputationError(f"{what}; it returned None")
    try:
        values = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise ComputationError(f"{what}; it returned {type(given).__name__}") from None
    if values.shape != (n,) and not (n == 1 and values.shape == ()):
        raise ComputationError(f"{what}; it returned an array of shape {values.shape}")
    return values
