"""Write the gains of configs/double_pendulum_lift.yaml: a regulator along a motion of the double pendulum.

    python configs/double_pendulum_lift.py [-o FILE]

The pendulum is lifted from below to the top in 2 s. Its torques are those of inverse dynamics, and its gains those of `ld.tvlqr`.
"""
from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import liedyn as ld

ROBOT = Path(__file__).parents[1] / "robots" / "double_pendulum.yaml"
STEPS, DT = 50, 0.04


def tracking_gain() -> tuple[ld.TimeVaryingGain, np.ndarray]:
    """Return the gains along the motion, and its torques (STEPS, 2)."""
    model, end = ld.load(ROBOT), np.array([np.pi, 0.0])
    s, T = (np.arange(STEPS)[:, None] + 0.5) / STEPS, STEPS * DT                   # quintic polynomial, in the middle of steps
    tau = ld.inverse_dynamics(model, (10 * s**3 - 15 * s**4 + 6 * s**5) * end, (30 * s**2 - 60 * s**3 + 30 * s**4) / T * end,
                              (60 * s - 180 * s**2 + 120 * s**3) / T**2 * end)
    run = ld.rollout(model, np.zeros(2), np.zeros(2), tau, dt=DT, steps=STEPS)
    return ld.tvlqr(run, {"q.*": 100, "v.*": 1}, 0.1), tau


def main() -> None:
    """Write the CSV."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).with_name("double_pendulum_lift.csv"))
    gain, tau = tracking_gain()
    gain.write(parser.parse_args().output, tau, force=True)


if __name__ == "__main__":
    main()
