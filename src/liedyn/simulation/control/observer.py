"""An observer: it estimates the state that sampled laws use from measured coordinates, with a model of the robot.

    x_(k+1) = f(x_k, u_k) (+) L (y_k (-) h(x_k))

x_k is the estimate at sample k, f the motion of the model until the next sample under the torques and thrusts of the controller,
y the measured coordinates h(x). Near a state at which the model is linearized, this is the observer of the linear model in
discrete time: a Kalman filter if L is the gain of `LinearSystem.lqe` with the period of the samples.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from liedyn.arrays import Array, Mask
from liedyn.dynamics.derivatives import d_difference, forward_dynamics_derivatives
from liedyn.dynamics.dynamics import forward_dynamics
from liedyn.dynamics.manifold import difference, integrate
from liedyn.dynamics.scales import model_scales
from liedyn.errors import ComputationError, ScenarioError, WarningLog, list_names
from liedyn.immutable import Immutable
from liedyn.io.scenarios.scenario import ObserverSettings, Scenario
from liedyn.model.model import Model
from liedyn.simulation.control.thrusts import thrust_columns
from liedyn.simulation.name_binding import find_indices, normalize_quaternions, write_values
from liedyn.simulation.trajectory_columns import motion_columns

_TOLERANCE = 1e-7            # error of a step of the prediction, relative to the state plus characteristic values
_MAX_HALVINGS = 6            # of a step, before an implicit method continues
_MAX_EVALUATIONS = 10_000    # of the motion by the implicit method until the next sample

Actuation: TypeAlias = Callable[[Array, Array, Array], Array]      # (q, v, torques and thrusts) -> those behind limits and gears


class Piece(NamedTuple):
    """Torques and thrusts (inputs,) until `end`: torque + slope (t - since), times after the sample [s]."""

    end: float
    since: float
    torque: Array
    slope: Array

    def at(self, t: float) -> Array:
        """Return the torques and thrusts at t [s after the sample]."""
        return self.torque + self.slope * (t - self.since)


@dataclass(frozen=True, eq=False)
class Estimate(Immutable):
    """The estimates of an observer at its samples.

    t      (K,) [s]
    q, v   (K, nq), (K, nv)
    """

    t: Array
    q: Array
    v: Array

    def columns(self, model: Model, t: Array) -> list[tuple[str, str, Array]]:
        """Return (name, unit, (N,) array) of the last estimate at each time, for the trajectory file."""
        rows = np.maximum(np.searchsorted(self.t, t, side="right") - 1, 0)
        return [(f"estimate.{name}", unit, x) for name, unit, x in motion_columns(model, q=self.q[rows], v=self.v[rows])]


class Observer:
    """The observer of one run.

    q, v   present estimate
    """

    def __init__(self, settings: ObserverSettings, model: Model, passive: bool):
        self.model: Model = model if settings.bound_model is None else settings.bound_model
        self.gain, self._measured = _full_gain(settings, model)
        self._passive = passive
        self.q, self.v = _initial(settings, model)
        scales, units = model_scales(model), model.v_units
        self._sizes = np.array([scales.unit_scales(units), [scales.unit_scale(f"{unit}/s") for unit in units]])
        self._history: list[tuple[float, Array, Array]] = []

    @property
    def estimate(self) -> Estimate:
        """The estimates so far."""
        nq, nv = self.model.nq, self.model.nv
        t, q, v = zip(*self._history, strict=True) if self._history else ((), (), ())
        return Estimate(np.array(t, dtype=float), np.array(q).reshape(-1, nq), np.array(v).reshape(-1, nv))

    def state_at(self, t: float) -> tuple[Array, Array]:
        """Return the estimate at a sample at t, and store it."""
        self._history.append((t, self.q, self.v))
        return self.q.copy(), self.v.copy()

    def advance(self, q: Array, v: Array, pieces: Sequence[Piece], actuation: Actuation) -> None:
        """Update the estimate to the next sample, from the measured state and the torques that act until then.

        Raises ComputationError if the motion of the model cannot be computed.
        """
        error = np.concatenate([difference(self.model, self.q, q), v - self.v])[self._measured]
        correction = self.gain @ error
        begin, q, v = 0.0, self.q, self.v
        for piece in pieces:
            q, v = self._predict(q, v, piece, begin, actuation)
            begin = piece.end
        nv = self.model.nv
        self.q, self.v = integrate(self.model, q, correction[:nv]), v + correction[nv:]

    def _predict(self, q: Array, v: Array, piece: Piece, begin: float, actuation: Actuation) -> tuple[Array, Array]:
        """Return the state at the end of a piece, by one step, or by shorter steps where that is inaccurate."""
        h = shortest = piece.end - begin
        shortest *= 0.5**_MAX_HALVINGS
        while begin < piece.end:
            is_last = h >= piece.end - begin
            h = piece.end - begin if is_last else h
            next_q, next_v, error = self._step(q, v, piece, begin, h, actuation)
            if not error <= _TOLERANCE:
                h *= 0.5
                if h < shortest:
                    return self._predict_implicitly(q, v, piece, begin, actuation)
                continue
            q, v, begin = next_q, next_v, piece.end if is_last else begin + h
            h *= 2.0 if error < _TOLERANCE / 32.0 else 1.0         # the error is of order 4
        return q, v

    def _step(self, q: Array, v: Array, piece: Piece, t: float, h: float, actuation: Actuation) -> tuple[Array, Array, float]:
        """Return the state after one step of the classical Runge-Kutta method, in coordinates about q, and its relative error.

        The error is the difference from a method of order 3, which also evaluates the end of the step.
        """
        def rate(t: float, x: Array) -> Array:
            return self._rate(q, x, actuation, piece.at(t))

        x = np.stack([np.zeros(self.model.nv), v])
        k1 = rate(t, x)
        k2 = rate(t + 0.5 * h, x + 0.5 * h * k1)
        k3 = rate(t + 0.5 * h, x + 0.5 * h * k2)
        k4 = rate(t + h, x + h * k3)
        end = x + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        error = np.abs(h / 10 * (k4 - rate(t + h, end))) / (self._sizes + np.abs(end))
        return integrate(self.model, q, end[0]), end[1], float(error.max(initial=0.0))

    def _predict_implicitly(self, q: Array, v: Array, piece: Piece, begin: float, actuation: Actuation) -> tuple[Array, Array]:
        """Return the state at the end of a piece by an implicit method, for joints that are stiff."""
        from scipy.integrate import solve_ivp
        evaluations = iter(range(_MAX_EVALUATIONS))
        failed = ComputationError("the motion of the observer's model is too fast for the sample period: the estimate diverges, "
                                  "or the controlled motion; the gains may be too large for this period")

        def rate(t: float, x: Array) -> Array:
            if next(evaluations, None) is None:
                raise failed
            return self._rate(q, x.reshape(2, -1), actuation, piece.at(t)).ravel()

        solution = solve_ivp(rate, (begin, piece.end), np.append(np.zeros(self.model.nv), v), method="Radau", rtol=_TOLERANCE,
                             atol=_TOLERANCE * self._sizes.ravel())
        if not solution.success:
            raise failed
        end = solution.y[:, -1].reshape(2, -1)
        return integrate(self.model, q, end[0]), end[1]

    def _rate(self, q: Array, x: Array, actuation: Actuation, inputs: Array) -> Array:
        """Return the rates (2, nv) of x = [coordinates about q; velocities]."""
        model = self.model
        at = integrate(model, q, x[0]) if x[0].any() else q
        du = d_difference(model, q, at)[1] @ x[1] if model.quaternions else x[1]
        return np.stack([du, self._acceleration(at, x[1], actuation(at, x[1], inputs))])

    def _acceleration(self, q: Array, v: Array, inputs: Array) -> Array:
        model, nv = self.model, self.model.nv
        tau = inputs[:nv]
        if inputs[nv:].any():
            tau = tau + thrust_columns(model, q) @ inputs[nv:]
        return forward_dynamics(model, q, v, tau, passive=self._passive)

    def is_stable(self, period: float) -> bool:
        """Return whether errors of the first estimate decay, by the model linearized there without torques."""
        from scipy.linalg import expm
        nv = self.model.nv
        rates = forward_dynamics_derivatives(self.model, self.q, self.v, np.zeros(nv), passive=self._passive)
        A = np.block([[np.zeros((nv, nv)), np.eye(nv)], [rates.da_dq, rates.da_dv]])
        error = expm(period * A)
        error[:, self._measured] -= self.gain
        return bool(np.abs(np.linalg.eigvals(error)).max() < 1.0)

    def state_dict(self) -> dict[str, Any]:
        """Return the present estimate and those of all samples."""
        past = self.estimate
        return {"q": self.q, "v": self.v, "times": past.t, "past_q": past.q, "past_v": past.v}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state that `state_dict` returned."""
        self.q, self.v = np.array(state["q"]), np.array(state["v"])
        self._history = [(float(t), np.array(q), np.array(v)) for t, q, v in
                         zip(state["times"], state["past_q"], state["past_v"], strict=True)]


