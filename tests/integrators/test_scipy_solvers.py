"""SciPy's solvers and Rosenbrock methods: which side of a jump their rows show."""
import numpy as np
import pytest

import liedyn as ld
from liedyn.integrators.rosenbrock import METHODS as ROSENBROCK
from liedyn.integrators.solve import SCIPY_METHODS

SLIDER = """\
name: slider
links: {block: {mass: 2, inertia: [1, 1, 1]}}
joints: {x: {type: prismatic, parent: world, child: block, axis: [1, 0, 0], limits: {lower: -9, upper: 9}}}
"""


@pytest.mark.parametrize("method", [*SCIPY_METHODS, *ROSENBROCK])
def test_a_jump_at_the_end_is_not_in_the_last_row(tmp_path, method):
    """The force jumps at 0.2 s, which a row shows, and at the end, after the run."""
    (tmp_path / "slider.yaml").write_text(SLIDER)
    run = ld.run_scenario({"robot": str(tmp_path / "slider.yaml"), "duration": 0.5, "output_step": 0.1,
                           "integrator": {"method": method}, "joints": {"x": {"torque": "1 + step(t - 0.2) + 4*step(t - 0.5)"}}})
    np.testing.assert_allclose(run.tau[:, 0], [1.0, 1.0, 2.0, 2.0, 2.0, 2.0])
    np.testing.assert_allclose(run.a[:, 0], run.tau[:, 0] / 2.0)
