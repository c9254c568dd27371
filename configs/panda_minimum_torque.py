"""A Panda moves from one configuration to another with the smallest joint torques: direct collocation with CasADi and IPOPT.

    python configs/panda_minimum_torque.py [-o FILE.csv] [--force] [--nodes N] [--duration S]

The unknowns are positions, velocities and accelerations at the nodes. The torques are `ld.casadi_function(model,
"inverse_dynamics")`, and CasADi derives the gradients and the Hessian of IPOPT from its expressions. Positions, velocities,
accelerations and torques are within the limits of the robot file. The output is a trajectory, for `liedyn plot` and `replay`.
"""
from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

import liedyn as ld

ROBOT = Path(__file__).parents[1] / "robots" / "panda.yaml"
FIRST = [0.0, -0.6, 0.0, -2.2, 0.0, 1.6, 0.8, 0.02, 0.02]
LAST = [1.5, 0.6, 0.3, -1.2, -0.4, 1.9, 0.2, 0.02, 0.02]


def motion(model: ld.Model, nodes: int, duration: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return positions, velocities, accelerations and torques (N, nv) of the motion at rest at both ends."""
    import casadi

    h, n, middle = duration / (nodes - 1), model.nv, np.linspace(0, 1, nodes)
    problem = casadi.Opti()
    q, v, a = (problem.variable(n, nodes) for _ in range(3))
    tau = ld.casadi_function(model, "inverse_dynamics").map(nodes)(q, v, a)
    for x, rate in ((q, v), (v, a)):                                   # trapezoidal rule
        problem.subject_to(x[:, 1:] - x[:, :-1] == h / 2 * (rate[:, 1:] + rate[:, :-1]))
    for x, lower, upper in ((q, model.lower, model.upper), (v, -model.velocity_limit, model.velocity_limit),
                            (a, -model.acceleration_limit, model.acceleration_limit),
                            (tau, -model.effort_limit, model.effort_limit)):
        for i in np.flatnonzero(np.isfinite(upper)):
            problem.subject_to(problem.bounded(lower[i], x[i, :], upper[i]))
    for k, end in ((0, FIRST), (nodes - 1, LAST)):
        problem.subject_to(q[:, k] == end)
        problem.subject_to(v[:, k] == 0)
    problem.minimize(h * casadi.sumsqr(tau))
    problem.set_initial(q, np.outer(FIRST, 1 - middle) + np.outer(LAST, middle))
    problem.solver("ipopt", {"expand": True, "print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes"})
    solution = problem.solve()
    q, v, a, tau = (np.array(solution.value(x)).T for x in (q, v, a, tau))
    return q, v, a, tau


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("-o", "--output", type=Path, default=Path("runs/panda_minimum_torque.csv"))
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--duration", type=float, default=1.5, help="[s]")
    options = parser.parse_args(arguments)
    if options.output.exists() and not options.force:
        print(f"{options.output} exists (--force replaces it)", file=sys.stderr)
        return 2
    model = ld.load(ROBOT)
    q, v, a, tau = motion(model, options.nodes, options.duration)
    largest = np.abs(tau).max(axis=0)
    for name, torque, limit in zip(model.v_names, largest, model.effort_limit, strict=True):
        print(f"{name:22} at most {torque:6.2f} of {limit:g}")
    times = np.linspace(0, options.duration, options.nodes)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    ld.trajectory_of(model, times, q, v, a, tau).save(options.output, force=options.force)
    return 0


if __name__ == "__main__":
    sys.exit(main())
