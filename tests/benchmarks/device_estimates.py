"""States per second on an H100, on paper: python tests/benchmarks/device_estimates.py.

From operations, registers and bytes of the kernels: the time between states is the larger of cost / (multiprocessors x units x
clock) and bytes / bandwidth, see `liedyn.dynamics.plan`. Registers and bytes that do not fit are those of ptxas.
"""
from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import liedyn as ld
from assembler import assembled
from liedyn.codegen.targets.device_kernels import ptx
from liedyn.dynamics.plan import H100
from liedyn.interop.device_drivers import column_places
from liedyn.interop.devices import _RolloutStep
from liedyn.interop.traced_functions import trace_function

FUNCTIONS = {"panda": ("inverse_dynamics", "forward_dynamics", "mass_matrix", "forward_dynamics_derivatives", "regressor"),
             "quadruped": ("inverse_dynamics", "forward_dynamics"), "humanoid": ("inverse_dynamics", "forward_dynamics")}
FEET = {"quadruped": 0.0175, "humanoid": 0.05}             # radii of spheres [m]


def estimate_function(model, function: str, dtype: str) -> None:
    plan = ld.plan(model, function, target="ptx", dtype=dtype)
    traced = trace_function(model, function, {}, libm=False, single=dtype == "float32")
    text = ptx(traced.trace, "f", traced.inputs, {name: column_places(x) for name, x in traced.shapes.items()}, "sm_90")
    with TemporaryDirectory() as folder:
        registers, spilled = assembled(text, "sm_90", Path(folder))
    print_row(model, function, dtype, plan.operations, registers, spilled, plan.bytes, 1 / plan.time)


def estimate_step(model, dtype: str) -> None:
    """Estimate a step of a rollout with rk4 and contacts, which writes the state."""
    single = dtype == "float32"
    radius = FEET.get(model.name)
    contacts = radius and {"links": {"*_foot": {"sphere": {"radius": radius}}}, "friction_speed": 0.1, "stiffness": 1e4}
    step = _RolloutStep(model, "rk4", True, None, contacts, None, 1e-3, 1, single=single).programs().step
    cost, size = sum(trace.cost for trace, _ in step.calls), (4 if single else 8) * (model.nq + 2 * model.nv)
    print_row(model, "step, rk4" + (" with contacts" if contacts else ""), dtype, step.size, "", "", size,
              1 / H100.time(cost, size, single=single))


def print_row(model, function, dtype, operations, registers, spilled, size, speed) -> None:
    print(f"{model.name:10} {function:29} {dtype:8} {operations:6} {registers:4} {spilled:6} {size:6} {speed:8.1e}")


def main() -> None:
    print(f"{'robot':10} {'function':29} {'dtype':8} {'ops':>6} {'regs':>4} {'spill':>6} {'bytes':>6} {'states/s':>8}")
    for robot, functions in FUNCTIONS.items():
        model = ld.load(f"robots/{robot}.yaml")
        for dtype in ("float64", "float32"):
            for function in functions:
                estimate_function(model, function, dtype)
            estimate_step(model, dtype)


if __name__ == "__main__":
    main()
