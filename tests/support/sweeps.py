"""Small sweeps for tests: a double pendulum under a servo, with what varies given by a test."""
from pathlib import Path

from liedyn.batch.run_batch import PreparedSweep
from liedyn.io.sweep_file import read_sweep

ROBOT = Path(__file__).parents[2] / "robots/double_pendulum.yaml"
SCENARIO = f"""\
robot: {ROBOT}
duration: 0.5
output_step: 0.05
integrator: {{method: rk4, step: 2.0e-3}}
initial: {{q: {{shoulder: 0.4, elbow: -0.3}}, v: {{elbow: 0.2}}}}
joints:
  shoulder: {{torque: {{pd: {{kp: 20, kd: 2, target: {{sine: {{amplitude: 0.5, frequency: 0.7}}}}}}}}}}
  elbow: {{torque: "1.5*sin(3*t) - 0.4*q"}}
"""
DRAWN = """\
parameters:
  - {key: initial.q.shoulder, name: release, uniform: [-1, 1]}
  - {key: joints.shoulder.torque.pd.kp, name: kp, normal: {mean: 20, std: 5, low: 5, high: 40}}
  - {key: robot.mass.lower, name: mass, uniform: [0.8, 1.3], scale: relative}
"""
OUTPUTS = """\
outputs:
  last: final(q.elbow)
  highest: max(z(tip))
  effort: integral(tau.shoulder**2)
  half: at(0.27, v.elbow)
"""


def written(folder: Path, text: str, scenario: str = SCENARIO, name: str = "sweep.yaml") -> Path:
    (folder / "scenario.yaml").write_text(scenario, encoding="utf-8")
    (folder / name).write_text(f"scenario: scenario.yaml\n{text}", encoding="utf-8")
    return folder / name


def batch(folder: Path, text: str, size: int | None = None, **more) -> PreparedSweep:
    return PreparedSweep(read_sweep(written(folder, text, **more)), size)


def table(folder: Path) -> dict[str, list]:
    from pyarrow import parquet
    return parquet.read_table(folder / "runs.parquet").to_pydict()


def without_seconds(folder: Path) -> dict[str, list]:
    found = table(folder)
    found.pop("seconds")
    return found