def bind_observer(scenario: Scenario, model: Model) -> Observer | None:
    """Return the observer of a scenario, or None.

    Raises ScenarioError without the key `sampling`, for names that the robot does not have, and for robots with loops or
    couplings, or with prescribed joints.
    """
    settings = scenario.observer
    if settings is None:
        return None
    if scenario.sampling is None:
        raise ScenarioError("an observer acts at sample times, which the scenario does not have", place=settings.place,
                            expected="the key sampling, such as sampling: {rate: 1000}")
    if model.nc:
        raise ScenarioError("observers do not support robots with loops, couplings or mimic joints", place=settings.place,
                            hint="a controller in Python can have its own observer")
    return Observer(settings, model, scenario.passive)


def check_observer(scenario: Scenario, model: Model, prescribed: Mask, warnings: WarningLog) -> None:
    """Raise ScenarioError for prescribed coordinates; warn of an estimate that diverges."""
    settings, observer = scenario.observer, bind_observer(scenario, model)
    if settings is None or observer is None or scenario.sampling is None:
        return
    if prescribed.any():
        names = list_names([name for name, is_prescribed in zip(model.v_names, prescribed, strict=True) if is_prescribed], 4)
        raise ScenarioError("observers do not support prescribed joints", place=settings.place, found=names,
                            hint="a controller in Python can have its own observer")
    try:
        is_stable = observer.is_stable(scenario.sampling.interval)
    except ComputationError as problem:
        raise ScenarioError(f"the first estimate has no motion: {problem}", place=settings.place) from problem
    if not is_stable:
        warnings.add("observer-unstable", "the estimate of the observer diverges from the state near its first estimate: its "
                     "gain is not that of a filter for this model and period (lqe with the period as its step)",
                     place=settings.place)


def _full_gain(settings: ObserverSettings, model: Model) -> tuple[Array, Array]:
    """Return the gain (2 nv, measured) and the indices of the measured coordinates among q, then v."""
    place, names = settings.place.at("gain"), [f"{kind}.{name}" for kind in "qv" for name in model.v_names]
    rows = find_indices(settings.rows, names, "row of the gain", place)
    columns = find_indices(settings.columns, names, "column of the gain", place)
    gain = np.zeros((len(names), len(columns)))
    gain[rows] = settings.gain
    return gain, np.array(columns, dtype=np.int64)


def _initial(settings: ObserverSettings, model: Model) -> tuple[Array, Array]:
    q, v = model.neutral(), np.zeros(model.nv)
    rules = write_values(q, settings.initial_q, model, model.q_index)
    write_values(v, settings.initial_v, model, model.v_index)
    normalize_quaternions(q, rules, model)
    return q, v

