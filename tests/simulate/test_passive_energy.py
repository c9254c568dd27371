"""Energies of runs without passive forces."""
import numpy as np
import pytest

import liedyn as ld

SPRING = """
name: p
gravity: [0, 0, 0]
links: {b: {mass: 1.0, inertia: [0.1, 0.1, 0.1]}}
joints: {j: {type: continuous, parent: world, child: b, axis: [0, 0, 1], stiffness: 5.0, rest: 0.2}}
"""


@pytest.mark.parametrize("passive", [False, True])
def test_potential_energy_contains_springs_only_where_they_act(tmp_path, passive):
    (tmp_path / "p.yaml").write_text(SPRING)
    run = ld.simulate(ld.load(tmp_path / "p.yaml"), duration=1.0, q0=[0.5], v0=[1.0], passive=passive)
    expected = 2.5 * (run.q[:, 0] - 0.2)**2 if passive else 0.0 * run.t
    np.testing.assert_allclose(run.potential, expected, atol=1e-12)
    assert run.check["energy_balance_relative"] < 1e-6 and not run.notes
