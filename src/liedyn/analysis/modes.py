"""Modes of a matrix: eigenvalues with Jordan chains on the imaginary axis, participating coordinates, reachable states."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from liedyn.arrays import Array, ComplexArray, Integers, Mask
from liedyn.errors import summarized
from liedyn.immutable import Immutable

Matrix: TypeAlias = NDArray[np.inexact[Any]]                  # real or complex
Levels: TypeAlias = list[tuple[Matrix, Matrix]]                # (A, P) of `_split_zeros`

STABILITY = ("unstable", "drifting", "neutral", "stable")      # from worst to best

# For A in characteristic units of the robot, balanced.
_RANK = 1e-10                # of the norm of an independent part: singular values of reachable directions below this are rounding
_ZERO = 1e-11                # of the same norm, and of the change of an eigenvalue by that of each entry: singular values and
                             # real parts below this are zero; rounding causes up to 1e-12
_ROUNDING = 1e-12            # of the maximum entry of the row and column, and of the characteristic rate: smaller entries are
                             # rounding, which is 1e-15 times the condition of M
_HIDDEN = 1e-6               # of the characteristic rate: smaller entries do not matter, whether they are rounding or not
_SLOW = 1e-5, 1e-13          # of the fastest eigenvalue: smaller ones are refined, and change by less than this
_APART = (1e-3, 1e-5, 1e-7)  # of the eigenvalue: perturbation by rounding of 4, 3 and 2 equal eigenvalues in a chain


@summarized
@dataclass(frozen=True, eq=False)
class Mode(Immutable):
    """A real eigenvalue, or a pair of conjugate ones (the one with a positive imaginary part).

    count          number of eigenvalues: 1, 2, all those at zero, or all those of a pair on the imaginary axis with chains
    participation  {coordinate: share}, of the states of each coordinate, largest first; they sum to 1
    chains         lengths of the Jordan chains of an eigenvalue on the imaginary axis, longest first; empty off the axis. A
                   chain of 4 at zero is four integrators in series
    stability      "stable": deviations decay. "neutral": they stay bounded without decaying. "drifting": they grow like t
                   (a chain of 2). "unstable": they grow exponentially, or like a higher power of t
    fastest        {coordinate: share} of the deviations that grow like the highest power of t; empty if none grows like a power
    """

    eigenvalue: complex
    count: int
    participation: dict[str, float]
    chains: tuple[int, ...]
    fastest: dict[str, float]

    @property
    def stability(self) -> str:
        """"stable", "neutral", "drifting" or "unstable", as described for the class."""
        if self.growth is None:
            return "stable" if self.eigenvalue.real < 0.0 else "unstable"
        return {0: "neutral", 1: "drifting"}.get(self.growth, "unstable")

    @property
    def growth(self) -> int | None:
        """Power of t with which deviations grow if the eigenvalue is on the imaginary axis: length of the longest chain minus 1.

        None off the axis, where deviations grow or decay exponentially.
        """
        return self.chains[0] - 1 if self.chains else None

    @property
    def frequency(self) -> float:
        """Natural frequency |lambda| / 2 pi [Hz]; 0 for a real eigenvalue."""
        return abs(self.eigenvalue) / (2 * np.pi) if self.eigenvalue.imag else 0.0

    @property
    def damping(self) -> float:
        """Damping ratio -Re lambda / |lambda|: 1 or -1 for real eigenvalues, 0 for zero."""
        return -self.eigenvalue.real / abs(self.eigenvalue) if self.eigenvalue else 0.0

    @property
    def time_constant(self) -> float:
        """-1 / Re lambda [s]: negative where deviations grow exponentially, infinite on the imaginary axis."""
        return np.inf if self.chains else -1.0 / self.eigenvalue.real


def modes(A: Array, names: Sequence[str], rate: float = 1.0, rotated: bool = False) -> tuple[Mode, ...]:
    """Return the modes of A, whose states belong to the coordinates `names`; `rate` is a characteristic rate [1/s].

    rotated: whether the states are combinations of others, so that each entry has the rounding of the largest one

    Zero eigenvalues form chains (a drifting body has two for each coordinate). A general solver perturbs them to a circle whose
    radius is a root of the rounding error, so they are separated first by null spaces. The same is done for repeated eigenvalues
    on the imaginary axis, where the lengths of chains decide on stability.
    """
    from scipy.linalg import eig

    if not len(A):
        return ()
    balanced, _ = balance(A, rate)
    all_modes, zeros = [], []
    eigenpairs: list[tuple[complex, ComplexArray, ComplexArray, float]] = []          # eigenvalue, eigenvectors, condition
    for part in _independent_parts(balanced):
        of_part = balanced[np.ix_(part, part)]
        regular = not rotated and _is_regular(of_part)
        nonzero, levels, bases = _split_zeros(of_part, 0.0 if regular else _ZERO * float(np.linalg.norm(of_part, 2)))
        zeros.append([_embedded(basis, part, len(A)) for basis in bases])
        if not len(nonzero):
            continue
        values, left, right = eig(nonzero, left=True)
        fastest = np.abs(values).max()
        for k in np.flatnonzero(values.imag >= 0.0):
            value = _refined(nonzero, values[k], right[:, k], fastest)
            x, w = _lift(levels, value, right[:, k], left[:, k])
            condition = _condition(of_part, x, w)
            x, w = (np.asarray(_embedded(vector[:, None], part, len(A))[:, 0], dtype=complex) for vector in (x, w))
            eigenpairs.append((value, x, w, condition))
    values = np.array([value for value, *_ in eigenpairs])
    repeated, single = _repeated(balanced, values, _ZERO * float(np.linalg.norm(balanced, 2)))
    all_modes += [_chain_mode(value, balanced, chain, names) for value, chain in repeated]
    for value, x, w, condition in (eigenpairs[k] for k in single):
        shares, on_axis = coordinate_shares(np.abs(w * x), names), abs(value.real) <= _ZERO * condition
        all_modes.append(Mode(complex(value), 2 if value.imag else 1, shares, (1,) if on_axis else (), {}))
    if bases := [np.hstack(level) for level in _levels(zeros)]:
        all_modes.append(_chain_mode(0j, balanced, bases, names))
    return tuple(sorted(all_modes, key=_least_stable))


def _independent_parts(A: Array, B: Array | None = None) -> list[Integers]:
    """Return the indices of the states of systems that do not affect each other, and that no column of B affects together."""
    from scipy.sparse.csgraph import connected_components

    links = A != 0.0 if B is None else (A != 0.0) | ((B != 0.0).astype(float) @ (B != 0.0).T > 0.0)
    count, labels = connected_components(links, directed=False)
    return [np.flatnonzero(labels == k) for k in range(count)]


def _embedded(basis: Matrix, part: Integers, n: int) -> Matrix:
    """Return the columns of a part as columns of all n states."""
    out = np.zeros((n, basis.shape[1]), dtype=basis.dtype)
    out[part] = basis
    return out


def _levels(bases: Sequence[Sequence[Matrix]]) -> Iterator[list[Matrix]]:
    """Yield the first bases of all parts, the second ones, …"""
    for level in zip_longest(*bases):
        yield [basis for basis in level if basis is not None]


def _refined(A: Matrix, value: complex, x: ComplexArray, fastest: float) -> complex:
    """Return an eigenvalue by inverse iteration if it is so slow that the rounding of fast ones perturbs it."""
    slow, change = _SLOW
    if abs(value) > slow * fastest:
        return value
    refined = value
    with np.errstate(all="ignore"):
        for _ in range(3):
            try:
                y = np.linalg.solve(A - refined * np.eye(len(A)), x)
            except np.linalg.LinAlgError:                      # it is exact
                break
            refined += complex(np.vdot(x, x) / np.vdot(x, y))
            x = np.asarray(y / np.linalg.norm(y), dtype=complex)
    close = np.isfinite(refined) and abs(refined - value) <= change * fastest
    return complex(refined.real, refined.imag if value.imag else 0.0) if close else value


def _condition(A: Array, x: ComplexArray, w: ComplexArray) -> float:
    """Return by how much an eigenvalue with right and left eigenvectors x, w changes if each entry of A changes independently."""
    with np.errstate(divide="ignore", invalid="ignore"):
        change = float(np.abs(w) @ np.abs(A) @ np.abs(x) / np.abs(w.conj() @ x))
    return change if np.isfinite(change) else np.inf


def _lift(levels: Levels, value: complex, x: ComplexArray, w: ComplexArray) -> tuple[ComplexArray, ComplexArray]:
    """Return the right and left eigenvectors of A from those of the A' at the end of its levels."""
    for A, P in reversed(levels):                              # solve A x = value x, where P x is known
        x, w = A @ (P.T @ x) / value, P.T @ w
    return x, w


