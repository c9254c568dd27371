"""Model predictive control of a UR5 at 100 Hz: its tool follows a circle, and the model predicts 0.3 s ahead.

    python configs/ur5_mpc.py [--seconds 4]

Every 10 ms one Gauss-Newton step improves the torques of the next 30 steps, which begin with those of the previous solution: a
rollout of the model from the measured state, the linear models of its steps (`Rollout.linearize`), the Jacobians of the tool, and
a backward Riccati recursion with the gradients of the cost. The arm is simulated in steps of 1 ms with 0.5 kg more at the tool.
The script prints the error of the tool, and the real-time factor, 10 ms divided by the median time of the computation.
"""
from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

import liedyn as ld

ROBOT = Path(__file__).parents[1] / "robots" / "ur5.yaml"
DT, HORIZON = 0.01, 30
START = np.array([0.0, -1.4, 1.8, -2.0, -1.57, 0.0])
POSITION, SPEED, TORQUE = 2e4, 0.5, 1e-4           # weights of errors of the tool [1/m^2], of velocities, and of torques


class Controller:
    """Model predictive control of the position of a link."""

    def __init__(self, model: ld.Model, link: str, limits: np.ndarray):
        self.model, self.link, self.limits = model, link, limits
        self.tau = np.tile(ld.gravity_force(model, START), (HORIZON, 1))

    def solve(self, q: np.ndarray, v: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Return the torques (6,) of the next step. targets: (HORIZON + 1, 3) positions of the link."""
        model, nv = self.model, self.model.nv
        self.tau = np.concatenate([self.tau[1:], self.tau[-1:]])
        run = ld.rollout(model, q, v, self.tau, dt=DT, steps=HORIZON, method="semi_implicit")
        steps = run.linearize()
        J = ld.jacobian(model, run.q, self.link, frame="local_world_aligned")[:, 3:]
        errors = ld.link_pose(model, run.q, self.link)[:, :3, 3] - targets
        rest, holding = ld.gravity_force(model, run.q[:-1]), TORQUE * np.eye(nv)
        P, p = self._state_cost(J[-1], errors[-1], run.v[-1])
        feedforward, gains = np.empty((HORIZON, nv)), np.empty((HORIZON, nv, 2 * nv))
        for k in range(HORIZON - 1, -1, -1):
            A, B = steps.A[k], steps.B[k]
            BP = B.T @ P
            solved = np.linalg.solve(holding + BP @ B, np.column_stack([BP @ A, B.T @ p + TORQUE * (self.tau[k] - rest[k])]))
            gains[k], feedforward[k] = solved[:, :-1], solved[:, -1]
            Q, g = self._state_cost(J[k], errors[k], run.v[k])
            P, p = Q + A.T @ P @ (A - B @ gains[k]), g + A.T @ (p - P @ (B @ feedforward[k]))
        x = np.zeros(2 * nv)
        for k in range(HORIZON):
            change = np.clip(self.tau[k] - feedforward[k] - gains[k] @ x, -self.limits, self.limits) - self.tau[k]
            x, self.tau[k] = steps.A[k] @ x + steps.B[k] @ change, self.tau[k] + change
        return self.tau[0]

    def _state_cost(self, J: np.ndarray, error: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the Gauss-Newton Hessian and the gradient of the cost of a state."""
        n = len(v)
        Q, g = np.zeros((2 * n, 2 * n)), np.concatenate([POSITION * J.T @ error, SPEED * v])
        Q[:n, :n], Q[n:, n:] = POSITION * J.T @ J, SPEED * np.eye(n)
        return Q, g


def circle(centre: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Return the targets (…, 3) at times t [s]: a circle of 8 cm in 2 s, which begins at rest."""
    angle = np.pi * np.where(t < 1, 0.5 * t**2, t - 0.5)
    return centre + 0.08 * np.stack([np.zeros_like(t), np.sin(angle), 1 - np.cos(angle)], axis=-1)


def run_control(seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the errors of the tool [m] and the times of the computations [s] of each control step."""
    model = ld.load(ROBOT)
    link = model.link_names[-1]
    arm = model.with_changes(mass={link: next(x.mass for x in model.description.links if x.name == link) + 0.5})
    controller = Controller(model, link, model.effort_limit)
    plant = ld.Stepper(arm, 1e-3, q0=START, steps=10)
    centre, errors, times = ld.link_pose(model, START, link)[:3, 3], [], []
    for k in range(round(seconds / DT)):
        q, v = plant.q.copy(), plant.v.copy()
        begin = time.perf_counter()
        tau = controller.solve(q, v, circle(centre, DT * (k + np.arange(HORIZON + 1))))
        times.append(time.perf_counter() - begin)
        errors.append(np.linalg.norm(ld.link_pose(model, q, link)[:3, 3] - circle(centre, np.array(DT * k))))
        plant.step(plant.q, plant.v, tau)
    return np.array(errors), np.array(times)


def main() -> None:
    """Print the error of the tool and the real-time factor."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=4.0)
    errors, times = run_control(parser.parse_args().seconds)
    print(f"error of the tool: {1e3 * np.sqrt((errors**2).mean()):.2f} mm rms, {1e3 * errors.max():.2f} mm at most")
    ordinary = times[20:]                                            # the first calls compile or load code
    print(f"computation: {1e3 * np.median(ordinary):.2f} ms median; real-time factor {DT / np.median(ordinary):.1f}; "
          f"{100 * (ordinary < DT).mean():.1f} % of the steps within 10 ms")


if __name__ == "__main__":
    main()
