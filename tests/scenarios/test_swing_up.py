"""configs/cart_pole_swing_up.py: the descent descends, and what it writes is a run."""
import json

import numpy as np
import pytest

import liedyn as ld
from command_line import script_of


@pytest.fixture(scope="module")
def script():
    return script_of("cart_pole_swing_up")


def test_the_cost_falls(script):
    model, costs = ld.load(script.ROBOT), []
    for steps in (0, 100, 300):
        force = script.swing_up(model, steps, told=lambda text: None)
        costs.append(script.cost(script.simulated(model, force), force)[0])
    assert costs[0] > 2 * costs[1] > 4 * costs[2]


def test_it_writes_the_motion_that_it_has_found(script, tmp_path, capsys):
    folder = tmp_path / "swing"
    assert script.main(["-o", str(folder), "--steps", "20"]) == 0
    assert "rad from upright" in capsys.readouterr().out and (folder / "plots" / "motion.png").exists()
    assert json.loads((folder / "run.json").read_text())["status"] == "complete"
    found, model = ld.read_trajectory(folder / "trajectory.csv"), ld.load(script.ROBOT)
    q = np.column_stack([found.columns[f"q.{name}"] for name in model.q_names])
    expected = script.simulated(model, script.swing_up(model, 20, told=lambda text: None))
    assert np.abs(q - expected.q).max() < 1e-12
    assert script.main(["-o", str(folder), "--steps", "1"]) == 2 and "exists" in capsys.readouterr().err
