"""Runs whose forces jump or have kinks, at times and at states, against closed forms."""
import pytest

import liedyn as ld

METHODS = ("rk4", "dopri5", "RK45", "DOP853", "Radau", "BDF", "LSODA", "generalized_alpha")

BOX = """
links:
  body: {mass: 1.0, inertia: [1, 1, 1]}
joints:
  x: {type: prismatic, parent: world, child: body, axis: [1, 0, 0],
      limits: {lower: -99, upper: 99, velocity: 99, effort: 99}}
"""


@pytest.fixture
def run(tmp_path):
    """A mass of 1 kg on a rail under a force."""
    (tmp_path / "box.yaml").write_text(BOX)

    def run(force, *overrides, method="dopri5", duration=10, initial="{}"):
        path = tmp_path / "run.yaml"
        path.write_text(f"robot: box.yaml\ngravity: [0, 0, 0]\nduration: {duration}\noutput_step: 0.5\ninitial: {initial}\n"
                        f"joints: {{x: {{torque: '{force}'}}}}\n")
        return ld.run_scenario(path, [f"integrator.method={method}", *overrides])
    return run


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("force, impulse", [("step(t-2.0003)-step(t-2.3003)", 0.3), ("1000*(step(t-2.0003)-step(t-2.0004))", 0.1)])
def test_pulses_are_not_jumped_over(run, method, force, impulse):
    """The pulse's impulse to rounding of its ends, 2e-16 of 2 s at 1000 N, and of ten thousand steps; the energy balance holds."""
    result = run(force, method=method)
    assert abs(result.v[-1, 0] - impulse) < 1e-11
    assert abs(result.work[-1] - 0.5 * impulse**2) < 1e-4 * impulse**2       # of BDF, whose order begins anew at a break
    assert not result.notes and result.check["energy_balance_relative"] < 1e-4


def test_switches_that_are_too_many_are_told(run):
    result = run("sign(sin(1e5*t))", duration=2)
    assert len(result.notes) == 1 and "torque of x switches too often" in result.notes[0]
