"""Runs of a batch whose joints rest by smoothed friction: their rows say so."""
import math

import pytest

from command_line import ok
from sweeps import batch, table, written

WEIGHT = 2 * 9.81 * math.sin(math.radians(20))
BLOCK = f"""\
name: block
links: {{b: {{mass: 2}}}}
joints:
  x: {{type: prismatic, parent: world, child: b, axis: [1, 0, 0], origin: {{rpy: [0, {math.radians(20)}, 0]}},
      friction: {2 * WEIGHT}}}
"""
SCENARIO = "robot: block.yaml\nduration: 1\noutput_step: 0.05\nintegrator: {method: METHOD, step: 1.0e-3}\nPASSIVE" \
           "joints: {x: {torque: LAW}}\n"
OUTPUTS = "outputs: {last: final(q.x)}\n"
LAWS = {"friction": ("0.0", "", "initial.v.x, list: [0, 0.001]", 2),
        "friction of some": ("0.0", "", f"robot.friction.x, list: [{2 * WEIGHT}, {0.5 * WEIGHT}]", 1),
        "passive": (f"{-WEIGHT}", "passive: false\n", "initial.v.x, list: [0.005, 0.006]", 0),
        "tanh": (f"{-2 * WEIGHT}*tanh(v/0.01)", "passive: false\n", "initial.v.x, list: [0, 0.001]", 2)}


def sweep(folder, law: str, passive: str, parameters: str, method: str = "rk4"):
    (folder / "block.yaml").write_text(BLOCK)
    scenario = SCENARIO.replace("LAW", f'"{law}"').replace("PASSIVE", passive).replace("METHOD", method)
    if method != "rk4":
        scenario = scenario.replace(", step: 1.0e-3", "")
    return {"text": f"parameters: [{{key: {parameters}}}]\n{OUTPUTS}", "scenario": scenario}


@pytest.mark.parametrize("method", ["rk4", "rodas5p"])
@pytest.mark.parametrize("case", LAWS.values(), ids=LAWS)
def test_rows_of_runs_that_creep_have_a_reason(tmp_path, case, method):
    *keys, suspicious = case
    found = batch(tmp_path, **sweep(tmp_path, *keys, method))
    assert found.evaluator.is_vectorized is (method == "rk4")
    done = found.run(tmp_path / "out")
    assert done.table.counts == {"complete": 2} and done.table.n_with_warning == suspicious
    reasons = table(tmp_path / "out")["reason"]
    said = [reason.startswith("joints held by friction creep: x (0.00") for reason in reasons]
    assert said == [k < suspicious for k in range(2)], reasons
    assert "runs" not in reasons[0]


def test_the_command_says_how_many(tmp_path):
    path = written(tmp_path, **sweep(tmp_path, *LAWS["friction"][:3]))
    text = "warning: 2 of 2 runs are complete but suspicious: see the column reason"
    assert text in ok("batch", path, "-o", tmp_path / "out").stderr
