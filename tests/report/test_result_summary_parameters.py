"""The table of estimated parameters."""
from dataclasses import replace
from pathlib import Path

import numpy as np

import liedyn as ld
from liedyn.report.result_summary import parameter_text

ROBOTS = Path(__file__).parents[2] / "robots"


def test_a_deviation_relative_to_a_value_of_zero_is_a_dash():
    """It was printed as `5.4e+27 %`."""
    model, t = ld.load(ROBOTS / "double_pendulum.yaml"), np.linspace(0, 2, 201)
    motion = ld.motion_of(model, ld.trajectory_of(model, t, np.stack([np.sin(3 * t), np.cos(4 * t)], axis=1)))
    fit = ld.identify(model, motion.t, motion.q, ld.inverse_dynamics(model, motion.q, motion.v, motion.a), v=motion.v, a=motion.a)
    assert "%" in parameter_text(model, fit.base, fit).splitlines()[2]
    first, second, third = parameter_text(model, fit.base, replace(fit, relative=np.r_[5.4e25, 0.02, np.inf, fit.relative[3:]])
                                          ).splitlines()[2:5]
    assert "%" not in first and " - " in first and " 2 %" in second and " - " not in third.split("kg")[0]
