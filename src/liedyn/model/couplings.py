"""Couplings and mimic joints, solved for followers: q_f = sum r q_d + c, or q_f = f(q_d), with independent coordinates d."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from liedyn.arrays import Array, Integers, Mask
from liedyn.errors import ModelError, Place
from liedyn.immutable import Immutable
from liedyn.model.coupling_functions import FunctionProgram, evaluate
from liedyn.model.description import Coupling

_VANISHING = 1e-12        # coefficients of a scaled equation below it are rounding of the elimination
_STRONG = 0.1             # of the largest coefficient: large enough to divide by
_CONTRADICTION = 1e-9     # residual of an equation without terms, relative to its scale


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
                    f"{names[coupling.driver.q]} = {x[bad][0]:.6g}; expected values of {names[coupling.driver.q]} in its domain")
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

    Otherwise the last of the coordinates with a large coefficient follows. Raises ModelError if couplings contradict each other.
    """
    couplings, nv = list(couplings), len(coordinates)
    equations = np.zeros((len(couplings), nv + 1))             # sum c q = offset
    for k, coupling in enumerate(couplings):
        for joint, label, coefficient in coupling.terms:
            equations[k, coordinates.index((joint, label))] += coefficient
        equations[k, nv] = coupling.offset
    scales = np.linalg.norm(equations[:, :nv] * unit, axis=1)
    followers: dict[int, Array] = {}
    for k, coupling in enumerate(couplings):
        sizes = np.abs(equations[k, :nv]) * unit / scales[k]
        if sizes.max() <= _VANISHING:
            if abs(equations[k, nv]) > _CONTRADICTION * scales[k]:
                raise ModelError(f"the coupling {coupling.name} contradicts the other couplings", place=coupling.place,
                                 hint="remove it, or change its offset")
            continue
        follower = _follower(sizes, mimics, prescribed)
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


def _follower(sizes: Array, mimics: Mask, prescribed: Mask) -> int:
    """Return the coordinate for which an equation with coefficients of these sizes is solved."""
    largest = sizes.max()
    return int(max(np.flatnonzero(sizes > _VANISHING),
                   key=lambda k: (not prescribed[k], mimics[k], sizes[k] >= _STRONG * largest, k)))
