"""Linear systems with named states, inputs and outputs: discretization, modes, controllable and observable dimensions."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from liedyn.analysis.modes import STABILITY, Mode, growth_text, modes, reachable
from liedyn.arrays import Array, ComplexArray, Mask, Patterns
from liedyn.dynamics.scales import Scales
from liedyn.errors import ComputationError, UsageError, list_names
from liedyn.immutable import Immutable, read_only_property
from liedyn.simulation.name_binding import select


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

    def discretize(self, h: float) -> tuple[Array, Array]:
        """Return Ad (n, n), Bd (n, m) of x[k+1] = Ad x[k] + Bd u[k] for steps of h [s] with constant u (zero-order hold, exact).

        Raises UsageError for a step that is not positive, ComputationError where the exponential overflows.
        """
        from scipy.linalg import expm

        if not 0.0 < h < np.inf:
            raise UsageError(f"the step of the discretization must be a positive number of seconds, got {h:g}")

        n, m = self.B.shape
        block = np.zeros((n + m, n + m))
        with np.errstate(over="ignore", invalid="ignore"):
            block[:n, :n], block[:n, n:] = self.A * h, self.B * h
            transition = expm(block) if np.isfinite(block).all() else np.full_like(block, np.nan)
        if not np.isfinite(transition).all():
            raise ComputationError(f"the discretization overflows: an unstable mode grows without bounds within {h:g} s")
        return transition[:n, :n], transition[:n, n:]

    @read_only_property
    def eigenvalues(self) -> ComplexArray:
        """Eigenvalues (n,) of A, complex, sorted by decreasing real part, including those of prescribed coordinates."""
        eigenvalues: ComplexArray = np.sort_complex(np.asarray(np.linalg.eigvals(self.A), dtype=complex))
        return eigenvalues[::-1]

    @cached_property
    def modes(self) -> tuple[Mode, ...]:
        """Modes of the moving states, the least stable first."""
        names = [name.partition(".")[2] for name, moves in zip(self.states, self.moving, strict=True) if moves]
        return modes(self._characteristic[0][np.ix_(self.moving, self.moving)], names, 1.0 / self.scales.time)

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
        A, B, _ = self._characteristic
        return reachable(A, B, 1.0 / self.scales.time)

    @cached_property
    def observable(self) -> int:
        """Dimension of the space of states that the outputs distinguish."""
        A, _, C = self._characteristic
        return reachable(A.T, C.T, 1.0 / self.scales.time)

    @property
    def _characteristic(self) -> tuple[Array, Array, Array]:
        """A, B and C with states in characteristic units. Times remain in seconds: A is in 1/s."""
        size = self.scales.unit_scales(self.state_units)
        return self.A / size[:, None] * size, self.B / size[:, None], self.C * size

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
