"""A quadruped on the ground as a vector environment of Gymnasium, with setpoints of its legs as actions.

    python configs/quadruped_env.py [--robot FILE] [--envs N] [--seconds T]

The robot is the Mini Cheetah, or another one with three joints per leg, such as the URDF of the Unitree Go2:

    python configs/quadruped_env.py --robot go2.urdf

Each environment has another mass of the trunk. Rewards are paid for height and forward velocity of the trunk. Actions here
are random setpoints about the standing posture. An episode ends if the trunk turns over or touches the ground. 64 robots take 25
steps of 0.2 ms per action. Needs `pip install '.[gymnasium]'`.
"""
from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

import liedyn as ld
from liedyn.interop.gymnasium import RobotVectorEnv

ROBOT = Path(__file__).parents[1] / "robots" / "quadruped.yaml"
LEG = (0.0, 0.8, -1.6)                                    # abduction, hip and knee of each leg when it stands [rad]
KP, KD, DT, STEPS, RADIUS = 60.0, 2.0, 2e-4, 25, 0.02     # of servos and of the integrator; radius of feet [m]


def standing(model: ld.Model) -> np.ndarray:
    """Return the configuration in which the feet touch the ground."""
    q = np.concatenate([[0, 0, 0, 0, 0, 0, 1], np.tile(LEG, 4)])
    feet = [name for name in model.link_names if name.endswith("_foot")]
    q[2] = RADIUS - min(ld.link_pose(model, q, foot)[2, 3] for foot in feet)
    return q


def quadruped_env(robot: Path | str, num_envs: int) -> RobotVectorEnv:
    """Return an environment of robots with masses of the trunk between 80 and 120 % of that in the file."""
    model = ld.load(robot, base="floating")
    q, trunk = standing(model), model.joints[0].child
    mass = next(link.mass for link in model.description.links if link.name == trunk)
    robots = ld.Variants(model, {f"mass.{trunk}": mass * np.linspace(0.8, 1.2, num_envs)})
    gains = np.arange(model.nv) >= 6

    def initial(rng, n):
        return np.tile(q, (n, 1)) + np.pad(0.02 * rng.standard_normal((n, 12)), ((0, 0), (7, 0))), np.zeros((n, model.nv))

    def upright(q):
        return 1.0 - 2.0 * (q[:, 3]**2 + q[:, 4]**2)                 # z component of the vertical axis of the trunk
    return RobotVectorEnv(robots, num_envs, dt=DT, steps=STEPS, method="semi_implicit", joints=model.joint_names[1:],
                          action="setpoint", feedback=ld.Feedback.pd(KP * gains, KD * gains, q), duration=5.0, initial=initial,
                          contacts={"links": {"*_foot": {"sphere": {"radius": RADIUS}}}, "friction_speed": 0.1, "sink": 0.003},
                          reward=lambda q, v, action: v[:, 3] - 10.0 * (q[:, 2] - 0.28)**2,
                          terminated=lambda q, v: (upright(q) < 0.5) | (q[:, 2] < 0.1))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--robot", type=Path, default=ROBOT)
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=2.0, help="simulated time")
    options = parser.parse_args(arguments)
    env = quadruped_env(options.robot, options.envs)
    rng, posture, episodes, total = np.random.default_rng(0), np.tile(LEG, (options.envs, 4)), 0, 0.0
    env.reset(seed=0)
    started, count = time.perf_counter(), round(options.seconds / (DT * STEPS))
    for _ in range(count):
        actions = posture + 0.1 * rng.standard_normal(posture.shape)
        _, rewards, terminations, truncations, _ = env.step(actions)
        episodes, total = episodes + int((terminations | truncations).sum()), total + float(rewards.sum())
    elapsed = time.perf_counter() - started
    weight = env.stepper.contact_forces.sum(axis=1)
    print(f"{options.envs} robots, {options.seconds:g} s each: {episodes} episodes ended, mean reward "
          f"{total / count / options.envs:.3f}; mean force on the feet {weight.mean():.0f} N; "
          f"{options.envs * count / elapsed:.0f} actions a second")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
