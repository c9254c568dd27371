"""Runge-Kutta methods as checked data.

    c | A
    --+---
      | b        weights of the step
      | error    weights of the error estimate (b less those of the embedded method), over stages + 1
      | dense    (stages + 1, k): y(t + s h) = y + h sum_i K_i sum_j dense[i, j] s^(j+1)
"""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np


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

    def __post_init__(self):
        stages = len(self.b)
        if self.A.shape != (stages, stages) or np.triu(self.A).any():
            raise ValueError(f"{self.name}: A is not strictly lower triangular")
        for what, found, wanted in (("rows of A", self.A.sum(axis=1), self.c), ("b", self.b.sum(), 1.0),
                                    ("error weights", self.error.sum(), 0.0)):
            if not np.allclose(found, wanted, rtol=0, atol=1e-14):
                raise ValueError(f"{self.name}: {what} do not sum as they must")
        if self.dense.size and not np.allclose(self.dense.sum(axis=1)[:stages], self.b, rtol=0, atol=1e-14):
            raise ValueError(f"{self.name}: dense output does not end at the step")

    @property
    def adaptive(self) -> bool:
        return self.error.size > 0


def rk4() -> Tableau:
    """The classical method of order 4 (Kutta 1901)."""
    A = np.zeros((4, 4))
    A[1, 0], A[2, 1], A[3, 2] = 0.5, 0.5, 1.0
    return Tableau("rk4", 4, A, np.array([1.0, 2.0, 2.0, 1.0]) / 6, np.array([0.0, 0.5, 0.5, 1.0]), np.empty(0),
                   np.empty((0, 0)))


def dopri5() -> Tableau:
    """Dormand and Prince 5(4) with Shampine's dense output, as SciPy has it."""
    from scipy.integrate import RK45
    A = np.zeros((6, 6))
    A[:, :5] = RK45.A
    return Tableau("dopri5", 5, A, RK45.B.copy(), RK45.C.copy(), RK45.E.copy(), RK45.P.copy(), error_order=4)


METHODS = {"rk4": rk4, "dopri5": dopri5}
