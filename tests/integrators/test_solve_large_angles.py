"""Motion through the angle beyond which generated code is not used."""
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
