"""The cart-pole swings up: plain gradient descent on the force of the cart, by the adjoint of the simulation.

    python configs/cart_pole_swing_up.py [-o FOLDER] [--force] [--steps N]

The force is constant in each of 150 steps of 20 ms. The cost asks for an upright pole at rest in the middle at the end, and for a
small force and a short way. `Rollout.adjoint` gives its exact derivative by all forces, for the price of three simulations. The
descent makes steps of limited length along it and nothing else: no solver, no linearization. It takes ten seconds.
"""
from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import liedyn as ld

ROBOT = Path(__file__).parents[1] / "robots" / "cart_pole.yaml"
STEPS, DT = 150, 0.02
HANGING = np.array([0.0, np.pi])


def cost(run, force: np.ndarray) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """The cost of a motion, and its derivatives by positions, velocities and the force itself."""
    q, v = run.q, run.v
    d_q, d_v = np.zeros_like(q), np.zeros_like(v)
    value = 40 * (1 - np.cos(q[-1, 1])) + 10 * q[-1, 0]**2 + 4 * (v[-1]**2).sum()
    value += DT * (0.2 * (q[:, 0]**2).sum() + 1e-3 * (force**2).sum())
    d_q[:, 0] = DT * 0.4 * q[:, 0]
    d_q[-1] += 20 * q[-1, 0], 40 * np.sin(q[-1, 1])
    d_v[-1] = 8 * v[-1]
    return value, d_q, d_v, DT * 2e-3 * force


def simulated(model, force: np.ndarray):
    return ld.rollout(model, HANGING, np.zeros(2), np.stack([force, np.zeros(STEPS)], axis=1), dt=DT, steps=STEPS)


def swing_up(model, iterations: int, told=print) -> np.ndarray:
    """(STEPS,) force of the cart [N]."""
    force = 2 * np.sin(np.linspace(0, 6 * np.pi, STEPS))
    for k in range(iterations):
        run = simulated(model, force)
        value, d_q, d_v, own = cost(run, force)
        slope = run.adjoint(d_q, d_v).tau[:, 0] + own
        force = force - 0.3 * slope / max(1.0, np.linalg.norm(slope))
        if k % 2000 == 0:
            told(f"{k:6d}  cost {value:8.4f}  pole {run.q[-1, 1]:7.4f} rad  cart {run.q[-1, 0]:7.4f} m")
    return force


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, default=Path("runs/cart_pole_swing_up"))
    parser.add_argument("--force", action="store_true", help="replace an existing result")
    parser.add_argument("--steps", type=int, default=12_000, help="of the descent")
    given = parser.parse_args(arguments)
    if given.output.exists() and not given.force:
        print(f"{given.output} exists (--force replaces it)", file=sys.stderr)
        return 2
    model = ld.load(ROBOT)
    force = swing_up(model, given.steps)
    run = ld.simulate(model, duration=STEPS * DT, q0=HANGING, tau=np.stack([force, np.zeros(STEPS)], axis=1), rate=1 / DT,
                      integrator={"method": "rk4", "step": DT}, output_step=DT)
    run.save(given.output, force=given.force, plots=True)
    print(f"the pole ends {abs(run.q[-1, 1]):.1e} rad from upright, at {abs(run.v[-1, 1]):.1e} rad/s; see {given.output}/plots")
    return 0


if __name__ == "__main__":
    sys.exit(main())
