"""Why a run ended early: what its message names."""
import pytest

import liedyn as ld

PENDULUM = """\
name: pendulum
links: {a: {mass: 1, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}, b: {mass: 1, com: [0, 0, -0.5], inertia: [0.1, 0.1, 0.1]}}
joints:
  j: {type: continuous, parent: world, child: a, axis: [0, 1, 0]}
  k: {type: continuous, parent: a, child: b, axis: [0, 1, 0], origin: {xyz: [0, 0, -1]}}
"""


@pytest.mark.parametrize("joint", ["j", "k"])
def test_a_signal_that_is_not_finite_is_named_with_its_place(tmp_path, joint):
    (tmp_path / "pendulum.yaml").write_text(PENDULUM)
    (tmp_path / "run.yaml").write_text("robot: pendulum.yaml\nduration: 1\nintegrator: {method: rk4, step: 1.0e-2}\n"
                                       f"joints:\n  {joint}: {{torque: sqrt(0.5 - t)}}\n")
    with pytest.raises(ld.ComputationError, match=rf"run\.yaml:5: joints\.{joint}\.torque: the signal of torque of {joint} "
                                                  r"is not a finite number at or soon after t = 0\.5"):
        ld.run_scenario(tmp_path / "run.yaml")
