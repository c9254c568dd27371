"""Couplings and mimic joints, solved for followers: q_f = sum r q_d + c, or q_f = f(q_d), with independent coordinates d."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from liedyn.arrays import Array, Integers, Mask
from liedyn.errors import ModelError, Place, list_names
from liedyn.immutable import Immutable
from liedyn.model.coupling_functions import FunctionProgram, evaluate
from liedyn.model.description import RANK_TOLERANCE, Coupling, coordinate_name

_VANISHING = 1e-12        # coefficients and offsets of a scaled equation below it are rounding
_STRONG = 0.1             # of the largest coefficient: large enough to divide by
_RANK = RANK_TOLERANCE**0.5
_EQUILIBRATIONS = 3       # passes of scaling; one suffices but for coefficients of very different sizes in one equation


@dataclass(frozen=True, eq=False)
class Elimination(Immutable):
    """Values of followers by independent coordinates: q[follower] = ratios q + offset.

    independent  (nv - nf,) indices in v, ascending
    follower     (nf,) indices in v, ascending
    ratios       (nf, nv) with zeros at followers
    offset       (nf,) [rad | m]
    """

    independent: Integers
    follower: Integers
    ratios: Array
    offset: Array

    @property
    def fixed(self) -> Integers:
        """Indices in v of the followers that do not move."""
        return self.follower[~self.ratios.any(axis=1)]

    @cached_property
    def projection(self) -> Array:
        """(nv, nv) N: the rates N v have followers that move with the independent coordinates of v.

        N^T tau are forces that do the same work as tau and are zero at followers.
        """
        N = np.eye(self.ratios.shape[1])
        N[self.follower] = self.ratios
        return N


class CoordinateIndex(NamedTuple):
    """Indices of a single coordinate in q and v."""

    q: int
    v: int


class FunctionCoupling(NamedTuple):
    """A nonlinear coupling q_follower = f(q_driver)."""

    name: str
    follower: CoordinateIndex
    driver: CoordinateIndex
    program: FunctionProgram


def undefined_function(couplings: Sequence[FunctionCoupling], q: Array, names: Sequence[str], order: int = 0) -> str | None:
    """Return a text about the first nonlinear coupling without a finite value at q (..., nq); None if all are finite.

    names  of the coordinates in q
    order  of the highest derivative that must be finite, too
    """
    for coupling in couplings:
        x = np.atleast_1d(q[..., coupling.driver.q])
        bad = np.isfinite(x) & ~np.isfinite(evaluate(coupling.program, x)[:order + 1]).all(axis=0)
        if bad.any():
            return (f"the function of coupling {coupling.name}{', or its derivative,' if order else ''} is not finite at "
                    f"{names[coupling.driver.q]} = {x[bad][0]:.6g}: expected values of {names[coupling.driver.q]} in its domain")
    return None


def check_function_couplings(couplings: Sequence[FunctionCoupling], elimination: Elimination,
                             places: Mapping[str, Place]) -> None:
    """Raise ModelError if the follower of a nonlinear coupling also depends on others, or on itself.

    elimination: of the linear couplings, with the followers of nonlinear ones as independent coordinates where possible
    """
    depends = {int(k): set(np.flatnonzero(ratios).tolist())
               for k, ratios in zip(elimination.follower, elimination.ratios, strict=True)}
    for coupling in couplings:
        if coupling.follower.v in depends:
            raise ModelError(f"the follower of coupling {coupling.name} is also determined by another coupling or mimic joint",
                             place=places[coupling.name], hint="choose another follower, or add a loop in place of one coupling")
        depends[coupling.follower.v] = {coupling.driver.v}
    for coupling in couplings:
        reached, pending = set(), [coupling.driver.v]
        while pending:
            k = pending.pop()
            if k == coupling.follower.v:
                raise ModelError(f"the follower of coupling {coupling.name} depends on itself", place=places[coupling.name],
                                 expected="a driver that does not follow it")
            if k not in reached:
                reached.add(k)
                pending += depends.get(k, ())


def eliminate(couplings: Iterable[Coupling], coordinates: Sequence[tuple[str, str]], unit: Array, mimics: Mask,
              prescribed: Mask) -> Elimination:
    """Solve couplings for one follower each.

    coordinates  joint and label of each velocity coordinate
    unit         (nv,) 1 rad, or a characteristic length: coefficients are compared in these units
    mimics       (nv,) coordinates of mimic joints, which follow where possible
    prescribed   (nv,) coordinates that do not follow where possible

    Otherwise the last of the coordinates with a large coefficient follows. Raises ModelError if couplings contradict each other,
    or nearly repeat each other.
    """
    couplings, nv = list(couplings), len(coordinates)
    equations = np.zeros((len(couplings), nv + 1))             # sum c q = offset
    for k, coupling in enumerate(couplings):
        for joint, label, coefficient in coupling.terms:
            equations[k, coordinates.index((joint, label))] += coefficient
        equations[k, nv] = coupling.offset
    equations = equations[_independent_equations(equations, couplings, coordinates, unit)]
    scales = np.linalg.norm(equations[:, :nv] * unit, axis=1)
    followers: dict[int, Array] = {}
    for k in range(len(equations)):
        follower = _follower(np.abs(equations[k, :nv]) * unit / scales[k], mimics, prescribed)
        scales[k] /= abs(equations[k, follower])
        equations[k] /= equations[k, follower]
        for j in np.flatnonzero(equations[:, follower]):
            if j != k:
                equations[j] -= equations[j, follower] * equations[k]
                equations[j, :nv][np.abs(equations[j, :nv]) * unit <= _VANISHING * scales[j]] = 0.0
        followers[follower] = equations[k]
    chosen = np.array(sorted(followers), dtype=np.int64)
    values = np.array([followers[k] for k in sorted(followers)]).reshape(-1, nv + 1)
    values[np.arange(len(chosen)), chosen] = 0.0
    return Elimination(np.setdiff1d(np.arange(nv), chosen), chosen, 0.0 - values[:, :nv], values[:, nv])


def _independent_equations(equations: Array, couplings: Sequence[Coupling], coordinates: Sequence[tuple[str, str]],
                           unit: Array) -> list[int]:
    """Return the indices of the equations that do not depend on those before them.

    Raises ModelError for a dependent equation that differs from the combination of others that it should be.
    """
    sizes = _equilibration(equations[:, :-1], unit)
    scaled = equations / sizes
    coefficients = np.abs(equations[:, :-1]) * unit
    scaled[:, :-1][coefficients <= _VANISHING * np.linalg.norm(coefficients, axis=1, keepdims=True)] = 0.0
    independent: list[int] = []
    for k, equation in enumerate(scaled):
        weights = np.linalg.lstsq(scaled[independent, :-1].T, equation[:-1], rcond=None)[0]
        combination = weights @ scaled[independent]
        if np.linalg.norm(equation[:-1] - combination[:-1]) > _RANK:
            independent.append(k)
            continue
        largest = np.argmax(np.abs(equation[:-1]))
        combination *= equation[largest] / combination[largest]
        term = int(np.argmax(np.abs(equation - combination)))
        if abs(equation[term] - combination[term]) > _VANISHING * (1.0 + np.abs(weights).max()):
            names = [couplings[j].name for j, weight in zip(independent, weights, strict=True) if abs(weight) > _RANK]
            part = "" if term == len(unit) else coordinate_name(*coordinates[term])
            raise _dependence_error(couplings[k], names, part, equations[k, term], combination[term] * sizes[k, term])
    return independent


def _equilibration(coefficients: Array, unit: Array) -> Array:
    """Return the sizes (n, nv + 1) of the coefficients and offsets of equations.

    Divided by them, equations have the norm 1, and coordinates similar coefficients: a large ratio of a gear, which two equations
    have in common, does not hide the coordinate that only one of them contains.
    """
    S, columns = np.abs(coefficients) * unit, np.ones(coefficients.shape[1])
    rows = np.linalg.norm(S, axis=1, keepdims=True)
    for _ in range(_EQUILIBRATIONS):
        norms = np.linalg.norm(S / rows / columns, axis=0)
        columns *= np.where(norms > 0.0, norms, 1.0)
        rows *= np.linalg.norm(S / rows / columns, axis=1, keepdims=True)
    return np.hstack([rows * columns / unit, rows])


def _dependence_error(coupling: Coupling, names: Sequence[str], term: str, value: float, expected: float) -> ModelError:
    """Return the error of a dependent coupling. term: the joint whose coefficient differs, or empty for the offset."""
    relation, part = ("nearly repeats", f"the coefficient of {term}") if term else ("contradicts", "the offset")
    return ModelError(f"the coupling {coupling.name} {relation} {'couplings' if len(names) > 1 else 'coupling'} "
                      f"{list_names(names, 4)}: {part} is {value:.12g}, and {expected:.12g} follows from the others",
                      place=coupling.place, hint="remove it, or change that number")


def _follower(sizes: Array, mimics: Mask, prescribed: Mask) -> int:
    """Return the coordinate for which an equation with coefficients of these sizes is solved."""
    largest = sizes.max()
    return int(max(np.flatnonzero(sizes > _VANISHING),
                   key=lambda k: (not prescribed[k], mimics[k], sizes[k] >= _STRONG * largest, k)))


def jointly_fixed(couplings: Sequence[Coupling], fixed: Iterable[str]) -> list[str]:
    """Return which of the fixed coordinates are fixed by several couplings together, not by values of other coordinates.

    A coupling with one term fixes its coordinate, and a coupling whose other coordinates are fixed follows.
    """
    stated: set[str] = set()
    for _ in couplings:                                        # each pass gives what follows from those before it
        for coupling in couplings:
            rest = {coordinate_name(joint, label) for joint, label, coefficient in coupling.terms if coefficient} - stated
            stated |= rest if len(rest) == 1 else set()
    return [name for name in fixed if name not in stated]
