"""A UR5 follows a fast motion under a time-varying LQR, although its tool is heavier than in the model.

    python configs/ur5_tvlqr.py

The torques of a motion of 1.2 s are those of inverse dynamics of the model. `tvlqr` computes the gains of all its steps, by the
linear models of `Rollout.linearize` and the backward Riccati recursion. Then the arm starts 0.05 rad off, and carries 0.5 kg that
the model does not have. With the torques alone it ends far from the goal.
"""
from __future__ import annotations

import time
from pathlib import Path

import numpy as np

import liedyn as ld

ROBOT = Path(__file__).parents[1] / "robots" / "ur5.yaml"
DT = 0.005
START, END = np.array([0.0, -1.6, 1.4, -1.4, -1.57, 0.0]), np.array([1.2, -1.0, 1.0, -1.6, -1.57, 0.8])


def motion(model: ld.Model, steps: int) -> tuple[ld.Rollout, np.ndarray]:
    """Return the motion from START to END under torques (steps, 6) of inverse dynamics, and these."""
    s, T = (np.arange(steps)[:, None] + 0.5) / steps, steps * DT                   # quintic polynomial, in the middle of steps
    path = 10 * s**3 - 15 * s**4 + 6 * s**5, (30 * s**2 - 60 * s**3 + 30 * s**4) / T, (60 * s - 180 * s**2 + 120 * s**3) / T**2
    tau = ld.inverse_dynamics(model, *(x * (END - START) + (START if k == 0 else 0.0) for k, x in enumerate(path)))
    return ld.rollout(model, START, np.zeros(6), tau, dt=DT, steps=steps), tau


def main() -> None:
    """Print the errors at the end of the motion."""
    model = ld.load(ROBOT)
    steps = 240
    run, tau = motion(model, steps)
    begin = time.perf_counter()
    gain = ld.tvlqr(run, {"q.*": 1e4, "v.*": 10}, 0.001)
    print(f"gains of {steps} steps in {1e3 * (time.perf_counter() - begin):.1f} ms")
    link = model.link_names[-1]
    arm = model.with_changes(mass={link: next(x.mass for x in model.description.links if x.name == link) + 0.5})
    for name, forces in (("torques alone", tau), ("time-varying LQR", gain.policy(tau))):
        real = ld.rollout(arm, START + 0.05, np.zeros(6), forces, dt=DT, steps=steps)
        error = np.abs(real.q - run.q).max(axis=1)
        print(f"{name}: error {error[0]:.3f} rad at the start, {error[-1]:.4f} rad at the end")


if __name__ == "__main__":
    main()