def _least_stable(mode: Mode) -> tuple[float, float, float]:
    """Return the sort key: exponential growth, powers of t, decay. Real parts that differ by rounding are equal."""
    real = 0.0 if mode.chains else float(f"{mode.eigenvalue.real:.9g}")
    return -real, -(mode.growth or 0), abs(mode.eigenvalue)


def balance(A: Array, rate: float) -> tuple[Array, Array]:
    """Return A in units that balance its row and column norms, and these units (n,) of the states.

    Entries that are rounding are set to zero. Balancing would scale them to the size of the others, and couple independent
    states.
    """
    from scipy.linalg import matrix_balance

    A = np.where(_is_rounding(A, rate), 0.0, A)
    _, (scale, _) = matrix_balance(A, permute=False, separate=True)
    return A / scale[:, None] * scale, scale


def _is_rounding(A: Array, rate: float) -> Mask:
    """Return which entries count as rounding of the largest one of their row or column."""
    size = np.abs(A)
    largest = np.maximum(size.max(axis=1, initial=rate)[:, None], size.max(axis=0, initial=rate))
    mask: Mask = size <= _ROUNDING * largest
    return mask


def hidden_rate(A: Array, rate: float) -> float:
    """Return the largest entry that counts as rounding of others although it is not small compared with `rate`; 0 for none."""
    size = np.abs(A[_is_rounding(A, rate)]).max(initial=0.0)
    return float(size) if size > _HIDDEN * rate else 0.0


