"""Runs of a batch whose energy balance is bad: their rows say so, as single runs do."""
import pytest

from sweeps import batch, table

SPRING = """\
name: spring
gravity: [0, 0, 0]
links: {b: {mass: 1}}
joints: {x: {type: prismatic, parent: world, child: b, axis: [1, 0, 0], stiffness: 1}}
"""


@pytest.mark.parametrize("events", ["", "events: {middle: {when: q(x), do: {record: true}}}\n"], ids=["together", "one by one"])
def test_rows_of_inaccurate_runs_have_a_reason(tmp_path, events):
    """A step of two radians of the stiff oscillator."""
    (tmp_path / "spring.yaml").write_text(SPRING)
    scenario = ("robot: spring.yaml\nduration: 2\noutput_step: 0.1\nintegrator: {method: rk4, step: 0.1}\n"
                f"initial: {{q: {{x: 1}}}}\n{events}")
    text = "parameters: [{key: robot.stiffness.x, list: [1, 400]}]\noutputs: {last: final(q.x)}\n"
    found = batch(tmp_path, text=text, scenario=scenario)
    assert found.evaluator.is_vectorized is (not events)
    done = found.run(tmp_path / "out")
    assert done.table.n_with_warning == 1
    good, bad = table(tmp_path / "out")["reason"]
    assert not good and bad.startswith("the relative error of the energy balance is ")
