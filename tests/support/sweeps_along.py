"""Small sweeps of jobs along a trajectory, for tests: a double pendulum, with a wrench on its lower link."""
import numpy as np

import liedyn as ld
from liedyn.batch.run_batch import PreparedSweep
from liedyn.io.sweep_file import read_sweep
from liedyn.io.trajectory_csv import write_trajectory
from liedyn.simulation.trajectory_columns import motion_columns
from sweeps import ROBOT

VARY = """\
parameters:
  - {key: robot.mass.lower, name: mass, uniform: [0.8, 1.3], scale: relative}
  - {key: robot.friction.elbow, name: friction, list: [0, 0.3]}
samples: 21
seed: 2
"""


def recorded(path, rows: int = 9, shift: float = 0.0):
    """Return a trajectory with all columns, and a wrench on the lower link."""
    model, t = ld.load(ROBOT), np.linspace(0.0, 1.0, rows)
    q = np.column_stack([np.sin(2 * t) + shift, np.cos(3 * t)])
    v = np.column_stack([2 * np.cos(2 * t), -3 * np.sin(3 * t)])
    a = np.column_stack([-4 * np.sin(2 * t), -9 * np.cos(3 * t)])
    tau, wrench = np.column_stack([t, 1.0 - t]), np.zeros((rows, 1, 6))
    wrench[:, 0, 5] = t
    write_trajectory(path, {"robot": ROBOT}, t, motion_columns(model, ("lower",), wrench, q=q, v=v, a=a, tau=tau), force=True)


def batch(folder, text: str, size: int | None = None) -> PreparedSweep:
    recorded(folder / "motion.csv")
    (folder / "sweep.yaml").write_text(f"trajectory: motion.csv\n{text}", encoding="utf-8")
    return PreparedSweep(read_sweep(folder / "sweep.yaml"), size)
