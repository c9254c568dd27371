"""Controller of configs/cart_pole_observer.yaml: a Kalman filter estimates the state from encoders for a regulator.

    liedyn simulate configs/cart_pole_observer.yaml

Both gains come from the linear model of the upright pole, for the rate of the samples. The velocities are not measured.
"""
from __future__ import annotations

import numpy as np

import liedyn as ld


class Balance:
    """LQG: estimate x[k+1] = A x[k] + B u[k] + L (y[k] - C x[k]) of the deviation from upright, force u = -K x.

    It computes the forces of N runs in one call, each with its row of the estimate.
    """

    vectorized = True

    def __init__(self, model: ld.Model, rate: float, noise: float = 1e-4):
        """noise: standard deviation of the measured positions [m and rad]."""
        rest = np.zeros(model.nv)
        system = ld.linearize(model, model.neutral(), rest, rest, inputs="tau.cart", outputs="q.*")
        self.A, self.B = system.discretize(1 / rate)
        self.C = system.C
        self.K = system.lqr({"q.cart": 4, "q.pole": 10, "v.*": 1}, 0.2, step=1 / rate).matrix
        self.L = system.lqe({"q.*": 1e-10, "v.*": 1e-4}, noise**2, step=1 / rate).matrix
        self.x = np.zeros((1, 2 * model.nv))

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray) -> dict[str, np.ndarray]:
        """Return the forces (N, 1) of the carts [N] for measured positions q (N, 2); the velocities `v` are ignored."""
        if t == 0.0:
            self.x = np.concatenate([q, np.zeros_like(q)], axis=1)                # the first measurement
        u = -self.x @ self.K.T
        self.x = self.x @ self.A.T + u @ self.B.T + (q - self.x @ self.C.T) @ self.L.T
        return {"cart": u}
