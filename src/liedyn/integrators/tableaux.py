"""Runge-Kutta methods as checked data.

    c | A
    --+---
      | b        weights of the step
      | error    weights of the error estimate (b less those of the embedded method), over stages + 1; or of two estimates
      | dense    (rows, k): y(t + s h) = y + h sum_i K_i sum_j dense[i, j] s^(j+1)

The rates at the end of the step are K_i of the row after those of b. Rows of A beyond are stages that dense output alone needs.
States at the stages `inside`, or their means, are those of the motion but for terms of third order of the step: what is read
there lies on a polynomial in time.
"""
from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

TIMES_BETWEEN = 7


@dataclass(frozen=True, eq=False)
class Tableau:
    """order: of the step; error_order: of the estimate. `error` and `dense` are empty for a method without them."""

    name: str
    order: int
    A: np.ndarray
    b: np.ndarray
    c: np.ndarray
    error: np.ndarray
    dense: np.ndarray
    error_order: int = 0
    inside: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self):
        stages = len(self.b)
        if self.A.shape != (len(self.c),) * 2 or len(self.c) < stages or np.triu(self.A).any():
            raise ValueError(f"{self.name}: A is not strictly lower triangular")
        for what, found, wanted in (("rows of A", self.A.sum(axis=1), self.c), ("b", self.b.sum(), 1.0),
                                    ("error weights", self.error.reshape(-1, stages + 1).sum(axis=1), 0.0)):
            if not np.allclose(found, wanted, rtol=0, atol=1e-14):
                raise ValueError(f"{self.name}: {what} do not sum as they must")
        rounding = 1e-14 * max(1.0, np.abs(self.dense).max(initial=0.0))
        if self.dense.size and not np.allclose(self.dense.sum(axis=1)[:stages], self.b, rtol=0, atol=rounding):
            raise ValueError(f"{self.name}: dense output does not end at the step")

    @property
    def adaptive(self) -> bool:
        return self.error.size > 0

    @cached_property
    def between(self) -> np.ndarray:
        """(k, stages + 1): by readings at the stages and at the end of a step, values at k evenly spaced times within it of the
        polynomial through those at the beginning, `inside` and at the end."""
        stages = len(self.b)
        nodes = np.array([0.0, *(self.c[rows[0]] for rows in self.inside), 1.0])
        means = np.array([np.isin(np.arange(stages + 1), rows) / len(rows) for rows in ((0,), *self.inside, (stages,))])
        times = np.arange(1, TIMES_BETWEEN + 1) / (TIMES_BETWEEN + 1)
        return np.vander(times, len(nodes)) @ np.linalg.inv(np.vander(nodes)) @ means


@cache
def rk4() -> Tableau:
    """The classical method of order 4 (Kutta 1901)."""
    A = np.zeros((4, 4))
    A[1, 0], A[2, 1], A[3, 2] = 0.5, 0.5, 1.0
    return Tableau("rk4", 4, A, np.array([1.0, 2.0, 2.0, 1.0]) / 6, np.array([0.0, 0.5, 0.5, 1.0]), np.empty(0),
                   np.empty((0, 0)), inside=((1, 2),))


@cache
def dopri5() -> Tableau:
    """Dormand and Prince 5(4) with Shampine's dense output, as SciPy has it."""
    from scipy.integrate import RK45
    A = np.zeros((6, 6))
    A[:, :5] = RK45.A
    return Tableau("dopri5", 5, A, RK45.B.copy(), RK45.C.copy(), RK45.E.copy(), RK45.P.copy(), error_order=4,
                   inside=((2,), (3,)))


@cache
def dop853() -> Tableau:
    """Dormand and Prince 8(5,3) with dense output of order 7 (Hairer, Norsett, Wanner, Solving ODEs I, II.5, II.6), as SciPy
    has it. The dense output, there y0 + s (F0 + (1 - s) (F1 + s (F2 + ...))), is multiplied out."""
    from scipy.integrate import DOP853
    stages, rows = len(DOP853.B), len(DOP853.B) + 1 + len(DOP853.C_EXTRA)
    A = np.zeros((rows, rows))
    A[:stages, :stages], A[stages, :stages], A[stages + 1:] = DOP853.A, DOP853.B, DOP853.A_EXTRA
    F = np.zeros((7, rows))
    F[0, :stages], F[3:] = DOP853.B, DOP853.D
    F[1] = np.eye(rows)[0] - F[0]
    F[2] = F[0] - F[1] - np.eye(rows)[stages]
    dense = np.zeros((rows, 7))
    for k in range(7):
        power = np.poly1d([1.0, 0.0])**(k // 2 + 1) * np.poly1d([-1.0, 1.0])**((k + 1) // 2)
        dense[:, :k + 1] += np.outer(F[k], power.coeffs[-2::-1])
    return Tableau("dop853", 8, A, DOP853.B.copy(), np.concatenate([DOP853.C, [1.0], DOP853.C_EXTRA]),
                   np.concatenate([DOP853.E5, DOP853.E3]), dense, error_order=7, inside=((5,), (9,), (10,)))


METHODS = {"rk4": rk4, "dopri5": dopri5, "dop853": dop853}
