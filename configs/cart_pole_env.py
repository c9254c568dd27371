"""Learn to balance a pole on a cart in a vector environment of Gymnasium, one candidate policy in each environment.

    python configs/cart_pole_env.py [--iterations N] [--seed K]

A policy is a linear feedback: force = gains @ [x, angle, dx/dt, dangle/dt]. The cross-entropy method draws 64 policies, evaluates
them in 64 environments at once, and draws the next ones about the best eight. Ten iterations take two seconds on one core.
Needs `pip install '.[gymnasium]'`.
"""
from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from gymnasium.vector import AutoresetMode

import liedyn as ld
from liedyn.interop.gymnasium import RobotVectorEnv

ROBOT = Path(__file__).parents[1] / "robots" / "cart_pole.yaml"
POLICIES, BEST, DURATION = 64, 8, 5.0                                                              # DURATION [s]


def initial(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Poles near the upright position."""
    return rng.uniform([-0.1, -0.2], [0.1, 0.2], (n, 2)), rng.uniform(-0.1, 0.1, (n, 2))


def cart_pole_env(num_envs: int, mode: AutoresetMode = AutoresetMode.NEXT_STEP) -> RobotVectorEnv:
    """Return an environment that pays for upright poles, and ends where the pole falls or the cart leaves the track."""
    return RobotVectorEnv(ld.load(ROBOT), num_envs, dt=5e-3, steps=4, duration=DURATION, initial=initial, autoreset_mode=mode,
                          reward=lambda q, v, force: 1.0 - 10.0 * q[:, 1]**2 - 0.1 * q[:, 0]**2,
                          terminated=lambda q, v: (np.abs(q[:, 1]) > 0.5) | (np.abs(q[:, 0]) > 2.4))


def returns(env: RobotVectorEnv, gains: np.ndarray, seed: int) -> np.ndarray:
    """Return the sum of rewards (N,) of one episode of each policy (N, 4)."""
    (observations, _), total, running = env.reset(seed=seed), np.zeros(len(gains)), np.ones(len(gains), dtype=bool)
    while running.any():
        forces = np.einsum("ij,ij->i", gains, observations)[:, None]
        observations, rewards, terminations, truncations, _ = env.step(forces)
        total += np.where(running, rewards, 0.0)
        running &= ~(terminations | truncations)
    return total


def learn(iterations: int, seed: int, report=print) -> np.ndarray:
    """Return the gains (4,) that the cross-entropy method has found."""
    env, rng = cart_pole_env(POLICIES), np.random.default_rng(seed)
    mean, deviation = np.zeros(4), np.array([10.0, 50.0, 10.0, 10.0])
    for k in range(iterations):
        gains = mean + deviation * rng.standard_normal((POLICIES, 4))
        total = returns(env, gains, seed + k)
        best = gains[np.argsort(total)[-BEST:]]
        mean, deviation = best.mean(axis=0), best.std(axis=0) + 0.5
        report(f"iteration {k}: mean return {total.mean():7.1f}, best {total.max():7.1f}, gains {mean.round(1)}")
    return mean


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--iterations", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    gains = learn(options.iterations, options.seed)
    total = returns(cart_pole_env(POLICIES), np.tile(gains, (POLICIES, 1)), seed=1000)
    print(f"{POLICIES} episodes with these gains: mean return {total.mean():.1f}, minimum {total.min():.1f}; "
          f"at most {DURATION / 0.02:g}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
