"""A linear system with names: dx/dt = A x + B u, y = C x + D u; its discretization, modes and reachable states."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from liedyn.arrays import Array, ComplexArray, Mask
from liedyn.errors import ComputationError, UsageError
from liedyn.immutable import Immutable, read_only_property
from liedyn.simulation.names import listed, named

_RANK = 1e-10        # singular values below this part of the largest count as zero


@dataclass(frozen=True, eq=False)
class Mode(Immutable):
    """A real eigenvalue, or a pair of conjugate ones (the one with a positive imaginary part).

    count          how many eigenvalues it stands for: 1, 2, or all those at zero
    participation  {coordinate: share}, of the states of each coordinate, largest first; they sum to 1
    stability      "stable", "unstable" or "neutral"
    """

    eigenvalue: complex
    count: int
    participation: dict[str, float]
    stability: str

    @property
    def frequency(self) -> float:
        """Natural frequency |lambda| / 2 pi [Hz]; 0 where it does not oscillate."""
        return abs(self.eigenvalue) / (2 * np.pi) if self.eigenvalue.imag else 0.0

    @property
    def damping(self) -> float:
        """Damping ratio -Re lambda / |lambda|: 1 and -1 without oscillation, 0 at zero."""
        return -self.eigenvalue.real / abs(self.eigenvalue) if self.eigenvalue else 0.0

    @property
    def time_constant(self) -> float:
        """-1 / Re lambda [s]: negative where it grows, infinite where it does neither."""
        return np.inf if self.stability == "neutral" else -1.0 / self.eigenvalue.real


@dataclass(frozen=True, eq=False)
class LinearSystem(Immutable):
    """dx/dt = A x + B u, y = C x + D u: deviations from a motion or an equilibrium, at one time.

    A (n, n), B (n, m), C (p, n), D (p, m)
    states, inputs, outputs   their names: q.elbow, v.elbow; tau.elbow, a.elbow, thrust.rotor1; q.…, v.…, a.…, tau.…,
                              p.<link>.x (position of a link's origin in the world)
    state_units, input_units, output_units
    moving                    (n,) bool: states that forces affect; the others belong to prescribed coordinates

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

    def __repr__(self) -> str:
        return (f"<LinearSystem, {self.stability}: {len(self.states)} states {_few(self.states)}; "
                f"{len(self.inputs)} inputs {_few(self.inputs)}; {len(self.outputs)} outputs {_few(self.outputs)}>")

    def discretize(self, h: float) -> tuple[Array, Array]:
        """Ad (n, n), Bd (n, m): x[k+1] = Ad x[k] + Bd u[k] where u is held for a step of h [s] (zero-order hold, exact).

        Raises UsageError for a step that is not positive, ComputationError where the exponential overflows.
        """
        from scipy.linalg import expm

        if not 0.0 < h < np.inf:
            raise UsageError(f"the step of the discretization must be a positive number of seconds; found {h:g}")

        n, m = self.B.shape
        block = np.zeros((n + m, n + m))
        with np.errstate(over="ignore", invalid="ignore"):
            block[:n, :n], block[:n, n:] = self.A * h, self.B * h
            held = expm(block) if np.isfinite(block).all() else np.full_like(block, np.nan)
        if not np.isfinite(held).all():
            raise ComputationError(f"the discretization overflows: an unstable mode grows without bounds within {h:g} s")
        return held[:n, :n], held[:n, n:]

    @read_only_property
    def eigenvalues(self) -> ComplexArray:
        """(n,) of A, complex, sorted by falling real part. Those of prescribed coordinates are those of their rows alone."""
        return np.sort_complex(np.linalg.eigvals(self.A))[::-1]

    @cached_property
    def modes(self) -> tuple[Mode, ...]:
        """Of the moving states, the least stable first."""
        names = [name for name, moves in zip(self.states, self.moving, strict=True) if moves]
        return modes(self.A[np.ix_(self.moving, self.moving)], [name.partition(".")[2] for name in names])

    @property
    def stability(self) -> str:
        """Of the moving states: "unstable", "neutral" (some neither decay nor grow) or "stable"."""
        found = {mode.stability for mode in self.modes}
        return next((word for word in ("unstable", "neutral") if word in found), "stable")

    @cached_property
    def controllable(self) -> int:
        """Dimension of the states that the inputs reach."""
        return reachable(self.A, self.B)

    @cached_property
    def observable(self) -> int:
        """Dimension of the states that the outputs tell apart."""
        return reachable(self.A.T, self.C.T)

    def select(self, inputs: str | Sequence[str] = "*", outputs: str | Sequence[str] = "*") -> LinearSystem:
        """The inputs and outputs whose names match a pattern (a text, or several), in the system's order. UsageError for one that
        matches nothing."""
        i, o = choose(self.inputs, inputs, "input"), choose(self.outputs, outputs, "output")
        pick = lambda names, which: tuple(names[k] for k in which)      # noqa: E731
        return replace(self, B=self.B[:, i], C=self.C[o], D=self.D[np.ix_(o, i)], inputs=pick(self.inputs, i),
                       outputs=pick(self.outputs, o), input_units=pick(self.input_units, i),
                       output_units=pick(self.output_units, o))


def _few(names: Sequence[str]) -> str:
    return listed(names, 8) or "none"


def choose(names, patterns, what: str) -> list[int]:
    """Indices of the names that match one of the patterns, in order. UsageError for a pattern that matches nothing."""
    patterns = [patterns] if isinstance(patterns, str) else patterns
    chosen = named([pattern for pattern in patterns if names or pattern != "*"], names,
                   lambda pattern: f"no {what} matches {pattern!r}; there are {_few(names)}")
    return sorted(names.index(name) for name in chosen)


def modes(A: np.ndarray, names) -> tuple[Mode, ...]:
    """Modes of A, whose states belong to the coordinates `names`.

    Eigenvalues at zero come in chains (a drifting body has two for each coordinate), which a general solver scatters over
    a circle as wide as a root of the rounding error: they are split off first, by null spaces.
    """
    from scipy.linalg import eig

    if not len(A):
        return ()
    balanced, _ = _balance(A)
    size = np.linalg.norm(balanced, 2)
    rest, levels, drift = _split_zeros(balanced, 1e-11 * size)
    found = [_mode(0j, drift.shape[1], (drift**2).sum(axis=1), names, 0.0)] if drift.shape[1] else []
    if len(rest):
        values, left, right = eig(rest, left=True)
        for value, w, x in zip(values, left.T, right.T, strict=True):
            if value.imag < 0.0:
                continue
            for level, down in reversed(levels):                   # A x = value x, of which P x is known
                x, w = level @ (down.T @ x) / value, down.T @ w
            found.append(_mode(complex(value), 2 if value.imag else 1, np.abs(w * x), names,
                               max(1e-9 * size, 1e-7 * abs(value))))       # double ones scatter by a root of the rounding
    return tuple(sorted(found, key=lambda mode: (-round(mode.eigenvalue.real, 9), abs(mode.eigenvalue))))


def _balance(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A in units (n,) of the states that make its rows as long as its columns. Factors are bounded: an entry that is but a
    rounding error would be blown up to the size of the others."""
    from scipy.linalg import matrix_balance

    _, (scale, _) = matrix_balance(A, permute=False, separate=True)
    scale = np.clip(scale, 2.0**-12, 2.0**12)
    return A / scale[:, None] * scale, scale


def _split_zeros(A, least: float):
    """The part of A without eigenvalues at zero; the (A, P) that lead there, P A = A' P; a basis (n, k) of what was split."""
    levels, drift, onward = [], [], np.eye(len(A))
    while len(A):
        _, s, rows = np.linalg.svd(A)
        kept = int((s > least).sum())
        if kept == len(A):
            break
        drift.append(onward.T @ rows[kept:].T)
        levels.append((A, rows[:kept]))
        A, onward = rows[:kept] @ A @ rows[:kept].T, rows[:kept] @ onward
    return A, levels, np.hstack(drift) if drift else np.zeros((onward.shape[1], 0))


def _mode(value: complex, count: int, weights, names, neutral: float) -> Mode:
    shares: dict[str, float] = {}
    for name, weight in zip(names, weights / weights.sum(), strict=True):
        shares[name] = shares.get(name, 0.0) + float(weight)
    ordered = dict(sorted(shares.items(), key=lambda item: -item[1]))
    stability = "neutral" if abs(value.real) <= neutral else "stable" if value.real < 0.0 else "unstable"
    return Mode(value, count, ordered, stability)


def reachable(A: np.ndarray, B: np.ndarray) -> int:
    """Dimension of the smallest space that holds the columns of B and that A maps into itself: block Arnoldi, which unlike
    powers of A keeps its columns apart."""
    balanced, scale = _balance(A)
    least, basis = _RANK * np.linalg.norm(balanced, 2), np.zeros((len(A), 0))
    B = B / scale[:, None]
    size = np.linalg.norm(B, axis=0)
    new = B[:, size > 0.0] / size[size > 0.0]
    floor = _RANK
    while new.shape[1]:
        for _ in range(2):                                         # twice is enough
            new = new - basis @ (basis.T @ new)
        u, s, _ = np.linalg.svd(new, full_matrices=False)
        u = u[:, s > floor]
        basis = np.hstack([basis, u])
        new, floor = balanced @ u, least
    return basis.shape[1]
