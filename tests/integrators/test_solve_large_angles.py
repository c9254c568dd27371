"""Motion through the angle beyond which generated code is not used."""
import math

import pytest

import liedyn as ld

WHEEL = """
name: wheel
links: {wheel: {mass: 1.0, inertia: [0.01, 0.01, 0.01], com: [0.1, 0, 0]}}
joints: {w: {type: continuous, parent: world, child: wheel, axis: [0, 0, 1]}}
"""


@pytest.mark.parametrize("start", [99999.0, 1e7])
@pytest.mark.parametrize("method", ["dopri5", "dop853"])
def test_adaptive_methods_continue_beyond_1e5_rad(tmp_path, method, start):
    (tmp_path / "wheel.yaml").write_text(WHEEL)                  # gravity along the axis: the speed is constant
    run = ld.run_scenario({"robot": str(tmp_path / "wheel.yaml"), "duration": 0.1, "integrator": {"method": method},
                           "initial": {"q": {"w": start}, "v": {"w": 100.0}}})
    assert run.status == "complete"
    assert run.q[-1, 0] == pytest.approx(start + 10.0, rel=1e-15 * 10)


@pytest.mark.parametrize("duration", [5.0, 12.0])
def test_a_fan_passes_1e5_rad_by_rosenbrock_steps(tmp_path, duration):
    """Steps that were shortened towards the range of generated code, a few times each, ended as "no longer finite"."""
    links = "links: {a: {mass: 1, com: [0.001, 0, 0], inertia: [0.1, 0.1, 0.1]}}"
    joints = "joints: {j: {type: continuous, parent: world, child: a, axis: [0, 1, 0], damping: 0.01}}"
    (tmp_path / "fan.yaml").write_text(f"name: fan\n{links}\n{joints}\n")
    run = ld.run_scenario({"robot": str(tmp_path / "fan.yaml"), "duration": duration, "output_step": 5,
                           "initial": {"q": {"j": 97_000.0}, "v": {"j": 700.0}},
                           "joints": {"j": {"torque": "0.5*(800-v)"}}, "integrator": {"method": "rodas5p"}})
    rate, final = 0.51 / (0.1 + 1e-6), 400 / 0.51      # gravity of the eccentric mass moves the angle by 2e-7 rad only
    exact = 97_000 + final * duration + (700 - final) * (1 - math.exp(-rate * duration)) / rate
    assert exact > 1e5 and run.q[-1, 0] == pytest.approx(exact, rel=1e-6)
