"""configs/ur5_tvlqr.py and configs/ur5_mpc.py: the arm returns to its motion, and its tool follows the circle."""
import numpy as np
import pytest

import liedyn as ld
from code_kinds import generated_code
from command_line import script_of


def test_the_arm_returns_to_its_motion():
    with generated_code():
        script = script_of("ur5_tvlqr")
        model = ld.load(script.ROBOT)
        run, tau = script.motion(model, 100)
        assert np.abs(run.q[-1] - script.END).max() < 0.05
        gain = ld.tvlqr(run, {"q.*": 1e4, "v.*": 10}, 0.001)
        back = ld.rollout(model, script.START + 0.05, np.zeros(6), gain.policy(tau), dt=script.DT, steps=100)
    errors = np.abs(back.q - run.q).max(axis=1)
    assert errors[0] == pytest.approx(0.05) and errors[-1] < 1e-3


def test_the_tool_follows_the_circle():
    with generated_code():
        errors, times = script_of("ur5_mpc").run_control(0.2)
    assert len(times) == 20 and errors.max() < 2e-3
