"""Linear systems with named states, inputs and outputs: discretization, modes, controllable and observable dimensions."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from liedyn.analysis.modes import STABILITY, Mode, expand_modes, growth_text, hidden_rate, modes, reachable
from liedyn.analysis.transfer_function import frequency_response, seconds, transmission_zeros, zero_order_hold
from liedyn.arrays import Array, ArrayLike, ComplexArray, Mask, Patterns
from liedyn.dynamics.scales import Scales
from liedyn.errors import LiedynWarning, UsageError, list_names, warn
from liedyn.immutable import Immutable, read_only_property
from liedyn.public_calls import explained
from liedyn.simulation.name_binding import select

if TYPE_CHECKING:
    from scipy.signal import StateSpace

    from liedyn.analysis.optimal_gains import Gain, Weights

_MOST_STATES = 10_000    # of a system with delay, whose matrices have 800 MB
_WHOLE = 1e-9            # of a step: delays that differ less from a whole number of steps are whole


@dataclass(frozen=True, eq=False)
class LinearSystem(Immutable):
    """dx/dt = A x + B u, y = C x + D u: deviations from a motion or an equilibrium, at one time.

    A (n, n), B (n, m), C (p, n), D (p, m)
    states, inputs, outputs   their names: q.elbow, v.elbow; tau.elbow, a.elbow, thrust.rotor1; q.…, v.…, a.…, tau.…,
                              p.<link>.x (position of a link's origin in the world)
    state_units, input_units, output_units
    moving                    (n,) bool: states that forces affect; the others belong to prescribed coordinates
    scales                    characteristic length, mass and time of the robot, in which ranks are decided

    Examples
    --------
    >>> model = ld.load("robots/double_pendulum.yaml")
    >>> system = ld.linearize(model, [0.0, 0.0], [0.0, 0.0], [0.0, 0.0])
    >>> [round(mode.frequency, 3) for mode in system.modes]      # Hz
    [0.427, 1.144]
    """

    A: Array
    B: Array
    C: Array
    D: Array
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    state_units: tuple[str, ...]
    input_units: tuple[str, ...]
    output_units: tuple[str, ...]
    moving: Mask
    scales: Scales = Scales(1.0, 1.0, 1.0)

    def __repr__(self) -> str:
        return (f"<LinearSystem, {self.stability or 'no modes'}: {len(self.states)} states {_few(self.states)}; "
                f"{len(self.inputs)} inputs {_few(self.inputs)}; {len(self.outputs)} outputs {_few(self.outputs)}>")

    @explained
    def discretize(self, h: float, delay: float = 0.0) -> tuple[Array, Array]:
        """Return Ad, Bd of x[k+1] = Ad x[k] + Bd u[k] for steps of h [s] with constant u (zero-order hold, exact).

        With a delay [s], the inputs act so much later, also by a part of a step. The state is then [x; u[k-1]; u[k-2]; …] with
        the inputs of the previous delay/h steps, rounded up: Ad is (n + m k, n + m k), Bd (n + m k, m).
        Raises UsageError for a step that is not positive or a negative delay, ComputationError where the exponential overflows.
        """
        delay = seconds(delay, "delay: expected a number of seconds >= 0", 0.0)
        Ad, Bd = zero_order_hold(self.A, self.B, h)
        n, m = self.B.shape
        if n + m * delay / h > _MOST_STATES:
            raise UsageError(f"delay: expected at most {_MOST_STATES} states with those of past inputs, got a delay of "
                             f"{delay / h:.3g} steps of {m} input{'s' * (m != 1)} (increase the step)")
        whole = int(delay / h + _WHOLE)
        part = delay - whole * h
        if part <= _WHOLE * h:
            inputs = {whole: Bd}                                          # {steps of delay: effect of the input}
        else:
            transition, new = zero_order_hold(self.A, self.B, h - part)
            inputs = {whole: new, whole + 1: transition @ zero_order_hold(self.A, self.B, part)[1]}
        past = max(inputs)
        A, B = np.zeros((n + m * past, n + m * past)), np.zeros((n + m * past, m))
        A[:n, :n] = Ad
        A[n + m:, n:n + m * (past - 1)] = np.eye(m * max(past - 1, 0))
        B[n:n + m] = np.eye(m)[:m * past]
        for steps, effect in inputs.items():
            if steps:
                A[:n, n + m * (steps - 1):n + m * steps] = effect
            else:
                B[:n] = effect
        return A, B

    def frequency_response(self, w: ArrayLike) -> ComplexArray:
        """Return the response C (i w - A)^-1 B + D of the outputs to the inputs, (len(w), p, m), complex.

        w: frequencies [rad/s], (…) or a number. np.abs is the ratio of the amplitudes, np.angle the phase [rad].
        Raises ComputationError at a frequency where the response is infinite: that of an undamped mode, 0 of a drifting body.

        Examples
        --------
        >>> model = ld.load("robots/double_pendulum.yaml")
        >>> system = ld.linearize(model, [0, 0], [0, 0], [0, 0], inputs="tau.elbow", outputs="q.elbow")
        >>> abs(system.frequency_response([1.0, 10.0])[:, 0, 0]).round(4)
        array([0.1429, 0.0182])
        """
        return frequency_response(self, w)

    @cached_property
    def pole_modes(self) -> tuple[Mode, ...]:
        """Modes of all states, including those of prescribed coordinates."""
        return self._modes_of(np.ones(len(self.states), dtype=bool))

    @read_only_property
    def poles(self) -> ComplexArray:
        """Poles (n,): `eigenvalues`, where those at zero and equal ones on the imaginary axis are free of rounding errors."""
        return expand_modes(self.pole_modes)

    @read_only_property
    def zeros(self) -> ComplexArray:
        """Transmission zeros: the s at which an input exp(s t) exists for which the outputs are zero.

        They are those of the states that the inputs reach and the outputs distinguish, also where the numbers of inputs and
        outputs differ. Systems with more outputs than inputs, or with more inputs, rarely have any.
        """
        return transmission_zeros(self)

    @explained
    def lqr(self, Q: Weights, R: Weights, step: float | None = None) -> Gain:
        """Return the gain K of the regulator u = -K x that minimizes the integral of x^T Q x + u^T R u.

        Parameters
        ----------
        Q, R
            Weights of the states and of the inputs: {name or pattern: number} (a later entry overrides; states without an entry
            have 0), a number for all, one number each, or a symmetric matrix. The units are 1/unit^2 of the state or input.
        step : float, optional
            Step of a sampled regulator [s], which minimizes the sum of the same terms over the samples.

        Returns
        -------
        Gain
            Without the states of prescribed coordinates, unless their accelerations are inputs.

        Raises
        ------
        UsageError, ShapeError
            For weights that do not fit.
        ComputationError
            With the name of a mode that neither decays nor is affected by the inputs, or that Q does not contain.

        Examples
        --------
        >>> model = ld.load("robots/cart_pole.yaml")
        >>> system = ld.linearize(model, model.neutral(), [0, 0], [0, 0], inputs="tau.cart")
        >>> system.lqr({"q.cart": 4, "q.pole": 10, "v.*": 1}, 0.2).matrix.round(2)
        array([[ -4.47, -48.5 ,  -6.28, -12.5 ]])
        """
        from liedyn.analysis.optimal_gains import regulator
        return regulator(self, Q, R, step)

    @explained
    def lqe(self, W: Weights, V: Weights, step: float | None = None) -> Gain:
        """Return the gain L of the Kalman filter dx/dt = A x + B u + L (y - C x - D u).

        W is the intensity of the noise of the rates of the states, V that of the outputs, as Q and R of `lqr`. With a step [s],
        the filter is x[k+1] = Ad x[k] + Bd u[k] + L (y[k] - C x[k] - D u[k]), and W and V are covariances.
        Raises as `lqr`, for a mode that neither decays nor affects the outputs, or that W does not excite.
        """
        from liedyn.analysis.optimal_gains import observer
        return observer(self, W, V, step)

    def to_scipy(self) -> StateSpace:
        """Return the system as `scipy.signal.StateSpace`, whose names are lost."""
        from scipy.signal import StateSpace
        self._check_has_inputs_and_outputs("scipy.signal")
        return StateSpace(self.A, self.B, self.C, self.D)

    def to_control(self) -> Any:
        """Return the system as `control.StateSpace` of the package control, with names such as tau_elbow: it forbids dots.

        Raises UsageError if this package is not installed.
        """
        if find_spec("control") is None:
            raise UsageError("to_control requires the package control: pip install 'liedyn[control]'")
        self._check_has_inputs_and_outputs("control")
        names = {kind: [name.replace(".", "_") for name in getattr(self, kind)] for kind in ("states", "inputs", "outputs")}
        return import_module("control").ss(self.A, self.B, self.C, self.D, **names)

    def _check_has_inputs_and_outputs(self, target: str) -> None:
        if not (self.inputs and self.outputs):
            raise UsageError(f"{target}: expected a system with inputs and outputs, got {len(self.inputs)} and "
                             f"{len(self.outputs)}")

    @read_only_property
    def eigenvalues(self) -> ComplexArray:
        """Eigenvalues (n,) of A, complex, sorted by decreasing real part, including those of prescribed coordinates."""
        eigenvalues: ComplexArray = np.sort_complex(np.asarray(np.linalg.eigvals(self.A), dtype=complex))
        return eigenvalues[::-1]

    @cached_property
    def modes(self) -> tuple[Mode, ...]:
        """Modes of the moving states, the least stable first."""
        return self._modes_of(self.moving)

    def _modes_of(self, selected: Mask) -> tuple[Mode, ...]:
        """Return the modes of the selected states (n,), with a warning if fast ones hide slow ones."""
        A, rate = self.characteristic_realization[0][np.ix_(selected, selected)], 1.0 / self.scales.time
        if hidden := hidden_rate(A, rate):
            warn([LiedynWarning("modes-hidden", f"poles may be wrongly zero: entries of the linear model are up to "
                                f"{np.abs(A).max():.2g} 1/s, next to which others of {hidden:.2g} 1/s count as rounding: use "
                                "less damping, or lock the joint that hardly moves")])
        return modes(A, [name.partition(".")[2] for name, is_used in zip(self.states, selected, strict=True) if is_used], rate)

    @property
    def stability(self) -> str | None:
        """Stability of the worst mode of the moving states: "unstable", "drifting", "neutral" or "stable" (see `Mode`).

        All deviations decay if it is "stable" (asymptotically stable), and stay bounded if it is "neutral". A "neutral" or
        "drifting" linear system does not decide whether the nonlinear robot is stable. None if all coordinates are prescribed.
        """
        return min((mode.stability for mode in self.modes), key=STABILITY.index, default=None)

    @property
    def growth(self) -> int | None:
        """Power of t with which deviations grow if none grows exponentially; None if one grows exponentially, or all decay.

        0 if they stay bounded, 1 for a drifting body, 3 for four integrators in series.
        """
        powers = [-1 if mode.growth is None else mode.growth for mode in self.modes]
        exponential = any(mode.growth is None and mode.stability == "unstable" for mode in self.modes)
        return None if exponential or max(powers, default=-1) < 0 else max(powers)

    @cached_property
    def controllable(self) -> int:
        """Dimension of the space of states that the inputs reach."""
        A, B, _ = self.characteristic_realization
        return reachable(A, B, 1.0 / self.scales.time)

    @cached_property
    def observable(self) -> int:
        """Dimension of the space of states that the outputs distinguish."""
        A, _, C = self.characteristic_realization
        return reachable(A.T, C.T, 1.0 / self.scales.time)

    @property
    def characteristic_realization(self) -> tuple[Array, Array, Array]:
        """A, B and C with states in characteristic units. Times remain in seconds: A is in 1/s."""
        size = self.scales.unit_scales(self.state_units)
        return self.A / size[:, None] * size, self.B / size[:, None], self.C * size

    @explained
    def select(self, inputs: str | Sequence[str] = "*", outputs: str | Sequence[str] = "*") -> LinearSystem:
        """Return the system with the inputs and outputs that match names or patterns, in the order of the system.

        Raises UsageError for a pattern that matches nothing.
        """
        i, o = choose(self.inputs, inputs, "input"), choose(self.outputs, outputs, "output")
        return replace(self, B=self.B[:, i], C=self.C[o], D=self.D[np.ix_(o, i)], inputs=tuple(self.inputs[k] for k in i),
                       outputs=tuple(self.outputs[k] for k in o), input_units=tuple(self.input_units[k] for k in i),
                       output_units=tuple(self.output_units[k] for k in o))


def _few(names: Sequence[str]) -> str:
    return list_names(names, 8) or "none"


def choose(names: Sequence[str], patterns: Patterns, kind: str) -> list[int]:
    """Return the indices of the names that match one of the patterns, in order. Raise UsageError if a pattern matches nothing."""
    patterns = [patterns] if isinstance(patterns, str) else patterns
    return sorted(select([pattern for pattern in patterns if names or pattern != "*"], names, kind))


# text -------------------------------------------------------------------------------------------------------------------

def stability_text(system: LinearSystem) -> str:
    """Return the stability as text, such as "stable", "neutral (bounded)", "drifting (grows like t)" or "no modes"."""
    if system.stability is None:
        return "no modes"
    if system.stability == "neutral":
        return "neutral (bounded)"
    return f"{system.stability} ({growth_text(system.growth)})" if system.growth else system.stability