def _is_regular(A: Array) -> bool:
    """Return whether A has no zero eigenvalue, decided with rows and columns of unit size: a fast state hides no slow one."""
    rows = np.abs(A).max(axis=1)
    columns = np.abs(A / np.where(rows > 0.0, rows, 1.0)[:, None]).max(axis=0)
    if not (rows.all() and columns.all()):
        return False
    s = np.linalg.svd(A / rows[:, None] / columns, compute_uv=False)
    return bool(s[-1] > _ZERO * s[0])


def _split_zeros(A: Matrix, zero: float) -> tuple[Matrix, Levels, list[Matrix]]:
    """Return A without its zero eigenvalues, the levels (A, P) with P A = A' P that lead to it, and orthonormal bases (n, k).

    Singular values of at most `zero` are rounding.

    A' acts on the orthogonal complement of the null space of A, where each chain is shorter by one. The numbers k of vectors of
    the bases are therefore the numbers of chains with at least 1, 2, … eigenvalues.
    """
    levels: Levels = []
    bases: list[Matrix] = []
    projection: Matrix = np.eye(len(A))
    while len(A):
        _, s, rows = np.linalg.svd(A)
        rank = int((s > zero).sum())
        if rank == len(A):
            break
        bases.append((rows[rank:] @ projection).conj().T)
        levels.append((A, rows[:rank]))
        A, projection = rows[:rank] @ A @ rows[:rank].conj().T, rows[:rank] @ projection
    return A, levels, bases


def _chain_mode(value: complex, A: Array, bases: list[Matrix], names: Sequence[str]) -> Mode:
    """Return the mode of an eigenvalue on the imaginary axis, from the bases of `_split_zeros`."""
    lengths = [basis.shape[1] for basis in bases]
    chains = tuple(sum(length > k for length in lengths) for k in range(lengths[0]))
    basis: Matrix = np.concatenate(bases, axis=1)
    fastest: dict[str, float] = {}
    if len(bases) > 1:                                  # (A - value)^(longest - 1) leaves the ends of the longest chains
        ends = np.linalg.matrix_power(A - value * np.eye(len(A)), len(bases) - 1) @ basis
        fastest = coordinate_shares(_weights(np.linalg.svd(ends)[0][:, :lengths[-1]]), names)
    return Mode(value, sum(chains) * (2 if value.imag else 1), coordinate_shares(_weights(basis), names), chains, fastest)


def _weights(basis: Matrix) -> Array:
    """Return the weight of each state in the span of orthonormal columns."""
    weights: Array = (np.abs(basis)**2).sum(axis=1)
    return weights


def _repeated(A: Array, values: ComplexArray, zero: float) -> tuple[list[tuple[complex, list[Matrix]]], list[int]]:
    """Return [(eigenvalue, bases of `_split_zeros`), …] of chains on the imaginary axis, and the indices of the other values.

    values must have imaginary parts of at least 0. Values that are close together are equal if A minus their mean has as many
    zero eigenvalues. This does not depend on the perturbation by rounding. Equal values without a chain remain single: their
    eigenvectors are accurate.
    """
    repeated: list[tuple[complex, list[Matrix]]] = []
    single = list(range(len(values)))
    for distance in _APART:
        for group in _groups(values, single, distance):
            value = 1j * values[group].imag.mean()
            bases = _split_zeros(A - value * np.eye(len(A)), zero)[2]
            if sum(basis.shape[1] for basis in bases) == len(group) and len(bases) > 1:
                repeated.append((value, bases))
                single = [k for k in single if k not in group]
    return repeated, single


