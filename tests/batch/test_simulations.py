"""A run of a chunk is the same alone: its outputs, its status, its reason, its trajectory."""
import numpy as np
import pytest

from sweeps import batch

SPRING = """\
name: spring
gravity: [0, 0, 0]
links: {b: {mass: 1}}
joints:
  x: {type: prismatic, parent: world, child: b, axis: [1, 0, 0], stiffness: 1, limits: {lower: -1, upper: 1, effort: 9}}
"""
SCENARIO = "robot: spring.yaml\nduration: 2\noutput_step: 0.1\nintegrator: {method: rk4, step: 0.1}\ninitial: {q: {x: 0.5}}\n"
SWEEP = """\
parameters:
  - {key: robot.stiffness.x, list: [1, 400, 1000000]}
  - {key: initial.v.x, list: [0, 3]}
  - {key: robot.mass.b, list: [1, -1]}
outputs: {last: final(q.x), most: max(abs(v.x))}
trajectories: {columns: [q.x, energy.*], every: 5}
"""


@pytest.mark.parametrize("events", ["", "events: {middle: {when: q(x), do: {record: true}}}\n"], ids=["together", "one by one"])
def test_a_run_of_a_chunk_is_the_same_alone(tmp_path, events):
    """Stiff springs are inaccurate or diverge, fast sliders exceed limits, negative masses are errors: all in one chunk."""
    (tmp_path / "spring.yaml").write_text(SPRING)
    evaluator = batch(tmp_path, SWEEP, scenario=SCENARIO + events).evaluator
    assert evaluator.is_vectorized is (not events)
    whole, parts = evaluator.compute_chunk(0, 12), [evaluator.compute_chunk(k, k + 1) for k in range(12)]
    assert set(whole.status) == {"complete", "diverged", "failed"} and len({text[:30] for text in whole.reason}) > 4
    for name in ("number", "status", "reason", "hash"):
        assert list(getattr(whole, name)) == [getattr(part, name)[0] for part in parts], name
    for name in ("outputs", "energy_balance"):
        np.testing.assert_allclose(getattr(whole, name), np.concatenate([getattr(part, name) for part in parts]), rtol=1e-12)
    for title, column in whole.trajectories.items():
        alone = np.concatenate([part.trajectories[title] for part in parts if part.trajectories])
        np.testing.assert_allclose(column, alone, rtol=1e-12, err_msg=title)