def _groups(values: ComplexArray, single: Sequence[int], distance: float) -> list[list[int]]:
    """Return groups of values close to the imaginary axis whose neighbours differ by at most `distance` of their size."""
    near = [k for k in single if values[k].imag and abs(values[k].real) <= distance * abs(values[k])]
    near.sort(key=lambda k: values[k].imag)
    groups: list[list[int]] = []
    for k in near:
        if groups and values[k].imag - values[groups[-1][-1]].imag <= distance * abs(values[k]):
            groups[-1].append(k)
        else:
            groups.append([k])
    return [group for group in groups if len(group) > 1]


def expand_modes(all_modes: Sequence[Mode]) -> ComplexArray:
    """Return the eigenvalues of the modes, as often as they occur, by decreasing real part."""
    values: list[complex] = []
    for mode in all_modes:
        value = complex(0.0 if mode.chains else mode.eigenvalue.real, mode.eigenvalue.imag)
        values += [value, value.conjugate()] * (mode.count // 2) if value.imag else [value] * mode.count
    return np.array(sorted(values, key=lambda value: (-value.real, abs(value.imag), -value.imag)), dtype=complex)


def coordinate_shares(weights: Array, names: Sequence[str]) -> dict[str, float]:
    """Return {coordinate: fraction} of the weights of states, largest first; equal ones are in the order of the states."""
    shares: dict[str, float] = {}
    for name, weight in zip(names, weights / weights.sum(), strict=True):
        shares[name] = shares.get(name, 0.0) + float(weight)
    return dict(sorted(shares.items(), key=lambda item: -round(item[1], 9)))


def reachable(A: Array, B: Array, rate: float = 1.0) -> int:
    """Return the dimension of the smallest space that contains the columns of B and is mapped into itself by A."""
    return int(reachable_basis(A, B, rate)[0].shape[1])


def reachable_basis(A: Array, B: Array, rate: float = 1.0) -> tuple[Array, Array, Array]:
    """Return an orthonormal basis (n, k) of this space in balanced states, the balanced A, and the units (n,) of its states.

    Uses the block Arnoldi method, whose columns remain orthogonal, unlike powers of A.
    """
    balanced, scale = balance(A, rate)
    B = B / scale[:, None]
    bases = [_embedded(_reached(balanced[np.ix_(part, part)], B[part]), part, len(A)) for part in _independent_parts(balanced, B)]
    return np.hstack([np.zeros((len(A), 0)), *bases]), balanced, scale


def _reached(A: Array, B: Array) -> Array:
    """Return the basis of `reachable_basis` for balanced states that do not fall into independent parts."""
    zero, basis = _RANK * float(np.linalg.norm(A, 2)), np.zeros((len(A), 0))
    size = np.linalg.norm(B, axis=0)
    new = B[:, size > 0.0] / size[size > 0.0]
    floor = _RANK
    while new.shape[1]:
        for _ in range(2):                                         # the second orthogonalization removes rounding errors
            new = new - basis @ (basis.T @ new)
        u, s, _ = np.linalg.svd(new, full_matrices=False)
        u = u[:, s > floor]
        basis = np.hstack([basis, u])
        new, floor = A @ u, zero
    return basis


# text -------------------------------------------------------------------------------------------------------------------

def growth_text(power: int) -> str:
    """Return the growth with a power of t as text: "grows like t^3"."""
    return "grows like t" + (f"^{power}" if power > 1 else "")


def chains_text(mode: Mode) -> str:
    """Return the lengths of Jordan chains as text: "Jordan chain of 4", or "Jordan chains of 4, 4, 2"."""
    return f"Jordan chain{'s' * (len(mode.chains) > 1)} of {', '.join(map(str, mode.chains))}"


def eigenvalue_text(mode: Mode) -> str:
    """Return the eigenvalue of a mode, or a pair of them, as text: "-0.5 ± 2i"."""
    real_part = f"{0.0 if mode.chains else mode.eigenvalue.real:.5g}"
    return real_part + (f" ± {mode.eigenvalue.imag:.5g}i" if mode.eigenvalue.imag else "")


def main_coordinates(shares: dict[str, float]) -> str:
    """Return the coordinates with the largest shares, at most three, as text."""
    return ", ".join([name for name, fraction in shares.items() if fraction >= 0.05][:3])
